//! Switches of the response-time series, and what a CPU keeps for them ([`super`] has the
//! settings).

use crate::mech::slots::{Slot, Slots};
use crate::state::effects::Effects;
use crate::state::machine::Machine;
use risetime_kernel::approximate::tick_usec;
use risetime_kernel::fits::fits_capacity_percent;
use risetime_kernel::headroom::{Decided, Growth, Headroom, dvfs_delay_us, map_util_perf_percent};
use risetime_kernel::neighbours::util_est_faster;
use risetime_kernel::pelt::Decay;
use risetime_kernel::response_time::sugov_apply_response_time;
use risetime_kernel::sched_qos::SchedQos;
use risetime_kernel::schedutil::map_util_perf;
use risetime_kernel::units::{Capacity, CpuId, TaskId, Util};
use risetime_kernel::waiting_avg::WaitingAvg;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Series;
    type OfDomain = ();
    type OfCpu = CpuSeries;
    type OfTask = TaskSeries;

    fn of_task(slots: &Slots) -> TaskSeries {
        let qos = SchedQos::fork(slots.series.rampup_multiplier.unwrap_or(1));
        TaskSeries { qos, ..TaskSeries::default() }
    }
}

/// State of a task for the series.
pub(crate) struct TaskSeries {
    /// `util_avg` at the last sample of `util_est` (RFC 00/16, patch 9).
    pub(crate) util_avg_dequeued: Util,
    /// Waiting time (RFC 00/16, patch 12).
    pub(crate) waiting: WaitingAvg,
    /// Hints of the task (RFC 00/16, patches 10 and 11).
    pub(crate) qos: SchedQos,
}

impl Default for TaskSeries {
    /// Returns the state of a task without hints, where no multiplier is set.
    fn default() -> TaskSeries {
        let qos = SchedQos::fork(1);
        TaskSeries { util_avg_dequeued: Util(0), waiting: WaitingAvg::default(), qos }
    }
}

/// Headroom (`dvfs_headroom`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Room {
    /// A quarter.
    #[default]
    Mainline,
    /// Headroom of so many percent of util.
    Percent(u64),
    /// Growth of util until the next change of frequency.
    UpdateDelay,
}

/// Switches that are on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Series {
    pub(crate) room: Room,
    pub(crate) util_est_running: bool,
    pub(crate) util_est_periodic: bool,
    /// Multiplier of tasks that gave no hint; `None`: no sched-qos, hints do not count.
    pub(crate) rampup_multiplier: Option<u32>,
    pub(crate) util_est_off_at_0: bool,
    pub(crate) waiting_avg: bool,
    pub(crate) waiting_headroom: bool,
    pub(crate) no_decaying_headroom: bool,
    pub(crate) util_avg_0_on_fork: bool,
    pub(crate) util_est_faster: bool,
    pub(crate) util_est_boost: bool,
    pub(crate) runnable_boost: bool,
    /// Tasks may say how soon they want the CPU.
    pub(crate) latency_nice: bool,
    /// Saving that an energy-aware move needs, of 1024.
    pub(crate) eas_margin: u64,
    /// Decay that comes later, if it is to change.
    pub(crate) decay_later: Option<&'static Decay>,
}

/// Limit from which on nothing fits (`fits_capacity`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// `rq->fits_capacity_threshold`.
    Threshold(Util),
    /// A limit of so many percent of what the CPU has to give.
    Percent(u64),
}

/// State that a CPU keeps for the series.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuSeries {
    /// `None`: mainline's margin.
    pub(crate) limit: Option<Limit>,
    /// The per-CPU `dvfs_update_delay`, in µs.
    pub(crate) dvfs_update_delay_us: u64,
    /// The per-CPU `response_time_mult`; `None`: no such tunable.
    pub(crate) response_time_mult: Option<u64>,
    /// The per-CPU `last_update_util`.
    pub(crate) last_update_util: Util,
}

impl Series {
    /// Whether headroom is mainline's quarter; then nobody asks what util was at the last look.
    #[inline]
    fn mainline_headroom(&self) -> bool {
        self.room == Room::Mainline && !(self.waiting_headroom || self.no_decaying_headroom)
    }

    /// Whether nothing of it reaches what a CPU needs, and contention counts.
    pub(crate) fn is_mainline(&self) -> bool {
        self.mainline_headroom()
            && !self.util_est_faster
            && !self.util_est_boost
            && self.runnable_boost
    }

    /// Adds headroom to util where that is a share of it, as before 6.8: for the energy estimate,
    /// and for the most that a CPU can ask for. The series, which is of later kernels, leaves
    /// mainline's there.
    pub(crate) fn room_pre_6_8(&self, util: Util) -> Util {
        match self.room {
            Room::Percent(percent) => map_util_perf_percent(util, percent),
            Room::Mainline | Room::UpdateDelay => map_util_perf(util),
        }
    }

