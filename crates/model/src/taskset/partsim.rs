//! PARTSim's task files, in YAML.
//!
//! ```yaml
//! taskset:
//!   - name: task_0
//!     iat: 1000              # shortest time between two jobs, in ticks
//!     deadline: 1000         # unless said: iat
//!     cbs_runtime: 250       # a hard CBS, where cbs_period is more than 0
//!     cbs_period: 1000
//!     startcpu: 0
//!     code:
//!       - lock(before_task_0)
//!       - fixed(200,bzip2)   # ticks on the fastest CPU at its highest frequency, and the kind of work
//!       - unlock(before_task_1)
//! resources:
//!   - name: before_task_0
//!     initial_state: locked
//! ```
//!
//! A resource that every task which locks it unlocks again is a mutex; else it is a semaphore, with one at first where it is
//! `unlocked`. In PARTSim a resource never has more than one unit; here a semaphore counts, which differs only where a task
//! gives twice before it is taken.
//!
//! Source: PARTSim (github.com/gabrieleara/PARTSim, commit 37a9a4c of 2023), `rtsim/main.cpp`, `simconf/tasksets/`.

use super::{Resource, ResourceKind, RtTask, Server, Step, TaskSet};
use crate::InputError;
use crate::input::{check_size, meant, one_line, printable, read_file};
use crate::platform::checked_word;
use crate::yaml_in::{Map, Yaml};
use risetime_kernel::units::{CpuId, Span};
use std::path::Path;

/// Size limit of a file.
const MAX_BYTES: usize = 4 << 20;
/// Tasks of a file, and resources.
const MAX_TASKS: usize = 10_000;
/// Steps of a file.
const MAX_STEPS: usize = 1_000_000;
/// The longest time, in ticks.
const MAX_TICKS: u64 = 1 << 32;
/// The longest time in all: an hour.
const MAX_SPAN: u64 = 3_600_000_000_000;

pub(super) fn load(path: &str, tick: Span) -> Result<TaskSet, InputError> {
    parse(&read_file(path, MAX_BYTES)?, path, tick)
}

pub(super) fn parse(text: &str, file: &str, tick: Span) -> Result<TaskSet, InputError> {
    let file = printable(file);
    check_size(text.len(), MAX_BYTES, &file)?;
    let (yaml, root) = Yaml::parse(text, &file)?;
    let root = yaml.map(&root, "the file")?;
    if root.has("cpu_islands") {
        let e = root.error_of("cpu_islands", "is of a system file, wanted a task file");
        return Err(e.hint("`risetime deploy convert` makes a platform of a system file"));
    }
    root.only(&["taskset", "resources"])?;
    let (mut resources, mut notes) = (Vec::new(), Vec::new());
    for r in root.maps("resources", "resource")? {
        r.only(&["name", "initial_state"])?;
        let name = r.str("name")?;
        checked_word(name).map_err(|what| r.error_of("name", what))?;
        if resources.iter().any(|known: &Resource| known.name == name) {
            return Err(r.error_of("name", format!("is \"{name}\" a second time")));
        }
        let at_first = match r.opt_str("initial_state")?.unwrap_or("unlocked") {
            "locked" => 0,
            "unlocked" => 1,
            other => {
                let what = format!("is \"{}\", wanted locked or unlocked", one_line(other));
                return Err(r.error_of("initial_state", what));
            }
        };
        let kind = ResourceKind::Semaphore(at_first);
        resources.push(Resource { name: name.to_string(), kind });
    }
    let specs = root.maps("taskset", "task")?;
    if specs.is_empty() {
        return Err(root.error("no tasks in `taskset`, wanted at least one"));
    }
    if specs.len().max(resources.len()) > MAX_TASKS {
        return Err(root.error(format!("more than {MAX_TASKS} tasks or resources")));
    }
    let mut tasks: Vec<RtTask> = Vec::new();
    let mut steps = 0;
    for spec in &specs {
        let task = task(spec, tick, &resources, &mut notes)?;
        if let Some(first) = tasks.iter().find(|t| t.name == task.name) {
            let what = format!("is \"{}\", as that of the task at {}", task.name, first.at);
            return Err(spec.error_of("name", what));
        }
        steps += task.code.len();
        if steps > MAX_STEPS {
            return Err(spec.error(format!("more than {MAX_STEPS} steps in all")));
        }
        tasks.push(task);
    }
    settle(&mut tasks, &mut resources);
    let stem = Path::new(&file).file_stem().and_then(|s| s.to_str()).unwrap_or(&file);
    notes.sort();
    notes.dedup();
    Ok(TaskSet { name: stem.to_string(), tasks, resources, notes })
}

