//! `risetime verify`: the simulator held against a real kernel in the virtual machine.

use crate::args::{DEFAULT_SHARE, IdleTimes, OF_THE_VM, TextOrJson, Verify, VerifyMode};
use crate::output::{self, Failure};
use crate::vm;
use indicatif::ProgressBar;
use risetime_analysis::verify::{CHECKS, Judged, Mode, all_equivalent};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_lab::{Kept, Request};
use risetime_model::{Experiment, InputError, Workload};
use risetime_report::{json, picture, text};
use risetime_sim::settings::{GOVERNOR, SCHEDUTIL};
use risetime_trace::Memory;
use risetime_verify::{Can, Case, MadeWith, Recorded, SPREAD_PHASES, Verification, Wrong};
use risetime_vm::Vm;
use risetime_vm::fetch::{Cache, Kernel};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn verify(args: &Verify) -> Result<ExitCode, Failure> {
    if args.list {
        return list(args);
    }
    check_arguments(args)?;
    let cache = Cache::from_env()?;
    let (mut vm, kernel) = vm::find(&cache, args.kernel.as_deref())?;
    vm.idle_times = idle_times(args);
    let directory = || args.references.clone().unwrap_or_else(|| cache.references());
    match args.mode {
        VerifyMode::Spread => return spreads(args, &Kept::new(&vm, directory())?, &kernel),
        VerifyMode::Step => {
            let vm = vm.with_decisions();
            return steps(args, &Kept::new(&vm, directory())?, &kernel);
        }
        VerifyMode::Free | VerifyMode::Given => {}
    }
    let Some(workload) = &args.workload else { return several(args, &vm, &kernel) };
    let case = drawn(args, workload, &kernel);
    if args.shrink {
        let case = match case {
            Some(case) => case,
            None => own_case(args, workload, args.platform.as_deref().unwrap_or_default())?,
        };
        return shrink(args, &vm, kernel.rev(), &case);
    }
    let experiment = match (case, &args.platform) {
        (Some(case), _) => case.experiment(kernel.rev())?,
        (None, Some(platform)) => {
            let mut all = request(args, workload, platform).experiments_under(kernel.rev())?;
            all.pop().ok_or_else(|| Failure::unavailable("no experiment"))?
        }
        (None, None) => return Err(no_platform(workload)),
    };
    one(args, &vm, &experiment)
}

/// Checks the arguments as far as possible before a kernel is looked for.
fn check_arguments(args: &Verify) -> Result<(), Failure> {
    if let Some((option, what)) = not_with(args) {
        return Err(Failure::input(option, what));
    }
    if args.mode != VerifyMode::Spread
        && (args.workload.is_none()
            || args.phases.is_some()
            || args.shrink
            || args.mode == VerifyMode::Step)
    {
        let what = "a picture is of one run of one experiment, or of figures";
        args.plot.refuse(what, "name one workload and leave out --phases, or add --mode spread")?;
    }
    if args.mode == VerifyMode::Spread && args.phases == Some(1) {
        return Err(Failure::input("--phases", "found 1, --mode spread wants 2 or more"));
    }
    let Some(workload) = &args.workload else { return Ok(()) };
    let is_drawn = risetime_verify::wide_named(workload, Can::ALL).is_some();
    let own = args.platform.is_some()
        || args.policy.is_some()
        || args.seconds.is_some()
        || !args.settings.other.set.is_empty()
        || args.settings.other.hz.is_some()
        || args.settings.uclamp_min.or(args.settings.uclamp_max).is_some();
    match (is_drawn, &args.platform) {
        (false, None) => Err(no_platform(workload)),
        (true, _) if own => {
            let what = "is drawn with its platform, length and settings";
            let hint = format!("risetime show {workload} --source prints a file to change");
            Err(InputError::new(workload, what).hint(hint).into())
        }
        _ => wrong(args).map(drop),
    }
}

fn no_platform(workload: &str) -> Failure {
    let hint = "for example --platform m1; `risetime list platforms`";
    InputError::new(workload, "on which platform? --platform is missing").hint(hint).into()
}

/// The abilities of a kernel that cases are drawn for. One that does not say can do everything.
fn can(kernel: &Kernel) -> Can {
    let uclamp = kernel.build().uclamp.unwrap_or(true);
    Can::of(kernel.rev().unwrap_or(KernelRev::NEWEST), uclamp)
}

