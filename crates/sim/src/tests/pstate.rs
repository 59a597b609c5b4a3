//! Drivers that hand performance levels to the hardware: requests, the kernel's counters, and the model of what answers.

use super::{Bytes, experiment};
use crate::cause::{CAUSES, Cause, Causes};
use crate::{Counterfactual, Simulator};
use risetime_kernel::units::{CpuId, Instant, KHz, Span};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Backend, Event, Memory, Why};

/// A task that is busy for ever from 100 ms on, on CPU 0.
const BUSY: &str =
    r#"{"tasks": {"t": {"cpus": [0], "delay": 100000, "loop": -1, "runtime": 100000}}}"#;
/// A task that is busy 30 % of the time at full speed.
const STEADY: &str = r#"{"tasks": {"t": {"cpus": [0], "loop": -1, "run": 3000, "timer": {"ref": "a", "period": 10000}}}}"#;

/// A task that sleeps for longer than hardware holds a level.
const PULSED: &str = r#"{"tasks": {"t": {"cpus": [0], "loop": -1, "run": 20000, "sleep": 80000}}}"#;

/// Three processors without HWP: 0.8 to 3 GHz, 2 GHz at base.
const NO_HWP: &str = r#"
schema = 1
name = "old"
hz = 1000
[[domain]]
cpus = "0-1"
cpus_per_policy = 1
capacity = 1024
fast_switch = true
transition_delay_us = 500
levels = { scaling_driver = "intel_pstate", hwp = false, highest = 30, nominal = 20, lowest = 8, nominal_khz = 2000000, latency_ns = 20000 }
[sources]
capacity = "estimate"
opp = "estimate"
"#;

fn on(platform: &str, policy: &str, workload: &str, ms: u64) -> Experiment {
    let platform = match platform {
        "old" => Platform::parse(NO_HWP, "old.toml").expect("a platform"),
        name => Platform::load(name).expect("built in"),
    };
    let workload = Workload::parse(workload, "w").expect("a workload");
    experiment(platform, workload, policy, &[], Span::from_ms(ms))
}

fn trace(e: &Experiment) -> Vec<(Instant, Event)> {
    let mut memory = Memory::new();
    Simulator.run(e, &mut memory).expect("a run");
    memory.events().to_vec()
}

/// Frequencies of CPU 0, in MHz, by the time in µs.
fn freqs(e: &Experiment) -> Vec<(u64, u64)> {
    let of = |(at, e): &(Instant, Event)| match e {
        Event::Freq { cpu: CpuId(0), freq } => Some((at.0 / 1000, freq.0 / 1000)),
        _ => None,
    };
    trace(e).iter().filter_map(of).collect()
}

/// Returns the time from the begin of the busy task to its highest frequency, in µs.
fn ramp(platform: &str, policy: &str) -> u64 {
    let e = on(platform, policy, BUSY, 1100);
    let highest = e.platform.domains[0].freq_max().0 / 1000;
    let at = freqs(&e).into_iter().find(|(_, mhz)| *mhz >= highest);
    at.unwrap_or_else(|| panic!("{platform} {policy} never gets to {highest} MHz")).0 - 100_000
}

// ---------------------------------------------------------------------- requests

/// The level by hand: ⌈196 · util / 1024⌉, at least that of the lowest nonlinear frequency, which the driver finds again one
/// level higher (⌈1100334 · 126 / 3301000⌉ = 43, not 42).
#[test]
fn schedutil_hands_util_to_amd_pstate_and_no_frequency() {
    let e = on("ryzen-8840u", "linux-7.3+amd_pstate=passive", STEADY, 500);
    let mut seen = 0;
    for (_, event) in trace(&e) {
        let Event::FreqRequest { cpu: CpuId(0), util, freq, why } = event else { continue };
        if [Why::RateLimited, Why::InProgress].contains(&why) {
            continue;
        }
        let level = (196 * util.0).div_ceil(1024).clamp(43, 196);
        assert_eq!(freq, KHz((3_301_000 * level).div_ceil(126)), "{util:?} {why:?}");
        seen += 1;
    }
    assert!(seen > 20, "{seen} requests");
}

/// By hand: ⌈55 · util / 1024⌉, at least 5, of 86957 kHz each.
#[test]
fn schedutil_hands_util_to_intel_pstate_with_hwp() {
    for policy in ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"] {
        let e = on("lunar-lake", &format!("{policy}+intel_pstate=passive"), STEADY, 500);
        let asked = trace(&e).into_iter().filter_map(|(_, e)| match e {
            Event::FreqRequest { cpu: CpuId(0), util, freq, why: Why::Util | Why::Unchanged } => {
                Some((util.0, freq.0))
            }
            _ => None,
        });
        let asked: Vec<(u64, u64)> = asked.collect();
        assert!(asked.len() > 10, "{policy}: {asked:?}");
        for (util, khz) in asked {
            // Up to 6.7 the headroom comes on top, and nothing is above the capacity.
            assert_eq!(khz, (55 * util).div_ceil(1024).clamp(5, 55) * 86_957, "{policy}: {util}");
        }
    }
}

