//! The fair class's deadline server on each CPU, since 6.12.
//!
//! ```text
//!  first fair task queued ─> dl_server_start ─> waits, counting what fair tasks run anyway
//!  starved until deadline - runtime ─> timer ─> queued among the deadlines ─> fair tasks run
//!                                                 50 ms later: throttled until the next second
//! ```
//!
//! Also where nothing can starve fair tasks: while it is active its bandwidth, 50 ms of each second,
//! counts in `running_bw`, and so is a floor of util (51 of 1024) on its CPU for schedutil and for the
//! energy estimate. On a small CPU that is a third of its capacity.
//!
//! DEVIATES(dl-server-idle): from which release between 6.12 and 7.2 on the fair server of an idle CPU
//! lapses by itself is not known here; those in between are taken to behave like 6.12. It shows where
//! real-time tasks begin to starve a CPU that was idle just before.
//!
//! Arithmetic: [`risetime_kernel::dl_server`]. Source: kernel/sched/deadline.c, kernel/sched/fair.c.

use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::class::ClassTimer;
use crate::state::class::Classes;
use crate::state::hooks::Step;
use crate::state::machine::Cpu;
use risetime_kernel::deadline::{DlEntity, DlId};
use risetime_kernel::dl_server::ServerTimer;
use risetime_kernel::features;
use risetime_kernel::units::{Instant, Span};

const SERVER: DlId = DlId::FairServer;

impl Rq<'_, '_> {
    /// Changes the server of `cpu`, and arms its timers as it then says.
    fn with_server<R>(&mut self, change: impl FnOnce(&mut DlEntity, Instant) -> R) -> Option<R> {
        let cpu = self.cpu;
        let now = self.m().rq_clock(cpu);
        let server = self.c().fair_server.as_deref_mut()?;
        let before = (server.timer, server.inactive_timer);
        let result = change(server, now);
        let after = (server.timer, server.inactive_timer);
        self.arm_changed(ClassTimer::Server(cpu), before.0, after.0);
        self.arm_changed(ClassTimer::ServerInactive(cpu), before.1, after.1);
        Some(result)
    }

    /// `dl_server_start`: the fair class has work again.
    pub(crate) fn dl_server_start(&mut self) {
        if !self.m().does(Step::FairServer) {
            return;
        }
        let Some(server) = self.c().fair_server.as_deref_mut() else { return };
        let bw = server.bw;
        if let Some(defer) = server.server.as_mut() {
            defer.idle = false;
        }
        if server.server_active() || server.params.runtime == Span(0) {
            return;
        }
        self.dl_server_update();
        let queued = self.with_server(|server, now| {
            if let Some(defer) = server.server.as_mut() {
                defer.active = true;
            }
            let counts = std::mem::replace(&mut server.non_contending, false);
            server.inactive_timer = None;
            server.update_at_wakeup(now);
            (counts, join(server, now))
        });
        if let Some((counted, joins)) = queued {
            if !counted {
                self.add_running_bw(bw, false);
            }
            if let Some(deadline) = joins {
                self.queue_server(deadline);
            }
        }
    }

    /// `dl_server_stop`: the fair class has none.
    pub(crate) fn dl_server_stop(&mut self) {
        let cpu = self.cpu;
        if !self.m().cpu(cpu).fair_server.as_ref().is_some_and(|s| s.server_active()) {
            return;
        }
        self.c().dl.remove(SERVER);
        let past = self.with_server(|server, now| {
            let at = server.zero_lag(now).filter(|_| server.inactive_timer.is_none());
            if at.is_some() {
                (server.non_contending, server.inactive_timer) = (true, at);
            }
            server.server_stop();
            (at.is_none(), server.bw)
        });
        if let Some((true, bw)) = past {
            self.sub_running_bw(bw, false);
        }
    }

    /// `dl_server_update`, `dl_server_update_idle`: what the current fair task, or idleness, has
    /// used since the last time.
    pub(crate) fn dl_server_update(&mut self) {
        let cpu = self.cpu;
        let idle = match self.m().cpu(cpu).curr {
            _ if self.m().cpu(cpu).fair_server.is_none() => return,
            None => true,
            Some(curr) if self.m().is_fair(curr) => false,
            Some(curr) if self.m().class_of(curr) == Class::High && self.high_is_served() => false,
            Some(_) => return,
        };
        let delta = self.delta_exec().0;
        let rev = self.m().rev;
        let over = self.with_server(|server, now| {
            let over = server.server_update(rev, now, delta, idle);
            if !over {
                return None;
            }
            server.throttled = true;
            if server.start_timer(now) {
                // The task runs on until the switch, for however short a time: that is charged to a server that is throttled
                // now, and whose next period begins with it, put off like any (`update_curr_dl_se`).
                server.server_update(rev, now, 1, idle);
                return Some(None);
            }
            // The time of the timer is past already.
            if rev.has(features::DL_SERVER_LATE_PERIOD) {
                server.replenish_new_period(now);
                server.start_timer(now);
                return Some(None);
            }
            server.replenish(now);
            Some(join(server, now))
        });
        if let Some(Some(again)) = over {
            self.c().dl.remove(SERVER);
            if let Some(deadline) = again {
                self.queue_server(deadline);
            }
            self.resched_curr();
        }
    }

    /// `dl_server_timer`.
    pub(crate) fn dl_server_timer(&mut self) {
        self.dl_server_update();
        match self.with_server(|server, now| server.server_timer(now)) {
            Some(ServerTimer::Stops) => self.dl_server_stop(),
            Some(ServerTimer::Starts) => {
                let joins = self.with_server(|server, now| {
                    server.replenish(now);
                    join(server, now)
                });
                if let Some(deadline) = joins.flatten() {
                    self.queue_server(deadline);
                }
            }
            Some(ServerTimer::Waits) | None => {}
        }
    }

    /// Takes the server's bandwidth off the running ones at its 0-lag time.
    pub(crate) fn server_inactive_timer(&mut self) {
        let counts = self.with_server(|server, _| {
            server.inactive_timer = None;
            (std::mem::replace(&mut server.non_contending, false), server.bw)
        });
        if let Some((true, bw)) = counts {
            self.sub_running_bw(bw, false);
        }
    }

    /// Queues the server among the deadlines, and reschedules if it comes before the current task.
    fn queue_server(&mut self, deadline: Instant) {
        let cpu = self.cpu;
        self.c().dl.insert(deadline, SERVER);
        if self.m().cpu(cpu).curr.is_some() && self.m().cpu(cpu).dl.first() == Some(SERVER) {
            self.resched_curr();
        }
    }
}

/// `sched_init_dl_servers`.
pub(crate) fn init_dl_servers(
    (runtime, period): (Span, Span),
    cpus: &mut [Cpu],
    classes: &mut Classes,
) {
    for cpu in 0..cpus.len() {
        let c = &mut cpus[cpu];
        let server = DlEntity::fair_server(c.clock.clock, runtime, period);
        let bw = server.bw;
        c.dl.this_bw += bw;
        c.fair_server = Some(Box::new(server));
        classes.reserve_bw(cpus, bw);
    }
}

/// The end of `enqueue_dl_entity`: the deadline under which it is queued now; `None`: it waits for
/// its timer.
fn join(server: &mut DlEntity, now: Instant) -> Option<Instant> {
    if server.throttled && server.start_timer(now) {
        return None;
    }
    if server.throttled {
        server.timer = None;
        server.throttled = false;
        if let Some(defer) = server.server.as_mut() {
            defer.armed = false;
        }
    }
    Some(server.deadline)
}
