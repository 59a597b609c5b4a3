//! Options of `risetime report`.

use super::{AnyFormat, Plot};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// File that a command wrote with --save-result FILE; its content says what it is
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: String,
    /// Print all there is, not one screen: plots, residencies, every task
    #[arg(long)]
    pub(crate) full: bool,
    /// List of all bursts, too, of runs that were saved with --bursts or --full
    #[arg(long)]
    pub(crate) bursts: bool,
    /// Print every phase, too, of runs of --phases
    #[arg(long)]
    pub(crate) every_phase: bool,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the results
    #[arg(long, value_enum, default_value_t = AnyFormat::Text)]
    pub(crate) format: AnyFormat,
}
