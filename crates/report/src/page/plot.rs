//! Curves drawn with block characters, four points to a character cell, as the plots of the
//! response-time series are.
//!
//! ```text
//! cell = 2 × 2 points:  ▘ 1  ▝ 2      a curve sets the points under the line from sample
//!                       ▖ 4  ▗ 8      to sample, so 40 columns resolve 80 steps of time
//! ```
//!
//! Our own, because the libraries at hand draw braille dots (textplots) or need a terminal to
//! draw on (ratatui); braille neither looks like the series nor shows in every font.
//!
//! Left out: more than one curve per cell (the later one gives the colour).

use super::line::{Ink, Line, pad, width};

/// A line on the plot: one list of (x, y) per stretch without a gap, x ascending.
pub(crate) struct Curve {
    pub(crate) parts: Vec<Vec<(f64, f64)>>,
    pub(crate) ink: Ink,
}

/// Lower and upper edge at x; `None`: there is none.
pub(crate) type Edges = Box<dyn Fn(f64) -> Option<(f64, f64)>>;

/// Cells to shade between two functions of x.
pub(crate) struct Shade {
    /// The lower and the upper edge at x; nothing is shaded where there is none.
    pub(crate) edges: Edges,
    /// Written into the middle of the widest shaded row.
    pub(crate) label: String,
}

/// A line of text below the x axis, at the moments that it speaks of.
pub(crate) struct Lane {
    label: &'static str,
    ink: Ink,
    texts: Texts,
}

enum Texts {
    /// Text from each x on, and what fills up the line after it.
    Marks(Vec<(f64, String)>, char),
    /// Text for the x of each tick.
    AtTicks(Box<dyn Fn(f64) -> String>),
}

impl Lane {
    /// Texts that hold from their x (ascending) until the next.
    pub(crate) fn marks(
        label: &'static str,
        ink: Ink,
        marks: Vec<(f64, String)>,
        fill: char,
    ) -> Lane {
        Lane { label, ink, texts: Texts::Marks(marks, fill) }
    }
    /// A text for the x of each tick.
    pub(crate) fn at_ticks(
        label: &'static str,
        ink: Ink,
        say: impl Fn(f64) -> String + 'static,
    ) -> Lane {
        Lane { label, ink, texts: Texts::AtTicks(Box::new(say)) }
    }
}

/// A plot of characters.
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    /// Rows of the drawing, without axes.
    pub(crate) rows: usize,
    /// Values to label on the y axis, with their labels.
    pub(crate) y_marks: Vec<(f64, String)>,
    /// Unit of the x axis.
    pub(crate) x_unit: String,
    pub(crate) curves: Vec<Curve>,
    pub(crate) shade: Option<Shade>,
    /// Below the x axis.
    pub(crate) lanes: Vec<Lane>,
}

/// The four-point glyphs by the bits of the points set.
const GLYPHS: [char; 16] =
    [' ', '▘', '▝', '▀', '▖', '▌', '▞', '▛', '▗', '▚', '▐', '▜', '▄', '▙', '▟', '█'];

/// A grid of cells, each with its points and the ink of what was drawn last.
struct Canvas {
    columns: usize,
    rows: usize,
    bits: Vec<u8>,
    ink: Vec<Ink>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Canvas {
        let n = columns * rows;
        Canvas { columns, rows, bits: vec![0; n], ink: vec![Ink::Plain; n] }
    }

    fn set(&mut self, x: i64, y: i64, ink: Ink) {
        let (w, h) = (2 * self.columns as i64, 2 * self.rows as i64);
        if x < 0 || y < 0 || x >= w || y >= h {
            return;
        }
        let (x, y) = (x as usize, y as usize);
        let cell = y / 2 * self.columns + x / 2;
        self.bits[cell] |= 1 << (x % 2 + 2 * (y % 2));
        self.ink[cell] = ink;
    }

    /// Draws all points between two points (Bresenham).
    fn stroke(&mut self, from: (i64, i64), to: (i64, i64), ink: Ink) {
        let (dx, dy) = ((to.0 - from.0).abs(), -(to.1 - from.1).abs());
        let (sx, sy) = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
        let (mut x, mut y, mut error) = (from.0, from.1, dx + dy);
        loop {
            self.set(x, y, ink);
            if (x, y) == to {
                return;
            }
            let twice = 2 * error;
            if twice >= dy {
                error += dy;
                x += sx;
            }
            if twice <= dx {
                error += dx;
                y += sy;
            }
        }
    }
}

