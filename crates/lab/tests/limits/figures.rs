//! Every setting that acts: what `explain` says of it. Which experiments these are, what is asked of each, what was kept.

use risetime_analysis::explain::Explanation;
use risetime_analysis::{Options, RunResult};
use risetime_kernel::units::{KHz, Span};
use risetime_lab::{Request, Why, explain, run};
use risetime_model::settings::{Param, Value};
use risetime_model::{Experiment, Platform};
use risetime_sim::Simulator;
use std::collections::BTreeSet;

/// Clusters that switch fast; two clusters and a cap on each; threads of cores and heat; one cluster with a slow driver.
pub(crate) const PLATFORMS: [&str; 4] = ["m1", "hikey960", "laptop4", "rpi4"];
/// The first in which a setting is there and acts counts.
const KERNELS: [&str; 3] = ["linux-7.2", "linux-6.1", "linux-4.4"];
/// One burst from rest, alone.
pub(crate) const WORKLOAD: &str = "rampup";
const SECONDS: f64 = 1.5;

/// For some sixty simulations of a case: what none of the causes explains, and what each saves, are exact; shares are drawn.
const BUDGET: Span = Span::from_ms(90_000);

/// Settings of an experiment, each as on the command line.
pub(crate) type Set = Vec<(String, Value)>;

/// A setting with a value that acts.
pub(crate) struct Case {
    pub(crate) platform: &'static str,
    pub(crate) kernel: &'static str,
    /// The setting, last; before it what it takes to have an effect.
    pub(crate) set: Set,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) lost_ms: f64,
    pub(crate) affinity_ms: f64,
    pub(crate) unexplained_ms: f64,
    /// The largest share: whose, how much, and what its absence saves.
    pub(crate) largest: String,
    pub(crate) share_ms: f64,
    pub(crate) saves_ms: f64,
    pub(crate) runs: u32,
}

/// Of what was lost this share may be unexplained, or so many ms where next to nothing was lost.
const UNEXPLAINED: (f64, f64) = (0.01, 0.02);

impl Row {
    fn of(e: &Explanation) -> Row {
        let largest = e.causes.iter().max_by(|a, b| a.ms.total_cmp(&b.ms)).expect("causes");
        Row {
            lost_ms: e.about.ms(),
            affinity_ms: e.affinity_ms,
            unexplained_ms: e.unexplained_ms,
            largest: largest.cause.into(),
            share_ms: largest.ms,
            saves_ms: largest.gain_ms,
            runs: e.runs,
        }
    }
    pub(crate) fn is_explained(&self) -> bool {
        let (share, ms) = UNEXPLAINED;
        self.unexplained_ms.abs() <= (share * self.lost_ms).max(ms)
    }
    /// Whether the absence of the largest saves at least half of its share.
    pub(crate) fn saves(&self) -> bool {
        self.saves_ms >= self.share_ms / 2.0 - 0.02
    }
}

fn request(platform: &str, kernel: &str, set: &Set) -> Request {
    Request {
        policies: vec![kernel.into()],
        set: set.clone(),
        seconds: Some(SECONDS),
        ..Request::new(WORKLOAD, platform)
    }
}

pub(crate) fn experiment(case: &Case) -> Option<Experiment> {
    request(case.platform, case.kernel, &case.set).experiments().ok()?.pop()
}

/// What a run says beside its settings.
fn figures(e: &Experiment) -> Option<String> {
    let RunResult { tasks, cpus, .. } = run(&Simulator, e, Options::default(), None).ok()?.result;
    Some(format!("{tasks:?}{cpus:?}"))
}

/// What `explain` says of a case; `None`: it has no burst.
pub(crate) fn explained(case: &Case) -> Option<Row> {
    let e = experiment(case)?;
    let why = Why { task: None, over: None, budget: BUDGET };
    explain(&e, why, |_, _| ()).ok().map(|e| Row::of(&e))
}

/// Values of a setting to be tried.
fn values(param: &Param, platform: &Platform) -> Vec<Value> {
    let (ints, names) = param.range.parts();
    let khz = platform.domains.last().map_or(KHz(0), |d| d.opps[d.opps.len() / 2].freq).0 as i64;
    let tried = [0, 1, 3, 10, 100, 600, 5000, 100_000, khz, 1_500_000, 20_000_000];
    let ints = ints.into_iter().flat_map(|(least, most)| {
        let all: BTreeSet<i64> =
            tried.into_iter().filter(|v| (least..=most).contains(v)).chain([least, most]).collect();
        all.into_iter().map(Value::Int)
    });
    names.iter().map(|name| Value::Name((*name).into())).chain(ints).collect()
}

