//! One experiment over several start phases: medians and spread of every figure.
//!
//! ```text
//!   quantile q of n sorted values x[0..n]:  h = q·(n − 1), linear between x[⌊h⌋] and x[⌈h⌉]
//!   median, even n: the mean of the lower and the upper middle value
//! ```
//!
//! "Never" sorts after every number. A quantile that falls on it, or between a number and it,
//! is never (`None`): the median of 3, 5, 7, never, never is 7 and its third quartile is
//! never. A frequency at which a run spent no time counts as 0 ms, not as missing.
//!
//! Tasks are aligned by their index (order of creation); a task that only some runs created
//! is summarised over those, and its [`Spread::n`] says how many.

use crate::jobs::{Jobs, Percentiles};
use crate::result::*;
use risetime_kernel::units::CpuId;

/// Summarises runs that differ in their start phase only; the order of `runs` is kept in
/// [`PhaseSummary::phases`]. An empty slice gives an empty summary.
pub fn phases(runs: &[RunResult]) -> PhaseSummary {
    let task_count = runs.iter().map(|r| r.tasks.len()).max().unwrap_or(0);
    let cpu_count = runs.iter().map(|r| r.cpus.len()).max().unwrap_or(0);
    PhaseSummary {
        phases: runs.iter().map(|r| r.phase).collect(),
        tasks: (0..task_count)
            .map(|i| {
                let of: Vec<_> = runs.iter().filter_map(|r| Some((r, r.tasks.get(i)?))).collect();
                task_phases(&of)
            })
            .collect(),
        cpus: (0..cpu_count)
            .map(|i| {
                let of: Vec<_> = runs.iter().filter_map(|r| r.cpus.get(i)).collect();
                cpu_phases(&of)
            })
            .collect(),
        jobs: jobs_phases(runs),
        energy_mj: Spread::of(runs.iter().map(|r| r.energy_mj)),
    }
}

/// Summarises the jobs of each name, over the runs that had jobs of it.
fn jobs_phases(runs: &[RunResult]) -> Vec<JobsPhases> {
    let mut names: Vec<&str> = Vec::new();
    for jobs in runs.iter().flat_map(|r| &r.jobs) {
        if !names.contains(&jobs.name.as_str()) {
            names.push(&jobs.name);
        }
    }
    let of = |name: &&str| {
        let all: Vec<&Jobs> =
            runs.iter().filter_map(|r| r.jobs.iter().find(|j| j.name == *name)).collect();
        JobsPhases::of(&all)
    };
    names.iter().map(of).collect()
}

impl JobsPhases {
    /// Summarises jobs over runs of which each has them; of one run its figures as they are.
    pub fn of(all: &[&Jobs]) -> JobsPhases {
        let quantiles = |of: fn(&Jobs) -> Option<Percentiles>| {
            let none = Percentiles::default().named();
            let at = |i: usize| all.iter().map(move |j| Some(of(j)?.named()[i].1));
            none.iter().enumerate().map(|(i, (name, _))| (*name, Spread::of(at(i)))).collect()
        };
        let counts = Jobs::default().counts();
        let count = |i: usize| all.iter().map(move |j| Some(j.counts()[i].1 as f64));
        JobsPhases {
            name: all.first().map_or_else(String::new, |j| j.name.clone()),
            declared: all.first().is_some_and(|j| j.declared),
            counts: (counts.iter().enumerate())
                .map(|(i, (name, _))| (*name, Spread::of(count(i))))
                .collect(),
            response: quantiles(|j| j.response),
            lateness: quantiles(|j| j.lateness),
            longer: quantiles(|j| j.longer),
            mj_per_job: Spread::of(all.iter().map(|j| j.mj_per_job)),
            energy: quantiles(|j| j.energy),
        }
    }

    /// The number of jobs of a kind.
    pub fn count(&self, kind: &str) -> Spread {
        self.counts.iter().find(|(name, _)| *name == kind).map_or_else(Spread::default, |c| c.1)
    }
}

