//! The least of one figure with which another reaches a goal: `frame.missed = 0` with the least energy.
//!
//! ```text
//! round 1   every candidate, from 2 start phases
//! round 2   of clamps that reach it, the least value that does: by halves down to 8, between the largest that does not and
//!           the least that does, from half the phases
//! round 3   what costs least so far together with what saves most by itself
//! last      from all phases, the cheapest first, until nothing that was seen to reach the goal may cost less
//! ```
//!
//! Rounds 1 to 3 start elsewhere and with other seeds than the last.

use super::candidates::candidates;
use super::{Wanted, experiment, pairs};
use crate::measure;
use crate::phases::phase_span;
use risetime_analysis::advice::{Step, Steps};
use risetime_analysis::expect::Expectation;
use risetime_analysis::goal::{Reaching, Sought, cost, holds, works};
use risetime_analysis::metric::Metric;
use risetime_analysis::{Measured, Options, Subject};
use risetime_model::workload::KeyOf;
use risetime_model::{Experiment, InputError};
use risetime_sim::Simulator;
use risetime_trace::RunError;
use std::collections::BTreeMap;

/// A goal: what has to hold, and at the least of which cost.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Expectation that has to hold from every start phase.
    pub expected: Expectation,
    /// Metric that is to be least where it holds.
    pub least: Metric,
}

/// Clamps are looked for to so many of 1024: OPPs lie further apart.
const GRAIN: u64 = 8;
/// Number of kinds of clamps that are looked for.
const KINDS: usize = 4;
/// Numbers of the cheapest and of the others that are tried together.
const TOGETHER: (usize, usize) = (2, 4);
/// Number of candidates that are run from all phases at a time.
const BATCH: usize = 4;
/// Costs from other start phases may be off by so much.
const NEAR: f64 = 1.01;

/// Looks for it. `progress` hears how many simulations are done.
///
/// Errors: the request's; a figure that there is not, or that is counted otherwise; the simulator's.
pub fn advise_goal(
    wanted: &Wanted,
    goal: &Goal,
    mut progress: impl FnMut(usize),
) -> Result<Sought, RunError> {
    let base = experiment(&wanted.request, &Vec::new(), None)?;
    let goal = told(goal, &base, wanted.task.as_deref());
    goal.expected.check_name(&base.workload)?;
    goal.least.check(&base.workload).map_err(|e| InputError { place: "--least".into(), ..e })?;
    let probe = crate::run(&Simulator, &base, Options::default(), None)?.result;
    goal.expected.check(&probe)?;
    let (mut all, left_out) = candidates(&base, &probe, &goal.expected.figure.name);
    all.retain(|steps| experiment(&wanted.request, steps, None).is_ok());
    let first = (wanted.budget as usize / 6).clamp(1, all.len().max(1));
    let untried = all.len().saturating_sub(first);
    all.truncate(first);
    let mut search = Search::new(wanted, &goal, &mut progress);
    all.insert(0, Vec::new());
    search.look(all, 2, 1)?;
    search.narrow()?;
    search.combine()?;
    let (finals, cut) = search.finals()?;
    let mut finals = finals.into_iter();
    let Some(base) = finals.next() else { unreachable!("the baseline is run") };
    let (mut reaching, mut short): (Vec<Reaching>, Vec<Reaching>) =
        std::iter::once(base.clone()).chain(finals).partition(|one| one.reaches(&base.measured));
    reaching.sort_by(|a, b| {
        cost(&a.measured).total_cmp(&cost(&b.measured)).then(a.steps.len().cmp(&b.steps.len()))
    });
    // What a further change makes no other is the simpler one.
    let mut simple: Vec<Reaching> = Vec::new();
    for one in reaching {
        if !simple.iter().any(|other| other.measured.metrics == one.measured.metrics) {
            simple.push(one);
        }
    }
    let reaching = simple;
    short.retain(|one| !one.steps.is_empty());
    short.sort_by(|a, b| {
        b.holds.cmp(&a.holds).then(cost(&a.measured).total_cmp(&cost(&b.measured)))
    });
    let reached = search.seen.iter().filter(|s| s.reaches && !s.steps.is_empty()).count();
    Ok(Sought {
        tried: (search.seen.len() - 1, reached),
        runs: search.runs,
        seed: wanted.request.seed,
        goal: goal.expected.clone(),
        least: goal.least.clone(),
        base,
        reaching,
        short,
        untried,
        cut,
        left_out,
    })
}

