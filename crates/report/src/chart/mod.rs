//! Pictures: panels with axes and series, as SVG text or as PNG, light or dark.
//!
//! ```text
//! Chart ── layout.rs, plot.rs ──> page.rs: shapes with places and colours ──> svg.rs   text
//!             │                                                        └──> png.rs   pixels
//!             ├ scale.rs  values to places; ticks at 1, 2 and 5 times powers of ten
//!             └ theme.rs  colours        font.rs  how wide a text is, and its outlines
//! ```
//!
//! A chart is 600 px wide and no text in it below 11 px, so that it can be read in a mail; a PNG has twice
//! as many pixels. What belongs to which series is said above the panels or below them, never over data.
//! Colours are those of Okabe and Ito, which people who see no red or no green tell apart; those used twice are
//! dashed the second time. Bytes depend on the chart and the theme alone: the font is in the binary.
//!
//! Left out: anything interactive, and writing from right to left.

mod font;
mod layout;
mod page;
mod plot;
mod png;
mod scale;
mod svg;
mod theme;

/// A picture: what its head says, its panels, its foot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Title of the chart.
    pub title: String,
    /// Text for a reader before the panels.
    pub subtitle: String,
    /// Origin of the chart: command and version.
    pub footer: String,
    /// Panels in the order of reading.
    pub panels: Vec<Panel>,
}

/// Two axes and what is drawn between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Title of the panel.
    pub title: String,
    /// Axis to the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Drawn in this order.
    pub series: Vec<Series>,
    /// A value for each place of two lists of names; its panel has no series.
    pub heat: Option<Heat>,
    /// Labels at points with what they stand for, written below.
    pub keys: Vec<(String, String)>,
    /// Remarks, written below.
    pub notes: Vec<String>,
    /// Part of the picture that the panel takes.
    pub size: Size,
}

/// Part of a picture that a panel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// The whole width, flat: one of several curves over the same time.
    #[default]
    Strip,
    /// Half of the width: two of them stand side by side.
    Half,
    /// The whole width and as high as it needs to be.
    Whole,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity on the axis.
    pub label: String,
    /// Unit; may be empty.
    pub unit: String,
    /// Kind of scale.
    pub kind: AxisKind,
    /// Ends of the axis; `None`: those of the values, rounded outwards.
    pub range: Option<(f64, f64)>,
}

/// Kind of scale of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AxisKind {
    /// Evenly, from 0 on or below.
    #[default]
    FromZero,
    /// Evenly, where the values are.
    Near,
    /// A logarithmic axis; a value of 0 or below lies at the left end.
    Log,
    /// A place for each name, the first is 0.
    Names(Vec<String>),
}

impl Axis {
    /// A linear axis from 0 on.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis { label: label.into(), unit: unit.into(), ..Axis::default() }
    }
    /// Returns the axis with another kind.
    pub fn kind(self, kind: AxisKind) -> Axis {
        Axis { kind, ..self }
    }
    /// Returns the axis with these ends.
    pub fn range(self, from: f64, to: f64) -> Axis {
        Axis { range: Some((from, to)), ..self }
    }
}

/// Some values of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend; empty: none is needed.
    pub name: String,
    /// Colour of the series.
    pub colour: Colour,
    /// A broken line.
    pub dashed: bool,
    /// The values.
    pub shape: Shape,
}

/// Values and how they are drawn. A value that is no number is a gap.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// (x, y), joined.
    Line(Vec<(f64, f64)>),
    /// (x, y): y from x on, until the next.
    Step(Vec<(f64, f64)>),
    /// (x, lowest y, highest y).
    Band(Vec<(f64, f64, f64)>),
    /// Places with their intervals.
    Points(Vec<Mark>),
    /// Bars from x = 0 to the mark, at its y, with its interval.
    Bars(Vec<Mark>),
}

/// A place, how certain it is, and what stands beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Value to the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Between these x.
    pub x_range: Option<(f64, f64)>,
    /// Between these y.
    pub y_range: Option<(f64, f64)>,
    /// Beside it; may be empty.
    pub label: String,
}

/// Colour of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The text colour; for the reference series that others are compared with.
    Ink,
    /// The colour of this number; the seventh is the first again, dashed.
    Nth(usize),
}

/// Values at places of two axes of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Values by row from below, then by column; `None`: there is none.
    pub values: Vec<Vec<Option<f64>>>,
}

impl Series {
    /// Values of this colour.
    pub fn new(name: impl Into<String>, colour: Colour, shape: Shape) -> Series {
        Series { name: name.into(), colour, dashed: false, shape }
    }
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        match &self.shape {
            Shape::Line(points) | Shape::Step(points) => points.is_empty(),
            Shape::Band(points) => points.is_empty(),
            Shape::Points(all) | Shape::Bars(all) => all.is_empty(),
        }
    }
    /// Returns the series with a broken line.
    pub fn dashed(self) -> Series {
        Series { dashed: true, ..self }
    }
}

/// Background on which the picture is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Paper.
    #[default]
    Light,
    /// A dark screen.
    Dark,
}

impl Chart {
    /// Renders the chart as SVG 1.1. Ends in a newline.
    pub fn svg(&self, theme: Theme) -> String {
        svg::text(&layout::layout(self, theme))
    }

    /// Renders the chart as PNG, two pixels for each of the SVG's.
    pub fn png(&self, theme: Theme) -> Vec<u8> {
        png::bytes(&layout::layout(self, theme))
    }
}

/// A curve over a setting: (value, estimate, its interval) each.
pub type Points<'a> = &'a [(f64, f64, Option<(f64, f64)>)];

/// A figure over a setting: one curve a row of `rows`, with bands where there are intervals.
pub fn curves(title: &str, x: Axis, y: Axis, rows: &[(&str, Points<'_>)]) -> Panel {
    let mut series = Vec::new();
    for (i, (name, points)) in rows.iter().enumerate() {
        let ends = |p: &(f64, f64, Option<(f64, f64)>)| p.2.unwrap_or((p.1, p.1));
        if points.iter().any(|p| p.2.is_some()) {
            let band = points.iter().map(|p| (p.0, ends(p).0, ends(p).1)).collect();
            series.push(Series::new("", Colour::Nth(i), Shape::Band(band)));
        }
        let line = points.iter().map(|p| (p.0, p.1)).collect();
        series.push(Series::new("", Colour::Nth(i), Shape::Line(line)));
        let marks = points.iter().map(|p| Mark { x: p.0, y: p.1, ..Mark::default() }).collect();
        series.push(Series::new(*name, Colour::Nth(i), Shape::Points(marks)));
    }
    Panel { title: title.into(), x, y, series, size: Size::Whole, ..Panel::default() }
}

/// A figure over two settings: `values[row][column]`, `None` where there is none; axes as (label, unit, values).
pub fn heat(
    title: &str,
    x: (&str, &str, &[String]),
    y: (&str, &str, &[String]),
    values: Vec<Vec<Option<f64>>>,
) -> Panel {
    let names =
        |a: (&str, &str, &[String])| Axis::new(a.0, a.1).kind(AxisKind::Names(a.2.to_vec()));
    Panel {
        title: title.into(),
        x: names(x),
        y: names(y),
        heat: Some(Heat { values }),
        size: Size::Whole,
        ..Panel::default()
    }
}
