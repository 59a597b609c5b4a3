//! Blocks as text for a terminal: every line that a report makes goes through here.
//!
//! A line is a list of pieces, each text in an [`Ink`]. They are made safe and fitting in one place:
//!
//! ```text
//! control characters (a task may be called anything)  ->  "?"
//! no Unicode on this terminal                         ->  nearest ASCII
//! longer than the terminal is wide                    ->  cut, "…" last
//! colour wanted                                       ->  anstyle codes around each piece
//! ```
//!
//! Left out: bidirectional text.

use super::beside::{Beside, Cell};
use super::block::{Block, Doc, Page};
use super::line::{Ink, Line, Table, ascii, cut, name_lines, pad, printable, width, wrap};
use super::shares::Shares;
use crate::text::Style;
use anstyle::AnsiColor;

impl Page<'_> {
    /// The finished report.
    pub(crate) fn finish(self) -> Doc {
        let text = render(&self.blocks, self.style);
        Doc { blocks: self.blocks, text }
    }
}

impl Doc {
    /// The report as text in this style. What was chosen by the width of the terminal that it was made for stays chosen.
    pub fn text(&self, style: &Style) -> String {
        render(&self.blocks, style)
    }
}

fn render(blocks: &[Block], style: &Style) -> String {
    let mut terminal = Terminal { style, out: String::new() };
    blocks.iter().for_each(|block| terminal.block(block));
    terminal.out
}

/// The look of a piece in this ink.
fn look(ink: Ink) -> anstyle::Style {
    let plain = anstyle::Style::new();
    let colour = |c: AnsiColor| plain.fg_color(Some(c.into()));
    match ink {
        Ink::Plain => plain,
        Ink::Strong | Ink::Title => plain.bold(),
        Ink::Dim => colour(AnsiColor::BrightBlack),
        Ink::Curve => colour(AnsiColor::Cyan),
        Ink::Good => colour(AnsiColor::Green),
        Ink::Bad => colour(AnsiColor::Red),
        Ink::Warn => colour(AnsiColor::Yellow),
    }
}

/// The text so far, and how it is to look.
struct Terminal<'a> {
    style: &'a Style,
    out: String,
}

