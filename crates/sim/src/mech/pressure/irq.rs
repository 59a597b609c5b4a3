//! Interrupts of devices: each CPU's comes once a period, CPUs one after the other.
//!
//! An idle CPU leaves its idle state for it, with its exit latency, and chooses anew after the handler; its tick
//! stays off. As in the kernel, the handler's time is taken off the task clock when the handler is over.
//!
//! DEVIATES(irq_switch): a CPU that reschedules during the handler of an interrupt does so at once, and
//! its new task makes no progress until the handler is over. The switch is stamped up to a handler's
//! length too early.
//!
//! Left out: the scheduler's own interrupts (ticks, timers, IPIs) cost nothing here.
//!
//! Source: kernel/sched/core.c:update_rq_clock_task.

use crate::kernel::policy::Policy;
use crate::kernel::rq::Rq;
use crate::mech::pressure::state::Caps;
use crate::mech::pressure::state::{CpuPressure, IrqStep};
use crate::mech::pressure::{LONGEST_US, OfPolicy, Source};
use crate::time::queue::Ev;
use risetime_kernel::units::{Instant, Span};
use risetime_model::InputError;
use risetime_model::settings::{Default, Home, Int, Neutral, Param, Range};
use risetime_trace::Event;

pub(crate) const IRQ_PERIOD: Int = Int::new(Param {
    name: "irq_period_us",
    doc: "every CPU has a device's interrupt so often (of one policy: irq_period_us.policyN)",
    unit: "µs",
    range: Range::Int(1, LONGEST_US),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});
pub(crate) const IRQ: Int = Int::new(Param {
    name: "irq_us",
    doc: "CPU time that the interrupt's handler takes, at any speed",
    unit: "µs",
    range: Range::Int(0, LONGEST_US),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(0)),
});

/// A device that interrupts every CPU.
pub(crate) struct Device;

impl Source for Device {
    fn title(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "irq",
            "a device interrupts each CPU in turn, and its handler takes time (irq_period_us)",
        ))
    }

    fn heading(&self) -> &'static str {
        "Interrupts"
    }

    fn params(&self) -> &'static [Param] {
        &[IRQ_PERIOD.0, IRQ.0]
    }

    fn per_policy(&self) -> &'static [Param] {
        &[IRQ_PERIOD.0, IRQ.0]
    }

    /// Errors: handlers as long as their period, or without one.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        match (own.int(&IRQ), own.int(&IRQ_PERIOD)) {
            (Some(irq), None) if irq > 0 => {
                Err(InputError::of_setting(IRQ, irq, "how often is not said")
                    .hint(format!("add {IRQ_PERIOD}=1000")))
            }
            (Some(irq), Some(period)) if irq >= period => {
                let what = format!(
                    "{IRQ} of policy{} is {irq}, wanted less than {IRQ_PERIOD}, {period}",
                    own.policy()
                );
                Err(InputError::new("settings", what).of_settings(&[&IRQ, &IRQ_PERIOD]))
            }
            _ => Ok(()),
        }
    }

    fn on_cpu(&self, own: OfPolicy, _: &Caps, p: &mut CpuPressure) -> bool {
        let us = |of: &Int| own.int(of).map_or(Span(0), Span::from_us);
        (p.period, p.handler) = (us(&IRQ_PERIOD), us(&IRQ));
        p.period > Span(0) && p.handler > Span(0)
    }

    fn plan(&self, policy: &mut Policy, own: OfPolicy, _: u8) {
        let n = policy.m().cpus.len() as u64;
        for cpu in own.domain.cpus.iter().copied() {
            let Some(p) = &policy.m().cpu(cpu).slots.pressure else { continue };
            if p.period > Span(0) && p.handler > Span(0) {
                let first = p.period.0 * (u64::from(cpu.0) + 1) / (n + 1);
                policy.push(Instant(first), Ev::Irq { cpu, step: IrqStep::Raised });
            }
        }
    }
}

impl Rq<'_, '_> {
    /// Gives the CPU to the handler; the task that ran goes on afterwards.
    pub(crate) fn irq_enter(&mut self, handler: Span) {
        let cpu = self.cpu;
        if let Some(p) = &mut self.c().slots.pressure {
            if p.in_irq {
                // The exit latency made this one wait for the next: the device has one line.
                return;
            }
            self.tell_progress();
        }
        if let Some(p) = &mut self.c().slots.pressure {
            p.in_irq = true;
        }
        self.emit(Event::Irq { cpu, enters: true });
        self.steal(handler);
        self.push(self.m().now + handler, Ev::Irq { cpu, step: IrqStep::Done });
    }

    /// Carries out a step of a device's interrupt on this CPU.
    pub(crate) fn irq(&mut self, step: IrqStep) {
        let cpu = self.cpu;
        let (now, online) = (self.m().now, self.m().root.online.contains(cpu));
        let Some(p) = &self.m().cpu(cpu).slots.pressure else { return };
        let (period, handler) = (p.period, p.handler);
        match step {
            IrqStep::Raised => {
                self.push(now + period, Ev::Irq { cpu, step });
                match self.m().cpu(cpu).idle {
                    _ if !online => {}
                    None => self.irq_enter(handler),
                    Some(idle) => {
                        // The CPU need not be woken by others meanwhile.
                        self.c().waking = true;
                        let latency = self.m().exit_latency(cpu, idle, now);
                        self.push(now + latency, Ev::Irq { cpu, step: IrqStep::Awake });
                    }
                }
            }
            IrqStep::Awake if online => {
                if self.m().cpu(cpu).idle.is_some() {
                    self.leave_idle();
                }
                self.irq_enter(handler);
            }
            IrqStep::Awake => {}
            IrqStep::Done => {
                self.hears();
                self.tell_progress();
                if let Some(p) = &mut self.c().slots.pressure {
                    p.in_irq = false;
                    p.irq_time += handler;
                }
                self.emit(Event::Irq { cpu, enters: false });
                if online {
                    self.idle_loop();
                }
            }
        }
    }
}
