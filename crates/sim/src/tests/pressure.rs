//! System pressure: caps that come and go, how the scheduler hears of them, and which capacity belongs to which
//! frequency.

use super::generate::experiments;
use super::properties::run_checked;
use super::{Bytes, experiment};
use crate::draws;
use crate::mech::perf_domain::state::PerfDomain;
use crate::{Counterfactual, setup};
use proptest::prelude::*;
use risetime_kernel::KernelRev;
use risetime_kernel::energy_model::em_pd_get_efficient_state;
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::platform::Topology;
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use std::sync::Arc;

struct After {
    log: String,
    m: crate::Machine,
}

fn name(name: &str) -> Value {
    Value::Name(name.into())
}

fn run_on(platform: Platform, tasks: &str, policy: &str, set: &[(&str, Value)], ms: u64) -> After {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "w").expect("valid");
    let e = experiment(platform, workload, policy, set, Span::from_ms(ms));
    let mut sink = Bytes::default();
    let mut engine =
        setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
    engine.run(Instant(e.duration.0)).expect("a run");
    After { m: engine.k.m, log: sink.0 }
}

fn run(platform: &str, tasks: &str, policy: &str, set: &[(&str, Value)], ms: u64) -> After {
    run_on(Platform::load(platform).expect("built in"), tasks, policy, set, ms)
}

/// Lists when, in µs, and to where the first task moved.
fn moves(log: &str) -> Vec<(u64, u32)> {
    let line = |l: &str| {
        let at: u64 = l.split(' ').next()?.parse().ok()?;
        let to = l.split("to: CpuId(").nth(1)?.split(')').next()?.parse().ok()?;
        (l.contains("Migrate { task: TaskId(0)")).then_some((at / 1000, to))
    };
    log.lines().filter_map(line).collect()
}

/// A small task that asks for 300 of capacity, which a little CPU of hikey960 has unless it is capped.
const HINTED: &str =
    r#""t": {"loop": -1, "util_min": 300, "run": 300, "timer": {"ref": "t", "period": 4000}}"#;

/// Settings with which the littles have half of their capacity from 1 s to 2.8 s.
fn comes_and_goes(kind: &str, khz: &str, interface: &str) -> Vec<(String, Value)> {
    let set = [
        (format!("{khz}.policy0"), Value::Int(999_000)),
        (format!("{kind}_from_ms"), Value::Int(1000)),
        (format!("{kind}_until_ms"), Value::Int(2800)),
        (
            interface.split('=').next().unwrap_or("").to_owned(),
            name(interface.split('=').nth(1).unwrap_or("")),
        ),
    ];
    set.to_vec()
}

fn borrowed(set: &[(String, Value)]) -> Vec<(&str, Value)> {
    set.iter().map(|(k, v)| (k.as_str(), v.clone())).collect()
}

/// The µs after which the task leaves for a big CPU, and after which it comes back for good once
/// the cap has gone.
fn delays(policy: &str, set: &[(String, Value)]) -> (u64, u64) {
    let all = moves(&run("hikey960", HINTED, policy, &borrowed(set), 5000).log);
    let first = all.iter().find(|(_, to)| *to >= 4).expect("it leaves");
    let last = all.iter().rev().find(|(_, to)| *to < 4).expect("it comes back");
    (first.0 - 1_000_000, last.0 - 2_800_000)
}

