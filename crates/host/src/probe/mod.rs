//! Facts that a machine tells about itself in `/proc` and `/sys`, with the file behind every value.
//!
//! ```text
//! CPUs        devices/system/cpu/{possible,online}, cpuN/{cpu_capacity,topology,cache,cpuidle}
//! nodes       devices/system/node/nodeN/{cpulist,distance}
//! frequency   devices/system/cpu/cpufreq/policyN, cpufreq/GOVERNOR, intel_pstate, amd_pstate
//! energy      kernel/debug/energy_model/cpuN/ps:FREQ
//! kernel      /proc/sys/kernel, /proc/config.gz or /boot/config-RELEASE, debug/sched
//! ```
//!
//! Left out: the device tree (its OPP tables are what cpufreq shows), ACPI tables, and the
//! energy model by netlink (`dev-energymodel`, newer kernels), which needs no debugfs.

mod cpufreq;
mod kernel;

pub(crate) use cpufreq::ETERNAL;
pub(crate) use cpufreq::energy_model;
pub use cpufreq::{CpufreqPolicy, EmState, PerfDomain};

use crate::root::{Fact, Problem, Root, parse_cpu_list};
use risetime_kernel::KernelRev;
use std::collections::BTreeMap;

/// Everything found out about a machine. `None` or empty: the machine does not say.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// `uname -r`.
    pub release: Option<Fact>,
    /// The product's name, from the device tree, the firmware or `/proc/cpuinfo`.
    pub model: Option<Fact>,
    /// CPUs that may ever be there.
    pub possible: Option<Fact<Vec<u32>>>,
    /// CPUs that run now.
    pub online: Option<Fact<Vec<u32>>>,
    /// The CPUs that are online, by number.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes, by number.
    pub nodes: Vec<Node>,
    /// Frequency domains, by their lowest CPU; only those with an online CPU.
    pub policies: Vec<CpufreqPolicy>,
    /// Performance domains of the energy model.
    pub energy: Vec<PerfDomain>,
    /// Ticks per second, and how that is known.
    pub hz: Option<Fact<u32>>,
    /// The kernel's build configuration: `CONFIG_X` without `CONFIG_` to its value.
    pub config: Option<Fact<BTreeMap<String, String>>>,
    /// Fact that tells that this is a virtual machine.
    pub virtual_machine: Option<Fact>,
    /// Flags of the first CPU in `/proc/cpuinfo` (x86 `flags`, arm64 `Features`).
    pub cpu_flags: Vec<String>,
    /// CPUs of which schedutil has a kthread (`sugov:N`); `None`: kernel threads are not to be
    /// seen from here.
    pub sugov_threads: Option<Vec<u32>>,
    /// Control groups with a utilisation clamp: file and value.
    pub cgroup_clamps: Vec<Fact>,
    /// Cooling devices that limit CPUs now: file and value.
    pub cooling: Vec<Fact>,
    /// Files that could not be read.
    pub problems: Vec<Problem>,
    knobs: BTreeMap<&'static str, Fact>,
}

/// One CPU that is online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Number of the CPU.
    pub id: u32,
    /// Capacity of the CPU, of 1024, as the scheduler takes it.
    pub capacity: Option<Fact<u64>>,
    /// The CPUs that share its last-level cache.
    pub llc: Option<Fact<Vec<u32>>>,
    /// The CPUs that share a cache closer than that, or its tags, as the kernel has it.
    pub l2: Option<Fact<Vec<u32>>>,
    /// The hardware threads of its core, itself included.
    pub siblings: Option<Fact<Vec<u32>>>,
    /// Socket of the CPU.
    pub package: Option<Fact<u64>>,
    /// Idle states, shallow to deep.
    pub idle: Vec<Idle>,
    /// `cpu MHz` of `/proc/cpuinfo`, in kHz: on a real x86 machine the present frequency.
    pub cpuinfo_khz: Option<Fact<u64>>,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number of the node.
    pub id: u32,
    /// CPUs of the node; none if it has only memory.
    pub cpus: Fact<Vec<u32>>,
    /// Distance to each node, by number.
    pub distance: Option<Fact<Vec<u32>>>,
}

