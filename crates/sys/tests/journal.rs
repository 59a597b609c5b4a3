//! The journal in processes of its own, which are killed, and on the machine that runs the tests.

use risetime_sys::journal::{Change, How, Journal, Root, Target, Thread};
use risetime_sys::syscalls::{SchedAttr, affinity_of, attr_of};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const FILES: [&str; 4] = ["/sys/a", "/sys/b", "/sys/c", "/etc/d"];
const DIR: &str = "RISETIME_TEST_OF_JOURNAL";
const PART: &str = "RISETIME_TEST_PART";

/// A tree in place of a machine, whose processes are the real ones; its journal is beside it.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let of = format!("risetime-{name}-{}", std::process::id());
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { memory.into() } else { std::env::temp_dir() }.join(of);
        let _ = fs::remove_dir_all(&dir);
        for file in FILES {
            let path = dir.join("root").join(file.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "before").unwrap();
        }
        std::os::unix::fs::symlink("/proc", dir.join("root/proc")).unwrap();
        Tree(dir)
    }

    fn values(&self) -> [String; 4] {
        FILES.map(|f| fs::read_to_string(self.0.join("root").join(&f[1..])).unwrap())
    }

    fn journal(&self) -> (Journal, Vec<How>) {
        let root = Root::below(self.0.join("root"));
        let (journal, left) = Journal::open(&self.0.join("journal"), root, |_| {}).unwrap();
        (journal, left.into_iter().map(|u| u.how).collect())
    }

    /// Runs the test `test`, which calls this, once more in a process of its own, where it plays `part`, up to its first line.
    fn child(&self, test: &str, part: &str) -> Child {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(DIR, &self.0)
            .env(PART, part)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while lines.next().unwrap().unwrap() != "ready" {}
        std::thread::spawn(move || lines.for_each(drop));
        child
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether this process is a test's other one: it has then played its part.
fn is_the_other() -> bool {
    let Some(dir) = std::env::var_os(DIR) else { return false };
    let tree = Tree(dir.into());
    match std::env::var(PART).as_deref() {
        Ok("changes for ever") => changes_for_ever(&tree),
        Ok("changes and waits") => changes_and_waits(&tree),
        part => panic!("no such part: {part:?}"),
    }
    std::mem::forget(tree);
    true
}

fn all(value: &str) -> Vec<Change> {
    FILES.iter().map(|file| Change::file(*file, value)).collect()
}

/// Changes files until it is killed in the middle of it.
fn changes_for_ever(tree: &Tree) {
    let (journal, _) = tree.journal();
    println!("ready");
    loop {
        for n in 0..1000 {
            let lower = journal.change(&all(&format!("lower {n}"))).unwrap();
            let upper = journal.change(&all(&format!("upper {n}"))).unwrap();
            drop(if n % 2 == 0 { lower } else { upper });
        }
    }
}

fn changes_and_waits(tree: &Tree) {
    let (journal, _) = tree.journal();
    let _made = journal.change(&all("mine")).unwrap();
    println!("ready");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn the_next_start_takes_back_what_a_killed_process_has_left() {
    if is_the_other() {
        return;
    }
    let tree = Tree::new("killed");
    for n in 0..20_u64 {
        let mut child = tree
            .child("the_next_start_takes_back_what_a_killed_process_has_left", "changes for ever");
        std::thread::sleep(Duration::from_micros(n * 733));
        child.kill().unwrap();
        child.wait().unwrap();
        let (journal, left) = tree.journal();
        assert!(left.iter().all(|how| [How::Restored, How::Below].contains(how)), "{n}: {left:?}");
        assert_eq!(tree.values(), ["before"; 4], "{n}");
        assert_eq!(journal.standing().unwrap(), []);
    }
}

#[test]
fn a_signal_that_ends_a_process_takes_its_changes_back_first() {
    if is_the_other() {
        return;
    }
    for signal in ["INT", "TERM", "HUP"] {
        let tree = Tree::new(&format!("signal-{signal}"));
        let mut child = tree.child(
            "a_signal_that_ends_a_process_takes_its_changes_back_first",
            "changes and waits",
        );
        assert_eq!(tree.values(), ["mine"; 4]);
        fs::write(tree.0.join("root/sys/b"), "theirs").unwrap();
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let status = child.wait().unwrap();
        assert!(status.signal().is_some(), "{signal}: {status}");
        assert_eq!(tree.values(), ["before", "theirs", "before", "before"], "{signal}");
        assert_eq!(tree.journal().1, []);
    }
}

#[test]
fn two_processes_stack_their_changes() {
    if is_the_other() {
        return;
    }
    let tree = Tree::new("stacked");
    let mut child = tree.child("two_processes_stack_their_changes", "changes and waits");
    let (journal, _) = tree.journal();
    let upper = journal.change(&all("upper")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (_third, left) = tree.journal();
    assert_eq!(left, vec![How::Below; 4]);
    assert_eq!(tree.values(), ["upper"; 4]);
    drop(upper);
    assert_eq!(tree.values(), ["before"; 4]);
}

/// On the machine itself: a sysctl that rounds to ticks. Whoever may not write it has nothing to test here.
#[test]
fn a_setting_of_this_machine_is_changed_and_restored() {
    const FILE: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";
    let before = fs::read_to_string(FILE).unwrap_or_default();
    let tree = Tree::new("live");
    let (journal, _) = Journal::open(&tree.0.join("own"), Root::live(), |_| {}).unwrap();
    let made = match journal.change(&[Change::file(FILE, 51)]) {
        Ok(made) => made,
        Err(fault) => return eprintln!("not tried: {fault}"),
    };
    let standing = &made.standing().unwrap()[0];
    assert_eq!(standing.before, before.trim());
    assert_eq!(standing.now, fs::read_to_string(FILE).unwrap().trim(), "as the kernel rounds it");
    assert_ne!(standing.now, standing.before);
    drop(made);
    assert_eq!(fs::read_to_string(FILE).unwrap(), before);
}

#[test]
fn a_threads_attributes_and_cpus_come_back_and_one_that_has_ended_is_left() {
    let tree = Tree::new("thread");
    let (journal, _) = Journal::open(&tree.0.join("own"), Root::live(), |_| {}).unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let tid = child.id() as i32;
    let thread = Thread::find(&Root::live(), tid).unwrap();
    let (before, cpus) = (attr_of(tid).unwrap(), affinity_of(tid).unwrap());
    let mut nicer: SchedAttr = before;
    nicer.nice = 7;
    let changes = [
        Change { target: Target::Sched(thread), value: nicer.to_text() },
        Change { target: Target::Affinity(thread), value: cpus[0].to_string() },
    ];
    let made = journal.change(&changes).unwrap();
    assert_eq!((attr_of(tid).unwrap().nice, affinity_of(tid).unwrap()), (7, vec![cpus[0]]));
    drop(made);
    // To be nicer needs no right; to be less nice does.
    if attr_of(tid).unwrap().nice == before.nice {
        assert_eq!((attr_of(tid).unwrap(), affinity_of(tid).unwrap()), (before, cpus));
    }
    let made = journal.change(&changes[..1]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let undone = made.undo().unwrap();
    assert_eq!(undone.iter().map(|u| &u.how).collect::<Vec<_>>(), [&How::Gone]);
    let fault = journal.change(&changes[..1]).unwrap_err();
    assert_eq!(fault.to_string(), format!("scheduling attributes of thread {tid}: it has ended"));
}

#[test]
fn a_held_device_is_let_go_of_when_it_is_dropped() {
    let tree = Tree::new("device");
    let root = Root::below(tree.0.join("root"));
    let none = risetime_sys::home::hold(&root, "cpu_dma_latency", 20).unwrap_err();
    assert_eq!(none.place, "/dev/cpu_dma_latency");
    fs::create_dir(tree.0.join("root/dev")).unwrap();
    fs::write(tree.0.join("root/dev/cpu_dma_latency"), "").unwrap();
    drop(risetime_sys::home::hold(&root, "cpu_dma_latency", 20).unwrap());
    let mut bytes = Vec::new();
    fs::File::open(tree.0.join("root/dev/cpu_dma_latency"))
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(bytes, 20_i32.to_ne_bytes());
}
