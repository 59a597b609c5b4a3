//! The least server under which the tasks of a file are in time, as a real-time group on one CPU (`cpu.rt.max` of HCBS).
//!
//! ```text
//! tasks, fixed priorities ── response times under sbf(Θ, Π) ──> the least Θ of each Π for which all are in time
//!                                 less a tick: budgets are looked at at ticks, and what a server overruns it pays back
//! ```
//!
//! The less a server has, the later all it serves: the least is looked for by halves. Servers are charged for time, so that on a CPU
//! of half the capacity the same tasks need twice the runtime, and more.
//!
//! Test: [`risetime_kernel::supply`], where its sources are.

use crate::admit::Order;
use crate::machine;
use crate::plan::{NoRoom, load};
use crate::{Fit, Load, Task};
use risetime_kernel::supply::{FpTask, Supply, fixed_priorities_hold, response_under};
use risetime_kernel::units::{Capacity, CpuId, Span};
use risetime_model::needs::Needs;
use risetime_model::{Platform, platform::Domain};

/// A group with a server, and the tasks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// CPU of the group.
    pub cpu: CpuId,
    /// Runtime of the group's server …
    pub runtime: Span,
    /// … in each such time.
    pub period: Span,
    /// Overrun of the server at most: a tick.
    pub tick: Span,
    /// Tasks in the order of the file.
    pub tasks: Vec<Served>,
}

/// A task of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Name of the task.
    pub name: String,
    /// SCHED_FIFO.
    pub priority: u8,
    /// Deadline from when a job comes until it is due.
    pub deadline: Span,
    /// The longest that it takes.
    pub response: Span,
}

/// The highest priority within the group.
const HIGHEST: u8 = 98;
/// Share that a server may have of its period, in %: `sched_rt_runtime_us`, by default.
const LIMIT_PERCENT: u64 = 95;

/// The least server of `period` for all of `needs`, on the CPU of `platform` that is the first, the smallest (`Fit::Best`) or
/// the biggest one (`Fit::Worst`) on which there is one. Runtimes are whole µs.
///
/// Errors: those tasks of which too little is known, or the first that is late however much its server has.
pub fn server(
    needs: &Needs,
    platform: &Platform,
    period: Span,
    order: Order,
    fit: Fit,
) -> Result<Group, Vec<NoRoom>> {
    let no_room = |i: usize, reason: String| {
        let task = &needs.tasks[i];
        NoRoom { at: task.at.clone(), name: task.name.clone(), reason }
    };
    let of = |d: &Domain| -> Vec<Option<Load>> {
        let on = |n: machine::Need| Load {
            runtime: n.at(d.capacity),
            period: n.period,
            deadline: n.deadline,
        };
        needs.tasks.iter().map(|t| load(t, d).map(on)).collect()
    };
    let unknown: Vec<NoRoom> = of(&platform.domains[0])
        .iter()
        .enumerate()
        .filter(|(_, load)| load.is_none())
        .map(|(i, _)| no_room(i, "it does not say how long it takes".into()))
        .collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    if let Some((i, n)) = too_many(&of(&platform.domains[0]), order) {
        let reason = format!(
            "{n} different periods or deadlines need as many priorities, and there are {HIGHEST}: tasks that share one delay each other"
        );
        return Err(vec![no_room(i, reason)]);
    }
    let mut domains: Vec<&Domain> = platform.domains.iter().collect();
    match fit {
        Fit::First => domains.sort_by_key(|d| d.cpus[0]),
        Fit::Best => domains.sort_by_key(|d| (d.capacity, d.cpus[0])),
        Fit::Worst => domains.sort_by_key(|d| (std::cmp::Reverse(d.capacity), d.cpus[0])),
    }
    let tick = Span(1_000_000_000 / u64::from(platform.hz.max(1)));
    let mut late = 0;
    for domain in &domains {
        let loads: Vec<Load> = of(domain).into_iter().flatten().collect();
        let component = Component::new(&loads, domain.capacity, order);
        match component.least(period, tick) {
            Ok(runtime) => {
                return Ok(component.group(needs, domain.cpus[0], runtime, period, tick));
            }
            Err(task) => late = task,
        }
    }
    let us = |span: Span| span.0 / 1000;
    let most = us(period) * LIMIT_PERCENT / 100;
    let reason = format!(
        "it may be late even where its server has {most} of each {} µs, {LIMIT_PERCENT} %, and a tick of {} µs less",
        us(period),
        us(tick)
    );
    Err(vec![no_room(late, reason)])
}

