//! What the agent is to do: one experiment, as lines of text.
//!
//! ```text
//! risetime-job 1
//! duration_ns 3000000000            fields of `Job`, one a line, in any order
//! cpu 459 2064000 0                 capacity, top frequency in kHz, first CPU of its policy
//! set PATH VALUE                    in order; each is read back into the answer
//! task rampup 0 1 * * * *           name delay_ns loop cpus nice util_min util_max
//! phase nap 100 * * * *             of the last task: name loop cpus nice util_min util_max
//! run 1000                          of the last phase
//! sleep 10000000
//! end                               so that a file cut short is no job
//! ```
//!
//! A word never holds a space: `%`, white space and control characters are written `%XX`, an
//! empty word is `%`. `*` is "unchanged" (at creation: the default), a loop of `-1` is for
//! ever, CPU lists are `0,1,4`. All times are ns, all work is time at capacity 1024 and top
//! frequency.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// First line of every job.
const MAGIC: &str = "risetime-job 1";

/// One experiment for the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Length of the run, from time 0 (the `start` mark) to the `end` mark.
    pub duration_ns: u64,
    /// The first task is created this long after time 0 (tasks add their own delay).
    pub phase_ns: u64,
    /// The tick: time 0 is a multiple of it on CLOCK_MONOTONIC. 0: not aligned.
    pub tick_ns: u64,
    /// CPU on which the first task is created; the rest are created from there by the
    /// kernel's own placement.
    pub first_cpu: u32,
    /// Before the workload, visit each CPU in turn for this long in all (ns of the guest's
    /// clock) to let the boot's utilisation estimates decay. 0: not at all.
    pub settle_ns: u64,
    /// Trace buffer for each CPU, in KiB.
    pub buffer_kb: u32,
    /// Wait for this long at the end of the run before tracing stops (0 unless debugging).
    pub linger_ns: u64,
    /// Every CPU, by number.
    pub cpus: Vec<Cpu>,
    /// Kernel modules to load, in order: paths in the guest. One that is missing is an error.
    pub modules: Vec<String>,
    /// What to write before the workload, in this order: path and value. Each is read back
    /// afterwards. A failure is recorded in the answer, and the run goes on.
    pub set: Vec<(String, String)>,
    /// What to read at the end of the run (after tracing has stopped).
    pub read: Vec<String>,
    /// Dynamic events, lines of tracefs `dynamic_events`; `{STRUCT.FIELD-STRUCT.FIELD}` (and
    /// `{STRUCT.FIELD}`) stand for byte offsets and their difference, which the agent takes
    /// from the kernel's own types (BTF). All are enabled. One that this kernel does not
    /// accept is recorded in the answer (`probe NAME` = the reason) and left out.
    pub probes: Vec<String>,
    /// Static events to enable, `sched/sched_switch`. One that is missing is recorded likewise.
    pub events: Vec<String>,
    /// The tasks, in order of creation.
    pub tasks: Vec<Task>,
}

/// A CPU, as far as it is needed to account for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Capacity at the top frequency, of 1024.
    pub capacity: u64,
    /// Top frequency.
    pub freq_max_khz: u64,
    /// Its cpufreq policy: the number in `policyN`.
    pub policy: u32,
}

/// A thread. As in `risetime_model::workload::TaskSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Thread name (cut to 15 bytes by the kernel; names the agent reports are whole).
    pub comm: String,
    /// Created this long after the workload starts.
    pub delay_ns: u64,
    /// How often the phases are run; `None`: for ever.
    pub repeat: Option<u32>,
    /// At creation.
    pub attr: Attr,
    /// In order; at least one.
    pub phases: Vec<Phase>,
}

/// What may change at creation and with each phase; `None` leaves it as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Affinity.
    pub cpus: Option<Vec<u32>>,
    /// Nice value.
    pub nice: Option<i32>,
    /// `sched_util_min`.
    pub uclamp_min: Option<u32>,
    /// `sched_util_max`.
    pub uclamp_max: Option<u32>,
}

