//! Resolution: which value each setting of a run has, by what a policy says and by defaults.

use super::{Catalogue, Group, Home, Param, Range, Settings, Value, by_freq, own_name};
use crate::input::{meant, nearest, one_line};
use crate::{InputError, Platform, Policy};
use std::collections::BTreeSet;

impl Catalogue {
    /// Resolves every setting of a run under `policy` on `platform` to its value: what the policy says,
    /// else the default; then every group's check, and what the groups fill in.
    ///
    /// Errors, most of them at [`Policy::place_of`] the setting: a setting nobody knows; a setting of a governor
    /// (or other plug-in) that is not in use; a value outside the range; a cpufreq policy that the platform does not
    /// have; what a group's check refuses.
    pub fn resolve(&self, platform: &Platform, policy: &Policy) -> Result<Settings, InputError> {
        let mut policy = policy.clone();
        let own = self.take_own(platform, &mut policy)?;
        let mut settings = self.values(platform, &policy)?;
        settings.extend(own);
        let used: Vec<&Group> = self.groups.iter().filter(|g| g.in_use(&settings)).collect();
        used.iter().try_for_each(|group| (group.check)(platform, &policy, &settings))?;
        used.iter().for_each(|group| (group.complete)(platform, &policy, &mut settings));
        Ok(settings)
    }

    /// The value of each setting by itself.
    fn values(&self, platform: &Platform, policy: &Policy) -> Result<Settings, InputError> {
        let mut resolved = Settings::default();
        let mut done = vec![false; self.groups.len()];
        // What a group belongs to (the governor) is itself a setting: resolve until no
        // further group comes into use.
        while let Some(i) =
            (0..self.groups.len()).find(|i| !done[*i] && self.groups[*i].in_use(&resolved))
        {
            done[i] = true;
            for param in self.groups[i].params {
                let value = match policy.set.get(param.name) {
                    Some(v) => Some(param.checked(v, policy.place_of(param.name))?),
                    None => param.default_value(platform, policy),
                };
                if let Some(v) = value {
                    resolved.insert(param.name, v);
                }
            }
        }
        for key in policy.set.keys() {
            let mut used = self.groups.iter().zip(&done).filter(|(_, done)| **done);
            if !used.any(|(group, _)| group.params.iter().any(|p| p.name == key)) {
                return Err(self.unavailable(key, policy, &resolved));
            }
        }
        Ok(resolved)
    }

    /// Takes what is meant for single cpufreq policies out of `policy`, checked like the setting it belongs to.
    fn take_own(
        &self,
        platform: &Platform,
        policy: &mut Policy,
    ) -> Result<Vec<(String, Value)>, InputError> {
        let may_be_own = |name: &str| {
            let all = self.groups.iter().flat_map(|group| group.per_policy);
            all.map(|p| p.name).find(|known| *known == name)
        };
        let tunable = |key: &str| {
            let (name, _) = key.split_once(".policy")?;
            may_be_own(name)
        };
        let mut all = Vec::new();
        let (own, shared) = std::mem::take(&mut policy.set)
            .into_iter()
            .partition::<Vec<_>, _>(|(key, _)| tunable(key).is_some());
        policy.set = shared.into_iter().collect();
        for (key, value) in own {
            let Some(name) = tunable(&key) else { continue };
            if !platform.domains.iter().any(|d| own_name(name, d.cpus[0]) == key) {
                let known: Vec<String> =
                    platform.domains.iter().map(|d| d.cpus[0].0.to_string()).collect();
                let known = known.join(", policy");
                let what = format!("there is no such policy: {} has policy{known}", platform.name);
                return Err(InputError::new(policy.place_of_value(&key, &value), what));
            }
            let mut as_one = policy.clone().set_for_all(name, value.clone());
            as_one.places.extend(policy.places.get(&key).map(|at| (name.to_string(), at.clone())));
            self.values(platform, &as_one)?;
            all.push((key, value));
        }
        Ok(all)
    }

