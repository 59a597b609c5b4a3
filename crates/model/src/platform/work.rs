//! `[[domain.work]]`: how other kinds of work than the plain one get on, OPP by OPP.
//!
//! ```toml
//! [[domain.work]]
//! kind = "encrypt"
//! speed_ppm = [63174, 92155, 121203]    # at each OPP; 1000000: where the machine is fastest at it
//! power_uw = [14128, 20987, 28341]      # at each OPP, of one CPU; may be left out
//! ```
//!
//! A kind is known to every domain, or to none, and `[sources]` says under `work` where its figures come from.

use super::bounds::{MAX_PPM, MAX_UW};
use super::{Domain, Opp, Work, keys};
use crate::InputError;
use crate::platform::text::checked_name;
use crate::toml_in::{Table, quote};
use risetime_kernel::units::MicroWatts;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Kinds of a domain.
const MAX_KINDS: usize = 64;

/// Reads the kinds of work of a domain with these OPPs.
pub(super) fn read(t: &Table<'_>, opps: &[Opp]) -> Result<Vec<Work>, InputError> {
    let tables = t.opt_tables("work", "work")?.unwrap_or_default();
    if tables.len() > MAX_KINDS {
        return Err(
            t.error_of("work", format!("has {} kinds, wanted at most {MAX_KINDS}", tables.len()))
        );
    }
    let mut all: Vec<Work> = Vec::new();
    for w in tables {
        w.only(&keys::names("domain.work"))?;
        let kind = checked_name(&w, "kind", w.str("kind")?)?;
        if all.iter().any(|known| known.kind == kind) {
            return Err(w.error_of("kind", format!("is \"{kind}\" a second time")));
        }
        let each = |key: &'static str, numbers: &[u64]| match numbers.len() == opps.len() {
            true => Ok(()),
            false => {
                let what = format!("has {} numbers for {} OPPs", numbers.len(), opps.len());
                Err(w.error_of(key, what))
            }
        };
        let speed_ppm = w.ints("speed_ppm", 1, MAX_PPM)?;
        each("speed_ppm", &speed_ppm)?;
        let power = match w.has("power_uw") {
            true => w.ints("power_uw", 1, MAX_UW)?,
            false => Vec::new(),
        };
        if !power.is_empty() {
            each("power_uw", &power)?;
            if opps.iter().any(|o| o.power.0 == 0) {
                let what = "beside OPPs without power: wanted for plain work, too";
                return Err(w.error_of("power_uw", what));
            }
        }
        let power = power.into_iter().map(MicroWatts).collect();
        all.push(Work { kind, speed_ppm, power });
    }
    all.sort_by(|a, b| a.kind.cmp(&b.kind));
    Ok(all)
}

/// Checks that every domain knows the same kinds, and that the file says where the figures come
/// from.
pub(super) fn agree(
    root: &Table<'_>,
    domains: &[Domain],
    sources: &BTreeMap<String, String>,
) -> Result<(), InputError> {
    let kinds = |d: &Domain| -> Vec<String> { d.work.iter().map(|w| w.kind.clone()).collect() };
    let first = domains.first().map(kinds).unwrap_or_default();
    for d in domains.iter().skip(1) {
        let own = kinds(d);
        let only = |a: &[String], b: &[String]| a.iter().find(|k| !b.contains(k)).cloned();
        if let Some(kind) = only(&first, &own).or(only(&own, &first)) {
            let what = format!(
                "`work`: kind \"{kind}\" is not in every domain: a task may run on each of them"
            );
            return Err(root.error(what));
        }
    }
    for kind in &first {
        let of = |d: &Domain| d.work.iter().find(|w| w.kind == *kind).map(|w| w.speed_ppm.clone());
        let most = domains.iter().filter_map(of).flatten().max();
        if most != Some(MAX_PPM) {
            let what = format!(
                "`work`: kind \"{kind}\" gets on at {} at most: the fastest CPU for it has 1000000",
                most.unwrap_or(0)
            );
            return Err(root.error(what));
        }
    }
    if !first.is_empty() && !sources.contains_key("work") {
        let e =
            root.error("`[sources]`: `work` is missing: where do the tables of `work` come from?");
        return Err(e.hint("\"estimate\" is an honest answer"));
    }
    Ok(())
}

/// Writes the kinds of work of a domain in the form that [`read`] reads.
pub(super) fn write(out: &mut String, d: &Domain) {
    for w in &d.work {
        let _ = writeln!(out, "[[domain.work]]\nkind = {}", quote(&w.kind));
        let list = |numbers: Vec<u64>| {
            let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
            texts.join(", ")
        };
        let _ = writeln!(out, "speed_ppm = [{}]", list(w.speed_ppm.clone()));
        if !w.power.is_empty() {
            let _ = writeln!(out, "power_uw = [{}]", list(w.power.iter().map(|p| p.0).collect()));
        }
    }
}
