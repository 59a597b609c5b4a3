//! Things that are known of a run or not, and which figures need them.
//!
//! A trace that somebody else took is of no experiment, and its machine may be known from the trace alone: nobody has said how
//! fast its CPUs are, what they take, what its idle states are. A figure that needs what is not known is
//! [absent](crate::absent), with the reason.

/// Things that are known of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// True if a platform file describes the machine: speeds, powers, idle states.
    pub machine: bool,
    /// True if the trace is of an experiment: its jobs and quotas are known.
    pub experiment: bool,
    /// True if it is known when CPUs are idle: by a backend whose traces always tell, or because this one does.
    pub idle: bool,
    /// True if the CPUs' frequencies are known: likewise, or because a platform file says that each has one.
    pub frequencies: bool,
}

impl Default for Known {
    /// Returns what is known of an experiment on a machine that a platform file describes.
    fn default() -> Known {
        Known { machine: true, experiment: true, idle: true, frequencies: true }
    }
}

impl Known {
    /// Whether the speed of a CPU is known at each moment: by its description, and by its frequency.
    pub fn speeds(&self) -> bool {
        self.machine && self.frequencies
    }

    /// Whether the power of a CPU may be known at each moment: it hangs on idle states as well.
    pub fn powers(&self) -> bool {
        self.speeds() && self.idle
    }
}

/// A thing that figures need, beside the tasks' states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Speeds of the CPUs: their capacities and operating points.
    Speeds,
    /// Powers of the CPUs.
    Powers,
    /// Idle states of the CPUs.
    IdleStates,
    /// Times at which CPUs were idle.
    Idle,
    /// The experiment: what was due, and which quotas there were.
    Experiment,
    /// A count of the timers' interrupts.
    TimerInterrupts,
    /// Temperatures.
    Temperatures,
    /// Throttling of deadline tasks, as the trace tells it.
    Throttling,
}

impl Need {
    /// Needs whose lack concerns a run as a whole, so that results list them; each other one is a thing that most runs have not.
    pub const OF_A_RUN: [Need; 6] = [
        Need::Speeds,
        Need::Powers,
        Need::IdleStates,
        Need::Idle,
        Need::Experiment,
        Need::TimerInterrupts,
    ];

    /// Returns the word of the need in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Need::Speeds => "speeds",
            Need::Powers => "powers",
            Need::IdleStates => "idle_states",
            Need::Idle => "idle",
            Need::Experiment => "experiment",
            Need::TimerInterrupts => "timer_interrupts",
            Need::Temperatures => "temperatures",
            Need::Throttling => "throttling",
        }
    }
}

/// Note on a machine that is known from its trace alone.
pub const SEEN: &str = "the machine is known from this trace alone: how fast its CPUs are, and what they take, nobody says, so that there is no time longer than at full speed, no work lost and no energy; a platform file says it";
/// Note on a trace that is of no experiment.
pub const UNASKED: &str =
    "the trace is of no experiment: what was due, and which quotas there are, nobody says";

pub(crate) const NO_SPEEDS: &str = "no platform file says how fast the machine's CPUs are";
pub(crate) const NOBODYS_POWERS: &str = "no platform file says what the machine's CPUs take";
pub(crate) const NO_POWERS: &str = "the platform does not say what its CPUs take";
/// Reason of the lack of speeds where no frequency is told.
pub const NO_FREQUENCIES: &str = "the trace does not tell at which frequencies CPUs run";
pub(crate) const NO_IDLE_STATES: &str = "no platform file says which idle states the CPUs have";
pub(crate) const NO_IDLE: &str = "the trace does not tell when CPUs are idle";
pub(crate) const NO_EXPERIMENT: &str =
    "the trace is of no experiment: nobody says what was due, or which quotas there are";
pub(crate) const NO_INTERRUPTS: &str = "nobody counted the timers' interrupts";
pub(crate) const NO_TEMPERATURES: &str = "no temperature was told";
pub(crate) const NO_THROTTLING: &str = "the trace does not tell when deadline tasks were throttled";

/// Reasons for which figures are absent.
const REASONS: [&str; 10] = [
    NO_SPEEDS,
    NO_FREQUENCIES,
    NOBODYS_POWERS,
    NO_POWERS,
    NO_IDLE_STATES,
    NO_IDLE,
    NO_EXPERIMENT,
    NO_INTERRUPTS,
    NO_TEMPERATURES,
    NO_THROTTLING,
];

/// Returns the reason with these words, which a document has; `None`: this version gives no such reason.
pub fn reason(words: &str) -> Option<&'static str> {
    REASONS.into_iter().find(|why| *why == words)
}
