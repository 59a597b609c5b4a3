//! Conversion of each field of an event to numbers of a line, and back.

use super::lines::Lines;
use crate::why::OTHER;
use crate::{
    FreqLook, IdleType, LastSleep, Limit, MenuSelect, PressureClass, QuotaStat, SwitchOut, Why,
};
use risetime_kernel::eevdf::Place;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{
    Capacity, ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util,
};
use risetime_model::workload::{JobMark, MARK_NUMBERS, Policy};
use risetime_model::{InputError, Name};

/// Numbers of an event at most, whose it is included.
pub(super) const FIELDS: usize = 26;
/// Tasks are numbered below this, so that nothing that counts them grows without bound.
const MAX_TASKS: u64 = 1 << 20;

const OUTS: [SwitchOut; 3] = [SwitchOut::Preempted, SwitchOut::Sleeping, SwitchOut::Exited];

/// The numbers of an event, as they are collected.
pub(crate) struct Numbers {
    at: Instant,
    values: [u64; FIELDS],
    len: usize,
    pub(super) name: Option<Name>,
}

impl Numbers {
    /// Returns those of an event at `at`, none yet.
    pub(super) fn at(at: Instant) -> Numbers {
        Numbers { at, values: [0; FIELDS], len: 0, name: None }
    }

    /// Returns those collected so far.
    pub(super) fn values(&self) -> &[u64] {
        &self.values[..self.len]
    }

    fn push(&mut self, value: u64) {
        self.values[self.len] = value;
        self.len += 1;
    }

    fn push_all<const N: usize>(&mut self, values: [u64; N]) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

/// The numbers of a line, taken one after the other.
pub(crate) struct Fields<'l, 'a> {
    pub(super) lines: &'l Lines<'a>,
    /// Number of CPUs.
    pub(super) cpus: u64,
    pub(super) at: u64,
    pub(super) values: [u64; FIELDS],
    pub(super) len: usize,
    pub(super) next: usize,
    pub(super) name: Name,
}

impl Fields<'_, '_> {
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

    fn of<T: Copy>(&mut self, known: &[T]) -> Result<T, InputError> {
        Ok(known[self.below(known.len() as u64, "a choice")? as usize])
    }

    /// Takes a number of which 0 says that there is none.
    fn one_less(&mut self) -> Result<Option<u64>, InputError> {
        Ok(self.take()?.checked_sub(1))
    }

