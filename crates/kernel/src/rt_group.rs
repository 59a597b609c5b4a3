//! Real-time groups under deadline servers (HCBS): what a group's servers get of what the group is promised.
//!
//! ```text
//! cpu.rt.max      /a  50 ms of 100 ──┬─ SCHED_FIFO tasks of its own: a server of 20 of 100 ms on each CPU
//!                                    └─ /a/b  30 of 100 ──────────── a server of 30 of 100 ms on each CPU
//!
//! bw = runtime / period, 2²⁰ = 1     own bw = bw − Σ bw of the groups below it
//! root                               Σ bw of the groups below it, of each CPU's capacity, beside what deadline tasks
//!                                    and the fair class's servers have reserved
//! ```
//!
//! Groups within groups count within them; their servers stand side by side among the deadlines of a CPU.
//!
//! Source: Y. Andriaccio, L. Abeni, A. Balsini, A. Parri, "[RFC PATCH v6 00/25] Hierarchical Constant Bandwidth Server"
//! (20260608121546.69910-1-yurand2000@gmail.com): rt.c:tg_rt_schedulable, tg_set_rt_bandwidth, deadline.c:dl_check_tg,
//! __dl_overflow; L. Abeni, A. Balsini, T. Cucinotta, "Container-based real-time scheduling in the Linux kernel", SIGBED
//! Review 16(3), 2019.

use crate::deadline::{BW_SHIFT, BW_UNIT, to_ratio};
use crate::units::Span;

/// `from_ratio`: the runtime in each `period` that makes a bandwidth of `bw`, at most 1. Rounding: down.
pub const fn from_ratio(period: Span, bw: u64) -> Span {
    if bw >= BW_UNIT {
        return period;
    }
    Span((bw * period.0) >> BW_SHIFT)
}

/// The runtime of a group's own servers in each period: the group's, without what the groups below
/// it have. Rounding: that of [`to_ratio`] and [`from_ratio`], each down, so that it is within a
/// period · 2⁻¹⁹ of the difference; a group without others below it keeps what it was given.
///
/// DEVIATES(hcbs-rounding): the series turns a group's runtime into a ratio and back also where nothing is taken off it, and so
/// gives up to 1 µs of 1 s less than was asked for, of which its reviewers wondered.
pub const fn internal_runtime(period: Span, runtime: Span, children_bw: u64) -> Span {
    if children_bw == 0 {
        return runtime;
    }
    from_ratio(period, to_ratio(period, runtime).saturating_sub(children_bw))
}

/// `cap_scale`: that bandwidth of each CPU, of CPUs of that capacity in all. Rounding: down.
pub const fn cap_scale(bw: u64, capacity: u64) -> u64 {
    bw.wrapping_mul(capacity) >> 10
}

/// `dl_check_tg`: whether groups may have `groups_bw` of each CPU beside `total_bw` that others have reserved, where `limit`
/// of each may be (`dl_b->bw`).
pub const fn dl_check_tg(limit: u64, capacity: u64, total_bw: u64, groups_bw: u64) -> bool {
    cap_scale(limit, capacity) >= total_bw + cap_scale(groups_bw, capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_group_keeps_what_those_below_it_leave() {
        let of = |ms: u64| Span(ms * MS);
        assert_eq!(internal_runtime(of(100), of(50), 0), of(50));
        // 0.5 − 0.3, each rounded down to 2⁻²⁰: within a period · 2⁻¹⁹.
        let left = internal_runtime(of(100), of(50), to_ratio(of(100), of(30)));
        assert!(left.0.abs_diff(of(20).0) < 200, "{left:?}");
        assert_eq!(internal_runtime(of(100), of(50), to_ratio(of(10), of(5))), Span(0));
        assert_eq!(from_ratio(of(10), BW_UNIT), of(10));
        assert_eq!(from_ratio(of(10), BW_UNIT / 4), Span(2_500_000));
    }

    #[test]
    fn groups_count_on_each_cpu_and_tasks_once() {
        // Four CPUs of 1024, of which 95 % may be reserved, 5 % of each by the fair class's servers.
        let (limit, capacity) = (to_ratio(Span(100), Span(95)), 4096);
        let servers = 4 * to_ratio(Span(100), Span(5));
        assert!(dl_check_tg(limit, capacity, servers, to_ratio(Span(1000), Span(899))));
        assert!(!dl_check_tg(limit, capacity, servers, to_ratio(Span(1000), Span(901))));
        // On CPUs of half the size half of it.
        assert!(!dl_check_tg(limit, 2048, servers, to_ratio(Span(1000), Span(851))));
        assert_eq!(cap_scale(1 << 20, 512), 1 << 19);
    }
}
