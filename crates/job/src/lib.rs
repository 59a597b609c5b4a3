//! Actions of a task, written once for the parser, the simulator and the agent; and the two files
//! that pass between a host and the agent on a real kernel: [`job`] in, [`answer`] out.
//!
//! Only `std` and the kernel's units: the agent is a small static binary.

pub mod answer;
pub mod job;
pub mod mark;
mod name;
pub mod program;

pub use name::Name;

use mark::Stage;
use risetime_kernel::units::{CpuId, Instant, Span, Util};

/// Largest number of times that a task may be forked in a run (rt-app's own limit).
pub const MAX_FORKS: u32 = 1024;

/// Work that never ends (`"run": -1`), and the longest time of an event: 11 days.
pub const FOR_EVER: Span = Span::from_us(1_000_000_000_000);

/// Work of a piece of `runtime` on the CPU of the calibration at its top frequency (rt-app: `loadwait(32)`).
pub const PIECE: Span = Span::from_us(32);

/// Bytes of a line of rt-app's log (`log_timing`: eleven columns and the end of the line).
pub const LOG_LINE: u32 = 124;

/// Bytes that come together before the C library writes them out (`st_blksize` of a file on any common file system).
pub const LOG_BUFFER: u32 = 4096;

/// Time that writing out [`LOG_BUFFER`] bytes takes: the median of 23 rounds of rt-app 1.0 under Linux 6.18 (36 to 65 µs).
pub const LOG_WRITE: Span = Span::from_us(44);

/// One thread. `A`: what may change at its creation and with each phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task<A> {
    /// Thread name, different for every task; several instances are `name-0`, `name-1`, …
    /// (15 bytes are not enforced).
    pub comm: String,
    /// Created this long after the workload starts.
    pub delay: Span,
    /// Number of times that the list of phases is run.
    pub repeat: Repeat,
    /// The phases in order; at least one.
    pub phases: Vec<Phase<A>>,
    /// Attributes at creation.
    pub attr: A,
    /// The task's place in its chain of jobs: where it waits for the task before it, and what it
    /// gives the one behind it.
    pub stage: Stage,
    /// True if rt-app would write a line of its log for each round of a phase, which lets others in where it
    /// writes out what has come together ([`Step::Log`](program::Step::Log)).
    pub logs: bool,
}

impl<A> Task<A> {
    /// Whether it ends up in a loop without end in which it neither sleeps nor waits for others: its work is never done. That
    /// somebody holds a mutex that it wants is no wait of its own.
    pub fn is_endless(&self) -> bool {
        let busy = |phases: &[Phase<A>]| {
            !phases.iter().flat_map(|phase| &phase.events).any(Event::sleeps_or_waits)
        };
        let last = self.phases.iter().position(|phase| phase.repeat == Repeat::Forever);
        let reached = &self.phases[..last.map_or(self.phases.len(), |last| last + 1)];
        if reached.iter().any(|phase| phase.events.contains(&Event::Run(FOR_EVER))) {
            return true;
        }
        match self.phases.iter().find(|phase| phase.repeat == Repeat::Forever) {
            Some(phase) => busy(std::slice::from_ref(phase)),
            None => self.repeat == Repeat::Forever && busy(&self.phases),
        }
    }
}

impl<A> Task<A> {
    /// Whether it takes mutexes in rounds of which some never pause.
    pub fn contends(&self) -> bool {
        let locks = |event: &Event| matches!(event, Event::Lock(_));
        let never_pauses = |phase: &Phase<A>| {
            phase.events.iter().any(locks) && !phase.events.iter().any(Event::sleeps_or_waits)
        };
        self.phases.iter().any(never_pauses)
    }
}

