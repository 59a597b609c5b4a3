//! Results of the commands that run more than one experiment: what each found, with all that its
//! report needs.
//!
//! ```text
//! command ──> Found ──> text, JSON, CSV, pictures
//!              └─ Kept::to_json ──> file ──> Kept::from_json ──> Found
//! ```

use super::value::{At, Document, field, records, words};
use risetime_analysis::advice::{Advice, Round, Step, Tried};
use risetime_analysis::compare::Difference;
use risetime_analysis::expect::Expectation;
use risetime_analysis::explain::{About, CauseShare, Explanation, Over};
use risetime_analysis::goal::{Reaching, Sought};
use risetime_analysis::history::{self, Bisected, Build, History, Release, Side, Taken};
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::study::{
    Cell, Cells, Climbed, Counterfactual, CurvePair, Elsewhere, JudgedRow, Reproduced,
    ReproducedFigure, Tolerance, TradeOff, Tried as Chosen,
};
use risetime_analysis::sweep::{Axis, Point, Recipe, Sweep};
use risetime_analysis::{Compared, Measured, Spread, StartState, Subject, Switched};
use risetime_kernel::KernelRev;
use risetime_model::workload::KeyOf;
use risetime_model::{InputError, Value};
use serde_json::{Value as Json, json};

/// Settings that were asked for beside the policy's.
type Set = Vec<(String, Value)>;

/// Makes [`Found`]: the word of a kind, its variant, and what such a result holds.
macro_rules! kinds {
    ($($word:literal $(#[doc = $doc:literal])* $name:ident($body:ty);)*) => {
        /// Result of a command.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Found {
            $($(#[doc = $doc])* $name($body),)*
        }

        impl Found {
            /// Returns the word of the kind, which documents say.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Found::$name(_) => $word,)*
                }
            }

            /// Returns what was found in JSON.
            pub(super) fn to_value(&self) -> Json {
                match self {
                    $(Found::$name(body) => body.to_value(),)*
                }
            }

            /// Reads what was found of the kind that `word` names.
            ///
            /// Errors: there is no such kind; something else stands there.
            pub(super) fn from_value(
                word: &str,
                json: &Json,
                at: &At<'_>,
            ) -> Result<Found, InputError> {
                match word {
                    $($word => Document::from_value(json, at).map(Found::$name),)*
                    _ => Err(at.wanted("a result of a kind that this version knows")),
                }
            }
        }
    };
}

kinds! {
    "compare" /// Policies over start states.
    Compared(ComparedBy);
    "sweep" /// Figures over a grid.
    Swept(Swept);
    "explain" /// Causes of lost time, an explanation a start phase.
    Explained(Vec<Explanation>);
    "advise" /// Changes that make a figure better.
    Advised(Box<Advised>);
    "goal" /// The least of one figure with which another reaches a goal.
    Sought(Box<SoughtBy>);
    "history" /// An experiment under one release after another.
    History(History);
    "bisect" /// The release under which a figure changed most.
    Bisected(BisectedBy);
    "reproduce" /// Numbers of a document beside ours.
    Reproduced(Reproduced);
}

/// A comparison, and the settings that its CSV names.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedBy {
    /// The comparison.
    pub compared: Compared,
    /// Settings for all policies.
    pub set: Set,
}

/// A sweep, and the settings that its JSON and CSV name.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The sweep.
    pub sweep: Sweep,
    /// Settings for all points.
    pub set: Set,
}

/// Advice, and the command that runs what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// The advice.
    pub advice: Advice,
    /// The command.
    pub command: String,
    /// The baseline and the first line under a real kernel; `None`: nobody asked one.
    pub real: Option<(Measured, Measured)>,
}

/// Changes that reach a goal, and the command that runs what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct SoughtBy {
    /// The outcome of the search.
    pub sought: Sought,
    /// The command.
    pub command: String,
}

/// The bisection of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectedBy {
    /// The figure that was judged.
    pub figure: String,
    /// Start phases of each release.
    pub phases: u32,
    /// Side on which it was judged.
    pub side: Side,
    /// Names of all releases, oldest first.
    pub releases: Vec<String>,
    /// The outcome.
    pub found: Bisected,
    /// Releases that lie between the two found, and can be had.
    pub between: Vec<String>,
}

/// A figure of a history: its record has the name that it has in [`risetime_analysis::history`].
type Figure = history::Figure;

records! {
    ComparedBy { compared, set }
    Swept { sweep, set }
    Advised { advice, command, real }
    SoughtBy { sought, command }
    BisectedBy { figure, phases, side, releases, found, between }

    Measured { workload, platform, policy, settings, seed, starts, metrics, bounds, cautions }
    StartState { phase, util, seed }
    Compared { groups, subjects, switches, command }
    Switched { setting, last, alone, acts }
    Difference { n, median, interval, holds, left_out }

    Sweep { axes, backend, points }
    Axis { name, unit, values }
    Point { at, recipe, command, measured }
    Recipe { workload, changes, platform, hz, policy, set, seconds, seed, phases }

    Explanation {
        policy, platform, workload, settings, phase, seed, comm, about, causes, affinity_ms,
        unexplained_ms, runs, notes, cautions,
    }
    CauseShare { cause, label, about, acts, ms, error_ms, gain_ms, alone_ms }

    Advice { metric, unit, seed, base, tried, rounds, runs, untried, unsure, nearest, left_out }
    Tried { steps, measured, metric, energy, work, efficient }
    Round { candidates, phases, seconds }
    KeyOf { of, key, value }
    Sought { goal, least, seed, base, reaching, short, tried, runs, untried, cut, left_out }
    Reaching { steps, measured, holds }

    History { workload, platform, task, phases, figures, releases, missing, notes }
    Figure { name, about }
    Release { name, rev, build, real, simulated }
    Build { hz, preemption, uclamp, energy_model }
    Taken { values, spread }
    Spread { n, never, min, q1, median, q3, max }
    Bisected { first, asked }

    Reproduced { study, about, source, phases, figures }
    ReproducedFigure { id, place, about, command, rows, curves, climb, cells, trade_offs, elsewhere }
    Elsewhere { about, missing, holding, mended, broken }
    JudgedRow {
        id, ours, at, list, published, digits, relation, measured, unit, tolerance, holds, note, instead,
    }
    Counterfactual { about, measured, tolerance, holds }
    Tolerance { last_digit, tick, spread, open }
    CurvePair { what, listed, drawn, measured }
    Climbed { wanted, util_est, speed, mainline }
    TradeOff { policy, slack_ms, slack_least_ms, mean_ghz, energy_mj }
    Cells { quantities, cases, columns, cells, free, gains }
    Cell { published, digits, measured, untouched, stdev, spread }
    Chosen { name, columns, cases, why, values, chosen }
}

