//! Blocks as Markdown, as GitHub and most wikis show it.
//!
//! ```text
//! title, heading, rule         #, ##, ###
//! text behind a head           a list entry, or a sentence
//! table, bars, shares, beside  a table of pipes
//! command, plot, drawn lines   a fenced block, whose fence is longer than any in it
//! ```
//!
//! Names may be anything: whatever means something in Markdown or HTML is escaped, and what steers a terminal is "?".

use super::beside::Beside;
use super::block::{Block, Doc};
use super::line::{Ink, Line, Table, printable};
use super::parts::{Part, Parts};
use super::shares::Shares;

/// Characters that a full bar takes.
const BAR: usize = 20;
/// Columns of a plot.
const PLOT: usize = 80;

impl Doc {
    /// The report as Markdown; it ends in a newline unless it is empty.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for part in Parts::of(&self.blocks) {
            let text = match part {
                Part::List(entries) => entries.iter().map(|entry| item(entry)).collect(),
                Part::Drawn(lines) => fenced("text", lines.iter().map(|line| plain(line))),
                Part::Commands(all) => commands(&all),
                Part::One(block) => one(block),
            };
            if text.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&text);
        }
        out
    }
}

/// A block that stands alone.
fn one(block: &Block) -> String {
    match block {
        Block::Blank => String::new(),
        Block::Title { name, rest } => format!("# {}{}\n", escaped(name), escaped(rest)),
        Block::Heading { title, aside } => format!("## {}{}\n", escaped(title), escaped(aside)),
        Block::Rule(title) => format!("### {}\n", escaped(title)),
        Block::Line(line) => sentence(line),
        Block::Listing(lines) => {
            fenced("text", lines.iter().map(|line| line.chars().map(printable).collect()))
        }
        Block::Text { head, ink, text } => match head.trim() {
            "" => inked(*ink, text) + "\n",
            head => format!("**{}** {}\n", escaped(head), inked(*ink, text)),
        },
        Block::Note(text) => format!("> **Note:** {}\n", escaped(text)),
        Block::Caution(text) => format!("> **Caution:** {}\n", escaped(text)),
        Block::Command { .. } => commands(&[block]),
        Block::Bars { rows, .. } => bars(rows),
        Block::Table { table, .. } => plain_table(table),
        Block::Beside(beside) => side_by_side(beside),
        Block::Shares(shares) => all_shares(shares),
        Block::Plot(plot) => fenced("text", plot.lines(PLOT).iter().map(plain)),
    }
}

/// An entry of a list.
fn item(block: &Block) -> String {
    let Block::Text { head, ink, text } = block else { return String::new() };
    match head.trim() {
        "" => format!("- {}\n", inked(*ink, text)),
        head => format!("- **{}** {}\n", escaped(head), inked(*ink, text)),
    }
}

/// Returns the text as it looks in its ink.
fn inked(ink: Ink, text: &str) -> String {
    let text = escaped(text);
    match ink {
        Ink::Strong | Ink::Title if !text.is_empty() => format!("**{text}**"),
        _ => text,
    }
}

/// A line of pieces, as a sentence.
fn sentence(line: &Line) -> String {
    let text: String = line.0.iter().map(|(ink, text)| inked(*ink, text)).collect();
    text.trim().to_string() + "\n"
}

/// The text of a line as it is, for a fenced block.
fn plain(line: &Line) -> String {
    let text: String = line.0.iter().map(|(_, text)| text.as_str()).collect();
    text.chars().map(printable).collect::<String>().trim_end().to_string()
}

fn commands(all: &[&Block]) -> String {
    let mut out = String::new();
    let mut lines = Vec::new();
    for block in all {
        let Block::Command { head, words, .. } = block else { continue };
        let head = head.trim();
        if !head.is_empty() {
            if !lines.is_empty() {
                out += &(fenced("sh", lines.drain(..)) + "\n");
            }
            out += &format!("{}\n\n", escaped(head));
        }
        lines.push(words.join(" ").chars().map(printable).collect::<String>());
    }
    out + &fenced("sh", lines.into_iter())
}

/// A block in which nothing means anything.
fn fenced(language: &str, lines: impl Iterator<Item = String>) -> String {
    let text = lines.collect::<Vec<_>>().join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// A table: the first column flush left, the others right.
fn table<'a>(head: &[String], rows: impl Iterator<Item = Vec<String>> + 'a) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = |(i, _): (usize, &String)| if i == 0 { ":--" } else { "--:" }.to_string();
    let rule: Vec<String> = head.iter().enumerate().map(rule).collect();
    row(head) + &row(&rule) + &rows.map(|cells| row(&cells)).collect::<String>()
}

