//! Traces that are written, and written again in another format.

use crate::{ramp, risetime_in, scratch};
use std::fs;
use std::path::Path;

/// Switches of a text, as its lines tell of them.
fn switches(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let of = |line: &str| line.contains(" sched_switch: ").then(|| line[16..].trim().to_string());
    text.lines().filter_map(of).collect()
}

#[test]
fn a_run_in_one_format_converts_to_the_other_and_says_the_same() {
    let dir = scratch("convert");
    let both = ["--perfetto", "run.pftrace", "--ftrace", "run.txt"];
    let said = risetime_in(&dir, &ramp(&both));
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let direct = switches(&dir.join("run.txt"));
    assert!(direct.len() > 20, "{}", direct.len());
    for (from, to) in
        [("run.pftrace", "other.txt"), ("run.txt", "other.pftrace"), ("other.pftrace", "back.txt")]
    {
        let said = risetime_in(&dir, &["convert", from, to]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
        assert!(said.err.starts_with(&format!("risetime: {to}: ")), "{}", said.err);
    }
    assert_eq!(switches(&dir.join("other.txt")), direct);
    assert_eq!(switches(&dir.join("back.txt")), direct);
}

#[test]
fn what_cannot_be_converted_is_said_with_what_to_do() {
    let dir = scratch("convert-bad");
    fs::write(dir.join("notes.txt"), "this is no trace\n").unwrap();
    for (from, to, words) in [
        ("notes.txt", "a.pftrace", "this is no trace that is known"),
        ("notes.txt", "a.dat", "end it in .pftrace"),
        ("notes.txt", "a", "found none"),
        ("nowhere", "a.txt", "nowhere: "),
        ("notes.txt", "./notes.txt", "is notes.txt, which is read"),
    ] {
        let said = risetime_in(&dir, &["convert", from, to]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{from} {to}: {}", said.err);
        assert!(said.err.contains(words), "{from} {to}: {}", said.err);
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}
