//! Generated workloads on generated platforms under every policy, governor and placement.
//!
//! After every event the machine is consistent ([`consistent`]); its trace tells a possible
//! story ([`Checker`]); the same experiment gives the same bytes, whatever the platform is
//! called.

use super::Bytes;
use super::checker::Checker;
use super::generate::experiments;
use crate::draws;
use crate::run::cause::{CAUSES, Causes};
use crate::run::engine::Simulation;
use crate::state::class::Class;
use crate::state::machine::{Machine, Role, State};
use crate::{Counterfactual, Simulator, setup};
use proptest::prelude::*;
use risetime_kernel::KernelRev;
use risetime_kernel::deadline::DlId;
use risetime_kernel::overcommit::Turn;
use risetime_kernel::pelt::{SchedAvg, get_pelt_divider, update_load_avg_se};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId, Weight};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, TraceSink};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs `e` and checks everything; what is wrong comes with the events that led to it.
pub(super) fn run_checked(e: &Experiment) -> Result<Checker, TestCaseError> {
    let mut checker = Checker::new(e);
    match step_through(e, Counterfactual::default(), &mut checker) {
        Ok(()) if checker.wrong.is_empty() => return Ok(checker),
        Ok(()) => {}
        Err(what) => checker.wrong.insert(0, what),
    }
    let mut bytes = Bytes::default();
    // It goes wrong again; the first complaint is the one to print.
    let _ = step_through(e, Counterfactual::default(), &mut bytes);
    let from: u64 = checker.wrong[0].split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let led_to_it = |l: &&str| {
        l.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).is_some_and(|ns| ns <= from)
    };
    let lines: Vec<&str> =
        bytes.0.lines().filter(|l| !l.contains(" Phase")).filter(led_to_it).collect();
    let last = lines[lines.len().saturating_sub(40)..].join("\n");
    Err(TestCaseError::fail(format!("{}\n{last}", checker.wrong.join("\n"))))
}

pub(super) fn step_through(
    e: &Experiment,
    other: Counterfactual,
    sink: &mut dyn TraceSink,
) -> Result<(), String> {
    let end = Instant(e.duration.0);
    let mut engine = setup::simulation(e, sink, other).map_err(|e| e.to_string())?;
    engine.start();
    let mut seen = Seen::default();
    while engine.step(end).map_err(|e| e.to_string())? {
        consistent(&engine, &mut seen)
            .map_err(|what| format!("{} ns: {what}", engine.k.m.now.0))?;
    }
    sink.end(end);
    Ok(())
}

/// Runs `e` and looks at everything once in so many events. How often it looked.
pub(super) fn consistent_after(e: &Experiment, events: u64) -> Result<u64, String> {
    let mut sink = ();
    let mut engine =
        setup::simulation(e, &mut sink, Counterfactual::default()).map_err(|e| e.to_string())?;
    engine.start();
    let (mut seen, mut n) = (Seen::default(), 0);
    while engine.step(Instant(e.duration.0)).map_err(|e| e.to_string())? {
        n += 1;
        if n % events == 0 {
            let at = engine.k.m.now.0;
            consistent(&engine, &mut seen).map_err(|what| format!("{at} ns: {what}"))?;
        } else {
            seen.look(&engine.k.m);
        }
    }
    Ok(n / events)
}

/// Changes of a queue's sums that its tasks' sums do not show.
#[derive(Default)]
struct Queue {
    /// Error of what tasks took along when they left, faded, in 1/1024: an average stands since the
    /// last end of a period, and one period is [`one_period`].
    stale: u64,
    /// The period in which that was last faded.
    period: u64,
    /// `runnable_sum` has been so large that kernels before 7.2 lose a part of it when something
    /// leaves: they bound it in 32 bits.
    cut: bool,
}

/// Memory of a look at the machine for the next one.
#[derive(Default)]
struct Seen {
    /// Level at which each task's averages are counted.
    counted: Vec<Option<(CpuId, GroupId)>>,
    queues: BTreeMap<(CpuId, GroupId), Queue>,
}

