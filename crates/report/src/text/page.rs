//! A page of terminal text: every line that a report makes goes through here.
//!
//! A line is a list of pieces, each text in an [`Ink`]. The page makes them safe and fitting
//! in one place:
//!
//! ```text
//! control characters (a task may be called anything)  ->  "?"
//! no Unicode on this terminal                         ->  nearest ASCII
//! longer than the terminal is wide                    ->  cut, "…" last
//! colour wanted                                       ->  anstyle codes around each piece
//! ```
//!
//! Left out: bidirectional text, and any layout above the line (see `plot` and `Table`).

use super::Style;
use anstyle::AnsiColor;
use risetime_analysis::RunResult;
use risetime_analysis::caution::{Caution, Figure};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Role of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
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

impl Ink {
    fn style(self) -> anstyle::Style {
        let plain = anstyle::Style::new();
        let colour = |c: AnsiColor| plain.fg_color(Some(c.into()));
        match self {
            Ink::Plain => plain,
            Ink::Strong => plain.bold(),
            Ink::Title => plain.bold(),
            Ink::Dim => colour(AnsiColor::BrightBlack),
            Ink::Curve => colour(AnsiColor::Cyan),
            Ink::Good => colour(AnsiColor::Green),
            Ink::Bad => colour(AnsiColor::Red),
            Ink::Warn => colour(AnsiColor::Yellow),
        }
    }
}

/// One line under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(Ink, String)>);

impl Line {
    pub(super) fn new() -> Line {
        Line::default()
    }
    /// The line with `text` in `ink` after it.
    pub(super) fn ink(mut self, ink: Ink, text: impl Into<String>) -> Line {
        self.0.push((ink, text.into()));
        self
    }
    /// The line with ordinary `text` after it.
    pub(super) fn plain(self, text: impl Into<String>) -> Line {
        self.ink(Ink::Plain, text)
    }
    /// Columns it takes.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, t)| width(t)).sum()
    }
}

/// Columns that `text` takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    match text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        true => text.len(),
        false => text.width(),
    }
}

/// `text` in exactly `columns` columns: filled up on the right (or left), or cut.
pub(super) fn pad(text: &str, columns: usize, right: bool) -> String {
    let text = cut(text, columns);
    let fill = " ".repeat(columns - width(&text));
    if right { fill + &text } else { text + &fill }
}

