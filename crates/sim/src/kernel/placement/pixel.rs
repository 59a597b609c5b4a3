//! `pixel`: how the modules of Google's Pixel phones choose a CPU for a waking task
//! (`rvh_select_task_rq_fair_pixel_mod`).
//!
//! ```text
//! 1  a synchronous waker alone on a CPU where the task fits    → there
//! 2  the previous CPU is idle, in its first state, and fits    → there
//! 3  who prefers idle: of each cluster its idle CPU, the shallowest; else the CPU whose tasks
//!    matter least; else the one with most spare capacity. Anybody else: a busy CPU whose present
//!    frequency serves the task, too; else the one with most spare capacity
//! 4  of these the cheapest by the modules' own model           → there; at a tie the shallowest,
//!    the previous, the waker's
//! ```
//!
//! Tasks of hint sessions prefer idle and prefer to fit. A task that a big CPU wakes synchronously
//! needs more than a small one. Where nothing is a candidate, the CPU with most spare capacity,
//! else the least loaded, is taken. Without the modules this is `fair`.
//!
//! Leaves out: `preferred_idle_mask_*` (all CPUs once a phone has booted), energy of wakeups from
//! deep states (its table is in no public profile), `auto_prefer_idle`, `task_spreading`. Source:
//! fair.c of the modules.

use super::fair::Fair;
use super::idle_sibling::sched_idle_rq;
use super::{Descriptor, Placed, Placement, PlacementView, Waker, fork, within_affinity};
use crate::mech::pixel::state::Vendor;
use crate::mech::pixel::util::{Change, Split};
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::machine::{FreqDomain, Machine};
use risetime_kernel::cpu_util::CpuUtilType;
use risetime_kernel::pelt::cap_scale;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_model::settings::Group;
use risetime_trace::Why;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pixel",
    doc: "as the modules of Pixel phones do: a shallow idle CPU, importance, packing, energy by a model of their own",
    settings: Group::of(&[]),
    make: |_, _| Box::new(Pixel),
};

struct Pixel;

impl Placement for Pixel {
    fn wake(
        &mut self,
        view: &PlacementView<'_>,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed {
        let m = view.machine;
        let Some(vendor) = m.vendor() else { return Fair.wake(view, task, waker, effects) };
        let search = Search::new(m, vendor, task, waker);
        let placed = search.at_once().unwrap_or_else(|| search.find_energy_efficient_cpu());
        within_affinity(m, task, placed)
    }
    fn fork(&mut self, view: &PlacementView<'_>, task: TaskId) -> Placed {
        fork::idlest_cpu(view.machine, task)
    }
}

/// `C1_EXIT_LATENCY`, in µs.
const C1_EXIT_LATENCY: u64 = 1;
/// `DEFAULT_IMPRATANCE_THRESHOLD`: importance of a CPU without clamps.
const UNIMPORTANT: u64 = 1024;
/// The kernel's priority of nice 0.
const DEFAULT_PRIO: i32 = 120;
const MAX_RT_PRIO: i32 = 100;

/// A waking task, and what all CPUs are asked about it.
struct Search<'a> {
    m: &'a Machine,
    vendor: &'a Vendor,
    task: TaskId,
    waker: Waker,
    prev: CpuId,
    clamps: Uclamp,
    prefer_idle: bool,
    prefer_fit: bool,
    skip_mask: u64,
    auto_uclamp_max: bool,
    task_util: u64,
}

/// Facts about a CPU.
struct Seen {
    cpu: CpuId,
    capacity: u64,
    idle: bool,
    /// `exit_lat`, in µs; 0 where it is not idle or in no state.
    exit_us: u64,
    importance: u64,
    spare: u64,
    task_fits: bool,
    util_fits: bool,
    group_full: bool,
}

/// The best CPUs of one cluster.
#[derive(Default)]
struct OfCluster {
    idle: Option<(CpuId, u64)>,
    unimportant: Option<(CpuId, u64, u64)>,
    beside_rt: Option<(CpuId, u64)>,
    packing: Option<(CpuId, u64)>,
    spare: Option<(CpuId, u64, u64)>,
    /// Whether the task fits the CPU that was looked at last.
    fits: bool,
}

