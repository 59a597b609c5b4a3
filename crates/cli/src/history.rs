//! `risetime history`: one experiment under one kernel release after another.

use crate::args::{History, OF_THE_VM};
use crate::output::{self, Failure};
use crate::run::Bar;
use crate::shown;
use crate::vm;
use risetime_analysis::history::{Build, Side, Taken};
use risetime_analysis::metric::Metric;
use risetime_kernel::KernelRev;
use risetime_lab::{
    BisectedBy, Found, Kernel, Request, Told, WANTED, history_experiments, simulated_only,
};
use risetime_model::InputError;
use risetime_vm::Vm;
use risetime_vm::fetch::{self, Cache};
use std::process::ExitCode;

/// A kernel of the cache, ready to boot.
struct Booted {
    vm: Vm,
    kernel: fetch::Kernel,
    rev: KernelRev,
}

pub(crate) fn history(args: &History) -> Result<ExitCode, Failure> {
    let request = Request {
        set: args.settings.all(),
        hz: args.settings.hz,
        seconds: args.seconds,
        seed: args.seed,
        noise: Some(OF_THE_VM),
        changes: args.reading.changes(),
        ..Request::new(args.workload.clone(), args.platform.clone())
    };
    // What is wrong with what was asked for comes before any boot.
    let task = risetime_lab::task_of(&request, args.task.as_deref())?;
    let metric = |name: &String| Metric::of_task(name, Some(&task));
    let told = Told { metrics: args.metrics.iter().map(metric).collect(), task: task.clone() };
    let booted = if args.simulated { Vec::new() } else { booted(args)? };
    let kernels: Vec<Kernel<'_>> = if booted.is_empty() {
        request.experiments()?;
        if !args.simulated {
            say_what_is_missing();
        }
        simulated_only()
    } else {
        booted.iter().map(kernel).collect()
    };
    // Of simulations as many as it takes to be sure of a bistable figure.
    let phases = args.phases.unwrap_or(if booted.is_empty() { 32 } else { 9 });
    match &args.bisect {
        Some(figure) => bisect(args, &request, &kernels, (&task, figure), phases),
        None => whole(args, &request, &kernels, &told, phases),
    }
}

fn say_what_is_missing() {
    let get: Vec<String> = WANTED.iter().map(|rev| format!("risetime vm fetch {rev}")).collect();
    output::note(&format!(
        "no kernel in the cache: what follows is simulated only. `risetime vm setup` gets what a kernel \
         needs, and for each generation: {} (--simulated: not asked for)",
        get.join("; ")
    ));
}

/// The kernels that were named, or all stock ones in the cache, oldest first; none where there is none.
fn booted(args: &History) -> Result<Vec<Booted>, Failure> {
    let cache = Cache::from_env()?;
    let stock = |k: &fetch::Kernel| k.release.starts_with(|c: char| c.is_ascii_digit());
    let names: Vec<String> = if args.kernel.is_empty() {
        cache.kernels().into_iter().filter(stock).map(|k| k.release).collect()
    } else {
        args.kernel.clone()
    };
    let mut all = Vec::new();
    for name in names {
        let (vm, kernel) = vm::find(&cache, Some(&name))?;
        let Some(rev) = kernel.rev() else {
            let what = "this Image does not say which release it is";
            return Err(InputError::new(name, what).hint("leave it out").into());
        };
        all.push(Booted { vm, kernel, rev });
    }
    all.sort_by_cached_key(|b| (b.rev, numbers(&b.kernel.release)));
    Ok(all)
}

/// The numbers of a release, to order those of one generation.
fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

fn kernel(b: &Booted) -> Kernel<'_> {
    let fetch::Build { preemption, uclamp, energy_model } = b.kernel.build();
    Kernel {
        name: b.kernel.release.clone(),
        rev: b.rev,
        build: Build { hz: None, preemption, uclamp, energy_model },
        backend: Some(&b.vm),
    }
}

fn whole(
    args: &History,
    request: &Request,
    kernels: &[Kernel<'_>],
    told: &Told,
    phases: u32,
) -> Result<ExitCode, Failure> {
    let bar = Bar::new(kernels.len() as u64, "releases");
    let history =
        risetime_lab::history(request, kernels, told, phases, |done| bar.at(done as u64))?;
    drop(bar);
    let experiments = history_experiments(request, kernels)?;
    shown::finish(&args.save, experiments, Found::History(history), &args.plot, args.format)
}

fn bisect(
    args: &History,
    request: &Request,
    kernels: &[Kernel<'_>],
    asked: (&str, &str),
    phases: u32,
) -> Result<ExitCode, Failure> {
    let real = kernels.iter().all(|k| k.backend.is_some());
    let side = if real { Side::Real } else { Side::Simulated };
    let mut heard = |name: &str, taken: &Taken| {
        let median = taken.spread.median.map_or("never".to_string(), |m| format!("{m:.1}"));
        output::note(&format!("{name}: {} {median}", asked.1));
    };
    let names: Vec<String> = kernels.iter().map(|k| k.name.clone()).collect();
    let step = args.step.as_deref().map(|step| named_step(step, &names)).transpose()?;
    let whose = (side, step);
    let found = risetime_lab::history_bisect(request, kernels, asked, whose, phases, &mut heard)?;
    let between = match found.first.filter(|first| *first > 0) {
        Some(first) if real => between(&names[first - 1], &names[first]),
        _ => Vec::new(),
    };
    let experiments = history_experiments(request, kernels)?;
    let figure = asked.1.to_string();
    let found = BisectedBy { figure, phases, side, releases: names, found, between };
    shown::finish(&args.save, experiments, Found::Bisected(found), &args.plot, args.format)
}

/// Finds the release that `step` names: its name, `linux-6.12` or `6.12` of it.
///
/// Errors: none; the oldest, before which there is none.
fn named_step(step: &str, names: &[String]) -> Result<usize, InputError> {
    let bare = |name: &str| name.strip_prefix("linux-").unwrap_or(name).to_string();
    let wanted = bare(step);
    let is = |name: &String| bare(name) == wanted || name.starts_with(&format!("{wanted}."));
    match names.iter().position(is) {
        Some(at) if at > 0 => Ok(at),
        found => {
            let what = match found {
                Some(_) => format!("`{step}` is the oldest: there is no step to it"),
                None => format!("`{step}` is none of the releases"),
            };
            Err(InputError::new("--step", what).hint(format!("there are {}", names.join(", "))))
        }
    }
}

/// Releases that the mirror had when last looked at, and that are between two, oldest first.
fn between(older: &str, newer: &str) -> Vec<String> {
    let there = Cache::from_env().ok().and_then(|cache| cache.available().ok());
    let (low, high) = (numbers(older), numbers(newer));
    let mut all = there.unwrap_or_default();
    all.retain(|r| low < numbers(r) && numbers(r) < high && r != older && r != newer);
    all.reverse();
    all
}
