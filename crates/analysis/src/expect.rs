//! Figures by name, and what somebody expects of them: `frame.response_p99 <= 16.6ms`.
//!
//! Which names there are: `docs/jobs.md`.

use crate::jobs::{Jobs, Percentiles};
use crate::latency::{Latency, group_name};
use crate::result::{RunResult, TaskResult};
use risetime_model::InputError;

/// A comparison with a figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// As it was written.
    pub text: String,
    figure: String,
    than: Than,
    value: f64,
    unit: Option<Unit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Than {
    Less,
    AtMost,
    More,
    AtLeast,
    Same,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ms.
    Time,
    /// mJ.
    Energy,
    /// How many.
    Count,
}

impl Unit {
    /// Behind a number of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Time => " ms",
            Unit::Energy => " mJ",
            Unit::Count => "",
        }
    }
}

/// Units as they are written, and how many ms or mJ they are.
const UNITS: [(&str, Unit, f64); 6] = [
    ("us", Unit::Time, 1e-3),
    ("ms", Unit::Time, 1.0),
    ("s", Unit::Time, 1e3),
    ("uJ", Unit::Energy, 1e-3),
    ("mJ", Unit::Energy, 1.0),
    ("J", Unit::Energy, 1e3),
];

/// Longer ones first.
const COMPARISONS: [(&str, Than); 6] = [
    ("<=", Than::AtMost),
    (">=", Than::AtLeast),
    ("==", Than::Same),
    ("<", Than::Less),
    (">", Than::More),
    ("=", Than::Same),
];

/// What came of an expectation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// It holds.
    pub holds: bool,
    /// What was found; `None`: there is no such figure in this run (no job was done), which holds for nothing.
    pub found: Option<f64>,
    /// In this unit.
    pub unit: Unit,
}

impl Expectation {
    /// What `text` says.
    ///
    /// Errors: no comparison, no number, an unknown unit.
    pub fn parse(text: &str) -> Result<Expectation, InputError> {
        let wrong = |what: String| {
            InputError::new("--expect", what).hint("for example 'ui.response_p99 <= 16.6ms'")
        };
        let split = COMPARISONS.iter().find_map(|(sign, than)| {
            text.split_once(sign).map(|(figure, value)| (figure, *than, value))
        });
        let Some((figure, than, value)) = split else {
            return Err(wrong(format!(
                "found `{text}`, wanted a figure, one of < <= > >= =, a value"
            )));
        };
        let value = value.trim();
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let written = value[digits.len()..].replace('µ', "u");
        let number = digits.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let Some(number) = number else {
            return Err(wrong(format!("`{text}`: `{value}` is no number with a unit")));
        };
        let known = UNITS.iter().find(|(name, ..)| *name == written);
        if known.is_none() && !written.is_empty() {
            let units = UNITS.map(|(name, ..)| name).join(", ");
            return Err(wrong(format!("`{text}`: unknown unit `{written}`; known: {units}")));
        }
        Ok(Expectation {
            text: text.trim().to_string(),
            figure: figure.trim().to_string(),
            than,
            value: number * known.map_or(1.0, |(.., scale)| *scale),
            unit: known.map(|(_, unit, _)| *unit),
        })
    }

    /// Whether it holds in `run`.
    ///
    /// Errors: a figure that no such run has; a unit that is not the figure's.
    pub fn check(&self, run: &RunResult) -> Result<Checked, InputError> {
        let wrong = |what: String| InputError::new("--expect", what);
        let (found, unit) = figure(run, &self.figure).map_err(|known| {
            let hint = format!("known: {}", known.join(", "));
            wrong(format!("`{}`: there is no figure `{}`", self.text, self.figure)).hint(hint)
        })?;
        if let Some(own) = self.unit.filter(|own| *own != unit) {
            let is = match unit {
                Unit::Count => "a number".to_string(),
                unit => format!("in{}", unit.as_str()),
            };
            return Err(wrong(format!(
                "`{}`: the figure is {is}, not in{}",
                self.text,
                own.as_str()
            )));
        }
        let value = self.value;
        let holds = found.is_some_and(|found| match self.than {
            Than::Less => found < value,
            Than::AtMost => found <= value,
            Than::More => found > value,
            Than::AtLeast => found >= value,
            Than::Same => found == value,
        });
        Ok(Checked { holds, found, unit })
    }
}

type Figure = (Option<f64>, Unit);

