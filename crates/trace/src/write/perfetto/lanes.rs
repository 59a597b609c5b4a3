//! Slices that overlap, laid onto tracks on which each ends before the next begins.

use risetime_kernel::units::Instant;

/// Number of slices that are shown beside each other: a task that falls ever more behind has ever
/// more jobs under way.
const LANES: usize = 16;

/// The tracks of one stream of jobs: from when each is free. Slices come in the order of their ends.
#[derive(Default)]
pub(super) struct Lanes(Vec<Instant>);

impl Lanes {
    /// The track for a slice of this time, and from when on it is shown there: where all are taken it is cut off on the
    /// left. The track that has been free for the shortest time, so that there are as many as overlap at once and no
    /// more (colouring an interval graph by ends).
    pub(super) fn lay(&mut self, from: Instant, to: Instant) -> (u32, Instant) {
        let free = self.0.iter().enumerate().filter(|(_, since)| **since <= from);
        let fitting = free.max_by_key(|(_, since)| **since).map(|(i, _)| i);
        let lane = fitting.unwrap_or_else(|| {
            if self.0.len() < LANES {
                self.0.push(Instant(0));
                return self.0.len() - 1;
            }
            let first = self.0.iter().enumerate().min_by_key(|(_, since)| **since);
            first.map_or(0, |(i, _)| i)
        });
        let start = self.0[lane].max(from).min(to);
        self.0[lane] = to;
        (lane as u32, start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two slices of a track overlap, and there are as many tracks as slices that do at some time.
    #[test]
    fn as_many_tracks_as_overlap_at_once() {
        let mut slices: Vec<(u64, u64)> = (0..400)
            .map(|i| (i * 7919 % 1000, 1 + i * 104_729 % 37))
            .map(|(from, length)| (from, from + length))
            .collect();
        slices.sort_unstable_by_key(|(_, to)| *to);
        let depth = |at: u64| slices.iter().filter(|(from, to)| *from <= at && at < *to).count();
        let depth = (0..1100).map(depth).max().unwrap();
        assert!((2..=LANES).contains(&depth), "{depth}");
        let mut lanes = Lanes::default();
        let mut taken: Vec<(u32, u64, u64)> = Vec::new();
        for (from, to) in slices {
            let (lane, start) = lanes.lay(Instant(from), Instant(to));
            assert_eq!(start, Instant(from), "nothing is cut off");
            assert!(taken.iter().all(|(l, a, b)| *l != lane || to <= *a || *b <= from));
            taken.push((lane, from, to));
        }
        assert_eq!(lanes.0.len(), depth);
    }

    /// A backlog without end takes no track without end.
    #[test]
    fn what_finds_no_track_is_cut_off() {
        let mut lanes = Lanes::default();
        for i in 0..100 {
            let (lane, start) = lanes.lay(Instant(i), Instant(1000 + 10 * i));
            let free = if i < LANES as u64 { i } else { 1000 + 10 * (i - LANES as u64) };
            assert_eq!((u64::from(lane), start), (i % LANES as u64, Instant(free)));
        }
    }
}
