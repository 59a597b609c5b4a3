//! A published table beside ours, and what it leaves open, searched.
//!
//! ```text
//! cell      the figure's experiment, with what case, column and all that is free change of it: medians of its start phases
//! sum       what the cells of its cases come to, in each start phase
//! scale     one number by which the cells to fit are the published ones in the mean; all cells times that. By case: of each
//! stdev     over the start phases, where the document has one
//! ratio     what a cell is of another of its case: within the larger relative stdev of what is published
//! between   100 · (x − x₀) / (x₁ − x₀), x₀ and x₁ of the same case under the two references
//! search    one free thing after the other: of its values the one with the least mean |measured − published| of the cells
//!           to fit, the others as they are; over again until nothing changes. By the first quantity alone.
//! defaults  the same cells with the first value of everything free: printed beside, as what nobody has searched
//! ```
//!
//! Nothing is free for one cell alone, and nothing is looked at but the cells to fit before the search is over.

use super::cells;
use super::check::judged;
use risetime_analysis::metric::Metric;
use risetime_analysis::study::{Cell, Cells, JudgedRow, Tried, median};
use risetime_lab::Request;
use risetime_lab::executor::Threads;
use risetime_lab::varied;
use risetime_lab::{Grid, measure_each};
use risetime_model::study::Figure;
use risetime_model::study::table::{CellQuantity, Free, Scale, Table, Vary, What};
use risetime_model::{Experiment, InputError};
use risetime_sim::Simulator;
use risetime_trace::RunError;
use std::collections::{BTreeMap, BTreeSet};

/// Start phases of a cell while the search is on.
const SEARCHED: u32 = 4;
/// Number of times that each free thing is looked at again.
const ROUNDS: usize = 4;

/// A reproduced table.
pub(super) struct Tabled {
    pub(super) cells: Cells,
    /// Judged cells and checks.
    pub(super) rows: Vec<JudgedRow>,
    /// The command of the first cell.
    pub(super) command: String,
    /// The same rows under each of the changed experiments.
    pub(super) changed: Vec<Vec<JudgedRow>>,
}

/// Reproduces the figure's table, and its rows under `instead` with what was chosen for the table
/// itself, unless none misses.
///
/// Errors: something varied that does not exist; a metric that a run does not have; the simulator's.
pub(super) fn reproduced(
    figure: &Figure,
    table: &Table,
    base: &Request,
    instead: &[Request],
    phases: u32,
) -> Result<Tabled, RunError> {
    let mut runs = Runs { table, base, place: super::place(figure), known: BTreeMap::new() };
    let defaults = vec![0; table.free.len()];
    let (chosen, free) = runs.search(defaults.clone(), phases.min(SEARCHED))?;
    let ours = runs.all(&chosen, phases)?;
    let untouched = if chosen == defaults { ours.clone() } else { runs.all(&defaults, phases)? };
    let of_cells = filled(table, &ours, &untouched, free);
    let mut rows = cells::rows(&mut runs, figure, &ours, &chosen, phases.min(SEARCHED))?;
    let checks = &table.checks;
    rows.extend(checks.iter().flat_map(|check| judged(figure, table, check, &of_cells)));
    let mut changed = Vec::new();
    for base in instead.iter().filter(|_| rows.iter().any(JudgedRow::misses)) {
        let mut runs = Runs { table, base, place: super::place(figure), known: BTreeMap::new() };
        let ours = runs.all(&chosen, phases)?;
        let of_cells = filled(table, &ours, &ours, Vec::new());
        let mut again = cells::again(figure, &ours, &rows);
        again.extend(checks.iter().flat_map(|check| judged(figure, table, check, &of_cells)));
        changed.push(again);
    }
    let first = runs.point(0, Some(0), &table.columns[0].vary, &chosen);
    let command = runs.request(&first)?.0.command();
    Ok(Tabled { cells: of_cells, rows, command, changed })
}

