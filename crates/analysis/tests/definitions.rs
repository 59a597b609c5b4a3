//! Traces written by hand, results computed by hand: bursts, full speed, work lost.

use crate::common::*;
use risetime_analysis::*;
use risetime_kernel::units::*;
use risetime_trace::{Event, Limit, SwitchOut, TraceSink, Why};

// ---- bursts ----

/// Runs 1 ms, sleeps `asleep`, runs 2 ms more, until the run's end.
fn sleeper(asleep: u64) -> (RunResult, Vec<Burst>) {
    let t = Trace::new();
    let listed = t.listed.clone();
    let r = t
        .freq(2, 2000)
        .new_task(T, 2, 1024)
        .run(2, T)
        .at(MS)
        .sleep(2, T)
        .at(MS + asleep)
        .wake(T, 2)
        .run(2, T)
        .at(3 * MS + asleep)
        .end();
    (r, listed.bursts(T))
}

#[test]
fn a_sleep_of_4_5_ms_ends_a_burst_and_a_shorter_one_does_not() {
    let (short, _) = sleeper(4_499_999);
    let (t, b) = first(&short);
    assert_eq!(t.bursts, 1);
    close(b.t0_ms, 0.0);
    close(b.running_ms, 3.0);
    close(b.end_ms, 7.499999);

    let (long, listed) = sleeper(4_500_000);
    let (t, b) = first(&long);
    assert_eq!(t.bursts, 2);
    close(b.t0_ms, 5.5);
    close(b.running_ms, 2.0);
    let ends: Vec<_> = listed.iter().map(|b| (b.t0_ms, b.end_ms, b.running_ms)).collect();
    assert_eq!(ends, [(0.0, 1.0, 1.0), (5.5, 7.5, 2.0)]);
}

/// Preempted for 10 ms: it waited, it did not sleep.
#[test]
fn queueing_is_not_sleep() {
    let t = Trace::new().freq(2, 2000).new_task(T, 2, 1024).run(2, T).at(MS / 2).preempt(2, T);
    let r = t.at(10 * MS + MS / 2).run(2, T).at(11 * MS).end();
    let (t, b) = first(&r);
    assert_eq!((t.bursts, b.ended_by), (1, EndedBy::RunEnd));
    close(t.whole.wait_ms, 10.0);
    // Full speed for half a tick, a gap, and half a tick again: never a whole tick.
    close(b.debt_ms, 10.0);
    assert_eq!(lost(t), [("waiting_for_cpu", 10.0)]);
}

/// Three bursts of 2, 3 and 3 ms: the second is reported, and figures go on to the run's end.
#[test]
fn the_burst_with_most_running_time_is_reported_the_first_on_ties() {
    let mut t = Trace::new().freq(0, 1000).freq(2, 1000).new_task(T, 0, 1024);
    for (i, ms) in [2, 3, 3].into_iter().enumerate() {
        let at = 10 * MS * i as u64;
        if i > 0 {
            t = t.at(at).wake(T, 0);
        }
        t = t.run(0, T).at(at + ms * MS).sleep(0, T);
    }
    let r = t.at(40 * MS).end();
    let (t, b) = first(&r);
    assert_eq!((t.bursts, b.ended_by), (3, EndedBy::Sleep));
    close(b.t0_ms, 10.0);
    close(b.t1_ms, 13.0);
    close(b.end_ms, 13.0);
    close(b.running_ms, 3.0);
    close(b.debt_ms, 1.5);
    assert_eq!(running(t), [(0, 1000, 3.0)]);
    close(t.spent.energy_mj.unwrap(), 3.0 * 0.040);
    close(t.whole.energy_mj.unwrap(), 8.0 * 0.040);
    close(t.whole.running_ms, 8.0);
}

