//! Drives a thread through a known pattern and records every state of its load tracking.

use risetime_host::proc_sched::{ProcSched, TaskSched};
use rustix::thread::CpuSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// One state of the signals, from when it was first seen to when another one was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// As first read.
    pub(crate) first: TaskSched,
    /// As last read: the same sums; counters and util_est may have moved on meanwhile.
    pub(crate) last: TaskSched,
    /// Time at which the state was first read.
    pub(crate) at: Duration,
    /// Time for which nobody looked before that: whatever else happened did so then.
    pub(crate) blind: Duration,
    /// Nothing was lost between the state before and this one, except in `blind`.
    pub(crate) follows: bool,
}

/// What the thread does: busy; bursts and sleeps; busy beside a competitor.
const BUSY: Duration = Duration::from_millis(300);
const BURSTS: Duration = Duration::from_millis(1300);
const RIVALRY: Duration = Duration::from_millis(400);

/// Between two looks. A reader that never pauses uses up its share of a busy CPU and is then
/// blind for many ms; one that takes little is let in at once.
const PAUSE: Duration = Duration::from_micros(60);

/// One round of about two seconds. Errors say what this machine lacks.
pub(crate) fn round() -> Result<Vec<Seen>, String> {
    let allowed = rustix::thread::sched_getaffinity(None).map_err(|e| e.to_string())?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&c| allowed.is_set(c)).collect();
    let [reader_cpu, .., task_cpu] = cpus[..] else {
        return Err(format!(
            "needs two CPUs, one to run on and one to look from; allowed: {cpus:?}"
        ));
    };
    let done = AtomicBool::new(false);
    let (ready, task_id) = mpsc::channel();
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            pin(task_cpu);
            let _ = ready.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
            pattern(task_cpu);
            done.store(true, Ordering::Relaxed);
        });
        let reader = scope.spawn(move || {
            pin(reader_cpu);
            let tid = task_id.recv().map_err(|e| e.to_string())?;
            let file = ProcSched::of_thread(tid).map_err(|e| e.to_string())?;
            Ok(record(&file, done))
        });
        reader.join().map_err(|_| "the reader panicked".to_owned())?
    })
}

/// Binds this thread to `cpu` and asks for priority, which only root gets and which only makes
/// the observations denser.
fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("cpu comes from the allowed ones");
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
}

fn pattern(cpu: usize) {
    let start = Instant::now();
    spin_until(start + BUSY);
    // One long burst lifts util, five short ones let it and then util_est sink. The odd numbers
    // walk through the positions in a tick and in a PELT period.
    for burst in 0.. {
        if start.elapsed() > BUSY + BURSTS {
            break;
        }
        let odd = burst * 373 % 1_000;
        let (run_us, sleep_us) = match burst % 6 {
            0 => (24_000 + odd, 3_000 + odd),
            1 => (1_500 + odd, 40_000 + odd),
            _ => (1_500 + odd, 11_000 + odd),
        };
        spin_until(Instant::now() + Duration::from_micros(run_us));
        std::thread::sleep(Duration::from_micros(sleep_us));
    }
    let end = start + BUSY + BURSTS + RIVALRY;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpu);
            spin_until(end);
        });
        spin_until(end);
    });
}

fn spin_until(end: Instant) {
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Reads until `done`. A state counts once it was read twice in a row: the file is not made
/// under one lock, and a reading during an update mixes old and new.
fn record(file: &ProcSched, done: &AtomicBool) -> Vec<Seen> {
    let start = Instant::now();
    let mut seen: Vec<Seen> = Vec::new();
    let mut pending: Option<Seen> = None;
    // The last moment at which the last state is known to have been the present one: before
    // the reading began, because this thread may lose its CPU at any time after that.
    let mut known_at = start;
    while !done.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(4) {
        let before = Instant::now();
        let Ok(task) = file.read() else { break };
        let now = Instant::now();
        let fresh =
            Seen { first: task, last: task, at: now - start, blind: now - known_at, follows: true };
        match (pending, seen.last_mut()) {
            (Some(p), _) if p.first.avg == task.avg => {
                seen.push(Seen { last: task, ..p });
                pending = None;
                known_at = before;
            }
            (Some(p), top) => {
                // A mixture of the states before and after it is a torn reading; anything
                // else was a state of its own, too short to be read twice.
                let torn = top.is_some_and(|top| is_mixture(&p.first, &top.first, &task));
                pending = Some(Seen { follows: p.follows && torn, ..fresh });
            }
            (None, Some(top)) if top.first.avg == task.avg => {
                top.last = task;
                known_at = before;
                std::thread::sleep(PAUSE);
            }
            (None, _) => pending = Some(fresh),
        }
    }
    seen
}

fn is_mixture(torn: &TaskSched, before: &TaskSched, after: &TaskSched) -> bool {
    let fields = |t: &TaskSched| {
        [
            t.avg.load_sum,
            t.avg.runnable_sum,
            u64::from(t.avg.util_sum),
            t.avg.load_avg,
            t.avg.runnable_avg.0,
            t.avg.util_avg.0,
            t.avg.last_update_time.0,
        ]
    };
    let (torn, before, after) = (fields(torn), fields(before), fields(after));
    (0..torn.len()).all(|i| torn[i] == before[i] || torn[i] == after[i])
}
