//! What kernels were asked about drawn experiments, decision by decision: `make evidence-drawn` records it, counts alone.
//!
//! The seed is 6185a417, the last commit before what is judged here was begun: nobody had looked at these experiments.

use risetime_analysis::verify::step::{Decision, MOVES_WANTED};
use risetime_model::workload::Tree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Counts of one kernel, of all experiments: of how many, so many alike (or near).
#[derive(Default)]
struct Counts(BTreeMap<String, (u64, u64)>);

impl Counts {
    fn add(&mut self, what: &str, of: u64, alike: u64) {
        let all = self.0.entry(what.into()).or_default();
        *all = (all.0 + of, all.1 + alike);
    }
}

fn number(tree: &Tree, key: &str) -> u64 {
    let found = tree.get(key).and_then(Tree::as_int).and_then(|n| u64::try_from(n).ok());
    found.unwrap_or_else(|| panic!("no number {key}"))
}

fn list<'a>(tree: &'a Tree, key: &str) -> &'a [Tree] {
    match tree.get(key) {
        Some(Tree::List(all)) => all,
        other => panic!("{key} is no list: {other:?}"),
    }
}

fn text(tree: &Tree, key: &str) -> String {
    match tree.get(key) {
        Some(Tree::Text(text)) => text.clone(),
        other => panic!("{key} is no text: {other:?}"),
    }
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|e| panic!("{directory:?}: {e}"));
    let mut all: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// Counts by kernel, and how many experiments each was asked about.
fn recorded() -> Vec<(String, usize, Counts)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drawn");
    let of_kernel = |directory: PathBuf| {
        let (mut counts, files) = (Counts::default(), sorted(&directory));
        for path in &files {
            let place = path.display().to_string();
            let tree = Tree::parse(&std::fs::read_to_string(path).unwrap(), &place).unwrap();
            for row in list(&tree, "decisions") {
                counts.add(&text(row, "decision"), number(row, "real"), number(row, "alike"));
            }
            let moves = tree.get("moves").unwrap();
            counts.add("recall", number(moves, "given"), number(moves, "recalled"));
            counts.add("precision", number(moves, "own"), number(moves, "precise"));
        }
        let name = directory.file_name().unwrap().to_str().unwrap().to_string();
        (name, files.len(), counts)
    };
    sorted(&directory).into_iter().map(of_kernel).collect()
}

#[test]
fn of_drawn_experiments_that_nobody_chose_each_kernel_and_the_simulator_decide_alike() {
    let all = recorded();
    assert_eq!(all.len(), 4);
    let kinds = [
        Decision::Wakeup,
        Decision::Fork,
        Decision::Frequency,
        Decision::Pick,
        Decision::WakeupPreempt,
        Decision::TickPreempt,
        Decision::Idle,
    ];
    let wanted = kinds.map(|kind| (kind.as_str(), kind.wanted()));
    let moves = [("recall", MOVES_WANTED), ("precision", MOVES_WANTED)];
    for (kernel, experiments, counts) in &all {
        assert!(*experiments >= 6, "{kernel}: {experiments} experiments");
        for (what, percent) in wanted.iter().chain(&moves) {
            let (of, alike) = counts.0.get(*what).copied().unwrap_or_default();
            let short = SHORT.iter().find(|(k, w, _)| (k, w) == (&kernel.as_str(), what));
            let least = short.map_or(*percent, |(.., least)| *least);
            assert!(
                100 * alike >= least * of,
                "{kernel}: {what} {alike} of {of}, wanted {least} %"
            );
        }
    }
}

/// Shares that fall short of what is wanted, and how far: what is known of them stands in
/// docs/evidence/real-kernels.md.
const SHORT: &[(&str, &str, u64)] = &[
    ("6.12", "preemption at tick", 94),
    ("6.12", "preemption at wakeup", 96),
    ("7.2", "fork CPU", 90),
];