/// What a setting takes to have an effect.
fn companions(param: &Param, owner: Option<(&str, &str)>, platform: &Platform) -> Set {
    let khz = platform.domains.last().map_or(KHz(0), |d| d.opps[d.opps.len() / 2].freq).0;
    let uw = platform
        .domains
        .last()
        .map_or(0, |d| d.opps[d.opps.len() / 2].power.0 * d.cpus.len() as u64);
    let cap = format!("scaling_max_freq_to={khz}");
    let hardware = format!("hw_capped_khz={khz}");
    let firmware = format!("firmware_capped_khz={khz}");
    let budget = format!("power_limit_uw={uw}");
    let late = "scaling_max_freq_from_ms=1100";
    let name = param.name;
    let own: Vec<&str> = match name {
        "hw_capped_on_us" => vec![&hardware, "hw_capped_period_us=50000"],
        "firmware_capped_on_us" => vec![&firmware, "firmware_capped_period_us=50000"],
        "power_limit_on_us" => vec![&budget, "power_limit_period_us=50000"],
        "scaling_max_freq_on_us" => vec![&cap, "scaling_max_freq_period_us=50000"],
        "hw_capped_below_millicelsius" => vec![&hardware, "hw_capped_above_millicelsius=40000"],
        "hw_pressure" | "hw_capped_above_millicelsius" => vec![&hardware],
        "firmware_pressure" => vec![&firmware],
        "power_pressure" => vec![&budget],
        "user_pressure" => vec![&cap, late],
        "pressure_permanent_ms" => vec![&cap, late, "user_pressure=permanent"],
        "irq_us" => vec!["irq_period_us=1000"],
        "irq_period_us" => vec!["irq_us=100"],
        "sched_pelt_multiplier_to" => vec!["sched_pelt_multiplier_change_ms=1100"],
        "sched_pelt_multiplier_change_ms" => vec!["sched_pelt_multiplier_to=4"],
        "highres_change_ms" => vec!["highres=on"],
        "highres_change" => vec!["highres=on", "highres_change_ms=1100"],
        "sched_time_avg_ms" => vec!["rt_tracking=rt_avg"],
        "rr_interval" | "sched_interactive" | "sched_yield_type" | "rq_lock_ns" => {
            vec!["sched_fair_class=muqss"]
        }
        _ if name.starts_with("hw_capped_") && name != "hw_capped_khz" => vec![&hardware],
        _ if name.starts_with("firmware_capped_") && name != "firmware_capped_khz" => {
            vec![&firmware]
        }
        _ if name.starts_with("power_limit_") && name != "power_limit_uw" => vec![&budget],
        _ if name.starts_with("scaling_max_freq_") && name != "scaling_max_freq_to" => vec![&cap],
        _ => Vec::new(),
    };
    let set = |words: &[&str]| -> Set {
        let of = |word: &&str| {
            let (key, value) = word.split_once('=').expect("a setting");
            let value = value.parse().map_or_else(|_| Value::Name(value.into()), Value::Int);
            (key.to_string(), value)
        };
        words.iter().map(of).collect()
    };
    let owner = owner.map(|(key, value)| (key.to_string(), Value::Name(value.into())));
    owner.into_iter().chain(set(&own)).collect()
}

/// Every setting of the catalogue on a platform, with each value that makes a difference, setting by setting; `kept`: which
/// settings are tried.
pub(crate) fn cases(
    platform: &'static str,
    kept: impl Fn(&Param) -> bool,
    mut take: impl FnMut(Vec<Case>),
) {
    let shape = Platform::load(platform).expect("built in");
    let catalogue = risetime_sim::catalogue();
    for (group, param) in catalogue.params().filter(|(_, param)| kept(param)) {
        let values = values(param, &shape);
        let companions = companions(param, group.owner, &shape);
        let found =
            KERNELS.iter().map(|kernel| of_kernel(platform, kernel, param, &values, &companions));
        take(found.into_iter().find(|cases| !cases.is_empty()).unwrap_or_default());
    }
}

fn of_kernel(
    platform: &'static str,
    kernel: &'static str,
    param: &Param,
    values: &[Value],
    companions: &Set,
) -> Vec<Case> {
    let of = |set: &Set| figures(&request(platform, kernel, set).experiments().ok()?.pop()?);
    let mut seen: BTreeSet<String> = of(companions).into_iter().collect();
    if seen.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for value in values {
        let set: Set =
            companions.iter().cloned().chain([(param.name.to_string(), value.clone())]).collect();
        // A value that does what another one does says nothing new.
        if of(&set).is_some_and(|figures| seen.insert(figures)) {
            all.push(Case { platform, kernel, set });
        }
    }
    all
}

/// The settings of a case as on the command line.
pub(crate) fn words(set: &Set) -> String {
    set.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("+")
}
