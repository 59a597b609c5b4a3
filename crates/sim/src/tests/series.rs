//! Each mechanism of the response-time series acts, and by its own formula: the trace of a ramp on
//! the M1 held against the arithmetic.

use super::experiment;
use crate::Simulator;
use risetime_kernel::approximate::approximate_util_avg;
use risetime_kernel::pelt::Decay;
use risetime_kernel::response_time::sugov_apply_response_time;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Header, TraceSink, Why};

/// One look of schedutil at the little CPUs, with the signals of CPU0 at that moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    util: Util,
    why: Why,
    cfs_util: Util,
    runnable: Util,
    util_est: Util,
}

/// What a test wants to know of a run.
#[derive(Default)]
struct Seen {
    looks: Vec<Look>,
    /// When, its util and its estimate, when a task counted as misfit for the first time.
    misfit: Option<(Instant, Util, Util)>,
    util: Util,
    util_est: Util,
    cfs: (Util, Util, Util),
    /// Every value of task 0's estimate.
    estimates: Vec<(Instant, u64)>,
    /// Every value of task 0's util.
    utils: Vec<(Instant, u64)>,
}

impl TraceSink for Seen {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event<'_>) {
        match *event {
            Event::PeltTask { task: TaskId(0), util_avg, .. } => {
                self.util = util_avg;
                self.utils.push((at, util_avg.0));
            }
            Event::UtilEst { task: TaskId(0), util_est } => {
                self.util_est = util_est;
                self.estimates.push((at, util_est.0));
            }
            Event::PeltCfs { cpu: CpuId(0), util_avg, runnable_avg, util_est, .. } => {
                self.cfs = (util_avg, runnable_avg, util_est);
            }
            Event::Misfit { task: Some(_), .. } => {
                self.misfit.get_or_insert((at, self.util, self.util_est));
            }
            Event::FreqRequest { cpu: CpuId(0), util, why, .. } => {
                let (cfs_util, runnable, util_est) = self.cfs;
                self.looks.push(Look { at, util, why, cfs_util, runnable, util_est });
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

fn run(workload: Workload, policy: &str, ms: u64) -> Seen {
    let m1 = Platform::load("m1").expect("built in");
    let e = experiment(m1, workload, policy, &[], Span::from_ms(ms));
    let mut seen = Seen::default();
    Simulator.run(&e, &mut seen).expect("runs");
    seen
}

fn rampup(policy: &str) -> Seen {
    run(Workload::load("rampup").expect("built in"), policy, 1300)
}

/// The looks at which util, and nothing else, decided, each with the util schedutil started from.
fn decided(seen: &Seen) -> Vec<(Look, Util)> {
    let busy = seen.looks.iter().filter(|l| l.at > Instant(1_002_000_000) && l.cfs_util.0 > 0);
    let from = |l: &Look| (*l, l.cfs_util.max(l.runnable).max(l.util_est).min(Util(459)));
    let all: Vec<_> =
        busy.filter(|l| !matches!(l.why, Why::UclampMin | Why::UclampMax)).map(from).collect();
    assert!(all.len() > 10, "{}", all.len());
    all
}

#[test]
fn the_margin_is_where_the_formula_has_it() {
    for (fits_capacity, threshold) in [("mainline", 368), ("rfc", 445), ("threshold-tick", 238)] {
        let policy = format!("linux-6.8+rate_limit_us=2000+fits_capacity={fits_capacity}");
        let seen = rampup(&policy);
        let (_, at, _) = seen.misfit.expect("a misfit task");
        let before = seen.utils.iter().map(|(_, u)| *u).rfind(|u| *u < at.0).expect("it rose");
        assert!(before < threshold && threshold <= at.0, "{policy}: {before}, then {at}");
    }
}

#[test]
fn headroom_is_growth_until_the_frequency_can_change_again() {
    for limit in [0, 2000, 10_000] {
        let policy = format!("linux-6.8+rate_limit_us={limit}+dvfs_headroom=update_delay");
        for (look, util) in decided(&rampup(&policy)) {
            let wanted = approximate_util_avg(&Decay::MS32, util, limit.max(1000));
            assert_eq!(look.util, wanted.min(Util(459)), "{limit} {look:?}");
        }
    }
    for (look, util) in decided(&rampup("linux-6.8")) {
        assert_eq!(look.util, Util(util.0 * 5 / 4).min(Util(459)), "mainline {look:?}");
    }
}

#[test]
fn a_shorter_response_time_raises_util_before_the_headroom() {
    // The little CPUs' own is 22 ms.
    for (ms, mult) in [(11, 2048), (22, 1024), (44, 512)] {
        for (look, util) in decided(&rampup(&format!("linux-6.8+response_time_ms={ms}"))) {
            let scaled = sugov_apply_response_time(util, mult);
            assert_eq!(look.util, Util(scaled.0 * 5 / 4).min(Util(459)), "{ms} {look:?}");
        }
    }
}

#[test]
fn a_multiplied_time_halves_the_time_to_any_util() {
    let to_450 = |multiplier| {
        let policy = format!(
            "linux-6.8+governor=performance+first_cpu=4+sched_pelt_multiplier={multiplier}"
        );
        let seen = rampup(&policy);
        let (at, _) = seen
            .utils
            .iter()
            .find(|(at, u)| at.0 > 1_000_000_000 && *u >= 450)
            .expect("gets there");
        (at.0 - 1_001_000_000) as f64 / 1e6
    };
    let [one, two, four] = [1, 2, 4].map(to_450);
    assert!((28.0..31.0).contains(&one), "{one}");
    assert!((one - two - one / 2.0).abs() < 1.2, "{one} {two}");
    assert!((one - four - one * 0.75).abs() < 1.5, "{one} {four}");
}