/// A named run of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// How often its events are run; `None`: for ever.
    pub repeat: Option<u32>,
    /// Set when it begins.
    pub attr: Attr,
    /// In order; at least one.
    pub events: Vec<Event>,
}

/// One thing a task does. As in `risetime_model::workload::Event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Work: this long at capacity 1024 and top frequency.
    Run(u64),
    /// Busy until this much wall-clock time has passed since the event began.
    Runtime(u64),
    /// Sleep.
    Sleep(u64),
    /// Timer `.0` with period `.1`: reference += period, sleep until then; if that is not
    /// ahead, reference = now and no sleep. The reference is at first the time at which the
    /// task began to run its first phase.
    Timer(u32, u64),
}

/// Why a text is no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job: line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for JobError {}

impl Job {
    /// The job as text; [`Job::parse`] reads it back unchanged.
    pub fn to_text(&self) -> String {
        let mut s = format!("{MAGIC}\n");
        for (key, value) in [
            ("duration_ns", self.duration_ns),
            ("phase_ns", self.phase_ns),
            ("tick_ns", self.tick_ns),
            ("first_cpu", self.first_cpu.into()),
            ("settle_ns", self.settle_ns),
            ("buffer_kb", self.buffer_kb.into()),
            ("linger_ns", self.linger_ns),
        ] {
            line(&mut s, format_args!("{key} {value}"));
        }
        for c in &self.cpus {
            line(&mut s, format_args!("cpu {} {} {}", c.capacity, c.freq_max_khz, c.policy));
        }
        for (key, words) in [
            ("module", &self.modules),
            ("read", &self.read),
            ("probe", &self.probes),
            ("event", &self.events),
        ] {
            words.iter().for_each(|w| line(&mut s, format_args!("{key} {}", escape(w))));
        }
        for (path, value) in &self.set {
            line(&mut s, format_args!("set {} {}", escape(path), escape(value)));
        }
        for t in &self.tasks {
            line(
                &mut s,
                format_args!(
                    "task {} {} {} {}",
                    escape(&t.comm),
                    t.delay_ns,
                    repeat_text(t.repeat),
                    attr_text(&t.attr)
                ),
            );
            for p in &t.phases {
                line(
                    &mut s,
                    format_args!(
                        "phase {} {} {}",
                        escape(&p.name),
                        repeat_text(p.repeat),
                        attr_text(&p.attr)
                    ),
                );
                for e in &p.events {
                    match e {
                        Event::Run(ns) => line(&mut s, format_args!("run {ns}")),
                        Event::Runtime(ns) => line(&mut s, format_args!("runtime {ns}")),
                        Event::Sleep(ns) => line(&mut s, format_args!("sleep {ns}")),
                        Event::Timer(id, ns) => line(&mut s, format_args!("timer {id} {ns}")),
                    }
                }
            }
        }
        s + "end\n"
    }

