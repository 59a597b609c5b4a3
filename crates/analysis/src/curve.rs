//! A step curve that stays small: first, last and extremes of each stretch survive.

/// Points kept after thinning; up to twice as many are held in between.
const POINTS: usize = 4096;

/// (ns, value) at each change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve(Vec<(u64, u64)>);

impl Curve {
    /// Makes the value `value` from `at` on. A second value at the same time replaces the first.
    pub(crate) fn step(&mut self, at: u64, value: u64) {
        match self.0.last_mut() {
            Some((_, last)) if *last == value => {}
            _ => self.push(at, value),
        }
    }

    /// A sample, kept even if it repeats the last value.
    pub(crate) fn push(&mut self, at: u64, value: u64) {
        match self.0.last_mut() {
            Some((t, last)) if *t == at => *last = value,
            _ => {
                self.0.push((at, value));
                if self.0.len() >= 2 * POINTS {
                    self.thin();
                }
            }
        }
    }

    /// Ends the curve at `at`, so that its extent is known.
    pub(crate) fn end(&mut self, at: u64) {
        if let Some(&(t, value)) = self.0.last()
            && t < at
        {
            self.push(at, value);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The points, times in ms.
    pub(crate) fn map<T>(&self, f: impl Fn(u64) -> T) -> Vec<(f64, T)> {
        self.0.iter().map(|&(t, v)| (t as f64 / 1e6, f(v))).collect()
    }

    /// Divides the time into POINTS / 4 stretches and keeps of each the first, the last, the
    /// lowest and the highest point.
    fn thin(&mut self) {
        let points = &mut self.0;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return;
        };
        let start = first.0;
        let width = (last.0 - start) / (POINTS as u64 / 4) + 1;
        let stretch = |p: &(u64, u64)| (p.0 - start) / width;
        let (mut from, mut kept) = (0, 0);
        while from < points.len() {
            let here = stretch(&points[from]);
            let to = from + points[from..].iter().take_while(|p| stretch(p) == here).count();
            let by_value = |i: &usize| points[*i].1;
            let low = (from..to).min_by_key(by_value).unwrap_or(from);
            let high = (from..to).max_by_key(by_value).unwrap_or(from);
            let mut keep = [from, low, high, to - 1];
            keep.sort_unstable();
            for (n, &i) in keep.iter().enumerate() {
                if n == 0 || keep[n - 1] != i {
                    points[kept] = points[i];
                    kept += 1;
                }
            }
            from = to;
        }
        points.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_survive_any_length() {
        let mut c = Curve::default();
        for i in 0..1_000_000_u64 {
            let value = match i {
                123_456 => 9_999,
                777_777 => 0,
                _ => 500 + i % 7,
            };
            c.push(i * 1000, value);
        }
        c.end(2_000_000_000);
        assert!(c.0.len() < 2 * POINTS + 1);
        assert!(c.0.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!(c.0[0], (0, 500));
        assert!(c.0.contains(&(123_456_000, 9_999)));
        assert!(c.0.contains(&(777_777_000, 0)));
        assert_eq!(c.0.last().unwrap().0, 2_000_000_000);
    }

    #[test]
    fn same_time_replaces_and_same_value_is_no_step() {
        let mut c = Curve::default();
        c.step(5, 1);
        c.step(5, 2);
        c.step(9, 2);
        assert_eq!(c.0, [(5, 2)]);
    }
}
