//! cpufreq policies and the energy model's performance domains.

use super::{CPU_DIR, Cpu};
use crate::root::{Fact, Root};
use risetime_kernel::{KernelRev, features};

/// `CPUFREQ_ETERNAL`: the driver does not know its transition latency.
pub(crate) const ETERNAL: u64 = u32::MAX as u64;

/// One frequency domain, `/sys/devices/system/cpu/cpufreq/policyN`. Frequencies in kHz.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpufreqPolicy {
    /// Directory of the policy.
    pub dir: String,
    /// Online CPUs of the policy.
    pub cpus: Vec<u32>,
    /// Offline CPUs of the policy.
    pub offline: Vec<u32>,
    /// The driver (`cpufreq-dt`, `intel_pstate`, …).
    pub driver: Option<Fact>,
    /// The governor; under a driver in active mode the name of its own algorithm.
    pub governor: Option<Fact>,
    /// Governors that may be chosen now (modules that are not loaded are not among them).
    pub governors: Option<Fact>,
    /// The frequencies of the driver's table, ascending; empty if it has none.
    pub freqs: Vec<u64>,
    /// Frequencies above them that need boost, ascending.
    pub boost_freqs: Vec<u64>,
    /// Lowest frequency of the hardware.
    pub hardware_min: Option<Fact<u64>>,
    /// Highest frequency of the hardware.
    pub hardware_max: Option<Fact<u64>>,
    /// Highest frequency that can be kept up by all CPUs (intel_pstate's `base_frequency`).
    pub base: Option<Fact<u64>>,
    /// amd-pstate's `lowest_nonlinear_freq`, below which a lower frequency saves little.
    pub lowest_nonlinear: Option<Fact<u64>>,
    /// The lower limit in force.
    pub limit_min: Option<Fact<u64>>,
    /// The upper limit in force.
    pub limit_max: Option<Fact<u64>>,
    /// The last frequency asked for, or measured (`scaling_cur_freq`).
    pub current: Option<Fact<u64>>,
    /// `cpuinfo_transition_latency`, ns; u32::MAX is `CPUFREQ_ETERNAL`.
    pub latency_ns: Option<Fact<u64>>,
    /// schedutil's `rate_limit_us`, of this policy or of all.
    pub rate_limit_us: Option<Fact<u64>>,
    /// ondemand's or conservative's `sampling_rate`, µs.
    pub sampling_rate_us: Option<Fact<u64>>,
    /// `energy_performance_preference`.
    pub epp: Option<Fact>,
    /// Levels of CPPC, of the policy's first CPU.
    pub(crate) cppc: Option<Cppc>,
}

/// Performance levels as ACPI's `_CPC` has them, and the frequency of the nominal one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cppc {
    /// The highest, as amd-pstate takes it.
    pub(crate) highest: Fact<u64>,
    /// The nominal one.
    pub(crate) nominal: u64,
    /// The lowest that saves energy.
    pub(crate) lowest_nonlinear: u64,
    /// The lowest.
    pub(crate) lowest: u64,
    /// Frequency of the nominal level, MHz.
    pub(crate) nominal_mhz: u64,
}

/// Reads the levels of CPPC of `cpu`; of the highest, amd-pstate's own file is right where cores are ranked.
fn cppc(root: &Root, dir: &str, cpu: u32) -> Option<Cppc> {
    let number = |f: &str| root.number(&format!("/sys/devices/system/cpu/cpu{cpu}/acpi_cppc/{f}"));
    let own = root.number(&format!("{dir}/amd_pstate_highest_perf"));
    Some(Cppc {
        highest: own.or_else(|| number("highest_perf"))?,
        nominal: number("nominal_perf")?.value,
        lowest_nonlinear: number("lowest_nonlinear_perf")?.value,
        lowest: number("lowest_perf")?.value,
        nominal_mhz: number("nominal_freq")?.value,
    })
}

/// A performance domain of the energy model, `/sys/kernel/debug/energy_model/cpuN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfDomain {
    /// Directory of the domain.
    pub dir: String,
    /// CPUs of the domain.
    pub cpus: Vec<u32>,
    /// Factor from what `power` counts to µW; `None`: an abstract scale, or artificial.
    pub microwatts_per_unit: Option<u64>,
    /// Performance states, frequency ascending.
    pub states: Vec<EmState>,
}

