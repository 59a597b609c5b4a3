//! Numbers and states in the words that every report uses.

use risetime_analysis::known::Need;
use risetime_analysis::{Burst, EndedBy, Level, RunResult, TaskResult};
use risetime_kernel::units::KHz;
use risetime_model::Settings;
use risetime_model::settings::keys::{NOISE, SKIP_MS};
use risetime_trace::{BackendKind, Why};
use std::collections::BTreeMap;

/// Rounds to 3 decimals (µs of a ms); −0 becomes 0, and what is not a number stays so.
pub(crate) fn round3(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0 + 0.0
}

/// Adds `x` to `text` as [`round3`] leaves it: with at most three decimals, those that it has.
pub(crate) fn push_round3(text: &mut String, x: f64) {
    /// Bound, in thousandths, below which the digits tell any two numbers apart, so that no shorter text means the same one.
    const EXACT: f64 = 1e15;
    let thousandths = (x * 1000.0).round();
    if thousandths.is_nan() || thousandths.abs() >= EXACT {
        text.push_str(&round3(x).to_string());
        return;
    }
    if thousandths < 0.0 {
        text.push('-');
    }
    let n = thousandths.abs() as u64;
    text.push_str(itoa::Buffer::new().format(n / 1000));
    let rest = n % 1000;
    if rest > 0 {
        // 1 in front keeps the zeros behind the point.
        let mut digits = itoa::Buffer::new();
        text.push('.');
        text.push_str(digits.format(1000 + rest)[1..].trim_end_matches('0'));
    }
}

/// Milliseconds or millijoules for a person: one decimal, "–" for what is not a number.
pub(crate) fn one(x: f64) -> String {
    if x.is_finite() { format!("{:.1}", (x * 10.0).round() / 10.0 + 0.0) } else { "–".into() }
}

/// A figure of any size: three digits, or all before the point; "–" for what is not a number.
pub(crate) fn digits3(x: f64) -> String {
    let decimals = match x.abs() {
        x if !x.is_finite() => return "–".into(),
        x if x < 9.995 => 2 + usize::from(x < 0.9995),
        x if x < 99.95 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", round3(x))
}

/// Milliseconds or millijoules as [`one`] writes them; `never` for what has not happened.
pub(crate) fn one_or(x: Option<f64>, never: &str) -> String {
    x.map_or_else(|| never.into(), one)
}

/// An energy, which is not known where the platform does not say what its CPUs take.
pub(crate) fn energy(mj: Option<f64>) -> String {
    one_or(mj, UNKNOWN)
}

/// Returns the reason for which the energy is not known.
pub(crate) fn no_power(r: &RunResult) -> &'static str {
    r.lacks(Need::Powers).unwrap_or("of some of its CPUs alone it is known")
}

/// Word in place of a figure that is there, and not known.
pub(crate) const UNKNOWN: &str = "unknown";

/// A difference with its sign: `+3.2`, `-0.4`, `0.0`.
pub(crate) fn signed(x: f64) -> String {
    let text = one(x);
    if text.starts_with('-') || text == "0.0" { text } else { format!("+{text}") }
}

/// Formats a difference with its sign, to three digits.
pub(crate) fn signed3(x: f64) -> String {
    let text = digits3(x);
    match text.trim_start_matches(['0', '.', '-']).is_empty() {
        true => "0".into(),
        false if text.starts_with(['-', '–']) => text,
        false => format!("+{text}"),
    }
}

/// A frequency in MHz, as exactly as it was given: `600`, `1804.8`.
pub(crate) fn mhz(freq: KHz) -> String {
    let (whole, rest) = (freq.0 / 1000, freq.0 % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:03}").trim_end_matches('0').to_string()
}

/// The noise that a machine added, and the seed from which it was drawn; `None`: none.
pub(crate) fn noise(settings: &Settings, seed: u64) -> Option<String> {
    let profile = settings.get(&NOISE).filter(|profile| *profile != "off")?;
    Some(format!("noise {profile}, seed {seed}"))
}

/// The words that say that a run was simulated, and with which noise.
pub(crate) fn simulated(settings: &Settings, seed: u64) -> String {
    let noise = noise(settings, seed);
    noise.map_or_else(|| "simulated".into(), |noise| format!("simulated, {noise}"))
}

/// Names the source of the trace for a reader.
pub(crate) fn backend(r: &RunResult) -> String {
    match r.backend {
        BackendKind::Sim => simulated(&r.settings, r.seed),
        BackendKind::Vm => format!("Linux {} in a VM", r.kernel_release),
        BackendKind::Host => "this machine".into(),
        BackendKind::File => "a trace".into(),
    }
}

/// The words that say how much of a run's start is left out; `None`: nothing.
pub(crate) fn skipped(settings: &Settings) -> Option<String> {
    settings.get(&SKIP_MS).map(|ms| format!("without the first {ms} ms"))
}

