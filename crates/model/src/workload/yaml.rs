//! rt-app-rs's YAML, which says what rt-app's JSON says, line by line.
//!
//! ```text
//! tasks:                       {"tasks": {
//!   ui:                          "ui": {
//!     cpus: [0, 1]  # both         "cpus": [0, 1],
//!     run1: 4000                   "run1": 4000,
//!                              }}}
//! ```
//!
//! Read are mappings by indentation, lists and mappings in brackets on one line, texts with and without quotes, and comments:
//! what its examples have. Lists by dashes, anchors, texts of several lines, and documents behind each other are refused
//! by name. Each line of JSON stands where the line of YAML stood, so that places in messages are right.

use super::change::json;
use crate::InputError;

/// `text` as JSON.
///
/// Errors: YAML that is not read here, with its line.
pub(super) fn to_json(text: &str, file: &str) -> Result<String, InputError> {
    let mut out = String::from("{");
    // Indentations of the mappings that are open.
    let mut open: Vec<usize> = Vec::new();
    // A key whose value is a mapping, if lines below it are further in, else nothing.
    let mut waits = false;
    for (number, line) in text.lines().enumerate() {
        let error = |column: usize, what: &str| {
            InputError::new(format!("{file}:{}:{}", number + 1, column + 1), what)
        };
        let body = without_comment(line).trim_end();
        let indent = body.len() - body.trim_start().len();
        let body = body.trim_start();
        if body.is_empty() || (body == "---" && open.is_empty()) {
            out.push('\n');
            continue;
        }
        if line[..indent].contains('\t') {
            return Err(error(0, "a tab as indentation, which YAML has not"));
        }
        if body.starts_with("- ") || body == "-" {
            return Err(error(indent, "a list by dashes, wanted one in brackets: [0, 1]"));
        }
        match open.last() {
            Some(last) if indent > *last && !waits => {
                return Err(error(indent, "is further in than the line above, which has a value"));
            }
            Some(last) if indent > *last => {
                out.push('{');
                open.push(indent);
            }
            None => open.push(indent),
            Some(_) => {
                if waits {
                    out.push_str("\"\",");
                }
                while open.last().is_some_and(|last| indent < *last) {
                    open.pop();
                    out.push_str("},");
                }
                if open.last() != Some(&indent) {
                    return Err(error(indent, "is as far in as no line above"));
                }
            }
        }
        let (key, value) = split(body).ok_or_else(|| error(indent, "wanted `key: value`"))?;
        out.push_str(&format!("{}: ", json(key, true)));
        waits = value.is_empty();
        if !waits {
            out.push_str(&scalar(value).map_err(|what| error(indent, &what))?);
            out.push(',');
        }
        out.push('\n');
    }
    if waits {
        out.push_str("\"\"");
    }
    out.extend(open.iter().map(|_| '}'));
    if open.is_empty() {
        out.push('}');
    }
    Ok(out)
}

/// The line without what stands behind a `#` that begins a word, outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}

/// The key and the value of a line.
fn split(body: &str) -> Option<(&str, &str)> {
    let (key, value) = match body.chars().next()? {
        quote @ ('"' | '\'') => {
            let (key, rest) = body[1..].split_once(quote)?;
            (key, rest.trim_start().strip_prefix(':')?)
        }
        _ => match body.split_once(": ") {
            Some((key, value)) => (key.trim_end(), value),
            None => (body.strip_suffix(':')?.trim_end(), ""),
        },
    };
    Some((key, value.trim()))
}

/// A value on one line as JSON.
fn scalar(value: &str) -> Result<String, String> {
    match value.chars().next() {
        Some('[' | '{') => flow(value),
        Some('&' | '*' | '!' | '|' | '>') => {
            Err(format!("`{value}`: YAML that is not read here, wanted a value on this line"))
        }
        Some('"') => Ok(value.to_string()),
        Some('\'') => Ok(json(value.trim_matches('\''), true)),
        _ => Ok(match value {
            "null" | "~" => "\"\"".to_string(),
            plain => json(plain, false),
        }),
    }
}

/// A list or mapping in brackets as JSON: words without quotes get them.
fn flow(value: &str) -> Result<String, String> {
    let (mut out, mut word, mut quote) = (String::new(), String::new(), None);
    for c in value.chars() {
        match (quote, c) {
            (Some(open), _) if open == c => {
                out.push_str(&json(&std::mem::take(&mut word), true));
                quote = None;
            }
            (Some(_), _) => word.push(c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | ']' | '{' | '}' | ',' | ':') => {
                let plain = std::mem::take(&mut word);
                if !plain.trim().is_empty() {
                    out.push_str(&json(plain.trim(), c == ':'));
                }
                out.push(c);
            }
            (None, _) => word.push(c),
        }
    }
    match quote.is_none() && word.trim().is_empty() {
        true => Ok(out),
        false => Err(format!("`{value}` has no end on this line")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    const TEMPLATE: &str = "# a template
global:
  duration: 6        # s
  calibration: CPU0
  lock_pages: false
tasks:
  thread0:
    cpus: [0, 1]
    run: 10000
    timer: {ref: unique, period: 100000}
  thread1:
    phases:
      phase0:
        loop: 5
        run1: 5000
        sleep1: 5000
        run2: 3000
      phase1:
        suspend:
        run: 7
";

    #[test]
    fn yaml_says_what_json_says() {
        let text = to_json(TEMPLATE, "w.yaml").unwrap_or_else(|e| panic!("{e}"));
        let yaml = Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{text}: {e}"));
        let same = r#"{"tasks": {"thread0": {"cpus": [0, 1], "run": 10000, "timer": {"ref": "unique", "period": 100000}},
            "thread1": {"phases": {"phase0": {"loop": 5, "run": 5000, "sleep": 5000, "run": 3000},
                "phase1": {"suspend": "", "run": 7}}}},
            "global": {"duration": 6, "calibration": "CPU0", "lock_pages": false}}"#;
        let same = Workload::parse(same, "w").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((&yaml.tasks, yaml.duration), (&same.tasks, same.duration));
    }

    #[test]
    fn what_is_not_read_is_said_with_its_line() {
        for (text, words) in [
            ("tasks:\n  a:\n    run: 5\n      sleep: 1\n", "w.yaml:4:7: is further in"),
            ("tasks:\n    a:\n  b:\n", "w.yaml:3:3: is as far in as no line above"),
            ("tasks:\n  a:\n    cpus:\n    - 0\n", "w.yaml:4:5: a list by dashes"),
            ("tasks: &x\n", "w.yaml:1:1: `&x`"),
            ("tasks\n", "wanted `key: value`"),
            ("tasks: [1, 2\n", "has no end on this line"),
        ] {
            let e = to_json(text, "w.yaml").expect_err(text).to_string();
            assert!(e.contains(words), "{text}: {e}");
        }
    }
}
