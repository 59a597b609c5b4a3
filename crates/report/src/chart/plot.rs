//! The contents and the axes of a panel.

use super::font::{cut, width};
use super::page::{Anchor, Draw, LEADING, MARGIN, Page, SMALL, Stroke, TEXT, mix};
use super::scale::Scale;
use super::theme;
use super::{AxisKind, Colour, Heat, Mark, Panel, Series, Shape, Size};

/// Heights of plots.
pub(super) const STRIP: f64 = 96.0;
const HALF: f64 = 150.0;
const WHOLE: f64 = 300.0;
/// A row of names on the y axis.
const ROW: f64 = 24.0;
/// Width of a line, and by how much it grows for each line that lies over it: both are seen where
/// they are the same.
const LINE: f64 = 1.6;
const MORE: f64 = 1.0;
/// Number of dots beyond which each is smaller.
const MANY: usize = 12;

pub(super) fn dashed(s: &Series) -> bool {
    s.dashed || theme::again(s.colour)
}

/// The height of the plot, in px.
fn plot_height(panel: &Panel) -> f64 {
    if let AxisKind::Names(names) = &panel.y.kind {
        return ROW * names.len().max(1) as f64;
    }
    match panel.size {
        Size::Strip => STRIP,
        Size::Half => HALF,
        Size::Whole => WHOLE,
    }
}

fn x_scale(panel: &Panel, width: f64) -> Scale {
    let values = panel.series.iter().flat_map(|s| values(&s.shape, true));
    Scale::of(&panel.x, values, (width / 56.0) as usize)
}

fn y_scale(panel: &Panel, height: f64) -> Scale {
    let values = panel.series.iter().flat_map(|s| values(&s.shape, false));
    Scale::of(&panel.y, values, (height / 26.0) as usize)
}

/// Lists all values that an axis has to hold.
fn values(shape: &Shape, x: bool) -> Vec<f64> {
    let plain = |p: &(f64, f64)| if x { p.0 } else { p.1 };
    let marks = |m: &Mark| {
        let (value, range) = if x { (m.x, m.x_range) } else { (m.y, m.y_range) };
        let (low, high) = range.unwrap_or((value, value));
        [value, low, high]
    };
    match shape {
        Shape::Line(points) | Shape::Step(points) => points.iter().map(plain).collect(),
        Shape::Band(points) if x => points.iter().map(|p| p.0).collect(),
        Shape::Band(points) => points.iter().flat_map(|p| [p.1, p.2]).collect(),
        Shape::Points(all) => all.iter().flat_map(marks).collect(),
        Shape::Bars(all) => all.iter().flat_map(marks).chain(x.then_some(0.0)).collect(),
    }
}

/// The room for the labels left of the y axis, in px.
pub(super) fn gutter(panel: &Panel, height: f64, room: f64) -> f64 {
    let ticks = y_scale(panel, height).ticks;
    let widest = ticks.iter().map(|t| width(&t.1, SMALL)).fold(0.0, f64::max);
    (widest + 8.0).min(room * 0.45)
}

/// A plot's place, and from values to places in it.
pub(super) struct Plot {
    pub(super) left: f64,
    top: f64,
    pub(super) width: f64,
    height: f64,
    x: Scale,
    y: Scale,
    /// Distance by which series are moved aside where an axis has names: the first, and each
    /// further one.
    aside: (f64, f64),
    colours: Vec<Colour>,
    /// Names stand on the x axis, on the y axis.
    names: (bool, bool),
}

impl Plot {
    /// Lays `panel` out: top left corner at `(left, top)`, `room` wide including labels, with a
    /// left gutter of at least `least`.
    pub(super) fn of(panel: &Panel, (left, top): (f64, f64), room: f64, least: f64) -> Plot {
        let height = plot_height(panel);
        let gutter = gutter(panel, height, room).max(least);
        let beside = panel.series.iter().flat_map(|s| match &s.shape {
            Shape::Bars(all) => all.as_slice(),
            _ => &[],
        });
        let beside = beside.map(|bar| width(&bar.label, SMALL) + 8.0).fold(8.0, f64::max);
        let width = room - gutter - beside;
        let (x, y) = (x_scale(panel, width), y_scale(panel, height));
        let is_names = |kind: &AxisKind| matches!(kind, AxisKind::Names(_));
        let names = (is_names(&panel.x.kind), is_names(&panel.y.kind));
        let colours = each_once(panel.series.iter().map(|s| s.colour));
        let slot = if names.0 { width / x.ticks.len().max(1) as f64 } else { ROW };
        let between = (slot * 0.75 / colours.len().max(1) as f64).min(10.0);
        let between = if crowded(panel, names) { between } else { 0.0 };
        let first = -between * (colours.len().max(1) - 1) as f64 / 2.0;
        let left = left + gutter;
        Plot { left, top, width, height, x, y, aside: (first, between), colours, names }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (x, y) = (self.x.share(x), self.y.share(y));
        (self.left + self.width * x, self.top + self.height * (1.0 - y.clamp(0.0, 1.0)))
    }

