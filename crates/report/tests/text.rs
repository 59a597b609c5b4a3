//! What people see, as snapshots; no line is wider than the terminal; nothing panics, whatever
//! the figures are.

use crate::common;
#[path = "../../../tests/draws.rs"]
mod draws;

use crate::common::{DEFAULT, FAST, Kind, demo_parts, printed, rampup};
use proptest::prelude::*;
use risetime_analysis::*;
use risetime_kernel::units::*;
use risetime_model::settings::{Default as Value, Group, Home, Neutral, Range};
use risetime_model::{Catalogue, Param, Platform, Policy, Settings, Workload};
use risetime_report::page::Doc;
use risetime_report::text::{self, Demo, Style};
use unicode_width::UnicodeWidthStr;

const FASTER_LIMIT: Kind =
    Kind { policy: "linux-6.8+rate_limit_us=70", rate_limit_ms: 0.07, ..DEFAULT };
/// Ends before it has full speed: the debt is a lower bound.
const TOO_SHORT: Kind = Kind { busy_ms: 60, ..DEFAULT };

fn plain(width: usize) -> Style {
    Style { width, color: false, unicode: true }
}

fn demo(style: &Style) -> Doc {
    let ((run, line), (fast, fast_line)) = (rampup(DEFAULT), rampup(FAST));
    let (figures, findings, next) = demo_parts();
    let screen = Demo {
        machine: "Mac mini M1",
        run: (&run, &line),
        fast: Some((&fast, &fast_line)),
        source: "RFC 00/16 of August 2024",
        figures: &figures,
        findings: &findings,
        next: &next,
    };
    text::demo(&screen, style)
}

#[test]
fn the_same_run_again_and_again_is_no_start_phase() {
    let runs: Vec<RunResult> = (0..3).map(|_| rampup(DEFAULT).0).collect();
    let summary = risetime_analysis::phases(&runs);
    let of = |every| text::phases(&runs, &summary, every, &FULL, &plain(80));
    assert!(of(false).lines().next().unwrap().ends_with("· 3 runs"), "{}", of(false));
}

/// What is said of one start phase or one policy alone says of which.
#[test]
fn notes_say_whose_they_are() {
    let mut runs = phase_runs();
    runs.iter_mut().for_each(|r| r.notes = vec!["of all".into()]);
    runs[1].notes.push("of one".into());
    let summary = phases_of(&runs);
    let lines = |page: &str| -> Vec<String> {
        page.lines().filter(|l| l.starts_with("note")).map(String::from).collect()
    };
    let page = text::phases(&runs, &summary, false, &FULL, &plain(80));
    assert_eq!(lines(&page), ["note: of all", "note: phase 7618 µs: of one"]);
    let mut other = phase_runs();
    other.iter_mut().for_each(|r| r.policy = "other".into());
    other[0].notes = vec!["of the first".into()];
    let page =
        text::compare_phases(&[(&other, &phases_of(&other)), (&runs, &summary)], &FULL, &plain(80));
    let own = &runs[0].policy;
    let wanted = [
        "note: other, phase 0 µs: of the first".to_string(),
        format!("note: {own}: of all"),
        format!("note: {own}, phase 7618 µs: of one"),
    ];
    assert_eq!(lines(&page), wanted);
}

