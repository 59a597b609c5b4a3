//! One boot: a QEMU process from start to answer, and nothing of it left afterwards.
//!
//! ```text
//! -accel tcg,thread=single -icount shift=1,sleep=off,align=off
//!     one instruction = 2 ns of the guest's time whatever the host is doing; idle is skipped
//! -rtc base=…,clock=vm -seed 1, no device but the serial port
//!     nothing else that differs from run to run
//! -semihosting-config …,userspace=on
//!     the agent writes its answer into a file here: no driver, no interrupt, no time
//! ```
//!
//! The process runs in a directory of its own. It ends with the guest, at the limit, when
//! [`Boot`] is dropped, and (`setpriv --pdeathsig`, where the system has it) when this process
//! is killed; the directory goes with [`Boot`], or with the next run if nobody could remove it. No path reaches a shell or
//! QEMU's option parser, in which a comma means something: files lie in the directory, or are linked there.

use crate::held::CONTROL;
use crate::piped::{Broken, converse};
use risetime_job::answer::{ALIVE, ANSWER, GATE, LATE};
use risetime_model::output::{AtEnd, Scratch};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time in which a kernel's first program has to run; 5 s on an idle host.
pub(crate) const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// Time between two looks at a process: short runs should not wait for us, long ones not be
/// disturbed.
const LOOK: Duration = Duration::from_millis(10);
/// Number of the console's last lines that an error shows.
const LAST_LINES: usize = 12;
/// Prefix of the names of run directories.
const PREFIX: &str = "risetime-run";
/// The state of a machine, in the directory where it was made and in those of its runs.
pub(crate) const STATE: &str = "state";

/// Call of QEMU: the program and the arguments that come before all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// Program and first arguments.
    pub command: Vec<OsString>,
    /// The version that QEMU says of itself.
    pub version: (u32, u32),
}

/// Words to the kernel that keep its own threads from waking up during a run (page compaction,
/// huge pages, memory statistics) and save a quarter of the boot.
const QUIET: &str = "cryptomgr.notests=1 damon_stat.enabled=0 transparent_hugepage=never \
                     sysctl.vm.compaction_proactiveness=0";

/// Argument that switches random stack offsets off. Up to 6.18 every system call draws a random
/// stack offset (`choose_random_kstack_offset`). This machine has no entropy, so the generator is
/// never ready (`crng_ready`): each draw extracts the pool anew, some 15 µs, under one lock for all
/// CPUs, interrupts off. 7.2 has a generator of its own for it. Nothing here depends on where
/// stacks are.
const LIGHT: &str = "randomize_kstack_offset=off";

/// A machine to boot.
#[derive(Clone, Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) qemu: &'a Qemu,
    pub(crate) kernel: &'a Path,
    pub(crate) device_tree: &'a [u8],
    pub(crate) initramfs: &'a [u8],
    pub(crate) cpus: usize,
    /// Command line of the kernel beyond what every machine's has.
    pub(crate) boot: &'a str,
    /// Virtual time of an instruction: 2^shift ns.
    pub(crate) shift: u32,
    /// Bytes that the agent hears when it has prepared everything ([`LATE`]).
    pub(crate) late: &'a [u8],
}

impl Machine<'_> {
    /// Collects everything that decides what a run gives, as bytes; the last is what the agent
    /// hears late.
    pub(crate) fn identity(&self) -> [Vec<u8>; 4] {
        use std::os::unix::fs::MetadataExt;
        let kernel =
            fs::metadata(self.kernel).map(|m| (m.ino(), m.size(), m.mtime(), m.mtime_nsec()));
        let text = format!("{:?} {kernel:?} {:?}", self.qemu, arguments(self));
        let (tree, root) = (self.device_tree.to_vec(), self.initramfs.to_vec());
        [text.into_bytes(), tree, root, self.late.to_vec()]
    }
}

/// Reason for which a boot gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BootError {
    /// QEMU or a file could not be started or written.
    Host(String),
    /// The guest ended, was ended, or said nothing; with the console's last lines.
    Guest(String),
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BootError::Host(s) | BootError::Guest(s) => f.write_str(s),
        }
    }
}

/// A machine that is running.
#[derive(Debug)]
pub(crate) struct Boot {
    // Ended before its directory goes.
    child: Running,
    dir: Arc<Scratch>,
    since: Instant,
}

