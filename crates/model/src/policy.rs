//! How the system decides: a kernel generation, its governor and its tunables.

use crate::settings::Value;
use risetime_kernel::KernelRev;
use std::collections::BTreeMap;

/// A policy as written: a preset (`policies/*.toml`) plus what the command line added.
/// Resolved against a platform and a backend's catalogue by
/// [`Catalogue::resolve`](crate::settings::Catalogue::resolve).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Preset name, with `+key=value` appended for what was changed: what reports call it.
    pub name: String,
    /// One line for a reader.
    pub about: String,
    /// The kernel whose behaviour is meant.
    pub kernel: KernelRev,
    /// Settings by name, as given (`governor` among them); later ones replaced earlier ones
    /// in the order preset, `--set`, `--policy …+key=value`.
    pub set: BTreeMap<String, Value>,
}
