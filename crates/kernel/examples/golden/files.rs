//! The directory: which files are known, reading them, and the verdict.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::tally::Tally;
use super::{cpuidle, deadline, eevdf, governor, pelt};

/// Checks the content of one file.
type Check = fn(&Value) -> Tally;

/// The files that are understood, in the order of the report.
pub const FILES: [(&str, Check); 9] = [
    ("pelt_task.json", pelt::check_task),
    ("pelt_extra.json", pelt::check_extra),
    ("pelt_clock.json", pelt::check_clock),
    ("util_est.json", governor::check_util_est),
    ("schedutil.json", governor::check_schedutil),
    ("em.json", governor::check_em),
    ("eevdf.json", eevdf::check),
    ("cpuidle.json", cpuidle::check),
    ("deadline.json", deadline::check),
];

/// What checking a directory came to.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The text for the user.
    pub report: String,
    /// Rows compared, over all files.
    pub rows: u64,
    /// Rows that differ.
    pub mismatches: u64,
    /// Files that could not be read.
    pub errors: u64,
}

impl Verdict {
    /// At least one row was compared, none differs, every known file could be read.
    pub fn passed(&self) -> bool {
        self.rows > 0 && self.mismatches == 0 && self.errors == 0
    }
}

/// Checks the known files of `dir`, any subset of them; names and skips the others.
pub fn check_dir(dir: &Path) -> Verdict {
    let mut verdict = Verdict::default();
    let names = match names_in(dir) {
        Ok(names) => names,
        Err(e) => {
            verdict.error(format_args!("{}: {e}", dir.display()));
            return verdict;
        }
    };
    for name in names.iter().filter(|n| !FILES.iter().any(|(known, _)| known == n)) {
        verdict.say(format_args!("{name:<18} skipped: not a file of vectors that is known here"));
    }
    for (name, check) in FILES {
        if !names.iter().any(|n| n == name) {
            verdict.say(format_args!("{name:<18} not there"));
            continue;
        }
        match read(&dir.join(name)) {
            Ok(json) => verdict.add(name, &check(&json)),
            Err(e) => verdict.error(format_args!("{name:<18} error: {e}")),
        }
    }
    let Verdict { rows, mismatches, errors, .. } = verdict;
    let passed = if verdict.passed() { "passed" } else { "FAILED" };
    verdict.say(format_args!(
        "{passed}: {rows} rows, {mismatches} mismatches, {errors} files not readable"
    ));
    verdict
}

impl Verdict {
    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.report, "{line}");
    }

    fn error(&mut self, line: std::fmt::Arguments<'_>) {
        self.errors += 1;
        self.say(line);
    }

    fn add(&mut self, name: &str, tally: &Tally) {
        self.rows += tally.rows;
        self.mismatches += tally.mismatches;
        self.say(format_args!(
            "{name:<18} {:>7} rows {:>7} mismatches",
            tally.rows, tally.mismatches
        ));
        for line in &tally.first {
            self.say(format_args!("  {}", shortened(line)));
        }
    }
}

/// A line that fits a screen even if the file holds something huge.
fn shortened(line: &str) -> String {
    const LONGEST: usize = 2000;
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_owned(),
    }
}

fn names_in(dir: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> =
        entries.iter().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read(path).map_err(|e| e.to_string())?;
    serde_json::from_slice(&text).map_err(|e| format!("not JSON: {e}"))
}
