//! `risetime sweep`: what a grid of experiments measured.
//!
//! ```text
//! title      what ran, from how many start phases
//! answer     of each metric where it is best and where worst
//! one axis   a row a value, and each metric drawn: a curve over numbers, bars over names
//! two        a map of each metric: rows the first, columns the second, fuller is more
//! more       a row a point
//! ```

use super::Style;
use crate::page::{Block, Curve, Doc, Ink, Line, Page, Plot, Table, pad, ticks, width};
use crate::words::{digits3, one, simulated};
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::sweep::{Axis, Point, Sweep};

/// Number of points of a map that are listed below it, with their intervals.
const LISTED: usize = 24;
/// Rows of a curve.
const ROWS: usize = 10;
/// Shades from the least to the most, in as many steps as there are.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// The page of a sweep: the metrics at each point.
pub fn sweep(s: &Sweep, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(title(s), "");
    page.blank();
    let metrics: Vec<(&Metric, Unit)> = s.metrics().collect();
    for (m, (metric, unit)) in metrics.iter().enumerate() {
        page.hanging("", Ink::Plain, &answer(s, m, metric, *unit));
    }
    page.blank();
    match s.axes.as_slice() {
        [rows, columns] => {
            for (m, (metric, unit)) in metrics.iter().enumerate() {
                map(&mut page, s, m, &named(metric, *unit), (rows, columns));
                page.blank();
            }
            if has_intervals(s) && s.points.len() <= LISTED {
                table(&mut page, s, &metrics);
            }
        }
        axes => {
            table(&mut page, s, &metrics);
            if let [axis] = axes {
                for (m, (metric, unit)) in metrics.iter().enumerate() {
                    draw(&mut page, s, m, &named(metric, *unit), axis);
                }
            }
        }
    }
    page.blank();
    legend(&mut page, s);
    page.cautions(s.points.first().map_or(&[], |p| &p.measured.cautions));
    page.finish()
}

