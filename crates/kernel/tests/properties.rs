//! Properties that hold for every input: bounds, conservation, composition, and agreement with
//! slower and simpler statements of the same rule.

use crate::draws;
use proptest::prelude::*;
use risetime_kernel::KernelRev;
use risetime_kernel::clock_pelt::RqClock;
use risetime_kernel::cpu_util::{
    CfsUtil, RqUtil, capacity_of, cpu_util_cfs_boost, effective_cpu_util,
};
use risetime_kernel::energy_model::{
    EmPerfDomain, EmPerfState, em_compute_costs, em_pd_get_efficient_state,
};
use risetime_kernel::opp::{FreqTableEntry, cpufreq_driver_resolve_freq};
use risetime_kernel::pelt::{
    Decay, SchedAvg, get_pelt_divider, update_load_avg_blocked_se, update_load_avg_cfs_rq,
    update_load_avg_se,
};
use risetime_kernel::pelt_cfs::{
    CfsRqAvg, attach_entity_load_avg, detach_entity_load_avg, init_entity_runnable_average,
    migrate_se_pelt_lag, post_init_entity_util_avg, propagate_entity_load_avg,
    remove_entity_load_avg, reweight_entity_load_avg, update_cfs_rq_load_avg,
};
use risetime_kernel::uclamp::{Uclamp, UclampId, UclampLimits, UclampRq, UclampTask};
use risetime_kernel::units::{Capacity, ClockPelt, Instant, KHz, MicroWatts, Span, Util, Weight};
use risetime_kernel::util_est::{UtilEst, util_est_update};

const REVS: [KernelRev; 3] = [KernelRev::V6_8, KernelRev::V6_12, KernelRev::V7_2];

/// Time between updates: mostly around a period, sometimes hardly any, sometimes a second.
fn step() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_000u64, 0..5_000_000u64, 1_040_000..1_060_000u64, 0..1_200_000_000u64]
}

/// The state during a step: off the queue, waiting, running.
fn state() -> impl Strategy<Value = (bool, bool)> {
    prop_oneof![Just((false, false)), Just((true, false)), Just((true, true))]
}

fn half_life() -> impl Strategy<Value = u32> {
    prop_oneof![Just(32u32), Just(16), Just(8), 1..=512u32]
}

fn series() -> impl Strategy<Value = Vec<(u64, (bool, bool))>> {
    prop::collection::vec((step(), state()), 1..60)
}

/// A task after a series of updates.
fn lived(decay: &Decay, weight: Weight, series: &[(u64, (bool, bool))]) -> SchedAvg {
    let mut sa = SchedAvg::default();
    let mut now = 0;
    for &(step, (on_rq, running)) in series {
        now += step;
        update_load_avg_se(decay, ClockPelt(now), &mut sa, weight, on_rq, on_rq as u64, running);
    }
    sa
}

/// What has run always is the most that can be, but for rounding.
///
/// ```text
/// load_sum        divider                    D(a) + D(b) <= D(a + b) where D, decaying by p periods, rounds
///                                            down: sum + d1 is at most LOAD_AVG_MAX before and after
/// runnable_sum    (divider + g) · 1024       the sum is 1024 times finer than what is added to it. That has
///                                            - D(LOAD_AVG_MAX) in it, and so gains less than 1 where
///                                            1 < p < h, less than 2 where p >= h (halved and multiplied, both
///                                            rounded down); what was gained before shrinks to y^p of it:
///                                            g = 1 + y² g, 1/(1 - y²) < 3/4 h + 2; or 2 + g/2, 4
/// runnable_avg    1024 + 1024 g / divider    more than 1024 only with half-lives below 5
/// ```
fn within_the_divider(
    series: &[(u64, (bool, bool))],
    half: u32,
    w: u64,
) -> Result<(), TestCaseError> {
    let decay = Decay::new(half).expect("in range");
    let gain = if half < 5 { 4 } else { u64::from(half) * 3 / 4 + 2 };
    let mut sa = SchedAvg::default();
    let mut now = 0;
    for &(step, (on_rq, running)) in series {
        now += step;
        let (clock, weight) = (ClockPelt(now), Weight(w));
        update_load_avg_se(&decay, clock, &mut sa, weight, on_rq, on_rq as u64, running);
        let divider = get_pelt_divider(&decay, &sa) as u64;
        prop_assert!(sa.load_sum <= divider);
        prop_assert!(sa.runnable_sum <= (divider + gain) << 10);
        prop_assert!(sa.util_sum as u64 <= sa.runnable_sum, "running is a part of runnable");
        // An average is as old as the last end of a period, where the divider was its least.
        let most = 1024 + (gain << 10) / (divider - u64::from(sa.period_contrib));
        prop_assert!(half < 5 || most == 1024);
        prop_assert!(sa.util_avg <= sa.runnable_avg && sa.runnable_avg <= Util(most));
        prop_assert!(sa.load_avg <= w);
        prop_assert!(sa.period_contrib < 1024);
        prop_assert!(sa.last_update_time.0 <= now && now - sa.last_update_time.0 < 1024);
    }
    Ok(())
}

