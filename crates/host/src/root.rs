//! Reading a machine's files: bounded, never a panic, and with a memory of what it could
//! not read.
//!
//! Everything this crate knows about a machine comes through [`Root::read`] and
//! [`Root::list`]. The root is a parameter so that a saved tree, or one made by a test, is
//! probed by the same code as the running machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No file of interest is larger; `/proc/cpuinfo` of a 512-thread server is about 800 KiB.
const LIMIT: u64 = 4 << 20;

/// No directory of interest holds more entries.
const LIMIT_ENTRIES: usize = 100_000;

/// The tree that holds `proc` and `sys`.
#[derive(Debug)]
pub struct Root {
    place: Place,
    denied: Vec<String>,
    problems: RefCell<Vec<Problem>>,
}

/// Place of the files of a tree.
#[derive(Debug)]
enum Place {
    /// A directory, and what it is on the machine (empty: the whole tree).
    Dir(PathBuf, &'static str),
    /// Contents in memory, by absolute names on the machine.
    Files(BTreeMap<String, Vec<u8>>),
}

/// A file that is there but did not give its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Absolute name on the machine.
    pub file: String,
    /// Permission is what is missing.
    pub denied: bool,
    /// Description of the error: `permission denied`, or what was found and what was wanted.
    pub what: String,
}

/// A value and the file that said it: what a finding shows as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact<T = String> {
    /// The value.
    pub value: T,
    /// The file's absolute name on the machine, or how else it was found out.
    pub file: String,
}

impl Root {
    /// The tree under `dir`; `/` is the running machine.
    pub fn new(dir: impl Into<PathBuf>) -> Root {
        Root::at(Place::Dir(dir.into(), ""))
    }

    /// The tree of which `dir` is the directory `part` (`/sys`); of the rest there is nothing.
    pub fn of_part(dir: impl Into<PathBuf>, part: &'static str) -> Root {
        Root::at(Place::Dir(dir.into(), part))
    }

    /// The tree of these files, by their absolute names on the machine: one that somebody packed
    /// or printed.
    pub fn of_files(files: BTreeMap<String, Vec<u8>>) -> Root {
        Root::at(Place::Files(files))
    }

    fn at(place: Place) -> Root {
        Root { place, denied: Vec::new(), problems: RefCell::default() }
    }

    /// Returns this tree as it is for somebody who may not read anything under `prefix` (an
    /// absolute name on the machine): what `doctor` would say without root's rights.
    pub fn as_if_denied(mut self, prefix: impl Into<String>) -> Root {
        self.denied.push(prefix.into());
        self
    }

    /// Whether this is the running machine, which can be asked by system calls as well.
    pub fn is_live(&self) -> bool {
        matches!(&self.place, Place::Dir(dir, "") if dir == Path::new("/"))
    }

    /// Lists what could not be read up to now; files that do not exist are not among it.
    pub fn problems(&self) -> Vec<Problem> {
        self.problems.borrow().clone()
    }

    /// The bytes of `file`, at most 4 MiB; `None` if it does not exist or cannot be read (the
    /// latter is remembered in [`problems`](Root::problems)).
    ///
    /// `cpuinfo_cur_freq` is refused: under cpufreq-dt reading it makes the core compare with
    /// the clock and change `policy->cur` (drivers/cpufreq/cpufreq.c:cpufreq_verify_current_freq).
    pub fn bytes(&self, file: &str) -> Option<Vec<u8>> {
        if file.ends_with("/cpuinfo_cur_freq") {
            self.note(file, false, "not read: reading it has side effects; use scaling_cur_freq");
            return None;
        }
        match self.open(file) {
            Ok(bytes) if bytes.len() as u64 > LIMIT => {
                self.note(file, false, "larger than 4 MiB: not what it should be");
                None
            }
            Ok(bytes) => Some(bytes),
            Err(e) => {
                self.fault(file, &e);
                None
            }
        }
    }

    /// The text of `file` without white space around it.
    pub fn read(&self, file: &str) -> Option<Fact> {
        let bytes = self.bytes(file)?;
        let value = String::from_utf8_lossy(&bytes).trim().to_owned();
        Some(Fact { value, file: file.to_owned() })
    }

    /// The whole number in `file`; anything else in it is remembered as a problem.
    pub fn number(&self, file: &str) -> Option<Fact<u64>> {
        let text = self.read(file)?;
        match text.value.parse() {
            Ok(value) => Some(Fact { value, file: text.file }),
            Err(_) => {
                self.garbage(&text, "a whole number");
                None
            }
        }
    }

    /// The CPU list (`0-3,8`) in `file`; anything else in it is remembered as a problem.
    pub fn cpu_list(&self, file: &str) -> Option<Fact<Vec<u32>>> {
        let text = self.read(file)?;
        match parse_cpu_list(&text.value) {
            Some(value) => Some(Fact { value, file: text.file }),
            None => {
                self.garbage(&text, "a list of CPUs such as 0-3,8");
                None
            }
        }
    }

