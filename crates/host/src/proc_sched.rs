//! A task's load tracking as `/proc/PID/sched` shows it.
//!
//! ```text
//! se.avg.util_sum                              :             21982464
//! se.sum_exec_runtime                          :            12.345678      ms, 6 decimals = ns
//! ```
//!
//! Reading the file changes nothing: the sums are those of the kernel's last update of this
//! task (a tick, a switch, a wakeup), at `se.avg.last_update_time`. The file is not made under
//! one lock: two equal readings in a row make a consistent one.
//!
//! Left out: `period_contrib` and the flag in util_est, which the kernel does not print; fields
//! of other classes; util_est before 6.8, which was two values.
//!
//! Source: kernel/sched/debug.c:proc_sched_show_task (needs CONFIG_SCHED_DEBUG up to 6.14).

use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::units::{ClockPelt, Util, Weight};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Contents of the file on load tracking and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSched {
    /// The PELT sums and averages; `period_contrib` is not in the file and 0 here.
    pub avg: SchedAvg,
    /// The estimate, without the flag `UTIL_AVG_UNCHANGED`.
    pub util_est: Util,
    /// The task's weight, scaled down (nice 0 = 1024).
    pub weight: Weight,
    /// Switches because it slept or blocked.
    pub voluntary_switches: u64,
    /// Switches because somebody else took the CPU.
    pub involuntary_switches: u64,
}

/// Reason for which there is no [`TaskSched`].
#[derive(Debug)]
pub enum ProcSchedError {
    /// The file cannot be opened or read.
    Io(std::io::Error),
    /// The file lacks these fields, or they hold no number.
    Missing(Vec<&'static str>),
}

impl std::fmt::Display for ProcSchedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProcSchedError::Io(e) => write!(
                f,
                "/proc/PID/sched: {e} (wanted a kernel with CONFIG_SCHED_DEBUG, or 6.15 or later)"
            ),
            ProcSchedError::Missing(fields) => write!(
                f,
                "/proc/PID/sched: no {} (wanted Linux 6.8 or later, CONFIG_SMP)",
                fields.join(", ")
            ),
        }
    }
}

impl std::error::Error for ProcSchedError {}

/// The open file of one thread, to be read many times.
#[derive(Debug)]
pub struct ProcSched(File);

impl ProcSched {
    /// Opens the file of thread `tid` of this process.
    pub fn of_thread(tid: u32) -> Result<ProcSched, ProcSchedError> {
        File::open(format!("/proc/self/task/{tid}/sched"))
            .map(ProcSched)
            .map_err(ProcSchedError::Io)
    }

    /// Reads it once.
    pub fn read(&self) -> Result<TaskSched, ProcSchedError> {
        let mut buffer = [0; 8192];
        let mut length = 0;
        while length < buffer.len() {
            let more = self.0.read_at(&mut buffer[length..], length as u64);
            match more.map_err(ProcSchedError::Io)? {
                0 => break,
                n => length += n,
            }
        }
        TaskSched::parse(&String::from_utf8_lossy(&buffer[..length]))
    }
}

impl TaskSched {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<TaskSched, ProcSchedError> {
        let mut missing = Vec::new();
        let mut field = |name: &'static str| {
            let value = text.lines().find_map(|line| number_after(line, name));
            if value.is_none() {
                missing.push(name);
            }
            value.unwrap_or(0)
        };
        let task = TaskSched {
            avg: SchedAvg {
                last_update_time: ClockPelt(field("se.avg.last_update_time")),
                load_sum: field("se.avg.load_sum"),
                runnable_sum: field("se.avg.runnable_sum"),
                util_sum: field("se.avg.util_sum") as u32,
                period_contrib: 0,
                load_avg: field("se.avg.load_avg"),
                runnable_avg: Util(field("se.avg.runnable_avg")),
                util_avg: Util(field("se.avg.util_avg")),
            },
            util_est: Util(field("se.avg.util_est")),
            // On 64 bits weights are kept with ten more bits (scale_load).
            weight: Weight(field("se.load.weight") >> 10),
            voluntary_switches: field("nr_voluntary_switches"),
            involuntary_switches: field("nr_involuntary_switches"),
        };
        if missing.is_empty() { Ok(task) } else { Err(ProcSchedError::Missing(missing)) }
    }
}

/// The number of `name   :   number`.
fn number_after(line: &str, name: &str) -> Option<u64> {
    let rest = line.strip_prefix(name)?.trim_start();
    rest.strip_prefix(':')?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "cat (5407, #threads: 1)\n\
        se.load.weight                               :              1048576\n\
        nr_voluntary_switches                        :                    3\n\
        nr_involuntary_switches                      :                    4\n\
        se.avg.load_sum                              :                47411\n\
        se.avg.runnable_sum                          :             22018304\n\
        se.avg.util_sum                              :             21982464\n\
        se.avg.load_avg                              :                 1024\n\
        se.avg.runnable_avg                          :                  464\n\
        se.avg.util_avg                              :                  463\n\
        se.avg.last_update_time                      :        1194674803712\n\
        se.avg.util_est                              :                   12\n";

    #[test]
    fn reads_the_kernels_format() {
        let t = TaskSched::parse(LINES).unwrap();
        assert_eq!(t.avg.util_sum, 21_982_464);
        assert_eq!(t.avg.last_update_time, ClockPelt(1_194_674_803_712));
        assert_eq!((t.util_est, t.avg.util_avg), (Util(12), Util(463)));
        assert_eq!((t.weight, t.voluntary_switches, t.involuntary_switches), (Weight(1024), 3, 4));
    }

    #[test]
    fn names_what_is_missing() {
        let without = LINES.replace("se.avg.util_est ", "se.avg.util_est.ewma ");
        let error = TaskSched::parse(&without).unwrap_err().to_string();
        assert!(error.contains("no se.avg.util_est ("), "{error}");
        let error = TaskSched::parse("").unwrap_err().to_string();
        assert!(error.contains("se.avg.last_update_time, se.avg.load_sum"), "{error}");
    }
}
