//! The yardstick tested: does `verify` notice a simulator that is wrong?
//!
//! A mutant is caught by a check that the true simulator passes and the mutant fails, in the same
//! experiment and mode. One that nothing tells apart is equivalent, as far as the set goes.

use super::{Recorded, Verification, verify, verify_with};
use risetime_analysis::verify::{Caught, Check, Mode};
use risetime_sim::mutant::MUTANTS;
use risetime_trace::RunError;

/// Lets every mutant run every experiment from its first start phase, and says what exposes it: the check that is furthest
/// outside its band.
///
/// Errors: the simulator's.
pub fn catch(set: &[Recorded]) -> Result<Vec<Caught>, RunError> {
    let mut truth = Vec::new();
    for r in set {
        for (experiment, reference) in r.phases.iter().take(1) {
            for mode in [Mode::Given, Mode::Free] {
                let right = verify(experiment, reference, mode)?;
                truth.push((&r.case.name, experiment, reference, mode, right));
            }
        }
    }
    let caught = |&(mutant, name, about): &(_, &'static str, &'static str)| {
        let mut found = Caught { name, about, by: None, failed: 0 };
        let mut most = 0.0;
        for (experiment_name, experiment, reference, mode, right) in &truth {
            // One that never comes to the start fails every check.
            let wrong = verify_with(experiment, reference, *mode, Some(mutant)).ok();
            for check in newly_failed(right, wrong.as_ref()) {
                found.failed += 1;
                let far = check.excess() / check.band.max(1.0);
                if found.by.is_none() || far > most {
                    most = far;
                    found.by = Some((experiment_name.to_string(), *mode, check));
                }
            }
        }
        Ok(found)
    };
    MUTANTS.iter().map(caught).collect()
}

fn newly_failed(right: &Verification, wrong: Option<&Verification>) -> Vec<Check> {
    let passed = right.comparison.checks.iter().enumerate().filter(|(_, c)| c.holds);
    passed
        .filter_map(|(i, c)| match wrong {
            Some(w) => w.comparison.checks.get(i).filter(|w| !w.holds).cloned(),
            None => Some(Check {
                measured: f64::INFINITY,
                holds: false,
                why: "the simulation never comes to the start".into(),
                ..c.clone()
            }),
        })
        .collect()
}