/// The experiment of a name such as `wide-7-3`, as it is drawn for `kernel`.
fn drawn(args: &Verify, name: &str, kernel: &Kernel) -> Option<Case> {
    risetime_verify::wide_named(name, Can::ALL)?;
    risetime_verify::wide_named(name, can(kernel)).map(|case| noisy(args, case))
}

/// The noise where nobody says otherwise: none where each decision is asked for from the kernel's own state, and in
/// what is kept for tests.
fn noise(args: &Verify) -> Option<&'static str> {
    let bare = args.mode == VerifyMode::Step || args.record.is_some() || args.mutants;
    (!bare).then_some(OF_THE_VM)
}

/// Whether idle states take time where nobody says otherwise: not where each decision is asked for from the kernel's own
/// state, and not in the sets that tests judge by, which were recorded before they could.
fn idle_times(args: &Verify) -> bool {
    let recorded = args.mode == VerifyMode::Step || args.record.is_some() || args.mutants;
    args.idle_times.map_or(!recorded, |said| said == IdleTimes::On)
}

/// `case` under the noise profile that was asked for, or the mode's own.
fn noisy(args: &Verify, mut case: Case) -> Case {
    let profile = args.settings.other.noise.as_deref().or_else(|| noise(args));
    case.settings.extend(profile.map(|profile| format!("+noise={profile}")));
    case
}

fn cases(args: &Verify, n: u64, can: Can) -> Vec<Case> {
    let wanted = if args.strict { 6 } else { usize::from(args.share) };
    let case = |number| Case { wanted, ..risetime_verify::wide(args.seed, number, can) };
    (1..=n).map(case).collect()
}

/// Lists what `--draw` draws, without running it: for the kernel that is named, else for one that
/// can do everything.
fn list(args: &Verify) -> Result<ExitCode, Failure> {
    let can = match &args.kernel {
        Some(name) => can(&Cache::from_env()?.kernel(Some(name))?),
        None => Can::ALL,
    };
    let all = cases(args, args.draw.unwrap_or_default(), can);
    let mut rows = Vec::new();
    for case in &all {
        let workload = risetime_model::Workload::parse(&case.workload, &case.name)?;
        rows.push((
            case.name.clone(),
            case.platform.clone(),
            case.ms,
            workload.tasks.len(),
            case.settings.clone(),
        ));
    }
    output::print(&match args.format.prose() {
        None => json::drawn(args.seed, &rows),
        Some(form) => form.of(|style| text::drawn(&rows, style)),
    })
}

/// The fault that a shrunk case has to keep.
fn wrong(args: &Verify) -> Result<Wrong, Failure> {
    let wanted = if args.strict { 6 } else { usize::from(args.share) };
    Ok(match args.wrong.as_str() {
        "checks" => Wrong::Checks(wanted),
        "energy" => Wrong::Energy(ENERGY_PERCENT),
        name if CHECKS.contains(&name) => Wrong::Check(name.into()),
        name => {
            let known = format!("there are checks, energy, {}", CHECKS.join(", "));
            return Err(InputError::new("--while", format!("found {name}")).hint(known).into());
        }
    })
}

/// Energies further apart are wrong.
const ENERGY_PERCENT: u32 = 5;

/// A workload of the user's own as a case that can be made smaller.
fn own_case(args: &Verify, workload: &str, platform: &str) -> Result<Case, Failure> {
    let request = request(args, workload, platform);
    let e = request.experiments_under(None)?.pop();
    let e = e.ok_or_else(|| Failure::unavailable("no experiment"))?;
    if args.policy.as_ref().is_some_and(|p| !p.starts_with("mainline")) || args.phase_us > Span(0) {
        let what = "--shrink runs under the booted kernel's own policy, from phase 0";
        return Err(InputError::new(workload, what)
            .hint("settings may be given with --set")
            .into());
    }
    let set = e
        .policy
        .set
        .iter()
        .filter(|(name, v)| !(*name == GOVERNOR.name && v.to_string() == SCHEDUTIL));
    Ok(Case {
        name: e.workload.name.clone(),
        platform: platform.into(),
        settings: set.map(|(name, value)| format!("+{name}={value}")).collect(),
        workload: Workload::source(workload)?,
        ms: e.duration.0 / 1_000_000,
        wanted: usize::from(args.share),
    })
}

