//! `pelt`: per-entity load tracking, the kernel's own.
//!
//! Its signals are part of the machine's state, since load, group shares and propagation need them whoever
//! tracks util: tasks' and runqueues' averages are aged in `kernel/fair.rs` and `kernel/hierarchy.rs`, and asked for in
//! `state/machine.rs`. Arithmetic: [`risetime_kernel::pelt`]. Source: kernel/sched/pelt.c.

use super::Descriptor;
use risetime_model::settings::Group;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pelt",
    doc: "geometric averages of running time with util_est (per-entity load tracking)",
    settings: Group::of(&[]),
    make: |_, _| None,
};
