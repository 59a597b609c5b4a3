//! "Scheduler Load tracking update and improvement", 2017: load trackers on a HiKey. What its page shows is what it prints; which
//! rows hold; and what the workloads and the cap of its figures are.

use crate::page;
use risetime_analysis::study::{Cells, Reproduced};
use risetime_lab::Request;
use risetime_model::Study;
use risetime_report::text::{self, Style};
use risetime_sim::Simulator;
use risetime_study::reproduce;
use risetime_trace::{Backend, Event, Memory};
use std::sync::OnceLock;

/// So many start phases are enough to tell the columns apart.
const PHASES: u32 = 8;

fn done() -> &'static Reproduced {
    static DONE: OnceLock<Reproduced> = OnceLock::new();
    DONE.get_or_init(|| {
        let study = Study::load("bud-2017").expect("built in");
        reproduce(&study, PHASES, |_| ()).expect("runs")
    })
}

fn cells(figure: usize) -> &'static Cells {
    done().figures[figure].cells.as_ref().expect("a table")
}

/// What a cell holds.
fn measured(of: &Cells, case: &str, column: &str) -> f64 {
    let case = of.cases.iter().position(|(name, _)| name == case).expect("a case");
    let column = of.columns.iter().position(|(name, _)| name == column).expect("a column");
    of.cells[0][case][column].measured.expect("it was run")
}

#[test]
fn the_page_of_the_study_shows_what_it_prints() {
    let style = Style { width: 80, color: false, unicode: true };
    let wanted = text::study(done(), &style);
    page::holds("studies/bud-2017.md", "writes it anew.\n\n```text\n", "```\n", &wanted);
}

/// A row that comes to hold, or no longer does, is worth a look at why.
#[test]
fn what_holds_of_the_trackers() {
    assert!(done().holds(), "each miss is argued");
    let stale: Vec<&str> = done().stale().map(|r| r.id.as_str()).collect();
    assert!(stale.is_empty(), "{stale:?}");
    let held: Vec<&str> =
        done().rows().filter(|r| r.holds == Some(true)).map(|r| r.id.as_str()).collect();
    let wanted = [
        // Since each start phase has its own seed: this one, Stream and the side of new frames, all well within.
        "vellamo/WALT/without-Mem-Thread",
        "vellamo/new/LinpackJava",
        "vellamo/new/Stream",
        "vellamo/new/Sysbench",
        "vellamo/new/without-Mem-Thread",
        "ui/WALT-side",
        "ui/new-side",
        "ui/WALT/hwuitest-95",
        "ui/new/hwuitest-99",
    ];
    assert_eq!(held, wanted);
}

/// Legacy PELT alone is fitted: case by case in Vellamo, by the works of the frames in the others.
#[test]
fn only_the_column_of_legacy_pelt_is_fitted() {
    for of in [cells(0), cells(1)] {
        let fitted: Vec<&str> =
            of.columns.iter().filter(|(_, fit)| *fit).map(|(name, _)| name.as_str()).collect();
        assert_eq!(fitted, ["legacy"]);
        assert!(of.free.iter().all(|f| f.values[f.chosen].1 <= f.values[0].1), "{:?}", of.free);
    }
    assert!(cells(0).free.is_empty());
}

/// Multicore is the sum of the eight, published and ours; without two of them nothing is published but their sum.
#[test]
fn multicore_is_the_sum_of_the_eight() {
    let of = cells(0);
    for column in ["WALT", "legacy", "new"] {
        let eight: f64 = of.cases[..8].iter().map(|(case, _)| measured(of, case, column)).sum();
        let multicore = measured(of, "Multicore", column);
        // A median of sums is not the sum of medians.
        assert!((eight / multicore - 1.0).abs() < 0.02, "{column}: {eight}, {multicore}");
        assert!(measured(of, "without-Mem-Thread", column) < multicore, "{column}");
    }
    let published: Vec<Option<f64>> = of.cells[0][9][..3].iter().map(|c| c.published).collect();
    assert_eq!(published, [Some(997.0), Some(924.0), Some(1062.0)]);
}

/// The document's "sometimes at the opposite": a cap takes most from what is busy longest, and from the fastest.
#[test]
fn a_cap_takes_from_long_runs_and_changes_no_short_one() {
    let of = cells(0);
    for column in ["WALT", "legacy", "new"] {
        let kept =
            |case| measured(of, case, &format!("{column}-capped")) / measured(of, case, column);
        assert!(kept("LinpackJava") < 0.9, "{column}: {}", kept("LinpackJava"));
        assert!(kept("LinpackJava") < kept("Sysbench"), "{column}");
    }
    let short =
        measured(of, "Threadbench", "legacy-capped") / measured(of, "Threadbench", "legacy");
    assert!((short - 1.0).abs() < 0.02, "{short}");
}

/// Under WALT the frequency follows windows, whatever placement follows: it does not change with each task that comes or goes.
#[test]
fn the_frequency_follows_windows_under_both_utils_of_walt() {
    for util in ["cumulative_runnable_avg", "prev_runnable_sum"] {
        let request = Request {
            policies: vec![format!("linux-4.4-walt+walt_cpu_util={util}")],
            seconds: Some(1.0),
            ..Request::new("vellamo-pipes", "hikey620")
        };
        let experiment = request.experiments().expect("built in").remove(0);
        let mut trace = Memory::new();
        Simulator.run(&experiment, &mut trace).expect("runs");
        let requests =
            trace.events().iter().filter(|(_, e)| matches!(e, Event::FreqRequest { .. }));
        let n = requests.count();
        // 50 windows, and what happens before they are full; tens of thousands of tasks come and go.
        assert!(n < 1000, "{util}: {n} requests");
    }
}
