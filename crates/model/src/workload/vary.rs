//! One key of a workload changed before it is read: `ui.util_min=512`, `/games.weight=300`.
//!
//! ```text
//! TASK.KEY=VALUE     a task's own key, of all tasks of that name; phases that name the key keep theirs
//! /GROUP.KEY=VALUE   a task group's, which `taskgroups` has to name
//! VALUE              JSON; what is no JSON is text (SCHED_FIFO)
//! ```
//!
//! The text is changed, not what was read of it, so that all the file's rules hold for the change, too. It stays on
//! its line: places in messages keep their line.

use super::json::Reader;
use crate::InputError;
use crate::input::{nearest, one_line};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::fmt;

/// A key of a task or task group, and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The task by its name in the file, or the path of a task group.
    pub of: String,
    /// The key.
    pub key: String,
    /// Its value, as JSON.
    pub value: String,
}

impl Change {
    /// From its parts; a value that is no JSON is text.
    pub fn new(of: impl Into<String>, key: impl Into<String>, value: impl fmt::Display) -> Change {
        let value = value.to_string();
        let json = parse_to_ast(&value, &CollectOptions::default(), &ParseOptions::default());
        let value = match json {
            Ok(parsed) if parsed.value.is_some() => value,
            _ => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        };
        Change { of: of.into(), key: key.into(), value }
    }

    /// From `TASK.KEY=VALUE`.
    ///
    /// Errors: it is not of that form.
    pub fn parse(text: &str) -> Result<Change, InputError> {
        let parts = text.split_once('=').and_then(|(path, value)| {
            let (of, key) = path.rsplit_once('.')?;
            (!of.is_empty() && !key.is_empty() && !value.is_empty()).then_some((of, key, value))
        });
        let Some((of, key, value)) = parts else {
            let what = format!("found `{}`, wanted TASK.KEY=VALUE", one_line(text));
            return Err(InputError::new("--vary", what).hint("as in ui.util_min=512"));
        };
        Ok(Change::new(of, key, value))
    }

    /// What it changes in `text`: ranges and what is to stand there.
    fn edits(&self, reader: &Reader<'_>) -> Result<Vec<(Range, String)>, InputError> {
        let tree = reader.tree()?;
        let list = if self.of.starts_with('/') { "taskgroups" } else { "tasks" };
        let all = object(&tree).and_then(|root| {
            object(&root.properties.iter().find(|p| p.name.as_str() == list)?.value)
        });
        let all = all.map_or(&[][..], |all| &all.properties[..]);
        let named = all.iter().filter(|p| p.name.as_str() == self.of);
        let edits: Vec<_> = named.filter_map(|p| Some(self.edit(object(&p.value)?))).collect();
        if edits.is_empty() {
            let known: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
            let what = format!("{} has no `{}` in `{list}`", reader.file, one_line(&self.of));
            let error = InputError::new(format!("--vary {}", one_line(&self.to_string())), what);
            return Err(match nearest(&self.of, &known) {
                Some(name) => error.hint(format!("did you mean `{name}`?")),
                None => error,
            });
        }
        Ok(edits)
    }

    fn edit(&self, of: &Object<'_>) -> (Range, String) {
        let there = of.properties.iter().find(|p| p.name.as_str() == self.key);
        if let Some(there) = there {
            return (there.value.range(), self.value.clone());
        }
        let begin = of.range.start + 1;
        (Range { start: begin, end: begin }, format!(" \"{}\": {},", self.key, self.value))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.of, self.key, self.value)
    }
}

fn object<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Object<'a>> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// `text`, the workload in `file`, after `changes`, one after the other.
///
/// Errors: it is no JSON; a task or group that it does not have.
pub(super) fn changed(text: &str, file: &str, changes: &[Change]) -> Result<String, InputError> {
    let mut text = text.trim_start_matches('\u{feff}').to_string();
    for change in changes {
        let filled = super::omitted::fill(&text);
        let mut edits = change.edits(&Reader { file, original: &text, filled: &filled })?;
        edits.sort_by_key(|(at, _)| at.start);
        let mut next = filled.text.into_owned();
        for (at, what) in edits.into_iter().rev() {
            next.replace_range(at.start..at.end, &what);
        }
        text = next;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use risetime_kernel::units::Util;

    const FILE: &str = r#"// two
{ "taskgroups": { "/g": { "weight": 200 } },
  "tasks": { "a": { "util_min": 10, "suspend", "run": 5 },
             "b": { "instance": 2, "taskgroup": "/g", "run": 5, "sleep": 5 } } }"#;

    fn varied(changes: &[&str]) -> Result<Workload, InputError> {
        let changes: Vec<Change> =
            changes.iter().map(|c| Change::parse(c)).collect::<Result<_, _>>()?;
        Workload::parse(&changed(FILE, "w.json", &changes)?, "w.json")
    }

    #[test]
    fn a_key_is_changed_or_added_and_nothing_else() {
        let as_it_is = varied(&[]).unwrap();
        let w =
            varied(&["a.util_min=512", "b.priority=-5", "b.policy=SCHED_BATCH", "/g.weight=50"])
                .unwrap();
        assert_eq!(w.tasks[0].attr.uclamp_min, Some(Util(512)));
        assert_eq!(w.tasks[1].attr.nice, Some(-5));
        assert_eq!(w.tasks[2].attr.policy.map(|p| p.name()), Some("SCHED_BATCH"));
        assert_eq!(w.groups[0].weight, 50);
        assert_eq!(w.tasks[0].phases, as_it_is.tasks[0].phases);
        assert_eq!(varied(&["a.util_min=10"]).unwrap(), as_it_is);
    }

    #[test]
    fn faults_are_those_of_the_file_or_name_the_change() {
        for (change, words) in [
            ("c.util_min=5", "--vary c.util_min=5: w.json has no `c` in `tasks`"),
            ("/h.weight=5", "no `/h` in `taskgroups`"),
            ("a.util_mni=5", "unknown key `util_mni`"),
            ("a.util_min=5000", "w.json:3:"),
            ("util_min=5", "wanted TASK.KEY=VALUE"),
            ("a.util_min=", "wanted TASK.KEY=VALUE"),
        ] {
            let error = varied(&[change]).unwrap_err().to_string();
            assert!(error.contains(words), "{change}: {error}");
        }
    }
}
