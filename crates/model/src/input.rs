//! Getting at what a person wrote: bounded reading, places in a text, and names that were
//! almost right.

use crate::{Code, InputError};
use std::io::Read;
use std::path::Path;

/// The text of the file `path`, of at most `limit` bytes.
///
/// Reads at most `limit + 1` bytes, so that an endless or gigantic file costs no more.
///
/// Errors: absent, a directory, unreadable, too big, not UTF-8.
pub fn read_file(path: &str, limit: usize) -> Result<String, InputError> {
    let shown = printable(path);
    if Path::new(path).is_dir() {
        return Err(InputError::new(shown, "is a directory, wanted a file").code(Code::Unreadable));
    }
    let unreadable = |what: String| InputError::new(&shown, what).code(Code::Unreadable);
    let file = std::fs::File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            InputError::new(&shown, "no such file").code(Code::NotFound)
        }
        _ => unreadable(format!("cannot be opened: {}", system_words(&e))),
    })?;
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(format!("cannot be read: {}", system_words(&e))))?;
    check_size(bytes.len(), limit, &shown)?;
    String::from_utf8(bytes).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&e.as_bytes()[..good]).into_owned();
        InputError::new(place(&shown, &text, good), "not UTF-8 text").code(Code::Syntax)
    })
}

/// Whether a text of `len` bytes is within `limit`.
pub(crate) fn check_size(len: usize, limit: usize, shown: &str) -> Result<(), InputError> {
    if len > limit {
        let mib = limit >> 20;
        return Err(
            InputError::new(shown, format!("too big: more than {mib} MiB")).code(Code::TooBig)
        );
    }
    Ok(())
}

/// The system's own words for an I/O error, without Rust's "(os error 13)".
fn system_words(e: &std::io::Error) -> String {
    let text = e.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// Whether an argument can only be meant as a path, not as the name of a built-in.
pub(crate) fn looks_like_path(arg: &str, extension: &str) -> bool {
    arg.contains('/') || arg.ends_with(extension)
}

/// The error for an argument that is neither a built-in `kind` nor a file.
pub(crate) fn unknown_name(kind: &str, arg: &str, known: &[&str]) -> InputError {
    let shown = if arg.is_empty() { "\"\"".to_string() } else { printable(arg) };
    let all = match kind {
        "policy" => "`risetime list policies` has all".to_string(),
        "study" => format!("built in: {}", known.join(", ")),
        kind => format!("`risetime list {kind}s` has all"),
    };
    let what = format!("no built-in {kind} and no file of this name");
    InputError::new(shown, what).hint(meant(arg, known, &all)).code(Code::UnknownName)
}

/// The hint where a name is none of `known`: first what was likely meant, then where all are.
pub fn meant(wrong: &str, known: &[&str], all: &str) -> String {
    match nearest(wrong, known) {
        Some(name) => format!("did you mean `{name}`? {all}"),
        None => all.to_string(),
    }
}

/// `file:line:column` of byte `offset` of `text`, both counted from 1, columns in characters.
pub(crate) fn place(file: &str, text: &str, offset: usize) -> String {
    let (line, column) = line_column(text, offset);
    format!("{file}:{line}:{column}")
}

/// Converts a byte offset of `text` to line and column, from 1.
pub(crate) fn line_column(text: &str, offset: usize) -> (u32, u32) {
    line_column_after(text, &mut (0, 1), offset)
}

/// Converts a byte offset of `text` to line and column, from 1. `seen` is where a line begins that
/// is known, and its number; afterwards it is the line of the offset, so that one offset after
/// another is found without counting all lines again.
pub(crate) fn line_column_after(text: &str, seen: &mut (usize, u32), offset: usize) -> (u32, u32) {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    if at < seen.0 {
        *seen = (0, 1);
    }
    let (from, first) = *seen;
    let before = &text[from..at];
    let line = first + before.bytes().filter(|&b| b == b'\n').count() as u32;
    let start = before.rfind('\n').map_or(from, |i| from + i + 1);
    *seen = (start, line);
    (line, text[start..at].chars().count() as u32 + 1)
}

/// `s` without control characters, which would break a message's line or colour a terminal.
pub(crate) fn printable(s: &str) -> String {
    let mut out = String::new();
    for c in s.chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// `s` fit to be quoted in a message: printable, at most 60 characters.
pub(crate) fn one_line(s: &str) -> String {
    match s.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", printable(&s[..end])),
        None => printable(s),
    }
}

/// The known name that is nearest to `wrong`, if one is near enough to be what was meant: at
/// most one typing error in three characters.
pub fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    if wrong.len() > 64 {
        return None;
    }
    let allowed = wrong.chars().count().max(3) / 3;
    known
        .iter()
        .map(|k| (distance(wrong, k), *k))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, _)| *d <= allowed)
        .map(|(_, k)| k)
}

/// Insertions, deletions and substitutions that make `a` into `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// `s` with its first letter small, as messages have it.
pub(crate) fn lower_first(s: &str) -> String {
    let mut chars = s.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let text = "ab\n\u{b5}s x\n";
        assert_eq!(place("f", text, 0), "f:1:1");
        assert_eq!(place("f", text, 3), "f:2:1");
        assert_eq!(place("f", text, 7), "f:2:4", "µ is two bytes, one column");
        assert_eq!(place("f", text, 4), "f:2:1", "inside µ: its own column");
        assert_eq!(place("f", text, 999), "f:3:1");
    }

    #[test]
    fn places_asked_for_one_behind_the_other_or_not_are_the_same() {
        let text = "ab\n\n\u{b5}s x\nlast line";
        let mut seen = (0, 1);
        for step in [1, 5, 7, 17] {
            for offset in (0..40).map(|i| i * step % 23) {
                let found = line_column_after(text, &mut seen, offset);
                assert_eq!(found, line_column(text, offset), "{offset}");
            }
        }
    }

    #[test]
    fn nearest_forgives_a_typing_error_but_does_not_guess() {
        let known = ["rate_limit_us", "governor", "m1"];
        assert_eq!(nearest("rate_limt_us", &known), Some("rate_limit_us"));
        assert_eq!(nearest("govenor", &known), Some("governor"));
        assert_eq!(nearest("m2", &known), Some("m1"));
        assert_eq!(nearest("frobnicate", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn a_name_in_a_message_cannot_break_the_line() {
        assert_eq!(one_line("a\nb\u{1b}[1m"), "a\\nb\\u{1b}[1m");
        assert_eq!(one_line(&"x".repeat(100)).chars().count(), 61);
    }

    #[test]
    fn reading_is_bounded_even_where_a_file_has_no_end() {
        let e = read_file("/dev/zero", 1 << 20).unwrap_err();
        assert_eq!(e.to_string(), "/dev/zero: too big: more than 1 MiB");
        assert_eq!(read_file("/", 10).unwrap_err().to_string(), "/: is a directory, wanted a file");
        assert_eq!(read_file("no/such", 10).unwrap_err().to_string(), "no/such: no such file");
    }
}
