//! An experiment as the virtual machine of a kernel runs it, for who compares the simulator with that.

use risetime_kernel::units::Span;
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::keys::HZ;
use risetime_model::{Experiment, Settings};
use risetime_sim::settings::{
    PREEMPT, RATE_LIMIT_US, RT_UCLAMP_MIN, SCHED_ENERGY_AWARE, UCLAMP_TASK,
};
use std::sync::Arc;

/// `experiment` on the virtual machine of a kernel: its generation, its settings as they were read back, HZ
/// among them, and its driver.
///
/// cpufreq-dt never switches fast, and on a virtual SoC a change takes no time beyond the kthread:
/// the latency only sets the default rate limit. A kernel that says nothing of energy-aware scheduling has
/// none, or cannot have it here; so with clamps (CONFIG_UCLAMP_TASK, a sysctl for real-time tasks), and with a choice of
/// preemption models: Debian's for arm64 have no CONFIG_PREEMPTION before 6.18, and do not tell.
pub fn as_in_vm(experiment: &Experiment, release: &str, settings: &Settings) -> Experiment {
    let mut platform = (*experiment.platform).clone();
    if let Some(hz) = settings.get(&HZ).and_then(|hz| hz.try_into().ok()) {
        platform.hz = hz;
    }
    for domain in &mut platform.domains {
        domain.fast_switch = false;
        domain.opps.iter_mut().for_each(|o| o.latency = Span(0));
    }
    let mut own = experiment.clone();
    let rev = KernelRev::of_release(release).map(KernelRev::known);
    own.policy.kernel = rev.unwrap_or(own.policy.kernel);
    own.platform = Arc::new(platform);
    for domain in &own.platform.domains {
        own.settings.unset_own(&RATE_LIMIT_US, domain.cpus[0]);
    }
    for (name, value) in own.settings.iter_mut() {
        if let Some(read) = settings.by_name(name) {
            *value = read.clone();
        }
    }
    if !settings.is_set(&SCHED_ENERGY_AWARE) {
        own.settings.set(&SCHED_ENERGY_AWARE, 0);
    }
    if !settings.is_set(&RT_UCLAMP_MIN) {
        own.settings.set(&UCLAMP_TASK, 0);
    }
    if !settings.is_set(&PREEMPT) && !own.policy.kernel.has(features::PREEMPT_TOLD) {
        own.settings.set(&PREEMPT, "voluntary");
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kernels that do not tell have, and one that does.
    #[test]
    fn old_kernels_in_the_machine_are_not_preemptible() {
        let request = crate::Request {
            policies: vec!["linux-6.12".into()],
            ..crate::Request::new("rampup", "m1")
        };
        let e = request.experiments().expect("built in").remove(0);
        let told = |value: &str| Settings::from_iter([(PREEMPT.name.into(), value.into())]);
        let model = |release: &str, says: &Settings| {
            as_in_vm(&e, release, says).settings.get(&PREEMPT).map(str::to_string)
        };
        assert_eq!(e.settings.get(&PREEMPT), Some("full"));
        for (release, expected) in [
            ("6.1.0-50-arm64", "voluntary"),
            ("6.12.117+deb13-arm64", "voluntary"),
            ("6.18.5+deb14-arm64", "full"),
        ] {
            assert_eq!(
                model(release, &Settings::default()).as_deref(),
                Some(expected),
                "{release}"
            );
        }
        assert_eq!(model("6.12.117", &told("full")).as_deref(), Some("full"));
        assert_eq!(model("7.2.13", &told("lazy")).as_deref(), Some("lazy"));
    }
}
