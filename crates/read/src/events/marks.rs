//! Rows of what programs write into `trace_marker`.

use super::{Fields, Row, readable};
use crate::Mark;
use crate::story::Story;
use crate::take::Stamp;

pub(super) const ROWS: &[Row] = &[Row {
    names: &["print", "tracing_mark_write", "bputs", "0"],
    fields: &[&["buf", "str"]],
    signals: &["marks"],
    surveyed: true,
    take: mark,
}];

fn mark(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let Some(text) = fields.text(0) else { return };
    let text = readable(text);
    let (process, mark) = read(text.trim_end());
    story.mark(stamp, process, &mark);
}

/// Returns the process that a line names (0: none), and the line's meaning.
fn read(text: &str) -> (i32, Mark<'_>) {
    let other = (0, Mark::Text(text));
    let mut parts = text.splitn(3, '|');
    let kind = parts.next().unwrap_or("");
    let process = parts.next().and_then(|p| p.trim().parse().ok());
    let rest = parts.next();
    // The number comes last: a name may have bars of its own.
    let named = |rest: Option<&'_ str>| -> Option<(usize, i64)> {
        let rest = rest?;
        let at = rest.rfind('|')?;
        Some((at, rest[at + 1..].trim().parse().ok()?))
    };
    let mark = match (kind, rest) {
        ("E", _) => Some(Mark::End),
        ("B", Some(name)) if process.is_some() => Some(Mark::Begin { name }),
        ("S", Some(rest)) => {
            named(Some(rest)).map(|(at, cookie)| Mark::AsyncBegin { name: &rest[..at], cookie })
        }
        ("F", Some(rest)) => {
            named(Some(rest)).map(|(at, cookie)| Mark::AsyncEnd { name: &rest[..at], cookie })
        }
        ("C", Some(rest)) => {
            named(Some(rest)).map(|(at, value)| Mark::Counter { name: &rest[..at], value })
        }
        _ => None,
    };
    mark.map_or(other, |mark| (process.unwrap_or(0), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_android_are_told_from_plain_text() {
        for (text, process, mark) in [
            ("B|611|draw frame", 611, Mark::Begin { name: "draw frame" }),
            ("E|611", 611, Mark::End),
            ("E", 0, Mark::End),
            ("S|7|a|b|3", 7, Mark::AsyncBegin { name: "a|b", cookie: 3 }),
            ("F|7|a|b|-3", 7, Mark::AsyncEnd { name: "a|b", cookie: -3 }),
            ("C|7|Heap size (KB)|1234", 7, Mark::Counter { name: "Heap size (KB)", value: 1234 }),
            ("C|7|no number|x", 0, Mark::Text("C|7|no number|x")),
            ("B|", 0, Mark::Text("B|")),
            ("Begin", 0, Mark::Text("Begin")),
            ("", 0, Mark::Text("")),
        ] {
            assert_eq!(read(text), (process, mark), "{text}");
        }
    }
}
