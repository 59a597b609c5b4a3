//! The device tree of a platform on QEMU's `virt` machine.
//!
//! ```text
//! capacity       = ⌊dmips · f_max · 1024 / S⌋,  S = the largest dmips · f_max
//!                  so S is chosen ≥ 1024 · f_max, and dmips = ⌈capacity · S / (1024 · f_max)⌉
//! cpu-map        threads in cores; a cluster = an L2 where some share one, else a last-level cache
//! OPP            opp-hz, opp-microwatt (the kernel prefers it over any coefficient), clock-latency-ns, and
//!                some voltage
//! clock          one fixed clock a domain, at the lowest OPP: it accepts every rate and does
//!                nothing, and cpufreq starts where its rate says
//! idle state 0   the kernel's own WFI; the platform's further states as PSCI suspend states
//! ```
//!
//! Everything else is what `virt` has and a scheduler experiment needs: memory, GIC, timer,
//! PSCI, one serial port. Left out: PCI, virtio, flash, RTC, GPIO (boot is faster without),
//! and all seeds (a run must not depend on chance).
//!
//! DEVIATES(vm-idle): QEMU carries out every PSCI suspend as WFI, at once: the kernel chooses among the
//! platform's idle states and records its choice, but leaving one costs no time, unless a program in the kernel lets it pass
//! (`--idle-times`). Above 8 CPUs there is only WFI: that many need a GICv3, whose driver shuts the CPU
//! interface on its way into such a state, and QEMU then never wakes the CPU. States that a cluster enters
//! together are spent as each CPU's own.
//! DEVIATES(vm-idle-measured): where idle states take time, the kernel looks at the clock just inside of the two events at which
//! it passes (`time_start` and `time_end` of `cpuidle_enter_state`): its idle governor measures sleeps without the ways in and
//! out, and takes the way out from them once more. RCU's own tracepoints would lie inside; stock kernels have none
//! (`CONFIG_RCU_TRACE`).
//! DEVIATES(vm-speed): a frequency change does not change the speed of the code in the virtual machine.
//! PELT, schedutil and the energy model see the frequency; the agent scales finite work itself.

use crate::tree::{Cell, Node};
use risetime_kernel::units::{CpuId, KHz};
use risetime_model::platform::{Domain, IdleState, cpu_ranges};
use risetime_model::{InputError, Platform};

/// Number of CPUs that one GICv3 redistributor region of `virt` serves.
pub const MAX_CPUS: usize = 123;

/// Number of CPUs that a GICv2 serves.
const MAX_CPUS_GIC_V2: usize = 8;

/// Memory of the machine, in MiB.
pub(crate) const MEMORY_MIB: u32 = 1024;

/// The CPU model: 64-bit, with atomics, and free of the faults whose workarounds would cost
/// time at every kernel entry.
pub(crate) const CPU_MODEL: &str = "cortex-a55";

// The memory map and interrupts of QEMU's `virt` machine (hw/arm/virt.c); they do not change
// between versions of QEMU.
const MEMORY: u32 = 0x4000_0000;
const UART: u32 = 0x0900_0000;
const UART_IRQ: u32 = 1;
const GIC_DISTRIBUTOR: [u32; 2] = [0x0800_0000, 0x1_0000];
const GIC_V2_CPU: [u32; 2] = [0x0801_0000, 0x1_0000];
const GIC_V3_REDISTRIBUTORS: [u32; 2] = [0x080a_0000, 0x00f6_0000];
/// Linux 6.1 reads no power of an OPP without a voltage: there is no energy model then, and no energy-aware
/// scheduling, although its switch reads 1. Power is given, so nothing follows from the value.
const ANY_UV: u32 = 1_000_000;
/// Secure, non-secure, virtual and hypervisor timer, as private interrupts.
const TIMER_PPI: [u32; 4] = [13, 14, 11, 10];
const SPI: u32 = 0;
const PPI: u32 = 1;
const LEVEL_HIGH: u32 = 4;

