//! Pages as Markdown and HTML: they say what the text says, and no name can change what they are.

use crate::common::{self, DEFAULT, rampup};
use crate::text::{FULL, SCREEN, all_pages};
use risetime_report::page::{Doc, html};
use risetime_report::text::{self, Style};

const WIDE: Style = Style { width: 200, color: false, unicode: true };

/// Elements that have no content.
const VOID: [&str; 2] = ["meta", "path"];

/// The text of a page of HTML, once its tags are found to be closed in their order.
fn content(page: &str) -> String {
    let (mut open, mut text): (Vec<String>, String) = (Vec::new(), String::new());
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").expect("a type");
    while let Some((before, behind)) = rest.split_once('<') {
        assert!(!before.contains('>'), "{before}");
        if open.last().is_none_or(|tag| tag != "style") {
            text += before;
            text.push(' ');
        }
        let (tag, after) = behind.split_once('>').expect("a tag ends");
        rest = after;
        let name: String =
            tag.trim_start_matches('/').chars().take_while(|c| c.is_alphanumeric()).collect();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop().as_deref(), Some(name.as_str()), "…{before}"),
            (false, true) => assert!(VOID.contains(&&*name) || name == "polyline", "{tag}"),
            (false, false) => open.push(name),
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert_eq!(open, [""; 0], "all is closed");
    let words = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    words.iter().fold(text, |text, (code, word)| text.replace(code, word))
}

/// The text of Markdown without its escapes and marks.
fn said(markdown: &str) -> String {
    let mut out = String::new();
    let mut chars = markdown.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '*' | '|' | '`' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Words with a digit in them, without brackets and points around.
fn figures(text: &str) -> Vec<String> {
    let trimmed = |w: &str| w.trim_matches(|c: char| !c.is_alphanumeric()).to_string();
    let words = text.split_whitespace().map(trimmed);
    words.filter(|w| w.chars().any(|c| c.is_ascii_digit())).collect()
}

#[test]
fn every_page_is_well_formed_html_that_needs_nothing_beside_itself() {
    for doc in all_pages(&WIDE) {
        let page = doc.html();
        content(&page);
        for foreign in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign} in {page}");
        }
    }
    let pages = all_pages(&WIDE);
    content(&html::page(&pages.iter().collect::<Vec<_>>()));
}

/// What is drawn with characters for a terminal is another drawing there, and has its own axes.
#[test]
fn each_figure_of_the_text_is_in_the_markdown_and_in_the_html() {
    let (run, line) = rampup(DEFAULT);
    let explained: Vec<_> = (0..4).map(common::explanation).collect();
    let docs: [Doc; 6] = [
        text::run(&run, &line, &SCREEN, &WIDE),
        text::run(&common::frames(), &line, &SCREEN, &WIDE),
        text::compare(&[run.clone(), rampup(common::FAST).0], &FULL, &WIDE),
        text::explain(&explained, &WIDE),
        text::compared(&common::comparison(), &WIDE),
        text::platform(&common::platform(), &WIDE),
    ];
    for doc in docs {
        let (markdown, page) = (said(&doc.markdown()), content(&doc.html()));
        let mut n = 0;
        for figure in figures(&doc) {
            n += 1;
            assert!(markdown.contains(&figure), "{figure} is not in\n{}", doc.markdown());
            assert!(page.contains(&figure), "{figure} is not in\n{page}");
        }
        assert!(n > 10, "{}", doc.as_str());
    }
}

/// A task may be called anything; what it is called is text, wherever it stands.
#[test]
fn a_hostile_name_stays_a_name() {
    const NAME: &str =
        "<script>alert(1)</script> | a&b `x` *y* [z](javascript:w) \"q\"\u{1b}[2J\u{202e}";
    let (mut run, line) = rampup(DEFAULT);
    run.tasks[0].comm = NAME.into();
    (run.workload, run.policy) = (NAME.into(), NAME.into());
    let mut other = run.tasks[0].clone();
    other.comm = format!("{NAME}2");
    run.tasks.push(other);
    run.notes = vec![NAME.into()];
    let why = ["risetime".to_string(), "```".to_string(), NAME.to_string()];
    let view = text::View { about: NAME, why: &why, ..SCREEN };
    let mut explained = common::explanation(0);
    (explained.comm, explained.notes) = (NAME.into(), vec![NAME.into()]);
    let docs = [
        text::run(&run, &line, &FULL, &WIDE),
        text::run(&run, &line, &view, &WIDE),
        text::compare(&[run.clone(), run.clone()], &FULL, &WIDE),
        text::explain(&[explained], &WIDE),
        text::listed(NAME, vec![NAME.into(), "```".into()], &WIDE),
    ];
    for doc in docs {
        let (page, markdown) = (doc.html(), doc.markdown());
        let text = content(&page);
        assert!(text.contains("<script>alert(1)</script> | a&b `x` *y*"), "{text}");
        assert!(
            !page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\u{202e}')
        );
        assert!(!markdown.contains('\u{1b}') && !markdown.contains('\u{202e}'));
        let mut fence: Option<&str> = None;
        let mut columns = None;
        for line in markdown.lines() {
            let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
            match fence {
                Some(open) => {
                    fence = if line == open { None } else { fence };
                    continue;
                }
                None if ticks.len() >= 3 => {
                    fence = Some(ticks);
                    continue;
                }
                None => {}
            }
            // Outside of fences nothing that a name brings means anything.
            let bare =
                line.replace("\\\\", "").replace("\\<", "").replace("\\|", "").replace("\\`", "");
            assert!(!bare.contains('<') && !bare.contains('`') && !line.contains("[z]"), "{line}");
            let cells = bare.starts_with('|').then(|| bare.matches('|').count());
            assert!(columns.is_none() || cells.is_none() || columns == cells, "{markdown}");
            columns = cells;
        }
        assert_eq!(fence, None, "{markdown}");
    }
}

#[test]
fn markdown_is_what_a_person_would_write() {
    let (run, line) = rampup(DEFAULT);
    insta::assert_snapshot!("run_markdown", text::run(&run, &line, &FULL, &WIDE).markdown());
    let explained = text::explain(&[common::explanation(0)], &WIDE);
    insta::assert_snapshot!("explain_markdown", explained.markdown());
    let runs = [run, rampup(common::FAST).0];
    insta::assert_snapshot!("compare_markdown", text::compare(&runs, &SCREEN, &WIDE).markdown());
}
