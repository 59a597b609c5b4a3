//! Executors, which make measurements: threads of this process, or other processes that are given documents.
//!
//! ```text
//! {"risetime":"measure","schema":1,"experiment":{…},"figures":["frame.missed"]}                   a line to a worker
//! {"risetime":"measured","schema":1,"figures":[{"name":"frame.missed","value":0,"unit":"","at_least":false}]}
//! {"risetime":"fault","schema":1,"code":"invalid","place":"…","what":"…","hint":null}                 a line from it
//!
//! {"risetime":"run","schema":1,"experiment":{…}}                           asks for the whole result,
//! {"risetime":"result","schema":2,…}                                       which is a document ([`Saved`]) that reports are made of
//! ```
//!
//! `value` is null where the run has no such value; `why` says why not, where that is known. A worker answers each line with a line, in their order, and ends with its
//! input. Whoever sends documents over a network, or to a cluster's queue, sends these.

use crate::document::{self, Saved, Shown};
use crate::parallel::parallel;
use crate::request::MAX_SECONDS;
use crate::run::run;
use risetime_analysis::Options;
use risetime_analysis::known::reason;
use risetime_analysis::metric::{Metric, Unit};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::settings::keys::{HZ, SKIP_MS};
use risetime_model::{Code, Experiment, InputError, Policy};
use risetime_trace::{Backend, BackendKind, RunError};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Version of the documents.
const SCHEMA: u64 = 1;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Value of the figure; `None`: the run has none.
    pub value: Option<f64>,
    /// Unit of the value.
    pub unit: Unit,
    /// Whether the value is a lower bound.
    pub at_least: bool,
    /// Reason for which there is no value; `None`: there is one, or nothing of the kind happened.
    pub absent: Option<&'static str>,
}

/// Runs of experiments, each with its number of all.
type Runs = Result<Vec<Saved>, (usize, RunError)>;

/// A place where experiments are run and measured.
pub trait Executor {
    /// The kind of backend that runs them.
    fn kind(&self) -> BackendKind;

    /// Runs `experiment(0)` to `experiment(n - 1)`, and returns these figures of each, in their order. `progress` is told how
    /// many are done.
    ///
    /// Errors: the first one in the order of the experiments, with its number: a metric that a run does not have, the backend's,
    /// a worker that is gone.
    fn figures(
        &self,
        n: usize,
        experiment: &(dyn Fn(usize) -> Experiment + Sync),
        metrics: &[Metric],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<Vec<Figure>>, (usize, RunError)>;

    /// Runs `experiment(0)` to `experiment(n - 1)`, and returns the whole result of each, in their order, with the curves of
    /// its page. `progress` is told how many are done.
    ///
    /// Errors: those of [`Executor::figures`] but of metrics.
    fn runs(
        &self,
        n: usize,
        experiment: &(dyn Fn(usize) -> Experiment + Sync),
        progress: &mut dyn FnMut(usize),
    ) -> Runs;
}

/// The threads of this process, one a core.
pub struct Threads<'b>(pub &'b dyn Backend);

impl Executor for Threads<'_> {
    fn kind(&self) -> BackendKind {
        self.0.kind()
    }

    fn figures(
        &self,
        n: usize,
        experiment: &(dyn Fn(usize) -> Experiment + Sync),
        metrics: &[Metric],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<Vec<Figure>>, (usize, RunError)> {
        let one = |i: usize| figures_of(self.0, &experiment(i), metrics).map_err(|e| (i, e));
        parallel(n, progress, one)
    }

    fn runs(
        &self,
        n: usize,
        experiment: &(dyn Fn(usize) -> Experiment + Sync),
        progress: &mut dyn FnMut(usize),
    ) -> Runs {
        let one = |i: usize| whole(self.0, &experiment(i)).map_err(|e| (i, e));
        parallel(n, progress, one)
    }
}

/// Runs `experiment` and keeps all of its result.
fn whole(backend: &dyn Backend, experiment: &Experiment) -> Result<Saved, RunError> {
    let options = Options { timeline: true, ..Options::default() };
    let run = run(backend, experiment, options, None)?;
    Ok(Saved::of(experiment, run, Shown::default()))
}

fn figures_of(
    backend: &dyn Backend,
    experiment: &Experiment,
    metrics: &[Metric],
) -> Result<Vec<Figure>, RunError> {
    let result = run(backend, experiment, Options::default(), None)?.result;
    let figure = |metric: &Metric| {
        let (value, unit) = metric.of(&result).map_err(RunError::Input)?;
        let (at_least, absent) = (metric.is_bound(&result), metric.absent(&result));
        Ok(Figure { value, unit, at_least, absent })
    };
    metrics.iter().map(figure).collect()
}

