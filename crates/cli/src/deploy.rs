//! `risetime deploy`: where real-time tasks go, how fast their CPUs run, and what they ask the kernel for; task sets, drawn
//! and converted.

use crate::args::deploy as asked;
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

pub(crate) fn deploy(args: &asked::Deploy) -> Result<ExitCode, Failure> {
    match args {
        asked::Deploy::Plan(args) => self::planned(args),
        asked::Deploy::Draw(args) => self::drawn(args),
        asked::Deploy::Convert(args) => self::converted(args),
        asked::Deploy::Optimise(args) => self::optimised(args),
    }
}

/// Nodes up to which every deployment is looked at unless another solver is asked for.
const EXACT_UP_TO: usize = 12;
/// Looks of that solver: some minutes.
const LOOKS: u64 = 5_000_000;

fn optimised(args: &asked::Optimise) -> Result<ExitCode, Failure> {
    let dags = Dags::load(&args.file)?;
    let platform = Platform::load(&args.platform)?;
    let options = Options { factor_permille: 10 * args.factor };
    let problem = Problem::new(&dags, &platform, options)?;
    let objective = match (args.objective, args.slack_power) {
        (asked::Objective::Power, None) => Objective::Power,
        (asked::Objective::Power, Some(_)) => {
            let what = "power is the objective: there is nothing to pay for";
            return Err(InputError::new("--slack-power", what).hint("--objective slack").into());
        }
        (asked::Objective::Slack, within) => {
            Objective::Slack { within_permille: within.unwrap_or(0) }
        }
    };
    let solver = match args.solver {
        asked::Solver::Auto if problem.nodes.len() <= EXACT_UP_TO => asked::Solver::Exact,
        asked::Solver::Auto => asked::Solver::Descent,
        asked => asked,
    };
    let (found, proof) = match solver {
        asked::Solver::Greedy => (optimise::greedy(&problem, objective), Proof::None("greedy")),
        asked::Solver::Descent | asked::Solver::Auto => {
            (optimise::descent(&problem, objective), Proof::None("descent"))
        }
        asked::Solver::Exact => {
            let (found, whole) = optimise::exact(&problem, objective, LOOKS);
            proven(found, whole, "exact")
        }
        asked::Solver::Highs => by_highs(&problem, objective)?,
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

fn planned(args: &asked::Plan) -> Result<ExitCode, Failure> {
    let platform = Platform::load(&args.platform)?;
    let (needs, notes) = needs(args, &platform)?;
    needs.known_on(&platform)?;
    let fit = match args.fit {
        asked::Fit::First => Fit::First,
        asked::Fit::Best => Fit::Best,
        asked::Fit::Worst => Fit::Worst,
    };
    if let Some(us) = args.server_period_us {
        let order = match args.scheduler {
            asked::Scheduler::Edf => {
                let what = "a group's tasks have priorities, not deadlines: wanted rm or dm beside --server-period-us";
                return Err(Failure::input("--scheduler edf", what));
            }
            asked::Scheduler::Rm => Order::Rate,
            asked::Scheduler::Auto | asked::Scheduler::Dm => Order::Deadline,
        };
        let found = server(&needs, &platform, Span::from_us(us), order, fit);
        let page = text::deploy_server(&needs, &platform, &found, &notes, &output::style());
        output::print(&page)?;
        return Ok(if found.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    // `auto` keeps the first answer, where none is yes.
    let schedulers: &[Scheduler] = match args.scheduler {
        asked::Scheduler::Auto => &[Scheduler::Edf, Scheduler::Dm],
        asked::Scheduler::Edf => &[Scheduler::Edf],
        asked::Scheduler::Rm => &[Scheduler::Rm],
        asked::Scheduler::Dm => &[Scheduler::Dm],
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
fn needs(args: &asked::Plan, platform: &Platform) -> Result<(Needs, Vec<String>), Failure> {
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

fn drawn(args: &asked::Draw) -> Result<ExitCode, Failure> {
    if args.longest_us < args.shortest_us {
        return Err(Failure::input("--longest-us", "is less than --shortest-us"));
    }
    let by = match args.by {
        asked::By::Randfixedsum => Utilisations::Randfixedsum,
        asked::By::UunifastDiscard => Utilisations::UunifastDiscard,
    };
    let edges = f64::from(args.edges) / 100.0;
    let shape = |graph| match graph {
        asked::Graph::ErdosRenyi => Shape::ErdosRenyi { edges },
        asked::Graph::Layered => Shape::Layered { layers: args.layers as usize, edges },
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

fn converted(args: &asked::Convert) -> Result<ExitCode, Failure> {
    if is_yaml(&args.file)
        && let Some(platform) = Platform::load_partsim(&args.file, args.plain.as_deref())?
    {
        return put(&platform.to_toml(), &args.written);
    }
    let set = TaskSet::load(&args.file, Span::from_us(args.tick_us))?;
    let set = if args.slices { sliced(&set) } else { set };
    write(&set, &args.written)
}

fn write(set: &TaskSet, how: &asked::Written) -> Result<ExitCode, Failure> {
    let scheduling = match how.scheduler {
        asked::Policy::Edf => Scheduling::Deadline,
        asked::Policy::Rm => Scheduling::Rm,
        asked::Policy::Dm => Scheduling::Dm,
        asked::Policy::Fifo => Scheduling::Fifo,
        asked::Policy::Rr => Scheduling::Rr,
    };
    put(&set.to_rtapp(scheduling, how.together_us.map(Span::from_us))?, how)
}

fn put(text: &str, how: &asked::Written) -> Result<ExitCode, Failure> {
    match &how.output {
        None => output::print(text),
        Some(path) => output::write_file(path, text.as_bytes()).map(|()| ExitCode::SUCCESS),
    }
}