/// A process that ends when this is dropped, or when a signal ends the command.
#[derive(Debug)]
struct Running {
    child: Arc<Mutex<Child>>,
    _end: AtEnd,
}

impl Running {
    fn start(command: &mut Command) -> io::Result<Running> {
        let child = Arc::new(Mutex::new(command.spawn()?));
        let its = Arc::clone(&child);
        Ok(Running { child, _end: AtEnd::new(move || kill(&its)) })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.child().try_wait()
    }

    /// Waits until it has ended by itself.
    fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            match self.try_wait()? {
                Some(status) => return Ok(status),
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(&self.child);
    }
}

/// Ends a process, which may have ended already; there is nobody to tell if it cannot be ended.
fn kill(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = child.kill();
    let _ = child.wait();
}

/// Course of a machine: where it comes from, and how far it goes by itself.
#[derive(Clone, Copy, Debug)]
enum Course<'a> {
    /// The machine runs from its boot to its end.
    Whole,
    /// The machine runs from its boot until it is stopped over its socket.
    Held,
    /// The machine runs from the state in this file to its end.
    Resumed(&'a Path),
}

impl Boot {
    /// Starts `machine`.
    pub(crate) fn start(machine: &Machine<'_>) -> Result<Boot, BootError> {
        Boot::on(machine, Course::Whole, directory()?)
    }

    /// Starts `machine` in `dir`, where it can be stopped.
    pub(crate) fn held(machine: &Machine<'_>, dir: Scratch) -> Result<Boot, BootError> {
        Boot::on(machine, Course::Held, dir)
    }

    /// Lets `machine` go on from the state in the file `state`.
    pub(crate) fn resume(machine: &Machine<'_>, state: &Path) -> Result<Boot, BootError> {
        let boot = Boot::on(machine, Course::Resumed(state), directory()?)?;
        // The resumed machine has shown long ago that it is alive.
        write(&boot.dir, ALIVE, b"")?;
        Ok(boot)
    }

    fn on(machine: &Machine<'_>, course: Course<'_>, dir: Scratch) -> Result<Boot, BootError> {
        write(&dir, "soc.dtb", machine.device_tree)?;
        write(&dir, "initramfs", machine.initramfs)?;
        if !matches!(course, Course::Held) {
            write(&dir, LATE, machine.late)?;
            write(&dir, GATE, b"")?;
        }
        let host = |e: io::Error| BootError::Host(e.to_string());
        if let Course::Resumed(state) = course {
            symlink(state, dir.path().join(STATE)).map_err(host)?;
        }
        let errors = File::create(dir.path().join("qemu")).map_err(host)?;
        let mut command = mortal(&machine.qemu.command);
        command.args(arguments(machine)).args(of_course(course)).current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = Running::start(&mut command)
            .map_err(|e| BootError::Host(format!("{}: {e}", machine.qemu.command[0].display())))?;
        Ok(Boot { child, dir: Arc::new(dir), since: Instant::now() })
    }

    /// Waits until the guest has ended, and takes its answer (not yet looked at).
    ///
    /// Errors: no sign of the agent within `boot`, no end within `limit`, QEMU's own failure, a
    /// guest that left no answer.
    pub(crate) fn answer(self, boot: Duration, limit: Duration) -> Result<Vec<u8>, BootError> {
        let status = loop {
            let passed = self.since.elapsed();
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if passed > limit => {
                    return Err(
                        self.guest(&format!("the guest did not end within {} s", limit.as_secs()))
                    );
                }
                Ok(None) if passed > boot && !self.path().join(ALIVE).exists() => {
                    return Err(self.guest(&format!(
                        "the kernel did not start its first program within {} s: is its Image whole, \
                         and for this machine?",
                        boot.as_secs()
                    )));
                }
                Ok(None) => {
                    std::thread::sleep(LOOK);
                }
                Err(e) => return Err(BootError::Host(format!("waiting for QEMU: {e}"))),
            }
        };
        let answer = fs::read(self.path().join(ANSWER));
        match answer {
            _ if !status.success() => {
                Err(self.guest(&format!("QEMU ended with {}", ending(status))))
            }
            Ok(bytes) if !bytes.is_empty() => Ok(bytes),
            _ => Err(self.guest("the guest ended without an answer")),
        }
    }

    /// Waits until the guest has created the file `name`.
    ///
    /// Errors: it ended before, or did not within [`BOOT_LIMIT`].
    pub(crate) fn wait_for(&self, name: &str) -> Result<(), BootError> {
        while !self.path().join(name).exists() {
            match self.child.try_wait() {
                Ok(None) if self.since.elapsed() < BOOT_LIMIT => {
                    std::thread::sleep(LOOK);
                }
                Ok(_) => return Err(self.guest(&format!("the guest never came to `{name}`"))),
                Err(e) => return Err(BootError::Host(format!("waiting for QEMU: {e}"))),
            }
        }
        Ok(())
    }

    /// The directory it runs in.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Ends it, and leaves its directory.
    pub(crate) fn end(self) -> Arc<Scratch> {
        Arc::clone(&self.dir)
    }

    /// An error with QEMU's own words and the console's last lines.
    fn guest(&self, what: &str) -> BootError {
        let text = |name: &str| {
            String::from_utf8_lossy(&fs::read(self.path().join(name)).unwrap_or_default())
                .into_owned()
        };
        BootError::Guest(
            what.to_string()
                + &last_words("QEMU", &text("qemu"))
                + &last_words("the guest's console", &text("console")),
        )
    }
}

