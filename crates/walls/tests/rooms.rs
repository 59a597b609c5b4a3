//! Rules on dependencies, read from `cargo metadata`.

use crate::spdx;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Which rooms a room may use, and whether it may use crates from outside.
///
/// ```text
/// kernel <- job <- model <- deploy, sys, trace <- ftrace <- { sim, vm, host, read, analysis } <- report, lab <- study, verify <- cli
/// ```
///
/// `guest` is what `vm` sends into a virtual machine: a program of its own, which uses `job` and, without their
/// features, `ftrace` and `sys`.
const WALLS: &[(&str, &[&str], Outside)] = &[
    ("risetime-walls", &[], Outside::No),
    ("risetime-kernel", &[], Outside::No),
    ("risetime-job", &["kernel"], Outside::No),
    ("risetime-model", &["kernel", "job"], Outside::Yes),
    ("risetime-deploy", &["kernel", "model"], Outside::No),
    ("risetime-trace", &["kernel", "model"], Outside::Yes),
    ("risetime-sim", &["kernel", "model", "trace"], Outside::No),
    ("risetime-ftrace", &["kernel", "job", "trace"], Outside::No),
    ("risetime-sys", &["kernel", "job", "model"], Outside::Yes),
    ("risetime-guest", &["kernel", "job", "ftrace", "sys"], Outside::Yes),
    ("risetime-vm", &["kernel", "job", "model", "trace", "ftrace"], Outside::Yes),
    ("risetime-host", &["kernel", "model", "sys", "trace"], Outside::Yes),
    ("risetime-read", &["kernel", "model", "trace", "ftrace"], Outside::Yes),
    ("risetime-analysis", &["kernel", "model", "trace"], Outside::No),
    ("risetime-report", &["kernel", "model", "deploy", "trace", "analysis"], Outside::Yes),
    ("risetime-lab", &["kernel", "model", "deploy", "trace", "sim", "analysis"], Outside::Yes),
    ("risetime-study", &["kernel", "model", "trace", "sim", "analysis", "lab"], Outside::No),
    ("risetime-verify", &["kernel", "model", "trace", "sim", "analysis", "lab"], Outside::Yes),
    (
        "risetime",
        &[
            "kernel", "model", "deploy", "sys", "trace", "sim", "vm", "host", "read", "analysis",
            "report", "lab", "study", "verify",
        ],
        Outside::Yes,
    ),
];

#[derive(Clone, Copy, PartialEq)]
enum Outside {
    No,
    Yes,
}

/// The packages that package `id` uses when it is built: normal and build dependencies.
/// Dev-dependencies do not count: nobody is handed a test.
fn uses<'a>(metadata: &'a Value, id: &str) -> Vec<&'a str> {
    let nodes = metadata["resolve"]["nodes"].as_array().map_or(&[][..], |n| n);
    let of = |node: &'a Value| node["deps"].as_array().map_or(&[][..], |d| d).iter();
    let built = |dep: &Value| {
        dep["dep_kinds"].as_array().is_some_and(|k| k.iter().any(|k| k["kind"] != "dev"))
    };
    nodes
        .iter()
        .filter(|n| n["id"] == id)
        .flat_map(of)
        .filter(|d| built(d))
        .filter_map(|d| d["pkg"].as_str())
        .collect()
}

fn packages(metadata: &Value) -> BTreeMap<&str, &Value> {
    let all = metadata["packages"].as_array().map_or(&[][..], |p| p);
    all.iter().filter_map(|p| Some((p["id"].as_str()?, p))).collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or("?")
}

/// Does every room use only the rooms it may use?
pub(crate) fn broken_walls(metadata: &Value) -> Vec<String> {
    let packages = packages(metadata);
    let members = metadata["workspace_members"].as_array().map_or(&[][..], |m| m);
    let members: BTreeSet<&str> = members.iter().filter_map(Value::as_str).collect();
    let mut complaints = Vec::new();
    for id in &members {
        let room = packages.get(id).map_or("?", |p| name(p));
        let Some((_, allowed, outside)) = WALLS.iter().find(|w| w.0 == room) else {
            complaints.push(format!("{room} has no place in WALLS, in this file"));
            continue;
        };
        for used in uses(metadata, id) {
            let other = packages.get(used).map_or("?", |p| name(p));
            let fits = match other.strip_prefix("risetime-") {
                Some(inside) if members.contains(used) => allowed.contains(&inside),
                _ => *outside == Outside::Yes && !members.contains(used),
            };
            if !fits {
                complaints.push(format!("{room} must not use {other}"));
            }
        }
    }
    complaints
}

/// Everything that goes into the `risetime` binary or builds it.
fn in_the_binary(metadata: &Value) -> Vec<&Value> {
    let packages = packages(metadata);
    let mut reached: BTreeSet<&str> =
        packages.iter().filter(|(_, p)| name(p) == "risetime").map(|(id, _)| *id).collect();
    let mut open: Vec<&str> = reached.iter().copied().collect();
    while let Some(id) = open.pop() {
        open.extend(uses(metadata, id).into_iter().filter(|used| reached.insert(used)));
    }
    reached.iter().filter_map(|id| packages.get(id).copied()).collect()
}

/// Returns which crates of the binary offer no licence that goes together with GPL-2.0-or-later, as
/// it is and not only as GPL-3.0.
pub(crate) fn unfit_licences(metadata: &Value) -> Vec<String> {
    let crates = in_the_binary(metadata);
    if crates.is_empty() {
        return vec!["there is no package `risetime`".into()];
    }
    let unfit = |p: &&&Value| !p["license"].as_str().is_some_and(spdx::fits_gpl_2);
    crates
        .iter()
        .filter(unfit)
        .map(|p| format!("{}: {}", name(p), p["license"].as_str().unwrap_or("no licence named")))
        .collect()
}

