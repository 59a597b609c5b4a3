//! Values in documents: what each is in JSON, and how it is read back.
//!
//! ```text
//! record      an object, a key a field          no number: null; "inf", "-inf"
//! list        an array                          word of a table           a text, looked up when it is read
//! pair        an array of two                   nothing (`None`)          null
//! ```

use risetime_kernel::units::{CpuId, KHz, Span, TaskId};
use risetime_model::{InputError, Name, Settings, Value as Setting};
use serde_json::{Map, Value as Json};

/// A place in a document, for faults: the document's name, and the path of keys.
#[derive(Clone)]
pub(crate) struct At<'a> {
    name: &'a str,
    path: String,
}

impl<'a> At<'a> {
    /// Returns the place of a whole document that faults call `name`.
    pub(crate) fn new(name: &'a str, path: &str) -> At<'a> {
        At { name, path: path.to_string() }
    }

    /// Returns the place of `key` in this object.
    pub(crate) fn key(&self, key: &str) -> At<'a> {
        At { name: self.name, path: format!("{}.{key}", self.path) }
    }

    /// Returns the place of an item of this list.
    pub(super) fn item(&self, number: usize) -> At<'a> {
        At { name: self.name, path: format!("{}[{number}]", self.path) }
    }

    /// A fault here: something else was wanted.
    pub(crate) fn wanted(&self, wanted: &str) -> InputError {
        InputError::new(self.name, format!("{}: wanted {wanted}", self.path))
    }
}

/// A value that a document can hold.
pub(crate) trait Document: Sized {
    /// Returns the value in JSON.
    fn to_value(&self) -> Json;

