//! A trace kept in memory: recorded once, read as often as needed.

use crate::{Event, Header, MenuSelect, TraceSink};
use risetime_kernel::units::{Instant, TaskId};
use std::sync::Arc;

/// In the place of what `menu` chose from, which is kept apart.
const ELSEWHERE: &MenuSelect = &MenuSelect {
    next_timer_ns: 0,
    bucket: 0,
    correction_factor: [0; 6],
    intervals_us: [0; 8],
    interval_ptr: 0,
    last: None,
    sleep_length_ns: None,
    delta_next_ns: 0,
    tick_stopped: false,
    state: None,
    stop_tick: None,
};

/// A recorded trace. Names are kept once; events are as they came.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    header: Option<Header>,
    events: Vec<(Instant, Event<'static>)>,
    /// Names of the events that have one, in order of their events.
    names: Vec<Arc<str>>,
    /// What `menu` chose from, in order of its choices: large, and rare.
    selects: Vec<MenuSelect>,
    end: Instant,
}

impl Memory {
    /// Nothing recorded yet.
    pub fn new() -> Memory {
        Memory::default()
    }
    /// The head, once there is one.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }
    /// The events in time order; names, and what `menu` chose from, are empty here: see
    /// [`Memory::replay`].
    pub fn events(&self) -> &[(Instant, Event<'static>)] {
        &self.events
    }
    /// The tasks, with their names, in the order in which they became known.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &str)> {
        let named = self.events.iter().filter_map(|(_, event)| match *event {
            Event::TaskNew { task, .. } => Some(Some(task)),
            Event::Phase { .. } => Some(None),
            _ => None,
        });
        named.zip(&self.names).filter_map(|(task, name)| Some((task?, &**name)))
    }
    /// When the run was over.
    pub fn end(&self) -> Instant {
        self.end
    }
    /// Pushes everything into `sink` again, as it came.
    pub fn replay(&self, sink: &mut dyn TraceSink) {
        let Some(header) = &self.header else { return };
        sink.header(header);
        self.replay_events(sink);
        sink.end(self.end);
    }

    /// Pushes the events, and neither head nor end.
    pub(crate) fn replay_events(&self, sink: &mut dyn TraceSink) {
        let (mut names, mut selects) = (self.names.iter(), self.selects.iter());
        for (at, event) in &self.events {
            let named = match *event {
                Event::TaskNew { task, user, cpu, why, max_speed, .. } => names
                    .next()
                    .map(|comm| Event::TaskNew { task, comm, user, cpu, why, max_speed }),
                Event::Phase { task, index, .. } => {
                    names.next().map(|name| Event::Phase { task, index, name })
                }
                Event::IdleSelect { cpu, .. } => {
                    selects.next().map(|select| Event::IdleSelect { cpu, select })
                }
                _ => None,
            };
            sink.event(*at, named.as_ref().unwrap_or(event));
        }
    }

    /// Forgets the events, keeping their memory.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.names.clear();
        self.selects.clear();
    }
}

