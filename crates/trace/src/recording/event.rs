//! The events of a recording, each as the numbers that have changed since the last one of its kind there.

use super::{Lines, after_key, escape, unescape};
use crate::{Event, FreqLook, Header, IdleType, LastSleep, Limit, Memory, MenuSelect};
use crate::{QuotaStat, SwitchOut, TraceSink, Why};
use risetime_kernel::eevdf::Place;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{
    Capacity, ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util,
};
use risetime_model::InputError;
use risetime_model::workload::{JobMark, MARK_NUMBERS, Policy};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Numbers of an event at most, whose it is included.
const FIELDS: usize = 26;
/// Tasks are numbered below this, so that nothing that counts them grows without bound.
const MAX_TASKS: u64 = 1 << 20;

/// Words that a trace has from the program, not from a file: a recording may hold no others.
pub(super) const CLASSES: &[&str] = &["rt", "dl", "irq", "hw"];

/// Reasons by their number in a recording: only ever added to at the end.
pub(super) const WHYS: &[Why] = &[
    Why::Unknown,
    Why::FirstCpu,
    Why::ForkIdlest,
    Why::PrevCpu,
    Why::Energy,
    Why::IdleSibling,
    Why::WakeAffine,
    Why::Affinity,
    Why::Misfit,
    Why::NewIdle,
    Why::Balance,
    Why::LowestRq,
    Why::LaterRq,
    Why::RtPush,
    Why::DlPush,
    Why::DlPull,
    Why::Hotplug,
    Why::Given,
    Why::Util,
    Why::Unchanged,
    Why::RateLimited,
    Why::HoldBusy,
    Why::InProgress,
    Why::UclampMin,
    Why::UclampMax,
    Why::IowaitBoost,
    Why::Waiting,
    Why::Decaying,
    Why::Fixed,
    Why::RealTime,
    Why::Hispeed,
    Why::MinSampleTime,
    Why::LeastLoad,
    Why::EarliestDeadline,
    Why::HighPush,
    Why::OvercommitPush,
    Why::DlFits,
    Why::Llc,
    Why::DlBandwidth,
    Why::NotInvariant,
];

/// What a CPU does that looks for tasks, by its number in a recording.
pub(super) const IDLE_TYPES: &[IdleType] =
    &[IdleType::NotIdle, IdleType::Idle, IdleType::NewlyIdle];

const OUTS: &[SwitchOut] = &[SwitchOut::Preempted, SwitchOut::Sleeping, SwitchOut::Exited];

/// Writes those of `trace`, and when it ends.
///
/// Errors: those of `out`; words of which [`read`] would know nothing.
pub(super) fn write(trace: &Memory, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = EventWriter { out, before: Instant(0), last: BTreeMap::new(), error: None };
    trace.replay(&mut writer);
    writer.error.map_or(Ok(()), Err)
}

/// Reads those that come next in `lines`, of a machine of so many CPUs, up to the end.
///
/// Errors: the first fault, at its line.
pub(super) fn read(
    lines: &mut Lines<'_>,
    cpus: u64,
    memory: &mut Memory,
) -> Result<(), InputError> {
    let (mut at, mut last) = (0u64, BTreeMap::new());
    loop {
        let line = lines.take()?;
        if let Some(end) = after_key(line, "end") {
            memory.end(Instant(lines.number(end)?));
            return Ok(());
        }
        let kind = line.chars().next().unwrap_or(' ');
        let (numbers, name) = match line.split_once(" \"") {
            Some((numbers, name)) => (numbers, unescape(name)),
            None => (line, String::new()),
        };
        let mut fields = Fields { lines, cpus, values: [0; FIELDS], len: 0, next: 0 };
        let mut parts = numbers.get(kind.len_utf8()..).unwrap_or("").split(' ');
        let since: u64 = fields.lines.number(parts.next().unwrap_or(""))?;
        at = at.checked_add(since).ok_or_else(|| fields.lines.error("is later than time goes"))?;
        let whose: u64 = fields.lines.number(parts.next().unwrap_or(""))?;
        let before: &mut [u64; FIELDS] = last.entry((kind, whose)).or_default();
        fields.values[0] = whose;
        fields.len = 1;
        for part in parts {
            let i = fields.len;
            if i == FIELDS {
                return Err(fields.lines.error("has too many numbers"));
            }
            let change: i64 = fields.lines.number(part)?;
            fields.values[i] = before[i].wrapping_add(change as u64);
            fields.len += 1;
        }
        *before = fields.values;
        let mut select = MenuSelect::default();
        let event = fields.event(kind, at, &name, &mut select)?;
        memory.event(Instant(at), &event);
    }
}

