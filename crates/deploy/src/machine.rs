//! Limits of a machine: its most and its promised least, and what of it is left to the tasks of one
//! CPU.
//!
//! ```text
//! time of a CPU at its highest frequency
//!   a job       (work · 1024 / speed + clock) / (1 − ρ) + 2 switches        ρ = interrupt / tick + Σ interrupt / period
//!   once        jitter of timers, an interrupt of each kind, the way out of an idle state, a frequency on its way:
//!               a deadline is so much earlier; under EDF twice the way out, which comes late and makes who wakes then due later
//! ```
//!
//! Frequencies. Under FIFO the lowest that there may be counts: schedutil wants the highest where a task wakes, but within its rate
//! limit it takes no note of that, and alone on its CPUs nobody asks it again before the task sleeps. Under SCHED_DEADLINE it gives
//! at least the bandwidth of the active reservations, after a change: either all budgets, each with what it may lose in a change, fit
//! (GRUB-PA: Scordino, Abeni and Lelli 2018), or the work fits at the lowest speed that a budget asks for.
//!
//! The kernel charges a budget by the frequency at which it looks, at each tick. Of a rise in between, slow work is charged as if it had
//! been fast:
//!
//! ```text
//! budget ≥ job · fastest / floor + min(change, tick) · (fastest − slowest)       floor: the speed that the budget itself asks for
//!        ≥ job · fastest / slowest                                             whichever is less
//! ```
//!
//! What passes by the clock (`runtime`) takes as long at any speed: it is charged at most as at the highest, and a rise of the frequency
//! costs it nothing more.
//!
//! The fair server of a CPU takes 50 ms of a second from real-time tasks where ordinary ones starve: where real-time ones may run for
//! 950 ms within some second.

use crate::Load;
use crate::admit::{self, Answer, Scheduler, Test};
use risetime_kernel::units::{Capacity, CpuId, KHz, Span};
use std::cmp::Reverse;

/// A machine, as the analysis has it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Bandwidth that deadline tasks may reserve of a CPU of capacity 1024, 2²⁰ = all of it;
    /// `None`: no limit.
    pub max_bw: Option<u64>,
    /// Runtime and period of each CPU's fair server; its part counts as reserved.
    pub fair_server: Option<(Span, Span)>,
    /// Real-time tasks of a CPU may have the first in each of the second, and are throttled then.
    pub rt_limit: Option<(Span, Span)>,
    /// Time from a timer's expiry to the wakeup of its task, at most.
    pub timer: Span,
    /// Time of a switch to a task, at most.
    pub switch: Span,
    /// Time that an interrupt of a timer, the tick too, takes from the running task, at most.
    pub interrupt: Span,
    /// Between two ticks.
    pub tick: Span,
    /// Other interference (measured): at once at most, and of each second on the average.
    pub noise: (Span, Span),
    /// CPUs by number.
    pub cpus: Vec<Cpu>,
}

/// One CPU of it.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// Number of the CPU.
    pub id: CpuId,
    /// The CPU's frequency domain.
    pub domain: usize,
    /// Capacity by which the kernel's admission goes.
    pub capacity: Capacity,
    /// The frequencies of the CPU and its speed at each, of 1024, ascending; not empty.
    pub speeds: Vec<(KHz, Capacity)>,
    /// Time from a decision to a frequency.
    pub change: Span,
    /// True if the CPU's speed is at least the bandwidth of active deadline tasks.
    pub follows_deadlines: bool,
    /// Runtimes are charged by frequency.
    pub invariant: bool,
    /// Runtime and period of a kthread that may count as reserved.
    pub kthread: Option<(Span, Span)>,
    /// Residency and exit latency of its idle states.
    pub idle: Vec<(Span, Span)>,
    /// The plan may put tasks there.
    pub usable: bool,
}

/// A task on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// ns of a CPU of capacity 1024 at its highest frequency, its margin included.
    pub work: u64,
    /// ns that pass by the clock beside that, at any speed, their margin included.
    pub clock: u64,
    /// ns.
    pub period: u64,
    /// ns, from release.
    pub deadline: u64,
}

impl Need {
    /// The time of a job on a CPU of capacity 1024 at its highest frequency, in ns.
    pub(crate) fn whole(&self) -> u64 {
        self.work.saturating_add(self.clock)
    }

