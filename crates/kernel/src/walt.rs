//! WALT, window-assisted load tracking, as Android's common kernels 4.4 to 4.14 had it in PELT's place.
//!
//! Time is cut into windows (`walt_ravg_window`, 20 ms). Busy time is scaled to the biggest CPU at its highest
//! frequency, by what the CPU gives at the moment of the update, over all that passed since the last one:
//!
//! ```text
//!        mark_start                window_start        wallclock
//!  ---------|------------|------------|-------------------|---
//!           |<- before ->|<-- full -->|<----- after ----->|
//!
//!  task   sum          busy (and waiting) time in this window; at its end a sample of sum_history[5]
//!         demand       of the samples: the last, the most, their mean, or the larger of last and mean
//!         curr_window, prev_window      what it added to its CPU in this window and the one before
//!  CPU    curr_runnable_sum, prev_runnable_sum     what its tasks added; both move along with a task
//! ```
//!
//! A window in which a task did nothing leaves no sample: after a long sleep it needs what it needed before. A CPU's
//! windows roll over with the task that runs on it, the idle one included.
//!
//! Left out: time of interrupts on an idle CPU (`IRQ_UPDATE`), `walt_io_is_busy`.
//! Source: kernel/sched/walt.c, kernel/sched/sched.h of Android's common kernel 4.4.

use crate::units::{Capacity, Instant, SCHED_CAPACITY_SCALE, Util};

/// `RAVG_HIST_SIZE_MAX`: windows that a task is remembered for.
pub const RAVG_HIST_SIZE: usize = 5;

/// `walt_window_stats_policy`: what of a task's samples is its demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowStats {
    /// The last one.
    Recent,
    /// The largest.
    Max,
    /// The larger of the last one and the mean.
    MaxRecentAvg,
    /// The mean of the windows.
    Avg,
}

/// An event of a task, at which its windows are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// The task leaves the CPU.
    PutPrev,
    /// The task gets the CPU.
    PickNext,
    /// The task wakes.
    Wake,
    /// The task goes to another CPU.
    Migrate,
    /// The task runs on.
    Update,
}

/// WALT's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walt {
    /// `walt_ravg_window`, in ns.
    pub window: u64,
    /// `walt_window_stats_policy`.
    pub stats: WindowStats,
    /// `walt_account_wait_time`: a task's demand counts the time it waits.
    pub account_wait_time: bool,
    /// `walt_freq_account_wait_time`: so do the CPU's sums.
    pub freq_account_wait_time: bool,
    /// `sched_walt_init_task_load_pct`.
    pub init_task_load_pct: u64,
}

/// A task's `ravg`; times in ns of the biggest CPU at its highest frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ravg {
    /// Time up to which the task is accounted for; `None`: it has not started.
    pub mark_start: Option<Instant>,
    /// The task's demand in the window under way.
    pub sum: u64,
    /// The demand expected of the task in a window.
    pub demand: u64,
    /// The latest samples, the youngest first.
    pub sum_history: [u64; RAVG_HIST_SIZE],
    /// Busy time that the task added to its CPU's sum in the window under way …
    pub curr_window: u64,
    /// … and in the one before.
    pub prev_window: u64,
}

/// A runqueue's windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaltRq {
    /// Begin of the window under way.
    pub window_start: Instant,
    /// Busy time in it.
    pub curr_runnable_sum: u64,
    /// Busy time in the one before.
    pub prev_runnable_sum: u64,
}

/// An update of a task on a runqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The event.
    pub event: TaskEvent,
    /// Time of the event.
    pub wallclock: Instant,
    /// True if the task has the CPU (`p == rq->curr`).
    pub is_curr: bool,
    /// True if the task counts; the idle task does not.
    pub counts: bool,
    /// `capacity_curr_of`: what the CPU gives at its frequency.
    pub capacity_curr: Capacity,
}

impl Update {
    /// Scales `delta` ns on this CPU to the biggest one at its highest frequency. Rounding: down.
    /// Source: walt.c:scale_exec_time.
    const fn scale_exec_time(&self, delta: u64) -> u64 {
        delta.wrapping_mul(self.capacity_curr.0) >> 10
    }
}

/// The time from a task's `mark_start` on, by windows.
struct Span {
    /// Windows that began and ended meanwhile.
    full: u64,
    /// Time from `mark_start` to the end of its window, in ns.
    before: u64,
    /// Time from the beginning of the window under way (or from `mark_start`, if that is later), in
    /// ns.
    after: u64,
    /// A window has begun meanwhile.
    new_window: bool,
}