/// Makes an experiment smaller as long as it goes wrong, and prints it.
fn shrink(
    args: &Verify,
    vm: &Vm,
    rev: Option<KernelRev>,
    case: &Case,
) -> Result<ExitCode, Failure> {
    let (wrong, mode) = (wrong(args)?, mode(args));
    let mut fails = |case: &Case| wrong.is(case, vm, rev, mode);
    let mut heard = |case: &Case| {
        let tasks = Workload::parse(&case.workload, &case.name).map_or(0, |w| w.tasks.len());
        let bytes = case.workload.len();
        output::note(&format!("{tasks} tasks, {} ms, {bytes} bytes on {}", case.ms, case.platform));
    };
    let found = risetime_verify::shrink(case, args.tries as usize, &mut fails, &mut heard)?;
    let Some(found) = found else {
        output::note(&format!("{}: nothing is wrong with it ({})", case.name, args.wrong));
        return Ok(ExitCode::from(1));
    };
    if !found.done {
        output::note(&format!("{} tries: there may be a smaller one (--tries)", found.tries));
    }
    output::print(&match args.format {
        TextOrJson::Json => json::shrunk(&json::Smaller {
            name: &found.case.name,
            platform: &found.case.platform,
            settings: &found.case.settings,
            ms: found.case.ms,
            workload: &found.case.workload,
            tries: found.tries,
            done: found.done,
        }),
        _ => found.case.to_file(),
    })
}

fn mode(args: &Verify) -> Mode {
    match args.mode {
        VerifyMode::Free | VerifyMode::Spread | VerifyMode::Step => Mode::Free,
        VerifyMode::Given => Mode::Given,
    }
}

/// An option that was given and means nothing in this mode, and why.
fn not_with(args: &Verify) -> Option<(&'static str, &'static str)> {
    let counts = [
        ("--strict", args.strict),
        ("--share", args.share != DEFAULT_SHARE),
        ("--record", args.record.is_some()),
        ("--mutants", args.mutants),
        ("--shrink", args.shrink),
    ];
    let count = counts.iter().find(|(_, given)| *given).map(|(option, _)| *option);
    let noisy = args.settings.other.noise.as_ref().is_some_and(|profile| profile != "off");
    match args.mode {
        VerifyMode::Step if args.idle_times == Some(IdleTimes::On) => {
            Some(("--idle-times", "--mode step does what the kernel did, whenever that was"))
        }
        VerifyMode::Step if noisy => Some(("--noise", "--mode step is without noise")),
        VerifyMode::Step => count.map(|o| (o, "--mode step counts no checks and has no mutants")),
        _ if args.first => Some(("--first", "is for --mode step")),
        VerifyMode::Spread => {
            count.map(|o| (o, "--mode spread counts no checks and has no mutants"))
        }
        _ if args.references.is_some() => {
            Some(("--references", "is for --mode spread and --mode step"))
        }
        VerifyMode::Free | VerifyMode::Given => None,
    }
}

/// The experiments to run: one, one or several that are drawn, or the set, each with its name.
fn experiments(args: &Verify, kernel: &Kernel) -> Result<Vec<(String, Experiment)>, Failure> {
    let rev = kernel.rev();
    let Some(workload) = &args.workload else {
        let cases = chosen(args, kernel, args.mode == VerifyMode::Spread)?;
        let named = |case: Case| Ok((case.name.clone(), case.experiment(rev)?));
        return cases.into_iter().map(named).collect();
    };
    let all = match (drawn(args, workload, kernel), &args.platform) {
        (Some(case), _) => vec![case.experiment(rev)?],
        (None, Some(platform)) => request(args, workload, platform).experiments_under(rev)?,
        (None, None) => return Err(no_platform(workload)),
    };
    Ok(all.into_iter().map(|e| (title(&e), e)).collect())
}

