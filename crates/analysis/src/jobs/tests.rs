//! Streams of marks, and what they come to.

use super::*;

const MS: u64 = 1_000_000;

fn spec(name: &str, tasks: &[u32], deadline: Option<u64>) -> JobSpec {
    let deadline = deadline.map(|ms| Span(ms * MS));
    JobSpec { name: name.into(), tasks: tasks.to_vec(), deadline, period: None }
}

const MJ: u128 = 1_000_000_000_000;

/// Returns half of the time until `at` (ms), in ns · 2⁻³².
fn half(at: u64) -> u128 {
    u128::from(at * MS / 2) << 32
}

/// Marks of (task, ms), and what they came to. Each task takes 1 mJ a ms all the time, and is at half of full speed.
fn jobs(specs: &[JobSpec], end: u64, marks: &[(u32, u64, JobMark)]) -> Vec<Jobs> {
    let mut streams = Streams::new(specs);
    for (task, at, mark) in marks {
        streams.spent(TaskId(*task), Some(u128::from(*at) * MJ), half(*at));
        streams.mark(TaskId(*task), at * MS, *mark);
    }
    let tasks = specs.iter().flat_map(|spec| &spec.tasks);
    tasks.for_each(|task| streams.spent(TaskId(*task), Some(u128::from(end) * MJ), half(end)));
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

/// Lists the counts (released, due, done, late, merged, dropped, unfinished, overdue).
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
    // Each is begun when it is released.
    let longer = all[0].longer.unwrap();
    assert_eq!((longer.min, longer.max), (2.0, 17.5));
}

/// A job that waits for its task is longer by all of that time, one that a task works for by half
/// of it. Work beside a job that has gone on counts no more.
#[test]
fn a_job_is_longer_by_what_it_waits_and_by_what_its_tasks_take_longer() {
    let given = JobMark::Begins { release: None, period: None, counted: false };
    let marks = [
        // 0 to 4 at it, 4 to 6 beside it; 4 to 10 waiting for the second task; 10 to 16 at it.
        (0, 0, begins(Some(0))),
        (0, 4, JobMark::Gives),
        (0, 6, timer(20, 20, true)),
        (1, 10, given),
        (1, 16, JobMark::Waits),
        // Released at 20, begun at 23, given at 25, taken then, done at 27.
        (0, 23, begins(Some(20))),
        (0, 25, JobMark::Gives),
        (1, 25, given),
        (1, 27, JobMark::Waits),
    ];
    let all = jobs(&[spec("frame", &[0, 1], None)], 30, &marks);
    let (longer, response) = (all[0].longer.unwrap(), all[0].response.unwrap());
    assert_eq!((response.min, response.max), (7.0, 16.0));
    assert_eq!((longer.max, longer.min), (2.0 + 6.0 + 3.0, 3.0 + 1.0 + 1.0));
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
        let every = JobSpec { period: period.map(|ms| Span(ms * MS)), ..spec("s", &[0], deadline) };
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
    assert_eq!(
        all[0].latest,
        Some(Latest { comm: Some("t0".into()), number: 0, due_ms: 15.0, lateness_ms: 10.0 })
    );
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
        let mut streams = Streams::new(&[spec("ui", &[0], None)]).since(Instant(from * MS), true);
        for (task, at, mark) in marks {
            if at >= from && streams.none_before.is_empty() {
                streams.spent(TaskId(0), Some(u128::from(from) * MJ), half(from));
                streams.begin();
            }
            streams.spent(TaskId(task), Some(u128::from(at) * MJ), half(at));
            streams.mark(TaskId(task), at * MS, mark);
        }
        streams.spent(TaskId(0), Some(60 * MJ), half(60));
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
    let hog = JobMark::Begins { release: Some(Instant(0)), period: Some(Span(1)), counted: false };
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
            streams.spent(TaskId(task as u32), Some(taken[task]), 0);
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
