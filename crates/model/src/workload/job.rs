//! `"job"`: what of a task, or of a chain of tasks, is released, due and done.
//!
//! ```text
//! "job": { "name": "frame", "deadline": 33333, "tasks": ["render", "compositor"],
//!          "hint_session": { "target": 23333, "tasks": ["pool"] } }
//! ```
//!
//! stands in the task that begins; all of it may be left out. Not rt-app's. Where jobs begin and end: [`risetime_job::mark`].
//! `hint_session`: the app tells a power HAL how long each job takes, and how long it should ([`HintSession`]).

use super::actions::Parsed;
use super::json::Reader;
use super::{Event, HintSession, JobSpec, Link, Policy, TaskSpec};
use crate::InputError;
use crate::input::one_line;
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use risetime_kernel::units::Span;
use std::collections::BTreeSet;

/// Statements of a task on its jobs.
#[derive(Clone, Debug)]
pub(super) struct Said {
    name: Option<String>,
    deadline: Option<Span>,
    /// The tasks behind it in the chain, and where they are named.
    then: Vec<(String, Range)>,
    hinted: Option<Hinted>,
    at: Range,
}

/// The hint session that a job declares.
#[derive(Clone, Debug)]
struct Hinted {
    target: Span,
    /// Tasks beside those of the chain.
    also: Vec<(String, Range)>,
}

/// Jobs of tasks by their places in the file.
pub(super) struct Declared {
    name: String,
    deadline: Option<Span>,
    period: Option<Span>,
    tasks: Vec<usize>,
    /// The target of its hint session, and the tasks beside its own.
    hinted: Option<(Span, Vec<usize>)>,
}

impl<'a> Reader<'a> {
    pub(super) fn job(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Said, InputError> {
        let what = format!("{what}: `job`");
        let object = self.object(&prop.value, &what)?;
        self.once(object, &what, |_| true)?;
        let at = prop.range;
        let mut said = Said { name: None, deadline: None, then: Vec::new(), hinted: None, at };
        for p in &object.properties {
            match p.name.as_str() {
                "name" => said.name = Some(self.string(p, &what)?.to_string()),
                "deadline" => {
                    said.deadline = Some(self.us(p, &what)?).filter(|d| d.0 > 0);
                    if said.deadline.is_none() {
                        return Err(self.error(&p.value, format!("{what}: `deadline` is 0 µs")));
                    }
                }
                "tasks" => said.then = self.names_of(p, &what)?,
                "hint_session" => said.hinted = Some(self.hint_session(p, &what)?),
                other => {
                    let known = ["deadline", "hint_session", "name", "tasks"];
                    return Err(self.unknown(p, &format!("{what}: "), other, &known));
                }
            }
        }
        Ok(said)
    }

    fn hint_session(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Hinted, InputError> {
        let what = format!("{what}: `hint_session`");
        let object = self.object(&prop.value, &what)?;
        self.once(object, &what, |_| true)?;
        let (mut target, mut also) = (Span(0), Vec::new());
        for p in &object.properties {
            match p.name.as_str() {
                "target" => target = self.us(p, &what)?,
                "tasks" => also = self.names_of(p, &what)?,
                other => {
                    return Err(self.unknown(p, &format!("{what}: "), other, &["target", "tasks"]));
                }
            }
        }
        // `sendHint` and reports of a session without a target are errors.
        if target < MIN_TARGET {
            let what = format!("{what}: `target` is {} µs, wanted 100 or more", target.0 / 1000);
            let hint = "how long a job should take, in µs: of a frame, its period or less";
            return Err(self.error(&prop.value, what).hint(hint));
        }
        Ok(Hinted { target, also })
    }

    fn names_of(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
    ) -> Result<Vec<(String, Range)>, InputError> {
        let Value::Array(list) = &prop.value else {
            return Err(self.wrong(prop, what, &prop.value, "a list of tasks"));
        };
        let name = |value: &Value<'a>| match value {
            Value::StringLit(name) => Ok((name.value.to_string(), value.range())),
            other => Err(self.wrong(prop, what, other, "the name of a task")),
        };
        list.elements.iter().map(name).collect()
    }

    /// Finds the chains, and what their tasks wait in for each other.
    ///
    /// Errors: a chain of tasks that there are not, that nothing connects, or that begins nowhere.
    pub(super) fn jobs(&self, tasks: &mut [Parsed<'_, 'a>]) -> Result<Vec<Declared>, InputError> {
        let mut all = Vec::new();
        let mut taken = BTreeSet::new();
        for head in 0..tasks.len() {
            let said = tasks[head].job.take();
            let mut chain = vec![head];
            for (name, at) in said.iter().flat_map(|said| &said.then) {
                let next = self.chained(tasks, name, *at)?;
                let last = chain[chain.len() - 1];
                tasks[next].spec.stage.input = self.link(tasks, last, next, *at)?;
                tasks[last].spec.stage.output = tasks[next].spec.stage.input;
                chain.push(next);
            }
            if let Some(said) = &said
                && chain.len() > 1
            {
                let mut one = |i: &&usize| tasks[**i].instances != 1 || !taken.insert(**i);
                if let Some(other) = chain.iter().find(|i| one(i)) {
                    let what = format!(
                        "`job`: task `{}` is in two chains, or has not one instance: whose turn is whose would not be known",
                        tasks[*other].name
                    );
                    return Err(self.error(&said.at, what));
                }
            }
            all.push((said, chain));
        }
        let declared = all.into_iter().filter(|(_, chain)| {
            // What is behind another has no jobs of its own.
            chain.len() > 1 || !taken.contains(&chain[0])
        });
        let mut found = Vec::new();
        for (said, chain) in declared {
            let hinted = said.as_ref().and_then(|said| said.hinted.clone());
            let declared = self.declared(tasks, said, chain)?;
            let hinted = match hinted {
                Some(Hinted { target, also }) => {
                    let also = also.iter().map(|(name, at)| self.chained(tasks, name, *at));
                    Some((target, also.collect::<Result<_, _>>()?))
                }
                None => None,
            };
            found.extend(declared.map(|d| Declared { hinted, ..d }));
        }
        Ok(found)
    }

    fn chained(
        &self,
        tasks: &[Parsed<'_, 'a>],
        name: &str,
        at: Range,
    ) -> Result<usize, InputError> {
        let found = tasks.iter().position(|task| task.name == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
            let name = one_line(name);
            self.error(
                &at,
                format!("`job`: there is no task \"{name}\"; known: {}", known.join(", ")),
            )
        })
    }

