//! Results as CSV in long form: one figure a row, ready for a pivot table or a data frame.
//!
//! ```text
//! platform,workload,policy,backend,seed,phase_us,task,figure,key,value,unit
//! m1,rampup,linux-6.8,sim,1,0,rampup,debt,,96.4,ms
//! m1,rampup,linux-6.8,sim,1,0,rampup,reach,util=450,110.3,ms
//! m1,rampup,linux-6.8,sim,1,0,rampup,running,cpu=0 freq_khz=600000,46,ms
//! m1,rampup,linux-6.8,sim,1,0,,cpu_energy,cpu=0,12,mJ
//! ```
//!
//! The first columns say which run it is, so that files of several may be put together.
//! `task` is empty for figures of CPUs and of the whole machine; `value` is empty for
//! "never". Rounded like the JSON, in whose document (`docs/json.md`) the figures are
//! explained. Quoted by RFC 4180 where needed, lines end in `\n`.
//!
//! Left out: notes.

mod trace;

pub use trace::thread_lines;

use crate::Told;
use crate::words::{push_round3, round3, task_names};
use risetime_analysis::named::{FIGURES, Figure, Tasks, Value as Of};
use risetime_analysis::sweep::{Point, Sweep};
use risetime_analysis::{
    Burst, Compared, Cooling, Heat, Jobs, Latency, Level, Migration, Missed, Moves, Percentiles,
    Quota, RunResult, Spent, TaskResult,
};
use risetime_kernel::units::{Span, TaskId};
use risetime_model::{Value, micros};
use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// The names of the columns.
const COLUMNS: [&str; 11] = [
    "platform", "workload", "policy", "backend", "seed", "phase_us", "task", "figure", "key",
    "value", "unit",
];

/// Writes the figures of runs as CSV, one figure a row. Runs over start phases are told apart by
/// `phase_us`; their medians are left to whoever reads the rows.
///
/// Errors: those of `out` and of the lists.
pub fn runs(out: &mut dyn Write, runs: &mut [Told<'_>], set: &Set) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for told in runs {
        let mut rows = Rows::of(told.run, set, &mut *out);
        rows.run(told.run);
        rows.failed?;
        let of = &rows.line.0[..rows.of];
        for line in told.listed.iter_mut().flatten() {
            writeln!(out, "{of}{}", line?)?;
        }
    }
    Ok(())
}

/// Writes the measured values of compared experiments as CSV, one value a row.
///
/// Errors: those of `out`.
pub fn compare(out: &mut dyn Write, c: &Compared, set: &Set) -> io::Result<()> {
    writeln!(out, "{COMPARED}")?;
    for one in c.groups.iter().flatten() {
        let of = [one.platform.clone(), one.workload.clone(), whole_name(&one.policy, set)];
        for (metric, unit, values) in &one.metrics {
            for (start, value) in one.starts.iter().zip(values) {
                let figure = (start.seed, metric.name.as_str(), *value, unit.word());
                writeln!(out, "{}", compared(&of, (start.phase, start.util), figure))?;
            }
        }
    }
    Ok(())
}

/// Settings of all policies that were asked for beside their names (`--set`).
pub type Set = [(String, Value)];

/// A policy's name with these as it would say them itself, `linux-7.2+governor=performance`: on a page they go without
/// saying, but rows of several files have to be told apart. Before what is left out: `rfc-v1+noise=off without margin`.
fn whole_name(policy: &str, set: &Set) -> String {
    let (name, without) = policy.split_at(policy.find(" without ").unwrap_or(policy.len()));
    let said = |name: &str, key: &str| {
        name.split('+').skip(1).any(|part| part.split('=').next() == Some(key))
    };
    let whole = set.iter().fold(name.to_string(), |name, (key, value)| match said(&name, key) {
        true => name,
        false => format!("{name}+{key}={value}"),
    });
    whole + without
}

/// The columns of what is compared.
const COMPARED: &str =
    "platform,workload,policy,backend,seed,phase_us,start_util,metric,value,unit";

