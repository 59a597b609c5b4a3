//! A stopwatch: how long something takes, over and over, and how much of what it makes that is in a second.

use std::time::{Duration, Instant};

/// Number of times that something is measured, unless that takes too long.
const SAMPLES: usize = 25;
/// Time after which no more samples are taken, once there are a few.
const LONG: Duration = Duration::from_secs(20);
const FEW: usize = 5;

/// Prints how long `run` takes: the median, the shortest and the longest time of some; and how many of the `made` that come of it
/// that is in a second.
pub(crate) fn measure<T>(name: &str, made: (f64, &str), mut run: impl FnMut() -> T) {
    let mut time = || {
        let begin = Instant::now();
        std::hint::black_box(run());
        begin.elapsed().as_secs_f64()
    };
    // Caches, and memory that the system has given.
    time();
    let begin = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < SAMPLES && (samples.len() < FEW || begin.elapsed() < LONG) {
        samples.push(time());
    }
    samples.sort_by(f64::total_cmp);
    let (median, last) = (samples[samples.len() / 2], samples[samples.len() - 1]);
    let ms = |seconds: f64| seconds * 1e3;
    println!(
        "{name:42} {:10.3} ms ({:.3} to {:.3})  {:12.1} {} a second",
        ms(median),
        ms(samples[0]),
        ms(last),
        made.0 / median,
        made.1
    );
}