fn task_phases(of: &[(&RunResult, &TaskResult)]) -> TaskPhases {
    let tasks = || of.iter().map(|(_, t)| *t);
    let burst = |f: fn(&Burst) -> f64| Spread::of(tasks().map(|t| t.burst.as_ref().map(f)));
    let running = keyed(
        of,
        |(_, t)| t.spent.running.iter().map(|r| ((r.cpu, r.freq), r.ms)),
        |(cpu, freq), ms| RunningPhases { cpu, freq, ms },
    );
    let domain_running = keyed(
        of,
        |(run, t)| t.spent.running.iter().map(|r| ((domain_of(run, r.cpu), r.freq), r.ms)),
        |(cpu, freq), ms| RunningPhases { cpu, freq, ms },
    );
    let on_cpu =
        keyed(of, |(_, t)| t.spent.running.iter().map(|r| (r.cpu, r.ms)), |cpu, ms| (cpu, ms));
    let on_domain = keyed(
        of,
        |(run, t)| t.spent.running.iter().map(|r| (domain_of(run, r.cpu), r.ms)),
        |cpu, ms| (cpu, ms),
    );
    let mut lost = keyed(
        of,
        |(_, t)| t.lost.iter().map(|l| (l.state, l.ms)),
        |state, ms| LostPhases { state, ms },
    );
    let mut longer = keyed(
        of,
        |(_, t)| t.spent.longer.iter().map(|l| (l.state, l.ms)),
        |state, ms| LostPhases { state, ms },
    );
    for parts in [&mut lost, &mut longer] {
        parts.sort_by(|a, b| b.ms.sort_key().total_cmp(&a.ms.sort_key()));
    }
    TaskPhases {
        endless: tasks().any(|t| t.endless),
        comm: tasks().next().map(|t| t.comm.clone()).unwrap_or_default(),
        bursts: Spread::of(tasks().map(|t| Some(f64::from(t.bursts)))),
        ended_by: [EndedBy::FullSpeed, EndedBy::Sleep, EndedBy::Exit, EndedBy::RunEnd]
            .map(|e| {
                (e, tasks().filter(|t| t.burst.is_some_and(|b| b.ended_by == e)).count() as u32)
            })
            .into_iter()
            .filter(|&(_, n)| n > 0)
            .collect(),
        t0_ms: burst(|b| b.t0_ms),
        running_ms: burst(|b| b.running_ms),
        took_ms: burst(|b| b.took_ms),
        longer_ms: burst(|b| b.longer_ms),
        debt_ms: burst(|b| b.debt_ms),
        debt_capped_ms: burst(|b| b.debt_capped_ms),
        perf_10_90_ms: Spread::of(tasks().map(|t| t.perf_10_90_ms)),
        wait_ms: Spread::of(tasks().map(|t| Some(t.whole.wait_ms))),
        energy_mj: Spread::of(tasks().map(|t| t.whole.energy_mj)),
        migrations: Spread::of(tasks().map(|t| Some(t.whole.moves() as f64))),
        reach: reach_phases(of),
        running,
        domain_running,
        on_cpu,
        on_domain,
        lost,
        longer,
    }
}

/// Summarises all levels that some run lists; the runs that do not know one have not reached it.
fn reach_phases(of: &[(&RunResult, &TaskResult)]) -> Vec<ReachPhases> {
    let order = |level: &Level| match *level {
        Level::Util(util) => (0, CpuId(0), util),
        Level::Freq { cpu, freq } => (1, cpu, freq.0),
        Level::Capacity(capacity) => (2, CpuId(0), capacity),
    };
    let mut levels: Vec<Level> =
        of.iter().flat_map(|(_, t)| t.reach.iter().map(|r| r.what)).collect();
    levels.sort_by_key(order);
    levels.dedup();
    let after = |t: &TaskResult, level| t.reach.iter().find(|r| r.what == level)?.after_ms;
    levels
        .into_iter()
        .map(|what| ReachPhases {
            what,
            after_ms: Spread::of(of.iter().map(|(_, t)| after(t, what))),
        })
        .collect()
}

fn cpu_phases(of: &[&CpuResult]) -> CpuPhases {
    CpuPhases {
        cpu: of[0].cpu,
        domain: of[0].domain,
        capacity: of[0].capacity,
        energy_mj: Spread::of(of.iter().map(|c| c.energy_mj)),
        busy_ms: Spread::of(of.iter().map(|c| Some(c.busy_ms))),
        freq: keyed(of, |c| c.freq.iter().copied(), |freq, ms| (freq, ms)),
        idle: keyed(of, |c| c.idle.iter().map(|(s, ms)| (s.clone(), *ms)), |name, ms| (name, ms)),
    }
}

fn domain_of(run: &RunResult, cpu: CpuId) -> CpuId {
    run.cpus.iter().find(|c| c.cpu == cpu).map_or(cpu, |c| c.domain)
}

