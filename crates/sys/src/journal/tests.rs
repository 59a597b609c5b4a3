//! The journal on a tree of files in place of a machine: small scenarios, and drawn interleavings of changes, of
//! others' writes, of undoing and of crashes, against a model that is a stack a file.

use super::*;
use crate::draws;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A file whose kernel rounds to tens.
const ROUNDED: &str = "/sys/rounded";

/// A value as the machine's kernel makes it.
pub(super) fn rounded(file: &str, text: &str) -> String {
    match text.parse::<u64>() {
        Ok(n) if file == ROUNDED => (n / 10 * 10).to_string(),
        _ => text.to_string(),
    }
}

/// Death of the process after a number of steps.
#[derive(Debug, Default)]
pub(super) struct Crash(std::sync::Mutex<(Option<u32>, bool)>);

impl Crash {
    fn after(&self, steps: Option<u32>) {
        self.0.lock().unwrap().0 = steps;
    }

    pub(super) fn point(&self) -> Result<(), Fault> {
        let mut state = self.0.lock().unwrap();
        match &mut state.0 {
            Some(0) => state.1 = true,
            Some(n) => *n -= 1,
            None => {}
        }
        if state.1 { Err(Fault::new("", "dead")) } else { Ok(()) }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.lock().unwrap().1
    }
}

/// A machine of files, with a directory for journals.
struct Machine {
    dir: PathBuf,
    root: Root,
}

impl Machine {
    fn new(name: &str) -> Machine {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let of = format!("risetime-journal-{name}-{}-{next}", std::process::id());
        // Where syncing costs nothing, if there is such a place.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { memory.into() } else { std::env::temp_dir() }.join(of);
        let _ = fs::remove_dir_all(&dir);
        let machine = Machine { root: Root::below(dir.join("root")), dir };
        machine.make("/proc/sys/kernel/random/boot_id", "first\n");
        machine
    }

