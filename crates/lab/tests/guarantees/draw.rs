//! Random files of needs, whether a plan for them is guaranteed, and whether it then keeps what it says.
//!
//! ```text
//! seed ──> needs (TOML) ──> plan ──> guaranteed? ──> run from other phases, with other seeds ──> misses: none
//!              │ 10 % more runtime
//!              └──> plan ──> no miss in its runs? ──> then the file itself ought to be guaranteed
//! ```

use risetime_deploy::admit::Scheduler;
use risetime_deploy::plan::Plan;
use risetime_deploy::promise::{Company, Promise, Trial, Tried};
use risetime_kernel::units::Span;
use risetime_lab::deploy::{Asked, Attempt, plan_tried, trial};
use risetime_model::settings::Value;
use risetime_model::{Needs, Platform};
use risetime_sim::Simulator;
use risetime_vm::Vm;
use std::fmt::Write;
use std::sync::Arc;

pub(crate) const PLATFORMS: [&str; 4] = ["rpi4", "odroid-xu4", "hikey960", "laptop4"];
pub(crate) const KERNELS: [&str; 3] = ["linux-6.12", "linux-7.2", "linux-7.3"];
/// The first line of the record; the last column, whether it keeps with 10 % more runtime, is of every fifth file.
pub(crate) const HEAD: &str =
    "seed,platform,kernel,scheduler,tasks,load_percent,guaranteed,proven,kept,due,missed,more_kept";

/// The first line of the record of plans on real kernels.
pub(crate) const VM_HEAD: &str = "seed,platform,kernel,due,missed,late,first";

/// The rows of a record; lines with `#` say by which version, and when, those after them were made.
pub(crate) fn rows(record: &str) -> Vec<Vec<&str>> {
    let lines = record.lines().skip(1).filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(',').collect()).collect()
}

/// Numbers that follow from a seed alone.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A drawn case.
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) platform: &'static str,
    pub(crate) asked: Asked,
    pub(crate) scheduler: &'static str,
    tasks: Vec<Drawn>,
    pub(crate) load_percent: u64,
}

enum Drawn {
    Job { runtime: u64, period: u64, deadline: u64 },
    Share { percent: u64 },
    Period(u64),
    Priority(u64),
}

impl Case {
    pub(crate) fn of(seed: u64) -> Case {
        let mut dice = Dice::new(seed);
        let platform = PLATFORMS[dice.below(4) as usize];
        let kernel = KERNELS[dice.below(3) as usize];
        let (scheduler, schedulers) = match dice.below(5) {
            0 | 1 => ("auto", vec![Scheduler::Edf, Scheduler::Dm]),
            2 => ("edf", vec![Scheduler::Edf]),
            3 => ("rm", vec![Scheduler::Rm]),
            _ => ("dm", vec![Scheduler::Dm]),
        };
        let own = Platform::load(platform).expect("built in");
        let whole: f64 = own
            .cpus()
            .filter_map(|c| own.domain_of(c))
            .map(|d| own.domains[d].capacity.0 as f64 / 1024.0)
            .sum();
        let part = 0.1 + 0.8 * dice.unit();
        let n = 2 + dice.below(12) as usize;
        let constrained = dice.below(3) == 0;
        let mut left = (part * whole).min(0.6 * n as f64);
        let mut tasks = Vec::new();
        for i in 0..n {
            // UUniFast, no task above 60 %.
            let rest = (n - i - 1) as f64;
            let next = if rest > 0.0 { left * dice.unit().powf(1.0 / rest) } else { 0.0 };
            let own = (left - next).clamp(0.001, 0.6);
            left -= own;
            if dice.below(8) == 0 {
                tasks.push(Drawn::Share { percent: ((100.0 * own) as u64).max(1) });
                continue;
            }
            let period = (2000.0 * (100f64.ln() * dice.unit()).exp()) as u64 / 500 * 500;
            let runtime = ((own * period as f64) as u64).max(20);
            let deadline = match constrained {
                true => {
                    let least = (2 * runtime).max(period / 2).min(period);
                    least + dice.below(period - least + 1)
                }
                false => period,
            };
            tasks.push(Drawn::Job { runtime, period, deadline });
        }
        if dice.below(10) < 3 {
            tasks.push(match dice.below(2) {
                0 => Drawn::Period(1000 * (5 + dice.below(100))),
                _ => Drawn::Priority(1 + dice.below(40)),
            });
        }
        let asked = Asked { policy: kernel.into(), schedulers, ..Asked::new() };
        Case { seed, platform, asked, scheduler, tasks, load_percent: (100.0 * part) as u64 }
    }

    /// The file, with so many % more runtime. Rounding: up.
    pub(crate) fn needs(&self, more_percent: u64) -> Needs {
        Needs::parse(&self.text(more_percent), "drawn.toml").expect("it is one")
    }