impl Seen {
    /// Takes in who has left which queue.
    fn look(&mut self, m: &Machine) {
        let one_period = one_period(m);
        self.counted.resize(m.tasks.len(), None);
        for (t, was) in m.tasks.iter().zip(&mut self.counted) {
            let there = t.sched.class() == Class::Fair && t.avg.last_update_time.0 != 0;
            let is = (there && t.state != State::Exited).then_some((t.cpu, t.group));
            if let Some(left) = std::mem::replace(was, is).filter(|left| is != Some(*left)) {
                self.queues.entry(left).or_default().stale += one_period << 10;
            }
        }
    }

    /// The queue of `g` on `cpu`, with what fades faded.
    fn queue(&mut self, m: &Machine, cpu: CpuId, g: GroupId) -> &mut Queue {
        let queue = self.queues.entry((cpu, g)).or_default();
        let period = m.cfs_avg_of(cpu, g).avg.last_update_time.0 >> 20;
        let before = std::mem::replace(&mut queue.period, period);
        queue.stale = m.decay.decay_load(queue.stale, period.saturating_sub(before));
        queue
    }
}

/// The util that a period of running adds: 22 with mainline's half-life.
fn one_period(m: &Machine) -> u64 {
    (1 << 20) / u64::from(m.decay.load_avg_max()) + 1
}

/// Whether every part of the machine agrees with every other.
fn consistent(e: &Simulation<'_>, seen: &mut Seen) -> Result<(), String> {
    let m = &e.k.m;
    for (i, t) in m.tasks.iter().enumerate() {
        let id = TaskId(i as u32);
        let Role::User = t.role else { continue };
        let queued: Vec<CpuId> =
            m.platform.cpus().filter(|c| m.fair_entity(*c, id).is_some()).collect();
        if !e.k.m.is_fair(id) {
            in_its_queue(m, id, queued.is_empty())?;
            continue;
        }
        let ok = match (t.state, &queued[..]) {
            (State::New | State::Exited, []) => t.entity.is_some(),
            (State::Sleeping | State::Waking, []) => t.entity.is_some(),
            (State::Sleeping, [cpu]) => {
                *cpu == t.cpu && m.fair_entity(*cpu, id).is_some_and(|e| e.sched_delayed)
            }
            (State::Runnable, []) => t.throttled && t.entity.is_some(),
            (State::Runnable, [cpu]) => {
                *cpu == t.cpu
                    && t.entity.is_none()
                    && m.fair_entity(*cpu, id).is_some_and(|e| !e.sched_delayed)
            }
            _ => false,
        };
        if !ok {
            return Err(format!(
                "{id} is {:?} on {}, queued on {queued:?}, off its queue: {}",
                t.state,
                t.cpu,
                t.entity.is_some()
            ));
        }
    }
    seen.look(m);
    for cpu in m.platform.cpus() {
        cpu_consistent(e, m, cpu, seen)?;
    }
    Ok(())
}

