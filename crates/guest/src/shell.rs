//! A prompt with a few commands for looking around in the virtual machine (`risetime vm shell`).
//!
//! Just enough for `/sys` and `/proc`: words, `*` in paths, `> FILE`. No variables, pipes,
//! quotes or programs; with a `/bin/sh` in the machine that runs instead.

use crate::sys;
use crate::work::burn;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

const HELP: &str = "\
ls [PATH…]           what is in a directory           cd PATH   pwd
cat FILE…            what is in a file                echo TEXT > FILE
freq                 every policy's frequency
spin SECONDS [CPU]   keep a CPU busy meanwhile        sleep SECONDS
exit                 switch the machine off           (Ctrl-A X ends QEMU)
`*` stands for any part of a name: cat /sys/devices/system/cpu/cpu*/cpu_capacity
";

/// Mark in the prompt, after a command that failed.
const FAILED: &str = " (failed)";

/// Reads and obeys commands until `exit` or the end of input.
pub(crate) fn run() {
    if Path::new("/bin/sh").exists() {
        // The call only returns if the shell could not start; then the shell below is left.
        let _ = std::process::Command::new("/bin/sh").exec();
    }
    let mut out = io::stdout();
    let _ = write!(out, "\n{HELP}");
    let mut lines = io::stdin().lock().lines();
    // The host, which may be sending a script, reads it off the prompt.
    let mut failed = "";
    loop {
        let here = std::env::current_dir().unwrap_or_default();
        let _ = write!(out, "{}{failed} # ", here.display()).and_then(|()| out.flush());
        failed = "";
        let Some(Ok(line)) = lines.next() else { return };
        let mut said = Vec::new();
        match obey(&line, &mut said) {
            Ok(true) => {}
            Ok(false) => return,
            Err(e) => {
                failed = FAILED;
                said.extend_from_slice(format!("{e}\n").as_bytes());
            }
        }
        let _ = out.write_all(&said).and_then(|()| out.flush());
    }
}

/// Whether to go on.
fn obey(line: &str, out: &mut Vec<u8>) -> Result<bool, String> {
    let (line, target) = match line.split_once('>') {
        Some((line, target)) => (line, Some(target.trim())),
        None => (line, None),
    };
    let mut words = line.split_whitespace();
    let Some(command) = words.next() else { return Ok(true) };
    let words: Vec<String> = words.flat_map(expand).collect();
    let mut said = Vec::new();
    match (command, &words[..]) {
        ("exit" | "poweroff", _) => return Ok(false),
        ("help", _) => said.extend_from_slice(HELP.as_bytes()),
        ("ls", []) => list(".", &mut said)?,
        ("ls", paths) => paths.iter().try_for_each(|p| list(p, &mut said))?,
        ("cat", paths) => paths.iter().try_for_each(|p| show(p, paths.len() > 1, &mut said))?,
        ("echo", words) => said.extend_from_slice(format!("{}\n", words.join(" ")).as_bytes()),
        ("cd", [path]) => std::env::set_current_dir(path).map_err(|e| format!("{path}: {e}"))?,
        ("pwd", _) => said.extend_from_slice(
            format!("{}\n", std::env::current_dir().unwrap_or_default().display()).as_bytes(),
        ),
        ("freq", _) => {
            let paths = expand("/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq");
            paths.iter().try_for_each(|p| show(p, true, &mut said))?;
        }
        ("sleep", [time]) => sys::sleep_until(sys::mono() + seconds(time)?),
        ("spin", [time]) => spin(seconds(time)?, None)?,
        ("spin", [time, cpu]) => spin(
            seconds(time)?,
            Some(cpu.parse().map_err(|_| format!("{cpu}: this is no CPU number"))?),
        )?,
        _ => {
            return Err(format!(
                "{command}: this is no command, or not with these words (see help)"
            ));
        }
    }
    match target {
        None => out.extend_from_slice(&said),
        Some(path) => {
            let file = fs::OpenOptions::new()
                .write(true)
                .create(!path.starts_with("/sys") && !path.starts_with("/proc"))
                .truncate(true)
                .open(path);
            file.and_then(|mut f| f.write_all(&said)).map_err(|e| format!("{path}: {e}"))?;
        }
    }
    Ok(true)
}

fn seconds(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=1e6).contains(&s) => Ok((s * 1e9) as u64),
        _ => Err(format!("{text}: wanted seconds, 0 to 1000000")),
    }
}

