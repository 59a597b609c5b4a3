//! The book: README.md and the pages of `docs/`, which `make book` binds in the order of `docs/SUMMARY.md`.
//!
//! Each rule is a function from texts to complaints, so that a test can show that it complains. Whether a page says
//! what the command does is a matter of `documents.rs`.

use crate::repository;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The longest README that is still read.
const README_LINES: usize = 120;

/// Markdown files of the repository by their path in it.
type Pages = BTreeMap<PathBuf, String>;

/// The files at the top of the repository, and all below `docs/`.
fn pages() -> Pages {
    let mut found = Pages::new();
    let mut rooms = vec![PathBuf::from("docs")];
    let top = std::fs::read_dir(repository()).expect("the repository");
    let mut files: Vec<PathBuf> = top.map(|e| e.expect("an entry").file_name().into()).collect();
    while let Some(room) = rooms.pop() {
        for entry in std::fs::read_dir(repository().join(&room)).expect("a directory of docs") {
            let entry = entry.expect("an entry");
            let path = room.join(entry.file_name());
            if entry.path().is_dir() { rooms.push(path) } else { files.push(path) }
        }
    }
    for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(repository().join(&path)).expect("a page");
        found.insert(path, text);
    }
    found
}

/// Returns the targets of the links and pictures of a page, in its order.
fn links(page: &str) -> Vec<String> {
    let link = |event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(dest_url.into_string())
        }
        _ => None,
    };
    Parser::new_ext(page, Options::ENABLE_TABLES).filter_map(link).collect()
}

/// The anchors of a page's headings, as GitHub makes them: small letters, digits, `-` and `_` stay, blanks become `-`,
/// all else goes; one that is there already gets `-1`, `-2`, … behind it.
fn anchors(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => open = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut open {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&open.take().unwrap_or_default());
                let again = (1..).map(|n| format!("{slug}-{n}"));
                let mut names = std::iter::once(slug.clone()).chain(again);
                found.extend(names.find(|name| !found.contains(name)));
            }
            _ => {}
        }
    }
    found
}

fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// `link` as seen from the page `from`: the path in the repository that it leads to, and the anchor there. `None`: it
/// leads out of the repository, to the web.
fn target(from: &Path, link: &str) -> Option<(PathBuf, String)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut to = if file.is_empty() { from.to_path_buf() } else { PathBuf::new() };
    if !file.is_empty() {
        for part in from.parent().unwrap_or(Path::new("")).join(file).components() {
            match part {
                Component::ParentDir => {
                    to.pop();
                }
                Component::CurDir => {}
                part => to.push(part),
            }
        }
    }
    Some((to, anchor.to_string()))
}

/// Links that lead to no file (`exists`), or to no heading of a page.
fn dead_links(pages: &Pages, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (from, text) in pages {
        for link in links(text) {
            let Some((to, anchor)) = target(from, &link) else { continue };
            let what = match pages.get(&to) {
                _ if !exists(&to) => "there is no such file",
                Some(page) if !anchor.is_empty() && !anchors(page).contains(&anchor) => {
                    "the page has no such heading"
                }
                _ => continue,
            };
            complaints.push(format!("{}: {link}: {what}", from.display()));
        }
    }
    complaints
}

/// Pages of `docs/` that the summary does not list, or lists twice.
fn unsorted(pages: &Pages) -> Vec<String> {
    let summary = Path::new("docs/SUMMARY.md");
    let text = pages.get(summary).map_or("", String::as_str);
    let listed: Vec<PathBuf> =
        links(text).iter().filter_map(|link| Some(target(summary, link)?.0)).collect();
    let of_docs = pages.keys().filter(|p| p.starts_with("docs") && *p != summary);
    let complaint = |page: &PathBuf| match listed.iter().filter(|l| *l == page).count() {
        1 => None,
        n => Some(format!("{}: {n} times in docs/SUMMARY.md, not once", page.display())),
    };
    of_docs.filter_map(complaint).collect()
}

/// A README longer than anybody reads.
fn too_long(readme: &str) -> Vec<String> {
    match readme.lines().count() {
        n if n > README_LINES => vec![format!("README.md: {n} lines, {README_LINES} at most")],
        _ => Vec::new(),
    }
}

#[test]
fn every_page_is_in_the_summary_once() {
    assert_eq!(unsorted(&pages()), [""; 0]);
}

#[test]
fn every_link_between_the_pages_leads_to_a_file_and_a_heading() {
    let pages = pages();
    assert!(pages.len() > 40, "the search itself has to work: {}", pages.len());
    assert_eq!(dead_links(&pages, |to| repository().join(to).exists()), [""; 0]);
}

#[test]
fn the_readme_is_short() {
    assert_eq!(too_long(&pages()[Path::new("README.md")]), [""; 0]);
}

fn those(pages: &[(&str, &str)]) -> Pages {
    pages.iter().map(|(path, text)| (path.into(), text.to_string())).collect()
}

#[test]
fn a_page_that_is_not_in_the_summary_once_is_found() {
    let summary = "# Summary\n- [A](a.md)\n- [B](studies/b.md)\n  - [B again](./studies/b.md)\n- [Top](../README.md)\n";
    let all = [
        ("README.md", ""),
        ("docs/SUMMARY.md", summary),
        ("docs/a.md", ""),
        ("docs/c.md", ""),
        ("docs/studies/b.md", ""),
    ];
    let found = unsorted(&those(&all));
    let wanted = [
        "docs/c.md: 0 times in docs/SUMMARY.md, not once",
        "docs/studies/b.md: 2 times in docs/SUMMARY.md, not once",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let top = "[there](docs/a.md#what-is-p99) [gone](docs/b.md)\n\n| a |\n|---|\n| [no](docs/a.md#no) |\n\n```\n[not a link](x)\n```\n<https://example.org> [web](https://example.org/x)\n";
    let page = "# A\n## What is `p99`?\n## A\n[up](../README.md) [again](#a-1) ![drawn](b.svg) [nowhere](#b)\n";
    let pages = those(&[("README.md", top), ("docs/a.md", page)]);
    let exists = |to: &Path| pages.contains_key(to);
    let wanted = [
        "README.md: docs/b.md: there is no such file",
        "README.md: docs/a.md#no: the page has no such heading",
        "docs/a.md: b.svg: there is no such file",
        "docs/a.md: #b: the page has no such heading",
    ];
    assert_eq!(dead_links(&pages, exists), wanted);
}

#[test]
fn a_long_readme_is_found() {
    assert_eq!(too_long(&"line\n".repeat(README_LINES)), [""; 0]);
    assert_eq!(too_long(&"line\n".repeat(121)), ["README.md: 121 lines, 120 at most"]);
}
