//! The experiments on which the simulator is held against a real kernel.
//!
//! ```text
//! FIXED   what everybody asks about: ramps from four start states, periodic light and heavy,
//!         two tasks that compete, clamps, a deadline task beside a fair one, a fair task starved
//!         by a real-time one; on unequal and on equal CPUs
//! drawn   as many again, drawn from a seed: nobody chose them
//! limits  a ramp under frequency limits
//! groups  task groups: weights, nested, clamps (no quota: the kernel throws dice for its periods)
//! ```
//!
//! Each states how many of the six checks must hold. The workloads are rt-app's JSON, so that any
//! of them can be copied into a file and run by itself.

use super::{from_phase, verify};
use crate::Request;
use crate::parallel::parallel;
use crate::run::record;
use risetime_analysis::verify::{Comparison, Judged, Mode};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::{Experiment, InputError, Workload};
use risetime_trace::{Backend, Memory, RunError};
use std::sync::Arc;

/// From which the second half is drawn, unless another seed is asked for. Seeds 1 and 2 were looked
/// at while the simulator was mended, this one only after that.
pub const SET_SEED: u64 = 3;

/// From so many start phases each experiment is run, unless asked for otherwise.
pub const SET_PHASES: u32 = 3;

/// Whether the set holds: every experiment as many checks as it must in the median start phase, and
/// nine tenths of all.
pub fn set_holds(set: &[Judged]) -> bool {
    let both = || set.iter().flat_map(Judged::all);
    let held: usize = both().map(Comparison::held).sum();
    let all: usize = both().map(|c| c.checks.len()).sum();
    set.iter().all(Judged::holds) && 10 * held >= 9 * all
}

/// One experiment of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// `m1/ramp-cold`: platform and what is done.
    pub name: String,
    /// The platform.
    pub platform: String,
    /// Settings on top of the booted kernel's own policy, `+key=value…`.
    pub settings: String,
    /// rt-app JSON.
    pub workload: String,
    /// Length of the run in ms.
    pub ms: u64,
    /// How many of the six checks must hold, in each mode.
    pub wanted: usize,
}

impl Case {
    /// Whether it is of the half that is drawn from the seed.
    pub fn is_drawn(&self) -> bool {
        self.name.contains("/drawn-")
    }

    /// The experiment under a kernel of generation `rev`.
    ///
    /// Errors: none for the set's own cases (tested).
    pub fn experiment(&self, rev: Option<KernelRev>) -> Result<Experiment, InputError> {
        let request = Request {
            workload: "idle".into(),
            platform: self.platform.clone(),
            policies: vec![format!("mainline{}", self.settings)],
            set: Vec::new(),
            seconds: Some(self.ms as f64 / 1e3),
            phase: Span(0),
            seed: 1,
        };
        let workload = Workload::parse(&self.workload, &self.name)?;
        let mut experiments = request.experiments_under(rev)?;
        let experiment = experiments.remove(0);
        Ok(Experiment { workload: Arc::new(workload), ..experiment })
    }
}

/// One experiment of the set with its references.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Which.
    pub case: Case,
    /// As it was run from each start phase, and what the reference did.
    pub phases: Vec<(Experiment, Memory)>,
}

impl Recorded {
    /// The simulator held against the reference in both modes.
    ///
    /// Errors: the simulator's.
    pub fn judge(&self) -> Result<Judged, RunError> {
        let held = |mode| -> Result<Vec<Comparison>, RunError> {
            self.phases.iter().map(|(e, was)| Ok(verify(e, was, mode)?.comparison)).collect()
        };
        Ok(Judged {
            name: self.case.name.clone(),
            settings: self.case.settings.clone(),
            wanted: self.case.wanted,
            given: held(Mode::Given)?,
            free: held(Mode::Free)?,
        })
    }
}

/// Runs every case on `reference`, a kernel of generation `rev`, from `phases` start phases, on all
/// cores. `progress` hears how many runs are done.
///
/// Errors: the reference's.
pub fn record_set(
    reference: &(dyn Backend + Sync),
    rev: Option<KernelRev>,
    cases: Vec<Case>,
    phases: u32,
    progress: impl FnMut(usize),
) -> Result<Vec<Recorded>, RunError> {
    let each = phases.max(1) as usize;
    let runs = parallel(cases.len() * each, progress, |i| -> Result<_, RunError> {
        let experiment = cases[i / each].experiment(rev)?;
        let experiment = from_phase(&experiment, experiment.platform.tick(), (i % each) as u32);
        let trace = record(reference, &experiment)?;
        Ok((experiment, trace))
    })?;
    let mut runs = runs.into_iter();
    let of = |case| Recorded { case, phases: runs.by_ref().take(each).collect() };
    Ok(cases.into_iter().map(of).collect())
}