    /// Reads the value back.
    ///
    /// Errors: something else stands there.
    fn from_value(json: &Json, at: &At<'_>) -> Result<Self, InputError>;
}

/// Makes documents of records: every field is a key.
macro_rules! records {
    ($($record:ident { $($field:ident),* $(,)? })*) => {
        $(impl $crate::document::value::Document for $record {
            fn to_value(&self) -> serde_json::Value {
                let $record { $($field),* } = self;
                let mut object = serde_json::Map::new();
                $(object.insert(stringify!($field).into(), $field.to_value());)*
                serde_json::Value::Object(object)
            }

            fn from_value(
                json: &serde_json::Value,
                at: &$crate::document::value::At<'_>,
            ) -> Result<Self, risetime_model::InputError> {
                let object = json.as_object().ok_or_else(|| at.wanted("an object"))?;
                Ok($record {
                    $($field: {
                        let at = at.key(stringify!($field));
                        let value = object.get(stringify!($field));
                        let value = value.ok_or_else(|| at.wanted("this key"))?;
                        $crate::document::value::Document::from_value(value, &at)?
                    },)*
                })
            }
        })*
    };
}
pub(crate) use records;

/// Makes documents of words of a table.
macro_rules! words {
    ($($name:ty, $to:expr, $of:expr, $wanted:literal;)*) => {
        $(impl $crate::document::value::Document for $name {
            fn to_value(&self) -> serde_json::Value {
                let to: fn(&$name) -> &str = $to;
                to(self).into()
            }
            fn from_value(
                json: &serde_json::Value,
                at: &$crate::document::value::At<'_>,
            ) -> Result<Self, risetime_model::InputError> {
                let of: fn(&str) -> Option<$name> = $of;
                json.as_str().and_then(of).ok_or_else(|| at.wanted($wanted))
            }
        })*
    };
}
pub(crate) use words;

/// Reads `key` of a record.
pub(crate) fn field<T: Document>(json: &Json, at: &At<'_>, key: &str) -> Result<T, InputError> {
    T::from_value(&json[key], &at.key(key))
}

/// Makes documents of identifiers and quantities that are a whole number each.
macro_rules! numbers {
    ($($name:ident($whole:ident))*) => {
        $(impl Document for $name {
            fn to_value(&self) -> Json {
                self.0.into()
            }
            fn from_value(json: &Json, at: &At<'_>) -> Result<Self, InputError> {
                $whole::from_value(json, at).map($name)
            }
        })*
    };
}

numbers! { CpuId(u32) TaskId(u32) KHz(u64) Span(u64) }

macro_rules! whole {
    ($($whole:ident)*) => {
        $(impl Document for $whole {
            fn to_value(&self) -> Json {
                (*self).into()
            }
            fn from_value(json: &Json, at: &At<'_>) -> Result<Self, InputError> {
                let number = json.as_u64().and_then(|n| $whole::try_from(n).ok());
                number.ok_or_else(|| at.wanted("a whole number"))
            }
        })*
    };
}

whole! { u8 u32 u64 usize }

impl Document for f64 {
    fn to_value(&self) -> Json {
        match self.is_infinite() {
            true => self.to_string().into(),
            false => (*self).into(),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<f64, InputError> {
        match json {
            Json::Null => Ok(f64::NAN),
            Json::String(text) if text == "inf" => Ok(f64::INFINITY),
            Json::String(text) if text == "-inf" => Ok(f64::NEG_INFINITY),
            number => number.as_f64().ok_or_else(|| at.wanted("a number or null")),
        }
    }
}

impl Document for bool {
    fn to_value(&self) -> Json {
        (*self).into()
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<bool, InputError> {
        json.as_bool().ok_or_else(|| at.wanted("true or false"))
    }
}

impl Document for String {
    fn to_value(&self) -> Json {
        self.as_str().into()
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<String, InputError> {
        json.as_str().map(String::from).ok_or_else(|| at.wanted("a text"))
    }
}

/// A text that lives as long as the program.
impl Document for &'static str {
    fn to_value(&self) -> Json {
        (*self).into()
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<&'static str, InputError> {
        json.as_str().map(|text| Name::new(text).as_str()).ok_or_else(|| at.wanted("a text"))
    }
}

impl<T: Document> Document for Option<T> {
    fn to_value(&self) -> Json {
        self.as_ref().map_or(Json::Null, Document::to_value)
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Option<T>, InputError> {
        match json {
            Json::Null => Ok(None),
            value => T::from_value(value, at).map(Some),
        }
    }
}

impl<T: Document> Document for Vec<T> {
    fn to_value(&self) -> Json {
        self.iter().map(Document::to_value).collect()
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Vec<T>, InputError> {
        let list = json.as_array().ok_or_else(|| at.wanted("a list"))?;
        list.iter().enumerate().map(|(n, item)| T::from_value(item, &at.item(n))).collect()
    }
}

/// Makes documents of tuples: lists of so many.
macro_rules! tuples {
    ($($many:literal ($($place:tt $item:ident $name:ident),*);)*) => {
        $(impl<$($item: Document),*> Document for ($($item,)*) {
            fn to_value(&self) -> Json {
                Json::Array(vec![$(self.$place.to_value()),*])
            }
            fn from_value(json: &Json, at: &At<'_>) -> Result<Self, InputError> {
                match json.as_array().map(Vec::as_slice) {
                    Some([$($name),*]) => {
                        Ok(($($item::from_value($name, &at.item($place))?,)*))
                    }
                    _ => Err(at.wanted(concat!("a list of ", $many))),
                }
            }
        })*
    };
}

tuples! {
    "two" (0 A a, 1 B b);
    "three" (0 A a, 1 B b, 2 C c);
    "four" (0 A a, 1 B b, 2 C c, 3 D d);
}

impl Document for Setting {
    fn to_value(&self) -> Json {
        match self {
            Setting::Int(n) => (*n).into(),
            Setting::Name(name) => name.as_str().into(),
        }
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Setting, InputError> {
        match json {
            Json::String(name) => Ok(Setting::Name(name.clone())),
            number => {
                number.as_i64().map(Setting::Int).ok_or_else(|| at.wanted("a number or name"))
            }
        }
    }
}

impl Document for Settings {
    fn to_value(&self) -> Json {
        let one = |(name, value): (&String, &Setting)| (name.clone(), value.to_value());
        Json::Object(self.iter().map(one).collect::<Map<_, _>>())
    }
    fn from_value(json: &Json, at: &At<'_>) -> Result<Settings, InputError> {
        let object = json.as_object().ok_or_else(|| at.wanted("an object"))?;
        let one = |(name, value): (&String, &Json)| {
            Ok((name.clone(), Setting::from_value(value, &at.key(name))?))
        };
        object.iter().map(one).collect()
    }
}
