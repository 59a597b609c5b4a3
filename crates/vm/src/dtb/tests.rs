use super::*;
use risetime_kernel::units::Capacity;
use risetime_model::library;

/// The built-in platforms with a GICv2; the larger ones have no deep idle states here.
/// Whether an OPP has a capacity of its own, as no device tree can say.
fn has_own_capacities(p: &Platform) -> bool {
    p.domains.iter().flat_map(|d| &d.opps).any(|o| o.capacity.is_some())
}

fn builtin() -> Vec<Platform> {
    let all = library::platforms().into_iter().map(|e| Platform::load(e.name).unwrap());
    all.filter(|p| p.nr_cpus() <= MAX_CPUS_GIC_V2 && !has_own_capacities(p)).collect()
}

#[test]
fn capacities_of_single_opps_are_refused() {
    let pixel9 = Platform::load("pixel9").unwrap();
    assert!(has_own_capacities(&pixel9));
    let refused = check(&pixel9).unwrap_err().to_string();
    assert!(refused.contains("OPPs with a capacity of their own: simulated only"), "{refused}");
}

#[test]
fn threads_and_l2_clusters_are_in_the_map_and_nodes_are_refused() {
    let hybrid = source(&Platform::load("intel-hybrid").unwrap()).unwrap();
    // Eight P-cores each around an L2 of its own, and two groups of four E-cores.
    assert_eq!(hybrid.matches("cluster").count(), 10);
    assert_eq!(hybrid.matches("thread1 {").count(), 8);
    assert!(hybrid.contains("core3 {"));
    let mut server = Platform::load("server64").unwrap();
    assert_eq!(source(&server).unwrap().matches("cluster").count(), 32);
    server.topology.nodes = vec![Vec::new(); 2];
    assert!(check(&server).unwrap_err().to_string().contains("NUMA"));
}

/// A platform with one single-CPU domain for each capacity and top frequency.
fn with_domains(domains: &[(u64, u64)]) -> Platform {
    let mut p = Platform::load("laptop4").unwrap();
    let mut d = p.domains.remove(0);
    p.domains.clear();
    for (i, (capacity, khz)) in domains.iter().enumerate() {
        d.cpus = vec![risetime_kernel::units::CpuId(i as u32)];
        d.capacity = Capacity(*capacity);
        d.opps.truncate(1);
        d.opps[0].freq = KHz(*khz);
        p.domains.push(d.clone());
    }
    p
}

#[test]
fn the_kernel_computes_the_capacities_of_every_builtin_platform() {
    for p in builtin() {
        let wanted: Vec<u64> = p.domains.iter().map(|d| d.capacity.0).collect();
        assert_eq!(capacities(&p, &check(&p).unwrap()), wanted, "{}", p.name);
    }
}

#[test]
fn every_capacity_can_be_had_at_awkward_frequencies() {
    for capacity in 1..=1024 {
        for (little, big) in [
            (2_064_000, 3_204_000),
            (1_803_001, 2_802_999),
            (4_999_999, 300_007),
            (200_000, 7_000_000),
        ] {
            let p = with_domains(&[(capacity, little), (1024, big)]);
            assert_eq!(capacities(&p, &dmips(&p).unwrap()), [capacity, 1024], "{little} {big}");
        }
    }
}

#[test]
fn equal_capacities_at_different_frequencies_share_a_multiple() {
    let p = with_domains(&[(1024, 3_000_000), (1024, 2_800_000), (500, 1_800_000)]);
    assert_eq!(capacities(&p, &dmips(&p).unwrap()), [1024, 1024, 500]);
}

#[test]
fn what_no_tree_can_say_is_refused() {
    let of = |d: &[(u64, u64)]| check(&with_domains(d)).unwrap_err().to_string();
    insta::assert_snapshot!(
        "refused",
        [
            of(&[(1000, 3_000_000)]),
            of(&[(1024, 4_294_967), (1024, 4_294_965), (1024, 4_294_963)]),
            of(&[(1024, 5_000_000)])
        ]
        .join("\n")
    );
}

#[test]
fn the_m1_as_source() {
    insta::assert_snapshot!(source(&Platform::load("m1").unwrap()).unwrap());
}

/// Reads a flattened tree back: `path/property` to its bytes.
fn unflatten(blob: &[u8]) -> std::collections::BTreeMap<String, Vec<u8>> {
    let word = |at: usize| u32::from_be_bytes(blob[at..at + 4].try_into().unwrap()) as usize;
    let text = |at: usize| {
        String::from_utf8(blob[at..].iter().copied().take_while(|b| *b != 0).collect()).unwrap()
    };
    assert_eq!((word(0), word(4)), (0xd00d_feed, blob.len()));
    let (mut at, strings) = (word(8), word(12));
    let (mut path, mut found) = (Vec::new(), std::collections::BTreeMap::new());
    loop {
        at += 4;
        match word(at - 4) {
            1 => {
                let name = text(at);
                at += (name.len() + 4) / 4 * 4;
                path.push(name);
            }
            2 => drop(path.pop()),
            3 => {
                let (length, name) = (word(at), text(strings + word(at + 4)));
                found.insert(
                    format!("{}/{name}", path.join("/")),
                    blob[at + 8..at + 8 + length].to_vec(),
                );
                at += 8 + length.div_ceil(4) * 4;
            }
            9 => return found,
            4 => {}
            other => panic!("token {other} at {at}"),
        }
    }
}

