//! `risetime run`: one experiment, several policies.

use crate::args::{self, Format, Run};
use crate::output::{self, Failure};
use crate::spool::Spool;
use crate::vm;
use indicatif::{ProgressBar, ProgressStyle};
use risetime_analysis::expect::{Checked, Expectation};
use risetime_analysis::metric::Unit;
use risetime_analysis::{
    Jobs, Lists, Options, PhaseSummary, RunResult, Timeline, group_name, is_called,
};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Instant;
use risetime_lab::{PhaseRuns, Request, Saved, Shown, quoted};
use risetime_model::{Experiment, InputError, micros, nearest};
use risetime_report::{Told, csv, json, picture, text};
use risetime_sim::cause::Cause;
use risetime_sim::{Counterfactual, Simulator};
use risetime_trace::write::perfetto;
use risetime_trace::{Backend, Event, Header, Hears, Tee, TraceSink};
use risetime_vm::fetch::Cache;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
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
    if args.perfetto.is_some() && experiments.len() > 1 {
        return Err(InputError::new(
            "--perfetto",
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
        timeline: args.format == Format::Text && args.full
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
    // A page of text has all but the lists: of seconds of a server they are ten thousands of lines.
    let listed = args.bursts || args.full && args.format != Format::Text;
    let list = || if listed { Spool::new(args.format, args.full).map(Some) } else { Ok(None) };
    let (runs, lists): (Vec<risetime_lab::Run>, Vec<_>) = match experiments {
        [one] => {
            let mut lists = list()?;
            (vec![alone(of, one, options.clone(), lists.as_mut())?], vec![lists])
        }
        several => {
            let spools: Vec<Option<Spool>> =
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
    if args.save_result.is_some() {
        let saved = experiments.iter().zip(&runs);
        let saved = saved.map(|(e, run)| Saved::of(e, run.clone(), of.shown(&why)));
        of.save(&saved.collect::<Vec<_>>())?;
    }
    let (results, timelines): (Vec<RunResult>, Vec<Timeline>) =
        runs.into_iter().map(|run| (run.result, run.timeline.unwrap_or_default())).unzip();
    args.plot.draw(|| picture::runs(&results.iter().zip(&timelines).collect::<Vec<_>>()))?;
    let view = view(of, &why);
    let mut told = Vec::new();
    for (run, list) in results.iter().zip(lists) {
        let lines = list.map(Spool::lines).transpose()?;
        told.push(Told { run, listed: lines.map(|lines| Box::new(lines) as _) });
    }
    output::stream(|out| match args.format {
        Format::Json => json::runs(out, &mut told),
        Format::Csv => csv::runs(out, &mut told, set),
        Format::Text => {
            let page = match results.as_slice() {
                [one] => text::run(one, &timelines[0], &view, &output::style()),
                several => text::compare(several, &view, &output::style()),
            };
            out.write_all(page.as_bytes())?;
            for told in &mut told {
                if let Some(lines) = &mut told.listed {
                    let what = if args.full { "bursts and changes of CPU" } else { "bursts" };
                    writeln!(out, "\nAll {what} under {}", told.run.policy)?;
                    lines.try_for_each(|line| writeln!(out, "{}", line?))?;
                    let late = text::late_jobs(told.run, &output::style());
                    if !late.is_empty() {
                        write!(out, "\n{late}")?;
                    }
                }
            }
            Ok(())
        }
    })?;
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
    lists: Option<&mut Spool>,
) -> Result<risetime_lab::Run, Failure> {
    let Asked { args, backend, .. } = *of;
    let _waiting = (args.backend == args::Backend::Vm).then(|| Bar::waiting(experiment));
    let lists = lists.map(|lists| lists as &mut dyn Lists);
    let (mut progress, mut nobody) = (Progress::new(args, experiment), ());
    let Some(path) = &args.perfetto else {
        let seen = progress.as_mut().map(|progress| progress as &mut (dyn TraceSink + Send));
        return Ok(risetime_lab::run_beside(backend, experiment, options, lists, seen)?);
    };
    let seen: &mut (dyn TraceSink + Send) = match &mut progress {
        Some(progress) => progress,
        None => &mut nobody,
    };
    let mut done = None;
    output::write_whole(path, |file| {
        let mut writer = perfetto::Writer::new(file);
        let also = Some(&mut Tee(&mut writer, seen) as &mut (dyn TraceSink + Send));
        done = Some(risetime_lab::run_beside(backend, experiment, options, lists, also)?);
        writer.finish().map_err(|e| Failure::unwritten(path, &e))
    })?;
    done.ok_or_else(|| Failure::unavailable("the run gave no result"))
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
    let columns: Vec<(&[RunResult], _)> =
        all.iter().map(|p| (p.runs.as_slice(), &p.summary)).collect();
    let policies = experiments.iter().zip(&all).map(|(e, p)| (e.policy.name.as_str(), &p.summary));
    let policies: Vec<_> = policies.collect();
    let why = why(of, all.first().and_then(|phases| phases.runs.first()));
    if args.save_result.is_some() {
        let all = experiments.iter().zip(&all).zip(0..);
        let saved = all.flat_map(|((e, p), n)| Saved::series(e, &p.runs, &of.shown(&why), n));
        of.save(&saved.collect::<Vec<_>>())?;
    }
    let view = view(of, &why);
    let told = |run| Told { run, listed: None };
    let mut told: Vec<Told<'_>> = all.iter().flat_map(|p| &p.runs).map(told).collect();
    output::stream(|out| match args.format {
        Format::Json => json::phases(out, &mut told, &policies),
        Format::Csv => csv::runs(out, &mut told, set),
        Format::Text => out.write_all(page(args.every_phase, &columns, &view).as_bytes()),
    })?;
    check(expected, all.iter().flat_map(|p| &p.runs))
}

/// The page of experiments that were run many times each.
pub(crate) fn page(
    every_phase: bool,
    columns: &[(&[RunResult], &PhaseSummary)],
    view: &text::View<'_>,
) -> String {
    let style = output::style();
    let each = || columns.iter().map(|(runs, summary)| (runs, summary));
    match columns {
        [(runs, summary)] => text::phases(runs, summary, every_phase, view, &style),
        several if !every_phase => text::compare_phases(several, view, &style),
        several => {
            let pages =
                each().map(|(runs, summary)| text::phases(runs, summary, true, view, &style));
            text::compare_phases(several, view, &style) + &pages.collect::<String>()
        }
    }
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
