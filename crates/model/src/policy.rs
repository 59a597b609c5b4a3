//! Policies, by which a system decides: a kernel generation, its governor and its tunables.
//!
//! ```text
//! linux-6.8                       a preset, or a file
//! linux-6.8+rate_limit_us=70      the same with one setting changed
//! ```

use crate::input::{check_size, looks_like_path, one_line, printable, read_file, unknown_name};
use crate::library;
use crate::platform::checked_name;
use crate::settings::{Setting, Value};
use crate::toml_in::{Doc, Scalar};
use crate::{InputError, Subject};
use risetime_kernel::KernelRev;
use std::collections::BTreeMap;
use std::path::Path;

/// Size limit of a policy file.
const MAX_BYTES: usize = 1 << 20;

/// A policy as written: a preset (`policies/*.toml`) plus what the command line added.
/// Resolved against a platform and a backend's catalogue by
/// [`Catalogue::resolve`](crate::settings::Catalogue::resolve).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Preset name, with `+key=value` appended for what was changed: what reports call it.
    pub name: String,
    /// One line for a reader.
    pub about: String,
    /// The kernel whose behaviour is meant.
    pub kernel: KernelRev,
    /// Settings by name, as given (`governor` among them): the preset's, replaced by those of
    /// `--set` and `--policy …+key=value`.
    pub set: BTreeMap<String, Value>,
    /// Places in the user's file that say settings: `file:line:column`.
    pub places: BTreeMap<String, String>,
}

/// Finds the built-in release nearest to one that is none of them, `linux-6.10`, the older of two.
fn nearest_release<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    /// Releases of one major number: 5.19, 6.19.
    const OF_A_MAJOR: u64 = 20;
    let number = |name: &str| {
        let (major, minor) = name.strip_prefix("linux-")?.split_once('.')?;
        let [major, minor] = [major, minor].map(|n| n.parse::<u16>().ok().map(u64::from));
        Some(major? * OF_A_MAJOR + minor?)
    };
    let wanted = number(name)?;
    let releases = known.iter().filter_map(|name| Some((number(name)?, *name)));
    releases.min_by_key(|(n, _)| (n.abs_diff(wanted), *n)).map(|(_, name)| name)
}

impl Policy {
    /// The policy called `name_or_path`: a built-in name or alias, or a file.
    ///
    /// Errors: unknown name (the built-in ones are listed), or a fault in the file.
    pub fn load(name_or_path: &str) -> Result<Policy, InputError> {
        let known = library::policies();
        if !looks_like_path(name_or_path, ".toml") {
            let named =
                |e: &&library::Entry| e.name == name_or_path || e.aliases.contains(&name_or_path);
            if let Some(e) = known.iter().find(named) {
                let policy = Policy::parse(e.text, &format!("{}.toml (built in)", e.name))?;
                return Ok(Policy { places: BTreeMap::new(), ..policy });
            }
            if !Path::new(name_or_path).exists() {
                let names: Vec<&str> = known
                    .iter()
                    .flat_map(|e| [e.name].into_iter().chain(e.aliases.iter().copied()))
                    .collect();
                let error = unknown_name("policy", name_or_path, &names);
                return Err(match nearest_release(name_or_path, &names) {
                    Some(name) => error.hint(format!(
                        "the nearest release is `{name}`; a policy file of your own may name any"
                    )),
                    None => error,
                });
            }
        }
        Policy::parse(&read_file(name_or_path, MAX_BYTES)?, name_or_path)
    }

    /// The policy that `text` describes; `place` is what errors call the text.
    ///
    /// Errors: the first fault found, with line and column. Whether a setting exists is
    /// known only to a backend's catalogue and is not checked here.
    pub fn parse(text: &str, place: &str) -> Result<Policy, InputError> {
        let place = printable(place);
        check_size(text.len(), MAX_BYTES, &place)?;
        let doc = Doc::parse(text, &place)?;
        let root = doc.root();
        root.only(&["schema", "name", "about", "kernel", "set"])?;
        root.int("schema", 1, 1)?;
        let name = root.str("name")?;
        let name = checked_name(&root, "name", name)?;
        let about = root.opt_str("about")?.unwrap_or("").to_string();
        let kernel = root.str("kernel")?;
        let kernel = kernel_rev(kernel).map_err(|what| root.error_of("kernel", what))?;
        let (mut set, mut places) = (BTreeMap::new(), BTreeMap::new());
        if let Some(table) = root.opt_table("set")? {
            for (key, value) in table.scalars()? {
                let value = match value {
                    Scalar::Text(s) => Value::Name(s.to_string()),
                    Scalar::Int(n) => Value::Int(n),
                };
                set.insert(key.to_string(), value);
                places.insert(key.to_string(), table.place_of(key));
            }
        }
        Ok(Policy { name, about, kernel, set, places })
    }

    /// The policy of a `--policy` argument: `NAME[+key=value…]`.
    ///
    /// Errors: unknown name, a part that is not `key=value`.
    pub fn from_arg(arg: &str) -> Result<Policy, InputError> {
        Policy::from_arg_with(arg, &[])
    }

