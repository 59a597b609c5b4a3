//! How fast a series of PELT updates is; the goal is 20 million a second.
//!
//! Compared within one run: the same series of updates under another half-life, at the pace of a
//! tick (a period boundary every time, three divisions) and below it (mostly none), and the form
//! before 5.1. The kernel's own C does 80 to 100 million a second on the same kind of machine; what
//! limits both is the divisions at a boundary, each waiting for the sums.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use risetime_kernel::pelt::{Decay, Pelt, SchedAvg, update_load_avg_se};
use risetime_kernel::pelt_before::Scale;
use risetime_kernel::units::{Capacity, ClockPelt, Weight};

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

fn pelt(c: &mut Criterion) {
    let mut group = c.benchmark_group("pelt");
    group.throughput(Throughput::Elements(UPDATES));
    group.bench_function("tick 1 ms, 32 ms", |b| {
        b.iter(|| series(black_box(&Decay::MS32), black_box(1_000_000)));
    });
    group.bench_function("tick 4 ms, 32 ms", |b| {
        b.iter(|| series(black_box(&Decay::MS32), black_box(4_000_000)));
    });
    group.bench_function("every 100 us, 32 ms", |b| {
        b.iter(|| series(black_box(&Decay::MS32), black_box(100_000)));
    });
    group.bench_function("tick 4 ms, 8 ms", |b| {
        b.iter(|| series(black_box(&Decay::MS8), black_box(4_000_000)));
    });
    group.bench_function("tick 1 ms, before 5.1", |b| {
        let scale = Some(Scale { freq: 700, cpu: Capacity(512) });
        b.iter(|| series(black_box(Pelt { decay: &Decay::MS32, scale }), black_box(1_000_000)));
    });
    group.finish();
}

criterion_group!(benches, pelt);
criterion_main!(benches);
