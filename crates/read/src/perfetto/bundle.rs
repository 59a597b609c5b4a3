//! Bundles of a CPU's kernel events: the compact form of switches and wakeups, and ordinary events.
//!
//! The compact form tells of a switch only who comes and in which state the other leaves: who that was follows from the switch
//! before, if nothing was lost in between.

use super::clocks::{BOOT, ClockId, Clocks, MONOTONIC_RAW, RING};
use super::item::{Item, Kernel, NOBODY, Switch, What, Who};
use super::kernel::Feeds;
use super::number::{bundle, compact, event};
use super::table;
use super::wire::{Message, Packed, Value, varint};
use super::words::{UNTOLD, Words};
use crate::window::NEVER;

/// CPUs of a machine: a higher number is damage.
const CPUS: u32 = 4096;
/// The longest time between two events of a CPU, in ns: more is damage.
const GAP: u64 = 30 * 24 * 3_600_000_000_000;

/// State of the decoding of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    cpus: Vec<Cpu>,
}

/// State of a CPU after the bundles so far.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    seen: bool,
    /// Time of its last event, in ns by the trace's clock.
    last: u64,
}

/// A bundle that was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) cpu: u32,
    /// Events of the bundle, those of each form in order.
    pub(super) items: Vec<Item>,
    /// Time from which events before the bundle are missing, in ns.
    pub(super) lost: Option<u64>,
    /// Begin of what the CPU's first bundle tells, in ns, as the recorder says it.
    pub(super) began: Option<u64>,
    /// Fault of the bundle, if it has one.
    pub(super) fault: Option<&'static str>,
}

/// Parts of a bundle, before its events are read.
#[derive(Default)]
struct Head<'a> {
    cpu: Option<u32>,
    lost: bool,
    clock: u32,
    clock_at: Option<u64>,
    boot_at: Option<u64>,
    /// End of what was read before, by the bundle's clock.
    before: Option<u64>,
    compact: Option<&'a [u8]>,
    events: bool,
    errors: usize,
    descriptors: Vec<&'a [u8]>,
}

/// Knowledge by which bundles are read.
#[derive(Default)]
pub(super) struct Known {
    pub(super) clocks: Clocks,
    pub(super) words: Words,
    pub(super) feeds: Feeds,
}

impl Bundles {
    /// Reads a bundle of a packet of `sequence`. Errors: the fault of one of which nothing can be read.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        sequence: u32,
        known: &mut Known,
    ) -> Result<Read, &'static str> {
        let Known { clocks, words, feeds } = known;
        let (head, mut fault) = head(bytes);
        head.descriptors.iter().for_each(|descriptor| feeds.describe(descriptor));
        let cpu = head.cpu.ok_or("a bundle of events names no CPU")?;
        if cpu >= CPUS {
            return Err("a bundle of events names a CPU beyond 4095");
        }
        let clock = ring_clock(&head, sequence, clocks);
        if self.cpus.len() <= cpu as usize {
            let new = Cpu { seen: false, last: 0 };
            self.cpus.resize(cpu as usize + 1, new);
        }
        let mut items = Vec::new();
        let mut own = self.cpus[cpu as usize];
        let lost = (head.lost || head.errors > 0).then(|| own.loses()).flatten();
        items.extend(lost.map(lost_at));
        let began = head.before.filter(|_| !own.seen).map(|at| clocks.of(clock, at));
        if let Some(bytes) = head.compact {
            let mut reading = Compact { clock, clocks, words, own: &mut own };
            fault = reading.read(bytes, &mut items).err().or(fault);
        }
        if head.events {
            let events = Message::new(bytes).filter(|(number, _)| *number == bundle::EVENT);
            for (_, value) in events {
                match ordinary(value.bytes(), words) {
                    Some(Item { what: What::Kernel(kernel), .. }) if !feeds.has(kernel.number) => {}
                    Some(mut item) => {
                        item.at = clocks.of(clock, item.at);
                        match own.goes_on_at(item.at) {
                            true => items.push(item),
                            false => fault = fault.or(Some("an event's time cannot be right")),
                        }
                    }
                    None => fault = fault.or(Some("an event of the kernel cannot be read")),
                }
            }
        }
        if head.errors > 0 {
            fault = fault.or(Some("the recorder could not read a part of the kernel's buffer"));
        }
        own.last = items.iter().map(|item| item.at).max().unwrap_or(own.last).max(own.last);
        self.cpus[cpu as usize] = own;
        Ok(Read { cpu, items, lost, began, fault })
    }

    /// Returns each CPU with the time from which events of it may be missing: a part of the file is.
    pub(super) fn lose_all(&self) -> Vec<(u32, u64)> {
        let cpus = (0..).zip(&self.cpus);
        cpus.filter_map(|(cpu, own)| Some((cpu, own.loses()?))).collect()
    }
}

