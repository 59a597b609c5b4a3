//! The power HAL: a service of user space that hears how long jobs take and speeds up those who do them. One is one file and
//! one line in [`REGISTRY`].
//!
//! ```text
//!  app: a job with a hint_session is done                                   power-hal, a task of nice -20
//!   actual = done − released − slept ── Reporter: now, or with a later one ──> works adpf_work_ns, then
//!   > 100 ms without a job ──────────── CPU_LOAD_RESET ──────────────────────> its controller: what is uclamp_min?
//!                                       a vote runs out ── its timer ────────> sched_setattr of each thread
//! ```
//!
//! What an app measures is what HWUI does: from a frame's release until its last task is done, without the time that its tasks slept
//! of their own accord in it (waiting for a buffer). A session begins with its first job. The service is a task as any other: it is
//! placed, waits for a CPU, and is in the results. `sched_setattr` acts as it does: a queued task's clamp counts from the next time
//! that its CPU looks at frequencies.
//!
//! DEVIATES(adpf-binder): a report costs the app nothing but the wakeup, and system_server, through which it goes, no time; what both
//! take is part of `adpf_work_ns`. Effect: an app is faster by some 10 µs a frame than with binder.
//!
//! Source: Android, frameworks/base: HintSessionWrapper.cpp, CanvasContext.cpp, performance_hint.cpp;
//! hardware/google/pixel, power-libperfmgr.

mod none;
mod pixel;

use crate::kernel::syscalls::Current;
use crate::state;
use crate::time::work;
use crate::user::User;
use risetime_kernel::adpf::{Hint, Reporter};
use risetime_kernel::units::{Instant, Span, TaskId, Util};
use risetime_model::Workload;
use risetime_model::settings::{Default, Group, Home, Int, Name, Neutral, Param, Range, Settings};
use risetime_model::workload::JobMark;
use risetime_trace::jobs::{Chains, Fate};

/// A power HAL: its name, and how to make one.
pub struct Descriptor {
    /// Name of the power HAL.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Constants of the power HAL.
    pub settings: Group,
    /// A new instance; `None`: there is none.
    pub make: fn(&Settings) -> Option<Box<dyn PowerHal>>,
}

/// The interface of a power HAL.
pub trait PowerHal {
    /// The time after which an app should report whose jobs are in time.
    fn preferred_rate(&self) -> Span;
    /// A session with this target, which begins now.
    fn create(&self, target: Span, now: Instant) -> Box<dyn HintSession>;
}

/// The power HAL's side of a hint session.
pub trait HintSession {
    /// Jobs took so long, the oldest first.
    fn reports(&mut self, actual: &[Span], now: Instant);
    /// The app says something else.
    fn hint(&mut self, hint: Hint, now: Instant);
    /// The clamp that the session's threads should have now.
    fn uclamp_min(&self, now: Instant) -> Util;
    /// The time at which the clamp changes although nothing is said.
    fn changes_at(&self, now: Instant) -> Option<Instant>;
}

/// All of them.
pub const REGISTRY: &[Descriptor] = &[none::DESCRIPTOR, pixel::DESCRIPTOR];

/// Names of the power HALs, for the setting `power_hal`.
pub const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; REGISTRY.len()], 0);
    while i < names.len() {
        names[i] = REGISTRY[i].name;
        i += 1;
    }
    names
};

pub(crate) const POWER_HAL: Name = Name::new(Param {
    name: state::class::POWER_HAL.name(),
    doc: "power HAL that hears of the workload's hint sessions (ADPF), and speeds up their threads (unset: none)",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("none")),
});

pub(crate) const GROUP: Group =
    Group::of(&[POWER_HAL.0, WORK.0]).titled("Hint sessions, which user space makes");

const WORK: Int = Int::new(Param {
    name: "adpf_work_ns",
    doc: "CPU time (at capacity 1024, top frequency) that the power HAL takes for a report or a hint (unset: 50000, an estimate)",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Any),
});
/// An estimate: a one-way binder transaction, the controller, and a system call for each thread.
const WORK_NS: i64 = 50_000;
/// HWUI says CPU_LOAD_RESET before a frame that comes so long after the last (`kResetHintTimeout`).
const RESET_AFTER: Span = Span::from_ms(100);

