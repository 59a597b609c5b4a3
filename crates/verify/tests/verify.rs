//! The yardstick held against itself: a simulation as the reference of another one that starts
//! elsewhere and is aligned once.

use risetime_analysis::verify::Mode;
use risetime_kernel::units::Span;
use risetime_lab::{Request, phase_spans, record};
use risetime_model::Experiment;
use risetime_sim::Simulator;
use risetime_verify::verify;

fn experiment(workload: &str, policy: &str, phase: Span) -> Experiment {
    let request = Request {
        policies: vec![policy.into()],
        seconds: Some(2.0),
        phase,
        ..Request::new(workload, "m1")
    };
    request.experiments().unwrap().remove(0)
}

/// A phase that leaves room for what happened before the start of the reference.
const LATER: Span = Span::from_ms(100);

fn check(workload: &str, policy: &str, reference: Span, candidate: Span, mode: Mode) {
    let trace = record(&Simulator, &experiment(workload, policy, reference)).unwrap();
    let found = verify(&experiment(workload, policy, candidate), &trace, mode).unwrap();
    let failed: Vec<_> = found.comparison.checks.iter().filter(|c| !c.holds).collect();
    let what = format!("{workload} under {policy}, {}, {reference} by {candidate}", mode.as_str());
    assert!(failed.is_empty(), "{what}: {failed:#?}\nnot read: {:?}", found.unread);
}

const POLICIES: [&str; 4] =
    ["linux-6.8", "mainline", "mainline+uclamp_min=1024", "mainline+uclamp_max=0"];

#[test]
fn given_its_decisions_a_simulation_repeats_one_that_started_in_another_phase() {
    for phase in phase_spans(Span::from_ms(1), 8) {
        let phase = Span(phase.0 + 10_000_000);
        POLICIES.iter().for_each(|policy| check("rampup", policy, phase, LATER, Mode::Given));
        check("periodic", "mainline", phase, LATER, Mode::Given);
        // Not `spinners`: a burst that climbs from the first ms on has so few ticks below util
        // 1000 that the one in fifty at which a period's end and a tick fall within the unread
        // microsecond already breaks the band.
    }
}

#[test]
fn free_it_repeats_one_of_the_same_phase() {
    for phase in phase_spans(Span::from_ms(1), 8) {
        let phase = Span(LATER.0 + phase.0);
        POLICIES.iter().for_each(|policy| check("rampup", policy, phase, phase, Mode::Free));
        ["periodic", "spinners"]
            .iter()
            .for_each(|w| check(w, "mainline", phase, phase, Mode::Free));
    }
}