/// `text` in at most `columns` columns; the last is "…" if something was cut.
pub(super) fn cut(text: &str, columns: usize) -> String {
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
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
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
pub(super) fn name_lines(name: &str, columns: usize) -> Vec<String> {
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
fn printable(c: char) -> char {
    match c {
        '\u{a0}' => ' ',
        // Marks that turn the direction of writing could disguise a name.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '?',
        c if c.is_control() => '?',
        c => c,
    }
}

/// The nearest ASCII of what reports print.
pub(super) fn ascii(text: &str) -> String {
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

/// The text so far, and how it is to look.
pub(super) struct Page<'a> {
    pub(super) style: &'a Style,
    out: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(style: &'a Style) -> Page<'a> {
        Page { style, out: String::new() }
    }

    /// The finished text; ends in a newline unless it is empty.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Columns to use: the terminal's, within what can be laid out.
    pub(super) fn width(&self) -> usize {
        self.style.columns()
    }

    /// Adds a line, made safe and fitting; spaces at its end are dropped.
    pub(super) fn line(&mut self, line: Line) {
        let pieces = self.safe(line);
        let mut room = self.width();
        let mut kept: Vec<(Ink, String)> = Vec::new();
        let total: usize = pieces.iter().map(|(_, t)| width(t)).sum();
        let mut left = total;
        for (ink, text) in pieces {
            let w = width(&text);
            if left <= room || w < room {
                left -= w;
                room -= w;
                kept.push((ink, text));
                continue;
            }
            let short = cut(&(text + " "), room);
            kept.push((ink, if self.style.unicode { short } else { ascii(&short) }));
            break;
        }
        self.put(kept);
    }

    /// The pieces of a line without what a terminal would obey.
    fn safe(&self, line: Line) -> Vec<(Ink, String)> {
        let clean = |(ink, text): (Ink, String)| {
            let clean: String = text.chars().map(printable).collect();
            (ink, if self.style.unicode { clean } else { ascii(&clean) })
        };
        line.0.into_iter().map(clean).collect()
    }

    fn put(&mut self, mut kept: Vec<(Ink, String)>) {
        while let Some((_, last)) = kept.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            kept.pop();
        }
        for (ink, text) in kept {
            let style = ink.style();
            if self.style.color && ink != Ink::Plain && !text.trim().is_empty() {
                self.out.push_str(&format!("{style}{text}{style:#}"));
            } else {
                self.out.push_str(&text);
            }
        }
        self.out.push('\n');
    }

    /// An empty line, but never two and never the first.
    pub(super) fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Writes text broken at spaces, `indent` columns from the left.
    pub(super) fn paragraph(&mut self, indent: usize, ink: Ink, text: &str) {
        if text.is_empty() {
            return;
        }
        self.hanging(&" ".repeat(indent), ink, text);
    }

    /// Writes text broken at spaces behind `head`, which stands in the first line only.
    pub(super) fn hanging(&mut self, head: &str, ink: Ink, text: &str) {
        let indent = width(head);
        for (i, part) in wrap(text, self.width().saturating_sub(indent)).into_iter().enumerate() {
            let head = if i == 0 { head.to_string() } else { " ".repeat(indent) };
            self.line(Line::new().plain(head).ink(ink, part));
        }
    }

    /// A command on as many lines as it needs, which a shell takes as one; `words` are not parted, and none is cut: it is to be pasted.
    pub(super) fn command(
        &mut self,
        head: &str,
        ink: Ink,
        words: impl IntoIterator<Item = String>,
    ) {
        let room = self.width().saturating_sub(width(head) + " \\".len());
        let mut lines = vec![String::new()];
        for word in words {
            let line = lines.last_mut().expect("starts with one line");
            match line.trim().is_empty() {
                true => line.push_str(&word),
                false if width(line) + 1 + width(&word) > room => lines.push(format!("  {word}")),
                false => *line = format!("{line} {word}"),
            }
        }
        let last = lines.len() - 1;
        for (i, line) in lines.into_iter().enumerate() {
            let head = if i == 0 { head.to_string() } else { " ".repeat(width(head)) };
            let more = if i < last { " \\" } else { "" };
            let pieces = self.safe(Line::new().plain(head).ink(ink, line + more));
            self.put(pieces);
        }
    }

    /// The weakest of the figures above, in two lines at most; JSON has all of them.
    pub(super) fn cautions(&mut self, cautions: &[Caution]) {
        if let Some(Caution { figure, typical, why, .. }) = cautions.first() {
            self.hanging("caution: ", Ink::Warn, &format!("{figure}: {typical}; {why}"));
        }
    }

    /// Writes the cautions about speed, on a page of runs that shows neither percentiles nor jobs.
    pub(super) fn cautions_of_speed(&mut self, first: Option<&RunResult>) {
        let all = first.map_or(&[][..], |run| &run.cautions);
        let speed: Vec<_> = all.iter().filter(|c| c.of.contains(&Figure::Speed)).copied().collect();
        self.cautions(&speed);
    }

    /// `──── title ────` over the whole width, as the series heads its bars.
    pub(super) fn rule(&mut self, title: &str) {
        self.blank();
        let all = self.width();
        let title = cut(title, all.saturating_sub(4));
        let dashes = all.saturating_sub(width(&title) + 2);
        let (left, right) = (dashes / 2, dashes - dashes / 2);
        self.line(
            Line::new()
                .ink(Ink::Dim, "─".repeat(left))
                .ink(Ink::Title, format!(" {title} "))
                .ink(Ink::Dim, "─".repeat(right)),
        );
    }

    /// Bars with their values, all on one scale. `indent` columns stay free.
    pub(super) fn bars(&mut self, indent: usize, ink: Ink, rows: &[(String, f64, String)]) {
        let label = rows.iter().map(|r| width(&r.0)).max().unwrap_or(0).min(self.width() / 2);
        let value = rows.iter().map(|r| width(&r.2)).max().unwrap_or(0);
        let room = self.width().saturating_sub(indent + label + value + 2).max(1);
        let top = rows.iter().map(|r| r.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
        for (name, amount, text) in rows {
            let drawn = top > 0.0 && *amount > 0.0 && amount.is_finite();
            let share = if drawn { amount / top } else { 0.0 };
            let mut n = (share * room as f64).round() as usize;
            if n == 0 && share > 0.0 {
                n = 1;
            }
            self.line(
                Line::new()
                    .plain(" ".repeat(indent) + &pad(name, label, false) + " ")
                    .ink(ink, "▇".repeat(n))
                    .plain(if n > 0 { " " } else { "" })
                    .plain(text.as_str()),
            );
        }
    }

    /// Adds the table; see [`Table`].
    pub(super) fn table(&mut self, indent: usize, table: &Table) {
        let columns = table.head.len();
        let mut widths = vec![0; columns];
        for row in std::iter::once(&table.head).chain(table.rows.iter().map(|r| &r.cells)) {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(width(&self.shown(cell)));
            }
        }
        let used = |w: &[usize]| indent + w.iter().sum::<usize>() + 2 * w.len().saturating_sub(1);
        let least = |w: &[usize]| used(w) - w[0] + w[0].min(NAMES);
        while widths.len() > 2 && least(&widths) > self.width() {
            widths.pop();
        }
        let over = used(&widths).saturating_sub(self.width());
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(over).max((*first).min(NAMES));
        }
        if table.head.iter().any(|h| !h.is_empty()) {
            self.table_row(indent, &widths, &table.head, Some(Ink::Dim));
        }
        for row in &table.rows {
            self.table_row(indent, &widths, &row.cells, row.ink);
        }
    }

    /// `text` as this terminal will show it, to lay it out.
    pub(super) fn shown(&self, text: &str) -> String {
        let text: String = text.chars().map(printable).collect();
        if self.style.unicode { text } else { ascii(&text) }
    }

    fn table_row(&mut self, indent: usize, widths: &[usize], cells: &[String], ink: Option<Ink>) {
        let (Some((name, figures)), Some((first, rest))) =
            (cells.split_first(), widths.split_first())
        else {
            return;
        };
        let figures = figures.iter().zip(rest);
        let figures: String =
            figures.map(|(cell, w)| format!("  {}", pad(&self.shown(cell), *w, true))).collect();
        for (i, part) in name_lines(&self.shown(name), *first).iter().enumerate() {
            let figures = if i == 0 { figures.as_str() } else { "" };
            let text = format!("{}{}{figures}", " ".repeat(indent), pad(part, *first, false));
            self.line(Line::new().ink(ink.unwrap_or(Ink::Plain), text));
        }
    }
}

/// Columns that names in a table keep, however narrow the terminal.
const NAMES: usize = 8;

/// A table: names on the left, figures flush right. Where it is too wide, the names go over several lines, then the
/// last columns are left out.
#[derive(Default)]
pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<String>,
    ink: Option<Ink>,
}

