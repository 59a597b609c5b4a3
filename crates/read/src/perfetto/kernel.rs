//! Events of the kernel, by their numbers: the row of the common table that each feeds, and its fields as that row wants them.

use super::number::event;
use super::table;
use super::wire::{Message, Value};
use crate::events::{self, Fields, Row};
use std::collections::BTreeMap;

/// Most fields of an event that are read.
const FIELDS: usize = 32;
/// Most descriptors that are kept.
const DESCRIPTORS: usize = 4096;

/// An event of the file and the row that it feeds.
#[derive(Clone)]
pub(super) struct Fed {
    pub(super) row: &'static Row,
    /// Number of the event's field for each of the row's, from 1; 0: there is none.
    columns: Box<[u8]>,
}

impl Fed {
    /// Returns the way from an event with these fields, by their numbers, to the row called `name`; `None`: there is no such row.
    fn new<'a>(name: &str, fields: impl Iterator<Item = (u32, &'a str)>) -> Option<Fed> {
        let row = events::row(name)?;
        let mut columns = vec![0; row.fields.len()];
        for (number, field) in fields {
            if let Some(place) = row.place(field)
                && (1..=FIELDS as u32).contains(&number)
            {
                columns[place] = number as u8;
            }
        }
        Some(Fed { row, columns: columns.into() })
    }

    /// Returns the values of an event, as the row wants them.
    #[inline]
    pub(super) fn view<'a>(&'a self, values: &'a [Field<'a>]) -> View<'a> {
        View { columns: &self.columns, values }
    }
}

/// The events that feed a row.
pub(super) struct Feeds {
    known: Vec<Option<Fed>>,
    /// Events by the numbers that descriptors in the file give them.
    described: BTreeMap<u32, Fed>,
    /// Generic events, by name: their fields come with names, each time.
    generic: BTreeMap<Box<[u8]>, Option<&'static Row>>,
}

impl Default for Feeds {
    fn default() -> Feeds {
        let of = |row: &table::Row| Fed::new(row.name, (1..).zip(row.fields.iter().copied()));
        Feeds {
            known: table::TABLE.iter().map(of).collect(),
            described: BTreeMap::new(),
            generic: BTreeMap::new(),
        }
    }
}

impl Feeds {
    /// Whether an event of this number feeds anything.
    pub(super) fn has(&self, number: u32) -> bool {
        number == event::GENERIC || self.get(number).is_some()
    }

    /// Returns the way of the event of this number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Fed> {
        match table::place_of(number) {
            Some(place) => self.known[place].as_ref(),
            None => self.described.get(&number),
        }
    }

    /// Returns the way of the event whose row in the table has this place.
    #[inline]
    pub(super) fn at(&self, place: usize) -> Option<&Fed> {
        self.known.get(place)?.as_ref()
    }

    /// Takes in a descriptor of an event that no table has (`GenericEventDescriptor`).
    pub(super) fn describe(&mut self, bytes: &[u8]) {
        let (mut number, mut descriptor) = (0, &b""[..]);
        for (field, value) in Message::new(bytes) {
            match field {
                1 => number = value.uint(),
                2 => descriptor = value.bytes(),
                _ => {}
            }
        }
        let (mut name, mut fields) = ("", Vec::new());
        for (field, value) in Message::new(descriptor) {
            match field {
                1 => name = text(value),
                2 => {
                    let (mut called, mut number) = ("", 0);
                    for (field, value) in Message::new(value.bytes()) {
                        match field {
                            1 => called = text(value),
                            3 => number = value.uint(),
                            _ => {}
                        }
                    }
                    fields.push((number, called));
                }
                _ => {}
            }
        }
        // A descriptor may come with the group in front, as `group/name`.
        let name = name.rsplit('/').next().unwrap_or(name);
        if self.described.len() < DESCRIPTORS
            && let Some(fed) = Fed::new(name, fields.into_iter())
        {
            self.described.insert(number, fed);
        }
    }

    /// Returns the row of a generic event, and its fields as the row wants them.
    pub(super) fn generic<'a>(&mut self, message: &'a [u8]) -> Option<(&'static Row, Named<'a>)> {
        let name = Message::new(message).find(|(number, _)| *number == 1)?.1.bytes();
        let row = match self.generic.get(name) {
            Some(row) => *row,
            None => {
                let row = std::str::from_utf8(name).ok().and_then(events::row);
                if self.generic.len() < DESCRIPTORS {
                    self.generic.insert(name.into(), row);
                }
                row
            }
        }?;
        let mut named = Named::default();
        for (_, value) in Message::new(message).filter(|(number, _)| *number == 2) {
            let (mut called, mut field) = ("", Field::None);
            for (number, value) in Message::new(value.bytes()) {
                match number {
                    1 => called = text(value),
                    3 => field = Field::Text(value.bytes()),
                    4 | 5 => field = Field::Number(value.signed()),
                    _ => {}
                }
            }
            named.set(row, called, field);
        }
        Some((row, named))
    }
}

fn text(value: Value<'_>) -> &str {
    std::str::from_utf8(value.bytes()).unwrap_or("")
}

/// A value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    None,
    Number(i64),
    Text(&'a [u8]),
}

/// Reads the fields of an event, by their numbers from 1.
pub(super) fn values(message: &[u8]) -> [Field<'_>; FIELDS] {
    let mut values = [Field::None; FIELDS];
    for (number, value) in Message::new(message) {
        if let Some(field) = values.get_mut((number as usize).wrapping_sub(1)) {
            *field = match value {
                Value::Bytes(bytes) => Field::Text(bytes),
                other => Field::Number(other.signed()),
            };
        }
    }
    values
}

/// Values of an event, as a row wants them.
pub(super) struct View<'a> {
    columns: &'a [u8],
    values: &'a [Field<'a>],
}

impl<'a> View<'a> {
    #[inline]
    fn field(&self, place: usize) -> Field<'a> {
        let column = self.columns.get(place).map_or(0, |column| usize::from(*column));
        self.values.get(column.wrapping_sub(1)).copied().unwrap_or(Field::None)
    }
}

impl Fields for View<'_> {
    #[inline]
    fn number(&self, place: usize) -> Option<i64> {
        match self.field(place) {
            Field::Number(n) => Some(n),
            _ => None,
        }
    }
    #[inline]
    fn text(&self, place: usize) -> Option<&[u8]> {
        match self.field(place) {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Values of a generic event, by the places of its row.
pub(super) struct Named<'a> {
    values: [Field<'a>; FIELDS],
}

impl Default for Named<'_> {
    fn default() -> Self {
        Named { values: [Field::None; FIELDS] }
    }
}

impl<'a> Named<'a> {
    /// Sets the field that a format calls `name`, if the row wants it.
    pub(super) fn set(&mut self, row: &Row, name: &str, field: Field<'a>) {
        if let Some(place) = row.place(name).filter(|place| *place < FIELDS) {
            self.values[place] = field;
        }
    }
}

impl Fields for Named<'_> {
    fn number(&self, place: usize) -> Option<i64> {
        match self.values.get(place)? {
            Field::Number(n) => Some(*n),
            _ => None,
        }
    }
    fn text(&self, place: usize) -> Option<&[u8]> {
        match self.values.get(place)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }
}
