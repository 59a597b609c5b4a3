//! An experiment as a document: JSON in which everything stands that its runs depend on, and the hash of it.
//!
//! ```text
//! {"risetime":"experiment","schema":1,
//!  "platform":"schema = 1\n…",                          the platform file
//!  "workload":{"name":"ui","text":"{\"tasks\": …}"},     rt-app's JSON
//!  "policy":{"name":"linux-7.2","kernel":"7.2","set":{}},
//!  "settings":{"governor":"schedutil",…},                all of them, resolved
//!  "duration_ns":10000000000,"phase_ns":0,"seed":1}
//! ```
//!
//! Files of the user that the experiment came from are not needed to read it back. Places of faults in the workload count in its
//! text then, and lines of the policy file are gone.

use super::Experiment;
use crate::{InputError, Platform, Policy, Settings, Value, Workload};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Version of the document's form.
const SCHEMA: u64 = 1;

impl Experiment {
    /// Returns the experiment as one line of JSON. Reading it back gives the same runs.
    ///
    /// Errors: a program put its workload together, or changed it after it was read, so that there is no text of it.
    pub fn to_json(&self) -> Result<String, InputError> {
        let Experiment { platform, workload, policy, settings, duration, phase, seed } = self;
        // A program may have put the workload together, or changed it after it was read.
        let same = |text: &&str| {
            let again = Workload::parse_named(text, &workload.name, &workload.name);
            again.is_ok_and(|again| without_places(&again) == without_places(workload))
        };
        let text = workload.source.text().filter(same).ok_or_else(|| {
            InputError::new(&workload.name, "a workload that is not as any text of it")
        })?;
        let document = json!({
            "risetime": "experiment",
            "schema": SCHEMA,
            "platform": platform.to_toml(),
            "workload": { "name": workload.name, "text": text },
            "policy": {
                "name": policy.name,
                "kernel": policy.kernel.to_string(),
                "set": values_to_json(&policy.set),
            },
            "settings": values_to_json(settings),
            "duration_ns": duration.0,
            "phase_ns": phase.0,
            "seed": seed,
        });
        Ok(document.to_string())
    }

    /// Returns the SHA-256 of the document, in hexadecimal digits: equal for experiments whose runs are the same by their files.
    ///
    /// Errors: those of [`Experiment::to_json`].
    pub fn hash(&self) -> Result<String, InputError> {
        Ok(sha256(&self.to_json()?))
    }

    /// Reads an experiment from its document, which errors call `place`.
    ///
    /// Errors: no such document; one of another version; a key that is missing or holds something else; the first fault of
    /// platform or workload.
    pub fn from_json(text: &str, place: &str) -> Result<Experiment, InputError> {
        let document: Json = serde_json::from_str(text)
            .map_err(|e| InputError::new(place, format!("is no JSON: {e}")))?;
        Experiment::from_value(&document, place)
    }

    /// Reads an experiment as [`Experiment::from_json`] does, from JSON that has been parsed.
    ///
    /// Errors: as there.
    pub fn from_value(document: &Json, place: &str) -> Result<Experiment, InputError> {
        let fields = Fields { of: document, place, path: "" };
        if fields.text("risetime")? != "experiment" {
            return Err(InputError::new(place, "is no experiment of Risetime"));
        }
        let schema = fields.number("schema")?;
        if schema != SCHEMA {
            let what = format!("schema: found {schema}, wanted {SCHEMA}");
            return Err(InputError::new(place, what).hint("another version of Risetime wrote it"));
        }
        let [workload, policy] = ["workload", "policy"].map(|key| fields.inner(key));
        let kernel = policy.text("kernel")?;
        let kernel = KernelRev::of_release(kernel)
            .ok_or_else(|| policy.wrong("kernel", "a release such as 7.2"))?;
        let of = |what: &str| format!("{place}: {what}");
        Ok(Experiment {
            platform: Arc::new(Platform::parse(fields.text("platform")?, &of("platform"))?),
            workload: Arc::new(Workload::parse_named(
                workload.text("text")?,
                &of("workload"),
                workload.text("name")?,
            )?),
            policy: Policy {
                name: policy.text("name")?.to_string(),
                about: String::new(),
                kernel,
                set: policy.values("set")?,
                places: BTreeMap::new(),
            },
            settings: Settings::from(fields.values("settings")?),
            duration: Span(fields.number("duration_ns")?),
            phase: Span(fields.number("phase_ns")?),
            seed: fields.number("seed")?,
        })
    }
}

/// Returns the SHA-256 of a text, in hexadecimal digits.
pub fn sha256(text: &str) -> String {
    let mut hash = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// The workload without what only messages need: lines of its file, and doubts about them.
fn without_places(workload: &Workload) -> Workload {
    Workload { places: BTreeMap::new(), doubts: Vec::new(), ..workload.clone() }
}

fn values_to_json<'a>(values: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Json {
    let one = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Int(n) => Json::from(*n),
            Value::Name(name) => Json::from(name.as_str()),
        };
        (name.clone(), value)
    };
    Json::Object(values.into_iter().map(one).collect::<Map<_, _>>())
}