/// Other processes, each of which reads documents from its input and answers on its output (`risetime worker`).
pub struct Workers {
    idle: Mutex<Vec<Worker>>,
}

struct Worker {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn ask(&mut self, line: &str) -> std::io::Result<String> {
        writeln!(self.to, "{line}")?;
        self.to.flush()?;
        let mut answer = String::new();
        match self.from.read_line(&mut answer)? {
            0 => Err(std::io::Error::other("it ended")),
            _ => Ok(answer),
        }
    }
}

impl Workers {
    /// Starts as many workers as there are cores, each by `command`.
    ///
    /// Errors: a command that cannot be started.
    pub fn start(command: impl Fn() -> Command) -> Result<Workers, RunError> {
        let one = |_| -> Result<Worker, RunError> {
            let mut command = command();
            let name = command.get_program().to_string_lossy().into_owned();
            let gone = |e: std::io::Error| RunError::Unavailable(format!("worker {name}: {e}"));
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(gone)?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (to, from) = pipes.ok_or_else(|| gone(std::io::Error::other("no pipes")))?;
            Ok(Worker { child, to, from: BufReader::new(from) })
        };
        let idle = (0..crate::parallel::cores()).map(one).collect::<Result<_, _>>()?;
        Ok(Workers { idle: Mutex::new(idle) })
    }

