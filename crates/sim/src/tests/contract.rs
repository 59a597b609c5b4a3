//! Contract that every governor and every placement of the registries has to keep.
//!
//! A governor returns OPPs of its domain only, the same for the same inputs, more for more
//! util, and a rate-limited one keeps to its limit. A placement returns a CPU that the task may
//! use, and the same one when asked twice. Both say what they are and document what they take.

use super::experiment;
use super::generate::{experiments, platforms};
use crate::draws;
use crate::kernel::cpuidle;
use crate::kernel::governor::DomainView;
use crate::kernel::governor::{self, FreqRequest, GOVERNOR, Governor};
use crate::kernel::placement::Waker;
use crate::run::engine::Simulation;
use crate::state::effects::Effects;
use crate::state::machine::{Machine, State};
use crate::{catalogue, placement, power_hal, setup, tracker};
use proptest::collection::vec;
use proptest::prelude::*;
use risetime_kernel::adpf::Hint;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::settings::{Default, Range, Value};
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::Why;

/// An idle machine under this governor.
fn machine(platform: &Platform, governor: &'static str, set: &[(&str, Value)]) -> Experiment {
    let mut set = set.to_vec();
    set.push(("governor", Value::Name(governor.into())));
    experiment(
        platform.clone(),
        Workload::load("idle").expect("built in"),
        "linux-7.2",
        &set,
        Span::from_ms(1),
    )
}

fn governors<'a>(
    e: &Experiment,
    engine: &'a mut Simulation<'_>,
) -> (&'a mut Machine, Vec<Box<dyn Governor>>) {
    let descriptor = governor::find(e.settings.get(&GOVERNOR).expect("resolved"));
    let made = (0..e.platform.domains.len())
        .map(|d| (descriptor.make)(&e.platform, d, &e.settings))
        .collect();
    (&mut engine.k.m, made)
}

/// Question to a governor: this much later, the util of this CPU has become …
#[derive(Clone, Copy, Debug)]
struct Look {
    after: u64,
    cpu: u32,
    util: u64,
    iowait: bool,
    idled: bool,
}

fn looks() -> impl Strategy<Value = Vec<Look>> {
    let look = (0..3_000_000u64, any::<u32>(), 0..1100u64, any::<bool>(), any::<bool>());
    vec(
        look.prop_map(|(after, cpu, util, iowait, idled)| Look { after, cpu, util, iowait, idled }),
        1..60,
    )
}

