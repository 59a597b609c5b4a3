//! The reference's events in the order in which they are followed, and what is known of a later one before.

use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_trace::{Event, Header, Memory, MenuSelect, SwitchOut, TraceSink};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A wakeup, or a reschedule, takes less than that.
const LASTS: Span = Span::from_us(60);
/// util_est is sampled so long after the first of a sleep is told.
const SAMPLED_WITHIN: Span = Span::from_us(30);
/// A task that is moved by balancing, where that is told from its beginning. (Else its CPU may have balanced for a
/// reason that comes in between.)
const MOVE_LASTS: Span = Span::from_us(25);
/// Looks of one reschedule follow each other so soon.
const SOON: Span = Span::from_us(300);
/// A reschedule that is told from its beginning.
const RESCHEDULING_LASTS: Span = Span::from_us(1000);
/// A reschedule that looks for tasks first.
const LOOKING_LASTS: Span = Span::from_us(400);
/// A wakeup that is told from its beginning; the way out of the deepest idle states is part of it.
const WAKING_LASTS: Span = Span::from_ms(5);
/// Number of looks among which that is sought at which a deadline task's bandwidth has changed.
const LOOKS: usize = 4;
/// Part of it in which what is told of its CPU may belong to it.
const QUEUEING_LASTS: Span = Span::from_us(400);

/// Below are the real-time and deadline classes (include/linux/sched/prio.h).
const MAX_RT_PRIO: i32 = 100;

/// Texts of the reference that only a reader of its texts sees: names, and what `menu` chose from.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) names: BTreeMap<TaskId, String>,
    pub(super) selects: Vec<(Instant, CpuId, MenuSelect)>,
}

impl TraceSink for Texts {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, .. } => drop(self.names.insert(task, comm.to_string())),
            Event::IdleSelect { cpu, select } => self.selects.push((at, cpu, select)),
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// A thing that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The running task of this switch leaves its queue; it is still on its CPU.
    Leaves(usize),
    /// The running task of this switch would go on, but its group has used up its quota.
    Throttled(usize),
    /// This wakeup begins, from that CPU: where should its task go?
    Asks(usize, CpuId),
    /// This wakeup is under way, from that CPU, and whose task goes where has been decided.
    Pends(usize, CpuId),
    /// The event's task is queued.
    Wakes(usize),
    /// Anything else, by its index.
    Event(usize),
}

/// The events in an order in which what leads to a change of signals comes before it, each with the time at which
/// it comes: a task is queued, or leaves, before its runqueue's signals tell of that; the trace's event comes after.
///
/// ```text
/// trace     Waking   CfsUtilEst  PELT of the CPU   Entity   Wakeup      CfsUtilEst  PELT   BalanceLook   Switch
/// followed  asked    queued      compared          placed               leaves      …      looks         picks
/// ```
pub(super) fn causes_first(
    events: &[(Instant, Event)],
    (asks, quotas): (bool, bool),
) -> Vec<(Instant, What)> {
    let looks = events.iter().any(|(_, e)| matches!(e, Event::BalanceLook { .. }));
    let mut o = Order {
        events,
        asks,
        quotas,
        move_lasts: if looks { MOVE_LASTS } else { Span(1) },
        dequeues: dequeues(events),
        of_ticks: of_ticks(events),
        rt: BTreeSet::new(),
        above: BTreeSet::new(),
        left_out: BTreeSet::new(),
        order: Vec::with_capacity(events.len()),
    };
    (0..events.len()).for_each(|i| o.add(i));
    let Order { left_out, mut order, .. } = o;
    order.retain(|(_, _, what)| !matches!(what, What::Event(i) if left_out.contains(i)));
    order.sort();
    order.into_iter().map(|(place, _, what)| (events[place].0, what)).collect()
}