/// The flattened device tree of `platform`.
///
/// Errors: see [`check`].
pub fn blob(platform: &Platform) -> Result<Vec<u8>, InputError> {
    root(platform)?.flatten().map_err(|e| InputError::new(&*platform.name, e))
}

/// The device tree of `platform` as source, for a reader.
///
/// Errors: see [`check`].
pub fn source(platform: &Platform) -> Result<String, InputError> {
    Ok(root(platform)?.source())
}

fn root(platform: &Platform) -> Result<Node, InputError> {
    let dmips = check(platform)?;
    Ok(Node::new("")
        .text("compatible", &["linux,dummy-virt"])
        .text("model", &[&platform.name])
        .refer("interrupt-parent", "gic")
        .cell("#address-cells", 2)
        .cell("#size-cells", 2)
        .child(Node::new("chosen").text("stdout-path", &["/pl011@9000000"]))
        .child(
            Node::new("memory@40000000")
                .text("device_type", &["memory"])
                .cells("reg", [0, MEMORY, 0, MEMORY_MIB << 20]),
        )
        .child(cpus(platform, &dmips))
        .children(platform.domains.iter().enumerate().map(|(i, d)| opp_table(i, d)))
        .children(platform.domains.iter().enumerate().map(|(i, d)| clock(i, d)))
        .children(machine(gic_version(platform.nr_cpus()))))
}

/// The version of the interrupt controller that a machine of so many CPUs needs; QEMU must be told
/// the same.
pub(crate) fn gic_version(cpus: usize) -> u32 {
    if cpus <= MAX_CPUS_GIC_V2 { 2 } else { 3 }
}

/// Whether a kernel can be told of `platform` exactly; the `capacity-dmips-mhz` of each
/// domain.
///
/// Errors: capacities that no device tree can express, too many CPUs, figures too large for
/// their property.
pub fn check(platform: &Platform) -> Result<Vec<u32>, InputError> {
    let err =
        |what: String| InputError::new(format!("{} on a virtual machine", platform.name), what);
    if platform.nr_cpus() > MAX_CPUS {
        return Err(err(format!("found {} CPUs, wanted at most {MAX_CPUS}", platform.nr_cpus())));
    }
    if platform.topology.nodes.len() > 1 {
        let what = format!("found {} nodes: NUMA is simulated only", platform.topology.nodes.len());
        return Err(err(what));
    }
    for (i, d) in platform.domains.iter().enumerate() {
        let place = format!("domain {} (CPUs {})", i + 1, cpu_ranges(&d.cpus));
        let too_large = |what: &str, value: u64, unit: &str| {
            Err(err(format!("{place}: {what} of {value} {unit} does not fit a device tree")))
        };
        for o in &d.opps {
            if u32::try_from(o.power.0).is_err() {
                return too_large("power", o.power.0, "µW");
            }
            if o.capacity.is_some() {
                let what = "has OPPs with a capacity of their own: simulated only";
                return Err(err(format!("{place} {what}")));
            }
            if u32::try_from(o.latency.0).is_err() {
                return too_large("latency", o.latency.0, "ns");
            }
        }
        if hertz(d.opps[0].freq) > u64::from(u32::MAX) {
            return too_large("lowest frequency", d.opps[0].freq.0, "kHz");
        }
    }
    dmips(platform).map_err(err)
}

