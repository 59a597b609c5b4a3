//! `risetime run`: one experiment, several policies.

use crate::args::{self, Run};
use crate::output::{self, Failure};
use crate::shown::{self, Look};
use crate::spool::{Listed, Spool};
use crate::vm;
use crate::written::{self, Format};
use indicatif::{ProgressBar, ProgressStyle};
use risetime_analysis::expect::{Checked, Expectation};
use risetime_analysis::metric::Unit;
use risetime_analysis::{Jobs, Lists, Options, RunResult, Timeline, group_name, is_called};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Instant;
use risetime_lab::{Listing, PhaseRuns, Request, Saved, Shown, quoted};
use risetime_model::{Experiment, InputError, Value, micros, nearest};
use risetime_report::{csv, text};
use risetime_sim::cause::Cause;
use risetime_sim::settings::{HARDWARE_RAMP, hardware_decides};
use risetime_sim::{Counterfactual, Simulator};
use risetime_trace::{Backend, Event, Header, Hears, TraceSink};
use risetime_vm::fetch::Cache;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    crate::trace::refuse_to_run(&args.workload)?;
    let expected = args.expect.iter().map(|text| Expectation::parse(text));
    let expected = expected.collect::<Result<Vec<_>, _>>()?;
    let (backend, kernel) = backend(args)?;
    let vary = args.vary.iter().map(|text| risetime_lab::named(text));
    let vary: Vec<(&str, &str)> = vary.collect::<Result<_, _>>()?;
    let (asked, mut experiments) =
        risetime_lab::varied(&request(args), &vary, |request| match args.backend {
            args::Backend::Sim => request.experiments(),
            args::Backend::Vm => request.experiments_under(kernel),
        })?;
    let traces = [("--perfetto", &args.perfetto), ("--ftrace", &args.ftrace)];
    let trace = traces.iter().find(|(_, file)| file.is_some()).map(|(option, _)| *option);
    if let Some(option) = trace.filter(|_| experiments.len() > 1) {
        return Err(InputError::new(
            option,
            format!("one trace is of one policy, found {}", experiments.len()),
        )
        .hint("run it once for each --policy")
        .into());
    }
    if args.phases.or(args.repeat).is_some() {
        args.plot.refuse("a picture is of one run a policy", "leave out --phases and --repeat")?;
    }
    if let Some(e) = experiments.first() {
        expected.iter().try_for_each(|expectation| expectation.check_name(&e.workload))?;
    }
    if args.backend == args::Backend::Sim && trace.is_none() {
        experiments = both_ends(experiments);
    }
    name_what_is_left_out(&mut experiments, &args.without);
    note_what_has_no_effect(&experiments);
    note_doubts(&experiments);
    if args.document {
        let lines = experiments.iter().map(|e| Ok(e.to_json()? + "\n"));
        return output::print(&lines.collect::<Result<String, InputError>>()?);
    }
    let about = self::asked(args, &experiments)?;
    let of = Asked { args, backend: &*backend, experiments: &experiments, set: &asked.set };
    let options = options(args, about.as_deref());
    match args.phases.or(args.repeat) {
        Some(n) => series(&of, &options, n, &expected),
        None => single(&of, &options, &expected),
    }
}

/// The backend that runs the experiments, and the kernel generation if that is given.
fn backend(args: &Run) -> Result<(Box<dyn Backend>, Option<KernelRev>), Failure> {
    match args.backend {
        args::Backend::Sim if args.kernel.is_some() => {
            Err(InputError::new("--kernel", "the simulator boots no kernel")
                .hint("add --backend vm")
                .into())
        }
        args::Backend::Sim if args.bare || args.idle_times.is_some() => {
            let option = if args.bare { "--bare" } else { "--idle-times" };
            Err(InputError::new(option, "is for a real kernel").hint("add --backend vm").into())
        }
        args::Backend::Sim if args.without.is_empty() => Ok((Box::new(Simulator), None)),
        args::Backend::Sim => {
            let without = args.without.iter().copied().collect();
            Ok((Box::new(Counterfactual { without, ..Counterfactual::default() }), None))
        }
        args::Backend::Vm if !args.without.is_empty() => {
            Err(InputError::new("--without", "a real kernel has all its causes")
                .hint("leave out --backend vm")
                .into())
        }
        args::Backend::Vm => {
            let (mut vm, kernel) = vm::find(&Cache::from_env()?, args.kernel.as_deref())?;
            if args.repeat.is_some() {
                // What differs is to be seen, not mended.
                (vm.memory, vm.hold) = (None, false);
            }
            vm.idle_times = args.idle_times != Some(args::IdleTimes::Off);
            vm.probes = !args.bare;
            Ok((Box::new(vm), kernel.rev()))
        }
    }
}

