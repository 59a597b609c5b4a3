//! Published numbers with their place in the source: what `risetime reproduce` holds ours against.
//!
//! ```text
//! study    one document                                     studies/rfc-2024.toml
//!  figure  one experiment (platform, workload, policy, settings, start state), or arithmetic
//!   list   one quantity, read off one place of the document
//!    row   at which value of its key, what was published    [at, published]
//! ```
//!
//! A file keeps what the document prints, digit by digit: the last digit is a part of the tolerance.
//! How a quantity is measured is the business of `lab`; here it has a name, a unit and a key.

mod against;
mod read;
pub mod table;

pub use against::Wrong;

pub use crate::decimal::Decimal;
use crate::settings::Value;
use std::collections::BTreeMap;

/// A document's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Name for `risetime reproduce`.
    pub name: String,
    /// One line for a reader.
    pub about: String,
    /// The document, by its public name.
    pub source: String,
    /// The study's figures and tables, in the order of the document.
    pub figures: Vec<Figure>,
}

/// A figure or table of the document.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// `file:line:column`, for what is said of its experiment.
    pub at: String,
    /// Short name, unique in the study.
    pub id: String,
    /// Place in the document: its heading there.
    pub place: String,
    /// Setup of the figure for a reader: what it was run with, and which start state was read from
    /// it.
    pub about: String,
    /// The experiment; `None`: arithmetic only.
    pub setup: Option<Setup>,
    /// Changed experiments that argue misses.
    pub instead: Vec<Instead>,
    /// Published lists of numbers.
    pub lists: Vec<List>,
    /// Published figures of several cases under several policies.
    pub table: Option<table::Table>,
    /// util_avg read off the drawn curve, (ms from t0, util): for the picture, not judged.
    pub drawn: Vec<(f64, f64)>,
    /// Policies that the document does not have there, each as [`Study::against`] takes it: under the
    /// best of them as few rows as possible should hold.
    pub wrong: Vec<String>,
    /// Reason why no wrong policy loses half of its rows; empty: one does.
    pub weak: String,
}

/// Origin of a number that ours is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Printed in the document, or said there in words.
    #[default]
    Document,
    /// A bound, a closed form or a prediction of this project.
    Ours,
}

impl Origin {
    /// All of them.
    pub const ALL: [Origin; 2] = [Origin::Document, Origin::Ours];

    /// The origin's name in a study file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Document => "document",
            Origin::Ours => "ours",
        }
    }
}

/// A counterfactual: the figure's experiment with something changed. Where a row that names it
/// misses, or any of a table, it is run for all rows: the reasons of those that miss say what came of
/// it, and the figure which rows it mends and breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Instead {
    /// Short name, unique in the figure.
    pub id: String,
    /// The changes, after the words "With …": for a reader.
    pub about: String,
    /// The whole experiment.
    pub setup: Setup,
}

/// An experiment by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// A built-in platform or a file.
    pub platform: String,
    /// A built-in workload or a file.
    pub workload: String,
    /// `NAME[+key=value…]`.
    pub policy: String,
    /// Settings on top, start state among them.
    pub set: BTreeMap<String, Value>,
    /// Length of the run; `None`: the workload's own.
    pub ms: Option<u64>,
    /// Capacity of the smallest CPUs, in place of the platform's; their power in proportion.
    pub little: Option<u64>,
    /// Keys of the workload that are changed, `TASK.KEY` and what they become.
    pub vary: Vec<(String, String)>,
    /// (run, period) in µs of the tasks that stand, one at a time, in place of the workload's.
    pub grid: Vec<(u64, u64)>,
}

