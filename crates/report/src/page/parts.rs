//! Blocks that a rendering for readers of documents shows as one: entries of a list, drawn lines, commands.

use super::block::Block;
use super::line::{Ink, Line};

/// One block, or several in a row that belong together.
pub(super) enum Part<'a> {
    /// A block that stands alone.
    One(&'a Block),
    /// Entries of a list: texts that are set in, or stand behind heads.
    List(Vec<&'a Block>),
    /// Lines drawn with characters.
    Drawn(Vec<&'a Line>),
    /// Commands, the first of which may have a head.
    Commands(Vec<&'a Block>),
}

/// The parts of a report, in their order.
pub(super) struct Parts<'a> {
    rest: &'a [Block],
}

impl<'a> Parts<'a> {
    pub(super) fn of(blocks: &'a [Block]) -> Parts<'a> {
        Parts { rest: blocks }
    }

    /// Takes the blocks at the front for which this holds.
    fn take(&mut self, belongs: impl Fn(&Block) -> bool) -> &'a [Block] {
        let n = self.rest.iter().take_while(|block| belongs(block)).count();
        let (taken, rest) = self.rest.split_at(n);
        self.rest = rest;
        taken
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;
    fn next(&mut self) -> Option<Part<'a>> {
        let first = self.rest.first()?;
        if is_entry(first) {
            return Some(Part::List(self.take(is_entry).iter().collect()));
        }
        if let Block::Command { .. } = first {
            let is_command = |block: &Block| matches!(block, Block::Command { .. });
            return Some(Part::Commands(self.take(is_command).iter().collect()));
        }
        if is_drawn(first) {
            let lines = self.take(is_drawn).iter().filter_map(|block| match block {
                Block::Line(line) => Some(line),
                _ => None,
            });
            return Some(Part::Drawn(lines.collect()));
        }
        self.rest = &self.rest[1..];
        Some(Part::One(first))
    }
}

/// Whether a block is an entry of a list.
fn is_entry(block: &Block) -> bool {
    matches!(block, Block::Text { head, .. } if !head.is_empty())
}

/// Whether a block is a line that is drawn, or set in columns: no sentence of one ink.
fn is_drawn(block: &Block) -> bool {
    let Block::Line(Line(pieces)) = block else { return false };
    let text: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
    let says = text.trim();
    let titled = matches!(pieces.first(), Some((Ink::Title | Ink::Strong, _)));
    !titled && (says.contains("  ") || text.starts_with(' ') || says.contains(['│', '─', '▇']))
}
