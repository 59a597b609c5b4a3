//! Completions of a shell: names of what is built in, and files.
//!
//! ```text
//! shell ── RISETIME_COMPLETE=bash risetime -- risetime run ra ──> this command ──> rampup, …
//! ```
//!
//! The script of `risetime completions` only asks this command, which knows its names, kernels in the cache among
//! them. Left out: values of settings.

use clap::CommandFactory;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use risetime_model::library::{self, Entry};
use std::ffi::OsStr;

/// Set by the script where it asks.
const ASKED: &str = "RISETIME_COMPLETE";

/// Answers a shell that asks, and ends; else nothing.
pub(crate) fn answer() {
    CompleteEnv::with_factory(crate::args::Cli::command).var(ASKED).complete();
}

/// The script for `shell`.
pub(crate) fn script(shell: clap_complete::Shell) -> String {
    const NAME: &str = "risetime";
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let known = shells.completer(&shell.to_string()).expect("all of clap_complete's are built in");
    known.write_registration(ASKED, NAME, NAME, NAME, &mut script).expect("memory takes it");
    String::from_utf8_lossy(&script).into_owned()
}

pub(crate) fn platform() -> ArgValueCompleter {
    names_or_files(|| names(library::platforms()), "toml")
}

pub(crate) fn workload() -> ArgValueCompleter {
    names_or_files(|| names(library::workloads()), "json")
}

pub(crate) fn study() -> ArgValueCompleter {
    names_or_files(|| names(library::studies()), "toml")
}

/// Completes whatever `show` and `check` take.
pub(crate) fn anything() -> ArgValueCompleter {
    let all = || {
        let kinds = [library::platforms(), library::policies(), library::workloads()];
        names(kinds.into_iter().flatten().chain(library::studies()).collect())
    };
    names_or_files(all, "")
}

/// `NAME`, and after a `+` the settings.
pub(crate) fn policy() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| match current.to_string_lossy().rsplit_once('+') {
        Some((before, key)) => keys(&format!("{before}+"), key),
        None => {
            let current = current.to_string_lossy();
            let files = files("toml", OsStr::new(&*current));
            beginning(names(library::policies()), &current).chain(files).collect()
        }
    })
}

/// `KEY=`.
pub(crate) fn setting() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| keys("", &current.to_string_lossy()))
}

/// Releases in the cache, and Images.
pub(crate) fn kernel() -> ArgValueCompleter {
    let releases = || {
        let cache = risetime_vm::fetch::Cache::from_env();
        let kernels = cache.map(|c| c.kernels()).unwrap_or_default();
        kernels.into_iter().map(|k| CompletionCandidate::new(k.release)).collect()
    };
    names_or_files(releases, "")
}

fn names(entries: Vec<Entry>) -> Vec<CompletionCandidate> {
    let candidate = |e: Entry| CompletionCandidate::new(e.name).help(Some(e.about().into()));
    entries.into_iter().map(candidate).collect()
}

fn keys(before: &str, key: &str) -> Vec<CompletionCandidate> {
    let catalogue = risetime_sim::catalogue();
    let candidate = |name: &str, doc: &'static str| {
        CompletionCandidate::new(format!("{before}{name}=")).help(Some(doc.into()))
    };
    let mut all: Vec<_> = catalogue.params().map(|(_, p)| candidate(p.name, p.doc)).collect();
    // Governors share names of tunables.
    all.sort_by(|a, b| a.get_value().cmp(b.get_value()));
    all.dedup_by(|a, b| a.get_value() == b.get_value());
    beginning(all, &format!("{before}{key}")).collect()
}

fn names_or_files(
    all: impl Fn() -> Vec<CompletionCandidate> + Send + Sync + 'static,
    ending: &'static str,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let begun = current.to_string_lossy();
        beginning(all(), &begun).chain(files(ending, current)).collect::<Vec<_>>()
    })
}

fn beginning(
    all: Vec<CompletionCandidate>,
    with: &str,
) -> impl Iterator<Item = CompletionCandidate> {
    all.into_iter().filter(move |c| c.get_value().to_string_lossy().starts_with(with))
}

/// Directories and files with this ending; any, if it is empty.
fn files(ending: &'static str, current: &OsStr) -> Vec<CompletionCandidate> {
    let ends = move |path: &std::path::Path| {
        ending.is_empty() || path.is_dir() || path.extension().is_some_and(|e| e == ending)
    };
    PathCompleter::file().filter(ends).complete(current)
}
