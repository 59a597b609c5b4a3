//! Findings about the scheduler: capacities, energy awareness, tick, clamps, idle, and who
//! schedules at all.

use super::{Evidence, Finding, Findings, Severity, cpus, duration};
use crate::probe::{Idle, Machine};
use crate::root::Fact;
use std::collections::BTreeMap;

pub(super) fn check(m: &Machine, all: &mut Findings) {
    tick(m, all);
    capacities(m, all);
    energy(m, all);
    clamps(m, all);
    sched_ext(m, all);
    idle(m, all);
    smt(m, all);
    preemption(m, all);
    left_out(m, all);
}

fn tick(m: &Machine, all: &mut Findings) {
    let Some(hz) = &m.hz else {
        return all.add(4, Finding {
            severity: Severity::Unreadable,
            title: "length of the tick not known".to_owned(),
            evidence: vec![Evidence { file: "/proc/config.gz, /boot/config-*".to_owned(), value: "not there".to_owned() }],
            meaning: "util of a running task is refreshed at the tick: 1 ms at HZ=1000, 10 ms at HZ=100".to_owned(),
            hint: None,
        });
    };
    let us = 1_000_000 / u64::from(hz.value);
    let (severity, hint) = match hz.value {
        1000.. => (Severity::Fine, None),
        _ => (
            Severity::Notable,
            Some("a kernel with CONFIG_HZ=1000 (some distributions offer one)".to_owned()),
        ),
    };
    let mut evidence = vec![Evidence::from(hz)];
    if let Some(config) = &m.config
        && config.file != hz.file
        && let Some(value) = config.value.get("HZ")
    {
        evidence.push(Evidence { file: config.file.clone(), value: format!("CONFIG_HZ={value}") });
    }
    all.add((us / 1000) as u32, Finding {
        severity,
        title: format!("HZ={}: a tick every {}", hz.value, duration(us)),
        evidence,
        meaning: format!("a running task's util is refreshed, and a frequency asked for, once every {0}: each step of a ramp comes up to {0} late, and so do misfit migration and preemption at the end of a slice", duration(us)),
        hint,
    });
}

fn capacities(m: &Machine, all: &mut Findings) {
    if m.cpus.is_empty() {
        return;
    }
    let mut by_capacity: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for c in &m.cpus {
        by_capacity.entry(m.capacity(c.id)).or_default().push(c.id);
    }
    let first = m.cpus.iter().find_map(|c| c.capacity.as_ref());
    let evidence = match first {
        Some(_) => by_capacity
            .iter()
            .filter_map(|(capacity, list)| {
                let cpu = m.cpus.iter().find(|c| c.id == list[0])?;
                Some(Evidence {
                    file: cpu.capacity.as_ref()?.file.clone(),
                    value: capacity.to_string(),
                })
            })
            .collect(),
        None => vec![Evidence {
            file: "/sys/devices/system/cpu/cpu*/cpu_capacity".to_owned(),
            value: "not there".to_owned(),
        }],
    };
    let list: Vec<String> = by_capacity
        .iter()
        .map(|(capacity, list)| format!("{} at {capacity}", cpus(list)))
        .collect();
    let (severity, ms, title, meaning) = if m.is_asymmetric() {
        let smallest = *by_capacity.keys().next().unwrap_or(&1024);
        (
            Severity::Notable,
            30,
            format!("CPUs differ in capacity: {}", list.join(", ")),
            format!(
                "a task on the smallest CPU gathers util at {:.0} % of the full rate even at top frequency, and leaves it for a bigger one only when its util passes 80 % of {smallest}, at a tick or a wakeup",
                100.0 * smallest as f64 / 1024.0
            ),
        )
    } else {
        (
            Severity::Fine,
            0,
            "all CPUs have the same capacity".to_owned(),
            "a task is equally well off on any of them: no misfit migration, no energy-aware placement".to_owned(),
        )
    };
    all.add(ms, Finding { severity, title, evidence, meaning, hint: None });
}

