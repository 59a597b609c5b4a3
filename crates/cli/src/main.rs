//! The `risetime` command.
fn main() {}
