//! Tests of what changes nothing: a task that never starts, a group without a task, another order
//! of such.

use super::Bytes;
use super::generate::{experiments, mostly_plain};
use super::properties::run_checked;
use crate::{Counterfactual, draws, setup};
use proptest::prelude::*;
use risetime_kernel::units::{Instant, Span};
use risetime_model::settings::Value;
use risetime_model::workload::{Policy, TaskGroup, TaskSpec};
use risetime_model::{Experiment, Workload};
use std::sync::Arc;

/// Logs everything that happens, and how it ends. The numbers of kthreads, which stand behind the
/// workload's tasks, are those of a workload of `tasks` tasks.
fn log(e: &Experiment, tasks: usize) -> String {
    let mut bytes = Bytes::default();
    let mut simulation =
        setup::simulation(e, &mut bytes, Counterfactual::default()).expect("a simulation");
    let end = simulation.run(Instant(e.duration.0)).map_err(|e| e.to_string());
    let more = e.workload.tasks.len() - tasks;
    let mut text = String::new();
    let mut rest = bytes.0.as_str();
    while let Some(at) = rest.find("TaskId(") {
        let (before, from) = rest.split_at(at + "TaskId(".len());
        let digits = from.find(')').expect("a number in brackets");
        let id: usize = from[..digits].parse().expect("a number");
        text.push_str(before);
        text.push_str(&if id < tasks { id } else { id - more }.to_string());
        rest = &from[digits..];
    }
    format!("{text}{rest}{end:?}")
}

fn with(e: &Experiment, change: impl FnOnce(&mut Workload)) -> Experiment {
    let mut workload = (*e.workload).clone();
    change(&mut workload);
    Experiment { workload: Arc::new(workload), ..e.clone() }
}

/// Returns the experiment with a noise profile.
fn noisy(e: &Experiment, profile: &str) -> Experiment {
    let policy = e.policy.clone().set_for_all("noise", Value::Name(profile.into()));
    let settings = crate::resolve(&e.platform, &policy).expect("settings");
    Experiment { policy, settings, ..e.clone() }
}

/// A task that would start long after the end.
fn never(e: &Experiment, comm: &str, policy: Option<Policy>) -> TaskSpec {
    let mut task = e.workload.tasks[0].clone();
    (task.comm, task.delay) = (comm.into(), e.duration + Span::from_ms(1000));
    (task.attr.policy, task.attr.taskgroup) = (policy, None);
    task.phases.iter_mut().for_each(|p| (p.attr.policy, p.attr.taskgroup) = (None, None));
    task
}

fn differs(one: &str, other: &str) -> Option<String> {
    let pairs = one.lines().zip(other.lines()).enumerate();
    let first = || pairs.into_iter().find(|(_, (a, b))| a != b);
    (one != other).then(|| format!("{:?}, of {} and {} bytes", first(), one.len(), other.len()))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 60, ..draws::config(64) })]

    #[test]
    fn a_task_that_never_starts_changes_nothing(
        e in prop_oneof![experiments().boxed(), mostly_plain().boxed()],
        real_time in any::<bool>(),
    ) {
        // Beside hotplug there may be no real-time task, started or not.
        let policy = (real_time && e.workload.hotplug.is_empty()).then_some(Policy::Fifo { priority: 3 });
        let n = e.workload.tasks.len();
        let more = with(&e, |w| w.tasks.push(never(&e, "never", policy)));
        prop_assert_eq!(differs(&log(&e, n), &log(&more, n)), None);
    }

    /// Draws belong to whom they are for; the checker of the trace has nothing against them.
    #[test]
    fn a_task_that_never_starts_changes_no_noise(
        e in prop_oneof![experiments().boxed(), mostly_plain().boxed()],
        profile in prop::sample::select(&crate::NOISE_PROFILES[1..]),
        seed in any::<u64>(),
    ) {
        let e = Experiment { seed, ..noisy(&e, profile) };
        let n = e.workload.tasks.len();
        let more = with(&e, |w| w.tasks.push(never(&e, "never", None)));
        prop_assert_eq!(differs(&log(&e, n), &log(&more, n)), None);
        run_checked(&e)?;
    }

    #[test]
    fn noise_is_drawn_by_the_seed(e in mostly_plain()) {
        let of = |profile, seed| {
            let e = Experiment { seed, ..noisy(&e, profile) };
            log(&e, e.workload.tasks.len())
        };
        prop_assert_eq!(differs(&of("machine", 7), &of("machine", 7)), None);
        prop_assert_eq!(differs(&of("off", 7), &of("off", 8)), None, "nothing is drawn");
    }

    #[test]
    fn an_empty_group_changes_nothing(e in prop_oneof![experiments().boxed(), mostly_plain().boxed()]) {
        let e = with(&e, |w| w.hotplug.clear());
        let n = e.workload.tasks.len();
        let more = with(&e, |w| w.groups.push(TaskGroup { weight: 700, ..TaskGroup::new("/z".into()) }));
        prop_assert_eq!(differs(&log(&e, n), &log(&more, n)), None);
    }

    #[test]
    fn the_order_of_what_does_nothing_changes_nothing(e in prop_oneof![experiments().boxed(), mostly_plain().boxed()]) {
        let e = with(&e, |w| w.hotplug.clear());
        let n = e.workload.tasks.len();
        let group = |path: &str, weight| TaskGroup { weight, ..TaskGroup::new(path.into()) };
        let both = |turned: bool| {
            with(&e, |w| {
                let mut tasks = vec![never(&e, "one", None), never(&e, "two", Some(Policy::Idle))];
                let mut groups = vec![group("/y", 50), group("/z", 700)];
                if turned {
                    tasks.reverse();
                    groups.reverse();
                }
                w.tasks.extend(tasks);
                w.groups.extend(groups);
            })
        };
        prop_assert_eq!(differs(&log(&both(false), n), &log(&both(true), n)), None);
    }
}
