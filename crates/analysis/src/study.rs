//! A published number held against ours, over start phases.
//!
//! ```text
//! measured   = median over the start phases
//! tolerance  = last digit of the source + one tick + spread + open
//! spread     = from the median to the extreme phase on the published number's side
//! open       = of a table's cell: from there to the extreme of what the source leaves open, one thing at a time
//! holds      = |measured − published| ≤ tolerance          ("over 100": measured ≥ 100 − tolerance)
//! ```
//!
//! So a number holds if some start phase reaches it, but for what the source's rounding and one
//! sample of a tick can hide. A row whose tolerance reaches its number cannot fail: it is shown and
//! not counted. Nothing in it can be chosen. Left out: that the published number
//! comes from a single run, whose phase is not known.

/// A study, carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reproduced {
    /// Name of the study.
    pub study: String,
    /// One line for a reader.
    pub about: String,
    /// The document.
    pub source: String,
    /// Number of start phases from which each experiment was run.
    pub phases: u32,
    /// Figure by figure.
    pub figures: Vec<ReproducedFigure>,
}

/// One figure or table of the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReproducedFigure {
    /// Short name.
    pub id: String,
    /// The figure's heading in the document.
    pub place: String,
    /// Setup of the figure, for a reader.
    pub about: String,
    /// The command that runs one of its phases; empty: arithmetic.
    pub command: String,
    /// Row by row.
    pub rows: Vec<JudgedRow>,
    /// Published and measured curves.
    pub curves: Vec<CurvePair>,
    /// Climb of util_est in a burst, if the figure is about that.
    pub climb: Option<Climbed>,
    /// The figure's table of cases and policies, if it has one.
    pub cells: Option<Cells>,
    /// Slack that each policy leaves and energy that it takes, for a grid of periodic tasks.
    pub trade_offs: Vec<TradeOff>,
    /// Experiments with something changed, each held to all rows that count.
    pub elsewhere: Vec<Elsewhere>,
}

/// An experiment with something changed, held to all rows of its figure that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elsewhere {
    /// The changes, after "with …".
    pub about: String,
    /// The number of rows that miss without it.
    pub missing: usize,
    /// The number of rows that hold without it.
    pub holding: usize,
    /// Rows that miss without it and hold with it.
    pub mended: Vec<String>,
    /// Rows that hold without it and miss with it.
    pub broken: Vec<String>,
}

impl Elsewhere {
    /// Compares the figure's rows with the same ones of the experiment, in the same order. One is mended within the tolerance that
    /// it had; one that cannot fail under the experiment is not broken by it.
    pub fn of(about: &str, rows: &[JudgedRow], changed: &[JudgedRow]) -> Elsewhere {
        let judged = || rows.iter().zip(changed).filter(|(row, _)| row.counts());
        let holds = |row: &JudgedRow| row.holds == Some(true);
        let mended = judged().filter(|(row, with)| !holds(row) && row.mended_by(with).0);
        let broken = judged().filter(|(row, with)| holds(row) && !holds(with) && !with.blunt());
        let ids = |(row, _): (&JudgedRow, &JudgedRow)| row.id.clone();
        Elsewhere {
            about: about.to_string(),
            missing: judged().filter(|(row, _)| !holds(row)).count(),
            holding: judged().filter(|(row, _)| holds(row)).count(),
            mended: mended.map(ids).collect(),
            broken: broken.map(ids).collect(),
        }
    }
}

/// A published table and ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// Quantities of the cells, each with its unit.
    pub quantities: Vec<(String, &'static str)>,
    /// Lines, and whether what is free was fitted on them.
    pub cases: Vec<(String, bool)>,
    /// Columns, and whether what is free was fitted on them.
    pub columns: Vec<(String, bool)>,
    /// Cells by quantity, case and column.
    pub cells: Vec<Vec<Vec<Cell>>>,
    /// Choices that the document leaves open, and what was taken for each.
    pub free: Vec<Tried>,
    /// Columns, by place, of which is judged how much the first is above the second.
    pub gains: Vec<(usize, usize)>,
}

/// A published number of a table and ours, medians of the start phases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// The published number; `None`: the document has none.
    pub published: Option<f64>,
    /// Digits after its point.
    pub digits: u8,
    /// Ours; `None`: there is none in such a run.
    pub measured: Option<f64>,
    /// Measured value with the first value of everything free.
    pub untouched: Option<f64>,
    /// Standard deviation of the published number, as the document has it.
    pub stdev: Option<f64>,
    /// Standard deviation of ours, over the start phases; `None` where there is none to hold it
    /// against.
    pub spread: Option<f64>,
}

