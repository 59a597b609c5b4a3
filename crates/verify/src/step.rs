//! `verify --mode step`: each decision of the reference beside what the simulator decides in its place.
//!
//! ```text
//! reference ─> follow (sim) ─> what is decided here, and what state was found
//!     └──────> what was decided there: the next switch, migration, frequency, idle state
//! ```

use super::reference::{Start, changes_wanted, first_tick, who_creates};
use risetime_analysis::verify::step::{
    AROUND, Around, Cause, Decision, Difference, Moves, Row, State, Stepped,
};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_kernel::{KernelRev, features};
use risetime_lab::parallel;
use risetime_lab::phase_span;
use risetime_lab::record;
use risetime_model::Experiment;
use risetime_sim::follow::{Asked, Beside, Compared, Followed, follow, moves_of_sleepers};
use risetime_sim::hooks::{Answer, FreqRequest, Point};
use risetime_sim::mutant::Mutant;
use risetime_trace::tracker::Tracker;
use risetime_trace::{
    Backend, Event, Header, IdleType, Memory, RunError, SwitchOut, TraceSink, Why,
};
use std::collections::{BTreeMap, BTreeSet};

/// A woken task has preempted by then, or has not.
const AT_ONCE: Span = Span::from_us(80);
/// A task is asked to go so long after the wakeup has begun, at most.
const WAKEUP_LASTS: Span = Span::from_us(400);
/// Time from the event of a new task to the end of its preemption check.
const CHECK_LASTS: Span = Span::from_us(15);
/// A look at a domain has moved its tasks by then, the stopper's work included.
const LOOK_LASTS: Span = Span::from_us(1000);
/// A tick has rescheduled by then.
const TICK_LASTS: Span = Span::from_us(400);
/// Time before which not all of the state has been told: what tasks hold that began to run before
/// time 0.
const SETTLED: Instant = Instant(10_000_000);
/// Below are the real-time and deadline classes (include/linux/sched/prio.h).
const MAX_RT_PRIO: i32 = 100;
/// A request and the look that led to it are so near each other.
const SAME_LOOK: Span = Span::from_us(400);

/// Asks the simulator, or one that has a mechanism broken, at each decision of `reference`, a run of `experiment`.
///
/// Errors: the simulator's.
pub fn step(
    experiment: &Experiment,
    reference: &Memory,
    mutant: Option<Mutant>,
) -> Result<Stepped, RunError> {
    let experiment = super::beside(experiment, reference);
    let tick = experiment.platform.tick();
    let start = Start::at_time_0();
    let first_tick =
        tick_told(reference, tick).or_else(|| first_tick(reference, tick, &start)).unwrap_or(tick);
    let wanted = changes_wanted(reference, &experiment.platform);
    let beside = Beside { first_tick, wanted, creator: who_creates(reference) };
    let followed = follow(&experiment, reference, &beside, mutant)?;
    Ok(judge(&experiment, reference, &beside, &followed))
}

/// The time from 0 to the first tick, as `menu` was told of the next ones.
fn tick_told(reference: &Memory, tick: Span) -> Option<Span> {
    struct Told(Span, Vec<u64>);
    impl TraceSink for Told {
        fn header(&mut self, _: &Header) {}
        fn event(&mut self, at: Instant, event: &Event) {
            let Event::IdleSelect { select: s, .. } = *event else { return };
            let next = u64::try_from(s.delta_next_ns).ok().filter(|next| *next <= self.0.0);
            // Another timer may be the next event: then the tick is none of those that the sleep is measured by.
            if let (Some(next), Some(sleep), false) = (next, s.sleep_length_ns, s.tick_stopped)
                && next < sleep
            {
                self.1.push((at.0 + next) % self.0.0);
            }
        }
        fn end(&mut self, _: Instant) {}
    }
    let mut told = Told(tick, Vec::new());
    reference.replay(&mut told);
    let Told(_, mut phases) = told;
    phases.sort_unstable();
    let median = *phases.get(phases.len() / 2)?;
    Some(if median == 0 { tick } else { Span(median) })
}

