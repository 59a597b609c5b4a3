//! A dump of the energy model: `/sys/kernel/debug/energy_model`, as a directory, a `.tar`, or printed.
//!
//! ```text
//! grep -r . /sys/kernel/debug/energy_model      cpu0/ps:300000/power:28864
//! head -n 99 …/cpu0/ps:*/*                      ==> …/cpu0/ps:300000/power <==   and its value below
//! ```

use super::Input;
use super::draft::{Draft, Group, Point};
use crate::Root;
use crate::probe::energy_model;
use risetime_model::InputError;

/// Directory of the dump on the machine.
pub(super) const DIR: &str = "/sys/kernel/debug/energy_model";

/// Whether the input has performance domains.
pub(super) fn tells(input: &Input) -> bool {
    let domain = |root: &Root, name: &String| {
        let dir = format!("{DIR}/{name}");
        root.list(&dir).iter().any(|n| n == "cpus" || n.starts_with("ps") || n.starts_with("cs"))
    };
    input.root.as_ref().is_some_and(|root| root.list(DIR).iter().any(|name| domain(root, name)))
}

/// Reads the performance domains.
pub(super) fn read(input: &Input) -> Result<Draft, InputError> {
    let root = input.tree("a dump of /sys/kernel/debug/energy_model")?;
    let domains = energy_model(root, None);
    if let Some(problem) = root.problems().first() {
        return Err(InputError::new(format!("{}: {}", input.name, problem.file), &*problem.what));
    }
    if domains.is_empty() {
        let what = "has no performance domain with its `cpus` and a state `ps:…` of `frequency` and `power`";
        return Err(InputError::new(&*input.name, what)
            .hint("as root: grep -r . /sys/kernel/debug/energy_model > em.txt (with `cpus` of each domain)"));
    }
    let mut draft = Draft::default();
    let name = &input.name;
    for domain in &domains {
        if domain.microwatts_per_unit.is_none() {
            draft.missing(format!(
                "power in {}: the dump does not say in which unit it counts: left out",
                domain.dir
            ));
        }
        if !root.exists(&format!("{}/cpus", domain.dir)) {
            draft.missing(format!(
                "CPUs of {}: the dump has no `cpus` there; taken for CPU {} alone, unless another input comes first",
                domain.dir, domain.cpus[0]
            ));
        }
        let point = |s: &crate::probe::EmState| Point {
            khz: s.freq_khz,
            uw: domain.microwatts_per_unit.map(|unit| s.power.saturating_mul(unit)),
            ..Point::default()
        };
        let points: Vec<Point> =
            domain.states.iter().filter(|s| s.freq_khz > 0).map(point).collect();
        // Since 6.9 a state has its capacity.
        let top = points.last().map(|p| format!("{}/ps:{}/performance", domain.dir, p.khz));
        let performance = top.filter(|file| root.exists(file)).and_then(|f| root.number(&f));
        let capacity = performance.map(|f| f.value).filter(|c| (1..=1024).contains(c));
        draft.groups.push(Group {
            cpus: domain.cpus.clone(),
            capacity,
            points,
            ..Group::default()
        });
    }
    draft.groups.sort_by_key(|g| g.cpus.first().copied());
    let mut seen = std::collections::BTreeSet::new();
    for group in &draft.groups {
        if group.cpus.is_empty() || !group.cpus.iter().all(|c| seen.insert(*c)) {
            return Err(InputError::new(
                &**name,
                "has a CPU in two performance domains, or a domain without one",
            ));
        }
    }
    if draft.groups.iter().any(|g| g.capacity.is_some()) {
        draft.source("capacity", format!("{name}: performance of the highest state"));
    }
    draft.source("frequencies", format!("{name}: states of the energy model"));
    if draft.groups.iter().flat_map(|g| &g.points).any(|p| p.uw.is_some()) {
        draft.source("power", format!("{name}: the kernel's energy model"));
    }
    Ok(draft)
}
