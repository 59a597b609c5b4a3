//! What `risetime verify` prints, as snapshots; no line is wider than the terminal.

use risetime_analysis::Kind;
use risetime_analysis::verify::step::{
    Around, Cause, Decision, Difference, Moves, Row, State, Stepped,
};
use risetime_analysis::verify::{
    Caught, Check, Comparison, Curve, Equivalence, Figure, Judged, Mode, Phase, Phased, Side,
    Stretch, Verdict,
};
use risetime_kernel::units::{CpuId, Instant, KHz, Span};
use risetime_report::json;
use risetime_report::text::{self, Style, Verified};
use unicode_width::UnicodeWidthStr;

fn check(name: &'static str, measured: f64, band: f64, unit: &'static str, holds: bool) -> Check {
    let why =
        format!("largest at 972 MHz: {measured:.1} against {band}; one tick, since ticks decide");
    Check { name, measured, band, unit, holds, why }
}

/// A comparison in which so many of six checks hold.
fn comparison(mode: Mode, held: usize) -> Comparison {
    let names =
        ["util_at_tick", "opp_sequence", "opp_times", "migrations", "time_on_cpu", "waiting"];
    let units = ["%", "OPPs", "ms", "ms", "ms", "ms"];
    let one = |i: usize| {
        let measured = if i == 3 { f64::INFINITY } else { 97.25 / (i + 1) as f64 };
        check(names[i], measured, 4.0, units[i], i < held)
    };
    Comparison { mode, checks: (0..6).map(one).collect() }
}

/// A curve that climbs by `step` a tick.
fn curve(step: u64) -> Curve {
    let util = (0..40).map(|i| (Span::from_ms(4 * i), (step * i).min(1010))).collect();
    let stretch = |from: u64, to: u64, domain: u32, khz: u64| Stretch {
        from: Span::from_ms(from),
        to: Span::from_ms(to),
        ran: Span::from_ms(to - from),
        domain: CpuId(domain),
        freq: KHz(khz),
    };
    let ran = vec![stretch(0, 60, 0, 600_000), stretch(60, 160, 4, 3_204_000)];
    Curve { util, ran, length: Span::from_ms(160), ..Curve::default() }
}

fn phased(candidate: u64) -> Phased {
    let phase = |k: u64, reference: Option<u64>, candidate: Option<u64>| Phase {
        phase: Span(k * 30_472_000),
        reference: reference.map(Span::from_ms),
        candidate: candidate.map(Span::from_ms),
        comparison: comparison(Mode::Free, 6 - k as usize),
    };
    let phases = vec![
        phase(0, Some(170), Some(candidate)),
        phase(1, Some(172), None),
        phase(2, Some(168), Some(166)),
    ];
    Phased { phases, wanted: 4 }
}

/// Every page in this width.
fn pages(width: usize) -> String {
    let style = Style { width, color: false, unicode: true };
    let reference = "Linux 7.3.4 in a virtual machine";
    let one = text::verify(
        &Verified {
            experiment: "rampup on m1 under linux-7.3",
            reference,
            comparison: &comparison(Mode::Free, 5),
            wanted: 4,
            was: &curve(26),
            simulated: &curve(27),
            unread: &["balance due times of the domains".to_string()],
        },
        &style,
    );
    let judged = |name: &str, given, free| Judged {
        name: name.into(),
        settings: "+rate_limit_us=10000".into(),
        wanted: 4,
        given: (0..3).map(|_| comparison(Mode::Given, given)).collect(),
        free: (0..3usize).map(|k| comparison(Mode::Free, free + k - 1)).collect(),
    };
    let set = [judged("m1/ramp-cold", 6, 5), judged("laptop4/drawn-10", 5, 2)];
    let caught = |by: bool| Caught {
        name: if by { "half-life-30" } else { "no-nohz-kick" },
        about: "PELT forgets half in 30 periods, not in 32",
        by: by.then(|| {
            ("m1/ramp-cold".to_string(), Mode::Free, check("opp_times", 8.0, 4.0, "ms", false))
        }),
        failed: usize::from(by) * 12,
    };
    [
        one,
        text::verify_phases("rampup on m1", reference, Mode::Free, &phased(171), &style),
        text::verify_set(reference, &set, &[("m1/fork", "RCU keeps the tick")], false, &style),
        text::mutants(reference, &[caught(true), caught(false)], &style),
    ]
    .map(String::from)
    .join("\n────\n")
}

#[test]
fn the_pages_of_verify() {
    for width in [60, 80, 120] {
        let text = pages(width);
        for line in text.lines() {
            assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
        }
        insta::assert_snapshot!(format!("verify_{width}"), text);
    }
}

#[test]
fn the_medians_decide_and_so_does_each_phase() {
    let text = json::verify_phases("rampup on m1", "7.3.4", Mode::Free, &phased(171));
    insta::assert_snapshot!("verify_phases_json", text);
    let holds = |p: &Phased| {
        json::verify_phases("r", "7", Mode::Free, p).contains("\"holds\": true")
            || json::verify_phases("r", "7", Mode::Free, p).contains("\"holds\":true")
    };
    assert!(holds(&phased(171)));
    assert!(!holds(&Phased { wanted: 5, ..phased(171) }), "one phase holds four");
    assert!(!holds(&phased(190)), "the medians are far apart");
}

#[test]
fn a_program_learns_what_is_outside_the_set() {
    let outside = [("m1/fork", "RCU keeps the tick"), ("m1/lock", "a lock is passed on at once")];
    insta::assert_snapshot!("verify_set_json", json::verify_set("7.3.4", &[], &outside, true));
}

