//! The result of a run, once its trace has ended.

use super::*;
use crate::absent::{forget, forget_curves};
use crate::known::{Known, NO_FREQUENCIES};

impl Run<'_> {
    pub(super) fn finish(mut self) -> (RunResult, Option<Timeline>) {
        let end = self.state.now();
        for index in 0..self.tasks.len() {
            self.account(index);
            let t = &self.tasks[index];
            self.jobs.spent(t.id, t.energy, t.longer());
            let of = self.state.at(t.place);
            if of.first_ran.is_none() {
                self.jobs.waits(t.id, of.created);
            }
        }
        self.jobs.cut_off(end);
        self.tell_missed();
        let (cpus, energy_mj, machine_notes) =
            self.machine.finish(&self.state, &self.header.machine.platform, end);
        let known = self.known();
        let mut notes = self.notes(known, machine_notes);
        for t in &mut self.tasks {
            t.finish(self.state.at(t.place), end, &self.levels);
        }
        (0..self.tasks.len()).for_each(|index| self.tell(index));
        let lead = self.leading();
        let names: HashMap<TaskId, &str> =
            self.tasks.iter().map(|t| (t.id, t.comm.as_str())).collect();
        let work: u128 = self.tasks.iter().map(|t| t.whole.work(&self.machine)).sum();
        let gone = self.tasks.iter().filter_map(|t| self.state.at(t.place).gone);
        let exited = (gone.clone().count() as u64, self.tasks.len() as u64);
        let first = self.tasks.iter().map(|t| self.state.at(t.place).created).min();
        let last = gone.max().filter(|_| exited.0 == exited.1);
        let makespan_ms = last.zip(first).map(|(last, first)| ms(last - first));
        let pieces = match self.activations.take() {
            Some((_, activations)) => activations,
            None => self.jobs.listed(),
        };
        let pieces = pieces.into_iter().map(|(which, ns)| (which, ms(ns))).collect();
        let comm = |id| names.get(&id).map(|name: &&str| name.to_string());
        let responses = self.jobs.distributions(comm);
        let jobs = self.jobs.finish(end, comm);
        let told = self.header.run.signals.iter().any(|s| s.name == "dl_throttled");
        let mut timeline = None;
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for (index, mut t) in self.tasks.into_iter().enumerate() {
            let of = self.state.at(t.place);
            if let Some(ns) = of.awake_for(end).filter(|ns| end - ns >= self.from) {
                self.latency.cut_off(t.group, ns);
            }
            let (result, curves) =
                task_result(&mut t, of, (end, told), &self.levels, &self.machine, &mut notes);
            timeline = timeline.or(curves.filter(|_| index == lead));
            tasks.push(result);
        }
        if let Some(timeline) = &mut timeline {
            timeline.latency = self.latency.distributions();
            timeline.jobs = responses;
        }
        let (latency, waits) = self.latency.finish();
        let (heat, cooling) = self.thermal.finish(end);
        let mut result = RunResult {
            policy: self.asked.policy,
            known,
            backend: self.header.run.backend,
            platform: self.header.machine.platform.name.clone(),
            workload: self.asked.workload,
            kernel_release: self.header.run.kernel_release,
            seed: self.asked.seed,
            phase: self.asked.phase,
            settings: self.header.machine.settings,
            end_ms: ms(end),
            tasks,
            lead,
            cpus,
            latency,
            waits,
            wakes: Wakes::default(),
            freq_changes: self.freq_changes,
            work_ms: work as f64 / ONE as f64 / 1e6,
            exited,
            makespan_ms,
            jobs,
            quotas: self.quotas,
            heat,
            cooling,
            pieces,
            energy_mj,
            notes,
            cautions: Vec::new(),
        };
        let (tasks, cpus) = (result.a_second(self.wakes.0), result.a_second(self.wakes.1));
        result.wakes = Wakes { tasks, cpus, timer_interrupts: None };
        forget(&mut result);
        if let Some(timeline) = &mut timeline {
            forget_curves(known, timeline);
        }
        (result, timeline)
    }
}

