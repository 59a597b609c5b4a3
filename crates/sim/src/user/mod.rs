//! User space: what the tasks of the workload do, and what they share.

pub(crate) mod program;
pub(crate) mod sync;
pub(crate) mod together;
