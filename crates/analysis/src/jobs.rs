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
//! [`Latency`](crate::Latency). The energy of a job is that of the CPUs while its tasks ran, over the whole run, by jobs done.

use crate::latency::Histogram;
use risetime_kernel::units::{Instant, TaskId};
use risetime_model::workload::{JobMark, JobSpec};
use risetime_trace::jobs::{Chains, Fate, Over};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The jobs of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// What they are called: the task, or what the workload's `"job"` says.
    pub name: String,
    /// The tasks of the chain; of several instances one stands for all.
    pub tasks: Vec<String>,
    /// Released by the run's end, merged ones counted.
    pub released: u64,
    /// Of those, due by the run's end.
    pub due: u64,
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
    /// From release to done; `None`: none is done or overdue.
    pub response: Option<Percentiles>,
    /// From due to done.
    pub lateness: Option<Percentiles>,
    /// While its tasks ran, by jobs done; `None`: none is done, or the power is unknown.
    pub mj_per_job: Option<f64>,
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

/// Of a time, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Half of them are at most that.
    pub p50_ms: f64,
    /// 90 %.
    pub p90_ms: f64,
    /// 95 %.
    pub p95_ms: f64,
    /// 99 %.
    pub p99_ms: f64,
    /// 99.9 %.
    pub p99_9_ms: f64,
    /// The largest.
    pub max_ms: f64,
    /// The smallest.
    pub min_ms: f64,
}

impl Percentiles {
    /// Each with its name in CSV and `--expect`.
    pub fn named(&self) -> [(&'static str, f64); 7] {
        [
            ("min", self.min_ms),
            ("p50", self.p50_ms),
            ("p90", self.p90_ms),
            ("p95", self.p95_ms),
            ("p99", self.p99_ms),
            ("p99_9", self.p99_9_ms),
            ("max", self.max_ms),
        ]
    }
}

/// Times that may be negative.
#[derive(Default)]
struct Signed {
    above: Histogram,
    below: Histogram,
    min: i64,
    max: i64,
}

impl Signed {
    fn add(&mut self, ns: i64) {
        let first = self.above.total() + self.below.total() == 0;
        (self.min, self.max) = if first { (ns, ns) } else { (self.min.min(ns), self.max.max(ns)) };
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
        if self.above.total() + self.below.total() == 0 {
            return None;
        }
        let ms = |ns: i64| ns as f64 / 1e6;
        let at = |permille| ms(self.quantile(permille));
        Some(Percentiles {
            p50_ms: at(500),
            p90_ms: at(900),
            p95_ms: at(950),
            p99_ms: at(990),
            p99_9_ms: at(999),
            max_ms: ms(self.max),
            min_ms: ms(self.min),
        })
    }
}

/// What streams of a name have come to.
#[derive(Default)]
struct Named {
    name: String,
    tasks: Vec<TaskId>,
    streams: Vec<TaskId>,
    counts: Counts,
    /// When jobs are due of which all else is known.
    ahead: BinaryHeap<Reverse<u64>>,
    response: Signed,
    lateness: Signed,
    /// Which were done, and their responses in ns, if somebody asks.
    listed: Option<Vec<(u64, u64)>>,
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
                all.names.push(Named { tasks: tasks.clone(), ..named });
            }
            all.names[name].streams.extend(&tasks);
            all.named.push(name);
        }
        all
    }

    /// What comes up about the jobs of `task`.
    pub(crate) fn mark(&mut self, task: TaskId, now: u64, mark: JobMark) {
        let Streams { chains, names, named } = self;
        chains.mark(task, Instant(now), mark, &mut |over| names[named[over.stream]].over(over));
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

    /// What came of it by `end`; `task`: the name of one, and the energy while it ran.
    pub(crate) fn finish(
        self,
        end: u64,
        mut task: impl FnMut(TaskId) -> Option<(String, Option<f64>)>,
    ) -> Vec<Jobs> {
        let Streams { mut chains, mut names, named } = self;
        chains.cut_off(Instant(end), &mut |over| names[named[over.stream]].over(over));
        let mut result = Vec::new();
        for mut named in names {
            named.passes(end);
            let c = named.counts;
            let over = c.done + c.merged + c.dropped;
            if over + c.unfinished == 0 {
                continue;
            }
            let energy = named.streams.iter().map(|id| task(*id).map_or(Some(0.0), |(_, mj)| mj));
            let energy = energy.sum::<Option<f64>>();
            result.push(Jobs {
                name: named.name,
                tasks: named
                    .tasks
                    .iter()
                    .filter_map(|id| task(*id))
                    .map(|(comm, _)| comm)
                    .collect(),
                released: over + c.unfinished,
                due: c.due,
                done: c.done,
                late: c.late,
                merged: c.merged,
                dropped: c.dropped,
                unfinished: c.unfinished,
                overdue: c.overdue,
                response: named.response.percentiles(),
                lateness: named.lateness.percentiles(),
                mj_per_job: energy.filter(|_| c.done > 0).map(|mj| mj / c.done as f64),
            });
        }
        result
    }
}

