//! Settings: their description ([`Param`]), their items ([`Int`], [`Name`], …) and their resolved values ([`Settings`]).
//!
//! ```text
//! pub const RATE_LIMIT_US: Int = Int::new(Param { … });     declared once, beside the code that it is about
//!     Group::of(&[RATE_LIMIT_US.0, …]).checked(check)       what a plug-in or mechanism takes
//!     Catalogue::resolve(platform, policy)                  said by the user, else the default; then each group's check
//! settings.get(&RATE_LIMIT_US)                              a number, by the item alone
//! ```
//!
//! The catalogue checks what a person asked for: unknown names list the known ones, values outside
//! the range say the range, and a tunable of a governor that is not in use is an error. What several
//! backends know of a setting that one of them declares is its [`Key`].

mod item;
pub mod keys;
mod resolve;

pub use item::{ByFreq, Int, IntOrName, Key, Name, Setting};
pub use keys::SKIP_MS;

use crate::input::one_line;
use crate::{InputError, Platform, Policy};
use risetime_kernel::units::CpuId;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

/// A setting's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number in the unit of its [`Param`].
    Int(i64),
    /// A name (`governor = "schedutil"`).
    Name(String),
}

/// The description of a setting.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The setting's name: the kernel's own where it has one, unit in the name.
    pub name: &'static str,
    /// The effect, one sentence.
    pub doc: &'static str,
    /// Unit for the reader (`µs`, `of 1024`, `""`).
    pub unit: &'static str,
    /// Allowed values.
    pub range: Range,
    /// Value when nobody says anything.
    pub default: Default,
    /// Home of the setting: where a real system has it.
    pub home: Home,
}

