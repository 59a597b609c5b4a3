//! What leaves the window, by time: to the common table, and to whoever takes marks and frames.

use super::bundle::Known;
use super::frames::{Frame, Frames};
use super::item::{Item, NOBODY, What, Who};
use super::kernel::{Fed, Field, values};
use super::number::event;
use super::own::{self, Own};
use super::table::{SWITCH, WAKING};
use super::tracks::{Kind, Told, Tracks};
use super::wire::{Message, Value};
use super::words::Words;
use crate::Mark;
use crate::take::{Fact, Stamp, Take};
use risetime_kernel::units::Instant;

/// The end of a pass.
pub(super) struct Out<'t> {
    pub(super) take: &'t mut dyn Take,
    pub(super) known: Known,
    pub(super) tracks: Tracks,
    frames: Frames,
    /// State of a trace that this project wrote; `None`: it is another's.
    pub(super) own: Option<Box<Own>>,
    /// Ways of the events that come most.
    switch: Option<Fed>,
    /// Of the stamp of marks: the latest time.
    now: u64,
}

impl<'t> Out<'t> {
    pub(super) fn new(take: &'t mut dyn Take) -> Out<'t> {
        let known = Known::default();
        let switch = known.feeds.get(SWITCH).cloned();
        let (tracks, frames) = Default::default();
        Out { take, known, tracks, frames, own: None, switch, now: 0 }
    }

    pub(super) fn note(&mut self, note: &str) {
        self.take.fact(&Fact::Note(note));
    }

    pub(super) fn damage(&mut self, offset: u64, what: &str) {
        self.take.fact(&Fact::Damage { offset, what });
    }

    /// Tells the clock of the trace.
    pub(super) fn clock(&mut self) {
        let own = self.own.as_ref().and_then(|own| own.clock);
        self.take.fact(&Fact::Clock(own.unwrap_or(self.known.clocks.clock())));
    }

    /// Tells what the window still had of frames.
    pub(super) fn finish(&mut self) {
        self.own_flush();
        let mut over = Vec::new();
        self.frames.finish(&mut |frame| over.push(frame));
        over.iter().for_each(|frame| self.frame(frame));
    }

    /// Tells an item, at its time or the one that has been reached.
    pub(super) fn item(&mut self, at: u64, item: Item) {
        self.now = at;
        let Item { cpu, pid, what, .. } = item;
        if self.own.is_some() && !self.of_own(cpu, &what) {
            return;
        }
        match what {
            What::Switch { prev, state, next } => self.switched(at, cpu, prev, state, next),
            What::Wakeup { row, who, target } => {
                let Known { words, feeds, .. } = &self.known;
                let Some(fed) = feeds.get(row.number) else { return };
                let fields = [
                    comm(words, who),
                    Field::Number(who.pid.into()),
                    Field::Number(who.prio.into()),
                    Field::Number(1),
                    Field::Number(target.into()),
                ];
                self.take.event(&stamp(at, cpu, pid), fed.row, &fed.view(&fields));
            }
            What::Power { row, cpu: of, state } => {
                let Some(fed) = self.known.feeds.get(row.number) else { return };
                let fields = [Field::Number(state.into()), Field::Number(of.into())];
                self.take.event(&stamp(at, cpu, pid), fed.row, &fed.view(&fields));
            }
            What::Kernel { number: event::GENERIC, message } => {
                if let Some((row, fields)) = self.known.feeds.generic(&message) {
                    self.take.event(&stamp(at, cpu, pid), row, &fields);
                }
            }
            What::Kernel { number, message } => {
                if let Some(fed) = self.known.feeds.get(number) {
                    let values = values(&message);
                    self.take.event(&stamp(at, cpu, pid), fed.row, &fed.view(&values));
                }
            }
            What::Track(told) => self.told(at, &told),
            What::Frame(message) => {
                let mut over = Vec::new();
                self.frames.event(at, &message, &mut |frame| over.push(frame));
                over.iter().for_each(|frame| self.frame(frame));
            }
        }
    }

    /// Takes in who is where in a trace of this project's. `false`: the event stands there in another form, too.
    fn of_own(&mut self, cpu: u32, what: &What) -> bool {
        const MIGRATE: u32 = 491;
        if !matches!(what, What::Track(_)) {
            self.own_flush();
        }
        match what {
            What::Switch { next, .. } => self.own_met(next.pid, cpu),
            // Each of them stands before a wakeup that says the same, also of new threads, of which no kernel has one.
            What::Wakeup { row, .. } if row.number == WAKING => return false,
            What::Wakeup { who, target, .. } => self.own_met(who.pid, *target as u32),
            What::Kernel { number: MIGRATE, .. } => return false,
            _ => {}
        }
        true
    }

    fn switched(&mut self, at: u64, cpu: u32, prev: Who, state: u32, next: Who) {
        let Some(fed) = &self.switch else { return };
        let words = &self.known.words;
        let who = |number: i32| match prev == Who::NOBODY {
            true => Field::None,
            false => Field::Number(number.into()),
        };
        let fields = [
            comm(words, prev),
            who(prev.pid),
            who(prev.prio),
            Field::Number(state.into()),
            comm(words, next),
            Field::Number(next.pid.into()),
            Field::Number(next.prio.into()),
        ];
        self.take.event(&stamp(at, cpu, prev.pid), fed.row, &fed.view(&fields));
    }

    /// Tells a track event.
    fn told(&mut self, at: u64, told: &Told) {
        if self.own.is_some() {
            if !matches!(told.kind, Kind::Counter(_)) {
                self.own_flush();
            }
            if self.own_told(at, told) {
                return;
            }
        }
        let (tid, process) = self.tracks.owner(told.track);
        let stamp = Stamp { at, pid: tid.unwrap_or(0), tgid: process, ..Stamp::default() };
        let process = process.unwrap_or(0);
        let name = String::from_utf8_lossy(&told.name);
        let cookie = told.track as i64;
        match told.kind {
            Kind::Begin if tid.is_some() => {
                self.take.mark(&stamp, process, &Mark::Begin { name: &name });
            }
            Kind::End if tid.is_some() => self.take.mark(&stamp, process, &Mark::End),
            Kind::Begin => {
                self.tracks.opens(told.track, &told.name);
                self.take.mark(&stamp, process, &Mark::AsyncBegin { name: &name, cookie });
            }
            Kind::End => {
                if let Some(name) = self.tracks.closes(told.track) {
                    let name = String::from_utf8_lossy(&name);
                    self.take.mark(&stamp, process, &Mark::AsyncEnd { name: &name, cookie });
                }
            }
            Kind::Instant => self.take.mark(&stamp, process, &Mark::Text(&name)),
            Kind::Counter(count) => {
                let value = self.tracks.count(told.track, count);
                let track = self.tracks.get(told.track);
                let of_track = track.map(|track| String::from_utf8_lossy(&track.name));
                let name = match of_track {
                    Some(track) if !track.is_empty() => track,
                    _ => name,
                };
                let value = value.round() as i64;
                self.take.mark(&stamp, process, &Mark::Counter { name: &name, value });
            }
        }
    }

    fn frame(&mut self, frame: &Frame) {
        let instants = |(from, to): (u64, u64)| (Instant(from), Instant(to));
        let stamp = Stamp { at: self.now, ..Stamp::default() };
        let mark = Mark::Frame {
            layer: &frame.layer,
            token: frame.token,
            expected: frame.expected.map(instants),
            actual: instants(frame.actual),
            jank: frame.jank,
        };
        self.take.mark(&stamp, frame.process, &mark);
    }

    /// Takes in a `TrackDescriptor`.
    pub(super) fn track(&mut self, bytes: &[u8]) {
        let is_own = |(number, value): (u32, Value<'_>)| match number {
            1 => value.number() == own::RUN,
            2 => value.bytes() == b"risetime",
            _ => false,
        };
        if self.own.is_none() && Message::new(bytes).filter(|field| is_own(*field)).count() == 2 {
            self.own = Some(Box::default());
        }
        if let Some((tid, tgid, comm)) = self.tracks.describe(bytes) {
            let comm = comm.filter(|comm| !comm.is_empty());
            self.take.fact(&Fact::Thread { pid: tid, tgid, comm });
        }
    }

    /// Takes in a `ProcessTree`.
    pub(super) fn process_tree(&mut self, bytes: &[u8]) {
        for (number, value) in Message::new(bytes) {
            let (mut pid, mut tgid, mut name, mut is_comm) = (0, None, None, false);
            for (field, value) in Message::new(value.bytes()) {
                match (number, field) {
                    (1 | 2, 1) => pid = value.int(),
                    (2, 2) => name = Some(value.bytes()),
                    (2, 3) => tgid = Some(value.int()),
                    (1, 3) if name.is_none() => name = Some(value.bytes()),
                    (1, 8 | 9) => is_comm |= value.number() != 0,
                    _ => {}
                }
            }
            match number {
                // A process's command line is not its main thread's name, unless it is said to be.
                1 => {
                    let comm = name.filter(|_| is_comm);
                    self.take.fact(&Fact::Thread { pid, tgid: Some(pid), comm });
                }
                2 => self.take.fact(&Fact::Thread { pid, tgid, comm: name }),
                _ => {}
            }
        }
    }

    /// Takes in a `SystemInfo`: the kernel's release, the number of CPUs.
    pub(super) fn system_info(&mut self, bytes: &[u8]) {
        for (number, value) in Message::new(bytes) {
            match number {
                1 => {
                    let release = Message::new(value.bytes()).find(|(number, _)| *number == 3);
                    if let Some((_, release)) = release {
                        let release = String::from_utf8_lossy(release.bytes());
                        self.take.fact(&Fact::Release(&release));
                    }
                }
                8 => self.take.fact(&Fact::Cpus(value.uint())),
                _ => {}
            }
        }
    }

    /// Takes in an `FtraceStats`: what the kernel's buffers had lost at the end.
    pub(super) fn ftrace_stats(&mut self, bytes: &[u8]) {
        const END: u32 = 2;
        let phase = Message::new(bytes).find(|(number, _)| *number == 1);
        if phase.is_none_or(|(_, phase)| phase.uint() != END) {
            return;
        }
        for (_, value) in Message::new(bytes).filter(|(number, _)| *number == 2) {
            let (mut cpu, mut overrun, mut dropped) = (0, 0, 0);
            for (number, value) in Message::new(value.bytes()) {
                match number {
                    1 => cpu = value.number(),
                    3 => overrun = value.number(),
                    8 => dropped = value.number(),
                    _ => {}
                }
            }
            if overrun > 0 || dropped > 0 {
                self.note(&format!(
                    "CPU {cpu}: the kernel's buffer had overwritten {overrun} events by the end, and dropped {dropped}"
                ));
            }
        }
    }
}

#[inline]
fn stamp(at: u64, cpu: u32, pid: i32) -> Stamp<'static> {
    Stamp { at, cpu, pid: if pid == NOBODY { 0 } else { pid }, tgid: None, comm: None }
}

#[inline]
fn comm(words: &Words, who: Who) -> Field<'_> {
    words.get(who.comm).map_or(Field::None, Field::Text)
}
