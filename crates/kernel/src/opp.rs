//! Choice of a frequency that the hardware has for a wanted one.
//!
//! ```text
//!  target = clamp(wanted, min, max)
//!  CPUFREQ_RELATION_L   the lowest OPP ≥ target, else the highest
//!  CPUFREQ_RELATION_H   the highest OPP ≤ target, else the lowest
//!  CPUFREQ_RELATION_C   the closest, of two the lower
//!  CPUFREQ_RELATION_E   with one of them: OPPs marked inefficient are skipped, unless the choice then breaks min or max
//!
//! policy limits: max = the highest OPP ≤ scaling_max_freq (RELATION_H), min = the lowest ≥ scaling_min_freq
//! cpufreq pressure = capacity - capacity · max / freq_max
//! ```
//!
//! Left out: descending and unsorted tables (same results), drivers without a table.
//!
//! Source: drivers/cpufreq/cpufreq.c:__resolve_freq, cpufreq_set_policy, include/linux/cpufreq.h.

use crate::units::{Capacity, KHz};

/// One entry of a frequency table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreqTableEntry {
    /// The frequency of this entry.
    pub freq: KHz,
    /// Whether a higher OPP costs no more energy per work (`CPUFREQ_INEFFICIENT_FREQ`).
    pub inefficient: bool,
}

/// Choice of the OPP for a target between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The lowest at or above it (`CPUFREQ_RELATION_L`).
    Low,
    /// The highest at or below it (`CPUFREQ_RELATION_H`).
    High,
    /// The closest (`CPUFREQ_RELATION_C`).
    Close,
}

/// The index of the lowest entry at or above `target`, else of the highest; inefficient ones
/// skipped if `efficiencies`. `None` if nothing is left to choose from. Source:
/// cpufreq.h:cpufreq_table_find_index_al.
pub fn cpufreq_table_find_index_l(
    table: &[FreqTableEntry],
    target: KHz,
    efficiencies: bool,
) -> Option<usize> {
    around(table, target, efficiencies, |_, above| above.freq >= target)
}

/// The index of the highest entry at or below `target`, else of the lowest. Source:
/// cpufreq.h:cpufreq_table_find_index_ah.
pub fn cpufreq_table_find_index_h(
    table: &[FreqTableEntry],
    target: KHz,
    efficiencies: bool,
) -> Option<usize> {
    around(table, target, efficiencies, |below, entry| entry.freq == target || below().is_none())
}

/// The index of the closest entry, the lower of two. Source: cpufreq.h:cpufreq_table_find_index_ac.
pub fn cpufreq_table_find_index_c(
    table: &[FreqTableEntry],
    target: KHz,
    efficiencies: bool,
) -> Option<usize> {
    around(table, target, efficiencies, |below, entry| {
        below().is_none_or(|b| target.0 - b.freq.0 > entry.freq.0.saturating_sub(target.0))
    })
}

/// The last entry below `target`, or the first one that is not, if `takes` it in place of the one before, which it may
/// ask for.
#[inline]
fn around(
    table: &[FreqTableEntry],
    target: KHz,
    efficiencies: bool,
    takes: impl Fn(&dyn Fn() -> Option<FreqTableEntry>, &FreqTableEntry) -> bool,
) -> Option<usize> {
    let usable = |entry: &FreqTableEntry| !(efficiencies && entry.inefficient);
    let first = table.partition_point(|entry| entry.freq < target);
    let below = || table[..first].iter().rposition(usable);
    match table[first..].iter().position(usable).map(|after| first + after) {
        Some(idx) if takes(&|| below().map(|b| table[b]), &table[idx]) => Some(idx),
        _ => below(),
    }
}

/// The index of the OPP that a request for `target` resolves to, in a table in ascending order.
///
/// A `min` above `max` gives way to `max`. Inefficient OPPs are skipped if any are marked.
/// `None` only for an empty table. Source: cpufreq.c:__resolve_freq, cpufreq.h:cpufreq_frequency_table_target.
#[inline]
pub fn cpufreq_frequency_table_target(
    table: &[FreqTableEntry],
    target: KHz,
    min: KHz,
    max: KHz,
    relation: Relation,
) -> Option<usize> {
    let min = min.min(max);
    let target = target.clamp(min, max);
    let find = |efficiencies| match relation {
        Relation::Low => cpufreq_table_find_index_l(table, target, efficiencies),
        Relation::High => cpufreq_table_find_index_h(table, target, efficiencies),
        Relation::Close => cpufreq_table_find_index_c(table, target, efficiencies),
    };
    let efficient = find(true);
    match efficient {
        Some(idx) if (min..=max).contains(&table[idx].freq) => efficient,
        _ => find(false),
    }
}

/// [`cpufreq_frequency_table_target`] of schedutil: the lowest OPP that is enough.
/// Source: cpufreq.c:cpufreq_driver_resolve_freq.
pub fn cpufreq_driver_resolve_freq(
    table: &[FreqTableEntry],
    target: KHz,
    min: KHz,
    max: KHz,
) -> Option<usize> {
    cpufreq_frequency_table_target(table, target, min, max, Relation::Low)
}