impl Walt {
    /// A task that is new. Source: walt.c:walt_init_new_task_load.
    pub const fn init_new_task_load(&self) -> Ravg {
        let demand = self.init_task_load_pct * self.window / 100;
        Ravg {
            mark_start: None,
            sum: 0,
            demand,
            sum_history: [demand; RAVG_HIST_SIZE],
            curr_window: 0,
            prev_window: 0,
        }
    }

    /// Accounts the time that has passed since the task's last update, to its demand and to its CPU's sums.
    /// Source: walt.c:walt_update_task_ravg.
    pub fn update_task_ravg(&self, p: &mut Ravg, rq: &mut WaltRq, update: &Update) {
        rq.update_window_start(self.window, update.wallclock);
        let mark = p.mark_start.replace(update.wallclock);
        let Some(mark) = mark else { return };
        let span = self.span(mark, rq.window_start, update.wallclock);
        if update.counts {
            self.update_task_demand(p, update, &span);
        }
        self.update_cpu_busy_time(p, rq, update, &span);
    }

    fn span(&self, mark: Instant, window_start: Instant, wallclock: Instant) -> Span {
        let new_window = mark < window_start;
        let passed = window_start.0.saturating_sub(mark.0);
        let since = if new_window { window_start } else { mark };
        Span {
            full: passed / self.window,
            before: passed % self.window,
            after: wallclock.0.saturating_sub(since.0),
            new_window,
        }
    }

    /// Adds to the task's demand, and to its history at the end of a window. Source:
    /// walt.c:update_task_demand, account_busy_for_task_demand.
    fn update_task_demand(&self, p: &mut Ravg, update: &Update, span: &Span) {
        let waited = matches!(update.event, TaskEvent::PickNext | TaskEvent::Migrate);
        let slept = update.event == TaskEvent::Wake;
        if slept || (waited && !self.account_wait_time) {
            if span.new_window {
                self.update_history(p, p.sum, 1);
            }
            return;
        }
        if span.new_window {
            self.add_to_task_demand(p, update.scale_exec_time(span.before));
            self.update_history(p, p.sum, 1);
            self.update_history(p, update.scale_exec_time(self.window), span.full);
        }
        self.add_to_task_demand(p, update.scale_exec_time(span.after));
    }

    fn add_to_task_demand(&self, p: &mut Ravg, delta: u64) {
        p.sum = (p.sum + delta).min(self.window);
    }

    /// `samples` windows of `runtime` each are over. One without any leaves nothing.
    /// Source: walt.c:update_history.
    fn update_history(&self, p: &mut Ravg, runtime: u64, samples: u64) {
        if runtime == 0 || samples == 0 {
            return;
        }
        let new = samples.min(RAVG_HIST_SIZE as u64) as usize;
        p.sum_history.copy_within(..RAVG_HIST_SIZE - new, new);
        p.sum_history[..new].fill(runtime);
        p.sum = 0;
        let mean = || p.sum_history.iter().sum::<u64>() / RAVG_HIST_SIZE as u64;
        p.demand = match self.stats {
            WindowStats::Recent => runtime,
            WindowStats::Max => p.sum_history.iter().copied().max().unwrap_or(0),
            WindowStats::MaxRecentAvg => runtime.max(mean()),
            WindowStats::Avg => mean(),
        };
    }

    /// Adds busy time to the windows of the task and its CPU, and shifts them at the end of a
    /// window. Source: walt.c:update_cpu_busy_time, account_busy_for_cpu_time.
    fn update_cpu_busy_time(&self, p: &mut Ravg, rq: &mut WaltRq, update: &Update, span: &Span) {
        if span.new_window {
            let last = span.full == 0;
            p.prev_window = if last { p.curr_window } else { 0 };
            p.curr_window = 0;
            if update.is_curr {
                rq.prev_runnable_sum = if last { rq.curr_runnable_sum } else { 0 };
                rq.curr_runnable_sum = 0;
            }
        }
        let busy = match update.event {
            TaskEvent::Wake => false,
            TaskEvent::PickNext | TaskEvent::Migrate => self.freq_account_wait_time,
            TaskEvent::PutPrev | TaskEvent::Update => true,
        };
        if !(busy && update.counts) {
            return;
        }
        let before = if span.full > 0 { self.window } else { span.before };
        let (before, after) = (update.scale_exec_time(before), update.scale_exec_time(span.after));
        p.prev_window += before;
        rq.prev_runnable_sum += before;
        p.curr_window += after;
        rq.curr_runnable_sum += after;
    }

