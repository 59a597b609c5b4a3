//! Settings: their description ([`Param`]), and their resolved values ([`Settings`]).
//!
//! A plug-in declares its parameters beside its code; a backend gathers them into a
//! [`Catalogue`], and the catalogue checks what a person asked for: unknown names list the
//! known ones, values outside the range say the range, and a tunable of a governor that is
//! not in use is an error.

use std::collections::BTreeMap;

/// A setting's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number in the unit of its [`Param`].
    Int(i64),
    /// A name (`governor = "schedutil"`).
    Name(String),
}

/// The description of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name: the kernel's own where it has one, unit in the name.
    pub name: &'static str,
    /// What it does, one sentence.
    pub doc: &'static str,
    /// Unit for the reader (`µs`, `of 1024`, `""`).
    pub unit: &'static str,
    /// What values it takes.
    pub range: Range,
    /// Its value when nobody says anything.
    pub default: Default,
    /// Where the kernel has it (`cpufreq/schedutil/rate_limit_us`); empty if it is ours.
    pub kernel_name: &'static str,
}

/// The values a setting may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Whole numbers from the first to the second, both included.
    Int(i64, i64),
    /// One of these names.
    OneOf(&'static [&'static str]),
}

/// The default of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// This number.
    Int(i64),
    /// This name.
    Name(&'static str),
    /// Derived from platform and kernel; the text says how.
    Derived(&'static str),
    /// Not set: the setting does nothing.
    Unset,
}

/// All settings of a run, resolved: every one with its value; those that are not set are
/// absent.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Settings(pub BTreeMap<String, Value>);

impl Settings {
    /// The number `name` is set to; `None` if it is not set (or is a name).
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        }
    }
    /// The name `name` is set to.
    pub fn name(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Name(s)) => Some(s),
            _ => None,
        }
    }
}

/// A group of settings that is available only when `owner` is in use: a governor's tunables.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// `("governor", "schedutil")`: available when setting `governor` is `schedutil`;
    /// `None`: always available.
    pub owner: Option<(&'static str, &'static str)>,
    /// Its settings.
    pub params: &'static [Param],
}

/// Every setting that a backend knows.
#[derive(Clone, Debug, std::default::Default)]
pub struct Catalogue {
    /// The groups, in the order in which a reader should see them.
    pub groups: Vec<Group>,
}
