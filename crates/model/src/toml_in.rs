//! A TOML file read strictly: every key is asked for or is an error, numbers are whole and
//! within a range, and each error says line, column and what was meant to be there.
//!
//! Hand-written over the parser's spanned tree rather than derived: a derived reader says
//! "invalid type" where a person needs "domain 2: opp 3: `freq_khz` is 0".

use crate::decimal::Decimal;
use crate::input::{lower_first, meant, one_line, place, printable};
use crate::{Code, InputError};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// A parsed file.
pub(crate) struct Doc<'a> {
    file: &'a str,
    text: &'a str,
    root: Spanned<DeTable<'a>>,
}

/// A table of the file and what a reader would call it (`domain 2: opp 3`; empty: the file).
pub(crate) struct Table<'d> {
    doc: &'d Doc<'d>,
    what: String,
    at: usize,
    map: &'d DeTable<'d>,
}

impl<'a> Doc<'a> {
    /// `text` as TOML; `file` is what errors call it.
    pub(crate) fn parse(text: &'a str, file: &'a str) -> Result<Doc<'a>, InputError> {
        let root = DeTable::parse(text).map_err(|e| {
            let span = e.span().unwrap_or(0..0);
            let mut what = lower_first(e.message());
            if let Some(key) = text.get(span.clone()).filter(|_| what == "duplicate key") {
                what = format!("`{}` is there twice", one_line(key));
            }
            InputError::new(place(file, text, span.start), printable(&what)).code(Code::Syntax)
        })?;
        Ok(Doc { file, text, root })
    }

    /// The top-level table.
    pub(crate) fn root(&'a self) -> Table<'a> {
        Table { doc: self, what: String::new(), at: 0, map: self.root.get_ref() }
    }
}

