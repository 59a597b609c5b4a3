//! The head of a line: who, where, when.
//!
//! ```text
//!           <idle>-0     [002]  2084.021443: cpu_idle: …
//!  RenderThread-1143  (  611) [004] d..2 514769.085985: …
//!   <idle>-0       2d..1.  2084.021443: …              trace-cmd report -l
//!   INSTANCE:   <idle>-0     [002]  2084.021443: …     trace-cmd report of several buffers
//! ```

/// The head of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// Instance of the buffer; `None`: the top one.
    pub(super) instance: Option<&'a [u8]>,
    pub(super) comm: &'a [u8],
    pub(super) pid: i32,
    /// Process; `None`: not told.
    pub(super) tgid: Option<i32>,
    pub(super) cpu: u32,
    /// Time in ns.
    pub(super) at: u64,
    /// What follows the time.
    pub(super) rest: &'a [u8],
}

/// Reads the head of a line; `None`: it is no event's.
pub(super) fn head(line: &[u8]) -> Option<Head<'_>> {
    bracketed(line).or_else(|| glued(line))
}

/// A line with the CPU in brackets.
fn bracketed(line: &[u8]) -> Option<Head<'_>> {
    let mut from = 0;
    loop {
        let open = from + line[from..].iter().position(|b| *b == b'[')?;
        let digits = line[open + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let close = open + 1 + digits;
        from = open + 1;
        if digits == 0 || line.get(close) != Some(&b']') {
            continue;
        }
        // A name may have brackets: only a CPU stands behind a thread's number or its process.
        let Some((instance, comm, pid, tgid)) = who(line[..open].trim_ascii_end()) else {
            continue;
        };
        let cpu = number(&line[open + 1..close])?;
        let (at, rest) = when(&line[close + 1..])?;
        return Some(Head { instance, comm, pid, tgid, cpu, at, rest });
    }
}

/// A line with the CPU glued to the flags.
fn glued(line: &[u8]) -> Option<Head<'_>> {
    let (at_time, at, rest) = {
        let mut found = None;
        let mut words = words(line);
        while let Some((start, word)) = words.next() {
            if let Some(at) = time(word) {
                found = Some((start, at, &line[start + word.len()..]));
                break;
            }
        }
        found?
    };
    let before = line[..at_time].trim_ascii_end();
    let start = before.iter().rposition(|b| *b == b' ').map_or(0, |at| at + 1);
    let place = &before[start..];
    let digits = place.iter().take_while(|b| b.is_ascii_digit()).count();
    let flags = &place[digits..];
    let is_flag = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'#' | b'*');
    if digits == 0 || flags.len() < 4 || !flags.iter().all(is_flag) {
        return None;
    }
    let (instance, comm, pid, tgid) = who(before[..start].trim_ascii_end())?;
    Some(Head { instance, comm, pid, tgid, cpu: number(&place[..digits])?, at, rest })
}

type Who<'a> = (Option<&'a [u8]>, &'a [u8], i32, Option<i32>);

/// Instance, name, number and process of a thread.
fn who(before: &[u8]) -> Option<Who<'_>> {
    let (before, tgid) = match before.strip_suffix(b")") {
        Some(inside) => {
            let open = inside.iter().rposition(|b| *b == b'(')?;
            let process = inside[open + 1..].trim_ascii();
            let known = !process.iter().all(|b| *b == b'-');
            let tgid = known.then(|| number(process)).flatten().map(|n| n as i32);
            (inside[..open].trim_ascii_end(), tgid)
        }
        None => (before, None),
    };
    let dash = before.iter().rposition(|b| *b == b'-')?;
    let pid = i32::try_from(number(&before[dash + 1..])?).ok()?;
    let (instance, comm) = instance(&before[..dash]);
    Some((instance, comm.trim_ascii(), pid, tgid))
}

/// Splits what trace-cmd puts before the lines of an instance from a thread's name. A name follows its colon by blanks, as it is
/// set to the right in a column.
fn instance(before: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let start = before.trim_ascii_start();
    let colon = start.windows(2).position(|w| w == b": ");
    match colon {
        Some(at) if !start[..at].contains(&b' ') => {
            // Every line of a report of several buffers has a prefix of one width.
            (Some(&start[..at]), &start[at + 1..])
        }
        _ => (None, start),
    }
}

/// The time that comes next, perhaps behind flags, and what follows it.
fn when(after: &[u8]) -> Option<(u64, &[u8])> {
    for (start, word) in words(after).take(3) {
        if let Some(at) = time(word) {
            return Some((at, &after[start + word.len()..]));
        }
    }
    None
}

/// `123.456789:` in ns; at most nine digits count behind the point.
fn time(word: &[u8]) -> Option<u64> {
    let word = word.strip_suffix(b":")?;
    let point = word.iter().position(|b| *b == b'.')?;
    let (seconds, part) = (&word[..point], &word[point + 1..]);
    if part.is_empty() || part.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - part.len() as u32);
    let ns = u64::from(number(part)?) * scale;
    long(seconds)?.checked_mul(1_000_000_000)?.checked_add(ns)
}

fn number(digits: &[u8]) -> Option<u32> {
    long(digits).and_then(|n| u32::try_from(n).ok())
}

fn long(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0_u64, |n, b| {
        b.is_ascii_digit().then(|| n.wrapping_mul(10).wrapping_add(u64::from(b - b'0')))
    })
}

/// Words between blanks, with their offsets.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].iter().take_while(|b| **b == b' ').count();
        let start = at;
        at += text[at..].iter().take_while(|b| **b != b' ').count();
        (at > start).then(|| (start, &text[start..at]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(Option<&str>, &str, i32, Option<i32>, u32, u64, &str)> {
        let text = |b| std::str::from_utf8(b).expect("text");
        let h = head(line.as_bytes())?;
        Some((h.instance.map(text), text(h.comm), h.pid, h.tgid, h.cpu, h.at, text(h.rest)))
    }

    #[test]
    fn heads_of_all_dialects_are_read() {
        for (line, wanted) in [
            (
                "          <idle>-0     [002]  2084.021443: cpu_idle: x",
                (None, "<idle>", 0, None, 2, 2_084_021_443_000, " cpu_idle: x"),
            ),
            (
                "  <idle>-0       2d..1.  2084.021443: cpu_idle: x",
                (None, "<idle>", 0, None, 2, 2_084_021_443_000, " cpu_idle: x"),
            ),
            (
                "RenderThread-1143  (  611) [004] ...1 514769.085985: a: E",
                (None, "RenderThread", 1143, Some(611), 4, 514_769_085_985_000, " a: E"),
            ),
            (
                "   a-b [1] c-77    (-----) [000] d..2. 1.000000009: a:",
                (None, "a-b [1] c", 77, None, 0, 1_000_000_009, " a:"),
            ),
            (
                "  one:          <idle>-0     [001]     5.000001: a: b",
                (Some("one"), "<idle>", 0, None, 1, 5_000_001_000, " a: b"),
            ),
            (
                "kworker/u8:1: x-9 [000] 1.5: a:",
                (Some("kworker/u8:1"), "x", 9, None, 0, 1_500_000_000, " a:"),
            ),
            (
                " kworker/2:1-9 [000] 1.5: a:",
                (None, "kworker/2:1", 9, None, 0, 1_500_000_000, " a:"),
            ),
        ] {
            assert_eq!(of(line), Some(wanted), "{line}");
        }
        for line in
            ["", "# x-1 [000]", "x-1 [000] d..2 word: a", "x-y [000] 1.5: a", "x-1 [] 1.5: a"]
        {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
