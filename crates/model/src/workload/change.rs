//! A key of a workload's file, changed before the file is read: what sweeps vary.
//!
//! ```text
//! ui.run=3000              below `tasks`
//! ui.phases.busy.run=3000  any depth; a name may hold dots itself
//! ui.run#2=3000            the second of several keys that are called so
//! ui,render.priority=-4    of several tasks
//! global.duration=2        `global`, `taskgroups` and `tasks` stand at the top of the file
//! ```
//!
//! Only the text changes, so that the value is checked as if it had been written there. A key that is missing
//! is put behind the others of its object, unless it is an event's.

use super::json::{Reader, describe};
use super::{Workload, events};
use super::{omitted, placeholder};
use crate::InputError;
use crate::input::one_line;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use std::collections::BTreeSet;
use std::fmt;

/// Names that a message lists.
const LISTED: usize = 40;

/// A change of one key, or, if the key is a placeholder, `__NAME__`, the value that is filled in for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path of the key.
    pub key: String,
    /// New value of the key: a number, `true` or `false`, a list or an object as JSON has them,
    /// else a text.
    pub value: String,
}

/// A key of a task or task group, told apart from whose it is, and a new value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyOf {
    /// The task by its name in the file, or the path of a task group.
    pub of: String,
    /// The key.
    pub key: String,
    /// The key's value, as [`Change::value`].
    pub value: String,
}

impl KeyOf {
    /// A key of the object `of` with its value.
    pub fn new(of: impl Into<String>, key: impl Into<String>, value: impl fmt::Display) -> KeyOf {
        KeyOf { of: of.into(), key: key.into(), value: value.to_string() }
    }

    /// The change of the file.
    pub fn change(&self) -> Change {
        let top = if self.of.starts_with('/') { "taskgroups." } else { "" };
        Change { key: format!("{top}{}.{}", self.of, self.key), value: self.value.clone() }
    }
}

impl fmt::Display for KeyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.change().fmt(f)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl Workload {
    /// The workload called `name_or_path` with some keys changed, which its name then says.
    ///
    /// Errors: as [`Workload::load`]'s; a key that is not there and cannot be added.
    pub fn load_changed(name_or_path: &str, changes: &[Change]) -> Result<Workload, InputError> {
        let (mut text, place, mut name) = Workload::located(name_or_path)?;
        // Until they are filled in, it is no JSON.
        for change in changes {
            if let Some(key) = placeholder::name_of(&change.key) {
                text = placeholder::fill(&text, &place, key, &change.value)?;
                name += &format!("+{change}");
            }
        }
        let keys = |change: &&Change| placeholder::name_of(&change.key).is_none();
        for change in changes.iter().filter(keys) {
            placeholder::check(&text, &place)?;
            text = changed(&text, &place, change)?;
            name += &format!("+{change}");
        }
        Ok(Workload::parse_named(&text, &place, &name)?.given_as(name_or_path))
    }
}

/// Keys at the top of a file.
const TOP: [&str; 3] = ["global", "taskgroups", "tasks"];

/// `text` with one key changed.
fn changed(text: &str, file: &str, change: &Change) -> Result<String, InputError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let filled = omitted::fill(text);
    let reader = Reader::new(file, text, &filled);
    let tree = reader.tree()?;
    let root = reader.object(&tree, "the file")?;
    let path = change.key.as_str();
    let at_top = TOP.iter().find(|top| path.strip_prefix(**top).is_some_and(ends_name));
    let tasks = root.properties.iter().find(|p| p.name.as_str() == "tasks");
    if let (None, Some(tasks)) = (at_top, tasks)
        && let Some(each) = each(reader.object(&tasks.value, "`tasks`")?, change)
    {
        return each.iter().try_fold(text.to_string(), |text, one| changed(&text, file, one));
    }
    let (from, to, new) = match (at_top, tasks) {
        (None, Some(tasks)) => {
            edit(&reader, reader.object(&tasks.value, "`tasks`")?, path, change)?
        }
        // `global` may be left out of a file.
        (Some(top), _) if root.properties.iter().all(|p| p.name.as_str() != *top) => {
            let inner = path[top.len()..].trim_start_matches('.');
            let inner = format!("{{{}: {}}}", quoted(inner), json(&change.value, false));
            added(root, top, &inner)
        }
        _ => edit(&reader, root, path, change)?,
    };
    Ok([&filled.text[..from], &new, &filled.text[to..]].concat())
}