/// Sums each run's values by key and spreads them over the runs, ascending by key; a key
/// that a run does not have is 0 there.
fn keyed<'a, T, K: Ord + Clone, I: Iterator<Item = (K, f64)>, O>(
    of: &'a [T],
    values: impl Fn(&'a T) -> I,
    make: impl Fn(K, Spread) -> O,
) -> Vec<O> {
    let sums: Vec<std::collections::BTreeMap<K, f64>> = of
        .iter()
        .map(|t| {
            let mut m = std::collections::BTreeMap::new();
            for (k, v) in values(t) {
                *m.entry(k).or_insert(0.0) += v;
            }
            m
        })
        .collect();
    let keys: std::collections::BTreeSet<K> = sums.iter().flat_map(|m| m.keys().cloned()).collect();
    keys.into_iter()
        .map(|k| {
            let spread = Spread::of(sums.iter().map(|m| Some(m.get(&k).copied().unwrap_or(0.0))));
            make(k, spread)
        })
        .collect()
}

impl Spread {
    /// The spread of `values`; `None` is "never". No values at all: everything `None`.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Spread {
        let mut x: Vec<f64> = values.into_iter().map(|v| v.unwrap_or(f64::INFINITY)).collect();
        x.sort_by(f64::total_cmp);
        Spread {
            n: x.len() as u32,
            never: x.iter().filter(|v| v.is_infinite()).count() as u32,
            min: quantile(&x, 0),
            q1: quantile(&x, 1),
            median: quantile(&x, 2),
            q3: quantile(&x, 3),
            max: quantile(&x, 4),
        }
    }
    /// The key that sorts medians, largest first; without a median before everything.
    fn sort_key(&self) -> f64 {
        self.median.unwrap_or(f64::INFINITY)
    }
}

