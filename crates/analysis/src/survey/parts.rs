//! Things that the time of a task goes to while it is awake, as far as any trace can tell them.

use crate::lost::ONE;

/// A thing that time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The work itself, as long as it takes at full speed.
    Work,
    /// Running below the highest frequency that its CPU was allowed.
    LowFrequency,
    /// Running below the highest frequency of its CPU, which was not allowed.
    Capped,
    /// Running on a CPU that is smaller than the biggest one.
    SmallCpu,
    /// Running, while an interrupt's handler had the CPU.
    Interrupted,
    /// Running at a speed that is not known.
    Unrated,
    /// Waiting for a CPU that another task of the fair class had.
    FairTask,
    /// Waiting for a CPU that a real-time or deadline task had.
    StrictTask,
    /// Waiting for a CPU that an interrupt's handler had.
    Handler,
    /// Waiting for a CPU that ran nothing: on its way out of an idle state.
    IdleExit,
    /// Waiting for a CPU of which nothing is known.
    Unwatched,
}

/// Words on a [`Part`].
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The part.
    pub part: Part,
    /// Word of the part in JSON and CSV.
    pub word: &'static str,
    /// Description of the part for a reader.
    pub label: &'static str,
    /// Settings that make the part smaller; empty: there is none.
    pub remedy: &'static str,
}

/// Number of parts.
pub(crate) const COUNT: usize = 11;

/// Every part, in the order of [`Part`].
pub const PARTS: [About; COUNT] = [
    About { part: Part::Work, word: "work", label: "the work itself, at full speed", remedy: "" },
    About {
        part: Part::LowFrequency,
        word: "low_frequency",
        label: "below the highest frequency",
        remedy: "the task's uclamp_min (uclampset -m), the governor's rate_limit_us, scaling_min_freq",
    },
    About {
        part: Part::Capped,
        word: "capped",
        label: "the policy's highest frequency lowered",
        remedy: "scaling_max_freq, or cooling: something had lowered the policy's highest frequency",
    },
    About {
        part: Part::SmallCpu,
        word: "small_cpu",
        label: "on a smaller CPU",
        remedy: "a uclamp_min above that CPU's capacity (uclampset -m), or an affinity to bigger ones (taskset)",
    },
    About {
        part: Part::Interrupted,
        word: "interrupted",
        label: "interrupted while it ran",
        remedy: "the interrupt's smp_affinity, or an affinity of the task to other CPUs",
    },
    About {
        part: Part::Unrated,
        word: "running",
        label: "running, at which speed is not known",
        remedy: "record power:cpu_frequency, which says at which speed that was",
    },
    About {
        part: Part::FairTask,
        word: "fair_task",
        label: "another task had the CPU",
        remedy: "a lower nice or a shorter slice of the task (sched_setattr), or another affinity of who had the CPU",
    },
    About {
        part: Part::StrictTask,
        word: "strict_task",
        label: "a real-time or deadline task had it",
        remedy: "that task's policy or affinity, or a real-time policy for this one",
    },
    About {
        part: Part::Handler,
        word: "handler",
        label: "an interrupt had the CPU",
        remedy: "the interrupt's smp_affinity",
    },
    About {
        part: Part::IdleExit,
        word: "idle_exit",
        label: "its CPU was leaving an idle state",
        remedy: "the CPU's pm_qos_resume_latency_us, or /dev/cpu_dma_latency: no deep idle states",
    },
    About {
        part: Part::Unwatched,
        word: "unknown",
        label: "waiting, nobody saw for whom",
        remedy: "a larger trace buffer (trace-cmd record -b), so that no event is lost",
    },
];

impl Part {
    /// Words on the part.
    pub fn about(self) -> &'static About {
        &PARTS[self as usize]
    }

    /// Whether the task waits for a CPU.
    pub fn is_wait(self) -> bool {
        self as usize >= Part::FairTask as usize
    }
}

/// Sums of time by [`Part`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([u128; COUNT]);

impl Parts {
    /// Adds `dt` ns at a share of the time on the scale of [`ONE`].
    pub(super) fn add(&mut self, part: Part, dt: u64, share: u64) {
        self.0[part as usize] += u128::from(dt) * u128::from(share);
    }

    /// Adds another sum to this.
    pub fn absorb(&mut self, other: &Parts) {
        self.0.iter_mut().zip(other.0).for_each(|(own, more)| *own += more);
    }

    /// The time that went to `part`, in ms.
    pub fn ms(&self, part: Part) -> f64 {
        of(self.0[part as usize])
    }

    /// The sum of all the time, in ms: running and waiting.
    pub fn took_ms(&self) -> f64 {
        of(self.0.iter().sum())
    }

    /// The time of waiting for a CPU, in ms.
    pub fn waiting_ms(&self) -> f64 {
        of(self.0[Part::FairTask as usize..].iter().sum())
    }

    /// The time of running, in ms.
    pub fn running_ms(&self) -> f64 {
        of(self.0[..Part::FairTask as usize].iter().sum())
    }

    /// The parts that are not nothing, the largest first, the work left out.
    pub fn causes(&self) -> Vec<(Part, f64)> {
        let all = PARTS.iter().filter(|about| about.part != Part::Work);
        let mut all: Vec<_> = all.map(|about| (about.part, self.ms(about.part))).collect();
        all.retain(|(_, ms)| *ms > 0.0);
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

fn of(fixed: u128) -> f64 {
    fixed as f64 / ONE as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_stands_where_its_number_says_and_has_a_word_of_its_own() {
        for (i, about) in PARTS.iter().enumerate() {
            assert_eq!(about.part as usize, i, "{}", about.word);
            assert!(PARTS[..i].iter().all(|other| other.word != about.word), "{}", about.word);
            assert_eq!(about.remedy.is_empty(), about.part == Part::Work);
        }
    }
}
