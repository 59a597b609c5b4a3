//! A published table: cases down, policies across, and what the document leaves open about all of them.
//!
//! ```text
//! case        one line of the table: what it changes of the figure's experiment       "1/100"
//! column      one policy, with what was published for each case and quantity          "ondemand"
//! quantity    what a cell holds: a figure by name, where it lies between two references, or what it is but for a factor
//! free        what the document does not say, with the values that are plausible: one for the whole table
//! check       what has to be true of all cells together
//! stdev       how far the document's own runs were apart, beside what it published
//! sum         a case that is not run: it is what others come to together
//! ```
//!
//! What is free is searched once, by the cells to fit alone; they do not count afterwards.

use super::read::origin;
use super::{Decimal, Origin, Relation};
use crate::InputError;
use crate::input::{nearest, one_line};
use crate::platform::checked_name;
use crate::toml_in::{Cell, Table as Toml, TextsOrTable};

/// `name=value`, as a sweep varies it.
pub type Vary = Vec<(String, String)>;

/// A table of the document.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Quantities that the cells hold.
    pub quantities: Vec<CellQuantity>,
    /// Lines of the table.
    pub cases: Vec<Case>,
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// Choices that the document leaves open.
    pub free: Vec<Free>,
    /// Conditions that have to hold.
    pub checks: Vec<Check>,
}

/// Quantity that a cell holds.
#[derive(Clone, Debug, PartialEq)]
pub struct CellQuantity {
    /// Short name.
    pub name: String,
    /// The figure of a run, by the name that `--expect` has for it.
    pub metric: String,
    /// Runs that stand for 0 % and for 100 %; `None`: the figure itself.
    pub between: Option<[Vary; 2]>,
    /// Way in which figures become what the document has; unless by [`Scale::Run`] only ratios are
    /// meant: all cells times one number.
    pub scale: Option<Scale>,
    /// Each case has a number of its own, by which its cells to fit agree: it is the columns that are compared.
    pub scale_by_case: bool,
    /// Published standard deviations are in % of what is published, not in its unit.
    pub stdev_in_percent: bool,
    /// The unit of the quantity.
    pub unit: &'static str,
    /// Decimals of ours, where it is not those of what is published.
    pub digits: Option<u8>,
    /// Whether each published cell that nothing was fitted on is judged as a row.
    pub counted: bool,
    /// Reason why those cells miss that miss.
    pub note: String,
}

/// The way in which figures are brought to the document's unit, by one factor for the whole table:
/// the one by which the cells to fit agree with it in the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The figure.
    Figure,
    /// The reciprocal of the figure: so much of something a second, of how long it took.
    Inverse,
    /// No factor is fitted: the figure is in % of the run's length.
    Run,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of the case in the document.
    pub name: String,
    /// The changes of this case.
    pub vary: Vary,
    /// The figure of a run, where it is not the quantity's.
    pub metric: Option<String>,
    /// Cases of which this one is the sum, by place; such a case is not run.
    pub sum: Vec<usize>,
    /// Value to which the quantities may be proportional.
    pub at: Option<f64>,
    /// True if the free values are fitted on this case.
    pub fit: bool,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column in the document.
    pub name: String,
    /// The changes of this column.
    pub vary: Vary,
    /// True if the free values are fitted on this column, in cases that are fitted on.
    pub fit: bool,
    /// Published numbers by quantity, then by case; none of a quantity that the document does not
    /// have.
    pub published: Vec<Vec<Decimal>>,
    /// Standard deviations of those; none where the document has none.
    pub stdev: Vec<Vec<Decimal>>,
}

/// Choice that the document leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Free {
    /// Name in a sweep.
    pub name: String,
    /// The plausible values; the first is taken where nobody searches.
    pub values: Vec<String>,
    /// The columns that it is about, by place; empty: all, and the references.
    pub columns: Vec<usize>,
    /// The cases that it is about, by place; empty: all.
    pub cases: Vec<usize>,
    /// Reason for these values.
    pub why: String,
}

