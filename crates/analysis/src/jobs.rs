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

use crate::latency::{Histogram, group_name};
use crate::machine::{femto_to_milli, ms};
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{JobMark, JobSpec};
use risetime_trace::jobs::{Chains, Fate, Over};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The jobs of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    /// What they are called: the task, or what the workload's `"job"` says.
    pub name: String,
    /// The tasks of the chain; of several instances one stands for all.
    pub tasks: Vec<String>,
    /// The workload says more of them than that there is a timer: a chain, a deadline, a name.
    pub declared: bool,
    /// Released by the run's end, merged ones counted.
    pub released: u64,
    /// Of those, due by the run's end.
    pub due: u64,
    /// When they are due hangs on timers alone, and not on when the program comes to them: each was released by a timer, and
    /// none later than that said.
    pub by_timer: bool,
    /// Done.
    pub done: u64,
    /// Done after they were due.
    pub late: u64,
    /// Without work of their own.
    pub merged: u64,
    /// Superseded in the chain.
    pub dropped: u64,
    /// Not done by the run's end.
    pub unfinished: u64,
    /// Of those, due by then.
    pub overdue: u64,
    /// Done in a second, from the workload's start, or from where jobs count: frames a second. `None`: nothing counts.
    pub per_second: Option<f64>,
    /// From release to done; `None`: none is done or overdue.
    pub response: Option<Percentiles>,
    /// From due to done.
    pub lateness: Option<Percentiles>,
    /// The one that was latest, of those that are done or overdue.
    pub latest: Option<Latest>,
    /// Those that were late or overdue, the latest first: at most [`WORST`].
    pub worst: Vec<Missed>,
    /// While its tasks ran, by jobs done; `None`: none is done, or the power is unknown.
    pub mj_per_job: Option<f64>,
    /// Of those that are done, what each took, in mJ; `None` likewise.
    pub energy: Option<Percentiles>,
}

/// The job that was latest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latest {
    /// Which, from 0, merged ones counted.
    pub number: u64,
    /// When it was due.
    pub due_ms: f64,
    /// How long after that it was done.
    pub lateness_ms: f64,
}

/// So many late jobs are kept.
pub const WORST: usize = 20;

/// A job that was missed, or several in a row that were missed alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The task that begins it, which tells instances apart.
    pub comm: String,
    /// Which, from 0, merged ones counted; of several the first, as all that follows.
    pub number: u64,
    /// How many.
    pub n: u64,
    /// `late`, `merged`, `dropped`, `overdue`.
    pub how: &'static str,
    /// When it was released.
    pub release_ms: f64,
    /// When it was due; `None`: no timer had said.
    pub due_ms: Option<f64>,
    /// When it was done, of a late one; else when it was merged or dropped, or the run's end.
    pub over_ms: f64,
    /// How long after it was due that is, of one that was late or overdue.
    pub lateness_ms: Option<f64>,
    /// The task of its chain with which it was longest, waiting for it or worked at, and how long; `None`: it was with one
    /// alone.
    pub longest: Option<(String, f64)>,
}

impl Jobs {
    /// How many there were of each kind, with its name in CSV and `--expect`.
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

    /// How many were not done in time.
    pub fn missed(&self) -> u64 {
        self.late + self.merged + self.dropped + self.overdue
    }
}

/// Of a time in ms, or an energy in mJ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Half of them are at most that.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p99_9: f64,
    /// The largest.
    pub max: f64,
    /// The smallest.
    pub min: f64,
    /// Their sum by how many they are.
    pub mean: f64,
}

