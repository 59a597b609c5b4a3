//! Experiments that come as documents from another process.

use crate::output::{self, Failure};
use risetime_sim::Simulator;
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;

/// Longest line that is read, in bytes: a workload and a platform have a megabyte each at most.
const MAX_LINE: u64 = 64 << 20;

/// Answers each line of standard input until it ends.
pub(crate) fn worker() -> Result<ExitCode, Failure> {
    let (mut input, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    let unread = |e: std::io::Error| Failure::input("standard input", output::system_words(&e));
    for n in 1.. {
        let mut line = Vec::new();
        (&mut input).take(MAX_LINE).read_until(b'\n', &mut line).map_err(unread)?;
        if line.is_empty() {
            break;
        }
        let place = format!("line {n}");
        if line.len() as u64 == MAX_LINE {
            let what = format!("is longer than {MAX_LINE} bytes");
            return Err(Failure::input(&place, what));
        }
        let line = String::from_utf8_lossy(&line);
        let answer = risetime_lab::executor::answer(&Simulator, line.trim_end(), &place);
        // Whoever asked may be gone.
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
