//! Where real-time tasks go: who has a place, by which test, and the commands that put them there.

use super::Style;
use super::page::{Ink, Page, Table};
use risetime_deploy::Fit;
use risetime_deploy::plan::{Attr, NoRoom, Plan, Planned, Rules};
use risetime_kernel::units::{CpuId, Span};
use risetime_model::{Needs, Platform};
use std::collections::BTreeSet;

/// A plan with its commands, or who has no place and why; `notes`: what a reader of either should know.
pub fn deploy_plan(
    needs: &Needs,
    platform: &Platform,
    rules: Rules,
    plan: &Result<Plan, Vec<NoRoom>>,
    notes: &[String],
    style: &Style,
) -> String {
    let mut page = Page::new(style);
    let (name, on, all) = (&needs.name, &platform.name, needs.tasks.len());
    match plan {
        Ok(plan) => {
            let s = if all == 1 { "task has" } else { "tasks have" };
            page.paragraph(0, Ink::Strong, &format!("{name} on {on}: {all} {s} a place."));
            placed(&mut page, plan, platform);
        }
        Err(missing) => {
            let what = format!("{name} on {on}: {} of {all} tasks have no place.", missing.len());
            page.paragraph(0, Ink::Bad, &what);
            page.blank();
            for m in missing {
                page.hanging("  ", Ink::Plain, &format!("{}: {}: {}", m.at, m.name, m.reason));
            }
            page.blank();
            let cpu = match rules.fit {
                Fit::First => "first",
                Fit::Best => "fullest",
                Fit::Worst => "emptiest",
            };
            let scheduler = format!("{:?}", rules.scheduler).to_uppercase();
            let hint = format!(
                "The largest task first, on the {cpu} CPU that fits, under {scheduler}. A larger platform, a shorter runtime or a longer period helps; so may --fit or --scheduler."
            );
            page.paragraph(0, Ink::Dim, &hint);
        }
    }
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.hanging("note: ", Ink::Dim, note));
    page.finish()
}

fn placed(page: &mut Page<'_>, plan: &Plan, platform: &Platform) {
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
    let mut alone: BTreeSet<CpuId> = plan.tasks.iter().filter(deadline).map(|t| t.cpu).collect();
    // The root group keeps a CPU, which is a root domain of its own when all others have left it.
    let kept = if alone.len() == platform.cpus().count() { alone.pop_last() } else { None };
    let mut command = |text: &str| {
        page.command("  ", Ink::Dim, text.split(' ').map(str::to_string));
    };
    if !alone.is_empty() {
        command("echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control");
    }
    for cpu in &alone {
        let dir = group(*cpu);
        command(&format!("mkdir {dir}"));
        command(&format!("echo {} > {dir}/cpuset.cpus", cpu.0));
        command(&format!("echo root > {dir}/cpuset.cpus.partition"));
    }
    for t in &plan.tasks {
        command(&format!("PID=$(pgrep -n -x {})", comm(&t.name)));
        if alone.contains(&t.cpu) {
            command(&format!("echo $PID > {}/cgroup.procs", group(t.cpu)));
        } else if kept != Some(t.cpu) {
            command(&format!("taskset -p -c {} $PID", t.cpu.0));
        }
        command(&match t.attr {
            Attr::Deadline(r, d, p) => {
                format!("chrt -d -T {} -D {} -P {} -p 0 $PID", r.0, d.0, p.0)
            }
            Attr::Fifo(priority) => format!("chrt -f -p {priority} $PID"),
        });
    }
}

/// What the kernel keeps of a task's name, 15 bytes, as a word of the shell.
pub(super) fn comm(name: &str) -> String {
    let mut kept = name;
    while kept.len() > 15 {
        kept = kept.char_indices().next_back().map_or("", |(end, _)| &kept[..end]);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    match kept.chars().all(plain) {
        true => kept.to_string(),
        false => format!("'{}'", kept.replace('\'', "'\\''")),
    }
}

/// Its cgroup: a root domain of that CPU alone.
pub(super) fn group(cpu: CpuId) -> String {
    format!("/sys/fs/cgroup/rt-cpu{}", cpu.0)
}