    /// Returns the file as TOML.
    pub(crate) fn text(&self, more_percent: u64) -> String {
        let mut out = format!("schema = 1\nname = \"drawn-{}\"\n", self.seed);
        for (i, task) in self.tasks.iter().enumerate() {
            let more = |n: u64| (n * (100 + more_percent)).div_ceil(100);
            let _ = write!(out, "[[task]]\nname = \"t{i}\"\n");
            let _ = match task {
                Drawn::Job { runtime, period, deadline } => {
                    let runtime = more(*runtime).min(*deadline);
                    writeln!(
                        out,
                        "period_us = {period}\nruntime_us = {runtime}\ndeadline_us = {deadline}"
                    )
                }
                Drawn::Share { percent } => {
                    writeln!(out, "share_percent = {}", more(*percent).min(100))
                }
                Drawn::Period(us) => writeln!(out, "period_us = {us}"),
                Drawn::Priority(priority) => writeln!(out, "priority = {priority}"),
            };
        }
        out
    }

    pub(crate) fn tried(&self, needs: &Needs) -> Tried {
        plan_tried(needs, &self.machine(), &self.asked, &mut |_, _| {}).expect("it can be asked")
    }

    pub(crate) fn machine(&self) -> Arc<Platform> {
        Arc::new(Platform::load(self.platform).expect("built in"))
    }

    /// Runs that the plan has not seen: the company, the start phase, what came of it.
    pub(crate) fn runs_again(
        &self,
        needs: &Needs,
        plan: &Plan,
        length: Span,
    ) -> Vec<(Company, u64, Trial)> {
        let one = |(company, phase, seed)| {
            let asked = Asked { seed: self.seed * 100 + seed, ..self.asked.clone() };
            let attempt = Attempt { company, phase, length };
            let t = trial(&Simulator, needs, &self.machine(), plan, &asked, attempt);
            (company, phase, t.expect("it runs"))
        };
        let others = [
            (Company::Busy, 5, 11),
            (Company::Alone, 6, 12),
            (Company::Alone, 9, 13),
            (Company::Busy, 0, 14),
        ];
        others.map(one).into()
    }

    /// Jobs that are due, and missed, in those.
    pub(crate) fn again(&self, needs: &Needs, plan: &Plan, length: Span) -> (u64, u64) {
        let runs = self.runs_again(needs, plan, length);
        let missed = |t: &Trial| t.missed + u64::from(t.refused.is_some());
        (runs.iter().map(|r| r.2.due).sum(), runs.iter().map(|r| missed(&r.2)).sum())
    }

    /// A line of the record of plans on real kernels; `None`: this one is not guaranteed on the virtual machine, whose frequencies a kthread
    /// changes, and whose costs are the profile `vm`.
    pub(crate) fn vm_line(&self) -> Option<String> {
        let needs = self.needs(0);
        let mut platform = Platform::clone(&self.machine());
        platform.domains.iter_mut().for_each(|d| d.fast_switch = false);
        let platform = Arc::new(platform);
        let mut asked = self.asked.clone();
        asked.set.push(("noise".into(), Value::Name("vm".into())));
        let tried = plan_tried(&needs, &platform, &asked, &mut |_, _| {}).expect("it can be asked");
        let plan = tried.plan.as_ref().ok().filter(|_| tried.guaranteed())?;
        let release = self.asked.policy.trim_start_matches("linux-");
        let cache = risetime_vm::fetch::Cache::from_env().expect("a cache");
        let (vm, kernel) =
            Vm::find(&cache, Some(release), risetime_sim::catalogue()).expect("a kernel");
        let length = Span::from_ms(2000);
        let attempt = Attempt { company: Company::Busy, phase: 0, length };
        let t = trial(&vm, &needs, &platform, plan, &asked, attempt);
        let t = t.unwrap_or_else(|e| panic!("{}: {e}", self.seed));
        let first = t.first.map_or(String::new(), |m| format!("{}@{:.3}", m.task, m.due_ms));
        let late = t.late.join(" ");
        let (seed, platform, name) = (self.seed, self.platform, kernel.release);
        Some(format!("{seed},{platform},{name},{},{},{late},{first}", t.due, t.missed))
    }

    /// A line of the record.
    pub(crate) fn line(&self) -> String {
        let needs = self.needs(0);
        let tried = self.tried(&needs);
        let proven = tried.plan.as_ref().is_ok_and(|p| p.used.iter().all(|u| u.proof.is_ok()));
        let kept = tried.plan.is_ok() && tried.promise.as_ref().is_none_or(Promise::kept);
        let (due, missed) = match (&tried.plan, &tried.promise) {
            (Ok(plan), Some(promise)) if tried.guaranteed() => {
                self.again(&needs, plan, promise.length)
            }
            _ => (0, 0),
        };
        let kept_with_more = || {
            let more = self.tried(&self.needs(10));
            u8::from(more.plan.is_ok() && more.promise.as_ref().is_none_or(Promise::kept))
        };
        let more = match self.seed % 5 {
            0 => kept_with_more().to_string(),
            _ => String::new(),
        };
        let bit = |b: bool| u8::from(b);
        format!(
            "{},{},{},{},{},{},{},{},{},{due},{missed},{}",
            self.seed,
            self.platform,
            self.asked.policy,
            self.scheduler,
            self.tasks.len(),
            self.load_percent,
            bit(tried.guaranteed()),
            bit(proven),
            bit(kept),
            more
        )
    }
}
