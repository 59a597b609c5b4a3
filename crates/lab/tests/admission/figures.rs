//! Random task sets, what each admission test says of them, and whether they then miss deadlines in the simulator.
//!
//! ```text
//! one CPU of each kind of the four platforms   EDF (SCHED_DEADLINE), RM and DM (SCHED_FIFO)
//! all CPUs of each platform                    global EDF (SCHED_DEADLINE)
//! ```
//!
//! Highest frequency all the time, no noise, no costs, no idle states. All first jobs come together, which is the worst case on one CPU; periods
//! divide 120 ms, and two such hyperperiods are run. Limits that the kernel has beside the schedulers are off
//! (`sched_rt_runtime_us`, the fair servers): what its own admission says is in a column.

use risetime_deploy::admit::{Answer, Scheduler, TESTS};
use risetime_deploy::{Drawn, Load, Periods, Share, Utilisations, draw};
use risetime_kernel::deadline::{BW_UNIT, dl_overflow, to_ratio};
use risetime_kernel::units::{Capacity, CpuId, Span};
use risetime_lab::{Request, run};
use risetime_model::platform::{Domain, Topology};
use risetime_model::taskset::{RtTask, Scheduling, Server, Step, TaskSet};
use risetime_model::{Experiment, Platform, Workload};
use risetime_sim::Simulator;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// ODROID-XU4, Raspberry Pi 4, ZCU102, Jetson AGX Xavier.
pub(crate) const PLATFORMS: [&str; 4] = ["odroid-xu4", "rpi4", "zcu102", "xavier-agx"];
/// What tasks take together, in % of what the CPUs have.
pub(crate) const PERCENT: [u32; 17] =
    [10, 20, 30, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 105];
/// Divisors of the hyperperiod, in ms.
const PERIODS: [u64; 9] = [10, 12, 15, 20, 24, 30, 40, 60, 120];
const HYPERPERIOD: Span = Span::from_ms(120);
/// So long before the first jobs: longer than any deadline.
const LEAD: Span = Span::from_ms(130);

/// What a task asks SCHED_DEADLINE for beyond what it needs. A job that comes to the ns when the reservation of the one before
/// ends finds that still valid (`dl_time_before`), and what is left of it counts as nothing below 1 << DL_SCALE ns: it would go
/// on with that instead of a new period's runtime. Timers of real kernels are some ns late, and it does not happen.
const MARGIN: Span = Span::from_us(2);

/// CPUs and a scheduler on them.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) scheduler: Scheduler,
    pub(crate) constrained: bool,
    speeds: Vec<Capacity>,
    template: Experiment,
}

/// What was found: by case, % and test.
pub(crate) type Counts = BTreeMap<(String, u32, String), Row>;

/// Of the sets of a case and utilisation, what one test says of how many, and how many of these missed a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) admitted: u64,
    pub(crate) admitted_missed: u64,
    pub(crate) refused: u64,
    pub(crate) refused_missed: u64,
    pub(crate) unknown: u64,
    pub(crate) unknown_missed: u64,
}

impl Row {
    fn add(&mut self, other: Row) {
        self.admitted += other.admitted;
        self.admitted_missed += other.admitted_missed;
        self.refused += other.refused;
        self.refused_missed += other.refused_missed;
        self.unknown += other.unknown;
        self.unknown_missed += other.unknown_missed;
    }
    pub(crate) fn sets(&self) -> u64 {
        self.admitted + self.refused + self.unknown
    }
}

/// The kernel's own admission of deadline tasks, beside the tests: 95 % of the CPUs' capacity.
pub(crate) const KERNEL: &str = "dl_overflow";

/// All cases by name.
pub(crate) fn cases() -> Vec<(String, Case)> {
    let mut all = Vec::new();
    for name in PLATFORMS {
        let platform = Platform::load(name).expect("built in");
        // One domain of each kind.
        let mut kinds: Vec<&Domain> = Vec::new();
        for d in &platform.domains {
            if kinds.iter().all(|known| known.capacity != d.capacity) {
                kinds.push(d);
            }
        }
        for d in kinds {
            let alone = Domain { cpus: vec![CpuId(0)], cluster: 0, ..d.clone() };
            let one = Platform {
                domains: vec![alone],
                topology: Topology::default(),
                thermal: Vec::new(),
                ..platform.clone()
            };
            for (word, scheduler, constrained) in [
                ("edf", Scheduler::Edf, false),
                ("edf-constrained", Scheduler::Edf, true),
                ("rm", Scheduler::Rm, false),
                ("dm-constrained", Scheduler::Dm, true),
            ] {
                let case = Case::new(one.clone(), scheduler, constrained);
                all.push((format!("{name}-{} {word}", d.capacity.0), case));
            }
        }
        for (word, constrained) in [("global-edf", false), ("global-edf-constrained", true)] {
            let case = Case::new(platform.clone(), Scheduler::GlobalEdf, constrained);
            all.push((format!("{name} {word}"), case));
        }
    }
    all
}