    /// Explains why `key` cannot be set: it belongs to something that is not in use, or nobody
    /// knows it.
    fn unavailable(&self, key: &str, policy: &Policy, resolved: &Settings) -> InputError {
        let owners: Vec<(&str, &str)> =
            self.params().filter(|(_, p)| p.name == key).filter_map(|(g, _)| g.owner).collect();
        if let Some(&(kind, _)) = owners.first() {
            let names: Vec<String> = owners.iter().map(|(_, n)| format!("`{n}`")).collect();
            let used =
                resolved.by_name(kind).map_or("the default".to_string(), |v| format!("`{v}`"));
            let own = self.tunables(kind, resolved);
            return InputError::new(
                policy.place_of(key),
                format!(
                    "`{key}` is a setting of the {kind} {}, and the {kind} in use is {used}",
                    names.join(" and ")
                ),
            )
            .hint(format!("leave `{key}` out, or add {kind}={}{own}", owners[0].1));
        }
        let mut known: Vec<&str> = self.params().map(|(_, p)| p.name).collect();
        known.sort_unstable();
        known.dedup();
        let what = format!("unknown setting `{}`", one_line(key));
        let kinds: BTreeSet<&str> = self.groups.iter().filter_map(|g| Some(g.owner?.0)).collect();
        let own: String = kinds.into_iter().map(|kind| self.tunables(kind, resolved)).collect();
        let hint = meant(key, &known, &format!("`risetime list settings` has all{own}"));
        InputError::new(policy.place_of(key), what).hint(hint)
    }

    /// Lists the settings that the `kind` (governor, tracker) in use takes by a name of its own,
    /// with the ranges: for the end of a hint.
    fn tunables(&self, kind: &str, resolved: &Settings) -> String {
        let Some(Value::Name(used)) = resolved.by_name(kind) else { return String::new() };
        let of_it = |g: &&Group| g.owner == Some((kind, used.as_str()));
        let named = |p: &&Param| !matches!(p.home, Home::Patched(None, _));
        let params = self.groups.iter().filter(of_it).flat_map(|g| g.params).filter(named);
        let all: Vec<String> =
            params.map(|p| format!("{} ({})", p.name, p.range.words(&p.counted_in()))).collect();
        if all.is_empty() { String::new() } else { format!("; {used} has {}", all.join(", ")) }
    }
}

impl Range {
    /// Describes the range for a reader: `1 to 100 %`, `copy, full`.
    fn words(self, unit: &str) -> String {
        let (numbers, names) = self.parts();
        let number = numbers.map(|(low, high)| format!("{low} to {high}{unit}"));
        names.iter().map(|name| name.to_string()).chain(number).collect::<Vec<_>>().join(", ")
    }
}

impl Param {
    /// `value`, if it is of this setting's kind and within its range; a share may be said as `80` or as `80%`.
    fn checked(&self, value: &Value, place: &str) -> Result<Value, InputError> {
        let (numbers, names) = self.range.parts();
        let value = match value {
            Value::Name(s) if self.unit == "%" => {
                let percent = s.strip_suffix('%').and_then(|n| n.trim_end().parse().ok());
                percent.map_or_else(|| value.clone(), Value::Int)
            }
            _ => value.clone(),
        };
        let good = match &value {
            Value::Int(n) => numbers.is_some_and(|(low, high)| (low..=high).contains(n)),
            Value::Name(s) if matches!(self.range, Range::ByFreq(..)) => {
                let within = |(_, n): &(u64, i64)| {
                    numbers.is_some_and(|(low, high)| (low..=high).contains(n))
                };
                by_freq(s).is_some_and(|all| all.iter().all(within))
            }
            Value::Name(s) => names.contains(&s.as_str()),
        };
        if good {
            return Ok(value);
        }
        let unit = self.counted_in();
        let number =
            numbers.map(|(low, high)| format!("a whole number from {low} to {high}{unit}"));
        let wanted = match number {
            Some(number) if matches!(self.range, Range::ByFreq(..)) => format!(
                "{number}, or such numbers with the frequencies between them from which on they hold, in kHz: `85 1000000:90`"
            ),
            None => format!("one of {}", names.join(", ")),
            Some(number) if names.is_empty() => number,
            Some(number) => format!("{}, or {number}", names.join(", ")),
        };
        let e = InputError::new(place, format!("`{}` is {value}, wanted {wanted}", self.name));
        Err(match &value {
            Value::Name(s) => match nearest(s, names) {
                Some(n) => e.hint(format!("did you mean `{n}`?")),
                None => e,
            },
            Value::Int(_) => e,
        })
    }
}
