//! Jobs, from what tasks say of them: which there were, and what became of each.
//!
//! ```text
//! ui          ├─ job 0 ─┤gives   ├─ job 1 ─┤gives  ├─ job 2 ─┤gives
//! render                ├── 0 ───────────────────────┤├─── 2 ───┤        1 is dropped: 2 came before it was begun
//! ```
//!
//! What a job is and when it is due: `docs/jobs.md`. A job is told of once it is over. Memory: the jobs that are under
//! way, of each task of a chain those that were given to it and are not taken yet.

use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{JobMark, JobSpec};
use std::collections::VecDeque;

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the job in its stream, from 0, merged ones counted.
    pub number: u64,
    /// Time at which it was released.
    pub release: Instant,
    /// Time at which it is due. `None`: as long as no timer has said.
    pub due: Option<Instant>,
    /// True if the job was released when the program came to it, and not when a timer said.
    pub put_off: bool,
    /// Amount that the job's tasks have taken for it so far, of what [`Chains::took`] counts.
    pub taken: u128,
    /// Time by which its work took longer than at full speed, in ns · 2⁻³².
    longer: u128,
    /// Time that it waited for tasks to begin it.
    waited: Span,
    /// Time since which the job waits for a task.
    waits: Option<Instant>,
    /// Time since which it has been with the task of the chain that has it now, waiting for it or
    /// worked at.
    since: Instant,
    /// Task of the chain with which it has been longest, by its place there, and how long.
    pub longest: (usize, Span),
}

impl Job {
    fn new(number: u64, release: Instant, due: Option<Instant>) -> Job {
        let (since, longest) = (release, (0, Span(0)));
        Job {
            number,
            release,
            due,
            put_off: false,
            taken: 0,
            longer: 0,
            waited: Span(0),
            waits: Some(release),
            since,
            longest,
        }
    }

    /// The time by which the job has taken longer than at full speed, in ns: what its tasks took
    /// longer while they worked at it, and what it waited for them.
    pub fn longer(&self) -> u64 {
        self.waited.0 + (self.longer >> 32) as u64
    }

    /// Returns the job as it is once a task has begun it.
    fn begun(self, now: u64) -> Job {
        let waited = self.waits.map_or(0, |since| now.saturating_sub(since.0));
        Job { waited: Span(self.waited.0 + waited), waits: None, ..self }
    }

    /// Returns the job as it is once the task of this place is done with it.
    fn leaves(self, stage: usize, now: u64) -> Job {
        let took = Span(now.saturating_sub(self.since.0));
        let longest = if took > self.longest.1 { (stage, took) } else { self.longest };
        Job { since: Instant(now), longest, waits: Some(Instant(now)), ..self.begun(now) }
    }
}

/// Fate of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The last task of the chain has come to where it ends.
    Done,
    /// The job's period passed before the program came back to its relative timer: no work was done
    /// for it.
    Merged,
    /// A task behind in the chain took a newer one in its place.
    Dropped,
    /// None of these by the run's end.
    Unfinished,
}

/// A job that is over, or several in a row that end alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// Stream of the job, by its place among the header's.
    pub stream: usize,
    /// The first one.
    pub job: Job,
    /// Number of jobs.
    pub n: u64,
    /// Each of them is released, and due, this long after the one before.
    pub period: Span,
    /// Fate of the jobs.
    pub fate: Fate,
    /// Time at which the jobs were over.
    pub at: Instant,
}

impl Over {
    /// The time at which the job `k` behind the first is due, if that is known.
    pub fn due(&self, k: u64) -> Option<Instant> {
        self.job.due.map(|due| Instant(due.0 + k * self.period.0))
    }

    /// Returns those of the jobs that were released at `from` or later; `None`: none was.
    pub fn released_since(&self, from: Instant) -> Option<Over> {
        let before = from.0.saturating_sub(self.job.release.0).div_ceil(self.period.0.max(1));
        let left = self.n.checked_sub(before).filter(|left| *left > 0)?;
        let release = Instant(self.job.release.0 + before * self.period.0);
        let (number, due) = (self.job.number + before, self.due(before));
        Some(Over { job: Job { number, release, due, ..self.job }, n: left, ..*self })
    }

