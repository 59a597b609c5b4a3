//! The tracks of a trace: which there are, and what a reader sees them called.

/// The tracks: a kind, and the index of what it belongs to. `uuid = kind << 32 | index`; of several alike,
/// `n << 40` more.
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
    // Here, so that the others keep their numbers.
    TaskWaiting,
    TaskClampMin,
    TaskClampMax,
    CpuClampMin,
    CpuClampMax,
    /// The powers of all domains.
    Powers,
    Power,
    /// Jobs that a thread releases.
    Jobs,
    /// The thermal zones.
    Zones,
    Temperature,
    // Of a domain.
    MaxFreq,
}

/// Name, unit and scale of a counter.
#[derive(Clone, Copy, Default)]
pub(super) struct Counter {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// True if values are given in thousandths of the unit.
    pub(super) thousandths: bool,
}

impl Track {
    pub(super) const fn of(self, index: u32) -> u64 {
        (self as u64) << 32 | index as u64
    }
    /// The n-th of several alike.
    pub(super) const fn nth(self, index: u32, n: u32) -> u64 {
        (n as u64) << 40 | self.of(index)
    }
    /// The counter of a track: its name and unit; `None`: it is none.
    pub(super) const fn counter(self) -> Option<Counter> {
        let (name, unit) = match self {
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
            Track::TaskClampMin | Track::CpuClampMin => ("uclamp_min", "of 1024"),
            Track::TaskClampMax | Track::CpuClampMax => ("uclamp_max", "of 1024"),
            Track::Power => ("power", "mW"),
            Track::Temperature => ("temperature", "°C"),
            Track::MaxFreq => ("highest frequency", "kHz"),
            _ => return None,
        };
        let thousandths = matches!(self, Track::Power | Track::Temperature);
        Some(Counter { name, unit, thousandths })
    }
}
