//! Results as documents: experiments and what came of them, everything inline, and the hashes of
//! both.
//!
//! ```text
//! {"risetime":"result","schema":2,"version":"0.1.0","of":"run",
//!  "experiment_sha256":"…","experiment":{…},      as `Experiment::to_json`; null: the trace is of no experiment
//!  "result_sha256":"…","result":{…},              every figure, to the last bit; null: none
//!  "absent":[{"needs":"powers","why":"…","figures":["energy"]}],      what is not known, and why
//!  "timeline":{…},                                curves for pages and pictures; null: nobody kept them
//!  "lists":[…],                                   bursts, changes of CPU, missed jobs; or null
//!  "shown":{…},                                   how the command that made the run shows it
//!  "sha256":"…"}                                  of all that stands before it
//!
//! {"risetime":"result","schema":2,"version":"0.1.0","of":"compare",
//!  "experiments_sha256":["…"],"experiments":[{…}],   with numbers in `texts` for texts
//!  "texts":["…"],                                    platforms and workloads, each once
//!  "result_sha256":"…","result":{…},                 what was found ([`Found`])
//!  "sha256":"…"}
//! ```
//!
//! Whoever has the document needs nothing else: reports of any format are the bytes that the
//! command itself gave. A document that was changed by hand is refused, since its hashes no longer
//! fit.

mod envelope;
mod filed;
mod found;
mod lists;
mod result;
mod value;

pub use filed::{Contents, Filed, is_saved, read_saved};
pub use found::{Advised, BisectedBy, ComparedBy, Found, SoughtBy, Swept};
pub use lists::{Listed, Listing};

pub(crate) use envelope::KIND;

use crate::phases::PhaseRuns;
use crate::run::Run;
use envelope::{Envelope, Opened};
use risetime_analysis::absent::{Unknown, unknown};
use risetime_analysis::{RunResult, Timeline};
use risetime_model::{Experiment, InputError, Value, sha256};
use serde_json::{Value as Json, json};
use value::{At, Document, records};

/// Word of the kind of a run.
const RUN: &str = "run";

/// A run that is kept: what was asked for, and what came of it.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The experiment; `None`: the trace is of none.
    pub experiment: Option<Experiment>,
    /// The figures.
    pub result: RunResult,
    /// The curves; `None`: nobody kept them.
    pub timeline: Option<Timeline>,
    /// All bursts, changes of CPU and missed jobs; `None`: nobody asked for them.
    pub lists: Option<Listing>,
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
        Saved { experiment: Some(experiment.clone()), result, timeline, lists: None, shown }
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
            let result = result.clone();
            Saved { experiment: Some(own), result, timeline: None, lists: None, shown }
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
        let Saved { experiment, result, timeline, lists, shown } = self;
        let text = experiment.as_ref().map(Experiment::to_json).transpose()?;
        let inline =
            |text: &String| -> Json { serde_json::from_str(text).expect("was just written") };
        let result_value = result.to_value();
        let hash = sha256(&result_value.to_string());
        let envelope = Envelope::new(RUN)
            .hashed(
                "experiment",
                text.as_ref().map(|t| sha256(t)),
                text.as_ref().map_or(Json::Null, inline),
            )
            .hashed("result", Some(hash), result_value)
            .with("absent", absent(result))
            .with("timeline", timeline.to_value())
            .with("lists", lists.to_value())
            .with("shown", shown.to_value());
        Ok(envelope.sealed())
    }

    /// Reads a run from its document, which errors call `place`.
    ///
    /// Errors: no such document; one of another version; a key that is missing or holds something
    /// else; a hash that does not fit.
    pub fn from_json(text: &str, place: &str) -> Result<Saved, InputError> {
        Saved::from_value(&envelope::parse(text, place)?, place)
    }

    /// Reads a run as [`Saved::from_json`] does, from JSON that has been parsed.
    ///
    /// Errors: as there.
    pub fn from_value(document: &Json, place: &str) -> Result<Saved, InputError> {
        let opened = Opened::of(document, place)?;
        if opened.kind() != RUN {
            let what = format!("is the result of `{}`, wanted that of a run", opened.kind());
            return Err(InputError::new(place, what));
        }
        if !opened.part("experiment").is_null() {
            opened.fits("experiment")?;
        }
        opened.fits("result")?;
        opened.is_whole()?;
        Saved::of_parts(opened, place).map_err(|e| opened.told(e))
    }

    /// Reads the parts of a document that is as it was written.
    fn of_parts(opened: Opened<'_>, place: &str) -> Result<Saved, InputError> {
        let at = |key: &str| At::new(place, key);
        let experiment = match opened.part("experiment") {
            Json::Null => None,
            value => Some(Experiment::from_value(value, &format!("{place}: experiment"))?),
        };
        let result: RunResult = Document::from_value(opened.part("result"), &at("result"))?;
        if result.lead >= result.tasks.len().max(1) {
            return Err(at("result").key("lead").wanted("the number of a task"));
        }
        Ok(Saved {
            experiment,
            result,
            timeline: Document::from_value(opened.part("timeline"), &at("timeline"))?,
            lists: Document::from_value(opened.part("lists"), &at("lists"))?,
            shown: Document::from_value(opened.part("shown"), &at("shown"))?,
        })
    }
}

/// Lists what is not known of the run, why, and which figures it therefore has not.
fn absent(result: &RunResult) -> Json {
    let one = |Unknown { need, why, figures }: &Unknown| json!({"needs": need.as_str(), "why": why, "figures": figures});
    unknown(result).iter().map(one).collect()
}

/// Groups the runs of series again: one a number, with its summary.
pub fn series_of(all: &[Saved]) -> Vec<PhaseRuns> {
    let parts = all.chunk_by(|a, b| a.shown.series == b.shown.series);
    let one = |part: &[Saved]| PhaseRuns::of(part.iter().map(|run| run.result.clone()).collect());
    parts.map(one).collect()
}