/// A row of it: which experiment, from which start state, and what was found there.
fn compared(
    [platform, workload, policy]: &[String; 3],
    (phase, util): (Span, Option<u64>),
    (seed, metric, value, unit): (u64, &str, Option<f64>, &str),
) -> String {
    row(&[
        platform.clone(),
        workload.clone(),
        policy.clone(),
        "sim".to_string(),
        seed.to_string(),
        micros(phase),
        util.map_or(String::new(), |u| u.to_string()),
        metric.to_string(),
        value.map_or(String::new(), |v| round3(v).to_string()),
        unit.to_string(),
    ])
}

/// A grid of experiments: a metric of a point a row, `platform` to `seed` and what was varied in columns before it.
/// What is varied stands there as it was asked for, but platform and workload by their names, as in other tables.
///
/// Errors: those of `out`.
pub fn sweep(out: &mut dyn Write, s: &Sweep, set: &Set) -> io::Result<()> {
    const FIXED: [&str; 5] = ["platform", "workload", "policy", "backend", "seed"];
    let varied: Vec<usize> =
        (0..s.axes.len()).filter(|a| !FIXED.contains(&s.axes[*a].name.as_str())).collect();
    let figures = ["metric", "unit", "median", "low", "high", "n", "never", "command"];
    let names = varied.iter().map(|a| s.axes[*a].name.as_str());
    writeln!(out, "{}", row(FIXED.into_iter().chain(names).chain(figures)))?;
    for p in &s.points {
        let mut point = point_names(s, p, set).to_vec();
        point.extend([s.backend.to_string(), p.recipe.seed.to_string()]);
        point.extend(varied.iter().map(|a| p.at[*a].clone()));
        let number = |v: Option<f64>| v.map(|v| round3(v).to_string()).unwrap_or_default();
        for (m, (metric, unit, _)) in p.measured.metrics.iter().enumerate() {
            let estimate = p.measured.estimate(m);
            let interval = estimate.and_then(|e| e.interval);
            let figures = [
                metric.name.clone(),
                unit.word().to_string(),
                number(estimate.map(|e| e.median)),
                number(interval.map(|i| i.0)),
                number(interval.map(|i| i.1)),
                estimate.map_or(0, |e| e.n).to_string(),
                p.measured.never(m).to_string(),
                p.command.clone(),
            ];
            writeln!(out, "{}", row(point.iter().chain(&figures)))?;
        }
    }
    Ok(())
}

/// The platform, workload and policy of a point: the same in CSV and JSON.
pub(crate) fn point_names(s: &Sweep, p: &Point, set: &Set) -> [String; 3] {
    let varied = s.axes.iter().position(|axis| axis.name == "policy").map(|a| &p.at[a]);
    let policy = varied.unwrap_or(&p.measured.policy);
    [p.measured.platform.clone(), p.workload().into(), whole_name(policy, set)]
}

/// A burst in the list of what happened: the columns from `task` on, a line for each figure.
pub fn burst_lines(task: TaskId, comm: &str, b: &Burst) -> String {
    let key = format!("at_ms={}", round3(b.t0_ms));
    let figures = [
        ("listed_t1", b.t1_ms),
        ("listed_end", b.end_ms),
        ("listed_running", b.running_ms),
        ("listed_took", b.took_ms),
        ("listed_longer", b.longer_ms),
        ("listed_debt", b.debt_ms),
        ("listed_debt_capped", b.debt_capped_ms),
    ];
    let name = format!("{comm}#{}", task.0);
    let line = |figure: &str, value: &str, unit: &str| row([&name, figure, &key, value, unit]);
    let known = |ms: f64| Some(round3(ms).to_string()).filter(|_| ms.is_finite());
    let figures = figures.map(|(figure, ms)| line(figure, &known(ms).unwrap_or_default(), "ms"));
    [&figures[..], &[line("listed_ended_by", b.ended().map_or("", |ended| ended.as_str()), "")]]
        .concat()
        .join("\n")
}

