//! The events of a trace, made from its records in their order.

use super::*;

/// Pours `trace` into `sink`, from time 0 to the end mark. `pids` are the workload's threads: the
/// job's tasks and then those of them that were forked, each of which copies the task that `forks`
/// has of it. `decisions`: the kernel, if it is also to tell from what it decides.
pub(crate) fn pour(
    trace: &Trace<'_>,
    platform: &Platform,
    job: &Job,
    pids: &[i32],
    forks: &[usize],
    decisions: Option<KernelRev>,
    sink: &mut dyn TraceSink,
) -> Collected {
    let looks = || trace.events.iter().any(|e| matches!(e.2, Raw::Told(Told::Look { .. })));
    let threads = threads(job, forks);
    let names = threads.iter().map(|(comm, _)| comm.clone()).collect::<Vec<_>>();
    let names = names.iter().map(String::as_str).chain(std::iter::repeat(""));
    let mut p = Pour {
        platform,
        limits: threads.iter().map(|t| Limits::new(platform, job, &t.1.attr)).collect(),
        threads,
        tells_prios: decisions.is_some() || sink.listens() == Hears::Attributes,
        prios: BTreeMap::new(),
        yielded: BTreeMap::new(),
        sink,
        events: 0,
        now: Instant(0),
        start: trace.start,
        who: Threads::of_workload(
            pids.iter().map(|pid| Some(*pid).filter(|pid| *pid > 0)).zip(names),
        ),
        known: BTreeMap::new(),
        running: vec![None; platform.nr_cpus()],
        idle: platform.cpus().map(|c| deepest(platform, c)).collect(),
        freq: BTreeMap::new(),
        signals: BTreeMap::new(),
        overutilized: None,
        decisions: decisions.map(|rev| Decisions::new(rev, of_css, looks())),
        plug: Plug::new(trace.events.iter().filter_map(|(.., raw)| match raw {
            Raw::Plug(step) => Some(*step),
            _ => None,
        })),
    };
    let (before, run) = trace.events.split_at(trace.events.partition_point(|e| e.0 < trace.start));
    before.iter().for_each(|(_, cpu, raw)| p.before(*cpu, raw));
    p.snapshot();
    for (at, cpu, raw) in run.iter().take_while(|e| e.0 <= trace.end) {
        p.now = Instant(at - trace.start);
        p.event(*cpu, raw);
    }
    Collected { end: Instant(trace.end - trace.start), events: p.events }
}

/// The state of a CPU that has been idle for long.
fn deepest(platform: &Platform, cpu: CpuId) -> Option<u32> {
    let d = &platform.domains[platform.domain_of(cpu)?];
    (d.idle.len() as u32).checked_sub(1)
}

