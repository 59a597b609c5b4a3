//! A platform file of this machine, from what the machine says about itself.
//!
//! ```text
//! domain     = the CPUs of a cpufreq policy that share capacity and last-level cache
//! frequency  = the energy model's, else the driver's table, else min/base/max (estimate),
//!              else, without cpufreq, `cpu MHz` of /proc/cpuinfo (estimate)
//! power      = the energy model's, if it counts in watts; else left out: energies are then 0
//!              and EAS is off, as it is on this machine
//! topology   = threads of a core, CPUs around an L2, nodes ([`topology`])
//! ```
//!
//! Nothing is invented: what the machine does not say is left out and named, and a figure
//! that is derived says `estimate`.
//!
//! Left out: CPUs that are offline, frequency limits and every other setting (they belong
//! to a policy, not to a machine), power in idle states (no file has it).

mod topology;

use crate::probe::{Cpu, CpufreqPolicy, ETERNAL, Machine};
use crate::root::{Fact, Root, format_cpu_list};
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, Span};
use risetime_model::Platform;
use risetime_model::platform::{Domain, Driver, IdleState, Levels, Opp};
use std::collections::{BTreeMap, BTreeSet};

/// Result of [`capture`].
#[derive(Clone, Debug)]
pub struct Captured {
    /// The platform file, with a comment for everything missing or estimated.
    pub platform_toml: String,
    /// The platform that the file describes; `None` if too much is missing: then the file says what to
    /// fill in before it loads.
    pub platform: Option<Platform>,
    /// Facts that could not be found out, one line each, the gravest first.
    pub missing: Vec<String>,
    /// Facts that were derived instead of read, one line each.
    pub estimates: Vec<String>,
}

/// Describes the machine under `root`. Never fails: a machine that says nothing gives a file
/// with gaps, and the list of them.
pub fn capture(root: &Root) -> Captured {
    Captured::of(&Machine::probe(root))
}

/// Facts about a machine, before anything is said of what is missing from a whole platform.
pub(crate) struct Gathered {
    /// The platform with gaps: HZ 0 where it is not known, no OPPs where there is no frequency.
    pub(crate) platform: Platform,
    /// Kind of figure to the sources of its parts.
    pub(crate) sources: BTreeMap<&'static str, BTreeSet<String>>,
    /// Facts that could not be found out, one line each.
    pub(crate) missing: Vec<String>,
    /// Facts that were derived, one line each.
    pub(crate) estimates: Vec<String>,
}

/// Gathers what `machine` says of itself.
pub(crate) fn gather(machine: &Machine) -> Gathered {
    let mut draft = Draft::new(machine);
    let platform = draft.platform();
    let Draft { sources, missing, estimates, .. } = draft;
    Gathered { platform, sources, missing, estimates }
}

impl Captured {
    /// Describes a machine that has been probed already.
    pub fn of(machine: &Machine) -> Captured {
        let mut draft = Draft::new(machine);
        let platform = draft.platform();
        draft.finish(platform)
    }
}

/// The figures of one domain's OPPs: frequency, and power in µW if known.
type Points = Vec<(u64, Option<u64>)>;

struct Draft<'a> {
    machine: &'a Machine,
    missing: Vec<String>,
    estimates: Vec<String>,
    /// Kind of figure to the sources of its parts.
    sources: BTreeMap<&'static str, BTreeSet<String>>,
}

impl<'a> Draft<'a> {
    fn new(machine: &'a Machine) -> Draft<'a> {
        let sources = BTreeMap::new();
        Draft { machine, missing: Vec::new(), estimates: Vec::new(), sources }
    }
}

impl Draft<'_> {
    /// The platform with gaps: HZ 0 if it is not known, no OPPs where there is no frequency.
    fn platform(&mut self) -> Platform {
        let m = self.machine;
        if m.cpus.is_empty() {
            self.missing.push("CPUs: no file says which there are".to_owned());
        }
        let groups = self.groups();
        let mut caches: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        groups.iter().for_each(|g| caches.entry(g.cluster).or_default().extend(&g.cpus));
        let topology = self.topology(&caches.into_values().collect());
        let domains: Vec<Domain> = groups.iter().map(|g| self.domain(g)).collect();
        let hz = match &m.hz {
            Some(hz) => {
                self.source("hz", &hz.file);
                hz.value
            }
            None => {
                self.missing.push(
                    "hz: neither /proc/config.gz nor a configuration file of this kernel could be read".to_owned(),
                );
                0
            }
        };
        self.missing.extend(m.problems.iter().map(|p| format!("not read: {}", p.line())));
        let product = m.model.as_ref().map_or("", |f| f.value.as_str());
        let kernel = m.release.as_ref().map_or("unknown kernel", |f| f.value.as_str());
        let about = format!(
            "{} (captured under Linux {kernel})",
            if product.is_empty() { "this machine" } else { product }
        );
        Platform {
            name: file_name(product),
            about,
            hz,
            domains,
            topology,
            thermal: Vec::new(),
            sources: BTreeMap::new(),
            doubts: Vec::new(),
        }
    }

