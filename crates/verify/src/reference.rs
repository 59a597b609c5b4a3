//! Facts that a reference trace tells: where the start is, the state of everything there, what
//! things cost there that are free in the simulator, and the decisions after it.

mod kthread;

use super::LONG;
pub(super) use kthread::kthread;
use kthread::{KernelThreads, kthread_cpus};
use risetime_kernel::pelt::Decay;
use risetime_kernel::units::{ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util};
use risetime_model::workload::{Hotplug, StartAt};
use risetime_model::{Experiment, Platform, Workload};
use risetime_sim::replay::{
    CpuImage, Creator, DomainImage, Given, GivenFreq, Image, Kthread, Signal, Turn,
};
use risetime_trace::{Event, Memory, PeriodMemory, PressureClass, RunError, SwitchOut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The task whose start is aligned: the workload's first.
const TASK: TaskId = TaskId(0);

/// Signals at the start may be recorded this much after the wakeup that starts it.
const SLACK: Span = Span::from_us(20);

/// A signal is updated as part of a wakeup at most so long before the event that tells of it.
const PART_OF_WAKEUP: Span = Span::from_us(40);

/// A tick, with the balancing after it, keeps a CPU from its next task for less than this.
const TICK_LASTS: Span = Span::from_us(400);

/// A frequency is wanted at most so long before it is in force.
const PART_OF_REQUEST: Span = Span::from_us(200);

/// Start of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) t0: Instant,
    cpu: CpuId,
    /// The task is created, not woken.
    pub(super) created: bool,
}

impl Start {
    /// Whether an update of a runqueue's signals belongs to the creation: a new task's util is
    /// added just before the event that says so.
    fn is_attach(&self, at: Instant, cpu: CpuId) -> bool {
        self.created && cpu == self.cpu && at <= self.t0 && self.t0.since(at) < SLACK
    }

    /// The start at time 0 of a trace, from which everything is followed.
    pub(super) fn at_time_0() -> Start {
        Start { t0: Instant(0), cpu: CpuId(0), created: false }
    }

    /// The time at which the task was enqueued, which is the simulation's moment of the start: the
    /// events that tell of it come a little later.
    pub(super) fn enqueued(&self, trace: &Memory) -> Instant {
        let before = trace.events().partition_point(|(at, _)| *at <= self.t0);
        let enqueued = trace.events()[..before].iter().rfind(|(_, e)| match e {
            Event::PeltTask { task, .. } => *task == TASK,
            Event::PeltCfs { cpu, .. } => self.created && *cpu == self.cpu,
            _ => false,
        });
        let near = |at: &Instant| self.t0.since(*at) < PART_OF_WAKEUP;
        enqueued.map(|(at, _)| *at).filter(near).unwrap_or(self.t0)
    }

    /// Finds where `experiment` starts in its reference.
    ///
    /// Errors: nowhere.
    pub(super) fn of_experiment(
        reference: &Memory,
        experiment: &Experiment,
    ) -> Result<Start, RunError> {
        let name = &experiment.workload.name;
        let none = || RunError::Failed(format!("the reference trace has no start of {name}"));
        Start::of(reference, &experiment.workload).ok_or_else(none)
    }

    pub(super) fn of(trace: &Memory, workload: &Workload) -> Option<Start> {
        let mut woke = None;
        for &(at, event) in trace.events() {
            match event {
                Event::TaskNew { task: TASK, cpu, .. }
                    if workload.start_at == StartAt::Creation =>
                {
                    return Some(Start { t0: at, cpu, created: true });
                }
                Event::TaskNew { task: TASK, cpu, .. } | Event::Wakeup { task: TASK, cpu, .. } => {
                    woke = Some(Start { t0: at, cpu, created: false })
                }
                Event::Phase { task: TASK, index, .. }
                    if workload.start_at == StartAt::Phase(index as usize) =>
                {
                    return woke;
                }
                _ => {}
            }
        }
        None
    }
}

