//! The first pass: what a header has to say before the first event.

mod domains;

use crate::Fault;
use crate::events::Row;
use crate::take::{Began, Fact};
use domains::Domains;
use risetime_kernel::units::{Capacity, CpuId, Span};
use risetime_model::platform::{Domain, Opp, Topology};
use risetime_model::{Code, Platform, Settings};
use risetime_trace::{
    BackendKind, Clock, Event, Header, Image, MachineInfo, Origin, Run, Signal, Threads, Whence,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// CPUs that a machine may have; events of others are none.
pub(crate) const MAX_CPUS: u32 = risetime_model::platform::MAX_CPUS as u32;
/// Damages and notes that are named one by one.
const NAMED: usize = 20;
/// Losses that are kept one by one; from the first one beyond on nothing is known of its CPU.
const GAPS: usize = 1 << 20;
/// Ticks per second where nobody told.
const HZ: u32 = 250;

/// Losses of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    times: u64,
    events: u64,
    /// True if for some of the losses nobody knows how many events they were.
    open: bool,
}

/// Facts of a trace, from its first pass.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    records: u64,
    first: Option<u64>,
    last: u64,
    /// Number of CPUs that events name, and that the file states.
    cpus: u32,
    stated: u32,
    /// Time of the last event of each CPU.
    last_of: Vec<u64>,
    clock: Option<Clock>,
    other_clock: Option<String>,
    release: Option<String>,
    domains: Domains,
    capacities: BTreeMap<u32, u64>,
    rows: Vec<&'static Row>,
    signals: Vec<&'static str>,
    begins: Option<u64>,
    lost: BTreeMap<u32, Losses>,
    gaps: Vec<(u64, u32)>,
    damages: Vec<String>,
    more_damages: u64,
    notes: Vec<String>,
    backwards: u64,
    beyond: u64,
    /// Threads with the names that they had last.
    pub(crate) threads: Threads,
    /// Evidence on which numbers of task states the kernel has.
    pub(crate) states: crate::events::States,
}

