//! Traces as files: in which format one is written, and by whom.

use crate::output::{self, Failure};
use risetime_kernel::units::{Instant, TaskId};
use risetime_model::InputError;
use risetime_trace::write::{Numbers, ftrace, perfetto};
use risetime_trace::{Event, Header, Hears, TraceSink};
use std::io::{self, Write};
use std::path::Path;

/// Format of a trace that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Perfetto's protobuf.
    Perfetto,
    /// The text of tracefs.
    Ftrace,
}

/// Endings of files, by format.
const ENDINGS: &[(Format, &[&str])] = &[
    (Format::Perfetto, &["pftrace", "perfetto-trace", "perfetto"]),
    (Format::Ftrace, &["txt", "ftrace", "systrace"]),
];

impl Format {
    /// Returns the format that the ending of a file names.
    ///
    /// Errors: it names none.
    pub(crate) fn of(path: &Path) -> Result<Format, InputError> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let of = |(format, endings): &(Format, &[&str])| {
            endings.iter().any(|e| e.eq_ignore_ascii_case(ending)).then_some(*format)
        };
        ENDINGS.iter().find_map(of).ok_or_else(|| {
            let found = if ending.is_empty() { "none".into() } else { format!("`.{ending}`") };
            let what = format!("the ending of its name says the format, found {found}");
            InputError::new(path.display().to_string(), what)
                .hint("end it in .pftrace or .perfetto-trace (Perfetto), .txt or .ftrace (text)")
        })
    }
}

/// A writer of either format.
pub(crate) enum Writer<W: Write> {
    Perfetto(Box<perfetto::Writer<W>>),
    Ftrace(Box<ftrace::Writer<W>>),
}

impl<W: Write> Writer<W> {
    /// A writer to `out` of a trace that has these numbers.
    pub(crate) fn new(format: Format, out: W, numbers: Numbers) -> Writer<W> {
        match format {
            Format::Perfetto => Writer::Perfetto(perfetto::Writer::of(out, numbers).into()),
            Format::Ftrace => Writer::Ftrace(ftrace::Writer::of(out, numbers).into()),
        }
    }

    /// Writes a line that a program wrote into the trace.
    pub(crate) fn print(&mut self, at: Instant, task: Option<TaskId>, text: &str) {
        match self {
            Writer::Perfetto(writer) => writer.print(at, task, text),
            Writer::Ftrace(writer) => writer.print(at, task, text),
        }
    }

    /// Writes what is left. Errors: the first one of the whole trace.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Writer::Perfetto(writer) => writer.finish(),
            Writer::Ftrace(writer) => writer.finish(),
        }
    }

    fn sink(&mut self) -> &mut dyn TraceSink {
        match self {
            Writer::Perfetto(writer) => &mut **writer,
            Writer::Ftrace(writer) => &mut **writer,
        }
    }
}

impl<W: Write> TraceSink for Writer<W> {
    fn header(&mut self, header: &Header) {
        self.sink().header(header);
    }
    fn event(&mut self, at: Instant, event: &Event) {
        self.sink().event(at, event);
    }
    fn end(&mut self, at: Instant) {
        self.sink().end(at);
    }
    fn listens(&self) -> Hears {
        match self {
            Writer::Perfetto(writer) => writer.listens(),
            Writer::Ftrace(writer) => writer.listens(),
        }
    }
}

/// Calls `run` with a sink whose trace goes into a file, if one is wanted, and to `seen`; nothing is left there if it fails.
pub(crate) fn beside<T>(
    path: Option<&Path>,
    format: Format,
    seen: &mut (dyn TraceSink + Send),
    run: impl FnOnce(&mut (dyn TraceSink + Send)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(path) = path else { return run(seen) };
    let mut done = None;
    output::write_whole(path, |file| {
        let mut writer = Writer::new(format, file, Numbers::default());
        done = Some(run(&mut risetime_trace::Tee(&mut writer, seen))?);
        writer.finish().map_err(|e| Failure::unwritten(path, &e))
    })?;
    done.ok_or_else(|| Failure::unavailable("the run gave no result"))
}
