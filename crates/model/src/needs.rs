//! Needs of real-time tasks: a file of theirs, for `risetime deploy`.
//!
//! ```toml
//! schema = 1
//! name = "robot"
//!
//! [[task]]
//! name = "control"        # how often, and for how long at most: can be guaranteed
//! period_us = 10000
//! runtime_us = 2000       # of a CPU of capacity 1024 at its highest frequency
//! deadline_us = 8000      # unless said: the period
//! kind = "encrypt"        # unless said: plain work; a kind of the platform's tables
//!
//! [[task]]
//! name = "camera"         # how often alone: goes before all that come less often
//! period_us = 33333
//!
//! [[task]]
//! name = "video"          # a part of a CPU of capacity 1024, in each period (of 100 ms unless said)
//! share_percent = 30
//!
//! [[task]]
//! name = "logger"         # only who goes first: 1 to 99, as SCHED_FIFO has it
//! priority = 5
//! ```

use crate::input::{meant, one_line, read_file};
use crate::platform::checked_name;
use crate::toml_in::{Doc, Table};
use crate::{InputError, Platform};
use risetime_kernel::units::{CpuId, Span};

/// Size limit of a file.
const MAX_BYTES: usize = 1 << 20;
/// Tasks of a file.
const MAX_TASKS: usize = 10_000;
/// The period of a share.
const SHARE_PERIOD: Span = Span::from_ms(100);
/// The longest time in a file: about 4 s, the longest period of SCHED_DEADLINE (`sched_deadline_period_max_us`).
const MAX_US: u64 = 1 << 22;

/// A file of needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Name of the needs.
    pub name: String,
    /// The tasks and their needs.
    pub tasks: Vec<Need>,
}

/// Need of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Name of the task.
    pub name: String,
    /// Place in the file.
    pub at: String,
    /// The task's needs.
    pub what: What,
    /// Parts of the runtime that are of a kind of work; the rest is plain.
    pub kinds: Vec<(String, Span)>,
    /// Part of the runtime that passes by the clock, on any CPU at any frequency.
    pub clock: Span,
    /// CPUs that the task may run on; `None`: all.
    pub cpus: Option<Vec<CpuId>>,
}

/// The known needs of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The whole of a task: at most `runtime` in each `period`, each time before `deadline`.
    Job {
        /// Runtime, on a CPU of capacity 1024 at its highest frequency.
        runtime: Span,
        /// Shortest time between two jobs.
        period: Span,
        /// Deadline, from when a job comes.
        deadline: Span,
    },
    /// A part of a CPU: so much in each period, whenever.
    Share {
        /// Runtime, on a CPU of capacity 1024 at its highest frequency.
        runtime: Span,
        /// The period.
        period: Span,
    },
    /// The period alone: shortest time between two jobs.
    Period(Span),
    /// 1 to 99, the highest first.
    Priority(u8),
}

impl Needs {
    /// The file called `path`.
    ///
    /// Errors: what is wrong in it, with its place.
    pub fn load(path: &str) -> Result<Needs, InputError> {
        Needs::parse(&read_file(path, MAX_BYTES)?, path)
    }

    /// `text`, which errors call `file`.
    ///
    /// Errors: as [`Needs::load`]'s.
    pub fn parse(text: &str, file: &str) -> Result<Needs, InputError> {
        let doc = Doc::parse(text, file)?;
        let root = doc.root();
        root.only(&["schema", "name", "task"])?;
        root.int("schema", 1, 1)?;
        let name = checked_name(&root, "name", root.str("name")?)?;
        let tasks = root.opt_tables("task", "task")?.unwrap_or_default();
        if tasks.is_empty() {
            return Err(root.error("no `[[task]]`: a file has at least one"));
        }
        if tasks.len() > MAX_TASKS {
            return Err(root.error(format!("{} tasks, at most {MAX_TASKS}", tasks.len())));
        }
        let tasks: Vec<Need> = tasks.iter().map(need).collect::<Result<_, _>>()?;
        for (i, task) in tasks.iter().enumerate() {
            if let Some(first) = tasks[..i].iter().find(|t| t.name == task.name) {
                let what = format!("`{}` is called as the task at {}", task.name, first.at);
                return Err(InputError::new(&task.at, what));
            }
        }
        Ok(Needs { name, tasks })
    }
}

impl Needs {
    /// Whether `platform` knows the kinds of work that its tasks name.
    ///
    /// Errors: one that it does not, at the task that names it.
    pub fn known_on(&self, platform: &Platform) -> Result<(), InputError> {
        let known: Vec<&str> = platform.kinds().collect();
        for task in &self.tasks {
            let unknown = task.kinds.iter().find(|(kind, _)| !known.contains(&kind.as_str()));
            if let Some((kind, _)) = unknown {
                let what = format!("{} has no table of work \"{}\"", platform.name, one_line(kind));
                let all = match known.is_empty() {
                    true => "it knows plain work alone".to_string(),
                    false => format!("known: {}", known.join(", ")),
                };
                return Err(InputError::new(&task.at, what).hint(meant(kind, &known, &all)));
            }
        }
        Ok(())
    }
}