#[test]
fn the_last_burst_is_reported_when_it_is_longest_and_counts_from_its_own_start() {
    let t = Trace::new().freq(2, 1000).new_task(T, 2, 1024).run(2, T).util(T, 500).at(2 * MS);
    let t = t.sleep(2, T).at(12 * MS).wake(T, 2).util(T, 400).run(2, T).at(14 * MS).util(T, 460);
    let r = t.at(15 * MS).end();
    let (t, b) = first(&r);
    assert_eq!(t.bursts, 2);
    close(b.t0_ms, 12.0);
    assert_eq!(running(t), [(2, 1000, 3.0)]);
    let util: Vec<_> = t.util_residency.iter().map(|u| (u.util, u.ms)).collect();
    assert_eq!(util, [(400, 2.0), (460, 1.0)]);
    // Not at 0, though the last util before the wakeup was 500.
    assert_eq!(after(t, Level::Util(450)), Some(2.0));
}

#[test]
fn a_burst_ends_with_exit_and_with_the_run() {
    let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T).at(4 * MS);
    let r = t.leave(0, T, SwitchOut::Exited).at(20 * MS).end();
    let (_, b) = first(&r);
    assert_eq!(b.ended_by, EndedBy::Exit);
    close(b.end_ms, 4.0);
    close(b.debt_ms, 3.0);

    let r = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T).at(4 * MS).end();
    let (t, b) = first(&r);
    assert_eq!(b.ended_by, EndedBy::RunEnd);
    close(b.end_ms, 4.0);
    assert_eq!(running(t), [(0, 500, 4.0)]);
}

/// The run ends 4.499 or 4.5 ms after the task fell asleep.
#[test]
fn a_run_that_ends_in_a_sleep() {
    let run = |asleep| {
        let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T).at(MS).sleep(0, T);
        t.at(MS + asleep).end()
    };
    let (_, b) = first(&run(4_499_999));
    assert_eq!(b.ended_by, EndedBy::RunEnd);
    close(b.end_ms, 5.499999);
    close(b.debt_ms, 0.75);
    let (_, b) = first(&run(4_500_000));
    assert_eq!(b.ended_by, EndedBy::Sleep);
    close(b.end_ms, 1.0);
}

#[test]
fn a_task_created_late_counts_from_its_creation() {
    let t = Trace::new().freq(0, 500).freq(2, 2000).new_task(T, 0, 1024).run(0, T).at(50 * MS);
    let t = t.new_task(U, 2, 1024).at(52 * MS).run(2, U).util(U, 450).at(60 * MS);
    let r = t.end();
    let late = &r.tasks[1];
    assert_eq!(late.task, U);
    let b = late.burst.unwrap();
    close(b.t0_ms, 50.0);
    close(b.t1_ms, 52.0);
    close(b.debt_ms, 2.0);
    close(late.whole.wait_ms, 2.0);
    assert_eq!(after(late, Level::Util(450)), Some(2.0));
    assert_eq!(after(late, Level::Capacity(1024)), Some(2.0));
}

// ---- full speed ----

/// Runs at full speed from 1 ms on but for a gap of `gap` after 0.6 ms.
fn gap(gap: u64, how: SwitchOut) -> RunResult {
    let t = Trace::new().freq(2, 1000).new_task(T, 2, 1024).run(2, T).at(MS).freq(2, 2000);
    let t = t.at(MS + 600 * US).leave(2, T, how).at(MS + 600 * US + gap);
    let t = if how == SwitchOut::Sleeping { t.wake(T, 2) } else { t };
    t.run(2, T).at(20 * MS).end()
}

#[test]
fn gaps_up_to_100_us_are_ignored() {
    for how in [SwitchOut::Preempted, SwitchOut::Sleeping] {
        let (_, b) = first(&gap(100_000, how));
        assert_eq!(b.ended_by, EndedBy::FullSpeed);
        close(b.t1_ms, 1.0);
        close(b.debt_ms, 0.5);
    }
}

#[test]
fn longer_gaps_start_the_tick_again() {
    let (_, b) = first(&gap(100_001, SwitchOut::Preempted));
    close(b.t1_ms, 1.700001);
    close(b.debt_ms, 0.5 + 0.100001);
    // Asleep, the time is left out of the integral but still no full speed.
    let (_, b) = first(&gap(100_001, SwitchOut::Sleeping));
    close(b.t1_ms, 1.700001);
    close(b.debt_ms, 0.5);
}

