//! tracefs: a trace buffer, its events and probes, its pages.
//!
//! ```text
//! /sys/kernel/tracing
//!   dynamic_events  error_log  events/SYSTEM/NAME/{enable,format}  events/header_page
//!   tracing_on  trace  trace_clock  trace_marker  buffer_size_kb  per_cpu/cpuN/{stats,trace_pipe_raw}
//!   instances/NAME/…     a buffer of its own, with what the line before has; formats are the machine's
//! ```
//!
//! Pages are taken out as the kernel has them, because formatting them there would be slow.
//! Source: Documentation/trace/ftrace.rst, events.rst, kprobetrace.rst.

use crate::btf::Btf;
use crate::probe::{self, Probe};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const O_NONBLOCK: i32 = 0o4000;

/// Directory where tracefs is mounted.
pub const ROOT: &str = "/sys/kernel/tracing";

/// Group of the probes that are in force until shortly before time 0 only.
pub const BEFORE: &str = "rt_before";
/// Group of those that tell of what happens at ticks at most.
pub const RARE: &str = "rt_rare";

/// A trace buffer of the running kernel: the machine's, or one of its own.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    dir: PathBuf,
    instance: bool,
}

/// Switches a tracepoint of this name on for as long as what is returned lives.
pub type SwitchOn = fn(&str) -> io::Result<OwnedFd>;

impl Tracefs {
    /// The machine's buffer, below `root`.
    pub fn of_machine(root: impl Into<PathBuf>) -> Tracefs {
        let root = root.into();
        Tracefs { dir: root.clone(), root, instance: false }
    }

    /// Creates a buffer of its own called `name`, which leaves the machine's alone, until [`remove`](Tracefs::remove).
    ///
    /// Errors: no tracefs, no right to it, or there is one of this name.
    pub fn instance(root: impl Into<PathBuf>, name: &str) -> io::Result<Tracefs> {
        let root = root.into();
        let dir = root.join("instances").join(name);
        fs::create_dir(&dir)?;
        Ok(Tracefs { root, dir, instance: true })
    }

    /// Removes the buffer, if it is one of its own.
    ///
    /// Errors: somebody has a file of it open.
    pub fn remove(&self) -> io::Result<()> {
        if self.instance { fs::remove_dir(&self.dir) } else { Ok(()) }
    }

    /// The path of `file` of this buffer.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Opens `file` of this buffer for writing.
    ///
    /// Errors: the system's.
    pub fn open(&self, file: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path(file))
    }

    /// Stops the buffer and makes it empty, with `buffer_kb` KiB for each CPU and `clock` to tell the time.
    ///
    /// Errors: the first file that refuses, by its path.
    pub fn prepare(&self, buffer_kb: u32, clock: &str) -> io::Result<()> {
        self.write("tracing_on", "0")?;
        self.write("trace", "")?;
        self.write("trace_clock", clock)?;
        self.write("buffer_size_kb", &buffer_kb.to_string())
    }

    /// Writes `text` to `file` of this buffer.
    ///
    /// Errors: the system's, with the path.
    pub fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.path(file);
        // Opened for truncation: that is what empties `trace`.
        let done = fs::write(&path, text);
        done.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
    }

    /// Switches an event `SYSTEM/NAME`, or all of a `SYSTEM`, on or off in this buffer.
    ///
    /// Errors: the system's, with the path.
    pub fn enable(&self, event: &str, on: bool) -> io::Result<()> {
        self.write(&format!("events/{event}/enable"), if on { "1" } else { "0" })
    }

    /// Creates the event of a probe's `line`, called `name`, and switches it on in this buffer.
    ///
    /// Errors: what the kernel says to the line, and its error log.
    pub fn define(&self, line: &str, name: &str) -> Result<(), String> {
        let define = || {
            let path = self.root.join("dynamic_events");
            OpenOptions::new().append(true).open(path)?.write_all(line.as_bytes())?;
            self.enable(name, true)
        };
        define().map_err(|e| self.reason(&e))
    }

    /// Defines the probe that `text` says in the words that hold for all releases, by a kprobe if the kernel does
    /// not take it as it is and `kprobes` allows that. Returns the tracepoint that is switched on for it, if one has to be.
    ///
    /// Errors: why it is not there.
    pub fn probe(
        &self,
        text: &str,
        btf: Result<&Btf<'_>, &String>,
        kprobes: bool,
        switch_on: SwitchOn,
    ) -> Result<Option<OwnedFd>, String> {
        let name = probe::name(text);
        if !text.contains(['{', '|']) && !kprobes {
            return self.define(text, name).map(|()| None);
        }
        let btf = btf.map_err(Clone::clone)?;
        let Some(probe) = Probe::parse(text).filter(|_| kprobes) else {
            let line = probe::plain(text, btf).map_err(|e| e.to_string())?;
            return self.define(&line, name).map(|()| None);
        };
        let line = probe.line(btf).map_err(|e| e.to_string())?;
        let Err(mut why) = self.define(&line, name) else { return Ok(None) };
        let kprobe = probe.kprobe(btf).map_err(|e| e.to_string())?;
        let on = match &kprobe.tracepoint {
            Some(point) => Some(switch_on(point).map_err(|e| format!("{why}; BPF: {e}"))?),
            None => None,
        };
        for line in &kprobe.lines {
            match self.define(line, name) {
                Ok(()) => return Ok(on),
                Err(e) => why = e,
            }
        }
        Err(why)
    }

    /// The system's error, with what the kernel's error log has to say.
    fn reason(&self, e: &io::Error) -> String {
        let log = fs::read_to_string(self.path("error_log")).unwrap_or_default();
        let said =
            log.lines().rfind(|l| l.contains("error:")).and_then(|l| l.split("error:").nth(1));
        said.map_or_else(|| e.to_string(), |said| format!("{e}: {}", said.trim()))
    }

    /// The text of `header_page`.
    ///
    /// Errors: the system's.
    pub fn header_page(&self) -> io::Result<Vec<u8>> {
        read_once(&self.path("events/header_page"))
    }

    /// The text of the `format` of `event`.
    ///
    /// Errors: the system's.
    pub fn format(&self, event: &str) -> io::Result<Vec<u8>> {
        fs::read(self.root.join("events").join(event).join("format"))
    }

    /// Lists the CPUs that have a buffer, ascending.
    ///
    /// Errors: the system's.
    pub fn cpus(&self) -> io::Result<Vec<u32>> {
        let mut cpus = Vec::new();
        for entry in fs::read_dir(self.path("per_cpu"))? {
            let name = entry?.file_name();
            cpus.extend(name.to_str().and_then(|n| n.strip_prefix("cpu")?.parse::<u32>().ok()));
        }
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// The number of events of `cpu` that were overwritten or dropped.
    ///
    /// Errors: the system's.
    pub fn lost(&self, cpu: u32) -> io::Result<u64> {
        Ok(lost_in(&fs::read_to_string(self.path(&format!("per_cpu/cpu{cpu}/stats")))?))
    }

    /// Takes out the pages of `cpu`, one behind the other.
    ///
    /// Errors: the system's.
    pub fn pages(&self, cpu: u32) -> io::Result<Vec<u8>> {
        let path = self.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let mut file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?;
        read_pages(&mut file)
    }
}

