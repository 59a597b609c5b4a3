//! Every key of a platform file: what it takes, what it means, where that meaning is from.
//!
//! The readers ask this table which keys there may be ([`names`]), docs/platform-file.md is made of it, and a test
//! gives each key a value that is wrong: a key that nobody reads, or with other bounds, fails there.

use super::HZ;
use super::bounds::{
    MAX_C, MAX_CPUS, MAX_DELAY_MS, MAX_IDLE_US, MAX_K, MAX_KHZ, MAX_LATENCY_NS, MAX_MILLICELSIUS,
    MAX_MJ_PER_K, MAX_MK_PER_W, MAX_MW, MAX_PPM, MAX_UV, MAX_UW,
};
use super::levels::{DRIVERS, MAX_LEVEL};
use risetime_kernel::units::SCHED_CAPACITY_SCALE;

/// A table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Name: where in the file it stands; empty: the top.
    pub name: &'static str,
    /// Description for a reader: what the table is about.
    pub about: &'static str,
    /// Keys of the table.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Values that it takes.
    pub takes: Takes,
    /// Meaning of a file that lacks the key.
    pub absent: Absent,
    /// Meaning of the value.
    pub doc: &'static str,
    /// Origin of the meaning: what has the figure on a real system.
    pub source: &'static str,
}