/// Returns which crates need a newer Rust than the workspace's `rust-version`.
pub(crate) fn too_new(metadata: &Value) -> Vec<String> {
    let version = |p: &Value| {
        let mut numbers: Vec<u32> =
            p["rust_version"].as_str()?.split('.').filter_map(|n| n.parse().ok()).collect();
        numbers.resize(3, 0);
        Some(numbers)
    };
    let crates = in_the_binary(metadata);
    let Some(ours) = crates.iter().find(|p| name(p) == "risetime").and_then(|p| version(p)) else {
        return vec!["`risetime` has no rust-version".into()];
    };
    let newer = |p: &&&Value| version(p).is_some_and(|v| v > ours);
    crates
        .iter()
        .filter(newer)
        .map(|p| format!("{} wants Rust {}", name(p), p["rust_version"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Metadata with these workspace members, crates from outside as `name: licence`, and edges
    /// `user, used, kind`.
    fn made_up(
        members: &[&str],
        outside: &[(&str, &str)],
        edges: &[(&str, &str, Option<&str>)],
    ) -> Value {
        let ours = members.iter().map(|m| (*m, "GPL-2.0-or-later"));
        let all: Vec<(&str, &str)> = ours.chain(outside.iter().copied()).collect();
        let deps = |of: &str| -> Value {
            let mine = edges.iter().filter(|(user, _, _)| *user == of);
            mine.map(|(_, used, kind)| json!({"pkg": used, "dep_kinds": [{"kind": kind}]}))
                .collect()
        };
        json!({
            "packages": all.iter().map(|(n, l)| json!({"id": n, "name": n, "license": l, "rust_version": "1.89"})).collect::<Vec<_>>(),
            "workspace_members": members,
            "resolve": {"nodes": all.iter().map(|(n, _)| json!({"id": n, "deps": deps(n)})).collect::<Vec<_>>()},
        })
    }

    #[test]
    fn an_allowed_edge_is_no_complaint() {
        let m = made_up(
            &["risetime-kernel", "risetime-sim", "risetime-report"],
            &[("csv", "MIT")],
            &[("risetime-sim", "risetime-kernel", None), ("risetime-report", "csv", None)],
        );
        assert_eq!(broken_walls(&m), [""; 0]);
    }

    #[test]
    fn every_kind_of_forbidden_edge_is_noticed() {
        let members = [
            "risetime-kernel",
            "risetime-model",
            "risetime-sim",
            "risetime-host",
            "risetime-report",
            "risetime-lab",
            "risetime",
        ];
        let forbidden = [
            ("risetime-sim", "risetime-host", None),
            ("risetime-sim", "risetime-lab", None),
            ("risetime-sim", "rand", None),
            ("risetime-kernel", "rand", None),
            ("risetime-kernel", "rand", Some("build")),
            ("risetime-model", "risetime-sim", None),
            ("risetime-report", "risetime-lab", None),
            ("risetime-report", "risetime-host", None),
            ("risetime-lab", "risetime", None),
            ("risetime-lab", "risetime-host", None),
        ];
        for edge in forbidden {
            let m = made_up(&members, &[("rand", "MIT")], &[edge]);
            assert_eq!(broken_walls(&m), [format!("{} must not use {}", edge.0, edge.1)]);
        }
        assert_eq!(
            broken_walls(&made_up(&["risetime-cellar"], &[], &[])),
            ["risetime-cellar has no place in WALLS, in this file"]
        );
    }

    #[test]
    fn dev_dependencies_pass_through_walls() {
        let m = made_up(
            &["risetime-kernel"],
            &[("criterion", "Apache-2.0")],
            &[("risetime-kernel", "criterion", Some("dev"))],
        );
        assert_eq!(broken_walls(&m), [""; 0]);
    }

    #[test]
    fn an_unfit_licence_is_found_however_deep_it_is() {
        let crates = [("a", "MIT"), ("b", "MIT/Apache-2.0"), ("prost", "Apache-2.0")];
        let chain = [("risetime", "a", None), ("a", "b", Some("build"))];
        let m =
            |kind| made_up(&["risetime"], &crates, &[&chain[..], &[("b", "prost", kind)]].concat());
        assert_eq!(unfit_licences(&m(None)), ["prost: Apache-2.0"]);
        assert_eq!(unfit_licences(&m(Some("build"))), ["prost: Apache-2.0"]);
        assert_eq!(unfit_licences(&m(Some("dev"))), [""; 0]);
        assert_eq!(unfit_licences(&made_up(&[], &crates, &[])), ["there is no package `risetime`"]);
        let mut silent = m(None);
        silent["packages"][1]["license"] = Value::Null;
        assert_eq!(unfit_licences(&silent), ["a: no licence named", "prost: Apache-2.0"]);
    }

    #[test]
    fn a_newer_rust_is_noticed() {
        let mut m =
            made_up(&["risetime"], &[("a", "MIT"), ("b", "MIT")], &[("risetime", "a", None)]);
        (m["packages"][1]["rust_version"], m["packages"][2]["rust_version"]) =
            (json!("1.100"), json!("1.101"));
        assert_eq!(too_new(&m), ["a wants Rust \"1.100\""]);
        m["packages"][1]["rust_version"] = json!("1.89.0");
        assert_eq!(too_new(&m), [""; 0], "b is newer, but not in the binary");
    }
}
