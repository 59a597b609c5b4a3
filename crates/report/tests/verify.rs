//! What `risetime verify` prints, as snapshots; no line is wider than the terminal.

use risetime_analysis::verify::{
    Caught, Check, Comparison, Curve, Judged, Mode, Phase, Phased, Stretch,
};
use risetime_kernel::units::{CpuId, KHz, Span};
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
