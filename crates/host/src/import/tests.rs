use super::dt::{dtb, dts};
use super::*;
use proptest::prelude::*;
use risetime_model::library;
use risetime_model::platform::{Domain, IdleState, Opp};

#[path = "../../../../tests/draws.rs"]
mod draws;

/// An input as if a file held these bytes.
fn input(name: &str, bytes: &[u8]) -> Result<Input, InputError> {
    Input::of_bytes(name.to_owned(), bytes.to_vec())
}

/// Imports texts by names, told by their contents.
fn imported(texts: &[(&str, &str)], hz: Option<u32>) -> Result<Imported, String> {
    let dir =
        std::env::temp_dir().join(format!("risetime-import-{}-{:p}", std::process::id(), texts));
    std::fs::create_dir_all(&dir).unwrap();
    let mut paths = Vec::new();
    for (name, text) in texts {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        paths.push(path.to_string_lossy().into_owned());
    }
    let done = import(&paths, &Wishes { hz, ..Wishes::default() });
    std::fs::remove_dir_all(&dir).unwrap();
    let short = |text: String| text.replace(&format!("{}/", dir.display()), "");
    match done {
        Ok(mut all) => {
            all.platform_toml = short(all.platform_toml);
            for list in [&mut all.gaps, &mut all.missing, &mut all.estimates] {
                list.iter_mut().for_each(|line| *line = short(std::mem::take(line)));
            }
            Ok(all)
        }
        Err(e) => Err(short(e.to_string())),
    }
}

/// The platform of inputs that say enough.
fn platform(texts: &[(&str, &str)]) -> Platform {
    let all = imported(texts, Some(250)).unwrap();
    all.platform.unwrap_or_else(|| panic!("{:?}", all.gaps))
}

