//! The rules of the Pixel modules, one at a time; sums of many are in `tests/pixel.rs`.

use super::*;

const MS32: &Decay = &Decay::MS32;

/// A Pixel 9 Pro says 9, 52 and 165 (read on a device in June 2026); its energy model's second
/// highest capacities are 179, 689 and 995.
#[test]
fn the_nominal_response_times_are_those_that_a_pixel_9_pro_says() {
    let nominal = |second, top| response_time_ms_nom(MS32, &[Capacity(second), Capacity(top)]);
    assert_eq!([nominal(179, 188), nominal(689, 731), nominal(995, 1024)], [9, 52, 165]);
    assert_eq!(response_time_ms_nom(MS32, &[Capacity(160)]), 8, "a single OPP: no more than it");
}

#[test]
fn headroom_is_time_or_a_share_of_what_is_left_or_of_util() {
    let with = |util, room| apply_dvfs_headroom(MS32, Util(util), Capacity(731), room, true).0;
    assert_eq!([0, 400, 731].map(|u| with(u, Room::Auto(500))), [10, 406, 734]);
    assert_eq!([0, 400, 731, 900].map(|u| with(u, Room::Tapered(1280))), [182, 482, 731, 900]);
    assert_eq!([0, 400, 731].map(|u| with(u, Room::Constant(1280))), [0, 500, 913]);
    let irq = apply_dvfs_headroom(MS32, Util(400), Capacity(731), Room::Tapered(1280), false);
    assert_eq!(irq, Util(500), "interrupts and deadlines have the constant one");
}

#[test]
fn a_deep_fall_waits_less_and_a_power_makes_it_steeper() {
    let limits = |scale_pow| RateLimits { up_ns: 500_000, down_ns: 5_000_000, scale_pow };
    let held =
        |pow, delta, now, next| limits(pow).sugov_up_down_rate_limit(delta, KHz(now), KHz(next));
    assert!(held(1, 499_999, 800_000, 900_000) && !held(1, 500_000, 800_000, 900_000));
    // Half the frequency: half the time, with a square a quarter.
    assert!(held(1, 2_499_999, 800_000, 400_000) && !held(1, 2_500_000, 800_000, 400_000));
    assert!(held(2, 1_249_999, 800_000, 400_000) && !held(2, 1_250_000, 800_000, 400_000));
    assert!(!held(1, 0, 0, 0) && !held(1, 0, 800_000, 800_000));
    assert!(limits(1).holds_all(499_999) && !limits(1).holds_all(500_000));
}

#[test]
fn an_iowait_boost_ends_at_its_limit_and_keeps_for_a_ms() {
    let (tick, cap) = (Span(4_000_000), Capacity(1024));
    let mut cpu = IowaitBoost::default();
    let at = |ms: u64| Instant(ms * 1_000_000);
    let up = |ms, cpu: &mut IowaitBoost| {
        cpu.asks(at(ms), tick, true, 400);
        cpu.applies(at(ms), tick, cap, true).0
    };
    assert_eq!([1, 2, 3].map(|ms| up(ms, &mut cpu)), [128, 256, 400]);
    assert_eq!(cpu.applies(at(4), tick, cap, true), Util(400), "no more than a ms later");
    assert_eq!(cpu.applies(Instant(4_000_001), tick, cap, true), Util(200));
    assert_eq!(cpu.applies(at(4), tick, cap, false), Util(0), "100 is below the least boost");
}

#[test]
fn headroom_comes_before_the_clamps_in_6_1_and_after_them_in_5_10() {
    let capacity = Capacity(1024);
    let ask = |room| Ask { decay: MS32, response_time_mult: 1024, room, capacity };
    let rq = RqUtil { uclamp_is_used: true, uclamp_max: Util(300), ..RqUtil::default() };
    let util = |room| {
        let clamp = |util: Util| util.min(Util(300));
        schedutil_cpu_util(&ask(room), Util(400), &rq, CpuUtilType::Frequency, clamp)
    };
    assert_eq!(util(Some(Room::Constant(1280))), Util(300));
    let of = |util, margin| map_util_freq(util, KHz(3_105_000), capacity, margin).0;
    assert_eq!(of(util(Some(Room::Constant(1280))), 1024), 909_667);
    assert_eq!(of(util(None), 1280), 1_137_084, "a quarter more than the clamp allows");
}

