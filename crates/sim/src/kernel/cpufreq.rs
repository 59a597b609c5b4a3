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
use crate::state::class::ClassTimer;
use crate::state::effects::Timer;
use crate::state::hooks::Answer;
use crate::state::hooks::FreqRequest;
use crate::state::hooks::Point;
use crate::state::tracker::Heard;
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
            let request = self.governors[domain].start(&view, &mut self.effects);
            self.grant(domain);
            if let Some(mut request) = request {
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
        let request = self.governors[domain].update_util(&view, cpu, iowait, &mut self.effects);
        self.grant(domain);
        if let Some(request) = request {
            self.carry_out(domain, cpu, request);
        }
    }

    /// What the governor of `domain`, asked about `cpu`, wants.
    pub(crate) fn carry_out(&mut self, domain: usize, cpu: CpuId, request: FreqRequest) {
        let own = Answer::Freq(Some(request));
        let Answer::Freq(Some(request)) = self.m.decided(Point::Frequency { cpu }, own) else {
            return;
        };
        let d = &mut self.m.domains[domain];
        let change = request.freq != d.wanted;
        let busy = !d.fast_switch && d.work_in_progress;
        d.wanted = request.freq;
        let why = if change && busy { Why::InProgress } else { request.why };
        self.trace_request(domain, FreqRequest { why, ..request });
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

    fn trace_request(&mut self, domain: usize, request: FreqRequest) {
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
        if self.m.tracker.is_some() {
            for i in 0..self.m.domains[domain].related.len() {
                let cpu = self.m.domains[domain].related[i];
                self.m.track(Heard::Frequency { cpu, freq });
            }
        }
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
        let (target, slow) = (d.target, !d.fast_switch);
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
            self.rq(cpu).book_progress();
        }
        let (capacity, costs) = (self.m.cpu(cpus[0]).capacity, self.m.costs);
        let d = &mut self.m.domains[domain];
        d.hw = freq;
        let max = d.freq_max();
        d.speed = costs.bound(speed(capacity, freq, max), speed(capacity, max, max));
        for &cpu in &cpus {
            if self.m.cpu(cpu).curr.is_some() {
                self.rq(cpu).arm_work();
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
        if std::mem::take(&mut self.m.domains[domain].works) {
            self.governor_works(domain);
        }
        let d = &mut self.m.domains[domain];
        if std::mem::take(&mut d.work_asked) {
            d.works = true;
            return true;
        }
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

    // ------------------------------------------------------------------ what governors ask for

    /// Does what the governor of `domain` wishes for beside a frequency.
    #[inline]
    pub(crate) fn grant(&mut self, domain: usize) {
        if !self.effects.is_empty() {
            self.grant_all(domain);
        }
    }

    #[inline(never)]
    fn grant_all(&mut self, domain: usize) {
        self.take_looks();
        if let Some(timer) = self.effects.timer.take() {
            self.set_governor_timer(domain, timer);
        }
        if std::mem::take(&mut self.effects.work) {
            self.m.domains[domain].work_asked = true;
            self.wake_sugov_kthread(domain, Span(0));
        }
    }

    /// The utils that later looks are compared with.
    pub(crate) fn take_looks(&mut self) {
        for (cpu, util) in self.effects.looked.drain(..) {
            self.m.cpus[cpu.index()].series.last_update_util = util;
        }
    }

    fn set_governor_timer(&mut self, domain: usize, timer: Timer) {
        let d = &mut self.m.domains[domain];
        let old = d.timer.replace(timer);
        (d.timer_gen, d.timer_deferred) = (d.timer_gen.wrapping_add(1), false);
        let (cpu, generation, domain) = (d.cpus[0], d.timer_gen, domain as u32);
        let timers = &mut self.m.cpu_mut(cpu).class_timers;
        let own = ClassTimer::Governor(domain);
        if let Some(old) = old {
            timers.remove(&(old.at, own));
        }
        // cpuidle knows nothing of a timer that wakes nobody.
        if !timer.deferrable {
            timers.insert((timer.at, own));
        }
        self.q.push(timer.at, Ev::GovernorTimer { domain, generation, awake: false });
    }

    /// The governor's kthread asks it, and takes its wish to the driver.
    fn governor_works(&mut self, domain: usize) {
        let view = DomainView { machine: &self.m, index: domain, told: self.listens };
        let request = self.governors[domain].work(&view, &mut self.effects);
        self.grant(domain);
        let Some(request) = request else { return };
        let cpu = self.m.domains[domain].cpus[0];
        if self.m.domains[domain].fast_switch {
            return self.carry_out(domain, cpu, request);
        }
        self.trace_request(domain, request);
        let d = &mut self.m.domains[domain];
        (d.wanted, d.target, d.driver_due) = (request.freq, request.freq, true);
    }
}
