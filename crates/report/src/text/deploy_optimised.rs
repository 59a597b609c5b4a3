//! Page of a plan for graphs by the optimiser: CPU, frequency and deadline of each node, the power,
//! and how sure it is of it.

use super::Style;
use super::deploy_commands;
use crate::page::{Doc, Ink, Page, Table};
use risetime_deploy::optimise::{Deployment, Ended, Objective, Place, Problem, Ran, Rounds, check};
use risetime_deploy::plan::Attr;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::Platform;
use std::path::Path;

/// A bound of a deployment's power, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Proof {
    /// No proof: this solver proves nothing.
    None(&'static str),
    /// No deployment takes less than that.
    Bound {
        /// Solver that proved the bound.
        solver: &'static str,
        /// Bound of the power, in nW.
        bound_nw: u64,
        /// None that takes as much has a larger least slack, in 10⁻⁶, where that is known.
        slack_ppm: Option<u64>,
        /// Whether it has looked at all of it.
        ended: Ended,
        /// Linear programs that it took.
        programs: Option<Rounds>,
    },
}

/// Contents of a page.
#[derive(Clone, Copy)]
pub struct Optimised<'a> {
    /// The problem that was to be solved.
    pub problem: &'a Problem,
    /// Platform.
    pub platform: &'a Platform,
    /// The objective.
    pub objective: Objective,
    /// The deployment that was found.
    pub found: Option<&'a Deployment>,
    /// Proof of how good that is.
    pub proof: Proof,
    /// Outcome of the deployment as it runs.
    pub ran: Option<&'a Ran>,
    /// Outcomes of others, by the factor of their budgets in %.
    pub before: &'a [(u64, Ran)],
    /// The kernel that was asked for, as `--policy` has it; `None`: the one that is taken unless one is.
    pub policy: Option<&'a str>,
    /// The user's way of stopping the search; `None`: the user did not.
    pub stopped: Option<&'a str>,
    /// File to which the workload was written.
    pub workload: Option<&'a Path>,
}

/// The page of a deployment, or of none.
pub fn deploy_optimised(o: &Optimised<'_>, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let (p, platform) = (o.problem, o.platform);
    let (name, on) = (&p.name, &platform.name);
    let Some(d) = o.found else {
        let (what, hint) = match o.proof {
            Proof::Bound { ended: Ended::Whole, solver, .. } => (
                format!(
                    "{name} on {on}: nothing meets these deadlines ({solver} has looked at all of it)."
                ),
                "Longer deadlines help, shorter runtimes, a smaller --factor, a larger platform.",
            ),
            Proof::Bound { solver, .. } | Proof::None(solver) => (
                format!("{name} on {on}: {solver} found nothing that meets these deadlines."),
                "That proves nothing: with more time (--within) exact, or highs, may find something.",
            ),
        };
        page.paragraph(0, Ink::Bad, &what);
        page.paragraph(0, Ink::Dim, hint);
        return page.finish();
    };
    match check(p, d) {
        Ok(checked) => {
            let power = mw(checked.power_nw);
            let slack = percent(checked.min_slack_ppm());
            let what = format!("{name} on {on}: {power} mW, slack at least {slack} %.");
            page.paragraph(0, Ink::Strong, &what);
            page.paragraph(0, Ink::Dim, &sure(o, checked.power_nw, checked.min_slack_ppm()));
            as_it_runs(&mut page, o);
            page.blank();
            nodes(&mut page, p, d, &checked.done_us);
            helpers(&mut page, p, d);
            page.blank();
            for (g, slack) in p.graphs.iter().zip(&checked.slack_ppm) {
                let done = g.nodes.iter().map(|i| checked.done_us[*i]).max().unwrap_or(0);
                let what = format!(
                    "done {done} µs from its activation at the latest, due in {}: slack {} %",
                    g.deadline_us,
                    percent(*slack)
                );
                page.hanging(&format!("{}  ", g.name), Ink::Plain, &what);
            }
            for (cpu, taken) in p.cpus.iter().zip(&checked.taken_ppm).filter(|(_, t)| **t > 0) {
                let opp = p.domains[cpu.domain].opps[d.config.opp[cpu.domain]];
                let what = format!(
                    "{} MHz, {} % of a CPU of capacity 1024 taken up to deadlines, room for {} %",
                    opp.freq.0 / 1000,
                    percent(*taken),
                    percent(opp.room_ppm)
                );
                page.hanging(&format!("{}  ", cpu.id), Ink::Plain, &what);
            }
        }
        Err(broken) => page.paragraph(0, Ink::Bad, &broken.join("; ")),
    }
    page.blank();
    commands(&mut page, o, d);
    page.finish()
}