    /// The link in which `b` waits for what `a` gives; `None`: `b` looks when its timer says so.
    fn link(
        &self,
        tasks: &[Parsed<'_, 'a>],
        a: usize,
        b: usize,
        at: Range,
    ) -> Result<Option<Link>, InputError> {
        let given: Vec<Link> = events(&tasks[a].spec).filter_map(Link::output).collect();
        let wanted = events(&tasks[b].spec).filter_map(Link::input);
        let link = wanted.into_iter().find(|link| given.contains(link));
        if link.is_none() && !has_timer(&tasks[b].spec) {
            let (a, b) = (&tasks[a].name, &tasks[b].name);
            let what = format!(
                "`job`: `{a}` gives `{b}` nothing that it waits for, and `{b}` has no timer"
            );
            let hint = "a signal, a semaphore, a barrier or suspend and resume, by the same name";
            return Err(self.error(&at, what).hint(hint));
        }
        Ok(link)
    }

    /// The jobs that begin in the first task of `chain`; `None`: it has none.
    fn declared(
        &self,
        tasks: &mut [Parsed<'_, 'a>],
        said: Option<Said>,
        chain: Vec<usize>,
    ) -> Result<Option<Declared>, InputError> {
        let head = &mut tasks[chain[0]];
        let reserved = deadline_of(&head.spec);
        if head.instances == 0 || said.is_none() && reserved.is_none() && !has_timer(&head.spec) {
            return Ok(None);
        }
        let deadline = said.as_ref().and_then(|said| said.deadline).or(reserved);
        let name = said.as_ref().and_then(|said| said.name.clone());
        let name = name.unwrap_or_else(|| head.name.clone());
        if !has_timer(&head.spec) {
            // A deadline task that yields is done with its period, whatever else it waits for in it.
            let yields = reserved.is_some() && events(&head.spec).any(|e| *e == Event::Yield);
            let input = match yields {
                true => Some(Link::Yield),
                false => events(&head.spec).find_map(Link::input),
            };
            let lacks = match (input, deadline) {
                (None, _) => Some(", sleep or wait where its jobs would begin and end"),
                (_, None) => Some(", so its jobs need a `deadline`"),
                _ => None,
            };
            match (lacks, said) {
                (Some(lacks), Some(said)) => {
                    let what = format!("`job`: task `{}` has no timer{lacks}", head.name);
                    return Err(self.error(&said.at, what));
                }
                (Some(_), None) => return Ok(None),
                (None, _) => head.spec.stage.input = input,
            }
        }
        let period = events(&head.spec).find_map(|event| match event {
            Event::Timer { period, .. } => Some(*period),
            _ => None,
        });
        Ok(Some(Declared { name, deadline, period, tasks: chain, hinted: None }))
    }
}