/// Home of a setting on a real system, with the kernel's name for it: who can change it, and how.
/// Its [`Display`](fmt::Display) is for a reader of the list of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A sysctl, by its dotted name: `kernel.sched_energy_aware`.
    Sysctl(&'static str),
    /// A file below `/sys/kernel/debug`.
    Debugfs(&'static str),
    /// A file of each CPU below `/sys/kernel/debug`; `cpuN` in it is the CPU.
    DebugfsCpu(&'static str),
    /// A scheduler feature: `/sys/kernel/debug/sched/features` takes `NAME` and `NO_NAME`.
    Feature(&'static str),
    /// A file below `/sys/devices/system/cpu` that holds for all CPUs.
    CpuSysfs(&'static str),
    /// A file of each CPU, below `/sys/devices/system/cpu/cpuN`.
    Cpu(&'static str),
    /// A file below `/dev` that asks for something as long as it is held open.
    Device(&'static str),
    /// A cpufreq governor's tunable, `GOVERNOR/NAME`: one file for all policies (cpufreq-dt), or one in
    /// the directory of each policy, as the driver decides.
    Tunable(&'static str),
    /// A file of each cpufreq policy, below `/sys/devices/system/cpu/cpufreq/policyN`.
    Policy(&'static str),
    /// A field of a task's `sched_setattr`.
    SchedAttr(&'static str),
    /// A task's `sched_setaffinity`.
    Affinity,
    /// An option of a task's `prctl`.
    Prctl(&'static str),
    /// A parameter of the kernel's command line.
    Boot(&'static str),
    /// A setting only in a kernel with a patch that mainline does not have; its name there, where
    /// the patch gives it one.
    Patched(Option<&'static str>, Neutral),
    /// No system has it: a start state, an event or a cost of the simulation.
    Simulator(Neutral),
}

/// The value of a setting with which a run goes as if the setting did not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neutral {
    /// Every value changes something.
    None,
    /// Any: it only chooses what other settings are unless set.
    Any,
    /// This number.
    Int(i64),
    /// This name.
    Name(&'static str),
    /// This number, and this name for it.
    Both(i64, &'static str),
}

/// The values a setting may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Whole numbers from the first to the second, both included.
    Int(i64, i64),
    /// A choice from these names.
    OneOf(&'static [&'static str]),
    /// A choice from these names, or a whole number from the first to the second.
    IntOr(i64, i64, &'static [&'static str]),
    /// Such a number, or several with the frequencies in kHz from which on they hold: `85 1000000:90 1700000:99`.
    ByFreq(i64, i64),
}

/// The default of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// This number.
    Int(i64),
    /// This name.
    Name(&'static str),
    /// Derived from platform and policy: how, in words, and the same as code. `None`: this kernel or
    /// machine has no such setting, or what the words say is found out during the run.
    Derived(&'static str, fn(&Platform, &Policy) -> Option<Value>),
    /// The setting is not set, and does nothing.
    Unset,
}

/// All settings of a run, resolved: every one with its value; those that are not set are
/// absent.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, Value>);

impl Settings {
    /// The value of `setting`; `None` if it is not set (or is of another kind).
    pub fn get<S: Setting>(&self, setting: &S) -> Option<S::Read<'_>> {
        self.0.get(setting.key()).and_then(S::read)
    }
    /// The value of `setting` that the cpufreq policy whose first CPU is `policy` has of its own (`NAME.policyN`).
    pub fn own<S: Setting>(&self, setting: &S, policy: CpuId) -> Option<S::Read<'_>> {
        // Most often no policy has any of its own, which the name that comes next tells.
        let behind = (Bound::Excluded(setting.key()), Bound::Unbounded);
        let (next, _) = self.0.range::<str, _>(behind).next()?;
        if !next.starts_with(setting.key()) {
            return None;
        }
        self.0.get(&own_name(setting.key(), policy)).and_then(S::read)
    }
    /// The value of `setting` for a cpufreq policy: its own, else that of all.
    pub fn of_policy<S: Setting>(&self, setting: &S, policy: CpuId) -> Option<S::Read<'_>> {
        self.own(setting, policy).or_else(|| self.get(setting))
    }
    /// Whether `setting` has a value.
    pub fn is_set<S: Setting>(&self, setting: &S) -> bool {
        self.0.contains_key(setting.key())
    }
    /// Whether `setting` has a value, or a cpufreq policy has one of its own.
    pub fn is_set_anywhere<S: Setting>(&self, setting: &S) -> bool {
        self.all(setting).next().is_some()
    }
    /// Iterates over the values of `setting`: that of all, and those that cpufreq policies have of their own.
    pub fn all<S: Setting>(&self, setting: &S) -> impl Iterator<Item = S::Read<'_>> {
        let own = self.own_of(setting.key()).map(|(_, value)| value);
        self.0.get(setting.key()).into_iter().chain(own).filter_map(S::read)
    }
    /// Gives `setting` a value, whatever its range.
    pub fn set<S: Setting>(&mut self, setting: &S, value: impl Into<Value>) {
        self.0.insert(setting.key().to_string(), value.into());
    }
    /// Gives a cpufreq policy a value of `setting` of its own.
    pub fn set_own<S: Setting>(&mut self, setting: &S, policy: CpuId, value: impl Into<Value>) {
        self.0.insert(own_name(setting.key(), policy), value.into());
    }
    /// Takes the value of `setting` away.
    pub fn unset<S: Setting>(&mut self, setting: &S) {
        self.0.remove(setting.key());
    }
    /// Takes away what a cpufreq policy has of its own.
    pub fn unset_own<S: Setting>(&mut self, setting: &S, policy: CpuId) {
        self.0.remove(&own_name(setting.key(), policy));
    }
    /// Takes away every value of these settings, of single cpufreq policies, too.
    pub fn unset_all(&mut self, settings: &[Param]) {
        for param in settings {
            self.0.remove(param.name);
            let own: Vec<String> = self.own_of(param.name).map(|(name, _)| name.clone()).collect();
            for name in own {
                self.0.remove(&name);
            }
        }
    }
    /// Iterates over what cpufreq policies have of their own of the setting called `name`.
    fn own_of(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
        let prefix = format!("{name}.policy");
        let from = self.0.range(prefix.clone()..);
        from.take_while(move |(name, _)| name.starts_with(&prefix))
    }
    /// The value of the setting that a person, a trace or a document calls `name`. Code that means a
    /// certain setting asks by its item: [`Settings::get`].
    pub fn by_name(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
    /// Gives the setting that a person, a trace or a document calls `name` a value.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }
    /// Takes away the value of the setting that is called `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
    /// Keeps the settings for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|name, _| keep(name));
    }
    /// Iterates over names and values, by name.
    pub fn iter(&self) -> std::collections::btree_map::Iter<'_, String, Value> {
        self.0.iter()
    }
    /// Iterates over names and values, which may be changed.
    pub fn iter_mut(&mut self) -> std::collections::btree_map::IterMut<'_, String, Value> {
        self.0.iter_mut()
    }
    /// The settings by name, as a policy holds what is said.
    pub fn into_map(self) -> BTreeMap<String, Value> {
        self.0
    }
}

impl<'a> IntoIterator for &'a Settings {
    type Item = (&'a String, &'a Value);
    type IntoIter = std::collections::btree_map::Iter<'a, String, Value>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<(String, Value)> for Settings {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(all: I) -> Settings {
        Settings(all.into_iter().collect())
    }
}

impl Extend<(String, Value)> for Settings {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, all: I) {
        self.0.extend(all);
    }
}

impl From<BTreeMap<String, Value>> for Settings {
    fn from(all: BTreeMap<String, Value>) -> Settings {
        Settings(all)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<&str> for Value {
    fn from(name: &str) -> Value {
        Value::Name(name.to_string())
    }
}

/// The name under which a cpufreq policy has a setting of its own.
pub fn own_name(name: &str, policy: CpuId) -> String {
    format!("{name}.policy{}", policy.0)
}

/// `85 1000000:90`: values and the frequencies between them, ascending, as governors' files have them.
fn by_freq(text: &str) -> Option<Vec<(u64, i64)>> {
    let words: Vec<&str> = text.split([' ', ':']).collect();
    let number = |word: &&str| word.parse::<u32>().ok();
    let values = words.iter().step_by(2).map(number);
    let freqs = std::iter::once(Some(0)).chain(words.iter().skip(1).step_by(2).map(number));
    let all: Vec<(u64, i64)> =
        freqs.zip(values).map(|(f, v)| Some((f?.into(), v?.into()))).collect::<Option<_>>()?;
    let ascends = all.windows(2).all(|pair| pair[0].0 < pair[1].0);
    (words.len() % 2 == 1 && ascends).then_some(all)
}

/// A check of what single settings cannot say: that some contradict each other, the kernel or the machine.
pub type Check = fn(&Platform, &Policy, &Settings) -> Result<(), InputError>;

/// The settings of a mechanism or a plug-in, and what goes with them.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// `("governor", "schedutil")`: available when setting `governor` is `schedutil`;
    /// `None`: always available.
    pub owner: Option<(&'static str, &'static str)>,
    /// Heading of a group without an owner, for a reader of the list.
    pub title: &'static str,
    /// The group's settings.
    pub params: &'static [Param],
    /// Settings of the group that a cpufreq policy may have of its own, as `NAME.policyN`.
    pub per_policy: &'static [Param],
    /// Check of the settings together, once they are resolved.
    pub check: Check,
    /// Fills in what follows from the others for single policies; after every check.
    pub complete: fn(&Platform, &Policy, &mut Settings),
}

/// Every setting that a backend knows.
#[derive(Clone, Debug, std::default::Default)]
pub struct Catalogue {
    /// The groups, in the order in which a reader should see them.
    pub groups: Vec<Group>,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Name(s) => f.write_str(&one_line(s)),
        }
    }
}

impl Neutral {
    /// Whether `value` is the neutral one.
    pub fn is(self, value: &Value) -> bool {
        match (self, value) {
            (Neutral::Any, _) => true,
            (Neutral::Int(neutral), Value::Int(n)) => neutral == *n,
            (Neutral::Name(neutral), Value::Name(s)) => neutral == s,
            (Neutral::Both(n, name), _) => {
                Neutral::Int(n).is(value) || Neutral::Name(name).is(value)
            }
            _ => false,
        }
    }
}

impl Range {
    /// The numbers it has, first and last, and the names.
    pub fn parts(self) -> (Option<(i64, i64)>, &'static [&'static str]) {
        match self {
            Range::Int(low, high) | Range::ByFreq(low, high) => (Some((low, high)), &[]),
            Range::OneOf(names) => (None, names),
            Range::IntOr(low, high, names) => (Some((low, high)), names),
        }
    }
}

impl Home {
    /// The file to read and write on a running system; of a [`Home::Policy`], that of the policy whose
    /// first CPU is `policy`, of a [`Home::Cpu`] that of this CPU; of a [`Home::Tunable`], the one for all policies. `None`: it is no file.
    pub fn file(&self, policy: CpuId) -> Option<String> {
        const CPU: &str = "/sys/devices/system/cpu";
        match self {
            Home::Sysctl(name) => Some(format!("/proc/sys/{}", name.replace('.', "/"))),
            Home::Debugfs(path) => Some(format!("/sys/kernel/debug/{path}")),
            Home::DebugfsCpu(path) => {
                let own = path.replace("cpuN", &format!("cpu{}", policy.0));
                Some(format!("/sys/kernel/debug/{own}"))
            }
            Home::Feature(_) => Some("/sys/kernel/debug/sched/features".to_string()),
            Home::CpuSysfs(path) => Some(format!("{CPU}/{path}")),
            Home::Cpu(path) => Some(format!("{CPU}/cpu{}/{path}", policy.0)),
            Home::Tunable(path) => Some(format!("{CPU}/cpufreq/{path}")),
            Home::Policy(file) => Some(format!("{CPU}/cpufreq/policy{}/{file}", policy.0)),
            Home::Device(_)
            | Home::SchedAttr(_)
            | Home::Affinity
            | Home::Prctl(..)
            | Home::Boot(_)
            | Home::Patched(..)
            | Home::Simulator(_) => None,
        }
    }
}

impl Home {
    /// Patterns of the files that hold the setting for all CPUs and policies of a running system; `*` is the number of
    /// a CPU or a policy. Of several patterns a system has one. Empty: it is no file.
    pub fn everywhere(&self) -> Vec<String> {
        const CPU: &str = "/sys/devices/system/cpu";
        match self {
            Home::DebugfsCpu(path) => {
                vec![format!("/sys/kernel/debug/{}", path.replace("cpuN", "cpu*"))]
            }
            Home::Cpu(path) => vec![format!("{CPU}/cpu*/{path}")],
            Home::Policy(file) => vec![format!("{CPU}/cpufreq/policy*/{file}")],
            Home::Tunable(path) => {
                vec![format!("{CPU}/cpufreq/{path}"), format!("{CPU}/cpufreq/policy*/{path}")]
            }
            Home::Patched(Some(path), _) if path.starts_with("cpufreq/") => {
                vec![format!("{CPU}/{}", path.replace("policyN", "policy*"))]
            }
            Home::Patched(Some(name), _) if name.contains('.') => {
                vec![format!("/proc/sys/{}", name.replace('.', "/"))]
            }
            _ => self.file(CpuId(0)).into_iter().collect(),
        }
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Home::Sysctl(name) => write!(f, "sysctl: {name}"),
            Home::Debugfs(path) | Home::DebugfsCpu(path) => write!(f, "debugfs: {path}"),
            Home::Feature(name) => write!(f, "debugfs: sched/features, {name}"),
            Home::CpuSysfs(path) => write!(f, "sysfs: devices/system/cpu/{path}"),
            Home::Cpu(path) => write!(f, "sysfs: devices/system/cpu/cpuN/{path}"),
            Home::Device(file) => write!(f, "device: /dev/{file}"),
            Home::Tunable(path) => write!(f, "governor tunable: {path}"),
            Home::Policy(file) => write!(f, "cpufreq policy: policyN/{file}"),
            Home::SchedAttr(field) => write!(f, "task: sched_setattr, {field}"),
            Home::Affinity => f.write_str("task: sched_setaffinity"),
            Home::Prctl(option) => write!(f, "task: prctl, {option}"),
            Home::Boot(parameter) => write!(f, "boot parameter: {parameter}"),
            Home::Patched(Some(name), _) => write!(f, "patched kernel: {name}"),
            Home::Patched(None, _) => f.write_str("patched kernel"),
            Home::Simulator(_) => f.write_str("simulator only"),
        }
    }
}