/// The changes that `a,b.KEY` is short for: that of each task. `None`: it is of one alone, whose name may hold a comma.
fn each(tasks: &Object<'_>, change: &Change) -> Option<Vec<Change>> {
    let (first, last) = change.key.rsplit_once(',')?;
    if step(tasks, &change.key).is_some() {
        return None;
    }
    let step = step(tasks, last)?;
    let rest = step.rest?;
    let names = first.split(',').chain([step.name]);
    Some(names.map(|of| Change { key: format!("{of}.{rest}"), ..change.clone() }).collect())
}

/// Whether a name ends here, with `rest` behind it.
fn ends_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// Range of the text that changes, and what then stands there.
type Edit = (usize, usize, String);

/// The change of `path` below `object`.
fn edit(
    reader: &Reader<'_>,
    object: &Object<'_>,
    path: &str,
    change: &Change,
) -> Result<Edit, InputError> {
    let missing = |what: String| {
        let mut seen = BTreeSet::new();
        let names = object.properties.iter().map(|p| p.name.as_str());
        let mut there: Vec<String> =
            names.filter(|name| seen.insert(*name)).take(LISTED + 1).map(one_line).collect();
        if there.len() > LISTED {
            there[LISTED] = "…".into();
        }
        reader.error(object, what).hint(format!("there are: {}", there.join(", ")))
    };
    let Some(step) = step(object, path) else {
        let first = path.split('.').next().unwrap_or(path);
        // Whatever begins like an event is one (`run3`): a key mistyped would be work that nobody wanted.
        let event = !change.key.starts_with("global.")
            && matches!(events::classify(path), events::Key::Event(_));
        return match first == path && !event {
            true => Ok(added(object, path, &json(&change.value, false))),
            false => Err(missing(format!("there is no `{}`", one_line(first)))),
        };
    };
    let all: Vec<_> = object
        .properties
        .iter()
        .filter(|p| p.name.as_str() == step.name)
        .map(|p| &p.value)
        .collect();
    let value: &Value<'_> = match step.number {
        None if all.len() > 1 => {
            let (name, n) = (one_line(step.name), all.len());
            let what = format!("`{name}` is there {n} times");
            return Err(reader.error(object, what).hint(format!("`{name}#1` to `{name}#{n}`")));
        }
        number => number.unwrap_or(1).checked_sub(1).and_then(|n| all.get(n)).ok_or_else(|| {
            missing(format!("`{}` is there {} times", one_line(step.name), all.len()))
        })?,
    };
    match (step.rest, value) {
        (Some(rest), Value::Object(inner)) => edit(reader, inner, rest, change),
        (Some(_), _) => {
            let what = format!("`{}` is {}, and no object", one_line(step.name), describe(value));
            Err(reader.error(value, what))
        }
        (None, _) => {
            let text = matches!(value, Value::StringLit(_));
            Ok((value.range().start, value.range().end, json(&change.value, text)))
        }
    }
}

/// The beginning of a path.
struct Step<'p> {
    name: &'p str,
    /// Number among those that are called so, from 1.
    number: Option<usize>,
    /// The path below it.
    rest: Option<&'p str>,
}

/// The longest name in `object` with which `path` begins.
fn step<'p>(object: &Object<'_>, path: &'p str) -> Option<Step<'p>> {
    let of = |name: &str| {
        let tail = path.strip_prefix(name)?;
        let name = &path[..name.len()];
        let (number, tail) = match tail.strip_prefix('#') {
            Some(tail) => {
                let (digits, _) = tail.split_once('.').unwrap_or((tail, ""));
                (Some(digits.parse().ok()?), &tail[digits.len()..])
            }
            None => (None, tail),
        };
        ends_name(tail).then(|| Step { name, number, rest: tail.strip_prefix('.') })
    };
    let steps = object.properties.iter().filter_map(|p| of(p.name.as_str()));
    steps.max_by_key(|step| step.name.len())
}

/// A key behind the others of `object`.
fn added(object: &Object<'_>, key: &str, value: &str) -> Edit {
    let (at, comma) = match object.properties.last() {
        Some(last) => (last.range.end, ", "),
        None => (object.range.start + 1, ""),
    };
    (at, at, format!("{comma}{}: {value}", quoted(key)))
}

/// `value` as JSON; where a text stood it stays one.
pub(super) fn json(value: &str, text: bool) -> String {
    let plain = value.starts_with(['[', '{']) || value == "true" || value == "false";
    if !text && (plain || is_number(value)) { value.to_string() } else { quoted(value) }
}

