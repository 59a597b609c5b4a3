//! Fields of a line: `key=value`, and the forms that trace-cmd's plugins print instead.

use crate::events::{Fields, Row};

/// Fields that a row has at most.
const PLACES: usize = 12;

/// The fields of a line, by the places of its row.
pub(super) struct TextFields<'a>([Option<&'a [u8]>; PLACES]);

impl<'a> TextFields<'a> {
    /// The fields of event `name` in what follows it.
    pub(super) fn new(row: &'static Row, name: &[u8], rest: &'a [u8]) -> TextFields<'a> {
        let mut fields = TextFields([None; PLACES]);
        if row.fields.len() == 1 && row.place("buf").is_some() {
            fields.0[0] = Some(mark(name, rest));
        } else if !fields.plugin(row, name, rest) {
            fields.pairs(row, rest);
        }
        fields
    }

    fn set(&mut self, row: &Row, key: &str, value: &'a [u8]) {
        if let Some(slot) = row.place(key).and_then(|place| self.0.get_mut(place)) {
            *slot = Some(value);
        }
    }

    /// `a=1 b=two words c=3`. A name goes on to the next field of the row, as it may hold blanks and `=`; any other value to the
    /// next blank before a `key=`.
    fn pairs(&mut self, row: &Row, rest: &'a [u8]) {
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        // Key and begin of the value that is open.
        let mut open: Option<(Option<usize>, bool, usize)> = None;
        for equals in (0..rest.len()).filter(|at| rest[*at] == b'=') {
            let length = rest[..equals].iter().rev().take_while(|b| is_word(b)).count();
            let start = equals - length;
            let alone = start == 0 || rest[start - 1] == b' ';
            if length == 0 || !alone {
                continue;
            }
            let key = std::str::from_utf8(&rest[start..equals]).unwrap_or("");
            let place = row.place(key);
            if place.is_none() && open.is_some_and(|(_, is_name, _)| is_name) {
                continue;
            }
            self.close(open, rest, start);
            open = Some((place, key.ends_with("comm"), equals + 1));
        }
        self.close(open, rest, rest.len());
    }

    fn close(&mut self, open: Option<(Option<usize>, bool, usize)>, rest: &'a [u8], end: usize) {
        let Some((Some(place), _, from)) = open else { return };
        let value = rest.get(from..end).unwrap_or_default().trim_ascii();
        let value = value.strip_suffix(b"==>").unwrap_or(value).trim_ascii_end();
        if let Some(slot) = self.0.get_mut(place) {
            *slot = Some(value);
        }
    }

    /// What `trace-cmd report` prints of a switch and of wakeups; false: the line is not of that form.
    ///
    /// ```text
    /// sched_switch    swapper/2:0 [120] R ==> kworker/2:1:2923 [120]
    /// sched_wakeup    kworker/u8:0:17 [120] success=1 CPU:002
    /// ```
    fn plugin(&mut self, row: &Row, name: &[u8], rest: &'a [u8]) -> bool {
        if name == b"sched_switch" && !rest.starts_with(b"prev_comm=") {
            let Some(arrow) = rest.windows(5).position(|w| w == b" ==> ") else { return false };
            let Some((comm, pid, prio, state)) = thread(&rest[..arrow]) else { return false };
            let Some((next_comm, next_pid, next_prio, _)) = thread(&rest[arrow + 5..]) else {
                return false;
            };
            for (key, value) in [
                ("prev_comm", comm),
                ("prev_pid", pid),
                ("prev_prio", prio),
                ("prev_state", state),
                ("next_comm", next_comm),
                ("next_pid", next_pid),
                ("next_prio", next_prio),
            ] {
                self.set(row, key, value);
            }
            return true;
        }
        if name.starts_with(b"sched_wak") && !rest.starts_with(b"comm=") {
            let Some((comm, pid, prio, more)) = thread(rest) else { return false };
            self.set(row, "comm", comm);
            self.set(row, "pid", pid);
            self.set(row, "prio", prio);
            let word = |key: &[u8]| {
                let at = more.windows(key.len()).position(|w| w == key)? + key.len();
                let length = more[at..].iter().take_while(|b| b.is_ascii_digit()).count();
                Some(&more[at..at + length])
            };
            if let Some(success) = word(b"success=") {
                self.set(row, "success", success);
            }
            if let Some(cpu) = word(b"CPU:") {
                self.set(row, "target_cpu", cpu);
            }
            return true;
        }
        false
    }
}

/// Name, number, priority and what follows: `kworker/2:1:2923 [120] R`.
fn thread(text: &[u8]) -> Option<(&[u8], &[u8], &[u8], &[u8])> {
    let open = text.windows(2).rposition(|w| w == b" [")?;
    let close = open + text[open..].iter().position(|b| *b == b']')?;
    let (who, prio) = (&text[..open], &text[open + 2..close]);
    let colon = who.iter().rposition(|b| *b == b':')?;
    let pid = &who[colon + 1..];
    let digits = |n: &[u8]| !n.is_empty() && n.iter().all(|b| b.is_ascii_digit() || *b == b'-');
    (digits(pid) && digits(prio))
        .then(|| (&who[..colon], pid, prio, text[close + 1..].trim_ascii()))
}

