//! Work that takes as long as it would on the platform, whatever this machine's real speed.
//!
//! ```text
//! progress = ∫ capacity(cpu) / 1024 · freq / freq_max(cpu)  d(CPU time)
//! ```
//!
//! Work is never counted in loops: under QEMU the vCPUs share one rate of instructions, and a
//! fixed clock does not slow the code down. CPU time is CLOCK_THREAD_CPUTIME_ID; but reading that
//! clock makes the kernel notice a slice that is over (`update_curr`), which otherwise waits for the tick: whoever
//! reads it in the middle of its work, or between two pieces, lets others in that no program without clocks would. So
//! it is read where the thread has just been given a CPU, and CLOCK_MONOTONIC stands for it until the next time
//! ([`CpuTime`]).
//!
//! The frequency is `scaling_cur_freq` of the CPU's policy, read every 100 µs. Error: where the
//! speed changes while the task was switched off (a migration; a frequency change by schedutil's
//! kthread on the same CPU), the change is put at the longest gap of the chunk, which is exact
//! to a few µs; any other change is put in the middle of the chunk, so it is off by at most
//! 50 µs · (change of speed), without bias. What a task needs to fall asleep and wake up is
//! charged to its next piece of work. Where several vCPUs of a machine under `-icount` are busy, they
//! take turns: a piece may end late by what the others do until they give theirs up (2 µs of this work each, up to half
//! a millisecond of other code), and the next one is that much shorter.
//!
//! Left out: frequencies that change while a CPU goes offline or comes back (some 20 ms), when nobody may
//! ask for them; interrupts count as the task's own time unless the kernel accounts for them.

use crate::hotplug;
use crate::sys;
use risetime_job::job::Cpu;
use std::collections::BTreeSet;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Speed 1: capacity 1024 at the top frequency.
const FULL: u64 = 1 << SHIFT;
const SHIFT: u32 = 20;
/// The speed is looked at this often.
const CHUNK: u64 = 100_000;
/// Rounds of [`burn`] between two turns: some 2 µs under QEMU, so that few µs pass on all CPUs until it is this one's again.
/// Ten times as many had a piece of 150 µs take 81 to 227 µs beside three busy CPUs, of which a reservation of 200 µs knows
/// nothing; and a run takes no longer on the host for it.
const TURN: u32 = 200;
/// Work below which the speed is not looked at: that would take longer.
const TINY: u64 = 5_000;
/// Largest part of what sleeping and waking took beyond a piece of work that is credited to the
/// next one.
const MAX_CREDIT: u64 = 10_000;

/// Speeds of the CPUs at the moment, as one thread sees them: whoever reads a file of sysfs holds
/// its mutex, and a thread that is throttled or preempted meanwhile would have all others wait that
/// read it through the same `File`.
#[derive(Debug)]
pub(crate) struct Speeds {
    cpus: Vec<(Cpu, Option<usize>)>,
    /// `scaling_cur_freq` of the policies, with what it said last.
    files: Vec<(File, AtomicU64)>,
}

impl Speeds {
    /// Opens the speeds of `cpus` for each of so many threads.
    ///
    /// Errors: so many files may not be open at once.
    pub(crate) fn open_each(cpus: &[Cpu], threads: usize) -> io::Result<Vec<Speeds>> {
        /// Files that the rest of this agent has open, with room to spare.
        const OTHERS: usize = 1024;
        let policies = cpus.iter().map(|cpu| cpu.policy).collect::<BTreeSet<u32>>().len();
        sys::may_open(OTHERS + threads * (policies + 1))?;
        Ok((0..threads).map(|_| Speeds::open(cpus)).collect())
    }

    /// Opens the policies of `cpus`; where there is no cpufreq, top frequency is assumed.
    pub(crate) fn open(cpus: &[Cpu]) -> Speeds {
        let mut speeds = Speeds { cpus: Vec::new(), files: Vec::new() };
        let mut opened: Vec<(u32, Option<usize>)> = Vec::new();
        for cpu in cpus {
            let known = opened.iter().find(|(policy, _)| *policy == cpu.policy);
            let file = known.map(|(_, file)| *file).unwrap_or_else(|| {
                let file = File::open(format!("{}/scaling_cur_freq", policy_dir(cpu.policy))).ok();
                let index = file.map(|f| {
                    speeds.files.push((f, AtomicU64::new(cpu.freq_max_khz)));
                    speeds.files.len() - 1
                });
                opened.push((cpu.policy, index));
                index
            });
            speeds.cpus.push((*cpu, file));
        }
        speeds
    }