fn request(args: &Run) -> Request {
    Request {
        changes: args.settings.reading.changes(),
        policies: args.policies.clone(),
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        skip_ms: args.skip.skip_ms,
        phase: args.phase_us,
        seed: args.seed,
        noise: Some(match args.backend {
            args::Backend::Sim => args::OF_A_MACHINE,
            args::Backend::Vm => args::OF_THE_VM,
        }),
        ..Request::new(args.workload.clone(), args.platform.clone())
    }
}

/// Names in the policies what is left out, as for an ablation: `linux-7.2 without margin+tick`.
fn name_what_is_left_out(experiments: &mut [Experiment], without: &[Cause]) {
    let causes: BTreeSet<&str> = without.iter().map(|cause| cause.name()).collect();
    if causes.is_empty() {
        return;
    }
    let causes = causes.into_iter().collect::<Vec<_>>().join("+");
    experiments.iter_mut().for_each(|e| e.policy.name += &format!(" without {causes}"));
}

/// Puts both ends of what is known in the place of each experiment whose hardware decides the frequency, unless one
/// of them was asked for: a single figure would say too much.
fn both_ends(experiments: Vec<Experiment>) -> Vec<Experiment> {
    let of = |e: Experiment| {
        let said = e.policy.said(&HARDWARE_RAMP).is_some();
        if said || !hardware_decides(&e.platform, &e.settings) {
            return vec![e];
        }
        let end = |end: &str| {
            let mut e = e.clone();
            e.settings.set(&HARDWARE_RAMP, end);
            e.policy = e.policy.with(HARDWARE_RAMP.name, Value::Name(end.into()));
            e
        };
        vec![end("fast"), end("slow")]
    };
    let before = experiments.len();
    let all: Vec<Experiment> = experiments.into_iter().flat_map(of).collect();
    if all.len() > before {
        output::note(
            "the hardware decides the frequency here: both ends of what was measured of such hardware, between which a figure is to be expected",
        );
    }
    all
}

fn note_what_has_no_effect(experiments: &[Experiment]) {
    let Some(first) = experiments.first() else { return };
    for key in &first.workload.without_effect {
        output::note(&format!("{}: without effect: {key}", first.workload.name));
    }
}

/// Prints what `risetime check` would say of what is run, each warning once.
pub(crate) fn note_doubts(experiments: &[Experiment]) {
    let mut said = BTreeSet::new();
    for doubt in experiments.iter().flat_map(risetime_lab::doubts) {
        let text = doubt.to_string();
        if said.insert(text.clone()) {
            output::note(&format!("warning: {text}"));
        }
    }
}

/// The view by which pages show what was run.
fn view<'a>(of: &Asked<'a>, why: &'a [String]) -> text::View<'a> {
    let about = of.experiments.first().map_or("", |e| e.workload.about.as_str());
    text::View { about, task: of.args.task.as_deref(), full: of.args.full, why }
}

/// The command that explains what a page of one simulated policy says, of which this is a run.
fn why(of: &Asked<'_>, run: Option<&RunResult>) -> Vec<String> {
    let Asked { args, experiments: [_], .. } = of else { return Vec::new() };
    let changed = !args.without.is_empty() || !args.vary.is_empty() || args.skip.skip_ms.is_some();
    let Some(task) = run.and_then(|run| Some((run, run.leading()?))).filter(|_| !changed) else {
        return Vec::new();
    };
    let (run, task) = task;
    if args.backend != args::Backend::Sim {
        return Vec::new();
    }
    let own = |j: &&Jobs| j.tasks.contains(&task.comm);
    let job = run.jobs.iter().filter(|j| j.declared).find(own).map(|j| j.name.as_str());
    let (name, over) = match job {
        Some(job) => (job, " --over worst"),
        None if task.endless => (task.comm.as_str(), ""),
        None => (group_name(&task.comm), " --over worst"),
    };
    let command = request(args).command().replacen(" run ", " explain ", 1);
    // An option and its value are a word, unless one of them is quoted: it may hold anything.
    let mut words: Vec<String> = match command.contains(['\'', '"']) {
        true => vec![command],
        false => command.replace(" --", "\n--").lines().map(str::to_string).collect(),
    };
    words.push(format!("--task {}{over}", quoted(name)));
    words
}