/// Many short gaps in one tick, then half a tick: a whole tick needs only each gap short.
#[test]
fn the_whole_tick_may_have_several_gaps_but_must_be_whole() {
    let run = |ticks: u64| {
        let mut t = Trace::new().freq(2, 2000).new_task(T, 2, 1024);
        for i in 0..ticks {
            t = t.at(i * 200 * US).run(2, T).at(i * 200 * US + 100 * US).preempt(2, T);
        }
        t.at(10 * MS).end()
    };
    let (_, b) = first(&run(6));
    assert_eq!(b.ended_by, EndedBy::FullSpeed);
    close(b.t1_ms, 0.0);
    close(b.debt_ms, 0.0);
    // Ends at 0.9 ms: not a whole tick; the rest of the run it waits.
    let (_, b) = first(&run(5));
    assert_eq!(b.ended_by, EndedBy::RunEnd);
    close(b.debt_ms, 9.5);
}

/// Exactly a tick counts, a nanosecond less does not.
#[test]
fn a_whole_tick() {
    let run = |ns| {
        let t = Trace::new().freq(2, 2000).new_task(T, 2, 1024).run(2, T).at(ns).freq(2, 1000);
        first(&t.at(10 * MS).end()).1.ended_by
    };
    assert_eq!(run(MS), EndedBy::FullSpeed);
    assert_eq!(run(MS - 1), EndedBy::RunEnd);
}

/// Waiting at t0 is lost even if it is shorter than a gap.
#[test]
fn a_gap_lies_between_two_stretches() {
    let t = Trace::new().freq(2, 2000).new_task(T, 2, 1024).at(50 * US).run(2, T);
    let (_, b) = first(&t.at(3 * MS).end());
    close(b.t1_ms, 0.05);
    close(b.debt_ms, 0.05);
}

/// 0.99 · s_max is enough, a little less is not. 1980 MHz and 1979 MHz are no OPPs.
#[test]
fn ninety_nine_percent() {
    let run = |mhz| {
        let t = Trace::new().freq(2, mhz).new_task(T, 2, 1024).run(2, T);
        first(&t.at(5 * MS).end()).1
    };
    assert_eq!(run(1980).ended_by, EndedBy::FullSpeed);
    assert_eq!(run(1979).ended_by, EndedBy::RunEnd);
    close(run(1979).debt_ms, 5.0 * (1.0 - 0.9895));
}

// ---- s_max below 1 ----

/// Bound to the little cluster: full speed is 0.5, the other half is nobody's fault.
#[test]
fn bound_to_small_cpus() {
    let limits = Event::SpeedLimits { task: T, affinity: Util(512), clamped: Util(512) };
    let t = Trace::new().freq(0, 500).new_task(T, 0, 512).event(limits).run(0, T);
    let r = t.at(4 * MS).freq(0, 1000).at(10 * MS).end();
    let (t, b) = first(&r);
    assert_eq!(b.ended_by, EndedBy::FullSpeed);
    close(b.t1_ms, 4.0);
    close(b.debt_ms, 3.0);
    close(b.debt_capped_ms, 1.0);
    assert_eq!(lost(t), [("affinity", 2.0), ("lowest_opp", 1.0)]);
}

/// s_max is given in whole units: 341 means the OPP of 333 MHz·1024/1000 = 340.99.
#[test]
fn s_max_is_the_speed_of_the_opp_it_was_rounded_from() {
    let mut platform = (*platform()).clone();
    platform.domains[0].opps[0].freq = KHz(666_000);
    let mut a = Analyzer::new(Options::default());
    a.header(&on(platform));
    let mut t = Trace { to: a, at: 0, listed: Listed::default() };
    t = t.freq(0, 666).new_task(T, 0, 340).at(2 * MS).run(0, T).at(9 * MS);
    let (_, b) = first(&t.end());
    close(b.t1_ms, 2.0);
    close(b.debt_ms, 2.0);
    close(b.debt_capped_ms, 2.0 * 0.333);
}

