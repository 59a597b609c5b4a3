//! CPUs that go offline and come back in the run.
//!
//! ```text
//! this thread, on CPU 0    sleeps until time 0 + at ─> /sys/devices/system/cpu/cpuN/online  0 | 1
//! the kernel               does it in steps, some of them on CPU N, over some ms: the trace says
//!                          when (cpuhp_enter, cpuhp_exit)
//! end of the run           the thread is told to go, and every CPU is online again
//! ```
//!
//! CPU 0 cannot go, and is where the kernel does its part that is not bound to the CPU in question.

use crate::experiment::OWN;
use crate::sys;
use risetime_job::job::Job;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A CPU is on its way.
static GOING_ON: AtomicBool = AtomicBool::new(false);

/// Errors of the hotplug thread.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The changes of `job`, by a thread of their own, counted from `start` on CLOCK_MONOTONIC.
///
/// Errors: no thread.
pub(crate) fn plan(job: &'static Job, clamps: bool, start: u64) -> io::Result<()> {
    if job.hotplug.is_empty() {
        return Ok(());
    }
    let carry_out = move || {
        let ready = sys::set_affinity([0]).and_then(|()| sys::set_sched(OWN, clamps));
        if let Err(e) = ready {
            return fail(format!("hotplug: {e}"));
        }
        for change in &job.hotplug {
            sys::sleep_until(start + change.at.0);
            if let Err(e) = set_online(change.cpu.0, change.online) {
                return fail(e);
            }
        }
    };
    thread::Builder::new().name("hotplug".into()).spawn(carry_out).map(drop)
}

/// Brings every CPU online again. Returns what went wrong during the run, or here.
pub(crate) fn restore(job: &Job) -> Vec<String> {
    let mut failed = std::mem::take(&mut *FAILED.lock().unwrap_or_else(|e| e.into_inner()));
    let mut cpus: Vec<u32> = job.hotplug.iter().map(|change| change.cpu.0).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for cpu in cpus {
        let now = std::fs::read_to_string(path(cpu)).unwrap_or_default();
        if now.trim() != "1" {
            failed.extend(set_online(cpu, true).err());
        }
    }
    failed
}

/// Whether a CPU is on its way: who reads a frequency then waits until it is there, since its policy
/// is locked.
pub(crate) fn going_on() -> bool {
    GOING_ON.load(Ordering::Relaxed)
}

fn set_online(cpu: u32, online: bool) -> Result<(), String> {
    let (path, value) = (path(cpu), if online { "1" } else { "0" });
    GOING_ON.store(true, Ordering::Relaxed);
    let done = std::fs::write(&path, value);
    GOING_ON.store(false, Ordering::Relaxed);
    done.map_err(|e| format!("{path}: {value}: {e}"))
}

fn path(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/online")
}

fn fail(what: String) {
    FAILED.lock().unwrap_or_else(|e| e.into_inner()).push(what);
}