/// A condition that has to hold of all cells together.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Short name, unique in the table.
    pub id: String,
    /// The figure that is judged.
    pub what: What,
    /// The quantity, by place.
    pub quantity: usize,
    /// The bound, or the number that the document gives.
    pub published: Decimal,
    /// Origin of the number.
    pub origin: Origin,
    /// Relation that ours has to have to it.
    pub relation: Relation,
    /// Tolerance, in the figure's unit.
    pub within: f64,
    /// Judged, or only printed.
    pub counted: bool,
    /// Reason why the check is not counted, or why it misses.
    pub note: String,
}

/// A figure of a whole table. Columns and cases by place; cases that are fitted on are left out of
/// the first three.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The median of |measured − published| of a column.
    MedianError(usize),
    /// The largest one.
    LargestError(usize),
    /// Share of the pairs of columns that the document has more than so much apart in a case which
    /// are in its order, in %.
    Order(Decimal),
    /// Number of these cases, all if there are none, in which the first column is above the second.
    Above(usize, usize, Vec<usize>),
    /// Number of these cells, by case, in which the first column is below the second.
    Cells(Vec<(usize, usize, usize)>),
    /// Number of columns of those named in which a case is the largest.
    Most(usize, Vec<usize>),
    /// The largest difference between measured and published of how much the first column is above the second, in %, in
    /// these cases, all if there are none.
    GainError(usize, usize, Vec<usize>),
    /// Spread of the cells of a column, each divided by what `at` says of its case: the largest
    /// above the smallest, in %.
    Proportional(usize),
    /// Ratio of the first column to the second, by case: a row each for those in which the
    /// document's means are further apart than the larger of their standard deviations.
    Ratio(usize, usize, Vec<usize>),
    /// Share of the cases in which the document has them that far apart which have the two columns
    /// in its order, in %.
    Side(usize, usize, Vec<usize>),
    /// Value of the cell of a column and case.
    Cell(usize, usize),
    /// Ratio of the first column's cell of a case to the second column's.
    Times(usize, usize, usize),
}

impl What {
    /// Names in a file.
    const NAMES: [&'static str; 12] = [
        "median_error",
        "largest_error",
        "order",
        "above",
        "cells",
        "most",
        "gain_error",
        "proportional",
        "ratio",
        "side",
        "cell",
        "times",
    ];
}

impl Table {
    pub(super) fn parse(toml: &Toml<'_>, whose: Origin) -> Result<Table, InputError> {
        toml.only(&["fit", "quantity", "case", "column", "free", "check"])?;
        let mut table = Table {
            quantities: all(toml, "quantity", quantity)?,
            cases: Vec::new(),
            columns: Vec::new(),
            free: Vec::new(),
            checks: Vec::new(),
        };
        for t in &some(toml, "case")? {
            let case = case(t, &table)?;
            table.cases.push(case);
        }
        for name in words(toml.opt_str("fit")?) {
            let at = place(toml, "fit", name, table.cases.iter().map(|c| &c.name))?;
            table.cases[at].fit = true;
        }
        table.columns = all(toml, "column", |t| column(t, &table))?;
        table.free = match toml.opt_tables("free", "free")? {
            Some(free) => free.iter().map(|t| self::free(t, &table)).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        table.checks = all(toml, "check", |t| check(t, &table, whose))?;
        Ok(table)
    }
}

/// Reads at least one table, each by `read`.
fn all<T>(
    toml: &Toml<'_>,
    key: &'static str,
    read: impl Fn(&Toml<'_>) -> Result<T, InputError>,
) -> Result<Vec<T>, InputError> {
    some(toml, key)?.iter().map(read).collect()
}

fn some<'a>(toml: &Toml<'a>, key: &'static str) -> Result<Vec<Toml<'a>>, InputError> {
    let tables = toml.opt_tables(key, key)?.unwrap_or_default();
    match tables.is_empty() {
        true => Err(toml.error_of(key, "is missing: a table has at least one")),
        false => Ok(tables),
    }
}

fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or("").split_whitespace()
}

/// `name=value name=value …`.
pub(super) fn vary(toml: &Toml<'_>, key: &'static str, text: &str) -> Result<Vary, InputError> {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').filter(|(n, v)| !n.is_empty() && !v.is_empty())?;
        Some((name.to_string(), value.to_string()))
    };
    words(Some(text))
        .map(|word| {
            let wrong = || toml.error_of(key, format!("\"{}\" is no `name=value`", one_line(word)));
            pair(word).ok_or_else(wrong)
        })
        .collect()
}

