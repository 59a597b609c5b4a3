//! Small experiments of several tasks, judged by what real kernels gave for them (`side_by_side/`).

use crate::side_by_side_figures as figures;
use figures::{Outcome, Pair, dir, experiment, names, pairs, policy_of, recorded, simulate, table};
use risetime_sim::mutant::{FIGURE_MUTANTS, Mutant};
use risetime_sim::{Replay, Simulator};

/// What does not hold: experiment, generation, task (none: the machine), figure; with what is known of it.
#[rustfmt::skip]
const OPEN: &[(&str, &str, &str, &str)] = &[
    // Waking another task takes a real kernel some 10 µs of the waker's time, here none (`sync-free`)
    ("chain-of-two-cpus", "linux-6.1", "first", "turns"),
    ("chain-of-two-cpus", "linux-6.1", "first", "p99_us"),
    ("chain-of-two-cpus", "linux-6.12", "first", "p99_us"),
    ("chain-of-two-cpus", "linux-7.2", "first", "p99_us"),
    ("chain-of-two-cpus", "linux-7.3", "first", "p99_us"),
    // All start phases agree: the naps have locked into ticks, and a real one's cost of some 10 µs each into others
    ("fifo-beside", "linux-6.1", "rtA", "p99_us"),
    ("groups-2cpus", "linux-6.12", "perA", "p50_us"),
    ("heavy-sleepers", "linux-6.1", "perB", "p50_us"),
    ("heavy-sleepers", "linux-6.1", "perC", "p50_us"),
    ("heavy-sleepers", "linux-6.1", "perC", "p99_us"),
    ("nice-sleeper", "linux-6.12", "perA", "p99_us"),
    ("rr-pair", "linux-7.3", "rtA", "p99_us"),
    // Not explained
    ("idle-hog", "linux-7.2", "perA", "p99_us"),
    ("idle-hog", "linux-7.2", "perB", "p99_us"),
    ("idle-hog", "linux-7.3", "perA", "p99_us"),
    ("idle-hog", "linux-7.3", "perB", "p99_us"),
    ("idle-in-group", "linux-7.3", "perA", "p50_us"),
    ("batch-sleeper", "linux-7.3", "perB", "p99_us"),
    ("group-weights", "linux-7.3", "perB", "p50_us"),
    ("groups-2cpus", "linux-6.1", "hogA", "turns"),
    ("groups-2cpus", "linux-6.1", "hogB", "turns"),
    ("groups-2cpus", "linux-6.1", "hogC", "turns"),
    ("sleeper-hog", "linux-6.12", "perA", "p99_us"),
    ("sleeper-hog", "linux-7.2", "perA", "p99_us"),
    ("sleeper-hog", "linux-7.3", "perA", "p99_us"),
    ("sleepers-2cpus", "linux-6.1", "per1", "p50_us"),
    ("sleepers-2cpus", "linux-6.1", "per3", "p99_us"),
    ("sleepers-2cpus", "linux-6.1", "per4", "p99_us"),
    ("sleepers-hog-2cpus", "linux-7.3", "hogA", "turns"),
    ("sleepers-hogs", "linux-6.12", "perA", "p99_us"),
];

fn judged(name: &str, release: &str, real: &Outcome, mutant: Option<Mutant>) -> Vec<Pair> {
    let simulator = Replay { mutant, ..Replay::default() };
    let policy = policy_of(release);
    let simulated = simulate(&simulator, &experiment(name, &policy)).expect("a run");
    pairs(&simulated, real)
}

fn is_open(name: &str, release: &str, pair: &Pair) -> bool {
    let policy = policy_of(release);
    OPEN.iter().any(|open| *open == (name, &policy, &pair.task, pair.figure))
}

#[test]
fn figures_are_those_of_the_kernels_that_were_asked() {
    let (mut wrong, mut open) = (Vec::new(), 0);
    for ((name, release), real) in recorded() {
        for pair in judged(&name, &release, &real, None) {
            let known = is_open(&name, &release, &pair);
            open += usize::from(known && !pair.holds());
            if pair.holds() == known {
                let Pair { task, figure, simulated, real } = &pair;
                let what = if known { " holds by now: take it off the list" } else { "" };
                wrong.push(format!(
                    "{name} {release} {task} {figure}: {simulated:?}, real {real}{what}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(open, OPEN.len(), "a figure that nobody recorded stands in the list");
}

/// With what a virtual machine takes (`noise=vm`) some more differ, by a few percent; of a task that wakes another on its own
/// CPU the turns are still those of the kernel, which switches before it goes on.
#[test]
fn with_what_a_machine_takes_hardly_more_differ() {
    let (mut all, mut off) = (0, Vec::new());
    for ((name, release), real) in recorded() {
        let noisy = format!("{}+noise=vm", policy_of(&release));
        let simulated = simulate(&Simulator, &experiment(&name, &noisy)).expect("a run");
        for pair in pairs(&simulated, &real) {
            all += 1;
            let turns = name == "chain" && pair.figure == "turns" && pair.task != "hogA";
            assert!(!turns || pair.holds(), "{name} {release} {}: {:?}", pair.task, pair.simulated);
            if !pair.holds() {
                off.push(format!("{name} {release} {} {}", pair.task, pair.figure));
            }
        }
    }
    assert!(all > 800 && off.len() * 100 <= all * 6, "{} of {all}:\n{}", off.len(), off.join("\n"));
}

/// `BLESS=1` writes the table anew.
#[test]
fn the_table_of_the_documentation_is_what_is_simulated() {
    let path = dir().join("../../../../docs/side-by-side.md");
    let page = std::fs::read_to_string(&path).expect("docs/side-by-side.md");
    let (head, _) = page.split_once("| experiment |").expect("a table");
    let wanted = format!("{head}{}", table(&Replay::default()));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &wanted).expect("docs/side-by-side.md");
    } else {
        assert!(
            page == wanted,
            "docs/side-by-side.md shows other figures: BLESS=1 writes them anew"
        );
    }
}

#[test]
fn every_experiment_was_recorded_on_every_generation_that_boots() {
    let recorded = recorded();
    for name in names() {
        let mut generations: Vec<String> =
            recorded.keys().filter(|(n, _)| *n == name).map(|(_, r)| policy_of(r)).collect();
        generations.sort();
        let wanted = ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"];
        assert_eq!(generations, wanted, "{name}");
    }
}

#[test]
fn wrong_simulators_are_told_apart() {
    for &(mutant, mutant_name, _) in FIGURE_MUTANTS {
        let exposed = recorded().iter().any(|((name, release), real)| {
            let pairs = judged(name, release, real, Some(mutant));
            pairs.iter().any(|p| !p.holds() && !is_open(name, release, p))
        });
        assert!(exposed, "no figure exposes {mutant_name}");
    }
}