/// The title of a sweep: what all points have in common.
fn title(s: &Sweep) -> String {
    let Some(first) = s.points.first() else { return "Nothing was swept.".into() };
    let same = |of: fn(&Point) -> String| {
        let own = of(first);
        s.points.iter().all(|p| of(p) == own).then_some(own)
    };
    let run = same(|p| simulated(&p.measured.settings, p.recipe.seed));
    let [points, phases] =
        [(s.points.len(), "point"), (first.recipe.phases as usize, "start phase")]
            .map(|(n, of)| format!("{n} {of}{}", if n == 1 { "" } else { "s" }));
    let parts = [
        same(|p| p.workload().into()),
        same(|p| p.measured.platform.clone()),
        same(|p| p.measured.policy.clone()),
        Some(run.unwrap_or_else(|| "simulated".into())),
        Some(format!("{points} × {phases}")),
        crate::words::skipped(&first.measured.settings),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `energy (mJ)`.
fn named(metric: &Metric, unit: Unit) -> String {
    match unit.word() {
        "" => metric.name.clone(),
        unit => format!("{} ({unit})", metric.name),
    }
}

/// A median: of counts it is one, or lies half between two.
fn number(x: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => one(x).trim_end_matches(".0").into(),
        _ => digits3(x),
    }
}

/// The sentence on a metric's lowest and highest value.
fn answer(s: &Sweep, m: usize, metric: &Metric, unit: Unit) -> String {
    let name = &metric.name;
    let told = |median: f64| number(median, unit) + unit.as_str();
    let at = |(p, median): (&Point, f64)| {
        let values = s.axes.iter().zip(&p.at).map(|(axis, v)| format!("{}={v}", axis.name));
        format!("{} at {}", told(median), values.collect::<Vec<_>>().join(" "))
    };
    let ends = |p: &Point| p.measured.estimate(m).and_then(|e| e.interval);
    // The lowest point may be as high as the highest one.
    let doubt = |least: (&Point, f64), largest: (&Point, f64)| {
        let overlap = ends(least.0).zip(ends(largest.0)).is_some_and(|(a, b)| a.1 >= b.0);
        if overlap { " (intervals overlap)" } else { "" }
    };
    match (s.extremes(m), metric.less_is_better()) {
        (None, _) if is_unknown(metric) => format!("{name}: unknown, as the power is."),
        (None, _) => format!("{name}: at no point there is one."),
        (Some([least, largest]), _) if least.1 == largest.1 => {
            let varies = s.points.iter().any(|p| interval(p, m).is_some());
            format!("{name}: {}{} everywhere.", if varies { "median " } else { "" }, told(least.1))
        }
        (Some([least, largest]), Some(true)) => {
            format!("{name}: best {}, worst {}{}.", at(least), at(largest), doubt(least, largest))
        }
        (Some([least, largest]), Some(false)) => {
            format!("{name}: best {}, worst {}{}.", at(largest), at(least), doubt(least, largest))
        }
        (Some([least, largest]), None) => {
            format!("{name}: from {} to {}{}.", at(least), at(largest), doubt(least, largest))
        }
    }
}

/// Whether some median has one, and a width.
fn has_intervals(s: &Sweep) -> bool {
    let metrics = s.metrics().count();
    s.points.iter().any(|p| (0..metrics).any(|m| interval(p, m).is_some()))
}

/// Medians and intervals, a row a point; metrics that do not fit come in a table of their own.
fn table(page: &mut Page<'_>, s: &Sweep, metrics: &[(&Metric, Unit)]) {
    let intervals = has_intervals(s);
    let columns = |m: usize| -> Vec<Vec<String>> {
        let both = |median: String, interval: String| match intervals {
            true => vec![median, interval],
            false => vec![median],
        };
        let row = |p| both(cell(p, m), interval(p, m).unwrap_or_default());
        let head = both(named(metrics[m].0, metrics[m].1), "95 %".into());
        std::iter::once(head).chain(s.points.iter().map(row)).collect()
    };
    let names = std::iter::once(s.axes.iter().map(Axis::label).collect());
    let names: Vec<Vec<String>> = names.chain(s.points.iter().map(|p| p.at.clone())).collect();
    let mut rows = names.clone();
    for m in 0..metrics.len() {
        let own = columns(m);
        let joined = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
            rows.iter().zip(&own).map(|(row, more)| [&row[..], &more[..]].concat()).collect()
        };
        let wider = joined(&rows);
        if rows[0].len() > names[0].len() && taken(&wider) > page.width() {
            put(page, &rows);
            page.blank();
            rows = joined(&names);
        } else {
            rows = wider;
        }
    }
    put(page, &rows);
}

/// Columns of the terminal that a table of these rows takes.
fn taken(rows: &[Vec<String>]) -> usize {
    let column = |c: usize| rows.iter().map(|row| width(&row[c])).max().unwrap_or(0) + 2;
    (0..rows[0].len()).map(column).sum::<usize>() - 2
}

fn put(page: &mut Page<'_>, rows: &[Vec<String>]) {
    let mut table = Table::new(rows[0].clone());
    rows[1..].iter().for_each(|row| table.row(row.clone()));
    page.table(0, table);
}

/// The median, and how many start phases have none.
fn cell(p: &Point, m: usize) -> String {
    let unit = p.measured.metrics[m].1;
    let unknown = is_unknown(&p.measured.metrics[m].0);
    let Some(estimate) = p.measured.estimate(m) else {
        return if unknown { "unknown" } else { "never" }.into();
    };
    match p.measured.never(m) {
        0 => number(estimate.median, unit),
        never => format!("{} ({never} never)", number(estimate.median, unit)),
    }
}

/// Whether there is none only because nobody knows the power: energy was taken all the same.
fn is_unknown(metric: &Metric) -> bool {
    metric.name == "energy" || metric.name.ends_with(".task_energy")
}

/// `12.3…13.0`; `None`: too few values, or no width.
fn interval(p: &Point, m: usize) -> Option<String> {
    let ends = p.measured.estimate(m)?.interval?;
    let (low, high) =
        (number(ends.0, p.measured.metrics[m].1), number(ends.1, p.measured.metrics[m].1));
    (low != high).then(|| format!("{low}…{high}"))
}

