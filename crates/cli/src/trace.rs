//! Traces that somebody took: read, reported, explained.

use crate::args::{Chosen, Explain, Format, OfTrace, Report, Window};
use crate::output::{self, Failure};
use crate::prose::Prose;
use crate::spool::{Spool, is_printed};
use risetime_analysis::explain::Over;
use risetime_analysis::known::{NO_FREQUENCIES, SEEN, UNASKED};
use risetime_analysis::survey::{Frame, MarkedJobs, Marks, Survey, Surveyed, Thread, Walk, Wanted};
use risetime_analysis::{
    Analyzer, Burst, Lists, Migration, Missed, Options, RunResult, Timeline, is_called,
};
use risetime_kernel::units::{Instant, TaskId};
use risetime_lab::names;
use risetime_model::InputError;
use risetime_read::{Beside, FORMATS, Mark, ReadSummary, Source};
use risetime_report::page::Doc;
use risetime_report::{Taken, Told, csv, json, text};
use risetime_trace::{Event, Header, Hears, Tee, TraceSink};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Bytes from which it is told whether a file is a trace.
const HEAD: usize = 64 << 10;
/// Activations that are explained at most.
const MOST: usize = 200;

/// Opens `file` if its content says that it is a trace; `None`: it is none, or cannot be read as one.
pub(crate) fn told(file: &str) -> Option<Source> {
    let path = Path::new(file);
    let source = path.is_file().then(|| Source::open(path).ok()).flatten()?;
    risetime_read::told(&source.head(HEAD)).is_some().then_some(source)
}

/// Returns the formats that are known, in words.
pub(crate) fn formats() -> String {
    FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// Refuses to run a trace.
///
/// Errors: `workload` is one.
pub(crate) fn refuse_to_run(workload: &str) -> Result<(), InputError> {
    match told(workload) {
        None => Ok(()),
        Some(_) => {
            let what = "is a trace: what happened, and no workload that can be run";
            let hint = format!(
                "`risetime report {workload}` says what happened in it, `risetime explain {workload} --task NAME` why"
            );
            Err(InputError::new(workload, what).hint(hint))
        }
    }
}

/// A trace that was read.
struct Read {
    header: Header,
    summary: ReadSummary,
    surveyed: Surveyed,
    marked: Vec<MarkedJobs>,
    run: RunResult,
    timeline: Timeline,
    notes: Vec<String>,
    pids: Vec<i32>,
}

impl Read {
    fn taken<'a>(&'a self, source: &'a Source) -> Taken<'a> {
        let name = Path::new(source.name()).file_name().and_then(|name| name.to_str());
        Taken {
            file: name.unwrap_or(source.name()),
            format: self.summary.format,
            clock: self.header.run.clock,
            release: Some(&*self.header.run.kernel_release)
                .filter(|r| *r != "unknown")
                .unwrap_or(""),
            base_ns: self.summary.base,
            notes: &self.notes,
            pids: &self.pids,
            surveyed: &self.surveyed,
            marked: &self.marked,
            run: &self.run,
        }
    }
}

/// Sink that keeps the head of a trace alone.
#[derive(Default)]
struct Head(Option<Header>);

impl TraceSink for Head {
    fn header(&mut self, header: &Header) {
        self.0 = Some(header.clone());
    }
    fn event(&mut self, _: Instant, _: &Event) {}
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Nothing
    }
}

/// Marks of a stretch of a trace.
struct MarksWithin {
    marks: Marks,
    from: u64,
    to: u64,
}

impl Beside for MarksWithin {
    fn mark(&mut self, at: Instant, task: Option<TaskId>, _: i32, mark: &Mark<'_>) {
        if at.0 < self.from || at.0 >= self.to {
            return;
        }
        match mark {
            Mark::Begin { name } => self.marks.begin(at.0, task, name),
            Mark::End => self.marks.end(at.0, task),
            Mark::Frame { layer, expected, actual, jank, .. } => {
                let (from, to) = (actual.0.0, actual.1.0);
                let due = expected.map(|(_, end)| end.0);
                self.marks.frame(layer, Frame { due, from, to, janky: *jank != 0 });
            }
            _ => {}
        }
    }
}

/// Questions to a trace.
#[derive(Clone, Default)]
struct Asked {
    wanted: Wanted,
    options: Options,
    /// Name of the slices that are jobs.
    slices: Option<String>,
}

/// Threads that a person means by a word.
#[derive(Clone, Debug, Default)]
struct Who {
    name: Option<String>,
    tasks: Vec<TaskId>,
}