/// Reports on energy-aware scheduling: on, off, or why it cannot be.
fn energy(m: &Machine, all: &mut Findings) {
    if !m.is_asymmetric() {
        return;
    }
    let knob = m.knob("sched_energy_aware");
    let evidence = knob.map(Evidence::from).into_iter().collect::<Vec<_>>();
    let mut because = Vec::new();
    if m.smt() {
        because.push("hardware threads share cores (SMT)");
    }
    if m.policies.iter().any(|p| p.governor_name() != "schedutil") || m.policies.is_empty() {
        because.push("not every policy runs schedutil");
    }
    let debugfs = !m.problems.iter().any(|p| p.denied && p.file.contains("energy_model"));
    if m.energy.is_empty() && debugfs {
        because.push("no energy model is in debugfs (none, or debugfs not mounted)");
    }
    if m.option("ENERGY_MODEL") == Some("n") {
        because.push("CONFIG_ENERGY_MODEL is not set");
    }
    let on = knob.is_some_and(|f| f.value == "1") && because.is_empty();
    let (severity, title, meaning) = if on {
        (Severity::Fine, "energy-aware scheduling is on".to_owned(), "wakeups go where the energy model says the work is cheapest, as long as no CPU is overutilized: small tasks start on small CPUs and climb from there".to_owned())
    } else {
        let mut because = because.join("; ");
        if because.is_empty() {
            because = match knob.map(|f| f.value.as_str()) {
                Some("") => "the kernel says that it is not possible here".to_owned(),
                Some("0") => "it was switched off".to_owned(),
                _ => "the kernel has no such setting".to_owned(),
            };
        }
        (
            Severity::Notable,
            "energy-aware scheduling is off although capacities differ".to_owned(),
            format!(
                "{because}. Wakeups go to the previous CPU or an idle sibling instead, whatever its size allows and costs"
            ),
        )
    };
    all.add(20, Finding { severity, title, evidence, meaning, hint: None });
    let flagged: Vec<String> = m
        .energy
        .iter()
        .flat_map(|d| {
            d.states.iter().filter(|s| s.inefficient).map(|s| format!("{} kHz", s.freq_khz))
        })
        .collect();
    if let Some(domain) = m.energy.first().filter(|_| !flagged.is_empty()) {
        all.add(5, Finding {
            severity: Severity::Notable,
            title: format!("{} frequencies are flagged inefficient", flagged.len()),
            evidence: vec![Evidence { file: format!("{}/ps:*/inefficient", domain.dir), value: flagged.join(", ") }],
            meaning: "schedutil skips them and goes to the next higher one: the ramp has fewer and bigger steps".to_owned(),
            hint: None,
        });
    }
}

/// Reports on utilisation clamps: built in, restricted, or set by control groups.
fn clamps(m: &Machine, all: &mut Findings) {
    let Some(min) = m.knob("util_clamp_min") else {
        return no_clamps(m, all);
    };
    let mut evidence = vec![Evidence::from(min)];
    evidence.extend(m.knob("util_clamp_max").map(Evidence::from));
    let number = |name: &str| m.knob_number(name).map(|f| f.value);
    let mut restricted = Vec::new();
    if number("util_clamp_min").is_some_and(|v| v < 1024) {
        restricted.push(format!("no uclamp_min above {} is granted", min.value));
    }
    if let Some(max) = number("util_clamp_max").filter(|v| *v < 1024) {
        restricted.push(format!(
            "no task counts for more than {max}: frequency and placement stop there"
        ));
    }
    let capped = number("util_clamp_max").is_some_and(|v| v < 1024);
    let (severity, ms) = match (capped, restricted.is_empty()) {
        (true, _) => (Severity::Costly, 50),
        (_, false) => (Severity::Notable, 20),
        _ => (Severity::Fine, 0),
    };
    let meaning = if restricted.is_empty() {
        "programs can ask for speed: a thread with uclamp_min 1024 gets the top frequency at its wakeup instead of after the climb".to_owned()
    } else {
        restricted.join("; ")
    };
    all.add(
        ms,
        Finding {
            severity,
            title: "utilisation clamps (uclamp) are there".to_owned(),
            evidence,
            meaning,
            hint: None,
        },
    );
    real_time_default(m, all);
    if !m.cgroup_clamps.is_empty() {
        let caps = m.cgroup_clamps.iter().any(|f| f.file.ends_with(".max"));
        all.add(25, Finding {
            severity: if caps { Severity::Costly } else { Severity::Notable },
            title: format!("{} control group clamps are set", m.cgroup_clamps.len()),
            evidence: m.cgroup_clamps.iter().take(4).map(Evidence::from).collect(),
            meaning: "percent of full speed: tasks in groups with a max are held below it in frequency and placement, those with a min start at it".to_owned(),
            hint: None,
        });
    }
}