impl Group {
    /// A group that is always available, of settings that no check puts together.
    pub const fn of(params: &'static [Param]) -> Group {
        let (check, complete): (Check, _) = (|_, _, _| Ok(()), |_: &_, _: &_, _: &mut _| ());
        Group { owner: None, title: "", params, per_policy: &[], check, complete }
    }

    /// Returns this group under the heading `title`.
    #[must_use]
    pub const fn titled(self, title: &'static str) -> Group {
        Group { title, ..self }
    }

    /// Returns this group, available only where the setting `kind` is `name`.
    #[must_use]
    pub fn owned_by(self, kind: &impl Setting, name: &'static str) -> Group {
        Group { owner: Some((kind.key(), name)), ..self }
    }

    /// Returns this group with settings that a cpufreq policy may have of its own.
    #[must_use]
    pub const fn per_policy(self, per_policy: &'static [Param]) -> Group {
        Group { per_policy, ..self }
    }

    /// Returns this group with a check.
    #[must_use]
    pub const fn checked(self, check: Check) -> Group {
        Group { check, ..self }
    }

    /// Returns this group with what is filled in once all are checked.
    #[must_use]
    pub const fn completed(self, complete: fn(&Platform, &Policy, &mut Settings)) -> Group {
        Group { complete, ..self }
    }

