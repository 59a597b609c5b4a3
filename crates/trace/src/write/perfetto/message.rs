//! Protobuf messages, written field by field into one buffer.
//!
//! A nested message's length stands before it but is known only after it. As Perfetto's own
//! writer does, four bytes are kept free for it and filled in afterwards; a variable-length
//! integer may have leading zeros, so this costs no copy.

use micropb::{PbEncoder, Tag};

const VARINT: u8 = 0;
const LENGTH: u8 = 2;

/// A message, or a run of fields of one.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn encode(&mut self, field: u32, wire: u8) -> PbEncoder<&mut Vec<u8>> {
        let mut e = PbEncoder::new(&mut self.0);
        let Ok(()) = e.encode_tag(Tag::from_parts(field, wire));
        e
    }
    /// An unsigned integer, a bool or an enum.
    pub(super) fn uint(&mut self, field: u32, value: u64) -> &mut Message {
        let Ok(()) = self.encode(field, VARINT).encode_varint64(value);
        self
    }
    /// An `int32` or `int64` (not a `sint`).
    pub(super) fn int(&mut self, field: u32, value: i64) -> &mut Message {
        let Ok(()) = self.encode(field, VARINT).encode_int64(value);
        self
    }
    pub(super) fn string(&mut self, field: u32, value: &str) -> &mut Message {
        let Ok(()) = self.encode(field, LENGTH).encode_string(value);
        self
    }
    /// A nested message.
    pub(super) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Message)) -> &mut Message {
        self.encode(field, LENGTH);
        let at = self.0.len();
        self.0.extend([0; 4]);
        fill(self);
        let len = (self.0.len() - at - 4) as u32;
        debug_assert!(len < 1 << 28, "a message of {len} bytes has no four-byte length");
        for i in 0..4 {
            let more = if i < 3 { 0x80 } else { 0 };
            self.0[at + i] = (len >> (7 * i)) as u8 & 0x7f | more;
        }
        self
    }
}