    /// The place of a point of a series of this colour: beside the other series' where an axis has
    /// names.
    fn place(&self, colour: Colour, at: (f64, f64)) -> (f64, f64) {
        let (x, y) = self.at(at);
        let n = self.colours.iter().position(|c| *c == colour).unwrap_or(0);
        let aside = self.aside.0 + self.aside.1 * n as f64;
        (
            x + aside * f64::from(u8::from(self.names.0)),
            y + aside * f64::from(u8::from(self.names.1)),
        )
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

impl Page {
    /// Draws `panel` into `plot`, with its axes; returns where that ends.
    pub(super) fn plot(&mut self, plot: &Plot, panel: &Panel, silent: bool) -> f64 {
        if let Some(heat) = &panel.heat {
            self.heat(plot, heat);
        }
        let end = self.axes(plot, panel, silent);
        for (i, series) in panel.series.iter().enumerate() {
            let is_line =
                |s: &&Series| matches!(s.shape, Shape::Line(_) | Shape::Step(_)) && !s.dashed;
            let over = panel.series[i + 1..].iter().filter(is_line).map(|s| s.colour);
            let over = each_once(over.filter(|c| *c != series.colour)).len();
            let more = if series.dashed { 0.0 } else { MORE * over.min(3) as f64 };
            self.series(plot, series, LINE + more);
        }
        self.labels(plot, panel);
        for (i, series) in panel.series.iter().enumerate() {
            self.dots(plot, series, &panel.series[i + 1..]);
        }
        end
    }

    /// Draws grid, ticks and the quantity of x; returns where that ends.
    fn axes(&mut self, plot: &Plot, panel: &Panel, silent: bool) -> f64 {
        let (grid, dim) = (self.palette.grid, self.palette.dim);
        for (value, words) in &plot.y.ticks {
            let y = plot.top + plot.height * (1.0 - plot.y.share(*value));
            if !plot.names.1 {
                self.line(&[(plot.left, y), (plot.right(), y)], grid, 1.0);
            }
            let fill = if plot.names.1 { self.palette.ink } else { dim };
            let words = cut(words, SMALL, plot.left - MARGIN);
            self.text((plot.left - 6.0, y + SMALL * 0.36), Anchor::End, SMALL, fill, &words);
        }
        if plot.names.0 {
            return self.names(plot, panel);
        }
        let mut free_from = f64::NEG_INFINITY;
        for (value, words) in &plot.x.ticks {
            let x = plot.left + plot.width * plot.x.share(*value);
            self.line(&[(x, plot.top), (x, plot.bottom())], grid, 1.0);
            let half = width(words, SMALL) / 2.0;
            let middle = x.min(plot.right() + 8.0 - half);
            if middle - half >= free_from && !silent {
                let at = (middle, plot.bottom() + SMALL + 4.0);
                self.text(at, Anchor::Middle, SMALL, dim, words);
                free_from = middle + half + 8.0;
            }
        }
        if plot.x.share(0.0) > 0.0 && plot.x.share(0.0) < 1.0 && plot.names.1 {
            let x = plot.left + plot.width * plot.x.share(0.0);
            self.line(&[(x, plot.top), (x, plot.bottom())], dim, 1.0);
        }
        if silent {
            return plot.bottom();
        }
        self.x_label(plot, panel, plot.bottom() + SMALL + 6.0)
    }

    fn x_label(&mut self, plot: &Plot, panel: &Panel, y: f64) -> f64 {
        let words = said(&panel.x.label, &panel.x.unit);
        if words.is_empty() {
            return y;
        }
        let at = (plot.left + plot.width / 2.0, y + SMALL + 1.0);
        let words = cut(&words, SMALL, plot.width + plot.left - MARGIN);
        self.text(at, Anchor::Middle, SMALL, self.palette.dim, &words);
        y + SMALL * LEADING
    }

    /// Names below the x axis, in up to three rows where they are wider than their places.
    fn names(&mut self, plot: &Plot, panel: &Panel) -> f64 {
        let place = plot.width / plot.x.ticks.len().max(1) as f64;
        let widest = plot.x.ticks.iter().map(|t| width(&t.1, SMALL) + 8.0).fold(1.0, f64::max);
        let rows = ((widest / place).ceil() as usize).clamp(1, 3);
        for (i, (value, words)) in plot.x.ticks.iter().enumerate() {
            let x = plot.left + plot.width * plot.x.share(*value);
            let words = cut(words, SMALL, (place * rows as f64 - 4.0).max(24.0));
            let half = width(&words, SMALL) / 2.0;
            let middle = x.clamp(
                (plot.left + half - 20.0).min(x),
                (plot.right() + 8.0 - half).max(plot.left),
            );
            let y = plot.bottom() + (SMALL + 3.0) * (1 + i % rows) as f64;
            self.text((middle, y), Anchor::Middle, SMALL, self.palette.dim, &words);
        }
        self.x_label(plot, panel, plot.bottom() + (SMALL + 3.0) * rows as f64 + 2.0)
    }

    fn series(&mut self, plot: &Plot, series: &Series, width: f64) {
        let colour = self.palette.series(series.colour);
        let dash = dashed(series);
        let place = |at: (f64, f64)| plot.place(series.colour, at);
        match &series.shape {
            Shape::Line(points) => {
                for run in runs(points) {
                    self.curve(
                        plot,
                        run.iter().map(|p| place(*p)).collect(),
                        Stroke { colour, width, dash },
                    );
                }
            }
            Shape::Step(points) => {
                for run in runs(points) {
                    let mut line: Vec<(f64, f64)> = Vec::new();
                    for (x, y) in run.iter().map(|p| place(*p)) {
                        line.extend(line.last().map(|before| (x, before.1)));
                        line.push((x, y));
                    }
                    self.curve(plot, line, Stroke { colour, width, dash });
                }
            }
            Shape::Band(points) => {
                let fits =
                    points.iter().filter(|p| p.0.is_finite() && p.1.is_finite() && p.2.is_finite());
                let low = fits.clone().map(|p| place((p.0, p.1)));
                let high = fits.rev().map(|p| place((p.0, p.2)));
                self.fill(low.chain(high).collect(), colour, 0.22);
            }
            // The series' dots come last.
            Shape::Points(all) => all.iter().for_each(|m| self.intervals(plot, series.colour, m)),
            Shape::Bars(all) => {
                for mark in all.iter().filter(|m| m.x.is_finite() && m.y.is_finite()) {
                    self.bar(plot, series, mark);
                }
            }
        }
    }

    /// The dots of a series; one that dots of `over` come to lie on is larger, so that both are seen.
    fn dots(&mut self, plot: &Plot, series: &Series, over: &[Series]) {
        let Shape::Points(all) = &series.shape else { return };
        let radius = if all.len() > MANY { 2.4 } else { 3.5 };
        let fill = self.palette.series(series.colour);
        for mark in all.iter().filter(|m| m.x.is_finite() && m.y.is_finite()) {
            let at = plot.place(series.colour, (mark.x, mark.y));
            let covers = |s: &&Series| {
                let Shape::Points(all) = &s.shape else { return false };
                all.iter().any(|m| near(plot.place(s.colour, (m.x, m.y)), at))
            };
            let covered = over.iter().filter(covers).count().min(3);
            let radius = radius + MORE * 1.5 * covered as f64;
            self.shapes.push(Draw::Dot { at, radius, fill });
        }
    }

    /// A line within the plot, no finer than can be seen.
    fn curve(&mut self, plot: &Plot, line: Vec<(f64, f64)>, stroke: Stroke) {
        let line = thin(within(&line, plot.left, plot.right()));
        self.path(line, stroke);
    }

    /// An end that is not finite lies at the plot's edge.
    fn intervals(&mut self, plot: &Plot, colour: Colour, mark: &Mark) {
        let ink = mix(self.palette.series(colour), self.palette.paper, 0.65);
        let place = |at: (f64, f64)| {
            let (x, y) = plot.place(colour, at);
            (x.clamp(plot.left, plot.right()), y)
        };
        let along_x = mark.x_range.map(|(low, high)| [(low, mark.y), (high, mark.y)]);
        let along_y = mark.y_range.map(|(low, high)| [(mark.x, low), (mark.x, high)]);
        for ends in along_x.into_iter().chain(along_y) {
            if !ends.iter().any(|end| end.0.is_nan() || end.1.is_nan()) {
                self.line(&ends.map(place), ink, 1.6);
            }
        }
    }

    fn bar(&mut self, plot: &Plot, series: &Series, mark: &Mark) {
        let (from, y) = plot.place(series.colour, (0.0, mark.y));
        let (to, _) = plot.place(series.colour, (mark.x, mark.y));
        let thick = if plot.aside.1 > 0.0 { plot.aside.1 * 0.8 } else { ROW * 0.58 };
        let corner = (from.min(to), y - thick / 2.0);
        self.block(corner, ((to - from).abs(), thick), self.palette.series(series.colour));
        let mut end = from.max(to);
        if let Some((low, high)) = mark.x_range {
            let (low, high) = (plot.at((low, mark.y)).0, plot.at((high, mark.y)).0);
            self.line(&[(low, y), (high, y)], self.palette.ink, 1.6);
            for x in [low, high] {
                self.line(&[(x, y - 4.0), (x, y + 4.0)], self.palette.ink, 1.6);
            }
            end = end.max(high);
        }
        let at = (end + 6.0, y + SMALL * 0.36);
        self.text(at, Anchor::Start, SMALL, self.palette.ink, &mark.label);
    }

    /// Draws the labels beside points; those of points that are close to each other are joined.
    fn labels(&mut self, plot: &Plot, panel: &Panel) {
        let mut labels: Vec<((f64, f64), String)> = Vec::new();
        for series in &panel.series {
            let Shape::Points(all) = &series.shape else { continue };
            for mark in
                all.iter().filter(|m| !m.label.is_empty() && m.x.is_finite() && m.y.is_finite())
            {
                let at = plot.place(series.colour, (mark.x, mark.y));
                let near = |l: &&mut ((f64, f64), String)| {
                    (l.0.0 - at.0).abs() < 8.0 + width(&l.1, TEXT) && (l.0.1 - at.1).abs() < 12.0
                };
                match labels.iter_mut().find(near) {
                    Some((_, label)) => *label = format!("{label} {}", mark.label),
                    None => labels.push((at, mark.label.clone())),
                }
            }
        }
        for ((x, y), label) in labels {
            let label = cut(&label, TEXT, plot.width * 0.6);
            let fits = x + 7.0 + width(&label, TEXT) <= plot.right() + 6.0;
            let (x, anchor) = if fits { (x + 6.0, Anchor::Start) } else { (x - 6.0, Anchor::End) };
            let y = (y - 6.0).max(plot.top + TEXT);
            let wide = width(&label, TEXT);
            let from = if fits { x } else { x - wide } - 2.0;
            let (right, top, bottom) = (from + wide + 4.0, y - TEXT + 1.0, y + 3.0);
            let behind = vec![(from, top), (right, top), (right, bottom), (from, bottom)];
            self.fill(behind, self.palette.paper, 0.75);
            self.text((x, y), anchor, TEXT, self.palette.ink, &label);
        }
    }

    fn heat(&mut self, plot: &Plot, heat: &Heat) {
        let (columns, rows) = (plot.x.ticks.len().max(1), plot.y.ticks.len().max(1));
        let cell = (plot.width / columns as f64, plot.height / rows as f64);
        let (low, high) = ends(heat);
        for (r, row) in heat.values.iter().enumerate().take(rows) {
            for (c, value) in row.iter().enumerate().take(columns) {
                let (x, y) = plot.at((c as f64, r as f64));
                let value = value.filter(|v| v.is_finite());
                let share = |v: f64| if high > low { (v - low) / (high - low) } else { 0.0 };
                let plain = (self.palette.grid, self.palette.dim);
                let (colour, ink) = value.map_or(plain, |v| theme::heat(share(v)));
                let corner = (x - cell.0 / 2.0 + 0.5, y - cell.1 / 2.0 + 0.5);
                self.block(corner, (cell.0 - 1.0, cell.1 - 1.0), colour);
                let words = value.map_or("–".into(), crate::words::digits3);
                if width(&words, SMALL) + 4.0 <= cell.0 {
                    self.text((x, y + SMALL * 0.36), Anchor::Middle, SMALL, ink, &words);
                }
            }
        }
    }

    /// Colours from the least to the greatest value.
    pub(super) fn heat_legend(&mut self, heat: &Heat, (left, top): (f64, f64), room: f64) -> f64 {
        const PARTS: u32 = 24;
        let (low, high) = ends(heat);
        if low > high {
            return top;
        }
        let (low, high) = (crate::words::digits3(low), crate::words::digits3(high));
        let from = left + width(&low, SMALL) + 8.0;
        let part = (room * 0.4 / f64::from(PARTS)).min(8.0);
        self.text((left, top + SMALL), Anchor::Start, SMALL, self.palette.dim, &low);
        for i in 0..PARTS {
            let colour = theme::heat(f64::from(i) / f64::from(PARTS - 1)).0;
            self.block((from + part * f64::from(i), top + 1.0), (part, 11.0), colour);
        }
        let at = (from + part * f64::from(PARTS) + 8.0, top + SMALL);
        self.text(at, Anchor::Start, SMALL, self.palette.dim, &high);
        top + SMALL * LEADING
    }
}

/// Whether two dots are at one place.
fn near(a: (f64, f64), b: (f64, f64)) -> bool {
    (a.0 - b.0).abs() < 1.0 && (a.1 - b.1).abs() < 1.0
}

/// Lists each colour once, in the order in which they first appear.
fn each_once(all: impl Iterator<Item = Colour>) -> Vec<Colour> {
    let mut colours: Vec<Colour> = Vec::new();
    for colour in all {
        if !colours.contains(&colour) {
            colours.push(colour);
        }
    }
    colours
}

/// Whether marks of two colours belong to the same name.
fn crowded(panel: &Panel, names: (bool, bool)) -> bool {
    let mut taken: Vec<(f64, Colour)> = Vec::new();
    for series in panel.series.iter().filter(|_| names.0 || names.1) {
        let (Shape::Points(all) | Shape::Bars(all)) = &series.shape else { continue };
        for mark in all {
            let place = if names.0 { mark.x } else { mark.y };
            if taken.iter().any(|(at, colour)| *at == place && *colour != series.colour) {
                return true;
            }
            taken.push((place, series.colour));
        }
    }
    false
}

/// The least and the greatest value.
fn ends(heat: &Heat) -> (f64, f64) {
    let all = heat.values.iter().flatten().flatten().filter(|v| v.is_finite());
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// `frequency (MHz)`.
pub(super) fn said(label: &str, unit: &str) -> String {
    match (label.is_empty(), unit.is_empty()) {
        (_, true) => label.to_string(),
        (true, false) => unit.to_string(),
        (false, false) => format!("{label} ({unit})"),
    }
}

/// Stretches without a gap.
fn runs(points: &[(f64, f64)]) -> impl Iterator<Item = &[(f64, f64)]> {
    points.split(|p| !(p.0.is_finite() && p.1.is_finite())).filter(|run| !run.is_empty())
}

/// The part of a line between two x.
fn within(line: &[(f64, f64)], left: f64, right: f64) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for pair in line.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        if x0.max(x1) < left || x0.min(x1) > right {
            continue;
        }
        let cut = |x: f64| {
            let share = if x1 == x0 { 0.0 } else { (x - x0) / (x1 - x0) };
            (x, y0 + (y1 - y0) * share)
        };
        let edge = |(x, y): (f64, f64)| {
            if (left..=right).contains(&x) { (x, y) } else { cut(x.clamp(left, right)) }
        };
        if out.last() != Some(&edge(pair[0])) {
            out.push(edge(pair[0]));
        }
        out.push(edge(pair[1]));
    }
    out
}

/// Thins a line out: of points within half a px of each other it keeps the first, the lowest, the
/// highest and the last.
fn thin(line: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let place = |p: &(f64, f64)| (p.0 * 2.0).floor() as i64;
    let mut out = Vec::new();
    for group in line.chunk_by(|a, b| place(a) == place(b)) {
        if group.len() <= 4 {
            out.extend_from_slice(group);
            continue;
        }
        let by_y = |i: &usize, j: &usize| group[*i].1.total_cmp(&group[*j].1);
        let low = (0..group.len()).min_by(by_y).unwrap_or(0);
        let high = (0..group.len()).max_by(by_y).unwrap_or(0);
        let mut keep = [0, low.min(high), low.max(high), group.len() - 1].to_vec();
        keep.dedup();
        out.extend(keep.into_iter().map(|i| group[i]));
    }
    out
}
