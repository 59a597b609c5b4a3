//! `risetime deploy`: where real-time tasks go, and what they ask the kernel for; task sets, drawn and converted.

use crate::args::{
    Deploy, DeployBy, DeployConvert, DeployDraw, DeployFit, DeployGraph, DeployPlan, DeployPolicy,
    DeployScheduler, Written,
};
use crate::output::{self, Failure};
use risetime_deploy::admit::Scheduler;
use risetime_deploy::graph::Shape;
use risetime_deploy::plan::{Rules, plan};
use risetime_deploy::{Drawn, Fit, Periods, SetDrawn, Utilisations, draw_set, sliced};
use risetime_kernel::units::Span;
use risetime_model::taskset::{ResourceKind, Scheduling, TaskSet, is_yaml};
use risetime_model::{Needs, Platform, Workload, library};
use risetime_report::text;
use std::process::ExitCode;

pub(crate) fn deploy(args: &Deploy) -> Result<ExitCode, Failure> {
    match args {
        Deploy::Plan(args) => self::planned(args),
        Deploy::Draw(args) => self::drawn(args),
        Deploy::Convert(args) => self::converted(args),
    }
}

fn planned(args: &DeployPlan) -> Result<ExitCode, Failure> {
    let platform = Platform::load(&args.platform)?;
    let (needs, notes) = needs(args, &platform)?;
    needs.known_on(&platform)?;
    let fit = match args.fit {
        DeployFit::First => Fit::First,
        DeployFit::Best => Fit::Best,
        DeployFit::Worst => Fit::Worst,
    };
    // `auto` keeps the first answer, where none is yes.
    let schedulers: &[Scheduler] = match args.scheduler {
        DeployScheduler::Auto => &[Scheduler::Edf, Scheduler::Dm],
        DeployScheduler::Edf => &[Scheduler::Edf],
        DeployScheduler::Rm => &[Scheduler::Rm],
        DeployScheduler::Dm => &[Scheduler::Dm],
    };
    let tried = schedulers.iter().map(|&scheduler| {
        let rules = Rules { scheduler, fit };
        (rules, plan(&needs, &platform, rules))
    });
    let tried: Vec<_> = tried.collect();
    let fits = tried.iter().position(|(_, plan)| plan.is_ok());
    let (rules, plan) = &tried[fits.unwrap_or(0)];
    let page = text::deploy_plan(&needs, &platform, *rules, plan, &notes, &output::style());
    output::print(&page)?;
    Ok(if fits.is_some() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Those of a file of needs, or of a task set: of graphs, what each of their tasks has of the deadline.
fn needs(args: &DeployPlan, platform: &Platform) -> Result<(Needs, Vec<String>), Failure> {
    let file = args.file.as_str();
    let builtin = library::workloads().iter().any(|w| w.name == file);
    let set = match () {
        () if is_yaml(file) => TaskSet::load(file, Span::from_us(args.tick_us))?,
        () if file.ends_with(".json") || builtin => {
            TaskSet::of_workload(&Workload::load(file)?.bind(platform)?)?
        }
        () => return Ok((Needs::load(file)?, Vec::new())),
    };
    let mut notes = set.notes.clone();
    let mutexes = set.resources.iter().filter(|r| r.kind == ResourceKind::Mutex);
    let mutexes: Vec<&str> = mutexes.map(|r| r.name.as_str()).collect();
    if !mutexes.is_empty() {
        let names = mutexes.join(", ");
        notes.push(format!(
            "how long tasks wait for a mutex ({names}) is in no test: leave them room"
        ));
    }
    if !set.edges().is_empty() {
        notes.push(
            "each task of a graph has its part of the deadline, and begins when that does (deploy convert --slices)".into(),
        );
    }
    Ok((sliced(&set).needs(), notes))
}

fn drawn(args: &DeployDraw) -> Result<ExitCode, Failure> {
    if args.longest_us < args.shortest_us {
        return Err(Failure::input("--longest-us", "is less than --shortest-us"));
    }
    let by = match args.by {
        DeployBy::Randfixedsum => Utilisations::Randfixedsum,
        DeployBy::UunifastDiscard => Utilisations::UunifastDiscard,
    };
    let edges = f64::from(args.edges) / 100.0;
    let shape = |graph| match graph {
        DeployGraph::ErdosRenyi => Shape::ErdosRenyi { edges },
        DeployGraph::Layered => Shape::Layered { layers: args.layers as usize, edges },
    };
    let us = Span::from_us;
    let what = SetDrawn {
        tasks: Drawn {
            tasks: args.tasks as usize,
            utilisation: args.utilisation,
            by,
            periods: Periods {
                from: us(args.shortest_us),
                to: us(args.longest_us),
                step: us(args.step_us),
            },
        },
        constrained: args.constrained,
        graph: args.graph.zip(args.nodes).map(|(graph, nodes)| (nodes as usize, shape(graph))),
        resources: args.resources as usize,
        kinds: args.kind.clone(),
    };
    let Some(set) = draw_set(&what, args.seed) else {
        let none = format!(
            "no set of {} tasks with a utilisation of {} was found: none may take more than a CPU{}",
            args.tasks,
            args.utilisation,
            if args.graph.is_some() {
                ", and no path of a graph longer than its period"
            } else {
                ""
            }
        );
        return Err(Failure::input("--utilisation", none));
    };
    write(&set, &args.written)
}

fn converted(args: &DeployConvert) -> Result<ExitCode, Failure> {
    if is_yaml(&args.file)
        && let Some(platform) = Platform::load_partsim(&args.file, args.plain.as_deref())?
    {
        return put(&platform.to_toml(), &args.written);
    }
    let set = TaskSet::load(&args.file, Span::from_us(args.tick_us))?;
    let set = if args.slices { sliced(&set) } else { set };
    write(&set, &args.written)
}

fn write(set: &TaskSet, how: &Written) -> Result<ExitCode, Failure> {
    let scheduling = match how.scheduler {
        DeployPolicy::Edf => Scheduling::Deadline,
        DeployPolicy::Rm => Scheduling::Rm,
        DeployPolicy::Dm => Scheduling::Dm,
        DeployPolicy::Fifo => Scheduling::Fifo,
        DeployPolicy::Rr => Scheduling::Rr,
    };
    put(&set.to_rtapp(scheduling, how.together_us.map(Span::from_us))?, how)
}

fn put(text: &str, how: &Written) -> Result<ExitCode, Failure> {
    match &how.output {
        None => output::print(text),
        Some(path) => output::write_file(path, text.as_bytes()).map(|()| ExitCode::SUCCESS),
    }
}
