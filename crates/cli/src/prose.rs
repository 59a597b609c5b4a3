//! Reports for a person: as text for the terminal, as Markdown, as HTML.

use crate::args::{AnyFormat, Format, TextOrJson};
use crate::output;
use risetime_report::page::{Doc, html};
use risetime_report::text::Style;

/// Form of a report for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prose {
    /// Text as wide as the terminal.
    Terminal,
    /// Markdown.
    Markdown,
    /// A page of HTML.
    Html,
}

/// The style by which a report is laid out that no terminal shows.
const DOCUMENT: Style = Style { width: 100, color: false, unicode: true };

impl Prose {
    /// The style by which a report of this form is laid out.
    pub(crate) fn style(self) -> Style {
        if self == Prose::Terminal { output::style() } else { DOCUMENT }
    }

    /// The report that `lay_out` makes.
    pub(crate) fn of(self, lay_out: impl FnOnce(&Style) -> Doc) -> String {
        self.all(&[lay_out(&self.style())])
    }

    /// Reports one under the other.
    pub(crate) fn all(self, docs: &[Doc]) -> String {
        match self {
            Prose::Terminal => docs.iter().map(Doc::as_str).collect(),
            Prose::Markdown => docs.iter().map(Doc::markdown).collect::<Vec<_>>().join("\n"),
            Prose::Html => html::page(&docs.iter().collect::<Vec<_>>()),
        }
    }
}

impl Format {
    /// The form of the report; `None`: it is for programs.
    pub(crate) fn prose(self) -> Option<Prose> {
        match self {
            Format::Text => Some(Prose::Terminal),
            Format::Markdown => Some(Prose::Markdown),
            Format::Html => Some(Prose::Html),
            Format::Json | Format::Csv => None,
        }
    }
}

impl AnyFormat {
    /// The form of the report; `None`: it is for programs, or a mailing list.
    pub(crate) fn prose(self) -> Option<Prose> {
        match self {
            AnyFormat::Text => Some(Prose::Terminal),
            AnyFormat::Markdown => Some(Prose::Markdown),
            AnyFormat::Html => Some(Prose::Html),
            AnyFormat::Json | AnyFormat::Csv | AnyFormat::Mail => None,
        }
    }
}

impl TextOrJson {
    /// The form of the report; `None`: it is for programs.
    pub(crate) fn prose(self) -> Option<Prose> {
        match self {
            TextOrJson::Text => Some(Prose::Terminal),
            TextOrJson::Markdown => Some(Prose::Markdown),
            TextOrJson::Html => Some(Prose::Html),
            TextOrJson::Json => None,
        }
    }
}