/// Indices of moves of tasks that sleep, by balancing: their dequeue is delayed there. Empty where nobody tells when a
/// wakeup begins, whose moves are those of sleeping tasks, too.
pub fn moves_of_sleepers(events: &[(Instant, Event)]) -> BTreeSet<usize> {
    let (mut asleep, mut waking, mut found) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    if !events.iter().any(|(_, e)| matches!(e, Event::Waking { .. })) {
        return found;
    }
    for (i, (_, event)) in events.iter().enumerate() {
        match *event {
            Event::Switch { prev: Some((task, out)), .. } => {
                let _ = match out {
                    SwitchOut::Preempted | SwitchOut::Exited => asleep.remove(&task),
                    _ => asleep.insert(task),
                };
            }
            Event::Waking { task, .. } => drop(waking.insert(task)),
            Event::Wakeup { task, .. } | Event::TaskNew { task, .. } => {
                waking.remove(&task);
                asleep.remove(&task);
            }
            Event::Migrate { task, .. } if asleep.contains(&task) && !waking.contains(&task) => {
                found.insert(i);
            }
            _ => {}
        }
    }
    found
}

/// The order as it is being made.
struct Order<'e> {
    events: &'e [(Instant, Event)],
    /// Wakeups are told from before a CPU is chosen; else they are told from behind that, and some of them alone.
    asks: bool,
    /// Groups of the workload have quotas.
    quotas: bool,
    /// Time before a move in which what belongs to it comes.
    move_lasts: Span,
    dequeues: BTreeSet<(CpuId, usize)>,
    of_ticks: BTreeSet<usize>,
    /// Tasks of the real-time class: they have no signals of their own, so that one comes or goes shows first in its
    /// governor's look. So does that a deadline task comes, whose bandwidth counts from then on.
    rt: BTreeSet<TaskId>,
    /// Real-time tasks and the tasks of the other classes above.
    above: BTreeSet<TaskId>,
    /// Places that are told with a switch, which are asked for there, and those of a wakeup or a switch that is under
    /// way, which are out of date, since it is done here when it begins.
    left_out: BTreeSet<usize>,
    /// Steps of the timeline: before which event, whether behind what else comes there, what.
    order: Vec<(usize, bool, What)>,
}