/// The last lines of `log`, for an error; nothing if it is empty. A panic's first line is among
/// them, however long what it says after that.
fn last_words(whose: &str, log: &str) -> String {
    let clean = |l: &str| l.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
    let lines: Vec<String> = log.lines().map(clean).filter(|l| !l.trim().is_empty()).collect();
    let skip = lines.len().saturating_sub(LAST_LINES);
    let panic = lines[..skip].iter().find(|l| l.contains("Kernel panic"));
    let shown = panic.into_iter().chain(&lines[skip..]);
    let body: String = shown.map(|l| format!("\n  | {l}")).collect();
    if body.is_empty() { body } else { format!("\n  {whose}, last lines:{body}") }
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "no reason".into(),
    }
}

/// A command that is killed when this process dies, where the system has `setpriv`.
fn mortal(command: &[OsString]) -> Command {
    const SETPRIV: &str = "/usr/bin/setpriv";
    let mut c;
    if Path::new(SETPRIV).exists() {
        c = Command::new(SETPRIV);
        c.args(["--pdeathsig", "KILL"]).arg(&command[0]);
    } else {
        c = Command::new(&command[0]);
    }
    c.args(&command[1..]);
    c
}

/// The arguments for the machine's parts, apart from clocks and consoles.
fn hardware(machine: &Machine<'_>) -> Vec<OsString> {
    let cpus = machine.cpus.to_string();
    let memory = crate::dtb::MEMORY_MIB.to_string();
    let board = format!("virt,gic-version={}", crate::dtb::gic_version(machine.cpus));
    let words = ["-M", &board, "-cpu", crate::dtb::CPU_MODEL, "-smp", &cpus, "-m", &memory];
    let quiet = ["-nodefaults", "-nic", "none", "-display", "none", "-no-reboot", "-seed", "1"];
    let mut all: Vec<OsString> = words.iter().chain(&quiet).map(OsString::from).collect();
    all.extend(["-kernel".into(), machine.kernel.into()]);
    all
}

fn arguments(machine: &Machine<'_>) -> Vec<OsString> {
    let icount = format!("shift={},sleep=off,align=off", machine.shift);
    let mut all = hardware(machine);
    all.extend(["-dtb", "soc.dtb", "-initrd", "initramfs"].map(OsString::from));
    all.extend(
        ["-accel", "tcg,thread=single", "-icount", &icount, "-rtc", "base=2026-01-01,clock=vm"]
            .map(OsString::from),
    );
    all.extend(["-monitor", "none", "-serial", "file:console"].map(OsString::from));
    all.extend(["-semihosting-config", "enable=on,target=native,userspace=on"].map(OsString::from));
    all.extend(
        [
            "-append",
            &format!(
                "console=ttyAMA0 earlycon quiet nokaslr random.trust_cpu=off panic=-1 \
                 {LIGHT} {QUIET}{}",
                machine.boot
            ),
        ]
        .map(OsString::from),
    );
    all
}

