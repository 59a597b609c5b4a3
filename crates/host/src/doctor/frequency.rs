//! Findings about frequency: who decides it, how fast it may change, and what caps it.

use super::{Evidence, Finding, Findings, Severity, climb_ms, cpus, duration, mhz, steps_of};
use crate::probe::{CpufreqPolicy, ETERNAL, Machine};
use crate::root::Fact;
use risetime_kernel::schedutil::cpufreq_policy_transition_delay_us;
use std::collections::BTreeMap;

pub(super) fn check(m: &Machine, all: &mut Findings) {
    if m.policies.is_empty() {
        no_cpufreq(m, all);
        return;
    }
    // Policies that say the same are one finding.
    for group in alike(m, |p| format!("{} {}", p.driver_name(), p.governor_name())) {
        governor(m, &group, all);
    }
    for group in
        alike(m, |p| format!("{:?} {:?}", p.rate_limit_us, p.latency_ns.as_ref().map(|f| f.value)))
    {
        rate_limit(m, &group, all);
    }
    for p in &m.policies {
        caps(p, all);
    }
    for group in alike(m, |p| format!("{:?}", p.epp.as_ref().map(|f| &f.value))) {
        preference(&group, all);
    }
    boost(m, all);
    cooling(m, all);
}

/// Policies grouped by what `key` says of them, in order of the lowest CPU.
fn alike(m: &Machine, key: impl Fn(&CpufreqPolicy) -> String) -> Vec<Vec<&CpufreqPolicy>> {
    let mut groups: BTreeMap<String, Vec<&CpufreqPolicy>> = BTreeMap::new();
    for p in &m.policies {
        groups.entry(key(p)).or_default().push(p);
    }
    let mut groups: Vec<Vec<&CpufreqPolicy>> = groups.into_values().collect();
    groups.sort_by_key(|g| g[0].cpus[0]);
    groups
}

fn cpus_of(group: &[&CpufreqPolicy]) -> String {
    let mut list: Vec<u32> = group.iter().flat_map(|p| p.cpus.iter().copied()).collect();
    list.sort_unstable();
    cpus(&list)
}

fn no_cpufreq(m: &Machine, all: &mut Findings) {
    let directory = Evidence {
        file: "/sys/devices/system/cpu/cpufreq".to_owned(),
        value: "no policy".to_owned(),
    };
    let (title, meaning, hint) = if m.virtual_machine.is_some() {
        (
            "virtual machine without cpufreq: the host decides the frequency",
            "no governor runs here. Every CPU counts as being at full speed whatever the host does, so util grows at the full rate (450 after about 28 ms of running, 1000 after about 182 ms) and a slow host shows only as work that takes longer",
            "measure frequency ramps on the host, or simulate: risetime run rampup --platform m1",
        )
    } else {
        (
            "no cpufreq driver: the firmware decides the frequency",
            "no governor runs here, util cannot ask for a frequency, and the kernel takes every CPU to be at full speed",
            "look for a driver: dmesg | grep -i -e cpufreq -e pstate -e cppc; firmware setup may hide it",
        )
    };
    let evidence =
        std::iter::once(directory).chain(m.virtual_machine.as_ref().map(Evidence::from)).collect();
    all.add(
        60,
        Finding {
            severity: Severity::Notable,
            title: title.to_owned(),
            evidence,
            meaning: meaning.to_owned(),
            hint: Some(hint.to_owned()),
        },
    );
}

/// A finding about a governor: how severe it is, the ms it costs, title, meaning, hint.
type Said = (Severity, u32, String, String, Option<String>);

fn governor(m: &Machine, group: &[&CpufreqPolicy], all: &mut Findings) {
    let p = group[0];
    let evidence: Vec<Evidence> =
        [&p.governor, &p.driver].into_iter().flatten().map(Evidence::from).collect();
    let range = match (&p.limit_min, &p.limit_max) {
        (Some(a), Some(b)) => format!("{} to {}", mhz(a.value), mhz(b.value)),
        _ => "unknown limits".to_owned(),
    };
    let (severity, ms, title, meaning, hint) = match p.governor_name() {
        _ if p.is_active_mode() => active_mode(m, p, &range),
        "schedutil" => return schedutil(m, group, evidence, all),
        name @ ("ondemand" | "conservative") => sampling(p, name),
        name => unsampled(p, name, &range),
    };
    let title = format!("{}: {title}", cpus_of(group));
    all.add(ms, Finding { severity, title, evidence, meaning, hint });
}

