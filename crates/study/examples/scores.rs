//! Records how many rows of each built-in study hold, and how many under wrong policies.
//!
//! `scores [STUDY…]` appends to `tests/scores/record.csv` what it has not yet of a study's present file; it may be
//! stopped at any time, and goes on. Lines of files that have changed go.

#[path = "../tests/scores/record.rs"]
#[allow(dead_code, reason = "what the test `scores` judges with")]
mod record;

use record::{HEAD, Line, hash};
use risetime_model::{Study, library};
use std::path::{Path, PathBuf};

/// The study's present file, and its text: not the one that was built in, so that a study may be
/// changed and recorded at once.
fn present(name: &str) -> (Study, String) {
    let path = format!("{}/../../studies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(Path::new(&path)).expect("the study's file");
    let study = Study::parse(&text, &format!("{name}.toml")).unwrap_or_else(|e| panic!("{e}"));
    (study, text)
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scores/record.csv");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let old = before.lines().filter(|l| !l.starts_with('#') && *l != HEAD);
    let mut lines: Vec<Line> = old.map(Line::parse).collect();
    lines.retain(|line| hash(&present(&line.study).1) == line.hash);
    let date = std::process::Command::new("date").arg("+%F").output().expect("date");
    let date = String::from_utf8_lossy(&date.stdout).trim().to_string();
    for built_in in library::studies() {
        if !only.is_empty() && !only.iter().any(|name| name == built_in.name) {
            continue;
        }
        let (study, text) = present(built_in.name);
        for figure in &study.figures {
            if lines.iter().any(|l| l.study == study.name && l.figure == figure.id) {
                continue;
            }
            let line = Line::run(&study, &text, &figure.id);
            println!("{}", line.text());
            lines.push(line);
            let order = |l: &Line| {
                let at = library::studies().iter().position(|s| s.name == l.study);
                (at, present(&l.study).0.figures.iter().position(|f| f.id == l.figure))
            };
            lines.sort_by_key(order);
            let all: Vec<String> = lines.iter().map(Line::text).collect();
            let version = env!("CARGO_PKG_VERSION");
            let all = format!("# risetime {version}, {date}\n{HEAD}\n{}\n", all.join("\n"));
            std::fs::write(&path, all).expect("the record");
        }
    }
}
