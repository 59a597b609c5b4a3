//! The arithmetic of `interactive`, Android's governor from 3.0 to 4.4.
//!
//! ```text
//!  loadadjfreq = 100 · Σ (busy time · frequency at that time) / time          since the timer was set, % · kHz
//!  cpu_load    = loadadjfreq / cur                                            %, of the current frequency
//!  choose_freq = the lowest OPP at which the load is no more than its target load
//!
//!  cpu_load ≥ go_hispeed_load, or a boost: hispeed_freq from below it, else choose_freq but no less than that
//!  else choose_freq, from below hispeed_freq in two steps
//!  above hispeed_freq no higher before above_hispeed_delay is over; no lower than for the last min_sample_time
//! ```
//!
//! Times are µs; integers are the kernel's, 32 bits wide where its are. Source: drivers/cpufreq/cpufreq_interactive.c of
//! Android's common kernels 3.18 and 4.4.

use crate::opp::{FreqTableEntry, Relation, cpufreq_frequency_table_target};
use crate::units::KHz;

/// A tunable that goes by the frequency: from each of these on, the first from 0.
pub type ByFreq = [(KHz, u32)];

/// `freq_to_targetload`, `freq_to_above_hispeed_delay`.
fn at_freq(by: &ByFreq, freq: KHz) -> u32 {
    by.iter().rev().find(|(from, _)| *from <= freq).or(by.first()).map_or(0, |(_, value)| *value)
}

/// A policy as its timer finds it.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The policy's frequencies, ascending.
    pub table: &'a [FreqTableEntry],
    /// `policy->min`.
    pub min: KHz,
    /// `policy->max`.
    pub max: KHz,
    /// `policy->cur`.
    pub cur: KHz,
}

impl Policy<'_> {
    fn target(&self, freq: u64, relation: Relation) -> KHz {
        cpufreq_frequency_table_target(self.table, KHz(freq), self.min, self.max, relation)
            .map_or(self.max, |i| self.table[i].freq)
    }
}

/// The lowest frequency at which `loadadjfreq` is no more than the target load there. Where a target load falls as the
/// frequency rises, the search narrows down from both sides. Source: cpufreq_interactive.c:choose_freq.
pub fn choose_freq(policy: &Policy<'_>, loadadjfreq: u32, target_loads: &ByFreq) -> KHz {
    let (mut freq, mut too_low, mut enough) = (policy.cur, KHz(0), KHz(u64::from(u32::MAX)));
    // Each turn narrows it down by an OPP, unless the current frequency is outside the limits.
    for _ in 0..2 * policy.table.len() {
        let before = freq;
        let target_load = at_freq(target_loads, freq).max(1);
        freq = policy.target(u64::from(loadadjfreq / target_load), Relation::Low);
        if freq > before {
            too_low = before;
            if freq >= enough {
                freq = policy.target(enough.0 - 1, Relation::High);
                if freq == too_low {
                    return enough;
                }
            }
        } else if freq < before {
            enough = before;
            if freq <= too_low {
                freq = policy.target(too_low.0 + 1, Relation::Low);
                if freq == enough {
                    return freq;
                }
            }
        }
        if freq == before {
            break;
        }
    }
    freq
}

/// The tunables that a look goes by.
#[derive(Clone, Copy, Debug)]
pub struct Tunables<'a> {
    /// `hispeed_freq`.
    pub hispeed_freq: KHz,
    /// `go_hispeed_load`, %.
    pub go_hispeed_load: u32,
    /// `target_loads`, %.
    pub target_loads: &'a ByFreq,
    /// `above_hispeed_delay`.
    pub above_hispeed_delay: &'a ByFreq,
    /// `min_sample_time`.
    pub min_sample_time: u64,
    /// `boost`, or within a pulse.
    pub boosted: bool,
}

/// Result of a look at a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Higher, but `above_hispeed_delay` is not over.
    NotYetHigher,
    /// Lower, but not for `min_sample_time` yet.
    NotYetLower,
    /// The frequency that the CPU has, or has already asked for.
    Already,
    /// Other frequency to ask for: `target_freq`.
    Target,
    /// A frequency because of `go_hispeed_load` or a boost.
    Hispeed,
}