/// [`step`] of several experiments, each from `n` start phases on `reference`: all together, and the release of the
/// kernel that ran. `progress` hears how many runs are done.
///
/// Errors: the reference's and the simulator's.
pub fn step_all(
    reference: &(dyn Backend + Sync),
    experiments: &[(String, Experiment)],
    n: u32,
    progress: impl FnMut(usize),
) -> Result<(Stepped, String), RunError> {
    let each = n.max(1) as usize;
    let found = parallel(experiments.len() * each, progress, |i| {
        let (name, experiment) = &experiments[i / each];
        let one = experiment.later(phase_span(experiment.platform.tick(), (i % each) as u32));
        let trace = record(reference, &one).map_err(|e| about(name, e))?;
        let release = trace.header().map_or(String::new(), |h| h.run.kernel_release.clone());
        Ok::<_, RunError>((step(&one, &trace, None)?, release))
    })?;
    let (mut all, mut release) = (Stepped::default(), String::new());
    for (one, ran) in found {
        all.add(one);
        release = ran;
    }
    Ok((all, release))
}

/// The error, with the name of the experiment that it is about.
pub(super) fn about(name: &str, e: RunError) -> RunError {
    match e {
        RunError::Input(e) => RunError::Input(e),
        RunError::Unavailable(what) => RunError::Unavailable(format!("{name}: {what}")),
        RunError::Failed(what) => RunError::Failed(format!("{name}: {what}")),
    }
}

fn judge(
    experiment: &Experiment,
    reference: &Memory,
    beside: &Beside,
    followed: &Followed,
) -> Stepped {
    let there = There::of(reference, beside.creator);
    let (mut rows, mut differences) = (BTreeMap::<Decision, Row>::new(), Vec::new());
    for asked in followed.asked.iter().filter(|a| a.at >= SETTLED) {
        let Some((kind, given)) = there.answer(asked, experiment.platform.tick()) else { continue };
        let row = rows.entry(kind).or_default();
        row.asked += 1;
        let Some(given) = given else { continue };
        row.comparable += 1;
        if asked.of < 2 {
            continue;
        }
        row.real += 1;
        row.trivial += u64::from(asked.trivial.is_some_and(|t| same(t, given)));
        if same(asked.own, given) {
            row.agree += 1;
        } else {
            differences.push(there.difference(experiment, followed, asked, kind, given));
        }
    }
    if !there.governs {
        let (row, more) = frequencies(experiment, &there, beside, followed);
        rows.insert(Decision::Frequency, row);
        differences.extend(more);
    }
    let (moves, more) = moves(experiment, &there, followed);
    differences.extend(more);
    differences.sort_by_key(|d| d.at);
    let around = differences.first().map_or(Vec::new(), |d| around(reference, d.at));
    Stepped {
        rows,
        moves,
        states: states(followed, experiment.workload.tasks.len()),
        differences,
        around,
        lost: followed.lost.wakeups + followed.lost.switches + followed.lost.picks,
    }
}

/// Lists what happened in the reference around `at`.
fn around(reference: &Memory, at: Instant) -> Vec<Around> {
    let events = reference.events();
    let from = events.partition_point(|(when, _)| *when + AROUND < at);
    let until = events.partition_point(|(when, _)| *when <= at + AROUND);
    let told = |(at, event): &(Instant, Event)| Around { at: *at, what: format!("{event:?}") };
    events[from..until].iter().map(told).collect()
}

/// A decision in words, and why a kernel of that release took it.
fn words(answer: Answer, rev: KernelRev, name: impl Fn(TaskId) -> String) -> (String, String) {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    match answer {
        Answer::Cpu(placed) => (placed.cpu.to_string(), placed.why.as_str().into()),
        Answer::Task(Some(task)) if !rev.has(features::EEVDF) => {
            (name(task), "smallest vruntime".into())
        }
        Answer::Task(Some(task)) => (name(task), "earliest eligible deadline".into()),
        Answer::Task(None) => ("idle".into(), "nobody runnable".into()),
        // What the reference counted with is not told.
        Answer::Freq(Some(f)) if f.util == Util(0) => {
            (format!("{} MHz", f.freq.0 / 1000), f.why.as_str().into())
        }
        Answer::Freq(Some(f)) => {
            (format!("{} MHz for util {}", f.freq.0 / 1000, f.util.0), f.why.as_str().into())
        }
        Answer::Freq(None) => ("none".into(), String::new()),
        Answer::Yes(answer) => (yes(answer).into(), yes(answer).into()),
        Answer::Idle { state, stop_tick } => {
            let tick = if stop_tick { "stops the tick" } else { "keeps the tick" };
            (format!("state {state}, {tick}"), tick.into())
        }
    }
}

