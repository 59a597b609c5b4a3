//! `risetime verify`: the simulator held against a real kernel in the virtual machine.

use crate::args::{DEFAULT_SHARE, TextOrJson, Verify, VerifyMode, with_clamps};
use crate::output::{self, Failure};
use indicatif::ProgressBar;
use risetime_analysis::verify::step::Stepped;
use risetime_analysis::verify::{Equivalence, Judged, Mode, all_equivalent};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_lab::{Case, Kept, MadeWith, Recorded, Request, SPREAD_PHASES, Verification};
use risetime_model::{Experiment, InputError};
use risetime_report::{json, text};
use risetime_trace::Memory;
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn verify(args: &Verify) -> Result<ExitCode, Failure> {
    let spread = args.mode == VerifyMode::Spread;
    if let Some((option, keeps)) = not_with(args) {
        let what = match (keeps, args.mode) {
            (true, _) => "is for --mode spread",
            (false, VerifyMode::Step) => "--mode step counts no checks and has no mutants",
            (false, _) => "--mode spread counts no checks and has no mutants",
        };
        return Err(Failure::input(option, what));
    }
    if spread && args.phases == Some(1) {
        return Err(Failure::input("--phases", "found 1, --mode spread wants 2 or more"));
    }
    let cache = Cache::from_env()?;
    let (vm, kernel) = Vm::find(&cache, args.kernel.as_deref(), risetime_sim::catalogue())?;
    if spread {
        let directory = args.references.clone().unwrap_or_else(|| cache.references());
        return spreads(args, &Kept::new(&vm, directory)?, kernel.rev());
    }
    if args.mode == VerifyMode::Step {
        return steps(args, &vm, kernel.rev());
    }
    match (&args.workload, &args.platform) {
        (Some(workload), Some(platform)) => {
            let mut experiments =
                request(args, workload, platform).experiments_under(kernel.rev())?;
            let experiment =
                experiments.pop().ok_or_else(|| Failure::unavailable("no experiment"))?;
            one(args, &vm, &experiment)
        }
        _ => several(args, &vm, kernel.rev()),
    }
}

/// An option that was given and means nothing in this mode, and whether it is one of spread's own.
fn not_with(args: &Verify) -> Option<(&'static str, bool)> {
    let counts = [
        ("--strict", args.strict),
        ("--share", args.share != DEFAULT_SHARE),
        ("--record", args.record.is_some()),
        ("--mutants", args.mutants),
    ];
    let counts_checks = !matches!(args.mode, VerifyMode::Spread | VerifyMode::Step);
    let count = counts.iter().find(|(_, given)| *given && !counts_checks);
    let keeps = args.references.is_some() && args.mode != VerifyMode::Spread;
    count.map(|(option, _)| (*option, false)).or(keeps.then_some(("--references", true)))
}

/// Figures over start phases: of one experiment, or of the set.
fn spreads(args: &Verify, kept: &Kept<'_>, kernel: Option<KernelRev>) -> Result<ExitCode, Failure> {
    let mut experiments: Vec<(String, Experiment)> = Vec::new();
    if let (Some(workload), Some(platform)) = (&args.workload, &args.platform) {
        for e in request(args, workload, platform).experiments_under(kernel)? {
            experiments.push((title(&e), e));
        }
    } else {
        for case in chosen(args, true)? {
            experiments.push((case.name.clone(), case.experiment(kernel)?));
        }
    }
    let phases = args.phases.unwrap_or(SPREAD_PHASES);
    let bar = ProgressBar::new(experiments.len() as u64 * u64::from(phases));
    let (mut set, mut release): (Vec<Equivalence>, String) = (Vec::new(), String::new());
    for (i, (name, experiment)) in experiments.iter().enumerate() {
        let before = i as u64 * u64::from(phases);
        let progress = |k| bar.set_position(before + u64::from(k));
        let found = risetime_lab::spread(kept, name, experiment, phases, progress);
        let (found, ran) = found.map_err(|e| Failure::of(name, e))?;
        set.push(found);
        release = ran;
    }
    bar.finish_and_clear();
    let reference = format!("Linux {release} in a virtual machine");
    let (page, holds) = match (set.as_slice(), args.format) {
        ([one], TextOrJson::Text) => {
            (text::verify_spread(&reference, one, &output::style()), one.holds())
        }
        ([one], TextOrJson::Json) => (json::verify_spread(&release, one), one.holds()),
        (set, TextOrJson::Text) => {
            (text::verify_spread_set(&reference, set, &output::style()), all_equivalent(set))
        }
        (set, TextOrJson::Json) => (json::verify_spread_set(&release, set), all_equivalent(set)),
    };
    output::print(&page)?;
    Ok(exit(holds))
}