impl Percentiles {
    /// Each with its name in CSV and `--expect`.
    pub fn named(&self) -> [(&'static str, f64); 8] {
        [
            ("min", self.min),
            ("mean", self.mean),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99_9", self.p99_9),
            ("max", self.max),
        ]
    }
}

/// Energies are kept as times are, a thousandth of a thousandth of what is told: nJ.
const FEMTO_PER_NANO: u128 = 1_000_000;

/// Times that may be negative, in ns.
#[derive(Default)]
struct Signed {
    above: Histogram,
    below: Histogram,
    sum: i128,
    min: i64,
    max: i64,
}

impl Signed {
    fn add(&mut self, ns: i64) {
        let first = self.above.total() + self.below.total() == 0;
        (self.min, self.max) = if first { (ns, ns) } else { (self.min.min(ns), self.max.max(ns)) };
        self.sum += i128::from(ns);
        let of = if ns < 0 { &mut self.below } else { &mut self.above };
        of.add(ns.unsigned_abs());
    }

    /// The time that so many of a thousand take at most.
    fn quantile(&self, permille: u64) -> i64 {
        let (below, above) = (self.below.total(), self.above.total());
        let all = u128::from(below + above);
        let rank = (all * u128::from(permille)).div_ceil(1000).max(1) as u64;
        let found = if rank <= below {
            // The rank-th smallest is the one of that rank from the end, by size.
            -(self.below.ranked(below - rank + 1) as i64)
        } else {
            self.above.ranked(rank - below) as i64
        };
        found.clamp(self.min, self.max)
    }

