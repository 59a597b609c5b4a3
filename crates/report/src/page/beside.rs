//! A table of columns, each value with its difference to the first column's.

use super::line::Ink;

/// Columns side by side.
pub(crate) struct Beside {
    /// Heads of the columns.
    pub(crate) heads: Vec<String>,
    /// Names of the rows.
    pub(crate) labels: Vec<String>,
    /// Cells by column.
    pub(crate) cells: Vec<Vec<Cell>>,
}

/// One cell: the value, the difference to the first column, and its colour.
pub(crate) struct Cell {
    pub(crate) value: String,
    pub(crate) difference: String,
    pub(crate) ink: Ink,
}