/// Medians for each policy, the spread of a single one; of one run what it has.
#[test]
fn jobs_are_told_of_policies_and_start_phases() {
    let one = common::frames();
    let with = |late: u64, p95: f64| {
        let mut run = one.clone();
        run.jobs[0].late = late;
        run.jobs[0].response.as_mut().unwrap().p95 = p95;
        run
    };
    let runs = [with(2, 20.0), with(5, 30.0), with(4, 25.0)];
    let cells = |page: &str, of: &str| -> Vec<String> {
        let at = page.find("\nJobs (").expect("a table");
        let line = page[at..].lines().find(|l| l.trim_start().starts_with(of));
        let line = line.unwrap_or_else(|| panic!("{of} in {page}"));
        line.split_whitespace().map(String::from).collect()
    };
    let page = text::phases(&runs, &phases_of(&runs), false, &FULL, &plain(100));
    let [median, min, max] = ["frame ", "min ", "max "].map(|of| cells(&page, of));
    assert_eq!((&*median[2], &*median[5]), ("15", "25.00"), "{page}");
    assert_eq!((&*min[2], &*min[5], &*max[2], &*max[5]), ("13", "20.00", "16", "30.00"));
    assert!(page.contains("frame: 4 late, 3 merged"), "{page}");
    let mut other = with(9, 50.0);
    other.policy = "other".into();
    let page = text::compare(&[one.clone(), other], &FULL, &plain(100));
    assert_eq!((&*cells(&page, "other")[2], &*cells(&page, "other")[5]), ("20", "50.00"));
    let json: serde_json::Value = {
        let mut out = Vec::new();
        risetime_report::json::phases(&mut out, &mut [], &[("p", &phases_of(&runs))]).unwrap();
        serde_json::from_slice(&out).unwrap()
    };
    let jobs = &json["summary"][0]["jobs"][0];
    assert_eq!((&jobs["name"], &jobs["missed"]["median"]), (&"frame".into(), &15.0.into()));
    assert_eq!(jobs["response"]["p95_ms"]["max"], 30.0);
}

/// The latest ones, with what they were longest with, and how many more there are.
#[test]
fn late_jobs_are_listed() {
    let mut run = common::frames();
    assert_eq!(text::late_jobs(&run, &plain(80)).as_str(), "");
    let missed = |number| Missed {
        comm: "ui".into(),
        number,
        n: 1,
        how: "late",
        release_ms: 10.0,
        due_ms: Some(20.0),
        over_ms: 25.0,
        lateness_ms: Some(5.0),
        longest: Some(("ui".into(), 9.0)),
    };
    run.jobs[0].worst = vec![missed(3), Missed { how: "overdue", longest: None, ..missed(4) }];
    let page = text::late_jobs(&run, &plain(80));
    let rows: Vec<Vec<&str>> = page.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[2], ["3", "10.00", "20.00", "25.00", "5.00", "ui", "9.00"]);
    assert_eq!(rows[3], ["4", "10.00", "20.00", "not", "yet", "5.00", "–"]);
    assert!(page.contains("9 of 11 late jobs more"), "{page}");
    run.jobs[0].worst[1].comm = "ui-1".into();
    let page = text::late_jobs(&run, &plain(80));
    assert!(page.contains("\n  ui 3 ") && page.contains("\n  ui-1 4 "), "{page}");
}

fn phase_runs() -> Vec<RunResult> {
    let phase = |i: u64| {
        let mut run = rampup(Kind {
            phase: Span::from_us(i * 7618),
            busy_ms: 120 + 60 * i as usize,
            ..DEFAULT
        });
        run.0.tasks[0].whole.wait_ms = i as f64 / 10.0;
        run.0
    };
    (0..4).map(phase).collect()
}

fn catalogue() -> Catalogue {
    const GENERAL: [Param; 2] = [
        Param {
            name: "governor",
            doc: "Who chooses the frequency.",
            unit: "",
            range: Range::OneOf(&["schedutil", "performance", "powersave", "userspace"]),
            default: Value::Name("schedutil"),
            home: Home::Policy("scaling_governor"),
        },
        Param {
            name: "start_util",
            doc: "The util that the task starts with, instead of what it has by then.",
            unit: "of 1024",
            range: Range::Int(0, 1024),
            default: Value::Unset,
            home: Home::Simulator(Neutral::None),
        },
    ];
    const SCHEDUTIL: [Param; 1] = [Param {
        name: "rate_limit_us",
        doc: "The shortest time between two changes of frequency that schedutil asks for.",
        unit: "µs",
        range: Range::Int(0, 10_000_000),
        default: Value::Derived(
            "the platform's transition latency, by the kernel's rule",
            |_, _| None,
        ),
        home: Home::Tunable("schedutil/rate_limit_us"),
    }];
    Catalogue {
        groups: vec![
            Group::of(&GENERAL),
            Group { owner: Some(("governor", "schedutil")), ..Group::of(&SCHEDUTIL) },
        ],
    }
}