    /// The CPUs of each domain with their policy. A policy whose CPUs differ in capacity or
    /// cache is split, because a platform's domain has one of each.
    fn groups(&mut self) -> Vec<Group> {
        let m = self.machine;
        let clusters = self.clusters();
        let mut groups: BTreeMap<(Option<usize>, u64, u32), Vec<u32>> = BTreeMap::new();
        for cpu in &m.cpus {
            let policy = m.policies.iter().position(|p| p.cpus.contains(&cpu.id));
            groups.entry((policy, m.capacity(cpu.id), clusters[&cpu.id])).or_default().push(cpu.id);
        }
        for (i, policy) in m.policies.iter().enumerate() {
            if groups.keys().filter(|k| k.0 == Some(i)).count() > 1 {
                self.missing.push(format!(
                    "{}: one clock for CPUs {} of different capacity or cache; the file has a domain for each kind, which change frequency independently",
                    policy.dir, format_cpu_list(&policy.cpus)
                ));
            }
        }
        let mut groups: Vec<Group> = groups
            .into_iter()
            .map(|((policy, capacity, cluster), cpus)| Group { policy, capacity, cluster, cpus })
            .collect();
        groups.sort_by_key(|g| g.cpus[0]);
        self.about_capacity();
        self.about_numbers();
        groups
    }

    /// Numbers the last-level-cache cluster of every online CPU by its lowest CPU. Without cache
    /// files the socket stands in.
    fn clusters(&mut self) -> BTreeMap<u32, u32> {
        let m = self.machine;
        let by_cache = m.cpus.iter().all(|c| c.llc.is_some());
        let by_socket = m.cpus.iter().all(|c| c.package.is_some());
        let key = |c: &Cpu| match (&c.llc, &c.package) {
            (Some(llc), _) if by_cache => llc.value.first().copied().unwrap_or(c.id),
            (_, Some(package)) if by_socket => package.value as u32,
            _ => 0,
        };
        match (by_cache, by_socket) {
            _ if m.cpus.is_empty() => {}
            (true, _) => {
                self.source("cluster", "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list")
            }
            (false, true) => {
                self.estimate("cluster", "cluster: no cache files; CPUs of a socket (cpu*/topology/physical_package_id) are taken to share a cache");
            }
            _ => self.estimate(
                "cluster",
                "cluster: neither cache nor socket files; all CPUs are taken to share a cache",
            ),
        }
        let mut names: Vec<u32> = m.cpus.iter().map(key).collect();
        let keys = names.clone();
        let mut seen = BTreeSet::new();
        names.retain(|n| seen.insert(*n));
        let number = |k: &u32| names.iter().position(|n| n == k).unwrap_or(0) as u32;
        m.cpus.iter().zip(&keys).map(|(c, k)| (c.id, number(k))).collect()
    }

    fn about_capacity(&mut self) {
        let m = self.machine;
        let known = m.cpus.iter().filter(|c| c.capacity.is_some()).count();
        if known > 0 {
            self.source("capacity", "/sys/devices/system/cpu/cpu*/cpu_capacity");
        }
        if known < m.cpus.len() {
            self.source("capacity", "1024 where there is no cpu_capacity: the kernel takes that for every CPU whose architecture gives no figure");
        }
    }

    /// Says which CPUs are left out, and under which numbers the others stand in the file.
    fn about_numbers(&mut self) {
        let m = self.machine;
        let online: Vec<u32> = m.cpus.iter().map(|c| c.id).collect();
        if let Some(possible) = &m.possible {
            let gone: Vec<u32> =
                possible.value.iter().copied().filter(|c| !online.contains(c)).collect();
            if !gone.is_empty() {
                self.missing.push(format!(
                    "CPUs {}: offline or not there now ({}), so nothing can be read about them",
                    format_cpu_list(&gone),
                    possible.file
                ));
            }
        }
        if online.iter().enumerate().any(|(i, &c)| i as u32 != c) {
            self.estimates.push(format!(
                "numbers: a platform's CPUs are numbered without gaps; CPUs 0-{} of the file are CPUs {} of the machine",
                online.len() - 1, format_cpu_list(&online)
            ));
        }
    }