impl Cell {
    /// The distance |measured − published|.
    pub fn off(&self) -> Option<f64> {
        self.measured.zip(self.published).map(|(m, p)| (m - p).abs())
    }

    /// The cell as a gain over `than`, in %.
    pub fn above(&self, than: &Cell) -> Cell {
        let gain = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| 100.0 * (a / b - 1.0));
        Cell {
            published: gain(self.published, than.published),
            digits: 2,
            measured: gain(self.measured, than.measured),
            untouched: gain(self.untouched, than.untouched),
            ..Cell::default()
        }
    }

    /// The published ratio to `than` (1: the same), and ours; `None`: the published means are no
    /// further apart than the larger of their standard deviations.
    pub fn ratio(&self, than: &Cell) -> Option<Ratio> {
        let (a, b) = self.published.zip(than.published)?;
        let (s, t) = self.stdev.zip(than.stdev)?;
        ((a - b).abs() > s.max(t)).then_some(Ratio {
            published: a / b,
            measured: self.measured.zip(than.measured).map(|(a, b)| a / b),
            stdev: (s / a).max(t / b) * (a / b),
        })
    }
}

/// A ratio of two cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio in the document.
    pub published: f64,
    /// Ours.
    pub measured: Option<f64>,
    /// The larger of the two relative standard deviations, as a part of the ratio.
    pub stdev: f64,
}

/// Something that the document leaves open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tried {
    /// Name in a sweep.
    pub name: String,
    /// The columns that it is about; empty: all.
    pub columns: Vec<String>,
    /// The cases that it is about; empty: all.
    pub cases: Vec<String>,
    /// Reason for these values.
    pub why: String,
    /// Each value with the mean |measured − published| of the cells to fit, the others as they were chosen.
    pub values: Vec<(String, f64)>,
    /// Place of the value that was taken.
    pub chosen: usize,
}

impl Cells {
    /// Whether anything but the first values was taken.
    pub fn searched(&self) -> bool {
        self.free.iter().any(|f| f.chosen > 0)
    }
}

/// Climb of util_est; x in ticks, the first at which it may rise counted as 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Climbed {
    /// Climb by the arithmetic: (ticks, util).
    pub wanted: Vec<(f64, f64)>,
    /// (ticks, smallest, median, largest) of the start phases.
    pub util_est: Vec<(f64, f64, f64, f64)>,
    /// Time from which the task runs at least at a speed, of 1024: (ticks, speed).
    pub speed: Vec<(f64, f64)>,
    /// Time at which util_avg is there under mainline: (ticks, util).
    pub mainline: Vec<(f64, f64)>,
}

/// Slack that a policy leaves in the periods of a grid of tasks, and its cost: medians of the start
/// phases; `None`: nothing ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TradeOff {
    /// Name of the policy, as it was given.
    pub policy: String,
    /// Period less the time from wakeup to sleep: the median of all activations.
    pub slack_ms: Option<f64>,
    /// The least; below 0: it came too late.
    pub slack_least_ms: Option<f64>,
    /// Frequency that the tasks ran at, each's average; the median of the tasks.
    pub mean_ghz: Option<f64>,
    /// Energy of the machine, average of the tasks.
    pub energy_mj: Option<f64>,
}

/// A published number and ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedRow {
    /// `FIGURE/QUANTITY[/cpuN]/AT`.
    pub id: String,
    /// Whether the number is a bound, closed form or prediction of this project.
    pub ours: bool,
    /// Key of the row within the list.
    pub at: String,
    /// Subject of the list: `util_residency`, `freq_residency cpu0`.
    pub list: String,
    /// The published number, in the row's unit.
    pub published: f64,
    /// Digits after its point.
    pub digits: u8,
    /// `≥`, `≤` or nothing.
    pub relation: &'static str,
    /// Median over the start phases; `None`: it never happened, or cannot be measured.
    pub measured: Option<f64>,
    /// Unit of all of them.
    pub unit: &'static str,
    /// Parts of the tolerance.
    pub tolerance: Tolerance,
    /// The verdict; `None`: printed, not judged. [`JudgedRow::counts`] says whether it is counted.
    pub holds: Option<bool>,
    /// Reason why the row is not counted, or why it misses.
    pub note: String,
    /// The changed experiment that argues a miss.
    pub instead: Option<Counterfactual>,
}