impl Who {
    /// Whether a thread is meant.
    fn is(&self, thread: &Thread) -> bool {
        self.means(thread.task, &thread.comm)
    }

    /// Whether the task of this name is meant.
    fn means(&self, task: TaskId, comm: &str) -> bool {
        let named = self.name.as_ref().is_some_and(|name| is_called(comm, name));
        named || self.tasks.contains(&task)
    }
}

/// Reading of a trace, with the options of a command.
struct Reading<'a> {
    source: &'a Source,
    options: risetime_read::Options,
    /// Facts of a first reading, where options hang on them.
    first: Option<ReadSummary>,
    from: u64,
    to: u64,
}

impl<'a> Reading<'a> {
    /// Returns a reading with these options.
    ///
    /// Errors: a platform that is none, a stretch that the trace does not have, a file that cannot be read.
    fn new(source: &'a Source, of: &OfTrace) -> Result<Reading<'a>, Failure> {
        let platform = of.platform.as_deref().map(names::platform).transpose()?.map(Arc::new);
        let options = risetime_read::Options { platform, ..Default::default() };
        let mut reading = Reading { source, options, first: None, from: 0, to: u64::MAX };
        let by_number = of.task.as_deref().is_some_and(|task| task.parse::<i32>().is_ok());
        if of.window.is_some() || by_number {
            let first = risetime_read::read(source, &mut (), &reading.options)?;
            if let Some(window) = of.window {
                (reading.from, reading.to) = within(window, &first)?;
            }
            reading.first = Some(first);
        }
        Ok(reading)
    }

    /// Returns the threads that `--task` means.
    ///
    /// Errors: a number that no thread of the trace has.
    fn who(&self, of: &OfTrace) -> Result<Who, InputError> {
        let Some(word) = &of.task else { return Ok(Who::default()) };
        let Ok(pid) = word.parse::<i32>() else {
            return Ok(Who { name: Some(word.clone()), tasks: Vec::new() });
        };
        let threads = self.first.iter().flat_map(|first| &first.threads);
        let own = (0..).zip(threads).filter(|(_, thread)| thread.pid == pid);
        let tasks: Vec<TaskId> = own.map(|(id, _)| TaskId(id)).collect();
        match tasks.is_empty() {
            true => Err(nobody(self.source, word)),
            false => Ok(Who { name: None, tasks }),
        }
    }

    /// Reads the trace; `lists` receive its bursts and changes of CPU.
    fn read(&self, asked: Asked, lists: Option<&mut dyn Lists>) -> Result<Read, Failure> {
        let mut analyzer = Analyzer::listing(asked.options, lists);
        let (mut survey, mut head) = (Survey::new(asked.wanted), Head::default());
        let marks = Marks::new(asked.slices);
        let mut marks = MarksWithin { marks, from: self.from, to: self.to };
        let mut rest = Tee(&mut survey, &mut head);
        let mut all = Tee(&mut analyzer, &mut rest);
        let whole = self.from == 0 && self.to == u64::MAX;
        let mut summary = match whole {
            true => risetime_read::read_beside(self.source, &mut all, &mut marks, &self.options)?,
            false => {
                let mut window = risetime_trace::Window::new(self.from, self.to, &mut all);
                risetime_read::read_beside(self.source, &mut window, &mut marks, &self.options)?
            }
        };
        summary.base += self.from;
        let (run, timeline) = analyzer.finish();
        let header = head.0.ok_or_else(|| Failure::unavailable("the trace has no head"))?;
        let mut notes = header.run.lost.clone();
        let said = [SEEN, UNASKED, NO_FREQUENCIES];
        let further = run.notes.iter().filter(|note| !said.contains(&note.as_str()));
        for note in summary.notes.iter().chain(further) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let pids = summary.threads.iter().map(|thread| thread.pid).collect();
        Ok(Read {
            header,
            surveyed: survey.finish(),
            marked: marks.marks.finish(),
            run,
            timeline: timeline.unwrap_or_default(),
            notes,
            pids,
            summary,
        })
    }
}

/// The stretch that is meant, in ns from time 0 of the trace: times beyond its length are by its own clock.
///
/// Errors: the trace has no such stretch.
fn within(window: Window, of: &ReadSummary) -> Result<(u64, u64), InputError> {
    let end = of.end.0;
    let by_clock = window.from > end || (window.from == 0 && window.to.is_some_and(|to| to > end));
    let shift = if by_clock && of.base > 0 { of.base } else { 0 };
    let from = window.from.saturating_sub(shift);
    let to = window.to.map_or(u64::MAX, |to| to.saturating_sub(shift));
    if from >= end || to == 0 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let what = format!(
            "the trace has no such stretch: it is {:.3} s long, and begins at {:.6} s of its clock",
            seconds(end),
            seconds(of.base)
        );
        return Err(InputError::new("--window", what));
    }
    Ok((from, to))
}

