//! Values that rt-app's examples leave out, put in before the file is read as JSON.
//!
//! ```text
//! "suspend",      ->   "suspend": "",       the task's own name
//! "yield" }       ->   "yield": "" }        nothing to say
//! ```
//!
//! rt-app's own script workgen does that before rt-app sees the file. Only these two events need no value;
//! any other key without one stays a fault of syntax. Places in messages are those of the file as it
//! stands: [`Filled::original`].

use std::borrow::Cow;

/// The text that is put in: a colon and an empty value.
const EMPTY: &str = ": \"\"";

/// A text with its omitted values.
pub(super) struct Filled<'t> {
    /// The text to parse.
    pub(super) text: Cow<'t, str>,
    /// Places in that text where something was put in, ascending.
    inserted: Vec<usize>,
}

impl Filled<'_> {
    /// The byte of the file that byte `at` of the text was.
    pub(super) fn original(&self, at: usize) -> usize {
        let before = self.inserted.partition_point(|i| *i < at);
        let Some(last) = before.checked_sub(1).map(|i| self.inserted[i]) else { return at };
        // Within what was put in: where it begins.
        at.max(last + EMPTY.len()) - before * EMPTY.len()
    }
}

/// Whether an event of this key needs no value: `suspend`, `yield`, with a number behind it or not.
fn may_stand_alone(key: &str) -> bool {
    let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
    name == "suspend" || name == "yield"
}

/// Puts the omitted values in. What is no JSON otherwise stays what it is.
pub(super) fn fill(text: &str) -> Filled<'_> {
    let bytes = text.as_bytes();
    let mut holes = Vec::new();
    // Brackets that are open: whether it is an object's.
    let mut open: Vec<bool> = Vec::new();
    let mut key_next = false;
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        at = skip(bytes, at);
        match bytes[from] {
            b'{' | b'[' => {
                open.push(bytes[from] == b'{');
                key_next = bytes[from] == b'{';
            }
            b'}' | b']' => {
                open.pop();
                key_next = false;
            }
            b',' => key_next = open.last() == Some(&true),
            b'"' if key_next => {
                key_next = false;
                let key = text.get(from + 1..at.saturating_sub(1)).unwrap_or_default();
                let mut then = at;
                while then < bytes.len() && is_blank(bytes, then) {
                    then = skip(bytes, then);
                }
                if matches!(bytes.get(then), Some(b',' | b'}')) && may_stand_alone(key) {
                    holes.push(at);
                }
            }
            _ => {}
        }
    }
    if holes.is_empty() {
        return Filled { text: Cow::Borrowed(text), inserted: holes };
    }
    let mut filled = String::with_capacity(text.len() + holes.len() * EMPTY.len());
    let mut inserted = Vec::with_capacity(holes.len());
    let mut from = 0;
    for hole in holes {
        filled.push_str(&text[from..hole]);
        inserted.push(filled.len());
        filled.push_str(EMPTY);
        from = hole;
    }
    filled.push_str(&text[from..]);
    Filled { text: Cow::Owned(filled), inserted }
}

/// Whether the byte at `at` is white space, or the begin of a comment.
fn is_blank(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_whitespace()
        || (bytes[at] == b'/' && matches!(bytes.get(at + 1), Some(b'/' | b'*')))
}

/// Skips the string or comment that begins at `at`, else one byte; returns the index behind it.
pub(super) fn skip(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let find = |from: usize, end: &[u8]| {
        let found = rest[from..].windows(end.len()).position(|w| w == end);
        found.map_or(bytes.len(), |i| at + from + i + end.len())
    };
    match rest {
        [b'/', b'/', ..] => find(2, b"\n"),
        [b'/', b'*', ..] => find(2, b"*/"),
        [b'"', ..] => {
            let mut i = 1;
            while i < rest.len() && rest[i] != b'"' {
                i += if rest[i] == b'\\' { 2 } else { 1 };
            }
            (at + i + 1).min(bytes.len())
        }
        _ => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    #[test]
    fn suspend_and_yield_may_say_nothing() {
        for (text, filled) in [
            (r#"{"suspend", "run": 1}"#, r#"{"suspend": "", "run": 1}"#),
            (r#"{"a": {"run": 1, "suspend"}}"#, r#"{"a": {"run": 1, "suspend": ""}}"#),
            (
                "{\"yield2\" /* so */ // and\n , \"x\": 1}",
                "{\"yield2\": \"\" /* so */ // and\n , \"x\": 1}",
            ),
            (r#"{"suspend", "suspend"}"#, r#"{"suspend": "", "suspend": ""}"#),
        ] {
            assert_eq!(fill(text).text, filled);
        }
        for same in [
            r#"{"suspend": "x", "run": "suspend"}"#,
            r#"{"list": ["suspend", "yield"]}"#,
            r#"{"resume", "run": 1}"#,
            r#"// {"suspend", }"#,
            r#"{"a\"": 1, "b": "{\"suspend\", "}"#,
            r#"{"suspend"#,
            r#"{"suspend""#,
            "{\"\\",
            "{/*",
        ] {
            assert_eq!(fill(same).text, same);
        }
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        /// Without what was put in it is the text again, and every place of it is found there.
        #[test]
        fn places_are_those_of_the_file(
            parts in prop::collection::vec(
                prop::sample::select(vec!["{", "}", "[", "]", ",", ":", "\"suspend\"", "\"yield\"", "\"run\"", " ", "\n", "/*", "*/", "//", "\"", "\\", "µ", "1"]),
                0..40,
            )
        ) {
            let text = parts.concat();
            let filled = fill(&text);
            let mut back = filled.text.to_string();
            for at in filled.inserted.iter().rev() {
                prop_assert_eq!(&back[*at..*at + EMPTY.len()], EMPTY);
                back.replace_range(*at..*at + EMPTY.len(), "");
            }
            prop_assert_eq!(&back, &text);
            for (at, c) in filled.text.char_indices() {
                let original = filled.original(at);
                prop_assert!(text.is_char_boundary(original));
                let put_in = filled.inserted.iter().any(|i| (*i..*i + EMPTY.len()).contains(&at));
                prop_assert!(put_in || text[original..].starts_with(c), "{at} of {:?}", filled.text);
            }
        }
    }
}
