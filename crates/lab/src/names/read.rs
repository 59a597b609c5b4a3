//! Readers of single names and files, for whoever shows, checks or plans: the same as a request's.

use risetime_kernel::units::Span;
use risetime_model::library::{self, Entry};
use risetime_model::workload::Change;
use risetime_model::{Dags, InputError, Needs, Platform, Policy, Study, TaskSet, Workload, meant};
use std::io::Read;

/// Longest file of a name that was read, in bytes: every kind of them is shorter.
const LONGEST: usize = 64 << 20;

/// Reads a platform: a built-in one by its name, or a file.
///
/// Errors: there is none of that name; what is wrong with the file.
pub fn platform(name: &str) -> Result<Platform, InputError> {
    Platform::load(name)
}

/// Reads a workload as it is, or with keys that are changed: a built-in one by its name, or a file.
///
/// Errors: there is none of that name; what is wrong with the file or a change.
pub fn workload(name: &str, changes: &[Change]) -> Result<Workload, InputError> {
    Workload::load_changed(name, changes)
}

/// Reads a study: a built-in one by its name, or a file.
///
/// Errors: there is none of that name; what is wrong with the file.
pub fn study(name: &str) -> Result<Study, InputError> {
    Study::load(name)
}

/// Reads a file of task graphs.
///
/// Errors: what is wrong with it.
pub fn dags(file: &str) -> Result<Dags, InputError> {
    Dags::load(file)
}

/// Reads a file of needs.
///
/// Errors: what is wrong with it.
pub fn needs(file: &str) -> Result<Needs, InputError> {
    Needs::load(file)
}

/// Reads a file of a task set, whose numbers without a unit count in `tick`.
///
/// Errors: what is wrong with it.
pub fn task_set(file: &str, tick: Span) -> Result<TaskSet, InputError> {
    TaskSet::load(file, tick)
}

/// Reads a platform of the simulator PARTSim, with the file of the model called `plain`; `None`: the file is none.
///
/// Errors: what is wrong with it.
pub fn partsim(file: &str, plain: Option<&str>) -> Result<Option<Platform>, InputError> {
    Platform::load_partsim(file, plain)
}

/// Reads a text of at most `most` bytes.
///
/// Errors: it cannot be read; it is longer, or no text.
pub fn text(file: &str, most: usize) -> Result<String, InputError> {
    risetime_model::read_file(file, most)
}

/// Whether a built-in workload has that name.
pub fn is_workload(name: &str) -> bool {
    is_built_in(&library::workloads(), name)
}

fn is_built_in(entries: &[Entry], name: &str) -> bool {
    entries.iter().any(|e| e.name == name || e.aliases.contains(&name))
}

/// Thing that a name or a file stands for.
pub enum Noun {
    /// A platform.
    Platform(Platform),
    /// A policy.
    Policy(Policy),
    /// A workload.
    Workload(Box<Workload>),
    /// A study.
    Study(Study),
}

impl Noun {
    /// Reads a built-in of any kind by its name; a file by its ending and, for TOML, by its contents. `changes` are those of a
    /// workload.
    ///
    /// Errors: nothing has that name; what is wrong with the file.
    pub fn of(name: &str, changes: &[Change]) -> Result<Noun, InputError> {
        let bare = name.split('+').next().unwrap_or(name);
        if is_built_in(&library::platforms(), name) {
            return platform(name).map(Noun::Platform);
        }
        if is_built_in(&library::policies(), bare) {
            return super::policy(name, &[]).map(Noun::Policy);
        }
        if is_built_in(&library::studies(), name) {
            return study(name).map(Noun::Study);
        }
        let ends = [".json", ".yaml", ".yml"].iter().any(|ending| name.ends_with(ending));
        if is_workload(name) || ends {
            return workload(name, changes).map(Box::new).map(Noun::Workload);
        }
        if !name.ends_with(".toml") && !name.contains('/') {
            let kinds = [
                library::platforms(),
                library::policies(),
                library::workloads(),
                library::studies(),
            ];
            let all = kinds.concat();
            let known: Vec<&str> = all.iter().map(|e| e.name).collect();
            let all = "`risetime list` has all that is built in; a file is recognised by its ending, .toml or .json";
            return Err(
                InputError::new(name, "nothing of that name").hint(meant(name, &known, all))
            );
        }
        if beginning(name).lines().any(|l| l.trim() == "[[figure]]") {
            return study(name).map(Noun::Study);
        }
        // A policy has no frequency domains; whatever else it may be, read it as a platform.
        match Policy::load(name) {
            Ok(policy) => Ok(Noun::Policy(policy)),
            Err(as_policy) => match platform(name) {
                Ok(platform) => Ok(Noun::Platform(platform)),
                Err(as_platform) => {
                    Err(if looks_like_policy(name) { as_policy } else { as_platform })
                }
            },
        }
    }

    /// Returns the text of the file behind the name.
    ///
    /// Errors: it cannot be read.
    pub fn source(&self, name: &str) -> Result<String, InputError> {
        let entries = match self {
            Noun::Platform(_) => library::platforms(),
            Noun::Policy(_) => library::policies(),
            Noun::Workload(_) => library::workloads(),
            Noun::Study(_) => library::studies(),
        };
        match entries.iter().find(|e| e.name == name || e.aliases.contains(&name)) {
            Some(entry) => Ok(entry.text.to_string()),
            None => text(name, LONGEST),
        }
    }
}

/// Reads the first of a file, which is enough to tell what it is and costs no more for a gigabyte.
fn beginning(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(1 << 16).read_to_end(&mut bytes));
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn looks_like_policy(path: &str) -> bool {
    let text = beginning(path);
    !text.contains("[[domain]]") && text.lines().any(|l| l.trim_start().starts_with("kernel"))
}