fn need(toml: &Table<'_>) -> Result<Need, InputError> {
    toml.only(&[
        "name",
        "period_us",
        "runtime_us",
        "deadline_us",
        "share_percent",
        "priority",
        "kind",
    ])?;
    let us = |key| Ok(toml.opt_int(key, 1, MAX_US)?.map(|us| Span(us * 1000)));
    let period: Option<Span> = us("period_us")?;
    let (runtime, deadline): (Option<Span>, Option<Span>) = (us("runtime_us")?, us("deadline_us")?);
    let share = toml.opt_int("share_percent", 1, 100)?;
    let priority = toml.opt_int("priority", 1, 99)?;
    let alone = |key: &'static str, with: &[&'static str]| match with
        .iter()
        .find(|other| toml.has(other))
    {
        Some(other) => Err(toml.error_of(other, format!("is of no use beside `{key}`"))),
        None => Ok(()),
    };
    let what = match (runtime, share, priority) {
        (Some(runtime), _, _) => {
            alone("runtime_us", &["share_percent", "priority"])?;
            let period =
                period.ok_or_else(|| toml.error_of("runtime_us", "in which `period_us`?"))?;
            let deadline = deadline.unwrap_or(period);
            if deadline < runtime {
                let what = format!("is {} µs, less than `runtime_us`", deadline.0 / 1000);
                return Err(toml.error_of(
                    if toml.has("deadline_us") { "deadline_us" } else { "period_us" },
                    what,
                ));
            }
            if deadline > period {
                return Err(toml.error_of("deadline_us", "is behind the end of `period_us`"));
            }
            What::Job { runtime, period, deadline }
        }
        (None, Some(share), _) => {
            alone("share_percent", &["deadline_us", "priority"])?;
            let period = period.unwrap_or(SHARE_PERIOD);
            What::Share { runtime: Span((period.0 * share).div_ceil(100)), period }
        }
        (None, None, Some(priority)) => {
            alone("priority", &["period_us", "deadline_us"])?;
            What::Priority(priority as u8)
        }
        (None, None, None) => {
            let Some(period) = period else {
                return Err(toml.error("it says nothing of what it needs").hint(
                    "one of period_us (with runtime_us, if that is known), share_percent, priority",
                ));
            };
            alone("period_us", &["deadline_us"])?;
            What::Period(period)
        }
    };
    let kinds = match (toml.opt_str("kind")?, what) {
        (None, _) => Vec::new(),
        (Some(_), What::Period(_) | What::Priority(_)) => {
            return Err(
                toml.error_of("kind", "is of no use without `runtime_us` or `share_percent`")
            );
        }
        (Some(kind), What::Job { runtime, .. } | What::Share { runtime, .. }) => {
            vec![(checked_name(toml, "kind", kind)?, runtime)]
        }
    };
    let name = checked_name(toml, "name", toml.str("name")?)?;
    Ok(Need { name, at: toml.place_of("name"), what, kinds, clock: Span(0), cpus: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"schema = 1
name = "robot"
[[task]]
name = "control"
period_us = 10000
runtime_us = 2000
deadline_us = 8000
[[task]]
name = "camera"
period_us = 33333
[[task]]
name = "video"
share_percent = 30
[[task]]
name = "logger"
priority = 5
"#;

    #[test]
    fn each_way_to_say_it_is_read() {
        let needs = Needs::parse(FILE, "r.toml").expect("it is one");
        let what: Vec<What> = needs.tasks.iter().map(|t| t.what).collect();
        let us = |us: u64| Span(us * 1000);
        assert_eq!(
            what,
            [
                What::Job { runtime: us(2000), period: us(10_000), deadline: us(8000) },
                What::Period(us(33_333)),
                What::Share { runtime: us(30_000), period: us(100_000) },
                What::Priority(5),
            ]
        );
        assert_eq!(needs.tasks[1].at, "r.toml:9:1");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (right, wrong, said) in [
            (
                "deadline_us = 8000",
                "deadline_us = 1000",
                "r.toml:7:15: task 1: `deadline_us` is 1000 µs, less than `runtime_us`",
            ),
            ("deadline_us = 8000", "deadline_us = 12000", "is behind the end of `period_us`"),
            ("deadline_us = 8000", "share_percent = 3", "is of no use beside `runtime_us`"),
            ("period_us = 10000\n", "", "`runtime_us` in which `period_us`?"),
            ("period_us = 33333", "deadline_us = 5", "it says nothing of what it needs"),
            ("period_us = 33333", "", "it says nothing of what it needs"),
            ("share_percent = 30", "share_percent = 130", "wanted a whole number from 1 to 100"),
            ("priority = 5", "priority = 5\nperiod_us = 9", "is of no use beside `priority`"),
            (
                "name = \"logger\"",
                "name = \"camera\"",
                "`camera` is called as the task at r.toml:9:1",
            ),
            ("priority = 5", "prio = 5", "unknown field `prio`"),
            ("schema = 1", "schema = 2", "wanted 1"),
        ] {
            let text = FILE.replacen(right, wrong, 1);
            assert_ne!(text, FILE, "{right}");
            let e = Needs::parse(&text, "r.toml").expect_err(wrong).to_string();
            assert!(e.starts_with("r.toml:") && e.contains(said), "{wrong}: {e}");
        }
        let e = Needs::parse("schema = 1\nname = \"x\"\n", "r.toml").expect_err("no task");
        assert!(e.to_string().contains("no `[[task]]`"), "{e}");
    }
}