/// With a half-life of one period every end of a period rounds twice.
#[test]
fn a_sum_of_the_shortest_half_life_gains_more_than_one() {
    let series =
        [(975_321_190, (false, false)), (800_961_434, (true, false)), (2_102_272, (true, false))];
    within_the_divider(&series, 1, 15).unwrap();
    let (mut sa, decay, mut now) = (SchedAvg::default(), Decay::new(1).expect("in range"), 0);
    for (step, (on_rq, _)) in series {
        now += step;
        let runnable = u64::from(on_rq);
        update_load_avg_se(&decay, ClockPelt(now), &mut sa, Weight(15), on_rq, runnable, false);
    }
    assert!(sa.runnable_sum > (u64::from(get_pelt_divider(&decay, &sa)) + 1) << 10);
}

proptest! {
    #![proptest_config(draws::config(256))]

    #[test]
    fn sums_stay_within_the_divider(series in series(), half in half_life(), w in 15..88762u64) {
        within_the_divider(&series, half, w)?;
    }

    #[test]
    fn util_of_a_busy_task_only_rises(start in series(), steps in prop::collection::vec(step(), 1..200)) {
        // Busy past a boundary first: idle time before it is not in the average yet.
        let start = [start, vec![(2_000_000, (true, true))]].concat();
        let mut sa = lived(&Decay::MS32, Weight(1024), &start);
        let mut now = sa.last_update_time.0;
        for step in steps {
            let before = sa.util_avg.0;
            now += step;
            update_load_avg_se(&Decay::MS32, ClockPelt(now), &mut sa, Weight(1024), true, 1, true);
            // At the top it trembles: rounding had lifted it to 1024, say, and lets it go.
            prop_assert!(sa.util_avg.0 >= before.min(1022), "{} after {}", sa.util_avg, before);
        }
        update_load_avg_se(
            &Decay::MS32, ClockPelt(now + 2_000_000_000), &mut sa, Weight(1024), true, 1, true,
        );
        prop_assert!(sa.util_avg.0 >= 1022, "two seconds are enough for the top");
    }

    #[test]
    fn a_sleeping_task_only_decays(start in series(), steps in prop::collection::vec(step(), 1..60)) {
        let mut sa = lived(&Decay::MS32, Weight(1024), &start);
        let mut now = sa.last_update_time.0;
        for step in steps {
            let before = sa;
            now += step;
            let crossed =
                update_load_avg_blocked_se(&Decay::MS32, ClockPelt(now), &mut sa, Weight(1024));
            prop_assert!(sa.util_sum <= before.util_sum && sa.load_sum <= before.load_sum);
            if !crossed {
                prop_assert_eq!(sa.util_avg, before.util_avg);
            }
        }
        update_load_avg_blocked_se(
            &Decay::MS32, ClockPelt(now + 3_000_000_000), &mut sa, Weight(1024),
        );
        prop_assert_eq!((sa.util_avg, sa.load_avg, sa.util_sum), (Util(0), 0, 0));
    }

    #[test]
    fn decay_composes_and_is_monotone(val: u64, a in 0..3000u64, b in 0..3000u64, half in half_life()) {
        let decay = Decay::new(half).expect("in range");
        let (both, split) = (decay.decay_load(val, a + b), decay.decay_load(decay.decay_load(val, a), b));
        // Each application loses less than 1 to rounding and 2^-32 of the value to the table.
        let table = (val >> 30) + 3;
        prop_assert!(both.abs_diff(split) <= table, "{} {}", both, split);
        prop_assert!(both <= decay.decay_load(val, a));
        prop_assert!(decay.decay_load(val, a) <= val);
        prop_assert!(decay.decay_load(val / 2, a) <= decay.decay_load(val, a));
    }

    #[test]
    fn a_step_in_two_parts_is_the_step(start in series(), st in state(), a in step(), b in step()) {
        let decay = &Decay::MS32;
        let mut once = lived(decay, Weight(1024), &start);
        let mut twice = once;
        let now = once.last_update_time.0;
        for (sa, times) in [(&mut once, &[a + b][..]), (&mut twice, &[a, a + b])] {
            for t in times {
                let (now, on) = (ClockPelt(now + t), st.0);
                update_load_avg_se(decay, now, sa, Weight(1024), on, on as u64, st.1);
            }
        }
        prop_assert_eq!(once.period_contrib, twice.period_contrib);
        prop_assert_eq!(once.last_update_time, twice.last_update_time);
        prop_assert!(once.util_sum.abs_diff(twice.util_sum) <= 4 << 10);
        prop_assert!(once.load_sum.abs_diff(twice.load_sum) <= 4);
    }
}