/// The tasks that `--task` means, as a name or a pattern; of a job the one that begins it.
///
/// Errors: there is none.
fn asked(args: &Run, experiments: &[Experiment]) -> Result<Option<String>, Failure> {
    let (Some(name), Some(e)) = (&args.task, experiments.first()) else { return Ok(None) };
    let w = &e.workload;
    let tasks = || w.tasks.iter().chain(&w.forked).map(|t| t.comm.as_str());
    if tasks().any(|comm| is_called(comm, name)) {
        return Ok(Some(name.clone()));
    }
    if let Some(job) = w.jobs.iter().find(|job| job.name == *name)
        && let Some(first) = job.tasks.first().and_then(|i| w.tasks.get(*i as usize))
    {
        return Ok(Some(first.comm.clone()));
    }
    let jobs = w.jobs.iter().map(|job| job.name.as_str());
    let mut known: Vec<&str> = tasks().map(group_name).chain(jobs).collect();
    known.sort_unstable();
    known.dedup();
    let near = nearest(name, &known);
    known.truncate(12);
    let what = format!("there is no task or job `{name}`, the workload has {}", known.join(", "));
    let all = || format!("`risetime show {}` has all tasks", args.workload);
    let hint = near.map_or_else(all, |near| format!("`{near}`?"));
    Err(InputError::new("--task", what).hint(hint).into())
}

fn options(args: &Run, about: Option<&str>) -> Options {
    Options {
        timeline: args.format.prose().is_some() && args.full
            || args.plot.wanted()
            || args.save_result.is_some(),
        levels: args.levels.clone(),
        about: about.map(String::from),
        ..Options::default()
    }
}

/// A request to run experiments.
struct Asked<'a> {
    args: &'a Run,
    backend: &'a dyn Backend,
    experiments: &'a [Experiment],
    set: &'a csv::Set,
}

impl Asked<'_> {
    /// Choices by which the results are shown.
    fn shown(&self, why: &[String]) -> Shown {
        let task = self.args.task.clone();
        Shown { task, why: why.to_vec(), set: self.set.to_vec(), series: None }
    }

    /// Saves runs where that was asked for.
    fn save(&self, runs: &[Saved]) -> Result<(), Failure> {
        let Some(path) = &self.args.save_result else { return Ok(()) };
        let lines = runs.iter().map(|run| Ok(run.to_json()? + "\n"));
        let lines = lines.collect::<Result<String, InputError>>()?;
        output::write_file(path, lines.as_bytes())
    }
}

fn single(
    of: &Asked<'_>,
    options: &Options,
    expected: &[Expectation],
) -> Result<ExitCode, Failure> {
    let Asked { args, backend, experiments, set } = *of;
    let list = || Listed::of(args);
    let (runs, lists): (Vec<risetime_lab::Run>, Vec<_>) = match experiments {
        [one] => {
            let mut lists = list()?;
            (vec![alone(of, one, options.clone(), lists.as_mut())?], vec![lists])
        }
        several => {
            let spools: Vec<Option<Listed>> =
                several.iter().map(|_| list()).collect::<Result<_, _>>()?;
            let bar = Bar::new(several.len() as u64, "policies");
            if args.backend == args::Backend::Vm {
                bar.at_once();
            }
            let progress = |done| bar.at(u64::from(done));
            let timeline = args.plot.wanted() || args.save_result.is_some();
            let options = Options { timeline, ..options.clone() };
            let runs = risetime_lab::run_each(backend, several, &options, spools, progress)?;
            runs.into_iter().unzip()
        }
    };
    let why = why(of, runs.first().map(|run| &run.result));
    let (spools, mut kept): (Vec<Option<Spool>>, Vec<Option<Listing>>) =
        lists.into_iter().map(|lists| lists.map_or((None, None), Listed::parts)).unzip();
    if args.save_result.is_some() {
        let saved = experiments.iter().zip(&runs).zip(kept.drain(..));
        let saved = saved
            .map(|((e, run), lists)| Saved { lists, ..Saved::of(e, run.clone(), of.shown(&why)) });
        of.save(&saved.collect::<Vec<_>>())?;
    }
    let (results, timelines): (Vec<RunResult>, Vec<Timeline>) =
        runs.into_iter().map(|run| (run.result, run.timeline.unwrap_or_default())).unzip();
    let look = Look { view: view(of, &why), set, plot: &args.plot, format: args.format };
    shown::runs(&look, &results, &timelines, spools)?;
    check(expected, results.iter())
}

