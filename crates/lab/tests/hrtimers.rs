//! What high-resolution timers cost a Chromebook that plays a video, and what of it user space can save.

use crate::page;
use risetime_analysis::Measured;
use risetime_analysis::compare::Estimate;
use risetime_analysis::metric::Metric;
use risetime_lab::{Request, measure, varied};
use risetime_model::Experiment;
use risetime_sim::Simulator;
use std::fmt::Write;
use std::sync::{Mutex, OnceLock};

/// Holds the block of the page behind `<!-- which -->` to `text`. One at a time: each writes the whole page.
fn shows(which: &str, text: &str) {
    static PAGE: Mutex<()> = Mutex::new(());
    let _alone = PAGE.lock().unwrap_or_else(|e| e.into_inner());
    page::holds("hrtimers.md", &format!("<!-- {which} -->\n```text\n"), "```\n", text);
}

const SECONDS: f64 = 4.0;
const PHASES: u32 = 8;
const METRICS: [&str; 6] =
    ["wakeups", "idle_wakeups", "timer_interrupts", "deep_idle", "energy", "frame.missed"];
const ENERGY: usize = 4;

fn experiment(workload: &str, vary: &[(&str, &str)]) -> Experiment {
    let request = Request {
        seconds: Some(SECONDS),
        noise: Some("machine"),
        ..Request::new(workload, "chromebook2")
    };
    let (_, mut found) = varied(&request, vary, Request::experiments).expect("valid");
    found.remove(0)
}

fn measured(all: &[Experiment], metrics: &[&str]) -> Vec<Measured> {
    let metrics: Vec<Metric> = metrics.iter().copied().map(Metric::new).collect();
    measure(&Simulator, all, PHASES, &metrics, |_| ()).expect("it runs")
}

fn median(of: &Measured, metric: usize) -> f64 {
    of.estimate(metric).expect("there is one").median
}

/// What `of` has more than `than`, in %, from the same start phases, with the interval of 95 %.
fn more(of: &Measured, than: &Measured, metric: usize) -> (f64, f64, f64) {
    let values = |m: &Measured| m.metrics[metric].2.clone();
    let both = values(of).into_iter().zip(values(than));
    let percent = both.filter_map(|(a, b)| Some(100.0 * (a? / b? - 1.0)));
    let e = Estimate::of(percent).expect("there is one");
    let (low, high) = e.interval.expect("from so many start phases");
    (e.median, low, high)
}

/// A case: what it is called, and what it changes.
struct Case {
    name: String,
    vary: Vec<(&'static str, &'static str)>,
}

fn case(name: &str, vary: &[(&'static str, &'static str)]) -> Case {
    Case { name: name.to_string(), vary: vary.to_vec() }
}

/// Each with high-resolution timers and without.
fn on_and_off(workload: &str, cases: &[Case]) -> Vec<[Measured; 2]> {
    let of = |c: &Case, off: bool| {
        let mut vary = c.vary.clone();
        if off {
            vary.push(("highres", "off"));
        }
        experiment(workload, &vary)
    };
    let all: Vec<Experiment> = cases.iter().flat_map(|c| [of(c, false), of(c, true)]).collect();
    let mut done = measured(&all, &METRICS).into_iter();
    cases.iter().map(|_| [(); 2].map(|()| done.next().expect("one each"))).collect()
}

const MACHINES: [(&str, &str); 2] = [("2 CPUs", "chromebook2"), ("4 CPUs", "chromebook4")];

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (cpus, machine) in MACHINES {
        for hz in ["1000", "250"] {
            for governor in ["performance", "schedutil"] {
                all.push(case(
                    &format!("{cpus}, HZ={hz}, {governor}"),
                    &[
                        ("platform", machine),
                        ("hz", hz),
                        ("policy", "linux-6.1"),
                        ("governor", governor),
                    ],
                ));
            }
        }
    }
    all
}

fn playback() -> &'static Vec<[Measured; 2]> {
    static DONE: OnceLock<Vec<[Measured; 2]>> = OnceLock::new();
    DONE.get_or_init(|| on_and_off("video-playback", &cases()))
}