/// A shorter target is no duration of work (HWUI's `kSanityCheckLowerBound`).
const MIN_TARGET: Span = Span::from_us(100);

/// The hint sessions of these jobs; `jobs`: as [`specs`] has them. Each instance of a task has a session of its own.
pub(super) fn sessions(declared: &[Declared], of: &[usize], jobs: &[JobSpec]) -> Vec<HintSession> {
    let mut all = Vec::new();
    let mut job = 0;
    for d in declared {
        let streams = match d.tasks[..] {
            [one] => of.iter().filter(|o| **o == one).count(),
            _ => 1,
        };
        for (stream, spec) in jobs.iter().enumerate().skip(job).take(streams) {
            let Some((target, also)) = &d.hinted else { continue };
            let also = (0..of.len() as u32).filter(|i| also.contains(&of[*i as usize]));
            let tasks = spec.tasks.iter().copied().chain(also).collect();
            all.push(HintSession { job: stream as u32, tasks, target: *target });
        }
        job += streams;
    }
    all
}

/// Turns declared jobs into those of the tasks as they start; `of`: for each such task, the
/// declared task whose instance it is.
pub(super) fn specs(declared: &[Declared], of: &[usize]) -> Vec<JobSpec> {
    let place = |parsed: usize| of.iter().position(|o| *o == parsed).map(|i| i as u32);
    let each = |d: &Declared| -> Vec<JobSpec> {
        let spec =
            |tasks| JobSpec { name: d.name.clone(), tasks, deadline: d.deadline, period: d.period };
        match d.tasks[..] {
            [one] => {
                let own = of.iter().enumerate().filter(|(_, o)| **o == one);
                own.map(|(i, _)| spec(vec![i as u32])).collect()
            }
            _ => vec![spec(d.tasks.iter().filter_map(|t| place(*t)).collect())],
        }
    };
    declared.iter().flat_map(each).collect()
}

fn events(task: &TaskSpec) -> impl Iterator<Item = &Event> {
    task.phases.iter().flat_map(|phase| &phase.events)
}

fn has_timer(task: &TaskSpec) -> bool {
    events(task).any(|event| matches!(event, Event::Timer { .. }))
}

/// The deadline of the reservation with which the task begins; `None`: it begins without one.
fn deadline_of(task: &TaskSpec) -> Option<Span> {
    let of_phase = task.phases.first().and_then(|phase| phase.attr.policy);
    match of_phase.or(task.attr.policy) {
        Some(Policy::Deadline { deadline, .. }) => Some(deadline),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;

    fn read(job: &str) -> Result<Workload, String> {
        let text = format!(
            r#"{{"tasks": {{
                "ui": {{"job": {{"name": "frame", {job}}}, "loop": -1, "run": 100, "resume": "draw", "timer": {{"ref": "unique", "period": 10000}}}},
                "render": {{"loop": -1, "suspend": "draw", "run": 100}},
                "pool": {{"instance": 2, "run": 100}}}}}}"#
        );
        Workload::parse(&text, "w.json").map_err(|e| e.to_string())
    }

    #[test]
    fn a_hint_session_has_the_tasks_of_its_chain_and_others() {
        let w = read(r#""tasks": ["render"], "hint_session": {"target": 9000, "tasks": ["pool"]}"#);
        let w = w.expect("a workload");
        let [session] = &w.sessions[..] else { panic!("{:?}", w.sessions) };
        assert_eq!(w.jobs[session.job as usize].name, "frame");
        assert_eq!((&session.tasks[..], session.target.0), (&[0, 1, 2, 3][..], 9_000_000));
        assert!(read(r#""tasks": ["render"]"#).expect("a workload").sessions.is_empty());
    }

    #[test]
    fn what_is_wrong_with_one_is_said_at_its_place() {
        for (job, words) in [
            (r#""hint_session": {}"#, "`hint_session`: `target` is 0 µs, wanted 100 or more"),
            (r#""hint_session": {"target": 99}"#, "`target` is 99 µs"),
            (r#""hint_session": {"target": -1}"#, "`target`"),
            (r#""hint_session": 5"#, "`hint_session`"),
            (
                r#""hint_session": {"target": 9000, "tasks": ["nobody"]}"#,
                "there is no task \"nobody\"",
            ),
            (r#""hint_session": {"target": 9000, "threads": []}"#, "target, tasks"),
        ] {
            let error = read(job).expect_err(job);
            assert!(error.starts_with("w.json:2:") && error.contains(words), "{job}: {error}");
        }
    }
}
