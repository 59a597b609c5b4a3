//! Answer of the agent: named sections in one file, with lengths and a checksum.
//!
//! ```text
//! risetime-answer 1\n
//! section NAME LENGTH\n   LENGTH bytes   \n        any number of times
//! end CHECKSUM\n                                   16 hex digits: FNV-1a of all bytes before
//! ```
//!
//! | section | contents |
//! |---|---|
//! | `error` | why the agent gave up; the others may then be missing |
//! | `lacks` | the same, where it is something that this kernel was built without |
//! | `values` | `KEY VALUE` lines, both escaped as in a job: every `set` and `read` path with what is there now (an error of the system as `!` and its text), `release` (`uname -r`), `version`, `probe NAME` / `event NAME` / `module NAME` with what failed, `task.N.pid` (forked tasks follow in the order of their forks, with `task.N.fork`, the number of the task they copy), `lost.CPU` (overruns), `clock`, `a_tick` (CLOCK_MONOTONIC in ns at one of the ticks, whose grid it tells; not always there) |
//! | `format SYSTEM/EVENT` | tracefs `format` file of each enabled event (and of `ftrace/print`) |
//! | `header_page` | tracefs `events/header_page` |
//! | `marks TASK` | what came up about the jobs of a task: CLOCK_MONOTONIC in ns and the numbers of a [`JobMark`](crate::mark::JobMark), a line each |
//! | `pages CPU` | that CPU's `trace_pipe_raw`, whole pages |
//!
//! Marks in the trace are `trace_marker` texts: `rt freq POLICY KHZ` (before time 0), `rt start`
//! (time 0), `rt mono NS` (CLOCK_MONOTONIC at that moment, before time 0), `rt phase TASK INDEX` (written by the task itself as it enters a phase), `rt end`.
//! The trace clock is `local`.
//!
//! No compression, no random access: it is written once and read once.

use crate::job::{escape, unescape};
use std::fmt;
use std::io::{self, Write};

const MAGIC: &[u8] = b"risetime-answer 1\n";

/// The name of the file it is written to.
pub const ANSWER: &str = "answer";
/// A file that the agent creates beside its answer as the first thing it does.
pub const ALIVE: &str = "alive";
/// A file that it creates when it has prepared everything and may be held ([`GATE`]).
pub const READY: &str = "ready";
/// A file that it opens then: a pipe holds the machine until its other end is opened.
pub const GATE: &str = "gate";
/// The file that says what it hears last: the times of [`crate::job::Job::late`].
pub const LATE: &str = "late";
/// The value that says why idle states take no time although they were to ([`crate::job::Job::idle`]).
pub const NO_IDLE_TIMES: &str = "no_idle_times";

/// Continues the 64-bit FNV-1a `hash` over `bytes`.
pub fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    for b in bytes {
        hash = (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}
/// Start value of a hash.
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Writes an answer.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    hash: u64,
}

impl<W: Write> Writer<W> {
    /// An answer into `out`, which sees many small writes.
    pub fn new(out: W) -> io::Result<Writer<W>> {
        let mut w = Writer { out, hash: FNV_START };
        w.put(MAGIC)?;
        Ok(w)
    }
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash = fnv(self.hash, bytes);
        self.out.write_all(bytes)
    }
    /// Writes one section: its name, its length, its bytes.
    pub fn section(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(format!("section {} {}\n", escape(name), bytes.len()).as_bytes())?;
        self.put(bytes)?;
        self.put(b"\n")
    }
    /// The end; gives back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        let end = format!("end {:016x}\n", self.hash);
        self.out.write_all(end.as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// An answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Names and contents, in file order.
    pub sections: Vec<(String, &'a [u8])>,
}

/// Reason for which bytes are no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerError {
    /// Byte from which on it is not understood.
    pub at: usize,
    /// Fault of the answer.
    pub what: String,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answer: byte {}: {}", self.at, self.what)
    }
}

impl std::error::Error for AnswerError {}