impl Plot {
    /// The lines that draw the plot in so many columns.
    pub(crate) fn lines(&self, all: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let lanes = self.lanes.iter().map(|l| width(l.label));
        let margin =
            self.y_marks.iter().map(|(_, l)| width(l)).chain(lanes).max().unwrap_or(0).min(12);
        let columns = all.saturating_sub(margin + 2).max(8);
        let canvas = self.canvas(columns);
        let shaded = self.shaded(columns);
        if !self.title.is_empty() {
            let left = (all.saturating_sub(width(&self.title))) / 2;
            lines.push(Line::new().ink(Ink::Title, " ".repeat(left) + &self.title));
        }
        let empty = " ".repeat(margin);
        lines.push(Line::new().ink(Ink::Dim, format!("{empty}┌{}┐", "─".repeat(columns))));
        for row in 0..self.rows {
            let mark = self.y_marks.iter().find(|(y, _)| self.row_of(*y) == row);
            let axis = match mark {
                Some((_, label)) => pad(label, margin, true) + "┤",
                None => format!("{empty}│"),
            };
            let line = self.row_text(&canvas, &shaded, row, Line::new().ink(Ink::Dim, axis));
            lines.push(line.ink(Ink::Dim, "│"));
        }
        lines.extend(self.x_axis(all, margin, columns));
        lines
    }

