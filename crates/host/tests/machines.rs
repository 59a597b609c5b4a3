//! What `capture` and `doctor` make of machines of many kinds, and of broken ones.

mod tree;

use risetime_host::{Captured, Finding, Machine, Root, Severity, capture, doctor, examine};
use risetime_model::Platform;
use tree::{BIG, Tree, big_little, cpu, intel_laptop, policy, raspberry_pi, virtual_machine};

/// What every capture must hold: it loads or says that it does not; what it claims to be the
/// platform is what its text reads back as; nothing missing goes unsaid.
fn captured(root: &Root) -> Captured {
    checked(capture(root))
}

fn checked(c: Captured) -> Captured {
    let read = Platform::parse(&c.platform_toml, "captured.toml");
    match &c.platform {
        Some(p) => {
            // Its doubts are at places of the file.
            let said = |p: Platform| Platform { doubts: Vec::new(), ..p };
            assert_eq!(read.map(said), Ok(said(p.clone())));
        }
        None => {
            assert!(read.is_err(), "said not to load, yet does:\n{}", c.platform_toml);
            assert!(c.platform_toml.contains("NOT LOADABLE"), "{}", c.platform_toml);
            assert!(!c.missing.is_empty());
        }
    }
    for line in c.missing.iter() {
        assert!(c.platform_toml.contains("# missing: "), "{line}");
    }
    assert!(!c.platform_toml.contains("66666666"), "cpuinfo_cur_freq was read");
    c
}

/// Findings in order, checked for what each must have.
fn findings(root: &Root) -> Vec<Finding> {
    let all = doctor(root);
    for f in &all {
        assert!(!f.title.is_empty() && !f.meaning.is_empty() && !f.evidence.is_empty(), "{f:?}");
        assert!(
            !f.title.contains("NaN") && !f.meaning.contains("NaN") && !f.meaning.contains("inf "),
            "{f:?}"
        );
        assert!(!format!("{f:?}").contains("66666666"), "cpuinfo_cur_freq was read");
    }
    assert!(all.is_sorted_by_key(|f| f.severity));
    all
}

fn titled<'a>(all: &'a [Finding], part: &str) -> &'a Finding {
    let titles: Vec<&str> = all.iter().map(|f| f.title.as_str()).collect();
    all.iter()
        .find(|f| f.title.contains(part))
        .unwrap_or_else(|| panic!("no finding has {part:?} in its title: {titles:#?}"))
}

#[test]
fn big_little_gives_the_whole_platform() {
    let tree = big_little();
    let c = captured(&tree.root());
    assert_eq!(
        c.platform_toml,
        r#"# A platform file of Risetime, captured from a running machine.
# missing: idle: power in idle states: no file has it; 0 in the file

schema = 1
name = "hikey960"
about = "HiKey960 (captured under Linux 6.12.8-arm64)"
hz = 250

[[domain]]
cpus = "0-3"
cluster = 0
capacity = 462
fast_switch = false
opp = [
  { freq_khz = 533000, power_uw = 28700, latency_ns = 300000 },
  { freq_khz = 999000, power_uw = 70300, latency_ns = 300000 },
  { freq_khz = 1844000, power_uw = 245400, latency_ns = 300000 },
]
idle = [
  { name = "WFI", exit_latency_us = 1, min_residency_us = 1, power_uw = 0 },
  { name = "cpu-sleep-0", exit_latency_us = 1050, min_residency_us = 1500, power_uw = 0 },
]

[[domain]]
cpus = "4-7"
cluster = 1
capacity = 1024
fast_switch = false
opp = [
  { freq_khz = 903000, power_uw = 243400, latency_ns = 300000 },
  { freq_khz = 1805000, power_uw = 804100, latency_ns = 300000 },
  { freq_khz = 2362000, power_uw = 1571900, latency_ns = 300000 },
]
idle = [
  { name = "WFI", exit_latency_us = 1, min_residency_us = 1, power_uw = 0 },
  { name = "cpu-sleep-0", exit_latency_us = 1050, min_residency_us = 1500, power_uw = 0 },
]

[sources]
capacity = "/sys/devices/system/cpu/cpu*/cpu_capacity"
cluster = "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list"
fast_switch = "whether there is a kthread sugov:N of the policy while schedutil runs"
hz = "/boot/config-6.12.8-arm64"
idle = "/sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,residency}; power unknown: 0"
opp = "frequencies and power: /sys/kernel/debug/energy_model/cpu*/ps:*; latency: /sys/devices/system/cpu/cpufreq/policy*/cpuinfo_transition_latency, one figure for all OPPs of a policy"
"#
    );
}