/// Figures over start phases: of one experiment, or of the set.
fn spreads(args: &Verify, kept: &Kept<'_>, kernel: &Kernel) -> Result<ExitCode, Failure> {
    let experiments = experiments(args, kernel)?;
    let phases = args.phases.unwrap_or(SPREAD_PHASES);
    let bar = ProgressBar::new(experiments.len() as u64 * u64::from(phases));
    let progress = |k: usize| bar.set_position(k as u64);
    let (set, release) = risetime_verify::spread_all(kept, &experiments, phases, progress)?;
    bar.finish_and_clear();
    remarks(experiments.iter().map(|(_, e)| e));
    let reference = format!("Linux {release} in a virtual machine");
    args.plot.draw(|| picture::spread(&reference, &set))?;
    let (page, holds) = match (set.as_slice(), args.format.prose()) {
        ([one], Some(form)) => {
            (form.of(|style| text::verify_spread(&reference, one, style)), one.holds())
        }
        ([one], None) => (json::verify_spread(&release, one), one.holds()),
        (set, Some(form)) => {
            let page = form.of(|style| text::verify_spread_set(&reference, set, style));
            (page, all_equivalent(set))
        }
        (set, None) => (json::verify_spread_set(&release, set), all_equivalent(set)),
    };
    output::print(&page)?;
    Ok(exit(holds))
}

/// Judges each decision of one experiment, or of the set, from one start phase or several.
fn steps(args: &Verify, kept: &Kept<'_>, kernel: &Kernel) -> Result<ExitCode, Failure> {
    let experiments = experiments(args, kernel)?;
    let phases = args.phases.unwrap_or(1);
    let bar = ProgressBar::new(experiments.len() as u64 * u64::from(phases));
    let progress = |k: usize| bar.set_position(k as u64);
    let (all, ran) = risetime_verify::step_all(kept, &experiments, phases, progress)?;
    bar.finish_and_clear();
    remarks(experiments.iter().map(|(_, e)| e));
    let name = match experiments.as_slice() {
        [(name, _)] => name.clone(),
        many => format!("{} experiments", many.len()),
    };
    let reference = format!("Linux {ran} in a virtual machine");
    output::print(&match args.format.prose() {
        None => json::verify_step(&name, &ran, &all),
        Some(form) if args.first => form.of(|style| text::verify_first(&reference, &all, style)),
        Some(form) => form.of(|style| text::verify_step(&name, &reference, &all, style)),
    })?;
    Ok(exit(all.holds()))
}

/// Prints what both sides leave out of the kernel as it comes, and what of the experiments is
/// without effect.
fn remarks<'a>(experiments: impl Iterator<Item = &'a Experiment>) {
    let all: BTreeSet<String> = experiments.flat_map(Experiment::notes).collect();
    all.iter().for_each(|remark| output::note(remark));
}

fn title(experiment: &Experiment) -> String {
    let (workload, platform) = (&experiment.workload.name, &experiment.platform.name);
    format!("{workload} on {platform} under {}", experiment.policy.name)
}

