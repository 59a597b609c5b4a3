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

use crate::kernel::governor::Occasion;
use crate::kernel::policy::Policy;
use crate::mech::pstate::hardware::LOOKS;
use crate::state::class::ClassTimer;
use crate::state::costs::Kind;
use crate::state::effects::Timer;
use crate::state::hooks::Answer;
use crate::state::hooks::FreqRequest;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::{State, Todo};
use crate::state::tracker::Heard;
use crate::time::queue::Ev;
use crate::time::work;
use risetime_kernel::eevdf::DequeueKind;
use risetime_kernel::pelt::cap_scale;
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, Span, TaskId};
use risetime_model::settings::{Default, Home, Int, Neutral, Param, Range};
use risetime_trace::{Event, Why};

pub(crate) const SUGOV_WORK_NS: Int = Int::new(Param {
    name: "sugov_work_ns",
    doc: "CPU time (at capacity 1024, top frequency) that the sugov kthread needs for a change",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Int(5_000),
    home: Home::Simulator(Neutral::None),
});

impl Policy<'_, '_> {
    /// `cpufreq_start_governor`: begins at the lowest frequency, then goes where its governor wants
    /// it.
    pub(crate) fn start_governor(&mut self) {
        self.tell_tracker();
        let request = self.ask(|governor, view, effects| governor.start(view, effects));
        self.grant();
        if let Some(mut request) = request {
            let d = &self.m().domains[self.domain];
            request.freq = self.m().hook(request.freq, |h, own| h.start_freq(d.max, own));
            request.freq = request.freq.clamp(d.min, d.max);
            self.trace_request(request);
            self.d().wanted = request.freq;
            self.set_cur(request.freq);
        }
        self.set_hw();
    }

    /// `cpufreq_update_util`: the governor looks at the domain, of which `cpu` is one.
    #[inline]
    pub(crate) fn update_util(&mut self, cpu: CpuId, iowait: bool) {
        if self.m().instead(Point::Frequency { cpu }) == Some(Answer::Freq(None)) {
            return;
        }
        let request =
            self.ask(|governor, view, effects| governor.update_util(view, cpu, iowait, effects));
        self.grant();
        if let Some(request) = request
            && !self.stays_unheard(&request)
        {
            self.carry_out(cpu, request);
        }
    }

    /// Carries out what the governor of `domain`, asked about `cpu`, wants.
    pub(crate) fn carry_out(&mut self, cpu: CpuId, request: FreqRequest) {
        let own = Answer::Freq(Some(request));
        let Answer::Freq(Some(request)) = self.m().decided(Point::Frequency { cpu }, own) else {
            return;
        };
        let d = self.d();
        let change = request.freq != d.wanted;
        if !change {
            return self.trace_request(request);
        }
        let busy = !d.fast_switch && d.work_in_progress;
        d.wanted = request.freq;
        let why = if busy { Why::InProgress } else { request.why };
        self.trace_request(FreqRequest { why, ..request });
        if self.d().fast_switch {
            let freq = request.freq;
            self.set_cur(freq);
            self.start_transition(freq);
        } else if !busy {
            let (wakes, waits) = self.kthread().map_or((Span(0), Span(0)), |k| (k.wakes, k.waits));
            let by = self.m().slots.preempt.waking_on.unwrap_or(cpu);
            self.wake_sugov(by, wakes, waits);
        }
    }

    fn trace_request(&mut self, request: FreqRequest) {
        let cpu = self.d().related[0];
        self.emit(Event::FreqRequest {
            cpu,
            util: request.util,
            freq: request.freq,
            why: request.why,
        });
    }

    /// Sets the frequency that the kernel believes in, and scales PELT with.
    fn set_cur(&mut self, freq: KHz) {
        if self.d().attends {
            let cpu = self.d().cpus[0];
            self.occasion(cpu, Occasion::Frequency);
        }
        let d = self.d();
        d.cur = freq;
        d.freq_scale = d.freq_scale(freq);
        self.tell_tracker();
    }

    /// Tells the tracker what the kernel believes.
    fn tell_tracker(&mut self) {
        if self.m().tracker.is_none() {
            return;
        }
        for i in 0..self.d().related.len() {
            let d = self.d();
            let (cpu, freq) = (d.related[i], d.cur);
            let (capacity, scale) = self.m().scale_of(cpu);
            let capacity = Capacity(cap_scale(capacity.0, scale));
            self.track(Heard::Frequency { cpu, freq, capacity });
        }
    }

