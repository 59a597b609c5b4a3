//! Lists of what there is to choose from: settings, platforms, workloads, policies, and what was
//! found on a machine.

use super::Style;
use crate::page::{Block, Doc, Ink, Line, Page, Table, pad, width, wrap};
use crate::words;
use risetime_kernel::sched_qos::SchedQosType;
use risetime_kernel::units::{Span, Util};
use risetime_model::platform::{Domain, IdleState, Together, cpu_ranges};
use risetime_model::settings::Default;
use risetime_model::workload::{
    Attr, Event, Phase, Policy as SchedPolicy, Repeat, TaskGroup, TaskSpec,
};
use risetime_model::{Catalogue, Param, Platform, Policy, Settings, Value, Workload};

/// The page of a list that is as long as a run: its title, and its lines as they are.
pub fn listed(title: &str, lines: Vec<String>, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.heading(title, "");
    page.put(Block::Listing(lines));
    page.finish()
}

/// Experiments that were drawn: name, platform, length in ms, tasks, settings.
pub fn drawn(rows: &[(String, String, u64, usize, String)], style: &Style) -> Doc {
    let mut page = Page::new(style);
    let mut table = Table::new(["", "platform", "ms", "tasks"]);
    for (name, platform, ms, tasks, _) in rows {
        table.row([name.clone(), platform.clone(), ms.to_string(), tasks.to_string()]);
    }
    page.table(0, table);
    let set = rows.iter().filter(|row| !row.4.is_empty());
    page.blank();
    set.for_each(|row| page.hanging(&format!("{}  ", row.0), Ink::Plain, &row.4));
    page.finish()
}

/// Tasks of a workload, and events of a phase, that are listed.
const LIST: usize = 24;

/// Columns of a finding's mark and the gap behind it.
const INDENT: usize = 9;

/// Importance of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The finding costs response time now.
    Costly,
    /// The finding shapes response time, or decides what can be known here.
    Notable,
    /// The source could not be read, so it may hide something.
    Unreadable,
    /// Looked at and in order.
    Fine,
}

/// One thing that was found on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Importance.
    pub severity: Severity,
    /// The finding in a few words.
    pub title: String,
    /// Sources that were read, one line each: `file: value`.
    pub evidence: Vec<String>,
    /// Consequence for response time.
    pub meaning: String,
    /// Advice, if there is something to do about it.
    pub hint: Option<String>,
}

impl Finding {
    pub(super) fn mark(&self) -> (Ink, &'static str) {
        match self.severity {
            Severity::Costly => (Ink::Bad, "costly "),
            Severity::Notable => (Ink::Warn, "notable"),
            Severity::Unreadable => (Ink::Dim, "hidden "),
            Severity::Fine => (Ink::Good, "fine   "),
        }
    }
}

/// The page of findings on this machine, in the given order.
pub fn findings(findings: &[Finding], style: &Style) -> Doc {
    let mut page = Page::new(style);
    if findings.is_empty() {
        page.line(Line::new().plain("Nothing found."));
    }
    for f in findings {
        page.blank();
        let (ink, mark) = f.mark();
        let head = Line::new().ink(ink, mark).plain("  ");
        for (i, title) in wrap(&f.title, page.width() - INDENT).into_iter().enumerate() {
            let before = if i == 0 { head.clone() } else { Line::new().plain(" ".repeat(INDENT)) };
            page.line(before.ink(Ink::Strong, title));
        }
        page.paragraph(INDENT, Ink::Plain, &f.meaning);
        for evidence in &f.evidence {
            page.paragraph(INDENT, Ink::Dim, evidence);
        }
        if let Some(hint) = &f.hint {
            page.hanging(&format!("{}→ ", " ".repeat(INDENT)), Ink::Plain, hint);
        }
    }
    page.finish()
}