struct Pour<'a> {
    platform: &'a Platform,
    /// The workload's.
    threads: Vec<(String, &'a Task)>,
    sink: &'a mut dyn TraceSink,
    events: u64,
    now: Instant,
    /// Time 0 in the kernel's clock.
    start: u64,
    who: Threads,
    /// Tasks the sink has been told of, with the CPU they were last seen on.
    known: BTreeMap<TaskId, CpuId>,
    /// Limits of the workload's tasks.
    limits: Vec<Limits>,
    // What was before time 0.
    running: Vec<Option<(i32, String, i64)>>,
    idle: Vec<Option<u32>>,
    freq: BTreeMap<u32, u64>,
    /// The last update of each CPU's signals, by class.
    signals: BTreeMap<(u32, &'static str), Event>,
    overutilized: Option<bool>,
    /// Decisions, where it is wanted from what the kernel decides.
    decisions: Option<Decisions>,
    /// The priority of each task that is known, told where somebody wants it.
    prios: BTreeMap<TaskId, i64>,
    /// Deadline tasks that have yielded, and whether they have left their CPU since.
    yielded: BTreeMap<TaskId, bool>,
    tells_prios: bool,
    plug: Plug,
}

impl Pour<'_> {
    fn emit(&mut self, event: Event) {
        self.sink.event(self.now, &event);
        self.events += 1;
    }

    /// An event before time 0: only the state it leaves matters.
    fn before(&mut self, cpu: u32, raw: &Raw<'_>) {
        match *raw {
            Raw::Switch { next: Thread { pid, comm, prio }, .. } => {
                if let Some(r) = self.running.get_mut(cpu as usize) {
                    *r = (pid != 0).then(|| (pid, comm.to_string(), prio));
                }
            }
            Raw::Idle { cpu, state } => {
                if let Some(i) = self.idle.get_mut(cpu as usize) {
                    *i = (state != IDLE_EXIT).then_some(state as u32);
                }
            }
            Raw::Freq { cpu, khz } => drop(self.freq.insert(cpu, khz)),
            Raw::PeltCfs { cpu, over, .. } => {
                self.signals.extend(self.signal(raw).map(|e| ((cpu, "cfs"), e)));
                self.overutilized = over.or(self.overutilized);
            }
            Raw::Pressure { class, cpu, .. } => {
                self.signals.extend(self.signal(raw).map(|e| ((cpu, class.as_str()), e)));
            }
            Raw::Capacity { cpu, .. } => {
                self.signals.extend(self.signal(raw).map(|e| ((cpu, "capacity"), e)));
            }
            Raw::Overutilized(on) => self.overutilized = Some(on),
            Raw::Menu(Probed { cfs: Some(CfsLeft { util, runnable, position }), .. }) => {
                let left = Raw::PeltCfs { cpu, util, runnable, est: 0, position, over: None };
                self.signals.extend(self.signal(&left).map(|e| ((cpu, "cfs"), e)));
            }
            Raw::Told(told) => {
                if let Told::Queue { cpu, .. } = told {
                    let queue = told.queue().filter(|_| self.decisions.is_some());
                    self.signals.extend(queue.map(|e| ((cpu, "queue"), e)));
                } else if let Some(d) = &mut self.decisions
                    && let Told::Entity { .. } = told
                {
                    // Nobody is known yet: it is kept.
                    d.told(cpu, &told, |_| None, |_| {});
                }
            }
            Raw::Mark(text) => {
                let words: Vec<&str> = text.split(' ').collect();
                if let ["rt", what @ ("yields" | "goes_on"), task] = words[..]
                    && let Ok(task) = task.parse().map(TaskId)
                {
                    match what {
                        "yields" => self.yielded.insert(task, false),
                        _ => self.yielded.remove(&task),
                    };
                    return;
                }
                if let ["rt", "freq", cpu, khz] = words[..]
                    && let (Ok(cpu), Ok(khz)) = (cpu.parse(), khz.parse())
                {
                    self.freq.insert(cpu, khz);
                }
            }
            _ => {}
        }
    }

    /// Emits where everything stands at time 0.
    fn snapshot(&mut self) {
        for d in &self.platform.domains {
            let cpu = d.cpus[0];
            let freq = self.freq.get(&cpu.0).copied().map_or(d.opps[0].freq, KHz);
            self.emit(Event::Freq { cpu, freq });
        }
        for cpu in self.platform.cpus() {
            match self.running[cpu.index()].clone() {
                Some((pid, comm, prio)) => {
                    let task = self.task(Thread { pid, comm: &comm, prio }, cpu);
                    self.emit(Event::Switch { cpu, prev: None, next: Some(task) });
                }
                None => {
                    if let Some(state) = self.idle_state(cpu, self.idle[cpu.index()]) {
                        self.emit(Event::Idle { cpu, state: Some(state) });
                    }
                }
            }
        }
        for event in std::mem::take(&mut self.signals).into_values() {
            self.emit(event);
        }
        if let Some(on) = self.overutilized {
            self.emit(Event::Overutilized { on });
        }
    }

    /// An event about a CPU's signals; `None`: it is about something else.
    fn signal(&self, raw: &Raw<'_>) -> Option<Event> {
        Some(match *raw {
            Raw::PeltCfs { cpu, util, runnable, est, position, .. } => Event::PeltCfs {
                cpu: CpuId(cpu),
                util_avg: Util(util),
                runnable_avg: Util(runnable),
                util_est: Util(est),
                util_sum: position.sum,
                period_contrib: position.contrib,
                last_update_time: self.clock(position),
            },
            Raw::Pressure { class, cpu, util, position } => Event::PeltPressure {
                cpu: CpuId(cpu),
                class,
                util_avg: Util(util),
                util_sum: position.sum,
                period_contrib: position.contrib,
                last_update_time: self.clock(position),
            },
            Raw::Capacity { cpu, capacity, .. } => {
                Event::CpuCapacity { cpu: CpuId(cpu), capacity: Capacity(capacity) }
            }
            _ => return None,
        })
    }

    /// `last_update_time` counted from time 0.
    fn clock(&self, position: Position) -> ClockPelt {
        ClockPelt(position.at.wrapping_sub(self.start))
    }

    /// A kernel's idle state as the platform's; `None`: the platform has none.
    fn idle_state(&self, cpu: CpuId, state: Option<u32>) -> Option<u32> {
        Some(state?.min(deepest(self.platform, cpu)?))
    }

    /// A thread's task, which the sink is told of if it has not been.
    fn task(&mut self, thread: Thread<'_>, cpu: CpuId) -> TaskId {
        let Thread { pid, comm, prio } = thread;
        let task = self.who.seen(pid, self.now, comm, Role::System);
        if self.known.insert(task, cpu).is_none() {
            let user = self.threads.get(task.index()).map(|(comm, _)| comm.clone());
            let max_speed =
                self.limits.get(task.index()).map_or(Util(1024), |l| l.max_speed(self.platform));
            let first = user.is_some()
                && self.known.keys().filter(|t| t.index() < self.threads.len()).count() == 1;
            let why = if first { Why::FirstCpu } else { Why::Unknown };
            let known = user.is_some();
            let comm = Name::new(user.as_deref().unwrap_or(comm));
            self.emit(Event::TaskNew { task, comm, user: known, cpu, why, max_speed });
            self.tell_limits(task, false);
            let entity = self.decisions.as_mut().and_then(|d| d.known(pid, task));
            entity.into_iter().for_each(|event| self.emit(event));
        }
        if self.prios.insert(task, prio) != Some(prio) && self.tells_prios {
            self.emit(Event::Prio { task, prio: prio as i32 });
        }
        task
    }

    /// Passes on what the kernel tells of its decisions.
    fn told(&mut self, cpu: u32, told: &Told) {
        let Some(mut d) = self.decisions.take() else { return };
        // Every task has a deadline's fields: they mean something in that class.
        let other = |task: TaskId| self.prios.get(&task).is_none_or(|prio| *prio >= 0);
        let of_deadline = matches!(told, Told::Deadline { .. });
        let known = |pid| {
            let task = self.who.get(pid)?;
            (self.known.contains_key(&task) && !(of_deadline && other(task))).then_some(task)
        };
        let (sink, now, events) = (&mut *self.sink, self.now, &mut self.events);
        d.told(cpu, told, known, |event| {
            sink.event(now, &event);
            *events += 1;
        });
        self.decisions = Some(d);
    }

    fn known_task(&self, pid: i32) -> Option<(TaskId, CpuId)> {
        let task = self.who.get(pid)?;
        Some((task, *self.known.get(&task)?))
    }

    fn event(&mut self, cpu: u32, raw: &Raw<'_>) {
        let here = CpuId(cpu);
        match *raw {
            Raw::Switch { prev, prev_state, next } => self.switch(here, prev, prev_state, next),
            Raw::Wakeup { thread, cpu, new } => {
                let cpu = CpuId(cpu);
                let fresh = self.known_task(thread.pid).is_none();
                let task = self.task(thread, cpu);
                self.known.insert(task, cpu);
                // Becoming known says that it is runnable.
                if !new && !fresh {
                    self.emit(Event::Wakeup { task, cpu, why: Why::Unknown });
                }
            }
            Raw::Migrate { pid, from, to } => {
                let (from, to) = (CpuId(from), CpuId(to));
                // A thread that sleeps and is not known yet will be told of when it wakes.
                if let Some((task, _)) = self.known_task(pid) {
                    self.known.insert(task, to);
                    self.emit(Event::Migrate { task, from, to, why: Why::Unknown });
                }
            }
            Raw::Freq { cpu, khz } => {
                // Each of its CPUs that is online tells of it.
                let plug = &self.plug;
                let first = |d: &&Domain| {
                    let mut online = d.cpus.iter().filter(|c| !plug.offline.contains(&c.0));
                    online.next().is_some_and(|c| c.0 == cpu)
                };
                if let Some(d) = self.platform.domains.iter().find(first) {
                    self.emit(Event::Freq { cpu: d.cpus[0], freq: KHz(khz) });
                }
            }
            Raw::Idle { cpu, state } => {
                let cpu = CpuId(cpu);
                let left = state == IDLE_EXIT;
                let state = self.idle_state(cpu, (!left).then_some(state as u32));
                if left || state.is_some() {
                    self.emit(Event::Idle { cpu, state });
                }
            }
            Raw::PeltTask { pid, util, runnable, position } => {
                if let Some((task, cpu)) = self.known_task(pid) {
                    self.emit(Event::PeltTask {
                        task,
                        cpu,
                        util_avg: Util(util),
                        runnable_avg: Util(runnable),
                        util_sum: position.sum,
                        period_contrib: position.contrib,
                        last_update_time: self.clock(position),
                    });
                }
            }
            Raw::UtilEst { pid, est } => {
                if let Some((task, _)) = self.known_task(pid) {
                    self.emit(Event::UtilEst { task, util_est: Util(est) });
                }
            }
            Raw::PeltCfs { .. } | Raw::Pressure { .. } | Raw::Capacity { .. } => {
                if let Some(event) = self.signal(raw) {
                    self.emit(event);
                }
                if let Raw::Capacity { cpu, due, .. } = *raw {
                    let due = self.decisions.as_ref().and_then(|d| d.due(cpu, due));
                    due.into_iter().for_each(|event| self.emit(event));
                }
            }
            Raw::Overutilized(on) => self.emit(Event::Overutilized { on }),
            Raw::Plug(step) => {
                if let Some((cpu, online)) = self.plug.step(step) {
                    self.emit(Event::Hotplug { cpu: CpuId(cpu), online });
                }
            }
            Raw::Menu(ref probed) => {
                self.decisions.iter_mut().for_each(|d| d.menu(cpu, probed));
            }
            Raw::Period { .. } => {}
            Raw::Told(ref told) => self.told(cpu, told),
            Raw::Mark(text) => self.mark(text),
            Raw::Job { task, mark } => {
                let task = TaskId(task);
                if self.known.contains_key(&task) {
                    let start = self.start;
                    let mark = mark.with_times(|at| Instant(at.0.saturating_sub(start)));
                    self.emit(Event::Job { task, mark });
                }
            }
        }
    }

    /// Whether `task`, which leaves its CPU, has yielded as a deadline task, so that it waits for its next period.
    fn waits_for_period(&mut self, task: TaskId, left: SwitchOut) -> bool {
        let Some(waits) = self.yielded.get_mut(&task) else { return false };
        *waits = left == SwitchOut::Preempted;
        *waits
    }

    fn switch(&mut self, cpu: CpuId, prev: Thread<'_>, prev_state: i64, next: Thread<'_>) {
        let left = match prev_state {
            s if s & EXITED != 0 => SwitchOut::Exited,
            s if s & NOT_RUNNING != 0 => SwitchOut::Sleeping,
            _ => SwitchOut::Preempted,
        };
        let leaves = prev.pid;
        let prev = (leaves != 0).then(|| (self.task(prev, cpu), left));
        let prev = prev.map(|(task, left)| match self.waits_for_period(task, left) {
            true => (task, SwitchOut::Sleeping),
            false => (task, left),
        });
        let next = (next.pid != 0).then(|| self.task(next, cpu));
        if let Some(task) = next.filter(|task| self.yielded.remove(task) == Some(true)) {
            // When its period began, no kernel tells.
            self.emit(Event::Wakeup { task, cpu, why: Why::NewPeriod });
        }
        if let Some((task, SwitchOut::Exited)) = prev {
            self.who.gone(leaves);
            self.prios.remove(&task);
        }
        self.emit(Event::Switch { cpu, prev, next });
    }

    fn mark(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let ["rt", "phase", task, index] = words[..] else { return };
        let (Ok(task), Ok(index)) = (task.parse::<usize>(), index.parse::<usize>()) else { return };
        let Some(phase) = self.threads.get(task).and_then(|(_, t)| t.phases.get(index)) else {
            return;
        };
        let id = TaskId(task as u32);
        self.emit(Event::Phase { task: id, index: index as u32, name: phase.name });
        let before = self.limits[task].clone();
        self.limits[task].take(&phase.attr);
        let max_speed = self.limits[task].max_speed(self.platform);
        if max_speed != before.max_speed(self.platform) {
            self.emit(Event::MaxSpeed { task: id, max_speed });
        }
        let told = before.speed_limits(self.platform);
        if told != self.limits[task].speed_limits(self.platform) {
            self.tell_limits(id, true);
        }
    }

    /// Emits what takes speed from a task; `anew`: even if nothing does.
    fn tell_limits(&mut self, task: TaskId, anew: bool) {
        let Some(limits) = self.limits.get(task.index()) else { return };
        let (affinity, clamped) = limits.speed_limits(self.platform);
        if anew || (affinity, clamped) != (Util(1024), Util(1024)) {
            self.emit(Event::SpeedLimits { task, affinity, clamped });
        }
    }
}
