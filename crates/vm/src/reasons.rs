//! Reasons for which a kernel left a task where it was, and no faster: what a stock kernel decides
//! and has no tracepoint for.
//!
//! ```text
//! misfit    `update_misfit_status`, at each switch and at each update of whoever runs (its tick): its util and
//!           estimate, its clamps and its CPU's capacity, as told, by the kernel's own rule
//! request   schedutil's arithmetic at each update of a CPU's signals, which is where it is called. What it asks
//!           for is not taken from here but from `cpu_frequency`, which follows: a rise that is wanted here and
//!           does not come was no request
//! ```
//!
//! A probe would tell it, too, and would take the guest's time at each look. From 6.14 on, since older kernels do
//! not show these signals in an ordinary run. Left out, since nobody tells them: iowait boost, the bandwidth that
//! deadline tasks are promised. Source: fair.c:update_misfit_status, cpufreq_schedutil.c:sugov_update_shared.

use crate::plan::frequency_limits;
use risetime_job::Policy;
use risetime_job::job::{Attr, Job, Task};
use risetime_kernel::cpu_util::{CfsUtil, RqUtil, cpu_util_cfs_boost, effective_cpu_util};
use risetime_kernel::fits::{CpuCapacities, Fit, MisfitTask, update_misfit_status, util_fits_cpu};
use risetime_kernel::opp::{FreqTableEntry, cpufreq_driver_resolve_freq, cpufreq_update_pressure};
use risetime_kernel::schedutil::{
    get_next_freq, map_util_perf, perf_within, sugov_rate_limit_passed,
};
use risetime_kernel::uclamp::{Uclamp, UclampLimits, cpu_util_update_eff, uclamp_eff};
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, TaskId, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::Domain;
use risetime_model::settings::keys::{self, governor};
use risetime_model::settings::{Int, Key};
use risetime_model::{Platform, Settings};
use risetime_trace::{
    Event, Header, Hears, Origin, PressureClass, Signal, SwitchOut, TraceSink, Why,
};
use std::collections::{BTreeMap, VecDeque};

/// Release whose arithmetic every kernel has that shows its signals.
const TOLD: KernelRev = features::TRACEPOINT_PROBES.first;
/// Time that a change takes at most from the request to `cpu_frequency`, in ns, besides the
/// domain's latency: the kthread that carries it out has to be woken.
const KTHREAD_NS: u64 = 2_000_000;

/// Lists the signals that are recomputed, for the trace's header: `has` says whether a signal is in
/// the trace.
pub(crate) fn signals(
    rev: KernelRev,
    settings: &Settings,
    has: impl Fn(&str) -> bool,
) -> Vec<Signal> {
    let told = rev.has(features::TRACEPOINT_PROBES)
        && ["util_avg", "util_est", "cfs_rq"].into_iter().all(has);
    let governor = Governed::of(settings);
    let names = [("misfit", true), ("freq_request", governor.is_some())];
    let names = names.into_iter().filter(|(_, known)| told && *known);
    names.map(|(name, _)| Signal { name, origin: Origin::Recomputed }).collect()
}

/// Way in which a governor chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Governed {
    /// A frequency by util.
    Schedutil,
    /// A frequency that follows nothing: `performance`, `powersave`, `userspace`.
    Fixed,
}

impl Governed {
    /// `None`: in a way that is not known here.
    fn of(settings: &Settings) -> Option<Governed> {
        match settings.get(&keys::GOVERNOR).unwrap_or(governor::SCHEDUTIL) {
            governor::SCHEDUTIL => Some(Governed::Schedutil),
            name if governor::FIXED.contains(&name) => Some(Governed::Fixed),
            _ => None,
        }
    }
}

/// A sink that passes a kernel's events on, each with what was decided at it.
pub(crate) struct Reasons<'a> {
    platform: &'a Platform,
    /// The workload's, by their ids.
    threads: Vec<&'a Task>,
    groups: Vec<UclampLimits>,
    rt_min: Util,
    asym: bool,
    misfits: bool,
    tasks: BTreeMap<TaskId, Known>,
    cpus: Vec<Cpu>,
    policies: Vec<Policied>,
    sink: &'a mut dyn TraceSink,
    job: &'a Job,
}