#[test]
fn big_little_findings_in_order_of_impact() {
    let tree = big_little();
    let all = findings(&tree.root());
    let lines: Vec<String> =
        all.iter().map(|f| format!("{}: {}", f.severity.as_str(), f.title)).collect();
    assert_eq!(
        lines,
        [
            "notable: schedutil climbs with util: top frequency after 62 ms on CPUs 0-3, 83 ms on CPUs 4-7",
            "notable: CPUs differ in capacity: CPUs 0-3 at 462, CPUs 4-7 at 1024",
            "notable: HZ=250: a tick every 4 ms",
            "notable: deepest idle state cpu-sleep-0 takes 1.1 ms to leave",
            "fine: energy-aware scheduling is on",
            "fine: CPUs 0-7: rate_limit_us is 450 (450 µs)",
            "fine: real-time tasks ask for 1024 of 1024",
            "fine: utilisation clamps (uclamp) are there",
            "fine: no sched_ext scheduler is loaded",
            "fine: preemption model `full`",
        ]
    );
    // 300 µs under 6.12: the kernel's own choice, so nobody is said to have set it.
    assert!(!titled(&all, "rate_limit_us").meaning.contains("set it"));
}

#[test]
fn a_rate_limit_that_somebody_set_is_told_from_the_default() {
    let tree = big_little();
    tree.file(&cpu("cpufreq/schedutil/rate_limit_us"), 10_000);
    let all = findings(&tree.root());
    let f = titled(&all, "rate_limit_us is 10000");
    assert_eq!(f.severity, Severity::Costly);
    assert!(f.meaning.starts_with("a frequency step at most every 10 ms"), "{}", f.meaning);
    assert!(
        f.meaning.contains("own choice for the driver's latency would be 450 µs"),
        "{}",
        f.meaning
    );
    // The same tunable of the policy itself comes first.
    tree.file(&format!("{}/schedutil/rate_limit_us", policy(0)), 70);
    let all = findings(&tree.root());
    assert_eq!(titled(&all, "rate_limit_us is 70").title, "CPUs 0-3: rate_limit_us is 70 (70 µs)");
    assert_eq!(
        titled(&all, "rate_limit_us is 10000").title,
        "CPUs 4-7: rate_limit_us is 10000 (10 ms)"
    );
}

#[test]
fn without_debugfs_there_is_no_power_and_no_claim_of_eas() {
    let tree = big_little();
    tree.remove("/sys/kernel/debug");
    let c = captured(&tree.root());
    let p = c.platform.unwrap();
    assert_eq!(p.domains[1].opps.len(), 3);
    assert!(p.domains.iter().all(|d| d.opps.iter().all(|o| o.power.0 == 0)));
    assert!(!c.platform_toml.contains("power_uw = 2"), "{}", c.platform_toml);
    assert!(c.missing.iter().any(|m| m.contains("no energy model")), "{:?}", c.missing);
    let all = findings(&tree.root());
    assert!(titled(&all, "energy-aware scheduling is off").meaning.contains("no energy model"));
}

#[test]
fn without_root_the_energy_model_is_unreadable_not_absent() {
    let tree = big_little();
    let root = tree.root().as_if_denied("/sys/kernel/debug");
    let all = findings(&root);
    let f = titled(&all, "may not be read by you");
    assert_eq!(f.severity, Severity::Unreadable);
    assert!(f.evidence.iter().any(|e| e.file == "/sys/kernel/debug/energy_model"), "{f:?}");
    assert_eq!(f.hint.as_deref(), Some("sudo risetime doctor"));
    let energy = all.iter().find(|f| f.title.contains("energy-aware")).unwrap();
    assert!(!energy.meaning.contains("no energy model"), "{energy:?}");
    let c = captured(&tree.root().as_if_denied("/sys/kernel/debug"));
    assert!(
        c.missing.iter().any(|m| m.contains("/sys/kernel/debug/energy_model: permission denied")),
        "{:?}",
        c.missing
    );
}

