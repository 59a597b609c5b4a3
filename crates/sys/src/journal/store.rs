//! The journal's file: one record a line, each with its sum, only ever appended to.
//!
//! ```text
//! SUM will ID OWNER TARGET OLD ASKED     before a change is written; synced to the disk
//! SUM did  ID VALUE                      what was read back after it
//! SUM old  ID VALUE                      what undoing it gives back is this from now on
//! SUM undo ID                            its value from before is about to be written
//! SUM keep ID NAME                       it stays when its process ends, until it is undone by that name
//! SUM lost ID                            somebody has changed it since
//! SUM gone ID                            it is undone, or there is nothing to be undone
//! ```
//!
//! A line that is cut off was being written when the power went: what it announces has not been done. All
//! of it is read and written under the lock of the file beside it (`lock`), which is free when its holder ends,
//! however that ends.

use super::target::Target;
use super::{Fault, Owner};
use risetime_job::answer::{FNV_START, fnv};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Lines beyond those that are needed, from which on the file is written anew.
const NEEDLESS: usize = 256;
/// `O_NOFOLLOW`: a link that lies there is not followed.
const NOFOLLOW: i32 = if cfg!(target_arch = "aarch64") { 0o100000 } else { 0o400000 };

/// A change that has not been undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number; a later change has a higher one.
    pub(super) id: u64,
    pub(super) owner: Owner,
    pub(super) target: Target,
    /// Value that undoing it gives back.
    pub(super) old: String,
    /// Value that was asked for.
    pub(super) asked: String,
    /// Value that was read back; `None`: whether it was written is not known.
    pub(super) wrote: Option<String>,
    /// True if its value from before was about to be written.
    pub(super) undoing: bool,
    /// True if somebody else has changed it since.
    pub(super) lost: bool,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Will(Entry),
    Did(u64, String),
    Old(u64, String),
    Undo(u64),
    Keep(u64, String),
    Lost(u64),
    Gone(u64),
}

/// Directory of a journal.
#[derive(Clone, Debug)]
pub(super) struct Store(PathBuf);

/// The journal while it is locked.
#[derive(Debug)]
pub(super) struct Held {
    dir: PathBuf,
    file: File,
    /// Changes in their order.
    pub(super) entries: Vec<Entry>,
    /// Lines in the file.
    lines: usize,
    next: u64,
    /// True if the last line may be cut off.
    torn: bool,
    _lock: File,
}

impl Store {
    /// The journal in `dir`, which is made if it is not there.
    ///
    /// Errors: it cannot be made, or others may write in it: they would have their way with the machine.
    pub(super) fn new(dir: &Path) -> Result<Store, Fault> {
        let place = dir.display().to_string();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|e| Fault::of(&place, "the journal's directory", &e))?;
        let meta = fs::symlink_metadata(dir).map_err(|e| Fault::of(&place, "", &e))?;
        let own = meta.uid() == rustix::process::geteuid().as_raw();
        if !meta.is_dir() || !own || meta.mode() & 0o022 != 0 {
            return Err(Fault::new(
                &place,
                "others may write here, so no journal can be kept here",
            ));
        }
        Ok(Store(dir.to_path_buf()))
    }

    /// Waits until nobody else uses the journal, `within` that time if one is said, and reads it.
    ///
    /// Errors: the system's, with the file; somebody else still uses it.
    pub(super) fn lock(&self, within: Option<Duration>) -> Result<Held, Fault> {
        let open = |name: &str| {
            let path = self.0.join(name);
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true).mode(0o600).custom_flags(NOFOLLOW);
            options.open(&path).map_err(|e| Fault::of(&path.display().to_string(), "", &e))
        };
        let lock = open("lock")?;
        let place = |e: io::Error| Fault::of(&self.0.display().to_string(), "", &e);
        match within {
            None => lock.lock().map_err(place)?,
            Some(within) => wait(&lock, within).map_err(place)?,
        }
        let file = open("journal")?;
        let text = fs::read(self.0.join("journal")).map_err(place)?;
        let text = String::from_utf8_lossy(&text);
        let (entries, lines) = entries(&text);
        let next = text.lines().filter_map(parse).filter_map(|r| r.id()).max().unwrap_or(0) + 1;
        let torn = !text.is_empty() && !text.ends_with('\n');
        Ok(Held { dir: self.0.clone(), file, entries, lines, next, torn, _lock: lock })
    }
}

