//! A YAML file read strictly, as [`toml_in`](crate::toml_in) reads TOML: every key is asked for or is an error, and each error
//! has its line and column.
//!
//! The tree below is [`crate::yaml_tree`]'s, by its strict rules: anchors, with which a few bytes
//! may stand for gigabytes, are refused.

use crate::InputError;
use crate::input::{meant, one_line};
use crate::yaml_tree::{self, Place, Rules, Value};

pub(crate) use crate::yaml_tree::Node;

/// Rules of files that a person writes for Risetime.
const RULES: Rules = Rules { depth: 16, values: 1_000_000, strict: true };

/// A parsed file, by the name that errors have for it.
#[derive(Clone, Copy)]
pub(crate) struct Yaml<'a> {
    file: &'a str,
}

/// A mapping of the file and what a reader would call it (`task 2`; empty: the file).
pub(crate) struct Map<'n> {
    yaml: Yaml<'n>,
    what: String,
    at: Place,
    entries: &'n [(Node, Node)],
}

impl<'a> Yaml<'a> {
    /// `text`, one document of YAML; `file` is what errors call it.
    pub(crate) fn parse(text: &str, file: &'a str) -> Result<(Yaml<'a>, Node), InputError> {
        Ok((Yaml { file }, yaml_tree::parse(text, file, RULES)?))
    }

    fn error(&self, at: Place, what: impl Into<String>) -> InputError {
        yaml_tree::error(self.file, at, what)
    }

    /// `node` as a mapping, which errors call `what`.
    pub(crate) fn map<'n>(&self, node: &'n Node, what: &str) -> Result<Map<'n>, InputError>
    where
        'a: 'n,
    {
        let Value::Map(entries) = &node.value else {
            return Err(self.error(node.at, format!("{what} is {}, wanted keys", kind(node))));
        };
        let what = if what == "the file" { "" } else { what };
        Ok(Map { yaml: *self, what: what.to_string(), at: node.at, entries })
    }
}

fn kind(node: &Node) -> &'static str {
    match &node.value {
        Value::Scalar(text) if text.is_empty() => "empty",
        Value::Scalar(_) => "a single value",
        Value::List(_) => "a list",
        Value::Map(_) => "keys with values",
        Value::Alias => "an alias",
    }
}

/// The name of a key, which is a word by the rules.
fn name(key: &Node) -> &str {
    key.text().unwrap_or_default()
}