/// The keys of an object of the document.
struct Fields<'a> {
    of: &'a Json,
    place: &'a str,
    /// Key of the object, with its point.
    path: &'static str,
}

impl<'a> Fields<'a> {
    fn wrong(&self, key: &str, wanted: &str) -> InputError {
        InputError::new(self.place, format!("{}{key}: wanted {wanted}", self.path))
    }

    fn inner(&self, key: &'static str) -> Fields<'a> {
        let path = if key == "policy" { "policy." } else { "workload." };
        Fields { of: &self.of[key], place: self.place, path }
    }

    fn text(&self, key: &str) -> Result<&'a str, InputError> {
        self.of[key].as_str().ok_or_else(|| self.wrong(key, "a text"))
    }

    fn number(&self, key: &str) -> Result<u64, InputError> {
        self.of[key].as_u64().ok_or_else(|| self.wrong(key, "a whole number"))
    }

    fn values(&self, key: &str) -> Result<BTreeMap<String, Value>, InputError> {
        let wrong = || self.wrong(key, "settings, each a whole number or a name");
        let object = self.of[key].as_object().ok_or_else(wrong)?;
        let one = |(name, value): (&String, &Json)| {
            let value = match value {
                Json::String(name) => Value::Name(name.clone()),
                number => Value::Int(number.as_i64().ok_or_else(wrong)?),
            };
            Ok((name.clone(), value))
        };
        object.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        let set = BTreeMap::from([
            ("rate_limit_us".to_string(), Value::Int(-1)),
            ("governor".to_string(), Value::Name("a \"b\"\n".into())),
        ]);
        let policy = Policy { set: set.clone(), ..Policy::load("linux-6.12").unwrap() };
        Experiment {
            platform: Arc::new(Platform::load("pixel6").unwrap().with_hz(300)),
            workload: Arc::new(Workload::load("phone").unwrap()),
            policy,
            settings: set.into(),
            duration: Span(u64::MAX),
            phase: Span(1_500_250),
            seed: u64::MAX,
        }
    }

    #[test]
    fn an_experiment_reads_back_as_it_was() {
        let e = experiment();
        let text = e.to_json().unwrap();
        assert!(!text.contains('\n'), "one line");
        let back = Experiment::from_json(&text, "x").unwrap();
        assert_eq!(back.platform, e.platform);
        assert_eq!(without_places(&back.workload), without_places(&e.workload));
        assert_eq!((&back.policy.name, back.policy.kernel), (&e.policy.name, e.policy.kernel));
        assert_eq!((&back.policy.set, &back.settings), (&e.policy.set, &e.settings));
        assert_eq!((back.duration, back.phase, back.seed), (e.duration, e.phase, e.seed));
        assert_eq!((back.to_json().unwrap(), back.hash()), (text, e.hash()));
        let other = Experiment { seed: 1, ..e.clone() };
        assert_ne!(other.hash(), e.hash());
    }

    #[test]
    fn what_is_wrong_in_a_document_is_said_with_its_key() {
        let text = experiment().to_json().unwrap();
        let error = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Experiment::from_json(&text.replacen(from, to, 1), "e.json").unwrap_err().to_string()
        };
        for (from, to, wanted) in [
            ("{\"risetime\"", "{\"", "e.json: is no JSON"),
            ("\"experiment\"", "\"run\"", "e.json: is no experiment of Risetime"),
            ("\"schema\":1", "\"schema\":2", "e.json: schema: found 2, wanted 1"),
            ("\"schema\":1", "\"scheme\":1", "e.json: schema: wanted a whole number"),
            (
                "\"kernel\":\"6.12\"",
                "\"kernel\":\"new\"",
                "e.json: policy.kernel: wanted a release",
            ),
            ("\"text\":", "\"txt\":", "e.json: workload.text: wanted a text"),
            (
                "\"rate_limit_us\":-1",
                "\"rate_limit_us\":0.5",
                "e.json: policy.set: wanted settings",
            ),
            ("schema = 1\\n", "schema = 9\\n", "e.json: platform"),
            ("\"phase_ns\":1500250", "\"phase_ns\":-1", "e.json: phase_ns: wanted a whole number"),
        ] {
            let found = error(from, to);
            assert!(found.starts_with(wanted), "{found:?}, wanted {wanted:?}");
        }
    }

    #[test]
    fn a_workload_that_a_program_made_has_no_document() {
        let wanted = "phone: a workload that is not as any text of it";
        let changes: [fn(&mut Workload); 2] =
            [|w| w.source = Default::default(), |w| drop(w.tasks.pop())];
        for change in changes {
            let mut e = experiment();
            change(Arc::make_mut(&mut e.workload));
            assert_eq!(e.to_json().unwrap_err().to_string(), wanted);
        }
    }
}
