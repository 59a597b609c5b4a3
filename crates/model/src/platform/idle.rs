//! Idle states of a domain's CPUs: how long they take to enter and to leave, and who has to sleep
//! for one.
//!
//! ```text
//! entry_latency_us     ├─ entry ─┤            cannot be cut short: a wakeup waits for its rest
//! exit_latency_us                    ├ exit ┤
//! wakeup_latency_us      ├─── at most ──────┤ from a wakeup on; entry + exit where nothing is written
//! ```
//!
//! Source: Documentation/devicetree/bindings/cpu/idle-states.yaml, drivers/cpuidle/dt_idle_states.c:`init_state_node`.

use super::bounds::{MAX_IDLE_US, MAX_UW};
use super::{Domain, Platform, keys};
use crate::InputError;
use crate::platform::text::checked_name;
use crate::toml_in::{Table, quote};
use risetime_kernel::units::{CpuId, MicroWatts, Span};
use std::fmt::Write;

/// Ten states, as the kernel's `CPUIDLE_STATE_MAX`.
const MAX_IDLE_STATES: usize = 10;

/// CPUs that enter an idle state together: the last one of them takes all of them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// CPUs of the frequency domain.
    Domain,
    /// CPUs under the same last-level cache.
    Llc,
}

/// A cpuidle state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// The state's name, as `/sys/.../cpuidle/stateN/name` would say.
    pub name: String,
    /// Time to enter it, which a wakeup cannot cut short; 0: none.
    pub entry_latency: Span,
    /// Time to leave it: the longest one, where it varies.
    pub exit_latency: Span,
    /// Shortest time to leave it, where that varies and is known.
    pub least_exit: Option<Span>,
    /// Longest time from a wakeup until the CPU runs again, where entry and exit together are longer
    /// (a part of the entry can be given up).
    pub wakeup_latency: Option<Span>,
    /// Shortest stay that pays off (`target_residency`).
    pub min_residency: Span,
    /// Power of one CPU while in it.
    pub power: MicroWatts,
    /// CPUs that have to ask for it before any of them is in it; `None`: each CPU for itself.
    pub together: Option<Together>,
}

impl IdleState {
    /// A state of one CPU, entered in no time.
    pub fn new(name: &str, exit: Span, min_residency: Span, power: MicroWatts) -> IdleState {
        IdleState {
            name: name.to_string(),
            entry_latency: Span(0),
            exit_latency: exit,
            least_exit: None,
            wakeup_latency: None,
            min_residency,
            power,
            together: None,
        }
    }
    /// The longest time from a wakeup until the CPU runs again, which cpuidle's governors see as
    /// `exit_latency`.
    pub fn longest_wakeup(&self) -> Span {
        self.wakeup_latency.unwrap_or(Span(self.entry_latency.0 + self.exit_latency.0))
    }
    /// The time from a wakeup until the CPU runs again, where it came `after` the CPU began to enter the state: the rest
    /// of the entry, and the exit.
    pub fn way_out(&self, after: Span) -> Span {
        let rest = self.entry_latency.0.saturating_sub(after.0);
        Span(rest + self.exit_latency.0).min(self.longest_wakeup().max(self.exit_latency))
    }
}

impl Platform {
    /// The CPUs that have to ask for that state of the domain before any of them is in it; none where each CPU is alone.
    pub fn asleep_together(&self, domain: usize, state: usize) -> impl Iterator<Item = CpuId> {
        let own = &self.domains[domain];
        let together = own.idle.get(state).and_then(|s| s.together);
        let belongs = move |(i, d): (usize, &Domain)| match together {
            None => false,
            Some(Together::Domain) => i == domain,
            Some(Together::Llc) => d.cluster == own.cluster,
        };
        let all = self.domains.iter().enumerate().filter(move |all| belongs(*all));
        all.flat_map(|(_, d)| d.cpus.iter().copied())
    }

    /// The state that a CPU of the domain is in which has `asked` for one, by what each CPU has asked for (`None`: awake): the
    /// deepest one up to there that needs no other CPU, or for which all have asked that it needs, or for a deeper one.
    pub fn idle_in(
        &self,
        domain: usize,
        asked: usize,
        of: impl Fn(CpuId) -> Option<usize>,
    ) -> usize {
        let states = &self.domains[domain].idle;
        let deep = |cpu: CpuId, name: &str| {
            let idle = self.domain_of(cpu).map_or(&[][..], |d| &self.domains[d].idle);
            let wanted = idle.iter().position(|s| s.name == name);
            wanted.zip(of(cpu)).is_some_and(|(wanted, asked)| asked >= wanted)
        };
        let there = |i: &usize| {
            let name = &states[*i].name;
            self.asleep_together(domain, *i).all(|cpu| deep(cpu, name))
        };
        (0..states.len().min(asked + 1)).rev().find(there).unwrap_or(0)
    }

