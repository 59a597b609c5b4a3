//! `risetime reproduce`: are the document's numbers right?
//!
//! ```text
//! verdict   how many of the counted rows hold, figure by figure
//! misses    which do not, and why
//! figures   every row: published, measured, deviation, tolerance
//! ```

use super::Style;
use crate::page::{Doc, Ink, Line, Page, Table, width};
use crate::words::{one, round3};
use risetime_analysis::study::{
    Against, Cell, Cells, Elsewhere, JudgedRow, Reproduced, ReproducedFigure, Tally, TradeOff,
    Tried, score,
};
use risetime_model::Study;

/// Columns between two cells.
const GAP: usize = 2;

/// The page of a reproduced study: whether the document's numbers are right.
pub fn study(study: &Reproduced, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(format!("{}: {}", study.study, study.about), "");
    page.hanging("", Ink::Dim, &study.source);
    page.blank();
    verdict(&mut page, study);
    misses(&mut page, study);
    for f in &study.figures {
        figure(&mut page, f);
    }
    page.blank();
    let of_ratios = cells_of(study).any(|cell| cell.stdev.is_some());
    page.paragraph(
        0,
        Ink::Dim,
        &format!(
            "measured: the median of {} start phases. tolerance: one step of the published number's \
             last digit + one tick + from the median to the phase that is furthest on the published \
             number's side{}.",
            study.phases,
            if of_ratios { "; of what one column is of another: the larger stdev" } else { "" }
        ),
    );
    page.finish()
}

/// The page of a study's contents.
pub fn study_contents(study: &Study, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(format!("{}: {}", study.name, study.about), "");
    page.hanging("", Ink::Dim, &study.source);
    page.blank();
    let mut table = Table::new(["figure", "rows", "quantities"]);
    for f in &study.figures {
        let checks = f.table.as_ref().map_or(0, |t| t.checks.len());
        let rows = checks + f.lists.iter().map(|l| l.rows.len()).sum::<usize>();
        let mut quantities: Vec<&str> = f.lists.iter().map(|l| l.quantity.as_str()).collect();
        let of_cases = f.table.iter().flat_map(|t| t.quantities.iter().map(|q| q.name.as_str()));
        quantities.extend(of_cases);
        quantities.dedup();
        table.row([f.id.clone(), rows.to_string(), quantities.join(", ")]);
    }
    page.table(0, table);
    for f in &study.figures {
        page.blank();
        page.hanging(&format!("{}: ", f.id), Ink::Strong, &f.place);
        page.paragraph(2, Ink::Plain, &f.about);
    }
    page.finish()
}

fn verdict(page: &mut Page<'_>, study: &Reproduced) {
    let all = study.score();
    let share = |t: Tally| 100.0 * t.held as f64 / t.counted.max(1) as f64;
    let ink = if study.holds() { Ink::Good } else { Ink::Bad };
    let mut said = match all.document {
        Tally { counted: 0, .. } => "No number of the document's own is counted.".to_string(),
        t => format!(
            "Of the document's own numbers {} of {} hold ({:.1} %).",
            t.held,
            t.counted,
            share(t)
        ),
    };
    if all.ours.counted > 0 {
        let (held, counted) = (all.ours.held, all.ours.counted);
        said += &format!(" Of this project's bounds and predictions {held} of {counted} hold.");
    }
    said += &match study.rows().filter(|r| r.misses() && !r.argued()).count() {
        _ if all.total().held == all.total().counted => String::new(),
        0 => " What misses is argued.".to_string(),
        n => format!(" Not argued: {n}."),
    };
    page.hanging("", ink, &said);
    if all.blunt > 0 {
        let n = all.blunt;
        let what = format!("Shown and not counted: {n} whose tolerance reaches the number itself.");
        page.hanging("", Ink::Dim, &what);
    }
    page.blank();
    let ours = all.ours.counted > 0;
    let mut heads = vec!["figure", "hold", "can fail"];
    heads.extend(ours.then_some(["of ours", "can fail"]).into_iter().flatten());
    heads.extend(["rows", ""]);
    let mut table = Table::new(heads);
    for f in &study.figures {
        let of = score(f.rows.iter());
        let tally = |t: Tally| [t.held.to_string(), t.counted.to_string()];
        let mut cells = vec![f.id.clone()];
        cells.extend(tally(of.document));
        cells.extend(ours.then(|| tally(of.ours)).into_iter().flatten());
        let missed = of.total().counted - of.total().held;
        cells.push(of.all.to_string());
        cells.push(if missed > 0 { format!("{missed} missed") } else { String::new() });
        table.inked((missed > 0).then_some(Ink::Bad), cells);
    }
    page.table(2, table);
    page.blank();
}