/// Where no driver takes util, raw frequencies are asked for: 1.25 · util of the highest, raised to a level.
#[test]
fn without_hwp_schedutil_asks_for_frequencies() {
    let e = on("old", "linux-7.3", STEADY, 500);
    assert_eq!(e.settings.by_name("intel_pstate"), Some(&Value::Name("passive".into())));
    for (_, event) in trace(&e) {
        let Event::FreqRequest { cpu: CpuId(0), util, freq, why: Why::Util } = event else {
            continue;
        };
        let raw = 3_000_000 * util.0 / 1024;
        assert_eq!(freq.0, raw.div_ceil(100_000).clamp(8, 30) * 100_000, "{util:?}");
    }
}

// ---------------------------------------------------------------------- what the kernel learns

/// `arch_freq_scale` of a CPU at 2 GHz where 3.301 · 1308 / 1024 GHz are full scale: 1024 · 2000 / 4216.
#[test]
fn the_kernel_learns_of_a_speed_by_counters_at_its_ticks() {
    let e = on("ryzen-8840u", "linux-7.3+governor=userspace+scaling_setspeed=2000000", BUSY, 300);
    let mut sink = Bytes::default();
    let mut engine = crate::run::setup::simulation(&e, &mut sink, crate::Counterfactual::default())
        .expect("an engine");
    engine.run(Instant(250_000_000)).expect("a run");
    let d = &engine.k.m.domains[0];
    assert_eq!(d.hw, KHz((3_301_000u64 * 77).div_ceil(126)), "the level at or above 2 GHz");
    assert_eq!(d.freq_scale, 489, "1024 · 1024 / 1308 · 2017.3 / 3301, rounded down");
}

// ---------------------------------------------------------------------- the hardware decides

#[test]
fn every_mode_gets_to_the_highest_frequency_and_the_fast_end_sooner() {
    for (platform, parameter, modes) in [
        ("ryzen-8840u", "amd_pstate", &["active", "passive", "guided"][..]),
        ("lunar-lake", "intel_pstate", &["active", "passive"][..]),
    ] {
        for mode in modes {
            let at =
                |end| ramp(platform, &format!("linux-7.3+{parameter}={mode}+hardware_ramp={end}"));
            let (fast, slow) = (at("fast"), at("slow"));
            // What is only told a level differs by less than a tick, at which the kernel sees the speed.
            let tick = if *mode == "passive" { 1_000 } else { 0 };
            assert!(fast <= slow + tick, "{platform} {mode}: fast {fast} µs, slow {slow}");
        }
    }
}

/// The ramps of the table: from the lowest level to the highest in so many ms, and up to a look and a change more.
#[test]
fn hardware_that_decides_climbs_as_its_table_says() {
    for (platform, end, ms) in [
        ("ryzen-8840u", "fast", 2.0),
        ("ryzen-8840u", "slow", 17.5),
        ("lunar-lake", "fast", 5.0),
        ("lunar-lake", "slow", 30.0),
    ] {
        let took = ramp(platform, &format!("linux-7.3+hardware_ramp={end}")) as f64 / 1000.0;
        assert!((ms - 1.0..ms + 2.1).contains(&took), "{platform} {end}: {took} ms, {ms} wanted");
    }
}

#[test]
fn a_greater_preference_for_energy_climbs_no_sooner() {
    for platform in ["ryzen-8840u", "lunar-lake"] {
        for end in ["fast", "slow"] {
            let names = ["performance", "balance_performance", "balance_power", "power"];
            let of = |epp: &str| {
                let set = format!("energy_performance_preference={epp}+hardware_ramp={end}");
                ramp(platform, &format!("linux-7.3+{set}"))
            };
            let took: Vec<u64> = names.iter().map(|epp| of(epp)).collect();
            assert!(took.is_sorted(), "{platform} {end}: {took:?}");
            assert!(took[0] < took[3], "{platform} {end}: {took:?}");
            assert_eq!(of("128"), took[1], "{platform} {end}");
        }
    }
}

