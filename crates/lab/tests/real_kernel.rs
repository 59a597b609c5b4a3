//! The simulator held against a stock kernel on a virtual SoC: needs `make vm`. Bands as `risetime
//! verify` has them, for whichever kernel is the newest.

use risetime_lab::{SET_PHASES, SET_SEED, catch, record_set, set, set_holds};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;

#[test]
fn real_kernel_agrees_and_tells_wrong_simulators_apart() {
    let (vm, kernel) = Vm::find(&Cache::from_env().unwrap(), None, risetime_sim::catalogue())
        .unwrap_or_else(|e| panic!("{e}"));
    // The half that nobody chose is for `risetime verify --all`: of it four fifths of the checks hold
    // (docs/real-kernel.md), and what fails is in it as it was drawn.
    let fixed = set(SET_SEED).into_iter().filter(|case| !case.is_drawn()).collect();
    let recorded =
        record_set(&vm, kernel.rev(), fixed, SET_PHASES, |_| ()).unwrap_or_else(|e| panic!("{e}"));
    let judged: Vec<_> = recorded.iter().map(|r| r.judge().unwrap()).collect();
    let failing: Vec<_> = judged.iter().filter(|j| !j.holds()).collect();
    assert!(set_holds(&judged), "{failing:#?}");

    let caught = catch(&recorded).unwrap();
    let unseen: Vec<_> = caught.iter().filter(|c| c.by.is_none()).map(|c| c.name).collect();
    assert!(unseen.is_empty(), "nothing exposes {unseen:?}");
}
