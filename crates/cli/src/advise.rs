//! `risetime advise`: what a user can change, and what it brings.

use crate::args::{Advise, OF_A_MACHINE, OF_THE_VM};
use crate::output::Failure;
use crate::plot::NO_ENERGY;
use crate::run::Bar;
use crate::shown;
use crate::vm;
use risetime_analysis::Measured;
use risetime_analysis::advice::Advice;
use risetime_analysis::expect::Expectation;
use risetime_analysis::metric::Metric;
use risetime_lab::{Advised, Found, Goal, Request, SoughtBy, Wanted, advised_on};
use risetime_model::workload::Change;
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::process::ExitCode;

pub(crate) fn advise(args: &Advise) -> Result<ExitCode, Failure> {
    let wanted = Wanted {
        request: Request {
            changes: [args.settings.reading.changes(), args.vary.clone()].concat(),
            policies: vec![args.of.policy.clone()],
            set: args.settings.all(),
            seconds: args.seconds,
            seed: args.seed,
            noise: Some(OF_A_MACHINE),
            ..Request::new(args.of.workload.clone(), args.of.platform.clone())
        },
        metric: args.metric.clone(),
        task: args.task.clone(),
        phases: args.phases,
        budget: args.budget,
    };
    if let Some(text) = &args.goal {
        return to_a_goal(args, &wanted, text);
    }
    let experiments = wanted.request.experiments()?;
    if !experiments.iter().all(shown::knows_power) {
        args.plot.refuse_as(NO_ENERGY)?;
    }
    // What is missing for a boot is said before the search, not after it.
    let vm =
        args.real.then(|| vm::find(&Cache::from_env()?, args.kernel.as_deref())).transpose()?;
    let vm = vm.map(|(vm, kernel)| (vm.with_idle_times(), kernel));
    if let Some((_, kernel)) = &vm {
        wanted.request.experiments_under(kernel.rev())?;
    }
    let bar = Bar::new(u64::from(args.budget), "simulations");
    let advice = risetime_lab::advise(&wanted, |done| bar.at(done as u64))?;
    drop(bar);
    let real = match vm {
        Some((vm, kernel)) => on_a_kernel(&vm, kernel.rev(), wanted, &advice)?,
        None => None,
    };
    let found = Found::Advised(Box::new(Advised { advice, command: command(args), real }));
    shown::finish(&args.save, experiments, found, &args.plot, args.format)
}

/// The least of one figure with which another reaches a goal.
fn to_a_goal(args: &Advise, wanted: &Wanted, text: &str) -> Result<ExitCode, Failure> {
    let expected = Expectation::parse_at(text, "--goal")?;
    let goal = Goal { expected, least: Metric::new(args.least.clone()) };
    let bar = Bar::new(u64::from(args.budget), "simulations");
    let sought = risetime_lab::advise_goal(wanted, &goal, |done| bar.at(done as u64))?;
    drop(bar);
    let experiments = wanted.request.experiments()?;
    let found = Found::Sought(Box::new(SoughtBy { sought, command: command(args) }));
    shown::finish(&args.save, experiments, found, &args.plot, args.format)
}

/// The baseline and the first line under a kernel; `None`: there is no first line.
fn on_a_kernel(
    vm: &Vm,
    rev: Option<risetime_kernel::KernelRev>,
    wanted: Wanted,
    advice: &Advice,
) -> Result<Option<(Measured, Measured)>, Failure> {
    let Some(first) = advice.tried.first() else { return Ok(None) };
    let request = Request { noise: Some(OF_THE_VM), ..wanted.request };
    let wanted = Wanted { request, ..wanted };
    let bar = Bar::new(u64::from(2 * wanted.phases), "runs");
    bar.at_once();
    let heard = |done| bar.at(done as u64);
    Ok(Some(advised_on(vm, rev, (&wanted, advice), &first.steps, heard)?))
}

/// The command that runs what was asked for as it is.
fn command(args: &Advise) -> String {
    let mut words =
        vec![format!("risetime run {} --platform {}", args.of.workload, args.of.platform)];
    if args.of.policy != "mainline" {
        words.push(format!("--policy {}", args.of.policy));
    }
    words.extend(args.settings.all().iter().map(|(key, value)| format!("--set {key}={value}")));
    let reading = &args.settings.reading;
    words.extend(reading.rt_app.iter().map(|release| format!("--rt-app {release}")));
    let filled = |c: &Change| format!("--fill '{}={}'", c.key.trim_matches('_'), c.value);
    words.extend(reading.fill.iter().map(filled));
    words.extend(args.vary.iter().map(|change| format!("--vary '{change}'")));
    words.extend(args.seconds.map(|s| format!("--seconds {s}")));
    words.extend((args.seed != 1).then(|| format!("--seed {}", args.seed)));
    words.join(" ")
}
