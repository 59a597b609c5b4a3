//! `risetime convert`: a trace in another format.

use crate::args::Convert;
use crate::output::{self, Failure};
use crate::written::{Format, Writer};
use risetime_kernel::units::{Instant, TaskId};
use risetime_model::InputError;
use risetime_read::{Beside, Mark, Options, Source, read, read_beside};
use risetime_trace::write::Numbers;
use risetime_trace::{Event, Header, Hears, TraceSink};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn convert(args: &Convert) -> Result<ExitCode, Failure> {
    let format = Format::of(&args.output)?;
    let source = Source::open(Path::new(&args.input))
        .map_err(|e| InputError::new(&*args.input, output::system_words(&e)))?;
    let options = Options { buffer: args.buffer.clone(), ..Options::default() };
    // Threads keep their numbers, which are all known only at the end.
    let summary = read(&source, &mut (), &options)?;
    let processes = summary.processes.iter().copied().chain(std::iter::repeat(0));
    let threads = summary.threads.iter().map(|thread| thread.pid).zip(processes).collect();
    let numbers = Numbers { threads, base: summary.base };
    output::write_whole(&args.output, |file| {
        let writer = RefCell::new(Writer::new(format, file, numbers));
        read_beside(&source, &mut Events(&writer), &mut Marks(&writer), &options)?;
        writer.into_inner().finish().map_err(|e| Failure::unwritten(&args.output, &e))
    })?;
    for note in &summary.notes {
        output::note(&format!("{}: {note}", args.input));
    }
    let (n, from) = (summary.records, summary.format);
    output::note(&format!("{}: {n} events, read as {from}", args.output.display()));
    Ok(ExitCode::SUCCESS)
}

/// The events of a trace, for a writer that takes marks, too.
struct Events<'a, W: Write>(&'a RefCell<Writer<W>>);

impl<W: Write> TraceSink for Events<'_, W> {
    fn header(&mut self, header: &Header) {
        self.0.borrow_mut().header(header);
    }
    fn event(&mut self, at: Instant, event: &Event) {
        self.0.borrow_mut().event(at, event);
    }
    fn end(&mut self, at: Instant) {
        self.0.borrow_mut().end(at);
    }
    fn listens(&self) -> Hears {
        self.0.borrow().listens()
    }
}

/// The marks of a trace, as Android's programs write them.
struct Marks<'a, W: Write>(&'a RefCell<Writer<W>>);

impl<W: Write> Beside for Marks<'_, W> {
    fn mark(&mut self, at: Instant, task: Option<TaskId>, process: i32, mark: &Mark<'_>) {
        let text = match *mark {
            Mark::Begin { name } => format!("B|{process}|{name}"),
            Mark::End => format!("E|{process}"),
            Mark::AsyncBegin { name, cookie } => format!("S|{process}|{name}|{cookie}"),
            Mark::AsyncEnd { name, cookie } => format!("F|{process}|{name}|{cookie}"),
            Mark::Counter { name, value } => format!("C|{process}|{name}|{value}"),
            Mark::Text(text) => text.to_string(),
            Mark::Frame { layer, token, jank, .. } => {
                let layer = if layer.is_empty() { "display" } else { layer };
                let what = if jank == 0 { "in time" } else { "jank" };
                format!("I|{process}|frame {token} of {layer}: {what} {jank:#x}")
            }
        };
        self.0.borrow_mut().print(at, task, &text);
    }
}
