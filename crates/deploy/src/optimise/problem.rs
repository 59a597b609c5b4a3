//! Graphs and a platform as numbers: what each node takes where, what each OPP has room for, what it costs.
//!
//! ```text
//! w  work    µs of a CPU of capacity 1024 at its highest frequency
//! q  budget  = ⌈w · factor⌉, what the server may use in each of its periods
//! L  room    = min(95 % of capacity · f/f_max,  95 % of capacity − 5 %)     of a CPU of capacity 1024, in 10⁻⁶, rounded down
//!            EDF at this speed                  the kernel's admission beside the fair class's server
//! p  power   = ⌈w / (T · capacity/1024 · f/f_max) · (busy − idle)⌉          of a node on an OPP, in nW
//! ```
//!
//! Power is that of the platform file: a CPU that has nodes takes its OPP's power while one runs and that of its shallowest idle
//! state else; one without nodes that of its deepest. What shared rails and whole clusters take is not in these files.

use super::{Config, Place};
use risetime_kernel::units::{CpuId, KHz};
use risetime_model::{Dags, InputError, Platform};

/// `sysctl_sched_dl_period_min`: the kernel takes no shorter period.
pub(super) const PERIOD_MIN_US: u64 = 100;
/// The kernel takes no runtime below 2^`DL_SCALE` = 1024 ns.
const BUDGET_MIN_US: u64 = 2;
/// `sched_rt_runtime_us / sched_rt_period_us`, in 10⁻⁶.
const LIMIT_PPM: u64 = 950_000;
/// Runtime of the fair class's deadline server: 50 of 1000 ms, in 10⁻⁶.
const SERVER_PPM: u64 = 50_000;

/// How it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Budgets are so many thousandths of what the nodes take at most.
    pub factor_permille: u64,
}

/// All of it as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's.
    pub name: String,
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// The nodes of all graphs, each behind those of its graph that it waits for.
    pub nodes: Vec<Vertex>,
    /// The CPUs, ascending.
    pub cpus: Vec<Cpu>,
    /// The frequency domains.
    pub domains: Vec<Island>,
    /// Names of the devices, and what each takes where some node is on it, in nW.
    pub devices: Vec<(String, u64)>,
    /// What the CPUs take with no node on any, in nW.
    pub base_nw: u64,
    /// See [`Options`].
    pub options: Options,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The file's name of it.
    pub name: String,
    /// T: shortest time between two activations.
    pub period_us: u64,
    /// D: from an activation to the end.
    pub deadline_us: u64,
    /// Its nodes, each behind those that it waits for; the last one is its end.
    pub nodes: Vec<usize>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// The file's name of it.
    pub name: String,
    /// Of [`Problem::graphs`].
    pub graph: usize,
    /// Of [`Problem::nodes`]: those it waits for.
    pub after: Vec<usize>,
    /// w, by domain.
    pub work_us: Vec<u64>,
    /// q, by domain.
    pub budget_us: Vec<u64>,
    /// On devices.
    pub versions: Vec<Version>,
}

/// A node's version for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Of [`Problem::devices`].
    pub device: usize,
    /// What it takes at most.
    pub work_us: u64,
    /// The same, by the factor.
    pub runtime_us: u64,
    /// In the mean, where the graph is activated as often as it may.
    pub power_nw: u64,
}

/// A CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: CpuId,
    /// Of [`Problem::domains`].
    pub domain: usize,
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Island {
    /// Of [`Problem::cpus`].
    pub cpus: Vec<usize>,
    /// Capacity of each, of 1024.
    pub capacity: u64,
    /// By frequency.
    pub opps: Vec<OppOf>,
    /// At most from a wakeup until an idle CPU runs, in µs: its deepest idle state's exit latency.
    pub wake_us: u64,
    /// What a CPU takes more, in nW, where there is a node on it and none runs.
    pub used_nw: u64,
}

/// An OPP of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OppOf {
    /// Its frequency.
    pub freq: KHz,
    /// That of the highest.
    pub freq_max: KHz,
    /// L: for how much there is room, in 10⁻⁶ of a CPU of capacity 1024.
    pub room_ppm: u64,
    /// What a CPU takes more while it runs than while it idles, in µW.
    pub busy_uw: u64,
}