/// Whether there are more keys than priorities: the task with the first key that has none, and how many keys there are.
fn too_many(loads: &[Option<Load>], order: Order) -> Option<(usize, usize)> {
    let key = |load: &Option<Load>| load.as_ref().map(|l| order.key(l));
    let mut keys: Vec<u64> = loads.iter().filter_map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let first = *keys.get(usize::from(HIGHEST))?;
    Some((loads.iter().position(|l| key(l) == Some(first))?, keys.len()))
}

/// The tasks on one CPU, the highest priority first.
struct Component {
    tasks: Vec<FpTask>,
    /// Place of each task in the file, and the key by which it has its priority.
    of: Vec<(usize, u64)>,
}

impl Component {
    fn new(loads: &[Load], speed: Capacity, order: Order) -> Component {
        let mut of: Vec<(usize, u64)> =
            loads.iter().map(|load| order.key(load)).enumerate().collect();
        of.sort_by_key(|(i, key)| (*key, *i));
        let on = |load: &Load| {
            let (work, period, deadline) =
                (Span(load.runtime), Span(load.period), Span(load.deadline));
            let own = Task { name: String::new(), work, period, deadline }.on(speed);
            FpTask { runtime: Span(own.runtime), period, deadline: deadline.min(period) }
        };
        Component { tasks: of.iter().map(|(i, _)| on(&loads[*i])).collect(), of }
    }

    fn equal(&self, a: usize, b: usize) -> bool {
        self.of[a].1 == self.of[b].1
    }

    fn holds(&self, supply: Supply) -> Result<(), usize> {
        fixed_priorities_hold(supply, &self.tasks, 0, |a, b| self.equal(a, b))
    }

    /// The least runtime, in whole µs. Errors: the task of the file that is late with the most that there is.
    fn least(&self, period: Span, tick: Span) -> Result<Span, usize> {
        let most = period.0 * LIMIT_PERCENT / 100 / 1000;
        self.holds(supply(Span(most * 1000), period, tick)).map_err(|late| self.of[late].0)?;
        // (too little, enough]
        let (mut low, mut high) = (0, most);
        while high - low > 1 {
            let half = low + (high - low) / 2;
            match self.holds(supply(Span(half * 1000), period, tick)) {
                Ok(()) => high = half,
                Err(_) => low = half,
            }
        }
        Ok(Span(high * 1000))
    }

    fn group(&self, needs: &Needs, cpu: CpuId, runtime: Span, period: Span, tick: Span) -> Group {
        let mut keys: Vec<u64> = self.of.iter().map(|(_, key)| *key).collect();
        keys.dedup();
        // There are no more keys than priorities.
        let priority = |key: u64| HIGHEST.saturating_sub(keys.partition_point(|k| *k < key) as u8);
        let mut tasks: Vec<(usize, Served)> = self
            .of
            .iter()
            .enumerate()
            .map(|(at, (i, key))| {
                let others: Vec<FpTask> = (0..self.tasks.len())
                    .filter(|j| *j != at && (*j < at || self.equal(*j, at)))
                    .map(|j| self.tasks[j])
                    .collect();
                let own = self.tasks[at];
                let response = response_under(supply(runtime, period, tick), own, &others);
                let served = Served {
                    name: needs.tasks[*i].name.clone(),
                    priority: priority(*key),
                    deadline: own.deadline,
                    response: response.unwrap_or(own.deadline),
                };
                (*i, served)
            })
            .collect();
        tasks.sort_by_key(|(i, _)| *i);
        let tasks = tasks.into_iter().map(|(_, served)| served).collect();
        Group { cpu, runtime, period, tick, tasks }
    }
}

