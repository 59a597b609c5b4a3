//! Governors: which frequency a domain should run at.
//!
//! A governor is one file and one line in [`REGISTRY`]. It reads a borrowed
//! [`DomainView`] and returns a decision with its reason; the engine carries it out (at once
//! where the driver can, through a kthread where it cannot) and writes it into the trace.

pub(crate) mod conservative;
pub(crate) mod fixed;
pub(crate) mod interactive;
pub(crate) mod ondemand;
pub(crate) mod sampling;
pub(crate) mod sched_pixel;
pub(crate) mod schedfreq;
pub(crate) mod schedutil;
pub(crate) mod schedutil_2016;
mod view;

pub use crate::state::effects::{Effects, Timer};
pub use crate::state::hooks::FreqRequest;
pub use view::DomainView;

use risetime_kernel::units::{CpuId, Instant, KHz, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::Platform;
use risetime_model::settings::{Default, Group, Home, Int, Name, Param, Range, Settings, keys};

/// A cpufreq governor of one domain. What it wants beside a frequency it notes in `effects`.
pub trait Governor {
    /// Starts the policy; returns the frequency to begin with, if the governor has an opinion.
    fn start(&mut self, domain: &DomainView<'_>, effects: &mut Effects) -> Option<FreqRequest>;
    /// Receives a change of the utilisation of `cpu` (`cpufreq_update_util`); `_iowait`: it woke
    /// from IO. `None`: nothing to say.
    fn update_util(
        &mut self,
        _: &DomainView<'_>,
        _cpu: CpuId,
        _iowait: bool,
        _: &mut Effects,
    ) -> Option<FreqRequest> {
        None
    }
    /// Decides when the governor's timer has expired on `cpu` ([`Effects::set_timer`],
    /// [`Effects::set_timer_on`]).
    fn timer(&mut self, _: &DomainView<'_>, _cpu: CpuId, _: &mut Effects) -> Option<FreqRequest> {
        None
    }
    /// The facts that its frequency goes by: `explain` asks, for what can act and for how it speaks
    /// of it.
    fn goes_by(&self) -> GoesBy {
        GoesBy::Util
    }
    /// Whether it hears of every [`Occasion`], too.
    fn attends(&self) -> bool {
        false
    }
    /// Decides when something has happened on `cpu` that the governor asks to hear of.
    fn occasion(
        &mut self,
        _: &DomainView<'_>,
        _cpu: CpuId,
        _: Occasion,
        _: &mut Effects,
    ) -> Option<FreqRequest> {
        None
    }
    /// Applies changed limits of the policy; returns the frequency to go to at once
    /// (`cpufreq_policy_apply_limits`).
    fn limits(&mut self, domain: &DomainView<'_>) -> Option<KHz> {
        Some(domain.within_limits(domain.cur()))
    }
    /// Decides when the governor's kthread has run ([`Effects::defer_work`]).
    fn work(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        None
    }
    /// Takes over the state of a run under way.
    fn resume(&mut self, _: &Resumed) {}
}

/// Facts that a governor's frequency goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesBy {
    /// Util, whenever that changes.
    Util,
    /// Samples: how busy CPUs were, looked at every so often.
    Samples,
    /// Nothing: the frequency is always the highest.
    Highest,
    /// Nothing: the frequency is always the same, and not the highest.
    Fixed,
}

/// Occasions that a governor can hear of beside util.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A tick, also of an idle CPU whose tick goes on: when the timer wheel runs.
    Tick,
    /// The CPU leaves its idle state.
    IdleEnd,
    /// A fair task has joined its queue.
    Enqueue,
    /// A fair task has left it.
    Dequeue,
    /// The real-time class was asked for a task, and has none: where the last one was no fair task.
    NoRealTime,
    /// The policy's frequency is about to be another, as the kernel believes.
    Frequency,
}

/// State of a governor in a run under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resumed {
    /// Frequency that was asked for last.
    pub freq: KHz,
    /// Time of that request.
    pub since: Instant,
    /// Frequency that `freq` was made from (`cached_raw_freq`); 0: not known.
    pub cached_raw_freq: KHz,
    /// The next look decides whatever the rate limit says (`need_freq_update`).
    pub forced: bool,
    /// State of the CPU at this place in the policy.
    pub of_cpu: Option<ResumedCpu>,
}

impl Resumed {
    /// `freq` was asked for at `since`, nothing after that.
    pub fn at(freq: KHz, since: Instant) -> Resumed {
        Resumed { freq, since, ..Resumed::default() }
    }
}

