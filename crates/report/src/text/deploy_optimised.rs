//! Where the optimiser puts graphs: CPU, frequency and deadline of each node, the power, and how sure it is of it.

use super::Style;
use super::deploy::{comm, group};
use super::page::{Ink, Page, Table};
use risetime_deploy::optimise::{Deployment, Objective, Place, Problem, Rounds, check};
use risetime_model::Platform;
use std::collections::BTreeSet;
use std::path::Path;

/// What is known of a deployment's power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Proof {
    /// Nothing: this solver proves nothing.
    None(&'static str),
    /// No deployment takes less than that.
    Bound {
        /// Who says so.
        solver: &'static str,
        /// In nW.
        bound_nw: u64,
        /// It has looked at all of it.
        whole: bool,
        /// Linear programs that it took.
        programs: Option<Rounds>,
    },
}

/// The page of a deployment, or of none.
pub fn deploy_optimised(
    p: &Problem,
    platform: &Platform,
    objective: Objective,
    found: Option<&Deployment>,
    proof: Proof,
    workload: Option<&Path>,
    style: &Style,
) -> String {
    let mut page = Page::new(style);
    let (name, on) = (&p.name, &platform.name);
    let Some(d) = found else {
        let (what, hint) = match proof {
            Proof::Bound { whole: true, solver, .. } => (
                format!(
                    "{name} on {on}: nothing meets these deadlines ({solver} has looked at all of it)."
                ),
                "Longer deadlines help, shorter runtimes, a smaller --factor, a larger platform.",
            ),
            Proof::Bound { solver, .. } | Proof::None(solver) => (
                format!("{name} on {on}: {solver} found nothing that meets these deadlines."),
                "That proves nothing: --solver exact, or highs, may find something.",
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
            page.paragraph(0, Ink::Dim, &sure(proof, checked.power_nw, objective));
            page.blank();
            nodes(&mut page, p, d, &checked.done_us);
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
    commands(&mut page, p, platform, d, workload);
    page.finish()
}

fn sure(proof: Proof, power_nw: u64, objective: Objective) -> String {
    let goal = match objective {
        Objective::Power => "Least power".to_string(),
        Objective::SLACK => "Least power, then the largest least slack".to_string(),
        Objective::Slack { within_permille } => format!(
            "The largest least slack for up to {} % more than the least power",
            within_permille as f64 / 10.0
        ),
    };
    let tolerant = !matches!(objective, Objective::Power | Objective::SLACK);
    match proof {
        Proof::None(solver) => format!("{goal}, by {solver}, which proves nothing."),
        Proof::Bound { solver, bound_nw, whole, programs } => {
            let gap = power_nw.saturating_sub(bound_nw) as f64 / bound_nw.max(1) as f64 * 100.0;
            let mut said = match whole {
                true if tolerant => format!(
                    "{goal}, by {solver}: the least is {} mW, this takes {gap:.1} % more",
                    mw(bound_nw)
                ),
                true if programs.is_none() => format!("{goal}, by {solver}: nothing takes less"),
                true => format!("{goal}, by {solver}: nothing takes less than {} mW", mw(bound_nw)),
                false => format!(
                    "{goal}, by {solver}, which has not looked at all of it: nothing takes less than {} mW, {gap:.1} % below",
                    mw(bound_nw)
                ),
            };
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
    }
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
                (p.devices[version.device].0.clone(), "–".to_string(), version.runtime_us)
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
    page.table(0, &table);
}

fn commands(
    page: &mut Page<'_>,
    p: &Problem,
    platform: &Platform,
    d: &Deployment,
    workload: Option<&Path>,
) {
    let mut caps = Vec::new();
    for (domain, opp) in platform.domains.iter().zip(&d.config.opp) {
        caps.push((domain.cpus[0].0, domain.opps[*opp].freq.0));
    }
    let command = |page: &mut Page<'_>, text: &str| {
        page.command("  ", Ink::Dim, text.split(' ').map(str::to_string));
    };
    if let Some(path) = workload {
        page.paragraph(0, Ink::Strong, "To see it run:");
        let caps: String = caps
            .iter()
            .map(|(cpu, khz)| format!(" --set scaling_max_freq.policy{cpu}={khz}"))
            .collect();
        let what = format!(
            "risetime run {} --platform {} --set governor=performance{caps}",
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
    let mut alone: BTreeSet<_> = (0..p.nodes.len()).filter_map(on).map(|c| c.id).collect();
    let kept = if alone.len() == p.cpus.len() { alone.pop_last() } else { None };
    if !alone.is_empty() {
        command(page, "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control");
    }
    for cpu in &alone {
        let dir = group(*cpu);
        command(page, &format!("mkdir {dir}"));
        command(page, &format!("echo {} > {dir}/cpuset.cpus", cpu.0));
        command(page, &format!("echo root > {dir}/cpuset.cpus.partition"));
    }
    for (i, v) in p.nodes.iter().enumerate() {
        let Some(cpu) = on(i) else { continue };
        command(page, &format!("PID=$(pgrep -n -x {})", comm(&v.name)));
        if kept != Some(cpu.id) {
            command(page, &format!("echo $PID > {}/cgroup.procs", group(cpu.id)));
        }
        let (q, us) = (1000 * v.budget_us[cpu.domain], 1000 * d.deadline_us[i]);
        command(page, &format!("chrt -d -T {q} -D {us} -P {us} -p 0 $PID"));
    }
}

/// nW in mW, for a reader.
fn mw(nw: u64) -> String {
    format!("{:.3}", nw as f64 / 1e6)
}

/// 10⁻⁶ in %, rounded down.
fn percent(ppm: u64) -> String {
    format!("{}.{:02}", ppm / 10_000, ppm % 10_000 / 100)
}
