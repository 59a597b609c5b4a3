//! The gate: where a machine that has prepared everything can be held, kept, and let go on more
//! than once.
//!
//! ```text
//! ready ── gate ── 40 ms awake ── late (start phase, end) ── settling ── the run
//!          │                 │
//!          a pipe: held      the host has stopped the machine by now; what it keeps goes on from there
//! ```
//!
//! Until here no run of the same experiment differs from another. Under `-icount` it makes no difference to
//! a machine where it is stopped; so a run that goes on from one that was kept gives the same bytes as one
//! that was booted, if only all of them did the same until then: where nobody holds the machine its gate is an
//! empty file, and it is awake as long. Settling lets that be forgotten.

use crate::answer::{GATE, LATE, READY};
use crate::sys::{self, HostFile};
use risetime_job::job::Job;

/// Time awake in which the machine is to be stopped, in ns: some 50 ms of the host's time.
const AWAKE: u64 = 40_000_000;

/// Waits where the host wants that, and hears what `job` does not say yet.
pub(crate) fn pass(job: &mut Job) -> Result<(), String> {
    HostFile::create(READY).map_err(|e| e.to_string())?;
    // Nothing is read from it: who goes on from a kept state has no file open.
    HostFile::wait(GATE).map_err(|e| e.to_string())?;
    let end = sys::mono() + AWAKE;
    while sys::mono() < end {}
    let late = HostFile::read(LATE).map_err(|e| e.to_string())?;
    let late = Job::parse(&String::from_utf8_lossy(&late)).map_err(|e| format!("{LATE}: {e}"))?;
    job.take_late(&late);
    Ok(())
}