/// Names with a line about each, for `list`.
pub fn names(title: &str, rows: &[(String, String)], style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.heading(title, "");
    let wide = rows.iter().map(|r| width(&r.0)).max().unwrap_or(0).min(page.width() / 3);
    for (name, about) in rows {
        page.hanging(&format!("  {}  ", pad(name, wide, false)), Ink::Dim, about);
    }
    page.finish()
}

/// The page of every setting of a backend: name, unit, default, range, what it does, where a real
/// system has it.
pub fn param_table(catalogue: &Catalogue, style: &Style) -> Doc {
    let mut page = Page::new(style);
    for group in catalogue.groups.iter().filter(|g| !g.params.is_empty()) {
        let title = match group.owner {
            Some((kind, name)) => format!("Settings of the {kind} {name}"),
            None => "Settings".into(),
        };
        page.rule(&title);
        for p in group.params {
            param(&mut page, p);
        }
    }
    page.finish()
}

fn param(page: &mut Page<'_>, p: &Param) {
    let unit = p.counted_in();
    let default = match p.default {
        Default::Int(n) => format!("{n}{unit}"),
        Default::Name(s) => s.into(),
        Default::Derived(how, _) => how.into(),
        Default::Unset => "not set".into(),
    };
    let (numbers, names) = p.range.parts();
    let numbers = numbers.map(|(low, high)| format!("{low} to {high}{unit}"));
    let names = names.iter().map(|name| (*name).to_string());
    let range = names.chain(numbers).collect::<Vec<_>>().join(" | ");
    page.line(Line::new().ink(Ink::Strong, p.name).ink(Ink::Dim, format!("  {range}")));
    page.paragraph(4, Ink::Plain, p.doc);
    page.hanging("    default: ", Ink::Plain, &default);
    page.hanging("    home:    ", Ink::Dim, &p.home.to_string());
}

/// The page of a platform.
pub fn platform(p: &Platform, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(p.name.as_str(), "");
    page.paragraph(0, Ink::Plain, &p.about);
    let text = format!("{} CPUs, {} frequency domains, HZ={}", p.nr_cpus(), p.domains.len(), p.hz);
    page.paragraph(0, Ink::Plain, &text);
    topology(&mut page, p);
    for run in p.alike() {
        domain(&mut page, &p.domains[run]);
    }
    if !p.sources.is_empty() {
        page.rule("Sources");
        for (what, source) in &p.sources {
            page.hanging(&format!("{what}: "), Ink::Dim, source);
        }
    }
    page.finish()
}

/// Writes which CPUs share cores, closer caches and nodes; nothing on a machine without.
fn topology(page: &mut Page<'_>, p: &Platform) {
    let t = &p.topology;
    let mut said = Vec::new();
    if let Some(core) = t.cores.first() {
        let cpus: usize = t.cores.iter().map(Vec::len).sum();
        let beside = p.nr_cpus() - cpus;
        let alone = if beside > 0 { format!(", {beside} cores of one") } else { String::new() };
        said.push(format!("{} cores of {} threads{alone}", t.cores.len(), core.len()));
    }
    if let Some(l2) = t.l2.first() {
        said.push(format!("{} groups of {} that share an L2", t.l2.len(), l2.len()));
    }
    if t.smt() || !t.l2.is_empty() || !t.nodes.is_empty() {
        let caches = p.caches().iter().filter(|c| !c.is_empty()).count();
        said.push(format!("{caches} last-level cache{}", if caches == 1 { "" } else { "s" }));
    }
    if t.nodes.len() > 1 {
        let far = t.distance.iter().flatten().max().copied().unwrap_or(0);
        said.push(format!("{} nodes, distance up to {far}", t.nodes.len()));
    }
    if !said.is_empty() {
        page.paragraph(0, Ink::Plain, &said.join("; "));
    }
}

