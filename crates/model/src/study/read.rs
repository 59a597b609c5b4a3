//! Reader of TOML into [`Study`], and all that can be wrong on the way.

use super::table::Table as Cases;
use super::{
    At, Decimal, Figure, Instead, List, Origin, Quantity, Reading, Relation, Row, Setup, Study,
    Wrong,
};
use crate::InputError;
use crate::input::{
    check_size, looks_like_path, nearest, one_line, printable, read_file, unknown_name,
};
use crate::library;
use crate::platform::checked_name;
use crate::settings::Value;
use crate::toml_in::{Cell, Doc, Item, Scalar, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Size limit of a study file.
const MAX_BYTES: usize = 1 << 20;
/// Largest number of experiments, more than anybody waits for.
const MAX_FIGURES: usize = 100;
/// `CONFIG_HZ` of margins, unless the list says otherwise.
const HZ: u64 = 1000;
/// The longest run, in ms.
const MAX_MS: u64 = 600_000;

impl Study {
    /// The study called `name_or_path`: a built-in name, or a file.
    ///
    /// Errors: unknown name (the built-in ones are listed), or a fault in the file.
    pub fn load(name_or_path: &str) -> Result<Study, InputError> {
        let known = library::studies();
        if !looks_like_path(name_or_path, ".toml") {
            if let Some(e) = known.iter().find(|e| e.name == name_or_path) {
                return Study::parse(e.text, &format!("{}.toml (built in)", e.name));
            }
            if !Path::new(name_or_path).exists() {
                let names: Vec<&str> = known.iter().map(|e| e.name).collect();
                return Err(unknown_name("study", name_or_path, &names));
            }
        }
        Study::parse(&read_file(name_or_path, MAX_BYTES)?, name_or_path)
    }

    /// The study that `text` describes; `place` is what errors call the text.
    ///
    /// Errors: the first fault found, with line and column. Whether platforms, policies and
    /// workloads exist is known when they are run.
    pub fn parse(text: &str, place: &str) -> Result<Study, InputError> {
        let place = printable(place);
        check_size(text.len(), MAX_BYTES, &place)?;
        let doc = Doc::parse(text, &place)?;
        let root = doc.root();
        root.only(&["schema", "name", "about", "source", "from", "wrong", "figure"])?;
        root.int("schema", 1, 1)?;
        let name = checked_name(&root, "name", root.str("name")?)?;
        let tables = root.opt_tables("figure", "figure")?.unwrap_or_default();
        if tables.is_empty() || tables.len() > MAX_FIGURES {
            let what = format!("{} figures, wanted 1 to {MAX_FIGURES}", tables.len());
            return Err(root.error(what));
        }
        let (whose, wrong_anywhere) = (origin(&root, Origin::Document)?, wrong(&root)?);
        let mut figures: Vec<Figure> = Vec::new();
        for table in &tables {
            let mut figure = figure(table, whose)?;
            if !table.has("wrong") {
                figure.wrong.clone_from(&wrong_anywhere);
            }
            if figures.iter().any(|f| f.id == figure.id) {
                return Err(table.error_of("id", "is another figure's, too"));
            }
            figures.push(figure);
        }
        Ok(Study {
            name,
            about: root.opt_str("about")?.unwrap_or("").to_string(),
            source: root.str("source")?.to_string(),
            figures,
        })
    }
}

const FIGURE: &[&str] = &[
    "id", "place", "about", "platform", "workload", "policy", "set", "ms", "little", "vary",
    "grid", "instead", "list", "table", "drawn", "from", "wrong", "weak",
];

fn figure(table: &Table<'_>, whose: Origin) -> Result<Figure, InputError> {
    table.only(FIGURE)?;
    let mut figure = Figure {
        at: table.place_of("id"),
        id: checked_name(table, "id", table.str("id")?)?,
        place: table.str("place")?.to_string(),
        about: table.opt_str("about")?.unwrap_or("").to_string(),
        setup: setup(table)?,
        instead: Vec::new(),
        lists: Vec::new(),
        table: None,
        drawn: drawn(table)?,
        wrong: wrong(table)?,
        weak: table.opt_str("weak")?.unwrap_or("").to_string(),
    };
    let whose = origin(table, whose)?;
    for t in &table.opt_tables("instead", "instead")?.unwrap_or_default() {
        figure.instead.push(instead(t, figure.setup.as_ref())?);
    }
    let lists = table.opt_tables("list", "list")?.unwrap_or_default();
    if let Some(of_cases) = table.opt_table("table")? {
        if figure.setup.is_none() {
            return Err(table.error_of("table", "takes runs; the figure names no `workload`"));
        }
        figure.table = Some(Cases::parse(&of_cases, whose)?);
    } else if lists.is_empty() {
        return Err(table.error("no `[[figure.list]]` and no `[figure.table]`, wanted one"));
    }
    let mut ids = BTreeSet::new();
    for at in &lists {
        let list = list(at, whose)?;
        if list.quantity.needs_run() && figure.setup.is_none() {
            let what = format!("{} takes a run", list.quantity.as_str());
            return Err(at.error_of("quantity", format!("{what}; the figure names no `workload`")));
        }
        if list.quantity.is_grid() && figure.setup.as_ref().is_none_or(|s| s.grid.is_empty()) {
            return Err(at.error_of("quantity", "is about a `grid`, which the figure has not"));
        }
        let summed = summed(&list);
        for list in std::iter::once(list).chain(summed) {
            for row in &list.rows {
                if let Some(name) = &row.instead
                    && !figure.instead.iter().any(|i| i.id == *name)
                {
                    let what = format!("row {}: the figure has no `instead` {name:?}", row.at);
                    return Err(at.error(what));
                }
                let id = figure.row_id(&list, row);
                if !ids.insert(id.clone()) {
                    return Err(at.error(format!("two rows are called {}", one_line(&id))));
                }
            }
            figure.lists.push(list);
        }
    }
    Ok(figure)
}

/// A list of residencies as the curve that it is: when each util was reached, by the sum of what is
/// printed up to there. Of a residency of one tick nothing could fail, of the sums it can.
fn summed(list: &List) -> Option<List> {
    (list.quantity == Quantity::UtilResidency).then(|| {
        let mut sum = 0.0;
        let reached = list.rows.windows(2).map(|pair| {
            sum += pair[0].published.value;
            let published = Decimal { value: (sum * 1e6).round() / 1e6, ..pair[0].published };
            Row {
                at: pair[1].at.clone(),
                published,
                counted: true,
                note: String::new(),
                ..pair[0].clone()
            }
        });
        let rows = reached.collect();
        List { quantity: Quantity::ReachUtil, rows, ..list.clone() }
    })
}

fn setup(table: &Table<'_>) -> Result<Option<Setup>, InputError> {
    let Some(workload) = table.opt_str("workload")? else {
        for key in ["platform", "policy"] {
            if table.opt_str(key)?.is_some() {
                return Err(table.error_of(key, "without a `workload`"));
            }
        }
        return Ok(None);
    };
    Ok(Some(Setup {
        platform: table.str("platform")?.to_string(),
        workload: workload.to_string(),
        policy: table.opt_str("policy")?.unwrap_or(library::DEFAULT_POLICY).to_string(),
        set: set(table)?,
        ms: table.opt_int("ms", 1, MAX_MS)?,
        little: table.opt_int("little", 1, 1024)?,
        vary: match table.opt_str("vary")? {
            Some(text) => super::table::vary(table, "vary", text)?,
            None => Vec::new(),
        },
        grid: grid(table)?,
    }))
}

fn grid(table: &Table<'_>) -> Result<Vec<(u64, u64)>, InputError> {
    let mut pairs = Vec::new();
    for item in table.opt_items("grid", "pair")?.unwrap_or_default() {
        let whole = |x: f64| x.fract() == 0.0 && (1.0..=1e7).contains(&x);
        match item {
            Item::Pair(Cell::Number(run), Cell::Number(period))
                if whole(run.value) && whole(period.value) =>
            {
                pairs.push((run.value as u64, period.value as u64));
            }
            _ => return Err(table.error_of("grid", "wants [run, period] of each task, in µs")),
        }
    }
    Ok(pairs)
}

fn set(table: &Table<'_>) -> Result<BTreeMap<String, Value>, InputError> {
    let mut set = BTreeMap::new();
    if let Some(settings) = table.opt_table("set")? {
        for (key, value) in settings.scalars()? {
            let value = match value {
                Scalar::Text(s) => Value::Name(s.to_string()),
                Scalar::Int(n) => Value::Int(n),
            };
            set.insert(key.to_string(), value);
        }
    }
    Ok(set)
}

/// The figure's experiment with what the table changes.
fn instead(table: &Table<'_>, figure: Option<&Setup>) -> Result<Instead, InputError> {
    table.only(&["id", "about", "platform", "workload", "policy", "set", "unset", "vary"])?;
    let mut setup = figure
        .ok_or_else(|| table.error("there is no experiment to change: no `workload`"))?
        .clone();
    let change = |key: &'static str, field: &mut String| {
        table.opt_str(key).map(|new| {
            if let Some(new) = new {
                *field = new.to_string();
            }
        })
    };
    change("platform", &mut setup.platform)?;
    change("workload", &mut setup.workload)?;
    change("policy", &mut setup.policy)?;
    for name in table.opt_str("unset")?.unwrap_or("").split_whitespace() {
        if setup.set.remove(name).is_none() {
            let what = format!("names `{}`, which the figure does not set", one_line(name));
            return Err(table.error_of("unset", what));
        }
    }
    setup.set.extend(set(table)?);
    if let Some(text) = table.opt_str("vary")? {
        setup.vary.extend(super::table::vary(table, "vary", text)?);
    }
    Ok(Instead {
        id: checked_name(table, "id", table.str("id")?)?,
        about: table.str("about")?.to_string(),
        setup,
    })
}

