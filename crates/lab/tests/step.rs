//! `verify --mode step`: the simulator asked at each decision of another trace, its own and a recorded kernel's.

use risetime_analysis::verify::step::{Decision, Stepped};
use risetime_lab::{Case, Recorded, SET_SEED, record, set, step};
use risetime_sim::Simulator;
use risetime_sim::mutant::{MUTANTS, Mutant};
use std::path::Path;

fn share(all: &Stepped, kind: Decision) -> f64 {
    let row = all.rows.get(&kind).copied().unwrap_or_default();
    row.agree as f64 / row.real.max(1) as f64
}

/// Each kind has at least so many real choices, and of them this share is decided alike.
fn holds(all: &Stepped, wanted: &[(Decision, u64, f64)]) {
    for &(kind, choices, least) in wanted {
        let row = all.rows.get(&kind).copied().unwrap_or_default();
        let found = share(all, kind);
        assert!(row.real >= choices, "{kind:?}: {row:?}");
        assert!(found >= least, "{kind:?}: {found:.3} of {row:?}, wanted {least}");
    }
}

/// Hotplug is not followed; forked tasks are, as threads of which nothing is known.
fn followed(case: &Case) -> bool {
    !case.workload.contains("hotplug") && !case.workload.contains("fork")
}

#[test]
fn at_its_own_decisions_the_simulator_decides_the_same() {
    let mut all = Stepped::default();
    for case in set(SET_SEED).iter().filter(|case| followed(case)) {
        let experiment = case.experiment(None).unwrap();
        let reference = record(&Simulator, &experiment).unwrap();
        all.add(step(&experiment, &reference, None).unwrap());
    }
    // Of a task that sleeps until another wakes it, not for a time, an idle CPU is told when that will be.
    holds(
        &all,
        &[
            (Decision::Wakeup, 2_000, 0.99),
            (Decision::Frequency, 1_000, 0.95),
            (Decision::Pick, 2_000, 0.99),
            (Decision::WakeupPreempt, 100, 0.95),
            (Decision::TickPreempt, 5_000, 0.99),
            (Decision::Idle, 3_000, 0.85),
        ],
    );
    assert!(all.moves.recalled >= all.moves.given * 9 / 10, "{:?}", all.moves);
}

/// All recorded runs of a real kernel.
fn recorded() -> Vec<Recorded> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let fixed = set(SET_SEED).into_iter().filter(|case| !case.is_drawn() && followed(case));
    let read = |case: Case| {
        let path = directory.join(case.file_name());
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Recorded::from_bytes(case, &bytes, &path.display().to_string()).unwrap().0
    };
    fixed.map(read).collect()
}

/// From so many start phases of each.
fn all_of(recorded: &[Recorded], phases: usize, mutant: Option<Mutant>) -> Stepped {
    let mut all = Stepped::default();
    for (experiment, trace) in recorded.iter().flat_map(|r| r.phases.iter().take(phases)) {
        all.add(step(experiment, trace, mutant).unwrap());
    }
    all
}

#[test]
fn at_the_decisions_of_a_recorded_kernel_the_simulator_decides_the_same() {
    let recorded = recorded();
    let all = all_of(&recorded, 3, None);
    // The recordings do not tell priorities, nor what cpuidle was told of timers: which is what the others lack: a kworker of nice -20 is
    // taken for an ordinary thread.
    holds(
        &all,
        &[
            (Decision::Wakeup, 4_000, 0.99),
            (Decision::Frequency, 1_500, 0.9),
            (Decision::Pick, 500, 0.9),
            (Decision::WakeupPreempt, 150, 0.7),
            (Decision::TickPreempt, 500, 0.75),
            (Decision::Idle, 10_000, 0.75),
        ],
    );
    let util = all.states.iter().find(|s| s.what == "task util_avg").unwrap();
    assert!(util.equal * 100 >= util.compared * 85, "{util:?}");
}

#[test]
fn broken_mechanisms_show_at_the_decisions() {
    let recorded = recorded();
    let true_one = all_of(&recorded, 1, None);
    let state = |all: &Stepped, what: &str| {
        let found = all.states.iter().find(|s| s.what == what);
        found.map_or(1.0, |s| s.equal as f64 / s.compared.max(1) as f64)
    };
    let by = |mutant: Mutant| -> (bool, bool) {
        let broken = all_of(&recorded, 1, Some(mutant));
        let kind = |k: &Decision| share(&true_one, *k) - share(&broken, *k) > 0.01;
        let states = &true_one.states;
        let off = |what: &str| state(&true_one, what) - state(&broken, what) > 0.01;
        (true_one.rows.keys().any(kind), states.iter().any(|s| off(s.what)))
    };
    let found: Vec<_> = MUTANTS.iter().map(|&(mutant, name, _)| (name, by(mutant))).collect();
    let decisions: Vec<_> = found.iter().filter(|(_, by)| by.0).map(|(name, _)| *name).collect();
    let unseen: Vec<_> =
        found.iter().filter(|(_, by)| *by == (false, false)).map(|(name, _)| *name).collect();
    assert!(decisions.len() >= 14, "by a decision only {decisions:?}");
    assert!(unseen.len() <= 14, "nothing exposes {unseen:?}");
}