    /// CPUs of whose idle states it hangs in which one `cpu` is, itself among them; none where each is alone.
    pub fn sleepers(&self, cpu: CpuId) -> Vec<CpuId> {
        let Some(domain) = self.domain_of(cpu) else { return Vec::new() };
        let states = 0..self.domains[domain].idle.len();
        let mut all: Vec<CpuId> = states.flat_map(|n| self.asleep_together(domain, n)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Checks the states for which others have to be asleep: that each domain concerned has them.
    pub(super) fn check_idle(&self) -> Result<(), String> {
        for (i, d) in self.domains.iter().enumerate() {
            for (n, state) in d.idle.iter().enumerate().filter(|(_, s)| s.together.is_some()) {
                let has = |cpu: &CpuId| {
                    let of = self.domain_of(*cpu).map_or(&[][..], |d| &self.domains[d].idle);
                    of.iter().any(|s| s.name == state.name && s.together == state.together)
                };
                if let Some(cpu) = self.asleep_together(i, n).find(|cpu| !has(cpu)) {
                    return Err(format!(
                        "idle state `{}` needs {cpu} to be asleep, which has no such state",
                        state.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Reads the idle states of a domain, from shallow to deep.
pub(super) fn read(t: &Table<'_>) -> Result<Vec<IdleState>, InputError> {
    let tables = t.opt_tables("idle", "idle")?.unwrap_or_default();
    if tables.len() > MAX_IDLE_STATES {
        let what = format!("has {} states, wanted at most {MAX_IDLE_STATES}", tables.len());
        return Err(t.error_of("idle", what));
    }
    let mut states: Vec<IdleState> = Vec::new();
    for i in tables {
        let state = one(&i)?;
        if let Some(above) = states.last().filter(|s| s.min_residency > state.min_residency) {
            let what = format!(
                "is below that of `{}` before it: states go from shallow to deep",
                above.name
            );
            return Err(i.error_of("min_residency_us", what));
        }
        if states.iter().any(|s| s.name == state.name) {
            return Err(i.error_of("name", format!("is \"{}\" a second time", state.name)));
        }
        if states.is_empty() && state.together.is_some() {
            let what = "is of the shallowest state: a CPU needs one of its own";
            return Err(i.error_of("together", what));
        }
        states.push(state);
    }
    Ok(states)
}

fn one(i: &Table<'_>) -> Result<IdleState, InputError> {
    i.only(&keys::names("domain.idle"))?;
    let name = checked_name(i, "name", i.str("name")?)?;
    let entry_latency = Span::from_us(i.opt_int("entry_latency_us", 0, MAX_IDLE_US)?.unwrap_or(0));
    let exit_latency = Span::from_us(i.int("exit_latency_us", 0, MAX_IDLE_US)?);
    let least_exit = i.opt_int("exit_least_us", 0, MAX_IDLE_US)?.map(Span::from_us);
    let wakeup_latency = i.opt_int("wakeup_latency_us", 0, MAX_IDLE_US)?.map(Span::from_us);
    let min_residency = Span::from_us(i.int("min_residency_us", 0, MAX_IDLE_US)?);
    let power = MicroWatts(i.opt_int("power_uw", 0, MAX_UW)?.unwrap_or(0));
    let us = exit_latency.0 / 1000;
    if least_exit.is_some_and(|least| least > exit_latency) {
        let what = format!("is more than exit_latency_us, the longest exit, {us}");
        return Err(i.error_of("exit_least_us", what));
    }
    if wakeup_latency.is_some_and(|wakeup| wakeup < exit_latency) {
        let what = format!("is less than exit_latency_us, which is a part of it, {us}");
        return Err(i.error_of("wakeup_latency_us", what));
    }
    let together = match i.opt_str("together")? {
        None => None,
        Some("domain") => Some(Together::Domain),
        Some("llc") => Some(Together::Llc),
        Some(other) => {
            let what = format!("is \"{other}\", wanted \"domain\" or \"llc\"");
            return Err(i.error_of("together", what));
        }
    };
    Ok(IdleState {
        name,
        entry_latency,
        exit_latency,
        least_exit,
        wakeup_latency,
        min_residency,
        power,
        together,
    })
}

/// Writes the idle states of a domain.
pub(super) fn write(out: &mut String, d: &Domain) {
    if d.idle.is_empty() {
        return;
    }
    out.push_str("idle = [\n");
    for i in &d.idle {
        let _ = write!(out, "  {{ name = {}", quote(&i.name));
        let mut us = |key: &str, span: Option<Span>| {
            if let Some(span) = span {
                let _ = write!(out, ", {key}_us = {}", span.0 / 1000);
            }
        };
        us("entry_latency", Some(i.entry_latency).filter(|entry| entry.0 > 0));
        us("exit_latency", Some(i.exit_latency));
        us("exit_least", i.least_exit);
        us("wakeup_latency", i.wakeup_latency);
        us("min_residency", Some(i.min_residency));
        let _ = write!(out, ", power_uw = {}", i.power.0);
        let together = match i.together {
            None => "",
            Some(Together::Domain) => ", together = \"domain\"",
            Some(Together::Llc) => ", together = \"llc\"",
        };
        let _ = writeln!(out, "{together} }},");
    }
    out.push_str("]\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(entry: u64, exit: u64, wakeup: Option<u64>) -> IdleState {
        IdleState {
            entry_latency: Span::from_us(entry),
            wakeup_latency: wakeup.map(Span::from_us),
            ..IdleState::new("off", Span::from_us(exit), Span(0), MicroWatts(0))
        }
    }

    #[test]
    fn a_wakeup_within_the_entry_waits_for_its_rest() {
        let us = |s: &IdleState, after| s.way_out(Span::from_us(after)).0 / 1000;
        let s = state(400, 650, None);
        assert_eq!([0, 1, 399, 400, 9000].map(|after| us(&s, after)), [1050, 1049, 651, 650, 650]);
        assert_eq!(s.longest_wakeup(), Span::from_us(1050));
        // 150 µs of the entry can be given up.
        let s = state(400, 650, Some(900));
        assert_eq!([0, 150, 160, 400].map(|after| us(&s, after)), [900, 900, 890, 650]);
        assert_eq!(s.longest_wakeup(), Span::from_us(900));
    }

    const PLATFORM: &str = r#"
schema = 1
name = "p"
about = "two clusters"
hz = 250
sources = { capacity = "estimate", opp = "estimate", idle = "estimate" }
[[domain]]
cpus = "0-1"
capacity = 512
opp = [{ freq_khz = 1000000, power_uw = 1000, latency_ns = 0 }]
idle = [
  { name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 100 },
  { name = "cpu", entry_latency_us = 4, exit_latency_us = 6, exit_least_us = 2, min_residency_us = 15, power_uw = 50 },
  { name = "cluster", entry_latency_us = 5, exit_latency_us = 16, wakeup_latency_us = 18, min_residency_us = 35, power_uw = 10, together = "domain" },
]
[[domain]]
cpus = "2"
capacity = 1024
opp = [{ freq_khz = 1000000, power_uw = 1000, latency_ns = 0 }]
idle = [
  { name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 100 },
  { name = "cluster", exit_latency_us = 16, min_residency_us = 35, power_uw = 10, together = "domain" },
]
"#;

    fn read(text: &str) -> Result<Platform, InputError> {
        Platform::parse(text, "p.toml")
    }

    #[test]
    fn a_cluster_sleeps_when_its_last_cpu_asks_for_it() {
        let p = read(PLATFORM).unwrap();
        let in_of = |asked: [Option<usize>; 3]| {
            let own = |d, cpu: usize| p.idle_in(d, asked[cpu].unwrap(), |c| asked[c.index()]);
            own(0, 0)
        };
        assert_eq!(in_of([Some(2), Some(2), None]), 2);
        assert_eq!(in_of([Some(2), Some(1), None]), 1);
        assert_eq!(in_of([Some(2), None, Some(1)]), 1);
        assert_eq!(in_of([Some(1), Some(2), Some(1)]), 1);
        assert_eq!(in_of([Some(0), Some(2), None]), 0);
        let llc = read(&PLATFORM.replace("together = \"domain\"", "together = \"llc\"")).unwrap();
        // Names count: the third CPU has one state less.
        assert_eq!(llc.idle_in(0, 2, |c| Some([2, 2, 1][c.index()])), 2);
        assert_eq!(llc.idle_in(0, 2, |c| Some([2, 2, 0][c.index()])), 1);
        assert_eq!(llc.idle_in(1, 1, |c| Some([2, 1, 1][c.index()])), 0);
    }

    #[test]
    fn what_is_written_of_an_idle_state_is_read_again() {
        let p = read(PLATFORM).unwrap();
        assert_eq!(read(&p.to_toml()).unwrap(), p);
    }

    #[test]
    fn an_idle_state_that_makes_no_sense_is_told_at_its_place() {
        let wrong =
            |from: &str, to: &str| read(&PLATFORM.replace(from, to)).unwrap_err().to_string();
        let told = [
            (wrong("exit_least_us = 2", "exit_least_us = 7"), "more than exit_latency_us"),
            (
                wrong("wakeup_latency_us = 18", "wakeup_latency_us = 15"),
                "less than exit_latency_us",
            ),
            (wrong("together = \"domain\"", "together = \"all\""), "wanted \"domain\" or \"llc\""),
            (wrong("power_uw = 100 }", "power_uw = 100, together = \"domain\" }"), "shallowest"),
            (
                wrong("together = \"domain\" },\n]\n[[", "together = \"llc\" },\n]\n[["),
                "needs CPU2 to be asleep, which has no such state",
            ),
        ];
        for (told, wanted) in told {
            assert!(told.contains(wanted), "{told:?} lacks {wanted:?}");
        }
    }
}
