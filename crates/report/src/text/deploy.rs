//! Where real-time tasks go: who has a place, by which test, and the commands that put them there.

use super::Style;
use super::page::{Ink, Line, Page, Table};
use risetime_deploy::plan::{Attr, NoRoom, Plan, Planned, Rules};
use risetime_kernel::units::{CpuId, Span};
use risetime_model::{Needs, Platform};
use std::collections::BTreeSet;

/// A plan with its commands, or who has no place and why.
pub fn deploy_plan(
    needs: &Needs,
    platform: &Platform,
    rules: Rules,
    plan: &Result<Plan, Vec<NoRoom>>,
    style: &Style,
) -> String {
    let mut page = Page::new(style);
    let (name, on, all) = (&needs.name, &platform.name, needs.tasks.len());
    match plan {
        Ok(plan) => {
            let s = if all == 1 { "task has" } else { "tasks have" };
            page.paragraph(0, Ink::Strong, &format!("{name} on {on}: {all} {s} a place."));
            placed(&mut page, plan);
        }
        Err(missing) => {
            let what = format!("{name} on {on}: {} of {all} tasks have no place.", missing.len());
            page.paragraph(0, Ink::Bad, &what);
            page.blank();
            for m in missing {
                page.hanging("  ", Ink::Plain, &format!("{}: {}: {}", m.at, m.name, m.reason));
            }
            page.blank();
            let hint = format!(
                "The largest task first, on the {:?} CPU that fits, under {:?}. A larger platform, a shorter runtime or a longer period helps; so may --fit or --scheduler.",
                rules.fit, rules.scheduler
            );
            page.paragraph(0, Ink::Dim, &hint.replace("Edf", "EDF").replace("Rm,", "RM,"));
        }
    }
    page.finish()
}

fn placed(page: &mut Page<'_>, plan: &Plan) {
    page.blank();
    let mut table =
        Table::new(["task", "CPU", "policy", "runtime", "deadline", "period", "guaranteed"]);
    for t in &plan.tasks {
        let us = |span: Span| format!("{} µs", span.0 / 1000);
        let dash = || "–".to_string();
        let [policy, runtime, deadline, period] = match t.attr {
            Attr::Deadline(r, d, p) => ["SCHED_DEADLINE".to_string(), us(r), us(d), us(p)],
            Attr::Fifo(priority) => [format!("SCHED_FIFO {priority}"), dash(), dash(), dash()],
        };
        let promised = if t.guaranteed { "yes" } else { "no" };
        table.row([
            t.name.clone(),
            t.cpu.0.to_string(),
            policy,
            runtime,
            deadline,
            period,
            promised.into(),
        ]);
    }
    page.table(0, &table);
    if !plan.used.is_empty() {
        page.blank();
    }
    for used in &plan.used {
        let what = format!(
            "{:.1} % full: {} ({}): {}",
            used.percent, used.test.name, used.test.source, used.reason
        );
        page.hanging(&format!("{}  ", used.cpu), Ink::Plain, &what);
    }
    page.blank();
    page.paragraph(0, Ink::Strong, "To put them there, as root:");
    let deadline = |t: &&Planned| matches!(t.attr, Attr::Deadline(..));
    let alone: BTreeSet<CpuId> = plan.tasks.iter().filter(deadline).map(|t| t.cpu).collect();
    let mut command = |text: String| page.line(Line::new().plain("  ").ink(Ink::Dim, text));
    for cpu in &alone {
        let dir = format!("/sys/fs/cgroup/rt-cpu{}", cpu.0);
        command(format!("mkdir {dir}"));
        command(format!("echo {} > {dir}/cpuset.cpus", cpu.0));
        command(format!("echo root > {dir}/cpuset.cpus.partition"));
    }
    for t in &plan.tasks {
        command(match t.attr {
            Attr::Deadline(r, d, p) => format!(
                "echo PID > /sys/fs/cgroup/rt-cpu{}/cgroup.procs && chrt -d -T {} -D {} -P {} -p 0 PID    # {}",
                t.cpu.0, r.0, d.0, p.0, t.name
            ),
            Attr::Fifo(priority) => match alone.contains(&t.cpu) {
                true => format!(
                    "echo PID > /sys/fs/cgroup/rt-cpu{}/cgroup.procs && chrt -f -p {priority} PID    # {}",
                    t.cpu.0, t.name
                ),
                false => format!(
                    "taskset -pc {} PID && chrt -f -p {priority} PID    # {}",
                    t.cpu.0, t.name
                ),
            },
        });
    }
}