/// Reports on clamps without the sysctl: not built in, or built in and not to be seen.
fn no_clamps(m: &Machine, all: &mut Findings) {
    let sysctl = Evidence {
        file: "/proc/sys/kernel/sched_util_clamp_min".to_owned(),
        value: "not there".to_owned(),
    };
    let option = m.config.as_ref().zip(m.option("UCLAMP_TASK"));
    let option = option.map(|(c, v)| {
        (v == "y", Evidence { file: c.file.clone(), value: format!("CONFIG_UCLAMP_TASK={v}") })
    });
    if let Some((true, option)) = option {
        return all.add(
            3,
            Finding {
                severity: Severity::Unreadable,
                title: "utilisation clamps (uclamp): limits not to be seen".to_owned(),
                evidence: vec![option, sysctl],
                meaning: "programs may ask for speed, and how much of it is granted is not known"
                    .to_owned(),
                hint: None,
            },
        );
    }
    all.add(3, Finding {
        severity: Severity::Notable,
        title: "no utilisation clamps (uclamp) in this kernel".to_owned(),
        evidence: vec![option.map_or(sysctl, |(_, e)| e)],
        meaning: "no program can ask for speed for a thread that matters: sched_setattr with a clamp fails, and every burst climbs from its own util".to_owned(),
        hint: Some("a kernel with CONFIG_UCLAMP_TASK=y, and CONFIG_UCLAMP_TASK_GROUP=y for control groups".to_owned()),
    });
}

fn real_time_default(m: &Machine, all: &mut Findings) {
    let Some(rt) = m.knob_number("util_clamp_min_rt_default") else {
        return;
    };
    let (severity, meaning) = if rt.value >= 1024 {
        (
            Severity::Fine,
            "a real-time task drives its CPU to the top frequency as soon as it runs".to_owned(),
        )
    } else {
        (
            Severity::Notable,
            format!(
                "a real-time task asks for no more than {} of 1024 unless it says so itself",
                rt.value
            ),
        )
    };
    all.add(
        1,
        Finding {
            severity,
            title: format!("real-time tasks ask for {} of 1024", rt.value),
            evidence: vec![(&rt).into()],
            meaning,
            hint: None,
        },
    );
}

fn sched_ext(m: &Machine, all: &mut Findings) {
    let Some(state) = m.knob("scx_state") else {
        return;
    };
    if state.value == "disabled" {
        return all.add(
            0,
            Finding {
                severity: Severity::Fine,
                title: "no sched_ext scheduler is loaded".to_owned(),
                evidence: vec![state.into()],
                meaning: "the kernel's fair class schedules normal tasks".to_owned(),
                hint: None,
            },
        );
    }
    let ops = m.knob("scx_ops");
    let name = ops.map_or("(unknown)", |f| f.value.as_str());
    let everything = m.knob("scx_switch_all").is_none_or(|f| f.value != "0");
    let which = if everything { "all normal tasks" } else { "the tasks that asked for it" };
    let evidence = [Some(state), ops, m.knob("scx_switch_all")]
        .into_iter()
        .flatten()
        .map(Evidence::from)
        .collect();
    all.add(70, Finding {
        severity: Severity::Notable,
        title: format!("sched_ext scheduler `{name}` is {} and has {which}", state.value),
        evidence,
        meaning: "placement, slices and preemption are its own; schedutil gets the speed it sets (scx_bpf_cpuperf_set, 1024 until it does) instead of util, and util_est, misfit and energy-aware placement do not apply. Simulations of the fair class do not show this machine as it runs now".to_owned(),
        hint: Some("compare with it stopped (systemctl stop scx, or end the scheduler's process)".to_owned()),
    });
}

/// The slowest idle state that may be used, and that there are none.
fn idle(m: &Machine, all: &mut Findings) {
    let usable = m
        .cpus
        .iter()
        .flat_map(|c| c.idle.iter().map(move |s| (c.id, s)))
        .filter(|(_, s)| !s.disabled);
    let Some((_, deepest)) =
        usable.max_by_key(|(cpu, s)| (s.exit_latency_us.value, std::cmp::Reverse(*cpu)))
    else {
        if m.cpus.is_empty() {
            return;
        }
        let driver = m.knob("cpuidle_driver").map(Evidence::from);
        let none = Evidence {
            file: "/sys/devices/system/cpu/cpu0/cpuidle".to_owned(),
            value: "no states".to_owned(),
        };
        return all.add(0, Finding {
            severity: Severity::Fine,
            title: "no cpuidle states".to_owned(),
            evidence: vec![driver.unwrap_or(none)],
            meaning: "idle is the architecture's own (halt, wfi); how long a wakeup from it takes is not told".to_owned(),
            hint: None,
        });
    };
    let us = deepest.exit_latency_us.value;
    let evidence = vec![Evidence::from(&deepest.exit_latency_us), residency(deepest)];
    let (severity, hint) = match us {
        0..200 => (Severity::Fine, None),
        200..2_000 => (Severity::Notable, Some(())),
        _ => (Severity::Costly, Some(())),
    };
    all.add((us / 1000) as u32, Finding {
        severity,
        title: format!("deepest idle state {} takes {} to leave", deepest.name, duration(us)),
        evidence,
        meaning: format!("a wakeup that finds its CPU there starts {} late; the governor goes there when it expects at least {} of idleness", duration(us), duration(deepest.min_residency_us)),
        hint: hint.map(|()| "for a test: hold /dev/cpu_dma_latency open with a smaller limit, or disable the state (cpuidle/state*/disable)".to_owned()),
    });
}

