//! Protobuf messages, written field by field into one buffer.
//!
//! A nested message's length stands before it but is known only after it. As Perfetto's own
//! writer does, four bytes are kept free for it and filled in afterwards; a variable-length
//! integer may have leading zeros, so this costs no copy.

const VARINT: u8 = 0;
const EIGHT_BYTES: u8 = 1;
const LENGTH: u8 = 2;

/// A message, or a run of fields of one.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    /// Writes a number of seven bits a byte, the lowest first; all but the last have the top bit
    /// set.
    #[inline]
    fn varint(&mut self, mut value: u64) {
        if value < 0x80 {
            return self.0.push(value as u8);
        }
        let (mut bytes, mut n) = ([0; 10], 0);
        while value >= 0x80 {
            bytes[n] = value as u8 | 0x80;
            value >>= 7;
            n += 1;
        }
        bytes[n] = value as u8;
        self.0.extend_from_slice(&bytes[..=n]);
    }
    /// Writes what a field begins with: its number, and how it is encoded.
    #[inline]
    fn tag(&mut self, field: u32, wire: u8) {
        self.varint(u64::from(field) << 3 | u64::from(wire));
    }
    /// An unsigned integer, a bool or an enum.
    #[inline]
    pub(super) fn uint(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }
    /// An `int32` or `int64` (not a `sint`).
    #[inline]
    pub(super) fn int(&mut self, field: u32, value: i64) -> &mut Message {
        self.uint(field, value as u64)
    }
    pub(super) fn double(&mut self, field: u32, value: f64) -> &mut Message {
        self.tag(field, EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    pub(super) fn string(&mut self, field: u32, value: &str) -> &mut Message {
        self.tag(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value.as_bytes());
        self
    }
    /// A nested message.
    pub(super) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Message)) -> &mut Message {
        self.tag(field, LENGTH);
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        fill(self);
        let len = (self.0.len() - at - 4) as u32;
        debug_assert!(len < 1 << 28, "a message of {len} bytes has no four-byte length");
        let seven = |i: u32| (len >> (7 * i)) as u8 & 0x7f;
        let bytes = [seven(0) | 0x80, seven(1) | 0x80, seven(2) | 0x80, seven(3)];
        self.0[at..at + 4].copy_from_slice(&bytes);
        self
    }
}