/// A ramp after naps: `run` µs of work before each of `naps` sleeps of `sleep` µs.
fn ramp(naps: u32, run: u64, sleep: u64) -> String {
    format!(
        r#"{{"tasks": {{"ramp": {{"loop": 1, "phases": {{
  "nap": {{"loop": {naps}, "run": {run}, "sleep": {sleep}}},
  "busy": {{"loop": -1, "run": 1000000}}}}}}}}}}"#
    )
}

/// `run` µs of work every `period` µs.
fn periodic(run: u64, period: u64) -> String {
    format!(
        r#"{{"tasks": {{"frame": {{"loop": -1, "run": {run},
  "timer": {{"ref": "unique", "period": {period}}}}}}}}}"#
    )
}

/// A frame in two steps: one task begins it every 16.667 ms and wakes the other.
fn frames(app: u64, render: u64) -> String {
    format!(
        r#"{{"tasks": {{
  "app": {{"loop": -1, "run": {app}, "lock": "m", "signal": "frame", "unlock": "m",
    "timer": {{"ref": "unique", "period": 16667}}}},
  "render": {{"loop": -1, "lock": "m", "wait": {{"ref": "frame", "mutex": "m"}}, "unlock": "m", "run": {render}}}}}}}"#
    )
}

/// The set: the fixed half, and as many drawn from `seed`.
pub fn set(seed: u64) -> Vec<Case> {
    let mut set = fixed();
    let mut draw = Draw(seed);
    for i in 0..set.len() {
        set.push(drawn(&mut draw, i));
    }
    set.extend(groups());
    set.push(max_freq());
    set
}

/// Limited frequencies, on both clusters.
fn max_freq() -> Case {
    Case {
        name: "m1/max-freq".into(),
        platform: "m1".into(),
        settings: "+scaling_max_freq.policy0=1500000+scaling_max_freq.policy4=1200000".into(),
        workload: ramp(40, 800, 10_000),
        ms: 1500,
        wanted: 4,
    }
}

fn groups() -> Vec<Case> {
    let weights = r#"{"taskgroups": {"/a": {"weight": 100}, "/b": {"weight": 300}}, "tasks": {
  "a": {"taskgroup": "/a", "cpus": [0], "loop": -1, "run": 1000000},
  "b": {"taskgroup": "/b", "cpus": [0], "loop": -1, "run": 1000000}}}"#;
    let nested = r#"{"taskgroups": {"/a": {"weight": 200}, "/a/x": {"weight": 100}, "/a/y": {"weight": 300}}, "tasks": {
  "x": {"taskgroup": "/a/x", "cpus": [0], "loop": -1, "run": 1000000},
  "y": {"taskgroup": "/a/y", "cpus": [0], "loop": -1, "run": 3000, "timer": {"ref": "unique", "period": 12000}},
  "z": {"cpus": [0], "loop": -1, "run": 500, "sleep": 2000}}}"#;
    let clamps = r#"{"taskgroups": {"/ui": {"uclamp_min": 500}, "/bg": {"uclamp_max": 200}}, "tasks": {
  "ui": {"taskgroup": "/ui", "loop": -1, "run": 1500, "timer": {"ref": "unique", "period": 16000}},
  "bg": {"taskgroup": "/bg", "delay": 3000, "loop": -1, "run": 4000, "sleep": 5000}}}"#;
    let of = |(name, workload): (&str, &str)| Case {
        name: name.into(),
        platform: name.split('/').next().unwrap_or_default().into(),
        settings: String::new(),
        workload: workload.into(),
        ms: 1000,
        wanted: 4,
    };
    let all = [
        ("m1/group-weights", weights),
        ("laptop4/group-weights", weights),
        ("laptop4/group-nested", nested),
        ("m1/group-clamps", clamps),
    ];
    all.into_iter().map(of).collect()
}

