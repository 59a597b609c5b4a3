//! Task groups: cgroups of the `cpu` controller that a workload's tasks are put into.
//!
//! ```text
//! taskgroup   "/a/b" on a task or a phase (rt-app's key); "/" is the root group, where tasks begin
//! taskgroups  { "/a": { weight, quota_us, period_us, burst_us, uclamp_min, uclamp_max, idle, rt_runtime_us, rt_period_us } }
//! ```
//!
//! rt-app only names groups; what they may do stands in `taskgroups`, beside `tasks`, which is ours.
//! A group that a task names and `taskgroups` does not, and every group above a named one, exists
//! with the kernel's defaults.
//!
//! Source: rt-app, doc/tutorial.txt (taskgroup); Documentation/admin-guide/cgroup-v2.rst (cpu.weight,
//! cpu.max, cpu.max.burst, cpu.uclamp.min, cpu.uclamp.max, cpu.idle); cpu.rt.max: Y. Andriaccio, L. Abeni, "[RFC PATCH v6 00/25] Hierarchical Constant Bandwidth Server", June 2026.

use super::json::Reader;
use super::{Attr, TaskGroup, TaskSpec};
use crate::InputError;
use crate::input::one_line;
use jsonc_parser::ast::{Object, ObjectProp};
use risetime_kernel::units::{Span, Util};
use std::collections::BTreeMap;

/// The most groups that a workload may have, those between the root and a named one counted.
pub const MAX_GROUPS: usize = 256;
/// The deepest path: the kernel's walk costs one step per level.
const MAX_DEPTH: usize = 16;
/// Longest name of one level: a directory's.
const MAX_NAME: usize = 255;
/// `max_bw_quota_period_us`, `min_bw_quota_period_us`: what the kernel takes.
const PERIOD_US: std::ops::RangeInclusive<i64> = 1_000..=1_000_000;
/// `max_bw_runtime_us`: so much that sums over groups fit.
const MAX_QUOTA_US: i64 = 17_592_186_044;
/// `sched_dl_period_min`, `sched_dl_period_max`: what a deadline server's period may be.
const RT_PERIOD_US: std::ops::RangeInclusive<i64> = 100..=4_194_304;
/// `DL_SCALE`: a runtime is at least 1024 ns.
const MIN_RT_RUNTIME_US: i64 = 2;

/// All groups by path, while a file is read.
pub(super) type Groups = BTreeMap<String, TaskGroup>;

impl<'a> Reader<'a> {
    /// `taskgroups`: the groups' properties.
    ///
    /// Errors: what is no path, unknown properties, and values that the kernel would refuse.
    pub(super) fn taskgroups(&self, object: &Object<'a>) -> Result<Groups, InputError> {
        self.once(object, "`taskgroups`", |_| true)?;
        let mut groups = Groups::new();
        for prop in &object.properties {
            let path = self.path(prop, prop.name.as_str(), "`taskgroups`")?;
            let what = format!("task group `{}`", one_line(prop.name.as_str()));
            if path.is_empty() {
                let what = format!("{what}: the root group has no properties");
                return Err(self.error(&prop.name, what));
            }
            let group = self.taskgroup(prop, path.clone(), &what)?;
            if groups.insert(path, group).is_some() {
                return Err(self.error(&prop.name, format!("{what} is given twice")));
            }
        }
        Ok(groups)
    }

