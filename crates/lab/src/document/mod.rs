//! A run as a document: its experiment and its result, everything inline, and the hashes of both.
//!
//! ```text
//! {"risetime":"result","schema":1,
//!  "experiment_sha256":"…","experiment":{…},      as `Experiment::to_json`; null: the trace is of no experiment
//!  "result_sha256":"…","result":{…},              every figure, to the last bit; null: none
//!  "absent":[{"needs":"powers","why":"…","figures":["energy"]}],      what is not known, and why
//!  "timeline":{…},                                curves for pages and pictures; null: nobody kept them
//!  "shown":{…}}                                   how the command that made the run shows it
//! ```
//!
//! Whoever has the document needs nothing else: reports of any format are the bytes that the run itself gave. A document that was
//! changed by hand is refused, since its hashes no longer fit.
//!
//! Left out: the lists of all bursts and changes of CPU (`--bursts`), whose number grows with the run.

mod result;
mod value;

use crate::phases::PhaseRuns;
use crate::run::Run;
use risetime_analysis::absent::{Unknown, unknown};
use risetime_analysis::{RunResult, Timeline};
use risetime_model::{Code, Experiment, InputError, Value, sha256};
use serde_json::{Value as Json, json};
use value::{At, Document, records};

/// Version of the documents.
const SCHEMA: u64 = 1;
/// Kind of the document.
pub(crate) const KIND: &str = "result";

/// A run that is kept: what was asked for, and what came of it.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The experiment; `None`: the trace is of none.
    pub experiment: Option<Experiment>,
    /// The figures.
    pub result: RunResult,
    /// The curves; `None`: nobody kept them.
    pub timeline: Option<Timeline>,
    /// Choices by which it is shown.
    pub shown: Shown,
}

/// Choices by which the command that made a run shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The task that was asked for, by its name or a pattern.
    pub task: Option<String>,
    /// The command that says why it is so, word by word; empty: there is none.
    pub why: Vec<String>,
    /// Settings that were asked for beside the policy's.
    pub set: Vec<(String, Value)>,
    /// Number of the series that it is one run of, from 0 (`--phases`, `--repeat`); `None`: of none.
    pub series: Option<u32>,
}

records! { Shown { task, why, set, series } }

impl Saved {
    /// Keeps a run of `experiment`.
    pub fn of(experiment: &Experiment, run: Run, shown: Shown) -> Saved {
        let Run { result, timeline } = run;
        Saved { experiment: Some(experiment.clone()), result, timeline, shown }
    }

    /// Keeps the runs of a series of number `series`, each with the experiment that it is a run of.
    pub fn series(
        experiment: &Experiment,
        runs: &[RunResult],
        shown: &Shown,
        series: u32,
    ) -> Vec<Saved> {
        let one = |result: &RunResult| {
            let by =
                risetime_kernel::units::Span(result.phase.0.saturating_sub(experiment.phase.0));
            let own = Experiment { seed: result.seed, ..experiment.later(by) };
            let shown = Shown { series: Some(series), ..shown.clone() };
            Saved { experiment: Some(own), result: result.clone(), timeline: None, shown }
        };
        runs.iter().map(one).collect()
    }

    /// Returns the SHA-256 of the result: the same for runs with the same figures.
    pub fn hash(&self) -> String {
        sha256(&self.result.to_value().to_string())
    }

    /// Returns the run as one line of JSON.
    ///
    /// Errors: a program put the workload together, so that there is no text of it.
    pub fn to_json(&self) -> Result<String, InputError> {
        let Saved { experiment, result, timeline, shown } = self;
        let text = experiment.as_ref().map(Experiment::to_json).transpose()?;
        let inline =
            |text: &String| -> Json { serde_json::from_str(text).expect("was just written") };
        let result_value = result.to_value();
        let document = json!({
            "risetime": KIND,
            "schema": SCHEMA,
            "experiment_sha256": text.as_ref().map(|text| sha256(text)),
            "experiment": text.as_ref().map(inline),
            "result_sha256": sha256(&result_value.to_string()),
            "result": result_value,
            "absent": absent(result),
            "timeline": timeline.to_value(),
            "shown": shown.to_value(),
        });
        Ok(document.to_string())
    }

    /// Reads a run from its document, which errors call `place`.
    ///
    /// Errors: no such document; one of another version; a key that is missing or holds something else; a hash that does not fit.
    pub fn from_json(text: &str, place: &str) -> Result<Saved, InputError> {
        let document: Json = serde_json::from_str(text)
            .map_err(|e| InputError::new(place, format!("is no JSON: {e}")).code(Code::Syntax))?;
        Saved::from_value(&document, place)
    }

    /// Reads a run as [`Saved::from_json`] does, from JSON that has been parsed.
    ///
    /// Errors: as there.
    pub fn from_value(document: &Json, place: &str) -> Result<Saved, InputError> {
        if document["risetime"] != KIND {
            return Err(InputError::new(place, "is no result of Risetime"));
        }
        if document["schema"] != SCHEMA {
            let what = format!("schema: found {}, wanted {SCHEMA}", document["schema"]);
            return Err(InputError::new(place, what).hint("another version of Risetime wrote it"));
        }
        let at = |key: &str| At::new(place, key);
        let experiment = match &document["experiment"] {
            Json::Null => None,
            value => {
                fits(document, "experiment", place)?;
                Some(Experiment::from_value(value, &format!("{place}: experiment"))?)
            }
        };
        fits(document, "result", place)?;
        let result: RunResult = Document::from_value(&document["result"], &at("result"))?;
        if result.lead >= result.tasks.len().max(1) {
            return Err(at("result").key("lead").wanted("the number of a task"));
        }
        Ok(Saved {
            experiment,
            result,
            timeline: Document::from_value(&document["timeline"], &at("timeline"))?,
            shown: Document::from_value(&document["shown"], &at("shown"))?,
        })
    }
}

/// Checks that the part of a document called `key` is the one whose hash stands beside it.
///
/// Errors: somebody changed it.
fn fits(document: &Json, key: &str, place: &str) -> Result<(), InputError> {
    let hash = format!("{key}_sha256");
    match document[&hash] == sha256(&document[key].to_string()) {
        true => Ok(()),
        false => {
            let what = format!("{key}: is not the one of {hash}");
            Err(InputError::new(place, what).hint("the document was changed after it was written"))
        }
    }
}

/// Lists what is not known of the run, why, and which figures it therefore has not.
fn absent(result: &RunResult) -> Json {
    let one = |Unknown { need, why, figures }: &Unknown| json!({"needs": need.as_str(), "why": why, "figures": figures});
    unknown(result).iter().map(one).collect()
}

/// Whether `text` begins as a document of a run does.
pub fn is_saved(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"risetime\"")
}

/// Reads the runs of a file, a document a line, whose lines errors call by `place`.
///
/// Errors: as [`Saved::from_json`]'s; no run at all.
pub fn read_saved(text: &str, place: &str) -> Result<Vec<Saved>, InputError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let one = |(n, line)| Saved::from_json(line, &format!("{place}:{}", n + 1));
    let all = lines.map(one).collect::<Result<Vec<_>, _>>()?;
    match all.is_empty() {
        true => Err(InputError::new(place, "holds no result")),
        false => Ok(all),
    }
}

/// Groups the runs of series again: one a number, with its summary.
pub fn series_of(all: &[Saved]) -> Vec<PhaseRuns> {
    let parts = all.chunk_by(|a, b| a.shown.series == b.shown.series);
    let one = |part: &[Saved]| PhaseRuns::of(part.iter().map(|run| run.result.clone()).collect());
    parts.map(one).collect()
}
