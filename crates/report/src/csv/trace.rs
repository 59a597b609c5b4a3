//! The threads of a trace as rows: the columns from `task` on, a line for each figure.

use super::row;
use crate::Taken;
use crate::words::round3;
use risetime_analysis::Percentiles;
use risetime_analysis::survey::{PARTS, Thread};

/// Rows of the threads of a trace that only a trace has: what their time went to, their wakeups, their jobs.
pub fn thread_lines<'a>(taken: &'a Taken<'_>) -> impl Iterator<Item = String> + 'a {
    taken.surveyed.threads.iter().flat_map(|thread| lines(taken, thread))
}

fn lines(taken: &Taken<'_>, of: &Thread) -> Vec<String> {
    let name = format!("{}#{}", &*of.comm, of.task.0);
    let line = |figure: &str, key: &str, value: String, unit: &str| {
        row([name.as_str(), figure, key, value.as_str(), unit])
    };
    let mut lines = Vec::new();
    if let Some(pid) = taken.pid(of.task) {
        lines.push(line("thread_pid", "", pid.to_string(), ""));
    }
    for about in PARTS {
        let ms = of.parts.ms(about.part);
        if ms > 0.0 {
            let key = format!("part={}", about.word);
            lines.push(line("thread_part", &key, round3(ms).to_string(), "ms"));
        }
    }
    let counts = [
        ("thread_switches", of.switches),
        ("thread_wakeups", of.wakeups),
        ("thread_activations", of.activations),
        ("thread_migrations", of.moves),
    ];
    lines.extend(counts.map(|(figure, n)| line(figure, "", n.to_string(), "")));
    let mut times = |figure: &str, took: &Option<Percentiles>| {
        for (statistic, ms) in took.iter().flat_map(Percentiles::named) {
            lines.push(line(&format!("{figure}_{statistic}"), "", round3(ms).to_string(), "ms"));
        }
    };
    times("thread_wakeup", &of.waited);
    times("thread_activation", &of.took);
    if let Some(jobs) = &of.jobs {
        times("thread_job", &jobs.took);
        lines.push(line("thread_job_period", "", round3(jobs.period_ms).to_string(), "ms"));
        lines.push(line("thread_job_near", "", round3(jobs.near).to_string(), "%"));
        lines.push(line("thread_jobs", "", jobs.n.to_string(), ""));
        lines.push(line("thread_jobs_late", "", jobs.late.to_string(), ""));
    }
    for (_, comm, ms) in &of.waited_for {
        let key = format!("for={}", &**comm);
        lines.push(line("thread_waited_for", &key, round3(*ms).to_string(), "ms"));
    }
    lines
}
