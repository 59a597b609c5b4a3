//! Kinds of figures that may be weak, and what is said of them: [`caution`](crate::caution) knows
//! where.

/// Kinds of figures that cautions tell apart, of whatever task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weak {
    /// Work lost, the time to full speed, and what else is none of the others.
    Speed,
    /// High percentiles of activations, from p90 on.
    Activations,
    /// High percentiles of wakeups.
    Wakeups,
    /// High percentiles of responses.
    Responses,
    /// Number of changes of CPU.
    Migrations,
    /// Energy.
    Energy,
}

/// A figure that is shown, and should be taken with care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caution {
    /// The kinds of figures.
    pub of: &'static [Weak],
    /// Figures that are weak, in words.
    pub figure: &'static str,
    /// Typical distance from a real kernel's.
    pub typical: &'static str,
    /// Reason of the caution, in a sentence.
    pub why: &'static str,
}