/// All that a report of runs has.
pub(crate) const FULL: text::View<'static> =
    text::View { about: "", task: None, full: true, why: &[] };
/// View of a page's first screen.
pub(crate) const SCREEN: text::View<'static> = text::View {
    about: "What it is, in a line that a person wrote.",
    task: None,
    full: false,
    why: &[],
};

/// Every text there is.
fn all_texts(style: &Style) -> Vec<String> {
    all_pages(style).into_iter().map(String::from).collect()
}

/// Every page of them.
pub(crate) fn all_pages(style: &Style) -> Vec<Doc> {
    let (run, line) = rampup(DEFAULT);
    let (short, short_line) = rampup(TOO_SHORT);
    let both = [run.clone(), rampup(FASTER_LIMIT).0, rampup(FAST).0, short.clone()];
    let phases = phase_runs();
    let summary = phases_of(&phases);
    let policy = Policy::load("linux-6.8").unwrap();
    let names = [("m1".to_string(), "Apple Mac mini".to_string())];
    vec![
        text::run(&run, &line, &FULL, style),
        text::run(&short, &short_line, &FULL, style),
        text::run(&run, &line, &SCREEN, style),
        text::run(&common::frames(), &line, &SCREEN, style),
        text::compare(&both, &SCREEN, style),
        text::phases(&phases, &summary, false, &SCREEN, style),
        text::run(&common::frames(), &line, &FULL, style),
        text::compare(&both, &FULL, style),
        text::compare(&both[..1], &FULL, style),
        text::phases(&phases, &summary, true, &FULL, style),
        text::compare_phases(&[(&phases, &summary), (&phases[..1], &summary)], &FULL, style),
        demo(style),
        text::findings(&demo_parts().1, style),
        text::names("Platforms", &names, style),
        text::param_table(&catalogue(), style),
        text::platform(&Platform::load("m1").unwrap(), style),
        text::platform(&Platform::load("laptop4").unwrap(), style),
        text::platform(&common::platform(), style),
        text::workload(&common::workload(), style),
        text::policy(&policy, None, style),
        text::policy(&policy, Some(&run.settings), style),
        text::workload(&Workload::load("rampup").unwrap(), style),
    ]
}

fn phases_of(runs: &[RunResult]) -> PhaseSummary {
    risetime_analysis::phases(runs)
}

fn check_width(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{} columns of {width}: {line:?}", line.width());
        assert!(!line.ends_with(' '), "space at the end of {line:?}");
    }
}

#[test]
fn everything_fits_every_width() {
    for width in (40..=200).step_by(5).chain([41, 59, 61, 63, 64, 79, 81]) {
        for text in all_texts(&plain(width)) {
            check_width(&text, width);
        }
    }
    for text in all_texts(&plain(7)) {
        check_width(&text, 40);
    }
    for text in all_texts(&plain(100_000)) {
        check_width(&text, 200);
    }
}