impl Named {
    fn over(&mut self, over: &Over) {
        match over.fate {
            Fate::Done => self.done(over),
            Fate::Merged => {
                self.counts.merged += over.n;
                let past = over.due_by_then();
                self.counts.due += past;
                self.all_due(past, over);
            }
            Fate::Dropped => {
                self.counts.dropped += over.n;
                self.all_due(0, over);
            }
            Fate::Unfinished => self.cut_off(over),
        }
    }

    fn done(&mut self, over: &Over) {
        let (job, now) = (over.job, over.at.0);
        self.counts.done += 1;
        let response = now.saturating_sub(job.release.0);
        // Numbers of a stream are below this.
        const STREAM: u32 = 40;
        let number = ((over.stream as u64) << STREAM) + job.number;
        self.listed.iter_mut().for_each(|all| all.push((number, response)));
        self.response.add(response as i64);
        if let Some(due) = job.due {
            let lateness = now as i64 - due.0 as i64;
            self.counts.late += u64::from(lateness > 0);
            self.due(due.0, now);
            self.lateness.add(lateness);
        }
    }

    /// The run's end comes before these are done.
    fn cut_off(&mut self, over: &Over) {
        let end = over.at.0;
        self.counts.unfinished += over.n;
        let overdue = over.due_by_then();
        self.counts.overdue += overdue;
        self.counts.due += overdue;
        for (k, due) in (0..overdue).filter_map(|k| Some((k, over.due(k)?))) {
            self.response.add((end - over.job.release.0 - k * over.period.0) as i64);
            self.lateness.add((end - due.0) as i64);
        }
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
    use risetime_kernel::units::Span;

    const MS: u64 = 1_000_000;

    fn spec(name: &str, tasks: &[u32], deadline: Option<u64>) -> JobSpec {
        let deadline = deadline.map(|ms| Span(ms * MS));
        JobSpec { name: name.into(), tasks: tasks.to_vec(), deadline }
    }

    /// Marks of (task, ms), and what they came to.
    fn jobs(specs: &[JobSpec], end: u64, marks: &[(u32, u64, JobMark)]) -> Vec<Jobs> {
        let mut streams = Streams::new(specs);
        marks.iter().for_each(|(task, at, mark)| streams.mark(TaskId(*task), at * MS, *mark));
        streams.finish(end * MS, |id| Some((format!("t{}", id.0), Some(6.0))))
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
        // The last one is due at 55, and merged ones at 30 and 40.
        assert_eq!(counts(&all[0]), [5, 4, 3, 1, 2, 0, 0, 0]);
        let response = all[0].response.unwrap();
        assert_eq!((response.min_ms, response.max_ms), (4.0, 35.0));
        let lateness = all[0].lateness.unwrap();
        assert_eq!((lateness.min_ms, lateness.max_ms), (-6.0, 25.0));
        assert_eq!((all[0].missed(), all[0].mj_per_job), (3, Some(2.0)));
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
        assert_eq!((response.min_ms, response.max_ms), (17.0, 27.0));
    }

    #[test]
    fn a_job_that_takes_long_is_late_even_if_it_never_ends() {
        let marks = [(0, 0, begins(Some(0)))];
        let all = jobs(&[spec("hog", &[0], None)], 35, &marks);
        // 10 and 20 have passed meanwhile.
        assert_eq!(counts(&all[0]), [3, 3, 0, 0, 2, 0, 1, 1]);
        assert_eq!(all[0].mj_per_job, None);
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
        assert_eq!(dropped.response.unwrap().min_ms, 7.0, "the third one");
        let kept = of(true);
        assert_eq!(counts(&kept), [3, 2, 2, 2, 0, 0, 1, 0]);
        assert_eq!(kept.response.unwrap().min_ms, 17.0, "the second one");
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
        assert_eq!((all[0].done, all[0].mj_per_job), (2, Some(6.0)));
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
