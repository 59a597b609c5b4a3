//! What there is: the machine, its CPUs, tasks and groups, and the questions one can ask of them.

pub(crate) mod bandwidth;
pub(crate) mod before;
pub(crate) mod class;
pub(crate) mod costs;
pub(crate) mod cpuset;
pub(crate) mod dice;
pub(crate) mod draw;
pub(crate) mod effects;
pub(crate) mod group;
pub(crate) mod high;
pub mod hooks;
pub(crate) mod idle_governor;
pub(crate) mod idle_time;
pub(crate) mod machine;
pub(crate) mod muqss;
pub(crate) mod plain;
pub(crate) mod preempt;
pub(crate) mod pressure;
pub(crate) mod series;
pub(crate) mod short_ways;
pub(crate) mod sysctls;
pub(crate) mod tally;
pub(crate) mod thermal;
pub(crate) mod timers;
pub(crate) mod topology;
pub(crate) mod tracker;