/// A task as it is known from the trace.
#[derive(Clone, Debug)]
struct Known {
    cpu: CpuId,
    runnable: bool,
    util_avg: Util,
    util_est: Util,
    /// True for a task of the fair class.
    fair: bool,
    clamps: Uclamp,
    group: usize,
    cpus: Option<Vec<u32>>,
}

#[derive(Clone, Debug)]
struct Cpu {
    domain: usize,
    current: Option<TaskId>,
    misfit: Option<TaskId>,
    capacity_of: Capacity,
    cfs: CfsUtil,
    pressure: RqUtil,
}

/// A frequency domain, and what its governor asked for.
struct Policied {
    table: Vec<FreqTableEntry>,
    limits: (KHz, KHz),
    capacity: Capacity,
    actual: Capacity,
    governed: Option<Governed>,
    rate_limit_us: u32,
    patience_ns: u64,
    asked: KHz,
    since: Option<Instant>,
    /// Frequencies that `cpu_frequency` is still to tell.
    ahead: VecDeque<(Instant, KHz)>,
    told: Option<(Util, KHz, Why)>,
}

impl<'a> Reasons<'a> {
    /// `threads`: the workload's, by their ids; `changes`: every frequency that a domain gets, by its place.
    pub(crate) fn new(
        platform: &'a Platform,
        job: &'a Job,
        threads: Vec<&'a Task>,
        changes: Vec<VecDeque<(Instant, KHz)>>,
        sink: &'a mut dyn TraceSink,
    ) -> Reasons<'a> {
        let of_cpu = |cpu: CpuId| {
            let domain = platform.domain_of(cpu).unwrap_or(0);
            Cpu {
                domain,
                current: None,
                misfit: None,
                capacity_of: platform.domains[domain].capacity,
                cfs: CfsUtil::default(),
                pressure: RqUtil::default(),
            }
        };
        let policies = platform.domains.iter().zip(changes);
        Reasons {
            platform,
            threads,
            groups: Vec::new(),
            rt_min: Util(1024),
            asym: platform.domains.iter().any(|d| d.capacity != platform.domains[0].capacity),
            misfits: false,
            tasks: BTreeMap::new(),
            cpus: platform.cpus().map(of_cpu).collect(),
            policies: policies.map(|(d, ahead)| Policied::new(d, job, ahead)).collect(),
            sink,
            job,
        }
    }

    fn attr(&mut self, task: TaskId, attr: &Attr) {
        let rt_min = self.rt_min;
        let Some(t) = self.tasks.get_mut(&task) else { return };
        if let Some(policy) = attr.policy {
            let real_time = matches!(policy, Policy::Fifo { .. } | Policy::Rr { .. });
            t.fair = matches!(policy, Policy::Other { .. } | Policy::Batch { .. } | Policy::Idle);
            t.clamps.min = if real_time { rt_min } else { Util(0) };
        }
        let util = |clamp: Option<u32>, was: Util| clamp.map_or(was, |u| Util(u.into()));
        t.clamps.min = util(attr.uclamp_min, t.clamps.min);
        t.clamps.max = util(attr.uclamp_max, t.clamps.max);
        t.group = attr.group.map_or(t.group, |g| g as usize);
        t.cpus = attr.cpus.clone().or(t.cpus.take());
    }

    fn clamps(&self, task: &Known) -> Uclamp {
        uclamp_eff(task.clamps, &self.groups.get(task.group).copied().unwrap_or_default())
    }

    /// Whether the CPU's task needs a bigger one: told where that has changed.
    fn update_misfit(&mut self, at: Instant, cpu: CpuId, task: Option<TaskId>) {
        let known = task.and_then(|id| self.tasks.get(&id));
        if !self.misfits || known.is_some_and(|t| !t.fair) {
            return;
        }
        let (c, original) =
            (&self.cpus[cpu.index()], self.policies[self.cpus[cpu.index()].domain].capacity);
        let actual = self.policies[c.domain].actual;
        let state = known.map(|t| {
            let clamps = self.clamps(t);
            let util = t.util_avg.max(t.util_est);
            let of = CpuCapacities { capacity_of: c.capacity_of, original, actual };
            let allowed = |cpu: &CpuId| t.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0));
            let allowed: Vec<_> = self.platform.cpus().filter(allowed).collect();
            let capacity = |cpu: &CpuId| self.policies[self.cpus[cpu.index()].domain].capacity;
            MisfitTask {
                nr_cpus_allowed: allowed.len() as u32,
                max_allowed_capacity: allowed.iter().map(capacity).max().unwrap_or_default(),
                fits: util_fits_cpu(util, clamps.min, clamps.max, of, true) == Fit::Fits,
            }
        });
        let load = update_misfit_status(TOLD, self.asym, state, original, || 1);
        let misfit = task.filter(|_| load.is_some_and(|load| load != 0));
        if std::mem::replace(&mut self.cpus[cpu.index()].misfit, misfit) != misfit {
            self.sink.event(at, &Event::Misfit { cpu, task: misfit });
        }
    }

    /// The util that the CPUs of the domain need, and why that much.
    fn need(&self, d: usize) -> (Util, Why) {
        let p = &self.policies[d];
        let of_cpu = |cpu: &CpuId| {
            let c = &self.cpus[cpu.index()];
            let there = self.tasks.values().filter(|t| t.runnable && t.cpu == *cpu);
            let all: Vec<Uclamp> = there.map(|t| self.clamps(t)).collect();
            let open = Uclamp::default();
            let rq = RqUtil {
                uclamp_min: all.iter().map(|c| c.min).max().unwrap_or(open.min),
                uclamp_max: all.iter().map(|c| c.max).max().unwrap_or(open.max),
                uclamp_is_used: true,
                ..c.pressure
            };
            let eff = effective_cpu_util(cpu_util_cfs_boost(&c.cfs, p.capacity), &rq, p.capacity);
            let wanted = map_util_perf(eff.util);
            let perf = perf_within(wanted, eff.min, eff.max);
            let why = match perf {
                _ if perf > wanted && rq.cpu_bw_dl() >= perf => Why::DlBandwidth,
                _ if perf > wanted => Why::UclampMin,
                _ if perf < wanted && perf < Util(p.capacity.0) => Why::UclampMax,
                _ => Why::Util,
            };
            (perf, why)
        };
        let most = self.platform.domains[d].cpus.iter().map(of_cpu);
        most.reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap_or((Util(0), Why::Util))
    }

    /// Looks as the governor does when it is called.
    fn look(&mut self, at: Instant, cpu: CpuId) {
        let d = self.cpus[cpu.index()].domain;
        if self.policies[d].governed != Some(Governed::Schedutil) {
            return;
        }
        let (util, why) = self.need(d);
        let p = &mut self.policies[d];
        let wanted = p.resolve(util);
        let limited =
            p.since.is_some_and(|since| !sugov_rate_limit_passed(at, since, p.rate_limit_us));
        let comes = p.ahead.front().copied().filter(|(then, freq)| {
            then.0 - at.0.min(then.0) <= p.patience_ns && (*freq > p.asked) == (wanted > p.asked)
        });
        let why = match comes {
            _ if wanted == p.asked => Why::Unchanged,
            _ if limited => Why::RateLimited,
            Some((_, freq)) => {
                (p.asked, p.since) = (freq, Some(at));
                why
            }
            None if wanted < p.asked => Why::HoldBusy,
            None => Why::Unchanged,
        };
        self.tell(at, d, (util, self.policies[d].asked, why));
    }

    /// Takes in a frequency that has come, and tells what asked for it if that has not been told.
    fn changed(&mut self, at: Instant, cpu: CpuId, freq: KHz) {
        let d = self.cpus[cpu.index()].domain;
        let (util, why) = self.need(d);
        let p = &mut self.policies[d];
        while p.ahead.front().is_some_and(|(then, _)| *then <= at) {
            p.ahead.pop_front();
        }
        let why = match p.governed {
            None => return,
            Some(Governed::Fixed) => Why::Fixed,
            Some(Governed::Schedutil) if p.asked == freq => return,
            // Where the run starts from: asked for by nobody that is known.
            Some(Governed::Schedutil) if at == Instant(0) => {
                p.asked = freq;
                return;
            }
            Some(Governed::Schedutil) if p.resolve(util) == freq => why,
            Some(Governed::Schedutil) => Why::Unknown,
        };
        (p.asked, p.since) = (freq, Some(at));
        self.tell(at, d, (util, freq, why));
    }

    fn tell(&mut self, at: Instant, d: usize, told: (Util, KHz, Why)) {
        if self.policies[d].told.replace(told) != Some(told) {
            let (util, freq, why) = told;
            let cpu = self.platform.domains[d].cpus[0];
            self.sink.event(at, &Event::FreqRequest { cpu, util, freq, why });
        }
    }

    fn there(&mut self, task: TaskId, cpu: CpuId, runnable: Option<bool>) {
        if let Some(t) = self.tasks.get_mut(&task) {
            t.cpu = cpu;
            t.runnable = runnable.unwrap_or(t.runnable);
        }
    }

    fn new_task(&mut self, task: TaskId, cpu: CpuId) {
        let known = Known {
            cpu,
            runnable: true,
            util_avg: Util(0),
            util_est: Util(0),
            fair: true,
            clamps: Uclamp::default(),
            group: 0,
            cpus: None,
        };
        self.tasks.insert(task, known);
        if let Some(thread) = self.threads.get(task.index()) {
            let attr = thread.attr.clone();
            self.attr(task, &attr);
        }
    }

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
    ) {
        if let Some((task, how)) = prev {
            self.there(task, cpu, Some(how == SwitchOut::Preempted));
            if how == SwitchOut::Exited {
                self.tasks.remove(&task);
            }
        }
        next.into_iter().for_each(|task| self.there(task, cpu, Some(true)));
        self.cpus[cpu.index()].current = next;
        self.update_misfit(at, cpu, next);
    }
}

