//! Compares this crate's arithmetic with vectors printed by the kernel's own C code.
//!
//! `cargo run --release -p risetime-kernel --example golden -- DIR` reads the files of DIR that it
//! knows (any subset), names the others, and prints rows and mismatches of each. Exit code 0 only
//! if at least one row was compared and none differs. What the files hold is described in
//! `crates/kernel/tests/golden/README.md`.

// The crate's rule against reading files is for its arithmetic, not for this harness.
#![allow(clippy::disallowed_methods)]
// The modules are shared with tests/golden.rs; neither is a library.
#![allow(unreachable_pub)]

mod cpuidle;
mod deadline;
mod eevdf;
mod files;
mod governor;
mod pelt;
mod tally;

use std::process::ExitCode;

// The modules name it by the crate's root, here and in tests/golden.rs alike.

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(dir), None) = (args.next(), args.next()) else {
        eprintln!("usage: golden DIR    (the directory that holds pelt_task.json and the others)");
        return ExitCode::from(2);
    };
    let verdict = files::check_dir(dir.as_ref());
    print!("{}", verdict.report);
    if verdict.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