/// Checks that every cell could be run.
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
        for (case, point) in runs.points(&chosen) {
            let experiment = runs.request(&point)?.1;
            for metric in runs.metrics(case) {
                Metric::new(metric).check(&experiment.workload)?;
            }
        }
    }
    Ok(())
}

/// Changes of a case and column, and all that is free.
pub(super) type Point = Vec<(String, String)>;
/// Values by case, column and quantity: each start phase.
pub(super) type All = Vec<Vec<Vec<Phases>>>;
/// A figure of each start phase.
pub(super) type Phases = Vec<Option<f64>>;

pub(super) struct Runs<'a> {
    pub(super) table: &'a Table,
    base: &'a Request,
    place: String,
    /// The figures of an experiment, by its start phases and their names.
    known: BTreeMap<(u32, Point), BTreeMap<String, Phases>>,
}

impl Runs<'_> {
    /// `column`: by its place; `None`: a reference.
    fn point(&self, case: usize, column: Option<usize>, vary: &Vary, chosen: &[usize]) -> Point {
        let about = |f: &Free| {
            let of_column = match column {
                Some(column) => f.columns.is_empty() || f.columns.contains(&column),
                None => f.columns.is_empty(),
            };
            of_column && (f.cases.is_empty() || f.cases.contains(&case))
        };
        let free = self.table.free.iter().zip(chosen).filter(|(f, _)| about(f));
        let free = free.map(|(f, &i)| (f.name.clone(), f.values[i].clone()));
        self.table.cases[case].vary.iter().chain(vary).cloned().chain(free).collect()
    }

    /// The references of a case.
    fn ends(&self, case: usize, q: usize, chosen: &[usize]) -> Option<[Point; 2]> {
        let between = self.table.quantities[q].between.as_ref()?;
        Some([0, 1].map(|end| self.point(case, None, &between[end], chosen)))
    }

    /// Lists all points that have to be run, each with its case.
    pub(super) fn points(&self, chosen: &[usize]) -> Vec<(usize, Point)> {
        let mut all = Vec::new();
        for case in self.run_cases() {
            for (i, column) in self.table.columns.iter().enumerate() {
                all.push((case, self.point(case, Some(i), &column.vary, chosen)));
            }
            let ends = (0..self.table.quantities.len()).filter_map(|q| self.ends(case, q, chosen));
            all.extend(ends.flatten().map(|point| (case, point)));
        }
        all
    }

    /// The cases that are run.
    fn run_cases(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.table.cases.len()).filter(|case| self.table.cases[*case].sum.is_empty())
    }

    /// The metric whose figure a cell holds.
    fn metric(&self, case: usize, q: usize) -> &str {
        self.table.cases[case].metric.as_deref().unwrap_or(&self.table.quantities[q].metric)
    }

    /// Lists all metrics that are wanted of the runs of a case, which may be those of another case,
    /// too.
    fn metrics(&self, case: usize) -> BTreeSet<&str> {
        let same = |other: &usize| self.table.cases[*other].vary == self.table.cases[case].vary;
        let quantities = 0..self.table.quantities.len();
        let of = |case| quantities.clone().map(move |q| self.metric(case, q));
        self.run_cases().filter(same).flat_map(of).collect()
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
    pub(super) fn run(&mut self, points: &[(usize, Point)], phases: u32) -> Result<(), RunError> {
        let mut new: BTreeMap<BTreeSet<&str>, BTreeSet<&Point>> = BTreeMap::new();
        for (case, point) in points {
            let metrics = self.metrics(*case);
            let known = self.known.get(&(phases, point.clone()));
            if !known.is_some_and(|k| metrics.iter().all(|m| k.contains_key(*m))) {
                new.entry(metrics).or_default().insert(point);
            }
        }
        let mut found = Vec::new();
        for (names, points) in new {
            let experiments: Vec<Experiment> = points
                .iter()
                .map(|p| self.request(p).map(|(_, e)| e))
                .collect::<Result<_, InputError>>()?;
            let metrics: Vec<Metric> = names.iter().map(|name| Metric::new(*name)).collect();
            let starts = Grid::of_phases(phases);
            let measured =
                measure_each(&Threads(&Simulator), &experiments, &starts, &metrics, |_| ())
                    .map_err(|(_, e)| e)?;
            for (point, measured) in points.into_iter().zip(measured) {
                let figures = measured.metrics.into_iter().map(|(_, _, phases)| phases);
                let figures: Vec<_> = names.iter().map(|n| n.to_string()).zip(figures).collect();
                found.push(((phases, point.clone()), figures));
            }
        }
        for (key, figures) in found {
            self.known.entry(key).or_default().extend(figures);
        }
        Ok(())
    }

    /// The values of a cell in each start phase, after [`Runs::run`].
    fn phases(
        &self,
        case: usize,
        column: usize,
        q: usize,
        chosen: &[usize],
        n: u32,
    ) -> Option<Phases> {
        let metric = self.metric(case, q);
        let figures = |point: Point| self.known.get(&(n, point))?.get(metric);
        let all =
            figures(self.point(case, Some(column), &self.table.columns[column].vary, chosen))?;
        let Some([zero, whole]) = self.ends(case, q, chosen) else {
            let scaled = |x: f64| match self.table.quantities[q].scale {
                Some(Scale::Inverse) => (x != 0.0).then(|| 1.0 / x),
                Some(Scale::Run) => self.base.seconds.map(|s| 100.0 * x / (1000.0 * s)),
                Some(Scale::Figure) | None => Some(x),
            };
            return Some(all.iter().map(|x| x.and_then(scaled)).collect());
        };
        // Of medians: what is compared is where a burst lies as a rule.
        let (zero, whole) = (middle(figures(zero)?)?, middle(figures(whole)?)?);
        let share = |x: f64| (zero != whole).then(|| 100.0 * (x - zero) / (whole - zero));
        Some(all.iter().map(|x| x.and_then(share)).collect())
    }

    /// The value of a cell, after [`Runs::run`].
    pub(super) fn value(
        &self,
        case: usize,
        column: usize,
        q: usize,
        chosen: &[usize],
        n: u32,
    ) -> Option<f64> {
        middle(&self.phases(case, column, q, chosen, n)?)
    }

    /// Runs and returns every cell.
    fn all(&mut self, chosen: &[usize], phases: u32) -> Result<All, RunError> {
        self.run(&self.points(chosen), phases)?;
        let cell = |case: usize, column: usize, q: usize| -> Phases {
            let by = self.scale(q, case, chosen, phases);
            let all = self.phases(case, column, q, chosen, phases).unwrap_or_default();
            all.into_iter().map(|x| x.map(|x| x * by)).collect()
        };
        let sum = |of: &[usize], column: usize, q: usize| -> Phases {
            let parts: Vec<Phases> = of.iter().map(|case| cell(*case, column, q)).collect();
            (0..phases as usize)
                .map(|k| parts.iter().map(|p| p.get(k).copied().flatten()).sum())
                .collect()
        };
        let of = |case: usize, column: usize| {
            let parts = &self.table.cases[case].sum;
            let quantities = 0..self.table.quantities.len();
            quantities
                .map(|q| match parts.is_empty() {
                    true => cell(case, column, q),
                    false => sum(parts, column, q),
                })
                .collect()
        };
        let (cases, columns) = (self.table.cases.len(), self.table.columns.len());
        Ok((0..cases).map(|case| (0..columns).map(|c| of(case, c)).collect()).collect())
    }

    /// The cells to fit, by case and column.
    fn fitted(&self) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        self.run_cases().filter(|case| self.table.cases[*case].fit).flat_map(|case| {
            let columns = 0..self.table.columns.len();
            columns.filter(|column| self.table.columns[*column].fit).map(move |c| (case, c))
        })
    }

    /// Whether only ratios are meant.
    fn fits_scale(&self, q: usize) -> bool {
        matches!(self.table.quantities[q].scale, Some(Scale::Figure | Scale::Inverse))
    }

    /// The factor of a quantity's cells, after [`Runs::run`]: the mean of published by measured.
    pub(super) fn scale(&self, q: usize, of: usize, chosen: &[usize], n: u32) -> f64 {
        let by = |(case, column): (usize, usize)| {
            let published = self.table.columns[column].published[q].get(case)?.value;
            Some(published / self.value(case, column, q, chosen, n)?)
        };
        let (true, CellQuantity { scale_by_case, .. }) =
            (self.fits_scale(q), &self.table.quantities[q])
        else {
            return 1.0;
        };
        let cells = self.fitted().filter(|(case, _)| !*scale_by_case || *case == of);
        let all: Vec<f64> = cells.filter_map(by).filter(|x| x.is_finite()).collect();
        if all.is_empty() { 1.0 } else { all.iter().sum::<f64>() / all.len() as f64 }
    }

    /// The mean |measured − published| of the cells to fit that `about` is about.
    fn loss(&mut self, about: &Free, chosen: &[usize], n: u32) -> Result<f64, RunError> {
        let scaled = self.fits_scale(0);
        let wanted = |case: usize, c: usize| {
            (about.columns.is_empty() || about.columns.contains(&c))
                && (about.cases.is_empty() || about.cases.contains(&case))
        };
        let fit: Vec<(usize, usize)> =
            self.fitted().filter(|(case, c)| wanted(*case, *c)).collect();
        let mut points = Vec::new();
        // All of them go into the scale.
        for (case, column) in self.fitted().filter(|(case, c)| scaled || wanted(*case, *c)) {
            let vary = &self.table.columns[column].vary;
            points.push((case, self.point(case, Some(column), vary, chosen)));
            let ends = self.ends(case, 0, chosen).into_iter().flatten();
            points.extend(ends.map(|point| (case, point)));
        }
        self.run(&points, n)?;
        let off = |&(case, column): &(usize, usize)| {
            let published = self.table.columns[column].published[0].get(case);
            let ours = self.value(case, column, 0, chosen, n);
            let scale = self.scale(0, case, chosen, n);
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
                    losses.push(self.loss(free, &other, n)?);
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
                    cases: free.cases.iter().map(|c| self.table.cases[*c].name.clone()).collect(),
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

pub(super) fn with(chosen: &[usize], i: usize, value: usize) -> Vec<usize> {
    let mut other = chosen.to_vec();
    other[i] = value;
    other
}

/// The standard deviation, of those that have one.
fn stdev(phases: &[Option<f64>]) -> Option<f64> {
    let all: Vec<f64> = phases.iter().flatten().copied().collect();
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let squares: f64 = all.iter().map(|x| (x - mean) * (x - mean)).sum();
    (all.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// The median, of those that have one.
fn middle(phases: &[Option<f64>]) -> Option<f64> {
    let mut all: Vec<f64> = phases.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    median(&all)
}

/// The published value of a cell, and its standard deviation. Of a sum for which none is published:
/// that of its cases, as if they were independent of each other.
fn said(table: &Table, q: usize, case: usize, column: usize) -> (Option<f64>, Option<f64>) {
    let c = &table.columns[column];
    let own = |case: usize| {
        let value = c.published[q].get(case).map(|p| p.value);
        let stdev = c.stdev[q].get(case).map(|s| s.value);
        let percent = table.quantities[q].stdev_in_percent;
        let of = |(value, s): (f64, f64)| if percent { value * s / 100.0 } else { s };
        (value, value.zip(stdev).map(of))
    };
    let parts = &table.cases[case].sum;
    if parts.is_empty() || own(case).0.is_some() {
        return own(case);
    }
    let value = parts.iter().map(|part| own(*part).0).sum::<Option<f64>>();
    let squares = parts.iter().map(|part| own(*part).1.map(|s| s * s)).sum::<Option<f64>>();
    (value, squares.map(f64::sqrt))
}

fn filled(table: &Table, ours: &All, untouched: &All, free: Vec<Tried>) -> Cells {
    let cell = |q: usize, case: usize, column: usize| {
        let c = &table.columns[column];
        // Without one, as many as beside it.
        let beside = || table.columns.iter().flat_map(|c| &c.published[q]).next();
        let published = c.published[q].get(case);
        let (value, stdev_of_it) = said(table, q, case, column);
        Cell {
            published: value,
            digits: table.quantities[q]
                .digits
                .unwrap_or_else(|| published.or_else(beside).map_or(0, |p| p.digits)),
            measured: middle(&ours[case][column][q]),
            untouched: middle(&untouched[case][column][q]),
            stdev: stdev_of_it,
            spread: stdev_of_it.and_then(|_| stdev(&ours[case][column][q])),
        }
    };
    let (cases, columns) = (0..table.cases.len(), 0..table.columns.len());
    let of = |q| {
        let row = |case| columns.clone().map(|column| cell(q, case, column)).collect();
        cases.clone().map(row).collect()
    };
    let mut gains: Vec<(usize, usize)> = Vec::new();
    for check in &table.checks {
        let (What::GainError(column, than, _) | What::Ratio(column, than, _)) = check.what else {
            continue;
        };
        if check.quantity == 0 && !gains.contains(&(column, than)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::study::Study;

    /// A study with two cases and two columns of `rampup`; `published` by column and case.
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
                let all =
                    risetime_lab::measure(&Simulator, &e, 2, &[Metric::new("rampup.debt")], |_| ());
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

    /// Scores and a sum of them, with their standard deviations.
    #[test]
    fn a_sum_is_its_cases_and_a_ratio_is_held_where_the_means_are_apart() {
        let text = r#"schema = 1
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
fit = "work energy"
quantity = [{ name = "score", metric = "rampup.debt", scale = "inverse", scale_by = "case", stdev = "%" }]
case = [{ name = "work", vary = "" }, { name = "energy", vary = "", metric = "energy" }, { name = "both", sum = "work energy" }]
[[figure.table.column]]
name = "slow"
vary = "rate_limit_us=10000"
published = { score = [100, 300] }
stdev = { score = [3, 4] }
[[figure.table.column]]
name = "fast"
vary = "rate_limit_us=70"
fit = false
published = { score = [101, 400] }
stdev = { score = [3, 1] }
[[figure.table.check]]
id = "r"
what = "ratio"
quantity = "score"
column = "fast"
than = "slow"
[[figure.table.check]]
id = "s"
what = "side"
quantity = "score"
column = "fast"
than = "slow"
is = "at_least"
published = 100
"#;
        let (cells, rows) = done(&Study::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}")));
        let all = &cells.cells[0];
        let near =
            |a: Option<f64>, b: f64| assert!((a.unwrap_or(0.0) - b).abs() < 1e-9, "{a:?} {b}");
        // Each case has the scale by which its fitted cell is the published one.
        near(all[0][0].measured, 100.0);
        near(all[1][0].measured, 300.0);
        let fast = [0, 1].map(|case: usize| all[case][1].measured.expect("measured"));
        near(all[2][1].measured, fast[0] + fast[1]);
        // Nothing is published of the sum: its cases' sum, and the root of their squares.
        assert_eq!((all[2][0].published, all[2][1].published), (Some(400.0), Some(501.0)));
        near(all[2][0].stdev, (9.0f64 + 144.0).sqrt());
        assert!(all[0][0].spread.is_some(), "of two start phases");
        // 100 and 101 are not 3 apart.
        let ids: Vec<&str> = rows.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(ids, ["f/r/energy", "f/r/both", "f/s"]);
        assert!((rows[0].published - 4.0 / 3.0).abs() < 1e-9);
        near(rows[0].measured, fast[1] / 300.0);
        assert!((rows[0].tolerance.total() - 0.04 * 4.0 / 3.0).abs() < 1e-9);
        let right =
            [fast[1] / 300.0, (fast[0] + fast[1]) / 400.0].map(|r| f64::from(u8::from(r > 1.0)));
        near(rows[2].measured, 50.0 * (right[0] + right[1]));
    }
}