fn cpu_consistent(
    e: &Simulation<'_>,
    m: &Machine,
    cpu: CpuId,
    seen: &mut Seen,
) -> Result<(), String> {
    let c = m.cpu(cpu);
    let user = c.curr.filter(|t| e.k.m.is_fair(*t));
    let ensure =
        |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{cpu}: {what}")) };
    let fair = m.fair_curr(cpu).and_then(|e| e.id.as_task());
    ensure(
        user == fair,
        &format!("the fair class's current task is {fair:?}, the CPU's {:?}", c.curr),
    )?;
    let handles_irq = c.idle.is_none() && c.slots.pressure.as_ref().is_some_and(|p| p.in_irq());
    // Awake, and done with the wakeup only later.
    let held = c.idle.is_none() && c.resched_held;
    let either = c.idle.is_some() == c.curr.is_none();
    // Awake, with the interrupt of its wake list at this very moment.
    let hears = c.idle.is_none() && c.wake_list.iter().any(|wakee| wakee.heard <= m.now);
    ensure(either || handles_irq || held || hears, "idle with a task, or neither")?;
    ensure(
        c.idle.is_none_or(|_| c.nr_running() == 0 || c.waking),
        "idle with work, and nobody wakes it",
    )?;
    ensure(
        c.curr.is_none_or(|t| m.task(t).state == State::Runnable),
        "the running task is not runnable",
    )?;
    // Its demotion is the next event.
    let demoted_now = c.curr.is_some_and(|t| {
        m.task(t).slots.demotion.as_ref().is_some_and(|demoted| demoted.was.is_none())
    });
    ensure(
        c.waking || handles_irq || c.resched_held || demoted_now || highest_class_runs(e, m, cpu),
        "a lower class runs, or not the first of one",
    )?;
    bandwidth_agrees(m, cpu)?;
    let runnable: Vec<TaskId> =
        m.fair_queued(cpu).filter(|(_, e)| !e.sched_delayed).map(|(t, _)| t).collect();
    let util_est: u64 = runnable.iter().map(|t| m.task(*t).util_est.value().0).sum();
    // The Pixel modules add a task's sample to the sum, also where its average is more.
    let by_samples = m.vendor().is_some_and(|v| v.auto_headroom);
    ensure(
        c.util_est.0 == util_est || by_samples,
        &format!("util_est is {}, of its tasks {util_est}", c.util_est),
    )?;
    let clamps = c.uclamp.clamps();
    let rt = c.rt.iter().map(|(_, t)| t).filter(|_| m.classes.uclamp_used);
    let of_groups = c.slots.rt_groups.iter().flat_map(|g| g.queue.iter());
    let rt = rt.chain(of_groups.map(|(_, t)| t).filter(|_| m.classes.uclamp_used));
    let high = c.slots.high.iter().flat_map(|high| high.queue.iter());
    let high = high.filter_map(|e| e.id.as_task()).filter(|_| !m.is_plain());
    let runnable: Vec<TaskId> = runnable.into_iter().chain(rt).chain(high).collect();
    for t in &runnable {
        let own = m.task(*t).clamps();
        ensure(
            clamps.min >= own.min && clamps.max >= own.max,
            "a runnable task's clamps are not counted",
        )?;
    }
    // Throttled tasks stay counted.
    let throttled = m.tasks.iter().any(|t| t.throttled && t.cpu == cpu);
    // Where nobody ever asks for clamps, nobody's are.
    let counted = !m.is_plain() && (!runnable.is_empty() || throttled);
    ensure(counted != c.uclamp.uclamp_rq_is_idle(), "clamps are counted of no task")?;
    ensure(
        levels(m).all(|g| !m.queue(cpu, g).need_resched()),
        "a queue has found a turn over, and nobody was told",
    )?;
    groups_consistent(m, cpu)?;
    levels(m).try_for_each(|g| sums_agree(m, cpu, g, seen))
}

/// Checks that a task of another class than the fair one is where its class keeps it.
fn in_its_queue(m: &Machine, id: TaskId, off_fair: bool) -> Result<(), String> {
    let t = m.task(id);
    let rt: Vec<CpuId> =
        m.platform.cpus().filter(|c| m.cpu(*c).rt.iter().any(|(_, t)| t == id)).collect();
    let dl: Vec<CpuId> =
        m.platform.cpus().filter(|c| m.cpu(*c).dl.contains(DlId::Task(id))).collect();
    let runnable = t.state == State::Runnable;
    let ok = match t.sched.class() {
        Class::High => {
            let there = m.platform.cpus().filter(|c| {
                m.cpu(*c).slots.high.as_ref().is_some_and(|h| h.queue.get(id).is_some())
            });
            let wanted = if runnable { vec![t.cpu] } else { vec![] };
            rt.is_empty() && dl.is_empty() && there.collect::<Vec<_>>() == wanted
        }
        Class::Overcommit => {
            let there = m.platform.cpus().filter(|c| {
                let queue = m.cpu(*c).slots.overcommit.as_ref();
                queue.is_some_and(|queue| queue.class.wanting().any(|t| t == id))
            });
            let wanted = if runnable { vec![t.cpu] } else { vec![] };
            rt.is_empty() && dl.is_empty() && there.collect::<Vec<_>>() == wanted
        }
        Class::Muqss => {
            let has = |c: &CpuId| {
                let rq = m.cpu(*c).slots.muqss.as_ref();
                rq.is_some_and(|rq| rq.curr == Some(id) || rq.queue.iter().any(|(_, t)| t == id))
            };
            let there: Vec<CpuId> = m.platform.cpus().filter(has).collect();
            rt.is_empty() && dl.is_empty() && there == if runnable { vec![t.cpu] } else { vec![] }
        }
        Class::RtGroup => {
            let has = |c: &CpuId| {
                let own = m.cpu(*c).slots.rt_groups.iter();
                own.filter(|g| g.queue.iter().any(|(_, t)| t == id))
                    .any(|g| g.group == t.sched.served)
            };
            let there: Vec<CpuId> = m.platform.cpus().filter(has).collect();
            rt.is_empty() && dl.is_empty() && there == if runnable { vec![t.cpu] } else { vec![] }
        }
        Class::Rt => dl.is_empty() && rt == if runnable { vec![t.cpu] } else { vec![] },
        _ => {
            let throttled = m.dl(id).throttled;
            rt.is_empty() && dl == if runnable && !throttled { vec![t.cpu] } else { vec![] }
                // Whoever is throttled comes back.
                && (!throttled || m.dl(id).timer.is_some())
        }
    };
    if ok && off_fair && t.entity.is_some() {
        return Ok(());
    }
    Err(format!(
        "{id} is {:?} on {} under {}, in rt of {rt:?}, dl of {dl:?}",
        t.state, t.cpu, t.sched.policy
    ))
}