/// Lists every answer with its time and domain.
fn answers(e: &Experiment, looks: &[Look]) -> Vec<(Instant, usize, Option<FreqRequest>)> {
    let mut sink = ();
    let mut engine =
        setup::simulation(e, &mut sink, crate::Counterfactual::default()).expect("a machine");
    let (m, mut governors) = governors(e, &mut engine);
    let mut all = Vec::new();
    for (index, g) in governors.iter_mut().enumerate() {
        all.push((
            m.now,
            index,
            g.start(&DomainView { machine: m, index, told: true }, &mut Effects::default()),
        ));
    }
    for look in looks {
        let cpu = CpuId(look.cpu % m.cpus.len() as u32);
        m.now += Span(look.after);
        let c = m.cpu_mut(cpu);
        c.cfs_avg.avg.util_avg = Util(look.util);
        c.idle_calls += u64::from(look.idled);
        let index = c.domain;
        let view = DomainView { machine: m, index, told: true };
        all.push((
            m.now,
            index,
            governors[index].update_util(&view, cpu, look.iowait, &mut Effects::default()),
        ));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 1000, ..draws::config(64) })]

    #[test]
    fn governors_choose_opps_and_the_same_ones_again(platform in platforms(), looks in looks()) {
        for d in governor::REGISTRY {
            let e = machine(&platform, d.name, &[]);
            let all = answers(&e, &looks);
            prop_assert_eq!(&all, &answers(&e, &looks));
            for (at, domain, request) in all {
                let Some(r) = request else { continue };
                let known = platform.domains[domain].opps.iter().any(|o| o.freq == r.freq);
                prop_assert!(known, "{} at {}: {:?}", d.name, at, r);
            }
        }
    }

    #[test]
    fn fixed_governors_say_it_once(platform in platforms(), looks in looks(), khz in 0..4_000_000u64) {
        for (name, set) in [("performance", None), ("powersave", None), ("userspace", Some(khz))] {
            let set: Vec<_> = set.iter().map(|k| ("scaling_setspeed", Value::Int(*k as i64))).collect();
            let (starts, later): (Vec<_>, Vec<_>) = {
                let mut all = answers(&machine(&platform, name, &set), &looks);
                let later = all.split_off(platform.domains.len());
                (all, later)
            };
            prop_assert!(later.iter().all(|(_, _, r)| r.is_none()));
            for (_, d, r) in starts {
                let opps = &platform.domains[d].opps;
                let (low, high) = (opps[0].freq, opps[opps.len() - 1].freq);
                let wanted = match name {
                    "performance" => high,
                    "powersave" => low,
                    _ => opps.iter().map(|o| o.freq).find(|f| f.0 >= khz).unwrap_or(high),
                };
                prop_assert_eq!(r, Some(FreqRequest { util: Util(0), freq: wanted, why: Why::Fixed }));
            }
        }
    }

    #[test]
    fn schedutil_keeps_to_its_rate_limit(platform in platforms(), looks in looks(), limit in 0..20_000i64) {
        let e = machine(&platform, "schedutil", &[("rate_limit_us", Value::Int(limit))]);
        let mut last = vec![None::<(Instant, KHz)>; platform.domains.len()];
        for (at, domain, request) in answers(&e, &looks) {
            let Some(r) = request else { continue };
            let before = &mut last[domain];
            let early = before.is_some_and(|(since, _)| at.since(since).0 < limit as u64 * 1000);
            let changes = before.is_none_or(|(_, freq)| freq != r.freq);
            prop_assert!(!(changes && early), "{at}: {r:?} after {before:?}");
            prop_assert!(r.why != Why::RateLimited || (early && !changes), "{at}: {r:?} after {before:?}");
            prop_assert!(changes != matches!(r.why, Why::Unchanged | Why::RateLimited | Why::HoldBusy), "{at}: {r:?} after {before:?}");
            if changes {
                *before = Some((at, r.freq));
            }
        }
    }

    #[test]
    fn schedutil_asks_for_more_where_there_is_more_util(platform in platforms(), utils in vec((0..1100u64, 0..200u64), 16)) {
        let e = machine(&platform, "schedutil", &[]);
        let first = |more: bool| -> Vec<KHz> {
            let mut sink = ();
            let mut engine = setup::simulation(&e, &mut sink, crate::Counterfactual::default()).expect("a machine");
            let (m, mut governors) = governors(&e, &mut engine);
            for (c, (util, add)) in m.cpus.iter_mut().zip(&utils) {
                c.cfs_avg.avg.util_avg = Util(util + if more { *add } else { 0 });
            }
            let ask = |(index, g): (usize, &mut Box<dyn Governor>)| {
                let view = DomainView { machine: m, index, told: true };
                g.update_util(&view, view.cpus()[0], false, &mut Effects::default()).expect("the first look decides").freq
            };
            governors.iter_mut().enumerate().map(ask).collect()
        };
        for (less, more) in first(false).into_iter().zip(first(true)) {
            prop_assert!(less <= more, "{less} for less util, {more} for more");
        }
    }

    #[test]
    fn placements_choose_cpus_that_the_task_may_use(mut e in experiments(), remembers: bool) {
        if remembers {
            e.settings.insert("no_decaying_headroom", Value::Int(1));
        }
        let mut sink = ();
        let mut engine = setup::simulation(&e, &mut sink, crate::Counterfactual::default()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        engine.start();
        let mut n = 0;
        while engine.step(Instant(e.duration.0)).map_err(|e| TestCaseError::fail(e.to_string()))? {
            n += 1;
            if n % 16 != 0 {
                continue;
            }
            for d in placement::REGISTRY {
                let m = &engine.k.m;
                for id in (0..m.tasks.len() as u32).map(TaskId).filter(|t| engine.k.m.is_fair(*t)) {
                    // With no CPU left to it, a task's affinity is given up before it is placed.
                    if !m.task(id).allowed.intersects(&m.root.online) {
                        continue;
                    }
                    let ask = || {
                        let view = placement::PlacementView { machine: m };
                        let mut p = (d.make)(&m.platform, &risetime_model::Settings::default());
                        let mut effects = Effects::default();
                        let placed = match m.task(id).state {
                            State::New => p.fork(&view, id),
                            _ => p.wake(&view, id, Waker::timer(m.task(id).cpu), &mut effects),
                        };
                        (placed, effects)
                    };
                    let (placed, effects) = ask();
                    prop_assert!(m.is_cpu_allowed(id, placed.cpu), "{}: {} on {:?}", d.name, id, placed);
                    prop_assert_eq!((placed, effects), ask());
                }
            }
        }
    }
}

