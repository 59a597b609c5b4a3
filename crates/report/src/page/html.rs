//! Blocks as HTML: one page without scripts, which needs nothing beside itself.
//!
//! It is as wide as its reader's screen (tables and plots that are wider scroll by themselves), light or dark as the reader has
//! it, and well-formed as XML, too. Names may be anything: `&`, `<`, `>` and quotes are escaped, and what steers a terminal is
//! "?".

use super::beside::{Beside, Cell};
use super::block::{Block, Doc};
use super::drawing;
use super::line::{Ink, Line, Table, printable};
use super::parts::{Part, Parts};
use super::shares::Shares;

/// The look of a page.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1e21;--paper:#fff;--dim:#5c6370;--line:#d8dce2;--curve:#0b7285;--good:#2b7a0b;\
--bad:#c0261f;--warn:#8a5a00;--soft:#f4f6f8}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#15181c;--dim:#9aa3af;--line:#343a42;--curve:#4fc3d9;\
--good:#7bc96f;--bad:#ff7b72;--warn:#e3b341;--soft:#1e2329}}\
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:62rem;margin:0 auto;padding:1rem}\
h1{font-size:1.35rem;line-height:1.3;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}\
h3{font-size:1rem;margin:1.4rem 0 .3rem;overflow-wrap:anywhere}h1 small,h2 small{font-weight:normal;color:var(--dim)}\
p,li{overflow-wrap:anywhere;margin:.35rem 0}ul{padding-left:1.2rem}section+section{border-top:2px solid var(--line);margin-top:2rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}\
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\
th:first-child{text-align:left;white-space:normal;min-width:7rem;font-weight:normal}thead th{color:var(--dim);vertical-align:bottom}\
table:has(.bar){width:100%;max-width:46rem}td.bar{text-align:left;width:50%;min-width:6rem}td.bar span{display:block;height:.8em;background:currentColor;border-radius:2px}\
td small{margin-left:.4em}pre{overflow-x:auto;background:var(--soft);padding:.7rem;font-size:.82rem;line-height:1.25}\
figure{margin:1rem 0}figcaption{font-weight:600}svg{width:100%;min-width:30rem;height:auto;color:var(--ink)}\
.note,.caution{border-left:4px solid var(--line);background:var(--soft);padding:.4rem .7rem}.caution{border-color:var(--warn)}\
.strong{font-weight:600}.dim{color:var(--dim)}.curve{color:var(--curve)}.good{color:var(--good)}.bad{color:var(--bad)}\
.warn{color:var(--warn)}@media print{pre,.wide{overflow:visible}}";

/// A page of reports, one under the other.
pub fn page(all: &[&Doc]) -> String {
    let title = all.first().map(|doc| doc.title()).unwrap_or_default();
    let title = if title.is_empty() { "Risetime".into() } else { escaped(&title) };
    let sections: String = all.iter().map(|doc| section(doc)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{sections}</main>\n</body>\n</html>\n"
    )
}

impl Doc {
    /// The report as a page of its own.
    pub fn html(&self) -> String {
        page(&[self])
    }
}

fn section(doc: &Doc) -> String {
    let mut out = String::from("<section>\n");
    for part in Parts::of(&doc.blocks) {
        out += &match part {
            Part::List(entries) => {
                let entries: String = entries.iter().map(|entry| item(entry)).collect();
                format!("<ul>\n{entries}</ul>\n")
            }
            Part::Drawn(lines) => {
                let lines: Vec<String> = lines.iter().map(|line| pieces(line)).collect();
                format!("<pre>{}</pre>\n", lines.join("\n"))
            }
            Part::Commands(all) => commands(&all),
            Part::One(block) => one(block),
        };
    }
    out + "</section>\n"
}

/// A block that stands alone.
fn one(block: &Block) -> String {
    match block {
        Block::Blank => String::new(),
        Block::Title { name, rest } => format!("<h1>{}{}</h1>\n", escaped(name), small(rest)),
        Block::Heading { title, aside } => {
            format!("<h2>{}{}</h2>\n", escaped(title), small(aside))
        }
        Block::Rule(title) => format!("<h3>{}</h3>\n", escaped(title)),
        Block::Line(line) => format!("<p>{}</p>\n", pieces(line)),
        Block::Listing(lines) => {
            let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
            format!("<pre>{}</pre>\n", lines.join("\n"))
        }
        Block::Text { ink, text, .. } => format!("<p>{}</p>\n", inked(*ink, text)),
        Block::Note(text) => format!("<p class=\"note\"><b>Note:</b> {}</p>\n", escaped(text)),
        Block::Caution(text) => {
            format!("<p class=\"caution\"><b>Caution:</b> {}</p>\n", escaped(text))
        }
        Block::Command { .. } => commands(&[block]),
        Block::Bars { ink, rows, .. } => bars(*ink, rows),
        Block::Table { table: of, .. } => plain_table(of),
        Block::Beside(of) => side_by_side(of),
        Block::Shares(of) => shares(of),
        Block::Plot(plot) => drawing::figure(plot, &escaped(&plot.title)),
    }
}

/// Returns text that explains what stands before it.
fn small(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<small>{}</small>", escaped(text)) }
}

fn item(block: &Block) -> String {
    let Block::Text { head, ink, text } = block else { return String::new() };
    match head.trim() {
        "" => format!("<li>{}</li>\n", inked(*ink, text)),
        head => format!("<li><b>{}</b> {}</li>\n", escaped(head), inked(*ink, text)),
    }
}

