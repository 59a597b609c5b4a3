//! Governors of cpuidle: which idle state, and does the tick stop? One is one file and one line in [`REGISTRY`].
//!
//! When they are asked: `kernel/idle.rs`. Arithmetic: [`risetime_kernel::cpuidle`].
//!
//! ```text
//! cpu_dma_latency    no state that takes longer to leave, as long as somebody holds the file open: here the whole run
//! stateN_disable     not this one, by its place in the platform's list
//! max_cstate         a driver told at boot has no more states than so many, one that polls not counted
//! ```
//!
//! Left out: latency limits of single CPUs (`pm_qos_resume_latency_us`), and those that change during a run.

mod menu;
mod teo;

pub use crate::state::idle_governor::IdleGovernor;

use risetime_kernel::KernelRev;
use risetime_kernel::cpuidle::{CPUIDLE_STATE_MAX, Limits};
use risetime_kernel::units::Span;
use risetime_model::Platform;
use risetime_model::platform::Domain;
use risetime_model::settings::{Default, Group, Home, Int, Name, Param, Range, Settings};

/// An idle governor: its name, and how to make one for a CPU.
pub struct Descriptor {
    /// The kernel's name for it, as in `/sys/devices/system/cpu/cpuidle/available_governors`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// A new instance as this release has it, without memories.
    pub make: fn(KernelRev) -> Box<dyn IdleGovernor>,
}

/// All of them.
pub const REGISTRY: &[Descriptor] = &[menu::DESCRIPTOR, teo::DESCRIPTOR];

/// Limit on the exit latency of idle states, in µs.
pub const CPU_DMA_LATENCY: Int = Int::new(Param {
    name: "cpu_dma_latency",
    doc: "limit on the exit latency of idle states (PM QoS, as long as the file is held open; 0: the first state alone)",
    unit: "µs",
    range: Range::Int(0, i32::MAX as i64),
    default: Default::Unset,
    home: Home::Device("cpu_dma_latency"),
});
/// Largest number of idle states.
pub const MAX_CSTATE: Int = Int::new(Param {
    name: "max_cstate",
    doc: "largest number of idle states, one that polls not counted (also processor.max_cstate)",
    unit: "states",
    range: Range::Int(1, CPUIDLE_STATE_MAX as i64),
    default: Default::Unset,
    home: Home::Boot("intel_idle.max_cstate="),
});

/// The switch of a state.
macro_rules! disable {
    ($n:literal) => {
        Int::new(Param {
            name: concat!("state", $n, "_disable"),
            doc: concat!(
                "1: no CPU takes its idle state ",
                $n,
                " (the first of the platform's list is 0)"
            ),
            unit: "",
            range: Range::Int(0, 1),
            default: Default::Unset,
            home: Home::Cpu(concat!("cpuidle/state", $n, "/disable")),
        })
    };
}

/// Switches of the states, by their numbers.
const DISABLE: [Int; CPUIDLE_STATE_MAX] = [
    disable!("0"),
    disable!("1"),
    disable!("2"),
    disable!("3"),
    disable!("4"),
    disable!("5"),
    disable!("6"),
    disable!("7"),
    disable!("8"),
    disable!("9"),
];

/// Settings of idle states.
pub(crate) const GROUP: Group = Group::of(&[
    CPU_DMA_LATENCY.0,
    MAX_CSTATE.0,
    DISABLE[0].0,
    DISABLE[1].0,
    DISABLE[2].0,
    DISABLE[3].0,
    DISABLE[4].0,
    DISABLE[5].0,
    DISABLE[6].0,
    DISABLE[7].0,
    DISABLE[8].0,
    DISABLE[9].0,
])
.titled("Idle states");

/// The limits that settings put on idle states.
pub(crate) fn limits(settings: &Settings) -> Limits {
    let latency = settings.get(&CPU_DMA_LATENCY).map(|us| Span::from_us(us.max(0) as u64));
    let off = |n: &usize| settings.get(&DISABLE[*n]) == Some(1);
    Limits {
        latency_req: latency.unwrap_or(Limits::NONE.latency_req),
        disabled: (0..CPUIDLE_STATE_MAX).filter(off).fold(0, |all, n| all | 1 << n),
    }
}

/// The number of states of a driver that is told how many it may have.
pub(crate) fn most_states(d: &Domain, settings: &Settings) -> usize {
    let polls = |s: &&risetime_model::platform::IdleState| s.longest_wakeup() == Span(0);
    let polling = d.idle.iter().take_while(polls).count().min(1);
    settings.get(&MAX_CSTATE).map_or(usize::MAX, |n| n.max(1) as usize + polling)
}

/// The note for the reader on exits whose length varies; `None`: the platform says of none that it does.
///
/// DEVIATES(idle-exit-worst): every exit from an idle state takes the longest time that the platform states, as device trees
/// and drivers have only that. Where it varies (how much of a cache was lost, what else woke up), wakeups are late by up to
/// that much less; `exit_least_us` states the other end, and a run's note shows it.
pub(crate) fn notes(platform: &Platform) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for s in platform.domains.iter().flat_map(|d| &d.idle) {
        let Some(least) = s.least_exit.filter(|least| *least < s.exit_latency) else { continue };
        let (least, most) = (least.0 / 1000, s.exit_latency.0 / 1000);
        let one = format!("`{}` {least} to {most} µs", s.name);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    let all = all.join(", ");
    (!all.is_empty()).then(|| {
        format!("leaving an idle state takes the longest time of its range here, so that wakeups are late at worst: {all}")
    })
}

/// Names of the idle governors, for the setting `cpuidle_governor`.
pub const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; REGISTRY.len()], 0);
    while i < names.len() {
        names[i] = REGISTRY[i].name;
        i += 1;
    }
    names
};

pub(crate) const CPUIDLE_GOVERNOR: Name = Name::new(Param {
    name: "cpuidle_governor",
    doc: "governor that chooses idle states, and whether the tick stops",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Name("menu"),
    home: Home::CpuSysfs("cpuidle/current_governor"),
});

/// The idle governor called `name`; settings were checked against [`NAMES`].
pub(crate) fn find(name: &str) -> &'static Descriptor {
    REGISTRY.iter().find(|d| d.name == name).unwrap_or(&REGISTRY[0])
}