/// uclamp_max keeps it at 0.25, but on a shared CPU it gets 0.5: s_max − s is negative there.
#[test]
fn faster_than_s_max() {
    let limits = Event::SpeedLimits { task: T, affinity: Util(1024), clamped: Util(256) };
    let t = Trace::new().freq(0, 1000).new_task(T, 0, 256).event(limits).run(0, T);
    let r = t.at(MS / 2).preempt(0, T).at(2 * MS).end();
    let (t, b) = first(&r);
    close(b.debt_ms, 0.25 + 1.5);
    close(b.debt_capped_ms, -0.125 + 1.5 * 0.25);
    assert_eq!(lost(t), [("uclamp_max", 0.25 + 1.5 * 0.75), ("waiting_for_cpu", 1.5 * 0.25)]);
}

#[test]
fn s_max_may_change() {
    let t = Trace::new().freq(0, 1000).new_task(T, 0, 1024).run(0, T).at(4 * MS);
    let t = t.event(Event::MaxSpeed { task: T, max_speed: Util(512) });
    let (_, b) = first(&t.at(8 * MS).end());
    close(b.t1_ms, 4.0);
    close(b.debt_ms, 2.0);
    close(b.debt_capped_ms, 2.0);
}

// ---- where the debt went ----

/// Each ms in another state; the speed is 0.25 on the little CPU unless said otherwise.
#[test]
fn every_state_of_the_debt() {
    let t = Trace::new().freq(0, 500).freq(2, 1000).new_task(T, 0, 1024);
    let t = t.at(MS).run(0, T); // waited 1 ms
    let t = t.request(0, 500, Why::Util).at(2 * MS); // lowest_opp .25, little .5
    let t = t.refused(0, 400, 500).at(3 * MS); // rate_limited .25, little .5
    let t = t.request(0, 1000, Why::Util).at(4 * MS); // transition .25, little .5
    let t = t.misfit(0, Some(T)).freq(0, 1000).at(5 * MS); // misfit .5
    let t = t.request(0, 500, Why::UclampMax).freq(0, 500).at(6 * MS); // held .25, misfit .5
    let t = t.preempt(0, T).migrate(T, 0, 2, Why::Misfit).misfit(0, None).run(2, T).at(7 * MS);
    // On the big CPU at its lowest OPP: .5
    let t = t.request(2, 1000, Why::Fixed).at(8 * MS); // held .5
    let t = t.freq(2, 1500).request(2, 1500, Why::Util).at(10 * MS); // climb .25 for 2 ms
    let r = t.freq(2, 2000).at(20 * MS).end();
    let (t, b) = first(&r);
    assert_eq!(b.ended_by, EndedBy::FullSpeed);
    close(b.t1_ms, 10.0);
    close(b.debt_ms, 1.0 + 3.0 * 0.75 + 0.5 + 0.75 + 0.5 + 0.5 + 0.5);
    let wanted = [
        ("little_cpu", 1.5),
        ("idle_exit", 1.0),
        ("waiting_for_misfit", 1.0),
        ("lowest_opp", 0.75),
        ("opp_climb", 0.5),
        ("fixed_governor", 0.5),
        ("rate_limited", 0.25),
        ("transition", 0.25),
        ("uclamp_max", 0.25),
    ];
    assert_eq!(lost(t), wanted);
}

/// A refusal by the rate limit explains nothing where no more was wanted, or where what was
/// wanted before is still to come.
#[test]
fn the_rate_limit_is_to_blame_only_if_more_was_wanted() {
    let run = |util, mhz| {
        let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T);
        let r = t.refused(0, util, mhz).at(4 * MS).end();
        lost(first(&r).0).last().unwrap().0.to_owned()
    };
    assert_eq!(run(256, 500), "lowest_opp");
    assert_eq!(run(257, 500), "rate_limited");
    assert_eq!(run(257, 1000), "transition");
}

