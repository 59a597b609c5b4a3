//! Decisions: from records to the state from which a kernel decides, where that was asked for.
//!
//! ```text
//! sched_waking                     who wakes a task
//! prio of wakeups and switches     a task's priority, when it has changed
//! pelt_se, enqueue_task_fair, switch    a task's place in its runqueue
//! pelt_cfs, enqueue_task_fair, switch   the runqueue
//! tg_throttle_down, tg_unthrottle_up    a group's quota is used up, is refilled (before 6.18)
//! sched_set_need_resched           (before 6.17: `resched_curr`, unless it was set already)
//! sched_balance_rq                 a look at a domain, and when the CPU is due
//! menu_select, its return          a choice of an idle state, told when it is made
//!                                  (before 6.9 also `tick_nohz_idle_stop_tick`, `…_retain_tick`)
//! ```
//!
//! A task's entity that is seen before the task is known is told of when it is. Left out: what a release does
//! not have ([`notes`] says what).

use crate::event::Probed;
use crate::page::{Format, Record};
use risetime_kernel::eevdf::Place;
use risetime_kernel::units::{CpuId, GroupId, KHz, TaskId, Util};
use risetime_kernel::{KernelRev, features};
use risetime_trace::{Event, FreqLook, IdleType, LastSleep, MenuSelect};
use std::collections::BTreeMap;

/// `TIF_NEED_RESCHED` and `TIF_NEED_RESCHED_LAZY` of arm64.
const TIF_NEED_RESCHED: i64 = 1;
const TIF_NEED_RESCHED_LAZY: i64 = 2;
/// `next_timer_ns` where `menu` did not ask for it: KTIME_MAX.
const NOT_ASKED: u64 = i64::MAX as u64;

/// Times at which a CPU balances next, all in jiffies but for the intervals, in ms; 0: no such
/// domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// `jiffies` when it was told.
    pub jiffies: u64,
    /// True if `jiffies` is that of the CPU's last tick.
    pub ticked: bool,
    /// `next_balance` of the runqueue.
    pub next: u64,
    /// `last_balance` and `balance_interval` of the two lowest domains.
    pub domains: [(u64, u64); 2],
}

/// One thing that the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A wakeup begins.
    Waking {
        /// Number of the thread that is woken.
        pid: i32,
    },
    /// A thread's place in its runqueue.
    Entity {
        /// Number of the thread.
        pid: i32,
        /// Place of the thread.
        place: Place,
    },
    /// A group's place in a CPU's runqueue.
    GroupEntity {
        /// Number of the CPU.
        cpu: u32,
        /// Place of the group in the hierarchy's list of them.
        css: u32,
        /// Place of its entity in the runqueue.
        place: Place,
    },
    /// A group's quota is used up on a CPU, or refilled.
    GroupThrottled {
        /// Number of the CPU.
        cpu: u32,
        /// Place of the group in the hierarchy's list of them.
        css: u32,
        /// True if it is used up.
        on: bool,
    },
    /// A group's own runqueue on a CPU.
    GroupQueue {
        /// Number of the CPU.
        cpu: u32,
        /// Place of the group in the hierarchy's list of them.
        css: u32,
        /// `zero_vruntime`, before 7.0 `min_vruntime`.
        min_vruntime: u64,
    },
    /// A thread's load.
    TaskLoad {
        /// Number of the thread.
        pid: i32,
        /// `load_avg`.
        load_avg: u64,
        /// `load_sum`.
        load_sum: u64,
    },
    /// The load of a CPU's fair tasks.
    CfsLoad {
        /// Number of the CPU.
        cpu: u32,
        /// `load_avg`.
        load_avg: u64,
        /// `load_sum`.
        load_sum: u64,
    },
    /// A CPU's fair runqueue.
    Queue {
        /// Number of the CPU.
        cpu: u32,
        /// `zero_vruntime`, before 7.0 `min_vruntime`.
        min_vruntime: u64,
        /// `sum_w_vruntime`; 0 where the kernel has none.
        sum_w_vruntime: i64,
        /// `sum_weight`; 0 where the kernel has none.
        sum_weight: u64,
        /// Number of entities in it.
        nr_queued: u32,
    },
    /// `need_resched` is set.
    Resched {
        /// Number of the CPU.
        cpu: u32,
        /// True if it is set lazily.
        lazy: bool,
    },
    /// State of a deadline task, told of any task: one of another class has none.
    Deadline {
        /// Number of the thread.
        pid: i32,
        /// Runtime left, in ns.
        runtime: i64,
        /// Time until the deadline, in ns.
        left: i64,
    },
    /// The `util_est` of a CPU's queued tasks.
    CfsUtilEst {
        /// Number of the CPU.
        cpu: u32,
        /// Estimate, of 1024.
        util_est: u64,
    },
    /// A governor looks at a CPU.
    FreqLook {
        /// Address of the policy, by which its looks are told from others'.
        policy: u64,
        /// Time of the look, in the scheduler's clock.
        time: u64,
        /// Number of the CPU.
        cpu: u32,
        /// State that the governor finds.
        look: FreqLook,
    },
    /// A look at a scheduling domain.
    Look {
        /// Number of the CPU.
        cpu: u32,
        /// Level of the domain, 0 the lowest.
        level: u32,
        /// `enum cpu_idle_type`, as the release counts it.
        idle: i64,
        /// `nr_balance_failed` of the domain.
        failed: u32,
        /// Times at which the CPU balances next.
        due: Due,
    },
    /// `menu` has chosen.
    Chosen {
        /// Number of the state; negative: an error.
        state: i64,
        /// `next_timer_ns` of the choice; `None`: only the next choice shows it.
        next_timer_ns: Option<u64>,
        /// Whether the tick is stopped; `None`: it shows by what is done then.
        stop_tick: Option<bool>,
    },
    /// The fate of the tick behind a choice.
    Tick {
        /// True if it is stopped.
        stops: bool,
    },
    /// A tick begins.
    SchedTick,
}

