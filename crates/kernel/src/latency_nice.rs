//! `latency_nice` −20 … 19: how soon a task wants the CPU, apart from how much of it. Never merged; two forms.
//!
//! ```text
//! CFS    V. Guittot, v12, February 2023 (after P. Singh, 2020)
//!        latency_offset = sleep_latency · latency_nice / 20        sleep_latency: half of sched_latency
//!        offset of a woken task against who runs: its own; less his, where one of the two is below 0;
//!        at most sleep_latency − min_granularity
//!        behind < offset: does not preempt; behind > offset + wakeup_gran: preempts
//! EEVDF  P. Zijlstra, March and May 2023
//!        slice = base_slice · 1024 / weight of that nice value
//! ```
//!
//! Source: [PATCH v12 0/8] "Add latency priority for CFS class" (20230224093454.956298-1-vincent.guittot@linaro.org),
//! patches 1, 6, 8; "sched: Merge latency_offset into slice" and "sched/fair: Implement latency-nice" of the EEVDF
//! series. Understood from these, not checked against what they compile to.

use crate::weight::SCHED_PRIO_TO_WEIGHT;

/// The slice that a task asks for by its `latency_nice`, with EEVDF. Rounding: down.
/// Source: `set_latency_fair`.
pub fn latency_slice(base_slice_ns: u64, latency_nice: i8) -> u64 {
    let prio = (i32::from(latency_nice) + 20).clamp(0, 39) as usize;
    (base_slice_ns << 10) / u64::from(SCHED_PRIO_TO_WEIGHT[prio])
}

/// CFS: how far ahead or behind who asks for that counts, in ns. Rounding: towards 0.
/// Source: `calc_latency_offset`.
pub fn calc_latency_offset(sleep_latency_ns: u64, latency_nice: i8) -> i64 {
    sleep_latency_ns as i64 * i64::from(latency_nice) / 20
}

/// CFS: what the offsets of a task and of who runs come to. Source: `wakeup_latency_gran`.
pub fn wakeup_latency_gran(curr: i64, woken: i64, latency_max: i64) -> i64 {
    let against = if woken < 0 || curr < 0 { woken - curr } else { woken };
    against.min(latency_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commit's own figures, for a base slice of 3 ms.
    #[test]
    fn slices_are_those_that_the_patch_names() {
        assert_eq!(latency_slice(3_000_000, 19), 204_800_000);
        assert_eq!(latency_slice(3_000_000, -20), 34_609, "0.034 ms");
        assert_eq!(latency_slice(3_000_000, 0), 3_000_000);
    }

    #[test]
    fn offsets_are_linear_and_compared_where_somebody_is_in_a_hurry() {
        let half = 12_000_000;
        assert_eq!(
            [-20, -10, 0, 19].map(|n| calc_latency_offset(half, n)),
            [-12_000_000, -6_000_000, 0, 11_400_000]
        );
        assert_eq!(wakeup_latency_gran(0, -5, 100), -5);
        assert_eq!(wakeup_latency_gran(-5, -5, 100), 0, "two of a kind");
        assert_eq!(wakeup_latency_gran(-5, 0, 100), 5, "it has to be further behind");
        assert_eq!(wakeup_latency_gran(7, 3, 100), 3, "nobody is in a hurry: its own");
        assert_eq!(wakeup_latency_gran(-90, 90, 100), 100);
    }
}