/// One performance state of the energy model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmState {
    /// Frequency, kHz.
    pub freq_khz: u64,
    /// Power in the domain's unit.
    pub power: u64,
    /// A higher frequency costs no more energy: schedutil skips this one.
    pub inefficient: bool,
}

impl CpufreqPolicy {
    /// The driver's name, `""` if not known.
    pub fn driver_name(&self) -> &str {
        self.driver.as_ref().map_or("", |f| &f.value)
    }
    /// The governor's name, `""` if not known.
    pub fn governor_name(&self) -> &str {
        self.governor.as_ref().map_or("", |f| &f.value)
    }
    /// Whether the driver decides by itself (`setpolicy`): then no cpufreq governor runs, and
    /// `powersave` and `performance` name the driver's or the hardware's own algorithms.
    pub fn is_active_mode(&self) -> bool {
        matches!(self.driver_name(), "intel_pstate" | "amd-pstate-epp" | "longrun")
    }
}

/// The policies that have an online CPU, by their lowest CPU.
pub(super) fn policies(root: &Root, cpus: &[Cpu]) -> Vec<CpufreqPolicy> {
    let parent = format!("{CPU_DIR}/cpufreq");
    let mut policies: Vec<CpufreqPolicy> = Vec::new();
    for name in root.list(&parent) {
        if let Some(n) = name.strip_prefix("policy")
            && let Ok(n) = n.parse()
        {
            let policy = policy(root, &parent, &format!("{parent}/{name}"), n, cpus);
            // A CPU belongs to one policy: a tree that says otherwise gives it to the first.
            let taken = |c: &u32| policies.iter().any(|p| p.cpus.contains(c));
            if !policy.cpus.is_empty() && !policy.cpus.iter().any(taken) {
                policies.push(policy);
            }
        }
    }
    policies.sort_by_key(|p| p.cpus[0]);
    policies
}

fn policy(root: &Root, parent: &str, dir: &str, first: u32, cpus: &[Cpu]) -> CpufreqPolicy {
    let number = |f: &str| root.number(&format!("{dir}/{f}"));
    let text = |f: &str| root.read(&format!("{dir}/{f}")).filter(|f| !f.value.is_empty());
    let list = |f: &str| root.cpu_list(&format!("{dir}/{f}")).map(|f| f.value);
    // related_cpus are all CPUs of the domain, affected_cpus those that are online.
    let related =
        list("related_cpus").or_else(|| list("affected_cpus")).unwrap_or_else(|| vec![first]);
    let (online, offline) = related.into_iter().partition(|c| cpus.iter().any(|cpu| cpu.id == *c));
    let governor = text("scaling_governor");
    // Depending on the driver a governor's tunables are the policy's or everybody's.
    let tunable = |f: &str| {
        let name = &governor.as_ref()?.value;
        number(&format!("{name}/{f}")).or_else(|| root.number(&format!("{parent}/{name}/{f}")))
    };
    CpufreqPolicy {
        rate_limit_us: tunable("rate_limit_us"),
        sampling_rate_us: tunable("sampling_rate"),
        dir: dir.to_owned(),
        cpus: online,
        offline,
        driver: text("scaling_driver"),
        governors: text("scaling_available_governors"),
        freqs: frequencies(root, &format!("{dir}/scaling_available_frequencies")),
        boost_freqs: frequencies(root, &format!("{dir}/scaling_boost_frequencies")),
        hardware_min: number("cpuinfo_min_freq").filter(|f| f.value > 0),
        hardware_max: number("cpuinfo_max_freq").filter(|f| f.value > 0),
        base: number("base_frequency").filter(|f| f.value > 0),
        lowest_nonlinear: number("amd_pstate_lowest_nonlinear_freq").filter(|f| f.value > 0),
        limit_min: number("scaling_min_freq"),
        limit_max: number("scaling_max_freq"),
        // `<unknown>` is what the kernel prints if it does not know.
        current: text("scaling_cur_freq")
            .and_then(|f| Some(Fact { value: f.value.parse().ok()?, file: f.file })),
        latency_ns: number("cpuinfo_transition_latency"),
        epp: text("energy_performance_preference"),
        cppc: cppc(root, dir, first),
        governor,
    }
}

