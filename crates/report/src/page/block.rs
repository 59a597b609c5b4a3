//! A report as a value: blocks in their order, of which each rendering makes what it can show.
//!
//! A block says what a thing is (a heading with its aside, a sentence, a table, bars, a plot, a command), not how wide it is. What
//! only a terminal can show is in the blocks, too: an empty line, a line that is drawn with characters.

use super::beside::Beside;
use super::line::{Ink, Line, Table};
use super::plot::Plot;
use super::shares::Shares;
use crate::text::Style;
use risetime_analysis::RunResult;
use risetime_analysis::caution::{Caution, Figure};

/// A part of a report.
pub(crate) enum Block {
    /// Some room; never twice, and never first.
    Blank,
    /// Title of the report: a name, and what else it is about.
    Title { name: String, rest: String },
    /// Heading of a part, and an aside.
    Heading { title: String, aside: String },
    /// Heading over the whole width.
    Rule(String),
    /// A line as it is, neither wrapped nor changed.
    Line(Line),
    /// Lines of a list without end, as they are.
    Listing(Vec<String>),
    /// Text that is broken at spaces, behind a head that stands in its first line.
    Text { head: String, ink: Ink, text: String },
    /// A remark on the figures.
    Note(String),
    /// A warning about figures that are weak.
    Caution(String),
    /// A command, word by word, behind a head.
    Command { head: String, ink: Ink, words: Vec<String> },
    /// Bars with their values, all on one scale.
    Bars { indent: usize, ink: Ink, rows: Vec<(String, f64, String)> },
    /// A table of names and figures.
    Table { indent: usize, table: Table },
    /// Columns with the difference of each to the first.
    Beside(Beside),
    /// Shares of a whole, with bars.
    Shares(Shares),
    /// Curves over time.
    Plot(Plot),
}

/// A report: its blocks, and the text that they are on the terminal for which it was made.
pub struct Doc {
    pub(crate) blocks: Vec<Block>,
    pub(super) text: String,
}

impl Doc {
    /// The report as text for a terminal; it ends in a newline unless it is empty.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The report's title; empty: it has none.
    pub fn title(&self) -> String {
        let title = self.blocks.iter().find_map(|block| match block {
            Block::Title { name, rest } => Some(format!("{name}{rest}")),
            _ => None,
        });
        title.unwrap_or_default()
    }
}

/// The text for a terminal.
impl std::ops::Deref for Doc {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

/// The text for a terminal.
impl std::fmt::Debug for Doc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

impl From<Doc> for String {
    fn from(doc: Doc) -> String {
        doc.text
    }
}

impl std::fmt::Display for Doc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A report under construction.
pub(crate) struct Page<'a> {
    pub(crate) style: &'a Style,
    pub(super) blocks: Vec<Block>,
}

impl<'a> Page<'a> {
    /// An empty report. `style`: the terminal on which it is to fit where the columns of a table are chosen.
    pub(crate) fn new(style: &'a Style) -> Page<'a> {
        Page { style, blocks: Vec::new() }
    }

    /// Columns to use: the terminal's, within what can be laid out.
    pub(crate) fn width(&self) -> usize {
        self.style.columns()
    }

    /// Adds a block.
    pub(crate) fn put(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Adds the title: the name of what it is about, and the rest.
    pub(crate) fn title(&mut self, name: impl Into<String>, rest: impl Into<String>) {
        self.put(Block::Title { name: name.into(), rest: rest.into() });
    }

    /// Adds the heading of a part, and an aside behind it.
    pub(crate) fn heading(&mut self, title: impl Into<String>, aside: impl Into<String>) {
        self.put(Block::Heading { title: title.into(), aside: aside.into() });
    }

    /// Adds a line, made safe and fitting; spaces at its end are dropped.
    pub(crate) fn line(&mut self, line: Line) {
        self.put(Block::Line(line));
    }

    /// An empty line, but never two and never the first.
    pub(crate) fn blank(&mut self) {
        self.put(Block::Blank);
    }

    /// Writes text broken at spaces, `indent` columns from the left.
    pub(crate) fn paragraph(&mut self, indent: usize, ink: Ink, text: &str) {
        if !text.is_empty() {
            self.hanging(&" ".repeat(indent), ink, text);
        }
    }

    /// Writes text broken at spaces behind `head`, which stands in the first line only.
    pub(crate) fn hanging(&mut self, head: &str, ink: Ink, text: &str) {
        self.put(Block::Text { head: head.into(), ink, text: text.into() });
    }

    /// Writes a remark on the figures.
    pub(crate) fn note(&mut self, text: &str) {
        self.put(Block::Note(text.into()));
    }

    /// A command on as many lines as it needs, which a shell takes as one; `words` are not parted, and none is cut: it is to be pasted.
    pub(crate) fn command(
        &mut self,
        head: &str,
        ink: Ink,
        words: impl IntoIterator<Item = String>,
    ) {
        let words = words.into_iter().collect();
        self.put(Block::Command { head: head.into(), ink, words });
    }

    /// The weakest of the figures above, in two lines at most; JSON has all of them.
    pub(crate) fn cautions(&mut self, cautions: &[Caution]) {
        if let Some(Caution { figure, typical, why, .. }) = cautions.first() {
            self.put(Block::Caution(format!("{figure}: {typical}; {why}")));
        }
    }

    /// Writes the cautions about speed, on a page of runs that shows neither percentiles nor jobs.
    pub(crate) fn cautions_of_speed(&mut self, first: Option<&RunResult>) {
        let all = first.map_or(&[][..], |run| &run.cautions);
        let speed: Vec<_> = all.iter().filter(|c| c.of.contains(&Figure::Speed)).copied().collect();
        self.cautions(&speed);
    }

    /// `──── title ────` over the whole width, as the series heads its bars.
    pub(crate) fn rule(&mut self, title: &str) {
        self.put(Block::Rule(title.into()));
    }

    /// Bars with their values, all on one scale. `indent` columns stay free.
    pub(crate) fn bars(&mut self, indent: usize, ink: Ink, rows: &[(String, f64, String)]) {
        self.put(Block::Bars { indent, ink, rows: rows.to_vec() });
    }

    /// Adds the table; see [`Table`].
    pub(crate) fn table(&mut self, indent: usize, table: Table) {
        self.put(Block::Table { indent, table });
    }
}