/// Each decision of one experiment, or of the set, from one start phase or several.
fn steps(args: &Verify, vm: &Vm, kernel: Option<KernelRev>) -> Result<ExitCode, Failure> {
    let mut experiments: Vec<(String, Experiment)> = Vec::new();
    if let (Some(workload), Some(platform)) = (&args.workload, &args.platform) {
        for e in request(args, workload, platform).experiments_under(kernel)? {
            experiments.push((title(&e), e));
        }
    } else {
        for case in chosen(args, false)? {
            experiments.push((case.name.clone(), case.experiment(kernel)?));
        }
    }
    let phases = args.phases.unwrap_or(1);
    let bar = ProgressBar::new(experiments.len() as u64 * u64::from(phases));
    let (mut all, mut ran) = (Stepped::default(), String::new());
    for (name, experiment) in &experiments {
        for phase in risetime_lab::phase_spans(experiment.platform.tick(), phases) {
            let one = experiment.later(phase);
            let reference = risetime_lab::record(vm, &one).map_err(|e| Failure::of(name, e))?;
            let found = risetime_lab::step(&one, &reference, None);
            all.add(found.map_err(|e| Failure::of(name, e))?);
            ran = release(&reference).to_string();
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let name = match experiments.as_slice() {
        [(name, _)] => name.clone(),
        many => format!("{} experiments", many.len()),
    };
    let reference = format!("Linux {ran} in a virtual machine");
    output::print(&match args.format {
        TextOrJson::Json => json::verify_step(&name, &ran, &all),
        TextOrJson::Text => text::verify_step(&name, &reference, &all, &output::style()),
    })?;
    Ok(exit(all.holds()))
}

fn title(experiment: &Experiment) -> String {
    let (workload, platform) = (&experiment.workload.name, &experiment.platform.name);
    format!("{workload} on {platform} under {}", experiment.policy.name)
}

fn exit(holds: bool) -> ExitCode {
    if holds { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn one(args: &Verify, vm: &Vm, experiment: &Experiment) -> Result<ExitCode, Failure> {
    let mode = match args.mode {
        VerifyMode::Given => Mode::Given,
        VerifyMode::Free | VerifyMode::Spread | VerifyMode::Step => Mode::Free,
    };
    let wanted = if args.strict { 6 } else { usize::from(args.share) };
    let name = title(experiment);
    if let Some(n) = args.phases {
        return phases(args, vm, experiment, (n, mode, wanted, &name));
    }
    let reference = risetime_lab::record(vm, experiment)?;
    let found = risetime_lab::verify(experiment, &reference, mode)?;
    output::print(&page(args.format, &name, release(&reference), &found, wanted))?;
    Ok(exit(found.comparison.held() >= wanted))
}

/// The experiment from several start phases, with a bar on standard error.
fn phases(
    args: &Verify,
    vm: &Vm,
    experiment: &Experiment,
    (n, mode, wanted, name): (u32, Mode, usize, &str),
) -> Result<ExitCode, Failure> {
    let bar = ProgressBar::new(n.into());
    let (phased, release) = risetime_lab::verify_phases(vm, experiment, n, mode, wanted, |k| {
        bar.set_position(k.into())
    })?;
    bar.finish_and_clear();
    let reference = format!("Linux {release} in a virtual machine");
    output::print(&match args.format {
        TextOrJson::Json => json::verify_phases(name, &release, mode, &phased),
        TextOrJson::Text => text::verify_phases(name, &reference, mode, &phased, &output::style()),
    })?;
    Ok(exit(phased.holds()))
}

fn release(reference: &Memory) -> &str {
    reference.header().map_or("", |h| h.kernel_release.as_str())
}

/// The set, or a part of it: judged, or with every mutant.
fn several(args: &Verify, vm: &Vm, kernel: Option<KernelRev>) -> Result<ExitCode, Failure> {
    let cases = chosen(args, false)?;
    // Half an hour of boots should not end there.
    if let Some(directory) = args.record.as_ref().filter(|d| !d.is_dir()) {
        return Err(Failure::input(&directory.display().to_string(), "there is no such directory"));
    }
    let phases = if args.mutants { 1 } else { args.phases.unwrap_or(risetime_lab::SET_PHASES) };
    let recorded = record(vm, kernel, cases, phases)?;
    if let Some(directory) = &args.record {
        keep(vm, &recorded, directory)?;
    }
    let first = recorded.first().and_then(|r| r.phases.first());
    let release = first.map_or("", |(_, reference)| release(reference)).to_string();
    let reference = format!("Linux {release} in a virtual machine");
    if args.mutants {
        let caught = risetime_lab::catch(&recorded)?;
        let holds = caught.iter().all(|c| c.by.is_some());
        output::print(&match args.format {
            TextOrJson::Json => json::mutants(&release, &caught),
            TextOrJson::Text => text::mutants(&reference, &caught, &output::style()),
        })?;
        return Ok(exit(holds));
    }
    let set: Vec<Judged> = recorded.iter().map(Recorded::judge).collect::<Result<_, _>>()?;
    let holds = risetime_lab::set_holds(&set);
    let outside = if args.experiment.is_empty() { risetime_lab::OUTSIDE } else { &[] };
    output::print(&match args.format {
        TextOrJson::Json => json::verify_set(&release, &set, outside, holds),
        TextOrJson::Text => text::verify_set(&reference, &set, outside, holds, &output::style()),
    })?;
    Ok(exit(holds))
}

/// The set, or those of it that are named; `outside`: with those that stand outside it.
fn chosen(args: &Verify, outside: bool) -> Result<Vec<Case>, Failure> {
    let mut cases = risetime_lab::set(args.set_seed);
    let named = |c: &Case| args.experiment.iter().any(|e| c.name.starts_with(e.as_str()));
    if outside || !args.experiment.is_empty() {
        cases.extend(risetime_lab::outside(args.set_seed));
    }
    if !args.experiment.is_empty() {
        let names: Vec<String> = cases.iter().map(|c| c.name.clone()).collect();
        cases.retain(named);
        if cases.is_empty() {
            let what = format!("no experiment of the set is called {:?}", args.experiment);
            let known = format!("there are {}", names.join(", "));
            return Err(InputError::new("--experiment", what).hint(known).into());
        }
    }
    Ok(cases)
}

/// Each experiment on the real kernel, with a bar on standard error.
fn record(
    vm: &Vm,
    kernel: Option<KernelRev>,
    cases: Vec<Case>,
    phases: u32,
) -> Result<Vec<Recorded>, Failure> {
    let bar = ProgressBar::new(cases.len() as u64 * u64::from(phases));
    let recorded =
        risetime_lab::record_set(vm, kernel, cases, phases, |n| bar.set_position(n as u64))?;
    bar.finish_and_clear();
    Ok(recorded)
}

/// A file in `directory` for each experiment that is not drawn.
fn keep(vm: &Vm, recorded: &[Recorded], directory: &Path) -> Result<(), Failure> {
    let (major, minor) = vm.qemu.version;
    let with = MadeWith { qemu: format!("{major}.{minor}"), agent: vm.agent_hash()? };
    for one in recorded.iter().filter(|r| !r.case.is_drawn()) {
        let path = directory.join(one.case.file_name());
        let fail = |e: std::io::Error| Failure::input(&path.display().to_string(), e.to_string());
        let bytes = one.to_bytes(&with).map_err(fail)?;
        output::write_whole(&path, |out| out.write_all(&bytes).map_err(fail))?;
    }
    Ok(())
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

fn request(args: &Verify, workload: &str, platform: &str) -> Request {
    Request {
        policies: args.policy.iter().cloned().collect(),
        set: with_clamps(&args.set, args.uclamp_min, args.uclamp_max),
        seconds: args.seconds,
        phase: Span::from_us(args.phase_us),
        ..Request::new(workload, platform)
    }
}