fn nobody(source: &Source, word: &str) -> InputError {
    let what = format!("no task of {} is called or numbered `{word}`", source.name());
    InputError::new("--task", what)
        .hint("`risetime report` without --task lists them; `*` stands for any text")
}

/// Reports a trace.
pub(crate) fn report(args: &Report, source: &Source) -> Result<ExitCode, Failure> {
    if args.every_phase {
        let e = InputError::new("--every-phase", format!("{} is a trace", args.file));
        return Err(e.hint("it is for results of `run`").into());
    }
    let format = Format::of(args.format, "report")?;
    let reading = Reading::new(source, &args.of_trace)?;
    let who = reading.who(&args.of_trace)?;
    let jobs = args.job.as_ref().and_then(|job| Some((job.name.clone(), job.period?)));
    let slices = args.job.as_ref().filter(|job| job.period.is_none()).map(|job| job.name.clone());
    let asked = Asked {
        wanted: Wanted { jobs, ..Wanted::default() },
        options: Options {
            timeline: args.full || !args.plot.files.is_empty(),
            about: who.name.clone(),
            ..Options::default()
        },
        slices,
    };
    let listed = is_printed(args.bursts, args.full, format);
    let mut spool = listed.then(|| Spool::new(format, args.full)).transpose()?;
    let all = args.of_trace.task.is_none();
    let mut own = spool.as_mut().map(|spool| Own { spool, who: &who, all });
    let read = reading.read(asked, own.as_mut().map(|own| own as &mut dyn Lists))?;
    let lines = spool.map(Spool::lines).transpose()?;
    args.plot.draw(|| {
        let run: [(&RunResult, &Timeline); 1] = [(&read.run, &read.timeline)];
        risetime_report::picture::runs(&run)
    })?;
    let chosen = args.of_trace.task.as_ref().map(|_| places(&read.surveyed, &who));
    if let (Some(word), Some(chosen)) = (&args.of_trace.task, &chosen)
        && chosen.is_empty()
    {
        return Err(nobody(source, word).into());
    }
    let taken = read.taken(source);
    let mut lines = lines;
    let mut told = [Told { run: &read.run, listed: None }];
    output::stream(|out| match format {
        Format::Json => {
            told[0].listed = lines.take().map(|lines| Box::new(lines) as _);
            json::trace(out, &taken, &mut told)
        }
        Format::Csv => {
            let listed = lines.take().into_iter().flatten();
            told[0].listed = Some(Box::new(csv::thread_lines(&taken).map(Ok).chain(listed)));
            csv::runs(out, &mut told, &[])
        }
        Format::Text | Format::Markdown | Format::Html => {
            let form = format.prose().unwrap_or(Prose::Terminal);
            let why = why(args, &read.surveyed, chosen.as_deref());
            let view = text::TraceView { threads: chosen.as_deref(), full: args.full, why: &why };
            let style = form.style();
            let mut docs: Vec<Doc> = vec![text::trace(&taken, &view, &style)];
            if args.full && read.run.leading().is_some() {
                let view = text::View { full: true, ..text::View::default() };
                docs.push(text::run(&read.run, &read.timeline, &view, &style));
            }
            if let Some(lines) = lines.take() {
                let lines = lines.collect::<std::io::Result<Vec<String>>>()?;
                let what = if args.full { "All bursts and changes of CPU" } else { "All bursts" };
                docs.push(text::listed(what, lines, &style));
            }
            out.write_all(form.all(&docs).as_bytes())
        }
    })
}

/// Lists of the threads that are meant.
struct Own<'a> {
    spool: &'a mut Spool,
    who: &'a Who,
    all: bool,
}

impl Lists for Own<'_> {
    fn burst(&mut self, task: TaskId, comm: &str, burst: &Burst) {
        if self.all || self.who.means(task, comm) {
            self.spool.burst(task, comm, burst);
        }
    }
    fn migration(&mut self, task: TaskId, comm: &str, migration: &Migration) {
        if self.all || self.who.means(task, comm) {
            self.spool.migration(task, comm, migration);
        }
    }
    fn missed(&mut self, job: &str, missed: &Missed) {
        self.spool.missed(job, missed);
    }
}

