//! Governors: which frequency a domain should run at.
//!
//! A governor is one file and one line in [`REGISTRY`]. It reads a borrowed
//! [`DomainView`] and returns a decision with its reason; the engine carries it out (at once
//! where the driver can, through a kthread where it cannot) and writes it into the trace.

mod conservative;
mod fixed;
mod ondemand;
mod sampling;
pub(crate) mod schedutil;
mod view;

pub use crate::state::effects::{Effects, Timer};
pub use crate::state::hooks::FreqRequest;
pub(crate) use sampling::default_rate as default_sampling_rate;
pub use view::DomainView;

use risetime_kernel::units::{CpuId, Instant, KHz, Util};
use risetime_model::settings::{Group, Param, Settings};
use risetime_model::{InputError, Platform, Policy};

/// A cpufreq governor of one domain. What it wants beside a frequency it notes in `effects`.
pub trait Governor {
    /// The policy starts: the frequency to begin with, if the governor has an opinion.
    fn start(&mut self, domain: &DomainView<'_>, effects: &mut Effects) -> Option<FreqRequest>;
    /// The utilisation of `cpu` has changed (`cpufreq_update_util`); `iowait`: it woke from IO.
    /// `None`: nothing to say.
    fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        iowait: bool,
        effects: &mut Effects,
    ) -> Option<FreqRequest>;
    /// Its timer has expired ([`Effects::set_timer`]).
    fn timer(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        None
    }
    /// Its kthread has run ([`Effects::defer_work`]).
    fn work(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        None
    }
    /// It finds itself in a run under way.
    fn resume(&mut self, _: &Resumed) {}
}

/// Where a governor stands in a run under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resumed {
    /// What was asked for last.
    pub freq: KHz,
    /// When.
    pub since: Instant,
    /// What `freq` was made from (`cached_raw_freq`); 0: not known.
    pub cached_raw_freq: KHz,
    /// The next look decides whatever the rate limit says (`need_freq_update`).
    pub forced: bool,
    /// Of the CPU at this place in the policy.
    pub of_cpu: Option<ResumedCpu>,
}

impl Resumed {
    /// `freq` was asked for at `since`, nothing after that.
    pub fn at(freq: KHz, since: Instant) -> Resumed {
        Resumed { freq, since, ..Resumed::default() }
    }
}

/// Where it stands with one CPU.
#[derive(Clone, Copy, Debug)]
pub struct ResumedCpu {
    /// Its place in the policy.
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
    /// Its tunables.
    pub params: &'static [Param],
    /// On which thread its work is done.
    pub works: Works,
    /// A new instance.
    pub make: fn(&Platform, usize, &Settings) -> Box<dyn Governor>,
}

/// On which thread a governor's work is done, and frequencies are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Works {
    /// At once where the driver can switch fast, else on the deadline kthread of the policy (`sugov:N`).
    WhereSlow,
    /// On that kthread, also where the driver could switch fast.
    Sugov,
    /// On a fair worker of the CPU that gave rise to it (`kworker/N`), which also waits in the driver: these
    /// governors never switch fast.
    Kworker,
}

/// All governors.
pub const REGISTRY: &[Descriptor] = &[
    schedutil::DESCRIPTOR,
    fixed::PERFORMANCE,
    fixed::POWERSAVE,
    fixed::USERSPACE,
    ondemand::DESCRIPTOR,
    conservative::DESCRIPTOR,
];

/// Errors: what the kernel refuses when it is written.
pub(crate) fn check(policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    conservative::check(policy, settings)
}

/// Their names, for the setting `governor`.
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

/// Their tunables, each group available only when its governor is in use.
pub(crate) fn groups() -> impl Iterator<Item = Group> {
    REGISTRY.iter().map(|d| Group { owner: Some(("governor", d.name)), params: d.params })
}
