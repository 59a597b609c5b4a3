//! From what tasks need to where they go, and what they have to ask the kernel for.
//!
//! ```text
//! runtime and period, or a share   guaranteed   each on one CPU, where the tests admit all that are there
//!   edf          SCHED_DEADLINE, in a root domain of that CPU alone (an exclusive cpuset), or it may run on any
//!   rm, dm       SCHED_FIFO from 98 on downwards, the shortest period (deadline) first, and a CPU mask
//! period alone   not guaranteed: SCHED_FIFO below all of those, the shortest period first
//! priority alone not guaranteed: SCHED_FIFO with that priority; where that is not below the guaranteed FIFO tasks of a CPU it has to
//!                go to another one
//! ```
//!
//! What is not guaranteed goes where most is left. The kernel admits deadline tasks by its own rule as well, which leaves 5 % of
//! each CPU to others ([`dl_overflow`]): a CPU is full for EDF where either says so.
//!
//! After G. Serra, G. Ara, P. Fara and T. Cucinotta, "ReTiF: a declarative real-time scheduling framework for POSIX systems",
//! 2021: tasks declare a priority, a period, or a runtime as well.

use crate::admit::{Scheduler, Test};
use crate::{Fit, Load, Task, partition};
use risetime_kernel::deadline::{BW_UNIT, dl_overflow, to_ratio};
use risetime_kernel::units::{Capacity, CpuId, Span};
use risetime_model::Platform;
use risetime_model::needs::{Need, Needs, What};
use risetime_model::platform::Domain;
use std::cmp::Reverse;

/// How it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Of one CPU.
    pub scheduler: Scheduler,
    /// Which of the CPUs that fit.
    pub fit: Fit,
}

/// What a task asks the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attr {
    /// SCHED_DEADLINE: runtime, deadline, period.
    Deadline(Span, Span, Span),
    /// SCHED_FIFO.
    Fifo(u8),
}

/// A task that has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// Where.
    pub cpu: CpuId,
    /// How.
    pub attr: Attr,
    /// Its deadlines are met if it and all others keep to what they declare.
    pub guaranteed: bool,
}

/// A CPU with guaranteed tasks.
#[derive(Clone, Debug)]
pub struct Used {
    /// Which.
    pub cpu: CpuId,
    /// What they take of it, in %.
    pub percent: f64,
    /// What admits them.
    pub test: &'static Test,
    /// What that found.
    pub reason: String,
}

/// All of them have a place.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of the file.
    pub tasks: Vec<Planned>,
    /// By CPU.
    pub used: Vec<Used>,
}

/// A task without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Its place in the file.
    pub at: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The highest priority of guaranteed FIFO tasks: 99 is the stopper's and the watchdog's neighbourhood.
const HIGHEST: u8 = 98;
/// That of tasks of which a period alone is known: guaranteed ones have those above.
const HIGHEST_OF_PERIODS: u8 = 48;
/// `sched_rt_runtime_us / sched_rt_period_us` by default.
const LIMIT: u64 = BW_UNIT * 95 / 100;