/// A change of CPU there.
pub fn migration_line(task: TaskId, comm: &str, m: &Migration) -> String {
    let name = format!("{comm}#{}", task.0);
    let value = round3(m.at_ms).to_string();
    let key = format!("at_ms={value} from={} to={} why={}", m.from.0, m.to.0, m.why);
    row([&name, "listed_migration", &key, &value, "ms"])
}

/// A job there that was missed: the columns from `task` (who begins it) on, a line for each figure.
pub fn missed_lines(job: &str, m: &Missed) -> String {
    let key = format!("job={job} number={}", m.number);
    let line = |figure: &str, value: String, unit: &str| {
        row([&m.comm, &format!("missed_{figure}"), &key, &value, unit])
    };
    let done = Some(m.over_ms).filter(|_| m.how == "late");
    let longest = m.longest.as_ref();
    let times = [
        ("release", Some(m.release_ms)),
        ("due", m.due_ms),
        ("done", done),
        ("lateness", m.lateness_ms),
        ("longest", longest.map(|(_, ms)| *ms)),
    ];
    let times = times.iter().filter_map(|(figure, ms)| {
        let ms = (*ms)?;
        Some(line(figure, round3(ms).to_string(), "ms"))
    });
    let mut lines = vec![line("how", m.how.into(), ""), line("n", m.n.to_string(), "")];
    lines.extend(times);
    lines.extend(longest.map(|(task, _)| line("longest_with", task.clone(), "")));
    lines.join("\n")
}

/// Returns fields as they stand in a row, without its end.
fn row<'a, F: Into<Text<'a>>>(fields: impl IntoIterator<Item = F>) -> String {
    let mut line = Line::default();
    fields.into_iter().for_each(|field| line.field(field));
    line.0.pop();
    line.0
}

/// Returns a field with the quotes that it needs.
fn quoted(field: &str) -> String {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    out.write_record([field]).expect("to memory");
    let bytes = out.into_inner().expect("to memory");
    String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_string()
}

/// Text of a field: there already, or made in place.
enum Text<'a> {
    Known(&'a str),
    Made(fmt::Arguments<'a>),
    /// Names of our own, one behind the other: nothing that needs quotes.
    Names(&'a [&'a str]),
    /// Names of our own with numbers, `cpu=0 freq_khz=600000`.
    Keys(&'a [(&'a str, u64)]),
    /// A number as [`round3`] leaves it.
    Number(f64),
    Count(u64),
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text::Known(text)
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Text<'a> {
        Text::Known(text)
    }
}

impl<'a, const N: usize> From<&'a [(&'a str, u64); N]> for Text<'a> {
    fn from(keys: &'a [(&'a str, u64); N]) -> Text<'a> {
        Text::Keys(keys)
    }
}

impl<'a, const N: usize> From<&'a [&'a str; N]> for Text<'a> {
    fn from(names: &'a [&'a str; N]) -> Text<'a> {
        Text::Names(names)
    }
}

impl From<u64> for Text<'_> {
    fn from(count: u64) -> Text<'static> {
        Text::Count(count)
    }
}

impl<'a> From<fmt::Arguments<'a>> for Text<'a> {
    fn from(text: fmt::Arguments<'a>) -> Text<'a> {
        Text::Made(text)
    }
}

/// Fields of a row, with a comma behind each.
#[derive(Default)]
struct Line(String);

