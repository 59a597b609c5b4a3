//! Explains what was observed by our arithmetic, or says that it cannot.
//!
//! ```text
//! tick     two ticks in a row without a switch: exactly one update lies between them, made
//!          while running; it must be predicted to the last bit, always
//! others   one update (a dequeue or preemption while running, the end of a wait or a sleep),
//!          or two or three of which the earlier ones fell into the moment in which nobody
//!          looked (a tick and the preemption it caused; a wakeup, its wait and a tick)
//! ```
//!
//! More than that may hide in a moment, so one in twenty of the others may stay unexplained.

use crate::observe::Seen;
use risetime_kernel::KernelRev;
use risetime_kernel::pelt::{Decay, SchedAvg};
use risetime_kernel::units::{Capacity, ClockPelt, Weight};
use risetime_kernel::util_est::{UtilEst, util_est_update};
use std::time::Duration;

/// The arithmetic under test.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) decay: Decay,
    pub(crate) step: fn(&Decay, ClockPelt, &mut SchedAvg, Weight, bool, u64, bool) -> bool,
}

/// What became of a round's observations.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// States seen, and steps from one to the next at which somebody was looking.
    pub(crate) states: usize,
    pub(crate) steps: usize,
    /// `(last_update_time >> 10) − period_contrib` modulo 1024.
    pub(crate) phase: u64,
    /// Ticks that had to be predicted, and those that were not.
    pub(crate) ticks: usize,
    pub(crate) mismatches: Vec<String>,
    /// Explained by one update: while running, waiting, asleep.
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) asleep: usize,
    /// Explained by two or three, and not at all.
    pub(crate) composed: usize,
    pub(crate) unexplained: usize,
    /// Dequeues by what became of util_est.
    pub(crate) est: Estimates,
}

/// What util_est was made of at dequeues: util before the dequeue's own update, or after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimates {
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// Changed, and both give the same.
    pub(crate) either: usize,
    /// Kept, as it had to be with both.
    pub(crate) kept: usize,
    /// Dequeues for which neither gives what the kernel has.
    pub(crate) wrong: usize,
}

impl Estimates {
    fn all(self) -> usize {
        self.before + self.after + self.either + self.kept + self.wrong
    }
}

impl Report {
    /// Adds another round's figures (the phase is that of the last one).
    pub(crate) fn add(&mut self, other: Report) {
        self.states += other.states;
        self.steps += other.steps;
        self.phase = other.phase;
        self.ticks += other.ticks;
        self.mismatches.extend(other.mismatches);
        self.running += other.running;
        self.waiting += other.waiting;
        self.asleep += other.asleep;
        self.composed += other.composed;
        self.unexplained += other.unexplained;
        self.est.before += other.est.before;
        self.est.after += other.est.after;
        self.est.either += other.est.either;
        self.est.kept += other.est.kept;
        self.est.wrong += other.est.wrong;
    }

    fn too_much_unexplained(&self) -> bool {
        self.unexplained * 20 > self.steps
    }

    /// Whether enough was seen to speak of agreement or not.
    pub(crate) fn enough(&self) -> bool {
        self.steps >= 60
            && self.running + self.unexplained >= 20
            && self.waiting + self.asleep + self.composed + self.unexplained >= 10
            && self.est.all() >= 5
    }