/// Rows of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The published quantity.
    pub quantity: Quantity,
    /// The CPU that it is about, or any of its frequency domain; `None`: not about one.
    pub cpu: Option<u32>,
    /// Ticks per second, for margins.
    pub hz: u32,
    /// Rows that the free parameter of [`Quantity::Score`] is fitted on: they are not counted.
    pub fit: Vec<String>,
    /// The policy that it is run with, in place of the figure's.
    pub policy: Option<String>,
    /// Reading of which activations of a `grid` are steady.
    pub reading: Reading,
    /// Time after the first task's start, in ms, for [`Quantity::is_at`].
    pub ms: Option<u64>,
    /// Metric of a run, for [`Quantity::Figure`]: as `--expect` calls it.
    pub metric: Option<String>,
    /// Reason why those of its rows miss that miss and have none of their own.
    pub note: String,
    /// Settings by name that arithmetic goes by in place of its own: those of a wrong policy.
    pub settings: table::Vary,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A published number.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Key of the row in its list: util, kHz, capacity, ms, or a policy.
    pub at: At,
    /// Policy that the row is run under, in place of its key: a wrong one.
    pub under: Option<String>,
    /// The number.
    pub published: Decimal,
    /// Origin of the number.
    pub origin: Origin,
    /// Relation that ours has to have to it.
    pub relation: Relation,
    /// Judged, or only printed.
    pub counted: bool,
    /// Reason why the row is not counted, or why it misses.
    pub note: String,
    /// The [`Instead`] that argues its miss.
    pub instead: Option<String>,
}

impl Row {
    /// The policy that a row by policy is run under.
    pub fn policy(&self) -> String {
        self.under.clone().unwrap_or_else(|| self.at.to_string())
    }
}

/// A row's key.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    /// A number.
    Number(Decimal),
    /// A name.
    Name(String),
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            At::Number(d) => d.fmt(f),
            At::Name(s) => f.write_str(s),
        }
    }
}

/// Relation that the measured number has to have to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Within the tolerance.
    Equal,
    /// "over 100 ms": that much or more, less the tolerance.
    AtLeast,
    /// The figure holds if measured is at most published plus the tolerance.
    AtMost,
}

impl Relation {
    /// All of them.
    pub const ALL: [Relation; 3] = [Relation::Equal, Relation::AtLeast, Relation::AtMost];

    /// The relation's name in a study file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Relation::Equal => "equal",
            Relation::AtLeast => "at_least",
            Relation::AtMost => "at_most",
        }
    }
}

/// Reading of which activations of a periodic task are steady: what of its last 16 dequeues has to
/// be so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// util_avg is at none of them above that of the one before.
    #[default]
    Letter,
    /// util_est has not risen while the task ran, and has taken a sample: patch 9 of RFC 00/16 saw
    /// util_avg at no tick above that of the last sample.
    Patch,
    /// util_avg is within `UTIL_EST_MARGIN` of all the others.
    Margin,
    /// The last two.
    Both,
}

impl Reading {
    /// All of them.
    pub const ALL: [Reading; 4] = [Reading::Letter, Reading::Patch, Reading::Margin, Reading::Both];

    /// The reading's name in a study file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reading::Letter => "letter",
            Reading::Patch => "patch",
            Reading::Margin => "margin",
            Reading::Both => "both",
        }
    }
}

