//! This machine: what it is ([`Machine::probe`]), as a platform file ([`capture()`]), and what
//! about it costs response time ([`doctor()`]). Other machines as platform files: [`import`].
//!
//! Read-only. Nothing here changes a setting, and no file is read whose reading has side
//! effects. All of it works on any tree that holds `proc` and `sys` ([`Root`]).

mod capture;
mod doctor;
pub mod import;
mod probe;
pub mod proc_sched;
mod root;

pub use capture::{Captured, capture};
pub use doctor::{Evidence, Finding, Severity, doctor, examine};
pub use probe::{Cpu, CpufreqPolicy, EmState, Idle, Machine, PerfDomain};
pub use root::{Fact, Problem, Root, format_cpu_list, parse_cpu_list};
