//! What holds the project together and no compiler checks: which room may use which, under which
//! licences the binary can be passed on, what the simulator must not touch, and that the list of
//! known deviations in docs/deviations.md is the code's.
//!
//! Every rule is a function from what is there to a list of complaints, so that each has a test
//! which shows that it can complain.

mod callers;
mod circles;
mod doctests;
mod releases;
mod rooms;
mod sim;
mod sizes;
mod sources;
mod spdx;
mod words;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// `cargo metadata` of this workspace, for the platform the tests run on.
fn metadata() -> Value {
    let host = Command::new(env!("CARGO")).arg("-vV").output().expect("cargo -vV");
    let host = String::from_utf8(host.stdout).expect("UTF-8");
    let host = host.lines().find_map(|l| l.strip_prefix("host: ")).expect("cargo names its host");
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", host])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

#[test]
fn rooms_are_entered_one_way_only() {
    assert_eq!(rooms::broken_walls(&metadata()), [""; 0]);
}

#[test]
fn the_binary_can_be_passed_on_under_the_gpl_2() {
    assert_eq!(rooms::unfit_licences(&metadata()), [""; 0]);
}

#[test]
fn no_crate_wants_a_newer_rust_than_we_promise() {
    assert_eq!(rooms::too_new(&metadata()), [""; 0]);
}

#[test]
fn no_setting_is_looked_up_by_a_text() {
    let rooms =
        ["analysis", "cli", "deploy", "host", "lab", "model", "report", "sim", "trace", "vm"];
    let src = |room| root().join("crates").join(room).join("src");
    assert_eq!(rooms.map(|room| sources::settings_by_text(&src(room))).concat(), [""; 0]);
}

#[test]
fn kernel_and_sim_touch_no_hash_float_clock_file_or_thread() {
    let found = ["kernel", "sim"]
        .map(|room| sources::forbidden_in(&root().join("crates").join(room).join("src")));
    assert_eq!(found.concat(), [""; 0]);
}

#[test]
fn requests_are_built_of_documents_and_read_no_files() {
    let src = root().join("crates/lab/src");
    assert_eq!(sources::reads_files(&src), [""; 0]);
}

#[test]
fn what_a_person_names_is_read_in_one_place() {
    assert_eq!(sources::reads_names(&root().join("crates/cli/src")), [""; 0]);
}

#[test]
fn what_is_checked_against_c_is_what_runs() {
    assert_eq!(callers::complaints(&root().join("crates"), callers::AWAITING), [""; 0]);
}

#[test]
fn what_a_release_does_is_asked_of_the_table() {
    assert_eq!(releases::complaints(&root().join("crates"), releases::ALLOWED), [""; 0]);
}

#[test]
fn the_simulator_is_in_rooms() {
    assert_eq!(sim::complaints(&root().join("crates")), [""; 0]);
}

#[test]
fn files_use_each_other_in_short_circles_only() {
    assert_eq!(circles::complaints(&root().join("crates")), [""; 0]);
}

#[test]
fn files_and_functions_have_an_end() {
    assert_eq!(sizes::complaints(&root().join("crates")), [""; 0]);
}

#[test]
fn examples_in_comments_are_run_where_there_are_any() {
    assert_eq!(doctests::complaints(&root().join("crates")), [""; 0]);
}

#[test]
fn the_kernel_room_is_no_std() {
    let lib = std::fs::read_to_string(root().join("crates/kernel/src/lib.rs")).expect("its lib.rs");
    assert!(lib.lines().any(|l| l == "#![no_std]"));
}

#[test]
fn nothing_names_a_path_of_some_machine() {
    assert_eq!(sources::machine_paths(&root()), [""; 0]);
}

#[test]
fn every_property_draws_the_same_cases_in_each_run() {
    assert_eq!(sources::other_draws(&root().join("crates")), [""; 0]);
}

#[test]
fn doc_comments_say_what_they_are_about() {
    assert_eq!(words::complaints(&root().join("crates")), [""; 0]);
}

/// Each of them, in whatever place of a comment it stands; the page's text is generated from those that
/// begin a line (`tests/cli/documents.rs`).
#[test]
fn the_page_of_the_deviations_lists_those_of_the_code() {
    let page = std::fs::read_to_string(root().join("docs/deviations.md")).expect("the page");
    let (listed, found) =
        (sources::listed_deviations(&page), sources::deviations(&root().join("crates")));
    assert!(found.len() > 5, "the search itself has to work: {found:?}");
    assert_eq!(listed, found, "left: docs/deviations.md, right: DEVIATES( in crates/");
}
