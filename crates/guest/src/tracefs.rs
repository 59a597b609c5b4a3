//! The kernel's trace: events switched on, started, stopped, taken out whole.
//!
//! The trace clock is `local`: the scheduler's own clock, which on arm64 is one counter for all
//! CPUs and the one that `last_update_time` counts in. Pages are taken out as the kernel has
//! them, with the event formats beside them, because formatting them here would be slow.

use crate::answer::{self, Writer, value_line};
use crate::idle::IdleTimes;
use risetime_ftrace::btf::Btf;
use risetime_ftrace::probe;
use risetime_ftrace::tracefs::{BEFORE, RARE, ROOT, Tracefs};
use risetime_job::job::Job;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::RwLock;

/// A trace buffer, ready.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// The buffer: on an ordinary host one of its own, removed in the end.
    buffer: Tracefs,
    /// `tracing_on` and `trace_marker`, until closed.
    files: RwLock<Option<(File, File)>>,
    /// `SYSTEM/EVENT` of all that are enabled.
    enabled: Vec<String>,
    /// Tracepoints that are switched on for kprobes.
    switched_on: Vec<OwnedFd>,
    /// Idle states that take time; `None`: they take what the machine takes.
    idle: Option<IdleTimes>,
}

impl Tracer {
    /// Sets up the events and probes of `job`, recording in `values` what this kernel has not.
    /// `instance`: in a buffer of its own, leaving the machine's alone.
    ///
    /// Errors: no tracefs.
    pub(crate) fn open(job: &Job, instance: bool, values: &mut String) -> io::Result<Tracer> {
        let buffer = match instance {
            true => Tracefs::instance(ROOT, &format!("risetime-{}", std::process::id()))?,
            false => Tracefs::of_machine(ROOT),
        };
        buffer.prepare(job.buffer_kb.max(64), "local")?;
        values.push_str(&value_line("clock", "local"));
        let files = RwLock::new(Some((buffer.open("tracing_on")?, buffer.open("trace_marker")?)));
        let (enabled, switched_on) = (Vec::new(), Vec::new());
        let mut tracer = Tracer { buffer, files, enabled, switched_on, idle: None };
        if !job.idle.is_empty() {
            tracer.idle_times(values, IdleTimes::prepare(&job.idle));
        }
        // What is enabled first is told first: with kprobes the state before what became of it, as these
        // come first in any case.
        if job.kprobes {
            tracer.probes(job, values);
        }
        for event in &job.events {
            match tracer.buffer.enable(event, true) {
                Ok(()) => tracer.enabled.push(event.clone()),
                Err(e) => values.push_str(&value_line(&format!("event {event}"), &e.to_string())),
            }
        }
        if !job.kprobes {
            tracer.probes(job, values);
        }
        if let Some(mut idle) = tracer.idle.take() {
            tracer.idle_times(values, idle.complete().map(|()| idle));
        }
        Ok(tracer)
    }

    /// Takes the idle states that take time, or notes why they do not.
    fn idle_times(&mut self, values: &mut String, idle: io::Result<IdleTimes>) {
        match idle {
            Ok(idle) => self.idle = Some(idle),
            Err(e) => values.push_str(&value_line(answer::NO_IDLE_TIMES, &e.to_string())),
        }
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
            match self.buffer.probe(line, btf.as_ref(), kprobes, risetime_sys::bpf::switch_on) {
                Ok(on) => {
                    self.switched_on.extend(on);
                    self.enabled.push(name.into());
                }
                Err(e) => values.push_str(&value_line(&format!("probe {name}"), &e)),
            }
        }
    }

    /// Switches off the probes that only tell what was before time 0.
    pub(crate) fn end_of_before(&self) {
        // Where there are none, there is nothing to switch off.
        let _ = self.buffer.enable(BEFORE, false);
    }

    /// Lets idle states take time from here on.
    pub(crate) fn begin_idle_times(&self) -> io::Result<()> {
        self.idle.as_ref().map_or(Ok(()), |idle| idle.begin())
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
        out.section("header_page", &self.buffer.header_page()?)?;
        for event in self.enabled.iter().map(String::as_str).chain(["ftrace/print"]) {
            out.section(&format!("format {event}"), &self.buffer.format(event)?)?;
        }
        for cpu in self.buffer.cpus()? {
            values
                .push_str(&value_line(&format!("lost.{cpu}"), &self.buffer.lost(cpu)?.to_string()));
            out.section(&format!("pages {cpu}"), &self.buffer.pages(cpu)?)?;
        }
        Ok(())
    }

    /// Takes away what was set up, on a machine that is used for other things too.
    pub(crate) fn close(&self) {
        *self.files.write().unwrap_or_else(|e| e.into_inner()) = None;
        // The directory stays behind if somebody has it open; that costs memory, nothing else.
        let _ = self.buffer.remove();
    }
}
