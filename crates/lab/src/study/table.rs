//! A published table beside ours, and what it leaves open, searched.
//!
//! ```text
//! cell      the figure's experiment, with what case, column and all that is free change of it: medians of its start phases
//! scale     one number by which the cells to fit are the published ones in the mean; all cells times that
//! between   100 · (x − x₀) / (x₁ − x₀), x₀ and x₁ of the same case under the two references
//! search    one free thing after the other: of its values the one with the least mean |measured − published| of the cells
//!           to fit, the others as they are; over again until nothing changes. By the first quantity alone.
//! defaults  the same cells with the first value of everything free: printed beside, as what nobody has searched
//! ```
//!
//! Nothing is free for one cell alone, and nothing is looked at but the cells to fit before the search is over.

use crate::measure::measure_each;
use crate::request::Request;
use crate::sweep::varied;
use risetime_analysis::metric::Metric;
use risetime_analysis::study::{Cell, Cells, JudgedRow, Tried, median};
use risetime_model::study::table::{CellQuantity, Check, Free, Scale, Table, Vary, What};
use risetime_model::study::{Figure, Relation};
use risetime_model::{Experiment, InputError};
use risetime_sim::Simulator;
use risetime_trace::RunError;
use std::collections::BTreeMap;

/// Start phases of a cell while the search is on.
const SEARCHED: u32 = 4;
/// So often each free thing is looked at again.
const ROUNDS: usize = 4;

/// What came of the figure's table, and its checks.
///
/// Errors: something varied that does not exist; a metric that a run does not have; the simulator's.
pub(super) fn reproduced(
    figure: &Figure,
    table: &Table,
    base: &Request,
    phases: u32,
) -> Result<(Cells, Vec<JudgedRow>, String), RunError> {
    let mut runs = Runs { table, base, place: super::place(figure), known: BTreeMap::new() };
    let defaults = vec![0; table.free.len()];
    let (chosen, free) = runs.search(defaults.clone(), phases.min(SEARCHED))?;
    let ours = runs.all(&chosen, phases)?;
    let untouched = if chosen == defaults { ours.clone() } else { runs.all(&defaults, phases)? };
    let cells = cells(table, &ours, &untouched, free);
    let rows = table.checks.iter().map(|check| judged(figure, table, check, &cells)).collect();
    let first = runs.point(&table.cases[0].vary, Some(0), &table.columns[0].vary, &chosen);
    let command = runs.request(&first)?.0.command();
    Ok((cells, rows, command))
}

/// Could every cell be run?
///
/// Errors: as [`reproduced`]'s, but for the simulator's.
pub(super) fn check_table(
    figure: &Figure,
    table: &Table,
    base: &Request,
) -> Result<(), InputError> {
    let runs = Runs { table, base, place: super::place(figure), known: BTreeMap::new() };
    let most = table.free.iter().map(|f| f.values.len()).max().unwrap_or(1);
    for value in 0..most {
        let chosen: Vec<usize> = table.free.iter().map(|f| value.min(f.values.len() - 1)).collect();
        for point in runs.points(&chosen) {
            let experiment = runs.request(&point)?.1;
            for q in &table.quantities {
                Metric::new(&q.metric).check(&experiment.workload)?;
            }
        }
    }
    Ok(())
}

/// What each case and column changes, and all that is free.
type Point = Vec<(String, String)>;
/// By case, column and quantity.
type All = Vec<Vec<Vec<Option<f64>>>>;

struct Runs<'a> {
    table: &'a Table,
    base: &'a Request,
    place: String,
    /// The figures of an experiment, by its start phases.
    known: BTreeMap<(u32, Point), Vec<Option<f64>>>,
}