impl Line {
    /// Adds a field, quoted if it has to be.
    fn field<'t>(&mut self, field: impl Into<Text<'t>>) {
        let at = self.0.len();
        if !self.adds(field.into()) {
            self.quote(at);
        }
        self.0.push(',');
    }

    /// Adds a field of our own, which needs no quotes.
    fn own(&mut self, field: Text<'_>) {
        self.adds(field);
        self.0.push(',');
    }

    /// Adds a field as it is; true if it is of our own.
    fn adds(&mut self, field: Text<'_>) -> bool {
        let Line(line) = self;
        match field {
            Text::Known(text) => {
                line.push_str(text);
                false
            }
            Text::Made(text) => {
                line.write_fmt(text).expect("to memory");
                false
            }
            Text::Names(names) => {
                names.iter().for_each(|name| line.push_str(name));
                true
            }
            Text::Keys(keys) => {
                for (n, (key, number)) in keys.iter().enumerate() {
                    line.push_str(if n > 0 { " " } else { "" });
                    line.push_str(key);
                    line.push('=');
                    line.push_str(itoa::Buffer::new().format(*number));
                }
                true
            }
            Text::Number(x) => {
                push_round3(line, x);
                true
            }
            Text::Count(n) => {
                line.push_str(itoa::Buffer::new().format(n));
                true
            }
        }
    }

    /// Quotes the field from `at` on, if it has to be.
    fn quote(&mut self, at: usize) {
        let Line(line) = self;
        let needs = |b: u8| matches!(b, b'"' | b',' | b'\n' | b'\r');
        if line.as_bytes()[at..].iter().any(|b| needs(*b)) {
            let quoted = quoted(&line[at..]);
            line.truncate(at);
            line.push_str(&quoted);
        }
    }
}

/// Iterates over the figures that the table itself puts into a run's CSV, with their names there.
fn listed() -> impl Iterator<Item = (&'static str, &'static Figure)> {
    FIGURES.iter().filter_map(|figure| Some((figure.csv?, figure)))
}

struct Rows<'a> {
    out: &'a mut dyn Write,
    /// The row at hand, which begins with the columns that say which run it is.
    line: Line,
    /// Length of the part with the run's columns (`of`), and of that with the task's as well (`head`).
    of: usize,
    head: usize,
    /// The first error: the rows after it are not written.
    failed: io::Result<()>,
}

impl<'a> Rows<'a> {
    fn of(r: &RunResult, set: &Set, out: &'a mut dyn Write) -> Rows<'a> {
        let of = [
            r.platform.clone(),
            r.workload.clone(),
            whole_name(&r.policy, set),
            r.backend.to_string(),
            r.seed.to_string(),
            micros(r.phase),
        ];
        let mut line = Line::default();
        of.iter().for_each(|field| line.field(field));
        let of = line.0.len();
        let mut rows = Rows { out, line, of, head: of, failed: Ok(()) };
        rows.is_about("");
        rows
    }

    /// The rows that follow are this task's; of none if the name is empty.
    fn is_about(&mut self, task: &str) {
        self.line.0.truncate(self.of);
        self.line.field(task);
        self.head = self.line.0.len();
    }

    /// Adds a row: a figure with its value.
    fn text<'f, 'k, 'v>(
        &mut self,
        figure: impl Into<Text<'f>>,
        key: impl Into<Text<'k>>,
        value: impl Into<Text<'v>>,
        unit: &str,
    ) {
        self.line.0.truncate(self.head);
        // The names of figures and units are our own.
        self.line.own(figure.into());
        self.line.field(key);
        self.line.field(value);
        let Line(line) = &mut self.line;
        line.push_str(unit);
        line.push('\n');
        if self.failed.is_ok() {
            self.failed = self.out.write_all(line.as_bytes());
        }
    }

    /// Adds the row of a figure that is a number; empty if there is none.
    fn figure<'f, 'k>(
        &mut self,
        figure: impl Into<Text<'f>>,
        key: impl Into<Text<'k>>,
        value: impl Into<Option<f64>>,
        unit: &str,
    ) {
        match value.into().filter(|v| v.is_finite()) {
            Some(value) => self.text(figure, key, Text::Number(value), unit),
            None => self.text(figure, key, "", unit),
        }
    }

