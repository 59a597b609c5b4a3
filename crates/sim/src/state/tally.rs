//! Sums of the groups of a domain, kept from one look to the next.
//!
//! ```text
//! rq(cpu) ──> stale                               its share may change, now that it is locked
//! a look  ──> refresh: of each stale CPU of the domain, the new share less the old one goes to every
//!             group that it is in; it is no longer stale
//! ```
//!
//! A server's CPU that goes idle looks at hundreds of others, of which a handful has done anything since the
//! last look anywhere. What makes it right is the kernel's own rule: a runqueue changes only while it is
//! locked (`Kernel::rq`, `Machine::cpu_mut`); one that stays locked over a look is stale again afterwards.
//!
//! Kept only where sums say all there is to say: CPUs alike, fair tasks and stoppers and no others, no
//! groups of tasks ([`Tally::serves`]); a group of which a CPU has not all its capacity (a limit of the
//! frequency) has to be asked CPU by CPU, since there one task can be a misfit one. Debug builds compare
//! each answer with the long way's (`kernel/balance/group.rs`), and a test whole runs.

use crate::state::cpuset::CpuSet;
use crate::state::machine::{Cpu, Machine};
#[cfg(test)]
use crate::state::short_ways::counted::{self, Fault};
use crate::state::short_ways::{self, ShortWay};
use crate::state::topology::SchedGroup;
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::cpu_util_cfs;
use risetime_kernel::units::CpuId;

/// A CPU's share of the groups that it is in, or what the CPUs of a group come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) load: u64,
    pub(crate) util: u64,
    pub(crate) runnable: u64,
    pub(crate) capacity: u64,
    pub(crate) running: u32,
    pub(crate) fair_queued: u32,
    /// CPUs without a task.
    pub(crate) idle_cpus: u32,
    /// CPUs with several.
    pub(crate) crowded: u32,
}

impl Share {
    #[inline]
    fn of(rev: KernelRev, c: &Cpu) -> Share {
        let running = c.nr_running();
        #[cfg(test)]
        let running = match counted::is(Fault::StoppersUncounted) {
            true => running - usize::from(c.stopper.as_ref().is_some_and(|s| s.queued())),
            false => running,
        };
        Share {
            load: c.cfs_avg.avg.load_avg,
            util: cpu_util_cfs(&c.plain_cfs(), c.capacity).0,
            runnable: c.cfs_avg.avg.runnable_avg.0,
            capacity: c.cpu_capacity.0,
            running: running as u32,
            fair_queued: c.fair_queued(rev) as u32,
            idle_cpus: u32::from(c.is_idle()),
            crowded: u32::from(running > 1),
        }
    }

    /// `old` gives way to `new`, both of one CPU that is in it.
    #[inline]
    fn replace(&mut self, old: &Share, new: &Share) {
        let swap = |sum: &mut u64, old: u64, new: u64| *sum = *sum + new - old;
        let swap_count = |sum: &mut u32, old: u32, new: u32| *sum = *sum + new - old;
        swap(&mut self.load, old.load, new.load);
        swap(&mut self.util, old.util, new.util);
        swap(&mut self.runnable, old.runnable, new.runnable);
        swap(&mut self.capacity, old.capacity, new.capacity);
        swap_count(&mut self.running, old.running, new.running);
        swap_count(&mut self.fair_queued, old.fair_queued, new.fair_queued);
        swap_count(&mut self.idle_cpus, old.idle_cpus, new.idle_cpus);
        swap_count(&mut self.crowded, old.crowded, new.crowded);
    }
}

/// The shares of all CPUs and the sums of all groups.
pub(crate) struct Tally {
    shares: Vec<Share>,
    /// Sums by [`SchedGroup::slot`].
    sums: Vec<Share>,
    /// Groups that each CPU is in.
    groups: Vec<Vec<u32>>,
    /// CPUs whose share may be old.
    stale: CpuSet,
}

impl Tally {
    /// Whether a machine can do with it: else it only costs.
    pub(crate) fn serves(m: &Machine) -> bool {
        let alike = m.cpus.iter().all(|c| c.capacity == m.cpus[0].capacity);
        let fair_only = !m.classes.used && m.domains.iter().all(|d| d.fast_switch);
        m.plain && alike && fair_only && !m.groups.on()
    }

