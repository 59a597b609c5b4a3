//! The journal of everything that changes a machine: each change is read before it is written, and undone however
//! its process ends.
//!
//! ```text
//! change      lock ── read what is there ── record it, on the disk ── write ── read back ── record that ── unlock
//! undone      by hand, on drop, by SIGINT, SIGTERM or SIGHUP, and at the next start of whoever opens the
//!             same directory, when the process is gone without (SIGKILL, panic, power)
//! kept        a change may outlive its process, under a name by which it is undone
//! ```
//!
//! **Undoing never overwrites a later change**, in whatever order things are undone. Changes of one target are a
//! stack:
//!
//! ```text
//! on top, and what is there is what was read back    what was there before is written
//! on top, and it is something else                   somebody has changed it since: left alone, and told; so are
//!                                                    those below
//! below, and the next one came onto its value        nothing is written: the next one gives back what this one would
//! below, and the next one came onto something else   somebody had changed it between: left alone, and told
//! ```
//!
//! Compared is what was read *back*, since a kernel may round what it is given (`rate_limit_us`,
//! `scaling_max_freq`). Where a process died between writing and reading back, and the value is neither what was
//! there nor what was asked for, it is asked for once more: what that gives tells whether the kernel had rounded or
//! somebody else has been here. That, too, is a change in the journal.
//!
//! A process is known by number, start and boot. Another boot has taken back what is not on a disk: such entries are
//! dropped. A thread is known by number and start, so that none is touched that has got a number anew. Several
//! processes take turns by a lock. The directory is the owner's alone; a journal below `/run` costs no
//! disk, and ends with the boot, as all of sysfs does.
//!
//! Errors: a [`Fault`] with the place, the cause in words, and what to do. If one change of several fails, those before it
//! are undone.

mod store;
mod target;
#[cfg(test)]
mod tests;

pub use crate::fault::Fault;
pub use target::{ABSENT, PRESENT, Target, Thread};

use risetime_model::output::AtEnd;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use store::{Entry, Held, Record, Store};
use target::{MORE, bare, of_kernel, same, started};

/// The tree that holds `proc`, `sys` and `dev`: `/`, or one that a test has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The running machine.
    pub fn live() -> Root {
        Root("/".into())
    }

    /// The tree below `dir`.
    pub fn below(dir: impl Into<PathBuf>) -> Root {
        Root(dir.into())
    }

    /// The place of `file`, an absolute path on the machine.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file.trim_start_matches('/'))
    }

    /// Writes `value` to a file that is there.
    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::MetadataExt;
        let path = self.path(file);
        let kernels = self.0 == Path::new("/") && of_kernel(file);
        // An empty write is none; the kernel takes a newline for it.
        let text = if kernels && value.is_empty() { "\n" } else { value };
        if kernels {
            return fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
        }
        #[cfg(test)]
        let text = &tests::rounded(file, text);
        // On a disk all of it or nothing; it stays whose it was.
        let path = fs::canonicalize(path)?;
        let like = fs::metadata(&path)?;
        let new = path.with_extension("risetime-new");
        let mut out = fs::File::create(&new)?;
        out.set_permissions(like.permissions())?;
        std::os::unix::fs::chown(&new, Some(like.uid()), Some(like.gid()))?;
        out.write_all(text.as_bytes())?;
        out.sync_data()?;
        fs::rename(new, path)
    }
}

/// Time for which a process that a signal ends waits for the journal.
const PATIENCE: Duration = Duration::from_secs(3);

/// A change to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The object of the change.
    pub target: Target,
    /// Value that it gets.
    pub value: String,
}

impl Change {
    /// A file that gets `value`.
    pub fn file(path: impl Into<String>, value: impl fmt::Display) -> Change {
        Change { target: Target::File(path.into()), value: value.to_string() }
    }

    /// A scheduler feature that is switched on or off.
    pub fn feature(name: &str, on: bool) -> Change {
        let value = format!("{}{name}", if on { "" } else { "NO_" });
        Change { target: Target::Feature(name.into()), value }
    }

    /// A directory (a cgroup, a cpuset, a trace instance) that is made or removed.
    pub fn dir(path: impl Into<String>, made: bool) -> Change {
        let value = if made { PRESENT } else { ABSENT }.into();
        Change { target: Target::Dir(path.into()), value }
    }
}

