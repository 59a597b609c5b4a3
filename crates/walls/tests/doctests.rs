//! Are a crate's examples run as tests, and is rustdoc spared where there are none? Without
//! `doctest = false` it reads the whole crate in each test run to find that out.

use crate::sources::{files, text};
use std::path::Path;

/// Words behind "```" of what rustdoc takes for Rust.
const RUST: &[&str] = &["rust", "no_run", "should_panic", "compile_fail", "ignore"];

/// Lists the crates below `crates` whose `doctest` in Cargo.toml does not go with their comments.
pub(crate) fn complaints(crates: &Path) -> Vec<String> {
    let mut dirs: Vec<_> =
        std::fs::read_dir(crates).expect("crates").map(|e| e.expect("an entry").path()).collect();
    dirs.sort();
    let libraries = dirs.iter().filter(|dir| dir.join("src/lib.rs").exists());
    let of = |dir: &std::path::PathBuf| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sources: Vec<String> = files(&dir.join("src")).iter().map(|f| text(f)).collect();
        complaint(&name, &text(&dir.join("Cargo.toml")), sources.iter().any(|s| has_example(s)))
    };
    libraries.filter_map(of).collect()
}

fn complaint(name: &str, manifest: &str, has_examples: bool) -> Option<String> {
    let looks = !manifest.lines().any(|line| line == "doctest = false");
    match (has_examples, looks) {
        (true, false) => {
            Some(format!("{name}: has an example, which `doctest = false` keeps from being run"))
        }
        (false, true) => Some(format!("{name}: has no example: say `doctest = false` under [lib]")),
        _ => None,
    }
}

/// Whether a doc comment of `source` holds code that rustdoc would run.
fn has_example(source: &str) -> bool {
    let mut inside = false;
    for line in source.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(comment) = comment.map(str::trim) else {
            inside = false;
            continue;
        };
        let Some(words) = comment.strip_prefix("```") else { continue };
        inside = !inside;
        let mut words = words.split([',', ' ']).map(str::trim);
        let edition = |word: &str| word.starts_with("edition");
        if inside && words.all(|word| word.is_empty() || RUST.contains(&word) || edition(word)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_told_from_a_picture() {
        for example in ["```", "```rust", "``` compile_fail", "```no_run,edition2024"] {
            assert!(has_example(&format!("/// Adds.\n///\n/// {example}\n/// f();\n/// ```\n")));
        }
        let picture = "//! ```text\n//! a -> b\n//! ```\nfn f() {}\n// ```\n";
        assert!(!has_example(picture));
        assert!(has_example(&format!("{picture}    /// ```\n    /// f();\n    /// ```\n")));
    }

    #[test]
    fn examples_that_nobody_runs_and_looks_for_none_are_complained_about() {
        let off = "[lib]\ndoctest = false\n";
        assert_eq!([complaint("a", "", true), complaint("a", off, false)], [None, None]);
        assert!(complaint("a", off, true).is_some());
        assert!(complaint("a", "", false).is_some());
    }
}