/// Describes the state in which speed was lost, in words that need no kernel knowledge.
pub(crate) fn lost_state(state: &str) -> String {
    match state {
        "waiting_for_cpu" => "another task had the CPU".into(),
        "throttled" => "its reservation was used up".into(),
        "idle_exit" => "its CPU was leaving an idle state".into(),
        "little_cpu" => "on a small CPU, not misfit yet".into(),
        "waiting_for_misfit" => "misfit, waiting to be moved".into(),
        "lowest_opp" => "waiting at lowest frequency".into(),
        "opp_climb" => "climbing the frequencies".into(),
        "not_invariant" => "util without invariance: step by step".into(),
        "reserved" => "frequency of reserved bandwidth".into(),
        "boost_not_asked" => "boost never asked for".into(),
        "last_asked" => "last asked for before the CPU idled".into(),
        "rate_limited" => "held by the rate limit".into(),
        "transition" => "the hardware changing frequency".into(),
        "uclamp_max" => "held down by uclamp_max".into(),
        "fixed_governor" => "the governor's fixed choice".into(),
        "user_capped" => "capped by user space".into(),
        "firmware_capped" => "capped by firmware".into(),
        "power_capped" => "capped by a power budget".into(),
        "cooled" => "capped by heat".into(),
        "hw_capped" => "capped by the hardware".into(),
        "affinity" => "no bigger CPU by its affinity".into(),
        "small_cpu" => "on a small CPU, why not told".into(),
        "low_frequency" => "at a lower speed, why not told".into(),
        other => other.replace('_', " "),
    }
}

/// Returns the reason of a migration, by its word, in words.
pub(crate) fn migration_reason(why: &str) -> String {
    match Why::ALL.iter().find(|known| known.as_str() == why) {
        Some(known) => known.told().into(),
        None if why == "unrecorded" => "the trace does not say why".into(),
        None => why.replace('_', " "),
    }
}

/// The mark "≥ " where the run ended before the figure was complete.
pub(crate) fn bound(b: &Burst) -> &'static str {
    if b.ended() == Some(EndedBy::RunEnd) { "≥ " } else { "" }
}

/// The time to full speed, in ms; `None` if the burst never had it.
pub(crate) fn to_full_speed(b: &Burst) -> Option<f64> {
    (b.ended() == Some(EndedBy::FullSpeed)).then_some(b.t1_ms - b.t0_ms)
}

/// The time after which `level` was reached, in ms; `None`: never, or not asked.
pub(crate) fn after(t: &TaskResult, level: Level) -> Option<f64> {
    t.reach.iter().find(|r| r.what == level).and_then(|r| r.after_ms)
}

/// The names to tell the tasks of a run apart: each its comm, with its number where another
/// has the same.
pub(crate) fn task_names(run: &RunResult) -> Vec<String> {
    let mut count: BTreeMap<&str, u32> = BTreeMap::new();
    for t in &run.tasks {
        *count.entry(&t.comm).or_default() += 1;
    }
    run.tasks.iter().map(|t| distinct_name(t, count[t.comm.as_str()] > 1)).collect()
}

/// Returns the name of one of them among all.
pub(crate) fn task_name(run: &RunResult, task: &TaskResult) -> String {
    let of_this_name = run.tasks.iter().filter(|t| t.comm == task.comm);
    distinct_name(task, of_this_name.take(2).count() > 1)
}

/// A task's name, with its number where others have the same one.
fn distinct_name(t: &TaskResult, others: bool) -> String {
    match others {
        true => format!("{}#{}", t.comm, t.task.0),
        false => t.comm.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_number_is_written_as_any_other() {
        let mut numbers =
            vec![0.0, -0.0, -0.0004, 0.0005, 1e12, 1e15, 1e300, f64::NAN, f64::INFINITY];
        let mut x = 1u64;
        for _ in 0..100_000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            numbers.push(
                ((x >> 11) as i64 - (1 << 52)) as f64 / f64::from(10u32.pow((x % 10) as u32)) / 1e5,
            );
        }
        for x in numbers {
            let mut text = String::new();
            push_round3(&mut text, x);
            assert_eq!(text, round3(x).to_string(), "{x}");
        }
    }

    #[test]
    fn rounding_leaves_no_minus_zero() {
        assert_eq!(round3(-0.0001).to_string(), "0");
        assert_eq!(one(-0.04), "0.0");
        assert_eq!(signed(-0.04), "0.0");
        assert_eq!(signed(3.25), "+3.3");
        assert_eq!(one(f64::NAN), "–");
    }

    #[test]
    fn frequencies_are_exact() {
        assert_eq!(mhz(KHz(600_000)), "600");
        assert_eq!(mhz(KHz(1_804_800)), "1804.8");
        assert_eq!(mhz(KHz(1_000_007)), "1000.007");
    }
}