/// Holder of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// A process; the change ends with it.
    Process { pid: i32, start: u64, boot: String },
    /// A name by which it is undone; no process that runs.
    Kept { name: String, boot: String },
    /// The journal, which asks once more for what somebody has left unfinished.
    Asking { boot: String },
}

impl Owner {
    fn to_text(&self) -> String {
        match self {
            Owner::Process { pid, start, boot } => format!("process {pid} {start} {boot}"),
            Owner::Kept { name, boot } => format!("kept {boot} {name}"),
            Owner::Asking { boot } => format!("asking {boot}"),
        }
    }

    fn parse(text: &str) -> Option<Owner> {
        let (kind, rest) = text.split_once(' ')?;
        Some(match kind {
            "process" => {
                let words: Vec<&str> = rest.splitn(3, ' ').collect();
                let [pid, start, boot] = words[..] else { return None };
                let (pid, start) = (pid.parse().ok()?, start.parse().ok()?);
                Owner::Process { pid, start, boot: boot.into() }
            }
            "kept" => {
                let (boot, name) = rest.split_once(' ')?;
                Owner::Kept { name: name.into(), boot: boot.into() }
            }
            "asking" => Owner::Asking { boot: rest.into() },
            _ => return None,
        })
    }

    fn boot(&self) -> &str {
        match self {
            Owner::Process { boot, .. } | Owner::Kept { boot, .. } | Owner::Asking { boot } => boot,
        }
    }

    /// The owner of a change that is kept under a name, when its process no longer holds it.
    fn kept(&self, name: &str) -> Owner {
        Owner::Kept { name: name.into(), boot: self.boot().into() }
    }
}

/// End of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The object of the change.
    pub target: Target,
    /// Value that had been read back.
    pub wrote: String,
    /// Outcome.
    pub how: How,
}

/// Outcome of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The value from before is there again.
    Restored,
    /// A later change stands on it, which gives that value back when it is undone.
    Below,
    /// The value is another one since, by somebody else's hand: it is left alone.
    Changed,
    /// The thread or the file is no more.
    Gone,
    /// The machine has been started anew since, which has taken it back.
    Rebooted,
    /// The kernel refuses the value from before; the entry stays.
    Failed(Fault),
}

impl Undone {
    /// Whether a person should hear of it.
    pub fn matters(&self) -> bool {
        matches!(self.how, How::Changed | How::Failed(_))
    }
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = bare(&self.wrote).trim_end();
        match &self.how {
            How::Restored => write!(f, "{}: restored", self.target),
            How::Below => write!(f, "{}: a later change stands on it", self.target),
            How::Changed => {
                write!(
                    f,
                    "{}: no longer {first}: somebody has changed it since; left alone",
                    self.target
                )
            }
            How::Gone => write!(f, "{}: no longer there", self.target),
            How::Rebooted => write!(f, "{}: the machine has been started anew since", self.target),
            How::Failed(fault) => write!(f, "{}: not restored: {}", self.target, fault.what),
        }
    }
}

/// A change that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The object of the change.
    pub target: Target,
    /// Value that undoing it gives back.
    pub before: String,
    /// Value that was read back after it was written.
    pub now: String,
    /// Name under which it is kept; `None`: it ends with its process.
    pub kept: Option<String>,
}

/// A journal in a directory, for one process.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    root: Root,
    boot: String,
    owner: Owner,
    tell: fn(&Undone),
    /// True when a signal ends the process: all has been undone.
    ended: AtomicBool,
    at_end: OnceLock<AtEnd>,
    #[cfg(test)]
    crash: tests::Crash,
}

impl Journal {
    /// Opens the journal in `dir` for the machine below `root`, and undoes what dead processes have left. From then on
    /// a signal that ends this process undoes its changes first. `tell` hears of whatever is not restored where nobody
    /// else is told: on drop, by a signal.
    ///
    /// Errors: a directory that others may write in, or that cannot be written.
    pub fn open(
        dir: &Path,
        root: Root,
        tell: fn(&Undone),
    ) -> Result<(Journal, Vec<Undone>), Fault> {
        Journal::of(dir, root, tell, std::process::id() as i32)
    }