    /// The position of y as a fraction of the height: 0 at the bottom, 1 at the top.
    fn fraction(&self, y: f64) -> f64 {
        let span = self.y.1 - self.y.0;
        if span > 0.0 { ((y - self.y.0) / span).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn row_of(&self, y: f64) -> usize {
        self.point_row(y) as usize / 2
    }

    fn point_row(&self, y: f64) -> i64 {
        let last = (2 * self.rows - 1) as f64;
        (last - self.fraction(y) * last).round() as i64
    }

    fn canvas(&self, columns: usize) -> Canvas {
        let mut canvas = Canvas::new(columns, self.rows);
        let span = self.x.1 - self.x.0;
        if !(span > 0.0 && span.is_finite()) {
            return canvas;
        }
        let scale = (2 * columns - 1) as f64 / span;
        let place =
            |(x, y): (f64, f64)| (((x - self.x.0) * scale).round() as i64, self.point_row(y));
        for curve in &self.curves {
            for part in &curve.parts {
                let points = || part.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
                for (from, to) in points().zip(points().skip(1)) {
                    if let Some((from, to)) = clip(*from, *to, self.x) {
                        canvas.stroke(place(from), place(to), curve.ink);
                    }
                }
                for point in points().filter(|p| self.x.0 <= p.0 && p.0 <= self.x.1) {
                    let (x, y) = place(*point);
                    canvas.set(x, y, curve.ink);
                }
            }
        }
        canvas
    }

    /// Tells for every row which columns are shaded.
    fn shaded(&self, columns: usize) -> Vec<Vec<bool>> {
        let mut rows = vec![vec![false; columns]; self.rows];
        let Some(shade) = &self.shade else {
            return rows;
        };
        let step = (self.x.1 - self.x.0) / columns as f64;
        for column in 0..columns {
            let x = self.x.0 + (column as f64 + 0.5) * step;
            let Some((low, high)) = (shade.edges)(x) else {
                continue;
            };
            if high - low <= 0.0 {
                continue;
            }
            let (top, bottom) = (self.row_of(high), self.row_of(low));
            for row in rows.iter_mut().take(bottom + 1).skip(top) {
                row[column] = true;
            }
        }
        rows
    }

    /// The place of the shade's label: (row, first column), the widest shaded stretch that is
    /// nearest to the middle of the shape; `None` if it fits nowhere.
    fn label_place(&self, canvas: &Canvas, shaded: &[Vec<bool>]) -> Option<(usize, usize)> {
        let shade = self.shade.as_ref()?;
        let need = width(&shade.label) + 2;
        let mut best: Option<(usize, usize, usize)> = None;
        for (row, cells) in shaded.iter().enumerate() {
            let free = |c: usize| cells[c] && canvas.bits[row * canvas.columns + c] == 0;
            let mut start = 0;
            for column in 0..=cells.len() {
                if column < cells.len() && free(column) {
                    continue;
                }
                let length = column - start;
                let middle = row.abs_diff(self.rows * 2 / 5);
                let better = best.is_none_or(|(r, _, l)| {
                    let old = r.abs_diff(self.rows * 2 / 5);
                    (l < length && l < need + 8) || (length >= need + 8 && middle < old)
                });
                if length >= need && better {
                    best = Some((row, start + (length - need) / 2 + 1, length));
                }
                start = column + 1;
            }
        }
        best.map(|(row, column, _)| (row, column))
    }

    fn row_text(&self, canvas: &Canvas, shaded: &[Vec<bool>], row: usize, line: Line) -> Line {
        let place = self.label_place(canvas, shaded).filter(|(r, _)| *r == row);
        let label = self.shade.as_ref().map(|s| s.label.as_str()).unwrap_or_default();
        let mut line = line;
        let (mut ink, mut run) = (Ink::Plain, String::new());
        let mut column = 0;
        while column < canvas.columns {
            let cell = row * canvas.columns + column;
            let (next, text, step) = match place {
                Some((_, at)) if at == column + 1 => {
                    (Ink::Strong, format!(" {label} "), width(label) + 2)
                }
                _ if canvas.bits[cell] != 0 => {
                    (canvas.ink[cell], GLYPHS[canvas.bits[cell] as usize].to_string(), 1)
                }
                _ if shaded[row][column] => (Ink::Bad, "░".to_string(), 1),
                _ => (Ink::Plain, " ".to_string(), 1),
            };
            if next != ink {
                line = line.ink(ink, std::mem::take(&mut run));
                ink = next;
            }
            run.push_str(&text);
            column += step;
        }
        line.ink(ink, run)
    }

    fn x_axis(&self, all: usize, margin: usize, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let marks = ticks(self.x, (columns / 9).clamp(2, 12));
        let mut axis: Vec<char> = vec!['─'; columns];
        for (x, _) in &marks {
            axis[self.column(*x, columns)] = '┬';
        }
        let axis: String = axis.into_iter().collect();
        lines.push(Line::new().ink(Ink::Dim, format!("{}└{axis}┘", " ".repeat(margin))));
        let centred = |texts: &[(f64, String)]| -> Vec<(usize, String)> {
            let start = |x: f64, t: &str| {
                (self.column(x, columns) + margin + 1).saturating_sub(width(t) / 2)
            };
            texts.iter().map(|(x, t)| (start(*x, t), t.clone())).collect()
        };
        let unit = format!(" {}", self.x_unit);
        let labelled = centred(&marks);
        // The unit stands behind the last number, in the place of that one if need be.
        let mut with_unit =
            (0..=labelled.len()).rev().map(|n| spread(&labelled[..n], ' ', all) + &unit);
        let labels = with_unit.find(|l| width(l) <= all);
        lines.push(Line::new().ink(Ink::Dim, labels.unwrap_or_default()));
        for lane in &self.lanes {
            let text = match &lane.texts {
                Texts::Marks(texts, fill) => {
                    let inside = texts.iter().filter(|t| t.0 <= self.x.1);
                    let mut at: Vec<(usize, String)> = Vec::new();
                    for (x, text) in inside {
                        let column = self.column(x.max(self.x.0), columns);
                        // Of what begins in the same column the last holds longest.
                        at.retain(|a| a.0 != column);
                        at.push((column, text.clone()));
                    }
                    let text = spread(&at, *fill, columns);
                    let rest = columns.saturating_sub(width(&text));
                    " ".repeat(margin + 1) + &text + &fill.to_string().repeat(rest)
                }
                Texts::AtTicks(say) => {
                    let texts: Vec<_> = marks.iter().map(|(x, _)| (*x, say(*x))).collect();
                    spread(&centred(&texts), ' ', margin + 1 + columns)
                }
            };
            let text: String = text.chars().skip(margin).collect();
            let label = pad(lane.label, margin, true);
            lines.push(Line::new().ink(Ink::Dim, label).ink(lane.ink, text));
        }
        lines
    }

    /// The column of x.
    fn column(&self, x: f64, columns: usize) -> usize {
        let span = self.x.1 - self.x.0;
        let share = if span > 0.0 { (x - self.x.0) / span } else { 0.0 };
        ((share * (columns - 1) as f64).round() as usize).min(columns - 1)
    }
}

/// Texts at their columns, ascending; one that would touch the one before moves on by a column,
/// and is left out if that is not enough or if it would run over the end. `fill` stands between
/// them.
fn spread(texts: &[(usize, String)], fill: char, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for (start, text) in texts {
        let (gap, w) = (usize::from(used > 0), width(text));
        let start = if start + 1 == used + gap { start + 1 } else { *start };
        if start < used + gap || start + w > columns {
            continue;
        }
        if used > 0 && fill != ' ' {
            out.push(' ');
            used += 1;
        }
        let more = start - used;
        if more > 0 && fill != ' ' && used > 0 {
            out.extend(std::iter::repeat_n(fill, more - 1));
            out.push(' ');
        } else {
            out.extend(std::iter::repeat_n(' ', more));
        }
        out.push_str(text);
        used = start + w;
    }
    if fill != ' ' && used > 0 && used < columns {
        out.push(' ');
    }
    out
}

/// The part of the segment that lies in the x range; `None` if nothing does.
fn clip(from: (f64, f64), to: (f64, f64), x: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
    if to.0 < x.0 || from.0 > x.1 || to.0 < from.0 {
        return None;
    }
    let at = |edge: f64| {
        let share = (edge - from.0) / (to.0 - from.0);
        (edge, from.1 + share * (to.1 - from.1))
    };
    let start = if from.0 < x.0 { at(x.0) } else { from };
    let end = if to.0 > x.1 { at(x.1) } else { to };
    Some((start, end))
}

/// Picks about `n` round values that lie in the range, with labels.
pub(crate) fn ticks(range: (f64, f64), n: usize) -> Vec<(f64, String)> {
    let span = range.1 - range.0;
    if !(span > 0.0 && span.is_finite()) || n == 0 {
        return Vec::new();
    }
    let raw = span / n as f64;
    let magnitude = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * magnitude)
        .find(|s| *s >= raw * 0.999)
        .unwrap_or(magnitude * 10.0);
    let digits = if step >= 1.0 && step.fract() == 0.0 { 0 } else { 3 };
    let first = (range.0 / step).ceil() as i64;
    let last = (range.1 / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|i| {
            let text = format!("{:.*}", digits, i as f64 * step);
            let text = if digits > 0 {
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            } else {
                text
            };
            (i as f64 * step, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(points: &[(f64, f64)], x: (f64, f64), y: (f64, f64), columns: usize) -> Vec<String> {
        let plot = Plot {
            title: String::new(),
            x,
            y,
            rows: 2,
            y_marks: vec![],
            x_unit: String::new(),
            curves: vec![Curve { parts: vec![points.to_vec()], ink: Ink::Curve }],
            shade: None,
            lanes: vec![],
        };
        let canvas = plot.canvas(columns);
        canvas
            .bits
            .chunks(columns)
            .map(|row| row.iter().map(|b| GLYPHS[*b as usize]).collect())
            .collect()
    }

    #[test]
    fn four_points_to_a_cell() {
        assert_eq!(draw(&[(0.0, 0.0), (3.0, 3.0)], (0.0, 3.0), (0.0, 3.0), 2), [" ▞", "▞ "]);
        assert_eq!(draw(&[(0.0, 3.0), (3.0, 3.0)], (0.0, 3.0), (0.0, 3.0), 2), ["▀▀", "  "]);
    }

    #[test]
    fn a_line_that_leaves_the_plot_stops_at_its_edge() {
        // It would reach 3 only at x = 6: at the right edge it is half way up.
        let half = draw(&[(0.0, 0.0), (6.0, 6.0)], (0.0, 3.0), (0.0, 6.0), 2);
        assert_eq!(half, ["  ", "▄▀"]);
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        assert_eq!(draw(&[], (0.0, 0.0), (0.0, 0.0), 2), ["  ", "  "]);
        assert_eq!(draw(&[(f64::NAN, 1.0)], (0.0, 1.0), (0.0, 1.0), 2), ["  ", "  "]);
        assert!(ticks((0.0, 0.0), 4).is_empty());
        assert!(ticks((f64::NAN, 1.0), 4).is_empty());
    }

    #[test]
    fn texts_that_would_touch_move_or_go() {
        let at = |texts: &[(usize, &str)], fill| {
            let texts: Vec<_> = texts.iter().map(|t| (t.0, t.1.to_string())).collect();
            spread(&texts, fill, 12)
        };
        assert_eq!(at(&[(0, "0.6"), (4, "1.0"), (7, "1.5")], ' '), "0.6 1.0 1.5");
        assert_eq!(at(&[(0, "0.6"), (2, "1.0"), (9, "1.5")], ' '), "0.6      1.5");
        assert_eq!(at(&[(0, "0.6"), (10, "1.0")], ' '), "0.6");
        assert_eq!(at(&[(0, "a"), (6, "b")], '-'), "a --- b ");
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let text = |r, n| ticks(r, n).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(text((0.0, 300.0), 6), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(text((-20.0, 330.0), 4), ["0", "100", "200", "300"]);
        assert_eq!(text((0.0, 1.0), 4), ["0", "0.25", "0.5", "0.75", "1"]);
    }
}