    /// What disagrees with the running kernel, revision `rev`; empty if nothing does.
    pub(crate) fn disagreements(&self, rev: KernelRev) -> Vec<String> {
        let mut all = Vec::new();
        if !self.mismatches.is_empty() {
            all.push(format!(
                "{} of {} ticks are not predicted",
                self.mismatches.len(),
                self.ticks
            ));
        }
        if self.too_much_unexplained() {
            all.push(format!("{} of {} steps are not explained", self.unexplained, self.steps));
        }
        let est = self.est;
        if est.wrong * 10 > est.all() {
            all.push(format!(
                "util_est of {} of {} dequeues is not predicted",
                est.wrong,
                est.all()
            ));
        }
        // 6.12 samples util before the dequeue's update, up to 6.11 and from 7.2 on after it;
        // in between it is one of them.
        let (wrong, order) = match rev {
            r if r < KernelRev::V6_12 || r >= KernelRev::V7_2 => (est.before, "before"),
            KernelRev::V6_12 => (est.after, "after"),
            _ => (est.before.min(est.after), "now before, now after"),
        };
        if wrong * 10 > est.all() {
            all.push(format!("util_est is sampled {order} the dequeue's update under {rev}"));
        }
        all
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let est = self.est;
        write!(
            f,
            "{} states, {} steps watched; {} ticks, {} mismatches (phase {}); by one update: {} running, {} waiting, {} asleep; by more: {}; unexplained: {}; util_est from util before {}, after {}, either {}, kept {}, wrong {}",
            self.states,
            self.steps,
            self.ticks,
            self.mismatches.len(),
            self.phase,
            self.running,
            self.waiting,
            self.asleep,
            self.composed,
            self.unexplained,
            est.before,
            est.after,
            est.either,
            est.kept,
            est.wrong,
        )?;
        self.mismatches.iter().take(3).try_for_each(|m| write!(f, "\n  {m}"))
    }
}

/// The state of the task during the time before an update: on a runqueue, runnable, running.
type State = (bool, u64, bool);
const RUN: State = (true, 1, true);
const WAIT: State = (true, 1, false);
const SLEEP: State = (false, 0, false);
/// Asleep, but left on the queue until it is eligible (delayed dequeue, 6.12).
const DELAYED: State = (true, 0, false);

/// One step: a state, the next one seen, and the switches between them.
struct Step<'a> {
    from: &'a Seen,
    to: &'a Seen,
    voluntary: u64,
    involuntary: u64,
    /// A tick's length lies between them.
    tick_apart: bool,
}

/// Explains a round.
pub(crate) fn explain(seen: &[Seen], model: &Model, rev: KernelRev) -> Report {
    let steps = steps(seen);
    let phase = (0..1024).max_by_key(|&phase| {
        steps.iter().filter(|s| by_one_update(model, s, phase).is_some()).count()
    });
    let phase = phase.unwrap_or(0);
    let mut report = Report { states: seen.len(), steps: steps.len(), phase, ..Report::default() };
    // Whether the task is running at the end of the step before, and the state seen there.
    let mut running: Option<*const Seen> = None;
    for step in &steps {
        let one = by_one_update(model, step, phase);
        let ran_before = running.is_some_and(|at| std::ptr::eq(at, step.from));
        let quiet = step.voluntary + step.involuntary == 0;
        running = (quiet && matches!(one, Some(RUN | WAIT))).then_some(std::ptr::from_ref(step.to));
        if ran_before && quiet && step.tick_apart {
            report.ticks += 1;
            if one != Some(RUN) {
                report.mismatches.push(mismatch(model, step, phase));
            }
        }
        match one {
            Some(RUN) => report.running += 1,
            Some(WAIT) => report.waiting += 1,
            Some(_) => report.asleep += 1,
            // Once too much is unexplained the verdict stands: no more searching.
            None if !report.too_much_unexplained() && by_more(model, step, phase) => {
                report.composed += 1
            }
            None => report.unexplained += 1,
        }
        if one == Some(RUN) && (step.voluntary, step.involuntary) == (1, 0) {
            *estimate(&mut report.est, rev, step) += 1;
        }
    }
    report
}

/// The steps at which somebody was looking, up to a moment.
fn steps(seen: &[Seen]) -> Vec<Step<'_>> {
    // On the wall, because the signals' own clock is scaled.
    let tick = tick_length();
    let step = |w: &'_ [Seen]| {
        let (from, to) = (&w[0], &w[1]);
        let voluntary = to.last.voluntary_switches - from.last.voluntary_switches;
        let involuntary = to.last.involuntary_switches - from.last.involuntary_switches;
        let watched = to.follows && to.blind < Duration::from_micros(400);
        let forward = to.first.avg.last_update_time > from.first.avg.last_update_time;
        let apart = to.at - from.at;
        let tick_apart = apart > tick * 7 / 10 && apart < tick * 5 / 4;
        (watched && forward && voluntary + involuntary <= 1).then_some((
            voluntary,
            involuntary,
            tick_apart,
        ))
    };
    seen.windows(2)
        .filter_map(|w| {
            let (voluntary, involuntary, tick_apart) = step(w)?;
            Some(Step { from: &w[0], to: &w[1], voluntary, involuntary, tick_apart })
        })
        .collect()
}

