//! From a wanted frequency to one that the hardware has.
//!
//! ```text
//!  target = clamp(wanted, min, max)
//!  the lowest OPP ≥ target (CPUFREQ_RELATION_L), else the highest
//!  RELATION_E: OPPs marked inefficient are skipped, unless the choice then breaks min or max
//! ```
//!
//! Left out: descending and unsorted tables (same results), relations H and C (not used by the
//! governors modelled), drivers without a table.
//!
//! Source: drivers/cpufreq/cpufreq.c:__resolve_freq, include/linux/cpufreq.h.

use crate::units::KHz;

/// One entry of a frequency table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreqTableEntry {
    /// Its frequency.
    pub freq: KHz,
    /// Whether a higher OPP costs no more energy per work (`CPUFREQ_INEFFICIENT_FREQ`).
    pub inefficient: bool,
}

/// Index of the lowest entry at or above `target`, else of the highest; inefficient ones skipped
/// if `efficiencies`. `None` if nothing is left to choose from.
/// Source: cpufreq.h:cpufreq_table_find_index_al.
pub fn cpufreq_table_find_index_l(
    table: &[FreqTableEntry],
    target: KHz,
    efficiencies: bool,
) -> Option<usize> {
    let mut best = None;
    for (idx, entry) in table.iter().enumerate() {
        if efficiencies && entry.inefficient {
            continue;
        }
        best = Some(idx);
        if entry.freq >= target {
            break;
        }
    }
    best
}

/// Index of the OPP that a request for `target` resolves to, in a table in ascending order.
///
/// A `min` above `max` gives way to `max`. Inefficient OPPs are skipped if any are marked.
/// `None` only for an empty table. Source: cpufreq.c:cpufreq_driver_resolve_freq.
pub fn cpufreq_driver_resolve_freq(
    table: &[FreqTableEntry],
    target: KHz,
    min: KHz,
    max: KHz,
) -> Option<usize> {
    let min = min.min(max);
    let target = target.clamp(min, max);
    let efficient = cpufreq_table_find_index_l(table, target, true);
    match efficient {
        Some(idx) if (min..=max).contains(&table[idx].freq) => efficient,
        _ => cpufreq_table_find_index_l(table, target, false),
    }
}