    fn percentiles(&self) -> Option<Percentiles> {
        let n = self.above.total() + self.below.total();
        if n == 0 {
            return None;
        }
        let ms = |ns: i64| ns as f64 / 1e6;
        let at = |permille| ms(self.quantile(permille));
        Some(Percentiles {
            p50: at(500),
            p90: at(900),
            p95: at(950),
            p99: at(990),
            p99_9: at(999),
            max: ms(self.max),
            min: ms(self.min),
            mean: self.sum as f64 / n as f64 / 1e6,
        })
    }
}

/// What streams of a name have come to.
#[derive(Default)]
struct Named {
    name: String,
    tasks: Vec<TaskId>,
    counts: Counts,
    /// Some was released when the program came to it.
    put_off: bool,
    /// When jobs are due of which all else is known.
    ahead: BinaryHeap<Reverse<u64>>,
    response: Signed,
    lateness: Signed,
    /// (lateness, number, due) of the latest so far, ns.
    latest: Option<(i64, u64, u64)>,
    /// Those that were late, the latest first.
    worst: Vec<Gone>,
    /// A deadline, or a chain.
    declared: bool,
    energy: Energy,
    /// Which were done, and their responses in ns, if somebody asks.
    listed: Option<Vec<(u64, u64)>>,
}

/// Whose it is, in 10⁻¹⁵ J, and how that of jobs done is distributed, in nJ.
#[derive(Default)]
struct Energy {
    done: u128,
    /// Of jobs that are not.
    others: u128,
    /// Of no job's.
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
    /// In ns, if that is known.
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
    /// By stream: its place among the names.
    named: Vec<usize>,
    /// By stream: the tasks of its chain.
    tasks: Vec<Vec<TaskId>>,
    /// Jobs that were released before are not counted.
    from: Instant,
    /// When the workload starts.
    start: Instant,
    /// By stream: what was for no job before.
    none_before: Vec<u128>,
    /// What was missed and is not told yet, if somebody wants to hear it.
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
            all.named.push(name);
            all.tasks.push(tasks);
        }
        all
    }

    /// Those of a workload that starts then.
    pub(crate) fn starts(self, start: Instant) -> Streams {
        Streams { start, ..self }
    }

    /// Those that are released before `from` do not count. `tells`: what is missed is asked for ([`Streams::missed`]).
    pub(crate) fn since(self, from: Instant, tells: bool) -> Streams {
        Streams { from, news: tells.then(Vec::new), ..self }
    }

    /// `task` has taken so much energy by now, in 10⁻¹⁵ J: to be told before each of its marks, and at the end.
    /// `None`: that is unknown.
    pub(crate) fn spent(&mut self, task: TaskId, energy: Option<u128>) {
        match energy {
            Some(energy) => self.chains.took(task, energy),
            None => {
                let of = self.chains.stream_of(task).map(|stream| self.named[stream]);
                of.into_iter().for_each(|name| self.names[name].energy.unknown = true);
            }
        }
    }

    /// What comes up about the jobs of `task`.
    pub(crate) fn mark(&mut self, task: TaskId, now: u64, mark: JobMark) {
        self.tell(|chains, mut tell| chains.mark(task, Instant(now), mark, &mut tell));
    }

    /// What `of` tells to be over is of its name, if it counts.
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

    /// What was missed since this was last asked, with the name of its jobs; `comm`: the name of a task that was there.
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

    /// The jobs of this name are to be listed.
    pub(crate) fn list(&mut self, name: &str) {
        let named = self.names.iter_mut().filter(|named| named.name == name);
        named.for_each(|named| named.listed = Some(Vec::new()));
    }

    /// Those that were done: number, and ns from release to done.
    pub(crate) fn listed(&mut self) -> Vec<(u64, u64)> {
        self.names.iter_mut().filter_map(|named| named.listed.take()).flatten().collect()
    }

    /// The run is over: what is under way is cut off.
    pub(crate) fn cut_off(&mut self, end: u64) {
        self.tell(|chains, mut tell| chains.cut_off(Instant(end), &mut tell));
        let before = self.none_before.iter().copied().chain(std::iter::repeat(0));
        for ((none, before), name) in self.chains.for_none().zip(before).zip(&self.named) {
            self.names[*name].energy.none += none - before;
        }
    }

    /// How the responses of declared jobs are distributed, by name.
    pub(crate) fn distributions(
        &self,
        mut comm: impl FnMut(TaskId) -> Option<String>,
    ) -> Vec<(String, Vec<(f64, f64)>)> {
        let declared = self.names.iter().filter(|named| named.is_declared(&mut comm));
        let drawn = declared.filter(|named| named.response.above.total() > 0);
        drawn.map(|named| (named.name.clone(), named.response.above.steps())).collect()
    }

    /// What came of it by `end`, where it was [cut off](Streams::cut_off); `comm`: the name of a task that was there.
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
                latest: named.latest.map(|(lateness, number, due)| Latest {
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
    /// For a reader; `tasks`: of each stream.
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
    /// As [`is_declared`].
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
        // Numbers of a stream are below this.
        const STREAM: u32 = 40;
        let number = ((over.stream as u64) << STREAM) + job.number;
        self.listed.iter_mut().for_each(|all| all.push((number, response)));
        self.response.add(response as i64);
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
            self.latest = Some((lateness, gone.over.job.number, due));
        }
        let full = self.worst.len() == WORST;
        let less = self.worst.last().is_some_and(|last| gone.lateness <= last.lateness);
        if lateness > 0 && !(full && less) {
            let at = self.worst.partition_point(|worse| worse.lateness >= gone.lateness);
            self.worst.insert(at, gone);
            self.worst.truncate(WORST);
        }
    }

    /// The run's end comes before these are done.
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

    /// Those from the one `from` behind the first on are due some time.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn spec(name: &str, tasks: &[u32], deadline: Option<u64>) -> JobSpec {
        let deadline = deadline.map(|ms| Span(ms * MS));
        JobSpec { name: name.into(), tasks: tasks.to_vec(), deadline, period: None }
    }

    const MJ: u128 = 1_000_000_000_000;

    /// Marks of (task, ms), and what they came to. Each task takes 1 mJ a ms all the time.
    fn jobs(specs: &[JobSpec], end: u64, marks: &[(u32, u64, JobMark)]) -> Vec<Jobs> {
        let mut streams = Streams::new(specs);
        for (task, at, mark) in marks {
            streams.spent(TaskId(*task), Some(u128::from(*at) * MJ));
            streams.mark(TaskId(*task), at * MS, *mark);
        }
        let tasks = specs.iter().flat_map(|spec| &spec.tasks);
        tasks.for_each(|task| streams.spent(TaskId(*task), Some(u128::from(end) * MJ)));
        streams.cut_off(end * MS);
        streams.finish(end * MS, |id| Some(format!("t{}", id.0)))
    }

    fn begins(release: Option<u64>) -> JobMark {
        let release = release.map(|ms| Instant(ms * MS));
        JobMark::Begins { release, period: Some(Span(10 * MS)), counted: false }
    }

    fn timer(due: u64, release: u64, absolute: bool) -> JobMark {
        let (due, release) = (Instant(due * MS), Instant(release * MS));
        JobMark::Timer { due, release, period: Span(10 * MS), absolute, worked: true }
    }

    /// (released, due, done, late, merged, dropped, unfinished, overdue)
    fn counts(j: &Jobs) -> [u64; 8] {
        [j.released, j.due, j.done, j.late, j.merged, j.dropped, j.unfinished, j.overdue]
    }

    #[test]
    fn a_relative_timer_merges_what_it_missed() {
        // Released at 0, 10 and, two periods late, 45: 20 became 45, 30 and 40 are merged into it.
        let marks = [
            (0, 0, begins(Some(0))),
            (0, 4, timer(10, 10, false)),
            (0, 10, begins(Some(10))),
            (0, 45, timer(20, 45, false)),
            (0, 45, begins(Some(45))),
            (0, 50, timer(55, 55, false)),
        ];
        let all = jobs(&[spec("ui", &[0], None)], 52, &marks);
        assert!(!all[0].by_timer);
        assert!(jobs(&[spec("ui", &[0], None)], 30, &marks[..3])[0].by_timer);
        // The last one is due at 55, and merged ones at 30 and 40.
        assert_eq!(counts(&all[0]), [5, 4, 3, 1, 2, 0, 0, 0]);
        let response = all[0].response.unwrap();
        assert_eq!((response.min, response.max), (4.0, 35.0));
        let lateness = all[0].lateness.unwrap();
        assert_eq!((lateness.min, lateness.max), (-6.0, 25.0));
        assert_eq!((all[0].missed(), all[0].mj_per_job), (3, Some(52.0 / 3.0)));
        // From 0 to 4, from 10 to 45, from 45 to 50; the rest of the 52 ms is no job's.
        let energy = all[0].energy.unwrap();
        assert!((energy.p50 - 5.0).abs() < 0.02, "{energy:?}");
        assert_eq!((energy.min, energy.max), (4.0, 35.0));
    }

    #[test]
    fn an_absolute_timer_makes_up_for_it() {
        let marks = [
            (0, 0, begins(Some(0))),
            (0, 25, timer(10, 10, true)),
            (0, 25, begins(Some(10))),
            (0, 28, timer(20, 20, true)),
        ];
        let all = jobs(&[spec("ui", &[0], Some(15))], 47, &marks);
        // Due at 15, 25, then 35 and 45 (released at 20 and 30), 55 (at 40).
        assert_eq!(counts(&all[0]), [5, 4, 2, 2, 0, 0, 3, 2]);
        // 25 and 18 are done, 27 and 17 are what the overdue ones have taken by then.
        let response = all[0].response.unwrap();
        assert_eq!((response.min, response.max), (17.0, 27.0));
    }

    #[test]
    fn a_job_that_takes_long_is_late_even_if_it_never_ends() {
        let marks = [(0, 0, begins(Some(0)))];
        let all = jobs(&[spec("hog", &[0], None)], 35, &marks);
        // 10 and 20 have passed meanwhile.
        assert_eq!(counts(&all[0]), [3, 3, 0, 0, 2, 0, 1, 1]);
        assert_eq!(all[0].mj_per_job, None);
    }

    /// A task that never gets a CPU says nothing of its jobs.
    #[test]
    fn jobs_of_a_task_that_never_runs_are_overdue() {
        let starved = |deadline: Option<u64>, period: Option<u64>| {
            let every =
                JobSpec { period: period.map(|ms| Span(ms * MS)), ..spec("s", &[0], deadline) };
            let mut streams = Streams::new(&[every, spec("other", &[1], None)]);
            streams.mark(TaskId(1), 0, begins(Some(0)));
            streams.waits(TaskId(0), 5 * MS);
            streams.waits(TaskId(1), 5 * MS);
            streams.cut_off(47 * MS);
            let all = streams.finish(47 * MS, |id| Some(format!("t{}", id.0)));
            assert_eq!(counts(&all[1]), [4, 4, 0, 0, 3, 0, 1, 1], "it did run");
            counts(&all[0])
        };
        // Released at 5, 15, 25 and 35, of which the last stands for those since; due at 15, 25, 35, 45.
        assert_eq!(starved(None, Some(10)), [4, 4, 0, 0, 3, 0, 1, 1]);
        assert_eq!(starved(Some(3), None), [1, 1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(starved(None, None), [1, 0, 0, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn the_latest_is_named() {
        let marks = [
            (0, 0, begins(Some(0))),
            (0, 25, timer(10, 10, true)),
            (0, 25, begins(Some(10))),
            (0, 28, timer(20, 20, true)),
        ];
        let all = jobs(&[spec("ui", &[0], Some(15))], 30, &marks);
        assert_eq!(all[0].latest, Some(Latest { number: 0, due_ms: 15.0, lateness_ms: 10.0 }));
    }

    /// A start that is left out: of several merged ones those behind it count, and of the energy what is theirs.
    #[test]
    fn what_is_released_before_does_not_count() {
        let marks = [
            (0, 0, begins(Some(0))),
            (0, 4, timer(10, 10, false)),
            (0, 10, begins(Some(10))),
            // 20, 30 and 40 are merged.
            (0, 45, timer(20, 50, false)),
            (0, 50, begins(Some(50))),
            (0, 57, timer(60, 60, false)),
        ];
        let from = |from: u64| {
            let mut streams =
                Streams::new(&[spec("ui", &[0], None)]).since(Instant(from * MS), true);
            for (task, at, mark) in marks {
                if at >= from && streams.none_before.is_empty() {
                    streams.spent(TaskId(0), Some(u128::from(from) * MJ));
                    streams.begin();
                }
                streams.spent(TaskId(task), Some(u128::from(at) * MJ));
                streams.mark(TaskId(task), at * MS, mark);
            }
            streams.spent(TaskId(0), Some(60 * MJ));
            streams.cut_off(60 * MS);
            let missed = streams.missed(|_| None);
            (streams.finish(60 * MS, |_| Some("ui".into())).remove(0), missed)
        };
        let (all, missed) = from(0);
        assert_eq!(counts(&all), [7, 6, 3, 1, 3, 0, 1, 0], "{all:?}");
        assert_eq!((missed[1].1.number, missed[1].1.n, missed[1].1.how), (2, 3, "merged"));
        let (later, missed) = from(25);
        assert_eq!((later.done, later.merged, later.late), (1, 2, 0), "{later:?}");
        assert_eq!((missed.len(), missed[0].1.number, missed[0].1.n), (1, 3, 2));
        assert_eq!(missed[0].1.release_ms, 30.0);
        assert_eq!(later.response.map(|p| (p.min, p.max)), Some((7.0, 7.0)));
        let energy = later.energy.map(|e| e.max);
        assert_eq!(energy, Some(7.0));
        // And the 5 and 3 ms between and behind jobs.
        assert_eq!(later.mj_per_job, Some(15.0));
    }

    /// However many are late, the latest are kept, and of a chain with whom each was longest.
    #[test]
    fn the_latest_are_kept() {
        let takes = JobMark::Begins { release: None, period: None, counted: true };
        let mut marks = Vec::new();
        for i in 0..WORST as u64 + 5 {
            let at = 100 * i;
            marks.push((0, at, begins(Some(at))));
            marks.push((0, at + 1, JobMark::Gives));
            marks.push((1, at + 3, takes));
            marks.push((1, at + 20 + i, JobMark::Waits));
            marks.push((0, at + 50, timer(at + 100, at + 100, false)));
        }
        let all = jobs(&[spec("frame", &[0, 1], Some(15))], 2500, &marks).remove(0);
        assert_eq!((all.late, all.worst.len(), all.declared), (25, WORST, true));
        let first = &all.worst[0];
        assert_eq!((first.number, first.lateness_ms), (24, Some(29.0)));
        // From 1, when it was given, to 20 + 24.
        assert_eq!(first.longest, Some(("t1".into(), 43.0)));
        assert!(all.worst.is_sorted_by(|a, b| a.lateness_ms >= b.lateness_ms));
    }

    #[test]
    fn periods_that_pass_without_end_take_neither_memory_nor_time() {
        for (period, absolute, released) in [(0, true, 2), (0, false, 2), (1, true, 10_002)] {
            let period = Span(period * 1_000);
            let (due, release) = (Instant(MS), Instant(MS));
            let timer = JobMark::Timer { due, release, period, absolute, worked: true };
            let marks = [(0, 0, begins(Some(0))), (0, 1, timer)];
            let all = jobs(&[spec("ui", &[0], None)], 11, &marks);
            assert_eq!((all[0].released, all[0].done), (released, 1), "{period:?} {absolute}");
        }
        let hog =
            JobMark::Begins { release: Some(Instant(0)), period: Some(Span(1)), counted: false };
        let all = jobs(&[spec("hog", &[0], None)], 3_600_000, &[(0, 0, hog)]);
        assert_eq!((all[0].released, all[0].due), (3_600_000 * MS, 3_600_000 * MS));
    }

    #[test]
    fn a_chain_drops_what_a_condition_does_not_keep_and_counts_what_a_semaphore_does() {
        let counted = |counted| JobMark::Begins { release: None, period: None, counted };
        let marks = |keeps| {
            [
                (0, 0, begins(Some(0))),
                (0, 2, JobMark::Gives),
                (1, 3, counted(keeps)),
                (0, 4, timer(10, 10, false)),
                (0, 10, begins(Some(10))),
                (0, 12, JobMark::Gives),
                (0, 14, timer(20, 20, false)),
                (0, 20, begins(Some(20))),
                (0, 22, JobMark::Gives),
                (0, 23, timer(30, 30, false)),
                // Its first took until 25, and it goes on with what there is.
                (1, 25, JobMark::Waits),
                (1, 25, counted(keeps)),
                (1, 27, JobMark::Waits),
            ]
        };
        let of = |keeps| jobs(&[spec("frame", &[0, 1], None)], 29, &marks(keeps)).remove(0);
        let dropped = of(false);
        assert_eq!(counts(&dropped), [3, 2, 2, 1, 0, 1, 0, 0]);
        assert_eq!(dropped.response.unwrap().min, 7.0, "the third one");
        let kept = of(true);
        assert_eq!(counts(&kept), [3, 2, 2, 2, 0, 0, 1, 0]);
        assert_eq!(kept.response.unwrap().min, 17.0, "the second one");
        assert_eq!(kept.tasks, ["t0", "t1"]);
    }

    #[test]
    fn a_program_that_ends_has_done_what_it_began_and_nothing_else() {
        for (worked, done) in [(true, 2), (false, 1)] {
            let marks = [
                (0, 0, begins(Some(0))),
                (0, 4, timer(10, 10, false)),
                (0, 10, begins(Some(10))),
                (0, 13, JobMark::Over { worked }),
            ];
            let all = jobs(&[spec("ui", &[0], None)], 100, &marks);
            assert_eq!(counts(&all[0]), [done, done, done, 0, 0, 0, 0, 0]);
        }
        // Nobody's marks, and a job that never came.
        assert_eq!(jobs(&[spec("ui", &[0], None)], 9, &[(7, 1, JobMark::Waits)]), []);
    }

    #[test]
    fn instances_are_one_kind_of_job() {
        let marks = [
            (0, 0, begins(Some(0))),
            (1, 0, begins(Some(0))),
            (0, 4, timer(10, 10, false)),
            (1, 6, timer(10, 10, false)),
        ];
        let all = jobs(&[spec("w", &[0], None), spec("w", &[1], None)], 20, &marks);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].done, all[0].mj_per_job), (2, Some(20.0)));
    }

    /// What a task takes behind its gift is its job's as long as that is not done, wherever that is by then.
    #[test]
    fn a_job_takes_what_each_task_of_its_chain_takes_for_it() {
        let takes = |counted| JobMark::Begins { release: None, period: None, counted };
        let chain = |behind_done: u64| {
            let marks = [
                (0, 0, begins(Some(0))),
                (0, 3, JobMark::Gives),
                (1, 5, takes(false)),
                // 4 mJ before the gift, 2 behind it; 4 of the other task's, or more.
                (0, 5, timer(10, 10, false)),
                (1, behind_done, JobMark::Waits),
                (0, 10, begins(Some(10))),
                (0, 12, JobMark::Gives),
                (1, 12, takes(false)),
                (1, 14, JobMark::Waits),
                // This is no job's: it was done at 14.
                (0, 18, timer(20, 20, false)),
            ];
            jobs(&[spec("frame", &[0, 1], None)], 30, &marks).remove(0)
        };
        let found = chain(9);
        let energy = found.energy.unwrap();
        assert_eq!((found.done, energy.max, energy.min), (2, 5.0 + 4.0, 2.0 + 2.0));
        assert_eq!(found.mj_per_job, Some(30.0));
        assert_eq!(chain(10).energy.unwrap().max, 10.0);
    }

    /// Whatever comes in whatever order: no piece is counted twice, and none is lost.
    #[test]
    fn the_parts_of_the_energy_are_the_whole() {
        let mut state = 1u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        let mut done = 0;
        for _ in 0..300 {
            let specs = [spec("chain", &[0, 1, 2], Some(7)), spec("own", &[3], None)];
            let mut streams = Streams::new(&specs);
            let (mut at, mut taken) = (0, [0u128; 4]);
            for _ in 0..draw(200) {
                at += draw(4);
                let task = draw(4) as usize;
                taken[task] += u128::from(draw(1 << 40));
                let (worked, counted, absolute) = (draw(4) > 0, draw(2) > 0, draw(2) > 0);
                let due = Instant((at + draw(9)) * MS);
                let mark = match draw(6) {
                    0 | 1 => JobMark::Begins { release: None, period: None, counted },
                    2 => JobMark::Gives,
                    3 => JobMark::Waits,
                    4 => {
                        let period = Span(10 * MS);
                        JobMark::Timer { due, release: due, period, absolute, worked }
                    }
                    _ => JobMark::Over { worked },
                };
                streams.spent(TaskId(task as u32), Some(taken[task]));
                streams.mark(TaskId(task as u32), at * MS, mark);
            }
            streams.cut_off(at * MS);
            let parts = |e: &Energy| e.done + e.others + e.none;
            assert_eq!(parts(&streams.names[0].energy), taken[..3].iter().sum());
            assert_eq!(parts(&streams.names[1].energy), taken[3]);
            done += streams.names.iter().map(|named| named.counts.done).sum::<u64>();
        }
        assert!(done > 1000, "{done}");
    }

    #[test]
    fn percentiles_of_times_below_0_are_those_of_the_sorted_list() {
        let times: Vec<i64> = (0..1000).map(|i| (i * 7919 % 1000 - 300) * 10_007).collect();
        let mut signed = Signed::default();
        times.iter().for_each(|t| signed.add(*t));
        let mut sorted = times;
        sorted.sort_unstable();
        for permille in [1, 100, 300, 301, 500, 990, 1000] {
            let want = sorted[permille as usize - 1];
            let found = signed.quantile(permille);
            assert!((found - want).abs() <= want.abs() / 256 + 1, "{permille}: {found} {want}");
        }
    }
}