    /// Starts a change of the hardware to `freq`, which is done after the transition latency of its
    /// OPP.
    fn start_transition(&mut self, freq: KHz) {
        let opps = &self.m().platform.domains[self.domain].opps;
        let latency = opps.iter().find(|o| o.freq == freq).map_or(Span(0), |o| o.latency);
        let (freq, latency) = self.answers(freq, latency);
        self.change_to(freq, latency);
    }

    /// Starts a change of the hardware to `freq`, which is done after `latency`.
    pub(crate) fn change_to(&mut self, freq: KHz, latency: Span) {
        let (domain, d) = (self.domain as u32, self.d());
        d.target = freq;
        d.change_gen = d.change_gen.wrapping_add(1) % LOOKS;
        let generation = d.change_gen;
        if latency == Span(0) {
            self.freq_done(generation);
        } else {
            self.push(self.m().now + latency, Ev::FreqDone { domain, generation });
        }
    }

    /// Completes a change of the hardware's frequency.
    pub(crate) fn freq_done(&mut self, generation: u32) {
        if generation == LOOKS {
            return self.hardware_looks();
        }
        let d = self.d();
        if d.change_gen != generation {
            return;
        }
        let (target, slow) = (d.target, !d.fast_switch);
        if slow {
            self.set_cur(target);
            self.d().in_driver = false;
        }
        self.set_hw_to(target);
        if slow && self.d().work_in_progress {
            self.wake_sugov_kthread_here();
        }
    }

    /// Sets the frequency that another trace says, in every respect and at once.
    pub(crate) fn impose_freq(&mut self, freq: KHz) {
        let d = self.d();
        (d.wanted, d.target) = (freq, freq);
        (d.work_in_progress, d.driver_due, d.in_driver) = (false, false, false);
        d.change_gen = d.change_gen.wrapping_add(1);
        self.set_cur(freq);
        self.set_hw();
    }

    fn set_hw(&mut self) {
        let cur = self.d().cur;
        self.set_hw_to(cur);
    }

    /// Sets the hardware's frequency to `freq` from now on; running tasks get on with their work at
    /// that.
    pub(crate) fn set_hw_to(&mut self, freq: KHz) {
        self.counts_before_change();
        self.d().hw_asked = freq;
        let freq = self.d().slots.pressure.hw_cap.map_or(freq, |cap| freq.min(cap));
        let cpus = std::mem::take(&mut self.d().cpus);
        for &cpu in &cpus {
            self.rq(cpu).tell_progress();
        }
        let costs = self.m().costs;
        let d = self.d();
        d.hw = freq;
        d.speed = costs.bound(d.speed_at(freq), d.speed_at(d.freq_max()));
        // Their tables say how they get on: nothing is bound by memory beside that.
        let at = d.table.iter().position(|e| e.freq >= freq).unwrap_or(d.table.len() - 1);
        d.kind_speed.clear();
        d.kind_speed.extend(d.kinds.iter().map(|by_opp| by_opp[at]));
        for &cpu in &cpus {
            if self.m().cpu(cpu).curr.is_some() {
                self.rq(cpu).arm_work();
            }
        }
        let cpu = self.d().related[0];
        self.emit(Event::Freq { cpu, freq });
        self.d().cpus = cpus;
    }

    /// Asks the governor where to go at once, now that limits have changed
    /// (`cpufreq_governor_limits`).
    pub(crate) fn limits_changed(&mut self) {
        let at_once = self.ask(|governor, view, _| governor.limits(view));
        let d = self.d();
        let freq = at_once.filter(|freq| *freq != d.cur);
        let (max, fast) = (d.max, d.fast_switch);
        if fast {
            let Some(freq) = freq else { return };
            d.wanted = d.wanted.min(max);
            self.set_cur(freq);
            return self.start_transition(freq);
        }
        // What the kthread has yet to do is within the new limits; the driver is on its way to `target`.
        let under_way = d.in_driver && d.target <= max;
        d.wanted = d.wanted.min(max);
        d.target = d.target.min(max);
        if let Some(freq) = freq.filter(|_| !under_way) {
            d.in_driver = true;
            self.start_transition(freq);
        }
    }

    // ------------------------------------------------------------------ the slow path

