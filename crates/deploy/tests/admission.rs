//! Admission tests against schedulers that are simulated here, ns for ns, and against each other.

#[path = "../../../tests/draws.rs"]
mod draws;

use proptest::prelude::*;
use risetime_deploy::Load;
use risetime_deploy::admit::{
    Answer, Order, Scheduler, TESTS, admit, demand, response_time, tests,
};
use risetime_kernel::units::Capacity;

/// Does a job miss its deadline, if all tasks begin together and come as often as they may, on `m` equal CPUs? By EDF
/// (`None`) or fixed priorities; in steps of one unit, up to `until`.
fn misses(tasks: &[Load], m: usize, by: Option<Order>, until: u64) -> bool {
    // (what is left, when it came, when it is due) of each task's jobs.
    let mut jobs: Vec<Vec<(u64, u64)>> = vec![Vec::new(); tasks.len()];
    for now in 0..until {
        for (i, t) in tasks.iter().enumerate() {
            if now % t.period == 0 && t.runtime > 0 {
                jobs[i].push((t.runtime, now + t.deadline));
            }
        }
        if jobs.iter().flatten().any(|(_, due)| *due <= now) {
            return true;
        }
        let mut ready: Vec<usize> = (0..tasks.len()).filter(|i| !jobs[*i].is_empty()).collect();
        ready.sort_by_key(|i| match by {
            None => jobs[*i][0].1,
            Some(order) => order.key(&tasks[*i]),
        });
        for i in ready.into_iter().take(m) {
            jobs[i][0].0 -= 1;
            if jobs[i][0].0 == 0 {
                jobs[i].remove(0);
            }
        }
    }
    jobs.iter().flatten().any(|(_, due)| *due <= until)
}

/// Whether a job misses its deadline by EDF on CPUs of several speeds (1: a unit of work in a unit
/// of time), from event to event: the earliest deadlines run, and of nothing else one can be sure.
/// A running job stays where it is, or (`moved`) is anywhere after each event; one that begins
/// takes what `dice` gives it, often the slowest CPU. Jobs come as often as they may, from `offset`
/// on.
fn misses_on(
    tasks: &[Load],
    speeds: &[f64],
    offset: &[u64],
    moved: bool,
    dice: &mut u64,
    until: u64,
) -> bool {
    const EPS: f64 = 1e-6;
    let mut roll = |n: usize| {
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        (*dice % n as u64) as usize
    };
    // Of each task: what is left of its job, when that is due, when the next one comes, its CPU.
    let mut jobs: Vec<(f64, f64, f64, Option<usize>)> =
        offset.iter().map(|o| (0.0, 0.0, *o as f64, None)).collect();
    let mut now = 0.0;
    while now < until as f64 {
        for (job, t) in jobs.iter_mut().zip(tasks) {
            if job.2 <= now + EPS {
                *job = (t.runtime as f64, job.2 + t.deadline as f64, job.2 + t.period as f64, None);
            }
        }
        let mut ready: Vec<usize> = (0..jobs.len()).filter(|i| jobs[*i].0 > EPS).collect();
        ready.sort_by(|a, b| jobs[*a].1.total_cmp(&jobs[*b].1).then(a.cmp(b)));
        for i in ready.split_off(ready.len().min(speeds.len())) {
            jobs[i].3 = None;
        }
        if moved {
            ready.iter().for_each(|i| jobs[*i].3 = None);
        }
        for i in &ready {
            let mut free: Vec<usize> = (0..speeds.len())
                .filter(|c| ready.iter().all(|i| jobs[*i].3 != Some(*c)))
                .collect();
            free.sort_by(|a, b| speeds[*a].total_cmp(&speeds[*b]));
            let at = if roll(3) > 0 { 0 } else { roll(free.len().max(1)) };
            jobs[*i].3 = jobs[*i].3.or(free.get(at).copied());
        }
        let ends = ready.iter().map(|i| now + jobs[*i].0 / speeds[jobs[*i].3.expect("as many")]);
        let next = ends.chain(jobs.iter().map(|j| j.2)).fold(f64::INFINITY, f64::min);
        for i in &ready {
            jobs[*i].0 -= (next - now) * speeds[jobs[*i].3.expect("as many")];
        }
        now = next;
        for job in &mut jobs {
            if job.0 <= EPS {
                job.3 = None;
            } else if job.1 <= now + EPS {
                return true;
            }
        }
    }
    false
}

fn hyperperiod(tasks: &[Load]) -> u64 {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    tasks.iter().fold(1, |all, t| all / gcd(all, t.period) * t.period)
}