/// A quantity that can be published and measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Time from util_avg ≥ the row's util to util_avg ≥ the next row's. The last row has none.
    UtilResidency,
    /// Time that the task ran at a frequency of the CPU's domain.
    FreqResidency,
    /// Time that the task ran on the CPU's domain.
    TimeOnCpu,
    /// Time until util_avg ≥ the row's.
    ReachUtil,
    /// Time until the task first runs on a CPU of at least the row's capacity.
    ReachCapacity,
    /// util_avg so many ms after t0.
    UtilAfter,
    /// Migration margin of the posting of February 2024 by capacity, column `threshold`.
    Threshold,
    /// Migration margin of that posting, column `threshold-tick`.
    ThresholdTick,
    /// Migration margin of the series itself, patch 4, by capacity.
    FitsCapacity,
    /// `approximate_runtime` of patch 3, by util.
    ApproximateRuntime,
    /// Time to full util by the closed form of the series' review, by capacity.
    ClosedForm,
    /// Benchmark score by policy, through a model of burst length.
    Score,
    /// util_est of the first task, averaged over the second half of the run, by policy.
    UtilEst,
    /// Ticks until util_est, by util: the first one at which util_avg exceeds that of the last
    /// dequeue counts as 1. The origin of the four below, too.
    EstTicks,
    /// Ticks until util_avg, by util, from the same origin.
    AvgTicks,
    /// Time from the start to that first tick; its only key is 0.
    EstWait,
    /// util_est so many ms after it, by ms.
    EstAfter,
    /// Ticks until the task runs at a speed, by speed of 1024.
    SpeedTicks,
    /// Distance of util_avg of steady activations from the figure's policy's, at most, by policy.
    SteadyUtil,
    /// Distance of util_est of steady activations from their util_avg, at most, by policy.
    SteadyEst,
    /// The distance that [`Quantity::SteadyUtil`] is about, from the range that the figure's
    /// policy's has at the same 16 dequeues.
    SteadyUtilOf16,
    /// The distance that [`Quantity::SteadyEst`] is about, from the range that util_avg has at the
    /// 16 dequeues.
    SteadyEstOf16,
    /// Number of activations that are steady, by policy.
    SteadyShare,
    /// Frequency that a task runs at in its steady activations above the figure's policy's, median of
    /// the grid, by policy.
    SteadyFreq,
    /// Energy above the figure's policy's, median of the tasks that are always steady, by policy.
    SteadyEnergy,
    /// Distance by which util_est of all others is above the figure's policy's, at most, by policy.
    RestEst,
    /// Frequency that the task runs at above the figure's policy's, median of the grid, by policy.
    GridFreq,
    /// Energy above the figure's policy's, median of the grid, by policy.
    GridEnergy,
    /// The time left of a period when the task sleeps, above that of the figure's policy: the
    /// median of all activations, by policy.
    Slack,
    /// The time left of a period when the task sleeps, above that of the figure's policy: the least
    /// of all activations, by policy.
    SlackLeast,
    /// util_avg of the first task, averaged over the second half of the run, by policy.
    TaskUtil,
    /// The largest less the smallest that it is there, by policy.
    TaskUtilRange,
    /// util_avg of a CPU's fair tasks at a moment, by policy.
    CpuUtil,
    /// The capacity that interrupts and tasks above the fair class leave of a CPU at a moment, as
    /// balancing knows it, by policy.
    CpuCapacity,
    /// The largest less the smallest that it is in the second half of the run, by policy.
    CpuCapacityRange,
    /// A figure of the run, by its name, by policy.
    Figure,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 36] = [
        Quantity::UtilResidency,
        Quantity::FreqResidency,
        Quantity::TimeOnCpu,
        Quantity::ReachUtil,
        Quantity::ReachCapacity,
        Quantity::UtilAfter,
        Quantity::Threshold,
        Quantity::ThresholdTick,
        Quantity::FitsCapacity,
        Quantity::ApproximateRuntime,
        Quantity::ClosedForm,
        Quantity::Score,
        Quantity::UtilEst,
        Quantity::EstTicks,
        Quantity::AvgTicks,
        Quantity::EstWait,
        Quantity::EstAfter,
        Quantity::SpeedTicks,
        Quantity::SteadyUtil,
        Quantity::SteadyEst,
        Quantity::SteadyUtilOf16,
        Quantity::SteadyEstOf16,
        Quantity::SteadyShare,
        Quantity::SteadyFreq,
        Quantity::SteadyEnergy,
        Quantity::RestEst,
        Quantity::GridFreq,
        Quantity::GridEnergy,
        Quantity::Slack,
        Quantity::SlackLeast,
        Quantity::TaskUtil,
        Quantity::TaskUtilRange,
        Quantity::CpuUtil,
        Quantity::CpuCapacity,
        Quantity::CpuCapacityRange,
        Quantity::Figure,
    ];

    /// The quantity's name in a study file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Quantity::UtilResidency => "util_residency",
            Quantity::FreqResidency => "freq_residency",
            Quantity::TimeOnCpu => "time_on_cpu",
            Quantity::ReachUtil => "reach_util",
            Quantity::ReachCapacity => "reach_capacity",
            Quantity::UtilAfter => "util_after",
            Quantity::Threshold => "threshold",
            Quantity::ThresholdTick => "threshold_tick",
            Quantity::ClosedForm => "closed_form",
            Quantity::FitsCapacity => "fits_capacity",
            Quantity::ApproximateRuntime => "approximate_runtime",
            Quantity::Score => "score",
            Quantity::UtilEst => "util_est",
            Quantity::EstTicks => "est_ticks",
            Quantity::AvgTicks => "avg_ticks",
            Quantity::EstWait => "est_wait",
            Quantity::EstAfter => "est_after",
            Quantity::SpeedTicks => "speed_ticks",
            Quantity::SteadyUtil => "steady_util",
            Quantity::SteadyEst => "steady_est",
            Quantity::SteadyUtilOf16 => "steady_util_of_16",
            Quantity::SteadyEstOf16 => "steady_est_of_16",
            Quantity::SteadyShare => "steady_share",
            Quantity::SteadyFreq => "steady_freq",
            Quantity::SteadyEnergy => "steady_energy",
            Quantity::RestEst => "rest_est",
            Quantity::GridFreq => "grid_freq",
            Quantity::GridEnergy => "grid_energy",
            Quantity::Slack => "slack",
            Quantity::SlackLeast => "slack_least",
            Quantity::TaskUtil => "task_util",
            Quantity::TaskUtilRange => "task_util_range",
            Quantity::CpuUtil => "cpu_util",
            Quantity::CpuCapacity => "cpu_capacity",
            Quantity::CpuCapacityRange => "cpu_capacity_range",
            Quantity::Figure => "figure",
        }
    }

    /// The unit of the published number.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::UtilAfter
            | Quantity::UtilEst
            | Quantity::EstAfter
            | Quantity::SteadyUtil
            | Quantity::SteadyEst
            | Quantity::SteadyUtilOf16
            | Quantity::SteadyEstOf16
            | Quantity::RestEst
            | Quantity::TaskUtil
            | Quantity::TaskUtilRange
            | Quantity::CpuUtil
            | Quantity::CpuCapacity
            | Quantity::CpuCapacityRange
            | Quantity::Threshold
            | Quantity::ThresholdTick
            | Quantity::FitsCapacity => "util",
            Quantity::Score => "points",
            Quantity::SteadyShare
            | Quantity::SteadyFreq
            | Quantity::SteadyEnergy
            | Quantity::GridFreq
            | Quantity::GridEnergy => "%",
            _ if self.is_climb() && !matches!(self, Quantity::EstWait) => "ticks",
            _ => "ms",
        }
    }

    /// Whether it takes a run to measure it.
    pub const fn needs_run(self) -> bool {
        !self.is_exact() && !matches!(self, Quantity::ClosedForm)
    }

    /// Whether published and measured are whole numbers by the same rule, so that nothing is left
    /// to tolerate.
    pub const fn is_exact(self) -> bool {
        matches!(
            self,
            Quantity::Threshold
                | Quantity::ThresholdTick
                | Quantity::FitsCapacity
                | Quantity::ApproximateRuntime
        )
    }

    /// Whether it is about a figure's `grid` of periodic tasks.
    pub const fn is_grid(self) -> bool {
        self.has_reading()
            || matches!(
                self,
                Quantity::GridFreq | Quantity::GridEnergy | Quantity::Slack | Quantity::SlackLeast
            )
    }

    /// Whether it is about steady activations, or about all others.
    pub const fn has_reading(self) -> bool {
        matches!(
            self,
            Quantity::SteadyUtil
                | Quantity::SteadyEst
                | Quantity::SteadyUtilOf16
                | Quantity::SteadyEstOf16
                | Quantity::SteadyShare
                | Quantity::SteadyFreq
                | Quantity::SteadyEnergy
                | Quantity::RestEst
        )
    }

    /// Whether it is read off the signals of a run.
    pub const fn is_signal(self) -> bool {
        matches!(
            self,
            Quantity::TaskUtil
                | Quantity::TaskUtilRange
                | Quantity::CpuUtil
                | Quantity::CpuCapacity
                | Quantity::CpuCapacityRange
        )
    }

    /// Whether it is about one moment.
    pub const fn is_at(self) -> bool {
        matches!(self, Quantity::CpuUtil | Quantity::CpuCapacity)
    }

    /// Whether it is about util_est as it rises in a burst.
    pub const fn is_climb(self) -> bool {
        matches!(
            self,
            Quantity::EstTicks
                | Quantity::AvgTicks
                | Quantity::EstWait
                | Quantity::EstAfter
                | Quantity::SpeedTicks
        )
    }

    /// Whether published and measured are whole numbers that a run can match exactly: nothing is
    /// tolerated but what the start phases differ by.
    pub const fn is_count(self) -> bool {
        matches!(self, Quantity::EstTicks | Quantity::AvgTicks | Quantity::EstAfter)
    }

    /// Whether it is the largest of all start phases, for which a bound is a bound.
    pub const fn is_bound(self) -> bool {
        matches!(
            self,
            Quantity::SteadyUtil
                | Quantity::SteadyEst
                | Quantity::SteadyUtilOf16
                | Quantity::SteadyEstOf16
                | Quantity::RestEst
        )
    }

    /// Whether its rows go by policy, each a run of its own.
    pub const fn by_policy(self) -> bool {
        self.is_grid()
            || self.is_signal()
            || matches!(self, Quantity::Score | Quantity::UtilEst | Quantity::Figure)
    }

    /// Whether it is about one CPU's domain.
    pub const fn needs_cpu(self) -> bool {
        matches!(
            self,
            Quantity::FreqResidency
                | Quantity::TimeOnCpu
                | Quantity::CpuUtil
                | Quantity::CpuCapacity
                | Quantity::CpuCapacityRange
        )
    }
}

