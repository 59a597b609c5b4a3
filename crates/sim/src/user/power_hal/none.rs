//! No power HAL: hint sessions are told to nobody, and nothing runs for them.

use super::Descriptor;

pub(super) const DESCRIPTOR: Descriptor =
    Descriptor { name: "none", doc: "nobody hears of hint sessions", params: &[], make: |_| None };
