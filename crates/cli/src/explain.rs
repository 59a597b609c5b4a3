//! `risetime explain`: what a burst lost its time to.

use crate::args::{Chosen, Explain, OF_A_MACHINE};
use crate::output::Failure;
use crate::run::{Bar, note_doubts};
use crate::{shown, trace};
use risetime_analysis::explain::Over;
use risetime_kernel::units::Span;
use risetime_lab::{Found, Request, Why, phase_spans};
use risetime_model::InputError;
use std::process::ExitCode;

pub(crate) fn explain(args: &Explain) -> Result<ExitCode, Failure> {
    if let Some(source) = trace::told(&args.workload) {
        return trace::explain(args, &source);
    }
    let (over, platform) = of_workload(args)?;
    let experiments = request(args, platform).experiments()?;
    let base = experiments.first().ok_or_else(|| Failure::unavailable("no experiment"))?;
    note_doubts(&experiments);
    let mut explanations = Vec::new();
    let per_phase = 1 << 9;
    let bar = Bar::new(per_phase * u64::from(args.phases), "simulations");
    for (k, phase) in phase_spans(base.platform.tick(), args.phases).enumerate() {
        let experiment = base.later(phase);
        let progress = |done: usize, all: usize| {
            bar.at(per_phase * k as u64 + per_phase * done as u64 / all as u64);
        };
        let why =
            Why { task: args.task.as_deref(), over, budget: Span((args.budget * 1e9) as u64) };
        explanations.push(risetime_lab::explain(&experiment, why, progress)?);
    }
    drop(bar);
    let found = Found::Explained(explanations);
    shown::finish(&args.save, experiments, found, &args.plot, args.format)
}

/// The pieces to explain of a workload, and its platform.
///
/// Errors: options that only a trace has; no platform.
fn of_workload(args: &Explain) -> Result<(Option<Over>, &str), InputError> {
    let of_a_trace = |name: &str| {
        let what = format!("is for traces, and {} is none", args.workload);
        InputError::new(name, what).hint("leave it out")
    };
    if args.window.is_some() {
        return Err(of_a_trace("--window"));
    }
    if args.full {
        return Err(of_a_trace("--full"));
    }
    let over = match args.over {
        Some(Chosen::Longer(_)) => return Err(of_a_trace("--over with a time")),
        Some(Chosen::Over(over)) => Some(over),
        None => None,
    };
    let platform = args.platform.as_deref().ok_or_else(|| {
        let what = format!("is missing: {} is a workload, which runs on a machine", args.workload);
        InputError::new("--platform", what).hint("`risetime list platforms` says which there are")
    })?;
    Ok((over, platform))
}

fn request(args: &Explain, platform: &str) -> Request {
    Request {
        changes: args.settings.reading.changes(),
        policies: vec![args.policy.clone()],
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        phase: args.phase_us,
        seed: args.seed,
        noise: Some(OF_A_MACHINE),
        ..Request::new(args.workload.clone(), platform)
    }
}
