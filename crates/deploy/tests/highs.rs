//! What HiGHS says of the linear programs, recorded (`tests/highs/answers.csv`): the outer approximation goes its way by it without
//! HiGHS, and finds what the search finds.
//!
//! `make highs` builds HiGHS, and asks it again (`crates/cli/src/highs.rs`).

#[path = "highs/answers.rs"]
#[allow(dead_code, reason = "what HiGHS's own test writes with")]
mod answers;

use crate::cases;
use answers::{Answer, Replay, read};
use risetime_deploy::optimise::{
    ENDLESS, Ended, Linear, Milp, Objective, check, exact, outer, spread,
};

const RECORDED: &str = include_str!("highs/answers.csv");

#[test]
fn by_what_highs_said_the_least_power_is_found() {
    let mut all = read(RECORDED);
    for (name, p) in cases::cases() {
        let mut replay = Replay::new(all.remove(&name).unwrap_or_else(|| panic!("{name}")));
        let (found, rounds) = outer(&p, Objective::SLACK, &mut replay).expect(&name);
        assert!(replay.left().is_empty(), "{name}: the program asks for less than it did");
        let (least, whole) = exact(&p, Objective::SLACK, ENDLESS);
        assert!(whole == Ended::Whole && rounds.whole, "{name}");
        let (found, least) = (found.expect(&name), least.expect(&name));
        let [own, other] = [&found, &least].map(|f| check(&p, &f.deployment).expect("obeys"));
        // Within the gap that a program may have, and what it says is a bound.
        assert!(own.power_nw <= other.power_nw + other.power_nw / 5000, "{name}");
        assert!(found.bound_nw <= other.power_nw + 10 + p.nodes.len() as u64, "{name}");
        assert!(own.power_nw - found.bound_nw <= own.power_nw / 4000, "{name}");
        let lambda = |f: &risetime_deploy::optimise::Found| {
            spread(&p, &f.deployment.config).expect("room").lambda
        };
        assert!((lambda(&found) - lambda(&least)).abs() < 1e-3, "{name}");
    }
    assert!(all.is_empty(), "{:?}", all.keys());
}

/// The bound is what the solver says: one that says too much is believed, and no deployment contradicts it.
#[test]
fn an_answer_for_another_program_is_refused() {
    let (_, p) = cases::cases().remove(1);
    let answer = Answer { columns: 1, rows: 1, ones: Vec::new(), bound: 0.0, found: true };
    let mut replay = Replay::new(vec![answer]);
    let e = outer(&p, Objective::Power, &mut replay).expect_err("another program");
    assert!(e.contains("make highs"), "{e}");
    assert!(Replay::new(Vec::new()).solve(&Linear::default()).is_err());
}
