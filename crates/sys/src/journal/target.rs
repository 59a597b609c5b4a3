//! Targets: what a change is about, how it is read, and how it is written.
//!
//! ```text
//! file PATH           a file of sysfs, procfs, debugfs, a cgroup; read without the newline; of a list of
//!                     choices (`none [mq] bfq`) the one in brackets. A policy's governor is kept with its
//!                     tunables, which go when it goes
//! feature NAME        NAME or NO_NAME in /sys/kernel/debug/sched/features
//! dir PATH            a directory that is made or removed: a cgroup, a cpuset, a trace instance; a cgroup is
//!                     kept with its files
//! sched TID START     a thread's scheduling attributes
//! affinity TID START  the CPUs a thread may run on
//! ```
//!
//! A value is text. Behind it may stand, each after a [`MORE`], what else is given back with it; that is not compared.

use super::Root;
use crate::fault::ESRCH;
use crate::syscalls::{SchedAttr, affinity_of, attr_of, set_affinity_of, set_attr};
use risetime_kernel::units::CpuId;
use risetime_model::platform::cpu_ranges;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// File of the scheduler's features.
const FEATURES: &str = "/sys/kernel/debug/sched/features";
/// Sign between a value and what else is given back with it.
pub(super) const MORE: char = '\u{1e}';

/// Value of a directory that is not there.
pub const ABSENT: &str = "absent";
/// Begin of the value of a directory that is there; its inode follows once it is read.
pub const PRESENT: &str = "present";
/// Files of a cgroup that are kept with it, in the order in which they are given back.
const OF_CGROUP: [&str; 11] = [
    "cgroup.type",
    "cpuset.cpus",
    "cpuset.mems",
    "cpuset.cpus.exclusive",
    "cpuset.cpus.partition",
    "cpu.idle",
    "cpu.weight",
    "cpu.max",
    "cpu.max.burst",
    "cpu.uclamp.max",
    "cpu.uclamp.min",
];
/// Thread whose attributes nobody changes: kthreadd.
const ORDINARY: i32 = 2;

/// A thread, which a number alone does not tell: it may be given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Number of the thread.
    pub tid: i32,
    /// Start of the thread, in ticks of `/proc` since boot.
    pub start: u64,
}

/// The object of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A file, by its path on the machine.
    File(String),
    /// A feature of the scheduler; its values are `NAME` and `NO_NAME`.
    Feature(String),
    /// A directory, by its path on the machine; its values are [`PRESENT`] and [`ABSENT`].
    Dir(String),
    /// A thread's scheduling attributes ([`SchedAttr::to_text`]).
    Sched(Thread),
    /// A thread's CPUs, such as `0-3,6`.
    Affinity(Thread),
}

impl Thread {
    /// The thread of this number as it is now; `None`: there is none.
    pub fn find(root: &Root, tid: i32) -> Option<Thread> {
        Some(Thread { tid, start: started(root, tid)? })
    }
}

/// The start of the process or thread of this number, in ticks since boot; `None`: there is none, or it is dead and only not
/// yet buried.
pub(super) fn started(root: &Root, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(root.path(&format!("/proc/{tid}/stat"))).ok()?;
    // The name may have blanks and brackets.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    (!["Z", "X"].contains(&state)).then_some(())?;
    fields.nth(18)?.trim().parse().ok()
}

impl Target {
    /// Whether a boot makes an end of it: all but files of a disk.
    pub(super) fn is_volatile(&self) -> bool {
        match self {
            Target::File(path) | Target::Dir(path) => of_kernel(path) || path.starts_with("/run/"),
            _ => true,
        }
    }

    /// Whether it exists.
    pub(super) fn exists(&self, root: &Root) -> bool {
        match self {
            Target::File(path) => root.path(path).exists(),
            Target::Feature(_) => root.path(FEATURES).exists(),
            Target::Dir(_) => true,
            Target::Sched(t) | Target::Affinity(t) => Thread::find(root, t.tid) == Some(*t),
        }
    }

