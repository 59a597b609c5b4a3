//! Generated traces: identities that always hold, and a second computation by brute force.

#[path = "../../../tests/draws.rs"]
mod draws;
use crate::common::*;
use proptest::prelude::*;
use risetime_analysis::*;
use risetime_kernel::units::*;
use risetime_trace::{Event, SwitchOut, TraceSink, Why};

/// What one task does for one step of the brute-force model.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Sleeps,
    Waits,
    Runs { cpu: u32, mhz: u64 },
}

const STEP: u64 = 50 * US;

impl Step {
    fn speed(self) -> f64 {
        match self {
            // A little CPU at 1000 MHz has the speed of a big one at 1000 MHz.
            Step::Runs { mhz, .. } => mhz as f64 / 2000.0,
            _ => 0.0,
        }
    }
}

/// Pieces of 1 to 120 steps (50 µs to 6 ms, on both sides of 100 µs, a tick and 4.5 ms).
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Sleeps),
        2 => Just(Step::Waits),
        1 => Just(Step::Runs { cpu: 0, mhz: 500 }),
        1 => Just(Step::Runs { cpu: 0, mhz: 1000 }),
        1 => Just(Step::Runs { cpu: 2, mhz: 1000 }),
        4 => Just(Step::Runs { cpu: 2, mhz: 2000 }),
    ];
    let length =
        prop_oneof![3 => 1..4_usize, 2 => 15..25_usize, 2 => 85..95_usize, 1 => 1..120_usize];
    prop::collection::vec((step, length), 1..20).prop_map(|pieces| {
        // A task is runnable when it is created, and runs before it sleeps.
        let mut all = vec![Step::Waits, Step::Runs { cpu: 0, mhz: 500 }];
        all.extend(pieces.iter().flat_map(|(s, n)| std::iter::repeat_n(*s, *n)));
        all
    })
}

/// The trace of `steps`: what the CPUs and their frequencies must do to get there.
fn trace(steps: &[Step]) -> Trace {
    let mut t = Trace::new();
    t = t.freq(0, 500).freq(2, 1000).new_task(T, 0, 1024);
    let mut cpu = 0;
    let mut mhz = [500, 0, 1000];
    let mut before = Step::Waits;
    for (i, &step) in steps.iter().enumerate() {
        t = t.at(i as u64 * STEP);
        if before == step {
            continue;
        }
        let runs_on = |s| match s {
            Step::Runs { cpu, .. } => Some(cpu),
            _ => None,
        };
        // It can only fall asleep while it runs: for no time at all, if it waits.
        if step == Step::Sleeps && runs_on(before).is_none() {
            t = t.run(cpu, T).sleep(cpu, T);
        } else if let Some(c) = runs_on(before)
            && runs_on(step) != Some(c)
        {
            t = if step == Step::Sleeps { t.sleep(c, T) } else { t.preempt(c, T) };
        }
        if before == Step::Sleeps {
            t = t.wake(T, cpu);
        }
        if let Step::Runs { cpu: c, mhz: f } = step {
            if mhz[c as usize] != f {
                mhz[c as usize] = f;
                t = t.freq(c, f);
            }
            if c != cpu {
                t = t.migrate(T, cpu, c, Why::Balance);
                cpu = c;
            }
            if runs_on(before) != Some(c) {
                t = t.run(c, T);
            }
        }
        before = step;
    }
    t.at(steps.len() as u64 * STEP)
}

/// Bursts as [start, end) in steps, and how the burst ended if it had no full speed.
fn bursts(steps: &[Step]) -> Vec<(usize, usize, EndedBy)> {
    let mut bursts = Vec::new();
    let (mut start, mut i) = (0, 0);
    while i < steps.len() {
        let asleep = steps[i..].iter().take_while(|s| **s == Step::Sleeps).count();
        if asleep >= 90 {
            bursts.push((start, i, EndedBy::Sleep));
            start = i + asleep;
        }
        i += asleep.max(1);
    }
    if start < steps.len() {
        bursts.push((start, steps.len(), EndedBy::RunEnd));
    }
    bursts
}

