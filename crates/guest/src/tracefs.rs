//! The kernel's trace: events switched on, started, stopped, taken out whole.
//!
//! The trace clock is `local`: the scheduler's own clock, which on arm64 is one counter for all
//! CPUs and the one that `last_update_time` counts in. Pages are taken out as the kernel has
//! them, with the event formats beside them, because formatting them here would be slow.

use crate::answer::{Writer, value_line};
use crate::btf::Btf;
use crate::probe::{self, Probe};
use crate::sys;
use risetime_job::job::Job;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::RwLock;

const O_NONBLOCK: i32 = 0o4000;

/// A trace buffer, ready.
#[derive(Debug)]
pub(crate) struct Tracer {
    dir: PathBuf,
    /// `tracing_on` and `trace_marker`, until closed.
    files: RwLock<Option<(File, File)>>,
    /// `SYSTEM/EVENT` of all that are enabled.
    enabled: Vec<String>,
    /// Tracepoints that are switched on for kprobes.
    switched_on: Vec<OwnedFd>,
    /// True on an ordinary host: the tracer has its own buffer, removed in the end.
    instance: bool,
}

/// Directory where tracefs is mounted in the virtual machine and on every ordinary host.
pub(crate) const ROOT: &str = "/sys/kernel/tracing";

/// Group of the probes that are in force until shortly before time 0 only.
const BEFORE: &str = "rt_before";
/// Group of those that tell of what happens at ticks at most.
const RARE: &str = "rt_rare";

impl Tracer {
    /// Sets up the events and probes of `job`, recording in `values` what this kernel has not.
    /// `instance`: in a buffer of its own, leaving the machine's alone.
    ///
    /// Errors: no tracefs.
    pub(crate) fn open(job: &Job, instance: bool, values: &mut String) -> io::Result<Tracer> {
        let dir = PathBuf::from(ROOT);
        let dir = if instance {
            dir.join(format!("instances/risetime-{}", std::process::id()))
        } else {
            dir
        };
        if instance {
            fs::create_dir(&dir)?;
        }
        write(&dir.join("tracing_on"), "0")?;
        write(&dir.join("trace"), "")?;
        write(&dir.join("trace_clock"), "local")?;
        write(&dir.join("buffer_size_kb"), &job.buffer_kb.max(64).to_string())?;
        values.push_str(&value_line("clock", "local"));
        let open = |name: &str| OpenOptions::new().write(true).open(dir.join(name));
        let files = RwLock::new(Some((open("tracing_on")?, open("trace_marker")?)));
        let (enabled, switched_on) = (Vec::new(), Vec::new());
        let mut tracer = Tracer { dir, files, enabled, switched_on, instance };
        // What is enabled first is told first: with kprobes the state before what became of it, as these
        // come first in any case.
        if job.kprobes {
            tracer.probes(job, values);
        }
        for event in &job.events {
            match tracer.enable(event) {
                Ok(()) => {}
                Err(e) => values.push_str(&value_line(&format!("event {event}"), &e.to_string())),
            }
        }
        if !job.kprobes {
            tracer.probes(job, values);
        }
        Ok(tracer)
    }

    fn enable(&mut self, event: &str) -> io::Result<()> {
        write(&self.dir.join("events").join(event).join("enable"), "1")?;
        self.enabled.push(event.into());
        Ok(())
    }

