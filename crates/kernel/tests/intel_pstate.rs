//! intel_pstate's requests and its own algorithm, and the counters behind invariance, held to what their C printed
//! (kernel_c/README.md).

use risetime_kernel::KernelRev;
use risetime_kernel::aperfmperf::{
    amd_set_max_freq_ratio, intel_set_max_freq_ratio, scale_freq_tick,
};
use risetime_kernel::intel_pstate::{
    Levels, Request, Sample, get_target_pstate, intel_cpufreq_adjust_perf,
    intel_cpufreq_fast_switch, intel_pstate_iowait_boost, intel_pstate_update_perf_limits,
};
use risetime_kernel::units::{Capacity, KHz, Span, Util};

const ROWS: &str = include_str!("kernel_c/intel-pstate.csv");
const TICKS: &str = include_str!("kernel_c/aperfmperf.csv");

/// Lists the rows that the rules get wrong, with the release that `with` makes of a row's.
fn wrong(with: impl Fn(KernelRev) -> KernelRev) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in ROWS.lines().skip(1) {
        let (kernel, numbers) = row.split_once(',').expect("a kernel");
        let n: Vec<u64> = numbers.split(',').map(|n| n.parse().expect("a number")).collect();
        let rev = with(KernelRev::of_release(kernel).expect("a release"));
        let levels = Levels {
            highest: n[0],
            guaranteed: n[1],
            lowest: n[2],
            min_limit: n[7],
            max_limit: n[8],
            scaling: KHz(n[4]),
        };
        let limits = intel_pstate_update_perf_limits(&levels, KHz(n[5]), KHz(n[6]));
        let utils = (Util(n[9]), Util(n[10]), Util(n[11]));
        let adjusted = intel_cpufreq_adjust_perf(rev, &levels, utils, Capacity(n[12]));
        let fast = intel_cpufreq_fast_switch(&levels, KHz(n[16]));
        let sample = Sample { aperf: n[20], mperf: n[21], tsc: n[22] };
        let pstate = get_target_pstate(&levels, n[3], sample, n[23]);
        let tick = Span(1_000_000);
        let boost = intel_pstate_iowait_boost(n[23], Span(n[25]), tick, n[26] == 1);
        let request = |n: &[u64]| Request { min_perf: n[0], des_perf: n[1], max_perf: n[2] };
        let right = limits == (n[7], n[8])
            && (adjusted, fast) == (request(&n[13..16]), request(&n[17..20]))
            && (pstate, boost) == (n[24], n[27]);
        if !right {
            wrong.push(format!("{row}: {limits:?} {adjusted:?} {fast:?} {pstate} {boost}"));
        }
    }
    wrong
}

#[test]
fn intel_pstate_answers_as_its_c_does() {
    assert_eq!(wrong(|rev| rev), [""; 0]);
}

/// The upper clamp reaches the driver from 7.3 on: older rules fail on its rows, and it on theirs.
#[test]
fn the_rows_tell_7_3_from_the_releases_before() {
    assert!(wrong(|_| KernelRev::V7_2).len() > 10);
    assert!(wrong(|_| KernelRev::V7_3).len() > 30);
}

#[test]
fn invariance_of_x86_is_what_the_counters_say() {
    for row in TICKS.lines().skip(1) {
        let n: Vec<u64> = row.split(',').map(|n| n.parse().expect("a number")).collect();
        assert_eq!(scale_freq_tick(n[0], n[1], n[2]), Some(n[3]).filter(|s| *s > 0), "{row}");
    }
    assert_eq!(scale_freq_tick(0, 0, 1024), None, "a tick that saw no cycle changes nothing");
}

/// An AMD CPU of 196 by 126 levels is at full scale from 4.2 of its 5.1 GHz on: 3.301 GHz · 1308 / 1024 = 4.216 GHz.
#[test]
fn amd_s_full_scale_is_half_way_between_nominal_and_boost() {
    let ratio = amd_set_max_freq_ratio(196, 126);
    assert_eq!(ratio, 1308);
    assert_eq!(scale_freq_tick(4_216_000, 3_301_000, ratio), Some(1023));
    assert_eq!(scale_freq_tick(5_134_000, 3_301_000, ratio), Some(1024));
    assert_eq!(intel_set_max_freq_ratio(55, 26), 2166);
}