/// The state of everything at the start, as far as the trace tells, and what it does not.
pub(super) fn image(trace: &Memory, platform: &Platform, start: &Start) -> (Image, Vec<String>) {
    let mut image = Image::default();
    let mut cpus: BTreeMap<CpuId, CpuImage> = platform
        .cpus()
        .map(|cpu| (cpu, CpuImage { cpu, cfs: None, dl: None, behind: None }))
        .collect();
    let mut attached = None;
    let mut freqs: BTreeMap<CpuId, (Instant, KHz)> = BTreeMap::new();
    for &(at, event) in trace.events().iter().take_while(|(at, _)| *at <= start.t0 + SLACK) {
        match event {
            Event::PeltTask { task: TASK, util_avg, runnable_avg, period_contrib, .. } => {
                image.task.util_avg = Some(util_avg);
                image.task.runnable_avg = Some(runnable_avg);
                image.task.period_contrib = Some(period_contrib);
                image.task.rq_util_sum = None;
            }
            Event::UtilEst { task: TASK, util_est } => image.task.util_est = Some(util_est),
            Event::PeltCfs { cpu, util_avg, util_sum, period_contrib, .. }
                if start.is_attach(at, cpu) =>
            {
                attached = Some(util_avg);
                image.task.period_contrib = Some(period_contrib);
                image.task.rq_util_sum = Some(util_sum as u32);
            }
            Event::PeltCfs { cpu, .. }
            | Event::PeltPressure { cpu, class: PressureClass::Dl, .. }
                if at < start.t0 =>
            {
                let Some(of) = cpus.get_mut(&cpu) else { continue };
                let signal =
                    if matches!(event, Event::PeltCfs { .. }) { &mut of.cfs } else { &mut of.dl };
                *signal = signal_at(&event, start.t0);
            }
            Event::Freq { cpu, freq } if at < start.t0 => {
                freqs.insert(cpu, (at, freq));
            }
            Event::Overutilized { on } => image.overutilized = Some(on),
            _ => {}
        }
    }
    if let (Some(after), None) = (attached, image.task.util_avg) {
        // Any time will do: only the difference to the last update counts.
        let now = ClockPelt(1 << 40);
        let before = cpus.get(&start.cpu).and_then(|c| c.cfs);
        let before = before.map_or(Util(0), |cfs| cfs.at(&Decay::MS32, now).util_avg);
        image.task.util_avg = Some(after.saturating_sub(before));
        image.task.runnable_avg = image.task.util_avg;
    }
    if image.task.util_avg.is_none() && begins_slow(trace, platform, start) {
        (image.task.util_avg, image.task.runnable_avg) = (Some(Util(0)), Some(Util(0)));
    }
    let kthreads = kthread_cpus(trace, platform);
    for domain in &platform.domains {
        if let Some((at, freq)) = freqs.get(&domain.cpus[0]) {
            image.domains.push(DomainImage {
                cpu: domain.cpus[0],
                freq: *freq,
                changed_before: if *at == Instant(0) { LONG } else { start.t0.since(*at) },
                kthread_on: kthreads.get(&domain.cpus[0]).copied(),
            });
        }
    }
    if let Some(of) = cpus.get_mut(&start.cpu) {
        of.behind = clock_behind(trace, start);
    }
    image.cpus = cpus.into_values().collect();
    image.first_tick = first_tick(trace, platform.tick(), start);
    let unread = unread(&image, trace, platform, start);
    (image, unread)
}

/// Whether, in a trace without signals, the first task is created with next to no util. A new task
/// has half of what its CPU has left (`post_init_entity_util_avg`), which schedutil asks for at
/// once; but where the thread that creates it has left a util of 1 of 1024 there, only as much as
/// that.
fn begins_slow(trace: &Memory, platform: &Platform, start: &Start) -> bool {
    /// Time from a task's creation to the first change of the frequency, if it has util.
    const AT_ONCE: Span = Span::from_us(1000);
    let domain = platform.domains.iter().find(|d| d.cpus.contains(&start.cpu));
    let schedutil =
        trace.header().is_some_and(|h| h.machine.settings.name("governor") == Some("schedutil"));
    let Some(domain) = domain.filter(|_| schedutil && start.created) else { return false };
    let freqs = trace.events().iter().filter_map(|(at, event)| match *event {
        Event::Freq { cpu, freq } if cpu == domain.cpus[0] => Some((*at, freq)),
        _ => None,
    });
    let (before, after): (Vec<_>, Vec<_>) = freqs.partition(|(at, _)| *at < start.t0);
    let lowest = domain.opps.first().map(|opp| opp.freq);
    before.last().is_some_and(|(_, freq)| Some(*freq) == lowest)
        && after.first().is_none_or(|(at, _)| at.since(start.t0) > AT_ONCE)
}

