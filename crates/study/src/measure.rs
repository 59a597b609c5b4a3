//! Measurement of each quantity of a study in one run.
//!
//! ```text
//! util_residency  t(util ≥ next row's) − t(util ≥ row's), t from t0; the first row starts at t0
//! freq_residency  the task's running time at that frequency, on any CPU of the domain
//! util_after      util_avg at t0 + the row's ms
//! util_est        of the first task, averaged over time in the second half of the run
//! est_ticks, avg_ticks, est_wait, est_after, speed_ticks     climb.rs
//! task_util, task_util_range, cpu_util, cpu_capacity, cpu_capacity_range     signals.rs
//! figure          what `--expect` calls so
//! closed_form     1024/capacity · 32 ms · log2(1/(1 − u/1024)), u = 1023.05
//! ```
//!
//! A tick is worth 1 ms or 4 ms to a time; to a util, what util gains in it.

use super::climb::Climb;
use super::signals::Signals;
use risetime_analysis::study::median;
use risetime_analysis::{Level, TaskResult};
use risetime_kernel::approximate::{
    Margin, approximate_runtime, fits_capacity_threshold, tick_usec,
};
use risetime_kernel::pelt::Decay;
use risetime_kernel::units::{Capacity, CpuId, Instant, TaskId, Util};
use risetime_lab::Run;
use risetime_model::Platform;
use risetime_model::study::{At, List, Quantity, Row};
use risetime_trace::{Event, Header, TraceSink};
use std::sync::Arc;

/// The util that counts as full in the closed form: the one that gives both published times.
const FULL_UTIL: f64 = 1023.05;

/// One experiment from all its start phases.
pub(super) struct Phases {
    /// Runs in the order of the phases.
    pub(super) runs: Vec<Run>,
    /// util_est of the first task in each run, averaged over its second half.
    pub(super) util_est: Vec<Option<f64>>,
    /// The climb of the first task's util_est in each run.
    pub(super) climbs: Vec<Climb>,
    /// Signals in each run.
    pub(super) signals: Vec<Signals>,
    pub(super) platform: Arc<Platform>,
    pub(super) tick_ms: f64,
}

/// The row's number in each phase, and what a tick is worth to it. `next` is the list's next row.
pub(super) fn samples(
    list: &List,
    row: &Row,
    next: Option<&Row>,
    runs: Option<&Phases>,
) -> (Vec<Option<f64>>, f64) {
    let at = key(row);
    match (list.quantity, runs) {
        (Quantity::Threshold, _) => (vec![threshold(list, Margin::Threshold, at)], 0.0),
        (Quantity::ThresholdTick, _) => (vec![threshold(list, Margin::ThresholdTick, at)], 0.0),
        (Quantity::FitsCapacity, _) => (vec![threshold(list, Margin::Rfc, at)], 0.0),
        (Quantity::ApproximateRuntime, _) => {
            (vec![Some(approximate_runtime(&decay(list), Util(at as u64)) as f64)], 0.0)
        }
        (Quantity::ClosedForm, _) => (vec![Some(closed_form(at, decay(list).half_life()))], 0.0),
        (quantity, Some(runs)) if quantity.is_climb() => {
            let number =
                |(run, climb): (&Run, &Climb)| climb.number(quantity, at, run, runs.tick_ms);
            let tick = if quantity == Quantity::SpeedTicks { 1.0 } else { 0.0 };
            (runs.runs.iter().zip(&runs.climbs).map(number).collect(), tick)
        }
        (quantity, Some(runs)) => {
            let all: Vec<Option<f64>> = runs
                .runs
                .iter()
                .map(|run| in_run(quantity, list.cpu, at, next.map(key), run, &runs.platform))
                .collect();
            let tick = match quantity {
                Quantity::UtilAfter => util_of_a_tick(at, runs),
                _ => runs.tick_ms,
            };
            (all, tick)
        }
        (_, None) => (Vec::new(), 0.0),
    }
}