impl Survey {
    /// Number of events of the table.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Takes in that a record of this row was found at `at`. False: its CPU is none.
    #[inline]
    pub(crate) fn record(&mut self, at: u64, cpu: u32, row: &'static Row) -> bool {
        if cpu >= MAX_CPUS {
            self.beyond += 1;
            return false;
        }
        self.records += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at);
        self.names(cpu);
        let last = &mut self.last_of[cpu as usize];
        *last = at.max(*last);
        if !self.rows.iter().any(|known| std::ptr::eq(*known, row)) {
            self.rows.push(row);
            row.signals.iter().for_each(|signal| self.signal(signal));
        }
        true
    }

    #[inline]
    fn names(&mut self, cpu: u32) {
        if cpu >= self.cpus && cpu < MAX_CPUS {
            self.cpus = cpu + 1;
            self.last_of.resize(self.cpus as usize, 0);
        }
    }

    /// Takes in that the trace has a signal.
    pub(crate) fn signal(&mut self, name: &'static str) {
        if !self.signals.contains(&name) {
            self.signals.push(name);
        }
    }

    /// Takes in that `n` events went back in time.
    pub(crate) fn went_back(&mut self, n: u64) {
        self.backwards += n;
    }

    /// Takes in a typed event.
    pub(crate) fn event(&mut self, at: u64, event: &Event) {
        if let Some(cpu) = event.cpu() {
            self.names(cpu.0);
        }
        match *event {
            Event::Freq { cpu, freq } => self.domains.runs_at(at, cpu.0, freq.0),
            Event::CpuFrequencyLimits { cpu, max, .. } => self.domains.limited(cpu.0, max.0),
            _ => {}
        }
    }

    /// Takes in the capacity that a CPU has of its own.
    pub(crate) fn capacity(&mut self, cpu: u32, capacity: u64) {
        if cpu < MAX_CPUS && (1..=1024).contains(&capacity) {
            self.capacities.insert(cpu, capacity);
        }
    }

    /// Takes in a fact.
    pub(crate) fn fact(&mut self, fact: &Fact<'_>) {
        match *fact {
            Fact::Cpus(n) => self.stated = n.min(MAX_CPUS),
            Fact::Clock(clock) => self.clock = Some(clock),
            Fact::OtherClock(what) => self.other_clock = Some(what.to_string()),
            Fact::Release(release) => self.release = Some(release.to_string()),
            Fact::Began { began: Began::At(at), .. } => {
                self.begins = Some(self.begins.map_or(at, |begins| begins.max(at)));
            }
            Fact::Began { cpu, began: Began::WithTrace } => self.names(cpu),
            Fact::Lost { cpu, since, events } => self.loses(cpu, since, events),
            Fact::Damage { offset, what } => {
                if self.damages.len() < NAMED {
                    self.damages.push(format!("damaged at byte {offset}: {what}"));
                } else {
                    self.more_damages += 1;
                }
            }
            Fact::Note(note) => {
                if self.notes.len() < NAMED && !self.notes.iter().any(|known| known == note) {
                    self.notes.push(note.to_string());
                }
            }
            Fact::Thread { .. } | Fact::States { .. } => {}
        }
    }

    fn loses(&mut self, cpu: u32, since: Option<u64>, events: Option<u64>) {
        if cpu >= MAX_CPUS {
            return;
        }
        self.names(cpu);
        let losses = self.lost.entry(cpu).or_default();
        losses.times += 1;
        losses.open |= events.is_none();
        losses.events = losses.events.saturating_add(events.unwrap_or(0));
        let since = since.unwrap_or(self.last_of[cpu as usize]);
        if self.gaps.len() < GAPS {
            self.gaps.push((since, cpu));
        }
    }

    /// Ends the pass: puts what was found in order.
    pub(crate) fn finish(&mut self) {
        self.gaps.sort_unstable();
        self.gaps.dedup();
    }

    /// Time 0 of the trace that is pushed, in ns by the file's clock: from here on every CPU's buffer tells.
    pub(crate) fn base(&self) -> u64 {
        self.first.unwrap_or(0).max(self.begins.unwrap_or(0))
    }

    /// End of the trace, in ns by the file's clock.
    pub(crate) fn end(&self) -> u64 {
        let last_gap = self.gaps.last().map_or(0, |gap| gap.0);
        self.last.max(self.base()).max(last_gap)
    }

    /// Times from which on nothing is known of a CPU, ascending.
    pub(crate) fn gaps(&self) -> &[(u64, u32)] {
        &self.gaps
    }

    /// Number of CPUs of the machine.
    fn nr_cpus(&self) -> u32 {
        self.cpus.max(self.stated).max(1)
    }

    /// The header: the machine is `described`, or what was seen.
    ///
    /// Errors: a description with fewer CPUs than the trace has.
    pub(crate) fn header(
        &self,
        described: Option<Arc<Platform>>,
        name: &str,
    ) -> Result<Header, Fault> {
        let cpus = self.nr_cpus() as usize;
        if let Some(platform) = described.as_ref().filter(|p| p.nr_cpus() < cpus) {
            let what = format!(
                "has events of {cpus} CPUs, the platform `{}` has {}",
                platform.name,
                platform.nr_cpus()
            );
            return Err(Fault::new(name, what)
                .code(Code::Invalid)
                .hint("name the platform of the machine that the trace is of, or none"));
        }
        let whence = if described.is_some() { Whence::Described } else { Whence::Seen };
        let signal = |name: &&'static str| Signal { name, origin: Origin::Recorded };
        Ok(Header {
            run: Run {
                backend: BackendKind::File,
                kernel_release: self.release.clone().unwrap_or_else(|| "unknown".into()),
                clock: self.clock.unwrap_or(Clock::Local),
                signals: self.signals.iter().map(signal).collect(),
                lost: self.losses(),
            },
            asked: None,
            machine: MachineInfo {
                platform: described.unwrap_or_else(|| Arc::new(self.seen())),
                whence,
                settings: Settings::default(),
            },
            image: Image::default(),
        })
    }

    /// Losses in words, by CPU.
    fn losses(&self) -> Vec<String> {
        let line = |(cpu, l): (&u32, &Losses)| match (l.events, l.open) {
            (0, _) => format!("CPU {cpu}: events were lost, at {} places", l.times),
            (n, false) => format!("CPU {cpu}: {n} events were lost, at {} places", l.times),
            (n, true) => {
                format!("CPU {cpu}: more than {n} events were lost, at {} places", l.times)
            }
        };
        self.lost.iter().map(line).collect()
    }

    /// The machine as the trace shows it.
    fn seen(&self) -> Platform {
        let said = || "seen in the trace".to_string();
        let capacity = |cpus: &[CpuId]| {
            let first = cpus.first().and_then(|cpu| self.capacities.get(&cpu.0));
            Capacity(first.copied().unwrap_or(1024))
        };
        let domain = |(cpus, freqs): (Vec<CpuId>, Vec<risetime_kernel::units::KHz>)| Domain {
            capacity: capacity(&cpus),
            cpus,
            cluster: 0,
            fast_switch: true,
            transition_delay_us: None,
            energy_model: false,
            opps: freqs
                .into_iter()
                .map(|freq| Opp::new(freq, risetime_kernel::units::MicroWatts(0), Span(0)))
                .collect(),
            levels: None,
            idle: Vec::new(),
            work: Vec::new(),
        };
        Platform {
            name: "seen".into(),
            about: said(),
            hz: HZ,
            domains: self.domains.all(self.nr_cpus()).into_iter().map(domain).collect(),
            topology: Topology::default(),
            thermal: Vec::new(),
            sources: ["capacity", "opp"].map(|key| (key.to_string(), said())).into(),
            doubts: Vec::new(),
        }
    }

    /// Notes for the reader of a report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if let (Some(first), Some(begins)) = (self.first, self.begins)
            && begins > first
        {
            notes.push(format!(
                "figures begin {}.{:03} ms after the file's first event: before, some CPU's events were overwritten",
                (begins - first) / 1_000_000,
                (begins - first) / 1000 % 1000
            ));
        }
        if let Some(clock) = &self.other_clock {
            notes.push(format!("the clock of the trace is {clock}"));
        }
        if self.backwards > 0 {
            notes.push(format!(
                "{} events lie before the one that they follow, and are taken to be of its time",
                self.backwards
            ));
        }
        if self.beyond > 0 {
            notes.push(format!(
                "{} events of CPUs above {} were left out",
                self.beyond,
                MAX_CPUS - 1
            ));
        }
        notes.extend(self.damages.iter().cloned());
        if self.more_damages > 0 {
            notes.push(format!("{} more damages", self.more_damages));
        }
        notes
    }
}
