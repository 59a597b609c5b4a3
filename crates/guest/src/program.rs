//! A task's program counter: from phases and loops to the next thing it does.
//!
//! A program means here what it means in the simulator's `program.rs`; `tests/programs.txt` is a table
//! of cases that both are held to.

use risetime_job::job::{Attr, Task};
use risetime_job::mark::{JobMark, Marks};
use risetime_job::{Event, Expiry, Repeat, Timer, duty};
use risetime_kernel::units::{Instant, Span};

/// Next step of a task. Times are CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Work worth this time at capacity 1024 and top frequency.
    Run(u64),
    /// Run until then.
    RunUntil(u64),
    /// Sleep until then.
    SleepUntil(u64),
    /// Have a CPU for this long.
    Busy(u64),
    /// Use a shared timer; this task's timers count from `began`.
    SharedTimer { timer: Timer, period: Span, began: u64 },
    /// Something that concerns other tasks: an event that takes no time of its own.
    Act(Event),
    /// The program is over.
    Exit,
}

/// Steps that take no time in a row, before the program is called stuck.
const MAX_IDLE_STEPS: u32 = 1_000_000;

/// Position of a task in its program.
pub(crate) struct Program<'a> {
    task: &'a Task,
    phase: usize,
    event: usize,
    task_rounds: u32,
    phase_rounds: u32,
    entered: bool,
    begun: Option<u64>,
    timers: Vec<Option<Instant>>,
    /// Time at which the task's last `duty` ended.
    round: Option<Instant>,
    /// Marks of the task's jobs, if it has any.
    marks: Option<Marks>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(task: &'a Task) -> Program<'a> {
        Program {
            task,
            phase: 0,
            event: 0,
            task_rounds: 0,
            phase_rounds: 0,
            entered: false,
            begun: None,
            timers: Vec::new(),
            round: None,
            marks: Marks::of(task),
        }
    }

    /// Advances to the next step that takes time. `on_phase` is told of each phase entered on
    /// the way, with its index and attributes. `None`: it makes no progress.
    pub(crate) fn next(
        &mut self,
        now: u64,
        mut on_phase: impl FnMut(usize, &Attr),
    ) -> Option<Step> {
        let begun = Instant(*self.begun.get_or_insert(now));
        self.goes_on(begun);
        for _ in 0..MAX_IDLE_STEPS {
            let Some(phase) = self.task.phases.get(self.phase) else {
                self.task_rounds = self.task_rounds.saturating_add(1);
                if more(self.task.repeat, self.task_rounds) {
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
                on_phase(self.phase, &phase.attr);
            }
            let Some(&event) = phase.events.get(self.event) else {
                self.phase_rounds = self.phase_rounds.saturating_add(1);
                self.event = 0;
                if !more(phase.repeat, self.phase_rounds) {
                    self.phase += 1;
                    (self.phase_rounds, self.entered) = (0, false);
                }
                continue;
            };
            self.event += 1;
            if let Some(marks) = &mut self.marks
                && !matches!(event, Event::Timer { .. })
            {
                marks.event(&event);
            }
            match event {
                Event::Run(Span(0))
                | Event::Runtime(Span(0))
                | Event::Sleep(Span(0))
                | Event::Busy(Span(0)) => {}
                Event::Run(work) | Event::RunOf { work, .. } => return Some(Step::Run(work.0)),
                Event::Runtime(span) => return Some(Step::RunUntil(now + span.0)),
                Event::Sleep(span) => return Some(Step::SleepUntil(now + span.0)),
                Event::Busy(span) => return Some(Step::Busy(span.0)),
                Event::Timer { timer, period } if timer.shared => {
                    return Some(Step::SharedTimer { timer, period, began: begun.0 });
                }
                Event::Timer { timer, period } => {
                    let index = timer.index as usize;
                    if self.timers.len() <= index {
                        self.timers.resize(index + 1, None);
                    }
                    let reference = &mut self.timers[index];
                    let expiry = timer.expiry(reference, period, begun, Instant(now));
                    self.timer_used(timer, period, &expiry);
                    match expiry.sleeps {
                        Some(until) => return Some(Step::SleepUntil(until.0)),
                        None => self.goes_on(begun),
                    }
                }
                Event::Duty(percent) => {
                    let until = duty(&mut self.round, percent, begun, Instant(now));
                    if until.0 > now {
                        return Some(Step::SleepUntil(until.0));
                    }
                    self.goes_on(begun);
                }
                act => return Some(Step::Act(act)),
            }
        }
        None
    }

    /// Whether it will from here on be busy for ever: it need not count its work then.
    ///
    /// True in a phase that is repeated for ever, and in a program of one phase repeated for
    /// ever, if it only runs. (In the second case the phase is entered again and again; those
    /// marks are not made.)
    pub(crate) fn busy_for_ever(&self) -> bool {
        let Some(phase) = self.task.phases.get(self.phase) else { return false };
        let endless = phase.repeat == Repeat::Forever
            || (self.task.repeat == Repeat::Forever && self.task.phases.len() == 1);
        endless && phase.events.iter().all(|e| matches!(e, Event::Run(_) | Event::Runtime(_)))
    }

    /// Marks the use of a timer.
    pub(crate) fn timer_used(&mut self, timer: Timer, period: Span, expiry: &Expiry) {
        if let Some(marks) = &mut self.marks {
            marks.timer(timer, period, expiry);
        }
    }

    /// Drains the marks that have come up about the task's jobs, oldest first.
    pub(crate) fn take_marks(&mut self) -> impl Iterator<Item = JobMark> + '_ {
        self.marks.iter_mut().flat_map(|marks| marks.take())
    }

    fn goes_on(&mut self, begun: Instant) {
        if let Some(marks) = &mut self.marks {
            marks.goes_on(begun);
        }
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
    use risetime_job::job::{Job, event_text};

    /// `NOW VERB TIME`, `NOW exit` or `NOW stuck`, as in `tests/programs.txt`.
    fn said(now: u64, step: Option<Step>, entered: &[usize]) -> String {
        let phases: String = entered.iter().map(|p| format!(" enter {p}")).collect();
        let step = match step {
            None => "stuck".into(),
            Some(Step::Run(ns)) => format!("run {ns}"),
            Some(Step::RunUntil(at)) => format!("until {at}"),
            Some(Step::SleepUntil(at)) => format!("sleep {at}"),
            Some(Step::Exit) => "exit".into(),
            Some(Step::Busy(ns)) => format!("busy {ns}"),
            Some(Step::SharedTimer { timer, period, began, .. }) => {
                format!("shared {} {} from {began}", timer.index, period.0)
            }
            Some(Step::Act(event)) => event_text(&event),
        };
        format!("{now}{phases} {step}")
    }

    #[test]
    fn programs_do_what_the_table_says() {
        let table = include_str!("../tests/programs.txt");
        let mut cases = 0;
        for case in table.split("\ncase ").skip(1) {
            let (name, rest) = case.split_once('\n').unwrap();
            let (program, steps) = rest.split_once("does\n").unwrap();
            let job = Job::parse(&format!("risetime-job 1\n{program}end\n")).unwrap();
            let mut program = Program::new(&job.tasks[0]);
            for line in steps.lines().take_while(|l| !l.is_empty()) {
                let now = line.split(' ').next().unwrap().parse().unwrap();
                let mut entered = Vec::new();
                let step = program.next(now, |phase, _| entered.push(phase));
                // Marks stand where a case is about them.
                let marks: Vec<_> = program.take_marks().map(|mark| mark.to_string()).collect();
                let mut said = said(now, step, &entered);
                if line.contains(" | ") {
                    said += &format!(" | {}", marks.join("; "));
                }
                assert_eq!(said, line, "{name}");
                cases += 1;
            }
        }
        assert!(cases > 25, "{cases}");
    }

    #[test]
    fn only_a_program_that_never_sleeps_again_is_busy_for_ever() {
        let of = |text: &str| {
            let job = Job::parse(&format!("risetime-job 1\n{text}end\n")).unwrap();
            let mut p = Program::new(&job.tasks[0]);
            p.next(0, |_, _| ());
            p.busy_for_ever()
        };
        assert!(of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\n"));
        assert!(of("task t 0 1 * * * *\nphase p -1 * * * *\nrun 5\nruntime 6\n"));
        assert!(!of("task t 0 1 * * * *\nphase p 1 * * * *\nrun 5\n"));
        assert!(!of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\nsleep 1\n"));
        assert!(!of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\nphase q 1 * * * *\nrun 5\n"));
        assert!(!of("task t 0 -1 * * * *\nphase p 1 * * * *\nrun 5\ntimer 0 9\n"));
    }
}