/// A CPU's signal in an event, as it was last updated.
fn signal_at(event: &Event, t0: Instant) -> Option<Signal> {
    let (util_avg, runnable_avg, util_sum, period_contrib, updated) = match *event {
        Event::PeltCfs {
            util_avg,
            runnable_avg,
            util_sum,
            period_contrib,
            last_update_time,
            ..
        } => (util_avg, runnable_avg, util_sum, period_contrib, last_update_time),
        Event::PeltPressure { util_avg, util_sum, period_contrib, last_update_time, .. } => {
            (util_avg, Util(0), util_sum, period_contrib, last_update_time)
        }
        _ => return None,
    };
    // The clock of a CPU that has just been busy lags behind.
    let before = t0.0.wrapping_sub(updated.0).min(LONG.0);
    Some(Signal {
        util_avg,
        runnable_avg,
        util_sum: util_sum as u32,
        period_contrib,
        before: Span(before),
    })
}

/// Lists the parts of the start state that the reference does not tell.
fn unread(image: &Image, trace: &Memory, platform: &Platform, start: &Start) -> Vec<String> {
    let mut unread = Vec::new();
    if !start.created || trace.header().is_none_or(|h| h.image.balance.is_empty()) {
        unread.push("balance due times of the domains".to_string());
    }
    let missing = [
        ("the task's util_avg and period_contrib", image.task.util_avg.is_none()),
        ("the task's util_est", image.task.util_est.is_none()),
        ("the tick's phase", image.first_tick.is_none()),
    ];
    unread.extend(missing.iter().filter(|(_, gone)| *gone).map(|(what, _)| (*what).to_string()));
    let known = |cpu: CpuId| image.domains.iter().any(|d| d.cpu == cpu);
    let domains = platform.domains.iter().map(|d| d.cpus[0]).filter(|cpu| !known(*cpu));
    unread.extend(domains.map(|cpu| format!("the frequency of {cpu}'s domain")));
    let cfs = image.cpus.iter().filter(|c| c.cfs.is_none());
    unread.extend(cfs.map(|c| format!("{}'s util", c.cpu)));
    unread
}

/// Lists when CPUs went offline and came back after the start, counted from it.
pub(super) fn hotplug(trace: &Memory, t0: Instant) -> Vec<Hotplug> {
    let after = trace.events().iter().filter(|(at, _)| *at >= t0);
    let changes = after.filter_map(|(at, event)| match *event {
        Event::Hotplug { cpu, online } => {
            Some(Hotplug { at: at.since(t0), cpu, online, place: (0, 0) })
        }
        _ => None,
    });
    changes.collect()
}

/// The time from the start to the end of the next period of each group with a quota.
pub(super) fn periods(trace: &Memory, workload: &Workload, t0: Instant) -> Vec<(GroupId, Span)> {
    let known = trace.header().map_or(&[][..], |h| &h.image.periods);
    let of = |memory: &PeriodMemory| {
        let group = workload.groups.get(memory.group.index().checked_sub(1)?)?;
        let period = i128::from(group.period.0).max(1);
        let after = (i128::from(memory.ends.0) - i128::from(t0.0)).rem_euclid(period);
        Some((memory.group, Span(if after == 0 { period } else { after } as u64)))
    };
    known.iter().filter_map(of).collect()
}