    /// The policy of a `--policy` argument, with settings that hold for every policy of the run (`--set`).
    /// They do not appear in the name, since they do not tell the policies of a run apart.
    ///
    /// Errors: as well, a setting that was asked for twice with different values.
    pub fn from_arg_with(arg: &str, common: &[(String, Value)]) -> Result<Policy, InputError> {
        let mut parts = arg.split('+');
        let mut policy = Policy::load(parts.next().unwrap_or(""))?;
        let mut asked = BTreeMap::new();
        for (key, value) in common {
            once(&mut asked, key, value, format!("--set {key}={value}"), "--set")?;
            policy = policy.set_for_all(key, value.clone());
        }
        for part in parts {
            let (key, value) = parse_setting(part, arg)?;
            once(&mut asked, &key, &value, format!("+{key}={value}"), arg)?;
            policy = policy.with(&key, value);
        }
        Ok(policy)
    }

    /// Returns this policy with a setting that its name does not speak of.
    #[must_use]
    pub fn set_for_all(mut self, key: &str, value: Value) -> Policy {
        self.places.remove(key);
        self.set.insert(key.to_string(), value);
        self
    }

    /// The value of `setting` as it was said; `None`: the policy says nothing of it.
    pub fn said<S: Setting>(&self, setting: &S) -> Option<&Value> {
        self.set.get(setting.key())
    }

    /// The place of an error about `key=value`, which need not be the policy's fault.
    pub fn place_of_value(&self, key: &str, value: &Value) -> String {
        let said = || format!("setting {key}={value}");
        self.places.get(key).cloned().unwrap_or_else(said)
    }

    /// Moves an error about a setting to where the policy's file says it; of several, the first that it says.
    pub fn at_setting(&self, e: InputError) -> InputError {
        let Some(Subject::Settings(names)) = &e.subject else { return e };
        let base = |key: &str| key.split(".policy").next().unwrap_or_default().to_string();
        let of = |key: &String| names.iter().any(|name| base(name) == base(key));
        match self.places.iter().find(|(key, _)| of(key)) {
            Some((_, place)) => InputError { place: place.clone(), subject: None, ..e },
            None => e,
        }
    }

    /// The place with which an error about the setting `key` begins: where the user's file says it,
    /// else the policy's name.
    pub fn place_of(&self, key: &str) -> &str {
        self.places.get(key).unwrap_or(&self.name)
    }

    /// Returns this policy with one setting changed, which its name then says.
    pub fn with(mut self, key: &str, value: Value) -> Policy {
        let mut name = String::new();
        for (i, part) in self.name.split('+').enumerate() {
            if i > 0 && part.split('=').next() == Some(key) {
                continue;
            }
            if i > 0 {
                name.push('+');
            }
            name.push_str(part);
        }
        self.name = format!("{name}+{key}={value}");
        self.set_for_all(key, value)
    }
}

/// Notes in `asked` that `words` ask for `key`.
///
/// Errors: other words asked for another value. Neither is known to be the one that was meant.
fn once(
    asked: &mut BTreeMap<String, (Value, String)>,
    key: &str,
    value: &Value,
    words: String,
    place: &str,
) -> Result<(), InputError> {
    match asked.get(key) {
        Some((before, other)) if before != value => {
            let what = format!("`{}` and `{}` differ", one_line(other), one_line(&words));
            Err(InputError::new(printable(place), what).hint("leave one of them out"))
        }
        _ => {
            asked.insert(key.to_string(), (value.clone(), words));
            Ok(())
        }
    }
}

/// The two halves of `key=value`, as `--set` and `--policy NAME+key=value` have them. A value
/// that is a whole number is one; anything else is a name.
///
/// Errors: no `=`, nothing before or after it; `whole` is what the message calls the place.
pub fn parse_setting(part: &str, whole: &str) -> Result<(String, Value), InputError> {
    match part.split_once('=').map(|(k, v)| (k.trim(), v.trim())) {
        Some((k, v)) if !k.is_empty() && !v.is_empty() => {
            let value = v.parse().map_or_else(|_| Value::Name(v.to_string()), Value::Int);
            Ok((k.to_string(), value))
        }
        _ => Err(InputError::new(
            printable(whole),
            format!("`{}` is no setting, wanted key=value", one_line(part)),
        )
        .hint("for example rate_limit_us=70")),
    }
}

/// `6.8` as a release. Errors (without place): not of this form, or older or newer than what
/// is known.
fn kernel_rev(text: &str) -> Result<KernelRev, String> {
    let two = text.split('.').count() == 2 && text.bytes().all(|c| c == b'.' || c.is_ascii_digit());
    let rev = KernelRev::of_release(text).filter(|_| two);
    let known = KernelRev::OLDEST..=KernelRev::NEWEST;
    match rev {
        None => Err(format!("is \"{}\", wanted a release such as \"6.12\"", one_line(text))),
        Some(rev) if !known.contains(&rev) => {
            Err(format!("is {rev}, wanted {} to {}", known.start(), known.end()))
        }
        Some(rev) => Ok(rev),
    }
}