    /// The present value.
    ///
    /// Errors: the system's; what is no text.
    pub(super) fn read(&self, root: &Root) -> io::Result<String> {
        match self {
            Target::File(path) => {
                if !of_kernel(path) {
                    return whole(root, path);
                }
                let text = chosen(&text_of(root, path)?);
                Ok(match path.strip_suffix("/scaling_governor") {
                    Some(policy) => text.clone() + &tunables(root, policy, &text),
                    None => text,
                })
            }
            Target::Feature(name) => {
                let text = text_of(root, FEATURES)?;
                let mut all = text.split_whitespace();
                let own = |f: &&str| f.strip_prefix("NO_").unwrap_or(f) == name;
                all.find(own).map(String::from).ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            Target::Dir(path) => dir(root, path),
            Target::Sched(t) => {
                self.is_there(root)?;
                Ok(attr_of(t.tid)?.to_text())
            }
            Target::Affinity(t) => {
                self.is_there(root)?;
                let cpus: Vec<CpuId> = affinity_of(t.tid)?.into_iter().map(CpuId).collect();
                Ok(cpu_ranges(&cpus))
            }
        }
    }

    /// Writes `value`, with what else is given back with it.
    ///
    /// Errors: the system's; of what is given back with it there are none.
    pub(super) fn write(&self, root: &Root, value: &str) -> io::Result<()> {
        let (first, more) = value.split_once(MORE).unwrap_or((value, ""));
        match self {
            Target::File(path) => {
                // Tunables that live on, because another policy has the same governor, are somebody else's.
                let gone = |(path, _): &(&str, &str)| !root.path(path).exists();
                let lost: Vec<_> = pairs(more).filter(gone).collect();
                root.write(path, first)?;
                lost.iter().for_each(|(path, value)| drop(root.write(path, value)));
                Ok(())
            }
            Target::Feature(_) => root.write(FEATURES, first),
            Target::Dir(path) => match first.starts_with(PRESENT) {
                true => {
                    if !root.path(path).exists() {
                        fs::create_dir(root.path(path))?;
                    }
                    pairs(more).for_each(|(file, value)| {
                        drop(root.write(&format!("{path}/{file}"), value));
                    });
                    Ok(())
                }
                false => remove(root, path),
            },
            Target::Sched(t) => {
                self.is_there(root)?;
                let attr = SchedAttr::parse(first).ok_or(io::ErrorKind::InvalidInput)?;
                // Without debugfs nobody says what the usual slice is, but a thread that has it.
                let usual = attr_of(ORDINARY).map_or(0, |attr| attr.runtime);
                set_attr(t.tid, attr.again(usual))
            }
            Target::Affinity(t) => {
                self.is_there(root)?;
                set_affinity_of(t.tid, cpus(first).ok_or(io::ErrorKind::InvalidInput)?)
            }
        }
    }

    fn is_there(&self, root: &Root) -> io::Result<()> {
        if self.exists(root) { Ok(()) } else { Err(io::Error::from_raw_os_error(ESRCH)) }
    }

    /// The words of which a record of it begins.
    pub(super) fn to_words(&self) -> [String; 2] {
        let of = |t: &Thread| format!("{} {}", t.tid, t.start);
        match self {
            Target::File(path) => ["file".into(), path.clone()],
            Target::Feature(name) => ["feature".into(), name.clone()],
            Target::Dir(path) => ["dir".into(), path.clone()],
            Target::Sched(t) => ["sched".into(), of(t)],
            Target::Affinity(t) => ["affinity".into(), of(t)],
        }
    }

    /// Reads what [`to_words`](Target::to_words) wrote.
    pub(super) fn parse(kind: &str, which: &str) -> Option<Target> {
        let thread = || {
            let (tid, start) = which.split_once(' ')?;
            Some(Thread { tid: tid.parse().ok()?, start: start.parse().ok()? })
        };
        Some(match kind {
            "file" => Target::File(which.into()),
            "feature" => Target::Feature(which.into()),
            "dir" => Target::Dir(which.into()),
            "sched" => Target::Sched(thread()?),
            "affinity" => Target::Affinity(thread()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(path) | Target::Dir(path) => f.write_str(path),
            Target::Feature(name) => write!(f, "{FEATURES}: {name}"),
            Target::Sched(t) => write!(f, "scheduling attributes of thread {}", t.tid),
            Target::Affinity(t) => write!(f, "CPUs of thread {}", t.tid),
        }
    }
}

/// Whether the kernel is behind a file, and not a disk or memory.
pub(super) fn of_kernel(path: &str) -> bool {
    ["/sys/", "/proc/", "/dev/"].iter().any(|place| path.starts_with(place))
}

/// Whether two values are the same as far as they are compared.
pub(super) fn same(a: &str, b: &str) -> bool {
    bare(a) == bare(b)
}

/// A value without what else is given back with it.
pub(super) fn bare(value: &str) -> &str {
    value.split(MORE).next().unwrap_or_default()
}

/// `PATH<tab>VALUE` of each that is given back with a value.
fn pairs(more: &str) -> impl Iterator<Item = (&str, &str)> {
    more.split(MORE).filter_map(|pair| pair.split_once('\t'))
}

fn whole(root: &Root, path: &str) -> io::Result<String> {
    let text = String::from_utf8(fs::read(root.path(path))?);
    let text = text.ok().filter(|text| !text.contains(MORE));
    text.ok_or_else(|| io::Error::other("found what is no text"))
}

fn text_of(root: &Root, path: &str) -> io::Result<String> {
    Ok(whole(root, path)?.trim_end_matches(['\n', '\0', ' ']).to_string())
}

/// The word in brackets of a list that has one, else the text.
fn chosen(text: &str) -> String {
    let mut words = text.split_whitespace();
    let own = words.clone().filter(|w| w.starts_with('[') && w.ends_with(']'));
    match (own.count(), text.lines().count()) {
        (1, 1) => {
            let own = words.find(|w| w.starts_with('[')).unwrap_or(text);
            own.trim_matches(['[', ']']).to_string()
        }
        _ => text.to_string(),
    }
}

/// The tunables of `governor` for the policy in this directory, wherever the driver has them.
fn tunables(root: &Root, policy: &str, governor: &str) -> String {
    let all = Path::new(policy).parent().map(|dir| dir.display().to_string()).unwrap_or_default();
    let mut lines = String::new();
    for dir in [format!("{all}/{governor}"), format!("{policy}/{governor}")] {
        let Ok(entries) = fs::read_dir(root.path(&dir)) else { continue };
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        for name in names {
            let path = format!("{dir}/{name}");
            if let Ok(text) = text_of(root, &path)
                && !text.contains('\n')
            {
                lines += &format!("{MORE}{path}\t{}", chosen(&text));
            }
        }
    }
    lines
}

/// The value of a directory: which one it is, and if it is a cgroup what is in its files.
fn dir(root: &Root, path: &str) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let meta = match fs::symlink_metadata(root.path(path)) {
        Ok(meta) if meta.is_dir() => meta,
        Ok(_) => return Err(io::Error::other("is there, and no directory")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(ABSENT.into()),
        Err(e) => return Err(e),
    };
    let mut value = format!("{PRESENT} {}", meta.ino());
    for file in OF_CGROUP {
        let text = text_of(root, &format!("{path}/{file}"));
        // A type can only be made `threaded`; all others are what a cgroup is by itself.
        let wanted =
            |text: &String| !text.contains('\n') && (file != "cgroup.type" || text == "threaded");
        if let Some(text) = text.ok().filter(wanted) {
            value += &format!("{MORE}{file}\t{text}");
        }
    }
    Ok(value)
}

/// Removes a directory; who is in it, if it is a cgroup, moves to the one above.
fn remove(root: &Root, path: &str) -> io::Result<()> {
    let (own, above) = (root.path(path), root.path(path).parent().map(Path::to_path_buf));
    for list in ["cgroup.procs", "cgroup.threads"] {
        let Ok(members) = fs::read_to_string(own.join(list)) else { continue };
        for member in members.lines() {
            if let Some(above) = &above {
                // One that has ended meanwhile is gone as well.
                let file = fs::OpenOptions::new().write(true).open(above.join(list));
                let _ = file.and_then(|mut f| f.write_all(member.as_bytes()));
            }
        }
    }
    fs::remove_dir(own)
}

/// CPUs of `0-3,6`.
fn cpus(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_choices_the_one_in_brackets_is_the_value() {
        assert_eq!(chosen("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen("[a] [b]"), "[a] [b]");
        assert_eq!(chosen("schedutil"), "schedutil");
        assert_eq!(cpus("0-2,6"), Some(vec![0, 1, 2, 6]));
        assert_eq!(cpus("x"), None);
    }

    #[test]
    fn a_target_survives_the_way_through_its_words() {
        let thread = Thread { tid: 7, start: 99 };
        for target in [
            Target::File("/a b".into()),
            Target::Feature("UTIL_EST".into()),
            Target::Dir("/c".into()),
            Target::Sched(thread),
            Target::Affinity(thread),
        ] {
            let [kind, which] = target.to_words();
            assert_eq!(Target::parse(&kind, &which), Some(target));
        }
        assert_eq!(Target::parse("sched", "7"), None);
    }
}
