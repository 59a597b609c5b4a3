//! An experiment that goes wrong, made smaller: what is left is what it takes.
//!
//! ```text
//! case ──> fewer tasks, settings, groups, phases, events, attributes; shorter; a simpler machine; round numbers
//!            ^                                      │
//!            └────── the smaller one, if it still goes wrong, until nothing more can go
//! ```
//!
//! Delta debugging (Zeller): of each list first halves are left out, then quarters, down to single entries.
//! In the same order whenever it is asked, and nothing is asked twice: the same case and the same answers
//! give the same result. Whether a case goes wrong says a predicate; what is no experiment (a child that
//! nobody forks, a CPU that the simpler machine has not) is not asked about.
//!
//! Left out: other numbers than rounder ones, and a search for the smallest of all: every result is
//! small in that no single step makes it smaller.

use super::set::Case;
use super::{beside, verify};
use risetime_analysis::Options;
use risetime_analysis::verify::Mode;
use risetime_kernel::KernelRev;
use risetime_lab::{record, run};
use risetime_model::Platform;
use risetime_model::workload::Tree;
use risetime_sim::Simulator;
use risetime_trace::{Backend, Memory, RunError};
use std::collections::BTreeSet;

/// Machines to try instead, the simplest first.
const SIMPLER: [&str; 2] = ["rpi4", "m1"];
/// The shortest run.
const LEAST_MS: u64 = 50;

/// A case that was made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The smallest case found.
    pub case: Case,
    /// Number of cases that were tried.
    pub tries: usize,
    /// True if nothing more can be left out; else the limit of tries ended it.
    pub done: bool,
}

/// The fault that a case has to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Fewer than so many of the six checks hold.
    Checks(usize),
    /// The check of this name fails.
    Check(String),
    /// The machine's energy differs by more than so many percent of the reference's.
    Energy(u32),
}

impl Wrong {
    /// Whether `case` goes wrong in this way if `reference`, a kernel of generation `rev`, runs it.
    ///
    /// Errors: the reference is not to be had. A case that fails to run is not wrong.
    pub fn is(
        &self,
        case: &Case,
        reference: &dyn Backend,
        rev: Option<KernelRev>,
        mode: Mode,
    ) -> Result<bool, RunError> {
        match self.look(case, reference, rev, mode) {
            Err(e @ RunError::Unavailable(_)) => Err(e),
            Err(_) => Ok(false),
            Ok(wrong) => Ok(wrong),
        }
    }

    fn look(
        &self,
        case: &Case,
        reference: &dyn Backend,
        rev: Option<KernelRev>,
        mode: Mode,
    ) -> Result<bool, RunError> {
        let e = case.experiment(rev)?;
        if let Wrong::Energy(percent) = self {
            let mut trace = Memory::new();
            let was = run(reference, &e, Options::default(), Some(&mut trace))?.result.energy_mj;
            let is =
                run(&Simulator, &beside(&e, &trace), Options::default(), None)?.result.energy_mj;
            let differ =
                |(was, is): (f64, f64)| 100.0 * (was - is).abs() > f64::from(*percent) * was;
            return Ok(was.zip(is).is_some_and(differ));
        }
        let found = verify(&e, &record(reference, &e)?, mode)?.comparison;
        Ok(match self {
            Wrong::Check(name) => found.checks.iter().any(|c| c.name == name && !c.holds),
            Wrong::Checks(wanted) => found.held() < *wanted,
            Wrong::Energy(_) => false,
        })
    }
}

/// Makes `case` smaller as long as it `fails`, with at most `limit` questions; `None`: it does not fail as it
/// is. `heard` hears of each case that was smaller and failed.
///
/// Errors: the predicate's; `case` is no experiment.
pub fn shrink(
    case: &Case,
    limit: usize,
    fails: &mut dyn FnMut(&Case) -> Result<bool, RunError>,
    heard: &mut dyn FnMut(&Case),
) -> Result<Option<Shrunk>, RunError> {
    let best = Small {
        platform: case.platform.clone(),
        settings: case.settings.split('+').filter(|s| !s.is_empty()).map(Into::into).collect(),
        file: Tree::parse(&case.workload, &case.name)?,
        ms: case.ms,
    };
    fits(case)?;
    let mut s = Shrinker { case, best, tries: 1, limit, seen: BTreeSet::new(), fails, heard };
    if !(s.fails)(case)? {
        return Ok(None);
    }
    while s.round()? {}
    let done = s.tries < limit;
    Ok(Some(Shrunk { case: s.best.case(case), tries: s.tries, done }))
}

