//! The simulator held against a stock kernel on a virtual SoC: needs `make vm`. Bands as `risetime
//! verify` has them, for whichever kernel is the newest.

use risetime_analysis::verify::Mode;
use risetime_kernel::units::Span;
use risetime_lab::{Request, record, verify};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;

/// One experiment on both; at least `wanted` of the six checks must hold in each mode.
fn check(workload: &str, settings: &str, wanted: usize) {
    let (vm, kernel) =
        Vm::find(&Cache::from_env().unwrap(), None).unwrap_or_else(|e| panic!("{e}"));
    let request = Request {
        workload: workload.into(),
        platform: "m1".into(),
        policies: vec![format!("mainline{settings}")],
        set: Vec::new(),
        seconds: Some(2.0),
        phase: Span(0),
        seed: 1,
    };
    let experiment = request.experiments_under(kernel.rev()).unwrap().remove(0);
    let reference = record(&vm, &experiment).unwrap_or_else(|e| panic!("{e}"));
    for mode in [Mode::Given, Mode::Free] {
        let found = verify(&experiment, &reference, mode).unwrap();
        let failed: Vec<_> = found.comparison.checks.iter().filter(|c| !c.holds).collect();
        assert!(
            found.comparison.held() >= wanted,
            "{workload}{settings}, {}: {failed:#?}",
            mode.as_str()
        );
    }
}

#[test]
fn real_kernel_agrees_on_the_ramp() {
    // From another start two of its OPP steps come up to two ticks apart.
    check("rampup", "+rate_limit_us=10000", 4);
    check("rampup", "", 5);
}

#[test]
fn real_kernel_agrees_on_clamped_ramps() {
    check("rampup", "+uclamp_min=1024", 4);
    check("rampup", "+uclamp_max=0", 4);
}