/// Only while the frequency is what cooling leaves, and more was wanted.
#[test]
fn what_cooling_takes_is_lost_to_it() {
    let run = |util, max| {
        let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T);
        let r = t.cooling(0, max).refused(0, util, 500).at(4 * MS).end();
        lost(first(&r).0).last().unwrap().0.to_owned()
    };
    assert_eq!(run(257, 500), "cooled");
    // All that a CPU has whose capacity goes down with its cap, which is a whole number.
    assert_eq!(run(256, 500), "cooled");
    assert_eq!(run(255, 500), "lowest_opp");
    assert_eq!(run(257, 1000), "rate_limited", "a cap that is above it");
    // It ends with the cap, and begins without another request.
    let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T).refused(0, 400, 500);
    let r = t.at(4 * MS).cooling(0, 500).at(8 * MS).cooling(0, 1000).at(16 * MS).end();
    let all = lost(first(&r).0);
    let of = |state| all.iter().find(|(name, _)| *name == state).expect("lost").1;
    close(of("rate_limited"), 3.0 * of("cooled"));
}

/// The lowest cap is to blame; the hardware's also where more was asked for, and a cap that leaves no bigger CPU also for that.
#[test]
fn every_cap_has_its_own_name() {
    let of = |t: Trace| -> Vec<(String, f64)> {
        let r = t.at(4 * MS).end();
        lost(first(&r).0).into_iter().map(|(state, ms)| (state.to_string(), ms)).collect()
    };
    let is = |found: Vec<(String, f64)>, wanted: &[(&str, f64)]| {
        let wanted: Vec<_> = wanted.iter().map(|(state, ms)| (state.to_string(), *ms)).collect();
        assert_eq!(found, wanted);
    };
    let little = || Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T);
    for (by, name) in [
        (Limit::Hardware, "hw_capped"),
        (Limit::Heat, "cooled"),
        (Limit::Firmware, "firmware_capped"),
        (Limit::Budget, "power_capped"),
        (Limit::User, "user_capped"),
    ] {
        let asked = little().request(0, 1000, Why::Util).capped(0, by, 500);
        is(of(asked), &[("little_cpu", 2.0), (name, 1.0)]);
        let refused = little().capped(0, by, 500).refused(0, 500, 500);
        is(of(refused), &[("little_cpu", 2.0), (name, 1.0)]);
        // 512 of capacity are not 5 % more than what the little has.
        let nowhere = little().freq(0, 1000).capped(2, by, 1000).misfit(0, Some(T));
        is(of(nowhere), &[(name, 2.0)]);
        let somewhere = little().freq(0, 1000).capped(2, by, 1500).misfit(0, Some(T));
        is(of(somewhere), &[("waiting_for_misfit", 2.0)]);
    }
    let two = little().capped(0, Limit::User, 500).capped(0, Limit::Firmware, 700);
    assert_eq!(of(two.request(0, 1000, Why::Util))[1].0, "user_capped");
}

/// Until a governor looks again, an idle CPU's frequency is the one last asked for; a nap of less than a tick is none.
#[test]
fn what_was_last_asked_for_before_a_sleep_has_a_name() {
    let of = |nap: u64, looks: bool| {
        let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T);
        let t = t.request(0, 500, Why::Util).at(MS).sleep(0, T).at(MS + nap).wake(T, 0);
        let t = if looks { t.request(0, 500, Why::Unchanged) } else { t };
        let r = t.run(0, T).at(9 * MS + nap).end();
        lost(first(&r).0).into_iter().find(|(state, _)| *state == "last_asked").map(|(_, ms)| ms)
    };
    assert_eq!(of(2 * MS, false), Some(2.0));
    assert_eq!((of(2 * MS, true), of(MS / 2, false)), (None, None));
}

/// What follows a decision and changes nothing does not change its reason either.
#[test]
fn unchanged_leaves_the_reason() {
    let run = |why| {
        let t = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T);
        let t = t.request(0, 500, why).request(0, 500, Why::Unchanged);
        let r = t.at(4 * MS).end();
        lost(first(&r).0).last().unwrap().0.to_owned()
    };
    assert_eq!(run(Why::Fixed), "fixed_governor");
    assert_eq!(run(Why::UclampMax), "uclamp_max");
    assert_eq!(run(Why::NotInvariant), "not_invariant");
    assert_eq!(run(Why::Util), "lowest_opp");
    assert_eq!(run(Why::RateLimited), "lowest_opp");
}

