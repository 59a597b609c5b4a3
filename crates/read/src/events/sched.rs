//! Rows of the scheduler: who runs where.

use super::states::Leaves;
use super::{Fields, Row};
use crate::story::Story;
use crate::take::Stamp;
use risetime_kernel::units::CpuId;
use risetime_trace::{Event, SwitchOut, Why};

pub(super) const ROWS: &[Row] = &[
    Row {
        names: &["sched_switch"],
        fields: &[
            &["prev_pid"],
            &["prev_comm"],
            &["prev_state"],
            &["next_pid"],
            &["next_comm"],
            &["prev_prio"],
            &["next_prio"],
        ],
        signals: &["sched_switch"],
        surveyed: true,
        take: switch,
    },
    Row {
        names: &["sched_wakeup"],
        fields: &[&["pid"], &["comm"], &["target_cpu", "cpu"], &["prio"], &["success"]],
        signals: &["sched_wakeup"],
        surveyed: true,
        take: |story, stamp, fields| wakeup(story, stamp, fields, false),
    },
    Row {
        names: &["sched_wakeup_new"],
        fields: &[&["pid"], &["comm"], &["target_cpu", "cpu"], &["prio"], &["success"]],
        signals: &["sched_wakeup_new"],
        surveyed: true,
        take: |story, stamp, fields| wakeup(story, stamp, fields, true),
    },
    Row {
        names: &["sched_waking"],
        fields: &[&["pid"], &["comm"], &["target_cpu", "cpu"], &["prio"]],
        signals: &["sched_waking"],
        surveyed: true,
        take: waking,
    },
    Row {
        names: &["sched_migrate_task"],
        fields: &[&["pid"], &["comm"], &["orig_cpu"], &["dest_cpu"], &["prio"]],
        signals: &["sched_migrate_task"],
        surveyed: true,
        take: migrate,
    },
    Row {
        names: &["sched_process_fork", "task_newtask"],
        fields: &[&["child_pid", "pid"], &["child_comm", "comm"], &["parent_pid"]],
        signals: &[],
        surveyed: true,
        take: fork,
    },
    Row {
        names: &["sched_process_exec"],
        fields: &[&["pid"], &["filename"], &["old_pid"]],
        signals: &[],
        surveyed: true,
        take: exec,
    },
    Row {
        names: &["task_rename"],
        fields: &[&["pid"], &["newcomm"], &["oldcomm"]],
        signals: &[],
        surveyed: true,
        take: |story, stamp, fields| {
            // From 6.18 on it tells of the current thread alone, and does not name it.
            let pid = fields.number(0).map_or(stamp.pid, |pid| pid as i32);
            if let Some(comm) = fields.text(1) {
                story.renamed(stamp, pid, comm);
            }
        },
    },
    Row {
        names: &["sched_process_exit"],
        fields: &[&["pid"], &["comm"], &["prio"]],
        signals: &[],
        surveyed: true,
        take: |story, stamp, fields| {
            let pid = fields.number(0).unwrap_or(i64::from(stamp.pid)) as i32;
            story.exits(pid);
        },
    },
    Row {
        names: &["irq_handler_entry", "softirq_entry"],
        fields: &[],
        signals: &["irq"],
        surveyed: false,
        take: |story, stamp, _| story.handler(stamp, true),
    },
    Row {
        names: &["irq_handler_exit", "softirq_exit"],
        fields: &[],
        signals: &["irq"],
        surveyed: false,
        take: |story, stamp, _| story.handler(stamp, false),
    },
];

fn switch(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let (Some(prev), Some(next)) = (fields.number(0), fields.number(3)) else {
        return;
    };
    let (prev, next) = (prev as i32, next as i32);
    if let Some(state) = fields.number(2) {
        story.states_mut().note(state);
    }
    let how = match story.states().leaves(fields, 2) {
        Some(Leaves::Surely(how)) => how,
        Some(Leaves::ExitedOrParked) if story.is_exiting(prev) => SwitchOut::Exited,
        // Also a state that says nothing: whoever left is taken to sleep, as most do.
        Some(Leaves::ExitedOrParked) | None => SwitchOut::Sleeping,
    };
    story.no_handler(stamp);
    let (comm, prio) = (story.comm(fields, 1), story.prio_of(fields, 5));
    let task = story.seen(stamp, prev, comm, prio);
    let (comm, prio) = (story.comm(fields, 4), story.prio_of(fields, 6));
    let next_task = story.seen(stamp, next, comm, prio);
    let cpu = CpuId(stamp.cpu);
    story.emit(
        stamp.at,
        &Event::Switch { cpu, prev: task.map(|task| (task, how)), next: next_task },
    );
    if how == SwitchOut::Exited && prev != 0 {
        story.gone(prev);
    }
}

fn wakeup(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields, new: bool) {
    let Some(pid) = fields.number(0).map(|pid| pid as i32).filter(|pid| *pid != 0) else { return };
    // Before 4.2 a wakeup that changed nothing was told, too.
    if fields.number(4) == Some(0) {
        return;
    }
    let cpu = CpuId(fields.number(2).map_or(stamp.cpu, |cpu| cpu as u32));
    if new {
        story.born(stamp, pid, fields.text(1), cpu, fields.number(3));
        return;
    }
    let (comm, prio) = (story.comm(fields, 1), story.prio_of(fields, 3));
    let known = story.seen_on(stamp, pid, comm, cpu, prio);
    if let Some(task) = known {
        story.emit(stamp.at, &Event::Wakeup { task, cpu, why: Why::Unknown });
    }
}

fn waking(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let Some(pid) = fields.number(0).map(|pid| pid as i32).filter(|pid| *pid != 0) else { return };
    let (comm, prio) = (story.comm(fields, 1), story.prio_of(fields, 3));
    if let Some(task) = story.seen(stamp, pid, comm, prio) {
        story.emit(stamp.at, &Event::Waking { task, by: CpuId(stamp.cpu) });
    }
}

fn migrate(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let (Some(pid), Some(from), Some(to)) = (fields.number(0), fields.number(2), fields.number(3))
    else {
        return;
    };
    let (comm, prio) = (story.comm(fields, 1), story.prio_of(fields, 4));
    if let Some(task) = story.seen(stamp, pid as i32, comm, prio) {
        let (from, to) = (CpuId(from as u32), CpuId(to as u32));
        story.emit(stamp.at, &Event::Migrate { task, from, to, why: Why::Unknown });
    }
}

fn fork(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    if let Some(pid) = fields.number(0) {
        story.forked(stamp, pid as i32, fields.text(1));
    }
}

fn exec(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let pid = fields.number(0).map_or(stamp.pid, |pid| pid as i32);
    let Some(path) = fields.text(1) else { return };
    // The new name is the end of the path, as `begin_new_exec` makes it.
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    story.renamed(stamp, pid, &name[..name.len().min(15)]);
}
