//! Random requests for SCHED_DEADLINE, and which of them a kernel takes: its own admission beside our arithmetic.
//!
//! ```text
//! 48 tasks ask one after another, 25 ms apart; what is refused (EBUSY) is named by the agent, what is taken stays
//! ```
//!
//! Before 6.15 a rebuild of the sched domains (schedutil asks for one when it starts: `sugov_eas_rebuild_sd`) counts the kthreads of
//! schedutil among what is reserved, though their own request never was (`SCHED_FLAG_SUGOV`): 1 ms of 10 ms for each domain that has
//! one. Since then special tasks are left out (`dl_add_task_root_domain`). Measured: 6.1 and 6.12 count them, 7.3 does not.

use risetime_kernel::deadline::{BW_UNIT, dl_overflow, to_ratio};
use risetime_kernel::units::Span;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Four equal CPUs of one domain whose frequency schedutil's kthread changes.
pub(crate) const PLATFORM: &str = "rpi4";
pub(crate) const SEEDS: std::ops::Range<u64> = 0..5;
const REQUESTS: usize = 48;

/// Runtime and period in µs: log-uniform from 0.5 to 60 % of a CPU.
pub(crate) fn requests(seed: u64) -> Vec<(u64, u64)> {
    let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |n: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % n
    };
    let one = |_| {
        let period = [10_000, 20_000, 50_000, 100_000][next(4) as usize];
        let share = 0.005 * 120f64.powf(next(1 << 20) as f64 / f64::from(1 << 20));
        (((period as f64 * share) as u64).max(2), period)
    };
    (0..REQUESTS).map(one).collect()
}

pub(crate) fn workload(seed: u64) -> String {
    let mut out = String::from("{ \"tasks\": {\n");
    for (i, (runtime, period)) in requests(seed).into_iter().enumerate() {
        let end = if i + 1 < REQUESTS { ",\n" } else { " } }\n" };
        let delay = 25_000 * (i + 1);
        let _ = write!(
            out,
            "\"r{i}\": {{ \"delay\": {delay}, \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {runtime}, \"dl-period\": {period}, \"loop\": -1, \"run\": 50, \"timer\": {{ \"ref\": \"unique\", \"period\": 1000000 }} }}{end}"
        );
    }
    out
}

/// Returns the verdict on each request, + or -, as the kernel of that release counts.
pub(crate) fn taken(release: &str, seed: u64) -> String {
    let mut version = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (version.next().unwrap_or(0), version.next().unwrap_or(0));
    let ms = Span::from_ms;
    let mut total = if version < (6, 15) { to_ratio(ms(10), ms(1)) } else { 0 };
    let us = Span::from_us;
    let mut verdict = |(runtime, period): (u64, u64)| {
        let bw = to_ratio(us(period), us(runtime));
        let over = dl_overflow(to_ratio(ms(1000), ms(950)), 4 * 1024, total, 0, bw);
        total += if over { 0 } else { bw };
        if over { '-' } else { '+' }
    };
    debug_assert!(to_ratio(ms(1), ms(1)) == BW_UNIT);
    requests(seed).into_iter().map(&mut verdict).collect()
}

/// What a run says of them: `task r17: policy: Resource busy`. Errors: it says something else.
pub(crate) fn said(error: &str) -> Result<String, String> {
    let mut all = vec!['+'; REQUESTS];
    for part in error.split("task r").skip(1) {
        let (number, what) = part.split_once(':').ok_or(error)?;
        let number: usize = number.parse().map_err(|_| error.to_string())?;
        if !what.contains("policy: Resource busy") {
            return Err(error.to_string());
        }
        *all.get_mut(number).ok_or(error)? = '-';
    }
    Ok(all.into_iter().collect())
}

pub(crate) fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/admission/kernels.csv")
}

/// By release and seed.
pub(crate) fn recorded() -> BTreeMap<(String, u64), String> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.split(',').map(str::to_string);
        Some(((cells.next()?, cells.next()?.parse().ok()?), cells.next()?))
    };
    text.lines().skip(1).filter_map(row).collect()
}