    /// The names in directory `dir`, sorted, numbers by value; empty if there is none.
    pub fn list(&self, dir: &str) -> Vec<String> {
        if self.is_denied(dir) {
            self.note_denied(dir);
            return Vec::new();
        }
        let mut names = match &self.place {
            Place::Files(files) => entries(files, dir),
            Place::Dir(root, part) => match read_dir(root, part, dir) {
                Ok(entries) => entries
                    .take(LIMIT_ENTRIES)
                    .filter_map(|e| e.ok()?.file_name().into_string().ok())
                    .collect(),
                Err(e) => {
                    self.fault(dir, &e);
                    return Vec::new();
                }
            },
        };
        names.sort_by_key(|n| {
            (n.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), number_at_end(n))
        });
        names
    }

    /// Whether `file` exists, whatever may be done with it.
    pub fn exists(&self, file: &str) -> bool {
        match &self.place {
            Place::Dir(root, part) => under(root, part, file).is_some_and(|path| path.exists()),
            Place::Files(files) => files.contains_key(file) || !entries(files, file).is_empty(),
        }
    }

    /// Remembers that `text` is not `wanted`.
    pub(crate) fn garbage(&self, text: &Fact, wanted: &str) {
        let found: String = text.value.chars().take(40).flat_map(char::escape_debug).collect();
        self.note(&text.file, false, &format!("found \"{found}\", wanted {wanted}"));
    }

    fn open(&self, file: &str) -> std::io::Result<Vec<u8>> {
        if self.is_denied(file) {
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        let path = match &self.place {
            Place::Dir(root, part) => {
                under(root, part, file).ok_or(std::io::ErrorKind::NotFound)?
            }
            Place::Files(files) => {
                let bytes = files.get(file).cloned();
                return bytes.ok_or_else(|| std::io::ErrorKind::NotFound.into());
            }
        };
        // Only plain files: opening a pipe that somebody left in a saved tree would block.
        if !std::fs::metadata(&path)?.is_file() {
            return Err(std::io::Error::other("not a plain file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(LIMIT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn is_denied(&self, file: &str) -> bool {
        self.denied.iter().any(|d| file.starts_with(d.as_str()))
    }

    fn fault(&self, file: &str, e: &std::io::Error) {
        use std::io::ErrorKind::*;
        match e.kind() {
            NotFound | NotADirectory | Unsupported => {}
            PermissionDenied => self.note_denied(file),
            // ESRCH, ENXIO, EBUSY, ENODEV: the thing behind the file is not there (a process
            // that ended, an attribute that this driver does not fill): the same as no file.
            _ if matches!(e.raw_os_error(), Some(3 | 6 | 16 | 19)) => {}
            _ => self.note(file, false, &e.to_string().to_lowercase()),
        }
    }

    fn note_denied(&self, file: &str) {
        self.note(file, true, "permission denied");
    }

    fn note(&self, file: &str, denied: bool, what: &str) {
        let problem = Problem { file: file.to_owned(), denied, what: what.to_owned() };
        let mut problems = self.problems.borrow_mut();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

impl Problem {
    /// `file: what`.
    pub fn line(&self) -> String {
        format!("{}: {}", self.file, self.what)
    }
}

/// Numbers of a CPU list as the kernel prints it (`%*pbl`): `0-3,8`, or separated by spaces
/// as cpufreq does. `None` if it is anything else, or names a CPU above 8191 (the largest
/// `CONFIG_NR_CPUS`).
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split([',', ' ', '\n']).filter(|p| !p.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if from > to || to > 8191 {
            return None;
        }
        cpus.extend(from..=to);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// `[0, 1, 2, 5]` as `0-2,5`.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    parts.join(",")
}

/// The path of `file` where `root` is `part` of the machine; `None`: outside of it.
fn under(root: &Path, part: &str, file: &str) -> Option<PathBuf> {
    let rest = file.strip_prefix(part)?;
    (part.is_empty() || rest.is_empty() || rest.starts_with('/'))
        .then(|| root.join(rest.trim_start_matches('/')))
}

fn read_dir(root: &Path, part: &str, dir: &str) -> std::io::Result<std::fs::ReadDir> {
    std::fs::read_dir(under(root, part, dir).ok_or(std::io::ErrorKind::NotFound)?)
}

/// The names in directory `dir` of `files`.
fn entries(files: &BTreeMap<String, Vec<u8>>, dir: &str) -> Vec<String> {
    let begin = format!("{}/", dir.trim_end_matches('/'));
    let within = files.range(begin.clone()..).map_while(|(name, _)| name.strip_prefix(&begin));
    let mut names: Vec<String> =
        within.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
    names.dedup();
    names.truncate(LIMIT_ENTRIES);
    names
}

fn number_at_end(name: &str) -> u64 {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name[stem.len()..].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        for (text, cpus) in [
            ("0", Some(vec![0])),
            ("0-3,8", Some(vec![0, 1, 2, 3, 8])),
            ("0 1 2", Some(vec![0, 1, 2])),
            ("3,1-3", Some(vec![1, 2, 3])),
            ("", Some(vec![])),
            ("3-1", None),
            ("-1", None),
            ("0-", None),
            ("0-4000000000", None),
            ("0-8192", None),
            ("zero", None),
        ] {
            assert_eq!(parse_cpu_list(text), cpus, "{text:?}");
        }
        for text in ["0", "0-3,8", "1,3,5-6", ""] {
            assert_eq!(format_cpu_list(&parse_cpu_list(text).unwrap()), text);
        }
    }

    #[test]
    fn the_file_with_side_effects_is_never_opened() {
        let file = "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_cur_freq";
        let root = Root::new("/");
        assert_eq!(root.read(file), None);
        assert!(root.problems()[0].what.contains("side effects"));
    }

    #[test]
    fn directories_and_devices_are_not_read() {
        let root = Root::new("/");
        assert_eq!(root.read("/proc"), None);
        assert_eq!(root.read("/dev/zero"), None);
        assert_eq!(root.problems().len(), 2, "{:?}", root.problems());
        assert_eq!(root.read("/nonexistent/file"), None);
        assert_eq!(root.problems().len(), 2, "a missing file is no problem");
    }
}
