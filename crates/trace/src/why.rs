//! Reasons for which a decision was taken, in one table; those of plug-ins beside it.

use risetime_model::Name;
use std::sync::{Mutex, PoisonError};

/// Makes [`Why`]. A row: its number in a recording, which is no other's and never changes; its name; the word of JSON and CSV;
/// what a report says of a migration that happened for it.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $number:literal $name:ident $word:literal $told:literal,)*) => {
        /// Reason of a decision.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Why {
            $($(#[doc = $doc])* $name,)*
            /// A reason of a plug-in ([`Why::other`]), which has no row here.
            Other(Reason),
        }

        impl Why {
            /// All of the table, in its order.
            pub const ALL: &'static [Why] = &[$(Why::$name,)*];

            /// Returns the word that JSON, CSV and figures use.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Why::$name => $word,)*
                    Why::Other(reason) => reason.word(),
                }
            }

            /// Returns what a report says of a migration for this reason.
            pub fn told(self) -> &'static str {
                match self {
                    $(Why::$name => $told,)*
                    Why::Other(reason) => reason.word(),
                }
            }

            /// Returns its number in a recording.
            pub const fn number(self) -> u64 {
                match self {
                    $(Why::$name => $number,)*
                    Why::Other(_) => OTHER,
                }
            }

            /// Returns the reason of the table with this number in a recording; `None`: there is none.
            pub const fn of_number(number: u64) -> Option<Why> {
                match number {
                    $($number => Some(Why::$name),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    // Placement.
    /// A workload's first task: `first_cpu`, or the smallest CPU allowed.
    1 FirstCpu "first_cpu" "first cpu",
    /// Fork balancing found the idlest CPU.
    2 ForkIdlest "fork_idlest" "fork idlest",
    /// The previous CPU was good enough.
    3 PrevCpu "prev_cpu" "back to its previous CPU",
    /// `find_energy_efficient_cpu` found a cheaper CPU.
    4 Energy "energy" "energy: a cheaper CPU",
    /// `select_idle_sibling` found an idle CPU.
    5 IdleSibling "idle_sibling" "an idle CPU nearby",
    /// `wake_affine` chose the waker's CPU.
    6 WakeAffine "wake_affine" "to the CPU that wakes it",
    /// Affinity left no other choice, or moved it.
    7 Affinity "affinity" "its affinity",
    /// The task did not fit: misfit active balance.
    8 Misfit "misfit" "misfit: it needs a bigger CPU",
    /// An idle CPU pulled it (`newidle`).
    9 NewIdle "newidle" "an idle CPU pulled it",
    /// Periodic or nohz balance pulled it.
    10 Balance "balance" "load balancing",
    /// Balancing brought it to the last-level cache that its process prefers (SCHED_CACHE).
    37 Llc "llc" "to the cache its process prefers",
    /// The CPU whose tasks matter least to a real-time task (`find_lowest_rq`).
    11 LowestRq "lowest_rq" "where it outranks what runs",
    /// The CPU with the latest deadlines, or none (`find_later_rq`).
    12 LaterRq "later_rq" "where deadlines are later",
    /// A CPU on which EDF's test holds with it (`dl_placement`).
    36 DlFits "dl_fits" "where EDF's test holds",
    /// A real-time task waited where it was (`push_rt_task`).
    13 RtPush "rt_push" "pushed on: it had to wait",
    /// A task of SCHED_HIGH waited where it was.
    34 HighPush "high_push" "pushed on: it had to wait",
    /// The task goes to a CPU of which tasks of SCHED_OVERCOMMIT ask for less.
    35 OvercommitPush "overcommit_push" "pushed on: it had to wait",
    /// A deadline task waited where it was (`push_dl_task`).
    14 DlPush "dl_push" "pushed on: it had to wait",
    /// A CPU whose deadline task left took it (`pull_dl_task`).
    15 DlPull "dl_pull" "pulled: it had to wait",
    /// The runqueue with the least load (MuQSS).
    32 LeastLoad "least_load" "CPU with the shortest queue",
    /// A CPU that looked for who is to run found the earliest deadline elsewhere (MuQSS).
    33 EarliestDeadline "earliest_deadline" "taken: the earliest deadline of all CPUs",
    /// The task's CPU went offline.
    16 Hotplug "hotplug" "its CPU went offline",
    /// The decision is given by another trace (`verify`'s mode *given*).
    17 Given "given" "given",
    /// A deadline task that yielded is where it was as its next period begins (`dl_task_timer`).
    40 NewPeriod "new_period" "its next period begins",
    // Frequency.
    /// The util asks for this frequency.
    18 Util "util" "util",
    /// Same frequency as before: nothing to do.
    19 Unchanged "unchanged" "unchanged",
    /// Inside `rate_limit_us` of the last change: put off.
    20 RateLimited "rate_limited" "rate limited",
    /// A decrease was refused because the CPU has not been idle (`sugov_hold_freq`).
    21 HoldBusy "hold_busy" "hold busy",
    /// The last request is still being carried out by the kthread (`work_in_progress`).
    22 InProgress "in_progress" "in progress",
    /// Raised by `uclamp_min`.
    23 UclampMin "uclamp_min" "uclamp min",
    /// Held down by `uclamp_max`.
    24 UclampMax "uclamp_max" "uclamp max",
    /// Raised to the bandwidth that deadline tasks, or servers, are promised.
    38 DlBandwidth "dl_bandwidth" "dl bandwidth",
    /// The frequency is as far as one step goes from that of the moment, which util is taken to be
    /// a share of: it is not frequency-invariant.
    39 NotInvariant "not_invariant" "not invariant",
    /// Raised by the iowait boost.
    25 IowaitBoost "iowait_boost" "iowait boost",
    /// Raised because tasks wait (RFC 00/16, patch 13).
    26 Waiting "waiting" "waiting",
    /// Util falls, so that no headroom is added (RFC 00/16, patch 14).
    27 Decaying "decaying" "decaying",
    /// A task of a class above the fair one runs: the highest frequency (schedutil up to 4.16).
    29 RealTime "real_time" "real time",
    /// A CPU is full, or boosted: no less than `hispeed_freq` (`interactive`).
    30 Hispeed "hispeed" "hispeed",
    /// A lower frequency has to wait: `min_sample_time` is not over (`interactive`).
    31 MinSampleTime "min_sample_time" "min sample time",
    /// A fixed choice of the governor (`performance`, `powersave`, `userspace`).
    28 Fixed "fixed" "fixed",
    /// The task was there before the trace first tells of it: what it did until then is unknown.
    41 Earlier "earlier" "earlier",
    /// A real kernel decided, and does not say why.
    0 Unknown "unknown" "unknown",
}

/// Number of [`Why::Other`] in a recording, where its word stands at the line's end; beyond all that the table may ever have.
pub(crate) const OTHER: u64 = 255;

/// A reason that a plug-in gives, by its word: no bigger than a row's number, so that events stay small.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(u16);

/// Words of reasons, in the order in which they were first given.
static WORDS: Mutex<Vec<Name>> = Mutex::new(Vec::new());

impl Reason {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        words.get(usize::from(self.0)).map_or("", |word| word.as_str())
    }
}

impl Why {
    /// Returns the reason of a plug-in that JSON, CSV and pages call `word`, in a report with blanks in place of `_`; a reason of the
    /// table where that is its word. [`Why::Unknown`] where there are 65535 others already.
    pub fn other(word: &str) -> Why {
        if let Some(known) = Why::ALL.iter().find(|known| known.as_str() == word) {
            return *known;
        }
        // Whoever panicked while it held the list left it whole.
        let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        let place = words.iter().position(|known| *known == word).unwrap_or(words.len());
        let Ok(number) = u16::try_from(place) else { return Why::Unknown };
        if place == words.len() {
            words.push(Name::new(word));
        }
        Why::Other(Reason(number))
    }
}

/// The order of the words: in which order they were first given says nothing.
impl Ord for Reason {
    fn cmp(&self, other: &Reason) -> std::cmp::Ordering {
        self.word().cmp(other.word())
    }
}

impl PartialOrd for Reason {
    fn partial_cmp(&self, other: &Reason) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Debug for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.word().fmt(f)
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plug_in_has_a_reason_of_its_own() {
        let why = Why::other("roomiest_cpu");
        assert_eq!(
            (why, why.as_str(), why.number()),
            (Why::other("roomiest_cpu"), "roomiest_cpu", OTHER)
        );
        assert!(why != Why::other("a_later_one") && Why::other("a_later_one") < why);
        assert_eq!(Why::other("energy"), Why::Energy, "no second reason of the same word");
        assert!(Why::ALL.iter().all(|known| known.number() < OTHER));
        assert_eq!(
            (Why::of_number(OTHER), format!("{why} {why:?}")),
            (None, "roomiest_cpu Other(\"roomiest_cpu\")".into())
        );
    }
}
