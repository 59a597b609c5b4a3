//! util_est.json, schedutil.json, em.json.

use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::{RqUtil, effective_cpu_util};
use risetime_kernel::energy_model::{
    EmPerfDomain, EmPerfState, em_compute_costs, em_cpu_energy, em_pd_get_efficient_state,
};
use risetime_kernel::schedutil::{
    FreqRef, IowaitBoost, get_capacity_ref_freq, get_next_freq, map_util_perf,
    sugov_effective_cpu_perf,
};
use risetime_kernel::units::{Capacity, Instant, KHz, MicroWatts, Span, Util};
use risetime_kernel::util_est::{UTIL_AVG_UNCHANGED, UtilEst, util_est_update};
use serde_json::Value;

use super::tally::{Tally, u};

/// The kernels the vectors come from.
const REVS: [KernelRev; 2] = [KernelRev::V6_12, KernelRev::V7_2];

/// Checks the single samples and the chains of util_est.json, both kernels.
pub fn check_util_est(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (i, row) in tally.rows_of(json, "cases", 10).iter().enumerate() {
        let flag = if row[1] != 0 { UTIL_AVG_UNCHANGED } else { 0 };
        let est = UtilEst(u(row[0]) as u32 | flag);
        let got = REVS.map(|rev| {
            let (util, runnable, capacity) =
                (Util(u(row[2])), Util(u(row[3])), Capacity(u(row[4])));
            util_est_update(rev, est, util, runnable, capacity, row[5] != 0, 1)
        });
        let got = got.map(|e| [e.value().0 as i128, e.unchanged() as i128]);
        tally.compare(&format!("cases[{i}]"), row, 6, got.as_flattened());
    }
    for (place, sequence) in tally.groups(json, "sequences") {
        let Some(capacity) = tally.number(&place, sequence, "capacity") else {
            continue;
        };
        let mut ests = [UtilEst(0); 2];
        for (i, row) in tally.rows_of(sequence, "rows", 5).iter().enumerate() {
            for (est, rev) in ests.iter_mut().zip(REVS) {
                est.cfs_se_util_change();
                let (util, runnable) = (Util(u(row[0])), Util(u(row[1])));
                let capacity = Capacity(u(capacity));
                *est = util_est_update(rev, *est, util, runnable, capacity, row[2] != 0, 1);
            }
            let got = ests.map(|e| e.value().0 as i128);
            tally.compare(&format!("{place} row {i}"), row, 3, &got);
        }
    }
    tally
}

/// Checks the tables of schedutil.json.
pub fn check_schedutil(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (i, row) in tally.rows_of(json, "effective", 15).iter().enumerate() {
        tally.compare(&format!("effective[{i}]"), row, 10, &effective(row));
    }
    for (i, row) in tally.rows_of(json, "perf", 5).iter().enumerate() {
        let [actual, min, max] = [0, 1, 2].map(|c| Util(u(row[c])));
        let perf = sugov_effective_cpu_perf(actual, min, max);
        let got = [perf.0 as i128, map_util_perf(actual).0 as i128];
        tally.compare(&format!("perf[{i}]"), row, 3, &got);
    }
    for (i, row) in tally.rows_of(json, "freq", 7).iter().enumerate() {
        let policy = FreqRef {
            arch_scale_freq_ref: KHz(u(row[2])),
            freq_invariant: row[3] != 0,
            cpuinfo_max_freq: KHz(u(row[4])),
            cur: KHz(u(row[5])),
        };
        let ref_freq = get_capacity_ref_freq(KernelRev::V7_2, &policy);
        let (util, max) = (Util(u(row[0])), Capacity(u(row[1])));
        let freq = get_next_freq(KernelRev::V7_2, util, max, ref_freq);
        tally.compare(&format!("freq[{i}]"), row, 6, &[freq.0 as i128]);
    }
    check_iowait(json, &mut tally);
    tally
}

fn effective(row: &[i128]) -> [i128; 5] {
    let rq = RqUtil {
        rt: Util(u(row[1])),
        dl: Util(u(row[2])),
        irq: Util(u(row[3])),
        dl_running_bw: u(row[4]),
        uclamp_min: Util(u(row[5])),
        uclamp_max: Util(u(row[6])),
        uclamp_is_used: row[7] != 0,
        rt_runnable: row[8] != 0,
    };
    let e = effective_cpu_util(Util(u(row[0])), &rq, Capacity(u(row[9])));
    let perf = sugov_effective_cpu_perf(e.util, e.min, e.max);
    [e.util.0, e.min.0, e.max.0, perf.0, e.util.0].map(i128::from)
}