impl Case {
    fn new(mut platform: Platform, scheduler: Scheduler, constrained: bool) -> Case {
        // Leaving an idle state takes time, which no test knows of: it has to be in what tasks declare.
        platform.domains.iter_mut().for_each(|d| d.idle.clear());
        let capacity =
            |cpu| platform.domain_of(cpu).map_or(Capacity(0), |d| platform.domains[d].capacity);
        let mut speeds: Vec<Capacity> = platform.cpus().map(capacity).collect();
        speeds.sort_unstable_by(|a, b| b.cmp(a));
        let request = Request {
            policies: vec![
                "mainline+governor=performance+sched_rt_runtime_us=-1+fair_server_runtime_ns=0"
                    .into(),
            ],
            ..Request::new("periodic", "rpi4")
        };
        let template = request.experiments().expect("built in").remove(0);
        let platform = Arc::new(platform);
        let settings = risetime_sim::resolve(&platform, &template.policy).expect("they fit");
        let duration = Span(LEAD.0 + 2 * HYPERPERIOD.0 + 1_000_000);
        let template = Experiment { platform, settings, duration, ..template };
        Case { scheduler, constrained, speeds, template }
    }

    /// The set of that seed that takes `percent` of the CPUs. `None`: none was found.
    pub(crate) fn set(&self, percent: u32, seed: u64) -> Option<TaskSet> {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |n: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % n
        };
        let m = self.speeds.len() as u64;
        // On one CPU as many as there are periods at most: no two are the same, so that their order is given.
        let tasks = if m == 1 { 2 + next(5) } else { m + 1 + next(2 * m) } as usize;
        let whole: u64 = self.speeds.iter().map(|s| s.0).sum();
        let what = Drawn {
            tasks,
            utilisation: whole as f64 / 1024.0 * f64::from(percent) / 100.0,
            by: Utilisations::Randfixedsum,
            periods: Periods { from: Span(1 << 30), to: Span(1 << 30), step: Span(1) },
        };
        let drawn = draw(&what, seed)?;
        let mut left: Vec<u64> = PERIODS.to_vec();
        let mut set = TaskSet { name: "drawn".into(), ..TaskSet::default() };
        for task in drawn {
            let at = next(left.len() as u64) as usize;
            let ms = if m == 1 { left.swap_remove(at) } else { left[at] };
            let share = task.work.0 as f64 / task.period.0 as f64;
            let period = Span::from_ms(ms);
            let work = Span(((share * ms as f64 * 1000.0).round() as u64).max(2) * 1000);
            // What it needs on the slowest CPU, where there is one alone.
            let least = work.0 * 1024 / if m == 1 { self.speeds[0].0 } else { 1024 };
            let room = (period.0.saturating_sub(least)) / 1000;
            let early = if self.constrained && room > 0 { next(room) * 1000 } else { 0 };
            let deadline = Span(period.0 - early);
            let code = vec![Step::Run(work, None)];
            let runtime = Span(work.0 + MARGIN.0).min(deadline);
            let server = Some(Server { runtime, deadline, period });
            let name = task.name;
            set.tasks.push(RtTask { name, period, deadline, code, server, ..RtTask::default() });
        }
        // A deadline task with a runtime above its deadline is taken by no kernel.
        set.tasks.iter().all(|t| t.work() <= t.deadline).then_some(set)
    }

    /// What each test says.
    pub(crate) fn answers(&self, set: &TaskSet) -> Vec<(&'static str, Answer)> {
        let load =
            |t: &RtTask| Load { runtime: t.work().0, period: t.period.0, deadline: t.deadline.0 };
        let loads: Vec<Load> = set.tasks.iter().map(load).collect();
        let tests = TESTS.iter().filter(|t| t.of.contains(&self.scheduler));
        let mut all: Vec<(&str, Answer)> =
            tests.map(|t| (t.name, (t.ask)(&loads, &self.speeds, self.scheduler).answer)).collect();
        if matches!(self.scheduler, Scheduler::Edf | Scheduler::GlobalEdf) {
            let total = loads.iter().map(|l| to_ratio(Span(l.period), Span(l.runtime))).sum();
            let whole = self.speeds.iter().map(|s| s.0).sum();
            let over = dl_overflow(BW_UNIT * 95 / 100, whole, 0, 0, total);
            all.push((KERNEL, if over { Answer::Refused } else { Answer::Admitted }));
        }
        all
    }

    /// As it is run.
    pub(crate) fn text(&self, set: &TaskSet) -> String {
        let how = match self.scheduler {
            Scheduler::Edf | Scheduler::GlobalEdf => Scheduling::Deadline,
            Scheduler::Rm => Scheduling::Rm,
            Scheduler::Dm => Scheduling::Dm,
        };
        set.to_rtapp(how, Some(LEAD)).expect("nothing is shared")
    }

    /// Counts the jobs that miss their deadlines.
    pub(crate) fn missed(&self, set: &TaskSet) -> u64 {
        let text = self.text(set);
        let workload =
            Workload::parse(&text, "drawn.json").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let e = Experiment { workload: Arc::new(workload), ..self.template.clone() };
        let run = run(&Simulator, &e, Default::default(), None);
        let result = run.unwrap_or_else(|e| panic!("{e}\n{text}")).result;
        result.jobs.iter().map(|job| job.missed()).sum()
    }

    /// Sets of these seeds.
    pub(crate) fn count(&self, percent: u32, seeds: std::ops::Range<u64>) -> Vec<(String, Row)> {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for set in seeds.filter_map(|seed| self.set(percent, seed * 1000 + u64::from(percent))) {
            let missed = u64::from(self.missed(&set) > 0);
            for (test, answer) in self.answers(&set) {
                let row = rows.entry(test.to_string()).or_default();
                row.add(match answer {
                    Answer::Admitted => {
                        Row { admitted: 1, admitted_missed: missed, ..Row::default() }
                    }
                    Answer::Refused => Row { refused: 1, refused_missed: missed, ..Row::default() },
                    Answer::Unknown => Row { unknown: 1, unknown_missed: missed, ..Row::default() },
                });
            }
        }
        rows.into_iter().collect()
    }
}