impl Runs<'_> {
    /// `column`: by its place; `None`: a reference.
    fn point(&self, case: &Vary, column: Option<usize>, vary: &Vary, chosen: &[usize]) -> Point {
        let about = |f: &Free| match column {
            Some(column) => f.columns.is_empty() || f.columns.contains(&column),
            None => f.columns.is_empty(),
        };
        let free = self.table.free.iter().zip(chosen).filter(|(f, _)| about(f));
        let free = free.map(|(f, &i)| (f.name.clone(), f.values[i].clone()));
        case.iter().chain(vary).cloned().chain(free).collect()
    }

    /// The references of a case.
    fn ends(&self, case: &Vary, q: usize, chosen: &[usize]) -> Option<[Point; 2]> {
        let between = self.table.quantities[q].between.as_ref()?;
        Some([0, 1].map(|end| self.point(case, None, &between[end], chosen)))
    }

    /// All that has to be run.
    fn points(&self, chosen: &[usize]) -> Vec<Point> {
        let mut all = Vec::new();
        for case in &self.table.cases {
            for (i, column) in self.table.columns.iter().enumerate() {
                all.push(self.point(&case.vary, Some(i), &column.vary, chosen));
            }
            let ends =
                (0..self.table.quantities.len()).filter_map(|q| self.ends(&case.vary, q, chosen));
            all.extend(ends.flatten());
        }
        all
    }

    fn request(&self, point: &Point) -> Result<(Request, Experiment), InputError> {
        let pairs: Vec<(&str, &str)> = point.iter().map(|(n, v)| (&**n, &**v)).collect();
        let of_place =
            |e: InputError| InputError { place: format!("{}: {}", self.place, e.place), ..e };
        let (request, mut found) =
            varied(self.base, &pairs, Request::experiments).map_err(of_place)?;
        let experiment = found.pop().ok_or_else(|| InputError::new(&self.place, "no policy"))?;
        Ok((request, experiment))
    }

    /// Runs what of `points` is not known yet.
    fn run(&mut self, points: &[Point], phases: u32) -> Result<(), RunError> {
        let mut new: Vec<&Point> =
            points.iter().filter(|p| !self.known.contains_key(&(phases, (*p).clone()))).collect();
        new.sort();
        new.dedup();
        let experiments: Vec<Experiment> = new
            .iter()
            .map(|p| self.request(p).map(|(_, e)| e))
            .collect::<Result<_, InputError>>()?;
        let metrics: Vec<Metric> =
            self.table.quantities.iter().map(|q| Metric::new(&q.metric)).collect();
        let measured =
            measure_each(&Simulator, &experiments, phases, &metrics, |_| ()).map_err(|(_, e)| e)?;
        for (point, measured) in new.into_iter().zip(measured) {
            let figures = measured.metrics.iter().map(|(_, _, phases)| middle(phases)).collect();
            self.known.insert((phases, point.clone()), figures);
        }
        Ok(())
    }

    /// What a cell holds, after [`Runs::run`].
    fn value(&self, case: usize, column: usize, q: usize, chosen: &[usize], n: u32) -> Option<f64> {
        let figure = |point: Point| self.known.get(&(n, point))?[q];
        let case = &self.table.cases[case].vary;
        let x = figure(self.point(case, Some(column), &self.table.columns[column].vary, chosen))?;
        match self.ends(case, q, chosen) {
            None if self.table.quantities[q].scale == Some(Scale::Inverse) => {
                (x != 0.0).then(|| 1.0 / x)
            }
            None => Some(x),
            Some([zero, whole]) => {
                let (zero, whole) = (figure(zero)?, figure(whole)?);
                (zero != whole).then(|| 100.0 * (x - zero) / (whole - zero))
            }
        }
    }

    /// Every cell.
    fn all(&mut self, chosen: &[usize], phases: u32) -> Result<All, RunError> {
        self.run(&self.points(chosen), phases)?;
        let (cases, columns) = (self.table.cases.len(), self.table.columns.len());
        let quantities = || 0..self.table.quantities.len();
        let scales: Vec<f64> = quantities().map(|q| self.scale(q, chosen, phases)).collect();
        let cell = |case, column| {
            let value = |q: usize| self.value(case, column, q, chosen, phases);
            quantities().map(|q| value(q).map(|x| x * scales[q])).collect()
        };
        Ok((0..cases).map(|case| (0..columns).map(|c| cell(case, c)).collect()).collect())
    }

    /// The cells to fit, by case and column.
    fn fitted(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let cases = (0..self.table.cases.len()).filter(|case| self.table.cases[*case].fit);
        cases.flat_map(|case| {
            let columns = 0..self.table.columns.len();
            columns.filter(|column| self.table.columns[*column].fit).map(move |c| (case, c))
        })
    }

    /// What the cells of a quantity are taken times, after [`Runs::run`]: the mean of published by measured.
    fn scale(&self, q: usize, chosen: &[usize], n: u32) -> f64 {
        let by = |(case, column): (usize, usize)| {
            let published = self.table.columns[column].published[q].get(case)?.value;
            Some(published / self.value(case, column, q, chosen, n)?)
        };
        let CellQuantity { scale: Some(_), .. } = self.table.quantities[q] else { return 1.0 };
        let all: Vec<f64> = self.fitted().filter_map(by).filter(|x| x.is_finite()).collect();
        if all.is_empty() { 1.0 } else { all.iter().sum::<f64>() / all.len() as f64 }
    }

    /// Mean |measured − published| of the cells to fit of these columns, all if there are none.
    fn loss(&mut self, columns: &[usize], chosen: &[usize], n: u32) -> Result<f64, RunError> {
        let scaled = self.table.quantities[0].scale.is_some();
        let wanted = |c: usize| columns.is_empty() || columns.contains(&c);
        let fit: Vec<(usize, usize)> = self.fitted().filter(|(_, c)| wanted(*c)).collect();
        let mut points = Vec::new();
        // All of them go into the scale.
        for (case, column) in self.fitted().filter(|(_, c)| scaled || wanted(*c)) {
            let (case, vary) = (&self.table.cases[case].vary, &self.table.columns[column].vary);
            points.push(self.point(case, Some(column), vary, chosen));
            points.extend(self.ends(case, 0, chosen).into_iter().flatten());
        }
        self.run(&points, n)?;
        let scale = self.scale(0, chosen, n);
        let off = |&(case, column): &(usize, usize)| {
            let published = self.table.columns[column].published[0].get(case);
            let ours = self.value(case, column, 0, chosen, n);
            ours.zip(published).map_or(f64::INFINITY, |(x, p)| (x * scale - p.value).abs())
        };
        Ok(fit.iter().map(off).sum::<f64>() / fit.len().max(1) as f64)
    }

    /// The values that fit best, from `chosen` on, and what each of the others would come to.
    fn search(
        &mut self,
        mut chosen: Vec<usize>,
        n: u32,
    ) -> Result<(Vec<usize>, Vec<Tried>), RunError> {
        let mut tried = Vec::new();
        for _ in 0..ROUNDS {
            let before = chosen.clone();
            tried = Vec::new();
            for (i, free) in self.table.free.iter().enumerate() {
                let mut losses = Vec::new();
                for value in 0..free.values.len() {
                    let other = with(&chosen, i, value);
                    losses.push(self.loss(&free.columns, &other, n)?);
                }
                let best = (0..losses.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b]));
                chosen[i] = best.unwrap_or(0);
                tried.push(Tried {
                    name: free.name.clone(),
                    columns: free
                        .columns
                        .iter()
                        .map(|c| self.table.columns[*c].name.clone())
                        .collect(),
                    why: free.why.clone(),
                    values: free.values.iter().cloned().zip(losses).collect(),
                    chosen: chosen[i],
                });
            }
            if chosen == before {
                break;
            }
        }
        Ok((chosen, tried))
    }
}

