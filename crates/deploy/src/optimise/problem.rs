//! Graphs and a platform as numbers: what each node takes where, what each OPP has room for, what it costs.
//!
//! ```text
//! w  work    µs of a CPU of capacity 1024 at its highest frequency
//! q  budget  = ⌈w · factor⌉, what the server may use in each of its periods
//! L  room    = min(95 % of capacity · f/f_max,  95 % of capacity − 5 %)     of a CPU of capacity 1024, in 10⁻⁶, rounded down
//!            EDF at this speed                  the kernel's admission beside the fair class's server
//! s  request = runtime + what its helper takes there + loading, where the device does more than one function, + 2 · wake of the helper's CPU
//! p  power   = ⌈w / (T · capacity/1024 · f/f_max) · (busy − idle)⌉          of a node on an OPP, in nW
//! ```
//!
//! Power is that of the platform file: a CPU that has nodes takes its OPP's power while one runs and that of its shallowest idle
//! state else; one without nodes that of its deepest. What shared rails and whole clusters take is not in these files.

use super::{Config, Deployment, Place};
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

/// Options of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Budgets are so many thousandths of what the nodes take at most.
    pub factor_permille: u64,
}

impl Options {
    /// Multiplies a time by the factor. Rounding: up.
    fn grown(self, us: u64) -> u64 {
        (us * self.factor_permille).div_ceil(1000)
    }
}

fn device(d: &risetime_model::dags::Device, options: Options) -> Accelerator {
    Accelerator {
        name: d.name.clone(),
        idle_nw: 1000 * d.idle.0,
        helper_work_us: d.helper_us,
        helper_us: options.grown(d.helper_us),
        reprogram_us: d.reprogram_us,
    }
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
    /// The devices.
    pub devices: Vec<Accelerator>,
    /// Task that makes the requests of devices. `None`: it is not known, and requests take no CPU
    /// time.
    pub helper: Option<Helper>,
    /// Power of the CPUs with no node on any, in nW.
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
    /// The graph's nodes, each behind those that it waits for; the last one is the graph's end.
    pub nodes: Vec<usize>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// The file's name of it.
    pub name: String,
    /// Graph of the node, in [`Problem::graphs`].
    pub graph: usize,
    /// Nodes that it waits for, in [`Problem::nodes`].
    pub after: Vec<usize>,
    /// w, by domain.
    pub work_us: Vec<u64>,
    /// q, by domain.
    pub budget_us: Vec<u64>,
    /// Versions for devices.
    pub versions: Vec<Version>,
}

/// A node's version for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Device, in [`Problem::devices`].
    pub device: usize,
    /// Time on the device at most, in µs.
    pub work_us: u64,
    /// [`Version::work_us`] by the factor.
    pub runtime_us: u64,
    /// Mean power, in nW, where the graph is activated as often as it may.
    pub power_nw: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    /// The file's name of it.
    pub name: String,
    /// Power of the device where some node is on it, in nW.
    pub idle_nw: u64,
    /// Time that a request takes of its helper's CPU, in µs as [`Vertex::work_us`].
    pub helper_work_us: u64,
    /// [`Accelerator::helper_work_us`] by the factor.
    pub helper_us: u64,
    /// Time to load another function, in µs.
    pub reprogram_us: u64,
}

/// The CPU from which devices are asked, by tasks under SCHED_FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helper {
    /// CPU of the helper, in [`Problem::cpus`].
    pub cpu: usize,
    /// Real-time tasks come before deadlines (`class_order=rt-dl`), so that there may be nodes on that CPU; else there are none.
    pub first: bool,
}

/// A CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Number of the CPU.
    pub id: CpuId,
    /// Domain, in [`Problem::domains`].
    pub domain: usize,
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Island {
    /// CPUs, in [`Problem::cpus`].
    pub cpus: Vec<usize>,
    /// Capacity of each, of 1024.
    pub capacity: u64,
    /// OPPs by frequency.
    pub opps: Vec<OppOf>,
    /// Time at most from a wakeup until an idle CPU runs, in µs: its deepest idle state's exit
    /// latency.
    pub wake_us: u64,
    /// Power that a CPU takes more, in nW, where there is a node on it and none runs.
    pub used_nw: u64,
}

/// An OPP of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OppOf {
    /// The OPP's frequency.
    pub freq: KHz,
    /// The highest frequency of the domain.
    pub freq_max: KHz,
    /// L: for how much there is room, in 10⁻⁶ of a CPU of capacity 1024.
    pub room_ppm: u64,
    /// Power that a CPU takes more while it runs than while it idles, in µW.
    pub busy_uw: u64,
}

