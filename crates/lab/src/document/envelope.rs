//! Head and hashes of every document of a result: who wrote it, of what kind it is, and that nobody
//! changed it since.
//!
//! ```text
//! {"risetime":"result","schema":2,"version":"0.1.0","of":"compare",
//!  "…_sha256":"…","…":…,          a part, and its hash
//!  …
//!  "sha256":"…"}                  the hash of all that stands before it
//! ```

use risetime_model::{Code, InputError, sha256};
use serde_json::{Map, Value as Json};

/// Kind of all documents of results.
pub(crate) const KIND: &str = "result";
/// Version of their form.
pub(crate) const SCHEMA: u64 = 2;
/// Version of the tool that writes them.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A document that is being written.
pub(super) struct Envelope(Map<String, Json>);

impl Envelope {
    /// Begins the document of a result `of` this kind.
    pub(super) fn new(of: &str) -> Envelope {
        let head: [(&str, Json); 4] = [
            ("risetime", KIND.into()),
            ("schema", SCHEMA.into()),
            ("version", VERSION.into()),
            ("of", of.into()),
        ];
        Envelope(head.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }

    /// Adds a part.
    pub(super) fn with(mut self, key: &str, value: Json) -> Envelope {
        self.0.insert(key.into(), value);
        self
    }

    /// Adds a part behind `hash`, which is that part's own.
    pub(super) fn hashed(self, key: &str, hash: Option<String>, value: Json) -> Envelope {
        self.with(&format!("{key}_sha256"), hash.into()).with(key, value)
    }

    /// Returns the document as one line of JSON.
    pub(super) fn sealed(self) -> String {
        let hash = hash(&self.0);
        let Envelope(all) = self.with("sha256", hash.into());
        Json::Object(all).to_string()
    }
}

/// Returns the SHA-256 of a document without its `sha256`.
fn hash(document: &Map<String, Json>) -> String {
    let part = |(key, value): (&String, &Json)| match key.as_str() {
        "sha256" => String::new(),
        _ => format!("{}:{value}\n", Json::from(key.as_str())),
    };
    sha256(&document.iter().map(part).collect::<String>())
}

/// A document that was read.
#[derive(Clone, Copy)]
pub(super) struct Opened<'a> {
    document: &'a Json,
    place: &'a str,
}

impl<'a> Opened<'a> {
    /// Opens a document, which errors call `place`.
    ///
    /// Errors: it is no result, or one of another form.
    pub(super) fn of(document: &'a Json, place: &'a str) -> Result<Opened<'a>, InputError> {
        let opened = Opened { document, place };
        if document["risetime"] != KIND {
            return Err(InputError::new(place, "is no result of Risetime"));
        }
        if document["schema"] != SCHEMA {
            let what = format!("schema: found {}, wanted {SCHEMA}", document["schema"]);
            return Err(InputError::new(place, what).hint(opened.writer()));
        }
        Ok(opened)
    }

    /// Says who wrote the document, and who can show it.
    fn writer(self) -> String {
        match self.document["version"].as_str() {
            Some(wrote) if wrote != VERSION => {
                format!("Risetime {wrote} wrote it, this is {VERSION}; that one can show it")
            }
            _ => format!("another state of Risetime {VERSION} wrote it, which can show it"),
        }
    }

    /// The kind of its result.
    pub(super) fn kind(self) -> &'a str {
        self.document["of"].as_str().unwrap_or_default()
    }

    /// The part called `key`.
    pub(super) fn part(self, key: &str) -> &'a Json {
        &self.document[key]
    }

    /// Checks that the part called `key` is the one whose hash stands before it.
    ///
    /// Errors: somebody changed it.
    pub(super) fn fits(self, key: &str) -> Result<(), InputError> {
        let found = sha256(&self.part(key).to_string());
        self.unchanged(self.part(&format!("{key}_sha256")) == &found, || {
            format!("{key}: is not the one of {key}_sha256")
        })
    }

    /// Checks that the whole document is as it was written.
    ///
    /// Errors: somebody changed it.
    pub(super) fn is_whole(self) -> Result<(), InputError> {
        let found = self.document.as_object().map(hash);
        self.unchanged(found.is_some_and(|found| self.document["sha256"] == found), || {
            "is not the one of its sha256".into()
        })
    }

    fn unchanged(self, is: bool, what: impl Fn() -> String) -> Result<(), InputError> {
        let hint = "the document was changed after it was written";
        if is { Ok(()) } else { Err(InputError::new(self.place, what()).hint(hint)) }
    }

    /// The fault `e` of a document that is as it was written: whose fault it may be is said, if
    /// another version wrote it.
    pub(super) fn told(self, e: InputError) -> InputError {
        match self.document["version"] == VERSION {
            true => e,
            false => e.hint(self.writer()),
        }
    }
}

/// Parses a line, which errors call `place`.
///
/// Errors: it is no JSON.
pub(super) fn parse(text: &str, place: &str) -> Result<Json, InputError> {
    serde_json::from_str(text)
        .map_err(|e| InputError::new(place, format!("is no JSON: {e}")).code(Code::Syntax))
}