words! {
    Unit, |unit| unit.word(), Unit::of_word, "a unit";
    Metric, |metric| &metric.name, |name| Some(Metric::new(name)), "a figure";
    Side, |side| side_word(*side), side, "real or simulated";
}

fn side_word(side: Side) -> &'static str {
    match side {
        Side::Real => "real",
        Side::Simulated => "simulated",
    }
}

fn side(word: &str) -> Option<Side> {
    [Side::Real, Side::Simulated].into_iter().find(|side| side_word(*side) == word)
}

impl Document for KernelRev {
    fn to_value(&self) -> Json {
        self.to_string().into()
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<KernelRev, InputError> {
        let release = json.as_str().and_then(KernelRev::of_release);
        release.ok_or_else(|| at.wanted("a release such as 7.2"))
    }
}

impl<T: Document> Document for Box<T> {
    fn to_value(&self) -> Json {
        T::to_value(self)
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Box<T>, InputError> {
        T::from_value(json, at).map(Box::new)
    }
}

/// Returns the first key of an object, which says of which shape it is, and its value.
fn only_key(json: &Json) -> (&str, &Json) {
    let first = json.as_object().and_then(|all| all.iter().next());
    first.map_or(("", &Json::Null), |(key, value)| (key.as_str(), value))
}

impl Document for Subject {
    fn to_value(&self) -> Json {
        match self {
            Subject::Jobs(name) => json!({"jobs": name}),
            Subject::Burst(name) => json!({"burst": name}),
            Subject::Activations(name) => json!({"activations": name}),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Subject, InputError> {
        let (key, name) = only_key(json);
        let name = || String::from_value(name, &at.key(key));
        match key {
            "jobs" => name().map(Subject::Jobs),
            "burst" => name().map(Subject::Burst),
            "activations" => name().map(Subject::Activations),
            _ => Err(at.wanted("jobs, burst or activations")),
        }
    }
}

impl Document for About {
    fn to_value(&self) -> Json {
        match self {
            About::Burst(burst) => json!({"burst": burst.to_value()}),
            About::Pieces { job, over, chosen, of, ms } => json!({"pieces": {
                "job": job, "over": over.to_value(), "chosen": chosen, "of": of,
                "ms": ms.to_value(),
            }}),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<About, InputError> {
        let (key, value) = only_key(json);
        let at = at.key(key);
        match key {
            "burst" => Document::from_value(value, &at).map(About::Burst),
            "pieces" => Ok(About::Pieces {
                job: field(value, &at, "job")?,
                over: field(value, &at, "over")?,
                chosen: field(value, &at, "chosen")?,
                of: field(value, &at, "of")?,
                ms: field(value, &at, "ms")?,
            }),
            _ => Err(at.wanted("burst or pieces")),
        }
    }
}

impl Document for Over {
    fn to_value(&self) -> Json {
        match self {
            Over::All => json!({"all": true}),
            Over::Worst(share) => json!({"worst": share}),
            Over::One(number) => json!({"one": number}),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Over, InputError> {
        let (key, value) = only_key(json);
        match key {
            "all" => Ok(Over::All),
            "worst" => Document::from_value(value, &at.key(key)).map(Over::Worst),
            "one" => Document::from_value(value, &at.key(key)).map(Over::One),
            _ => Err(at.wanted("all, worst or one")),
        }
    }
}

impl Document for Step {
    fn to_value(&self) -> Json {
        match self {
            Step::Workload(key) => json!({"workload": key.to_value()}),
            Step::Setting { name, value, .. } => json!({"setting": [name, value.to_value()]}),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Step, InputError> {
        let (key, inner) = only_key(json);
        let at = at.key(key);
        match key {
            "workload" => Document::from_value(inner, &at).map(Step::Workload),
            "setting" => {
                let (name, value): (String, Value) = Document::from_value(inner, &at)?;
                let catalogue = risetime_sim::catalogue();
                let known = catalogue.params().find(|(_, param)| param.name == name);
                let home =
                    known.ok_or_else(|| at.wanted("a setting that this version has"))?.1.home;
                Ok(Step::Setting { name, value, home })
            }
            _ => Err(at.wanted("workload or setting")),
        }
    }
}

impl Document for Expectation {
    fn to_value(&self) -> Json {
        json!({"text": self.text, "figure": self.figure.to_value()})
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Expectation, InputError> {
        let text: String = field(json, at, "text")?;
        let goal = Expectation::parse_at(&text, "--goal");
        let mut goal = goal.map_err(|_| at.key("text").wanted("a goal"))?;
        goal.figure = field(json, at, "figure")?;
        Ok(goal)
    }
}
