//! One experiment from several start phases, on both sides: how long until full speed?
//!
//! ```text
//! deviation = |median(candidate) / median(reference) − 1|      over the phases, at most 5 %
//! ```
//!
//! One run is decided by where its ticks and periods fall; the median over start phases is not.

use super::{Comparison, Curve};
use risetime_kernel::units::{Capacity, Span};
use risetime_model::Platform;

/// Difference that the medians may have, in %.
const BAND_PCT: f64 = 5.0;

/// One start phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The start phase.
    pub phase: Span,
    /// Time to the highest OPP in the reference; `None`: never.
    pub reference: Option<Span>,
    /// Time in the candidate.
    pub candidate: Option<Span>,
    /// The checks.
    pub comparison: Comparison,
}

/// All start phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Phased {
    /// Start phases, in their order.
    pub phases: Vec<Phase>,
    /// Number of checks that each phase has to hold.
    pub wanted: usize,
}

impl Phased {
    /// The medians of reference and candidate, in ms; `None`: in half of the phases or more it never
    /// came to that.
    pub fn medians_ms(&self) -> (Option<f64>, Option<f64>) {
        let median = |of: fn(&Phase) -> Option<Span>| {
            // Never is later than anything.
            let mut spans: Vec<f64> =
                self.phases.iter().map(|p| of(p).map_or(f64::INFINITY, Span::as_ms)).collect();
            spans.sort_by(f64::total_cmp);
            let middle = spans.len() / 2;
            let (low, high) = (spans.get(middle.checked_sub(1)?)?, spans.get(middle)?);
            let median = if spans.len() % 2 == 1 { *high } else { (low + high) / 2.0 };
            median.is_finite().then_some(median)
        };
        (median(|p| p.reference), median(|p| p.candidate))
    }

    /// The distance of the medians, in % of the reference's; `None`: one of the two never came to
    /// the highest OPP. Where neither did, they are not apart.
    pub fn deviation_pct(&self) -> Option<f64> {
        match self.medians_ms() {
            (Some(was), Some(is)) => Some(100.0 * (is / was.max(1e-6) - 1.0).abs()),
            (None, None) => Some(0.0),
            _ => None,
        }
    }

    /// The allowed deviation, in %.
    pub fn band_pct(&self) -> f64 {
        BAND_PCT
    }

    /// Whether the medians agree and each phase holds as many checks as it must.
    pub fn holds(&self) -> bool {
        self.deviation_pct().is_some_and(|d| d <= BAND_PCT)
            && self.phases.iter().all(|p| p.comparison.held() >= self.wanted)
    }
}

impl Curve {
    /// The time at which the task first ran at the highest OPP of the biggest CPUs; `None`: never.
    pub fn top_opp(&self, platform: &Platform) -> Option<Span> {
        let biggest = platform.domains.iter().map(|d| d.capacity).max().unwrap_or(Capacity(0));
        let at_top = |s: &&super::Stretch| {
            platform
                .domains
                .iter()
                .any(|d| d.cpus[0] == s.domain && d.capacity == biggest && d.freq_max() == s.freq)
        };
        self.ran.iter().find(at_top).map(|s| s.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Mode;

    fn phased(times: &[(Option<u64>, Option<u64>)], held: bool) -> Phased {
        let comparison = || Comparison {
            mode: Mode::Free,
            checks: vec![super::super::Check {
                name: "x",
                measured: 0.0,
                band: 0.0,
                unit: "",
                holds: held,
                why: String::new(),
            }],
        };
        let phase = |&(was, is): &(Option<u64>, Option<u64>)| Phase {
            phase: Span(0),
            reference: was.map(Span::from_ms),
            candidate: is.map(Span::from_ms),
            comparison: comparison(),
        };
        Phased { phases: times.iter().map(phase).collect(), wanted: 1 }
    }

    #[test]
    fn medians_are_held_together_and_never_counts_as_late() {
        let p =
            phased(&[(Some(100), Some(104)), (Some(120), Some(90)), (Some(110), Some(115))], true);
        assert_eq!(p.medians_ms(), (Some(110.0), Some(104.0)));
        assert!((p.deviation_pct().unwrap() - 100.0 * 6.0 / 110.0).abs() < 1e-9 && !p.holds());
        let p = phased(&[(Some(100), Some(104)), (Some(120), None)], true);
        assert_eq!((p.medians_ms().1, p.deviation_pct(), p.holds()), (None, None, false));
        let never = phased(&[(None, None)], true);
        assert_eq!((never.deviation_pct(), never.holds()), (Some(0.0), true));
        assert!(!phased(&[(None, None)], false).holds(), "its checks count");
    }
}