    /// Creates dynamic events; one that is refused is left out.
    fn probes(&mut self, job: &Job, values: &mut String) {
        let bytes = if job.probes.iter().any(|p| p.contains(['{', '|'])) {
            fs::read("/sys/kernel/btf/vmlinux").map_err(|e| format!("/sys/kernel/btf/vmlinux: {e}"))
        } else {
            Ok(Vec::new())
        };
        let btf = bytes
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|b| Btf::parse(b).map_err(|e| e.to_string()));
        for line in &job.probes {
            let name = probe::name(line);
            // What is over before time 0, or rare, costs next to nothing by a kprobe, too.
            let group = name.split('/').next().unwrap_or_default();
            let kprobes = job.kprobes || [BEFORE, RARE].contains(&group);
            if let Err(e) = self.of_job(line, btf.as_ref(), kprobes) {
                values.push_str(&value_line(&format!("probe {name}"), &e));
            }
        }
    }

    /// A probe of the job, by a kprobe if the kernel does not take it as it is and `kprobes` allows that.
    ///
    /// Errors: why it is not there.
    fn of_job(
        &mut self,
        text: &str,
        btf: Result<&Btf<'_>, &String>,
        kprobes: bool,
    ) -> Result<(), String> {
        let name = probe::name(text);
        if !text.contains(['{', '|']) && !kprobes {
            return self.probe(text, name).map_err(|e| self.reason(&e));
        }
        let btf = btf.map_err(Clone::clone)?;
        let Some(probe) = Probe::parse(text).filter(|_| kprobes) else {
            let line = probe::plain(text, btf).map_err(|e| e.to_string())?;
            return self.probe(&line, name).map_err(|e| self.reason(&e));
        };
        let line = probe.line(btf).map_err(|e| e.to_string())?;
        let Err(refused) = self.probe(&line, name) else { return Ok(()) };
        let mut why = self.reason(&refused);
        let kprobe = probe.kprobe(btf).map_err(|e| e.to_string())?;
        if let Some(tracepoint) = &kprobe.tracepoint {
            let on = sys::switch_on(tracepoint).map_err(|e| format!("{why}; BPF: {e}"))?;
            self.switched_on.push(on);
        }
        for line in &kprobe.lines {
            match self.probe(line, name) {
                Ok(()) => return Ok(()),
                Err(e) => why = self.reason(&e),
            }
        }
        Err(why)
    }

    fn probe(&mut self, line: &str, name: &str) -> io::Result<()> {
        let mut file =
            OpenOptions::new().append(true).open(PathBuf::from(ROOT).join("dynamic_events"))?;
        file.write_all(line.as_bytes())?;
        self.enable(name)
    }

    /// Switches off the probes that only tell what was before time 0.
    pub(crate) fn end_of_before(&self) {
        // Where there are none, there is nothing to switch off.
        let _ = write(&self.dir.join("events").join(BEFORE).join("enable"), "0");
    }

    /// The system's error, with what the kernel's error log has to say.
    fn reason(&self, e: &io::Error) -> String {
        let log = fs::read_to_string(self.dir.join("error_log")).unwrap_or_default();
        let said =
            log.lines().rfind(|l| l.contains("error:")).and_then(|l| l.split("error:").nth(1));
        said.map_or_else(|| e.to_string(), |said| format!("{e}: {}", said.trim()))
    }

    /// Switches tracing on.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.write(|(on, _)| on, b"1")
    }
    /// Switches tracing off.
    pub(crate) fn stop(&self) -> io::Result<()> {
        self.write(|(on, _)| on, b"0")
    }
    fn write(&self, which: impl Fn(&(File, File)) -> &File, bytes: &[u8]) -> io::Result<()> {
        let files = self.files.read().unwrap_or_else(|e| e.into_inner());
        files.as_ref().map_or(Ok(()), |f| which(f).write_all(bytes))
    }

    /// A mark in the trace.
    pub(crate) fn mark(&self, text: &str) {
        // A mark can only fail where tracing has stopped already.
        let _ = self.write(|(_, marker)| marker, text.as_bytes());
    }

    /// Formats and pages into `out`, losses into `values`.
    pub(crate) fn collect<W: Write>(
        &self,
        out: &mut Writer<W>,
        values: &mut String,
    ) -> io::Result<()> {
        let events = self.dir.join("events");
        out.section("header_page", &read_once(&events.join("header_page"))?)?;
        for event in self.enabled.iter().map(String::as_str).chain(["ftrace/print"]) {
            let format = fs::read(PathBuf::from(ROOT).join("events").join(event).join("format"))?;
            out.section(&format!("format {event}"), &format)?;
        }
        for cpu in cpu_dirs(&self.dir)? {
            let dir = self.dir.join(format!("per_cpu/cpu{cpu}"));
            values.push_str(&value_line(&format!("lost.{cpu}"), &lost(&dir)?.to_string()));
            let mut file = OpenOptions::new()
                .read(true)
                .custom_flags(O_NONBLOCK)
                .open(dir.join("trace_pipe_raw"))?;
            out.section(&format!("pages {cpu}"), &read_pages(&mut file)?)?;
        }
        Ok(())
    }

    /// Takes away what was set up, on a machine that is used for other things too.
    pub(crate) fn close(&self) {
        if self.instance {
            *self.files.write().unwrap_or_else(|e| e.into_inner()) = None;
            // The directory stays behind if somebody has it open; that costs memory, nothing else.
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// The CPUs that have a buffer, ascending.
fn cpu_dirs(dir: &std::path::Path) -> io::Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for entry in fs::read_dir(dir.join("per_cpu"))? {
        let name = entry?.file_name();
        cpus.extend(name.to_str().and_then(|n| n.strip_prefix("cpu")?.parse::<u32>().ok()));
    }
    cpus.sort_unstable();
    Ok(cpus)
}

/// Events that were overwritten or dropped.
fn lost(dir: &std::path::Path) -> io::Result<u64> {
    Ok(lost_in(&fs::read_to_string(dir.join("stats"))?))
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
fn read_once(path: &std::path::Path) -> io::Result<Vec<u8>> {
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

fn write(path: &std::path::Path, text: &str) -> io::Result<()> {
    // Opened for truncation: that is what empties `trace`.
    let done = fs::write(path, text);
    done.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_lost_is_counted_once() {
        let stats = "entries: 90\noverrun: 3\ncommit overrun: 40\nbytes: 7\ndropped events: 500\nread events: 1\n";
        assert_eq!(lost_in(stats), 543);
    }
}
