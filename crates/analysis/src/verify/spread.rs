//! Figures of one experiment over start phases on both sides: are they the same to a user?
//!
//! ```text
//! pair        the two runs of one start phase; the candidate begins in the state of its reference
//! d           candidate less reference, one a pair: n of them
//! interval    mean(d) ± t(0.95, n − 1) · sd(d) / √n, each end moved out to Hall's if that is further       (90 %)
//! margin      5 % of the mean of the reference, at least the figure's floor
//! equivalent  the whole interval lies within ± margin
//! different   the whole interval lies outside
//! undecided   else; with one pair there is no interval
//! exact       how many jobs were due, where that hangs on timers alone: equivalent if it is the same in every pair, else
//!             different
//! ```
//!
//! Equivalence has to be shown: a figure that varies much over few phases is undecided, not equal. That the interval is
//! within the margin is the test of two one-sided t-tests at 5 % each (TOST), so that a figure which is off by
//! the margin passes once in twenty.
//!
//! Differences are taken in pairs, since both runs of a phase begin alike. Where the two follow each other, that
//! takes the phase's part out of the noise; where they do not, it costs half of the degrees of freedom and nothing else.
//! Means and not medians: figures of a task that locks into one of two modes have a mean that moves with the share of the
//! modes, and a median that jumps. Student's interval is too short on the side of a long tail (a few phases in which something
//! took long), where 12 of 100 would pass; Hall's, which removes the skewness by a cubic transformation (P. Hall, On the
//! removal of skewness by transformation, 1992), makes them 7. Percentiles of a bootstrap are shorter still with 16 values.
//!
//! Left out: a mode that none of the phases shows; one that comes in an eighth of all is missing from 16 phases
//! once in eight times. And what to expect of many verdicts: of 100 figures that are off by just the margin five pass.

use crate::readings::{Kind, Reading};

/// Difference that the means may have, of the reference's.
pub const MARGIN: f64 = 0.05;

/// Limits for a set: the least share of the decided figures that is equivalent, the largest share
/// of all that is undecided, and the largest relative difference of an energy.
const EQUIVALENT: f64 = 0.9;
const UNDECIDED: f64 = 0.1;
const ENERGY: f64 = 0.1;

/// The verdict on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The difference is too small to notice.
    Equivalent,
    /// The two sides differ.
    Different,
    /// Neither equivalence nor difference is certain.
    Undecided,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 3] = [Verdict::Equivalent, Verdict::Different, Verdict::Undecided];

    /// The word that JSON and text use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Equivalent => "equivalent",
            Verdict::Different => "different",
            Verdict::Undecided => "undecided",
        }
    }
}

/// A figure of one side over start phases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Over the pairs.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Kind of the figure.
    pub kind: Kind,
    /// Subject of the figure; empty: all.
    pub of: String,
    /// Phases in which both sides have it.
    pub pairs: u32,
    /// Phases in which one has it and the other has not.
    pub alone: u32,
    /// The figure in the reference.
    pub reference: Side,
    /// The figure in the candidate.
    pub candidate: Side,
    /// Mean of the candidate less that of the reference.
    pub difference: f64,
    /// The 90 % interval of the difference.
    pub interval: Option<(f64, f64)>,
    /// A difference of at most so much is none.
    pub margin: f64,
    /// Verdict on it.
    pub verdict: Verdict,
}

impl Figure {
    /// The distance of the means in margins; infinite for what only one side has.
    pub fn margins(&self) -> f64 {
        let exact = self.margin == 0.0 && self.verdict == Verdict::Equivalent;
        match self.pairs {
            0 => f64::INFINITY,
            _ if exact => 0.0,
            _ => self.difference.abs() / self.margin,
        }
    }

    /// The distance of the means, relative to the reference's; `None`: that is 0.
    pub fn relative(&self) -> Option<f64> {
        (self.reference.mean != 0.0).then(|| self.difference / self.reference.mean)
    }
}