impl Policied {
    fn new(d: &Domain, job: &Job, ahead: VecDeque<(Instant, KHz)>) -> Policied {
        let limits = frequency_limits(job, d);
        let entry =
            |o: &risetime_model::platform::Opp| FreqTableEntry { freq: o.freq, inefficient: false };
        let pressure = cpufreq_update_pressure(d.capacity, limits.1, d.freq_max());
        Policied {
            table: d.opps.iter().map(entry).collect(),
            limits,
            capacity: d.capacity,
            actual: Capacity(d.capacity.0 - pressure.0),
            governed: None,
            rate_limit_us: 0,
            patience_ns: KTHREAD_NS + d.transition_latency().0,
            asked: d.opps[0].freq,
            since: None,
            ahead,
            told: None,
        }
    }

    /// The OPP for so much performance.
    fn resolve(&self, perf: Util) -> KHz {
        let top = self.table.last().map_or(KHz(0), |e| e.freq);
        let raw = get_next_freq(TOLD, perf, self.capacity, top);
        let (min, max) = self.limits;
        let found = cpufreq_driver_resolve_freq(&self.table, raw, min, max);
        found.map_or(self.asked, |i| self.table[i].freq)
    }
}

impl TraceSink for Reasons<'_> {
    fn header(&mut self, header: &Header) {
        let told = |name: &str| header.run.signals.iter().any(|s| s.name == name);
        self.misfits = told("misfit");
        let of_policy = |d: &Domain| {
            header.machine.settings.of_policy(&keys::RATE_LIMIT_US, d.cpus[0]).unwrap_or(0)
        };
        for (p, d) in self.policies.iter_mut().zip(&self.platform.domains) {
            p.governed = Governed::of(&header.machine.settings).filter(|_| told("freq_request"));
            p.rate_limit_us = of_policy(d).clamp(0, u32::MAX.into()) as u32;
        }
        let most = |of: &Key<Int>| {
            header.machine.settings.get(of).map_or(Util(1024), |v| Util(v.clamp(0, 1024) as u64))
        };
        self.rt_min = most(&keys::RT_UCLAMP_MIN);
        let system = Uclamp { min: most(&keys::UTIL_CLAMP_MIN), max: most(&keys::UTIL_CLAMP_MAX) };
        let root = UclampLimits { group: None, system };
        self.groups = vec![root];
        for g in &self.job.groups {
            let above = g.parent().and_then(|p| self.job.groups.iter().position(|g| g.path == p));
            let above = above.and_then(|i| self.groups.get(i + 1)?.group);
            let most = Uclamp { min: Util(1024), max: Util(1024) };
            let request = Uclamp { min: g.uclamp_min, max: g.uclamp_max };
            let group = Some(cpu_util_update_eff(request, Some(above.unwrap_or(most))));
            self.groups.push(UclampLimits { group, system });
        }
        self.sink.header(header);
    }

    fn event(&mut self, at: Instant, event: &Event) {
        self.sink.event(at, event);
        match *event {
            Event::TaskNew { task, cpu, .. } => self.new_task(task, cpu),
            Event::Phase { task, index, .. } => {
                let thread = self.threads.get(task.index());
                let phase = thread.and_then(|t| t.phases.get(index as usize));
                if let Some(attr) = phase.map(|p| p.attr.clone()) {
                    self.attr(task, &attr);
                }
            }
            Event::Wakeup { task, cpu, .. } => self.there(task, cpu, Some(true)),
            Event::Migrate { task, to, .. } => self.there(task, to, None),
            Event::Switch { cpu, prev, next } => self.switch(at, cpu, prev, next),
            Event::UtilEst { task, util_est } => {
                self.tasks.entry(task).and_modify(|t| t.util_est = util_est);
            }
            Event::PeltTask { task, cpu, util_avg, .. } => {
                self.tasks.entry(task).and_modify(|t| t.util_avg = util_avg);
                if self.cpus[cpu.index()].current == Some(task) {
                    self.update_misfit(at, cpu, Some(task));
                }
            }
            Event::CpuCapacity { cpu, capacity } => self.cpus[cpu.index()].capacity_of = capacity,
            Event::PeltCfs { cpu, util_avg, runnable_avg, util_est, .. } => {
                self.cpus[cpu.index()].cfs = CfsUtil { util_avg, runnable_avg, util_est };
                self.look(at, cpu);
            }
            Event::PeltPressure { cpu, class, util_avg, .. } => {
                let pressure = &mut self.cpus[cpu.index()].pressure;
                match class {
                    PressureClass::Rt => pressure.rt = util_avg,
                    PressureClass::Dl => pressure.dl = util_avg,
                    PressureClass::Irq => pressure.irq = util_avg,
                    PressureClass::Hw => {}
                }
                self.look(at, cpu);
            }
            Event::Freq { cpu, freq } => self.changed(at, cpu, freq),
            // A look after it is told though nothing is new: the frequency is not one that nobody has looked at since.
            Event::Idle { cpu, state: Some(_) } => {
                let d = self.cpus[cpu.index()].domain;
                self.policies[d].told = None;
            }
            _ => {}
        }
    }

    fn end(&mut self, at: Instant) {
        self.sink.end(at);
    }

    /// Asks for all events: from them the reasons are found.
    fn listens(&self) -> Hears {
        self.sink.listens().max(Hears::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_kernel::units::ClockPelt;
    use risetime_model::settings::Value;
    use risetime_trace::{BackendKind, Clock, Image, MachineInfo, Memory, Run, Whence};
    use std::sync::Arc;

    const TASK: TaskId = TaskId(0);
    const CPU: CpuId = CpuId(0);
    const LOWEST: KHz = KHz(600_000);
    const NEXT: KHz = KHz(972_000);

    /// Lists what is told of `events` on the M1 where the frequency of CPU 0 changes so.
    fn told(
        governor: &str,
        signals: &[&'static str],
        changes: &[(u64, KHz)],
        events: &[(u64, Event)],
    ) -> Vec<(u64, String)> {
        let platform = Platform::load("m1").unwrap();
        let (job, task) = (Job::default(), Task::default());
        let settings =
            [("governor", Value::Name(governor.into())), ("rate_limit_us", Value::Int(10_000))];
        let settings = Settings::from_iter(settings.map(|(k, v)| (k.to_string(), v)));
        let has = |name: &str| signals.contains(&name);
        let header = Header {
            run: Run {
                backend: BackendKind::Vm,
                kernel_release: String::new(),
                clock: Clock::Local,
                signals: super::signals(KernelRev::V7_3, &settings, has),
                lost: Vec::new(),
            },
            asked: None,
            machine: MachineInfo {
                platform: Arc::new(platform.clone()),
                whence: Whence::Described,
                settings,
            },
            image: Image::default(),
        };
        let mut ahead = vec![VecDeque::new(); platform.domains.len()];
        ahead[0].extend(changes.iter().map(|(at, freq)| (Instant(at * 1_000_000), *freq)));
        let mut memory = Memory::default();
        let mut reasons = Reasons::new(&platform, &job, vec![&task], ahead, &mut memory);
        reasons.header(&header);
        for (ms, event) in events {
            reasons.event(Instant(ms * 1_000_000), event);
        }
        reasons.end(Instant(1_000_000_000));
        let said = memory.events().iter().filter_map(|(at, event)| {
            let text = match event {
                Event::Misfit { task, .. } => format!("misfit {}", task.is_some()),
                Event::FreqRequest { freq, why, .. } => format!("{} {why}", freq.0),
                _ => return None,
            };
            Some((at.0 / 1_000_000, text))
        });
        said.collect()
    }

    const ALL: [&str; 3] = ["util_avg", "util_est", "cfs_rq"];

    fn task(util: u64) -> Event {
        Event::PeltTask {
            task: TASK,
            cpu: CPU,
            util_avg: Util(util),
            runnable_avg: Util(util),
            util_sum: 0,
            period_contrib: 0,
            last_update_time: ClockPelt(0),
        }
    }

    fn cfs(util: u64) -> Event {
        Event::PeltCfs {
            cpu: CPU,
            util_avg: Util(util),
            runnable_avg: Util(util),
            util_est: Util(0),
            util_sum: 0,
            period_contrib: 0,
            last_update_time: ClockPelt(0),
        }
    }

    fn starts() -> [(u64, Event); 2] {
        let (why, max_speed) = (Why::FirstCpu, Util(1024));
        let new =
            Event::TaskNew { task: TASK, comm: "t".into(), user: true, cpu: CPU, why, max_speed };
        [(0, new), (1, Event::Switch { cpu: CPU, prev: None, next: Some(TASK) })]
    }

    fn said(told: &[(u64, &str)]) -> Vec<(u64, String)> {
        told.iter().map(|(at, text)| (*at, text.to_string())).collect()
    }

    /// A CPU of capacity 459 keeps what needs less than 368 of it.
    #[test]
    fn a_task_is_misfit_from_the_tick_that_finds_it_too_big_until_another_runs() {
        let sleeps =
            Event::Switch { cpu: CPU, prev: Some((TASK, SwitchOut::Sleeping)), next: None };
        let events =
            [&starts()[..], &[(4, task(367)), (8, task(368)), (12, task(380)), (16, sleeps)]]
                .concat();
        assert_eq!(
            told("schedutil", &ALL, &[], &events),
            said(&[(8, "misfit true"), (16, "misfit false")])
        );
        assert_eq!(told("schedutil", &["util_avg"], &[], &events), [], "signals are missing");
    }

    #[test]
    fn a_request_is_what_a_frequency_follows_and_what_the_rate_limit_puts_off_is_said() {
        let freq = |freq| Event::Freq { cpu: CPU, freq };
        // 1.25 · util of 459 · 2064 MHz: 600 MHz are enough up to 106.
        let events = [
            (0, freq(LOWEST)),
            (4, cfs(100)),
            (8, cfs(110)),
            (20, cfs(111)),
            (21, freq(NEXT)),
            (24, cfs(200)),
            (32, cfs(200)),
        ];
        let want = [
            (4, "600000 unchanged"),
            // Nothing follows within the time that a change takes: it was none.
            (8, "600000 unchanged"),
            (20, "972000 util"),
            (24, "972000 rate_limited"),
            (32, "972000 unchanged"),
        ];
        assert_eq!(told("schedutil", &ALL, &[(21, NEXT)], &events), said(&want));
    }

    #[test]
    fn a_look_that_finds_what_it_found_is_told_again_after_the_cpu_has_slept() {
        let idle = |state| Event::Idle { cpu: CPU, state };
        let events = [
            (0, Event::Freq { cpu: CPU, freq: LOWEST }),
            (4, cfs(100)),
            (5, cfs(100)),
            (6, idle(Some(1))),
            (20, idle(None)),
            (21, cfs(100)),
            (22, cfs(100)),
        ];
        let want = [(4, "600000 unchanged"), (21, "600000 unchanged")];
        assert_eq!(told("schedutil", &ALL, &[], &events), said(&want));
    }

    #[test]
    fn a_fixed_governor_has_chosen_and_an_unknown_one_says_nothing() {
        let events = [(0, Event::Freq { cpu: CPU, freq: LOWEST }), (4, cfs(300))];
        assert_eq!(told("powersave", &ALL, &[], &events), said(&[(0, "600000 fixed")]));
        let other = [(0, Event::Freq { cpu: CPU, freq: NEXT }), (4, cfs(300))];
        assert_eq!(told("userspace", &ALL, &[], &other), said(&[(0, "972000 fixed")]));
        assert_eq!(told("ondemand", &ALL, &[], &other), []);
    }
}