/// The page of a study under wrong policies: how many of its rows still hold under each.
pub fn study_against(study: &Reproduced, all: &[Against], style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.hanging("", Ink::Title, &format!("{}: {}", study.study, study.about));
    page.hanging("", Ink::Dim, &study.source);
    page.blank();
    for (i, against) in all.iter().enumerate() {
        let (right, wrong) = against.total();
        let what = format!(
            "{}: {wrong} of {} counted rows hold under it, too; {} under the figures' own policies.",
            against.policy, right.counted, right.held
        );
        if i > 0 {
            page.blank();
        }
        page.hanging("", Ink::Strong, &what);
        let mut table = Table::new(["figure", "can fail", "hold", "hold under it", ""]);
        for f in against.figures.iter().filter(|f| f.right.counted > 0) {
            let counts = [f.right.counted, f.right.held, f.wrong].map(|n| n.to_string());
            let told = if f.told_apart() { "" } else { "not told apart" };
            let cells = std::iter::once(f.id.clone()).chain(counts).chain([told.to_string()]);
            table.inked((!f.told_apart()).then_some(Ink::Bad), cells);
        }
        page.table(2, table);
    }
    page.blank();
    let what = "not told apart: under the wrong policy more than half of the rows hold that hold \
                under the right ones.";
    page.paragraph(0, Ink::Dim, what);
    page.finish()
}

fn cells_of(study: &Reproduced) -> impl Iterator<Item = &Cell> {
    let tables = study.figures.iter().filter_map(|f| f.cells.as_ref());
    tables.flat_map(|c| c.cells.iter().flatten().flatten())
}

fn misses(page: &mut Page<'_>, study: &Reproduced) {
    let mut missed = study.rows().filter(|r| r.misses()).peekable();
    if missed.peek().is_none() {
        return;
    }
    page.rule("what misses, and why");
    for (i, r) in missed.enumerate() {
        if i > 0 {
            page.blank();
        }
        // Ratios say something behind the point only.
        let places = if r.digits > 2 { usize::from(r.digits) } else { 1 };
        let says = |x: Option<f64>| x.map_or("never".to_string(), |x| format!("{x:.places$}"));
        let line = Line::new()
            .ink(Ink::Bad, r.id.clone())
            .plain(format!(": {} published, {} measured", number(r), says(r.measured)))
            .ink(Ink::Dim, format!(" ± {:.places$} {}", r.tolerance.total(), r.unit));
        page.line(line);
        page.paragraph(2, Ink::Plain, &r.reason());
        if !r.argued() {
            page.paragraph(2, Ink::Bad, "Not argued.");
        }
    }
}

fn figure(page: &mut Page<'_>, f: &ReproducedFigure) {
    page.rule(&format!("{} · {}", f.id, f.place));
    page.paragraph(0, Ink::Plain, &f.about);
    if !f.command.is_empty() {
        // An option stays with its value.
        let words = f.command.replace(" --", "\n--");
        page.command("$ ", Ink::Dim, words.lines().map(String::from));
    }
    if let Some(c) = &f.cells {
        cells(page, c);
        free(page, &c.free);
    }
    elsewhere(page, &f.elsewhere);
    let mut from = 0;
    while let Some(first) = f.rows.get(from) {
        let rows: Vec<&JudgedRow> =
            f.rows[from..].iter().take_while(|r| r.list == first.list).collect();
        from += rows.len();
        page.blank();
        list(page, &rows);
    }
    if f.trade_offs.len() > 1 {
        page.blank();
        trade_offs(page, &f.trade_offs);
    }
}

/// Writes every cell, published beside ours; measured values before the search of free values in a
/// table of their own.
fn cells(page: &mut Page<'_>, c: &Cells) {
    for (q, (name, unit)) in c.quantities.iter().enumerate() {
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        page.blank();
        let what = if said(c, q) { "published, measured" } else { "measured" };
        page.paragraph(0, Ink::Strong, &format!("{name}{unit}: {what}"));
        matrix(page, c, q, &|cell| cell.measured);
        if c.searched() {
            page.blank();
            let what = "published, measured with the first value of everything that was searched";
            page.paragraph(0, Ink::Dim, &format!("{name}{unit}: {what}"));
            matrix(page, c, q, &|cell| cell.untouched);
        }
        if c.cells[q].iter().flatten().any(|cell| cell.stdev.is_some()) {
            page.blank();
            let what = "standard deviations, published between runs, measured between start phases";
            page.paragraph(0, Ink::Dim, &format!("{name}{unit}: {what}"));
            matrix(page, &stdevs(c, q), 0, &|cell| cell.measured);
        }
    }
    let fits = !c.free.is_empty() || c.cases.iter().any(|(_, fit)| *fit);
    if fits {
        page.blank();
        let one = c.columns.iter().filter(|(_, fit)| *fit).count() < published(c);
        let of = match c.columns.iter().find(|(_, fit)| *fit).filter(|_| one) {
            Some((name, _)) => format!(", in the column {name} alone"),
            None => String::new(),
        };
        let what = format!("* what is free was fitted on these{of}: not counted");
        page.paragraph(0, Ink::Dim, &what);
    }
}

