//! Governors of cpuidle: which idle state, and does the tick stop? One is one file and one line in [`REGISTRY`].
//!
//! When they are asked: [`crate::kernel::idle`]. Arithmetic: [`risetime_kernel::cpuidle`].

mod menu;
mod teo;

pub use crate::state::idle_governor::IdleGovernor;

use risetime_kernel::KernelRev;

/// One of them: what it is called, how to make one for a CPU.
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

/// Their names, for the setting `cpuidle_governor`.
pub const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; REGISTRY.len()], 0);
    while i < names.len() {
        names[i] = REGISTRY[i].name;
        i += 1;
    }
    names
};

/// The one called `name`; settings were checked against [`NAMES`].
pub(crate) fn find(name: &str) -> &'static Descriptor {
    REGISTRY.iter().find(|d| d.name == name).unwrap_or(&REGISTRY[0])
}
