//! `risetime explain`: what a burst lost its time to.

use crate::args::{Explain, OF_A_MACHINE};
use crate::output::{self, Failure};
use crate::run::{Bar, note_doubts};
use risetime_kernel::units::Span;
use risetime_lab::{Request, Why, phase_spans};
use risetime_report::{json, picture, text};
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
    args.plot.draw(|| picture::causes(&explanations))?;
    output::print(&match args.format.prose() {
        None => json::explain(&explanations),
        Some(form) => form.of(|style| text::explain(&explanations, style)),
    })
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