/// Finds the place of `name` among `known`.
fn place<'a>(
    toml: &Toml<'_>,
    key: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
) -> Result<usize, InputError> {
    let known: Vec<&str> = known.map(String::as_str).collect();
    known.iter().position(|k| *k == name).ok_or_else(|| {
        let what = format!("\"{}\" is none of {}", one_line(name), known.join(", "));
        let e = toml.error_of(key, what);
        match nearest(name, &known) {
            Some(n) => e.hint(format!("did you mean `{n}`?")),
            None => e,
        }
    })
}

fn quantity(toml: &Toml<'_>) -> Result<CellQuantity, InputError> {
    toml.only(&[
        "name", "metric", "between", "scale", "scale_by", "stdev", "unit", "digits", "counted",
        "note",
    ])?;
    let between = match toml.opt_texts_or_table("between")? {
        None => None,
        Some(TextsOrTable::Texts(ends)) if ends.len() == 2 => {
            Some([vary(toml, "between", ends[0])?, vary(toml, "between", ends[1])?])
        }
        Some(_) => return Err(toml.error_of("between", "wants what is 0 % and what is 100 %")),
    };
    let scale = match toml.opt_str("scale")? {
        None => None,
        Some(_) if between.is_some() => {
            return Err(toml.error_of("scale", "is of no use beside `between`"));
        }
        Some("figure") => Some(Scale::Figure),
        Some("inverse") => Some(Scale::Inverse),
        Some("run") => Some(Scale::Run),
        Some(_) => return Err(toml.error_of("scale", "wanted figure, inverse or run")),
    };
    let scale_by_case = match toml.opt_str("scale_by")? {
        Some(_) if matches!(scale, None | Some(Scale::Run)) => {
            return Err(toml.error_of("scale_by", "is of no use without `scale`"));
        }
        None | Some("table") => false,
        Some("case") => true,
        Some(_) => return Err(toml.error_of("scale_by", "wanted table or case")),
    };
    let stdev_in_percent = match toml.opt_str("stdev")? {
        None | Some("unit") => false,
        Some("%") => true,
        Some(_) => return Err(toml.error_of("stdev", "wanted % or unit")),
    };
    Ok(CellQuantity {
        name: checked_name(toml, "name", toml.str("name")?)?,
        metric: toml.str("metric")?.to_string(),
        between,
        scale,
        scale_by_case,
        stdev_in_percent,
        unit: unit(toml)?,
        digits: toml.opt_int("digits", 0, 6)?.map(|n| n as u8),
        counted: toml.opt_bool("counted")?.unwrap_or(false),
        note: toml.opt_str("note")?.unwrap_or("").to_string(),
    })
}