/// Whether the highest class has the CPU: the stopper, else the earliest deadline, else the highest
/// priority, else a fair task.
fn highest_class_runs(e: &Simulation<'_>, m: &Machine, cpu: CpuId) -> bool {
    let c = m.cpu(cpu);
    let fair = |curr: Option<TaskId>| curr.is_some_and(|t| e.k.m.is_fair(t));
    if c.stopper.as_ref().is_some_and(|s| s.queued()) {
        return c.curr.is_some_and(|t| m.class_of(t) == Class::Stop);
    }
    match (c.dl.first(), c.rt.first().filter(|_| !c.rt_throttle.throttled)) {
        (Some(_), Some((_, first))) if m.rules.rt_first => c.curr == Some(first),
        (Some(DlId::Task(first)), _) => c.curr == Some(first),
        // With nobody to serve it stops at its next turn.
        (Some(DlId::GroupServer(g)), _) => {
            let first = c.slots.rt_groups.get(g).and_then(|own| own.queue.first());
            first.is_none_or(|(_, first)| c.curr == Some(first))
        }
        (Some(DlId::FairServer), _) => {
            fair(c.curr)
                || c.slots.high.as_ref().is_some_and(|high| high.served && high.nr_queued() > 0)
        }
        (None, Some((_, first))) => c.curr == Some(first),
        (None, None)
            if c.slots.overcommit.as_ref().is_some_and(|queue| queue.class.eligible() > 0) =>
        {
            let asks = c.curr.filter(|t| m.class_of(*t) == Class::Overcommit);
            let queue = c.slots.overcommit.as_deref();
            match queue.and_then(|queue| queue.class.turn(asks.map(Turn::Task))) {
                Some(Turn::Task(first)) => c.curr == Some(first),
                // Whose group has no quota cannot take its turn.
                _ => asks.is_some() || c.curr.is_some_and(|t| m.class_of(t) > Class::Overcommit),
            }
        }
        (None, None) => match c.slots.high.as_deref().filter(|high| high.nr_queued() > 0) {
            Some(high) if high.account.fair_turn() && fair(c.curr) => true,
            Some(high) => c.curr.is_some_and(|t| high.queue.curr().is_some_and(|e| e.id == t)),
            None => {
                let muqss = c.curr.is_some_and(|t| m.class_of(t) == Class::Muqss);
                c.curr.is_none() || fair(c.curr) || muqss
            }
        },
    }
}

