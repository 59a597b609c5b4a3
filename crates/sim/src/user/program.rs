//! A task's program counter: from phases and loops to the next thing it does.

use risetime_kernel::units::{Instant, Span};
use risetime_model::workload::{
    Event, Expiry, JobMark, Marks, Phase, Repeat, TaskSpec, Timer, duty,
};
use std::sync::Arc;

/// Next step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The task enters the phase of this index.
    Phase(usize),
    /// Work worth this time at capacity 1024 and top frequency; of which kind, 0 the plain one.
    Run(Span, u16),
    /// Run until then.
    RunUntil(Instant),
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

/// Position of a task in its program.
#[repr(C)]
pub(crate) struct Program {
    spec: Arc<[TaskSpec]>,
    task: usize,
    /// The task whose phases it follows: those of many instances are the same, and read from one place
    /// they stay in the cache.
    like: usize,
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
}

impl Program {
    pub(crate) fn new(spec: Arc<[TaskSpec]>, task: usize) -> Program {
        Program::of_instance(spec, task, task)
    }

    /// The program of `task`, which does the same as `like` if that is so.
    pub(crate) fn of_instance(spec: Arc<[TaskSpec]>, task: usize, like: usize) -> Program {
        let does = |i: usize| (&spec[i].phases, spec[i].repeat);
        let like = if does(task) == does(like) { like } else { task };
        Program {
            marks: Marks::of(&spec[task]).map(Box::new),
            spec,
            task,
            like,
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
        }
    }

    /// Timers count from `at`, not from when it first runs.
    pub(crate) fn count_timers_from(&mut self, at: Instant) {
        self.began = Some(at);
    }

