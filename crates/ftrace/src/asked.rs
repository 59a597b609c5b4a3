//! Sources of a trace: the events a kernel is asked for, and probes where it has none.
//!
//! ```text
//! always     events, and the scheduler's signals on its bare tracepoints; before 6.14, where a probe has to be a
//!            kprobe, which costs more, only what is over by time 0 (`rt_before`) and what is rare (`rt_rare`)
//! decisions  where asked for, from what the kernel decides: `sched_waking`, the entities and the
//!            runqueue where a task was queued or begins to run, loads, `need_resched`, ticks, looks of
//!            governors and at domains, choices of `menu`; with the other names that releases have for that
//! ```
//!
//! Each is one more thing that takes the machine's time: a few µs at a switch, where everything is
//! asked for. Events are `SYSTEM/NAME`, probes lines as [`Probe`](crate::probe::Probe) reads them.
//!
//! Source: include/trace/events/sched.h; kernel/sched/sched.h:`cfs_rq`; include/linux/sched.h:
//! `sched_entity`; kernel/sched/cpufreq_schedutil.c; drivers/cpuidle/governors/menu.c; kernel/time/tick-sched.h.

use risetime_kernel::{KernelRev, features};

/// Facts that a run wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// True if the trace is also to tell from what the kernel decides.
    pub decisions: bool,
    /// True if CPUs go offline or come back.
    pub hotplug: bool,
    /// True if there are task groups.
    pub groups: bool,
    /// True if a task group has a quota.
    pub quotas: bool,
}

/// The scheduler's events.
const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "power/cpu_frequency",
    "power/cpu_idle",
];

/// Events of the steps in which CPUs go offline or come back.
const HOTPLUG: &[&str] = &["cpuhp/cpuhp_enter", "cpuhp/cpuhp_exit"];

