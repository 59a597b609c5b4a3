//! Task groups: threaded cgroups of the `cpu` controller.
//!
//! ```text
//! /sys/fs/cgroup                    cgroup2, mounted with `favordynmods`; this process is in its root
//!   cgroup.subtree_control  +cpu
//!   a/  cgroup.type  threaded       threads of one process may be in different groups
//!       cpu.weight  cpu.max  cpu.max.burst  cpu.uclamp.min  cpu.uclamp.max  cpu.idle
//!       cgroup.threads  0           the thread that writes it moves there
//! ```
//!
//! A task's thread is born in the root, where its creator is, and moves as its first act. Without
//! `favordynmods` that would wait for all CPUs to pass through a quiescent state, for milliseconds.
//! Source: Documentation/admin-guide/cgroup-v2.rst.

use risetime_job::TaskGroup;
use risetime_kernel::units::{Span, Util};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs;
use std::io::{self, Write as _};

const ROOT: &str = "/sys/fs/cgroup";

/// Where threads are moved to: `cgroup.threads` of the root and of each group, kept open.
#[derive(Debug, Default)]
pub(crate) struct Cgroups(Vec<fs::File>);

impl Cgroups {
    /// Mounts the hierarchy and creates the groups; nothing if there are none.
    ///
    /// Errors: what the kernel refused, with the file.
    pub(crate) fn create(groups: &[TaskGroup]) -> Result<Cgroups, String> {
        if groups.is_empty() {
            return Ok(Cgroups::default());
        }
        let options = CString::new("favordynmods").unwrap_or_default();
        mount("cgroup2", ROOT, "cgroup2", MountFlags::empty(), Some(options.as_c_str()))
            .map_err(|e| format!("mount {ROOT}: {e}"))?;
        write(&format!("{ROOT}/cgroup.subtree_control"), "+cpu")?;
        let open = |dir: &str| {
            let path = format!("{dir}/cgroup.threads");
            fs::OpenOptions::new().write(true).open(&path).map_err(|e| format!("{path}: {e}"))
        };
        let mut threads = vec![open(ROOT)?];
        for group in groups {
            let dir = format!("{ROOT}{}", group.path);
            fs::create_dir(&dir).map_err(|e| format!("{dir}: {e}"))?;
            write(&format!("{dir}/cgroup.type"), "threaded")?;
            // Inner groups of their own follow.
            write(&format!("{dir}/cgroup.subtree_control"), "+cpu")?;
            properties(&dir, group)?;
            threads.push(open(&dir)?);
        }
        Ok(Cgroups(threads))
    }

    /// Moves the calling thread; 0 is the root.
    pub(crate) fn enter(&self, group: u32) -> io::Result<()> {
        let wrong = || io::Error::other(format!("there is no task group {group}"));
        // A write of several calls would be several moves.
        let mut threads = self.0.get(group as usize).ok_or_else(wrong)?;
        threads.write_all(b"0")
    }
}

fn properties(dir: &str, group: &TaskGroup) -> Result<(), String> {
    let set = |file: &str, value: String| write(&format!("{dir}/{file}"), &value);
    if group.idle {
        set("cpu.idle", "1".into())?;
    } else {
        set("cpu.weight", group.weight.to_string())?;
    }
    let us = |span: Span| span.0 / 1000;
    if let Some(quota) = group.quota {
        set("cpu.max", format!("{} {}", us(quota), us(group.period)))?;
        if us(group.burst) > 0 {
            set("cpu.max.burst", us(group.burst).to_string())?;
        }
    }
    // The maximum first: neither may pass the other.
    if group.uclamp_max < Util(1024) {
        set("cpu.uclamp.max", percent(group.uclamp_max))?;
    }
    if group.uclamp_min > Util(0) {
        set("cpu.uclamp.min", percent(group.uclamp_min))?;
    }
    Ok(())
}

/// A clamp as `cpu.uclamp.*` wants it: in percent with two digits, which the kernel rounds back to
/// the nearest of 1024.
fn percent(clamp: Util) -> String {
    let hundredths = (clamp.0.min(1024) * 10_000 + 512) / 1024;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn write(path: &str, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|e| format!("{path}: {value}: {e}"))
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