/// A case in parts.
#[derive(Clone, PartialEq, Eq)]
struct Small {
    platform: String,
    settings: Vec<String>,
    file: Tree,
    ms: u64,
}

/// The way to a list in the file: by places.
type Path = Vec<usize>;

impl Small {
    fn case(&self, of: &Case) -> Case {
        Case {
            platform: self.platform.clone(),
            settings: self.settings.iter().map(|s| format!("+{s}")).collect(),
            workload: self.file.to_string(),
            ms: self.ms,
            ..of.clone()
        }
    }

    /// Lists every object and list of the file: the tasks first, then by depth.
    fn lists(&self) -> Vec<Path> {
        let mut all: Vec<Path> = vec![Vec::new()];
        let mut at = 0;
        while let Some(path) = all.get(at).cloned() {
            let below = |i| path.iter().copied().chain([i]).collect();
            match find(&self.file, &path) {
                Some(Tree::Object(o)) => all.extend((0..o.len()).map(below)),
                Some(Tree::List(l)) => all.extend((0..l.len()).map(below)),
                _ => {}
            }
            at += 1;
        }
        let holds = |p: &Path| matches!(find(&self.file, p), Some(Tree::Object(_) | Tree::List(_)));
        all.retain(holds);
        let tasks = self.tasks();
        all.sort_by_key(|p| (Some(p) != tasks.as_ref(), p.len()));
        all
    }

    /// The path of the tasks.
    fn tasks(&self) -> Option<Path> {
        let Tree::Object(all) = &self.file else { return None };
        all.iter().position(|(k, _)| k == "tasks").map(|i| vec![i])
    }

    /// The keys of each task.
    fn bodies(&mut self) -> impl Iterator<Item = &mut Vec<(String, Tree)>> {
        let tasks = self.tasks().and_then(|path| find_mut(&mut self.file, &path));
        let all = match tasks {
            Some(Tree::Object(all)) => all.as_mut_slice(),
            _ => &mut [],
        };
        all.iter_mut().filter_map(|(_, body)| match body {
            Tree::Object(keys) => Some(keys),
            _ => None,
        })
    }

    fn len(&self, list: &Path) -> usize {
        match find(&self.file, list) {
            Some(Tree::Object(o)) => o.len(),
            Some(Tree::List(l)) => l.len(),
            _ => 0,
        }
    }

    fn without(&self, list: &Path, from: usize, to: usize) -> Small {
        let mut small = self.clone();
        match find_mut(&mut small.file, list) {
            Some(Tree::Object(o)) => drop(o.drain(from..to)),
            Some(Tree::List(l)) => drop(l.drain(from..to)),
            _ => {}
        }
        small
    }
}

fn find<'t>(tree: &'t Tree, path: &[usize]) -> Option<&'t Tree> {
    path.iter().try_fold(tree, |tree, i| match tree {
        Tree::Object(all) => all.get(*i).map(|(_, v)| v),
        Tree::List(all) => all.get(*i),
        _ => None,
    })
}

fn find_mut<'t>(tree: &'t mut Tree, path: &[usize]) -> Option<&'t mut Tree> {
    path.iter().try_fold(tree, |tree, i| match tree {
        Tree::Object(all) => all.get_mut(*i).map(|(_, v)| v),
        Tree::List(all) => all.get_mut(*i),
        _ => None,
    })
}

/// Whether it is an experiment: everything that can be said without running it.
fn fits(case: &Case) -> Result<(), RunError> {
    let e = case.experiment(None)?;
    e.workload.bind(&e.platform)?;
    Ok(risetime_sim::supported(&e.workload)?)
}

struct Shrinker<'f> {
    case: &'f Case,
    best: Small,
    tries: usize,
    limit: usize,
    /// Cases that were tried.
    seen: BTreeSet<(String, u64, String)>,
    fails: &'f mut dyn FnMut(&Case) -> Result<bool, RunError>,
    heard: &'f mut dyn FnMut(&Case),
}