    /// Counts the jobs that were due by when they were over.
    pub fn due_by_then(&self) -> u64 {
        let since = self.job.due.and_then(|due| self.at.0.checked_sub(due.0));
        since.map_or(0, |since| (since / self.period.0.max(1)).saturating_add(1).min(self.n))
    }
}

/// The part of a chain that one of its tasks has.
#[derive(Default)]
struct Stage {
    /// Given by the task before, and not taken yet.
    inbox: VecDeque<Job>,
    /// Job that the task works at.
    current: Option<Job>,
    /// True if the task has given the task behind its input since its last beginning.
    gave: bool,
    /// True once the task has begun its job, until it is done with it.
    works: bool,
    /// Amount that the task had taken at its last mark, and by how much longer it took than at full
    /// speed.
    taken: u128,
    longer: u128,
}

/// One stream of jobs.
struct Stream {
    /// Number of the stream in the run, from 0.
    index: usize,
    /// Number of jobs that were released, merged ones counted.
    released: u64,
    deadline: Option<u64>,
    /// The last period that a timer told; the first one's before that, where somebody waits for it in vain.
    period: Option<u64>,
    declared: Option<u64>,
    absolute: bool,
    stages: Vec<Stage>,
    /// Amount that the stream's tasks have taken for no job.
    for_none: u128,
}

/// The streams of jobs of a run, each through the tasks of its chain.
#[derive(Default)]
pub struct Chains {
    streams: Vec<Stream>,
    /// Stream and stage of each task.
    of: Vec<Option<(u32, u32)>>,
}

impl Chains {
    /// The chains of a [`Header`](crate::Header).
    pub fn new(jobs: &[JobSpec]) -> Chains {
        let mut all = Chains::default();
        for (index, spec) in jobs.iter().enumerate() {
            for (stage, task) in spec.tasks.iter().enumerate() {
                let task = TaskId(*task).index();
                if all.of.len() <= task {
                    all.of.resize(task + 1, None);
                }
                all.of[task] = Some((index as u32, stage as u32));
            }
            all.streams.push(Stream {
                index,
                released: 0,
                deadline: spec.deadline.map(|d| d.0),
                period: None,
                declared: spec.period.map(|p| p.0),
                absolute: false,
                stages: spec.tasks.iter().map(|_| Stage::default()).collect(),
                for_none: 0,
            });
        }
        all
    }

    /// Takes in a mark about the jobs of `task`; `tell` is called with the jobs that are over with
    /// it.
    pub fn mark(
        &mut self,
        task: TaskId,
        now: Instant,
        mark: JobMark,
        tell: &mut impl FnMut(&Over),
    ) {
        let Some((stream, stage)) = self.of.get(task.index()).copied().flatten() else { return };
        self.streams[stream as usize].mark(stage as usize, now.0, mark, tell);
    }

    /// The place among the header's streams of the one whose jobs `task` works at.
    pub fn stream_of(&self, task: TaskId) -> Option<usize> {
        self.of.get(task.index()).copied().flatten().map(|(stream, _)| stream as usize)
    }

    /// `task` has taken `total` of something by now, in a unit of the caller's: what is more than at its last mark is
    /// of the job at which it works. To be told before each of its marks, and at the end.
    pub fn took(&mut self, task: TaskId, total: u128) {
        if let Some((stream, stage)) = self.of.get(task.index()).copied().flatten() {
            self.streams[stream as usize].took(stage as usize, total);
        }
    }

    /// `task` has taken `total` longer for all it did by now than at full speed, in ns · 2⁻³². To be told likewise.
    pub fn took_longer(&mut self, task: TaskId, total: u128) {
        if let Some((stream, stage)) = self.of.get(task.index()).copied().flatten() {
            self.streams[stream as usize].took_longer(stage as usize, total);
        }
    }