/// Placement follows a cap in the order of the interfaces' delays, whoever caps and whatever the release.
#[test]
fn placement_follows_each_interface_with_its_delay() {
    for policy in ["linux-6.12", "linux-7.2", "linux-7.3"] {
        for (kind, khz, by) in [
            ("scaling_max_freq", "scaling_max_freq_to", "user_pressure"),
            ("firmware_capped", "firmware_capped_khz", "firmware_pressure"),
        ] {
            let of = |interface| {
                delays(policy, &comes_and_goes(kind, khz, &format!("{by}={interface}")))
            };
            let (instant, average, permanent) = (of("instant"), of("average"), of("permanent"));
            let period = 4000;
            assert!(instant.0 <= period && instant.1 <= period, "{policy} {kind}: {instant:?}");
            // From 231 of 462 down to 161 with a half-life of 32 ms: 57 ms. Back: at 162 it fits again.
            assert!((50_000..90_000).contains(&average.0), "{policy} {kind}: {average:?}");
            assert!((4000..30_000).contains(&average.1), "{policy} {kind}: {average:?}");
            for delay in [permanent.0, permanent.1] {
                assert!(
                    (1_000_000..1_000_000 + period).contains(&delay),
                    "{policy} {kind}: {delay}"
                );
            }
        }
    }
}

/// What each release's scheduler hears of, unless somebody says otherwise.
#[test]
fn a_release_hears_of_what_it_has_an_interface_for() {
    let hears = |policy: &str, kind: &str, khz: &str| {
        let set = comes_and_goes(kind, khz, "").into_iter().take(3).collect::<Vec<_>>();
        let after = run("hikey960", HINTED, policy, &borrowed(&set), 2500);
        after.m.cpu(CpuId(0)).actual < after.m.cpu(CpuId(0)).capacity
    };
    for (policy, user, hardware) in [
        ("linux-4.14", false, false),
        ("linux-6.1", false, true),
        ("linux-6.8", false, true),
        ("linux-6.12", true, true),
        ("linux-7.2", true, true),
    ] {
        let found = (
            hears(policy, "scaling_max_freq", "scaling_max_freq_to"),
            hears(policy, "hw_capped", "hw_capped_khz"),
        );
        assert_eq!(found, (user, hardware), "{policy}");
        assert_eq!(hears(policy, "firmware_capped", "firmware_capped_khz"), user, "{policy}");
    }
}

