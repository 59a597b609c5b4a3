//! State: the machine, its CPUs, tasks and groups, and the questions one can ask of them.

pub(crate) mod bandwidth;
pub(crate) mod class;
pub(crate) mod costs;
pub(crate) mod cpu_util;
pub(crate) mod cpuset;
pub(crate) mod dice;
pub(crate) mod draw;
pub(crate) mod effects;
pub(crate) mod group;
pub mod hooks;
pub(crate) mod idle_governor;
pub(crate) mod idle_time;
pub(crate) mod machine;
pub(crate) mod needs;
pub(crate) mod plain;
pub(crate) mod short_ways;
pub(crate) mod start;
pub(crate) mod tally;
pub(crate) mod ticks;
pub(crate) mod timers;
pub(crate) mod topology;
pub(crate) mod tracker;
pub(crate) mod wake_list;
