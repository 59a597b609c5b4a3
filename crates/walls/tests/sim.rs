//! The rooms of the simulator, by imports and by calls.
//!
//! ```text
//! state <- time <- kernel <- user <- run        a file uses its own room and those left of it
//! mech/NAME/state.rs: of the room `state`       mech/NAME/*.rs: of the room `kernel`
//! ```
//!
//! What a file uses is read from its text without tests: paths that begin with `crate::` or
//! `super::` ([`crate::circles`]), and calls of functions and methods whose name is defined in one
//! file of the simulator only, and in no other crate of the project (of others it cannot be said
//! whom they mean).

use crate::circles::{Doors, imports};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The rooms; what stands in `lib.rs` comes last.
const ROOMS: [&str; 5] = ["state", "time", "kernel", "user", "run"];
/// The table of the mechanisms, and the slots that follow from it.
const MECH_STATE: [&str; 2] = ["mod.rs", "slots.rs"];
/// The longest circle of files within a room.
const LONGEST_CIRCLE: usize = 5;
/// The number of functions that may change whatever they like: methods of these that take `&mut
/// self`, and functions that take one of them as `&mut`. The last one that came closes short ways,
/// whose switches lie all over the machine. Two are the door of the mechanisms (`Mechanism::begin`), which came together with what
/// lets `run` know none of them.
const WHOLE: [&str; 3] = ["Machine", "Kernel", "Simulation"];
const MOST_OF_THE_WHOLE: usize = 83;

/// A source file: its path in the room, and its text without comments, strings and tests.
pub(crate) type Sources = BTreeMap<String, String>;

pub(crate) fn read(src: &Path) -> Sources {
    let mut found = Sources::new();
    let mut dirs = vec![src.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a source directory").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "tests" {
                    dirs.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let place =
                    path.strip_prefix(src).expect("below it").to_string_lossy().into_owned();
                found.insert(place, code_of(&text));
            }
        }
    }
    found
}

/// Without what stands in comments and strings, and without the tests at the end.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let mut outside = true;
        for part in line.split('"') {
            if outside {
                code.push_str(part);
            }
            outside = !outside;
        }
        code.push('\n');
    }
    code
}

/// Words with the character that follows them.
fn words(code: &str) -> impl Iterator<Item = (usize, &str, Option<char>)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at + code[at..].find(is_word)?;
        let to = code[from..].find(|c| !is_word(c)).map_or(code.len(), |n| from + n);
        at = to;
        Some((from, &code[from..to], code[to..].chars().next()))
    })
}

/// Names of functions that a text defines.
fn defined(code: &str) -> BTreeSet<&str> {
    let mut after_fn = false;
    let mut names = BTreeSet::new();
    for (_, word, next) in words(code) {
        // `fn(&Event)` is a type.
        if std::mem::replace(&mut after_fn, word == "fn" && next == Some(' ')) {
            names.insert(word);
        }
    }
    names
}

/// Names that a text gives to closures: a call of one is no function's.
fn closures(code: &str) -> BTreeSet<&str> {
    let names = code.match_indices("let ").filter_map(|(at, found)| {
        let rest = &code[at + found.len()..];
        let (name, value) = rest.split_once(" = ")?;
        let value = value.trim_start().trim_start_matches("move ");
        (value.starts_with('|') && !name.contains(['\n', '(', '{'])).then_some(name)
    });
    names.collect()
}

/// The place of a file's room. In `mech` each half of a mechanism belongs to the room that it would stand in.
fn room(file: &str) -> Option<usize> {
    let own = match file.strip_prefix("mech/") {
        Some(rest) if rest.ends_with("/state.rs") || MECH_STATE.contains(&rest) => "state/",
        Some(_) => "kernel/",
        None => file,
    };
    ROOMS.iter().position(|r| own.starts_with(&format!("{r}/")))
}

/// Returns which files each file uses, and by what.
fn uses(sim: &Sources, elsewhere: &BTreeSet<String>) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut homes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, code) in sim {
        for name in defined(code) {
            homes.entry(name).or_default().push(file);
        }
    }
    let only_home = |name: &str| match homes.get(name).map(Vec::as_slice) {
        Some([file]) if !elsewhere.contains(name) => Some((*file).to_string()),
        _ => None,
    };
    let mut all = imports(sim, Doors::Count);
    for (file, code) in sim {
        let used = all.entry(file.clone()).or_default();
        let (list, own): (Vec<_>, _) = (words(code).collect(), closures(code));
        for (i, (_, word, next)) in list.iter().enumerate() {
            if *next == Some('(')
                && !own.contains(word)
                && i.checked_sub(1).is_none_or(|before| list[before].1 != "fn")
                && let Some(home) = only_home(word)
            {
                used.entry(home).or_insert_with(|| format!("{word}()"));
            }
        }
        used.remove(file);
    }
    all
}

