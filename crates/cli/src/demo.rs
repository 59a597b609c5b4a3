//! `risetime demo`: the screen of `make demo`.

use crate::args::OF_A_MACHINE;
use crate::output::{self, Failure};
use crate::this_machine;
use risetime_analysis::{Level, Options, Spread, TaskPhases};
use risetime_kernel::units::{CpuId, KHz};
use risetime_lab::{Request, Run, run_phases};
use risetime_model::Experiment;
use risetime_report::text::{self, Demo, Next, Published};
use risetime_sim::Simulator;
use std::process::ExitCode;

/// Start phases behind each of our figures.
const PHASES: u32 = 16;

/// The series' ramp with a 10-ms rate limit: 6.8's default on this machine.
const POLICY: &str = "linux-6.8";

/// A machine that was fast from the start: top frequency, and the task stays on a big CPU.
const FAST: &str = "linux-6.8+governor=performance+placement=prev+first_cpu=4";

pub(crate) fn demo() -> Result<ExitCode, Failure> {
    let slow = experiment(POLICY)?;
    let run = timed(&slow)?;
    let fast = timed(&experiment(FAST)?)?;
    let phases = run_phases(&Simulator, &slow, PHASES, &Options::default(), |_| ())?;
    let figures = phases.summary.tasks.first().map(figures).unwrap_or_default();
    output::print(&text::demo(
        &Demo {
            machine: "Mac mini M1",
            run: (&run.result, &run.timeline.unwrap_or_default()),
            fast: Some((&fast.result, &fast.timeline.unwrap_or_default())),
            source: "RFC 00/16 of August 2024",
            figures: &figures,
            findings: &this_machine::findings(),
            next: &next(),
        },
        &output::style(),
    ))
}

fn experiment(policy: &str) -> Result<Experiment, Failure> {
    let request = Request {
        policies: vec![policy.into()],
        noise: Some(OF_A_MACHINE),
        ..Request::new("rampup", "m1")
    };
    let mut experiments = request.experiments()?;
    experiments.pop().ok_or_else(|| Failure::unavailable("no experiment"))
}

fn timed(experiment: &Experiment) -> Result<Run, Failure> {
    let options = Options { timeline: true, ..Options::default() };
    Ok(risetime_lab::run(&Simulator, experiment, options, None)?)
}

/// The numbers that the series published for this ramp, beside our medians.
fn figures(task: &TaskPhases) -> Vec<Published> {
    let reach = |what| task.reach.iter().find(|r| r.what == what).and_then(|r| r.after_ms.median);
    let on_cpu0 = |freq| {
        task.running.iter().find(|r| r.cpu == CpuId(0) && r.freq == KHz(freq)).map(|r: &_| &r.ms)
    };
    let median = |s: Option<&Spread>| s.and_then(|s| s.median);
    let row = |label: &str, published: &str, ours| Published {
        label: label.into(),
        published: published.into(),
        ours,
        unit: "ms".into(),
    };
    vec![
        row("on the little CPU", "90", reach(Level::Capacity(1024))),
        row("of that at 600 MHz", "37", median(on_cpu0(600_000))),
        row("until util 450", "~105", reach(Level::Util(450))),
        row("until util 1000", "~284", reach(Level::Util(1000))),
    ]
}

fn next() -> Vec<Next> {
    let row = |command: &str, shows: &str| Next { command: command.into(), shows: shows.into() };
    vec![
        row("risetime run rampup --platform m1 --policy linux-6.8", "this ramp in full"),
        row("risetime run rampup --platform m1 --uclamp-min 512 --phases 16", "what a hint buys"),
        row("risetime doctor", "all about this machine"),
    ]
}