/// `struct cpufreq_interactive_cpuinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    time_in_idle: u64,
    time_in_idle_timestamp: u64,
    cputime_speedadj: u64,
    cputime_speedadj_timestamp: u64,
    /// The frequency that this CPU wants of its policy.
    pub target_freq: KHz,
    floor_freq: KHz,
    /// `pol_floor_val_time`, as the policy has it.
    pub pol_floor_val_time: u64,
    /// `loc_floor_val_time`: since when `floor_freq` is wanted.
    pub loc_floor_val_time: u64,
    /// `pol_hispeed_val_time`, as the policy has it.
    pub pol_hispeed_val_time: u64,
    /// `loc_hispeed_val_time`: when it last was not held back.
    pub loc_hispeed_val_time: u64,
}

impl Cpu {
    /// Returns the state at the governor's start: CPUs want the present frequency. Source:
    /// cpufreq_governor_interactive, CPUFREQ_GOV_START.
    pub fn start(now: u64, idle: u64, cur: KHz) -> Cpu {
        let mut cpu = Cpu {
            target_freq: cur,
            floor_freq: cur,
            pol_floor_val_time: now,
            loc_floor_val_time: now,
            pol_hispeed_val_time: now,
            loc_hispeed_val_time: now,
            ..Cpu::default()
        };
        cpu.restart(now, idle);
        cpu
    }

    /// Begins to count anew as the timer is set. Source: cpufreq_interactive_timer_resched.
    pub fn restart(&mut self, now: u64, idle: u64) {
        (self.time_in_idle, self.time_in_idle_timestamp) = (idle, now);
        (self.cputime_speedadj, self.cputime_speedadj_timestamp) = (0, now);
    }

    /// Adds the busy time since the last call, weighted by `cur`, the frequency at which it ran.
    /// Source: cpufreq_interactive.c:update_load.
    pub fn update_load(&mut self, now: u64, idle: u64, cur: KHz) {
        let idled = idle.wrapping_sub(self.time_in_idle) as u32;
        let passed = now.wrapping_sub(self.time_in_idle_timestamp) as u32;
        let active = u64::from(passed.saturating_sub(idled));
        self.cputime_speedadj = self.cputime_speedadj.wrapping_add(active.wrapping_mul(cur.0));
        (self.time_in_idle, self.time_in_idle_timestamp) = (idle, now);
    }

    /// The load in percent of `cur`, and times it, of what has been counted until `now`; `None`: no time has passed.
    fn load(&self, now: u64, cur: KHz) -> Option<(u32, u32)> {
        let passed = u64::from(now.wrapping_sub(self.cputime_speedadj_timestamp) as u32);
        let mean = self.cputime_speedadj.checked_div(passed)? as u32;
        let loadadjfreq = mean.wrapping_mul(100);
        Some((loadadjfreq / (cur.0 as u32).max(1), loadadjfreq))
    }

    /// `policy->cur` times this is what the CPU has done since the timer was set, of 100.
    pub fn cpu_load(&self, now: u64, cur: KHz) -> u32 {
        self.load(now, cur).map_or(0, |(load, _)| load)
    }