#[test]
fn old_energy_models_count_in_milliwatts_and_some_in_nothing() {
    let tree = big_little();
    tree.file("/proc/sys/kernel/osrelease", "5.15.0").file("/boot/config-5.15.0", "CONFIG_HZ=300");
    tree.energy_model(4, "4-7", &BIG.map(|(khz, uw)| (khz, uw / 100_000)));
    let p = captured(&tree.root()).platform.unwrap();
    assert_eq!((p.hz, p.domains[1].opps[2].power.0), (300, 15_000));

    let tree = big_little();
    tree.file("/sys/kernel/debug/energy_model/cpu4/flags", "0x5");
    let c = captured(&tree.root());
    let p = c.platform.unwrap();
    assert!(p.domains[0].opps[0].power.0 > 0);
    assert_eq!(p.domains[1].opps[2].power.0, 0, "artificial figures are no power");
    assert!(
        c.missing.iter().any(|m| m.contains("energy_model/cpu4 counts in no physical unit")),
        "{:?}",
        c.missing
    );
}

fn numbers(cpus: &[risetime_kernel::units::CpuId]) -> Vec<u32> {
    cpus.iter().map(|c| c.0).collect()
}

/// Two sockets of two L3, each of two L2 of two cores, two threads a core: CPU n and n + 16.
fn two_sockets() -> Tree {
    let t = Tree::new();
    t.kernel("7.2.0", 1000, "0-31");
    for id in 0..32 {
        let core = id % 16;
        let pair = |first: u32, n: u32| {
            format!("{first}-{},{}-{}", first + n - 1, first + 16, first + 15 + n)
        };
        t.topology(id, &format!("{core},{}", core + 16), &pair(core / 2 * 2, 2))
            .file(&cpu(&format!("cpu{id}/cache/index3/level")), 3)
            .file(&cpu(&format!("cpu{id}/cache/index3/shared_cpu_list")), pair(core / 4 * 4, 4))
            .policy(
                id,
                &id.to_string(),
                "acpi-cpufreq",
                "schedutil",
                &[1_000_000, 2_000_000, 3_000_000],
                0,
            );
    }
    for (node, cpus) in [(0, "0-7,16-23"), (1, "8-15,24-31")] {
        let distance = if node == 0 { "10 32" } else { "32 10" };
        t.file(&format!("/sys/devices/system/node/node{node}/cpulist"), cpus)
            .file(&format!("/sys/devices/system/node/node{node}/distance"), distance);
    }
    t
}

#[test]
fn threads_caches_and_nodes_are_the_machines_own() {
    let c = captured(&two_sockets().root());
    let p = c.platform.expect("it loads");
    let t = &p.topology;
    assert_eq!(t.cores.len(), 16);
    assert!(t.cores.iter().enumerate().all(|(i, c)| numbers(c) == [i as u32, i as u32 + 16]));
    assert_eq!(t.l2.iter().map(|g| numbers(g)).nth(1), Some(vec![2, 3, 18, 19]));
    assert_eq!(
        p.caches().iter().map(|g| numbers(g)).nth(3),
        Some(vec![12, 13, 14, 15, 28, 29, 30, 31])
    );
    assert_eq!((t.nodes.len(), numbers(&t.nodes[1])), (2, (8..16).chain(24..32).collect()));
    assert_eq!(t.distance, [[10, 32], [32, 10]]);
    assert!(!c.missing.iter().any(|m| m.contains("topology")), "{:?}", c.missing);
    for kind in ["core", "l2", "node"] {
        assert!(p.sources[kind].contains("/sys/devices/system"), "{kind}: {:?}", p.sources);
    }
    // What stands in the file is what was meant.
    assert_eq!(risetime_model::Platform::parse(&c.platform_toml, "it").expect("a platform"), p);
}

