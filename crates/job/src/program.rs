//! A task's program counter: from phases and loops to the next thing it does, for the simulator and the agent alike.
//!
//! ```text
//! task     phases, as often as it is repeated; then the program is over
//! phase    events, as often as it is repeated
//! event    a step, if it takes time or concerns others; a timer or a duty says until when
//! ```
//!
//! What a program means in cases is in `tests/programs.txt`.

use crate::mark::{JobMark, Marks};
use crate::{Event, Expiry, LOG_BUFFER, LOG_LINE, Repeat, Task, Timer, duty};
use risetime_kernel::units::{Instant, Span};

/// Next step of a task. Times are those of the clock that [`Counter::next`] is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The task enters the phase of this index.
    Phase(usize),
    /// Work worth this time at capacity 1024 and top frequency; of which kind, 0 the plain one.
    Run(Span, u16),
    /// Run pieces of so much work until one ends then or later.
    Pieces {
        /// Time that has to have come.
        until: Instant,
        /// Work of a piece, as time at capacity 1024 and top frequency.
        piece: Span,
    },
    /// Write out the log, and be busy with that.
    Log,
    /// Sleep until then.
    SleepUntil(Instant),
    /// Have a CPU for this long.
    Busy(Span),
    /// Use a shared timer; timers of this task count from the second time.
    SharedTimer(Timer, Span, Instant),
    /// Something that concerns other tasks: an event that takes no time of its own.
    Act(Event),
    /// The program is over.
    Exit,
}

/// Steps at one time, before the program is called stuck. The workload's validation rejects
/// endless loops without time; tasks that wake each other for ever get here.
const MAX_IDLE_STEPS: u32 = 1_000_000;

/// Position of a task in its program. The task itself is told with each question: many have the same one.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Counter {
    phase: usize,
    event: usize,
    task_rounds: u32,
    phase_rounds: u32,
    entered: bool,
    timers: Vec<Option<Instant>>,
    /// Time at which the last `duty` ended.
    round: Option<Instant>,
    /// Time at which the task began to run: where every timer starts.
    began: Option<Instant>,
    /// The time of the last step, and how many there were at that time.
    steps: (Instant, u32),
    /// Events begun, those that took no time counted: how far it has got, whatever the time is.
    done: u64,
    /// Marks of the task's jobs, if it has any.
    marks: Option<Box<Marks>>,
    /// Bytes of the log that are not written out.
    logged: u32,
}

impl Counter {
    /// The beginning of the program of `task`.
    pub fn of<A>(task: &Task<A>) -> Counter {
        Counter {
            phase: 0,
            event: 0,
            task_rounds: 0,
            phase_rounds: 0,
            entered: false,
            timers: Vec::new(),
            round: None,
            began: None,
            steps: (Instant(0), 0),
            done: 0,
            marks: Marks::of(task).map(Box::new),
            // The line that names the columns.
            logged: LOG_LINE,
        }
    }

    /// Makes timers count from `at`, not from when the task first runs.
    pub fn count_timers_from(&mut self, at: Instant) {
        self.began = Some(at);
    }

    /// Takes the oldest mark that has come up about the task's jobs.
    pub fn next_mark(&mut self) -> Option<JobMark> {
        self.marks.as_mut()?.next_mark()
    }

