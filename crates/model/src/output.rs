//! Output: files that appear whole or not at all, directories of a run's own; however the command
//! ends, nothing is left of either.
//!
//! ```text
//! .NAME.0f1e2d3c4b5a6978.part    what is being written beside its place, under a name that nobody can know before, made
//!                                with O_EXCL: a link that lies there is not followed
//! PREFIX.0f1e2d3c4b5a6978        a directory likewise, for nobody else to look into
//! ```
//!
//! Each is locked (`flock`) for as long as it is in use. What can be locked was left by a process that is gone, and is removed
//! by the next one that comes there: process numbers mean nothing to who sees the folder from another container. A file system
//! without locks keeps its leftovers.
//!
//! A signal ends the command ([`end`]): processes that were started and files that were begun go first.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

type End = Box<dyn FnOnce() + Send>;

/// The clean-up to be done should the command be ended now, in the order in which it came up, with
/// the next number.
static ENDS: Mutex<(u64, Vec<(u64, End)>)> = Mutex::new((0, Vec::new()));
static LISTENER: OnceLock<fn()> = OnceLock::new();
static LISTENS: OnceLock<()> = OnceLock::new();
static ENDING: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Letters of a file's name that stand in that of its part: a name may have 255 bytes.
const NAME: usize = 50;
/// Names that are tried.
const TRIES: usize = 16;

fn ends() -> MutexGuard<'static, (u64, Vec<(u64, End)>)> {
    ENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `listener` when there is something for the first time that has to go if a signal comes.
pub fn listen_with(listener: fn()) {
    let _ = LISTENER.set(listener);
}

/// Something that is done if the command is ended while this lives.
#[derive(Debug)]
pub struct AtEnd(u64);

impl AtEnd {
    /// Registers `end` to be called when the command is ended early, before what was registered
    /// earlier. It must not use this module.
    pub fn new(end: impl FnOnce() + Send + 'static) -> AtEnd {
        LISTENS.get_or_init(|| LISTENER.get().into_iter().for_each(|listen| listen()));
        let (next, all) = &mut *ends();
        *next += 1;
        all.push((*next, Box::new(end)));
        AtEnd(*next)
    }
}

/// Whether a signal has come that ends the command: to be set by its handler, before anybody can act on what else it did.
pub fn ending() -> Arc<AtomicBool> {
    Arc::clone(ENDING.get_or_init(Arc::default))
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        // A process that is being ended waits here for ever, and says nothing more.
        while ENDING.get().is_some_and(|ending| ending.load(Ordering::SeqCst)) {
            std::thread::park();
        }
        let removed = {
            let (_, all) = &mut *ends();
            all.iter().position(|(id, _)| *id == self.0).map(|at| all.remove(at))
        };
        drop(removed);
    }
}

/// Runs all registered clean-up, the latest first. The caller ends the process: whoever has
/// something registered waits from now on.
pub fn end() {
    let mut held = ends();
    while let Some((_, end)) = held.1.pop() {
        end();
    }
    std::mem::forget(held);
}

/// Writes a file beside `target`, which it then replaces. `like`: its permissions, else as any new file's.
///
/// Errors: those of `write`, else by `named`; nothing is left then.
pub fn whole<E>(
    target: &Path,
    like: Option<Permissions>,
    named: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
) -> Result<(), E> {
    let parent = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{}.", name.chars().take(NAME).collect::<String>());
    remove_leftovers(parent, &prefix, PART);
    let part = Own::new(parent, &prefix, PART, |path| {
        OpenOptions::new().write(true).create_new(true).open(path)
    });
    let part = part.map_err(&named)?;
    like.map_or(Ok(()), |like| part.file.set_permissions(like)).map_err(&named)?;
    let mut out = BufWriter::new(&part.file);
    write(&mut out)?;
    out.flush().map_err(&named)?;
    drop(out);
    fs::rename(&part.path, target).map_err(&named)
}

const PART: &str = ".part";

/// A directory of a run's own, removed with all that is in it.
#[derive(Debug)]
pub struct Scratch(Own);

impl Scratch {
    /// A new one in `base`; those that processes that are gone have left there are removed.
    ///
    /// Errors: it cannot be made.
    pub fn new(base: &Path, prefix: &str) -> io::Result<Scratch> {
        let prefix = format!("{prefix}.");
        remove_leftovers(base, &prefix, "");
        let make = |path: &Path| {
            DirBuilder::new().mode(0o700).create(path)?;
            // Another process, looking for leftovers, may have found the directory first: then
            // another name is tried.
            File::open(path).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => io::Error::from(io::ErrorKind::AlreadyExists),
                _ => e,
            })
        };
        Own::new(base, &prefix, "", make).map(Scratch)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

