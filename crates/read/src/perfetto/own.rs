//! Traces that this project wrote (`--perfetto`): what stands there in tracks and is an event of a trace becomes that again.
//!
//! ```text
//!   counters of a thread       sched_pelt_se, sched_util_est_se, uclamp_util_se; WaitingAvg
//!   counters of a CPU          sched_pelt_cfs, sched_pelt_rt … hw, sched_cpu_capacity, uclamp_util_cfs
//!   moments on a thread        Migrate with its reason, MaxSpeed, Phase, Throttled
//!   moments of a governor      FreqRequest with its reason
//!   moments of a CPU           Misfit, Unseen
//!   the rest                   sched_overutilized, Hotplug, thermal_temperature
//! ```
//!
//! Sums and periods of signals are not in the file. Jobs and powers stay marks. The numbers of tracks are the writer's
//! (crates/trace/src/write/perfetto/track.rs): `kind << 32 | index`.

use super::kernel::{Field, Named};
use super::out::Out;
use super::tracks::{Count, Kind, Told};
use super::wire::{Message, Value};
use crate::events;
use crate::take::{Fact, Stamp};
use risetime_kernel::units::{CpuId, KHz, Util};
use risetime_trace::{Clock, Event, Name, Why};
use std::collections::BTreeMap;

/// Number of the track "risetime".
pub(super) const RUN: u64 = 1 << 32;
/// Most threads whose CPU is remembered.
const MOST: usize = 1 << 18;

/// State of a trace that this project wrote.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) clock: Option<Clock>,
    /// CPU on which each thread was met last.
    pub(super) cpus: BTreeMap<i32, u32>,
    /// Values of the counters that make an event together, by its name and whose it is.
    values: BTreeMap<(&'static str, i64), Vec<(&'static str, i64)>>,
    /// The event that is still to be told: other counters of the same time may belong to it.
    pending: Option<(u64, &'static str, i64)>,
}

/// A note beside a moment.
enum Note<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// Notes beside a moment, by their names.
fn notes(raw: &[u8]) -> impl Iterator<Item = (&[u8], Note<'_>)> {
    let of = Message::new(raw).filter(|(number, _)| *number == 4);
    of.map(|(_, value)| {
        let (mut name, mut note) = (&b""[..], Note::Number(0));
        for (number, value) in Message::new(value.bytes()) {
            match (number, value) {
                (10, Value::Bytes(bytes)) => name = bytes,
                (6, Value::Bytes(bytes)) => note = Note::Text(bytes),
                (2..=4, _) => note = Note::Number(value.signed()),
                _ => {}
            }
        }
        (name, note)
    })
}

fn number(raw: &[u8], wanted: &str) -> Option<i64> {
    notes(raw).find_map(|(name, note)| match note {
        Note::Number(n) if name == wanted.as_bytes() => Some(n),
        _ => None,
    })
}

fn text<'a>(raw: &'a [u8], wanted: &str) -> Option<&'a str> {
    notes(raw).find_map(|(name, note)| match note {
        Note::Text(text) if name == wanted.as_bytes() => std::str::from_utf8(text).ok(),
        _ => None,
    })
}

/// The event and the field that a counter of this kind of track is, and whose it is.
fn counter(kind: u64) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match kind {
        7 => ("sched_overutilized", "overutilized", ""),
        8 => ("sched_pelt_se", "util_avg", "pid"),
        9 => ("sched_pelt_se", "runnable_avg", "pid"),
        10 => ("sched_util_est_se", "util_est", "pid"),
        11 => ("sched_pelt_cfs", "util_avg", "cpu"),
        12 => ("sched_pelt_cfs", "runnable_avg", "cpu"),
        13 => ("sched_pelt_cfs", "util_est", "cpu"),
        14 => ("sched_cpu_capacity", "capacity", "cpu"),
        15 => ("sched_pelt_rt", "util_avg", "cpu"),
        16 => ("sched_pelt_dl", "util_avg", "cpu"),
        17 => ("sched_pelt_irq", "util_avg", "cpu"),
        18 => ("sched_pelt_hw", "util_avg", "cpu"),
        22 => ("uclamp_util_se", "uclamp_min", "pid"),
        23 => ("uclamp_util_se", "uclamp_max", "pid"),
        24 => ("uclamp_util_cfs", "uclamp_min", "cpu"),
        25 => ("uclamp_util_cfs", "uclamp_max", "cpu"),
        30 => ("thermal_temperature", "temp", "id"),
        _ => return None,
    })
}