impl<'d> Table<'d> {
    /// Checks that no key but these is there; any other is an error that lists them. To be asked
    /// first, so that a mistyped key is not reported as a missing one.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), InputError> {
        for key in self.map.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let what = format!("unknown field `{}`", one_line(name));
            let hint = meant(name, known, &format!("known: {}", known.join(", ")));
            return Err(self.error_at(key.span().start, what).hint(hint).code(Code::UnknownName));
        }
        Ok(())
    }

    /// An error about this table, at its place.
    pub(crate) fn error(&self, what: impl AsRef<str>) -> InputError {
        self.error_at(self.at, what)
    }

    /// An error about `key` of this table, at the key's value (or the table, if absent).
    pub(crate) fn error_of(&self, key: &str, what: impl AsRef<str>) -> InputError {
        let at = self.map.get(key).map_or(self.at, |v| v.span().start);
        self.error_at(at, format!("`{key}` {}", what.as_ref()))
    }

    /// The place of `key` of this table: `file:line:column`.
    pub(crate) fn place_of(&self, key: &str) -> String {
        let at = self.map.get_key_value(key).map_or(self.at, |(key, _)| key.span().start);
        place(self.doc.file, self.doc.text, at)
    }

    fn error_at(&self, at: usize, what: impl AsRef<str>) -> InputError {
        let sep = if self.what.is_empty() { "" } else { ": " };
        InputError::new(
            place(self.doc.file, self.doc.text, at),
            format!("{}{sep}{}", self.what, what.as_ref()),
        )
    }

    fn get(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.map.get(key)
    }

    fn missing(&self, key: &str) -> InputError {
        self.error(format!("`{key}` is missing"))
    }

    fn wrong_type(&self, key: &str, found: &DeValue<'_>, wanted: &str) -> InputError {
        self.error_of(key, format!("is {}, wanted {wanted}", describe(found)))
    }

    /// Reads a text; `None` if the key is absent.
    pub(crate) fn opt_str(&self, key: &'static str) -> Result<Option<&'d str>, InputError> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong_type(key, other, "text")),
        }
    }

    /// Reads a text; an error if the key is absent.
    pub(crate) fn str(&self, key: &'static str) -> Result<&'d str, InputError> {
        self.opt_str(key)?.ok_or_else(|| self.missing(key))
    }

    /// `true` or `false`; `None` if the key is absent.
    pub(crate) fn opt_bool(&self, key: &'static str) -> Result<Option<bool>, InputError> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::Boolean(b)) => Ok(Some(*b)),
            Some(other) => Err(self.wrong_type(key, other, "true or false")),
        }
    }

    /// A whole number from `low` to `high`; `None` if the key is absent.
    pub(crate) fn opt_int(
        &self,
        key: &'static str,
        low: u64,
        high: u64,
    ) -> Result<Option<u64>, InputError> {
        let Some(value) = self.get(key).map(Spanned::get_ref) else { return Ok(None) };
        let wanted = || match low == high {
            true => low.to_string(),
            false => format!("a whole number from {low} to {high}"),
        };
        let DeValue::Integer(n) = value else {
            return Err(self.wrong_type(key, value, &wanted()));
        };
        match integer(n) {
            Some(n) if u64::try_from(n).is_ok_and(|n| (low..=high).contains(&n)) => {
                Ok(Some(n as u64))
            }
            _ => Err(self.error_of(key, format!("is {}, wanted {}", written(n), wanted()))),
        }
    }

    /// A whole number from `low` to `high`.
    pub(crate) fn int(&self, key: &'static str, low: u64, high: u64) -> Result<u64, InputError> {
        self.opt_int(key, low, high)?.ok_or_else(|| self.missing(key))
    }

    /// A table; `None` if the key is absent.
    pub(crate) fn opt_table(&self, key: &'static str) -> Result<Option<Table<'d>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(map) => Ok(Some(self.child(key, value.span().start, map))),
            other => Err(self.wrong_type(key, other, "a table")),
        }
    }

    /// A list of tables, which errors call `name 1`, `name 2`, …; `None` if absent.
    pub(crate) fn opt_tables(
        &self,
        key: &'static str,
        name: &str,
    ) -> Result<Option<Vec<Table<'d>>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.wrong_type(
                key,
                value.get_ref(),
                &format!("a list of tables, as by `[[{key}]]`"),
            ));
        };
        let mut tables = Vec::new();
        for (i, item) in list.iter().enumerate() {
            let name = format!("{name} {}", i + 1);
            let DeValue::Table(map) = item.get_ref() else {
                let found = describe(item.get_ref());
                let what = format!("{name} is {found}, wanted a table");
                return Err(self.error_at(item.span().start, what));
            };
            tables.push(self.child(&name, item.span().start, map));
        }
        Ok(Some(tables))
    }

    /// A list of texts, or one table; `None` if the key is absent.
    pub(crate) fn opt_texts_or_table(
        &self,
        key: &'static str,
    ) -> Result<Option<TextsOrTable<'d>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = match value.get_ref() {
            DeValue::Table(map) => {
                return Ok(Some(TextsOrTable::Table(self.child(key, value.span().start, map))));
            }
            DeValue::Array(list) => list,
            other => return Err(self.wrong_type(key, other, "a list of texts or a table")),
        };
        let text = |item: &'d Spanned<DeValue<'d>>| match item.get_ref() {
            DeValue::String(s) => Ok(&**s),
            other => Err(self.wrong_type(key, other, "text in its list")),
        };
        Ok(Some(TextsOrTable::Texts(list.iter().map(text).collect::<Result<_, _>>()?)))
    }

    /// A list of lists of whole numbers from `low` to `high`; `None` if the key is absent.
    pub(crate) fn opt_matrix(
        &self,
        key: &'static str,
        low: u64,
        high: u64,
    ) -> Result<Option<Vec<Vec<u64>>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = |found: &DeValue<'_>| {
            let wanted = format!("rows of whole numbers from {low} to {high}");
            self.wrong_type(key, found, &wanted)
        };
        let number = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Integer(n) => integer(n)
                .and_then(|n| u64::try_from(n).ok())
                .filter(|n| (low..=high).contains(n))
                .ok_or_else(|| wrong(item.get_ref())),
            other => Err(wrong(other)),
        };
        let row = |row: &Spanned<DeValue<'_>>| match row.get_ref() {
            DeValue::Array(row) => row.iter().map(number).collect(),
            other => Err(wrong(other)),
        };
        match value.get_ref() {
            DeValue::Array(rows) => rows.iter().map(row).collect::<Result<_, _>>().map(Some),
            other => Err(wrong(other)),
        }
    }

    /// A list of whole numbers from `low` to `high`, at least one.
    pub(crate) fn ints(
        &self,
        key: &'static str,
        low: u64,
        high: u64,
    ) -> Result<Vec<u64>, InputError> {
        let value = self.get(key).ok_or_else(|| self.missing(key))?;
        let wanted = format!("a list of whole numbers from {low} to {high}");
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.wrong_type(key, value.get_ref(), &wanted));
        };
        let number = |item: &Spanned<DeValue<'_>>| {
            let found = match item.get_ref() {
                DeValue::Integer(n) => integer(n).and_then(|n| u64::try_from(n).ok()),
                _ => None,
            };
            found.filter(|n| (low..=high).contains(n)).ok_or_else(|| {
                let what = format!("holds what is no whole number from {low} to {high}");
                self.error_at(item.span().start, format!("`{key}` {what}"))
            })
        };
        list.iter().map(number).collect()
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A number or text.
    pub(crate) fn cell(&self, key: &'static str) -> Result<Cell<'d>, InputError> {
        let value = self.get(key).ok_or_else(|| self.missing(key))?;
        self.as_cell(key, value.get_ref())
    }

    /// A list of plain numbers; none if the key is absent.
    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<Decimal>, InputError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.wrong_type(key, value.get_ref(), "a list of numbers"));
        };
        let number = |item: &Spanned<DeValue<'_>>| {
            decimal(item.get_ref())
                .ok_or_else(|| self.wrong_type(key, item.get_ref(), "a plain number in its list"))
        };
        list.iter().map(number).collect()
    }

    fn as_cell(&self, key: &str, value: &'d DeValue<'d>) -> Result<Cell<'d>, InputError> {
        match value {
            DeValue::String(s) => Ok(Cell::Text(s)),
            value => match decimal(value) {
                Some(number) => Ok(Cell::Number(number)),
                None => Err(self.wrong_type(key, value, "a plain number or text")),
            },
        }
    }

    /// A list of pairs of cells and of tables, which errors call `name 1`, `name 2`, …; `None` if
    /// absent.
    pub(crate) fn opt_items(
        &self,
        key: &'static str,
        name: &str,
    ) -> Result<Option<Vec<Item<'d>>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.wrong_type(key, value.get_ref(), "a list"));
        };
        let mut items = Vec::new();
        for (i, item) in list.iter().enumerate() {
            let name = format!("{name} {}", i + 1);
            items.push(match item.get_ref() {
                DeValue::Table(map) => Item::Table(self.child(&name, item.span().start, map)),
                DeValue::Array(pair) if pair.len() == 2 => Item::Pair(
                    self.as_cell(key, pair[0].get_ref())?,
                    self.as_cell(key, pair[1].get_ref())?,
                ),
                other => {
                    let what = format!("{name} is {}, wanted a pair or a table", describe(other));
                    return Err(self.error_at(item.span().start, what));
                }
            });
        }
        Ok(Some(items))
    }

    fn child(&self, name: &str, at: usize, map: &'d DeTable<'d>) -> Table<'d> {
        let sep = if self.what.is_empty() { "" } else { ": " };
        let what = [self.what.as_str(), sep, name].concat();
        Table { doc: self.doc, what, at, map }
    }

    /// The keys of a table whose keys are free, in alphabetical order, with their values:
    /// text or whole number.
    pub(crate) fn scalars(&self) -> Result<Vec<(&'d str, Scalar<'d>)>, InputError> {
        let mut all = Vec::new();
        for (key, value) in self.map {
            let key: &'d str = key.get_ref();
            let wanted = "a whole number or text";
            let scalar = match value.get_ref() {
                DeValue::String(s) => Scalar::Text(s),
                DeValue::Integer(n) => Scalar::Int(integer(n).ok_or_else(|| {
                    self.error_of(key, format!("is {}, too big a number", written(n)))
                })?),
                other => return Err(self.wrong_type(key, other, wanted)),
            };
            all.push((key, scalar));
        }
        Ok(all)
    }
}