/// Writes how the deployment went when it was run, and those tried before it.
fn as_it_runs(page: &mut Page<'_>, o: &Optimised<'_>) {
    for (factor, ran) in o.before {
        let what = format!("With budgets of {factor} %: {}", came(ran));
        page.paragraph(0, Ink::Dim, &what);
    }
    let Some(ran) = o.ran else { return };
    let budgets = match o.before.is_empty() {
        true => String::new(),
        false => format!(", with budgets of {} %", o.problem.options.factor_permille / 10),
    };
    let how = format!(
        "As it runs under {}{budgets}: alone and beside a busy task on each CPU, with the noise of a real machine, {} runs of {:.1} s: ",
        ran.policy,
        ran.runs,
        ran.length.0 as f64 / 1e9,
    );
    let (ink, more) = match ran.kept() {
        true => (Ink::Good, ""),
        false => {
            (Ink::Bad, " Do not rely on it: more room helps (--factor), or a larger platform.")
        }
    };
    page.paragraph(0, ink, &format!("{how}{}{more}", came(ran)));
}

fn came(ran: &Ran) -> String {
    let due = ran.due;
    match (&ran.refused, &ran.late, &ran.least) {
        (Some(what), ..) => format!("refused ({what})."),
        _ if due == 0 => "no job was due.".to_string(),
        (_, Some((graph, ms)), _) if ran.missed > 0 => {
            format!("{} of {due} jobs late, {graph} by up to {ms:.3} ms.", ran.missed)
        }
        _ if ran.missed > 0 => format!("{} of {due} jobs missed.", ran.missed),
        (_, _, Some((graph, ms))) => {
            format!("none of {due} jobs late, {ms:.3} ms left at least ({graph}).")
        }
        _ => format!("none of {due} jobs late."),
    }
}

/// Writes which task asks the devices, and from where.
fn helpers(page: &mut Page<'_>, p: &Problem, d: &Deployment) {
    let asks = d.config.place.iter().any(|at| matches!(at, Place::Version(_)));
    let Some(helper) = p.helper.filter(|_| asks) else { return };
    let cpu = p.cpus[helper.cpu].id;
    let what = match p.real_time_first(d) {
        true => format!(
            "Devices are asked from {cpu}, under SCHED_FIFO, which has to come before SCHED_DEADLINE there (class_order=rt-dl): no stock kernel does that."
        ),
        false => format!("Devices are asked from {cpu}, under SCHED_FIFO; no deadlines are there."),
    };
    page.paragraph(0, Ink::Plain, &what);
}

fn sure(o: &Optimised<'_>, power_nw: u64, own_slack_ppm: u64) -> String {
    let goal = match o.objective {
        Objective::Power => "Least power".to_string(),
        Objective::SLACK => "Least power, then the largest least slack".to_string(),
        Objective::Slack { within_permille } => format!(
            "The largest least slack for up to {} % more than the least power",
            within_permille as f64 / 10.0
        ),
    };
    let tolerant = !matches!(o.objective, Objective::Power | Objective::SLACK);
    let (solver, bound_nw, slack_ppm, ended, programs) = match o.proof {
        Proof::None(solver) => return format!("{goal}, by {solver}, which proves nothing."),
        Proof::Bound { solver, bound_nw, slack_ppm, ended, programs } => {
            (solver, bound_nw, slack_ppm, ended, programs)
        }
    };
    let gap = power_nw.saturating_sub(bound_nw) as f64 / power_nw.max(1) as f64 * 100.0;
    let least = mw(bound_nw);
    let mut said = match ended {
        Ended::Whole if tolerant => {
            format!(
                "{goal}, by {solver}: the least is {least} mW, this takes {:.1} % more",
                gap_over(power_nw, bound_nw)
            )
        }
        Ended::Whole if programs.is_none() => {
            format!("{goal}, by {solver}: nothing takes less, gap 0 %")
        }
        Ended::Whole => {
            format!("{goal}, by {solver}: nothing takes less than {least} mW, gap {gap:.2} %")
        }
        Ended::Steps | Ended::Stopped => {
            let by = match (ended, o.stopped) {
                (Ended::Steps, _) => "which ended after its number of steps",
                (_, Some(_)) => "stopped by Ctrl-C",
                (_, None) => {
                    "stopped by the clock (a faster machine, or more time, may find better)"
                }
            };
            format!("{goal}, by {solver}, {by}: nothing takes less than {least} mW, gap {gap:.1} %")
        }
    };
    if let Some(most) = slack_ppm.filter(|_| ended != Ended::Whole) {
        let most = most.max(own_slack_ppm);
        let gap = (most - own_slack_ppm) as f64 / 1e4;
        said += &format!(
            "; none for as much power has a slack above {} %, gap {gap:.1} points",
            percent(most)
        );
    }
    if let Some(r) = programs {
        said += &format!(
            "; {} linear programs for the power (the first alone: {} mW), {} for the slack",
            r.programs.0,
            mw(r.first_nw),
            r.programs.1
        );
    }
    said + "."
}