/// The power HALs' constants, each group available only when its power HAL is in use.
pub(crate) fn groups() -> impl Iterator<Item = Group> {
    REGISTRY.iter().map(|d| d.settings.owned_by(&POWER_HAL, d.name))
}

/// The power HAL that is in use, if there are sessions to tell it of.
fn of_settings(settings: &Settings, workload: &Workload) -> Option<Box<dyn PowerHal>> {
    let name = settings.get(&POWER_HAL).filter(|_| !workload.sessions.is_empty())?;
    (REGISTRY.iter().find(|d| d.name == name)?.make)(settings)
}

/// Message to the service.
enum Said {
    /// A session begins.
    Create,
    Reports(Vec<Span>),
    Hint(Hint),
}

/// A session, both sides of it.
struct Session {
    job: u32,
    threads: Vec<TaskId>,
    target: Span,
    /// `None`: it has not begun.
    service: Option<Box<dyn HintSession>>,
    reporter: Reporter,
    held_back: Vec<Span>,
    /// Time at which the last job began or was done; `None`: there was none.
    last: Option<Instant>,
    /// Clamp that the session's threads have of it.
    applied: Util,
}

/// The service, and what it serves.
pub(crate) struct Service {
    /// Task of the service.
    pub(crate) task: TaskId,
    hal: Box<dyn PowerHal>,
    sessions: Vec<Session>,
    chains: Chains,
    /// Time that each task has slept of its own accord, in ns.
    slept: Vec<u128>,
    work: Span,
    /// Messages by session, in the order in which they came.
    inbox: Vec<(usize, Said)>,
    /// Number of them that the service works at.
    taken: Option<usize>,
    /// True if a message has come since it fell asleep.
    called: bool,
}

impl Service {
    /// The service of a workload's sessions, as `task`; `None`: no power HAL hears of them, or
    /// there are none.
    pub(crate) fn new(settings: &Settings, workload: &Workload, task: TaskId) -> Option<Service> {
        let hal = of_settings(settings, workload)?;
        let session = |s: &risetime_model::workload::HintSession| Session {
            job: s.job,
            threads: s.tasks.iter().map(|i| TaskId(*i)).collect(),
            target: s.target,
            service: None,
            reporter: Reporter::new(s.target, hal.preferred_rate()),
            held_back: Vec::new(),
            last: None,
            applied: Util(0),
        };
        Some(Service {
            task,
            sessions: workload.sessions.iter().map(session).collect(),
            chains: Chains::new(&workload.jobs),
            slept: vec![0; workload.tasks.len()],
            work: Span(settings.get(&WORK).unwrap_or(WORK_NS).max(0) as u64),
            hal,
            inbox: Vec::new(),
            taken: None,
            called: false,
        })
    }

    /// `task` falls asleep for so long because its program says so.
    pub(super) fn sleeps(&mut self, task: TaskId, span: Span) {
        if let Some(slept) = self.slept.get_mut(task.index()) {
            *slept += u128::from(span.0);
        }
    }

    /// Takes in a mark about the jobs of `task`.
    pub(super) fn mark(&mut self, task: TaskId, now: Instant, mark: JobMark) {
        let Some(stream) = self.chains.stream_of(task) else { return };
        let Some(at) = self.sessions.iter().position(|s| s.job as usize == stream) else { return };
        let slept = self.slept.get(task.index()).copied().unwrap_or_default();
        self.chains.took(task, slept);
        let mut done = None;
        self.chains.mark(task, now, mark, &mut |over| {
            if over.fate == Fate::Done {
                let took = u128::from(now.since(over.job.release).0);
                done = Some(Span(took.saturating_sub(over.job.taken) as u64));
            }
        });
        let s = &mut self.sessions[at];
        if matches!(mark, JobMark::Begins { .. }) && s.threads[0] == task {
            let idle = s.last.map(|last| now.since(last));
            match idle {
                None => self.inbox.push((at, Said::Create)),
                Some(idle) if idle > RESET_AFTER => {
                    self.inbox.push((at, Said::Hint(Hint::LoadReset)))
                }
                Some(_) => {}
            }
            s.last = Some(now);
        }
        if let Some(actual) = done.filter(|actual| actual.0 > 0) {
            s.last = Some(now);
            s.held_back.push(actual);
            if s.reporter.tells(actual, now) {
                self.inbox.push((at, Said::Reports(std::mem::take(&mut s.held_back))));
            }
        }
        self.called |= !self.inbox.is_empty();
    }