impl Out<'_> {
    /// Tells a track event of this project's as what it was; `false`: it is a mark.
    pub(super) fn own_told(&mut self, at: u64, told: &Told) -> bool {
        let (kind, index) = ((told.track >> 32) & 0xff, told.track as u32);
        match told.kind {
            Kind::Counter(count) => self.own_counter(at, told.track, kind, index, count),
            Kind::Instant => self.own_instant(at, told, kind, index),
            _ => false,
        }
    }

    fn own_counter(&mut self, at: u64, track: u64, kind: u64, index: u32, count: Count) -> bool {
        let value = match count {
            Count::Whole(n) => n,
            // Thousandths of the unit, as a fraction.
            Count::Fraction(bits) => (f64::from_bits(bits) * 1e3).round() as i64,
        };
        let tid = self.tracks.thread_of(track);
        if kind == 21 {
            self.own_flush();
            let stamp = self.own_stamp(at, tid.unwrap_or(0));
            if let Some(task) = tid.and_then(|tid| self.take.task(&stamp, tid, None)) {
                let waiting_avg = Util(value as u64);
                self.take.typed(at, &Event::WaitingAvg { task, waiting_avg });
            }
            return true;
        }
        let Some((event, field, of)) = counter(kind) else { return (19..=20).contains(&kind) };
        let whose = match of {
            "pid" => i64::from(tid.unwrap_or(0)),
            _ => index.into(),
        };
        if self.own.as_ref().is_some_and(|own| own.pending != Some((at, event, whose))) {
            self.own_flush();
        }
        let Some(own) = &mut self.own else { return false };
        let values = own.values.entry((event, whose)).or_insert_with(|| vec![(of, whose)]);
        match values.iter_mut().find(|(name, _)| *name == field) {
            Some(known) => known.1 = value,
            None => values.push((field, value)),
        }
        own.pending = Some((at, event, whose));
        true
    }

    /// Tells the event whose counters have all come.
    pub(super) fn own_flush(&mut self) {
        let Some(own) = &mut self.own else { return };
        let Some((at, name, whose)) = own.pending.take() else { return };
        let Some(values) = own.values.get(&(name, whose)).cloned() else { return };
        let Some(row) = events::row(name) else { return };
        let tid =
            values.iter().find(|(field, _)| *field == "pid").map_or(0, |(_, tid)| *tid as i32);
        let stamp = self.own_stamp(at, tid);
        let mut named = Named::default();
        for (field, value) in values {
            named.set(row, field, Field::Number(value));
        }
        if tid > 0 {
            named.set(row, "cpu", Field::Number(stamp.cpu.into()));
        }
        self.take.event(&stamp, row, &named);
    }

    fn own_stamp(&self, at: u64, tid: i32) -> Stamp<'static> {
        let cpu = self.own.as_ref().and_then(|own| own.cpus.get(&tid)).copied().unwrap_or(0);
        Stamp { at, cpu, pid: tid, ..Stamp::default() }
    }

    fn own_instant(&mut self, at: u64, told: &Told, kind: u64, index: u32) -> bool {
        const THREAD: u64 = 4;
        const CPU: u64 = 5;
        const GOVERNOR: u64 = 6;
        let category = Message::new(&told.raw).find(|(number, _)| *number == 22);
        let category = category.map_or(&b""[..], |(_, value)| value.bytes());
        let (raw, cpu) = (&told.raw, CpuId(index));
        let of = |name: &str| number(raw, name);
        match (kind, category) {
            (1, b"run") => {
                let clock = text(raw, "clock");
                let clock = Clock::ALL.into_iter().find(|of| clock == Some(of.as_str()));
                self.own.iter_mut().for_each(|own| own.clock = clock);
                true
            }
            (1, b"overutilized") => true,
            (1, b"hotplug") => {
                let name = String::from_utf8_lossy(&told.name);
                let mut words = name.split(' ').skip(1);
                let cpu = words.next().and_then(|cpu| cpu.parse().ok()).map(CpuId);
                let Some(cpu) = cpu else { return false };
                let online = words.next() == Some("online");
                self.take.typed(at, &Event::Hotplug { cpu, online });
                true
            }
            (CPU, b"unseen") => {
                self.take.fact(&Fact::Lost { cpu: index, since: Some(at), events: None });
                true
            }
            (CPU, b"misfit") => {
                let tid = of("tid").map(|tid| tid as i32);
                let stamp = self.own_stamp(at, tid.unwrap_or(0));
                let task = tid.and_then(|tid| self.take.task(&stamp, tid, None));
                self.take.typed(at, &Event::Misfit { cpu, task });
                true
            }
            (GOVERNOR, b"frequency") => {
                let (Some(util), Some(freq)) = (of("util"), of("freq_khz")) else { return false };
                let why = Why::other(text(raw, "why").unwrap_or("unknown"));
                let (util, freq) = (Util(util as u64), KHz(freq as u64));
                self.take.typed(at, &Event::FreqRequest { cpu, util, freq, why });
                true
            }
            (THREAD, _) => self.of_thread(at, told, category),
            _ => false,
        }
    }

    fn of_thread(&mut self, at: u64, told: &Told, category: &[u8]) -> bool {
        let Some(tid) = self.tracks.thread_of(told.track) else { return false };
        let (raw, stamp) = (&told.raw, self.own_stamp(at, tid));
        let of = |name: &str| number(raw, name);
        // A task that is new is told by its wakeup, at the same time: not by a moment before it.
        if told.name.starts_with(b"created on ") {
            return true;
        }
        let Some(task) = self.take.task(&stamp, tid, None) else { return false };
        let event = match category {
            b"placement" => match (of("from"), of("to"), of("max_speed")) {
                (Some(from), Some(to), _) => {
                    let why = Why::other(text(raw, "why").unwrap_or("unknown"));
                    let (from, to) = (CpuId(from as u32), CpuId(to as u32));
                    Event::Migrate { task, from, to, why }
                }
                (_, _, Some(speed)) => Event::MaxSpeed { task, max_speed: Util(speed as u64) },
                _ => return false,
            },
            b"phase" => {
                let name = Name::new(&String::from_utf8_lossy(&told.name));
                Event::Phase { task, index: of("phase").unwrap_or(0) as u32, name }
            }
            b"deadline" => Event::Throttled { task, on: &*told.name == b"runtime used up" },
            _ => return false,
        };
        self.take.typed(at, &event);
        true
    }

    /// Notes the CPU on which a thread was met.
    pub(super) fn own_met(&mut self, tid: i32, cpu: u32) {
        if let Some(own) = &mut self.own
            && own.cpus.len() < MOST
        {
            own.cpus.insert(tid, cpu);
        }
    }
}
