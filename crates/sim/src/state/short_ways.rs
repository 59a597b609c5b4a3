//! The short ways, each of which can be closed: what happens must not change by that, only how long it takes.
//!
//! ```text
//! Plain     a CPU's needs without what most runs have not, kept until they change; clamps that nobody counts [state/plain.rs]
//!           a pick asks the fair class alone where that has all tasks         [kernel/class/mod.rs]
//! Glance    no group statistics where EAS places tasks that all fit               [kernel/balance/pull.rs]
//! Tally     sums of groups kept between looks                                             [state/tally.rs]
//! EmCost    what a unit of util costs, by util                        [mech/perf_domain/state.rs, PerfDomain::cost]
//! Jiffy     the jiffy kept until the next one                              [state/machine.rs, Machine::jiffy]
//! SameOpp   a util between two that led to the same OPP does, too                     [kernel/governor/schedutil.rs]
//! Unheard   no reason found for a look that decides nothing, where nobody listens    [kernel/governor/schedutil.rs];
//!           a request that changes nothing is only counted                                    [kernel/policy.rs]
//! ```
//!
//! `tests/short_ways.rs` runs generated experiments both ways, and sees to it that each is taken thousands of times.

/// A short way: code that gives the same events with less work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShortWay {
    Plain,
    Glance,
    Tally,
    EmCost,
    Jiffy,
    SameOpp,
    Unheard,
}

/// All of them.
pub(crate) const SHORT_WAYS: [ShortWay; 7] = [
    ShortWay::Plain,
    ShortWay::Glance,
    ShortWay::Tally,
    ShortWay::EmCost,
    ShortWay::Jiffy,
    ShortWay::SameOpp,
    ShortWay::Unheard,
];

/// Counts that a short way is taken, where tests run.
#[inline(always)]
pub(crate) fn take(way: ShortWay) {
    #[cfg(test)]
    counted::TAKEN.with_borrow_mut(|taken| taken[way as usize] += 1);
    #[cfg(not(test))]
    let _ = way;
}

/// Counts of how often each way was taken in this thread, and mistakes that once were in one of
/// them.
#[cfg(test)]
pub(crate) mod counted {
    use super::SHORT_WAYS;
    use std::cell::{Cell, RefCell};

    thread_local! {
        pub(crate) static TAKEN: RefCell<[u64; SHORT_WAYS.len()]> = const { RefCell::new([0; SHORT_WAYS.len()]) };
        pub(crate) static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Error that the tally of groups once had.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Fault {
        /// A stopper at work is no running task.
        StoppersUncounted,
        /// A group with less capacity than its CPUs have is not asked CPU by CPU.
        CapacityTakenForGranted,
    }

    pub(crate) fn is(fault: Fault) -> bool {
        FAULT.get() == Some(fault)
    }
}
