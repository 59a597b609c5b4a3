//! `verify --mode step`: the simulator asked at each decision of another trace, its own and a recorded kernel's.

use risetime_analysis::verify::step::{Decision, MOVES_WANTED, Stepped};
use risetime_kernel::KernelRev;
use risetime_lab::{Request, read_kept, record};
use risetime_model::Experiment;
use risetime_sim::Simulator;
use risetime_sim::mutant::{FIGURE_MUTANTS, MUTANTS, Mutant, STEP_MUTANTS};
use risetime_trace::Memory;
use risetime_verify::{Can, Case, Recorded, SET_SEED, set, step, wide_named};
use std::path::{Path, PathBuf};

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

/// Hotplug is not followed.
fn followed(case: &Case) -> bool {
    !case.workload.contains("hotplug")
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

/// Runs of kernels that tell from what they decide, by directory: its name is the release's, a file's that of the
/// drawn experiment (`risetime verify --mode step --draw N --seed S --kernel K --references DIR`).
fn told() -> Vec<(KernelRev, Vec<(Experiment, Memory)>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stepped");
    let of_release = |directory: PathBuf| {
        let release = directory.file_name().unwrap().to_str().unwrap();
        let rev = KernelRev::of_release(release).unwrap_or_else(|| panic!("{release}"));
        // Debian builds uclamp into 7.x alone.
        let can = Can::of(rev, rev >= KernelRev::new(7, 0));
        let read = |path: &PathBuf| {
            let file = path.file_name().unwrap().to_str().unwrap();
            let name = file.strip_suffix(".trace.gz").unwrap();
            let case = wide_named(name, can).unwrap_or_else(|| panic!("{file}: no drawn case"));
            (case.experiment(Some(rev)).unwrap(), read_kept(path).unwrap())
        };
        (rev, sorted(&directory).iter().map(read).collect())
    };
    sorted(&directory).into_iter().map(of_release).collect()
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

fn all_told(told: &[(Experiment, Memory)], mutant: Option<Mutant>) -> Stepped {
    let mut all = Stepped::default();
    for (experiment, trace) in told {
        all.add(step(experiment, trace, mutant).unwrap());
    }
    all
}

#[test]
fn where_a_kernel_tells_from_what_it_decides_the_simulator_decides_the_same() {
    let told = told();
    let (newest, older) = told.split_last().unwrap();
    assert_eq!(newest.0, KernelRev::V7_3);
    let all = all_told(&newest.1, None);
    // As often as `Decision::wanted` says, each of so many real choices.
    holds(&all, &wanted([1_500, 500, 1_000, 500, 500, 3_000], 0));
    for what in ["task util_avg", "weight", "util_est at a look", "running_bw", "cfs_rq load_avg"] {
        assert!(all.states.iter().any(|s| s.what == what && s.compared > 100), "{what}");
    }
    moves_as_there(&all, 100, 0);
    comparable(&all);
    assert_eq!(older.len(), OLDER.len());
    for ((rev, runs), (wanted_of, moves_less)) in older.iter().zip(OLDER) {
        assert_eq!(*rev, wanted_of);
        let all = all_told(runs, None);
        eprintln!("{rev}: {:?}, {:?}", all.rows, all.moves);
        holds(&all, &wanted([300, 100, 400, 130, 180, 500], 5));
        moves_as_there(&all, 20, moves_less);
        comparable(&all);
        for what in ["group vruntime", "group zero_vruntime"] {
            assert!(all.states.iter().any(|s| s.what == what && s.compared > 50), "{what}");
        }
    }
}

/// Deadline tasks alone, beside fair ones and beside real-time ones, and SCHED_RR tasks, a second of each under each kernel:
/// `beside/RELEASE-WORKLOAD.trace.gz`, as `risetime verify WORKLOAD.json --platform rpi4 --kernel K --mode step
/// --policy linux-K --hz 250 --seconds 1 --references DIR` keeps it. And under 6.1 two seconds of `rt-burst`, whose task is throttled.
#[test]
fn beside_deadline_and_real_time_tasks_it_decides_the_same() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/beside");
    let of = |rev: KernelRev, workload: &str, seconds: f64| {
        let path = directory.join(format!("{rev}-{workload}.trace.gz"));
        let own = directory.join(format!("{workload}.json"));
        let workload = if own.exists() { own.display().to_string() } else { workload.into() };
        let request = Request {
            policies: vec![format!("linux-{rev}")],
            seconds: Some(seconds),
            hz: Some(250),
            ..Request::new(workload, "rpi4")
        };
        let experiment = request.experiments_under(Some(rev)).unwrap().remove(0);
        step(&experiment, &read_kept(&path).unwrap(), None).unwrap()
    };
    for rev in [KernelRev::V6_1, KernelRev::V6_12, KernelRev::V7_3] {
        let mut all = Stepped::default();
        for workload in ["deadline-alone", "deadline-fair", "deadline-fifo"] {
            all.add(of(rev, workload, 1.0));
        }
        eprintln!("{rev}: {:?}, {:?}", all.rows, all.moves);
        // Of real choices beside deadline tasks there are few, but for where a task wakes and what is pulled.
        let wanted = [
            (Decision::Wakeup, 1_000, 0.97),
            (Decision::Frequency, 200, 0.98),
            (Decision::Pick, 15, 0.85),
            (Decision::WakeupPreempt, 15, 0.9),
        ];
        holds(&all, &wanted);
        moves_as_there(&all, 100, 0);
        comparable(&all);
        // The thread that creates them waits behind real-time tasks, bound to its CPU: other CPUs look, and take nothing.
        let turns = of(rev, "round-robin", 1.0);
        assert!(turns.rows[&Decision::TickPreempt].asked > 5, "{:?}", turns.rows);
        assert_eq!((turns.moves.own, turns.moves.given), (0, 0), "{rev}: {:?}", turns.differences);
        let off = |what: &str| all.states.iter().find(|s| s.what == what).map(|s| s.p90);
        assert!(off("dl deadline").is_some_and(|ns| ns < 100_000), "{:?}", off("dl deadline"));
    }
    let throttled = of(KernelRev::V6_1, "rt-burst", 2.0);
    holds(&throttled, &[(Decision::Pick, 30, 0.97), (Decision::TickPreempt, 30, 0.97)]);
}

/// Whose runs are five, of tasks in groups: what the newest is held to, less five points.
/// What balances, too, but from 6.18 on nobody tells of quotas that run out.
const OLDER: [(KernelRev, u64); 3] =
    [(KernelRev::V6_1, 5), (KernelRev::V6_12, 5), (KernelRev::V7_2, 15)];

/// So many real choices of each kind, and what share of them is wanted, less so many points.
fn wanted(choices: [u64; 6], less: u64) -> Vec<(Decision, u64, f64)> {
    let kinds = [
        Decision::Wakeup,
        Decision::Frequency,
        Decision::Pick,
        Decision::WakeupPreempt,
        Decision::TickPreempt,
        Decision::Idle,
    ];
    let share = |kind: Decision| (kind.wanted() - less) as f64 / 100.0;
    kinds.into_iter().zip(choices).map(|(kind, n)| (kind, n, share(kind))).collect()
}

fn moves_as_there(all: &Stepped, at_least: u64, less: u64) {
    let moves = &all.moves;
    assert!(moves.given >= at_least, "{moves:?}");
    let wanted = MOVES_WANTED - less;
    assert!(moves.recalled * 100 >= wanted * moves.given, "{moves:?}");
    assert!(moves.precise * 100 >= wanted * moves.own, "{moves:?}");
}

/// Of what is asked, four in five can be compared: nobody knows where a thread of the system may run.
fn comparable(all: &Stepped) {
    for (kind, row) in &all.rows {
        assert!(row.comparable * 100 >= row.asked * 80, "{kind:?}: {row:?}");
    }
}

/// By what a mutant is told from the true simulator: kinds of decisions (balancing is one), and values of the state.
fn exposed(truth: &Stepped, broken: &Stepped) -> (Vec<&'static str>, Vec<&'static str>) {
    // Both are asked the same in the same state: what differs is the mutant's. One in a hundred, or five.
    let lost = |k: Decision| {
        let right = |s: &Stepped| s.rows.get(&k).map_or(0, |row| row.agree);
        share(truth, k) - share(broken, k) > 0.01 || right(truth) >= right(broken) + 5
    };
    let kinds = truth.rows.keys().filter(|k| lost(**k));
    let moves = |s: &Stepped| {
        let part = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        [part(s.moves.recalled, s.moves.given), part(s.moves.precise, s.moves.own)]
    };
    let moved = moves(truth).into_iter().zip(moves(broken)).any(|(t, b)| t - b > 0.05);
    let by = kinds.map(|k| k.as_str()).chain(moved.then_some("balancing")).collect();
    let equal = |all: &Stepped, what: &str| {
        let found = all.states.iter().find(|s| s.what == what);
        found.map_or(1.0, |s| s.equal as f64 / s.compared.max(1) as f64)
    };
    let off = |what: &&str| equal(truth, what) - equal(broken, what) > 0.01;
    (by, truth.states.iter().map(|s| s.what).filter(off).collect())
}

#[test]
fn broken_mechanisms_show_at_the_decisions() {
    let (recorded, told) = (recorded(), told());
    let of = |mutant| {
        let told = told.iter().map(move |(_, runs)| all_told(runs, mutant));
        [all_of(&recorded, 1, mutant)].into_iter().chain(told).collect::<Vec<_>>()
    };
    let truth = of(None);
    let by = |mutant: Mutant| {
        let (mut decisions, mut states) = (Vec::new(), Vec::new());
        for (truth, broken) in truth.iter().zip(&of(Some(mutant))) {
            let (by, off) = exposed(truth, broken);
            decisions.extend(by);
            states.extend(off);
        }
        (decisions, states)
    };
    let all = MUTANTS.iter().chain(FIGURE_MUTANTS).chain(STEP_MUTANTS);
    let found: Vec<_> = all.map(|&(mutant, name, _)| (name, by(mutant))).collect();
    let decisions = found.iter().filter(|(_, by)| !by.0.is_empty()).count();
    let unseen: Vec<_> =
        found.iter().filter(|(_, by)| by.0.is_empty() && by.1.is_empty()).map(|f| f.0).collect();
    assert!(decisions >= 36, "by a decision only {decisions} of {found:#?}");
    assert!(unseen.len() <= 12, "nothing exposes {unseen:?}");
    for &(_, name, _) in STEP_MUTANTS {
        assert!(!unseen.contains(&name), "{name}: not exposed");
    }
}
