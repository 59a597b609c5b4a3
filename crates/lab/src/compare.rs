//! Policies over many start states, and a patch series taken apart.
//!
//! ```text
//! policies × start phases × start utils ── one simulation each ──> Comparison
//! ablation of a preset:  base, all of it, all but each switch, base and each switch alone
//! ```
//!
//! The switches of a preset are what it sets but `governor` and `placement`; its base is the preset
//! without them, called like the built-in policy that is the same.

use crate::parallel::parallel;
use crate::phases::phase_spans;
use risetime_analysis::caution::{Figure, cautions};
use risetime_analysis::compare::{
    Compared, Comparison, Difference, Patch, Sample, StartState, relate,
};
use risetime_analysis::{Options, Stretch};
use risetime_kernel::units::{MicroWatts, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Experiment, InputError, Platform, Policy, library};
use risetime_sim::Counterfactual;
use risetime_trace::RunError;

/// The start states of a comparison.
#[derive(Clone, Debug)]
pub struct Grid {
    /// How many start phases, k · 7.618 ticks apart.
    pub phases: u32,
    /// The first task's util at its start, each with every phase; empty: what it is.
    pub start_utils: Vec<u64>,
}

/// A preset taken apart.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// Base, whole, then for each switch the whole without it and the base with it alone.
    pub policies: Vec<Policy>,
    /// The switches, `key=value`.
    pub switches: Vec<String>,
}

/// The parts of `preset` (`NAME[+key=value…]`); `set` holds for all of them and is no switch.
///
/// Errors: no such policy; one without switches; `set` says what one of them is.
pub fn ablation(preset: &str, set: &[(String, Value)]) -> Result<Ablation, InputError> {
    // What is asked for twice is found as for any policy.
    Policy::from_arg_with(preset, set)?;
    let whole = Policy::from_arg(preset)?;
    let mut base = whole.clone();
    base.set.retain(|key, _| NO_SWITCH.contains(&key.as_str()));
    base.name = name_of(&base).unwrap_or_else(|| format!("{} without its patches", whole.name));
    let switches: Vec<(&String, &Value)> =
        whole.set.iter().filter(|(key, _)| !NO_SWITCH.contains(&key.as_str())).collect();
    if switches.is_empty() {
        let what = format!("{preset} sets nothing that could be left out");
        return Err(InputError::new("--ablate", what).hint("for example --ablate rfc-v1"));
    }
    if let Some((key, value)) = set.iter().find(|(key, _)| switches.iter().any(|s| s.0 == key)) {
        let what = format!("`{key}` is one of the switches of {preset}, to be left out and put in");
        return Err(InputError::new(format!("--set {key}={value}"), what)
            .hint(format!("leave it out, or take apart {preset}+{key}={value}")));
    }
    let mut policies = vec![base.clone(), whole.clone()];
    for (key, value) in &switches {
        let mut without = whole.clone();
        without.set.remove(*key);
        without.name = format!("{} without {key}", whole.name);
        policies.extend([without, base.clone().with(key, (*value).clone())]);
    }
    let switches = switches.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let policies = policies.into_iter().map(|policy| {
        let add = |p: Policy, (key, value): &(String, Value)| p.set_for_all(key, value.clone());
        set.iter().fold(policy, add)
    });
    let policies = policies.collect();
    Ok(Ablation { policies, switches })
}

/// Settings that say who decides, not what a patch changes.
const NO_SWITCH: [&str; 2] = ["governor", "placement"];

/// What the built-in policy of the same kernel and settings is called.
fn name_of(policy: &Policy) -> Option<String> {
    let known = library::policies();
    let same = known.iter().filter_map(|entry| Policy::load(entry.name).ok());
    same.filter(|p| p.kernel == policy.kernel && p.set == policy.set).map(|p| p.name).next()
}

