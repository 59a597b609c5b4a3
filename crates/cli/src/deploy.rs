//! `risetime deploy`: where real-time tasks go, how fast their CPUs run, and what they ask the kernel for; task sets, drawn
//! and converted.

use crate::args::deploy as asked;
use crate::args::rtapp::Reading;
use crate::interference;
use crate::output::{self, Failure};
use crate::run::Bar;
use indicatif::{ProgressBar, ProgressStyle};
use risetime_deploy::admit::{Order, Scheduler};
use risetime_deploy::graph::Shape;
#[cfg(feature = "highs")]
use risetime_deploy::optimise::Ended;
use risetime_deploy::optimise::{self, Effort, Objective, Problem, Ran, Runs, Solver};
use risetime_deploy::promise::Company;
use risetime_deploy::server::server;
use risetime_deploy::written::workload;
use risetime_deploy::{Drawn, Fit, Periods, SetDrawn, Utilisations, draw_set, sliced};
use risetime_kernel::units::Span;
use risetime_lab::deploy::{Asked, instead, plan_tried, set_of};
use risetime_lab::{Answer, Graphs, Optimised, names};
use risetime_model::taskset::{ResourceKind, Scheduling, TaskSet, is_yaml};
use risetime_model::{Dags, InputError, Needs, Platform, Workload};
use risetime_report::text::{self, Proof};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) fn deploy(args: &asked::Deploy) -> Result<ExitCode, Failure> {
    match args {
        asked::Deploy::Plan(args) => self::planned(args),
        asked::Deploy::Draw(args) => self::drawn(args),
        asked::Deploy::Convert(args) => self::converted(args),
        asked::Deploy::Optimise(args) => self::optimised(args),
    }
}

