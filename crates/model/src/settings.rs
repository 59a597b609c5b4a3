//! Settings: their description ([`Param`]), and their resolved values ([`Settings`]).
//!
//! A plug-in declares its parameters beside its code; a backend gathers them into a
//! [`Catalogue`], and the catalogue checks what a person asked for: unknown names list the
//! known ones, values outside the range say the range, and a tunable of a governor that is
//! not in use is an error.

use crate::input::{meant, nearest, one_line};
use crate::{InputError, Policy};
use risetime_kernel::units::CpuId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// This number.
    Int(i64),
    /// This name.
    Name(&'static str),
    /// Derived from platform and kernel; the text says how.
    Derived(&'static str),
    /// The setting is not set, and does nothing.
    Unset,
}

/// All settings of a run, resolved: every one with its value; those that are not set are
/// absent.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Settings(pub BTreeMap<String, Value>);

/// The setting of an experiment that says how many ms of the workload's start its figures leave
/// out, of jobs, activations and wakeups.
pub const SKIP_MS: &str = "skip_ms";

impl Settings {
    /// The number `name` is set to; `None` if it is not set (or is a name).
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        }
    }
    /// The values of `name` by frequency: from which frequency on, in kHz, which value; the first
    /// from 0. Empty: it is not set.
    pub fn by_freq(&self, name: &str) -> Vec<(u64, i64)> {
        match self.0.get(name) {
            Some(Value::Int(n)) => vec![(0, *n)],
            Some(Value::Name(text)) => by_freq(text).unwrap_or_default(),
            None => Vec::new(),
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

/// A group of settings that is available only when `owner` is in use: a governor's tunables.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// `("governor", "schedutil")`: available when setting `governor` is `schedutil`;
    /// `None`: always available.
    pub owner: Option<(&'static str, &'static str)>,
    /// The group's settings.
    pub params: &'static [Param],
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
    /// Describes the range for a reader: `1 to 100 %`, `copy, full`.
    fn words(self, unit: &str) -> String {
        let (numbers, names) = self.parts();
        let number = numbers.map(|(low, high)| format!("{low} to {high}{unit}"));
        names.iter().map(|name| name.to_string()).chain(number).collect::<Vec<_>>().join(", ")
    }

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
    /// Whether its settings are available under what is `set`.
    pub fn in_use(&self, set: &BTreeMap<String, Value>) -> bool {
        match self.owner {
            None => true,
            Some((key, name)) => set.get(key) == Some(&Value::Name(name.to_string())),
        }
    }
}

impl Catalogue {
    /// Iterates over every parameter with the group it belongs to, in the order for a reader.
    pub fn params(&self) -> impl Iterator<Item = (&Group, &'static Param)> {
        self.groups.iter().flat_map(|g| g.params.iter().map(move |p| (g, p)))
    }

    /// Resolves every setting of a run under `policy` to its value: what the policy says, else the
    /// default; a [`Default::Derived`] value comes from `derive` (`None`: it stays unset).
    ///
    /// Errors, all at [`Policy::place_of`] the setting: a setting nobody knows; a setting of a governor (or
    /// other plug-in) that is not in use; a value outside the range.
    pub fn resolve(
        &self,
        policy: &Policy,
        derive: &dyn Fn(&Param) -> Option<Value>,
    ) -> Result<Settings, InputError> {
        let mut resolved = BTreeMap::new();
        let mut done = BTreeSet::new();
        // What a group belongs to (the governor) is itself a setting: resolve until no
        // further group comes into use.
        while let Some(i) =
            (0..self.groups.len()).find(|i| !done.contains(i) && self.groups[*i].in_use(&resolved))
        {
            done.insert(i);
            for param in self.groups[i].params {
                let value = match policy.set.get(param.name) {
                    Some(v) => Some(param.checked(v, policy.place_of(param.name))?),
                    None => param.default_value(derive),
                };
                if let Some(v) = value {
                    resolved.insert(param.name.to_string(), v);
                }
            }
        }
        for key in policy.set.keys() {
            let available = |i: &usize| self.groups[*i].params.iter().any(|p| p.name == key);
            if !done.iter().any(available) {
                return Err(self.unavailable(key, policy, &resolved));
            }
        }
        Ok(Settings(resolved))
    }

    /// Explains why `key` cannot be set: it belongs to something that is not in use, or nobody
    /// knows it.
    fn unavailable(
        &self,
        key: &str,
        policy: &Policy,
        resolved: &BTreeMap<String, Value>,
    ) -> InputError {
        let owners: Vec<(&str, &str)> =
            self.params().filter(|(_, p)| p.name == key).filter_map(|(g, _)| g.owner).collect();
        if let Some(&(kind, _)) = owners.first() {
            let names: Vec<String> = owners.iter().map(|(_, n)| format!("`{n}`")).collect();
            let used = resolved.get(kind).map_or("the default".to_string(), |v| format!("`{v}`"));
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
    fn tunables(&self, kind: &str, resolved: &BTreeMap<String, Value>) -> String {
        let Some(Value::Name(used)) = resolved.get(kind) else { return String::new() };
        let of_it = |g: &&Group| g.owner == Some((kind, used.as_str()));
        let named = |p: &&Param| !matches!(p.home, Home::Patched(None, _));
        let params = self.groups.iter().filter(of_it).flat_map(|g| g.params).filter(named);
        let all: Vec<String> =
            params.map(|p| format!("{} ({})", p.name, p.range.words(&p.counted_in()))).collect();
        if all.is_empty() { String::new() } else { format!("; {used} has {}", all.join(", ")) }
    }
}

impl Param {
    /// The unit as it stands behind a number: " µs". "of 1024" is a scale, not a unit to count in.
    pub fn counted_in(&self) -> String {
        let counts = !self.unit.is_empty() && !self.unit.starts_with("of ");
        if counts { format!(" {}", self.unit) } else { String::new() }
    }

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

    fn default_value(&self, derive: &dyn Fn(&Param) -> Option<Value>) -> Option<Value> {
        match self.default {
            Default::Int(n) => Some(Value::Int(n)),
            Default::Name(s) => Some(Value::Name(s.to_string())),
            Default::Derived(_) => derive(self),
            Default::Unset => None,
        }
    }
}