    /// Takes such a number that stands at a line's end and that earlier recordings lack.
    fn later(&mut self) -> Result<Option<u64>, InputError> {
        if self.next == self.len { Ok(None) } else { self.one_less() }
    }
}

/// A type that fields of events have.
pub(crate) trait Number: Sized {
    /// Appends the value's numbers.
    fn put(self, line: &mut Numbers);
    /// Takes them from a line.
    ///
    /// Errors: too few of them, or one that the type cannot have.
    fn take(line: &mut Fields<'_, '_>) -> Result<Self, InputError>;
    /// Returns the CPU that it is.
    #[inline(always)]
    fn cpu(&self) -> Option<CpuId> {
        None
    }
}

impl Number for u64 {
    fn put(self, line: &mut Numbers) {
        line.push(self);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<u64, InputError> {
        line.take()
    }
}

impl Number for i64 {
    fn put(self, line: &mut Numbers) {
        line.push(self as u64);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<i64, InputError> {
        Ok(line.take()? as i64)
    }
}

impl Number for u32 {
    fn put(self, line: &mut Numbers) {
        line.push(self.into());
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<u32, InputError> {
        line.below(1 << 32, "a number")
    }
}

impl Number for u8 {
    fn put(self, line: &mut Numbers) {
        line.push(self.into());
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<u8, InputError> {
        Ok(line.below(1 << 8, "a number")? as u8)
    }
}

/// A flag. Where it stands first the event is the whole machine's, which is number 0.
impl Number for bool {
    fn put(self, line: &mut Numbers) {
        if line.len == 0 {
            line.push(0);
        }
        line.push(self.into());
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<bool, InputError> {
        if line.next == 0 {
            line.take()?;
        }
        Ok(line.below(2, "a flag")? == 1)
    }
}

/// A priority, the only such number.
impl Number for i32 {
    fn put(self, line: &mut Numbers) {
        line.push(i64::from(self) as u64);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<i32, InputError> {
        let prio = line.take()? as i64;
        let wrong = || line.lines.error(format!("found priority {prio}, wanted -1 to 140"));
        i32::try_from(prio).ok().filter(|p| (-1..=140).contains(p)).ok_or_else(wrong)
    }
}

macro_rules! units {
    ($($unit:ident)*) => {$(
        impl Number for $unit {
            fn put(self, line: &mut Numbers) {
                line.push(self.0);
            }
            fn take(line: &mut Fields<'_, '_>) -> Result<$unit, InputError> {
                line.take().map($unit)
            }
        }
    )*};
}
units! { Util Capacity KHz Span }

/// A clock moves with the time: what differs is small.
impl Number for ClockPelt {
    fn put(self, line: &mut Numbers) {
        line.push(self.0.wrapping_sub(line.at.0));
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<ClockPelt, InputError> {
        Ok(ClockPelt(line.take()?.wrapping_add(line.at)))
    }
}

impl Number for CpuId {
    fn put(self, line: &mut Numbers) {
        line.push(self.0.into());
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<CpuId, InputError> {
        line.below(line.cpus, "CPU").map(CpuId)
    }
    #[inline(always)]
    fn cpu(&self) -> Option<CpuId> {
        Some(*self)
    }
}

impl Number for TaskId {
    fn put(self, line: &mut Numbers) {
        line.push(self.0.into());
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<TaskId, InputError> {
        line.below(MAX_TASKS, "task").map(TaskId)
    }
}

impl Number for GroupId {
    fn put(self, line: &mut Numbers) {
        self.0.put(line);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<GroupId, InputError> {
        u32::take(line).map(GroupId)
    }
}

/// A name stands at the line's end, beside the numbers.
impl Number for Name {
    fn put(self, line: &mut Numbers) {
        line.name = Some(self);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Name, InputError> {
        Ok(line.name)
    }
}

impl Number for Why {
    fn put(self, line: &mut Numbers) {
        line.push(self.number());
        if let Why::Other(reason) = self {
            line.name = Some(Name::of(reason.word()));
        }
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Why, InputError> {
        if line.values[..line.len].get(line.next) == Some(&OTHER) {
            line.next += 1;
            return Ok(Why::other(&line.name));
        }
        let number = line.below(Why::ALL.len() as u64, "a choice")?;
        Ok(Why::of_number(number.into()).unwrap_or(Why::Unknown))
    }
}

macro_rules! choices {
    ($($type:ty: $known:expr;)*) => {$(
        impl Number for $type {
            fn put(self, line: &mut Numbers) {
                line.push($known.iter().position(|known| *known == self).unwrap_or(0) as u64);
            }
            fn take(line: &mut Fields<'_, '_>) -> Result<$type, InputError> {
                line.of(&$known)
            }
        }
    )*};
}
choices! {
    PressureClass: PressureClass::ALL;
    IdleType: IdleType::ALL;
    Limit: Limit::ALL;
    SwitchOut: OUTS;
}

impl Number for Option<TaskId> {
    fn put(self, line: &mut Numbers) {
        line.push(self.map_or(0, |t| u64::from(t.0) + 1));
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Option<TaskId>, InputError> {
        Ok(line.below(MAX_TASKS, "task")?.checked_sub(1).map(TaskId))
    }
}

impl Number for Option<(TaskId, SwitchOut)> {
    fn put(self, line: &mut Numbers) {
        self.map(|(task, _)| task).put(line);
        self.map_or(OUTS[0], |(_, out)| out).put(line);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Option<(TaskId, SwitchOut)>, InputError> {
        let (task, out) = (<Option<TaskId> as Number>::take(line)?, SwitchOut::take(line)?);
        Ok(task.map(|task| (task, out)))
    }
}

impl Number for Option<u32> {
    fn put(self, line: &mut Numbers) {
        line.push(self.map_or(0, |n| u64::from(n) + 1));
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Option<u32>, InputError> {
        Ok(u32::take(line)?.checked_sub(1))
    }
}

impl Number for Option<KHz> {
    fn put(self, line: &mut Numbers) {
        line.push(self.map_or(0, |freq| freq.0.saturating_add(1)));
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Option<KHz>, InputError> {
        Ok(line.one_less()?.map(KHz))
    }
}

/// `last_balance` and `balance_interval` of two domains.
impl Number for [(u64, u64); 2] {
    fn put(self, line: &mut Numbers) {
        let [(last0, interval0), (last1, interval1)] = self;
        line.push_all([last0, interval0, last1, interval1]);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<[(u64, u64); 2], InputError> {
        Ok([(line.take()?, line.take()?), (line.take()?, line.take()?)])
    }
}

impl Number for Uclamp {
    fn put(self, line: &mut Numbers) {
        line.push_all([self.min.0, self.max.0]);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Uclamp, InputError> {
        Ok(Uclamp { min: Util::take(line)?, max: Util::take(line)? })
    }
}

impl Number for JobMark {
    fn put(self, line: &mut Numbers) {
        line.push_all(self.to_numbers());
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<JobMark, InputError> {
        let mut numbers = [0; MARK_NUMBERS];
        for n in &mut numbers {
            *n = line.take()?;
        }
        JobMark::from_numbers(numbers).ok_or_else(|| line.lines.error("holds no mark of a job"))
    }
}

/// A deadline lies somewhat behind the vruntime, and so does what is protected.
impl Number for Place {
    fn put(self, line: &mut Numbers) {
        let [ahead, protected] = [self.deadline, self.vprot].map(|v| v.wrapping_sub(self.vruntime));
        line.push_all([self.vruntime, ahead, self.vlag as u64]);
        line.push_all([self.slice, protected, self.weight]);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Place, InputError> {
        let (vruntime, ahead) = (line.take()?, line.take()?);
        Ok(Place {
            vruntime,
            deadline: vruntime.wrapping_add(ahead),
            vlag: line.take()? as i64,
            slice: line.take()?,
            vprot: vruntime.wrapping_add(line.take()?),
            weight: line.take()?,
        })
    }
}

impl Number for QuotaStat {
    fn put(self, line: &mut Numbers) {
        let longest = self.longest.map_or(0, |longest| longest.0.saturating_add(1));
        line.push_all([self.periods, self.throttled, self.time.0, longest]);
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<QuotaStat, InputError> {
        Ok(QuotaStat {
            periods: line.take()?,
            throttled: line.take()?,
            time: Span(line.take()?),
            longest: line.one_less()?.map(Span),
        })
    }
}

impl Number for FreqLook {
    fn put(self, line: &mut Numbers) {
        line.push_all([self.next_freq.0, self.cached_raw_freq.0, self.since_ns]);
        line.push_all([self.forced.into(), self.bw_min.0, self.busy.into(), self.running_bw]);
        line.push_all([self.util_avg.0, self.runnable_avg.0, self.util_est.0]);
        line.push(self.chosen.map_or(0, |freq| freq.0));
        line.push(self.rt_runnable.map_or(0, |rt| 1 + u64::from(rt)));
        line.push_all(self.uclamp.map_or([0; 2], |clamps| clamps.map(|clamp| clamp.0 + 1)));
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<FreqLook, InputError> {
        Ok(FreqLook {
            next_freq: KHz::take(line)?,
            cached_raw_freq: KHz::take(line)?,
            since_ns: line.take()?,
            forced: bool::take(line)?,
            bw_min: Util::take(line)?,
            busy: bool::take(line)?,
            running_bw: line.take()?,
            util_avg: Util::take(line)?,
            runnable_avg: Util::take(line)?,
            util_est: Util::take(line)?,
            chosen: Some(KHz::take(line)?).filter(|freq| freq.0 > 0),
            rt_runnable: line.later()?.map(|rt| rt > 0),
            uclamp: line.later()?.zip(line.later()?).map(|(a, b)| [Util(a), Util(b)]),
        })
    }
}

impl Number for MenuSelect {
    fn put(self, line: &mut Numbers) {
        // 0: not known, else one more; a length of nearly 2^64 is none.
        let more = |n: Option<u64>| n.map_or(0, |n| n.wrapping_add(1));
        line.push_all([self.next_timer_ns, self.bucket.into()]);
        line.push_all(self.correction_factor.map(u64::from));
        line.push_all(self.intervals_us.map(u64::from));
        line.push(self.interval_ptr.into());
        let last = self.last.map(|l| [more(Some(l.state.into())), l.slept_ns, l.by_tick.into()]);
        line.push_all(last.unwrap_or([0; 3]));
        let length = more(self.sleep_length_ns);
        line.push_all([length, self.delta_next_ns as u64, self.tick_stopped.into()]);
        line.push_all([self.state.map(u64::from), self.stop_tick.map(u64::from)].map(more));
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<MenuSelect, InputError> {
        let mut s = MenuSelect {
            next_timer_ns: line.take()?,
            bucket: u8::take(line)?,
            ..MenuSelect::default()
        };
        for n in s.correction_factor.iter_mut().chain(&mut s.intervals_us) {
            *n = u32::take(line)?;
        }
        s.interval_ptr = u8::take(line)?;
        let (state, slept_ns, by_tick) = (u32::take(line)?, line.take()?, bool::take(line)?);
        s.last = state.checked_sub(1).map(|state| LastSleep { state, slept_ns, by_tick });
        (s.sleep_length_ns, s.delta_next_ns) = (line.one_less()?, line.take()? as i64);
        s.tick_stopped = bool::take(line)?;
        s.state = line.below(1 << 8, "a state")?.checked_sub(1).map(|state| state as u8);
        s.stop_tick = line.below(3, "a flag")?.checked_sub(1).map(|n| n == 1);
        Ok(s)
    }
}

impl Number for Policy {
    fn put(self, line: &mut Numbers) {
        let slice = |s: Option<Span>| s.map_or(0, |s| s.0);
        line.push_all(match self {
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
        });
    }
    fn take(line: &mut Fields<'_, '_>) -> Result<Policy, InputError> {
        let kind = line.below(8, "a policy")?;
        let [first, deadline, period] = [line.take()?, line.take()?, line.take()?];
        let reclaim = bool::take(line)?;
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