fn unit(toml: &Toml<'_>) -> Result<&'static str, InputError> {
    const UNITS: [&str; 5] = ["", "%", "ms", "mJ", "1/s"];
    let named = toml.opt_str("unit")?.unwrap_or("");
    let known = UNITS.into_iter().find(|u| *u == named);
    known.ok_or_else(|| toml.error_of("unit", "wanted %, ms, mJ, 1/s or none"))
}

fn case(toml: &Toml<'_>, table: &Table) -> Result<Case, InputError> {
    toml.only(&["name", "vary", "metric", "sum", "at"])?;
    let before = || table.cases.iter().map(|c| &c.name);
    let sum: Vec<usize> = words(toml.opt_str("sum")?)
        .map(|name| place(toml, "sum", name, before()))
        .collect::<Result<_, _>>()?;
    if sum.iter().any(|i| !table.cases[*i].sum.is_empty()) {
        return Err(toml.error_of("sum", "has a sum in it: wanted cases that are run"));
    }
    if let Some(key) = ["vary", "metric"].into_iter().find(|key| !sum.is_empty() && toml.has(key)) {
        return Err(toml.error_of(key, "is of no use beside `sum`: nothing is run"));
    }
    let vary = match sum.is_empty() {
        true => vary(toml, "vary", toml.str("vary")?)?,
        false => Vary::new(),
    };
    let at = match toml.has("at") {
        true => Some(number(toml, "at")?.value),
        false => None,
    };
    if at.is_some_and(|at| at <= 0.0) {
        return Err(toml.error_of("at", "wanted more than 0"));
    }
    let metric = toml.opt_str("metric")?.map(str::to_string);
    Ok(Case { name: toml.str("name")?.to_string(), vary, metric, sum, at, fit: false })
}

fn column(toml: &Toml<'_>, table: &Table) -> Result<Column, InputError> {
    toml.only(&["name", "vary", "fit", "published", "stdev"])?;
    let names: Vec<&str> = table.quantities.iter().map(|q| q.name.as_str()).collect();
    let rows = toml.opt_table("published")?;
    let stdev = toml.opt_table("stdev")?;
    for rows in [&rows, &stdev].into_iter().flatten() {
        rows.only(&names)?;
    }
    if stdev.is_some() && rows.is_none() {
        return Err(toml.error_of("stdev", "of what? The column has nothing `published`"));
    }
    // What is published of the last sums may be left to their cases.
    let numbers = |rows: &Option<Toml<'_>>, q: &CellQuantity| {
        let Some(rows) = rows else { return Ok(Vec::new()) };
        let numbers = rows.numbers(&q.name)?;
        let runs = table.cases.iter().rposition(|c| c.sum.is_empty()).map_or(0, |last| last + 1);
        match (runs..=table.cases.len()).contains(&numbers.len()) {
            true => Ok(numbers),
            false => {
                let what = format!("{} numbers, of {} cases", numbers.len(), table.cases.len());
                Err(rows.error_of(&q.name, what))
            }
        }
    };
    Ok(Column {
        name: toml.str("name")?.to_string(),
        vary: vary(toml, "vary", toml.str("vary")?)?,
        fit: toml.opt_bool("fit")?.unwrap_or(true) && rows.is_some(),
        published: table.quantities.iter().map(|q| numbers(&rows, q)).collect::<Result<_, _>>()?,
        stdev: table.quantities.iter().map(|q| numbers(&stdev, q)).collect::<Result<_, _>>()?,
    })
}

fn columns(toml: &Toml<'_>, key: &'static str, table: &Table) -> Result<Vec<usize>, InputError> {
    let names = table.columns.iter().map(|c| &c.name);
    words(toml.opt_str(key)?).map(|name| place(toml, key, name, names.clone())).collect()
}

fn cases(toml: &Toml<'_>, table: &Table) -> Result<Vec<usize>, InputError> {
    let names = table.cases.iter().map(|c| &c.name);
    words(toml.opt_str("cases")?).map(|name| place(toml, "cases", name, names.clone())).collect()
}

fn free(toml: &Toml<'_>, table: &Table) -> Result<Free, InputError> {
    toml.only(&["name", "values", "columns", "cases", "why"])?;
    let values: Vec<String> = words(Some(toml.str("values")?)).map(str::to_string).collect();
    if values.len() < 2 {
        return Err(toml.error_of("values", "wants at least two: what has one value is not free"));
    }
    Ok(Free {
        name: toml.str("name")?.to_string(),
        values,
        columns: columns(toml, "columns", table)?,
        cases: cases(toml, table)?,
        why: toml.str("why")?.to_string(),
    })
}

const CHECK: &[&str] = &[
    "id",
    "what",
    "quantity",
    "column",
    "than",
    "cases",
    "cells",
    "apart",
    "is",
    "published",
    "within",
    "from",
    "counted",
    "note",
];