fn with(chosen: &[usize], i: usize, value: usize) -> Vec<usize> {
    let mut other = chosen.to_vec();
    other[i] = value;
    other
}

/// The median, of those that have one.
fn middle(phases: &[Option<f64>]) -> Option<f64> {
    let mut all: Vec<f64> = phases.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    median(&all)
}

fn cells(table: &Table, ours: &All, untouched: &All, free: Vec<Tried>) -> Cells {
    let cell = |q: usize, case: usize, column: usize| {
        let published = table.columns[column].published[q].get(case);
        // Without one, as many as beside it.
        let beside = || table.columns.iter().find_map(|c| c.published[q].get(case));
        Cell {
            published: published.map(|p| p.value),
            digits: published.or_else(beside).map_or(0, |p| p.digits),
            measured: ours[case][column][q],
            untouched: untouched[case][column][q],
        }
    };
    let (cases, columns) = (0..table.cases.len(), 0..table.columns.len());
    let of = |q| {
        let row = |case| columns.clone().map(|column| cell(q, case, column)).collect();
        cases.clone().map(row).collect()
    };
    let mut gains: Vec<(usize, usize)> = Vec::new();
    for check in &table.checks {
        if let What::GainError(column, than, _) = check.what
            && check.quantity == 0
            && !gains.contains(&(column, than))
        {
            gains.push((column, than));
        }
    }
    Cells {
        quantities: table.quantities.iter().map(|q| (q.name.clone(), q.unit)).collect(),
        cases: table.cases.iter().map(|c| (c.name.clone(), c.fit)).collect(),
        columns: table.columns.iter().map(|c| (c.name.clone(), c.fit)).collect(),
        cells: (0..table.quantities.len()).map(of).collect(),
        free,
        gains,
    }
}