fn key(row: &Row) -> f64 {
    match &row.at {
        At::Number(d) => d.value,
        At::Name(_) => f64::NAN,
    }
}

fn in_run(
    quantity: Quantity,
    cpu: Option<u32>,
    at: f64,
    next: Option<f64>,
    run: &Run,
    platform: &Platform,
) -> Option<f64> {
    let task = run.result.tasks.first()?;
    let running = |wanted: &dyn Fn(u64) -> bool| -> f64 {
        let domain = platform.domains.iter().find(|d| d.cpus.contains(&CpuId(cpu.unwrap_or(0))));
        let here = |c: CpuId| domain.is_some_and(|d| d.cpus.contains(&c));
        let counted = task.spent.running.iter().filter(|r| here(r.cpu) && wanted(r.freq.0));
        // From +0: a sum of nothing would be −0.
        counted.fold(0.0, |sum, r| sum + r.ms)
    };
    match quantity {
        Quantity::UtilResidency => {
            let from = if at == 0.0 { 0.0 } else { reach(task, Level::Util(at as u64))? };
            Some(reach(task, Level::Util(next? as u64))? - from)
        }
        Quantity::FreqResidency => Some(running(&|khz| khz == at as u64)),
        Quantity::TimeOnCpu => Some(running(&|_| true)),
        Quantity::ReachUtil => reach(task, Level::Util(at as u64)),
        Quantity::ReachCapacity => reach(task, Level::Capacity(at as u64)),
        Quantity::UtilAfter => util_after(run, at),
        Quantity::Threshold
        | Quantity::ThresholdTick
        | Quantity::FitsCapacity
        | Quantity::ApproximateRuntime
        | Quantity::ClosedForm
        | Quantity::UtilEst
        | Quantity::EstTicks
        | Quantity::AvgTicks
        | Quantity::EstWait
        | Quantity::EstAfter
        | Quantity::SpeedTicks
        | Quantity::SteadyUtil
        | Quantity::SteadyEst
        | Quantity::SteadyUtilOf16
        | Quantity::SteadyEstOf16
        | Quantity::SteadyShare
        | Quantity::SteadyFreq
        | Quantity::SteadyEnergy
        | Quantity::RestEst
        | Quantity::GridFreq
        | Quantity::GridEnergy
        | Quantity::Slack
        | Quantity::SlackLeast
        | Quantity::TaskUtil
        | Quantity::TaskUtilRange
        | Quantity::CpuUtil
        | Quantity::CpuCapacity
        | Quantity::CpuCapacityRange
        | Quantity::Figure
        | Quantity::Score => None,
    }
}

fn reach(task: &TaskResult, level: Level) -> Option<f64> {
    task.reach.iter().find(|r| r.what == level)?.after_ms
}

/// util_avg `ms` after t0.
pub(super) fn util_after(run: &Run, ms: f64) -> Option<f64> {
    let at = t0(run)? + ms;
    let util = &run.timeline.as_ref()?.util;
    let n = util.partition_point(|(t, _)| *t <= at);
    Some(util.get(n.checked_sub(1)?)?.1 as f64)
}

/// The start of the reported burst, in ms.
pub(super) fn t0(run: &Run) -> Option<f64> {
    Some(run.result.tasks.first()?.burst?.t0_ms)
}

/// The util that is gained in the tick around `ms`: the median of the phases.
fn util_of_a_tick(ms: f64, runs: &Phases) -> f64 {
    let gain = |run: &Run| {
        let half = runs.tick_ms / 2.0;
        Some(util_after(run, ms + half)? - util_after(run, ms - half)?)
    };
    let mut all: Vec<f64> = runs.runs.iter().filter_map(gain).collect();
    all.sort_by(f64::total_cmp);
    median(&all).unwrap_or(0.0)
}