    fn make(&self, file: &str, text: &str) {
        let path = self.root.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn get(&self, file: &str) -> String {
        fs::read_to_string(self.root.path(file)).unwrap().trim_end().to_string()
    }

    fn starts(&self, pid: i32) {
        let stat = format!("{pid} (a) b) S {}{} 0", "0 ".repeat(18), 1000 + pid);
        self.make(&format!("/proc/{pid}/stat"), &stat);
    }

    fn dies(&self, pid: i32) {
        let _ = fs::remove_dir_all(self.root.path(&format!("/proc/{pid}")));
    }

    /// The journal of a process of this number, and what it found.
    fn journal(&self, pid: i32) -> (Journal, Vec<Undone>) {
        self.starts(pid);
        Journal::of(&self.dir.join("journal"), self.root.clone(), |_| {}, pid).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn hows(undone: &[Undone]) -> Vec<How> {
    undone.iter().map(|u| u.how.clone()).collect()
}

#[test]
fn a_change_is_undone_on_drop_and_is_told_what_was_read_back() {
    let m = Machine::new("drop");
    m.make(ROUNDED, "800\n");
    m.make("/sys/a", "x [y] z\n");
    let (journal, left) = m.journal(1);
    assert_eq!(left, []);
    let changes = [Change::file(ROUNDED, 1234), Change::file("/sys/a", "z")];
    let made = journal.change(&changes).unwrap();
    let standing = |before: &str, now: &str| (before.to_string(), now.to_string());
    let all: Vec<_> = made.standing().unwrap().into_iter().map(|s| (s.before, s.now)).collect();
    assert_eq!(all, [standing("800", "1230"), standing("y", "z")]);
    drop(made);
    assert_eq!((m.get(ROUNDED), m.get("/sys/a")), ("800".into(), "y".into()));
    assert_eq!(journal.standing().unwrap(), []);
}

#[test]
fn the_lower_of_two_changes_can_go_first() {
    let m = Machine::new("stack");
    m.make("/sys/a", "1");
    let ((one, _), (two, _)) = (m.journal(1), m.journal(2));
    let lower = one.change(&[Change::file("/sys/a", 2)]).unwrap();
    let upper = two.change(&[Change::file("/sys/a", 3)]).unwrap();
    assert_eq!(hows(&lower.undo().unwrap()), [How::Below]);
    assert_eq!(m.get("/sys/a"), "3");
    assert_eq!(hows(&upper.undo().unwrap()), [How::Restored]);
    assert_eq!(m.get("/sys/a"), "1");
}

#[test]
fn what_somebody_has_changed_since_is_left_alone_also_where_it_is_what_a_lower_change_wrote() {
    let m = Machine::new("foreign");
    m.make("/sys/a", "1");
    let (journal, _) = m.journal(1);
    let lower = journal.change(&[Change::file("/sys/a", 2)]).unwrap();
    let upper = journal.change(&[Change::file("/sys/a", 3)]).unwrap();
    m.make("/sys/a", "2");
    let told = upper.undo().unwrap();
    assert_eq!(hows(&told), [How::Changed]);
    assert_eq!(
        told[0].to_string(),
        "/sys/a: no longer 3: somebody has changed it since; left alone"
    );
    assert_eq!(hows(&lower.undo().unwrap()), [How::Changed]);
    assert_eq!(m.get("/sys/a"), "2");
}

#[test]
fn if_one_change_fails_those_before_it_are_undone() {
    let m = Machine::new("half");
    for file in ["/sys/a", "/sys/b", "/sys/d"] {
        m.make(file, "1");
    }
    let (journal, _) = m.journal(1);
    let of = |file: &str| Change::file(file, 5);
    let made =
        journal.change(&[of("/sys/a"), of("/sys/b"), of("/sys/cpu.uclamp.min"), of("/sys/d")]);
    assert_eq!(
        made.unwrap_err().to_string(),
        "/sys/cpu.uclamp.min: this kernel does not have it (Linux 5.4 and later with \
         CONFIG_UCLAMP_TASK_GROUP, in a cgroup with the controller cpu)"
    );
    assert_eq!(["/sys/a", "/sys/b", "/sys/d"].map(|f| m.get(f)), ["1", "1", "1"]);
    // Also where the change before it has been written already.
    let group = [Change::dir("/sys/group", true), of("/sys/a"), of("/sys/group/cpu.max")];
    assert!(journal.change(&group).is_err());
    assert!(!m.root.path("/sys/group").exists() && m.get("/sys/a") == "1");
    assert_eq!(journal.standing().unwrap(), []);
}

#[test]
fn a_file_that_shows_another_ones_value_is_looked_at_again() {
    let m = Machine::new("interplay");
    m.make("/sys/min", "100");
    m.make("/sys/max", "900");
    let (journal, _) = m.journal(1);
    let made = journal.change(&[Change::file("/sys/max", 300), Change::file("/sys/min", 200)]);
    let made = made.unwrap();
    // As if the kernel showed the minimum below what was written, as long as the maximum is low.
    m.make("/sys/min", "150");
    let (max, min) = (m.root.path("/sys/max"), m.root.path("/sys/min"));
    let kernel = std::thread::spawn(move || {
        while fs::read_to_string(&max).is_ok_and(|text| text.trim() != "900") {}
        fs::write(min, "200").unwrap();
    });
    // The thread may come too late for the second look; that is told, and nothing else is wrong then.
    let hows = hows(&made.undo().unwrap());
    kernel.join().unwrap();
    assert!(hows.contains(&How::Restored), "{hows:?}");
}

#[test]
fn a_dead_processs_changes_are_undone_by_the_next_and_a_living_ones_are_not() {
    let m = Machine::new("dead");
    m.make("/sys/a", "1");
    m.make("/sys/b", "1");
    let ((one, _), (two, left)) = (m.journal(1), m.journal(2));
    assert_eq!(left, []);
    std::mem::forget(one.change(&[Change::file("/sys/a", 2)]).unwrap());
    let _living = two.change(&[Change::file("/sys/b", 2)]).unwrap();
    m.dies(1);
    let (three, left) = m.journal(3);
    assert_eq!(hows(&left), [How::Restored]);
    assert_eq!((m.get("/sys/a"), m.get("/sys/b")), ("1".into(), "2".into()));
    // A number that another process has got.
    std::mem::forget(three.change(&[Change::file("/sys/a", 7)]).unwrap());
    m.make("/proc/3/stat", "3 (x) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9 0");
    assert_eq!(hows(&m.journal(4).1), [How::Restored]);
    assert_eq!(m.get("/sys/a"), "1");
}

#[test]
fn another_boot_ends_what_is_in_sysfs_and_not_what_is_on_a_disk() {
    let m = Machine::new("boot");
    m.make("/sys/a", "1");
    m.make("/etc/a", "1\n2\n");
    let (one, _) = m.journal(1);
    let changes = [Change::file("/sys/a", 2), Change::file("/etc/a", "3\n4\n")];
    std::mem::forget(one.change(&changes).unwrap());
    one.change(&[Change::file("/sys/a", 3)]).unwrap().keep("fix").unwrap();
    m.make("/proc/sys/kernel/random/boot_id", "second\n");
    m.make("/sys/a", "2");
    let (two, left) = m.journal(1);
    assert_eq!(hows(&left), [How::Rebooted, How::Rebooted, How::Restored]);
    assert_eq!((m.get("/sys/a"), m.get("/etc/a")), ("2".into(), "1\n2".into()));
    assert_eq!(two.standing().unwrap(), []);
}

#[test]
fn what_is_kept_is_undone_by_its_name() {
    let m = Machine::new("kept");
    m.make("/sys/a", "1");
    let (one, _) = m.journal(1);
    one.change(&[Change::file("/sys/a", 2)]).unwrap().keep("rate limit").unwrap();
    drop(one);
    m.dies(1);
    let (two, left) = m.journal(2);
    assert_eq!((left, m.get("/sys/a")), (vec![], "2".into()));
    assert_eq!(two.standing().unwrap()[0].kept.as_deref(), Some("rate limit"));
    assert_eq!(two.undo_kept("other").unwrap(), []);
    assert_eq!(hows(&two.undo_kept("rate limit").unwrap()), [How::Restored]);
    assert_eq!(m.get("/sys/a"), "1");
}

#[test]
fn a_governor_comes_back_with_its_tunables() {
    let m = Machine::new("governor");
    let cpufreq = "/sys/devices/system/cpu/cpufreq";
    let (governor, limit) = (
        format!("{cpufreq}/policy0/scaling_governor"),
        format!("{cpufreq}/schedutil/rate_limit_us"),
    );
    m.make(&governor, "schedutil");
    m.make(&limit, "1000");
    let (journal, _) = m.journal(1);
    let tuned = journal.change(&[Change::file(&limit, 50)]).unwrap();
    let other = journal.change(&[Change::file(&governor, "performance")]).unwrap();
    // The governor's directory goes with it.
    fs::remove_file(m.root.path(&limit)).unwrap();
    assert_eq!(hows(&tuned.undo().unwrap()), [How::Gone]);
    let (root, path, back) = (m.root.clone(), governor.clone(), limit.clone());
    let kernel = std::thread::spawn(move || {
        while fs::read_to_string(root.path(&path)).is_ok_and(|t| t != "schedutil") {}
        fs::write(root.path(&back), "2000").unwrap();
    });
    // Written in the order in which they were read: the tunable behind its governor.
    let e = other.standing().unwrap();
    assert_eq!((e[0].before.as_str(), e[0].now.as_str()), ("schedutil", "performance"));
    other.undo().unwrap();
    kernel.join().unwrap();
    assert_eq!(m.get(&governor), "schedutil");
    let held = journal.0.store.lock(None).unwrap();
    assert_eq!(held.entries, []);
}

/// The lines behind a governor are given what undoing a tunable would have given.
#[test]
fn a_tunable_that_is_gone_is_undone_in_what_brings_it_back() {
    let m = Machine::new("patched");
    let cpufreq = "/sys/devices/system/cpu/cpufreq";
    let (governor, limit) = (
        format!("{cpufreq}/policy0/scaling_governor"),
        format!("{cpufreq}/schedutil/rate_limit_us"),
    );
    m.make(&governor, "schedutil");
    m.make(&limit, "1000");
    let (journal, _) = m.journal(1);
    let tuned = journal.change(&[Change::file(&limit, 50)]).unwrap();
    let _other = journal.change(&[Change::file(&governor, "performance")]).unwrap();
    fs::remove_file(m.root.path(&limit)).unwrap();
    tuned.undo().unwrap();
    let held = journal.0.store.lock(None).unwrap();
    assert_eq!(held.entries[0].old, format!("schedutil{MORE}{limit}\t1000"));
}

#[test]
fn a_cgroup_is_made_and_removed_and_comes_back_with_its_files() {
    let m = Machine::new("group");
    m.make("/sys/fs/cgroup/cgroup.procs", "");
    let (journal, _) = m.journal(1);
    let made = journal.change(&[Change::dir("/sys/fs/cgroup/a", true)]).unwrap();
    assert!(m.root.path("/sys/fs/cgroup/a").is_dir());
    let twice = journal.change(&[Change::dir("/sys/fs/cgroup/a", true)]).unwrap_err();
    assert_eq!(twice.to_string(), "/sys/fs/cgroup/a: is there already");
    let removed = journal.change(&[Change::dir("/sys/fs/cgroup/a", false)]).unwrap();
    assert!(!m.root.path("/sys/fs/cgroup/a").exists());
    assert_eq!(hows(&removed.undo().unwrap()), [How::Restored]);
    assert!(m.root.path("/sys/fs/cgroup/a").is_dir());
    assert_eq!(hows(&made.undo().unwrap()), [How::Restored], "it is another one, made by us");
    assert!(!m.root.path("/sys/fs/cgroup/a").exists());
    // One that somebody has removed and made anew is theirs.
    let made = journal.change(&[Change::dir("/sys/fs/cgroup/b", true)]).unwrap();
    let b = m.root.path("/sys/fs/cgroup/b");
    fs::rename(&b, m.root.path("/sys/fs/cgroup/c")).unwrap();
    fs::create_dir(&b).unwrap();
    assert_eq!(hows(&made.undo().unwrap()), [How::Changed]);
    assert!(b.is_dir());
}

#[test]
fn a_line_that_was_cut_off_spoils_none_behind_it() {
    let m = Machine::new("torn");
    m.make("/sys/a", "1");
    let (one, _) = m.journal(1);
    let lower = one.change(&[Change::file("/sys/a", 2)]).unwrap();
    let file = m.dir.join("journal/journal");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}0123456789abcdef will 9")).unwrap();
    std::mem::forget(one.change(&[Change::file("/sys/a", 3)]).unwrap());
    assert_eq!(one.standing().unwrap().len(), 2);
    std::mem::forget(lower);
    m.dies(1);
    assert_eq!(hows(&m.journal(2).1), [How::Restored, How::Restored]);
    assert_eq!(m.get("/sys/a"), "1");
}

#[test]
fn who_is_ended_does_not_wait_for_ever_for_a_journal_that_somebody_holds() {
    let m = Machine::new("held");
    m.make("/sys/a", "1");
    let (journal, _) = m.journal(1);
    let held = journal.0.store.lock(None).unwrap();
    let wrong = journal.0.store.lock(Some(Duration::from_millis(20))).map(|_| ()).unwrap_err();
    assert!(wrong.what.contains("another process does not let go of it"), "{wrong}");
    drop(held);
    assert!(journal.0.store.lock(Some(Duration::ZERO)).is_ok());
}

#[test]
fn a_directory_that_others_may_write_in_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let m = Machine::new("open");
    m.starts(1);
    let dir = m.dir.join("open");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let wrong = Journal::of(&dir, m.root.clone(), |_| {}, 1).map(|_| ()).unwrap_err();
    assert_eq!(wrong.what, "others may write here, so no journal can be kept here");
}

#[test]
fn a_journal_does_not_grow_with_what_is_over() {
    let m = Machine::new("small");
    m.make("/sys/a", "1");
    let (journal, _) = m.journal(1);
    let _lower = journal.change(&[Change::file("/sys/a", 2)]).unwrap();
    for n in 0..300 {
        drop(journal.change(&[Change::file("/sys/a", n)]).unwrap());
    }
    let text = fs::read_to_string(m.dir.join("journal/journal")).unwrap();
    assert!(text.lines().count() < 400, "{}", text.lines().count());
    assert_eq!(m.get("/sys/a"), "2");
}

// The model: of each file what is at its bottom, and the changes that stand on it, the latest last.

/// A change in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    of: usize,
    asked: String,
}