/// The goal with the names of whom its figures are.
fn told(goal: &Goal, e: &Experiment, task: Option<&str>) -> Goal {
    let subject = Subject::of(e, task);
    let of = |metric: &Metric| Metric::of_task(&metric.name, Some(subject.whose()));
    let mut expected = goal.expected.clone();
    expected.figure = of(&expected.figure);
    Goal { expected, least: of(&goal.least) }
}

/// Something that was looked at before the end.
struct Seen {
    steps: Steps,
    cost: f64,
    /// True if it reaches the goal from each start phase from which it was tried, with work done.
    reaches: bool,
}

struct Search<'w, P> {
    wanted: &'w Wanted,
    goal: &'w Goal,
    metrics: [Metric; 3],
    progress: P,
    runs: u32,
    /// The last look at each; the baseline first.
    seen: Vec<Seen>,
}

/// Clamps of the same tasks.
type Kind = (String, Vec<String>);

/// The clamps that `steps` sets, all to the same value, and that value; `None`: they set something
/// else.
fn clamp(steps: &Steps) -> Option<(Kind, u64)> {
    const KEYS: [&str; 4] = ["util_min", "util_max", "uclamp_min", "uclamp_max"];
    let change = |step: &Step| match step {
        Step::Workload(change) if KEYS.contains(&change.key.as_str()) => {
            Some((change.of.clone(), change.key.clone(), change.value.clone()))
        }
        _ => None,
    };
    let all: Vec<_> = steps.iter().map(change).collect::<Option<_>>()?;
    let (_, key, value) = all.first()?.clone();
    let same = all.iter().all(|(_, k, v)| (k, v) == (&key, &value));
    let of = all.into_iter().map(|(of, ..)| of).collect();
    same.then_some(())?;
    Some(((key, of), value.to_string().parse().ok()?))
}

fn clamped((key, of): &Kind, value: u64) -> Steps {
    of.iter().map(|of| Step::Workload(KeyOf::new(of, key, value))).collect()
}

