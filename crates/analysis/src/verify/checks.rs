//! The six checks, each with its band and the reason for it.

use crate::verify::{Curve, Stretch};
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_model::Platform;
use std::collections::BTreeMap;

/// The names of the six checks.
pub const CHECKS: [&str; 6] =
    ["util_at_tick", "opp_sequence", "opp_times", "migrations", "time_on_cpu", "waiting"];

/// The freedom that the candidate had to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Frequencies, migrations, when tasks were awake and how long ticks took were fed in: the signal
    /// arithmetic is judged, and who is picked.
    Given,
    /// The candidate decided everything itself.
    Free,
}

impl Mode {
    /// The word that JSON uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Given => "given",
            Mode::Free => "free",
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Measured deviation.
    pub measured: f64,
    /// Bound of the deviation: at least (`util_at_tick`) or at most.
    pub band: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// The reason for the band, or what differs.
    pub why: String,
}

impl Check {
    /// The distance by which the figure is outside its band; of two checks that fail alike the
    /// larger one is worse.
    pub fn excess(&self) -> f64 {
        let at_least = self.unit == "%";
        if at_least { self.band - self.measured } else { self.measured - self.band }
    }
}

/// Two curves held against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The mode: what was free to differ.
    pub mode: Mode,
    /// The six checks.
    pub checks: Vec<Check>,
}

impl Comparison {
    /// Merges several tasks' comparisons: of each check the worst, with the task's name where there
    /// are others.
    pub fn worst(mode: Mode, each: Vec<(&str, Comparison)>) -> Comparison {
        let several = each.len() > 1;
        let mut checks: Vec<Check> = Vec::new();
        for (task, comparison) in each {
            for (i, mut check) in comparison.checks.into_iter().enumerate() {
                if several {
                    check.why = format!("{task}: {}", check.why);
                }
                match checks.get_mut(i) {
                    Some(worst) if check.excess() > worst.excess() => *worst = check,
                    Some(_) => {}
                    None => checks.push(check),
                }
            }
        }
        Comparison { mode, checks }
    }

    /// The number of checks that hold.
    pub fn held(&self) -> usize {
        self.checks.iter().filter(|c| c.holds).count()
    }
}

/// Util above this is the flat end of the curve, where every simulator is right.
const UTIL_END: u64 = 1000;
/// A stretch shorter than this part of a tick is a passing frequency, not a step.
const PASSING: u64 = 4;

/// Events of both may be this part of a tick apart without being different: interrupts, context
/// switches and the creation of threads take time on a real kernel.
const JITTER: u64 = 16;

/// Holds `candidate` against `reference`; `first_tick` is the reference's first tick after t0.
pub fn compare(
    platform: &Platform,
    reference: &Curve,
    candidate: &Curve,
    first_tick: Span,
    mode: Mode,
) -> Comparison {
    let tick = platform.tick();
    let steps = (steps_of(reference, tick), steps_of(candidate, tick));
    let checks = vec![
        util_at_tick(reference, candidate, first_tick, tick, mode),
        opp_sequence(platform, &steps.0, &steps.1),
        opp_times(&steps.0, &steps.1, tick),
        migrations(reference, candidate, tick),
        time_on_cpu(reference, candidate, tick),
        waiting(reference, candidate, tick),
    ];
    Comparison { mode, checks }
}

fn ms(span: Span) -> f64 {
    span.as_ms()
}

fn apart(a: Span, b: Span) -> Span {
    Span(a.0.abs_diff(b.0))
}

/// The share of ticks at which both utils agree, of those at which the reference's task runs: the
/// tick updates no other.
fn util_at_tick(
    reference: &Curve,
    candidate: &Curve,
    first_tick: Span,
    tick: Span,
    mode: Mode,
) -> Check {
    // A quarter of a tick after it, so that the update of the tick itself is over.
    let moments = (0..)
        .map(|k| Span(first_tick.0 + k * tick.0 + tick.0 / 4))
        .take_while(|t| *t < reference.length.min(candidate.length));
    let (mut samples, mut good, mut worst) = (0u32, 0u32, 0u64);
    for at in moments {
        let tick_at = Span(at.0 - tick.0 / 4);
        let Some(was) = reference.util_at(at).filter(|_| reference.runs_at(tick_at)) else {
            continue;
        };
        let near = candidate.utils_near(at, Span(tick.0 / JITTER));
        let Some(apart) = near.iter().map(|(_, u)| u.abs_diff(was)).min() else { continue };
        if was >= UTIL_END {
            continue;
        }
        let next = reference.util_at(at + tick).unwrap_or(was);
        let before = reference.util_at(Span(at.0.saturating_sub(tick.0))).unwrap_or(was);
        let allowed = match mode {
            Mode::Given => 5,
            Mode::Free => next.abs_diff(was).max(was.abs_diff(before)) + 1,
        };
        samples += 1;
        good += u32::from(apart <= allowed);
        worst = worst.max(apart);
    }
    let (band, within) = match mode {
        Mode::Given => (99.0, "5"),
        Mode::Free => (95.0, "one tick's growth"),
    };
    let measured = if samples == 0 { 100.0 } else { f64::from(good) * 100.0 / f64::from(samples) };
    let why = format!(
        "{good} of {samples} ticks below util {UTIL_END} within {within}; worst {worst} apart"
    );
    Check { name: "util_at_tick", measured, band, unit: "%", holds: measured >= band, why }
}