/// Events as lines. The first error is kept, and nothing written after it.
struct EventWriter<'a> {
    out: &'a mut dyn Write,
    before: Instant,
    last: BTreeMap<(char, u64), [u64; FIELDS]>,
    error: Option<io::Error>,
}

impl TraceSink for EventWriter<'_> {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event<'_>) {
        if self.error.is_none() {
            self.error = self.write(at, event).err();
        }
    }
    fn end(&mut self, at: Instant) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "end {}", at.0).err();
        }
    }
}

impl EventWriter<'_> {
    fn write(&mut self, at: Instant, event: &Event<'_>) -> io::Result<()> {
        let unknown =
            || io::Error::other(format!("an event that a recording cannot hold: {event:?}"));
        let (kind, numbers, name) = numbers(at, event).ok_or_else(unknown)?;
        let since = at.0.checked_sub(self.before.0).ok_or_else(unknown)?;
        self.before = at;
        let whose = numbers.first().copied().unwrap_or(0);
        let last = self.last.entry((kind, whose)).or_default();
        write!(self.out, "{kind}{since} {whose}")?;
        for (value, before) in numbers.iter().zip(last.iter_mut()).skip(1) {
            write!(self.out, " {}", value.wrapping_sub(*before) as i64)?;
            *before = *value;
        }
        match name {
            Some(name) => writeln!(self.out, " \"{}", escape(name)),
            None => writeln!(self.out),
        }
    }
}

fn maybe(task: Option<TaskId>) -> u64 {
    task.map_or(0, |t| u64::from(t.0) + 1)
}