/// The scheduler's signals, on its bare tracepoints.
const PROBES: &[&str] = &[
    "t:rt/pelt_se pelt_se_tp pid=+{task_struct.pid-task_struct.se}($arg1):s32 util=se->avg.util_avg runnable=se->avg.runnable_avg \
     sum=se->avg.util_sum contrib=se->avg.period_contrib at=se->avg.last_update_time my_q=se->my_q:x64",
    "t:rt/uest_se sched_util_est_se_tp pid=+{task_struct.pid-task_struct.se}($arg1):s32 est=se->avg.util_est my_q=se->my_q:x64",
    "t:rt/pelt_cfs pelt_cfs_tp util=cfs_rq->avg.util_avg runnable=cfs_rq->avg.runnable_avg est=cfs_rq->avg.util_est \
     sum=cfs_rq->avg.util_sum contrib=cfs_rq->avg.period_contrib at=cfs_rq->avg.last_update_time cpu=cfs_rq->rq->cpu \
     ov=cfs_rq->rq->rd->overutilized parent=cfs_rq->tg->parent:x64",
    "t:rt/pelt_rt pelt_rt_tp util=rq->avg_rt.util_avg sum=rq->avg_rt.util_sum contrib=rq->avg_rt.period_contrib \
     at=rq->avg_rt.last_update_time cpu=rq->cpu",
    "t:rt/pelt_dl pelt_dl_tp util=rq->avg_dl.util_avg sum=rq->avg_dl.util_sum contrib=rq->avg_dl.period_contrib \
     at=rq->avg_dl.last_update_time cpu=rq->cpu",
    "t:rt/pelt_irq pelt_irq_tp util=rq->avg_irq.util_avg sum=rq->avg_irq.util_sum contrib=rq->avg_irq.period_contrib \
     at=rq->avg_irq.last_update_time cpu=rq->cpu",
    "t:rt/ovu sched_overutilized_tp ov=overutilized",
    // What `menu` remembers lies at a fixed distance from the device it is called for: both are
    // variables of each CPU, and so is where the last search for any CPU ended, and the runqueue.
    "f:rt_before/menu menu_select \
     needs=+{%menu_devices+menu_device.needs_update-%cpuidle_dev}($arg2):s32 tick=+{%menu_devices+menu_device.tick_wakeup-%cpuidle_dev}($arg2):s32 \
     next=+{%menu_devices+menu_device.next_timer_ns-%cpuidle_dev}($arg2):u64 bucket=+{%menu_devices+menu_device.bucket-%cpuidle_dev}($arg2):u32 \
     f0=+{%menu_devices+menu_device.correction_factor-%cpuidle_dev}($arg2):x64 f1=+{%menu_devices+menu_device.correction_factor+8-%cpuidle_dev}($arg2):x64 \
     f2=+{%menu_devices+menu_device.correction_factor+16-%cpuidle_dev}($arg2):x64 \
     i0=+{%menu_devices+menu_device.intervals-%cpuidle_dev}($arg2):x64 i1=+{%menu_devices+menu_device.intervals+8-%cpuidle_dev}($arg2):x64 \
     i2=+{%menu_devices+menu_device.intervals+16-%cpuidle_dev}($arg2):x64 i3=+{%menu_devices+menu_device.intervals+24-%cpuidle_dev}($arg2):x64 \
     ptr=+{%menu_devices+menu_device.interval_ptr-%cpuidle_dev}($arg2):s32 \
     distribute=+{%distribute_cpu_mask_prev-%cpuidle_dev}($arg2):u32| \
     extra=+{%runqueues+rq.dl+dl_rq.extra_bw-%cpuidle_dev}($arg2):u64| \
     total=+{root_domain.dl_bw+dl_bw.total_bw}(+{%runqueues+rq.rd-%cpuidle_dev}($arg2)):u64| \
     stamp=+{%runqueues+rq.idle_stamp-%cpuidle_dev}($arg2):u64| \
     util=+{%runqueues+rq.cfs+cfs_rq.avg+sched_avg.util_avg-%cpuidle_dev}($arg2):u64| \
     runnable=+{%runqueues+rq.cfs+cfs_rq.avg+sched_avg.runnable_avg-%cpuidle_dev}($arg2):u64| \
     sum=+{%runqueues+rq.cfs+cfs_rq.avg+sched_avg.util_sum-%cpuidle_dev}($arg2):u32| \
     contrib=+{%runqueues+rq.cfs+cfs_rq.avg+sched_avg.period_contrib-%cpuidle_dev}($arg2):u32| \
     at=+{%runqueues+rq.cfs+cfs_rq.avg+sched_avg.last_update_time-%cpuidle_dev}($arg2):u64| \
     slept=+{cpuidle_device.last_residency_ns}($arg2):s64 last=+{cpuidle_device.last_state_idx}($arg2):s32",
    // With it, when this CPU balances next, in jiffies: the event is part of a look at its lowest
    // domain, before that is noted.
    "t:rt/cap sched_cpu_capacity_tp cpu=rq->cpu cap=rq->cpu_capacity \
     now=@jiffies_64:u64 next=rq->next_balance \
     l0=rq->sd->last_balance i0=rq->sd->balance_interval \
     l1=rq->sd->parent->last_balance i1=rq->sd->parent->balance_interval",
];

/// Refills of a group's quota. The group is told by its place in the hierarchy's list of them
/// (`css.id`), which lies at a fixed distance from its timer.
const PERIODS: &str = "f:rt/cfs_period sched_cfs_period_timer \
     css=+{task_group.css+cgroup_subsys_state.id-task_group.cfs_bandwidth-cfs_bandwidth.period_timer}($arg1):s32";

/// Begin of a wakeup.
const WAKING: &str = "sched/sched_waking";

/// Fields of `util_est` before it was one number (up to 6.7).
const UTIL_EST: [(&str, &str); 2] = [
    (
        "est=se->avg.util_est",
        "est=se->avg.util_est|se->avg.util_est.enqueued ewma=se->avg.util_est.ewma|",
    ),
    ("est=cfs_rq->avg.util_est", "est=cfs_rq->avg.util_est|cfs_rq->avg.util_est.enqueued"),
];