fn supply(budget: Span, period: Span, tick: Span) -> Supply {
    Supply { period, budget, late: Span(0), lost: tick }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(tasks: &[(&str, &str)]) -> Needs {
        let of = |(name, what): &(&str, &str)| format!("[[task]]\nname = \"{name}\"\n{what}\n");
        let all: String = tasks.iter().map(of).collect();
        Needs::parse(&format!("schema = 1\nname = \"n\"\n{all}"), "n.toml").expect("right")
    }

    const CONTROL: [(&str, &str); 2] = [
        ("plan", "period_us = 100000\nruntime_us = 12000"),
        ("servo", "period_us = 40000\nruntime_us = 2000"),
    ];

    fn on(tasks: &[(&str, &str)], platform: &str, ms: u64, fit: Fit) -> Result<Group, Vec<NoRoom>> {
        let platform = Platform::load(platform).expect("built in");
        server(&needs(tasks), &platform, Span::from_ms(ms), Order::Rate, fit)
    }

    #[test]
    fn the_least_server_is_enough_and_a_microsecond_less_is_not() {
        for ms in [5, 10, 20, 30] {
            let group = on(&CONTROL, "laptop4", ms, Fit::First).expect("there is one");
            let [plan, servo] = &group.tasks[..] else { panic!("{group:?}") };
            assert_eq!((plan.name.as_str(), plan.priority, servo.priority), ("plan", 97, 98));
            assert!(
                plan.response <= plan.deadline && servo.response <= servo.deadline,
                "{group:?}"
            );
            let loads = [
                Load { runtime: 12_000_000, period: 100_000_000, deadline: 100_000_000 },
                Load { runtime: 2_000_000, period: 40_000_000, deadline: 40_000_000 },
            ];
            let component = Component::new(&loads, Capacity(1024), Order::Rate);
            let with = |us: u64| component.holds(supply(Span(us * 1000), group.period, group.tick));
            let us = group.runtime.0 / 1000;
            assert!(with(us).is_ok() && with(us - 1).is_err(), "{group:?}");
        }
    }

    #[test]
    fn priorities_that_run_out_are_not_shared() {
        let names: Vec<String> = (0..99).map(|i| format!("t{i}")).collect();
        let what: Vec<String> =
            (0..99).map(|i| format!("period_us = {}\nruntime_us = 10", 50_000 + i)).collect();
        let all: Vec<(&str, &str)> =
            names.iter().zip(&what).map(|(n, w)| (n.as_str(), w.as_str())).collect();
        let e = on(&all, "laptop4", 10, Fit::First).expect_err("98 priorities");
        assert!(e[0].name == "t98" && e[0].reason.contains("99 different"), "{e:?}");
        assert!(on(&all[..98], "laptop4", 10, Fit::First).is_ok());
    }

    #[test]
    fn longer_periods_and_smaller_cpus_take_more() {
        let share = |ms: u64, platform: &str, fit: Fit| {
            let group = on(&CONTROL, platform, ms, fit).expect("there is one");
            group.runtime.0 * 1000 / group.period.0
        };
        assert!(share(5, "laptop4", Fit::First) < share(20, "laptop4", Fit::First));
        assert!(share(10, "m1", Fit::Worst) < share(10, "m1", Fit::Best));
    }

    #[test]
    fn what_cannot_be_is_told_by_task() {
        let tasks =
            [CONTROL[0], ("quick", "period_us = 10000\nruntime_us = 1000\ndeadline_us = 1500")];
        let e = on(&tasks, "laptop4", 100, Fit::First).expect_err("too seldom");
        assert_eq!((e.len(), e[0].name.as_str()), (1, "quick"));
        assert!(e[0].reason.contains("95000 of each 100000 µs"), "{e:?}");
        let e = on(&[("p", "priority = 5")], "laptop4", 10, Fit::First).expect_err("unknown");
        assert!(e[0].reason.contains("does not say"), "{e:?}");
    }
}
