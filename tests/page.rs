//! A page of `docs/` that shows what the program computes: equal, or written anew.
//!
//! ```text
//! cargo test                 the part of the page between two markers is what is computed
//! BLESS=1 cargo test         writes that part anew; look at the difference before it is committed
//! ```
//!
//! Every test that holds a page to the program includes this file by its path, as `mod page`.

#![allow(clippy::disallowed_methods, reason = "what may read no file is not its tests")]

use std::path::Path;

/// Whether pages are to be written, not compared.
pub(crate) fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Holds the part of `docs/NAME` between the first `begin` and the next `end` after it (`""`: the end of
/// the page) to `wanted`.
pub(crate) fn holds(name: &str, begin: &str, end: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("docs/{name}: {e}"));
    let (head, rest) = page.split_once(begin).unwrap_or_else(|| panic!("docs/{name}: no {begin}"));
    let part = if end.is_empty() { rest } else { rest.split(end).next().unwrap_or(rest) };
    let tail = &rest[part.len()..];
    if blessing() {
        std::fs::write(&path, format!("{head}{begin}{wanted}{tail}"))
            .unwrap_or_else(|e| panic!("docs/{name}: {e}"));
    } else {
        let differs = part.lines().zip(wanted.lines()).find(|(shown, now)| shown != now);
        assert!(
            part == wanted,
            "docs/{name} shows {differs:?} (shown, now): BLESS=1 writes it anew"
        );
    }
}
