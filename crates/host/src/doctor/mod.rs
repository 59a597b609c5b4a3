//! Findings about this machine that cost response time, with evidence and numbers.
//!
//! ```text
//! order      = severity, then the milliseconds at stake, then the order of the checks
//! util       grows as 1024 · (1 − 2^(−t·s/33.55 ms)), s = capacity/1024 · freq/freq_max
//! schedutil  asks for freq_max once util ≥ 0.8 · capacity (1.25 · util ≥ capacity)
//! ```
//!
//! The milliseconds are for reading and ordering: they come from the closed form of PELT, not
//! from a simulation, and leave out ticks, period boundaries and everything else that runs.
//!
//! Left out: what only shows while it happens (interrupt load, thermal pressure over time,
//! what an application does); that is for recordings.

mod frequency;
mod scheduler;

use crate::probe::{CpufreqPolicy, Machine};
use crate::root::{Fact, Root, format_cpu_list};

/// One thing found out about a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Importance.
    pub severity: Severity,
    /// State of affairs, one line.
    pub title: String,
    /// Files that say so.
    pub evidence: Vec<Evidence>,
    /// Consequence for response time, in numbers where there are any.
    pub meaning: String,
    /// Advice on what can be done about it, or how to know more; `None`: nothing.
    pub hint: Option<String>,
}

/// A file and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The file's name, or how else the value was found out.
    pub file: String,
    /// Content of the file, or the part that matters.
    pub value: String,
}

/// Importance of a finding, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The finding costs response time now.
    Costly,
    /// The finding shapes response time, or decides what can be known or done here.
    Notable,
    /// The source could not be read, so it may hide something.
    Unreadable,
    /// Looked at and in order.
    Fine,
}

impl Severity {
    /// The severity's name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Costly => "costly",
            Severity::Notable => "notable",
            Severity::Unreadable => "unreadable",
            Severity::Fine => "fine",
        }
    }
}

/// Examines the machine under `root`. Never fails, changes nothing.
pub fn doctor(root: &Root) -> Vec<Finding> {
    examine(&Machine::probe(root))
}

/// Examines a machine that has been probed already.
pub fn examine(m: &Machine) -> Vec<Finding> {
    let mut all = Findings::default();
    frequency::check(m, &mut all);
    scheduler::check(m, &mut all);
    unreadable(m, &mut all);
    all.sorted()
}

/// Reports what could not be read: what needs root as one finding, what is garbage as another.
fn unreadable(m: &Machine, all: &mut Findings) {
    let evidence = |denied: bool| -> Vec<Evidence> {
        let of_kind = m.problems.iter().filter(|p| p.denied == denied);
        of_kind.take(8).map(|p| Evidence { file: p.file.clone(), value: p.what.clone() }).collect()
    };
    let count = |denied: bool| m.problems.iter().filter(|p| p.denied == denied).count();
    if count(true) > 0 {
        all.add(5, Finding {
            severity: Severity::Unreadable,
            title: format!("{} may not be read by you", files(count(true))),
            evidence: evidence(true),
            meaning: "what they hold (usually the energy model, scheduler features and the preemption model) is not in this report".to_owned(),
            hint: Some("sudo risetime doctor".to_owned()),
        });
    }
    if count(false) > 0 {
        all.add(
            1,
            Finding {
                severity: Severity::Unreadable,
                title: format!("{} could not be understood", files(count(false))),
                evidence: evidence(false),
                meaning: "what they hold is taken as not known".to_owned(),
                hint: None,
            },
        );
    }
}

fn files(n: usize) -> String {
    if n == 1 { "1 file".to_owned() } else { format!("{n} files") }
}

/// Findings with the weight that orders them: milliseconds at stake, roughly.
#[derive(Default)]
struct Findings(Vec<(u32, Finding)>);

impl Findings {
    /// Files may hold anything: what reaches a terminal has no control characters.
    fn add(&mut self, ms_at_stake: u32, mut finding: Finding) {
        let clean = |text: &mut String| {
            *text = text.replace(char::is_control, " ");
        };
        clean(&mut finding.title);
        clean(&mut finding.meaning);
        finding.hint.iter_mut().for_each(clean);
        finding.evidence.iter_mut().for_each(|e| clean(&mut e.value));
        self.0.push((ms_at_stake, finding));
    }