    /// Iterates over what the tasks of each stream have taken while they had no job: before the
    /// first input, or behind the end of a job that those behind have done already.
    pub fn for_none(&self) -> impl Iterator<Item = u128> + '_ {
        self.streams.iter().map(|s| s.for_none)
    }

    /// `task` was created at `since` and has not run by the run's end, so that it has said nothing: its first job is
    /// released all the same.
    pub fn waits(&mut self, task: TaskId, since: Instant) {
        if let Some((stream, 0)) = self.of.get(task.index()).copied().flatten() {
            self.streams[stream as usize].waits(since);
        }
    }

    /// Ends all jobs with the run, at `end`.
    pub fn cut_off(&mut self, end: Instant, tell: &mut impl FnMut(&Over)) {
        self.streams.iter_mut().for_each(|s| s.cut_off(end.0, tell));
    }
}

impl Stream {
    fn mark(&mut self, stage: usize, now: u64, mark: JobMark, tell: &mut impl FnMut(&Over)) {
        match mark {
            JobMark::Begins { release, period, .. } if stage == 0 => {
                self.period = period.map(|p| p.0).or(self.period);
                let (put_off, release) = (release.is_none(), release.unwrap_or(Instant(now)));
                // A job that has gone on is behind this stage.
                let known = self.stages[0].current.filter(|_| !self.stages[0].gave);
                let job = known.unwrap_or_else(|| Job::new(self.number(), release, None));
                let due = self.deadline.or(period.map(|p| p.0)).map(|d| Instant(release.0 + d));
                let (due, put_off) = (job.due.or(due), job.put_off || put_off);
                let own = &mut self.stages[0];
                own.current = Some(Job { due, put_off, ..job.begun(now) });
                (own.gave, own.works) = (false, true);
            }
            JobMark::Begins { counted, .. } => {
                self.forgets(stage);
                let own = &mut self.stages[stage];
                (own.gave, own.works) = (false, true);
                let taken = if counted { own.inbox.pop_front() } else { own.inbox.pop_back() };
                own.current = taken.map(|job| job.begun(now));
                if !counted {
                    self.drops(stage, now, tell);
                }
            }
            JobMark::Gives => self.gives(stage, now),
            JobMark::Timer { due, release, period, absolute, worked } => {
                (self.period, self.absolute) = (Some(period.0), absolute);
                if stage == 0
                    && let Some(job) = &mut self.stages[0].current
                {
                    job.due = Some(self.deadline.map_or(due, |d| Instant(job.release.0 + d)));
                }
                if !worked {
                    self.forgets(stage);
                }
                self.ends(stage, now, tell);
                if stage == 0 {
                    let past = release.0.saturating_sub(due.0);
                    let merged = past.checked_div(period.0).unwrap_or(0);
                    self.passed(merged, due.0, period.0, Fate::Merged, now, tell);
                    let relative = self.deadline.unwrap_or(period.0);
                    let next = Instant(release.0 + relative);
                    let job = Job::new(self.number(), release, Some(next));
                    self.stages[0].current = Some(Job { put_off: release > due, ..job });
                    self.stages[0].gave = false;
                }
            }
            JobMark::Waits => self.ends(stage, now, tell),
            JobMark::Over { worked } => {
                if worked {
                    self.ends(stage, now, tell);
                }
                self.forgets(stage);
            }
        }
    }

    /// Notes that the task of this stage has taken `total` longer by now. What it does beside a job
    /// that has gone on does not hold that up.
    fn took_longer(&mut self, stage: usize, total: u128) {
        let own = &mut self.stages[stage];
        let more = total - std::mem::replace(&mut own.longer, total);
        let job = own.current.as_mut().filter(|_| own.works && !own.gave);
        job.into_iter().for_each(|job| job.longer += more);
    }

    /// Notes that the task of this stage has taken `total` by now. The job at which it works may
    /// have gone on already.
    fn took(&mut self, stage: usize, total: u128) {
        let more = total - std::mem::replace(&mut self.stages[stage].taken, total);
        let (own, behind) = self.stages.split_at_mut(stage + 1);
        let own = &mut own[stage];
        let job = match own.current.as_mut().filter(|_| own.works) {
            Some(job) if own.gave => {
                let same = |j: &&mut Job| j.number == job.number;
                // Furthest behind: those on the way have gone on from there.
                behind
                    .iter_mut()
                    .rev()
                    .find_map(|s| s.current.iter_mut().chain(&mut s.inbox).find(same))
            }
            job => job,
        };
        match job {
            Some(job) => job.taken += more,
            None => self.for_none += more,
        }
    }