impl Cpu {
    /// The time from which events are missing that were lost, if there was any before.
    fn loses(self) -> Option<u64> {
        self.seen.then_some(self.last)
    }

    /// Takes in the time of an event; `false`: it cannot be right.
    #[inline]
    fn goes_on_at(&mut self, at: u64) -> bool {
        let right = at != NEVER && (!self.seen || at.abs_diff(self.last) < GAP);
        if right {
            (self.seen, self.last) = (true, at.max(self.last));
        }
        right
    }
}

/// Reads what a bundle says before its events, and the fault of its own fields.
fn head(bytes: &[u8]) -> (Head<'_>, Option<&'static str>) {
    let mut head = Head::default();
    let mut walk = Message::new(bytes);
    for (number, value) in walk.by_ref() {
        match number {
            bundle::EVENT => head.events = true,
            bundle::CPU => head.cpu = Some(value.uint()),
            bundle::LOST => head.lost = value.number() != 0,
            bundle::COMPACT => head.compact = Some(value.bytes()),
            bundle::CLOCK => head.clock = value.uint(),
            bundle::CLOCK_AT => head.clock_at = Some(value.number()),
            bundle::BOOT_AT => head.boot_at = Some(value.number()),
            bundle::READ_BEFORE | bundle::ENDED_BEFORE => head.before = Some(value.number()),
            bundle::ERROR => head.errors += 1,
            bundle::DESCRIPTOR => head.descriptors.push(value.bytes()),
            _ => {}
        }
    }
    let fault = walk.broken().map(|_| "a bundle of events breaks off");
    (head, fault)
}

/// Returns the clock of a bundle's times, and takes in what it showed.
fn ring_clock(head: &Head<'_>, sequence: u32, clocks: &mut Clocks) -> ClockId {
    let clock = match head.clock {
        0 => (BOOT, 0),
        4 => (MONOTONIC_RAW, 0),
        _ => (RING, sequence),
    };
    if let (Some(shown), Some(boot)) = (head.clock_at, head.boot_at)
        && clock != (BOOT, 0)
    {
        clocks.together(&[((BOOT, 0), boot), (clock, shown)]);
    }
    clock
}

/// The compact form of a bundle, being read.
struct Compact<'a> {
    clock: ClockId,
    clocks: &'a mut Clocks,
    words: &'a mut Words,
    own: &'a mut Cpu,
}

/// Columns of the compact form.
#[derive(Default)]
struct Columns<'a> {
    comms: Vec<u32>,
    switch_at: Packed<'a>,
    switch_state: Packed<'a>,
    switch_pid: Packed<'a>,
    switch_prio: Packed<'a>,
    switch_comm: Packed<'a>,
    waking_at: Packed<'a>,
    waking_pid: Packed<'a>,
    waking_cpu: Packed<'a>,
    waking_prio: Packed<'a>,
    waking_comm: Packed<'a>,
}