#[derive(Clone, Debug)]
struct Stack {
    bottom: String,
    layers: Vec<Layer>,
}

impl Stack {
    fn value(&self, file: &str) -> String {
        self.layers.last().map_or(self.bottom.clone(), |l| rounded(file, &l.asked))
    }
}

const FILES: [&str; 3] = ["/sys/a", ROUNDED, "/etc/c"];

#[derive(Clone, Debug)]
enum Step {
    /// A process makes changes: of which files, to what.
    /// If it dies within, somebody may write to a file before another process cleans up.
    Change {
        process: usize,
        changes: Vec<(usize, u8)>,
        dies_after: Option<u32>,
        then: Option<usize>,
    },
    /// A write of somebody else.
    Foreign { file: usize },
    /// Some guard is undone; the process may die within.
    Undo { which: usize, dies_after: Option<u32> },
    /// A process is killed.
    Kill { process: usize },
    /// Another one starts, which cleans up; it may die within.
    Start { dies_after: Option<u32> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let dies = || prop_oneof![4 => Just(None), 1 => (0..9_u32).prop_map(Some)];
    let changes = prop::collection::vec((0..3_usize, 0..40_u8), 1..4);
    let change = (0..3_usize, changes, dies(), prop::option::of(0..3_usize)).prop_map(
        |(process, changes, dies_after, then)| Step::Change { process, changes, dies_after, then },
    );
    let step = prop_oneof![
        4 => change,
        2 => (0..3_usize).prop_map(|file| Step::Foreign { file }),
        4 => (0..8_usize, dies()).prop_map(|(which, dies_after)| Step::Undo { which, dies_after }),
        1 => (0..3_usize).prop_map(|process| Step::Kill { process }),
        1 => dies().prop_map(|dies_after| Step::Start { dies_after }),
    ];
    prop::collection::vec(step, 1..25)
}

/// Changes of one guard: number of its process, and its layers.
struct Guard {
    process: usize,
    of: usize,
    changes: Option<Changes>,
}

/// Three processes on a machine, and the model of it.
struct World {
    m: Machine,
    files: BTreeMap<usize, Stack>,
    processes: Vec<(i32, Option<Journal>)>,
    guards: Vec<Guard>,
    pids: Rc<Cell<i32>>,
    next: usize,
}

impl World {
    fn new() -> World {
        let m = Machine::new("drawn");
        let mut files = BTreeMap::new();
        for (i, file) in FILES.iter().enumerate() {
            let bottom = format!("{}", 1_000_000 + 10 * i);
            m.make(file, &bottom);
            files.insert(i, Stack { bottom, layers: Vec::new() });
        }
        let processes = (0..3).map(|_| (0, None)).collect();
        World { m, files, processes, guards: Vec::new(), pids: Rc::new(Cell::new(10)), next: 0 }
    }