fn optimised(args: &asked::Optimise) -> Result<ExitCode, Failure> {
    let dags = names::dags(&args.file)?;
    let platform = Arc::new(names::platform(&args.platform)?);
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
    let graphs = Graphs {
        objective,
        factor_percent: args.factor,
        real_time_first: args.class_order.map(|order| order == asked::ClassOrder::RtDl),
        policy: args.policy.clone(),
        within: Duration::from_secs(args.within),
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let guards = stop_at_ctrl_c(&stopped);
    let bar = waiting();
    let (solver, name) = solver(args.solver);
    let optimised = optimised_by(&dags, &platform, &graphs, solver, &stopped, &bar);
    bar.finish_and_clear();
    guards.into_iter().for_each(|id| {
        signal_hook::low_level::unregister(id);
    });
    let optimised = optimised?;
    let proof = match solver {
        Some(Solver::Greedy | Solver::Descent) => Proof::None(name),
        Some(Solver::Exact) | None => Proof::Bound {
            solver: name,
            bound_nw: optimised.found.as_ref().map_or(0, |f| f.bound_nw),
            slack_ppm: optimised.found.as_ref().and_then(|f| f.slack_bound_ppm),
            ended: optimised.ended,
            programs: optimised.programs,
        },
    };
    let stopped = stopped.load(Ordering::Relaxed);
    let asked = text::Optimised {
        problem: &optimised.problem,
        platform: &platform,
        objective,
        found: optimised.found.as_ref().map(|f| &f.deployment),
        proof,
        ran: optimised.ran.as_ref(),
        before: &optimised.before,
        policy: Some(args.policy.as_str()).filter(|name| *name != "mainline"),
        stopped: stopped.then_some("Ctrl-C"),
        workload: args.workload.as_deref(),
    };
    let page = text::deploy_optimised(&asked, &output::style());
    if let (Some(found), Some(path)) = (&optimised.found, &args.workload) {
        let runs = match args.runs {
            None => Runs::Longest,
            Some((low, high)) => Runs::Drawn { low, high, seed: args.seed },
        };
        let text = optimise::workload(&optimised.problem, &found.deployment, runs);
        output::write_file(path, text.as_bytes())?;
    }
    output::print(&page)?;
    let kept = optimised.ran.as_ref().is_some_and(Ran::kept);
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// `None`: HiGHS.
fn solver(asked: asked::Solver) -> (Option<Solver>, &'static str) {
    match asked {
        asked::Solver::Greedy => (Some(Solver::Greedy), "greedy"),
        asked::Solver::Descent => (Some(Solver::Descent), "descent"),
        asked::Solver::Auto | asked::Solver::Exact => (Some(Solver::Exact), "exact"),
        asked::Solver::Highs => (None, "highs"),
    }
}

fn optimised_by(
    dags: &Dags,
    platform: &Arc<Platform>,
    graphs: &Graphs,
    solver: Option<Solver>,
    stopped: &AtomicBool,
    bar: &ProgressBar,
) -> Result<Optimised, Failure> {
    let mut by = |ways: &[Problem], objective, effort: Effort<'_>| match solver {
        Some(solver) => {
            let (found, ended) = optimise::solve(ways, objective, solver, effort);
            Ok(Answer { found, ended, programs: None })
        }
        None => by_highs(ways, objective),
    };
    let stop = || stopped.load(Ordering::Relaxed);
    let mut progress = |what: &str| bar.set_message(format!("{}: {what},", dags.name));
    risetime_lab::optimised(dags, platform, graphs, &mut by, &stop, &mut progress)
}

/// Sets `stopped` at Ctrl-C, so that the best so far is the answer; a second Ctrl-C ends the
/// program as ever.
fn stop_at_ctrl_c(stopped: &Arc<AtomicBool>) -> Vec<signal_hook::SigId> {
    use signal_hook::{consts::SIGINT, flag};
    // The second first: it asks whether there was one before.
    let second = flag::register_conditional_default(SIGINT, Arc::clone(stopped));
    let first = flag::register(SIGINT, Arc::clone(stopped));
    second.into_iter().chain(first).collect()
}

/// A bar that turns while a solver searches, seen where somebody looks.
fn waiting() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed} (Ctrl-C: the best so far)")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(feature = "highs")]
fn by_highs(ways: &[Problem], objective: Objective) -> Result<Answer, Failure> {
    let mut best: Option<(usize, optimise::Found, optimise::Rounds)> = None;
    let mut ended = Ended::Whole;
    for (way, p) in ways.iter().enumerate() {
        let (found, rounds) = optimise::outer(p, objective, &mut crate::highs::Highs)
            .map_err(|e| Failure::input(&p.name, e))?;
        ended = if rounds.whole { ended } else { Ended::Steps };
        let Some(found) = found else { continue };
        let nw = |way: usize, f: &optimise::Found| ways[way].power_nw(&f.deployment.config);
        if best.as_ref().is_none_or(|(was, b, _)| nw(way, &found) < nw(*was, b)) {
            best = Some((way, found, rounds));
        }
    }
    let programs = best.as_ref().map(|(_, _, rounds)| *rounds);
    Ok(Answer { found: best.map(|(way, found, _)| (way, found)), ended, programs })
}

#[cfg(not(feature = "highs"))]
fn by_highs(_: &[Problem], _: Objective) -> Result<Answer, Failure> {
    Err(Failure::unavailable(
        "--solver highs: this risetime is built without it\n  hint: cargo build --release --features highs (it needs cmake, a C++ compiler and libclang); or --solver exact, descent",
    ))
}