#[test]
fn a_plain_terminal_gets_ascii_without_escapes() {
    for width in [40, 80, 120] {
        for text in all_texts(&Style { width, color: false, unicode: false }) {
            assert!(text.bytes().all(|b| b == b'\n' || (b' '..=b'~').contains(&b)), "{text}");
            check_width(&text, width);
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    for (plain, coloured) in all_texts(&plain(80)).iter().zip(all_texts(&Style {
        width: 80,
        color: true,
        unicode: true,
    })) {
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            stripped += before;
            rest = after.split_once('m').expect("an escape ends with m").1;
        }
        assert_eq!(*plain, stripped + rest);
    }
}

#[test]
fn snapshots_of_what_people_see() {
    for width in [60, 80, 120] {
        let style = plain(width);
        let (run, line) = rampup(DEFAULT);
        insta::assert_snapshot!(format!("run_{width}"), text::run(&run, &line, &FULL, &style));
        insta::assert_snapshot!(
            format!("frames_{width}"),
            text::run(&common::frames(), &line, &FULL, &style)
        );
        let runs = [run, rampup(FASTER_LIMIT).0, rampup(FAST).0, rampup(TOO_SHORT).0];
        insta::assert_snapshot!(format!("compare_{width}"), text::compare(&runs, &FULL, &style));
        let runs = phase_runs();
        let phases = text::phases(&runs, &phases_of(&runs), true, &FULL, &style);
        insta::assert_snapshot!(format!("phases_{width}"), phases);
        insta::assert_snapshot!(format!("demo_{width}"), demo(&style));
        insta::assert_snapshot!(
            format!("findings_{width}"),
            text::findings(&demo_parts().1, &style)
        );
        insta::assert_snapshot!(
            format!("settings_{width}"),
            text::param_table(&catalogue(), &style)
        );
        let machine = text::platform(&common::platform(), &style);
        insta::assert_snapshot!(format!("platform_{width}"), machine);
    }
    let colour = Style { width: 80, color: true, unicode: true };
    insta::assert_snapshot!("demo_80_colour", demo(&colour));
    let ascii = Style { width: 80, color: false, unicode: false };
    insta::assert_snapshot!("demo_80_ascii", demo(&ascii));
    let workload = text::workload(&common::workload(), &plain(80));
    insta::assert_snapshot!("workload_80", workload);
    for width in [60, 100] {
        let style = plain(width);
        let one = text::explain(&[common::explanation(0)], &style);
        insta::assert_snapshot!(format!("explain_{width}"), one);
        let compared = text::compared(&common::comparison(), &style);
        insta::assert_snapshot!(format!("compared_{width}"), compared);
    }
    let four: Vec<_> = (0..4).map(common::explanation).collect();
    insta::assert_snapshot!("explain_100_phases", text::explain(&four, &plain(100)));
    let apart = text::compared(&common::ablation(), &plain(100));
    insta::assert_snapshot!("compared_100_ablation", apart);
    let mut long = common::comparison();
    long.command.push("x".repeat(100));
    let mail = text::mail(&long);
    assert!(mail.is_ascii() && mail.lines().all(|line| line.len() <= 72), "{mail}");
    insta::assert_snapshot!("compared_mail", mail);
    let (short, line) = common::rampup(TOO_SHORT);
    insta::assert_snapshot!("run_80_lower_bound", text::run(&short, &line, &FULL, &plain(80)));
}

#[test]
fn the_first_screen_is_one_screen() {
    let lines = demo(&plain(80)).lines().count();
    assert!(lines <= 50, "{lines} lines");
}

#[test]
fn a_lower_bound_is_never_subtracted_from_a_figure() {
    let runs = [rampup(DEFAULT).0, rampup(TOO_SHORT).0];
    let text = text::compare(&runs, &FULL, &plain(80));
    let lost = text.lines().find(|l| l.starts_with("lost ms")).unwrap();
    assert!(lost.contains('≥'), "{lost}");
    assert!(!lost.contains(['+', '-']), "{lost}");
    let waiting = text.lines().find(|l| l.starts_with("waiting ms")).unwrap();
    assert!(waiting.contains("0.0"), "{waiting}");
}

#[test]
fn figures_of_different_times_are_never_subtracted() {
    let row = |text: &str, label: &str| {
        let line = text.lines().find(|l| l.starts_with(label)).unwrap().to_string();
        line.contains(['+', '-']) || line.matches("0.0").count() > 2
    };
    let (one, mut other) = (rampup(DEFAULT).0, rampup(FAST).0);
    let text = |other: &RunResult| text::compare(&[one.clone(), other.clone()], &FULL, &plain(80));
    let flat = |text: Doc| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = ["lost ms", "waiting ms", "energy, task mJ", "energy, all CPUs mJ"];
    let differ = |text: &str| all.map(|label| row(text, label));
    assert_eq!(differ(&text(&other)), [true; 4]);
    // The same burst, a little later.
    other.tasks[0].burst.as_mut().unwrap().t0_ms += 3.0;
    assert_eq!(differ(&text(&other)), [true; 4]);
    other.tasks[0].burst.as_mut().unwrap().t0_ms += 300.0;
    assert_eq!(differ(&text(&other)), [false, true, true, true]);
    let said = flat(text(&other));
    assert!(said.contains("another burst is the longest"), "{said}");
}

#[test]
fn an_unknown_energy_is_no_zero() {
    let (mut run, line) = rampup(DEFAULT);
    (run.energy_mj, run.tasks[0].whole.energy_mj, run.cpus[0].energy_mj) = (None, None, None);
    let text = text::run(&run, &line, &FULL, &plain(80));
    assert!(text.contains("unknown energy: the platform does not say"), "{text}");
    let both = text::compare(&[run.clone(), run.clone()], &FULL, &plain(80));
    let energy = both.lines().find(|l| l.starts_with("energy, task mJ")).unwrap();
    assert_eq!(energy.matches("unknown").count(), 2, "{energy}");
    let json = printed(std::slice::from_ref(&run), risetime_report::json::runs);
    assert!(json.contains("\"energy_mj\": null") && !json.contains("\"energy_mj\": 0"), "{json}");
    let csv = printed(&[run], |out, told| risetime_report::csv::runs(out, told, &[]));
    assert!(csv.contains(",rampup,energy,,,mJ\n") && csv.contains(",cpu_energy,cpu=0,,mJ\n"));
}

#[test]
fn long_lists_say_what_they_leave_out() {
    let (run, line) = rampup(DEFAULT);
    let all = run.tasks[0].util_residency.len();
    assert!(all > 100);
    let text = text::run(&run, &line, &FULL, &plain(80));
    assert!(
        text.contains(&format!("of {all} util values more; all of them: --format json or csv"))
    );
}

#[test]
fn levels_reached_together_stand_together() {
    let (run, line) = rampup(TOO_SHORT);
    let text = text::run(&run, &line, &FULL, &plain(80));
    assert!(text.contains("CPU0  MHz 600: 0.0, 972: 41.0, 1332–2064: never\n"), "{text}");
    assert!(!text.contains("CPU4  MHz"), "what was never reached has no row: {text}");
    let mut big = run.clone();
    let what = Level::Freq { cpu: CpuId(137), freq: KHz(1_500_000) };
    big.tasks[0].reach.push(Reach { what, after_ms: Some(50.0) });
    let text = text::run(&big, &line, &FULL, &plain(80));
    assert!(text.contains("  CPU0   MHz 600: 0.0, 972"), "{text}");
    assert!(text.contains("  CPU137 MHz 1500: 50.0\n"), "{text}");
}

/// A result in which nothing happened, in several ways.
fn empty_results() -> Vec<(RunResult, Timeline)> {
    let (full, line) = rampup(TOO_SHORT);
    let none = RunResult { tasks: vec![], cpus: vec![], notes: vec![], ..full.clone() };
    let mut never = full.clone();
    never.tasks[0].burst = None;
    never.tasks[0].lost.clear();
    never.tasks[0].reach.iter_mut().for_each(|r| r.after_ms = None);
    let mut bare = full.clone();
    let task = &mut bare.tasks[0];
    task.reach.clear();
    task.spent.running.clear();
    task.util_residency.clear();
    task.lost.clear();
    bare.cpus.clear();
    let one = Timeline {
        util: line.util[..1].to_vec(),
        speed: line.speed[..1].to_vec(),
        freq: vec![(CpuId(0), line.freq[0].1[..1].to_vec())],
        cpu: line.cpu[..1].to_vec(),
        latency: vec![],
        jobs: vec![],
    };
    let mut instant = full.clone();
    let burst = instant.tasks[0].burst.as_mut().unwrap();
    burst.t1_ms = burst.t0_ms;
    burst.end_ms = burst.t0_ms;
    vec![
        (none, Timeline::default()),
        (never, line.clone()),
        (bare, Timeline::default()),
        (full, one),
        (instant, line),
    ]
}

#[test]
fn nothing_to_report_is_reported() {
    for (run, line) in empty_results() {
        let text = check_all(&run, &line, &plain(60));
        assert!(text.len() > 40, "{text}");
    }
    for style in [plain(60), plain(80)] {
        check_width(&text::compare(&[], &FULL, &style), 80);
        check_width(&text::compare_phases(&[], &FULL, &style), 80);
        check_width(&text::phases(&[], &PhaseSummary::default(), true, &FULL, &style), 80);
        check_width(&text::findings(&[], &style), 80);
        check_width(&text::param_table(&Catalogue::default(), &style), 80);
        let mut policy = Policy::load("linux-6.8").unwrap();
        policy.set.clear();
        check_width(&text::policy(&policy, Some(&Settings::default()), &style), 80);
    }
}

/// Every report of a run; panics are failures. Returns the run's own text.
fn check_all(run: &RunResult, line: &Timeline, style: &Style) -> String {
    let text = text::run(run, line, &FULL, style).to_string();
    let runs = [run.clone(), rampup(TOO_SHORT).0];
    let summary = phases_of(&runs);
    let screen = Demo {
        machine: "x",
        run: (run, line),
        fast: None,
        source: "y",
        figures: &[],
        findings: &[],
        next: &[],
    };
    let texts = [
        text.clone(),
        text::compare(&runs, &FULL, style).into(),
        text::phases(&runs, &summary, true, &FULL, style).into(),
        text::compare_phases(&[(&runs, &summary)], &FULL, style).into(),
        text::demo(&screen, style).into(),
    ];
    for t in texts {
        check_width(&t, style.width.clamp(40, 200));
        assert!(t.chars().all(|c| c == '\n' || !c.is_control()), "{t:?}");
    }
    serde_json::from_str::<serde_json::Value>(&printed(&runs, risetime_report::json::runs))
        .unwrap();
    printed(&runs, |out, told| risetime_report::csv::runs(out, told, &[]));
    text
}

fn any_ms() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..3000.0f64,
        1 => proptest::num::f64::ANY,
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
    ]
}

