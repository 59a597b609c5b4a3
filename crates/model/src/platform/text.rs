//! Names and lists of CPUs, as files of platforms and others have them.

use super::bounds::MAX_CPUS;
use crate::InputError;
use crate::input::one_line;
use crate::toml_in::Table;
use risetime_kernel::units::CpuId;
use std::fmt::Write;

/// A name that fits a line, a file name and a `--policy NAME+key=value`.
pub(crate) fn checked_name(
    table: &Table<'_>,
    key: &'static str,
    name: &str,
) -> Result<String, InputError> {
    checked_word(name).map_err(|what| table.error_of(key, what))?;
    Ok(name.to_string())
}

/// Checks a name, wherever it stands. Errors (without place): what it is, and what was wanted.
pub(crate) fn checked_word(name: &str) -> Result<(), String> {
    let good = |c: char| !c.is_control() && !c.is_whitespace() && !"+=/\\,".contains(c);
    if name.is_empty() || name.chars().count() > 64 || !name.chars().all(good) {
        return Err(format!(
            "is \"{}\", wanted 1 to 64 characters without spaces, `+`, `=`, `,` and slashes",
            one_line(name)
        ));
    }
    Ok(())
}

/// The CPUs of a list such as `0-3,6`, ascending.
///
/// Errors (without place): empty, not of this form, a number above 1023, a CPU twice.
pub(crate) fn cpu_list(list: &str) -> Result<Vec<u32>, String> {
    let shown = one_line(list);
    let form = || format!("is \"{shown}\", wanted a list of CPUs such as \"0-3,6\"");
    let number = |s: &str| -> Result<u64, String> {
        let s = s.trim();
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(form());
        }
        let n = s.parse().unwrap_or(u64::MAX);
        if n >= MAX_CPUS {
            return Err(format!(
                "names CPU {}: a machine has at most {MAX_CPUS} CPUs, numbered from 0",
                one_line(s)
            ));
        }
        Ok(n)
    };
    let mut seen = [false; MAX_CPUS as usize];
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("has the range {first}-{last}, whose end is below its start"));
        }
        for cpu in first..=last {
            if std::mem::replace(&mut seen[cpu as usize], true) {
                return Err(format!("names CPU {cpu} twice"));
            }
        }
    }
    Ok((0..MAX_CPUS as u32).filter(|&c| seen[c as usize]).collect())
}

/// `0-3,6` for CPUs 0, 1, 2, 3 and 6 (ascending).
pub fn cpu_ranges(cpus: &[CpuId]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < cpus.len() {
        let mut j = i;
        while j + 1 < cpus.len() && cpus[j + 1].0 == cpus[j].0 + 1 {
            j += 1;
        }
        let sep = if out.is_empty() { "" } else { "," };
        let _ = match j - i {
            0 => write!(out, "{sep}{}", cpus[i].0),
            _ => write!(out, "{sep}{}-{}", cpus[i].0, cpus[j].0),
        };
        i = j + 1;
    }
    out
}
