//! The tracks and ftrace events of tasks: who runs, wakes, moves; jobs, priorities, clamps.

use super::*;

impl<W: io::Write> Writer<W> {
    pub(super) fn comm(&self, task: TaskId) -> Arc<str> {
        self.state.task(task).map_or_else(|| format!("{task}").into(), |t| t.comm.as_str().into())
    }
    pub(super) fn prio(&self, task: TaskId) -> i64 {
        self.state.task(task).map_or(PRIO, |t| t.prio.into())
    }
    pub(super) fn tgid(&self, task: TaskId) -> i64 {
        self.numbers.tgid(task, self.state.task(task).is_some_and(|t| t.user))
    }

    pub(super) fn task_new(
        &mut self,
        at: Instant,
        task: TaskId,
        comm: &str,
        user: bool,
        cpu: CpuId,
        why: Why,
    ) {
        let (tid, tgid) = (self.numbers.tid(task), self.tgid(task));
        self.packet(Some(at), |m| {
            m.nested(packet::PROCESS_TREE, |m| {
                if !user {
                    m.nested(process_tree::PROCESSES, |m| {
                        m.int(process_tree::PROCESS_PID, tid)
                            .int(process_tree::PROCESS_PPID, 2)
                            .string(process_tree::PROCESS_CMDLINE, comm)
                            .uint(process_tree::PROCESS_IS_KTHREAD, 1);
                    });
                }
                m.nested(process_tree::THREADS, |m| {
                    m.int(process_tree::THREAD_TID, tid)
                        .string(process_tree::THREAD_NAME, comm)
                        .int(process_tree::THREAD_TGID, tgid);
                });
            });
        });
        // A task that was there before has not been created here.
        if why == Why::Earlier {
            return;
        }
        self.new = Some((at, task, cpu));
        let thread = self.thread(task);
        let notes = [("cpu", Note::Number(cpu.0.into())), ("why", Note::Text(why.as_str()))];
        self.instant(at, thread, "placement", &format!("created on {cpu}: {why}"), &notes);
    }

    pub(super) fn policy(&mut self, at: Instant, task: TaskId, policy: Policy) {
        let thread = self.thread(task);
        self.instant(at, thread, "policy", &policy.to_string(), &[]);
    }

    /// The new task that is waited for has all that it is created with.
    pub(super) fn wakes_new(&mut self) {
        if let Some((at, task, cpu)) = self.new.take() {
            self.wakeup(at, task, cpu, [ftrace::SCHED_WAKING, ftrace::SCHED_WAKEUP_NEW]);
        }
    }

    /// Writes both clamps, once there are any.
    pub(super) fn clamps(
        &mut self,
        at: Instant,
        kinds: [Track; 2],
        index: u32,
        clamps: Uclamp,
        parent: impl FnOnce(&mut Self) -> u64,
    ) {
        if clamps == Uclamp::default() && !self.tracks.contains_key(&kinds[0].of(index)) {
            return;
        }
        let parent = parent(self);
        self.counter(at, kinds[0], index, clamps.min.0, |_| Some(parent));
        self.counter(at, kinds[1], index, clamps.max.0, |_| Some(parent));
    }

    pub(super) fn cpu_clamps(&mut self, at: Instant, cpu: CpuId, clamps: Uclamp) {
        let kinds = [Track::CpuClampMin, Track::CpuClampMax];
        self.clamps(at, kinds, cpu.0, clamps, |w| w.cpu(cpu));
    }

    /// Writes the power that has changed before `at`.
    pub(super) fn power(&mut self, at: Instant) {
        let past = self.power.as_mut().filter(|power| power.is_past(at));
        let Some((at, changed)) = past.map(Power::take) else { return };
        for (cpu, uw) in changed {
            self.counter(at, Track::Power, cpu.0, uw, |w| {
                w.describe(Track::Powers.of(0), None, "Power", |_| {});
                Some(Track::Powers.of(0))
            });
        }
    }

    pub(super) fn job(&mut self, at: Instant, task: TaskId, mark: JobMark) {
        let mut chains = std::mem::take(&mut self.chains);
        chains.mark(task, at, mark, &mut |over| self.slice(over));
        self.chains = chains;
    }