/// Where all of `needs` go on `platform`.
///
/// Errors: those that have no place, each with its reason; the others then have none either.
pub fn plan(needs: &Needs, platform: &Platform, rules: Rules) -> Result<Plan, Vec<NoRoom>> {
    let speeds: Vec<Capacity> = platform
        .cpus()
        .map(|cpu| platform.domain_of(cpu).map_or(Capacity(0), |d| platform.domains[d].capacity))
        .collect();
    // Of each domain; work of other kinds than the plain one takes less there, or more, than its capacity says.
    let on: Vec<Vec<Option<Load>>> =
        needs.tasks.iter().map(|t| platform.domains.iter().map(|d| load(t, d)).collect()).collect();
    let mut own: Vec<Option<Load>> = on
        .iter()
        .map(|by_domain| by_domain.iter().flatten().min_by_key(|l| l.runtime).copied())
        .collect();
    let guaranteed: Vec<usize> = (0..own.len()).filter(|i| own[*i].is_some()).collect();
    let loads: Vec<Load> = guaranteed.iter().filter_map(|i| own[*i]).collect();
    let domain = |cpu: usize| platform.domain_of(CpuId(cpu as u32)).unwrap_or(0);
    let on_cpu = |task: usize, cpu: usize| on[guaranteed[task]][domain(cpu)].unwrap_or(loads[task]);
    let reserved = |on: &[Load], speed: Capacity| {
        let bw = |t: &Load| to_ratio(Span(t.period), Span(t.runtime));
        let total: u64 = on.iter().map(bw).sum();
        rules.scheduler != Scheduler::Edf || !dl_overflow(LIMIT, speed.0, 0, 0, total)
    };
    let found =
        partition::partition_where(&loads, &on_cpu, &speeds, rules.fit, rules.scheduler, &reserved);

    let mut missing = Vec::new();
    let mut cpu_of: Vec<Option<usize>> = vec![None; own.len()];
    for (place, i) in found.places.iter().zip(&guaranteed) {
        cpu_of[*i] = place.cpu.map(|cpu| cpu.0 as usize);
        match place.cpu {
            Some(cpu) => own[*i] = on[*i][domain(cpu.index())],
            None => missing.push(no_room(needs, *i, own[*i], &speeds)),
        }
    }
    let mut left: Vec<f64> = speeds.iter().map(|s| s.0 as f64 / 1024.0).collect();
    for (cpu, load) in guaranteed.iter().filter_map(|i| Some((cpu_of[*i]?, own[*i]?))) {
        left[cpu] -= load.share().as_f64();
    }
    let priorities = priorities(&own, &cpu_of, rules.scheduler);
    let mut lowest: Vec<Option<u8>> = vec![None; speeds.len()];
    for (cpu, priority) in cpu_of.iter().zip(&priorities).filter_map(|(c, p)| Some(((*c)?, (*p)?)))
    {
        lowest[cpu] = Some(lowest[cpu].map_or(priority, |low: u8| low.min(priority)));
    }

    // How many tasks without a guarantee there are: the fewest among equals.
    let mut others = vec![0u32; speeds.len()];
    let by_period = by_period(needs);
    let mut wanted = priorities.clone();
    for (i, task) in needs.tasks.iter().enumerate() {
        let priority = match task.what {
            What::Priority(priority) => priority,
            What::Period(period) => {
                let faster = by_period.partition_point(|p| *p < period);
                HIGHEST_OF_PERIODS.saturating_sub(faster as u8).max(1)
            }
            What::Job { .. } | What::Share { .. } => continue,
        };
        wanted[i] = Some(priority);
        let harmless = |cpu: &usize| lowest[*cpu].is_none_or(|lowest| priority < lowest);
        let most = (0..speeds.len()).filter(harmless).max_by(|a, b| {
            let of = |cpu: usize| (left[cpu], Reverse(others[cpu]), Reverse(cpu));
            of(*a).partial_cmp(&of(*b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        cpu_of[i] = most;
        match most {
            Some(cpu) => others[cpu] += 1,
            None => missing.push(NoRoom {
                at: task.at.clone(),
                name: task.name.clone(),
                reason: format!(
                    "priority {priority} is not below the guaranteed tasks, of which every CPU has some"
                ),
            }),
        }
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    let planned = |(i, task): (usize, &Need)| {
        let attr = match (own[i], rules.scheduler) {
            (Some(l), Scheduler::Edf) => {
                Attr::Deadline(Span(l.runtime), Span(l.deadline), Span(l.period))
            }
            _ => Attr::Fifo(wanted[i]?),
        };
        let cpu = CpuId(u32::try_from(cpu_of[i]?).ok()?);
        Some(Planned { name: task.name.clone(), cpu, attr, guaranteed: own[i].is_some() })
    };
    let used = found.verdicts.into_iter().enumerate().filter_map(|(cpu, verdict)| {
        let (test, reason) = verdict?;
        let whole = speeds[cpu].0 as f64 / 1024.0;
        let percent = 100.0 * (whole - left[cpu]) / whole;
        Some(Used { cpu: CpuId(cpu as u32), percent, test, reason })
    });
    Ok(Plan {
        tasks: needs.tasks.iter().enumerate().filter_map(planned).collect(),
        used: used.collect(),
    })
}

/// What can be guaranteed of it, on a CPU of this domain as one of capacity 1024 would see it: what is of a kind of work
///
/// ```text
/// takes    work · 10⁶ / speed_ppm   at the highest frequency,   which is   work · capacity / 1024 · 10⁶ / speed_ppm   of 1024's time
/// ```
///
/// Rounding: up.
pub(crate) fn load(need: &Need, domain: &Domain) -> Option<Load> {
    let (work, period, deadline) = match need.what {
        What::Job { runtime, period, deadline } => (runtime, period, deadline),
        What::Share { runtime, period } => (runtime, period, period),
        What::Period(_) | What::Priority(_) => return None,
    };
    let mut plain = work.0;
    let mut others: u128 = 0;
    for (kind, work) in &need.kinds {
        let Some(table) = domain.work.iter().find(|w| w.kind == *kind) else { continue };
        let ppm = u128::from(table.speed_ppm.last().copied().unwrap_or(1_000_000));
        plain = plain.saturating_sub(work.0);
        let scaled = u128::from(work.0) * u128::from(domain.capacity.0) * 1_000_000;
        others += scaled.div_ceil(1024 * ppm);
    }
    let work = Span(u64::try_from(u128::from(plain) + others).unwrap_or(u64::MAX));
    Some(Task { name: String::new(), work, period, deadline }.on(Capacity(1024)))
}

fn by_period(needs: &Needs) -> Vec<Span> {
    let period = |what: What| if let What::Period(p) = what { Some(p) } else { None };
    let mut all: Vec<Span> = needs.tasks.iter().filter_map(|t| period(t.what)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Of the guaranteed tasks under fixed priorities: the first of a CPU has the highest. Of more than there are, neighbours share
/// one; the test has it that equals delay each other.
fn priorities(own: &[Option<Load>], cpu_of: &[Option<usize>], of: Scheduler) -> Vec<Option<u8>> {
    let key = |l: &Load| if of == Scheduler::Dm { l.deadline } else { l.period };
    let rank = |i: usize| {
        let (own_load, cpu) = (own[i]?, cpu_of[i]?);
        let before = (0..own.len()).filter(|j| cpu_of[*j] == Some(cpu));
        let mut keys: Vec<u64> = before.filter_map(|j| Some(key(&own[j]?))).collect();
        keys.sort_unstable();
        keys.dedup();
        let rank = keys.partition_point(|k| *k < key(&own_load));
        let levels = usize::from(HIGHEST - HIGHEST_OF_PERIODS);
        let level = if keys.len() <= levels { rank } else { rank * levels / keys.len() };
        Some(HIGHEST - level as u8)
    };
    match of {
        Scheduler::Rm | Scheduler::Dm => (0..own.len()).map(rank).collect(),
        Scheduler::Edf | Scheduler::GlobalEdf => vec![None; own.len()],
    }
}

fn no_room(needs: &Needs, i: usize, load: Option<Load>, speeds: &[Capacity]) -> NoRoom {
    let task = &needs.tasks[i];
    let takes = load.map_or(0.0, |l| 100.0 * l.density().as_f64());
    let fastest = speeds.iter().map(|s| s.0).max().unwrap_or(0) as f64 / 10.24;
    let reason = match takes > fastest {
        true => format!(
            "it takes {takes:.1} % of a CPU up to its deadline, the fastest has {fastest:.1} %"
        ),
        false => format!(
            "it takes {takes:.1} % of a CPU up to its deadline, and no CPU has that left beside the larger ones"
        ),
    };
    NoRoom { at: task.at.clone(), name: task.name.clone(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { scheduler: Scheduler::Edf, fit: Fit::Worst };

    fn needs(tasks: &[(&str, &str)]) -> Needs {
        let of = |(name, what): &(&str, &str)| format!("[[task]]\nname = \"{name}\"\n{what}\n");
        let all: String = tasks.iter().map(of).collect();
        Needs::parse(&format!("schema = 1\nname = \"n\"\n{all}"), "n.toml").expect("right")
    }

    fn planned(tasks: &[(&str, &str)], platform: &str, rules: Rules) -> Result<Plan, Vec<NoRoom>> {
        plan(&needs(tasks), &Platform::load(platform).expect("built in"), rules)
    }

    const HALF: &str = "period_us = 10000\nruntime_us = 5000";

    #[test]
    fn the_kernel_leaves_five_percent_of_each_cpu() {
        let full = "period_us = 100000\nruntime_us = 94000";
        let over = "period_us = 100000\nruntime_us = 96000";
        assert!(planned(&[("a", full)], "rpi4", RULES).is_ok());
        let e = planned(&[("a", over)], "rpi4", RULES).expect_err("too much for the kernel");
        assert_eq!((e[0].at.as_str(), e[0].name.as_str()), ("n.toml:4:1", "a"));
        // Nothing of the kind holds fixed priorities back.
        assert!(
            planned(&[("a", over)], "rpi4", Rules { scheduler: Scheduler::Rm, ..RULES }).is_ok()
        );
    }

    #[test]
    fn fixed_priorities_follow_periods_or_deadlines() {
        let tasks = [
            ("slow", "period_us = 40000\nruntime_us = 4000\ndeadline_us = 5000"),
            ("fast", "period_us = 10000\nruntime_us = 1000"),
        ];
        let prio = |scheduler| {
            let plan = planned(&tasks, "rpi4", Rules { scheduler, fit: Fit::First }).expect("room");
            plan.tasks.iter().map(|t| t.attr).collect::<Vec<_>>()
        };
        assert_eq!(prio(Scheduler::Dm), [Attr::Fifo(98), Attr::Fifo(97)]);
        assert_eq!(prio(Scheduler::Rm), [Attr::Fifo(97), Attr::Fifo(98)]);
    }

    #[test]
    fn who_says_only_a_priority_delays_nobody_that_is_guaranteed() {
        let rm = Rules { scheduler: Scheduler::Rm, fit: Fit::First };
        let plan = planned(&[("a", HALF), ("p", "priority = 99")], "rpi4", rm).expect("room");
        assert_ne!(plan.tasks[0].cpu, plan.tasks[1].cpu);
        let all: Vec<(&str, &str)> =
            [("a", HALF), ("b", HALF), ("c", HALF), ("d", HALF), ("p", "priority = 99")].to_vec();
        let spread = Rules { fit: Fit::Worst, ..rm };
        let e = planned(&all, "rpi4", spread).expect_err("no CPU is free of them");
        assert!(e[0].reason.contains("priority 99 is not below"), "{e:?}");
        // Deadline tasks come before all of FIFO.
        assert!(planned(&all, "rpi4", RULES).is_ok());
    }

    #[test]
    fn periods_alone_are_ordered_below_what_is_guaranteed() {
        let tasks = [
            ("slow", "period_us = 90000"),
            ("fast", "period_us = 3000"),
            ("job", "period_us = 90000\nruntime_us = 90"),
        ];
        let rm = Rules { scheduler: Scheduler::Rm, fit: Fit::First };
        let plan = planned(&tasks, "rpi4", rm).expect("room");
        let [slow, fast, job] = [0, 1, 2].map(|i| plan.tasks[i].attr);
        let of = |attr| if let Attr::Fifo(p) = attr { p } else { 0 };
        assert!(of(slow) < of(fast) && of(fast) < of(job), "{plan:?}");
        assert_eq!(
            plan.tasks.iter().map(|t| t.guaranteed).collect::<Vec<_>>(),
            [false, false, true]
        );
    }

    #[test]
    fn a_small_cpu_takes_longer() {
        // 50 % of a big CPU is more than a little one of m1 has.
        let plan = planned(&[("a", HALF)], "m1", Rules { fit: Fit::First, ..RULES }).expect("room");
        let m1 = Platform::load("m1").expect("built in");
        let domain = m1.domain_of(plan.tasks[0].cpu).expect("one");
        assert!(m1.domains[domain].capacity.0 * 10 > 5 * 1024 * 10 / 10);
    }
}