fn exit(holds: bool) -> ExitCode {
    if holds { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn one(args: &Verify, vm: &Vm, experiment: &Experiment) -> Result<ExitCode, Failure> {
    let mode = mode(args);
    let wanted = if args.strict { 6 } else { usize::from(args.share) };
    let name = title(experiment);
    remarks(std::iter::once(experiment));
    if let Some(n) = args.phases {
        return phases(args, vm, experiment, (n, mode, wanted, &name));
    }
    let reference = risetime_lab::record(vm, experiment)?;
    let found = risetime_verify::verify(experiment, &reference, mode)?;
    let release = release(&reference);
    args.plot.draw(|| {
        let kernel = format!("Linux {release}");
        picture::verified(&name, &kernel, &found.reference, &found.simulated)
    })?;
    output::print(&page(args.format, &name, release, &found, wanted))?;
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
    let (phased, release) = risetime_verify::verify_phases(vm, experiment, n, mode, wanted, |k| {
        bar.set_position(k.into())
    })?;
    bar.finish_and_clear();
    let reference = format!("Linux {release} in a virtual machine");
    output::print(&match args.format.prose() {
        None => json::verify_phases(name, &release, mode, &phased),
        Some(form) => form.of(|style| text::verify_phases(name, &reference, mode, &phased, style)),
    })?;
    Ok(exit(phased.holds()))
}

fn release(reference: &Memory) -> &str {
    reference.header().map_or("", |h| h.run.kernel_release.as_str())
}

/// The set, or a part of it: judged, or with every mutant.
fn several(args: &Verify, vm: &Vm, kernel: &Kernel) -> Result<ExitCode, Failure> {
    let cases = chosen(args, kernel, false)?;
    // Half an hour of boots should not end there.
    if let Some(directory) = args.record.as_ref().filter(|d| !d.is_dir()) {
        return Err(Failure::input(&directory.display().to_string(), "there is no such directory"));
    }
    let phases = if args.mutants { 1 } else { args.phases.unwrap_or(risetime_verify::SET_PHASES) };
    let recorded = record(vm, kernel.rev(), cases, phases)?;
    if let Some(directory) = &args.record {
        keep(vm, &recorded, directory)?;
    }
    remarks(recorded.iter().flat_map(|r| &r.phases).map(|(e, _)| e));
    let first = recorded.first().and_then(|r| r.phases.first());
    let release = first.map_or("", |(_, reference)| release(reference)).to_string();
    let reference = format!("Linux {release} in a virtual machine");
    if args.mutants {
        let caught = risetime_verify::catch(&recorded)?;
        let holds = caught.iter().all(|c| c.by.is_some());
        output::print(&match args.format.prose() {
            None => json::mutants(&release, &caught),
            Some(form) => form.of(|style| text::mutants(&reference, &caught, style)),
        })?;
        return Ok(exit(holds));
    }
    let set: Vec<Judged> = recorded.iter().map(Recorded::judge).collect::<Result<_, _>>()?;
    let holds = risetime_verify::set_holds(&set);
    let whole = args.experiment.is_empty() && args.draw.is_none();
    let outside = if whole { risetime_verify::OUTSIDE } else { &[] };
    output::print(&match args.format.prose() {
        None => json::verify_set(&release, &set, outside, holds),
        Some(form) => form.of(|style| text::verify_set(&reference, &set, outside, holds, style)),
    })?;
    Ok(exit(holds))
}

/// The set, those of it that are named, or what is drawn; `outside`: with those that stand outside the set.
fn chosen(args: &Verify, kernel: &Kernel, outside: bool) -> Result<Vec<Case>, Failure> {
    let mut cases = match args.draw {
        Some(n) => cases(args, n, can(kernel)),
        None => risetime_verify::set(args.set_seed),
    };
    let named = |c: &Case| args.experiment.iter().any(|e| c.name.starts_with(e.as_str()));
    if (outside && args.draw.is_none()) || !args.experiment.is_empty() {
        cases.extend(risetime_verify::outside(args.set_seed));
    }
    let mut cases: Vec<Case> = cases.into_iter().map(|case| noisy(args, case)).collect();
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

/// Records each experiment on the real kernel, with a bar on standard error.
fn record(
    vm: &Vm,
    kernel: Option<KernelRev>,
    cases: Vec<Case>,
    phases: u32,
) -> Result<Vec<Recorded>, Failure> {
    let bar = ProgressBar::new(cases.len() as u64 * u64::from(phases));
    let recorded =
        risetime_verify::record_set(vm, kernel, cases, phases, |n| bar.set_position(n as u64))?;
    bar.finish_and_clear();
    Ok(recorded)
}

/// A file in `directory` for each experiment that is not drawn.
fn keep(vm: &Vm, recorded: &[Recorded], directory: &Path) -> Result<(), Failure> {
    let (major, minor) = vm.qemu.version;
    let with = MadeWith { qemu: format!("{major}.{minor}"), agent: vm.agent_hash()? };
    for one in recorded.iter().filter(|r| !r.case.is_drawn()) {
        let path = directory.join(one.case.file_name());
        let bytes = one.to_bytes(&with).map_err(|e| Failure::unwritten(&path, &e))?;
        output::write_file(&path, &bytes)?;
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
    let Some(form) = format.prose() else {
        return json::verify(experiment, release, &found.comparison, wanted, &found.unread);
    };
    let verified = text::Verified {
        experiment,
        reference: &format!("Linux {release} in a virtual machine"),
        comparison: &found.comparison,
        wanted,
        was: &found.reference,
        simulated: &found.simulated,
        unread: &found.unread,
    };
    form.of(|style| text::verify(&verified, style))
}

fn request(args: &Verify, workload: &str, platform: &str) -> Request {
    Request {
        changes: args.settings.reading.changes(),
        policies: args.policy.iter().cloned().collect(),
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        phase: args.phase_us,
        noise: noise(args),
        ..Request::new(workload, platform)
    }
}