impl Order<'_> {
    fn add(&mut self, i: usize) {
        match self.events[i].1 {
            Event::Prio { task, prio } => {
                let is = |yes: bool, class: &mut BTreeSet<TaskId>| match yes {
                    true => class.insert(task),
                    false => class.remove(&task),
                };
                is((0..MAX_RT_PRIO).contains(&prio), &mut self.rt);
                is(prio < MAX_RT_PRIO, &mut self.above);
                self.order.push((i, true, What::Event(i)));
            }
            Event::Wakeup { task, cpu, .. } => self.wakes(i, task, cpu),
            Event::TaskNew { task, cpu, .. } => {
                let first = self.joins(i, task, cpu);
                self.order.push((first, false, What::Event(i)));
            }
            Event::Migrate { task, from, .. } => {
                let looks = self.rt.contains(&task);
                let part = Part { cpu: from, tasks: [Some(task), None], looks, comes: false };
                let first = self.first_part(i, &part, self.move_lasts);
                self.order.push((first, false, What::Event(i)));
            }
            Event::GroupThrottled { cpu, on: true, .. } => {
                // By a put or a pick, which comes before its switch.
                let part = Part { cpu, tasks: [None, None], looks: false, comes: false };
                let first = self.first_part(i, &part, LASTS);
                self.order.push((first, false, What::Event(i)));
            }
            Event::Switch { cpu, prev, next } => self.switches(i, cpu, prev, next),
            _ => self.order.push((i, true, What::Event(i))),
        }
    }

    /// The index of the event at which the new task of the event `i` begins to join `cpu`, whose
    /// signals are brought up to date first; the governor looks before it is told that they are
    /// with the task's own.
    ///
    /// ```text
    /// CfsUtilEst   PeltCfs           FreqLook    PeltCfs           TaskNew
    ///              as of t, before   at u        as of t: now u
    /// ```
    fn joins(&self, i: usize, task: TaskId, cpu: CpuId) -> usize {
        let part = Part { cpu, tasks: [Some(task), None], looks: false, comes: false };
        let near = self.first_part(i, &part, LASTS);
        let (mut first, mut joined) = (near, None);
        for j in self.back(i, cpu, i) {
            first = match (self.events[j].1, joined) {
                (Event::PeltCfs { cpu: c, util_avg, last_update_time, .. }, None) if c == cpu => {
                    joined = Some((last_update_time, util_avg));
                    first
                }
                (Event::PeltCfs { cpu: c, last_update_time, .. }, Some((at, _))) if c == cpu => {
                    if at != last_update_time {
                        break;
                    }
                    first.min(j)
                }
                (Event::FreqLook { cpu: c, look }, Some((_, util)))
                    if c == cpu && look.util_avg == util && util > Util(0) =>
                {
                    first.min(j)
                }
                (Event::CfsUtilEst { cpu: c, .. }, Some(_)) if c == cpu => {
                    return if first < near { j } else { near };
                }
                (Event::TaskNew { cpu: c, .. } | Event::Wakeup { cpu: c, .. }, _) if c == cpu => {
                    break;
                }
                _ => first,
            };
        }
        first
    }

    fn wakes(&mut self, i: usize, task: TaskId, cpu: CpuId) {
        let begins = begins(self.events, i, task, cpu);
        let since = |begins: usize| self.events[i].0.since(self.events[begins].0);
        let lasts = begins.map_or(LASTS, |(begins, _)| since(begins).min(QUEUEING_LASTS));
        let (tasks, comes) = ([Some(task), None], self.rt.contains(&task));
        let part = Part { cpu, tasks, looks: comes, comes };
        let lasts = if part.looks { lasts } else { lasts.max(LASTS) };
        let first = self.first_part(i, &part, lasts);
        let counts = |look: u64, before: u64| look > before;
        let bandwidth = self.bandwidth(i, cpu, task, counts).filter(|j| since(*j) <= lasts);
        let first = bandwidth.map_or(first, |j| j.min(first));
        self.left_out.extend(under_way(self.events, first..i, cpu, part.tasks));
        self.order.push((first, false, What::Wakes(i)));
        if let Some((begins, by)) = begins {
            let what = if self.asks { What::Asks(i, by) } else { What::Pends(i, by) };
            self.order.push((begins.min(first), false, what));
        }
    }

    fn switches(
        &mut self,
        i: usize,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
    ) {
        let tasks = [prev.map(|(task, _)| task), next];
        let gone = prev.filter(|(_, out)| *out != SwitchOut::Preempted).map(|(task, _)| task);
        let last = self.back(i, cpu, i).find(|j| pulls(&self.events[*j].1, cpu));
        let first = match gone {
            Some(gone) => self.leaves(i, cpu, gone, last),
            None => None,
        };
        let told = told_with(self.events, i).next().unwrap_or(i);
        let first = first.unwrap_or_else(|| {
            let looks = gone.is_some_and(|gone| self.above.contains(&gone));
            let lasts = self.reschedule_lasts(i, cpu, prev, last);
            // To tell of places takes its time, where groups have some, too.
            self.first_part(i, &Part { cpu, tasks, looks, comes: false }, lasts).min(told)
        });
        let last = last.filter(|last| *last >= first);
        if let Some((task, SwitchOut::Preempted)) = prev
            && self.quotas
            && !self.above.contains(&task)
        {
            let throttled = self.throttled(i, cpu);
            self.order.extend(throttled.map(|at| (at.min(first), false, What::Throttled(i))));
        }
        self.left_out.extend(under_way(self.events, first..i, cpu, tasks));
        self.left_out.extend(told_with(self.events, i));
        if gone.is_some() && last.is_some() {
            self.order.push((first, false, What::Leaves(i)));
        }
        self.order.push((last.map_or(first, |last| last + 1), false, What::Event(i)));
    }

    /// Iterates from the event before `from` back to when the task began to run on `cpu` that the
    /// switch `i` takes from it. Each task that comes meanwhile takes its time.
    fn back(&self, i: usize, cpu: CpuId, from: usize) -> impl Iterator<Item = usize> + '_ {
        let mut ends = self.events[i].0;
        (0..i)
            .rev()
            .take_while(move |j| {
                let (at, event) = &self.events[*j];
                let near = ends.since(*at) < RESCHEDULING_LASTS;
                if pulls(event, cpu) {
                    ends = *at;
                }
                near && !matches!(*event, Event::Switch { cpu: c, .. } if c == cpu)
            })
            .skip_while(move |j| *j >= from)
    }

    /// The index of the event that samples `util_est` of the task that goes to sleep by the switch
    /// `i`.
    fn sampled(&self, i: usize, cpu: CpuId, prev: Option<(TaskId, SwitchOut)>) -> Option<usize> {
        let Some((prev, SwitchOut::Sleeping)) = prev else { return None };
        let of = |e: &Event| matches!(*e, Event::UtilEst { task, .. } if task == prev);
        self.back(i, cpu, i).find(|j| of(&self.events[*j].1))
    }

    fn reschedule_lasts(
        &self,
        i: usize,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        last: Option<usize>,
    ) -> Span {
        match (last, self.sampled(i, cpu, prev)) {
            (_, Some(at)) => self.events[i].0.since(self.events[at].0) + SAMPLED_WITHIN,
            (Some(_), None) => LOOKING_LASTS,
            (None, None) => LASTS,
        }
    }

    /// The index of the event at which `gone` leaves its queue, as far as that is told: a fair
    /// task's estimate leaves its CPU's before that is sampled or tasks are looked for; of a
    /// real-time one the governor hears.
    fn leaves(&self, i: usize, cpu: CpuId, gone: TaskId, last: Option<usize>) -> Option<usize> {
        if !self.above.contains(&gone) {
            let sampled = self.sampled(i, cpu, Some((gone, SwitchOut::Sleeping)));
            let until = sampled.or(last).unwrap_or(i);
            return self.back(i, cpu, until).find(|j| self.dequeues.contains(&(cpu, *j)));
        }
        if !self.rt.contains(&gone) {
            return self.bandwidth(i, cpu, gone, |look, before| look < before);
        }
        // The first of them that finds no real-time task any more, where that is told.
        let without = |j: &usize| matches!(self.events[*j].1, Event::FreqLook { cpu: c, look } if c == cpu && look.rt_runnable == Some(false));
        if let Some(first) = self.back(i, cpu, i).filter(without).last() {
            return Some(first);
        }
        // One more look may follow as the CPU goes idle.
        let mut looks = self.back(i, cpu, i).filter(|j| self.is_bare_look(*j, cpu));
        let nearest = looks.next()?;
        let soon = |first: usize, j: usize| {
            let soon = self.events[first].0.since(self.events[j].0) < SOON;
            soon.then_some(j).ok_or(first)
        };
        Some(looks.try_fold(nearest, soon).unwrap_or_else(|first| first))
    }

    /// The index of the last look of `cpu`'s governor before the event `i` at which the bandwidth of deadline tasks has
    /// changed so, if `task` is one: it comes, or leaves after its 0-lag time.
    fn bandwidth(
        &self,
        i: usize,
        cpu: CpuId,
        task: TaskId,
        changed: impl Fn(u64, u64) -> bool,
    ) -> Option<usize> {
        if !self.above.contains(&task) || self.rt.contains(&task) {
            return None;
        }
        let running_bw = |j: usize| match self.events[j].1 {
            Event::FreqLook { cpu: c, look } if c == cpu => Some((j, look.running_bw)),
            _ => None,
        };
        let mut looks = self.back(i, cpu, i).filter_map(running_bw);
        let mut later = looks.next()?;
        let earlier = (0..later.0).rev().filter_map(running_bw);
        for look in earlier.take(LOOKS) {
            if changed(later.1, look.1) {
                return Some(later.0);
            }
            if self.events[i].0.since(self.events[look.0].0) > RESCHEDULING_LASTS {
                return None;
            }
            later = look;
        }
        None
    }

    /// A look of `cpu`'s governor that no fair signals are the reason of (it would be told right behind them), and no
    /// tick.
    fn is_bare_look(&self, j: usize, cpu: CpuId) -> bool {
        /// Time from a signal to the look because of it.
        const BEHIND: Span = Span::from_us(15);
        let of_fair = |e: &Event| matches!(*e, Event::PeltCfs { cpu: c, .. } if c == cpu);
        let just = |k: &usize| self.events[j].0.since(self.events[*k].0) < BEHIND;
        matches!(self.events[j].1, Event::FreqLook { cpu: c, .. } if c == cpu)
            && !self.of_ticks.contains(&j)
            && !(0..j).rev().take_while(just).any(|k| of_fair(&self.events[k].1))
    }

    /// The index of the event at which the task that the switch `i` takes from `cpu` leaves its
    /// queue though it would go on.
    fn throttled(&self, i: usize, cpu: CpuId) -> Option<usize> {
        let moved = |e: &Event| matches!(*e, Event::Migrate { from, .. } if from == cpu);
        let mut back = self.back(i, cpu, i).take_while(|j| !moved(&self.events[*j].1));
        back.find(|j| self.dequeues.contains(&(cpu, *j)))
    }

    /// The first change of signals that is part of the event `i`.
    fn first_part(&self, i: usize, of: &Part, lasts: Span) -> usize {
        first_part(self.events, i, of, lasts, &self.of_ticks)
    }
}