impl Figure {
    /// `FIGURE/QUANTITY[/METRIC][/cpuN][/MSms][/POLICY][/READING]/AT`: unique in the study.
    pub fn row_id(&self, list: &List, row: &Row) -> String {
        let metric = list.metric.as_ref().map(|m| format!("/{m}")).unwrap_or_default();
        let ms = list.ms.map(|ms| format!("/{ms}ms")).unwrap_or_default();
        let cpu = list.cpu.map(|c| format!("{metric}/cpu{c}{ms}")).unwrap_or(metric);
        let policy = list.policy.as_ref().map(|p| format!("/{p}")).unwrap_or_default();
        let reading = list.said_reading().map(|r| format!("/{r}")).unwrap_or_default();
        format!("{}/{}{cpu}{policy}{reading}/{}", self.id, list.quantity.as_str(), row.at)
    }
}

impl List {
    /// The unit of its published numbers.
    pub fn unit(&self) -> &'static str {
        match (&self.metric, self.quantity) {
            (Some(name), Quantity::Figure) if name.ends_with("energy") => "mJ",
            _ => self.quantity.unit(),
        }
    }
    /// The reading, if it is about one and not about the promise's own words.
    pub fn said_reading(&self) -> Option<&'static str> {
        let said = self.quantity.has_reading() && self.reading != Reading::Letter;
        said.then(|| self.reading.as_str())
    }
}

impl Study {
    /// The number of rows and checks.
    pub fn len(&self) -> usize {
        let checks = |f: &Figure| f.table.as_ref().map_or(0, |t| t.checks.len());
        let rows = |f: &Figure| f.lists.iter().map(|l| l.rows.len()).sum::<usize>();
        self.figures.iter().map(|f| rows(f) + checks(f)).sum()
    }
    /// Whether it has none (a parsed one has).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
