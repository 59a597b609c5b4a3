//! JSON as this crate lays it out: written piece by piece, so that of a long list one record at a time is in memory.

use serde_json::Value;
use std::io::{self, Write};

/// The longest record that stays on one line, in bytes.
const ONE_LINE: usize = 96;

/// An object or a list that is written piece by piece, in the layout of [`nest`].
pub(super) struct Writer<'a> {
    out: &'a mut dyn Write,
    depth: usize,
    empty: bool,
}

/// Writes one object.
pub(super) fn stream(
    out: &mut dyn Write,
    body: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut page = Writer { out: &mut *out, depth: 0, empty: true };
    page.within("{}", body)?;
    out.write_all(b"\n")
}

impl Writer<'_> {
    /// Writes brackets, and between them what `body` writes.
    fn within(
        &mut self,
        brackets: &str,
        body: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (open, close) = brackets.split_at(1);
        self.out.write_all(open.as_bytes())?;
        let mut inner = Writer { out: &mut *self.out, depth: self.depth, empty: true };
        body(&mut inner)?;
        if !inner.empty {
            self.out.write_all(format!("\n{}", " ".repeat(self.depth)).as_bytes())?;
        }
        self.out.write_all(close.as_bytes())
    }

    fn begin(&mut self, key: Option<&str>) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.empty) { "" } else { "," };
        let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
        let indent = " ".repeat(self.depth + 1);
        self.out.write_all(format!("{comma}\n{indent}{key}").as_bytes())
    }

    fn value(&mut self, value: &Value) -> io::Result<()> {
        let mut text = String::new();
        nest(value, self.depth + 1, &mut text);
        self.out.write_all(text.as_bytes())
    }

    pub(super) fn key(&mut self, key: &str, value: &Value) -> io::Result<()> {
        self.begin(Some(key))?;
        self.value(value)
    }

    pub(super) fn item(&mut self, value: &Value) -> io::Result<()> {
        self.begin(None)?;
        self.value(value)
    }

    /// A record that is text already.
    pub(super) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.begin(None)?;
        self.out.write_all(text.as_bytes())
    }

    pub(super) fn nested(
        &mut self,
        key: Option<&str>,
        brackets: &str,
        body: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begin(key)?;
        self.depth += 1;
        let done = self.within(brackets, body);
        self.depth -= 1;
        done
    }
}

/// Prints JSON with indentation, but a short record without inner lists stays on its line.
pub(super) fn print(value: &Value) -> String {
    let mut out = String::new();
    nest(value, 0, &mut out);
    out.push('\n');
    out
}

fn nest(value: &Value, depth: usize, out: &mut String) {
    let short = value.to_string();
    let (open, close, items): (_, _, Vec<(Option<&String>, &Value)>) = match value {
        Value::Object(map) if depth < 2 || short.len() > ONE_LINE => {
            ('{', '}', map.iter().map(|(k, v)| (Some(k), v)).collect())
        }
        Value::Array(list) if list.iter().any(Value::is_object) || short.len() > ONE_LINE => {
            ('[', ']', list.iter().map(|v| (None, v)).collect())
        }
        _ => return out.push_str(&short),
    };
    out.push(open);
    for (i, (key, item)) in items.into_iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n(' ', depth + 1));
        if let Some(key) = key {
            out.push_str(&Value::from(key.as_str()).to_string());
            out.push_str(": ");
        }
        nest(item, depth + 1, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', depth));
    out.push(close);
}
