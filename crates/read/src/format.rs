//! The registry of formats, and the way from a file to a sink.

use crate::story::Story;
pub(crate) use crate::summary::{Options, ReadSummary};
use crate::survey::Survey;
pub(crate) use crate::take::Reader;
use crate::{Beside, Fault, Source, dat, perfetto, text};
use risetime_model::Code;
use risetime_trace::TraceSink;

/// Bytes from which a format is told.
const HEAD: usize = 64 << 10;

/// A function that opens a file.
///
/// Errors: nothing of the file can be read, or it has no such buffer.
pub type Open = for<'a> fn(&'a Source, &Options) -> Result<Box<dyn Reader + 'a>, Fault>;

/// A format of traces.
pub struct Format {
    /// Name of the format, as reports call it.
    pub name: &'static str,
    /// Phrase on what writes it.
    pub about: &'static str,
    /// Whether a file that begins with these bytes (64 KiB, or all of it) is of the format.
    pub told: fn(&[u8]) -> bool,
    /// Opens a file of the format.
    pub open: Open,
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
        name: "perf.data",
        about: "`perf sched record`, `perf record -e sched:*`",
        told: dat::perf::told,
        open: dat::perf::open,
    },
    Format {
        name: "Perfetto trace",
        about: "`traced`, Android's system traces, `--perfetto`",
        told: perfetto::told,
        open: perfetto::open,
    },
    Format {
        name: "ftrace text",
        about: "tracefs' file `trace`, `trace-cmd report`, systrace, atrace",
        told: text::told,
        open: text::open,
    },
];

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