/// Describes a driver that leaves no governor a say.
fn active_mode(m: &Machine, p: &CpufreqPolicy, range: &str) -> Said {
    let hardware = p.driver_name() != "intel_pstate" || m.cpu_flags.iter().any(|f| f == "hwp");
    let who = if hardware {
        "the hardware chooses, steered by the energy preference"
    } else {
        "the driver samples every 10 ms"
    };
    let modelled = if hardware {
        "Simulated is how the hardware climbs, as a model with two ends by public measurements, never held to such hardware (docs/x86.md): a figure is a range. The driver's requests in passive and guided mode are exact"
    } else {
        "Simulated is that algorithm with the driver's own arithmetic; how soon the hardware follows is a model, never held to such hardware (docs/x86.md)"
    };
    let (driver, algorithm) = (p.driver_name(), p.governor_name());
    let title = format!("{driver} in active mode, algorithm `{algorithm}`");
    let meaning = format!(
        "no cpufreq governor runs and util asks for nothing: {who}, within {range}. `{algorithm}` is the driver's own algorithm, not the governor of that name. {modelled}"
    );
    let directory = if driver == "intel_pstate" { driver } else { "amd_pstate" };
    let switch = format!(
        "to compare with schedutil: echo passive | sudo tee /sys/devices/system/cpu/{directory}/status"
    );
    (Severity::Notable, 50, title, meaning, Some(switch))
}

fn with_driver(p: &CpufreqPolicy, what: &str) -> String {
    let driver = Some(p.driver_name()).filter(|name| !name.is_empty());
    format!("{what} (driver {})", driver.unwrap_or("unknown"))
}

/// Describes a governor that looks at idle time every so often.
fn sampling(p: &CpufreqPolicy, name: &str) -> Said {
    let sampling = p.sampling_rate_us.as_ref().map(|f| f.value);
    let every = sampling
        .map_or("at an unknown interval".to_owned(), |us| format!("every {}", duration(us)));
    let (steps, meaning) = if name == "ondemand" {
        (
            2,
            format!(
                "looks at the idle time {every} and jumps to the top when a CPU was busy for most of an interval: a burst waits one to two intervals; util, uclamp and energy-aware scheduling have no say"
            ),
        )
    } else {
        (
            20,
            format!(
                "looks at the idle time {every} and moves by 5 % of the range: from bottom to top takes about 20 intervals; util, uclamp and energy-aware scheduling have no say"
            ),
        )
    };
    let ms = (sampling.unwrap_or(10_000) * steps / 1000).min(60_000) as u32;
    let severity = if ms >= 40 { Severity::Costly } else { Severity::Notable };
    let title = with_driver(p, &format!("governor {name}"));
    (severity, ms, title, meaning, Some(to_schedutil(p)))
}

/// Describes any other governor: one with a fixed frequency, or one that is not known here.
fn unsampled(p: &CpufreqPolicy, name: &str, range: &str) -> Said {
    let title = with_driver(p, &format!("governor {name}"));
    match name {
        "performance" => {
            let meaning =
                format!("always at the upper limit, {range}: no time is lost in a ramp, energy is");
            (Severity::Fine, 0, title, meaning, None)
        }
        "powersave" => {
            let meaning = match (&p.limit_min, &p.hardware_max) {
                (Some(min), Some(max)) if min.value > 0 => format!(
                    "pinned at {} of {}: work takes {:.1} times as long as at full speed, and no load changes that",
                    mhz(min.value),
                    mhz(max.value),
                    max.value as f64 / min.value as f64
                ),
                _ => "pinned at the lowest frequency, whatever the load".to_owned(),
            };
            (Severity::Costly, 10_000, title, meaning, Some(to_schedutil(p)))
        }
        "userspace" => {
            let now =
                p.current.as_ref().map_or("an unknown frequency".to_owned(), |f| mhz(f.value));
            let meaning = format!("stays at {now} until some program writes another");
            (Severity::Notable, 1000, title, meaning, Some(to_schedutil(p)))
        }
        "" => {
            let meaning = "who decides the frequency could not be read".to_owned();
            (Severity::Unreadable, 20, "governor not known".to_owned(), meaning, None)
        }
        _ => {
            let meaning = format!(
                "not a governor of the mainline kernel: what it does within {range} is not known here"
            );
            (Severity::Notable, 20, title, meaning, None)
        }
    }
}

fn to_schedutil(p: &CpufreqPolicy) -> String {
    let there =
        p.governors.as_ref().is_none_or(|f| f.value.split_whitespace().any(|g| g == "schedutil"));
    if there {
        "echo schedutil | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
            .to_owned()
    } else {
        "schedutil is not among scaling_available_governors: load it (modprobe cpufreq_schedutil) or build it in".to_owned()
    }
}