fn judged(figure: &Figure, table: &Table, check: &Check, cells: &Cells) -> JudgedRow {
    let at: Vec<f64> = table.cases.iter().filter_map(|case| case.at).collect();
    let measured = number(&check.what, &cells.cells[check.quantity], cells, &at);
    let holds = measured.is_some_and(|m| match check.relation {
        Relation::AtMost => m <= check.published.value,
        _ => m >= check.published.value,
    });
    let share = matches!(check.what, What::Order(_) | What::GainError(..) | What::Proportional(_));
    let counts = matches!(check.what, What::Above(..) | What::Cells(_) | What::Most(..));
    let unit = match (share, counts) {
        (true, _) => "%",
        (_, true) => "",
        _ => table.quantities[check.quantity].unit,
    };
    JudgedRow {
        id: format!("{}/{}", figure.id, check.id),
        at: check.id.clone(),
        list: format!("checks of {}", table.quantities[check.quantity].name),
        published: check.published.value,
        digits: check.published.digits,
        relation: if check.relation == Relation::AtMost { "≤" } else { "≥" },
        measured,
        unit,
        holds: check.counted.then_some(holds),
        note: check.note.clone(),
        ..JudgedRow::default()
    }
}

/// What the cells come to; `at`: what those of a case may be proportional to.
fn number(what: &What, of: &[Vec<Cell>], cells: &Cells, at: &[f64]) -> Option<f64> {
    let counted = || of.iter().zip(&cells.cases).filter(|(_, (_, fit))| !fit).map(|(row, _)| row);
    let errors = |column: usize| -> Option<Vec<f64>> {
        let mut all: Vec<f64> = counted().map(|row| row[column].off()).collect::<Option<_>>()?;
        all.sort_by(f64::total_cmp);
        Some(all)
    };
    match what {
        What::MedianError(column) => median(&errors(*column)?),
        What::LargestError(column) => errors(*column)?.last().copied(),
        What::Order(apart) => {
            let pairs = || of.iter().flat_map(|row| pairs(row));
            let more = |a: Option<f64>, b: Option<f64>| a.zip(b).map_or(0.0, |(a, b)| a - b);
            let said = |(a, b): &(Cell, Cell)| more(a.published, b.published);
            let apart = |pair: &(Cell, Cell)| said(pair).abs() > apart.value;
            let kept =
                |pair: &(Cell, Cell)| more(pair.0.measured, pair.1.measured) * said(pair) > 0.0;
            let (all, held) =
                (pairs().filter(apart).count(), pairs().filter(apart).filter(kept).count());
            (all > 0).then(|| 100.0 * held as f64 / all as f64)
        }
        What::Above(column, than, only) => {
            let above = |row: &&Vec<Cell>| row[*column].measured > row[*than].measured;
            let rows = of.iter().enumerate().filter(|(i, _)| only.is_empty() || only.contains(i));
            Some(rows.map(|(_, row)| row).filter(above).count() as f64)
        }
        What::Cells(all) => {
            let below = |&&(case, column, than): &&(usize, usize, usize)| {
                let ours = of[case][column].measured.zip(of[case][than].measured);
                ours.is_some_and(|(a, b)| a < b)
            };
            Some(all.iter().filter(below).count() as f64)
        }
        What::Most(case, columns) => {
            let most = |&&column: &&usize| {
                let own = of[*case][column].measured;
                own > Some(0.0) && (0..of.len()).all(|i| i == *case || of[i][column].measured < own)
            };
            Some(columns.iter().filter(most).count() as f64)
        }
        What::GainError(column, than, only) => {
            let rows = of.iter().enumerate().filter(|(i, _)| only.is_empty() || only.contains(i));
            rows.map(|(_, row)| row[*column].above(&row[*than]).off())
                .try_fold(0.0, |most: f64, off| Some(most.max(off?)))
        }
        What::Proportional(column) => {
            let by = |(row, at): (&Vec<Cell>, &f64)| row[*column].measured.map(|m| m / at);
            let all: Vec<f64> = of.iter().zip(at).map(by).collect::<Option<_>>()?;
            let (least, most) =
                (all.iter().copied().reduce(f64::min)?, all.into_iter().reduce(f64::max)?);
            Some(100.0 * (most / least - 1.0))
        }
    }
}

