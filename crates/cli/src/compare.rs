//! `risetime compare`: policies over many start states, by what a burst loses or by figures of whole runs.

use crate::args::{Compare, Format, OF_A_MACHINE, StartUtils};
use crate::output::{self, Failure};
use crate::plot::NO_ENERGY;
use crate::run::{Bar, note_doubts};
use risetime_analysis::metric::Metric;
use risetime_analysis::{Measured, Options, switched};
use risetime_lab::{Grid, Request, ablation};
use risetime_model::{Experiment, InputError};
use risetime_report::{csv, json, picture, text};
use risetime_sim::Simulator;
use std::process::ExitCode;

pub(crate) fn compare(args: &Compare) -> Result<ExitCode, Failure> {
    let mut groups = Vec::new();
    let mut switches = Vec::new();
    for (workload, platform) in pairs(args) {
        let experiments = experiments(args, workload, platform, &mut switches)?;
        note_doubts(&experiments, workload);
        groups.push(experiments);
    }
    match (args.metrics.as_slice(), groups.as_slice()) {
        ([], [one]) if one.len() > 1 && args.skip.skip_ms.is_some() => {
            let what = "without --metric a burst is compared, which is of the whole run";
            Err(InputError::new("--skip-ms", what).hint("--metric NAME (docs/jobs.md)").into())
        }
        ([], [one]) if one.len() > 1 => debts(args, one, &switches),
        _ if groups.iter().map(Vec::len).sum::<usize>() < 2 => {
            let what = "found one policy, wanted at least two to compare";
            Err(InputError::new("--policy", what).hint("repeat --policy, or use --ablate").into())
        }
        _ => metrics(args, &groups, &switches),
    }
}

/// Each workload with each platform.
fn pairs(args: &Compare) -> impl Iterator<Item = (&String, &String)> {
    args.workloads.iter().flat_map(|w| args.platforms.iter().map(move |p| (w, p)))
}

/// What has the name of another is told apart by what was given for it.
fn tell_apart(args: &Compare, all: &mut [Vec<Measured>]) {
    let pairs: Vec<_> = pairs(args).collect();
    let first = |of: fn(&Measured) -> &String, group: &[Measured]| group.first().map(of).cloned();
    let names: Vec<_> =
        all.iter().map(|g| (first(|m| &m.workload, g), first(|m| &m.platform, g))).collect();
    for (group, (own, given)) in all.iter_mut().zip(names.iter().zip(&pairs)) {
        let others = || names.iter().zip(&pairs);
        let workload = others().any(|(n, g)| n.0 == own.0 && g.0 != given.0);
        let platform = others().any(|(n, g)| n.1 == own.1 && g.1 != given.1);
        for m in group {
            if workload {
                m.workload.clone_from(given.0);
            }
            if platform {
                m.platform.clone_from(given.1);
            }
        }
    }
}

/// By what the first task's burst loses, and the energy.
fn debts(
    args: &Compare,
    experiments: &[Experiment],
    switches: &[String],
) -> Result<ExitCode, Failure> {
    let StartUtils(start_utils) = args.start_utils.clone().unwrap_or_default();
    let grid = Grid { phases: args.phases, start_utils };
    if let Some(e) = experiments.iter().find(|e| e.settings.int("start_util").is_some())
        && !grid.start_utils.is_empty()
    {
        return Err(InputError::new(
            e.policy.place_of("start_util"),
            "sets `start_util`, which is swept here",
        )
        .hint("--start-utils own, or leave it out")
        .into());
    }
    let runs =
        experiments.len() as u64 * u64::from(grid.phases) * grid.start_utils.len().max(1) as u64;
    let bar = Bar::new(runs, "simulations");
    let compared =
        risetime_lab::compare(experiments, &grid, switches, |done, _| bar.at(done as u64))?;
    drop(bar);
    if args.plot.wanted() && !compared.power_known {
        return Err(Failure::input("--plot", NO_ENERGY));
    }
    args.plot.draw(|| picture::pareto(&compared))?;
    output::stream(|out| match args.format {
        Format::Json => out.write_all(json::compare(&compared).as_bytes()),
        Format::Csv => csv::compare(out, &compared, &args.settings.all()),
        Format::Text => out.write_all(text::tradeoff(&compared, &output::style()).as_bytes()),
    })
}

/// By figures of whole runs. A group is one workload on one platform.
fn metrics(
    args: &Compare,
    groups: &[Vec<Experiment>],
    switches: &[String],
) -> Result<ExitCode, Failure> {
    let named = |name: &String| Metric::of_task(name, args.task.as_deref());
    let wanted: Vec<Metric> = args.metrics.iter().map(named).collect();
    let runs = groups.iter().map(Vec::len).sum::<usize>() as u64 * u64::from(args.phases);
    let bar = Bar::new(runs, "simulations");
    let (mut all, mut before) = (Vec::new(), 0);
    for group in groups {
        let usual = || usual(&group[0]);
        let wanted = if wanted.is_empty() { usual()? } else { wanted.clone() };
        let progress = |done: usize| bar.at(before + done as u64);
        all.push(risetime_lab::measure(&Simulator, group, args.phases, &wanted, progress)?);
        before += group.len() as u64 * u64::from(args.phases);
    }
    drop(bar);
    tell_apart(args, &mut all);
    let apart = all.first().filter(|_| !switches.is_empty());
    let apart = apart.map_or(Vec::new(), |parts| switched(switches, parts));
    let groups: Vec<&[Measured]> = all.iter().map(Vec::as_slice).collect();
    args.plot.draw(|| picture::metrics(&groups, &apart))?;
    output::stream(|out| match args.format {
        Format::Json => out.write_all(json::metrics(&groups, &apart).as_bytes()),
        Format::Csv => csv::metrics(out, &all.concat(), &args.settings.all()),
        Format::Text => out.write_all(text::metrics(&groups, &apart, &output::style()).as_bytes()),
    })
}

/// What such a run is asked for if nobody says what.
fn usual(e: &Experiment) -> Result<Vec<Metric>, Failure> {
    let probe = risetime_lab::run(&Simulator, e, Options::default(), None)?.result;
    Ok(vec![risetime_lab::usual_metric(e, None, &probe), Metric::new("energy")])
}

/// The policies' experiments, and the switches if they take a preset apart.
fn experiments(
    args: &Compare,
    workload: &str,
    platform: &str,
    switches: &mut Vec<String>,
) -> Result<Vec<Experiment>, Failure> {
    let request = Request {
        policies: args.policies.clone(),
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        skip_ms: args.skip.skip_ms,
        seed: args.seed,
        noise: Some(OF_A_MACHINE),
        ..Request::new(workload, platform)
    };
    match &args.ablate {
        Some(_) if args.workloads.len() * args.platforms.len() > 1 => {
            let what = "takes a policy apart on one platform with one workload";
            Err(InputError::new("--ablate", what).into())
        }
        Some(preset) => {
            let parts = ablation(preset, &args.settings.all())?;
            *switches = parts.switches;
            Ok(request.experiments_of(|| Ok(parts.policies))?)
        }
        None => Ok(request.experiments()?),
    }
}