/// Facts that one record tells, at most as many.
pub type Few = [Option<Told>; 9];

fn few<const N: usize>(told: [Option<Told>; N]) -> Few {
    std::array::from_fn(|i| told.get(i).copied().flatten())
}

/// Decoder of a record.
pub type Decode = fn(&Format, &Record<'_>) -> Few;

fn n(f: &Format, r: &Record<'_>, field: &str) -> Option<i64> {
    r.number(*f.fields.get(field)?)
}

/// Decoders by the event's `SYSTEM/NAME`.
pub const DECODERS: &[(&str, Decode)] = &[
    ("sched/sched_waking", |f, r| {
        few([n(f, r, "pid").map(|pid| Told::Waking { pid: pid as i32 })])
    }),
    ("rt/pelt_se", |f, r| {
        let group = n(f, r, "my_q").unwrap_or(0) != 0;
        let load = n(f, r, "pid").zip(load(f, r)).map(|(pid, (load_avg, load_sum))| {
            Told::TaskLoad { pid: pid as i32, load_avg, load_sum }
        });
        if group { few([group_entity(f, r, "")]) } else { few([entity(f, r, ""), load]) }
    }),
    ("rt/pelt_cfs", |f, r| {
        let group = n(f, r, "parent").unwrap_or(0) != 0;
        let load = n(f, r, "cpu").zip(load(f, r)).map(|(cpu, (load_avg, load_sum))| {
            Told::CfsLoad { cpu: cpu as u32, load_avg, load_sum }
        });
        if group { few([group_queue(f, r)]) } else { few([queue(f, r), load]) }
    }),
    ("rt/queued", |f, r| {
        let [inner, outer] = ["g1", "g2"].map(|of| group_entity(f, r, of));
        few([outer, inner, entity(f, r, ""), queue(f, r)])
    }),
    ("rt/switch", |f, r| {
        let due = |prefix| deadline(f, r, prefix);
        let groups = ["p2", "p1", "n2", "n1"].map(|of| group_entity(f, r, of));
        let [a, b, c, d] = groups;
        [entity(f, r, "p"), entity(f, r, "n"), a, b, c, d, queue(f, r), due("p"), due("n")]
    }),
    ("rt/tg_down", |f, r| few([group_throttled(f, r, true)])),
    ("rt/tg_up", |f, r| few([group_throttled(f, r, false)])),
    ("rt/resched", |f, r| {
        let set = n(f, r, "cpu").zip(n(f, r, "tif"));
        let told =
            |(cpu, tif)| Told::Resched { cpu: cpu as u32, lazy: tif == TIF_NEED_RESCHED_LAZY };
        few([set.map(told)])
    }),
    ("rt/resched_curr", |f, r| {
        let set = n(f, r, "cpu").zip(n(f, r, "flags"));
        let new = set.filter(|(_, flags)| flags & (1 << TIF_NEED_RESCHED) == 0);
        few([new.map(|(cpu, _)| Told::Resched { cpu: cpu as u32, lazy: false })])
    }),
    ("rt/look", |f, r| few([look(f, r)])),
    ("rt/menu_ret", |f, r| {
        let next_timer_ns = n(f, r, "told").map(|ns| ns as u64);
        let stop_tick = n(f, r, "stop").map(|stop| stop != 0);
        let chosen = |state| Told::Chosen { state, next_timer_ns, stop_tick };
        few([n(f, r, "state").map(chosen)])
    }),
    ("rt/tick", |_, _| few([Some(Told::SchedTick)])),
    ("rt/uest_cfs", |f, r| {
        let est = n(f, r, "cpu")
            .zip(n(f, r, "est"))
            .map(|(cpu, est)| Told::CfsUtilEst { cpu: cpu as u32, util_est: est as u64 });
        few([est])
    }),
    ("rt/gov_single", |f, r| few([freq_look(f, r)])),
    ("rt/gov_shared", |f, r| few([freq_look(f, r)])),
    ("rt/tick_stops", |_, _| few([Some(Told::Tick { stops: true })])),
    ("rt/tick_stays", |_, _| few([Some(Told::Tick { stops: false })])),
];

/// `jiffies` of looks that only show it as of their CPU's last tick, from the time of each: the freshest of
/// them all was shown right behind a tick.
pub fn count_jiffies<'a>(looks: impl Iterator<Item = (u64, &'a mut Due)>, tick_ns: u64) {
    let mut looks: Vec<_> = looks.filter(|(_, due)| due.ticked).collect();
    let zero = |(at, due): &(u64, &mut Due)| {
        i128::from(*at) - i128::from(due.jiffies) * i128::from(tick_ns)
    };
    let Some(zero) = looks.iter().map(zero).min() else { return };
    for (at, due) in &mut looks {
        let since = i128::from(*at) - zero;
        due.jiffies = (since / i128::from(tick_ns.max(1))) as u64;
    }
}

