//! "Coherent response time": util_est climbs by ticks alone, whatever the CPU and its frequency.

use crate::page;
use risetime_analysis::study::Reproduced;
use risetime_kernel::approximate::approximate_util_avg;
use risetime_kernel::pelt::Decay;
use risetime_kernel::units::Util;
use risetime_model::Study;
use risetime_report::text::{self, Style};
use risetime_study::{STUDY_PHASES, check_study, reproduce};
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;

fn coherent() -> &'static Reproduced {
    static DONE: OnceLock<Reproduced> = OnceLock::new();
    DONE.get_or_init(|| {
        let study = Study::load("coherent-response").expect("built in");
        reproduce(&study, STUDY_PHASES, |_| ()).expect("runs")
    })
}

fn measured(id: &str) -> f64 {
    let row = coherent().rows().find(|r| r.id == id).unwrap_or_else(|| panic!("no row {id}"));
    row.measured.unwrap_or_else(|| panic!("{id} was never"))
}

#[test]
fn the_page_of_the_study_shows_what_it_prints() {
    let style = Style { width: 80, color: false, unicode: true };
    let wanted = text::study(coherent(), &style);
    page::holds("studies/coherent-response.md", "```text\n", "```\n", &wanted);
}

/// util_est after 0, 1, 2 … ticks of `us`, up to where it stays.
fn climb(us: u64) -> Vec<u64> {
    let mut all = vec![0];
    loop {
        let last = all[all.len() - 1];
        let next = approximate_util_avg(&Decay::MS32, Util(last), us).0;
        if next == last {
            return all;
        }
        all.push(next);
    }
}

fn ticks(climb: &[u64], util: u64) -> usize {
    climb.iter().position(|u| *u >= util).expect("below the end")
}

#[test]
fn what_the_study_calls_published_is_the_arithmetic_of_the_series() {
    let (one, four) = (climb(1000), climb(4000));
    assert_eq!((ticks(&one, 900), one.last(), four.last()), (110, Some(&977), Some(&1012)));
    for row in coherent().rows() {
        let all = if row.id.starts_with("tick4ms/") { &four } else { &one };
        let wanted = match row.list.split(' ').next() {
            Some("est_after") => *all.last().expect("not empty") as f64,
            Some("est_wait") => 0.0,
            _ => ticks(all, row.at.parse().expect("a util")) as f64,
        };
        assert_eq!(row.published, wanted, "{}", row.id);
    }
}

#[test]
fn it_holds_but_for_a_move_and_the_first_steps_of_slow_clocks() {
    let done = coherent();
    let missed: Vec<&str> =
        done.rows().filter(|r| r.holds == Some(false)).map(|r| r.id.as_str()).collect();
    assert_eq!(
        missed,
        [
            "little160/speed_ticks/100",
            "little200/speed_ticks/100",
            "little300/speed_ticks/100",
            "little300/speed_ticks/200",
            "tick4ms/est_ticks/500",
        ]
    );
    for row in done.rows().filter(|r| r.holds != Some(true)) {
        assert!(!row.note.is_empty(), "{} says nothing", row.id);
    }
    // What has nothing to tolerate: in every one of the start phases.
    let climbs: Vec<_> =
        done.rows().filter(|r| r.list == "est_ticks" && r.holds == Some(true)).collect();
    assert!(climbs.len() >= 89, "{}", climbs.len());
    for row in climbs {
        assert_eq!((row.measured, row.tolerance.total()), (Some(row.published), 0.0), "{}", row.id);
    }
}

#[test]
fn the_wait_is_a_pelt_period_and_mainline_depends_on_the_cpu() {
    // 1.024 ms · 1024 / capacity · 2064 / 600, and up to a tick.
    for (figure, period) in [("little459", 7.86), ("little160", 22.5), ("little100", 36.1)] {
        let wait = measured(&format!("{figure}/est_wait/rfc-v1-p09/0"));
        assert!((wait - period - 0.75).abs() <= 1.0, "{figure}: {wait}");
    }
    let mainline =
        |figure: &str, util: u32| measured(&format!("{figure}/avg_ticks/linux-6.11/{util}"));
    assert!(mainline("little100", 100) > 7.0 * mainline("from2064", 100));
    assert!(mainline("from2064", 900) > 110.0, "nowhere faster");
}

/// A figure of its own for each drawn machine, state and multiplier.
fn drawn(n: u64, policy: &str, workload: &str) -> (String, Vec<(String, u64)>) {
    let mut text = String::from("schema = 1\nname = \"drawn\"\nsource = \"none\"\n");
    let (mut seed, mut all) = (12u64, Vec::new());
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for i in 0..n {
        let (little, multiplier) = (100 + draw(361), 1 + draw(2));
        // Half a period takes more than a tick even at full speed. Where less of it was left, the
        // climb begins in the tick that the burst does, with what the task ran in that.
        // Others on the CPU, from nothing to a full one: every start OPP.
        let (others, contrib) = (draw(little), draw(512));
        let up_to = climb(1000 * multiplier);
        let _ = write!(
            text,
            "[[figure]]\nid = \"d{i}\"\nplace = \"p\"\nplatform = \"m1\"\nworkload = \"{workload}\"\n\
             policy = \"{policy}+rampup_multiplier={multiplier}\"\nlittle = {little}\nms = 1400\n\
             set = {{ start_period_contrib = {contrib}, background_util = {others}, \
             \"background_util.policy4\" = 0 }}\n[[figure.list]]\nquantity = \"est_ticks\"\nrows = ["
        );
        for util in (100..=900).step_by(100) {
            let _ = write!(text, "[{util}, {}], ", ticks(&up_to, util));
            let what =
                format!("capacity {little}, others {others}, contrib {contrib}, ×{multiplier}");
            all.push((what, util));
        }
        text.push_str("]\n");
    }
    (text, all)
}

#[test]
fn every_little_cpu_from_every_frequency_climbs_in_the_same_ticks() {
    let free = include_str!("../../../workloads/rampup.json");
    let pinned = free.replace("\"rampup\": {", "\"rampup\": { \"cpus\": [0],");
    assert_ne!(free, pinned);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pinned.json");
    std::fs::write(&file, pinned).expect("written");
    let file = file.to_str().expect("UTF-8");
    // A move to the big CPU in the middle of a tick costs that tick.
    for (workload, late) in [(file, 0.0), ("rampup", 1.0)] {
        let (text, what) = drawn(40, "rfc-v1", workload);
        let study = Study::parse(&text, "drawn").expect("in order");
        check_study(&study).expect("runs");
        let done = reproduce(&study, 4, |_| ()).expect("runs");
        assert_eq!(done.rows().count(), what.len());
        for (row, (what, util)) in done.rows().zip(what) {
            let off = row.measured.map(|m| m - row.published);
            let good = matches!(off, Some(o) if (0.0..=late).contains(&o));
            assert!(good, "{workload}, {what}, {util}: {row:?}");
            assert!(row.tolerance.spread <= late, "{workload}, {what}, {util}: {row:?}");
        }
    }
}

/// What the property is about.
#[test]
fn without_the_patch_nothing_climbs() {
    let (text, _) = drawn(2, "rfc-v1+util_est_running=0", "rampup");
    let done =
        reproduce(&Study::parse(&text, "drawn").expect("in order"), 2, |_| ()).expect("runs");
    assert!(done.rows().all(|r| r.measured.is_none()), "{:?}", done.rows().next());
}
