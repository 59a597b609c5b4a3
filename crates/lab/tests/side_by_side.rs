//! Small experiments of several tasks, judged by what real kernels gave for them (`side_by_side/`).

#[path = "side_by_side/figures.rs"]
#[allow(dead_code, reason = "what the example `side_by_side` records and prints with")]
mod figures;

use figures::{Outcome, Pair, experiment, names, pairs, policy_of, recorded, simulate};
use risetime_sim::Replay;
use risetime_sim::mutant::{Mutant, OLDER_MUTANTS};

/// What does not hold, and why: experiment, release's generation, task, figure.
const OPEN: &[(&str, &str, &str, &str)] = &[];

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
    for &(mutant, mutant_name, _) in OLDER_MUTANTS {
        let exposed = recorded().iter().any(|((name, release), real)| {
            let pairs = judged(name, release, real, Some(mutant));
            pairs.iter().any(|p| !p.holds() && !is_open(name, release, p))
        });
        assert!(exposed, "no figure exposes {mutant_name}");
    }
}