/// An entity, whose fields' names begin with `prefix`; the idle task has none.
fn entity(f: &Format, r: &Record<'_>, prefix: &str) -> Option<Told> {
    let pid = n(f, r, &format!("{prefix}pid")).filter(|pid| *pid > 0)? as i32;
    Some(Told::Entity { pid, place: place(f, r, prefix)? })
}

/// Reads the place of a group's entity; `None`: there is none at that level.
fn group_entity(f: &Format, r: &Record<'_>, prefix: &str) -> Option<Told> {
    let css = n(f, r, &format!("{prefix}css")).filter(|css| *css > 0)? as u32;
    let cpu = n(f, r, &format!("{prefix}cpu"))? as u32;
    Some(Told::GroupEntity { cpu, css, place: place(f, r, prefix)? })
}

fn group_queue(f: &Format, r: &Record<'_>) -> Option<Told> {
    let css = n(f, r, "css").filter(|css| *css > 0)? as u32;
    let cpu = n(f, r, "cpu")? as u32;
    Some(Told::GroupQueue { cpu, css, min_vruntime: n(f, r, "zero")? as u64 })
}

fn group_throttled(f: &Format, r: &Record<'_>, on: bool) -> Option<Told> {
    let of = n(f, r, "cpu").zip(n(f, r, "css"));
    of.map(|(cpu, css)| Told::GroupThrottled { cpu: cpu as u32, css: css as u32, on })
}

fn place(f: &Format, r: &Record<'_>, prefix: &str) -> Option<Place> {
    let n = |field| n(f, r, &format!("{prefix}{field}"));
    let or_0 = |field| n(field).unwrap_or(0);
    Some(Place {
        vruntime: n("vruntime")? as u64,
        deadline: or_0("deadline") as u64,
        vlag: or_0("vlag"),
        slice: or_0("slice") as u64,
        vprot: or_0("vprot") as u64,
        weight: or_0("weight") as u64,
    })
}

/// Reads the runtime left of a deadline task's instance, and the time until it is due; fields'
/// names begin with `prefix`.
fn deadline(f: &Format, r: &Record<'_>, prefix: &str) -> Option<Told> {
    let n = |field| n(f, r, &format!("{prefix}{field}"));
    let pid = n("pid").filter(|pid| *pid > 0)? as i32;
    // Both are of the scheduler's clock, as the record is.
    Some(Told::Deadline { pid, runtime: n("runtime")?, left: n("due")?.wrapping_sub(r.at as i64) })
}