/// The OPPs the task ran at, passing ones left out, repeated ones merged.
fn steps_of(curve: &Curve, tick: Span) -> Vec<Stretch> {
    let mut steps: Vec<Stretch> = Vec::new();
    for s in curve.ran.iter().filter(|s| s.ran.0 >= tick.0 / PASSING) {
        match steps.last_mut() {
            Some(last) if (last.domain, last.freq) == (s.domain, s.freq) => {
                (last.to, last.ran) = (s.to, last.ran + s.ran);
            }
            _ => steps.push(*s),
        }
    }
    steps
}

/// Checks how many OPPs must be changed to the next one, added or left out to make the one sequence
/// the other.
fn opp_sequence(platform: &Platform, reference: &[Stretch], candidate: &[Stretch]) -> Check {
    let key = |s: &Stretch| (s.domain, s.freq);
    let (a, b): (Vec<_>, Vec<_>) =
        (reference.iter().map(key).collect(), candidate.iter().map(key).collect());
    let distance = edit_distance(&a, &b, |x, y| neighbours(platform, *x, *y));
    let why = if distance == 0 {
        format!("the same {} OPPs in the same order", a.len())
    } else {
        format!("{} against {}", list(&a), list(&b))
    };
    Check {
        name: "opp_sequence",
        measured: f64::from(distance),
        band: 1.0,
        unit: "OPPs",
        holds: distance <= 1,
        why,
    }
}

fn list(opps: &[(CpuId, KHz)]) -> String {
    opps.iter().map(|(_, f)| (f.0 / 1000).to_string()).collect::<Vec<_>>().join(" ")
}

/// Whether `y` is the OPP beside `x` in the same domain.
fn neighbours(platform: &Platform, x: (CpuId, KHz), y: (CpuId, KHz)) -> bool {
    let index = |(cpu, freq): (CpuId, KHz)| {
        let domain = platform.domain_of(cpu)?;
        platform.domains[domain].opps.iter().position(|o| o.freq == freq)
    };
    x.0 == y.0 && index(x).zip(index(y)).is_some_and(|(i, j)| i.abs_diff(j) == 1)
}

/// The edit distance (Levenshtein); replacing one OPP by another that is not its neighbour counts
/// as two.
fn edit_distance<T: PartialEq>(a: &[T], b: &[T], cheap: impl Fn(&T, &T) -> bool) -> u32 {
    let mut row: Vec<u32> = (0..=b.len() as u32).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i as u32 + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal
                + if x == y {
                    0
                } else if cheap(x, y) {
                    1
                } else {
                    2
                };
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// The largest difference in when an OPP was first reached, over those that both have.
fn opp_times(reference: &[Stretch], candidate: &[Stretch], tick: Span) -> Check {
    let first = |steps: &[Stretch]| {
        let mut first: BTreeMap<(CpuId, KHz), Span> = BTreeMap::new();
        for s in steps {
            first.entry((s.domain, s.freq)).or_insert(s.from);
        }
        first
    };
    let (a, b) = (first(reference), first(candidate));
    let worst = a.iter().filter_map(|(k, x)| b.get(k).map(|y| (apart(*x, *y), k, x, y))).max();
    let why = match worst {
        Some((_, (_, freq), x, y)) => {
            format!(
                "largest at {} MHz: after {:.2} against {:.2} ms; one tick, since ticks decide",
                freq.0 / 1000,
                ms(*x),
                ms(*y)
            )
        }
        None => "no OPP that both ran at".to_string(),
    };
    let measured = worst.map_or(f64::INFINITY, |(d, ..)| ms(d));
    Check {
        name: "opp_times",
        measured,
        band: ms(tick),
        unit: "ms",
        holds: measured <= ms(tick),
        why,
    }
}

/// The largest difference in when the task changed clusters.
fn migrations(reference: &Curve, candidate: &Curve, tick: Span) -> Check {
    let (a, b) = (&reference.moves, &candidate.moves);
    let same = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x.1, x.2) == (y.1, y.2));
    let worst = a.iter().zip(b).map(|(x, y)| apart(x.0, y.0)).max().unwrap_or_default();
    let measured = if same { ms(worst) } else { f64::INFINITY };
    let why = if same {
        format!("{} moves, one tick, since ticks decide", a.len())
    } else {
        format!("{} moves against {}", a.len(), b.len())
    };
    Check {
        name: "migrations",
        measured,
        band: ms(tick),
        unit: "ms",
        holds: measured <= ms(tick),
        why,
    }
}