#[test]
fn the_page_shows_what_they_cost_playing_a_video() {
    let mut out = format!(
        "{:<32}{:>11}{:>12}{:>12}{:>9}{:>8}\n",
        "", "interrupts", "idle wakes", "deepest ms", "mJ", "missed"
    );
    for (case, both) in cases().iter().zip(playback()) {
        writeln!(out, "{}", case.name).expect("a text");
        for (name, of) in [("on", &both[0]), ("off", &both[1])] {
            let [_, idle, irq, deep, energy, missed] = [0, 1, 2, 3, 4, 5].map(|m| median(of, m));
            writeln!(
                out,
                "  highres={name:<22}{irq:11.0}{idle:12.0}{deep:12.0}{energy:9.0}{missed:8.1}"
            )
            .expect("a text");
        }
        let (irq, ..) = more(&both[0], &both[1], 2);
        let (idle, ..) = more(&both[0], &both[1], 1);
        let (energy, low, high) = more(&both[0], &both[1], ENERGY);
        writeln!(
            out,
            "  on has more, %{irq:27.1}{idle:12.1}{:12}{energy:9.1}   {low:+.1}…{high:+.1}",
            ""
        )
        .expect("a text");
    }
    shows("playback", &out);
}

/// What was told at OSPM 2023: with high-resolution timers there are more interrupts and more wake-ups of CPUs.
#[test]
fn with_them_there_are_more_interrupts_and_more_wakeups() {
    for (case, both) in cases().iter().zip(playback()) {
        for metric in [1, 2] {
            let (_, low, _) = more(&both[0], &both[1], metric);
            assert!(low > 0.0, "{}: {} {low}", case.name, METRICS[metric]);
        }
    }
}

/// … and that this takes energy: where the frequency does not move, in every start phase.
#[test]
fn at_a_fixed_frequency_they_take_more_energy() {
    for (case, both) in cases().iter().zip(playback()) {
        let (_, low, _) = more(&both[0], &both[1], ENERGY);
        if case.name.contains("performance") {
            assert!(low > 0.0, "{}: {low}", case.name);
        }
    }
}

/// A change after a second acts like a setting from the start: either way, and to low resolution
/// without the tick being stopped.
#[test]
fn a_change_at_run_time_has_to_stop_the_tick() {
    const CHANGES: [(&str, &[(&str, &str)]); 5] = [
        ("on", &[]),
        ("off", &[("highres", "off")]),
        ("on, then off", &[("highres_change_ms", "1000")]),
        (
            "on, then off, tick left",
            &[("highres_change_ms", "1000"), ("highres_change", "keep_tick")],
        ),
        ("off, then on", &[("highres", "off"), ("highres_change_ms", "1000")]),
    ];
    let machine = [
        ("platform", "chromebook4"),
        ("hz", "1000"),
        ("policy", "linux-6.1"),
        ("governor", "performance"),
    ];
    let of = |change: &[(&'static str, &'static str)]| {
        experiment("video-playback", &[&machine[..], change].concat())
    };
    let all: Vec<Experiment> = CHANGES.iter().map(|(_, change)| of(change)).collect();
    let done = measured(&all, &METRICS);
    let mut out = format!(
        "{:<26}{:>11}{:>12}{:>12}{:>9}\n",
        "", "interrupts", "idle wakes", "deepest ms", "mJ"
    );
    for ((name, _), of) in CHANGES.iter().zip(&done) {
        let [_, idle, irq, deep, energy] = [0, 1, 2, 3, 4].map(|m| median(of, m));
        writeln!(out, "{name:<26}{irq:11.0}{idle:12.0}{deep:12.0}{energy:9.0}").expect("a text");
    }
    shows("changed", &out);
    let [on, off, to_off, left, to_on] = [0, 1, 2, 3, 4].map(|i| &done[i]);
    // A quarter of the time under the first, the rest under the other.
    for metric in [1, 2] {
        for (of, first, then) in [(to_off, on, off), (to_on, off, on)] {
            let wanted = (median(first, metric) + 3.0 * median(then, metric)) / 4.0;
            let found = median(of, metric);
            assert!((found / wanted - 1.0).abs() < 0.1, "{}: {found} of {wanted}", METRICS[metric]);
        }
    }
    // No CPU stays in its deepest state for longer than a tick, and all of it is paid for.
    assert!(median(left, ENERGY) > 1.01 * median(to_off, ENERGY));
    assert!(median(left, 1) > 1.2 * median(to_off, 1));
}
