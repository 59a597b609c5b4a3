//! `risetime compare`: policies over many start states, by what the workload is about or by figures that are named.

use crate::args::{Compare, OF_A_MACHINE, StartUtils};
use crate::output::Failure;
use crate::run::{Bar, note_doubts};
use crate::shown;
use risetime_analysis::metric::Metric;
use risetime_analysis::{Compared, Measured, Subject, switched};
use risetime_lab::{ComparedBy, Found, Grid, Request, ablation};
use risetime_model::{Experiment, InputError};
use risetime_sim::Simulator;
use risetime_sim::settings::START_UTIL;
use std::process::ExitCode;

pub(crate) fn compare(args: &Compare) -> Result<ExitCode, Failure> {
    let mut groups = Vec::new();
    let mut switches = Vec::new();
    for (workload, platform) in pairs(args) {
        let experiments = experiments(args, workload, platform, &mut switches)?;
        note_doubts(&experiments);
        groups.push(experiments);
    }
    if groups.iter().map(Vec::len).sum::<usize>() < 2 {
        let what = "found one policy, wanted at least two to compare";
        return Err(InputError::new("--policy", what)
            .hint("repeat --policy, or use --ablate")
            .into());
    }
    let asked: Vec<Asked> = groups.iter().map(|g| asked(args, &g[0])).collect();
    let of_burst = |asked: &Asked| matches!(asked, Asked::Subject(Subject::Burst(_)));
    if args.skip.skip_ms.is_some() && asked.iter().any(of_burst) {
        let what = "without --metric a burst is compared, which is of the whole run";
        return Err(InputError::new("--skip-ms", what).hint("--metric NAME (docs/jobs.md)").into());
    }
    let grids: Vec<Grid> = groups
        .iter()
        .zip(&asked)
        .map(|(g, asked)| grid(args, g, asked))
        .collect::<Result<_, _>>()?;
    let runs =
        |(group, grid): (&Vec<Experiment>, &Grid)| group.len() * grid.starts(&group[0]).len();
    let bar = Bar::new(groups.iter().zip(&grids).map(runs).sum::<usize>() as u64, "simulations");
    let (mut all, mut before) = (Vec::new(), 0);
    for ((group, grid), asked) in groups.iter().zip(&grids).zip(&asked) {
        let progress = |done: usize| bar.at((before + done) as u64);
        let figures = asked.figures();
        all.push(risetime_lab::measure_from(&Simulator, group, grid, &figures, progress)?);
        before += runs((group, grid));
    }
    drop(bar);
    tell_apart(args, &mut all);
    let apart = all.first().filter(|_| !switches.is_empty());
    let compared = Compared {
        switches: apart.map_or(Vec::new(), |parts| switched(&switches, parts)),
        subjects: asked.into_iter().filter_map(Asked::subject).collect(),
        command: command(args),
        groups: all,
    };
    let found = Found::Compared(ComparedBy { compared, set: args.settings.all() });
    shown::finish(&args.save, groups.concat(), found, &args.plot, args.format)
}

/// The basis of a comparison: what the workload is about, or figures that were named.
enum Asked {
    Subject(Subject),
    Named(Vec<Metric>),
}

impl Asked {
    fn figures(&self) -> Vec<Metric> {
        match self {
            Asked::Subject(subject) => subject.figures(),
            Asked::Named(all) => all.clone(),
        }
    }

    fn subject(self) -> Option<Subject> {
        match self {
            Asked::Subject(subject) => Some(subject),
            Asked::Named(_) => None,
        }
    }
}

fn asked(args: &Compare, e: &Experiment) -> Asked {
    let task = args.task.as_deref();
    let named = |name: &String| Metric::of_task(name, task);
    match args.metrics.as_slice() {
        [] => Asked::Subject(Subject::of(e, task)),
        some => Asked::Named(some.iter().map(named).collect()),
    }
}

/// The start states of a group: utils to start from only where the first task has a burst from rest, by default where that is
/// what is compared.
fn grid(args: &Compare, group: &[Experiment], asked: &Asked) -> Result<Grid, Failure> {
    let e = &group[0];
    let first = e.workload.tasks.get(e.workload.first_created()).map_or("", |task| &task.comm);
    let has_burst = matches!(Subject::of(e, Some(first)), Subject::Burst(_));
    let is_it = matches!(asked, Asked::Subject(Subject::Burst(name)) if name == first);
    let own = group.iter().find(|e| e.settings.is_set(&START_UTIL));
    let start_utils = match &args.start_utils {
        Some(StartUtils(utils)) if !utils.is_empty() && !has_burst => {
            let what = format!(
                "`{first}` of {} has no burst from rest that would begin at such a util",
                e.workload.name
            );
            let hint = "leave it out: each start phase begins with the util that is";
            return Err(InputError::new("--start-utils", what).hint(hint).into());
        }
        Some(StartUtils(utils)) => utils.clone(),
        None if is_it && own.is_none() => StartUtils::default().0,
        None => Vec::new(),
    };
    match own {
        Some(e) if !start_utils.is_empty() => Err(InputError::new(
            e.policy.place_of("start_util"),
            "sets `start_util`, which is swept here",
        )
        .hint("--start-utils own, or leave it out")
        .into()),
        _ => Ok(Grid { phases: args.phases, start_utils }),
    }
}

/// The words that repeat it.
fn command(args: &Compare) -> Vec<String> {
    let mut words: Vec<String> = vec!["risetime".into(), "compare".into()];
    words.extend(args.workloads.iter().cloned());
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    args.platforms.iter().for_each(|p| option("platform", p.clone()));
    args.policies.iter().for_each(|p| option("policy", p.clone()));
    args.ablate.iter().for_each(|p| option("ablate", p.clone()));
    args.metrics.iter().for_each(|m| option("metric", m.clone()));
    args.task.iter().for_each(|t| option("task", t.clone()));
    args.settings.all().iter().for_each(|(key, value)| option("set", format!("{key}={value}")));
    args.settings.other.hz.iter().for_each(|hz| option("hz", hz.to_string()));
    args.seconds.iter().for_each(|s| option("seconds", s.to_string()));
    args.skip.skip_ms.iter().for_each(|ms| option("skip-ms", ms.to_string()));
    option("phases", args.phases.to_string());
    if let Some(StartUtils(utils)) = &args.start_utils {
        let utils: Vec<String> = utils.iter().map(u64::to_string).collect();
        option("start-utils", if utils.is_empty() { "own".into() } else { utils.join(",") });
    }
    option("seed", args.seed.to_string());
    words.iter().map(|word| risetime_lab::quoted(word)).collect()
}

/// Iterates over each workload with each platform.
fn pairs(args: &Compare) -> impl Iterator<Item = (&String, &String)> {
    args.workloads.iter().flat_map(|w| args.platforms.iter().map(move |p| (w, p)))
}

/// Renames what has the name of another, by what was given for it.
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

/// The policies' experiments, and the switches if they take a preset apart.
fn experiments(
    args: &Compare,
    workload: &str,
    platform: &str,
    switches: &mut Vec<String>,
) -> Result<Vec<Experiment>, Failure> {
    let request = Request {
        changes: args.settings.reading.changes(),
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
            Ok(request.experiments_of(parts.policies)?)
        }
        None => Ok(request.experiments()?),
    }
}
