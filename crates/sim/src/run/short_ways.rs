//! The short ways, each of which can be closed: what happens must not change by that.
//!
//! ```text
//! Plain     a CPU's needs without what most runs have not; clamps that nobody counts      [plain.rs]
//! Glance    no group statistics where EAS places tasks that all fit                [balance/pull.rs]
//! Tally     sums of groups kept between looks                                     [balance/tally.rs]
//! EmCost    what a unit of util costs, by util                         [machine.rs, FreqDomain::em_cost]
//! ```
//!
//! What is kept in another order or form in memory (event queue, jiffies, a CPU's sleeps) has tests of
//! its own, beside it. A simulation that nobody listens to ([`risetime_trace::TraceSink::listens`]) is
//! held against one with a listener in the same test, [`crate::tests`]'s `short_ways`.

use crate::state::machine::Machine;

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShortWay {
    Plain,
    Glance,
    Tally,
    EmCost,
}

/// All of them.
pub(crate) const SHORT_WAYS: [ShortWay; 4] =
    [ShortWay::Plain, ShortWay::Glance, ShortWay::Tally, ShortWay::EmCost];

/// From the start on, the long way is taken.
pub(crate) fn close(m: &mut Machine, way: ShortWay) {
    match way {
        ShortWay::Plain => m.plain = false,
        ShortWay::Glance => m.glances = false,
        ShortWay::Tally => m.tally = None,
        ShortWay::EmCost => m.domains.iter_mut().for_each(|d| d.em_cost = Vec::new()),
    }
}
