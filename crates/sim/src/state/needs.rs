//! Needs of a CPU by the short way ([`crate::state::plain`]), which it keeps until they change.

use risetime_kernel::units::Util;

/// Util that a CPU makes schedutil ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Util with headroom, before the limits.
    pub(crate) wanted: Util,
    pub(crate) perf: Util,
    pub(crate) min: Util,
}

/// Needs of a CPU as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// Generation that they are of; 0: none yet.
    pub(crate) generation: u32,
    /// Needs, contention counted.
    pub(crate) needs: Needs,
    /// Util of all classes, contention not counted.
    pub(crate) busy: Util,
}