    /// Chooses the frequency that this CPU wants, after [`Cpu::update_load`]. Source:
    /// cpufreq_interactive.c:cpufreq_interactive_timer.
    pub fn look(&mut self, now: u64, policy: &Policy<'_>, by: &Tunables<'_>) -> Look {
        let Some((load, loadadjfreq)) = self.load(now, policy.cur) else { return Look::Already };
        let chosen = || choose_freq(policy, loadadjfreq, by.target_loads);
        let hispeed = load >= by.go_hispeed_load || by.boosted;
        let mut new = if hispeed {
            if policy.cur < by.hispeed_freq {
                by.hispeed_freq
            } else {
                chosen().max(by.hispeed_freq)
            }
        } else {
            let chosen = chosen();
            let two_steps = chosen > by.hispeed_freq && self.target_freq < by.hispeed_freq;
            if two_steps { by.hispeed_freq } else { chosen }
        };
        let held = now.wrapping_sub(self.pol_hispeed_val_time);
        let delay = u64::from(at_freq(by.above_hispeed_delay, policy.cur));
        if policy.cur >= by.hispeed_freq && new > policy.cur && held < delay {
            return Look::NotYetHigher;
        }
        self.loc_hispeed_val_time = now;
        new = policy.target(new.0, Relation::Low);
        let floor_since = self.pol_floor_val_time.max(self.loc_floor_val_time);
        if new < self.floor_freq
            && self.target_freq >= policy.cur
            && now.wrapping_sub(floor_since) < by.min_sample_time
        {
            return Look::NotYetLower;
        }
        if !by.boosted || new > by.hispeed_freq {
            self.floor_freq = new;
            if self.target_freq >= policy.cur || new >= policy.cur {
                self.loc_floor_val_time = now;
            }
        }
        if self.target_freq == new && self.target_freq <= policy.cur {
            return Look::Already;
        }
        self.target_freq = new;
        if hispeed { Look::Hispeed } else { Look::Target }
    }

    /// Raises the wish to `hispeed_freq` as a boost begins; returns whether it was lower. Source:
    /// cpufreq_interactive.c:cpufreq_interactive_boost.
    pub fn boost(&mut self, now: u64, hispeed_freq: KHz) -> bool {
        let raised = self.target_freq < hispeed_freq;
        if raised {
            (self.target_freq, self.pol_hispeed_val_time) = (hispeed_freq, now);
        }
        raised
    }
}