/// The tick's phase: time from the start to the first tick. Running tasks are updated by the tick
/// and where something happens to them; what is left without the latter is the tick. Where updates are not told (before
/// 6.14), the coarse clock has told of one, some µs late.
pub(super) fn first_tick(trace: &Memory, tick: Span, start: &Start) -> Option<Span> {
    /// Parts of a tick that count as one moment.
    const BINS: u64 = 400;
    /// Distance within which an update may be made by a switch or a wakeup, and says nothing about
    /// ticks.
    const NEAR: Span = Span::from_us(60);
    let after: Vec<_> = trace.events().iter().filter(|(at, _)| *at > start.t0 + SLACK).collect();
    let mut happened: BTreeMap<CpuId, Vec<Instant>> = BTreeMap::new();
    for (at, event) in &after {
        if let Event::Switch { cpu, .. } | Event::Wakeup { cpu, .. } | Event::TaskNew { cpu, .. } =
            event
        {
            happened.entry(*cpu).or_default().push(*at);
        }
    }
    let alone = |at: Instant, cpu: CpuId| {
        let others = happened.get(&cpu).map_or(&[][..], Vec::as_slice);
        let next = others.partition_point(|o| *o < at);
        let near = |o: Option<&Instant>| o.is_some_and(|o| o.0.abs_diff(at.0) < NEAR.0);
        !near(others.get(next)) && !near(next.checked_sub(1).and_then(|i| others.get(i)))
    };
    let updates: Vec<Span> = after
        .iter()
        .filter_map(|(at, e)| match e {
            Event::PeltTask { cpu, .. } if alone(*at, *cpu) => {
                Some(Span(at.since(start.t0).0 % tick.0))
            }
            _ => None,
        })
        .collect();
    let bin = |s: &Span| s.0 * BINS / tick.0;
    let mut count: BTreeMap<u64, usize> = BTreeMap::new();
    updates.iter().for_each(|s| *count.entry(bin(s)).or_default() += 1);
    let Some((best, _)) = count.into_iter().max_by_key(|(bin, n)| (*n, std::cmp::Reverse(*bin)))
    else {
        let told = trace.header().and_then(|h| h.image.tick)?;
        let first = Span((told.0 + tick.0 - start.enqueued(trace).0 % tick.0) % tick.0);
        return Some(if first == Span(0) { tick } else { first });
    };
    let mut same: Vec<Span> = updates.into_iter().filter(|s| bin(s) == best).collect();
    same.sort();
    let median = Span(same[same.len() / 2].0 + start.t0.since(start.enqueued(trace)).0);
    Some(if median == Span(0) { tick } else { median })
}

/// The time by which the start CPU's PELT clock was behind its task clock at the start: it has been
/// busy, and catches up when it is idle next, which is where the reference shows the two to be one.
fn clock_behind(trace: &Memory, start: &Start) -> Option<Span> {
    let mut at_start = None;
    let mut most: Option<i64> = None;
    for &(at, event) in trace.events() {
        let updated = match event {
            Event::PeltTask { cpu, last_update_time, .. }
            | Event::PeltCfs { cpu, last_update_time, .. }
                if cpu == start.cpu =>
            {
                last_update_time
            }
            _ => continue,
        };
        let ahead = updated.0.wrapping_sub(at.0) as i64;
        if at <= start.t0 {
            at_start = (start.t0.since(at) < PART_OF_WAKEUP).then_some(ahead);
        } else {
            most = most.max(Some(ahead));
        }
    }
    most?.checked_sub(at_start?).and_then(|behind| u64::try_from(behind).ok()).map(Span)
}

/// Begin of a task. In the simulator nobody creates tasks, and a thread is there at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Begin {
    /// Time from the start to its creation …
    pub(super) created: Span,
    /// … and to its first phase.
    pub(super) phase: Span,
    /// Time for which it had the CPU in between.
    pub(super) ran: Span,
    /// Time that its CPU, which was idle, took to look for the next task: where virtual CPUs share
    /// a thread of the host, the creator's has its turn first.
    pub(super) waited: Span,
}

/// Finds out how each task began.
pub(super) fn beginnings(trace: &Memory, tasks: usize, t0: Instant) -> Vec<Begin> {
    let mut begin = vec![Begin::default(); tasks];
    // The task that runs on each CPU, and since when; tasks that have not begun, with their CPU.
    let mut running: BTreeMap<CpuId, (Option<TaskId>, Instant)> = BTreeMap::new();
    let mut waiting: BTreeMap<TaskId, CpuId> = BTreeMap::new();
    let mut idle: BTreeMap<CpuId, TaskId> = BTreeMap::new();
    for &(at, event) in trace.events() {
        let (cpu, next) = match event {
            Event::Switch { cpu, next, .. } => {
                if let Some(task) = idle.remove(&cpu) {
                    let begin = &mut begin[task.index()];
                    begin.waited = Span(at.since(t0).0.saturating_sub(begin.created.0));
                }
                (cpu, next)
            }
            Event::TaskNew { task, cpu, .. } | Event::Migrate { task, to: cpu, .. }
                if task.index() < tasks =>
            {
                (cpu, running.get(&cpu).and_then(|r| r.0))
            }
            Event::Phase { task, .. } if waiting.contains_key(&task) => {
                (waiting[&task], Some(task))
            }
            _ => continue,
        };
        let (curr, since) = running.insert(cpu, (next, at)).unwrap_or((None, at));
        if let Some(task) = curr.filter(|t| waiting.get(t) == Some(&cpu)) {
            begin[task.index()].ran += at.since(since);
        }
        match event {
            Event::TaskNew { task, .. } => {
                begin[task.index()].created = at.since(t0);
                waiting.insert(task, cpu);
                if curr.is_none() {
                    idle.insert(cpu, task);
                }
            }
            Event::Migrate { task, .. } if waiting.contains_key(&task) => {
                waiting.insert(task, cpu);
            }
            Event::Phase { task, .. } => {
                waiting.remove(&task);
                begin[task.index()].phase = at.since(t0);
            }
            _ => {}
        }
    }
    begin
}