impl<'w, P: FnMut(usize)> Search<'w, P> {
    fn new(wanted: &'w Wanted, goal: &'w Goal, progress: P) -> Search<'w, P> {
        let metrics = [goal.expected.figure.clone(), goal.least.clone(), Metric::new("work")];
        Search { wanted, goal, metrics, progress, runs: 1, seen: Vec::new() }
    }

    fn half(&self) -> u32 {
        self.wanted.phases.div_ceil(2).max(3)
    }

    /// The number of experiments from so many phases that the budget has room for.
    fn room(&self, phases: u32) -> usize {
        (self.wanted.budget.saturating_sub(self.runs) / phases) as usize
    }

    fn run(
        &mut self,
        steps: &[Steps],
        phases: u32,
        number: u32,
    ) -> Result<Vec<Measured>, RunError> {
        let one = |steps: &Steps| {
            let e = experiment(&self.wanted.request, steps, None)?;
            let e = Experiment { seed: e.seed + u64::from(number), ..e };
            Ok(e.later(phase_span(e.platform.tick(), number * self.wanted.phases)))
        };
        let all: Vec<Experiment> = steps.iter().map(one).collect::<Result<_, InputError>>()?;
        let before = self.runs as usize;
        let progress = &mut self.progress;
        let heard = |done: usize| progress(before + done);
        let found = measure(&Simulator, &all, phases, &self.metrics, heard)?;
        self.runs += all.len() as u32 * phases;
        Ok(found)
    }

    /// Looks at each of `list`, the baseline first, from start phases of its own.
    fn look(&mut self, list: Vec<Steps>, phases: u32, number: u32) -> Result<(), RunError> {
        let found = self.run(&list, phases, number)?;
        let Some(base) = found.first().cloned() else { return Ok(()) };
        for (steps, measured) in list.into_iter().zip(found) {
            let all = holds(&self.goal.expected, &measured) == phases as usize;
            let reaches = all && works(&measured, &base);
            let cost = cost(&measured);
            match self.seen.iter_mut().find(|seen| seen.steps == steps) {
                Some(seen) => (seen.cost, seen.reaches) = (cost, reaches),
                None => self.seen.push(Seen { steps, cost, reaches }),
            }
        }
        Ok(())
    }

    /// The candidates that reach the goal as far as was seen, the cheapest first.
    fn cheapest(&self) -> Vec<&Seen> {
        let mut all: Vec<&Seen> = self.seen.iter().filter(|seen| seen.reaches).collect();
        all.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        all
    }

    /// Narrows down the clamps that reach it.
    fn narrow(&mut self) -> Result<(), RunError> {
        // Of each kind the largest value that does not, and the least that does.
        let mut ends: BTreeMap<Kind, (u64, u64)> = BTreeMap::new();
        let kinds: Vec<Kind> =
            self.cheapest().iter().filter_map(|s| Some(clamp(&s.steps)?.0)).collect();
        for kind in kinds {
            if ends.contains_key(&kind) || ends.len() == KINDS {
                continue;
            }
            let of = |reaches: bool| {
                let all = self.seen.iter().filter(move |seen| seen.reaches == reaches);
                all.filter_map(|seen| clamp(&seen.steps)).filter(|(k, _)| *k == kind)
            };
            let Some(least) = of(true).map(|(_, value)| value).min() else { continue };
            let most = of(false).map(|(_, value)| value).filter(|v| *v < least).max();
            ends.insert(kind, (most.unwrap_or(0), least));
        }
        let phases = self.half();
        loop {
            let open = |(most, least): &(u64, u64)| least - most > GRAIN;
            let mut list: Vec<(Kind, u64)> = (ends.iter())
                .filter(|(_, ends)| open(ends))
                .map(|(kind, (most, least))| (kind.clone(), middle(*most, *least)))
                .collect();
            list.retain(|(kind, value)| {
                experiment(&self.wanted.request, &clamped(kind, *value), None).is_ok()
            });
            // Something is left for the end.
            let room = self.room(phases).saturating_sub((3 * self.wanted.phases / phases) as usize);
            list.truncate(room.saturating_sub(1));
            if list.is_empty() {
                return Ok(());
            }
            let steps = list.iter().map(|(kind, value)| clamped(kind, *value));
            self.look(std::iter::once(Vec::new()).chain(steps).collect(), phases, 2)?;
            for (kind, value) in list {
                let steps = clamped(&kind, value);
                let reaches = self.seen.iter().any(|seen| seen.steps == steps && seen.reaches);
                if let Some((most, least)) = ends.get_mut(&kind) {
                    *(if reaches { least } else { most }) = value;
                }
            }
        }
    }

    /// The cheapest together with what saves by itself.
    fn combine(&mut self) -> Result<(), RunError> {
        let base = self.seen.first().map_or(f64::INFINITY, |seen| seen.cost);
        let cheapest: Vec<Steps> = (self.cheapest().iter())
            .filter(|seen| !seen.steps.is_empty())
            .take(TOGETHER.0)
            .map(|seen| seen.steps.clone())
            .collect();
        let mut savers: Vec<&Seen> = self.seen.iter().filter(|seen| seen.cost < base).collect();
        savers.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let savers: Vec<Steps> =
            savers.into_iter().map(|seen| seen.steps.clone()).take(TOGETHER.1).collect();
        let of = |one: &Steps| -> Vec<Steps> {
            savers.iter().flat_map(|saver| pairs(&[one.clone(), saver.clone()])).collect()
        };
        let mut list: Vec<Steps> = cheapest.iter().flat_map(of).collect();
        list.retain(|steps| experiment(&self.wanted.request, steps, None).is_ok());
        let phases = self.half();
        let room = self.room(phases).saturating_sub((3 * self.wanted.phases / phases) as usize);
        list.truncate(room.saturating_sub(1));
        match list.is_empty() {
            true => Ok(()),
            false => self.look([vec![Vec::new()], list].concat(), phases, 3),
        }
    }

    /// Runs candidates from all start phases, the baseline first, until nothing that was seen to
    /// reach the goal may cost less than one that does; and whether the budget ended that.
    fn finals(&mut self) -> Result<(Vec<Reaching>, bool), RunError> {
        let phases = self.wanted.phases;
        let mut done: Vec<Reaching> = Vec::new();
        let mut next: Vec<Steps> = vec![Vec::new()];
        loop {
            for (steps, measured) in next.clone().into_iter().zip(self.run(&next, phases, 0)?) {
                let holds = holds(&self.goal.expected, &measured);
                done.push(Reaching { steps, measured, holds });
            }
            let base = &done[0].measured;
            let best = done.iter().filter(|one| one.reaches(base)).map(|one| cost(&one.measured));
            let best = best.fold(f64::INFINITY, f64::min);
            let new = |steps: &Steps| !done.iter().any(|one| one.steps == *steps);
            // A clamp that misses it from some phase: a little more.
            let more = done.iter().filter(|one| !one.reaches(base) && best.is_infinite());
            let more =
                more.filter_map(|one| clamp(&one.steps)).map(|(k, v)| clamped(&k, v + GRAIN));
            let seen = self.cheapest().into_iter().filter(|seen| seen.cost < best * NEAR);
            let mut list: Vec<Steps> = Vec::new();
            for steps in seen.map(|seen| seen.steps.clone()).chain(more) {
                let can = || experiment(&self.wanted.request, &steps, None).is_ok();
                if new(&steps) && !list.contains(&steps) && can() {
                    list.push(steps);
                }
            }
            list.truncate(BATCH);
            if list.is_empty() {
                return Ok((done, false));
            }
            list.truncate(self.room(phases));
            if list.is_empty() {
                return Ok((done, true));
            }
            next = list;
        }
    }
}

