//! `risetime compare`: policies over many start states.

use crate::args::{Compare, OF_A_MACHINE, TextOrJson};
use crate::output::{self, Failure};
use crate::run::Bar;
use risetime_lab::{Grid, Request, ablation};
use risetime_model::{Experiment, InputError};
use risetime_report::{json, picture, text};
use std::process::ExitCode;

pub(crate) fn compare(args: &Compare) -> Result<ExitCode, Failure> {
    let (experiments, switches) = experiments(args)?;
    let grid = Grid { phases: args.phases, start_utils: args.start_utils.0.clone() };
    if let Some(e) = experiments.iter().find(|e| e.settings.int("start_util").is_some())
        && !grid.start_utils.is_empty()
    {
        return Err(InputError::new(&e.policy.name, "sets `start_util`, which is swept here")
            .hint("--start-utils own, or leave it out")
            .into());
    }
    let runs =
        experiments.len() as u64 * u64::from(grid.phases) * grid.start_utils.len().max(1) as u64;
    let bar = Bar::new(runs, "simulations");
    let compared =
        risetime_lab::compare(&experiments, &grid, &switches, |done, _| bar.at(done as u64))?;
    drop(bar);
    if args.plot.wanted() && !compared.power_known {
        let what = "there is no energy to draw: the platform does not say what its CPUs take";
        return Err(Failure::input("--plot", what));
    }
    args.plot.draw(|| picture::pareto(&compared))?;
    output::print(&match args.format {
        TextOrJson::Json => json::compare(&compared),
        TextOrJson::Text => text::tradeoff(&compared, &output::style()),
    })
}

/// The policies' experiments, and the switches if they take a preset apart.
fn experiments(args: &Compare) -> Result<(Vec<Experiment>, Vec<String>), Failure> {
    let request = Request {
        policies: args.policies.clone(),
        set: args.settings.all(),
        seconds: args.seconds,
        seed: args.seed,
        noise: Some(OF_A_MACHINE),
        ..Request::new(args.workload.clone(), args.platform.clone())
    };
    match &args.ablate {
        Some(preset) => {
            let parts = ablation(preset, &args.settings.all())?;
            Ok((request.experiments_of(|| Ok(parts.policies))?, parts.switches))
        }
        None if args.policies.len() < 2 => {
            let what = "found one policy, wanted at least two to compare";
            Err(InputError::new("--policy", what).hint("repeat --policy, or use --ablate").into())
        }
        None => Ok((request.experiments()?, Vec::new())),
    }
}
