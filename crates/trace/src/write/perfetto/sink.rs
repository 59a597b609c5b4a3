//! The events of a trace, each to its tracks.

use super::*;

impl<W: io::Write> TraceSink for Writer<W> {
    fn header(&mut self, header: &Header) {
        let platform = &header.machine.platform;
        let asked = header.asked.clone().unwrap_or_default();
        self.bundles.resize_with(platform.nr_cpus(), Message::default);
        self.swappers = (0..platform.nr_cpus() as u32).map(swapper).collect();
        self.domains = platform.domains.iter().map(|d| (d.cpus[0].0, d.cpus.clone())).collect();
        self.state = Tracker::of(header);
        self.power = Some(Power::new(Arc::clone(platform), &self.state));
        self.zones = platform.thermal.iter().map(|z| z.name.as_str().into()).collect();
        self.chains = Chains::new(&asked.jobs);
        let jobs = asked.jobs.iter().map(|spec| Jobs {
            name: spec.name.clone(),
            task: TaskId(spec.tasks.first().copied().unwrap_or_default()),
            lanes: Lanes::default(),
        });
        self.jobs = jobs.collect();
        self.packet(Some(Instant(0)), |m| {
            m.uint(packet::SEQUENCE_FLAGS, packet::SEQ_INCREMENTAL_STATE_CLEARED)
                .uint(packet::FIRST_PACKET_ON_SEQUENCE, 1)
                .nested(packet::SYSTEM_INFO, |m| {
                    m.nested(system_info::UTSNAME, |m| {
                        m.string(system_info::UTSNAME_SYSNAME, "Linux")
                            .string(system_info::UTSNAME_RELEASE, &header.run.kernel_release);
                    });
                    m.int(system_info::HZ, platform.hz.into());
                });
        });
        if self.numbers.threads.is_empty() {
            self.packet(Some(Instant(0)), |m| {
                m.nested(packet::PROCESS_TREE, |m| {
                    m.nested(process_tree::PROCESSES, |m| {
                        m.int(process_tree::PROCESS_PID, PROCESS)
                            .int(process_tree::PROCESS_PPID, 1)
                            .string(process_tree::PROCESS_CMDLINE, &asked.workload);
                    });
                });
            });
        }
        self.about(header);
    }

    fn event(&mut self, at: Instant, event: &Event) {
        self.power(at);
        // What may stand between a task and its priority.
        if !matches!(event, Event::Prio { .. } | Event::Policy { .. } | Event::Entity { .. }) {
            self.wakes_new();
        }
        let asked = match *event {
            Event::FreqRequest { cpu, .. } if self.state.has(cpu) => {
                self.state.domain_of(cpu).request()
            }
            _ => None,
        };
        match &mut self.power {
            Some(power) => power.event(&mut self.state, at, event),
            None => self.state.event(at, event),
        }
        match *event {
            Event::TaskNew { task, comm, user, cpu, why, .. } => {
                self.task_new(at, task, &comm, user, cpu, why);
            }
            Event::MaxSpeed { task, max_speed } => {
                let thread = self.thread(task);
                let notes = [("max_speed", Note::Number(max_speed.0))];
                self.instant(
                    at,
                    thread,
                    "placement",
                    &format!("at most {max_speed} of 1024"),
                    &notes,
                );
            }
            Event::Policy { task, policy } => self.policy(at, task, policy),
            Event::Wakeup { task, cpu, .. } => {
                self.wakeup(at, task, cpu, [ftrace::SCHED_WAKING, ftrace::SCHED_WAKEUP]);
            }
            Event::Switch { cpu, prev, next } => self.switch(at, cpu, prev, next),
            Event::Migrate { task, from, to, why } => self.migrate(at, task, from, to, why),
            Event::Phase { task, index, name } => {
                let thread = self.thread(task);
                let notes = [("phase", Note::Number(index.into()))];
                self.instant(at, thread, "phase", &name, &notes);
            }
            Event::Freq { cpu, freq } => self.freq(at, cpu, freq),
            Event::FreqRequest { cpu, util, freq, why } => {
                let again = asked.is_some_and(|(was, _, why)| (was, why) == (freq, Why::Unchanged));
                self.request(at, cpu, (util.0, freq, why), again);
            }
            Event::Idle { cpu, state } => {
                self.ftrace(at, cpu, 0, ftrace::CPU_IDLE, |m| {
                    m.uint(cpu_power::STATE, state.map_or(cpu_power::NOT_IDLE, u64::from))
                        .uint(cpu_power::CPU_ID, cpu.0.into());
                });
            }
            Event::Overutilized { on } => {
                self.counter(at, Track::Overutilized, 0, on.into(), |_| None);
                let name = if on { "overutilized" } else { "no longer overutilized" };
                self.instant(at, Track::Run.of(0), "overutilized", name, &[]);
            }
            Event::Hotplug { cpu, online } => {
                let name = format!("CPU {} {}", cpu.0, if online { "online" } else { "offline" });
                self.instant(at, Track::Run.of(0), "hotplug", &name, &[]);
            }
            Event::Misfit { cpu, task } => self.misfit(at, cpu, task),
            Event::Cooling { cpu, max, zone } => self.cooling(at, cpu, max, zone),
            Event::CpuFrequencyLimits { cpu, max, .. } => {
                let track = self.governor(cpu);
                self.counter(at, Track::MaxFreq, cpu.0, max.0, |_| Some(track));
            }
            Event::Capped { cpu, by, max } => {
                let track = self.governor(cpu);
                let who = format!("{by:?}").to_lowercase();
                let name = match max {
                    Some(max) => format!("{who}: at most {max}"),
                    None => format!("{who}: no cap"),
                };
                self.instant(at, track, "cap", &name, &[]);
            }
            Event::Job { task, mark } => self.job(at, task, mark),
            Event::Unseen { cpu } => {
                let track = self.cpu(cpu);
                self.instant(at, track, "unseen", "not known from here on", &[]);
            }
            Event::Throttled { task, on } => {
                let thread = self.thread(task);
                let name = if on { "runtime used up" } else { "runtime replenished" };
                self.instant(at, thread, "deadline", name, &[]);
            }
            // Not told of the rest: what only an explanation asks for, or a decision was made from; a kind of work shows in the
            // power.
            _ => self.signal(at, event),
        }
    }