fn residency(s: &Idle) -> Evidence {
    let file = s.exit_latency_us.file.replace("/latency", "/residency");
    Evidence { file, value: s.min_residency_us.to_string() }
}

fn smt(m: &Machine, all: &mut Findings) {
    if !m.smt() {
        return;
    }
    let evidence: Vec<Evidence> = [m.knob("smt_active"), m.knob("smt_control")]
        .into_iter()
        .flatten()
        .map(Evidence::from)
        .collect();
    all.add(10, Finding {
        severity: Severity::Notable,
        title: "hardware threads share cores (SMT)".to_owned(),
        evidence,
        meaning: "a task whose sibling is busy runs at well under full speed while its util grows as if it had the core alone; energy-aware scheduling stays off".to_owned(),
        hint: None,
    });
}

/// Reports when a woken task may take the CPU from a running one.
fn preemption(m: &Machine, all: &mut Findings) {
    let model = m.knob("preempt").and_then(|f| {
        let value = f.value.split(['(', ')']).nth(1)?.to_owned();
        Some(Fact { value, file: f.file.clone() })
    });
    let built = || {
        let names = ["PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT_LAZY", "PREEMPT", "PREEMPT_RT"];
        let config = m.config.as_ref()?;
        let name = names.into_iter().rfind(|n| config.value.get(*n).is_some_and(|v| v == "y"))?;
        let value = name.strip_prefix("PREEMPT_").unwrap_or("full").to_lowercase();
        Some(Fact { value, file: format!("{}: CONFIG_{name}", config.file) })
    };
    let Some(model) = model.or_else(built) else {
        return;
    };
    let (severity, ms, meaning) = match model.value.as_str() {
        "full" | "rt" => (
            Severity::Fine,
            0,
            "a woken task that should run takes the CPU at once, even out of the kernel",
        ),
        "lazy" => (
            Severity::Notable,
            2,
            "a woken normal task takes the CPU from another one in the kernel only at the next tick or at the return to user space",
        ),
        _ => (
            Severity::Notable,
            2,
            "a woken task waits while another one is in a long system call, until that one yields or returns to user space",
        ),
    };
    all.add(ms, Finding {
        severity,
        title: format!("preemption model `{}`", model.value),
        evidence: vec![(&model).into()],
        meaning: meaning.to_owned(),
        hint: (severity != Severity::Fine).then(|| "with CONFIG_PREEMPT_DYNAMIC: boot with preempt=full, or write it to /sys/kernel/debug/sched/preempt".to_owned()),
    });
}

/// CPUs that the scheduler's balancing leaves out.
fn left_out(m: &Machine, all: &mut Findings) {
    let listed = |name: &str| m.knob(name).filter(|f| !f.value.is_empty() && f.value != "(null)");
    for (name, what) in [
        ("isolated", "isolated: no task comes there unless it is pinned"),
        (
            "nohz_full",
            "without tick while one task runs: util is refreshed once a second by another CPU",
        ),
    ] {
        if let Some(fact) = listed(name) {
            all.add(
                8,
                Finding {
                    severity: Severity::Notable,
                    title: format!(
                        "CPUs {} are {}",
                        fact.value,
                        what.split(':').next().unwrap_or(what)
                    ),
                    evidence: vec![fact.into()],
                    meaning: what.to_owned(),
                    hint: None,
                },
            );
        }
    }
    let online: Vec<u32> = m.cpus.iter().map(|c| c.id).collect();
    let Some(possible) = &m.possible else { return };
    // A list of possible CPUs is often longer than what is built in: only policies tell.
    let offline: Vec<u32> = m
        .policies
        .iter()
        .flat_map(|p| p.offline.iter().copied())
        .filter(|c| possible.value.contains(c) && !online.contains(c))
        .collect();
    if !offline.is_empty() {
        let mut evidence: Vec<Evidence> = vec![Evidence {
            file: possible.file.clone(),
            value: crate::format_cpu_list(&possible.value),
        }];
        evidence.extend(
            m.online.as_ref().map(|f| Evidence {
                file: f.file.clone(),
                value: crate::format_cpu_list(&f.value),
            }),
        );
        all.add(
            15,
            Finding {
                severity: Severity::Notable,
                title: format!("{} offline", cpus(&offline)),
                evidence,
                meaning: "fewer CPUs to spread over; tasks wait more under load".to_owned(),
                hint: Some("echo 1 | sudo tee /sys/devices/system/cpu/cpuN/online".to_owned()),
            },
        );
    }
}
