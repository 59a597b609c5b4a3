//! The header of a recording, one key a line.

use super::{Lines, escape, list, unescape, write_block};
use crate::{
    Asked, BackendKind, BalanceMemory, Clock, Header, IdleMemory, Image, MachineInfo, PeriodMemory,
    RqMemory, Run, Whence,
};
use risetime_kernel::KernelRev;
use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::units::{CpuId, GroupId, Instant, Span};
use risetime_model::workload::JobSpec;
use risetime_model::{InputError, Platform, Settings, Value, micros, parse_micros};
use std::io::{self, Write};
use std::sync::Arc;

/// Writes its lines, up to the platform.
///
/// Errors: those of `out`.
pub(super) fn write(h: &Header, out: &mut dyn Write) -> io::Result<()> {
    let Header { run, asked, machine, image } = h;
    let unasked = || io::Error::other("a trace that is of no experiment");
    let asked = asked.as_ref().ok_or_else(unasked)?;
    writeln!(out, "backend {}", run.backend)?;
    writeln!(out, "kernel_release {}", escape(&run.kernel_release))?;
    writeln!(out, "workload {}", escape(&asked.workload))?;
    writeln!(out, "policy {}", escape(&asked.policy))?;
    writeln!(out, "clock {}", run.clock.as_str())?;
    writeln!(out, "phase_us {}", micros(asked.phase))?;
    writeln!(out, "seed {}", asked.seed)?;
    for (name, value) in &machine.settings {
        match value {
            Value::Int(n) => writeln!(out, "set {name} {n}")?,
            Value::Name(s) => writeln!(out, "set {name} \"{}", escape(s))?,
        }
    }
    for lost in &run.lost {
        writeln!(out, "lost {}", escape(lost))?;
    }
    for IdleMemory { cpu, menu, state, before, slept, rq } in &image.idle {
        let slept = slept.map_or("on".to_string(), |s| s.0.to_string());
        let (rev, menu) = (menu.rev(), menu.to_parts());
        let (next, bucket, factors, intervals, ptr) = menu;
        write!(out, "idle {} {state} {} {slept} {rev} {next} {bucket} ", cpu.0, before.0)?;
        write!(out, "{} {} {ptr}", list(factors), list(intervals))?;
        if let Some(RqMemory { distribute, extra_bw, total_bw, idled }) = rq {
            write!(out, " {} {extra_bw} {total_bw}", distribute.0)?;
            if let Some(idled) = idled {
                write!(out, " {}", idled.0)?;
            }
        }
        writeln!(out)?;
    }
    for BalanceMemory { cpu, after, next_balance, domains } in &image.balance {
        let domains = list(domains.iter().map(|(last, interval)| format!("{last} {interval}")));
        let head = format!("balance {} {} {next_balance} {domains}", cpu.0, after.0);
        writeln!(out, "{}", head.trim_end())?;
    }
    for PeriodMemory { group, ends } in &image.periods {
        writeln!(out, "period {} {}", group.0, ends.0)?;
    }
    if let Some(tick) = image.tick {
        writeln!(out, "tick {}", tick.0)?;
    }
    for JobSpec { name, tasks, deadline, period } in &asked.jobs {
        let deadline = deadline.map_or(0, |d| d.0 + 1);
        writeln!(out, "job {deadline} {} \"{}", list(tasks.iter().copied()), escape(name))?;
        if let Some(period) = period {
            writeln!(out, "every {}", period.0)?;
        }
    }
    write_block(out, "platform", &machine.platform.to_toml())
}

