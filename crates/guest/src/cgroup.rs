//! Task groups and exclusive cpusets: threaded cgroups of the controllers `cpu` and `cpuset`.
//!
//! ```text
//! /sys/fs/cgroup                    cgroup2, mounted with `favordynmods`; this process is in its root
//!   cgroup.subtree_control  +cpu, +cpuset, as far as they are needed
//!   risetime-partition-1/           the first partition; groups whose tasks are all of it lie in it
//!       cpuset.cpus, cpuset.cpus.partition  root
//!   a/  cgroup.type  threaded       threads of one process may be in different groups
//!       cpu.weight  cpu.max  cpu.max.burst  cpu.uclamp.min  cpu.uclamp.max  cpu.idle
//!       cgroup.threads  0           the thread that writes it moves there
//! ```
//!
//! A task's thread is born in the root, where its creator is, and moves as its first act. Without
//! `favordynmods` that would wait for all CPUs to pass through a quiescent state, for milliseconds. Into a partition its
//! creator goes beforehand: whoever is in another one may not even ask for its CPUs.
//! Source: Documentation/admin-guide/cgroup-v2.rst.

use risetime_job::TaskGroup;
use risetime_job::job::{Job, cpus_text, partition_path};
use risetime_sys::cgroup;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs;
use std::io::{self, Write as _};

const ROOT: &str = "/sys/fs/cgroup";

/// Places to which threads are moved: `cgroup.threads` of the root, of each group and of each
/// partition, kept open.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    groups: Vec<fs::File>,
    partitions: Vec<(Vec<u32>, fs::File)>,
}

impl Cgroups {
    /// Mounts the hierarchy and creates the partitions and the groups of `job`; nothing if there are none.
    ///
    /// Errors: what the kernel refused, with the file.
    pub(crate) fn create(job: &Job) -> Result<Cgroups, String> {
        if job.groups.is_empty() && job.partitions.is_empty() {
            return Ok(Cgroups::default());
        }
        let options = CString::new("favordynmods").unwrap_or_default();
        mount("cgroup2", ROOT, "cgroup2", MountFlags::empty(), Some(options.as_c_str()))
            .map_err(|e| format!("mount {ROOT}: {e}"))?;
        let control = format!("{ROOT}/cgroup.subtree_control");
        if !job.groups.is_empty() {
            write(&control, "+cpu")?;
        }
        if !job.partitions.is_empty() {
            write(&control, "+cpuset")?;
        }
        let open = |dir: &str| {
            let path = format!("{dir}/cgroup.threads");
            fs::OpenOptions::new().write(true).open(&path).map_err(|e| format!("{path}: {e}"))
        };
        // Inner groups of their own may follow.
        let create = |dir: &str| {
            fs::create_dir(dir).map_err(|e| format!("{dir}: {e}"))?;
            write(&format!("{dir}/cgroup.type"), "threaded")?;
            match job.groups.is_empty() {
                true => Ok(()),
                false => write(&format!("{dir}/cgroup.subtree_control"), "+cpu"),
            }
        };
        let mut all = Cgroups { groups: vec![open(ROOT)?], partitions: Vec::new() };
        for (i, cpus) in job.partitions.iter().enumerate() {
            let dir = format!("{ROOT}{}", partition_path(i));
            create(&dir)?;
            isolate(&dir, cpus)?;
            all.partitions.push((cpus.clone(), open(&dir)?));
        }
        for group in &job.groups {
            let dir = format!("{ROOT}{}", group.path);
            create(&dir)?;
            properties(&dir, group)?;
            all.groups.push(open(&dir)?);
        }
        Ok(all)
    }

    /// Whether there are partitions: whoever changes CPUs may have to [`enter`](Cgroups::enter) another one first.
    pub(crate) fn partitioned(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// Moves the calling thread into a group; 0 is none, and then it goes where `cpus` are. A kernel gives who moves into
    /// another cpuset all its CPUs.
    pub(crate) fn enter(&self, group: u32, cpus: &[u32]) -> io::Result<()> {
        let wrong = || io::Error::other(format!("there is no task group {group}"));
        let of = |(own, _): &&(Vec<u32>, fs::File)| cpus.iter().all(|cpu| own.contains(cpu));
        let mut threads = match (group, self.partitions.iter().find(of)) {
            (0, Some((_, partition))) => partition,
            _ => self.groups.get(group as usize).ok_or_else(wrong)?,
        };
        // A write of several calls would be several moves.
        threads.write_all(b"0")
    }
}

/// Gives `cpus` to the cgroup in `dir` alone.
///
/// Errors: the kernel does not; what it says of that.
fn isolate(dir: &str, cpus: &[u32]) -> Result<(), String> {
    let cpus = cpus_text(cpus);
    for (file, value) in cgroup::partition(&cpus) {
        write(&format!("{dir}/{file}"), &value)?;
    }
    // The file accepts the word, and says when read what came of it.
    let path = format!("{dir}/{}", cgroup::PARTITION);
    let found = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    match found.trim() {
        cgroup::ROOT => Ok(()),
        found => Err(format!("CPUs {cpus}: {path}: found `{found}`, wanted `root`")),
    }
}

fn properties(dir: &str, group: &TaskGroup) -> Result<(), String> {
    let mut files = cgroup::properties(group).into_iter();
    files.try_for_each(|(file, value)| write(&format!("{dir}/{file}"), &value))
}

fn write(path: &str, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|e| format!("{path}: {value}: {e}"))
}