    /// Forgets what this stage has in hand, which was no job.
    fn forgets(&mut self, stage: usize) {
        let own = &mut self.stages[stage];
        own.works = false;
        let job = own.current.take().filter(|_| !own.gave);
        self.for_none += job.map_or(0, |job| job.taken);
    }

    /// The next job's.
    fn number(&mut self) -> u64 {
        self.released += 1;
        self.released - 1
    }

    /// `job` is over now.
    fn over(&self, job: Job, fate: Fate, now: u64, tell: &mut impl FnMut(&Over)) {
        let (stream, at) = (self.index, Instant(now));
        tell(&Over { stream, job, n: 1, period: Span(0), fate, at });
    }

    /// `n` jobs were released from `release` on and never begun.
    fn passed(
        &mut self,
        n: u64,
        release: u64,
        period: u64,
        fate: Fate,
        now: u64,
        tell: &mut impl FnMut(&Over),
    ) {
        if n == 0 {
            return;
        }
        let due = Some(Instant(release + self.deadline.unwrap_or(period)));
        let job = Job::new(self.released, Instant(release), due);
        self.released += n;
        let (stream, at) = (self.index, Instant(now));
        tell(&Over { stream, job, n, period: Span(period), fate, at });
    }

    /// Drops whatever a stage that keeps no count has not taken.
    fn drops(&mut self, stage: usize, now: u64, tell: &mut impl FnMut(&Over)) {
        while let Some(job) = self.stages[stage].inbox.pop_front() {
            self.over(job.leaves(stage, now), Fate::Dropped, now, tell);
        }
    }

    fn gives(&mut self, stage: usize, now: u64) {
        let [own, next, ..] = &mut self.stages[stage..] else { return };
        let job = own.current.filter(|_| !std::mem::replace(&mut own.gave, true));
        next.inbox.extend(job.map(|job| job.leaves(stage, now)));
    }

    /// The job at which the task works is over for it.
    fn ends(&mut self, stage: usize, now: u64, tell: &mut impl FnMut(&Over)) {
        self.stages[stage].works = false;
        if stage + 1 < self.stages.len() {
            // What it has not said by a signal the one behind sees by itself.
            self.gives(stage, now);
            self.stages[stage].current = None;
            return;
        }
        if let Some(job) = self.stages[stage].current.take() {
            self.over(job.leaves(stage, now), Fate::Done, now, tell);
        }
    }

    fn waits(&mut self, since: Instant) {
        if self.released > 0 {
            return;
        }
        self.period = self.declared;
        let due = self.deadline.or(self.period).map(|d| Instant(since.0 + d));
        self.stages[0].current = Some(Job::new(self.number(), since, due));
    }

    fn cut_off(&mut self, end: u64, tell: &mut impl FnMut(&Over)) {
        let ahead = self.stages[0].current;
        let last = self.stages.len() - 1;
        let mut open: Vec<Job> = Vec::new();
        for (i, stage) in self.stages.iter_mut().enumerate() {
            let leaves = |job: Job| job.leaves(i, end);
            open.extend(stage.inbox.drain(..).map(leaves));
            // What has been given is in the inbox of the one behind, or taken from there.
            open.extend(stage.current.take().filter(|_| i == last || !stage.gave).map(leaves));
        }
        let (open, not_yet): (Vec<Job>, Vec<Job>) =
            open.into_iter().partition(|job| job.release.0 <= end);
        self.for_none += not_yet.iter().map(|job| job.taken).sum::<u128>();
        open.into_iter().for_each(|job| self.over(job, Fate::Unfinished, end, tell));
        // Periods that have passed while the head is still at one.
        let period = self.period.filter(|period| *period > 0);
        if let (Some(job), Some(period)) = (ahead.filter(|j| j.release.0 <= end), period) {
            let due = job.release.0 + period;
            let passed = if due <= end { (end - due) / period + 1 } else { 0 };
            if self.absolute {
                self.passed(passed, due, period, Fate::Unfinished, end, tell);
            } else {
                self.passed(passed.saturating_sub(1), due, period, Fate::Merged, end, tell);
            }
        }
    }
}
