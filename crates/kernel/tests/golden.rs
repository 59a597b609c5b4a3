//! The golden vectors of tests/golden/, through the same code as `make golden`, and the proof that
//! this code can fail.

#[path = "../examples/golden/cpuidle.rs"]
mod cpuidle;
#[path = "../examples/golden/deadline.rs"]
mod deadline;
#[path = "../examples/golden/eevdf.rs"]
pub(crate) mod eevdf;
#[path = "../examples/golden/files.rs"]
mod files;
#[path = "../examples/golden/governor.rs"]
mod governor;
#[path = "../examples/golden/pelt.rs"]
mod pelt;
#[path = "../examples/golden/tally.rs"]
pub(crate) mod tally;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tally::Tally;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// A directory of its own for one test, empty.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

#[test]
fn every_row_of_the_sample_agrees() {
    let verdict = files::check_dir(&sample());
    assert!(verdict.passed(), "{}", verdict.report);
    for (name, _) in files::FILES {
        let line = verdict.report.lines().find(|l| l.starts_with(name)).expect(name);
        assert!(!line.contains(" 0 rows"), "{line}");
    }
    assert!(verdict.rows > 15_000, "{}", verdict.report);
}

/// Numbers in results, one digit changed in each file in turn: exactly that file fails.
#[test]
fn one_changed_digit_is_found_in_every_file() {
    let places = [
        ("pelt_task.json", "/sequences/3/rows/100/11"),
        ("pelt_task.json", "/sequences/0/rows/0/12"),
        ("pelt_extra.json", "/sequences/0/rows/5/5"),
        ("pelt_clock.json", "/sequences/1/rows/40/9"),
        ("util_est.json", "/cases/20/8"),
        ("util_est.json", "/sequences/0/rows/9/3"),
        ("schedutil.json", "/effective/7/11"),
        ("schedutil.json", "/perf/3/4"),
        ("schedutil.json", "/freq/9/6"),
        ("schedutil.json", "/iowait/0/rows/2/2"),
        ("em.json", "/tables/0/states/4/3"),
        ("em.json", "/tables/0/rows/0/3"),
        ("em.json", "/tables/0/rows_7_2_limited/0/6"),
        ("eevdf.json", "/scenarios/0/ops/4/2/4/0/2"),
        ("deadline.json", "/grub/4/7"),
        ("deadline.json", "/grub/4/8"),
        ("cpuidle.json", "/menu/0/rows/3/6"),
        ("cpuidle.json", "/menu/2/rows/30/7"),
        ("cpuidle.json", "/teo/1/rows/20/6"),
        ("cpuidle.json", "/teo/3/rows/9/7"),
    ];
    for (name, place) in places {
        let text = std::fs::read(sample().join(name)).expect(name);
        let mut json: Value = serde_json::from_slice(&text).expect(name);
        let number = json.pointer_mut(place).unwrap_or_else(|| panic!("{name} has no {place}"));
        *number = Value::from(number.as_i64().expect("a number") + 1);
        let (_, check) = files::FILES.iter().find(|(n, _)| *n == name).expect(name);
        let tally = check(&json);
        assert!(tally.mismatches > 0, "{name} {place}: not noticed");
        assert!(!tally.first.is_empty(), "{name} {place}: not described");
    }
}

/// No two of these kernels are alike: neighbours of the one that a sequence comes from differ from it.
#[test]
fn idle_governors_of_other_kernels_are_told_apart() {
    let text = std::fs::read(sample().join("cpuidle.json")).expect("the sample");
    let json: Value = serde_json::from_slice(&text).expect("JSON");
    let kernels = ["6.1.192", "6.6", "6.12.117", "7.2.13"];
    for governor in ["menu", "teo"] {
        for (from, to) in kernels.iter().zip(&kernels[1..]).flat_map(|(a, b)| [(a, b), (b, a)]) {
            let mut json = json.clone();
            for sequence in json[governor].as_array_mut().expect("sequences") {
                if sequence["kernel"] == **from {
                    sequence["kernel"] = (*to).into();
                }
            }
            assert!(cpuidle::check(&json).mismatches > 0, "{governor}: {from} as {to}");
        }
    }
}

#[test]
fn a_row_compares_what_was_computed() {
    let mut tally = Tally::default();
    tally.compare("here", &[1, 2, 3], 1, &[2, 3]);
    assert_eq!((tally.rows, tally.mismatches), (1, 0));
    tally.compare("here", &[1, 2, 3], 1, &[2, 4]);
    tally.compare("here", &[1, 2, 3], 1, &[2]);
    assert_eq!((tally.rows, tally.mismatches), (3, 2));
    assert!(tally.first[0].starts_with("here: [1, 2, 3]"), "{:?}", tally.first);
}

#[test]
fn broken_files_are_errors_and_never_a_panic() {
    let contents: [(&str, &[u8]); 8] = [
        ("empty", b""),
        ("truncated", b"{\"sequences\":[{\"weight\":1024,\"init\":[0,0"),
        ("garbage", b"\xff\xfe\x00garbage"),
        ("null", b"null"),
        ("shapeless", b"{\"sequences\":3,\"tables\":{},\"cases\":[],\"scenarios\":\"\"}"),
        (
            "hollow",
            b"{\"sequences\":[{},null,[]],\"tables\":[{}],\"cases\":[[]],\"scenarios\":[{}]}",
        ),
        (
            "floats",
            b"{\"sequences\":[{\"start\":0.5,\"weight\":1,\"init\":[1.5],\"rows\":[[1.5]]}]}",
        ),
        ("deep", &[b'['; 200_000]),
    ];
    for (name, content) in contents {
        let dir = scratch(&format!("golden-{name}"));
        for (file, _) in files::FILES {
            std::fs::write(dir.join(file), content).expect(file);
            let verdict = files::check_dir(&dir);
            assert!(!verdict.passed(), "{name} as {file}:\n{}", verdict.report);
            std::fs::remove_file(dir.join(file)).expect(file);
        }
    }
}

#[test]
fn a_subset_is_enough_others_are_named_and_nothing_is_not_enough() {
    let dir = scratch("golden-subset");
    assert!(!files::check_dir(&dir).passed(), "an empty directory proves nothing");
    std::fs::write(dir.join("notes.txt"), "x").expect("a note");
    std::fs::create_dir(dir.join("dir.json")).expect("a directory");
    let verdict = files::check_dir(&dir);
    assert!(!verdict.passed(), "{}", verdict.report);
    std::fs::copy(sample().join("em.json"), dir.join("em.json")).expect("em.json");
    let verdict = files::check_dir(&dir);
    assert!(verdict.passed(), "{}", verdict.report);
    for name in ["notes.txt", "dir.json"] {
        assert!(verdict.report.contains(&format!("{name:<18} skipped")), "{}", verdict.report);
    }
    assert!(verdict.report.contains("pelt_task.json     not there"), "{}", verdict.report);
    std::fs::write(dir.join("pelt_task.json"), "{").expect("a broken file");
    assert!(!files::check_dir(&dir).passed(), "one broken file spoils the whole");
    let missing = files::check_dir(&dir.join("no-such"));
    assert!(!missing.passed() && missing.report.contains("no-such"), "{}", missing.report);
}
