//! A report as a value of blocks, and what it becomes: text for a terminal, Markdown, HTML.
//!
//! ```text
//! results ──> text::run, …: Page (headings, sentences, tables, bars, plots) ──> Doc ──> text · markdown · html
//! ```

mod beside;
mod block;
mod drawing;
pub mod html;
mod line;
mod markdown;
mod parts;
mod plot;
mod shares;
mod terminal;

pub(crate) use beside::{Beside, Cell};
pub use block::Doc;
pub(crate) use block::{Block, Page};
pub(crate) use line::{Ink, Line, Table, cut, pad, width, wrap};
pub(crate) use plot::{Curve, Lane, Plot, Shade, ticks};
pub(crate) use shares::{Share, Shares};