fn cells(all: &[String]) -> Vec<String> {
    all.iter().map(|cell| escaped(cell)).collect()
}

fn plain_table(of: &Table) -> String {
    let bold = |row: &super::line::Row, text: String| match row.ink {
        Some(Ink::Bad | Ink::Warn | Ink::Strong) if !text.is_empty() => format!("**{text}**"),
        _ => text,
    };
    let rows = of.rows.iter().map(|row| {
        let mut all = cells(&row.cells);
        if let Some(first) = all.first_mut() {
            *first = bold(row, std::mem::take(first));
        }
        all.resize(of.head.len().max(all.len()), String::new());
        all
    });
    table(&cells(&of.head), rows)
}

/// A bar of this share of the longest one.
fn bar(share: f64) -> String {
    "▇".repeat((share.clamp(0.0, 1.0) * BAR as f64).round() as usize)
}

fn bars(rows: &[(String, f64, String)]) -> String {
    let top = rows.iter().map(|r| r.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let share = |v: f64| if top > 0.0 && v.is_finite() { v / top } else { 0.0 };
    let row = |(name, value, text): &(String, f64, String)| {
        vec![escaped(name), escaped(text), bar(share(*value))]
    };
    let head = [String::new(), String::new(), String::new()];
    bars_last(&table(&head, rows.iter().map(row)))
}

/// A table whose last column has bars, which begin on the left.
fn bars_last(table: &str) -> String {
    table.replacen("| --: |\n", "| :-- |\n", 1)
}

fn side_by_side(of: &Beside) -> String {
    let mut head = vec![String::new()];
    head.extend(of.heads.iter().map(|h| escaped(h)));
    let row = |(i, label): (usize, &String)| {
        let cell = |column: &Vec<super::beside::Cell>| match column.get(i) {
            Some(c) if c.difference.is_empty() => escaped(&c.value),
            Some(c) => format!("{} ({})", escaped(&c.value), escaped(&c.difference)),
            None => String::new(),
        };
        std::iter::once(escaped(label)).chain(of.cells.iter().map(cell)).collect()
    };
    table(&head, of.labels.iter().enumerate().map(row))
}

fn all_shares(of: &Shares) -> String {
    let (value, percent, more) = &of.heads;
    let mut head = vec![String::new(), escaped(value), escaped(percent)];
    head.extend(more.iter().map(|h| escaped(h)));
    head.push(String::new());
    let top = of.top();
    let row = |r: &super::shares::Share| {
        let mut all = vec![escaped(&r.label), escaped(&r.value), escaped(&r.percent)];
        all.extend(r.more.iter().map(|m| escaped(m)));
        all.push(bar(if top > 0.0 { r.part / top } else { 0.0 }));
        all
    };
    bars_last(&table(&head, of.rows.iter().map(row)))
}

/// Characters that mean something wherever they stand.
const MEANS_SOMETHING: [char; 13] =
    ['\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '&', '$', '@'];

/// Returns the text so that nothing in it means anything in Markdown, or in the HTML that may stand there.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let all: Vec<char> = text.trim().chars().map(printable).collect();
    for (i, &c) in all.iter().enumerate() {
        let begins = i == 0
            && match c {
                // No list begins with a number that has a sign.
                '-' | '+' => !all.get(1).is_some_and(char::is_ascii_digit),
                '#' | '=' => true,
                _ => false,
            };
        if begins || MEANS_SOMETHING.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    // A number with a dot at the begin of a line would be a list's.
    let digits = out.chars().take_while(char::is_ascii_digit).count();
    let dot = matches!(out[digits..].chars().next(), Some('.' | ')'));
    if digits > 0 && dot && out[digits + 1..].chars().next().is_none_or(char::is_whitespace) {
        out.insert(digits, '\\');
    }
    let (before, behind) = (text.starts_with(' '), text.len() > 1 && text.ends_with(' '));
    match (before && !out.is_empty(), behind && !out.is_empty()) {
        (true, true) => format!(" {out} "),
        (true, false) => format!(" {out}"),
        (false, true) => format!("{out} "),
        _ => out,
    }
}
