//! Jobs of a task: where its program begins one, is done with it, and hands it on.
//!
//! ```text
//! a timer          job 0 begins with the first event, job k where the program goes on behind its k-th timer
//!                  job k is done where the program comes to the next timer
//! a task's input   (in a chain) a job begins where the program goes on behind its input, and is done where it comes
//!                  there again, or to its end
//! ```
//!
//! What the timer says of release and due time, by its mode (r: its reference, p: its period):
//!
//! ```text
//! due          r + p, of the job that is done; in both modes
//! absolute     the next one is released at r + p, late or not: periods that were missed are made up for
//! relative     likewise, or now if that is past: whole periods between are merged into one job
//! ```
//!
//! [`Marks`] is what simulator and agent follow their programs with, so that both count the same.

use crate::{Event, Expiry, Task, Timer};
use risetime_kernel::units::{Instant, Span};

/// A mark: where a task stands in its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobMark {
    /// A job begins. `release`: when it could have; `None`: now.
    Begins {
        /// The expiry of the timer before it, or when the timers began.
        release: Option<Instant>,
        /// The period of the timer that will end it, if it is the first.
        period: Option<Span>,
        /// True if the job's input is one of several that are kept, and it takes the oldest
        /// (semaphores, barriers); false if it takes all that came since (conditions).
        counted: bool,
    },
    /// The task has given the task behind it in the chain its input.
    Gives,
    /// The program has come to a timer: the job under way is done.
    Timer {
        /// Time at which the timer was due.
        due: Instant,
        /// Time at which the next job is released.
        release: Instant,
        /// The timer's period.
        period: Span,
        /// True for a timer in absolute mode.
        absolute: bool,
        /// Something was done since the timer before; else there was no job.
        worked: bool,
    },
    /// The program has come to its input: the job under way is done.
    Waits,
    /// The program is over. `worked`: it has done something since the last timer, which was a job then.
    Over {
        /// Something other than a timer.
        worked: bool,
    },
}

/// Numbers of a mark at most.
pub const MARK_NUMBERS: usize = 5;

impl JobMark {
    /// Encodes the mark as numbers, the kind first; fields that the kind lacks are 0.
    pub fn to_numbers(self) -> [u64; MARK_NUMBERS] {
        let or_0 = |n: Option<u64>| n.map_or(0, |n| n.saturating_add(1));
        match self {
            JobMark::Begins { release, period, counted } => {
                [0, or_0(release.map(|r| r.0)), or_0(period.map(|p| p.0)), counted.into(), 0]
            }
            JobMark::Gives => [1, 0, 0, 0, 0],
            JobMark::Timer { due, release, period, absolute, worked } => {
                [2, due.0, release.0, period.0, u64::from(absolute) + 2 * u64::from(worked)]
            }
            JobMark::Waits => [3, 0, 0, 0, 0],
            JobMark::Over { worked } => [4, worked.into(), 0, 0, 0],
        }
    }

    /// The way back; `None`: these are no mark's.
    pub fn from_numbers(numbers: [u64; MARK_NUMBERS]) -> Option<JobMark> {
        let [kind, a, b, c, d] = numbers;
        let some = |n: u64| n.checked_sub(1);
        Some(match kind {
            0 => {
                let (release, period) = (some(a).map(Instant), some(b).map(Span));
                JobMark::Begins { release, period, counted: c != 0 }
            }
            1 => JobMark::Gives,
            2 => {
                let (due, release, period) = (Instant(a), Instant(b), Span(c));
                JobMark::Timer { due, release, period, absolute: d & 1 != 0, worked: d & 2 != 0 }
            }
            3 => JobMark::Waits,
            4 => JobMark::Over { worked: a != 0 },
            _ => return None,
        })
    }

    /// Returns the mark with each of its times mapped by `of`.
    pub fn with_times(self, of: impl Fn(Instant) -> Instant) -> JobMark {
        match self {
            JobMark::Begins { release, period, counted } => {
                JobMark::Begins { release: release.map(of), period, counted }
            }
            JobMark::Timer { due, release, period, absolute, worked } => {
                let (due, release) = (of(due), of(release));
                JobMark::Timer { due, release, period, absolute, worked }
            }
            other => other,
        }
    }
}

impl std::fmt::Display for JobMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JobMark::Begins { release, period, counted } => {
                f.write_str(if *counted { "begins the oldest" } else { "begins" })?;
                release.map_or(Ok(()), |at| write!(f, ", released {}", at.0))?;
                period.map_or(Ok(()), |period| write!(f, ", period {}", period.0))
            }
            JobMark::Gives => f.write_str("gives"),
            JobMark::Timer { due, release, absolute, worked, .. } => {
                let done = if *worked { "done" } else { "idle" };
                let mode = if *absolute { "absolute" } else { "relative" };
                write!(f, "{done}, due {}, next {} {mode}", due.0, release.0)
            }
            JobMark::Waits => f.write_str("waits"),
            JobMark::Over { worked: true } => f.write_str("over"),
            JobMark::Over { worked: false } => f.write_str("over, idle"),
        }
    }
}

