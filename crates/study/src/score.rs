//! A benchmark's score by policy, from ramps alone.
//!
//! ```text
//! model    the benchmark is bursts of W ms of full-speed work, each from util 0
//! T_p(W)   time that such a burst takes under policy p:  ∫₀ᵀ s_p dt = W, s_p of the ramp-up
//! score    K / T_p(W)
//! fit      W so that T_a(W) / T_b(W) = score_b / score_a for the list's two fitted policies a, b;
//!          K from a. The other policies are predictions.
//! ```
//!
//! Where several W fit, the longest is taken: there all policies have passed their onset, and a
//! longer burst only tells them less apart. Left out: what util is left over from the burst
//! before, other threads, and everything that does not wait for the CPU.

use super::judged_row;
use super::measure::{Phases, t0};
use risetime_analysis::study::{JudgedRow, median};
use risetime_lab::Run;
use risetime_model::InputError;
use risetime_model::study::{Figure, List};
use risetime_trace::RunError;

/// Longest burst looked at, in ms of full-speed work.
const LONGEST: f64 = 800.0;
/// Steps of the search for W, then halved.
const STEPS: u32 = 1600;

/// Work done since t0 at each change of speed: (ms since t0, ms of full-speed work).
type Work = Vec<(f64, f64)>;

struct Ramp {
    policy: String,
    phases: Vec<Work>,
    tick: f64,
}

/// The rows of the list, the fitted ones not counted.
pub(super) fn rows(
    figure: &Figure,
    list: &List,
    run: &dyn Fn(&str) -> Result<Phases, RunError>,
) -> Result<Vec<JudgedRow>, RunError> {
    let ramps: Vec<Ramp> = list
        .rows
        .iter()
        .map(|row| {
            let runs = run(&row.policy())?;
            let phases = runs.runs.iter().map(work).collect();
            Ok(Ramp { policy: row.at.to_string(), phases, tick: runs.tick_ms })
        })
        .collect::<Result<_, RunError>>()?;
    let place = format!("figure {}: score", figure.id);
    let (w, k) = match fit(list, &ramps) {
        Ok(fit) => fit,
        // Under a wrong policy no model is an answer, too.
        Err(_) if list.rows.iter().any(|row| row.under.is_some()) => {
            let nothing = |row| judged_row(figure, list, row, 0.0, 0.0, &[]);
            return Ok(list.rows.iter().map(nothing).collect());
        }
        Err(what) => return Err(InputError::new(place, what).into()),
    };
    let fitted = |policy: &str| list.fit.iter().any(|f| f == policy);
    let judged = list.rows.iter().zip(&ramps).map(|(row, ramp)| {
        let scores: Vec<Option<f64>> =
            ramp.phases.iter().map(|p| Some(k / time_for(p, w)?)).collect();
        let typical = time(ramp, w).unwrap_or(f64::INFINITY);
        let tick = k / typical - k / (typical + ramp.tick);
        let mut out = judged_row(figure, list, row, row.published.last_digit(), tick, &scores);
        if fitted(&ramp.policy) {
            out.holds = None;
            out.note = format!("fitted: bursts of {w:.1} ms of full-speed work");
        }
        out
    });
    Ok(judged.collect())
}

/// Fits W and K. Errors (without place): not two fitted rows, or no W that fits them.
fn fit(list: &List, ramps: &[Ramp]) -> Result<(f64, f64), String> {
    let fitted: Vec<(&Ramp, f64)> = list
        .rows
        .iter()
        .zip(ramps)
        .filter(|(_, r)| list.fit.contains(&r.policy))
        .map(|(row, r)| (r, row.published.value))
        .collect();
    let [(a, score_a), (b, score_b)] = fitted[..] else {
        return Err(format!("{} rows are fitted, wanted two", fitted.len()));
    };
    // Positive where b gains more over a than published.
    let excess = |w: f64| Some(time(a, w)? / time(b, w)? - score_b / score_a);
    let step = LONGEST / f64::from(STEPS);
    let at = |i: u32| f64::from(i) * step;
    let from = (1..STEPS)
        .rev()
        .find(|&i| excess(at(i)).is_some_and(|e| e > 0.0))
        .filter(|&i| i + 1 < STEPS)
        .ok_or("no length of burst fits the two rows")?;
    let (mut low, mut high) = (at(from), at(from + 1));
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if excess(middle).is_some_and(|e| e > 0.0) { low = middle } else { high = middle }
    }
    let w = low;
    Ok((w, score_a * time(a, w).unwrap_or(0.0)))
}