    /// The job that `text` describes.
    ///
    /// Errors: the first line that is not understood, or a text that ends early.
    pub fn parse(text: &str) -> Result<Job, JobError> {
        let mut job = Job::default();
        let mut lines = text.lines().zip(1..);
        match lines.next() {
            Some((MAGIC, _)) => {}
            found => {
                let what = format!("found {:?}, wanted {MAGIC:?}", found.map_or("", |f| f.0));
                return Err(JobError { line: 1, what });
            }
        }
        let mut last = 1;
        for (text, number) in lines {
            last = number;
            if text == "end" {
                return Ok(job);
            }
            job.line(text)
                .map_err(|what| JobError { line: number, what: format!("{what} in {text:?}") })?;
        }
        Err(JobError { line: last, what: "the text ends here, wanted more lines and `end`".into() })
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let mut w = Words(text.split(' '));
        let key = w.next()?;
        match key {
            "duration_ns" => self.duration_ns = w.number()?,
            "phase_ns" => self.phase_ns = w.number()?,
            "tick_ns" => self.tick_ns = w.number()?,
            "first_cpu" => self.first_cpu = w.number()?,
            "settle_ns" => self.settle_ns = w.number()?,
            "buffer_kb" => self.buffer_kb = w.number()?,
            "linger_ns" => self.linger_ns = w.number()?,
            "cpu" => self.cpus.push(Cpu {
                capacity: w.number()?,
                freq_max_khz: w.number()?,
                policy: w.number()?,
            }),
            "module" => self.modules.push(w.word()?),
            "read" => self.read.push(w.word()?),
            "probe" => self.probes.push(w.word()?),
            "event" => self.events.push(w.word()?),
            "set" => self.set.push((w.word()?, w.word()?)),
            "task" => self.tasks.push(Task {
                comm: w.word()?,
                delay_ns: w.number()?,
                repeat: w.repeat()?,
                attr: w.attr()?,
                phases: Vec::new(),
            }),
            "phase" => {
                let phase = Phase {
                    name: w.word()?,
                    repeat: w.repeat()?,
                    attr: w.attr()?,
                    events: Vec::new(),
                };
                self.tasks.last_mut().ok_or("a phase before any task")?.phases.push(phase);
            }
            "run" | "runtime" | "sleep" | "timer" => {
                let event = match key {
                    "run" => Event::Run(w.number()?),
                    "runtime" => Event::Runtime(w.number()?),
                    "sleep" => Event::Sleep(w.number()?),
                    _ => Event::Timer(w.number()?, w.number()?),
                };
                let phase = self.tasks.last_mut().and_then(|t| t.phases.last_mut());
                phase.ok_or("an event before any phase")?.events.push(event);
            }
            _ => return Err(format!("unknown key `{key}`")),
        }
        w.done()
    }
}

fn line(s: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(s, "{text}");
}

fn repeat_text(repeat: Option<u32>) -> String {
    repeat.map_or("-1".into(), |n| n.to_string())
}

fn attr_text(a: &Attr) -> String {
    fn or_star(v: Option<impl fmt::Display>) -> String {
        v.map_or("*".into(), |v| v.to_string())
    }
    let cpus = a.cpus.as_ref().map(|c| c.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    format!(
        "{} {} {} {}",
        or_star(cpus),
        or_star(a.nice),
        or_star(a.uclamp_min),
        or_star(a.uclamp_max)
    )
}

/// `text` as one word: without spaces, line ends and control characters, never empty.
pub fn escape(text: &str) -> String {
    if text.is_empty() {
        return "%".into();
    }
    let mut s = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '%' || c == ' ' || c.is_ascii_control() {
            let _ = write!(s, "%{:02X}", c as u32);
        } else if c.is_whitespace() || c.is_control() {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| {
                let _ = write!(s, "%{b:02X}");
            });
        } else {
            s.push(c);
        }
    }
    s
}

