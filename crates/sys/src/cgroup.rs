//! Files of a cgroup, and what is to be written to them.
//!
//! ```text
//! cpu.weight  cpu.max  cpu.max.burst  cpu.uclamp.min  cpu.uclamp.max  cpu.idle     a task group
//! cpuset.cpus  cpuset.cpus.partition                                               CPUs of its own
//! ```
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst.

use risetime_job::TaskGroup;
use risetime_kernel::units::{Span, Util};

/// File that makes a cpuset a partition.
pub const PARTITION: &str = "cpuset.cpus.partition";
/// Word that makes a cpuset the root of a partition, and that it says when it is one.
pub const ROOT: &str = "root";

/// Lists the files that a cpuset is given to have `cpus` alone, in their order, each with its value.
pub fn partition(cpus: &str) -> [(&'static str, String); 2] {
    [("cpuset.cpus", cpus.into()), (PARTITION, ROOT.into())]
}

/// Lists the files that a task group is given, in their order, each with its value; what is the default is left out, but
/// for its weight.
pub fn properties(group: &TaskGroup) -> Vec<(&'static str, String)> {
    let us = |span: Span| span.0 / 1000;
    let mut files = Vec::new();
    match group.idle {
        true => files.push(("cpu.idle", "1".into())),
        false => files.push(("cpu.weight", group.weight.to_string())),
    }
    if let Some(quota) = group.quota {
        files.push(("cpu.max", format!("{} {}", us(quota), us(group.period))));
        if us(group.burst) > 0 {
            files.push(("cpu.max.burst", us(group.burst).to_string()));
        }
    }
    // The maximum first: neither may pass the other.
    if group.uclamp_max < Util(1024) {
        files.push(("cpu.uclamp.max", percent(group.uclamp_max)));
    }
    if group.uclamp_min > Util(0) {
        files.push(("cpu.uclamp.min", percent(group.uclamp_min)));
    }
    files
}

/// A clamp as `cpu.uclamp.*` wants it: in percent with two digits, which the kernel rounds back to
/// the nearest of 1024.
fn percent(clamp: Util) -> String {
    let hundredths = (clamp.0.min(1024) * 10_000 + 512) / 1024;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clamp_survives_the_way_through_percent() {
        for clamp in 0..=1024 {
            let text = percent(Util(clamp));
            let (whole, part) = text.split_once('.').unwrap();
            let hundredths: u64 =
                whole.parse::<u64>().unwrap() * 100 + part.parse::<u64>().unwrap();
            // capacity_from_percent: DIV_ROUND_CLOSEST.
            assert_eq!((hundredths * 1024 + 5_000) / 10_000, clamp, "{text}");
        }
        assert_eq!([0, 512, 1024].map(|clamp| percent(Util(clamp))), ["0.00", "50.00", "100.00"]);
    }
}