/// The least and the largest; upside down if there are none.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)))
}

/// A metric over one axis.
fn draw(page: &mut Page<'_>, s: &Sweep, m: usize, title: &str, axis: &Axis) {
    let medians = s.medians(m);
    if s.points.len() < 2 {
        return;
    }
    let Some(x) = axis.numbers() else {
        page.rule(title);
        let rows = s.points.iter().zip(medians);
        let rows = rows.map(|(p, v)| (p.at[0].clone(), v.unwrap_or(f64::NAN), cell(p, m)));
        page.bars(0, Ink::Curve, &rows.collect::<Vec<_>>());
        return;
    };
    // A value that is not there parts the curve.
    let mut points: Vec<(f64, Option<f64>)> = x.into_iter().zip(medians).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let known = || points.iter().filter_map(|(x, y)| Some((*x, (*y)?)));
    let y = range(known().map(|p| p.1));
    if y.1 <= y.0 {
        return;
    }
    let parts = points.split(|p| p.1.is_none());
    let parts = parts.map(|part| part.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect());
    page.blank();
    page.put(Block::Plot(Plot {
        title: title.into(),
        x: range(points.iter().map(|p| p.0)),
        y,
        rows: ROWS,
        y_marks: ticks(y, 4),
        x_unit: axis.label(),
        curves: vec![Curve { parts: parts.collect(), ink: Ink::Curve }],
        shade: None,
        lanes: Vec::new(),
    }));
}

/// A metric over two axes; where the columns do not fit, they continue below.
fn map(page: &mut Page<'_>, s: &Sweep, m: usize, title: &str, (rows, columns): (&Axis, &Axis)) {
    let medians = s.medians(m);
    let known = || medians.iter().flatten().copied();
    let (low, high) = range(known());
    let shade = |median: Option<f64>| {
        let share = median.filter(|_| high > low).map_or(0.0, |v| (v - low) / (high - low));
        SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    };
    page.heading(format!("{title}, {} by {}", rows.label(), columns.label()), "");
    let label = rows.values.iter().map(|v| width(v)).max().unwrap_or(0);
    let cells = (0..s.points.len()).map(|i| width(&cell(&s.points[i], m)));
    let heads = columns.values.iter().map(|v| width(v));
    // Two of shade, and a space.
    let wide = (cells.max().unwrap_or(0) + 3).max(heads.max().unwrap_or(0));
    let fit = (page.width().saturating_sub(label) / (wide + 2)).max(1);
    for (block, first) in (0..columns.values.len()).step_by(fit).enumerate() {
        let shown = first..(first + fit).min(columns.values.len());
        if block > 0 {
            page.blank();
        }
        let mut head = Line::new().plain(" ".repeat(label));
        for c in shown.clone() {
            head = head.ink(Ink::Dim, format!("  {}", pad(&columns.values[c], wide, true)));
        }
        page.line(head);
        for (r, value) in rows.values.iter().enumerate() {
            let mut line = Line::new().ink(Ink::Dim, pad(value, label, true));
            for i in shown.clone().map(|c| r * columns.values.len() + c) {
                let shade = shade(medians[i]).to_string().repeat(2);
                let text = pad(&cell(&s.points[i], m), wide - 3, true);
                line = line.ink(Ink::Curve, format!("  {shade} ")).plain(text);
            }
            page.line(line);
        }
    }
}

fn legend(page: &mut Page<'_>, s: &Sweep) {
    let phases = s.points.first().map_or(0, |p| p.recipe.phases);
    let over = match phases {
        1 => "One run each".to_string(),
        n => format!("Medians over {n} start phases"),
    };
    let fuller = if s.axes.len() == 2 { "; the fuller a cell, the more" } else { "" };
    let intervals = match phases {
        1 => "",
        2..6 => "; from --phases 6 on with their intervals",
        _ if s.axes.len() == 2 && s.points.len() > LISTED => {
            "; their intervals: --format csv or json"
        }
        _ => ", 95 %: their intervals",
    };
    let text =
        format!("{over}{fuller}{intervals}. The command of each point: --format csv or json.");
    page.paragraph(0, Ink::Dim, &text);
}