/// `need_resched` is set for whoever runs on a CPU.
const RESCHED: &str = "t:rt/resched sched_set_need_resched_tp cpu=cpu tif=tif";

/// `need_resched` by the function's entry, where there is no tracepoint for it: it may be set
/// already.
const RESCHED_CURR: &str =
    "f:rt/resched_curr resched_curr cpu=rq->cpu flags=rq->curr->thread_info.flags";

/// A CPU's tick begins.
const SCHED_TICK: &str = "f:rt/tick sched_tick|scheduler_tick";

/// A task's estimate joins its CPU's, or leaves it.
const UTIL_EST_CFS: &str = "t:rt/uest_cfs sched_util_est_cfs_tp \
     est=cfs_rq->avg.util_est|cfs_rq->avg.util_est.enqueued cpu=cfs_rq->rq->cpu";

/// A governor looks at a CPU: whose policy it is says the CPU's own part of it (`sugov_cpu`), which is a variable of each
/// CPU, as are its runqueue and the state of its tick. What comes of a look the next one of its policy shows.
fn governors() -> [String; 2] {
    let policy = "(+{sugov_cpu.sg_policy}($arg1))";
    let avg = "+{%runqueues+rq.cfs+cfs_rq.avg+sched_avg.";
    let clamp = "+{%runqueues+rq.uclamp-%sugov_cpu";
    let told = format!(
        "cpu=+{{sugov_cpu.cpu}}($arg1):u32 policy=+{{sugov_cpu.sg_policy}}($arg1):x64 time=$arg2:u64 \
         next=+{{sugov_policy.next_freq}}{policy}:u32 cached=+{{sugov_policy.cached_raw_freq}}{policy}:u32 \
         last=+{{sugov_policy.last_freq_update_time}}{policy}:u64 \
         limits=+{{sugov_policy.limits_changed}}{policy}:u8 need=+{{sugov_policy.need_freq_update}}{policy}:u8 \
         min=+{{sugov_cpu.bw_min}}($arg1):u64|+{{sugov_cpu.bw_dl}}($arg1):u64 \
         saved=+{{sugov_cpu.saved_idle_calls}}($arg1):u64 \
         calls=+{{%tick_cpu_sched+tick_sched.idle_calls-%sugov_cpu}}($arg1):u64 \
         bw=+{{%runqueues+rq.dl+dl_rq.running_bw-%sugov_cpu}}($arg1):u64 \
         util={avg}util_avg-%sugov_cpu}}($arg1):u64 runnable={avg}runnable_avg-%sugov_cpu}}($arg1):u64 \
         est={avg}util_est-%sugov_cpu}}($arg1):u32 \
         rt=+{{%runqueues+rq.rt.rt_nr_running-%sugov_cpu}}($arg1):u32| \
         umin={clamp}}}($arg1):u32| umax={clamp}+#uclamp_rq}}($arg1):u32|"
    );
    [
        format!("f:rt/gov_single sugov_update_single_freq {told}"),
        format!("f:rt/gov_shared sugov_update_shared {told}"),
    ]
}

/// A look at one domain begins.
const LOOK: &str = "f:rt/look sched_balance_rq|load_balance cpu=this_cpu level=sd->level idle=idle failed=sd->nr_balance_failed \
     now=@jiffies_64:u64 next=this_rq->next_balance \
     ticked=+{%tick_cpu_sched+tick_sched.last_tick_jiffies-%runqueues}($arg2):u64| \
     l0=this_rq->sd->last_balance i0=this_rq->sd->balance_interval \
     l1=this_rq->sd->parent->last_balance i1=this_rq->sd->parent->balance_interval";

/// `jiffies` at the CPU's last tick: all there is where a kernel does not keep the address of the variable.
const TICKED: &str =
    " ticked=+{%tick_cpu_sched+tick_sched.last_tick_jiffies-%runqueues}($arg1):u64|";