    fn domain(&mut self, group: &Group) -> Domain {
        let m = self.machine;
        let policy = group.policy.map(|i| &m.policies[i]);
        let levels = policy.and_then(|p| self.levels(p));
        let points = match (policy, levels) {
            (_, Some(l)) => (l.lowest..=l.highest).map(|n| (l.freq(n).0, None)).collect(),
            (Some(p), None) => self.points_of_policy(p),
            (None, None) => self.point_of_cpuinfo(&group.cpus),
        };
        let latency = match levels {
            // What both drivers say in passive mode; in active mode there is no figure.
            Some(_) => 20_000,
            None => policy.map_or(0, |p| self.latency_ns(p)),
        };
        let opps = points
            .iter()
            .map(|&(khz, power)| Opp::new(KHz(khz), MicroWatts(power.unwrap_or(0)), Span(latency)));
        let number = |id: &u32| m.cpus.iter().position(|c| c.id == *id).unwrap_or(0) as u32;
        Domain {
            cpus: group.cpus.iter().map(|id| CpuId(number(id))).collect(),
            cluster: group.cluster,
            capacity: Capacity(group.capacity),
            fast_switch: policy.is_some_and(|p| self.fast_switch(p)),
            transition_delay_us: policy.and_then(|p| self.transition_delay(p)),
            energy_model: true,
            opps: opps.collect(),
            levels,
            idle: self.idle(group.cpus[0]),
            work: Vec::new(),
        }
    }

    /// The performance levels of a policy whose driver hands such to the hardware; `None`: it has another driver, or they
    /// are not known.
    fn levels(&mut self, p: &CpufreqPolicy) -> Option<Levels> {
        let known = |p: &CpufreqPolicy| {
            let levels = match p.driver_name() {
                "amd-pstate" | "amd-pstate-epp" => levels_of_cppc(p),
                "intel_pstate" | "intel_cpufreq" => self.levels_of_ratios(p),
                _ => None,
            };
            let one = p.cpus.len() + p.offline.len() == 1;
            levels.filter(|l| one && fits(l, p))
        };
        // One driver has all policies: without the levels of one there are none.
        let all = self.machine.policies.iter().all(|p| known(p).is_some());
        let hands = p.driver_name().contains("pstate") || p.driver_name() == "intel_cpufreq";
        let Some(levels) = known(p).filter(|_| all) else {
            if hands {
                let text = format!(
                    "levels: those of driver {} are not known, so the machine is taken for one that does what its governor asks; by hand: docs/x86.md",
                    p.driver_name()
                );
                self.estimate("levels", &text);
            }
            return None;
        };
        let files = match levels.driver {
            Driver::AmdPstate => {
                "amd_pstate_highest_perf and /sys/devices/system/cpu/cpu*/acpi_cppc"
            }
            Driver::IntelPstate => {
                "cpuinfo_min_freq, base_frequency and cpuinfo_max_freq, in steps of 100 MHz"
            }
        };
        self.source("opp", &format!("levels: {files}; 20 µs: the driver's C"));
        Some(levels)
    }

    /// Levels of intel_pstate where each is 100 MHz: not on hybrid processors, whose base frequencies differ.
    fn levels_of_ratios(&self, p: &CpufreqPolicy) -> Option<Levels> {
        let of = |f: &Option<Fact<u64>>| f.as_ref().map(|f| f.value);
        let base = of(&p.base)?;
        if self.machine.policies.iter().any(|other| of(&other.base) != Some(base)) {
            return None;
        }
        let ratio = |khz: u64| khz.is_multiple_of(100_000).then_some(khz / 100_000);
        let lowest = ratio(of(&p.hardware_min)?)?;
        Some(Levels {
            driver: Driver::IntelPstate,
            hwp: self.machine.cpu_flags.iter().any(|flag| flag == "hwp"),
            highest: ratio(of(&p.hardware_max)?)?,
            nominal: ratio(base)?,
            lowest_nonlinear: lowest,
            lowest,
            nominal_freq: KHz(base),
            base_freq: KHz(base),
        })
    }

