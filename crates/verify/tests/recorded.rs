//! The simulator, and every wrong one, judged by what a real kernel did when it was recorded: no
//! virtual machine is needed. `make verify` boots them all and records anew.

use risetime_verify::{Case, Recorded, SET_PHASES, SET_SEED, catch, set, set_holds};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// The half that nobody chose is for `risetime verify --all`: of it four fifths of the checks hold
/// (README), and what fails is in it as it was drawn.
fn fixed() -> Vec<Case> {
    set(SET_SEED).into_iter().filter(|case| !case.is_drawn()).collect()
}

fn recorded() -> Vec<Recorded> {
    let read = |case: Case| {
        let path = directory().join(case.file_name());
        let place = path.display().to_string();
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{place}: {e}"));
        Recorded::from_bytes(case, &bytes, &place).unwrap_or_else(|e| panic!("{e}")).0
    };
    fixed().into_iter().map(read).collect()
}

#[test]
fn the_simulator_agrees_with_the_recorded_kernel_and_wrong_ones_are_told_apart() {
    let recorded = recorded();
    assert!(recorded.iter().all(|r| r.phases.len() == SET_PHASES as usize));
    let judged: Vec<_> = recorded.iter().map(|r| r.judge().unwrap()).collect();
    let failing: Vec<_> = judged.iter().filter(|j| !j.holds()).collect();
    assert!(set_holds(&judged), "{failing:#?}");

    let caught = catch(&recorded).unwrap();
    let unseen: Vec<_> = caught.iter().filter(|c| c.by.is_none()).map(|c| c.name).collect();
    assert!(unseen.is_empty(), "nothing exposes {unseen:?}");
}

#[test]
fn recordings_are_of_one_kernel_small_and_none_is_left_over() {
    let (mut kernels, mut bytes, mut names) = (BTreeSet::new(), 0, BTreeSet::new());
    for entry in std::fs::read_dir(directory()).unwrap() {
        let entry = entry.unwrap();
        bytes += entry.metadata().unwrap().len();
        names.insert(entry.file_name().into_string().unwrap());
    }
    let releases = recorded().into_iter().flat_map(|r| r.phases);
    kernels.extend(releases.map(|(_, trace)| trace.header().unwrap().run.kernel_release.clone()));
    assert_eq!(kernels.len(), 1, "{kernels:?}");
    assert!(bytes < 4 << 20, "{bytes} bytes: each recording anew stays in the history for good");
    assert_eq!(names, fixed().iter().map(Case::file_name).collect());
}
