//! The rt-app that is meant where releases differ: `global.rt_app`, which `--rt-app` sets.
//!
//! ```text
//! 1.0    the last release, of 2017, as distributions package it
//! 2026   what is developed since then, as of May 2026: the default
//! ```
//!
//! All that differs: docs/rt-app.md.

use super::events::{self, Key, Kind};
use super::json::Reader;
use crate::InputError;
use crate::input::one_line;
use jsonc_parser::ast::{Object, ObjectProp, Value};

const UNKNOWN: &str = "rt-app 1.0 does not know it, and passes over it";
const OF_TASK: &str = "rt-app 1.0 reads it of a task alone";

/// An rt-app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtApp {
    /// Release 1.0.
    V1_0,
    /// Development as of 2026.
    #[default]
    V2026,
}

impl RtApp {
    /// All of them by their names.
    pub const ALL: [(&'static str, RtApp); 2] = [("1.0", RtApp::V1_0), ("2026", RtApp::V2026)];

    /// The reason why this rt-app passes over a key of a task or phase; `None`: it does not.
    pub(super) fn passes_over(self, prop: &ObjectProp<'_>, is_task: bool) -> Option<&'static str> {
        if self != RtApp::V1_0 {
            return None;
        }
        match events::classify(prop.name.as_str()) {
            Key::Event(Kind::Fork | Kind::SemWait | Kind::SemPost) => Some(UNKNOWN),
            Key::Event(Kind::Memrun) => Some("rt-app 1.0 takes it for a `run` of 0"),
            Key::Property("util_min" | "util_max" | "taskgroup" | "nodes_membind") => Some(UNKNOWN),
            Key::Property("policy" | "priority" | "dl-runtime" | "dl-period" | "dl-deadline")
                if !is_task =>
            {
                Some(OF_TASK)
            }
            _ => None,
        }
    }

    /// The name as `--rt-app` takes it.
    pub fn name(self) -> &'static str {
        RtApp::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }
}

/// The rt-app that a file means, and what follows from it.
#[derive(Clone, Copy, Default)]
pub(super) struct Which {
    pub(super) rt_app: RtApp,
    /// True if it writes a line of its log for each round, to a file.
    pub(super) logs: bool,
    /// True if its `suspend` waits under the task's own name, whatever it says: where the rt-app of 2026 is asked for by name.
    /// Files that were written for 1.0, rt-app's own among them, would wait for ever.
    pub(super) own_suspend: bool,
}

impl<'a> Reader<'a> {
    /// The rt-app that the file means.
    pub(super) fn which_rt_app(&self, root: &Object<'a>) -> Result<Which, InputError> {
        let global = root.properties.iter().find(|p| p.name.as_str() == "global");
        let Some(Value::Object(global)) = global.map(|p| &p.value) else {
            // Without `global` neither logs anything.
            return Ok(Which::default());
        };
        let find = |key: &str| global.properties.iter().find(|p| p.name.as_str() == key);
        let which = match find("rt_app") {
            None => RtApp::default(),
            Some(prop) => {
                let found = match &prop.value {
                    Value::StringLit(s) => s.value.to_string(),
                    Value::NumberLit(n) => n.value.to_string(),
                    other => {
                        return Err(self.wrong(prop, "`global`", other, "\"1.0\" or \"2026\""));
                    }
                };
                let known = RtApp::ALL.iter().find(|(name, _)| *name == found);
                known.map(|(_, one)| *one).ok_or_else(|| {
                    let found = one_line(&found);
                    let what =
                        format!("`global`: `rt_app` is \"{found}\", wanted \"1.0\" or \"2026\"");
                    self.error(&prop.value, what)
                })?
            }
        };
        let logs = match find("log_size").map(|p| &p.value) {
            None => true,
            Some(Value::StringLit(mode)) => match which {
                // rt-app 1.0 compares the wrong way round.
                RtApp::V1_0 => mode.value == "disable",
                RtApp::V2026 => mode.value == "file" || mode.value == "auto",
            },
            // A log of a fixed size stays in memory until the end.
            Some(_) => false,
        };
        let own_suspend = which == RtApp::V2026 && find("rt_app").is_some();
        Ok(Which { rt_app: which, logs, own_suspend })
    }
}