/// Two clusters, of voltages and of watts, with labels, overrides, an expression and a word that no header explains.
const BOARD: &str = r#"/dts-v1/;
#define MHZ(n) n
#define FAST 1800
/ {
	model = "Test Board, rev. 2"; /* of nobody */
	#address-cells = <2>;
	cpus {
		#address-cells = <1>;
		cpu-map {
			cluster0 { core0 { cpu = <&a0>; }; core1 { cpu = <&a1>; }; };
			cluster1 { core0 { cpu = <&b0>; }; };
		};
		a0: cpu@0 {
			device_type = "cpu"; enable-method = "psci";
			capacity-dmips-mhz = <530>; dynamic-power-coefficient = <228>;
			operating-points-v2 = <&little>; next-level-cache = <&l2a>;
			cpu-idle-states = <&sleep>;
			interrupts = <GIC_PPI 7 (IRQ_TYPE_LEVEL_LOW | 1)>;
			l2a: cache { next-level-cache = <&l3>; l3: cache { }; };
		};
		a1: cpu@100 {
			device_type = "cpu"; enable-method = "psci";
			capacity-dmips-mhz = <530>; dynamic-power-coefficient = <228>;
			operating-points-v2 = <&little>; next-level-cache = <&l2a>;
			cpu-idle-states = <&sleep>;
		};
		b0: cpu@200 {
			device_type = "cpu"; enable-method = "psci";
			capacity-dmips-mhz = <1024>; dynamic-power-coefficient = <416>;
			operating-points-v2 = <&big>; next-level-cache = <&l3>;
			power-domains = <&pd_b0>; power-domain-names = "psci";
		};
		gone: cpu@300 { device_type = "cpu"; };
		idle-states {
			sleep: cpu-sleep {
				compatible = "arm,idle-state";
				entry-latency-us = <100>; exit-latency-us = <120>; min-residency-us = <1000>;
			};
			deep: big-sleep {
				entry-latency-us = <200>; exit-latency-us = <300>; wakeup-latency-us = <450>;
				min-residency-us = <4000>; idle-state-name = "rail off";
			};
			all: cluster-sleep { entry-latency-us = <1>; exit-latency-us = <2>; min-residency-us = <9>; };
		};
	};
	psci {
		pd_b0: pd { #power-domain-cells = <0>; power-domains = <&pd_all>; domain-idle-states = <&deep>; };
		pd_all: pd-all { #power-domain-cells = <0>; domain-idle-states = <&all>; };
	};
	little: opp-table-0 {
		compatible = "operating-points-v2"; opp-shared;
		opp-1008000000 { opp-hz = /bits/ 64 <1008000000>; opp-microvolt = <675000 675000 950000>; clock-latency-ns = <40000>; };
		opp-1800000000 { opp-hz = /bits/ 64 <(FAST * 1000 * 1000)>; opp-microvolt = <950000 950000 950000>; clock-latency-ns = <40000>; };
	};
	big: opp-table-1 {
		compatible = "operating-points-v2"; opp-shared;
		opp-1200000000 { opp-hz = /bits/ 64 <1200000000>; opp-microwatt = <227000>; };
		opp-2400000000 { opp-hz = /bits/ 64 <2400000000>; opp-microwatt = <998000>; };
		opp-2600000000 { opp-hz = /bits/ 64 <2600000000>; opp-microwatt = <1200000>; turbo-mode; };
		opp-2800000000 { opp-hz = /bits/ 64 <2800000000>; opp-microwatt = <1300000>; status = "disabled"; };
	};
};
&gone { status = "disabled"; };
&little { /delete-property/ unknown; };
"#;

/// Figures of the RK3588's littles, whose power the kernel's own energy model prints as 104713 and 370386 µW.
#[test]
fn a_tree_in_source_gives_capacities_powers_and_idle_states_as_the_kernel_computes_them() {
    let p = platform(&[("board.dts", BOARD)]);
    assert_eq!(p.name, "test-board-rev.-2");
    let cpus: Vec<String> =
        p.domains.iter().map(|d| risetime_model::platform::cpu_ranges(&d.cpus)).collect();
    assert_eq!(cpus, ["0-1", "2"]);
    // 530 · 1800 / (1024 · 2400) of 1024: without the boost.
    assert_eq!(p.domains.iter().map(|d| d.capacity.0).collect::<Vec<_>>(), [397, 1024]);
    let power = |d: &Domain| d.opps.iter().map(|o| o.power.0).collect::<Vec<_>>();
    assert_eq!(power(&p.domains[0]), [104_713, 370_386]);
    assert_eq!(power(&p.domains[1]), [227_000, 998_000, 1_200_000]);
    assert_eq!(p.domains[1].opps.iter().map(|o| o.turbo).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(p.domains[0].transition_latency().0, 40_000);
    let idle = |d: &Domain| {
        let us =
            |s: &IdleState| (s.name.clone(), s.longest_wakeup().0 / 1000, s.min_residency.0 / 1000);
        d.idle.iter().map(us).collect::<Vec<_>>()
    };
    let wfi = || ("WFI".to_owned(), 1, 1);
    assert_eq!(idle(&p.domains[0]), [wfi(), ("cpu-sleep".to_owned(), 220, 1000)]);
    assert_eq!(idle(&p.domains[1]), [wfi(), ("rail-off".to_owned(), 450, 4000)]);
    assert_eq!((p.domains[0].cluster, p.domains[1].cluster), (0, 0), "one L3");
    assert_eq!(p.topology.l2, [[0, 1].map(risetime_kernel::units::CpuId)], "the kernel's CLS");
}

#[test]
fn what_a_tree_does_not_say_is_named_and_the_needed_is_an_error_that_says_what_to_add() {
    let all = imported(&[("board.dts", BOARD)], None).unwrap();
    assert!(all.platform.is_none());
    assert_eq!(all.gaps.len(), 1, "{:?}", all.gaps);
    assert!(
        all.gaps[0].contains("`hz`") && all.gaps[0].contains("/boot/config-"),
        "{:?}",
        all.gaps
    );
    assert!(all.platform_toml.contains("\n# hz = ?\n"), "{}", all.platform_toml);
    let told = |part: &str| {
        assert!(all.missing.iter().any(|m| m.contains(part)), "{part}: {:?}", all.missing)
    };
    told(
        "idle state `cluster-sleep` of the domain of CPUs 2 (exit 3 µs with its entry, residency 9 µs)",
    );
    told("cpu@300: its status says that it is not there");
    told("cpufreq driver of CPUs 0-2: no input has it; fast_switch = false");
    told("time of a frequency change of CPUs 2: no input has it");
    told("power in idle states of CPUs 0-2");
    // Without frequencies neither capacity nor OPPs.
    let bare = BOARD.replace("operating-points-v2 = <&little>;", "qcom,freq-domain = <&little 0>;");
    let all = imported(&[("bare.dts", &bare)], Some(250)).unwrap();
    assert!(all.gaps.iter().any(|g| g.starts_with("`opp` of CPUs 0-1: ")), "{:?}", all.gaps);
    assert!(
        all.gaps.iter().any(|g| g.starts_with("`capacity` of CPUs 0-1: 530 DMIPS/MHz")),
        "{:?}",
        all.gaps
    );
    assert!(
        all.missing
            .iter()
            .any(|m| m
                == "voltages of CPUs 0-1: from them dynamic-power-coefficient 228 µW/MHz/V² would give the power"),
        "{:?}",
        all.missing
    );
    assert!(Platform::parse(&all.platform_toml, "x").is_err(), "a file with gaps does not load");
}

#[test]
fn kernels_give_1024_to_all_where_a_cpu_has_no_figure() {
    let bare = BOARD.replacen("capacity-dmips-mhz = <1024>;", "", 1);
    let p = platform(&[("bare.dts", &bare)]);
    assert!(p.domains.iter().all(|d| d.capacity.0 == 1024), "{:?}", p.domains);
}

/// Energy model of an R-Car E3, as Geert Uytterhoeven printed it under 6.12 (linux-pm, 28 October 2024): quoted in an answer.
const EBISU: &str = "\
> root@ebisu:~# grep -r . /sys/kernel/debug/energy_model/
> /sys/kernel/debug/energy_model/cpu0/ps:1200000/inefficient:0
> /sys/kernel/debug/energy_model/cpu0/ps:1200000/performance:1024
> /sys/kernel/debug/energy_model/cpu0/ps:1200000/cost:3443
> /sys/kernel/debug/energy_model/cpu0/ps:1200000/power:352643
> /sys/kernel/debug/energy_model/cpu0/ps:1200000/frequency:1200000
> /sys/kernel/debug/energy_model/cpu0/ps:800000/cost:3447
> /sys/kernel/debug/energy_model/cpu0/ps:800000/performance:682
> /sys/kernel/debug/energy_model/cpu0/ps:800000/power:235095
> /sys/kernel/debug/energy_model/cpu0/ps:800000/frequency:800000
> /sys/kernel/debug/energy_model/cpu0/flags:0x3
> /sys/kernel/debug/energy_model/cpu0/cpus:0-1
";

/// Energy model of a Juno, as Lukasz Luba printed it under 5.14 (linux-pm, 31 August 2021), two states of each domain: power in mW.
const JUNO: &str = "\
root@juno:~# grep . /sys/kernel/debug/energy_model/cpu0/ps\\:*/*
/sys/kernel/debug/energy_model/cpu0/ps:450000/cost:79
/sys/kernel/debug/energy_model/cpu0/ps:450000/frequency:450000
/sys/kernel/debug/energy_model/cpu0/ps:450000/power:42
/sys/kernel/debug/energy_model/cpu0/ps:850000/cost:119
/sys/kernel/debug/energy_model/cpu0/ps:850000/frequency:850000
/sys/kernel/debug/energy_model/cpu0/ps:850000/power:119
root@juno:~# cat /sys/kernel/debug/energy_model/cpu0/cpus
0,3-5
root@juno:~# cat /sys/kernel/debug/energy_model/cpu1/cpus
1-2
root@juno:~# grep . /sys/kernel/debug/energy_model/cpu1/ps\\:*/*
/sys/kernel/debug/energy_model/cpu1/ps:1100000/frequency:1100000
/sys/kernel/debug/energy_model/cpu1/ps:1100000/power:583
";

#[test]
fn a_printed_energy_model_is_in_the_unit_that_its_kernel_had() {
    let p = platform(&[("em.txt", EBISU)]);
    let points = |d: &Domain| d.opps.iter().map(|o| (o.freq.0, o.power.0)).collect::<Vec<_>>();
    assert_eq!(p.nr_cpus(), 2);
    assert_eq!(points(&p.domains[0]), [(800_000, 235_095), (1_200_000, 352_643)]);
    let p = platform(&[("em.txt", JUNO)]);
    assert_eq!(p.domains[0].cpus.len(), 4);
    assert_eq!(points(&p.domains[0]), [(450_000, 42_000), (850_000, 119_000)]);
    assert_eq!(points(&p.domains[1]), [(1_100_000, 583_000)]);
    // With flags and without a release: the cost at the highest frequency tells, 1000 times the power before 6.0.
    let with = |cost: u64| {
        format!(
            "cpu0/cpus:0\ncpu0/flags:0x1\ncpu0/ps:1000/frequency:1000000\ncpu0/ps:1000/power:500\ncpu0/ps:1000/cost:{cost}\n"
        )
    };
    let power = |cost| imported(&[("em.txt", &with(cost))], Some(250)).unwrap();
    let first = |all: &Imported| all.platform.as_ref().unwrap().domains[0].opps[0].power.0;
    assert_eq!(first(&power(500_000)), 500_000);
    assert_eq!(first(&power(500)), 500);
    let unknown = power(777);
    assert_eq!(first(&unknown), 0);
    assert!(unknown.missing.iter().any(|m| m.contains("in which unit")), "{:?}", unknown.missing);
}

#[test]
fn inputs_are_merged_and_the_first_counts_where_they_differ() {
    let bare = BOARD
        .replace("opp-microvolt = <675000 675000 950000>;", "")
        .replace("opp-microvolt = <950000 950000 950000>;", "");
    let em = "cpu0/cpus:0-1\ncpu0/ps:1/frequency:1008000\ncpu0/ps:1/power:104\ncpu0/ps:2/frequency:1800000\ncpu0/ps:2/power:370\n\
              cpu2/cpus:2\ncpu2/ps:1/frequency:1200000\ncpu2/ps:1/power:300\n";
    let config = "#\n# Linux/arm64 6.12 Kernel Configuration\n#\nCONFIG_NO_HZ=y\nCONFIG_HZ=300\n";
    let all = imported(&[("b.dts", &bare), ("em.txt", em), ("config", config)], None).unwrap();
    let p = all.platform.unwrap();
    assert_eq!(p.hz, 300);
    assert_eq!(p.domains[0].opps.iter().map(|o| o.power.0).collect::<Vec<_>>(), [104_000, 370_000]);
    assert_eq!(p.domains[1].opps[0].power.0, 227_000, "the tree has it");
    assert!(
        all.missing
            .iter()
            .any(|m| m.starts_with("power of CPUs 2 at 1200000 kHz: 227000 µW, and 300000 by ")),
        "{:?}",
        all.missing
    );
    assert!(p.sources["opp"].contains("em.txt: the kernel's energy model"), "{:?}", p.sources);
    assert!(p.sources["hz"].ends_with("config: CONFIG_HZ"), "{:?}", p.sources);
    let kinds: Vec<&str> = all.inputs.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds, ["dts", "energy-model", "config"]);
}

/// Figures of the two domains of a Juno, whose tree begins with the big CPUs while its kernel boots on a little one.
const JUNO_TREE: &str = r#"/dts-v1/;
/ {
	cpus {
		big0: cpu@0 { device_type = "cpu"; capacity-dmips-mhz = <1024>; clocks = <&scpi 0>; };
		big1: cpu@1 { device_type = "cpu"; capacity-dmips-mhz = <1024>; clocks = <&scpi 0>; };
		cpu@100 { device_type = "cpu"; capacity-dmips-mhz = <578>; clocks = <&scpi 1>; };
		cpu@101 { device_type = "cpu"; capacity-dmips-mhz = <578>; clocks = <&scpi 1>; };
		cpu@102 { device_type = "cpu"; capacity-dmips-mhz = <578>; clocks = <&scpi 1>; };
		cpu@103 { device_type = "cpu"; capacity-dmips-mhz = <578>; clocks = <&scpi 1>; };
	};
	scpi: scpi { };
};
"#;

/// The order of a tree says nothing of which CPU boots; taken as it is, the big CPUs had the little ones' figures here.
#[test]
fn a_trees_cpus_get_the_numbers_that_another_input_has_of_them_or_are_refused() {
    let cpus = |p: &Platform| {
        let of = |d: &Domain| (risetime_model::platform::cpu_ranges(&d.cpus), d.capacity.0);
        p.domains.iter().map(of).collect::<Vec<_>>()
    };
    let wanted = [("0,3-5".to_owned(), 446), ("1-2".to_owned(), 1024)];
    assert_eq!(cpus(&platform(&[("juno.dts", JUNO_TREE), ("em.txt", JUNO)])), wanted);
    assert_eq!(cpus(&platform(&[("em.txt", JUNO), ("juno.dts", JUNO_TREE)])), wanted);
    let other = JUNO.replace("0,3-5", "0,2,4-5").replace("\n1-2\n", "\n1,3\n");
    let e = imported(&[("juno.dts", JUNO_TREE), ("em.txt", &other)], Some(250))
        .map(|_| ())
        .unwrap_err();
    assert!(e.starts_with("em.txt: has the clocks of CPUs 0,2,4-5 and 1,3, which fit those of the inputs before it under no numbering"), "{e}");
    let e = imported(&[("a.txt", JUNO), ("em.txt", &other)], Some(250)).map(|_| ()).unwrap_err();
    assert!(e.starts_with("em.txt: has the clocks of CPUs"), "{e}");
}

#[test]
fn lisas_platform_info_gives_domains_frequencies_capacities_and_the_kernels_hz() {
    let text = "platform-info:\n    conf:\n        name: two\n        cpus-count: 3\n        freq-domains:\n        -   - 0\n            - 2\n        -   - 1\n\
        \x20       freqs:\n            0: [450000, 850000]\n            1: [450000, 1100000]\n            2: [450000, 850000]\n\
        \x20       cpu-capacities:\n            orig: {0: 446, 1: 1024, 2: 446}\n            writeable: true\n\
        \x20       kernel:\n            config: !call:devlib.target.TypedKernelConfig.from_str\n                text: |\n                    CONFIG_HZ=250\n\
        \x20           version: !call:devlib.target.KernelVersion\n                version_string: '5.12.0-rc8 #1'\n\
        \x20       nrg-model: !!python/object:lisa.energy_model.EnergyModel\n            cpu_nodes:\n            - &id001 !!python/object:x\n                active_states: !!omap\n\
        \x20               -   450000: !!python/object/new:y\n                    - 236.1\n                    - 42\n                -   850000: [446.0, 119]\n                cpus: [0]\n\
        \x20               parent: {children: [*id001, {active_states: {1100000: [1024, 583]}, cpus: [1]}]}\n";
    let all = imported(&[("plat_info.yml", text)], None).unwrap();
    let p = all.platform.unwrap_or_else(|| panic!("{:?}", all.gaps));
    assert_eq!((p.name.as_str(), p.hz, p.domains.len()), ("two", 250, 2));
    assert_eq!(p.domains[0].capacity.0, 446);
    assert_eq!(p.domains[0].opps.iter().map(|o| o.power.0).collect::<Vec<_>>(), [42_000, 119_000]);
    assert!(
        all.missing.iter().any(|m| m.starts_with("power of CPUs 1 at 450000 kHz: no input has it")),
        "{:?}",
        all.missing
    );
    let broken = text.replace("450000, 850000]\n            1", "fast, 850000]\n            1");
    let e = imported(&[("plat_info.yml", &broken)], None).unwrap_err();
    assert_eq!(e, "plat_info.yml:10:17: `freqs` is \"fast\", wanted a number up to 100000000");
}

/// A `.tar` of these files, whose sizes are those that sysfs gives.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in files {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", 4096).as_bytes());
        header[156] = b'0';
        header[257..262].copy_from_slice(b"ustar");
        out.extend(header);
        let mut data = content.as_bytes().to_vec();
        data.resize(4096, 0);
        out.extend(data);
    }
    out.extend([0; 1024]);
    out
}