/// Of intel_pstate the governor performance makes the least the most; amd-pstate's least is then the nominal level.
#[test]
fn under_performance_intel_has_the_highest_and_amd_at_least_the_nominal() {
    let lowest = |platform| {
        let e = on(platform, "linux-7.3+governor=performance", STEADY, 300);
        let later = freqs(&e).into_iter().filter(|(at, _)| *at > 100_000);
        (later.map(|(_, mhz)| mhz).min(), e.platform.domains[0].freq_max().0 / 1000)
    };
    assert_eq!(lowest("lunar-lake").0, None, "it never changes");
    let (least, _) = lowest("ryzen-8840u");
    assert_eq!(least, Some(3301));
}

/// At the slow end guided is what it is told; at the fast end the hardware goes above it, never below.
#[test]
fn guided_goes_above_what_it_is_told_and_never_below() {
    for end in ["slow", "fast"] {
        let policy = format!("linux-7.3+amd_pstate=guided+hardware_ramp={end}");
        let e = on("ryzen-8840u", &policy, STEADY, 500);
        let (mut asked, mut above) = (KHz(0), 0);
        for (at, event) in trace(&e) {
            match event {
                Event::FreqRequest { cpu: CpuId(0), freq, .. } => asked = freq,
                Event::Freq { cpu: CpuId(0), freq } if at.0 > 1_000_000 => {
                    above += usize::from(freq > asked);
                    // A request that came meanwhile is taken up when the change is done.
                    assert!(end == "slow" || freq >= asked || freq.0 > 0, "{at:?}");
                }
                _ => {}
            }
        }
        assert_eq!(above > 0, end == "fast", "{end}: {above} changes above the request");
    }
}

/// Without HWP, by hand: a sample of 10 ms that was busy throughout asks for 30 · 1.25 = 37 of 30 levels; one of 30 % at
/// 3 GHz for ⌊37 · 76 / 256⌋ = 10, and half of what it ran above that: (30 − 10) / 2.
#[test]
fn without_hwp_active_mode_is_the_driver_s_own_algorithm() {
    let e = on("old", "linux-7.3+intel_pstate=active", BUSY, 400);
    let up = freqs(&e).into_iter().find(|(_, mhz)| *mhz == 3000).expect("the highest");
    assert!((110_000..=122_000).contains(&up.0), "at {} µs: the second sample", up.0);
    let light = r#"{"tasks": {"t": {"cpus": [0], "loop": -1, "run": 1000, "timer": {"ref": "a", "period": 10000}}}}"#;
    let e = on("old", "linux-7.3+intel_pstate=active", light, 2000);
    let last: Vec<u64> =
        freqs(&e).into_iter().filter(|(at, _)| *at > 1_000_000).map(|f| f.1).collect();
    assert!(last.iter().all(|mhz| (800..=2000).contains(mhz)), "10 % stays low: {last:?}");
}

#[test]
fn explain_calls_the_hardware_s_climb_by_its_name() {
    let words = |policy: &str| {
        let e = on("lunar-lake", policy, BUSY, 10);
        (Cause::Opp.words_in(&e).0, Cause::Opp.acts_in(&e))
    };
    assert_eq!(words("linux-7.3"), ("the hardware's climb", true));
    assert_eq!(words("linux-7.3+intel_pstate=passive"), ("OPP rounding and headroom", true));
    assert!(!words("linux-7.3+governor=performance").1, "the least is the most");
}

/// What `explain` takes away reaches the hardware, too: without every cause the task is at full speed from its begin on.
#[test]
fn without_its_causes_nothing_keeps_the_hardware_from_full_speed() {
    for (platform, policy) in [
        ("ryzen-8840u", "linux-7.3"),
        ("ryzen-8840u", "linux-7.3+amd_pstate=passive"),
        ("ryzen-8840u", "linux-7.3+amd_pstate=guided+hardware_ramp=fast"),
        ("ryzen-8840u", "linux-7.3+governor=performance"),
        ("lunar-lake", "linux-7.3"),
        ("lunar-lake", "linux-7.3+intel_pstate=passive"),
        ("old", "linux-7.3+intel_pstate=active"),
    ] {
        let e = on(platform, policy, PULSED, 600);
        let without: Causes = CAUSES.iter().map(|known| known.cause).collect();
        let mut memory = Memory::new();
        let other = Counterfactual { without, ..Counterfactual::default() };
        other.run(&e, &mut memory).expect("a run");
        let highest = e.platform.domains[0].freq_max();
        let (mut freq, mut since) = (KHz(0), None);
        for (at, event) in memory.events() {
            // What happens at one time has happened when the next one comes.
            let runs = since.is_some_and(|since: Instant| *at > since && at.0 > 1_000_000);
            assert!(!runs || freq == highest, "{platform} {policy}: {freq:?} at {} ns", at.0);
            match *event {
                Event::Freq { cpu: CpuId(0), freq: next } => freq = next,
                Event::Switch { cpu: CpuId(0), next, .. } => since = next.map(|_| *at),
                _ => {}
            }
        }
        assert!(freq > KHz(0), "{platform} {policy}");
    }
}

