//! Results as JSON, schema 2. Every key is explained in `docs/json.md`.
//!
//! ```text
//! {"schema": 2, "runs": [ {policy, …, "tasks": [ … ], "cpus": [ … ]}, … ]}
//! ```
//!
//! Runs are written task by task: of thousands of tasks one at a time is a tree in memory.
//!
//! Keys end in their unit and come in a fixed order; a record that is short stays on one
//! line, so that a residency of hundreds of rows can be read and compared with `diff`. Times
//! and energies are rounded to 3 decimals (µs, µJ): below that the figures are only an
//! artefact of their floating-point sum. "Never" is `null`.
//!
//! Left out: the curves of the plots (the Perfetto file has them).

mod advice;
mod compare;
mod explain;
mod goal;
mod history;
mod spread;
mod step;
mod sweep;
mod trace;
mod writer;

pub use advice::advice;
pub use compare::compare;
pub use explain::explain;
pub use goal::goal;
pub use history::{bisected, history};
pub use spread::{verify_spread, verify_spread_set};
pub use step::verify_step;
pub use sweep::sweep;
pub use trace::{trace, walk};

use crate::Told;
use crate::words::round3;
use risetime_analysis::absent::{Unknown, unknown};
use risetime_analysis::caution::Caution;
use risetime_analysis::compare::{Difference, Estimate};
use risetime_analysis::known::Known;
use risetime_analysis::metric::Unit;
use risetime_analysis::named::{FIGURES, Figure, Tasks, Value as Of};
use risetime_analysis::study::{
    Against, AgainstFigure, Cells, Elsewhere, Reproduced, TradeOff, Tried,
};
use risetime_analysis::verify::{Caught, Check, Comparison, Judged, Mode, Phased};
use risetime_analysis::{
    Burst, Cooling, CpuPhases, CpuResult, EndedBy, Heat, Jobs, JobsPhases, Latency, Level, Lost,
    LostPhases, Migration, Missed, Percentiles, PhaseSummary, Quota, Reach, ReachPhases, RunningAt,
    RunningPhases, Spent, Spread, TaskPhases, TaskResult, Waits, WaitsBy,
};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::{Settings, Value as Setting};
use serde_json::{Value, json};
use std::io::{self, Write};
use writer::{Writer, print, stream};

/// The version of the layout. It changes when a key changes its meaning or goes; new keys
/// may come at any time.
pub const SCHEMA: u32 = 2;