    fn run(&mut self, r: &RunResult) {
        for (name, value) in &r.settings {
            match value {
                Value::Int(n) => self.text("setting", name, format_args!("{n}"), ""),
                Value::Name(s) => self.text("setting", name, s, ""),
            }
        }
        for (t, name) in r.tasks.iter().zip(task_names(r)) {
            self.is_about(&name);
            self.task(t, r.known.machine);
        }
        self.is_about("");
        for c in &r.cpus {
            let cpu = format!("cpu={}", c.cpu.0);
            self.figure("cpu_energy", &cpu, c.energy_mj, "mJ");
            self.figure("cpu_busy", &cpu, c.busy_ms, "ms");
            for (f, ms) in &c.freq {
                let key = [("cpu", c.cpu.0.into()), ("freq_khz", f.0)];
                self.figure("cpu_freq", &key, *ms, "ms");
            }
            for (state, ms) in &c.idle {
                self.figure("cpu_idle", format_args!("{cpu} state={state}"), *ms, "ms");
            }
        }
        r.jobs.iter().for_each(|jobs| self.jobs(jobs));
        r.quotas.iter().for_each(|quota| self.quota(quota));
        r.heat.iter().for_each(|heat| self.heat(heat));
        r.cooling.iter().for_each(|cooling| self.cooling(cooling));
        r.latency.iter().for_each(|latency| self.latency(r, latency));
        for w in &r.waits {
            let of = format!("{}={}", w.by.as_str(), w.name);
            self.text("wakeups", &of, w.wakeup.n, "");
            let took = w.wakeup.took;
            let wakeup = listed().filter(|(name, _)| *name == "wakeup");
            wakeup.for_each(|figure| self.each(figure, &of, took));
        }
        for (name, figure) in listed() {
            if let Of::Run(value) = figure.value {
                self.figure(name, "", r.known(figure, value(r)), figure.unit.word());
            }
        }
        self.figure("end", "", r.end_ms, "ms");
    }

    fn jobs(&mut self, j: &Jobs) {
        let of = format!("job={}", j.name);
        for (name, figure) in listed() {
            match figure.value {
                Of::Job(value) => self.figure(name, &of, value(j), figure.unit.word()),
                Of::EachJob(each) => self.each((name, figure), &of, each(j)),
                _ => {}
            }
        }
        if let Some(latest) = &j.latest {
            self.text("job_latest", &of, latest.number, "");
            self.figure("job_latest_due", &of, Some(latest.due_ms), "ms");
        }
    }

    fn heat(&mut self, h: &Heat) {
        let of = format!("zone={}", h.zone);
        self.figure("temperature_max", &of, h.max_celsius, "°C");
        self.figure("temperature_end", &of, h.end_celsius, "°C");
        self.figure("critical_at", &of, h.critical_at_ms, "ms");
    }
    fn cooling(&mut self, c: &Cooling) {
        let of = format!("policy={}", c.policy.0);
        self.figure("capped", &of, c.capped_ms, "ms");
        let lowest = c.lowest_max.map(|f| f.0.to_string());
        self.text("lowest_max", &of, &lowest.unwrap_or_default(), "kHz");
    }
    fn quota(&mut self, q: &Quota) {
        let of = format!("group={}", q.group);
        for (name, figure) in listed() {
            if let Of::Group(value) = figure.value {
                self.figure(name, &of, value(q), figure.unit.word());
            }
        }
    }

    /// Writes a row for each statistic of a figure; none where nothing of the kind happened.
    fn each(&mut self, (name, figure): (&str, &Figure), of: &str, p: Option<Percentiles>) {
        let all = p.iter().flat_map(|p| p.named());
        for (x, value) in all.filter(|(x, _)| figure.statistics.contains(x)) {
            self.figure(&[name, "_", x], of, value, figure.unit.word());
        }
    }

    fn latency(&mut self, r: &RunResult, l: &Latency) {
        let of = format!("tasks={}", l.tasks);
        let tasks = Tasks { tasks: &[], latency: Some(l) };
        self.text("activations", &of, l.activations, "");
        self.text("wakeups", &of, l.wakeup.n, "");
        for (name, figure) in listed() {
            match figure.value {
                Of::Each(_) if r.hides(figure) => {
                    let mut row = |x: &&str| {
                        self.figure(&[name, "_", x], &of, None, figure.unit.word());
                    };
                    figure.statistics.iter().for_each(&mut row);
                }
                Of::Each(each) => self.each((name, figure), &of, each(&tasks)),
                _ => {}
            }
        }
        self.text("activations_unfinished", &of, l.unfinished, "");
    }

