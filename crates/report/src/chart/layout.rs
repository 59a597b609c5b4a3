//! Layout: the place and the colour of everything.
//!
//! ```text
//! title, subtitle
//! what the colours are                      here if all panels agree, else below each panel's title
//! panel                panel, or two halves side by side
//!   title · unit of y
//!   [plot]             ticks left of it and below
//!   x, what labels stand for, remarks
//! command and version
//! ```

use super::font::{cut, width, wrap};
use super::page::{
    Anchor, Draw, Drawing, GAP, HEADING, LEADING, MARGIN, Page, SMALL, Stroke, TEXT, TITLE, WIDTH,
};
use super::plot::{Plot, STRIP, dashed, gutter, said};
use super::theme::Palette;
use super::{AxisKind, Chart, Colour, Panel, Shape, Size, Theme};

/// A colour's sample in a legend.
const SWATCH: f64 = 18.0;

pub(super) fn layout(chart: &Chart, theme: Theme) -> Drawing {
    let palette = Palette::of(theme);
    let mut page = Page { palette, shapes: Vec::new() };
    let room = WIDTH - 2.0 * MARGIN;
    let mut y = page.lines(&chart.title, (MARGIN, 12.0), TITLE, palette.ink, 3);
    y = page.lines(&chart.subtitle, (MARGIN, y + 2.0), TEXT, palette.dim, 5);
    let shared = shared_legend(&chart.panels);
    if let Some(all) = &shared {
        y = page.legend(all, (MARGIN, y + 6.0), room);
    }
    let strips = chart.panels.iter().filter(|p| p.size == Size::Strip);
    let gutter = strips.map(|p| gutter(p, STRIP, room)).fold(0.0, f64::max);
    let mut left_half = None;
    for (i, panel) in chart.panels.iter().enumerate() {
        let whole = Place {
            left: MARGIN,
            top: y + GAP,
            room,
            least: 0.0,
            own: shared.is_none(),
            silent: false,
        };
        let half = Place { room: (room - GAP) / 2.0, ..whole };
        y = match (panel.size, left_half.take()) {
            (Size::Half, None) => {
                left_half = Some((y, page.panel(panel, half)));
                y
            }
            (Size::Half, Some((top, end))) => {
                let left = MARGIN + half.room + GAP;
                page.panel(panel, Place { left, top: top + GAP, ..half }).max(end)
            }
            (size, before) => {
                let top = before.map_or(y, |(_, end)| end) + GAP;
                let strip = |p: &Panel| p.size == Size::Strip && p.x == panel.x;
                let silent = size == Size::Strip && chart.panels.get(i + 1).is_some_and(strip);
                let least = if size == Size::Strip { gutter } else { 0.0 };
                page.panel(panel, Place { top, least, silent, ..whole })
            }
        };
    }
    y = left_half.map_or(y, |(_, end)| end);
    if !chart.footer.is_empty() {
        y += 12.0;
        page.line(&[(MARGIN, y), (WIDTH - MARGIN, y)], palette.grid, 1.0);
        y = page.lines(&chart.footer, (MARGIN, y + 5.0), SMALL, palette.dim, 6);
    }
    Drawing { width: WIDTH, height: (y + 12.0).ceil(), paper: palette.paper, shapes: page.shapes }
}

/// Place of a panel.
#[derive(Clone, Copy)]
struct Place {
    left: f64,
    top: f64,
    room: f64,
    /// Room left of its plot, at least.
    least: f64,
    /// True if the panel has a legend of its own.
    own: bool,
    /// The panel below says what its x axis says.
    silent: bool,
}

/// An entry of a legend.
#[derive(Clone, PartialEq)]
struct Entry {
    name: String,
    colour: Colour,
    dashed: bool,
    swatch: Swatch,
}

#[derive(Clone, Copy, PartialEq)]
enum Swatch {
    Line,
    Dot,
    Block,
}

fn entries(panel: &Panel) -> impl Iterator<Item = Entry> + '_ {
    panel.series.iter().filter(|s| !s.name.is_empty()).map(|s| Entry {
        name: s.name.clone(),
        colour: s.colour,
        dashed: dashed(s),
        swatch: match s.shape {
            Shape::Line(_) | Shape::Step(_) => Swatch::Line,
            Shape::Points(_) => Swatch::Dot,
            Shape::Band(_) | Shape::Bars(_) => Swatch::Block,
        },
    })
}

/// The legend that holds for all panels; `None`: a name or colour stands for different things in
/// them.
fn shared_legend(panels: &[Panel]) -> Option<Vec<Entry>> {
    let mut all: Vec<Entry> = Vec::new();
    for entry in panels.iter().flat_map(entries) {
        let look = |e: &Entry| (e.colour, e.dashed);
        match all.iter().find(|e| e.name == entry.name || look(e) == look(&entry)) {
            Some(e) if e.name == entry.name && look(e) == look(&entry) => {}
            Some(_) => return None,
            None => all.push(entry),
        }
    }
    Some(all)
}

