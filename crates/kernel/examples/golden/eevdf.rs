//! eevdf.json: scenarios of operations on one runqueue.

use serde_json::Value;

use crate::Tally;

/// Not compared yet.
pub fn check(_json: &Value) -> Tally {
    Tally::default()
}
