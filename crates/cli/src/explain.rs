//! `risetime explain`: what a burst lost its time to.

use crate::args::{Explain, OF_A_MACHINE};
use crate::output::Failure;
use crate::run::{Bar, note_doubts};
use crate::shown;
use risetime_kernel::units::Span;
use risetime_lab::{Found, Request, Why, phase_spans};
use std::process::ExitCode;

pub(crate) fn explain(args: &Explain) -> Result<ExitCode, Failure> {
    let experiments = request(args).experiments()?;
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
        let why = Why {
            task: args.task.as_deref(),
            over: args.over,
            budget: Span((args.budget * 1e9) as u64),
        };
        explanations.push(risetime_lab::explain(&experiment, why, progress)?);
    }
    drop(bar);
    let found = Found::Explained(explanations);
    shown::finish(&args.save, experiments, found, &args.plot, args.format)
}

fn request(args: &Explain) -> Request {
    Request {
        changes: args.settings.reading.changes(),
        policies: vec![args.of.policy.clone()],
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        phase: args.phase_us,
        seed: args.seed,
        noise: Some(OF_A_MACHINE),
        ..Request::new(args.of.workload.clone(), args.of.platform.clone())
    }
}