/// Whether all that was expected holds in each of `runs`; what does not is said.
fn check<'a>(
    expected: &[Expectation],
    runs: impl Iterator<Item = &'a RunResult>,
) -> Result<ExitCode, Failure> {
    let mut hold = true;
    for run in runs {
        for expectation in expected {
            let Checked { holds, found, unit, absent } = expectation.check(run)?;
            if !holds {
                hold = false;
                let found = match (found, unit) {
                    (None, _) => {
                        absent.map_or("nothing".into(), |why| format!("nothing, for {why}"))
                    }
                    (Some(n), Unit::Count) => n.to_string(),
                    (Some(n), unit) => format!("{n:.3}{}", unit.as_str()),
                };
                let of = format!("{} from phase {} µs", run.policy, micros(run.phase));
                output::note(&format!("expected {}: found {found} ({of})", expectation.text));
            }
        }
    }
    Ok(if hold { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The only run, with its trace written to a file if that is wanted; nothing is left there if it fails.
fn alone(
    of: &Asked<'_>,
    experiment: &Experiment,
    options: Options,
    lists: Option<&mut Listed>,
) -> Result<risetime_lab::Run, Failure> {
    let Asked { args, backend, .. } = *of;
    let _waiting = (args.backend == args::Backend::Vm).then(|| Bar::waiting(experiment));
    let lists = lists.map(|lists| lists as &mut dyn Lists);
    let (mut progress, mut nobody) = (Progress::new(args, experiment), ());
    if args.perfetto.is_none() && args.ftrace.is_none() {
        let seen = progress.as_mut().map(|progress| progress as &mut (dyn TraceSink + Send));
        return Ok(risetime_lab::run_beside(backend, experiment, options, lists, seen)?);
    }
    let seen: &mut (dyn TraceSink + Send) = match &mut progress {
        Some(progress) => progress,
        None => &mut nobody,
    };
    written::beside(args.perfetto.as_deref(), Format::Perfetto, seen, |seen| {
        written::beside(args.ftrace.as_deref(), Format::Ftrace, seen, |seen| {
            Ok(risetime_lab::run_beside(backend, experiment, options, lists, Some(seen))?)
        })
    })
}

/// Runs each experiment many times: `--phases` and `--repeat`.
fn series(
    of: &Asked<'_>,
    options: &Options,
    n: u32,
    expected: &[Expectation],
) -> Result<ExitCode, Failure> {
    let Asked { args, backend, experiments, set } = *of;
    let mut all: Vec<PhaseRuns> = Vec::new();
    for experiment in experiments {
        let bar = Bar::new(u64::from(n), if args.phases.is_some() { "phases" } else { "runs" });
        if args.backend == args::Backend::Vm {
            bar.at_once();
        }
        let options = Options { timeline: false, ..options.clone() };
        let progress = |k| bar.at(u64::from(k));
        all.push(match args.phases {
            Some(_) => risetime_lab::run_phases(backend, experiment, n, &options, progress)?,
            None => risetime_lab::run_again(backend, experiment, n, &options, progress)?,
        });
    }
    let why = why(of, all.first().and_then(|phases| phases.runs.first()));
    if args.save_result.is_some() {
        let all = experiments.iter().zip(&all).zip(0..);
        let saved = all.flat_map(|((e, p), n)| Saved::series(e, &p.runs, &of.shown(&why), n));
        of.save(&saved.collect::<Vec<_>>())?;
    }
    let look = Look { view: view(of, &why), set, plot: &args.plot, format: args.format };
    shown::series(&look, args.every_phase, &all)?;
    check(expected, all.iter().flat_map(|p| &p.runs))
}

/// A progress bar on standard error that appears only after a second.
pub(crate) struct Bar {
    bar: ProgressBar,
    since: Clock,
    shown: std::cell::Cell<bool>,
}

impl Bar {
    pub(crate) fn new(length: u64, unit: &str) -> Bar {
        let bar = ProgressBar::hidden();
        bar.set_length(length);
        let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit}");
        bar.set_style(
            ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Bar { bar, since: Clock::now(), shown: false.into() }
    }
    /// Shows that `done` of `all` are done.
    pub(crate) fn of(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.at(done);
    }
    /// A bar for a machine that boots and says nothing until it is done.
    fn waiting(experiment: &Experiment) -> Bar {
        let bar = ProgressBar::hidden();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.set_message(format!(
            "{} on {}: a kernel boots and runs it,",
            experiment.workload.name, experiment.platform.name
        ));
        let bar = Bar { bar, since: Clock::now(), shown: false.into() };
        bar.at_once();
        bar
    }
    /// Shows the bar from now on, and keeps it moving.
    pub(crate) fn at_once(&self) {
        self.shown.set(true);
        self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }
    pub(crate) fn at(&self, position: u64) {
        if !self.shown.get() && self.since.elapsed() > Duration::from_secs(1) {
            self.shown.set(true);
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        self.bar.set_position(position);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A sink that shows how far a long simulation has got. The events of a machine all come at its
/// end.
struct Progress {
    bar: Bar,
    events: u32,
}

impl Progress {
    /// Number of events between two looks at the clock.
    const EVERY: u32 = 1 << 14;

    /// `None`: nobody sees a bar there.
    fn new(args: &Run, experiment: &Experiment) -> Option<Progress> {
        let seen = args.backend == args::Backend::Sim && std::io::stderr().is_terminal();
        let bar = || Bar::new(experiment.duration.0 / 1_000_000, "ms");
        seen.then(|| Progress { bar: bar(), events: 0 })
    }
}

impl TraceSink for Progress {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, _: &Event) {
        self.events += 1;
        if self.events.is_multiple_of(Self::EVERY) {
            self.bar.at(at.0 / 1_000_000);
        }
    }
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Figures
    }
}