/// Reports on schedutil by itself: how long the climb takes by PELT alone, on each kind of CPU.
fn schedutil(
    m: &Machine,
    group: &[&CpufreqPolicy],
    mut evidence: Vec<Evidence>,
    all: &mut Findings,
) {
    let mut kinds: BTreeMap<(u64, Vec<u64>), Vec<&CpufreqPolicy>> = BTreeMap::new();
    for p in group {
        kinds.entry((m.capacity(p.cpus[0]), steps_of(p))).or_default().push(p);
    }
    let (mut titles, mut sentences, mut worst) = (Vec::new(), Vec::new(), 0.0_f64);
    for ((capacity, steps), policies) in &kinds {
        let who = cpus_of(policies);
        let Some((lowest, whole)) = climb_ms(steps, *capacity) else {
            sentences.push(format!(
                "{who}: how long the climb takes is not known, as no two frequencies are"
            ));
            continue;
        };
        let (first, last) = (steps[0], steps[steps.len() - 1]);
        let rate = 100.0 * *capacity as f64 / 1024.0 * first as f64 / last as f64;
        worst = worst.max(whole);
        titles.push(format!("{whole:.0} ms on {who}"));
        sentences.push(format!(
            "{who}: about {lowest:.0} of {whole:.0} ms pass at {} before the first step, because a CPU of capacity {capacity} gathers util there at {rate:.0} % of the full rate",
            mhz(first)
        ));
        evidence.extend(
            [&policies[0].hardware_min, &policies[0].hardware_max]
                .into_iter()
                .flatten()
                .map(Evidence::from),
        );
    }
    let title = if titles.is_empty() {
        format!("{}: schedutil climbs with util", cpus_of(group))
    } else {
        format!("schedutil climbs with util: top frequency after {}", titles.join(", "))
    };
    let meaning = format!(
        "a task that turns busy from idle asks for the top frequency only when its util has grown to 80 % of the CPU's capacity (rate limit and ticks come on top). {}",
        sentences.join("; ")
    );
    let severity = if worst >= 100.0 { Severity::Costly } else { Severity::Notable };
    let hint = "uclamp_min on the thread that matters skips the climb; to see it: risetime capture > my.toml; risetime run rampup --platform my.toml";
    all.add(
        worst.clamp(20.0, 60_000.0) as u32,
        Finding { severity, title, evidence, meaning, hint: Some(hint.to_owned()) },
    );
}

/// Reports on schedutil's rate limit, against what this kernel would choose.
fn rate_limit(m: &Machine, group: &[&CpufreqPolicy], all: &mut Findings) {
    let p = group[0];
    let Some(limit) = &p.rate_limit_us else {
        if p.governor_name() == "schedutil" {
            all.add(
                10,
                Finding {
                    severity: Severity::Unreadable,
                    title: format!("{}: schedutil's rate limit not found", cpus_of(group)),
                    evidence: vec![Evidence {
                        file: format!("{}/schedutil/rate_limit_us", p.dir),
                        value: "not there, nor for all policies".to_owned(),
                    }],
                    meaning: "how often the frequency may change is not known".to_owned(),
                    hint: None,
                },
            );
        }
        return;
    };
    let mut evidence = vec![Evidence::from(limit)];
    evidence.extend(p.latency_ns.as_ref().map(Evidence::from));
    let us = limit.value;
    let mut meaning = if us >= 1_000_000 {
        format!(
            "after one change the frequency stays for {}: the CPU is stuck at whatever it had",
            duration(us)
        )
    } else {
        format!(
            "a frequency step at most every {}: each step of a ramp may wait that long, and a burst that begins just after a change runs up to {} at the old frequency",
            duration(us),
            duration(us)
        )
    };
    let default = p
        .latency_ns
        .as_ref()
        .zip(m.kernel_version())
        .map(|(l, k)| (k, u32::try_from(l.value).unwrap_or(u32::MAX)))
        .map(|(k, latency)| u64::from(cpufreq_policy_transition_delay_us(k, latency, 0)));
    if let Some(default) = default.filter(|d| *d != us) {
        meaning.push_str(&format!(". This kernel's own choice for the driver's latency would be {}: the driver or somebody else set it", duration(default)));
    }
    if p.latency_ns.as_ref().is_some_and(|l| l.value == ETERNAL) {
        meaning.push_str(". The driver says that it does not know its latency (CPUFREQ_ETERNAL); some kernels from 6.9 on took that literally");
    }
    let severity = match us {
        0..2_000 => Severity::Fine,
        2_000..5_000 => Severity::Notable,
        _ => Severity::Costly,
    };
    let hint = (severity != Severity::Fine)
        .then(|| format!("try 1 ms: echo 1000 | sudo tee {}", limit.file));
    let title = format!("{}: rate_limit_us is {us} ({})", cpus_of(group), duration(us));
    // A ramp of ten steps waits for it ten times.
    let ms = (us.saturating_mul(10) / 1000).min(100_000) as u32;
    all.add(ms, Finding { severity, title, evidence, meaning, hint });
}

