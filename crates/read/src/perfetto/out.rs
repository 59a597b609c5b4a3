//! The way out of the window, by time: to the common table, and to whoever takes marks and frames.

use super::bundle::Known;
use super::frames::{Frame, Frames};
use super::item::{Item, Kernel, NOBODY, Switch, What, Who};
use super::kernel::{Field, values};
use super::number::event;
use super::own::{self, Own};
use super::table::{SWITCH_PLACE, WAKING_PLACE};
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
    /// Thread that runs on each CPU, as the last switch told.
    running: Vec<Option<Who>>,
    /// Time that has been reached, in ns.
    now: u64,
}

impl<'t> Out<'t> {
    pub(super) fn new(take: &'t mut dyn Take) -> Out<'t> {
        let known = Known::default();
        let (tracks, frames) = Default::default();
        Out { take, known, tracks, frames, own: None, running: Vec::new(), now: 0 }
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
    pub(super) fn item(&mut self, at: u64, cpu: u32, item: Item) {
        self.now = at;
        let Item { pid, what, .. } = item;
        if self.own.is_some() && !self.of_own(cpu, &what) {
            return;
        }
        match what {
            What::Comes { state, next } => {
                let place = cpu as usize;
                if self.running.len() <= place {
                    self.running.resize(place + 1, None);
                }
                let prev = self.running[place].replace(next);
                self.switched(at, cpu, prev, state.into(), next);
            }
            What::Switch(switch) => {
                let Switch { prev, state, next } = *switch;
                self.switched(at, cpu, Some(prev), state, next);
            }
            What::Wakeup { row, target, who } => {
                let Known { words, feeds, .. } = &self.known;
                let Some(fed) = feeds.at(row.into()) else { return };
                let fields = [
                    comm(words, who),
                    Field::Number(who.pid.into()),
                    Field::Number(who.prio.into()),
                    Field::Number(1),
                    Field::Number(target.into()),
                ];
                self.take.event(&self.stamp(at, cpu, pid), fed.row, &fed.view(&fields));
            }
            What::Power { row, cpu: of, state } => {
                let Some(fed) = self.known.feeds.at(row.into()) else { return };
                let fields = [Field::Number(state.into()), Field::Number(of.into())];
                self.take.event(&self.stamp(at, cpu, pid), fed.row, &fed.view(&fields));
            }
            What::Kernel(kernel) => self.kernel(at, cpu, pid, &kernel),
            What::Lost => self.running.get_mut(cpu as usize).into_iter().for_each(|r| *r = None),
            What::Track(told) => self.told(at, &told),
            What::Frame(message) => {
                let mut over = Vec::new();
                self.frames.event(at, &message, &mut |frame| over.push(frame));
                over.iter().for_each(|frame| self.frame(frame));
            }
        }
    }

    fn kernel(&mut self, at: u64, cpu: u32, pid: i32, Kernel { number, message }: &Kernel) {
        let stamp = self.stamp(at, cpu, pid);
        if *number == event::GENERIC {
            if let Some((row, fields)) = self.known.feeds.generic(message) {
                self.take.event(&stamp, row, &fields);
            }
        } else if let Some(fed) = self.known.feeds.get(*number) {
            let values = values(message);
            self.take.event(&stamp, fed.row, &fed.view(&values));
        }
    }

    /// Returns time, CPU and thread of an event; the thread that runs there where the event does not say.
    #[inline]
    fn stamp(&self, at: u64, cpu: u32, pid: i32) -> Stamp<'static> {
        let running = || self.running.get(cpu as usize).copied().flatten().map_or(0, |who| who.pid);
        let pid = if pid == NOBODY { running() } else { pid };
        Stamp { at, cpu, pid, tgid: None, comm: None }
    }

    /// Takes in who is where in a trace of this project's. `false`: the event stands there in another form, too.
    fn of_own(&mut self, cpu: u32, what: &What) -> bool {
        const MIGRATE: u32 = 491;
        if !matches!(what, What::Track(_)) {
            self.own_flush();
        }
        match what {
            What::Switch(switch) => self.own_met(switch.next.pid, cpu),
            // Each of them stands before a wakeup that says the same, also of new threads, of which no kernel has one.
            What::Wakeup { row, .. } if usize::from(*row) == WAKING_PLACE => return false,
            What::Wakeup { who, target, .. } => self.own_met(who.pid, (*target).into()),
            What::Kernel(kernel) => return kernel.number != MIGRATE,
            _ => {}
        }
        true
    }

    /// Tells a switch. `prev` is `None` where nobody knows who left.
    fn switched(&mut self, at: u64, cpu: u32, prev: Option<Who>, state: u32, next: Who) {
        let Some(fed) = self.known.feeds.at(SWITCH_PLACE) else { return };
        let words = &self.known.words;
        let number = |n: Option<i64>| n.map_or(Field::None, Field::Number);
        let fields = [
            prev.map_or(Field::None, |prev| comm(words, prev)),
            number(prev.map(|prev| prev.pid.into())),
            number(prev.map(|prev| prev.prio.into())),
            Field::Number(state.into()),
            comm(words, next),
            Field::Number(next.pid.into()),
            Field::Number(next.prio.into()),
        ];
        let pid = prev.map_or(0, |prev| prev.pid);
        let stamp = Stamp { at, cpu, pid, tgid: None, comm: None };
        self.take.event(&stamp, fed.row, &fed.view(&fields));
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
fn comm(words: &Words, who: Who) -> Field<'_> {
    words.get(who.comm).map_or(Field::None, Field::Text)
}