impl<'a> Columns<'a> {
    fn of(bytes: &'a [u8], words: &mut Words) -> (Columns<'a>, bool) {
        let mut of = Columns::default();
        let mut walk = Message::new(bytes);
        for (number, value) in walk.by_ref() {
            let Value::Bytes(bytes) = value else { continue };
            let column = match number {
                compact::COMM => {
                    of.comms.push(words.number(bytes));
                    continue;
                }
                compact::SWITCH_AT => &mut of.switch_at,
                compact::SWITCH_STATE => &mut of.switch_state,
                compact::SWITCH_PID => &mut of.switch_pid,
                compact::SWITCH_PRIO => &mut of.switch_prio,
                compact::SWITCH_COMM => &mut of.switch_comm,
                compact::WAKING_AT => &mut of.waking_at,
                compact::WAKING_PID => &mut of.waking_pid,
                compact::WAKING_CPU => &mut of.waking_cpu,
                compact::WAKING_PRIO => &mut of.waking_prio,
                compact::WAKING_COMM => &mut of.waking_comm,
                _ => continue,
            };
            *column = Packed::new(bytes);
        }
        (of, walk.broken().is_none())
    }

    /// The next switch: time since the one before, state in which a thread leaves, and who comes.
    #[inline]
    fn switch(&mut self) -> Option<(u64, u16, Who)> {
        let since = self.switch_at.next()?;
        let state = self.switch_state.next()? as u16;
        let pid = self.switch_pid.next()? as i32;
        let prio = self.switch_prio.next()? as i16;
        let comm = *self.comms.get(self.switch_comm.next()? as usize)?;
        Some((since, state, Who { pid, comm, prio }))
    }

    /// The next wakeup: time since the one before, who wakes, and on which CPU.
    #[inline]
    fn waking(&mut self) -> Option<(u64, u16, Who)> {
        let since = self.waking_at.next()?;
        let pid = self.waking_pid.next()? as i32;
        let target = self.waking_cpu.next()? as u16;
        let prio = self.waking_prio.next()? as i16;
        let comm = *self.comms.get(self.waking_comm.next()? as usize)?;
        Some((since, target, Who { pid, comm, prio }))
    }

    fn is_done(&self) -> bool {
        [
            &self.switch_at,
            &self.switch_state,
            &self.switch_pid,
            &self.switch_prio,
            &self.switch_comm,
        ]
        .into_iter()
        .chain([&self.waking_at, &self.waking_pid, &self.waking_cpu, &self.waking_prio])
        .chain([&self.waking_comm])
        .all(Packed::is_done)
    }
}

impl Compact<'_> {
    /// Appends the switches and wakeups by time. Errors: the fault at which the reading ended.
    fn read(&mut self, bytes: &[u8], items: &mut Vec<Item>) -> Result<(), &'static str> {
        const WRONG: &str = "the time of a compact switch or wakeup cannot be right";
        let (mut columns, sound) = Columns::of(bytes, self.words);
        // Each event has a byte at least in each column.
        items.reserve_exact(bytes.len() / 8);
        let (mut switch_at, mut waking_at) = (0, 0);
        let (mut switch, mut waking) = (columns.switch(), columns.waking());
        if let Some((since, ..)) = switch {
            switch_at = self.clocks.of(self.clock, since);
        }
        if let Some((since, ..)) = waking {
            waking_at = self.clocks.of(self.clock, since);
        }
        loop {
            let waking_is_next = match (&switch, &waking) {
                (None, None) => break,
                (Some(_), Some(_)) => waking_at < switch_at,
                (switch, _) => switch.is_none(),
            };
            let at = if waking_is_next { waking_at } else { switch_at };
            if !self.own.goes_on_at(at) {
                return Err(WRONG);
            }
            if waking_is_next {
                let Some((_, target, who)) = waking else { break };
                let row = table::WAKING_PLACE as u8;
                items.push(Item { at, pid: NOBODY, what: What::Wakeup { row, target, who } });
                waking = columns.waking();
                waking_at = waking.map_or(at, |(since, ..)| at.wrapping_add(since));
            } else {
                let Some((_, state, next)) = switch else { break };
                items.push(Item { at, pid: NOBODY, what: What::Comes { state, next } });
                switch = columns.switch();
                switch_at = switch.map_or(at, |(since, ..)| at.wrapping_add(since));
            }
        }
        items.shrink_to(items.len() + items.len() / 4);
        match sound && columns.is_done() {
            true => Ok(()),
            false => Err("the columns of compact switches and wakeups do not fit together"),
        }
    }
}

