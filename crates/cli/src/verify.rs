//! `risetime verify`: the simulator held against a real kernel in the virtual machine.

use crate::args::{TextOrJson, Verify, VerifyMode};
use crate::output::{self, Failure};
use risetime_analysis::verify::Mode;
use risetime_kernel::units::Span;
use risetime_lab::{Request, Verification};
use risetime_model::settings::Value;
use risetime_report::{json, text};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::process::ExitCode;

pub(crate) fn verify(args: &Verify) -> Result<ExitCode, Failure> {
    let (vm, kernel) = Vm::find(&Cache::from_env()?, args.kernel.as_deref())?;
    let mut experiments = request(args).experiments_under(kernel.rev())?;
    let experiment = experiments.pop().ok_or_else(|| Failure::unavailable("no experiment"))?;
    let reference = risetime_lab::record(&vm, &experiment)?;
    let mode = match args.mode {
        VerifyMode::Free => Mode::Free,
        VerifyMode::Given => Mode::Given,
    };
    let found = risetime_lab::verify(&experiment, &reference, mode)?;
    let wanted = if args.strict { found.comparison.checks.len() } else { usize::from(args.share) };
    let release = reference.header().map_or("", |h| h.kernel_release.as_str());
    let name = format!(
        "{} on {} under {}",
        experiment.workload.name, experiment.platform.name, experiment.policy.name
    );
    output::print(&page(args.format, &name, release, &found, wanted))?;
    Ok(if found.comparison.held() >= wanted { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn page(
    format: TextOrJson,
    experiment: &str,
    release: &str,
    found: &Verification,
    wanted: usize,
) -> String {
    match format {
        TextOrJson::Json => {
            json::verify(experiment, release, &found.comparison, wanted, &found.unread)
        }
        TextOrJson::Text => text::verify(
            &text::Verified {
                experiment,
                reference: &format!("Linux {release} in a virtual machine"),
                comparison: &found.comparison,
                wanted,
                was: &found.reference,
                simulated: &found.simulated,
                unread: &found.unread,
            },
            &output::style(),
        ),
    }
}

fn request(args: &Verify) -> Request {
    let clamp = |name: &str, value: Option<i64>| value.map(|v| (name.to_string(), Value::Int(v)));
    let clamps = clamp("uclamp_min", args.uclamp_min)
        .into_iter()
        .chain(clamp("uclamp_max", args.uclamp_max));
    Request {
        workload: args.workload.clone(),
        platform: args.platform.clone(),
        policies: args.policy.iter().cloned().collect(),
        set: args.set.iter().cloned().chain(clamps).collect(),
        seconds: args.seconds,
        phase: Span::from_us(args.phase_us),
        seed: 1,
    }
}