/// Checks that the bandwidths of a CPU are those of the reservations that belong to it, or are
/// active on it.
fn bandwidth_agrees(m: &Machine, cpu: CpuId) -> Result<(), String> {
    let c = m.cpu(cpu);
    let own = m.tasks.iter().filter(|t| t.cpu == cpu && t.sched.class() == Class::Deadline);
    let own = own.filter(|t| t.state != State::New);
    let of = own.filter_map(|t| t.sched.dl.as_deref().filter(|dl| !dl.special).map(|dl| (t, dl)));
    let (mut this_bw, mut running_bw, mut comes) = (0, 0, 0);
    for (t, dl) in of {
        // From another CPU, where it no longer counts: here it does once it is queued.
        comes += if t.state == State::Waking { dl.bw } else { 0 };
        let active = t.state == State::Runnable || dl.non_contending;
        this_bw += if t.state == State::Exited && !active { 0 } else { dl.bw };
        running_bw += if active { dl.bw } else { 0 };
    }
    if let Some(server) = c.fair_server.as_deref() {
        this_bw += server.bw;
        running_bw += if server.server_active() || server.non_contending { server.bw } else { 0 };
    }
    for own in c.slots.rt_groups.iter() {
        let (server, queued) = (&own.server, c.dl.contains(DlId::GroupServer(own.group)));
        this_bw += server.bw;
        running_bw += if own.active || server.non_contending { server.bw } else { 0 };
        let never = server.params.runtime == Span(0);
        let waits = own.active && server.throttled && server.timer.is_some();
        let ok = queued == (own.active && !server.throttled)
            && waits == (own.active && server.throttled)
            && (own.queue.is_empty() || own.active != never);
        if !ok {
            return Err(format!(
                "{cpu}: the server of {:?} is {server:?}, queued: {queued}",
                own.group
            ));
        }
    }
    let found = (c.dl.this_bw, c.dl.running_bw);
    if found.1 == running_bw && (this_bw - comes..=this_bw).contains(&found.0) {
        return Ok(());
    }
    Err(format!(
        "{cpu}: this_bw and running_bw are {found:?}, of its tasks {:?}",
        (this_bw, running_bw)
    ))
}

/// Checks that the runqueue's averages are those of the tasks attached to it, to the rounding of
/// each join and each leave ([`Queue::stale`]).
fn sums_agree(m: &Machine, cpu: CpuId, g: GroupId, seen: &mut Seen) -> Result<(), String> {
    let (queue, level) = (m.queue(cpu, g), m.cfs_avg_of(cpu, g));
    let attached = m.tasks.iter().enumerate().filter(|(_, t)| {
        let fair = t.sched.class() == Class::Fair;
        fair && t.cpu == cpu && t.group == g && t.avg.last_update_time.0 != 0
    });
    let (mut util, mut runnable, mut n) =
        (level.removed.util_avg.0, level.removed.runnable_avg.0, 0);
    for (i, t) in attached {
        let mut avg = t.avg;
        let id = TaskId(i as u32);
        let running = queue.curr().is_some_and(|e| e.id == id);
        let queued = queue.get(id);
        let is_runnable = queued.is_some_and(|e| !e.sched_delayed);
        update_load_avg_se(
            m.decay,
            level.avg.last_update_time,
            &mut avg,
            t.weight,
            queued.is_some(),
            u64::from(is_runnable),
            running,
        );
        let (u, r) = by_sums(m, &avg);
        (util, runnable, n) = (util + u, runnable + r, n + 1);
    }
    for group in levels(m).filter(|inner| *inner != GroupId::ROOT && m.groups.parent(*inner) == g) {
        let (rq, runs) = (m.groups.rq(cpu, group), m.groups.rq(cpu, g).running);
        let (se, runs) = (&rq.se, runs && rq.running);
        let mut avg = se.avg;
        let weight = Weight(se.load >> 10);
        let tasks = if se.on_rq { se.runnable } else { 0 };
        update_load_avg_se(
            m.decay,
            level.avg.last_update_time,
            &mut avg,
            weight,
            se.on_rq,
            tasks,
            runs,
        );
        let (u, r) = by_sums(m, &avg);
        (util, runnable, n) = (util + u, runnable + r, n + 1);
    }
    // A task whose dequeue is delayed is counted out of all levels at once, and out of the groups'
    // entities when they are next looked at: where there are any, runnable time is approximate.
    let has_groups = levels(m).any(|i| i != GroupId::ROOT && m.groups.parent(i) == g);
    let seen = seen.queue(m, cpu, g);
    // Roundings weigh the more the more a period does; 1 with mainline's half-life.
    let coarse = one_period(m).div_ceil(22);
    let slack = (10 + 4 * n) * coarse + (seen.stale >> 10);
    let close = |a: u64, b: u64| a.abs_diff(b) <= slack;
    let (all, all_runnable) = by_sums(m, &level.avg);
    // A few may have left in this event, before which the sum was larger.
    let overflows = (1 << 32) / u64::from(get_pelt_divider(m.decay, &level.avg)) - 4 * 1024;
    if m.rev < KernelRev::V7_2 && runnable >= overflows {
        seen.cut = true;
    }
    // What is lost then fades; more than its tasks' the queue's sum can never be.
    let lost = seen.cut && all_runnable <= runnable;
    // Before 5.1 entities are scaled by the speed at their own updates, before 4.10 groups leave each by itself.
    if m.slots.before.contribution || !m.slots.before.propagates {
        return Ok(());
    }
    if close(all, util) && (has_groups || lost || close(all_runnable, runnable)) {
        return Ok(());
    }
    Err(format!(
        "{cpu}, {g}: util {all} and runnable {all_runnable}, of its {n} tasks {util} and {runnable}"
    ))
}

