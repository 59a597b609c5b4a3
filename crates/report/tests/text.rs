//! What people see: no line is wider than the terminal, nothing panics on little data.

mod common;

use common::{DEFAULT, rampup};
use risetime_report::text::{self, Style};
use unicode_width::UnicodeWidthStr;

fn plain(width: usize) -> Style {
    Style {
        width,
        color: false,
        unicode: true,
    }
}

fn check_width(text: &str, width: usize) {
    for line in text.lines() {
        assert!(
            line.width() <= width,
            "{} columns of {width}: {line:?}",
            line.width()
        );
    }
}

#[test]
fn a_run_fits_every_width() {
    let (result, line) = rampup(DEFAULT);
    for width in 40..=200 {
        check_width(&text::run(&result, &line, &plain(width)), width);
    }
}
