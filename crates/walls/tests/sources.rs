//! Rules on source text, for what clippy would only say when somebody runs it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What gives other results in another run, on another day or another processor.
const FORBIDDEN: &[&str] = &[
    "HashMap",
    "HashSet",
    "RandomState",
    "f32",
    "f64",
    "std::time",
    "SystemTime",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::io",
    "rand",
];

/// Lines that may: `units.rs` turns a time into milliseconds for those who print it.
const ALLOWED: &[&str] = &["pub fn as_ms(self) -> f64 {", "self.0 as f64 / 1e6"];

/// All files below `dir`, in order; `target`, `.git` and their like are left out.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).expect("a directory").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    let ours = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name != "target" && (!name.starts_with('.') || name == ".ci")
    };
    let below = |p: PathBuf| if p.is_dir() { files(&p) } else { vec![p] };
    entries.into_iter().filter(ours).flat_map(below).collect()
}

pub(crate) fn text(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).expect("a file")).into_owned()
}

/// Do these sources use anything that makes a run not repeatable? Tests, in files and directories
/// of that name, may.
pub(crate) fn forbidden_in(src: &Path) -> Vec<String> {
    let test =
        |f: &Path| f.ends_with("tests.rs") || f.components().any(|c| c.as_os_str() == "tests");
    let code = |f: &PathBuf| f.extension().is_some_and(|e| e == "rs");
    let inside = |f: &Path| f.strip_prefix(src).expect("below src").to_path_buf();
    files(src)
        .into_iter()
        .filter(|f| code(f) && !test(&inside(f)))
        .flat_map(|f| {
            forbidden(&text(&f)).into_iter().map(move |l| format!("{}: {l}", f.display()))
        })
        .collect()
}

/// Are there settings that product code looks up by a text, where a typing error would be a setting that nobody has set? Items
/// and keys (`model/src/settings`) have names once, where they are declared.
pub(crate) fn settings_by_text(src: &Path) -> Vec<String> {
    let test =
        |f: &Path| f.ends_with("tests.rs") || f.components().any(|c| c.as_os_str() == "tests");
    let code = |f: &PathBuf| f.extension().is_some_and(|e| e == "rs");
    let inside = |f: &Path| f.strip_prefix(src).expect("below src").to_path_buf();
    files(src)
        .into_iter()
        .filter(|f| code(f) && !test(&inside(f)))
        .flat_map(|f| by_text(&text(&f)).into_iter().map(move |l| format!("{}: {l}", f.display())))
        .collect()
}

/// Look-ups of a setting by a literal, or by one that is put together.
const BY_TEXT: &[&str] =
    &[".by_name(", "settings.insert(", "settings.remove(", ".set.get(", ".set.contains_key("];

fn by_text(source: &str) -> Vec<String> {
    let literal = |rest: &str| {
        let argument = rest.trim_start_matches('&');
        argument.starts_with('"') || argument.starts_with("format!(")
    };
    let looks_up = |line: &&str| {
        let anonymous = line.contains("Key::") && line.contains("::new(\"");
        let declared =
            line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        BY_TEXT.iter().any(|call| line.split(call).skip(1).any(literal))
            || (anonymous && !declared.starts_with("const ") && !line.contains("pub(super) const "))
    };
    without_tests(source)
        .into_iter()
        .map(without_comment)
        .filter(looks_up)
        .map(|l| l.trim().to_string())
        .collect()
}

fn forbidden(source: &str) -> Vec<String> {
    let guilty = |line: &&str| {
        FORBIDDEN.iter().any(|word| has_word(line, word)) && !ALLOWED.contains(&line.trim())
    };
    without_tests(source)
        .into_iter()
        .map(without_comment)
        .filter(guilty)
        .map(|l| l.trim().to_string())
        .collect()
}

/// The lines of `source` that are not part of a `#[cfg(test)] mod … { … }`.
pub(crate) fn without_tests(source: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let module = lines.peek().is_some_and(|next| next.trim_start().starts_with("mod "));
        if line.trim() == "#[cfg(test)]" && module {
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = format!("{indent}}}");
            let one_line = lines.next().is_some_and(|l| l.ends_with(';'));
            let _ = one_line || lines.by_ref().any(|l| l == end);
        } else {
            kept.push(line);
        }
    }
    kept
}

