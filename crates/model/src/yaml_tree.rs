//! A YAML text as a tree of values with their places, below whoever reads YAML strictly (`yaml_in`) or
//! takes what another program wrote (`risetime import`).
//!
//! From the parser's events, so that depth and number of values are bounded before anything is
//! built.

use crate::InputError;
use crate::input::{one_line, printable};
use saphyr_parser::{Event, Marker, Parser};

/// Place of a value: line and column, from 1.
pub type Place = (usize, usize);

/// A value, and where it is.
#[derive(Debug)]
pub struct Node {
    /// Place of the value.
    pub at: Place,
    /// The value.
    pub value: Value,
}

/// A value of a text.
#[derive(Debug)]
pub enum Value {
    /// A text, number or nothing, as it is written.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with values.
    Map(Vec<(Node, Node)>),
    /// A value that stands elsewhere in the text.
    Alias,
}

/// Rules by which a text is taken.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Lists in lists, at most.
    pub depth: usize,
    /// Values, at most.
    pub values: usize,
    /// True if anchors, aliases, a second document, keys that are no word or are there twice are
    /// faults; else an alias is [`Value::Alias`], and what stands behind the first document is left
    /// out.
    pub strict: bool,
}

/// A list that is being built, or a mapping with its key whose value comes next.
enum Open {
    List(Vec<Node>),
    Map(Vec<(Node, Node)>, Option<Node>),
}

/// Reads the values of a text that errors call `file`.
///
/// Errors: no YAML; nothing in it; what breaks a rule, with its place.
pub fn parse(text: &str, file: &str, rules: Rules) -> Result<Node, InputError> {
    let building = Building { file, rules, open: Vec::new(), root: None, documents: 0, values: 0 };
    building.all(text)
}

/// The fault `what` at a place of `file`.
pub fn error(file: &str, (line, column): Place, what: impl Into<String>) -> InputError {
    InputError::new(format!("{file}:{line}:{column}"), what)
}

struct Building<'a> {
    file: &'a str,
    rules: Rules,
    open: Vec<(Place, Open)>,
    root: Option<Node>,
    documents: usize,
    values: usize,
}