    fn of(
        dir: &Path,
        root: Root,
        tell: fn(&Undone),
        pid: i32,
    ) -> Result<(Journal, Vec<Undone>), Fault> {
        const BOOT: &str = "/proc/sys/kernel/random/boot_id";
        let boot = fs::read_to_string(root.path(BOOT)).map_err(|e| Fault::of(BOOT, "", &e))?;
        let boot = boot.trim().to_string();
        let start = started(&root, pid).ok_or_else(|| Fault::new("/proc", "is not mounted"))?;
        let owner = Owner::Process { pid, start, boot: boot.clone() };
        let inner = Arc::new(Inner {
            store: Store::new(dir)?,
            root,
            boot,
            owner,
            tell,
            ended: AtomicBool::new(false),
            at_end: OnceLock::new(),
            #[cfg(test)]
            crash: tests::awaits(),
        });
        let left = inner.recover()?;
        let weak: Weak<Inner> = Arc::downgrade(&inner);
        let end = move || {
            if let Some(inner) = weak.upgrade() {
                inner.end();
                // What it holds must not be let go of here: the process ends now.
                std::mem::forget(inner);
            }
        };
        risetime_model::output::listen_with(crate::signals::listen);
        let _ = inner.at_end.set(AtEnd::new(end));
        Ok((Journal(inner), left))
    }

    /// Makes `changes` in their order. They are undone when what is returned is dropped.
    ///
    /// Errors: the first that fails; those before it are undone.
    pub fn change(&self, changes: &[Change]) -> Result<Changes, Fault> {
        let ids = self.0.change(changes)?;
        Ok(Changes { inner: Arc::clone(&self.0), ids })
    }

    /// Undoes the changes that are kept under `name`, the latest first.
    ///
    /// Errors: those of the journal; what becomes of each change is in the list.
    pub fn undo_kept(&self, name: &str) -> Result<Vec<Undone>, Fault> {
        let of = |e: &Entry| matches!(&e.owner, Owner::Kept { name: n, .. } if n == name);
        self.0.undo_all(of)
    }

    /// Lists all changes that are in force, of whatever process, in their order.
    ///
    /// Errors: those of the journal.
    pub fn standing(&self) -> Result<Vec<Standing>, Fault> {
        let held = self.0.lock()?;
        let standing = |e: &Entry| Standing {
            target: e.target.clone(),
            before: bare(&e.old).into(),
            now: bare(e.wrote.as_deref().unwrap_or_default()).into(),
            kept: match &e.owner {
                Owner::Kept { name, .. } => Some(name.clone()),
                _ => None,
            },
        };
        Ok(held.entries.iter().filter(|e| !e.lost).map(standing).collect())
    }
}

/// Changes that have been made together, undone when this is dropped.
#[derive(Debug)]
pub struct Changes {
    inner: Arc<Inner>,
    ids: Vec<u64>,
}

impl Changes {
    /// Undoes them, the latest first.
    ///
    /// Errors: those of the journal; what becomes of each change is in the list.
    pub fn undo(mut self) -> Result<Vec<Undone>, Fault> {
        let ids = std::mem::take(&mut self.ids);
        self.inner.undo_all(|e| ids.contains(&e.id))
    }

    /// Lists them as they stand: what was there before, what was read back.
    ///
    /// Errors: those of the journal.
    pub fn standing(&self) -> Result<Vec<Standing>, Fault> {
        let held = self.inner.lock()?;
        let own = self.ids.iter().filter_map(|id| held.entry(*id));
        Ok(own
            .map(|e| Standing {
                target: e.target.clone(),
                before: bare(&e.old).into(),
                now: bare(e.wrote.as_deref().unwrap_or_default()).into(),
                kept: None,
            })
            .collect())
    }

    /// Lets them outlive this process, until they are undone by `name`; the end of this boot ends them, too.
    ///
    /// Errors: those of the journal; then they are still undone on drop.
    pub fn keep(mut self, name: &str) -> Result<(), Fault> {
        let mut held = self.inner.lock()?;
        let keep = self.ids.iter().map(|id| Record::Keep(*id, name.into())).collect();
        held.append(keep, true)?;
        self.ids.clear();
        Ok(())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        if ids.is_empty() {
            return;
        }
        // Where a signal ends the process this waits for it, so that the process is not over before.
        match self.inner.undo_all(|e| ids.contains(&e.id)) {
            Ok(undone) => self.inner.tell_all(&undone),
            // The next start has another try.
            Err(fault) => self.inner.tell_of(fault),
        }
    }
}

impl Inner {
    /// The journal, locked, with nothing in it unfinished.
    fn lock(&self) -> Result<Held, Fault> {
        if self.ended.load(Ordering::SeqCst) {
            // The process is being ended, and changes nothing more.
            loop {
                std::thread::park();
            }
        }
        self.locked(None)
    }

