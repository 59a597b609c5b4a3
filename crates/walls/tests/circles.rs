//! Files of a crate that use each other in a circle, by imports: paths that begin with `crate::` or
//! `super::`.
//!
//! A path leads to the deepest file that it names. Where a file on the way passes a name on (`pub
//! use`), the path leads to what it passes on: passing on is a door, and no use. What stands in
//! `lib.rs` or `main.rs` comes last, and is in no circle.

use crate::sim::{Sources, circle, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The longest circle of files in each crate that has one; 6 is the most for any. Whoever cuts one
/// lowers its number.
const LONGEST: [(&str, usize); 13] = [
    ("analysis", 5),
    ("cli", 2),
    ("deploy", 3),
    ("ftrace", 2),
    ("guest", 3),
    ("kernel", 2),
    ("model", 3),
    ("read", 5),
    ("report", 4),
    ("sim", 5),
    ("study", 2),
    ("trace", 2),
    ("vm", 2),
];
/// Bound of every number of [`LONGEST`].
const BOUND: usize = 6;

/// Splits code into words, `::` and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

/// Meaning of a name that a file passes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doors {
    /// No use.
    Pass,
    /// A use like any other.
    Count,
}

/// A path, and the name that it is imported by.
type Import<'a> = (Vec<&'a str>, &'a str);

/// Reads the path that begins at token `at`, with all that its braces hold, behind `prefix`;
/// returns where it ends.
fn tree<'a>(
    tokens: &[&'a str],
    mut at: usize,
    prefix: &[&'a str],
    found: &mut Vec<Import<'a>>,
) -> usize {
    let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
    if token(at) == "{" {
        at += 1;
        while at < tokens.len() && token(at) != "}" {
            let before = at;
            at = tree(tokens, at, prefix, found);
            if token(at) == "," || at == before {
                at += 1;
            }
        }
        return at + 1;
    }
    let mut path = prefix.to_vec();
    if token(at).starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '*') {
        path.push(token(at));
        at += 1;
        if token(at) == "::" {
            return tree(tokens, at + 1, &path, found);
        }
    }
    let mut name = path.last().copied().unwrap_or_default();
    if token(at) == "as" {
        (name, at) = (token(at + 1), at + 2);
    }
    found.push((path, name));
    at
}

/// Paths of a text that begin with `crate::` or `super::`; those that it passes on only where they
/// count.
fn used<'a>(tokens: &[&'a str], doors: Doors) -> Vec<Vec<&'a str>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let begins = matches!(tokens[at], "crate" | "super")
            && tokens.get(at + 1) == Some(&"::")
            && (at == 0 || tokens[at - 1] != "::");
        match begins {
            true => {
                let passed_on = doors == Doors::Pass && passes_on(tokens, at);
                let before = found.len();
                at = tree(tokens, at, &[], &mut found);
                if passed_on {
                    found.truncate(before);
                }
            }
            false => at += 1,
        }
    }
    found.into_iter().map(|(path, _)| path).collect()
}

/// Whether the path at this token stands behind `pub use`, or `pub(…) use`.
fn passes_on(tokens: &[&str], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| tokens[before] == "use")
        && at.checked_sub(2).is_some_and(|before| matches!(tokens[before], "pub" | ")"))
}

/// Names that a text passes on, each with its path; of `*` every name may come.
fn passed_on<'a>(tokens: &[&'a str]) -> Vec<Import<'a>> {
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        if passes_on(tokens, at) {
            tree(tokens, at, &[], &mut found);
        }
    }
    found
}

/// The modules of a crate by their paths.
struct Modules<'a> {
    files: BTreeMap<Vec<&'a str>, &'a String>,
    doors: BTreeMap<Vec<&'a str>, Vec<Import<'a>>>,
}

/// The module that a file is.
fn module(file: &str) -> Vec<&str> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if path.last() == Some(&"mod") || matches!(path[..], ["lib" | "main"]) {
        path.pop();
    }
    path
}