/// Object that two tasks of a chain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A condition, by its number.
    Cond(u32),
    /// A semaphore.
    Semaphore(u32),
    /// A barrier.
    Barrier(u32),
    /// None with another task: it sleeps for a time.
    Sleep,
    /// None with another task: a deadline task is done with its period (`sched_yield`).
    Yield,
}

impl Link {
    /// The link that waits in this event, whichever class its task is of ([`Link::Yield`]: of a deadline task).
    pub const fn input(event: &Event) -> Option<Link> {
        match *event {
            Event::Wait { cond, .. } => Some(Link::Cond(cond)),
            Event::SemWait(s) => Some(Link::Semaphore(s)),
            Event::Barrier(b) => Some(Link::Barrier(b)),
            Event::Sleep(_) | Event::Duty(_) => Some(Link::Sleep),
            _ => None,
        }
    }

    /// The link that gives in this event.
    pub const fn output(event: &Event) -> Option<Link> {
        match *event {
            Event::Signal(cond) | Event::Broadcast(cond) => Some(Link::Cond(cond)),
            Event::SemPost(s) => Some(Link::Semaphore(s)),
            Event::Barrier(b) => Some(Link::Barrier(b)),
            _ => None,
        }
    }

    const fn counted(self) -> bool {
        matches!(self, Link::Semaphore(_) | Link::Barrier(_))
    }
}

/// A task's place in a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Link in which the task waits for the task before it; `None`: it waits for its timer.
    pub input: Option<Link>,
    /// Link in which the task gives the task behind it its input; `None`: that task looks when its
    /// own timer says so, or there is none.
    pub output: Option<Link>,
}

/// Follows one program.
#[derive(Clone, Debug)]
pub struct Marks {
    stage: Stage,
    /// The period of its first timer.
    period: Option<Span>,
    began: bool,
    /// Mark of the job that the task goes on with, once it continues.
    upcoming: Option<JobMark>,
    worked: bool,
    /// Marks in the order in which they came; the program's owner takes them.
    marks: Vec<JobMark>,
}

impl Marks {
    /// The marks of `task`, none so far; `None`: it has no jobs.
    pub fn of<A>(task: &Task<A>) -> Option<Marks> {
        let mut events = task.phases.iter().flat_map(|phase| &phase.events);
        let period = events.find_map(|event| match event {
            Event::Timer { period, .. } => Some(*period),
            _ => None,
        });
        let timed = task.stage.input.is_none();
        (period.is_some() || task.stage != Stage::default()).then(|| Marks {
            stage: task.stage,
            period: period.filter(|_| timed),
            began: false,
            upcoming: None,
            worked: false,
            marks: Vec::new(),
        })
    }

    /// Starts, or continues, the program; its timers count from `began`.
    pub fn goes_on(&mut self, began: Instant) {
        // A deadline task's first period begins as its timers do, and not with something that it waits for.
        let at_once = matches!(self.stage.input, None | Some(Link::Yield));
        if !std::mem::replace(&mut self.began, true) && at_once {
            let (release, period) = (Some(began), self.period);
            self.upcoming = Some(JobMark::Begins { release, period, counted: false });
        }
        self.marks.extend(self.upcoming.take());
    }

    /// Notes that the task begins `event`, which is no timer.
    pub fn event(&mut self, event: &Event) {
        let waits = match event {
            Event::Yield => Some(Link::Yield),
            _ => Link::input(event),
        };
        let input = waits.filter(|link| self.stage.input == Some(*link));
        if Link::output(event).is_some_and(|link| self.stage.output == Some(link)) {
            self.marks.push(JobMark::Gives);
        }
        if let Some(link) = input {
            self.marks.push(JobMark::Waits);
            let (release, period, counted) = (None, None, link.counted());
            self.upcoming = Some(JobMark::Begins { release, period, counted });
        }
        self.worked = input.is_none();
    }

    /// Notes that the task comes to `timer` with this `expiry`.
    pub fn timer(&mut self, timer: Timer, period: Span, expiry: &Expiry) {
        let Expiry { due, release, .. } = *expiry;
        let worked = std::mem::take(&mut self.worked);
        if self.stage.input.is_none() {
            let absolute = timer.absolute;
            self.marks.push(JobMark::Timer { due, release, period, absolute, worked });
            let release = Some(release);
            self.upcoming = Some(JobMark::Begins { release, period: None, counted: false });
        }
    }

    /// Marks the end of the program.
    pub fn over(&mut self) {
        self.marks.push(JobMark::Over { worked: self.worked });
    }

    /// The oldest of what has come up since.
    pub fn next_mark(&mut self) -> Option<JobMark> {
        (!self.marks.is_empty()).then(|| self.marks.remove(0))
    }

    /// Drains the marks that have come up since the last call, oldest first.
    pub fn take(&mut self) -> impl Iterator<Item = JobMark> + '_ {
        self.marks.drain(..)
    }
}
