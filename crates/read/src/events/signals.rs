//! Rows of the scheduler's signals: tracepoints that modules (LISA's, sched-analyzer's), vendors' trees and probes show.
//!
//! Where a trace has no sum, period or time of the last update, these are 0; the header then names no `util_sum`.

use super::{Fields, Row};
use crate::story::Story;
use crate::take::Stamp;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Util};
use risetime_trace::{Event, PressureClass};

/// `UTIL_AVG_UNCHANGED`: the flag bit in a task's `util_est`.
const UTIL_EST_FLAG: u64 = 1 << 31;

/// Fields of a signal of a CPU.
const OF_CPU: &[&[&str]] = &[
    &["cpu"],
    &["util", "util_avg"],
    &["runnable", "runnable_avg", "RBL_LOAD_AVG", "rbl_load"],
    &["est", "util_est"],
    &["sum", "util_sum"],
    &["contrib", "period_contrib"],
    &["at", "update_time", "last_update_time"],
    &["parent"],
    &["path"],
    &["ov"],
];

pub(super) const ROWS: &[Row] = &[
    Row {
        names: &[
            "pelt_se",
            "pelt_se_tp",
            "sched_pelt_se",
            "lisa__sched_pelt_se",
            "sched_load_se",
            "sched_load_avg_task",
            "sched_load_tracking_task",
        ],
        fields: &[
            &["pid"],
            &["comm"],
            &["cpu"],
            &["util", "util_avg"],
            &["runnable", "runnable_avg", "rbl_load"],
            &["sum", "util_sum"],
            &["contrib", "period_contrib"],
            &["at", "update_time", "last_update_time"],
            &["my_q"],
        ],
        signals: &["util_avg"],
        surveyed: true,
        take: pelt_task,
    },
    Row {
        names: &[
            "pelt_cfs",
            "pelt_cfs_tp",
            "sched_pelt_cfs",
            "lisa__sched_pelt_cfs",
            "sched_load_cfs_rq",
            "sched_load_avg_cpu",
        ],
        fields: OF_CPU,
        signals: &["cfs_rq"],
        surveyed: true,
        take: pelt_cfs,
    },
    Row {
        names: &[
            "pelt_rt",
            "pelt_rt_tp",
            "sched_pelt_rt",
            "lisa__sched_pelt_rt",
            "sched_load_rt_rq",
        ],
        fields: OF_CPU,
        signals: &["avg_rt"],
        surveyed: true,
        take: |story, stamp, fields| pressure(story, stamp, fields, PressureClass::Rt),
    },
    Row {
        names: &["pelt_dl", "pelt_dl_tp", "sched_pelt_dl", "lisa__sched_pelt_dl"],
        fields: OF_CPU,
        signals: &["avg_dl"],
        surveyed: true,
        take: |story, stamp, fields| pressure(story, stamp, fields, PressureClass::Dl),
    },
    Row {
        names: &["pelt_irq", "pelt_irq_tp", "sched_pelt_irq", "lisa__sched_pelt_irq"],
        fields: OF_CPU,
        signals: &["avg_irq"],
        surveyed: true,
        take: |story, stamp, fields| pressure(story, stamp, fields, PressureClass::Irq),
    },
    Row {
        names: &["pelt_thermal_tp", "pelt_hw_tp", "sched_pelt_thermal", "sched_pelt_hw"],
        fields: OF_CPU,
        signals: &["avg_hw"],
        surveyed: true,
        take: |story, stamp, fields| pressure(story, stamp, fields, PressureClass::Hw),
    },
    Row {
        names: &[
            "uest_se",
            "sched_util_est_se",
            "sched_util_est_se_tp",
            "lisa__sched_util_est_se",
            "sched_util_est_task",
        ],
        fields: &[
            &["pid"],
            &["comm"],
            &["est", "enqueued", "util_est_enqueued", "est_enqueued", "util_est"],
            &["ewma", "util_est_ewma", "est_ewma"],
            &["cpu"],
            &["my_q"],
        ],
        signals: &["util_est"],
        surveyed: true,
        take: util_est_task,
    },
    Row {
        names: &[
            "sched_util_est_cfs",
            "sched_util_est_cfs_tp",
            "lisa__sched_util_est_cfs",
            "sched_util_est_cpu",
        ],
        fields: &[
            &["cpu"],
            &["enqueued", "util_est_enqueued", "est", "util_est"],
            &["path"],
            &["parent"],
        ],
        signals: &["cfs_util_est"],
        surveyed: true,
        take: util_est_cfs,
    },
    Row {
        names: &[
            "cpu_capacity",
            "sched_cpu_capacity",
            "sched_cpu_capacity_tp",
            "lisa__sched_cpu_capacity",
            "cap",
        ],
        fields: &[
            &["cpu", "cpu_id"],
            &["capacity", "state", "cap"],
            &["capacity_orig"],
            &["capacity_curr"],
        ],
        signals: &["cpu_capacity"],
        surveyed: true,
        take: capacity,
    },
    Row {
        names: &["sched_overutilized", "sched_overutilized_tp", "lisa__sched_overutilized", "ovu"],
        fields: &[&["overutilized", "ov"]],
        signals: &["overutilized"],
        surveyed: false,
        take: |story, stamp, fields| {
            if let Some(on) = fields.number(0) {
                story.emit(stamp.at, &Event::Overutilized { on: on != 0 });
            }
        },
    },
    Row {
        names: &["uclamp_util_se", "lisa__uclamp_util_se"],
        fields: &[&["pid"], &["comm"], &["uclamp_min"], &["uclamp_max"]],
        signals: &["uclamp"],
        surveyed: true,
        take: |story, stamp, fields| {
            let Some(pid) = fields.number(0) else { return };
            let Some(task) = story.seen(stamp, pid as i32, fields.text(1), None) else { return };
            if let Some(clamps) = clamps(fields, 2) {
                story.emit(stamp.at, &Event::Clamps { task, clamps });
            }
        },
    },
    Row {
        names: &["uclamp_util_cfs", "lisa__uclamp_util_cfs"],
        fields: &[&["cpu"], &["uclamp_min"], &["uclamp_max"]],
        signals: &["uclamp"],
        surveyed: true,
        take: |story, stamp, fields| {
            if let (Some(cpu), Some(clamps)) = (cpu(fields), clamps(fields, 1)) {
                story.emit(stamp.at, &Event::CpuClamps { cpu, clamps });
            }
        },
    },
];