fn fixed() -> Vec<Case> {
    let case = |name: &str, settings: &str, ms: u64, wanted: usize, workload: String| Case {
        name: name.into(),
        platform: name.split('/').next().unwrap_or_default().into(),
        settings: settings.into(),
        workload,
        ms,
        wanted,
    };
    let busy = r#"{"tasks": {"busy": {"loop": -1, "run": 1000000}}}"#.to_string();
    let two = r#"{"tasks": {"busy": {"instance": 2, "loop": -1, "run": 1000000}}}"#.to_string();
    let pinned = r#"{"tasks": {
  "short": {"cpus": [0], "loop": -1, "run": 1000, "timer": {"ref": "unique", "period": 16000}},
  "long": {"cpus": [0], "loop": -1, "run": 1000000}}}"#
        .to_string();
    let lock = r#"{"tasks": {
  "a": {"loop": -1, "run": 1500, "lock": "m", "run": 2500, "unlock": "m", "timer": {"ref": "unique", "period": 12000}},
  "b": {"loop": -1, "run": 700, "lock": "m", "run": 2500, "unlock": "m", "timer": {"ref": "unique", "period": 9000}}}}"#
        .to_string();
    let fork = r#"{"tasks": {
  "parent": {"loop": -1, "run": 4000, "fork": "child", "run": 2000, "timer": {"ref": "unique", "period": 60000}},
  "child": {"instance": 0, "loop": 3, "run": 5000, "sleep": 4000}}}"#
        .to_string();
    let deadline = r#"{"tasks": {
  "frame": {"loop": -1, "run": 3000, "timer": {"ref": "unique", "period": 16000}},
  "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 20000, "loop": -1,
    "run": 3000, "timer": {"ref": "unique", "period": 20000}}}}"#;
    let starved = r#"{"tasks": {
  "fair": {"cpus": [0], "loop": -1, "run": 1000000},
  "fifo": {"cpus": [0], "policy": "SCHED_FIFO", "priority": 5, "delay": 20000, "loop": -1,
    "run": 1000000}}}"#;
    vec![
        case("m1/ramp-cold", "", 1500, 5, ramp(60, 1, 10_000)),
        case("m1/ramp-fresh", "", 800, 4, busy.clone()),
        case("m1/ramp-warm", "", 1500, 4, ramp(40, 800, 10_000)),
        case("m1/ramp-slept", "+rate_limit_us=10000", 1500, 4, ramp(2, 40_000, 150_000)),
        case("m1/rate-limit", "+rate_limit_us=20000", 1500, 4, ramp(60, 1, 10_000)),
        case("m1/light", "", 1000, 4, periodic(1_000, 16_000)),
        case("m1/heavy", "", 1000, 4, periodic(7_000, 16_667)),
        case("m1/two-ramps", "", 800, 4, two),
        case("m1/two-on-one", "", 1000, 4, pinned.clone()),
        case("m1/clamp-min", "+uclamp_min=600", 1200, 4, ramp(30, 1, 10_000)),
        case("m1/clamp-max", "+uclamp_max=300", 1500, 4, ramp(30, 1, 10_000)),
        case("m1/deadline", "", 1000, 4, deadline.to_string()),
        case("laptop4/ramp-cold", "", 1200, 4, ramp(40, 1, 10_000)),
        case("laptop4/heavy", "", 1000, 4, periodic(7_000, 16_667)),
        case("laptop4/two-on-one", "", 1000, 4, pinned),
        case("m1/frames", "", 1000, 4, frames(1_000, 2_000)),
        case("laptop4/frames", "", 1000, 4, frames(4_000, 1_000)),
        case("laptop4/lock", "", 1000, 4, lock),
        case("laptop4/fork", "", 1000, 4, fork),
        case("laptop4/starved", "", 3000, 4, starved.to_string()),
    ]
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Of `low..=high`.
    fn of(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

fn drawn(draw: &mut Draw, index: usize) -> Case {
    let platform = if draw.of(0, 2) < 2 { "m1" } else { "laptop4" };
    let (workload, ms) = match draw.of(0, 3) {
        0 => {
            let (naps, run, sleep) = (draw.of(20, 60), draw.of(1, 3_000), draw.of(5_000, 20_000));
            // The slowest CPU of the two platforms needs some eight times as long.
            (ramp(naps as u32, run, sleep), naps * (8 * run + sleep) / 1000 + 600)
        }
        1 => (periodic(draw.of(500, 9_000), draw.of(10_000, 40_000)), 1200),
        2 => (two(draw, false), 1200),
        _ => (two(draw, true), 1200),
    };
    let settings = match draw.of(0, 4) {
        0 => format!("+rate_limit_us={}", draw.of(0, 20_000)),
        1 => format!("+uclamp_min={}", draw.of(0, 1024)),
        2 => format!("+uclamp_max={}", draw.of(0, 1024)),
        _ => String::new(),
    };
    Case {
        name: format!("{platform}/drawn-{}", index + 1),
        platform: platform.into(),
        settings,
        workload,
        ms,
        wanted: 4,
    }
}

/// Two periodic tasks, the second later than the first; on one CPU if `pinned`.
fn two(draw: &mut Draw, pinned: bool) -> String {
    let cpus = if pinned { r#""cpus": [0], "# } else { "" };
    let mut task = |name: &str, delay: u64| {
        let (run, period, nice) = (draw.of(500, 6_000), draw.of(8_000, 30_000), draw.of(0, 5));
        format!(
            r#"  "{name}": {{{cpus}"delay": {delay}, "priority": {nice}, "loop": -1, "run": {run},
    "timer": {{"ref": "unique", "period": {period}}}}}"#
        )
    };
    format!("{{\"tasks\": {{\n{},\n{}}}}}", task("first", 0), task("second", 3_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_an_experiment_of_its_own() {
        let set = set(SET_SEED);
        for case in &set {
            let e = case.experiment(None).unwrap_or_else(|e| panic!("{}: {e}", case.name));
            assert_eq!(e.platform.name, case.platform);
        }
        let mut names: Vec<_> = set.iter().map(|c| &c.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), set.len());
        assert_eq!(super::set(SET_SEED), set, "the same seed, the same set");
        assert_ne!(super::set(SET_SEED + 1), set);
    }
}