/// The figure of that name; names that there are, if there is none.
fn figure(run: &RunResult, name: &str) -> Result<Figure, Vec<String>> {
    match name {
        "energy" => return Ok((run.energy_mj, Unit::Energy)),
        "work" => return Ok((Some(run.work_ms), Unit::Time)),
        "makespan" => return Ok((run.makespan_ms, Unit::Time)),
        "exited" => return Ok((Some(run.exited.0 as f64), Unit::Count)),
        _ => {}
    }
    let known = || {
        let whose = run.jobs.iter().map(|j| j.name.clone());
        let tasks = run.latency.iter().map(|l| l.tasks.clone());
        let mut all: Vec<String> = whose.chain(tasks).collect();
        all.sort();
        all.dedup();
        let shown = all.iter().take(8).map(|name| format!("{name}.…"));
        let own = ["energy", "work", "makespan", "exited"].map(String::from);
        shown.chain(own).collect::<Vec<_>>()
    };
    let Some((whose, what)) = name.rsplit_once('.') else { return Err(known()) };
    let job = run.jobs.iter().find(|j| j.name == whose);
    let latency = run.latency.iter().find(|l| l.tasks == whose);
    let task = run.tasks.iter().find(|t| t.comm == whose);
    let task = task.or(run.tasks.iter().find(|t| group_name(&t.comm) == whose));
    let all = [job.map(of_jobs), latency.map(of_latency), task.map(of_task)];
    let all: Vec<(String, Figure)> = all.into_iter().flatten().flatten().collect();
    if all.is_empty() {
        return Err(known());
    }
    let found = all.iter().find(|(name, _)| name == what).map(|(_, figure)| *figure);
    found.ok_or_else(|| all.into_iter().map(|(name, _)| format!("{whose}.{name}")).collect())
}

fn of_jobs(j: &Jobs) -> Vec<(String, Figure)> {
    let mut all = percentiles("response", j.response.as_ref());
    all.extend(percentiles("lateness", j.lateness.as_ref()));
    all.extend(j.counts().map(|(name, n)| (name.into(), (Some(n as f64), Unit::Count))));
    all.push(("energy".into(), (j.mj_per_job, Unit::Energy)));
    all
}

/// By name, also where there are none in this run.
fn percentiles(of: &str, p: Option<&Percentiles>) -> Vec<(String, Figure)> {
    let figure = |(name, ms)| (format!("{of}_{name}"), (p.map(|_| ms), Unit::Time));
    p.copied().unwrap_or_default().named().map(figure).into()
}

fn of_latency(l: &Latency) -> Vec<(String, Figure)> {
    let figures = [
        ("p50", l.p50_ms),
        ("p90", l.p90_ms),
        ("p99", l.p99_ms),
        ("p99_9", l.p99_9_ms),
        ("max", l.max_ms),
    ];
    let figures = figures.map(|(name, ms)| (format!("activation_{name}"), (Some(ms), Unit::Time)));
    figures.into_iter().chain(percentiles("wakeup", l.wakeup.took.as_ref())).collect()
}

fn of_task(t: &TaskResult) -> Vec<(String, Figure)> {
    let debt = t.burst.as_ref().map(|b| b.debt_ms);
    vec![("debt".into(), (debt, Unit::Time)), ("wait".into(), (Some(t.whole.wait_ms), Unit::Time))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_and_units() {
        let parsed = |text| Expectation::parse(text).map(|e| (e.figure, e.than, e.value, e.unit));
        let frame = |than, value, unit| Ok(("a.b.p99".to_string(), than, value, unit));
        let time = Some(Unit::Time);
        assert_eq!(parsed("a.b.p99<=16.5ms"), frame(Than::AtMost, 16.5, time));
        assert_eq!(parsed(" a.b.p99 >= -2 s "), frame(Than::AtLeast, -2000.0, time));
        assert_eq!(parsed("a.b.p99 < 500µs"), frame(Than::Less, 0.5, time));
        assert_eq!(parsed("a.b.p99 = 3"), frame(Than::Same, 3.0, None));
        assert_eq!(parsed("a.b.p99 > 2J"), frame(Than::More, 2000.0, Some(Unit::Energy)));
        for wrong in ["", "a", "a <", "a < ms", "a < 3 furlongs", "a < nan", "a < inf"] {
            assert!(Expectation::parse(wrong).is_err(), "{wrong}");
        }
    }
}