impl<'a> Modules<'a> {
    /// The file to which a path leads that stands in module `from`.
    fn leads(&self, from: &[&'a str], path: &[&'a str], depth: usize) -> Option<&'a String> {
        let mut at = from.to_vec();
        for (n, name) in path.iter().enumerate() {
            match *name {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                name => {
                    at.push(name);
                    if self.files.contains_key(&at) {
                        continue;
                    }
                    at.pop();
                    let doors = self.doors.get(&at).map_or(&[][..], |doors| doors);
                    let door = doors.iter().find(|(_, passed)| *passed == name);
                    if let Some((behind, _)) = door.filter(|_| depth < 8) {
                        let whole = [behind, &path[n + 1..]].concat();
                        return self.leads(&at, &whole, depth + 1);
                    }
                    break;
                }
            }
        }
        self.files.get(&at).copied()
    }
}

/// Returns which files each file of a crate imports from, and by which path.
pub(crate) fn imports(files: &Sources, doors: Doors) -> BTreeMap<String, BTreeMap<String, String>> {
    let tokens: BTreeMap<&String, Vec<&str>> =
        files.iter().map(|(file, code)| (file, tokens(code))).collect();
    let modules = Modules {
        files: files.keys().map(|file| (module(file), file)).collect(),
        doors: tokens.iter().map(|(file, tokens)| (module(file), passed_on(tokens))).collect(),
    };
    let of = |(file, tokens): (&&String, &Vec<&str>)| {
        let mut all = BTreeMap::new();
        for path in used(tokens, doors) {
            let home = modules.leads(&module(file), &path, 0).filter(|home| home != file);
            if let Some(home) = home {
                all.entry(home.clone()).or_insert_with(|| path.join("::"));
            }
        }
        ((*file).clone(), all)
    };
    tokens.iter().map(of).collect()
}

/// The longest circle of a crate's files.
fn longest(files: &Sources) -> Vec<String> {
    let uses = imports(files, Doors::Pass);
    let inside: Vec<&String> =
        files.keys().filter(|file| !matches!(file.as_str(), "lib.rs" | "main.rs")).collect();
    circle(&inside, &uses)
}

/// Circles that are longer than [`LONGEST`] says, and numbers there that are too high.
pub(crate) fn complaints(crates: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut there = BTreeSet::new();
    for entry in std::fs::read_dir(crates).expect("the crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let files = read(&entry.path().join("src"));
        assert!(!files.is_empty(), "the search itself has to work: {name} has no file");
        let circle = longest(&files);
        let most = LONGEST.iter().find(|known| known.0 == name).map_or(1, |known| known.1);
        match circle.len().max(1).cmp(&most) {
            std::cmp::Ordering::Less => {
                wrong.push(format!("{name}: LONGEST says {most}, it is {}", circle.len()));
            }
            std::cmp::Ordering::Greater => wrong.push(format!(
                "{name}: {} files use each other in a circle, wanted {most}: {circle:?}",
                circle.len()
            )),
            std::cmp::Ordering::Equal => {}
        }
        there.insert(name);
    }
    let gone = LONGEST.iter().filter(|known| !there.contains(known.0) || known.1 > BOUND);
    wrong.extend(gone.map(|(name, most)| format!("{name}: no crate with a circle of {most}")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_of(files: &[(&str, &str)]) -> Vec<String> {
        longest(&files.iter().map(|(file, code)| ((*file).into(), (*code).into())).collect())
    }

    #[test]
    fn a_circle_is_found_by_braces_super_and_doors() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::deep::Deep; use crate::a::A;"),
            ("a.rs", "use crate::{b::{self, B}, Other};"),
            ("b/mod.rs", "mod deep; pub(crate) use deep::{Deep as Low};"),
            ("b/deep.rs", "use super::super::c::C as D; fn f() { super::B }"),
            ("c.rs", "use crate::b::Low;"),
            ("d.rs", "use crate::Deep; use crate::a::A;"),
        ];
        assert_eq!(circle_of(&files), ["b/deep.rs", "c.rs"]);
        let also = [&files[..], &[("b/mod.rs", "use crate::c::C; pub use deep::Low;")]].concat();
        assert_eq!(circle_of(&also), ["b/deep.rs", "b/mod.rs", "c.rs"]);
    }

    #[test]
    fn one_way_is_no_circle() {
        let files = [
            ("lib.rs", "pub mod a; pub mod b; use crate::a::A;"),
            ("a.rs", "use crate::b::{B, C}; use super::Root;"),
            ("b.rs", "use std::super_::x; use other::crate_::a;"),
        ];
        assert_eq!(circle_of(&files), [""; 0]);
    }
}