fn planned(args: &asked::Plan) -> Result<ExitCode, Failure> {
    let platform = names::platform(&args.platform)?;
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
    let asked = what_is_asked(args, fit)?;
    let platform = Arc::new(platform);
    let bar = Bar::new(0, "runs of the plan");
    let mut progress = |done: usize, of: usize| bar.of(done as u64, of as u64);
    let mut tried = plan_tried(&needs, &platform, &asked, &mut progress)?;
    if tried.plan.is_ok() && !tried.guaranteed() {
        tried.instead = instead(&needs, &platform, &asked, &mut progress)?;
    }
    drop(bar);
    if let (Some(path), Ok(plan)) = (&args.workload, &tried.plan) {
        let set = set_of(plan, &asked);
        let set: String = set.iter().map(|(key, value)| format!(" --set {key}={value}")).collect();
        let policy = match args.policy.as_str() {
            "mainline" => String::new(),
            name => format!(" --policy {name}"),
        };
        let says = format!(
            "{}: written by `risetime deploy plan`; risetime run FILE --platform {}{policy}{set}",
            needs.name, platform.name
        );
        let text = workload(&needs, plan, Company::Busy, None, &says);
        output::write_file(path, text.as_bytes())?;
    }
    let page = text::deploy_plan(&needs, &platform, &tried, &notes, &output::style());
    output::print(&page)?;
    Ok(if tried.guaranteed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn what_is_asked(args: &asked::Plan, fit: Fit) -> Result<Asked, Failure> {
    let schedulers: &[Scheduler] = match args.scheduler {
        asked::Scheduler::Auto => &[Scheduler::Edf, Scheduler::Dm],
        asked::Scheduler::Edf => &[Scheduler::Edf],
        asked::Scheduler::Rm => &[Scheduler::Rm],
        asked::Scheduler::Dm => &[Scheduler::Dm],
    };
    let interference: Result<_, InputError> =
        args.interference.iter().map(|file| interference::histogram(file)).collect();
    Ok(Asked {
        policy: args.policy.clone(),
        set: args.set.clone(),
        schedulers: schedulers.to_vec(),
        fit,
        margin_percent: args.margin,
        cpus: args.cpus.as_ref().map(|list| list.0.clone()),
        housekeeping: args.housekeeping.as_ref().map_or(Vec::new(), |list| list.0.clone()),
        interference: interference?,
        seed: 1,
    })
}

/// Reads the needs from a needs file or a task set; in a task graph each task gets its slice of the
/// graph's deadline.
fn needs(args: &asked::Plan, platform: &Platform) -> Result<(Needs, Vec<String>), Failure> {
    let file = args.file.as_str();
    reads(file, &args.reading)?;
    let set = match () {
        () if is_yaml(file) => names::task_set(file, Span::from_us(args.tick_us))?,
        () if file.ends_with(".json") || names::is_workload(file) => {
            let workload = names::workload(file, &args.reading.changes())?;
            TaskSet::of_workload(&workload.bind(platform)?)?
        }
        () => return Ok((names::needs(file)?, Vec::new())),
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

/// Checks that how a file for rt-app is to be read is said of none but such a file.
fn reads(file: &str, reading: &Reading) -> Result<(), Failure> {
    let other = is_yaml(file) || file.ends_with(".toml");
    let said = match reading.fill.is_empty() {
        true => "--rt-app",
        false => "--fill",
    };
    match other && !reading.changes().is_empty() {
        true => Err(Failure::input(said, format!("is for rt-app's JSON, and {file} is none"))),
        false => Ok(()),
    }
}

fn converted(args: &asked::Convert) -> Result<ExitCode, Failure> {
    reads(&args.file, &args.reading)?;
    if is_yaml(&args.file)
        && let Some(platform) = names::partsim(&args.file, args.plain.as_deref())?
    {
        return put(&platform.to_toml(), &args.written);
    }
    let set = match args.file.ends_with(".toml") {
        true => TaskSet::of_needs(&names::needs(&args.file)?),
        false if is_yaml(&args.file) => names::task_set(&args.file, Span::from_us(args.tick_us))?,
        false => TaskSet::of_workload(&names::workload(&args.file, &args.reading.changes())?)?,
    };
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
    let text = set.to_rtapp(scheduling, how.together_us.map(Span::from_us))?;
    let Some(reader) = how.reader else { return put(&text, how) };
    let exported = Workload::parse(&text, "the set")?.exported(reader.rt_app(), None);
    exported.notes.iter().for_each(|note| output::note(note));
    put(&exported.text, how)
}

fn put(text: &str, how: &asked::Written) -> Result<ExitCode, Failure> {
    match &how.output {
        None => output::print(text),
        Some(path) => output::write_file(path, text.as_bytes()).map(|()| ExitCode::SUCCESS),
    }
}