    /// Returns the need's time where that CPU's speed is `fastest`, in ns of capacity 1024. Rounding: up.
    pub(crate) fn at(&self, fastest: Capacity) -> u64 {
        self.work.saturating_add(scaled(self.clock, fastest.0, 1024))
    }
}

/// A reservation, in ns, whose deadline is its period: the task's deadline, or what is sure to pass between two of its wakeups, if that
/// is less.
///
/// With a longer period than deadline a task that wakes after the deadline and before the next period is throttled until then
/// (`dl_check_constrained_dl`): late again and again, wherever in its period it was when it asked. With a period longer than what passes
/// between two wakeups a job may come under the deadline of the one before, sooner than those of others that it keeps waiting: up to the
/// next tick, where the kernel looks whether a runtime is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Runtime, on a CPU of capacity 1024 at its highest frequency.
    pub runtime: u64,
    /// The period of the reservation, which is its deadline, too.
    pub period: u64,
}

/// A proof that the tasks of one CPU are in time.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Test that admits the tasks.
    pub test: &'static Test,
    /// Reason that the test gives.
    pub reason: String,
    /// Reservations, in the order of the tasks; empty under fixed priorities.
    pub budgets: Vec<Budget>,
}

/// Margin of a budget above what it needs, in 1/100, where there is room.
const MARGIN: u64 = 5;

impl Machine {
    /// The bandwidth that deadline tasks may reserve on that CPU, 2²⁰ = a CPU of capacity 1024
    /// (`__dl_overflow`). Rounding: down.
    pub fn room(&self, cpu: &Cpu) -> u64 {
        let others = [self.fair_server, cpu.kthread].into_iter().flatten();
        let others: u64 = others.map(|(runtime, period)| bw(runtime.0, period.0)).sum();
        match self.max_bw {
            Some(max) => ((max * cpu.capacity.0) >> 10).saturating_sub(others),
            None => u64::MAX,
        }
    }

    /// The same machine where nothing costs anything beside the work.
    pub(crate) fn bare(&self) -> Machine {
        let none = Span(0);
        Machine {
            timer: none,
            switch: none,
            interrupt: none,
            noise: (none, none),
            fair_server: self.fair_server,
            rt_limit: None,
            ..self.clone()
        }
    }

    /// Returns the machine on which the frequency of a domain is never below `floor`.
    pub(crate) fn at_least(&self, domain: usize, floor: KHz) -> Machine {
        let mut m = self.clone();
        for cpu in m.cpus.iter_mut().filter(|c| c.domain == domain) {
            cpu.speeds.retain(|(freq, _)| *freq >= floor);
        }
        m
    }

    /// The reservations of `tasks` on that CPU, as far as the kernel admits them; `None`: the
    /// kernel does not admit even the least ones.
    pub(crate) fn reserves(&self, cpu: &Cpu, tasks: &[Need]) -> Option<Vec<Budget>> {
        let on = On::new(self, cpu, tasks);
        let bare = self.bare();
        let least = On::new(&bare, cpu, tasks);
        on.budgets(100).or_else(|| least.budgets(100)).map(|(budgets, ..)| budgets)
    }

    /// Whether `tasks` are in time on that CPU under `scheduler`, and what they have to ask for. `keys`: of each task, the lower goes
    /// first under fixed priorities. `crowded`: real-time tasks of unknown length run beside them, below.
    ///
    /// Errors: why not.
    pub fn holds(
        &self,
        cpu: &Cpu,
        tasks: &[Need],
        keys: &[u64],
        scheduler: Scheduler,
        crowded: bool,
    ) -> Result<Proof, String> {
        let on = On::new(self, cpu, tasks);
        match scheduler {
            Scheduler::Edf | Scheduler::GlobalEdf => on.edf(crowded),
            Scheduler::Rm | Scheduler::Dm => on.fixed(keys, crowded),
        }
    }
}

impl Cpu {
    /// Returns the speed of the CPU at its highest frequency, of 1024.
    pub(crate) fn fastest(&self) -> Capacity {
        self.speeds.last().map_or(Capacity(0), |(_, speed)| *speed)
    }

