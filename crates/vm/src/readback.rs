//! Facts that the booted kernel must tell of itself: it is the platform, and it does as it was
//! told.
//!
//! ```text
//! settings       each as it was written
//! capacities, frequencies            the platform's
//! energy model   power, performance and efficiency of each OPP, and which of two neighbours
//!                costs more
//! sched_energy_aware   1 where energy-aware scheduling is possible: every policy under
//!                schedutil, power known, capacities that differ, no partitions
//! ```
//!
//! The kernel's costs are compared by their order, which decides what it does: their unit is its
//! own business. Left out: what a kernel does not show (no debugfs: no energy model).

use crate::plan::{CPUFREQ, ENERGY_AWARE, ENERGY_MODEL, FEATURES, LLC_BALANCING, Plan};
use risetime_job::job::Job;
use risetime_kernel::KernelRev;
use risetime_kernel::energy_model::{EmPerfState, em_compute_costs};
use risetime_model::platform::{Domain, Opp, cpu_ranges};
use risetime_model::settings::keys::governor;
use risetime_model::{InputError, Platform};
use risetime_trace::RunError;
use std::collections::BTreeMap;

/// Values of the kernel, by path.
type Values = BTreeMap<String, String>;

/// Looks at what must read back of `platform` and of the settings in `job`.
///
/// Errors: a setting that this kernel has not or does not take is bad input; else the first
/// difference: path, found, wanted.
pub(crate) fn check(platform: &Platform, plan: &Plan, values: &Values) -> Result<(), RunError> {
    taken(plan, values)?;
    same(platform, &plan.job, values).map_err(RunError::Failed)
}

/// Whether the kernel took every setting.
fn taken(plan: &Plan, values: &Values) -> Result<(), InputError> {
    for (path, wanted) in &plan.job.set {
        let Some(why) = values.get(&format!("failed {path}")) else { continue };
        if has_no_such_feature(values, path, wanted) {
            continue;
        }
        let name = plan.settings.iter().find(|(_, p)| p == path).map(|(name, _)| name.as_str());
        let name = name.unwrap_or(path);
        let release = values.get("release").map_or("the kernel", String::as_str);
        let what = format!("Linux {release} does not take it: {path}: {}", why.to_lowercase());
        let error = InputError::new(format!("setting {name}={wanted}"), what);
        let governors = path.replace("scaling_governor", "scaling_available_governors");
        return Err(match values.get(&governors) {
            Some(known) if governors != *path => error.hint(format!("its governors: {known}")),
            _ => error,
        });
    }
    Ok(())
}

fn same(platform: &Platform, job: &Job, values: &Values) -> Result<(), String> {
    for d in &platform.domains {
        let wanted: Vec<String> =
            d.opps.iter().filter(|o| !o.turbo).map(|o| o.freq.0.to_string()).collect();
        let path = format!("{CPUFREQ}/policy{}/scaling_available_frequencies", d.cpus[0].0);
        let found: Vec<&str> = get(values, &path).split_whitespace().collect();
        if found != wanted {
            return Err(differs(values, &path, &wanted.join(" ")));
        }
        for cpu in &d.cpus {
            let path = format!("/sys/devices/system/cpu/cpu{}/cpu_capacity", cpu.0);
            expect(values, &path, &d.capacity.0.to_string())?;
        }
    }
    for (path, wanted) in &job.set {
        // One feature is written, all are read.
        let among_others =
            path == FEATURES && get(values, path).split_whitespace().any(|f| f == wanted);
        // Where partitions are made later it is as it was written until then.
        let gone =
            path == ENERGY_AWARE && !job.partitions.is_empty() && get(values, path).is_empty();
        if !among_others && !gone && !has_no_such_feature(values, path, wanted) {
            expect(values, path, wanted)?;
        }
    }
    energy_model(platform, values)?;
    energy_aware(platform, job, values)
}

/// Whether a feature is to be off that this kernel does not know: an early one of a stable series, or one that was
/// built without, as good as off.
fn has_no_such_feature(values: &Values, path: &str, wanted: &str) -> bool {
    if path == LLC_BALANCING {
        return wanted == "0" && !values.contains_key(path);
    }
    let known = |name: &str| {
        let all = get(values, path).split_whitespace();
        all.map(|f| f.strip_prefix("NO_").unwrap_or(f)).any(|f| f == name)
    };
    path == FEATURES && wanted.strip_prefix("NO_").is_some_and(|name| !known(name))
}