impl TraceSink for Memory {
    fn header(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }
    fn event(&mut self, at: Instant, event: &Event<'_>) {
        let owned = match *event {
            Event::TaskNew { task, comm, user, cpu, why, max_speed } => {
                self.names.push(comm.into());
                Event::TaskNew { task, comm: "", user, cpu, why, max_speed }
            }
            Event::Phase { task, index, name } => {
                self.names.push(name.into());
                Event::Phase { task, index, name: "" }
            }
            Event::IdleSelect { cpu, select } => {
                self.selects.push(*select);
                Event::IdleSelect { cpu, select: ELSEWHERE }
            }
            // No other event borrows anything.
            Event::Policy { task, policy } => Event::Policy { task, policy },
            Event::MaxSpeed { task, max_speed } => Event::MaxSpeed { task, max_speed },
            Event::Wakeup { task, cpu, why } => Event::Wakeup { task, cpu, why },
            Event::Switch { cpu, prev, next } => Event::Switch { cpu, prev, next },
            Event::Migrate { task, from, to, why } => Event::Migrate { task, from, to, why },
            Event::Freq { cpu, freq } => Event::Freq { cpu, freq },
            Event::FreqRequest { cpu, util, freq, why } => {
                Event::FreqRequest { cpu, util, freq, why }
            }
            Event::Idle { cpu, state } => Event::Idle { cpu, state },
            Event::PeltTask {
                task,
                cpu,
                util_avg,
                runnable_avg,
                util_sum,
                period_contrib,
                last_update_time,
            } => Event::PeltTask {
                task,
                cpu,
                util_avg,
                runnable_avg,
                util_sum,
                period_contrib,
                last_update_time,
            },
            Event::UtilEst { task, util_est } => Event::UtilEst { task, util_est },
            Event::WaitingAvg { task, waiting_avg } => Event::WaitingAvg { task, waiting_avg },
            Event::PeltCfs {
                cpu,
                util_avg,
                runnable_avg,
                util_est,
                util_sum,
                period_contrib,
                last_update_time,
            } => Event::PeltCfs {
                cpu,
                util_avg,
                runnable_avg,
                util_est,
                util_sum,
                period_contrib,
                last_update_time,
            },
            Event::PeltPressure {
                cpu,
                class,
                util_avg,
                util_sum,
                period_contrib,
                last_update_time,
            } => Event::PeltPressure {
                cpu,
                class,
                util_avg,
                util_sum,
                period_contrib,
                last_update_time,
            },
            Event::CpuCapacity { cpu, capacity } => Event::CpuCapacity { cpu, capacity },
            Event::Overutilized { on } => Event::Overutilized { on },
            Event::Hotplug { cpu, online } => Event::Hotplug { cpu, online },
            Event::Throttled { task, on } => Event::Throttled { task, on },
            Event::Irq { cpu, enters } => Event::Irq { cpu, enters },
            Event::Step { task, number } => Event::Step { task, number },
            Event::Job { task, mark } => Event::Job { task, mark },
            Event::Work { cpu, kind } => Event::Work { cpu, kind },
            Event::Misfit { cpu, task } => Event::Misfit { cpu, task },
            Event::Temperature { zone, millicelsius } => Event::Temperature { zone, millicelsius },
            Event::CpuFrequencyLimits { cpu, min, max } => {
                Event::CpuFrequencyLimits { cpu, min, max }
            }
            Event::Capped { cpu, by, max } => Event::Capped { cpu, by, max },
            Event::SpeedLimits { task, affinity, clamped } => {
                Event::SpeedLimits { task, affinity, clamped }
            }
            Event::Cooling { cpu, max, zone } => Event::Cooling { cpu, max, zone },
            Event::Stolen { cpu, span } => Event::Stolen { cpu, span },
            Event::Due { task, ago } => Event::Due { task, ago },
            Event::Waking { task, by } => Event::Waking { task, by },
            Event::Prio { task, prio } => Event::Prio { task, prio },
            Event::Clamps { task, clamps } => Event::Clamps { task, clamps },
            Event::CpuClamps { cpu, clamps } => Event::CpuClamps { cpu, clamps },
            Event::Entity { task, place } => Event::Entity { task, place },
            Event::GroupEntity { cpu, group, place } => Event::GroupEntity { cpu, group, place },
            Event::Quota { group, stat } => Event::Quota { group, stat },
            Event::GroupThrottled { cpu, group, on } => Event::GroupThrottled { cpu, group, on },
            Event::GroupQueue { cpu, group, min_vruntime } => {
                Event::GroupQueue { cpu, group, min_vruntime }
            }
            Event::TaskLoad { task, load_avg, load_sum } => {
                Event::TaskLoad { task, load_avg, load_sum }
            }
            Event::CfsLoad { cpu, load_avg, load_sum } => {
                Event::CfsLoad { cpu, load_avg, load_sum }
            }
            Event::CfsQueue { cpu, min_vruntime, sum_w_vruntime, sum_weight, nr_queued } => {
                Event::CfsQueue { cpu, min_vruntime, sum_w_vruntime, sum_weight, nr_queued }
            }
            Event::CfsUtilEst { cpu, util_est } => Event::CfsUtilEst { cpu, util_est },
            Event::FreqLook { cpu, look } => Event::FreqLook { cpu, look },
            Event::Deadline { task, runtime, left } => Event::Deadline { task, runtime, left },
            Event::Tick { cpu } => Event::Tick { cpu },
            Event::Resched { cpu, lazy } => Event::Resched { cpu, lazy },
            Event::BalanceDue { cpu, jiffies, next_balance, domains } => {
                Event::BalanceDue { cpu, jiffies, next_balance, domains }
            }
            Event::BalanceLook { cpu, level, idle, failed } => {
                Event::BalanceLook { cpu, level, idle, failed }
            }
        };
        self.events.push((at, owned));
    }
    fn end(&mut self, at: Instant) {
        self.end = at;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{SwitchOut, Why};
    use risetime_kernel::units::{CpuId, Util};

    /// Everything that was pushed, as text.
    #[derive(Default)]
    pub(crate) struct Log(pub(crate) Vec<String>);
    impl TraceSink for Log {
        fn header(&mut self, h: &Header) {
            self.0.push(format!("{h:?}"));
        }
        fn event(&mut self, at: Instant, e: &Event<'_>) {
            self.0.push(format!("{at:?} {e:?}"));
        }
        fn end(&mut self, at: Instant) {
            self.0.push(format!("end {at:?}"));
        }
    }

    fn push(sink: &mut dyn TraceSink) {
        let task = TaskId(0);
        sink.header(&crate::header::tests::header());
        let (cpu, why) = (CpuId(1), Why::FirstCpu);
        sink.event(
            Instant(1),
            &Event::TaskNew { task, comm: "a b", user: true, cpu, why, max_speed: Util(9) },
        );
        sink.event(Instant(1), &Event::Phase { task, index: 2, name: "busy" });
        for bucket in [3, 4] {
            let select = &MenuSelect { bucket, state: Some(1), ..MenuSelect::default() };
            sink.event(Instant(2), &Event::IdleSelect { cpu, select });
        }
        sink.event(
            Instant(3),
            &Event::Switch { cpu, prev: Some((task, SwitchOut::Exited)), next: None },
        );
        sink.end(Instant(4));
    }

    #[test]
    fn a_replay_is_what_was_pushed() {
        let (mut direct, mut memory, mut replayed) =
            (Log::default(), Memory::new(), Log::default());
        push(&mut direct);
        push(&mut memory);
        memory.replay(&mut replayed);
        assert_eq!(direct.0, replayed.0);
        assert!(replayed.0[4].contains("bucket: 4"), "{}", replayed.0[4]);
        assert_eq!(direct.0.len(), 7);
        memory.replay(&mut replayed);
        assert_eq!(replayed.0.len(), 14, "it can be read again");
    }
}
