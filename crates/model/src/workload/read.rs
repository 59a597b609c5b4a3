//! Reader of rt-app JSON into [`Workload`], and all that can be wrong on the way.

use super::actions::{Parsed, Shared, TaskNames};
use super::events::{self, Key};
use super::group::{self, MAX_GROUPS};
use super::job;
use super::json::{MAX_US, Reader};
use super::objects::{Misuse, MisuseKind, Objects, forks, forks_as_deadline_task, misuse};
use super::policy::{Kind as PolicyKind, Said};
use super::rtapp::Which;
use super::{
    Attr, Event, HintSession, Hotplug, JobSpec, MAX_EVENTS, MAX_FORKS, MAX_TASKS, Phase, Repeat,
    RtApp, Source, Stage, StartAt, TaskSpec, Workload,
};
use super::{omitted, placeholder, yaml};
use crate::InputError;
use crate::Name;
use crate::input::{
    check_size, looks_like_path, nearest, one_line, printable, read_file, unknown_name,
};
use crate::library;
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use risetime_kernel::units::{CpuId, Span, Util};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Size limit of a workload file; the parser's tree takes up to 40 bytes per byte.
const MAX_BYTES: usize = 4 << 20;
/// Hint for a file that is a part of a workload.
const PARTS: &str = "where `global`, `resources` and tasks are files of their own, rt-app's merge.py \
     makes one file of them";
/// Keys of a file.
const OF_ROOT: [&str; 4] = ["global", "resources", "taskgroups", "tasks"];
/// Longest `duration`, in s.
const MAX_DURATION_S: i64 = MAX_US / 1_000_000;
/// CPU numbers a mask may hold; whether they exist is asked when the platform is known.
pub(super) const MAX_CPU: i64 = 1023;
/// The key under which the place of a kind of work is kept.
pub(super) fn kind_place(kind: &str) -> String {
    format!("kind {kind}")
}
/// Name in errors of the CPU in whose µs `run` counts.
pub(super) const CALIBRATION: &str = "global.calibration";

impl Workload {
    /// The workload called `name_or_path`: a built-in name, or a file.
    ///
    /// Errors: unknown name (the built-in ones are listed), or a fault in the file.
    pub fn load(name_or_path: &str) -> Result<Workload, InputError> {
        let (text, place, name) = Workload::located(name_or_path)?;
        Ok(Workload::parse_named(&text, &place, &name)?.given_as(name_or_path))
    }

    /// The text of the workload called `name_or_path`, what errors call it, and its name.
    pub(super) fn located(name_or_path: &str) -> Result<(String, String, String), InputError> {
        let known = library::workloads();
        if !looks_like_path(name_or_path, ".json") {
            if let Some(e) = known.iter().find(|e| e.name == name_or_path) {
                let place = format!("{}.json (built in)", e.name);
                return Ok((e.text.to_string(), place, e.name.to_string()));
            }
            if !Path::new(name_or_path).exists() {
                let names: Vec<&str> = known.iter().map(|e| e.name).collect();
                return Err(unknown_name("workload", name_or_path, &names));
            }
        }
        let text = read_file(name_or_path, MAX_BYTES)?;
        let text = match name_or_path.ends_with(".yaml") || name_or_path.ends_with(".yml") {
            true => yaml::to_json(&text, &printable(name_or_path))?,
            false => text,
        };
        Ok((text, name_or_path.to_string(), stem(name_or_path).to_string()))
    }

    /// The text of the workload called `name_or_path`.
    ///
    /// Errors: as [`Workload::load`]'s where it cannot be read.
    pub fn source(name_or_path: &str) -> Result<String, InputError> {
        let known = library::workloads();
        let builtin = known.iter().find(|e| e.name == name_or_path);
        match builtin.filter(|_| !looks_like_path(name_or_path, ".json")) {
            Some(entry) => Ok(entry.text.to_string()),
            None => read_file(name_or_path, MAX_BYTES),
        }
    }