/// Whether two answers come to the same: why does not matter.
fn same(a: Answer, b: Answer) -> bool {
    match (a, b) {
        (Answer::Cpu(a), Answer::Cpu(b)) => a.cpu == b.cpu,
        (Answer::Idle { state: a, .. }, Answer::Idle { state: b, .. }) => a == b,
        (Answer::Freq(Some(a)), Answer::Freq(Some(b))) => a.freq == b.freq,
        (a, b) => a == b,
    }
}

/// Switch of a CPU to another task: when, and who had it before.
type Left = (Instant, Option<(TaskId, SwitchOut)>);

/// Reason for which a CPU's task is to give way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// A task wakes there.
    Wakeup,
    /// A tick, or anything else.
    Other,
    /// The CPU has switched tasks, which settles what was asked before.
    Over,
}

/// A request that a CPU's task is to give way.
#[derive(Clone, Copy)]
struct Ask {
    at: Instant,
    by: By,
    /// True for a request at the next tick (`TIF_NEED_RESCHED_LAZY`): asking so once more is not
    /// told, asking at once is.
    lazy: bool,
}

/// Whether somebody asked a CPU's task to give way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Yes,
    No,
    /// The task was to give way already: no class is asked then (`test_tsk_need_resched`).
    Nobody,
    Unknown,
}

/// Course of the reference, by CPU and task.
#[derive(Default)]
struct There {
    /// Switches by CPU: when it went over to another task, and how the one before left.
    switches: BTreeMap<CpuId, Vec<Left>>,
    /// Tasks that were moved while they waited or ran, or slept with their dequeue delayed.
    moves: Vec<(Instant, TaskId, CpuId, CpuId)>,
    /// Updates by CPU: when its signals were updated, which is when its governor looks.
    updates: BTreeMap<CpuId, Vec<Instant>>,
    /// Requests by CPU: when it was asked that its task gives way, and when it went over to
    /// another. Empty where nothing tells of that.
    asked: BTreeMap<CpuId, Vec<Ask>>,
    /// Times at which new tasks were woken for the first time.
    born: BTreeSet<(TaskId, Instant)>,
    /// Begin, if that is told, and end of each task's wakeups.
    wakeups: BTreeMap<TaskId, Vec<(Option<Instant>, Instant)>>,
    /// Looks for tasks to move: when, for which CPU, and what that does.
    looks: Vec<(Instant, CpuId, IdleType)>,
    /// True if the reference tells when governors look, and what they ask for.
    governs: bool,
    /// State of machine and tasks at the end.
    state: Tracker,
}

impl There {
    /// `creator`: who creates the tasks moves itself, to the CPUs of whom it creates and back.
    fn of(reference: &Memory, creator: Option<TaskId>) -> There {
        let state = reference.header().map_or_else(Tracker::default, Tracker::of);
        let mut there = There { state, ..There::default() };
        let mut waking: BTreeMap<TaskId, Instant> = BTreeMap::new();
        let asleep = moves_of_sleepers(reference.events());
        for (i, (at, event)) in reference.events().iter().enumerate() {
            match *event {
                Event::Waking { task, .. } => drop(waking.insert(task, *at)),
                Event::TaskNew { task, cpu, .. } | Event::Wakeup { task, cpu, .. } => {
                    if matches!(event, Event::TaskNew { .. }) {
                        there.born.insert((task, *at));
                    }
                    let begun = waking.remove(&task);
                    if let Some(begun) = begun {
                        let asked = there.asked.get_mut(&cpu).into_iter().flatten().rev();
                        let part = asked.take_while(|ask| ask.at >= begun);
                        part.filter(|ask| ask.by == By::Other).for_each(|ask| ask.by = By::Wakeup);
                    }
                    there.wakeups.entry(task).or_default().push((begun, *at));
                }
                Event::Resched { cpu, lazy } => {
                    let ask = Ask { at: *at, by: By::Other, lazy };
                    there.asked.entry(cpu).or_default().push(ask);
                }
                Event::FreqLook { .. } => there.governs = true,
                Event::BalanceLook { cpu, idle, .. } => there.looks.push((*at, cpu, idle)),
                Event::Switch { cpu, prev, .. } => {
                    if let Some(asked) = there.asked.get_mut(&cpu) {
                        asked.push(Ask { at: *at, by: By::Over, lazy: false });
                    }
                    there.switches.entry(cpu).or_default().push((*at, prev));
                }
                Event::PeltCfs { cpu, .. } | Event::PeltTask { cpu, .. } => {
                    there.updates.entry(cpu).or_default().push(*at);
                }
                // Tasks of the classes above are pushed and pulled, which is no balancing.
                Event::Migrate { task, from, to, .. }
                    if creator != Some(task)
                        && there.state.task(task).is_some_and(|t| {
                            (t.doing.is_awake() || asleep.contains(&i)) && t.prio >= MAX_RT_PRIO
                        }) =>
                {
                    there.moves.push((*at, task, from, to));
                }
                _ => {}
            }
            there.state.event(*at, event);
        }
        there
    }