    fn points_of_policy(&mut self, p: &CpufreqPolicy) -> Points {
        let max = p.hardware_max.as_ref().map_or(u64::MAX, |f| f.value);
        if let Some(points) = self.points_of_energy_model(p, max) {
            return points;
        }
        let table: BTreeSet<u64> =
            p.freqs.iter().chain(p.boost_freqs.iter().filter(|f| **f <= max)).copied().collect();
        if !table.is_empty() {
            self.source(
                "opp",
                &format!("frequencies: {}/scaling_available_frequencies", policy_dirs()),
            );
            return table.into_iter().map(|f| (f, None)).collect();
        }
        let some: BTreeSet<u64> = [&p.hardware_min, &p.lowest_nonlinear, &p.base, &p.hardware_max]
            .into_iter()
            .filter_map(|f| f.as_ref().map(|f| f.value))
            .collect();
        if some.is_empty() {
            self.missing.push(format!("{}: no frequencies at all", p.dir));
        } else {
            let text = "frequencies: the driver has no table; only its lowest, base and highest (cpuinfo_min_freq, base_frequency, amd_pstate_lowest_nonlinear_freq, cpuinfo_max_freq), while the hardware has steps between them";
            self.estimate("opp", text);
        }
        some.into_iter().map(|f| (f, None)).collect()
    }

    /// Frequencies and power of the energy model; `None` if it does not cover the policy or
    /// does not count in watts.
    fn points_of_energy_model(&mut self, p: &CpufreqPolicy, max: u64) -> Option<Points> {
        let Some(domain) = self.machine.energy.iter().find(|d| d.cpus.contains(&p.cpus[0])) else {
            self.no_power("power: no energy model in /sys/kernel/debug/energy_model");
            return None;
        };
        let Some(unit) = domain.microwatts_per_unit else {
            self.no_power(&format!(
                "power: the energy model in {} counts in no physical unit",
                domain.dir
            ));
            return None;
        };
        let states = domain.states.iter().filter(|s| s.freq_khz > 0 && s.freq_khz <= max);
        let points: BTreeMap<u64, Option<u64>> =
            states.map(|s| (s.freq_khz, Some(s.power.saturating_mul(unit)))).collect();
        let without: Vec<String> =
            p.freqs.iter().filter(|f| !points.contains_key(f)).map(u64::to_string).collect();
        if !without.is_empty() {
            self.missing.push(format!(
                "{}: {} kHz are in the driver's table but not in the energy model: left out",
                p.dir,
                without.join(", ")
            ));
        }
        self.source("opp", "frequencies and power: /sys/kernel/debug/energy_model/cpu*/ps:*");
        Some(points.into_iter().collect()).filter(|p: &Points| !p.is_empty())
    }

    /// The only point of a CPU without cpufreq: one frequency, if `/proc/cpuinfo` has one.
    fn point_of_cpuinfo(&mut self, cpus: &[u32]) -> Points {
        let m = self.machine;
        self.no_power("power: no cpufreq, no energy model");
        let khz =
            m.cpus.iter().filter(|c| cpus.contains(&c.id)).filter_map(|c| c.cpuinfo_khz.as_ref());
        let Some(khz) = khz.map(|f| f.value).max() else {
            self.missing.push(format!(
                "frequencies of CPUs {}: no cpufreq policy, and /proc/cpuinfo has no `cpu MHz`: what the CPU's speed is, and whether it changes, cannot be known from here",
                format_cpu_list(cpus)
            ));
            return Vec::new();
        };
        let host = if m.virtual_machine.is_some() {
            "; the host may change the real one without this system seeing it"
        } else {
            ""
        };
        self.missing.push(format!(
            "frequencies of CPUs {}: no cpufreq policy{host}",
            format_cpu_list(cpus)
        ));
        self.estimate(
            "opp",
            "frequencies: no cpufreq; one fixed frequency, `cpu MHz` of /proc/cpuinfo",
        );
        vec![(khz, None)]
    }

