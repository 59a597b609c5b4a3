//! `global.partitions` in the guest: cpusets that the agent makes roots of partitions (cgroup v2, `cpuset.cpus.partition`).
//!
//! ```text
//! [[1], [2, 3]]             two cpusets; CPU 0 is left to the root's tasks, the kernel's threads among them
//! [[0], [1], [2], [3]]      a kernel lets the root, which always has tasks, keep one CPU at least (`partition_is_populated`):
//!                           where the first task begins no cpuset is made, and what the root is left with is that partition
//! ```
//!
//! A cgroup is in one cpuset. So a task group whose tasks are all of one partition lies in its cgroup, under the weight of a
//! group of its own that has no competitor there but threads of the kernel; one of several partitions there cannot be.

use risetime_job::TaskGroup;
use risetime_job::job::partition_path;
use risetime_kernel::units::CpuId;
use risetime_model::workload::{TaskSpec, Workload};
use risetime_model::{InputError, Platform};

/// CPUs of each cpuset that is to be made, and the task groups with their paths there.
///
/// Errors: a task group of several partitions; CPUs that go offline.
pub(crate) fn in_guest(
    workload: &Workload,
    first_cpu: CpuId,
    platform: &Platform,
) -> Result<(Vec<Vec<u32>>, Vec<TaskGroup>), InputError> {
    let mut groups = workload.groups.clone();
    let mut made = workload.partitions.clone();
    if made.is_empty() {
        return Ok((Vec::new(), groups));
    }
    let hint = "run it with --backend sim";
    if let Some(change) = workload.hotplug.first() {
        let what = "not beside `partitions`: a kernel takes an exclusive cpuset back whose CPUs are offline";
        return Err(InputError::new(change.error_place(&workload.name), what).hint(hint));
    }
    if platform.cpus().all(|cpu| made.iter().flatten().any(|own| *own == cpu)) {
        made.retain(|own| !own.contains(&first_cpu));
    }
    let of = |cpu: &CpuId| made.iter().position(|own| own.contains(cpu));
    for group in &mut groups {
        let within = |path: &str| {
            path.strip_prefix(&*top(&group.path))
                .is_some_and(|p| p.is_empty() || p.starts_with('/'))
        };
        let mut places = Vec::new();
        for task in workload.tasks.iter().chain(&workload.forked).filter(|t| is_in(t, within)) {
            let masks = std::iter::once(&task.attr).chain(task.phases.iter().map(|p| &p.attr));
            let masks = masks.filter_map(|a| a.cpus.as_ref()?.first());
            let before = places.len();
            places.extend(masks.map(of));
            if places.len() == before {
                places.push(None);
            }
        }
        places.sort_unstable();
        places.dedup();
        match places[..] {
            [Some(partition)] => group.path.insert_str(0, &partition_path(partition)),
            [] | [None] => {}
            _ => {
                let place = format!("{}: task group `{}`", workload.name, group.path);
                let what = "has tasks of several `partitions`: a kernel's cgroup has one cpuset";
                return Err(InputError::new(place, what).hint(hint));
            }
        }
    }
    let numbers = |own: Vec<CpuId>| own.into_iter().map(|cpu| cpu.0).collect();
    Ok((made.into_iter().map(numbers).collect(), groups))
}

/// The outermost group of a path: `/a` of `/a/b`.
fn top(path: &str) -> String {
    let end = path[1..].find('/').map_or(path.len(), |at| at + 1);
    path[..end].to_string()
}

/// Whether a task is ever in such a group.
fn is_in(task: &TaskSpec, group: impl Fn(&str) -> bool) -> bool {
    let attrs = std::iter::once(&task.attr).chain(task.phases.iter().map(|p| &p.attr));
    attrs.filter_map(|a| a.taskgroup.as_deref()).any(group)
}
