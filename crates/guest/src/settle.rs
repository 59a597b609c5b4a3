//! Letting the boot's utilisation estimates decay, before they are taken for the workload's.
//!
//! Boot leaves `util_est` of up to 330 in kernel threads, and a full 1024 in this one: one wakeup
//! near the start would lift a cluster by several OPPs and close the rate limit's window. An
//! estimate only decays when its task runs and sleeps again, by a quarter each time down to
//! about 9 (below that the kernel leaves it), so every thread must be made to run some 15 times.
//!
//! ```text
//! once a second, on each CPU:   sleep until just before a tick · dirty some memory · stay awake
//!                               past the tick
//! ```
//!
//! The memory gives the CPU's statistics worker (`vmstat_update`) something to do, and the tick
//! while the CPU is awake lets deferrable timers expire, which start it; on an idle CPU they
//! never do. Idle time costs nothing under `-icount sleep=off`: 30 s of settling take about half
//! a second. Measured on Linux 7.2.13: after 15 s no kernel thread that ran in the next two
//! seconds had more than 9, against 285 without.
//!
//! In the last two rounds the statistics workers are told to come back in a day: a run of some
//! seconds is then not disturbed by them.
//!
//! Left out: threads that the tick does not start (they are as boot left them until they run).

use crate::sys;
use risetime_job::job::Job;
use std::io;

/// A CPU is visited this often.
const EVERY: u64 = 1_000_000_000;
/// Awake so long before and after a tick.
const MARGIN: u64 = 30_000;
/// Memory dirtied in a visit: enough to be counted, and given back at once.
const DIRTY: usize = 256 << 10;

/// Interval of the statistics workers (s), here and in the run.
const STATISTICS: (&str, &str) = ("/proc/sys/vm/stat_interval", "86400");

/// Part of the settling that is left when the agent hears the last of its job: the two last rounds,
/// and some in which it is forgotten that it was awake at the gate.
const LAST: u64 = 4 * EVERY;

/// Settles before the gate.
pub(crate) fn first(job: &Job) -> io::Result<()> {
    rounds(job, job.settle_ns.saturating_sub(LAST), false)
}

/// Settles behind it.
pub(crate) fn last(job: &Job) -> io::Result<()> {
    rounds(job, job.settle_ns.min(LAST), true)
}

/// Visits the CPUs for `ns`. `quiet`: the statistics workers sleep from the last two rounds on.
fn rounds(job: &Job, ns: u64, mut quiet: bool) -> io::Result<()> {
    let tick = sys::tick();
    let cpus = job.cpus.len() as u32;
    let mut at = sys::mono();
    let end = at + ns;
    while cpus > 0 && at < end {
        if quiet && at + 2 * EVERY >= end {
            quiet = false;
            // A kernel without this setting has no such workers.
            let _ = std::fs::write(STATISTICS.0, STATISTICS.1);
        }
        for cpu in 0..cpus {
            at = (at + EVERY / u64::from(cpus)).next_multiple_of(tick);
            sys::set_affinity([cpu])?;
            sys::sleep_until(at - MARGIN);
            std::hint::black_box(&mut vec![1_u8; DIRTY]);
            while sys::mono() < at + MARGIN {}
        }
    }
    Ok(())
}