fn check(toml: &Toml<'_>, table: &Table, whose: Origin) -> Result<Check, InputError> {
    toml.only(CHECK)?;
    let names = || table.columns.iter().map(|c| &c.name);
    let column = |key| place(toml, key, toml.str(key)?, names());
    let published = |key| {
        let at = column(key)?;
        match table.columns[at].published.iter().any(Vec::is_empty) {
            true => Err(toml.error_of(key, "is a column of which nothing is published")),
            false => Ok(at),
        }
    };
    let some_cases = || cases(toml, table);
    let one_case = || match some_cases()?[..] {
        [case] => Ok(case),
        _ => Err(toml.error_of("cases", "wants one case")),
    };
    let quantities = table.quantities.iter().map(|q| &q.name);
    let quantity = place(toml, "quantity", toml.str("quantity")?, quantities)?;
    let spread = |key| {
        let at = published(key)?;
        match table.columns[at].stdev[quantity].is_empty() {
            true => Err(toml.error_of(key, "is a column without `stdev`")),
            false => Ok(at),
        }
    };
    let what = match toml.str("what")? {
        "median_error" => What::MedianError(published("column")?),
        "largest_error" => What::LargestError(published("column")?),
        "order" => What::Order(number(toml, "apart")?),
        "above" => What::Above(column("column")?, column("than")?, some_cases()?),
        "cells" => What::Cells(cells(toml, table)?),
        "most" => What::Most(one_case()?, columns(toml, "column", table)?),
        "gain_error" => What::GainError(published("column")?, published("than")?, some_cases()?),
        "proportional" if table.cases.iter().any(|c| c.at.is_none()) => {
            return Err(toml.error_of("what", "wants `at` of every case"));
        }
        "proportional" => What::Proportional(column("column")?),
        "ratio" => What::Ratio(spread("column")?, spread("than")?, some_cases()?),
        "side" => What::Side(spread("column")?, spread("than")?, some_cases()?),
        "cell" => What::Cell(column("column")?, one_case()?),
        "times" => What::Times(column("column")?, column("than")?, one_case()?),
        other => {
            let wanted = What::NAMES.join(", ");
            let what = format!("is \"{}\", wanted one of {wanted}", one_line(other));
            return Err(toml.error_of("what", what));
        }
    };
    // What a ratio has to be follows from what is published.
    let (relation, bound) = if let What::Ratio(..) = what {
        if let Some(key) = ["is", "published"].into_iter().find(|key| toml.has(key)) {
            return Err(toml.error_of(key, "is of no use here: the columns say what a ratio is"));
        }
        (Relation::Equal, Decimal { value: 0.0, digits: 0 })
    } else {
        let relation = match toml.str("is")? {
            "at_least" => Relation::AtLeast,
            "at_most" => Relation::AtMost,
            "equal" if toml.has("within") => Relation::Equal,
            _ => {
                return Err(toml.error_of("is", "wanted at_least, at_most, or equal with `within`"));
            }
        };
        (relation, number(toml, "published")?)
    };
    let within = match toml.has("within") {
        true => number(toml, "within")?.value,
        false => 0.0,
    };
    if within < 0.0 {
        return Err(toml.error_of("within", "wanted 0 or more"));
    }
    Ok(Check {
        within,
        origin: origin(toml, whose)?,
        id: checked_name(toml, "id", toml.str("id")?)?,
        what,
        quantity,
        published: bound,
        relation,
        counted: toml.opt_bool("counted")?.unwrap_or(true),
        note: toml.opt_str("note")?.unwrap_or("").to_string(),
    })
}

/// `case:column<than …`.
fn cells(toml: &Toml<'_>, table: &Table) -> Result<Vec<(usize, usize, usize)>, InputError> {
    let cell = |word: &str| {
        let parts = word.split_once(':').and_then(|(case, order)| {
            let (column, than) = order.split_once('<')?;
            Some((case, column, than))
        });
        let Some((case, column, than)) = parts else {
            let what = format!("\"{}\" is no `case:column<column`", one_line(word));
            return Err(toml.error_of("cells", what));
        };
        let names = || table.columns.iter().map(|c| &c.name);
        Ok((
            place(toml, "cells", case, table.cases.iter().map(|c| &c.name))?,
            place(toml, "cells", column, names())?,
            place(toml, "cells", than, names())?,
        ))
    };
    words(toml.opt_str("cells")?).map(cell).collect()
}