fn cpu(fields: &dyn Fields) -> Option<CpuId> {
    fields.number(0).and_then(|cpu| u32::try_from(cpu).ok()).map(CpuId)
}

fn util(fields: &dyn Fields, place: usize) -> Option<Util> {
    fields.number(place).map(|n| Util(n as u64 & 0xffff_ffff))
}

fn clamps(fields: &dyn Fields, place: usize) -> Option<Uclamp> {
    Some(Uclamp { min: util(fields, place)?, max: util(fields, place + 1)? })
}

/// Sum, period and time of the last update, as far as they are told.
fn position(fields: &dyn Fields, place: usize) -> (u64, u32, ClockPelt) {
    let n = |place| fields.number(place).unwrap_or(0);
    (n(place) as u64, n(place + 1) as u32, ClockPelt(n(place + 2) as u64))
}

/// Whether the signal is a group's: only the root's is the CPU's own.
fn is_group(fields: &dyn Fields, parent: usize, path: usize) -> bool {
    let named = fields.text(path).is_some_and(|path| {
        let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
        !matches!(&path[..end], b"" | b"/" | b"(null)")
    });
    fields.number(parent).unwrap_or(0) != 0 || named
}

fn pelt_task(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    // Entities of groups carry the group's runqueue, or no thread's number.
    let Some(pid) = fields.number(0).map(|pid| pid as i32).filter(|pid| *pid > 0) else { return };
    if fields.number(8).unwrap_or(0) != 0 {
        return;
    }
    let Some(util_avg) = util(fields, 3) else { return };
    let cpu = CpuId(fields.number(2).map_or(stamp.cpu, |cpu| cpu as u32));
    let (util_sum, period_contrib, at) = position(fields, 5);
    let last_update_time = story.pelt_time(at);
    let Some(task) = story.seen(stamp, pid, fields.text(1), None) else { return };
    let runnable_avg = util(fields, 4).unwrap_or_default();
    if util_sum > 0 {
        story.signal("util_sum");
    }
    story.emit(
        stamp.at,
        &Event::PeltTask {
            task,
            cpu,
            util_avg,
            runnable_avg,
            util_sum,
            period_contrib,
            last_update_time,
        },
    );
}

fn pelt_cfs(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    if is_group(fields, 7, 8) {
        return;
    }
    let (Some(cpu), Some(util_avg)) = (cpu(fields), util(fields, 1)) else { return };
    let (util_sum, period_contrib, at) = position(fields, 4);
    let last_update_time = story.pelt_time(at);
    story.emit(
        stamp.at,
        &Event::PeltCfs {
            cpu,
            util_avg,
            runnable_avg: util(fields, 2).unwrap_or_default(),
            util_est: util(fields, 3).unwrap_or_default(),
            util_sum,
            period_contrib,
            last_update_time,
        },
    );
    if let Some(on) = fields.number(9) {
        story.emit(stamp.at, &Event::Overutilized { on: on != 0 });
    }
}

fn pressure(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields, class: PressureClass) {
    let (Some(cpu), Some(util_avg)) = (cpu(fields), util(fields, 1)) else { return };
    let (util_sum, period_contrib, at) = position(fields, 4);
    let last_update_time = story.pelt_time(at);
    story.emit(
        stamp.at,
        &Event::PeltPressure { cpu, class, util_avg, util_sum, period_contrib, last_update_time },
    );
}

fn util_est_task(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let Some(pid) = fields.number(0).map(|pid| pid as i32).filter(|pid| *pid > 0) else { return };
    if fields.number(5).unwrap_or(0) != 0 {
        return;
    }
    let Some(est) = fields.number(2) else { return };
    // Up to 6.7 it is the larger one of two numbers.
    let est = (est as u64 & 0xffff_ffff & !UTIL_EST_FLAG)
        .max(fields.number(3).unwrap_or(0).max(0) as u64);
    if let Some(task) = story.seen(stamp, pid, fields.text(1), None) {
        story.emit(stamp.at, &Event::UtilEst { task, util_est: Util(est) });
    }
}

fn util_est_cfs(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    if is_group(fields, 3, 2) {
        return;
    }
    if let (Some(cpu), Some(util_est)) = (cpu(fields), util(fields, 1)) {
        story.emit(stamp.at, &Event::CfsUtilEst { cpu, util_est });
    }
}

fn capacity(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let (Some(cpu), Some(capacity)) = (cpu(fields), util(fields, 1)) else { return };
    if let Some(own) = util(fields, 2) {
        story.capacity(cpu.0, own.0);
    }
    story.emit(stamp.at, &Event::CpuCapacity { cpu, capacity: Capacity(capacity.0) });
}
