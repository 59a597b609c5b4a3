//! How fast a series of PELT updates is; the goal is 20 million a second.
//!
//! Compared within one run: the same series of updates under another half-life, at the pace of a
//! tick (a period boundary every time, three divisions) and below it (mostly none), and the form
//! before 5.1. The kernel's own C does 80 to 100 million a second on the same kind of machine; what
//! limits both is the divisions at a boundary, each waiting for the sums.

mod stopwatch;

use risetime_kernel::pelt::{Decay, Pelt, SchedAvg, update_load_avg_se};
use risetime_kernel::pelt_before::Scale;
use risetime_kernel::units::{Capacity, ClockPelt, Weight};
use std::hint::black_box;
use stopwatch::measure;

const UPDATES: u64 = 10_000;

/// A task that runs two updates of three, updated every `step_ns`.
fn series<'a>(pelt: impl Into<Pelt<'a>>, step_ns: u64) -> SchedAvg {
    let pelt = pelt.into();
    let mut sa = SchedAvg::default();
    let mut now = 0;
    for i in 0..UPDATES {
        now += step_ns;
        let on = i % 3 != 0;
        update_load_avg_se(pelt, ClockPelt(now), &mut sa, Weight(1024), on, on as u64, on);
    }
    sa
}

fn main() {
    let of = |name: &str, decay: &Decay, step_ns: u64| {
        let made = (UPDATES as f64, "updates");
        measure(name, made, || series(black_box(decay), black_box(step_ns)));
    };
    of("pelt, tick 1 ms, 32 ms", &Decay::MS32, 1_000_000);
    of("pelt, tick 4 ms, 32 ms", &Decay::MS32, 4_000_000);
    of("pelt, every 100 us, 32 ms", &Decay::MS32, 100_000);
    of("pelt, tick 4 ms, 8 ms", &Decay::MS8, 4_000_000);
    let scale = Some(Scale { freq: 700, cpu: Capacity(512) });
    let before = || series(black_box(Pelt { decay: &Decay::MS32, scale }), black_box(1_000_000));
    measure("pelt, tick 1 ms, before 5.1", (UPDATES as f64, "updates"), before);
}