/// A number as JSON has them.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    digits(whole) && digits(part) && (whole == "0" || !whole.starts_with('0'))
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"// a file
{ "tasks": {
    "ui":  { "suspend", "run": 1, "timer": { "ref": "unique", "period": 10 }, }, // trailing commas
    "a.b": { "run": 1, "sleep": 2, "run": 3, "phases": {} }
} }"#;

    fn change(key: &str, value: &str) -> Result<String, String> {
        let change = Change { key: key.into(), value: value.into() };
        changed(FILE, "f.json", &change).map_err(|e| e.to_string())
    }

    /// The line of the file with `key`'s task in it.
    fn line(key: &str, value: &str, number: usize) -> String {
        let text = change(key, value).unwrap_or_else(|e| panic!("{e}"));
        text.lines().nth(number).expect("as many lines as before").trim().to_string()
    }

    #[test]
    fn a_key_changes_in_its_place_or_comes_last() {
        for (key, value, wanted) in [
            ("ui.run", "20", r#""run": 20, "timer""#),
            ("tasks.ui.run", "2.5", r#""run": 2.5, "timer""#),
            ("ui.timer.period", "-7", r#""period": -7 }"#),
            ("ui.timer.ref", "5", r#""ref": "5", "period""#),
            ("ui.cpus", "[0, 1]", r#""period": 10 }, "cpus": [0, 1], }"#),
            ("ui.policy", "SCHED_FIFO", r#"}, "policy": "SCHED_FIFO", }"#),
            ("ui.timer.mode", "absolute", r#""period": 10, "mode": "absolute" }"#),
            ("ui.suspend", "x\"y", r#""suspend": "x\"y", "run""#),
        ] {
            assert!(line(key, value, 2).contains(wanted), "{key}: {}", line(key, value, 2));
        }
        assert!(line("a.b.run#2", "9", 3).contains(r#""sleep": 2, "run": 9, "phases""#));
        assert!(line("a.b.phases.x", "007", 3).ends_with(r#"{"x": "007"} }"#));
        assert!(line("global.mem_buffer_size", "7", 4).contains(r#"{"mem_buffer_size": 7}"#));
        assert!(line("global.duration", "7", 4).contains(r#", "global": {"duration": 7} }"#));
    }

    #[test]
    fn tasks_named_together_are_changed_one_by_one() {
        let one = change("ui,a.b.priority", "-4").expect("both are there");
        let ui = change("ui.priority", "-4").expect("it is there");
        let change = Change { key: "a.b.priority".into(), value: "-4".into() };
        assert_eq!(one, changed(&ui, "f.json", &change).expect("it is there"));
        let comma = FILE.replace("a.b", "ui,a.b");
        let change = Change { key: "ui,a.b.priority".into(), value: "-4".into() };
        let one = changed(&comma, "f.json", &change).expect("it is there");
        assert_eq!(one.matches("-4").count(), 1, "a name may hold a comma");
    }

    #[test]
    fn a_path_that_leads_nowhere_says_what_is_there() {
        for (key, wanted) in [
            ("ux.run", "f.json:2:12: there is no `ux`\n  hint: there are: ui, a.b"),
            ("ui.phases.x", "there is no `phases`"),
            ("ux,ui.cpus", "there is no `ux`\n  hint: there are: ui, a.b"),
            ("ui,ux.cpus", "there is no `ui,ux`\n  hint: there are: ui, a.b"),
            ("ui.runn", "there is no `runn`\n  hint: there are: suspend, run, timer"),
            ("ui.run.x", "f.json:3:32: `run` is the number 1, and no object"),
            ("a.b.run", "`run` is there 2 times\n  hint: `run#1` to `run#2`"),
            ("a.b.run#3", "`run` is there 2 times"),
            ("a.b.run#0", "`run` is there 2 times"),
        ] {
            let e = change(key, "1").expect_err(key);
            assert!(e.contains(wanted), "{key}: {e}");
        }
    }

    #[test]
    fn what_is_changed_is_checked_as_if_it_were_written_there() {
        let load = |key: &str, value: &str| {
            Workload::load_changed("phone", &[Change { key: key.into(), value: value.into() }])
        };
        let w = load("ui.run#2", "5000").expect("it is fine");
        assert_eq!(w.name, "phone+ui.run#2=5000");
        let plain = Workload::load("phone").expect("built in");
        let differ = w.tasks.iter().zip(&plain.tasks).filter(|(a, b)| a != b).count();
        assert_eq!(differ, 1);
        assert_eq!(
            Workload { name: plain.name.clone(), ..load("ui.run#2", "1300").unwrap() },
            plain
        );
        let e = load("ui.run#2", "-5").unwrap_err().to_string();
        assert!(e.contains("phone.json (built in):15:") && e.contains("`run` is -5"), "{e}");
    }
}
