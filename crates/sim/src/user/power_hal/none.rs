//! No power HAL: hint sessions are told to nobody, and nothing runs for them.

use super::Descriptor;
use risetime_model::settings::Group;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "none",
    doc: "nobody hears of hint sessions",
    settings: Group::of(&[]),
    make: |_| None,
};
