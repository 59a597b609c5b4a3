//! The registry of formats, and the way from a file to a sink.

use crate::story::Story;
use crate::survey::Survey;
use crate::take::Take;
use crate::{Beside, Fault, Source, dat, text};
use risetime_kernel::units::Instant;
use risetime_model::{Code, Platform};
use risetime_trace::{Thread, TraceSink};
use std::sync::Arc;

/// Bytes from which a format is told.
const HEAD: usize = 64 << 10;

/// A format of traces.
pub struct Format {
    /// Name of the format, as reports call it.
    pub name: &'static str,
    /// Phrase on what writes it.
    pub about: &'static str,
    /// Whether a file that begins with these bytes (64 KiB, or all of it) is of the format.
    pub told: fn(&[u8]) -> bool,
    /// Opens a file of the format.
    pub open: for<'a> fn(&'a Source, &Options) -> Result<Box<dyn Reader + 'a>, Fault>,
}

/// A file of some format, opened.
pub trait Reader {
    /// Walks the whole file and hands all that it finds to `take`, by time. Called twice.
    ///
    /// Errors: nothing of the file can be read. What is damaged is a fact and no error.
    fn pass(&mut self, take: &mut dyn Take) -> Result<(), Fault>;
}

/// All formats, in the order in which they are looked for.
pub const FORMATS: &[Format] = &[
    Format {
        name: "trace.dat",
        about: "`trace-cmd record`, versions 6 and 7",
        told: dat::told,
        open: dat::open,
    },
    Format {
        name: "ftrace text",
        about: "tracefs' file `trace`, `trace-cmd report`, systrace, atrace",
        told: text::told,
        open: text::open,
    },
];

/// Choices of whoever reads a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Machine that the trace is of; `None`: it is known from the trace alone.
    pub platform: Option<Arc<Platform>>,
    /// Buffer to read, by its instance's name, where a file has several; `None`: the top one.
    pub buffer: Option<String>,
}

/// Facts about a trace that was read.
#[derive(Clone, Debug)]
pub struct ReadSummary {
    /// Name of the format.
    pub format: &'static str,
    /// Time 0 of the trace that was pushed, in ns by the file's own clock.
    pub base: u64,
    /// End of the trace, from time 0 on.
    pub end: Instant,
    /// Number of events that were pushed.
    pub events: u64,
    /// Number of events of the file that the table knows.
    pub records: u64,
    /// Threads by their task's id.
    pub threads: Vec<Thread>,
    /// Processes of these; 0: unknown.
    pub processes: Vec<i32>,
    /// Notes for the reader: damages with their offsets, what was cut off, what is not known.
    pub notes: Vec<String>,
}

/// Returns the format of a file that begins with these bytes; `None`: it is no trace that is known here.
pub fn told(head: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.told)(head))
}

/// Reads a trace of any known format into `sink`.
///
/// Errors: a format that is not known, a file that cannot be read or holds no event, a platform that does not fit.
pub fn read(
    source: &Source,
    sink: &mut dyn TraceSink,
    options: &Options,
) -> Result<ReadSummary, Fault> {
    read_beside(source, sink, &mut (), options)
}

/// Reads a trace like [`read`], and hands what it tells beside the scheduler to `beside`.
///
/// Errors: those of [`read`].
pub fn read_beside(
    source: &Source,
    sink: &mut dyn TraceSink,
    beside: &mut dyn Beside,
    options: &Options,
) -> Result<ReadSummary, Fault> {
    let format = told(&source.head(HEAD)).ok_or_else(|| unknown(source))?;
    let mut reader = (format.open)(source, options)?;
    let mut survey = Survey::default();
    let mut first = Story::survey(&mut survey);
    reader.pass(&mut first)?;
    first.finish();
    if survey.records() == 0 {
        let what = format!("no event of this {} is known here", format.name);
        let hint = "a report needs at least `sched_switch`";
        return Err(Fault::new(source.name(), what).hint(hint));
    }
    let header = survey.header(options.platform.clone(), source.name())?;
    sink.header(&header);
    let mut second = Story::pour(&survey, &header, sink, beside);
    reader.pass(&mut second)?;
    let summary = second.finish();
    Ok(ReadSummary { format: format.name, notes: survey.notes(), ..summary })
}

fn unknown(source: &Source) -> Fault {
    let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let what = format!("this is no trace that is known: wanted {}", known.join(", "));
    Fault::new(source.name(), what).code(Code::Syntax)
}
