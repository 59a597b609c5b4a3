//! Reads files that nobody wrote until so many bytes of them are read.
//!
//! ```text
//! cargo run --release -p risetime-read --example fuzz -- SEED BYTES FILE...
//! ```
//!
//! Each file is changed at some places drawn by the seed, and read; what is read must keep the rules of traces. Says every few seconds
//! how far it is. The same seed reads the same bytes.

#[path = "../tests/support/mod.rs"]
mod support;

use risetime_read::{Options, Source, read};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use support::checked::Checked;
use support::{Draws, mutate};

/// Longest time that one file may take, whatever is in it.
const LONG: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let number = |arg: Option<String>| arg.and_then(|n| n.parse::<u64>().ok());
    let (Some(seed), Some(wanted)) = (number(args.next()), number(args.next())) else {
        eprintln!("usage: fuzz SEED BYTES FILE...");
        return ExitCode::from(2);
    };
    let mut files = Vec::new();
    for path in args {
        match std::fs::read(&path) {
            Ok(bytes) => files.push(bytes),
            Err(e) => {
                eprintln!("{path}: {e}");
                return ExitCode::from(2);
            }
        }
    }
    if files.is_empty() {
        eprintln!("usage: fuzz SEED BYTES FILE...");
        return ExitCode::from(2);
    }
    let mut draws = Draws(seed);
    let (mut bytes_read, mut n, mut sound, mut events) = (0, 0_u64, 0_u64, 0_u64);
    let mut said = Instant::now();
    while bytes_read < wanted {
        let mut bytes = files[draws.below(files.len())].clone();
        mutate(&mut draws, &mut bytes);
        bytes_read += bytes.len() as u64;
        let mut checked = Checked::default();
        let begun = Instant::now();
        let read = read(&Source::bytes("mutant", bytes), &mut checked, &Options::default());
        assert!(begun.elapsed() < LONG, "mutant {n} of seed {seed} took {:?}", begun.elapsed());
        n += 1;
        sound += u64::from(read.is_ok());
        events += checked.events;
        if said.elapsed() > Duration::from_secs(5) {
            eprintln!("{bytes_read} bytes, {n} files, {sound} of them read, {events} events");
            said = Instant::now();
        }
    }
    println!(
        "{bytes_read} bytes, {n} files, {sound} of them read, {events} events, no rule broken"
    );
    ExitCode::SUCCESS
}
