//! Work and time: how far a running task gets, and when it is done.

use crate::state::costs::FULL;
use crate::state::machine::{Cpu, Machine, SPEED_SHIFT, Todo};
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, Span};

/// The work per ns of a CPU of `capacity` at `freq` of `max`, see [`SPEED_SHIFT`]. Rounding: down.
pub(crate) fn speed(capacity: Capacity, freq: KHz, max: KHz) -> u64 {
    let full = (u128::from(capacity.0) * u128::from(freq.0)) << SPEED_SHIFT;
    ((full / (1024 * u128::from(max.0))) as u64).max(1)
}

/// The work per ns of a kind of work that gets on at so many millionths of its fastest. Rounding:
/// down.
pub(crate) fn of_kind(ppm: u64) -> u64 {
    (((u128::from(ppm)) << SPEED_SHIFT) / 1_000_000).max(1) as u64
}

/// Returns work worth this time at full speed, in the unit of [`Todo::Work`].
pub(crate) fn at_full_speed(span: Span) -> Todo {
    Todo::Work(u128::from(span.0) << SPEED_SHIFT)
}

/// Returns pieces of work, each worth this time at full speed, until one ends at `until` or later.
pub(crate) fn pieces(piece: Span, until: Instant) -> Todo {
    let piece = u64::try_from(u128::from(piece.0) << SPEED_SHIFT).unwrap_or(u64::MAX);
    Todo::Pieces { until, piece, left: piece }
}

/// Books what the task of `c`, which still has `todo`, has done since the last time.
pub(crate) fn book_progress(c: &mut Cpu, todo: Option<&mut Todo>, speed: u64, now: Instant) {
    if c.run_since > now {
        // An interrupt, or the switch itself, still has the CPU.
        return;
    }
    let ran = now.since(c.run_since);
    c.run_since = now;
    c.worked += ran;
    if let Some(todo) = todo {
        progress(todo, ran, speed);
    }
}

/// Takes what was done in a time at this speed from what there is to do.
fn progress(todo: &mut Todo, ran: Span, speed: u64) {
    let done = u128::from(ran.0) * u128::from(speed);
    match todo {
        Todo::Work(left) => *left = left.saturating_sub(done),
        Todo::Time(left) => left.0 = left.0.saturating_sub(ran.0),
        Todo::Pieces { piece, left, .. } => {
            let into = u128::from(*piece - *left) + done;
            *left = *piece - (into % u128::from(*piece)) as u64;
        }
        Todo::Nothing => {}
    }
}

/// The time at which a task is done with `todo` that goes on at `since` with this speed.
pub(crate) fn done_at(todo: Todo, since: Instant, speed: u64) -> Instant {
    match todo {
        Todo::Nothing => since,
        Todo::Pieces { until, piece, left } => {
            // A piece that is over just now is so to the ns.
            let over = since >= until && piece - left < speed;
            let left = u128::from(if over { 0 } else { left });
            let ahead = u128::from(until.since(since).0) * u128::from(speed);
            let more = ahead.saturating_sub(left).div_ceil(u128::from(piece));
            done_at(Todo::Work(left + more * u128::from(piece)), since, speed)
        }
        Todo::Time(left) => since + left,
        Todo::Work(left) => match u64::try_from(left) {
            Ok(left) => since + Span(left.div_ceil(speed)),
            Err(_) => Instant(
                u64::try_from(left.div_ceil(u128::from(speed)))
                    .map_or(u64::MAX, |ns| since.0.saturating_add(ns)),
            ),
        },
    }
}

impl Machine {
    /// The speed of the kind of work that the running task does; of other todos than work: unused.
    fn speed_of_kind(&self, cpu: CpuId) -> u64 {
        let d = self.domain_of(cpu);
        let kind = self.cpu(cpu).curr.map_or(0, |task| self.task(task).kind);
        let own = usize::from(kind).checked_sub(1).and_then(|kind| d.kind_speed.get(kind));
        own.copied().unwrap_or(d.speed)
    }

    /// The work per ns on `cpu`, see [`SPEED_SHIFT`].
    #[inline]
    pub(crate) fn speed_of(&self, cpu: CpuId) -> u64 {
        let d = self.domain_of(cpu);
        let speed = match d.kind_speed.is_empty() {
            true => d.speed,
            false => self.speed_of_kind(cpu),
        };
        let threads = usize::from(self.cpu(cpu).core_threads);
        if threads > 1 {
            let beside = u128::from(self.costs.beside[threads]);
            return (u128::from(speed) * beside / u128::from(FULL)).max(1) as u64;
        }
        speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_on_until_one_ends_after_the_time() {
        let full = 1 << SPEED_SHIFT;
        let ends = |piece, until: u64, speed| {
            done_at(pieces(Span(piece), Instant(100 + until)), Instant(100), speed).0 - 100
        };
        assert_eq!(ends(32, 1, full), 32, "one piece at least");
        assert_eq!(ends(32, 32, full), 32);
        assert_eq!(ends(32, 33, full), 64);
        assert_eq!(ends(32, 65, full / 2), 128, "at half speed a piece takes twice as long");
        // Half of a second piece done, and the time has come meanwhile.
        let mut cpu = pieces(Span(32), Instant(40));
        progress(&mut cpu, Span(48), full);
        assert_eq!(done_at(cpu, Instant(48), full), Instant(64));
        progress(&mut cpu, Span(16), full);
        assert_eq!(done_at(cpu, Instant(64), full), Instant(64));
    }

    #[test]
    fn speed_is_capacity_times_frequency() {
        assert_eq!(speed(Capacity(1024), KHz(3_204_000), KHz(3_204_000)), 1 << SPEED_SHIFT);
        // 459/1024 · 600/2064 · 2^30 = 139911739.3, rounded down
        assert_eq!(speed(Capacity(459), KHz(600_000), KHz(2_064_000)), 139_911_739);
        // Never 0: the slowest CPU still gets on.
        assert_eq!(speed(Capacity(1), KHz(1), KHz(4_000_000)), 1);
    }
}