/// The largest difference in running time in a frequency domain.
fn time_on_cpu(reference: &Curve, candidate: &Curve, tick: Span) -> Check {
    let times = |c: &Curve| {
        let mut times: BTreeMap<CpuId, u64> = BTreeMap::new();
        for s in &c.ran {
            *times.entry(s.domain).or_default() += s.ran.0;
        }
        times
    };
    let (a, b) = (times(reference), times(candidate));
    let of = |m: &BTreeMap<CpuId, u64>, d: &CpuId| m.get(d).copied().unwrap_or(0);
    let worst = a
        .keys()
        .chain(b.keys())
        .map(|d| (of(&a, d).abs_diff(of(&b, d)), *d))
        .max()
        .unwrap_or((0, CpuId(0)));
    let band = ms(tick).max(ms(reference.length) / 100.0);
    let measured = ms(Span(worst.0));
    let why = format!(
        "largest in the domain of {}: {:.2} against {:.2} ms; one tick, or 1 % of the run",
        worst.1,
        ms(Span(of(&a, &worst.1))),
        ms(Span(of(&b, &worst.1)))
    );
    Check { name: "time_on_cpu", measured, band, unit: "ms", holds: measured <= band, why }
}

/// The difference in time spent runnable without running.
fn waiting(reference: &Curve, candidate: &Curve, tick: Span) -> Check {
    let measured = ms(apart(reference.waited, candidate.waited));
    let band = ms(tick).max(ms(reference.waited) / 20.0);
    let why = format!(
        "{:.2} against {:.2} ms; one tick, or 5 %",
        ms(reference.waited),
        ms(candidate.waited)
    );
    Check { name: "waiting", measured, band, unit: "ms", holds: measured <= band, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(steps: &[(u64, u64, u32, u64)]) -> Curve {
        let ran: Vec<Stretch> = steps
            .iter()
            .map(|&(from, to, cpu, mhz)| Stretch {
                from: Span::from_ms(from),
                to: Span::from_ms(to),
                ran: Span::from_ms(to - from),
                domain: CpuId(cpu),
                freq: KHz(mhz * 1000),
            })
            .collect();
        let length = ran.last().map_or(Span(0), |s| s.to);
        let util = (0..length.0 / 1_000_000).map(|t| (Span::from_ms(t), 10 * t)).collect();
        Curve {
            util,
            on: vec![(Span(0), length)],
            ran,
            moves: vec![(Span::from_ms(40), CpuId(0), CpuId(4))],
            waited: Span(0),
            length,
        }
    }
    fn names(c: &Comparison) -> Vec<&'static str> {
        c.checks.iter().filter(|c| !c.holds).map(|c| c.name).collect()
    }

    #[test]
    fn each_check_notices_what_it_is_for() {
        let m1 = Platform::load("m1").unwrap();
        let reference =
            curve(&[(0, 20, 0, 600), (20, 40, 0, 972), (40, 60, 4, 1500), (60, 90, 4, 1728)]);
        let against =
            |candidate: &Curve| compare(&m1, &reference, candidate, Span(500_000), Mode::Free);
        assert_eq!(names(&against(&reference)), [] as [&str; 0]);
        // A neighbour instead of the OPP is allowed, two changes are not.
        let neighbour =
            curve(&[(0, 20, 0, 600), (20, 40, 0, 972), (40, 60, 4, 1284), (60, 90, 4, 1728)]);
        assert_eq!(names(&against(&neighbour)), [] as [&str; 0]);
        let other =
            curve(&[(0, 20, 0, 600), (20, 40, 0, 972), (40, 60, 4, 3204), (60, 90, 4, 1728)]);
        assert_eq!(names(&against(&other)), ["opp_sequence"]);
        let late =
            curve(&[(0, 22, 0, 600), (22, 40, 0, 972), (40, 60, 4, 1500), (60, 90, 4, 1728)]);
        assert_eq!(names(&against(&late)), ["opp_times"]);
        let mut waited = reference.clone();
        waited.waited = Span::from_ms(2);
        assert_eq!(names(&against(&waited)), ["waiting"]);
        let mut stayed = reference.clone();
        stayed.moves.clear();
        assert_eq!(names(&against(&stayed)), ["migrations"]);
        let longer =
            curve(&[(0, 20, 0, 600), (20, 43, 0, 972), (43, 60, 4, 1500), (60, 90, 4, 1728)]);
        assert_eq!(names(&against(&longer)), ["opp_times", "time_on_cpu"]);
        let mut faster = reference.clone();
        faster.util.iter_mut().for_each(|(_, u)| *u += 12);
        assert_eq!(names(&against(&faster)), ["util_at_tick"]);
    }

    #[test]
    fn edit_distance_counts_a_far_replacement_twice() {
        let near = |a: &i32, b: &i32| (a - b).abs() == 1;
        assert_eq!(edit_distance(&[1, 2, 3], &[1, 2, 3], near), 0);
        assert_eq!(edit_distance(&[1, 2, 3], &[1, 3], near), 1);
        assert_eq!(edit_distance(&[1, 2, 3], &[1, 2, 4], near), 1);
        assert_eq!(edit_distance(&[1, 2, 3], &[1, 2, 9], near), 2);
        assert_eq!(edit_distance(&[] as &[i32], &[1, 2], near), 2);
    }
}
