//! Hooks that are asked at each decision: they note the answer, refuse it, and give the reference's
//! where it is known.

use super::asked::Asked;
use crate::state::hooks::{Answer, FreqRequest, Hooks, Placed, Point, Step};
use crate::state::machine::{Machine, State};
use risetime_kernel::cpu_util::RqUtil;
use risetime_kernel::features;
use risetime_kernel::units::{CpuId, Instant, TaskId, Util};
use risetime_trace::{FreqLook, MenuSelect, Why};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Between the follower and its hooks.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) asked: Vec<Asked>,
    /// Number there of each task here.
    pub(super) there: BTreeMap<TaskId, TaskId>,
    /// Threads of the system of which nothing but the name is known: not where they may run.
    pub(super) strangers: BTreeSet<TaskId>,
    /// CPU where the task goes that is being woken or created.
    pub(super) cpu: Option<CpuId>,
    /// The reference tells from what idle states are chosen.
    pub(super) sleeps_told: bool,
    /// CPU that begins to sleep there now.
    pub(super) sleeps: Option<CpuId>,
    /// Time and CPU at which a turn was found over last.
    pub(super) over: Option<(Instant, CpuId)>,
    /// The reference tells when it balances, and does so now.
    pub(super) looks_told: bool,
    pub(super) looks: bool,
    /// True while a decision was asked for before, or is to put right what was lost.
    pub(super) unasked: bool,
    /// Task that is next on the CPU that reschedules.
    pub(super) pick: Option<Option<TaskId>>,
    /// Task that waits there longest.
    pub(super) longest: Option<TaskId>,
    /// The reference tells when governors look, and one does so now.
    pub(super) governs_told: bool,
    pub(super) governs: Option<(CpuId, FreqLook)>,
    /// A governor has been asked, and thinks that it got what it wanted.
    pub(super) asked_governor: Vec<CpuId>,
    /// Sleeps by CPU.
    pub(super) idles: BTreeMap<CpuId, Idles>,
    /// True while what happens is this machine's own: a tick, a timer.
    pub(super) own_time: bool,
    /// Time at which the policy's governor was asked last because of each CPU.
    pub(super) looked: BTreeMap<CpuId, Instant>,
    /// CPUs that are about to reschedule there, since when.
    pub(super) due: BTreeMap<CpuId, Instant>,
}

/// A sleep of a CPU there.
#[derive(Clone, Copy)]
pub(super) struct Sleeps {
    /// The state that it enters.
    pub(super) state: usize,
    /// State from which the idle state was chosen, where it is told.
    pub(super) select: Option<MenuSelect>,
}

/// The sleeps of a CPU there, in order.
#[derive(Default)]
pub(super) struct Idles {
    pub(super) all: Vec<(Instant, Sleeps)>,
    next: usize,
}

impl Idles {
    fn at(&self, now: Instant) -> usize {
        self.all.partition_point(|(at, _)| *at < now).max(self.next)
    }

    /// The sleep that begins about now.
    pub(super) fn upcoming(&self, now: Instant) -> Option<&Sleeps> {
        self.all.get(self.at(now)).map(|(_, sleeps)| sleeps)
    }