/// The thread that runs where and when the first task is created, and its turns.
pub(super) fn creator(trace: &Memory, start: &Start) -> Option<Creator> {
    /// Slice that the guest's agent asks for.
    const SLICE: Span = Span::from_us(100);
    let (creator, since) = runs_on(trace, start.cpu, start.t0)?;
    let turns = turns(trace, creator, since);
    Some(Creator { cpu: start.cpu, slice: SLICE, before: start.t0.since(since), turns })
}

/// The task that has `cpu` at `until`, and since when.
fn runs_on(trace: &Memory, cpu: CpuId, until: Instant) -> Option<(TaskId, Instant)> {
    let mut running = None;
    for &(at, event) in trace.events().iter().take_while(|(at, _)| *at <= until) {
        if let Event::Switch { cpu: on, next, .. } = event
            && on == cpu
        {
            running = next.map(|task| (task, at));
        }
    }
    running
}

/// The thread that creates the workload's tasks: who runs where and when the first one is created.
pub(super) fn who_creates(trace: &Memory) -> Option<TaskId> {
    let first = trace.events().iter().find_map(|&(at, event)| match event {
        Event::TaskNew { task: TASK, cpu, .. } => Some((cpu, at)),
        _ => None,
    });
    let (cpu, at) = first?;
    runs_on(trace, cpu, at).map(|(task, _)| task)
}

/// The turns of `task` from `from` on: its wakeups, how long it had a CPU until it slept again, and
/// when in that it created other tasks of the workload.
fn turns(trace: &Memory, task: TaskId, from: Instant) -> Vec<Turn> {
    let begin = |at: Instant| Turn { wakes: at.since(from), runs: Span(0), creates: None };
    let mut turns: Vec<Turn> = Vec::new();
    let (mut enqueued, mut on_cpu) = (Instant(0), None::<(CpuId, Instant)>);
    for &(at, event) in trace.events() {
        if at < from {
            continue;
        }
        match event {
            Event::PeltTask { task: t, .. } if t == task => enqueued = at,
            Event::TaskNew { task: t, .. } if t == task => turns.push(begin(from)),
            Event::TaskNew { task: child, user: true, .. } => {
                if let (Some((on, since)), Some(turn)) = (&mut on_cpu, turns.last_mut()) {
                    turn.runs += at.since(*since);
                    turn.creates = Some((child, *on));
                    *since = at;
                    turns.push(begin(from));
                }
            }
            Event::Wakeup { task: t, .. } if t == task => {
                let part = at.since(enqueued) < PART_OF_WAKEUP;
                turns.push(begin(if part { enqueued } else { at }));
            }
            Event::Switch { cpu, next: Some(t), .. } if t == task => {
                on_cpu = Some((cpu, at));
                if turns.is_empty() {
                    turns.push(begin(from));
                }
            }
            Event::Switch { cpu, prev: Some((t, _)), .. } if t == task => {
                let since = on_cpu.take_if(|(on, _)| *on == cpu);
                if let (Some((_, since)), Some(turn)) = (since, turns.last_mut()) {
                    turn.runs += at.since(since);
                }
            }
            _ => {}
        }
    }
    if let (Some((_, since)), Some(turn)) = (on_cpu, turns.last_mut()) {
        turn.runs += trace.end().since(since);
    }
    turns
}