fn drawn(table: &Table<'_>) -> Result<Vec<(f64, f64)>, InputError> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for item in table.opt_items("drawn", "point")?.unwrap_or_default() {
        let Item::Pair(Cell::Number(x), Cell::Number(y)) = item else {
            return Err(table.error_of("drawn", "wants [ms, util] for each point"));
        };
        if points.last().is_some_and(|p| p.0 > x.value) {
            return Err(table.error_of("drawn", "goes back in time"));
        }
        points.push((x.value, y.value));
    }
    Ok(points)
}

const LIST: &[&str] = &[
    "quantity", "cpu", "hz", "fit", "cut", "printed", "policy", "reading", "ms", "metric",
    "instead", "rows", "from", "note",
];

/// Reads the origin of a table's numbers, `unless` it says none.
pub(super) fn origin(table: &Table<'_>, unless: Origin) -> Result<Origin, InputError> {
    let Some(name) = table.opt_str("from")? else { return Ok(unless) };
    Origin::ALL.into_iter().find(|o| o.as_str() == name).ok_or_else(|| {
        let names = Origin::ALL.map(Origin::as_str).join(" or ");
        table.error_of("from", format!("is \"{}\", wanted {names}", one_line(name)))
    })
}

/// Reads the policies that the figure is not about, one by one.
fn wrong(table: &Table<'_>) -> Result<Vec<String>, InputError> {
    let names = table.opt_str("wrong")?.unwrap_or("").split_whitespace();
    names
        .map(|name| match Wrong::parse(name) {
            Some(_) => Ok(name.to_string()),
            None => Err(table.error_of("wrong", "wants POLICY or +key=value, each after a space")),
        })
        .collect()
}