/// A scheduling policy with its parameters, such as the kernel accepts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: the fair class.
    Other {
        /// A slice of its own, 0.1 to 100 ms (kernels since 6.12); `None`: the base slice.
        slice: Option<Span>,
    },
    /// SCHED_BATCH: fair, but its wakeup never preempts.
    Batch {
        /// Slice as for [`Policy::Other`].
        slice: Option<Span>,
    },
    /// SCHED_IDLE: fair, with the smallest weight there is.
    Idle,
    /// SCHED_FIFO.
    Fifo {
        /// 1..=99, the highest first.
        priority: u8,
    },
    /// SCHED_RR.
    Rr {
        /// 1..=99, the highest first.
        priority: u8,
    },
    /// SCHED_HIGH: a fair class between SCHED_OTHER and the real-time ones, which no stock kernel has.
    High {
        /// Slice as of SCHED_OTHER.
        slice: Option<Span>,
    },
    /// SCHED_OVERCOMMIT: shares of a CPU that may come to more than there is; no stock kernel has it.
    Overcommit {
        /// Running time that the task asks for in each period.
        runtime: Span,
        /// Period.
        period: Span,
    },
    /// SCHED_DEADLINE; runtime ≤ deadline ≤ period.
    Deadline {
        /// Time that it may run in each period.
        runtime: Span,
        /// Relative deadline, from an activation.
        deadline: Span,
        /// Shortest time between two activations.
        period: Span,
        /// True if the task may use what others leave of their bandwidth (`SCHED_FLAG_RECLAIM`).
        reclaim: bool,
    },
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::Other { slice: None }
    }
}

impl Policy {
    /// The kernel's name of the policy.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::Other { .. } => "SCHED_OTHER",
            Policy::Batch { .. } => "SCHED_BATCH",
            Policy::Idle => "SCHED_IDLE",
            Policy::Fifo { .. } => "SCHED_FIFO",
            Policy::Rr { .. } => "SCHED_RR",
            Policy::High { .. } => "SCHED_HIGH",
            Policy::Overcommit { .. } => "SCHED_OVERCOMMIT",
            Policy::Deadline { .. } => "SCHED_DEADLINE",
        }
    }
    /// Whether it is one of the fair class's.
    pub fn is_fair(&self) -> bool {
        matches!(self, Policy::Other { .. } | Policy::Batch { .. } | Policy::Idle)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Policy::Other { slice: Some(slice) }
            | Policy::Batch { slice: Some(slice) }
            | Policy::High { slice: Some(slice) } => {
                write!(f, " slice {} µs", slice.0 / 1000)
            }
            Policy::Fifo { priority } | Policy::Rr { priority } => write!(f, " {priority}"),
            Policy::Overcommit { runtime, period } => {
                write!(f, " {}/{} µs", runtime.0 / 1000, period.0 / 1000)
            }
            Policy::Deadline { runtime, deadline, period, reclaim } => {
                let [runtime, deadline, period] = [runtime, deadline, period].map(|s| s.0 / 1000);
                let reclaim = if reclaim { ", reclaims" } else { "" };
                write!(f, " {runtime}/{deadline}/{period} µs{reclaim}")
            }
            _ => Ok(()),
        }
    }
}

/// A named run of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase<A> {
    /// The phase's key in the file; the task's own body is a single phase with the task's name.
    pub name: Name,
    /// Number of times that the phase's events are run.
    pub repeat: Repeat,
    /// The events in order; at least one.
    pub events: Vec<Event>,
    /// Attributes set when it begins.
    pub attr: A,
}

/// Number of repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// Repeats that many times; 0 is rejected by the parser.
    Times(u32),
    /// Endless repetition (`"loop": -1`).
    #[default]
    Forever,
}