    fn sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|(ms, f)| (f.severity, std::cmp::Reverse(*ms)));
        self.0.into_iter().map(|(_, f)| f).collect()
    }
}

impl<T: std::fmt::Display> From<&Fact<T>> for Evidence {
    fn from(f: &Fact<T>) -> Evidence {
        let value: String = f.value.to_string().chars().take(200).collect();
        Evidence {
            file: f.file.clone(),
            value: if value.is_empty() { "(empty)".to_owned() } else { value },
        }
    }
}

/// Half-life of PELT: 32 periods of 1.048576 ms.
const HALF_LIFE_MS: f64 = 33.554_432;

/// Milliseconds of running at `speed` (of the biggest CPU's full speed) in which util grows
/// from `from` to `to`.
fn grow_ms(from: f64, to: f64, speed: f64) -> f64 {
    HALF_LIFE_MS * ((1024.0 - from) / (1024.0 - to)).log2() / speed
}

/// The time that schedutil takes to climb a policy when a task turns busy from util 0, by the
/// closed form and without rate limit: milliseconds at the lowest frequency, and until the highest
/// is asked. `None` if there are no two frequencies.
///
/// OPP i is left when 1.25 · util / capacity · freq_max exceeds its frequency.
fn climb_ms(freqs: &[u64], capacity: u64) -> Option<(f64, f64)> {
    let (&max, below) = freqs.split_last()?;
    let mut util = 0.0;
    let mut spent = Vec::new();
    for &f in below {
        let share = f as f64 / max as f64;
        let until = 0.8 * capacity as f64 * share;
        spent.push(grow_ms(util, until, capacity as f64 / 1024.0 * share));
        util = until;
    }
    Some((*spent.first()?, spent.iter().sum()))
}

/// The frequencies a policy's governor may choose: the table, else steps of 100 MHz between
/// the limits of the hardware.
fn steps_of(p: &CpufreqPolicy) -> Vec<u64> {
    if p.freqs.len() > 1 {
        return p.freqs.clone();
    }
    match (&p.hardware_min, &p.hardware_max) {
        (Some(min), Some(max)) if min.value < max.value && max.value < 100_000_000 => {
            let mut steps: Vec<u64> = (min.value..max.value).step_by(100_000).collect();
            steps.push(max.value);
            steps
        }
        _ => Vec::new(),
    }
}

/// `CPU 3` or `CPUs 0-3`.
fn cpus(list: &[u32]) -> String {
    let s = if list.len() == 1 { "" } else { "s" };
    format!("CPU{s} {}", format_cpu_list(list))
}

/// `1.8 GHz`, `600 MHz`.
fn mhz(khz: u64) -> String {
    if khz >= 1_000_000 {
        format!("{:.2} GHz", khz as f64 / 1e6)
    } else {
        format!("{} MHz", khz / 1000)
    }
}

/// Formats µs as `70 µs`, `7.5 ms`, `6.4 s`.
fn duration(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 if us.is_multiple_of(1000) => format!("{} ms", us / 1000),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published ramp of the M1's little cluster: about 37 to 46 ms at 600 MHz; and
    /// 1.25 · util reaches capacity 459 at util 367.
    #[test]
    fn climb_of_a_known_machine() {
        let (lowest, _) =
            climb_ms(&[600_000, 972_000, 1_332_000, 1_704_000, 2_064_000], 459).unwrap();
        assert!((37.0..46.0).contains(&lowest), "{lowest}");
        assert_eq!(climb_ms(&[600_000], 1024), None);
        assert_eq!(climb_ms(&[], 1024), None);
    }

    /// The review's 323 ms to util 1023.05 at full capacity, and half-life by definition.
    #[test]
    fn util_grows_as_pelt() {
        assert!((grow_ms(0.0, 512.0, 1.0) - HALF_LIFE_MS).abs() < 1e-9);
        assert!((grow_ms(0.0, 1023.05, 1.0) - 338.0).abs() < 1.0);
        assert!(grow_ms(0.0, 512.0, 0.5) > grow_ms(0.0, 512.0, 1.0));
    }

    #[test]
    fn durations_are_readable() {
        for (us, text) in
            [(70, "70 µs"), (10_000, "10 ms"), (7_500, "7.5 ms"), (6_442_450_000, "6442.4 s")]
        {
            assert_eq!(duration(us), text);
        }
    }
}