    /// The workload that `text` describes; `place` is what errors call the text, and its file
    /// stem names the workload.
    ///
    /// Errors: the first fault found, with line and column.
    pub fn parse(text: &str, place: &str) -> Result<Workload, InputError> {
        Workload::parse_named(text, place, stem(place))
    }

    /// Returns the workload with the name or file by which a person gave it.
    pub(super) fn given_as(mut self, name_or_path: &str) -> Workload {
        self.source.given = printable(name_or_path);
        self
    }

    /// Parses a workload, which errors call `file` and reports `name`.
    pub(crate) fn parse_named(text: &str, file: &str, name: &str) -> Result<Workload, InputError> {
        let file = printable(file);
        check_size(text.len(), MAX_BYTES, &file)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        placeholder::check(text, &file)?;
        let filled = omitted::fill(text);
        let reader = Reader::new(&file, text, &filled);
        let tree = reader.tree()?;
        let mut parts = Parts::default();
        reader.root(&tree, &mut parts)?;
        let groups = group::complete(parts.groups, parts.tasks.iter().chain(&parts.forked))
            .map_err(|n| {
                reader.error(&tree, format!("{n} task groups, wanted at most {MAX_GROUPS}"))
            })?;
        let doubts = reader.doubts(&tree, parts.duration);
        Ok(Workload {
            name: printable(name),
            about: about_in(text),
            start_at: start_at(&parts.tasks),
            tasks: parts.tasks,
            forked: parts.forked,
            objects: parts.objects,
            groups,
            duration: parts.duration,
            calibration: parts.calibration,
            jobs: parts.jobs,
            sessions: parts.sessions,
            hotplug: parts.hotplug,
            partitions: parts.partitions,
            without_effect: parts.without_effect,
            doubts,
            places: parts.places,
            source: Source::of(text, &file),
        })
    }
}

/// The name of a workload in a file.
fn stem(path: &str) -> &str {
    Path::new(path).file_stem().and_then(|s| s.to_str()).unwrap_or(path)
}

/// The start settings take effect at t0 of the first task's phase `busy` if others come before it
/// (`rampup`), else at creation.
fn start_at(tasks: &[TaskSpec]) -> StartAt {
    let busy = tasks.first().and_then(|t| t.phases.iter().position(|p| p.name == "busy"));
    match busy {
        Some(phase) if phase > 0 => StartAt::Phase(phase),
        _ => StartAt::Creation,
    }
}

