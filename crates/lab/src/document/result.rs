//! The result of a run as a document: every record of it, key by key.
//!
//! Figures that are not known are null, as in the result; why they are not known is derived from `known`, which stands beside them.

use super::value::{At, Document, field, records, words};
use risetime_analysis::caution::{Caution, WEAK};
use risetime_analysis::known::Known;
use risetime_analysis::{
    Burst, By, Cooling, CpuResult, Distributions, EndedBy, Heat, Jobs, LOST_STATES, Latency,
    Latest, Level, Lost, Migration, Missed, Moves, Percentiles, Piece, Position, Quota, Reach,
    Reservation, RunResult, RunningAt, Spent, Stretch, TaskResult, Throttled, Timeline,
    UtilResidency, Waits, WaitsBy, Wakes,
};
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_model::InputError;
use risetime_model::workload::Policy;
use risetime_trace::{BackendKind, Why};
use serde_json::{Value as Json, json};

records! {
    RunResult {
        policy, known, backend, platform, workload, kernel_release, seed, phase, settings, end_ms, tasks, lead, cpus,
        latency, waits, wakes, freq_changes, work_ms, exited, makespan_ms, jobs, quotas, heat, cooling, pieces, energy_mj,
        notes, cautions,
    }
    Known { machine, experiment, idle, frequencies }
    TaskResult {
        task, comm, endless, policies, bursts, burst, reach, perf_10_90_ms, spent, util_residency, migrations, lost, whole,
        reservation, stretch, looked_for,
    }
    Spent { running_ms, wait_ms, work_ms, longer_ms, longer, energy_mj, running, migrations }
    Burst {
        t0_ms, t1_ms, end_ms, ended_by, running_ms, took_ms, longer_ms, debt_ms, debt_capped_ms, debt_affinity_ms,
    }
    Reach { what, after_ms }
    RunningAt { cpu, freq, ms }
    UtilResidency { util, ms }
    Stretch { from, to }
    Position { step, sleeps }
    Reservation { unfinished_ms, due, throttled }
    Throttled { n, ms, longest_ms, replenished }
    CpuResult { cpu, domain, told, capacity, energy_mj, freq, idle, busy_ms }
    Latency {
        tasks, policy, activations, p50_ms, p90_ms, p99_ms, p99_9_ms, max_ms, unfinished, unfinished_ms, longer, wakeup,
        wu_lat,
    }
    Waits { n, took }
    WaitsBy { by, name, wakeup }
    Wakes { tasks, cpus, timer_interrupts }
    Percentiles { p50, p90, p95, p99, p99_9, max, min, mean }
    Jobs {
        name, tasks, declared, released, due, by_timer, done, late, merged, dropped, unfinished, overdue, per_second,
        response, lateness, longer, latest, worst, mj_per_job, energy,
    }
    Latest { comm, number, due_ms, lateness_ms }
    Quota { group, periods, throttled, throttled_ms, longest_ms }
    Heat { zone, start_celsius, max_celsius, max_at_ms, end_celsius, critical_at_ms }
    Cooling { policy, capped_ms, lowest_max, changes }
    Piece { instance, number }
    Timeline { util, speed, freq, cpu, latency, jobs }
    Distributions { tasks, took, waited }
}

words! {
    BackendKind, |kind| kind.as_str(), BackendKind::of_word, "a kind of backend";
    EndedBy, |ended| ended.as_str(), ended_by, "an event that ends a burst";
    By, |by| by.as_str(), by, "what tasks have in common";
}

fn ended_by(word: &str) -> Option<EndedBy> {
    let all = [EndedBy::FullSpeed, EndedBy::Sleep, EndedBy::Exit, EndedBy::RunEnd];
    all.into_iter().find(|known| known.as_str() == word)
}

fn by(word: &str) -> Option<By> {
    [By::Policy, By::Group, By::Capacity].into_iter().find(|known| known.as_str() == word)
}

/// A word that lives as long as the program.
type Word = &'static str;

/// Reads `key` of a record, a word of a table.
fn word(
    json: &Json,
    at: &At<'_>,
    key: &str,
    of: fn(&str) -> Option<Word>,
) -> Result<Word, InputError> {
    let found = json[key].as_str().and_then(of);
    found.ok_or_else(|| at.key(key).wanted("a word that this version knows"))
}

/// Returns a reason of the table, or of a plug-in, by its word.
fn why(word: &str) -> Option<Word> {
    Some(Why::other(word).as_str())
}

fn lost_state(word: &str) -> Option<Word> {
    LOST_STATES.iter().map(|state| state.0).find(|state| *state == word)
}

fn missed_how(word: &str) -> Option<Word> {
    ["late", "merged", "dropped", "overdue"].into_iter().find(|how| *how == word)
}

