//! Checks for what is allowed in a platform file and yet worth a second look.

use super::{Domain, Opp, Platform, SMT_SPEED, SMT_SPEED_DEFAULT};
use crate::InputError;
use crate::toml_in::Table;
use risetime_kernel::KernelRev;
use risetime_kernel::energy_model::{EmPerfState, em_compute_costs};
use risetime_kernel::units::SCHED_CAPACITY_SCALE;

impl Platform {
    /// Remarks for `risetime check`: one line each, empty if there is nothing to say.
    ///
    /// - the biggest capacity is not 1024 (the kernel would rescale),
    /// - an OPP that the energy model calls inefficient, so that schedutil and EAS skip it,
    /// - latency 0 on every OPP of a domain, power unknown, no idle states,
    /// - cores of several threads, whose speed beside each other is an estimate,
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
        if let Some((driver, hwp)) = self.scaling_driver() {
            let who = if hwp { "the hardware decides in active mode, and" } else { "the hardware" };
            all.push(format!(
                "{}: {who} answers each request as a model has it, with two ends (--set hardware_ramp=fast, slow), never held to such hardware: figures are ranges",
                driver.name()
            ));
        }
        if self.topology.smt() {
            all.push(format!(
                "cores have several threads: beside a busy one a thread works at {SMT_SPEED_DEFAULT} of 1024, an estimate \
                 (--set {SMT_SPEED}=N), and the power of an OPP or an idle state is the core's, not each thread's"
            ));
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

/// Below 10 MHz at the top nothing that runs Linux is clocked, above 20 GHz neither.
const TOP_KHZ: (u64, u64) = (10_000, 20_000_000);
/// A CPU at full speed takes more than 1 mW, and less than 100 W.
const TOP_UW: (u64, u64) = (1000, 100_000_000);
/// No hardware changes its frequency within 1 µs, or takes 100 ms.
const LATENCY_NS: (u64, u64) = (1000, 100_000_000);
/// No idle state takes longer to leave.
const EXIT_US: u64 = 100_000;
/// No driver asks for longer between two changes.
const DELAY_US: u64 = 100_000;

/// Numbers of a `[[domain]]`, which has been read without a fault, that are likely of another unit.
///
/// Errors: none that reading it did not have.
pub(super) fn doubts(t: &Table<'_>) -> Result<Vec<InputError>, InputError> {
    let mut all = Vec::new();
    let opps = t.opt_tables("opp", "opp")?.unwrap_or_default();
    let range = t.opt_table("opp_range")?;
    let any = |t: &Table<'_>, key| t.opt_int(key, 0, i64::MAX as u64);
    let tops = opps.last().map(|o| (o, "freq_khz"));
    if let Some((top, key)) = tops.or(range.as_ref().map(|r| (r, "max_khz")))
        && let Some(khz) = any(top, key)?
    {
        let mhz = khz as f64 / 1000.0;
        if khz < TOP_KHZ.0 {
            let what = format!(
                "is {khz}, the highest here, {mhz} MHz: MHz for kHz? {khz} MHz are {khz}000"
            );
            all.push(top.error_of(key, what));
        } else if khz > TOP_KHZ.1 {
            all.push(top.error_of(key, format!("is {khz}, {} GHz: Hz for kHz?", mhz / 1000.0)));
        }
    }
    let top_uw =
        opps.last().map(|o| any(o, "power_uw")).transpose()?.flatten().filter(|uw| *uw > 0);
    if let (Some(top), Some(uw)) = (opps.last(), top_uw) {
        if uw < TOP_UW.0 {
            let what = format!("is {uw} at the highest frequency: mW for µW? {uw} mW are {uw}000");
            all.push(top.error_of("power_uw", what));
        } else if uw > TOP_UW.1 {
            let what = format!("is {uw}, {} W for one CPU: nW for µW?", uw / 1_000_000);
            all.push(top.error_of("power_uw", what));
        }
    }
    for o in opps.iter().chain(&range) {
        match any(o, "latency_ns")? {
            Some(ns) if ns > 0 && ns < LATENCY_NS.0 => {
                let what = format!("is {ns}, less than 1 µs: µs for ns? {ns} µs are {ns}000");
                all.push(o.error_of("latency_ns", what));
            }
            Some(ns) if ns > LATENCY_NS.1 => {
                all.push(o.error_of("latency_ns", format!("is {ns}, {} ms", ns / 1_000_000)));
            }
            _ => continue,
        }
        break;
    }
    if let Some(us) = any(t, "transition_delay_us")?.filter(|us| *us >= DELAY_US) {
        all.push(
            t.error_of("transition_delay_us", format!("is {us}, {} ms: ns for µs?", us / 1000)),
        );
    }
    for state in t.opt_tables("idle", "idle")?.unwrap_or_default() {
        for key in ["entry_latency_us", "exit_latency_us", "wakeup_latency_us"] {
            if let Some(us) = any(&state, key)?.filter(|us| *us >= EXIT_US) {
                let what = format!("is {us}, {} ms: ns for µs?", us / 1000);
                all.push(state.error_of(key, what));
            }
        }
        if let Some((uw, top)) = any(&state, "power_uw")?.zip(top_uw).filter(|(uw, top)| uw > top) {
            let what =
                format!("is {uw}, more than a busy CPU takes at the highest frequency, {top}");
            all.push(state.error_of("power_uw", what));
        }
    }
    Ok(all)
}

fn domain(name: &str, d: &Domain, all: &mut Vec<String>) {
    if d.transition_latency().0 == 0 {
        all.push(format!(
            "{name}: every latency_ns is 0: changes take no time, and schedutil's rate limit falls back to 1000 µs"
        ));
    }
    if d.opps.iter().all(|o| o.power.0 == 0) {
        all.push(format!("{name}: no power: energies stay unknown and EAS off"));
    } else if d.energy_model {
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
    em_compute_costs(KernelRev::NEWEST, &mut states, d.capacity);
    let mut flagged = Vec::new();
    for (i, s) in states.iter().enumerate().filter(|(_, s)| s.inefficient) {
        if let Some(better) = states[i..].iter().find(|s| !s.inefficient) {
            flagged.push((s.frequency.0, better.frequency.0));
        }
    }
    flagged
}
