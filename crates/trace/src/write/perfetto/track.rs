//! The tracks of a trace: which there are, and what a reader sees them called.

/// The tracks: a kind, and the index of what it belongs to. `uuid = kind << 32 | index`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Track {
    Run = 1,
    Cpus,
    Governors,
    Thread,
    Cpu,
    Governor,
    Overutilized,
    // Counters of a thread.
    TaskUtil,
    TaskRunnable,
    TaskUtilEst,
    // Counters of a CPU.
    CfsUtil,
    CfsRunnable,
    CfsUtilEst,
    Capacity,
    RtUtil,
    DlUtil,
    IrqUtil,
    OtherUtil,
    // Counters of a domain.
    RequestFreq,
    RequestUtil,
    // A counter of a thread; here, so that the others keep their numbers.
    TaskWaiting,
}

impl Track {
    pub(super) const fn of(self, index: u32) -> u64 {
        (self as u64) << 32 | index as u64
    }
    /// What a counter is called, and its unit.
    pub(super) const fn counter(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Track::TaskUtil => ("util_avg", "of 1024"),
            Track::TaskRunnable => ("runnable_avg", "of 1024"),
            Track::TaskUtilEst => ("util_est", "of 1024"),
            Track::TaskWaiting => ("waiting_avg", "of 1024"),
            Track::CfsUtil => ("cfs util_avg", "of 1024"),
            Track::CfsRunnable => ("cfs runnable_avg", "of 1024"),
            Track::CfsUtilEst => ("cfs util_est", "of 1024"),
            Track::Capacity => ("cpu_capacity", "of 1024"),
            Track::RtUtil => ("rt util_avg", "of 1024"),
            Track::DlUtil => ("dl util_avg", "of 1024"),
            Track::IrqUtil => ("irq util_avg", "of 1024"),
            Track::OtherUtil => ("hw util_avg", "of 1024"),
            Track::RequestFreq => ("requested frequency", "kHz"),
            Track::RequestUtil => ("effective util", "of 1024"),
            Track::Overutilized => ("overutilized", ""),
            _ => return None,
        })
    }
}