    /// Takes the next sleep of the CPU from `now` on, which is then used up.
    fn next(&mut self, now: Instant) -> Option<Sleeps> {
        let from = self.at(now);
        self.next = from + 1;
        self.all.get(from).map(|(_, sleeps)| *sleeps)
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
    pub(super) fn there(&self, task: TaskId) -> TaskId {
        self.there.get(&task).copied().unwrap_or(task)
    }

    pub(super) fn note(&mut self, at: Instant, point: Point, own: Answer) -> &mut Asked {
        let (given, trivial, of, theirs) = (None, None, 0, "");
        self.asked.push(Asked { at, point, own, given, trivial, of, theirs });
        let last = self.asked.len() - 1;
        &mut self.asked[last]
    }

    fn of_task(&self, own: Answer) -> Answer {
        match own {
            Answer::Task(Some(task)) => Answer::Task(Some(self.there(task))),
            other => other,
        }
    }
}

/// The answer that the task goes to `cpu` there.
fn at(cpu: CpuId) -> Answer {
    Answer::Cpu(Placed { cpu, why: Why::Given })
}

impl Hooks for Listens {
    /// The utils that a governor finds there where it looks, as far as they are told.
    fn rq_util(&self, cpu: CpuId, _: bool, own: RqUtil) -> RqUtil {
        let look = self.0.borrow().governs.filter(|(of, _)| *of == cpu);
        let Some((_, look)) = look else { return own };
        let [uclamp_min, uclamp_max] = look.uclamp.unwrap_or([own.uclamp_min, own.uclamp_max]);
        let rt_runnable = look.rt_runnable.unwrap_or(own.rt_runnable);
        RqUtil { rt_runnable, uclamp_min, uclamp_max, ..own }
    }
    /// Governors look where those of the reference do; who has been asked for goes where he goes there.
    fn instead(&self, _: &Machine, point: Point) -> Option<Answer> {
        let s = self.0.borrow();
        match point {
            Point::Frequency { .. } if s.governs_told => {
                s.governs.is_none().then_some(Answer::Freq(None))
            }
            Point::Frequency { .. } if s.own_time => Some(Answer::Freq(None)),
            Point::Wakeup { .. } if s.unasked => s.cpu.map(at),
            _ => None,
        }
    }
    fn decided(&self, m: &Machine, point: Point, own: Answer) -> Answer {
        let mut s = self.0.borrow_mut();
        match point {
            Point::Wakeup { task, .. } | Point::Fork { task } => s.placed(m, point, task, own),
            Point::Pick { cpu } => s.picked(m, cpu, own),
            Point::WakeupPreempt { cpu, curr, woken } => s.preempts(m, cpu, (curr, woken), own),
            Point::TickPreempt { cpu, .. } if own == Answer::Yes(true) => s.turn_over(m, cpu),
            Point::Frequency { cpu } => s.governed(m.time(), cpu, own),
            Point::Idle { cpu } => s.sleeps(m, cpu, own),
            Point::Balance { .. } if s.looks_told => {
                if s.looks {
                    s.note(m.time(), point, own);
                }
                Answer::Yes(s.looks)
            }
            Point::Kick { .. } if s.looks_told => Answer::Yes(false),
            Point::Pull { task, from, to } => {
                let task = s.there(task);
                s.note(m.time(), Point::Pull { task, from, to }, own);
                Answer::Yes(false)
            }
            Point::Step(
                Step::PushOrPull | Step::StopperTakesTime | Step::ThrottleCfsRq | Step::ThrottleDl,
            ) => Answer::Yes(false),
            _ => own,
        }
    }
}

impl Shared {
    /// Notes a governor's look, and what was chosen there.
    fn governed(&mut self, at: Instant, cpu: CpuId, own: Answer) -> Answer {
        let look = self.governs;
        let asked = self.note(at, Point::Frequency { cpu }, own);
        if let Some((_, look)) = look {
            let request =
                |freq| Answer::Freq(Some(FreqRequest { util: Util(0), freq, why: Why::Given }));
            let changes = |answer: Answer| match answer {
                Answer::Freq(Some(f)) => f.freq != look.next_freq,
                _ => false,
            };
            asked.given = look.chosen.map(request);
            asked.trivial = Some(request(look.next_freq));
            asked.of = if changes(own) || asked.given.is_some_and(changes) { 2 } else { 1 };
            asked.theirs = match (own, look.chosen) {
                (_, Some(freq)) if freq == look.next_freq => "the one that it had",
                (Answer::Freq(Some(own)), Some(freq)) if freq > own.freq => "a higher one",
                _ => "a lower one",
            };
            return Answer::Freq(None);
        }
        self.asked_governor.push(cpu);
        self.looked.insert(cpu, at);
        Answer::Freq(None)
    }

    /// A CPU for a task that wakes, or is new.
    fn placed(&mut self, m: &Machine, point: Point, task: TaskId, own: Answer) -> Answer {
        let Some(cpu) = self.cpu else { return own };
        if self.unasked {
            return at(cpu);
        }
        let there = self.there(task);
        let (prev, of) = (m.task_cpu(task), m.task(task).allowed.and(&m.root.online).len());
        let point = match point {
            Point::Wakeup { waker, .. } => Point::Wakeup { task: there, waker },
            _ => Point::Fork { task: there },
        };
        let theirs = match point {
            _ if cpu == prev => "the previous CPU",
            Point::Wakeup { waker, .. } if cpu == waker.cpu => "the waker's CPU",
            _ if cpu == m.task(task).recent_used_cpu => "the recently used CPU",
            _ if !m.idle_cpu(cpu) => "a busy CPU",
            _ if m.cpus_share_cache(cpu, prev) => "an idle CPU of its cache",
            _ => "an idle CPU elsewhere",
        };
        let known = !self.strangers.contains(&task);
        let asked = self.note(m.time(), point, own);
        (asked.given, asked.trivial) = (known.then_some(at(cpu)), Some(at(prev)));
        (asked.of, asked.theirs) = (of, theirs);
        at(cpu)
    }