/// What `elsewhere` defines under the same names.
fn names_elsewhere(crates: &Path) -> BTreeSet<String> {
    let others = ["kernel", "job", "model", "trace"];
    let sources = others.iter().map(|c| read(&crates.join(c).join("src")));
    sources
        .flat_map(|s| s.into_values())
        .flat_map(|code| defined(&code).into_iter().map(str::to_string).collect::<Vec<_>>())
        .collect()
}

/// Files of one room that use each other in a circle: the longest such set.
pub(crate) fn circle(
    room: &[&String],
    uses: &BTreeMap<String, BTreeMap<String, String>>,
) -> Vec<String> {
    let reaches = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut next = vec![from.to_string()];
        while let Some(file) = next.pop() {
            for used in uses[&file].keys().filter(|f| room.contains(f)) {
                if seen.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = room.iter().map(|f| (*f, reaches(f))).collect();
    let with = |file: &String| -> Vec<String> {
        let around = all[file].iter().filter(|f| all[f].contains(file));
        around.cloned().collect()
    };
    room.iter().map(|f| with(f)).max_by_key(Vec::len).unwrap_or_default()
}

/// Functions that may change all of the machine.
fn of_the_whole(sim: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for (file, code) in sim {
        let mut owner = String::new();
        let list: Vec<_> = words(code).collect();
        for (i, (at, word, _)) in list.iter().enumerate() {
            let starts_line = *at == 0 || code[..*at].ends_with('\n');
            if *word == "impl" && starts_line {
                // `impl<'a> Trait for Type<'a> {`: the last name before the brace that is no lifetime.
                let head = code[*at..].split('{').next().unwrap_or_default();
                let head =
                    head.rsplit(" for ").next().unwrap_or_default().trim_start_matches("impl");
                let head = head.trim_start_matches(|c| {
                    c == '<' || c == '\'' || c == '_' || c == '>' || c == ' ' || c == 'a'
                });
                owner = words(head).next().map_or(String::new(), |(_, w, _)| w.to_string());
            }
            if *word != "fn" {
                continue;
            }
            let Some((name_at, name, _)) = list.get(i + 1) else { continue };
            let Some(open) = code[*name_at..].find('(') else { continue };
            let mut depth = 0;
            let args = &code[name_at + open..];
            let end = args.char_indices().find(|(_, c)| {
                depth += i32::from(*c == '(') - i32::from(*c == ')');
                depth == 0
            });
            let args = &args[..end.map_or(args.len(), |(n, _)| n)];
            let own = args.contains("&mut self") && WHOLE.contains(&owner.as_str());
            let given = WHOLE.iter().any(|w| {
                args.match_indices(&format!("&mut {w}")).any(|(n, m)| {
                    args[n + m.len()..]
                        .chars()
                        .next()
                        .is_none_or(|c| !c.is_alphanumeric() && c != '_')
                })
            });
            if own || given {
                found.push(format!("{file}: {name}"));
            }
        }
    }
    found
}

/// What is against the rules.
pub(crate) fn complaints(crates: &Path) -> Vec<String> {
    let sim = read(&crates.join("sim/src"));
    let uses = uses(&sim, &names_elsewhere(crates));
    let mut wrong = Vec::new();
    for (file, used) in &uses {
        for (other, by) in used {
            if let (Some(own), Some(theirs)) = (room(file), room(other))
                && own < theirs
            {
                wrong.push(format!("{file} uses {other}, by {by}"));
            }
        }
    }
    for (n, name) in ROOMS.into_iter().enumerate() {
        let files: Vec<&String> = uses.keys().filter(|f| room(f) == Some(n)).collect();
        assert!(files.len() > 3, "the search itself has to work: {name} has {files:?}");
        let circle = circle(&files, &uses);
        if circle.len() > LONGEST_CIRCLE {
            wrong.push(format!(
                "{} files of {name} use each other in a circle: {circle:?}",
                circle.len()
            ));
        }
    }
    let whole = of_the_whole(&sim);
    assert!(whole.len() > 10, "the search itself has to work: {whole:?}");
    if whole.len() > MOST_OF_THE_WHOLE {
        wrong.push(format!(
            "{} functions take the whole machine, wanted at most {MOST_OF_THE_WHOLE}: {whole:#?}",
            whole.len()
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_closures_are_no_functions() {
        let code = "fn one(f: fn(u32)) { let two = |x| x; let three = move |y| y; \
                    let four = five(|z| z); }";
        assert_eq!(defined(code).into_iter().collect::<Vec<_>>(), ["one"]);
        assert_eq!(closures(code).into_iter().collect::<Vec<_>>(), ["three", "two"]);
    }
}