fn get<'a>(values: &'a Values, path: &str) -> &'a str {
    values.get(path).map_or("nothing", String::as_str)
}

fn differs(values: &Values, path: &str, wanted: &str) -> String {
    format!("{path}: the kernel says {:?}, wanted {wanted:?}", get(values, path))
}

fn expect(values: &Values, path: &str, wanted: &str) -> Result<(), String> {
    if get(values, path) == wanted { Ok(()) } else { Err(differs(values, path, wanted)) }
}

/// Whether `d` has an energy model: power of every OPP.
fn has_power(d: &Domain) -> bool {
    d.energy_model && d.opps.iter().all(|o| o.power.0 > 0)
}

/// Checks each domain's energy model, where the kernel shows one.
fn energy_model(platform: &Platform, values: &Values) -> Result<(), String> {
    if !values.keys().any(|k| k.starts_with(&format!("{ENERGY_MODEL}/"))) {
        return Ok(());
    }
    let release = values.get("release").map_or("", String::as_str);
    let rev = KernelRev::of_release(release).map_or(KernelRev::NEWEST, KernelRev::known);
    platform.domains.iter().filter(|d| has_power(d)).try_for_each(|d| domain(rev, d, values))
}

fn domain(rev: KernelRev, d: &Domain, values: &Values) -> Result<(), String> {
    let state = |o: &Opp| EmPerfState { frequency: o.freq, power: o.power, ..Default::default() };
    let mut states: Vec<EmPerfState> = d.opps.iter().map(state).collect();
    em_compute_costs(rev, &mut states, d.capacity);
    let path = |s: &EmPerfState, name: &str| {
        format!("{ENERGY_MODEL}/cpu{}/ps:{}/{name}", d.cpus[0].0, s.frequency.0)
    };
    let mut below: Option<(&EmPerfState, u64)> = None;
    for s in &states {
        let place =
            || format!("energy model of CPUs {} at {} kHz", cpu_ranges(&d.cpus), s.frequency.0);
        // A kernel may show fewer of them.
        let shown = |name: &str| values.get(&path(s, name)).map(|v| v.trim());
        for (name, wanted) in [
            ("power", s.power.0),
            ("performance", s.performance.0),
            ("inefficient", s.inefficient.into()),
        ] {
            if let Some(found) = shown(name).filter(|v| *v != wanted.to_string()) {
                return Err(format!(
                    "{}: {name}: the kernel says {found:?}, wanted \"{wanted}\"",
                    place()
                ));
            }
        }
        let Some(cost) = shown("cost").and_then(|v| v.parse::<u64>().ok()) else { continue };
        if let Some((low, low_cost)) = below.filter(|(low, c)| cost.cmp(c) != s.cost.cmp(&low.cost))
        {
            return Err(format!(
                "{}: cost: the kernel says \"{cost}\" beside \"{low_cost}\" at {} kHz, wanted the order of {} and {}",
                place(),
                low.frequency.0,
                s.cost,
                low.cost
            ));
        }
        below = Some((s, cost));
    }
    Ok(())
}

