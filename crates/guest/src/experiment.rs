//! The workload on the clock: tasks created, phases marked, the end kept.
//!
//! ```text
//! visits       each CPU in turn, for a moment, so that the trace holds its signals; those whose
//!              frequency is still above the lowest again, until it has fallen
//! time 0       the first tick that is at least LEAD, and twice the longest rate limit, after
//!              them; `rt start`
//! creation     time 0 + phase + the task's delay, by this thread, which stays on the first CPU
//! end          time 0 + duration; `rt end`, tracing off
//! ```
//!
//! The first task is created pinned to the first CPU and may go where it is allowed as its first
//! act; the others are placed by the kernel as their parent's children. Attributes are the
//! parent's at the moment of creation, so that a task has them from its first enqueue; only its task
//! group it enters as its first act, as rt-app's threads do.
//!
//! Timer slack: this thread's is 1 ns, the least there is, so that tasks are created in time. Theirs is the
//! job's. The kernel takes it from a thread that becomes a real-time or deadline task, and gives back what its
//! creator had; so each thread, this one too, asks for its own again when its policy has changed
//! (`__setscheduler_params`, `PR_SET_TIMERSLACK`: the same in all kernels from 6.1 to 7.3).
//!
//! This thread takes some 50 µs of the first CPU for each creation. It asks for a slice of
//! 0.1 ms, so that it is let in quickly where that CPU is busy; by a real-time task it is not, for which
//! there is the [starter](crate::starter). A task that starts late nevertheless is named in the answer.

use crate::cgroup::Cgroups;
use crate::ender::{self, Ender};
use crate::hotplug;
use crate::starter::Starter;
use crate::sync::Objects;
use crate::sys::{self, Sched};
use crate::tracefs::Tracer;
use crate::work::{Speeds, Worker, policy_dir};
use risetime_job::job::{Attr, Job, Task, event_text};
use risetime_job::mark::JobMark;
use risetime_job::program::{Counter, Step};
use risetime_job::{Event, LOG_BUFFER, MAX_FORKS, Policy};
use risetime_kernel::units::{Instant, Span, Util};
use std::io;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread;

/// Time before time 0 in which this thread sleeps.
const LEAD: u64 = 50_000_000;
/// Number of visits of a CPU whose frequency does not fall. Signals fall by half in 32 ms.
const VISITS: usize = 40;
/// Between two visits: a signal is traced when a period of PELT, some milliseconds at the lowest
/// speed, has passed since its last update.
const BETWEEN_VISITS: u64 = 11_000_000;
/// Lateness of a task's start from which on it is told, in ns.
const LATE: u64 = 1_000_000;
/// 0 would ask for what the creator had.
const LEAST_SLACK: NonZeroU64 = NonZeroU64::MIN;
/// Stack size of a task's thread.
const STACK: usize = 1 << 16;
/// Marks of a task's jobs for which there is room from the start.
const MANY_MARKS: usize = 4096;
pub(crate) const OWN: Sched =
    Sched { policy: Policy::Other { slice: Some(Span(100_000)) }, nice: 0, clamp: (None, None) };

/// File of a kernel that has utilisation clamps.
const CLAMPS: &str = "/proc/sys/kernel/sched_util_clamp_min";

/// State that all threads share. It lives for ever: threads may still run when the trace is read.
struct Shared {
    job: Job,
    /// Speeds by task, and one for all that are forked.
    speeds: Vec<Speeds>,
    tracer: Option<Tracer>,
    clamps: bool,
    failures: Mutex<Vec<String>>,
    pids: Vec<AtomicI32>,
    /// Marks by task, when something came up about its jobs.
    marks: Vec<Mutex<Vec<Noted>>>,
    objects: Objects,
    cgroups: Cgroups,
    log: Log,
    starter: Option<Starter>,
    /// Start of the workload on CLOCK_MONOTONIC, in ns.
    began: AtomicU64,
    /// Tasks that were forked, in that order.
    forks: Mutex<Vec<Forked>>,
}

/// File that stands for a task's log: what writes it out takes is the kernel's.
struct Log(std::fs::File);

impl Log {
    fn open() -> io::Result<Log> {
        let path = std::env::temp_dir().join("risetime-rt-app.log");
        std::fs::create_dir_all(std::env::temp_dir())?;
        Ok(Log(std::fs::File::create(path)?))
    }