#[test]
fn the_kernels_clusters_come_before_the_l2_and_what_is_offline_does_not_count() {
    let tree = two_sockets();
    // Threads 16-31 and CPU 3 are offline; the cluster is four cores here.
    tree.file(&cpu("online"), "0-2,4-15");
    for id in 0..16 {
        let first = id / 4 * 4;
        tree.file(
            &cpu(&format!("cpu{id}/topology/cluster_cpus_list")),
            format!("{first}-{}", first + 3),
        );
    }
    let c = captured(&tree.root());
    let t = c.platform.expect("it loads").topology;
    assert_eq!(t.cores, Vec::<Vec<_>>::new(), "one thread of each core is left");
    // CPUs 0-2, 4-15 are 0-14 in the file. A cluster is all that share the cache: no level of its own.
    assert!(t.l2.is_empty(), "{:?}", t.l2);
    assert_eq!(numbers(&t.nodes[0]), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn what_cannot_nest_is_left_out_and_named() {
    let named = |tree: &Tree, words: &str| {
        let c = captured(&tree.root());
        assert!(
            c.missing.iter().any(|m| m.starts_with("topology") && m.contains(words)),
            "{words}: {:?}",
            c.missing
        );
        c.platform.expect("it loads all the same").topology
    };
    // A cache around both nodes.
    let tree = two_sockets();
    for id in 0..32 {
        tree.file(&cpu(&format!("cpu{id}/cache/index3/shared_cpu_list")), "0-31");
    }
    let t = named(&tree, "nodes: a last-level cache spans two (CPUs 0-31)");
    assert!(t.nodes.is_empty() && t.l2.len() == 8, "{t:?}");
    // An L2 that splits cores.
    let tree = two_sockets();
    for id in 0..32 {
        let list =
            if id < 16 { format!("{}-{}", id / 4 * 4, id / 4 * 4 + 3) } else { id.to_string() };
        tree.file(&cpu(&format!("cpu{id}/topology/cluster_cpus_list")), list);
    }
    let t = named(&tree, "splits the threads of a core");
    assert!(t.l2.is_empty() && t.cores.len() == 16, "{t:?}");
    // Nodes that leave a CPU out.
    let tree = two_sockets();
    tree.file("/sys/devices/system/node/node1/cpulist", "8-15,24-30");
    assert!(named(&tree, "not every CPU is in exactly one").nodes.is_empty());
}

#[test]
fn a_node_of_memory_alone_is_none_and_a_bad_distance_is_an_estimate() {
    let tree = two_sockets();
    tree.file("/sys/devices/system/node/node2/cpulist", "")
        .file("/sys/devices/system/node/node2/distance", "20 20 10")
        .file("/sys/devices/system/node/node0/distance", "10 21 17")
        .file("/sys/devices/system/node/node1/distance", "21 10 28");
    let c = captured(&tree.root());
    assert_eq!(c.platform.expect("it loads").topology.distance, [[10, 21], [21, 10]]);
    tree.file("/sys/devices/system/node/node1/distance", "22 10 28");
    let c = captured(&tree.root());
    assert_eq!(c.platform.expect("it loads").topology.distance, [[10, 20], [20, 10]]);
    assert!(c.estimates.iter().any(|e| e.contains("distance")), "{:?}", c.estimates);
}

#[test]
fn intel_active_mode_has_no_governor_and_no_table() {
    let tree = intel_laptop();
    let c = captured(&tree.root());
    let p = c.platform.unwrap();
    assert_eq!(p.domains.len(), 4);
    let khz: Vec<u64> = p.domains[0].opps.iter().map(|o| o.freq.0).collect();
    assert_eq!(khz, (4..=35).map(|ratio| ratio * 100_000).collect::<Vec<_>>());
    let levels = p.domains[3].levels.expect("levels of 100 MHz");
    assert_eq!((levels.highest, levels.nominal, levels.lowest, levels.hwp), (35, 26, 4, true));
    assert_eq!(p.domains[3].capacity.0, 1024);
    assert!(p.sources["opp"].contains("base_frequency"), "{:?}", p.sources);
    assert!(p.sources["capacity"].contains("the kernel takes that"), "{:?}", p.sources);
    assert!(p.domains[0].fast_switch, "{:?}", p.sources);
    let cores: Vec<Vec<u32>> = p.topology.cores.iter().map(|c| numbers(c)).collect();
    assert_eq!(cores, [[0, 2], [1, 3]]);
    assert!(p.topology.l2.is_empty() && p.topology.nodes.is_empty(), "{:?}", p.topology);
    let idle: Vec<&str> = p.domains[0].idle.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(idle, ["C1", "C1E", "C10"], "polling is not an idle state");

    let all = findings(&tree.root());
    let f = &all[0];
    assert_eq!(f.title, "CPUs 0-3: intel_pstate in active mode, algorithm `powersave`");
    assert!(
        f.meaning.contains("not the governor of that name")
            && f.meaning.contains("the hardware chooses"),
        "{}",
        f.meaning
    );
    assert!(f.hint.as_ref().unwrap().contains("intel_pstate/status"));
    assert_eq!(all[1].title, "CPUs 0-3: energy preference `balance_power`");
    assert!(all.iter().any(|f| f.title.contains("SMT")));
    assert!(!all.iter().any(|f| f.title.contains("governor powersave")), "{all:#?}");
    assert!(!all.iter().any(|f| f.title.contains("turbo is off")), "{all:#?}");
    // Symmetric capacities: no word of energy-aware scheduling being off.
    assert!(!all.iter().any(|f| f.title.contains("energy-aware")));
}

#[test]
fn amd_in_both_modes() {
    let tree = intel_laptop();
    tree.remove(&cpu("intel_pstate")).file(&cpu("amd_pstate/status"), "active");
    for id in 0..4 {
        tree.file(&format!("{}/scaling_driver", policy(id)), "amd-pstate-epp")
            .file(&format!("{}/amd_pstate_lowest_nonlinear_freq", policy(id)), 1_700_000)
            .remove(&format!("{}/base_frequency", policy(id)));
    }
    let all = findings(&tree.root());
    assert!(all[0].title.contains("amd-pstate-epp in active mode"), "{}", all[0].title);
    assert!(all[0].hint.as_ref().unwrap().contains("amd_pstate/status"));
    let p = captured(&tree.root()).platform.unwrap();
    assert_eq!(
        p.domains[0].opps.iter().map(|o| o.freq.0).collect::<Vec<_>>(),
        [400_000, 1_700_000, 3_500_000],
        "no levels are known"
    );

    // With those of ACPI, whose highest is a rank of preferred cores: the driver's own file is right.
    for id in 0..4 {
        let cppc = |f: &str| cpu(&format!("cpu{id}/acpi_cppc/{f}"));
        tree.file(&format!("{}/amd_pstate_highest_perf", policy(id)), 166)
            .file(&cppc("highest_perf"), 231)
            .file(&cppc("nominal_perf"), 123)
            .file(&cppc("lowest_nonlinear_perf"), 81)
            .file(&cppc("lowest_perf"), 19)
            .file(&cppc("nominal_freq"), 2600);
    }
    let p = captured(&tree.root()).platform.unwrap();
    let levels = p.domains[0].levels.expect("levels of CPPC");
    let of = (levels.highest, levels.nominal, levels.lowest_nonlinear, levels.lowest);
    assert_eq!(of, (166, 123, 81, 19));
    assert_eq!(p.domains[0].freq_max().0, 3_508_944, "2.6 GHz · 166 / 123, rounded up");

    for id in 0..4 {
        tree.file(&format!("{}/scaling_driver", policy(id)), "amd-pstate")
            .file(&format!("{}/scaling_governor", policy(id)), "schedutil")
            .file(&format!("{}/schedutil/rate_limit_us", policy(id)), 600)
            .remove(&format!("{}/energy_performance_preference", policy(id)));
    }
    tree.file("/proc/2/comm", "kthreadd");
    let p = captured(&tree.root()).platform.unwrap();
    assert_eq!(p.domains[0].transition_delay_us, Some(600), "this driver sets its own");
    assert!(p.domains[0].fast_switch, "schedutil runs and has no kthread");
    let all = findings(&tree.root());
    let f = titled(&all, "schedutil climbs");
    assert!(f.meaning.contains("pass at 400 MHz before the first step"), "{}", f.meaning);
    assert!(!all.iter().any(|f| f.title.contains("active mode")));
}

#[test]
fn raspberry_pi_stuck_at_one_frequency_for_seconds() {
    let tree = raspberry_pi();
    let all = findings(&tree.root());
    assert_eq!(all[0].title, "CPUs 0-3: rate_limit_us is 6442450 (6.4 s)");
    assert_eq!(all[0].severity, Severity::Costly);
    assert!(all[0].meaning.contains("CPUFREQ_ETERNAL"), "{}", all[0].meaning);
    assert!(
        !all[0].meaning.contains("set it"),
        "this kernel derives that value itself: {}",
        all[0].meaning
    );
    let c = captured(&tree.root());
    let p = c.platform.unwrap();
    assert_eq!(p.name, "raspberry-pi-4-model-b-rev-1.4");
    assert_eq!(p.domains[0].transition_latency().0, 0);
    assert!(c.missing.iter().any(|m| m.contains("CPUFREQ_ETERNAL")), "{:?}", c.missing);
    assert!(c.missing.iter().any(|m| m.contains("--set rate_limit_us=6442450")), "{:?}", c.missing);
    assert!(p.domains[0].idle.is_empty());
}

#[test]
fn a_virtual_machine_says_what_it_cannot_know() {
    let tree = virtual_machine();
    let all = findings(&tree.root());
    assert_eq!(all[0].title, "virtual machine without cpufreq: the host decides the frequency");
    assert!(all[0].evidence.iter().any(|e| e.value == "flag hypervisor"));
    let c = captured(&tree.root());
    let p = c.platform.unwrap();
    assert_eq!(p.domains.len(), 1);
    assert_eq!(p.domains[0].opps.iter().map(|o| o.freq.0).collect::<Vec<_>>(), [2_250_000]);
    assert!(c.platform_toml.contains("# estimate: frequencies: no cpufreq"), "{}", c.platform_toml);
    assert!(c.missing.iter().any(|m| m.contains("the host may change")), "{:?}", c.missing);

    // Without a frequency in /proc/cpuinfo (arm64) there is no platform, but a file to fill in.
    tree.file("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nprocessor\t: 1");
    let c = captured(&tree.root());
    assert!(c.platform.is_none());
    assert!(
        c.platform_toml.contains("# opp = [ { freq_khz = ?, latency_ns = ? } ]"),
        "{}",
        c.platform_toml
    );
    assert!(c.missing.iter().any(|m| m.contains("cannot be known from here")), "{:?}", c.missing);
    let filled = c.platform_toml.replace(
        "# opp = [ { freq_khz = ?, latency_ns = ? } ]",
        "opp = [ { freq_khz = 2000000 } ]",
    );
    assert!(risetime_model::Platform::parse(&filled, "filled.toml").is_ok());
    assert_eq!(
        findings(&tree.root())[0].title,
        "no cpufreq driver: the firmware decides the frequency"
    );
}

#[test]
fn hz_is_never_guessed() {
    let tree = big_little();
    tree.remove("/boot");
    let c = captured(&tree.root());
    assert!(c.platform.is_none());
    assert!(c.platform_toml.contains("\n# hz = ?\n"), "{}", c.platform_toml);
    assert!(c.missing.iter().any(|m| m.starts_with("hz: ")), "{:?}", c.missing);
    let all = findings(&tree.root());
    assert_eq!(titled(&all, "length of the tick").severity, Severity::Unreadable);

    // Compressed, as IKCONFIG has it; and not what it says it is.
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, b"# CONFIG_UCLAMP_TASK is not set\nCONFIG_HZ=300\n")
        .unwrap();
    tree.bytes("/proc/config.gz", &gz.finish().unwrap());
    let p = captured(&tree.root()).platform.unwrap();
    assert_eq!((p.hz, p.sources["hz"].as_str()), (300, "/proc/config.gz"));
    tree.bytes("/proc/config.gz", b"CONFIG_HZ=300");
    assert!(captured(&tree.root()).platform.is_none());
}

#[test]
fn offline_cpus_are_left_out_and_named() {
    let tree = big_little();
    // Hotplugged out: the CPU directory stays, its policy link, cache and topology go.
    tree.file(&cpu("online"), "0-1,4-7");
    for id in [2, 3] {
        tree.remove(&cpu(&format!("cpu{id}/topology"))).remove(&cpu(&format!("cpu{id}/cache")));
    }
    tree.file(&format!("{}/affected_cpus", policy(0)), "0 1");
    let c = captured(&tree.root());
    let p = c.platform.unwrap();
    assert_eq!(p.nr_cpus(), 6);
    assert_eq!(p.domains[1].cpus.iter().map(|c| c.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert!(c.missing.iter().any(|m| m.starts_with("CPUs 2-3: offline")), "{:?}", c.missing);
    assert!(
        c.estimates
            .iter()
            .any(|e| e.contains("CPUs 0-5 of the file are CPUs 0-1,4-7 of the machine")),
        "{:?}",
        c.estimates
    );
    let all = findings(&tree.root());
    assert_eq!(titled(&all, "offline").title, "CPUs 2-3 offline");

    // The whole little cluster gone: its policy is inactive, and first in the directory.
    tree.file(&cpu("online"), "4-7");
    let p = captured(&tree.root()).platform.unwrap();
    assert_eq!((p.domains.len(), p.domains[0].capacity.0), (1, 1024));
}

#[test]
fn powersave_and_caps_come_first() {
    let tree = big_little();
    tree.file(&format!("{}/scaling_governor", policy(0)), "powersave")
        .file(&format!("{}/scaling_max_freq", policy(4)), 1_805_000)
        .file("/sys/class/thermal/cooling_device0/type", "cpufreq-cpu4")
        .file("/sys/class/thermal/cooling_device0/cur_state", 1)
        .file("/sys/class/thermal/cooling_device0/max_state", 2);
    let all = findings(&tree.root());
    assert_eq!(all[0].title, "CPUs 0-3: governor powersave (driver cpufreq-dt)");
    assert!(all[0].meaning.contains("3.5 times as long"), "{}", all[0].meaning);
    assert_eq!(all[1].title, "CPUs are throttled by temperature now");
    let f = titled(&all, "capped at");
    assert_eq!(f.title, "CPUs 4-7: capped at 1.80 GHz of 2.36 GHz");
    assert!(f.meaning.contains("1.31 times"), "{}", f.meaning);
    assert!(
        titled(&all, "energy-aware scheduling is off")
            .meaning
            .contains("not every policy runs schedutil")
    );
}

#[test]
fn a_loaded_scheduler_and_clamps_are_seen() {
    let tree = big_little();
    tree.file("/sys/kernel/sched_ext/state", "enabled")
        .file("/sys/kernel/sched_ext/root/ops", "lavd_1.0.9")
        .file("/sys/kernel/sched_ext/switch_all", 1)
        .file("/proc/sys/kernel/sched_util_clamp_max", 512)
        .file("/proc/sys/kernel/sched_util_clamp_min_rt_default", 0)
        .file("/sys/fs/cgroup/cgroup.procs", "")
        .file("/sys/fs/cgroup/background.slice/cgroup.procs", "")
        .file("/sys/fs/cgroup/background.slice/cpu.uclamp.max", "25.00")
        .file("/sys/fs/cgroup/user.slice/cgroup.procs", "")
        .file("/sys/fs/cgroup/user.slice/cpu.uclamp.min", "0.00")
        .file("/sys/fs/cgroup/user.slice/cpu.uclamp.max", "max");
    let all = findings(&tree.root());
    let f = titled(&all, "sched_ext scheduler");
    assert_eq!(f.title, "sched_ext scheduler `lavd_1.0.9` is enabled and has all normal tasks");
    let f = titled(&all, "(uclamp) are there");
    assert_eq!(
        (f.severity, f.meaning.as_str()),
        (Severity::Costly, "no task counts for more than 512: frequency and placement stop there")
    );
    let f = titled(&all, "control group clamps");
    assert_eq!(f.evidence.len(), 1);
    assert_eq!(f.evidence[0].file, "/sys/fs/cgroup/background.slice/cpu.uclamp.max");
    assert!(titled(&all, "real-time tasks ask for 0").severity == Severity::Notable);
}

/// Every file of a machine turned into each kind of garbage, one at a time: no panic, and
/// what is captured still loads or says why not.
#[test]
fn garbage_in_any_file() {
    const GARBAGE: [&[u8]; 6] = [
        b"",
        b"-1",
        b"99999999999999999999999",
        b"\xff\xfe\0\n\n",
        b"0-9999999,,",
        b"=\"\n[[x]]\x1b[2J",
    ];
    for tree in [big_little(), intel_laptop(), raspberry_pi(), virtual_machine()] {
        // CPUs 1 to 3, 5 to 7 and their policies hold the same as 0 and 4.
        let twin = |f: &String| {
            "123567"
                .chars()
                .any(|n| f.contains(&format!("cpu/cpu{n}/")) || f.contains(&format!("/policy{n}/")))
        };
        let mut files = files_of(&tree.root());
        files.retain(|f| !twin(f));
        assert!(files.len() >= 5);
        for (i, file) in files.iter().enumerate() {
            let before = std::fs::read(tree.path(file)).unwrap();
            for kind in [i, i + 2] {
                std::fs::write(tree.path(file), GARBAGE[kind % GARBAGE.len()]).unwrap();
                let machine = Machine::probe(&tree.root());
                checked(Captured::of(&machine));
                for f in examine(&machine) {
                    let text = format!("{}{}", f.title, f.meaning);
                    assert!(
                        !text.contains("NaN") && !text.contains(char::is_control),
                        "{file}: {text}"
                    );
                }
            }
            std::fs::write(tree.path(file), before).unwrap();
        }
    }
}

#[test]
fn garbage_is_named_with_what_was_wanted() {
    let tree = big_little();
    tree.file(&format!("{}/cpuinfo_transition_latency", policy(0)), "soon")
        .file(&cpu("cpu3/cpu_capacity"), 2048);
    let all = findings(&tree.root());
    let f = titled(&all, "2 files could not be understood");
    let lines: Vec<String> =
        f.evidence.iter().map(|e| format!("{}: {}", e.file, e.value)).collect();
    assert!(
        lines[0].ends_with("cpu3/cpu_capacity: found \"2048\", wanted a capacity of 1 to 1024"),
        "{lines:?}"
    );
    assert!(
        lines[1].ends_with("cpuinfo_transition_latency: found \"soon\", wanted a whole number"),
        "{lines:?}"
    );
    // The policy's CPUs now differ in capacity: two domains, and the file says so.
    let c = captured(&tree.root());
    assert_eq!(c.platform.unwrap().domains.len(), 3);
    assert!(
        c.missing.iter().any(|m| m.contains("one clock for CPUs 0-3 of different capacity")),
        "{:?}",
        c.missing
    );
}

#[test]
fn an_empty_tree_is_a_machine_that_says_nothing() {
    let tree = Tree::new();
    let c = captured(&tree.root());
    assert!(c.platform.is_none());
    assert!(c.missing[0].starts_with("CPUs: "), "{:?}", c.missing);
    let all = findings(&tree.root());
    assert_eq!(all[0].title, "no cpufreq driver: the firmware decides the frequency");
    findings(&Root::new("/nonexistent"));
}

/// Whatever machine this test runs on: nothing panics, and its tick is known.
#[test]
fn the_running_machine() {
    let c = captured(&Root::new("/"));
    assert!(!c.missing.iter().any(|m| m.starts_with("hz")), "{:?}", c.missing);
    let all = findings(&Root::new("/"));
    assert!(all.len() >= 3, "{all:#?}");
    titled(&all, "HZ=");
}

/// All plain files below a root, as absolute names on the machine.
fn files_of(root: &Root) -> Vec<String> {
    fn walk(root: &Root, dir: &str, found: &mut Vec<String>) {
        for name in root.list(dir) {
            let path = format!("{dir}/{name}");
            match root.list(&path).is_empty() {
                true => found.push(path),
                false => walk(root, &path, found),
            }
        }
    }
    let mut found = Vec::new();
    walk(root, "", &mut found);
    found
}
