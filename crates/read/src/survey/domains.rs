//! Frequency domains, as far as frequencies show them.

use risetime_kernel::units::{CpuId, KHz};
use std::collections::BTreeSet;

/// Different frequencies of a CPU that are kept; a driver that takes any has thousands.
const KEPT: usize = 256;
/// The highest frequency that is one, in kHz.
const MAX_KHZ: u64 = 100_000_000;
/// Time within which the kernel tells the same frequency of all CPUs of a policy, in ns.
const TOGETHER_NS: u64 = 1_000_000;
/// Frequency of a CPU of which no other was told, in kHz: nothing is computed from it.
const UNTOLD: KHz = KHz(1_000_000);

/// Frequencies of a CPU, and the lower CPU whose they always were.
#[derive(Clone, Debug, Default)]
struct Seen {
    freqs: BTreeSet<u64>,
    last: (u64, u64),
    count: u64,
    /// CPU that was told the same just before, each time; `None`: there is none.
    follows: Option<u32>,
}

/// Frequencies of all CPUs.
#[derive(Clone, Debug, Default)]
pub(super) struct Domains(Vec<Seen>);

impl Domains {
    fn of(&mut self, cpu: u32) -> &mut Seen {
        let n = cpu as usize + 1;
        if self.0.len() < n {
            self.0.resize_with(n, Seen::default);
        }
        &mut self.0[cpu as usize]
    }

    /// Takes in that `cpu` runs at `khz` from `at` on.
    pub(super) fn runs_at(&mut self, at: u64, cpu: u32, khz: u64) {
        if cpu >= super::MAX_CPUS || !(1..=MAX_KHZ).contains(&khz) {
            return;
        }
        self.of(cpu);
        let same = |seen: &Seen| seen.last.1 == khz && at - seen.last.0.min(at) <= TOGETHER_NS;
        let lower = &self.0[..cpu as usize];
        let follows = if self.0[cpu as usize].count == 0 {
            lower.iter().position(|seen| seen.count == 1 && same(seen)).map(|cpu| cpu as u32)
        } else {
            let before = self.0[cpu as usize].follows;
            let next = self.0[cpu as usize].count + 1;
            before.filter(|leader| {
                let leader = &lower[*leader as usize];
                leader.count == next && same(leader)
            })
        };
        let seen = &mut self.0[cpu as usize];
        if seen.freqs.len() < KEPT {
            seen.freqs.insert(khz);
        } else if seen.freqs.last().is_some_and(|most| *most < khz) {
            // The highest one is what speeds are shares of.
            seen.freqs.pop_last();
            seen.freqs.insert(khz);
        }
        (seen.last, seen.count, seen.follows) = ((at, khz), seen.count + 1, follows);
    }

    /// Takes in the highest frequency that a policy leaves `cpu`.
    pub(super) fn limited(&mut self, cpu: u32, max: u64) {
        if cpu < super::MAX_CPUS && (1..=MAX_KHZ).contains(&max) {
            let seen = self.of(cpu);
            if seen.freqs.len() < KEPT {
                seen.freqs.insert(max);
            }
        }
    }

    /// The domains of a machine of so many CPUs, each with its frequencies, ascending.
    pub(super) fn all(&self, cpus: u32) -> Vec<(Vec<CpuId>, Vec<KHz>)> {
        let none = Seen::default();
        let seen = |cpu: u32| self.0.get(cpu as usize).unwrap_or(&none);
        let leader = |cpu: u32| {
            let mut at = cpu;
            while let Some(lower) = seen(at).follows.filter(|l| *l < at) {
                if seen(lower).count != seen(cpu).count {
                    break;
                }
                at = lower;
            }
            at
        };
        let mut domains: Vec<(Vec<CpuId>, BTreeSet<u64>)> = Vec::new();
        for cpu in 0..cpus {
            let first = CpuId(leader(cpu));
            let freqs = seen(cpu).freqs.iter();
            match domains.iter_mut().find(|(members, _)| members[0] == first) {
                Some((members, all)) => {
                    members.push(CpuId(cpu));
                    all.extend(freqs);
                }
                None => domains.push((vec![CpuId(cpu)], freqs.copied().collect())),
            }
        }
        let told = |(cpus, freqs): (Vec<CpuId>, BTreeSet<u64>)| {
            let mut freqs: Vec<KHz> = freqs.into_iter().map(KHz).collect();
            if freqs.is_empty() {
                freqs.push(UNTOLD);
            }
            (cpus, freqs)
        };
        domains.into_iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_always_change_together_are_a_domain() {
        let mut domains = Domains::default();
        for (at, khz) in [(0, 500_000), (10_000_000, 1_000_000), (30_000_000, 500_000)] {
            [0, 1].iter().for_each(|cpu| domains.runs_at(at + u64::from(*cpu), *cpu, khz));
            domains.runs_at(at + 3, 2, khz * 2);
        }
        let all = domains.all(4);
        let cpus: Vec<Vec<u32>> =
            all.iter().map(|(cpus, _)| cpus.iter().map(|c| c.0).collect()).collect();
        assert_eq!(cpus, [vec![0, 1], vec![2], vec![3]]);
        assert_eq!(all[0].1, [KHz(500_000), KHz(1_000_000)]);
        assert_eq!(all[2].1, [UNTOLD]);
        // One of two goes on alone: they are no domain.
        domains.runs_at(40_000_000, 0, 700_000);
        assert_eq!(domains.all(2).len(), 2);
    }
}