/// Marks that events are missing from here on.
pub(super) fn lost_at(at: u64) -> Item {
    Item { at, pid: NOBODY, what: What::Lost }
}

/// Reads an ordinary event, its time by its own clock.
fn ordinary(bytes: &[u8], words: &mut Words) -> Option<Item> {
    let (mut at, mut pid, mut of) = (None, NOBODY, None);
    let mut walk = Message::new(bytes);
    for (number, value) in walk.by_ref() {
        match (number, value) {
            (event::AT, _) => at = Some(value.number()),
            (event::PID, _) => pid = value.int(),
            (event::FLAGS, _) => {}
            (number, Value::Bytes(message)) => of = Some((number, message)),
            _ => {}
        }
    }
    if walk.broken().is_some() {
        return None;
    }
    let (number, message) = of?;
    let row = table::place_of(number).map_or(0, |place| place as u8);
    let what = match number {
        table::SWITCH => switch(message, words)?,
        17 | table::WAKING | 114 => wakeup(row, message, words)?,
        11 | 13 => power(row, message)?,
        _ => What::Kernel(Kernel { number, message: message.into() }.into()),
    };
    Some(Item { at: at?, pid, what })
}

fn switch(message: &[u8], words: &mut Words) -> Option<What> {
    let untold = Who { pid: 0, comm: UNTOLD, prio: 0 };
    let (mut prev, mut next, mut state) = (untold, untold, 0);
    let mut walk = Message::new(message);
    for (number, value) in walk.by_ref() {
        match number {
            1 => prev.comm = words.number(value.bytes()),
            2 => prev.pid = value.int(),
            3 => prev.prio = value.int() as i16,
            4 => state = value.uint(),
            5 => next.comm = words.number(value.bytes()),
            6 => next.pid = value.int(),
            7 => next.prio = value.int() as i16,
            _ => {}
        }
    }
    walk.broken().is_none().then(|| What::Switch(Switch { prev, state, next }.into()))
}

fn wakeup(row: u8, message: &[u8], words: &mut Words) -> Option<What> {
    let mut who = Who { pid: 0, comm: UNTOLD, prio: 0 };
    let mut target = 0;
    let mut walk = Message::new(message);
    for (number, value) in walk.by_ref() {
        match number {
            1 => who.comm = words.number(value.bytes()),
            2 => who.pid = value.int(),
            3 => who.prio = value.int() as i16,
            5 => target = value.uint() as u16,
            _ => {}
        }
    }
    walk.broken().is_none().then_some(What::Wakeup { row, target, who })
}

fn power(row: u8, message: &[u8]) -> Option<What> {
    // Mostly two varints behind each other.
    let mut at = 1;
    if let [8, ..] = message
        && let Some(state) = varint(message, &mut at)
        && message.get(at) == Some(&16)
    {
        at += 1;
        let cpu = varint(message, &mut at)? as u16;
        return Some(What::Power { row, cpu, state: state as u32 });
    }
    let (mut state, mut cpu) = (0, 0);
    let mut walk = Message::new(message);
    for (number, value) in walk.by_ref() {
        match number {
            1 => state = value.uint(),
            2 => cpu = value.uint() as u16,
            _ => {}
        }
    }
    walk.broken().is_none().then_some(What::Power { row, cpu, state })
}