fn tick_length() -> Duration {
    let t = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// The signals after updates at these times, the task being in these states before each.
/// `period_contrib` is 0 again, as in what is read.
fn predict(model: &Model, from: &Seen, phase: u64, updates: &[(u64, State)]) -> SchedAvg {
    let mut avg = from.first.avg;
    avg.period_contrib = ((avg.last_update_time.0 >> 10).wrapping_sub(phase) % 1024) as u32;
    for &(now, (on_rq, runnable, running)) in updates {
        let now = ClockPelt(now);
        (model.step)(&model.decay, now, &mut avg, from.first.weight, on_rq, runnable, running);
    }
    avg.period_contrib = 0;
    avg
}

/// The one state that explains a step by a single update. A switch away from the CPU can only
/// follow on running.
fn by_one_update(model: &Model, step: &Step<'_>, phase: u64) -> Option<State> {
    let to = &step.to.first.avg;
    let states: &[State] = match step.voluntary + step.involuntary {
        0 => &[RUN, WAIT, SLEEP, DELAYED],
        _ => &[RUN],
    };
    let explains = |state: &&State| {
        predict(model, step.from, phase, &[(to.last_update_time.0, **state)]) == *to
    };
    states.iter().find(explains).copied()
}

/// Units of about 1 µs in which two hidden updates are looked for.
const MANY: u64 = 150;

/// Whether two or three updates explain a step, all but the first of them within the moment in
/// which nobody looked.
fn by_more(model: &Model, step: &Step<'_>, phase: u64) -> bool {
    let to = &step.to.first.avg;
    let (start, end) = (step.from.first.avg.last_update_time.0, to.last_update_time.0);
    let units = ((end - start) >> 10).min(step.to.blind.as_nanos() as u64 >> 10);
    let is = |updates: &[(u64, State)]| predict(model, step.from, phase, updates) == *to;
    let two = |x, y| (1..=units).any(|n| is(&[(end - (n << 10), x), (end, y)]));
    let three = |x, y, z| {
        let units = units.min(MANY);
        (1..units).any(|n| {
            (1..=units - n)
                .any(|m| is(&[(end - ((n + m) << 10), x), (end - (n << 10), y), (end, z)]))
        })
    };
    match (step.voluntary, step.involuntary) {
        (0, 0) => {
            two(RUN, RUN)
                || two(WAIT, RUN)
                || two(SLEEP, WAIT)
                || two(SLEEP, RUN)
                || three(SLEEP, WAIT, RUN)
        }
        // The end of a wait, and off the CPU again before anybody looked.
        (1, 0) => two(RUN, RUN) || two(WAIT, RUN),
        _ => two(RUN, RUN) || two(WAIT, RUN) || two(RUN, WAIT) || three(RUN, RUN, WAIT),
    }
}

fn mismatch(model: &Model, step: &Step<'_>, phase: u64) -> String {
    let kernel = &step.to.first.avg;
    let ours = predict(model, step.from, phase, &[(kernel.last_update_time.0, RUN)]);
    format!("from {:?}\n  kernel {kernel:?}\n  ours   {ours:?}", step.from.first.avg)
}

/// The count to which a dequeue belongs.
fn estimate<'a>(est: &'a mut Estimates, rev: KernelRev, step: &Step<'_>) -> &'a mut usize {
    let from = step.from.first.util_est;
    let to = step.to.last.util_est;
    let made_of = |s: &Seen| {
        let avg = &s.first.avg;
        let from = UtilEst(from.0 as u32);
        util_est_update(rev, from, avg.util_avg, avg.runnable_avg, Capacity(1024), true, 1).value()
    };
    match (made_of(step.from) == to, made_of(step.to) == to) {
        (true, true) if from == to => &mut est.kept,
        (true, true) => &mut est.either,
        (true, false) => &mut est.before,
        (false, true) => &mut est.after,
        (false, false) => &mut est.wrong,
    }
}
