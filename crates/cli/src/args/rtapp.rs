//! Arguments that say which rt-app a workload's file is for, and `risetime export`.

use super::values::{file, placeholder};
use crate::complete;
use clap::{Args, ValueEnum};
use risetime_model::workload::{Change, RtApp};
use std::path::PathBuf;

/// Way in which a workload's file is read.
#[derive(Args, Debug, Default)]
pub(crate) struct Reading {
    /// rt-app that is meant where releases differ (docs/rt-app.md) [default: 2026, or what the file says in `global.rt_app`]
    #[arg(long, value_name = "RELEASE", value_parser = ["1.0", "2026"])]
    pub(crate) rt_app: Option<String>,
    /// Value for a placeholder of a template, DURATION=5 for `__DURATION__`; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = placeholder)]
    pub(crate) fill: Vec<Change>,
}

impl Reading {
    /// The changes that stand for it.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let which = self.rt_app.iter();
        let which = which.map(|r| Change { key: "global.rt_app".into(), value: r.clone() });
        self.fill.iter().cloned().chain(which).collect()
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The release that distributions package
    #[value(name = "rt-app-1.0")]
    Packaged,
    /// rt-app as it is developed since, as of May 2026
    #[value(name = "rt-app")]
    Current,
}

impl Reader {
    pub(crate) fn rt_app(self) -> RtApp {
        match self {
            Reader::Packaged => RtApp::V1_0,
            Reader::Current => RtApp::V2026,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Export {
    /// A built-in workload (`risetime list workloads`) or an rt-app JSON file
    #[arg(add = complete::workload())]
    pub(crate) workload: String,
    /// Program that is to run it
    #[arg(long = "for", value_name = "PROGRAM", value_enum)]
    pub(crate) reader: Reader,
    /// Platform that it is to run on: `run` is calibrated on its largest CPU
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = file)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}