fn list(table: &Table<'_>, whose: Origin) -> Result<List, InputError> {
    table.only(LIST)?;
    let name = table.str("quantity")?;
    let names = Quantity::ALL.map(Quantity::as_str);
    let Some(quantity) = Quantity::ALL.into_iter().find(|q| q.as_str() == name) else {
        let what = format!("is \"{}\", wanted one of {}", one_line(name), names.join(", "));
        let e = table.error_of("quantity", what);
        return Err(match nearest(name, &names) {
            Some(n) => e.hint(format!("did you mean `{n}`?")),
            None => e,
        });
    };
    let cpu = table.opt_int("cpu", 0, 1023)?.map(|c| c as u32);
    if cpu.is_some() != quantity.needs_cpu() {
        let what = if cpu.is_some() { "is about no one CPU" } else { "wants a `cpu`" };
        return Err(table.error_of("quantity", format!("{name} {what}")));
    }
    let fit = table.opt_str("fit")?.unwrap_or("").split_whitespace().map(str::to_string).collect();
    let whose = origin(table, whose)?;
    let mut rows = Vec::new();
    for item in table.opt_items("rows", "row")?.unwrap_or_default() {
        rows.push(row(table, item, quantity, whose)?);
    }
    if let Some(instead) = table.opt_str("instead")? {
        for row in rows.iter_mut().filter(|r| r.instead.is_none()) {
            row.instead = Some(instead.to_string());
        }
    }
    let number = |r: &Row| match &r.at {
        At::Number(d) => d.value,
        At::Name(_) => 0.0,
    };
    if quantity == Quantity::UtilResidency && !rows.is_sorted_by(|a, b| number(a) < number(b)) {
        return Err(table.error_of("rows", "do not ascend"));
    }
    let Some(last) = rows.last_mut() else {
        return Err(table.error_of("rows", "is empty"));
    };
    if let Some(why) = table.opt_str("cut")? {
        last.counted = false;
        last.note = why.to_string();
    }
    if let Some(why) = table.opt_str("printed")? {
        for row in &mut rows {
            row.counted = false;
            row.note = why.to_string();
        }
    }
    let policy = table.opt_str("policy")?.map(str::to_string);
    if policy.is_some() && (!quantity.needs_run() || quantity.by_policy()) {
        return Err(table.error_of("policy", format!("{name} is of no run of one policy")));
    }
    let reading = reading(table, quantity)?;
    let ms = table.opt_int("ms", 0, MAX_MS)?;
    if ms.is_some() != quantity.is_at() {
        let what = if ms.is_some() { "is about no one moment" } else { "wants `ms`" };
        return Err(table.error_of("quantity", format!("{name} {what}")));
    }
    let metric = table.opt_str("metric")?.map(str::to_string);
    if metric.is_some() != (quantity == Quantity::Figure) {
        let what = if metric.is_some() { "is no `metric`" } else { "wants a `metric`" };
        return Err(table.error_of("quantity", format!("{name} {what}")));
    }
    let hz = table.opt_int("hz", 24, 10_000)?.unwrap_or(HZ) as u32;
    let (settings, note) = (Vec::new(), table.opt_str("note")?.unwrap_or("").to_string());
    Ok(List { quantity, cpu, hz, fit, policy, reading, ms, metric, note, settings, rows })
}