    /// Whether the signals of `cpu` were updated about then.
    fn looked(&self, cpu: CpuId, at: Instant) -> bool {
        let all = self.updates.get(&cpu).map_or(&[][..], Vec::as_slice);
        let next = all.partition_point(|when| when.0 + SAME_LOOK.0 < at.0);
        all.get(next).is_some_and(|when| when.0 <= at.0 + SAME_LOOK.0)
    }

    /// The first switch of `cpu` from `at` on; at that moment only one that takes the CPU from `curr`.
    fn next_switch(&self, cpu: CpuId, curr: TaskId, at: Instant) -> Option<Left> {
        let all = self.switches.get(&cpu)?;
        let from = all.partition_point(|(when, _)| *when < at);
        let leaves = |prev: Option<(TaskId, SwitchOut)>| prev.is_some_and(|(task, _)| task == curr);
        all[from..].iter().find(|(when, prev)| *when > at || leaves(*prev)).copied()
    }

    fn name(&self, task: TaskId) -> String {
        self.state.task(task).map_or_else(|| task.to_string(), |t| t.comm.into())
    }

    /// Describes a decision that differs: whose, what, and why.
    fn difference(
        &self,
        experiment: &Experiment,
        followed: &Followed,
        asked: &Asked,
        decision: Decision,
        given: Answer,
    ) -> Difference {
        let name = |task| self.name(task);
        let rev = experiment.policy.kernel;
        let (about, cpu, task) = match asked.point {
            Point::Wakeup { task, waker } => (name(task), waker.cpu, Some(task)),
            Point::Fork { task } => (name(task), CpuId(0), Some(task)),
            Point::WakeupPreempt { cpu, curr, woken } => {
                (format!("{} woken beside {} on {cpu}", name(woken), name(curr)), cpu, Some(woken))
            }
            Point::TickPreempt { cpu, curr } => {
                (format!("{} on {cpu}", name(curr)), cpu, Some(curr))
            }
            Point::Pick { cpu } | Point::Idle { cpu } | Point::Frequency { cpu } => {
                (cpu.to_string(), cpu, None)
            }
            point => (format!("{point:?}"), CpuId(0), None),
        };
        let (own, reason) = words(asked.own, rev, name);
        let tick = experiment.platform.tick();
        let time = followed.asked.iter().any(|other| {
            let near =
                other.at != asked.at && other.at.0.abs_diff(asked.at.0) <= tick.0 + SAME_LOOK.0;
            near && other.point == asked.point && same(other.own, given)
        });
        let off = followed.is_far_off(asked.at, tick, &[cpu], task);
        let cause = match (time && decision == Decision::TickPreempt, off) {
            (true, _) => Cause::Time,
            (false, true) => Cause::State,
            _ => Cause::Reason,
        };
        let theirs = match asked.theirs {
            "" => words(given, rev, name).0,
            theirs => theirs.into(),
        };
        Difference {
            experiment: experiment.workload.name.clone(),
            at: asked.at,
            decision,
            about,
            own,
            given: words(given, rev, name).0,
            cause,
            reason,
            theirs,
        }
    }