impl Problem {
    /// The problem of deploying these graphs on that platform.
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
                wake_us: d
                    .idle
                    .iter()
                    .map(|s| s.longest_wakeup().0.div_ceil(1000))
                    .max()
                    .unwrap_or(0),
                used_nw: 1000 * idle.saturating_sub(deepest),
            });
        }
        let mut p = Problem {
            name: dags.name.clone(),
            graphs: Vec::new(),
            nodes: Vec::new(),
            cpus,
            domains,
            devices: dags.devices.iter().map(|d| device(d, options)).collect(),
            helper: None,
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
        let grown = |us: u64| self.options.grown(us).max(BUDGET_MIN_US);
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

    /// The power p that `node` takes in the mean on CPUs of that domain at that OPP, in nW.
    /// Rounding: up.
    pub fn node_nw(&self, node: usize, domain: usize, opp: usize) -> u64 {
        let (v, d) = (&self.nodes[node], &self.domains[domain]);
        let o = &d.opps[opp];
        let num = u128::from(v.work_us[domain]) * 1024 * u128::from(o.freq_max.0);
        let den = u128::from(self.graphs[v.graph].period_us) * u128::from(d.capacity * o.freq.0);
        let nw = (num * u128::from(o.busy_uw) * 1000).div_ceil(den.max(1));
        nw.try_into().unwrap_or(u64::MAX)
    }

    /// The mean power of `config`, in nW, where every graph is activated as often as it may and
    /// takes all that it may.
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
            + devices.map(|d| self.devices[d].idle_nw).sum::<u64>()
    }

    /// Whether `d` needs real-time tasks to come before deadlines (`class_order=rt-dl`).
    pub fn real_time_first(&self, d: &Deployment) -> bool {
        let asks = d.config.place.iter().any(|at| matches!(at, Place::Version(_)));
        let there = self.helper.is_some_and(|h| d.config.place.contains(&Place::Cpu(h.cpu)));
        asks && there
    }

    /// The domain of the helpers' CPU.
    pub(super) fn helps(&self, domain: usize) -> bool {
        self.helper.is_some_and(|h| self.cpus[h.cpu].domain == domain)
    }

    /// Whether nodes may be on that CPU.
    pub(super) fn takes_nodes(&self, cpu: usize) -> bool {
        self.helper.is_none_or(|h| h.cpu != cpu || h.first)
    }

    /// Maps each domain to the first one that is like it in all that counts here.
    pub(super) fn alike(&self) -> Vec<usize> {
        let (d, n) = (&self.domains, &self.nodes);
        let same = |a: usize, b: usize| {
            !self.helps(a)
                && !self.helps(b)
                && d[a].cpus.len() == d[b].cpus.len()
                && (d[a].capacity, d[a].wake_us, d[a].used_nw, &d[a].opps)
                    == (d[b].capacity, d[b].wake_us, d[b].used_nw, &d[b].opps)
                && n.iter()
                    .all(|v| (v.work_us[a], v.budget_us[a]) == (v.work_us[b], v.budget_us[b]))
        };
        (0..d.len()).map(|j| (0..j).find(|i| same(*i, j)).unwrap_or(j)).collect()
    }

    /// The longest time from a wakeup until an idle CPU at `place` runs, in µs; 0 on a device.
    pub(super) fn wake_us(&self, place: Place) -> u64 {
        match place {
            Place::Cpu(cpu) => self.domains[self.cpus[cpu].domain].wake_us,
            Place::Version(_) => 0,
        }
    }

    /// The time that a request takes of its device at least, in µs: with nothing beside it, and its
    /// helper's CPU as fast as it may be.
    pub(super) fn request_us(&self, version: &Version) -> u64 {
        let fastest: Vec<usize> = self.domains.iter().map(|d| d.opps.len() - 1).collect();
        let wake = self.helper.map_or(0, |h| self.domains[self.cpus[h.cpu].domain].wake_us);
        version.runtime_us + self.helper_us(version.device, &fastest) + 2 * wake
    }

    /// The least time that `node` takes anywhere, in µs: its budget on a CPU with nothing else, or its time on a device.
    pub(super) fn shortest_us(&self, node: usize) -> u64 {
        let v = &self.nodes[node];
        let best = |j: usize| {
            let room = self.domains[j].opps.iter().map(|o| o.room_ppm).max().unwrap_or(0);
            let alone = (v.budget_us[j] * 1_000_000).checked_div(room).unwrap_or(u64::MAX);
            alone.max(PERIOD_MIN_US).saturating_add(self.domains[j].wake_us)
        };
        let on_cpus =
            (0..self.domains.len()).filter(|j| !self.domains[*j].cpus.is_empty()).map(best);
        let on_devices = v.versions.iter().map(|a| self.request_us(a));
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

    /// The time that requests of each device take at most, waiting included, in µs, of those that
    /// have a place: first come, first served, and each other node has one request before it at
    /// most, since it is done before it comes again. At each of its steps on the helper's CPU, and
    /// where it is loaded, a request waits for one of each node, or device, beside.
    pub(super) fn responses_us(&self, place: &[Option<Place>], opp: &[usize]) -> Vec<u64> {
        let mut on: Vec<Vec<u64>> = vec![Vec::new(); self.devices.len()];
        for (i, place) in place.iter().enumerate() {
            if let Some(Place::Version(a)) = *place {
                let version = &self.nodes[i].versions[a];
                on[version.device].push(version.runtime_us);
            }
        }
        let Some(helper) = self.helper else {
            return on.iter().map(|all| all.iter().sum()).collect();
        };
        let (all, cpu) = (on.len(), &self.cpus[helper.cpu]);
        let island = &self.domains[cpu.domain];
        let steps: Vec<u64> = (0..all).map(|d| self.helper_us(d, opp)).collect();
        let loads = |d: usize| if on[d].len() > 1 { self.devices[d].reprogram_us } else { 0 };
        let response = |d: usize| {
            let beside = (0..all).filter(|e| *e != d);
            let (mut waits, mut queued) = (0, 0);
            for e in beside {
                waits += on[e].len() as u64 * steps[e];
                queued += if loads(d) > 0 { loads(e) } else { 0 };
            }
            let each = steps[d] + loads(d) + queued + 2 * (island.wake_us + waits);
            on[d].iter().map(|runtime| runtime + each).sum()
        };
        (0..all).map(response).collect()
    }

    /// The power that devices take in addition, in nW, with version `a` of node `i` on it beside
    /// those that have a place; `None`: some request would not be done by these times.
    pub(super) fn requested(
        &self,
        i: usize,
        a: usize,
        place: &[Option<Place>],
        opp: &[usize],
        by_us: &[u64],
    ) -> Option<u64> {
        let device = |(w, at): (usize, &Option<Place>)| match *at {
            Some(Place::Version(b)) => Some((w, self.nodes[w].versions[b].device)),
            _ => None,
        };
        let own = self.nodes[i].versions[a].device;
        let mut with = place.to_vec();
        with[i] = Some(Place::Version(a));
        let responses = self.responses_us(&with, opp);
        let mut on = with.iter().enumerate().filter_map(device);
        let in_time = on.all(|(w, d)| responses[d] <= by_us[w]);
        let first = !place.iter().enumerate().filter_map(device).any(|(_, d)| d == own);
        in_time.then_some(if first { self.devices[own].idle_nw } else { 0 })
    }

    /// The time that a request of that device takes on its helper's CPU at that OPP, in µs.
    /// Rounding: up.
    pub(super) fn helper_us(&self, device: usize, opp: &[usize]) -> u64 {
        let Some(helper) = self.helper else { return 0 };
        let domain = self.cpus[helper.cpu].domain;
        let (island, us) = (&self.domains[domain], self.devices[device].helper_us);
        let o = &island.opps[opp[domain]];
        let speed = u128::from(island.capacity) * u128::from(o.freq.0);
        let time = u128::from(us) * 1024 * u128::from(o.freq_max.0);
        time.div_ceil(speed.max(1)).try_into().unwrap_or(u64::MAX)
    }

    /// A program for each CPU from which devices may be asked, of CPUs that are alike for one: without devices; with a CPU that is the
    /// helpers' alone; where real-time tasks come before deadlines (`first`), with one that nodes are on, too.
    pub fn with_helpers(&self, first: bool) -> Vec<Problem> {
        let mut without = self.clone();
        without.nodes.iter_mut().for_each(|v| v.versions.clear());
        if without == *self {
            return vec![without];
        }
        let mut all = vec![without];
        let alike = self.alike();
        for j in (0..alike.len()).filter(|j| alike[*j] == *j) {
            let Some(&cpu) = self.domains[j].cpus.last() else { continue };
            let mut p = self.clone();
            p.helper = Some(Helper { cpu, first });
            p.base_nw += self.domains[j].used_nw;
            p.charge_helpers(j);
            if first {
                p.make_room(j);
            } else {
                p.domains[j].cpus.pop();
            }
            all.push(p);
        }
        all
    }

    /// Adds to each version the mean power of its helper on a CPU of domain `j`, at the OPP at
    /// which that is most.
    fn charge_helpers(&mut self, j: usize) {
        let (island, devices) = (&self.domains[j], &self.devices);
        for v in &mut self.nodes {
            let period = u128::from(self.graphs[v.graph].period_us);
            for version in &mut v.versions {
                let us = u128::from(devices[version.device].helper_work_us);
                let nw = |o: &OppOf| {
                    let speed = u128::from(island.capacity * o.freq.0) * period;
                    (us * 1024 * u128::from(o.freq_max.0 * o.busy_uw) * 1000).div_ceil(speed.max(1))
                };
                let most = island.opps.iter().map(nw).max().unwrap_or(0);
                version.power_nw += u64::try_from(most).unwrap_or(u64::MAX / 1000);
            }
        }
    }

    /// Helpers go before the nodes of a domain. In any time t a node's helper comes t/T + 2 times at most; so with H for all of them once
    /// Σ q/d + Σ h/T + 2·H / (the least d) ≤ L is enough, and each node's budget is 2·H more.
    fn make_room(&mut self, j: usize) {
        let (mut ppm, mut us) = (0, 0);
        for v in &self.nodes {
            let most = v.versions.iter().map(|a| self.devices[a.device].helper_us).max();
            let most = most.unwrap_or(0);
            ppm += (1_000_000 * most).div_ceil(self.graphs[v.graph].period_us);
            us += 2 * most;
        }
        for opp in &mut self.domains[j].opps {
            opp.room_ppm = opp.room_ppm.saturating_sub(ppm);
        }
        for v in &mut self.nodes {
            v.budget_us[j] += us;
        }
    }
}