/// Values that `menu` is told, behind what it remembers: from when on the CPU idles, the next event
/// of its clock, whether its tick is stopped. These are variables of each CPU, too.
const TOLD: &str = " now=+{%tick_cpu_sched+tick_sched.idle_entrytime-%cpuidle_dev}($arg2):s64 \
     event=+{clock_event_device.next_event}(+{%tick_cpu_device+tick_device.evtdev-%cpuidle_dev}($arg2)):s64 \
     stopped=+{%tick_cpu_sched+tick_sched.flags-%cpuidle_dev}($arg2):b1@1/64|+{%tick_cpu_sched+tick_sched.nohz_mode+4-%cpuidle_dev}($arg2):b1@1/32";

/// The state that `menu` chose, and the next timer if it asked for it.
const CHOSEN: &str = "f:rt/menu_ret menu_select%return state=$retval:s32 stop=+0($arg3):u8 \
     told=+{%menu_devices+menu_device.next_timer_ns-%cpuidle_dev}($arg2):u64";

/// Whether it stops the tick, by what is done then, for kernels that do not tell it with the choice.
const TICK: [&str; 2] =
    ["f:rt/tick_stops tick_nohz_idle_stop_tick", "f:rt/tick_stays tick_nohz_idle_retain_tick"];

/// A group that is taken off its queue with all that it holds, and put back, and those inside.
const THROTTLED: [&str; 2] = [
    "f:rt/tg_down tg_throttle_down cpu=+{rq.cpu}($arg2):u32 \
     css=+{task_group.css+cgroup_subsys_state.id}($arg1):u32",
    "f:rt/tg_up tg_unthrottle_up cpu=+{rq.cpu}($arg2):u32 \
     css=+{task_group.css+cgroup_subsys_state.id}($arg1):u32",
];

/// The events of a run, `SYSTEM/NAME` each.
pub fn events(wanted: Wanted) -> Vec<String> {
    let plugged = if wanted.hotplug { HOTPLUG } else { &[][..] };
    let waking = wanted.decisions.then_some(&WAKING);
    EVENTS.iter().chain(plugged).chain(waking).map(|s| s.to_string()).collect()
}

/// The probes of a run on a kernel of `rev`, a line each.
pub fn probes(wanted: Wanted, rev: KernelRev) -> Vec<String> {
    let limited = wanted.quotas;
    let always = PROBES.iter().copied().chain(limited.then_some(PERIODS)).map(String::from);
    if !wanted.decisions {
        // Kernels that take no `t:` tell by a kprobe when each CPU balances next, and by no other what happens often.
        let rare = |probe: String| match probe.strip_prefix("t:rt/cap ") {
            Some(rest) if !rev.has(features::TRACEPOINT_PROBES) => {
                format!("t:rt_rare/cap {rest}{TICKED}")
            }
            _ => probe,
        };
        return always.map(rare).collect();
    }
    let traced = rev.has(features::SCHED_SET_NEED_RESCHED_TP);
    let resched = if traced { RESCHED } else { RESCHED_CURR };
    let tick = TICK.into_iter().filter(|_| !rev.has(features::RETURN_PROBE_ARGS));
    let more =
        [resched, LOOK, CHOSEN, UTIL_EST_CFS, SCHED_TICK].into_iter().chain(tick).map(String::from);
    let queues = wanted.groups && !rev.has(features::FLAT_QUEUE);
    let throttled = limited && !rev.has(features::TASK_THROTTLE);
    always
        .map(|probe| in_full(probe, queues))
        .chain(placed(rev, queues))
        .chain(governors())
        .chain(more)
        .chain(throttled.then_some(THROTTLED).into_iter().flatten().map(String::from))
        .collect()
}

/// An ordinary probe with what decisions want of it; `queues`: groups have queues of their own.
fn in_full(probe: String, queues: bool) -> String {
    let mut probe = probe.replace("rt_before/menu", "rt/menu");
    for (now, before) in UTIL_EST {
        probe = probe.replace(&format!("{now} "), &format!("{before} "));
    }
    let name = probe.split(' ').next().unwrap_or_default();
    let group = |fields: &str| if queues { fields.to_string() } else { String::new() };
    let more = match name {
        "t:rt/pelt_se" => {
            let of_group = group(" css=se->my_q->tg->css.id cpu=se->cfs_rq->rq->cpu");
            entity("", "se->") + &load("se->") + &of_group
        }
        "t:rt/pelt_cfs" => {
            queue("cfs_rq->") + &load("cfs_rq->") + &group(" css=cfs_rq->tg->css.id")
        }
        "f:rt/menu" => TOLD.into(),
        "t:rt/cap" => TICKED.into(),
        _ => String::new(),
    };
    probe + &more
}

