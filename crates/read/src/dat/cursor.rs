//! One CPU's pages, a window of them at a time.

use super::meta::CpuData;
use super::pack::Packing;
use crate::Source;
use risetime_ftrace::page::{Found, Order, PageLayout, Walk};

/// Bytes that are held of a CPU whose pages are not packed.
const WINDOW: usize = 64 << 10;
/// Size of an unpacked chunk at most.
const MAX_CHUNK: usize = 64 << 20;

/// Something that stands next in a CPU's pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An event.
    Event(Found),
    /// Events were lost before what follows; their number, where it is known.
    Lost(Option<u64>),
    /// A part that is not sound, at this offset; what follows is the next part that is.
    Damage(u64, String),
    /// All has been read.
    End,
}

/// A place in one CPU's pages.
pub(super) struct Cursor<'a> {
    source: &'a Source,
    layout: PageLayout,
    order: Order,
    packing: Option<Packing>,
    pub(super) cpu: u32,
    /// Offset of what is read next, and the end of the CPU's part.
    at: u64,
    end: u64,
    /// Chunks that are still to come; `None`: their number has not been read.
    chunks: Option<u32>,
    window: Vec<u8>,
    window_at: u64,
    /// The next page in the window, and the data of the present one.
    page: usize,
    data: (usize, usize),
    walk: Walk,
    ended: bool,
    /// A fault behind the window.
    behind: Option<(u64, String)>,
}

impl<'a> Cursor<'a> {
    /// Returns the begin of a CPU's pages; `packing`: as they are packed, `None`: they are not.
    pub(super) fn new(
        source: &'a Source,
        data: CpuData,
        layout: PageLayout,
        order: Order,
        packing: Option<Packing>,
    ) -> Cursor<'a> {
        let counted = if packing.is_some() { 4 } else { 0 };
        Cursor {
            source,
            layout,
            order,
            packing,
            cpu: data.cpu,
            at: data.offset,
            // The number of chunks, which comes first, is not in the size.
            end: data.offset.saturating_add(data.size).saturating_add(counted),
            chunks: None,
            window: Vec::new(),
            window_at: data.offset,
            page: 0,
            data: (0, 0),
            walk: Walk::default(),
            ended: data.size == 0,
            behind: None,
        }
    }

    /// Data of the present page, in which the last event that was found lies.
    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        &self.window[self.data.0..self.data.1]
    }

    /// Finds what stands next.
    #[inline]
    pub(super) fn next(&mut self) -> Next {
        loop {
            match self.walk.next(&self.window[self.data.0..self.data.1]) {
                Some(Ok(found)) => return Next::Event(found),
                Some(Err(())) => {
                    let at = self.window_at + self.data.0 as u64;
                    self.data = (0, 0);
                    return Next::Damage(at, "an event ends outside its page".into());
                }
                None => {}
            }
            if let Some(found) = self.next_page() {
                return found;
            }
        }
    }

    /// Goes on to the next page; `None`: its events come next.
    #[cold]
    fn next_page(&mut self) -> Option<Next> {
        (self.data, self.walk) = ((0, 0), Walk::default());
        let size = self.layout.size();
        let Some(page) = self.window.get(self.page..self.page + size) else {
            return match self.fill() {
                Ok(true) => None,
                Ok(false) => Some(Next::End),
                Err((at, what)) => Some(Next::Damage(at, what)),
            };
        };
        let at = self.page;
        self.page += size;
        match self.layout.page(page) {
            Ok(page) => {
                let from = at + self.layout.head();
                self.data = (from, from + page.data.len());
                self.walk = page.walk();
                page.lost.map(Next::Lost)
            }
            Err(what) => Some(Next::Damage(self.window_at + at as u64, format!("a page: {what}"))),
        }
    }

    /// Reads the next window; false: there is none.
    ///
    /// Errors: a part that is not sound, with its offset.
    fn fill(&mut self) -> Result<bool, (u64, String)> {
        if let Some(fault) = self.behind.take() {
            self.ended = true;
            return Err(fault);
        }
        if self.ended {
            return Ok(false);
        }
        self.page = 0;
        match self.packing {
            Some(packing) => self.chunk(packing),
            None => self.plain(),
        }
    }

    fn plain(&mut self) -> Result<bool, (u64, String)> {
        let size = self.layout.size();
        let pages = (WINDOW / size).max(1) as u64;
        let wanted = (pages * size as u64).min(self.end.saturating_sub(self.at)) as usize;
        self.window.resize(wanted, 0);
        let got = self.source.read_at(self.at, &mut self.window);
        let got = got.map_err(|e| self.stop(self.at, format!("cannot be read: {e}")))?;
        self.window_at = self.at;
        self.at += got as u64;
        self.ended = self.at >= self.end;
        let whole = got / size * size;
        self.window.truncate(whole);
        if got < wanted {
            // What is whole comes first.
            let (at, missing) = (self.at, self.end - self.at);
            let what = format!("the file ends, {missing} bytes of CPU {} are missing", self.cpu);
            self.behind = Some((at, what));
        }
        Ok(true)
    }

    fn chunk(&mut self, packing: Packing) -> Result<bool, (u64, String)> {
        let left = match self.chunks {
            Some(left) => left,
            None => self.words(1)?.0,
        };
        self.chunks = Some(left.saturating_sub(1));
        if left == 0 {
            self.ended = true;
            return Ok(false);
        }
        let at = self.at;
        let (small, whole) = self.words(2)?;
        let (small, whole) = (small as usize, whole as usize);
        if whole.max(small) > MAX_CHUNK || self.at.saturating_add(small as u64) > self.end {
            return Err(self.stop(at, "a packed chunk is longer than its CPU's part".into()));
        }
        let mut packed = vec![0; small];
        let got = self.source.read_at(self.at, &mut packed).unwrap_or(0);
        self.at += small as u64;
        if got < small {
            let what = format!("the file ends in a packed chunk of CPU {}", self.cpu);
            return Err(self.stop(at, what));
        }
        self.window_at = at;
        self.window.clear();
        match packing.unpack(&packed, whole) {
            Ok(unpacked) => self.window = unpacked,
            Err(what) => return Err((at, format!("a packed chunk: {what}"))),
        }
        Ok(true)
    }

    /// Ends the CPU's part at a fault.
    fn stop(&mut self, at: u64, what: String) -> (u64, String) {
        self.ended = true;
        self.window.clear();
        (at, what)
    }

    /// The next one or two numbers of four bytes.
    ///
    /// Errors: the CPU's part ends before.
    fn words(&mut self, n: usize) -> Result<(u32, u32), (u64, String)> {
        let mut bytes = [0; 8];
        let got = self.source.read_at(self.at, &mut bytes[..4 * n]).unwrap_or(0);
        if got < 4 * n || self.at.saturating_add(4 * n as u64) > self.end {
            return Err(self.stop(self.at, "packed pages end too early".into()));
        }
        self.at += 4 * n as u64;
        let word = |i: usize| self.order.number(&bytes[4 * i..4 * i + 4]) as u32;
        Ok((word(0), word(1)))
    }
}