/// `capacity-dmips-mhz` for each domain, such that the kernel computes the platform's
/// capacities.
///
/// Source: drivers/base/arch_topology.c:topology_normalize_cpu_scale.
fn dmips(platform: &Platform) -> Result<Vec<u32>, String> {
    let largest = platform.domains.iter().map(|d| d.capacity.0).max().unwrap_or(0);
    if largest != 1024 {
        return Err(format!(
            "its largest capacity is {largest}, wanted 1024: a kernel scales the largest to 1024"
        ));
    }
    // Every CPU of capacity 1024 must have the same dmips · f_max, so that is a multiple of
    // all their frequencies; and one large enough that each capacity has a dmips.
    let fmax = |d: &Domain| u128::from(d.freq_max().0);
    let biggest = platform.domains.iter().filter(|d| d.capacity.0 == 1024);
    let common = biggest.map(fmax).fold(1, lcm);
    let wanted = 1024 * platform.domains.iter().map(fmax).max().unwrap_or(1);
    let scale = common * wanted.div_ceil(common);
    let of = |d: &Domain| {
        let raw = (u128::from(d.capacity.0) * scale).div_ceil(1024 * fmax(d));
        // The kernel multiplies raw · f_max and shifts by 10 in 64 bits.
        let fits = scale < 1 << 53;
        u32::try_from(raw).ok().filter(|_| fits).ok_or_else(|| {
            format!(
                "no capacity-dmips-mhz gives capacity {} at {} kHz (every domain of capacity 1024 needs the same product of the two)",
                d.capacity.0,
                d.freq_max().0
            )
        })
    };
    platform.domains.iter().map(of).collect()
}

/// The capacities that the kernel makes of `capacity-dmips-mhz` (`raw`) in each domain.
#[cfg(test)]
fn capacities(platform: &Platform, raw: &[u32]) -> Vec<u64> {
    let product = |(d, raw): (&Domain, &u32)| u64::from(*raw) * d.freq_max().0;
    let products: Vec<u64> = platform.domains.iter().zip(raw).map(product).collect();
    let scale = products.iter().max().copied().unwrap_or(1);
    products.iter().map(|p| (p << 10) / scale).collect()
}

fn lcm(a: u128, b: u128) -> u128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    // Saturating: far beyond what can be expressed anyway.
    (a / x).saturating_mul(b).min(1 << 100)
}

fn hertz(f: KHz) -> u64 {
    f.0 * 1000
}

/// The idle states beyond the kernel's own WFI, with their indices, as far as this machine can
/// have any.
fn deep_idle<'a>(
    platform: &Platform,
    d: &'a Domain,
) -> impl Iterator<Item = (usize, &'a IdleState)> {
    let possible = gic_version(platform.nr_cpus()) == 2;
    d.idle.iter().enumerate().skip(if possible { 1 } else { usize::MAX })
}

/// Lists the times in ns into and out of each idle state of each CPU, by the number that the kernel tells.
pub(crate) fn idle_ways(platform: &Platform) -> Vec<Vec<[u64; 2]>> {
    let way = |s: &IdleState| [s.entry_latency.0, s.exit_latency.0];
    let of = |cpu: CpuId| platform.domain_of(cpu).map(|d| &platform.domains[d]);
    // The driver is there where each CPU has a state for it. Without it the kernel calls its WFI number 1.
    let deep = |cpu: CpuId| of(cpu).is_some_and(|d| deep_idle(platform, d).count() > 0);
    let driver = platform.cpus().all(deep);
    let ways = |cpu: CpuId| {
        let states = of(cpu).map_or(&[][..], |d| &d.idle);
        match driver {
            true => states.iter().map(way).collect(),
            false => [[0, 0]].into_iter().chain(states.first().map(way)).collect(),
        }
    };
    platform.cpus().map(ways).collect()
}

/// The clusters of the cpu-map: who shares an L2 where some do (the kernel's CLS), else who shares
/// the last-level cache.
fn map_clusters(platform: &Platform) -> Vec<Vec<CpuId>> {
    let mut clusters: Vec<Vec<CpuId>> = Vec::new();
    for cache in platform.caches().into_iter().filter(|c| !c.is_empty()) {
        let l2 = &platform.topology.l2;
        if !cache.iter().any(|c| l2.iter().any(|g| g.contains(c))) {
            clusters.push(cache);
            continue;
        }
        for &cpu in &cache {
            let group = l2.iter().find(|g| g.contains(&cpu));
            let group = group.cloned().unwrap_or_else(|| platform.smt_mask(cpu));
            if group[0] == cpu {
                clusters.push(group);
            }
        }
    }
    clusters.sort();
    clusters
}