    /// Whether `cpu` was asked to reschedule in that time by that.
    fn resched(&self, cpu: CpuId, from: Instant, to: Instant, by: By) -> Heard {
        let Some(all) = self.asked.get(&cpu) else { return Heard::Unknown };
        let first = all.partition_point(|ask| ask.at < from);
        let before = first.checked_sub(1).map(|last| all[last]).filter(|ask| ask.by != By::Over);
        let within = all[first..].iter().take_while(|ask| ask.at <= to);
        let mut lazily = false;
        for ask in before.iter().chain(within.filter(|ask| ask.by != By::Over)) {
            if ask.at >= from && ask.by == by {
                return Heard::Yes;
            }
            if !ask.lazy {
                return Heard::Nobody;
            }
            lazily = true;
        }
        if lazily { Heard::Unknown } else { Heard::No }
    }

    /// The kind of a decision, and the reference's answer; `None`: it does not tell.
    fn answer(&self, asked: &Asked, tick: Span) -> Option<(Decision, Option<Answer>)> {
        Some(match asked.point {
            Point::Wakeup { .. } => (Decision::Wakeup, asked.given),
            Point::Fork { .. } => (Decision::Fork, asked.given),
            Point::Pick { .. } => (Decision::Pick, asked.given),
            Point::Idle { .. } => (Decision::Idle, asked.given),
            Point::Frequency { .. } if self.governs => (Decision::Frequency, asked.given),
            Point::WakeupPreempt { cpu, curr, woken } => {
                let given = match self.asked.is_empty() {
                    true => self.preempted(cpu, curr, asked.at, tick),
                    false => match self.asks_to_go(cpu, woken, asked.at) {
                        Heard::Nobody => return None,
                        Heard::Yes => Some(Answer::Yes(true)),
                        Heard::No => Some(Answer::Yes(false)),
                        Heard::Unknown => None,
                    },
                };
                (Decision::WakeupPreempt, given)
            }
            Point::TickPreempt { cpu, curr } => {
                let given = match self.asked.is_empty() {
                    true => self.ended_by_tick(cpu, curr, asked.at),
                    false => match self.resched(cpu, asked.at, asked.at + AT_ONCE, By::Other) {
                        Heard::Yes => Some(Answer::Yes(true)),
                        Heard::No => Some(Answer::Yes(false)),
                        // The turn may have been over as well.
                        Heard::Nobody | Heard::Unknown => None,
                    },
                };
                (Decision::TickPreempt, given)
            }
            _ => return None,
        })
    }

    /// Whether that `woken` came to `cpu` at `at` asked whoever ran there to go.
    fn asks_to_go(&self, cpu: CpuId, woken: TaskId, at: Instant) -> Heard {
        let all = self.wakeups.get(&woken).map_or(&[][..], Vec::as_slice);
        let wakeup = all.get(all.partition_point(|(_, end)| *end < at));
        let from = |begun: Option<Instant>| begun.map_or(at, |begun| begun.min(at));
        match wakeup.map(|(begun, end)| (*begun, *end)) {
            // A new task is told of before it may preempt.
            Some((_, end)) if self.born.contains(&(woken, end)) => {
                self.resched(cpu, at, end + CHECK_LASTS, By::Other)
            }
            Some((begun, end)) if end.since(from(begun)) < WAKEUP_LASTS => {
                self.resched(cpu, from(begun), end, By::Wakeup)
            }
            // The task was awake, and has been moved.
            _ => self.resched(cpu, at, at + AT_ONCE, By::Other),
        }
    }

    /// Whether a wakeup at `at` took the CPU from `curr`.
    fn preempted(&self, cpu: CpuId, curr: TaskId, at: Instant, tick: Span) -> Option<Answer> {
        match self.next_switch(cpu, curr, at) {
            Some((when, Some((task, out)))) if task == curr => match out {
                SwitchOut::Preempted if when.since(at) < AT_ONCE => Some(Answer::Yes(true)),
                // Later: a lazy preemption, or a tick of its own.
                _ if when.since(at) < tick => None,
                _ => Some(Answer::Yes(false)),
            },
            Some((when, _)) if when.since(at) < tick => None,
            _ => Some(Answer::Yes(false)),
        }
    }