/// The header that comes next in `lines`.
///
/// Errors: the first fault, at its line.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<Header, InputError> {
    let backend = lines.value("backend")?;
    let backend = lines.choice(backend, &BackendKind::ALL, |kind| kind.as_str())?;
    let kernel_release = unescape(lines.value("kernel_release")?);
    let workload = unescape(lines.value("workload")?);
    let policy = unescape(lines.value("policy")?);
    let clock = lines.value("clock")?;
    let clock = lines.choice(clock, &Clock::ALL, |clock| clock.as_str())?;
    let phase = lines.value("phase_us").and_then(|n| {
        let wanted = || lines.error(format!("found `{n}`, wanted µs with at most 3 decimals"));
        parse_micros(n).ok_or_else(wanted)
    })?;
    let seed = lines.value("seed").and_then(|n| lines.number(n))?;
    let mut settings = Settings::default();
    while let Some(text) = lines.opt_value("set") {
        let (name, value) =
            text.split_once(' ').ok_or_else(|| lines.error("found no value of the setting"))?;
        let value = match value.strip_prefix('"') {
            Some(name) => Value::Name(unescape(name)),
            None => Value::Int(lines.number(value)?),
        };
        settings.insert(name, value);
    }
    let mut lost = Vec::new();
    while let Some(text) = lines.opt_value("lost") {
        lost.push(unescape(text));
    }
    let mut idle = Vec::new();
    while let Some(text) = lines.opt_value("idle") {
        idle.push(read_idle(lines, text)?);
    }
    let mut balance = Vec::new();
    while let Some(text) = lines.opt_value("balance") {
        let numbers: Vec<i64> =
            text.split(' ').map(|n| lines.number(n)).collect::<Result<_, _>>()?;
        let [cpu, after, next_balance, ref domains @ ..] = numbers[..] else {
            return Err(lines.error("has too few numbers"));
        };
        let domains = domains.chunks(2).map(|d| (d[0], d.get(1).map_or(0, |n| *n as u64)));
        let (cpu, after) = (CpuId(cpu as u32), Span(after as u64));
        balance.push(BalanceMemory { cpu, after, next_balance, domains: domains.collect() });
    }
    let mut periods = Vec::new();
    while let Some(text) = lines.opt_value("period") {
        let (group, ends) =
            text.split_once(' ').ok_or_else(|| lines.error("has too few numbers"))?;
        let (group, ends) = (GroupId(lines.number(group)?), Instant(lines.number(ends)?));
        periods.push(PeriodMemory { group, ends });
    }
    // Not in older recordings.
    let tick = lines.opt_value("tick").map(|n| lines.number(n)).transpose()?.map(Instant);
    let mut jobs = Vec::new();
    while let Some(text) = lines.opt_value("job") {
        let (numbers, name) =
            text.split_once(" \"").ok_or_else(|| lines.error("found no name of the job"))?;
        let numbers: Vec<u64> =
            numbers.split(' ').map(|n| lines.number(n)).collect::<Result<_, _>>()?;
        let deadline = numbers[0].checked_sub(1).map(Span);
        let tasks = numbers[1..].iter().map(|n| *n as u32).collect();
        // Not in older recordings.
        let period = lines.opt_value("every").map(|n| lines.number(n)).transpose()?.map(Span);
        jobs.push(JobSpec { name: unescape(name), tasks, deadline, period });
    }
    let place = format!("{}: platform", lines.next_place());
    let platform = Platform::parse(&lines.block("platform")?, &place)?;
    let cpus = platform.nr_cpus();
    let searched = idle.iter().filter_map(|i: &IdleMemory| Some(i.rq?.distribute));
    let whose = idle.iter().map(|i| i.cpu).chain(balance.iter().map(|b| b.cpu)).chain(searched);
    if let Some(cpu) = whose.into_iter().find(|cpu| cpu.index() >= cpus) {
        return Err(lines.error(format!("tells of {cpu}, of {cpus} CPUs")));
    }
    let run = Run { backend, kernel_release, clock, signals: Vec::new(), lost };
    let asked = Asked { workload, policy, phase, seed, jobs, ..Asked::default() };
    let machine = MachineInfo { platform: Arc::new(platform), whence: Whence::Described, settings };
    let image = Image { idle, balance, periods, tick };
    Ok(Header { run, asked: Some(asked), machine, image })
}

fn read_idle(lines: &Lines<'_>, text: &str) -> Result<IdleMemory, InputError> {
    let words: Vec<&str> = text.split(' ').collect();
    let [cpu, state, before, slept, rev, next, bucket, ref rest @ ..] = words[..] else {
        return Err(lines.error("has too few numbers"));
    };
    // Not in older recordings.
    let (rest, rq) = rest.split_at_checked(15).unwrap_or((rest, &[]));
    let wanted = || lines.error(format!("has {} numbers, wanted 22, 25 or 26", words.len()));
    let rq = match rq {
        [] => None,
        [distribute, extra_bw, total_bw, idled @ ..] if idled.len() < 2 => Some(RqMemory {
            distribute: CpuId(lines.number(distribute)?),
            extra_bw: lines.number(extra_bw)?,
            total_bw: lines.number(total_bw)?,
            idled: idled.first().map(|n| lines.number(n)).transpose()?.map(Span),
        }),
        _ => return Err(wanted()),
    };
    let rest: Vec<u32> = rest.iter().map(|n| lines.number(n)).collect::<Result<_, _>>()?;
    let (Some(factors), Some(intervals), Some(ptr)) =
        (rest.first_chunk::<6>(), rest.get(6..).and_then(|r| r.first_chunk::<8>()), rest.get(14))
    else {
        return Err(wanted());
    };
    let unknown = || lines.error(format!("found `{rev}`, wanted a release as 7.2"));
    let rev = KernelRev::of_release(rev).ok_or_else(unknown)?;
    let (next, bucket) = (lines.number(next)?, lines.number(bucket)?);
    let menu = MenuDevice::from_parts(rev, next, bucket, *factors, *intervals, *ptr as usize);
    Ok(IdleMemory {
        cpu: CpuId(lines.number(cpu)?),
        menu,
        state: lines.number(state)?,
        before: Span(lines.number(before)?),
        slept: if slept == "on" { None } else { Some(Span(lines.number(slept)?)) },
        rq,
    })
}
