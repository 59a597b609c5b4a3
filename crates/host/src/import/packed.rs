//! Trees in one file: `.tar`, and what `grep -r .` or `head` printed of one.

use risetime_model::InputError;
use std::collections::BTreeMap;

/// Files of a tree by their absolute names on the machine.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Files of an archive, at most.
const MAX_FILES: usize = 1_000_000;
/// A block of an archive.
const BLOCK: usize = 512;

/// Whether the bytes are an archive (`ustar` in its first header).
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// The plain files of a `.tar`; of the rest, links too, nothing is needed.
///
/// Errors: a header that is none, a file that reaches behind the end, each with its offset.
pub(super) fn untar(bytes: &[u8], file: &str) -> Result<Files, InputError> {
    let mut files = Files::new();
    let (mut at, mut long) = (0, None::<String>);
    while let Some(header) = bytes.get(at..at + BLOCK) {
        if header.iter().all(|b| *b == 0) {
            break;
        }
        let error = |what: &str| InputError::new(format!("{file}: byte {at}"), what);
        if header.get(257..262) != Some(b"ustar") {
            return Err(error("is no header of a tar archive"));
        }
        let size = octal(&header[124..136]).ok_or_else(|| error("a file without a size"))?;
        let data = at + BLOCK;
        let end = data.checked_add(size).filter(|end| *end <= bytes.len());
        let Some(content) = end.and_then(|end| bytes.get(data..end)) else {
            return Err(error("a file reaches behind the end of the archive: cut off"));
        };
        let name = long.take().unwrap_or_else(|| name(header));
        match header[156] {
            b'0' | 0 => {
                // A file of sysfs is shorter than its size says, and tar fills up with zeros.
                let length = content.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
                if let Some(name) = on_machine(&name) {
                    files.insert(name, content[..length].to_vec());
                }
            }
            // GNU's long names, and those of POSIX.
            b'L' => long = Some(text(content)),
            b'x' => long = pax_path(content),
            _ => {}
        }
        if files.len() > MAX_FILES {
            return Err(error("more files than any machine has there"));
        }
        at = data + size.div_ceil(BLOCK) * BLOCK;
    }
    Ok(files)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn name(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

fn octal(digits: &[u8]) -> Option<usize> {
    let text = text(digits);
    usize::from_str_radix(text.trim(), 8).ok()
}

/// The `path` of an extended header: lines `LENGTH key=value`.
fn pax_path(content: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(content);
    text.lines().find_map(|l| l.split_once(' ')?.1.strip_prefix("path=").map(str::to_owned))
}

/// The files of a text of lines `PATH:VALUE`, of `==> PATH <==` or `cat PATH` behind a prompt with values
/// below, quoted (`> `) or not; none: it is no such text.
pub(super) fn printed(text: &str) -> Files {
    let mut files = Files::new();
    let mut add = |path: &str, value: &str| {
        let Some(name) = on_machine(path.trim()) else { return };
        let content = files.entry(name).or_default();
        if !content.is_empty() {
            content.push(b'\n');
        }
        content.extend(value.trim_end().as_bytes());
    };
    let mut under: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim_start_matches(['>', ' ']);
        let head = line.strip_prefix("==> ").and_then(|l| l.strip_suffix(" <=="));
        let prompt = ["# ", "$ "].iter().find_map(|p| Some(line.split_once(p)?.1));
        if head.is_some() || prompt.is_some() {
            let path = prompt.and_then(|p| p.strip_prefix("cat "));
            under = head.or(path.filter(|path| !path.contains([' ', '*'])));
            continue;
        }
        match (under, path_and_value(line)) {
            (Some(path), None) if !line.is_empty() => add(path, line),
            (_, Some((path, value))) => add(path, value),
            _ => {}
        }
    }
    files
}

/// Divides `…/ps:300000/power:28864`, whose path has a colon of its own.
fn path_and_value(line: &str) -> Option<(&str, &str)> {
    let name = line.rfind('/')?;
    let colon = name + line[name..].find(':')?;
    Some((&line[..colon], &line[colon + 1..]))
}

/// The name on its machine of a file that a tree has as `path`; `None`: nothing of interest.
fn on_machine(path: &str) -> Option<String> {
    let path = path.trim_start_matches("./");
    let after = |part: &str| {
        let slashed = format!("/{path}");
        let at = slashed.find(&format!("/{part}"))?;
        Some(slashed[at + 1 + part.len()..].to_owned())
    };
    if let Some(rest) = after("energy_model/") {
        return Some(format!("{}/{rest}", super::energy_model::DIR));
    }
    if let Some(rest) = after("devices/system/") {
        return Some(format!("/sys/devices/system/{rest}"));
    }
    for part in ["proc/", "boot/", "sys/"] {
        if let Some(rest) = path.trim_start_matches('/').strip_prefix(part) {
            return Some(format!("/{part}{rest}"));
        }
    }
    // Printed from within the directory: cpu0/ps:300000/power, cpu0/cpus.
    let (domain, rest) = path.split_once('/')?;
    let state = rest.starts_with("ps") || rest.starts_with("cs");
    let known = state || matches!(rest, "cpus" | "flags" | "units");
    (known && domain.starts_with("cpu"))
        .then(|| format!("{}/{path}", super::energy_model::DIR))
        .or_else(|| domain.starts_with("cpu").then(|| format!("/sys/devices/system/cpu/{path}")))
}