/// Every two cells of a row.
fn pairs(row: &[Cell]) -> impl Iterator<Item = (Cell, Cell)> + '_ {
    row.iter().enumerate().flat_map(|(i, a)| row[i + 1..].iter().map(move |b| (*a, *b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::study::Study;

    /// Two cases and two columns of `rampup`; `published` by column and case.
    fn study(published: [[f64; 2]; 2], checks: &str) -> Study {
        let [x, y] = published;
        let text = format!(
            r#"schema = 1
name = "t"
source = "nobody"
[[figure]]
id = "f"
place = "p"
platform = "m1"
workload = "rampup"
policy = "linux-6.8"
ms = 1200
[figure.table]
fit = "short"
quantity = [
  {{ name = "share", metric = "rampup.debt", between = ["governor=performance", "governor=powersave"], unit = "%" }},
  {{ name = "debt", metric = "rampup.debt", unit = "ms" }},
]
case = [{{ name = "short", vary = "seconds=1.1" }}, {{ name = "long", vary = "seconds=1.2" }}]
[[figure.table.column]]
name = "x"
vary = "rate_limit_us=10000"
published = {{ share = {x:?}, debt = [0, 0] }}
[[figure.table.column]]
name = "y"
vary = "rate_limit_us=70"
published = {{ share = {y:?}, debt = [0, 0] }}
[[figure.table.free]]
name = "hz"
values = "1000 100 250"
why = "nobody says"
[[figure.table.free]]
name = "dvfs_headroom"
values = "mainline 60"
columns = "y"
why = "nobody says"
{checks}"#
        );
        Study::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    fn done(study: &Study) -> (Cells, Vec<JudgedRow>) {
        let done = super::super::reproduce(study, 2, |_| ()).unwrap_or_else(|e| panic!("{e}"));
        let figure = done.figures.into_iter().next().expect("one");
        (figure.cells.expect("a table"), figure.rows)
    }

    const CHECK: &str = "[[figure.table.check]]\nid = \"c\"\nwhat = \"largest_error\"\ncolumn = \"y\"\nquantity = \"share\"\nis = \"at_most\"\npublished = 0.001\n";

    #[test]
    fn what_is_free_is_found_where_it_was_hidden() {
        let hidden = CHECK.to_string();
        let (cells, _) = done(&study([[0.0; 2]; 2], &hidden));
        // What the simulator says at other values than the first.
        let text = |hz: &str, headroom: &str| {
            let request =
                Request { policies: vec!["linux-6.8".into()], ..Request::new("rampup", "m1") };
            let debt = |more: &[(&str, &str)], case: &str| {
                let point = [&[("hz", hz), ("seconds", case)], more].concat();
                let (_, e) = varied(&request, &point, Request::experiments).expect("right");
                let all = crate::measure(&Simulator, &e, 2, &[Metric::new("rampup.debt")], |_| ());
                middle(&all.expect("it runs")[0].metrics[0].2).expect("a burst")
            };
            let column = |limit: &str, headroom: Option<&str>| {
                ["1.1", "1.2"].map(|case| {
                    let own = [("rate_limit_us", limit)];
                    let more = headroom.map(|h| ("dvfs_headroom", h));
                    let x = debt(&own.into_iter().chain(more).collect::<Vec<_>>(), case);
                    let [zero, whole] = ["performance", "powersave"]
                        .map(|governor| debt(&[("governor", governor)], case));
                    100.0 * (x - zero) / (whole - zero)
                })
            };
            [column("10000", None), column("70", Some(headroom))]
        };
        let hidden = text("250", "60");
        let rounded = hidden.map(|c| c.map(|x| (x * 1e6).round() / 1e6));
        let (found, rows) = done(&study(rounded, CHECK));
        let chosen: Vec<&str> = found.free.iter().map(|f| f.values[f.chosen].0.as_str()).collect();
        assert_eq!(chosen, ["250", "60"]);
        assert!(found.free.iter().all(|f| f.values[f.chosen].1 < 1e-5), "{:?}", found.free);
        assert_eq!(rows[0].holds, Some(true), "{rows:?}");
        let share = &found.cells[0];
        assert_eq!(share[0][0].untouched, cells.cells[0][0][0].untouched, "with the defaults");
        assert_ne!(share[0][0].untouched, share[0][0].measured);
    }

    #[test]
    fn checks_count_what_they_say() {
        let cell = |published: f64, measured: f64| Cell {
            published: Some(published),
            measured: Some(measured),
            ..Cell::default()
        };
        let rows = vec![
            vec![cell(10.0, 11.0), cell(20.0, 18.0)],
            vec![cell(10.0, 13.0), cell(20.0, 12.0)],
            vec![cell(5.0, 5.5), cell(6.0, 1.0)],
            vec![cell(7.0, 90.0), cell(1.0, 2.0)],
        ];
        let cases = ["a", "b", "c", "fitted"].map(|n| (n.to_string(), n == "fitted"));
        let cells = Cells { cases: cases.into(), ..Cells::default() };
        let of = |what| number(&what, &rows, &cells, &[10.0, 12.0, 5.0, 100.0]);
        let decimal = |value| risetime_model::study::Decimal { value, digits: 0 };
        assert_eq!(of(What::MedianError(0)), Some(1.0), "the fitted one is left out");
        assert_eq!(of(What::LargestError(1)), Some(8.0));
        assert_eq!(of(What::Order(decimal(2.0))), Some(200.0 / 3.0), "c is too near to count");
        assert_eq!(of(What::Above(1, 0, vec![])), Some(1.0));
        assert_eq!(of(What::Above(0, 1, vec![1, 3])), Some(2.0));
        assert_eq!(of(What::Cells(vec![(0, 0, 1), (1, 0, 1), (2, 0, 1)])), Some(1.0));
        assert_eq!(of(What::Most(3, vec![0, 1])), Some(1.0));
        let near = |what, wanted: f64| {
            let found = of(what).expect("all measured");
            assert!((found - wanted).abs() < 0.1, "{found}, wanted {wanted}");
        };
        near(What::GainError(1, 0, vec![]), 107.7);
        near(What::GainError(1, 0, vec![0, 3]), 36.4);
        // 90 / 100 and 5.5 / 5.
        near(What::Proportional(0), 22.2);
        assert_eq!(of(What::Order(decimal(50.0))), None, "no pair is that far apart");
    }
}
