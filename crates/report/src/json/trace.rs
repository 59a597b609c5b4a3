//! Report of a trace that somebody took: its source, every thread, what their time went to.

use super::writer::{Writer, stream};
use super::{SCHEMA, print, run};
use crate::words::round3;
use crate::{Taken, Told};
use risetime_analysis::Percentiles;
use risetime_analysis::survey::{Did, Jobs, MarkedJobs, PARTS, Parts, Step, Thread, Walked, Whose};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes a trace's report as JSON: `trace`, and its figures as those of a run. Ends in a newline.
///
/// Errors: those of `out` and of the lists.
pub fn trace(out: &mut dyn Write, taken: &Taken<'_>, runs: &mut [Told<'_>]) -> io::Result<()> {
    stream(out, |page| {
        page.key("schema", &json!(SCHEMA))?;
        page.nested(Some("trace"), "{}", |of| {
            head(of, taken)?;
            of.nested(Some("threads"), "[]", |list| {
                let all = &taken.surveyed.threads;
                all.iter().try_for_each(|one| list.item(&thread(taken, one)))
            })?;
            of.key("marked", &taken.marked.iter().map(marked).collect())
        })?;
        page.nested(Some("runs"), "[]", |list| runs.iter_mut().try_for_each(|told| run(list, told)))
    })
}

/// Writes explained activations as JSON. Ends in a newline.
pub fn walk(taken: &Taken<'_>, of: u64) -> String {
    let all = &taken.surveyed.walked;
    let mut sum = Parts::default();
    all.iter().for_each(|one| sum.absorb(&one.parts));
    print(&json!({
        "schema": SCHEMA,
        "file": taken.file,
        "format": taken.format,
        "speeds": taken.surveyed.speeds.as_str(),
        "activations": of,
        "explained": all.len(),
        "took_ms": round3(sum.took_ms()),
        "parts": parts(&sum),
        "longest": all.iter().map(|one| walked(taken, one)).collect::<Vec<_>>(),
    }))
}

fn head(of: &mut Writer<'_>, taken: &Taken<'_>) -> io::Result<()> {
    let surveyed = taken.surveyed;
    of.key("file", &json!(taken.file))?;
    of.key("format", &json!(taken.format))?;
    of.key("clock", &json!(taken.clock.as_str()))?;
    of.key("begin_s", &json!(taken.clock_s(0)))?;
    of.key("length_ms", &json!(round3(surveyed.length_ms)))?;
    of.key("events", &json!(surveyed.events))?;
    of.key("lost", &json!(taken.notes))?;
    of.key("speeds", &json!(surveyed.speeds.as_str()))?;
    of.key("shared_cores", &json!(surveyed.shared_cores))?;
    of.key("parts", &parts(&surveyed.all))
}

/// Times by what they went to, in ms: all of them.
fn parts(all: &Parts) -> Value {
    PARTS.iter().map(|about| (format!("{}_ms", about.word), round3(all.ms(about.part)))).collect()
}

fn percentiles(took: &Option<Percentiles>) -> Value {
    let Some(took) = took else { return Value::Null };
    took.named().iter().map(|(name, ms)| (format!("{name}_ms"), round3(*ms))).collect()
}

fn thread(taken: &Taken<'_>, of: &Thread) -> Value {
    let running = |(cpu, freq, ms): &(risetime_kernel::units::CpuId, Option<_>, f64)| {
        let freq: &Option<risetime_kernel::units::KHz> = freq;
        json!({"cpu": cpu.0, "freq_khz": freq.map(|freq| freq.0), "ms": round3(*ms)})
    };
    let waited_for = of.waited_for.iter().map(|(task, comm, ms)| {
        let comm: &str = comm;
        json!({"task": task.0, "comm": comm, "pid": taken.pid(*task), "ms": round3(*ms)})
    });
    let comm: &str = &of.comm;
    json!({
        "task": of.task.0,
        "comm": comm,
        "pid": taken.pid(of.task),
        "running_ms": round3(of.parts.running_ms()),
        "waiting_ms": round3(of.parts.waiting_ms()),
        "parts": parts(&of.parts),
        "switches": of.switches,
        "wakeups": of.wakeups,
        "activations": of.activations,
        "activation": percentiles(&of.took),
        "wakeup": percentiles(&of.waited),
        "migrations": of.moves,
        "running": of.running.iter().map(running).collect::<Vec<_>>(),
        "waited_for": waited_for.collect::<Vec<_>>(),
        "jobs": of.jobs.as_ref().map(jobs),
    })
}

fn jobs(of: &Jobs) -> Value {
    json!({
        "period_ms": round3(of.period_ms),
        "found": of.whose == Whose::Found,
        "near_pct": round3(of.near),
        "activations": of.activations,
        "n": of.n,
        "late": of.late,
        "took": percentiles(&of.took),
    })
}

fn marked(of: &MarkedJobs) -> Value {
    json!({
        "what": of.marked.as_str(), "name": of.name, "n": of.n, "late": of.late, "janky": of.janky,
        "took": percentiles(&of.took),
    })
}

fn walked(taken: &Taken<'_>, of: &Walked) -> Value {
    let comm: &str = &of.comm;
    json!({
        "task": of.task.0,
        "comm": comm,
        "pid": taken.pid(of.task),
        "at_s": taken.clock_s(of.from),
        "took_ms": round3(of.took_ms()),
        "whole": of.whole,
        "migrations": of.moves,
        "parts": parts(&of.parts),
        "steps": of.steps.iter().map(|one| step(taken, of, one)).collect::<Vec<_>>(),
        "steps_left_out": of.more,
    })
}

fn step(taken: &Taken<'_>, of: &Walked, one: &Step) -> Value {
    let (did, freq, who) = match one.did {
        Did::Ran(freq) => ("ran", freq, None),
        Did::Waited(part, who) => (part.about().word, None, who),
    };
    let comm = who.map(|(_, comm)| comm.to_string());
    json!({
        "after_ms": round3((one.from - of.from) as f64 / 1e6),
        "ms": round3((one.to - one.from) as f64 / 1e6),
        "cpu": one.cpu.0,
        "did": did,
        "freq_khz": freq.map(|freq| freq.0),
        "comm": comm,
        "pid": who.and_then(|(task, _)| taken.pid(task)),
    })
}
