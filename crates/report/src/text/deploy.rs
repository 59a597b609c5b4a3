//! Page of a plan for real-time tasks: their places, by which test, and the commands that put them
//! there.

use super::{Style, deploy_commands};
use crate::page::{Doc, Ink, Page, Table};
use risetime_deploy::Fit;
use risetime_deploy::plan::{Attr, NoRoom, Plan};
use risetime_deploy::promise::{Company, Promise, Tried};
use risetime_deploy::server::Group;
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_model::{Needs, Platform};

/// A plan with its proof, what became of it when it was tried, and its commands; or who has no place and why. `notes`: what a reader of
/// either should know.
pub fn deploy_plan(
    needs: &Needs,
    platform: &Platform,
    tried: &Tried,
    notes: &[String],
    style: &Style,
) -> Doc {
    let mut page = Page::new(style);
    let (name, on, all) = (&needs.name, &platform.name, needs.tasks.len());
    match &tried.plan {
        Ok(plan) => {
            headline(&mut page, name, on, tried, plan);
            placed(&mut page, plan, tried);
            proof(&mut page, plan, tried);
            as_printed(&mut page, tried.promise.as_ref());
            if let Some(p) = tried.promise.as_ref().filter(|_| !tried.guaranteed()) {
                unkept(&mut page, p, plan, &tried.instead);
            }
            page.blank();
            let cpus: Vec<String> = plan.ordinary.iter().map(|c| c.to_string()).collect();
            let beside = plan.ordinary.iter().any(|c| plan.tasks.iter().any(|t| t.cpu == *c));
            let below = if beside { ", below the tasks of the plan that are there" } else { "" };
            page.paragraph(
                0,
                Ink::Plain,
                &format!(
                    "Ordinary tasks, and all that is not named here, run on {}{below}.",
                    cpus.join(", ")
                ),
            );
            page.blank();
            page.paragraph(0, Ink::Strong, "To put them there, as root:");
            let governor = tried.promise.as_ref().and_then(|p| {
                let asked = p.set.iter().any(|s| s.starts_with("governor="));
                asked.then_some(p.governor.as_str())
            });
            deploy_commands::of_plan(&mut page, plan, governor);
        }
        Err(missing) => {
            let what = format!("{name} on {on}: {} of {all} tasks have no place.", missing.len());
            page.paragraph(0, Ink::Bad, &what);
            page.blank();
            for m in missing {
                page.hanging("  ", Ink::Plain, &format!("{}: {}: {}", m.at, m.name, m.reason));
            }
            page.blank();
            let cpu = match tried.rules.fit {
                Fit::First => "first",
                Fit::Best => "fullest",
                Fit::Worst => "emptiest",
            };
            let scheduler = format!("{:?}", tried.rules.scheduler).to_uppercase();
            let hint = format!(
                "The largest task first, on the {cpu} CPU that fits, under {scheduler}. A larger platform, a shorter runtime or a longer period helps; so may --fit, --scheduler or --policy."
            );
            page.paragraph(0, Ink::Dim, &hint);
        }
    }
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.note(note));
    page.finish()
}

fn headline(page: &mut Page<'_>, name: &str, on: &str, tried: &Tried, plan: &Plan) {
    let wanted = plan.tasks.iter().filter(|t| t.wanted).count();
    let under = tried
        .promise
        .as_ref()
        .map_or(String::new(), |p| format!(" under {}, {}", p.policy, p.governor));
    let others = match plan.tasks.len() - wanted {
        0 => String::new(),
        n => format!(", {n} without a guarantee"),
    };
    let tasks = |n: usize| if n == 1 { "1 task".to_string() } else { format!("{n} tasks") };
    let (ink, what) = match tried.guaranteed() {
        _ if wanted == 0 => {
            (Ink::Strong, format!("{} placed, none with a guarantee", tasks(plan.tasks.len())))
        }
        true => (Ink::Strong, format!("{} guaranteed{others}", tasks(wanted))),
        false => (Ink::Bad, format!("not guaranteed ({}){others}", tasks(wanted))),
    };
    page.paragraph(0, ink, &format!("{name} on {on}{under}: {what}."));
}