fn freq_look(f: &Format, r: &Record<'_>) -> Option<Told> {
    let u = |field| n(f, r, field).map(|n| n as u64);
    let set = |field| n(f, r, field).unwrap_or(0) != 0;
    let time = u("time")?;
    let look = FreqLook {
        next_freq: KHz(u("next")?),
        cached_raw_freq: KHz(u("cached")?),
        since_ns: time.saturating_sub(u("last")?),
        forced: set("limits") || set("need"),
        bw_min: Util(u("min")?),
        busy: u("saved")? == u("calls")?,
        running_bw: u("bw")?,
        util_avg: Util(u("util")?),
        runnable_avg: Util(u("runnable")?),
        util_est: Util(u("est")? & 0xffff_ffff),
        rt_runnable: u("rt").map(|running| running > 0),
        uclamp: u("umin").zip(u("umax")).map(|(min, max)| [Util(min), Util(max)]),
        chosen: None,
    };
    Some(Told::FreqLook { policy: u("policy")?, time, cpu: u("cpu")? as u32, look })
}

/// `load_avg` and `load_sum`.
fn load(f: &Format, r: &Record<'_>) -> Option<(u64, u64)> {
    Some((n(f, r, "load")? as u64, n(f, r, "lsum")? as u64))
}

fn queue(f: &Format, r: &Record<'_>) -> Option<Told> {
    let or_0 = |field| n(f, r, field).unwrap_or(0);
    Some(Told::Queue {
        cpu: n(f, r, "cpu")? as u32,
        min_vruntime: n(f, r, "zero")? as u64,
        sum_w_vruntime: or_0("sumwv"),
        sum_weight: or_0("sumw") as u64,
        nr_queued: or_0("nr") as u32,
    })
}

fn look(f: &Format, r: &Record<'_>) -> Option<Told> {
    let (cpu, level) = (n(f, r, "cpu")? as u32, n(f, r, "level")? as u32);
    let failed = n(f, r, "failed")? as u32;
    Some(Told::Look { cpu, level, idle: n(f, r, "idle")?, failed, due: due(f, r)? })
}

/// Reads when a CPU balances next, as a probe shows it.
pub fn due(f: &Format, r: &Record<'_>) -> Option<Due> {
    let u = |field| n(f, r, field).map(|n| n as u64);
    let domains = [(u("l0")?, u("i0")?), (u("l1")?, u("i1")?)];
    let (now, next) = (u("now"), u("next")?);
    Some(Due { jiffies: now.or(u("ticked"))?, ticked: now.is_none(), next, domains })
}

/// State on the way from what the kernel tells to a trace's events: what has not been told in full yet.
#[derive(Debug)]
pub struct Decisions {
    rev: KernelRev,
    /// The workload's group by its place in the hierarchy's list of them.
    group: fn(u32) -> Option<GroupId>,
    /// Looks are told of themselves, and not with a CPU's capacity.
    looks: bool,
    /// Entities of tasks that nobody knows yet.
    early: BTreeMap<i32, Place>,
    /// State from which `menu` chooses on a CPU, until it has.
    choosing: BTreeMap<u32, MenuSelect>,
}

impl Decisions {
    /// Decisions of a kernel of `rev`, none told yet. `group` maps a group's place in the hierarchy's list of them to the
    /// group; `looks`: the trace tells of looks at domains.
    pub fn new(rev: KernelRev, group: fn(u32) -> Option<GroupId>, looks: bool) -> Decisions {
        Decisions { rev, group, looks, early: BTreeMap::new(), choosing: BTreeMap::new() }
    }

    /// Takes in a task that has become known; returns its place, if that was told before.
    pub fn known(&mut self, pid: i32, task: TaskId) -> Option<Event> {
        self.early.remove(&pid).map(|place| Event::Entity { task, place })
    }

    /// The event of when the CPU balances next, for kernels that tell it with the CPU's capacity.
    pub fn due(&self, cpu: u32, due: Due) -> Option<Event> {
        (!self.looks).then_some(due.event(cpu))
    }

    /// Takes in that `menu` begins to choose on `cpu`, from `p`.
    pub fn menu(&mut self, cpu: u32, p: &Probed) {
        let Some(asked) = p.asked else { return };
        let last = p.last.map(|(state, slept_ns, by_tick)| LastSleep {
            state: state as u32,
            slept_ns,
            by_tick,
        });
        let select = MenuSelect {
            next_timer_ns: p.next_timer_ns,
            bucket: p.bucket as u8,
            correction_factor: p.factors,
            intervals_us: p.intervals,
            interval_ptr: p.ptr as u8,
            last,
            delta_next_ns: asked.delta_next_ns,
            tick_stopped: asked.tick_stopped,
            ..MenuSelect::default()
        };
        self.choosing.insert(cpu, select);
    }