#[test]
fn a_packed_sys_is_read_as_capture_reads_this_machine() {
    let cpu = |file: &str| format!("./sys/devices/system/cpu/{file}");
    let files: Vec<(String, String)> = [
        ("online", "0-1\n"),
        ("cpu0/cpu_capacity", "512\n"),
        ("cpu1/cpu_capacity", "1024\n"),
        ("cpufreq/policy0/related_cpus", "0\n"),
        ("cpufreq/policy0/scaling_available_frequencies", "1000000 500000 \n"),
        ("cpufreq/policy0/cpuinfo_transition_latency", "30000\n"),
        ("cpufreq/policy0/scaling_driver", "cpufreq-dt\n"),
        ("cpufreq/policy1/related_cpus", "1\n"),
        ("cpufreq/policy1/scaling_available_frequencies", "2000000\n"),
        ("cpu0/cpuidle/state0/name", "WFI\n"),
        ("cpu0/cpuidle/state0/latency", "1\n"),
        ("cpu0/cpuidle/state0/residency", "1\n"),
    ]
    .map(|(name, content)| (cpu(name), content.to_owned()))
    .to_vec();
    let listed: Vec<(&str, &str)> = files.iter().map(|(n, c)| (n.as_str(), c.as_str())).collect();
    let bytes = tar(&listed);
    let input = input("phone.tar", &bytes).unwrap();
    assert_eq!(input.importer(None).unwrap().name, "sysfs");
    let draft = sysfs::read(&input).unwrap();
    assert_eq!(draft.groups.len(), 2);
    assert_eq!(draft.groups[0].capacity, Some(512));
    assert_eq!(
        draft.groups[0].points.iter().map(|p| p.khz).collect::<Vec<_>>(),
        [500_000, 1_000_000]
    );
    assert_eq!(draft.groups[0].points[0].latency_ns, Some(30_000));
    assert_eq!(draft.groups[1].points[0].latency_ns, None);
    assert_eq!(draft.groups[0].fast_switch, Some(false));
    assert_eq!(draft.groups[0].idle.len(), 1);
    // Cut off anywhere it is an error with a place, or says less; never a panic.
    for end in (0..bytes.len()).step_by(97) {
        let _ = super::tests::input("phone.tar", &bytes[..end])
            .map(|i| i.importer(None).map(|r| (r.read)(&i)));
    }
}