/// Measurement of a row with something changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counterfactual {
    /// The changes, after "with …".
    pub about: String,
    /// Measured number, as in the row.
    pub measured: Option<f64>,
    /// Tolerance, as in the row.
    pub tolerance: f64,
    /// Whether the row would hold.
    pub holds: bool,
}

/// The parts of a tolerance, in the row's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// One step of the source's last digit.
    pub last_digit: f64,
    /// One tick, or what it is worth.
    pub tick: f64,
    /// Distance from the median to the extreme phase on the published number's side.
    pub spread: f64,
    /// Distance from there to the extreme of what the source leaves open.
    pub open: f64,
}

impl Tolerance {
    /// The sum of its parts.
    pub fn total(&self) -> f64 {
        self.last_digit + self.tick + self.spread + self.open
    }
}

/// A published curve and ours over the start phases. x in ms from t0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurvePair {
    /// Quantity that the curves show: `util_avg`, `GHz`.
    pub what: &'static str,
    /// Values as printed in the document's lists: a step function.
    pub listed: Vec<(f64, f64)>,
    /// Points read off the document's plot.
    pub drawn: Vec<(f64, f64)>,
    /// (ms, smallest, median, largest) of our phases.
    pub measured: Vec<(f64, f64, f64, f64)>,
}

/// Relation that a number has to have to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Within the tolerance.
    Near,
    /// The row holds if measured is at least published less the tolerance.
    AtLeast,
    /// The row holds if measured is at most published plus the tolerance.
    AtMost,
}

/// Judges whether `published` is what the phases measured. Returns the median of the phases, the
/// spread towards it, and the verdict. A phase in which it never happened counts as later than any
/// other.
pub fn judge(
    published: f64,
    last_digit: f64,
    tick: f64,
    bound: Bound,
    phases: &[Option<f64>],
) -> (Option<f64>, Tolerance, bool) {
    /// Error that a sum of doubles may have.
    const EPSILON: f64 = 1e-9;
    let mut all: Vec<f64> = phases.iter().map(|p| p.unwrap_or(f64::INFINITY)).collect();
    all.sort_by(f64::total_cmp);
    let measured = median(&all);
    let tolerance = |spread| Tolerance { last_digit, tick, spread, open: 0.0 };
    let Some(m) = measured else {
        return (None, tolerance(0.0), bound == Bound::AtLeast && !phases.is_empty());
    };
    let extreme = if published < m { all.first() } else { all.last() };
    let spread = extreme.map_or(0.0, |x| (x - m).abs());
    let tolerance = tolerance(if spread.is_finite() { spread } else { 0.0 });
    let reach = tolerance.total() + EPSILON;
    let holds = match bound {
        Bound::Near => (m - published).abs() <= reach,
        Bound::AtLeast => m >= published - reach,
        Bound::AtMost => m <= published + reach,
    };
    (measured, tolerance, holds)
}

/// The middle of sorted values, the mean of two for an even number; `None` if that is never.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let (a, b) = (*sorted.get(n.checked_sub(1)? / 2)?, *sorted.get(n / 2)?);
    let middle = if a == b { a } else { (a + b) / 2.0 };
    middle.is_finite().then_some(middle)
}

impl JudgedRow {
    /// Whether it is judged and could fail: its tolerance does not reach its number.
    pub fn counts(&self) -> bool {
        self.holds.is_some() && !self.blunt()
    }
    /// Whether its tolerance reaches its number, so that it cannot fail.
    pub fn blunt(&self) -> bool {
        let tolerance = self.tolerance.total();
        self.relation != "≤" && tolerance > 0.0 && tolerance >= self.published.abs()
    }
    /// Whether it holds under a changed experiment (`with`: the same row there), and within which tolerance: the narrower
    /// of both, as a wider one argues nothing.
    pub fn mended_by(&self, with: &JudgedRow) -> (bool, f64) {
        /// Error that a sum of doubles may have.
        const EPSILON: f64 = 1e-9;
        let tolerance = self.tolerance.total().min(with.tolerance.total());
        let near = with.measured.is_some_and(|m| (m - self.published).abs() <= tolerance + EPSILON);
        let is_bound = !self.relation.is_empty();
        (with.holds == Some(true) && (near || is_bound && !with.blunt()), tolerance)
    }
    /// Whether it is counted and does not hold.
    pub fn misses(&self) -> bool {
        self.counts() && self.holds == Some(false)
    }
    /// Whether the study says why it misses: by a changed experiment, which makes it hold, or by its note alone.
    pub fn argued(&self) -> bool {
        self.instead.as_ref().map_or(!self.note.is_empty(), |i| i.holds)
    }
    /// Explains a miss in words: its note, and what the changed experiment says.
    pub fn reason(&self) -> String {
        let Some(i) = &self.instead else { return self.note.clone() };
        let measured = i.measured.map_or("never".to_string(), |m| format!("{m:.1}"));
        let verdict = if i.holds { "holds" } else { "misses, too" };
        let gap = if self.note.is_empty() { "" } else { " " };
        format!(
            "{}{gap}With {}: {measured} ± {:.1}, which {verdict}.",
            self.note, i.about, i.tolerance
        )
    }
}

