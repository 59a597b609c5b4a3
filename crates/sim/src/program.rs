//! A task's program counter: from phases and loops to the next thing it does.

use risetime_kernel::units::{Instant, Span};
use risetime_model::workload::{Attr, Event, Repeat, TaskSpec};
use std::sync::Arc;

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Work worth this time at capacity 1024 and top frequency.
    Run(Span),
    /// Run until then.
    RunUntil(Instant),
    /// Sleep until then.
    SleepUntil(Instant),
    /// The program is over.
    Exit,
}

/// Steps that take no time in a row, before the program is called stuck. The workload's
/// validation rejects endless loops without time, so only a mistake of ours gets here.
const MAX_IDLE_STEPS: u32 = 1_000_000;

/// Where a task is in its program.
pub(crate) struct Program {
    spec: Arc<[TaskSpec]>,
    task: usize,
    phase: usize,
    event: usize,
    task_rounds: u32,
    phase_rounds: u32,
    entered: bool,
    timers: Vec<Option<Instant>>,
    /// When it began to run: where every timer starts.
    began: Option<Instant>,
}

impl Program {
    pub(crate) fn new(spec: Arc<[TaskSpec]>, task: usize) -> Program {
        Program {
            spec,
            task,
            phase: 0,
            event: 0,
            task_rounds: 0,
            phase_rounds: 0,
            entered: false,
            timers: Vec::new(),
            began: None,
        }
    }

    /// Timers count from `at`, not from when it first runs.
    pub(crate) fn count_timers_from(&mut self, at: Instant) {
        self.began = Some(at);
    }

    pub(crate) fn spec(&self) -> &TaskSpec {
        &self.spec[self.task]
    }
    /// The specifications of all tasks.
    pub(crate) fn spec_arc(&self) -> Arc<[TaskSpec]> {
        Arc::clone(&self.spec)
    }
    /// The phase that holds the next event; past the end, the number of phases.
    pub(crate) fn upcoming_phase(&self) -> usize {
        let spec = self.spec();
        match spec.phases.get(self.phase) {
            Some(phase)
                if self.event < phase.events.len() || more(phase.repeat, self.phase_rounds + 1) =>
            {
                self.phase
            }
            _ if self.phase + 1 >= spec.phases.len() && more(spec.repeat, self.task_rounds + 1) => {
                0
            }
            _ => self.phase + 1,
        }
    }