/// The decisions of the reference after the start.
pub(super) fn given(trace: &Memory, platform: &Platform, tasks: usize, start: &Start) -> Given {
    let (t0, from) = (start.t0, start.enqueued(trace));
    let task = |i: usize| turns(trace, TaskId(i as u32), from).into();
    let ticks = first_tick(trace, platform.tick(), start).map(|first| (first, platform.tick()));
    let mut threads = KernelThreads::of(trace);
    let mut given = Given { turns: (0..tasks).map(task).collect(), ..Given::default() };
    let mut asleep: Vec<bool> = Vec::new();
    let mut set = |task: TaskId, value: bool| {
        if asleep.len() <= task.index() {
            asleep.resize(task.index() + 1, false);
        }
        std::mem::replace(&mut asleep[task.index()], value)
    };
    for &(at, event) in trace.events() {
        let after = at.since(from);
        threads.hear(at, &event);
        match event {
            Event::Freq { cpu, freq } if at > t0 => {
                let changer = threads.changer(platform, cpu);
                let wanted = changer.map_or(at, |(on, _)| threads.wanted(platform, cpu, on));
                let wanted = tick_of(wanted.since(from), ticks);
                given.freqs.push(GivenFreq { wanted, at: after, cpu, freq });
            }
            Event::Switch { cpu, prev: Some((task, out)), .. } => {
                let sleeps = out == SwitchOut::Sleeping;
                set(task, sleeps);
                if let Some(tick) = last_tick(after, ticks).filter(|_| !sleeps && at > t0) {
                    let (late, held) = (after.0 - tick.0, given.held.entry(cpu).or_default());
                    // What follows at once is no longer the tick's.
                    if late < TICK_LASTS.0 && held.back().is_none_or(|(last, _)| *last != tick) {
                        held.push_back((tick, Span(late)));
                    }
                }
            }
            Event::Migrate { task, to, .. } => {
                let sleeping = set(task, false);
                set(task, sleeping);
                if !sleeping && at > t0 && task.index() < tasks {
                    given.moves.push((after, task, to));
                }
            }
            Event::TaskNew { task, cpu, .. } | Event::Wakeup { task, cpu, .. } => {
                set(task, false);
                let the_start = at == t0 && task == TASK;
                if at >= t0 && !the_start && task.index() < tasks {
                    if given.wakeups.len() <= task.index() {
                        given.wakeups.resize(task.index() + 1, Default::default());
                    }
                    given.wakeups[task.index()].push_back(cpu);
                }
            }
            _ => {}
        }
    }
    given
}

/// The time at which each change of a frequency was wanted, by the domain's first CPU.
pub(super) fn changes_wanted(trace: &Memory, platform: &Platform) -> Vec<(Instant, CpuId, KHz)> {
    let mut threads = KernelThreads::of(trace);
    let mut found = Vec::new();
    if trace.header().is_some_and(|h| h.run.backend.is_simulated()) {
        // A simulator says it; of a kernel's trace it is what its signals make likely.
        let mut last = BTreeMap::new();
        for &(at, event) in trace.events() {
            if let Event::FreqRequest { cpu, freq, .. } = event
                && last.insert(cpu, freq) != Some(freq)
            {
                found.push((at, cpu, freq));
            }
        }
        return found;
    }
    for &(at, event) in trace.events() {
        if let Event::Freq { cpu, freq } = event {
            let changer = threads.changer(platform, cpu);
            let wanted = changer.map_or(at, |(on, _)| threads.wanted(platform, cpu, on));
            found.push((wanted, cpu, freq));
        }
        threads.hear(at, &event);
    }
    found.sort();
    found
}

/// The tick before `at`.
fn last_tick(at: Span, ticks: Option<(Span, Span)>) -> Option<Span> {
    let (first, tick) = ticks?;
    let since = at.0.checked_sub(first.0)?;
    Some(Span(at.0 - since % tick.0))
}