/// State of a governor for one CPU.
#[derive(Clone, Copy, Debug)]
pub struct ResumedCpu {
    /// Place of the CPU in the policy.
    pub place: usize,
    /// `bw_min`.
    pub bw_min: Util,
    /// `saved_idle_calls`.
    pub saved_idle_calls: u64,
}

/// One governor: what it is called, what it takes, how to make one for domain `index`.
pub struct Descriptor {
    /// The kernel's name for it.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Tunables of the governor, with their check.
    pub settings: Group,
    /// Setting of the shortest time between two of its looks; `None`: it has none.
    pub rate_limit: Option<Int>,
    /// Thread on which its work is done.
    pub works: Works,
    /// A new instance.
    pub make: fn(&Platform, usize, &Settings) -> Box<dyn Governor>,
}

/// Thread on which a governor's work is done, and frequencies are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Works {
    /// The work is done at once where the driver can switch fast, else on the deadline kthread of
    /// the policy (`sugov:N`): up to 4.15 a real-time one, up to 4.9 a worker.
    WhereSlow,
    /// The work is done on that kthread, also where the driver could switch fast.
    Sugov,
    /// The work is done on a fair worker of the CPU that gave rise to it (`kworker/N`), which also
    /// waits in the driver: these governors never switch fast.
    Kworker,
    /// The work is done at once where the driver can switch fast, else on such a worker.
    KworkerWhereSlow,
    /// The work is done on a real-time kthread of the policy, `name:N`.
    Fifo {
        /// Name of the thread.
        name: &'static str,
        /// Priority of the thread, 1 to 99.
        priority: u8,
        /// True if the thread is used only where the driver cannot switch fast; else always, and it
        /// waits in the driver.
        where_slow: bool,
    },
}

impl Works {
    /// The way of working in that kernel.
    pub(crate) fn in_rev(self, rev: KernelRev) -> Works {
        match self {
            Works::WhereSlow if !rev.has(features::SUGOV_KTHREAD) => Works::KworkerWhereSlow,
            Works::WhereSlow if !rev.has(features::SUGOV_DL) => {
                Works::Fifo { name: "sugov", priority: 50, where_slow: true }
            }
            works => works,
        }
    }

    /// Whether frequencies are changed at once where the driver can.
    pub(crate) fn switches_fast(self) -> bool {
        !matches!(self, Works::Kworker | Works::Fifo { where_slow: false, .. })
    }

    /// Whether a policy's work needs a thread; `fast`: its frequency is changed at once.
    pub(crate) fn needs_thread(self, fast: bool) -> bool {
        !fast || self == Works::Sugov
    }

    /// Whether that is one of its CPUs' workers.
    pub(crate) fn on_worker(self) -> bool {
        matches!(self, Works::Kworker | Works::KworkerWhereSlow)
    }
}

/// All governors.
pub const REGISTRY: &[Descriptor] = &[
    schedutil::DESCRIPTOR,
    fixed::PERFORMANCE,
    fixed::POWERSAVE,
    fixed::USERSPACE,
    ondemand::DESCRIPTOR,
    conservative::DESCRIPTOR,
    schedutil_2016::DESCRIPTOR,
    interactive::DESCRIPTOR,
    schedfreq::DESCRIPTOR,
    schedfreq::ANDROID,
    sched_pixel::DESCRIPTOR,
];

/// The cpufreq governor of every domain.
pub const GOVERNOR: Name = Name::new(Param {
    name: keys::GOVERNOR.name(),
    doc: "the cpufreq governor of every domain",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Name(SCHEDUTIL),
    home: Home::Policy("scaling_governor"),
});

pub use risetime_model::settings::keys::governor::SCHEDUTIL;

/// Names of the governors, for the setting `governor`.
pub const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; REGISTRY.len()], 0);
    while i < names.len() {
        names[i] = REGISTRY[i].name;
        i += 1;
    }
    names
};

/// The governor called `name`; settings were checked against [`NAMES`].
pub(crate) fn find(name: &str) -> &'static Descriptor {
    REGISTRY.iter().find(|d| d.name == name).unwrap_or(&REGISTRY[0])
}

/// The governors' tunables, each group available only when its governor is in use.
pub(crate) fn groups() -> impl Iterator<Item = Group> {
    REGISTRY.iter().map(|d| d.settings.owned_by(&GOVERNOR, d.name))
}