impl Problem {
    /// Of these graphs on that platform.
    ///
    /// Errors: a node names a CPU that the platform lacks, or the platform does not know its power.
    pub fn new(dags: &Dags, platform: &Platform, options: Options) -> Result<Problem, InputError> {
        if let Some(domain) = platform.domains.iter().find(|d| d.opps[0].power.0 == 0) {
            let what =
                format!("its OPPs of {} have no power: nothing to choose by", domain.cpus[0]);
            let hint =
                "a platform file gives power by `power_uw`, or by voltages and a coefficient";
            return Err(InputError::new(&platform.name, what).hint(hint));
        }
        let cpus: Vec<Cpu> = platform
            .cpus()
            .filter_map(|id| Some(Cpu { id, domain: platform.domain_of(id)? }))
            .collect();
        let mut base_nw = 0;
        let mut domains = Vec::new();
        for (j, d) in platform.domains.iter().enumerate() {
            let state = |i: usize| d.idle_power(Some(i)).map_or(0, |p| p.0);
            let deepest = (0..d.idle.len().max(1)).map(state).min().unwrap_or(0);
            let (idle, own) = (state(0), |c: &usize| cpus[*c].domain == j);
            let cap = d.capacity.0;
            let beside = (LIMIT_PPM * cap / 1024).saturating_sub(SERVER_PPM);
            let opp = |o: &risetime_model::platform::Opp| OppOf {
                freq: o.freq,
                freq_max: d.freq_max(),
                room_ppm: (LIMIT_PPM * cap * o.freq.0 / (1024 * d.freq_max().0)).min(beside),
                busy_uw: o.power.0.saturating_sub(idle),
            };
            base_nw += 1000 * deepest * d.cpus.len() as u64;
            domains.push(Island {
                cpus: (0..cpus.len()).filter(own).collect(),
                capacity: cap,
                opps: d.opps.iter().map(opp).collect(),
                wake_us: d.idle.iter().map(|s| s.exit_latency.0.div_ceil(1000)).max().unwrap_or(0),
                used_nw: 1000 * idle.saturating_sub(deepest),
            });
        }
        let mut p = Problem {
            name: dags.name.clone(),
            graphs: Vec::new(),
            nodes: Vec::new(),
            cpus,
            domains,
            devices: dags.devices.iter().map(|d| (d.name.clone(), 1000 * d.idle.0)).collect(),
            base_nw,
            options,
        };
        for dag in &dags.dags {
            p.add(dag, platform)?;
        }
        Ok(p)
    }

    fn add(
        &mut self,
        dag: &risetime_model::dags::Dag,
        platform: &Platform,
    ) -> Result<(), InputError> {
        let order = dag.order().unwrap_or_default();
        let mut number = vec![0; dag.nodes.len()];
        let mut nodes = Vec::new();
        let grown = |us: u64| (us * self.options.factor_permille).div_ceil(1000).max(BUDGET_MIN_US);
        for i in order {
            let node = &dag.nodes[i];
            let mut work_us = vec![node.runtime_us; self.domains.len()];
            for (cpu, us, at) in &node.on {
                let Some(j) = platform.domain_of(*cpu) else {
                    let what = format!("node `{}`: {} has no {cpu}", node.name, platform.name);
                    return Err(InputError::new(at, what));
                };
                work_us[j] = (us * self.domains[j].capacity).div_ceil(1024);
            }
            let version = |a: &risetime_model::dags::Accelerated| Version {
                device: a.device,
                work_us: a.runtime_us,
                runtime_us: grown(a.runtime_us),
                power_nw: (a.runtime_us * a.power.0 * 1000).div_ceil(dag.period_us),
            };
            number[i] = self.nodes.len();
            nodes.push(number[i]);
            self.nodes.push(Vertex {
                name: node.name.clone(),
                graph: self.graphs.len(),
                after: node.after.iter().map(|a| number[*a]).collect(),
                budget_us: work_us.iter().map(|us| grown(*us)).collect(),
                work_us,
                versions: node.accelerated.iter().map(version).collect(),
            });
        }
        self.graphs.push(Graph {
            name: dag.name.clone(),
            period_us: dag.period_us,
            deadline_us: dag.deadline_us,
            nodes,
        });
        Ok(())
    }