    /// Turns what the kernel told on CPU `here` into events, to `emit`; `task` maps a pid to its
    /// task.
    pub fn told(
        &mut self,
        here: u32,
        told: &Told,
        task: impl Fn(i32) -> Option<TaskId>,
        mut emit: impl FnMut(Event),
    ) {
        match *told {
            Told::Waking { pid } => {
                task(pid)
                    .into_iter()
                    .for_each(|task| emit(Event::Waking { task, by: CpuId(here) }));
            }
            Told::Entity { pid, place } => match task(pid) {
                Some(task) => emit(Event::Entity { task, place }),
                None => drop(self.early.insert(pid, place)),
            },
            Told::GroupEntity { cpu, css, place } => {
                let told = |group| emit(Event::GroupEntity { cpu: CpuId(cpu), group, place });
                (self.group)(css).into_iter().for_each(told);
            }
            Told::GroupThrottled { cpu, css, on } => {
                let told = |group| emit(Event::GroupThrottled { cpu: CpuId(cpu), group, on });
                (self.group)(css).into_iter().for_each(told);
            }
            Told::GroupQueue { cpu, css, min_vruntime } => {
                let told = |group| emit(Event::GroupQueue { cpu: CpuId(cpu), group, min_vruntime });
                (self.group)(css).into_iter().for_each(told);
            }
            Told::TaskLoad { pid, load_avg, load_sum } => {
                let told = |task| emit(Event::TaskLoad { task, load_avg, load_sum });
                task(pid).into_iter().for_each(told);
            }
            Told::CfsLoad { cpu, load_avg, load_sum } => {
                emit(Event::CfsLoad { cpu: CpuId(cpu), load_avg, load_sum });
            }
            Told::Queue { .. } => told.queue().into_iter().for_each(emit),
            Told::Deadline { pid, runtime, left } => {
                let told = |task| emit(Event::Deadline { task, runtime, left });
                task(pid).into_iter().for_each(told);
            }
            Told::CfsUtilEst { cpu, util_est } => {
                emit(Event::CfsUtilEst { cpu: CpuId(cpu), util_est: Util(util_est) });
            }
            Told::FreqLook { cpu, look, .. } => emit(Event::FreqLook { cpu: CpuId(cpu), look }),
            Told::Resched { cpu, lazy } => emit(Event::Resched { cpu: CpuId(cpu), lazy }),
            Told::Look { cpu, level, idle, failed, due } => {
                emit(due.event(cpu));
                let idle = self.idle_type(idle);
                emit(Event::BalanceLook { cpu: CpuId(cpu), level, idle, failed });
            }
            Told::Chosen { state, next_timer_ns, stop_tick } => {
                // Without its timer it cannot be made again: the last one before the end, on an old kernel.
                if let Some((mut select, ns)) = self.choosing.remove(&here).zip(next_timer_ns) {
                    select.sleep_length_ns = Some(ns).filter(|ns| *ns != NOT_ASKED);
                    (select.state, select.stop_tick) = (u8::try_from(state).ok(), stop_tick);
                    emit(Event::IdleSelect { cpu: CpuId(here), select });
                }
            }
            Told::SchedTick => emit(Event::Tick { cpu: CpuId(here) }),
            Told::Tick { .. } => {}
        }
    }

    fn idle_type(&self, idle: i64) -> IdleType {
        let not_idle_first = self.rev.has(features::IDLE_TYPE_NOT_IDLE_FIRST);
        let (not_idle, idles) = if not_idle_first { (0, 1) } else { (1, 0) };
        match idle {
            _ if idle == not_idle => IdleType::NotIdle,
            _ if idle == idles => IdleType::Idle,
            _ => IdleType::NewlyIdle,
        }
    }
}

impl Due {
    fn event(self, cpu: u32) -> Event {
        let Due { jiffies, next, domains, .. } = self;
        Event::BalanceDue { cpu: CpuId(cpu), jiffies, next_balance: next, domains }
    }
}