/// An event's kind, its numbers (whose it is, first), and its name if it has one; `None`: it holds
/// a word that is not known here. [`Fields::event`] is the way back.
fn numbers<'a>(at: Instant, event: &Event<'a>) -> Option<(char, Vec<u64>, Option<&'a str>)> {
    let n = |cpu: CpuId| u64::from(cpu.0);
    let t = |task: TaskId| u64::from(task.0);
    let why = |why: Why| WHYS.iter().position(|w| *w == why).map(|i| i as u64);
    // A clock moves with the time: what is left is small.
    let clock = |of: ClockPelt| of.0.wrapping_sub(at.0);
    let (kind, numbers) = match *event {
        Event::TaskNew { task, comm, user, cpu, why: w, max_speed } => {
            let numbers = vec![t(task), user.into(), n(cpu), why(w)?, max_speed.0];
            return Some(('n', numbers, Some(comm)));
        }
        Event::Phase { task, index, name } => {
            return Some(('f', vec![t(task), index.into()], Some(name)));
        }
        Event::MaxSpeed { task, max_speed } => ('m', vec![t(task), max_speed.0]),
        Event::Policy { task, policy } => {
            let slice = |s: Option<Span>| s.map_or(0, |s| s.0);
            let of = match policy {
                Policy::Other { slice: s } => [0, slice(s), 0, 0, 0],
                Policy::Batch { slice: s } => [1, slice(s), 0, 0, 0],
                Policy::Idle => [2, 0, 0, 0, 0],
                Policy::Fifo { priority } => [3, priority.into(), 0, 0, 0],
                Policy::Rr { priority } => [4, priority.into(), 0, 0, 0],
                Policy::Deadline { runtime, deadline, period, reclaim } => {
                    [5, runtime.0, deadline.0, period.0, reclaim.into()]
                }
                Policy::High { slice: s } => [6, slice(s), 0, 0, 0],
                Policy::Overcommit { runtime, period } => [7, runtime.0, 0, period.0, 0],
            };
            ('y', [t(task)].into_iter().chain(of).collect())
        }
        Event::Wakeup { task, cpu, why: w } => ('w', vec![t(task), n(cpu), why(w)?]),
        Event::Switch { cpu, prev, next } => {
            let out = |out| OUTS.iter().position(|o| *o == out).map(|i| i as u64);
            let left = prev.map_or(Some(0), |(_, o)| out(o))?;
            ('s', vec![n(cpu), maybe(prev.map(|p| p.0)), left, maybe(next)])
        }
        Event::Migrate { task, from, to, why: w } => ('g', vec![t(task), n(from), n(to), why(w)?]),
        Event::Step { task, number } => ('e', vec![t(task), number]),
        Event::Job { task, mark } => {
            ('J', [t(task)].into_iter().chain(mark.to_numbers()).collect())
        }
        Event::Freq { cpu, freq } => ('q', vec![n(cpu), freq.0]),
        Event::FreqRequest { cpu, util, freq, why: w } => {
            ('r', vec![n(cpu), util.0, freq.0, why(w)?])
        }
        Event::Idle { cpu, state } => ('i', vec![n(cpu), state.map_or(0, |s| u64::from(s) + 1)]),
        Event::PeltTask {
            task,
            cpu,
            util_avg,
            runnable_avg,
            util_sum,
            period_contrib,
            last_update_time,
        } => (
            't',
            vec![
                t(task),
                n(cpu),
                util_avg.0,
                runnable_avg.0,
                util_sum,
                period_contrib.into(),
                clock(last_update_time),
            ],
        ),
        Event::UtilEst { task, util_est } => ('u', vec![t(task), util_est.0]),
        Event::WaitingAvg { task, waiting_avg } => ('a', vec![t(task), waiting_avg.0]),
        Event::PeltCfs {
            cpu,
            util_avg,
            runnable_avg,
            util_est,
            util_sum,
            period_contrib,
            last_update_time,
        } => (
            'c',
            vec![
                n(cpu),
                util_avg.0,
                runnable_avg.0,
                util_est.0,
                util_sum,
                period_contrib.into(),
                clock(last_update_time),
            ],
        ),
        Event::PeltPressure {
            cpu,
            class,
            util_avg,
            util_sum,
            period_contrib,
            last_update_time,
        } => {
            let class = CLASSES.iter().position(|c| *c == class)? as u64;
            let clock = clock(last_update_time);
            ('p', vec![n(cpu), class, util_avg.0, util_sum, period_contrib.into(), clock])
        }
        Event::CpuCapacity { cpu, capacity } => ('k', vec![n(cpu), capacity.0]),
        Event::Overutilized { on } => ('o', vec![0, on.into()]),
        Event::Hotplug { cpu, online } => ('h', vec![n(cpu), online.into()]),
        Event::Throttled { task, on } => ('x', vec![t(task), on.into()]),
        Event::Irq { cpu, enters } => ('j', vec![n(cpu), enters.into()]),
        Event::Work { cpu, kind } => ('K', vec![n(cpu), kind.into()]),
        Event::Misfit { cpu, task } => ('z', vec![n(cpu), maybe(task)]),
        Event::Stolen { cpu, span } => ('Z', vec![n(cpu), span.0]),
        Event::Due { task, ago } => ('Y', vec![t(task), ago.0]),
        Event::Waking { task, by } => ('W', vec![t(task), n(by)]),
        Event::Prio { task, prio } => ('P', vec![t(task), i64::from(prio) as u64]),
        Event::Clamps { task, clamps } => ('v', vec![t(task), clamps.min.0, clamps.max.0]),
        Event::CpuClamps { cpu, clamps } => ('V', vec![n(cpu), clamps.min.0, clamps.max.0]),
        Event::Entity { task, place } => {
            ('E', [t(task)].into_iter().chain(place_numbers(&place)).collect())
        }
        Event::GroupEntity { cpu, group, place } => {
            let of = [n(cpu), group.0.into()];
            ('F', of.into_iter().chain(place_numbers(&place)).collect())
        }
        Event::GroupQueue { cpu, group, min_vruntime } => {
            ('H', vec![n(cpu), group.0.into(), min_vruntime])
        }
        Event::GroupThrottled { cpu, group, on } => ('O', vec![n(cpu), group.0.into(), on.into()]),
        Event::Quota { group, stat } => ('b', quota_numbers(group, stat)),
        Event::TaskLoad { task, load_avg, load_sum } => ('l', vec![t(task), load_avg, load_sum]),
        Event::CfsLoad { cpu, load_avg, load_sum } => ('B', vec![n(cpu), load_avg, load_sum]),
        Event::CfsQueue { cpu, min_vruntime, sum_w_vruntime, sum_weight, nr_queued } => {
            let sums = [sum_w_vruntime as u64, sum_weight, nr_queued.into()];
            ('Q', [n(cpu), min_vruntime].into_iter().chain(sums).collect())
        }
        Event::CfsUtilEst { cpu, util_est } => ('U', vec![n(cpu), util_est.0]),
        Event::FreqLook { cpu, look } => ('G', look_numbers(cpu, &look)),
        Event::Deadline { task, runtime, left } => {
            ('d', vec![t(task), runtime as u64, left as u64])
        }
        Event::Tick { cpu } => ('T', vec![n(cpu)]),
        Event::Resched { cpu, lazy } => ('R', vec![n(cpu), lazy.into()]),
        Event::BalanceDue { cpu, jiffies, next_balance, domains: [(l0, i0), (l1, i1)] } => {
            ('D', vec![n(cpu), jiffies, next_balance, l0, i0, l1, i1])
        }
        Event::BalanceLook { cpu, level, idle, failed } => {
            let idle = IDLE_TYPES.iter().position(|i| *i == idle)? as u64;
            ('L', vec![n(cpu), level.into(), idle, failed.into()])
        }
        Event::IdleSelect { cpu, select } => ('I', select_numbers(cpu, select)),
        Event::Temperature { zone, millicelsius } => ('C', vec![zone.into(), millicelsius.into()]),
        Event::Cooling { cpu, max, zone } => ('X', vec![n(cpu), max.0, zone.into()]),
        Event::CpuFrequencyLimits { cpu, min, max } => ('M', vec![n(cpu), min.0, max.0]),
        Event::Capped { cpu, by, max } => {
            ('A', vec![n(cpu), by as u64, max.map_or(0, |max| max.0.saturating_add(1))])
        }
        Event::SpeedLimits { task, affinity, clamped } => {
            ('N', vec![t(task), affinity.0, clamped.0])
        }
    };
    Some((kind, numbers, None))
}

