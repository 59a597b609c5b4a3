//! The studies that are built in, and the pages that show what comes of them: one module a subject.

mod bud;
mod coherent;
mod load_tracking;
mod ondemand;
mod scores;
mod steady;
mod study;
mod tables;

#[path = "../../../tests/page.rs"]
mod page;