impl Document for Moves {
    fn to_value(&self) -> Json {
        let Moves { from, to, why, n } = self;
        json!({"from": from, "to": to, "why": why, "n": n})
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Moves, InputError> {
        Ok(Moves {
            from: field(json, at, "from")?,
            to: field(json, at, "to")?,
            why: word(json, at, "why", why)?,
            n: field(json, at, "n")?,
        })
    }
}

impl Document for Migration {
    fn to_value(&self) -> Json {
        let Migration { at_ms, from, to, why } = self;
        json!({"at_ms": at_ms, "from": from.0, "to": to.0, "why": why})
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Migration, InputError> {
        Ok(Migration {
            at_ms: field(json, at, "at_ms")?,
            from: field(json, at, "from")?,
            to: field(json, at, "to")?,
            why: word(json, at, "why", why)?,
        })
    }
}

impl Document for Lost {
    fn to_value(&self) -> Json {
        let Lost { state, ms } = self;
        json!({"state": state, "ms": ms})
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Lost, InputError> {
        Ok(Lost { state: word(json, at, "state", lost_state)?, ms: field(json, at, "ms")? })
    }
}

impl Document for Missed {
    fn to_value(&self) -> Json {
        let Missed { comm, number, n, how, release_ms, due_ms, over_ms, lateness_ms, longest } =
            self;
        json!({
            "comm": comm, "number": number, "n": n, "how": how, "release_ms": release_ms, "due_ms": due_ms,
            "over_ms": over_ms, "lateness_ms": lateness_ms, "longest": longest.to_value(),
        })
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Missed, InputError> {
        Ok(Missed {
            comm: field(json, at, "comm")?,
            number: field(json, at, "number")?,
            n: field(json, at, "n")?,
            how: word(json, at, "how", missed_how)?,
            release_ms: field(json, at, "release_ms")?,
            due_ms: field(json, at, "due_ms")?,
            over_ms: field(json, at, "over_ms")?,
            lateness_ms: field(json, at, "lateness_ms")?,
            longest: field(json, at, "longest")?,
        })
    }
}

impl Document for Caution {
    fn to_value(&self) -> Json {
        let Caution { figure, typical, why, .. } = self;
        json!({"figure": figure, "typical": typical, "why": why})
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Caution, InputError> {
        let known = WEAK.iter().map(|weak| weak.says).find(|says| says.to_value() == *json);
        known.ok_or_else(|| at.wanted("a caution that this version gives"))
    }
}

impl Document for Level {
    fn to_value(&self) -> Json {
        match self {
            Level::Util(util) => json!({"util": util}),
            Level::Freq { cpu, freq } => json!({"cpu": cpu.0, "freq": freq.0}),
            Level::Capacity(capacity) => json!({"capacity": capacity}),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Level, InputError> {
        let has = |key: &str| json.get(key).is_some();
        match () {
            () if has("util") => Ok(Level::Util(field(json, at, "util")?)),
            () if has("freq") => {
                let (cpu, freq): (CpuId, KHz) = (field(json, at, "cpu")?, field(json, at, "freq")?);
                Ok(Level::Freq { cpu, freq })
            }
            () if has("capacity") => Ok(Level::Capacity(field(json, at, "capacity")?)),
            () => Err(at.wanted("a level: util, freq or capacity")),
        }
    }
}

impl Document for Policy {
    fn to_value(&self) -> Json {
        let mut record = json!({"class": self.name()});
        let mut span = |key: &str, span: Span| record[key] = span.0.into();
        match *self {
            Policy::Other { slice } | Policy::Batch { slice } | Policy::High { slice } => {
                slice.into_iter().for_each(|slice| span("slice_ns", slice));
            }
            Policy::Idle => {}
            Policy::Fifo { priority } | Policy::Rr { priority } => {
                record["priority"] = priority.into();
            }
            Policy::Overcommit { runtime, period } => {
                span("runtime_ns", runtime);
                span("period_ns", period);
            }
            Policy::Deadline { runtime, deadline, period, reclaim } => {
                span("runtime_ns", runtime);
                span("deadline_ns", deadline);
                span("period_ns", period);
                record["reclaim"] = reclaim.into();
            }
        }
        record
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Policy, InputError> {
        let span = |key: &str| field::<Span>(json, at, key);
        let (slice, priority) = (|| field(json, at, "slice_ns"), || field(json, at, "priority"));
        Ok(match json["class"].as_str() {
            Some("SCHED_OTHER") => Policy::Other { slice: slice()? },
            Some("SCHED_BATCH") => Policy::Batch { slice: slice()? },
            Some("SCHED_HIGH") => Policy::High { slice: slice()? },
            Some("SCHED_IDLE") => Policy::Idle,
            Some("SCHED_FIFO") => Policy::Fifo { priority: priority()? },
            Some("SCHED_RR") => Policy::Rr { priority: priority()? },
            Some("SCHED_OVERCOMMIT") => {
                Policy::Overcommit { runtime: span("runtime_ns")?, period: span("period_ns")? }
            }
            Some("SCHED_DEADLINE") => Policy::Deadline {
                runtime: span("runtime_ns")?,
                deadline: span("deadline_ns")?,
                period: span("period_ns")?,
                reclaim: field(json, at, "reclaim")?,
            },
            _ => return Err(at.key("class").wanted("a scheduling policy")),
        })
    }
}