impl<'n> Map<'n> {
    /// Checks that there is no key but these; to be asked first, so that a mistyped key is not
    /// reported as a missing one.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), InputError> {
        match self.entries.iter().find(|(key, _)| !known.contains(&name(key))) {
            None => Ok(()),
            Some((key, node)) => {
                let name = name(key);
                let what = self.say(format!("unknown key `{}`", one_line(name)));
                let all = format!("known: {}", known.join(", "));
                Err(self.yaml.error(node.at, what).hint(meant(name, known, &all)))
            }
        }
    }

    fn say(&self, what: impl AsRef<str>) -> String {
        match self.what.is_empty() {
            true => what.as_ref().to_string(),
            false => format!("{}: {}", self.what, what.as_ref()),
        }
    }

    fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(known, _)| name(known) == key).map(|(_, node)| node)
    }

    /// Whether `key` is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// An error about this mapping, at its place.
    pub(crate) fn error(&self, what: impl AsRef<str>) -> InputError {
        self.yaml.error(self.at, self.say(what))
    }

    /// An error about the value of `key`.
    pub(crate) fn error_of(&self, key: &str, what: impl AsRef<str>) -> InputError {
        let at = self.get(key).map_or(self.at, |node| node.at);
        self.yaml.error(at, self.say(format!("`{key}` {}", what.as_ref())))
    }

    /// `file:line:column` of the value of `key`.
    pub(crate) fn place_of(&self, key: &str) -> String {
        let (line, column) = self.get(key).map_or(self.at, |node| node.at);
        format!("{}:{line}:{column}", self.yaml.file)
    }

    /// The text of `key`. Errors: absent, a list.
    pub(crate) fn str(&self, key: &str) -> Result<&'n str, InputError> {
        self.opt_str(key)?.ok_or_else(|| self.error(format!("`{key}` is missing")))
    }

    /// Reads a text; `None`: absent, or empty.
    pub(crate) fn opt_str(&self, key: &str) -> Result<Option<&'n str>, InputError> {
        match self.get(key) {
            None => Ok(None),
            Some(Node { value: Value::Scalar(text), .. }) => {
                Ok(Some(text.as_str()).filter(|text| !text.is_empty() && *text != "~"))
            }
            Some(node) => Err(self.error_of(key, format!("is {}, wanted a value", kind(node)))),
        }
    }

    /// A whole number within `min` and `max`; `None`: absent.
    pub(crate) fn opt_int(&self, key: &str, min: u64, max: u64) -> Result<Option<u64>, InputError> {
        let Some(text) = self.opt_str(key)? else { return Ok(None) };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u64>().ok().filter(|n| digits && (min..=max).contains(n)) {
            Some(n) => Ok(Some(n)),
            None => {
                let what =
                    format!("is \"{}\", wanted a whole number from {min} to {max}", one_line(text));
                Err(self.error_of(key, what))
            }
        }
    }

    /// Reads a whole number from `min` to `max`; an error where it is absent.
    pub(crate) fn int(&self, key: &str, min: u64, max: u64) -> Result<u64, InputError> {
        self.opt_int(key, min, max)?.ok_or_else(|| self.error(format!("`{key}` is missing")))
    }

    /// The mappings of the list `key`, each called `name` with its number; none where it is absent.
    pub(crate) fn maps(&self, key: &str, name: &str) -> Result<Vec<Map<'n>>, InputError> {
        let list = self.list(key)?;
        let map = |(i, node): (usize, &'n Node)| {
            let what = self.say(format!("{name} {}", i + 1));
            self.yaml.map(node, &what)
        };
        list.iter().enumerate().map(map).collect()
    }

    /// The texts of the list `key`, each with its place; none where it is absent or empty.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<(&'n str, String)>, InputError> {
        let list = self.list(key)?;
        let text = |node: &'n Node| match &node.value {
            Value::Scalar(text) => {
                let (line, column) = node.at;
                Ok((text.as_str(), format!("{}:{line}:{column}", self.yaml.file)))
            }
            _ => {
                let what = self.say(format!("`{key}` holds {}, wanted values", kind(node)));
                Err(self.yaml.error(node.at, what))
            }
        };
        list.iter().map(text).collect()
    }

    fn list(&self, key: &str) -> Result<&'n [Node], InputError> {
        match self.get(key).map(|node| (node, &node.value)) {
            None => Ok(&[]),
            Some((_, Value::List(list))) => Ok(list),
            Some((_, Value::Scalar(text))) if text.is_empty() => Ok(&[]),
            Some((node, _)) => Err(self.error_of(key, format!("is {}, wanted a list", kind(node)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match Yaml::parse(text, "f.yml") {
            Ok((yaml, node)) => match yaml.map(&node, "the file") {
                Ok(map) => format!("{:?}", map.maps("list", "item").err()),
                Err(e) => e.to_string(),
            },
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn values_have_their_places() {
        let (yaml, node) = Yaml::parse("a: 1\nlist:\n  - b: x\n  - b: ~\n", "f.yml").expect("good");
        let map = yaml.map(&node, "").expect("keys");
        assert_eq!(map.int("a", 0, 9).expect("a number"), 1);
        let items = map.maps("list", "item").expect("a list");
        assert_eq!(items[0].str("b").expect("a word"), "x");
        assert_eq!(items[0].place_of("b"), "f.yml:3:8");
        assert_eq!(items[1].str("b").unwrap_err().to_string(), "f.yml:4:5: item 2: `b` is missing");
        let e = map.int("a", 2, 9).unwrap_err().to_string();
        assert_eq!(e, "f.yml:1:4: `a` is \"1\", wanted a whole number from 2 to 9");
    }

    #[test]
    fn what_may_grow_without_bounds_is_refused() {
        assert_eq!(
            refused("a: &x [1]\nb: *x\n"),
            "f.yml:1:4: an anchor, wanted each value where it is used"
        );
        let deep = |n| format!("a: {}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(refused(&deep(20)), "f.yml:1:19: more than 16 lists in lists");
        assert!(refused(&deep(100_000)).starts_with("f.yml:1:"));
        assert_eq!(refused("a: 1\na: 2\n"), "f.yml:2:1: `a` is there twice");
        assert_eq!(refused("--- 1\n--- 2\n"), "f.yml:2:1: a second document, wanted one");
        assert_eq!(refused(""), "f.yml: is empty");
        assert!(
            refused("a: [1\n").starts_with("f.yml:2:1: is no YAML: "),
            "{}",
            refused("a: [1\n")
        );
    }
}
