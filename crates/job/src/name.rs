//! Names that many things carry: tasks, phases.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// A name, as small to pass on as a reference, and there for as long as the program runs.
///
/// Each text is kept once and never given back: names are as many as a person or a kernel writes. Order and equality are those of
/// the texts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(&'static str);

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Name {
    /// Returns the name `text`.
    pub fn new(text: &str) -> Name {
        // Whoever panicked while it held the set left it whole.
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(text) {
            return Name(known);
        }
        let kept: &'static str = Box::leak(text.into());
        names.insert(kept);
        Name(kept)
    }

    /// Returns the name `text`, which the program itself has.
    pub const fn of(text: &'static str) -> Name {
        Name(text)
    }

    /// Returns its text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0.into()
    }
}

impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        self.0 == other
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// The text, quoted.
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_whoever_asks() {
        let ask = || Name::new(&format!("work{}", "er-3"));
        let [here, there] = [ask(), std::thread::spawn(ask).join().unwrap()];
        assert!(std::ptr::eq(here.as_str(), there.as_str()));
        assert_eq!(
            (here, &*format!("{here:?} {here:<9}|")),
            (Name::of("worker-3"), "\"worker-3\" worker-3 |")
        );
        assert_ne!(here, Name::new("worker-4"));
    }
}