    /// Asks one of the workers, which is not used again if it fails.
    fn ask(&self, line: &str) -> Result<String, RunError> {
        let gone = |e: std::io::Error| RunError::Failed(format!("a worker is gone: {e}"));
        // There are as many threads as workers at most.
        let worker = self.idle().pop();
        let mut worker = worker.ok_or_else(|| gone(std::io::Error::other("none is left")))?;
        let answer = worker.ask(line).map_err(gone)?;
        self.idle().push(worker);
        Ok(answer)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for Workers {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }

    fn figures(
        &self,
        n: usize,
        experiment: &(dyn Fn(usize) -> Experiment + Sync),
        metrics: &[Metric],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<Vec<Figure>>, (usize, RunError)> {
        let one = |i: usize| read_answer(&self.ask(&question(&experiment(i), metrics)?)?);
        parallel(n, progress, |i| one(i).map_err(|e| (i, e)))
    }

    fn runs(
        &self,
        n: usize,
        experiment: &(dyn Fn(usize) -> Experiment + Sync),
        progress: &mut dyn FnMut(usize),
    ) -> Runs {
        let one = |i: usize| read_run(&self.ask(&question_of_run(&experiment(i))?)?);
        parallel(n, progress, |i| one(i).map_err(|e| (i, e)))
    }
}

fn question_of_run(experiment: &Experiment) -> Result<String, RunError> {
    let experiment: Json = serde_json::from_str(&experiment.to_json()?).expect("was just written");
    Ok(json!({"risetime": "run", "schema": SCHEMA, "experiment": experiment}).to_string())
}

fn question(experiment: &Experiment, metrics: &[Metric]) -> Result<String, RunError> {
    let experiment: Json = serde_json::from_str(&experiment.to_json()?).expect("was just written");
    let figures: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    let question = json!({
        "risetime": "measure", "schema": SCHEMA, "experiment": experiment, "figures": figures,
    });
    Ok(question.to_string())
}

/// Answers a line as a worker does: runs its experiment on `backend` and returns what was asked for, or the fault, in a line.
/// `place` is what faults call the line.
pub fn answer(backend: &dyn Backend, line: &str, place: &str) -> String {
    match answered(backend, line, place) {
        Ok(answer) => answer,
        Err(fault) => {
            let code = fault.code();
            let (place, what, hint) = match fault {
                RunError::Input(InputError { place, what, hint, .. }) => (place, what, hint),
                RunError::Unavailable(what) | RunError::Failed(what) => (String::new(), what, None),
            };
            json!({
                "risetime": "fault", "schema": SCHEMA,
                "code": code.as_str(), "place": place, "what": what, "hint": hint,
            })
            .to_string()
        }
    }
}

fn answered(backend: &dyn Backend, line: &str, place: &str) -> Result<String, RunError> {
    let question = parse(line, place, &["measure", "run"])?;
    let experiment = Experiment::from_value(&question["experiment"], place)?;
    check(&experiment, place)?;
    if question["risetime"] == "run" {
        return Ok(whole(backend, &experiment)?.to_json()?);
    }
    let wrong = || InputError::new(place, "figures: wanted a list of names");
    let names = question["figures"].as_array().ok_or_else(wrong)?;
    let name = |name: &Json| Ok(Metric::new(name.as_str().ok_or_else(wrong)?));
    let metrics = names.iter().map(name).collect::<Result<Vec<_>, InputError>>()?;
    let figures = figures_of(backend, &experiment, &metrics)?;
    let one = |(metric, f): (&Metric, &Figure)| {
        let Figure { value, unit, at_least, absent } = f;
        let mut figure = json!({
            "name": metric.name, "value": value, "unit": unit.word(), "at_least": at_least,
        });
        absent.iter().for_each(|why| figure["why"] = (*why).into());
        figure
    };
    let figures: Vec<Json> = metrics.iter().zip(&figures).map(one).collect();
    Ok(json!({ "risetime": "measured", "schema": SCHEMA, "figures": figures }).to_string())
}

/// Checks that an experiment from a document, which errors call `place`, is one that a request could have made: whoever wrote or
/// changed the document may be wrong.
///
/// Errors: a kernel, length or start phase that there is not; settings that are unknown, out of range, or not all there; a workload
/// that does not fit the platform, or that the simulator cannot run.
fn check(e: &Experiment, place: &str) -> Result<(), InputError> {
    let wrong = |what: String| Err(InputError::new(place, what));
    let longest = Span((MAX_SECONDS * 1e9) as u64);
    let (kernel, known) = (e.policy.kernel, KernelRev::OLDEST..=KernelRev::NEWEST);
    if !known.contains(&kernel) {
        let (oldest, newest) = (known.start(), known.end());
        return wrong(format!("policy.kernel: found {kernel}, wanted {oldest} to {newest}"));
    }
    if e.duration == Span(0) || e.duration > longest || e.phase > e.duration {
        let (length, phase) = (e.duration.0, e.phase.0);
        return wrong(format!(
            "found duration_ns {length} and phase_ns {phase}, wanted a length of 1 to {} and no later phase",
            longest.0
        ));
    }
    // Resolved settings resolve to themselves; these two are the request's own.
    let mut settings = e.settings.clone();
    settings.unset(&HZ);
    settings.unset(&SKIP_MS);
    let set = settings.into_map();
    let policy = Policy { set, ..e.policy.clone() };
    let again = risetime_sim::resolve(&e.platform, &policy).map_err(|fault| InputError {
        place: format!("{place}: settings: {}", fault.place),
        ..fault
    })?;
    if let Some((name, _)) = again.iter().find(|(name, value)| policy.set.get(*name) != Some(value))
    {
        return wrong(format!("settings: `{name}` is missing"));
    }
    e.workload.bind(&e.platform)?;
    risetime_sim::supported(&e.workload)
}

fn read_answer(line: &str) -> Result<Vec<Figure>, RunError> {
    let answer = told(line, "measured")?;
    let wrong = || InputError::new(ANSWER, "figures: wanted a list of values with their units");
    let figure = |f: &Json| {
        let value = match &f["value"] {
            Json::Null => None,
            value => Some(value.as_f64().ok_or_else(wrong)?),
        };
        let unit = f["unit"].as_str().and_then(Unit::of_word).ok_or_else(wrong)?;
        let absent = f["why"].as_str().and_then(reason);
        Ok(Figure { value, unit, at_least: f["at_least"] == true, absent })
    };
    let figures = answer["figures"].as_array().ok_or_else(wrong)?;
    figures.iter().map(figure).collect()
}

fn read_run(line: &str) -> Result<Saved, RunError> {
    Ok(Saved::from_value(&told(line, document::KIND)?, ANSWER)?)
}

/// Name of a worker's answer in faults.
const ANSWER: &str = "the worker's answer";

/// Parses the answer of a worker, a document of this kind.
///
/// Errors: the fault that the worker answered with; something else.
fn told(line: &str, kind: &str) -> Result<Json, RunError> {
    let answer = parse(line, ANSWER, &[kind, "fault"])?;
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_string();
    if answer["risetime"] == "fault" {
        let said = text("code");
        let code = Code::ALL.into_iter().find(|code| code.as_str() == said);
        return Err(match code.unwrap_or(Code::Failed) {
            Code::Unavailable => RunError::Unavailable(text("what")),
            Code::Failed => RunError::Failed(text("what")),
            code => {
                let hint = answer["hint"].as_str().map(str::to_string);
                let fault = InputError::new(text("place"), text("what")).code(code);
                RunError::Input(InputError { hint, ..fault })
            }
        });
    }
    Ok(answer)
}

/// Parses a document of one of these kinds.
fn parse(line: &str, place: &str, kinds: &[&str]) -> Result<Json, InputError> {
    let document: Json = serde_json::from_str(line)
        .map_err(|e| InputError::new(place, format!("is no JSON: {e}")))?;
    if !kinds.iter().any(|kind| document["risetime"] == *kind) {
        return Err(InputError::new(place, format!("is no document `{}`", kinds.join("` or `"))));
    }
    // A whole result says itself what form it has.
    if document["risetime"] != document::KIND && document["schema"] != SCHEMA {
        let what = format!("schema: found {}, wanted {SCHEMA}", document["schema"]);
        return Err(InputError::new(place, what).hint("another version of Risetime wrote it"));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use risetime_sim::Simulator;

    fn experiment(seconds: f64) -> Experiment {
        let request = Request { seconds: Some(seconds), ..Request::new("rampup", "m1") };
        request.experiments().expect("built in").remove(0)
    }

    /// What an answer says is what a run here gives, to the last bit; also what has no value.
    #[test]
    fn a_document_gives_the_figures_of_a_run_here() {
        let metrics = ["rampup.debt", "energy", "rampup.full_speed", "wakeups"].map(Metric::new);
        let e = experiment(1.05);
        let here = Threads(&Simulator).figures(1, &|_| e.clone(), &metrics, &mut |_| ()).unwrap();
        let line = answer(&Simulator, &question(&e, &metrics).unwrap(), "line 1");
        assert_eq!(read_answer(&line).unwrap(), here[0]);
        assert!(here[0].iter().any(|f| f.value.is_none()) && here[0].iter().any(|f| f.at_least));
    }

    #[test]
    fn what_goes_wrong_comes_back_as_the_fault_that_it_is() {
        let of = |line: &str| read_answer(&answer(&Simulator, line, "line 7")).unwrap_err();
        assert!(of("{").to_string().starts_with("line 7: is no JSON: "));
        assert_eq!(of("{}").to_string(), "line 7: is no document `measure` or `run`");
        let e = experiment(0.3);
        let unknown = question(&e, &[Metric::new("rampap.debt")]).unwrap();
        let here = figures_of(&Simulator, &e, &[Metric::new("rampap.debt")]).unwrap_err();
        assert_eq!(of(&unknown), here);
        assert!(matches!(here, RunError::Input(InputError { hint: Some(_), .. })), "{here:?}");
        assert_eq!((of(&unknown).code(), of("{}").code()), (Code::UnknownName, Code::Invalid));
        let newer = unknown.replacen("\"schema\":1", "\"schema\":2", 1);
        // Nobody asked for these: they would run, as something else.
        for (from, to, what) in [
            ("\"governor\":\"schedutil\"", "\"governor\":\"schedutils\"", "settings: "),
            ("\"settings\":{", "\"settings\":{\"no_such\":1,", "settings: "),
            ("\"base_slice_ns\":", "\"base_slice\":", "settings: "),
            ("\"kernel\":\"7.2\"", "\"kernel\":\"0.1\"", "policy.kernel: found 0.1, wanted 3.15"),
            (
                "\"duration_ns\":300000000",
                "\"duration_ns\":18446744073709551615",
                "found duration_ns",
            ),
            ("\"phase_ns\":0", "\"phase_ns\":300000001", "found duration_ns"),
        ] {
            let right = question(&e, &[Metric::new("energy")]).unwrap();
            assert!(right.contains(from), "{from} in {right}");
            let found = of(&right.replace(from, to)).to_string();
            assert!(found.starts_with(&format!("line 7: {what}")), "{from}: {found}");
        }
        assert!(of(&newer).to_string().starts_with("line 7: schema: found 2, wanted 1"));
    }

    /// Whatever a request makes passes; the check knows no setting by itself.
    #[test]
    fn experiments_that_are_asked_for_pass_the_check() {
        for platform in ["m1", "rpi4", "hikey960", "laptop4", "server64"] {
            for policy in risetime_model::library::policies() {
                let request = Request {
                    policies: vec![policy.name.to_string()],
                    noise: Some("machine"),
                    hz: Some(1000),
                    skip_ms: Some(10),
                    ..Request::new("rampup", platform)
                };
                let e = request.experiments().expect("built in").remove(0);
                assert_eq!(check(&e, "x"), Ok(()), "{platform}, {}", policy.name);
            }
        }
    }

    #[test]
    fn a_worker_that_is_gone_is_a_failure() {
        let workers = Workers::start(|| Command::new("true")).unwrap();
        let e = experiment(0.1);
        let found = workers.figures(3, &|_| e.clone(), &[Metric::new("energy")], &mut |_| ());
        let (i, error) = found.unwrap_err();
        assert!(i == 0 && error.to_string().starts_with("a worker is gone: "), "{i} {error}");
        assert!(Workers::start(|| Command::new("no-such-command")).is_err());
    }
}
