//! pelt_task.json, pelt_extra.json, pelt_clock.json.

use risetime_kernel::clock_pelt::RqClock;
use risetime_kernel::pelt::{
    Decay, SchedAvg, update_irq_load_avg, update_load_avg_blocked_se, update_load_avg_cfs_rq,
    update_load_avg_se, update_rt_rq_load_avg,
};
use risetime_kernel::units::{Capacity, ClockPelt, Instant, Util, Weight};
use serde_json::Value;

use super::tally::{Tally, numbers, u};

/// Width of a row of pelt_task and pelt_extra.
const COLUMNS: usize = 13;

/// The columns ret … last_update_time.
fn state(ret: u32, sa: &SchedAvg, start: u64) -> [i128; 9] {
    [
        ret as i128,
        sa.load_sum as i128,
        sa.runnable_sum as i128,
        sa.util_sum as i128,
        sa.period_contrib as i128,
        sa.load_avg as i128,
        sa.runnable_avg.0 as i128,
        sa.util_avg.0 as i128,
        // The clock may have gone back before the start.
        sa.last_update_time.0.wrapping_sub(start) as i64 as i128,
    ]
}

/// Replays every sequence of pelt_task.json.
pub fn check_task(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (place, sequence) in tally.groups(json, "sequences") {
        let Some(init) = numbers(&sequence["init"], 8) else {
            tally.row(false, || format!("{place}: `init` is not 8 whole numbers"));
            continue;
        };
        let Some(weight) = tally.number(&place, sequence, "weight") else {
            continue;
        };
        let mut sa = SchedAvg {
            last_update_time: ClockPelt(u(init[0])),
            load_sum: u(init[1]),
            runnable_sum: u(init[2]),
            util_sum: u(init[3]) as u32,
            period_contrib: u(init[4]) as u32,
            load_avg: u(init[5]),
            runnable_avg: Util(u(init[6])),
            util_avg: Util(u(init[7])),
        };
        let (start, weight) = (u(init[0]), Weight(u(weight)));
        let mut now = start;
        for (i, row) in tally.rows_of(sequence, "rows", COLUMNS).iter().enumerate() {
            now = now.wrapping_add(u(row[0]));
            let ret = task_update(ClockPelt(now), &mut sa, weight, &row[1..4]);
            let place = format!("{place} row {i}");
            tally.compare(&place, row, 4, &state(ret as u32, &sa, start));
        }
    }
    tally
}

/// An update with the flags load, runnable, running; without any, as for a blocked entity.
fn task_update(now: ClockPelt, sa: &mut SchedAvg, weight: Weight, flags: &[i128]) -> bool {
    if flags == [0, 0, 0] {
        return update_load_avg_blocked_se(&Decay::MS32, now, sa, weight);
    }
    let (on_rq, runnable, running) = (flags[0] != 0, u(flags[1]), flags[2] != 0);
    update_load_avg_se(&Decay::MS32, now, sa, weight, on_rq, runnable, running)
}

/// Replays every sequence of pelt_extra.json.
pub fn check_extra(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (place, sequence) in tally.groups(json, "sequences") {
        let kind = sequence["kind"].as_str().unwrap_or_default();
        let Some(start) = tally.number(&place, sequence, "start").map(u) else {
            continue;
        };
        let weight = match kind {
            "group_se" => tally.number(&place, sequence, "weight"),
            "cfs_rq" | "rt_rq" | "irq" => Some(1),
            _ => {
                tally.row(false, || format!("{place}: unknown kind {kind:?}"));
                None
            }
        };
        let Some(weight) = weight.map(u) else {
            continue;
        };
        let mut sa = SchedAvg { last_update_time: ClockPelt(start), ..SchedAvg::default() };
        let mut now = start;
        for (i, row) in tally.rows_of(sequence, "rows", COLUMNS).iter().enumerate() {
            now = now.wrapping_add(u(row[0]));
            let ret = extra_update(kind, now, &mut sa, weight, &row[1..4]);
            tally.compare(&format!("{place} {kind} row {i}"), row, 4, &state(ret, &sa, start));
        }
    }
    tally
}

fn extra_update(kind: &str, now: u64, sa: &mut SchedAvg, weight: u64, row: &[i128]) -> u32 {
    let (a, b, c) = (u(row[0]), u(row[1]), u(row[2]));
    let (decay, clock) = (&Decay::MS32, ClockPelt(now));
    match kind {
        "group_se" => {
            update_load_avg_se(decay, clock, sa, Weight(weight), a != 0, b, c != 0) as u32
        }
        "cfs_rq" => update_load_avg_cfs_rq(decay, clock, sa, Weight(a), b, c != 0) as u32,
        "rt_rq" => update_rt_rq_load_avg(decay, clock, sa, c != 0) as u32,
        // Columns of irq: running_ns, capacity, frequency scale.
        _ => update_irq_load_avg(decay, Instant(now), sa, a, Capacity(b), c),
    }
}

/// Replays every sequence of pelt_clock.json.
pub fn check_clock(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (place, sequence) in tally.groups(json, "sequences") {
        let Some(start) = tally.number(&place, sequence, "start").map(u) else {
            continue;
        };
        let mut cpu = Cpu::new(start);
        for (i, row) in tally.rows_of(sequence, "rows", 17).iter().enumerate() {
            cpu.step(row);
            tally.compare(&format!("{place} row {i}"), row, 6, &cpu.state(start));
        }
    }
    tally
}

/// A runqueue's clocks with its fair and RT signals.
struct Cpu {
    clock: RqClock,
    cfs: SchedAvg,
    rt: SchedAvg,
}

impl Cpu {
    fn new(start: u64) -> Cpu {
        let sa = SchedAvg { last_update_time: ClockPelt(start), ..SchedAvg::default() };
        Cpu { clock: RqClock::new(Instant(start)), cfs: sa, rt: sa }
    }

    fn step(&mut self, row: &[i128]) {
        let (wall, irq) = (u(row[0]), u(row[1]));
        let (capacity, freq, class, go_idle) = (Capacity(u(row[2])), u(row[3]), row[4], row[5]);
        let clock = &mut self.clock;
        clock.clock.0 = clock.clock.0.wrapping_add(wall);
        clock.update_rq_clock_pelt(wall.wrapping_sub(irq), class == 0, capacity, freq);
        let (now, fair) = (clock.rq_clock_pelt(), class == 1);
        let (load, nr) = if fair { (Weight(1024), 1) } else { (Weight(0), 0) };
        update_load_avg_cfs_rq(&Decay::MS32, now, &mut self.cfs, load, nr, fair);
        update_rt_rq_load_avg(&Decay::MS32, now, &mut self.rt, class == 2);
        if go_idle != 0 {
            let sum = self.cfs.util_sum.wrapping_add(self.rt.util_sum);
            clock.update_idle_rq_clock_pelt(&Decay::MS32, sum);
        }
    }

    fn state(&self, start: u64) -> [i128; 11] {
        let since = |t: u64| t.wrapping_sub(start) as i64 as i128;
        let (clock, cfs, rt) = (&self.clock, &self.cfs, &self.rt);
        [
            since(clock.clock.0),
            since(clock.clock_task.0),
            since(clock.clock_pelt),
            clock.lost_idle_time as i64 as i128,
            since(clock.rq_clock_pelt().0),
            cfs.util_sum as i128,
            cfs.period_contrib as i128,
            cfs.util_avg.0 as i128,
            rt.util_sum as i128,
            rt.period_contrib as i128,
            rt.util_avg.0 as i128,
        ]
    }
}
