//! Pieces of text in their inks, lines of them, tables; and how many columns text takes.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Role of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Ordinary.
    Plain,
    /// The number that matters.
    Strong,
    /// Titles and rules.
    Title,
    /// Axes, units, asides.
    Dim,
    /// The measured curve, and bars.
    Curve,
    /// Curve that another one is compared with.
    Good,
    /// The ink of what was lost.
    Bad,
    /// Worth attention.
    Warn,
}

/// One line under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(pub(crate) Vec<(Ink, String)>);

impl Line {
    pub(crate) fn new() -> Line {
        Line::default()
    }
    /// The line with `text` in `ink` after it.
    pub(crate) fn ink(mut self, ink: Ink, text: impl Into<String>) -> Line {
        self.0.push((ink, text.into()));
        self
    }
    /// The line with ordinary `text` after it.
    pub(crate) fn plain(self, text: impl Into<String>) -> Line {
        self.ink(Ink::Plain, text)
    }
    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, t)| width(t)).sum()
    }
}

/// Columns that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    match text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        true => text.len(),
        false => text.width(),
    }
}

/// `text` in exactly `columns` columns: filled up on the right (or left), or cut.
pub(crate) fn pad(text: &str, columns: usize, right: bool) -> String {
    let text = cut(text, columns);
    let fill = " ".repeat(columns - width(&text));
    if right { fill + &text } else { text + &fill }
}

/// `text` in at most `columns` columns; the last is "…" if something was cut.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > columns {
            break;
        }
        out.push(c);
        used += w;
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// `text` broken at spaces into lines of at most `columns`; longer words are broken too.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(4);
    let mut lines = vec![String::new()];
    for word in text.split([' ', '\n', '\t']).filter(|w| !w.is_empty()) {
        let mut word = word.to_string();
        loop {
            let line = lines.last_mut().expect("starts with one line");
            let gap = usize::from(!line.is_empty());
            if width(line) + gap + width(&word) <= columns {
                line.push_str(&" ".repeat(gap));
                line.push_str(&word);
                break;
            }
            if !line.is_empty() {
                lines.push(String::new());
                continue;
            }
            let at = word
                .char_indices()
                .scan(0, |w, (i, c)| {
                    *w += c.width().unwrap_or(0);
                    Some((i, *w))
                })
                .find(|&(i, w)| i > 0 && w > columns)
                .map_or(word.len(), |(i, _)| i);
            line.push_str(&word[..at]);
            word.drain(..at);
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// A name in lines of `columns`: those after the first are set in. Two names that differ are never shown alike, as they
/// would be if they were cut.
pub(crate) fn name_lines(name: &str, columns: usize) -> Vec<String> {
    if width(name) <= columns {
        return vec![name.to_string()];
    }
    let mut lines = wrap(name, columns.saturating_sub(SET_IN.len()));
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, SET_IN));
    lines
}

/// Indent of the further lines of a name.
const SET_IN: &str = "  ";

/// A character that cannot steer the terminal; a space that held words together is a space.
pub(crate) fn printable(c: char) -> char {
    match c {
        '\u{a0}' => ' ',
        // Marks that turn the direction of writing could disguise a name.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '?',
        c if c.is_control() => '?',
        c => c,
    }
}

/// The nearest ASCII of what reports print.
pub(crate) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push_str(match c {
            ' '..='~' => {
                out.push(c);
                continue;
            }
            '█' | '▇' | '▛' | '▜' | '▙' | '▟' => "#",
            '▘' | '▝' => "'",
            '▀' => "\"",
            '▖' | '▗' => ".",
            '▄' => "_",
            '▌' | '▐' | '│' | '┊' => "|",
            '▞' => "/",
            '▚' => "\\",
            '░' => ":",
            '▒' => "+",
            '▓' => "%",
            '─' | '–' | '—' | '━' | '╌' => "-",
            '┌' | '┐' | '└' | '┘' | '┤' | '┬' | '┼' | '├' => "+",
            '≥' => ">=",
            '→' => "->",
            '·' | '•' => "-",
            '×' => "x",
            'µ' => "u",
            'Δ' => "d",
            '±' => "+-",
            '°' => "o",
            '✓' => "ok",
            '…' => "~",
            '▲' => "^",
            _ => "?",
        });
    }
    out
}

/// A table: names on the left, figures flush right. Where it is too wide, the names go over several lines, then the
/// last columns are left out.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// A row of a table.
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    pub(crate) ink: Option<Ink>,
}

impl Table {
    /// A table with these column heads; all empty: no head is printed.
    pub(crate) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }
    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.inked(None, cells);
    }
    /// Adds a row in a colour.
    pub(crate) fn inked(
        &mut self,
        ink: Option<Ink>,
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) {
        self.rows.push(Row { cells: cells.into_iter().map(Into::into).collect(), ink });
    }
}