/// cpufreq keeps to the lowest of all; before 6.10 the scheduler takes the last number written.
#[test]
fn of_several_inputs_the_lowest_holds() {
    let set = |more: &[(&'static str, Value)]| {
        let mut all = vec![
            ("firmware_capped_khz.policy0", Value::Int(999_000)),
            ("scaling_max_freq_to.policy0", Value::Int(1_402_000)),
            ("scaling_max_freq_from_ms", Value::Int(100)),
        ];
        all.extend_from_slice(more);
        all
    };
    let after = run("hikey960", HINTED, "linux-7.2", &set(&[]), 500);
    let d = after.m.domain_of(CpuId(0));
    assert_eq!((d.max, d.slots.pressure.taken.0), (KHz(999_000), 462 - 462 * 999 / 1844));
    let averaged = [("firmware_pressure", name("average")), ("user_pressure", name("average"))];
    let pressure = |policy| {
        let after = run("hikey960", HINTED, policy, &set(&averaged), 500);
        assert_eq!(after.m.domain_of(CpuId(0)).max, KHz(999_000));
        after.m.cpu(CpuId(0)).slots.pressure.as_ref().expect("kept").hw_pressure.0
    };
    assert_eq!(pressure("linux-7.2"), 462 - 462 * 999 / 1844);
    assert_eq!(pressure("linux-6.8"), 462 - 462 * 1402 / 1844, "who writes last is right");
}

const BUSY: &str = r#""busy": {"cpus": [7], "loop": -1, "run": 1000000}"#;
const ONCE: &str = r#""once": {"cpus": [7], "loop": 1, "run": 100000}"#;

/// Hardware that slows down for half of each ms: work takes as much longer as its mean speed is lower.
#[test]
fn a_cap_of_khz_takes_its_share_of_work() {
    let done = |set: &[(&str, Value)]| {
        let log = run("m1", ONCE, "linux-7.2+governor=performance", set, 2000).log;
        let line = log.lines().find(|l| l.contains("Exited")).expect("done").to_owned();
        line.split(' ').next().expect("a time").parse::<u64>().expect("a number")
    };
    let cap = [
        ("hw_capped_khz.policy4", Value::Int(1_056_000)),
        ("hw_capped_period_us", Value::Int(1000)),
    ];
    // Half of the time 3204 MHz, half of it 1056.
    let expected = 100_000_000 * 3_204 * 2 / (3_204 + 1_056);
    assert!(done(&cap).abs_diff(expected) < 700_000, "{} for {expected}", done(&cap));
    let quarter = [cap[0].clone(), cap[1].clone(), ("hw_capped_on_us", Value::Int(250))];
    let expected = 100_000_000 * 3_204 * 4 / (3 * 3_204 + 1_056);
    assert!(done(&quarter).abs_diff(expected) < 700_000, "{} for {expected}", done(&quarter));
}

/// A power budget is the highest frequency at which all CPUs of the policy are within it.
#[test]
fn a_power_budget_is_a_frequency() {
    let platform = Platform::load("pixel6").expect("built in");
    let big = platform.domains[2].clone();
    for (i, opp) in big.opps.iter().enumerate() {
        for (limit, at) in [(opp.power.0 * 2, i), (opp.power.0 * 2 - 1, i.saturating_sub(1))] {
            let set = [("power_limit_uw.policy6", Value::Int(limit as i64))];
            let after = run("pixel6", BUSY, "linux-7.2", &set, 200);
            let d = after.m.domain_of(CpuId(7));
            assert_eq!((d.max, d.hw), (big.opps[at].freq, big.opps[at].freq), "{limit} µW");
        }
    }
}

/// A capacity for good: the CPU's own scale, so that a busy one is full at the limit, and nothing is pressure.
#[test]
fn a_permanent_limit_is_another_capacity_at_another_frequency() {
    let set = [
        ("scaling_max_freq_to.policy4", Value::Int(1_500_000)),
        ("scaling_max_freq_until_ms", Value::Int(3000)),
        ("user_pressure", name("permanent")),
    ];
    // 1500 of 3204 MHz: what is left is rounded down.
    let after = run("m1", BUSY, "linux-7.2", &set, 2500);
    let (c, d) = (after.m.cpu(CpuId(7)), after.m.domain_of(CpuId(7)));
    let left = 1024 * d.max.0 / 3_204_000;
    assert_eq!((c.capacity.0, d.scale.freq_ref), (left, d.max));
    assert_eq!((d.slots.pressure.taken, d.freq_scale, c.actual), (Capacity(0), 1024, c.capacity));
    // A fifth of the biggest CPU's work is a fifth of 1024, whatever the scale.
    let share = |ms| {
        let part = r#""part": {"cpus": [7], "loop": -1, "run": 4000, "timer": {"ref": "t", "period": 20000}}"#;
        let at = run("m1", part, "linux-7.2", &set, ms).m;
        at.task(TaskId(0)).avg.util_avg.0
    };
    let (before, during) = (share(900), share(2800));
    assert!(before.abs_diff(during) < 20, "{before} {during}");
    // Frequency and work are what they were: 1.5 GHz is as fast as ever.
    assert_eq!(d.speed, d.speed_at(d.max));
    let back = run("m1", BUSY, "linux-7.2", &set, 5000);
    let (c, d) = (back.m.cpu(CpuId(7)), back.m.domain_of(CpuId(7)));
    assert_eq!((c.capacity, d.scale.freq_ref), (Capacity(1024), KHz(3_204_000)));
    // Too short for good: nothing changes.
    let short = [set[0].clone(), ("scaling_max_freq_until_ms", Value::Int(900)), set[2].clone()];
    assert_eq!(run("m1", BUSY, "linux-7.2", &short, 2500).m.cpu(CpuId(7)).capacity.0, 1024);
}

/// The m1 with its highest big OPP as a boost: 1024 belongs to 2988 MHz now.
fn boosted() -> Platform {
    let mut platform = Platform::load("m1").expect("built in");
    platform.domains[1].opps.last_mut().expect("an OPP").turbo = true;
    platform
}

/// 6.1 asks for boost OPPs as soon as they are there; since 6.8 the capacity belongs to an ordinary frequency, and util
/// never asks for more than that.
#[test]
fn boost_opps_are_reached_by_util_before_6_8_only() {
    let top = |policy: &str, boost: i64| {
        let set = [("cpufreq_boost", Value::Int(boost))];
        run_on(boosted(), BUSY, policy, &set, 500).m.domain_of(CpuId(7)).hw.0
    };
    let nominal = boosted().domains[1].freq_max().0;
    assert_eq!((top("linux-6.1", 0), top("linux-6.1", 1)), (nominal, 3_204_000));
    assert_eq!((top("linux-7.2", 0), top("linux-7.2", 1)), (nominal, nominal));
    // A governor that does not ask util takes them.
    assert_eq!(top("linux-7.2+governor=performance", 1), 3_204_000);
    let after = run_on(
        boosted(),
        BUSY,
        "linux-7.2+governor=performance",
        &[("cpufreq_boost", Value::Int(1))],
        500,
    );
    let d = after.m.domain_of(CpuId(7));
    assert_eq!(d.freq_scale, 1024 * 3_204_000 / nominal, "faster than its capacity says");
    assert_eq!(d.slots.pressure.taken, Capacity(0));
}

/// What the model takes for full util: with boost OPPs in it the wrong state, unless it keeps its pair.
#[test]
fn a_boost_opp_shifts_the_energy_model_unless_it_keeps_its_pair() {
    for policy in ["linux-6.1", "linux-7.2"] {
        let state = |coherent: i64| {
            let set = [("em_coherent", Value::Int(coherent))];
            let after = run_on(boosted(), BUSY, policy, &set, 10);
            let PerfDomain { states, freq_ref, capacity, .. } =
                &after.m.domains[1].slots.perf_domain;
            let pd = after.m.domains[1].slots.perf_domain.em_perf_domain();
            if after.m.rev >= KernelRev::V6_9 {
                states[em_pd_get_efficient_state(&pd, Util(1024))].frequency.0
            } else {
                freq_ref.0 * 1024 / capacity.0
            }
        };
        let nominal = boosted().domains[1].freq_max().0;
        assert_eq!((state(0), state(1)), (3_204_000, nominal), "{policy}");
    }
}

/// A limit for good leaves 6.1's estimate with a pair that is none.
#[test]
fn a_permanent_limit_shifts_the_energy_model_of_6_1() {
    let mut set =
        comes_and_goes("scaling_max_freq", "scaling_max_freq_to", "user_pressure=permanent");
    // A cap under which the task still fits.
    set[0].1 = Value::Int(1_402_000);
    let leaves = |coherent: i64| {
        let mut set = set.clone();
        set.push(("em_coherent".into(), Value::Int(coherent)));
        let all = moves(&run("hikey960", HINTED, "linux-6.1", &borrowed(&set), 3500).log);
        all.iter().any(|(_, to)| *to >= 4)
    };
    assert!(leaves(0), "the littles look dearer than they are");
    assert!(!leaves(1));
}

#[test]
fn placement_does_without_energy_while_a_boost_opp_is_wanted() {
    for off in [0, 1] {
        let set = [("cpufreq_boost", Value::Int(1)), ("eas_off_in_boost", Value::Int(off))];
        let mut m = run_on(boosted(), BUSY, "linux-6.1", &set, 1).m;
        assert!(m.is_energy_aware(), "an ordinary frequency");
        m.domains[1].wanted = KHz(3_204_000);
        assert_eq!(m.is_energy_aware(), off == 0);
    }
}

#[test]
fn there_is_no_energy_aware_placement_until_the_model_is_ready() {
    let set = [("eas_ready_ms", Value::Int(500)), ("first_cpu", Value::Int(5))];
    let after = |ms| run("hikey960", HINTED, "linux-7.2", &set, ms);
    assert!(!after(400).m.root.energy_aware);
    assert!(after(600).m.root.energy_aware);
    let (at, to) = moves(&after(1000).log)[0];
    assert!(at >= 500_000 && to < 4, "to a little CPU, then: {to} at {at} µs");
}

/// Half of the frequency is 60 % of the work here: the hardware is so, and the scheduler only where it keeps it.
#[test]
fn a_capacity_of_each_opp_is_the_hardwares_and_the_schedulers_if_it_keeps_it() {
    let mut platform = Platform::load("m1").expect("built in");
    let top = platform.domains[1].freq_max().0;
    for opp in &mut platform.domains[1].opps {
        // From 20 % at 0 in a straight line.
        opp.capacity = Some(Capacity(
            1024 / 5 + 1024 * 4 * opp.freq.0 / (5 * top) + u64::from(opp.freq.0 == top),
        ));
    }
    let half = *platform.domains[1].opps.iter().find(|o| o.freq.0 * 2 > top).expect("an OPP");
    platform.domains[1].opps.last_mut().expect("one").capacity = Some(Capacity(1024));
    let fixed = [("scaling_max_freq.policy4", Value::Int(half.freq.0 as i64))];
    let kept = |keep: i64| {
        let set = [fixed[0].clone(), ("opp_capacity", Value::Int(keep))];
        run_on(platform.clone(), BUSY, "linux-7.2", &set, 1000).m
    };
    let own = half.capacity.expect("given").0;
    let (without, with) = (kept(0), kept(1));
    for m in [&without, &with] {
        // 30 bits of fraction.
        let speed = (m.domain_of(CpuId(7)).speed * 1024) >> crate::state::machine::SPEED_SHIFT;
        assert!(speed.abs_diff(own) <= 1, "the hardware: {speed} for {own}");
    }
    assert_eq!(without.domain_of(CpuId(7)).freq_scale, half.freq.0 * 1024 / top);
    assert_eq!(with.domain_of(CpuId(7)).freq_scale, own);
    // What a limit leaves.
    assert_eq!(with.cpu(CpuId(7)).actual.0, own);
    // schedutil asks for the OPP that has so much, not for one in proportion.
    let task = r#""t": {"cpus": [7], "loop": -1, "util_max": 500, "run": 1000000}"#;
    let set = [("opp_capacity", Value::Int(1))];
    let d = run_on(platform.clone(), task, "linux-7.2", &set, 1000).m;
    let hw = d.domain_of(CpuId(7)).hw;
    let enough = platform.domains[1].opps.iter().find(|o| o.capacity >= Some(Capacity(500)));
    assert_eq!(Some(hw), enough.map(|o| o.freq));
}

/// intel-hybrid has no powers: its driver's artificial model makes EAS possible, under schedutil.
#[test]
fn an_artificial_model_serves_cpus_without_opps() {
    let with = |model: Option<&str>| {
        let set: Vec<_> = model.map(|m| ("energy_model", name(m))).into_iter().collect();
        // SMT keeps energy awareness off.
        let mut platform = Platform::load("intel-hybrid").expect("built in");
        platform.topology = Topology::default();
        let task = r#""t": {"loop": -1, "run": 300, "sleep": 3700}"#;
        run_on(platform, task, "linux-7.2+intel_pstate=passive", &set, 1000).m
    };
    assert!(!with(None).root.energy_aware);
    for model in ["cppc", "hybrid"] {
        let m = with(Some(model));
        assert!(m.root.energy_aware, "{model}: aware");
        // A small task ends up on one of the efficient CPUs.
        let small = m.cpus.iter().map(|c| c.capacity).min();
        assert_eq!(Some(m.cpu(m.task(TaskId(0)).cpu).capacity), small, "{model}");
    }
}

/// intel-hybrid as shipped has cores of two threads, and its driver decides by itself.
#[test]
fn an_energy_model_that_nothing_goes_by_is_refused() {
    let refused = |platform: Platform, policy: &str, model: &str| {
        let set = [("energy_model".to_owned(), name(model))];
        let policy = Policy::from_arg_with(policy, &set).expect("a policy");
        crate::resolve(&platform, &policy).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let hybrid = || Platform::load("intel-hybrid").expect("built in");
    let alone = || Platform { topology: Topology::default(), ..hybrid() };
    let passive = "linux-7.2+intel_pstate=passive";
    for model in ["table", "cppc", "hybrid"] {
        assert!(refused(hybrid(), passive, model).contains("several threads"), "{model}");
        assert!(refused(alone(), "linux-7.2", model).contains("the governor is"), "{model}");
        assert_eq!(refused(alone(), passive, model), "", "{model}");
    }
    let rpi4 = Platform::load("rpi4").expect("built in");
    assert!(refused(rpi4, "linux-7.2", "cppc").contains("one capacity"));
}

/// An emergency: the hardware caps itself by the temperature of the network, and keeps within its thresholds.
#[test]
fn hardware_that_gets_too_hot_caps_itself() {
    let platform = Platform::load("hikey620-uncooled").expect("built in");
    let busy: Vec<String> = (0..8)
        .map(|i| format!(r#""b{i}": {{"cpus": [{i}], "loop": -1, "run": 1000000}}"#))
        .collect();
    let run_with = |set: &[(&str, Value)]| {
        run_on(platform.clone(), &busy.join(", "), "linux-7.2+governor=performance", set, 60_000).m
    };
    let start = ("start_temp", Value::Int(60_000));
    let cap = [
        start.clone(),
        ("hw_capped_khz", Value::Int(208_000)),
        ("hw_capped_above_millicelsius", Value::Int(62_000)),
        ("hw_capped_below_millicelsius", Value::Int(61_000)),
    ];
    let temp = |m: &crate::Machine| {
        m.slots.thermal.as_ref().expect("zones").zones.iter().map(|z| z.node.millicelsius()).max()
    };
    let (free, capped) = (run_with(&[start]), run_with(&cap));
    assert!(temp(&free) > Some(62_500), "{:?}", temp(&free));
    assert!((60_800..62_200).contains(&temp(&capped).expect("a zone")), "{:?}", temp(&capped));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |platform: Platform, policy: &str, set: &[(&str, i64)]| {
        let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), Value::Int(*v))).collect();
        let policy = Policy::from_arg_with(policy, &set).expect("a policy");
        crate::resolve(&platform, &policy).expect_err("no settings").to_string()
    };
    let m1 = || Platform::load("m1").expect("built in");
    for (policy, set, what) in [
        ("linux-7.2", &[("hw_capped_from_ms", 5)][..], "hw_capped_khz is not set"),
        (
            "linux-7.2",
            &[
                ("firmware_capped_khz", 5),
                ("firmware_capped_from_ms", 9),
                ("firmware_capped_until_ms", 9),
            ],
            "is not after",
        ),
        (
            "linux-7.2",
            &[("power_limit_uw", 5), ("power_limit_on_us", 9)],
            "power_limit_period_us is not set",
        ),
        (
            "linux-7.2",
            &[("hw_capped_khz", 5), ("hw_capped_period_us", 10), ("hw_capped_on_us", 10)],
            "is not less than",
        ),
        ("linux-7.2", &[("cpufreq_boost", 1)], "has no boost OPPs"),
        ("linux-7.2", &[("eas_off_in_boost", 1)], "has no boost OPPs"),
        ("linux-7.2", &[("opp_capacity", 1)], "no OPP of m1 has a capacity"),
        ("linux-6.1", &[("opp_capacity", 1)], "wanted 6.9 or newer"),
        (
            "linux-7.2",
            &[("hw_capped_khz", 5), ("hw_capped_above_millicelsius", 9)],
            "no thermal zones",
        ),
    ] {
        let found = refused(m1(), policy, set);
        assert!(found.contains(what), "{set:?}: {found}");
    }
    let hybrid = Platform::load("intel-hybrid").expect("built in");
    assert!(refused(hybrid, "linux-7.2", &[("power_limit_uw", 5)]).contains("is unknown"));
    let set = [("energy_model".to_owned(), name("hybrid"))];
    let policy = Policy::from_arg_with("linux-6.12", &set).expect("a policy");
    assert!(
        crate::resolve(&m1(), &policy).expect_err("too old").to_string().contains("since 6.16")
    );
}

/// Caps of every kind on drawn machines, some with boost OPPs and capacities of single OPPs.
fn pressed() -> impl Strategy<Value = Experiment> {
    let interface = || prop::sample::select(&["none", "instant", "average", "permanent"][..]);
    let interfaces = [interface(), interface(), interface(), interface()];
    let caps = prop::collection::vec((0..4usize, 0..4_000_000i64, 0..200i64, 10..60_000i64), 1..5);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (experiments(), interfaces, caps, switches).prop_map(|(e, interfaces, caps, switches)| {
        let mut platform = (*e.platform).clone();
        let mut settings = e.settings.clone();
        let mut set = |k: &str, v: Value| settings.insert(k, v);
        let (boost, kept, coherent, off) = switches;
        // Since 6.8 PELT's clock runs ahead of the task's under a boost, and is set back when the CPU goes idle: what a
        // queue and its tasks know then differs, in a kernel as here.
        let boost = boost && e.policy.kernel < KernelRev::V6_8;
        for d in &mut platform.domains {
            let n = d.opps.len() as u64;
            if boost && n > 1 {
                d.opps.last_mut().expect("some").turbo = true;
            }
            let top = d.opps.iter().filter(|o| !o.turbo).count() as u64;
            if kept && d.capacity.0 > 2 * n {
                // A curve, the domain's own at the highest that is no boost.
                for (i, opp) in d.opps.iter_mut().enumerate() {
                    opp.capacity = Some(Capacity((d.capacity.0 + i as u64 + 1) - top));
                }
            }
        }
        if boost && platform.domains.iter().any(|d| d.opps.len() > 1) {
            set("cpufreq_boost", Value::Int(1));
            set("eas_off_in_boost", Value::Int(off.into()));
        }
        set("opp_capacity", Value::Int((kept && e.policy.kernel >= KernelRev::V6_9).into()));
        set("em_coherent", Value::Int(coherent.into()));
        set("pressure_permanent_ms", Value::Int(30));
        let prefixes = ["hw_capped", "firmware_capped", "power_limit", "scaling_max_freq"];
        let values =
            ["hw_capped_khz", "firmware_capped_khz", "power_limit_uw", "scaling_max_freq_to"];
        let by = ["hw_pressure", "firmware_pressure", "power_pressure", "user_pressure"];
        for (kind, value, from, period) in caps {
            let powered = platform.domains.iter().all(|d| d.opps[0].power.0 > 0);
            if kind == 2 && !powered {
                continue;
            }
            set(values[kind], Value::Int(value));
            set(&format!("{}_from_ms", prefixes[kind]), Value::Int(from));
            set(&format!("{}_until_ms", prefixes[kind]), Value::Int(from + 100));
            set(&format!("{}_period_us", prefixes[kind]), Value::Int(period));
            set(by[kind], name(interfaces[kind]));
        }
        Experiment { platform: Arc::new(platform), settings, ..e }
    })
}

proptest! {
    #![proptest_config(draws::config(48))]

    /// Whatever caps, the machine stays consistent and its trace possible.
    #[test]
    fn nothing_impossible_happens_under_pressure(e in pressed()) {
        run_checked(&e)?;
    }
}