/// The text that [`escape`] made `word` of; `None`: no such word.
pub fn unescape(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.bytes();
    while let Some(b) = rest.next() {
        if b == b'%' {
            let digit = |b: Option<u8>| (b? as char).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(b);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The words of a line, in order.
struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.0.next().filter(|w| !w.is_empty()).ok_or_else(|| "a word is missing".into())
    }
    fn word(&mut self) -> Result<String, String> {
        let w = self.next()?;
        unescape(w).ok_or_else(|| format!("bad escape in `{w}`"))
    }
    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let w = self.next()?;
        w.parse().map_err(|_| format!("`{w}` is no such number"))
    }
    fn optional<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, String> {
        match self.next()? {
            "*" => Ok(None),
            w => parse(w).map(Some).ok_or_else(|| format!("`{w}` is out of place")),
        }
    }
    fn repeat(&mut self) -> Result<Option<u32>, String> {
        match self.next()? {
            "-1" => Ok(None),
            w => w.parse().map(Some).map_err(|_| format!("`{w}` is no loop count")),
        }
    }
    fn attr(&mut self) -> Result<Attr, String> {
        Ok(Attr {
            cpus: self.optional(|w| w.split(',').map(|n| n.parse().ok()).collect())?,
            nice: self.optional(|w| w.parse().ok())?,
            uclamp_min: self.optional(|w| w.parse().ok())?,
            uclamp_max: self.optional(|w| w.parse().ok())?,
        })
    }
    fn done(&mut self) -> Result<(), String> {
        match self.0.next() {
            None => Ok(()),
            Some(w) => Err(format!("`{w}` is one word too many")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Job {
        let attr = Attr {
            cpus: Some(vec![0, 4]),
            nice: Some(-5),
            uclamp_min: Some(0),
            uclamp_max: Some(1024),
        };
        Job {
            duration_ns: 1,
            phase_ns: 2,
            tick_ns: 4_000_000,
            first_cpu: 3,
            settle_ns: 5,
            buffer_kb: 6,
            linger_ns: 7,
            cpus: vec![Cpu { capacity: 459, freq_max_khz: 2_064_000, policy: 0 }],
            modules: vec!["/a b.ko".into()],
            set: vec![("/sys/x".into(), "100% of\n".into()), ("/sys/y".into(), String::new())],
            read: vec!["/proc/ä".into()],
            probes: vec!["t:rt/x y pid=+{a.b-a.c}($arg1):s32".into()],
            events: vec!["sched/sched_switch".into()],
            tasks: vec![Task {
                comm: "end".into(),
                delay_ns: 8,
                repeat: None,
                attr: attr.clone(),
                phases: vec![Phase {
                    name: "*".into(),
                    repeat: Some(9),
                    attr: Attr::default(),
                    events: vec![
                        Event::Run(1),
                        Event::Runtime(2),
                        Event::Sleep(3),
                        Event::Timer(4, u64::MAX),
                    ],
                }],
            }],
        }
    }

    #[test]
    fn a_job_survives_as_text() {
        let text = full().to_text();
        assert_eq!(Job::parse(&text), Ok(full()), "{text}");
        assert_eq!(Job::parse(&Job::default().to_text()), Ok(Job::default()));
    }

    #[test]
    fn a_job_cut_anywhere_is_no_job() {
        let text = full().to_text();
        for end in (0..text.len() - 1).filter(|e| text.is_char_boundary(*e)) {
            assert!(Job::parse(&text[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let of =
            |body: &str| Job::parse(&format!("{MAGIC}\n{body}\nend\n")).unwrap_err().to_string();
        assert_eq!(of("colour blue"), "job: line 2: unknown key `colour` in \"colour blue\"");
        assert_eq!(of("run 5"), "job: line 2: an event before any phase in \"run 5\"");
        assert_eq!(
            of("duration_ns 1 2"),
            "job: line 2: `2` is one word too many in \"duration_ns 1 2\""
        );
        assert_eq!(of("cpu 1 2"), "job: line 2: a word is missing in \"cpu 1 2\"");
        assert_eq!(of("read %zz"), "job: line 2: bad escape in `%zz` in \"read %zz\"");
        assert_eq!(Job::parse("").unwrap_err().line, 1);
    }

    #[test]
    fn any_text_is_a_word() {
        for text in ["", "%", " ", "a b", "tab\tend\n", "\u{2003}", "\u{85}", "%20", "ä*-1", "\0"]
        {
            let word = escape(text);
            assert!(
                !word.is_empty() && !word.chars().any(|c| c.is_whitespace() || c.is_control()),
                "{word:?}"
            );
            assert_eq!(unescape(&word).as_deref(), Some(text));
        }
        assert_eq!(unescape("%2"), None);
        assert_eq!(unescape("%ff"), None, "no UTF-8");
    }
}