/// Writes which test admits the tasks of each CPU, and what that supposes.
fn proof(page: &mut Page<'_>, plan: &Plan, tried: &Tried) {
    if plan.used.is_empty() {
        return;
    }
    page.blank();
    page.paragraph(0, Ink::Strong, "Proof, with what the machine costs:");
    for used in &plan.used {
        let reserved = used.reserved.map_or(String::new(), |(has, room)| {
            format!(", {has:.1} % reserved of {room:.1} % that the kernel admits")
        });
        let found = match &used.proof {
            Ok(p) => format!("{} ({}): {}", p.test.name, p.test.source, p.reason),
            Err(why) => format!("not proven: {why}"),
        };
        let ink = if used.proof.is_ok() { Ink::Plain } else { Ink::Bad };
        let what = format!("{:.1} % full{reserved}: {found}", used.percent);
        page.hanging(&format!("  {}  ", used.cpu), ink, &what);
    }
    page.blank();
    page.paragraph(0, Ink::Strong, "Assumed:");
    tried.assumes.iter().for_each(|a| page.hanging("  ", Ink::Plain, a));
}

/// Writes how the plan went when it was run as it is printed.
fn as_printed(page: &mut Page<'_>, promise: Option<&Promise>) {
    let Some(p) = promise else { return };
    page.blank();
    let set = p.set.iter().map(|s| format!(", {s}")).collect::<String>();
    let what = format!(
        "Run as printed ({}, {}{set}, noise of a machine, {} ms each):",
        p.policy,
        p.governor,
        p.length.0 / 1_000_000
    );
    page.paragraph(0, Ink::Strong, &what);
    for t in &p.trials {
        let least = match &t.least {
            Some((task, ms)) if t.missed == 0 => format!("none missed, {task} by {ms:.3} ms"),
            _ if t.missed == 0 => "none missed".into(),
            _ => format!("{} missed", t.missed),
        };
        let found = match &t.refused {
            Some(why) => format!("refused: {why}"),
            None => format!("{} runs, {} jobs due, {least}", t.runs, t.due),
        };
        let ink = if t.missed == 0 && t.refused.is_none() { Ink::Plain } else { Ink::Bad };
        page.hanging("  ", ink, &format!("{}: {found}", company(t.company)));
    }
}

fn company(of: Company) -> &'static str {
    match of {
        Company::Busy => "beside an ordinary task that never sleeps on each CPU",
        Company::Alone => "without it",
        Company::Crowded => "the same with those of unknown length never sleeping",
    }
}

/// Writes why the plan is not guaranteed, and what would make it so.
fn unkept(page: &mut Page<'_>, p: &Promise, plan: &Plan, instead: &[String]) {
    page.blank();
    let mut why = Vec::new();
    if let Some((miss, beside)) = p.first() {
        let late = match miss.late_ms {
            Some(ms) => format!("{ms:.3} ms late"),
            None => "never done".into(),
        };
        why.push(format!(
            "the first miss is of {}, due at {:.3} ms: {late} ({})",
            miss.task,
            miss.due_ms,
            company(beside)
        ));
    }
    if let Some(refused) = p.trials.iter().find_map(|t| t.refused.as_ref()) {
        why.push(format!("the kernel refuses it: {refused}"));
    }
    if let Some((cpu, reason)) =
        plan.used.iter().find_map(|u| Some((u.cpu, u.proof.as_ref().err()?)))
    {
        why.push(format!("nothing proves {cpu}: {reason}"));
    }
    page.hanging("Why not: ", Ink::Bad, &why.join("; "));
    let helps = match instead {
        [] => "nothing that was tried (another governor, scheduler or kernel) makes it so: shorter runtimes, or a larger platform".to_string(),
        found => format!("guaranteed with {}", found.join(", or with ")),
    };
    page.hanging("Helps: ", Ink::Strong, &helps);
}

/// A group under a server with its commands, or who is late and why.
pub fn deploy_server(
    needs: &Needs,
    platform: &Platform,
    found: &Result<Group, Vec<NoRoom>>,
    notes: &[String],
    style: &Style,
) -> Doc {
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
    notes.iter().for_each(|note| page.note(note));
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
    page.table(0, table);
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
    deploy_commands::of_server(page, name, group);
}

fn placed(page: &mut Page<'_>, plan: &Plan, tried: &Tried) {
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
        let promised = if tried.guarantees(&t.name) { "yes" } else { "no" };
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
    page.table(0, table);
    if !plan.floors.is_empty() {
        let floor =
            |(cpu, freq): &(CpuId, KHz)| format!("policy{} at {} MHz", cpu.0, freq.0 / 1000);
        let floors: Vec<String> = plan.floors.iter().map(floor).collect();
        page.blank();
        let what = format!(
            "{} or above (scaling_min_freq), or nothing proves that they are in time.",
            floors.join(", ")
        );
        page.paragraph(0, Ink::Plain, &what);
    }
}
