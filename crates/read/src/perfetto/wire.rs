//! Protobuf's wire format: a message as a walk over its fields, each a number and a value that borrows from the bytes.
//!
//! Nothing is allocated. A walk ends at the first field that no message can have, and says where.
//! Source: protobuf.dev, Encoding.

/// A value of a field, as it is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A varint: whole numbers, flags, words of a list.
    Number(u64),
    /// Eight bytes: `fixed64`, `double`.
    Eight(u64),
    /// Four bytes: `fixed32`, `float`.
    Four(u32),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number; 0 of what is none.
    #[inline]
    pub(super) fn number(self) -> u64 {
        match self {
            Value::Number(n) | Value::Eight(n) => n,
            Value::Four(n) => n.into(),
            Value::Bytes(_) => 0,
        }
    }

    /// The number as a signed one (`int32`, `int64`).
    #[inline]
    pub(super) fn signed(self) -> i64 {
        self.number() as i64
    }

    /// The number as a signed one of 32 bits.
    #[inline]
    pub(super) fn int(self) -> i32 {
        self.number() as i32
    }

    /// The number as an unsigned one of 32 bits.
    #[inline]
    pub(super) fn uint(self) -> u32 {
        self.number() as u32
    }

    /// The number with a fraction.
    pub(super) fn float(self) -> f64 {
        match self {
            Value::Eight(n) => f64::from_bits(n),
            Value::Four(n) => f32::from_bits(n).into(),
            other => other.signed() as f64,
        }
    }

    /// The bytes; none of a number.
    #[inline]
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

/// A walk over the fields of a message.
#[derive(Clone, Debug)]
pub(super) struct Message<'a> {
    all: &'a [u8],
    at: usize,
    broken: Option<usize>,
}

impl<'a> Message<'a> {
    /// A walk over the fields of `all`.
    #[inline]
    pub(super) fn new(all: &'a [u8]) -> Message<'a> {
        Message { all, at: 0, broken: None }
    }

    /// The place at which the walk ended before the end; `None`: everything was read.
    #[inline]
    pub(super) fn broken(&self) -> Option<usize> {
        self.broken
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = varint(self.all, &mut self.at)?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| (1..1 << 29).contains(n))?;
        let value = match tag & 7 {
            0 => Value::Number(varint(self.all, &mut self.at)?),
            1 => Value::Eight(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = varint(self.all, &mut self.at)?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => Value::Four(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((number, value))
    }

    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.all.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = (u32, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<(u32, Value<'a>)> {
        if self.at >= self.all.len() || self.broken.is_some() {
            return None;
        }
        let start = self.at;
        let field = self.field();
        if field.is_none() {
            self.broken = Some(start);
        }
        field
    }
}

/// A walk over packed numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Packed<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Packed<'a> {
    /// A walk over the numbers of `all`.
    pub(super) fn new(all: &'a [u8]) -> Packed<'a> {
        Packed { all, at: 0 }
    }

    /// Whether all of the numbers have been read.
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.all.len()
    }
}

impl Iterator for Packed<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        varint(self.all, &mut self.at)
    }
}

/// Reads a varint at `at` and moves on behind it; `None`: it is cut off, or longer than ten bytes.
#[inline]
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    if first < 0x80 {
        *at += 1;
        return Some(first.into());
    }
    let mut value = u64::from(first & 0x7f);
    for (n, byte) in bytes[*at + 1..].iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * (n + 1));
        if *byte < 0x80 {
            *at += n + 2;
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_fixed_ones_are_told_apart() {
        // Field 1: 300; field 2: "ab"; field 3: four bytes; field 4: eight bytes; field 5: -1.
        let mut bytes = vec![0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d, 1, 0, 0, 0, 0x21];
        bytes.extend_from_slice(&1.5f64.to_le_bytes());
        bytes.extend_from_slice(&[0x28, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        let mut walk = Message::new(&bytes);
        let fields: Vec<_> = walk.by_ref().collect();
        assert_eq!(
            fields[..3],
            [(1, Value::Number(300)), (2, Value::Bytes(b"ab")), (3, Value::Four(1))]
        );
        assert_eq!((fields[3].1.float(), fields[4].1.signed()), (1.5, -1));
        assert_eq!(walk.broken(), None);
    }

    #[test]
    fn a_walk_stops_at_what_no_message_has() {
        // A length beyond the end, a varint without an end, a group, the field 0.
        for bad in [&[0x12, 5, 1][..], &[0x08, 0x80], &[0x0b], &[0x00, 1]] {
            let mut bytes = vec![0x08, 1];
            bytes.extend_from_slice(bad);
            let mut walk = Message::new(&bytes);
            assert_eq!(walk.by_ref().count(), 1);
            assert_eq!(walk.broken(), Some(2));
        }
    }

    #[test]
    fn a_varint_of_eleven_bytes_is_none() {
        let mut at = 0;
        assert_eq!(varint(&[0xff; 11], &mut at), None);
        assert_eq!(at, 0);
    }
}