/// The text of a mark: without what the tools put before it.
fn mark<'a>(name: &[u8], rest: &'a [u8]) -> &'a [u8] {
    let after =
        |key: &[u8]| rest.windows(key.len()).position(|w| w == key).map(|at| at + key.len());
    if rest.starts_with(b"ip=")
        && let Some(at) = after(b" buf=")
    {
        return &rest[at..];
    }
    // `print: tracing_mark_write: text`, `print: 0xffff00000819ff24s: text`.
    let place = rest.iter().position(|b| *b == b':');
    match place {
        Some(at)
            if name == b"print"
                && (rest[..at].starts_with(b"0x") || &rest[..at] == b"tracing_mark_write") =>
        {
            rest[at + 1..].trim_ascii_start()
        }
        _ => rest,
    }
}

impl Fields for TextFields<'_> {
    fn number(&self, place: usize) -> Option<i64> {
        let text = (*self.0.get(place)?)?;
        if let Some(hex) = text.strip_prefix(b"0x") {
            let hex = std::str::from_utf8(hex).ok()?;
            return u64::from_str_radix(hex, 16).ok().map(|n| n as i64);
        }
        let (minus, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if digits.is_empty() || digits.len() > 20 {
            return None;
        }
        let n = digits.iter().try_fold(0_u64, |n, b| {
            b.is_ascii_digit().then(|| n.wrapping_mul(10).wrapping_add(u64::from(b - b'0')))
        })? as i64;
        Some(if minus { n.wrapping_neg() } else { n })
    }
    fn text(&self, place: usize) -> Option<&[u8]> {
        *self.0.get(place)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::row;

    fn fields(name: &str, rest: &'static str) -> TextFields<'static> {
        TextFields::new(row(name).expect("a row"), name.as_bytes(), rest.as_bytes())
    }

    #[test]
    fn switches_of_the_kernel_and_of_trace_cmd_have_the_same_fields() {
        for rest in [
            "prev_comm=a b=c prev_pid=12 prev_prio=120 prev_state=R+ ==> next_comm=x:1 [2] next_pid=7 next_prio=97",
            "prev_comm=a b=c prev_pid=12 prev_prio=120 prev_state=R+ next_comm=x:1 [2] next_pid=7 next_prio=97",
            "a b=c:12 [120] R+ ==> x:1 [2]:7 [97]",
        ] {
            let f = fields("sched_switch", rest);
            let number = |place| f.number(place);
            assert_eq!(
                [0, 3, 5, 6].map(number),
                [Some(12), Some(7), Some(120), Some(97)],
                "{rest}"
            );
            let text = |place| f.text(place).map(|t| std::str::from_utf8(t).expect("text"));
            assert_eq!([1, 2, 4].map(text), [Some("a b=c"), Some("R+"), Some("x:1 [2]")], "{rest}");
        }
    }

    #[test]
    fn wakeups_of_all_spellings_have_thread_and_cpu() {
        for rest in [
            "comm=kworker/0:1 pid=9 prio=120 success=1 target_cpu=002",
            "comm=kworker/0:1 pid=9 prio=120 target_cpu=2",
            "kworker/0:1:9 [120] success=1 CPU:002",
            "kworker/0:1:9 [120] CPU:002",
        ] {
            let f = fields("sched_wakeup", rest);
            assert_eq!([0, 2, 3].map(|n| f.number(n)), [Some(9), Some(2), Some(120)], "{rest}");
            assert_eq!(f.text(1), Some(&b"kworker/0:1"[..]), "{rest}");
        }
    }

    #[test]
    fn marks_are_the_same_whatever_printed_them() {
        for (name, rest) in [
            ("tracing_mark_write", "B|1|a: b"),
            ("print", "tracing_mark_write: B|1|a: b"),
            ("print", "0xffff00000819ff24s: B|1|a: b"),
            ("print", "ip=tracing_mark_write buf=B|1|a: b"),
        ] {
            assert_eq!(fields(name, rest).text(0), Some(&b"B|1|a: b"[..]), "{name} {rest}");
        }
    }

    #[test]
    fn numbers_of_the_kernel_are_read_as_it_prints_them() {
        let f = fields("cpu_idle", "state=4294967295 cpu_id=2");
        assert_eq!([0, 1].map(|n| f.number(n)), [Some(2), Some(4_294_967_295)]);
        let f = fields("cpu_frequency_limits", "min_freq=500000 max=0x10 cpu_id=-1");
        assert_eq!([0, 1, 2].map(|n| f.number(n)), [Some(-1), Some(500_000), Some(16)]);
        assert_eq!(fields("cpu_idle", "state=x").number(1), None);
    }
}