    /// Writes out what the C library would have kept until then, always over the same place.
    fn write(&self) {
        use std::os::unix::fs::FileExt;
        let _ = self.0.write_at(&[b' '; LOG_BUFFER as usize], 0);
    }
}

/// A mark: when something came up about a task's jobs, on CLOCK_MONOTONIC in ns.
pub(crate) type Noted = (u64, JobMark);

/// A forked task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forked {
    /// Task of `Job::forked` that it is a copy of.
    pub(crate) of: u32,
    /// Thread id; 0: never ran.
    pub(crate) pid: i32,
}

/// Outcome of a workload.
pub(crate) struct Done {
    /// The tracer, stopped.
    pub(crate) tracer: &'static Option<Tracer>,
    /// Time 0 on CLOCK_MONOTONIC.
    pub(crate) start: u64,
    /// A tick, by the same clock.
    pub(crate) tick: Option<u64>,
    /// Thread ids; 0: never ran.
    pub(crate) pids: Vec<i32>,
    /// Tasks that were forked: whose, and their thread ids.
    pub(crate) forks: Vec<Forked>,
    /// Marks of each task's jobs.
    pub(crate) marks: Vec<Vec<Noted>>,
    /// Tasks of the job that started [`LATE`] or more after they were due, and by how much, in ns.
    pub(crate) late: Vec<(usize, u64)>,
    /// Failures; empty: all well.
    pub(crate) failures: Vec<String>,
}

/// Runs the tasks of `job`. When it returns, tracing has stopped; tasks may still be busy.
pub(crate) fn run(job: Job, tracer: Option<Tracer>) -> io::Result<Done> {
    let speeds = Speeds::open_each(&job.cpus, job.tasks.len() + 1)?;
    let pids = job.tasks.iter().map(|_| AtomicI32::new(0)).collect();
    let clamps = std::path::Path::new(CLAMPS).exists();
    let (job_tasks, objects) = (job.tasks.len(), Objects::new(&job.objects));
    let cgroups = Cgroups::create(&job).map_err(io::Error::other)?;
    let starter = Starter::of(&job, STACK)?;
    let shared: &Shared = Box::leak(Box::new(Shared {
        job,
        speeds,
        tracer,
        clamps,
        failures: Mutex::default(),
        pids,
        marks: (0..job_tasks).map(|_| Mutex::new(Vec::with_capacity(MANY_MARKS))).collect(),
        objects,
        cgroups,
        log: Log::open()?,
        starter,
        began: AtomicU64::new(0),
        forks: Mutex::default(),
    }));
    let job = &shared.job;
    go(shared, &[job.first_cpu])
        .map_err(|e| io::Error::new(e.kind(), format!("first CPU {}: {e}", job.first_cpu)))?;
    own(shared)?;
    // The code that creates threads is then in memory and not read in when time counts.
    let _ = thread::Builder::new().stack_size(STACK).spawn(|| ()).map(thread::JoinHandle::join);
    let ender = Ender::of(job, STACK, || mark(shared, "rt end"))?;
    let trace =
        |on: bool| shared.tracer.as_ref().map_or(Ok(()), |t| if on { t.start() } else { t.stop() });
    trace(true)?;
    visit(shared)?;
    mark_frequencies(shared);
    if let Some(t) = &shared.tracer {
        t.end_of_before();
    }
    // What lies between the two clocks; the least of them is within a µs or two.
    (0..3).for_each(|_| mark(shared, &format!("rt mono {}", sys::mono())));
    let start = (sys::mono() + lead(job)).next_multiple_of(job.tick_ns.max(1));
    shared.began.store(start + job.phase_ns, Ordering::Relaxed);
    if let Some(ender) = &ender {
        ender.tell(start + job.duration_ns);
    }
    hotplug::plan(job, shared.clamps, start + job.phase_ns)?;
    sys::sleep_until(start);
    mark(shared, "rt start");

    let late = create_all(shared, start)?;
    sys::sleep_until(start + job.duration_ns);
    mark(shared, "rt end");
    if let Some(ender) = &ender {
        ender.reached();
    }
    sys::sleep_until(start + job.duration_ns + job.linger_ns);
    trace(false)?;
    if ender.is_some() {
        ender::demote(shared.pids.iter().map(|pid| pid.load(Ordering::Relaxed)));
    }
    let tick = sys::a_tick();
    let mut failures =
        std::mem::take(&mut *shared.failures.lock().unwrap_or_else(|e| e.into_inner()));
    failures.extend(hotplug::restore(job));
    let pids = shared.pids.iter().map(|p| p.load(Ordering::Relaxed)).collect();
    let forks = std::mem::take(&mut *shared.forks.lock().unwrap_or_else(|e| e.into_inner()));
    let marks = shared
        .marks
        .iter()
        .map(|own| std::mem::take(&mut *own.lock().unwrap_or_else(|e| e.into_inner())));
    let marks = marks.collect();
    Ok(Done { tracer: &shared.tracer, start, tick, pids, forks, marks, late, failures })
}