/// One experiment over start phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Equivalence {
    /// Name of the experiment.
    pub name: String,
    /// Number of start phases.
    pub phases: u32,
    /// Figures by kind.
    pub figures: Vec<Figure>,
}

/// Number of figures by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Equivalent.
    pub equivalent: usize,
    /// Different.
    pub different: usize,
    /// Undecided.
    pub undecided: usize,
}

impl Tally {
    /// Counts the verdicts of these figures.
    pub fn of<'a>(figures: impl IntoIterator<Item = &'a Figure>) -> Tally {
        let mut tally = Tally::default();
        for figure in figures {
            match figure.verdict {
                Verdict::Equivalent => tally.equivalent += 1,
                Verdict::Different => tally.different += 1,
                Verdict::Undecided => tally.undecided += 1,
            }
        }
        tally
    }

    /// The number of figures.
    pub fn all(&self) -> usize {
        self.equivalent + self.different + self.undecided
    }
}

impl Equivalence {
    /// `runs`: the figures of reference and candidate, one pair a start phase.
    pub fn of(name: String, runs: &[(Vec<Reading>, Vec<Reading>)]) -> Equivalence {
        let mut keys: Vec<(Kind, &str)> = Vec::new();
        for reading in runs.iter().flat_map(|(was, is)| was.iter().chain(is)) {
            let key = (reading.kind, reading.of.as_str());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys.sort_by_key(|(kind, _)| *kind);
        let figures = keys.into_iter().filter_map(|key| figure(key, runs)).collect();
        Equivalence { name, phases: runs.len() as u32, figures }
    }

    /// Whether no figure is different.
    pub fn holds(&self) -> bool {
        Tally::of(&self.figures).different == 0
    }
}

/// Whether a set is equivalent: of what is decided nine tenths is equivalent, of all at most a tenth undecided, and no energy
/// is different by more than a tenth.
pub fn all_equivalent(set: &[Equivalence]) -> bool {
    let figures = || set.iter().flat_map(|s| &s.figures);
    let tally = Tally::of(figures());
    let decided = (tally.equivalent + tally.different) as f64;
    let off = |f: &Figure| {
        f.kind == Kind::Energy
            && f.verdict == Verdict::Different
            && f.relative().is_none_or(|r| r.abs() > ENERGY)
    };
    tally.equivalent as f64 >= EQUIVALENT * decided
        && tally.undecided as f64 <= UNDECIDED * tally.all() as f64
        && !figures().any(off)
}

fn figure((kind, of): (Kind, &str), runs: &[(Vec<Reading>, Vec<Reading>)]) -> Option<Figure> {
    let find = |side: &[Reading]| {
        side.iter().find(|r| r.kind == kind && r.of == of).map(|r| (r.value, r.floor))
    };
    let found: Vec<_> = runs.iter().map(|(was, is)| (find(was), find(is))).collect();
    let pairs: Vec<(f64, f64)> =
        found.iter().filter_map(|(was, is)| Some((was.as_ref()?.0, is.as_ref()?.0))).collect();
    let alone = found.iter().filter(|(was, is)| was.is_some() != is.is_some()).count();
    // A domain hardly used on one side shows in the time on its CPUs.
    let told_elsewhere = kind == Kind::Frequency;
    if told_elsewhere && 2 * pairs.len() < runs.len() {
        return None;
    }
    let floors = found.iter().flat_map(|(was, is)| [was, is]).flatten().map(|r| r.1);
    let floor = mean(floors)?;
    let exact = floor == 0.0;
    let reference = side(pairs.iter().map(|p| p.0));
    let candidate = side(pairs.iter().map(|p| p.1));
    if kind.happens() && reference.max.max(candidate.max) == 0.0 {
        return None;
    }
    let margin = if exact { 0.0 } else { (MARGIN * reference.mean.abs()).max(floor) };
    let differences: Vec<f64> = pairs.iter().map(|(was, is)| is - was).collect();
    let interval = interval(&differences);
    let verdict = match interval {
        _ if exact => {
            let same = alone == 0 && differences.iter().all(|d| *d == 0.0);
            if same { Verdict::Equivalent } else { Verdict::Different }
        }
        _ if told_elsewhere || alone == 0 => verdict(interval, margin),
        _ if 2 * alone > runs.len() => Verdict::Different,
        // What only one side has cannot be shown to be the same.
        _ => match verdict(interval, margin) {
            Verdict::Equivalent => Verdict::Undecided,
            other => other,
        },
    };
    Some(Figure {
        kind,
        of: of.to_string(),
        pairs: pairs.len() as u32,
        alone: if told_elsewhere { 0 } else { alone as u32 },
        reference,
        candidate,
        difference: candidate.mean - reference.mean,
        interval,
        margin,
        verdict,
    })
}

fn verdict(interval: Option<(f64, f64)>, margin: f64) -> Verdict {
    match interval {
        Some((low, high)) if -margin <= low && high <= margin => Verdict::Equivalent,
        Some((low, high)) if low > margin || high < -margin => Verdict::Different,
        _ => Verdict::Undecided,
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count();
    (n > 0).then(|| values.sum::<f64>() / n as f64)
}

fn side(values: impl Iterator<Item = f64> + Clone) -> Side {
    let Some(mean) = mean(values.clone()) else { return Side::default() };
    Side {
        mean,
        min: values.clone().fold(f64::INFINITY, f64::min),
        max: values.fold(f64::NEG_INFINITY, f64::max),
    }
}

/// The 90 % interval of the mean of these; `None`: fewer than two.
fn interval(d: &[f64]) -> Option<(f64, f64)> {
    let free = d.len().checked_sub(1).filter(|free| *free > 0)?;
    let n = d.len() as f64;
    let mean = d.iter().sum::<f64>() / n;
    let variance = d.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / free as f64;
    let (t, step) = (student_95(free), (variance / n).sqrt());
    if step == 0.0 {
        return Some((mean, mean));
    }
    let third = d.iter().map(|x| (x - mean).powi(3)).sum::<f64>() / n;
    let skewness = third / variance.powf(1.5) * n * n / ((n - 1.0) * (n - 2.0).max(1.0));
    let (low, high) = (hall(t, skewness, n).max(t), hall(-t, skewness, n).min(-t));
    Some((mean - low * step, mean - high * step))
}

/// The quantile of the studentized mean of `n` values of this skewness where Student's is `t`.
///
/// ```text
/// y = x + g (x² / 3 + 1 / 6) + g² x³ / 27,  g = skewness / √n:  nearly symmetric; its inverse at y = t
/// ```
fn hall(t: f64, skewness: f64, n: f64) -> f64 {
    let g = skewness / n.sqrt();
    if g.abs() < 1e-9 {
        return t;
    }
    3.0 / g * ((1.0 + g * (t - g / 6.0)).cbrt() - 1.0)
}

/// The quantile of Student's t that 95 % are below, for so many degrees of freedom, at least 1: a table, from 31 on
/// the first terms of its expansion about the normal quantile (to 0.0001).
fn student_95(free: usize) -> f64 {
    const TABLE: [f64; 30] = [
        6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959,
        1.7823, 1.7709, 1.7613, 1.7531, 1.7459, 1.7396, 1.7341, 1.7291, 1.7247, 1.7207, 1.7171,
        1.7139, 1.7109, 1.7081, 1.7056, 1.7033, 1.7011, 1.6991, 1.6973,
    ];
    if let Some(t) = free.checked_sub(1).and_then(|i| TABLE.get(i)) {
        return *t;
    }
    let (z, v) = (1.644_853_627_f64, free as f64);
    let first = (z.powi(3) + z) / (4.0 * v);
    z + first + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64, as numbers of 0..1.
    struct Draw(u64);

    impl Draw {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
        /// Draws from the standard normal distribution (Box and Muller).
        fn normal(&mut self) -> f64 {
            let (a, b) = (self.uniform().max(1e-300), self.uniform());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        }
    }

    fn reading(kind: Kind, value: f64) -> Reading {
        Reading { kind, of: "a".into(), value, floor: kind.floor_of_test() }
    }

    impl Kind {
        fn floor_of_test(self) -> f64 {
            match self {
                Kind::Energy => 1.0,
                Kind::JobsDue => 0.0,
                _ => 0.05,
            }
        }
    }

    fn judged(pairs: &[(f64, f64)]) -> Figure {
        let run = |(was, is): &(f64, f64)| {
            (vec![reading(Kind::ActivationP50, *was)], vec![reading(Kind::ActivationP50, *is)])
        };
        let runs: Vec<_> = pairs.iter().map(run).collect();
        Equivalence::of("x".into(), &runs).figures.remove(0)
    }

    #[test]
    fn the_interval_is_students() {
        // mean 3, sd √2.5, n 5: 3 ± 2.1318 · 0.70711
        let (low, high) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((low - 1.4926).abs() < 1e-4 && (high - 4.5074).abs() < 1e-4, "{low} {high}");
        assert_eq!(interval(&[1.0]), None);
        assert_eq!(interval(&[2.0, 2.0]), Some((2.0, 2.0)));
        // A long tail above: the mean may well be higher than Student thinks.
        let tail = [1.0, 1.0, 1.2, 0.9, 1.1, 1.0, 0.8, 5.0];
        let (low, high) = interval(&tail).unwrap();
        let (mean, half) = (1.5, 1.8946 * (14.1 / 7.0_f64 / 8.0).sqrt());
        assert!((low - (mean - half)).abs() < 2e-3, "{low}");
        assert!(high > mean + 1.5 * half, "{high}");
        let mirrored = interval(&tail.map(|x| -x)).unwrap();
        assert!((mirrored.0 + high).abs() < 1e-9 && (mirrored.1 + low).abs() < 1e-9);
        // From tables; and both halves of the function meet.
        for (free, t) in
            [(1, 6.314), (15, 1.753), (30, 1.697), (31, 1.6955), (60, 1.6706), (120, 1.6577)]
        {
            assert!((student_95(free) - t).abs() < 5e-4, "{free}: {}", student_95(free));
        }
    }

    #[test]
    fn known_answers() {
        // 10 ms ± 0.1 on both sides, together: equivalent.
        let near: Vec<_> =
            (0..16).map(|k| f64::from(k % 4) / 20.0).map(|x| (10.0 + x, 10.05 + x)).collect();
        let f = judged(&near);
        assert_eq!(f.verdict, Verdict::Equivalent);
        assert!((f.difference - 0.05).abs() < 1e-9 && (f.margin - 0.50375).abs() < 1e-9, "{f:?}");
        // 3 ms apart.
        let far: Vec<_> = near.iter().map(|(was, is)| (*was, is + 3.0)).collect();
        assert_eq!(judged(&far).verdict, Verdict::Different);
        // Half of the phases 1.5 ms up, half 1.5 ms down: nothing is certain.
        let wide: Vec<_> = (0..16).map(|k| (10.0, if k % 2 == 0 { 8.5 } else { 11.5 })).collect();
        let f = judged(&wide);
        assert_eq!(f.verdict, Verdict::Undecided);
        assert!(f.interval.unwrap().0 < 0.0 && f.difference == 0.0);
        // The same differences are too few to tell anything, or enough.
        let mild: Vec<_> = (0..64).map(|k| (10.0, if k % 2 == 0 { 9.4 } else { 10.6 })).collect();
        assert_eq!(judged(&mild[..4]).verdict, Verdict::Undecided);
        assert_eq!(judged(&mild).verdict, Verdict::Equivalent);
        assert_eq!(judged(&mild[..1]).verdict, Verdict::Undecided);
        // Twice as long, and nobody notices: the floor.
        assert_eq!(judged(&[(0.02, 0.05); 4]).verdict, Verdict::Equivalent);
        assert_eq!(judged(&[(0.02, 0.08); 4]).verdict, Verdict::Different);
    }

    #[test]
    fn what_one_side_alone_has_is_not_equivalent() {
        let runs = |alone: usize, kind: Kind| -> Vec<_> {
            let is = |k: usize| if k < alone { vec![] } else { vec![reading(kind, 10.0)] };
            (0..16).map(|k| (vec![reading(kind, 10.0)], is(k))).collect()
        };
        let verdict = |alone, kind| {
            let figures = Equivalence::of("x".into(), &runs(alone, kind)).figures;
            figures.first().map(|f| (f.verdict, f.alone))
        };
        assert_eq!(verdict(0, Kind::ActivationP50), Some((Verdict::Equivalent, 0)));
        assert_eq!(verdict(1, Kind::ActivationP50), Some((Verdict::Undecided, 1)));
        assert_eq!(verdict(9, Kind::ActivationP50), Some((Verdict::Different, 9)));
        assert_eq!(verdict(16, Kind::ActivationP50), Some((Verdict::Different, 16)));
        // A domain that is hardly used.
        assert_eq!(verdict(8, Kind::Frequency), Some((Verdict::Equivalent, 0)));
        assert_eq!(verdict(9, Kind::Frequency), None);
    }

    #[test]
    fn how_many_jobs_are_due_is_the_same_or_not() {
        let judged = |pairs: &[(f64, f64)], kind: Kind| {
            let one = |x: f64| vec![reading(kind, x)];
            let runs: Vec<_> = pairs.iter().map(|(was, is)| (one(*was), one(*is))).collect();
            let figures = Equivalence::of("x".into(), &runs).figures;
            figures.first().map(|f| (f.verdict, f.margins()))
        };
        use Verdict::{Different, Equivalent};
        assert_eq!(judged(&[(118.0, 118.0); 2], Kind::JobsDue), Some((Equivalent, 0.0)));
        assert_eq!(judged(&[(118.0, 118.0)], Kind::JobsDue), Some((Equivalent, 0.0)));
        let apart = [(118.0, 117.0), (117.0, 118.0), (9.0, 9.0)];
        assert_eq!(judged(&apart, Kind::JobsDue).unwrap().0, Different);
        // Where the program's own progress moves them, as any other figure.
        let moved = |value, floor| vec![Reading { floor, ..reading(Kind::JobsDue, value) }];
        let apart = (moved(70.0, 0.0), moved(69.0, 0.69));
        let runs = [apart.clone(), apart, (moved(70.0, 0.7), moved(70.0, 0.7))];
        let figure = Equivalence::of("x".into(), &runs).figures.remove(0);
        assert_eq!((figure.margin, figure.verdict), (3.5, Equivalent));
        // What happens on neither side is no figure; what happens on one is.
        assert_eq!(judged(&[(0.0, 0.0); 2], Kind::JobsLate), None);
        assert_eq!(
            judged(&[(0.0, 0.0), (0.0, 3.0)], Kind::JobsLate).unwrap().0,
            Verdict::Undecided
        );
        assert_eq!(judged(&[(0.0, 0.0); 2], Kind::JobsDone).unwrap().0, Equivalent);
    }

    /// Figures that are off by the margin or more must not pass, whatever their differences look like.
    #[test]
    fn false_equivalence_is_rare() {
        type Noise = fn(&mut Draw) -> f64;
        let noises: [(&str, Noise, f64); 7] = [
            ("normal", Draw::normal, 0.06),
            ("uniform", |d| 3.46 * (d.uniform() - 0.5), 0.06),
            ("long tails", |d| d.normal() * if d.uniform() < 0.1 { 3.0 } else { 0.7 }, 0.06),
            ("two modes", |d| if d.uniform() < 0.5 { 1.0 } else { -1.0 }, 0.06),
            ("three modes", |d| [-1.2, 0.0, 1.2][(3.0 * d.uniform()) as usize % 3], 0.06),
            // A tail on one side only.
            ("late", |d| -d.uniform().max(1e-300).ln() - 1.0, 0.1),
            ("early", |d| d.uniform().max(1e-300).ln() + 1.0, 0.06),
        ];
        const SEEDS: u64 = 4_000;
        for (name, noise, at_most) in noises {
            for sd in [0.2, 0.4] {
                for n in [8, 16] {
                    let passes = |seed: &u64| {
                        let mut draw = Draw(seed * 977);
                        // The reference is 10 in each phase: margin 0.5, and that is how far they are apart.
                        let pair = |_| (10.0, 10.5 + sd * noise(&mut draw));
                        let pairs: Vec<_> = (0..n).map(pair).collect();
                        judged(&pairs).verdict == Verdict::Equivalent
                    };
                    let share = (0..SEEDS).filter(passes).count() as f64 / SEEDS as f64;
                    // 5 % are expected of normal ones, and the draw has a standard error of 0.35 %.
                    assert!(share < at_most, "{name}, sd {sd}, {n} phases: {share}");
                    let beyond = |seed: &u64| {
                        let mut draw = Draw(seed * 977);
                        let pair = |_| (10.0, 10.6 + sd * noise(&mut draw));
                        let pairs: Vec<_> = (0..n).map(pair).collect();
                        judged(&pairs).verdict == Verdict::Equivalent
                    };
                    let share = (0..SEEDS).filter(beyond).count() as f64 / SEEDS as f64;
                    assert!(share < 0.05, "{name}, sd {sd}, {n} phases, 6 % apart: {share}");
                }
            }
        }
    }

    /// … and those that are the same mostly do, where the noise is small.
    #[test]
    fn what_is_the_same_passes() {
        let passes = |seed: &u64| {
            let mut draw = Draw(seed * 31);
            let pair = |_| {
                let x = 10.0 + draw.normal();
                (x, x + 0.5 * draw.normal())
            };
            let pairs: Vec<_> = (0..16).map(pair).collect();
            judged(&pairs).verdict == Verdict::Equivalent
        };
        let share = (0..1000).filter(passes).count();
        assert!(share > 900, "{share}");
    }

    #[test]
    fn a_set_holds_by_nine_tenths_and_its_energies() {
        let figure = |kind, verdict, relative: f64| Figure {
            kind,
            of: String::new(),
            pairs: 16,
            alone: 0,
            reference: Side { mean: 100.0, min: 0.0, max: 0.0 },
            candidate: Side::default(),
            difference: 100.0 * relative,
            interval: None,
            margin: 5.0,
            verdict,
        };
        let set = |parts: &[(usize, Kind, Verdict, f64)]| {
            let all = parts.iter().flat_map(|(n, kind, v, r)| vec![figure(*kind, *v, *r); *n]);
            all_equivalent(&[Equivalence {
                name: String::new(),
                phases: 16,
                figures: all.collect(),
            }])
        };
        use Kind::{Energy, Running};
        use Verdict::{Different, Equivalent, Undecided};
        assert!(set(&[(90, Running, Equivalent, 0.0), (10, Running, Different, 0.5)]));
        assert!(!set(&[(89, Running, Equivalent, 0.0), (11, Running, Different, 0.5)]));
        assert!(set(&[(90, Running, Equivalent, 0.0), (10, Running, Undecided, 0.5)]));
        assert!(!set(&[(89, Running, Equivalent, 0.0), (11, Running, Undecided, 0.5)]));
        assert!(set(&[(99, Running, Equivalent, 0.0), (1, Energy, Different, 0.09)]));
        assert!(!set(&[(99, Running, Equivalent, 0.0), (1, Energy, Different, -0.11)]));
        assert!(set(&[]));
    }
}