pub(crate) fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) =
            (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Words of whoever looks for a name or opens a file: of the standard library, and of `model`.
const READS: &[&str] =
    &["fs", "File", "load", "load_changed", "from_arg", "from_arg_with", "read_file", "read_kept"];

/// Modules of `lab` that read files: names and files that a person gave, and recordings that are kept.
const READERS: [&str; 3] = ["names.rs", "names/read.rs", "kept.rs"];

/// Returns the lines of `lab` that read files, or look for what a name stands for, elsewhere than in [`READERS`].
pub(crate) fn reads_files(src: &Path) -> Vec<String> {
    let is_reader = |file: &PathBuf| READERS.iter().any(|name| file == &src.join(name));
    let all = files(src).into_iter().filter(|file| !is_reader(file));
    all.flat_map(|file| reads(&text(&file))).collect()
}

/// Words of whoever looks for what a person named without asking `lab`.
const NAMED: &[&str] = &[
    ":load",
    "load_changed",
    "load_partsim",
    "from_arg",
    "from_arg_with",
    "read_file",
    "read_to_string",
];

/// Returns the lines of the command that read what a person named by ways of their own.
pub(crate) fn reads_names(src: &Path) -> Vec<String> {
    files(src).into_iter().flat_map(|file| guilty(&text(&file), NAMED)).collect()
}

fn reads(source: &str) -> Vec<String> {
    guilty(source, READS)
}

/// Returns the lines of `source` that have one of `words`.
fn guilty(source: &str, words: &[&str]) -> Vec<String> {
    let code = without_tests(source).into_iter().map(without_comment);
    // `.load(` is an atomic's; what is handed on is not read.
    let guilty = |line: &&str| {
        let line = line.replace(".load(", "");
        !line.starts_with("pub use") && words.iter().any(|word| has_word(&line, word))
    };
    code.filter(guilty).map(|line| line.trim().to_string()).collect()
}

/// Directories that exist on somebody's machine and nowhere else. In two halves, or this file
/// would name them.
const ELSEWHERE: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("/tm", "p/"),
    concat!("../sha", "red"),
];

/// Returns which lines of the project's files name a directory of somebody's machine.
pub(crate) fn machine_paths(root: &Path) -> Vec<String> {
    let all = files(root).into_iter();
    all.flat_map(|f| {
        paths_in(&text(&f)).into_iter().map(move |line| format!("{}: {line}", f.display()))
    })
    .collect()
}

fn paths_in(text: &str) -> Vec<String> {
    let inside_another = |c: char| c.is_alphanumeric() || "./_-{}~$".contains(c);
    let names = |line: &&str| {
        let starts =
            |(at, _): (usize, &str)| !line[..at].chars().next_back().is_some_and(inside_another);
        ELSEWHERE.iter().any(|dir| line.match_indices(dir).any(starts))
    };
    text.lines().filter(names).map(str::to_string).collect()
}

/// Returns which properties draw their cases otherwise than all others do (`tests/draws.rs`).
pub(crate) fn other_draws(crates: &Path) -> Vec<String> {
    let rust = files(crates).into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs"));
    let places = |f: PathBuf| {
        let lines = draws_otherwise(&text(&f)).into_iter();
        lines.map(|n| format!("{}:{n}", f.display())).collect::<Vec<_>>()
    };
    rust.filter(|f| !f.ends_with("walls/tests/sources.rs")).flat_map(places).collect()
}

/// The lines with a block of properties that is not followed by their common configuration.
fn draws_otherwise(source: &str) -> Vec<usize> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let block =
        |n: &usize| lines[*n].starts_with("proptest!") || lines[*n].contains("TestRunner::");
    let common = |n: usize| {
        if lines[n].contains("TestRunner::new(draws::config(") {
            return true;
        }
        let next = lines.get(n + 1).copied().unwrap_or_default();
        next.starts_with("#![proptest_config(") && next.contains("draws::config(")
    };
    (0..lines.len()).filter(block).filter(|n| !common(*n)).map(|n| n + 1).collect()
}

/// The ids of all `DEVIATES(id)` in the Rust sources below `crates`, wherever in a line they stand.
pub(crate) fn deviations(crates: &Path) -> BTreeSet<String> {
    // These two look for it.
    let tests = ["walls/tests/sources.rs", "cli/documents.rs"];
    let rust = files(crates).into_iter().filter(|f| {
        f.extension().is_some_and(|e| e == "rs") && !tests.iter().any(|test| f.ends_with(test))
    });
    rust.flat_map(|f| ids(&text(&f), "DEVIATES(", ')')).collect()
}

/// The ids that a page lists: items "- `id`: …".
pub(crate) fn listed_deviations(page: &str) -> BTreeSet<String> {
    page.lines().filter(|l| l.starts_with("- `")).flat_map(|l| ids(l, "- `", '`')).collect()
}