fn cpus(platform: &Platform, dmips: &[u32]) -> Node {
    let domain_of = |cpu| platform.domain_of(cpu).expect("validated: every CPU is in a domain");
    let mut clusters: Vec<u32> =
        platform.cpus().map(|c| platform.domains[domain_of(c)].cluster).collect();
    clusters.dedup();
    let mut seen = std::collections::BTreeSet::new();
    clusters.retain(|c| seen.insert(*c));

    let cpu_node = |cpu: risetime_kernel::units::CpuId| {
        let i = domain_of(cpu);
        let d = &platform.domains[i];
        // GICv3 groups CPUs by 16 in the affinity register.
        let reg = ((cpu.0 / 16) << 8) | (cpu.0 % 16);
        let node = Node::new(format!("cpu@{reg:x}"))
            .label(format!("cpu{}", cpu.0))
            .text("device_type", &["cpu"])
            .text("compatible", &[&format!("arm,{CPU_MODEL}")])
            .cell("reg", reg)
            .text("enable-method", &["psci"])
            .cell("capacity-dmips-mhz", dmips[i])
            .refer("clocks", &format!("clock{i}"))
            .refer("operating-points-v2", &format!("opp{i}"))
            .refer("next-level-cache", &format!("cache{}", d.cluster));
        match deep_idle(platform, d).count() {
            0 => node,
            _ => node.cells(
                "cpu-idle-states",
                deep_idle(platform, d).map(|(s, _)| Cell::Ref(format!("idle{i}_{s}"))),
            ),
        }
    };
    let map = map_clusters(platform).into_iter().enumerate().map(|(n, members)| {
        let refer = |node: Node, cpu: CpuId| node.refer("cpu", &format!("cpu{}", cpu.0));
        let core = |(n, threads): (usize, Vec<CpuId>)| {
            let node = Node::new(format!("core{n}"));
            match &threads[..] {
                [cpu] => refer(node, *cpu),
                _ => node.children(
                    threads
                        .iter()
                        .enumerate()
                        .map(|(t, cpu)| refer(Node::new(format!("thread{t}")), *cpu)),
                ),
            }
        };
        let first = |c: &CpuId| platform.smt_mask(*c).first() == Some(c);
        let cores = members.into_iter().filter(first).map(|c| platform.smt_mask(c));
        Node::new(format!("cluster{n}")).children(cores.enumerate().map(core))
    });
    let cache = |cluster: &u32| {
        Node::new(format!("l2-cache{cluster}"))
            .label(format!("cache{cluster}"))
            .text("compatible", &["cache"])
            .cell("cache-level", 2)
            .flag("cache-unified")
    };
    let node = Node::new("cpus")
        .cell("#address-cells", 1)
        .cell("#size-cells", 0)
        .child(Node::new("cpu-map").children(map))
        .children(platform.cpus().map(cpu_node))
        .children(clusters.iter().map(cache));
    match platform.domains.iter().all(|d| deep_idle(platform, d).count() == 0) {
        true => node,
        false => node.child(idle_states(platform)),
    }
}