/// Bandwidth that deadline tasks gain is not held back by the rate limit; what they give up is.
#[test]
fn deadline_bandwidth_that_rises_passes_the_rate_limit() {
    let platform = Platform::load("laptop4").expect("built in");
    let e = machine(&platform, "schedutil", &[("rate_limit_us", Value::Int(20_000))]);
    let mut sink = ();
    let mut engine =
        setup::simulation(&e, &mut sink, crate::Counterfactual::default()).expect("a machine");
    let (m, mut governors) = governors(&e, &mut engine);
    let mut look = |us: u64, sixteenths: u64| {
        m.now = Instant(us * 1000);
        m.cpu_mut(CpuId(0)).dl.running_bw = sixteenths << 16;
        let index = m.cpu(CpuId(0)).domain;
        let view = DomainView { machine: m, index, told: true };
        let r = governors[index]
            .update_util(&view, CpuId(0), false, &mut Effects::default())
            .expect("an answer");
        // The lowest OPP that is enough for the bandwidth, of the highest one.
        let opps = &platform.domains[index].opps;
        let enough = |f: KHz| f.0 * 16 >= opps[opps.len() - 1].freq.0 * sixteenths;
        let wanted = opps.iter().map(|o| o.freq).find(|f| enough(*f)).expect("one is enough");
        (r.freq == wanted, r.why == Why::RateLimited)
    };
    let (now, held) = ((true, false), (false, true));
    assert_eq!(look(1, 2), now, "the first look decides");
    assert_eq!(look(2, 8), now, "a rise, 1 µs later");
    assert_eq!(look(3, 4), held, "a fall waits");
    assert_eq!(look(4, 12), now, "a rise beyond what the last decision saw");
    assert_eq!(look(20_003, 4), held);
    assert!(!look(20_004, 4).1, "the limit has passed");
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 1000, ..draws::config(64) })]

    /// A power HAL asks for clamps that there are, for the same ones again, says ahead when they change of themselves, and lets
    /// go of a session that says nothing.
    #[test]
    fn power_hals_ask_for_clamps_and_let_go(
        target in 100_000u64..100_000_000, jobs in vec((1u64..200_000_000, 0u64..400_000_000, 0..8u32), 1..40),
    ) {
        let platform = Platform::load("pixel6").expect("built in");
        for d in power_hal::REGISTRY {
            let e = machine(&platform, "schedutil", &[("power_hal", Value::Name(d.name.into()))]);
            let asks = || {
                let hal = (d.make)(&e.settings)?;
                let mut now = Instant(1);
                let mut session = hal.create(Span(target), now);
                let mut all = vec![(now, session.uclamp_min(now))];
                for (actual, after, hint) in &jobs {
                    now += Span(*after);
                    match hint {
                        0 => session.hint(Hint::LoadUp, now),
                        1 => session.hint(Hint::LoadReset, now),
                        2 => session.hint(Hint::LoadResume, now),
                        3 => session.hint(Hint::LoadDown, now),
                        _ => session.reports(&[Span(*actual)], now),
                    }
                    all.push((now, session.uclamp_min(now)));
                }
                for _ in 0..20 {
                    let Some(next) = session.changes_at(now) else { break };
                    assert!(next > now, "{}", d.name);
                    let before = Instant(next.0 - 1);
                    assert_eq!(session.uclamp_min(before), session.uclamp_min(now), "{}", d.name);
                    now = next;
                }
                assert_eq!(session.changes_at(now), None, "{}", d.name);
                assert_eq!(session.uclamp_min(now), Util(0), "{}: it says nothing any more", d.name);
                Some(all)
            };
            let all = asks();
            prop_assert_eq!(&all, &asks());
            prop_assert!(all.into_iter().flatten().all(|(_, min)| min <= Util(1024)));
        }
    }
}