/// Counts the columns that the document publishes.
fn published(c: &Cells) -> usize {
    let has = |column: &usize| c.cells.iter().flatten().any(|row| row[*column].published.is_some());
    (0..c.columns.len()).filter(has).count()
}

/// Whether the document has a cell of the quantity.
fn said(c: &Cells, q: usize) -> bool {
    c.cells[q].iter().flatten().any(|cell| cell.published.is_some())
}

/// The standard deviations of a quantity as a table of their own, of the columns that have any.
fn stdevs(c: &Cells, q: usize) -> Cells {
    let has = |column: &usize| c.cells[q].iter().any(|row| row[*column].stdev.is_some());
    let columns: Vec<usize> = (0..c.columns.len()).filter(has).collect();
    let of = |cell: &Cell| Cell {
        published: cell.stdev,
        digits: cell.digits.max(1),
        measured: cell.spread,
        ..Cell::default()
    };
    let row = |row: &Vec<Cell>| columns.iter().map(|column| of(&row[*column])).collect();
    Cells {
        cases: c.cases.clone(),
        columns: columns.iter().map(|column| c.columns[*column].clone()).collect(),
        cells: vec![c.cells[q].iter().map(row).collect()],
        ..Cells::default()
    }
}

/// The columns side by side, as many as there is room for, the others below.
fn matrix(page: &mut Page<'_>, c: &Cells, q: usize, ours: &dyn Fn(&Cell) -> Option<f64>) {
    // Of what the document says nothing, ours alone.
    let both = said(c, q);
    let said = |cell: &Cell| {
        let places = usize::from(cell.digits);
        let said = |x: Option<f64>| x.map_or("–".into(), |x| format!("{:.places$}", x + 0.0));
        let published = both.then(|| said(cell.published));
        published.into_iter().chain([said(ours(cell))]).collect::<Vec<String>>()
    };
    let names = c.cases.iter().map(|(name, fit)| format!("{name}{}", if *fit { " *" } else { "" }));
    let names: Vec<String> = names.collect();
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) + GAP;
    let wide = |column: usize| {
        let each = |i: usize| c.cells[q].iter().map(move |row| width(&said(&row[column])[i]));
        let named = width(&c.columns[column].0);
        let second = if both { widest(&mut each(1)) } else { 0 };
        widest(&mut each(0).chain([named])) + second
    };
    let first = widest(&mut names.iter().map(|n| width(n)));
    let mut from = 0;
    while from < c.columns.len() {
        let mut used = first + wide(from);
        let more = (from + 1..c.columns.len()).take_while(|i| {
            used += wide(*i);
            used <= page.width()
        });
        let to = from + 1 + more.count();
        let heads = c.columns[from..to]
            .iter()
            .flat_map(|(name, _)| std::iter::once(name.clone()).chain(both.then(String::new)));
        let mut table = Table::new(std::iter::once(String::new()).chain(heads));
        for (name, row) in names.iter().zip(&c.cells[q]) {
            table.row(std::iter::once(name.clone()).chain(row[from..to].iter().flat_map(said)));
        }
        if from > 0 {
            page.blank();
        }
        page.table(GAP, table);
        from = to;
    }
}

/// Writes what the document leaves open: each value with what it comes to.
/// Writes what each experiment with something changed makes of all rows that count.
fn elsewhere(page: &mut Page<'_>, all: &[Elsewhere]) {
    if all.is_empty() {
        return;
    }
    page.blank();
    page.paragraph(0, Ink::Strong, "With something changed, of all rows that count:");
    for e in all {
        let (mended, broken) = (e.mended.len(), e.broken.len());
        let what = format!(
            "of {} that miss {mended} hold, of {} that hold {broken} miss",
            e.missing, e.holding
        );
        page.hanging("  ", Ink::Plain, &format!("{}: {what}.", e.about));
        for (head, ids) in [("hold: ", &e.mended), ("miss: ", &e.broken)] {
            if !ids.is_empty() {
                page.paragraph(4, Ink::Dim, &format!("{head}{}", ids.join(", ")));
            }
        }
    }
}

