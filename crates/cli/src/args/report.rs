//! Options of `risetime report`.

use super::{Format, Plot};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// File that `risetime run … --save-result FILE` wrote; its content says what it is
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: String,
    /// Print all there is, not one screen: plots, residencies, every task
    #[arg(long)]
    pub(crate) full: bool,
    /// Print every phase, too, of runs of --phases
    #[arg(long)]
    pub(crate) every_phase: bool,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