impl Run<'_> {
    /// Returns what is known of machine and experiment.
    pub(super) fn known(&self) -> Known {
        let machine = self.header.machine.whence == Whence::Described;
        let experiment = self.header.asked.is_some();
        let tells = self.header.run.backend.tells_cpus();
        let domains = &self.header.machine.platform.domains;
        let fixed = machine && domains.iter().all(|domain| domain.opps.len() == 1);
        Known {
            machine,
            experiment,
            idle: tells || self.told.idle,
            frequencies: tells || fixed || self.told.freq,
        }
    }

    /// The notes for the reader on what is not known, and on what befell the run; `of_machine`: those on guessed frequencies.
    fn notes(&self, known: Known, of_machine: Vec<String>) -> Vec<String> {
        let mut notes = self.header.run.lost.clone();
        if !known.machine {
            notes.push(SEEN.into());
        }
        if !known.experiment {
            notes.push(UNASKED.into());
        }
        match known.frequencies {
            true => notes.extend(of_machine),
            false => notes.push(NO_FREQUENCIES.into()),
        }
        if self.unknown_cpus > 0 {
            notes.push(format!(
                "{} events left out: they name a CPU that {} does not have",
                self.unknown_cpus, self.header.machine.platform.name
            ));
        }
        notes.extend(self.quotas.iter().filter_map(used_up));
        notes.extend(self.thermal.too_hot());
        notes.extend(left_out(&self.header));
        notes.extend(self.machine.unseen());
        notes
    }
}

/// The note for the reader that figures leave out the start; `None`: they do not.
fn left_out(header: &Header) -> Option<String> {
    let Span(ns) = skipped(header);
    (ns > 0).then(|| {
        format!(
            "jobs, activations and wakeups of the first {} ms are not counted; bursts, energy and all else are of the whole \
             run",
            ns / 1_000_000
        )
    })
}

fn task_result(
    t: &mut Task,
    of: &Followed,
    (end, told): (u64, bool),
    levels: &Levels,
    machine: &Machine,
    notes: &mut Vec<String>,
) -> (TaskResult, Option<Timeline>) {
    let policies = std::mem::take(&mut t.policies);
    let reservation = t.reservation(of, end, told);
    notes.extend(reservation.as_ref().and_then(|r| behind(&t.comm, r)));
    let looked_for = t.watch.take().and_then(|watch| watch.finish(end));
    let whole = t.whole.result(&t.whole_longer, machine);
    let figures = t.reported();
    let mut result =
        TaskResult { policies, reservation, looked_for, whole, ..figures.result(levels, machine) };
    let timeline = figures.timeline(machine, end);
    result.task = t.id;
    result.comm = std::mem::take(&mut t.comm);
    result.bursts = t.bursts;
    (result, timeline)
}

/// The note for the reader on a deadline task that does not keep its reservation; `None`: it keeps
/// it.
fn behind(comm: &str, r: &Reservation) -> Option<String> {
    // Also one that wakes some µs before its next period is throttled until then, with all its runtime left.
    const NOTICED_MS: f64 = 0.1;
    let noticed = r.throttled.filter(|t| t.longest_ms >= NOTICED_MS);
    let throttled = noticed.map(|Throttled { n, ms, longest_ms, .. }| {
        let times = if n == 1 { "once".into() } else { format!("{n} times") };
        format!(
            "it was throttled {times}, and waited {ms:.1} ms for the next period's runtime, at most {longest_ms:.1} ms \
             at a time"
        )
    });
    let late = r.unfinished_ms.filter(|_| r.due > 0).map(|ms| {
        let due = r.due;
        let periods = if due == 1 { "period" } else { "periods" };
        format!(
            "at the run's end its activation is unfinished after {ms:.1} ms, in which {due} further \
             {periods} began"
        )
    });
    let all: Vec<String> = throttled.into_iter().chain(late).collect();
    (!all.is_empty()).then(|| format!("{comm}: {}", all.join("; ")))
}

/// The note for the reader on a group whose quota was used up; `None`: it never was.
fn used_up(q: &Quota) -> Option<String> {
    let longest = q.longest_ms.map(|ms| format!(", at most {ms:.1} ms at a time"));
    (q.throttled > 0).then(|| {
        format!(
            "{}: its quota was used up in {} of {} periods, and its CPUs waited {:.1} ms in all for the next one's{}",
            q.group, q.throttled, q.periods, q.throttled_ms, longest.unwrap_or_default()
        )
    })
}
