//! JSON read strictly: typed values within bounds, each error with line and column.
//!
//! The parser keeps repeated keys and gives up at a nesting of 512, so neither duplicates nor
//! brackets need care of their own here.

use super::omitted::Filled;
use crate::input::{line_column_after, lower_first, meant, one_line};
use crate::{Code, InputError};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use risetime_kernel::units::Span;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Longest time of one event, in µs: 11 days.
pub(super) const MAX_US: i64 = 1_000_000_000_000;
/// Longest name of a task or phase, in characters.
const MAX_NAME: usize = 200;

/// A file being read.
pub(super) struct Reader<'a> {
    /// Name of the file in errors.
    pub(super) file: &'a str,
    /// Text of the file, as it stands.
    pub(super) original: &'a str,
    /// Text of the file, with the values that may be left out filled in.
    pub(super) filled: &'a Filled<'a>,
    /// Beginning and number of the line that was asked for last.
    seen: Cell<(usize, u32)>,
}

impl<'a> Reader<'a> {
    /// A reader of `original`, which errors call `file`.
    pub(super) fn new(file: &'a str, original: &'a str, filled: &'a Filled<'a>) -> Reader<'a> {
        Reader { file, original, filled, seen: Cell::new((0, 1)) }
    }

    /// An error at a place of the file.
    pub(super) fn error(&self, at: &impl Ranged, what: impl Into<String>) -> InputError {
        InputError::new(self.place(at), what)
    }

    /// `file:line:column` of something.
    pub(super) fn place(&self, at: &impl Ranged) -> String {
        let (line, column) = self.line_column(at);
        format!("{}:{line}:{column}", self.file)
    }

    /// The line and column of something in the file, from 1.
    pub(super) fn line_column(&self, at: &impl Ranged) -> (u32, u32) {
        let mut seen = self.seen.get();
        let offset = self.filled.original(at.range().start);
        let found = line_column_after(self.original, &mut seen, offset);
        self.seen.set(seen);
        found
    }

    /// The file as a tree.
    ///
    /// Errors: not JSON with comments and trailing commas; nothing there.
    pub(super) fn tree(&self) -> Result<Value<'a>, InputError> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        match parse_to_ast(&self.filled.text, &CollectOptions::default(), &options) {
            Ok(parsed) => parsed.value.ok_or_else(|| {
                InputError::new(self.file, "is empty, wanted a JSON object with `tasks`")
                    .code(Code::Syntax)
            }),
            Err(e) => Err(self.error(&e.range(), syntax(e.kind())).code(Code::Syntax)),
        }
    }

    /// A time in µs.
    pub(super) fn us(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Span, InputError> {
        let us = self.whole(&prop.value, prop.name.as_str(), what, 0..=MAX_US, " µs")?;
        Ok(Span::from_us(us as u64))
    }

    /// A whole number within `range`.
    pub(super) fn int(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
        range: RangeInclusive<i64>,
    ) -> Result<i64, InputError> {
        self.whole(&prop.value, prop.name.as_str(), what, range, "")
    }

    /// A whole number within `range`, which a message gives in `unit`.
    pub(super) fn whole(
        &self,
        value: &Value<'a>,
        key: &str,
        what: &str,
        range: RangeInclusive<i64>,
        unit: &str,
    ) -> Result<i64, InputError> {
        let found = match value {
            Value::NumberLit(n) => match n.value.parse() {
                Ok(n) if range.contains(&n) => return Ok(n),
                _ => one_line(n.value),
            },
            other => describe(other),
        };
        let (key, low, high) = (one_line(key), range.start(), range.end());
        let wanted = format!("wanted a whole number from {low} to {high}{unit}");
        Err(self.error(value, format!("{what}: `{key}` is {found}, {wanted}")))
    }

    /// Reads a text.
    pub(super) fn string<'v>(
        &self,
        prop: &'v ObjectProp<'a>,
        what: &str,
    ) -> Result<&'v str, InputError> {
        match &prop.value {
            Value::StringLit(s) => Ok(&s.value),
            other => Err(self.wrong(prop, what, other, "text")),
        }
    }

    /// An object; `what` is what a message calls it.
    pub(super) fn object<'v>(
        &self,
        value: &'v Value<'a>,
        what: &str,
    ) -> Result<&'v Object<'a>, InputError> {
        match value {
            Value::Object(o) => Ok(o),
            other => Err(self
                .error(other, format!("{what} is {}, wanted an object {{ … }}", describe(other)))),
        }
    }

    /// The name of a task or phase.
    pub(super) fn name(&self, prop: &ObjectProp<'a>, kind: &str) -> Result<String, InputError> {
        let name = prop.name.as_str();
        if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control)
        {
            let what = format!(
                "a {kind} is called \"{}\", wanted 1 to {MAX_NAME} printable characters",
                one_line(name)
            );
            return Err(self.error(&prop.name, what));
        }
        Ok(name.to_string())
    }

    /// Checks that no key for which `single` holds is there twice.
    pub(super) fn once(
        &self,
        object: &Object<'a>,
        what: &str,
        single: impl Fn(&str) -> bool,
    ) -> Result<(), InputError> {
        let mut seen = BTreeSet::new();
        for prop in &object.properties {
            let key = prop.name.as_str();
            if single(key) && !seen.insert(key) {
                let what = format!("{what} has `{}` twice", one_line(key));
                return Err(self.error(&prop.name, what));
            }
        }
        Ok(())
    }

    /// The error for a value of the wrong type.
    pub(super) fn wrong(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
        found: &Value<'a>,
        wanted: &str,
    ) -> InputError {
        let key = one_line(prop.name.as_str());
        self.error(found, format!("{what}: `{key}` is {}, wanted {wanted}", describe(found)))
    }

    /// The error for a key that nobody knows.
    pub(super) fn unknown(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
        key: &str,
        known: &[&str],
    ) -> InputError {
        let hint = meant(key, known, &format!("known: {}", known.join(", ")));
        self.error(&prop.name, format!("{what}unknown key `{}`", one_line(key)))
            .hint(hint)
            .code(Code::UnknownName)
    }
}

/// Words a syntax error, where the parser's own words are not plain enough.
fn syntax(kind: &ParseErrorKind) -> String {
    match kind {
        ParseErrorKind::UnterminatedObject => "the object that starts here has no end".into(),
        ParseErrorKind::UnterminatedArray => "the list that starts here has no end".into(),
        ParseErrorKind::NestingDepthExceeded => "brackets within brackets, over 500 deep".into(),
        other => lower_first(&other.to_string()),
    }
}

/// Describes a value, for a message.
pub(super) fn describe(value: &Value<'_>) -> String {
    match value {
        Value::StringLit(s) => format!("the text \"{}\"", one_line(&s.value)),
        Value::NumberLit(n) => format!("the number {}", one_line(n.value)),
        Value::BooleanLit(b) => b.value.to_string(),
        Value::Object(_) => "an object".to_string(),
        Value::Array(_) => "a list".to_string(),
        Value::NullKeyword(_) => "null".to_string(),
    }
}
