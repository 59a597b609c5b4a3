//! Changes of a machine, and their undoing: system calls, settings by their homes, cgroups, and the journal.
//!
//! ```text
//! syscalls    clocks, affinity, scheduling attributes: what the agent does to its own threads
//! bpf         tracepoints switched on, small programs that the kernel calls at them
//! cgroup      files of a task group and of a partition, with their values
//! home        a setting by its home: the files that there are on this machine, each a change
//! journal     changes that are read before they are written, and undone on drop, by a signal, at the next start
//! ```
//!
//! Whoever changes a machine that somebody else uses does it by [`journal`]; a virtual machine that is thrown away
//! needs none. Without the feature `journal` only the first three are there.

#[cfg(target_os = "linux")]
pub mod bpf;
#[cfg(target_os = "linux")]
pub mod cgroup;
#[cfg(all(target_os = "linux", feature = "journal"))]
mod fault;
#[cfg(all(target_os = "linux", feature = "journal"))]
pub mod home;
#[cfg(all(target_os = "linux", feature = "journal"))]
pub mod journal;
#[cfg(all(target_os = "linux", feature = "journal"))]
pub mod signals;
#[cfg(target_os = "linux")]
pub mod syscalls;

#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