/// Creates the tasks, each when it is due after time 0, which is `start`; which of them came late, and by how much, in ns.
fn create_all(shared: &'static Shared, start: u64) -> io::Result<Vec<(usize, u64)>> {
    let (job, mut late) = (&shared.job, Vec::new());
    let due = |index: usize| start + job.phase_ns + job.tasks[index].delay.0;
    let end = start + job.duration_ns;
    let mut order: Vec<usize> = (0..job.tasks.len()).filter(|i| due(*i) < end).collect();
    order.sort_by_key(|i| job.tasks[*i].delay);
    watch(shared, order.first().map(|i| due(*i)))?;
    for (created, index) in order.iter().copied().enumerate() {
        sys::sleep_until(due(index));
        let now = sys::mono();
        if now >= due(index) + LATE {
            late.push((index, now - due(index)));
        }
        if now >= end {
            let cpu = job.first_cpu;
            let what = format!(
                "not started: real-time tasks left the thread that starts tasks no time on CPU{cpu} \
                 (first_cpu names another one, fair_server_runtime_ns above 0 leaves it some)"
            );
            fail(shared, &job.tasks[index], &what);
            break;
        }
        if let Some(tracer) = shared.tracer.as_ref().filter(|_| created == 0) {
            tracer.begin_idle_times()?;
        }
        create(shared, index, created == 0, order.get(created + 1).map(|i| due(*i)))?;
    }
    Ok(late)
}

/// Sets when the creator is raised: where it has not come to it soon after `due`.
fn watch(shared: &Shared, due: Option<u64>) -> io::Result<()> {
    shared.starter.as_ref().map_or(Ok(()), |starter| starter.watch(due))
}

/// Takes the calling thread, which is in no task group, to `cpus`, and into the partition that has them.
fn go(shared: &Shared, cpus: &[u32]) -> io::Result<()> {
    if shared.cgroups.partitioned() {
        shared.cgroups.enter(0, cpus)?;
    }
    sys::set_affinity(cpus.iter().copied())
}

/// Sets this thread's own attributes.
fn own(shared: &Shared) -> io::Result<()> {
    sys::set_sched(OWN, shared.clamps)?;
    Ok(rustix::thread::set_current_timer_slack(Some(LEAST_SLACK))?)
}

/// Wakes up on each CPU in turn, and on the first CPU last: that brings each one's signals up to
/// date, and so into the trace. A governor looks at a frequency when its CPU does something: what
/// booting has left high falls now, and not at time 0, where it would begin a rate limit.
fn visit(shared: &Shared) -> io::Result<()> {
    let job = &shared.job;
    let at = |cpu: u32| {
        go(shared, &[cpu])?;
        sys::sleep_until(sys::mono() + BETWEEN_VISITS);
        Ok::<_, io::Error>(())
    };
    let cpus = 0..job.cpus.len() as u32;
    cpus.clone().filter(|c| *c != job.first_cpu).try_for_each(at)?;
    for _ in 0..VISITS {
        let raised = |cpu: &u32| {
            let policy = job.cpus[*cpu as usize].policy;
            let khz = |file: &str| number(&format!("{}/{file}", policy_dir(policy)));
            policy == *cpu && khz("scaling_cur_freq") > khz("scaling_min_freq")
        };
        let raised: Vec<u32> = cpus.clone().filter(raised).collect();
        if raised.is_empty() {
            break;
        }
        raised.into_iter().try_for_each(at)?;
    }
    at(job.first_cpu)
}

