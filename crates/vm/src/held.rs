//! Machines that have booted and settled, kept in files: runs that differ only in when they start go on from there.
//!
//! ```text
//! first run        boot ───────────────────────────────── late ── run        7 s, and the run
//! second run       boot ── ready ── stopped ── state │
//!                                                    └──── late ── run        the run
//! every other      ···································└─── late ── run
//! ```
//!
//! Nothing but speed changes: a run goes on from the state to the same bytes as from a boot (`crates/guest/src/gate.rs`;
//! a test compares them). [`crate::Vm::hold`] switches it off. States are some 100 MB each; so many as there are
//! cores are kept, and none outlives the process.
//!
//! The machine is stopped over QMP (docs/interop/qemu-qmp-ref, `stop`, `migrate`, `query-migrate`). It is asked to before
//! its gate is opened, so that it has 40 ms of its own time to do so. If it did not, or anything else goes wrong, there is no
//! state, each run boots, and its notes say so.

use crate::qemu::{Boot, BootError, Machine, STATE, directory};
use risetime_job::answer::{GATE, READY};
use risetime_model::output::Scratch;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The socket of a machine that is to be held, in its directory.
pub(crate) const CONTROL: &str = "control";
/// Time between two looks at something.
const LOOK: Duration = Duration::from_millis(5);
/// Number of times that a state is tried to be made: a host that is very busy may be late to stop a
/// machine.
const TRIES: usize = 3;
/// An answer over the socket comes within this time.
const ANSWERS: Duration = Duration::from_secs(30);

/// A machine's state, removed when nobody needs it any more.
#[derive(Debug)]
pub(crate) struct State(Arc<Scratch>);

impl State {
    /// The file that it is in.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join(STATE)
    }
}

/// Knowledge about one kind of machine.
#[derive(Debug, Default)]
enum Known {
    /// The machine was never run.
    #[default]
    Nothing,
    /// The machine was run once: it is worth being held when it is wanted again.
    Wanted,
    /// The held state of the machine.
    Held(Arc<State>),
    /// The machine cannot be held, for this reason.
    Lost(String),
}

/// Machines by what they are made of, the one that was asked for last at the end.
#[derive(Debug, Default)]
pub(crate) struct Held {
    machines: Mutex<Vec<(String, Arc<Mutex<Known>>)>>,
    resumed: AtomicUsize,
}

impl Held {
    /// The state from which a run of `machine`, called `key`, goes on; `None`: it is to be booted.
    /// Who asks while it is being made waits for it.
    ///
    /// Errors: why it cannot be held.
    pub(crate) fn state(
        &self,
        key: &str,
        machine: &Machine<'_>,
    ) -> Result<Option<Arc<State>>, String> {
        let of = self.of(key);
        let mut known = of.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*known, Known::Wanted) {
            let mut made = make(machine);
            for _ in 1..TRIES {
                made = made.or_else(|_| make(machine));
            }
            *known = match made {
                Ok(state) => Known::Held(Arc::new(state)),
                Err(e) => Known::Lost(e.to_string().lines().next().unwrap_or_default().into()),
            };
        }
        match &*known {
            Known::Held(state) => return Ok(Some(Arc::clone(state))),
            Known::Lost(why) => return Err(why.clone()),
            Known::Nothing => *known = Known::Wanted,
            Known::Wanted => {}
        }
        Ok(None)
    }

    /// A run went on from a state.
    pub(crate) fn count(&self) {
        self.resumed.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of runs that went on from a held state.
    pub(crate) fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }

    /// The entry of the machine `key`; states that were not asked for lately are let go.
    fn of(&self, key: &str) -> Arc<Mutex<Known>> {
        let mut all = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(|(k, _)| k == key).map(|i| all.remove(i));
        let (_, known) = found.unwrap_or_default();
        all.push((key.to_string(), Arc::clone(&known)));
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let mut states = 0;
        for (_, other) in all.iter().rev().skip(1) {
            // A state that is being made is needed.
            let Ok(mut other) = other.try_lock() else { continue };
            states += usize::from(matches!(*other, Known::Held(_)));
            if states > most && matches!(*other, Known::Held(_)) {
                *other = Known::Wanted;
            }
        }
        known
    }
}