/// Iterates over all groups, the root first.
fn levels(m: &Machine) -> impl Iterator<Item = GroupId> {
    (0..m.groups.list.len().max(1) as u32).map(GroupId)
}

/// Counts, weights and flags of every level on `cpu` are those of what is in it.
fn groups_consistent(m: &Machine, cpu: CpuId) -> Result<(), String> {
    if !m.groups.on() {
        return Ok(());
    }
    let group_of_curr = m.fair_curr(cpu).and_then(|e| e.id.as_task()).map(|t| m.task(t).group);
    for g in levels(m) {
        let rq = m.groups.rq(cpu, g);
        let own: Vec<TaskId> =
            m.fair_queued(cpu).map(|(t, _)| t).filter(|t| m.task(*t).group == g).collect();
        let inner: Vec<GroupId> = levels(m)
            .filter(|i| *i != GroupId::ROOT && m.groups.parent(*i) == g)
            .filter(|i| m.groups.rq(cpu, *i).se.on_rq)
            .collect();
        let load = own.iter().map(|t| m.task(*t).weight.0 << 10).sum::<u64>()
            + inner.iter().map(|i| m.groups.rq(cpu, *i).se.load).sum::<u64>();
        let h_nr = |runnable: bool| {
            own.iter().filter(|t| !runnable || m.task(**t).state == State::Runnable).count() as u32
                + inner
                    .iter()
                    .map(|i| m.groups.rq(cpu, *i))
                    .map(|i| if runnable { i.h_nr_runnable } else { i.h_nr_queued })
                    .sum::<u32>()
        };
        let runs = group_of_curr.is_some_and(|at| m.groups.holds(g, at));
        let found = (rq.load, rq.nr_queued as usize, rq.h_nr_queued, rq.h_nr_runnable, rq.running);
        let wanted = (load, own.len() + inner.len(), h_nr(false), h_nr(true), runs);
        if found != wanted {
            return Err(format!("{cpu}, {g}: counts {found:?}, of what is in it {wanted:?}"));
        }
        let queue = m.queue(cpu, g);
        if m.groups.nested
            && queue.load_weight().0.abs_diff(rq.load >> 10) > 2 * (1 + inner.len() as u64)
        {
            return Err(format!(
                "{cpu}, {g}: weighs {} in its queue, {}",
                queue.load_weight(),
                rq.load >> 10
            ));
        }
    }
    Ok(())
}

/// The util and runnable as the sums have them now; the averages stand since the last period.
fn by_sums(m: &Machine, avg: &SchedAvg) -> (u64, u64) {
    let divider = u64::from(get_pelt_divider(m.decay, avg));
    (u64::from(avg.util_sum) / divider, avg.runnable_sum / divider)
}

/// CPU 0's `runnable_avg`: the most, and the largest fall from one look to the next.
#[derive(Default)]
struct Runnable {
    last: u64,
    most: u64,
    fall: u64,
}