    fn latency_ns(&mut self, p: &CpufreqPolicy) -> u64 {
        match &p.latency_ns {
            Some(f) if f.value < ETERNAL => {
                self.source("opp", &format!("latency: {}/cpuinfo_transition_latency, one figure for all OPPs of a policy", policy_dirs()));
                return f.value;
            }
            Some(f) => self.missing.push(format!("{}: the driver does not know its transition latency (CPUFREQ_ETERNAL); 0 in the file", f.file)),
            None => self.missing.push(format!("{}/cpuinfo_transition_latency: not there; 0 in the file", p.dir)),
        }
        if let Some(limit) = &p.rate_limit_us {
            self.missing.push(format!(
                "schedutil's default rate limit cannot be derived from this file; the machine has {} us ({}): simulate with --set rate_limit_us={}",
                limit.value, limit.file, limit.value
            ));
        }
        0
    }

    /// Whether the driver switches in the governor's context: no file says it, but a policy
    /// that cannot has a kthread while schedutil runs.
    fn fast_switch(&mut self, p: &CpufreqPolicy) -> bool {
        let first = p.cpus.iter().chain(&p.offline).min();
        if let (Some(threads), "schedutil", Some(first)) =
            (&self.machine.sugov_threads, p.governor_name(), first)
        {
            self.source(
                "fast_switch",
                "whether there is a kthread sugov:N of the policy while schedutil runs",
            );
            return !threads.contains(first);
        }
        let known = match p.driver_name() {
            "cpufreq-dt" | "scpi-cpufreq" | "tegra194" | "exynos_cpufreq" => Some(false),
            "apple-cpufreq" | "intel_cpufreq" | "intel_pstate" => Some(true),
            // By MSR, else through shared memory.
            "amd-pstate-epp" => Some(self.machine.cpu_flags.iter().any(|flag| flag == "cppc")),
            _ => None,
        };
        match known {
            Some(_) => self.source("fast_switch", &format!("what driver {} does", p.driver_name())),
            None => {
                let text = format!(
                    "fast_switch: not known of driver {}; schedutil is not running, whose kthreads would tell",
                    or_unknown(p.driver_name())
                );
                self.estimate("fast_switch", &text);
            }
        }
        known.unwrap_or(false)
    }

    /// The driver's own delay between frequency changes, where schedutil shows it and the
    /// driver is one that has it.
    fn transition_delay(&mut self, p: &CpufreqPolicy) -> Option<u32> {
        let limit = p.rate_limit_us.as_ref()?;
        if !matches!(p.driver_name(), "intel_cpufreq" | "amd-pstate" | "amd-pstate-epp") {
            return None;
        }
        self.source(
            "transition_delay_us",
            &format!(
                "rate_limit_us as it stands now ({}); drivers {} set their own default",
                limit.file,
                p.driver_name()
            ),
        );
        u32::try_from(limit.value).ok().filter(|us| (1..=4_000_000).contains(us))
    }

    /// Lists the idle states of `cpu`, except polling, which is no idle state to save power in.
    fn idle(&mut self, cpu: u32) -> Vec<IdleState> {
        let Some(cpu) = self.machine.cpus.iter().find(|c| c.id == cpu) else {
            return Vec::new();
        };
        let mut states: Vec<IdleState> = Vec::new();
        for s in cpu.idle.iter().filter(|s| s.name != "POLL") {
            if s.disabled {
                self.note_once(format!(
                    "idle: state {} is disabled on this machine: left out",
                    s.name
                ));
                continue;
            }
            let mut name = clean(&s.name);
            if states.iter().any(|o| o.name == name) {
                name = format!("{name}-{}", states.len());
            }
            let us = |us: u64| Span::from_us(us.min(1_000_000_000));
            let (exit, residency) = (us(s.exit_latency_us.value), us(s.min_residency_us));
            states.push(IdleState::new(&name, exit, residency, MicroWatts(0)));
        }
        states.sort_by_key(|s| s.min_residency);
        states.truncate(10);
        if states.is_empty() {
            self.note_once("idle: no cpuidle states".to_owned());
        } else {
            self.source("idle", "/sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,residency}; power unknown: 0");
            self.note_once("idle: power in idle states: no file has it; 0 in the file".to_owned());
        }
        states
    }

    fn no_power(&mut self, text: &str) {
        self.source("power", &format!("unknown: {}", text.trim_start_matches("power: ")));
        self.note_once(format!("{text}; left out: energies stay unknown and EAS off"));
    }

    fn source(&mut self, kind: &'static str, text: &str) {
        self.sources.entry(kind).or_default().insert(text.to_owned());
    }

    fn estimate(&mut self, kind: &'static str, text: &str) {
        let said = text.split_once(": ").map_or(text, |(_, t)| t);
        self.source(kind, &format!("estimate: {said}"));
        if !self.estimates.iter().any(|e| e == text) {
            self.estimates.push(text.to_owned());
        }
    }

