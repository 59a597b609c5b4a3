//! Files as people have them for rt-app, held to what rt-app makes of them: `field/right.txt` says where each one's like
//! was found, and what is right.

use super::experiment;
use super::together::Turns;
use crate::Simulator;
use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::workload::Change;
use risetime_model::{Platform, Workload};
use risetime_trace::Backend;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Number of files that are wanted, and of kinds of sources.
const WANTED: (usize, usize) = (40, 10);

/// Entry of one file in `right.txt`.
#[derive(Default)]
struct Right {
    file: String,
    kind: String,
    source: String,
    fills: Vec<Change>,
    /// A part of the error; `None`: the file loads.
    refused: Option<String>,
    ms: u64,
    /// Turns of each task under rt-app 2026.
    new: Vec<String>,
    /// Turns of each task under rt-app 1.0; empty: the same.
    old: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/field")
}

/// Reads `right.txt`.
fn all() -> Vec<Right> {
    let text = std::fs::read_to_string(folder().join("right.txt")).expect("the list");
    let mut all: Vec<Right> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(file) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            all.push(Right { file: file.into(), ..Right::default() });
            continue;
        }
        let of = all.last_mut().expect("a file first");
        let (key, value) = line.split_once(' ').expect("a key and a value");
        match key {
            "kind" => of.kind = value.into(),
            "source" => of.source = value.into(),
            "fill" => {
                let (name, value) = value.split_once('=').expect("NAME=VALUE");
                of.fills.push(Change { key: format!("__{name}__"), value: value.into() });
            }
            "refused" => of.refused = Some(value.into()),
            "ms" => of.ms = value.parse().expect("a number of ms"),
            "right" => of.new.push(value.into()),
            "1.0" => of.old.push(value.into()),
            other => panic!("`{other}`: no such key"),
        }
    }
    all
}

/// Loads the file as `which` rt-app reads it.
fn load(right: &Right, which: &str) -> Result<Workload, String> {
    let mut changes = right.fills.clone();
    changes.push(Change { key: "global.rt_app".into(), value: which.into() });
    let path = folder().join(&right.file);
    Workload::load_changed(path.to_str().expect("UTF-8"), &changes).map_err(|e| e.to_string())
}

/// Returns four CPUs without idle states, at one frequency.
fn platform() -> Platform {
    let mut platform = Platform::load("laptop4").expect("built in");
    for d in &mut platform.domains {
        d.idle.clear();
        d.opps.drain(..d.opps.len() - 1);
    }
    platform
}

/// Turns of the tasks within `ms`.
fn turns(workload: Workload, ms: u64) -> Vec<String> {
    let set = [("governor", "performance"), ("noise", "off")];
    let set = set.map(|(key, value)| (key, Value::Name(value.into())));
    let e = experiment(platform(), workload, "linux-7.2", &set, Span::from_ms(ms));
    let mut turns = Turns::default();
    Simulator.run(&e, &mut turns).unwrap_or_else(|e| panic!("{e}"));
    turns.lines()
}

#[test]
fn files_of_the_field_do_what_rt_app_does_with_them() {
    let mut wrong = Vec::new();
    for right in all() {
        for which in ["2026", "1.0"] {
            let want = match which {
                "1.0" if !right.old.is_empty() => &right.old,
                _ => &right.new,
            };
            match (load(&right, which), &right.refused) {
                (Err(e), Some(part)) if e.contains(part) => {}
                (Err(e), _) => wrong.push(format!("{} {which}: {e}", right.file)),
                (Ok(_), Some(part)) => wrong.push(format!("{} {which}: not {part}", right.file)),
                (Ok(workload), None) => {
                    let found = turns(workload, right.ms);
                    if found != *want {
                        let what = format!("{found:#?}\nwanted {want:#?}");
                        wrong.push(format!("{} {which}: {what}", right.file));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_field_has_forty_files_of_ten_kinds_and_says_where_each_is_from() {
    let all = all();
    let kinds: BTreeSet<&str> = all.iter().map(|r| r.kind.as_str()).collect();
    assert!((all.len(), kinds.len()) >= WANTED && kinds.len() >= WANTED.1, "{kinds:?}");
    assert!(all.iter().all(|r| r.source.split_whitespace().count() >= 2));
    let listed: BTreeSet<String> = all.into_iter().map(|r| r.file).collect();
    let there = std::fs::read_dir(folder()).expect("a folder").flatten();
    let there = there.map(|f| f.file_name().to_string_lossy().into_owned());
    assert_eq!(listed, there.filter(|f| f != "right.txt").collect());
}