    /// `sugov_deferred_update` on `by`; until the kthread wakes, and until it has the CPU, if that takes any time.
    pub(crate) fn wake_sugov(&mut self, by: CpuId, wakes: Span, waits: Span) {
        let d = self.d();
        d.work_in_progress = true;
        if !d.in_driver {
            self.wake_sugov_kthread(by, wakes, waits);
        }
    }

    /// Wakes the kthread once the irq work has run, after what is going on now.
    ///
    /// ```text
    /// by     wants ── irq work ── wakes the kthread ── reschedules
    /// there                       │ queued ───────── has the CPU
    ///                       wakes ┘           waits ┘
    /// ```
    ///
    /// Meanwhile nobody is picked on `by`: the irq work interrupts what wanted the frequency (a tick, a timer's
    /// wakeup) before that reschedules. Nor is anybody there, once the kthread is awake.
    fn wake_sugov_kthread(&mut self, by: CpuId, wakes: Span, waits: Span) {
        let now = self.m().now;
        let (woken, due) = (now + wakes.min(waits), now + waits);
        self.d().kthread_due = due;
        let there = self.d().kthread.map(|kthread| self.m().task(kthread).cpu);
        if there.is_none_or(|there| there == by) {
            return self
                .wakes_kthread(by, woken, due, |task, generation| Ev::Timer { task, generation });
        }
        self.wakes_kthread(by, woken, woken, |task, _| Ev::Woken { task, by });
    }

    /// Wakes the kthread at once, where it sleeps.
    fn wake_sugov_kthread_here(&mut self) {
        let Some(kthread) = self.d().kthread else { return };
        let there = self.m().task(kthread).cpu;
        self.wake_sugov_kthread(there, Span(0), Span(0));
    }

    /// `how` wakes it `at` that time; `by` looks for who is to run at `until`.
    fn wakes_kthread(
        &mut self,
        by: CpuId,
        at: Instant,
        until: Instant,
        how: impl FnOnce(TaskId, u32) -> Ev,
    ) {
        let Some(kthread) = self.d().kthread else { return };
        self.irq_work_on(by, until);
        let mut rq = self.rq(self.m().task(kthread).cpu);
        let t = rq.t(kthread);
        t.timer_gen = t.timer_gen.wrapping_add(1);
        let generation = t.timer_gen;
        self.push(at, how(kthread, generation));
    }

