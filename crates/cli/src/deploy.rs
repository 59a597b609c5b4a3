//! `risetime deploy`: where real-time tasks go, how fast their CPUs run, and what they ask the kernel for; task sets, drawn
//! and converted.

use crate::args::{
    Deploy, DeployBy, DeployConvert, DeployDraw, DeployFit, DeployGraph, DeployObjective,
    DeployOptimise, DeployPlan, DeployPolicy, DeployScheduler, DeploySolver, Written,
};
use crate::output::{self, Failure};
use risetime_deploy::admit::{Order, Scheduler};
use risetime_deploy::graph::Shape;
use risetime_deploy::optimise::{self, Found, Objective, Options, Problem, Runs};
use risetime_deploy::plan::{Rules, plan};
use risetime_deploy::server::server;
use risetime_deploy::{Drawn, Fit, Periods, SetDrawn, Utilisations, draw_set, sliced};
use risetime_kernel::units::Span;
use risetime_model::taskset::{ResourceKind, Scheduling, TaskSet, is_yaml};
use risetime_model::{Dags, InputError, Needs, Platform, Workload, library};
use risetime_report::text::{self, Proof};
use std::process::ExitCode;

pub(crate) fn deploy(args: &Deploy) -> Result<ExitCode, Failure> {
    match args {
        Deploy::Plan(args) => self::planned(args),
        Deploy::Draw(args) => self::drawn(args),
        Deploy::Convert(args) => self::converted(args),
        Deploy::Optimise(args) => self::optimised(args),
    }
}

/// Nodes up to which every deployment is looked at unless another solver is asked for.
const EXACT_UP_TO: usize = 12;
/// Looks of that solver: some minutes.
const LOOKS: u64 = 5_000_000;

fn optimised(args: &DeployOptimise) -> Result<ExitCode, Failure> {
    let dags = Dags::load(&args.file)?;
    let platform = Platform::load(&args.platform)?;
    let options = Options { factor_permille: 10 * args.factor };
    let problem = Problem::new(&dags, &platform, options)?;
    let objective = match (args.objective, args.slack_power) {
        (DeployObjective::Power, None) => Objective::Power,
        (DeployObjective::Power, Some(_)) => {
            let what = "power is the objective: there is nothing to pay for";
            return Err(InputError::new("--slack-power", what).hint("--objective slack").into());
        }
        (DeployObjective::Slack, within) => {
            Objective::Slack { within_permille: within.unwrap_or(0) }
        }
    };
    let solver = match args.solver {
        DeploySolver::Auto if problem.nodes.len() <= EXACT_UP_TO => DeploySolver::Exact,
        DeploySolver::Auto => DeploySolver::Descent,
        asked => asked,
    };
    let (found, proof) = match solver {
        DeploySolver::Greedy => (optimise::greedy(&problem, objective), Proof::None("greedy")),
        DeploySolver::Descent | DeploySolver::Auto => {
            (optimise::descent(&problem, objective), Proof::None("descent"))
        }
        DeploySolver::Exact => {
            let (found, whole) = optimise::exact(&problem, objective, LOOKS);
            proven(found, whole, "exact")
        }
        DeploySolver::Highs => by_highs(&problem, objective)?,
    };
    let page = text::deploy_optimised(
        &problem,
        &platform,
        objective,
        found.as_ref(),
        proof,
        args.workload.as_deref(),
        &output::style(),
    );
    if let (Some(found), Some(path)) = (&found, &args.workload) {
        let runs = match args.runs {
            None => Runs::Longest,
            Some((low, high)) => Runs::Drawn { low, high, seed: args.seed },
        };
        output::write_file(path, optimise::workload(&problem, found, runs).as_bytes())?;
    }
    output::print(&page)?;
    Ok(if found.is_some() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn proven(
    found: Option<Found>,
    whole: bool,
    solver: &'static str,
) -> (Option<optimise::Deployment>, Proof) {
    let bound_nw = found.as_ref().map_or(0, |f| f.bound_nw);
    let proof = Proof::Bound { solver, bound_nw, whole, programs: None };
    (found.map(|f| f.deployment), proof)
}

#[cfg(feature = "highs")]
fn by_highs(
    problem: &Problem,
    objective: Objective,
) -> Result<(Option<optimise::Deployment>, Proof), Failure> {
    let (found, rounds) = optimise::outer(problem, objective, &mut crate::highs::Highs)
        .map_err(|e| Failure::input(&problem.name, e))?;
    let (found, proof) = proven(found, rounds.whole, "highs");
    let Proof::Bound { solver, bound_nw, whole, .. } = proof else { return Ok((found, proof)) };
    Ok((found, Proof::Bound { solver, bound_nw, whole, programs: Some(rounds) }))
}

#[cfg(not(feature = "highs"))]
fn by_highs(_: &Problem, _: Objective) -> Result<(Option<optimise::Deployment>, Proof), Failure> {
    Err(Failure::unavailable(
        "--solver highs: this risetime is built without it\n  hint: cargo build --release --features highs (it needs cmake, a C++ compiler and libclang); or --solver exact, descent",
    ))
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
    if let Some(us) = args.server_period_us {
        let order = match args.scheduler {
            DeployScheduler::Edf => {
                let what = "a group's tasks have priorities, not deadlines: wanted rm or dm beside --server-period-us";
                return Err(Failure::input("--scheduler edf", what));
            }
            DeployScheduler::Rm => Order::Rate,
            DeployScheduler::Auto | DeployScheduler::Dm => Order::Deadline,
        };
        let found = server(&needs, &platform, Span::from_us(us), order, fit);
        let page = text::deploy_server(&needs, &platform, &found, &notes, &output::style());
        output::print(&page)?;
        return Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
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
