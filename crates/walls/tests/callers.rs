//! What is checked against the kernel's C is what runs: every public function of `kernel` has a caller.
//!
//! A textual search: comments, literals, imports and tests are left out, and what is then called
//! `name(…)`, `….name(…)`, `name::<…>(…)`, or handed on as `path::name` or `f(name)`, counts as called
//! wherever it stands. Two functions of one name cover each other; nothing here knows types.

use crate::sources::{files, text, without_comment, without_tests};
use std::collections::BTreeSet;
use std::path::Path;

/// Functions without a caller, and what each waits for.
pub(crate) const AWAITING: &[(&str, &str)] = &[
    ("sync_sysctl", "a system default of the rampup multiplier that changes while tasks run"),
    ("heat_pj", "an account of heat in results; until then tests of its balance"),
];

/// What is wrong with callers of the kernel room's public functions, and with `awaiting`.
pub(crate) fn complaints(crates: &Path, awaiting: &[(&str, &str)]) -> Vec<String> {
    let code = |dir: &Path| -> Vec<String> {
        let rust = |f: &std::path::PathBuf| f.extension().is_some_and(|e| e == "rs");
        let test = |f: &Path| {
            let inside = f.strip_prefix(dir).unwrap_or(f);
            inside.ends_with("tests.rs") || inside.components().any(|c| c.as_os_str() == "tests")
        };
        files(dir).into_iter().filter(|f| rust(f) && !test(f)).map(|f| text(&f)).collect()
    };
    let rooms = std::fs::read_dir(crates).expect("crates").map(|e| e.expect("a room").path());
    let everywhere: Vec<String> = rooms
        .map(|room| room.join("src"))
        .filter(|src| src.is_dir())
        .flat_map(|src| code(&src))
        .collect();
    compare(&code(&crates.join("kernel/src")), &everywhere, awaiting)
}

fn compare(kernel: &[String], everywhere: &[String], awaiting: &[(&str, &str)]) -> Vec<String> {
    let public: BTreeSet<String> =
        kernel.iter().flat_map(|source| public_functions(source)).collect();
    let called: BTreeSet<String> = everywhere.iter().flat_map(|source| calls(source)).collect();
    let waits = |name: &str| awaiting.iter().any(|(waiting, _)| *waiting == name);
    let uncalled = public.iter().filter(|name| !called.contains(*name) && !waits(name));
    let uncalled = uncalled.map(|name| format!("nothing calls `{name}`"));
    let settled = awaiting.iter().filter_map(|(name, what)| {
        if !public.contains(*name) {
            return Some(format!("`{name}`, said to await {what}, is no public function"));
        }
        called.contains(*name).then(|| format!("`{name}`, said to await {what}, has a caller"))
    });
    uncalled.chain(settled).collect()
}

/// The code of `source` without what is no code.
fn code(source: &str) -> String {
    let mut code = String::new();
    let mut importing = false;
    for line in without_tests(source) {
        let line = without_literals(without_comment(line));
        let start = line.trim_start();
        importing |= ["use ", "pub use ", "pub(crate) use "].iter().any(|u| start.starts_with(u));
        if !importing {
            code.push_str(&line);
            code.push('\n');
        }
        importing &= !line.contains(';');
    }
    code
}

fn without_literals(line: &str) -> String {
    let (mut out, mut inside, mut escaped) = (String::new(), false, false);
    for c in line.chars() {
        match (inside, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => inside = !inside,
            (true, _) => {}
            (false, _) => out.push(c),
        }
    }
    out
}

fn public_functions(source: &str) -> Vec<String> {
    let code = code(source);
    let names = code.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = rest.strip_prefix("const ").unwrap_or(rest).strip_prefix("fn ")?;
        rest.split(|c: char| !is_part(c)).next().map(str::to_string)
    });
    names.collect()
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whatever is called or handed on.
fn calls(source: &str) -> Vec<String> {
    let code = code(source);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find(is_part).map(|i| at + i) {
        let end = code[start..].find(|c| !is_part(c)).map_or(code.len(), |i| start + i);
        at = end;
        let (before, after) = (code[..start].trim_end(), &code[end..]);
        let defined = before.ends_with(" fn") || before.ends_with("\nfn") || before == "fn";
        let handed_on = [",", ")", ";"].iter().any(|c| after.starts_with(c))
            && ["::", "(", ","].iter().any(|c| before.ends_with(c));
        let called = after.starts_with('(') || after.starts_with("::<");
        if !defined && (called || handed_on) {
            found.push(code[start..end].to_string());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "\
/// Unlike [`other`], other() it is.
pub const fn one(a: u32) -> u32 { a }
impl X {
    pub fn two(&self) {}
    pub(crate) fn inner(&self) {}
}
fn private() {}
#[cfg(test)]
mod tests {
    pub fn helper() { one(two()) }
}
";

    fn complaints(callers: &str, awaiting: &[(&str, &str)]) -> Vec<String> {
        compare(&[KERNEL.into()], &[KERNEL.into(), callers.into()], awaiting)
    }

    #[test]
    fn a_call_is_one_however_it_is_written() {
        for call in [
            "fn f() { one(1); x.two() }",
            "fn f() { a.map(one).map(X::two) }",
            "fn f() { fold(0, one); y(k::two, 1) }",
            "fn f() { k::one::<u32>(1);\n    x\n        .two() }",
        ] {
            assert_eq!(complaints(call, &[]), [""; 0], "{call}");
        }
    }

    #[test]
    fn what_only_looks_like_a_call_is_none() {
        let both = ["nothing calls `one`", "nothing calls `two`"];
        for text in [
            "// one(1) and x.two()",
            "fn f() { say(\"one(1) \\\" two()\") }",
            "use k::{\n    one,\n    X::two,\n};",
            "#[cfg(test)]\nmod tests {\n    fn f() { one(two()) }\n}",
            "fn one(a: u32) {}\n    pub fn two(&self) {}",
            "struct S { one: u32, two: u32 }",
        ] {
            assert_eq!(complaints(text, &[]), both, "{text}");
        }
    }

    #[test]
    fn who_waits_must_be_there_and_wait() {
        let awaiting = &[("two", "a kernel")];
        assert_eq!(complaints("fn f() { one(1) }", awaiting), [""; 0]);
        let settled = ["`two`, said to await a kernel, has a caller"];
        assert_eq!(complaints("fn f() { one(1); x.two() }", awaiting), settled);
        let gone = complaints("fn f() { one(1); x.two() }", &[("three", "nothing")]);
        assert_eq!(gone, ["`three`, said to await nothing, is no public function"]);
    }
}
