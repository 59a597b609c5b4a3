//! Reader of a flattened device tree (`.dtb`, `/sys/firmware/fdt`).
//!
//! ```text
//! header     ten big-endian words: magic d00dfeed, total size, offsets of structure and strings, …
//! structure  1 begin (name, 0, padding) · 2 end · 3 property (length, offset of its name, value) · 4 nothing · 9 end of all
//! ```
//!
//! Every offset is checked against the file before it is followed. Source: the Devicetree Specification 0.4, chapter 5.

use super::{Datum, MAX_DEPTH, MAX_NODES, Node, Prop, Tree};
use risetime_model::InputError;

/// First word of the header.
pub(in crate::import) const MAGIC: [u8; 4] = [0xd0, 0x0d, 0xfe, 0xed];
/// Lowest version whose structure block this reads (`last_comp_version` of version 17).
const VERSION: u32 = 16;

/// A flattened tree and where it is being read.
struct Blob<'a> {
    file: &'a str,
    bytes: &'a [u8],
    /// Offset in `bytes` of the structure block, and the offset at which it ends.
    structure: (usize, usize),
    /// Offset of the block of names.
    strings: usize,
}

/// Reads the tree in `bytes`, which errors call `file`.
///
/// Errors: what is wrong, with the offset in the file.
pub(in crate::import) fn parse(bytes: &[u8], file: &str) -> Result<Tree, InputError> {
    let error = |at: usize, what: String| InputError::new(format!("{file}: byte {at}"), what);
    let word = |i: usize| {
        let at = 4 * i;
        let four = bytes.get(at..at + 4);
        four.map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
            .ok_or_else(|| error(at, "the file ends in the header of a device tree".into()))
    };
    if bytes.get(..4) != Some(&MAGIC[..]) {
        return Err(error(0, "is no flattened device tree: wanted d0 0d fe ed".into()));
    }
    let (total, structure, strings) = (word(1)? as usize, word(2)? as usize, word(3)? as usize);
    if total > bytes.len() {
        let what = format!("is {total} bytes by its header, and {} here: cut off", bytes.len());
        return Err(error(4, what));
    }
    let (version, compatible) = (word(5)?, word(6)?);
    if version < VERSION || compatible > 17 {
        return Err(error(20, format!("is of version {version}, wanted 16 or 17")));
    }
    if structure > total || strings > total {
        return Err(error(8, "its blocks lie behind its end".into()));
    }
    // Version 16 does not say how long the structure is: it ends with its own mark.
    let size = if version >= 17 { word(9)? as usize } else { total - structure };
    let end = structure.saturating_add(size).min(total);
    let blob = Blob { file, bytes: &bytes[..total], structure: (structure, end), strings };
    blob.tree()
}

impl Blob<'_> {
    fn error(&self, at: usize, what: impl Into<String>) -> InputError {
        InputError::new(format!("{}: byte {at}", self.file), what)
    }

    fn word(&self, at: &mut usize) -> Result<u32, InputError> {
        let end = self.structure.1;
        let four = at.checked_add(4).filter(|to| *to <= end).and_then(|to| self.bytes.get(*at..to));
        let Some(b) = four else { return Err(self.error(*at, "the structure ends too early")) };
        *at += 4;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// The text at `at`, which ends with a 0 before `end`, and its length in bytes.
    fn text(&self, at: usize, end: usize) -> Result<(String, usize), InputError> {
        let rest = self.bytes.get(at..end).unwrap_or_default();
        let Some(length) = rest.iter().position(|b| *b == 0) else {
            return Err(self.error(at, "a name has no end"));
        };
        Ok((String::from_utf8_lossy(&rest[..length]).into_owned(), length))
    }

    fn tree(&self) -> Result<Tree, InputError> {
        let (mut at, end) = self.structure;
        let mut tree = Tree::default();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let start = at;
            match self.word(&mut at)? {
                1 => {
                    let (name, length) = self.text(at, end)?;
                    at = padded(at + length + 1);
                    if open.is_empty() && !tree.nodes.is_empty() {
                        return Err(self.error(start, "a second root"));
                    }
                    if open.len() >= MAX_DEPTH || tree.nodes.len() >= MAX_NODES {
                        return Err(self.error(start, "more nodes in nodes than any machine has"));
                    }
                    let id = tree.nodes.len();
                    let place = format!("{}: byte {start}", self.file);
                    tree.nodes.push(Node { name, place, ..Node::default() });
                    if let Some(parent) = open.last() {
                        tree.nodes[*parent].children.push(id);
                    }
                    open.push(id);
                }
                2 => {
                    if open.pop().is_none() {
                        return Err(self.error(start, "a node ends that has not begun"));
                    }
                }
                3 => {
                    let length = self.word(&mut at)? as usize;
                    let name = self.word(&mut at)? as usize;
                    let names = self.strings.saturating_add(name);
                    let (name, _) = self.text(names, self.bytes.len())?;
                    let to = at.checked_add(length).filter(|to| *to <= end);
                    let Some(value) = to.and_then(|to| self.bytes.get(at..to)) else {
                        let what = format!("`{name}` of {length} bytes reaches behind the end");
                        return Err(self.error(start, what));
                    };
                    at = padded(at + length);
                    let Some(node) = open.last() else {
                        return Err(self.error(start, format!("`{name}` is in no node")));
                    };
                    let data = match value {
                        [] => Vec::new(),
                        _ => vec![Datum::Bytes(value.to_vec())],
                    };
                    let place = format!("{}: byte {start}", self.file);
                    tree.nodes[*node].props.push((name, Prop { data, place }));
                }
                4 => {}
                9 if open.is_empty() && !tree.nodes.is_empty() => return Ok(tree),
                9 => return Err(self.error(start, "ends before its nodes do")),
                other => return Err(self.error(start, format!("has a mark {other:#x}"))),
            }
        }
    }
}

/// `at` rounded up to a word.
fn padded(at: usize) -> usize {
    at.next_multiple_of(4)
}