    fn note_once(&mut self, text: String) {
        if !self.missing.contains(&text) {
            self.missing.push(text);
        }
    }

    /// Puts text and comments together, and tries whether the file loads.
    fn finish(mut self, mut platform: Platform) -> Captured {
        for kind in ["capacity", "opp"] {
            self.sources.entry(kind).or_insert_with(|| BTreeSet::from(["unknown".to_owned()]));
        }
        let text = |parts: &BTreeSet<String>| parts.iter().cloned().collect::<Vec<_>>().join("; ");
        platform.sources = self.sources.iter().map(|(k, v)| ((*k).to_owned(), text(v))).collect();
        let toml = platform.to_toml();
        let gaps = platform.hz == 0
            || platform.domains.is_empty()
            || platform.domains.iter().any(|d| d.opps.is_empty());
        let loaded = if gaps { None } else { Some(Platform::parse(&toml, "captured file")) };
        let platform = match loaded {
            Some(Err(e)) => {
                self.missing
                    .insert(0, format!("a platform that can be simulated: {} {}", e.place, e.what));
                None
            }
            Some(Ok(platform)) => Some(platform),
            None => None,
        };
        let mut out =
            String::from("# A platform file of Risetime, captured from a running machine.\n");
        if platform.is_none() {
            out.push_str("# NOT LOADABLE AS IT STANDS: fill in what is marked `= ?`, or what the first `missing` names.\n");
        }
        let one_line =
            |s: &str| s.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        out.extend(self.missing.iter().map(|t| format!("# missing: {}\n", one_line(t))));
        out.extend(self.estimates.iter().map(|t| format!("# estimate: {}\n", one_line(t))));
        out.push('\n');
        out.push_str(&if gaps { with_gaps(&toml) } else { toml });
        Captured { platform_toml: out, platform, missing: self.missing, estimates: self.estimates }
    }
}

struct Group {
    policy: Option<usize>,
    capacity: u64,
    cluster: u32,
    cpus: Vec<u32>,
}

/// Turns the placeholders of unknown values into comments, so that the file cannot be taken
/// for a whole one.
pub(crate) fn with_gaps(toml: &str) -> String {
    let toml = toml.replace("\nhz = 0\n", "\n# hz = ?\n");
    toml.replace("\nopp = [\n]\n", "\n# opp = [ { freq_khz = ?, latency_ns = ? } ]\n")
}

fn policy_dirs() -> &'static str {
    "/sys/devices/system/cpu/cpufreq/policy*"
}

fn or_unknown(name: &str) -> &str {
    if name.is_empty() { "(unknown)" } else { name }
}

/// Letters, digits and a few signs; everything else becomes `-`.
pub(crate) fn clean(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().take(40).map(|c| if good(c) { c } else { '-' }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// A product's name as a platform's: `Raspberry Pi 4 Model B` is `raspberry-pi-4-model-b`.
pub(crate) fn file_name(product: &str) -> String {
    let name = clean(&product.to_lowercase().replace("(r)", "").replace("(tm)", ""));
    let parts: Vec<&str> = name.split('-').filter(|p| !p.is_empty()).collect();
    if product.is_empty() || parts.is_empty() { "this-machine".to_owned() } else { parts.join("-") }
}

/// Levels of amd-pstate, as ACPI has them.
fn levels_of_cppc(p: &CpufreqPolicy) -> Option<Levels> {
    let cppc = p.cppc.as_ref()?;
    let nominal_freq = KHz(cppc.nominal_mhz * 1000);
    Some(Levels {
        driver: Driver::AmdPstate,
        hwp: true,
        highest: cppc.highest.value,
        nominal: cppc.nominal,
        lowest_nonlinear: cppc.lowest_nonlinear,
        lowest: cppc.lowest,
        nominal_freq,
        base_freq: nominal_freq,
    })
}

/// Whether the levels are in order, and their highest frequency is that of the hardware, to a hundredth.
fn fits(l: &Levels, p: &CpufreqPolicy) -> bool {
    let rising = [1, l.lowest, l.lowest_nonlinear, l.nominal, l.highest, 255];
    let max = p.hardware_max.as_ref().map_or(0, |f| f.value);
    rising.is_sorted() && l.nominal_freq.0 > 0 && l.freq(l.highest).0.abs_diff(max) <= max / 100
}