/// Boots `machine` up to its gate, and keeps its state.
fn make(machine: &Machine<'_>) -> Result<State, BootError> {
    let host = |e: io::Error| BootError::Host(e.to_string());
    let dir = directory()?;
    let gate = dir.path().join(GATE);
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &gate, FileType::Fifo, mode, 0).map_err(|e| host(e.into()))?;
    let boot = Boot::held(machine, dir)?;
    // Before the guest is at its gate: QEMU listens to nobody while it waits there.
    boot.wait_for(CONTROL)?;
    let mut control = Control::open(boot.path()).map_err(host)?;
    boot.wait_for(READY)?;
    control.stop(&gate).map_err(host)?;
    control.save().map_err(host)?;
    Ok(State(boot.end()))
}

/// A conversation with QEMU: a line of JSON each way.
struct Control {
    out: UnixStream,
    lines: BufReader<UnixStream>,
    /// Part of a line that has been read so far.
    line: String,
}

impl Control {
    /// Connects to the control socket of the machine that runs in `dir`.
    fn open(dir: &Path) -> io::Result<Control> {
        // The name of a socket has 107 bytes at most, that of a directory 4095.
        let dir = std::fs::File::open(dir)?;
        let out = UnixStream::connect(format!("/proc/self/fd/{}/{CONTROL}", dir.as_raw_fd()))?;
        out.set_read_timeout(Some(ANSWERS))?;
        let lines = BufReader::new(out.try_clone()?);
        let mut control = Control { out, lines, line: String::new() };
        control.ask("qmp_capabilities", &json!({}))?;
        Ok(control)
    }

    fn send(&mut self, command: &str, arguments: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", json!({ "execute": command, "arguments": arguments }))
    }

    /// The next answer; events, and what QEMU says of itself at first, are none.
    fn answer(&mut self) -> io::Result<Value> {
        loop {
            if self.lines.read_line(&mut self.line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut said: Value = serde_json::from_str(&std::mem::take(&mut self.line))?;
            if let Some(error) = said.get("error") {
                return Err(io::Error::other(error.to_string()));
            }
            if let Some(answer) = said.get_mut("return") {
                return Ok(answer.take());
            }
        }
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        self.send(command, arguments)?;
        self.answer()
    }

    /// Stops the machine, which waits at `gate` or is about to.
    fn stop(&mut self, gate: &Path) -> io::Result<()> {
        // QEMU hears nothing while the guest waits at the gate, and so stops soon after that is open.
        // The guest may not be there yet, or be stopped before: the gate is tried until QEMU answers.
        self.send("stop", &json!({}))?;
        self.out.set_read_timeout(Some(LOOK))?;
        let since = Instant::now();
        loop {
            drop(rustix::fs::open(gate, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()));
            match self.answer() {
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && since.elapsed() < ANSWERS => {}
                Err(e) => return Err(e),
            }
        }
        self.out.set_read_timeout(Some(ANSWERS))?;
        match self.ask("query-status", &json!({}))?.get("status").and_then(Value::as_str) {
            Some("paused") => Ok(()),
            other => Err(io::Error::other(format!("the machine is {other:?}, not paused"))),
        }
    }

    /// Writes the state of the machine into its directory.
    fn save(&mut self) -> io::Result<()> {
        self.ask("migrate", &json!({ "uri": format!("file:{STATE}") }))?;
        let since = Instant::now();
        loop {
            let found = self.ask("query-migrate", &json!({}))?;
            match found.get("status").and_then(Value::as_str) {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => return Err(io::Error::other(found.to_string())),
                _ if since.elapsed() > ANSWERS => return Err(io::ErrorKind::TimedOut.into()),
                _ => std::thread::sleep(LOOK),
            }
        }
    }
}