#[test]
fn a_boost_that_the_cpu_cannot_give_does_not_fit_and_a_full_share_does() {
    assert!(fits_by_margin(Util(512), Capacity(640), 1280));
    assert!(!crate::fits::fits_capacity(Util(512), Capacity(640)), "mainline's share is open");
    let fits = |util, clamps: (u64, u64), capacity, left| {
        let clamps = (Util(clamps.0), Util(clamps.1));
        util_fits_cpu(true, Util(util), clamps, Capacity(capacity), Capacity(left))
    };
    assert!(!fits(10, (200, 1024), 188, 188) && fits(10, (188, 1024), 188, 188));
    assert!(!fits(10, (700, 1024), 731, 600), "heat takes what the boost asks for");
    assert!(fits(10, (1024, 1024), 1024, 600), "on the biggest CPUs it always fits");
    let not = |max, capacity| {
        let clamps = (Util(0), Util(max));
        util_fits_cpu(false, Util(900), clamps, Capacity(capacity), Capacity(capacity))
    };
    assert!(not(512, 731) && !not(1024, 1024) && !not(800, 731));
}

#[test]
fn the_estimate_climbs_from_where_the_task_woke_by_all_it_ran_since_util_last_fell() {
    let mut task = RampUp::default();
    task.wakes(0, Util(100));
    let at = |task: &mut RampUp, ns, util, multiplier| {
        task.update_util_est_invariance(MS32, ns, Util(util), multiplier).map(|u| u.0)
    };
    let four_ms = approximate_util_avg(MS32, Util(100), 4000).0;
    assert_eq!(at(&mut task, 4_000_900, 105, 1), Some(four_ms));
    assert_eq!(at(&mut task, 8_000_900, 99, 1), None, "util is below that of its wakeup");
    assert_eq!(task.delta_exec, 8000);
    task.sleeps(8_500_000);
    task.wakes(8_500_000, Util(100));
    assert!(task.ignore_util_est_update, "util did not fall from one wakeup to the next");
    let ten_ms = approximate_util_avg(MS32, Util(100), 10_000).0;
    assert_eq!(at(&mut task, 10_500_000, 110, 1), Some(ten_ms), "8 ms of before count, too");
    task.sleeps(10_500_000);
    task.wakes(10_500_000, Util(90));
    assert_eq!((task.delta_exec, task.ignore_util_est_update), (0, false));
    assert_eq!(at(&mut task, 12_500_000, 95, 0), None, "no multiplier");
    assert_eq!(task.delta_exec, 0);
}

#[test]
fn samples_are_ignored_while_util_climbs_and_are_not_cut_at_the_capacity() {
    let est = Estimate { enqueued: 600, ewma: 400 };
    let auto = Sampling { auto: true, disabled: false, ignored: false };
    let update =
        |util, unchanged, rules| util_est_update(est, Util(util), unchanged, Capacity(188), rules);
    assert_eq!(update(100, false, Sampling { ignored: true, ..auto }), (est, false));
    assert_eq!(update(100, false, auto), (Estimate { enqueued: 100, ewma: 325 }, true));
    assert_eq!(update(300, false, auto).0.ewma, 375, "above the CPU's capacity");
    let fixed = Sampling { auto: false, ..auto };
    assert_eq!(update(300, false, fixed), (est, false), "not so without automatic headroom");
    assert_eq!(update(100, true, fixed), (est, true), "a value that was sampled already");
    assert_eq!(update(395, true, auto), (Estimate { enqueued: 395, ewma: 400 }, true));
    let off = Sampling { disabled: true, ..auto };
    assert_eq!(update(300, false, off), (Estimate::default(), false));
    assert_eq!(update(500, false, auto).0, Estimate { enqueued: 500, ewma: 500 });
}

#[test]
fn an_opp_whose_neighbour_costs_no_more_is_skipped() {
    let opps = [(500, 100, 1000), (600, 120, 1300), (700, 140, 1500), (800, 160, 2400)];
    let em = pixel_em(opps.iter().map(|o| (KHz(o.0), Capacity(o.1), o.2)));
    let all: alloc::vec::Vec<_> = em.iter().map(|o| (o.cost, o.inefficient)).collect();
    assert_eq!(all, [(10, true), (10, true), (10, false), (15, false)]);
    let freq = |wanted, efficient| opp_for(&em, KHz(wanted), efficient).expect("an OPP").freq.0;
    assert_eq!([freq(450, true), freq(450, false), freq(750, true)], [700, 500, 800]);
    assert_eq!(freq(900, true), 800, "the last one where none is fast enough");
}
