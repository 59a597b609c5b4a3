//! Arguments of `risetime import`.

use super::values::{file, hz, importer};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// Files or directories about one machine: device tree (.dts, .dtb), /sys (a directory or .tar),
    /// energy model, LISA's plat_info.yml, kernel configuration. Where two say the same, the first counts
    #[arg(required = true, value_name = "FILE_OR_DIR")]
    pub(crate) inputs: Vec<String>,
    /// Kind of the inputs, where their contents do not tell it
    #[arg(long = "as", value_name = "KIND", value_parser = importer())]
    pub(crate) kind: Option<String>,
    /// Ticks per second of its kernel (CONFIG_HZ), which no device tree says
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = hz())]
    pub(crate) hz: Option<u32>,
    /// Name of the platform [default: what the inputs call the machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = file)]
    pub(crate) output: Option<PathBuf>,
}
