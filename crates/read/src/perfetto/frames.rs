//! Frames of Android's display (FrameTimeline): what was expected of each, what came of it, and the kinds of jank.
//!
//! Source: frameworks_native_trace_packet.proto. Each part of a frame begins with a message that has a cookie, and ends with one that has
//! only that. A frame is told once both its actual and its expected part are over, where it has both.

use super::wire::Message;
use std::collections::BTreeMap;

/// Most parts and frames that are remembered.
const MOST: usize = 4096;

/// A frame of an application's layer, or of the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    display: bool,
    process: i32,
    token: i64,
}

/// A part of a frame that has begun.
#[derive(Debug)]
struct Part {
    key: Key,
    actual: bool,
    from: u64,
    layer: Box<str>,
    jank: u32,
}

/// A frame that is over, in ns by the trace's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) process: i32,
    pub(super) token: i64,
    /// Name of its layer; empty: the display's own.
    pub(super) layer: Box<str>,
    pub(super) expected: Option<(u64, u64)>,
    pub(super) actual: (u64, u64),
    pub(super) jank: u32,
}

/// Frames under way.
#[derive(Debug, Default)]
pub(super) struct Frames {
    parts: BTreeMap<i64, Part>,
    /// Begin and, once it is known, end that were expected.
    expected: BTreeMap<Key, (u64, Option<u64>)>,
    /// Frames whose expected end is to come.
    waiting: BTreeMap<Key, Vec<Frame>>,
}

impl Frames {
    /// Takes in a `FrameTimelineEvent`, and hands the frames that are over by it to `out`.
    pub(super) fn event(&mut self, at: u64, bytes: &[u8], out: &mut dyn FnMut(Frame)) {
        for (number, value) in Message::new(bytes) {
            match number {
                1..=4 => self.begins(at, number, value.bytes()),
                5 => {
                    let cookie = Message::new(value.bytes()).find(|(number, _)| *number == 1);
                    let part = cookie.and_then(|(_, c)| self.parts.remove(&c.signed()));
                    part.into_iter().for_each(|part| self.ends(at, part, out));
                }
                _ => {}
            }
        }
        while self.waiting.len() > MOST {
            let frames = self.waiting.pop_first().map(|(_, frames)| frames);
            frames.into_iter().flatten().for_each(&mut *out);
        }
    }

    /// Hands out the frames whose expected end never came.
    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Frame)) {
        std::mem::take(&mut self.waiting).into_values().flatten().for_each(out);
    }

    fn begins(&mut self, at: u64, kind: u32, bytes: &[u8]) {
        let (display, actual) = (kind <= 2, kind.is_multiple_of(2));
        let (mut cookie, mut process, mut token, mut jank) = (0, 0, 0, 0);
        let mut layer: Box<str> = "".into();
        for (number, value) in Message::new(bytes) {
            match (number, display) {
                (1, _) => cookie = value.signed(),
                (2, _) => token = value.signed(),
                (3, true) | (4, false) => process = value.int(),
                (5, false) => layer = String::from_utf8_lossy(value.bytes()).into(),
                (7, true) | (9, false) if actual => jank = value.uint(),
                _ => {}
            }
        }
        let key = Key { display, process, token };
        if !actual {
            self.expected.insert(key, (at, None));
            if self.expected.len() > MOST {
                self.expected.pop_first();
            }
        }
        self.parts.insert(cookie, Part { key, actual, from: at, layer, jank: jank & !1 });
        if self.parts.len() > MOST {
            self.parts.pop_first();
        }
    }

    fn ends(&mut self, at: u64, part: Part, out: &mut dyn FnMut(Frame)) {
        let Part { key, actual, from, layer, jank } = part;
        let expected = self.expected.get(&key).copied();
        if actual {
            let actual = (from, at);
            let (process, token) = (key.process, key.token);
            let frame = Frame { process, token, layer, expected: None, actual, jank };
            match expected {
                Some((from, Some(to))) => out(Frame { expected: Some((from, to)), ..frame }),
                Some((_, None)) => self.waiting.entry(key).or_default().push(frame),
                None => out(frame),
            }
            return;
        }
        if let Some(expected) = self.expected.get_mut(&key) {
            expected.1 = Some(at);
            let (from, to) = (expected.0, at);
            for frame in self.waiting.remove(&key).into_iter().flatten() {
                out(Frame { expected: Some((from, to)), ..frame });
            }
        }
    }
}