fn any_cpu() -> impl Strategy<Value = CpuId> {
    prop_oneof![(0..9u32).prop_map(CpuId), Just(CpuId(u32::MAX))]
}

fn any_freq() -> impl Strategy<Value = KHz> {
    prop_oneof![(0..4_000_000u64).prop_map(KHz), Just(KHz(u64::MAX))]
}

fn any_burst() -> impl Strategy<Value = Burst> {
    let ended = prop_oneof![
        Just(EndedBy::FullSpeed),
        Just(EndedBy::Sleep),
        Just(EndedBy::Exit),
        Just(EndedBy::RunEnd)
    ];
    let two = (any_ms(), any_ms());
    (any_ms(), any_ms(), any_ms(), ended, any_ms(), any_ms(), any_ms(), two).prop_map(
        |(t0_ms, t1_ms, end_ms, ended_by, running_ms, debt_ms, debt_capped_ms, two)| Burst {
            t0_ms,
            t1_ms,
            end_ms,
            ended_by,
            running_ms,
            took_ms: two.0,
            longer_ms: two.1,
            debt_ms,
            debt_capped_ms,
            debt_affinity_ms: 0.0,
        },
    )
}

fn any_line() -> impl Strategy<Value = Timeline> {
    let some = 0..12usize;
    let points = proptest::collection::vec((any_ms(), any_freq()), some.clone());
    (
        proptest::collection::vec((any_ms(), any::<u64>()), some.clone()),
        proptest::collection::vec((any_ms(), any_ms()), some.clone()),
        proptest::collection::vec((any_cpu(), points), 0..4),
        proptest::collection::vec((any_ms(), proptest::option::of(any_cpu())), some),
    )
        .prop_map(|(util, speed, freq, cpu)| Timeline {
            util,
            speed,
            freq,
            cpu,
            latency: vec![],
            jobs: vec![],
        })
}

