//! Deliberately wrong simulators: the yardstick of `verify` is tested with them.
//!
//! Each is the simulator with one mechanism broken in one place. A check that no mutant fails
//! would judge nothing. No experiment runs a mutant unless [`crate::Replay`] asks for it.

use crate::machine::Machine;
use risetime_kernel::opp::FreqTableEntry;
use risetime_kernel::pelt::Decay;
use risetime_kernel::units::{KHz, Span, Util};
use risetime_model::Experiment;
use risetime_model::settings::Value;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// PELT forgets half in 30 periods, not in 32.
    HalfLife30,
    /// The first tick after idle comes one tick late.
    TickOneOff,
    /// DVFS headroom of 1.2, not 1.25.
    Headroom12,
    /// `rate_limit_us` is 0.
    NoRateLimit,
    /// `update_misfit_status` is not called by the tick.
    MisfitAtWakeupOnly,
    /// The PELT clock does not scale with capacity.
    CapacityNotScaled,
    /// The PELT clock does not scale with frequency.
    FrequencyNotScaled,
    /// `util_est` is 0.
    UtilEstNotHeld,
    /// `uclamp_min` and `uclamp_max` of the policy are ignored.
    ClampsIgnored,
    /// A task that migrates arrives with util 0.
    MigrationForgets,
    /// The highest OPP below the wanted frequency, not the lowest above it.
    OppBelow,
    /// No idle CPU is ever kicked to balance.
    NoNohzKick,
    /// A wakeup never preempts.
    NoWakeupPreemption,
    /// The sugov kthread needs 10 ms for a change.
    SlowKthread,
    /// Wakeups do not look at energy.
    NoEnergyAwareness,
}

/// All of them: what, its name, one sentence.
pub const MUTANTS: &[(Mutant, &str, &str)] = &[
    (Mutant::HalfLife30, "half-life-30", "PELT forgets half in 30 periods, not in 32"),
    (Mutant::TickOneOff, "tick-one-off", "the first tick after idle comes one tick late"),
    (Mutant::Headroom12, "headroom-1.2", "DVFS headroom of 1.2, not 1.25"),
    (Mutant::NoRateLimit, "no-rate-limit", "rate_limit_us is 0"),
    (Mutant::MisfitAtWakeupOnly, "misfit-at-wakeup", "misfit is not looked for at the tick"),
    (Mutant::CapacityNotScaled, "capacity-not-scaled", "PELT's clock ignores capacity"),
    (Mutant::FrequencyNotScaled, "frequency-not-scaled", "PELT's clock ignores frequency"),
    (Mutant::UtilEstNotHeld, "util_est-not-held", "util_est is 0"),
    (Mutant::ClampsIgnored, "clamps-ignored", "uclamp_min and uclamp_max do nothing"),
    (Mutant::MigrationForgets, "migration-forgets", "a task that migrates arrives with util 0"),
    (Mutant::OppBelow, "opp-below", "the highest OPP below the wanted frequency"),
    (Mutant::NoNohzKick, "no-nohz-kick", "no idle CPU is kicked to balance"),
    (Mutant::NoWakeupPreemption, "no-wakeup-preemption", "a wakeup never preempts"),
    (Mutant::SlowKthread, "slow-kthread", "the sugov kthread needs 10 ms for a change"),
    (Mutant::NoEnergyAwareness, "no-energy-awareness", "wakeups do not look at energy"),
];

static HALF_LIFE_30: Decay = match Decay::new(30) {
    Some(decay) => decay,
    None => panic!("30 is a half-life"),
};

impl Mutant {
    /// What is broken by the experiment's settings alone.
    pub(crate) fn change(self, experiment: &mut Experiment) {
        let settings = &mut experiment.settings.0;
        match self {
            Mutant::NoRateLimit => {
                settings.retain(|name, _| !name.starts_with("rate_limit_us"));
                settings.insert("rate_limit_us".into(), Value::Int(0));
            }
            Mutant::ClampsIgnored => {
                settings.retain(|name, _| name != "uclamp_min" && name != "uclamp_max");
            }
            Mutant::SlowKthread => {
                let ns = Span::from_ms(10).0 as i64;
                settings.insert("sugov_work_ns".into(), Value::Int(ns));
            }
            Mutant::NoEnergyAwareness => {
                settings.insert("sched_energy_aware".into(), Value::Int(0));
            }
            _ => {}
        }
    }

    /// What is broken from the start of the machine.
    pub(crate) fn prepare(self, m: &mut Machine) {
        m.mutant = Some(self);
        if self == Mutant::HalfLife30 {
            m.decay = &HALF_LIFE_30;
        }
    }
}

impl Machine {
    /// Whether this is the simulator with that mistake.
    #[inline]
    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

/// `headroom-1.2`: 1.25 · 24/25.
pub(crate) fn headroom(util: Util) -> Util {
    Util(util.0 * 24 / 25)
}

/// `opp-below`.
pub(crate) fn opp_below(table: &[FreqTableEntry], freq: KHz) -> KHz {
    let below = table.iter().rev().find(|e| e.freq <= freq);
    below.or(table.first()).map_or(freq, |e| e.freq)
}