/// One cpuidle state of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Name of the state.
    pub name: String,
    /// Time to leave it, µs.
    pub exit_latency_us: Fact<u64>,
    /// Shortest stay that pays off, µs.
    pub min_residency_us: u64,
    /// Switched off by the administrator or the driver.
    pub disabled: bool,
}

pub(crate) const CPU_DIR: &str = "/sys/devices/system/cpu";
const NODE_DIR: &str = "/sys/devices/system/node";

/// Settings of the whole machine that are one file each. A name here is what
/// [`Machine::knob`] takes.
const KNOBS: &[(&str, &str)] = &[
    ("smt_active", "/sys/devices/system/cpu/smt/active"),
    ("smt_control", "/sys/devices/system/cpu/smt/control"),
    ("isolated", "/sys/devices/system/cpu/isolated"),
    ("nohz_full", "/sys/devices/system/cpu/nohz_full"),
    ("cpuidle_driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("cpuidle_governor", "/sys/devices/system/cpu/cpuidle/current_governor"),
    ("boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("intel_pstate_status", "/sys/devices/system/cpu/intel_pstate/status"),
    ("intel_pstate_no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("intel_pstate_max_perf_pct", "/sys/devices/system/cpu/intel_pstate/max_perf_pct"),
    ("amd_pstate_status", "/sys/devices/system/cpu/amd_pstate/status"),
    ("sched_energy_aware", "/proc/sys/kernel/sched_energy_aware"),
    ("util_clamp_min", "/proc/sys/kernel/sched_util_clamp_min"),
    ("util_clamp_max", "/proc/sys/kernel/sched_util_clamp_max"),
    ("util_clamp_min_rt_default", "/proc/sys/kernel/sched_util_clamp_min_rt_default"),
    ("scx_state", "/sys/kernel/sched_ext/state"),
    ("scx_switch_all", "/sys/kernel/sched_ext/switch_all"),
    ("scx_ops", "/sys/kernel/sched_ext/root/ops"),
    ("sched_features", "/sys/kernel/debug/sched/features"),
    ("preempt", "/sys/kernel/debug/sched/preempt"),
    ("base_slice_ns", "/sys/kernel/debug/sched/base_slice_ns"),
    ("version", "/proc/version"),
];

impl Machine {
    /// Reads everything under `root`. Never fails: what is not there is left out, what cannot
    /// be read is in [`problems`](Machine::problems). Reads at most a few files per CPU and,
    /// for schedutil's threads, the name of each process.
    pub fn probe(root: &Root) -> Machine {
        let mut m = Machine {
            release: root.read("/proc/sys/kernel/osrelease").filter(|f| !f.value.is_empty()),
            possible: root.cpu_list(&format!("{CPU_DIR}/possible")),
            online: root.cpu_list(&format!("{CPU_DIR}/online")),
            ..Machine::default()
        };
        for &(name, file) in KNOBS {
            if let Some(fact) = root.read(file) {
                m.knobs.insert(name, fact);
            }
        }
        let cpuinfo = CpuInfo::read(root);
        m.cpu_flags = cpuinfo.flags.clone();
        m.cpus = m
            .online_cpus(root, &cpuinfo)
            .into_iter()
            .map(|id| read_cpu(root, id, &cpuinfo))
            .collect();
        m.nodes = nodes(root);
        m.model = kernel::product(root).or(cpuinfo.model.clone());
        m.virtual_machine = kernel::virtual_machine(root, &cpuinfo.flags);
        m.policies = cpufreq::policies(root, &m.cpus);
        m.energy = cpufreq::energy_model(root, m.kernel_version());
        m.config = kernel::config(root, m.release.as_ref().map(|f| f.value.as_str()));
        m.hz = kernel::hz(root, m.config.as_ref());
        m.sugov_threads = kernel::sugov_threads(root);
        m.cgroup_clamps = kernel::cgroup_clamps(root);
        m.cooling = kernel::cooling(root);
        m.problems = root.problems();
        m
    }

    /// A setting of the whole machine by the name it has here: its text, and its file.
    pub fn knob(&self, name: &str) -> Option<&Fact> {
        self.knobs.get(name)
    }

    /// A setting of the whole machine as a number, with its file; `None`: not there, or no number.
    pub fn knob_number(&self, name: &str) -> Option<Fact<u64>> {
        let fact = self.knob(name)?;
        Some(Fact { value: fact.value.parse().ok()?, file: fact.file.clone() })
    }

    /// The running kernel's, however new it is.
    pub fn kernel_version(&self) -> Option<KernelRev> {
        KernelRev::of_release(&self.release.as_ref()?.value)
    }

    /// A build option: `Some("y")`, `Some("250")`, …; `Some("n")` if the configuration is
    /// known and the option not set; `None` if the configuration is not known.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.config.as_ref().map(|c| c.value.get(name).map_or("n", String::as_str))
    }

    /// Whether two or more hardware threads of a core are online.
    pub fn smt(&self) -> bool {
        match self.knob("smt_active") {
            Some(f) => f.value == "1",
            None => self.cpus.iter().any(|c| {
                c.siblings.as_ref().is_some_and(|s| {
                    s.value.iter().filter(|id| self.cpus.iter().any(|c| c.id == **id)).count() > 1
                })
            }),
        }
    }

    /// The capacity the scheduler takes for `cpu`: without a figure from the architecture,
    /// 1024 (include/linux/sched/topology.h:arch_scale_cpu_capacity).
    pub fn capacity(&self, cpu: u32) -> u64 {
        self.cpus
            .iter()
            .find(|c| c.id == cpu)
            .and_then(|c| c.capacity.as_ref())
            .map_or(1024, |f| f.value)
    }

    /// Whether CPUs differ in capacity.
    pub fn is_asymmetric(&self) -> bool {
        self.cpus.windows(2).any(|w| self.capacity(w[0].id) != self.capacity(w[1].id))
    }

    /// The online CPUs; if no file says so, the `cpuN` directories or the processors of
    /// `/proc/cpuinfo`.
    fn online_cpus(&self, root: &Root, cpuinfo: &CpuInfo) -> Vec<u32> {
        if let Some(online) = &self.online {
            return online.value.clone();
        }
        let dirs: Vec<u32> =
            root.list(CPU_DIR).iter().filter_map(|n| n.strip_prefix("cpu")?.parse().ok()).collect();
        if dirs.is_empty() { cpuinfo.khz.keys().copied().collect() } else { dirs }
    }
}

fn read_cpu(root: &Root, id: u32, cpuinfo: &CpuInfo) -> Cpu {
    let dir = format!("{CPU_DIR}/cpu{id}");
    let capacity = root.number(&format!("{dir}/cpu_capacity")).filter(|f| {
        let sane = (1..=1024).contains(&f.value);
        if !sane {
            root.garbage(
                &Fact { value: f.value.to_string(), file: f.file.clone() },
                "a capacity of 1 to 1024",
            );
        }
        sane
    });
    let siblings = root
        .cpu_list(&format!("{dir}/topology/thread_siblings_list"))
        .or_else(|| root.cpu_list(&format!("{dir}/topology/core_cpus_list")));
    Cpu {
        id,
        capacity,
        llc: last_level_cache(root, &dir),
        l2: closer_cache(root, &dir),
        siblings: siblings.filter(|f| !f.value.is_empty()),
        package: package(root, &dir),
        idle: idle_states(root, &dir),
        cpuinfo_khz: cpuinfo
            .khz
            .get(&id)
            .copied()
            .flatten()
            .map(|khz| Fact { value: khz, file: "/proc/cpuinfo".to_owned() }),
    }
}

/// The CPUs that share the cache of the highest level.
fn last_level_cache(root: &Root, cpu_dir: &str) -> Option<Fact<Vec<u32>>> {
    let dir = format!("{cpu_dir}/cache");
    let indexes = root.list(&dir).into_iter().filter(|n| n.starts_with("index"));
    let (_, index) =
        indexes.filter_map(|n| Some((root.number(&format!("{dir}/{n}/level"))?.value, n))).max()?;
    root.cpu_list(&format!("{dir}/{index}/shared_cpu_list")).filter(|f| !f.value.is_empty())
}

/// The CPUs around a closer cache: the kernel's cluster where it has such a notion (since 5.16), else
/// those that share the L2, if there is an L3.
fn closer_cache(root: &Root, cpu_dir: &str) -> Option<Fact<Vec<u32>>> {
    let cluster = root.cpu_list(&format!("{cpu_dir}/topology/cluster_cpus_list"));
    let shared = || {
        let dir = format!("{cpu_dir}/cache");
        let indexes = root.list(&dir).into_iter().filter(|n| n.starts_with("index"));
        let level = |n: &String| root.number(&format!("{dir}/{n}/level")).map(|f| f.value);
        let levels: Vec<(Option<u64>, String)> = indexes.map(|n| (level(&n), n)).collect();
        let l3 = levels.iter().any(|(level, _)| level.is_some_and(|l| l > 2));
        let (_, index) = levels.iter().find(|(level, _)| l3 && *level == Some(2))?;
        root.cpu_list(&format!("{dir}/{index}/shared_cpu_list"))
    };
    cluster.or_else(shared).filter(|f| !f.value.is_empty())
}

/// The NUMA nodes; none where the kernel knows of no such thing.
fn nodes(root: &Root) -> Vec<Node> {
    let number = |name: String| name.strip_prefix("node")?.parse().ok();
    let mut ids: Vec<u32> = root.list(NODE_DIR).into_iter().filter_map(number).collect();
    ids.sort_unstable();
    let node = |id: u32| {
        let cpus = root.read(&format!("{NODE_DIR}/node{id}/cpulist"))?;
        let list = match cpus.value.is_empty() {
            true => Some(Vec::new()),
            false => parse_cpu_list(&cpus.value),
        };
        let Some(value) = list else {
            root.garbage(&cpus, "a list of CPUs such as 0-3,8");
            return None;
        };
        let distance = root.read(&format!("{NODE_DIR}/node{id}/distance"));
        let row = |f: Fact| {
            let row: Option<Vec<u32>> = f.value.split(' ').map(|n| n.parse().ok()).collect();
            if row.is_none() {
                root.garbage(&f, "distances such as 10 20");
            }
            Some(Fact { value: row?, file: f.file })
        };
        Some(Node { id, cpus: Fact { value, file: cpus.file }, distance: distance.and_then(row) })
    };
    ids.into_iter().filter_map(node).collect()
}

/// The socket; −1 (a device tree that does not say) counts as not known.
fn package(root: &Root, cpu_dir: &str) -> Option<Fact<u64>> {
    let text = root.read(&format!("{cpu_dir}/topology/physical_package_id"))?;
    Some(Fact { value: text.value.parse().ok()?, file: text.file })
}

fn idle_states(root: &Root, cpu_dir: &str) -> Vec<Idle> {
    let dir = format!("{cpu_dir}/cpuidle");
    let state = |n: String| {
        let file = |f: &str| format!("{dir}/{n}/{f}");
        Some(Idle {
            name: root.read(&file("name"))?.value,
            exit_latency_us: root.number(&file("latency"))?,
            min_residency_us: root.number(&file("residency"))?.value,
            disabled: root.read(&file("disable")).is_some_and(|f| f.value == "1"),
        })
    };
    root.list(&dir).into_iter().filter(|n| n.starts_with("state")).filter_map(state).collect()
}

/// Facts that `/proc/cpuinfo` says and sysfs does not.
#[derive(Clone, Debug, Default)]
struct CpuInfo {
    model: Option<Fact>,
    flags: Vec<String>,
    khz: BTreeMap<u32, Option<u64>>,
}

impl CpuInfo {
    fn read(root: &Root) -> CpuInfo {
        let mut info = CpuInfo::default();
        let Some(text) = root.read("/proc/cpuinfo") else {
            return info;
        };
        let mut cpu = None;
        for line in text.value.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match key.trim() {
                "processor" => {
                    cpu = parse_cpu_list(value).and_then(|c| c.first().copied());
                    if let Some(id) = cpu {
                        info.khz.insert(id, None);
                    }
                }
                "cpu MHz" => {
                    let khz =
                        value.parse::<f64>().ok().filter(|mhz| (1.0..100_000.0).contains(mhz));
                    if let Some(id) = cpu {
                        info.khz.insert(id, khz.map(|mhz| (mhz * 1000.0).round() as u64));
                    }
                }
                "model name" if info.model.is_none() && !value.is_empty() => {
                    info.model = Some(Fact { value: value.to_owned(), file: text.file.clone() });
                }
                "flags" | "Features" if info.flags.is_empty() => {
                    info.flags = value.split_whitespace().map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        info
    }
}