fn quota_numbers(group: GroupId, q: QuotaStat) -> Vec<u64> {
    let longest = q.longest.map_or(0, |longest| longest.0.saturating_add(1));
    vec![group.0.into(), q.periods, q.throttled, q.time.0, longest]
}

/// Those of an entity's place: a deadline lies somewhat behind, and so does what is protected.
fn place_numbers(p: &Place) -> [u64; 6] {
    let [ahead, protected] = [p.deadline, p.vprot].map(|v| v.wrapping_sub(p.vruntime));
    [p.vruntime, ahead, p.vlag as u64, p.slice, protected, p.weight]
}

/// Those of a governor's look; 0: what comes of it is not known.
fn look_numbers(cpu: CpuId, l: &FreqLook) -> Vec<u64> {
    let policy = [l.next_freq.0, l.cached_raw_freq.0, l.since_ns, l.forced.into()];
    let of_cpu = [l.bw_min.0, l.busy.into(), l.running_bw];
    let signals = [l.util_avg.0, l.runnable_avg.0, l.util_est.0];
    let chosen = [l.chosen.map_or(0, |freq| freq.0)];
    // 0: not told, else one more.
    let rt = l.rt_runnable.map_or(0, |rt| 1 + u64::from(rt));
    let [least, most] = l.uclamp.map_or([0; 2], |clamps| clamps.map(|clamp| clamp.0 + 1));
    [u64::from(cpu.0)]
        .into_iter()
        .chain(policy)
        .chain(of_cpu)
        .chain(signals)
        .chain(chosen)
        .chain([rt, least, most])
        .collect()
}

/// Those of a choice of `menu`.
fn select_numbers(cpu: CpuId, s: &MenuSelect) -> Vec<u64> {
    // 0: not known, else one more; a length of nearly 2^64 is none.
    let more = |n: Option<u64>| n.map_or(0, |n| n.wrapping_add(1));
    let last =
        s.last.map_or([0; 3], |l| [more(Some(l.state.into())), l.slept_ns, l.by_tick.into()]);
    let numbers = [u64::from(cpu.0), s.next_timer_ns, s.bucket.into()].into_iter();
    let memory = s.correction_factor.into_iter().chain(s.intervals_us).chain([s.interval_ptr]);
    let told = [more(s.sleep_length_ns), s.delta_next_ns as u64, s.tick_stopped.into()];
    let chosen = [more(s.state.map(u64::from)), more(s.stop_tick.map(u64::from))];
    numbers.chain(memory.map(u64::from)).chain(last).chain(told).chain(chosen).collect()
}

/// The numbers of a line, taken one after the other.
struct Fields<'l, 'a> {
    lines: &'l Lines<'a>,
    cpus: u64,
    values: [u64; FIELDS],
    len: usize,
    next: usize,
}

