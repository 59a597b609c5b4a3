//! Load trackers. A tracker is one file and one line in [`REGISTRY`].
//!
//! What one is asked and hears: [`Tracker`].

mod pelt;
pub(crate) mod walt;

pub use crate::state::tracker::{Heard, Tracker};

use risetime_model::Platform;
use risetime_model::settings::{Default, Group, Home, Name, Neutral, Param, Range, Settings};

/// One tracker: what it is called, what it takes, how to make one for a machine.
pub struct Descriptor {
    /// Name of the tracker.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Tunables of the tracker, with their check.
    pub settings: Group,
    /// A new instance; `None`: PELT, whose signals are in the machine's state.
    pub make: fn(&Platform, &Settings) -> Option<Box<dyn Tracker>>,
}

/// All trackers.
pub const REGISTRY: &[Descriptor] = &[pelt::DESCRIPTOR, walt::DESCRIPTOR];

/// Names of the trackers, for the setting `tracker`.
pub const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; REGISTRY.len()], 0);
    while i < names.len() {
        names[i] = REGISTRY[i].name;
        i += 1;
    }
    names
};

/// Tracker of the util that governor and placement follow.
pub const TRACKER: Name = Name::new(Param {
    name: "tracker",
    doc: "tracker of the util that schedutil, EAS and misfit follow (unset: pelt)",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("pelt")),
});

/// The tracker called `name`; settings were checked against [`NAMES`].
pub(crate) fn find(name: &str) -> &'static Descriptor {
    REGISTRY.iter().find(|d| d.name == name).unwrap_or(&REGISTRY[0])
}

/// The note for the reader on which util is shown; `None`: PELT's, which steers as well.
pub(crate) fn notes(settings: &Settings) -> Option<String> {
    let name = settings.get(&TRACKER).filter(|name| *name != REGISTRY[0].name)?;
    Some(format!(
        "tracker={name}: frequencies, EAS and misfit go by its util; the util shown is PELT's, as in the kernel's own trace events"
    ))
}

/// The trackers' tunables, each group available only when its tracker is in use.
pub(crate) fn groups() -> impl Iterator<Item = Group> {
    REGISTRY.iter().map(|d| d.settings.owned_by(&TRACKER, d.name))
}