/// A run of domains that differ in nothing but CPUs and cache.
fn domain(page: &mut Page<'_>, run: &[Domain]) {
    let Some(d) = run.first() else { return };
    let mut cpus: Vec<_> = run.iter().flat_map(|d| d.cpus.iter().copied()).collect();
    cpus.sort();
    page.rule(&format!("CPU{}", cpu_ranges(&cpus)));
    let switch = if d.fast_switch { "fast switch" } else { "slow switch through a kthread" };
    let cluster = match run {
        [d] => format!("cluster {}", d.cluster),
        _ if d.cpus.len() == 1 => format!("{} frequency domains of one CPU each", run.len()),
        _ => format!("{} frequency domains of {} CPUs each", run.len(), d.cpus.len()),
    };
    let mut text = format!("capacity {}, {cluster}, {switch}", d.capacity.0);
    if let Some(us) = d.transition_delay_us {
        text += &format!(", the driver asks for {us} µs between changes");
    }
    page.paragraph(0, Ink::Plain, &text);
    page.blank();
    let mut table = Table::new(["MHz", "capacity", "mW", "µW/capacity", "latency µs"]);
    let top = d.opps.last().map_or(1, |o| o.freq.0).max(1) as f64;
    for o in &d.opps {
        let capacity = d.capacity.0 as f64 * o.freq.0 as f64 / top;
        let power = o.power.0 as f64;
        let known = |x: f64, digits: usize| match o.power.0 {
            0 => "unknown".to_string(),
            _ => format!("{x:.digits$}"),
        };
        table.row([
            words::mhz(o.freq),
            format!("{capacity:.0}"),
            known(power / 1000.0, 1),
            known(power / capacity.max(1e-9), 0),
            words::one(o.latency.0 as f64 / 1000.0),
        ]);
    }
    page.table(0, table);
    if d.idle.is_empty() {
        return;
    }
    page.blank();
    page.table(0, idle_states(&d.idle));
}

/// The idle states of a domain; what few platforms say of them has its columns where this one does.
fn idle_states(states: &[IdleState]) -> Table {
    let us = |span: Span| words::one(span.0 as f64 / 1000.0);
    let enters = states.iter().any(|s| s.longest_wakeup() != s.exit_latency);
    let together = states.iter().any(|s| s.together.is_some());
    let mut head = vec!["idle state"];
    head.extend(enters.then_some("entry µs"));
    head.push("exit µs");
    head.extend(enters.then_some("wakeup µs"));
    head.extend(["residency µs", "mW"]);
    head.extend(together.then_some("asleep with"));
    let mut table = Table::new(head);
    for i in states {
        let mut row = vec![i.name.clone()];
        row.extend(enters.then(|| us(i.entry_latency)));
        row.push(us(i.exit_latency));
        row.extend(enters.then(|| us(i.longest_wakeup())));
        row.extend([us(i.min_residency), words::one(i.power.0 as f64 / 1000.0)]);
        let with = match i.together {
            None => "",
            Some(Together::Domain) => "its domain",
            Some(Together::Llc) => "its cache",
        };
        row.extend(together.then(|| with.to_string()));
        table.row(row);
    }
    table
}

/// The page of a policy: what it sets, and with `resolved` the value of everything.
pub fn policy(p: &Policy, resolved: Option<&Settings>, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(p.name.as_str(), "");
    page.paragraph(0, Ink::Plain, &p.about);
    page.paragraph(0, Ink::Plain, &format!("kernel {}", p.kernel));
    let (title, all): (_, Vec<(&String, &Value)>) = match resolved {
        Some(s) => ("Settings (as resolved; * said by the policy)", s.iter().collect()),
        None => ("Settings (the others have their defaults)", p.set.iter().collect()),
    };
    page.rule(title);
    let wide = all.iter().map(|(k, _)| width(k)).max().unwrap_or(0);
    for (name, value) in all {
        let mark = if resolved.is_some() && p.set.contains_key(name) { "* " } else { "  " };
        page.line(Line::new().plain(format!("{mark}{}  {value}", pad(name, wide, false))));
    }
    page.finish()
}

