//! `global.hotplug`: CPUs that go offline and come back, at times of the run. rt-app has no such thing.
//!
//! ```text
//! "hotplug": [{"at_us": 500000, "cpu": 3, "online": 0}, {"at_us": 800000, "cpu": 3, "online": 1}]
//! ```
//!
//! In the order of time; each entry changes something; CPU 0 stays (it may be refused on hardware,
//! too: x86 has no other to boot on).

use super::Hotplug;
use super::json::Reader;
use super::read::MAX_CPU;
use crate::InputError;
use jsonc_parser::ast::{ObjectProp, Value};
use risetime_kernel::units::CpuId;
use std::collections::BTreeSet;

/// Largest number of changes that a run may have.
const MAX_CHANGES: usize = 10_000;

impl<'a> Reader<'a> {
    /// The list, by time.
    pub(super) fn hotplug(&self, prop: &ObjectProp<'a>) -> Result<Vec<Hotplug>, InputError> {
        const WHAT: &str = "`global.hotplug`";
        let Value::Array(list) = &prop.value else {
            let wanted = r#"a list of { "at_us": …, "cpu": …, "online": 0 or 1 }"#;
            return Err(self.wrong(prop, "`global`", &prop.value, wanted));
        };
        if list.elements.len() > MAX_CHANGES {
            let what = format!("{WHAT} has more than {MAX_CHANGES} entries");
            return Err(self.error(&prop.value, what));
        }
        let (mut all, mut gone) = (Vec::<Hotplug>::new(), BTreeSet::new());
        for item in &list.elements {
            let entry = self.object(item, "an entry of `global.hotplug`")?;
            self.once(entry, WHAT, |_| true)?;
            let (mut at, mut cpu, mut online) = (None, None, None);
            for p in &entry.properties {
                match p.name.as_str() {
                    "at_us" => at = Some(self.us(p, WHAT)?),
                    "cpu" => cpu = Some(self.int(p, WHAT, 1..=MAX_CPU)? as u32),
                    "online" => online = Some(self.int(p, WHAT, 0..=1)? == 1),
                    other => {
                        return Err(self.unknown(
                            p,
                            &format!("{WHAT}: "),
                            other,
                            &["at_us", "cpu", "online"],
                        ));
                    }
                }
            }
            let (Some(at), Some(cpu), Some(online)) = (at, cpu, online) else {
                let what = format!("{WHAT}: an entry wants `at_us`, `cpu` and `online`");
                return Err(self.error(item, what));
            };
            if all.last().is_some_and(|before| before.at > at) {
                let what = format!("{WHAT}: `at_us` is below that of the entry before");
                return Err(self.error(item, what));
            }
            let changes = if online { gone.remove(&cpu) } else { gone.insert(cpu) };
            if !changes {
                let is = if online { "online" } else { "offline" };
                return Err(self.error(item, format!("{WHAT}: CPU {cpu} is {is} already")));
            }
            let place = self.line_column(item);
            all.push(Hotplug { at, cpu: CpuId(cpu), online, place });
        }
        Ok(all)
    }
}