/// Takes the lock, if it gets free `within` that time.
fn wait(lock: &File, within: Duration) -> io::Result<()> {
    let until = Instant::now() + within;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(io::Error::other("another process does not let go of it"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

impl Record {
    fn id(&self) -> Option<u64> {
        Some(match self {
            Record::Will(entry) => entry.id,
            Record::Did(id, _) | Record::Old(id, _) | Record::Keep(id, _) => *id,
            Record::Undo(id) | Record::Lost(id) | Record::Gone(id) => *id,
        })
    }

    fn to_line(&self) -> String {
        let words = match self {
            Record::Will(e) => {
                let [kind, which] = e.target.to_words();
                let id = e.id.to_string();
                let owner = e.owner.to_text();
                vec!["will".into(), id, owner, kind, which, e.old.clone(), e.asked.clone()]
            }
            Record::Did(id, value) => vec!["did".into(), id.to_string(), value.clone()],
            Record::Old(id, value) => vec!["old".into(), id.to_string(), value.clone()],
            Record::Keep(id, name) => vec!["keep".into(), id.to_string(), name.clone()],
            Record::Undo(id) => vec!["undo".into(), id.to_string()],
            Record::Lost(id) => vec!["lost".into(), id.to_string()],
            Record::Gone(id) => vec!["gone".into(), id.to_string()],
        };
        let line = words.iter().map(|word| escaped(word)).collect::<Vec<_>>().join(" ");
        format!("{:016x} {line}\n", fnv(FNV_START, line.as_bytes()))
    }
}

/// A word without blanks, newlines and other signs that are not to be seen; an empty one is `%`.
fn escaped(word: &str) -> String {
    if word.is_empty() {
        return "%".into();
    }
    let mut done = String::new();
    for c in word.chars() {
        match c {
            '%' | ' ' => done += &format!("%{:02x}", c as u32),
            c if c.is_control() && (c as u32) < 0x100 => done += &format!("%{:02x}", c as u32),
            c => done.push(c),
        }
    }
    done
}

fn plain(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    let mut parts = word.split('%');
    let mut done = parts.next()?.to_string();
    for part in parts {
        let code = u32::from_str_radix(part.get(..2)?, 16).ok()?;
        done.push(char::from_u32(code)?);
        done += &part[2..];
    }
    Some(done)
}

/// Reads a line; `None`: it is damaged.
fn parse(line: &str) -> Option<Record> {
    let (sum, line) = line.split_once(' ')?;
    (u64::from_str_radix(sum, 16).ok()? == fnv(FNV_START, line.as_bytes())).then_some(())?;
    let words: Vec<String> = line.split(' ').map(plain).collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = words.get(1)?.parse().ok()?;
    Some(match words[..] {
        ["will", _, owner, kind, which, old, asked] => Record::Will(Entry {
            id,
            owner: Owner::parse(owner)?,
            target: Target::parse(kind, which)?,
            old: old.into(),
            asked: asked.into(),
            wrote: None,
            undoing: false,
            lost: false,
        }),
        ["did", _, value] => Record::Did(id, value.into()),
        ["old", _, value] => Record::Old(id, value.into()),
        ["keep", _, name] => Record::Keep(id, name.into()),
        ["undo", _] => Record::Undo(id),
        ["lost", _] => Record::Lost(id),
        ["gone", _] => Record::Gone(id),
        _ => return None,
    })
}

/// The changes that a journal's text leaves, and how many lines it has.
fn entries(text: &str) -> (Vec<Entry>, usize) {
    let (mut all, mut lines) = (Vec::new(), 0);
    for line in text.lines() {
        lines += 1;
        // What is damaged has not been done, or another line says so.
        if let Some(record) = parse(line) {
            take(&mut all, record);
        }
    }
    (all, lines)
}

fn take(entries: &mut Vec<Entry>, record: Record) {
    let mut of = |id: u64, change: &dyn Fn(&mut Entry)| {
        entries.iter_mut().filter(|e| e.id == id).for_each(change);
    };
    match record {
        Record::Will(entry) => entries.push(entry),
        Record::Did(id, value) => of(id, &|e| e.wrote = Some(value.clone())),
        Record::Old(id, value) => of(id, &|e| e.old = value.clone()),
        Record::Keep(id, name) => of(id, &|e| e.owner = e.owner.kept(&name)),
        Record::Undo(id) => of(id, &|e| e.undoing = true),
        Record::Lost(id) => of(id, &|e| e.lost = true),
        Record::Gone(id) => entries.retain(|e| e.id != id),
    }
}

impl Held {
    /// A number that no change has had.
    pub(super) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Appends `records`, and takes them in. `synced`: returns when they are on the disk.
    ///
    /// Errors: the disk is full, say; then nothing is taken in.
    pub(super) fn append(&mut self, records: Vec<Record>, synced: bool) -> Result<(), Fault> {
        let text: String = records.iter().map(Record::to_line).collect();
        let text = if self.torn { format!("\n{text}") } else { text };
        self.torn = true;
        let done = self.file.write_all(text.as_bytes());
        self.torn = done.is_err();
        let done = done.and_then(|()| if synced { self.file.sync_data() } else { Ok(()) });
        let place = self.dir.join("journal").display().to_string();
        done.map_err(|e| Fault::of(&place, "the journal cannot be written", &e))?;
        self.lines += records.len();
        records.into_iter().for_each(|record| take(&mut self.entries, record));
        Ok(())
    }

    /// The change of this number.
    pub(super) fn entry(&self, id: u64) -> Option<&Entry> {
        self.entries.iter().find(|e| e.id == id)
    }

    /// Writes the journal anew, if it has grown by much that is over.
    ///
    /// Errors: the system's; the old one is still there then.
    pub(super) fn compact(&mut self) -> Result<(), Fault> {
        let over = self.lines.saturating_sub(4 * self.entries.len());
        if over > NEEDLESS || self.entries.is_empty() && self.lines > 1 {
            let (new, path) = (self.dir.join("journal.new"), self.dir.join("journal"));
            let place = |e: io::Error| Fault::of(&path.display().to_string(), "", &e);
            // The highest number stays known, also where nothing is left.
            let mut text = Record::Gone(self.next - 1).to_line();
            let mut lines = 1;
            for e in &self.entries {
                let mut records = vec![Record::Will(e.clone())];
                records.extend(e.wrote.clone().map(|value| Record::Did(e.id, value)));
                records.extend(e.undoing.then_some(Record::Undo(e.id)));
                records.extend(e.lost.then_some(Record::Lost(e.id)));
                lines += records.len();
                text.extend(records.iter().map(Record::to_line));
            }
            let write = || {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o600).custom_flags(NOFOLLOW);
                let mut file = options.open(&new)?;
                file.write_all(text.as_bytes())?;
                file.sync_data()?;
                fs::rename(&new, &path)?;
                File::open(&self.dir)?.sync_all()?;
                OpenOptions::new().append(true).open(&path)
            };
            self.file = write().map_err(place)?;
            (self.lines, self.torn) = (lines, false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64) -> Entry {
        Entry {
            id,
            owner: Owner::Process { pid: 1, start: 2, boot: "b".into() },
            target: Target::File("/a b%\n".into()),
            old: String::new(),
            asked: "5\tx\u{7f}é".into(),
            wrote: None,
            undoing: false,
            lost: false,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for record in [
            Record::Will(entry(1)),
            Record::Did(1, "a\nb".into()),
            Record::Old(2, " ".into()),
            Record::Undo(2),
            Record::Keep(3, "%".into()),
            Record::Lost(4),
            Record::Gone(5),
        ] {
            let line = record.to_line();
            assert_eq!(parse(line.trim_end_matches('\n')), Some(record), "{line}");
            assert_eq!(line.lines().count(), 1);
        }
    }

    #[test]
    fn a_line_that_is_damaged_or_cut_off_is_as_if_it_were_not_there() {
        let lines = [Record::Will(entry(1)), Record::Will(entry(2)), Record::Gone(1)];
        let text: String = lines.iter().map(Record::to_line).collect();
        assert_eq!(entries(&text).0, [entry(2)]);
        for end in 0..text.len() {
            let Some(cut) = text.get(..end) else { continue };
            let found = entries(cut).0;
            assert!(found.len() <= 2 && found.iter().all(|e| *e == entry(e.id)), "cut at {end}");
        }
        let damaged = text.replacen("will", "wilt", 1);
        assert_eq!(entries(&damaged).0, [entry(2)]);
    }
}
