//! Frequency changes: from a governor's decision to the hardware.
//!
//! ```text
//! fast switch   decide ── cur, PELT scale ── transition latency ── hardware
//! slow path     decide ── wake the sugov kthread ── it runs ── transition latency ── cur, scale, hardware
//! ```
//!
//! On the fast path the kernel believes the new frequency at once (`arch_set_freq_scale`), while
//! the hardware still works at the old one. On the slow path the kthread needs the CPU first
//! and then waits in the driver; a decision that comes meanwhile is taken up afterwards.
//! Source: kernel/sched/cpufreq_schedutil.c, drivers/cpufreq/cpufreq.c.

use crate::kernel::Kernel;
use crate::kernel::governor::DomainView;
use crate::state::hooks::Answer;
use crate::state::hooks::Point;
use crate::time::queue::Ev;
use crate::time::work::speed;
use risetime_kernel::clock_pelt::freq_scale;
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_trace::{Event, Why};

impl Kernel<'_> {
    /// Every policy starts: at its lowest frequency, then where its governor wants it.
    pub(crate) fn start_policies(&mut self) {
        for domain in 0..self.m.domains.len() {
            let view = DomainView { machine: &self.m, index: domain, told: self.listens };
            if let Some(mut request) = self.governors[domain].start(&view) {
                let d = &self.m.domains[domain];
                request.freq = self.m.hook(request.freq, |h, own| h.start_freq(d.max, own));
                request.freq = request.freq.clamp(d.min, d.max);
                self.trace_request(domain, request);
                self.m.domains[domain].wanted = request.freq;
                self.set_cur(domain, request.freq);
            }
            self.set_hw(domain);
        }
    }

    /// `cpufreq_update_util`: the governor looks at the domain of `cpu`.
    pub(crate) fn cpufreq_update_util(&mut self, cpu: CpuId, iowait: bool) {
        let domain = self.m.cpu(cpu).domain;
        let view = DomainView { machine: &self.m, index: domain, told: self.listens };
        let Some(request) = self.governors[domain].update_util(&view, cpu, iowait) else { return };
        let own = Answer::Freq(Some(request));
        let Answer::Freq(Some(request)) = self.m.decided(Point::Frequency { cpu }, own) else {
            return;
        };
        let d = &mut self.m.domains[domain];
        let change = request.freq != d.wanted;
        let busy = d.kthread.is_some() && d.work_in_progress;
        d.wanted = request.freq;
        let why = if change && busy { Why::InProgress } else { request.why };
        self.trace_request(domain, crate::kernel::governor::FreqRequest { why, ..request });
        if !change {
            return;
        }
        if self.m.domains[domain].fast_switch {
            let freq = request.freq;
            self.set_cur(domain, freq);
            self.start_transition(domain, freq);
        } else if !busy {
            let waits = self.kthread.map_or(Span(0), |k| k.waits);
            self.wake_sugov(domain, waits);
        }
    }

    fn trace_request(&mut self, domain: usize, request: crate::kernel::governor::FreqRequest) {
        let cpu = self.m.domains[domain].related[0];
        self.emit(Event::FreqRequest {
            cpu,
            util: request.util,
            freq: request.freq,
            why: request.why,
        });
    }

    /// What the kernel believes, and scales PELT with.
    fn set_cur(&mut self, domain: usize, freq: KHz) {
        let d = &mut self.m.domains[domain];
        d.cur = freq;
        d.freq_scale = freq_scale(freq, d.freq_max());
    }

    /// The hardware changes after the transition latency of its new OPP.
    fn start_transition(&mut self, domain: usize, freq: KHz) {
        let opps = &self.m.platform.domains[domain].opps;
        let latency = opps.iter().find(|o| o.freq == freq).map_or(Span(0), |o| o.latency);
        let d = &mut self.m.domains[domain];
        d.target = freq;
        d.change_gen = d.change_gen.wrapping_add(1);
        let generation = d.change_gen;
        if latency == Span(0) {
            self.freq_done(domain, generation);
        } else {
            self.q.push(self.m.now + latency, Ev::FreqDone { domain: domain as u32, generation });
        }
    }

    /// The hardware has changed.
    pub(crate) fn freq_done(&mut self, domain: usize, generation: u32) {
        let d = &self.m.domains[domain];
        if d.change_gen != generation {
            return;
        }
        let (target, slow) = (d.target, d.kthread.is_some());
        if slow {
            self.set_cur(domain, target);
            self.m.domains[domain].in_driver = false;
        }
        self.set_hw_to(domain, target);
        if slow && self.m.domains[domain].work_in_progress {
            self.wake_sugov_kthread(domain, Span(0));
        }
    }

    /// The frequency is what another trace says, in every respect and at once.
    pub(crate) fn impose_freq(&mut self, domain: usize, freq: KHz) {
        let d = &mut self.m.domains[domain];
        (d.wanted, d.target) = (freq, freq);
        (d.work_in_progress, d.driver_due, d.in_driver) = (false, false, false);
        d.change_gen = d.change_gen.wrapping_add(1);
        self.set_cur(domain, freq);
        self.set_hw(domain);
    }

    fn set_hw(&mut self, domain: usize) {
        let cur = self.m.domains[domain].cur;
        self.set_hw_to(domain, cur);
    }

    /// The hardware runs at `freq` from now on: running tasks get on with their work at that.
    pub(crate) fn set_hw_to(&mut self, domain: usize, freq: KHz) {
        let freq = self.m.domains[domain].hw_cap.map_or(freq, |cap| freq.min(cap));
        let cpus = std::mem::take(&mut self.m.domains[domain].cpus);
        for &cpu in &cpus {
            self.book_progress(cpu);
        }
        let (capacity, costs) = (self.m.cpu(cpus[0]).capacity, self.m.costs);
        let d = &mut self.m.domains[domain];
        d.hw = freq;
        let max = d.freq_max();
        d.speed = costs.bound(speed(capacity, freq, max), speed(capacity, max, max));
        for &cpu in &cpus {
            if self.m.cpu(cpu).curr.is_some() {
                self.arm_work(cpu);
            }
        }
        let cpu = self.m.domains[domain].related[0];
        self.emit(Event::Freq { cpu, freq });
        self.m.domains[domain].cpus = cpus;
    }

    // ------------------------------------------------------------------ the slow path

    /// `sugov_deferred_update`; `waits`: until the kthread has the CPU, if that takes any time.
    pub(crate) fn wake_sugov(&mut self, domain: usize, waits: Span) {
        let d = &mut self.m.domains[domain];
        d.work_in_progress = true;
        if !d.in_driver {
            self.wake_sugov_kthread(domain, waits);
        }
    }

    /// The kthread wakes once the irq work has run: after what is going on now.
    ///
    /// On the CPU on which it sleeps nobody else is picked meanwhile: the irq work interrupts what
    /// wanted the frequency (a tick, a timer's wakeup) before that reschedules.
    fn wake_sugov_kthread(&mut self, domain: usize, waits: Span) {
        if let Some(kthread) = self.m.domains[domain].kthread {
            let until = self.m.now + waits;
            let t = self.m.task_mut(kthread);
            t.timer_gen = t.timer_gen.wrapping_add(1);
            let (generation, cpu) = (t.timer_gen, t.cpu);
            self.m.cpu_mut(cpu).irq_work_until = until;
            self.q.push(until, Ev::Timer { task: kthread, generation });
        }
    }

    /// The kthread is on the CPU with nothing to do: true, it has work (and takes it up);
    /// false, the work is done and the driver takes over.
    pub(crate) fn sugov_next(&mut self, domain: usize) -> bool {
        let d = &mut self.m.domains[domain];
        if std::mem::take(&mut d.driver_due) && d.target != d.cur {
            d.in_driver = true;
            let target = d.target;
            self.start_transition(domain, target);
            return false;
        }
        let has_work = std::mem::take(&mut d.work_in_progress);
        if has_work {
            d.target = d.wanted;
            d.driver_due = true;
        }
        has_work
    }
}