fn check_iowait(json: &Value, tally: &mut Tally) {
    for (place, sequence) in tally.groups(json, "iowait") {
        let tick = tally.number(&place, sequence, "tick_ns");
        let max_cap = tally.number(&place, sequence, "max_cap");
        let (Some(tick), Some(max_cap)) = (tick, max_cap) else {
            continue;
        };
        let (tick, max_cap) = (Span(u(tick)), Capacity(u(max_cap)));
        let mut cpu = IowaitBoost::default();
        let mut time = Instant(1_000_000_000);
        for (i, row) in tally.rows_of(sequence, "rows", 5).iter().enumerate() {
            time = Instant(time.0.wrapping_add(u(row[0])));
            cpu.sugov_iowait_boost(time, tick, row[1] != 0);
            cpu.last_update = time;
            let boost = cpu.sugov_iowait_apply(time, tick, max_cap);
            let pending = cpu.iowait_boost_pending as i128;
            let got = [boost.0 as i128, cpu.iowait_boost as i128, pending];
            tally.compare(&format!("{place} row {i}"), row, 2, &got);
        }
    }
}

/// Checks tables, energies and chosen states of em.json.
pub fn check_em(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (place, table) in tally.groups(json, "tables") {
        let flags = tally.number(&place, table, "pd_flags");
        let capacity = tally.number(&place, table, "capacity");
        let (Some(flags), Some(capacity)) = (flags, capacity) else {
            continue;
        };
        let capacity = Capacity(u(capacity));
        let states = check_states(&place, table, capacity, &mut tally);
        let pd = EmPerfDomain { skip_inefficiencies: flags & 2 != 0, ..EmPerfDomain::new(&states) };
        for (i, row) in tally.rows_of(table, "rows", 5).iter().enumerate() {
            // The kernels agree: one row, and whichever of them differs from it is shown.
            let both = REVS.map(|rev| energy(rev, &pd, row, capacity));
            let got = both.iter().find(|got| got[..] != row[3..]).unwrap_or(&both[0]);
            tally.compare(&format!("{place} rows[{i}]"), row, 3, got);
        }
        if table.get("rows_7_2_limited").is_none() {
            continue;
        }
        for (i, row) in tally.rows_of(table, "rows_7_2_limited", 7).iter().enumerate() {
            let pd = EmPerfDomain {
                min_perf_state: u(row[3]) as usize,
                max_perf_state: u(row[4]) as usize,
                ..pd
            };
            let got = energy(KernelRev::V7_2, &pd, row, capacity);
            tally.compare(&format!("{place} rows_7_2_limited[{i}]"), row, 5, &got);
        }
    }
    tally
}

/// The states recomputed from frequency and power, each compared with the table's.
fn check_states(place: &str, table: &Value, cap: Capacity, tally: &mut Tally) -> Vec<EmPerfState> {
    let rows = tally.rows_of(table, "states", 5);
    let mut states: Vec<EmPerfState> = rows
        .iter()
        .map(|row| EmPerfState {
            frequency: KHz(u(row[0])),
            power: MicroWatts(u(row[1])),
            ..EmPerfState::default()
        })
        .collect();
    em_compute_costs(KernelRev::V7_2, &mut states, cap);
    for (i, (row, s)) in rows.iter().zip(&states).enumerate() {
        let got = [s.performance.0 as i128, s.cost as i128, s.inefficient as i128];
        tally.compare(&format!("{place} states[{i}]"), row, 2, &got);
    }
    states
}

/// Energy and chosen state for the columns max_util, sum_util, allowed_cpu_cap.
fn energy(rev: KernelRev, pd: &EmPerfDomain<'_>, row: &[i128], capacity: Capacity) -> [i128; 2] {
    let (max_util, sum_util, allowed) = (Util(u(row[0])), Util(u(row[1])), Capacity(u(row[2])));
    let energy = em_cpu_energy(rev, pd, max_util, sum_util, allowed, capacity);
    let state = em_pd_get_efficient_state(pd, Util(max_util.0.min(allowed.0)));
    [energy as i128, state as i128]
}
