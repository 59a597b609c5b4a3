//! Faults: where, what in words, and what helps.

use std::fmt;
use std::io;

/// ESRCH: there is no such thread.
pub(crate) const ESRCH: i32 = 3;

/// An error of the journal, or of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// File, or whose attributes.
    pub place: String,
    /// The cause, in words.
    pub what: String,
    /// Advice, or the kernels that have it; empty: none.
    pub hint: String,
}

impl Fault {
    /// A fault at `place`.
    pub(crate) fn new(place: &str, what: &str) -> Fault {
        Fault { place: place.into(), what: what.into(), hint: String::new() }
    }

    /// A fault at `place`, with the system's error in words; `what` goes before them.
    pub(crate) fn of(place: &str, what: &str, e: &io::Error) -> Fault {
        let (cause, hint) = match e.kind() {
            io::ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
                ("permission denied".into(), "the kernel is locked down, or this is a container")
            }
            io::ErrorKind::PermissionDenied => ("needs root".into(), ""),
            io::ErrorKind::ReadOnlyFilesystem => ("read only".into(), "this is a container"),
            io::ErrorKind::NotFound => ("this kernel does not have it".into(), who_has(place)),
            _ if e.raw_os_error() == Some(ESRCH) => ("it has ended".into(), ""),
            io::ErrorKind::InvalidInput => ("the kernel refuses this value".to_string(), ""),
            _ => (e.to_string().to_lowercase(), ""),
        };
        let what = if what.is_empty() { cause } else { format!("{what}: {cause}") };
        Fault { place: place.into(), what, hint: hint.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, " ({})", self.hint) }
    }
}

impl std::error::Error for Fault {}

/// The kernels that have a file, by a part of its path; the first that fits holds.
const WHO_HAS: &[(&str, &str)] = &[
    ("sched_util_clamp", "Linux 5.3 and later with CONFIG_UCLAMP_TASK"),
    (
        "cpu.uclamp",
        "Linux 5.4 and later with CONFIG_UCLAMP_TASK_GROUP, in a cgroup with the controller cpu",
    ),
    ("/sched_energy_aware", "Linux with CONFIG_ENERGY_MODEL, where capacities differ"),
    ("debug/sched/llc_balancing", "Linux 7.2 and later with CONFIG_SCHED_CACHE"),
    ("debug/sched/fair_server", "Linux 6.12 and later with CONFIG_SCHED_DEBUG"),
    ("debug/sched/base_slice_ns", "Linux 6.6 and later; before it is min_granularity_ns"),
    (
        "debug/sched",
        "Linux 5.13 and later with CONFIG_SCHED_DEBUG, and debugfs mounted at /sys/kernel/debug",
    ),
    ("/schedutil/", "where the governor schedutil is in use"),
    ("/ondemand/", "where the governor ondemand is in use"),
    ("/conservative/", "where the governor conservative is in use"),
    ("cpufreq/boost", "where the frequency driver knows a boost"),
    ("/cpufreq/", "where a frequency driver is loaded"),
    ("/cpuidle/", "where an idle driver is loaded"),
    ("/kernel/tracing", "Linux with CONFIG_FTRACE, and tracefs mounted at /sys/kernel/tracing"),
    ("cpuset.", "in a cgroup with the controller cpuset"),
];

/// The kernels that have the file at `place`; empty: not known.
fn who_has(place: &str) -> &'static str {
    WHO_HAS.iter().find(|(part, _)| place.contains(part)).map_or("", |(_, who)| who)
}
