//! Placements of deadline tasks, and the other rules that a kernel may have for them: one file and one line in
//! [`PLACEMENTS`] each.
//!
//! ```text
//!                    admission (beside the machine's)    wakeup                            in between
//! gedf               -                                   the latest deadline of the machine   pushed, pulled
//! clustered          an island with room, for good       the latest deadline of its island    pushed, pulled within it
//! partitioned-ff/wf  a CPU with room, for good           that CPU                             -
//! apedf-ff/wf        a CPU with room                     stays; where EDF's test fails: a     -; where the test fails:
//!                                                        CPU on which it holds, else gedf     as gedf
//! bl-cbs             a CPU with room                     where it costs least power and fits  -; likewise
//! ```
//!
//! EDF's test here: [`crate::mech::dl_rules::state`]. It is exact for deadlines at the end of periods; where a deadline is shorter, what is due
//! within any time has to fit, too. For gedf and clustered sums are not enough, as the kernel's own are not: they are soft by design.
//! With priorities in place of deadlines: [`fixed`].
//!
//! DEVIATES(dl-placement-capacity): the test supposes what limits of the frequency leave of each CPU when it is asked, and not what
//! interrupts take of it, nor a cap that comes later (the kernel's admission: the whole capacity). partitioned and clustered stay where they
//! are under such a cap; apedf and bl-cbs go, at their next wakeup, where the test holds, if it does anywhere. Who stays may be late.

pub(crate) mod state;

mod apedf;
mod bl_cbs;
mod clustered;
mod fixed;
mod gedf;
mod partitioned;

use crate::mech::mechanism::Mechanism;
use crate::state::class::{DlFrequency, DlPlacement, DlRules, Fixed, FixedBy};
use risetime_kernel::features;
use risetime_model::settings::{Default, Group, Home, Name, Neutral, Param, Range, Settings};
use risetime_model::{Experiment, InputError, Platform, Policy};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
}

/// All placements, the stock kernel's first.
const PLACEMENTS: [&dyn DlPlacement; 7] = [
    &gedf::GlobalEdf,
    &partitioned::FIRST_FIT,
    &partitioned::WORST_FIT,
    &clustered::Clustered,
    &apedf::FIRST_FIT,
    &apedf::WORST_FIT,
    &bl_cbs::BigLittleCbs,
];

/// Names of the placements, for the setting.
const NAMES: &[&str] =
    &["gedf", "partitioned-ff", "partitioned-wf", "clustered", "apedf-ff", "apedf-wf", BL_CBS];

const BL_CBS: &str = "bl-cbs";

