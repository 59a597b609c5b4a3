//! A task's program: the tasks of a workload, and where one of them is in its own (`job`'s program counter, which the
//! agent on a real kernel has, too).

use risetime_kernel::units::{Instant, Span};
pub(crate) use risetime_model::workload::Step;
use risetime_model::workload::{Counter, Event, Expiry, JobMark, Phase, TaskSpec, Timer};
use std::sync::Arc;

/// Position of a task in its program.
#[repr(C)]
pub(crate) struct Program {
    spec: Arc<[TaskSpec]>,
    task: usize,
    /// The task whose phases it follows: those of many instances are the same, and read from one place
    /// they stay in the cache.
    like: usize,
    counter: Counter,
    /// True if it takes mutexes in rounds that never pause: there it matters who is first at one.
    contends: bool,
}

impl Program {
    pub(crate) fn new(spec: Arc<[TaskSpec]>, task: usize) -> Program {
        Program::of_instance(spec, task, task)
    }

    /// The program of `task`, which does the same as `like` if that is so.
    pub(crate) fn of_instance(spec: Arc<[TaskSpec]>, task: usize, like: usize) -> Program {
        let does = |i: usize| (&spec[i].phases, spec[i].repeat);
        let like = if does(task) == does(like) { like } else { task };
        let (counter, contends) = (Counter::of(&spec[task]), spec[task].contends());
        Program { counter, spec, task, like, contends }
    }

    /// Timers count from `at`, not from when it first runs.
    pub(crate) fn count_timers_from(&mut self, at: Instant) {
        self.counter.count_timers_from(at);
    }

    pub(crate) fn spec(&self) -> &TaskSpec {
        &self.spec[self.task]
    }
    /// Whether it takes mutexes in rounds that never pause.
    pub(crate) fn contends(&self) -> bool {
        self.contends
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
        self.counter.next_mark()
    }
    /// Marks the use of a shared timer.
    pub(crate) fn timer_used(&mut self, timer: Timer, period: Span, expiry: Expiry) {
        self.counter.timer_used(timer, period, &expiry);
    }
    /// The number of its events that the program has begun.
    pub(crate) fn done(&self) -> u64 {
        self.counter.done()
    }
    /// The specifications of all tasks, and the number of its own.
    pub(crate) fn spec_arc(&self) -> (Arc<[TaskSpec]>, usize) {
        (Arc::clone(&self.spec), self.task)
    }
    /// The events that it may yet come to: of a phase or a list of phases that is gone through again all of them.
    pub(crate) fn ahead(&self) -> impl Iterator<Item = &Event> {
        self.counter.ahead(&self.spec[self.like])
    }

    /// The phase that holds the next event; past the end, the number of phases.
    pub(crate) fn upcoming_phase(&self) -> usize {
        self.counter.upcoming_phase(self.spec())
    }

    /// The next step; events of no time are passed over. `None`: it makes no progress.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Step> {
        self.counter.next(&self.spec[self.like], now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::workload::{Attr, Repeat};

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
                phase(Repeat::Times(1), vec![Event::Runtime { time: Span(1), piece: Span(1) }]),
            ],
            Repeat::Times(2),
        );
        let round = [
            Step::Run(Span(7), 0),
            Step::SleepUntil(Instant(8)),
            Step::Run(Span(7), 0),
            Step::SleepUntil(Instant(8)),
            Step::Pieces { until: Instant(6), piece: Span(1) },
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

    #[test]
    fn a_program_without_time_is_noticed() {
        let mut p =
            program(vec![phase(Repeat::Forever, vec![Event::Run(Span(0))])], Repeat::Forever);
        assert_eq!(p.next(Instant(0)), Some(Step::Phase(0)));
        assert_eq!(p.next(Instant(0)), None);
    }
}