/// One thing a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Work: as much as capacity 1024 at top frequency does in this time (rt-app `run`, once
    /// it has been rescaled from the CPU of its calibration).
    Run(Span),
    /// Work of a kind that is not the plain one of [`Event::Run`], by its number: as much as the
    /// kind does in this time on the machine's fastest CPU for it at its highest frequency.
    RunOf {
        /// Amount of work, as time on the machine's fastest CPU for it.
        work: Span,
        /// Number of the kind.
        kind: u32,
    },
    /// Run pieces of work until this much wall-clock time has passed since the event began, as is seen at the
    /// end of each (`runtime`).
    Runtime {
        /// Time that has to pass.
        time: Span,
        /// Work of a piece, as time at capacity 1024 and top frequency; at least 1 ns.
        piece: Span,
    },
    /// Sleep this long (`sleep`).
    Sleep(Span),
    /// rt-app's `timer`. A timer has a reference r, at first the time at which the task that
    /// first uses it began to run its first phase. Each use sets r = r + period and sleeps until
    /// r; if r is not ahead of now, it goes on at once, in relative mode with r = now.
    Timer {
        /// The timer to wait for.
        timer: Timer,
        /// The period.
        period: Span,
    },
    /// Have a CPU for this long, at whatever speed it runs: what does not get faster with the
    /// frequency (`mem`, `iorun`).
    Busy(Span),
    /// Sleep so long that what has passed since the last one ended, or since the task began to run, is this many % of the
    /// time, 1 to 99: a utilisation as a share of time, however fast the work gets on.
    Duty(u32),
    /// Let others run that wait for the CPU (`sched_yield`).
    Yield,
    /// Lock a mutex, by its number. Not fair: it wakes its waiters in the order in which
    /// they came, but who asks while the woken one is on its way gets it first.
    Lock(u32),
    /// Unlock it.
    Unlock(u32),
    /// Unlock the mutex, wait for a signal, and lock it again.
    Wait {
        /// Number of the condition.
        cond: u32,
        /// Number of the mutex.
        mutex: u32,
    },
    /// Wake who has waited longest; without effect if nobody waits.
    Signal(u32),
    /// Wake all who wait.
    Broadcast(u32),
    /// Wait until as many tasks have come as there are users.
    Barrier(u32),
    /// Take one or wait for one.
    SemWait(u32),
    /// Give one.
    SemPost(u32),
    /// Create a task of those that are forked, by its number.
    Fork(u32),
}

/// A timer that an event uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The timer's number among the task's own (each `ref` is one; the same `ref` in several events
    /// of a task is the same timer), or among the shared ones.
    pub index: u32,
    /// Several tasks use it: its `ref` does not begin with "unique".
    pub shared: bool,
    /// An expiry missed does not move the later ones.
    pub absolute: bool,
}

/// Outcome of a use of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// One period after the reference.
    pub due: Instant,
    /// The reference from now on.
    pub release: Instant,
    /// Time to wake; `None`: it is past, and the task goes on at once.
    pub sleeps: Option<Instant>,
}

impl Timer {
    /// A use of the timer: moves its reference on, which is `began` at first. Source: rt-app, `src/rt-app.c:run_event`.
    pub fn expiry(
        self,
        reference: &mut Option<Instant>,
        period: Span,
        began: Instant,
        now: Instant,
    ) -> Expiry {
        let due = Instant(reference.unwrap_or(began).0.saturating_add(period.0));
        let missed = due <= now;
        let release = if missed && !self.absolute { now } else { due };
        *reference = Some(release);
        Expiry { due, release, sleeps: (!missed).then_some(due) }
    }

    /// The task's own timer of this number, in relative mode.
    pub const fn own(index: u32) -> Timer {
        Timer { index, shared: false, absolute: false }
    }
}

/// The time until which an [`Event::Duty`] sleeps, which ends the round that began at `round`, or
/// where the task began: t · (100 − percent) / percent from now on, t the time of the round.
/// Rounding: down.
pub fn duty(round: &mut Option<Instant>, percent: u32, began: Instant, now: Instant) -> Instant {
    let ran = u128::from(now.since(round.unwrap_or(began)).0);
    let sleeps = ran * u128::from(100u32.saturating_sub(percent)) / u128::from(percent.max(1));
    let until = now.0.saturating_add(u64::try_from(sleeps).unwrap_or(u64::MAX));
    *round.insert(Instant(until))
}