    /// A tally for the domains as they are now, all of it still to be counted.
    pub(crate) fn new(m: &Machine) -> Tally {
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); m.cpus.len()];
        let mut slots = 0;
        for domain in m.cpus.iter().flat_map(|c| &c.sched_domains) {
            for group in domain.groups() {
                slots = slots.max(group.slot + 1);
                for cpu in group.span.iter() {
                    let of = &mut groups[cpu.index()];
                    if !of.contains(&(group.slot as u32)) {
                        of.push(group.slot as u32);
                    }
                }
            }
        }
        Tally {
            shares: vec![Share::default(); m.cpus.len()],
            sums: vec![Share::default(); slots],
            groups,
            stale: CpuSet::first(m.cpus.len()),
        }
    }

    /// Notes that `cpu` is locked: its share may change.
    #[inline]
    pub(crate) fn touch(&mut self, cpu: CpuId) {
        self.stale.insert(cpu);
    }

    /// `sum` without the shares of CPUs that a look has left out, since none of their tasks may come: their
    /// capacity still counts.
    fn left_of(&self, mut sum: Share, out: &CpuSet) -> Share {
        for cpu in out.iter() {
            let own = &self.shares[cpu.index()];
            sum.replace(own, &Share { capacity: own.capacity, ..Share::default() });
        }
        sum
    }

    /// Brings the sums of these CPUs' groups up to now, before a look at them.
    #[inline(never)]
    pub(crate) fn refresh(&mut self, cpus: &[Cpu], span: &CpuSet, rev: KernelRev) {
        for cpu in self.stale.and(span).iter() {
            self.stale.remove(cpu);
            let (new, old) = (Share::of(rev, &cpus[cpu.index()]), self.shares[cpu.index()]);
            if new != old {
                self.shares[cpu.index()] = new;
                for slot in &self.groups[cpu.index()] {
                    self.sums[*slot as usize].replace(&old, &new);
                }
            }
        }
    }
}

impl Machine {
    /// The sums of a group; of CPUs that are not `among` those, the capacity alone. `None`: the
    /// CPUs have to be asked one by one.
    #[inline]
    pub(crate) fn tallied(&self, group: &SchedGroup, among: Option<&CpuSet>) -> Option<Share> {
        let tally = self.tally.as_ref().filter(|_| self.is_plain())?;
        // The CPUs are all alike.
        let all = u64::from(group.weight) * self.cpus[0].capacity.0;
        #[cfg(test)]
        if counted::is(Fault::CapacityTakenForGranted) {
            return tally.sums.get(group.slot).copied();
        }
        let sum = tally.sums.get(group.slot).filter(|sum| sum.capacity == all)?;
        short_ways::take(ShortWay::Tally);
        match among {
            None => Some(*sum),
            Some(among) => Some(tally.left_of(*sum, &group.span.without(among))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::experiment;
    use crate::{Counterfactual, setup};
    use risetime_kernel::units::{Instant, Span};
    use risetime_model::settings::Value;
    use risetime_model::{Platform, Workload};

    const TASKS: &str = r#"{"tasks": {
        "spin": {"instance": 5, "loop": -1, "run": 1000},
        "light": {"instance": 20, "priority": 5, "loop": -1, "run": 300, "sleep": 700},
        "pinned": {"instance": 3, "cpus": [0, 1], "loop": -1, "run": 900, "sleep": 500},
        "late": {"instance": 9, "delay": 12000, "loop": 9, "run": 800, "sleep": 100}
    }, "global": {"hotplug": [{"at_us": 15000, "cpu": 2, "online": 0},
                              {"at_us": 30000, "cpu": 2, "online": 1}]}}"#;

    #[test]
    fn what_is_kept_is_what_a_look_at_every_cpu_finds() {
        for (platform, policy) in
            [("laptop4", "linux-7.2"), ("laptop4", "linux-6.12"), ("server256", "linux-7.3")]
        {
            let platform = Platform::load(platform).expect("built in");
            let workload = Workload::parse(TASKS, "tasks.json").expect("a workload");
            let e = experiment(
                platform,
                workload,
                policy,
                &[("ni_random", Value::Int(1))],
                Span::from_ms(50),
            );
            let mut nobody = ();
            let mut engine =
                setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("an engine");
            engine.start();
            let (mut steps, mut kept) = (0, 0);
            while engine.step(Instant(50_000_000)).expect("a step") {
                steps += 1;
                if steps % 29 != 0 {
                    continue;
                }
                let cpu = CpuId(steps % engine.k.m.cpus.len() as u32);
                for level in 0..engine.k.m.cpu(cpu).sched_domains.len() {
                    engine.k.rq(cpu).refresh_tally(level);
                    let m = &engine.k.m;
                    for group in m.cpu(cpu).sched_domains[level].groups() {
                        let mut sum = Share::default();
                        for c in group.span.iter() {
                            sum.replace(&Share::default(), &Share::of(m.rev, m.cpu(c)));
                        }
                        assert_eq!(m.tallied(group, None), Some(sum), "{policy}, {cpu:?}, {level}");
                        kept += 1;
                    }
                }
            }
            assert!(kept > 50, "{policy}: {kept} in {steps} steps");
        }
    }
}
