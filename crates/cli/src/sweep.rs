//! `risetime sweep`: metrics over a grid of experiments.

use crate::args::{OF_A_MACHINE, Sweep};
use crate::output::Failure;
use crate::run::Bar;
use crate::shown;
use risetime_analysis::Subject;
use risetime_analysis::metric::Metric;
use risetime_lab::{Found, Request, Swept};
use risetime_sim::Simulator;
use std::process::ExitCode;

pub(crate) fn sweep(args: &Sweep) -> Result<ExitCode, Failure> {
    let axes =
        args.vary.iter().map(|text| risetime_lab::axis(text)).collect::<Result<Vec<_>, _>>()?;
    let request = Request {
        changes: args.settings.reading.changes(),
        policies: vec![args.of.policy.clone()],
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        skip_ms: args.skip.skip_ms,
        seed: args.seed,
        noise: Some(OF_A_MACHINE),
        ..Request::new(args.of.workload.clone(), args.of.platform.clone())
    };
    let metrics: Vec<Metric> = match args.metric.as_slice() {
        // A grid has the same figures everywhere: those of what is not varied yet.
        [] => {
            let e = request.experiments()?;
            e.first().map_or(Vec::new(), |e| Subject::of(e, args.task.as_deref()).figures())
        }
        some => some.iter().map(|name| Metric::of_task(name, args.task.as_deref())).collect(),
    };
    let points = axes.iter().fold(1, |n: u64, axis| n.saturating_mul(axis.values.len() as u64));
    let bar = Bar::new(points.saturating_mul(args.phases.into()), "simulations");
    let progress = |done| bar.at(done as u64);
    let phases = args.phases;
    let swept = risetime_lab::sweep_of(&Simulator, &request, &axes, phases, &metrics, progress);
    let (sweep, experiments) = swept?;
    drop(bar);
    let found = Found::Swept(Swept { sweep, set: request.set });
    shown::finish(&args.save, experiments, found, &args.plot, args.format)
}