/// The page of a workload: what its tasks do.
pub fn workload(w: &Workload, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(w.name.as_str(), "");
    page.paragraph(0, Ink::Plain, &w.about);
    let mut facts = vec![match w.tasks.len() {
        1 => "1 task".to_string(),
        n => format!("{n} tasks"),
    }];
    if let Some(d) = w.duration {
        facts.push(format!("runs {} ms", words::one(d.as_ms())));
    }
    if let Some(cpu) = w.calibration {
        facts.push(format!("`run` counts µs of {cpu}"));
    }
    page.paragraph(0, Ink::Plain, &facts.join(", "));
    if !w.groups.is_empty() {
        page.rule("Task groups");
        for g in w.groups.iter().take(LIST) {
            page.line(Line::new().plain(format!("{}  {}", g.path, group(g).join(", "))));
        }
        if w.groups.len() > LIST {
            let text = format!("… {} of {} more", w.groups.len() - LIST, w.groups.len());
            page.line(Line::new().ink(Ink::Dim, text));
        }
    }
    for t in w.tasks.iter().take(LIST) {
        task(&mut page, t, &t.comm, w);
    }
    if w.tasks.len() > LIST {
        page.blank();
        let text = format!("… {} of {} tasks more", w.tasks.len() - LIST, w.tasks.len());
        page.line(Line::new().ink(Ink::Dim, text));
    }
    for t in w.forked.iter().take(LIST) {
        task(&mut page, t, &format!("{} (forked)", t.comm), w);
    }
    if !w.without_effect.is_empty() {
        page.rule("Without effect here");
        for line in &w.without_effect {
            page.paragraph(0, Ink::Dim, line);
        }
    }
    page.finish()
}

fn group(g: &TaskGroup) -> Vec<String> {
    let mut out = vec![match g.idle {
        true => "idle".to_string(),
        false => format!("weight {}", g.weight),
    }];
    if let Some(quota) = g.quota {
        let ms = |span: Span| words::one(span.as_ms());
        out.push(format!("{} ms in {} ms", ms(quota), ms(g.period)));
        if g.burst > Span(0) {
            out.push(format!("burst {} ms", ms(g.burst)));
        }
    }
    if let Some(runtime) = g.rt_runtime {
        let ms = |span: Span| words::one(span.as_ms());
        out.push(format!("real-time {} ms in {} ms", ms(runtime), ms(g.rt_period)));
    }
    if g.uclamp_min > Util(0) {
        out.push(format!("util_min {}", g.uclamp_min.0));
    }
    if g.uclamp_max < Util(1024) {
        out.push(format!("util_max {}", g.uclamp_max.0));
    }
    out
}

fn task(page: &mut Page<'_>, t: &TaskSpec, title: &str, w: &Workload) {
    page.rule(title);
    let mut facts = attributes(&t.attr);
    if t.delay.0 > 0 {
        facts.push(format!("starts after {} ms", words::one(t.delay.as_ms())));
    }
    if t.repeat != Repeat::Times(1) {
        facts.push(times(t.repeat));
    }
    if !facts.is_empty() {
        page.paragraph(0, Ink::Dim, &facts.join(", "));
    }
    for p in t.phases.iter().take(LIST) {
        phase(page, p, w);
    }
    if t.phases.len() > LIST {
        let text = format!("… {} of {} phases more", t.phases.len() - LIST, t.phases.len());
        page.line(Line::new().ink(Ink::Dim, text));
    }
}

fn phase(page: &mut Page<'_>, p: &Phase, w: &Workload) {
    let mut events: Vec<String> = p.events.iter().take(LIST).map(|e| event(e, w)).collect();
    if p.events.len() > LIST {
        events.push(format!("… {} more", p.events.len() - LIST));
    }
    let mut text = format!("{}: {}", times(p.repeat), events.join(", "));
    let attributes = attributes(&p.attr);
    if !attributes.is_empty() {
        text += &format!(" ({})", attributes.join(", "));
    }
    page.hanging(
        &format!("{}  ", pad(&p.name, width(&p.name).clamp(8, 16), false)),
        Ink::Plain,
        &text,
    );
}