    /// The speed of `cpu`, of [`FULL`]; never 0.
    fn of(&self, cpu: usize) -> u64 {
        let Some((cpu, file)) = self.cpus.get(cpu) else { return FULL };
        let khz = file.and_then(|i| self.read(i)).unwrap_or(cpu.freq_max_khz);
        speed(cpu, khz)
    }

    /// The frequency of a policy; while a CPU goes or comes, what it was before.
    fn read(&self, policy: usize) -> Option<u64> {
        let (file, last) = &self.files[policy];
        if hotplug::going_on() {
            return Some(last.load(Ordering::Relaxed));
        }
        let khz = number(file)?;
        last.store(khz, Ordering::Relaxed);
        Some(khz)
    }
}

/// The directory of a policy's files.
pub(crate) fn policy_dir(policy: u32) -> String {
    format!("/sys/devices/system/cpu/cpufreq/policy{policy}")
}

fn speed(cpu: &Cpu, khz: u64) -> u64 {
    let full = cpu.capacity << (SHIFT - 10);
    (full * khz).checked_div(cpu.freq_max_khz).unwrap_or(full).max(1)
}

/// The number at the start of a file that is read again and again.
fn number(file: &File) -> Option<u64> {
    let mut text = [0; 24];
    let len = file.read_at(&mut text, 0).ok()?;
    let digits = text[..len].iter().take_while(|b| b.is_ascii_digit());
    Some(digits.fold(0, |n, d| n * 10 + u64::from(d - b'0')))
}

/// The CPU time of the calling thread, without letting the kernel know.
///
/// ```text
/// schedstat   … how often it was given a CPU   the same as when the clock was read: clock + CLOCK_MONOTONIC since then
///                                              more: the clock is read, at most a chunk after that
/// ```
///
/// Errors: interrupts count, where the kernel does not count them as the task's, until it is given a CPU again.
struct CpuTime {
    /// `None`: the kernel does not say.
    schedstat: Option<File>,
    given: u64,
    mono: u64,
    clock: u64,
}

impl CpuTime {
    fn new() -> CpuTime {
        let file = File::open("/proc/thread-self/schedstat").ok();
        // All zeros: it does not keep count.
        let schedstat = file.filter(|file| times_given(file).is_some_and(|given| given > 0));
        CpuTime { schedstat, given: 0, mono: 0, clock: 0 }
    }

    fn now(&mut self) -> u64 {
        // In this order: who is switched off in between has been given a CPU once more.
        let mono = sys::mono();
        let given = self.schedstat.as_ref().and_then(times_given);
        match given {
            Some(given) if given == self.given => self.clock + (mono - self.mono),
            _ => {
                self.given = given.unwrap_or(0);
                self.clock = sys::thread_cpu();
                self.mono = sys::mono();
                self.clock
            }
        }
    }
}

/// Does the work of one thread.
pub(crate) struct Worker<'a> {
    speeds: &'a Speeds,
    time: CpuTime,
    /// CPU time up to which this thread's time has been accounted for.
    accounted: u64,
    /// The speed when it was last looked at.
    speed: u64,
}

/// Outcome of a busy stretch.
#[derive(Clone, Copy, Debug)]
struct Spun {
    now: u64,
    /// Begin of the longest gap, in which something else ran.
    gap: u64,
}