fn free(page: &mut Page<'_>, all: &[Tried]) {
    if all.is_empty() {
        return;
    }
    page.blank();
    let head = "What the document leaves open; mean error of the cells to fit by value, the one taken in brackets:";
    page.paragraph(0, Ink::Strong, head);
    for t in all {
        let value = |(i, (value, off)): (usize, &(String, f64))| match i == t.chosen {
            true => format!("[{value} {}]", one(*off)),
            false => format!("{value} {}", one(*off)),
        };
        let values: Vec<String> = t.values.iter().enumerate().map(value).collect();
        let about = [&t.columns, &t.cases].map(|names| names.join(", "));
        let of = match about.each_ref().map(String::is_empty) {
            [true, true] => "all".to_string(),
            [false, true] => about[0].clone(),
            [true, false] => about[1].clone(),
            [false, false] => about.join("; "),
        };
        let head = format!("  {} ({of}): ", t.name);
        match 2 * width(&head) <= page.width() {
            true => page.hanging(&head, Ink::Plain, &values.join(", ")),
            false => {
                page.paragraph(2, Ink::Plain, head.trim());
                page.paragraph(4, Ink::Plain, &values.join(", "));
            }
        }
        page.paragraph(4, Ink::Dim, &t.why);
    }
}

/// Writes the slack that each policy leaves of the periods, and what it takes for it, most slack
/// first.
fn trade_offs(page: &mut Page<'_>, all: &[TradeOff]) {
    let mut all: Vec<&TradeOff> = all.iter().collect();
    all.sort_by(|a, b| b.slack_ms.unwrap_or(f64::MIN).total_cmp(&a.slack_ms.unwrap_or(f64::MIN)));
    let columns = ["slack against energy", "median ms", "least ms", "GHz", "mJ"];
    let mut table = Table::new(columns);
    let said = |x: Option<f64>, places| x.map_or("–".to_string(), |x| format!("{x:.places$}"));
    for t in all {
        let (slack, least) = (said(t.slack_ms, 2), said(t.slack_least_ms, 2));
        let cells = [t.policy.clone(), slack, least, said(t.mean_ghz, 3), said(t.energy_mj, 1)];
        table.row(cells);
    }
    page.table(2, table);
}

fn list(page: &mut Page<'_>, rows: &[&JudgedRow]) {
    let one_unit = rows.iter().all(|r| r.unit == rows[0].unit);
    let unit = if one_unit && !rows[0].unit.is_empty() {
        format!(" ({})", rows[0].unit)
    } else {
        String::new()
    };
    let name = format!("{}{unit}", rows[0].list);
    let mut table =
        Table::new([name.as_str(), "published", "measured", "deviation", "tolerance", "", " "]);
    for r in rows {
        let measured = r.measured.map_or("–".to_string(), |m| figure_of(m, r));
        let off = r.measured.map_or("–".to_string(), |m| signed(m - r.published, r));
        let (verdict, ink) = match r.holds {
            Some(_) if r.blunt() => ("cannot fail", Some(Ink::Dim)),
            Some(true) => ("holds", None),
            Some(false) => ("MISSES", Some(Ink::Bad)),
            None => ("–", Some(Ink::Dim)),
        };
        let verdict = if r.ours { format!("{verdict} (ours)") } else { verdict.to_string() };
        let tolerance = match r.holds {
            None => String::new(),
            Some(_) => format!("{:.*}", places(r), round3(r.tolerance.total())),
        };
        let at = match one_unit || r.unit.is_empty() {
            true => r.at.clone(),
            false => format!("{} ({})", r.at, r.unit),
        };
        let cells = [at, number(r), measured, off, tolerance, verdict];
        table.inked(ink, cells.into_iter().chain([String::new()]));
    }
    page.table(2, table);
    let noted = |r: &&&JudgedRow| r.holds.is_none() && !r.note.is_empty();
    let mut said: Vec<(Vec<&str>, &str)> = Vec::new();
    for r in rows.iter().filter(noted) {
        match said.last_mut().filter(|(_, note)| *note == r.note) {
            Some((of, _)) => of.push(&r.at),
            None => said.push((vec![&r.at], &r.note)),
        }
    }
    for (of, note) in said {
        let all = of.len() == rows.len() && of.len() > 1;
        let of = if all { "all".to_string() } else { of.join(", ") };
        page.hanging(&format!("  {of}: "), Ink::Dim, note);
    }
}

/// The published number with its bound, in the digits of the document.
fn number(r: &JudgedRow) -> String {
    let gap = if r.relation.is_empty() { "" } else { " " };
    format!("{}{gap}{:.*}", r.relation, usize::from(r.digits), r.published)
}

/// Decimals that say something: none for whole numbers of util and points.
fn places(r: &JudgedRow) -> usize {
    match r.unit {
        "ms" => usize::from(r.digits).max(1),
        _ => usize::from(r.digits),
    }
}

fn figure_of(x: f64, r: &JudgedRow) -> String {
    format!("{:.*}", places(r), x + 0.0)
}

fn signed(x: f64, r: &JudgedRow) -> String {
    let text = figure_of(x, r);
    let zero = text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
    match (zero, text.starts_with('-')) {
        (true, _) => text.trim_start_matches('-').to_string(),
        (_, true) => text,
        _ => format!("+{text}"),
    }
}