    /// Hands what was said to the sessions, as the work on it is done; they say what their threads
    /// should have.
    fn hears(&mut self, now: Instant) {
        for (at, said) in self.inbox.drain(..self.taken.take().unwrap_or(0)) {
            let s = &mut self.sessions[at];
            match (said, &mut s.service) {
                (Said::Create, service) => *service = Some(self.hal.create(s.target, now)),
                (Said::Reports(actual), Some(service)) => service.reports(&actual, now),
                (Said::Hint(hint), Some(service)) => service.hint(hint, now),
                (_, None) => {}
            }
        }
    }

    fn wanted(s: &Session, now: Instant) -> Util {
        s.service.as_ref().map_or(Util(0), |service| service.uclamp_min(now))
    }

    /// Lists the threads whose clamp is another than what it should have, and which it should have:
    /// of a thread of several sessions the largest.
    fn applies(&mut self, now: Instant) -> Vec<(TaskId, Util)> {
        let mut changed: Vec<TaskId> = Vec::new();
        for s in &mut self.sessions {
            let wanted = Service::wanted(s, now);
            if std::mem::replace(&mut s.applied, wanted) != wanted {
                changed.extend(&s.threads);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        let of = |task: &TaskId| {
            let all = self.sessions.iter().filter(|s| s.threads.contains(task));
            all.map(|s| s.applied).max().unwrap_or(Util(0))
        };
        changed.iter().map(|task| (*task, of(task))).collect()
    }

    /// Whether something has changed that the threads do not have yet.
    fn is_due(&self, now: Instant) -> bool {
        self.sessions.iter().any(|s| Service::wanted(s, now) != s.applied)
    }
}

/// Emits a mark of the running task's jobs into the trace, and tells it to the service.
pub(super) fn tells_job(
    service: &mut Option<Service>,
    current: &mut Current<'_, '_>,
    mark: JobMark,
) {
    let task = current.task;
    current.emit(risetime_trace::Event::Job { task, mark });
    if let Some(service) = service {
        service.mark(task, current.m().now, mark);
    }
}

impl User {
    /// Wakes the service, if it was told something; true: the running task goes on only later.
    pub(super) fn calls_service(&mut self, current: &mut Current<'_, '_>) -> bool {
        let Some(service) = &mut self.power_hal else { return false };
        if !std::mem::take(&mut service.called) {
            return false;
        }
        current.wakes_from_timer(service.task);
        current.is_held_up()
    }

    /// The service's next step, if the running task is that.
    pub(super) fn serves(&mut self, current: &mut Current<'_, '_>) -> bool {
        let Some(service) = self.power_hal.as_mut().filter(|s| s.task == current.task) else {
            return false;
        };
        let now = current.m().now;
        if service.taken.is_some() {
            service.hears(now);
            for (task, min) in service.applies(now) {
                current.sets_uclamp_min(task, min);
            }
        }
        let said = service.inbox.len();
        if said > 0 || service.is_due(now) {
            service.taken = Some(said);
            let work = Span(service.work.0.saturating_mul(said.max(1) as u64));
            current.works(work::at_full_speed(work));
            return true;
        }
        let next =
            service.sessions.iter().filter_map(|s| s.service.as_ref()?.changes_at(now)).min();
        match next {
            Some(at) => current.fall_asleep(Some(at)),
            None => current.waits(),
        }
        true
    }
}