    fn taskgroup(
        &self,
        prop: &ObjectProp<'a>,
        path: String,
        what: &str,
    ) -> Result<TaskGroup, InputError> {
        let object = self.object(&prop.value, what)?;
        self.once(object, what, |_| true)?;
        let mut group = TaskGroup::new(path);
        let mut clamp_at = None;
        for p in &object.properties {
            match p.name.as_str() {
                "weight" => group.weight = self.int(p, what, 1..=10_000)? as u64,
                "quota_us" => {
                    let us = self.int(p, what, -1..=MAX_QUOTA_US)?;
                    if (0..1000).contains(&us) {
                        let what = format!(
                            "{what}: `quota_us` is {us}, wanted -1 (no limit) or at least 1000"
                        );
                        return Err(self.error(&p.value, what));
                    }
                    group.quota = (us >= 0).then(|| Span(us as u64 * 1000));
                }
                "period_us" => {
                    group.period = Span(self.int(p, what, PERIOD_US)? as u64 * 1000);
                }
                "burst_us" => {
                    group.burst = Span(self.int(p, what, 0..=MAX_QUOTA_US)? as u64 * 1000);
                }
                "uclamp_min" => {
                    group.uclamp_min = Util(self.int(p, what, 0..=1024)? as u64);
                    clamp_at = Some(p);
                }
                "uclamp_max" => {
                    group.uclamp_max = Util(self.int(p, what, 0..=1024)? as u64);
                    clamp_at = Some(p);
                }
                "idle" => group.idle = self.int(p, what, 0..=1)? == 1,
                "rt_runtime_us" => {
                    let us = self.int(p, what, -1..=*RT_PERIOD_US.end())?;
                    if (1..MIN_RT_RUNTIME_US).contains(&us) {
                        let what = format!(
                            "{what}: `rt_runtime_us` is {us}, wanted -1 (not limited here), 0 (no real-time tasks) or at least {MIN_RT_RUNTIME_US}"
                        );
                        return Err(self.error(&p.value, what));
                    }
                    group.rt_runtime = (us >= 0).then(|| Span(us as u64 * 1000));
                }
                "rt_period_us" => {
                    group.rt_period = Span(self.int(p, what, RT_PERIOD_US)? as u64 * 1000);
                }
                other => {
                    let known = [
                        "burst_us",
                        "idle",
                        "period_us",
                        "quota_us",
                        "rt_period_us",
                        "rt_runtime_us",
                        "uclamp_max",
                        "uclamp_min",
                        "weight",
                    ];
                    return Err(self.unknown(p, &format!("{what}: "), other, &known));
                }
            }
        }
        let find = |key: &str| object.properties.iter().find(|p| p.name.as_str() == key);
        let more = group.quota.is_none_or(|quota| group.burst > quota);
        if let Some(p) = find("burst_us").filter(|_| group.burst > Span(0) && more) {
            let found = group.burst.0 / 1000;
            let what = format!("{what}: `burst_us` is {found}, wanted at most `quota_us`");
            return Err(self.error(&p.value, what));
        }
        if let (Some(p), Some(runtime)) = (find("rt_runtime_us"), group.rt_runtime) {
            let (us, period) = (runtime.0 / 1000, group.rt_period.0 / 1000);
            if period == 0 && us > 0 {
                let what = format!("{what}: `rt_runtime_us` wants `rt_period_us` beside it");
                return Err(self.error(&p.name, what));
            }
            if us > period && us > 0 {
                let what = format!(
                    "{what}: `rt_runtime_us` is {us}, wanted at most `rt_period_us`, {period}"
                );
                return Err(self.error(&p.value, what));
            }
        }
        if let Some(p) = find("weight").filter(|_| group.idle) {
            let what = format!("{what}: `weight` of an idle group: the kernel refuses both");
            return Err(self.error(&p.value, what));
        }
        if let Some(p) = clamp_at.filter(|_| group.uclamp_min > group.uclamp_max) {
            let (min, max) = (group.uclamp_min, group.uclamp_max);
            let what = format!("{what}: uclamp_min {min} is above uclamp_max {max}");
            return Err(self.error(&p.value, what));
        }
        Ok(group)
    }

    /// A task's or phase's `taskgroup`: a path, "" for the root.
    pub(super) fn in_taskgroup(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
    ) -> Result<String, InputError> {
        let text = self.string(prop, what)?;
        self.path(prop, text, &format!("{what}: `taskgroup`"))
    }

