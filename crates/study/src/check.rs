//! Judges conditions on all cells of a table together ([`What`]).

use risetime_analysis::study::{Cell, Cells, JudgedRow, Ratio, Tolerance, median};
use risetime_model::study::table::{Check, Table, What};
use risetime_model::study::{Figure, Origin, Relation};

/// The rows of a check: one, or one a case.
pub(super) fn judged(
    figure: &Figure,
    table: &Table,
    check: &Check,
    cells: &Cells,
) -> Vec<JudgedRow> {
    let of = &cells.cells[check.quantity];
    let row = JudgedRow {
        id: format!("{}/{}", figure.id, check.id),
        ours: check.origin == Origin::Ours,
        at: check.id.clone(),
        list: format!("checks of {}", table.quantities[check.quantity].name),
        published: check.published.value,
        digits: check.published.digits,
        note: check.note.clone(),
        ..JudgedRow::default()
    };
    if let What::Ratio(column, than, only) = &check.what {
        let list = format!("{} of {}", cells.columns[*column].0, cells.columns[*than].0);
        let ratio = |(case, ratio): (usize, Ratio)| {
            let holds = ratio.measured.is_some_and(|m| (m - ratio.published).abs() <= ratio.stdev);
            let at = table.cases[case].name.clone();
            JudgedRow {
                id: format!("{}/{at}", row.id),
                at,
                list: format!("{} {list}", table.quantities[check.quantity].name),
                published: ratio.published,
                digits: 3,
                measured: ratio.measured,
                tolerance: Tolerance { spread: ratio.stdev, ..Tolerance::default() },
                holds: check.counted.then_some(holds),
                ..row.clone()
            }
        };
        return ratios(of, *column, *than, only).map(ratio).collect();
    }
    let at: Vec<f64> = table.cases.iter().filter_map(|case| case.at).collect();
    let measured = number(&check.what, of, cells, &at);
    let holds = measured.is_some_and(|m| {
        let above = m - check.published.value;
        match check.relation {
            Relation::AtMost => above <= check.within,
            Relation::AtLeast => above >= -check.within,
            Relation::Equal => above.abs() <= check.within,
        }
    });
    let unit = match check.what {
        What::Order(_) | What::GainError(..) | What::Proportional(_) | What::Side(..) => "%",
        What::Above(..) | What::Cells(_) | What::Most(..) | What::Ratio(..) | What::Times(..) => "",
        What::MedianError(_) | What::LargestError(_) | What::Cell(..) => {
            table.quantities[check.quantity].unit
        }
    };
    vec![JudgedRow {
        relation: match check.relation {
            Relation::AtMost => "≤",
            Relation::AtLeast => "≥",
            Relation::Equal => "",
        },
        tolerance: Tolerance { spread: check.within, ..Tolerance::default() },
        measured,
        unit,
        holds: check.counted.then_some(holds),
        ..row
    }]
}

/// The ratios of two columns, for the cases `only` (all if there are none) in which the document
/// has them far enough apart.
fn ratios<'a>(
    of: &'a [Vec<Cell>],
    column: usize,
    than: usize,
    only: &'a [usize],
) -> impl Iterator<Item = (usize, Ratio)> + 'a {
    let wanted = |(case, _): &(usize, &Vec<Cell>)| only.is_empty() || only.contains(case);
    of.iter()
        .enumerate()
        .filter(wanted)
        .filter_map(move |(case, row)| Some((case, row[column].ratio(&row[than])?)))
}

/// The figure of the cells that a condition is about; `at`: for each case, the quantity that its
/// cells may be proportional to.
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
        // Each a row of its own.
        What::Ratio(..) => None,
        What::Side(column, than, only) => {
            let all: Vec<Ratio> = ratios(of, *column, *than, only).map(|(_, r)| r).collect();
            let right =
                |r: &&Ratio| r.measured.is_some_and(|m| (m - 1.0) * (r.published - 1.0) > 0.0);
            let held = all.iter().filter(right).count();
            (!all.is_empty()).then(|| 100.0 * held as f64 / all.len() as f64)
        }
        What::Cell(column, case) => of[*case][*column].measured,
        What::Times(column, than, case) => {
            let row = &of[*case];
            let (ours, other) = row[*column].measured.zip(row[*than].measured)?;
            (other != 0.0).then(|| ours / other)
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

/// Iterates over every two cells of a row.
fn pairs(row: &[Cell]) -> impl Iterator<Item = (Cell, Cell)> + '_ {
    row.iter().enumerate().flat_map(|(i, a)| row[i + 1..].iter().map(move |b| (*a, *b)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(of(What::Cell(1, 2)), Some(1.0));
        near(What::Times(0, 1, 2), 5.5);
        assert_eq!(of(What::Order(decimal(50.0))), None, "no pair is that far apart");
    }
}
