//! A frequency domain as a cooling device: state n forbids its n highest OPPs.
//!
//! ```text
//!  state             0        1        …   states
//!  highest OPP       table[n] table[n-1]   table[0]
//!  power of a state  P(its OPP) · CPUs                                    mW, each OPP's rounded down
//!  requested power   P(current OPP) · Σ load of the CPUs, in percent, / 100
//!  power -> state    the highest OPP of at most power · 100 / Σ load      else the lowest
//! ```
//!
//! Source: drivers/thermal/cpufreq_cooling.c:cpufreq_get_requested_power, cpufreq_state2power, cpufreq_power2state,
//! get_state_freq.

use crate::units::{KHz, MicroWatts};

/// An OPP: its frequency, and the power of one CPU that is busy there.
pub type PerfState = (KHz, MicroWatts);

fn mw(power: MicroWatts) -> u64 {
    power.0 / 1000
}

/// The greatest state of a table, ascending, that is not empty.
pub fn max_level(table: &[PerfState]) -> u32 {
    table.len().saturating_sub(1) as u32
}

/// `get_state_freq`. `None`: no such state.
pub fn get_state_freq(table: &[PerfState], state: u32) -> Option<KHz> {
    let idx = max_level(table).checked_sub(state)?;
    table.get(idx as usize).map(|(freq, _)| *freq)
}

/// `cpu_freq_to_power`: that of the lowest OPP at or above `freq`, in mW.
pub fn cpu_freq_to_power(table: &[PerfState], freq: KHz) -> u64 {
    let at = table.iter().find(|(f, _)| *f >= freq).or(table.last());
    at.map_or(0, |(_, power)| mw(*power))
}

/// `cpufreq_get_requested_power`, in mW; `total_load`: in percent, of all CPUs.
pub fn get_requested_power(table: &[PerfState], cur: KHz, total_load: u64) -> u64 {
    cpu_freq_to_power(table, cur) * total_load / 100
}

/// `cpufreq_power2state`.
pub fn power2state(table: &[PerfState], power_mw: u64, total_load: u64) -> u32 {
    let normalised = power_mw * 100 / total_load.max(1);
    let idx = table.iter().rposition(|(_, power)| normalised >= mw(*power)).unwrap_or(0);
    max_level(table) - idx as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [PerfState; 3] = [
        (KHz(500_000), MicroWatts(100_900)),
        (KHz(1_000_000), MicroWatts(300_000)),
        (KHz(2_000_000), MicroWatts(900_000)),
    ];

    #[test]
    fn a_state_forbids_the_highest_opps() {
        let freqs = [0, 1, 2, 3].map(|state| get_state_freq(&TABLE, state));
        assert_eq!(freqs, [Some(KHz(2_000_000)), Some(KHz(1_000_000)), Some(KHz(500_000)), None]);
    }

    #[test]
    fn power_and_states() {
        assert_eq!(cpu_freq_to_power(&TABLE, KHz(500_000)), 100);
        assert_eq!(cpu_freq_to_power(&TABLE, KHz(500_001)), 300);
        // Two CPUs, one and a half of them busy.
        assert_eq!(get_requested_power(&TABLE, KHz(2_000_000), 150), 1350);
        assert_eq!(power2state(&TABLE, 1350, 150), 0);
        assert_eq!(power2state(&TABLE, 1349, 150), 1);
        assert_eq!(power2state(&TABLE, 449, 150), 2);
        assert_eq!(power2state(&TABLE, 0, 150), 2);
        // An idle domain may have any OPP.
        assert_eq!(power2state(&TABLE, 9, 0), 0);
    }
}