impl Fields<'_, '_> {
    /// `select`: where what `menu` chose from can be put.
    fn event<'n>(
        &mut self,
        kind: char,
        at: u64,
        name: &'n str,
        select: &'n mut MenuSelect,
    ) -> Result<Event<'n>, InputError> {
        let event = match kind {
            'n' => {
                let (task, user, cpu) = (self.task()?, self.flag()?, self.cpu()?);
                let (why, max_speed) = (self.of(WHYS)?, self.util()?);
                Event::TaskNew { task, comm: name, user, cpu, why, max_speed }
            }
            'f' => Event::Phase { task: self.task()?, index: self.small()?, name },
            'm' => Event::MaxSpeed { task: self.task()?, max_speed: self.util()? },
            'y' => Event::Policy { task: self.task()?, policy: self.policy()? },
            'w' => Event::Wakeup { task: self.task()?, cpu: self.cpu()?, why: self.of(WHYS)? },
            's' => {
                let (cpu, prev, out, next) =
                    (self.cpu()?, self.maybe()?, self.of(OUTS)?, self.maybe()?);
                Event::Switch { cpu, prev: prev.map(|task| (task, out)), next }
            }
            'g' => {
                let (task, from, to) = (self.task()?, self.cpu()?, self.cpu()?);
                Event::Migrate { task, from, to, why: self.of(WHYS)? }
            }
            'e' => Event::Step { task: self.task()?, number: self.take()? },
            'J' => Event::Job { task: self.task()?, mark: self.mark()? },
            'q' => Event::Freq { cpu: self.cpu()?, freq: KHz(self.take()?) },
            'r' => {
                let (cpu, util, freq) = (self.cpu()?, self.util()?, KHz(self.take()?));
                Event::FreqRequest { cpu, util, freq, why: self.of(WHYS)? }
            }
            'i' => Event::Idle { cpu: self.cpu()?, state: self.small()?.checked_sub(1) },
            't' => Event::PeltTask {
                task: self.task()?,
                cpu: self.cpu()?,
                util_avg: self.util()?,
                runnable_avg: self.util()?,
                util_sum: self.take()?,
                period_contrib: self.small()?,
                last_update_time: ClockPelt(self.take()?.wrapping_add(at)),
            },
            'u' => Event::UtilEst { task: self.task()?, util_est: self.util()? },
            'a' => Event::WaitingAvg { task: self.task()?, waiting_avg: self.util()? },
            'c' => Event::PeltCfs {
                cpu: self.cpu()?,
                util_avg: self.util()?,
                runnable_avg: self.util()?,
                util_est: self.util()?,
                util_sum: self.take()?,
                period_contrib: self.small()?,
                last_update_time: ClockPelt(self.take()?.wrapping_add(at)),
            },
            'p' => Event::PeltPressure {
                cpu: self.cpu()?,
                class: self.of(CLASSES)?,
                util_avg: self.util()?,
                util_sum: self.take()?,
                period_contrib: self.small()?,
                last_update_time: ClockPelt(self.take()?.wrapping_add(at)),
            },
            'k' => Event::CpuCapacity { cpu: self.cpu()?, capacity: Capacity(self.take()?) },
            'o' => {
                self.take()?;
                Event::Overutilized { on: self.flag()? }
            }
            'h' => Event::Hotplug { cpu: self.cpu()?, online: self.flag()? },
            'x' => Event::Throttled { task: self.task()?, on: self.flag()? },
            'j' => Event::Irq { cpu: self.cpu()?, enters: self.flag()? },
            'K' => Event::Work { cpu: self.cpu()?, kind: self.small()? },
            'z' => Event::Misfit { cpu: self.cpu()?, task: self.maybe()? },
            'Z' => Event::Stolen { cpu: self.cpu()?, span: Span(self.take()?) },
            'Y' => Event::Due { task: self.task()?, ago: Span(self.take()?) },
            'W' => Event::Waking { task: self.task()?, by: self.cpu()? },
            'P' => {
                let (task, prio) = (self.task()?, self.take()? as i64);
                let wrong = || self.lines.error(format!("found priority {prio}, wanted -1 to 140"));
                let known = i32::try_from(prio).ok().filter(|p| (-1..=140).contains(p));
                Event::Prio { task, prio: known.ok_or_else(wrong)? }
            }
            'v' => Event::Clamps { task: self.task()?, clamps: self.clamps()? },
            'V' => Event::CpuClamps { cpu: self.cpu()?, clamps: self.clamps()? },
            'E' => Event::Entity { task: self.task()?, place: self.place()? },
            'F' => Event::GroupEntity {
                cpu: self.cpu()?,
                group: GroupId(self.small()?),
                place: self.place()?,
            },
            'H' => Event::GroupQueue {
                cpu: self.cpu()?,
                group: GroupId(self.small()?),
                min_vruntime: self.take()?,
            },
            'O' => Event::GroupThrottled {
                cpu: self.cpu()?,
                group: GroupId(self.small()?),
                on: self.flag()?,
            },
            'b' => Event::Quota {
                group: GroupId(self.small()?),
                stat: QuotaStat {
                    periods: self.take()?,
                    throttled: self.take()?,
                    time: Span(self.take()?),
                    longest: self.one_less()?.map(Span),
                },
            },
            'l' => Event::TaskLoad {
                task: self.task()?,
                load_avg: self.take()?,
                load_sum: self.take()?,
            },
            'B' => {
                Event::CfsLoad { cpu: self.cpu()?, load_avg: self.take()?, load_sum: self.take()? }
            }
            'Q' => Event::CfsQueue {
                cpu: self.cpu()?,
                min_vruntime: self.take()?,
                sum_w_vruntime: self.take()? as i64,
                sum_weight: self.take()?,
                nr_queued: self.small()?,
            },
            'U' => Event::CfsUtilEst { cpu: self.cpu()?, util_est: Util(self.take()?) },
            'G' => Event::FreqLook {
                cpu: self.cpu()?,
                look: FreqLook {
                    next_freq: KHz(self.take()?),
                    cached_raw_freq: KHz(self.take()?),
                    since_ns: self.take()?,
                    forced: self.flag()?,
                    bw_min: Util(self.take()?),
                    busy: self.flag()?,
                    running_bw: self.take()?,
                    util_avg: Util(self.take()?),
                    runnable_avg: Util(self.take()?),
                    util_est: Util(self.take()?),
                    chosen: Some(KHz(self.take()?)).filter(|freq| freq.0 > 0),
                    rt_runnable: self.later()?.map(|rt| rt > 0),
                    uclamp: self.later()?.zip(self.later()?).map(|(a, b)| [Util(a), Util(b)]),
                },
            },
            'd' => Event::Deadline {
                task: self.task()?,
                runtime: self.take()? as i64,
                left: self.take()? as i64,
            },
            'T' => Event::Tick { cpu: self.cpu()? },
            'R' => Event::Resched { cpu: self.cpu()?, lazy: self.flag()? },
            'D' => {
                let (cpu, jiffies, next_balance) = (self.cpu()?, self.take()?, self.take()?);
                let domains = [(self.take()?, self.take()?), (self.take()?, self.take()?)];
                Event::BalanceDue { cpu, jiffies, next_balance, domains }
            }
            'L' => {
                let (cpu, level) = (self.cpu()?, self.small()?);
                let idle = self.of(IDLE_TYPES)?;
                Event::BalanceLook { cpu, level, idle, failed: self.small()? }
            }
            'I' => {
                let cpu = self.cpu()?;
                *select = self.select()?;
                Event::IdleSelect { cpu, select }
            }
            'C' => Event::Temperature { zone: self.small()?, millicelsius: self.small()? },
            'M' => {
                let (cpu, min) = (self.cpu()?, KHz(self.take()?));
                Event::CpuFrequencyLimits { cpu, min, max: KHz(self.take()?) }
            }
            'A' => {
                let (cpu, by) = (self.cpu()?, self.of(&Limit::ALL)?);
                Event::Capped { cpu, by, max: self.take()?.checked_sub(1).map(KHz) }
            }
            'N' => Event::SpeedLimits {
                task: self.task()?,
                affinity: self.util()?,
                clamped: self.util()?,
            },
            'X' => Event::Cooling { cpu: self.cpu()?, max: KHz(self.take()?), zone: self.small()? },
            other => {
                return Err(self.lines.error(format!("found an event `{other}`: no such kind")));
            }
        };
        if self.next < self.len {
            return Err(self.lines.error("has too many numbers"));
        }
        Ok(event)
    }

    fn mark(&mut self) -> Result<JobMark, InputError> {
        let mut numbers = [0; MARK_NUMBERS];
        for n in &mut numbers {
            *n = self.take()?;
        }
        JobMark::from_numbers(numbers).ok_or_else(|| self.lines.error("holds no mark of a job"))
    }

    /// The way back of [`place_numbers`].
    fn place(&mut self) -> Result<Place, InputError> {
        let (vruntime, ahead) = (self.take()?, self.take()?);
        Ok(Place {
            vruntime,
            deadline: vruntime.wrapping_add(ahead),
            vlag: self.take()? as i64,
            slice: self.take()?,
            vprot: vruntime.wrapping_add(self.take()?),
            weight: self.take()?,
        })
    }

    fn take(&mut self) -> Result<u64, InputError> {
        if self.next == self.len {
            return Err(self.lines.error("has too few numbers"));
        }
        self.next += 1;
        Ok(self.values[self.next - 1])
    }

    fn below(&mut self, limit: u64, what: &str) -> Result<u32, InputError> {
        let found = self.take()?;
        let wrong = || self.lines.error(format!("found {what} {found}, wanted less than {limit}"));
        if found < limit { u32::try_from(found).map_err(|_| wrong()) } else { Err(wrong()) }
    }

    fn small(&mut self) -> Result<u32, InputError> {
        self.below(1 << 32, "a number")
    }

    fn cpu(&mut self) -> Result<CpuId, InputError> {
        self.below(self.cpus, "CPU").map(CpuId)
    }

    fn task(&mut self) -> Result<TaskId, InputError> {
        self.below(MAX_TASKS, "task").map(TaskId)
    }

    fn maybe(&mut self) -> Result<Option<TaskId>, InputError> {
        Ok(self.below(MAX_TASKS, "task")?.checked_sub(1).map(TaskId))
    }

    fn clamps(&mut self) -> Result<Uclamp, InputError> {
        Ok(Uclamp { min: self.util()?, max: self.util()? })
    }

    fn util(&mut self) -> Result<Util, InputError> {
        self.take().map(Util)
    }

    fn flag(&mut self) -> Result<bool, InputError> {
        Ok(self.below(2, "a flag")? == 1)
    }

    fn of<T: Copy>(&mut self, known: &[T]) -> Result<T, InputError> {
        Ok(known[self.below(known.len() as u64, "a choice")? as usize])
    }

    /// A number that may be missing.
    fn one_less(&mut self) -> Result<Option<u64>, InputError> {
        Ok(self.take()?.checked_sub(1))
    }

    /// The same, of one that earlier recordings do not have at all.
    fn later(&mut self) -> Result<Option<u64>, InputError> {
        if self.next == self.len { Ok(None) } else { self.one_less() }
    }

    /// The way back of [`select_numbers`], behind its CPU.
    fn select(&mut self) -> Result<MenuSelect, InputError> {
        let mut s = MenuSelect {
            next_timer_ns: self.take()?,
            bucket: self.small()?,
            ..MenuSelect::default()
        };
        for n in s.correction_factor.iter_mut().chain(&mut s.intervals_us) {
            *n = self.small()?;
        }
        s.interval_ptr = self.small()?;
        let (state, slept_ns, by_tick) = (self.small()?, self.take()?, self.flag()?);
        s.last = state.checked_sub(1).map(|state| LastSleep { state, slept_ns, by_tick });
        (s.sleep_length_ns, s.delta_next_ns) = (self.one_less()?, self.take()? as i64);
        s.tick_stopped = self.flag()?;
        s.state = self.small()?.checked_sub(1);
        s.stop_tick = self.below(3, "a flag")?.checked_sub(1).map(|n| n == 1);
        Ok(s)
    }

    fn policy(&mut self) -> Result<Policy, InputError> {
        let kind = self.below(8, "a policy")?;
        let [first, deadline, period] = [self.take()?, self.take()?, self.take()?];
        let reclaim = self.flag()?;
        let slice = (first > 0).then_some(Span(first));
        let priority = first as u8;
        Ok(match kind {
            0 => Policy::Other { slice },
            1 => Policy::Batch { slice },
            2 => Policy::Idle,
            3 => Policy::Fifo { priority },
            4 => Policy::Rr { priority },
            6 => Policy::High { slice },
            7 => Policy::Overcommit { runtime: Span(first), period: Span(period) },
            _ => Policy::Deadline {
                runtime: Span(first),
                deadline: Span(deadline),
                period: Span(period),
                reclaim,
            },
        })
    }
}
