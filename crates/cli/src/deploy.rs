//! `risetime deploy`: where real-time tasks go, how fast their CPUs run, and what they ask the kernel for.

use crate::args::{
    Deploy, DeployFit, DeployObjective, DeployOptimise, DeployPlan, DeployScheduler, DeploySolver,
};
use crate::output::{self, Failure};
use risetime_deploy::Fit;
use risetime_deploy::admit::Scheduler;
use risetime_deploy::optimise::{self, Found, Objective, Options, Problem, Runs};
use risetime_deploy::plan::{Rules, plan};
use risetime_model::{Dags, Needs, Platform};
use risetime_report::text::{self, Proof};
use std::process::ExitCode;

pub(crate) fn deploy(args: &Deploy) -> Result<ExitCode, Failure> {
    match args {
        Deploy::Plan(args) => self::planned(args),
        Deploy::Optimise(args) => self::optimised(args),
    }
}

/// Nodes up to which every deployment is looked at unless another solver is asked for.
const EXACT_UP_TO: usize = 8;
/// Looks of that solver: some minutes.
const LOOKS: u64 = 5_000_000;

fn optimised(args: &DeployOptimise) -> Result<ExitCode, Failure> {
    let dags = Dags::load(&args.file)?;
    let platform = Platform::load(&args.platform)?;
    let options = Options { factor_permille: 10 * args.factor };
    let problem = Problem::new(&dags, &platform, options)?;
    let objective = match args.objective {
        DeployObjective::Power => Objective::Power,
        DeployObjective::Slack => Objective::Slack,
    };
    let solver = match args.solver {
        DeploySolver::Auto if problem.nodes.len() <= EXACT_UP_TO => DeploySolver::Exact,
        DeploySolver::Auto if cfg!(feature = "highs") => DeploySolver::Highs,
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
    let needs = Needs::load(&args.file)?;
    let platform = Platform::load(&args.platform)?;
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
    let page = text::deploy_plan(&needs, &platform, *rules, plan, &output::style());
    output::print(&page)?;
    Ok(if fits.is_some() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
