//! amd-pstate's requests, held to what its C of three releases printed (kernel_c/README.md).

use risetime_kernel::KernelRev;
use risetime_kernel::amd_pstate::{
    Levels, Request, amd_pstate_adjust_perf, amd_pstate_update_freq,
};
use risetime_kernel::units::{Capacity, KHz, Util};

const ROWS: &str = include_str!("kernel_c/amd-pstate.csv");

/// Counts the rows whose two requests `with` gets wrong.
fn wrong(with: impl Fn(KernelRev) -> KernelRev) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in ROWS.lines().skip(1) {
        let (kernel, numbers) = row.split_once(',').expect("a kernel");
        let n: Vec<u64> = numbers.split(',').map(|n| n.parse().expect("a number")).collect();
        let rev = KernelRev::of_release(kernel).expect("a release");
        let levels = Levels {
            highest: n[0],
            nominal: n[1],
            lowest_nonlinear: n[2],
            lowest: n[3],
            min_limit: n[4],
            max_limit: n[5],
            max_freq: KHz(n[6]),
            nominal_freq: KHz(n[7]),
            guided: n[8] == 1 && n[9] == 1,
            boost_supported: n[10] == 1,
        };
        let request = |n: &[u64]| Request { min_perf: n[0], des_perf: n[1], max_perf: n[2] };
        let rev = with(rev);
        let by_util =
            amd_pstate_adjust_perf(rev, &levels, Util(n[11]), Util(n[12]), Capacity(n[13]));
        let by_freq = amd_pstate_update_freq(rev, &levels, KHz(n[14]));
        if (by_util, by_freq) != (request(&n[15..18]), request(&n[18..21])) {
            wrong.push(format!("{row}: {by_util:?} {by_freq:?}"));
        }
    }
    wrong
}

#[test]
fn requests_are_those_of_the_drivers_c() {
    assert_eq!(wrong(|rev| rev), [""; 0]);
}

/// Each release's rules fail on another's rows.
#[test]
fn the_rows_tell_the_releases_apart() {
    for rev in [KernelRev::V6_1, KernelRev::V6_12, KernelRev::V7_2] {
        assert!(wrong(|_| rev).len() > 100, "{rev}");
    }
}

#[test]
fn guided_leaves_the_choice_above_the_target_to_the_hardware() {
    let levels = Levels {
        highest: 200,
        nominal: 120,
        lowest_nonlinear: 40,
        lowest: 10,
        min_limit: 10,
        max_limit: 200,
        max_freq: KHz(5_000_000),
        nominal_freq: KHz(3_000_000),
        boost_supported: true,
        guided: true,
    };
    let asked = |levels| {
        amd_pstate_adjust_perf(KernelRev::V7_2, levels, Util(0), Util(512), Capacity(1024))
    };
    assert_eq!(asked(&levels), Request { min_perf: 100, des_perf: 0, max_perf: 200 });
    let passive = Levels { guided: false, ..levels };
    assert_eq!(asked(&passive), Request { min_perf: 10, des_perf: 100, max_perf: 200 });
}
