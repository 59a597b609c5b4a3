//! Signals of load tracking in a run: of the first task, and of one CPU.
//!
//! ```text
//! task_util            util_avg of the first task, averaged over time in the second half of the run
//! task_util_range      the largest less the smallest there
//! cpu_util             util_avg of the CPU's runqueue, as it was last written, so many ms after the first task's start
//! cpu_capacity         rq->cpu_capacity, likewise: balancing writes it
//! cpu_capacity_range   the largest less the smallest in the second half of the run
//! ```
//!
//! To `cpu_util` a tick is worth what it changes in the tick around that moment.

use risetime_analysis::study::median;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_model::study::{List, Quantity};
use risetime_trace::{Event, Header, TraceSink};

/// (ms, value) at each change.
type Curve = Vec<(f64, f64)>;

/// The signals of one run that a figure's lists ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Whether anything is asked for at all.
    wanted: bool,
    cpus: Vec<CpuId>,
    first: Option<(TaskId, f64)>,
    task: Curve,
    /// Curves by place in `cpus`: util and capacity.
    of_cpu: Vec<(Curve, Curve)>,
    end: f64,
}

impl Signals {
    pub(super) fn of(lists: &[List]) -> Signals {
        let wanted = || lists.iter().filter(|l| l.quantity.is_signal());
        let cpus: Vec<CpuId> = wanted().filter_map(|l| l.cpu).map(CpuId).collect();
        let of_cpu = cpus.iter().map(|_| Default::default()).collect();
        Signals { wanted: wanted().next().is_some(), cpus, of_cpu, ..Signals::default() }
    }

    fn cpu(&self, list: &List) -> Option<&(Curve, Curve)> {
        let at = self.cpus.iter().position(|cpu| Some(cpu.0) == list.cpu)?;
        self.of_cpu.get(at)
    }

    /// The number that the list is about, in this run.
    pub(super) fn number(&self, list: &List) -> Option<f64> {
        let at = || Some(self.first?.1 + list.ms? as f64);
        let half = self.end / 2.0;
        match list.quantity {
            Quantity::TaskUtil => mean(&self.task, half, self.end),
            Quantity::TaskUtilRange => range(&self.task, half),
            Quantity::CpuUtil => value(&self.cpu(list)?.0, at()?),
            Quantity::CpuCapacity => value(&self.cpu(list)?.1, at()?),
            Quantity::CpuCapacityRange => range(&self.cpu(list)?.1, half),
            _ => None,
        }
    }

    /// The change of the list's figure in the tick around its moment.
    fn in_a_tick(&self, list: &List, tick_ms: f64) -> Option<f64> {
        let (curve, at) = (&self.cpu(list)?.0, self.first?.1 + list.ms? as f64);
        let value = |at: f64| value(curve, at).unwrap_or(0.0);
        Some((value(at + tick_ms / 2.0) - value(at - tick_ms / 2.0)).abs())
    }
}

/// The uncertainty that a tick makes in the list's rows: the median of the phases.
pub(super) fn of_a_tick(list: &List, all: &[Signals], tick_ms: f64) -> f64 {
    if list.quantity != Quantity::CpuUtil {
        return 0.0;
    }
    let mut all: Vec<f64> = all.iter().filter_map(|s| s.in_a_tick(list, tick_ms)).collect();
    all.sort_by(f64::total_cmp);
    median(&all).unwrap_or(0.0)
}

impl TraceSink for Signals {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if !self.wanted {
            return;
        }
        let ms = at.as_ms();
        let place = |cpu: &CpuId| self.cpus.iter().position(|c| c == cpu);
        match event {
            Event::TaskNew { task, user: true, .. } => {
                self.first = self.first.or(Some((*task, ms)));
            }
            Event::PeltTask { task, util_avg, .. }
                if self.first.is_some_and(|(first, _)| first == *task) =>
            {
                self.task.push((ms, util_avg.0 as f64));
            }
            Event::PeltCfs { cpu, util_avg, .. } => {
                if let Some(at) = place(cpu) {
                    self.of_cpu[at].0.push((ms, util_avg.0 as f64));
                }
            }
            Event::CpuCapacity { cpu, capacity } => {
                if let Some(at) = place(cpu) {
                    self.of_cpu[at].1.push((ms, capacity.0 as f64));
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        self.end = at.as_ms();
    }
}

/// The last value up to `at`.
fn value(curve: &Curve, at: f64) -> Option<f64> {
    let n = curve.partition_point(|(t, _)| *t <= at);
    Some(curve.get(n.checked_sub(1)?)?.1)
}

/// The mean of a curve over the time from `from` to `to`.
fn mean(curve: &Curve, from: f64, to: f64) -> Option<f64> {
    let ends = curve.iter().skip(1).map(|(t, _)| *t).chain([to]);
    let spans = curve.iter().zip(ends).map(|((t, value), end)| (end - t.max(from), value));
    let spans = || spans.clone().filter(|(span, _)| *span > 0.0);
    let total: f64 = spans().map(|(span, _)| span).sum();
    (total > 0.0).then(|| spans().map(|(span, value)| span * value).sum::<f64>() / total)
}

/// The largest less the smallest from `from` on.
fn range(curve: &Curve, from: f64) -> Option<f64> {
    let all = || curve.iter().filter(|(t, _)| *t >= from).map(|(_, value)| *value);
    all().next()?;
    Some(all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_holds_its_values() {
        let curve = vec![(0.0, 100.0), (10.0, 300.0), (20.0, 200.0)];
        assert_eq!([9.9, 10.0, 99.0].map(|at| value(&curve, at)), [100.0, 300.0, 200.0].map(Some));
        assert_eq!(value(&curve, -1.0), None);
        assert_eq!(
            mean(&curve, 5.0, 25.0),
            Some((5.0 * 100.0 + 10.0 * 300.0 + 5.0 * 200.0) / 20.0)
        );
        assert_eq!(mean(&curve, 25.0, 25.0), None);
        assert_eq!((range(&curve, 10.0), range(&curve, 21.0)), (Some(100.0), None));
    }
}
