//! Idle time of a CPU as the kernel counts it and `get_cpu_idle_time` tells governors.
//!
//! ```text
//! before 7.2  from the switch to the idle task to the next switch
//! since 7.2   a whole tick for each that finds the CPU idle while its tick runs; from where the tick is stopped on,
//!             to the next switch                                                (one count, `CPUTIME_IDLE`, for both)
//! ```
//!
//! So a CPU under 7.2 may have been idle for longer than time has passed: falls asleep 1 ms before its tick, and goes
//! on sleeping, 4 ms are counted for that one (HZ=250). Of an idle time that ends before the tick nothing is.
//! Left out: what interrupts take from it; time that tasks wait for devices.
//!
//! `DEVIATES(idle-time)`: 6.12.117 measures all of it and 7.2.13 counts ticks, as asked; of the releases between nobody knows
//! here, and they measure. `ondemand` and `conservative` see less load where ticks count.
//!
//! Source: kernel/sched/cputime.c:kcpustat_dyntick_start, kcpustat_idle_stop, account_process_tick of 7.3;
//! kernel/time/tick-sched.c:tick_nohz_idle_stop_tick, tick_nohz_idle_exit; before, tick_nohz_start_idle, tick_nohz_stop_idle.

use risetime_kernel::units::{Instant, Span};
use risetime_kernel::{KernelRev, features};

/// See the head of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleTime {
    /// Ticks count for what is idle before the tick is stopped.
    by_ticks: bool,
    counted: Span,
    /// Time since which idle time is measured, if it is.
    since: Option<Instant>,
}

impl IdleTime {
    /// The idle time of a CPU that has been idle from the start on, without ticks.
    pub(crate) fn new(rev: KernelRev) -> IdleTime {
        let by_ticks = rev.has(features::IDLE_TIME_BY_TICKS);
        IdleTime { by_ticks, counted: Span(0), since: Some(Instant(0)) }
    }

    /// Begins the idle time as the idle task gets the CPU, unless ticks count it.
    pub(crate) fn begins(&mut self, now: Instant) {
        self.since = (!self.by_ticks).then_some(now);
    }

    /// Begins the idle time, unless it has begun, as the tick of the idle CPU is stopped.
    pub(crate) fn tick_stops(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// A tick finds the CPU idle.
    pub(crate) fn tick(&mut self, tick: Span) {
        if self.since.is_none() {
            self.counted += tick;
        }
    }

    /// Ends the idle time, as another task gets the CPU.
    pub(crate) fn ends(&mut self, now: Instant) {
        self.counted = self.until(now);
        self.since = None;
    }

    /// The idle time in all, up to `now`.
    pub(crate) fn until(&self, now: Instant) -> Span {
        self.counted + self.since.map_or(Span(0), |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Span = Span::from_ms(4);

    /// Runs a CPU that is busy up to 10 ms, idle from then on; a tick at 11 ms stops the tick, and
    /// a task runs again at 20 ms. Returns the idle time at the tick and in the end.
    fn counted(rev: KernelRev) -> (Span, Span) {
        let ms = |n: u64| Instant(n * 1_000_000);
        let mut idle = IdleTime::new(rev);
        idle.ends(ms(0));
        idle.begins(ms(10));
        idle.tick(TICK);
        let at_tick = idle.until(ms(11));
        idle.tick_stops(ms(11));
        idle.ends(ms(20));
        (at_tick, idle.until(ms(25)))
    }

    #[test]
    fn a_tick_that_finds_the_cpu_idle_counts_whole_since_7_2() {
        let ms = Span::from_ms;
        assert_eq!(counted(KernelRev::V6_12), (ms(1), ms(10)));
        assert_eq!(counted(KernelRev::V7_2), (ms(4), ms(13)), "more than has passed");
    }
}
