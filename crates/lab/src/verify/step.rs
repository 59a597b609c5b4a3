//! `verify --mode step`: each decision of the reference beside what the simulator decides in its place.
//!
//! ```text
//! reference ─> follow (sim) ─> what is decided here, and what state was found
//!     └──────> what was decided there: the next switch, migration, frequency, idle state
//! ```

use super::reference::{Start, changes_wanted, first_tick};
use risetime_analysis::verify::step::{Decision, Moves, Row, State, Stepped};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_model::Experiment;
use risetime_sim::follow::{Asked, Beside, Followed, follow};
use risetime_sim::hooks::{Answer, Point};
use risetime_sim::mutant::Mutant;
use risetime_trace::{Event, Memory, RunError, SwitchOut};
use std::collections::BTreeMap;

/// A woken task has preempted by then, or has not.
const AT_ONCE: Span = Span::from_us(80);
/// A tick has rescheduled by then.
const TICK_LASTS: Span = Span::from_us(400);
/// Before that not all of the state has been told: what tasks hold that began to run before time 0.
const SETTLED: Instant = Instant(10_000_000);
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
    let first_tick = first_tick(reference, tick, &start).unwrap_or(tick);
    let wanted = changes_wanted(reference, &experiment.platform);
    let beside = Beside { first_tick, wanted };
    let followed = follow(&experiment, reference, &beside, mutant)?;
    Ok(judge(&experiment, reference, &beside, &followed))
}

fn judge(
    experiment: &Experiment,
    reference: &Memory,
    beside: &Beside,
    followed: &Followed,
) -> Stepped {
    let there = There::of(reference);
    let mut rows: BTreeMap<Decision, Row> = BTreeMap::new();
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
        row.agree += u64::from(same(asked.own, given));
        row.trivial += u64::from(asked.trivial.is_some_and(|t| same(t, given)));
    }
    rows.insert(Decision::Frequency, frequencies(experiment, &there, beside, followed));
    Stepped {
        rows,
        moves: moves(experiment, &there, followed),
        states: states(followed),
        lost: followed.lost.wakeups + followed.lost.switches + followed.lost.picks,
    }
}

/// Whether two answers come to the same: why does not matter.
fn same(a: Answer, b: Answer) -> bool {
    match (a, b) {
        (Answer::Cpu(a), Answer::Cpu(b)) => a.cpu == b.cpu,
        (Answer::Idle { state: a, .. }, Answer::Idle { state: b, .. }) => a == b,
        (a, b) => a == b,
    }
}

/// When a CPU went over to another task, and who had it before.
type Left = (Instant, Option<(TaskId, SwitchOut)>);

/// What the reference did, by CPU and task.
struct There {
    /// By CPU: when it went over to another task, and how the one before left.
    switches: BTreeMap<CpuId, Vec<Left>>,
    /// Tasks that were moved while they waited or ran.
    moves: Vec<(Instant, TaskId, CpuId, CpuId)>,
    /// By CPU: when its signals were updated, which is when its governor looks.
    updates: BTreeMap<CpuId, Vec<Instant>>,
}

