//! Trees that look like real machines to the probe, made in temporary directories.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A tree of files, removed when dropped.
pub(crate) struct Tree {
    dir: PathBuf,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Tree {
    pub(crate) fn new() -> Tree {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("risetime-host-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Tree { dir }
    }

    pub(crate) fn root(&self) -> risetime_host::Root {
        risetime_host::Root::new(&self.dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name.trim_start_matches('/'))
    }

    /// Writes `content` as the kernel would: with a newline.
    pub(crate) fn file(&self, name: &str, content: impl std::fmt::Display) -> &Tree {
        self.bytes(name, format!("{content}\n").as_bytes())
    }

    pub(crate) fn bytes(&self, name: &str, content: &[u8]) -> &Tree {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn remove(&self, name: &str) -> &Tree {
        let path = self.path(name);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        self
    }

    /// Release, HZ and CPU lists of a kernel.
    pub(crate) fn kernel(&self, release: &str, hz: u32, cpus: &str) -> &Tree {
        self.file("/proc/sys/kernel/osrelease", release)
            .file(
                &format!("/boot/config-{release}"),
                format!(
                    "CONFIG_HZ={hz}\nCONFIG_PREEMPT=y\nCONFIG_UCLAMP_TASK=y\nCONFIG_ENERGY_MODEL=y"
                ),
            )
            .file(&cpu("possible"), cpus)
            .file(&cpu("online"), cpus)
    }

    /// Topology of one CPU: its hardware threads and who shares its last-level cache (L2).
    pub(crate) fn topology(&self, id: u32, siblings: &str, llc: &str) -> &Tree {
        self.file(&cpu(&format!("cpu{id}/topology/thread_siblings_list")), siblings)
            .file(&cpu(&format!("cpu{id}/topology/physical_package_id")), 0)
            .file(&cpu(&format!("cpu{id}/cache/index0/level")), 1)
            .file(&cpu(&format!("cpu{id}/cache/index0/shared_cpu_list")), id)
            .file(&cpu(&format!("cpu{id}/cache/index2/level")), 2)
            .file(&cpu(&format!("cpu{id}/cache/index2/shared_cpu_list")), llc)
    }

    /// Idle states `(name, latency, residency)` of one CPU.
    pub(crate) fn idle(&self, id: u32, states: &[(&str, u64, u64)]) -> &Tree {
        for (i, (name, latency, residency)) in states.iter().enumerate() {
            let dir = cpu(&format!("cpu{id}/cpuidle/state{i}"));
            self.file(&format!("{dir}/name"), name)
                .file(&format!("{dir}/latency"), latency)
                .file(&format!("{dir}/residency"), residency)
                .file(&format!("{dir}/disable"), 0);
        }
        self
    }

    /// A policy with driver, governor and limits; `freqs` lowest to highest, the table only if
    /// there are more than two.
    pub(crate) fn policy(
        &self,
        n: u32,
        cpus: &str,
        driver: &str,
        governor: &str,
        freqs: &[u64],
        latency: u64,
    ) -> &Tree {
        let dir = policy(n);
        let (min, max) = (freqs[0], freqs[freqs.len() - 1]);
        let file = |f: &str, v: &dyn std::fmt::Display| {
            self.file(&format!("{dir}/{f}"), v);
        };
        file("affected_cpus", &cpus.replace(',', " "));
        file("related_cpus", &cpus.replace(',', " "));
        file("scaling_driver", &driver);
        file("scaling_governor", &governor);
        file("scaling_available_governors", &"performance schedutil");
        for f in ["cpuinfo_min_freq", "scaling_min_freq", "scaling_cur_freq"] {
            file(f, &min);
        }
        for f in ["cpuinfo_max_freq", "scaling_max_freq"] {
            file(f, &max);
        }
        // Reading this one would change the machine; whoever reads it sees this number.
        file("cpuinfo_cur_freq", &66_666_666);
        file("cpuinfo_transition_latency", &latency);
        if freqs.len() > 2 {
            let table: Vec<String> = freqs.iter().map(u64::to_string).collect();
            file("scaling_available_frequencies", &format!("{} ", table.join(" ")));
        }
        self
    }

    /// A performance domain of the energy model as `(kHz, µW)`, flags as since 6.0.
    pub(crate) fn energy_model(&self, n: u32, cpus: &str, states: &[(u64, u64)]) -> &Tree {
        let dir = format!("/sys/kernel/debug/energy_model/cpu{n}");
        self.file(&format!("{dir}/cpus"), cpus).file(&format!("{dir}/flags"), "0x1");
        for (khz, uw) in states {
            let dir = format!("{dir}/ps:{khz}");
            self.file(&format!("{dir}/frequency"), khz)
                .file(&format!("{dir}/power"), uw)
                .file(&format!("{dir}/cost"), 1000)
                .file(&format!("{dir}/inefficient"), 0);
        }
        self
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn cpu(name: &str) -> String {
    format!("/sys/devices/system/cpu/{name}")
}

pub(crate) fn policy(n: u32) -> String {
    cpu(&format!("cpufreq/policy{n}"))
}

pub(crate) const LITTLE: [(u64, u64); 3] =
    [(533_000, 28_700), (999_000, 70_300), (1_844_000, 245_400)];
pub(crate) const BIG: [(u64, u64); 3] =
    [(903_000, 243_400), (1_805_000, 804_100), (2_362_000, 1_571_900)];

/// An arm64 board, 4 + 4, cpufreq-dt, schedutil, energy model and EAS.
pub(crate) fn big_little() -> Tree {
    let t = Tree::new();
    t.kernel("6.12.8-arm64", 250, "0-7").file("/proc/device-tree/model", "HiKey960\0");
    for id in 0..8 {
        let (capacity, llc) = if id < 4 { (462, "0-3") } else { (1024, "4-7") };
        t.topology(id, &id.to_string(), llc).file(&cpu(&format!("cpu{id}/cpu_capacity")), capacity);
        t.idle(id, &[("WFI", 1, 1), ("cpu-sleep-0", 1050, 1500)]);
    }
    let freqs = |table: &[(u64, u64)]| table.iter().map(|s| s.0).collect::<Vec<_>>();
    t.policy(0, "0-3", "cpufreq-dt", "schedutil", &freqs(&LITTLE), 300_000)
        .policy(4, "4-7", "cpufreq-dt", "schedutil", &freqs(&BIG), 300_000)
        .energy_model(0, "0-3", &LITTLE)
        .energy_model(4, "4-7", &BIG)
        .file(&cpu("cpufreq/schedutil/rate_limit_us"), 450)
        .file("/proc/sys/kernel/sched_energy_aware", 1)
        .file("/proc/sys/kernel/sched_util_clamp_min", 1024)
        .file("/proc/sys/kernel/sched_util_clamp_max", 1024)
        .file("/proc/sys/kernel/sched_util_clamp_min_rt_default", 1024)
        .file("/sys/kernel/sched_ext/state", "disabled")
        .file("/proc/2/comm", "kthreadd")
        .file("/proc/90/comm", "sugov:0")
        .file("/proc/91/comm", "sugov:4");
    t
}

/// A laptop with two cores of two threads, intel_pstate in active mode: a policy per CPU.
pub(crate) fn intel_laptop() -> Tree {
    let t = Tree::new();
    t.kernel("6.8.0-45-generic", 1000, "0-3")
        .file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hwp hwp_epp\ncpu MHz\t\t: 799.998\n\nprocessor\t: 1\nprocessor\t: 2\nprocessor\t: 3")
        .file("/sys/devices/virtual/dmi/id/product_name", "20HRCTO1WW")
        .file(&cpu("intel_pstate/status"), "active")
        .file(&cpu("intel_pstate/no_turbo"), 0)
        .file(&cpu("intel_pstate/max_perf_pct"), 100)
        .file(&cpu("smt/active"), 1)
        .file(&cpu("smt/control"), "on");
    for id in 0..4 {
        t.topology(id, if id % 2 == 0 { "0,2" } else { "1,3" }, "0-3")
            .idle(id, &[("POLL", 0, 0), ("C1", 2, 2), ("C1E", 10, 20), ("C10", 890, 5000)])
            .policy(id, &id.to_string(), "intel_pstate", "powersave", &[400_000, 3_500_000], 0)
            .file(&format!("{}/base_frequency", policy(id)), 2_600_000)
            .file(&format!("{}/energy_performance_preference", policy(id)), "balance_power");
    }
    t
}

/// A Raspberry Pi 4 under the kernel that took `CPUFREQ_ETERNAL` literally.
pub(crate) fn raspberry_pi() -> Tree {
    let t = Tree::new();
    t.kernel("6.12.53-v8", 250, "0-3")
        .file("/proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0");
    for id in 0..4 {
        t.topology(id, &id.to_string(), "0-3");
    }
    t.policy(
        0,
        "0-3",
        "cpufreq-dt",
        "schedutil",
        &[600_000, 700_000, 1_500_000],
        u64::from(u32::MAX),
    )
    .file(&cpu("cpufreq/schedutil/rate_limit_us"), 6_442_450);
    t
}

/// A virtual machine without cpufreq.
pub(crate) fn virtual_machine() -> Tree {
    let t = Tree::new();
    t.kernel("6.1.0-21-cloud-amd64", 250, "0-1").file(
        "/proc/cpuinfo",
        "processor\t: 0\ncpu MHz\t\t: 2249.998\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\ncpu MHz\t\t: 2250.000",
    );
    t
}