/// The median time of a burst of work `w`.
fn time(ramp: &Ramp, w: f64) -> Option<f64> {
    let mut all: Vec<f64> = ramp.phases.iter().filter_map(|p| time_for(p, w)).collect();
    all.sort_by(f64::total_cmp);
    median(&all)
}

/// The time at which the work `w` is done; `None`: it is not.
fn time_for(work: &Work, w: f64) -> Option<f64> {
    let n = work.partition_point(|(_, done)| *done < w);
    let (&(t1, w1), &(t0, w0)) = (work.get(n)?, work.get(n.checked_sub(1)?)?);
    Some(t0 + (t1 - t0) * (w - w0) / (w1 - w0))
}

fn work(run: &Run) -> Work {
    let Some((start, timeline)) = t0(run).zip(run.timeline.as_ref()) else { return Vec::new() };
    let mut done = 0.0;
    let mut last: Option<(f64, f64)> = None;
    let mut all = Vec::new();
    for &(t, speed) in timeline.speed.iter().filter(|(t, _)| *t >= start) {
        if let Some((since, s)) = last {
            done += (t - since) * s / 1024.0;
        }
        all.push((t - start, done));
        last = Some((t, speed));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::study::{At, Decimal, Origin, Quantity, Relation, Row};

    /// A policy that wastes `lost` ms at speed 0, and then is at full speed.
    fn ramp(policy: &str, lost: f64) -> Ramp {
        let work = vec![(0.0, 0.0), (lost, 0.0), (lost + 2000.0, 2000.0)];
        Ramp { policy: policy.into(), phases: vec![work; 3], tick: 1.0 }
    }

    fn list(fit: &[&str], scores: &[(&str, f64)]) -> List {
        let row = |(policy, score): &(&str, f64)| Row {
            at: At::Name(policy.to_string()),
            under: None,
            origin: Origin::Document,
            published: Decimal { value: *score, digits: 0 },
            relation: Relation::Equal,
            counted: true,
            note: String::new(),
            instead: None,
        };
        List {
            quantity: Quantity::Score,
            cpu: None,
            hz: 1000,
            fit: fit.iter().map(|f| f.to_string()).collect(),
            policy: None,
            reading: Default::default(),
            ms: None,
            metric: None,
            note: String::new(),
            settings: Vec::new(),
            rows: scores.iter().map(row).collect(),
        }
    }

    #[test]
    fn a_burst_takes_its_work_and_what_is_lost() {
        let work = &ramp("a", 90.0).phases[0];
        assert_eq!(time_for(work, 100.0), Some(190.0));
        assert_eq!(time_for(work, 3000.0), None, "the run is too short to say");
    }

    #[test]
    fn the_length_follows_from_two_scores() {
        // (W + 90) / (W + 40) = 1.25: W = 160; K = 100 · 250.
        let ramps = [ramp("a", 90.0), ramp("b", 40.0), ramp("c", 0.0)];
        let list = list(&["a", "b"], &[("a", 100.0), ("b", 125.0), ("c", 1.0)]);
        let (w, k) = fit(&list, &ramps).expect("fits");
        assert!((w - 160.0).abs() < 1e-6 && (k - 25_000.0).abs() < 1e-3, "{w} {k}");
    }

    #[test]
    fn what_cannot_be_fitted_is_said() {
        let ramps = [ramp("a", 90.0), ramp("b", 40.0)];
        let scores = [("a", 100.0), ("b", 99.0)];
        let said = fit(&list(&["a", "b"], &scores), &ramps).expect_err("b is faster");
        assert!(said.contains("no length of burst"), "{said}");
        let said = fit(&list(&["a"], &scores), &ramps).expect_err("one row");
        assert!(said.starts_with("1 rows are fitted"), "{said}");
    }
}
