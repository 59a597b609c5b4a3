//! The fair class's deadline server, since 6.12: 50 ms in every second, but only when starved.
//!
//! ```text
//!             start              timer at deadline - runtime
//!  init ────────────> waits ────────────────────────────────> runs ──> budget used: throttled
//!                     ^   │ fair tasks ran (or, from 7.0 on, the CPU idled) so long that the     │
//!                     └───┘ budget is used: a new period, nobody was starved      next period <──┘
//! ```
//!
//! Fair time counts against the server whoever picked it, so that fair tasks that get their share
//! anyway never need it. While it runs, its fair task stands before RT tasks, by its deadline. In
//! 6.12 an idle CPU only reduced the budget when it stopped being idle; later kernels let the
//! server of an idle CPU lapse ([`Defer::idle`]).
//!
//! Source: kernel/sched/deadline.c:dl_server_update, dl_server_start, dl_server_stop,
//! dl_server_timer, update_curr_dl_se. Left out: sched_ext's server, which stock kernels attach
//! only with a BPF scheduler.

use crate::deadline::{DlEntity, DlParams};
use crate::units::{Instant, Span};
use crate::{KernelRev, features};

/// 50 ms …
pub const SERVER_RUNTIME: Span = Span(50_000_000);
/// … in every second, unless debugfs says otherwise (`sched/fair_server/cpuN`).
pub const SERVER_PERIOD: Span = Span(1_000_000_000);
/// `dl_server_min_res`: the timer is not put off for less.
const MIN_RES: u64 = 1_000_000;

/// A server's own state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defer {
    /// `dl_server_active`: there are fair tasks (or were, until it notices).
    pub active: bool,
    /// `dl_defer_armed`: it waits for the last moment at which its budget fits before the deadline.
    pub armed: bool,
    /// `dl_defer_running`: the class was starved, it does not wait again.
    pub running: bool,
    /// `dl_defer_idle`: the budget went by in idleness.
    pub idle: bool,
}

/// Whether the server of an idle CPU lapses by itself (`dl_defer_idle`), as from 7.2 on.
fn lapses_idle(rev: KernelRev) -> bool {
    rev.has(features::DL_DEFER_IDLE)
}

/// Answer of [`DlEntity::server_timer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTimer {
    /// Nothing to do, or a new time is in the timer field.
    Waits,
    /// Idle all along: it stops.
    Stops,
    /// The class is starved: replenish and queue it.
    Starts,
}

impl DlEntity {
    /// `rq->fair_server` as it is set up at boot, or by its files (`dl_server_apply_params`). A runtime of 0: it never starts.
    pub fn fair_server(now: Instant, runtime: Span, period: Span) -> DlEntity {
        let mut server =
            DlEntity::new(DlParams { runtime, deadline: period, period, reclaim: false });
        server.server = Some(Defer::default());
        server.replenish_new_period(now);
        // Set up, not started: nothing is armed.
        (server.throttled, server.server) = (false, Some(Defer::default()));
        server
    }

    /// `dl_server_active`.
    pub fn server_active(&self) -> bool {
        self.server.is_some_and(|d| d.active)
    }

    /// Charges the server `delta` ns in which fair tasks ran or the CPU idled. True: the server was
    /// running and its budget is used up; it has to leave the queue (`dl_server_update`,
    /// `dl_server_update_idle`).
    pub fn server_update(&mut self, rev: KernelRev, now: Instant, delta: u64, idle: bool) -> bool {
        let Some(defer) = self.server.as_mut().filter(|d| d.active) else { return false };
        if idle && !lapses_idle(rev) {
            // Linux 6.12 deadline.c:dl_server_update_idle_time
            if self.runtime >= 0 {
                self.runtime -= delta as i64;
                if self.runtime < 0 {
                    self.runtime = 0;
                    defer.running = false;
                }
            }
            return false;
        }
        if delta == 0 {
            return false;
        }
        self.runtime -= delta as i64;
        defer.idle &= idle;
        if self.throttled && self.runtime <= 0 {
            if defer.idle {
                self.runtime = 0;
                return false;
            }
            defer.running = false;
            self.timer = None;
            self.replenish_new_period(now);
            if let Some(defer) = self.server.as_mut() {
                defer.idle |= idle;
            }
            self.start_timer(now);
            return false;
        }
        !self.throttled && self.runtime <= 0
    }

    /// `dl_server_timer`, whose time has come.
    pub fn server_timer(&mut self, now: Instant) -> ServerTimer {
        self.timer = None;
        let Some(defer) = self.server.filter(|_| self.throttled) else {
            return ServerTimer::Waits;
        };
        if defer.idle {
            return ServerTimer::Stops;
        }
        if defer.armed {
            let begins = self.deadline.0 as i64 - self.runtime;
            if (now.0 as i64) < begins - MIN_RES as i64 {
                self.timer = Some(Instant(begins as u64));
                return ServerTimer::Waits;
            }
            self.server = Some(Defer { running: true, ..defer });
        }
        ServerTimer::Starts
    }

    /// The end of `dl_server_stop`: nothing is pending.
    pub fn server_stop(&mut self) {
        self.timer = None;
        self.throttled = false;
        if let Some(defer) = self.server.as_mut() {
            *defer = Defer { running: defer.running, ..Defer::default() };
        }
    }
}
