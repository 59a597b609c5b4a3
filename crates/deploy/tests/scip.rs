//! What SCIP says of the quadratic program, recorded (`tests/scip/optima.csv`), beside what is built in.
//!
//! The example `programs` and `tests/scip/optimum.py` ask SCIP again (`make scip`): another formulation, another solver.

use crate::cases;
use risetime_deploy::optimise::{ENDLESS, Ended, Objective, check, exact, spread};

#[test]
fn the_least_power_is_scips() {
    let recorded = include_str!("scip/optima.csv");
    let mut rows = recorded.lines().skip(1);
    for (name, p) in cases::cases() {
        let row: Vec<&str> = rows.next().expect("a row each").split(',').collect();
        assert_eq!(row[0], name);
        let (found, whole) = exact(&p, Objective::SLACK, ENDLESS);
        assert_eq!(whole, Ended::Whole, "{name}");
        let Some(found) = found else {
            assert_eq!(row[1], "none", "{name}");
            continue;
        };
        let checked = check(&p, &found.deployment).expect("obeys");
        let (mw, lambda): (f64, f64) = (row[1].parse().expect("mW"), row[2].parse().expect("λ"));
        let own = checked.power_nw as f64 / 1e6;
        assert!((own - mw).abs() < 1e-4 * mw, "{name}: {own} mW, SCIP {mw}");
        let own = spread(&p, &found.deployment.config).expect("room").lambda;
        assert!((own - lambda).abs() < 1e-3, "{name}: λ {own}, SCIP {lambda}");
    }
    assert_eq!(rows.next(), None);
}
