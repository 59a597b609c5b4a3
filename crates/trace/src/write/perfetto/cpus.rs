//! The tracks of CPUs and frequency domains: frequencies, requests, caps, misfits; and the notes about the run.

use super::*;

impl<W: io::Write> Writer<W> {
    pub(super) fn freq(&mut self, at: Instant, cpu: CpuId, freq: KHz) {
        let cpus = self.domains.get(&cpu.0).cloned().unwrap_or_else(|| vec![cpu]);
        for cpu in cpus {
            self.ftrace(at, cpu, 0, ftrace::CPU_FREQUENCY, |m| {
                m.uint(cpu_power::STATE, freq.0).uint(cpu_power::CPU_ID, cpu.0.into());
            });
        }
    }

    /// Writes a request; `again`: the one before it left the same frequency unchanged.
    pub(super) fn request(
        &mut self,
        at: Instant,
        cpu: CpuId,
        (util, freq, why): (u64, KHz, Why),
        again: bool,
    ) {
        let track = self.governor(cpu);
        self.counter(at, Track::RequestFreq, cpu.0, freq.0, |_| Some(track));
        self.counter(at, Track::RequestUtil, cpu.0, util, |_| Some(track));
        if again && why == Why::Unchanged {
            return;
        }
        let notes = [
            ("util", Note::Number(util)),
            ("freq_khz", Note::Number(freq.0)),
            ("why", Note::Text(why.as_str())),
        ];
        self.instant(at, track, "frequency", why.as_str(), &notes);
    }

    pub(super) fn cooling(&mut self, at: Instant, cpu: CpuId, max: KHz, zone: u32) {
        let track = self.governor(cpu);
        let name = self.zone(zone);
        self.counter(at, Track::MaxFreq, cpu.0, max.0, |_| Some(track));
        let notes = [("max_khz", Note::Number(max.0)), ("zone", Note::Text(&name))];
        let what = format!("cooling of {name}: at most {} kHz", max.0);
        self.instant(at, track, "thermal", &what, &notes);
    }

    /// The name of a thermal zone.
    pub(super) fn zone(&self, zone: u32) -> Arc<str> {
        let known = self.zones.get(zone as usize).cloned();
        known.unwrap_or_else(|| format!("zone {zone}").into())
    }

    pub(super) fn misfit(&mut self, at: Instant, cpu: CpuId, task: Option<TaskId>) {
        let track = self.cpu(cpu);
        match task {
            Some(task) => {
                let comm = self.comm(task);
                let tid = Note::Number(self.numbers.tid(task) as u64);
                let notes = [("task", Note::Text(&comm)), ("tid", tid)];
                self.instant(at, track, "misfit", &format!("misfit: {comm}"), &notes);
            }
            None => self.instant(at, track, "misfit", "misfit cleared", &[]),
        }
    }

    pub(super) fn about(&mut self, header: &Header) {
        let Header { run, asked, machine, .. } = header;
        let mut notes = vec![
            ("backend".to_owned(), run.backend.to_string()),
            ("platform".to_owned(), machine.platform.name.clone()),
            ("kernel".to_owned(), run.kernel_release.clone()),
            ("clock".to_owned(), run.clock.as_str().to_owned()),
        ];
        let mut title = machine.platform.name.clone();
        if let Some(Asked { workload, policy, phase, seed, .. }) = asked {
            title = format!("{workload} on {title}, {policy}");
            let asked = [
                ("workload".to_owned(), workload.clone()),
                ("policy".to_owned(), policy.clone()),
                ("seed".to_owned(), seed.to_string()),
                ("phase_us".to_owned(), micros(*phase)),
            ];
            // In the order in which files have had them.
            let (workload, seed) = asked.split_at(2);
            notes.splice(2..2, workload.iter().cloned());
            notes.extend_from_slice(seed);
        }
        for (name, value) in &machine.settings {
            let value = match value {
                Value::Int(n) => n.to_string(),
                Value::Name(s) => s.clone(),
            };
            notes.push((format!("set.{name}"), value));
        }
        for signal in &run.signals {
            notes.push((
                format!("signal.{}", signal.name),
                format!("{:?}", signal.origin).to_lowercase(),
            ));
        }
        notes.extend(run.lost.iter().enumerate().map(|(i, l)| (format!("lost.{i}"), l.clone())));
        let notes: Vec<_> = notes.iter().map(|(k, v)| (k.as_str(), Note::Text(v))).collect();
        self.describe(Track::Run.of(0), None, "risetime", |_| {});
        self.instant(Instant(0), Track::Run.of(0), "run", &title, &notes);
    }
}