impl Told {
    /// A CPU's runqueue; `None`: it is about something else.
    pub fn queue(&self) -> Option<Event> {
        let Told::Queue { cpu, min_vruntime, sum_w_vruntime, sum_weight, nr_queued } = *self else {
            return None;
        };
        let cpu = CpuId(cpu);
        Some(Event::CfsQueue { cpu, min_vruntime, sum_w_vruntime, sum_weight, nr_queued })
    }
}

/// Fills in what a choice does not tell of itself: its timer is shown by the next choice on its
/// CPU, whether the tick stops by what is done then, and what a governor asks for by its next look.
/// `events`, from the last one back, each with its CPU.
pub fn fill_in<'a>(events: impl Iterator<Item = (u32, Choice<'a>)>) {
    let mut timers: BTreeMap<u32, u64> = BTreeMap::new();
    let mut ticks: BTreeMap<u32, bool> = BTreeMap::new();
    // By policy, what had been asked for by its next look. Other CPUs' looks may have begun before one is over, and a probe
    // may miss some: whose change it was its time says (`last_freq_update_time`).
    let mut next: BTreeMap<u64, KHz> = BTreeMap::new();
    let mut changes: BTreeMap<(u64, u64), KHz> = BTreeMap::new();
    for (cpu, choice) in events {
        match choice {
            Choice::Begins(probed) => {
                timers.insert(cpu, probed.next_timer_ns);
                ticks.remove(&cpu);
            }
            Choice::Told(Told::Tick { stops }) => drop(ticks.insert(cpu, *stops)),
            Choice::Told(Told::Chosen { next_timer_ns, stop_tick, .. }) => {
                *next_timer_ns = next_timer_ns.or(timers.remove(&cpu));
                *stop_tick = stop_tick.or(ticks.remove(&cpu));
            }
            Choice::Told(Told::FreqLook { policy, time, look, .. }) => {
                let last = time.saturating_sub(look.since_ns);
                let changed = changes.get(&(*policy, *time)).copied();
                let after = next.insert(*policy, look.next_freq);
                changes.insert((*policy, last), look.next_freq);
                look.chosen = changed.or(after.filter(|freq| *freq == look.next_freq));
            }
            Choice::Told(_) => {}
        }
    }
}

/// A part of a choice of `menu`.
pub enum Choice<'a> {
    /// The state from which `menu` chooses.
    Begins(&'a Probed),
    /// Something that the kernel tells.
    Told(&'a mut Told),
}

/// Lists what of the state behind decisions this kernel does not tell, one line each. `format`: the text of an event's
/// `format`, where it is enabled; `values`: why one is not, under `event …` or `probe …`.
pub fn notes(
    format: impl Fn(&str) -> Option<String>,
    values: &BTreeMap<String, String>,
) -> Vec<String> {
    const PROBES: &[(&str, &str)] = &[
        ("event sched/sched_waking", "who wakes a task"),
        ("probe rt/pelt_se", "tasks' signals and places in their runqueue as these are updated"),
        ("probe rt/pelt_cfs", "CPUs' signals and runqueues as these are updated"),
        ("probe rt/uest_se", "util_est"),
        ("probe rt/cap", "what is left of a CPU's capacity"),
        ("probe rt/queued", "where a task is put in its runqueue"),
        ("probe rt/switch", "places in the runqueue at a switch"),
        ("probe rt/resched", "need_resched"),
        ("probe rt/resched_curr", "need_resched"),
        ("probe rt/look", "looks at scheduling domains"),
        ("probe rt/tick", "ticks"),
        ("probe rt/uest_cfs", "when a task's util_est joins its CPU's"),
        ("probe rt/gov_single", "what governors of single CPUs look at"),
        ("probe rt/gov_shared", "what governors of several CPUs look at"),
        ("probe rt/menu", "what menu chooses from"),
        ("probe rt/menu_ret", "what menu chooses"),
        ("probe rt/tick_stops", "whether menu stops the tick"),
    ];
    const FIELDS: &[(&str, &str, &str)] = &[
        ("rt/pelt_se", "deadline", "deadline, lag and slice of a task"),
        ("rt/pelt_cfs", "sumwv", "the sums of a runqueue"),
    ];
    let refused = PROBES.iter().filter_map(|(key, what)| {
        let why = values.get(*key)?;
        Some(format!("this kernel does not tell {what} ({})", why.trim()))
    });
    let lacking = FIELDS.iter().filter_map(|(name, field, what)| {
        let has = Format::parse(&format(name)?)?.fields.contains_key(*field);
        (!has).then(|| format!("this kernel does not tell {what}"))
    });
    refused.chain(lacking).collect()
}