    /// Drains the marks that have come up about the task's jobs, oldest first.
    pub fn take_marks(&mut self) -> impl Iterator<Item = JobMark> + '_ {
        self.marks.iter_mut().flat_map(|marks| marks.take())
    }

    /// Marks the use of a timer.
    pub fn timer_used(&mut self, timer: Timer, period: Span, expiry: &Expiry) {
        if let Some(marks) = &mut self.marks {
            marks.timer(timer, period, expiry);
        }
    }

    /// The number of its events that the program has begun.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// The events of `task` that it may yet come to: of a phase or a list of phases that is gone through again all of them.
    pub fn ahead<'a, A>(&'a self, task: &'a Task<A>) -> impl Iterator<Item = &'a Event> {
        let now = task.phases.get(self.phase);
        let stays = now.is_some_and(|phase| phase.repeat == Repeat::Forever);
        let again = !stays && more(task.repeat, self.task_rounds + 1);
        let phases = task.phases.iter().enumerate().filter(move |(i, _)| match stays {
            true => *i == self.phase,
            false => again || *i >= self.phase,
        });
        phases.flat_map(move |(i, phase)| {
            let whole = again || i != self.phase || more(phase.repeat, self.phase_rounds + 1);
            phase.events.iter().skip(if whole { 0 } else { self.event })
        })
    }

    /// The phase of `task` that holds the next event; past the end, the number of phases.
    pub fn upcoming_phase<A>(&self, task: &Task<A>) -> usize {
        match task.phases.get(self.phase) {
            Some(phase)
                if self.event < phase.events.len() || more(phase.repeat, self.phase_rounds + 1) =>
            {
                self.phase
            }
            _ if self.phase + 1 >= task.phases.len() && more(task.repeat, self.task_rounds + 1) => {
                0
            }
            _ => self.phase + 1,
        }
    }

    /// Whether `task` will from here on be busy for ever: it need not count its work then.
    ///
    /// True in a phase that is repeated for ever, and in a program of one phase repeated for
    /// ever, if it only runs. (In the second case the phase is entered again and again; those
    /// marks are not made.)
    pub fn busy_for_ever<A>(&self, task: &Task<A>) -> bool {
        let Some(phase) = task.phases.get(self.phase) else { return false };
        let endless = phase.repeat == Repeat::Forever
            || (task.repeat == Repeat::Forever && task.phases.len() == 1);
        endless && phase.events.iter().all(|e| matches!(e, Event::Run(_) | Event::Runtime { .. }))
    }

    /// The next step of `task`; events of no time are passed over. `None`: it makes no progress.
    #[inline]
    pub fn next<A>(&mut self, task: &Task<A>, now: Instant) -> Option<Step> {
        let began = *self.began.get_or_insert(now);
        self.goes_on(began);
        if self.steps.0 != now {
            self.steps = (now, 0);
        }
        while self.steps.1 < MAX_IDLE_STEPS {
            self.steps.1 += 1;
            let Some(phase) = task.phases.get(self.phase) else {
                self.task_rounds = self.task_rounds.saturating_add(1);
                if more(task.repeat, self.task_rounds) {
                    (self.phase, self.event, self.phase_rounds, self.entered) = (0, 0, 0, false);
                    continue;
                }
                if let Some(marks) = &mut self.marks {
                    marks.over();
                }
                return Some(Step::Exit);
            };
            if !self.entered {
                self.entered = true;
                return Some(Step::Phase(self.phase));
            }
            let Some(&event) = phase.events.get(self.event) else {
                self.phase_rounds = self.phase_rounds.saturating_add(1);
                self.event = 0;
                let writes = task.logs && self.logs(&phase.events);
                if !more(phase.repeat, self.phase_rounds) {
                    self.phase += 1;
                    (self.phase_rounds, self.entered) = (0, false);
                }
                if writes {
                    return Some(Step::Log);
                }
                continue;
            };
            self.event += 1;
            self.done += 1;
            if let Some(marks) = &mut self.marks
                && !matches!(event, Event::Timer { .. })
            {
                marks.event(&event);
            }
            match event {
                Event::Run(Span(0))
                | Event::RunOf { work: Span(0), .. }
                | Event::Runtime { time: Span(0), .. }
                | Event::Sleep(Span(0))
                | Event::Busy(Span(0)) => {}
                Event::Run(work) => return Some(Step::Run(work, 0)),
                Event::RunOf { work, kind } => return Some(Step::Run(work, kind as u16 + 1)),
                Event::Runtime { time, piece } => {
                    return Some(Step::Pieces { until: now + time, piece });
                }
                Event::Sleep(span) => return Some(Step::SleepUntil(now + span)),
                Event::Busy(span) => return Some(Step::Busy(span)),
                Event::Timer { timer, period } if timer.shared => {
                    let began = self.began.unwrap_or(now);
                    return Some(Step::SharedTimer(timer, period, began));
                }
                Event::Timer { timer, period } => {
                    let expiry = self.timer(timer, period, now);
                    self.timer_used(timer, period, &expiry);
                    match expiry.sleeps {
                        Some(until) => return Some(Step::SleepUntil(until)),
                        None => self.goes_on(began),
                    }
                }
                Event::Duty(percent) => {
                    let until = duty(&mut self.round, percent, began, now);
                    if until > now {
                        return Some(Step::SleepUntil(until));
                    }
                    self.goes_on(began);
                }
                act => return Some(Step::Act(act)),
            }
        }
        None
    }

    /// Adds a round's line to the log; true if the log is written out then, behind a round that matters: one that
    /// takes a mutex and never pauses, so that this is where somebody else gets it.
    fn logs(&mut self, events: &[Event]) -> bool {
        self.logged += LOG_LINE;
        let full = self.logged >= LOG_BUFFER;
        if full {
            self.logged -= LOG_BUFFER;
        }
        let locks = |event: &Event| matches!(event, Event::Lock(_));
        full && events.iter().any(locks) && !events.iter().any(Event::sleeps_or_waits)
    }

    #[inline]
    fn goes_on(&mut self, began: Instant) {
        if let Some(marks) = &mut self.marks {
            marks.goes_on(began);
        }
    }

    #[inline]
    fn timer(&mut self, timer: Timer, period: Span, now: Instant) -> Expiry {
        let index = timer.index as usize;
        if self.timers.len() <= index {
            self.timers.resize(index + 1, None);
        }
        let began = self.began.unwrap_or(now);
        timer.expiry(&mut self.timers[index], period, began, now)
    }
}

