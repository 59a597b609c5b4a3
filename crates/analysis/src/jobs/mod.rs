//! Jobs: what was released, when it was due, and whether it was done by then.
//!
//! ```text
//! released   a timer's expiry, or when the task goes on behind its input
//! due        release + deadline; without one, the expiry of the timer that ends the job
//! done       the last task of the chain comes to where its job ends
//! response   from release to done          lateness   from due to done, less than 0 if in time (slack)
//!
//! ui          ├─ job 0 ─┤gives   ├─ job 1 ─┤gives  ├─ job 2 ─┤gives
//! render                ├── 0 ───────────────────────┤├─── 2 ───┤        1 is dropped: 2 came before it was begun
//! ```
//!
//! Each job is one of these:
//!
//! | | |
//! |---|---|
//! | done | in time, or *late*: after it was due |
//! | merged | its timer is relative, and a whole period passed before the program came back to it: no work was done for it |
//! | dropped | work was done for it, and a task behind in the chain took a newer one in its place: it waits in a condition, which keeps no count (a semaphore or a barrier does, and nothing is dropped) |
//! | unfinished | none of these by the run's end; *overdue* if it was due by then |
//!
//! *missed* = late + merged + dropped + overdue. Percentiles are of jobs that are done, and of overdue ones as long as they
//! have taken: if there are any, a percentile that falls on one is a lower bound. Errors as in
//! [`Latency`](crate::Latency).
//!
//! ```text
//! energy     of a job: of the CPUs while a task of its chain worked at it, from where that task began it to where it was
//!            done with it, or the job was, if that is earlier
//! a job      of the whole run: of the CPUs while its tasks ran, whatever for, by jobs done
//!
//! Σ jobs done + Σ others (dropped, unfinished) + what was for no job = of the CPUs while its tasks ran      in 10⁻¹⁵ J, exactly
//! ```
//!
//! For no job is what a task does while it has none: before its first input, or behind the end of a job that those
//! behind it have done already. A piece of time is counted once: what a task has taken so far is asked for at its marks, and
//! the difference is its present job's.
//!
//! With a start that is left out (`--skip-ms`) all of this is of the jobs that are released later, and of what is for no job
//! from then on.

mod percentiles;
#[cfg(test)]
mod tests;

pub use crate::histogram::Percentiles;

use crate::latency::group_name;
use crate::machine::{femto_to_milli, ms};
use crate::result::Piece;
use percentiles::Signed;
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{JobMark, JobSpec};
use risetime_trace::jobs::{Chains, Fate, Over};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The jobs of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    /// Name of the jobs: the task's, or what the workload's `"job"` says.
    pub name: String,
    /// The tasks of the chain; of several instances one stands for all.
    pub tasks: Vec<String>,
    /// The workload says more of them than that there is a timer: a chain, a deadline, a name.
    pub declared: bool,
    /// Released by the run's end, merged ones counted.
    pub released: u64,
    /// Number of released jobs that were due by the run's end.
    pub due: u64,
    /// True if due times hang on timers alone, and not on when the program comes to them: each job
    /// was released by a timer, and none later than that said.
    pub by_timer: bool,
    /// Done.
    pub done: u64,
    /// Done after they were due.
    pub late: u64,
    /// Jobs without work of their own, merged into a later one.
    pub merged: u64,
    /// Superseded in the chain.
    pub dropped: u64,
    /// Jobs not done by the run's end.
    pub unfinished: u64,
    /// Unfinished jobs that were due by then.
    pub overdue: u64,
    /// Done in a second, from the workload's start, or from where jobs count: frames a second. `None`: nothing counts.
    pub per_second: Option<f64>,
    /// Times from release to done; `None`: none is done or overdue.
    pub response: Option<Percentiles>,
    /// Times from due to done.
    pub lateness: Option<Percentiles>,
    /// Times by which jobs that are done took longer than at full speed, of the response: while a
    /// task of the chain was awake and worked at one, ∫(1 − s) dt; and all the time that one waited
    /// for the task whose turn it was to begin it.
    pub longer: Option<Percentiles>,
    /// The latest job, of those that are done or overdue.
    pub latest: Option<Latest>,
    /// Jobs that were late or overdue, the latest first: at most [`WORST`].
    pub worst: Vec<Missed>,
    /// While its tasks ran, by jobs done; `None`: none is done, or the power is unknown.
    pub mj_per_job: Option<f64>,
    /// Energy of each job that is done, in mJ; `None`: unknown, or none is done.
    pub energy: Option<Percentiles>,
}