/// Limits inside what the hardware can do.
fn caps(p: &CpufreqPolicy, all: &mut Findings) {
    if let (Some(limit), Some(max)) = (&p.limit_max, &p.hardware_max)
        && limit.value < max.value
    {
        let lost = max.value as f64 / limit.value.max(1) as f64;
        all.add((200.0 * (lost - 1.0)).min(50_000.0) as u32, Finding {
            severity: Severity::Costly,
            title: format!("{}: capped at {} of {}", cpus(&p.cpus), mhz(limit.value), mhz(max.value)),
            evidence: vec![limit.into(), max.into()],
            meaning: format!("work takes up to {lost:.2} times as long as the hardware could do it, whatever the governor asks for; capacity and misfit still count the full speed"),
            hint: Some(format!("who set it? (power profile, thermal daemon, vendor tool); lift: echo {} | sudo tee {}", max.value, limit.file)),
        });
    }
    if let (Some(floor), Some(min)) = (&p.limit_min, &p.hardware_min)
        && floor.value > min.value
    {
        all.add(
            5,
            Finding {
                severity: Severity::Notable,
                title: format!(
                    "{}: held at or above {}, where {} would be possible",
                    cpus(&p.cpus),
                    mhz(floor.value),
                    mhz(min.value)
                ),
                evidence: vec![floor.into(), min.into()],
                meaning: format!(
                    "the ramp begins {:.1} times as fast, and idle-ish work costs more energy",
                    floor.value as f64 / min.value.max(1) as f64
                ),
                hint: None,
            },
        );
    }
}

/// The hardware's own preference between speed and energy.
fn preference(group: &[&CpufreqPolicy], all: &mut Findings) {
    let p = group[0];
    let Some(epp) = &p.epp else { return };
    let (severity, ms, meaning) = match epp.value.as_str() {
        "performance" => (Severity::Fine, 0, "the hardware goes for speed at once"),
        "default" | "balance_performance" => (
            Severity::Fine,
            0,
            "the hardware leans to speed: it ramps within a few of its own milliseconds",
        ),
        "balance_power" => (
            Severity::Notable,
            30,
            "the hardware leans to saving: it waits longer before it raises the frequency, and stops short of the top under medium load",
        ),
        "power" => (
            Severity::Costly,
            80,
            "the hardware goes for saving: it raises the frequency late and reluctantly, which short bursts feel most",
        ),
        _ => (
            Severity::Notable,
            1,
            "a raw preference, 0 = speed, 255 = saving: the hardware weighs both by it",
        ),
    };
    let hint = "echo balance_performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference";
    all.add(
        ms,
        Finding {
            severity,
            title: format!("{}: energy preference `{}`", cpus_of(group), epp.value),
            evidence: vec![epp.into()],
            meaning: meaning.to_owned(),
            hint: (severity != Severity::Fine).then(|| hint.to_owned()),
        },
    );
}

/// Reports turbo that is there and switched off.
fn boost(m: &Machine, all: &mut Findings) {
    let off = |name: &str, value: u64| m.knob_number(name).filter(|f| f.value == value);
    let found = off("intel_pstate_no_turbo", 1)
        .or_else(|| off("boost", 0))
        .map(|f| (f, "frequencies above the base one are switched off: single bursts lose most"));
    let percent = m.knob_number("intel_pstate_max_perf_pct").filter(|f| f.value < 100);
    let percent =
        percent.map(|f| (f, "intel_pstate stays below this share of the highest performance"));
    for (fact, meaning) in found.into_iter().chain(percent) {
        let fact: Fact<u64> = fact;
        all.add(
            60,
            Finding {
                severity: Severity::Costly,
                title: "turbo is off or limited".to_owned(),
                evidence: vec![(&fact).into()],
                meaning: meaning.to_owned(),
                hint: Some("who set it? (firmware, power profile, thermal daemon)".to_owned()),
            },
        );
    }
}

fn cooling(m: &Machine, all: &mut Findings) {
    if !m.cooling.is_empty() {
        all.add(300, Finding {
            severity: Severity::Costly,
            title: "CPUs are throttled by temperature now".to_owned(),
            evidence: m.cooling.iter().take(4).map(Evidence::from).collect(),
            meaning: "the frequency is capped until the machine is cooler; a measurement made now is of a hot machine".to_owned(),
            hint: Some("let it cool down, then measure again".to_owned()),
        });
    }
}