    /// Advances to the next step that takes time. `on_phase` is told of each phase entered on
    /// the way, with its index and attributes. `None`: it makes no progress.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        mut on_phase: impl FnMut(usize, &str, &Attr),
    ) -> Option<Step> {
        self.began.get_or_insert(now);
        for _ in 0..MAX_IDLE_STEPS {
            let spec = &self.spec[self.task];
            let Some(phase) = spec.phases.get(self.phase) else {
                self.task_rounds += 1;
                if more(spec.repeat, self.task_rounds) {
                    (self.phase, self.event, self.phase_rounds, self.entered) = (0, 0, 0, false);
                    continue;
                }
                return Some(Step::Exit);
            };
            if !self.entered {
                self.entered = true;
                on_phase(self.phase, &phase.name, &phase.attr);
            }
            let Some(&event) = phase.events.get(self.event) else {
                self.phase_rounds += 1;
                self.event = 0;
                if !more(phase.repeat, self.phase_rounds) {
                    self.phase += 1;
                    (self.phase_rounds, self.entered) = (0, false);
                }
                continue;
            };
            self.event += 1;
            match event {
                Event::Run(Span(0)) | Event::Runtime(Span(0)) | Event::Sleep(Span(0)) => {}
                Event::Run(work) => return Some(Step::Run(work)),
                Event::Runtime(span) => return Some(Step::RunUntil(now + span)),
                Event::Sleep(span) => return Some(Step::SleepUntil(now + span)),
                Event::Timer { timer, period } => {
                    if let Some(until) = self.timer(timer as usize, period, now) {
                        return Some(Step::SleepUntil(until));
                    }
                }
            }
        }
        None
    }

    /// The expiry to wait for; `None` if it is past already: the timer then starts anew.
    fn timer(&mut self, index: usize, period: Span, now: Instant) -> Option<Instant> {
        if self.timers.len() <= index {
            self.timers.resize(index + 1, None);
        }
        let expiry = self.timers[index].or(self.began).unwrap_or(now) + period;
        let missed = expiry <= now;
        self.timers[index] = Some(if missed { now } else { expiry });
        (!missed).then_some(expiry)
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
    use risetime_guest::job;
    use risetime_model::workload::Phase;

    fn program(phases: Vec<Phase>, repeat: Repeat) -> Program {
        let spec =
            TaskSpec { comm: "t".into(), delay: Span(0), repeat, phases, attr: Attr::default() };
        Program::new(vec![spec].into(), 0)
    }
    fn phase(repeat: Repeat, events: Vec<Event>) -> Phase {
        Phase { name: "p".into(), repeat, events, attr: Attr::default() }
    }
    fn steps(p: &mut Program, n: usize) -> Vec<Step> {
        (0..n).map(|_| p.next(Instant(5), |_, _, _| ()).unwrap()).collect()
    }

    #[test]
    fn loops_nest_and_end() {
        let mut p = program(
            vec![
                phase(Repeat::Times(2), vec![Event::Run(Span(7)), Event::Sleep(Span(3))]),
                phase(Repeat::Times(1), vec![Event::Runtime(Span(1))]),
            ],
            Repeat::Times(2),
        );
        let round = [
            Step::Run(Span(7)),
            Step::SleepUntil(Instant(8)),
            Step::Run(Span(7)),
            Step::SleepUntil(Instant(8)),
            Step::RunUntil(Instant(6)),
        ];
        assert_eq!(steps(&mut p, 5), round);
        assert_eq!(steps(&mut p, 5), round);
        assert_eq!(steps(&mut p, 2), [Step::Exit, Step::Exit]);
    }

    #[test]
    fn a_missed_timer_goes_on_at_once_and_starts_anew() {
        let timer = Event::Timer { timer: 0, period: Span(10) };
        let mut p = program(
            vec![phase(Repeat::Forever, vec![timer, Event::Run(Span(1))])],
            Repeat::Times(1),
        );
        assert_eq!(p.next(Instant(100), |_, _, _| ()), Some(Step::SleepUntil(Instant(110))));
        assert_eq!(p.next(Instant(110), |_, _, _| ()), Some(Step::Run(Span(1))));
        // 25 ns late: the expiry at 120 is past, so the work follows at once …
        assert_eq!(p.next(Instant(145), |_, _, _| ()), Some(Step::Run(Span(1))));
        // … and the next period counts from there.
        assert_eq!(p.next(Instant(146), |_, _, _| ()), Some(Step::SleepUntil(Instant(155))));
    }

    #[test]
    fn a_timer_counts_from_the_start_of_its_task() {
        let events = vec![
            Event::Run(Span(4)),
            Event::Timer { timer: 0, period: Span(10) },
            Event::Timer { timer: 1, period: Span(30) },
        ];
        let mut p = program(vec![phase(Repeat::Times(1), events)], Repeat::Times(1));
        assert_eq!(p.next(Instant(100), |_, _, _| ()), Some(Step::Run(Span(4))));
        assert_eq!(p.next(Instant(104), |_, _, _| ()), Some(Step::SleepUntil(Instant(110))));
        assert_eq!(p.next(Instant(110), |_, _, _| ()), Some(Step::SleepUntil(Instant(130))));
    }

    /// The task of a job of the agent, as this room has it.
    fn spec(task: &job::Task) -> TaskSpec {
        let repeat = |r: Option<u32>| r.map_or(Repeat::Forever, Repeat::Times);
        let event = |e: &job::Event| match *e {
            job::Event::Run(ns) => Event::Run(Span(ns)),
            job::Event::Runtime(ns) => Event::Runtime(Span(ns)),
            job::Event::Sleep(ns) => Event::Sleep(Span(ns)),
            job::Event::Timer(timer, ns) => Event::Timer { timer, period: Span(ns) },
        };
        let phases = task
            .phases
            .iter()
            .map(|p| phase(repeat(p.repeat), p.events.iter().map(event).collect()))
            .collect();
        TaskSpec {
            comm: "t".into(),
            delay: Span(0),
            repeat: repeat(task.repeat),
            phases,
            attr: Attr::default(),
        }
    }

    /// The agent on the real kernel is held to the same table.
    #[test]
    fn programs_do_what_the_table_says() {
        let table = include_str!("../../guest/tests/programs.txt");
        let mut lines = 0;
        for case in table.split("\ncase ").skip(1) {
            let (name, rest) = case.split_once('\n').unwrap();
            let (text, steps) = rest.split_once("does\n").unwrap();
            let job = job::Job::parse(&format!("risetime-job 1\n{text}end\n")).unwrap();
            let mut program = Program::new(vec![spec(&job.tasks[0])].into(), 0);
            for line in steps.lines().take_while(|l| !l.is_empty()) {
                let now = line.split(' ').next().unwrap();
                let mut said = now.to_string();
                let step = program.next(Instant(now.parse().unwrap()), |phase, _, _| {
                    said += &format!(" enter {phase}")
                });
                said += &match step {
                    None => " stuck".into(),
                    Some(Step::Run(work)) => format!(" run {}", work.0),
                    Some(Step::RunUntil(at)) => format!(" until {}", at.0),
                    Some(Step::SleepUntil(at)) => format!(" sleep {}", at.0),
                    Some(Step::Exit) => " exit".into(),
                };
                assert_eq!(said, line, "{name}");
                lines += 1;
            }
        }
        assert!(lines > 25, "{lines}");
    }

    #[test]
    fn a_program_without_time_is_noticed() {
        let mut p =
            program(vec![phase(Repeat::Forever, vec![Event::Run(Span(0))])], Repeat::Forever);
        assert_eq!(p.next(Instant(0), |_, _, _| ()), None);
    }
}
