//! "Be friendly towards latency-sensitive bursty workloads": what a sleep costs under ondemand, and what carrying the load
//! over changes, on the machine of that commit.

use crate::page;
use risetime_analysis::study::Reproduced;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_lab::Request;
use risetime_model::workload::Change;
use risetime_model::{Experiment, Study, Workload};
use risetime_report::text::{self, Style};
use risetime_sim::Simulator;
use risetime_study::{STUDY_PHASES, reproduce};
use risetime_trace::{Backend, Event, Memory};
use std::sync::{Arc, OnceLock};

fn done() -> &'static Reproduced {
    static DONE: OnceLock<Reproduced> = OnceLock::new();
    DONE.get_or_init(|| {
        let study = Study::load("ondemand-2014").expect("built in");
        reproduce(&study, STUDY_PHASES, |_| ()).expect("runs")
    })
}

#[test]
fn the_page_of_the_study_shows_what_it_prints() {
    let style = Style { width: 80, color: false, unicode: true };
    let wanted = text::study(done(), &style);
    page::holds("studies/ondemand-2014.md", "```text\n", "```\n", &wanted);
}

/// A row that comes to hold, or no longer does, is worth a look at why.
#[test]
fn what_holds_of_sleeping_ebizzy() {
    assert!(done().holds(), "each miss is argued");
    let missed: Vec<&str> =
        done().rows().filter(|r| r.holds == Some(false)).map(|r| r.id.as_str()).collect();
    assert_eq!(missed, ["ebizzy/records/without/10%", "ebizzy/gain-10"]);
}

/// 4 s of sleeping-ebizzy at 40 % on CPU 8, from the first wakeup that somebody has slept before.
fn ebizzy(after_idle: &str) -> Experiment {
    let change = |key: &str, value: &str| Change { key: key.into(), value: value.into() };
    let request = Request {
        policies: vec![format!("linux-3.15+load_after_idle={after_idle}")],
        seconds: Some(4.0),
        changes: vec![change("ebizzy.cpus", "[8]")],
        ..Request::new("sleeping-ebizzy", "power-2061")
    };
    request.experiments().expect("built in").remove(0)
}

fn traced(e: &Experiment) -> Memory {
    let mut memory = Memory::new();
    Simulator.run(e, &mut memory).expect("runs");
    memory
}

const CPU: CpuId = CpuId(8);
const TASK: TaskId = TaskId(0);
const LOWEST: KHz = KHz(2_061_000);
const HIGHEST: KHz = KHz(4_123_000);

/// What CPU 8 does from when on: at which frequency, and whether the task runs, or nobody.
fn spells(trace: &Memory) -> Vec<(Instant, KHz, Option<TaskId>)> {
    let (mut freq, mut on) = (LOWEST, None);
    let mut all = Vec::new();
    for (at, event) in trace.events() {
        match event {
            Event::Freq { cpu: CPU, freq: now } => freq = *now,
            Event::Switch { cpu: CPU, next, .. } => on = *next,
            _ => continue,
        }
        all.push((*at, freq, on));
    }
    all
}

/// Of each burst, behind a sleep of 20 ms or more, how long the task ran at `of`, ms.
fn by_burst(trace: &Memory, of: KHz) -> Vec<f64> {
    let all = spells(trace);
    let mut bursts = vec![0.0];
    for pair in all.windows(2) {
        let took = pair[1].0.since(pair[0].0);
        match pair[0].2 {
            None if took >= Span::from_ms(20) => bursts.push(0.0),
            Some(TASK) if pair[0].1 == of => {
                *bursts.last_mut().expect("one at least") += took.0 as f64 / 1e6;
            }
            _ => {}
        }
    }
    bursts
}

#[test]
fn every_long_sleep_costs_a_sampling_period_unless_the_load_is_carried_over() {
    let slow = |after: &str| by_burst(&traced(&ebizzy(after)), LOWEST);
    let (computed, copied) = (slow("computed"), slow("copy"));
    // The first begins on a CPU that has never been busy, the last may be cut off.
    let whole = |all: &[f64]| all[2..all.len() - 1].to_vec();
    assert!(whole(&computed).len() > 15, "{computed:?}");
    assert!(whole(&computed).iter().all(|ms| (9.0..11.0).contains(ms)), "{computed:?}");
    assert!(whole(&copied).iter().all(|ms| *ms == 0.0), "{copied:?}");
}

/// `##########.........#.................#.....................#...` of the commit: a burst, and visits too short to be
/// found busy. They are fast up to the first sample without the rule, and up to the second one with it.
#[test]
fn a_load_is_carried_over_once_and_not_kept_in_a_mostly_idle_system() {
    let visits = r#"{"tasks": {"t": {"cpus": [8], "loop": 1, "phases": {
        "burst": {"run": 100000, "sleep": 90000},
        "visits": {"loop": 20, "runtime": 6000, "sleep": 140000}}}}}"#;
    // How many visits are fast, and that none is behind one that is not.
    let fast = |after: &str| {
        let workload = Arc::new(Workload::parse(visits, "visits.json").expect("a workload"));
        let all = by_burst(&traced(&Experiment { workload, ..ebizzy(after) }), HIGHEST);
        let all = all[all.len() - 21..][..20].to_vec();
        let first = all.iter().position(|ms| *ms < 5.9).unwrap_or(all.len());
        assert!(all.iter().skip(first + 1).all(|ms| *ms == 0.0), "{after}: {all:?}");
        first
    };
    let (computed, copied, full) = (fast("computed"), fast("copy"), fast("full"));
    assert!((1..4).contains(&copied.saturating_sub(computed)), "{computed} {copied}");
    assert_eq!(full, 20, "what the commit did not want");
}

#[test]
fn no_idle_time_is_lost() {
    let idle = |after: &str| {
        let all = spells(&traced(&ebizzy(after)));
        let none = all.windows(2).filter(|w| w[0].2.is_none());
        none.map(|w| w[1].0.since(w[0].0).0 as f64 / 1e6).sum::<f64>()
    };
    let (without, with) = (idle("computed"), idle("copy"));
    assert!(with >= without - 1.0, "{without} {with} ms of 4000");
}