impl Shrinker<'_> {
    /// Takes `small` if it is another one, an experiment, and fails.
    fn take(&mut self, small: Small) -> Result<bool, RunError> {
        if small == self.best || self.tries >= self.limit {
            return Ok(false);
        }
        let case = small.case(self.case);
        let asked = (case.platform.clone() + &case.settings, case.ms, case.workload.clone());
        if !self.seen.insert(asked) || fits(&case).is_err() {
            return Ok(false);
        }
        self.tries += 1;
        let fails = (self.fails)(&case)?;
        if fails {
            self.best = small;
            (self.heard)(&case);
        }
        Ok(fails)
    }

    /// Tries every change once; returns whether the case became smaller.
    fn round(&mut self) -> Result<bool, RunError> {
        let before = self.best.clone();
        if let Some(tasks) = self.best.tasks() {
            self.list(&tasks)?;
        }
        self.shorter()?;
        self.settings()?;
        self.machine()?;
        self.objects()?;
        self.classes()?;
        self.phases()?;
        let mut nth = 0;
        while let Some(list) = self.best.lists().get(nth).cloned() {
            self.list(&list)?;
            nth += 1;
        }
        self.shorter()?;
        self.rounder()?;
        Ok(self.best != before)
    }

    /// Leaves out what can be left out of a list of the file.
    fn list(&mut self, list: &Path) -> Result<(), RunError> {
        let len = |s: &Small| s.len(list);
        self.fewer(&len, &|s, from, to| s.without(list, from, to))
    }

    fn settings(&mut self) -> Result<(), RunError> {
        let without = |s: &Small, from, to| {
            let mut small = s.clone();
            drop(small.settings.drain(from..to));
            small
        };
        self.fewer(&|s| s.settings.len(), &without)
    }

    /// Halves, quarters, … of a list of `len` entries.
    fn fewer(
        &mut self,
        len: &dyn Fn(&Small) -> usize,
        without: &dyn Fn(&Small, usize, usize) -> Small,
    ) -> Result<(), RunError> {
        let mut size = len(&self.best);
        while size > 0 {
            let mut from = 0;
            while from < len(&self.best) {
                let to = (from + size).min(len(&self.best));
                if !self.take(without(&self.best, from, to))? {
                    from = to;
                }
            }
            size /= 2;
        }
        Ok(())
    }

    fn shorter(&mut self) -> Result<(), RunError> {
        loop {
            let ms = self.best.ms;
            let halves = [ms / 2, ms * 3 / 4].map(|ms| (ms / 10 * 10).max(LEAST_MS));
            let mut shorter = false;
            for ms in halves.into_iter().filter(|m| *m < ms) {
                shorter = shorter || self.take(Small { ms, ..self.best.clone() })?;
            }
            if !shorter {
                return Ok(());
            }
        }
    }

    fn machine(&mut self) -> Result<(), RunError> {
        let now = SIMPLER.iter().position(|p| *p == self.best.platform).unwrap_or(SIMPLER.len());
        for platform in &SIMPLER[..now] {
            // Limits of a policy's frequency are the other machine's.
            let has = |s: &String| !s.contains(".policy") || Platform::load(platform).is_err();
            let mut small = Small { platform: platform.to_string(), ..self.best.clone() };
            small.settings.retain(has);
            if self.take(small)? {
                break;
            }
        }
        Ok(())
    }

    /// Tries to leave out every mention of a mutex, a condition, a semaphore, a barrier, a name to
    /// resume or fork.
    fn objects(&mut self) -> Result<(), RunError> {
        fn names(tree: &Tree, of: &mut BTreeSet<String>) {
            let Tree::Object(all) = tree else { return };
            for (key, value) in all {
                match value {
                    Tree::Text(name) if !NO_OBJECTS.contains(&key.as_str()) => {
                        of.insert(name.clone());
                    }
                    value => names(value, of),
                }
            }
        }
        fn forget(tree: &mut Tree, name: &str) {
            let Tree::Object(all) = tree else { return };
            let speaks = |tree: &Tree| match tree {
                Tree::Text(text) => text == name,
                other => ["ref", "mutex"].iter().any(|k| other.get(k) == Some(&Tree::text(name))),
            };
            all.retain(|(key, value)| NO_OBJECTS.contains(&key.as_str()) || !speaks(value));
            all.iter_mut().for_each(|(_, value)| forget(value, name));
        }
        let mut all = BTreeSet::new();
        names(&self.best.file, &mut all);
        for name in all {
            let mut small = self.best.clone();
            forget(&mut small.file, &name);
            self.take(small)?;
        }
        Ok(())
    }

    /// Tries to make each task an ordinary one.
    fn classes(&mut self) -> Result<(), RunError> {
        for nth in 0..self.best.bodies().count() {
            let mut small = self.best.clone();
            let of_class =
                |key: &str| key.starts_with("dl-") || ["policy", "priority"].contains(&key);
            if let Some(keys) = small.bodies().nth(nth) {
                keys.retain(|(key, _)| !of_class(key));
            }
            self.take(small)?;
        }
        Ok(())
    }

    /// Tries a single phase of a task in place of all of them.
    fn phases(&mut self) -> Result<(), RunError> {
        for nth in 0..self.best.bodies().count() {
            let mut which = 0;
            loop {
                let mut small = self.best.clone();
                let Some(keys) = small.bodies().nth(nth) else { break };
                let Some(at) = keys.iter().position(|(key, _)| key == "phases") else { break };
                let Tree::Object(phases) = &keys[at].1 else { break };
                let Some((_, Tree::Object(phase))) = phases.get(which) else { break };
                let mut phase = phase.clone();
                phase.retain(|(key, _)| key != "loop");
                keys.splice(at..=at, phase);
                which += 1;
                if self.take(small)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Tries single instances, single rounds, and times of one digit.
    fn rounder(&mut self) -> Result<(), RunError> {
        let mut at = 0;
        loop {
            let mut small = self.best.clone();
            let Some((key, value)) = nth_number(&mut small.file, &mut { at }) else { break };
            at += 1;
            let Some(n) = value.as_int() else { continue };
            let digit = 10_i64.pow(n.unsigned_abs().max(1).ilog10());
            let round = match key {
                "instance" | "loop" if n > 1 => 1,
                "instance" | "loop" => continue,
                _ => n / digit * digit,
            };
            *value = Tree::int(round);
            self.take(small)?;
        }
        Ok(())
    }
}

/// Keys whose text names nothing that tasks share.
const NO_OBJECTS: [&str; 3] = ["policy", "taskgroup", "ref"];

/// The `nth` number with its key, in the order of the file.
fn nth_number<'t>(tree: &'t mut Tree, nth: &mut usize) -> Option<(&'t str, &'t mut Tree)> {
    let Tree::Object(all) = tree else { return None };
    for (key, value) in all {
        match value {
            Tree::Plain(_) if *nth == 0 => return Some((key, value)),
            Tree::Plain(_) => *nth -= 1,
            Tree::Object(_) => {
                if let Some(found) = nth_number(value, nth) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Can, wide};
    use risetime_model::Workload;
    use risetime_model::workload::{Event, Policy};

    fn workload(case: &Case) -> Workload {
        Workload::parse(&case.workload, "case").unwrap()
    }

    /// Whether two tasks meet at a mutex that both lock, and one of them has a nice value below 0.
    fn contends(case: &Case) -> bool {
        let w = workload(case);
        let locks = |e: &Event| matches!(e, Event::Lock(_));
        let both = w.tasks.iter().filter(|t| t.phases.iter().any(|p| p.events.iter().any(locks)));
        both.count() >= 2 && w.tasks.iter().any(|t| t.attr.nice.is_some_and(|n| n < 0))
    }

    fn smaller(case: &Case, fails: impl Fn(&Case) -> bool) -> Option<Shrunk> {
        let mut heard = 0;
        let found = shrink(case, 10_000, &mut |c| Ok(fails(c)), &mut |_| heard += 1).unwrap();
        assert!(found.as_ref().is_none_or(|f| f.done && (heard > 0 || f.case == *case)));
        found
    }

    #[test]
    fn what_is_left_is_what_it_takes() {
        let mut seen = 0;
        for case in (1..200).map(|n| wide(3, n, Can::ALL)).filter(contends) {
            let found = smaller(&case, contends).unwrap().case;
            let w = workload(&found);
            // Three if nobody who locks has the nice value.
            assert!((2..=3).contains(&w.tasks.len()), "{}\n{}", case.workload, found.workload);
            assert!(w.groups.is_empty() && w.forked.is_empty(), "{}", found.workload);
            assert_eq!((found.platform.as_str(), found.settings.as_str()), ("rpi4", ""));
            assert_eq!(found.ms, LEAST_MS);
            let clamped = |t: &risetime_model::workload::TaskSpec| {
                t.attr.uclamp_min.is_some() || t.attr.cpus.is_some()
            };
            assert!(!w.tasks.iter().any(clamped), "{}", found.workload);
            assert_eq!(smaller(&case, contends).unwrap().case, found, "the same again");
            seen += 1;
        }
        assert!(seen >= 5, "{seen}");
    }

    #[test]
    fn machine_length_and_setting_stay_where_they_matter() {
        let needs =
            |c: &Case| c.platform == "pixel6" && c.ms > 400 && c.settings.contains("rate_limit_us");
        let case = (1..2000)
            .map(|n| wide(1, n, Can::ALL))
            .find(|c| needs(c) && c.settings.matches('+').count() > 1)
            .unwrap();
        let found = smaller(&case, needs).unwrap().case;
        assert_eq!((found.platform.as_str(), found.settings.matches('+').count()), ("pixel6", 1));
        assert!((410..600).contains(&found.ms), "{}", found.ms);
        assert_eq!(workload(&found).tasks.len(), 1);
    }

    #[test]
    fn phases_and_classes_go_where_they_are_not_needed() {
        let case = Case {
            name: "own".into(),
            platform: "m1".into(),
            settings: "+governor=performance+base_slice_ns=1000000".into(),
            workload: r#"{ "taskgroups": { "/a": { "weight": 300 }, "/a/b": { "weight": 50 } }, "tasks": {
              "rt": { "policy": "SCHED_FIFO", "priority": 45, "loop": -1, "run": 1234, "sleep": 5678 },
              "dl": { "policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 9000, "loop": -1, "run": 500, "sleep": 800 },
              "w": { "taskgroup": "/a/b", "loop": -1, "phases": {
                "one": { "loop": 3, "run": 100, "sleep": 70 }, "two": { "run": 7777, "sleep": 300 } } } } }"#
                .into(),
            ms: 1500,
            wanted: 4,
        };
        // Somebody works for 7 ms at a stretch.
        let works = |c: &Case| {
            let long = |e: &Event| matches!(e, Event::Run(s) if s.0 >= 7_000_000);
            workload(c).tasks.iter().flat_map(|t| &t.phases).flat_map(|p| &p.events).any(long)
        };
        let found = smaller(&case, works).unwrap().case;
        assert_eq!(found.workload, "{\n  \"tasks\": { \"w\": { \"run\": 7000 } }\n}");
        // A real-time task beside any other: the class stays, and only that.
        let beside = |c: &Case| {
            let w = workload(c);
            let rt = |p: Option<Policy>| matches!(p, Some(Policy::Fifo { .. }));
            w.tasks.len() == 2 && w.tasks.iter().any(|t| rt(t.attr.policy)) || w.tasks.len() == 3
        };
        let found = smaller(&case, beside).unwrap().case;
        let w = workload(&found);
        assert_eq!(w.tasks.len(), 2);
        assert!(
            found.workload.contains("FIFO") && !found.workload.contains("DEADLINE"),
            "{}",
            found.workload
        );
    }

    #[test]
    fn what_does_not_fail_is_not_made_smaller_and_the_limit_holds() {
        let case = wide(1, 1, Can::ALL);
        assert_eq!(smaller(&case, |_| false), None);
        let mut asked = 0;
        let mut fails = |_: &Case| {
            asked += 1;
            Ok(true)
        };
        let found = shrink(&case, 3, &mut fails, &mut |_| ()).unwrap().unwrap();
        assert_eq!((asked, found.tries, found.done), (3, 3, false));
        let mut broken = |_: &Case| Err(RunError::Unavailable("no kernel".into()));
        assert!(shrink(&case, 3, &mut broken, &mut |_| ()).is_err());
    }

    /// The predicate that asks a backend, with the simulator as the reference: it never differs from itself.
    #[test]
    fn a_backend_is_asked() {
        let case = wide(1, 2, Can::ALL);
        let asked = |wrong: Wrong| wrong.is(&case, &Simulator, None, Mode::Free).unwrap();
        assert!(!asked(Wrong::Energy(0)), "its energy is its own");
        assert!(asked(Wrong::Checks(7)), "there are six");
        assert!(!asked(Wrong::Check("no such check".into())));
        let nothing = Case { workload: "{}".into(), ..case.clone() };
        assert_eq!(Wrong::Checks(7).is(&nothing, &Simulator, None, Mode::Free), Ok(false));
    }
}
