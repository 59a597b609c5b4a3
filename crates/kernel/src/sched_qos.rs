//! sched-qos: hints that a task gives about itself, by type, value and cookie.
//!
//! ```text
//!  sched_setattr(SCHED_FLAG_QOS, type, value, cookie)
//!  type SCHED_QOS_RAMPUP_MULTIPLIER   value ≥ 0   cookie 0        how fast its util_est climbs
//!  fork                               no hint is inherited: back to the system's default
//! ```
//!
//! A cookie would tie a hint to a group of tasks; the one type there is refuses any but 0. Left out:
//! the other fields of `sched_attr`.
//!
//! Source: RFC 00/16 "Better manage system response time" (August 2024), patches 10 and 11.

/// The type of a hint (`enum sched_qos_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchedQosType {
    /// `SCHED_QOS_RAMPUP_MULTIPLIER`: running time counts that many times in util_est.
    RampupMultiplier,
}

impl SchedQosType {
    /// All of them, with the names they have in a file: the kernel's without `SCHED_QOS_`, in
    /// small letters.
    pub const ALL: &'static [(&'static str, SchedQosType)] =
        &[("rampup_multiplier", SchedQosType::RampupMultiplier)];
}

/// Reason for which a hint is refused (`-EINVAL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QosError {
    /// This type takes no cookie but 0.
    Cookie,
    /// The value is below 0.
    Value,
}

/// A hint as `sched_setattr` takes it (`sched_qos_type`, `_value`, `_cookie`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedQosHint {
    /// Kind of the hint.
    pub kind: SchedQosType,
    /// Value of the hint.
    pub value: i64,
    /// Cookie of the tasks that the hint is for; 0: for all.
    pub cookie: u32,
}

impl SchedQosHint {
    /// Whether the kernel would take it. Source: RFC 00/16, patch 11, sched_qos_validate.
    pub const fn validate(&self) -> Result<(), QosError> {
        match self.kind {
            SchedQosType::RampupMultiplier if self.cookie != 0 => Err(QosError::Cookie),
            SchedQosType::RampupMultiplier if self.value < 0 => Err(QosError::Value),
            SchedQosType::RampupMultiplier => Ok(()),
        }
    }
}

/// A task's hints (`struct sched_qos`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedQos {
    /// Running time counts that many times in util_est; 32 bits wide, as in the kernel.
    pub rampup_multiplier: u32,
    /// The task said so, not the system.
    user_defined: bool,
}

impl SchedQos {
    /// The hints of a new task, whatever its parent's were: the system's default.
    /// Source: RFC 00/16, patch 11, sched_qos_fork.
    pub const fn fork(default_rampup_multiplier: u32) -> SchedQos {
        SchedQos { rampup_multiplier: default_rampup_multiplier, user_defined: false }
    }

    /// Takes a hint of the task. Errors: as [`SchedQosHint::validate`]; nothing changes then.
    /// Source: RFC 00/16, patch 11, __setscheduler_sched_qos.
    pub const fn set(&mut self, hint: SchedQosHint) -> Result<(), QosError> {
        match hint.validate() {
            Ok(()) => {
                self.rampup_multiplier = hint.value as u32;
                self.user_defined = true;
                Ok(())
            }
            refused => refused,
        }
    }

    /// Sets the system's default for a task that never gave a hint. Source: RFC 00/16, patch 11,
    /// sched_qos_sync_sysctl.
    pub const fn sync_sysctl(&mut self, default_rampup_multiplier: u32) {
        if !self.user_defined {
            self.rampup_multiplier = default_rampup_multiplier;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn hint(value: i64, cookie: u32) -> SchedQosHint {
        SchedQosHint { kind: SchedQosType::RampupMultiplier, value, cookie }
    }

    #[test]
    fn a_cookie_or_a_negative_value_is_refused_and_changes_nothing() {
        let mut qos = SchedQos::fork(1);
        assert_eq!(qos.set(hint(4, 1)), Err(QosError::Cookie));
        assert_eq!(qos.set(hint(-1, 0)), Err(QosError::Value));
        assert_eq!(qos, SchedQos::fork(1));
        assert_eq!(qos.set(hint(0, 0)), Ok(()));
        assert_eq!(qos.rampup_multiplier, 0);
    }

    #[test]
    fn the_systems_default_moves_only_those_who_said_nothing() {
        let (mut silent, mut said) = (SchedQos::fork(1), SchedQos::fork(1));
        // Even one who said what was the case anyway.
        assert_eq!(said.set(hint(1, 0)), Ok(()));
        silent.sync_sysctl(3);
        said.sync_sysctl(3);
        assert_eq!((silent.rampup_multiplier, said.rampup_multiplier), (3, 1));
    }

    #[test]
    fn a_fork_starts_from_the_default() {
        let mut parent = SchedQos::fork(1);
        assert_eq!(parent.set(hint(8, 0)), Ok(()));
        let mut child = SchedQos::fork(1);
        assert_eq!(child.rampup_multiplier, 1);
        child.sync_sysctl(2);
        assert_eq!(child.rampup_multiplier, 2, "nor does it count as having said anything");
    }
}
