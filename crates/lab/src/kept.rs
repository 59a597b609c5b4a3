//! A backend whose traces are kept: who asks again gets what it gave before.
//!
//! ```text
//! DIRECTORY/laptop4-pinned-pair-30472us-0f1e2d3c4b5a6978.trace.gz
//!
//! risetime reference 1           a gzip of text
//! identity 0f1e2d3c4b5a6978      all that events and header depend on
//! note …                         what the run had to say, a line each
//! trace                          risetime_trace::recording
//! ```
//!
//! A run of a virtual machine costs 10 s, and the same one gives the same bytes. So hours of them can be stopped and gone
//! on with, and a simulator that was changed is judged again without one. Whole traces are kept and not the
//! figures that are wanted today: the start state is read from the trace too, by code that changes, and so are
//! figures. Packed, a second of two tasks takes some 25 kB.
//!
//! A file appears whole or not at all. One that cannot be read, or is of another identity, is recorded anew.
//!
//! Left out: what is no longer needed is never removed; the directory may be deleted at any time.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use risetime_model::output::whole;
use risetime_model::{Experiment, InputError, Workload, sha256};
use risetime_trace::recording::{self, Lines};
use risetime_trace::{Backend, BackendKind, Memory, Outcome, RunError, TraceSink};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The first line: what it is, and which form of it.
const FORMAT: &str = "risetime reference";
const VERSION: &str = "1";
/// No trace is longer than this when it is unpacked.
const MAX_BYTES: u64 = 1 << 30;
/// Letters of a name that stand in a file's.
const NAME: usize = 40;

/// See the head of the file.
pub struct Kept<'a> {
    backend: &'a (dyn Backend + Sync),
    directory: PathBuf,
}

impl<'a> Kept<'a> {
    /// A backend whose results are kept in `directory`, which is made if it is not there.
    ///
    /// Errors: the directory cannot be made.
    pub fn new(
        backend: &'a (dyn Backend + Sync),
        directory: PathBuf,
    ) -> Result<Kept<'a>, InputError> {
        std::fs::create_dir_all(&directory)
            .map_err(|e| InputError::new(directory.display().to_string(), e.to_string()))?;
        Ok(Kept { backend, directory })
    }

    fn path(&self, experiment: &Experiment, identity: &str) -> PathBuf {
        let plain = |name: &str| -> String {
            let letter =
                |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
            name.chars().map(letter).take(NAME).collect()
        };
        let (platform, workload) =
            (plain(&experiment.platform.name), plain(&experiment.workload.name));
        let phase = experiment.phase.0 / 1000;
        self.directory.join(format!("{platform}-{workload}-{phase}us-{identity}.trace.gz"))
    }
}

impl Backend for Kept<'_> {
    fn kind(&self) -> BackendKind {
        self.backend.kind()
    }

    fn identity(&self, experiment: &Experiment) -> Result<Option<String>, RunError> {
        self.backend.identity(experiment)
    }

    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let Some(own) = self.backend.identity(experiment)? else {
            return self.backend.run(experiment, sink);
        };
        let identity = identity(&own, experiment);
        let path = self.path(experiment, &identity);
        let known = std::fs::read(&path).ok();
        let known = known.and_then(|bytes| from_bytes(&bytes, Some(&identity), &path).ok());
        let (trace, notes) = match known {
            Some(known) => known,
            None => {
                let mut trace = Memory::new();
                let outcome = self.backend.run(experiment, &mut trace)?;
                let keep = to_bytes(&trace, &outcome.notes, &identity)
                    .and_then(|b| whole(&path, None, |e| e, |out| out.write_all(&b)));
                keep.map_err(|e| RunError::Failed(format!("{}: {e}", path.display())))?;
                (trace, outcome.notes)
            }
        };
        trace.replay(sink);
        let events = trace.events().len() as u64;
        Ok(Outcome { end: trace.end(), events, notes, timer_interrupts: None })
    }
}

/// Returns the identity of a trace of `experiment`, of whose events the backend says that they
/// depend on `own`. What is measured by the header alone, the deadlines of jobs above all, changes
/// no event, and so nothing of `own`.
fn identity(own: &str, experiment: &Experiment) -> String {
    let Experiment { workload, policy, phase, seed, .. } = experiment;
    let Workload { name, jobs, groups, .. } = &**workload;
    let header = format!("{own} {name:?} {:?} {phase:?} {seed} {jobs:?} {groups:?}", policy.name);
    sha256(&header)[..16].to_string()
}

