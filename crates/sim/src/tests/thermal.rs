//! Heat: temperatures follow the energy account, trip points cap frequencies, and nothing else changes.

use super::experiment;
use super::sampling::one_cpu;
use crate::Simulator;
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, MicroWatts, Span};
use risetime_model::platform::thermal::{Governor, Trip, Zone};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

const BUSY: &str = r#"{"tasks": {"t": {"loop": -1, "run": 1000}}}"#;

/// A platform of one CPU of 1, 2, 3 and 4 W, idle 0, which heats a zone of 10 K/W and 0.1 J/K: τ is
/// one second. It is cooled at 50 °C.
fn heated() -> Platform {
    let mut platform = one_cpu();
    let d = &mut platform.domains[0];
    for (opp, w) in d.opps.iter_mut().zip(1..) {
        opp.power = MicroWatts(w * 1_000_000);
    }
    d.idle.truncate(1);
    d.idle[0].power = MicroWatts(0);
    d.capacity = Capacity(1024);
    let passive = Trip { critical: false, temp_millicelsius: 50_000, hysteresis_millicelsius: 0 };
    platform.thermal = vec![Zone {
        name: "cpu".into(),
        heated_by: vec![CpuId(0)],
        ambient_millicelsius: 20_000,
        resistance_mk_per_w: 10_000,
        capacitance_mj_per_k: 100,
        coupled: Vec::new(),
        polling_delay_passive: Span::from_ms(100),
        polling_delay: Span::from_ms(100),
        trips: vec![passive],
        governor: Governor::StepWise,
        cools: vec![CpuId(0)],
    }];
    platform
}

fn run(platform: Platform, policy: &str, set: &[(&str, Value)], ms: u64) -> Memory {
    let workload = Workload::parse(BUSY, "heat.json").expect("a workload");
    let mut set = set.to_vec();
    if set.iter().all(|(name, _)| *name != "governor") {
        set.push(("governor", Value::Name("performance".into())));
    }
    let e = experiment(platform, workload, policy, &set, Span::from_ms(ms));
    let mut memory = Memory::new();
    Simulator.run(&e, &mut memory).expect("a run");
    memory
}

fn temperatures(trace: &Memory) -> Vec<u32> {
    let of = |(_, e): &(Instant, Event)| match e {
        Event::Temperature { millicelsius, .. } => Some(*millicelsius),
        _ => None,
    };
    trace.events().iter().filter_map(of).collect()
}

/// Lists when the highest frequency was another, in ms, and how many GHz.
fn caps(trace: &Memory) -> Vec<(u64, u64)> {
    let of = |(at, e): &(Instant, Event)| match e {
        Event::Cooling { max, .. } => Some((at.0 / 1_000_000, max.0 / 1_000_000)),
        _ => None,
    };
    trace.events().iter().filter_map(of).collect()
}

/// Where nothing cools, it comes to rest at 20 °C + 4 W · 10 K/W.
#[test]
fn it_comes_to_rest_at_ambient_plus_power_times_resistance() {
    let mut platform = heated();
    platform.thermal[0].cools.clear();
    let all = temperatures(&run(platform, "linux-7.2", &[], 12_000));
    assert_eq!((all.len(), all[0]), (121, 20_000));
    assert!(all.is_sorted());
    // After one second, one time constant: 20 + 40 · (1 - 1/e) = 45.285 °C.
    assert!(all[10].abs_diff(45_285) < 20, "{}", all[10]);
    assert!(all[120].abs_diff(60_000) < 5, "{}", all[120]);
}

/// One state more at each look at which it is hotter than before, one less where it is not: 3 W hold it at 50 °C.
#[test]
fn step_wise_goes_a_step_at_a_time() {
    let trace = run(heated(), "linux-7.2", &[], 10_000);
    let (all, caps) = (temperatures(&trace), caps(&trace));
    let first = all.iter().position(|t| *t >= 50_000).expect("it gets hot");
    // 20 + 40 · (1 - exp(-t)) = 50: after 1.386 s, at the look after that.
    assert_eq!((first, caps[0]), (14, (1400, 3)));
    assert!(all.iter().max() < Some(&52_000), "{:?}", all.iter().max());
    assert!(all[first..].iter().all(|t| *t > 48_000));
    let steps: Vec<u64> = [4].into_iter().chain(caps.iter().map(|(_, ghz)| *ghz)).collect();
    assert!(steps.windows(2).all(|w| w[0].abs_diff(w[1]) == 1), "{steps:?}");
    // What runs is never above the cap.
    let (mut cap, mut above) = (4, 0);
    for (_, event) in trace.events() {
        match event {
            Event::Cooling { max, .. } => cap = max.0 / 1_000_000,
            Event::Freq { freq, .. } => above += u32::from(freq.0 / 1_000_000 > cap),
            _ => {}
        }
    }
    // The hardware is slower before the cap is told of, so that each event is within the one before or its own.
    assert_eq!(above as usize, caps.windows(2).filter(|w| w[1].1 > w[0].1).count());
}

/// With 2.5 W sustained, `power_allocator` ends where P = (50 - 20) / 10 = 3 W at most, without ever being far above.
#[test]
fn power_allocator_holds_the_control_temperature() {
    let mut platform = heated();
    platform.thermal[0].governor = Governor::PowerAllocator {
        sustainable_power_mw: 2500,
        k_po: None,
        k_pu: None,
        k_i: None,
        integral_cutoff: 0,
    };
    let switch_on =
        Trip { critical: false, temp_millicelsius: 40_000, hysteresis_millicelsius: 1000 };
    platform.thermal[0].trips.insert(0, switch_on);
    let trace = run(platform, "linux-7.2", &[], 20_000);
    let all = temperatures(&trace);
    assert!(all.iter().max() < Some(&51_000), "{:?}", all.iter().max());
    assert!(*all.last().expect("looks") > 44_000);
    assert!(!caps(&trace).is_empty());
}

/// Off, it is the machine without zones, to the byte; and every kernel and governor runs with them.
#[test]
fn switched_off_it_changes_nothing() {
    let mut bare = heated();
    bare.thermal.clear();
    let bare = run(bare, "linux-7.2", &[], 2000);
    assert_eq!(
        run(heated(), "linux-7.2", &[("thermal", Value::Int(0))], 2000).events(),
        bare.events()
    );
    assert_ne!(run(heated(), "linux-7.2", &[], 2000).events(), bare.events());
    for policy in ["linux-4.4", "linux-5.10", "linux-6.1", "linux-6.8", "linux-6.12", "linux-7.3"] {
        for governor in ["schedutil", "performance", "ondemand", "conservative", "powersave"] {
            let own = [("governor", Value::Name(governor.into()))];
            let trace = run(heated(), policy, &own, 3000);
            let again = run(heated(), policy, &own, 3000);
            assert_eq!(trace.events(), again.events(), "{policy} {governor}");
            let hottest = temperatures(&trace).into_iter().max();
            assert!(hottest < Some(54_000), "{policy} {governor}: {hottest:?}");
        }
    }
}

/// A zone starts where it is told to, and is cooled at once where that is too hot.
#[test]
fn a_start_above_the_trip_is_cooled_at_once() {
    let trace = run(heated(), "linux-7.2", &[("start_temp", Value::Int(70_000))], 300);
    assert_eq!((temperatures(&trace)[0], caps(&trace)[0]), (70_000, (0, 3)));
    assert_eq!(
        trace
            .events()
            .iter()
            .filter(|(_, e)| matches!(e, Event::Freq { freq, .. } if *freq == KHz(4_000_000)))
            .count(),
        1
    );
}
