//! One experiment: what a backend is given.

mod document;

pub use document::sha256;

use crate::settings::keys::{NI_RANDOM, UCLAMP_MAX, UCLAMP_MIN};
use crate::settings::{Int, Key};
use crate::{InputError, Platform, Policy, Settings, Workload};
use risetime_kernel::features;
use risetime_kernel::units::{Span, Util};
use std::sync::Arc;

/// One run: platform × workload × policy, everything resolved. The same experiment gives the
/// same bytes on a deterministic backend.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub platform: Arc<Platform>,
    /// Workload that runs on the platform.
    pub workload: Arc<Workload>,
    /// Policy: how the system decides.
    pub policy: Policy,
    /// Every setting with its value, resolved for this platform and policy.
    pub settings: Settings,
    /// Length of the run.
    pub duration: Span,
    /// The workload starts this much later.
    pub phase: Span,
    /// Seed of everything drawn by chance.
    pub seed: u64,
}

/// A start phase in µs, to the ns, as results, recordings and `--phase-us` have it: `1500.25`.
pub fn micros(phase: Span) -> String {
    let (whole, rest) = (phase.0 / 1000, phase.0 % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:03}").trim_end_matches('0').to_string()
}

/// Parses what [`micros`] writes; `None`: `text` is something else.
pub fn parse_micros(text: &str) -> Option<Span> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !(digits(whole) && digits(rest) && rest.len() <= 3) {
        return None;
    }
    let ns: u64 = format!("{rest:0<3}").parse().ok()?;
    Some(Span(whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(ns)?))
}

impl Experiment {
    /// Returns the experiment with its start phase later by `by`, and as long from there on.
    pub fn later(&self, by: Span) -> Experiment {
        Experiment { phase: self.phase + by, duration: self.duration + by, ..self.clone() }
    }

    /// `uclamp_min` and `uclamp_max` of the run, which replace those of every task for good (`uclampset -m`, `-M`).
    ///
    /// Errors: the lower one would be above the upper one for a task in some phase; no kernel takes that
    /// (`uclamp_validate`).
    pub fn uclamp(&self) -> Result<(Option<Util>, Option<Util>), InputError> {
        let of_run = |of: &Key<Int>| self.settings.get(of).map(|v| Util(v.clamp(0, 1024) as u64));
        let run = (of_run(&UCLAMP_MIN), of_run(&UCLAMP_MAX));
        if run == (None, None) {
            return Ok(run);
        }
        for task in self.workload.tasks.iter().chain(&self.workload.forked) {
            let (mut min, mut max) = (Util(0), Util(1024));
            // As when it is read: the second round is the loop coming round again.
            let phases = task.phases.iter().map(|phase| &phase.attr);
            for attr in std::iter::once(&task.attr).chain(phases.clone()).chain(phases) {
                min = run.0.or(attr.uclamp_min).unwrap_or(min);
                max = run.1.or(attr.uclamp_max).unwrap_or(max);
                if min > max {
                    let what = match run {
                        (Some(_), Some(_)) => format!("{min} is above uclamp_max, {max}"),
                        (Some(_), None) => {
                            format!("{min} is above util_max of task `{}`, {max}", task.comm)
                        }
                        _ => format!("{max} is below util_min of task `{}`, {min}", task.comm),
                    };
                    let name = if run.0.is_some() { UCLAMP_MIN } else { UCLAMP_MAX }.name();
                    let place = self.policy.places.get(name).map_or(name, String::as_str);
                    return Err(InputError::new(place, what));
                }
            }
        }
        Ok(run)
    }

    /// The notes that a reader of the results should see, whichever backend runs the experiment:
    /// keys without effect, and that `NI_RANDOM` is off.
    pub fn notes(&self) -> Vec<String> {
        let ignored = &self.workload.without_effect;
        let ignored = ignored.iter().map(|key| format!("without effect: {key}"));
        let rev = self.policy.kernel;
        // Simulator and virtual machine leave the dice out, so that runs can be compared.
        let dice = self.settings.get(&NI_RANDOM) == Some(1);
        let dice = (rev.has(features::NI_RANDOM) && !dice).then(|| {
            format!(
                "ni_random=0: a CPU that goes idle always looks for work, where Linux {rev} as it comes throws dice about it (NI_RANDOM)"
            )
        });
        ignored.chain(dice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_phase_is_written_and_read_to_the_ns() {
        for (ns, text) in [(0, "0"), (1, "0.001"), (1_500_250, "1500.25"), (7_618_000, "7618")] {
            assert_eq!((micros(Span(ns)).as_str(), parse_micros(text)), (text, Some(Span(ns))));
        }
        assert_eq!(parse_micros("1.500"), Some(Span(1500)));
        for odd in
            ["", ".", "1.", ".5", "-1", "+1", "1.2345", "1e3", "nan", "1 ", "18446744073709551.616"]
        {
            assert_eq!(parse_micros(odd), None, "{odd}");
        }
    }
}