const PLACEMENT: Name = Name::new(Param {
    name: "dl_placement",
    doc: "placement of deadline tasks: gedf = global EDF, the kernel's own; partitioned-ff, partitioned-wf = a CPU for good, first or worst fit; clustered = an island for good, global EDF in it; apedf-ff, apedf-wf = adaptive partitioned EDF; bl-cbs = big.LITTLE CBS, where it costs least power (unset: gedf)",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Name("gedf")),
});
const FREQUENCY: Name = Name::new(Param {
    name: "dl_frequency",
    doc: "bandwidth of deadline tasks that frequencies go by: grub-pa = the bandwidth of those that are active, the kernel's own since 4.16; admitted = of all that belong to the CPU; max = everything while one is active (unset: the kernel's own)",
    unit: "",
    range: Range::OneOf(&["grub-pa", "admitted", "max"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Name("grub-pa")),
});
const ORDER: Name = Name::new(Param {
    name: "class_order",
    doc: "class that comes first: dl-rt = SCHED_DEADLINE, the kernel's own; rt-dl = SCHED_FIFO and SCHED_RR (OSPM 2023) (unset: dl-rt)",
    unit: "",
    range: Range::OneOf(&["dl-rt", "rt-dl"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Name("dl-rt")),
});
const AS: Name = Name::new(Param {
    name: "dl_as",
    doc: "policy under which the workload's SCHED_DEADLINE tasks run: edf = SCHED_DEADLINE; rm, dm = under SCHED_FIFO, the shorter the period, or the relative deadline, the higher the priority, from 98 down; fifo = all with the same one; with dl_placement=partitioned-… each on a CPU for good on which response times are in time (unset: edf)",
    unit: "",
    range: Range::OneOf(&["edf", "rm", "dm", "fifo"]),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("edf")),
});

const GROUP: Group = Group::of(&[PLACEMENT.0, FREQUENCY.0, ORDER.0, AS.0])
    .titled("Deadline tasks, as no stock kernel has them")
    .checked(check);

/// The rules that settings ask for.
pub(crate) fn of_experiment(e: &Experiment) -> DlRules {
    let name = e.settings.get(&PLACEMENT);
    let named = PLACEMENTS.into_iter().find(|p| Some(p.about().0) == name);
    let by = match e.settings.get(&AS) {
        Some("rm") => Some(FixedBy::Period),
        Some("dm") => Some(FixedBy::Deadline),
        Some("fifo") => Some(FixedBy::Nothing),
        _ => None,
    };
    DlRules {
        placement: named.unwrap_or(PLACEMENTS[0]),
        frequency: match e.settings.get(&FREQUENCY) {
            Some("grub-pa") => Some(DlFrequency::GrubPa),
            Some("admitted") => Some(DlFrequency::Admitted),
            Some("max") => Some(DlFrequency::Max),
            _ => None,
        },
        rt_first: e.settings.get(&ORDER) == Some("rt-dl"),
        fixed: by.map(|by| Fixed::of(e, by)),
    }
}

/// Errors: rules that go by what this kernel, or this platform, does not have.
fn check(platform: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let since = features::SUGOV_NEXT_FREQ_SHARED.first;
    if settings.get(&FREQUENCY).is_some() && !policy.kernel.has(features::SUGOV_NEXT_FREQ_SHARED) {
        let what = format!(
            "`{FREQUENCY}` is for kernels whose schedutil knows what deadline tasks are promised, from {since} on, and this is {}",
            policy.kernel
        );
        return Err(InputError::new(policy.place_of(FREQUENCY.name), what)
            .hint("up to 4.16 it goes to the highest frequency while a deadline task runs"));
    }
    let place =
        settings.get(&PLACEMENT).and_then(|name| PLACEMENTS.iter().find(|p| p.about().0 == name));
    let global = place.is_none_or(|p| p.about().0 == PLACEMENTS[0].about().0 || p.fit().is_some());
    if settings.get(&AS).is_some_and(|by| by != "edf") && !global {
        let what = format!(
            "`{PLACEMENT}` is {}, which is for deadlines, and `{AS}` gives priorities in place of them",
            settings.get(&PLACEMENT).unwrap_or_default()
        );
        return Err(InputError::new(policy.place_of(PLACEMENT.name), what)
            .hint("fixed priorities are global (gedf) or partitioned-ff, partitioned-wf"));
    }
    let unknown =
        platform.domains.iter().find(|d| !d.energy_model || d.opps.iter().any(|o| o.power.0 == 0));
    if let (Some(BL_CBS), Some(domain)) = (settings.get(&PLACEMENT), unknown) {
        let what = format!(
            "`{PLACEMENT}` is {BL_CBS}, which goes by the kernel's energy model, and {} has none of CPU{}",
            platform.name, domain.cpus[0].0
        );
        return Err(InputError::new(policy.place_of(PLACEMENT.name), what)
            .hint("a platform file gives `dynamic_power_coefficient`, or `power_uw` of each OPP, and no `energy_model = false`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_its_placement() {
        assert_eq!(PLACEMENTS.map(|p| p.about().0).as_slice(), NAMES);
        assert!(PLACEMENTS.iter().all(|p| !p.about().1.is_empty()));
    }
}