    pub(crate) fn spec(&self) -> &TaskSpec {
        &self.spec[self.task]
    }
    /// The task whose phases this program follows.
    pub(crate) fn like(&self) -> usize {
        self.like
    }
    /// The phase of this number.
    pub(crate) fn phase(&self, index: usize) -> &Phase {
        &self.spec[self.like].phases[index]
    }
    /// Takes the oldest mark that has come up about the task's jobs.
    pub(crate) fn next_mark(&mut self) -> Option<JobMark> {
        self.marks.as_mut()?.next_mark()
    }
    /// Marks the use of a shared timer.
    pub(crate) fn timer_used(&mut self, timer: Timer, period: Span, expiry: Expiry) {
        if let Some(marks) = &mut self.marks {
            marks.timer(timer, period, &expiry);
        }
    }
    /// The number of its events that the program has begun.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }
    /// The specifications of all tasks, and the number of its own.
    pub(crate) fn spec_arc(&self) -> (Arc<[TaskSpec]>, usize) {
        (Arc::clone(&self.spec), self.task)
    }
    /// The events that it may yet come to: of a phase or a list of phases that is gone through again all of them.
    pub(crate) fn ahead(&self) -> impl Iterator<Item = &Event> {
        let spec = &self.spec[self.like];
        let now = spec.phases.get(self.phase);
        let stays = now.is_some_and(|phase| phase.repeat == Repeat::Forever);
        let again = !stays && more(spec.repeat, self.task_rounds + 1);
        let phases = spec.phases.iter().enumerate().filter(move |(i, _)| match stays {
            true => *i == self.phase,
            false => again || *i >= self.phase,
        });
        phases.flat_map(move |(i, phase)| {
            let whole = again || i != self.phase || more(phase.repeat, self.phase_rounds + 1);
            phase.events.iter().skip(if whole { 0 } else { self.event })
        })
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

    /// The next step; events of no time are passed over. `None`: it makes no progress.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Step> {
        let began = *self.began.get_or_insert(now);
        self.goes_on(began);
        if self.steps.0 != now {
            self.steps = (now, 0);
        }
        while self.steps.1 < MAX_IDLE_STEPS {
            self.steps.1 += 1;
            let spec = &self.spec[self.like];
            let Some(phase) = spec.phases.get(self.phase) else {
                self.task_rounds += 1;
                if more(spec.repeat, self.task_rounds) {
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
                self.phase_rounds += 1;
                self.event = 0;
                if !more(phase.repeat, self.phase_rounds) {
                    self.phase += 1;
                    (self.phase_rounds, self.entered) = (0, false);
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
                | Event::Runtime(Span(0))
                | Event::Sleep(Span(0))
                | Event::Busy(Span(0)) => {}
                Event::Run(work) => return Some(Step::Run(work, 0)),
                Event::RunOf { work, kind } => return Some(Step::Run(work, kind as u16 + 1)),
                Event::Runtime(span) => return Some(Step::RunUntil(now + span)),
                Event::Sleep(span) => return Some(Step::SleepUntil(now + span)),
                Event::Busy(span) => return Some(Step::Busy(span)),
                Event::Timer { timer, period } if timer.shared => {
                    let began = self.began.unwrap_or(now);
                    return Some(Step::SharedTimer(timer, period, began));
                }
                Event::Timer { timer, period } => {
                    let expiry = self.timer(timer, period, now);
                    self.timer_used(timer, period, expiry);
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

    fn goes_on(&mut self, began: Instant) {
        if let Some(marks) = &mut self.marks {
            marks.goes_on(began);
        }
    }

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
    use risetime_job::job;
    use risetime_model::workload::Attr;

    fn program(phases: Vec<Phase>, repeat: Repeat) -> Program {
        let spec = TaskSpec { comm: "t".into(), repeat, phases, ..TaskSpec::default() };
        Program::new(vec![spec].into(), 0)
    }
    fn phase(repeat: Repeat, events: Vec<Event>) -> Phase {
        Phase { name: "p".into(), repeat, events, attr: Attr::default() }
    }
    /// The next step that is no phase.
    fn step(p: &mut Program, now: u64) -> Step {
        loop {
            match p.next(Instant(now)) {
                Some(Step::Phase(_)) => {}
                step => return step.unwrap(),
            }
        }
    }
    fn steps(p: &mut Program, n: usize) -> Vec<Step> {
        (0..n).map(|_| step(p, 5)).collect()
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
            Step::Run(Span(7), 0),
            Step::SleepUntil(Instant(8)),
            Step::Run(Span(7), 0),
            Step::SleepUntil(Instant(8)),
            Step::RunUntil(Instant(6)),
        ];
        assert_eq!(steps(&mut p, 5), round);
        assert_eq!(steps(&mut p, 5), round);
        assert_eq!(steps(&mut p, 2), [Step::Exit, Step::Exit]);
    }

    #[test]
    fn a_missed_timer_goes_on_at_once_and_starts_anew() {
        let timer = Event::Timer { timer: Timer::own(0), period: Span(10) };
        let mut p = program(
            vec![phase(Repeat::Forever, vec![timer, Event::Run(Span(1))])],
            Repeat::Times(1),
        );
        assert_eq!(step(&mut p, 100), Step::SleepUntil(Instant(110)));
        assert_eq!(step(&mut p, 110), Step::Run(Span(1), 0));
        // 25 ns late: the expiry at 120 is past, so the work follows at once …
        assert_eq!(step(&mut p, 145), Step::Run(Span(1), 0));
        // … and the next period counts from there.
        assert_eq!(step(&mut p, 146), Step::SleepUntil(Instant(155)));
    }

    #[test]
    fn a_timer_counts_from_the_start_of_its_task() {
        let events = vec![
            Event::Run(Span(4)),
            Event::Timer { timer: Timer::own(0), period: Span(10) },
            Event::Timer { timer: Timer::own(1), period: Span(30) },
        ];
        let mut p = program(vec![phase(Repeat::Times(1), events)], Repeat::Times(1));
        assert_eq!(step(&mut p, 100), Step::Run(Span(4), 0));
        assert_eq!(step(&mut p, 104), Step::SleepUntil(Instant(110)));
        assert_eq!(step(&mut p, 110), Step::SleepUntil(Instant(130)));
    }

    #[test]
    fn instances_share_a_program_and_others_keep_their_own() {
        let task = |comm: &str, work: u64, times: u32| TaskSpec {
            comm: comm.into(),
            delay: Span(work),
            repeat: Repeat::Times(times),
            phases: vec![phase(Repeat::Times(1), vec![Event::Run(Span(work))])],
            ..TaskSpec::default()
        };
        let specs: Arc<[TaskSpec]> =
            vec![task("a-0", 1, 1), task("a-1", 1, 1), task("b", 2, 1), task("c", 1, 2)].into();
        let like = |task: usize| Program::of_instance(Arc::clone(&specs), task, 0).like();
        assert_eq!([0, 1, 2, 3].map(like), [0, 0, 2, 3]);
        let mut other = Program::of_instance(Arc::clone(&specs), 2, 0);
        assert_eq!((step(&mut other, 0), &*other.spec().comm), (Step::Run(Span(2), 0), "b"));
    }

    /// The task of a job of the agent, as this room has it.
    fn spec(task: &job::Task) -> TaskSpec {
        let phases = task.phases.iter().map(|p| phase(p.repeat, p.events.clone())).collect();
        let stage = task.stage;
        TaskSpec { comm: "t".into(), repeat: task.repeat, phases, stage, ..TaskSpec::default() }
    }

    /// The agent on the real kernel is held to the same table.
    #[test]
    fn programs_do_what_the_table_says() {
        let table = include_str!("../../../guest/tests/programs.txt");
        let mut lines = 0;
        for case in table.split("\ncase ").skip(1) {
            let (name, rest) = case.split_once('\n').unwrap();
            let (text, steps) = rest.split_once("does\n").unwrap();
            let job = job::Job::parse(&format!("risetime-job 1\n{text}end\n")).unwrap();
            let mut program = Program::new(vec![spec(&job.tasks[0])].into(), 0);
            for line in steps.lines().take_while(|l| !l.is_empty()) {
                let now = line.split(' ').next().unwrap();
                let mut said = now.to_string();
                let at = Instant(now.parse().unwrap());
                let mut marks = Vec::new();
                let step = loop {
                    let step = program.next(at);
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
                    Some(Step::RunUntil(at)) => format!(" until {}", at.0),
                    Some(Step::SleepUntil(at)) => format!(" sleep {}", at.0),
                    Some(Step::Exit) => " exit".into(),
                    Some(Step::Busy(span)) => format!(" busy {}", span.0),
                    Some(Step::SharedTimer(timer, period, began)) => {
                        format!(" shared {} {} from {}", timer.index, period.0, began.0)
                    }
                    Some(Step::Act(done)) => format!(" {}", job::event_text(&done)),
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
    fn a_program_without_time_is_noticed() {
        let mut p =
            program(vec![phase(Repeat::Forever, vec![Event::Run(Span(0))])], Repeat::Forever);
        assert_eq!(p.next(Instant(0)), Some(Step::Phase(0)));
        assert_eq!(p.next(Instant(0)), None);
    }
}
