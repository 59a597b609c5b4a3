//! Items: a setting as code knows it, with the kind of its values.

use super::{Default, Param, Range, Value, by_freq};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A setting that [`Settings::get`](super::Settings::get) can be asked for.
pub trait Setting {
    /// Form in which code has a value.
    type Read<'a>;
    /// The name of the setting.
    fn key(&self) -> &'static str;
    /// The value as code has it; `None`: it is of another kind.
    fn read(value: &Value) -> Option<Self::Read<'_>>;
    /// Whether values of this range are of the setting's kind.
    fn fits(range: Range) -> bool;
}

/// A setting whose values are whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Int(pub Param);

/// A setting whose values are names.
#[derive(Clone, Copy, Debug)]
pub struct Name(pub Param);

/// A setting whose values are whole numbers, or names.
#[derive(Clone, Copy, Debug)]
pub struct IntOrName(pub Param);

/// A setting whose values are whole numbers by frequency.
#[derive(Clone, Copy, Debug)]
pub struct ByFreq(pub Param);

/// The name of a setting of kind `S` that another crate declares, or that belongs to an experiment
/// and not to a backend's catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Key<S>(&'static str, PhantomData<S>);

impl<S> Key<S> {
    /// The key of the setting called `name`.
    pub const fn new(name: &'static str) -> Key<S> {
        Key(name, PhantomData)
    }
    /// The name of the setting.
    pub const fn name(&self) -> &'static str {
        self.0
    }
}

impl Int {
    /// The item described by `param`. Panics (at compile time, for a constant) if its values are of another kind.
    pub const fn new(param: Param) -> Int {
        assert!(matches!(param.range, Range::Int(..)), "the range is not one of whole numbers");
        assert!(!matches!(param.default, Default::Name(_)), "the default is a name");
        Int(param)
    }
}

impl Name {
    /// The item described by `param`. Panics (at compile time, for a constant) if its values are of another kind.
    pub const fn new(param: Param) -> Name {
        assert!(matches!(param.range, Range::OneOf(_)), "the range is not one of names");
        assert!(!matches!(param.default, Default::Int(_)), "the default is a number");
        Name(param)
    }
}

impl IntOrName {
    /// The item described by `param`. Panics (at compile time, for a constant) if its values are of another kind.
    pub const fn new(param: Param) -> IntOrName {
        assert!(matches!(param.range, Range::IntOr(..)), "the range is not one of both");
        IntOrName(param)
    }
}

impl ByFreq {
    /// The item described by `param`. Panics (at compile time, for a constant) if its values are of another kind.
    pub const fn new(param: Param) -> ByFreq {
        assert!(matches!(param.range, Range::ByFreq(..)), "the range is not one by frequency");
        ByFreq(param)
    }
}

fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::Name(_) => None,
    }
}

fn name(value: &Value) -> Option<&str> {
    match value {
        Value::Int(_) => None,
        Value::Name(name) => Some(name),
    }
}

/// The values by frequency: from which frequency on, in kHz, which value; the first from 0.
fn values_by_freq(value: &Value) -> Option<Vec<(u64, i64)>> {
    match value {
        Value::Int(n) => Some(vec![(0, *n)]),
        Value::Name(text) => by_freq(text),
    }
}

macro_rules! items {
    ($($Item:ident: $Read:ty, $read:expr, ($Range:pat);)*) => {$(
        impl Setting for $Item {
            type Read<'a> = $Read;
            fn key(&self) -> &'static str {
                self.0.name
            }
            fn read(value: &Value) -> Option<Self::Read<'_>> {
                $read(value)
            }
            fn fits(range: Range) -> bool {
                matches!(range, $Range)
            }
        }

        impl Deref for $Item {
            type Target = Param;
            fn deref(&self) -> &Param {
                &self.0
            }
        }

        impl fmt::Display for $Item {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.name)
            }
        }
    )*};
}

items! {
    Int: i64, int, (Range::Int(..));
    Name: &'a str, name, (Range::OneOf(_));
    IntOrName: &'a Value, Some, (Range::IntOr(..));
    ByFreq: Vec<(u64, i64)>, values_by_freq, (Range::ByFreq(..));
}

impl Setting for Param {
    type Read<'a> = &'a Value;
    fn key(&self) -> &'static str {
        self.name
    }
    fn read(value: &Value) -> Option<&Value> {
        Some(value)
    }
    fn fits(_: Range) -> bool {
        true
    }
}

impl<S: Setting> Setting for Key<S> {
    type Read<'a> = S::Read<'a>;
    fn key(&self) -> &'static str {
        self.0
    }
    fn read(value: &Value) -> Option<S::Read<'_>> {
        S::read(value)
    }
    fn fits(range: Range) -> bool {
        S::fits(range)
    }
}

impl<S> fmt::Display for Key<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
