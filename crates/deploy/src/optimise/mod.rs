//! Graphs of real-time functions on CPUs of several kinds: where each goes, how fast each domain runs, by when each function is
//! done, at the least power.
//!
//! ```text
//! graphs, platform, factor ──> Problem        work and budget of each node by domain, room and power of each OPP
//!                                 │
//!        greedy, descent, exact, outer  ───┴──> Config      an OPP for each domain, a CPU or a device for each node
//!                                        │ deadlines: the convex part, given all that is whole
//!                                        v
//!                                   Deployment ──> check: integers alone, knows none of the others
//!                                        └──────> workload: rt-app's JSON under SCHED_DEADLINE
//! ```
//!
//! The program is written out in docs/optimiser.md; the letters in comments are that page's. What is whole (places, OPPs) is
//! searched for, the rest is a convex problem in the nodes' deadlines. After T. Cucinotta, A. Amory, G. Ara, F. Paladino and
//! M. Di Natale, "Multi-criteria optimization of real-time DAGs on heterogeneous platforms under P-EDF", ACM TECS 2023.

mod check;
mod cuts;
mod deadlines;
mod descent;
mod drawn;
mod exact;
mod greedy;
mod linear;
mod outer;
mod price;
mod problem;
mod ran;
mod solve;
#[cfg(test)]
mod tests;
mod tree;
mod workload;

pub use check::{Checked, check};
pub use deadlines::{Spread, spread};
pub use descent::descent;
pub use drawn::{DrawnDags, draw_dags};
pub use exact::exact;
pub use greedy::greedy;
pub use linear::{Column, Linear, Milp, Row, Solved};
pub use outer::{Rounds, outer};
pub use problem::{
    Accelerator, Cpu, Graph, Helper, Island, OppOf, Options, Problem, Version, Vertex,
};
pub use ran::Ran;
pub use solve::{Solver, solve};
pub(crate) use workload::text as quoted;
pub use workload::{Runs, beside, workload};

/// The objective of the optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The power; how long before its deadline a graph is done, nobody cares.
    Power,
    /// The least relative slack as large as it can be, of all that take so many thousandths more than the least power, or less.
    Slack {
        /// 0: the least power, and of all that take as much the one with the most slack.
        within_permille: u64,
    },
}

impl Objective {
    /// The most slack that costs no power.
    pub const SLACK: Objective = Objective::Slack { within_permille: 0 };

    /// The power that a deployment may need, in nW, where `least_nw` is the least.
    fn most_nw(self, least_nw: u64) -> u64 {
        let within = match self {
            Objective::Power => 0,
            Objective::Slack { within_permille } => within_permille,
        };
        let more = u128::from(least_nw) * u128::from(within) / 1000;
        least_nw.saturating_add(more.try_into().unwrap_or(u64::MAX))
    }
}

/// Place of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A CPU, by its place in [`Problem::cpus`].
    Cpu(usize),
    /// A version of the function for a device: a place in [`Vertex::versions`].
    Version(usize),
}

/// All that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Index of the OPP by domain, of [`Island::opps`]; 0 where nothing is.
    pub opp: Vec<usize>,
    /// Place by node.
    pub place: Vec<Place>,
}

impl Config {
    /// The lowest OPP for each domain without nodes.
    fn idle_slowest(&mut self, p: &Problem) {
        for (j, domain) in p.domains.iter().enumerate() {
            let here = |at: &Place| matches!(at, Place::Cpu(c) if domain.cpus.contains(c));
            if !self.place.iter().any(here) && !p.helps(j) {
                self.opp[j] = 0;
            }
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// OPPs and places.
    pub config: Config,
    /// Relative deadline and period of the server by node, in µs from when all that it waits for is
    /// done.
    pub deadline_us: Vec<u64>,
}

/// Result of a solver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The best of them.
    pub deployment: Deployment,
    /// Lower bound of the power of this model's deployments, in nW. That of `deployment`, where it
    /// is the least.
    pub bound_nw: u64,
    /// Upper bound of the least slack of a deployment that takes no more power than the objective
    /// allows, in 10⁻⁶, where that was asked for.
    pub slack_bound_ppm: Option<u64>,
}

/// Whether a search is to end now: a clock, or somebody who waits for it. What a search finds in a number of steps is the same each time; what
/// it has found when it is stopped is not.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Effort that a search may take.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Steps, each of about a ns of an ordinary machine.
    pub steps: u64,
    /// Asked every few ms.
    pub stop: Stop<'a>,
}

/// Effort without a limit.
pub const ENDLESS: Effort<'static> = Effort::of(u64::MAX);

impl Effort<'_> {
    /// An effort of so many steps that nobody stops.
    pub const fn of(steps: u64) -> Effort<'static> {
        Effort { steps, stop: &|| false }
    }
}

/// Ending of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// The search left nothing out.
    Whole,
    /// No steps are left.
    Steps,
    /// The search was stopped.
    Stopped,
}