/// The first step of a burst from which on the speed is full for 20 steps or more, with gaps
/// of at most 2 steps inside.
fn full_speed(burst: &[Step]) -> Option<usize> {
    let full = |s: &Step| s.speed() == 1.0;
    (0..burst.len()).filter(|&i| full(&burst[i])).find(|&i| {
        let mut gap = 0;
        for (n, s) in burst[i..].iter().enumerate() {
            gap = if full(s) { 0 } else { gap + 1 };
            if gap > 2 {
                return false;
            }
            if gap == 0 && n + 1 >= 20 {
                return true;
            }
        }
        false
    })
}

fn ms(steps: usize) -> f64 {
    steps as f64 * 0.05
}

proptest! {
    #![proptest_config(draws::config(400))]

    /// t0, t1, ends, endings, debts, running and waiting, against the definitions applied to
    /// every single step.
    #[test]
    fn brute_force_agrees(steps in steps()) {
        let trace = trace(&steps);
        let listed = trace.listed.clone();
        let r = trace.end();
        let (t, reported) = first(&r);
        let bursts = bursts(&steps);
        prop_assert_eq!(t.bursts as usize, bursts.len());
        prop_assert_eq!(listed.bursts(T).len(), bursts.len());
        let mut best: Option<Burst> = None;
        for (found, &(start, end, how)) in listed.bursts(T).iter().zip(&bursts) {
            let burst = &steps[start..end];
            let full = full_speed(burst);
            let t1 = full.map_or(end, |n| start + n);
            close(found.t0_ms, ms(start));
            close(found.end_ms, ms(end));
            close(found.t1_ms, ms(t1));
            prop_assert_eq!(found.ended_by, if full.is_some() { EndedBy::FullSpeed } else { how });
            let awake = steps[start..t1].iter().filter(|s| **s != Step::Sleeps);
            close(found.debt_ms, awake.map(|s| (1.0 - s.speed()) * 0.05).sum());
            close(found.debt_capped_ms, found.debt_ms);
            close(found.running_ms, ms(burst.iter().filter(|s| s.speed() > 0.0).count()));
            if best.is_none_or(|b| found.running_ms > b.running_ms + 1e-9) {
                best = Some(*found);
            }
        }
        prop_assert_eq!(Some(reported), best);
        let all = steps.len();
        let burst = |ms: f64| (ms / 0.05).round() as usize;
        let burst = &steps[burst(reported.t0_ms)..burst(reported.end_ms)];
        for (spent, steps) in [(&t.spent, burst), (&t.whole, &steps)] {
            close(spent.wait_ms, ms(steps.iter().filter(|s| **s == Step::Waits).count()));
            close(spent.work_ms, steps.iter().map(|s| s.speed() * 0.05).sum());
            for (cpu, mhz) in [(0, 500), (0, 1000), (2, 1000), (2, 2000)] {
                let here = steps.iter().filter(|s| **s == Step::Runs { cpu, mhz }).count();
                let found = spent.running.iter().find(|r| (r.cpu.0, r.freq.0) == (cpu, mhz * 1000));
                close(found.map_or(0.0, |r| r.ms), ms(here));
            }
            let cpus = steps.iter().filter_map(|s| match s {
                Step::Runs { cpu, .. } => Some(*cpu),
                _ => None,
            });
            let cpus: Vec<u32> = std::iter::once(0).chain(cpus).collect();
            let moves = cpus.windows(2).filter(|w| w[0] != w[1]).count() as u64;
            // A burst may begin elsewhere than where the one before it ended.
            prop_assert!(spent.moves().abs_diff(moves) <= u64::from(steps.len() < all), "{moves}");
        }
        prop_assert_eq!(t.whole.moves() as usize, listed.migrations(T).len());
        identities(&r)?;
    }

    /// Whatever is fed: no panic, and what must add up adds up.
    #[test]
    fn any_events_in_any_order(
        events in prop::collection::vec((0..3_u64, any_event()), 0..300),
    ) {
        let mut t = Trace::with(Options {
            timeline: true,
            levels: vec![7],
            ..Options::default()
        });
        let mut at = 0;
        for (gap, event) in events {
            // Same time, 70 µs and 5 ms later; and back, which the contract excludes.
            at += [0, 70 * US, 5 * MS][gap as usize];
            t.to.event(Instant(at.saturating_sub(gap & 1)), &event);
        }
        t.at = at;
        let listed = t.listed.clone();
        let r = t.end();
        identities(&r)?;
        let bursts: usize = r.tasks.iter().map(|t| t.bursts as usize).sum();
        let moves: u64 = r.tasks.iter().map(|t| t.whole.moves()).sum();
        let listed = listed.0.lock().unwrap();
        prop_assert_eq!((bursts, moves as usize), (listed.0.len(), listed.1.len()));
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let task = prop_oneof![8 => (0..3_u32).prop_map(TaskId), 1 => any::<u32>().prop_map(TaskId)];
    let cpu = prop_oneof![20 => (0..4_u32).prop_map(CpuId), 1 => any::<u32>().prop_map(CpuId)];
    let freq = prop_oneof![4 => (1..5_u64).prop_map(|n| KHz(n * 500_000)), 1 => (0..u64::MAX).prop_map(KHz)];
    let util = prop_oneof![4 => (0..1025_u64).prop_map(Util), 1 => any::<u64>().prop_map(Util)];
    let why = prop::sample::select(vec![Why::Util, Why::RateLimited, Why::Fixed, Why::InProgress]);
    let out = prop::sample::select(vec![
        SwitchOut::Preempted,
        SwitchOut::Sleeping,
        SwitchOut::Sleeping,
        SwitchOut::Exited,
    ]);
    let prev = prop::option::of((task.clone(), out));
    prop_oneof![
        1 => (task.clone(), any::<bool>(), cpu.clone(), why.clone(), util.clone()).prop_map(
            |(task, user, cpu, why, max_speed)| Event::TaskNew { task, comm: "x".into(), user, cpu, why, max_speed }
        ),
        3 => (task.clone(), cpu.clone(), why.clone())
            .prop_map(|(task, cpu, why)| Event::Wakeup { task, cpu, why }),
        6 => (cpu.clone(), prev, prop::option::of(task.clone()))
            .prop_map(|(cpu, prev, next)| Event::Switch { cpu, prev, next }),
        1 => (task.clone(), cpu.clone(), cpu.clone(), why.clone())
            .prop_map(|(task, from, to, why)| Event::Migrate { task, from, to, why }),
        2 => (cpu.clone(), freq.clone()).prop_map(|(cpu, freq)| Event::Freq { cpu, freq }),
        2 => (cpu.clone(), util.clone(), freq, why)
            .prop_map(|(cpu, util, freq, why)| Event::FreqRequest { cpu, util, freq, why }),
        1 => (cpu.clone(), prop::option::of(0..4_u32)).prop_map(|(cpu, state)| Event::Idle { cpu, state }),
        1 => (cpu.clone(), prop::option::of(task.clone()))
            .prop_map(|(cpu, task)| Event::Misfit { cpu, task }),
        1 => (task.clone(), util.clone())
            .prop_map(|(task, max_speed)| Event::MaxSpeed { task, max_speed }),
        3 => (task, cpu, util).prop_map(|(task, cpu, util_avg)| Event::PeltTask {
            task, cpu, util_avg, runnable_avg: util_avg, util_sum: 0, period_contrib: 0,
            last_update_time: ClockPelt(0),
        }),
    ]
}

/// What must hold in any result.
fn identities(r: &RunResult) -> Result<(), TestCaseError> {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + a.abs());
    for t in &r.tasks {
        let b = t.burst.expect("a task always has a burst");
        let lost: f64 = t.lost.iter().map(|l| l.ms).sum();
        prop_assert!(near(lost, b.debt_ms), "lost {lost}, debt {}", b.debt_ms);
        prop_assert!(t.lost.windows(2).all(|w| w[0].ms >= w[1].ms));
        prop_assert!(b.t0_ms <= b.t1_ms && b.t1_ms <= b.end_ms && b.end_ms <= r.end_ms);
        prop_assert!(b.debt_ms >= 0.0 && b.debt_ms <= b.t1_ms - b.t0_ms + 1e-6);
        for (spent, ms) in [(&t.spent, b.end_ms - b.t0_ms), (&t.whole, r.end_ms)] {
            let running: f64 = spent.running.iter().map(|r| r.ms).sum();
            prop_assert!(near(running, spent.running_ms) && spent.work_ms <= running + 1e-6);
            prop_assert!(running + spent.wait_ms <= ms + 1e-6);
        }
        prop_assert!(near(t.spent.running_ms, b.running_ms));
        prop_assert!(t.spent.running_ms <= t.whole.running_ms + 1e-6);
        prop_assert!(t.spent.moves() <= t.whole.moves());
        let residency: f64 = t.util_residency.iter().map(|u| u.ms).sum();
        prop_assert!(residency <= b.running_ms + 1e-6);
        prop_assert!(
            t.reach.iter().all(|x| x.after_ms.is_none_or(|ms| ms <= b.end_ms - b.t0_ms + 1e-6))
        );
    }
    for c in &r.cpus {
        let at_freq: f64 = c.freq.iter().map(|f| f.1).sum();
        let idle: f64 = c.idle.iter().map(|i| i.1).sum();
        prop_assert!(near(at_freq, r.end_ms), "CPU{}: {at_freq} of {}", c.cpu.0, r.end_ms);
        prop_assert!(idle + c.busy_ms <= r.end_ms + 1e-6);
    }
    let energy: f64 = r.cpus.iter().filter_map(|c| c.energy_mj).sum();
    prop_assert!(near(energy, r.energy_mj.expect("power is known")));
    Ok(())
}