/// The time before time 0 in which nothing happens, in ns.
fn lead(job: &Job) -> u64 {
    let own = job.cpus.iter().map(|c| format!("{}/schedutil/rate_limit_us", policy_dir(c.policy)));
    let shared = "/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us".to_string();
    let longest = own.chain([shared]).filter_map(|path| number(&path)).max().unwrap_or(0);
    LEAD.max(longest.saturating_mul(2_000))
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Marks the frequency of each policy before time 0, which no event says.
fn mark_frequencies(shared: &Shared) {
    let mut policies: Vec<u32> = shared.job.cpus.iter().map(|c| c.policy).collect();
    policies.dedup();
    for policy in policies {
        let path = format!("{}/scaling_cur_freq", policy_dir(policy));
        if let Ok(khz) = std::fs::read_to_string(path) {
            mark(shared, &format!("rt freq {policy} {}", khz.trim()));
        }
    }
}

fn mark(shared: &Shared, text: &str) {
    if let Some(t) = &shared.tracer {
        t.mark(text);
    }
}

/// Creates a task, which inherits its attributes from this thread, unless that had to be raised above all; the next one is
/// due at `next`.
fn create(shared: &'static Shared, index: usize, first: bool, next: Option<u64>) -> io::Result<()> {
    let (task, job) = (&shared.job.tasks[index], &shared.job);
    let mut attrs = Attributes::default();
    attrs.take(&task.attr);
    let named = |e: io::Error| io::Error::new(e.kind(), format!("task {}: {e}", task.comm));
    watch(shared, Some(sys::mono()))?;
    if !first {
        go(shared, &attrs.cpus(job)).map_err(named)?;
    }
    let clamps = shared.clamps || attrs.clamped();
    let fair = matches!(attrs.inherited().policy, Policy::Other { .. } | Policy::Batch { .. });
    let above = shared.starter.as_ref().is_some_and(Starter::is_above);
    if !fair && !above {
        // No other policy gives back the slice that this thread asked for (`__setparam_fair`).
        sys::set_sched(Sched::default(), clamps).map_err(named)?;
    }
    // As a fair thread it would be kept away again.
    if !(fair && above) {
        shared.starter.iter().for_each(Starter::comes_down);
        sys::set_sched(attrs.inherited(), clamps).map_err(named)?;
    }
    // A thread's name holds no NUL, and the kernel keeps 15 bytes of it.
    let name = task.comm.replace('\0', "?");
    thread::Builder::new()
        .name(name)
        .stack_size(STACK)
        .spawn(move || live(shared, index, first, attrs))
        .map_err(named)?;
    watch(shared, next)?;
    match &shared.starter {
        // The task that was created, or one before, keeps a fair thread away.
        Some(starter) if (!fair || above) && next.is_some_and(|next| next <= sys::mono()) => {
            starter.raise()?;
        }
        starter => {
            starter.iter().for_each(Starter::comes_down);
            own(shared)?;
        }
    }
    match go(shared, &[job.first_cpu]) {
        // The first CPU may be offline; the kernel has put this thread elsewhere then.
        Err(_) if !job.hotplug.is_empty() => Ok(()),
        done => done,
    }
}

/// A task's life.
fn live(shared: &'static Shared, index: usize, first: bool, mut attrs: Attributes) {
    let task = &shared.job.tasks[index];
    let cpus = attrs.cpus(&shared.job);
    if first && let Err(e) = go(shared, &cpus) {
        return fail(shared, task, &format!("affinity: {e}"));
    }
    if attrs.group != 0
        && let Err(e) = attrs.enter(shared)
    {
        return fail(shared, task, &format!("task group: {e}"));
    }
    let bare = shared.starter.as_ref().is_some_and(Starter::was_above);
    if (bare || attrs.inherited() != attrs.sched)
        && let Err(e) = sys::set_sched(attrs.sched, shared.clamps || attrs.clamped())
    {
        return fail(shared, task, &format!("policy: {e}"));
    }
    shared.pids[index].store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    carry_out(shared, task, Counter::of(task), index, &mut attrs);
}

fn fail(shared: &Shared, task: &Task, what: &str) {
    let mut failures = shared.failures.lock().unwrap_or_else(|e| e.into_inner());
    failures.push(format!("task {}: {what}", task.comm));
}

/// The calling task's timer slack, unless it is that of this agent, which it has from its creator.
fn ask_for_slack(job: &Job) -> io::Result<()> {
    let slack = NonZeroU64::new(job.timer_slack_ns).filter(|slack| *slack > LEAST_SLACK);
    slack.map_or(Ok(()), |slack| Ok(rustix::thread::set_current_timer_slack(Some(slack))?))
}

/// Carries out the program of `task`, which is the `number`th thread.
fn carry_out(
    shared: &'static Shared,
    task: &Task,
    mut program: Counter,
    number: usize,
    attrs: &mut Attributes,
) {
    if let Err(e) = ask_for_slack(&shared.job) {
        return fail(shared, task, &format!("timer slack: {e}"));
    }
    let mut worker = Worker::new(&shared.speeds[number.min(shared.job.tasks.len())]);
    loop {
        let mut failed = None;
        let now = sys::mono();
        let step = loop {
            match program.next(task, Instant(now)) {
                Some(Step::Phase(phase)) => {
                    mark(shared, &format!("rt phase {number} {phase}"));
                    failed = attrs.apply(&task.phases[phase].attr, shared).err().or(failed.take());
                }
                step => break step,
            }
        };
        if let Some(e) = failed {
            return fail(shared, task, &format!("attributes: {e}"));
        }
        note(shared, number, now, program.take_marks());
        match step {
            Some(Step::Run(..) | Step::Pieces { .. }) if program.busy_for_ever(task) => {
                worker.run_for_ever()
            }
            // Work of any kind is the same loop.
            Some(Step::Run(work, _)) => worker.run(work.0),
            Some(Step::Pieces { until, piece }) => worker.run_pieces(until.0, piece.0),
            Some(Step::Log) => shared.log.write(),
            Some(Step::Busy(span)) => worker.busy(span.0),
            Some(Step::SleepUntil(at)) => sys::sleep_until(at.0),
            Some(Step::SharedTimer(timer, period, began)) => {
                let now = sys::mono();
                let expiry = shared.objects.timer(timer, period, began.0, now);
                program.timer_used(timer, period, &expiry);
                note(shared, number, now, program.take_marks());
                expiry.sleeps.into_iter().for_each(|until| sys::sleep_until(until.0));
            }
            Some(Step::Act(Event::Yield))
                if number < shared.pids.len()
                    && matches!(attrs.sched.policy, Policy::Deadline { .. }) =>
            {
                // The kernel's trace calls a task that waits for its next period preempted.
                mark(shared, &format!("rt yields {number}"));
                rustix::thread::sched_yield();
                mark(shared, &format!("rt goes_on {number}"));
            }
            Some(Step::Act(event)) => {
                if let Err(what) = act(shared, event, attrs) {
                    return fail(shared, task, &what);
                }
                if shared.objects.spins(event) {
                    worker.leave_out_waiting();
                }
            }
            // The loop above takes phases in.
            Some(Step::Exit | Step::Phase(_)) => return,
            None => return fail(shared, task, "makes no progress"),
        }
    }
}

/// Notes what comes up about the jobs of the `number`th thread; those of forked ones nobody asks for.
fn note(shared: &Shared, number: usize, now: u64, marks: impl Iterator<Item = JobMark>) {
    if let Some(own) = shared.marks.get(number) {
        let mut own = own.lock().unwrap_or_else(|e| e.into_inner());
        own.extend(marks.map(|mark| (now, mark)));
    }
}

/// Carries out an event that concerns other tasks.
fn act(shared: &'static Shared, event: Event, attrs: &Attributes) -> Result<(), String> {
    let o = &shared.objects;
    match event {
        Event::Yield => rustix::thread::sched_yield(),
        Event::Lock(m) => o.lock(m),
        Event::Unlock(m) => o.unlock(m),
        Event::Wait { cond, mutex } => o.wait(cond, mutex),
        Event::Signal(c) => o.signal(c),
        Event::Broadcast(c) => o.broadcast(c),
        Event::Barrier(b) => o.barrier(b),
        Event::SemWait(s) => o.sem_wait(s),
        Event::SemPost(s) => o.sem_post(s),
        Event::Fork(of) => return fork(shared, of, attrs),
        Event::Run(_)
        | Event::RunOf { .. }
        | Event::Runtime { .. }
        | Event::Sleep(_)
        | Event::Busy(_)
        | Event::Duty(_)
        | Event::Timer { .. } => {}
    }
    Ok(())
}

/// Creates a thread from the one that forks: it begins with that one's attributes.
fn fork(shared: &'static Shared, of: u32, parent: &Attributes) -> Result<(), String> {
    let task = &shared.job.forked[of as usize];
    let (number, nth) = {
        let mut forks = shared.forks.lock().unwrap_or_else(|e| e.into_inner());
        let nth = forks.iter().filter(|f| f.of == of).count() as u32;
        forks.push(Forked { of, pid: 0 });
        (forks.len() - 1, nth)
    };
    if nth >= MAX_FORKS {
        return Err(format!("it forks {} for the {}th time", task.comm, nth + 1));
    }
    let mut attrs = parent.clone();
    thread::Builder::new()
        .name(fork_name(&task.comm, nth).replace('\0', "?"))
        .stack_size(STACK)
        .spawn(move || {
            {
                let mut forks = shared.forks.lock().unwrap_or_else(|e| e.into_inner());
                // A forked task that first runs when the run is over is in no list any more.
                let Some(own) = forks.get_mut(number) else { return };
                own.pid = rustix::thread::gettid().as_raw_nonzero().get();
            }
            let own = Attr {
                policy: task.attr.policy.or(Some(Policy::default())),
                nice: task.attr.nice.or(Some(0)),
                ..task.attr.clone()
            };
            if let Err(e) = attrs.apply(&own, shared) {
                return fail(shared, task, &format!("attributes: {e}"));
            }
            let began = shared.began.load(Ordering::Relaxed) + task.delay.0;
            if task.delay > Span(0) {
                sys::sleep_until(began);
            }
            let mut program = Counter::of(task);
            program.count_timers_from(Instant(began));
            carry_out(shared, task, program, shared.job.tasks.len() + number, &mut attrs);
        })
        .map(drop)
        .map_err(|e| format!("fork: {e}"))
}

/// The name of the `nth` fork of a task, as rt-app numbers them.
fn fork_name(comm: &str, nth: u32) -> String {
    format!("{comm}-{nth:04}")
}

/// A thread's attributes as they are now.
#[derive(Clone, Debug, Default)]
struct Attributes {
    cpus: Option<Vec<u32>>,
    /// Task group, 0: none.
    group: u32,
    sched: Sched,
}

impl Attributes {
    /// Takes over what `attr` says; what it leaves out stays. Whether clamps or nice value, and
    /// whether the affinity, are there to be changed.
    fn take(&mut self, attr: &Attr) -> (bool, bool) {
        let before = self.sched;
        self.sched.policy = attr.policy.unwrap_or(before.policy);
        self.sched.nice = attr.nice.unwrap_or(before.nice);
        self.sched.clamp = (attr.uclamp_min.or(before.clamp.0), attr.uclamp_max.or(before.clamp.1));
        if attr.cpus.is_some() {
            self.cpus.clone_from(&attr.cpus);
        }
        self.group = attr.group.unwrap_or(self.group);
        (self.sched != before, attr.cpus.is_some())
    }

    /// Takes over `attr` for the calling thread, and tells the kernel what has changed.
    fn apply(&mut self, attr: &Attr, shared: &Shared) -> io::Result<()> {
        let (sched, affinity) = self.take(attr);
        if sched {
            sys::set_sched(self.sched, shared.clamps || self.clamped())?;
            ask_for_slack(&shared.job)?;
        }
        let partitioned = shared.cgroups.partitioned();
        if attr.group.is_some() || (affinity && partitioned) {
            self.enter(shared)?;
        }
        if affinity && !partitioned { sys::set_affinity(self.cpus(&shared.job)) } else { Ok(()) }
    }

    /// Takes the calling thread to its group, or to the partition of its CPUs.
    fn enter(&self, shared: &Shared) -> io::Result<()> {
        let cpus = self.cpus(&shared.job);
        shared.cgroups.enter(self.group, &cpus)?;
        // Up to 6.1 a thread that enters a cpuset has all its CPUs, whatever it asked for before.
        if shared.cgroups.partitioned() { sys::set_affinity(cpus) } else { Ok(()) }
    }

    /// The attributes that a new thread inherits. None is created as a deadline task; and a thread
    /// that creates idle threads is idle as long, and may not come to it for seconds.
    fn inherited(&self) -> Sched {
        match self.sched.policy {
            Policy::Deadline { .. } | Policy::Idle => {
                Sched { policy: Policy::default(), ..self.sched }
            }
            _ => self.sched,
        }
    }

    fn clamped(&self) -> bool {
        self.sched.clamp != (None, None)
    }

    fn cpus(&self, job: &Job) -> Vec<u32> {
        self.cpus.clone().unwrap_or_else(|| (0..job.cpus.len() as u32).collect())
    }
}

/// The feature that `job` asks for and this kernel was built without.
pub(crate) fn lacking(job: &Job) -> Option<&'static str> {
    let clamped = |a: &Attr| a.uclamp_min.is_some() || a.uclamp_max.is_some();
    let any = |t: &Task| clamped(&t.attr) || t.phases.iter().any(|p| clamped(&p.attr));
    let tasks = || job.tasks.iter().chain(&job.forked).any(any);
    let groups = || job.groups.iter().any(|g| g.uclamp_min > Util(0) || g.uclamp_max < Util(1024));
    // The other files of the clamps, for all tasks, begin alike.
    let system = || job.set.iter().any(|(path, _)| path.starts_with(CLAMPS));
    let wanted = tasks() || groups() || system();
    if wanted && !std::path::Path::new(CLAMPS).exists() {
        return Some("utilisation clamps (CONFIG_UCLAMP_TASK)");
    }
    // A kernel with cpusets says here where a thread may have its memory.
    let cpusets = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (!job.partitions.is_empty() && !cpusets.contains("\nMems_allowed:"))
        .then_some("cpusets (CONFIG_CPUSETS)")
}