#[test]
fn the_names_in_the_settings_are_those_of_the_registries() {
    let governors: Vec<&str> = governor::REGISTRY.iter().map(|d| d.name).collect();
    assert_eq!(governors, governor::NAMES);
    let placements: Vec<&str> = placement::REGISTRY.iter().map(|d| d.name).collect();
    assert_eq!(placements, placement::NAMES);
    let trackers: Vec<&str> = tracker::REGISTRY.iter().map(|d| d.name).collect();
    assert_eq!(trackers, tracker::NAMES);
    let idle: Vec<&str> = cpuidle::REGISTRY.iter().map(|d| d.name).collect();
    assert_eq!(idle, cpuidle::NAMES);
    let hals: Vec<&str> = power_hal::REGISTRY.iter().map(|d| d.name).collect();
    assert_eq!(hals, power_hal::NAMES);
    for names in [governors, placements, trackers, idle, hals] {
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
}

#[test]
fn everything_that_can_be_set_says_what_it_is() {
    let sentence = |doc: &str| {
        doc.len() > 10
            && !doc.ends_with('.')
            && doc.starts_with(|c: char| !c.is_uppercase() || doc.starts_with("CPU"))
    };
    for doc in governor::REGISTRY
        .iter()
        .map(|d| d.doc)
        .chain(placement::REGISTRY.iter().map(|d| d.doc))
        .chain(tracker::REGISTRY.iter().map(|d| d.doc))
        .chain(cpuidle::REGISTRY.iter().map(|d| d.doc))
        .chain(power_hal::REGISTRY.iter().map(|d| d.doc))
    {
        assert!(sentence(doc), "{doc:?}");
    }
    let catalogue = catalogue();
    let mut names = Vec::new();
    for (group, p) in catalogue.params() {
        assert!(sentence(p.doc), "{}: {:?}", p.name, p.doc);
        // Two governors may have a tunable of one name, as in the kernel: one of them is in use.
        let clashes = |(owner, name): &(Option<_>, &str)| {
            *name == p.name && (owner.is_none() || group.owner.is_none() || *owner == group.owner)
        };
        assert!(!names.iter().any(clashes), "{} is there twice", p.name);
        names.push((group.owner, p.name));
        let (numbers, of_names) = p.range.parts();
        let kind = match p.default {
            Default::Int(n) => numbers.is_some_and(|(low, high)| low <= n && n <= high),
            Default::Name(name) => of_names.contains(&name),
            Default::Derived(how, _) => how.len() > 5,
            Default::Unset => true,
        };
        assert!(kind, "{}: default {:?} of {:?}", p.name, p.default, p.range);
        // A unit, unless it is a name, a switch (of some the kernel's file takes every number, and
        // holds 1), or the number of something.
        let switch = ["ignore_nice_load", "io_is_busy"].contains(&p.name);
        let plain = matches!(p.range, Range::OneOf(_) | Range::Int(0, 1))
            || switch
            || p.name == "first_cpu";
        assert_eq!(p.unit.is_empty(), plain, "{}: unit {:?}", p.name, p.unit);
        let suffix = [("_us", "µs"), ("_ns", "ns"), ("_ms", "ms")]
            .into_iter()
            .find(|(s, _)| p.name.ends_with(s));
        assert!(suffix.is_none_or(|(_, unit)| unit == p.unit), "{}: unit {:?}", p.name, p.unit);
        let owned = |(kind, name)| match kind {
            "governor" => governor::NAMES.contains(&name),
            "tracker" => tracker::NAMES.contains(&name),
            "power_hal" => power_hal::NAMES.contains(&name),
            "placement" => placement::NAMES.contains(&name),
            "cpuidle_governor" => cpuidle::NAMES.contains(&name),
            _ => false,
        };
        assert!(group.owner.is_none_or(owned));
    }
}