/// `cpu` looks for tasks, or gets one.
fn pulls(event: &Event, cpu: CpuId) -> bool {
    match *event {
        Event::BalanceLook { cpu: c, .. } | Event::Migrate { to: c, .. } => c == cpu,
        _ => false,
    }
}

/// The index at which the wakeup of `task` on `cpu` that ends with the event `i` begins, and the
/// CPU that wakes.
fn begins(
    events: &[(Instant, Event)],
    i: usize,
    task: TaskId,
    cpu: CpuId,
) -> Option<(usize, CpuId)> {
    let at = events[i].0;
    let before = events[..i].iter().enumerate().rev();
    for (j, (_, earlier)) in before.take_while(|(_, (when, _))| at.since(*when) < WAKING_LASTS) {
        match *earlier {
            Event::Waking { task: t, by } if t == task => return Some((j, by)),
            // The task has not left yet, or its CPU was another's in between.
            Event::Switch { cpu: c, prev, .. }
                if c == cpu || prev.is_some_and(|(t, _)| t == task) =>
            {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Finds where a task's estimate leaves its CPU's: the CPU, and which event tells of it.
fn dequeues(events: &[(Instant, Event)]) -> BTreeSet<(CpuId, usize)> {
    let mut found = BTreeSet::new();
    let mut last: BTreeMap<CpuId, Util> = BTreeMap::new();
    for (i, (_, event)) in events.iter().enumerate() {
        if let Event::CfsUtilEst { cpu, util_est } = *event
            && last.insert(cpu, util_est).is_none_or(|before| util_est <= before)
        {
            found.insert((cpu, i));
        }
    }
    found
}

/// The changes of signals that are ticks' work.
fn of_ticks(events: &[(Instant, Event)]) -> BTreeSet<usize> {
    /// Time from the tick's beginning to the last of them.
    const LASTS: Span = Span::from_us(60);
    let mut found = BTreeSet::new();
    let mut begun: BTreeMap<CpuId, Instant> = BTreeMap::new();
    for (i, (at, event)) in events.iter().enumerate() {
        match *event {
            Event::Tick { cpu } => drop(begun.insert(cpu, *at)),
            Event::Switch { cpu, .. }
            | Event::Wakeup { cpu, .. }
            | Event::CfsUtilEst { cpu, .. } => {
                begun.remove(&cpu);
            }
            Event::PeltTask { cpu, .. }
            | Event::PeltCfs { cpu, .. }
            | Event::PeltPressure { cpu, .. }
            | Event::FreqLook { cpu, .. }
                if begun.get(&cpu).is_some_and(|begun| at.since(*begun) < LASTS) =>
            {
                found.insert(i);
            }
            _ => {}
        }
    }
    found
}

/// The signals and looks that belong to an event.
struct Part {
    /// Signals of this CPU.
    cpu: CpuId,
    /// Signals of these tasks.
    tasks: [Option<TaskId>; 2],
    /// Looks of the CPU's governor.
    looks: bool,
    /// A real-time task comes: a look that finds none is before that.
    comes: bool,
}

/// The first change of signals that is part of the event `i`.
fn first_part(
    events: &[(Instant, Event)],
    i: usize,
    of: &Part,
    lasts: Span,
    of_ticks: &BTreeSet<usize>,
) -> usize {
    let at = events[i].0;
    let before = events[..i].iter().enumerate().rev();
    let mut first = i;
    for (j, (_, earlier)) in before.take_while(|(_, (when, _))| at.since(*when) < lasts) {
        if of_ticks.contains(&j) {
            continue;
        }
        let part = match *earlier {
            Event::PeltTask { task, .. } | Event::UtilEst { task, .. } => {
                of.tasks.contains(&Some(task))
            }
            Event::PeltCfs { cpu, .. } | Event::PeltPressure { cpu, .. } => cpu == of.cpu,
            Event::FreqLook { cpu, look }
                if of.comes && cpu == of.cpu && look.rt_runnable == Some(false) =>
            {
                break;
            }
            Event::FreqLook { cpu, .. } => of.looks && cpu == of.cpu,
            // Nothing of a fair task's coming or going is before that.
            Event::CfsUtilEst { cpu, .. } if cpu == of.cpu && !of.looks => {
                first = j;
                break;
            }
            Event::TaskNew { cpu, .. } | Event::Wakeup { cpu, .. } | Event::Switch { cpu, .. }
                if cpu == of.cpu =>
            {
                break;
            }
            _ => false,
        };
        if part {
            first = j;
        }
    }
    first
}

/// Iterates over the places, during a wakeup or a switch of `tasks` on `cpu` that lasts so long,
/// that are told with signals, before the tasks have theirs.
fn under_way<'e>(
    events: &'e [(Instant, Event)],
    lasts: Range<usize>,
    cpu: CpuId,
    tasks: [Option<TaskId>; 2],
) -> impl Iterator<Item = usize> + 'e {
    let first = lasts.start;
    lasts.filter(move |i| match (events[*i].1, i.checked_sub(1).map(|i| events[i].1)) {
        (Event::Entity { task, .. }, Some(Event::PeltTask { task: with, .. })) => {
            task == with && *i > first && tasks.contains(&Some(task))
        }
        (Event::CfsQueue { cpu: c, .. }, Some(Event::PeltCfs { cpu: with, .. })) => {
            c == with && c == cpu
        }
        (Event::GroupEntity { cpu: c, .. } | Event::GroupQueue { cpu: c, .. }, _) => c == cpu,
        _ => false,
    })
}

/// The places of both tasks and of the runqueue that are told with the switch `i`: both are looked at by
/// `sched_switch`, and which of the two is told first is a kernel's own (up to 6.12 the places, later the switch).
/// The clock that they are of stood still when the switch began.
pub(super) fn told_with(events: &[(Instant, Event)], i: usize) -> impl Iterator<Item = usize> {
    /// Time from the places to the switch, with those of groups; and from it to them.
    const BEFORE: Span = Span::from_us(200);
    const BEHIND: Span = Span::from_us(20);
    let (at, event) = &events[i];
    let belongs = move |j: &usize| match (event, &events[*j].1) {
        (Event::Switch { prev, next, .. }, Event::Entity { task, .. }) => {
            prev.is_some_and(|(prev, _)| prev == *task) || *next == Some(*task)
        }
        (
            Event::Switch { cpu, .. },
            Event::CfsQueue { cpu: c, .. } | Event::GroupEntity { cpu: c, .. },
        ) => c == cpu,
        _ => false,
    };
    let soon = |j: &usize| events[*j].0.since(*at) <= BEHIND;
    let just = |j: &usize| at.since(events[*j].0) <= BEFORE;
    let before = (0..i).rev().take_while(|j| just(j) && belongs(j)).count();
    (i - before..i).chain((i + 1..events.len()).take_while(move |j| soon(j) && belongs(j)))
}

/// Maps each event of the trace at which a task goes to sleep, by its index, to when that task
/// wakes.
pub(super) fn next_wakeups(reference: &Memory) -> BTreeMap<usize, Instant> {
    let mut found = BTreeMap::new();
    let mut next: BTreeMap<TaskId, Instant> = BTreeMap::new();
    for (index, (at, event)) in reference.events().iter().enumerate().rev() {
        match *event {
            Event::Wakeup { task, .. } => {
                next.insert(task, *at);
            }
            Event::Switch { prev: Some((task, SwitchOut::Sleeping)), .. } => {
                if let Some(wakes) = next.get(&task) {
                    found.insert(index, *wakes);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_kernel::units::ClockPelt;
    use risetime_trace::{FreqLook, Why};

    const CPU: CpuId = CpuId(2);

    fn signals(util: u64, as_of: u64) -> Event {
        Event::PeltCfs {
            cpu: CPU,
            util_avg: Util(util),
            runnable_avg: Util(util),
            util_est: Util(0),
            util_sum: 0,
            period_contrib: 0,
            last_update_time: ClockPelt(as_of),
        }
    }

    fn look(util: u64) -> Event {
        Event::FreqLook { cpu: CPU, look: FreqLook { util_avg: Util(util), ..FreqLook::default() } }
    }

    /// The place, among these events with their µs, at which a task is followed that is new at 900 µs.
    fn followed_before(events: &[(u64, Event)]) -> usize {
        let told = |(us, event): &(u64, Event)| (Instant(us * 1000), *event);
        let mut all: Vec<_> = events.iter().map(told).collect();
        let new = Event::TaskNew {
            task: TaskId(7),
            comm: "new".into(),
            user: true,
            cpu: CPU,
            why: Why::Unknown,
            max_speed: Util(1024),
        };
        all.push((Instant(900_000), new));
        let order = causes_first(&all, (true, false));
        order.iter().position(|(_, what)| *what == What::Event(events.len())).expect("it is new")
    }

    #[test]
    fn a_fork_is_asked_for_before_the_task_is_in_any_signal() {
        let est = Event::CfsUtilEst { cpu: CPU, util_est: Util(0) };
        // A virtual CPU stood still on the way.
        let all = [(300, est), (304, signals(9, 5)), (610, look(200)), (880, signals(200, 5))];
        assert_eq!(followed_before(&all), 0);
        // Nothing was to be brought up to date.
        assert_eq!(followed_before(&all[2..]), 0, "the look that finds it there");
        assert_eq!(followed_before(&[(610, look(9)), (880, signals(200, 5))]), 1, "another look");
        // Somebody else's update long before.
        let others = [(300, est), (304, signals(9, 4)), (610, look(9)), (880, signals(200, 5))];
        assert_eq!(followed_before(&others), 3);
    }
}