/// Entities and runqueue where a task has been queued, and where one begins to run.
///
/// Where groups have queues of their own, the entities of the two groups above a task are told as well: nothing that is
/// drawn has more.
///
/// Before 6.14 no probe can stand on the scheduler's tracepoint of a switch (see [`probe`](crate::probe)): pressure
/// stall information hears of the same tasks just before. Before 6.9 none can read a function's arguments
/// at its return: there a task that has been queued is told of where it may take the CPU from another of
/// its class.
fn placed(rev: KernelRev, queues: bool) -> [String; 2] {
    let rq = |task: &str| {
        let rq = format!("{task}->se.cfs_rq->rq->");
        format!(" cpu={rq}cpu|{}", queue(&format!("{rq}cfs.")))
    };
    let queued = match rev.has(features::RETURN_PROBE_ARGS) {
        true => "enqueue_task_fair%return",
        false => "check_preempt_wakeup",
    };
    let switched = match rev.has(features::TRACEPOINT_PROBES) {
        true => "t:rt/switch sched_switch",
        false => "f:rt/switch psi_task_switch",
    };
    let (entity_of, prev, next) =
        (entity("", "p->se."), entity("p", "prev->se."), entity("n", "next->se."));
    let groups = |prefix, task| if queues { groups(prefix, task) } else { String::new() };
    [
        format!("f:rt/queued {queued} pid=p->pid{entity_of}{}{}", rq("p"), groups("g", "p")),
        format!(
            "{switched} ppid=prev->pid{prev}{} npid=next->pid{next}{}{}{}{}",
            deadline("p", "prev"),
            deadline("n", "next"),
            rq("next"),
            groups("p", "prev"),
            groups("n", "next")
        ),
    ]
}

/// The entities of the groups above `task`, the inner one first. 6.1 takes no name that begins with a digit.
fn groups(prefix: &str, task: &str) -> String {
    let above = |level: &str, se: &str| {
        let prefix = format!("{prefix}{level}");
        let whose = format!(" {prefix}css={se}my_q->tg->css.id {prefix}cpu={se}cfs_rq->rq->cpu");
        whose + &entity(&prefix, se)
    };
    let inner = format!("{task}->se.parent->");
    above("1", &inner) + &above("2", &format!("{inner}parent->"))
}

/// A task's entity, whose fields `se` leads to; a release may not have all of them.
fn entity(prefix: &str, se: &str) -> String {
    format!(
        " {prefix}vruntime={se}vruntime {prefix}deadline={se}deadline| {prefix}vlag={se}vlag| \
         {prefix}slice={se}slice| {prefix}vprot={se}vprot| \
         {prefix}weight={se}h_load.weight|{se}load.weight"
    )
}

/// The arguments for the runtime left of a deadline task's instance, and its deadline.
fn deadline(prefix: &str, task: &str) -> String {
    format!(" {prefix}runtime={task}->dl.runtime {prefix}due={task}->dl.deadline")
}

/// The load of a task or of a CPU's fair tasks, whose fields `of` leads to.
fn load(of: &str) -> String {
    format!(" load={of}avg.load_avg lsum={of}avg.load_sum")
}

/// A CPU's fair runqueue, whose fields `cfs` leads to: names of 7.x, and what they were before.
fn queue(cfs: &str) -> String {
    format!(
        " zero={cfs}zero_vruntime|{cfs}min_vruntime| sumwv={cfs}sum_w_vruntime|{cfs}avg_vruntime| \
         sumw={cfs}sum_weight|{cfs}avg_load| nr={cfs}nr_queued|{cfs}nr_running|"
    )
}
