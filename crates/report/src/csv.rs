//! Results as CSV in long form: one figure a row, ready for a pivot table or a data frame.
//!
//! ```text
//! policy,phase_us,task,figure,key,value,unit
//! linux-6.8,0,rampup,debt,,96.4,ms
//! linux-6.8,0,rampup,reach,util=450,110.3,ms
//! linux-6.8,0,rampup,running,cpu=0 freq_khz=600000,46,ms
//! linux-6.8,0,,cpu_energy,cpu=0,12,mJ
//! ```
//!
//! `task` is empty for figures of CPUs and of the whole machine; `value` is empty for
//! "never". Rounded like the JSON, in whose document (`docs/json.md`) the figures are
//! explained. Quoted by RFC 4180 where needed, lines end in `\n`.
//!
//! Left out: bursts other than the reported one, and notes.

use crate::words::{round3, task_names};
use risetime_analysis::{Jobs, Latency, Level, Percentiles, RunResult, TaskResult, Waits};
use risetime_model::{Value, micros};

/// What did these runs measure, one figure a row? Runs over start phases are told apart by
/// `phase_us`; their medians are left to whoever reads the rows.
pub fn runs(runs: &[RunResult]) -> String {
    let mut rows = Rows::new();
    for r in runs {
        rows.run(r);
    }
    rows.finish()
}

struct Rows {
    out: ::csv::Writer<Vec<u8>>,
    policy: String,
    phase_us: String,
    task: String,
}

impl Rows {
    fn new() -> Rows {
        let out = ::csv::Writer::from_writer(Vec::new());
        let text = String::new;
        let mut rows = Rows { out, policy: text(), phase_us: text(), task: text() };
        rows.record(&["policy", "phase_us", "task", "figure", "key", "value", "unit"]);
        rows
    }

    fn finish(self) -> String {
        let bytes = self.out.into_inner().expect("writing to memory cannot fail");
        String::from_utf8(bytes).expect("only strings were written")
    }

    fn record(&mut self, fields: &[&str]) {
        self.out.write_record(fields).expect("every row has seven fields");
    }

    /// A figure with its value as text.
    fn text(&mut self, figure: &str, key: &str, value: &str, unit: &str) {
        let (policy, phase, task) = (self.policy.clone(), self.phase_us.clone(), self.task.clone());
        self.record(&[&policy, &phase, &task, figure, key, value, unit]);
    }

    /// A figure; empty if there is none.
    fn figure(&mut self, figure: &str, key: &str, value: impl Into<Option<f64>>, unit: &str) {
        let value = value.into().filter(|v| v.is_finite());
        let value = value.map(|v| round3(v).to_string()).unwrap_or_default();
        self.text(figure, key, &value, unit);
    }

    fn run(&mut self, r: &RunResult) {
        self.policy.clone_from(&r.policy);
        self.phase_us = micros(r.phase);
        self.task.clear();
        for (name, value) in &r.settings.0 {
            let value = match value {
                Value::Int(n) => n.to_string(),
                Value::Name(s) => s.clone(),
            };
            self.text("setting", name, &value, "");
        }
        for (t, name) in r.tasks.iter().zip(task_names(r)) {
            self.task = name;
            self.task(t);
        }
        self.task.clear();
        for c in &r.cpus {
            let cpu = format!("cpu={}", c.cpu.0);
            self.figure("cpu_energy", &cpu, c.energy_mj, "mJ");
            self.figure("cpu_busy", &cpu, c.busy_ms, "ms");
            for (f, ms) in &c.freq {
                self.figure("cpu_freq", &format!("{cpu} freq_khz={}", f.0), *ms, "ms");
            }
            for (state, ms) in &c.idle {
                self.figure("cpu_idle", &format!("{cpu} state={state}"), *ms, "ms");
            }
        }
        r.jobs.iter().for_each(|jobs| self.jobs(jobs));
        r.latency.iter().for_each(|latency| self.latency(latency));
        for w in &r.waits {
            self.waits(&format!("{}={}", w.by.as_str(), w.name), &w.wakeup);
        }
        self.figure("work", "", r.work_ms, "ms");
        self.text("exited", "", &r.exited.0.to_string(), "");
        self.figure("makespan", "", r.makespan_ms, "ms");
        self.figure("energy", "", r.energy_mj, "mJ");
        self.figure("end", "", r.end_ms, "ms");
    }

    fn jobs(&mut self, j: &Jobs) {
        let of = format!("job={}", j.name);
        for (name, n) in j.counts() {
            self.text(&format!("jobs_{name}"), &of, &n.to_string(), "");
        }
        for (figure, p) in [("job_response", &j.response), ("job_lateness", &j.lateness)] {
            self.percentiles(figure, &of, p.as_ref());
        }
        self.figure("job_energy", &of, j.mj_per_job, "mJ");
    }

    fn waits(&mut self, of: &str, w: &Waits) {
        self.text("wakeups", of, &w.n.to_string(), "");
        self.percentiles("wakeup", of, w.took.as_ref());
    }

    fn percentiles(&mut self, figure: &str, of: &str, p: Option<&Percentiles>) {
        for (name, ms) in p.iter().flat_map(|p| p.named()) {
            self.figure(&format!("{figure}_{name}"), of, ms, "ms");
        }
    }

    fn latency(&mut self, l: &Latency) {
        let of = format!("tasks={}", l.tasks);
        self.text("activations", &of, &l.activations.to_string(), "");
        let figures = [
            ("activation_p50", l.p50_ms),
            ("activation_p90", l.p90_ms),
            ("activation_p99", l.p99_ms),
            ("activation_p99_9", l.p99_9_ms),
            ("activation_max", l.max_ms),
        ];
        figures.into_iter().for_each(|(figure, ms)| self.figure(figure, &of, ms, "ms"));
        self.waits(&of, &l.wakeup);
        self.text("activations_unfinished", &of, &l.unfinished.to_string(), "");
    }

    fn task(&mut self, t: &TaskResult) {
        self.figure("bursts", "", f64::from(t.bursts), "");
        if let Some(b) = &t.burst {
            self.figure("t0", "", b.t0_ms, "ms");
            self.figure("t1", "", b.t1_ms, "ms");
            self.figure("burst_end", "", b.end_ms, "ms");
            self.text("ended_by", "", b.ended_by.as_str(), "");
            self.figure("burst_running", "", b.running_ms, "ms");
            self.figure("debt", "", b.debt_ms, "ms");
            self.figure("debt_capped", "", b.debt_capped_ms, "ms");
        }
        for r in &t.reach {
            let key = match r.what {
                Level::Util(u) => format!("util={u}"),
                Level::Freq { cpu, freq } => format!("cpu={} freq_khz={}", cpu.0, freq.0),
                Level::Capacity(c) => format!("capacity={c}"),
            };
            self.figure("reach", &key, r.after_ms, "ms");
        }
        self.figure("perf_10_90", "", t.perf_10_90_ms, "ms");
        self.figure("wait", "", t.wait_ms, "ms");
        self.figure("energy", "", t.energy_mj, "mJ");
        for r in &t.running {
            let key = format!("cpu={} freq_khz={}", r.cpu.0, r.freq.0);
            self.figure("running", &key, r.ms, "ms");
        }
        for u in &t.util_residency {
            self.figure("util_residency", &format!("util={}", u.util), u.ms, "ms");
        }
        for m in &t.migrations {
            let key = format!("from={} to={} why={}", m.from.0, m.to.0, m.why);
            self.figure("migration", &key, m.at_ms, "ms");
        }
        for l in &t.lost {
            self.figure("lost", &format!("state={}", l.state), l.ms, "ms");
        }
    }
}