/// Checks for what `job` cannot have: tasks without phases, events of objects that there are not.
pub(crate) fn check(job: &Job) -> Result<(), String> {
    let empty = |t: &&Task| t.phases.is_empty() || t.phases.iter().any(|p| p.events.is_empty());
    if let Some(event) = job.lacks_object() {
        return Err(format!("`{}`: there is no such object", event_text(&event)));
    }
    match job.tasks.iter().chain(&job.forked).find(empty) {
        Some(t) => Err(format!("task {} has nothing to do in a phase", t.comm)),
        None if job.hotplug.iter().any(|h| h.cpu.0 == 0 || h.cpu.index() >= job.cpus.len()) => {
            Err("hotplug: CPU 0 stays, and the others must be there".into())
        }
        None if job.cpus.get(job.first_cpu as usize).is_none() => {
            Err(format!("first CPU {}: there is no such CPU", job.first_cpu))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_left_out_stay_as_they_were() {
        let mut a = Attributes::default();
        let attr =
            |nice, uclamp_min, uclamp_max| Attr { nice, uclamp_min, uclamp_max, ..Attr::default() };
        assert_eq!(a.take(&attr(Some(5), None, Some(300))), (true, false));
        assert_eq!(a.take(&attr(None, Some(7), None)), (true, false));
        let other = Policy::default();
        assert_eq!(a.sched, Sched { policy: other, nice: 5, clamp: (Some(7), Some(300)) });
        assert_eq!(
            a.take(&attr(Some(5), Some(7), None)),
            (false, false),
            "no call where nothing changes"
        );
        let mut job = Job::default();
        job.cpus.resize(3, Default::default());
        assert_eq!(a.cpus(&job), [0, 1, 2]);
        a.take(&Attr { cpus: Some(vec![2]), ..Attr::default() });
        assert_eq!(a.cpus(&job), [2]);
    }

    #[test]
    fn a_job_that_cannot_run_is_refused() {
        let job = |text: &str| Job::parse(&format!("risetime-job 1\n{text}end\n")).unwrap();
        assert!(check(&job("cpu 1 1 0\ntask t 0 1 * * * *\nphase p 1 * * * *\nrun 1\n")).is_ok());
        assert!(check(&job("cpu 1 1 0\ntask t 0 1 * * * *\nphase p 1 * * * *\n")).is_err());
        assert!(check(&job("cpu 1 1 0\nfirst_cpu 1\n")).is_err());
        assert!(check(&job("cpu 1 1 0\ncpu 1 1 0\nhotplug 5 1 0\n")).is_ok());
        assert!(check(&job("cpu 1 1 0\nhotplug 5 1 0\n")).is_err());
        assert!(check(&job("cpu 1 1 0\nhotplug 5 0 0\n")).is_err());
    }
}