/// A value between them, a multiple of the grain.
fn middle(most: u64, least: u64) -> u64 {
    let middle = (most + (least - most) / 2).next_multiple_of(GRAIN);
    if middle >= least { middle - GRAIN } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;

    fn wanted(workload: &str, platform: &str) -> Wanted {
        let request = Request { seconds: Some(0.6), ..Request::new(workload, platform) };
        Wanted { request, metric: None, task: None, phases: 6, budget: 300 }
    }

    fn sought(wanted: &Wanted, expected: &str) -> Result<Sought, RunError> {
        let expected = Expectation::parse_at(expected, "--goal").expect("it is one");
        let goal = Goal { expected, least: Metric::new("energy") };
        advise_goal(wanted, &goal, |_| ())
    }

    #[test]
    fn values_between_come_closer() {
        for (most, least) in [(0, 256), (256, 512), (504, 512), (0, 8), (100, 117), (3, 12)] {
            let (mut low, mut high) = (most, least);
            while high - low > GRAIN {
                let value = middle(low, high);
                assert!(low < value && value < high, "{low} {value} {high}");
                if value < least - 3 { low = value } else { high = value }
            }
        }
    }

    /// Of clamps that reach the goal the least is found: less of it does not, and all that was tried and reaches it costs more.
    #[test]
    fn the_goal_is_reached_for_the_least_energy() {
        let wanted = wanted("periodic", "pixel6");
        let found = sought(&wanted, "response_p99 <= 17ms").expect("it runs");
        assert_eq!(found.goal.figure.name, "frame.response_p99");
        assert!(found.base.holds == 0 && found.runs <= wanted.budget && !found.cut);
        let first = &found.reaching[0];
        assert_eq!(first.holds, 6);
        let costs: Vec<f64> = found.reaching.iter().map(|one| cost(&one.measured)).collect();
        assert!(costs.is_sorted() && found.tried.1 > 1, "{costs:?}");
        let clamps = found.reaching.iter().filter_map(|one| clamp(&one.steps));
        let least = clamps.map(|(_, value)| value).min().expect("a clamp reaches it");
        assert!(least % 256 != 0, "no value of the grid is the least: {least}");
        let again = sought(&wanted, "response_p99 <= 17ms").expect("it runs");
        assert_eq!(found, again);
    }

    #[test]
    fn what_cannot_be_reached_and_what_is_wrong_is_said() {
        let wanted = wanted("periodic", "rpi4");
        let found = sought(&wanted, "frame.response_p99 <= 1us").expect("it runs");
        assert!(found.reaching.is_empty() && found.tried.1 == 0);
        let as_it_is = sought(&wanted, "frame.done > 5").expect("it runs");
        assert_eq!(
            as_it_is.base.holds, 6,
            "it holds as it is; what costs less and keeps it may be found"
        );
        assert!(cost(&as_it_is.reaching[0].measured) <= cost(&as_it_is.base.measured));
        let said = |goal| sought(&wanted, goal).unwrap_err().to_string();
        assert!(said("frame.fun = 1").starts_with("--goal: "), "{}", said("frame.fun = 1"));
        assert!(said("frame.missed = 1ms").contains("a number, not in ms"));
    }
}