/// The legend of one panel, each entry once.
fn own_legend(panel: &Panel) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for entry in entries(panel) {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

impl Page {
    /// Entries beside each other, in as many rows as it takes; where they end.
    fn legend(&mut self, all: &[Entry], (left, top): (f64, f64), room: f64) -> f64 {
        let (mut x, mut y) = (left, top);
        let row = TEXT * 1.5;
        for entry in all {
            let name = cut(&entry.name, TEXT, room - SWATCH - 6.0);
            let wide = SWATCH + 6.0 + width(&name, TEXT);
            if x > left && x + wide > left + room {
                (x, y) = (left, y + row);
            }
            let middle = y + row / 2.0;
            let colour = self.palette.series(entry.colour);
            match entry.swatch {
                Swatch::Line => {
                    let stroke = Stroke { colour, width: 2.5, dash: entry.dashed };
                    self.path(vec![(x, middle), (x + SWATCH, middle)], stroke);
                }
                Swatch::Dot => {
                    let at = (x + SWATCH / 2.0, middle);
                    self.shapes.push(Draw::Dot { at, radius: 4.0, fill: colour });
                }
                Swatch::Block => self.block((x, middle - 5.0), (SWATCH, 10.0), colour),
            }
            let at = (x + SWATCH + 6.0, middle + TEXT * 0.36);
            self.text(at, Anchor::Start, TEXT, self.palette.ink, &name);
            x += wide + 16.0;
        }
        if all.is_empty() { top } else { y + row }
    }

    /// A panel; where it ends.
    fn panel(&mut self, panel: &Panel, place: Place) -> f64 {
        let Place { left, room, .. } = place;
        let mut y = self.heading(panel, (left, place.top), room);
        if place.own {
            y = self.legend(&own_legend(panel), (left, y), room);
        }
        let plot = Plot::of(panel, (left, y + 4.0), room, place.least);
        y = self.plot(&plot, panel, place.silent);
        if let Some(heat) = &panel.heat {
            y = self.heat_legend(heat, (plot.left, y + 4.0), plot.width);
        }
        y = self.keys(&panel.keys, (left, y + 4.0), room);
        for note in &panel.notes {
            y = self.lines_within(note, (left, y + 2.0), room, SMALL, self.palette.dim, 4);
        }
        y
    }

    /// Draws a panel's title, and behind it, or below, the unit of y; returns where that ends.
    fn heading(&mut self, panel: &Panel, (left, top): (f64, f64), room: f64) -> f64 {
        let unit = said(&panel.y.label, &panel.y.unit);
        let title = wrap(&panel.title, HEADING, room, 2);
        let mut y = top;
        for line in &title {
            self.text((left, y + HEADING), Anchor::Start, HEADING, self.palette.ink, line);
            y += HEADING * LEADING;
        }
        let end = title.last().map_or(0.0, |t| width(t, HEADING)) + 10.0;
        if unit.is_empty() || matches!(panel.y.kind, AxisKind::Names(_)) && panel.heat.is_none() {
            return y + 2.0;
        }
        let beside = panel.size != Size::Half && !title.is_empty();
        if beside && end + width(&unit, SMALL) <= room {
            let at = (left + end, y - HEADING * (LEADING - 1.0));
            self.text(at, Anchor::Start, SMALL, self.palette.dim, &unit);
            return y + 2.0;
        }
        self.lines_within(&unit, (left, y), room, SMALL, self.palette.dim, 2) + 2.0
    }

    /// Draws the list of what labels stand for, in two columns if they fit; returns where it ends.
    fn keys(&mut self, keys: &[(String, String)], (left, top): (f64, f64), room: f64) -> f64 {
        let mark = keys.iter().map(|k| width(&k.0, TEXT)).fold(0.0, f64::max) + 8.0;
        let widest = keys.iter().map(|k| width(&k.1, TEXT)).fold(0.0, f64::max);
        let columns = if mark + widest + 16.0 <= room / 2.0 { 2 } else { 1 };
        let rows = keys.len().div_ceil(columns);
        for (i, (label, name)) in keys.iter().enumerate() {
            let x = left + (i / rows) as f64 * room / 2.0;
            let y = top + TEXT * LEADING * (i % rows) as f64 + TEXT;
            self.text((x, y), Anchor::Start, TEXT, self.palette.ink, label);
            let name = cut(name, TEXT, room / columns as f64 - mark);
            self.text((x + mark, y), Anchor::Start, TEXT, self.palette.dim, &name);
        }
        top + TEXT * LEADING * rows as f64
    }
}