impl Reproduced {
    /// Iterates over all rows.
    pub fn rows(&self) -> impl Iterator<Item = &JudgedRow> {
        self.figures.iter().flat_map(|f| &f.rows)
    }
    /// Counts the rows.
    pub fn score(&self) -> Score {
        score(self.rows())
    }
    /// Whether every counted row holds, or is argued.
    pub fn holds(&self) -> bool {
        self.rows().all(|r| !r.misses() || r.argued())
    }
    /// Rows that hold, though a note says why they miss.
    pub fn stale(&self) -> impl Iterator<Item = &JudgedRow> {
        self.rows().filter(|r| r.counts() && !r.misses() && !r.note.is_empty())
    }
}

/// Counts of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Rows of the document's own numbers.
    pub document: Tally,
    /// Rows of this project's.
    pub ours: Tally,
    /// Rows in all, those that are printed alone among them.
    pub all: usize,
    /// Rows that are judged and whose tolerance reaches their number: shown, not counted.
    pub blunt: usize,
}

/// Rows that are counted, and those of them that hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows that are judged and can fail.
    pub counted: usize,
    /// Rows that hold.
    pub held: usize,
}

impl Score {
    /// Counts of all, whosever numbers they are.
    pub fn total(&self) -> Tally {
        let (a, b) = (self.document, self.ours);
        Tally { counted: a.counted + b.counted, held: a.held + b.held }
    }
}

/// Counts `rows`.
pub fn score<'a>(rows: impl Iterator<Item = &'a JudgedRow>) -> Score {
    let mut score = Score::default();
    for row in rows {
        score.all += 1;
        score.blunt += usize::from(row.holds.is_some() && row.blunt());
        let tally = if row.ours { &mut score.ours } else { &mut score.document };
        tally.counted += usize::from(row.counts());
        tally.held += usize::from(row.counts() && row.holds == Some(true));
    }
    score
}

/// A study under a wrong policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Against {
    /// The wrong policy, as it was given.
    pub policy: String,
    /// Figure by figure.
    pub figures: Vec<AgainstFigure>,
}

/// A figure under a wrong policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgainstFigure {
    /// Short name.
    pub id: String,
    /// Rows that are counted, and hold, under the figure's own policies.
    pub right: Tally,
    /// Rows of those that hold under the wrong one.
    pub wrong: usize,
}

impl AgainstFigure {
    /// Whether the wrong policy loses at least half of the rows that hold under the right ones.
    pub fn told_apart(&self) -> bool {
        2 * self.wrong <= self.right.held
    }
}

impl Against {
    /// The study under `policy`, `wrong`, beside the study under its own policies, `right`: the same
    /// rows in the same order.
    pub fn of(policy: &str, right: &Reproduced, wrong: &Reproduced) -> Against {
        let figure = |(right, wrong): (&ReproducedFigure, &ReproducedFigure)| {
            let counted = right.rows.iter().zip(&wrong.rows).filter(|(row, _)| row.counts());
            AgainstFigure {
                id: right.id.clone(),
                right: score(right.rows.iter()).total(),
                wrong: counted.filter(|(_, row)| row.holds == Some(true)).count(),
            }
        };
        let figures = right.figures.iter().zip(&wrong.figures).map(figure).collect();
        Against { policy: policy.to_string(), figures }
    }