/// The arguments that a course adds.
fn of_course(course: Course<'_>) -> Vec<OsString> {
    match course {
        Course::Whole => Vec::new(),
        // A machine that was stopped would else be stopped again where it goes on.
        Course::Held => {
            let socket = format!("unix:{CONTROL},server=on,wait=off");
            ["-global", "migration.store-global-state=off", "-qmp", &socket]
                .map(OsString::from)
                .into()
        }
        Course::Resumed(_) => {
            let from = format!("file:{STATE}");
            ["-global", "migration.store-global-state=off", "-incoming", &from]
                .map(OsString::from)
                .into()
        }
    }
}

/// Boots `machine` with its console on this terminal, in real time, until the guest ends or
/// the user does (Ctrl-A X).
///
/// Errors: QEMU could not be started, or failed.
pub(crate) fn interactive(machine: &Machine<'_>) -> Result<(), BootError> {
    let dir = directory()?;
    write(&dir, "soc.dtb", machine.device_tree)?;
    write(&dir, "initramfs", machine.initramfs)?;
    let mut command = mortal(&machine.qemu.command);
    command
        .args(hardware(machine))
        .args(["-dtb", "soc.dtb", "-initrd", "initramfs", "-accel", "tcg", "-serial", "mon:stdio"])
        .args(["-append", "console=ttyAMA0 quiet panic=-1 -- shell"])
        .current_dir(dir.path());
    let status = Running::start(&mut command)
        .and_then(|child| child.wait())
        .map_err(|e| BootError::Host(format!("{}: {e}", machine.qemu.command[0].display())))?;
    match status.success() {
        true => Ok(()),
        false => Err(BootError::Guest(format!("QEMU ended with {}", ending(status)))),
    }
}

/// Boots `machine` in real time with its console on `input`, line by line, and `out`, until the guest ends.
///
/// Errors: as [`interactive`]'s; a guest that never asks for input, a line that cannot be sent, a command that
/// fails, and what happens to `input` and `out`.
pub(crate) fn commands(
    machine: &Machine<'_>,
    input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), BootError> {
    let host = |e: io::Error| BootError::Host(e.to_string());
    let dir = directory()?;
    write(&dir, "soc.dtb", machine.device_tree)?;
    write(&dir, "initramfs", machine.initramfs)?;
    let mut command = mortal(&machine.qemu.command);
    command
        .args(hardware(machine))
        .args(["-dtb", "soc.dtb", "-initrd", "initramfs", "-accel", "tcg"])
        .args(["-monitor", "none", "-serial", "stdio"])
        .args(["-append", "console=ttyAMA0 quiet panic=-1 -- shell"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let child = Running::start(&mut command)
        .map_err(|e| BootError::Host(format!("{}: {e}", machine.qemu.command[0].display())))?;
    let pipes = |mut child: MutexGuard<'_, Child>| (child.stdout.take(), child.stdin.take());
    let talked = match pipes(child.child()) {
        (Some(mut said), Some(mut to)) => converse(&mut said, &mut to, input, out),
        _ => Ok(()),
    };
    if talked.is_err() {
        kill(&child.child);
    }
    let status = child.wait().map_err(host)?;
    talked.map_err(|broken| match broken {
        Broken::Input(line, what) => BootError::Host(format!("standard input: line {line} {what}")),
        Broken::Here(e) => host(e),
        // A full disk, as where anything else is printed.
        Broken::Out(e) => BootError::Guest(format!("standard output: {}", e.kind())),
        Broken::Failed(line, command) => {
            BootError::Guest(format!("standard input: line {line} failed: {command}"))
        }
        Broken::NeverAsked(said) => {
            BootError::Guest(format!("no shell came{}", last_words("console", &said)))
        }
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(BootError::Guest(format!("QEMU ended with {}", ending(status)))),
    }
}

/// A directory for one run.
///
/// Errors: as an error of a boot.
pub(crate) fn directory() -> Result<Scratch, BootError> {
    let place = std::env::temp_dir();
    Scratch::new(&place, PREFIX)
        .map_err(|e| BootError::Host(format!("{}: no directory for the run: {e}", place.display())))
}

fn write(dir: &Scratch, name: &str, bytes: &[u8]) -> Result<(), BootError> {
    let path = dir.path().join(name);
    fs::write(&path, bytes).map_err(|e| BootError::Host(format!("{}: {e}", path.display())))
}
