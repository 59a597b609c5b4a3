//! What is allowed in a platform file and yet worth a second look.

use super::{Domain, Opp, Platform};
use risetime_kernel::KernelRev;
use risetime_kernel::energy_model::{EmPerfState, em_compute_costs};
use risetime_kernel::units::SCHED_CAPACITY_SCALE;

impl Platform {
    /// Remarks for `risetime check`: one line each, empty if there is nothing to say.
    ///
    /// - the biggest capacity is not 1024 (the kernel would rescale),
    /// - an OPP that the energy model calls inefficient, so that schedutil and EAS skip it,
    /// - latency 0 on every OPP of a domain, power unknown, no idle states,
    /// - figures without a source of their own (`hz`, `idle`).
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        let biggest = self.domains.iter().map(|d| d.capacity.0).max().unwrap_or(0);
        if biggest != SCHED_CAPACITY_SCALE {
            all.push(format!(
                "the biggest capacity is {biggest}: the kernel scales the biggest CPU to 1024"
            ));
        }
        for run in self.alike() {
            let alike = &self.domains[run.clone()];
            let mut cpus: Vec<_> = alike.iter().flat_map(|d| d.cpus.iter().copied()).collect();
            cpus.sort();
            let number = match alike {
                [_] => format!("domain {}", run.start + 1),
                _ => format!("domains {} to {}", run.start + 1, run.end),
            };
            domain(&format!("{number} (CPUs {})", super::cpu_ranges(&cpus)), &alike[0], &mut all);
        }
        let has_idle = self.domains.iter().any(|d| !d.idle.is_empty());
        for (kind, present) in [("hz", true), ("idle", has_idle)] {
            if present && !self.sources.contains_key(kind) {
                all.push(format!(
                    "[sources] says nothing of `{kind}`: name its source or say \"estimate\""
                ));
            }
        }
        all
    }
}

fn domain(name: &str, d: &Domain, all: &mut Vec<String>) {
    if d.transition_latency().0 == 0 {
        all.push(format!(
            "{name}: every latency_ns is 0: changes take no time, and schedutil's rate limit falls back to 1000 µs"
        ));
    }
    if d.opps.iter().all(|o| o.power.0 == 0) {
        all.push(format!("{name}: no power: energies stay unknown and EAS off"));
    } else {
        for (low, high) in inefficient_opps(d) {
            all.push(format!(
                "{name}: the energy model calls {low} kHz inefficient: its work costs no less than at {high} kHz, so schedutil and EAS skip it"
            ));
        }
    }
    if d.idle.is_empty() {
        all.push(format!("{name}: no idle states: idle power is taken as 0"));
    }
}

/// The OPPs that the energy model flags, each with the next higher one that it does not, in
/// kHz. The arithmetic is that of the newest kernel known; older ones round differently.
fn inefficient_opps(d: &Domain) -> Vec<(u64, u64)> {
    let state = |o: &Opp| EmPerfState { frequency: o.freq, power: o.power, ..Default::default() };
    let mut states: Vec<EmPerfState> = d.opps.iter().map(state).collect();
    em_compute_costs(KernelRev::V7_2, &mut states, d.capacity);
    let mut flagged = Vec::new();
    for (i, s) in states.iter().enumerate().filter(|(_, s)| s.inefficient) {
        if let Some(better) = states[i..].iter().find(|s| !s.inefficient) {
            flagged.push((s.frequency.0, better.frequency.0));
        }
    }
    flagged
}