    /// Gives the kthread, on the CPU with nothing to do, its next step. True: there is work, which
    /// it takes up; false: the work is done and the driver takes over.
    pub(crate) fn sugov_next(&mut self) -> bool {
        if std::mem::take(&mut self.d().works) {
            self.governor_works();
        }
        let d = self.d();
        if std::mem::take(&mut d.work_asked) {
            d.works = true;
            return true;
        }
        if std::mem::take(&mut d.driver_due) && d.target != d.cur {
            d.in_driver = true;
            let target = d.target;
            self.start_transition(target);
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

    /// Grants what the governor of `domain` wishes for beside a frequency.
    #[inline]
    pub(crate) fn grant(&mut self) {
        if !self.effects().is_empty() {
            self.grant_all();
        }
    }

    #[inline(never)]
    fn grant_all(&mut self) {
        self.take_looks();
        for (cpu, timer) in std::mem::take(&mut self.effects().timers) {
            let cpu = cpu.unwrap_or(self.d().cpus[0]);
            self.set_governor_timer(cpu, timer);
        }
        if std::mem::take(&mut self.effects().work) {
            if !self.m().does(Step::WorkWaits) {
                self.effects().work_on = None;
                return self.works_at_once();
            }
            self.d().work_asked = true;
            match self.effects().work_on.take() {
                Some(cpu) => self.works_on(cpu),
                None => self.wake_sugov_kthread_here(),
            }
        }
    }

    /// Gives the policy's next work to the worker of `cpu`, woken behind all that goes on at this
    /// moment (`irq_work_queue`, `schedule_work_on`).
    fn works_on(&mut self, cpu: CpuId) {
        let place = self.m().cpu(cpu).in_domain;
        if let Some(&worker) = self.d().workers.get(place) {
            self.d().kthread = Some(worker);
        }
        let at = self.m().now + self.rq(cpu).takes_on(Kind::Irq);
        let Some(worker) = self.d().kthread else { return };
        let there = self.m().task(worker).cpu;
        self.wakes_kthread(there, at, at, |task, generation| Ev::IrqWork { task, generation });
    }

    fn set_governor_timer(&mut self, cpu: CpuId, timer: Timer) {
        let place = self.m().cpu(cpu).in_domain;
        let own = &mut self.d().timers[place];
        let old = own.set.replace(timer);
        (own.generation, own.deferred) = (own.generation.wrapping_add(1), false);
        let generation = own.generation;
        let mut rq = self.rq(cpu);
        let timers = &mut rq.c().class_timers;
        let own = ClassTimer::Governor(cpu);
        if let Some(old) = old {
            timers.remove_at(old.at, own);
        }
        // cpuidle knows nothing of a timer that wakes nobody.
        if !timer.deferrable {
            timers.insert((timer.at, own));
        }
        self.push(timer.at, Ev::GovernorTimer { cpu, generation, awake: false });
    }

    /// Carries out the kthread's work as if no thread were needed for it.
    fn works_at_once(&mut self) {
        self.governor_works();
        let d = self.d();
        if std::mem::take(&mut d.driver_due) && d.target != d.cur {
            d.in_driver = true;
            let target = d.target;
            self.start_transition(target);
        }
    }

    /// Asks the governor from its kthread, and takes its wish to the driver.
    fn governor_works(&mut self) {
        let request = self.ask(|governor, view, effects| governor.work(view, effects));
        self.grant();
        let Some(request) = request else { return };
        let cpu = self.d().cpus[0];
        if self.d().fast_switch {
            return self.carry_out(cpu, request);
        }
        self.trace_request(request);
        let d = self.d();
        (d.wanted, d.target, d.driver_due) = (request.freq, request.freq, true);
    }

    /// Handles the governor's timer on `of`, which expires; `awake`: that CPU is awake, or has
    /// woken up for it.
    pub(crate) fn governor_timer(&mut self, of: CpuId, generation: u32, awake: bool) {
        let place = self.m().cpu(of).in_domain;
        let timer = self.d().timers[place];
        let Some(set) = timer.set.filter(|_| timer.generation == generation) else { return };
        // The timer of a CPU which has gone offline is run by another CPU of the policy.
        let cpu = if self.m().root.online.contains(of) { of } else { self.d().cpus[0] };
        let idle = self.m().cpu(cpu).idle;
        if let Some(idle) = idle.filter(|_| !awake) {
            if set.deferrable {
                self.d().timers[place].deferred = true;
            } else {
                let now = self.m().now;
                let at = now + self.m().exit_latency(cpu, idle, now);
                self.push(at, Ev::GovernorTimer { cpu: of, generation, awake: true });
            }
            return;
        }
        self.d().timers[place].set = None;
        self.rq(of).c().class_timers.remove_at(set.at, ClassTimer::Governor(of));
        self.rq(cpu).hears();
        if idle.is_some() {
            self.rq(cpu).leave_idle();
        }
        self.rq(cpu).update_rq_clock();
        let request = self.ask(|governor, view, effects| governor.timer(view, cpu, effects));
        self.grant();
        if let Some(request) = request {
            self.carry_out(cpu, request);
        }
        self.rq(cpu).run_soft_expired();
        self.rq(cpu).idle_loop();
    }

    /// Tells a governor that asks for it that something has happened on `cpu`.
    pub(crate) fn occasion(&mut self, cpu: CpuId, occasion: Occasion) {
        if self.m().instead(Point::Frequency { cpu }) == Some(Answer::Freq(None)) {
            return;
        }
        let request =
            self.ask(|governor, view, effects| governor.occasion(view, cpu, occasion, effects));
        self.grant();
        if let Some(request) = request {
            self.carry_out(cpu, request);
        }
    }

    // ------------------------------------------------------------------ its kthread

    /// Takes the kthread on to its next step.
    pub(crate) fn advance_sugov(&mut self, cpu: CpuId, kthread: TaskId) {
        if self.sugov_next() {
            let work = || work::at_full_speed(self.sugov_work());
            let todo = self.kthread().map_or_else(work, |k| Todo::Time(k.runs));
            self.rq(cpu).t(kthread).todo = todo;
            self.rq(cpu).arm_work();
        } else {
            self.rq(cpu).leave_queue(kthread, State::Sleeping, DequeueKind::SleepSpecial);
        }
    }
}