/// A list of texts, or one table in its place.
pub(crate) enum TextsOrTable<'d> {
    /// `["…", "…"]`.
    Texts(Vec<&'d str>),
    /// `{ … }`.
    Table(Table<'d>),
}

/// A value of a table with free keys.
pub(crate) enum Scalar<'d> {
    /// Text.
    Text(&'d str),
    /// A whole number.
    Int(i64),
}

/// A number, or text.
pub(crate) enum Cell<'d> {
    /// Text.
    Text(&'d str),
    /// A number as written.
    Number(Decimal),
}

/// An item of a list: a pair, or a table where there is more to say.
pub(crate) enum Item<'d> {
    /// `[a, b]`.
    Pair(Cell<'d>, Cell<'d>),
    /// `{ … }`.
    Table(Table<'d>),
}

/// A number with its digits after the point; `None`: not a number, or not plainly written.
fn decimal(value: &DeValue<'_>) -> Option<Decimal> {
    /// Beyond this a double no longer holds a thousandth.
    const LIMIT: f64 = 1e12;
    let decimal = match value {
        DeValue::Integer(n) => Decimal { value: integer(n)? as f64, digits: 0 },
        DeValue::Float(f) => {
            let text = f.as_str();
            let plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
            if !text.chars().all(plain) {
                return None;
            }
            let digits = text.split_once('.')?.1.len();
            Decimal { value: text.parse().ok()?, digits: u8::try_from(digits).ok()? }
        }
        _ => return None,
    };
    (decimal.value.abs() <= LIMIT && decimal.digits <= 9).then_some(decimal)
}

/// The value of an integer as written; `None`: it does not fit 64 bits.
fn integer(n: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(n.as_str(), n.radix()).ok()
}

/// An integer as a person would recognise it in a message.
fn written(n: &DeInteger<'_>) -> String {
    integer(n).map_or_else(|| one_line(n.as_str()), |n| n.to_string())
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("the text \"{}\"", one_line(s)),
        DeValue::Integer(n) => format!("the number {}", written(n)),
        DeValue::Float(f) => format!("the fraction {}", one_line(f.as_str())),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(_) => "a date".to_string(),
        DeValue::Array(_) => "a list".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}

/// `s` as a TOML basic string, quotes included.
pub(crate) fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `s` as a TOML key: bare where that is allowed.
pub(crate) fn key(s: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !s.is_empty() && s.chars().all(bare) { s.to_string() } else { quote(s) }
}