fn more(repeat: Repeat, rounds: u32) -> bool {
    match repeat {
        Repeat::Forever => true,
        Repeat::Times(n) => rounds < n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, event_text};

    #[test]
    fn programs_do_what_the_table_says() {
        let table = include_str!("../tests/programs.txt");
        let mut lines = 0;
        for case in table.split("\ncase ").skip(1) {
            let (name, rest) = case.split_once('\n').unwrap();
            let (text, steps) = rest.split_once("does\n").unwrap();
            let job = Job::parse(&format!("risetime-job 1\n{text}end\n")).unwrap();
            let task = &job.tasks[0];
            let mut program = Counter::of(task);
            for line in steps.lines().take_while(|l| !l.is_empty()) {
                let now = line.split(' ').next().unwrap();
                let mut said = now.to_string();
                let at = Instant(now.parse().unwrap());
                let mut marks = Vec::new();
                let step = loop {
                    let step = program.next(task, at);
                    marks.extend(
                        std::iter::from_fn(|| program.next_mark()).map(|mark| mark.to_string()),
                    );
                    match step {
                        Some(Step::Phase(phase)) => said += &format!(" enter {phase}"),
                        step => break step,
                    }
                };
                said += &match step {
                    None => " stuck".into(),
                    Some(Step::Run(work, _)) => format!(" run {}", work.0),
                    Some(Step::Pieces { until, piece }) => {
                        format!(" pieces {} until {}", piece.0, until.0)
                    }
                    Some(Step::Log) => " log".into(),
                    Some(Step::SleepUntil(at)) => format!(" sleep {}", at.0),
                    Some(Step::Exit) => " exit".into(),
                    Some(Step::Busy(span)) => format!(" busy {}", span.0),
                    Some(Step::SharedTimer(timer, period, began)) => {
                        format!(" shared {} {} from {}", timer.index, period.0, began.0)
                    }
                    Some(Step::Act(done)) => format!(" {}", event_text(&done)),
                    Some(Step::Phase(_)) => " ?".into(),
                };
                // Marks stand where a case is about them.
                if line.contains(" | ") {
                    said += &format!(" | {}", marks.join("; "));
                }
                assert_eq!(said, line, "{name}");
                lines += 1;
            }
        }
        assert!(lines > 25, "{lines}");
    }

    #[test]
    fn only_a_program_that_never_sleeps_again_is_busy_for_ever() {
        let of = |text: &str| {
            let job = Job::parse(&format!("risetime-job 1\n{text}end\n")).unwrap();
            let task = &job.tasks[0];
            let mut p = Counter::of(task);
            while let Some(Step::Phase(_)) = p.next(task, Instant(0)) {}
            p.busy_for_ever(task)
        };
        assert!(of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\n"));
        assert!(of("task t 0 1 * * * *\nphase p -1 * * * *\nrun 5\nruntime 6 1\n"));
        assert!(!of("task t 0 1 * * * *\nphase p 1 * * * *\nrun 5\n"));
        assert!(!of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\nsleep 1\n"));
        assert!(!of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\nphase q 1 * * * *\nrun 5\n"));
        assert!(!of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\ntimer 0 9\n"));
    }
}