/// The first line of the comment at the head of `text`; empty if there is none.
pub(crate) fn about_in(text: &str) -> String {
    let text = text.trim_start();
    let comment = match text.strip_prefix("/*") {
        Some(rest) => rest.split("*/").next().unwrap_or(""),
        None => text.strip_prefix("//").and_then(|rest| rest.lines().next()).unwrap_or(""),
    };
    let mut lines = comment.lines().map(|l| l.trim().trim_start_matches('*').trim());
    let line = lines.find(|l| !l.is_empty()).unwrap_or("");
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Parts of a file while it is read.
#[derive(Default)]
struct Parts {
    tasks: Vec<TaskSpec>,
    forked: Vec<TaskSpec>,
    objects: Objects,
    jobs: Vec<JobSpec>,
    sessions: Vec<HintSession>,
    shared: Shared,
    duration: Option<Span>,
    calibration: Option<CpuId>,
    hotplug: Vec<Hotplug>,
    partitions: Vec<Vec<CpuId>>,
    without_effect: Vec<String>,
    places: BTreeMap<String, String>,
    groups: group::Groups,
    events: usize,
    /// `default_policy`.
    policy: PolicyKind,
    /// The rt-app that is meant.
    which: Which,
    /// Number of times that each task name was seen.
    names: BTreeMap<String, usize>,
}

/// Everything a task's or phase's own keys say.
#[derive(Default)]
struct Body {
    attr: Attr,
    class: Said,
    repeat: Option<Repeat>,
    events: Vec<Event>,
    /// Place where the clamps are written, for an error about the pair.
    clamp_at: Option<Range>,
}

impl<'a> Reader<'a> {
    fn root(&self, tree: &Value<'a>, parts: &mut Parts) -> Result<(), InputError> {
        let root = self.object(tree, "the file")?;
        self.once(root, "the file", |_| true)?;
        let mut tasks = None;
        parts.which = self.which_rt_app(root)?;
        for prop in &root.properties {
            match prop.name.as_str() {
                "tasks" => tasks = Some(self.object(&prop.value, "`tasks`")?),
                "global" => self.global(self.object(&prop.value, "`global`")?, parts)?,
                "resources" => self.resources(prop, &mut parts.without_effect),
                "taskgroups" => {
                    parts.groups = self.taskgroups(self.object(&prop.value, "`taskgroups`")?)?;
                }
                other => {
                    let text = passed_over("", other, &OF_ROOT);
                    parts.without_effect.push(text);
                }
            }
        }
        let Some(tasks) = tasks else {
            let unknown = |p: &&ObjectProp<'a>| !OF_ROOT.contains(&p.name.as_str());
            if let Some(prop) = root.properties.iter().find(unknown) {
                return Err(self.unknown(prop, "", prop.name.as_str(), &OF_ROOT));
            }
            let e = self.error(tree, "no `tasks`, wanted an object of tasks");
            return Err(if root.properties.is_empty() { e } else { e.hint(PARTS) });
        };
        let mut parsed = Vec::new();
        for prop in &tasks.properties {
            parsed.push(self.task(prop, parts)?);
        }
        let mut shared = std::mem::take(&mut parts.shared);
        let kinds_at = std::mem::take(&mut shared.kinds_at);
        (parts.forked, parts.objects) = self.share(&mut parsed, shared)?;
        let kinds = parts.objects.kinds.iter().map(|kind| kind_place(kind));
        parts.places.extend(kinds.zip(kinds_at));
        let declared = self.jobs(&mut parsed)?;
        let mut of = Vec::new();
        for (place, task) in parsed.into_iter().enumerate() {
            self.add(task, parts)?;
            of.resize(parts.tasks.len(), place);
        }
        parts.jobs = job::specs(&declared, &of);
        parts.sessions = job::sessions(&declared, &of, &parts.jobs);
        if parts.tasks.is_empty() {
            return Err(self.error(tasks, "`tasks` has no task that starts"));
        }
        self.count_forks(tasks, parts)
    }

    /// Counts the tasks that start and those that they fork. Errors: too many.
    fn count_forks(&self, tasks: &Object<'a>, parts: &Parts) -> Result<(), InputError> {
        let mut forked = vec![0_u64; parts.forked.len()];
        for (of, n) in parts.tasks.iter().flat_map(forks) {
            let count = &mut forked[of as usize];
            // More of one end the run in any case.
            *count = count.saturating_add(n).min(u64::from(MAX_FORKS));
        }
        let (started, forked) = (parts.tasks.len(), forked.iter().sum::<u64>());
        if started as u64 + forked <= MAX_TASKS as u64 {
            return Ok(());
        }
        let what =
            format!("{started} tasks fork {forked} more: more than {MAX_TASKS} tasks in all");
        Err(self.error(tasks, what))
    }

    /// Notes that `resources` has no effect: rt-app still takes it and makes what tasks name. The
    /// `target` of a resource counts no more: a signal wakes who waits for its own name.
    fn resources(&self, prop: &ObjectProp<'a>, without_effect: &mut Vec<String>) {
        without_effect.push("`resources`: rt-app creates resources as tasks name them".into());
        let Value::Object(all) = &prop.value else { return };
        for of in &all.properties {
            let Value::Object(own) = &of.value else { continue };
            if own.properties.iter().any(|p| p.name.as_str() == "target") {
                without_effect.push(format!(
                    "`resources.{0}.target`: since rt-app 1.0 a signal to \"{0}\" wakes who waits for \"{0}\"",
                    one_line(of.name.as_str())
                ));
            }
        }
    }

    fn global(&self, global: &Object<'a>, parts: &mut Parts) -> Result<(), InputError> {
        self.once(global, "`global`", |_| true)?;
        for prop in &global.properties {
            let key = prop.name.as_str();
            match key {
                "duration" => {
                    let s = self.whole(&prop.value, key, "`global`", -1..=MAX_DURATION_S, " s")?;
                    if s == 0 {
                        return Err(self.error(
                            &prop.value,
                            "`global`: `duration` is 0, wanted -1 (endless) or at least 1 s",
                        ));
                    }
                    parts.duration = (s > 0).then(|| Span::from_ms(s as u64 * 1000));
                }
                "default_policy" => parts.policy = self.policy(prop, "`global`")?,
                "calibration" => self.calibration(prop, parts)?,
                "hotplug" => parts.hotplug = self.hotplug(prop)?,
                // rt-app's version is read before all else.
                "rt_app" => {}
                "partitions" => parts.partitions = self.partitions(prop)?,
                "pi_enabled" => match &prop.value {
                    Value::BooleanLit(b) => parts.shared.pi = b.value,
                    other => return Err(self.wrong(prop, "`global`", other, "true or false")),
                },
                "io_device" | "mem_buffer_size" => self.io(prop, &mut parts.shared)?,
                _ => match events::GLOBAL_WITHOUT_EFFECT.iter().find(|(name, _)| *name == key) {
                    // What is switched off has none anywhere.
                    Some(_) if is_off(&prop.value) => {}
                    Some((name, why)) => {
                        parts.without_effect.push(format!("`global.{name}`: {why}"))
                    }
                    None => {
                        let mut known = vec![
                            "calibration",
                            "default_policy",
                            "duration",
                            "hotplug",
                            "io_device",
                            "mem_buffer_size",
                            "partitions",
                            "pi_enabled",
                            "rt_app",
                        ];
                        known.extend(events::GLOBAL_WITHOUT_EFFECT.iter().map(|(name, _)| *name));
                        parts.without_effect.push(passed_over("global.", key, &known));
                    }
                },
            }
        }
        Ok(())
    }

    fn calibration(&self, prop: &ObjectProp<'a>, parts: &mut Parts) -> Result<(), InputError> {
        match &prop.value {
            Value::NumberLit(n) => parts.without_effect.push(format!(
                "`global.calibration`: {}: a loop's length is not needed, `run` counts µs of full-speed work",
                one_line(n.value)
            )),
            Value::StringLit(s) => {
                let digits = s.value.strip_prefix("CPU").filter(|d| !d.is_empty());
                let cpu = digits
                    .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))
                    .and_then(|d| d.parse().ok())
                    .filter(|cpu: &u32| i64::from(*cpu) <= MAX_CPU);
                let Some(cpu) = cpu else {
                    let what = format!(
                        "`global`: `calibration` is \"{}\", wanted \"CPU0\" to \"CPU{MAX_CPU}\" or a number",
                        one_line(&s.value)
                    );
                    return Err(self.error(&prop.value, what));
                };
                parts.calibration = Some(CpuId(cpu));
                parts.places.insert(CALIBRATION.into(), self.place(&prop.value));
            }
            other => return Err(self.wrong(prop, "`global`", other, "\"CPUn\" or a number")),
        }
        Ok(())
    }

    fn task<'v>(
        &self,
        prop: &'v ObjectProp<'a>,
        parts: &mut Parts,
    ) -> Result<Parsed<'v, 'a>, InputError> {
        let name = self.name(prop, "task")?;
        let what = format!("task `{name}`");
        let object = self.object(&prop.value, &what)?;
        self.once(object, &what, |key| !matches!(events::classify(key), Key::Event(_)))?;
        let find = |key: &str| object.properties.iter().find(|p| p.name.as_str() == key);
        let instances = match find("instance") {
            Some(p) => self.int(p, &what, 0..=MAX_TASKS as i64)? as usize,
            None => 1,
        };
        let delay = match find("delay") {
            Some(p) => self.us(p, &what)?,
            None => Span(0),
        };
        let mut names = TaskNames::of(&name, instances);
        names.own_suspend = parts.which.own_suspend;
        let mut body = self.body(object, &what, true, &mut names, parts)?;
        if body.class.lacks_runtime(parts.policy)
            && let Some(runtime) = find("runtime")
        {
            self.say("dl-runtime", runtime, &what, &mut body.class)?;
            if find("phases").is_some() {
                // Events beside `phases` are none.
                body.events.retain(|event| !matches!(event, Event::Runtime { .. }));
            }
        }
        let spec = match find("phases") {
            Some(p) => self.phased(p, body, &what, object, &mut names, parts)?,
            None => {
                if body.repeat.is_some() && parts.which.rt_app == RtApp::V1_0 {
                    let text = format!("{what}: `loop`: rt-app 1.0 repeats it for ever");
                    parts.without_effect.push(text);
                    body.repeat = None;
                }
                self.plain(body, &name, &what, object, parts.policy)?
            }
        };
        parts.without_effect.extend(names.passed_over.iter().map(|said| {
            let said = one_line(said);
            format!("{what}: `suspend`: \"{said}\": rt-app 2026 waits under the task's own name")
        }));
        let mut spec = TaskSpec { delay, ..spec };
        spec.logs = parts.which.logs && spec.contends();
        if let Some(found) = misuse(&spec) {
            return Err(self.misuse(&spec, &what, found, prop, parts));
        }
        if let Some(phase) = forks_as_deadline_task(&spec) {
            let place = phase_of(&spec, phase);
            let what = format!("{what}{place} forks as a deadline task, which the kernel refuses");
            return Err(self.error(&prop.name, what));
        }
        let job = find("job").map(|p| self.job(p, &what)).transpose()?;
        Ok(Parsed { spec, name, instances, names, prop, job })
    }

    fn misuse(
        &self,
        spec: &TaskSpec,
        what: &str,
        found: Misuse,
        prop: &ObjectProp<'a>,
        parts: &mut Parts,
    ) -> InputError {
        let mutexes = std::mem::take(&mut parts.shared).mutex_names();
        let mutex = mutexes.get(found.mutex as usize).map_or("", |name| name.as_str());
        let mutex = one_line(mutex);
        let (does, hint) = match found.kind {
            MisuseKind::Unlocks => {
                (format!("unlocks mutex \"{mutex}\", which it does not hold then"), "comes before")
            }
            MisuseKind::Waits => (
                format!("waits with mutex \"{mutex}\", which it does not hold then"),
                "comes before",
            ),
            MisuseKind::LocksTwice => (
                format!(
                    "locks mutex \"{mutex}\", which it holds already: it would wait for itself for ever"
                ),
                "once, with `unlock` before it comes again (rt-app's mutexes are not recursive)",
            ),
        };
        let place = phase_of(spec, found.phase);
        self.error(&prop.name, format!("{what}{place} {does}"))
            .hint(format!("`\"lock\": \"{mutex}\"` {hint}"))
    }

    /// A task whose events stand in its own body: one phase, repeated as the task is.
    fn plain(
        &self,
        mut body: Body,
        name: &str,
        what: &str,
        at: &Object<'a>,
        default: PolicyKind,
    ) -> Result<TaskSpec, InputError> {
        if body.events.is_empty() {
            return Err(self.error(at, format!("{what} has no events; {}", supported())));
        }
        let repeat = body.repeat.unwrap_or(Repeat::Forever);
        self.takes_time(repeat, &body.events, what, at)?;
        self.check_clamps(&body, &[], what)?;
        self.settle((default, repeat, at.range), (&body.class, &mut body.attr, what), &mut [])?;
        let phase = Phase {
            name: name.into(),
            repeat: Repeat::Times(1),
            events: body.events,
            attr: Attr::default(),
        };
        Ok(TaskSpec {
            comm: String::new(),
            delay: Span(0),
            repeat,
            phases: vec![phase],
            attr: body.attr,
            stage: Stage::default(),
            logs: false,
        })
    }

    /// A task with `phases`.
    fn phased(
        &self,
        prop: &ObjectProp<'a>,
        mut body: Body,
        what: &str,
        at: &Object<'a>,
        names: &mut TaskNames,
        parts: &mut Parts,
    ) -> Result<TaskSpec, InputError> {
        if !body.events.is_empty() {
            let what =
                format!("{what} has both `phases` and events of its own, wanted one of them");
            return Err(self.error(at, what));
        }
        let object = self.object(&prop.value, &format!("{what}: `phases`"))?;
        let mut phases = Vec::new();
        let mut bodies = Vec::new();
        for p in &object.properties {
            let name = self.name(p, "phase")?;
            let what = format!("{what}: phase `{name}`");
            let object = self.object(&p.value, &what)?;
            self.once(object, &what, |key| !matches!(events::classify(key), Key::Event(_)))?;
            let mut body = self.body(object, &what, false, names, parts)?;
            if body.events.is_empty() {
                return Err(self.error(object, format!("{what} has no events; {}", supported())));
            }
            let repeat = body.repeat.unwrap_or(Repeat::Times(1));
            self.takes_time(repeat, &body.events, &what, object)?;
            let events = std::mem::take(&mut body.events);
            phases.push(Phase { name: Name::new(&name), repeat, events, attr: body.attr.clone() });
            bodies.push(body);
        }
        if phases.is_empty() {
            return Err(self.error(object, format!("{what}: `phases` is empty")));
        }
        let repeat = body.repeat.unwrap_or(Repeat::Forever);
        let all: Vec<Event> = phases.iter().flat_map(|p| &p.events).copied().collect();
        self.takes_time(repeat, &all, what, at)?;
        self.check_clamps(&body, &bodies, what)?;
        let mut classes: Vec<(Said, &mut Attr, String)> = bodies
            .into_iter()
            .zip(&mut phases)
            .map(|(b, p)| (b.class, &mut p.attr, format!("{what}: phase `{}`", p.name)))
            .collect();
        self.settle(
            (parts.policy, repeat, at.range),
            (&body.class, &mut body.attr, what),
            &mut classes,
        )?;
        let attr = body.attr;
        Ok(TaskSpec { repeat, phases, attr, ..TaskSpec::default() })
    }

    /// The attributes, loop and events of a task or phase.
    fn body(
        &self,
        object: &Object<'a>,
        what: &str,
        is_task: bool,
        names: &mut TaskNames,
        parts: &mut Parts,
    ) -> Result<Body, InputError> {
        let mut body = Body::default();
        names.kind = None;
        for prop in &object.properties {
            let key = prop.name.as_str();
            if let Some(why) = parts.which.rt_app.passes_over(prop, is_task) {
                parts.without_effect.push(format!("{what}: `{}`: {why}", one_line(key)));
                continue;
            }
            match events::classify(key) {
                Key::Property(name) => {
                    let in_phase = events::PROPERTIES.iter().any(|(n, ok)| *n == name && *ok);
                    if !is_task && !in_phase {
                        let what = format!("{what}: `{key}` belongs to a task, not to a phase");
                        return Err(self.error(&prop.name, what));
                    }
                    if name.contains("membind") {
                        self.membind(prop, what)?;
                        let text = format!("{what}: `{name}`: memory has no place here");
                        parts.without_effect.push(text);
                    }
                    if name != key && object.properties.iter().any(|p| p.name.as_str() == name) {
                        let text = format!("{what}: `{key}` beside `{name}`, its name of today");
                        return Err(self.error(&prop.name, text));
                    }
                    self.property(name, prop, what, &mut body)?;
                }
                Key::Event(kind) => {
                    self.event(kind, prop, what, names, &mut parts.shared, &mut body.events)?
                }
                Key::Unsupported(is, instead) => {
                    let text = format!("{what}: `{}` {is}", one_line(key));
                    return Err(self.error(&prop.name, text).hint(instead));
                }
                Key::Unknown => {
                    let mut known: Vec<&str> = events::PROPERTIES
                        .iter()
                        .filter(|(_, in_phase)| is_task || *in_phase)
                        .map(|(name, _)| *name)
                        .collect();
                    known.extend(events::EVENTS.split(", "));
                    return Err(self.unknown(prop, &format!("{what}: "), key, &known));
                }
            }
        }
        Ok(body)
    }

    fn property(
        &self,
        name: &str,
        prop: &ObjectProp<'a>,
        what: &str,
        body: &mut Body,
    ) -> Result<(), InputError> {
        match name {
            "loop" => body.repeat = Some(self.repeat(prop, what)?),
            "cpus" => body.attr.cpus = Some(self.cpus(prop, what)?),
            "policy" | "priority" | "dl-runtime" | "dl-period" | "dl-deadline" | "dl-reclaim"
            | "share" => self.say(name, prop, what, &mut body.class)?,
            "util_min" | "util_max" => {
                let slot = match name {
                    "util_min" => &mut body.attr.uclamp_min,
                    _ => &mut body.attr.uclamp_max,
                };
                // -1 leaves the clamp as it is.
                let Ok(n) = u64::try_from(self.int(prop, what, -1..=1024)?) else { return Ok(()) };
                *slot = Some(Util(n));
                body.clamp_at = Some(prop.value.range());
            }
            "taskgroup" => body.attr.taskgroup = Some(self.in_taskgroup(prop, what)?),
            "latency_nice" => {
                body.attr.latency_nice = Some(self.int(prop, what, -20..=19)? as i8);
            }
            "sched_qos" => body.attr.qos = self.sched_qos(prop, what)?,
            // `instance`, `delay`, `job` and `phases` are read where the task is.
            _ => {}
        }
        Ok(())
    }

    /// Expands `spec` into its instances.
    fn add(&self, task: Parsed<'_, 'a>, parts: &mut Parts) -> Result<(), InputError> {
        let Parsed { spec, name, instances, prop, .. } = task;
        if instances == 0 {
            parts.places.insert(name.clone(), self.place(&prop.name));
            if parts.forked.iter().all(|t| t.comm != name) {
                let text =
                    format!("task `{name}`: `instance` is 0 and nobody forks it: it never starts");
                parts.without_effect.push(text);
            }
            return Ok(());
        }
        if parts.tasks.len() + instances > MAX_TASKS {
            let what = format!("task `{name}`: more than {MAX_TASKS} tasks in all");
            return Err(self.error(&prop.name, what));
        }
        let events: usize = spec.phases.iter().map(|p| p.events.len()).sum();
        parts.events += events * instances;
        if parts.events > MAX_EVENTS {
            let what =
                format!("task `{name}`: more than {MAX_EVENTS} events in all, instances counted");
            return Err(self.error(&prop.name, what));
        }
        let place = self.place(&prop.name);
        for i in 0..instances {
            let comm = if instances > 1 { format!("{name}-{i}") } else { name.clone() };
            let comm = distinct(comm, &mut parts.names);
            parts.places.insert(comm.clone(), place.clone());
            parts.tasks.push(TaskSpec { comm, ..spec.clone() });
        }
        Ok(())
    }

    /// An endless loop that takes no time would keep the clock from moving.
    fn takes_time(
        &self,
        repeat: Repeat,
        events: &[Event],
        what: &str,
        at: &Object<'a>,
    ) -> Result<(), InputError> {
        let fine = match repeat {
            Repeat::Times(1) => true,
            Repeat::Times(_) => events.iter().any(Event::acts),
            Repeat::Forever => events.iter().any(Event::takes_time),
        };
        if fine {
            return Ok(());
        }
        let at =
            at.properties.iter().find(|p| p.name.as_str() == "loop").map_or(at.range, |p| p.range);
        Err(self.error(
            &at,
            match events.iter().any(Event::acts) {
                false => format!("{what} is a loop that takes no time: every event in it is 0 long"),
                true => format!(
                    "{what} is an endless loop that takes no time: nothing in it runs, sleeps or waits"
                ),
            },
        ))
    }

    /// `util_min` must never be above `util_max`, in any phase, given that a phase leaves
    /// alone what it does not name. The second round is the loop coming round again.
    fn check_clamps(&self, task: &Body, phases: &[Body], what: &str) -> Result<(), InputError> {
        let (mut min, mut max) = (Util(0), Util(1024));
        for body in std::iter::once(task).chain(phases).chain(phases) {
            min = body.attr.uclamp_min.unwrap_or(min);
            max = body.attr.uclamp_max.unwrap_or(max);
            if let Some(at) = body.clamp_at.filter(|_| min > max) {
                let what = format!("{what}: util_min {min} would be above util_max {max} here");
                return Err(self.error(&at, what));
            }
        }
        Ok(())
    }

    fn repeat(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Repeat, InputError> {
        match self.int(prop, what, -1..=i64::from(u32::MAX))? {
            -1 => Ok(Repeat::Forever),
            0 => Err(self.error(
                &prop.value,
                format!("{what}: `loop` is 0, wanted -1 (endless) or at least 1"),
            )),
            n => Ok(Repeat::Times(n as u32)),
        }
    }

    fn cpus(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Vec<CpuId>, InputError> {
        let Value::Array(list) = &prop.value else {
            return Err(self.wrong(
                prop,
                what,
                &prop.value,
                "a list of CPU numbers such as [0, 1]",
            ));
        };
        let mut cpus = BTreeSet::new();
        for value in &list.elements {
            cpus.insert(CpuId(self.whole(value, "cpus", what, 0..=MAX_CPU, "")? as u32));
        }
        if cpus.is_empty() {
            return Err(
                self.error(list, format!("{what}: `cpus` is empty, wanted at least one CPU"))
            );
        }
        Ok(cpus.into_iter().collect())
    }
}

/// The words by which an error names a phase; empty if it is the task's only one.
fn phase_of(spec: &TaskSpec, phase: usize) -> String {
    match spec.phases.len() {
        1 => String::new(),
        _ => format!(": phase `{}`", spec.phases[phase].name),
    }
}

/// Says of a key that rt-app does not know it, and which one may be meant.
fn passed_over(of: &str, key: &str, known: &[&str]) -> String {
    let meant = nearest(key, known).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
    format!("`{of}{}`: unknown, and rt-app passes over it{meant}", one_line(key))
}

/// Whether a value is rt-app's "no": `false`, and for `ftrace` "none".
fn is_off(value: &Value<'_>) -> bool {
    match value {
        Value::BooleanLit(b) => !b.value,
        Value::StringLit(s) => s.value == "none" || s.value == "disable",
        _ => false,
    }
}

fn supported() -> String {
    format!("events here: {}", events::EVENTS)
}

/// `name`, or with `#2`, `#3`, … if it is taken.
fn distinct(name: String, taken: &mut BTreeMap<String, usize>) -> String {
    let mut candidate = name.clone();
    while let Some(n) = taken.get(&candidate).copied() {
        // Count on from the last number given to this name, not from 2 again.
        let n = n.max(taken[&name]) + 1;
        taken.insert(name.clone(), n);
        candidate = format!("{name}#{n}");
    }
    taken.insert(candidate.clone(), 1);
    candidate
}