/// The tick just before or after which something happens that belongs to it, else the time itself.
fn tick_of(at: Span, ticks: Option<(Span, Span)>) -> Span {
    let Some((first, tick)) = ticks else { return at };
    let near = |n: u64| Span(first.0 + n * tick.0);
    let last = at.0.saturating_sub(first.0) / tick.0;
    let found = [near(last), near(last + 1)];
    let belongs = |t: &Span| t.0.abs_diff(at.0) < PART_OF_WAKEUP.0;
    found.into_iter().find(belongs).map_or(at, |t| t.min(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_lab::Request;
    use risetime_sim::Simulator;
    use risetime_trace::{Backend, Header, TraceSink, Why};

    const US: u64 = 1_000;

    /// A trace of these events, by time in µs.
    fn trace(events: &[(u64, Event)]) -> Memory {
        let mut memory = Memory::default();
        for (at, event) in events {
            memory.event(Instant(at * US), event);
        }
        TraceSink::end(&mut memory, Instant(1_000 * US));
        memory
    }

    fn new(task: u32, user: bool) -> Event {
        Event::TaskNew {
            task: TaskId(task),
            comm: "".into(),
            user,
            cpu: CpuId(0),
            why: Why::Unknown,
            max_speed: Util(1024),
        }
    }

    fn switch(prev: Option<(u32, SwitchOut)>, next: Option<u32>) -> Event {
        let prev = prev.map(|(task, out)| (TaskId(task), out));
        Event::Switch { cpu: CpuId(0), prev, next: next.map(TaskId) }
    }

    fn wakeup(task: u32) -> Event {
        Event::Wakeup { task: TaskId(task), cpu: CpuId(0), why: Why::Unknown }
    }

    #[test]
    fn turns_are_from_wakeup_to_sleep_and_end_where_a_task_is_created() {
        use SwitchOut::{Preempted, Sleeping};
        let trace = trace(&[
            (0, new(2, false)),
            (0, switch(None, Some(2))),
            (70, new(0, true)),
            (90, switch(Some((2, Preempted)), Some(0))),
            (200, switch(Some((0, Preempted)), Some(2))),
            (230, switch(Some((2, Sleeping)), Some(0))),
            (300, wakeup(2)),
            (310, switch(Some((0, Preempted)), Some(2))),
            (350, switch(Some((2, Sleeping)), Some(0))),
        ]);
        let us = |n: u64| Span(n * US);
        let start = Start { t0: Instant(70 * US), cpu: CpuId(0), created: true };
        let creator = creator(&trace, &start).unwrap();
        assert_eq!((creator.cpu, creator.before), (CpuId(0), us(70)));
        let turn = |wakes, runs, creates: Option<u32>| Turn {
            wakes: us(wakes),
            runs: us(runs),
            creates: creates.map(|child| (TaskId(child), CpuId(0))),
        };
        let wanted = [turn(0, 70, Some(0)), turn(0, 20 + 30, None), turn(300, 40, None)];
        assert_eq!(creator.turns, wanted);
        // The other task never slept: one turn, to the trace's end, counted from its creation.
        let own = turns(&trace, TaskId(0), start.t0);
        assert_eq!(own, [turn(0, 110 + 80 + 650, None)]);
    }

    /// A switch on that CPU.
    fn on(cpu: u32, event: Event) -> Event {
        match event {
            Event::Switch { prev, next, .. } => Event::Switch { cpu: CpuId(cpu), prev, next },
            other => other,
        }
    }

    #[test]
    fn a_kthread_is_who_changed_a_frequency() {
        use SwitchOut::Sleeping;
        let freq = Event::Freq { cpu: CpuId(0), freq: KHz(1) };
        let m1 = Platform::load("m1").unwrap();
        let trace = trace(&[
            (0, new(5, false)),
            (0, new(6, true)),
            (0, new(7, false)),
            (3, switch(None, Some(5))),
            (9, switch(Some((5, Sleeping)), None)),
            (10, wakeup(6)),
            (11, switch(None, Some(6))),
            (20, wakeup(7)),
            (28, on(2, switch(None, Some(7)))),
            (33, freq),
            (45, on(2, switch(Some((7, Sleeping)), None))),
            (900, switch(Some((6, Sleeping)), None)),
        ]);
        let us = |n: u64| Span(n * US);
        let wanted = Kthread { wakes: us(0), waits: us(8), until_change: us(5), runs: us(17) };
        assert_eq!(kthread(&trace, &m1), Some(wanted), "the others changed nothing");
        let cpus: Vec<_> = kthread_cpus(&trace, &m1).into_iter().collect();
        assert_eq!(cpus, [(CpuId(0), CpuId(2))], "of CPUs 0 to 3, where it ran");
        assert_eq!(kthread(&Memory::default(), &m1), None);
    }

    /// Since 7.0 a policy's thread, which its name tells, runs on any CPU, beside those of other policies.
    #[test]
    fn who_changes_a_frequency_is_known_by_name() {
        use SwitchOut::Sleeping;
        let freq = Event::Freq { cpu: CpuId(0), freq: KHz(1) };
        let named = |task, comm| match new(task, false) {
            Event::TaskNew { task, user, cpu, why, max_speed, .. } => {
                Event::TaskNew { task, comm, user, cpu, why, max_speed }
            }
            other => other,
        };
        let m1 = Platform::load("m1").unwrap();
        let trace = trace(&[
            (0, named(5, "sugov:0".into())),
            (0, named(6, "sugov:4".into())),
            (10, wakeup(5)),
            (11, wakeup(6)),
            (12, on(5, switch(None, Some(5)))),
            (14, on(1, switch(None, Some(6)))),
            (20, freq),
            (30, on(5, switch(Some((5, Sleeping)), None))),
            (31, on(1, switch(Some((6, Sleeping)), None))),
        ]);
        let us = |n: u64| Span(n * US);
        let wanted = Kthread { wakes: us(0), waits: us(2), until_change: us(8), runs: us(18) };
        assert_eq!(kthread(&trace, &m1), Some(wanted));
        let cpus: Vec<_> = kthread_cpus(&trace, &m1).into_iter().collect();
        assert_eq!(cpus, [(CpuId(0), CpuId(5))]);
    }

    /// The header of a kernel's trace without signals, made from that of a simulation on `m1` under
    /// schedutil.
    fn header(tick: Option<Instant>) -> Header {
        let request = Request {
            seconds: Some(0.01),
            policies: vec!["linux-6.1".into()],
            ..Request::new("rampup", "m1")
        };
        let e = request.experiments().expect("built in").remove(0);
        let mut memory = Memory::default();
        Simulator.run(&e, &mut memory).expect("runs");
        let mut header = memory.header().expect("it has one").clone();
        header.image.tick = tick;
        header
    }

    fn of_kernel(tick: Option<Instant>, events: &[(u64, Event)]) -> Memory {
        let mut memory = Memory::default();
        TraceSink::header(&mut memory, &header(tick));
        for (at, event) in events {
            memory.event(Instant(at * US), event);
        }
        TraceSink::end(&mut memory, Instant(20_000 * US));
        memory
    }

    #[test]
    fn a_tick_that_is_told_gives_their_phase() {
        let start = Start { t0: Instant(1_000 * US), cpu: CpuId(0), created: true };
        let tick = Span(4_000 * US);
        let first = |at: u64| {
            let trace = of_kernel(Some(Instant(at * US)), &[(1_000, new(0, true))]);
            first_tick(&trace, tick, &start).map(|first| first.0 / US)
        };
        // Ticks are whole ones apart, before and behind the start; one at the start is a whole one away.
        assert_eq!([3_500, 11_500, 400].map(first), [Some(2_500), Some(2_500), Some(3_400)]);
        assert_eq!(first(1_000), Some(4_000));
        let untold = of_kernel(None, &[(1_000, new(0, true))]);
        assert_eq!(first_tick(&untold, tick, &start), None);
    }

    #[test]
    fn a_first_task_without_a_rise_of_frequency_has_no_util() {
        let m1 = Platform::load("m1").unwrap();
        let (lowest, highest) = (m1.domains[0].opps[0].freq, m1.domains[0].freq_max());
        let freq = |freq| Event::Freq { cpu: CpuId(0), freq };
        let start = Start { t0: Instant(1_000 * US), cpu: CpuId(0), created: true };
        let slow = |events: &[(u64, Event)]| begins_slow(&of_kernel(None, events), &m1, &start);
        assert!(slow(&[(0, freq(lowest)), (1_000, new(0, true)), (9_000, freq(highest))]));
        assert!(slow(&[(0, freq(lowest)), (1_000, new(0, true))]), "never");
        assert!(!slow(&[(0, freq(lowest)), (1_000, new(0, true)), (1_020, freq(highest))]));
        assert!(!slow(&[(0, freq(highest)), (1_000, new(0, true))]), "it need not rise");
        assert!(!slow(&[(1_000, new(0, true))]), "nobody knows");
    }
}
