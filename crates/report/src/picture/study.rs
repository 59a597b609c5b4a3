//! Published and measured curves over each other.
//!
//! ```text
//! curves   a panel a figure and curve: band and line our phases and their median, what the document prints or promises,
//!          points read off the document's own plot
//! climbs   util_est as it climbs, of all figures with the same arithmetic in one panel: dots what that wants, mainline's
//!          util_avg beside it
//! tables   a panel a published column: each case's published and measured number of the first quantity
//!          of what the document prints no numbers of, a panel a quantity: each column's number, a series a case
//! rows     a panel a figure and unit that has nothing of all this: its rows' published and measured numbers, lettered
//! slack    a panel a grid of periodic tasks: slack against energy, one point a policy
//! ```

use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use risetime_analysis::study::{
    Cell, Cells, Climbed, CurvePair, JudgedRow, Reproduced, ReproducedFigure, TradeOff,
};

/// The picture of a study: all its curves.
pub fn study(study: &Reproduced) -> Chart {
    let mut panels: Vec<Panel> = climbs(&study.figures).iter().map(|group| climb(group)).collect();
    panels.extend(study.figures.iter().filter(|f| points(f).count() > 1).map(slack));
    let curves = study.figures.iter().flat_map(|f| f.curves.iter().map(move |c| (f, c)));
    panels.extend(curves.map(|(f, c)| curve(f, c, study.phases)));
    let tables = study.figures.iter().filter_map(|f| Some((f, f.cells.as_ref()?)));
    panels.extend(tables.flat_map(|(f, c)| match c.cells.iter().flatten().flatten().any(said) {
        true => of_table(c),
        false => of_columns(f, c),
    }));
    panels.extend(study.figures.iter().filter(|f| has_rows_alone(f)).flat_map(of_rows));
    Chart { title: format!("{}: {}", study.study, study.about), panels, ..Chart::default() }
}

fn curve(figure: &ReproducedFigure, curve: &CurvePair, phases: u32) -> Panel {
    let ours = Colour::Nth(0);
    let measured = format!("measured, median of {phases} start phases, band: all of them");
    let band = curve.measured.iter().map(|m| (m.0, m.1, m.3)).collect();
    let median = curve.measured.iter().map(|m| (m.0, m.2)).collect();
    let read = curve.drawn.iter().map(|&(x, y)| Mark { x, y, ..Mark::default() }).collect();
    Panel {
        title: format!("{} · {}", figure.id, curve.what),
        x: Axis::new("", "ms"),
        series: vec![
            Series::new("", ours, Shape::Band(band)),
            Series::new(measured, ours, Shape::Line(median)),
            Series::new("published list", Colour::Ink, Shape::Line(curve.listed.clone())),
            Series::new("read off the published plot", Colour::Nth(1), Shape::Points(read)),
        ],
        size: Size::Half,
        ..Panel::default()
    }
}

/// The panels of a table: for the first quantity each judged gain of one column over another, then
/// each column of the document.
fn of_table(c: &Cells) -> Vec<Panel> {
    let (name, unit) = &c.quantities[0];
    let gain = |&(column, than): &(usize, usize)| {
        let title = format!("{} above {}", c.columns[column].0, c.columns[than].0);
        let by_case = |row: &Vec<Cell>| row[column].above(&row[than]);
        cases(c, title, (name, "%"), &by_case)
    };
    let column = |column: usize| {
        let title = c.columns[column].0.clone();
        cases(c, title, (name, unit), &|row: &Vec<Cell>| row[column])
    };
    let published = |column: &usize| c.cells[0].iter().any(|row| row[*column].published.is_some());
    let columns = (0..c.columns.len()).filter(published);
    c.gains.iter().map(gain).chain(columns.map(column)).collect()
}