    fn pid(&self) -> i32 {
        self.pids.set(self.pids.get() + 1);
        self.pids.get()
    }

    /// A journal for the process, which is started if it does not run; that cleans up.
    fn journal(&mut self, process: usize) -> Journal {
        if self.processes[process].1.is_none() {
            let pid = self.pid();
            let journal = self.m.journal(pid).0;
            self.processes[process] = (pid, Some(journal));
            self.all_dead_are_undone();
        }
        self.processes[process].1.clone().expect("it runs")
    }

    /// Kills a process: what it has made stays until somebody cleans up.
    fn kill(&mut self, process: usize) {
        if let (pid, Some(journal)) = std::mem::take(&mut self.processes[process]) {
            self.m.dies(pid);
            for guard in self.guards.iter_mut().filter(|g| g.process == process) {
                guard.changes.take().into_iter().for_each(std::mem::forget);
            }
            // A dead process undoes nothing any more.
            std::mem::forget(journal);
        }
    }

    fn remove(&mut self, of: usize) {
        self.files.values_mut().for_each(|stack| stack.layers.retain(|l| l.of != of));
    }

    fn all_dead_are_undone(&mut self) {
        let dead: Vec<usize> =
            self.guards.iter().filter(|g| g.changes.is_none()).map(|g| g.of).collect();
        dead.into_iter().for_each(|of| self.remove(of));
        self.guards.retain(|g| g.changes.is_some());
    }

