//! A table of the shares of a whole: label, value, percentage, a bar, further figures.

use super::line::Ink;

/// Shares of a whole.
pub(crate) struct Shares {
    /// Heads of the value, of the percentage, and of the columns behind the bar.
    pub(crate) heads: (&'static str, &'static str, Vec<&'static str>),
    /// The shares in the order in which they are shown.
    pub(crate) rows: Vec<Share>,
}

/// A share of a whole.
pub(crate) struct Share {
    pub(crate) label: String,
    pub(crate) ink: Ink,
    pub(crate) value: String,
    /// Part of the whole, 0 to 1; below 0 it has no bar.
    pub(crate) part: f64,
    pub(crate) percent: String,
    /// Figures behind the bar.
    pub(crate) more: Vec<String>,
}

impl Shares {
    /// Columns of a figure.
    pub(crate) const FIGURE: usize = 7;
    /// Columns that a bar takes at least, and at most.
    pub(crate) const BAR: (usize, usize) = (8, 40);

    /// The largest part, to which the longest bar belongs.
    pub(crate) fn top(&self) -> f64 {
        self.rows.iter().map(|r| r.part).fold(0.0, f64::max)
    }
}
