//! Mechanisms that a machine may have or lack: a folder each.
//!
//! ```text
//! mech/NAME/state.rs   what it keeps of the machine and of each CPU, as plain data, and questions about that     room `state`
//! mech/NAME/mod.rs     what it models, its settings, what it does; `impl Mechanism`                              room `kernel`
//! ```
//!
//! A mechanism is one folder, and one line in the table below. From that follow the slots of its state
//! ([`slots`]), and all that `run` does with it: its settings, checks and notes, how its state is made, what it plans at the
//! start, and whether the short ways are open beside it ([`crate::run::mechanisms`]).

pub(crate) mod mechanism;
pub(crate) mod slots;

pub(crate) mod before;
pub(crate) mod cache;
pub(crate) mod demotion;
pub(crate) mod dl_rules;
pub(crate) mod high;
pub(crate) mod hrtimers;
pub(crate) mod muqss;
pub(crate) mod overcommit;
pub(crate) mod perf_domain;
pub(crate) mod pixel;
pub(crate) mod preempt;
pub(crate) mod pressure;
pub(crate) mod pstate;
pub(crate) mod rt_groups;
pub(crate) mod series;
pub(crate) mod switches;
pub(crate) mod sysctls;
pub(crate) mod thermal;

/// Hands the mechanisms to the macro `$then`, in the order in which their settings are listed.
macro_rules! mechanisms {
    ($then:ident) => {
        $then! {
            perf_domain,
            pstate,
            preempt,
            hrtimers,
            switches,
            sysctls,
            cache,
            demotion,
            dl_rules,
            rt_groups,
            high,
            overcommit,
            series,
            pixel,
            before,
            pressure,
            thermal,
            muqss,
        }
    };
}
pub(crate) use mechanisms;
