//! The yardstick tested: does `verify` notice a simulator that is wrong?
//!
//! A mutant is caught by a check that the true simulator passes and the mutant fails, in the same
//! experiment and mode. One that nothing tells apart is equivalent, as far as the set goes.

use super::{Recorded, Verification, verify, verify_with};
use risetime_analysis::verify::{Caught, Check, Mode};
use risetime_lab::parallel;
use risetime_sim::mutant::MUTANTS;
use risetime_trace::RunError;

/// Lets every mutant run every experiment from its first start phase, on all cores, and says what
/// exposes it: the check that is furthest outside its band.
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
    parallel(
        MUTANTS.len(),
        |_| (),
        |i| {
            let (mutant, name, about) = MUTANTS[i];
            let mut found = Caught { name, about, by: None, failed: 0 };
            let mut most = 0.0;
            for (experiment_name, experiment, reference, mode, right) in &truth {
                // A mutant that never comes to the start fails every check.
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
        },
    )
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

#[cfg(test)]
mod tests {
    use super::MUTANTS;
    use crate::cases::{outside, set};
    use risetime_kernel::KernelRev;
    use risetime_lab::record;
    use risetime_sim::mutant::Mutant;
    use risetime_sim::{Replay, Simulator};

    /// An experiment of the fixed half in which each mutant must do something else.
    const TARGETS: &[(&str, &str)] = &[
        ("half-life-30", "m1/ramp-cold"),
        ("tick-one-off", "m1/ramp-cold"),
        ("headroom-1.2", "m1/ramp-cold"),
        ("no-rate-limit", "m1/ramp-slept"),
        ("misfit-at-wakeup", "m1/ramp-cold"),
        ("capacity-not-scaled", "m1/ramp-cold"),
        ("frequency-not-scaled", "m1/ramp-cold"),
        ("util_est-not-held", "m1/light"),
        ("clamps-ignored", "m1/clamp-min"),
        ("migration-forgets", "m1/ramp-cold"),
        ("opp-below", "m1/ramp-cold"),
        ("no-nohz-kick", "m1/ramp-cold"),
        ("no-wakeup-preemption", "laptop4/two-on-one"),
        ("slow-kthread", "hikey960/heavy"),
        ("no-energy-awareness", "m1/ramp-cold"),
        ("rt-waits", "laptop4/starved"),
        ("rt-pressure-ignored", "m1/rt-capacity"),
        ("rt-asks-nothing", "laptop4/rt-beside"),
        ("running_bw-ignored", "m1/deadline"),
        ("cbs-never-throttles", "rpi4/overrun"),
        ("nothing-reclaimed", "rpi4/reclaim"),
        ("no-fair-server", "laptop4/starved"),
        ("rt-never-pushed", "rpi4/rt-push"),
        ("lag-forgotten", "laptop4/two-on-one"),
        ("no-delayed-dequeue", "laptop4/two-on-one"),
        ("slice-doubled", "laptop4/two-on-one"),
        ("group-weights-ignored", "laptop4/group-weights"),
        ("group-util-stays", "laptop4/quota"),
        ("quota-ignored", "laptop4/quota"),
        ("burst-ignored", "m1/burst"),
        ("forks-stay", "laptop4/fork"),
    ];

    /// Mutants that no check exposes so far.
    const BY_EVENTS: &[(Mutant, &str, &str)] = &[
        (Mutant::BalancesAs6_1, "balances-as-6.1", "rpi4/spinners"),
        (Mutant::HotplugIgnored, "hotplug-ignored", "rpi4/hotplug"),
        (Mutant::IdleForgets, "idle-forgets", "m1/ramp-cold"),
    ];

    #[test]
    fn every_mutant_does_something_else_somewhere() {
        let (mut set, mut without) = (set(1), Vec::new());
        set.extend(outside(1));
        let target = |name| TARGETS.iter().find(|t| t.0 == name).expect("a target").1;
        let all = MUTANTS.iter().map(|(mutant, name, _)| (*mutant, *name, target(*name)));
        for (mutant, name, target) in all.chain(BY_EVENTS.iter().copied()) {
            let case = set.iter().find(|c| c.name == target).expect("a case of the set");
            let experiment = case.experiment(Some(KernelRev::V7_3)).expect("an experiment");
            let right = record(&Simulator, &experiment).expect("a run");
            let wrong = Replay { mutant: Some(mutant), ..Replay::default() };
            let wrong = record(&wrong, &experiment).expect("a run");
            if right.events().iter().eq(wrong.events().iter()) {
                without.push((name, target));
            }
        }
        assert!(without.is_empty(), "does nothing to its target: {without:?}");
        assert_eq!(TARGETS.len(), MUTANTS.len());
    }
}