impl Terminal<'_> {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Blank => self.blank(),
            Block::Title { name, rest } if rest.is_empty() => self.hanging("", Ink::Title, name),
            Block::Title { name, rest } => self.title(name, rest),
            Block::Heading { title, aside } => {
                let line = Line::new().ink(Ink::Title, title);
                self.line(if aside.is_empty() { line } else { line.ink(Ink::Dim, aside) });
            }
            Block::Rule(title) => self.rule(title),
            Block::Line(line) => self.line(line.clone()),
            Block::Listing(lines) => lines.iter().for_each(|l| self.line(Line::new().plain(l))),
            Block::Text { head, ink, text } => self.hanging(head, *ink, text),
            Block::Note(text) => self.hanging("note: ", Ink::Dim, text),
            Block::Caution(text) => self.hanging("caution: ", Ink::Warn, text),
            Block::Command { head, ink, words } => self.command(head, *ink, words),
            Block::Bars { indent, ink, rows } => self.bars(*indent, *ink, rows),
            Block::Table { indent, table } => self.table(*indent, table),
            Block::Beside(beside) => self.beside(beside),
            Block::Shares(shares) => self.shares(shares),
            Block::Plot(plot) => plot.lines(self.width()).into_iter().for_each(|l| self.line(l)),
        }
    }

    /// Columns to use: the terminal's, within what can be laid out.
    fn width(&self) -> usize {
        self.style.columns()
    }

    fn title(&mut self, name: &str, rest: &str) {
        if name.chars().count() + rest.chars().count() <= self.width() {
            self.line(Line::new().ink(Ink::Title, name).ink(Ink::Dim, rest));
        } else {
            self.hanging("", Ink::Title, &format!("{name}{rest}"));
        }
    }

    /// Adds a line, made safe and fitting; spaces at its end are dropped.
    fn line(&mut self, line: Line) {
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
            let style = look(ink);
            if self.style.color && ink != Ink::Plain && !text.trim().is_empty() {
                self.out.push_str(&format!("{style}{text}{style:#}"));
            } else {
                self.out.push_str(&text);
            }
        }
        self.out.push('\n');
    }

    /// An empty line, but never two and never the first.
    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Writes text broken at spaces behind `head`, which stands in the first line only.
    fn hanging(&mut self, head: &str, ink: Ink, text: &str) {
        let indent = width(head);
        for (i, part) in wrap(text, self.width().saturating_sub(indent)).into_iter().enumerate() {
            let head = if i == 0 { head.to_string() } else { " ".repeat(indent) };
            self.line(Line::new().plain(head).ink(ink, part));
        }
    }

    /// A command on as many lines as it needs, which a shell takes as one; `words` are not parted, and none is cut: it is to be pasted.
    fn command(&mut self, head: &str, ink: Ink, words: &[String]) {
        let room = self.width().saturating_sub(width(head) + " \\".len());
        let mut lines = vec![String::new()];
        for word in words {
            let line = lines.last_mut().expect("starts with one line");
            match line.trim().is_empty() {
                true => line.push_str(word),
                false if width(line) + 1 + width(word) > room => lines.push(format!("  {word}")),
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

    /// `──── title ────` over the whole width, as the series heads its bars.
    fn rule(&mut self, title: &str) {
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
    fn bars(&mut self, indent: usize, ink: Ink, rows: &[(String, f64, String)]) {
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
    fn table(&mut self, indent: usize, table: &Table) {
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
    fn shown(&self, text: &str) -> String {
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

/// Columns with differences.
impl Terminal<'_> {
    /// A table of as many columns as fit beside the first; the others continue below, with the first again.
    fn beside(&mut self, table: &Beside) {
        let Beside { heads, labels, cells } = table;
        let widths: Vec<(usize, usize)> =
            cells.iter().zip(heads).map(|(c, h)| self.column_width(c, h)).collect();
        let columns_of = |c: usize| widths[c].0 + widths[c].1;
        let others = (1..cells.len()).map(columns_of).max().unwrap_or(0);
        let label = labels.iter().map(|l| width(l)).max().unwrap_or(0);
        let label = label.min(self.width().saturating_sub(columns_of(0) + others + 4).max(6));
        let mut next = 1;
        loop {
            let mut shown = vec![0];
            let mut used = label + 2 + columns_of(0);
            while next < cells.len()
                && (shown.len() == 1 || used + 2 + columns_of(next) <= self.width())
            {
                used += 2 + columns_of(next);
                shown.push(next);
                next += 1;
            }
            self.beside_part(table, &widths, label, &shown);
            if next >= cells.len() {
                break;
            }
            self.blank();
        }
    }

    /// Columns for the value and for the difference with its gap.
    fn column_width(&self, cells: &[Cell], head: &str) -> (usize, usize) {
        let value = cells.iter().map(|c| width(&self.shown(&c.value))).max().unwrap_or(0);
        let difference = cells.iter().map(|c| width(&c.difference)).max().unwrap_or(0);
        let difference = if difference > 0 { difference + 1 } else { 0 };
        (value.max(width(&self.shown(head)).saturating_sub(difference)), difference)
    }

    fn beside_part(
        &mut self,
        Beside { heads, labels, cells }: &Beside,
        widths: &[(usize, usize)],
        label: usize,
        shown: &[usize],
    ) {
        let mut head = Line::new().plain(" ".repeat(label));
        for &c in shown {
            let text = pad(&self.shown(&heads[c]), widths[c].0 + widths[c].1, true);
            head = head.plain("  ").ink(Ink::Title, text);
        }
        self.line(head);
        for (row, name) in labels.iter().enumerate() {
            let lines = name_lines(&self.shown(name), label);
            let mut line = Line::new().plain(pad(&lines[0], label, false));
            for &c in shown {
                let cell = &cells[c][row];
                line = line.plain("  ").plain(pad(&self.shown(&cell.value), widths[c].0, true));
                line = line.ink(cell.ink, pad(&cell.difference, widths[c].1, true));
            }
            self.line(line);
            lines[1..].iter().for_each(|rest| self.line(Line::new().plain(rest.as_str())));
        }
    }

    fn shares(&mut self, shares: &Shares) {
        let (value, percent, right) = &shares.heads;
        let label = shares.rows.iter().map(|r| width(&r.label)).max().unwrap_or(0);
        let left = label + 1 + Shares::FIGURE + 6 + 2;
        let bar = self.width().saturating_sub(left + right.len() * (Shares::FIGURE + 1));
        let bar = bar.clamp(1, Shares::BAR.1);
        let head = " ".repeat(label + 1)
            + &pad(value, Shares::FIGURE, true)
            + &pad(percent, 6, true)
            + "  "
            + &" ".repeat(bar);
        let heads: String = right.iter().map(|c| pad(c, Shares::FIGURE + 1, true)).collect();
        self.line(Line::new().ink(Ink::Dim, head + &heads));
        let top = shares.top();
        for row in &shares.rows {
            // What saves time has no bar: a length has no sign.
            let share = if top > 0.0 { row.part.max(0.0) / top } else { 0.0 };
            let drawn = "▇".repeat((share * bar as f64).round() as usize);
            let text = pad(&row.label, label + 1, false)
                + &pad(&row.value, Shares::FIGURE, true)
                + &pad(&row.percent, 6, true)
                + "  ";
            let cells: String = row.more.iter().map(|c| pad(c, Shares::FIGURE + 1, true)).collect();
            self.line(Line::new().plain(text).ink(row.ink, pad(&drawn, bar, false)).plain(cells));
        }
    }
}

/// Columns that names in a table keep, however narrow the terminal.
const NAMES: usize = 8;

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
        assert_eq!(page.finish().as_str(), format!("Why: run \\\n       {}\n", "x".repeat(60)));
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut page = Page::new(&Style { color: true, ..PLAIN });
        page.line(Line::new().plain("a\x1b[2Jb\nc\u{9b}d"));
        assert_eq!(page.finish().as_str(), "a?[2Jb?c?d\n");
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
        page.table(0, table);
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