fn frequencies(root: &Root, file: &str) -> Vec<u64> {
    let Some(text) = root.read(file) else {
        return Vec::new();
    };
    let numbers: Result<Vec<u64>, _> = text.value.split_whitespace().map(str::parse).collect();
    match numbers {
        Ok(mut freqs) => {
            freqs.retain(|&f| f > 0);
            freqs.sort_unstable();
            freqs.dedup();
            freqs
        }
        Err(_) => {
            root.garbage(&text, "frequencies in kHz");
            Vec::new()
        }
    }
}

/// The performance domains that debugfs shows.
///
/// Unit of `power`: bit 0 of `flags` is set if it is a physical one, bit 2 if the figures are
/// artificial (include/linux/energy_model.h). Physical power was in mW before 5.20/6.0, in µW
/// since; of a dump without its kernel's release `cost` tells ([`unit_by_cost`]).
pub(crate) fn energy_model(root: &Root, kernel: Option<KernelRev>) -> Vec<PerfDomain> {
    let parent = "/sys/kernel/debug/energy_model";
    let mut domains = Vec::new();
    for name in root.list(parent) {
        let dir = format!("{parent}/{name}");
        // A dump of states alone: the name is that of the domain's first CPU.
        let first = || Some(vec![name.strip_prefix("cpu")?.parse().ok()?]);
        let listed = root.cpu_list(&format!("{dir}/cpus")).map(|f| f.value);
        let Some(cpus) = listed.or_else(first) else { continue };
        // Oldest layout: no flags file, power in mW.
        let flags = root.read(&format!("{dir}/flags")).and_then(|f| {
            let flags = u64::from_str_radix(f.value.trim_start_matches("0x"), 16).ok();
            if flags.is_none() {
                root.garbage(&f, "flags in hexadecimal");
            }
            flags
        });
        let per_unit = match (flags, kernel) {
            (Some(f), _) if f & 1 == 0 || f & 4 != 0 => None,
            (Some(_), Some(k)) if k.has(features::EM_MICROWATTS) => Some(1),
            (_, Some(k)) if !k.has(features::EM_MICROWATTS) => Some(1000),
            (None, None) => Some(1000),
            (Some(_), None) => unit_by_cost(root, &dir),
            _ => None,
        };
        let mut states: Vec<EmState> =
            root.list(&dir).iter().filter_map(|n| em_state(root, &dir, n)).collect();
        states.sort_by_key(|s| s.freq_khz);
        if !states.is_empty() {
            domains.push(PerfDomain { dir, cpus, microwatts_per_unit: per_unit, states });
        }
    }
    domains
}

/// The factor from `power` to µW by what the kernel computed from it: `None`: not to be told.
///
/// ```text
/// a file `performance`          6.9 and later: 1
/// cost · f / (power · f_max)    1000 before 6.0 (em_scale_power), 1 since: 1000, 1
/// ```
///
/// Source: `kernel/power/energy_model.c:em_create_perf_table`, 5.16 to 6.9.
fn unit_by_cost(root: &Root, dir: &str) -> Option<u64> {
    let names: Vec<String> = root.list(dir).into_iter().filter(|n| n.starts_with("ps")).collect();
    let number = |name: &String, f: &str| {
        let file = format!("{dir}/{name}/{f}");
        root.exists(&file).then(|| root.number(&file)).flatten().map(|f| u128::from(f.value))
    };
    let last = names.iter().max_by_key(|n| number(n, "frequency"))?;
    if number(last, "performance").is_some() {
        return Some(1);
    }
    // At the highest frequency it is the power itself.
    let (power, cost) = (number(last, "power")?, number(last, "cost")?);
    match cost {
        _ if cost == power => Some(1),
        _ if cost == 1000 * power => Some(1000),
        _ => None,
    }
}

/// Reads a directory `ps:FREQ` or, in older kernels, `cs:FREQ` and `psFREQ`.
fn em_state(root: &Root, dir: &str, name: &str) -> Option<EmState> {
    if !(name.starts_with("ps") || name.starts_with("cs")) {
        return None;
    }
    let number = |f: &str| root.number(&format!("{dir}/{name}/{f}")).map(|f| f.value);
    Some(EmState {
        freq_khz: number("frequency")?,
        power: number("power")?,
        inefficient: number("inefficient").is_some_and(|v| v != 0),
    })
}
