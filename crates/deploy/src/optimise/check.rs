//! Is it an answer? By integers alone, from the rules of docs/optimiser.md, with nothing of what the solvers do.

use super::problem::PERIOD_MIN_US;
use super::{Deployment, Place, Problem};
use crate::Share;

/// Figures of a deployment that obeys all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Mean power, in nW: see [`Problem::power_nw`].
    pub power_nw: u64,
    /// Time at which each node is done at the latest, in µs from its graph's activation.
    pub done_us: Vec<u64>,
    /// Slack left of each graph's deadline, in 10⁻⁶ of it. Rounding: down.
    pub slack_ppm: Vec<u64>,
    /// Load Σ q/d of each CPU's nodes, in 10⁻⁶ of a CPU of capacity 1024. Rounding: up.
    pub taken_ppm: Vec<u64>,
}

impl Checked {
    /// The least of all graphs.
    pub fn min_slack_ppm(&self) -> u64 {
        self.slack_ppm.iter().copied().min().unwrap_or(0)
    }
}

/// Whether `d` obeys all rules.
///
/// Errors: each rule that is broken, in a line.
pub fn check(p: &Problem, d: &Deployment) -> Result<Checked, Vec<String>> {
    let mut broken = Vec::new();
    let (place, opp) = (&d.config.place, &d.config.opp);
    if place.len() != p.nodes.len() || d.deadline_us.len() != p.nodes.len() {
        return Err(vec!["it is not about these nodes".to_string()]);
    }
    let opps_there = opp.len() == p.domains.len()
        && opp.iter().zip(&p.domains).all(|(o, domain)| *o < domain.opps.len());
    if !opps_there {
        return Err(vec!["it is not about these domains".to_string()]);
    }
    let there = |(i, at): (usize, &Place)| match *at {
        Place::Cpu(cpu) => cpu < p.cpus.len(),
        Place::Version(a) => a < p.nodes[i].versions.len(),
    };
    if !place.iter().enumerate().all(there) {
        return Err(vec!["a node is where there is nothing".to_string()]);
    }

    // Processors: Σ q/d ≤ L, exactly.
    let mut taken_ppm = Vec::new();
    for (cpu, c) in p.cpus.iter().enumerate() {
        let here = (0..place.len()).filter(|i| place[*i] == Place::Cpu(cpu));
        let share = |i: usize| Share::of(p.nodes[i].budget_us[c.domain], d.deadline_us[i]);
        let taken = Share::sum(here.map(share));
        let room = p.domains[c.domain].opps[opp[c.domain]].room_ppm;
        if taken > Share::of(room, 1_000_000) {
            broken.push(format!("{}: more than there is room for", c.id));
        }
        taken_ppm.push(taken.per_million());
    }
    if let Some(helper) = p.helper {
        let there = place.contains(&Place::Cpu(helper.cpu)) && !helper.first;
        if there && place.iter().any(|at| matches!(at, Place::Version(_))) {
            let cpu = p.cpus[helper.cpu].id;
            broken.push(format!("{cpu}: deadlines go before those that ask devices"));
        }
    }
    for (i, v) in p.nodes.iter().enumerate() {
        let deadline = d.deadline_us[i];
        match place[i] {
            Place::Cpu(_) if deadline < PERIOD_MIN_US => {
                broken.push(format!("{}: the kernel takes no period of {deadline} µs", v.name));
            }
            Place::Cpu(_) => {}
            // Devices: all that is on it once, each request.
            Place::Version(a) => {
                let response = response(p, d, v.versions[a].device);
                if deadline < response {
                    broken.push(format!(
                        "{}: {response} µs on its device, due in {deadline}",
                        v.name
                    ));
                }
            }
        }
    }

    // Precedence, and the deadlines of the graphs.
    let mut done_us: Vec<u64> = vec![0; p.nodes.len()];
    for (i, v) in p.nodes.iter().enumerate() {
        let begins = v.after.iter().map(|a| done_us[*a]).max().unwrap_or(0);
        let wakes = match place[i] {
            Place::Cpu(cpu) => p.domains[p.cpus[cpu].domain].wake_us,
            Place::Version(_) => 0,
        };
        done_us[i] = begins.saturating_add(d.deadline_us[i]).saturating_add(wakes);
    }
    let mut slack_ppm = Vec::new();
    for g in &p.graphs {
        let done = g.nodes.iter().map(|i| done_us[*i]).max().unwrap_or(0);
        if done > g.deadline_us {
            broken.push(format!("{}: done in {done} µs, due in {}", g.name, g.deadline_us));
        }
        slack_ppm.push(g.deadline_us.saturating_sub(done) * 1_000_000 / g.deadline_us.max(1));
    }
    match broken.is_empty() {
        true => Ok(Checked { power_nw: p.power_nw(&d.config), done_us, slack_ppm, taken_ppm }),
        false => Err(broken),
    }
}

/// The time that a request of a device takes at most, waiting included, in µs.
fn response(p: &Problem, d: &Deployment, device: usize) -> u64 {
    let on = |device: usize| -> Vec<u64> {
        let of = |(i, at): (usize, &Place)| match *at {
            Place::Version(a) if p.nodes[i].versions[a].device == device => {
                Some(p.nodes[i].versions[a].runtime_us)
            }
            _ => None,
        };
        d.config.place.iter().enumerate().filter_map(of).collect()
    };
    let own = on(device);
    let runtime: u64 = own.iter().sum();
    let Some(helper) = p.helper else { return runtime };
    let domain = p.cpus[helper.cpu].domain;
    let opp = p.domains[domain].opps[d.config.opp[domain]];
    let step = |e: usize| {
        let at_full_speed = p.devices[e].helper_us * 1024 * opp.freq_max.0;
        at_full_speed.div_ceil(p.domains[domain].capacity * opp.freq.0)
    };
    let loads = |e: usize| if on(e).len() > 1 { p.devices[e].reprogram_us } else { 0 };
    let beside = |e: &usize| *e != device;
    let steps: u64 =
        (0..p.devices.len()).filter(beside).map(|e| on(e).len() as u64 * step(e)).sum();
    let queued: u64 = (0..p.devices.len()).filter(beside).map(loads).sum();
    let loading = if loads(device) > 0 { loads(device) + queued } else { 0 };
    // The helper wakes, and may wait behind the others there, twice: to ask, and to hand on the
    // outcome.
    let each = step(device) + loading + 2 * (p.domains[domain].wake_us + steps);
    runtime + own.len() as u64 * each
}
