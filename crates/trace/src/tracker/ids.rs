//! Places of tasks by their ids.

use risetime_kernel::units::TaskId;
use std::collections::BTreeMap;

/// Place of nobody.
pub(super) const NOBODY: u32 = u32::MAX;
/// Ids below this are in the table.
const TABLE: usize = 1 << 16;

/// Task ids to places: a table for small ids, a tree for the rest (a host's thread ids go up to
/// millions).
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    table: Vec<u32>,
    tree: BTreeMap<u32, u32>,
}

impl Ids {
    /// Returns the place of the task of this id; `None`: it has none.
    #[inline]
    pub(super) fn get(&self, id: TaskId) -> Option<usize> {
        let place = match self.table.get(id.index()) {
            Some(place) => *place,
            None => *self.tree.get(&id.0)?,
        };
        (place != NOBODY).then_some(place as usize)
    }

    /// Sets the place of the task of this id.
    pub(super) fn set(&mut self, id: TaskId, place: u32) {
        if id.index() >= TABLE {
            self.tree.insert(id.0, place);
            return;
        }
        if self.table.len() <= id.index() {
            self.table.resize(id.index() + 1, NOBODY);
        }
        self.table[id.index()] = place;
    }
}
