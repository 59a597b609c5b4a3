//! Interference measured by rtla on a machine: histograms of `rtla osnoise hist` and `rtla timerlat
//! hist`.
//!
//! ```text
//! # RTLA osnoise histogram                 # RTLA timerlat histogram
//! # Time unit is microseconds (us)         # Time unit is microseconds (us)
//! # Duration:   0 00:00:30                 # Duration:   0 00:00:30
//! Index   CPU-000   CPU-001                Index   IRQ-000   Thr-000   IRQ-001   Thr-001
//! 0           430       432                0         27000         0     27012         0
//! 12           21        19                7             0     29871         0     29900
//! over:         0         0                over:         0         0         0         0
//! count:      451       451                …
//! min: / avg: / max:
//! ```
//!
//! osnoise: the longest noise, and what there is of it in a second. timerlat: the latest thread, from its timer on. Of several CPUs the worst
//! counts. A histogram with values over its end has a longest one in `max:`.

use risetime_deploy::promise::Measured;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::InputError;

/// Size limit of a file.
const MAX_BYTES: usize = 1 << 24;

/// The histogram in the file `path`.
///
/// Errors: it cannot be read; it is no histogram of rtla, with the place.
pub(crate) fn histogram(path: &str) -> Result<Measured, InputError> {
    parse(&risetime_lab::names::text(path, MAX_BYTES)?, path)
}

fn parse(text: &str, file: &str) -> Result<Measured, InputError> {
    let wrong = |line: usize, what: String| {
        InputError::new(format!("{file}:{}", line + 1), what)
            .hint("`rtla osnoise hist` and `rtla timerlat hist` write such files")
    };
    let lines: Vec<&str> = text.lines().collect();
    let tool = ["osnoise", "timerlat"].into_iter().find(|tool| {
        lines
            .iter()
            .take(8)
            .any(|l| l.starts_with('#') && l.contains(tool) && l.contains("histogram"))
    });
    let tool = tool.ok_or_else(|| wrong(0, "is no histogram of rtla".into()))?;
    let ns = match lines.iter().find(|l| l.contains("Time unit is")) {
        Some(line) if line.contains("nanoseconds") => 1,
        _ => 1000,
    };
    let seconds = lines.iter().find_map(|l| duration(l));
    let head = lines.iter().position(|l| l.trim_start().starts_with("Index"));
    let head = head.ok_or_else(|| wrong(0, "has no line that begins with Index".into()))?;
    let names: Vec<&str> = lines[head].split_whitespace().skip(1).collect();
    let wanted = if tool == "timerlat" { ["Thr-", "THR-"] } else { ["CPU-", "cpu-"] };
    let mut columns: Vec<Column> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Some(cpu) =
            wanted.iter().find_map(|w| name.strip_prefix(w)).and_then(|n| n.parse().ok())
        else {
            continue;
        };
        columns.push(Column { at, cpu: CpuId(cpu), longest: 0, sum: 0 });
    }
    if columns.is_empty() {
        return Err(wrong(head, format!("has no column {}N", wanted[0])));
    }
    for (i, line) in lines.iter().enumerate().skip(head + 1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((first, values)) = words.split_first() else { continue };
        // Summaries leave columns out that have none: `-`.
        let number = |at: usize| values.get(at).and_then(|v| v.parse::<u64>().ok());
        match first.trim_end_matches(':').parse::<u64>() {
            Ok(value) => {
                for c in &mut columns {
                    let n = number(c.at)
                        .ok_or_else(|| wrong(i, format!("column {} has no count", c.at + 1)))?;
                    if n > 0 {
                        c.longest = c.longest.max((value + 1).saturating_mul(ns));
                        c.sum =
                            c.sum.saturating_add(n.saturating_mul(value + 1).saturating_mul(ns));
                    }
                }
            }
            Err(_) if first.starts_with("max") => {
                for c in &mut columns {
                    let max = number(c.at).unwrap_or(0);
                    c.longest = c.longest.max(max.saturating_mul(ns));
                }
            }
            Err(_) => {}
        }
    }
    let worst = |of: &dyn Fn(&Column) -> u64| columns.iter().map(of).max().unwrap_or(0);
    let longest = worst(&|c| c.longest);
    if longest >= 1_000_000_000 {
        return Err(wrong(
            head,
            format!(
                "the longest is {} ms: no task can be in time beside that",
                longest / 1_000_000
            ),
        ));
    }
    let each_second = match (tool, seconds) {
        ("osnoise", Some(seconds)) => worst(&|c| c.sum) / seconds.max(1),
        ("osnoise", None) => {
            return Err(wrong(
                0,
                "has no line `# Duration:`: how often noise comes is not known".into(),
            ));
        }
        _ => 0,
    };
    Ok(Measured {
        file: file.to_string(),
        tool: tool.to_string(),
        cpus: columns.iter().map(|c| c.cpu).collect(),
        longest: Span(longest),
        each_second: Span(each_second.min(1_000_000_000)),
    })
}

/// A CPU's.
struct Column {
    at: usize,
    cpu: CpuId,
    /// ns.
    longest: u64,
    /// ns, of all.
    sum: u64,
}

/// The seconds of `# Duration:   0 00:00:30` (days, hours, minutes, seconds).
fn duration(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("# Duration:")?;
    let (days, time) = rest.trim().split_once(' ')?;
    let mut seconds: u64 = days.parse::<u64>().ok()?.checked_mul(24)?;
    let parts: Vec<u64> = time.trim().split(':').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, rest] = parts[..] else { return None };
    seconds = seconds.checked_add(hours)?.checked_mul(60)?.checked_add(minutes)?;
    seconds.checked_mul(60)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OSNOISE: &str = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:30\nIndex   CPU-000   CPU-001\n0           430       432\n12           21        30\nover:         0         1\ncount:      451       463\nmin:          0         0\navg:          0         0\nmax:         12        45\n";

    #[test]
    fn the_longest_noise_and_the_noise_of_a_second_are_those_of_the_worst_cpu() {
        let m = parse(OSNOISE, "noise.txt").expect("it is one");
        assert_eq!((m.tool.as_str(), m.longest, m.cpus.len()), ("osnoise", Span(45_000), 2));
        assert_eq!(m.each_second, Span((432 + 30 * 13) * 1000 / 30));
    }

    #[test]
    fn of_timers_threads_count() {
        let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:01:00\nIndex   IRQ-000   Thr-000   IRQ-001   Thr-001\n3     100      0    99     0\n47      0      3     0      1\nover:   0 0 0 0\nmax:    3 47 3 48\n";
        let m = parse(text, "lat.txt").expect("it is one");
        assert_eq!(
            (m.tool.as_str(), m.longest, m.each_second),
            ("timerlat", Span(48_000), Span(0))
        );
    }

    #[test]
    fn what_is_none_is_told_with_its_place() {
        for (text, said) in [
            ("hello", "noise.txt:1: is no histogram of rtla"),
            (
                "# RTLA osnoise histogram\n# Duration:   0 00:00:30\n",
                "no line that begins with Index",
            ),
            (&OSNOISE.replace("CPU-", "X-"), "noise.txt:4: has no column CPU-N"),
            (&OSNOISE.replace("# Duration", "# Dur"), "no line `# Duration:`"),
            (
                &OSNOISE.replace("12           21        30", "12           21"),
                "noise.txt:6: column 2 has no count",
            ),
        ] {
            let e = parse(text, "noise.txt").expect_err(said).to_string();
            assert!(e.contains(said), "{e}");
        }
    }
}