/// Averages util_est of the first task from `from` on.
pub(super) struct UtilEst {
    from: Instant,
    first: Option<TaskId>,
    value: Util,
    since: Instant,
    sum: f64,
}

impl UtilEst {
    pub(super) fn from(from: Instant) -> UtilEst {
        UtilEst { from, first: None, value: Util(0), since: Instant(0), sum: 0.0 }
    }

    /// util_est · ms, divided by the ms; `None`: no time has passed.
    pub(super) fn mean(&self) -> Option<f64> {
        let ms = self.since.as_ms() - self.from.as_ms();
        (ms > 0.0).then(|| self.sum / ms)
    }

    fn account(&mut self, at: Instant) {
        let since = self.since.max(self.from);
        if at > since {
            self.sum += (at.as_ms() - since.as_ms()) * self.value.0 as f64;
        }
        self.since = at;
    }
}

impl TraceSink for UtilEst {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match event {
            Event::TaskNew { task, user: true, .. } => self.first = self.first.or(Some(*task)),
            Event::UtilEst { task, util_est } if self.first == Some(*task) => {
                self.account(at);
                self.value = *util_est;
            }
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        self.account(at);
    }
}

/// The list's setting called `name`: of a wrong policy alone.
fn setting<'a>(list: &'a List, name: &str) -> Option<&'a str> {
    list.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Returns PELT's decay by which arithmetic goes.
fn decay(list: &List) -> Decay {
    let half_life = setting(list, "pelt_half_life").and_then(|value| value.parse().ok());
    half_life.and_then(Decay::new).unwrap_or(Decay::MS32)
}

fn threshold(list: &List, margin: Margin, capacity: f64) -> Option<f64> {
    let margin = match setting(list, "fits_capacity") {
        Some("mainline") => return Some((capacity * 1024.0 / 1280.0).ceil()),
        Some("threshold") => Margin::Threshold,
        Some("threshold-tick") => Margin::ThresholdTick,
        Some("rfc") => Margin::Rfc,
        Some(share) => {
            let percent: f64 = share.trim_end_matches('%').parse().ok()?;
            return Some((capacity * percent / 100.0).ceil());
        }
        None => margin,
    };
    let (decay, capacity) = (decay(list), Capacity(capacity as u64));
    fits_capacity_threshold(&decay, margin, capacity, tick_usec(list.hz)).map(|t| t.0 as f64)
}

fn closed_form(capacity: f64, half_life: u32) -> f64 {
    1024.0 / capacity * f64::from(half_life) * (1.0 / (1.0 - FULL_UTIL / 1024.0)).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn util_est_is_averaged_over_time_from_its_start_on() {
        let at = |ms: u64| Instant(ms * 1_000_000);
        let (first, other) = (TaskId(7), TaskId(8));
        let mut sink = UtilEst::from(at(100));
        let est = |task, util| Event::UtilEst { task, util_est: Util(util) };
        let new = |task| Event::TaskNew {
            task,
            comm: "t".into(),
            user: true,
            cpu: CpuId(0),
            why: risetime_trace::Why::FirstCpu,
            max_speed: Util(1024),
        };
        sink.event(at(0), &new(first));
        sink.event(at(1), &new(other));
        sink.event(at(50), &est(first, 200));
        sink.event(at(60), &est(other, 900));
        sink.event(at(150), &est(first, 400));
        sink.end(at(200));
        assert_eq!(sink.mean(), Some(300.0), "50 ms at 200, 50 at 400");
        let mut unchanged = UtilEst::from(at(100));
        unchanged.event(at(0), &new(first));
        unchanged.event(at(50), &est(first, 229));
        unchanged.end(at(300));
        assert_eq!(unchanged.mean(), Some(229.0));
    }

    #[test]
    fn the_closed_form_gives_both_published_times() {
        assert!((closed_form(1024.0, 32) - 323.0).abs() < 1.0);
        assert!((closed_form(160.0, 32) - 2063.0).abs() < 1.0);
    }
}