fn load(short: bool) -> impl Strategy<Value = Load> {
    let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20]);
    period.prop_flat_map(move |period| {
        (1..=period, 1..=period).prop_map(move |(runtime, deadline)| {
            let runtime = runtime.div_ceil(2);
            let deadline = if short { deadline.max(runtime) } else { period };
            Load { runtime, period, deadline }
        })
    })
}

const ONE: [Capacity; 1] = [Capacity(1024)];

proptest! {
    #![proptest_config(draws::config(20_000))]

    /// Exact tests are: they admit what misses nothing in twice the hyperperiod, and nothing else.
    #[test]
    fn exact_tests_say_what_happens(tasks in prop::collection::vec(load(true), 1..5)) {
        let until = 2 * hyperperiod(&tasks) + 20;
        for (of, by) in [(Scheduler::Edf, None), (Scheduler::Rm, Some(Order::Rate)), (Scheduler::Dm, Some(Order::Deadline))] {
            let missed = misses(&tasks, 1, by, until);
            for test in tests(of) {
                let verdict = (test.ask)(&tasks, &ONE, of);
                match verdict.answer {
                    Answer::Admitted => prop_assert!(!missed, "{}: {verdict:?}", test.name),
                    // Of equal keys the simulation takes the first, the test the other: only then may it be too strict.
                    Answer::Refused => {
                        let keys = |order: Order| tasks.iter().map(move |t| order.key(t));
                        let tie = by.is_some_and(|o| keys(o).collect::<std::collections::BTreeSet<_>>().len() < tasks.len());
                        prop_assert!(missed || tie, "{}: {verdict:?}", test.name)
                    }
                    Answer::Unknown => prop_assert!(!test.exact, "{}: {verdict:?}", test.name),
                }
            }
        }
    }

    /// What is admitted on several CPUs misses nothing, jobs coming all at once.
    #[test]
    fn what_is_admitted_on_several_cpus_misses_nothing(
        tasks in prop::collection::vec(load(true), 1..7), m in 2usize..4
    ) {
        let speeds = vec![Capacity(1024); m];
        let (test, verdict) = admit(&tasks, &speeds, Scheduler::GlobalEdf);
        if verdict.answer == Answer::Admitted {
            let until = 2 * hyperperiod(&tasks) + 20;
            prop_assert!(!misses(&tasks, m, None, until), "{}", test.expect("one").name);
        }
        if verdict.answer == Answer::Refused {
            prop_assert!(misses(&tasks, m, None, 20 * hyperperiod(&tasks) + 20), "{verdict:?}");
        }
    }

    /// What is admitted on CPUs of several speeds misses nothing, wherever jobs happen to be and
    /// whenever they first come; what is refused misses something even where the earliest deadlines
    /// are on the fastest CPUs.
    #[test]
    fn what_is_admitted_on_unequal_cpus_misses_nothing_wherever_jobs_are(
        tasks in prop::collection::vec(load(true), 1..9),
        speeds in prop::collection::vec(prop::sample::select(vec![256u64, 512, 768, 1024]), 2..5),
        lighter in prop::sample::select(vec![1u64, 2, 4, 8, 16]),
        offset in prop::collection::vec(0u64..20, 9),
        dice in 1u64..
    ) {
        // 48 units to what was one, so that a set may be light.
        let long = |t: &Load| Load { runtime: (48 * t.runtime / lighter).max(1), period: 48 * t.period, deadline: 48 * t.deadline };
        let tasks: Vec<Load> = tasks.iter().map(long).collect();
        let offset: Vec<u64> = offset.iter().take(tasks.len()).map(|o| 48 * o).collect();
        let (mut dice, cpus) = (dice, speeds.iter().map(|s| Capacity(*s)).collect::<Vec<_>>());
        let speeds: Vec<f64> = speeds.iter().map(|s| *s as f64 / 1024.0).collect();
        let until = 2 * hyperperiod(&tasks) + 1000;
        for test in tests(Scheduler::GlobalEdf) {
            match (test.ask)(&tasks, &cpus, Scheduler::GlobalEdf).answer {
                Answer::Admitted => {
                    let zero = vec![0; tasks.len()];
                    for (offset, moved) in [(&zero, false), (&offset, false), (&offset, true)] {
                        prop_assert!(!misses_on(&tasks, &speeds, offset, moved, &mut dice, until), "{}", test.name);
                    }
                }
                Answer::Refused => {
                    let whole: f64 = speeds.iter().sum();
                    let share: f64 = tasks.iter().map(|t| t.share().as_f64()).sum();
                    let mut fast = speeds.clone();
                    fast.sort_by(|a, b| b.total_cmp(a));
                    let mut shares: Vec<f64> = tasks.iter().map(|t| t.share().as_f64()).collect();
                    shares.sort_by(|a, b| b.total_cmp(a));
                    let many = (1..=fast.len().min(shares.len()))
                        .any(|n| shares[..n].iter().sum::<f64>() > fast[..n].iter().sum::<f64>());
                    let dense = tasks.iter().any(|t| t.density().as_f64() > fast[0]);
                    prop_assert!(share > whole || many || dense, "{}", test.name);
                }
                Answer::Unknown => {}
            }
        }
    }

    /// The longest response of those simulated, where no two have the same priority.
    #[test]
    fn a_response_time_is_reached(tasks in prop::collection::vec(load(false), 1..5)) {
        let mut tasks = tasks;
        tasks.sort_by_key(|t| t.period);
        tasks.dedup_by_key(|t| t.period);
        let last = tasks.len() - 1;
        let Some(found) = response_time(&tasks, last, Order::Rate) else { return Ok(()) };
        let until = 2 * hyperperiod(&tasks) + 20;
        let with = |deadline: u64| {
            let mut tasks = tasks.clone();
            // The others' do not matter.
            tasks.iter_mut().for_each(|t| t.deadline = 1 << 40);
            tasks[last].deadline = deadline;
            misses(&tasks, 1, Some(Order::Rate), until)
        };
        let found = found as u64;
        if found < 1000 {
            prop_assert!(!with(found), "{found} is enough");
            prop_assert!(found == 0 || with(found - 1), "{found} is needed");
        }
    }

    /// Twice as fast CPUs never turn an answer from yes to no.
    #[test]
    fn faster_cpus_admit_more(tasks in prop::collection::vec(load(true), 1..6), m in 1usize..4) {
        for of in [Scheduler::Edf, Scheduler::Rm, Scheduler::Dm, Scheduler::GlobalEdf] {
            let m = if of == Scheduler::GlobalEdf { m } else { 1 };
            let slow = vec![Capacity(512); m];
            let fast = vec![Capacity(1024); m];
            if admit(&tasks, &slow, of).1.answer == Answer::Admitted {
                prop_assert_eq!(admit(&tasks, &fast, of).1.answer, Answer::Admitted);
            }
            // Nor one more CPU that is no slower than the others.
            let more: Vec<Capacity> = [Capacity(1024)].into_iter().chain(slow.clone()).collect();
            if of == Scheduler::GlobalEdf && admit(&tasks, &slow, of).1.answer == Answer::Admitted {
                prop_assert_eq!(admit(&tasks, &more, of).1.answer, Answer::Admitted);
            }
        }
    }
}