    /// The path without a slash at its end; the root is "".
    fn path(&self, prop: &ObjectProp<'a>, text: &str, what: &str) -> Result<String, InputError> {
        let wrong = |why: &str| {
            let found = one_line(text);
            Err(self.error(&prop.value, format!("{what}: \"{found}\" is no group: {why}")))
        };
        let Some(rest) = text.strip_prefix('/') else {
            return wrong("wanted a path from the root such as \"/a/b\"");
        };
        if rest.is_empty() {
            return Ok(String::new());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let fits = |name: &str| {
            (1..=MAX_NAME).contains(&name.len())
                && !name.starts_with('.')
                && !name.contains(|c: char| c.is_control())
        };
        if rest.split('/').count() > MAX_DEPTH {
            return wrong(&format!("it is more than {MAX_DEPTH} levels deep"));
        }
        if !rest.split('/').all(fits) {
            return wrong(
                "each level wants a name, of at most 255 bytes, that does not begin with a dot",
            );
        }
        // A name that the controller has given to one of its files.
        if rest.split('/').any(|name| name.starts_with("cgroup.") || name.starts_with("cpu.")) {
            return wrong("\"cgroup.…\" and \"cpu.…\" are names of a group's own files");
        }
        Ok(format!("/{rest}"))
    }
}

/// The groups with properties, those that tasks name, and all above them; parents first.
///
/// Errors: how many they are, if they are too many.
pub(super) fn complete<'a>(
    mut groups: Groups,
    tasks: impl Iterator<Item = &'a TaskSpec>,
) -> Result<Vec<TaskGroup>, usize> {
    fn attrs(task: &TaskSpec) -> impl Iterator<Item = &Attr> {
        std::iter::once(&task.attr).chain(task.phases.iter().map(|phase| &phase.attr))
    }
    let used = tasks.flat_map(attrs).filter_map(|attr| attr.taskgroup.as_deref());
    let mut named: Vec<String> =
        used.chain(groups.keys().map(String::as_str)).map(Into::into).collect();
    while let Some(path) = named.pop() {
        if let Some((above, _)) = path.rsplit_once('/') {
            named.push(above.to_string());
            groups.entry(path.clone()).or_insert_with(|| TaskGroup::new(path));
        }
    }
    // A path sorts behind what it begins with: parents come first.
    if groups.len() > MAX_GROUPS { Err(groups.len()) } else { Ok(groups.into_values().collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn parse(taskgroups: &str, a: &str, b: &str) -> Result<Workload, InputError> {
        let text = format!(
            r#"{{ "taskgroups": {{ {taskgroups} }},
                "tasks": {{ "t": {{ "taskgroup": "{a}", "phases": {{
                    "p": {{ "run": 1 }}, "q": {{ "taskgroup": "{b}", "sleep": 1 }} }} }} }} }}"#
        );
        Workload::parse(&text, "w.json")
    }

    #[test]
    fn groups_above_named_ones_exist_and_parents_come_first() {
        let w = parse(r#""/b": { "weight": 300 }, "/a/x": { "idle": 1 }"#, "/a/x/y/", "/").unwrap();
        let paths: Vec<(&str, u64, bool, Option<&str>)> =
            w.groups.iter().map(|g| (g.path.as_str(), g.weight, g.idle, g.parent())).collect();
        assert_eq!(
            paths,
            [
                ("/a", 100, false, None),
                ("/a/x", 100, true, Some("/a")),
                ("/a/x/y", 100, false, Some("/a/x")),
                ("/b", 300, false, None)
            ]
        );
        assert_eq!(w.tasks[0].attr.taskgroup.as_deref(), Some("/a/x/y"));
        assert_eq!(w.tasks[0].phases[0].attr.taskgroup, None, "a phase without stays");
        assert_eq!(w.tasks[0].phases[1].attr.taskgroup.as_deref(), Some(""));
    }

    #[test]
    fn quota_is_time_per_period_and_minus_one_is_none() {
        let of = |text: &str| parse(&format!(r#""/a": {{ {text} }}"#), "/a", "/a").unwrap().groups;
        let limited = &of(r#""quota_us": 30000, "period_us": 50000, "burst_us": 30000"#)[0];
        assert_eq!(
            (limited.quota, limited.period, limited.burst),
            (Some(Span::from_ms(30)), Span::from_ms(50), Span::from_ms(30))
        );
        assert_eq!(of(r#""quota_us": -1"#)[0], TaskGroup::new("/a".into()));
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused() {
        for (groups, task, found) in [
            (r#""/a": { "weight": 0 }"#, "/a", "weight"),
            (r#""/a": { "wieght": 1 }"#, "/a", "weight"),
            (r#""/a": { "quota_us": 999 }"#, "/a", "quota_us"),
            (r#""/a": { "period_us": 999 }"#, "/a", "period_us"),
            (r#""/a": { "rt_runtime_us": 1, "rt_period_us": 1000 }"#, "/a", "at least 2"),
            (r#""/a": { "rt_runtime_us": 1000 }"#, "/a", "wants `rt_period_us`"),
            (
                r#""/a": { "rt_runtime_us": 1001, "rt_period_us": 1000 }"#,
                "/a",
                "1001, wanted at most",
            ),
            (r#""/a": { "rt_runtime_us": 9, "rt_period_us": 99 }"#, "/a", "rt_period_us"),
            (r#""/a": { "burst_us": 1000 }"#, "/a", "at most `quota_us`"),
            (r#""/a": { "quota_us": 1000, "burst_us": 1001 }"#, "/a", "at most `quota_us`"),
            (r#""/a": { "uclamp_min": 9, "uclamp_max": 8 }"#, "/a", "above"),
            (r#""/a": { "idle": 1, "weight": 5 }"#, "/a", "idle"),
            (r#""/": { "weight": 5 }"#, "/a", "root"),
            (r#""/a": { }, "/a/": { }"#, "/a", "twice"),
            (r#""a": { }"#, "/a", "path from the root"),
            ("", "a", "path from the root"),
            ("", "//a", "name"),
            ("", "/../a", "dot"),
            ("", "/cpu.max", "own files"),
            ("", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "levels"),
        ] {
            let error = parse(groups, task, "/").unwrap_err().to_string();
            assert!(error.contains(found) && error.starts_with("w.json:"), "{groups}: {error}");
        }
    }
}
