//! `sched_qos`: the hints of a task or phase, an object `{ type, value, cookie }` or a list of them.
//!
//! Not rt-app's: its name and fields are those of the response-time series' `sched_attr` (RFC 00/16,
//! patches 10 and 11).

use super::json::{Reader, describe};
use crate::InputError;
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged;
use risetime_kernel::sched_qos::{QosError, SchedQosHint, SchedQosType};

impl<'a> Reader<'a> {
    /// Reads all hints of a `sched_qos`.
    ///
    /// Errors: what is no hint, and what the kernel would refuse.
    pub(super) fn sched_qos(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
    ) -> Result<Vec<SchedQosHint>, InputError> {
        let what = format!("{what}: `sched_qos`");
        match &prop.value {
            Value::Array(list) => list.elements.iter().map(|v| self.hint(v, &what)).collect(),
            one => Ok(vec![self.hint(one, &what)?]),
        }
    }

    fn hint(&self, value: &Value<'a>, what: &str) -> Result<SchedQosHint, InputError> {
        let object = self.object(value, what)?;
        self.once(object, what, |_| true)?;
        let find = |key: &str| object.properties.iter().find(|p| p.name.as_str() == key);
        let known = ["cookie", "type", "value"];
        if let Some(p) = object.properties.iter().find(|p| !known.contains(&p.name.as_str())) {
            return Err(self.unknown(p, &format!("{what}: "), p.name.as_str(), &known));
        }
        let (Some(kind), Some(amount)) = (find("type"), find("value")) else {
            return Err(self.error(object, format!("{what} needs a `type` and a `value`")));
        };
        let cookie = find("cookie");
        let hint = SchedQosHint {
            kind: self.kind(kind, what)?,
            value: self.int(amount, what, i64::from(i32::MIN)..=i64::from(u32::MAX))?,
            cookie: match cookie {
                Some(p) => self.int(p, what, 0..=i64::from(u32::MAX))? as u32,
                None => 0,
            },
        };
        match hint.validate() {
            Ok(()) => Ok(hint),
            Err(QosError::Value) => {
                let what = format!("{what}: `value` is {}, wanted 0 or more", hint.value);
                Err(self.error(&amount.value, what))
            }
            Err(QosError::Cookie) => {
                let found = hint.cookie;
                let what =
                    format!("{what}: `cookie` is {found}, wanted 0: this type has no groups");
                Err(self.error(&cookie.map_or(object.range, |p| p.value.range()), what))
            }
        }
    }

    /// The type by its name, or as the kernel's headers write it.
    fn kind(&self, prop: &ObjectProp<'a>, what: &str) -> Result<SchedQosType, InputError> {
        let known: Vec<&str> = SchedQosType::ALL.iter().map(|(name, _)| *name).collect();
        let bare = match &prop.value {
            Value::StringLit(text) => {
                text.value.strip_prefix("SCHED_QOS_").unwrap_or(&text.value).to_lowercase()
            }
            _ => String::new(),
        };
        let found = SchedQosType::ALL.iter().find(|(name, _)| *name == bare);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let (found, known) = (describe(&prop.value), known.join(", "));
            self.error(&prop.value, format!("{what}: `type` is {found}, wanted {known}"))
        })
    }
}