/// Candidates of all clusters.
struct Found {
    idle_fit: CpuSet,
    idle_unfit: CpuSet,
    unimportant_fit: CpuSet,
    unimportant_unfit: CpuSet,
    packing: CpuSet,
    max_spare: CpuSet,
    beside_rt: CpuSet,
    /// Highest idle CPU, with its capacity, and highest unimportant one, with what it has to spare.
    idle_max: Option<(CpuId, u64)>,
    unimportant_max: Option<(CpuId, u64)>,
    idle_found: bool,
    important_found: bool,
    most_spare: u64,
    most_spare_cpu: Option<CpuId>,
    least_loaded: Option<(u64, CpuId)>,
}

impl<'a> Search<'a> {
    fn new(m: &'a Machine, vendor: &'a Vendor, task: TaskId, waker: Waker) -> Search<'a> {
        let (t, group) = (m.task(task), m.vendor_group(vendor, task));
        let mut clamps = t.clamps();
        let bigger = vendor.cluster_starts.get(1).is_some_and(|start| waker.cpu >= *start);
        if waker.sync && bigger {
            clamps.min = clamps.min.max(Util(vendor.smallest.0 + 1));
        }
        let adpf = vendor.is_adpf(task);
        let reduced = m.prio(task) <= DEFAULT_PRIO && clamps.max == Util(1024);
        Search {
            m,
            vendor,
            task,
            waker,
            prev: t.cpu,
            clamps,
            prefer_idle: adpf || (group.prefer_idle && (reduced || !vendor.reduce_prefer_idle)),
            prefer_fit: adpf,
            skip_mask: group.skip_mask,
            auto_uclamp_max: group.auto_uclamp_max && !adpf,
            task_util: m.task_util_est(task).0,
        }
    }

    fn skips(&self, cpu: CpuId) -> bool {
        cpu.0 < 64 && self.skip_mask >> cpu.0 & 1 != 0
    }
    fn may(&self, cpu: CpuId) -> bool {
        self.m.is_cpu_allowed(self.task, cpu)
    }
    /// `cpu_is_idle`.
    fn is_idle(&self, cpu: CpuId) -> bool {
        self.m.idle_cpu(cpu) || sched_idle_rq(self.m, cpu)
    }
    fn fits(&self, cpu: CpuId) -> bool {
        self.m.vendor_task_fits(self.vendor, self.task, cpu, self.clamps)
    }
    /// The exit latency of the state that `cpu` is in, in µs.
    fn exit_us(&self, cpu: CpuId) -> Option<u64> {
        let state = self.m.cpu(cpu).idle.and_then(|idle| idle.state)?;
        let states = &self.m.platform.domains[self.m.cpu(cpu).domain].idle;
        states.get(state as usize).map(|s| s.exit_latency.0 / 1000)
    }

    /// A CPU that is taken without a search.
    fn at_once(&self) -> Option<Placed> {
        let (m, this) = (self.m, self.waker.cpu);
        if self.waker.sync && m.queued(this) == 1 && self.may(this) && self.fits(this) {
            return Some(Placed { cpu: this, why: Why::WakeAffine });
        }
        let prev = self.prev;
        let usable = self.vendor.prefer_prev_cpu && self.may(prev) && self.is_idle(prev);
        if !usable || self.skips(prev) || !self.fits(prev) {
            return None;
        }
        let exit = if sched_idle_rq(m, prev) { Some(0) } else { self.exit_us(prev) };
        exit.filter(|us| *us <= C1_EXIT_LATENCY).map(|_| Placed { cpu: prev, why: Why::PrevCpu })
    }

    /// The split of a CPU without the task.
    fn without(&self, cpu: CpuId) -> Split {
        let (m, split) = (self.m, self.m.vendor_split(self.vendor, cpu));
        let t = m.task(self.task);
        let there = cpu == t.cpu && t.avg.last_update_time.0 != 0;
        let queued = m.task_util(self.task).queued;
        let util = there.then_some(Change::Takes);
        m.vendor_changed(self.vendor, split, self.task, util, queued.then_some(Change::Takes))
    }

    /// `cpu_util_next`: with the task on `dst`.
    fn util_next(&self, cpu: CpuId, dst: CpuId) -> Util {
        let (m, split) = (self.m, self.m.vendor_split(self.vendor, cpu));
        let util = match (self.prev == cpu, dst == cpu) {
            (true, false) => Some(Change::Takes),
            (false, true) => Some(Change::Adds),
            _ => None,
        };
        let est = (dst == cpu).then_some(Change::Adds);
        let split = m.vendor_changed(self.vendor, split, self.task, util, est);
        m.vendor_joined(self.vendor, cpu, split).min(Util(m.capacity_of(cpu).0))
    }

    /// The facts about `cpu`; `clamps`: those with which the last one of the cluster was seen.
    fn sees(&self, cpu: CpuId, clamps: &mut Uclamp) -> Seen {
        let (m, c) = (self.m, self.m.cpu(cpu));
        let (split, capacity) = (self.without(cpu), m.capacity_of(cpu).0);
        let wake_util = m.vendor_joined(self.vendor, cpu, split).0.min(capacity);
        let (group_full, group_spare) = m.group_room(self.vendor, self.task, cpu, &split);
        let mut own = self.clamps;
        if self.auto_uclamp_max {
            own.max = c.slots.pixel.auto_uclamp_max;
            clamps.max = own.max;
        }
        if !c.uclamp.uclamp_rq_is_idle() {
            let queued = c.uclamp.clamps();
            *clamps = Uclamp { min: queued.min.max(own.min), max: queued.max.max(own.max) };
        }
        let idle = self.is_idle(cpu);
        Seen {
            cpu,
            capacity,
            idle,
            exit_us: if idle { self.exit_us(cpu).unwrap_or(0) } else { 0 },
            importance: m.cpu_importance(cpu),
            spare: (capacity - wake_util).min(group_spare),
            task_fits: self.fits(cpu),
            util_fits: c.slots.pixel.fits(Util(wake_util), *clamps, c.capacities()).unwrap_or(true),
            group_full,
        }
    }

    /// `find_energy_efficient_cpu`.
    fn find_energy_efficient_cpu(&self) -> Placed {
        let mut found = Found::new();
        // The list of performance domains begins with the one found last.
        for domain in self.m.domains.iter().rev() {
            let mut clamps = self.clamps;
            let mut best = OfCluster::default();
            for &cpu in domain.cpus.iter().filter(|cpu| self.may(**cpu)) {
                let seen = self.sees(cpu, &mut clamps);
                let load = self.m.cpu(cpu).cfs_avg.avg.load_avg;
                if found.least_loaded.is_none_or(|(least, _)| load < least) {
                    found.least_loaded = Some((load, cpu));
                }
                best.fits = seen.task_fits;
                match self.prefer_idle {
                    true => self.weighs_idle(&seen, &mut best, &mut found),
                    false => self.weighs(&seen, &mut best, &mut found),
                }
            }
            found.takes(&best);
        }
        let mut candidates = found.candidates(self.prefer_fit);
        let left: CpuSet = candidates.iter().filter(|cpu| !self.skips(*cpu)).collect();
        if !left.is_empty() {
            candidates = left;
        }
        self.cheapest(&candidates, &found)
    }

    /// A CPU for a task that prefers idle ones.
    fn weighs_idle(&self, seen: &Seen, best: &mut OfCluster, found: &mut Found) {
        let (cpu, spare) = (seen.cpu, seen.spare);
        if seen.idle {
            let odd = self.waker.cpu.0 % 2 == 1;
            let takes = match best.idle {
                None => true,
                Some((_, least)) if seen.exit_us != least => seen.exit_us < least,
                Some((now, _)) => cpu == self.prev || (now != self.prev && odd),
            };
            if takes {
                best.idle = Some((cpu, seen.exit_us));
            }
            found.idle_found = true;
            if let Some((idle, _)) = best.idle
                && found.idle_max.is_none_or(|(highest, _)| idle > highest)
            {
                found.idle_max = Some((idle, seen.capacity));
            }
        }
        if found.idle_found {
            return;
        }
        let curr = self.m.cpu(cpu).curr;
        let beside_rt = curr.is_some_and(|curr| self.m.prio(curr) < MAX_RT_PRIO);
        if self.prefer_fit && seen.task_fits && beside_rt {
            if best.beside_rt.is_none_or(|(_, most)| spare >= most) {
                best.beside_rt = Some((cpu, spare));
            }
            return;
        }
        let min = if self.m.prio(self.task) <= DEFAULT_PRIO { self.clamps.min.0 } else { 0 };
        if min + self.clamps.max.0 > seen.importance {
            let takes = best.unimportant.is_none_or(|(_, least, most)| {
                seen.importance < least || (seen.importance == least && spare >= most)
            });
            if takes {
                best.unimportant = Some((cpu, seen.importance, spare));
                found.important_found = true;
                if found.unimportant_max.is_none_or(|(highest, _)| cpu > highest) {
                    found.unimportant_max = Some((cpu, spare));
                }
            }
        }
        let refused = match self.prefer_fit {
            true => !seen.task_fits,
            false => seen.group_full || !seen.util_fits,
        };
        if found.important_found || refused {
            return;
        }
        if spare > found.most_spare {
            found.most_spare = spare;
            found.max_spare = CpuSet::first(0);
            found.max_spare.insert(cpu);
        } else if spare == found.most_spare {
            if self.task_util % 2 == 1 {
                found.max_spare = CpuSet::first(0);
            }
            found.max_spare.insert(cpu);
        }
    }

    /// A CPU for any other task.
    fn weighs(&self, seen: &Seen, best: &mut OfCluster, found: &mut Found) {
        let (m, cpu, spare) = (self.m, seen.cpu, seen.spare);
        let more = spare > found.most_spare;
        if more || (spare > 0 && spare == found.most_spare && self.task_util % 2 == 1) {
            (found.most_spare, found.most_spare_cpu) = (spare, Some(cpu));
        }
        let c = m.cpu(cpu);
        let own = cap_scale(m.group_throttle(self.vendor, self.task), c.capacity.0);
        let fits = !seen.group_full && seen.util_fits && seen.task_fits;
        if !fits || spare < self.task_util.min(own) {
            return;
        }
        let packs = self.vendor.npi_packing && !seen.idle && seen.importance <= UNIMPORTANT;
        if packs && best.packing.is_none_or(|(_, most)| spare > most) {
            let scale = m.domains[c.domain].freq_scale;
            let util = self.util_next(cpu, cpu).0 + m.rq_util(cpu).rt.0;
            let needed = util.wrapping_mul(c.slots.pixel.threshold) >> 10;
            if spare > 0 && cap_scale(c.capacity.0, scale) >= needed {
                best.packing = Some((cpu, spare));
            }
        }
        if best.packing.is_some() {
            return;
        }
        let odd = self.waker.cpu.0 % 2 == 1;
        let takes = match best.spare {
            None => spare > 0,
            Some((_, most, _)) if spare != most => spare > most,
            Some((_, _, exit)) if seen.exit_us != exit => seen.exit_us < exit,
            Some((now, _, _)) => cpu == self.prev || (now != self.prev && odd),
        };
        if takes {
            best.spare = Some((cpu, spare, seen.exit_us));
        }
    }

    /// `compute_energy` with the task on `dst`, in the model's own unit.
    fn energy(&self, dst: CpuId) -> u64 {
        self.m.domains.iter().map(|domain| self.energy_of(domain, dst)).sum()
    }

    fn energy_of(&self, domain: &FreqDomain, dst: CpuId) -> u64 {
        let m = self.m;
        let (mut most, mut sum) = (Util(0), Util(0));
        for &cpu in &domain.cpus {
            let (util, rq) = (self.util_next(cpu, dst), m.rq_util(cpu));
            let clamps = (cpu == dst).then_some(self.clamps);
            let clamp = |util| m.vendor_clamped(cpu, util, clamps);
            sum += m.vendor_cpu_util(cpu, util, &rq, CpuUtilType::Energy, |util| util);
            most = most.max(m.vendor_cpu_util(cpu, util, &rq, CpuUtilType::Frequency, clamp));
        }
        m.vendor_energy(domain.cpus[0], most, sum)
    }

    fn cheapest(&self, candidates: &CpuSet, found: &Found) -> Placed {
        let why = |cpu, why| if cpu == self.prev { Why::PrevCpu } else { why };
        let Some(first) = candidates.lowest() else {
            let cpu = found.most_spare_cpu.or(found.least_loaded.map(|(_, cpu)| cpu));
            let cpu = cpu.unwrap_or(self.prev);
            return Placed { cpu, why: why(cpu, Why::LeastLoad) };
        };
        if candidates.len() == 1 {
            let other = if self.is_idle(first) { Why::IdleSibling } else { Why::Energy };
            return Placed { cpu: first, why: why(first, other) };
        }
        let mut best: Option<(u64, u64, CpuId)> = None;
        for cpu in candidates.iter() {
            let exit = if self.is_idle(cpu) { self.exit_us(cpu).unwrap_or(0) } else { 0 };
            let energy = self.energy(cpu);
            let takes = best.is_none_or(|(least, least_exit, now)| match energy == least {
                false => energy < least,
                true if exit != least_exit => exit < least_exit,
                true => cpu == self.prev || (now != self.prev && cpu == self.waker.cpu),
            });
            if takes {
                best = Some((energy, exit, cpu));
            }
        }
        let cpu = best.map_or(first, |(_, _, cpu)| cpu);
        Placed { cpu, why: why(cpu, Why::Energy) }
    }
}