/// A thread that is busy for `ns`, on `cpu` alone if one is named.
fn spin(ns: u64, cpu: Option<u32>) -> Result<(), String> {
    let end = sys::mono() + ns;
    let busy = move || {
        if let Some(Err(e)) = cpu.map(|cpu| sys::set_affinity([cpu])) {
            return eprintln!("spin: {e}");
        }
        while sys::mono() < end {
            burn(1000);
        }
    };
    std::thread::Builder::new().name("spin".into()).spawn(busy).map(drop).map_err(|e| e.to_string())
}

fn list(path: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let named = |e: io::Error| format!("{path}: {e}");
    if !fs::metadata(path).map_err(named)?.is_dir() {
        out.extend_from_slice(format!("{path}\n").as_bytes());
        return Ok(());
    }
    let mut names: Vec<String> = fs::read_dir(path)
        .map_err(named)?
        .flatten()
        .map(|e| {
            e.file_name().to_string_lossy().into_owned() + if e.path().is_dir() { "/" } else { "" }
        })
        .collect();
    names.sort();
    out.extend_from_slice(format!("{}\n", names.join("  ")).as_bytes());
    Ok(())
}

fn show(path: &str, named: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let text = fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    if named {
        out.extend_from_slice(format!("{path}: ").as_bytes());
    }
    out.extend_from_slice(&text);
    if text.last() != Some(&b'\n') {
        out.push(b'\n');
    }
    Ok(())
}

/// The paths that a word with `*` stands for, in order; the word itself if there are none.
fn expand(word: &str) -> Vec<String> {
    if !word.contains('*') {
        return vec![word.into()];
    }
    let mut found = vec![PathBuf::from(if word.starts_with('/') { "/" } else { "" })];
    for part in word.split('/').filter(|p| !p.is_empty()) {
        let mut next = Vec::new();
        for dir in found {
            if !part.contains('*') {
                next.extend(Some(dir.join(part)).filter(|p| p.exists()));
                continue;
            }
            let inside = if dir.as_os_str().is_empty() { Path::new(".") } else { &dir };
            let entries =
                fs::read_dir(inside).into_iter().flatten().flatten().map(|e| e.file_name());
            let mut names: Vec<String> =
                entries.filter_map(|n| n.into_string().ok()).filter(|n| fits(part, n)).collect();
            names.sort();
            next.extend(names.iter().map(|n| dir.join(n)));
        }
        found = next;
    }
    match found.is_empty() {
        true => vec![word.into()],
        false => found.iter().map(|p| p.to_string_lossy().into_owned()).collect(),
    }
}

/// Whether `name` is as `pattern` says.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(tail) = name.strip_prefix(start) else { return false };
            (0..=tail.len()).filter(|i| tail.is_char_boundary(*i)).any(|i| fits(rest, &tail[i..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<String, String> {
        let mut out = Vec::new();
        obey(line, &mut out)
            .map(|on| if on { String::from_utf8(out).unwrap() } else { "(exit)".into() })
    }

    #[test]
    fn stars_stand_for_any_part() {
        for (pattern, name, yes) in [
            ("cpu*", "cpu12", true),
            ("cpu*", "cp", false),
            ("*", "", true),
            ("a*b*c", "axbxbc", true),
            ("a*b", "abx", false),
            ("*ä*", "xäy", true),
        ] {
            assert_eq!(fits(pattern, name), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_listed_shown_and_written() {
        let dir = std::env::temp_dir().join(format!("risetime-shell-{}", std::process::id()));
        fs::create_dir_all(dir.join("sub")).unwrap();
        let d = dir.to_string_lossy().into_owned();
        assert_eq!(said(&format!("echo one two > {d}/b1")), Ok(String::new()));
        assert_eq!(said(&format!("echo x>{d}/b2")), Ok(String::new()));
        assert_eq!(said(&format!("ls {d}")), Ok("b1  b2  sub/\n".into()));
        assert_eq!(said(&format!("cat {d}/b*")), Ok(format!("{d}/b1: one two\n{d}/b2: x\n")));
        assert_eq!(
            said(&format!("cat {d}/*/none*")),
            Err(format!("{d}/*/none*: No such file or directory (os error 2)"))
        );
        fs::remove_dir_all(dir).unwrap();
        assert_eq!(said("  "), Ok(String::new()));
        assert_eq!(said("exit"), Ok("(exit)".into()));
        assert_eq!(said("spin x"), Err("x: wanted seconds, 0 to 1000000".into()));
        assert_eq!(
            said("vi"),
            Err("vi: this is no command, or not with these words (see help)".into())
        );
        assert_eq!(
            said("echo 1 > /sys/no/such"),
            Err("/sys/no/such: No such file or directory (os error 2)".into())
        );
    }
}