impl Building<'_> {
    fn error(&self, at: Place, what: impl Into<String>) -> InputError {
        error(self.file, at, what)
    }

    fn all(mut self, text: &str) -> Result<Node, InputError> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|e| {
                self.error(place(e.marker()), format!("is no YAML: {}", printable(e.info())))
            })?;
            if self.root.is_some() && !self.rules.strict {
                break;
            }
            self.one(event, place(&span.start))?;
        }
        self.root.ok_or_else(|| InputError::new(self.file, "is empty"))
    }

    /// Takes an event.
    fn one(&mut self, event: Event<'_>, at: Place) -> Result<(), InputError> {
        let done = match event {
            Event::Scalar(text, _, anchor, _) => {
                self.no_anchor(anchor, at)?;
                Node { at, value: Value::Scalar(text.into_owned()) }
            }
            Event::SequenceStart(anchor, _) => {
                return self.begin(anchor, at, Open::List(Vec::new()));
            }
            Event::MappingStart(anchor, _) => {
                return self.begin(anchor, at, Open::Map(Vec::new(), None));
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((at, Open::List(list))) => Node { at, value: Value::List(list) },
                Some((at, Open::Map(map, _))) => Node { at, value: Value::Map(map) },
                None => return Ok(()),
            },
            Event::Alias(_) if self.rules.strict => {
                return Err(self.error(at, "an alias, wanted the value itself"));
            }
            Event::Alias(_) => Node { at, value: Value::Alias },
            Event::DocumentStart(_) => {
                self.documents += 1;
                return match self.documents > 1 {
                    true => Err(self.error(at, "a second document, wanted one")),
                    false => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        self.values += 1;
        if self.values > self.rules.values {
            return Err(self.error(at, format!("more than {} values", self.rules.values)));
        }
        self.put(done)
    }

    /// Begins a list or a mapping.
    fn begin(&mut self, anchor: usize, at: Place, open: Open) -> Result<(), InputError> {
        self.no_anchor(anchor, at)?;
        if self.open.len() >= self.rules.depth {
            return Err(self.error(at, format!("more than {} lists in lists", self.rules.depth)));
        }
        if self.rules.strict && matches!(self.open.last(), Some((_, Open::Map(_, None)))) {
            return Err(self.error(at, "a key that is a list, wanted a word"));
        }
        self.open.push((at, open));
        Ok(())
    }

    /// Puts a value where it belongs.
    fn put(&mut self, done: Node) -> Result<(), InputError> {
        let (file, strict) = (self.file, self.rules.strict);
        match self.open.last_mut() {
            None => self.root = Some(done),
            Some((_, Open::List(list))) => list.push(done),
            Some((_, Open::Map(map, key))) => match key.take() {
                Some(key) => map.push((key, done)),
                None => {
                    let twice =
                        |name: &str| map.iter().any(|(known, _)| known.text() == Some(name));
                    if let Some(name) = done.text().filter(|name| strict && twice(name)) {
                        let what = format!("`{}` is there twice", one_line(name));
                        return Err(error(file, done.at, what));
                    }
                    *key = Some(done);
                }
            },
        }
        Ok(())
    }

    fn no_anchor(&self, anchor: usize, at: Place) -> Result<(), InputError> {
        match anchor > 0 && self.rules.strict {
            true => Err(self.error(at, "an anchor, wanted each value where it is used")),
            false => Ok(()),
        }
    }
}

impl Node {
    /// Returns the text of a single value; `None`: it is none.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Lists the keys of a mapping with their values; none of anything else.
    pub fn pairs(&self) -> &[(Node, Node)] {
        match &self.value {
            Value::Map(pairs) => pairs,
            _ => &[],
        }
    }

    /// Lists the values of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(list) => list,
            _ => &[],
        }
    }

    /// Returns the value of `key` of a mapping; `None`: there is none.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.pairs().iter().find(|(known, _)| known.text() == Some(key)).map(|(_, value)| value)
    }
}

fn place(at: &Marker) -> Place {
    (at.line(), at.col() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, strict: bool) -> Result<Node, String> {
        let rules = Rules { depth: 3, values: 20, strict };
        parse(text, "f.yml", rules).map_err(|e| e.to_string())
    }

    /// What another program wrote is taken where a person's file would be a fault.
    #[test]
    fn rules_decide_about_anchors_twins_and_documents() {
        for (text, fault) in [
            ("a: &x 1\n", "f.yml:1:4: an anchor, wanted each value where it is used"),
            ("a: 1\na: 2\n", "f.yml:2:1: `a` is there twice"),
            ("--- {a: 1}\n--- {b: 1}\n", "f.yml:2:1: a second document, wanted one"),
            ("? [1]\n: 2\n", "f.yml:1:3: a key that is a list, wanted a word"),
        ] {
            assert_eq!(taken(text, true).err().as_deref(), Some(fault));
            assert!(taken(text, false).is_ok(), "{text}");
        }
        let node = taken("a: &x {b: 1}\nc: *x\n", false).expect("an alias is passed over");
        assert!(matches!(node.get("c"), Some(Node { value: Value::Alias, at: (2, 4) })));
        assert_eq!(node.get("a").and_then(|a| a.get("b")).and_then(Node::text), Some("1"));
    }

    #[test]
    fn every_reader_is_bounded() {
        for strict in [true, false] {
            let deep = taken("[[[[1]]]]", strict).err();
            assert_eq!(deep.as_deref(), Some("f.yml:1:4: more than 3 lists in lists"));
            let long = format!("[{}]", "1,".repeat(40));
            assert!(taken(&long, strict).is_err_and(|e| e.ends_with("more than 20 values")));
            assert_eq!(taken("", strict).err().as_deref(), Some("f.yml: is empty"));
        }
    }
}