fn reading(table: &Table<'_>, quantity: Quantity) -> Result<Reading, InputError> {
    let Some(name) = table.opt_str("reading")? else { return Ok(Reading::default()) };
    if !quantity.has_reading() {
        let what = format!("{} is not about steady activations", quantity.as_str());
        return Err(table.error_of("reading", what));
    }
    Reading::ALL.into_iter().find(|r| r.as_str() == name).ok_or_else(|| {
        let names = Reading::ALL.map(Reading::as_str).join(", ");
        table.error_of("reading", format!("is \"{}\", wanted one of {names}", one_line(name)))
    })
}

fn row(
    list: &Table<'_>,
    item: Item<'_>,
    quantity: Quantity,
    origin: Origin,
) -> Result<Row, InputError> {
    let (at, published, table) = match item {
        Item::Pair(at, published) => (at, published, None),
        Item::Table(t) => {
            t.only(&["at", "published", "is", "counted", "note", "instead", "from"])?;
            (t.cell("at")?, t.cell("published")?, Some(t))
        }
    };
    let at = match at {
        Cell::Number(n) => At::Number(n),
        Cell::Text(s) => At::Name(s.to_string()),
    };
    if matches!(at, At::Name(_)) != quantity.by_policy() {
        let wanted = if quantity.by_policy() { "a policy" } else { "a number" };
        let what = format!("are {} by {wanted}, found \"{at}\"", quantity.as_str());
        return Err(list.error_of("rows", what));
    }
    let Cell::Number(published) = published else {
        return Err(list.error_of("rows", format!("at {at}: the published number is text")));
    };
    let mut row = Row {
        at,
        under: None,
        published,
        origin,
        relation: Relation::Equal,
        counted: true,
        note: String::new(),
        instead: None,
    };
    if let Some(t) = table {
        row.origin = self::origin(&t, origin)?;
        row.counted = t.opt_bool("counted")?.unwrap_or(true);
        row.note = t.opt_str("note")?.unwrap_or("").to_string();
        row.instead = t.opt_str("instead")?.map(str::to_string);
        if let Some(is) = t.opt_str("is")? {
            let names = Relation::ALL.map(Relation::as_str);
            row.relation = *Relation::ALL.iter().find(|r| r.as_str() == is).ok_or_else(|| {
                t.error_of(
                    "is",
                    format!("\"{}\", wanted one of {}", one_line(is), names.join(", ")),
                )
            })?;
        }
    }
    Ok(row)
}
