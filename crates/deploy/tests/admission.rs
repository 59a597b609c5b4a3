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