/// Whether energy-aware scheduling is on where it can be. Where it cannot, the kernel may say
/// nothing (an empty file). Source: kernel/sched/topology.c:sched_is_eas_possible.
fn energy_aware(platform: &Platform, job: &Job, values: &Values) -> Result<(), String> {
    let differ = platform.domains.iter().any(|d| d.capacity != platform.domains[0].capacity);
    let governors = || job.set.iter().filter(|(path, _)| path.ends_with("/scaling_governor"));
    let possible = differ
        && platform.domains.iter().all(has_power)
        && job.partitions.is_empty()
        && governors().all(|(_, name)| name == governor::SCHEDUTIL);
    // A setting of the policy's was looked at as every setting; a kernel without the model at all
    // (no such file) is the user's own.
    let there = values.get(ENERGY_AWARE).filter(|v| !v.starts_with('!'));
    let set = job.set.iter().any(|(path, _)| path == ENERGY_AWARE);
    match there {
        Some(_) if possible && !set => expect(values, ENERGY_AWARE, "1"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn m1() -> Platform {
        Platform::load("m1").unwrap()
    }

    #[test]
    fn what_a_kernel_does_not_know_is_off() {
        let said = |path: &str, wanted: &str, values: &[(&str, &str)]| {
            let set = vec![(path.to_string(), wanted.to_string())];
            let text = |(path, value): &(&str, &str)| (path.to_string(), value.to_string());
            let mut values: BTreeMap<String, String> = values.iter().map(text).collect();
            for d in &m1().domains {
                let freqs: Vec<String> = d.opps.iter().map(|o| o.freq.0.to_string()).collect();
                let path = format!("{CPUFREQ}/policy{}/scaling_available_frequencies", d.cpus[0].0);
                values.insert(path, freqs.join(" "));
                for cpu in &d.cpus {
                    let path = format!("/sys/devices/system/cpu/cpu{}/cpu_capacity", cpu.0);
                    values.insert(path, d.capacity.0.to_string());
                }
            }
            same(&m1(), &Job { set, ..Job::default() }, &values).is_ok()
        };
        let of = |list: &str, wanted: &str| said(FEATURES, wanted, &[(FEATURES, list)]);
        assert!(of("PLACE_LAG NO_NI_RANDOM NO_HRTICK", "NO_NI_RANDOM"));
        assert!(!of("PLACE_LAG NI_RANDOM NO_HRTICK", "NO_NI_RANDOM"), "it is on");
        assert!(of("PLACE_LAG NO_HRTICK", "NO_NI_RANDOM"), "an early 6.12");
        assert!(!of("PLACE_LAG NO_HRTICK", "NI_RANDOM"), "but it cannot be switched on");
        let caches = |values: &[(&str, &str)]| said(LLC_BALANCING, "0", values);
        assert!(caches(&[]), "a kernel built without it");
        assert!(caches(&[(LLC_BALANCING, "0")]));
        assert!(!caches(&[(LLC_BALANCING, "1")]), "it is on");
    }

    #[test]
    fn costs_count_by_their_order() {
        let at = |khz: u32, name: &str| format!("{ENERGY_MODEL}/cpu0/ps:{khz}/{name}");
        let of = |values: &[(String, &str)]| {
            energy_model(&m1(), &values.iter().map(|(k, v)| (k.clone(), v.to_string())).collect())
        };
        assert_eq!(of(&[]), Ok(()), "a kernel that shows none");
        assert_eq!(of(&[(at(600_000, "cost"), "5"), (at(972_000, "cost"), "6")]), Ok(()));
        // Two OPPs of one voltage cost the same; from 6.9 on what they are counted by is rounded.
        let xu4 = Platform::load("odroid-xu4").unwrap();
        let same = |release: &str| {
            let costs = [(at(200_000, "cost"), "6"), (at(300_000, "cost"), "6")];
            let release = ("release".to_string(), release);
            let values = costs.into_iter().chain([release]).map(|(k, v)| (k, v.to_string()));
            energy_model(&xu4, &values.collect())
        };
        assert_eq!(same("6.1.0-50-arm64"), Ok(()));
        assert!(same("6.12.107").is_err());
        let wrong = of(&[(at(600_000, "cost"), "6"), (at(972_000, "cost"), "6")]).unwrap_err();
        assert_eq!(
            wrong,
            "energy model of CPUs 0-3 at 972000 kHz: cost: the kernel says \"6\" beside \"6\" at 600000 kHz, wanted the order of 4616 and 3556"
        );
        let wrong = of(&[(at(2_064_000, "power"), "412978")]).unwrap_err();
        assert!(
            wrong.contains("2064000 kHz: power: the kernel says \"412978\", wanted \"412979\""),
            "{wrong}"
        );
    }

    #[test]
    fn energy_awareness_is_wanted_where_it_is_possible() {
        let of = |governor: &str, says: &str, platform: &Platform| {
            let set = vec![(format!("{CPUFREQ}/policy0/scaling_governor"), governor.to_string())];
            let values = BTreeMap::from([(ENERGY_AWARE.to_string(), says.to_string())]);
            energy_aware(platform, &Job { set, ..Job::default() }, &values)
        };
        let m1 = m1();
        assert_eq!(of("schedutil", "1", &m1), Ok(()));
        assert_eq!(of("performance", "", &m1), Ok(()));
        assert!(
            of("schedutil", "", &m1)
                .unwrap_err()
                .contains("sched_energy_aware: the kernel says \"\", wanted \"1\"")
        );
        assert!(of("schedutil", "0", &m1).is_err());
        let parted = Job { partitions: vec![vec![0]], ..Job::default() };
        let says = BTreeMap::from([(ENERGY_AWARE.to_string(), String::new())]);
        assert_eq!(energy_aware(&m1, &parted, &says), Ok(()));
        let mut flat = m1.clone();
        flat.domains.truncate(1);
        assert_eq!(of("schedutil", "", &flat), Ok(()), "all CPUs are equal");
    }
}
