//! `global.partitions`: exclusive cpusets, each a root domain of its own. rt-app has no such thing.
//!
//! ```text
//! "partitions": [[1], [2, 3]]     CPU 1 is for whom `cpus` puts there alone, CPUs 2 and 3 likewise; the others are left to the rest
//! ```
//!
//! What `cpuset.cpus.partition` = root does: deadline tasks of a partition are admitted by its CPUs alone, and whoever has CPUs of one
//! has no others. No task gets into one by itself: each names its `cpus`.

use super::json::Reader;
use super::read::MAX_CPU;
use super::{TaskSpec, Workload};
use crate::{InputError, Platform};
use jsonc_parser::ast::{ObjectProp, Value};
use risetime_kernel::units::CpuId;
use std::collections::BTreeSet;

impl<'a> Reader<'a> {
    /// The list of lists, each ascending.
    pub(super) fn partitions(&self, prop: &ObjectProp<'a>) -> Result<Vec<Vec<CpuId>>, InputError> {
        const WHAT: &str = "`global`";
        let wrong =
            |value| self.wrong(prop, WHAT, value, "lists of CPU numbers such as [[0], [1, 2]]");
        let Value::Array(list) = &prop.value else { return Err(wrong(&prop.value)) };
        let (mut all, mut taken) = (Vec::new(), BTreeSet::new());
        for item in &list.elements {
            let Value::Array(cpus) = item else { return Err(wrong(item)) };
            let mut own = BTreeSet::new();
            for value in &cpus.elements {
                let cpu = CpuId(self.whole(value, "partitions", WHAT, 0..=MAX_CPU, "")? as u32);
                if !taken.insert(cpu) {
                    let what = format!("{WHAT}: `partitions`: {cpu} is there twice");
                    return Err(self.error(value, what));
                }
                own.insert(cpu);
            }
            if own.is_empty() {
                let what = format!("{WHAT}: `partitions`: one is empty, wanted at least one CPU");
                return Err(self.error(item, what));
            }
            all.push(own.into_iter().collect());
        }
        Ok(all)
    }
}

impl Workload {
    /// Errors: a partition has a CPU that the platform lacks, or the task may run in several of them, or in and out of one.
    pub(super) fn check_partitions(
        &self,
        task: &TaskSpec,
        platform: &Platform,
    ) -> Result<(), InputError> {
        let all = || self.partitions.iter().flatten();
        if let Some(cpu) = all().find(|cpu| platform.domain_of(**cpu).is_none()) {
            let what = format!("`global.partitions`: there is no {cpu} on {}", platform.name);
            return Err(InputError::new(self.place(), what));
        }
        if self.partitions.is_empty() {
            return Ok(());
        }
        let everywhere: Vec<CpuId> = platform.cpus().collect();
        let own = task.attr.cpus.as_ref().unwrap_or(&everywhere);
        let phases = task.phases.iter().filter_map(|p| p.attr.cpus.as_ref());
        for mask in std::iter::once(own).chain(phases) {
            let within = |p: &Vec<CpuId>| mask.iter().all(|cpu| p.contains(cpu));
            let outside = !mask.iter().any(|cpu| all().any(|c| c == cpu));
            if !outside && !self.partitions.iter().any(within) {
                let place = self.place_of(&task.comm, &format!("task `{}`", task.comm));
                let what = "may run on CPUs of one of `global.partitions` and on others";
                return Err(InputError::new(place, what).hint("`cpus` says where it belongs"));
            }
        }
        Ok(())
    }
}