/// The places of the threads that are meant.
fn places(surveyed: &Surveyed, who: &Who) -> Vec<usize> {
    let all = surveyed.threads.iter().enumerate();
    all.filter(|(_, thread)| who.is(thread)).map(|(place, _)| place).collect()
}

/// The command that explains a task of the trace: the one that was asked for, or the one that ran longest.
fn why(args: &Report, surveyed: &Surveyed, chosen: Option<&[usize]>) -> Vec<String> {
    let task = match (&args.of_trace.task, chosen) {
        (Some(task), Some([_])) => task.clone(),
        (Some(_), _) => return Vec::new(),
        (None, _) => match surveyed.threads.iter().find(|thread| thread.activations > 0) {
            Some(thread) => thread.comm.to_string(),
            None => return Vec::new(),
        },
    };
    let mut words = vec!["risetime".to_string(), "explain".into(), quoted(&args.file)];
    words.extend(["--task".to_string(), quoted(&task)]);
    if let Some(platform) = &args.of_trace.platform {
        words.extend(["--platform".to_string(), quoted(platform)]);
    }
    words
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Explains activations of a task of a trace.
pub(crate) fn explain(args: &Explain, source: &Source) -> Result<ExitCode, Failure> {
    args.plot.refuse("there is no picture of a trace that is explained", "leave it out")?;
    if args.save.save_result.is_some() {
        let e = InputError::new("--save-result", "what is found in a trace is not saved");
        return Err(e.hint("--format json has all of it").into());
    }
    let of_trace = args.of_trace();
    let reading = Reading::new(source, &of_trace)?;
    let who = match &of_trace.task {
        Some(_) => reading.who(&of_trace)?,
        None => {
            let read = reading.read(Asked::default(), None)?;
            let first = read.surveyed.threads.iter().find(|thread| thread.activations > 0);
            let first = first.or(read.surveyed.threads.first());
            let tasks = first.map(|thread| thread.task).into_iter().collect();
            Who { name: None, tasks }
        }
    };
    let (walk, which) = chosen(args.over, &reading, &who)?;
    let Who { name: walked, tasks } = who.clone();
    let wanted = Wanted { walked, tasks, walk: Some(walk), jobs: None };
    let read = reading.read(Asked { wanted, ..Asked::default() }, None)?;
    let own = || read.surveyed.threads.iter().filter(|thread| who.is(thread));
    let Some(first) = own().next() else {
        return Err(nobody(source, of_trace.task.as_deref().unwrap_or("")).into());
    };
    let of = own().map(|thread| thread.activations).sum();
    let taken = read.taken(source);
    let name: &str = of_trace.task.as_deref().unwrap_or(&first.comm);
    let view = text::WalkView { task: name, which: &which, of, full: args.full };
    output::print(&match args.format.prose() {
        None => json::walk(&taken, of),
        Some(form) => form.of(|style| text::walk(&taken, &view, style)),
    })
}

/// Returns which activations are walked, and the words for them.
///
/// Errors: a number that the trace of a task does not have.
fn chosen(
    over: Option<Chosen>,
    reading: &Reading<'_>,
    who: &Who,
) -> Result<(Walk, String), Failure> {
    let ms = |ns: u64| ns as f64 / 1e6;
    Ok(match over {
        None => (Walk { over: 0, most: 1 }, "The longest".into()),
        Some(Chosen::Longer(over)) => {
            (Walk { over, most: MOST }, format!("Longer than {} ms", ms(over)))
        }
        Some(Chosen::Over(Over::All)) => (Walk { over: 0, most: usize::MAX / 4 }, "All".into()),
        Some(Chosen::Over(Over::Worst(share))) => {
            let read = reading.read(Asked::default(), None)?;
            let own = read.surveyed.threads.iter().filter(|thread| who.is(thread));
            let n: u64 = own.map(|thread| thread.activations).sum();
            let most = ((n as f64 * share).ceil() as usize).max(1);
            (Walk { over: 0, most }, format!("The slowest {} %", 100.0 * share))
        }
        Some(Chosen::Over(Over::One(_))) => {
            let e = InputError::new("--over", "activations of a trace have no numbers");
            return Err(e.hint("--over 16.6ms: those that took longer; --window: when").into());
        }
    })
}
