//! Another machine's `/sys` (and `/proc`, `/boot`, where they were copied with it).

use super::Input;
use super::draft::{Draft, Group, Point};
use crate::capture::gather;
use crate::probe::Machine;
use risetime_model::InputError;
use risetime_model::platform::Domain;

/// Whether the input is a tree with CPUs in it.
pub(super) fn tells(input: &Input) -> bool {
    input.root.as_ref().is_some_and(|root| {
        root.list("/sys/devices/system/cpu").iter().any(|name| {
            name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok()) || name == "cpufreq"
        })
    })
}

/// Reads it as `capture` reads this machine.
pub(super) fn read(input: &Input) -> Result<Draft, InputError> {
    let root = input.tree("a copied /sys: a directory, or a .tar of one")?;
    let machine = Machine::probe(root);
    if machine.cpus.is_empty() {
        let what = "has no CPUs: no devices/system/cpu/online, no cpuN in it";
        return Err(InputError::new(&*input.name, what)
            .hint("tar -C / -cf machine.tar sys/devices/system/cpu sys/devices/system/node; root adds sys/kernel/debug/energy_model"));
    }
    let gathered = gather(&machine);
    let capacity_known = machine.cpus.iter().all(|c| c.capacity.is_some());
    let clustered = machine.cpus.iter().all(|c| c.llc.is_some() || c.package.is_some());
    let mut draft = Draft {
        model: machine.model.as_ref().map(|f| f.value.clone()),
        hz: Some(gathered.platform.hz).filter(|hz| *hz > 0),
        topology: gathered.platform.topology.clone(),
        estimates: gathered.estimates,
        ..Draft::default()
    };
    // What is missing from the platform in the end is told there.
    let later = ["hz: ", "power: ", "idle: power", "frequencies of CPUs", "idle: no cpuidle"];
    let told = gathered.missing.into_iter().filter(|t| !later.iter().any(|l| t.starts_with(l)));
    told.for_each(|text| draft.missing(text));
    for (kind, texts) in gathered.sources {
        for text in texts {
            sort_source(&mut draft, kind, &text);
        }
    }
    for domain in &gathered.platform.domains {
        let policy = machine.policies.iter().find(|p| {
            let first = domain.cpus.first().and_then(|c| machine.cpus.get(c.index()));
            first.is_some_and(|c| p.cpus.contains(&c.id))
        });
        let latency = policy
            .and_then(|p| p.latency_ns.as_ref())
            .is_some_and(|f| domain.opps.first().is_some_and(|o| o.latency.0 == f.value));
        draft.groups.push(Group {
            cpus: domain.cpus.iter().map(|c| c.0).collect(),
            cluster: clustered.then_some(domain.cluster),
            capacity: capacity_known.then_some(domain.capacity.0),
            dmips: None,
            coefficient: None,
            fast_switch: policy.map(|_| domain.fast_switch),
            transition_delay_us: domain.transition_delay_us,
            points: points(domain, latency),
            idle: domain.idle.clone(),
        });
    }
    Ok(draft)
}

fn points(domain: &Domain, latency: bool) -> Vec<Point> {
    let point = |o: &risetime_model::platform::Opp| Point {
        khz: o.freq.0,
        uw: Some(o.power.0).filter(|uw| *uw > 0),
        latency_ns: latency.then_some(o.latency.0),
        turbo: o.turbo,
    };
    domain.opps.iter().map(point).collect()
}

/// Puts a source of `capture`, which has one kind for all of an OPP, where it belongs.
fn sort_source(draft: &mut Draft, kind: &'static str, text: &str) {
    match (kind, text.split_once(": ")) {
        ("power", _) => {}
        ("capacity", _) if text.starts_with("1024 where") => {}
        ("opp", Some(("frequencies", rest))) => draft.source("frequencies", rest),
        ("opp", Some(("latency", rest))) => draft.source("latency", rest),
        ("opp", Some(("frequencies and power", rest))) => {
            draft.source("frequencies", rest);
            draft.source("power", rest);
        }
        ("opp", _) => draft.source("frequencies", text),
        (kind, _) => draft.source(kind, text),
    }
}
