//! `risetime run`: one experiment, several policies.

use crate::args::{self, Format, Run};
use crate::output::{self, Failure};
use indicatif::{ProgressBar, ProgressStyle};
use risetime_analysis::expect::{Checked, Expectation};
use risetime_analysis::{Options, RunResult};
use risetime_kernel::KernelRev;
use risetime_kernel::units::{Instant, Span};
use risetime_lab::{PhaseRuns, Request};
use risetime_model::{Experiment, InputError};
use risetime_report::{csv, json, text};
use risetime_sim::{Counterfactual, Simulator};
use risetime_trace::write::perfetto;
use risetime_trace::{Backend, Event, Header, Tee, TraceSink};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    let expected = args.expect.iter().map(|text| Expectation::parse(text));
    let expected = expected.collect::<Result<Vec<_>, _>>()?;
    let (backend, kernel) = backend(args)?;
    let experiments = match args.backend {
        args::Backend::Sim => request(args).experiments()?,
        args::Backend::Vm => request(args).experiments_under(kernel)?,
    };
    if args.perfetto.is_some() && experiments.len() > 1 {
        return Err(InputError::new(
            "--perfetto",
            format!("one trace is of one policy, found {}", experiments.len()),
        )
        .hint("run it once for each --policy")
        .into());
    }
    note_what_has_no_effect(&experiments);
    match args.phases.or(args.repeat) {
        Some(n) => series(args, &*backend, &experiments, n, &expected),
        None => single(args, &*backend, &experiments, &expected),
    }
}

/// Who carries it out, and the kernel generation if that is given.
fn backend(args: &Run) -> Result<(Box<dyn Backend>, Option<KernelRev>), Failure> {
    match args.backend {
        args::Backend::Sim if args.kernel.is_some() => {
            Err(InputError::new("--kernel", "the simulator boots no kernel")
                .hint("add --backend vm")
                .into())
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
            let (mut vm, kernel) =
                Vm::find(&Cache::from_env()?, args.kernel.as_deref(), risetime_sim::catalogue())?;
            if args.repeat.is_some() {
                // What differs is to be seen, not mended.
                (vm.memory, vm.hold) = (None, false);
            }
            Ok((Box::new(vm), kernel.rev()))
        }
    }
}

fn request(args: &Run) -> Request {
    Request {
        policies: args.policies.clone(),
        set: args.settings.all(),
        hz: args.settings.other.hz,
        seconds: args.seconds,
        phase: Span::from_us(args.phase_us),
        seed: args.seed,
        noise: Some(match args.backend {
            args::Backend::Sim => args::OF_A_MACHINE,
            args::Backend::Vm => args::OF_THE_VM,
        }),
        ..Request::new(args.workload.clone(), args.platform.clone())
    }
}

fn note_what_has_no_effect(experiments: &[Experiment]) {
    let Some(first) = experiments.first() else { return };
    for key in &first.workload.without_effect {
        output::note(&format!("{}: without effect: {key}", first.workload.name));
    }
}

fn options(args: &Run) -> Options {
    Options {
        all_bursts: args.bursts,
        timeline: args.format == Format::Text,
        levels: args.levels.clone(),
        stretch: None,
    }
}

fn single(
    args: &Run,
    backend: &dyn Backend,
    experiments: &[Experiment],
    expected: &[Expectation],
) -> Result<ExitCode, Failure> {
    let mut runs = Vec::new();
    for experiment in experiments {
        let _waiting = (args.backend == args::Backend::Vm).then(|| Bar::waiting(experiment));
        runs.push(match &args.perfetto {
            Some(path) => with_trace(args, backend, experiment, path)?,
            None => risetime_lab::run(
                backend,
                experiment,
                options(args),
                Progress::new(args, experiment).as_mut().map(|p| p as &mut dyn TraceSink),
            )?,
        });
    }
    let results: Vec<RunResult> = runs.iter().map(|r| r.result.clone()).collect();
    output::print(&match (args.format, runs.as_slice()) {
        (Format::Json, _) => json::runs(&results),
        (Format::Csv, _) => csv::runs(&results),
        (Format::Text, [one]) => {
            text::run(&one.result, &one.timeline.clone().unwrap_or_default(), &output::style())
        }
        (Format::Text, _) => text::compare(&results, &output::style()),
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
            let Checked { holds, found, unit } = expectation.check(run)?;
            if !holds {
                hold = false;
                let found = found.map_or("nothing".into(), |n| format!("{n:.3}{}", unit.as_str()));
                let of = format!("{} from phase {} µs", run.policy, run.phase_us);
                output::note(&format!("expected {}: found {found} ({of})", expectation.text));
            }
        }
    }
    Ok(if hold { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The run, with its trace written to `path`; nothing is left there if it fails.
fn with_trace(
    args: &Run,
    backend: &dyn Backend,
    experiment: &Experiment,
    path: &Path,
) -> Result<risetime_lab::Run, Failure> {
    let mut done = None;
    output::write_whole(path, |file| {
        let mut writer = perfetto::Writer::new(file);
        let mut progress = Progress::new(args, experiment);
        let mut nobody = ();
        let mut both = Tee(
            &mut writer,
            match &mut progress {
                Some(progress) => progress,
                None => &mut nobody,
            },
        );
        done = Some(risetime_lab::run(backend, experiment, options(args), Some(&mut both))?);
        writer
            .finish()
            .map_err(|e| Failure::input(&path.display().to_string(), output::system_words(&e)))
    })?;
    done.ok_or_else(|| Failure::unavailable("the run gave no result"))
}

/// Many runs of each experiment: `--phases` and `--repeat`.
fn series(
    args: &Run,
    backend: &dyn Backend,
    experiments: &[Experiment],
    n: u32,
    expected: &[Expectation],
) -> Result<ExitCode, Failure> {
    let mut all: Vec<PhaseRuns> = Vec::new();
    for experiment in experiments {
        let bar = Bar::new(u64::from(n), if args.phases.is_some() { "phases" } else { "runs" });
        if args.backend == args::Backend::Vm {
            bar.at_once();
        }
        let options = Options { timeline: false, ..options(args) };
        let progress = |k| bar.at(u64::from(k));
        all.push(match args.phases {
            Some(_) => risetime_lab::run_phases(backend, experiment, n, &options, progress)?,
            None => risetime_lab::run_again(backend, experiment, n, &options, progress)?,
        });
    }
    let columns: Vec<(&[RunResult], _)> =
        all.iter().map(|p| (p.runs.as_slice(), &p.summary)).collect();
    output::print(&match (args.format, columns.as_slice()) {
        (Format::Json, _) => json::phases(&columns),
        (Format::Csv, _) => csv::runs(&all.iter().flat_map(|p| p.runs.clone()).collect::<Vec<_>>()),
        (Format::Text, [(runs, summary)]) => {
            text::phases(runs, summary, args.every_phase, &output::style())
        }
        (Format::Text, _) => {
            let mut page = text::compare_phases(&columns, &output::style());
            if args.every_phase {
                for (runs, summary) in &columns {
                    page += &text::phases(runs, summary, true, &output::style());
                }
            }
            page
        }
    })?;
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
    /// For a machine that boots and says nothing until it is done.
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
    /// Shown from now on, and kept moving.
    fn at_once(&self) {
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
    /// So many events between two looks at the clock.
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
    fn event(&mut self, at: Instant, _: &Event<'_>) {
        self.events += 1;
        if self.events.is_multiple_of(Self::EVERY) {
            self.bar.at(at.0 / 1_000_000);
        }
    }
    fn end(&mut self, _: Instant) {}
}