    fn picked(&mut self, m: &Machine, cpu: CpuId, own: Answer) -> Answer {
        let Some(pick) = self.pick else { return own };
        if pick.is_some_and(|task| !m.is_fair(task)) {
            return own;
        }
        let of = m.fair_queued(cpu).filter(|(t, _)| m.task(*t).state == State::Runnable);
        let of = of.count();
        let theirs = match pick.and_then(|task| m.fair_entity(cpu, task)) {
            None => "nobody",
            Some(_) if !m.rev.has(features::EEVDF) => "of a larger vruntime",
            Some(e) if e.sched_delayed => "one whose dequeue is delayed here",
            Some(e)
                if m.queue(cpu, m.task(pick.unwrap_or(TaskId(0))).group).entity_eligible(e.id) =>
            {
                "eligible, of a later deadline"
            }
            Some(_) => "one that is not eligible here",
        };
        let given = self.of_task(Answer::Task(pick));
        let trivial = self.of_task(Answer::Task(self.longest));
        let own = self.of_task(own);
        let asked = self.note(m.time(), Point::Pick { cpu }, own);
        (asked.given, asked.trivial) = (Some(given), Some(trivial));
        (asked.of, asked.theirs) = (of, theirs);
        Answer::Task(pick)
    }

    fn preempts(
        &mut self,
        m: &Machine,
        cpu: CpuId,
        (curr, woken): (TaskId, TaskId),
        own: Answer,
    ) -> Answer {
        if self.due.contains_key(&cpu) {
            // Nobody asks (`test_tsk_need_resched`).
            return Answer::Yes(false);
        }
        // Nothing is at stake where whoever runs is about to leave.
        let fair = |task| m.is_fair(task) && m.task(task).state == State::Runnable;
        let of = usize::from(fair(curr) && m.is_fair(woken)) * 2;
        let (curr, woken) = (self.there(curr), self.there(woken));
        let point = Point::WakeupPreempt { cpu, curr, woken };
        // Whoever runs may be asked to go because the wakeup's accounting finds his turn over.
        let over = self.over.take() == Some((m.time(), cpu));
        let own = if over { Answer::Yes(true) } else { own };
        let asked = self.note(m.time(), point, own);
        (asked.trivial, asked.of) = (Some(Answer::Yes(true)), of);
        Answer::Yes(false)
    }

    /// Notes that a turn is over, for each tick; one found over between two ticks is not noted.
    fn turn_over(&mut self, m: &Machine, cpu: CpuId) -> Answer {
        let now = m.time();
        self.over = Some((now, cpu));
        let last = self.asked.iter_mut().rev().take_while(|a| a.at == now);
        let mut own =
            last.filter(|a| matches!(a.point, Point::TickPreempt { cpu: c, .. } if c == cpu));
        if let Some(asked) = own.next() {
            asked.own = Answer::Yes(true);
        }
        Answer::Yes(false)
    }

    fn sleeps(&mut self, m: &Machine, cpu: CpuId, own: Answer) -> Answer {
        if self.sleeps_told && self.sleeps != Some(cpu) {
            // This machine's own timers have woken it.
            return own;
        }
        let states = &m.domain_of(cpu).idle;
        let given = self.idles.get_mut(&cpu).and_then(|idles| idles.next(m.time()));
        let asked = self.note(m.time(), Point::Idle { cpu }, own);
        (asked.of, asked.trivial) = (states.len(), Some(IDLE_AT_ONCE));
        let (Some(Sleeps { state, select }), Answer::Idle { state: here, stop_tick }) =
            (given, own)
        else {
            return own;
        };
        let state = state.min(states.len().saturating_sub(1));
        // Where it is not told whether the tick stops: as here, unless that belongs to another state.
        let longer = states.get(state).is_some_and(|s| s.target_residency >= m.tick);
        let likely = if state == here { stop_tick } else { longer };
        let stop_tick = select.and_then(|s| s.stop_tick).unwrap_or(likely);
        asked.given = Some(Answer::Idle { state, stop_tick });
        asked.theirs = if state > here { "a deeper state" } else { "a shallower state" };
        Answer::Idle { state, stop_tick }
    }
}