    /// The same CPU, always at its highest frequency and never idle.
    pub(crate) fn bare(&self) -> Cpu {
        let fastest = self.speeds.last().copied().into_iter().collect();
        Cpu { speeds: fastest, change: Span(0), idle: Vec::new(), ..self.clone() }
    }
}

impl Budget {
    /// The bandwidth of the budget, 2²⁰ = all of a CPU of capacity 1024.
    pub fn bandwidth(&self) -> u64 {
        bw(self.runtime, self.period)
    }
}

/// `to_ratio`, in 2²⁰.
fn bw(runtime: u64, period: u64) -> u64 {
    risetime_kernel::deadline::to_ratio(Span(period), Span(runtime))
}

/// `value · times / by`, rounded up.
fn scaled(value: u64, times: u64, by: u64) -> u64 {
    let product = u128::from(value) * u128::from(times);
    u64::try_from(product.div_ceil(u128::from(by.max(1)))).unwrap_or(u64::MAX)
}

/// Tasks on a CPU, with what it costs there.
struct On<'a> {
    m: &'a Machine,
    cpu: &'a Cpu,
    tasks: &'a [Need],
    slowest: u64,
    fastest: u64,
    /// Share of time that interrupts leave, in 10⁻⁶.
    left: u64,
    /// Lost once, in ns: timers and interrupts.
    once: u64,
    /// The way out of an idle state.
    exit: u64,
}