/// A runqueue with `tasks` attached to it at one moment, and those tasks.
fn attached(rev: KernelRev, tasks: &[SchedAvg], weight: Weight) -> (CfsRqAvg, Vec<SchedAvg>) {
    let mut cfs = CfsRqAvg::default();
    cfs.avg.last_update_time = ClockPelt(77 << 20);
    cfs.avg.period_contrib = 300;
    let mut tasks = tasks.to_vec();
    for task in &mut tasks {
        attach_entity_load_avg(rev, &Decay::MS32, &mut cfs, task, weight);
    }
    (cfs, tasks)
}

proptest! {
    #![proptest_config(draws::config(256))]

    #[test]
    fn attached_tasks_add_up_and_leave_nothing_behind(
        lives in prop::collection::vec(series(), 1..6),
        rev in prop::sample::select(&REVS),
        w in 15..9549u64,
        removed_without_lock: bool,
    ) {
        let (decay, weight) = (&Decay::MS32, Weight(w));
        let tasks: Vec<SchedAvg> = lives.iter().map(|l| lived(decay, weight, l)).collect();
        let (mut cfs, tasks) = attached(rev, &tasks, weight);
        prop_assert_eq!(cfs.avg.util_avg.0, tasks.iter().map(|t| t.util_avg.0).sum::<u64>());
        prop_assert_eq!(cfs.avg.load_avg, tasks.iter().map(|t| t.load_avg).sum::<u64>());
        prop_assert_eq!(cfs.avg.util_sum as u64, tasks.iter().map(|t| t.util_sum as u64).sum::<u64>());
        prop_assert!(cfs.propagate);
        for mut task in tasks {
            if removed_without_lock {
                remove_entity_load_avg(decay, &mut cfs, &mut task, weight);
            } else {
                detach_entity_load_avg(rev, decay, &mut cfs, &task, weight);
            }
        }
        let now = cfs.avg.last_update_time;
        let changed = update_cfs_rq_load_avg(rev, decay, now, &mut cfs, Weight(0), 0, false);
        prop_assert_eq!(changed, removed_without_lock);
        prop_assert_eq!((cfs.avg.util_avg, cfs.avg.runnable_avg, cfs.avg.load_avg), (Util(0), Util(0), 0));
        prop_assert_eq!((cfs.avg.util_sum, cfs.avg.runnable_sum), (0, 0));
        prop_assert_eq!(cfs.removed.nr, 0);
    }

    /// Together they age as they do apart: what the runqueue's sums are for.
    #[test]
    fn a_blocked_runqueue_ages_like_its_tasks(lives in prop::collection::vec(series(), 1..6), dt in step()) {
        let (decay, weight) = (&Decay::MS32, Weight(1024));
        let tasks: Vec<SchedAvg> = lives.iter().map(|l| lived(decay, weight, l)).collect();
        let (mut cfs, mut tasks) = attached(KernelRev::V7_2, &tasks, weight);
        let now = ClockPelt(cfs.avg.last_update_time.0 + dt);
        update_load_avg_cfs_rq(decay, now, &mut cfs.avg, Weight(0), 0, false);
        for task in &mut tasks {
            update_load_avg_blocked_se(decay, now, task, weight);
        }
        let sum: u64 = tasks.iter().map(|t| t.util_avg.0).sum();
        prop_assert!(cfs.avg.util_avg.0.abs_diff(sum) <= tasks.len() as u64);
    }

    #[test]
    fn reweight_exchanges_the_load_and_nothing_else(
        life in series(), rev in prop::sample::select(&REVS), old in 15..9549u64, new in 15..9549u64,
    ) {
        let decay = &Decay::MS32;
        let task = lived(decay, Weight(old), &life);
        let (mut cfs, mut tasks) = attached(rev, &[task], Weight(old));
        let before = cfs.avg;
        reweight_entity_load_avg(rev, decay, &mut cfs, &mut tasks[0], Weight(old), Weight(new));
        prop_assert_eq!(cfs.avg.load_avg, tasks[0].load_avg);
        prop_assert_eq!((cfs.avg.util_avg, cfs.avg.util_sum), (before.util_avg, before.util_sum));
        prop_assert!(tasks[0].load_avg <= new + 1);
    }

    #[test]
    fn a_group_follows_its_runqueue(lives in prop::collection::vec(series(), 1..5), rev in prop::sample::select(&REVS)) {
        let (decay, weight) = (&Decay::MS32, Weight(1024));
        let tasks: Vec<SchedAvg> = lives.iter().map(|l| lived(decay, weight, l)).collect();
        let (mut gcfs, tasks) = attached(rev, &tasks, weight);
        let mut ge = init_entity_runnable_average(None);
        let (mut root, mut ges) = attached(rev, &[ge], weight);
        ge = ges.remove(0);
        let nr = Weight(1024 * tasks.len() as u64);
        let follow = |gcfs: &mut CfsRqAvg, ge: &mut SchedAvg, root: &mut CfsRqAvg| {
            propagate_entity_load_avg(rev, decay, root, ge, weight, gcfs, nr)
        };
        prop_assert!(follow(&mut gcfs, &mut ge, &mut root));
        prop_assert!(!follow(&mut gcfs, &mut ge, &mut root), "once is enough");
        for (avg, of) in [(ge.util_avg, gcfs.avg.util_avg), (root.avg.util_avg, gcfs.avg.util_avg),
                          (ge.runnable_avg, gcfs.avg.runnable_avg)] {
            prop_assert_eq!(avg, of);
        }
        // Its weight at most; but running counts as runnable, even where utils add up to more.
        prop_assert!(ge.load_avg <= 1024.max(ge.util_avg.0));
        for task in &tasks {
            detach_entity_load_avg(rev, decay, &mut gcfs, task, weight);
        }
        follow(&mut gcfs, &mut ge, &mut root);
        prop_assert_eq!((ge.util_avg, root.avg.util_avg, ge.load_avg), (Util(0), Util(0), 0));
    }

    #[test]
    fn new_tasks_take_at_most_half_of_what_is_left(util in 0..1500u64, load in 0..5000u64, w in 15..88762u64) {
        let mut cfs = SchedAvg { load_avg: load, ..SchedAvg::default() };
        cfs.util_avg = Util(util);
        for rev in REVS {
            let mut sa = init_entity_runnable_average(Some(Weight(w)));
            prop_assert_eq!((sa.load_avg, sa.util_avg), (w, Util(0)));
            post_init_entity_util_avg(rev, &mut sa, Weight(w), &cfs, Capacity(1024));
            prop_assert!(sa.util_avg.0 <= 1024u64.saturating_sub(util) / 2);
            prop_assert_eq!(sa.util_avg, sa.runnable_avg);
            if util == 0 {
                prop_assert_eq!(sa.util_avg, Util(512));
            }
        }
    }

    #[test]
    fn clocks_never_go_back_nor_ahead(
        steps in prop::collection::vec((0..20_000_000u64, 0..3_000_000u64, 1..=1024u64, 1..=1024u64, 0..4u8), 1..80)
    ) {
        let mut clock = RqClock::default();
        for (wall, irq, capacity, freq, what) in steps {
            let before = clock;
            let idle = what == 0;
            clock.update_rq_clock(Span(wall), Span(irq), idle, Capacity(capacity), freq);
            prop_assert!(clock.rq_clock_pelt() >= before.rq_clock_pelt());
            prop_assert!(clock.rq_clock_pelt().0 <= clock.clock_task.0);
            prop_assert!(clock.clock_task <= clock.clock);
            if what == 1 {
                let (pelt, util_sum) = (clock.rq_clock_pelt(), if irq % 2 == 0 { 0 } else { u32::MAX });
                clock.update_idle_rq_clock_pelt(&Decay::MS32, util_sum);
                prop_assert_eq!(clock.clock_pelt, clock.clock_task.0);
                prop_assert!(clock.rq_clock_pelt() >= pelt);
                if util_sum == u32::MAX {
                    prop_assert_eq!(clock.rq_clock_pelt(), pelt, "lost");
                }
            }
        }
    }

    #[test]
    fn a_task_leaving_an_idle_cpu_is_aged_to_now(life in series(), slept in 0..200_000_000u64) {
        let (decay, weight) = (&Decay::MS32, Weight(1024));
        let task = lived(decay, weight, &life);
        let (cfs, tasks) = attached(KernelRev::V7_2, &[task], weight);
        let mut rq = RqClock::new(Instant(cfs.avg.last_update_time.0));
        rq.update_idle_rq_clock_pelt(decay, 0);
        let now = Instant(rq.clock.0 + slept);
        let (mut lagging, mut aged, mut busy) = (tasks[0], tasks[0], tasks[0]);
        migrate_se_pelt_lag(decay, &cfs, &rq, true, now, &mut lagging, weight);
        update_load_avg_blocked_se(decay, ClockPelt(now.0), &mut aged, weight);
        migrate_se_pelt_lag(decay, &cfs, &rq, false, now, &mut busy, weight);
        prop_assert_eq!(busy, tasks[0], "a busy CPU's clock is current enough");
        if tasks[0].load_sum != 0 || tasks[0].util_sum != 0 || tasks[0].runnable_sum != 0 {
            prop_assert_eq!(lagging, aged);
        }
    }

    #[test]
    fn util_est_lies_between_what_it_was_and_the_sample(
        est in 0..2000u32, util in 0..2000u64, runnable in 0..4000u64, cap in 1..=1024u64,
        rev in prop::sample::select(&REVS),
    ) {
        let new = util_est_update(rev, UtilEst(est), Util(util), Util(runnable), Capacity(cap), true, 1);
        let (est, new) = (est as u64, new.value().0);
        prop_assert!(new >= est.min(util) && new <= est.max(util));
        prop_assert!(util < est || new == util, "no less than the sample");
        prop_assert!(new + (est - est.min(util)).div_ceil(4) >= est, "down by a quarter at most");
    }

    #[test]
    fn utils_stay_within_the_capacity(
        u in prop::array::uniform6(0..2000u64), bw in 0..(1u64 << 20), cap in 1..=1024u64,
        clamps in (0..=1024u64, 0..=1024u64), rev in prop::sample::select(&REVS),
    ) {
        let capacity = Capacity(cap);
        let cfs = CfsUtil { util_avg: Util(u[0]), runnable_avg: Util(u[1]), util_est: Util(u[2]) };
        let used = cpu_util_cfs_boost(&cfs, capacity);
        prop_assert_eq!(used.0, u[0].max(u[1]).max(u[2]).min(cap));
        let rq = RqUtil {
            rt: Util(u[3]), dl: Util(u[4]), irq: Util(u[5]), dl_running_bw: bw,
            uclamp_min: Util(clamps.0), uclamp_max: Util(clamps.1), ..RqUtil::default()
        };
        let e = effective_cpu_util(used, &rq, capacity);
        prop_assert!(e.util.0 <= cap && e.max.0 <= cap);
        prop_assert!(e.util.0 >= u[5].min(cap), "interrupts count in full");
        let left = capacity_of(rev, capacity, &rq, 0, 0).0;
        prop_assert!((1..=cap).contains(&left));
    }

    #[test]
    fn the_runqueue_clamps_as_its_tasks_do_to_within_a_bucket(
        requests in prop::collection::vec((0..=1024u64, 0..=1024u64), 1..12),
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..60),
        buckets in 0..30usize,
    ) {
        let mut rq = UclampRq::new(buckets);
        let delta = 1024 / buckets.clamp(5, 20) as u64 + 1;
        let limits = UclampLimits::default();
        let request = |&(min, max): &(u64, u64)| Uclamp { min: Util(min), max: Util(max) };
        let mut tasks: Vec<UclampTask> = requests.iter().map(|r| UclampTask::new(request(r))).collect();
        let (mut last_max, mut queued) = (1024, vec![false; requests.len()]);
        for (which, inc) in moves {
            let which = which.index(requests.len());
            let task = &mut tasks[which];
            match (inc, std::mem::replace(&mut queued[which], inc)) {
                (true, false) => rq.uclamp_rq_inc(task, &limits),
                (false, true) => {
                    last_max = task.request.max.0;
                    rq.uclamp_rq_dec(task);
                }
                _ => continue,
            }
            let active = || tasks.iter().zip(&queued).filter(|(_, queued)| **queued).map(|(t, _)| t);
            prop_assert_eq!(rq.uclamp_rq_is_idle(), active().count() == 0);
            for id in UclampId::ALL {
                let got = rq.uclamp_rq_get(id).0;
                match active().map(|t| t.request.get(id).0).max() {
                    Some(max) => prop_assert!((max..max + 2 * delta).contains(&got), "{} {}", max, got),
                    None => prop_assert_eq!(got, if id == UclampId::Max { last_max } else { 0 }),
                }
            }
        }
    }

    #[test]
    fn the_resolved_opp_is_the_lowest_that_is_enough(
        freqs in prop::collection::btree_set(1..5000u64, 1..20), target in 0..6000u64,
        limits in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let freqs: Vec<u64> = freqs.into_iter().collect();
        let table: Vec<FreqTableEntry> =
            freqs.iter().map(|&f| FreqTableEntry { freq: KHz(f), inefficient: false }).collect();
        // Limits as cpufreq keeps them: OPPs of the table.
        let (a, b) = (limits.0.index(freqs.len()), limits.1.index(freqs.len()));
        let (min, max) = (freqs[a.min(b)], freqs[a.max(b)]);
        let idx = cpufreq_driver_resolve_freq(&table, KHz(target), KHz(min), KHz(max));
        let enough = freqs.iter().filter(|f| (min..=max).contains(f)).find(|&&f| f >= target);
        prop_assert_eq!(idx.map(|i| freqs[i]), Some(*enough.unwrap_or(&max)));
    }

    #[test]
    fn the_chosen_state_is_fast_enough_and_never_worth_less(
        freqs in prop::collection::btree_map(10_000..4_000_000u64, 1..2_000_000u64, 1..20),
        capacity in 200..=1024u64, util in 0..1200u64, rev in prop::sample::select(&REVS),
    ) {
        let mut states: Vec<EmPerfState> = freqs
            .iter()
            .map(|(&f, &p)| EmPerfState { frequency: KHz(f), power: MicroWatts(p), ..EmPerfState::default() })
            .collect();
        em_compute_costs(rev, &mut states, Capacity(capacity));
        let last = states.len() - 1;
        prop_assert_eq!(states[last].performance, Util(capacity));
        prop_assert!(!states[last].inefficient || states[last].cost == u64::MAX);
        for i in 0..last {
            let cheaper_above = states[i + 1..].iter().any(|s| s.cost <= states[i].cost);
            prop_assert_eq!(states[i].inefficient, cheaper_above);
        }
        let chosen = em_pd_get_efficient_state(&EmPerfDomain::new(&states), Util(util));
        let enough = |s: &EmPerfState| s.performance.0 >= util;
        prop_assert_eq!(enough(&states[chosen]), states.iter().any(enough));
        prop_assert!(states[..chosen].iter().all(|s| !enough(s) || s.inefficient));
    }
}