fn number(toml: &Toml<'_>, key: &'static str) -> Result<Decimal, InputError> {
    match toml.cell(key)? {
        Cell::Number(n) => Ok(n),
        Cell::Text(_) => Err(toml.error_of(key, "is text, wanted a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;

    const TABLE: &str = r#"schema = 1
name = "t"
source = "nobody"
[[figure]]
id = "f"
place = "p"
platform = "m1"
workload = "rampup"
[figure.table]
fit = "a"
quantity = [{ name = "share", metric = "rampup.debt", between = ["hz=100", "hz=1000"], unit = "%" }]
case = [{ name = "a", vary = "rampup.run=1000" }, { name = "b", vary = "" }]
[[figure.table.column]]
name = "x"
vary = "governor=performance rate_limit_us=10"
published = { share = [1.50, -2] }
[[figure.table.column]]
name = "y"
vary = ""
fit = false
published = { share = [3, 4] }
[[figure.table.free]]
name = "seconds"
values = "1 2"
columns = "y"
why = "it does not say"
[[figure.table.check]]
id = "c"
what = "cells"
cells = "b:x<y"
quantity = "share"
is = "at_least"
published = 1
"#;

    fn parse(text: &str) -> Result<Table, String> {
        let study = Study::parse(text, "t.toml").map_err(|e| e.to_string())?;
        Ok(study.figures.into_iter().next().and_then(|f| f.table).expect("it has one"))
    }

    #[test]
    fn a_table_is_what_its_file_says() {
        let t = parse(TABLE).expect("it is one");
        assert_eq!(t.cases.iter().map(|c| c.fit).collect::<Vec<_>>(), [true, false]);
        assert_eq!(t.columns[0].vary[1], ("rate_limit_us".into(), "10".into()));
        assert_eq!(t.columns[0].published[0][0], Decimal { value: 1.5, digits: 2 });
        assert_eq!((t.free[0].columns.clone(), t.columns[1].fit), (vec![1], false));
        assert_eq!(t.checks[0].what, What::Cells(vec![(1, 0, 1)]));
        let ends = t.quantities[0].between.clone().expect("two references");
        assert_eq!(ends[1], [("hz".to_string(), "1000".to_string())]);
    }

    #[test]
    fn a_column_of_which_nothing_is_published_is_only_printed() {
        let text = TABLE.replace("published = { share = [3, 4] }\n", "");
        let t = parse(&text.replace("fit = false\n", "")).expect("it is one");
        assert_eq!((t.columns[1].published[0].len(), t.columns[1].fit), (0, false));
        let judged =
            text.replace("\"cells\"\ncells = \"b:x<y\"", "\"median_error\"\ncolumn = \"y\"");
        let e = parse(&judged).expect_err("nothing to hold it to");
        assert!(e.contains("nothing is published"), "{e}");
    }

    #[test]
    fn sums_and_deviations_are_what_the_file_says() {
        let text = TABLE
            .replace(r#"vary = "" }]"#, r#"vary = "", metric = "energy" }, { name = "all", sum = "a b" }]"#)
            .replace("published = { share = [3, 4] }", "published = { share = [3, 4, 7] }\nstdev = { share = [1, 2] }")
            .replace(r#"columns = "y""#, r#"cases = "b""#)
            .replace(
                "what = \"cells\"\ncells = \"b:x<y\"\nquantity = \"share\"\nis = \"at_least\"\npublished = 1\n",
                "what = \"ratio\"\ncolumn = \"y\"\nthan = \"y\"\nquantity = \"share\"\n",
            );
        let t = parse(&text).expect("it is one");
        assert_eq!(
            (t.cases[2].sum.clone(), t.cases[1].metric.as_deref()),
            (vec![0, 1], Some("energy"))
        );
        assert_eq!(t.columns[1].stdev[0][1], Decimal { value: 2.0, digits: 0 });
        assert_eq!((t.free[0].cases.clone(), t.free[0].columns.len()), (vec![1], 0));
        // Of the last sums nothing has to be published.
        assert_eq!((t.columns[0].published[0].len(), t.columns[1].published[0].len()), (2, 3));
        assert_eq!(
            (t.checks[0].what.clone(), t.checks[0].relation),
            (What::Ratio(1, 1, vec![]), Relation::Equal)
        );
        for (right, wrong, said) in [
            (r#"sum = "a b""#, r#"sum = "a all""#, "\"all\" is none of a, b"),
            (r#"sum = "a b""#, r#"sum = "a b", vary = "hz=100""#, "of no use beside `sum`"),
            ("\nstdev = { share = [1, 2] }", "\nstdev = { share = [1] }", "1 numbers, of 3 cases"),
            ("\nstdev = { share = [1, 2] }", "", "is a column without `stdev`"),
            ("than = \"y\"\n", "than = \"y\"\npublished = 1\n", "the columns say what a ratio is"),
            (r#"cases = "b""#, r#"cases = "c""#, "\"c\" is none of a, b, all"),
        ] {
            let text = text.replacen(right, wrong, 1);
            let e = parse(&text).expect_err(wrong);
            assert!(e.starts_with("t.toml:") && e.contains(said), "{wrong}: {e}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_table_is_told_with_its_place() {
        for (right, wrong, said) in [
            (r#"fit = "a""#, r#"fit = "c""#, "\"c\" is none of a, b"),
            ("[1.50, -2]", "[1.50]", "1 numbers, of 2 cases"),
            ("[1.50, -2]", "[1.50, \"x\"]", "wanted a plain number"),
            ("share = [3, 4]", "shear = [3, 4]", "shear"),
            ("rampup.run=1000", "rampup.run", "is no `name=value`"),
            (r#"["hz=100", "hz=1000"]"#, r#"["hz=100"]"#, "wants what is 0 % and what is 100 %"),
            (r#"values = "1 2""#, r#"values = "1""#, "what has one value is not free"),
            (r#"columns = "y""#, r#"columns = "z""#, "\"z\" is none of x, y"),
            ("b:x<y", "b:x", "is no `case:column<column`"),
            (r#"what = "cells""#, r#"what = "sells""#, "wanted one of median_error"),
            (r#"is = "at_least""#, r#"is = "equal""#, "wanted at_least, at_most, or equal"),
            ("published = 1\n", "published = 1\nwithin = -1\n", "wanted 0 or more"),
            (r#"what = "cells""#, "what = \"cell\"\ncolumn = \"x\"", "wants one case"),
            ("published = 1\n", "published = \"1\"\n", "is text, wanted a number"),
            (r#"unit = "%""#, r#"unit = "s""#, "wanted %, ms, mJ, 1/s or none"),
            (r#"unit = "%""#, r#"scale = "figure""#, "is of no use beside `between`"),
            (
                r#"between = ["hz=100", "hz=1000"]"#,
                r#"scale = "x""#,
                "wanted figure, inverse or run",
            ),
            (r#"vary = "" }"#, r#"vary = "", at = 0 }"#, "wanted more than 0"),
            (r#"unit = "%""#, r#"scale_by = "case""#, "is of no use without `scale`"),
            (
                r#"between = ["hz=100", "hz=1000"]"#,
                r#"scale = "figure", scale_by = "column""#,
                "wanted table or case",
            ),
            (r#"unit = "%""#, r#"stdev = "ms""#, "wanted % or unit"),
            (
                "fit = false\npublished = { share = [3, 4] }",
                "stdev = { share = [3, 4] }",
                "of what?",
            ),
            (
                r#"what = "cells""#,
                "what = \"proportional\"\ncolumn = \"x\"",
                "wants `at` of every case",
            ),
            (r#"workload = "rampup""#, "", "without a `workload`"),
        ] {
            let text = TABLE.replacen(right, wrong, 1);
            assert_ne!(text, TABLE, "{right}");
            let e = parse(&text).expect_err(wrong);
            assert!(e.starts_with("t.toml:") && e.contains(said), "{wrong}: {e}");
        }
    }
}
