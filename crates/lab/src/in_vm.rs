//! An experiment as the virtual machine of a kernel runs it, for who compares the simulator with that.

use risetime_kernel::units::Span;
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Settings};
use std::sync::Arc;

/// `experiment` on the virtual machine of a kernel: its generation, its settings as they were read back, HZ
/// among them, and its driver.
///
/// cpufreq-dt never switches fast, and on a virtual SoC a change takes no time beyond the kthread:
/// the latency only sets the default rate limit. A kernel that says nothing of energy-aware scheduling has
/// none, or cannot have it here; so with clamps, and with a choice of preemption models.
pub fn as_in_vm(experiment: &Experiment, release: &str, settings: &Settings) -> Experiment {
    let mut platform = (*experiment.platform).clone();
    if let Some(hz) = settings.int("hz").and_then(|hz| hz.try_into().ok()) {
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
    own.settings.0.retain(|name, _| !name.starts_with("rate_limit_us."));
    for (name, value) in own.settings.0.iter_mut() {
        if let Some(read) = settings.0.get(name) {
            *value = read.clone();
        }
    }
    if !settings.0.contains_key(ENERGY_AWARE) {
        own.settings.0.insert(ENERGY_AWARE.into(), Value::Int(0));
    }
    if !settings.0.contains_key(RT_CLAMP) {
        own.settings.0.insert(UCLAMP_TASK.into(), Value::Int(0));
    }
    if !settings.0.contains_key(PREEMPT) && !own.policy.kernel.has(features::PREEMPT_TOLD) {
        own.settings.0.insert(PREEMPT.into(), Value::Name("voluntary".into()));
    }
    own
}

/// A kernel with clamps (CONFIG_UCLAMP_TASK) has this sysctl.
const RT_CLAMP: &str = "sched_util_clamp_min_rt_default";

/// The setting for one without.
const UCLAMP_TASK: &str = "uclamp_task";

/// The setting of energy-aware scheduling.
const ENERGY_AWARE: &str = "sched_energy_aware";

/// The preemption model: kernels that cannot change it do not tell. Debian's for arm64 have no CONFIG_PREEMPTION before 6.18.
const PREEMPT: &str = "preempt";

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
        let told = |value: &str| Settings([("preempt".into(), Value::Name(value.into()))].into());
        let model = |release: &str, says: &Settings| {
            as_in_vm(&e, release, says).settings.name("preempt").map(str::to_string)
        };
        assert_eq!(e.settings.name("preempt"), Some("full"));
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
