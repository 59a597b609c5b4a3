//! Arguments of `risetime convert`.

use super::values::file;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// The trace to be read, of any format that is known
    #[arg(value_name = "INPUT")]
    pub(crate) input: String,
    /// The file to be written; its ending says the format
    #[arg(value_name = "OUTPUT", value_parser = file)]
    pub(crate) output: PathBuf,
    /// Buffer to read, by its instance's name, where a trace.dat has several [default: the top one]
    #[arg(long, value_name = "NAME")]
    pub(crate) buffer: Option<String>,
}