/// The job that was latest.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// The task that begins it, which tells instances apart.
    pub comm: Option<String>,
    /// Number of the job among its task's, from 0, merged ones counted.
    pub number: u64,
    /// Time at which it was due, in ms.
    pub due_ms: f64,
    /// Time after that at which it was done, in ms.
    pub lateness_ms: f64,
}

/// Number of late jobs that are kept.
pub const WORST: usize = 20;

/// A job that was missed, or several in a row that were missed alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The task that begins it, which tells instances apart.
    pub comm: String,
    /// Number of the job, from 0, merged ones counted; of several the first, as all that follows.
    pub number: u64,
    /// Number of jobs in a row.
    pub n: u64,
    /// `late`, `merged`, `dropped`, `overdue`.
    pub how: &'static str,
    /// Time at which it was released, in ms.
    pub release_ms: f64,
    /// Time at which it was due, in ms; `None`: no timer had said.
    pub due_ms: Option<f64>,
    /// Time at which it was done, of a late one, in ms; else when it was merged or dropped, or the
    /// run's end.
    pub over_ms: f64,
    /// Time after its due time at which that was, of one that was late or overdue, in ms.
    pub lateness_ms: Option<f64>,
    /// The task of its chain with which it was longest, waiting for it or worked at, and how long; `None`: it was with one
    /// alone.
    pub longest: Option<(String, f64)>,
}

impl Jobs {
    /// The number of jobs of each kind, with its name in CSV and `--expect`.
    pub fn counts(&self) -> [(&'static str, u64); 9] {
        [
            ("released", self.released),
            ("due", self.due),
            ("done", self.done),
            ("missed", self.missed()),
            ("late", self.late),
            ("merged", self.merged),
            ("dropped", self.dropped),
            ("unfinished", self.unfinished),
            ("overdue", self.overdue),
        ]
    }

    /// The number of jobs that were not done in time.
    pub fn missed(&self) -> u64 {
        self.late + self.merged + self.dropped + self.overdue
    }
}

/// Energies are kept as times are, a thousandth of a thousandth of what is told: nJ.
const FEMTO_PER_NANO: u128 = 1_000_000;

/// The sums of all streams of a name.
#[derive(Default)]
struct Named {
    name: String,
    tasks: Vec<TaskId>,
    counts: Counts,
    /// Some was released when the program came to it.
    put_off: bool,
    /// Due times of jobs of which all else is known.
    ahead: BinaryHeap<Reverse<u64>>,
    response: Signed,
    lateness: Signed,
    /// (lateness, stream and number, due) of the latest so far, ns.
    latest: Option<(i64, (usize, u64), u64)>,
    /// Jobs that were late, the latest first.
    worst: Vec<Gone>,
    /// A deadline, or a chain.
    declared: bool,
    energy: Energy,
    /// Times by which jobs that are done took longer than at full speed.
    longer: Signed,
    /// The streams of the run so far.
    streams: Vec<usize>,
    /// Jobs that were done, and their responses in ns, if they are asked for.
    listed: Option<Vec<(Piece, u64)>>,
}

/// The energy by whose it is, in 10⁻¹⁵ J, and the distribution of that of jobs done, in nJ.
#[derive(Default)]
struct Energy {
    done: u128,
    /// Energy of jobs that are not done.
    others: u128,
    /// Energy of no job.
    none: u128,
    /// A task ran where the power is unknown.
    unknown: bool,
    each: Signed,
}

/// A job that was missed, or several in a row.
#[derive(Clone, Copy)]
struct Gone {
    over: Over,
    how: &'static str,
    /// Lateness in ns, if that is known.
    lateness: Option<i64>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    due: u64,
    done: u64,
    late: u64,
    merged: u64,
    dropped: u64,
    unfinished: u64,
    overdue: u64,
}

/// All jobs of a run.
#[derive(Default)]
pub(crate) struct Streams {
    chains: Chains,
    names: Vec<Named>,
    /// Place among the names, by stream.
    named: Vec<usize>,
    /// Tasks of the chain, by stream.
    tasks: Vec<Vec<TaskId>>,
    /// Jobs that were released before are not counted.
    from: Instant,
    /// Time at which the workload starts.
    start: Instant,
    /// Energy that was for no job before, by stream.
    none_before: Vec<u128>,
    /// Missed jobs that are not reported yet, if they are asked for.
    news: Option<Vec<Gone>>,
}

impl Streams {
    pub(crate) fn new(jobs: &[JobSpec]) -> Streams {
        let mut all = Streams { chains: Chains::new(jobs), ..Streams::default() };
        for spec in jobs {
            let tasks: Vec<TaskId> = spec.tasks.iter().map(|i| TaskId(*i)).collect();
            let known = all.names.iter().position(|named| named.name == spec.name);
            let name = known.unwrap_or(all.names.len());
            if known.is_none() {
                let named = Named { name: spec.name.clone(), ..Named::default() };
                let declared = has_more(spec);
                all.names.push(Named { tasks: tasks.clone(), declared, ..named });
            }
            all.names[name].streams.push(all.named.len());
            all.named.push(name);
            all.tasks.push(tasks);
        }
        all
    }

