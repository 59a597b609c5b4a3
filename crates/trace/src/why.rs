//! Reasons for which a decision was taken, in one table.

/// Makes [`Why`]. A row: its number in a recording, which is no other's and never changes; its name; the word of JSON and CSV;
/// what a report says of a migration that happened for it.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $number:literal $name:ident $word:literal $told:literal,)*) => {
        /// Reason of a decision.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Why {
            $($(#[doc = $doc])* $name,)*
        }

        impl Why {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Why] = &[$(Why::$name,)*];

            /// Returns the word that JSON, CSV and figures use.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Why::$name => $word,)*
                }
            }

            /// Returns what a report says of a migration for this reason.
            pub const fn told(self) -> &'static str {
                match self {
                    $(Why::$name => $told,)*
                }
            }

            /// Returns its number in a recording.
            pub const fn number(self) -> u64 {
                match self {
                    $(Why::$name => $number,)*
                }
            }

            /// Returns the reason with this number in a recording; `None`: there is none.
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
    /// A real kernel decided, and does not say why.
    0 Unknown "unknown" "unknown",
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
