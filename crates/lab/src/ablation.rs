//! A patch series taken apart.
//!
//! ```text
//! ablation of a preset:  base, all of it, all but each switch, base and each switch alone
//! ```
//!
//! The switches of a preset are what it sets but `governor` and `placement`; its base is the preset
//! without them, called like the built-in policy that is the same.

use crate::names::policy;
use risetime_model::settings::Value;
use risetime_model::{InputError, Policy, library};
use risetime_sim::settings::{GOVERNOR, PLACEMENT};

/// A preset taken apart.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// Base, whole, then for each switch the whole without it and the base with it alone.
    pub policies: Vec<Policy>,
    /// The switches, `key=value`.
    pub switches: Vec<String>,
}

/// The parts of `preset` (`NAME[+key=value…]`); `set` holds for all of them and is no switch.
///
/// Errors: no such policy; one without switches; `set` says what one of them is.
pub fn ablation(preset: &str, set: &[(String, Value)]) -> Result<Ablation, InputError> {
    // What is asked for twice is found as for any policy.
    policy(preset, set)?;
    let whole = policy(preset, &[])?;
    let mut base = whole.clone();
    base.set.retain(|key, _| NO_SWITCH.contains(&key.as_str()));
    base.name = name_of(&base).unwrap_or_else(|| format!("{} without its patches", whole.name));
    let switches: Vec<(&String, &Value)> =
        whole.set.iter().filter(|(key, _)| !NO_SWITCH.contains(&key.as_str())).collect();
    if switches.is_empty() {
        let what = format!("{preset} sets nothing that could be left out");
        return Err(InputError::new("--ablate", what).hint("for example --ablate rfc-v1"));
    }
    if let Some((key, value)) = set.iter().find(|(key, _)| switches.iter().any(|s| s.0 == key)) {
        let what = format!("`{key}` is one of the switches of {preset}, to be left out and put in");
        return Err(InputError::new(format!("--set {key}={value}"), what)
            .hint(format!("leave it out, or take apart {preset}+{key}={value}")));
    }
    let mut policies = vec![base.clone(), whole.clone()];
    for (key, value) in &switches {
        let mut without = whole.clone();
        without.set.remove(*key);
        without.name = format!("{} without {key}", whole.name);
        policies.extend([without, base.clone().with(key, (*value).clone())]);
    }
    let switches = switches.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let policies = policies.into_iter().map(|policy| {
        let add = |p: Policy, (key, value): &(String, Value)| p.set_for_all(key, value.clone());
        set.iter().fold(policy, add)
    });
    let policies = policies.collect();
    Ok(Ablation { policies, switches })
}

/// Settings that say who decides, not what a patch changes.
const NO_SWITCH: [&str; 2] = [GOVERNOR.0.name, PLACEMENT.0.name];

/// The name of the built-in policy of the same kernel and settings, if there is one.
fn name_of(policy: &Policy) -> Option<String> {
    let known = library::policies();
    let same = known.iter().filter_map(|entry| Policy::parse(entry.text, entry.name).ok());
    same.filter(|p| p.kernel == policy.kernel && p.set == policy.set).map(|p| p.name).next()
}