impl There {
    fn of(reference: &Memory) -> There {
        let mut there =
            There { switches: BTreeMap::new(), moves: Vec::new(), updates: BTreeMap::new() };
        let mut awake: BTreeMap<TaskId, bool> = BTreeMap::new();
        for (at, event) in reference.events() {
            match *event {
                Event::TaskNew { task, .. } | Event::Wakeup { task, .. } => {
                    awake.insert(task, true);
                }
                Event::Switch { cpu, prev, .. } => {
                    there.switches.entry(cpu).or_default().push((*at, prev));
                    if let Some((task, out)) = prev {
                        awake.insert(task, out == SwitchOut::Preempted);
                    }
                }
                Event::PeltCfs { cpu, .. } | Event::PeltTask { cpu, .. } => {
                    there.updates.entry(cpu).or_default().push(*at);
                }
                Event::Migrate { task, from, to, .. }
                    if awake.get(&task).copied().unwrap_or(false) =>
                {
                    there.moves.push((*at, task, from, to));
                }
                _ => {}
            }
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

    /// Of what kind a decision is, and the reference's answer; `None`: it does not tell.
    fn answer(&self, asked: &Asked, tick: Span) -> Option<(Decision, Option<Answer>)> {
        let user = |given: Option<Answer>| given.filter(|_| asked.user);
        Some(match asked.point {
            Point::Wakeup { .. } => (Decision::Wakeup, user(asked.given)),
            Point::Fork { .. } => (Decision::Fork, user(asked.given)),
            Point::Pick { .. } => (Decision::Pick, asked.given),
            Point::Idle { .. } => (Decision::Idle, asked.given),
            Point::WakeupPreempt { cpu, curr, .. } => {
                (Decision::WakeupPreempt, self.preempted(cpu, curr, asked.at, tick))
            }
            Point::TickPreempt { cpu, curr } => {
                (Decision::TickPreempt, self.ended_by_tick(cpu, curr, asked.at))
            }
            _ => return None,
        })
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
) -> Row {
    let domain = |cpu: CpuId| experiment.platform.domain_of(cpu).unwrap_or(0);
    let mut row = Row::default();
    // By domain: what is wanted here at which look.
    let mut own: BTreeMap<usize, Vec<(Instant, KHz, bool)>> = BTreeMap::new();
    for asked in &followed.asked {
        if let (Point::Frequency { cpu }, Answer::Freq(Some(request))) = (asked.point, asked.own) {
            row.asked += 1;
            own.entry(domain(cpu)).or_default().push((
                asked.at,
                request.freq,
                there.looked(cpu, asked.at),
            ));
        }
    }
    for (d, looks) in &own {
        let theirs: Vec<(Instant, KHz)> = beside
            .wanted
            .iter()
            .filter(|(_, cpu, _)| domain(*cpu) == *d)
            .map(|(at, _, freq)| (*at, *freq))
            .collect();
        for (i, (at, freq)) in theirs.iter().enumerate().skip(1) {
            let near = |(look, ..): &&(Instant, KHz, bool)| look.0.abs_diff(at.0) <= SAME_LOOK.0;
            let before = i.checked_sub(1).map(|i| theirs[i].1);
            if *at < SETTLED || before == Some(*freq) {
                continue;
            }
            (row.comparable, row.real) = (row.comparable + 1, row.real + 1);
            row.agree += u64::from(looks.iter().filter(near).any(|(_, own, _)| own == freq));
        }
        // What is wanted here and not there, once until there is another request.
        let mut counted = None;
        for (at, freq, looked) in looks {
            let last = theirs.partition_point(|(when, _)| when.0 <= at.0 + SAME_LOOK.0);
            let Some((_, current)) = last.checked_sub(1).map(|i| theirs[i]) else { continue };
            let near = theirs[..last].iter().rev().take(2);
            let mut near = near.filter(|(when, _)| when.0.abs_diff(at.0) <= SAME_LOOK.0);
            if *looked
                && *at >= SETTLED
                && *freq != current
                && near.next().is_none()
                && counted != Some((last, *freq))
            {
                counted = Some((last, *freq));
                (row.comparable, row.real) = (row.comparable + 1, row.real + 1);
            }
        }
    }
    row
}

/// Moves by balancing: theirs that are wanted here, and ours that were made there.
fn moves(experiment: &Experiment, there: &There, followed: &Followed) -> Moves {
    let window = Span(2 * experiment.platform.tick().0);
    let mut own: Vec<(Instant, TaskId, CpuId)> = Vec::new();
    for asked in &followed.asked {
        if let Point::Pull { task, to, .. } = asked.point {
            // A wish that is not granted comes back at the next look.
            let mut before = own.iter().rev().take_while(|(at, ..)| asked.at.since(*at) <= window);
            if !before.any(|(_, t, c)| (*t, *c) == (task, to)) {
                own.push((asked.at, task, to));
            }
        }
    }
    let near = |a: Instant, b: Instant| a.0.abs_diff(b.0) <= window.0;
    let found = |at: Instant, task: TaskId, to: CpuId| {
        own.iter().any(|(when, t, c)| near(*when, at) && (*t, *c) == (task, to))
    };
    let made = |at: Instant, task: TaskId, to: CpuId| {
        there.moves.iter().any(|(when, t, _, c)| near(*when, at) && (*t, *c) == (task, to))
    };
    Moves {
        given: there.moves.len() as u64,
        recalled: there.moves.iter().filter(|(at, t, _, c)| found(*at, *t, *c)).count() as u64,
        own: own.len() as u64,
        precise: own.iter().filter(|(at, t, c)| made(*at, *t, *c)).count() as u64,
    }
}

/// The values of the state, by name.
fn states(followed: &Followed) -> Vec<State> {
    let mut found: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
    for c in &followed.compared {
        found.entry(c.what).or_default().push(c.own.abs_diff(c.given));
    }
    let state = |(what, mut off): (&'static str, Vec<u64>)| {
        off.sort_unstable();
        let at = |percent: usize| off[(off.len() - 1) * percent / 100];
        let equal = off.partition_point(|o| *o == 0) as u64;
        State { what, compared: off.len() as u64, equal, p90: at(90), most: at(100) }
    };
    found.into_iter().map(state).collect()
}