    /// Whether the tick at `at` ended the turn of `curr`.
    fn ended_by_tick(&self, cpu: CpuId, curr: TaskId, at: Instant) -> Option<Answer> {
        match self.next_switch(cpu, curr, at) {
            Some((when, Some((task, out)))) if task == curr && when.since(at) < TICK_LASTS => {
                (out == SwitchOut::Preempted).then_some(Answer::Yes(true))
            }
            Some((when, _)) if when.since(at) < TICK_LASTS => None,
            _ => Some(Answer::Yes(false)),
        }
    }
}

/// Requests that change the OPP on either side: one of theirs is found if it is wanted here at the same look.
fn frequencies(
    experiment: &Experiment,
    there: &There,
    beside: &Beside,
    followed: &Followed,
) -> (Row, Vec<Difference>) {
    let domain = |cpu: CpuId| experiment.platform.domain_of(cpu).unwrap_or(0);
    let (mut row, mut differences) = (Row::default(), Vec::new());
    // By domain: what is wanted here at which look.
    let mut own: BTreeMap<usize, Vec<(Instant, KHz, &Asked)>> = BTreeMap::new();
    for asked in &followed.asked {
        if let (Point::Frequency { cpu }, Answer::Freq(Some(request))) = (asked.point, asked.own) {
            row.asked += 1;
            own.entry(domain(cpu)).or_default().push((asked.at, request.freq, asked));
        }
    }
    let request = |freq: KHz| {
        let (util, why) = (Util(0), Why::Given);
        Answer::Freq(Some(FreqRequest { util, freq, why }))
    };
    let differs = |asked: &Asked, freq: KHz| {
        let kind = Decision::Frequency;
        let mut d = there.difference(experiment, followed, asked, kind, request(freq));
        let own = match asked.own {
            Answer::Freq(Some(own)) => own.freq,
            _ => freq,
        };
        d.theirs = if freq > own { "a higher one" } else { "a lower one" }.into();
        d
    };
    for (d, looks) in &own {
        let theirs: Vec<(Instant, KHz)> = beside
            .wanted
            .iter()
            .filter(|(_, cpu, _)| domain(*cpu) == *d)
            .map(|(at, _, freq)| (*at, *freq))
            .collect();
        for (i, (at, freq)) in theirs.iter().enumerate().skip(1) {
            let near = |(look, ..): &&(Instant, KHz, &Asked)| look.0.abs_diff(at.0) <= SAME_LOOK.0;
            let before = i.checked_sub(1).map(|i| theirs[i].1);
            if *at < SETTLED || before == Some(*freq) {
                continue;
            }
            (row.comparable, row.real) = (row.comparable + 1, row.real + 1);
            let near = looks.iter().filter(near);
            match near.clone().any(|(_, own, _)| own == freq) {
                true => row.agree += 1,
                // Of the nearest look.
                false => differences.extend(
                    looks
                        .iter()
                        .min_by_key(|(look, ..)| look.0.abs_diff(at.0))
                        .map(|(_, _, asked)| differs(asked, *freq)),
                ),
            }
        }
        // What is wanted here and not there, once until there is another request.
        let mut counted = None;
        for (at, freq, asked) in looks {
            let Point::Frequency { cpu } = asked.point else { continue };
            let last = theirs.partition_point(|(when, _)| when.0 <= at.0 + SAME_LOOK.0);
            let Some((_, current)) = last.checked_sub(1).map(|i| theirs[i]) else { continue };
            let near = theirs[..last].iter().rev().take(2);
            let mut near = near.filter(|(when, _)| when.0.abs_diff(at.0) <= SAME_LOOK.0);
            if there.looked(cpu, *at)
                && *at >= SETTLED
                && *freq != current
                && near.next().is_none()
                && counted != Some((last, *freq))
            {
                counted = Some((last, *freq));
                (row.comparable, row.real) = (row.comparable + 1, row.real + 1);
                differences.push(differs(asked, current));
            }
        }
    }
    (row, differences)
}