impl<'a> Worker<'a> {
    /// A worker for the calling thread, whose time counts from here.
    pub(crate) fn new(speeds: &'a Speeds) -> Worker<'a> {
        let (speed, mut time) = (speeds.of(sys::current_cpu()), CpuTime::new());
        let accounted = time.now();
        Worker { speeds, time, accounted, speed }
    }

    /// Works as long as capacity 1024 at top frequency would take `ns` for.
    pub(crate) fn run(&mut self, ns: u64) {
        let target = i128::from(ns) << SHIFT;
        if ns >= TINY {
            self.speed = self.speeds.of(sys::current_cpu());
        }
        let mut from = Reading { cpu_time: self.accounted, speed: self.speed };
        // What was spent on sleeping and waking counts.
        let (mut done, mut most) = (0, MAX_CREDIT);
        from.until(self.time.now(), &mut done);
        loop {
            let left = from.time_for(target - done);
            if left == 0 {
                let over = ((done - target) / i128::from(from.speed)) as u64;
                (self.accounted, self.speed) = (from.cpu_time - over.min(most), from.speed);
                return;
            }
            most = u64::MAX;
            let start = sys::mono();
            let spun = spin_until(start + left.min(CHUNK));
            let now = self.time.now();
            if left <= CHUNK {
                from.until(now, &mut done);
                continue;
            }
            let speed = self.speeds.of(sys::current_cpu());
            let ran = i128::from(now) - i128::from(from.cpu_time);
            let chunk = Chunk { start, end: spun.now, ran, gap: spun.gap };
            done += chunk.done(from.speed, speed);
            from = Reading { cpu_time: now, speed };
        }
    }

    /// Works in pieces of `piece` ns until CLOCK_MONOTONIC reads `until` at the end of one. What sleeping and waking took is
    /// no part of them. The speed is looked at when the time has come: where it has changed before, which part of a piece
    /// is left then is not known.
    pub(crate) fn run_pieces(&mut self, until: u64, piece: u64) {
        let began = self.time.now();
        if sys::mono() < until {
            spin_until(until);
        }
        self.accounted = self.time.now();
        self.speed = self.speeds.of(sys::current_cpu());
        let done = u128::from(self.accounted - began) * u128::from(self.speed);
        let whole = u128::from(piece) << SHIFT;
        let left = (whole - done % whole) >> SHIFT;
        if u128::from(self.accounted - began) == 0 || left < u128::from(piece) {
            self.run(left as u64);
        }
    }

    /// Keeps a CPU busy for `ns`, at whatever speed; what was spent on sleeping and waking counts.
    pub(crate) fn busy(&mut self, ns: u64) {
        let end = self.accounted.saturating_add(ns);
        loop {
            let now = self.time.now();
            if now >= end {
                self.accounted = now - (now - end).min(MAX_CREDIT);
                return;
            }
            spin_until(sys::mono() + (end - now).min(CHUNK));
        }
    }

    /// Leaves what the thread took since its last work out of the next one: it waited for somebody in the kernel, awake.
    pub(crate) fn leave_out_waiting(&mut self) {
        self.accounted = self.time.now();
    }

    /// Runs for ever, without any system call.
    pub(crate) fn run_for_ever(&self) -> ! {
        loop {
            burn(TURN);
            sys::give_turn();
        }
    }
}

/// The number of times that the thread of this `schedstat` has been given a CPU: the third number.
fn times_given(schedstat: &File) -> Option<u64> {
    let mut text = [0; 64];
    let len = schedstat.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    cpu_time: u64,
    speed: u64,
}

impl Reading {
    /// The CPU-time clock reads `now`: `done` follows. Before it was estimated, which may have been ahead of it: then
    /// there is more to do than was asked for.
    fn until(&mut self, now: u64, done: &mut i128) {
        let ran = i128::from(now) - i128::from(self.cpu_time);
        *done += ran * i128::from(self.speed);
        self.cpu_time = now;
    }

    /// The CPU time for so much work at this speed, in ns. Rounding: up.
    fn time_for(&self, work: i128) -> u64 {
        u128::try_from(work).unwrap_or(0).div_ceil(u128::from(self.speed)) as u64
    }
}

/// A stretch at whose two ends the speed was read.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u64,
    end: u64,
    /// CPU time that passed in it.
    ran: i128,
    /// Begin of the longest gap.
    gap: u64,
}

impl Chunk {
    /// The work done in the chunk, if the speed was first `before` and in the end `after`.
    fn done(&self, before: u64, after: u64) -> i128 {
        let switched_off = i128::from(self.end - self.start) > self.ran;
        let first = match switched_off {
            _ if before == after => self.ran,
            false => self.ran / 2,
            true => i128::from(self.gap - self.start).min(self.ran),
        };
        first * i128::from(before) + (self.ran - first) * i128::from(after)
    }
}

/// Spins until CLOCK_MONOTONIC reads `end`.
fn spin_until(end: u64) -> Spun {
    const ROUNDS: u32 = 100;
    let mut last = sys::mono();
    let (mut gap, mut longest) = (last, 0);
    let mut burnt = 0;
    loop {
        burn(ROUNDS);
        burnt += ROUNDS;
        if burnt >= TURN {
            burnt = 0;
            sys::give_turn();
        }
        let now = sys::mono();
        if now - last > longest {
            (gap, longest) = (last, now - last);
        }
        last = now;
        if now >= end {
            return Spun { now, gap };
        }
    }
}

