//! Files of results: runs, a document a line, or what another command found, in one.

use super::envelope::{self, Envelope, Opened};
use super::found::Found;
use super::value::At;
use super::{RUN, Saved};
use risetime_model::{Experiment, InputError, sha256};
use serde_json::{Value as Json, json};

/// Result of a command that runs more than one experiment, and the experiments that were asked for.
#[derive(Clone, Debug)]
pub struct Filed {
    /// The experiments, without what the command varies by itself: start states, causes left out,
    /// changes tried.
    pub experiments: Vec<Experiment>,
    /// The result.
    pub found: Found,
}

/// Contents of a file of results.
#[derive(Clone, Debug)]
pub enum Contents {
    /// Runs.
    Runs(Vec<Saved>),
    /// Result of another command.
    Filed(Box<Filed>),
}

impl Filed {
    /// Returns the result as one line of JSON.
    ///
    /// Errors: a program put a workload together, so that there is no text of it.
    pub fn to_json(&self) -> Result<String, InputError> {
        let (mut hashes, mut texts, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for experiment in &self.experiments {
            let text = experiment.to_json()?;
            hashes.push(Json::from(sha256(&text)));
            let mut document = serde_json::from_str(&text).expect("was just written");
            for place in TEXTS {
                let text = document_text(&mut document, place);
                let known = texts.iter().position(|known| *known == *text);
                let number = known.unwrap_or(texts.len());
                let own = std::mem::replace(text, number.into());
                if known.is_none() {
                    texts.push(own);
                }
            }
            all.push(document);
        }
        let result = self.found.to_value();
        let envelope = Envelope::new(self.found.kind())
            .with("experiments_sha256", hashes.into())
            .with("experiments", all.into())
            .with("texts", texts.into())
            .hashed("result", Some(sha256(&result.to_string())), result);
        Ok(envelope.sealed())
    }

    /// Reads a result from its document, which errors call `place`.
    ///
    /// Errors: no such document; one of another version; a key that is missing or holds something
    /// else; a hash that does not fit.
    pub fn from_json(text: &str, place: &str) -> Result<Filed, InputError> {
        Filed::from_value(&envelope::parse(text, place)?, place)
    }

    /// Reads a result as [`Filed::from_json`] does, from JSON that has been parsed.
    fn from_value(document: &Json, place: &str) -> Result<Filed, InputError> {
        let opened = Opened::of(document, place)?;
        opened.fits("result")?;
        opened.is_whole()?;
        Filed::of_parts(opened, place).map_err(|e| opened.told(e))
    }

    /// Reads the parts of a document that is as it was written.
    fn of_parts(opened: Opened<'_>, place: &str) -> Result<Filed, InputError> {
        let at = |key: &str| At::new(place, key);
        let wanted = || at("experiments").wanted("a list of experiments");
        let mut experiments = Vec::new();
        for (n, packed) in
            opened.part("experiments").as_array().ok_or_else(wanted)?.iter().enumerate()
        {
            let mut document = packed.clone();
            for place in TEXTS {
                let text = document_text(&mut document, place);
                let number = text.as_u64().and_then(|number| usize::try_from(number).ok());
                let known = number.and_then(|number| opened.part("texts").get(number));
                *text = known.ok_or_else(wanted)?.clone();
            }
            if opened.part("experiments_sha256")[n] != sha256(&document.to_string()) {
                return Err(at(&format!("experiments[{n}]")).wanted("the one of its hash"));
            }
            let place = format!("{place}: experiments[{n}]");
            experiments.push(Experiment::from_value(&document, &place)?);
        }
        let found = Found::from_value(opened.kind(), opened.part("result"), &at("result"))?;
        Ok(Filed { experiments, found })
    }
}

/// Places of the texts in an experiment's document.
const TEXTS: [&[&str]; 2] = [&["platform"], &["workload", "text"]];

fn document_text<'a>(document: &'a mut Json, place: &[&str]) -> &'a mut Json {
    // What is no object has no such place, and a null is no text.
    let mut here = document;
    for key in place {
        if !here.is_object() {
            *here = json!({});
        }
        here = &mut here[*key];
    }
    here
}

/// Whether `text` begins as a document of a result does.
pub fn is_saved(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"risetime\"")
}

/// Reads a file of results, whose lines errors call by `place`.
///
/// Errors: as [`Saved::from_json`]'s; no result at all; what another command found, and more beside
/// it.
pub fn read_saved(text: &str, place: &str) -> Result<Contents, InputError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut runs = Vec::new();
    let mut filed = None;
    for (n, line) in lines {
        let place = format!("{place}:{}", n + 1);
        let document = envelope::parse(line, &place)?;
        if filed.is_some() || (!runs.is_empty() && Opened::of(&document, &place)?.kind() != RUN) {
            let what = "is a second result, wanted one a file, or runs alone";
            return Err(InputError::new(place, what));
        }
        match Opened::of(&document, &place)?.kind() {
            RUN => runs.push(Saved::from_value(&document, &place)?),
            _ => filed = Some(Filed::from_value(&document, &place)?),
        }
    }
    match filed {
        Some(filed) => Ok(Contents::Filed(Box::new(filed))),
        None if runs.is_empty() => Err(InputError::new(place, "holds no result")),
        None => Ok(Contents::Runs(runs)),
    }
}
