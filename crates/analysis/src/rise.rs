//! Rise of delivered performance: from 10 to 90 % of the way to s_max.
//!
//! ```text
//!   a(t)  = mean of s over the tick before t; before the first run, s counts as s0
//!   s0    = s where the task first runs
//!   t10   = first t with a(t) ≥ s0 + 0.1·(s_max − s0),   t90 likewise;   rise = t90 − t10
//! ```
//!
//! Time asleep is left out of the mean. s_max is the one in force at the time. A task that
//! begins at s_max or above has a rise of 0.

use std::collections::VecDeque;

/// Most pieces that the mean is taken over; beyond it the oldest two become one of their
/// mean speed (only a task that changes its speed a thousand times a tick gets there).
const PIECES: usize = 1024;

/// The rise of one burst.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rise {
    s0: Option<u64>,
    /// (ns, speed), oldest first; they add up to a tick.
    window: VecDeque<(u64, u64)>,
    /// Σ ns · speed of the window: at most a tick (of HZ 24) · 2³², a thirtieth of what fits.
    area: i64,
    t10: Option<u64>,
    t90: Option<u64>,
}

impl Rise {
    /// Forgets everything, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.window.clear();
        (self.s0, self.t10, self.t90) = (None, None, None);
    }

    /// Whether more has to be fed.
    pub(crate) fn wants(&self) -> bool {
        self.t90.is_none()
    }

    /// The task had `speed` from `from` for `dt` ns (0: it waited, which counts from its
    /// first run on).
    pub(crate) fn feed(&mut self, (from, dt): (u64, u64), speed: u64, s_max: u64, tick: u64) {
        let s0 = match self.s0 {
            Some(s0) => s0,
            None if speed == 0 => return,
            None => {
                self.s0 = Some(speed);
                self.window.push_back((tick, speed));
                self.area = (tick * speed) as i64;
                speed
            }
        };
        let way = s_max.saturating_sub(s0);
        let level = |tenths: u64| (tick * (s0 * 10 + way * tenths)) as i64;
        let mut at = from;
        let mut left = dt;
        loop {
            let Some((oldest, outgoing)) = self.window.front_mut() else {
                return;
            };
            let step = left.min(*oldest);
            let slope = speed as i64 - *outgoing as i64;
            let crossing = |target: i64| {
                let missing = target - self.area * 10;
                if missing <= 0 {
                    Some(0)
                } else if slope > 0 && missing <= slope * 10 * step as i64 {
                    Some((missing as u64).div_ceil(slope as u64 * 10))
                } else {
                    None
                }
            };
            if self.t10.is_none() {
                self.t10 = crossing(level(1)).map(|x| at + x);
            }
            if self.t10.is_some() {
                self.t90 = crossing(level(9)).map(|x| at + x);
            }
            if self.t90.is_some() || step == 0 {
                return;
            }
            *oldest -= step;
            if *oldest == 0 {
                self.window.pop_front();
            }
            self.area += slope * step as i64;
            self.push(step, speed);
            at += step;
            left -= step;
            // Nothing changes once the whole window has this speed.
            if self.window.len() == 1 {
                left = 0;
            }
        }
    }

    fn push(&mut self, dt: u64, speed: u64) {
        match self.window.back_mut() {
            Some((ns, s)) if *s == speed => *ns += dt,
            _ => self.window.push_back((dt, speed)),
        }
        if self.window.len() > PIECES {
            let (a, s) = self.window.pop_front().unwrap_or_default();
            if let Some((b, t)) = self.window.front_mut() {
                let mean = (u128::from(a) * u128::from(s) + u128::from(*b) * u128::from(*t))
                    / u128::from((a + *b).max(1));
                (*b, *t) = (a + *b, mean as u64);
            }
            self.area = self.window.iter().map(|(n, s)| (n * s) as i64).sum();
        }
    }

    /// The rise time t90 − t10, in ms.
    pub(crate) fn ms(&self) -> Option<f64> {
        Some((self.t90? - self.t10?) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: u64 = 1_000_000;

    fn rise(pieces: &[(u64, u64)], s_max: u64, tick: u64) -> Rise {
        let mut r = Rise::default();
        let mut at = 7;
        for &(dt, speed) in pieces {
            r.feed((at, dt), speed, s_max, tick);
            at += dt;
        }
        r
    }

    /// From 200 to 1000 at once: the mean over a tick passes 280 after 0.1 and 920 after 0.9.
    #[test]
    fn a_step_takes_eight_tenths_of_a_tick() {
        assert_eq!(rise(&[(5 * MS, 200), (5 * MS, 1000)], 1000, MS).ms(), Some(0.8));
        assert_eq!(rise(&[(5 * MS, 200), (5 * MS, 1000)], 1000, 4 * MS).ms(), Some(3.2));
    }

    /// 100 → 550 at 0, → 1000 at 10 ms. 190 is passed 0.2 ms into the first step, 910 when
    /// the second step has lasted 0.8 ms: 10.8 − 0.2.
    #[test]
    fn two_steps() {
        let r = rise(&[(3 * MS, 100), (10 * MS, 550), (MS, 1000)], 1000, MS);
        assert_eq!(r.ms(), Some(10.6));
    }

    #[test]
    fn waiting_counts_after_the_first_run_only() {
        let step = [(5 * MS, 200), (5 * MS, 1000)];
        assert_eq!(rise(&[&[(9 * MS, 0)], &step[..]].concat(), 1000, MS).ms(), Some(0.8));
        // Half a tick of waiting pulls the mean down: after it the mean is 100, and of the
        // next tick's outgoing pieces the first 0.5 ms are at 200, then 0.5 ms at 0:
        // 100 + 800·x = 280 at x = 0.225; 100 + 400 + 1000·y = 920 at y = 0.42, x = 0.5 + y.
        let r = rise(&[(5 * MS, 200), (MS / 2, 0), (5 * MS, 1000)], 1000, MS);
        assert!((r.ms().unwrap() - (0.92 - 0.225)).abs() < 2e-6, "{:?}", r.ms());
    }

    #[test]
    fn never_and_nothing_to_rise() {
        assert_eq!(rise(&[(5 * MS, 200), (50 * MS, 900)], 1000, MS).ms(), None);
        assert_eq!(rise(&[(5 * MS, 1000)], 1000, MS).ms(), Some(0.0));
        assert_eq!(rise(&[(5 * MS, 1000)], 300, MS).ms(), Some(0.0));
        assert_eq!(rise(&[(5 * MS, 0)], 1000, MS).ms(), None);
    }

    #[test]
    fn a_thousand_changes_a_tick_stay_bounded() {
        let pieces: Vec<_> = (0..50_000).map(|i| (100, if i % 2 == 0 { 200 } else { 0 })).collect();
        let r = rise(&pieces, 1000, 10 * MS);
        assert!(r.window.len() <= PIECES);
        assert_eq!(r.window.iter().map(|w| w.0).sum::<u64>(), 10 * MS);
    }
}