#[test]
fn the_examples_of_the_papers() {
    let load = |runtime, period, deadline| Load { runtime, period, deadline };
    // Liu and Layland's bound for three tasks is 77.98 %.
    let three = |a| [load(a, 1000, 1000), load(2 * a, 2000, 2000), load(3 * a, 3000, 3000)];
    let rm = |tasks: &[Load]| {
        (TESTS.iter().find(|t| t.name == "rm_share").expect("there").ask)(
            tasks,
            &ONE,
            Scheduler::Rm,
        )
    };
    assert_eq!(rm(&three(259)).answer, Answer::Admitted);
    assert_eq!(rm(&three(260)).answer, Answer::Unknown);
    // Dhall and Liu 1978: m small tasks and one of a whole CPU, on m CPUs: global EDF misses with hardly any load but one.
    let mut dhall = vec![load(2, 1000, 1000); 2];
    dhall.push(load(1000, 1001, 1001));
    let two = [Capacity(1024); 2];
    assert_eq!(admit(&dhall, &two, Scheduler::GlobalEdf).1.answer, Answer::Unknown);
    assert!(misses(&dhall, 2, None, 5000));
    // Demand: 5 due within 10 and 6 within 11.
    let tasks = [load(5, 20, 10), load(6, 20, 11)];
    assert_eq!((demand(&tasks, 10), demand(&tasks, 11), demand(&tasks, 30)), (5, 11, 16));
    assert_eq!(admit(&tasks, &ONE, Scheduler::Edf).1.answer, Answer::Admitted);
    let late = [load(5, 20, 10), load(6, 20, 10)];
    let (test, verdict) = admit(&late, &ONE, Scheduler::Edf);
    assert_eq!((test.expect("one").name, verdict.answer), ("edf_demand", Answer::Refused));
    assert_eq!(verdict.reason, "within 10 ns 11 ns are due");
}

#[test]
fn every_test_says_where_it_is_from_and_knows_nothing_of_no_tasks() {
    for test in TESTS {
        assert!(
            !test.source.is_empty() && !test.doc.is_empty() && !test.of.is_empty(),
            "{}",
            test.name
        );
        for of in test.of {
            let verdict = (test.ask)(&[], &ONE, *of);
            assert_eq!(verdict.answer, Answer::Admitted, "{}", test.name);
        }
    }
}