    /// Counts of all figures: under their own policies, and what holds under the wrong one.
    pub fn total(&self) -> (Tally, usize) {
        self.figures.iter().fold((Tally::default(), 0), |(mut right, wrong), figure| {
            right.counted += figure.right.counted;
            right.held += figure.right.held;
            (right, wrong + figure.wrong)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(published: f64, phases: &[f64]) -> (Option<f64>, f64, bool) {
        let phases: Vec<Option<f64>> = phases.iter().copied().map(Some).collect();
        let (m, t, holds) = judge(published, 0.1, 1.0, Bound::Near, &phases);
        (m, t.total(), holds)
    }

    #[test]
    fn the_spread_counts_on_the_side_of_the_published_number_only() {
        // Phases reach down to 4 and up to 11 around the median 10.
        let phases = [4.0, 10.0, 11.0];
        assert_eq!(near(3.0, &phases), (Some(10.0), 7.1, true));
        assert_eq!(near(2.8, &phases), (Some(10.0), 7.1, false));
        assert_eq!(near(12.1, &phases), (Some(10.0), 2.1, true));
        assert_eq!(near(12.2, &phases), (Some(10.0), 2.1, false));
    }

    #[test]
    fn an_experiment_is_held_to_every_row_that_counts() {
        let row = |id: &str, holds: Option<bool>| JudgedRow {
            id: id.into(),
            published: 5.0,
            measured: Some(if holds == Some(true) { 5.0 } else { 12.0 }),
            holds,
            ..JudgedRow::default()
        };
        let of = |a, b, c| [row("a", a), row("b", b), row("c", c)];
        let (yes, no) = (Some(true), Some(false));
        let found = Elsewhere::of("x", &of(no, yes, None), &of(yes, no, yes));
        assert_eq!((found.missing, found.holding), (1, 1), "what is not judged is no row");
        assert_eq!((found.mended, found.broken), (vec!["a".to_string()], vec!["b".to_string()]));
        let mut blunt = of(yes, no, yes);
        for row in &mut blunt {
            (row.tolerance.spread, row.measured) = (9.0, Some(12.0));
        }
        let found = Elsewhere::of("x", &of(no, yes, None), &blunt);
        assert_eq!((found.mended.len(), found.broken.len()), (0, 0), "what cannot fail");
    }

    #[test]
    fn what_never_happened_is_later_than_everything() {
        let never = [None, None, Some(3.0)];
        assert_eq!(judge(3.0, 1.0, 1.0, Bound::Near, &never).0, None);
        assert!(!judge(3.0, 1.0, 1.0, Bound::Near, &never).2);
        assert!(judge(100.0, 1.0, 1.0, Bound::AtLeast, &never).2, "still there: over 100");
        assert!(!judge(100.0, 1.0, 1.0, Bound::AtLeast, &[]).2, "nothing measured");
        // One phase that never arrives does not make every number right.
        let one = [Some(3.0), Some(3.0), None];
        assert!(!judge(9.0, 1.0, 1.0, Bound::Near, &one).2);
    }

    #[test]
    fn a_study_holds_where_every_miss_is_argued() {
        let row = |holds: Option<bool>, note: &str, instead: Option<bool>| JudgedRow {
            holds,
            note: note.into(),
            instead: instead.map(|holds| Counterfactual { holds, ..Counterfactual::default() }),
            ..JudgedRow::default()
        };
        let study = |rows: &[JudgedRow]| Reproduced {
            figures: vec![ReproducedFigure { rows: rows.to_vec(), ..ReproducedFigure::default() }],
            ..Reproduced::default()
        };
        let (right, left_out) = (row(Some(true), "", None), row(None, "left out", None));
        for (missing, holds) in [
            (row(Some(false), "why", None), true),
            (row(Some(false), "", Some(true)), true),
            (row(Some(false), "why", Some(false)), false),
            (row(Some(false), "", None), false),
        ] {
            let study = study(&[right.clone(), missing.clone(), left_out.clone()]);
            assert_eq!((study.holds(), study.stale().count()), (holds, 0), "{missing:?}");
        }
        let study = study(&[right, row(Some(true), "why", None), left_out]);
        assert_eq!((study.holds(), study.stale().count()), (true, 1));
    }

    #[test]
    fn bounds_hold_on_one_side() {
        let phases = [Some(50.0)];
        assert!(!judge(100.0, 1.0, 4.0, Bound::AtLeast, &phases).2);
        assert!(judge(54.0, 1.0, 4.0, Bound::AtLeast, &phases).2);
        assert!(judge(100.0, 1.0, 4.0, Bound::AtMost, &phases).2);
        assert!(!judge(44.0, 1.0, 4.0, Bound::AtMost, &phases).2);
    }
}