/// The `quarter`-th quarter of sorted values (0 = minimum, 4 = maximum).
fn quantile(x: &[f64], quarter: usize) -> Option<f64> {
    let h = quarter * x.len().checked_sub(1)?;
    let (low, rest) = (x[h / 4], h % 4);
    let value = if rest == 0 {
        low
    } else {
        let high = x[h / 4 + 1];
        low + (high - low) * rest as f64 / 4.0
    };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_kernel::units::{CpuId, KHz, Span};
    use risetime_trace::BackendKind;

    fn spread(values: &[Option<f64>]) -> [Option<f64>; 5] {
        let s = Spread::of(values.iter().copied());
        [s.min, s.q1, s.median, s.q3, s.max]
    }

    #[test]
    fn quantiles() {
        let some = |x: &[f64]| x.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(spread(&some(&[3.0])), [Some(3.0); 5]);
        let odd = some(&[9.0, 1.0, 5.0, 7.0, 3.0]);
        assert_eq!(spread(&odd).to_vec(), some(&[1.0, 3.0, 5.0, 7.0, 9.0]));
        // Even: the median is the mean of the two middle values, quartiles lie between values.
        let even = some(&[4.0, 1.0, 2.0, 10.0]);
        assert_eq!(spread(&even).to_vec(), some(&[1.0, 1.75, 3.0, 5.5, 10.0]));
        assert_eq!(spread(&[]), [None; 5]);
    }

    #[test]
    fn never_is_later_than_any_time() {
        let x = [None, Some(5.0), Some(3.0), None, Some(7.0)];
        assert_eq!(spread(&x), [Some(3.0), Some(5.0), Some(7.0), None, None]);
        let s = Spread::of(x);
        assert_eq!((s.n, s.never), (5, 2));
        // Half of the runs never got there: no median.
        assert_eq!(spread(&x[..4])[2], None);
        assert_eq!(spread(&[None, None]), [None; 5]);
    }

    fn run(phase_us: u64, running: &[(u32, u64, f64)], level: Option<f64>) -> RunResult {
        let cpu = |id, domain| CpuResult {
            cpu: CpuId(id),
            domain: CpuId(domain),
            told: CpuId(id),
            capacity: 512,
            energy_mj: Some(1.0),
            freq: vec![(KHz(500), phase_us as f64)],
            idle: vec![("wfi".to_owned(), 2.0)],
            busy_ms: 1.0,
        };
        let running = running.iter().map(|&(cpu, freq, ms)| RunningAt {
            cpu: CpuId(cpu),
            freq: KHz(freq),
            ms,
        });
        let task = TaskResult {
            task: Default::default(),
            comm: "t".to_owned(),
            endless: true,
            policies: Vec::new(),
            bursts: 1,
            burst: Some(Burst {
                t0_ms: 0.0,
                t1_ms: 1.0,
                end_ms: 1.0,
                ended_by: if level.is_some() { EndedBy::FullSpeed } else { EndedBy::RunEnd },
                running_ms: 1.0,
                took_ms: 1.0,
                longer_ms: 0.0,
                debt_ms: phase_us as f64,
                debt_capped_ms: 0.0,
                debt_affinity_ms: 0.0,
            }),
            reach: vec![Reach { what: Level::Util(450), after_ms: level }],
            perf_10_90_ms: None,
            spent: Spent { running: running.collect(), ..Spent::default() },
            whole: Spent::default(),
            util_residency: Vec::new(),
            migrations: Vec::new(),
            lost: vec![
                Lost { state: "opp_climb", ms: 2.0 },
                Lost { state: "lowest_opp", ms: phase_us as f64 },
            ],
            reservation: None,
            stretch: crate::Stretch::default(),
            looked_for: None,
        };
        RunResult {
            known: Default::default(),
            cautions: Vec::new(),
            quotas: Vec::new(),
            heat: Vec::new(),
            cooling: Vec::new(),
            pieces: Vec::new(),
            policy: String::new(),
            backend: BackendKind::Sim,
            platform: String::new(),
            workload: String::new(),
            kernel_release: String::new(),
            seed: 1,
            phase: Span::from_us(phase_us),
            settings: Default::default(),
            end_ms: 10.0,
            tasks: vec![task],
            lead: 0,
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 2)],
            latency: Vec::new(),
            waits: Vec::new(),
            wakes: Default::default(),
            freq_changes: 0,
            work_ms: 0.0,
            exited: (0, 0),
            makespan_ms: None,
            jobs: Vec::new(),
            energy_mj: Some(3.0),
            notes: Vec::new(),
        }
    }

    /// Runs differ: another CPU of one domain, a frequency that one run never had, a level never reached,
    /// a task that only one run has.
    #[test]
    fn figures_are_aligned_by_key() {
        let mut runs = vec![
            run(0, &[(0, 500, 4.0), (2, 900, 1.0)], Some(7.0)),
            run(10, &[(1, 500, 6.0)], Some(9.0)),
            run(20, &[(0, 500, 1.0), (1, 500, 1.0)], None),
        ];
        let second = runs[1].tasks[0].clone();
        runs[1].tasks.push(second);
        let s = phases(&runs);
        assert_eq!(s.phases, [0, 10, 20].map(Span::from_us));
        assert_eq!((s.tasks.len(), s.tasks[1].debt_ms.n), (2, 1));
        let t = &s.tasks[0];
        let medians = |r: &[RunningPhases]| {
            r.iter().map(|r| (r.cpu.0, r.freq.0, r.ms.median, r.ms.max)).collect::<Vec<_>>()
        };
        assert_eq!(
            medians(&t.running),
            [
                (0, 500, Some(1.0), Some(4.0)),
                (1, 500, Some(1.0), Some(6.0)),
                (2, 900, Some(0.0), Some(1.0))
            ]
        );
        assert_eq!(
            medians(&t.domain_running),
            [(0, 500, Some(4.0), Some(6.0)), (2, 900, Some(0.0), Some(1.0))]
        );
        assert_eq!(t.on_domain[0].1.median, Some(4.0));
        assert_eq!(t.reach[0].after_ms.median, Some(9.0));
        assert_eq!(t.reach[0].after_ms.never, 1);
        // A level that one run alone knows: the others have not reached it.
        let level = Level::Freq { cpu: CpuId(2), freq: KHz(900) };
        runs[2].tasks[0].reach.push(Reach { what: level, after_ms: Some(3.0) });
        let reach = phases(&runs).tasks.remove(0).reach;
        assert_eq!(reach.len(), t.reach.len() + 1);
        let alone =
            reach.iter().find(|r| r.what == level).map(|r| (r.after_ms.n, r.after_ms.never));
        assert_eq!(alone, Some((3, 2)));
        assert_eq!(t.ended_by, [(EndedBy::FullSpeed, 2), (EndedBy::RunEnd, 1)]);
        assert_eq!(t.lost.iter().map(|l| l.state).collect::<Vec<_>>(), ["lowest_opp", "opp_climb"]);
        assert_eq!(s.cpus[2].freq[0].1.median, Some(10.0));
        assert_eq!(s.energy_mj.median, Some(3.0));
        assert_eq!(phases(&[]), PhaseSummary::default());
    }
}
