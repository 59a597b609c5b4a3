//! Placeholders of a template, which a script fills in before rt-app sees the file: `__DURATION__`, `__CPU__`, `__PVALUE__`,
//! `__LOGDIR__` of LISA and of the test suites before it.
//!
//! ```text
//! "duration": __DURATION__       no JSON until it is filled in: an error that says so
//! "CPU__CPU__", "__LOGDIR__"     a text, which may stay as it is
//! ```
//!
//! Filled in is the text, before it is read: a number, `true`, a list or an object as it is, else a text in quotes;
//! within quotes as it is.

use super::change::json;
use super::omitted::skip;
use crate::InputError;
use crate::input::{line_column, one_line};

/// A placeholder in a text.
struct Found<'t> {
    /// Name between the underscores.
    name: &'t str,
    /// Bytes of the text.
    from: usize,
    to: usize,
    /// True if it stands within quotes.
    quoted: bool,
}

/// Finds all placeholders of `text`, but for those in comments.
fn find(text: &str) -> Vec<Found<'_>> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(bytes, at);
        match bytes[at] {
            b'/' if end > at + 1 => {}
            b'"' => within(text, at, end, true, &mut all),
            b'_' => {
                let word = bytes[at..].iter().take_while(|b| is_word(**b)).count();
                within(text, at, at + word, false, &mut all);
                at += word;
                continue;
            }
            _ => {}
        }
        at = end;
    }
    all
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// The length of the name that `bytes` begin with: capitals and digits, parted by single underscores.
fn name_in(bytes: &[u8]) -> usize {
    let plain = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let parts = |at: usize| at > 0 && bytes[at] == b'_' && plain(bytes.get(at + 1));
    (0..bytes.len()).take_while(|at| plain(bytes.get(*at)) || parts(*at)).count()
}

/// Adds the placeholders between two places of `text`.
fn within<'t>(text: &'t str, from: usize, to: usize, quoted: bool, all: &mut Vec<Found<'t>>) {
    let bytes = text.as_bytes();
    let mut at = from;
    while at + 4 < to {
        if !bytes[at..].starts_with(b"__") {
            at += 1;
            continue;
        }
        let name = name_in(&bytes[at + 2..to]);
        let ends = at + 2 + name;
        let is_one = name > 0 && bytes[ends..to].starts_with(b"__") && (quoted || ends + 2 == to);
        if is_one {
            all.push(Found { name: &text[at + 2..ends], from: at, to: ends + 2, quoted });
            at = ends + 2;
        } else {
            at += 1;
        }
    }
}

/// Checks that `text` has nothing left to be filled in where JSON wants a value.
///
/// Errors: it has; the first one with its place.
pub(super) fn check(text: &str, file: &str) -> Result<(), InputError> {
    let mut open = find(text).into_iter().filter(|found| !found.quoted);
    let Some(first) = open.next() else { return Ok(()) };
    let (line, column) = line_column(text, first.from);
    let mut names = vec![first.name];
    for found in open {
        if !names.contains(&found.name) {
            names.push(found.name);
        }
    }
    let options: Vec<String> = names.iter().map(|name| format!("--fill {name}=…")).collect();
    let what = format!("`__{}__` is a placeholder, which is to be filled in first", first.name);
    Err(InputError::new(format!("{file}:{line}:{column}"), what).hint(options.join(" ")))
}

/// The name that `key` has as a placeholder, `__NAME__`; `None`: it is none.
pub(super) fn name_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix("__")?.strip_suffix("__")?;
    (!name.is_empty() && name_in(name.as_bytes()) == name.len()).then_some(name)
}

/// `text` with `value` wherever `__NAME__` stands.
///
/// Errors: it stands nowhere.
pub(super) fn fill(text: &str, file: &str, name: &str, value: &str) -> Result<String, InputError> {
    let all = find(text);
    if all.iter().all(|found| found.name != name) {
        let e = InputError::new(file, format!("there is no placeholder `__{}__`", one_line(name)));
        let mut there: Vec<&str> = all.iter().map(|found| found.name).collect();
        there.sort_unstable();
        there.dedup();
        return Err(match there[..] {
            [] => e.hint("none is left to be filled in"),
            _ => e.hint(format!("there are: {}", there.join(", "))),
        });
    }
    let plain = json(value, false);
    let quoted = json(value, true);
    let mut filled = String::with_capacity(text.len() + value.len());
    let mut from = 0;
    for found in all.iter().filter(|found| found.name == name) {
        filled.push_str(&text[from..found.from]);
        filled.push_str(match found.quoted {
            true => &quoted[1..quoted.len() - 1],
            false => &plain,
        });
        from = found.to;
    }
    filled.push_str(&text[from..]);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = r#"// __NOTHING__
{ "tasks": { "t": { "cpus": [__CPU__], "run": 1 } },
  "global": { "duration": __DURATION__, "calibration": "CPU__CPU__", "logdir": __LOG_DIR__ } }"#;

    #[test]
    fn what_is_left_to_be_filled_in_is_said_at_its_place() {
        let e = check(TEMPLATE, "w.json").expect_err("it has placeholders").to_string();
        assert!(e.starts_with("w.json:2:30: `__CPU__` is a placeholder"), "{e}");
        assert!(e.ends_with("hint: --fill CPU=… --fill DURATION=… --fill LOG_DIR=…"), "{e}");
        for fine in [r#"{"a": "__A__"}"#, "{ /* __A__ */ }", "{ \"__\": 1, \"a__B\": __a__ }", "__"]
        {
            assert!(check(fine, "w.json").is_ok(), "{fine}");
        }
    }

    #[test]
    fn a_value_is_filled_in_wherever_its_name_stands() {
        let text = fill(TEMPLATE, "w.json", "CPU", "3").expect("it is there");
        assert!(text.contains("[3]") && text.contains("\"CPU3\""), "{text}");
        let text = fill(&text, "w.json", "LOG_DIR", "logs/\"x").expect("it is there");
        assert!(text.contains(r#""logdir": "logs/\"x""#), "{text}");
        let e = fill(&text, "w.json", "PVALUE", "3").expect_err("it is not there").to_string();
        assert!(
            e.contains("no placeholder `__PVALUE__`") && e.contains("there are: DURATION"),
            "{e}"
        );
    }
}