fn any_run() -> impl Strategy<Value = RunResult> {
    let running =
        (any_cpu(), any_freq(), any_ms()).prop_map(|(cpu, freq, ms)| RunningAt { cpu, freq, ms });
    let reach = (any_cpu(), any_freq(), proptest::option::of(any_ms()), 0..3u8).prop_map(
        |(cpu, freq, after_ms, kind)| {
            let what = match kind {
                0 => Level::Util(freq.0),
                1 => Level::Capacity(freq.0),
                _ => Level::Freq { cpu, freq },
            };
            Reach { what, after_ms }
        },
    );
    let parts = (
        proptest::option::of(any_burst()),
        proptest::collection::vec(running, 0..6),
        proptest::collection::vec(reach, 0..6),
        proptest::collection::vec((any::<u64>(), any_ms()), 0..40),
        proptest::collection::vec((any_ms(), any_cpu(), any_cpu()), 0..14),
        proptest::collection::vec(any_ms(), 0..3),
        any_ms(),
        "\\PC{0,30}|[\\x00-\\x1f\\x7f-\\u{9f}漢é]{0,30}",
        0..4usize,
    );
    parts.prop_map(|(burst, running, reach, util, moves, lost, ms, name, tasks)| {
        let mut run = rampup(TOO_SHORT).0;
        let task = &mut run.tasks[0];
        task.comm.clone_from(&name);
        task.burst = burst;
        task.spent.running = running;
        task.reach = reach;
        task.util_residency =
            util.into_iter().map(|(util, ms)| UtilResidency { util, ms }).collect();
        let moved = |(at_ms, from, to)| Migration { at_ms, from, to, why: "misfit" };
        task.migrations = moves.into_iter().map(moved).collect();
        task.lost = lost.into_iter().map(|ms| Lost { state: "opp_climb", ms }).collect();
        task.whole.wait_ms = ms;
        task.perf_10_90_ms = Some(ms);
        run.energy_mj = Some(ms);
        run.end_ms = ms;
        run.policy = name.repeat(4);
        run.notes = vec![name];
        run.tasks = vec![run.tasks[0].clone(); tasks];
        run
    })
}

