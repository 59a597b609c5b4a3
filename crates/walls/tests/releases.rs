//! Releases are compared in the table of features alone; other code asks `rev.has(features::…)`.
//!
//! A textual search: comments and tests are left out. A release that stands in code
//! (`KernelRev::V6_12`, `KernelRev::new`), its numbers (`.major`), and an order of releases
//! (`rev < …`) are noticed; two that have to be the same are not.

use crate::sources::{files, has_word, text, without_comment, without_tests};
use std::path::Path;

/// Files in which releases may stand, and why.
pub(crate) const ALLOWED: &[(&str, &str)] = &[
    ("kernel/src/features.rs", "the table"),
    ("kernel/src/rev.rs", "what a release is"),
    ("lab/src/history.rs", "a list: the releases that are compared"),
    (
        "sim/src/run/mutant.rs",
        "a wrong simulator, which balances as one release whatever its kernel is",
    ),
    ("sim/src/time/noise.rs", "a list: what each kernel was measured to take"),
    ("vm/src/fetch.rs", "the oldest kernel that is fetched"),
    ("vm/src/lib.rs", "a kernel newer than all that is known is told of"),
];

/// Names under which code has a release.
const RELEASES: &[&str] = &["rev", "rev()", "lb_rev()", "kernel"];

/// Lists releases outside `allowed`, files of `allowed` without any, and rows of the table that
/// nobody asks.
pub(crate) fn complaints(crates: &Path, allowed: &[(&str, &str)]) -> Vec<String> {
    let mut all = Vec::new();
    let (mut asked, mut needed, mut table) = (String::new(), Vec::new(), Vec::new());
    for file in files(crates).into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
        let inside = file.strip_prefix(crates).unwrap_or(&file);
        let parts: Vec<_> = inside.iter().map(|c| c.to_string_lossy().into_owned()).collect();
        let test = inside.ends_with("tests.rs") || parts.iter().any(|part| part == "tests");
        if parts.get(1).is_none_or(|dir| dir != "src") || test {
            continue;
        }
        let (name, source) = (parts.join("/"), text(&file));
        let found = releases_in(&source);
        if allowed.iter().any(|(file, _)| *file == name) {
            needed.extend((!found.is_empty()).then(|| name.clone()));
        } else {
            all.extend(found.into_iter().map(|line| format!("{name}: {line}")));
        }
        if name == "kernel/src/features.rs" {
            table = rows(&source);
        } else {
            let code = without_tests(&source).into_iter().map(without_comment);
            asked.extend(code.flat_map(|line| [line, "\n"]));
        }
    }
    let idle = allowed.iter().filter(|(file, _)| !needed.iter().any(|n| n == file));
    all.extend(idle.map(|(file, why)| format!("{file} ({why}) names no release")));
    let unasked = table.iter().filter(|row| !has_word(&asked, &format!("features::{row}")));
    all.extend(unasked.map(|row| format!("nobody asks features::{row}")));
    all
}

/// The names of the table's rows (`NAME: since(…`).
fn rows(table: &str) -> Vec<String> {
    let names = table.lines().filter_map(|line| line.trim().split_once(": "));
    let row = |(name, rest): &(&str, &str)| {
        let capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(capital) && (rest.starts_with("since(") || rest.starts_with("ALWAYS"))
    };
    names.filter(row).map(|(name, _)| name.to_string()).collect()
}

/// The lines of `source` in which a release stands, or is compared.
fn releases_in(source: &str) -> Vec<String> {
    let code = without_tests(source).into_iter().map(without_comment);
    code.filter(|line| is_release(line)).map(|line| line.trim().to_string()).collect()
}

fn is_release(line: &str) -> bool {
    let stands = line.match_indices("KernelRev::").any(|(at, found)| {
        let rest = &line[at + found.len()..];
        let mut after = rest.strip_prefix('V').unwrap_or_default().chars();
        has_word(rest.split('(').next().unwrap_or_default(), "new")
            || after.next().is_some_and(|c| c.is_ascii_digit())
    });
    stands || [".major", ".minor"].iter().any(|part| line.contains(part)) || is_order(line)
}

/// Whether a release is on either side of an order.
fn is_order(line: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let ends_in = |side: &str| {
        let before = |name: &&str| side.strip_suffix(*name);
        let whole = |rest: &str| !rest.chars().next_back().is_some_and(part);
        RELEASES.iter().filter_map(before).any(whole)
    };
    [" < ", " <= ", " > ", " >= "].iter().any(|order| {
        line.match_indices(order).any(|(at, _)| {
            let (left, right) = (&line[..at], &line[at + order.len()..]);
            let right = right.trim_start_matches('(').replace("()", "\u{1}");
            let stops = |c: char| !part(c) && c != '.' && c != '\u{1}';
            let right = right.split(stops).next().unwrap_or_default().replace('\u{1}', "()");
            ends_in(left) || ends_in(&right)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_in_code_are_noticed() {
        for line in [
            "if self.m().rev >= KernelRev::V6_12 {",
            "const SINCE: KernelRev = KernelRev::new(6, 12);",
            "if rev < SINCE {",
            "let old = domain.rev() < SINCE;",
            "m.lb_rev() >= features::SMT_BALANCE.first",
            "policy.kernel < since",
            "(row.from <= rev).then_some(row)",
            "SINCE <= m.rev && fits",
            "SINCE <= domain.rev()",
            "rev.major == 6 && rev.minor >= 8",
        ] {
            assert_eq!(releases_in(line), [line], "{line}");
        }
        for line in [
            "if self.m().rev.has(features::DELAY_DEQUEUE) {",
            "let newest = KernelRev::NEWEST;",
            "let known = KernelRev::OLDEST..=KernelRev::NEWEST;",
            "// before, rev < KernelRev::V6_12",
            "for cpu in cpus.rev() {",
            "if prev < next { revs < 3 }",
            "rev != policy.kernel",
            "#[cfg(test)]\nmod tests {\n    const R: KernelRev = KernelRev::V6_12;\n}",
        ] {
            assert_eq!(releases_in(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn files_and_rows_without_need_are_noticed() {
        let dir = std::env::temp_dir().join(format!("releases-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = dir.join(file);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            std::fs::write(file, text).expect("a file");
        };
        write("kernel/src/features.rs", "A: since(6, 6), C,\n B: ALWAYS.until(6, 1), C,\nC: u8,\n");
        write("sim/src/a.rs", "rev < OLD;\nrev.has(features::A) // features::B\n");
        let all = complaints(&dir, &[("sim/src/b.rs", "a list")]);
        std::fs::remove_dir_all(&dir).expect("a directory that goes");
        assert_eq!(
            all,
            [
                "sim/src/a.rs: rev < OLD;",
                "sim/src/b.rs (a list) names no release",
                "nobody asks features::B",
            ]
        );
    }
}