    fn locked(&self, within: Option<Duration>) -> Result<Held, Fault> {
        let mut held = self.store.lock(within)?;
        self.finish(&mut held)?;
        Ok(held)
    }

    fn tell_all(&self, undone: &[Undone]) {
        undone.iter().filter(|u| u.matters()).for_each(self.tell);
    }

    fn tell_of(&self, fault: Fault) {
        let target = Target::File(fault.place.clone());
        (self.tell)(&Undone { target, wrote: String::new(), how: How::Failed(fault) });
    }

    /// Undoes this process's changes because it is being ended. Whoever does not let go of the journal must not keep it from
    /// that: the next start has another try.
    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let undone = self
            .locked(Some(PATIENCE))
            .map(|mut held| self.undo_of(&mut held, |e| e.owner == self.owner));
        match undone {
            Ok(undone) => self.tell_all(&undone),
            Err(fault) => self.tell_of(fault),
        }
    }

    fn undo_all(&self, which: impl Fn(&Entry) -> bool) -> Result<Vec<Undone>, Fault> {
        let mut held = self.lock()?;
        let undone = self.undo_of(&mut held, which);
        // What is too long is shortened another time.
        let _ = held.compact();
        Ok(undone)
    }

    /// Undoes what dead processes have left.
    fn recover(&self) -> Result<Vec<Undone>, Fault> {
        let mut held = self.store.lock(None)?;
        let rebooted = |e: &&Entry| e.target.is_volatile() && e.owner.boot() != self.boot;
        let over: Vec<Entry> = held.entries.iter().filter(rebooted).cloned().collect();
        if !over.is_empty() {
            held.append(over.iter().map(|e| Record::Gone(e.id)).collect(), true)?;
        }
        self.finish(&mut held)?;
        let dead = |e: &Entry| match &e.owner {
            Owner::Process { pid, start, boot } => {
                *boot != self.boot || started(&self.root, *pid) != Some(*start)
            }
            Owner::Kept { .. } => false,
            Owner::Asking { .. } => true,
        };
        let told = |e: Entry| Undone {
            wrote: e.wrote.unwrap_or_default(),
            target: e.target,
            how: How::Rebooted,
        };
        let mut undone: Vec<Undone> = over.into_iter().map(told).collect();
        undone.extend(self.undo_of(&mut held, dead));
        let _ = held.compact();
        Ok(undone)
    }

    /// A place in the middle of a change at which a test lets the process die.
    fn may_die(&self) -> Result<(), Fault> {
        #[cfg(test)]
        return self.crash.point();
        #[cfg(not(test))]
        Ok(())
    }

    fn change(&self, changes: &[Change]) -> Result<Vec<u64>, Fault> {
        let mut held = self.lock()?;
        let mut made = Vec::new();
        let mut next: Vec<Change> = Vec::new();
        let mut done = Ok(());
        for change in changes {
            // What is in a directory can be read when that is there; the same once more when it has been written.
            let waits = next
                .iter()
                .any(|c| c.target == change.target || matches!(c.target, Target::Dir(_)));
            if waits && done.is_ok() {
                done = self.together(&mut held, &std::mem::take(&mut next), &mut made);
            }
            next.push(change.clone());
        }
        if done.is_ok() {
            done = self.together(&mut held, &next, &mut made);
        }
        if let Err(fault) = done {
            if !self.is_dead() {
                let undone = self.undo_of(&mut held, |e| made.contains(&e.id));
                self.tell_all(&undone);
            }
            return Err(fault);
        }
        Ok(made)
    }

    /// Whether a test has let the process die.
    fn is_dead(&self) -> bool {
        #[cfg(test)]
        return self.crash.is_dead();
        #[cfg(not(test))]
        false
    }

    /// Makes changes of different targets; their old values go to the disk together. Those that were made are in `made`.
    fn together(
        &self,
        held: &mut Held,
        changes: &[Change],
        made: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        let mut all = Vec::new();
        for Change { target, value } in changes {
            let old = target.read(&self.root);
            let old = old.map_err(|e| Fault::of(&target.to_string(), "", &e))?;
            if matches!(target, Target::Dir(_)) && value == PRESENT && old != ABSENT {
                return Err(Fault::new(&target.to_string(), "is there already"));
            }
            let (id, owner) = (held.fresh(), self.owner.clone());
            let (target, asked) = (target.clone(), value.clone());
            all.push(Entry {
                id,
                owner,
                target,
                old,
                asked,
                wrote: None,
                undoing: false,
                lost: false,
            });
        }
        self.may_die()?;
        held.append(all.iter().cloned().map(Record::Will).collect(), true)?;
        for (i, e) in all.iter().enumerate() {
            let failed = |held: &mut Held, error: io::Error| {
                let over = all[i..].iter().map(|e| Record::Gone(e.id)).collect();
                held.append(over, true)?;
                Err(Fault::of(&e.target.to_string(), "", &error))
            };
            self.may_die()?;
            let wrote = e.target.write(&self.root, &e.asked).and_then(|()| {
                self.may_die().map_err(io::Error::other)?;
                e.target.read(&self.root)
            });
            if self.is_dead() {
                self.may_die()?;
            }
            match wrote {
                Ok(value) => {
                    let synced = !e.target.is_volatile();
                    if let Err(fault) = held.append(vec![Record::Did(e.id, value)], synced) {
                        // A change that cannot be recorded must not stay.
                        let _ = e.target.write(&self.root, &e.old);
                        return Err(fault);
                    }
                    made.push(e.id);
                }
                Err(error) => {
                    // A write that is refused may have done a part of it.
                    if e.target.read(&self.root).is_ok_and(|now| !same(&now, &e.old)) {
                        let _ = e.target.write(&self.root, &e.old);
                    }
                    return failed(held, error);
                }
            }
        }
        self.may_die()
    }

    /// Finds out what became of changes whose process died within them, and takes back what was asked for that.
    fn finish(&self, held: &mut Held) -> Result<(), Fault> {
        loop {
            let open = |e: &&Entry| {
                e.wrote.is_none() && !e.lost || matches!(e.owner, Owner::Asking { .. })
            };
            let Some(e) = held.entries.iter().rev().find(open).cloned() else { return Ok(()) };
            if e.wrote.is_some() || e.lost {
                self.take_back(held, e.id)?;
                continue;
            }
            let record = match e.target.read(&self.root) {
                Ok(now) if same(&now, &e.asked) || same(&e.old, &e.asked) && same(&now, &e.old) => {
                    Record::Did(e.id, now)
                }
                Ok(now) if matches!(e.target, Target::Dir(_)) && now.starts_with(&e.asked) => {
                    Record::Did(e.id, now)
                }
                Ok(now) if same(&now, &e.old) => Record::Gone(e.id),
                Ok(now) => self.ask_again(held, &e, now)?,
                Err(_) => Record::Lost(e.id),
            };
            held.append(vec![record], true)?;
        }
    }

    /// Asks once more for what `e` asked for, to see whether `now` is what the kernel makes of that, and takes it back.
    fn ask_again(&self, held: &mut Held, e: &Entry, now: String) -> Result<Record, Fault> {
        let id = held.fresh();
        let owner = Owner::Asking { boot: self.boot.clone() };
        let asking = Entry { id, owner, old: now.clone(), wrote: None, ..e.clone() };
        held.append(vec![Record::Will(asking)], true)?;
        self.may_die()?;
        let made = e.target.write(&self.root, &e.asked).and_then(|()| e.target.read(&self.root));
        self.may_die()?;
        let Ok(made) = made else {
            held.append(vec![Record::Gone(id)], true)?;
            return Ok(Record::Lost(e.id));
        };
        held.append(vec![Record::Did(id, made.clone())], true)?;
        self.may_die()?;
        self.take_back(held, id)?;
        Ok(if same(&made, &now) { Record::Did(e.id, now) } else { Record::Lost(e.id) })
    }

    /// Takes back what was asked for once more; what cannot be taken back is given up.
    fn take_back(&self, held: &mut Held, id: u64) -> Result<(), Fault> {
        match self.undo_one(held, id, true) {
            Err(fault) if self.is_dead() => Err(fault),
            Err(_) => held.append(vec![Record::Gone(id)], true),
            Ok(_) => Ok(()),
        }
    }

    /// Undoes the changes that `which` holds, the latest first. One that somebody seems to have changed is looked at again
    /// when the others are undone: a file may show another one's value (`scaling_min_freq` that of the maximum).
    fn undo_of(&self, held: &mut Held, which: impl Fn(&Entry) -> bool) -> Vec<Undone> {
        let mut rest: Vec<u64> =
            held.entries.iter().rev().filter(|e| which(e)).map(|e| e.id).collect();
        let mut undone = Vec::new();
        let mut finally = false;
        while !rest.is_empty() {
            let before = rest.len();
            rest.retain(|id| {
                let Some(e) = held.entry(*id).cloned() else { return false };
                let how = match self.undo_one(held, *id, finally) {
                    Ok(None) => return true,
                    Ok(Some(how)) => how,
                    Err(fault) => How::Failed(fault),
                };
                let wrote = e.wrote.unwrap_or_default();
                undone.push(Undone { target: e.target, wrote, how });
                false
            });
            finally = rest.len() == before;
        }
        undone
    }

    /// Undoes one change. `None`: somebody seems to have changed it, and this is not said `finally`.
    fn undo_one(&self, held: &mut Held, id: u64, finally: bool) -> Result<Option<How>, Fault> {
        let Some(e) = held.entry(id).cloned() else { return Ok(None) };
        if self.is_dead() {
            return Err(Fault::new("", "dead"));
        }
        let synced = !e.target.is_volatile();
        let gone = |held: &mut Held, how| {
            held.append(vec![Record::Gone(id)], synced)?;
            Ok(Some(how))
        };
        let wrote = match (&e.wrote, e.lost) {
            (Some(wrote), false) => wrote.clone(),
            _ => return gone(held, How::Changed),
        };
        let mut above = held.entries.iter().filter(|o| o.target == e.target && o.id > id);
        if let Some(next) = above.next().cloned() {
            if same(&next.old, &wrote) {
                held.append(vec![Record::Old(next.id, e.old.clone()), Record::Gone(id)], synced)?;
                return Ok(Some(How::Below));
            }
            return gone(held, How::Changed);
        }
        if !e.target.exists(&self.root) {
            self.patch(held, &e, &wrote)?;
            return gone(held, How::Gone);
        }
        let now = match e.target.read(&self.root) {
            Ok(now) => now,
            Err(error) => return Err(Fault::of(&e.target.to_string(), "", &error)),
        };
        // Here again after a death within, or nothing had changed.
        if same(&now, &e.old) && (e.undoing || same(&e.old, &wrote)) {
            return gone(held, How::Restored);
        }
        if !same(&now, &wrote) {
            if !finally {
                return Ok(None);
            }
            // Whoever did that did it after those below.
            let below = held.entries.iter().filter(|o| o.target == e.target && o.id < id);
            let mut records: Vec<Record> = below.map(|o| Record::Lost(o.id)).collect();
            records.push(Record::Gone(id));
            held.append(records, synced)?;
            return Ok(Some(How::Changed));
        }
        // To give a value back is worth more than to record it: a disk may be full.
        let _ = held.append(vec![Record::Undo(id)], synced);
        self.may_die()?;
        let written = e.target.write(&self.root, &e.old);
        written.map_err(|error| Fault::of(&e.target.to_string(), "", &error))?;
        self.may_die()?;
        // A value that is given back may be another one than it was: a directory that is made anew.
        let mut records = vec![Record::Gone(id)];
        let below = held.entries.iter().rfind(|o| o.target == e.target && o.id < id && !o.lost);
        if let (Some(below), Ok(now)) = (below, e.target.read(&self.root))
            && below.wrote.as_deref().is_some_and(|w| same(w, &e.old) && !same(w, &now))
        {
            records.push(Record::Did(below.id, now));
        }
        held.append(records, synced)?;
        Ok(Some(How::Restored))
    }

    /// Gives what `e`, a file that is no more, would give back to those later changes that bring the file back.
    fn patch(&self, held: &mut Held, e: &Entry, wrote: &str) -> Result<(), Fault> {
        let Target::File(path) = &e.target else { return Ok(()) };
        let part = |value: &str| format!("{MORE}{path}\t{}{MORE}", bare(value));
        let brings = held.entries.iter().filter(|o| o.id > e.id);
        let records: Vec<Record> = brings
            .filter_map(|o| {
                let old = format!("{}{MORE}", o.old);
                let new = old.replace(&part(wrote), &part(&e.old));
                (new != old).then(|| Record::Old(o.id, new.trim_end_matches(MORE).into()))
            })
            .collect();
        if records.is_empty() { Ok(()) } else { held.append(records, false) }
    }
}