impl Table {
    /// A table with these column heads; all empty: no head is printed.
    pub(super) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }
    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.inked(None, cells);
    }
    /// Adds a row in a colour.
    pub(super) fn inked(
        &mut self,
        ink: Option<Ink>,
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) {
        self.rows.push(Row { cells: cells.into_iter().map(Into::into).collect(), ink });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { width: 40, color: false, unicode: true };

    #[test]
    fn lines_are_cut_where_the_terminal_ends() {
        let mut page = Page::new(&PLAIN);
        page.line(Line::new().plain("x".repeat(40)));
        page.line(Line::new().plain("x".repeat(41)));
        page.line(Line::new().plain("漢".repeat(21)));
        page.line(Line::new().plain("x".repeat(40)).plain("y"));
        let out = page.finish();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "x".repeat(40));
        assert_eq!(lines[1], "x".repeat(39) + "…");
        assert_eq!(lines[2], "漢".repeat(19) + "…");
        assert_eq!(lines[3], "x".repeat(39) + "…");
    }

    #[test]
    fn no_word_of_a_command_is_cut() {
        let mut page = Page::new(&PLAIN);
        page.command("Why: ", Ink::Dim, ["run".to_string(), "x".repeat(60)]);
        assert_eq!(page.finish(), format!("Why: run \\\n       {}\n", "x".repeat(60)));
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut page = Page::new(&Style { color: true, ..PLAIN });
        page.line(Line::new().plain("a\x1b[2Jb\nc\u{9b}d"));
        assert_eq!(page.finish(), "a?[2Jb?c?d\n");
    }

    #[test]
    fn wrapping_breaks_words_that_do_not_fit() {
        assert_eq!(wrap("ab cd", 5), ["ab cd"]);
        assert_eq!(wrap("abc def", 5), ["abc", "def"]);
        assert_eq!(wrap("abcdefgh ij", 5), ["abcde", "fgh", "ij"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("漢漢漢 a", 5), ["漢漢", "漢 a"]);
    }

    #[test]
    fn names_too_long_for_a_table_stay_different() {
        let mut page = Page::new(&PLAIN);
        let mut table = Table::new(["", "kernel", "simulated"]);
        for figure in ["p50", "p99"] {
            table.row([format!("thread-of-a-game wakeup {figure} ms"), "1".into(), "2".into()]);
        }
        page.table(0, &table);
        let wanted = [
            "                       kernel  simulated",
            "thread-of-a-game            1          2",
            "  wakeup p50 ms",
        ];
        assert_eq!(page.finish().lines().take(3).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn without_unicode_all_is_ascii() {
        let mut page = Page::new(&Style { unicode: false, ..PLAIN });
        page.rule("≥ 3 µs → é");
        page.bars(0, Ink::Curve, &[("a".into(), 1.0, "1 ms".into())]);
        assert!(page.finish().is_ascii());
    }
}