/// Moves by balancing: theirs that are wanted here, and ours that were made there.
fn moves(experiment: &Experiment, there: &There, followed: &Followed) -> (Moves, Vec<Difference>) {
    // Where looks are told, ours are of the same look; else of about the same time.
    let told = !there.looks.is_empty();
    let window = if told { LOOK_LASTS } else { Span(2 * experiment.platform.tick().0) };
    let look = |at: Instant, to: CpuId| {
        let last = there.looks.partition_point(|(when, ..)| *when <= at);
        let near = there.looks[..last].iter().rev();
        let mut near = near.take_while(|(when, ..)| at.since(*when) <= window);
        near.find(|(_, cpu, _)| *cpu == to).map(|(.., idle)| *idle)
    };
    let mut own: Vec<(Instant, TaskId, CpuId, CpuId)> = Vec::new();
    for asked in &followed.asked {
        if let Point::Pull { task, from, to } = asked.point {
            // A wish that is not granted comes back at the next look, perhaps another CPU's: there the task was gone. One
            // that was granted may come back as another.
            let mut before = own.iter().rev().take_while(|(at, ..)| asked.at.since(*at) <= window);
            let granted = |since: Instant| {
                let mut of_task = there.moves.iter().filter(|(_, t, ..)| *t == task);
                of_task.any(|(at, ..)| (since..asked.at).contains(at))
            };
            if !before.any(|(at, t, ..)| *t == task && !granted(*at)) {
                own.push((asked.at, task, from, to));
            }
        }
    }
    type Move = (Instant, TaskId, CpuId, CpuId);
    let among = |all: &[Move], (at, task, _, to): Move| {
        let near = |when: Instant| when.0.abs_diff(at.0) <= window.0;
        all.iter().any(|(when, t, _, c)| near(*when) && (*t, *c) == (task, to))
    };
    let looked = |m: &&Move| !told || look(m.0, m.3).is_some();
    let given: Vec<Move> = there.moves.iter().filter(looked).copied().collect();
    let (recalled, missed): (Vec<Move>, Vec<Move>) = given.iter().partition(|m| among(&own, **m));
    let (precise, wrong): (Vec<Move>, Vec<Move>) =
        own.iter().partition(|m| among(&there.moves, **m));
    let differs = |(at, task, from, to): Move, own: &str, given: &str| Difference {
        experiment: experiment.workload.name.clone(),
        at,
        decision: Decision::Move,
        about: format!("{} from {from} to {to}", there.name(task)),
        own: own.into(),
        given: given.into(),
        cause: match followed.is_far_off(at, experiment.platform.tick(), &[from, to], Some(task)) {
            true => Cause::State,
            false => Cause::Reason,
        },
        reason: format!("{own}, {}", look(at, to).map_or("look", words_of_idle)),
        theirs: given.into(),
    };
    let missed_ones = missed.iter().map(|m| differs(*m, "stays", "moves"));
    let wrong_ones = wrong.iter().map(|m| differs(*m, "moves", "stays"));
    let differences = missed_ones.chain(wrong_ones).collect();
    let n = |of: &[Move]| of.len() as u64;
    let moves =
        Moves { given: n(&given), recalled: n(&recalled), own: n(&own), precise: n(&precise) };
    (moves, differences)
}

/// Words for what a CPU does that looks for tasks.
fn words_of_idle(idle: IdleType) -> &'static str {
    match idle {
        IdleType::NotIdle => "for a busy CPU",
        IdleType::Idle => "for an idle CPU",
        IdleType::NewlyIdle => "for a CPU that becomes idle",
    }
}

/// The values of the state, by name: from when all of it has been told, as decisions. What a thread of the system had
/// before it was first told of is unknown; `tasks`: so many are the workload's.
fn states(followed: &Followed, tasks: usize) -> Vec<State> {
    let mut found: BTreeMap<&'static str, (Vec<u64>, u64)> = BTreeMap::new();
    let mut met: BTreeSet<(&'static str, TaskId)> = BTreeSet::new();
    let of_system = |c: &Compared| c.task.filter(|task| task.index() >= tasks);
    let compared = followed.compared.iter();
    let known = compared.filter(|c| of_system(c).is_none_or(|task| !met.insert((c.what, task))));
    for c in known.filter(|c| c.at >= SETTLED) {
        let (off, near) = found.entry(c.what).or_default();
        off.push(c.own.abs_diff(c.given));
        *near += u64::from(!c.is_far_off());
    }
    let state = |(what, (mut off, near)): (&'static str, (Vec<u64>, u64))| {
        off.sort_unstable();
        let at = |percent: usize| off[(off.len() - 1) * percent / 100];
        let equal = off.partition_point(|o| *o == 0) as u64;
        State { what, compared: off.len() as u64, equal, near, p90: at(90), most: at(100) }
    };
    found.into_iter().map(state).collect()
}