    /// Sets when the workload starts: due times count from `start`.
    pub(crate) fn starts(self, start: Instant) -> Streams {
        Streams { start, ..self }
    }

    /// Leaves out jobs that are released before `from`. `tells`: missed jobs are kept for
    /// [`Streams::missed`].
    pub(crate) fn since(self, from: Instant, tells: bool) -> Streams {
        Streams { from, news: tells.then(Vec::new), ..self }
    }

    /// `task` has taken so much energy by now, in 10⁻¹⁵ J (`None`: that is unknown), and so much longer than at full speed, in
    /// ns · 2⁻³²: to be told before each of its marks, and at the end.
    pub(crate) fn spent(&mut self, task: TaskId, energy: Option<u128>, longer: u128) {
        match energy {
            Some(energy) => self.chains.took(task, energy),
            None => {
                let of = self.chains.stream_of(task).map(|stream| self.named[stream]);
                of.into_iter().for_each(|name| self.names[name].energy.unknown = true);
            }
        }
        self.chains.took_longer(task, longer);
    }

    /// Takes in a mark about the jobs of `task`.
    pub(crate) fn mark(&mut self, task: TaskId, now: u64, mark: JobMark) {
        self.tell(|chains, mut tell| chains.mark(task, Instant(now), mark, &mut tell));
    }

    /// Counts each job that `of` tells to be over to its name, if it is not left out.
    fn tell(&mut self, of: impl FnOnce(&mut Chains, &mut dyn FnMut(&Over))) {
        let Streams { chains, names, named, from, news, .. } = self;
        of(chains, &mut |over| {
            let Some(over) = over.released_since(*from) else { return };
            let missed = names[named[over.stream]].over(&over);
            if let (Some(news), Some(missed)) = (news.as_mut(), missed) {
                news.push(missed);
            }
        });
    }

    /// The start that is left out is over.
    pub(crate) fn begin(&mut self) {
        self.none_before = self.chains.for_none().collect();
    }

    /// Takes the jobs that were missed since the last call, with the name of the jobs; `comm`: the
    /// name of a task that was there.
    pub(crate) fn missed(
        &mut self,
        mut comm: impl FnMut(TaskId) -> Option<String>,
    ) -> Vec<(String, Missed)> {
        let news = self.news.as_mut().map(std::mem::take).unwrap_or_default();
        let name = |gone: &Gone| self.names[self.named[gone.over.stream]].name.clone();
        news.iter().map(|gone| (name(gone), gone.told(&self.tasks, &mut comm))).collect()
    }

    /// `task` was created then, and has never run.
    pub(crate) fn waits(&mut self, task: TaskId, since: u64) {
        self.chains.waits(task, Instant(since));
    }

    /// Makes a list of the jobs of this name.
    pub(crate) fn list(&mut self, name: &str) {
        let named = self.names.iter_mut().filter(|named| named.name == name);
        named.for_each(|named| named.listed = Some(Vec::new()));
    }

    /// Takes the list of jobs that were done: number, and ns from release to done.
    pub(crate) fn listed(&mut self) -> Vec<(Piece, u64)> {
        self.names.iter_mut().filter_map(|named| named.listed.take()).flatten().collect()
    }