/// The class of an ink; empty: it needs none.
pub(super) fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => "",
        Ink::Strong | Ink::Title => "strong",
        Ink::Dim => "dim",
        Ink::Curve => "curve",
        Ink::Good => "good",
        Ink::Bad => "bad",
        Ink::Warn => "warn",
    }
}

fn inked(ink: Ink, text: &str) -> String {
    match class(ink) {
        "" => escaped(text),
        class => format!("<span class=\"{class}\">{}</span>", escaped(text)),
    }
}

fn pieces(line: &Line) -> String {
    line.0.iter().filter(|p| !p.1.is_empty()).map(|(ink, text)| inked(*ink, text)).collect()
}

fn commands(all: &[&Block]) -> String {
    let mut out = String::new();
    let mut lines: Vec<String> = Vec::new();
    let put = |lines: &mut Vec<String>| match lines.is_empty() {
        true => String::new(),
        false => format!("<pre><code>{}</code></pre>\n", std::mem::take(lines).join("\n")),
    };
    for block in all {
        let Block::Command { head, words, .. } = block else { continue };
        if !head.trim().is_empty() {
            out += &put(&mut lines);
            out += &format!("<p>{}</p>\n", escaped(head.trim()));
        }
        lines.push(escaped(&words.join(" ")));
    }
    out + &put(&mut lines)
}

/// A table of cells that are HTML already, the first of each row its head.
fn table(head: &[String], rows: impl Iterator<Item = (Ink, Vec<String>)>) -> String {
    let heads: String = head.iter().map(|h| format!("<th scope=\"col\">{h}</th>")).collect();
    let heads = match head.iter().all(String::is_empty) {
        true => String::new(),
        false => format!("<thead><tr>{heads}</tr></thead>\n"),
    };
    let row = |(ink, cells): (Ink, Vec<String>)| {
        let class = match class(ink) {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let cell = |(i, cell): (usize, String)| match i {
            0 => format!("<th scope=\"row\">{cell}</th>"),
            // A bar comes with its cell.
            _ if cell.starts_with("<td") => cell,
            _ => format!("<td>{cell}</td>"),
        };
        let cells: String = cells.into_iter().enumerate().map(cell).collect();
        format!("<tr{class}>{cells}</tr>\n")
    };
    let rows: String = rows.map(row).collect();
    format!("<div class=\"wide\"><table>\n{heads}<tbody>\n{rows}</tbody>\n</table></div>\n")
}

fn plain_table(of: &Table) -> String {
    let cells = |all: &[String]| all.iter().map(|c| escaped(c)).collect::<Vec<_>>();
    let rows = of.rows.iter().map(|row| {
        let mut all = cells(&row.cells);
        all.resize(of.head.len().max(all.len()), String::new());
        (row.ink.unwrap_or(Ink::Plain), all)
    });
    table(&cells(&of.head), rows)
}

/// A cell with a bar of this share of the longest one.
fn bar(ink: Ink, share: f64) -> String {
    let percent = 100.0 * share.clamp(0.0, 1.0);
    let (open, close) = ("<td class=\"bar ", "</td>");
    match percent > 0.0 {
        true => {
            let percent = percent.max(0.5);
            format!("{open}{}\"><span style=\"width:{percent:.1}%\"></span>{close}", class(ink))
        }
        false => format!("{open}\">{close}"),
    }
}

fn bars(ink: Ink, rows: &[(String, f64, String)]) -> String {
    let top = rows.iter().map(|r| r.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let share = |v: f64| if top > 0.0 && v.is_finite() { v / top } else { 0.0 };
    let row = |(name, value, text): &(String, f64, String)| {
        (Ink::Plain, vec![escaped(name), escaped(text.trim()), bar(ink, share(*value))])
    };
    table(&[], rows.iter().map(row))
}

fn side_by_side(of: &Beside) -> String {
    let mut head = vec![String::new()];
    head.extend(of.heads.iter().map(|h| escaped(h)));
    let of_cell = |c: &Cell| match c.difference.is_empty() {
        true => escaped(&c.value),
        false => {
            let (value, class) = (escaped(&c.value), class(c.ink));
            format!("{value}<small class=\"{class}\">{}</small>", escaped(&c.difference))
        }
    };
    let row = |(i, label): (usize, &String)| {
        let cell = |column: &Vec<Cell>| column.get(i).map_or(String::new(), of_cell);
        let cells = std::iter::once(escaped(label)).chain(of.cells.iter().map(cell));
        (Ink::Plain, cells.collect())
    };
    table(&head, of.labels.iter().enumerate().map(row))
}

fn shares(of: &Shares) -> String {
    let (value, percent, more) = &of.heads;
    let mut head = vec![String::new(), escaped(value), escaped(percent)];
    head.extend(more.iter().map(|h| escaped(h)));
    head.push(String::new());
    let top = of.top();
    let row = |r: &super::shares::Share| {
        let mut all = vec![escaped(&r.label), escaped(&r.value), escaped(&r.percent)];
        all.extend(r.more.iter().map(|m| escaped(m)));
        all.push(bar(r.ink, if top > 0.0 { r.part / top } else { 0.0 }));
        (Ink::Plain, all)
    };
    table(&head, of.rows.iter().map(row))
}

/// Returns the text so that nothing in it means anything in HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().map(printable) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