/// Keeps a CPU busy.
pub(crate) fn burn(rounds: u32) {
    for i in 0..rounds {
        black_box(i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(capacity: u64, freq_max_khz: u64) -> Cpu {
        Cpu { capacity, freq_max_khz, policy: 0 }
    }

    #[test]
    fn speed_is_capacity_times_frequency() {
        assert_eq!(speed(&cpu(1024, 3_204_000), 3_204_000), FULL);
        assert_eq!(speed(&cpu(512, 2_000_000), 500_000), FULL / 8);
        assert_eq!(speed(&cpu(512, 0), 7), FULL / 2, "no cpufreq");
        assert_eq!(speed(&cpu(1, 4_000_000), 1), 1, "never 0");
    }

    #[test]
    fn a_change_of_speed_is_put_where_the_task_was_off() {
        let chunk = |ran, gap| Chunk { start: 1000, end: 1100, ran, gap };
        assert_eq!(chunk(100, 1000).done(3, 3), 300);
        assert_eq!(chunk(102, 1000).done(2, 4), 51 * 2 + 51 * 4, "unknown: in the middle");
        assert_eq!(chunk(90, 1030).done(2, 4), 30 * 2 + 60 * 4);
        assert_eq!(chunk(90, 1099).done(2, 4), 90 * 2, "never more than it ran");
        assert_eq!(chunk(-5, 1000).done(2, 2), -10, "it was estimated too high before");
    }

    /// Ends the competition, also where the test fails.
    struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// CPU time spent on work is what was asked for, at half speed, long and short, even when
    /// another thread competes for the CPU.
    ///
    /// A machine that is itself a virtual one may stand still for a ms between two instructions, so that
    /// its clocks disagree, or the last piece ends late: what is wrong with the counting is wrong each
    /// time that others had the CPU, what is wrong with the machine is not.
    #[test]
    fn work_takes_its_cpu_time_under_competition() {
        let half: Vec<Cpu> =
            (0..256).map(|_| Cpu { capacity: 512, freq_max_khz: 0, policy: 9999 }).collect();
        let speeds = Speeds::open(&half);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let running = || !stop.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|s| {
            for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
                s.spawn(|| {
                    while running() {
                        burn(1000)
                    }
                });
            }
            let _stop = Stop(&stop);
            let mut all = Vec::new();
            while all.len() < 50 {
                let mut worker = Worker::new(&speeds);
                let (start, before) = (sys::thread_cpu(), sys::mono());
                for ns in [20_000, 5_000_000, 100_000, 15_000_000, 1_000] {
                    worker.run(ns);
                }
                let ran = sys::thread_cpu() - start;
                let off = ran.abs_diff(2 * 20_121_000);
                let waited = (sys::mono() - before).saturating_sub(ran);
                if off < 400_000 && waited > 1_000_000 {
                    return;
                }
                all.push((off, waited));
            }
            panic!("never within 0.4 of 40 ms while others ran; ns off, ns waited: {all:?}");
        });
    }

    #[test]
    fn an_estimate_ahead_of_the_clock_is_taken_back() {
        let mut done = 100;
        let mut from = Reading { cpu_time: 50, speed: 2 };
        from.until(60, &mut done);
        assert_eq!((done, from.cpu_time), (120, 60));
        from.until(55, &mut done);
        assert_eq!((done, from.cpu_time), (110, 55));
        from.until(0, &mut done);
        assert_eq!((done, from.time_for(7 - done)), (0, 4));
        assert_eq!(from.time_for(-7), 0);
    }

    #[test]
    fn running_for_a_time_leaves_no_work_behind() {
        let speeds = Speeds::open(&[]);
        let mut worker = Worker::new(&speeds);
        let before = sys::thread_cpu();
        worker.run_pieces(sys::mono() + 3_000_000, 32_000);
        let start = worker.accounted;
        assert!(start > before, "the time is accounted for");
        // An interrupt's time may count as the thread's ([`CpuTime`]): seldom in ten times out of ten.
        let worked = |worker: &mut Worker<'_>| {
            let start = worker.accounted;
            worker.run(1_000_000);
            sys::thread_cpu() - start >= 1_000_000
        };
        assert!((0..10).any(|_| worked(&mut worker)));
    }
}