fn times(r: Repeat) -> String {
    match r {
        Repeat::Times(1) => "once".into(),
        Repeat::Times(n) => format!("{n} times"),
        Repeat::Forever => "for ever".into(),
    }
}

fn event(e: &Event, w: &Workload) -> String {
    let o = &w.objects;
    let span = |s: risetime_kernel::units::Span| match s.0 {
        ns if ns >= 1_000_000 => format!("{} ms", trimmed(ns, 1_000_000)),
        ns => format!("{} µs", trimmed(ns, 1000)),
    };
    match e {
        Event::Run(s) => format!("run {}", span(*s)),
        Event::RunOf { work, kind } => {
            let kind = o.kinds.get(*kind as usize).map_or("", String::as_str);
            format!("run {} of {kind}", span(*work))
        }
        Event::Runtime { time, .. } => format!("run for {}", span(*time)),
        Event::Sleep(s) => format!("sleep {}", span(*s)),
        Event::Timer { timer, period } => {
            let which = match timer.shared {
                true => format!("\"{}\"", name(&o.timers, timer.index)),
                false => timer.index.to_string(),
            };
            let mode = if timer.absolute { ", absolute" } else { "" };
            format!("wait for timer {which} of {}{mode}", span(*period))
        }
        Event::Busy(s) => format!("write for {}", span(*s)),
        Event::Duty(percent) => format!("sleep until that was {percent} % of the time"),
        Event::Yield => "yield".into(),
        Event::Lock(m) => format!("lock {}", name(&o.mutexes, *m)),
        Event::Unlock(m) => format!("unlock {}", name(&o.mutexes, *m)),
        Event::Wait { cond, mutex } => {
            format!("wait for {} with {}", name(&o.conds, *cond), name(&o.mutexes, *mutex))
        }
        Event::Signal(c) => format!("signal {}", name(&o.conds, *c)),
        Event::Broadcast(c) => format!("broadcast {}", name(&o.conds, *c)),
        Event::Barrier(b) => {
            let barrier = o.barriers.get(*b as usize);
            barrier.map_or_else(String::new, |b| {
                format!("barrier {} of {}", one_word(&b.name), b.users)
            })
        }
        Event::SemWait(s) => format!("take from {}", name(&o.semaphores, *s)),
        Event::SemPost(s) => format!("give to {}", name(&o.semaphores, *s)),
        Event::Fork(f) => {
            let forked = w.forked.get(*f as usize);
            format!("fork {}", forked.map_or("", |t| t.comm.as_str()))
        }
    }
}

/// The name of an object of the workload, which may hold anything.
fn name(list: &[String], index: u32) -> String {
    list.get(index as usize).map_or_else(String::new, |name| one_word(name))
}

fn one_word(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// `n / unit` exactly, without zeros at its end.
fn trimmed(n: u64, unit: u64) -> String {
    let text = format!("{:.6}", n as f64 / unit as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn attributes(a: &Attr) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(cpus) = &a.cpus {
        out.push(format!("on CPU{}", cpu_ranges(cpus)));
    }
    if let Some(group) = &a.taskgroup {
        out.push(format!("in {}", if group.is_empty() { "/" } else { group }));
    }
    if let Some(policy) = a.policy.filter(|p| *p != SchedPolicy::default()) {
        out.push(policy.to_string());
    }
    if let Some(nice) = a.nice {
        out.push(format!("nice {nice}"));
    }
    if let Some(u) = a.uclamp_min {
        out.push(format!("util_min {}", u.0));
    }
    if let Some(u) = a.uclamp_max {
        out.push(format!("util_max {}", u.0));
    }
    for hint in &a.qos {
        let name = SchedQosType::ALL.iter().find(|(_, kind)| *kind == hint.kind);
        out.push(format!("{} {}", name.map_or("hint", |(name, _)| name), hint.value));
    }
    out
}
