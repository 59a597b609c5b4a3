//! The events of all CPUs, by time.

use super::cursor::{Cursor, Next};
use super::formats::{Compiled, Formats, RecordFields};
use super::meta::{Buffer, Time};
use super::pack::Packing;
use crate::Source;
use crate::take::{Fact, Stamp, Take};
use risetime_ftrace::page::{Found, Order, PageLayout, Record};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Everything that a pass over a buffer needs.
pub(super) struct File<'a> {
    pub(super) source: &'a Source,
    pub(super) buffer: &'a Buffer,
    pub(super) layout: PageLayout,
    pub(super) formats: &'a Formats,
    pub(super) time: Time,
    pub(super) packing: Packing,
    pub(super) order: Order,
}

/// What is known of a CPU at the end of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuEnd {
    pub(super) cpu: u32,
    /// Time of its first event.
    pub(super) first: Option<u64>,
    /// True if events were lost before the first one.
    pub(super) lost_first: bool,
    /// True if events were lost later.
    pub(super) lost: bool,
}

/// A CPU, and the event of it that is next.
struct Lane<'a> {
    cursor: Cursor<'a>,
    at: u64,
    found: Found,
    kind: Option<&'a Compiled>,
    /// Time of the last event, of interest or not.
    last: u64,
    end: CpuEnd,
}

/// Hands all events of a buffer to `take`, by time, and what was lost or damaged among them.
pub(super) fn pass(file: &File<'_>, take: &mut dyn Take) -> Vec<CpuEnd> {
    let packing = file.buffer.packed.then_some(file.packing);
    let lane = |data: &super::meta::CpuData| Lane {
        cursor: Cursor::new(file.source, *data, file.layout, file.order, packing),
        at: 0,
        found: Found::default(),
        kind: None,
        last: 0,
        end: CpuEnd { cpu: data.cpu, first: None, lost_first: false, lost: false },
    };
    let mut lanes: Vec<Lane<'_>> = file.buffer.cpus.iter().map(lane).collect();
    lanes.iter_mut().for_each(|lane| lane.advance(file, take));
    // Times of the lanes' next events, and their places.
    let next = (0..).zip(&lanes).filter(|(_, lane)| lane.kind.is_some());
    let mut next: BinaryHeap<Reverse<(u64, u32)>> =
        next.map(|(place, lane)| Reverse((lane.at, place))).collect();
    while let Some(mut first) = next.peek_mut() {
        let lane = &mut lanes[first.0.1 as usize];
        if let Some(kind) = lane.kind {
            lane.hand_over(kind, file, take);
        }
        lane.advance(file, take);
        match lane.kind {
            // Finds its new place when it is let go.
            Some(_) => first.0.0 = lane.at,
            None => _ = PeekMut::pop(first),
        }
    }
    lanes.into_iter().map(|lane| lane.end).collect()
}

impl<'a> Lane<'a> {
    /// Hands over the event that is next.
    #[inline]
    fn hand_over(&self, kind: &Compiled, file: &File<'_>, take: &mut dyn Take) {
        let record = Record::of(self.found, self.cursor.data(), file.order);
        let stamp = Stamp {
            at: self.at,
            cpu: self.end.cpu,
            pid: file.formats.pid(&record),
            tgid: None,
            comm: None,
        };
        take.event(&stamp, kind.row, &RecordFields { record: &record, compiled: kind });
    }

    /// Goes on to the next event that something is made of, and tells what lies before it.
    #[inline]
    fn advance(&mut self, file: &File<'a>, take: &mut dyn Take) {
        loop {
            match self.cursor.next() {
                Next::Event(found) => {
                    let record = Record::of(found, self.cursor.data(), file.order);
                    let kind = file.formats.of(&record);
                    let at = file.time.of(found.at);
                    self.last = at;
                    self.end.first.get_or_insert(at);
                    if kind.is_some() {
                        (self.at, self.found, self.kind) = (at, found, kind);
                        return;
                    }
                }
                Next::End => {
                    self.kind = None;
                    return;
                }
                Next::Lost(events) => self.loses(events, take),
                Next::Damage(offset, what) => {
                    take.fact(&Fact::Damage { offset, what: &what });
                    if self.end.first.is_none() {
                        take.fact(&Fact::Lost { cpu: self.end.cpu, since: Some(0), events: None });
                    }
                    self.loses(None, take);
                }
            }
        }
    }

    #[cold]
    fn loses(&mut self, events: Option<u64>, take: &mut dyn Take) {
        if self.end.first.is_none() {
            self.end.lost_first = true;
        } else {
            self.end.lost = true;
            let (cpu, since) = (self.end.cpu, Some(self.last));
            take.fact(&Fact::Lost { cpu, since, events });
        }
    }
}
