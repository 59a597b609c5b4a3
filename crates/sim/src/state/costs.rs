//! What is not free, where a setting says so (`time/cost.rs`).

use crate::state::draw::{draw, entity};
use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, Span, TaskId};

/// What things cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// By [`Kind`].
    pub(crate) amounts: [Amount; KINDS],
    /// Of the experiment: what the draws begin with.
    pub(crate) seed: u64,
    pub(crate) cold: Span,
    pub(crate) slack: Span,
    pub(crate) memory_bound: u64,
    /// [`FULL`]: threads take nothing from each other.
    pub(crate) smt_speed: u64,
}

pub(crate) const FULL: u64 = 1024;

/// What takes a time of its own each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From the expiry of a sleeping task's timer to its wakeup.
    Timer,
    /// A switch to a task, of that task.
    Switch,
    /// A wakeup, of the task that wakes another.
    Wakeup,
    /// A timer's interrupt (the tick, or one that ends a sleep), of whoever runs on that CPU.
    Tick,
}

pub(crate) const KINDS: usize = 4;

/// The middles, in ns, of eight parts of equal size of a distribution: each is as likely as another.
pub(crate) type Eighths = [u32; 8];

/// How much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The same each time; 0: nothing.
    Fixed(Span),
    /// One of these. The kernel's own threads pay nothing: what they need is said elsewhere.
    Drawn(&'static Eighths),
}

/// Who draws, and how often it has, by [`Kind`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawn {
    /// Unless it never has.
    entity: Option<u64>,
    n: [u32; KINDS],
}

impl Drawn {
    /// The next one. `of`: who it is.
    pub(crate) fn next(&mut self, seed: u64, kind: Kind, all: &Eighths, of: u64) -> Span {
        self.entity = Some(of);
        let n = &mut self.n[kind as usize];
        let eighth = draw(seed, of, kind as u64, u64::from(*n)) >> 61;
        *n = n.wrapping_add(1);
        Span(all[eighth as usize].into())
    }
}

impl Costs {
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

impl Machine {
    /// As whom `task` draws: by its name, and how many tasks before it have the same one. Tasks of other names
    /// change nothing.
    pub(crate) fn entity_of(&self, task: TaskId) -> u64 {
        let t = self.task(task);
        t.drawn.entity.unwrap_or_else(|| {
            let before = &self.tasks[..task.index()];
            entity(&t.comm, before.iter().filter(|other| other.comm == t.comm).count() as u64)
        })
    }

    /// Work per ns on `cpu`, see [`SPEED_SHIFT`](crate::state::machine::SPEED_SHIFT).
    pub(crate) fn speed_of(&self, cpu: CpuId) -> u64 {
        let speed = self.domain_of(cpu).speed;
        if self.cpu(cpu).shares_core {
            return ((u128::from(speed) * u128::from(self.costs.smt_speed)) / u128::from(FULL))
                .max(1) as u64;
        }
        speed
    }
}