/// The frequency that the policy as a whole wants, and since when the CPUs that want it have been
/// at hispeed; gives all CPUs the latest start of the floor. Source:
/// cpufreq_interactive.c:cpufreq_interactive_get_policy_info, cpufreq_interactive_adjust_cpu.
pub fn policy_info(cpus: &mut [Cpu]) -> (KHz, u64) {
    let floor = cpus.iter().map(|c| c.loc_floor_val_time).max().unwrap_or(0);
    let freq = cpus.iter().map(|c| c.target_freq).max().unwrap_or_default();
    let wants = cpus.iter().filter(|c| c.target_freq == freq);
    let hispeed = wants.map(|c| c.loc_hispeed_val_time).min().unwrap_or(u64::MAX);
    cpus.iter_mut().for_each(|c| c.pol_floor_val_time = floor);
    (freq, hispeed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [FreqTableEntry; 4] = [entry(1000), entry(2000), entry(3000), entry(4000)];

    const fn entry(khz: u64) -> FreqTableEntry {
        FreqTableEntry { freq: KHz(khz), inefficient: false }
    }

    fn policy(cur: u64) -> Policy<'static> {
        Policy { table: &TABLE, min: KHz(1000), max: KHz(4000), cur: KHz(cur) }
    }

    fn by(hispeed: u64) -> Tunables<'static> {
        Tunables {
            hispeed_freq: KHz(hispeed),
            go_hispeed_load: 99,
            target_loads: &[(KHz(0), 90)],
            above_hispeed_delay: &[(KHz(0), 20_000)],
            min_sample_time: 80_000,
            boosted: false,
        }
    }

    #[test]
    fn the_load_at_the_chosen_frequency_is_no_more_than_its_target() {
        // 60 % at 2 GHz: 1.2 GHz of work; at a target load of 90 % 1.33 GHz do.
        let all = |targets: &ByFreq| choose_freq(&policy(2000), 60 * 2000, targets).0;
        assert_eq!(all(&[(KHz(0), 90)]), 2000);
        assert_eq!(all(&[(KHz(0), 50)]), 3000);
        assert_eq!(all(&[(KHz(0), 100)]), 2000);
        assert_eq!(choose_freq(&policy(4000), 20 * 4000, &[(KHz(0), 90)]).0, 1000);
        // Below 2 GHz up to 95 %, from there on 35 %: 1 GHz would be too busy, 2 have more than 35 %, and so has 3.
        assert_eq!(all(&[(KHz(0), 95), (KHz(2000), 35)]), 4000);
        // From 3 GHz on only a third: 3 GHz are too low for their own target, 2 are enough for theirs.
        assert_eq!(choose_freq(&policy(3000), 120_000, &[(KHz(0), 90), (KHz(3000), 33)]).0, 4000);
        assert_eq!(choose_freq(&policy(2000), 120_000, &[(KHz(0), 90), (KHz(3000), 33)]).0, 2000);
    }

    /// A CPU busy for so many of 20 ms at each frequency: what each look comes to.
    fn looks(by: &Tunables<'_>, from: u64, busy_ms: &[u64]) -> alloc::vec::Vec<(Look, u64)> {
        let (mut now, mut idle, mut cur) = (0, 0, KHz(from));
        let mut cpu = Cpu::start(0, 0, cur);
        let look = |busy: &u64| {
            now += 20_000;
            idle += 20_000 - busy * 1000;
            cpu.update_load(now, idle, cur);
            let look = cpu.look(now, &policy(cur.0), by);
            let (freq, hispeed) = policy_info(core::slice::from_mut(&mut cpu));
            if freq != cur {
                (cur, cpu.pol_hispeed_val_time) = (freq, hispeed);
            }
            cpu.restart(now, idle);
            (look, cur.0)
        };
        busy_ms.iter().map(look).collect()
    }

    #[test]
    fn a_full_cpu_jumps_to_hispeed_freq_and_rises_after_the_delay() {
        use Look::{Already, Hispeed, NotYetHigher};
        assert_eq!(looks(&by(4000), 1000, &[20]), [(Hispeed, 4000)]);
        let slower = Tunables { above_hispeed_delay: &[(KHz(0), 50_000)], ..by(2000) };
        let rises = looks(&slower, 1000, &[20, 20, 20, 20, 20, 20]);
        let held = (NotYetHigher, 2000);
        assert_eq!(rises[..4], [(Hispeed, 2000), held, held, (Hispeed, 3000)]);
        assert_eq!(rises[4], (NotYetHigher, 3000));
        assert_eq!(looks(&by(4000), 4000, &[20])[0].0, Already);
    }

    #[test]
    fn below_hispeed_freq_it_rises_in_two_steps() {
        // 95 % of 1 GHz ask for 2, which is less than the 3 of hispeed_freq; 98 % with a target of 30 % for 4.
        assert_eq!(looks(&by(3000), 1000, &[19])[0], (Look::Target, 2000));
        let low = Tunables { target_loads: &[(KHz(0), 24)], ..by(3000) };
        assert_eq!(looks(&low, 1000, &[19])[0], (Look::Target, 3000));
    }

    #[test]
    fn it_falls_after_min_sample_time() {
        let falls = looks(&by(4000), 1000, &[20, 2, 2, 2, 2, 2]);
        let held = (Look::NotYetLower, 4000);
        assert_eq!(
            falls,
            [(Look::Hispeed, 4000), held, held, held, (Look::Target, 1000), (Look::Already, 1000)]
        );
    }

    #[test]
    fn a_boost_keeps_it_up_and_sets_no_floor() {
        let boosted = Tunables { boosted: true, ..by(3000) };
        assert_eq!(looks(&boosted, 1000, &[0, 0]), [(Look::Hispeed, 3000), (Look::Already, 3000)]);
        let mut cpu = Cpu::start(0, 0, KHz(1000));
        assert!(cpu.boost(5, KHz(3000)) && !cpu.boost(6, KHz(3000)));
        assert_eq!((cpu.target_freq, cpu.floor_freq), (KHz(3000), KHz(1000)));
    }

    #[test]
    fn time_counts_at_the_frequency_of_the_time() {
        let mut cpu = Cpu::start(0, 0, KHz(1000));
        cpu.update_load(10_000, 0, KHz(1000));
        cpu.update_load(20_000, 5_000, KHz(4000));
        // 10 ms at 1 GHz and 5 ms at 4 in 20 ms: 1.5 GHz, 37 % of 4.
        assert_eq!(cpu.cpu_load(20_000, KHz(4000)), 37);
        assert_eq!(cpu.cpu_load(0, KHz(4000)), 0, "no time");
    }
}