/// A file or a directory that is locked, and removed when this goes unless it has got another name.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    /// Keeps the lock.
    file: File,
    _end: AtEnd,
}

impl Own {
    fn new(
        dir: &Path,
        prefix: &str,
        suffix: &str,
        make: impl Fn(&Path) -> io::Result<File>,
    ) -> io::Result<Own> {
        // The process may change its directory, what is to be removed does not.
        let dir = std::path::absolute(dir)?;
        for _ in 0..TRIES {
            let path = dir.join(format!("{prefix}{:016x}{suffix}", RandomState::new().hash_one(0)));
            let gone = path.clone();
            let end = AtEnd::new(move || remove(&gone));
            let file = match make(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            // Where there are no locks, nobody removes what it cannot lock.
            let _ = file.lock();
            let own = Own { path, file, _end: end };
            // Somebody may have taken it for a leftover before it was locked.
            if is_same(&own.path, &own.file) {
                return Ok(own);
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // A directory that was renamed is no longer there.
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    // What cannot be removed is left to the next one.
    let _ = match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
}

fn is_same(path: &Path, file: &File) -> bool {
    let id = |there: io::Result<fs::Metadata>| there.map(|m| (m.dev(), m.ino())).ok();
    id(fs::symlink_metadata(path)).is_some_and(|there| Some(there) == id(file.metadata()))
}

/// Removes what processes that are gone have left in `dir`: names of this form that can be locked.
fn remove_leftovers(dir: &Path, prefix: &str, suffix: &str) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|n| n.strip_prefix(prefix)?.strip_suffix(suffix));
        let ours = random.is_some_and(|r| r.len() == 16 && u64::from_str_radix(r, 16).is_ok());
        // No link and no pipe: opening one of these may go elsewhere, or wait.
        let plain = ours && entry.file_type().is_ok_and(|t| t.is_file() || t.is_dir());
        let Some(file) = plain.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if file.try_lock().is_ok() && is_same(&entry.path(), &file) {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> Scratch {
        Scratch::new(&std::env::temp_dir(), &format!("risetime-output-{name}")).unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn text(path: &Path, text: &str) -> Result<(), io::Error> {
        whole(path, None, |e| e, |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = scratch("whole");
        let file = dir.path().join("a b'c");
        text(&file, "one").unwrap();
        text(&file, "two").unwrap();
        let failed = whole(
            &file,
            None,
            |e| e,
            |out| {
                out.write_all(b"half")?;
                assert_eq!(names(dir.path()).len(), 2, "it is written beside its place");
                Err(io::Error::other("no"))
            },
        );
        assert!(failed.is_err());
        assert_eq!(
            (names(dir.path()), fs::read_to_string(&file).unwrap()),
            (vec!["a b'c".into()], "two".into())
        );
        let long = dir.path().join("ä".repeat(127));
        text(&long, "long").unwrap();
        assert!(long.exists());
        assert!(text(&dir.path().join("none/x"), "").is_err());
    }

    /// Leftovers are told by locks, not by process numbers, which another container may have as
    /// well.
    #[test]
    fn what_is_in_use_is_no_leftover_and_what_nobody_holds_is_one() {
        let dir = scratch("leftovers");
        let (file, random) = (dir.path().join("x"), "0123456789abcdef");
        let left = dir.path().join(format!(".x.{random}.part"));
        fs::write(&left, "left").unwrap();
        fs::create_dir(dir.path().join(format!("run.{random}"))).unwrap();
        // What others may have put there is left alone, and what it points to.
        let victim = dir.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join(".x.fedcba9876543210.part")).unwrap();
        let used = Scratch::new(dir.path(), "run").unwrap();
        let inner = whole(
            &file,
            None,
            |e| e,
            |out| {
                text(&file, "another")?;
                out.write_all(b"one")
            },
        );
        inner.unwrap();
        let other = Scratch::new(dir.path(), "run").unwrap();
        assert!(used.path().exists() && other.path().exists() && !left.exists());
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        let mode = fs::metadata(used.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop((used, other));
        assert_eq!(names(dir.path()), [".x.fedcba9876543210.part", "victim", "x"]);
    }
}