    fn start(&mut self) {
        let pid = self.pid();
        drop(self.m.journal(pid));
        self.m.dies(pid);
        self.all_dead_are_undone();
    }

    /// Writes a value that nobody has written: what is the same cannot be told apart.
    fn foreign(&mut self, file: usize) {
        self.next += 1;
        let bottom = format!("{}", 2_000_000 + 10 * self.next);
        self.m.make(FILES[file], &bottom);
        self.files.insert(file, Stack { bottom, layers: Vec::new() });
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Change { process, changes, dies_after, then } => {
                let journal = self.journal(process);
                let of = self.next;
                self.next += 1;
                let asked: Vec<Change> =
                    changes.iter().map(|(file, value)| Change::file(FILES[*file], value)).collect();
                journal.0.crash.after(dies_after);
                let made = journal.change(&asked).ok();
                journal.0.crash.after(None);
                let dead = journal.0.is_dead();
                assert_eq!(made.is_none(), dead, "nothing else makes a change fail");
                if dead {
                    // However far it came: the next start takes it back.
                    self.guards.push(Guard { process, of, changes: None });
                    self.kill(process);
                    then.into_iter().for_each(|file| self.foreign(file));
                    self.start();
                    return;
                }
                for (file, value) in changes {
                    let layer = Layer { of, asked: value.to_string() };
                    self.files.get_mut(&file).expect("a file").layers.push(layer);
                }
                self.guards.push(Guard { process, of, changes: made });
            }
            Step::Foreign { file } => self.foreign(file),
            Step::Undo { which, dies_after } => {
                let alive = |g: &Guard| g.changes.is_some();
                let alive: Vec<usize> =
                    (0..self.guards.len()).filter(|i| alive(&self.guards[*i])).collect();
                let Some(i) = alive.get(which % alive.len().max(1)) else { return };
                let mut guard = self.guards.remove(*i);
                let changes = guard.changes.take().expect("it lives");
                let inner = Arc::clone(&changes.inner);
                inner.crash.after(dies_after);
                let _ = changes.undo();
                inner.crash.after(None);
                if inner.is_dead() {
                    let process = guard.process;
                    self.guards.push(guard);
                    self.kill(process);
                    self.start();
                } else {
                    self.remove(guard.of);
                }
            }
            Step::Kill { process } => self.kill(process),
            Step::Start { dies_after } => {
                // Who dies while it cleans up leaves that to the next one.
                let pid = self.pid();
                let (one, _) = {
                    self.m.starts(pid);
                    let dir = self.m.dir.join("journal");
                    DIES.with(|d| d.set(dies_after));
                    let opened = Journal::of(&dir, self.m.root.clone(), |_| {}, pid);
                    DIES.with(|d| d.set(None));
                    opened.map_or((None, vec![]), |(journal, left)| (Some(journal), left))
                };
                self.m.dies(pid);
                drop(one);
                self.start();
            }
        }
    }

    fn agrees(&self) {
        for (i, stack) in &self.files {
            let file = FILES[*i];
            assert_eq!(self.m.get(file), stack.value(file), "{file} {stack:?}");
        }
    }
}

thread_local! {
    static DIES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The death that awaits the next process that starts.
pub(super) fn awaits() -> Crash {
    Crash(std::sync::Mutex::new((DIES.with(Cell::get), false)))
}

proptest! {
    #![proptest_config(draws::config(400))]

    #[test]
    fn undoing_in_any_order_never_overwrites_a_later_change(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            let settled = world.guards.iter().all(|g| g.changes.is_some());
            if settled {
                world.agrees();
            }
        }
        for process in 0..3 {
            world.kill(process);
        }
        world.start();
        world.agrees();
        for (i, stack) in &world.files {
            prop_assert_eq!(world.m.get(FILES[*i]), stack.bottom.clone(), "nothing of ours is left");
        }
    }
}