/// A trace that does not tell what was decided lends no decision's name.
#[test]
fn what_is_not_told_has_a_name_of_its_own() {
    let mut t = Trace::new();
    t.to.header(&with_signals(Vec::new()));
    let r = t.freq(0, 500).new_task(T, 0, 1024).run(0, T).at(MS).end();
    assert_eq!(lost(first(&r).0), [("small_cpu", 0.5), ("low_frequency", 0.25)]);
}

/// The misfit mark of another task says nothing about this one.
#[test]
fn misfit_of_whom() {
    let t = Trace::new().freq(0, 1000).new_task(T, 0, 1024).run(0, T).misfit(0, Some(U));
    let r = t.at(MS).end();
    assert_eq!(lost(first(&r).0), [("little_cpu", 0.5)]);
}

/// What a task had before it ran does not count; what it had later, and again, counts once.
#[test]
fn policies_are_those_that_a_task_ran_under() {
    use risetime_model::workload::Policy;
    let (fair, fifo) = (Policy::Other { slice: None }, Policy::Fifo { priority: 10 });
    let rr = Policy::Rr { priority: 7 };
    let policies = |before: Option<Policy>, changes: &[Policy]| {
        let policy = |t: Trace, policy| t.event(Event::Policy { task: T, policy });
        let mut t = Trace::new().freq(0, 500).new_task(T, 0, 1024);
        t = before.into_iter().fold(t, policy).at(MS).run(0, T);
        for (i, change) in changes.iter().enumerate() {
            t = policy(t.at((2 + i as u64) * MS), *change);
        }
        let r = t.at(100 * MS).sleep(0, T).end();
        (first(&r).0.policies.clone(), r.latency[0].policy)
    };
    assert_eq!(policies(None, &[]), (vec![], None));
    assert_eq!(policies(Some(fifo), &[]), (vec![fifo], Some(fifo)));
    assert_eq!(policies(None, &[rr, fair, rr]), (vec![fair, rr], Some(rr)));
    assert_eq!(policies(Some(fifo), &[rr, fifo, fair]), (vec![fifo, rr, fair], Some(fair)));
    // Parameters that change without end are cut.
    let many: Vec<Policy> = (1..60).map(|priority| Policy::Rr { priority }).collect();
    assert_eq!(policies(Some(fifo), &many).0.len(), 8);
}

/// Awake in three stretches of 1 ms with 2 and 8 ms of sleep between: the second burst begins after 8 ms.
#[test]
fn a_stretch_of_the_program_is_found_where_bursts_are_others() {
    let step = |t: Trace, number| t.event(Event::Step { task: T, number });
    // Runs at full speed never, sleeps in events 2 and 4.
    let run = |sleeps: [u64; 2], options: Options| {
        let mut t = step(Trace::with(options).freq(0, 500).new_task(T, 0, 1024).run(0, T), 1);
        let mut now = 0;
        for (i, ns) in sleeps.into_iter().enumerate() {
            now += MS;
            t = step(t.at(now), 2 * i as u64 + 2);
            if ns > 0 {
                t = t.sleep(0, T);
                now += ns;
                t = t.at(now).wake(T, 0).run(0, T);
            }
            t = step(t, 2 * i as u64 + 3);
        }
        t.at(now + MS).leave(0, T, SwitchOut::Exited).end()
    };
    let real = run([2 * MS, 8 * MS], Options::default());
    // The longest: 2 ms awake, until the sleep in event 4.
    let (t, burst) = first(&real);
    assert_eq!((burst.t0_ms, burst.end_ms, burst.running_ms), (0.0, 4.0, 2.0));
    let stretch = t.stretch;
    assert_eq!((stretch.from.step, stretch.to.step, stretch.to.sleeps), (0, 4, 1));
    let look = |sleeps, stretch| {
        let options = Options { stretch: Some((T, stretch)), ..Options::default() };
        first(&run(sleeps, options)).0.looked_for.map(|b| (b.running_ms, b.debt_ms, b.ended_by))
    };
    let same = Some((2.0, 1.5, EndedBy::Sleep));
    assert_eq!(look([2 * MS, 8 * MS], stretch), same, "itself");
    assert_eq!(look([8 * MS, 8 * MS], stretch), same, "split");
    assert_eq!(look([2 * MS, MS], stretch), same, "merged with the next");
    assert_eq!(look([0, 0], stretch), same, "nothing sleeps at all");
    // The second burst, from the wakeup in event 4 on.
    let second = Stretch { from: stretch.to, to: Position { step: 5, sleeps: u32::MAX } };
    let last = Some((1.0, 0.75, EndedBy::Exit));
    for sleeps in [[2 * MS, 8 * MS], [8 * MS, MS], [0, 0]] {
        assert_eq!(look(sleeps, second), last, "{sleeps:?}");
    }
    let never = Stretch { from: Position { step: 9, sleeps: 1 }, ..second };
    assert_eq!(look([0, 0], never), None);
}