    /// Cuts off what is under way at the run's end, `end`, in ns.
    pub(crate) fn cut_off(&mut self, end: u64) {
        self.tell(|chains, mut tell| chains.cut_off(Instant(end), &mut tell));
        let before = self.none_before.iter().copied().chain(std::iter::repeat(0));
        for ((none, before), name) in self.chains.for_none().zip(before).zip(&self.named) {
            self.names[*name].energy.none += none - before;
        }
    }

    /// The distributions of the responses of declared jobs, by name.
    pub(crate) fn distributions(
        &self,
        mut comm: impl FnMut(TaskId) -> Option<String>,
    ) -> Vec<(String, Vec<(f64, f64)>)> {
        let declared = self.names.iter().filter(|named| named.is_declared(&mut comm));
        let drawn = declared.filter(|named| named.response.above.total() > 0);
        drawn.map(|named| (named.name.clone(), named.response.above.steps())).collect()
    }

    /// The results by `end`, where the run was [cut off](Streams::cut_off); `comm`: the name of a
    /// task that was there.
    pub(crate) fn finish(
        self,
        end: u64,
        mut comm: impl FnMut(TaskId) -> Option<String>,
    ) -> Vec<Jobs> {
        let mut result = Vec::new();
        for mut named in self.names {
            named.passes(end);
            let c = named.counts;
            let over = c.done + c.merged + c.dropped;
            if over + c.unfinished == 0 {
                continue;
            }
            let worst = named.worst.iter().map(|gone| gone.told(&self.tasks, &mut comm)).collect();
            let declared = named.is_declared(&mut comm);
            let energy = Some(named.energy).filter(|energy| !energy.unknown && c.done > 0);
            let whole = |e: &Energy| femto_to_milli(e.done + e.others + e.none);
            result.push(Jobs {
                declared,
                worst,
                name: named.name,
                tasks: named.tasks.iter().filter_map(|id| comm(*id)).collect(),
                released: over + c.unfinished,
                due: c.due,
                by_timer: !named.put_off,
                done: c.done,
                late: c.late,
                merged: c.merged,
                dropped: c.dropped,
                unfinished: c.unfinished,
                overdue: c.overdue,
                per_second: end
                    .checked_sub(self.from.max(self.start).0)
                    .filter(|ns| *ns > 0)
                    .map(|ns| c.done as f64 * 1e9 / ns as f64),
                response: named.response.percentiles(),
                lateness: named.lateness.percentiles(),
                longer: named.longer.percentiles(),
                latest: named.latest.map(|(lateness, (stream, number), due)| Latest {
                    comm: self.tasks[stream].first().and_then(|id| comm(*id)),
                    number,
                    due_ms: ms(due),
                    lateness_ms: lateness as f64 / 1e6,
                }),
                mj_per_job: energy.as_ref().map(|e| whole(e) / c.done as f64),
                energy: energy.and_then(|e| e.each.percentiles()),
            });
        }
        result
    }
}

impl Gone {
    /// Describes the missed job for a reader; `tasks`: of each stream.
    fn told(
        &self,
        tasks: &[Vec<TaskId>],
        mut comm: impl FnMut(TaskId) -> Option<String>,
    ) -> Missed {
        let Gone { over: Over { stream, job, n, at, .. }, how, lateness } = *self;
        let chain = tasks.get(stream).map_or(&[][..], Vec::as_slice);
        let (stage, Span(longest)) = job.longest;
        let mut of = |stage: usize| comm(*chain.get(stage)?);
        let with = of(stage).filter(|_| longest > 0 && chain.len() > 1);
        Missed {
            comm: of(0).unwrap_or_default(),
            number: job.number,
            n,
            how,
            release_ms: ms(job.release.0),
            due_ms: job.due.map(|due| ms(due.0)),
            over_ms: ms(at.0),
            lateness_ms: lateness.map(|ns| ns as f64 / 1e6),
            longest: with.map(|task| (task, ms(longest))),
        }
    }
}

/// Whether the workload says more of these jobs of a task than that there is a timer: a deadline, a chain, a name.
pub(crate) fn is_declared(spec: &JobSpec, comm: &str) -> bool {
    has_more(spec) || spec.name != group_name(comm)
}

fn has_more(spec: &JobSpec) -> bool {
    spec.deadline.is_some() || spec.tasks.len() > 1
}

impl Named {
    /// Whether the jobs are declared, as [`is_declared`] says.
    fn is_declared(&self, mut comm: impl FnMut(TaskId) -> Option<String>) -> bool {
        let first = self.tasks.first().and_then(|id| comm(*id));
        self.declared || first.is_none_or(|comm| group_name(&comm) != self.name)
    }

