//! A workload's file as a tree that can be changed and written again.
//!
//! ```text
//! text ── Tree::parse ──> Tree ── to_string ──> text that means the same
//! ```
//!
//! Keys that are repeated stay, in order: they are events. What may be left out (`suspend` without a
//! value) is filled in. Comments go.

use super::json::Reader;
use super::omitted;
use crate::InputError;
use crate::input::printable;
use jsonc_parser::ast::Value;
use std::fmt::{self, Display, Formatter, Write};

/// Width of a line that holds a whole object.
const WIDTH: usize = 100;

/// A value of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// An object: keys in order, repeated ones too.
    Object(Vec<(String, Tree)>),
    /// A list.
    List(Vec<Tree>),
    /// Text.
    Text(String),
    /// A number, or true, false, null, as it is written.
    Plain(String),
}

impl Tree {
    /// The tree of `text`; `place` is what errors call the text.
    ///
    /// Errors: it is no JSON. Whether it is a workload is not asked.
    pub fn parse(text: &str, place: &str) -> Result<Tree, InputError> {
        let file = printable(place);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let filled = omitted::fill(text);
        let reader = Reader::new(&file, text, &filled);
        Ok(of(&reader.tree()?))
    }

    /// A whole number.
    pub fn int(n: i64) -> Tree {
        Tree::Plain(n.to_string())
    }

    /// A text as a leaf of the tree.
    pub fn text(text: impl Into<String>) -> Tree {
        Tree::Text(text.into())
    }

    /// An object of these.
    pub fn object<K: Into<String>>(all: impl IntoIterator<Item = (K, Tree)>) -> Tree {
        Tree::Object(all.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// The value of the first such key; `None`: none, or no object.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        match self {
            Tree::Object(all) => all.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The whole number that it is.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Tree::Plain(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn on_one_line(&self, out: &mut String) {
        let (ends, items): ([&str; 2], Vec<(Option<&str>, &Tree)>) = match self {
            Tree::Plain(text) => return out.push_str(text),
            Tree::Text(text) => return quoted(text, out),
            Tree::List(all) => (["[", "]"], all.iter().map(|v| (None, v)).collect()),
            Tree::Object(all) => {
                (["{ ", " }"], all.iter().map(|(k, v)| (Some(k.as_str()), v)).collect())
            }
        };
        if items.is_empty() {
            return ends.iter().for_each(|end| out.push_str(end.trim()));
        }
        out.push_str(ends[0]);
        for (i, (key, value)) in items.into_iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            if let Some(key) = key {
                quoted(key, out);
                out.push_str(": ");
            }
            value.on_one_line(out);
        }
        out.push_str(ends[1]);
    }

    fn print(&self, indent: usize, head: usize, out: &mut String) {
        let mut line = String::new();
        self.on_one_line(&mut line);
        let fits = indent > 0 && indent + head + line.chars().count() < WIDTH;
        let Tree::Object(all) = self else { return out.push_str(&line) };
        if fits || all.is_empty() {
            return out.push_str(&line);
        }
        out.push('{');
        for (i, (key, value)) in all.iter().enumerate() {
            let _ = write!(out, "{}\n{}", if i == 0 { "" } else { "," }, " ".repeat(indent + 2));
            let before = out.len();
            quoted(key, out);
            out.push_str(": ");
            value.print(indent + 2, out.len() - before, out);
        }
        let _ = write!(out, "\n{}}}", " ".repeat(indent));
    }
}

/// Objects over several lines where one would be too long; no newline at the end.
impl Display for Tree {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.print(0, 0, &mut out);
        f.write_str(&out)
    }
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn of(value: &Value<'_>) -> Tree {
    match value {
        Value::StringLit(s) => Tree::Text(s.value.to_string()),
        Value::NumberLit(n) => Tree::Plain(n.value.to_string()),
        Value::BooleanLit(b) => Tree::Plain(b.value.to_string()),
        Value::NullKeyword(_) => Tree::Plain("null".into()),
        Value::Array(a) => Tree::List(a.elements.iter().map(of).collect()),
        Value::Object(o) => Tree::Object(
            o.properties.iter().map(|p| (p.name.as_str().into(), of(&p.value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Workload, library};

    #[test]
    fn what_is_written_again_means_the_same() {
        for entry in library::workloads() {
            let tree = Tree::parse(entry.text, entry.name).unwrap();
            let again = tree.to_string();
            let named = |text: &str| Workload {
                about: String::new(),
                places: Default::default(),
                ..Workload::parse(text, "w").unwrap()
            };
            assert_eq!(named(&again), named(entry.text), "{}", entry.name);
            assert_eq!(Tree::parse(&again, "w").unwrap(), tree, "{}", entry.name);
            assert!(again.lines().all(|l| l.chars().count() <= WIDTH + 2), "{again}");
        }
    }

    #[test]
    fn repeated_keys_left_out_values_and_odd_texts_stay() {
        let text = r#"{ "a\"\\\u0007": { "run": 1, "suspend", "run": 2, }, "l": [1, true, null, -2], "e": {} }"#;
        let tree = Tree::parse(text, "w").unwrap();
        let said = tree.to_string();
        assert_eq!(
            said,
            "{\n  \"a\\\"\\\\\\u0007\": { \"run\": 1, \"suspend\": \"\", \"run\": 2 },\n  \"l\": [1, true, null, -2],\n  \"e\": {}\n}"
        );
        assert_eq!(
            tree.get("l"),
            Some(&Tree::List(["1", "true", "null", "-2"].map(|t| Tree::Plain(t.into())).into()))
        );
        let e = Tree::parse("{ \"a\": }", "w.json").unwrap_err();
        assert!(e.place.starts_with("w.json:1:"), "{e}");
    }
}