fn task(
    t: &Map<'_>,
    tick: Span,
    resources: &[Resource],
    notes: &mut Vec<String>,
) -> Result<RtTask, InputError> {
    t.only(&[
        "name",
        "iat",
        "deadline",
        "rdl",
        "ph",
        "qs",
        "startcpu",
        "cbs_runtime",
        "cbs_period",
        "cbs_deadline",
        "code",
    ])?;
    let span = |key: &str, min: u64| -> Result<Option<Span>, InputError> {
        let Some(n) = t.opt_int(key, min, MAX_TICKS)? else { return Ok(None) };
        match n.checked_mul(tick.0).filter(|ns| *ns <= MAX_SPAN) {
            Some(ns) => Ok(Some(Span(ns))),
            None => {
                let what = format!("is {n} ticks of {} µs, wanted at most an hour", tick.0 / 1000);
                Err(t.error_of(key, what).hint("`--tick-us` says how long a tick is"))
            }
        }
    };
    let name = t.str("name")?;
    checked_word(name).map_err(|what| t.error_of("name", what))?;
    let period = span("iat", 1)?.ok_or_else(|| t.error("`iat` is missing: how often it comes"))?;
    let deadline = span("deadline", 1)?.unwrap_or(period);
    if t.has("rdl") {
        notes.push("`rdl` has no effect, as in PARTSim: it reads `deadline`".into());
    }
    if t.has("qs") {
        notes.push("`qs` has no effect: as many jobs wait as have come".into());
    }
    let server = match span("cbs_period", 0)?.filter(|p| p.0 > 0) {
        None => None,
        Some(period) => {
            let runtime = span("cbs_runtime", 1)?
                .ok_or_else(|| t.error_of("cbs_period", "needs a `cbs_runtime`"))?;
            let deadline = span("cbs_deadline", 0)?.filter(|d| d.0 > 0).unwrap_or(period);
            if runtime > deadline || deadline > period {
                let what = "is more than `cbs_deadline`, or that more than `cbs_period`";
                return Err(t.error_of("cbs_runtime", what));
            }
            Some(Server { runtime, deadline, period })
        }
    };
    let texts = t.texts("code")?;
    let mut code = Vec::new();
    for (text, at) in texts {
        code.extend(step(text, &at, tick, resources)?);
    }
    if code.is_empty() {
        return Err(t.error("no `code`, wanted at least one instruction such as fixed(200,bzip2)"));
    }
    Ok(RtTask {
        name: name.to_string(),
        at: t.place_of("name"),
        period,
        deadline,
        offset: span("ph", 0)?.unwrap_or_default(),
        code,
        server,
        cpus: t.opt_int("startcpu", 0, 1023)?.map(|cpu| vec![CpuId(cpu as u32)]),
    })
}

