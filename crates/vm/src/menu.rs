//! Memory of the idle governor `menu` when the workload's first task is created.
//!
//! ```text
//! probe     at each choice of a state: the memory as it was then, and the sleep before, which it is
//!           about to take in                                       (until shortly before time 0)
//! cpu_idle  the sleeps that begin and end after the last probe: the same arithmetic here
//! ```
//!
//! Which timer ends a sleep is not told: on the CPU of the agent, which only waits for its next duty, the
//! sleep lasted until it; elsewhere there is none.

use risetime_ftrace::event::Probed;
use risetime_kernel::KernelRev;
use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::cpuidle::{IdleGovernor, IdleState, Limits, Sleep};
use risetime_kernel::units::{CpuId, Span};
use risetime_model::Platform;
use risetime_trace::{IdleMemory, RqMemory};

/// One CPU, followed up to the creation.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    cpu: CpuId,
    rev: KernelRev,
    states: Vec<IdleState>,
    tick: Span,
    /// Whether its sleeps end by timers of the agent.
    agent: bool,
    governor: Option<IdleGovernor>,
    /// The last sleep: its state, its beginning and its end.
    sleep: Option<(u32, u64, Option<u64>)>,
    /// The probe's memory has not met the sleep yet that it was read for.
    fresh: bool,
    rq: Option<RqMemory>,
    idle_stamp: Option<u64>,
}

impl Follower {
    pub(crate) fn new(platform: &Platform, rev: KernelRev, cpu: CpuId, agent: bool) -> Follower {
        let domain = platform.domain_of(cpu).map(|d| &platform.domains[d]);
        let states = domain.iter().flat_map(|d| &d.idle);
        let states = states.map(|s| IdleState {
            target_residency: s.min_residency,
            exit_latency: s.longest_wakeup(),
        });
        Follower {
            cpu,
            rev,
            states: states.collect(),
            tick: platform.tick(),
            agent,
            governor: None,
            sleep: None,
            fresh: false,
            rq: None,
            idle_stamp: None,
        }
    }

    /// Takes in the state with which the governor was asked.
    pub(crate) fn probed(&mut self, p: &Probed) {
        let menu = MenuDevice::from_parts(
            self.rev,
            p.next_timer_ns,
            p.bucket,
            p.factors,
            p.intervals,
            p.ptr,
        );
        let mut governor = IdleGovernor::Menu(menu);
        if let Some((state, ns, by_tick)) = p.last {
            governor.update(&self.states, state, Span(ns), by_tick, self.tick);
        }
        (self.governor, self.sleep, self.fresh) = (Some(governor), None, true);
        (self.rq, self.idle_stamp) = (p.rq, p.idle_stamp);
    }

    /// Notes that the CPU's last task has left.
    pub(crate) fn goes_idle(&mut self, at: u64) {
        self.idle_stamp = self.idle_stamp.map(|_| at);
    }

    /// Begins an idle state.
    pub(crate) fn enters(&mut self, state: u32, at: u64) {
        if !std::mem::take(&mut self.fresh) {
            self.take_in();
        }
        self.sleep = Some((state, at, None));
    }

    /// Notes that the sleep ends.
    pub(crate) fn leaves(&mut self, at: u64) {
        if let Some((_, _, until)) = &mut self.sleep {
            *until = Some(at);
        }
    }

    /// The choice of the last sleep's state.
    fn select(&mut self) -> Option<(u32, u64, Option<u64>)> {
        let (state, from, until) = self.sleep?;
        let next_timer = until.filter(|_| self.agent).map(|until| Span(until - from));
        let sleep = Sleep {
            next_timer,
            next_tick: self.tick,
            tick_stopped: false,
            tick: self.tick,
            utilized: false,
            limits: Limits::NONE,
        };
        self.governor.as_mut()?.select(&self.states, sleep);
        Some((state, from, until))
    }

    /// Passes the last sleep, over for good, to the governor.
    fn take_in(&mut self) {
        if let Some((state, from, Some(until))) = self.select()
            && let Some(governor) = &mut self.governor
        {
            governor.update(&self.states, state as usize, Span(until - from), false, self.tick);
        }
    }

    /// The memory of `menu` at that time; `None`: not known.
    pub(crate) fn at(mut self, now: u64) -> Option<IdleMemory> {
        let (state, from, until) = self.select()?;
        let Some(IdleGovernor::Menu(menu)) = self.governor else { return None };
        Some(IdleMemory {
            cpu: self.cpu,
            menu,
            state,
            before: Span(now.saturating_sub(from)),
            slept: until.map(|until| Span(until - from)),
            rq: self.rq.map(|rq| RqMemory {
                idled: self.idle_stamp.map(|at| Span(now.saturating_sub(at))),
                ..rq
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBED: Probed = Probed {
        next_timer_ns: 0,
        bucket: 0,
        factors: [8192; 6],
        intervals: [700; 8],
        ptr: 0,
        rq: None,
        idle_stamp: None,
        cfs: None,
        last: Some((0, 9_000_000, false)),
        asked: None,
    };

    fn follower() -> Follower {
        let platform = Platform::load("m1").expect("built in");
        Follower::new(&platform, KernelRev::V7_3, CpuId(0), true)
    }

    #[test]
    fn sleeps_after_the_last_probe_are_taken_in_but_for_the_last_one() {
        let mut probe_only = follower();
        probe_only.probed(&PROBED);
        probe_only.enters(1, 100);
        let known = probe_only.at(5_000_100).expect("known");
        assert_eq!((known.state, known.before, known.slept), (1, Span(5_000_000), None));

        let mut twice = follower();
        twice.probed(&PROBED);
        twice.enters(1, 100);
        twice.leaves(3_000_100);
        twice.enters(1, 3_100_100);
        twice.leaves(5_000_100);
        let later = twice.at(5_000_100).expect("known");
        assert_eq!((later.before, later.slept), (Span(1_900_000), Some(Span(1_900_000))));
        assert_ne!(later.menu, known.menu, "the first sleep has been taken in");
        // Asked again, it starts from what the kernel says.
        let mut asked = follower();
        asked.enters(1, 7);
        asked.leaves(8);
        asked.probed(&PROBED);
        asked.enters(1, 100);
        assert_eq!(asked.at(5_000_100), Some(known));
    }

    #[test]
    fn without_a_probe_nothing_is_known() {
        let mut f = follower();
        f.enters(1, 100);
        f.leaves(200);
        assert_eq!(f.at(300), None);
    }
}