    fn end(&mut self, at: Instant) {
        self.wakes_new();
        self.power(Instant(u64::MAX));
        let mut chains = std::mem::take(&mut self.chains);
        chains.cut_off(at, &mut |over| self.slice(over));
        self.flush_bundles();
    }

    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}

impl<W: io::Write> Writer<W> {
    /// Writes the counters of an event that tells of signals or clamps; of others nothing.
    fn signal(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::PeltTask { task, util_avg, runnable_avg, .. } => {
                let thread = |w: &mut Self| Some(w.thread(task));
                self.counter(at, Track::TaskUtil, task.0, util_avg.0, thread);
                self.counter(at, Track::TaskRunnable, task.0, runnable_avg.0, thread);
            }
            Event::UtilEst { task, util_est } => {
                self.counter(at, Track::TaskUtilEst, task.0, util_est.0, |w| Some(w.thread(task)));
            }
            Event::WaitingAvg { task, waiting_avg } => {
                let thread = |w: &mut Self| Some(w.thread(task));
                self.counter(at, Track::TaskWaiting, task.0, waiting_avg.0, thread);
            }
            Event::PeltCfs { cpu, util_avg, runnable_avg, util_est, .. } => {
                let track = |w: &mut Self| Some(w.cpu(cpu));
                self.counter(at, Track::CfsUtil, cpu.0, util_avg.0, track);
                self.counter(at, Track::CfsRunnable, cpu.0, runnable_avg.0, track);
                self.counter(at, Track::CfsUtilEst, cpu.0, util_est.0, track);
            }
            Event::PeltPressure { cpu, class, util_avg, .. } => {
                let kind = match class {
                    PressureClass::Rt => Track::RtUtil,
                    PressureClass::Dl => Track::DlUtil,
                    PressureClass::Irq => Track::IrqUtil,
                    PressureClass::Hw => Track::OtherUtil,
                };
                self.counter(at, kind, cpu.0, util_avg.0, |w| Some(w.cpu(cpu)));
            }
            Event::CpuCapacity { cpu, capacity } => {
                self.counter(at, Track::Capacity, cpu.0, capacity.0, |w| Some(w.cpu(cpu)));
            }
            Event::Temperature { zone, millicelsius } => {
                self.counter(at, Track::Temperature, zone, millicelsius.into(), |w| {
                    w.describe(Track::Zones.of(0), None, "Thermal zones", |_| {});
                    Some(Track::Zones.of(0))
                });
            }
            Event::Clamps { task, clamps } => {
                let kinds = [Track::TaskClampMin, Track::TaskClampMax];
                self.clamps(at, kinds, task.0, clamps, |w| w.thread(task));
            }
            Event::CpuClamps { cpu, clamps } => self.cpu_clamps(at, cpu, clamps),
            Event::FreqLook { cpu, look } => {
                if let Some([min, max]) = look.uclamp {
                    self.cpu_clamps(at, cpu, Uclamp { min, max });
                }
            }
            _ => {}
        }
    }
}