fn lost_in(stats: &str) -> u64 {
    let counted = ["overrun", "commit overrun", "dropped events"];
    let number = |line: &str| {
        let (key, value) = line.split_once(':')?;
        counted.contains(&key.trim()).then(|| value.trim().parse::<u64>().ok())?
    };
    stats.lines().filter_map(number).sum()
}

/// Reads all that one read gives: `header_page` says nothing to a second one.
fn read_once(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 1 << 12];
    let n = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

fn read_pages(file: &mut File) -> io::Result<Vec<u8>> {
    let mut pages = Vec::new();
    // Large enough for any page of a trace buffer; one read gives one page.
    let mut page = vec![0; 1 << 16];
    loop {
        match file.read(&mut page) {
            Ok(0) => return Ok(pages),
            Ok(n) => pages.extend_from_slice(&page[..n]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(pages),
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_lost_is_counted_once() {
        let stats = "entries: 90\noverrun: 3\ncommit overrun: 40\nbytes: 7\ndropped events: 500\nread events: 1\n";
        assert_eq!(lost_in(stats), 543);
    }

    #[test]
    fn a_probe_that_is_refused_says_what_the_kernel_says() {
        let root = std::env::temp_dir().join(format!("risetime-tracefs-{}", std::process::id()));
        fs::create_dir_all(root.join("events/rt/x")).unwrap();
        fs::write(root.join("dynamic_events"), "").unwrap();
        let tracefs = Tracefs::of_machine(&root);
        let none = |_: &str| Err(io::ErrorKind::Unsupported.into());
        let probe = |text: &str| {
            let done = tracefs.probe(text, Err(&"no types".into()), false, none);
            done.map(|on| on.is_some())
        };
        assert_eq!(probe("t:rt/x x_tp a=b"), Ok(false));
        assert_eq!(fs::read_to_string(root.join("dynamic_events")).unwrap(), "t:rt/x x_tp a=b");
        assert_eq!(fs::read_to_string(root.join("events/rt/x/enable")).unwrap(), "1");
        assert_eq!(probe("t:rt/x x_tp a={b.c}"), Err("no types".into()));
        fs::write(root.join("error_log"), "[1.0] trace_events: error: Bad group\n  Command: x\n")
            .unwrap();
        fs::remove_dir_all(root.join("events")).unwrap();
        let why = probe("t:rt/x x_tp a=b").unwrap_err();
        assert!(why.ends_with(": Bad group") && why.contains("events/rt/x/enable"), "{why}");
        fs::remove_dir_all(root).unwrap();
    }
}
