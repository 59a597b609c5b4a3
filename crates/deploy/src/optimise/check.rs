//! Is it an answer? By integers alone, from the rules of docs/optimiser.md, with nothing of what the solvers do.

use super::problem::PERIOD_MIN_US;
use super::{Deployment, Place, Problem};
use crate::Share;

/// What a deployment that obeys all rules comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// In the mean, in nW: see [`Problem::power_nw`].
    pub power_nw: u64,
    /// When each node is done at the latest, in µs from its graph's activation.
    pub done_us: Vec<u64>,
    /// Of each graph, in 10⁻⁶ of its deadline: what is left of it then. Rounding: down.
    pub slack_ppm: Vec<u64>,
    /// Of each CPU, in 10⁻⁶ of one of capacity 1024: Σ q/d of its nodes. Rounding: up.
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
    for (i, v) in p.nodes.iter().enumerate() {
        let deadline = d.deadline_us[i];
        match place[i] {
            Place::Cpu(_) if deadline < PERIOD_MIN_US => {
                broken.push(format!("{}: the kernel takes no period of {deadline} µs", v.name));
            }
            Place::Cpu(_) => {}
            // Devices: all that is on it once, each request.
            Place::Version(a) => {
                let device = v.versions[a].device;
                let others = (0..place.len()).filter_map(|w| match place[w] {
                    Place::Version(b) if p.nodes[w].versions[b].device == device => {
                        Some(p.nodes[w].versions[b].runtime_us)
                    }
                    _ => None,
                });
                let response: u64 = others.sum();
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