/// The panel with the cell that `of` takes of each case, published and measured.
fn cases(
    c: &Cells,
    title: String,
    (name, unit): (&str, &str),
    of: &dyn Fn(&Vec<Cell>) -> Cell,
) -> Panel {
    let marks = |side: &dyn Fn(Cell) -> Option<f64>| {
        let rows = c.cells[0].iter().enumerate();
        let mark = |(i, row): (usize, &Vec<Cell>)| {
            side(of(row)).map(|y| Mark { x: i as f64, y, ..Mark::default() })
        };
        Shape::Points(rows.filter_map(mark).collect())
    };
    Panel {
        title,
        x: Axis::new("", "")
            .kind(AxisKind::Names(c.cases.iter().map(|(name, _)| name.clone()).collect())),
        y: Axis::new(name, unit),
        series: vec![
            Series::new("published", Colour::Ink, marks(&|cell| cell.published)),
            Series::new("measured", Colour::Nth(0), marks(&|cell| cell.measured)),
        ],
        ..Panel::default()
    }
}

fn said(cell: &Cell) -> bool {
    cell.published.is_some()
}

fn of_columns(f: &ReproducedFigure, c: &Cells) -> Vec<Panel> {
    let names: Vec<String> = c.columns.iter().map(|(name, _)| name.clone()).collect();
    let panel = |(q, (name, unit)): (usize, &(String, &str))| {
        let series = c.cases.iter().enumerate().map(|(case, (of, _))| {
            let cells = c.cells[q][case].iter().enumerate();
            let mark = |(i, cell): (usize, &Cell)| {
                Some(Mark { x: i as f64, y: cell.measured?, ..Mark::default() })
            };
            Series::new(of, Colour::Nth(case), Shape::Points(cells.filter_map(mark).collect()))
        });
        Panel {
            title: f.id.clone(),
            x: Axis::new("", "").kind(AxisKind::Names(names.clone())),
            y: Axis::new(name, *unit),
            series: series.collect(),
            size: Size::Whole,
            ..Panel::default()
        }
    };
    c.quantities.iter().enumerate().map(panel).collect()
}

/// Whether the figure has rows and nothing else.
fn has_rows_alone(f: &ReproducedFigure) -> bool {
    f.curves.is_empty() && f.cells.is_none() && f.climb.is_none() && f.trade_offs.is_empty()
}

/// The panels of published and measured values, row by row, one for each unit.
fn of_rows(f: &ReproducedFigure) -> Vec<Panel> {
    let mut units: Vec<&str> = f.rows.iter().map(|r| r.unit).collect();
    units.sort_unstable();
    units.dedup();
    let panel = |unit: &str| {
        let rows: Vec<&JudgedRow> = f.rows.iter().filter(|r| r.unit == unit).collect();
        let marks = |side: &dyn Fn(&JudgedRow) -> Option<f64>| {
            let all = rows.iter().enumerate();
            let mark = |(i, r): (usize, &&JudgedRow)| {
                side(r).map(|y| Mark { x: i as f64, y, ..Mark::default() })
            };
            Shape::Points(all.filter_map(mark).collect())
        };
        Panel {
            title: f.id.clone(),
            x: Axis::new("", "").kind(AxisKind::Names((0..rows.len()).map(letter).collect())),
            y: Axis::new("", unit),
            series: vec![
                Series::new("published", Colour::Ink, marks(&|r| Some(r.published))),
                Series::new("measured", Colour::Nth(0), marks(&|r| r.measured)),
            ],
            keys: rows.iter().enumerate().map(|(i, r)| (letter(i), key(r))).collect(),
            size: Size::Whole,
            ..Panel::default()
        }
    };
    units.into_iter().map(panel).collect()
}

fn key(r: &JudgedRow) -> String {
    let least = match r.relation {
        "" => String::new(),
        relation => format!(", {relation} wanted"),
    };
    format!("{} at {}{least}", r.list, r.at)
}

type Named<'a> = (&'a str, &'a Climbed);