    /// The utilisation, of 1024, that `sum` ns of busy time in a window are. Rounding: down.
    /// Source: sched.h:cpu_util, cpu_util_freq.
    pub const fn util(&self, sum: u64) -> Util {
        Util(sum * SCHED_CAPACITY_SCALE / self.window)
    }
}

impl WaltRq {
    /// Moves the window's start forward by the whole windows that have passed. Source:
    /// walt.c:update_window_start.
    fn update_window_start(&mut self, window: u64, wallclock: Instant) {
        let passed = wallclock.0.saturating_sub(self.window_start.0);
        self.window_start.0 += passed - passed % window;
    }

    /// `p`, up to date as the two runqueues are, goes from `self` to `dest`, and takes along what it added.
    /// Source: walt.c:walt_fixup_busy_time.
    pub fn fixup_busy_time(&mut self, p: &Ravg, dest: &mut WaltRq) {
        self.curr_runnable_sum = self.curr_runnable_sum.saturating_sub(p.curr_window);
        self.prev_runnable_sum = self.prev_runnable_sum.saturating_sub(p.prev_window);
        dest.curr_runnable_sum += p.curr_window;
        dest.prev_runnable_sum += p.prev_window;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const WALT: Walt = Walt {
        window: 20 * MS,
        stats: WindowStats::MaxRecentAvg,
        account_wait_time: true,
        freq_account_wait_time: false,
        init_task_load_pct: 15,
    };

    fn update(event: TaskEvent, ms: u64, capacity: u64) -> Update {
        let (wallclock, capacity_curr) = (Instant(ms * MS), Capacity(capacity));
        let is_curr = matches!(event, TaskEvent::PutPrev | TaskEvent::Update);
        Update { event, wallclock, is_curr, counts: true, capacity_curr }
    }

    /// A task through `events`, on a CPU of this capacity.
    fn after(walt: &Walt, capacity: u64, events: &[(TaskEvent, u64)]) -> (Ravg, WaltRq) {
        let (mut p, mut rq) = (walt.init_new_task_load(), WaltRq::default());
        for &(event, ms) in events {
            walt.update_task_ravg(&mut p, &mut rq, &update(event, ms, capacity));
        }
        (p, rq)
    }

    use TaskEvent::{Migrate, PickNext, PutPrev, Update as Runs, Wake};

    #[test]
    fn a_new_task_has_its_initial_demand() {
        let p = WALT.init_new_task_load();
        assert_eq!((p.demand, p.sum_history), (3 * MS, [3 * MS; 5]));
        assert_eq!(WALT.util(p.demand), Util(153), "15 % of 1024");
        let (p, rq) = after(&WALT, 1024, &[(Wake, 4)]);
        assert_eq!((p.demand, p.sum, rq.curr_runnable_sum), (3 * MS, 0, 0));
    }

    #[test]
    fn time_within_one_window_is_added_to_both() {
        // Woken at 4, waits 2 ms, runs 5 ms on a CPU that gives a half.
        let (p, rq) = after(&WALT, 512, &[(Wake, 4), (PickNext, 6), (PutPrev, 11)]);
        assert_eq!(p.sum, 3_500_000, "waiting counts for the demand");
        assert_eq!((p.curr_window, rq.curr_runnable_sum), (2_500_000, 2_500_000), "not here");
        let walt = Walt { account_wait_time: false, ..WALT };
        let (p, _) = after(&walt, 512, &[(Wake, 4), (PickNext, 6), (PutPrev, 11)]);
        assert_eq!(p.sum, 2_500_000);
        let walt = Walt { freq_account_wait_time: true, ..WALT };
        let (_, rq) = after(&walt, 512, &[(Wake, 4), (PickNext, 6), (PutPrev, 11)]);
        assert_eq!(rq.curr_runnable_sum, 3_500_000);
    }

    #[test]
    fn time_over_a_boundary_is_split() {
        // 16 to 27: 4 ms in the first window, 7 in the second.
        let (p, rq) = after(&WALT, 1024, &[(Wake, 16), (PickNext, 16), (PutPrev, 27)]);
        assert_eq!(p.sum_history, [4 * MS, 3 * MS, 3 * MS, 3 * MS, 3 * MS]);
        assert_eq!(p.demand, 4 * MS, "the mean is 3.2");
        assert_eq!((p.sum, p.curr_window, p.prev_window), (7 * MS, 7 * MS, 4 * MS));
        assert_eq!((rq.curr_runnable_sum, rq.prev_runnable_sum), (7 * MS, 4 * MS));
        assert_eq!(rq.window_start, Instant(20 * MS));
    }

    #[test]
    fn full_windows_between_are_samples_of_their_own() {
        // 16 to 67 at 3/4 speed: 3, 15, 15, and 5.25 ms in the one under way.
        let (p, rq) = after(&WALT, 768, &[(Wake, 16), (PickNext, 16), (PutPrev, 67)]);
        assert_eq!(p.sum_history, [15 * MS, 15 * MS, 3 * MS, 3 * MS, 3 * MS]);
        assert_eq!((p.demand, p.sum), (15 * MS, 5_250_000));
        assert_eq!((rq.prev_runnable_sum, rq.curr_runnable_sum), (15 * MS, 5_250_000));
        // More than the history holds.
        let (p, _) = after(&WALT, 768, &[(Wake, 16), (PickNext, 16), (PutPrev, 216)]);
        assert_eq!(p.sum_history, [15 * MS; 5]);
    }

    #[test]
    fn windows_without_activity_leave_no_sample() {
        let ran = [(Wake, 1), (PickNext, 1), (PutPrev, 9)];
        let (p, _) = after(&WALT, 1024, &[ran[0], ran[1], ran[2], (Wake, 500)]);
        assert_eq!(p.sum_history, [8 * MS, 3 * MS, 3 * MS, 3 * MS, 3 * MS]);
        assert_eq!((p.demand, p.sum), (8 * MS, 0));
        assert_eq!((p.curr_window, p.prev_window), (0, 0), "it slept through both");
    }

    #[test]
    fn the_policy_chooses_among_the_samples() {
        // Windows of 10, 2, 6 ms (of 3 ms before).
        let events = [
            (Wake, 0),
            (PickNext, 0),
            (PutPrev, 10),
            (Wake, 20),
            (PickNext, 20),
            (PutPrev, 22),
            (Wake, 40),
            (PickNext, 40),
            (PutPrev, 46),
            (Wake, 60),
        ];
        let demand = |stats| after(&Walt { stats, ..WALT }, 1024, &events).0.demand;
        assert_eq!(demand(WindowStats::Recent), 6 * MS);
        assert_eq!(demand(WindowStats::Max), 10 * MS);
        assert_eq!(demand(WindowStats::Avg), 24 * MS / 5);
        assert_eq!(demand(WindowStats::MaxRecentAvg), 6 * MS);
        let (p, _) = after(&WALT, 1024, &events[..7]);
        assert_eq!(p.demand, 21 * MS / 5, "the mean of 10, 2, 3, 3, 3 is more than 2");
    }

    #[test]
    fn the_idle_task_rolls_the_windows_over() {
        let (_, mut rq) = after(&WALT, 1024, &[(Wake, 2), (PickNext, 2), (PutPrev, 17)]);
        let mut idle = Ravg { mark_start: Some(Instant(17 * MS)), ..Ravg::default() };
        let update = |ms| Update { counts: false, ..update(Runs, ms, 1024) };
        WALT.update_task_ravg(&mut idle, &mut rq, &update(21));
        assert_eq!((rq.prev_runnable_sum, rq.curr_runnable_sum), (15 * MS, 0));
        WALT.update_task_ravg(&mut idle, &mut rq, &update(39));
        assert_eq!((rq.prev_runnable_sum, rq.curr_runnable_sum), (15 * MS, 0));
        WALT.update_task_ravg(&mut idle, &mut rq, &update(45));
        assert_eq!((rq.prev_runnable_sum, rq.curr_runnable_sum), (0, 0));
        assert_eq!(idle.sum_history, [0; RAVG_HIST_SIZE]);
    }

    #[test]
    fn what_a_task_added_goes_along_with_it() {
        let (mut p, mut src) = after(&WALT, 1024, &[(Wake, 16), (PickNext, 16), (PutPrev, 27)]);
        src.curr_runnable_sum += MS;
        WALT.update_task_ravg(&mut p, &mut src, &update(Migrate, 29, 1024));
        let mut dest = WaltRq { curr_runnable_sum: 2 * MS, ..src };
        src.fixup_busy_time(&p, &mut dest);
        assert_eq!((src.curr_runnable_sum, src.prev_runnable_sum), (MS, 0));
        assert_eq!((dest.curr_runnable_sum, dest.prev_runnable_sum), (9 * MS, 8 * MS));
    }
}