/// Groups of CPUs.
type Groups = Vec<Vec<risetime_kernel::units::CpuId>>;

/// A device tree of a platform holds less than the platform: this is how much.
fn as_a_tree_has_it(p: &Platform) -> (Vec<Domain>, Groups, Groups) {
    let deep = p.nr_cpus() <= 8;
    let mut numbers = Vec::new();
    let domain = |d: &Domain| {
        if !numbers.contains(&d.cluster) {
            numbers.push(d.cluster);
        }
        let known = numbers.iter().position(|c| *c == d.cluster).unwrap();
        let us = risetime_kernel::units::Span::from_us(1);
        let wfi = IdleState::new("WFI", us, us, Default::default());
        let states = d.idle.iter().skip(1).filter(|_| deep);
        let mut idle: Vec<IdleState> = vec![wfi];
        idle.extend(states.map(|s| IdleState { power: Default::default(), ..s.clone() }));
        idle.sort_by_key(|s| s.min_residency);
        let power = |o: &Opp| if d.energy_model { o.power } else { Default::default() };
        Domain {
            cluster: known as u32,
            fast_switch: false,
            transition_delay_us: None,
            energy_model: true,
            opps: d.opps.iter().map(|o| Opp { power: power(o), ..*o }).collect(),
            // No tree has levels.
            levels: None,
            idle,
            work: Vec::new(),
            ..d.clone()
        }
    };
    let domains = p.domains.iter().map(domain).collect();
    let groups = |groups: &[Vec<risetime_kernel::units::CpuId>]| {
        let mut groups = groups.to_vec();
        groups.sort();
        groups
    };
    (domains, groups(&p.topology.cores), groups(&p.topology.l2))
}