impl Event {
    /// Whether it takes time, or may do so: a loop without such an event would never end.
    pub const fn takes_time(&self) -> bool {
        match self {
            Event::Run(t)
            | Event::RunOf { work: t, .. }
            | Event::Runtime { time: t, .. }
            | Event::Sleep(t)
            | Event::Busy(t) => t.0 > 0,
            Event::Timer { period, .. } => period.0 > 0,
            Event::Wait { .. } | Event::Barrier(_) | Event::SemWait(_) => true,
            Event::Duty(_)
            | Event::Yield
            | Event::Lock(_)
            | Event::Unlock(_)
            | Event::Signal(_)
            | Event::Broadcast(_)
            | Event::SemPost(_)
            | Event::Fork(_) => false,
        }
    }

    /// Whether a task sleeps there, or waits for what another does.
    pub const fn sleeps_or_waits(&self) -> bool {
        match self {
            Event::Sleep(t) => t.0 > 0,
            Event::Timer { period, .. } => period.0 > 0,
            Event::Duty(_) | Event::Wait { .. } | Event::Barrier(_) | Event::SemWait(_) => true,
            _ => false,
        }
    }

    /// Whether it does anything: a loop of such events is none, if it ends.
    pub const fn acts(&self) -> bool {
        self.takes_time()
            || !matches!(
                self,
                Event::Run(_)
                    | Event::RunOf { .. }
                    | Event::Runtime { .. }
                    | Event::Sleep(_)
                    | Event::Busy(_)
                    | Event::Duty(_)
                    | Event::Timer { .. }
            )
    }
}

/// A task group with its properties, as a cgroup has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroup {
    /// "/a/b": unique, without a slash at its end; never "/".
    pub path: String,
    /// `cpu.weight`, 1..=10000; 100: as much as a task at nice 0. Without effect while `idle`.
    pub weight: u64,
    /// `cpu.max`: running time per `period`, all CPUs together; `None`: no limit ("max").
    pub quota: Option<Span>,
    /// The period of `quota`.
    pub period: Span,
    /// `cpu.max.burst`: as much of unused quota may be kept for a later period.
    pub burst: Span,
    /// `cpu.uclamp.min`: its tasks get at least this much.
    pub uclamp_min: Util,
    /// `cpu.uclamp.max`: its tasks get at most this much.
    pub uclamp_max: Util,
    /// `cpu.idle`: it yields to everything beside it, with the weight of `SCHED_IDLE`.
    pub idle: bool,
    /// `cpu.rt.max` of the series on real-time groups (HCBS), which no stock kernel has and no agent is told of: what its
    /// SCHED_FIFO and SCHED_RR tasks have of each CPU, with those of groups below it. `None` ("max"): they are under the
    /// nearest group above that says it, else as if there were no groups. 0: it may have none.
    pub rt_runtime: Option<Span>,
    /// Period of `rt_runtime`.
    pub rt_period: Span,
}

impl TaskGroup {
    /// A group as the kernel creates it.
    pub fn new(path: String) -> TaskGroup {
        TaskGroup {
            path,
            weight: 100,
            quota: None,
            period: Span::from_ms(100),
            burst: Span(0),
            uclamp_min: Util(0),
            uclamp_max: Util(1024),
            idle: false,
            rt_runtime: None,
            rt_period: Span(0),
        }
    }

    /// The path of the group above; `None`: the root.
    pub fn parent(&self) -> Option<&str> {
        self.path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty())
    }
}

/// A CPU goes offline or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hotplug {
    /// Time after the workload's start.
    pub at: Span,
    /// CPU that comes or goes; not 0.
    pub cpu: CpuId,
    /// Whether it comes (or goes).
    pub online: bool,
    /// Line and column of the entry, from 1 (0: it is in no file): what turns out to be wrong only on a
    /// machine is said of that place.
    pub place: (u32, u32),
}

impl Hotplug {
    /// `WORKLOAD:LINE:COLUMN: global.hotplug`, the place of an error; without the numbers where there
    /// are none.
    pub fn error_place(&self, workload: &str) -> String {
        match self.place {
            (0, _) => format!("{workload}: global.hotplug"),
            (line, column) => format!("{workload}:{line}:{column}: global.hotplug"),
        }
    }
}