/// Runs every experiment from every start state of the grid. Of an ablation, `experiments` are its
/// policies, in order, and `switches` its switches; else there are none. `progress` hears how many
/// of how many simulations are done.
///
/// Errors: a task that never runs; the simulator's.
pub fn compare(
    experiments: &[Experiment],
    grid: &Grid,
    switches: &[String],
    mut progress: impl FnMut(usize, usize),
) -> Result<Comparison, RunError> {
    let Some(first) = experiments.first() else {
        return Err(RunError::Failed("there is nothing to compare".into()));
    };
    let starts = starts(first, grid);
    let (n, top_mw) = (experiments.len() * starts.len(), top_mw(&first.platform));
    let task = TaskId(first.workload.first_created() as u32);
    let backend = Counterfactual { task: Some(task), ..Counterfactual::default() };
    // The first policy says which burst the others' debts are about.
    let sample = |e: &Experiment, start: &Start, of: Option<Stretch>| {
        let options = Options { stretch: of.map(|of| (task, of)), ..Options::default() };
        let run = crate::run(&backend, &start.of(e), options, None)?.result;
        let sample = Sample::of(&run, top_mw, of.is_some());
        let stretch = run.tasks.first().map(|t| t.stretch);
        sample.zip(stretch).ok_or_else(|| {
            RunError::Failed(format!("{}: the first task never ran", e.workload.name))
        })
    };
    let of_first = |i: usize| sample(first, &starts[i], None);
    let of_first = parallel(starts.len(), |done| progress(done, n), of_first)?;
    let (mut samples, stretches): (Vec<Sample>, Vec<Stretch>) = of_first.into_iter().unzip();
    let others = |i: usize| {
        let (e, start) = (&experiments[1 + i / starts.len()], i % starts.len());
        sample(e, &starts[start], Some(stretches[start])).map(|(sample, _)| sample)
    };
    let done = starts.len();
    samples.extend(parallel(n - done, |more| progress(done + more, n), others)?);
    let compared = |(e, samples): (&Experiment, &[Sample])| {
        Compared::of(e.policy.name.clone(), e.settings.clone(), samples.to_vec())
    };
    let of_each = experiments.iter().zip(samples.chunks(starts.len()));
    let mut policies: Vec<Compared> = of_each.filter_map(compared).collect();
    relate(&mut policies);
    Ok(Comparison {
        workload: first.workload.name.clone(),
        platform: first.platform.name.clone(),
        comm: first.workload.tasks.get(task.index()).map_or(String::new(), |t| t.comm.clone()),
        seed: first.seed,
        power_known: first
            .platform
            .domains
            .iter()
            .flat_map(|d| &d.opps)
            .all(|o| o.power != MicroWatts(0)),
        states: starts.iter().map(Start::state).collect(),
        patches: patches(&policies, switches),
        policies,
        cautions: cautions(first, &[Figure::Speed, Figure::Energy]),
    })
}

/// One start state, as it changes an experiment.
struct Start {
    phase: Span,
    util: Option<u64>,
}

impl Start {
    fn of(&self, e: &Experiment) -> Experiment {
        let mut e = e.clone();
        e.duration = Span(e.duration.0 + self.phase.0 - e.phase.0);
        e.phase = self.phase;
        if let Some(util) = self.util {
            e.settings.0.insert("start_util".into(), Value::Int(util as i64));
        }
        e
    }

    fn state(&self) -> StartState {
        StartState { phase: self.phase, util: self.util }
    }
}

fn starts(first: &Experiment, grid: &Grid) -> Vec<Start> {
    let utils: Vec<Option<u64>> = match grid.start_utils.as_slice() {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let phases = phase_spans(first.platform.tick(), grid.phases);
    let all = phases.flat_map(|phase| utils.iter().map(move |util| (phase, *util)));
    all.map(|(phase, util)| Start { phase: first.phase + phase, util }).collect()
}

/// Power of the biggest CPU at its highest OPP, in mW.
fn top_mw(platform: &Platform) -> f64 {
    let biggest = platform.domains.iter().max_by_key(|d| d.capacity);
    let power = biggest.and_then(|d| d.opps.iter().max_by_key(|o| o.freq)).map(|o| o.power);
    power.map_or(0.0, |p| p.0 as f64 / 1000.0)
}

fn patches(policies: &[Compared], switches: &[String]) -> Vec<Patch> {
    let [base, whole, parts @ ..] = policies else { return Vec::new() };
    let patch = |(setting, pair): (&String, &[Compared])| Patch {
        setting: setting.clone(),
        last: Difference::between(&whole.samples, &pair[0].samples),
        alone: Difference::between(&pair[1].samples, &base.samples),
        acts: whole.samples != pair[0].samples || pair[1].samples != base.samples,
    };
    switches.iter().zip(parts.chunks_exact(2)).map(patch).collect()
}