proptest! {
    #![proptest_config(draws::config(200))]
    #[test]
    fn whatever_the_figures_are(run in any_run(), line in any_line(), width in 0..220usize) {
        check_all(&run, &line, &plain(width));
    }
}

/// The page of a machine has columns for the entry, the longest wakeup and who has to be asleep where one of its states has them.
#[test]
fn a_machine_s_page_tells_the_way_into_an_idle_state() {
    let rows = |platform: &Platform| {
        let page = text::platform(platform, &plain(100));
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let lines = page.lines().skip_while(|line| !line.contains("idle state"));
        lines.take(3).map(words).collect::<Vec<_>>()
    };
    let mut platform = common::platform();
    assert_eq!(rows(&platform)[0].join(" "), "idle state exit µs residency µs mW");
    let mut deep = platform.domains[0].idle[0].clone();
    deep.name = "cluster".into();
    (deep.entry_latency, deep.exit_latency) = (Span::from_us(500), Span::from_us(1600));
    deep.together = Some(risetime_model::platform::Together::Domain);
    platform.domains[0].idle.push(deep);
    let [head, wfi, cluster] = &rows(&platform)[..] else { panic!("three lines") };
    let wanted = "idle state entry µs exit µs wakeup µs residency µs mW asleep with";
    assert_eq!(head.join(" "), wanted);
    assert_eq!(wfi[..5].join(" "), "wfi 0.0 1.0 1.0 10.0");
    assert_eq!(cluster.join(" "), "cluster 500.0 1600.0 2100.0 10.0 6.0 its domain");
}