/// A run that was kept, whatever backend it is of.
///
/// Errors: it cannot be read, or is no such file.
pub fn read_kept(path: &Path) -> Result<Memory, InputError> {
    let place = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|e| InputError::new(place, e.to_string()))?;
    Ok(from_bytes(&bytes, None, path)?.0)
}

fn to_bytes(trace: &Memory, notes: &[String], identity: &str) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    writeln!(out, "{FORMAT} {VERSION}\nidentity {identity}")?;
    for note in notes {
        writeln!(out, "note {}", note.replace('\n', " "))?;
    }
    writeln!(out, "trace")?;
    recording::write(trace, &mut out)?;
    out.finish()
}

/// Unpacks a gzip of text.
///
/// Errors: it is damaged, or longer than [`MAX_BYTES`].
fn unpacked(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => {
            Err(io::Error::other(format!("too big: more than {} MiB unpacked", MAX_BYTES >> 20)))
        }
        false => Ok(text),
    }
}

fn from_bytes(
    bytes: &[u8],
    identity: Option<&str>,
    path: &Path,
) -> Result<(Memory, Vec<String>), InputError> {
    let place = path.display().to_string();
    let text = unpacked(bytes).map_err(|e| InputError::new(&place, e.to_string()))?;
    let lines = &mut Lines::new(&text, &place);
    for (key, wanted) in [(FORMAT, Some(VERSION)), ("identity", identity)] {
        let found = lines.value(key)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            return Err(lines.error(format!("found `{found}`, wanted `{key} {wanted}`")));
        }
    }
    let mut notes = Vec::new();
    while let Some(note) = lines.opt_value("note") {
        notes.push(note.to_string());
    }
    lines.value("trace")?;
    Ok((recording::read(lines)?, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use risetime_kernel::units::Span;
    use risetime_sim::Simulator;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A backend as the virtual machine is: two experiments whose tasks do the same give the same
    /// events.
    struct Machine(AtomicU32);

    impl Backend for Machine {
        fn kind(&self) -> BackendKind {
            BackendKind::Vm
        }
        fn identity(&self, e: &Experiment) -> Result<Option<String>, RunError> {
            Ok(Some(sha256(&format!("{:?} {:?}", e.workload.tasks, e.settings))[..16].to_string()))
        }
        fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Simulator.run(e, sink)
        }
    }

    fn experiment() -> Experiment {
        let request = Request { seconds: Some(0.3), ..Request::new("periodic", "m1") };
        request.experiments().expect("built in").remove(0)
    }

    /// The deadlines of jobs are in the header only: a trace that was kept under another deadline would
    /// tell the misses of that one.
    #[test]
    fn a_kept_trace_is_not_given_for_other_deadlines() {
        let directory = std::env::temp_dir().join(format!("risetime-kept-{}", std::process::id()));
        let machine = Machine(AtomicU32::new(0));
        let kept = Kept::new(&machine, directory.clone()).expect("it can be made");
        let deadlines = |e: &Experiment| {
            let mut trace = Memory::new();
            kept.run(e, &mut trace).expect("it runs");
            let asked = trace.header().and_then(|header| header.asked.clone()).expect("asked for");
            asked.jobs.iter().map(|job| job.deadline).collect::<Vec<_>>()
        };
        let e = experiment();
        let mut tight = Workload::clone(&e.workload);
        tight.jobs.iter_mut().for_each(|job| job.deadline = Some(Span(77)));
        let tight = Experiment { workload: Arc::new(tight), ..e.clone() };
        let wanted =
            |e: &Experiment| e.workload.jobs.iter().map(|job| job.deadline).collect::<Vec<_>>();
        for e in [&e, &tight, &e, &tight] {
            assert_eq!(deadlines(e), wanted(e));
        }
        assert_ne!(wanted(&e), wanted(&tight));
        assert_eq!(machine.0.load(Ordering::Relaxed), 2, "each is run once");
        // The name of a workload or policy, the seed and the start phase are told, too.
        let seeded = Experiment { seed: e.seed + 1, ..e.clone() };
        deadlines(&seeded);
        assert_eq!(machine.0.load(Ordering::Relaxed), 3);
        std::fs::remove_dir_all(directory).expect("it is there");
    }
}
