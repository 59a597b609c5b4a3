//! Drawn sets of deadline tasks under each placement: what is missed, how late, how many migrations, at what energy.
//!
//! ```text
//! set       n tasks, Σ u of so much of the platform, by UUniFast-discard; periods log-uniform, 10 to 100 ms; no task above so much
//! task      asks for its reservation, sleeps until all have, then: a job in each period, of so much of its runtime
//! counted   from 200 ms on: jobs, lateness, migrations; energy is that of the whole run
//! ```

use risetime_analysis::compare::Estimate;
use risetime_analysis::{Options, RunResult};
use risetime_deploy::{Drawn, Periods, Task, Utilisations};
use risetime_kernel::units::{Instant, Span};
use risetime_lab::run;
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_sim::Simulator;
use risetime_trace::{Event, Header, Hears, RunError, TraceSink, Why};
use std::sync::Arc;

/// From then on it counts.
pub(crate) const FROM: Span = Span::from_ms(200);
pub(crate) const SECONDS: u64 = 2;
/// Reservations have 95 % of each CPU, as on every kernel; no fair server, as nothing is fair.
pub(crate) const BASE: &str = "linux-7.2+fair_server_runtime_ns=0";

/// The sets of a table: of so many tasks, with so many seeds for each share of the platform.
pub(crate) struct Draw {
    pub(crate) platform: &'static str,
    pub(crate) tasks: usize,
    pub(crate) percents: &'static [u64],
    pub(crate) seeds: u64,
    /// No task takes more, in % of a CPU of 1024.
    pub(crate) most: u64,
    /// What a job does of its runtime, in %.
    pub(crate) work: u64,
}

/// `percent` of all that the platform's CPUs can do.
pub(crate) fn set(platform: &Platform, draw: &Draw, percent: u64, seed: u64) -> Vec<Task> {
    let cpus = platform.domains.iter().map(|d| d.capacity.0 * d.cpus.len() as u64);
    let all = cpus.sum::<u64>() as f64 / 1024.0;
    let what = Drawn {
        tasks: draw.tasks,
        utilisation: all * percent as f64 / 100.0,
        by: Utilisations::UunifastDiscard,
        periods: Periods {
            from: Span::from_ms(10),
            to: Span::from_ms(100),
            step: Span::from_ms(1),
        },
    };
    let fits = |set: &Vec<Task>| set.iter().all(|t| t.work.0 * 100 <= t.period.0 * draw.most);
    let mut sets = (0..100_000).filter_map(|i| risetime_deploy::draw(&what, seed * 100_000 + i));
    sets.find(fits).expect("one of so many")
}

/// Returns the experiment of that set under a policy.
pub(crate) fn experiment(
    platform: &Arc<Platform>,
    set: &[Task],
    work: u64,
    policy: &str,
) -> Experiment {
    let tasks: Vec<String> = set
        .iter()
        .map(|t| {
            let us = |span: Span| (span.0 / 1000).max(1);
            let (runtime, period) = (us(t.work).max(50), us(t.period));
            let work = runtime * work / 100;
            format!(
                r#""{}": {{"policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, "phases": {{
                    "asks": {{"loop": 1, "sleep": 50000}},
                    "works": {{"loop": -1, "timer": {{"ref": "unique", "period": {period}}}, "run": {work}}}}}}}"#,
                t.name
            )
        })
        .collect();
    let workload = format!(r#"{{"tasks": {{{}}}}}"#, tasks.join(", "));
    let workload = Workload::parse(&workload, "set").expect("tasks");
    let policy = Policy::from_arg_with(policy, &[]).expect("a policy");
    let mut settings = risetime_sim::resolve(platform, &policy).expect("settings");
    settings.insert("skip_ms", Value::Int((FROM.0 / 1_000_000) as i64));
    Experiment {
        platform: Arc::clone(platform),
        workload: Arc::new(workload),
        policy,
        settings,
        duration: Span::from_ms(SECONDS * 1000),
        phase: Span(0),
        seed: 1,
    }
}

/// What became of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) due: u64,
    pub(crate) missed: u64,
    /// Of those, by tasks that fit no CPU of the smallest capacity.
    pub(crate) missed_big: u64,
    /// Of those that were late, the most, in ms and in its own periods.
    pub(crate) late_ms: f64,
    pub(crate) late_periods: f64,
    pub(crate) migrations: u64,
    /// Of those, by push and pull, or a wakeup that found no CPU on which the test holds.
    pub(crate) fallback: u64,
    pub(crate) energy_mj: f64,
}

/// Counts the changes of CPU of the first tasks.
struct Moves {
    tasks: usize,
    all: u64,
    fallback: u64,
}

impl TraceSink for Moves {
    fn listens(&self) -> Hears {
        Hears::All
    }
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if let Event::Migrate { task, why, .. } = *event
            && task.index() < self.tasks
            && at.0 >= FROM.0
        {
            self.all += 1;
            self.fallback += u64::from(matches!(why, Why::LaterRq | Why::DlPush | Why::DlPull));
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Runs it. `None`: refused, as no partition was found, or the machine has no room.
pub(crate) fn outcome(e: &Experiment, set: &[Task]) -> Option<Outcome> {
    let mut moves = Moves { tasks: set.len(), all: 0, fallback: 0 };
    let result: RunResult = match run(&Simulator, e, Options::default(), Some(&mut moves)) {
        Ok(run) => run.result,
        Err(RunError::Input(e)) if e.what.contains("is refused") => return None,
        Err(e) => panic!("{e}"),
    };
    let mut all = Outcome {
        migrations: moves.all,
        fallback: moves.fallback,
        energy_mj: result.energy_mj.expect("the power is known"),
        ..Outcome::default()
    };
    for job in &result.jobs {
        all.due += job.due;
        all.missed += job.missed();
        let task = set.iter().find(|t| t.name == job.name).expect("one of the set");
        let smallest = e.platform.domains.iter().map(|d| d.capacity.0).min().unwrap_or(0);
        if task.work.0 * 1024 > task.period.0 * smallest {
            all.missed_big += job.missed();
        }
        let worst = job.latest.as_ref().map_or(0.0, |latest| latest.lateness_ms.max(0.0));
        all.late_ms = all.late_ms.max(worst);
        all.late_periods = all.late_periods.max(worst / (task.period.0 as f64 / 1e6));
    }
    Some(all)
}

/// The outcome of each set under each policy.
pub(crate) fn under(draw: &Draw, policies: &[&str]) -> Vec<Vec<Option<Outcome>>> {
    let platform = Arc::new(Platform::load(draw.platform).expect("built in"));
    let mut all = Vec::new();
    for &percent in draw.percents {
        for seed in 1..=draw.seeds {
            let set = set(&platform, draw, percent, seed);
            let one = |policy: &&str| {
                outcome(&experiment(&platform, &set, draw.work, &format!("{BASE}{policy}")), &set)
            };
            all.push(policies.iter().map(one).collect());
        }
    }
    all
}

/// Median and interval of what `b` has more than `a`, in %, of sets that both took; `None`: there are none.
pub(crate) fn more(
    all: &[Vec<Option<Outcome>>],
    a: usize,
    b: usize,
    of: fn(&Outcome) -> f64,
) -> Option<Estimate> {
    let percent = all.iter().filter_map(|set| {
        let (a, b) = (of(set[a].as_ref()?), of(set[b].as_ref()?));
        (a > 0.0).then_some(100.0 * (b / a - 1.0))
    });
    Estimate::of(percent)
}

pub(crate) fn energy(o: &Outcome) -> f64 {
    o.energy_mj
}