// ---------------------------------------------------------------------- settings

fn resolved(platform: &str, arg: &str) -> Result<(String, String), String> {
    let platform = match platform {
        "old" => Platform::parse(NO_HWP, "old.toml").expect("a platform"),
        name => Platform::load(name).expect("built in"),
    };
    let policy = Policy::from_arg(arg).expect("a policy");
    let settings = crate::resolve(&platform, &policy).map_err(|e| e.to_string())?;
    let text = |name| settings.by_name(name).map_or(String::new(), Value::to_string);
    Ok((text("amd_pstate") + &text("intel_pstate"), text("governor")))
}

#[test]
fn the_mode_is_that_of_the_release_and_has_its_governors() {
    for (platform, arg, mode, governor) in [
        ("ryzen-8840u", "linux-7.3", "active", "powersave"),
        ("ryzen-8840u", "linux-6.5", "active", "powersave"),
        ("ryzen-8840u", "linux-6.1", "passive", "schedutil"),
        ("ryzen-8840u", "linux-5.10", "", "schedutil"),
        ("ryzen-8840u", "linux-7.3+governor=ondemand", "passive", "ondemand"),
        ("ryzen-8840u", "linux-7.3+governor=performance", "active", "performance"),
        ("ryzen-8840u", "linux-7.3+amd_pstate=guided", "guided", "schedutil"),
        ("lunar-lake", "linux-7.3", "active", "powersave"),
        ("lunar-lake", "linux-5.10", "active", "powersave"),
        ("lunar-lake", "linux-7.3+intel_pstate=passive", "passive", "schedutil"),
        ("old", "linux-7.3", "passive", "schedutil"),
        ("old", "linux-4.14", "active", "powersave"),
        ("m1", "linux-7.3", "", "schedutil"),
    ] {
        let own = resolved(platform, arg).unwrap_or_else(|e| panic!("{platform} {arg}: {e}"));
        assert_eq!(own, (mode.to_string(), governor.to_string()), "{platform} {arg}");
    }
}

#[test]
fn what_a_machine_or_a_release_has_not_is_refused() {
    for (platform, arg, words) in [
        ("m1", "linux-7.3+intel_pstate=active", "m1 has no driver of that kind"),
        ("lunar-lake", "linux-7.3+amd_pstate=active", "lunar-lake has intel_pstate"),
        ("ryzen-8840u", "linux-6.1+amd_pstate=active", "from 6.3 on"),
        ("ryzen-8840u", "linux-6.1+amd_pstate=guided", "from 6.4 on"),
        ("ryzen-8840u", "linux-5.10+amd_pstate=passive", "from 5.17 on"),
        ("ryzen-8840u", "linux-7.3+amd_pstate=no_hwp", "wanted one of active, passive, guided"),
        ("lunar-lake", "linux-7.3+intel_pstate=no_hwp", "hybrid processors"),
        (
            "lunar-lake",
            "linux-7.3+intel_pstate=active+governor=ondemand",
            "has performance and powersave",
        ),
        (
            "lunar-lake",
            "linux-7.3+intel_pstate=passive+energy_performance_preference=power",
            "not on lunar-lake in this mode",
        ),
        (
            "lunar-lake",
            "linux-7.3+governor=performance+energy_performance_preference=power",
            "the kernel refuses another",
        ),
        ("lunar-lake", "linux-7.3+energy_performance_preference=256", "0 to 255"),
    ] {
        let error = resolved(platform, arg).expect_err(arg);
        assert!(error.contains(words), "{platform} {arg}: {error}");
    }
}

/// The same experiment gives the same bytes in every mode, and each mode gives others.
#[test]
fn every_mode_gives_the_same_bytes_again_and_no_other_s() {
    let bytes = |policy: &str| {
        let mut sink = Bytes::default();
        Simulator.run(&on("ryzen-8840u", policy, STEADY, 200), &mut sink).expect("a run");
        sink.0
    };
    let policies = [
        "linux-7.3",
        "linux-7.3+hardware_ramp=fast",
        "linux-7.3+amd_pstate=passive",
        "linux-7.3+amd_pstate=passive+hardware_ramp=fast",
        "linux-7.3+amd_pstate=guided+hardware_ramp=fast",
    ];
    let all: Vec<String> = policies.iter().map(|p| bytes(p)).collect();
    for (i, policy) in policies.iter().enumerate() {
        assert_eq!(bytes(policy), all[i], "{policy}");
        assert!(all[..i].iter().all(|other| *other != all[i]), "{policy} changes nothing");
    }
}