/// Values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A whole number within bounds, in a unit (empty: a plain number).
    Int(u64, u64, &'static str),
    /// `true` or `false`.
    Bool,
    /// Text of this form.
    Text(&'static str),
    /// A word of this list.
    Word(&'static [&'static str]),
    /// A list of whole numbers within bounds, in a unit.
    Ints(u64, u64, &'static str),
    /// A table, or a list of tables, which is the section of this name.
    Table(&'static str),
    /// Groups of CPUs: a list of lists, or a rule ([`RULE`]).
    Groups,
    /// Rows of whole numbers within bounds.
    Matrix(u64, u64),
}

/// Meaning of a file that lacks a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// An error.
    Wrong,
    /// A meaning, in words.
    Means(&'static str),
}

use Absent::{Means, Wrong};
use Takes::{Bool, Groups, Int, Ints, Matrix, Table, Text, Word};

const fn key(
    name: &'static str,
    takes: Takes,
    absent: Absent,
    doc: &'static str,
    source: &'static str,
) -> Key {
    Key { name, takes, absent, doc, source }
}

/// The CPU lists of the file.
const CPUS: Takes = Text("CPUs, such as `0-3,6`");
/// Names in the file.
const NAME: Takes = Text("1 to 64 characters without spaces, `+`, `=`, `,` and slashes");
/// Name of the section of a rule for groups of CPUs.
pub const RULE: &str = "topology rule";

/// All tables of the file.
pub const SECTIONS: [Section; 13] = [
    Section { name: "", about: "The machine.", keys: &ROOT },
    Section {
        name: "domain",
        about: "`[[domain]]`: CPUs of one clock, one cpufreq policy and one performance domain of the energy model; with `cpus_per_policy` several alike.",
        keys: &DOMAIN,
    },
    Section {
        name: "domain.opp",
        about: "`opp = [ { … } ]`: an operating point, frequencies ascending, boosts last.",
        keys: &OPP,
    },
    Section {
        name: "domain.opp_range",
        about: "`opp_range = { … }`: every frequency of a driver that has no table. Without power.",
        keys: &RANGE,
    },
    Section {
        name: "domain.levels",
        about: "`levels = { … }`: performance levels of a driver that hands such to the hardware ([x86](x86.md)). Without power.",
        keys: &LEVELS,
    },
    Section {
        name: "domain.idle",
        about: "`idle = [ { … } ]`: a cpuidle state of each CPU, shallow to deep, at most 10.",
        keys: &IDLE,
    },
    Section {
        name: "domain.work",
        about: "`[[domain.work]]`: a kind of work that does not get on as capacity and frequency say; every domain has the same kinds ([task sets](task-sets.md)).",
        keys: &WORK,
    },
    Section {
        name: "topology",
        about: "`[topology]`: who shares what. A core lies in one `l2` group, that in one `llc`, that in one `node`.",
        keys: &TOPOLOGY,
    },
    Section {
        name: RULE,
        about: "A rule in place of a list of groups: `core = { cpus = \"0-255\", each = 2, stride = 128 }`.",
        keys: &GROUPS,
    },
    Section {
        name: "thermal",
        about: "`[[thermal]]`: a zone, which is one node of the thermal network with one sensor ([heat](thermal.md)).",
        keys: &THERMAL,
    },
    Section {
        name: "thermal.coupled",
        about: "`coupled = [ { … } ]`: another zone that heat flows to.",
        keys: &COUPLED,
    },
    Section { name: "thermal.trip", about: "`trip = [ { … } ]`: a trip point.", keys: &TRIP },
    Section {
        name: "sources",
        about: "`[sources]`: where figures come from, a text for each kind; any other key may be added. \"estimate\" is an honest answer.",
        keys: &SOURCES,
    },
];

const ROOT: [Key; 8] = [
    key("schema", Int(1, 1, ""), Wrong, "version of this form of file", "this page"),
    key(
        "name",
        NAME,
        Wrong,
        "name of the machine, for results; `NAME+hz=N` where it has another HZ than its own",
        "free",
    ),
    key("about", Text("one line"), Means("nothing is said"), "a line for `list platforms`", "free"),
    key(
        "hz",
        Int(HZ.0 as u64, HZ.1 as u64, "ticks per second"),
        Wrong,
        "`CONFIG_HZ` of its kernel",
        "/boot/config-*, /proc/config.gz",
    ),
    key("domain", Table("domain"), Wrong, "the CPUs, at least one table", "below"),
    key(
        "topology",
        Table("topology"),
        Means("one thread a core, no groups below the last level, one node"),
        "who shares cores, caches and nodes",
        "below",
    ),
    key("thermal", Table("thermal"), Means("heat is nobody's concern"), "thermal zones", "below"),
    key("sources", Table("sources"), Wrong, "where the figures come from", "below"),
];

const DOMAIN: [Key; 13] = [
    key(
        "cpus",
        CPUS,
        Wrong,
        "the CPUs; all domains together number them from 0 without gaps",
        "sysfs: policyN/related_cpus",
    ),
    key(
        "cpus_per_policy",
        Int(1, MAX_CPUS, "CPUs"),
        Means("all of `cpus`: one domain"),
        "so many CPUs change their frequency together: `cpus` is several domains alike",
        "sysfs: policyN/related_cpus",
    ),
    key(
        "cluster",
        Int(0, MAX_CPUS - 1, ""),
        Means("0"),
        "number of the last-level cache of these CPUs; in place of it `llc` of `[topology]`",
        "sysfs: cpuN/cache/index*/shared_cpu_list of the highest level; device tree: next-level-cache",
    ),
    key(
        "capacity",
        Int(1, SCHED_CAPACITY_SCALE, "of 1024"),
        Wrong,
        "capacity of a CPU at the highest OPP that is no boost; the biggest of the machine is 1024",
        "sysfs: cpuN/cpu_capacity; device tree: capacity-dmips-mhz · highest frequency (arch_topology.c:topology_normalize_cpu_scale)",
    ),
    key(
        "fast_switch",
        Bool,
        Means("`false`"),
        "whether the cpufreq driver changes the frequency in the governor's context; else schedutil's kthread does",
        "the driver: `fast_switch_possible`",
    ),
    key(
        "transition_delay_us",
        Int(1, u32::MAX as u64 / 1000, "µs"),
        Means("the kernel's rule from the latency"),
        "the driver's own delay between changes, schedutil's default rate limit",
        "the driver: `policy->transition_delay_us`",
    ),
    key(
        "energy_model",
        Bool,
        Means("`true`"),
        "whether the kernel is told the OPPs' power, if it is known; else it counts for the account of energy alone",
        "the driver: `register_em`; debugfs: energy_model",
    ),
    key(
        "dynamic_power_coefficient",
        Int(1, MAX_C, "µW/MHz/V²"),
        Means("power is written, or unknown"),
        "C, from which an OPP with `uv` has its power: ⌊C · ⌊uV/1000⌋² · ⌊kHz/1000⌋ / 10⁶⌋ µW",
        "device tree: dynamic-power-coefficient; drivers/opp/of.c",
    ),
    key(
        "opp",
        Table("domain.opp"),
        Means("`opp_range` or `levels`: one of them"),
        "operating points",
        "device tree: operating-points-v2",
    ),
    key(
        "opp_range",
        Table("domain.opp_range"),
        Means("`opp` or `levels`: one of them"),
        "frequencies without a table",
        "drivers such as cppc_cpufreq",
    ),
    key(
        "levels",
        Table("domain.levels"),
        Means("`opp` or `opp_range`: one of them"),
        "performance levels, where the hardware has the last word on the frequency",
        "the drivers intel_pstate and amd-pstate",
    ),
    key(
        "idle",
        Table("domain.idle"),
        Means("idle power is taken as 0"),
        "idle states",
        "sysfs: cpuN/cpuidle/stateM; device tree: cpu-idle-states",
    ),
    key(
        "work",
        Table("domain.work"),
        Means("plain work alone"),
        "speeds of other kinds of work",
        "measurements",
    ),
];

const OPP: [Key; 6] = [
    key(
        "freq_khz",
        Int(1, MAX_KHZ, "kHz"),
        Wrong,
        "frequency",
        "sysfs: scaling_available_frequencies; device tree: opp-hz",
    ),
    key(
        "power_uw",
        Int(0, MAX_UW, "µW"),
        Means("unknown, for all OPPs of the domain: EAS is off, energies absent"),
        "power of one CPU at full load; of all OPPs of a domain or of none",
        "debugfs: energy_model/cpuN/ps:*/power; device tree: opp-microwatt",
    ),
    key(
        "uv",
        Int(1, MAX_UV, "µV"),
        Means("power is written, or unknown"),
        "voltage, in place of `power_uw`, beside `dynamic_power_coefficient`",
        "device tree: opp-microvolt",
    ),
    key(
        "latency_ns",
        Int(0, MAX_LATENCY_NS, "ns"),
        Means("0"),
        "time that a change to this OPP takes; the largest is `cpuinfo_transition_latency`",
        "sysfs: cpuinfo_transition_latency; device tree: clock-latency-ns",
    ),
    key(
        "turbo",
        Bool,
        Means("`false`"),
        "there only while `boost` is on; at the end of the list, and never the lowest",
        "device tree: turbo-mode; sysfs: scaling_boost_frequencies",
    ),
    key(
        "capacity",
        Int(1, 2 * SCHED_CAPACITY_SCALE, "of 1024"),
        Means("in proportion to the frequency"),
        "capacity of a CPU at this OPP; of all OPPs of a domain or of none",
        "the energy model of Linux 4.4 (capacity states)",
    ),
];

const LEVELS: [Key; 9] = [
    key(
        "scaling_driver",
        Word(&DRIVERS),
        Wrong,
        "the driver, the same in all domains",
        "sysfs: policyN/scaling_driver (intel_cpufreq is intel_pstate in passive mode)",
    ),
    key(
        "hwp",
        Bool,
        Means("`true`"),
        "of intel_pstate: whether the CPUs have hardware P-states",
        "/proc/cpuinfo: flag hwp",
    ),
    key(
        "highest",
        Int(1, MAX_LEVEL, ""),
        Wrong,
        "highest level, with boost",
        "sysfs: amd_pstate_highest_perf; MSR_HWP_CAPABILITIES; without HWP the turbo ratio",
    ),
    key(
        "nominal",
        Int(1, MAX_LEVEL, ""),
        Wrong,
        "highest level that can be kept up",
        "sysfs: acpi_cppc/nominal_perf; MSR_HWP_CAPABILITIES (guaranteed); without HWP the base ratio",
    ),
    key(
        "lowest_nonlinear",
        Int(1, MAX_LEVEL, ""),
        Means("`lowest`"),
        "level below which a lower frequency saves little; of amd-pstate",
        "sysfs: acpi_cppc/lowest_nonlinear_perf",
    ),
    key("lowest", Int(1, MAX_LEVEL, ""), Wrong, "lowest level", "sysfs: acpi_cppc/lowest_perf"),
    key(
        "nominal_khz",
        Int(1, MAX_KHZ, "kHz"),
        Wrong,
        "frequency of `nominal`; of intel_pstate a multiple of it",
        "sysfs: acpi_cppc/nominal_freq; intel_pstate.c: nominal · scaling",
    ),
    key(
        "base_khz",
        Int(1, MAX_KHZ, "kHz"),
        Means("`nominal_khz`"),
        "frequency at which MPERF counts, with which the kernel measures speed",
        "sysfs: base_frequency",
    ),
    key(
        "latency_ns",
        Int(0, MAX_LATENCY_NS, "ns"),
        Means("0"),
        "time that a change takes, as the driver says",
        "sysfs: cpuinfo_transition_latency",
    ),
];

const RANGE: [Key; 4] = [
    key("min_khz", Int(1, MAX_KHZ, "kHz"), Wrong, "lowest frequency", "sysfs: cpuinfo_min_freq"),
    key(
        "max_khz",
        Int(1, MAX_KHZ, "kHz"),
        Wrong,
        "highest frequency, at least `min_khz`",
        "sysfs: cpuinfo_max_freq",
    ),
    key(
        "step_khz",
        Int(1, MAX_KHZ, "kHz"),
        Wrong,
        "distance between two; at most 256 frequencies",
        "the driver: a level of its performance scale",
    ),
    key(
        "latency_ns",
        Int(0, MAX_LATENCY_NS, "ns"),
        Means("0"),
        "time that a change takes",
        "sysfs: cpuinfo_transition_latency",
    ),
];

const IDLE: [Key; 8] = [
    key("name", NAME, Wrong, "name of the state", "sysfs: stateM/name"),
    key(
        "entry_latency_us",
        Int(0, MAX_IDLE_US, "µs"),
        Means("0"),
        "time to enter the state, which a wakeup cannot cut short",
        "device tree: entry-latency-us",
    ),
    key(
        "exit_latency_us",
        Int(0, MAX_IDLE_US, "µs"),
        Wrong,
        "time to leave the state, the longest one where it varies",
        "device tree: exit-latency-us; sysfs: stateM/latency, which has the entry in it",
    ),
    key(
        "exit_least_us",
        Int(0, MAX_IDLE_US, "µs"),
        Means("the exit does not vary"),
        "shortest time to leave it, at most `exit_latency_us`; runs take the longest, and say so",
        "measurements",
    ),
    key(
        "wakeup_latency_us",
        Int(0, MAX_IDLE_US, "µs"),
        Means("entry and exit together"),
        "longest time from a wakeup until the CPU runs again, at least `exit_latency_us`: what governors see",
        "device tree: wakeup-latency-us",
    ),
    key(
        "min_residency_us",
        Int(0, MAX_IDLE_US, "µs"),
        Wrong,
        "shortest stay that pays off, not below that of the state before",
        "sysfs: stateM/residency; device tree: min-residency-us",
    ),
    key(
        "power_uw",
        Int(0, MAX_UW, "µW"),
        Means("0; unknown where the OPPs' power is"),
        "power of one CPU while in it",
        "measurements: no file has it",
    ),
    key(
        "together",
        Word(&["domain", "llc"]),
        Means("each CPU for itself"),
        "CPUs that all have to ask for the state, or a deeper one, before one is in it; not of the shallowest state",
        "device tree: domain-idle-states, or a state of the cluster",
    ),
];

const WORK: [Key; 3] = [
    key("kind", NAME, Wrong, "name, as a workload's `kind` has it", "free"),
    key(
        "speed_ppm",
        Ints(1, MAX_PPM, "10⁻⁶"),
        Wrong,
        "work per time at each OPP, of what the machine's fastest CPU does of it",
        "measurements",
    ),
    key(
        "power_uw",
        Ints(1, MAX_UW, "µW"),
        Means("that of plain work"),
        "power of a CPU that does nothing else, at each OPP",
        "measurements",
    ),
];

const TOPOLOGY: [Key; 5] = [
    key(
        "core",
        Groups,
        Means("each CPU is a core"),
        "hardware threads of a core, at most 8; how fast one is beside the others: the setting `smt_speed`",
        "sysfs: topology/thread_siblings_list",
    ),
    key(
        "l2",
        Groups,
        Means("no such level"),
        "CPUs around a closer cache: the kernel's level CLS",
        "sysfs: topology/cluster_cpus_list; device tree: leaf clusters of cpu-map",
    ),
    key(
        "llc",
        Groups,
        Means("`cluster` of the domains"),
        "CPUs of each last-level cache; all CPUs are in one",
        "sysfs: cache/index*/shared_cpu_list of the highest level",
    ),
    key(
        "node",
        Groups,
        Means("one node"),
        "CPUs of each NUMA node; all CPUs are in one",
        "sysfs: node/nodeN/cpulist",
    ),
    key(
        "distance",
        Matrix(10, 254),
        Means("10 within a node, 20 between two"),
        "`node_distance`, a row for each node, 10 on the diagonal, symmetric",
        "sysfs: node/nodeN/distance; ACPI SLIT",
    ),
];

const GROUPS: [Key; 3] = [
    key("cpus", CPUS, Wrong, "the CPUs that are divided", "-"),
    key("each", Int(1, 1024, "CPUs"), Wrong, "size of each group", "-"),
    key(
        "stride",
        Int(1, 1023, ""),
        Means("the next ones in the list"),
        "distance between the numbers of a group",
        "-",
    ),
];

const THERMAL: [Key; 16] = [
    key("name", NAME, Wrong, "name of the zone", "sysfs: thermal_zoneN/type"),
    key(
        "heated_by",
        Text("CPUs, or `all`"),
        Means("no CPUs"),
        "CPUs whose power goes there, each in one zone at most; their power is known",
        "measurements",
    ),
    key(
        "ambient_millicelsius",
        Int(0, MAX_MILLICELSIUS, "m°C"),
        Wrong,
        "temperature of the surroundings",
        "measurements",
    ),
    key(
        "resistance_mk_per_w",
        Int(1, MAX_MK_PER_W, "mK/W"),
        Wrong,
        "thermal resistance to the surroundings",
        "measurements",
    ),
    key(
        "capacitance_mj_per_k",
        Int(1, MAX_MJ_PER_K, "mJ/K"),
        Wrong,
        "thermal capacitance; with all resistances a time constant that is not too short",
        "measurements",
    ),
    key("coupled", Table("thermal.coupled"), Means("no other zone"), "zones beside it", "below"),
    key(
        "polling_delay_passive_ms",
        Int(1, MAX_DELAY_MS, "ms"),
        Wrong,
        "time between two looks while a passive trip is crossed",
        "device tree: polling-delay-passive",
    ),
    key(
        "polling_delay_ms",
        Int(1, MAX_DELAY_MS, "ms"),
        Wrong,
        "time between two looks, else",
        "device tree: polling-delay",
    ),
    key("trip", Table("thermal.trip"), Means("none"), "trip points", "below"),
    key(
        "governor",
        Word(&["step_wise", "power_allocator"]),
        Means("`step_wise`"),
        "thermal governor",
        "sysfs: thermal_zoneN/policy",
    ),
    key(
        "sustainable_power_mw",
        Int(1, MAX_MW, "mW"),
        Means("an error with `power_allocator`"),
        "power that can be kept up; this and the next four are of `power_allocator` alone",
        "device tree: sustainable-power",
    ),
    key(
        "k_po",
        Int(0, MAX_K, "1/1024 mW/m°C"),
        Means("the kernel's estimate"),
        "factor of an overshoot",
        "sysfs: thermal_zoneN/k_po",
    ),
    key(
        "k_pu",
        Int(0, MAX_K, "1/1024 mW/m°C"),
        Means("the kernel's estimate"),
        "factor below the control temperature",
        "sysfs: thermal_zoneN/k_pu",
    ),
    key(
        "k_i",
        Int(0, MAX_K, "1/1024 mW/m°C"),
        Means("the kernel's estimate"),
        "factor of the sum of errors",
        "sysfs: thermal_zoneN/k_i",
    ),
    key(
        "integral_cutoff_millicelsius",
        Int(0, MAX_MILLICELSIUS, "m°C"),
        Means("0"),
        "distance below which errors are summed up",
        "sysfs: thermal_zoneN/integral_cutoff",
    ),
    key(
        "cools",
        Text("CPUs, or `all`"),
        Means("no CPUs"),
        "CPUs whose frequency the zone caps, whole domains",
        "device tree: cooling-maps",
    ),
];

const COUPLED: [Key; 2] = [
    key("zone", NAME, Wrong, "name of the other zone; each pair at one of the two", "-"),
    key(
        "resistance_mk_per_w",
        Int(1, MAX_MK_PER_W, "mK/W"),
        Wrong,
        "thermal resistance between both",
        "measurements",
    ),
];

const TRIP: [Key; 3] = [
    key(
        "type",
        Word(&["passive", "critical"]),
        Wrong,
        "what happens there: cooling begins, or the machine is powered off",
        "device tree: type",
    ),
    key(
        "temp_millicelsius",
        Int(1, MAX_MILLICELSIUS, "m°C"),
        Wrong,
        "temperature of the trip",
        "device tree: temperature",
    ),
    key(
        "hysteresis_millicelsius",
        Int(0, MAX_MILLICELSIUS, "m°C"),
        Means("0"),
        "so far below it ends; at most the temperature",
        "device tree: hysteresis",
    ),
];

const SOURCES: [Key; 6] = [
    key("capacity", Text("a source"), Wrong, "of capacities", "-"),
    key("opp", Text("a source"), Wrong, "of frequencies, power and latencies", "-"),
    key("hz", Text("a source"), Means("`check` asks for it"), "of `hz`", "-"),
    key("idle", Text("a source"), Means("`check` asks for it"), "of idle states", "-"),
    key(
        "work",
        Text("a source"),
        Means("an error where there are kinds of work"),
        "of kinds of work",
        "-",
    ),
    key(
        "thermal",
        Text("a source"),
        Means("an error where there are zones"),
        "of thermal zones",
        "-",
    ),
];

/// The names of the keys that the table `section` may have.
pub(super) fn names(section: &str) -> Vec<&'static str> {
    let found = SECTIONS.iter().filter(|s| s.name == section);
    found.flat_map(|s| s.keys).map(|key| key.name).collect()
}

#[cfg(test)]
mod tests;