/// Two tasks on two CPUs, fully known: running sums to busy, residency to running.
#[test]
fn running_sums_to_busy() {
    let mut t = Trace::new().freq(0, 500).freq(2, 1000).new_task(T, 0, 1024).new_task(U, 2, 1024);
    t = t.util(T, 0).util(U, 0);
    for i in 0..50 {
        let at = i * 3 * MS;
        t = t
            .at(at)
            .run(0, T)
            .run(2, U)
            .at(at + MS)
            .util(T, i)
            .util(U, 2 * i)
            .freq(0, 500 + 500 * (i % 2));
        t = t.at(at + 2 * MS).preempt(0, T).preempt(2, U);
    }
    let r = t.end();
    for (i, cpu) in [(0, 0), (1, 2)] {
        let task = &r.tasks[i];
        let running: f64 = task.spent.running.iter().map(|r| r.ms).sum();
        close(running, r.cpus[cpu].busy_ms);
        close(running, 100.0);
        close(task.util_residency.iter().map(|u| u.ms).sum(), running);
        close(
            task.whole.energy_mj.unwrap(),
            r.cpus[cpu].energy_mj.unwrap() - (r.end_ms - 100.0) * 0.002,
        );
    }
}

/// A hundred thousand bursts and migrations: memory stays bounded, the list says what is left out.
#[test]
fn a_long_run_stays_bounded() {
    let mut t = Trace::with(Options { timeline: true, ..Options::default() });
    t = t.freq(0, 500).freq(2, 1000).new_task(T, 0, 1024).at(10 * MS).run(0, T);
    for i in 0..70_000_u64 {
        let at = 20 * MS + i * 2 * US;
        let (from, to) = if i % 2 == 0 { (0, 2) } else { (2, 0) };
        t = t
            .at(at)
            .util(T, i % 1000)
            .preempt(from, T)
            .migrate(T, from, to, Why::Balance)
            .run(to, T);
    }
    let listed = t.listed.clone();
    let (r, timeline) = t.end_with_timeline();
    assert_eq!(r.tasks[0].migrations.len(), 64);
    assert_eq!(listed.migrations(T).len(), 70_000);
    let by = |from, to| Moves { from, to, why: "balance", n: 35_000 };
    assert_eq!(r.tasks[0].whole.migrations, [by(512, 1024), by(1024, 512)]);
    let timeline = timeline.unwrap();
    assert!(timeline.util.len() < 8200 && timeline.cpu.len() < 8200 && timeline.speed.len() < 8200);
    assert_eq!(timeline.util.iter().map(|u| u.1).max(), Some(999));
}