    /// Whether somebody wants to know how long tasks wait.
    pub(crate) fn tracks_waiting(&self) -> bool {
        self.waiting_avg || self.waiting_headroom
    }
}

impl CpuSeries {
    /// Whether margin and response time are mainline's.
    pub(crate) fn is_mainline(&self) -> bool {
        self.limit.is_none() && self.response_time_mult.is_none()
    }

    /// Whether `util` fits on the CPU, which has `capacity_of` to give, by the margin in force; `None`: by
    /// mainline's.
    #[inline]
    pub(crate) fn fits(&self, util: Util, capacity_of: Capacity) -> Option<bool> {
        self.limit.map(|limit| match limit {
            Limit::Threshold(threshold) => util < threshold,
            Limit::Percent(percent) => fits_capacity_percent(util, capacity_of, percent),
        })
    }
}

impl Machine {
    /// The util that `cpu` should be able to serve for `util`: response time and headroom applied,
    /// the clamps not yet (the first half of `sugov_effective_cpu_perf`). `effects`: where the
    /// kernel comes here, too, so that `util` is from now on what later ones are compared with.
    #[inline]
    pub(crate) fn dvfs_util(
        &self,
        cpu: CpuId,
        util: Util,
        effects: Option<&mut Effects>,
    ) -> (Util, Decided) {
        let c = self.cpu(cpu);
        let util = match c.slots.series.response_time_mult {
            Some(mult) => sugov_apply_response_time(util, mult),
            None => util,
        };
        if self.slots.series.mainline_headroom() {
            return (map_util_perf(util), Decided::Growth);
        }
        self.dvfs_util_of_series(cpu, util, effects)
    }

    #[inline(never)]
    fn dvfs_util_of_series(
        &self,
        cpu: CpuId,
        util: Util,
        effects: Option<&mut Effects>,
    ) -> (Util, Decided) {
        let own = self.cpu(cpu).slots.series.last_update_util;
        let last = effects.as_ref().and_then(|e| e.last_look(cpu)).unwrap_or(own);
        let perf = self.headroom(cpu, last).sugov_apply_dvfs_headroom(util);
        if let Some(effects) = effects
            && self.slots.series.no_decaying_headroom
        {
            effects.looked(cpu, util);
        }
        perf
    }

    fn headroom(&self, cpu: CpuId, last: Util) -> Headroom<'_> {
        let c = self.cpu(cpu);
        let delay = || {
            // Whoever else is current, idle or a kthread, carries the slice of its creation.
            let slice = self.fair_curr(cpu).map_or(self.base_slice.0, |curr| curr.slice);
            let tick = tick_usec(self.platform.hz);
            dvfs_delay_us(c.h_nr_runnable(), slice, tick, c.slots.series.dvfs_update_delay_us)
        };
        let growth = match self.slots.series.room {
            Room::Mainline => Growth::Quarter,
            Room::Percent(percent) => Growth::Percent(percent),
            Room::UpdateDelay => Growth::DelayUs(delay()),
        };
        Headroom {
            decay: self.decay,
            growth,
            waiting_avg: self.slots.series.waiting_headroom.then(|| self.waiting_avg(cpu)),
            last_update_util: self.slots.series.no_decaying_headroom.then_some(last),
        }
    }

    /// `cfs_rq->avg.waiting_avg`: of all tasks queued on the CPU.
    fn waiting_avg(&self, cpu: CpuId) -> Util {
        let queued = self.fair_queued(cpu).filter(|(_, entity)| !entity.sched_delayed);
        queued.fold(Util(0), |sum, (task, _)| sum + self.task(task).slots.series.waiting.value())
    }

    /// The util that UTIL_EST_FASTER makes of the running time of the CPU's task; `None`: it is
    /// off, or no fair task runs.
    pub(crate) fn util_est_faster(&self, cpu: CpuId) -> Option<Util> {
        if !self.slots.series.util_est_faster {
            return None;
        }
        let curr = self.fair_curr(cpu)?;
        let task = curr.id.as_task()?;
        let ran = curr.sum_exec_runtime.wrapping_sub(self.task(task).slept_at);
        Some(util_est_faster(self.decay, ran))
    }
}

impl Machine {
    /// The task's `rampup_multiplier`; 1 without sched-qos.
    pub(crate) fn rampup_multiplier(&self, task: TaskId) -> u32 {
        match self.slots.series.rampup_multiplier {
            Some(_) => self.task(task).slots.series.qos.rampup_multiplier,
            None => 1,
        }
    }

    /// Whether the task has no util_est.
    pub(crate) fn util_est_off(&self, task: TaskId) -> bool {
        self.slots.series.util_est_off_at_0 && self.rampup_multiplier(task) == 0
    }
}
