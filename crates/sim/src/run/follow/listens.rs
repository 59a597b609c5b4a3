//! Who is asked at each decision: hooks that note the answer, refuse it, and give the reference's where it is known.

use super::Asked;
use crate::state::hooks::{Answer, Hooks, Placed, Point, Step};
use crate::state::machine::{Machine, State};
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_trace::Why;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Between the follower and its hooks.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) asked: Vec<Asked>,
    /// By the task here, its number there, and whether it is the workload's.
    pub(super) there: BTreeMap<TaskId, (TaskId, bool)>,
    /// Where the task goes that is being woken or created.
    pub(super) cpu: Option<CpuId>,
    /// That is to put right what was lost: nobody decided it.
    pub(super) unasked: bool,
    /// Who is next on the CPU that reschedules.
    pub(super) pick: Option<Option<TaskId>>,
    /// Who waits there longest.
    pub(super) longest: Option<TaskId>,
    /// A governor has been asked, and thinks that it got what it wanted.
    pub(super) asked_governor: Vec<CpuId>,
    /// By CPU.
    pub(super) idles: BTreeMap<CpuId, Idles>,
    /// What happens is this machine's own: a tick, a timer.
    pub(super) own_time: bool,
    /// By CPU, when its policy's governor was asked last because of it.
    pub(super) looked: BTreeMap<CpuId, Instant>,
}

/// The idle states that a CPU enters there, in order.
#[derive(Default)]
pub(super) struct Idles {
    pub(super) all: Vec<(Instant, usize)>,
    next: usize,
}

impl Idles {
    /// The state of the sleep that begins about now.
    fn next(&mut self, now: Instant) -> Option<usize> {
        let from = self.all.partition_point(|(at, _)| *at < now).max(self.next);
        self.next = from + 1;
        self.all.get(from).map(|(_, state)| *state)
    }

    /// Whether that of the sleep which begins there now has been told.
    pub(super) fn has_passed(&self, now: Instant) -> bool {
        self.next
            .checked_sub(1)
            .and_then(|last| self.all.get(last))
            .is_some_and(|(at, _)| *at >= now)
    }
}

/// The state that costs nothing to leave.
const IDLE_AT_ONCE: Answer = Answer::Idle { state: 0, stop_tick: false };

pub(super) struct Listens(pub(super) Rc<RefCell<Shared>>);

impl Shared {
    pub(super) fn there(&self, task: TaskId) -> (TaskId, bool) {
        self.there.get(&task).copied().unwrap_or((task, false))
    }

    pub(super) fn note(&mut self, at: Instant, point: Point, own: Answer) -> &mut Asked {
        self.asked.push(Asked { at, point, own, given: None, trivial: None, of: 0, user: false });
        let last = self.asked.len() - 1;
        &mut self.asked[last]
    }

    fn of_task(&self, own: Answer) -> (Answer, bool) {
        match own {
            Answer::Task(Some(task)) => {
                let (task, user) = self.there(task);
                (Answer::Task(Some(task)), user)
            }
            other => (other, false),
        }
    }
}

/// Where the task goes there.
fn at(cpu: CpuId) -> Answer {
    Answer::Cpu(Placed { cpu, why: Why::Given })
}

impl Hooks for Listens {
    /// Governors look where those of the reference do.
    fn instead(&self, _: &Machine, point: Point) -> Option<Answer> {
        let own = self.0.borrow().own_time;
        (own && matches!(point, Point::Frequency { .. })).then_some(Answer::Freq(None))
    }
    fn decided(&self, m: &Machine, point: Point, own: Answer) -> Answer {
        let mut s = self.0.borrow_mut();
        let now = m.time();
        match point {
            Point::Wakeup { task, waker } => {
                let Some(cpu) = s.cpu else { return own };
                if s.unasked {
                    return at(cpu);
                }
                let (there, user) = s.there(task);
                let (prev, of) = (m.task_cpu(task), m.task(task).allowed.and(&m.root.online).len());
                let point = Point::Wakeup { task: there, waker };
                let asked = s.note(now, point, own);
                (asked.given, asked.trivial) = (Some(at(cpu)), Some(at(prev)));
                (asked.of, asked.user) = (of, user);
                at(cpu)
            }
            Point::Fork { task } => {
                let Some(cpu) = s.cpu else { return own };
                let (there, user) = s.there(task);
                let (parent, of) =
                    (m.task_cpu(task), m.task(task).allowed.and(&m.root.online).len());
                let asked = s.note(now, Point::Fork { task: there }, own);
                (asked.given, asked.trivial) = (Some(at(cpu)), Some(at(parent)));
                (asked.of, asked.user) = (of, user);
                at(cpu)
            }
            Point::Pick { cpu } => {
                let Some(pick) = s.pick else { return own };
                if pick.is_some_and(|task| !m.is_fair(task)) {
                    return own;
                }
                let of = m.fair_queued(cpu).filter(|(t, _)| m.task(*t).state == State::Runnable);
                let of = of.count();
                let given = s.of_task(Answer::Task(pick)).0;
                let trivial = s.of_task(Answer::Task(s.longest)).0;
                let (own, user) = s.of_task(own);
                let asked = s.note(now, point, own);
                (asked.given, asked.trivial) = (Some(given), Some(trivial));
                (asked.of, asked.user) = (of, user);
                Answer::Task(pick)
            }
            Point::WakeupPreempt { cpu, curr, woken } => {
                let of = usize::from(m.is_fair(curr) && m.is_fair(woken)) * 2;
                let ((curr, _), (woken, user)) = (s.there(curr), s.there(woken));
                let asked = s.note(now, Point::WakeupPreempt { cpu, curr, woken }, own);
                (asked.trivial, asked.of, asked.user) = (Some(Answer::Yes(true)), of, user);
                Answer::Yes(false)
            }
            Point::TickPreempt { cpu, .. } => {
                // It is noted for each tick; what is found over between two of them is not.
                let last = s.asked.iter_mut().rev().take_while(|a| a.at == now);
                let mut own = last
                    .filter(|a| matches!(a.point, Point::TickPreempt { cpu: c, .. } if c == cpu));
                if let Some(asked) = own.next() {
                    asked.own = Answer::Yes(true);
                }
                Answer::Yes(false)
            }
            Point::Frequency { cpu } => {
                s.note(now, point, own);
                s.asked_governor.push(cpu);
                s.looked.insert(cpu, now);
                Answer::Freq(None)
            }
            Point::Idle { cpu } => {
                let states = &m.domain_of(cpu).idle;
                let given = s.idles.get_mut(&cpu).and_then(|idles| idles.next(now));
                let asked = s.note(now, point, own);
                (asked.of, asked.trivial) = (states.len(), Some(IDLE_AT_ONCE));
                let (Some(state), Answer::Idle { state: here, stop_tick }) = (given, own) else {
                    return own;
                };
                // Whether the tick stops is not told: as here, unless that belongs to another state.
                let longer = states.get(state).is_some_and(|s| s.target_residency >= m.tick);
                let stop_tick = if state == here { stop_tick } else { longer };
                asked.given = Some(Answer::Idle { state, stop_tick });
                Answer::Idle { state, stop_tick }
            }
            Point::Pull { task, from, to } => {
                let (task, user) = s.there(task);
                let asked = s.note(now, Point::Pull { task, from, to }, own);
                asked.user = user;
                Answer::Yes(false)
            }
            Point::Step(Step::PushOrPull | Step::StopperTakesTime | Step::ThrottleCfsRq) => {
                Answer::Yes(false)
            }
            _ => own,
        }
    }
}