/// What the set really takes, in % of the CPUs: how far rounding to µs moves it.
pub(crate) fn share(set: &TaskSet) -> f64 {
    Share::sum(set.tasks.iter().map(|t| Share::of(t.work().0, t.period.0))).as_f64()
}

pub(crate) fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/admission/counts.csv")
}

const HEAD: &str =
    "case,percent,test,admitted,admitted_missed,refused,refused_missed,unknown,unknown_missed";

pub(crate) fn to_csv(counts: &Counts) -> String {
    let mut out = format!("{HEAD}\n");
    for ((case, percent, test), r) in counts {
        let _ = writeln!(
            out,
            "{case},{percent},{test},{},{},{},{},{},{}",
            r.admitted, r.admitted_missed, r.refused, r.refused_missed, r.unknown, r.unknown_missed
        );
    }
    out
}

pub(crate) fn from_csv(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| *line != HEAD && !line.is_empty()) {
        let cells: Vec<&str> = line.split(',').collect();
        let n = |i: usize| cells[i].parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        let row = Row {
            admitted: n(3),
            admitted_missed: n(4),
            refused: n(5),
            refused_missed: n(6),
            unknown: n(7),
            unknown_missed: n(8),
        };
        let key = (cells[0].to_string(), n(1) as u32, cells[2].to_string());
        counts.entry(key).or_default().add(row);
    }
    counts
}

/// Returns which scheduler a case is of: the second word of its name.
pub(crate) fn scheduler_of(case: &str) -> &str {
    case.split_once(' ').map_or(case, |(_, word)| word)
}

/// Sums over platforms: by scheduler and test, then by %.
pub(crate) fn by_test(counts: &Counts) -> BTreeMap<(String, String), BTreeMap<u32, Row>> {
    let mut all: BTreeMap<(String, String), BTreeMap<u32, Row>> = BTreeMap::new();
    for ((case, percent, test), row) in counts {
        let key = (scheduler_of(case).to_string(), test.clone());
        all.entry(key).or_default().entry(*percent).or_default().add(*row);
    }
    all
}

/// The page's table.
pub(crate) fn table(counts: &Counts) -> String {
    let mut out = String::from(
        "| scheduler | test | sets | admitted | of them missed | refused | of them missed | not known | of them missed |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for ((scheduler, test), rows) in by_test(counts) {
        let mut sum = Row::default();
        rows.values().for_each(|r| sum.add(*r));
        let _ = writeln!(
            out,
            "| {scheduler} | `{test}` | {} | {} | {} | {} | {} | {} | {} |",
            sum.sets(),
            sum.admitted,
            sum.admitted_missed,
            sum.refused,
            sum.refused_missed,
            sum.unknown,
            sum.unknown_missed
        );
    }
    out
}

/// Sets in all, each counted once.
pub(crate) fn sets(counts: &Counts) -> u64 {
    let mut most: BTreeMap<(&String, u32), u64> = BTreeMap::new();
    for ((case, percent, _), row) in counts {
        let n = most.entry((case, *percent)).or_default();
        *n = (*n).max(row.sets());
    }
    most.values().sum()
}
