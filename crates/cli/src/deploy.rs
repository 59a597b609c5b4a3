//! `risetime deploy`: where real-time tasks go, and what they ask the kernel for.

use crate::args::{Deploy, DeployFit, DeployPlan, DeployScheduler};
use crate::output::{self, Failure};
use risetime_deploy::Fit;
use risetime_deploy::admit::Scheduler;
use risetime_deploy::plan::{Rules, plan};
use risetime_model::{Needs, Platform};
use risetime_report::text;
use std::process::ExitCode;

pub(crate) fn deploy(args: &Deploy) -> Result<ExitCode, Failure> {
    match args {
        Deploy::Plan(args) => self::planned(args),
    }
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