/// Figures that climb by the same arithmetic, in order of the first of each.
fn climbs(figures: &[ReproducedFigure]) -> Vec<Vec<Named<'_>>> {
    let mut groups: Vec<Vec<Named<'_>>> = Vec::new();
    for f in figures {
        let Some(climb) = &f.climb else { continue };
        match groups.iter_mut().find(|g| g[0].1.wanted == climb.wanted) {
            Some(group) => group.push((&f.id, climb)),
            None => groups.push(vec![(&f.id, climb)]),
        }
    }
    groups
}

fn climb(group: &[Named<'_>]) -> Panel {
    let ours = Colour::Nth(0);
    let mut ordered = group.to_vec();
    let last = |c: &Climbed| c.mainline.last().map_or(0.0, |p| p.0);
    ordered.sort_by(|a, b| last(b.1).total_cmp(&last(a.1)));
    let (mut series, mut keys) = (Vec::new(), Vec::new());
    for (i, (name, climb)) in ordered.iter().enumerate() {
        let mainline = Shape::Line(climb.mainline.clone());
        series.push(Series::new("mainline's util_avg", Colour::Nth(1), mainline));
        let Some(&(x, y)) = climb.mainline.last() else { continue };
        let end = Mark { x, y, label: letter(i), ..Mark::default() };
        series.push(Series::new("", Colour::Nth(1), Shape::Points(vec![end])));
        keys.push((letter(i), format!("{name}: {y} at {x}")));
    }
    for (_, climb) in group {
        let speed = Shape::Line(climb.speed.clone());
        series.push(Series::new("speed delivered", Colour::Nth(2), speed).dashed());
    }
    let n = group.len();
    let util_est = if n > 1 { format!("util_est, {n} over each other") } else { "util_est".into() };
    for (_, climb) in group {
        let band = climb.util_est.iter().map(|p| (p.0, p.1, p.3)).collect();
        series.push(Series::new("", ours, Shape::Band(band)));
        let median = climb.util_est.iter().map(|p| (p.0, p.2)).collect();
        series.push(Series::new(util_est.as_str(), ours, Shape::Line(median)));
    }
    let wanted = group[0].1.wanted.iter().map(|&(x, y)| Mark { x, y, ..Mark::default() });
    let wanted = Shape::Points(wanted.collect());
    series.push(Series::new("wanted: the arithmetic", Colour::Ink, wanted));
    let alone = if let [(name, _)] = group { format!("{name} · ") } else { String::new() };
    Panel {
        title: format!("{alone}util against ticks"),
        x: Axis::new("since the first at which util_est may rise", "ticks"),
        // A tick of 4 ms ends a little above it.
        y: Axis::default().range(0.0, 1000.0),
        series,
        keys,
        notes: vec!["Letters: where mainline's util_avg ends, slowest first.".into()],
        size: Size::Whole,
        ..Panel::default()
    }
}

fn letter(i: usize) -> String {
    char::from(b'a' + (i % 26) as u8).to_string()
}

fn points(f: &ReproducedFigure) -> impl Iterator<Item = (&TradeOff, f64, f64)> {
    f.trade_offs.iter().filter_map(|t| Some((t, t.energy_mj?, t.slack_ms?)))
}

fn slack(f: &ReproducedFigure) -> Panel {
    let mark = |(i, (_, mj, ms)): (usize, (&TradeOff, f64, f64))| Mark {
        x: mj,
        y: ms,
        label: letter(i),
        ..Mark::default()
    };
    let marks = Shape::Points(points(f).enumerate().map(mark).collect());
    let key = |(i, (t, ..)): (usize, (&TradeOff, f64, f64))| (letter(i), t.policy.clone());
    Panel {
        title: format!("{} · slack against energy", f.id),
        x: Axis::new("energy of a task's run", "mJ").kind(AxisKind::Near),
        y: Axis::new("slack, median", "ms").kind(AxisKind::Near),
        series: vec![Series::new("", Colour::Nth(0), marks)],
        keys: points(f).enumerate().map(key).collect(),
        size: Size::Half,
        ..Panel::default()
    }
}