#[test]
fn every_builtin_platform_comes_back_from_its_own_device_tree_flattened_and_in_source() {
    let mut compared = 0;
    for entry in library::platforms() {
        let p = Platform::load(entry.name).unwrap();
        // What no kernel can be told of, no tree has.
        if risetime_vm::dtb::check(&p).is_err() {
            continue;
        }
        let forms = [
            ("board.dtb", risetime_vm::dtb::blob(&p).unwrap()),
            ("board.dts", risetime_vm::dtb::source(&p).unwrap().into_bytes()),
        ];
        for (name, bytes) in forms {
            let input = input(name, &bytes).unwrap();
            let importer = input.importer(None).unwrap();
            let draft = (importer.read)(&input).unwrap_or_else(|e| panic!("{}: {e}", p.name));
            let mut whole = Draft { hz: Some(p.hz), ..Draft::default() };
            whole.merge(draft, name).unwrap();
            let built = whole.build(Some("x"));
            assert_eq!(built.gaps, Vec::<String>::new(), "{} {name}", p.name);
            let read = Platform::parse(&built.platform.to_toml(), "x.toml").unwrap();
            let (domains, cores, l2) = as_a_tree_has_it(&p);
            assert_eq!(read.domains, domains, "{} {name}", p.name);
            assert_eq!((read.topology.cores, read.topology.l2), (cores, l2), "{} {name}", p.name);
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared}");
}

/// Writes a node as `/proc/device-tree` has it.
fn write_node(tree: &super::dt::Tree, id: usize, dir: &Path) {
    std::fs::create_dir_all(dir).unwrap();
    for (name, prop) in &tree.nodes[id].props {
        let bytes: Vec<u8> = prop
            .data
            .iter()
            .flat_map(|d| match d {
                super::dt::Datum::Bytes(bytes) => bytes.clone(),
                other => panic!("a flattened tree has bytes: {other:?}"),
            })
            .collect();
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    for child in &tree.nodes[id].children {
        write_node(tree, *child, &dir.join(&tree.nodes[*child].name));
    }
}

#[test]
fn a_tree_of_property_files_gives_what_the_flattened_one_gives() {
    let dir = std::env::temp_dir().join(format!("risetime-proc-dt-{}", std::process::id()));
    for name in ["hikey960", "pixel6", "odroid-xu4"] {
        let p = Platform::load(name).unwrap();
        let blob = risetime_vm::dtb::blob(&p).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("board.dtb"), &blob).unwrap();
        let tree = dtb::parse(&blob, "board.dtb").unwrap();
        write_node(&tree, 0, &dir.join("tree"));
        let of = |file: &str| {
            let path = dir.join(file).to_string_lossy().into_owned();
            let all = import(&[path], &Wishes { hz: Some(250), ..Wishes::default() }).unwrap();
            (all.inputs[0].1, all.platform.expect("no gaps"))
        };
        let (flat, files) = (of("board.dtb"), of("tree"));
        assert_eq!((flat.0, files.0), ("dtb", "device-tree"), "{name}");
        assert_eq!(flat.1.domains, files.1.domains, "{name}");
        assert_eq!(flat.1.topology, files.1.topology, "{name}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn broken_inputs_are_refused_with_their_place() {
    let mut others = Vec::new();
    for (name, text, wanted) in [
        (
            "a.dts",
            "/dts-v1/;\n/ {\n\tcpus {\n",
            "a.dts:3:1: ends, wanted a property, a node or `}`",
        ),
        ("b.dts", "/dts-v1/;\n/ { a = <1 2; };\n", "b.dts:2:13: `; };`, wanted a cell or `>`"),
        (
            "c.dts",
            "/dts-v1/;\n/ { };\n&nobody { };\n",
            "c.dts:3:2: `&nobody` is no node of this tree",
        ),
        ("d.dts", "/dts-v1/;\n/ { };\n", "d.dts: has no node `/cpus`: no CPUs to read"),
        (
            "e.dts",
            "/dts-v1/;\n/ { MACRO(1) };\n",
            "e.dts:2:5: `MACRO(…)` stands where a property does: a macro",
        ),
        ("f.dts", "/dts-v1/;\n#if WHO\n/ { };\n#endif\n", "f.dts:2: `#if WHO` is not known here"),
        (
            "h.dts",
            "/dts-v1/;\n/ { cpus { cpu@0 { operating-points-v2 = <&t>; }; }; };\n/ { t: t { opp { opp-hz = <5>; }; }; };",
            "h.dts:3:18: `opp-hz` has 1 cells, wanted 64 bits",
        ),
        (
            "i.dts",
            "/dts-v1/;\n/ { cpus { cpu@0 { capacity-dmips-mhz = <LOTS>; }; }; };",
            "i.dts:2:20: `capacity-dmips-mhz` holds `LOTS`, wanted a number",
        ),
        (
            "em.txt",
            "cpu0/cpus:0\ncpu0/ps:1/frequency:fast\ncpu0/ps:1/power:1\n",
            "em.txt: /sys/kernel/debug/energy_model/cpu0/ps:1/frequency: found \"fast\", wanted a whole number",
        ),
        ("config", "CONFIG_A=y\nCONFIG_HZ=0\n", "config:2: CONFIG_HZ is none, wanted 24 to 10000"),
        ("x.txt", "hello\n", "x.txt: is of no kind that can be imported"),
        ("plat.yml", "platform-info:\n  conf: {a: [}\n", "plat.yml:2:14: is no YAML"),
    ] {
        let e = imported(&[(name, text)], Some(250)).map(|all| all.gaps).unwrap_err();
        if !e.starts_with(wanted) {
            others.push(format!("{name}: {e}\nwanted {wanted}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    let blob = risetime_vm::dtb::blob(&Platform::load("hikey960").unwrap()).unwrap();
    let cut = dtb::parse(&blob[..100], "cut.dtb").unwrap_err().to_string();
    assert!(cut.starts_with("cut.dtb: byte 4: is ") && cut.ends_with("100 here: cut off"), "{cut}");
}

#[test]
fn an_input_that_is_missing_is_said_so_and_a_kind_that_is_unknown_too() {
    let none = import(&["no/such.dtb".to_owned()], &Wishes::default()).unwrap_err();
    assert_eq!(
        (none.to_string().as_str(), none.code),
        ("no/such.dtb: no such file", Code::NotFound)
    );
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/src").to_owned();
    let e = import(&[other], &Wishes::default()).unwrap_err().to_string();
    assert!(e.contains("/src: is of no kind that can be imported"), "{e}");
    let kind = Wishes { kind: Some("dtbs".into()), ..Wishes::default() };
    let e = import(&[std::env::temp_dir().to_string_lossy().into_owned()], &kind).unwrap_err();
    assert!(e.to_string().contains("did you mean `dtb`?"), "{e}");
}

#[test]
fn words_that_stand_for_each_other_and_files_that_include_themselves_come_to_an_end() {
    let mut text = String::from("/dts-v1/;\n");
    (0..40).for_each(|i| text += &format!("#define A{i} (A{} + A{})\n", i + 1, i + 1));
    text += "/ { cpus { cpu@0 { capacity-dmips-mhz = <A0>; }; }; };\n";
    assert!(imported(&[("a.dts", &text)], None).is_err());
    let e = imported(&[("b.dts", "/dts-v1/;\n#include \"b.dts\"\n")], None).unwrap_err();
    assert!(e.contains("more than 32 files in files"), "{e}");
    let deep = format!("/dts-v1/;\n/ {{ {}", "a { ".repeat(100_000));
    assert!(imported(&[("c.dts", &deep)], None).unwrap_err().contains("nodes in nodes"));
    let brackets =
        format!("/dts-v1/;\n/ {{ a = <{}>; }};", "(".repeat(50_000) + &")".repeat(50_000));
    assert!(imported(&[("d.dts", &brackets)], None).is_err());
}

proptest! {
    #![proptest_config(draws::config(400))]

    #[test]
    fn no_bytes_make_the_reader_of_flattened_trees_panic(
        which in 0..4usize,
        hits in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8),
        end in any::<u16>(),
    ) {
        let name = ["hikey960", "pixel6", "laptop4", "server64"][which];
        let mut blob = risetime_vm::dtb::blob(&Platform::load(name).unwrap()).unwrap();
        for (at, byte) in hits {
            let at = at as usize % blob.len();
            blob[at] = byte;
        }
        blob.truncate(end as usize % (2 * blob.len()));
        if let Ok(tree) = dtb::parse(&blob, "x.dtb") {
            let _ = dt::cpus::draft(&tree, "x.dtb").map(|draft| draft.build(None));
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(
        which in 0..4usize,
        cuts in proptest::collection::vec((any::<u16>(), 0..40usize, "[ \\n<>{}();:=&/\"#*0-9a-zA-Z@.,\\-\\\\]{0,6}"), 1..6),
    ) {
        let texts = [BOARD, EBISU, JUNO, "platform-info:\n  conf: {cpus-count: 2, freqs: {0: [1, 2]}, cpu-capacities: {0: 1, 1: 1024}}\n"];
        let mut text: Vec<char> = texts[which].chars().collect();
        for (at, length, more) in cuts {
            let at = at as usize % text.len();
            let end = (at + length).min(text.len());
            text.splice(at..end, more.chars());
            if text.is_empty() {
                text.push(' ');
            }
        }
        let text: String = text.into_iter().collect();
        let input = input("x", text.as_bytes()).unwrap();
        for importer in &REGISTRY {
            let _ = (importer.read)(&input).map(|draft| {
                let mut whole = Draft { hz: Some(250), ..Draft::default() };
                whole.merge(draft, "x").unwrap();
                Platform::parse(&whole.build(None).platform.to_toml(), "x").map(|_| ())
            });
        }
        let none = |_: &str, _: &str| None;
        let _ = dts::parse(&text, "x.dts", &none);
    }
}