    /// p: what `node` takes in the mean on CPUs of that domain at that OPP, in nW. Rounding: up.
    pub fn node_nw(&self, node: usize, domain: usize, opp: usize) -> u64 {
        let (v, d) = (&self.nodes[node], &self.domains[domain]);
        let o = &d.opps[opp];
        let num = u128::from(v.work_us[domain]) * 1024 * u128::from(o.freq_max.0);
        let den = u128::from(self.graphs[v.graph].period_us) * u128::from(d.capacity * o.freq.0);
        let nw = (num * u128::from(o.busy_uw) * 1000).div_ceil(den.max(1));
        nw.try_into().unwrap_or(u64::MAX)
    }

    /// What `config` takes in the mean, in nW, where every graph is activated as often as it may and takes all that it may.
    pub fn power_nw(&self, config: &Config) -> u64 {
        let mut used = vec![false; self.cpus.len()];
        let mut requested = vec![false; self.devices.len()];
        let mut sum = self.base_nw;
        for (i, place) in config.place.iter().enumerate() {
            sum += match *place {
                Place::Cpu(cpu) => {
                    used[cpu] = true;
                    let j = self.cpus[cpu].domain;
                    self.node_nw(i, j, config.opp[j])
                }
                Place::Version(a) => {
                    let version = &self.nodes[i].versions[a];
                    requested[version.device] = true;
                    version.power_nw
                }
            };
        }
        let cpus = (0..used.len()).filter(|c| used[*c]);
        let devices = (0..requested.len()).filter(|d| requested[*d]);
        sum + cpus.map(|c| self.domains[self.cpus[c].domain].used_nw).sum::<u64>()
            + devices.map(|d| self.devices[d].1).sum::<u64>()
    }

    /// At most from a wakeup until a CPU that idles runs there, in µs.
    pub(super) fn wake_us(&self, place: Place) -> u64 {
        match place {
            Place::Cpu(cpu) => self.domains[self.cpus[cpu].domain].wake_us,
            Place::Version(_) => 0,
        }
    }

    /// The least time that `node` takes anywhere, in µs: its budget on a CPU with nothing else, or its time on a device.
    pub(super) fn shortest_us(&self, node: usize) -> u64 {
        let v = &self.nodes[node];
        let best = |j: usize| {
            let room = self.domains[j].opps.iter().map(|o| o.room_ppm).max().unwrap_or(0);
            let alone = (v.budget_us[j] * 1_000_000).checked_div(room).unwrap_or(u64::MAX);
            alone.max(PERIOD_MIN_US).saturating_add(self.domains[j].wake_us)
        };
        let on_cpus = (0..self.domains.len()).map(best);
        let on_devices = v.versions.iter().map(|a| a.runtime_us);
        on_cpus.chain(on_devices).min().unwrap_or(u64::MAX)
    }

    /// The longest deadline that each node can have, in µs: its graph's, less what the others on the longest path with it need.
    pub(super) fn longest_us(&self) -> Vec<u64> {
        let n = self.nodes.len();
        let own: Vec<u64> = (0..n).map(|i| self.shortest_us(i)).collect();
        let (mut before, mut behind) = (vec![0u64; n], vec![0u64; n]);
        for i in 0..n {
            for a in &self.nodes[i].after {
                before[i] = before[i].max(before[*a].saturating_add(own[*a]));
            }
        }
        for i in (0..n).rev() {
            for a in &self.nodes[i].after {
                behind[*a] = behind[*a].max(behind[i].saturating_add(own[i]));
            }
        }
        let room = |i: usize| {
            let others = before[i].saturating_add(behind[i]);
            self.graphs[self.nodes[i].graph].deadline_us.saturating_sub(others)
        };
        (0..n).map(room).collect()
    }

    /// How long requests of each device take at most, waiting included, in µs: first come, first served, and each other node has
    /// one request before it at most, since it is done before it comes again.
    pub(super) fn responses_us(&self, place: &[Option<Place>]) -> Vec<u64> {
        let mut all = vec![0; self.devices.len()];
        for (i, place) in place.iter().enumerate() {
            if let Some(Place::Version(a)) = *place {
                let version = &self.nodes[i].versions[a];
                all[version.device] += version.runtime_us;
            }
        }
        all
    }
}