impl Found {
    fn new() -> Found {
        let none = || CpuSet::first(0);
        Found {
            idle_fit: none(),
            idle_unfit: none(),
            unimportant_fit: none(),
            unimportant_unfit: none(),
            packing: none(),
            max_spare: none(),
            beside_rt: none(),
            idle_max: None,
            unimportant_max: None,
            idle_found: false,
            important_found: false,
            most_spare: 0,
            most_spare_cpu: None,
            least_loaded: None,
        }
    }

    /// Takes in the best of a cluster.
    fn takes(&mut self, best: &OfCluster) {
        let fits = best.fits;
        if let Some((cpu, _)) = best.beside_rt {
            self.beside_rt.insert(cpu);
        }
        if let Some((cpu, _)) = best.idle {
            if fits { &mut self.idle_fit } else { &mut self.idle_unfit }.insert(cpu);
        }
        if let Some((cpu, _, _)) = best.unimportant {
            if fits { &mut self.unimportant_fit } else { &mut self.unimportant_unfit }.insert(cpu);
        }
        if let Some((cpu, _)) = best.packing {
            self.packing.insert(cpu);
        }
        if let Some((cpu, _, _)) = best.spare {
            self.max_spare.insert(cpu);
        }
    }

    /// The candidates, by the order of the search.
    fn candidates(&self, prefer_fit: bool) -> CpuSet {
        let one = |cpu: CpuId| [cpu].into_iter().collect::<CpuSet>();
        let last = |set: &CpuSet| set.iter().last().map(one);
        let all = |set: &CpuSet| (!set.is_empty()).then_some(*set);
        let none = CpuSet::first(0);
        if prefer_fit {
            let highest = match (self.idle_max, self.unimportant_max) {
                (Some((idle, capacity)), Some((_, spare))) if capacity >= spare => Some(idle),
                (_, Some((unimportant, _))) => Some(unimportant),
                (idle, None) => idle.map(|(idle, _)| idle),
            };
            return all(&self.idle_fit)
                .or(all(&self.unimportant_fit))
                .or(highest.map(one))
                .or(all(&self.max_spare))
                .or(all(&self.beside_rt))
                .unwrap_or(none);
        }
        all(&self.idle_fit)
            .or(last(&self.idle_unfit))
            .or(all(&self.unimportant_fit))
            .or(last(&self.unimportant_unfit))
            .or(all(&self.packing))
            .or(all(&self.max_spare))
            .unwrap_or(none)
    }
}