/// The gap between the power and its lower bound, in % of the bound.
fn gap_over(power_nw: u64, bound_nw: u64) -> f64 {
    power_nw.saturating_sub(bound_nw) as f64 / bound_nw.max(1) as f64 * 100.0
}

fn nodes(page: &mut Page<'_>, p: &Problem, d: &Deployment, done_us: &[u64]) {
    let mut table =
        Table::new(["graph", "node", "on", "MHz", "runtime", "deadline = period", "done"]);
    for (i, v) in p.nodes.iter().enumerate() {
        let (on, mhz, runtime) = match d.config.place[i] {
            Place::Cpu(cpu) => {
                let c = p.cpus[cpu];
                let opp = p.domains[c.domain].opps[d.config.opp[c.domain]];
                let mhz = (opp.freq.0 / 1000).to_string();
                (c.id.to_string(), mhz, v.budget_us[c.domain])
            }
            Place::Version(a) => {
                let version = v.versions[a];
                (p.devices[version.device].name.clone(), "–".to_string(), version.runtime_us)
            }
        };
        let us = |us: u64| format!("{us} µs");
        table.row([
            p.graphs[v.graph].name.clone(),
            v.name.clone(),
            on,
            mhz,
            us(runtime),
            us(d.deadline_us[i]),
            us(done_us[i]),
        ]);
    }
    page.table(0, table);
}

fn commands(page: &mut Page<'_>, o: &Optimised<'_>, d: &Deployment) {
    let (p, platform) = (o.problem, o.platform);
    let mut caps = Vec::new();
    for (domain, opp) in platform.domains.iter().zip(&d.config.opp) {
        caps.push((domain.cpus[0].0, domain.opps[*opp].freq.0));
    }
    let command = |page: &mut Page<'_>, text: &str| {
        page.command("  ", Ink::Dim, text.split(' ').map(str::to_string));
    };
    if let Some(path) = o.workload {
        page.paragraph(0, Ink::Strong, "To see it run:");
        let caps: String = caps
            .iter()
            .map(|(cpu, khz)| format!(" --set scaling_max_freq.policy{cpu}={khz}"))
            .collect();
        let policy = o.policy.map(|name| format!(" --policy {name}")).unwrap_or_default();
        let order = if p.real_time_first(d) { " --set class_order=rt-dl" } else { "" };
        let what = format!(
            "risetime run {} --platform {}{policy} --set governor=performance{caps}{order}",
            path.display(),
            platform.name
        );
        command(page, &what);
        page.blank();
    }
    page.paragraph(0, Ink::Strong, "To put them there, as root, each node a thread of its name:");
    for (cpu, khz) in caps {
        let dir = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}");
        command(page, &format!("echo performance > {dir}/scaling_governor"));
        command(page, &format!("echo {khz} > {dir}/scaling_max_freq"));
    }
    let on = |i: usize| match d.config.place[i] {
        Place::Cpu(cpu) => Some(p.cpus[cpu]),
        Place::Version(_) => None,
    };
    let nodes: Vec<_> = p
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(i, v)| {
            let Some(cpu) = on(i) else {
                // The helper thread, which asks a device.
                let helper = p.helper.map(|h| p.cpus[h.cpu].id)?;
                return Some((v.name.as_str(), helper, Attr::Fifo(99)));
            };
            let (q, d) = (Span::from_us(v.budget_us[cpu.domain]), Span::from_us(d.deadline_us[i]));
            Some((v.name.as_str(), cpu.id, Attr::Deadline(q, d, d)))
        })
        .collect();
    let mut alone: Vec<CpuId> = (0..p.nodes.len()).filter_map(on).map(|c| c.id).collect();
    alone.sort_unstable();
    alone.dedup();
    let kept = if alone.len() == p.cpus.len() { alone.last().copied() } else { None };
    deploy_commands::place(page, &nodes, &alone, kept);
}

/// Formats nW as mW, for a reader.
fn mw(nw: u64) -> String {
    format!("{:.3}", nw as f64 / 1e6)
}

/// Formats 10⁻⁶ as %, rounded down.
fn percent(ppm: u64) -> String {
    format!("{}.{:02}", ppm / 10_000, ppm % 10_000 / 100)
}
