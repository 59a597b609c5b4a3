//! Comparisons over start states: the same pairs, the same bytes, and a series taken apart.

use risetime_kernel::units::Span;
use risetime_lab::{Grid, Request, ablation, compare, run};
use risetime_model::settings::Value;
use risetime_sim::Simulator;

fn request(policies: &[&str]) -> Request {
    Request {
        policies: policies.iter().map(ToString::to_string).collect(),
        seconds: Some(1.5),
        ..Request::new("rampup", "m1")
    }
}

fn grid() -> Grid {
    Grid { phases: 4, start_utils: vec![0, 200] }
}

#[test]
fn every_sample_is_a_run_from_its_start_state() {
    let experiments = request(&["linux-6.11", "rfc-v1"]).experiments().unwrap();
    let mut heard = 0;
    let c = compare(&experiments, &grid(), &[], |done, all| {
        assert!(done <= all && all == 16);
        heard += 1;
    })
    .unwrap();
    assert_eq!((heard, c.states.len(), c.policies.len()), (16, 8, 2));
    assert!(c.patches.is_empty() && c.power_known);
    let states: Vec<_> = c.states.iter().map(|s| (s.phase.0 / 1000, s.util.unwrap())).collect();
    assert_eq!(states[..4], [(0, 0), (0, 200), (7618, 0), (7618, 200)]);
    for (e, p) in experiments.iter().zip(&c.policies) {
        // One of them by hand.
        let phase = Span::from_us(7618);
        let mut by_hand = e.later(phase);
        by_hand.settings.0.insert("start_util".into(), Value::Int(200));
        let result = run(&Simulator, &by_hand, Default::default(), None).unwrap().result;
        assert_eq!(p.samples[3].debt_ms, result.tasks[0].burst.unwrap().debt_ms);
        assert_eq!(p.samples[3].energy_mj, result.energy_mj);
        // Still busy at the end: what was lost would cost 4.95 W.
        let missing = p.samples[3].same_work_mj.unwrap() - p.samples[3].energy_mj.unwrap();
        assert!((missing / p.samples[3].debt_ms - 4.951).abs() < 0.001, "{missing}");
    }
    let again = compare(&experiments, &grid(), &[], |_, _| {}).unwrap();
    assert_eq!(c, again);
}

#[test]
fn a_policy_is_no_better_than_itself() {
    let experiments = request(&["rfc-v1", "rfc-v1"]).experiments().unwrap();
    let c = compare(&experiments, &grid(), &[], |_, _| {}).unwrap();
    let d = c.policies[1].against_first.unwrap();
    let zero = d.debt_ms.unwrap();
    assert_eq!((zero.median, zero.interval, zero.differs()), (0.0, Some((0.0, 0.0)), false));
    assert!(c.policies.iter().all(|p| p.efficient));
}

#[test]
fn a_series_is_taken_apart_by_what_its_file_sets() {
    let parts = ablation("rfc-v1", &[("rate_limit_us".into(), Value::Int(500))]).unwrap();
    assert_eq!(parts.switches.len(), 12, "{:?}", parts.switches);
    assert_eq!(parts.policies.len(), 2 + 2 * 12);
    assert_eq!(parts.policies[0].name, "linux-6.11", "the built-in that is its base");
    let limited = |p: &risetime_model::Policy| p.set.get("rate_limit_us") == Some(&Value::Int(500));
    assert!(parts.policies.iter().all(limited));
    for (switch, pair) in parts.switches.iter().zip(parts.policies[2..].chunks(2)) {
        let key = switch.split('=').next().unwrap();
        assert!(!pair[0].set.contains_key(key) && pair[1].set.contains_key(key), "{switch}");
        assert_eq!(pair[0].set.len() + 1, parts.policies[1].set.len(), "{switch}");
        assert_eq!(pair[1].set.len(), parts.policies[0].set.len() + 1, "{switch}");
    }
    // One whose base is no built-in policy, one with a change, and one with nothing to take apart.
    assert_eq!(ablation("rfc-v2", &[]).unwrap().policies[0].name, "rfc-v2 without its patches");
    let one = ablation("linux-6.8+rate_limit_us=70", &[]).unwrap();
    assert_eq!((one.switches, one.policies.len()), (vec!["rate_limit_us=70".into()], 4));
    let error = ablation("linux-6.8", &[]).unwrap_err().to_string();
    assert!(error.contains("sets nothing that could be left out"), "{error}");
}

#[test]
fn patch_8_buys_most_of_rfc_v1_and_patch_5_costs() {
    let parts = ablation("rfc-v1", &[]).unwrap();
    let experiments = request(&[]).experiments_of(|| Ok(parts.policies)).unwrap();
    let c = compare(&experiments, &grid(), &parts.switches, |_, _| {}).unwrap();
    let of = |key: &str| c.patches.iter().find(|p| p.setting.starts_with(key)).unwrap();
    let (running, headroom) = (of("util_est_running"), of("dvfs_headroom"));
    for d in [running.last, running.alone] {
        let (debt, energy) = (d.debt_ms.unwrap(), d.same_work_mj.unwrap());
        assert!(debt.median < -20.0 && debt.differs() && energy.median > 0.0, "{d:?}");
    }
    for d in [headroom.last, headroom.alone] {
        let (debt, energy) = (d.debt_ms.unwrap(), d.same_work_mj.unwrap());
        assert!(debt.median > 10.0 && debt.differs() && energy.median < 0.0, "{d:?}");
    }
    // Tracked, and nobody looks.
    assert!(!of("waiting_avg").acts && running.acts && headroom.acts);
}