impl<'a> Answer<'a> {
    /// The answer in `bytes`.
    ///
    /// Errors: cut short, checksum wrong, or not an answer at all.
    pub fn parse(bytes: &'a [u8]) -> Result<Answer<'a>, AnswerError> {
        let err = |at: usize, what: String| AnswerError { at, what };
        if !bytes.starts_with(MAGIC) {
            return Err(err(0, format!("this is no answer of {} bytes or more", MAGIC.len())));
        }
        let mut at = MAGIC.len();
        let mut sections = Vec::new();
        loop {
            let cut = || err(at, "the file ends here".into());
            let length = bytes[at..].iter().take(4096).position(|b| *b == b'\n').ok_or_else(cut)?;
            let line = std::str::from_utf8(&bytes[at..at + length])
                .map_err(|_| err(at, "no text".into()))?;
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["end", sum] => {
                    let found = fnv(FNV_START, &bytes[..at]);
                    if u64::from_str_radix(sum, 16) != Ok(found) {
                        return Err(err(
                            at,
                            format!("checksum {sum}, the bytes give {found:016x}"),
                        ));
                    }
                    return Ok(Answer { sections });
                }
                ["section", name, size] => {
                    let start = at + length + 1;
                    let size: usize =
                        size.parse().map_err(|_| err(at, format!("bad length `{size}`")))?;
                    let end =
                        start.checked_add(size).filter(|e| *e < bytes.len()).ok_or_else(cut)?;
                    let name =
                        unescape(name).ok_or_else(|| err(at, format!("bad name `{name}`")))?;
                    sections.push((name, &bytes[start..end]));
                    at = end + 1;
                }
                _ => return Err(err(at, format!("found {line:?}, wanted a section"))),
            }
        }
    }

    /// The section called `name`; the first, if there are several.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections.iter().find(|(n, _)| n == name).map(|(_, b)| *b)
    }

    /// The `values` section as pairs; lines that are not understood are left out.
    pub fn values(&self) -> Vec<(String, String)> {
        let text = String::from_utf8_lossy(self.section("values").unwrap_or_default());
        let pair = |line: &str| {
            let (key, value) = line.split_once(' ')?;
            Some((unescape(key)?, unescape(value)?))
        };
        text.lines().filter_map(pair).collect()
    }
}

/// Formats one line of the `values` section.
pub fn value_line(key: &str, value: &str) -> String {
    format!("{} {}\n", escape(key), escape(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut w = Writer::new(Vec::new()).unwrap();
        w.section(
            "values",
            (value_line("/sys/a b", "") + &value_line("release", "7.2\nend x")).as_bytes(),
        )
        .unwrap();
        w.section("pages 0", b"section pages 9\nend 0\n\0\xff").unwrap();
        w.section("empty one", b"").unwrap();
        w.finish().unwrap()
    }

    #[test]
    fn an_answer_comes_back_whole() {
        let bytes = sample();
        let answer = Answer::parse(&bytes).unwrap();
        assert_eq!(answer.section("pages 0"), Some(&b"section pages 9\nend 0\n\0\xff"[..]));
        assert_eq!(answer.section("empty one"), Some(&b""[..]));
        assert_eq!(answer.section("pages 1"), None);
        let value = |k: &str, v: &str| (k.to_string(), v.to_string());
        assert_eq!(answer.values(), [value("/sys/a b", ""), value("release", "7.2\nend x")]);
    }

    #[test]
    fn a_damaged_answer_is_refused() {
        let good = sample();
        for end in 0..good.len() - 1 {
            assert!(Answer::parse(&good[..end]).is_err(), "cut at {end}");
        }
        for at in 0..good.len() - 1 {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert!(Answer::parse(&bad).is_err(), "byte {at} changed");
        }
    }

    #[test]
    fn a_length_beyond_the_file_is_refused() {
        for length in ["99", "18446744073709551615", "99999999999999999999999"] {
            let text = format!("risetime-answer 1\nsection a {length}\nabc\nend 0\n");
            assert!(Answer::parse(text.as_bytes()).is_err(), "{length}");
        }
    }
}