impl<'a> On<'a> {
    fn new(m: &'a Machine, cpu: &'a Cpu, tasks: &'a [Need]) -> On<'a> {
        let per = |period: u64| 1_000_000 * m.interrupt.0 / period.max(1) + 1;
        let taken: u64 = per(m.tick.0) + tasks.iter().map(|t| per(t.period)).sum::<u64>();
        let noise = m.noise.1.0 / 1000;
        // Somebody's timer is set at any time: no state that takes longer to pay off is entered.
        let next = tasks.iter().map(|t| t.period).min().unwrap_or(0);
        let exits = cpu.idle.iter().filter(|(residency, _)| residency.0 <= next);
        let once = 2 * m.timer.0 + m.interrupt.0 * (1 + tasks.len() as u64) + m.noise.0.0;
        On {
            m,
            cpu,
            tasks,
            slowest: cpu.speeds.first().map_or(1, |(_, speed)| speed.0.max(1)),
            fastest: cpu.fastest().0.max(1),
            left: 1_000_000u64.saturating_sub(taken + noise),
            once,
            exit: exits.map(|(_, exit)| exit.0).max().unwrap_or(0),
        }
    }

    /// The time that a job of `t` takes at `speed`, interrupts and switches included, in ns.
    fn takes(&self, t: &Need, speed: u64) -> u64 {
        let wall = scaled(t.work, 1024, speed).saturating_add(t.clock);
        scaled(wall, 1_000_000, self.left).saturating_add(2 * self.m.switch.0)
    }

    /// Turns the CPU's tasks into loads at `speed`.
    fn loads(&self, speed: u64) -> Vec<Load> {
        let load = |t: &Need| Load {
            runtime: self.takes(t, speed),
            period: t.period,
            deadline: t.deadline,
        };
        self.tasks.iter().map(load).collect()
    }

    /// Turns the CPU's tasks into loads at `speed` that are due `earlier` ns before their
    /// deadlines. Errors: a job that cannot be done by then.
    fn due(&self, speed: u64, earlier: u64) -> Result<Vec<Load>, String> {
        let mut loads = self.loads(speed);
        for (load, t) in loads.iter_mut().zip(self.tasks) {
            load.deadline = load.deadline.saturating_sub(earlier);
            if load.runtime > load.deadline {
                return Err(format!(
                    "a job of {} µs may take {} µs there, and {} µs may pass before it begins: due within {} µs",
                    t.whole().div_ceil(1000),
                    load.runtime.div_ceil(1000),
                    earlier.div_ceil(1000),
                    t.deadline / 1000
                ));
            }
        }
        Ok(loads)
    }

    /// The fair server as who comes first, where ordinary tasks may starve.
    fn server(&self, loads: &[Load], crowded: bool) -> Option<Load> {
        let (runtime, period) = self.m.fair_server?;
        let busy: u64 = loads.iter().map(|l| within(l, period.0)).sum();
        let starves = crowded || busy >= period.0.saturating_sub(runtime.0);
        starves.then_some(Load {
            runtime: runtime.0,
            period: period.0.saturating_sub(runtime.0).max(1),
            deadline: runtime.0,
        })
    }

    // ------------------------------------------------------------------ fixed priorities

    /// Proves them at the lowest frequency that there may be.
    fn fixed(&self, keys: &[u64], crowded: bool) -> Result<Proof, String> {
        let early = self.once + self.exit;
        let loads = self.loads(self.slowest);
        if let Some((runtime, period)) = self.m.rt_limit {
            let busy: u64 = loads.iter().map(|l| within(l, period.0)).sum();
            let allowed = runtime.0.saturating_sub(self.m.tick.0);
            if crowded || busy > allowed {
                return Err(format!(
                    "real-time tasks of this kernel are throttled after {} of {} ms (sched_rt_runtime_us)",
                    runtime.0 / 1_000_000,
                    period.0 / 1_000_000
                ));
            }
        }
        let server = self.server(&loads, crowded);
        let mut slack = u64::MAX;
        for (i, task) in self.tasks.iter().enumerate() {
            let ahead = (0..loads.len()).filter(|j| *j != i && keys[*j] <= keys[i]);
            let before: Vec<Load> = ahead.map(|j| loads[j]).chain(server).collect();
            // What is lost once counts within: while it passes, others come.
            let own = Load { runtime: loads[i].runtime.saturating_add(early), ..loads[i] };
            let response = admit::response_among(own, &before, self.m.timer.0);
            let response = response.unwrap_or(u128::MAX);
            if response > task.deadline.into() {
                let takes = match response {
                    u128::MAX => "may wait for ever behind those before it".to_string(),
                    ns => format!("may answer after {} µs", ns / 1000),
                };
                return Err(format!(
                    "a job of {} µs, due within {} µs, {takes}",
                    task.whole().div_ceil(1000),
                    task.deadline / 1000
                ));
            }
            slack = slack.min(task.deadline - response as u64);
        }
        let share = crate::Share::sum(loads.iter().map(Load::share)).as_f64();
        Ok(Proof {
            test: admit::response_time_test(),
            reason: format!(
                "{:.1} %{}; every response is in time, the tightest by {} µs",
                100.0 * share,
                self.at(self.slowest),
                slack / 1000
            ),
            budgets: Vec::new(),
        })
    }

    // ------------------------------------------------------------------ deadlines

    /// The largest budgets with which it holds.
    fn edf(&self, crowded: bool) -> Result<Proof, String> {
        let mut why = None;
        let mut most = 100;
        while let Some((budgets, lasts_percent, percent)) = self.budgets(most) {
            if lasts_percent < 100 {
                let short = || {
                    format!(
                        "budgets may end early: the kernel charges by the frequency at which it looks, and they have room for {lasts_percent} % of what a rise of it may cost"
                    )
                };
                return Err(why.unwrap_or_else(short));
            }
            let proven = self.edf_constant(&budgets, crowded);
            let proven = match proven {
                Err(e) if self.varies() => self.edf_followed(&budgets, crowded).map_err(|_| e),
                other => other,
            };
            match proven {
                Ok((test, reason)) => return Ok(Proof { test, reason, budgets }),
                Err(e) => why = why.or(Some(e)),
            }
            if percent == 0 {
                break;
            }
            most = percent.saturating_sub(10);
        }
        Err(why.unwrap_or_else(|| self.refused()))
    }

    /// The words of a refusal: the kernel does not admit what the tasks need at least.
    fn refused(&self) -> String {
        let needed = |t: &Need| bw(self.least(t), self.server_period(t));
        format!(
            "they have to reserve {:.1} % of a CPU, and the kernel admits {:.1} %",
            self.tasks.iter().map(needed).sum::<u64>() as f64 / 10_485.76,
            self.m.room(self.cpu) as f64 / 10_485.76
        )
    }

    /// Returns the period that a reservation for `t` has. Rounding: down to whole µs.
    fn server_period(&self, t: &Need) -> u64 {
        let between = t.period.saturating_sub(self.once + self.exit).max(1000);
        t.deadline.min(between) / 1000 * 1000
    }

    /// Whether the frequency may be another while a task runs.
    fn varies(&self) -> bool {
        self.slowest < self.fastest
    }

    /// Returns the words for a speed; none where there is but one.
    fn at(&self, speed: u64) -> String {
        if self.varies() { format!(" at {speed} of 1024") } else { String::new() }
    }

    /// The speed that a reservation of that bandwidth asks for.
    fn speed_for(&self, bandwidth: u64) -> u64 {
        if !self.cpu.follows_deadlines {
            return self.slowest;
        }
        let asked = bandwidth >> 10;
        self.cpu.speeds.iter().map(|s| s.1.0).find(|s| *s >= asked).unwrap_or(self.fastest)
    }

    /// The budgets of all tasks with up to `highest` % of what may be charged beyond their work,
    /// the least % of that which one of them covers, and the % that was taken; `None`: the kernel
    /// does not take as much as they need at least.
    fn budgets(&self, highest: u64) -> Option<(Vec<Budget>, u64, u64)> {
        let room = self.m.room(self.cpu);
        let periods: Vec<u64> = self.tasks.iter().map(|t| self.server_period(t)).collect();
        let least: Vec<u64> = self.tasks.iter().map(|t| self.least(t)).collect();
        let fixed: Vec<u64> = self.tasks.iter().map(|t| self.by_clock(t)).collect();
        let amply = |i: usize| {
            let lasting = self.lasting((least[i], fixed[i]), periods[i]);
            lasting.max(scaled(least[i], 100 + MARGIN, 100)).min(periods[i])
        };
        let most: Vec<u64> = (0..least.len()).map(amply).collect();
        let all = |percent: u64| -> Vec<u64> {
            let part = |(least, most): (&u64, &u64)| {
                let more = most.saturating_sub(*least);
                (least + more * percent / 100).div_ceil(1000) * 1000
            };
            least.iter().zip(&most).map(part).collect()
        };
        let fits = |runtimes: &[u64]| {
            let sum: u64 = runtimes.iter().zip(&periods).map(|(r, p)| bw(*r, *p)).sum();
            sum <= room && runtimes.iter().zip(&periods).all(|(r, period)| r <= period)
        };
        let percent = (0..=highest).rev().find(|p| fits(&all(*p)))?;
        let runtimes = all(percent);
        // Frequencies that the smaller budgets ask for are lower.
        let lasts = (0..self.tasks.len()).map(|i| {
            let needed = self
                .lasting((least[i], fixed[i]), periods[i])
                .min(self.charged((least[i], fixed[i]), bw(runtimes[i], periods[i])));
            let more = needed.saturating_sub(least[i]);
            match (runtimes[i] - least[i]).checked_mul(100) {
                Some(has) if more > 0 => (has / more).min(100),
                _ => 100,
            }
        });
        let lasts = lasts.min().unwrap_or(100);
        let budget = |i: usize| Budget { runtime: runtimes[i], period: periods[i] };
        Some(((0..self.tasks.len()).map(budget).collect(), lasts, percent))
    }

    /// The runtime that a job is charged where the frequency stays, in ns of capacity 1024.
    fn least(&self, t: &Need) -> u64 {
        // The tick, and the timers of the others; its own has expired before.
        let interrupts = self.m.interrupt.0 * self.tasks.len() as u64;
        let overhead = 2 * self.m.switch.0 + interrupts + self.m.noise.0.0;
        let own = scaled(t.work, 1_000_000, self.left).saturating_add(self.by_clock(t));
        own.saturating_add(scaled(overhead, self.fastest, 1024)).div_ceil(1000) * 1000
    }

    /// The part of that which passes by the clock: no frequency charges more for it than the highest.
    fn by_clock(&self, t: &Need) -> u64 {
        scaled(scaled(t.clock, self.fastest, 1024), 1_000_000, self.left)
    }

    /// The runtime that a job is charged at most that needs `least`, of which `fixed` by the clock, under a reservation of that
    /// bandwidth.
    fn charged(&self, (least, fixed): (u64, u64), bandwidth: u64) -> u64 {
        let work = least.saturating_sub(fixed);
        let whole = scaled(work, self.fastest, self.slowest).saturating_add(fixed);
        if !self.varies() || !self.cpu.invariant {
            return whole;
        }
        let floor = self.speed_for(bandwidth);
        let window = self.cpu.change.0.min(self.m.tick.0);
        let risen = scaled(work, self.fastest, floor).saturating_add(fixed);
        whole.min(risen.saturating_add(scaled(window, self.fastest - self.slowest, 1024)))
    }

    /// The least runtime that lasts whatever the frequency does.
    fn lasting(&self, (least, fixed): (u64, u64), period: u64) -> u64 {
        let work = least.saturating_sub(fixed);
        let whole = scaled(work, self.fastest, self.slowest).saturating_add(fixed);
        if !self.varies() {
            return least;
        }
        // A larger reservation asks for a higher frequency, at which rises cost less.
        let below = [0].into_iter().chain(self.cpu.speeds.iter().map(|s| s.1.0));
        let at = below.map(|speed| {
            let asks = scaled((speed + 1) << 10, period, 1 << 20);
            let asks = if speed == 0 { 0 } else { asks };
            asks.max(self.charged((least, fixed), bw(asks.max(1), period))).max(least)
        });
        at.filter(|q| self.charged((least, fixed), bw(*q, period)) <= *q).min().unwrap_or(whole)
    }

    /// The work fits at the lowest speed that there can be while a task of them is active.
    fn edf_constant(
        &self,
        budgets: &[Budget],
        crowded: bool,
    ) -> Result<(&'static Test, String), String> {
        let floor = budgets.iter().map(|b| self.speed_for(bw(b.runtime, b.period))).min();
        let floor = floor.unwrap_or(self.slowest).max(self.slowest);
        let lost = scaled(self.cpu.change.0, floor - self.slowest, floor);
        let mut loads = self.due(floor, self.once + 2 * self.exit + lost)?;
        loads.extend(self.server(&loads, crowded));
        let (test, reason) = admitted(&loads)?;
        Ok((test, format!("{reason}{}", self.at(floor))))
    }

    /// Tests whether all budgets fit, each with what its wakeup loses until the frequency follows.
    fn edf_followed(
        &self,
        budgets: &[Budget],
        crowded: bool,
    ) -> Result<(&'static Test, String), String> {
        if !self.cpu.follows_deadlines {
            return Err("the frequency follows no deadlines".into());
        }
        let early = self.once + 2 * self.exit;
        let mut loads = Vec::new();
        for (t, b) in self.tasks.iter().zip(budgets) {
            // At the speed of all active budgets a job is done in the part of its period that it takes of its own.
            let used = scaled(b.period, self.least(t), b.runtime);
            if used.saturating_add(early) > t.deadline {
                return Err("no time is left for interrupts".into());
            }
            let lost = scaled(b.runtime, self.cpu.change.0, b.period);
            let runtime =
                scaled(scaled(b.runtime + lost, 1024, self.fastest), 1_000_000, self.left);
            loads.push(Load { runtime, period: b.period, deadline: b.period });
        }
        loads.extend(self.server(&loads, crowded));
        let (test, reason) = admitted(&loads)?;
        Ok((test, format!("budgets and what changes of the frequency cost: {reason}")))
    }
}

/// The verdict of the tests for EDF on one CPU about `loads`.
fn admitted(loads: &[Load]) -> Result<(&'static Test, String), String> {
    match admit::admit(loads, &[Capacity(1024)], Scheduler::Edf) {
        (Some(test), verdict) if verdict.answer == Answer::Admitted => Ok((test, verdict.reason)),
        (_, verdict) => Err(verdict.reason),
    }
}

/// The time, in ns, that a load can take of a window of `time` at most, if its jobs are in time.
fn within(load: &Load, time: u64) -> u64 {
    // The first job as late as it may be, the others as early as they come.
    let reach = time.saturating_add(load.deadline).saturating_sub(load.runtime);
    let whole = reach / load.period;
    let rest = (reach - whole * load.period).min(load.runtime);
    (whole.saturating_mul(load.runtime).saturating_add(rest)).min(time)
}

/// Sorts `cpus` for the placement of a task by the capacity left there, most or least first.
pub(crate) fn by_left(left: &[f64], cpus: &mut [usize], most_first: bool) {
    let key = |cpu: usize| (left[cpu] * 1e9) as i64;
    match most_first {
        true => cpus.sort_by_key(|cpu| (Reverse(key(*cpu)), *cpu)),
        false => cpus.sort_by_key(|cpu| (key(*cpu), *cpu)),
    }
}
