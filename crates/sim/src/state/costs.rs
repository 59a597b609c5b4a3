//! Costs of what is not free, where a setting says so (`time/cost.rs`).

use crate::state::draw::{draw_by, drawer, entity};
use risetime_kernel::units::{CpuId, Span};
use risetime_model::Name;
use risetime_model::platform::MAX_THREADS;
use std::collections::BTreeMap;

/// The costs of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Amounts by [`Kind`].
    pub(crate) amounts: [Amount; KINDS],
    /// Seed of the experiment, which the draws begin with.
    pub(crate) seed: u64,
    pub(crate) cold: Span,
    pub(crate) slack: Span,
    pub(crate) memory_bound: u64,
    /// Speed of a thread by how many threads of a core have a task. All [`FULL`]: threads take
    /// nothing from each other.
    pub(crate) beside: [u64; MAX_THREADS + 1],
}

pub(crate) const FULL: u64 = 1024;

/// A kind of step that takes a time of its own each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Time from the expiry of a sleeping task's timer to its wakeup.
    Timer,
    /// A switch to a task, of that task.
    Switch,
    /// A wakeup, of the task that wakes another.
    Wakeup,
    /// A timer's interrupt (the tick, or one that ends a sleep), of whoever runs on that CPU.
    Tick,
    /// Time from a task's wakeup to its CPU's look for the next task, where an interrupt of that
    /// CPU woke it.
    Resched,
    /// Time from a tick, or an update of util, to the end of its interrupt, behind which irq work
    /// is done and the CPU looks for the next task.
    Irq,
    /// A system call of a program, before what it does: it sleeps, locks, signals.
    Call,
    /// A task that was woken by another one tries again what it waited for.
    Again,
    /// Time from a task's wakeup to its CPU's look, where another CPU woke it
    /// (`ttwu_queue_wakelist`, `smp_send_reschedule`).
    Remote,
    /// Time from a task's wakeup by an interrupt of a busy CPU to that CPU's look for the next task,
    /// where it is to preempt lazily; to whom runs it counts as running, but brings nothing.
    Preempt,
}

impl Kind {
    /// All of them, in their order.
    pub(crate) const ALL: [Kind; KINDS] = [
        Kind::Timer,
        Kind::Switch,
        Kind::Wakeup,
        Kind::Tick,
        Kind::Resched,
        Kind::Irq,
        Kind::Call,
        Kind::Again,
        Kind::Remote,
        Kind::Preempt,
    ];
}

pub(crate) const KINDS: usize = 10;

/// The middles, in ns, of eight parts of equal size of a distribution: each is as likely as another.
pub(crate) type Eighths = [u32; 8];

/// A distribution by its values, in ns, where these parts of a thousand are below; even between two of them.
pub(crate) type Quantiles = [u32; PARTS.len()];
pub(crate) const PARTS: [u32; 9] = [0, 250, 500, 750, 900, 950, 980, 995, 999];

/// A distribution for each number of other CPUs that have something to run: 0, 1, 2, 3 or more.
pub(crate) type ByBusy = [Quantiles; 4];

/// The value of a distribution that a draw stands for. Rounding: down.
pub(crate) fn quantile(of: &Quantiles, draw: u64) -> Span {
    // Millionths.
    let at = ((u128::from(draw) * 1_000_000) >> 64) as u64;
    let i = PARTS.partition_point(|part| u64::from(*part) * 1000 <= at).clamp(1, PARTS.len() - 1);
    let at = at.min(u64::from(PARTS[PARTS.len() - 1]) * 1000);
    let (from, to) = (u64::from(PARTS[i - 1]) * 1000, u64::from(PARTS[i]) * 1000);
    let (low, high) = (u64::from(of[i - 1]), u64::from(of[i]));
    Span(low + high.saturating_sub(low) * (at - from) / (to - from))
}

/// Amount of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The same each time; 0: nothing.
    Fixed(Span),
    /// A time drawn from these. The kernel's own threads pay nothing: what they need is said
    /// elsewhere.
    Drawn(&'static Eighths),
    /// A time drawn from the distribution for so many busy CPUs; the kernel's own threads pay
    /// nothing.
    ByBusy(&'static ByBusy),
}

impl Amount {
    /// The largest that comes of it.
    pub(crate) fn most(self) -> Span {
        match self {
            Amount::Fixed(span) => span,
            Amount::Drawn(of) => Span(of[of.len() - 1].into()),
            Amount::ByBusy(of) => {
                Span(of.iter().map(|of| of[of.len() - 1]).max().unwrap_or(0).into())
            }
        }
    }
}

/// The draws of an entity: how many there were, by [`Kind`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    /// State with which the entity's draws begin.
    drawer: u64,
    n: [u32; KINDS],
}

/// Numbers of the tasks of each name: what a task draws goes by its name and its number among those.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<Name, u64>);

impl Names {
    /// Returns the number of the next task of this name, from 0.
    pub(crate) fn next(&mut self, name: Name) -> u64 {
        let nth = self.0.entry(name).or_insert(0);
        *nth += 1;
        *nth - 1
    }
}

impl Drawn {
    /// Returns what the `nth` task of this name, from 0, draws by in a run of that seed. Tasks of other names change nothing.
    pub(crate) fn of_task(seed: u64, name: &str, nth: u64) -> Drawn {
        Drawn { drawer: drawer(seed, entity(name, nth)), n: [0; KINDS] }
    }
    /// Returns what a CPU draws by.
    pub(crate) fn of_cpu(seed: u64, cpu: CpuId) -> Drawn {
        Drawn { drawer: drawer(seed, entity("cpu", cpu.0.into())), n: [0; KINDS] }
    }
    /// Returns the next draw.
    pub(crate) fn next(&mut self, kind: Kind) -> u64 {
        let n = &mut self.n[kind as usize];
        let drawn = draw_by(self.drawer, kind as u64, u64::from(*n));
        *n = n.wrapping_add(1);
        drawn
    }
}

impl Costs {
    /// Whether the threads of a core take something from each other.
    #[inline]
    pub(crate) fn shares_cores(&self) -> bool {
        self.beside[2] < FULL
    }

    /// Makes all steps take no time; work and threads are as fast as ever.
    pub(crate) fn take_no_time(&mut self) {
        (self.amounts, self.cold) = ([Amount::Fixed(Span(0)); KINDS], Span(0));
    }
    /// Whether it never takes any time.
    #[inline]
    pub(crate) fn is_free(&self, kind: Kind) -> bool {
        self.amounts[kind as usize] == Amount::Fixed(Span(0))
    }

    /// The speed of work, part of which waits for memory, on a CPU whose clock makes it `speed`, at most
    /// `highest`. Rounding: down.
    pub(crate) fn bound(&self, speed: u64, highest: u64) -> u64 {
        if self.memory_bound == 0 {
            return speed;
        }
        // 1024 / ((1024 - m) / speed + m / highest)
        let (speed, highest) = (u128::from(speed), u128::from(highest));
        let (m, full) = (u128::from(self.memory_bound), u128::from(FULL));
        let slowed = full * speed * highest / ((full - m) * highest + m * speed).max(1);
        (slowed as u64).max(1)
    }
}
