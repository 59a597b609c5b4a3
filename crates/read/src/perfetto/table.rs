//! Events of the kernel as Perfetto numbers them: one row each, with the kernel's names.
//!
//! Source: Perfetto, protos/perfetto/trace/ftrace/: ftrace_event.proto and the file of each group.

/// An event: its number in `FtraceEvent`, its name, and its fields by their numbers from 1.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) fields: &'static [&'static str],
}

const fn row(number: u32, name: &'static str, fields: &'static [&'static str]) -> Row {
    Row { number, name, fields }
}

const WAKEUP: &[&str] = &["comm", "pid", "prio", "success", "target_cpu"];
const POWER: &[&str] = &["state", "cpu_id"];
const CLOCK: &[&str] = &["name", "state", "cpu_id"];
const TIMER: &[&str] = &["hrtimer"];

/// All that are read, by their numbers.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    row(3, "print", &["ip", "buf"]),
    row(SWITCH, "sched_switch",
        &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]),
    row(11, "cpu_frequency", POWER),
    row(12, "cpu_frequency_limits", &["min_freq", "max_freq", "cpu_id"]),
    row(13, "cpu_idle", POWER),
    row(14, "clock_enable", CLOCK),
    row(15, "clock_disable", CLOCK),
    row(16, "clock_set_rate", CLOCK),
    row(17, "sched_wakeup", WAKEUP),
    row(18, "sched_blocked_reason", &["pid", "caller", "io_wait"]),
    row(19, "sched_cpu_hotplug", &["affected_cpu", "error", "status"]),
    row(WAKING, "sched_waking", WAKEUP),
    row(21, "ipi_entry", &["reason"]),
    row(22, "ipi_exit", &["reason"]),
    row(24, "softirq_entry", &["vec"]),
    row(25, "softirq_exit", &["vec"]),
    row(26, "softirq_raise", &["vec"]),
    row(36, "irq_handler_entry", &["irq", "name", "handler"]),
    row(37, "irq_handler_exit", &["irq", "ret"]),
    row(113, "suspend_resume", &["action", "val", "start"]),
    row(114, "sched_wakeup_new", WAKEUP),
    row(235, "task_newtask", &["pid", "comm", "clone_flags", "oom_score_adj"]),
    row(236, "task_rename", &["pid", "oldcomm", "newcomm", "oom_score_adj"]),
    row(237, "sched_process_exec", &["filename", "pid", "old_pid"]),
    row(238, "sched_process_exit", &["comm", "pid", "tgid", "prio"]),
    row(239, "sched_process_fork", &["parent_comm", "parent_pid", "child_comm", "child_pid"]),
    row(240, "sched_process_free", &["comm", "pid", "prio"]),
    row(241, "sched_process_hang", &["comm", "pid"]),
    row(242, "sched_process_wait", &["comm", "pid", "prio"]),
    row(320, "clk_enable", &["name"]),
    row(321, "clk_disable", &["name"]),
    row(322, "clk_set_rate", &["name", "rate"]),
    row(332, "gpu_frequency", &["gpu_id", "state"]),
    row(341, "thermal_temperature", &["id", "temp", "temp_prev", "thermal_zone"]),
    row(342, "cdev_update", &["target", "type"]),
    row(343, "cpuhp_exit", &["cpu", "idx", "ret", "state"]),
    row(344, "cpuhp_multi_enter", &["cpu", "fun", "idx", "target"]),
    row(345, "cpuhp_enter", &["cpu", "fun", "idx", "target"]),
    row(346, "cpuhp_latency", &["cpu", "ret", "state", "time"]),
    row(352, "cpuhp_pause", &["active_cpus", "cpus", "pause", "time"]),
    row(353, "sched_pi_setprio", &["comm", "newprio", "oldprio", "pid"]),
    row(421, "sched_cpu_util_cfs",
        &["active", "capacity", "capacity_orig", "cpu", "cpu_importance", "cpu_util", "exit_lat",
          "group_capacity", "grp_overutilized", "idle_cpu", "nr_running", "spare_cap", "task_fits",
          "wake_group_util", "wake_util"]),
    row(491, "sched_migrate_task",
        &["comm", "pid", "prio", "orig_cpu", "dest_cpu", "running", "load"]),
    row(508, "dcvsh_freq", &["cpu", "freq"]),
    row(540, "sched_wakeup_task_attr",
        &["pid", "cpu_affinity", "task_util", "uclamp_min", "vruntime"]),
    row(552, "hrtimer_cancel", TIMER),
];

/// Numbers of the events that a compact form replaces.
pub(super) const SWITCH: u32 = 4;
/// See [`SWITCH`].
pub(super) const WAKING: u32 = 20;

/// Place of the row of `sched_waking`.
pub(super) const WAKING_PLACE: usize = known(WAKING);
/// Place of the row of `sched_switch`.
pub(super) const SWITCH_PLACE: usize = known(SWITCH);

/// The place of the row of an event which has one.
const fn known(number: u32) -> usize {
    let mut place = 0;
    while TABLE[place].number != number {
        place += 1;
    }
    place
}

/// Returns the place of the row of the event with this number; `None`: no row has it.
#[inline]
pub(super) fn place_of(number: u32) -> Option<usize> {
    TABLE.binary_search_by_key(&number, |row| row.number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_their_numbers() {
        assert!(TABLE.windows(2).all(|two| two[0].number < two[1].number));
        assert_eq!(place_of(236).map(|place| TABLE[place].name), Some("task_rename"));
        assert!(place_of(5).is_none() && TABLE.len() < 256);
    }
}
