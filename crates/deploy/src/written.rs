//! A plan as rt-app's JSON: the experiment by which it is tried, and which its reader can run again.
//!
//! ```text
//! a task that is to be guaranteed   its policy on its CPU · run, all that it declares · timer      a job with its deadline
//! one of unknown length             the same, a tenth of its period (or 2 of 20 ms), or without end
//! an ordinary one                   on each CPU with tasks that are to be guaranteed, without end
//! ```
//!
//! First jobs come together, the shortest period after the start, so that no CPU idles longer before them than later; or, if they are to
//! be spread, each after a part of its period that differs from task to task. CPUs with deadline tasks are exclusive cpusets (`partitions`).

use crate::optimise::quoted;
use crate::plan::{Attr, Plan, Planned};
use crate::promise::Company;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::needs::{Need, Needs, What};
use std::fmt::Write;

/// Time from the start to first jobs that come together, at most, in µs.
const LEAD_US: u64 = 50_000;
/// Runtime and period, in µs, of a task of unknown length whose period is not known either.
const UNKNOWN_US: (u64, u64) = (2_000, 20_000);

/// `plan` of `needs` beside `company`; `spread`: which of several ways in which first jobs are apart, `None`: together. `set`: what
/// else has to be as it is, for the reader.
pub fn workload(
    needs: &Needs,
    plan: &Plan,
    company: Company,
    spread: Option<u64>,
    says: &str,
) -> String {
    let mut tasks = Vec::new();
    for (i, (need, planned)) in needs.tasks.iter().zip(&plan.tasks).enumerate() {
        let first = spread.map_or(together_us(needs), |k| apart(need, i as u64, k).max(1));
        let endless = company == Company::Crowded && !plan.trusting.contains(&planned.cpu);
        let written = task(need, planned, endless, first);
        tasks.push(format!("    {}: {written}", quoted(&need.name)));
    }
    if matches!(company, Company::Busy | Company::Crowded) {
        for used in &plan.used {
            let name = unused(needs, used.cpu);
            tasks.push(format!(
                "    {}: {{ \"cpus\": [{}], \"loop\": -1, \"run\": 100000 }}",
                quoted(&name),
                used.cpu.0
            ));
        }
    }
    let partitions: Vec<String> = plan.partitions.iter().map(|c| format!("[{}]", c.0)).collect();
    let global = match partitions.is_empty() {
        true => String::new(),
        false => format!(",\n  \"global\": {{ \"partitions\": [{}] }}", partitions.join(", ")),
    };
    let says = says.replace('\n', " ");
    format!("// {says}\n{{\n  \"tasks\": {{\n{}\n  }}{global}\n}}\n", tasks.join(",\n"))
}

/// A name for the ordinary task of a CPU that no other task has.
fn unused(needs: &Needs, cpu: CpuId) -> String {
    let mut name = format!("busy-cpu{}", cpu.0);
    while needs.tasks.iter().any(|t| t.name == name) {
        name.push('x');
    }
    name
}

/// The period of a task, if that is known.
pub fn period_of(need: &Need) -> Option<Span> {
    match need.what {
        What::Job { period, .. } | What::Share { period, .. } | What::Period(period) => {
            Some(period)
        }
        What::Priority(_) => None,
    }
}

/// The time of first jobs that come together, in µs from the start.
fn together_us(needs: &Needs) -> u64 {
    let shortest = needs.tasks.iter().filter_map(period_of).min();
    shortest.map_or(LEAD_US, |p| p.0 / 1000).clamp(1, LEAD_US)
}

/// The time, from the start, by which every first job has come.
pub fn begun(needs: &Needs) -> Span {
    let longest = needs.tasks.iter().filter_map(period_of).max().unwrap_or_default();
    longest.max(Span::from_us(LEAD_US))
}

/// The time of the first job of a task in start phase `k`, in µs: parts of its period that follow
/// the golden section from task to task.
fn apart(need: &Need, task: u64, k: u64) -> u64 {
    let period = period_of(need).map_or(UNKNOWN_US.1, |p| p.0 / 1000);
    period * (((task + 1) * 618 + k * 250 + task * k * 137) % 1000) / 1000
}

fn task(need: &Need, planned: &Planned, endless: bool, first_us: u64) -> String {
    let us = |span: Span| span.0 / 1000;
    let mut keys = match planned.attr {
        Attr::Deadline(r, d, p) => format!(
            "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {}, \"dl-deadline\": {}, \"dl-period\": {}",
            us(r),
            us(d),
            us(p)
        ),
        Attr::Fifo(priority) => format!("\"policy\": \"SCHED_FIFO\", \"priority\": {priority}"),
    };
    let _ = write!(keys, ", \"cpus\": [{}]", planned.cpu.0);
    let (period, deadline, runs) = match need.what {
        What::Job { runtime, period, deadline } => {
            (us(period), Some(us(deadline)), runs(need, runtime))
        }
        What::Share { runtime, period } => (us(period), Some(us(period)), runs(need, runtime)),
        What::Period(_) | What::Priority(_) if endless => {
            return format!("{{ {keys}, \"loop\": -1, \"run\": 100000 }}");
        }
        What::Period(period) => {
            let period = us(period);
            (period, None, format!("\"run\": {}", (period / 10).max(1)))
        }
        What::Priority(_) => (UNKNOWN_US.1, None, format!("\"run\": {}", UNKNOWN_US.0)),
    };
    if let Some(deadline) = deadline {
        let _ = write!(keys, ", \"job\": {{ \"deadline\": {deadline} }}");
    }
    let timer = |period: u64| {
        format!(
            "\"timer\": {{ \"ref\": \"unique\", \"period\": {period}, \"mode\": \"absolute\" }}"
        )
    };
    format!(
        "{{ {keys}, \"loop\": 1,\n      \"phases\": {{ \"lead\": {{ {} }},\n                  \"job\": {{ \"loop\": -1, {runs}, {} }} }} }}",
        timer(first_us),
        timer(period)
    )
}

/// The events of a job: all work that is declared. Rounding: each kind up to whole µs.
fn runs(need: &Need, runtime: Span) -> String {
    let up = |span: u64| span.div_ceil(1000).max(1);
    let mut all = Vec::new();
    let mut plain = runtime.0.saturating_sub(need.clock.0);
    for (kind, work) in &need.kinds {
        plain = plain.saturating_sub(work.0);
        all.push(format!("\"kind\": {}, \"run\": {}", quoted(kind), up(work.0)));
    }
    if plain > 0 {
        let back = if need.kinds.is_empty() { "" } else { "\"kind\": \"\", " };
        all.push(format!("{back}\"run\": {}", up(plain)));
    }
    if need.clock > Span(0) {
        all.push(format!("\"runtime\": {}", up(need.clock.0)));
    }
    all.join(", ")
}