/// Writes all figures of runs as JSON. Ends in a newline.
///
/// Errors: those of `out` and of the lists.
pub fn runs(out: &mut dyn Write, runs: &mut [Told<'_>]) -> io::Result<()> {
    stream(out, |page| {
        page.key("schema", &json!(SCHEMA))?;
        page.nested(Some("runs"), "[]", |list| runs.iter_mut().try_for_each(|told| run(list, told)))
    })
}

/// Writes the runs of each start phase as JSON, and for each policy, by its name, a summary of its
/// phases. Ends in a newline.
///
/// Errors: those of `out` and of the lists.
pub fn phases(
    out: &mut dyn Write,
    runs: &mut [Told<'_>],
    policies: &[(&str, &PhaseSummary)],
) -> io::Result<()> {
    stream(out, |page| {
        page.key("schema", &json!(SCHEMA))?;
        page.nested(Some("runs"), "[]", |list| {
            runs.iter_mut().try_for_each(|told| run(list, told))
        })?;
        page.nested(Some("summary"), "[]", |list| {
            policies.iter().try_for_each(|(policy, s)| list.item(&summary(policy, s)))
        })
    })
}

fn summary(policy: &str, s: &PhaseSummary) -> Value {
    json!({
        "policy": policy,
        "phases_us": s.phases.iter().map(|p| us(*p)).collect::<Vec<_>>(),
        "tasks": s.tasks.iter().map(task_phases).collect::<Vec<_>>(),
        "cpus": s.cpus.iter().map(cpu_phases).collect::<Vec<_>>(),
        "jobs": s.jobs.iter().map(jobs_phases).collect::<Vec<_>>(),
        "energy_mj": spread(&s.energy_mj),
    })
}

fn jobs_phases(j: &JobsPhases) -> Value {
    let each = |all: &[(&str, Spread)], unit: &str| -> Value {
        all.iter().map(|(name, s)| (format!("{name}{unit}"), spread(s))).collect()
    };
    let mut record = each(&j.counts, "");
    record["name"] = j.name.clone().into();
    record["response"] = each(&j.response, "_ms");
    record["lateness"] = each(&j.lateness, "_ms");
    record["longer"] = each(&j.longer, "_ms");
    record["mj_per_job"] = spread(&j.mj_per_job);
    record["energy"] = each(&j.energy, "_mj");
    record
}

/// A burst in the list of what happened, on a line.
pub fn burst_line(task: TaskId, comm: &str, b: &Burst) -> String {
    let mut record = burst(b);
    record["debt_ms"] = round3(b.debt_ms).into();
    record["debt_capped_ms"] = round3(b.debt_capped_ms).into();
    line("burst", task, comm, record)
}

/// A change of CPU there.
pub fn migration_line(task: TaskId, comm: &str, m: &Migration) -> String {
    line("migration", task, comm, migration(m))
}

/// A job there that was missed.
pub fn missed_line(job: &str, m: &Missed) -> String {
    let longest = m.longest.as_ref();
    json!({
        "job": job, "comm": m.comm, "number": m.number, "n": m.n, "how": m.how, "release_ms": round3(m.release_ms),
        "due_ms": m.due_ms.map(round3),
        "done_ms": Some(m.over_ms).filter(|_| m.how == "late").map(round3),
        "lateness_ms": m.lateness_ms.map(round3), "longest_with": longest.map(|(task, _)| task),
        "longest_ms": longest.map(|(_, ms)| round3(*ms)), "what": "job",
    })
    .to_string()
}

fn line(what: &str, task: TaskId, comm: &str, mut record: Value) -> String {
    record["what"] = what.into();
    record["task"] = task.0.into();
    record["comm"] = comm.into();
    record.to_string()
}

/// Writes as JSON by which checks the simulator does what the kernel `release` did.
pub fn verify(
    experiment: &str,
    release: &str,
    comparison: &Comparison,
    wanted: usize,
    unread: &[String],
) -> String {
    let checks: Vec<Value> = comparison.checks.iter().map(check).collect();
    print(&json!({
        "schema": SCHEMA, "experiment": experiment, "kernel": release, "mode": comparison.mode.as_str(),
        "checks": checks, "wanted": wanted, "holds": comparison.held() >= wanted, "not_read": unread,
    }))
}

/// Writes a reproduced study as JSON: every row with its verdict.
pub fn study(study: &Reproduced) -> String {
    let score = study.score();
    let rows: Vec<Value> = study
        .rows()
        .map(|r| {
            let number = |x: f64| x.is_finite().then(|| round3(x));
            json!({
                "id": r.id, "published": r.published, "measured": r.measured.and_then(number),
                "unit": r.unit, "tolerance": number(r.tolerance.total()), "holds": r.holds,
                "counted": r.counts(), "from": if r.ours { "ours" } else { "document" },
                "argued": r.misses().then(|| r.argued()), "note": if r.misses() { r.reason() } else { r.note.clone() }, "relation": match r.relation { "≥" => "at_least", "≤" => "at_most", _ => "equal" },
                "last_digit": number(r.tolerance.last_digit), "tick": number(r.tolerance.tick),
                "spread": number(r.tolerance.spread), "open": number(r.tolerance.open),
            })
        })
        .collect();
    let figures: Vec<Value> = study
        .figures
        .iter()
        .map(|f| {
            let mut figure =
                json!({"id": f.id, "place": f.place, "about": f.about, "command": f.command});
            if !f.trade_offs.is_empty() {
                figure["trade_offs"] = f.trade_offs.iter().map(trade_off).collect();
            }
            if let Some(cells) = &f.cells {
                figure["cells"] = cells_of(cells);
                figure["free"] = cells.free.iter().map(tried).collect();
            }
            if !f.elsewhere.is_empty() {
                figure["elsewhere"] = f.elsewhere.iter().map(elsewhere).collect();
            }
            figure
        })
        .collect();
    print(&json!({
        "schema": SCHEMA, "study": study.study, "source": study.source, "phases": study.phases,
        "counted": score.document.counted, "held": score.document.held,
        "ours_counted": score.ours.counted, "ours_held": score.ours.held, "cannot_fail": score.blunt,
        "holds": study.holds(), "figures": figures, "rows": rows,
    }))
}

fn elsewhere(e: &Elsewhere) -> Value {
    json!({
        "with": e.about, "missing": e.missing, "holding": e.holding,
        "mended": e.mended, "broken": e.broken,
    })
}

/// Writes how many rows of a study hold under wrong policies as JSON. Ends in a newline.
pub fn study_against(study: &Reproduced, all: &[Against]) -> String {
    let figure = |f: &AgainstFigure| {
        json!({"id": f.id, "counted": f.right.counted, "held": f.right.held, "holds": f.wrong,
            "told_apart": f.told_apart()})
    };
    let against = |a: &Against| {
        let (right, wrong) = a.total();
        json!({"policy": a.policy, "counted": right.counted, "held": right.held, "holds": wrong,
            "figures": a.figures.iter().map(figure).collect::<Vec<_>>()})
    };
    print(&json!({
        "schema": SCHEMA, "study": study.study, "source": study.source, "phases": study.phases,
        "against": all.iter().map(against).collect::<Vec<_>>(),
    }))
}

fn cells_of(c: &Cells) -> Value {
    let number = |x: Option<f64>| x.filter(|x| x.is_finite()).map(round3);
    let mut all = Vec::new();
    for ((quantity, unit), cases) in c.quantities.iter().zip(&c.cells) {
        for ((case, case_fit), cells) in c.cases.iter().zip(cases) {
            for ((column, column_fit), cell) in c.columns.iter().zip(cells) {
                all.push(json!({
                    "quantity": quantity, "unit": unit, "case": case, "column": column,
                    "published": number(cell.published), "measured": number(cell.measured),
                    "untouched": number(cell.untouched), "fitted": *case_fit && *column_fit,
                    "stdev": number(cell.stdev), "measured_stdev": number(cell.spread),
                }));
            }
        }
    }
    all.into()
}

fn tried(t: &Tried) -> Value {
    let number = |x: f64| x.is_finite().then(|| round3(x));
    let values: Vec<Value> = t
        .values
        .iter()
        .map(|(value, off)| json!({"value": value, "mean_error": number(*off)}))
        .collect();
    json!({
        "name": t.name, "columns": t.columns, "cases": t.cases, "why": t.why, "values": values,
        "chosen": t.values.get(t.chosen).map(|v| &v.0),
    })
}

fn trade_off(t: &TradeOff) -> Value {
    let number = |x: Option<f64>| x.filter(|x| x.is_finite()).map(round3);
    json!({
        "policy": t.policy, "slack_ms": number(t.slack_ms),
        "slack_least_ms": number(t.slack_least_ms), "mean_ghz": number(t.mean_ghz),
        "energy_mj": number(t.energy_mj),
    })
}

/// Experiments that were drawn: name, platform, length in ms, tasks, settings. For a program.
pub fn drawn(seed: u64, rows: &[(String, String, u64, usize, String)]) -> String {
    let row = |(name, platform, ms, tasks, settings): &(String, String, u64, usize, String)| json!({"name": name, "platform": platform, "ms": ms, "tasks": tasks, "settings": settings});
    let all: Vec<Value> = rows.iter().map(row).collect();
    print(&json!({"schema": SCHEMA, "seed": seed, "experiments": all}))
}

/// An experiment that goes wrong, made smaller.
#[derive(Clone, Copy, Debug)]
pub struct Smaller<'a> {
    /// Name of the case that it was made from.
    pub name: &'a str,
    /// Platform on which it goes wrong.
    pub platform: &'a str,
    /// `+key=value…`.
    pub settings: &'a str,
    /// Length of the run, in ms.
    pub ms: u64,
    /// rt-app JSON.
    pub workload: &'a str,
    /// Cases that were run for it.
    pub tries: usize,
    /// True if nothing more can be left out.
    pub done: bool,
}

/// Writes the smallest experiment found that still goes wrong, as JSON.
pub fn shrunk(s: &Smaller<'_>) -> String {
    print(&json!({
        "schema": SCHEMA, "name": s.name, "platform": s.platform, "settings": s.settings, "ms": s.ms,
        "workload": s.workload, "tries": s.tries, "done": s.done,
    }))
}

fn check(c: &Check) -> Value {
    let number = |x: f64| x.is_finite().then(|| round3(x));
    json!({
        "name": c.name, "measured": number(c.measured), "band": number(c.band), "unit": c.unit,
        "holds": c.holds, "why": c.why,
    })
}

/// Writes a verified experiment from several start phases as JSON.
pub fn verify_phases(experiment: &str, release: &str, mode: Mode, phased: &Phased) -> String {
    let ms = |s: Option<Span>| s.map(|s| round3(s.as_ms()));
    let phases: Vec<Value> = phased
        .phases
        .iter()
        .map(|p| {
            json!({
                "phase_us": us(p.phase), "reference_ms": ms(p.reference),
                "simulated_ms": ms(p.candidate), "held": p.comparison.held(),
            })
        })
        .collect();
    let (was, is) = phased.medians_ms();
    print(&json!({
        "schema": SCHEMA, "experiment": experiment, "kernel": release, "mode": mode.as_str(),
        "top_opp": phases, "median_reference_ms": was.map(round3),
        "median_simulated_ms": is.map(round3), "deviation_pct": phased.deviation_pct().map(round3),
        "band_pct": phased.band_pct(), "wanted": phased.wanted, "holds": phased.holds(),
    }))
}

/// The set of experiments, judged, for a program; `holds` if each one and nine tenths of all
/// checks do. `outside`: the names of those that are left out of it, each with its cause.
pub fn verify_set(release: &str, set: &[Judged], outside: &[(&str, &str)], holds: bool) -> String {
    let checks = |phases: &[Comparison]| -> Value {
        phases.iter().map(|c| c.checks.iter().map(check).collect::<Value>()).collect()
    };
    let experiments: Vec<Value> = set
        .iter()
        .map(|j| {
            json!({
                "name": j.name, "settings": j.settings, "wanted": j.wanted, "holds": j.holds(),
                "given": checks(&j.given), "free": checks(&j.free),
            })
        })
        .collect();
    let outside: Vec<Value> =
        outside.iter().map(|(name, cause)| json!({"name": name, "cause": cause})).collect();
    print(&json!({
        "schema": SCHEMA, "kernel": release, "experiments": experiments, "outside": outside,
        "holds": holds,
    }))
}

/// The wrong simulators, and what exposes each, for a program.
pub fn mutants(release: &str, caught: &[Caught]) -> String {
    let mutants: Vec<Value> = caught
        .iter()
        .map(|c| {
            let by = c.by.as_ref().map(|(experiment, mode, by)| {
                json!({"experiment": experiment, "mode": mode.as_str(), "check": check(by)})
            });
            json!({"name": c.name, "about": c.about, "checks_failed": c.failed, "caught_by": by})
        })
        .collect();
    let holds = caught.iter().all(|c| c.by.is_some());
    print(&json!({"schema": SCHEMA, "kernel": release, "mutants": mutants, "holds": holds}))
}

fn spread(s: &Spread) -> Value {
    let n = |x: Option<f64>| x.map(round3);
    json!({
        "median": n(s.median), "min": n(s.min), "q1": n(s.q1), "q3": n(s.q3), "max": n(s.max),
        "n": s.n, "never": s.never,
    })
}

/// A median and its interval.
fn estimate(e: Option<&Estimate>) -> Value {
    json!(e.map(|e| json!({
        "median": round3(e.median),
        "low": e.interval.map(|i| round3(i.0)),
        "high": e.interval.map(|i| round3(i.1)),
        "n": e.n,
    })))
}

fn difference(d: Option<&Difference>) -> Value {
    json!(d.map(|d| json!({
        "median": round3(d.median),
        "low": round3(d.interval.0),
        "high": round3(d.interval.1),
        "n": d.n,
        "left_out": d.left_out,
        "sure": d.is_sure(),
    })))
}

fn task_phases(t: &TaskPhases) -> Value {
    let running = |of: &[RunningPhases]| -> Value {
        of.iter()
            .map(|r| json!({"cpu": r.cpu.0, "freq_khz": r.freq.0, "ms": spread(&r.ms)}))
            .collect()
    };
    let on = |of: &[(CpuId, Spread)]| -> Value {
        of.iter().map(|(cpu, ms)| json!({"cpu": cpu.0, "ms": spread(ms)})).collect()
    };
    let lost = |of: &[LostPhases]| -> Value {
        of.iter().map(|l| json!({"state": l.state, "ms": spread(&l.ms)})).collect()
    };
    let reached = |r: &ReachPhases| {
        let mut record = level(r.what);
        record["after_ms"] = spread(&r.after_ms);
        record
    };
    json!({
        "comm": t.comm,
        "endless": t.endless,
        "bursts": spread(&t.bursts),
        "ended_by": t.ended_by.iter().map(|(e, n)| json!({
            "ended_by": e.as_str(), "runs": n,
        })).collect::<Vec<_>>(),
        "t0_ms": spread(&t.t0_ms),
        "running_ms": spread(&t.running_ms),
        "took_ms": spread(&t.took_ms),
        "longer_ms": spread(&t.longer_ms),
        "reach": t.reach.iter().map(reached).collect::<Vec<_>>(),
        "perf_10_90_ms": spread(&t.perf_10_90_ms),
        "debt_ms": spread(&t.debt_ms),
        "debt_capped_ms": spread(&t.debt_capped_ms),
        "wait_ms": spread(&t.wait_ms),
        "energy_mj": spread(&t.energy_mj),
        "migrations": spread(&t.migrations),
        "running": running(&t.running),
        "domain_running": running(&t.domain_running),
        "on_cpu": on(&t.on_cpu),
        "on_domain": on(&t.on_domain),
        "lost": lost(&t.lost),
        "longer": lost(&t.longer),
    })
}

fn cpu_phases(c: &CpuPhases) -> Value {
    json!({
        "cpu": c.cpu.0,
        "domain": c.domain.0,
        "capacity": c.capacity,
        "energy_mj": spread(&c.energy_mj),
        "busy_ms": spread(&c.busy_ms),
        "freq": c.freq.iter().map(|(f, ms)| json!({
            "freq_khz": f.0, "ms": spread(ms),
        })).collect::<Vec<_>>(),
        "idle": c.idle.iter().map(|(state, ms)| json!({
            "state": state, "ms": spread(ms),
        })).collect::<Vec<_>>(),
    })
}

fn settings(settings: &Settings) -> Value {
    let value = |value: &Setting| match value {
        Setting::Int(n) => json!(n),
        Setting::Name(s) => json!(s),
    };
    let entry = |(name, v): (&String, &Setting)| (name.clone(), value(v));
    Value::Object(settings.iter().map(entry).collect())
}

/// A start phase in µs: whole, or with the decimals that a ns takes, which a double holds exactly enough.
fn us(phase: Span) -> Value {
    if phase.0.is_multiple_of(1000) {
        json!(phase.0 / 1000)
    } else {
        json!(phase.0 as f64 / 1000.0)
    }
}

fn run(list: &mut Writer<'_>, told: &mut Told<'_>) -> io::Result<()> {
    let r = told.run;
    list.nested(None, "{}", |page| {
        page.key("policy", &json!(r.policy))?;
        page.key("backend", &json!(r.backend.as_str()))?;
        page.key("platform", &json!(r.platform))?;
        page.key("workload", &json!(r.workload))?;
        page.key("kernel_release", &json!(r.kernel_release))?;
        page.key("seed", &json!(r.seed))?;
        page.key("phase_us", &us(r.phase))?;
        page.key("settings", &settings(&r.settings))?;
        page.nested(Some("tasks"), "[]", |list| {
            r.tasks.iter().try_for_each(|t| list.item(&task(t, r.known)))
        })?;
        page.nested(Some("cpus"), "[]", |list| {
            r.cpus.iter().try_for_each(|c| list.item(&cpu(c, r.known)))
        })?;
        page.key("jobs", &r.jobs.iter().map(jobs).collect())?;
        page.key("quotas", &r.quotas.iter().map(quota).collect())?;
        if !r.heat.is_empty() {
            page.key("heat", &r.heat.iter().map(heat).collect())?;
        }
        if !r.cooling.is_empty() {
            page.key("cooling", &r.cooling.iter().map(cooling).collect())?;
        }
        page.key("latency", &r.latency.iter().map(latency).collect())?;
        page.key("waits", &r.waits.iter().map(waits_by).collect())?;
        for (key, figure) in keyed() {
            if let Of::Run(value) = figure.value {
                page.key(key, &number(r.known(figure, value(r)), figure.unit))?;
            }
        }
        page.key("end_ms", &json!(round3(r.end_ms)))?;
        page.key("notes", &json!(r.notes))?;
        page.key("cautions", &cautions(&r.cautions))?;
        let unknown = unknown(r);
        if !unknown.is_empty() {
            page.key("unknown", &unknown.iter().map(not_known).collect())?;
        }
        match &mut told.listed {
            Some(lines) => page
                .nested(Some("listed"), "[]", |list| lines.try_for_each(|line| list.raw(&line?))),
            None => Ok(()),
        }
    })
}

/// A thing that is not known of a run, and the figures that are absent for it.
fn not_known(unknown: &Unknown) -> Value {
    let Unknown { need, why, figures } = unknown;
    json!({"needs": need.as_str(), "why": why, "figures": figures})
}

/// Lists which figures are known to be weak.
fn cautions(all: &[Caution]) -> Value {
    let one = |c: &Caution| json!({"figure": c.figure, "typical": c.typical, "why": c.why});
    all.iter().map(one).collect()
}

fn waits_by(w: &WaitsBy) -> Value {
    let mut record = waits(&w.wakeup);
    record["by"] = w.by.as_str().into();
    record["of"] = w.name.clone().into();
    record
}

/// Iterates over the figures that the table itself puts into a run's JSON, with their keys.
fn keyed() -> impl Iterator<Item = (&'static str, &'static Figure)> {
    FIGURES.iter().filter_map(|figure| Some((figure.json?, figure)))
}

fn jobs(j: &Jobs) -> Value {
    let mut record = json!({"name": j.name, "tasks": j.tasks});
    for (key, figure) in keyed() {
        match figure.value {
            Of::Job(value) => record[key] = number(value(j), figure.unit),
            Of::EachJob(each) => record[key] = json!(each(j).map(|p| in_unit(&p, figure.unit))),
            _ => {}
        }
    }
    record["latest"] = json!(j.latest.as_ref().map(|l| json!({
        "comm": l.comm, "job": l.number, "due_ms": round3(l.due_ms), "lateness_ms": round3(l.lateness_ms),
    })));
    record
}

fn heat(h: &Heat) -> Value {
    json!({
        "zone": h.zone, "start_celsius": h.start_celsius, "max_celsius": h.max_celsius,
        "max_at_ms": round3(h.max_at_ms), "end_celsius": h.end_celsius,
        "critical_at_ms": h.critical_at_ms.map(round3),
    })
}

fn cooling(c: &Cooling) -> Value {
    json!({
        "policy": c.policy.0, "capped_ms": round3(c.capped_ms),
        "lowest_max_khz": c.lowest_max.map(|f| f.0), "changes": c.changes,
    })
}

fn quota(q: &Quota) -> Value {
    let mut record = json!({"group": q.group});
    for (key, figure) in keyed() {
        if let Of::Group(value) = figure.value {
            record[key] = number(value(q), figure.unit);
        }
    }
    record
}

/// Writes a figure: a count as a whole number, all else as [`round3`] leaves it.
fn number(value: Option<f64>, unit: Unit) -> Value {
    match unit {
        Unit::Count => json!(value.map(|n| n as u64)),
        _ => json!(value.map(round3)),
    }
}

/// Writes percentiles with their unit behind the names, `p99_ms`.
fn in_unit(p: &Percentiles, unit: Unit) -> Value {
    let unit = unit.word().to_lowercase();
    p.named().into_iter().map(|(name, x)| (format!("{name}_{unit}"), round3(x))).collect()
}

/// Writes how long wakeups waited: percentiles and their number.
fn waits(w: &Waits) -> Value {
    let mut record = w.took.as_ref().map_or(json!({}), |p| in_unit(p, Unit::Time));
    record["n"] = w.n.into();
    record
}

fn latency(l: &Latency) -> Value {
    let mut record = json!({
        "tasks": l.tasks, "activations": l.activations, "p50_ms": round3(l.p50_ms),
        "p90_ms": round3(l.p90_ms), "p99_ms": round3(l.p99_ms),
        "p99_9_ms": round3(l.p99_9_ms), "max_ms": round3(l.max_ms),
        "unfinished": l.unfinished, "unfinished_ms": round3(l.unfinished_ms),
    });
    let of = Tasks { tasks: &[], latency: Some(l) };
    for (key, figure) in keyed() {
        if let Of::Each(each) = figure.value {
            record[key] = json!(each(&of).map(|p| in_unit(&p, figure.unit)));
        }
    }
    (record["wakeup"], record["wu_lat"]) = (waits(&l.wakeup), waits(&l.wu_lat));
    if let Some(policy) = l.policy {
        record["sched_policy"] = policy.to_string().into();
    }
    record
}

fn task(t: &TaskResult, known: Known) -> Value {
    let capacity = |of: u64| Some(of).filter(|_| known.machine);
    let in_burst = |b: &Burst| {
        let mut record = burst(b);
        record["wait_ms"] = round3(t.spent.wait_ms).into();
        record["work_ms"] = round3(t.spent.work_ms).into();
        record["energy_mj"] = t.spent.energy_mj.map(round3).into();
        record["migrations"] = t.spent.moves().into();
        record
    };
    let mut record = json!({
        "task": t.task.0,
        "comm": t.comm,
        "endless": t.endless,
        "bursts": t.bursts,
        "burst": t.burst.as_ref().map(in_burst),
        "reach": t.reach.iter().map(reach).collect::<Vec<_>>(),
        "perf_10_90_ms": t.perf_10_90_ms.map(round3),
        "debt_ms": t.burst.map(|b| round3(b.debt_ms)),
        "debt_capped_ms": t.burst.map(|b| round3(b.debt_capped_ms)),
        "running": running(&t.spent),
        "util_residency": t.util_residency.iter().map(|u| json!({
            "util": u.util, "ms": round3(u.ms),
        })).collect::<Vec<_>>(),
        "migrations": t.migrations.iter().map(migration).collect::<Vec<_>>(),
        "lost": states(&t.lost),
        "longer": states(&t.spent.longer),
        "whole": {
            "running_ms": round3(t.whole.running_ms),
            "wait_ms": round3(t.whole.wait_ms),
            "work_ms": round3(t.whole.work_ms),
            "longer_ms": round3(t.whole.longer_ms),
            "longer": states(&t.whole.longer),
            "energy_mj": t.whole.energy_mj.map(round3),
            "running": running(&t.whole),
            "migrations": t.whole.migrations.iter().map(|m| json!({
                "from_capacity": capacity(m.from), "to_capacity": capacity(m.to), "why": m.why, "n": m.n,
            })).collect::<Vec<_>>(),
        },
    });
    if !t.policies.is_empty() {
        record["sched_policies"] = t.policies.iter().map(|p| p.to_string()).collect();
    }
    if let Some(r) = &t.reservation {
        record["reservation"] = json!({
            "unfinished_ms": r.unfinished_ms.map(round3),
            "due": r.due,
            "throttled": r.throttled.map(|t| t.n),
            "throttled_ms": r.throttled.map(|t| round3(t.ms)),
            "throttled_longest_ms": r.throttled.map(|t| round3(t.longest_ms)),
            "replenished": r.throttled.map(|t| t.replenished),
        });
    }
    record
}

fn burst(b: &Burst) -> Value {
    json!({
        "t0_ms": round3(b.t0_ms),
        "t1_ms": round3(b.t1_ms),
        "end_ms": round3(b.end_ms),
        "ended_by": b.ended().map(EndedBy::as_str),
        "running_ms": round3(b.running_ms),
        "took_ms": round3(b.took_ms),
        "longer_ms": round3(b.longer_ms),
    })
}

fn states(all: &[Lost]) -> Value {
    all.iter().map(|l| json!({"state": l.state, "ms": round3(l.ms)})).collect()
}

fn running(s: &Spent) -> Value {
    let freq = |r: &RunningAt| Some(r.freq.0).filter(|freq| *freq > 0);
    let at = |r: &RunningAt| json!({"cpu": r.cpu.0, "freq_khz": freq(r), "ms": round3(r.ms)});
    s.running.iter().map(at).collect()
}

fn migration(m: &Migration) -> Value {
    json!({"at_ms": round3(m.at_ms), "from": m.from.0, "to": m.to.0, "why": m.why})
}

fn reach(r: &Reach) -> Value {
    let mut record = level(r.what);
    record["after_ms"] = json!(r.after_ms.map(round3));
    record
}

fn level(what: Level) -> Value {
    match what {
        Level::Util(level) => json!({"signal": "util", "level": level}),
        Level::Freq { cpu, freq } => {
            json!({"signal": "freq_khz", "cpu": cpu.0, "level": freq.0})
        }
        Level::Capacity(level) => json!({"signal": "capacity", "level": level}),
    }
}

fn cpu(c: &CpuResult, known: Known) -> Value {
    json!({
        "cpu": c.cpu.0,
        "domain": c.domain.0,
        "capacity": Some(c.capacity).filter(|_| known.machine),
        "energy_mj": c.energy_mj.map(round3),
        "busy_ms": round3(c.busy_ms),
        "freq": c.freq.iter().map(|(f, ms)| json!({
            "freq_khz": f.0, "ms": round3(*ms),
        })).collect::<Vec<_>>(),
        "idle": c.idle.iter().map(|(state, ms)| json!({
            "state": state, "ms": round3(*ms),
        })).collect::<Vec<_>>(),
    })
}