fn figure(kind: Kind, of: &str, was: f64, is: f64, verdict: Verdict) -> Figure {
    let side = |mean: f64| Side { mean, min: 0.9 * mean, max: 1.1 * mean };
    let (difference, margin) = (is - was, 0.05 * was);
    Figure {
        kind,
        of: of.into(),
        pairs: 16,
        alone: u32::from(verdict == Verdict::Undecided),
        reference: side(was),
        candidate: side(is),
        difference,
        interval: Some((difference - 0.01 * was, difference + 0.01 * was)),
        margin,
        verdict,
    }
}

fn equivalences() -> [Equivalence; 2] {
    use Verdict::{Different, Equivalent, Undecided};
    let figures = [
        figure(Kind::ActivationP50, "render", 0.76, 2.3, Different),
        figure(Kind::WakeupP99, "render", 11.2, 11.1, Equivalent),
        figure(Kind::Running, "render", 250.0, 251.0, Equivalent),
        figure(Kind::Cluster, "capacity 512", 250.0, 255.0, Undecided),
        figure(Kind::Frequency, "capacity 1024", 1804.8, 1700.0, Different),
        figure(Kind::Energy, "", 1057.0, 1040.0, Equivalent),
        Figure {
            pairs: 0,
            alone: 16,
            interval: None,
            ..figure(Kind::Migrations, "", 0.0, 0.0, Different)
        },
    ];
    let own = |name: &str, n: usize| Equivalence {
        name: name.into(),
        phases: 16,
        figures: figures[..n].to_vec(),
    };
    [own("pixel6/frames", 7), own("m1/light", 3)]
}

#[test]
fn the_pages_of_a_spread() {
    let reference = "Linux 7.3.4 in a virtual machine";
    let all = equivalences();
    for width in [60, 80, 120] {
        let style = Style { width, color: false, unicode: true };
        let text = [
            text::verify_spread(reference, &all[0], &style),
            text::verify_spread_set(reference, &all, &style),
            text::verify_spread_set(reference, &[], &style),
        ]
        .map(String::from)
        .join("\n────\n");
        for line in text.lines() {
            assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
        }
        insta::assert_snapshot!(format!("spread_{width}"), text);
    }
}

#[test]
fn every_key_of_a_spread_is_documented() {
    fn keys(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => map.iter().for_each(|(key, v)| {
                into.push(key.clone());
                keys(v, into);
            }),
            serde_json::Value::Array(list) => list.iter().for_each(|v| keys(v, into)),
            _ => {}
        }
    }
    let all = equivalences();
    let one = json::verify_spread("7.3.4", &all[0]);
    insta::assert_snapshot!("spread_json", one);
    let set = json::verify_spread_set("7.3.4", &all);
    let document = include_str!("../../../docs/json.md");
    let section = document.split("`--mode spread` gives").nth(1).expect("a section");
    let mut found = Vec::new();
    for text in [&one, &set] {
        keys(&serde_json::from_str(text).expect("JSON"), &mut found);
    }
    for key in found {
        let there =
            section.contains(&format!("`{key}`")) || section.contains(&format!("\"{key}\""));
        assert!(there, "{key} is not documented");
    }
    assert!(one.contains("\"simulated\": null") || one.contains("\"simulated\":null"));
}

/// Two experiments, of which one has decisions that differ.
fn stepped() -> Stepped {
    let row = |real, agree| Row { asked: 200, comparable: 190, real, agree, trivial: 40 };
    let difference = |ms: u64, cause| Difference {
        experiment: "chain".into(),
        at: Instant(ms * 1_000_000),
        decision: Decision::Wakeup,
        about: "ui".into(),
        own: "CPU4".into(),
        given: "CPU2".into(),
        cause,
        reason: "energy".into(),
        theirs: "the previous CPU".into(),
    };
    let around = Around { at: Instant(11_990_000), what: "Waking { task: T0, by: CPU1 }".into() };
    let state = |what, equal, most| {
        let near = equal + 1;
        State { what, compared: 100, equal, near, p90: 2, most }
    };
    Stepped {
        rows: [(Decision::Wakeup, row(120, 117)), (Decision::Pick, row(80, 60))].into(),
        moves: Moves { given: 10, recalled: 9, own: 20, precise: 9 },
        states: vec![
            state("task util_avg", 98, 3),
            state("running_bw", 40, 83_876),
            state("vruntime", 50, 12_000),
        ],
        differences: vec![
            difference(12, Cause::State),
            difference(30, Cause::State),
            difference(42, Cause::Reason),
        ],
        around: vec![around],
        lost: 3,
    }
}

#[test]
fn decisions_that_differ_are_grouped_and_the_first_is_shown_with_what_happened() {
    let all = stepped();
    let reference = "Linux 7.3.4 in a virtual machine";
    for width in [60, 100] {
        let style = Style { width, color: false, unicode: true };
        let pages = [
            text::verify_step("2 experiments", reference, &all, &style),
            text::verify_first(reference, &all, &style),
            text::verify_first(reference, &Stepped::default(), &style),
        ];
        let text = pages.map(String::from).join("\n────\n");
        for line in text.lines() {
            assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
        }
        insta::assert_snapshot!(format!("step_{width}"), text);
    }
    let found = json::verify_step("2 experiments", "7.3.4", &all);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["differences"].as_array().unwrap().len(), 3);
    assert_eq!(found["differences"][2]["cause"], "reason");
    assert_eq!(found["holds"], false);
}