    fn task(&mut self, t: &TaskResult, capacities: bool) {
        self.figure("bursts", "", f64::from(t.bursts), "");
        if let Some(b) = &t.burst {
            self.figure("t0", "", b.t0_ms, "ms");
            self.figure("t1", "", b.t1_ms, "ms");
            self.figure("burst_end", "", b.end_ms, "ms");
            self.text("ended_by", "", b.ended().map_or("", |ended| ended.as_str()), "");
            self.figure("debt", "", b.debt_ms, "ms");
            self.figure("debt_capped", "", b.debt_capped_ms, "ms");
        }
        for r in &t.reach {
            let mut reach = |key: &[(&str, u64)]| {
                self.figure("reach", Text::Keys(key), r.after_ms, "ms");
            };
            match r.what {
                Level::Util(u) => reach(&[("util", u)]),
                Level::Freq { cpu, freq } => {
                    reach(&[("cpu", cpu.0.into()), ("freq_khz", freq.0)]);
                }
                Level::Capacity(c) => reach(&[("capacity", c)]),
            }
        }
        self.figure("perf_10_90", "", t.perf_10_90_ms, "ms");
        self.spent("burst_", &t.spent, capacities);
        self.spent("", &t.whole, capacities);
        for u in &t.util_residency {
            self.figure("util_residency", &[("util", u.util)], u.ms, "ms");
        }
        for (n, m) in t.migrations.iter().enumerate() {
            let key = format_args!("n={n} from={} to={} why={}", m.from.0, m.to.0, m.why);
            self.figure("migration", key, m.at_ms, "ms");
        }
        for l in &t.lost {
            self.figure("lost", &["state=", l.state], l.ms, "ms");
        }
        for (n, policy) in t.policies.iter().enumerate() {
            self.text("sched_policy", format_args!("n={n}"), format_args!("{policy}"), "");
        }
        if let Some(r) = &t.reservation {
            self.figure("reservation_unfinished", "", r.unfinished_ms, "ms");
            self.text("reservation_due", "", format_args!("{}", r.due), "");
            let throttled = r.throttled.map(|t| t.n.to_string());
            self.text("throttled", "", &throttled.unwrap_or_default(), "");
            self.figure("throttled_time", "", r.throttled.map(|t| t.ms), "ms");
            self.figure("throttled_longest", "", r.throttled.map(|t| t.longest_ms), "ms");
            let replenished = r.throttled.map(|t| t.replenished.to_string());
            self.text("replenished", "", &replenished.unwrap_or_default(), "");
        }
    }

    /// Writes what a burst took, or (`of` is empty) the whole run.
    fn spent(&mut self, of: &str, s: &Spent, capacities: bool) {
        self.figure(&[of, "running_time"], "", s.running_ms, "ms");
        self.figure(&[of, "wait"], "", s.wait_ms, "ms");
        self.figure(&[of, "work"], "", s.work_ms, "ms");
        self.figure(&[of, "longer"], "", s.longer_ms, "ms");
        for l in &s.longer {
            self.figure(&[of, "longer_in"], &["state=", l.state], l.ms, "ms");
        }
        self.figure(&[of, "energy"], "", s.energy_mj, "mJ");
        for r in &s.running {
            let key = [("cpu", r.cpu.0.into()), ("freq_khz", r.freq.0)];
            let key = if r.freq.0 > 0 { &key[..] } else { &key[..1] };
            self.figure(&[of, "running"], Text::Keys(key), r.ms, "ms");
        }
        for m in &s.migrations {
            let (of, why) = ([of, "migrations"], m.why);
            let Moves { from, to, n, .. } = *m;
            match capacities {
                true => {
                    let key = format_args!("from_capacity={from} to_capacity={to} why={why}");
                    self.text(&of, key, n, "");
                }
                false => self.text(&of, format_args!("why={why}"), n, ""),
            }
        }
    }
}
