//! What there is: the machine, its CPUs, tasks and groups, and the questions one can ask of them.

pub(crate) mod cpuset;
pub(crate) mod machine;