/// What a deadline task did with its budget of 4 ms every 10 ms.
#[test]
fn a_deadline_task_that_does_not_keep_up_says_so() {
    use risetime_model::workload::Policy;
    use risetime_trace::{Origin, Signal};
    let [runtime, deadline, period] = [4 * MS, 10 * MS, 10 * MS].map(Span);
    let policy = Policy::Deadline { runtime, deadline, period, reclaim: false };
    let throttled = |t: Trace, on| t.event(Event::Throttled { task: T, on });
    let run = |told: bool| {
        let mut t = Trace::new();
        if told {
            let signals = vec![Signal { name: "dl_throttled", origin: Origin::Simulated }];
            t.to.header(&with_signals(signals));
        }
        t = t.freq(0, 1000).new_task(T, 0, 1024).event(Event::Policy { task: T, policy }).run(0, T);
        for at in [4, 14] {
            t = throttled(t.at(at * MS), true).preempt(0, T);
            t = throttled(t.at((at + 6) * MS), false).run(0, T);
        }
        t.at(25 * MS).end()
    };
    let r = run(true);
    let reservation = first(&r).0.reservation.expect("it is one");
    assert_eq!((reservation.unfinished_ms, reservation.due), (Some(25.0), 2));
    let throttled =
        risetime_analysis::Throttled { n: 2, ms: 12.0, longest_ms: 6.0, replenished: 2 };
    assert_eq!(reservation.throttled, Some(throttled));
    assert_eq!(
        r.notes,
        [
            "t: it was throttled 2 times, and waited 12.0 ms for the next period's runtime, at most 6.0 ms at a time; at the \
          run's end its activation is unfinished after 25.0 ms, in which 2 further periods began"
        ]
    );
    let unknown = run(false);
    assert_eq!(first(&unknown).0.reservation.unwrap().throttled, None);
    assert!(unknown.notes[0].starts_with("t: at the run's end"), "{:?}", unknown.notes);
    // One that keeps up has nothing to say.
    let fine = Trace::new().freq(0, 1000).new_task(T, 0, 1024);
    let fine = fine.event(Event::Policy { task: T, policy }).run(0, T).at(MS).sleep(0, T);
    let r = fine.at(25 * MS).end();
    assert_eq!(first(&r).0.reservation.map(|r| (r.unfinished_ms, r.due)), Some((None, 0)));
    assert_eq!(r.notes, [""; 0]);
    // Nor is an activation of any task counted that the end cut off.
    let cut = Trace::new().freq(0, 1000).new_task(T, 0, 1024).run(0, T).at(MS).sleep(0, T);
    let r = cut.at(9 * MS).wake(T, 0).run(0, T).at(12 * MS).end();
    let l = &r.latency[0];
    assert_eq!((l.activations, l.max_ms, l.unfinished, l.unfinished_ms), (1, 1.0, 1, 3.0));
}