    /// Writes a job that is over.
    pub(super) fn slice(&mut self, over: &Over) {
        let Over { job, at, .. } = *over;
        let jobs = &mut self.jobs[over.stream];
        let (task, name) = (jobs.task, jobs.name.clone());
        let (lane, start) = jobs.lanes.lay(job.release, at);
        let track = self.lane(task, &name, lane);
        let outcome = match over.fate {
            Fate::Done if job.due.is_some_and(|due| at > due) => "late",
            Fate::Done => "done",
            Fate::Merged => "merged",
            Fate::Dropped => "dropped",
            Fate::Unfinished if over.due_by_then() > 0 => "overdue",
            Fate::Unfinished => "unfinished",
        };
        let mut notes = vec![
            ("outcome", Note::Text(outcome)),
            ("job", Note::Number(job.number)),
            ("released_ms", Note::Millis(job.release.0 as i64)),
        ];
        let title = if over.n > 1 {
            notes.push(("jobs", Note::Number(over.n)));
            format!("{name} {}…{}", job.number, job.number + over.n - 1)
        } else {
            format!("{name} {}", job.number)
        };
        if let Some(due) = job.due {
            notes.push(("due_ms", Note::Millis(due.0 as i64)));
            if over.fate == Fate::Done {
                notes.push(("lateness_ms", Note::Millis(at.0 as i64 - due.0 as i64)));
            }
        }
        self.track_event(track_event::SLICE_BEGIN, start, track, "job", &title, &notes);
        self.packet(Some(at), |m| {
            m.nested(packet::TRACK_EVENT, |m| {
                m.uint(track_event::TYPE, track_event::SLICE_END)
                    .uint(track_event::TRACK_UUID, track);
            });
        });
    }

    pub(super) fn wakeup(&mut self, at: Instant, task: TaskId, cpu: CpuId, kinds: [u32; 2]) {
        let (comm, prio, tid) = (self.comm(task), self.prio(task), self.numbers.tid(task));
        for kind in kinds {
            self.ftrace(at, cpu, 0, kind, |m| {
                m.string(sched_wakeup::COMM, &comm)
                    .int(sched_wakeup::PID, tid)
                    .int(sched_wakeup::PRIO, prio)
                    .int(sched_wakeup::SUCCESS, 1)
                    .int(sched_wakeup::TARGET_CPU, cpu.0.into());
            });
        }
    }

    pub(super) fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
    ) {
        let who = |w: &Self, task: Option<TaskId>| match task {
            Some(t) => (w.numbers.tid(t), w.comm(t)),
            None => {
                let known = w.swappers.get(cpu.index()).cloned();
                (0, known.unwrap_or_else(|| swapper(cpu.0)))
            }
        };
        let (prev_pid, prev_comm) = who(self, prev.map(|p| p.0));
        let (next_pid, next_comm) = who(self, next);
        let prio = |w: &Self, task: Option<TaskId>| task.map_or(PRIO, |t| w.prio(t));
        let (prev_prio, next_prio) = (prio(self, prev.map(|p| p.0)), prio(self, next));
        // The kernel's state bits: R, S, X.
        let state = match prev.map(|p| p.1) {
            None | Some(SwitchOut::Preempted) => 0,
            Some(SwitchOut::Sleeping) => 1,
            Some(SwitchOut::Exited) => 16,
        };
        if let Some((task, SwitchOut::Exited)) = prev {
            let tgid = self.tgid(task);
            self.ftrace(at, cpu, prev_pid, ftrace::SCHED_PROCESS_EXIT, |m| {
                m.string(sched_process_exit::COMM, &prev_comm)
                    .int(sched_process_exit::PID, prev_pid)
                    .int(sched_process_exit::TGID, tgid)
                    .int(sched_process_exit::PRIO, prev_prio);
            });
        }
        self.ftrace(at, cpu, prev_pid, ftrace::SCHED_SWITCH, |m| {
            m.string(sched_switch::PREV_COMM, &prev_comm)
                .int(sched_switch::PREV_PID, prev_pid)
                .int(sched_switch::PREV_PRIO, prev_prio)
                .int(sched_switch::PREV_STATE, state)
                .string(sched_switch::NEXT_COMM, &next_comm)
                .int(sched_switch::NEXT_PID, next_pid)
                .int(sched_switch::NEXT_PRIO, next_prio);
        });
    }

    pub(super) fn migrate(&mut self, at: Instant, task: TaskId, from: CpuId, to: CpuId, why: Why) {
        let (comm, prio, tid) = (self.comm(task), self.prio(task), self.numbers.tid(task));
        self.ftrace(at, to, 0, ftrace::SCHED_MIGRATE_TASK, |m| {
            m.string(sched_wakeup::COMM, &comm)
                .int(sched_wakeup::PID, tid)
                .int(sched_wakeup::PRIO, prio)
                .int(sched_migrate_task::ORIG_CPU, from.0.into())
                .int(sched_migrate_task::DEST_CPU, to.0.into());
        });
        let thread = self.thread(task);
        let notes = [
            ("from", Note::Number(from.0.into())),
            ("to", Note::Number(to.0.into())),
            ("why", Note::Text(why.as_str())),
        ];
        self.instant(at, thread, "placement", &format!("{from} → {to}: {why}"), &notes);
    }
}
