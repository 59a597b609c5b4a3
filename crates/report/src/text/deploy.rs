//! Where real-time tasks go: who has a place, by which test, and the commands that put them there.

use super::Style;
use super::page::{Ink, Page, Table};
use risetime_deploy::Fit;
use risetime_deploy::plan::{Attr, NoRoom, Plan, Planned, Rules};
use risetime_deploy::server::Group;
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

/// A group under a server with its commands, or who is late and why.
pub fn deploy_server(
    needs: &Needs,
    platform: &Platform,
    found: &Result<Group, Vec<NoRoom>>,
    notes: &[String],
    style: &Style,
) -> String {
    let mut page = Page::new(style);
    let (name, on, all) = (&needs.name, &platform.name, needs.tasks.len());
    match found {
        Ok(group) => {
            let (runtime, period) = (group.runtime.0 / 1000, group.period.0 / 1000);
            let s = if all == 1 { "task is" } else { "tasks are" };
            let percent = 100.0 * runtime as f64 / period as f64;
            page.paragraph(
                0,
                Ink::Strong,
                &format!("{name} on {on}: {all} {s} in time under a server of {runtime} of each {period} µs ({percent:.1} %) on {}.", group.cpu),
            );
            served(&mut page, name, group);
        }
        Err(missing) => {
            let what = format!("{name} on {on}: no server of that period is enough.");
            page.paragraph(0, Ink::Bad, &what);
            page.blank();
            for m in missing {
                page.hanging("  ", Ink::Plain, &format!("{}: {}: {}", m.at, m.name, m.reason));
            }
            page.blank();
            let hint = "A shorter --server-period-us, a shorter runtime or a later deadline helps.";
            page.paragraph(0, Ink::Dim, hint);
        }
    }
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.hanging("note: ", Ink::Dim, note));
    page.finish()
}

fn served(page: &mut Page<'_>, name: &str, group: &Group) {
    page.blank();
    let mut table = Table::new(["task", "policy", "response", "deadline"]);
    let us = |span: Span| format!("{} µs", span.0.div_ceil(1000));
    for t in &group.tasks {
        let policy = format!("SCHED_FIFO {}", t.priority);
        table.row([t.name.clone(), policy, us(t.response), us(t.deadline)]);
    }
    page.table(0, &table);
    page.blank();
    let what = format!(
        "The longest responses under the least that such a server gives (Shin and Lee 2003), less a tick of {}, by which it may have overrun. Each other server or deadline task of the CPU may make all of it a tick later.",
        us(group.tick)
    );
    page.paragraph(0, Ink::Plain, &what);
    page.blank();
    page.paragraph(
        0,
        Ink::Strong,
        "To put them there, as root, on a kernel with real-time groups:",
    );
    let mut command = |text: &str| {
        page.command("  ", Ink::Dim, text.split(' ').map(str::to_string));
    };
    let dir = format!("/sys/fs/cgroup/{}", comm(name));
    command("echo +cpu > /sys/fs/cgroup/cgroup.subtree_control");
    let (runtime, period) = (group.runtime.0 / 1000, group.period.0 / 1000);
    // The root's own says what all groups below it may have.
    command(&format!("echo {runtime} {period} > /sys/fs/cgroup/cpu.rt.max"));
    command(&format!("mkdir {dir}"));
    command(&format!("echo {runtime} {period} > {dir}/cpu.rt.max"));
    for t in &group.tasks {
        command(&format!("PID=$(pgrep -n -x {})", comm(&t.name)));
        command(&format!("taskset -p -c {} $PID", group.cpu.0));
        command(&format!("echo $PID > {dir}/cgroup.procs"));
        command(&format!("chrt -f -p {} $PID", t.priority));
    }
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