/// Parses an instruction into the step that it stands for; `None`: an empty one.
fn step(
    text: &str,
    at: &str,
    tick: Span,
    resources: &[Resource],
) -> Result<Option<Step>, InputError> {
    let shown = one_line(text);
    let whole = text.trim().trim_end_matches(';').trim_end();
    if whole.is_empty() {
        return Ok(None);
    }
    let error = |what: String| InputError::new(at, what);
    let parts = whole.strip_suffix(')').and_then(|t| t.split_once('('));
    let Some((name, args)) = parts else {
        return Err(error(format!("`{shown}` is no instruction such as fixed(200,bzip2)")));
    };
    let args: Vec<&str> = args.split(',').map(str::trim).collect();
    let known = ["fixed", "lock", "unlock", "wait", "signal"];
    match (name.trim(), args.as_slice()) {
        ("fixed", [ticks]) => Ok(Some(Step::Run(
            ticks_of(ticks, tick).map_err(|e| error(format!("`{shown}`: {e}")))?,
            None,
        ))),
        ("fixed", [ticks, kind]) => {
            checked_word(kind)
                .map_err(|what| error(format!("`{shown}`: the kind of work {what}")))?;
            Ok(Some(Step::Run(
                ticks_of(ticks, tick).map_err(|e| error(format!("`{shown}`: {e}")))?,
                Some(kind.to_string()),
            )))
        }
        (does @ ("lock" | "wait" | "unlock" | "signal"), [name]) => {
            let Some(i) = resources.iter().position(|r| r.name == *name) else {
                let names: Vec<&str> = resources.iter().map(|r| r.name.as_str()).collect();
                let all = format!("`resources` has {} of them", names.len());
                let what = format!("`{shown}`: there is no resource \"{}\"", one_line(name));
                return Err(error(what).hint(meant(name, &names, &all)));
            };
            // Which of them are mutexes is settled once all tasks are known.
            Ok(Some(if matches!(does, "lock" | "wait") { Step::Take(i) } else { Step::Give(i) }))
        }
        ("delay", _) => Err(error(format!("`{shown}`: work drawn anew for each job"))
            .hint("fixed(…) with the longest: what is admitted holds for all that is shorter")),
        ("activate", _) => Err(error(format!("`{shown}`: a task that another one releases")).hint(
            "give both the same `iat`, and a resource that the one unlocks and the other locks",
        )),
        (name, _) if known.contains(&name) => {
            Err(error(format!("`{shown}`: {} arguments are not what `{name}` takes", args.len())))
        }
        (name, _) => {
            let all = format!("known: {}", known.join(", "));
            Err(error(format!("`{shown}`: there is no instruction `{}`", one_line(name)))
                .hint(meant(name, &known, &all)))
        }
    }
}

fn ticks_of(text: &str, tick: Span) -> Result<Span, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let n = text.parse::<u64>().ok().filter(|n| digits && (1..=MAX_TICKS).contains(n));
    n.and_then(|n| n.checked_mul(tick.0)).filter(|ns| *ns <= MAX_SPAN).map(Span).ok_or_else(|| {
        format!("\"{}\" is no whole number of ticks from 1 to an hour's", one_line(text))
    })
}

/// Turns those resources into mutexes that are used as such: one unit at first, given back by each
/// task as often as taken, never before.
fn settle(tasks: &mut [RtTask], resources: &mut [Resource]) {
    for (i, resource) in resources.iter_mut().enumerate() {
        let well_used = |t: &RtTask| {
            let mut held = false;
            for step in &t.code {
                match step {
                    Step::Take(r) if *r == i && !held => held = true,
                    Step::Give(r) if *r == i && held => held = false,
                    Step::Take(r) | Step::Give(r) if *r == i => return false,
                    _ => {}
                }
            }
            !held
        };
        if resource.kind != ResourceKind::Semaphore(1) || !tasks.iter().all(well_used) {
            continue;
        }
        resource.kind = ResourceKind::Mutex;
        for step in tasks.iter_mut().flat_map(|t| &mut t.code) {
            match step {
                Step::Take(r) if *r == i => *step = Step::Lock(i),
                Step::Give(r) if *r == i => *step = Step::Unlock(i),
                _ => {}
            }
        }
    }
}