fn ids(text: &str, before: &str, after: char) -> Vec<String> {
    let id = |rest: &str| rest.split_once(after).map(|(id, _)| id.to_string());
    let plain = |id: &String| {
        !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    text.split(before).skip(1).filter_map(id).filter(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_words_are_noticed_in_code_and_only_there() {
        for line in [
            "let x: f64 = 0.0;",
            "use std::collections::{BTreeMap, HashMap};",
            "    std::time::Instant::now()",
            "x as f32",
            "use std::fs;",
        ] {
            assert_eq!(forbidden(line), [line.trim()], "{line}");
        }
        let fine = "// f64 here\nuse units::Instant;\nlet buf64 = 1; // as f64\n#[cfg(test)]\nmod tests {\n    fn x() -> f64 {\n    }\n}\n";
        assert_eq!(forbidden(fine), [""; 0]);
        assert_eq!(
            forbidden("#[cfg(test)]\nmod tests;\nlet a: f64;"),
            ["let a: f64;"],
            "code goes on after a test module"
        );
        assert_eq!(forbidden(&format!("{fine}let a: f64;")), ["let a: f64;"]);
        assert_eq!(forbidden("#[cfg(test)]\nuse x;\nlet a: f64;"), ["let a: f64;"]);
    }

    #[test]
    fn reading_is_noticed_and_what_only_sounds_like_it_is_not() {
        for line in [
            "use std::fs;",
            "let p = Platform::load(name)?;",
            "Workload::load_changed(name, &[])",
            "Policy::from_arg_with(arg, set)?",
            "risetime_model::read_file(path, MAX)",
        ] {
            assert_eq!(reads(line), [line], "{line}");
        }
        let fine = "n.load(Ordering::Relaxed); // File::open\nlet offset = loaded(x);";
        assert_eq!(reads(fine), [""; 0]);
        let own = "let p = Platform::load(name)?;\nlet p = names::platform(name)?;";
        assert_eq!(guilty(own, NAMED), ["let p = Platform::load(name)?;"]);
    }

    #[test]
    fn a_setting_that_is_looked_up_by_a_text_is_noticed() {
        for line in [
            r#"settings.by_name("a")"#,
            r#"e.policy.set.get("a")"#,
            r#"policy.set.contains_key("a")"#,
            r#"settings.by_name(&format!("a{n}"))"#,
            r#"settings.insert("a", 1)"#,
            r#"settings.get(&Key::<Int>::new("a"))"#,
        ] {
            assert_eq!(by_text(line), [line], "{line}");
        }
        let fine =
            "settings.get(&A); all.by_name(name);\npub(crate) const A: Key<Int> = Key::new(\"a\");";
        assert_eq!(by_text(fine), [""; 0]);
    }

    #[test]
    fn paths_of_a_machine_are_noticed() {
        for dir in ELSEWHERE {
            for line in [format!("see {dir}x"), format!("\"{dir}x\""), format!("{dir}x")] {
                assert_eq!(paths_in(&line).len(), 1, "{line}");
            }
            assert_eq!(paths_in(&format!("crates{dir}x")).len(), 0, "part of a longer path");
        }
    }

    #[test]
    fn a_property_that_draws_otherwise_is_noticed() {
        let common = "proptest! {\n    #![proptest_config(draws::config(256))]\n";
        let more = "proptest! {\n #![proptest_config(Config { x: 1, ..draws::config(24) })]\n";
        assert_eq!(draws_otherwise(&format!("{common}\n{more}")), [0; 0]);
        assert_eq!(draws_otherwise("let r = TestRunner::new(draws::config(1));"), [0; 0]);
        assert_eq!(draws_otherwise("let r = TestRunner::default();"), [1]);
        let own = "proptest! {\n    #![proptest_config(ProptestConfig::default())]\n";
        assert_eq!(draws_otherwise(&format!("{common}{own}    proptest! {{\n#[test]")), [3, 5]);
    }

    #[test]
    fn deviations_are_read_from_both_sides() {
        assert_eq!(
            ids("//! DEVIATES(a-b): x\n`DEVIATES(c_6_12)`: y, DEVIATES(…)", "DEVIATES(", ')'),
            ["a-b", "c_6_12"]
        );
        let text = "# Deviations\n- a `no`: x\n- `a-b`: x `y`\n- b\n  `no`: z\n";
        assert_eq!(listed_deviations(text), BTreeSet::from(["a-b".to_string()]));
    }
}