fn idle_states(platform: &Platform) -> Node {
    let us = |s: risetime_kernel::units::Span| u32::try_from(s.0 / 1000).unwrap_or(u32::MAX);
    let state = |i: usize, (n, s): (usize, &IdleState)| {
        Node::new(format!("domain{i}-{n}"))
            .label(format!("idle{i}_{n}"))
            .text("compatible", &["arm,idle-state"])
            .text("idle-state-name", &[&s.name])
            // A standby state (bit 16 clear) of the CPU alone: what QEMU can do.
            .cell("arm,psci-suspend-param", n as u32)
            .cell("entry-latency-us", us(s.entry_latency))
            .cell("exit-latency-us", us(s.exit_latency))
            .cell("min-residency-us", us(s.min_residency))
    };
    let state = move |i: usize, (n, s): (usize, &IdleState)| match s.wakeup_latency {
        None => state(i, (n, s)),
        Some(wakeup) => state(i, (n, s)).cell("wakeup-latency-us", us(wakeup)),
    };
    let all = platform
        .domains
        .iter()
        .enumerate()
        .flat_map(|(i, d)| deep_idle(platform, d).map(move |s| state(i, s)));
    Node::new("idle-states").text("entry-method", &["psci"]).children(all)
}

fn opp_table(i: usize, d: &Domain) -> Node {
    let table = Node::new(format!("opp-table-{i}"))
        .label(format!("opp{i}"))
        .text("compatible", &["operating-points-v2"]);
    let table = if d.cpus.len() > 1 { table.flag("opp-shared") } else { table };
    table.children(d.opps.iter().map(|o| {
        let hz = hertz(o.freq);
        let opp = Node::new(format!("opp-{hz}"))
            .u64("opp-hz", hz)
            .cell("opp-microvolt", ANY_UV)
            .cell("clock-latency-ns", o.latency.0 as u32);
        let opp = if o.turbo { opp.flag("turbo-mode") } else { opp };
        // 0 = unknown: without it the kernel has no energy model, as the platform has none.
        if o.power.0 == 0 || !d.energy_model {
            opp
        } else {
            opp.cell("opp-microwatt", o.power.0 as u32)
        }
    }))
}

fn clock(i: usize, d: &Domain) -> Node {
    Node::new(format!("clock-{i}"))
        .label(format!("clock{i}"))
        .text("compatible", &["fixed-clock"])
        .cell("#clock-cells", 0)
        .cell("clock-frequency", hertz(d.opps[0].freq) as u32)
}

/// The nodes that `virt` has besides CPUs and memory.
fn machine(gic: u32) -> Vec<Node> {
    let (gic_kind, gic_banks) = match gic {
        2 => ("arm,cortex-a15-gic", [GIC_DISTRIBUTOR, GIC_V2_CPU]),
        _ => ("arm,gic-v3", [GIC_DISTRIBUTOR, GIC_V3_REDISTRIBUTORS]),
    };
    vec![
        Node::new("psci")
            .text("compatible", &["arm,psci-1.0", "arm,psci-0.2", "arm,psci"])
            .text("method", &["hvc"])
            .cell("cpu_suspend", 0xc400_0001)
            .cell("cpu_off", 0x8400_0002)
            .cell("cpu_on", 0xc400_0003),
        Node::new("timer")
            .text("compatible", &["arm,armv8-timer"])
            .flag("always-on")
            .cells("interrupts", TIMER_PPI.into_iter().flat_map(|irq| [PPI, irq, LEVEL_HIGH])),
        Node::new("intc@8000000")
            .label("gic")
            .text("compatible", &[gic_kind])
            .cell("#interrupt-cells", 3)
            .flag("interrupt-controller")
            .cells("reg", gic_banks.into_iter().flat_map(|[at, size]| [0, at, 0, size])),
        Node::new("apb-pclk")
            .label("apb")
            .text("compatible", &["fixed-clock"])
            .cell("#clock-cells", 0)
            .cell("clock-frequency", 24_000_000),
        Node::new("pl011@9000000")
            .text("compatible", &["arm,pl011", "arm,primecell"])
            .cells("reg", [0, UART, 0, 0x1000])
            .cells("interrupts", [SPI, UART_IRQ, LEVEL_HIGH])
            .cells("clocks", [Cell::Ref("apb".into()), Cell::Ref("apb".into())])
            .text("clock-names", &["uartclk", "apb_pclk"]),
    ]
}

#[cfg(test)]
mod tests;
