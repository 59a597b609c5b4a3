//! Published cells of a table, each judged as a row.
//!
//! ```text
//! tolerance   last digit + spread over the start phases + open
//! open        from the phases' extreme to that of the cell's medians with each free thing at each
//!             of its values, one thing at a time, on the published number's side
//! ```
//!
//! So a cell holds if some start phase reaches it, or something plausible that the document leaves
//! open; cells that anything was fitted on are not judged.

use super::table::{All, Runs};
use risetime_analysis::study::{Bound, JudgedRow, Tolerance, judge};
use risetime_model::study::table::Table;
use risetime_model::study::{Decimal, Figure};
use risetime_trace::RunError;

/// Error that a sum of doubles may have.
const EPSILON: f64 = 1e-9;

/// A judged cell, by the places of its quantity, column and case.
type Place = (usize, usize, usize);

/// The rows of all cells that count; none of a table that counts none. `ours` holds the cells with
/// what was chosen, `phases` how many start phases an alternative is run from.
///
/// Errors: those of [`Runs::run`].
pub(super) fn rows(
    runs: &mut Runs<'_>,
    figure: &Figure,
    ours: &All,
    chosen: &[usize],
    phases: u32,
) -> Result<Vec<JudgedRow>, RunError> {
    let table = runs.table;
    let places: Vec<(Place, Decimal)> = counted(table).collect();
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let ranges = open(runs, &places, chosen, phases)?;
    let rows = places.iter().zip(&ranges).map(|(at, range)| {
        row(figure, table, ours, at, &|tolerance, m, published| {
            widened(tolerance, m, published, *range)
        })
    });
    Ok(rows.collect())
}

/// The same rows of an experiment with something changed; as much is open as was found of `rows`, which begin with those of
/// the cells.
pub(super) fn again(figure: &Figure, ours: &All, rows: &[JudgedRow]) -> Vec<JudgedRow> {
    let Some(table) = &figure.table else { return Vec::new() };
    let changed = counted(table).zip(rows).map(|(at, before)| {
        let open = before.tolerance.open;
        row(figure, table, ours, &at, &|tolerance, _, _| Tolerance { open, ..tolerance })
    });
    changed.collect()
}

/// Judges a cell; `widen`: its tolerance, by what was measured and published.
fn row(
    figure: &Figure,
    table: &Table,
    ours: &All,
    ((q, column, case), published): &(Place, Decimal),
    widen: &dyn Fn(Tolerance, f64, f64) -> Tolerance,
) -> JudgedRow {
    let quantity = &table.quantities[*q];
    let (digit, at) = (published.last_digit(), table.cases[*case].name.clone());
    let (measured, tolerance, _) =
        judge(published.value, digit, 0.0, Bound::Near, &ours[*case][*column][*q]);
    let tolerance = measured.map_or(tolerance, |m| widen(tolerance, m, published.value));
    let off = measured.map(|m| (m - published.value).abs());
    let holds = off.is_some_and(|off| off <= tolerance.total() + EPSILON);
    let column = &table.columns[*column].name;
    JudgedRow {
        id: format!("{}/{}/{column}/{at}", figure.id, quantity.name),
        at,
        list: format!("{} {column}", quantity.name),
        published: published.value,
        digits: published.digits,
        measured,
        unit: quantity.unit,
        tolerance,
        holds: Some(holds),
        note: if holds { String::new() } else { quantity.note.clone() },
        ..JudgedRow::default()
    }
}

/// Iterates over the cells that count, column by column.
fn counted(table: &Table) -> impl Iterator<Item = (Place, Decimal)> + '_ {
    let quantities = (0..table.quantities.len()).filter(|q| table.quantities[*q].counted);
    let of = |q: usize, column: usize| {
        let published = &table.columns[column].published[q];
        published.iter().enumerate().map(move |(case, p)| ((q, column, case), *p))
    };
    let all = quantities.flat_map(move |q| (0..table.columns.len()).flat_map(move |c| of(q, c)));
    all.filter(|((_, column, case), _)| {
        let case = &table.cases[*case];
        case.sum.is_empty() && !(case.fit && table.columns[*column].fit)
    })
}

/// The least and the most that each cell comes to where the document leaves something open.
fn open(
    runs: &mut Runs<'_>,
    places: &[(Place, Decimal)],
    chosen: &[usize],
    phases: u32,
) -> Result<Vec<(f64, f64)>, RunError> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); places.len()];
    for (i, free) in runs.table.free.iter().enumerate() {
        for value in 0..free.values.len() {
            let other = super::table::with(chosen, i, value);
            runs.run(&runs.points(&other), phases)?;
            for (((q, column, case), _), range) in places.iter().zip(&mut ranges) {
                let cell = runs.value(*case, *column, *q, &other, phases);
                let Some(cell) = cell.map(|x| x * runs.scale(*q, *case, &other, phases)) else {
                    continue;
                };
                *range = (range.0.min(cell), range.1.max(cell));
            }
        }
    }
    Ok(ranges)
}

/// The tolerance with what reaches beyond the phases on the published number's side.
fn widened(tolerance: Tolerance, m: f64, published: f64, (least, most): (f64, f64)) -> Tolerance {
    let beyond = match published < m {
        true => (m - tolerance.spread) - least,
        false => most - (m + tolerance.spread),
    };
    let open = if beyond.is_finite() { beyond.max(0.0) } else { 0.0 };
    Tolerance { open, ..tolerance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_widens_the_side_of_the_published_number_alone() {
        let phases = Tolerance { spread: 2.0, ..Tolerance::default() };
        let open = |published, range| widened(phases, 10.0, published, range).open;
        assert_eq!(open(5.0, (6.0, 30.0)), 2.0, "the phases reach 8");
        assert_eq!(open(15.0, (6.0, 30.0)), 18.0);
        assert_eq!(open(15.0, (6.0, 11.0)), 0.0, "the phases reach further");
        assert_eq!(open(5.0, (f64::INFINITY, f64::NEG_INFINITY)), 0.0, "nothing is open");
    }
}
