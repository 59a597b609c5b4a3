//! Letting the boot's utilisation estimates decay.

use crate::job::Job;
use crate::sys;
use std::io;

/// Placeholder cadence; see the experiments.
pub(crate) fn settle(job: &Job) -> io::Result<()> {
    let tick = sys::tick();
    let cpus = job.cpus.len() as u64;
    if job.settle_ns == 0 || cpus == 0 {
        return Ok(());
    }
    let end = sys::mono() + job.settle_ns;
    let step = 1_000_000_000 / cpus;
    let mut cpu = 0;
    let mut at = sys::mono();
    while at < end {
        sys::set_affinity([cpu])?;
        at = (at + step).next_multiple_of(tick);
        sys::sleep_until(at - 30_000);
        let mut memory = vec![1_u8; 64 << 12];
        std::hint::black_box(&mut memory);
        while sys::mono() < at + 30_000 {}
        cpu = (cpu + 1) % cpus as u32;
    }
    Ok(())
}
