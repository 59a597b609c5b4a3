//! Jobs that a trace tells of by itself: frames of displays, slices that programs mark.

use super::thread::Times;
use crate::histogram::Percentiles;
use crate::lead::is_called;
use risetime_kernel::units::TaskId;
use std::collections::BTreeMap;

/// Names that are told apart.
const NAMES: usize = 1 << 12;

/// Source of what is counted under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Marked {
    /// Frames of a layer, as the display's timeline tells of them.
    Frames,
    /// Slices that threads mark in their programs.
    Slices,
}

impl Marked {
    /// Returns the word of the source in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Marked::Frames => "frames",
            Marked::Slices => "slices",
        }
    }
}

/// Jobs of one name that the trace tells by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkedJobs {
    /// Source of the jobs.
    pub marked: Marked,
    /// Name of the layer, or of the slices.
    pub name: String,
    /// Number of jobs.
    pub n: u64,
    /// Number of those that ended after they were expected to; `None`: the trace does not say when that was.
    pub late: Option<u64>,
    /// Number of those that the trace calls janky; `None`: it does not say.
    pub janky: Option<u64>,
    /// Times from begin to end.
    pub took: Option<Percentiles>,
}

/// A frame, times in ns.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// End that was expected; `None`: not told.
    pub due: Option<u64>,
    /// Begin.
    pub from: u64,
    /// End.
    pub to: u64,
    /// True if the trace calls it janky.
    pub janky: bool,
}

#[derive(Default)]
struct Count {
    n: u64,
    due: u64,
    late: u64,
    janky: u64,
    took: Times,
}

/// Counts of what a trace marks.
#[derive(Default)]
pub struct Marks {
    /// Name or pattern of the slices that count; `None`: none do.
    wanted: Option<String>,
    counts: BTreeMap<(Marked, String), Count>,
    /// Open slices by thread, the innermost last: begin, and the name if it counts.
    open: BTreeMap<Option<TaskId>, Vec<(u64, Option<String>)>>,
}

impl Marks {
    /// Returns counts of frames, and of the slices whose names fit `wanted`.
    pub fn new(wanted: Option<String>) -> Marks {
        Marks { wanted, ..Marks::default() }
    }

    fn count(&mut self, marked: Marked, name: &str) -> Option<&mut Count> {
        let key = (marked, name.to_string());
        let known = self.counts.contains_key(&key);
        (known || self.counts.len() < NAMES).then(|| self.counts.entry(key).or_default())
    }

    /// Counts a frame of this layer.
    pub fn frame(&mut self, layer: &str, frame: Frame) {
        let Some(count) = self.count(Marked::Frames, layer) else { return };
        count.n += 1;
        count.due += u64::from(frame.due.is_some());
        count.late += u64::from(frame.due.is_some_and(|due| frame.to > due));
        count.janky += u64::from(frame.janky);
        count.took.add(frame.to.saturating_sub(frame.from));
    }

    /// Begins a slice of a thread.
    pub fn begin(&mut self, at: u64, task: Option<TaskId>, name: &str) {
        let wanted = self.wanted.as_ref().filter(|wanted| is_called(unnumbered(name), wanted));
        let counts = wanted.map(|_| unnumbered(name).to_string());
        self.open.entry(task).or_default().push((at, counts));
    }

    /// Ends the innermost slice of a thread.
    pub fn end(&mut self, at: u64, task: Option<TaskId>) {
        let last = self.open.get_mut(&task).and_then(Vec::pop);
        if let Some((from, Some(name))) = last
            && let Some(count) = self.count(Marked::Slices, &name)
        {
            count.n += 1;
            count.took.add(at.saturating_sub(from));
        }
    }

    /// Returns what was counted, by source and name.
    pub fn finish(self) -> Vec<MarkedJobs> {
        let one = |((marked, name), count): ((Marked, String), Count)| {
            let frames = marked == Marked::Frames;
            MarkedJobs {
                marked,
                name,
                n: count.n,
                late: (frames && count.due > 0).then_some(count.late),
                janky: frames.then_some(count.janky),
                took: count.took.percentiles(),
            }
        };
        self.counts.into_iter().map(one).collect()
    }
}

/// The name without a number behind it, by which each slice would have a name of its own.
fn unnumbered(name: &str) -> &str {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
    if digits.len() < name.len() { digits.trim_end() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_inside_one_another_end_in_turn_and_numbers_make_no_names() {
        let mut marks = Marks::new(Some("Choreographer#doFrame".into()));
        let ui = Some(TaskId(3));
        for n in 0..3u64 {
            marks.begin(100 * n, ui, &format!("Choreographer#doFrame {n}"));
            marks.begin(100 * n + 10, ui, "layout");
            marks.end(100 * n + 30, ui);
            marks.end(100 * n + 50, ui);
            marks.end(100 * n + 60, Some(TaskId(4)));
        }
        let all = marks.finish();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((&*all[0].name, all[0].n, all[0].late), ("Choreographer#doFrame", 3, None));
        assert!(all[0].took.is_some_and(|took| took.max == 50e-6 && took.min == 50e-6), "{all:?}");
    }

    #[test]
    fn frames_are_late_by_what_was_expected_and_janky_by_what_the_trace_says() {
        let mut marks = Marks::default();
        for (due, to, janky) in [(Some(20), 15, false), (Some(20), 25, true), (None, 30, false)] {
            marks.frame("app", Frame { due, from: 0, to, janky });
        }
        let all = marks.finish();
        assert_eq!((all[0].n, all[0].late, all[0].janky), (3, Some(1), Some(1)));
    }
}