impl TraceSink for Runnable {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, event: &Event) {
        if let Event::PeltCfs { cpu: CpuId(0), runnable_avg, .. } = *event {
            self.fall = self.fall.max(self.last.saturating_sub(runnable_avg.0));
            (self.last, self.most) = (runnable_avg.0, self.most.max(runnable_avg.0));
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// A task that forks two children a turn soon has more beside it than 32 bits hold the runnable time
/// of, 2³² / 47742 = 87.9 tasks: the first child that exits takes all of that along, up to 7.1.
#[test]
fn children_that_exit_from_a_long_queue_take_its_runnable_sum_along_before_7_2() {
    let found = ["linux-6.8", "linux-6.12", "linux-7.2"].map(|policy| {
        let workload = r#"{"tasks": {
            "parent": {"cpus": [0], "priority": -4, "run": 50, "fork": "child", "fork": "child"},
            "child": {"instance": 0, "cpus": [0], "loop": 1, "phases": {"first": {"sleep": 100},
                      "then": {"loop": 2, "run": 300, "sleep": 700}}}}}"#;
        let workload = Workload::parse(workload, "forks").expect("a workload");
        let mut platform = Platform::load("laptop4").expect("built in");
        platform.hz = 300;
        let e = super::experiment(platform, workload, policy, &[], Span::from_ms(150));
        let mut seen = Runnable::default();
        let end = step_through(&e, Counterfactual::default(), &mut seen);
        assert_eq!(end, Ok(()), "{policy}");
        seen
    });
    for (r, cut) in found.iter().zip([true, true, false]) {
        assert!(r.most > 88 * 1024, "the queue is too short: {}", r.most);
        assert_eq!(r.fall > 80_000, cut, "of {} it loses {}", r.most, r.fall);
    }
}

/// Numbers for what is the same everywhere else.
fn constants() -> impl Strategy<Value = Vec<(&'static str, i64)>> {
    let of = |name: &'static str, range: std::ops::RangeInclusive<i64>| {
        prop::option::weighted(0.4, range).prop_map(move |n| n.map(|n| (name, n)))
    };
    // What deadline tasks may reserve is not less than without.
    let rt = (1_000..300_000i64, 0..3usize).prop_map(|(period, of)| {
        let runtime = [-1, period * 95 / 100, period][of];
        [("sched_rt_period_us", period), ("sched_rt_runtime_us", runtime)]
    });
    let rt = prop::option::weighted(0.4, rt);
    let pelt = (of("pelt_half_life", 1..=512), of("fits_capacity", 1..=100));
    let energy = (of("eas_margin", 0..=1024), of("dvfs_headroom", 0..=400));
    let slices =
        (of("sched_rr_timeslice_ms", 1..=300), of("sched_cfs_bandwidth_slice_us", 1..=20_000));
    let balance = (of("migration_cost_ns", 0..=3_000_000), of("nr_migrate", 0..=40));
    (rt, pelt, energy, slices, balance).prop_map(|(rt, (a, b), (c, d), (e, f), (g, h))| {
        rt.into_iter().flatten().chain([a, b, c, d, e, f, g, h].into_iter().flatten()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 30, ..draws::config(256) })]

    #[test]
    fn nothing_impossible_happens(e in experiments()) {
        let checker = run_checked(&e)?;
        prop_assert!(checker.switches > 0);
    }

    #[test]
    fn nothing_impossible_happens_with_other_constants(mut e in experiments(), set in constants()) {
        let numbers = set.into_iter().map(|(name, n)| (name.to_string(), Value::Int(n)));
        e.settings.extend(numbers);
        run_checked(&e)?;
    }

    /// Also where something costs no time. (What is then possible in a trace is another question: a
    /// task may be pulled away at the very instant at which its work is done.)
    #[test]
    fn the_machine_stays_consistent_without_some_causes(
        mut e in experiments(),
        absent in prop::collection::vec(prop::sample::select(CAUSES.to_vec()), 1..9),
    ) {
        let without: Causes = absent.iter().map(|known| known.cause).collect();
        without.change(&mut e);
        let other = Counterfactual { without, ..Counterfactual::default() };
        step_through(&e, other, &mut Bytes::default()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn the_same_experiment_gives_the_same_bytes_whatever_the_platform_is_called(e in experiments()) {
        let bytes = |e: &Experiment| {
            let mut bytes = Bytes::default();
            Simulator.run(e, &mut bytes).map(|_| bytes.0)
        };
        let first = bytes(&e);
        prop_assert!(first.as_ref().is_ok_and(|b| !b.is_empty()));
        let renamed = Platform { name: "m1".into(), ..(*e.platform).clone() };
        let again = bytes(&Experiment { platform: Arc::new(renamed), ..e });
        prop_assert!(first == again, "two runs differ");
    }
}