#[test]
fn the_blob_holds_what_the_platform_says() {
    for p in builtin() {
        let blob = blob(&p).unwrap();
        let found = unflatten(&blob);
        let cells = |key: &str| -> Vec<u32> {
            let bytes = found.get(key).unwrap_or_else(|| panic!("{}: no {key}", p.name));
            bytes.chunks(4).map(|c| u32::from_be_bytes(c.try_into().unwrap())).collect()
        };
        for (i, d) in p.domains.iter().enumerate() {
            for cpu in &d.cpus {
                let node = format!("/cpus/cpu@{:x}", cpu.0);
                assert_eq!(
                    cells(&format!("{node}/operating-points-v2")),
                    cells(&format!("/opp-table-{i}/phandle"))
                );
                assert_eq!(cells(&format!("{node}/clocks")), cells(&format!("/clock-{i}/phandle")));
                let states =
                    found.get(&format!("{node}/cpu-idle-states")).map_or(0, |b| b.len() / 4);
                assert_eq!(states, d.idle.len().saturating_sub(1));
            }
            assert_eq!(found.contains_key(&format!("/opp-table-{i}/opp-shared")), d.cpus.len() > 1);
            for o in &d.opps {
                let node = format!("/opp-table-{i}/opp-{}", o.freq.0 * 1000);
                assert_eq!(found[&format!("{node}/opp-hz")], (o.freq.0 * 1000).to_be_bytes());
                // Of a domain whose power the kernel knows nothing of, it is not told to the guest either.
                match o.power.0 {
                    uw if uw == 0 || !d.energy_model => {
                        assert!(!found.contains_key(&format!("{node}/opp-microwatt")));
                    }
                    uw => assert_eq!(cells(&format!("{node}/opp-microwatt")), [uw as u32]),
                }
                assert_eq!(cells(&format!("{node}/clock-latency-ns")), [o.latency.0 as u32]);
            }
        }
        assert!(!found.keys().any(|k| k.contains("seed")), "nothing random");
        assert_eq!(blob, super::blob(&p).unwrap());
    }
}

#[test]
fn unknown_power_is_left_out() {
    let mut p = Platform::load("m1").unwrap();
    p.domains
        .iter_mut()
        .flat_map(|d| &mut d.opps)
        .for_each(|o| o.power = risetime_kernel::units::MicroWatts(0));
    assert!(!source(&p).unwrap().contains("opp-microwatt"));
}

#[test]
fn dtc_accepts_the_source_where_it_is_installed() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let dtc = Command::new("dtc")
        .args(["-q", "-I", "dts", "-O", "dtb"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut dtc) = dtc else { return };
    let p = Platform::load("m1").unwrap();
    dtc.stdin.take().unwrap().write_all(source(&p).unwrap().as_bytes()).unwrap();
    let out = dtc.wait_with_output().unwrap();
    assert!(out.status.success());
    // The same tree by another compiler; only the numbering of phandles is its own.
    let without_handles = |blob: &[u8]| -> Vec<(String, Vec<u8>)> {
        let refers = [
            "phandle",
            "clocks",
            "cpu",
            "interrupt-parent",
            "operating-points-v2",
            "next-level-cache",
            "cpu-idle-states",
        ];
        unflatten(blob)
            .into_iter()
            .filter(|(k, _)| !refers.iter().any(|r| k.ends_with(&format!("/{r}"))))
            .collect()
    };
    assert_eq!(without_handles(&out.stdout), without_handles(&blob(&p).unwrap()));
}

/// The guest's kernel is told entry and exit of an idle state apart, and how long a wakeup takes at most where the file says so:
/// its governors see what the simulator's do.
#[test]
fn the_guest_is_told_entry_exit_and_wakeup_of_an_idle_state() {
    use risetime_kernel::units::Span;
    let mut p = Platform::load("hikey960").unwrap();
    let plain = source(&p).unwrap();
    assert!(plain.contains("entry-latency-us = <0>") && !plain.contains("wakeup-latency-us"));
    p.domains[0].idle[1].entry_latency = Span::from_us(400);
    let both = source(&p).unwrap();
    assert!(both.contains("entry-latency-us = <400>") && !both.contains("wakeup-latency-us"));
    p.domains[0].idle[1].wakeup_latency = Some(Span::from_us(900));
    assert!(source(&p).unwrap().contains("wakeup-latency-us = <900>"));
}

/// The guest is told of each CPU's states by the kernel's numbers: where one CPU has no deep state the driver is for none, and the
/// kernel's own WFI is number 1.
#[test]
fn ways_into_and_out_of_idle_states_go_by_the_numbers_that_the_kernel_tells() {
    let mut platform = Platform::load("hikey960").expect("built in");
    let of = |s: &IdleState| [s.entry_latency.0, s.exit_latency.0];
    let own: Vec<Vec<[u64; 2]>> =
        platform.domains.iter().map(|d| d.idle.iter().map(of).collect()).collect();
    let ways = idle_ways(&platform);
    assert_eq!(ways.len(), 8);
    assert_eq!((&ways[0], &ways[7]), (&own[0], &own[1]));
    assert_eq!(ways[7][2], [0, 2_900_000]);
    platform.domains[0].idle.truncate(1);
    assert_eq!(idle_ways(&platform), vec![vec![[0, 0], own[0][0]]; 8]);
}