    /// Whether its settings are available under what is `set`.
    pub fn in_use(&self, set: &Settings) -> bool {
        match self.owner {
            None => true,
            Some((key, name)) => {
                matches!(set.by_name(key), Some(Value::Name(set)) if set.as_str() == name)
            }
        }
    }
}

impl Catalogue {
    /// Iterates over every parameter with the group it belongs to, in the order for a reader.
    pub fn params(&self) -> impl Iterator<Item = (&Group, &'static Param)> {
        self.groups.iter().flat_map(|g| g.params.iter().map(move |p| (g, p)))
    }
}

impl Param {
    /// The unit as it stands behind a number: " µs". "of 1024" is a scale, not a unit to count in.
    pub fn counted_in(&self) -> String {
        let counts = !self.unit.is_empty() && !self.unit.starts_with("of ");
        if counts { format!(" {}", self.unit) } else { String::new() }
    }

    /// The value under `policy` on `platform` when nobody says anything.
    pub fn default_value(&self, platform: &Platform, policy: &Policy) -> Option<Value> {
        match self.default {
            Default::Int(n) => Some(Value::Int(n)),
            Default::Name(s) => Some(Value::Name(s.to_string())),
            Default::Derived(_, derive) => derive(platform, policy),
            Default::Unset => None,
        }
    }
}
