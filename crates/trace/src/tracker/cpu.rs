//! State of a CPU and of a frequency domain, as far as events have told.

use crate::{Limit, Why};
use risetime_kernel::units::{CpuId, Instant, KHz, MicroWatts, TaskId, Util};
use risetime_model::platform::Domain as PlatformDomain;

/// State of a CPU. One that idles in no state that was told is in the shallowest; one that handles
/// an interrupt is busy. One of which nothing is known neither runs nor idles.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub(super) domain: usize,
    pub(super) known: bool,
    pub(super) current: Option<TaskId>,
    /// Place of the current task among the tracker's, if it has one.
    pub(super) running: u32,
    pub(super) in_irq: bool,
    pub(super) state: Option<u32>,
    pub(super) kind: u32,
    pub(super) since: Instant,
    pub(super) online: bool,
    pub(super) misfit: Option<TaskId>,
}

impl Cpu {
    pub(super) fn new(domain: usize, known: bool) -> Cpu {
        Cpu {
            domain,
            known,
            current: None,
            running: super::ids::NOBODY,
            in_irq: false,
            state: None,
            kind: 0,
            since: Instant(0),
            online: true,
            misfit: None,
        }
    }

    /// The frequency domain of the CPU, by its place in the platform.
    #[inline]
    pub fn domain(&self) -> usize {
        self.domain
    }
    /// Whether it is known what the CPU does: its events have begun, and none was lost since it was last told.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.known
    }
    /// The task that the CPU runs; `None`: it idles, or nothing is known of it.
    #[inline]
    pub fn current(&self) -> Option<TaskId> {
        self.current
    }
    /// The place of that task among the tracker's.
    #[inline]
    pub fn running(&self) -> Option<usize> {
        (self.running != super::ids::NOBODY).then_some(self.running as usize)
    }
    /// Returns the time since which the CPU runs that task, or none, or is unknown.
    pub fn since(&self) -> Instant {
        self.since
    }
    /// The kind of the work that the CPU does, 0 the plain one.
    #[inline]
    pub fn kind(&self) -> u32 {
        self.kind
    }
    /// Whether an interrupt's handler has the CPU.
    #[inline]
    pub fn in_irq(&self) -> bool {
        self.in_irq
    }
    /// Whether the CPU is known to run anything.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.current.is_some() || self.in_irq
    }
    /// Whether the CPU is known to run nothing.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.known && !self.is_busy()
    }
    /// The idle state that was told of last.
    #[inline]
    pub fn idle_state(&self) -> Option<usize> {
        self.state.map(|s| s as usize)
    }
    /// The idle state that the CPU has asked for; `None`: it is awake, or nothing is known of it.
    #[inline]
    pub fn asleep(&self) -> Option<usize> {
        self.idle_state().filter(|_| !self.is_busy())
    }
    /// Whether the CPU is online.
    pub fn is_online(&self) -> bool {
        self.online
    }
    /// The task that is too big for the CPU, if one is marked so.
    #[inline]
    pub fn misfit(&self) -> Option<TaskId> {
        self.misfit
    }
    /// The power of the CPU, in `domain` at `freq`, which idles in the state of this number. `None`: unknown.
    pub fn power(
        &self,
        domain: &PlatformDomain,
        freq: KHz,
        idle: Option<usize>,
    ) -> Option<MicroWatts> {
        match self.is_busy() {
            true if self.kind > 0 => domain.power_of_work(freq, self.kind as usize),
            true => domain.busy_power(freq),
            false if !self.known => None,
            false => domain.idle_power(idle),
        }
    }
}

/// State of a frequency domain.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    pub(super) cpus: Vec<CpuId>,
    pub(super) freq: Option<KHz>,
    pub(super) request: Option<(KHz, Util, Why)>,
    pub(super) caps: [Option<KHz>; Limit::ALL.len()],
    pub(super) limits: Option<(KHz, KHz)>,
    pub(super) running: usize,
    pub(super) idle_since: u64,
    /// The highest frequency that the platform has.
    pub(super) most: KHz,
}

impl Domain {
    /// The CPUs of the domain.
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }
    /// The frequency at which the domain runs; `None`: unknown, no event has told it yet.
    #[inline]
    pub fn freq(&self) -> Option<KHz> {
        self.freq
    }
    /// Returns the frequency that the governor last wanted, the util that it saw, and its reason.
    #[inline]
    pub fn request(&self) -> Option<(KHz, Util, Why)> {
        self.request
    }
    /// The frequency that each party leaves of the domain's, by [`Limit`]; `None`: it takes nothing.
    #[inline]
    pub fn caps(&self) -> &[Option<KHz>; Limit::ALL.len()] {
        &self.caps
    }
    /// The limits of the domain's policy, the lowest and the highest frequency, if they were told.
    pub fn limits(&self) -> Option<(KHz, KHz)> {
        self.limits
    }
    /// The number of CPUs of the domain that run a task.
    #[inline]
    pub fn running(&self) -> usize {
        self.running
    }
    /// Returns the time since which none of its CPUs runs a task, or last did, in ns.
    #[inline]
    pub fn idle_since(&self) -> u64 {
        self.idle_since
    }
}