/// `policy->min` and `policy->max` of a policy whose users ask for no less than `min` and no more than
/// `max`, in a table in ascending order: OPPs, inefficient ones too. Where no OPP is that low, the
/// limit is the lowest; `min` gives way to `max`. `None` only for an empty table.
/// Source: cpufreq.c:cpufreq_set_policy, freq_table.c:cpufreq_frequency_table_verify.
pub fn cpufreq_set_policy(table: &[FreqTableEntry], min: KHz, max: KHz) -> Option<(KHz, KHz)> {
    let first = table.first()?.freq;
    let max = table.iter().rev().map(|e| e.freq).find(|f| *f <= max).unwrap_or(first);
    let min = table.iter().map(|e| e.freq).find(|f| *f >= min).unwrap_or(max);
    Some((min.min(max), max))
}

/// The capacity that a limit of `capped` takes of a CPU; 0 where it is at least `max`. The capacity
/// that is left is rounded down. Source: cpufreq.c:cpufreq_update_pressure (since 6.10); as
/// hardware pressure arch_topology.c:topology_update_hw_pressure.
pub const fn cpufreq_update_pressure(capacity: Capacity, capped: KHz, max: KHz) -> Capacity {
    if max.0 <= capped.0 {
        return Capacity(0);
    }
    Capacity(capacity.0 - (capacity.0 as u128 * capped.0 as u128 / max.0 as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of 600, 972 (inefficient), 1332, 1704 (inefficient) MHz.
    fn table() -> [FreqTableEntry; 4] {
        [(600, false), (972, true), (1332, false), (1704, true)]
            .map(|(freq, inefficient)| FreqTableEntry { freq: KHz(freq), inefficient })
    }

    #[track_caller]
    fn check(target: u64, min: u64, max: u64, expected: u64) {
        let table = table();
        let idx = cpufreq_driver_resolve_freq(&table, KHz(target), KHz(min), KHz(max));
        assert_eq!(idx.map(|i| table[i].freq), Some(KHz(expected)), "{target} in {min}..{max}");
    }

    #[test]
    fn lowest_efficient_opp_that_is_enough() {
        check(0, 0, 9999, 600);
        check(600, 0, 9999, 600);
        check(601, 0, 9999, 1332);
        check(1333, 0, 9999, 1332);
        check(9999, 0, 9999, 1332);
    }

    #[test]
    fn limits_are_honoured_with_inefficient_opps_if_they_must_be() {
        check(0, 601, 1000, 972);
        check(9999, 1400, 1704, 1704);
        check(9999, 0, 972, 972);
        check(2000, 1332, 600, 600);
    }

    #[track_caller]
    fn check_relation(relation: Relation, target: u64, min: u64, expected: u64) {
        let table = table();
        let idx =
            cpufreq_frequency_table_target(&table, KHz(target), KHz(min), KHz(9999), relation);
        assert_eq!(idx.map(|i| table[i].freq), Some(KHz(expected)), "{target}, {relation:?}");
    }

    #[test]
    fn highest_efficient_opp_that_is_not_more() {
        for (target, expected) in [(0, 600), (600, 600), (1331, 600), (1332, 1332), (9999, 1332)] {
            check_relation(Relation::High, target, 0, expected);
        }
        check_relation(Relation::High, 0, 972, 972);
    }

    #[test]
    fn closest_efficient_opp_of_two_the_lower() {
        for (target, expected) in [(0, 600), (966, 600), (967, 1332), (1332, 1332), (9999, 1332)] {
            check_relation(Relation::Close, target, 0, expected);
        }
        check_relation(Relation::Close, 0, 972, 1332);
        assert_eq!(cpufreq_table_find_index_c(&[], KHz(1), false), None);
    }

    #[test]
    fn policy_limits_are_opps() {
        let limits = |min, max| cpufreq_set_policy(&table(), KHz(min), KHz(max)).unwrap();
        assert_eq!(limits(0, 9999), (KHz(600), KHz(1704)));
        assert_eq!(limits(601, 1700), (KHz(972), KHz(1332)), "inwards");
        assert_eq!(limits(0, 100), (KHz(600), KHz(600)), "nothing is that low");
        assert_eq!(limits(1400, 1000), (KHz(972), KHz(972)), "min gives way");
        assert_eq!(limits(9999, 9999), (KHz(1704), KHz(1704)));
        assert_eq!(cpufreq_set_policy(&[], KHz(0), KHz(1)), None);
    }

    #[test]
    fn pressure_is_what_the_limit_takes() {
        let of = |capped| cpufreq_update_pressure(Capacity(459), KHz(capped), KHz(2_064_000)).0;
        // 459 · 600 / 2064 = 133.4
        assert_eq!((of(600_000), of(2_064_000), of(u64::MAX), of(0)), (326, 0, 0, 459));
    }

    #[test]
    fn all_inefficient_or_none_at_all() {
        let all = table().map(|e| FreqTableEntry { inefficient: true, ..e });
        assert_eq!(cpufreq_driver_resolve_freq(&all, KHz(1000), KHz(0), KHz(9999)), Some(2));
        assert_eq!(cpufreq_driver_resolve_freq(&[], KHz(1000), KHz(0), KHz(9999)), None);
        assert_eq!(cpufreq_table_find_index_l(&all, KHz(0), true), None);
    }
}