    /// Returns what was missed.
    fn over(&mut self, over: &Over) -> Option<Gone> {
        self.put_off |= over.job.put_off;
        let gone = |how| Some(Gone { over: *over, how, lateness: None });
        match over.fate {
            Fate::Done => self.done(over),
            Fate::Merged => {
                self.counts.merged += over.n;
                let past = over.due_by_then();
                self.counts.due += past;
                self.all_due(past, over);
                gone("merged")
            }
            Fate::Dropped => {
                self.counts.dropped += over.n;
                self.energy.others += over.job.taken;
                self.all_due(0, over);
                gone("dropped")
            }
            Fate::Unfinished => self.cut_off(over),
        }
    }

    fn done(&mut self, over: &Over) -> Option<Gone> {
        let (job, now) = (over.job, over.at.0);
        self.counts.done += 1;
        let response = now.saturating_sub(job.release.0);
        let instance = self.streams.iter().position(|stream| *stream == over.stream).unwrap_or(0);
        let piece = Piece { instance: instance as u32, number: job.number };
        self.listed.iter_mut().for_each(|all| all.push((piece, response)));
        self.response.add(response as i64);
        self.longer.add(job.longer().min(response) as i64);
        self.energy.done += job.taken;
        self.energy.each.add((job.taken / FEMTO_PER_NANO) as i64);
        let due = job.due?;
        let lateness = now as i64 - due.0 as i64;
        self.counts.late += u64::from(lateness > 0);
        self.due(due.0, now);
        let gone = Gone { over: *over, how: "late", lateness: Some(lateness) };
        self.late(gone, lateness, due.0);
        (lateness > 0).then_some(gone)
    }

    fn late(&mut self, gone: Gone, lateness: i64, due: u64) {
        self.lateness.add(lateness);
        if self.latest.is_none_or(|(most, ..)| lateness > most) {
            self.latest = Some((lateness, (gone.over.stream, gone.over.job.number), due));
        }
        let full = self.worst.len() == WORST;
        let less = self.worst.last().is_some_and(|last| gone.lateness <= last.lateness);
        if lateness > 0 && !(full && less) {
            let at = self.worst.partition_point(|worse| worse.lateness >= gone.lateness);
            self.worst.insert(at, gone);
            self.worst.truncate(WORST);
        }
    }

    /// Counts jobs that are not done at the run's end as unfinished.
    fn cut_off(&mut self, over: &Over) -> Option<Gone> {
        let end = over.at.0;
        self.counts.unfinished += over.n;
        self.energy.others += over.job.taken;
        let overdue = over.due_by_then();
        self.counts.overdue += overdue;
        self.counts.due += overdue;
        for (k, due) in (0..overdue).filter_map(|k| Some((k, over.due(k)?))) {
            self.response.add((end - over.job.release.0 - k * over.period.0) as i64);
            let lateness = (end - due.0) as i64;
            let mut one = Over { n: 1, ..*over };
            one.job.number += k;
            one.job.release.0 += k * over.period.0;
            one.job.due = Some(due);
            let gone = Gone { over: one, how: "overdue", lateness: Some(lateness) };
            self.late(gone, lateness, due.0);
        }
        let first = over.due(0).filter(|_| overdue > 0)?;
        let lateness = Some((end - first.0) as i64);
        Some(Gone { over: Over { n: overdue, ..*over }, how: "overdue", lateness })
    }

    /// Counts the due times of jobs `from ..` of this batch, numbered from its first one.
    fn all_due(&mut self, from: u64, over: &Over) {
        let dues = (from..over.n).filter_map(|k| over.due(k));
        dues.for_each(|due| self.due(due.0, over.at.0));
    }

    /// A job of which all is known is due then: it counts once that is past.
    fn due(&mut self, due: u64, now: u64) {
        self.ahead.push(Reverse(due));
        self.passes(now);
    }

    fn passes(&mut self, now: u64) {
        while self.ahead.peek().is_some_and(|Reverse(due)| *due <= now) {
            self.ahead.pop();
            self.counts.due += 1;
        }
    }
}
