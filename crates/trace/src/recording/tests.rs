use super::*;
use crate::*;
use risetime_kernel::KernelRev;
use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::eevdf::Place;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{
    Capacity, ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util,
};
use risetime_model::Value;
use risetime_model::workload::{JobMark, Policy};

/// Choices of `menu`: of which all, nothing, and most is known.
fn selects() -> (MenuSelect, MenuSelect, MenuSelect) {
    let full = MenuSelect {
        next_timer_ns: i64::MAX as u64,
        bucket: 5,
        correction_factor: [8192; 6],
        intervals_us: [0, 1, 2, 3, 4, 5, 6, u32::MAX],
        interval_ptr: 7,
        last: Some(LastSleep { state: 0, slept_ns: 1 << 40, by_tick: true }),
        sleep_length_ns: Some(0),
        delta_next_ns: -3,
        tick_stopped: true,
        state: Some(0),
        stop_tick: Some(false),
    };
    let other = MenuSelect { stop_tick: Some(true), sleep_length_ns: Some(9), ..full };
    (full, MenuSelect::default(), other)
}

/// Iterates over the reasons of the table, and one of a plug-in.
fn reasons() -> impl Iterator<Item = Why> {
    Why::ALL.iter().copied().chain([Why::other("a plug-in's own")])
}

/// A trace with every kind of event, every reason, and what is hard to write.
/// Events of the workload and its machine, each form of them.
fn happenings(cpu: CpuId, task: TaskId) -> Vec<Event> {
    vec![
        Event::TaskNew {
            task,
            comm: "a \"b\\n\n".into(),
            user: true,
            cpu,
            why: Why::Unknown,
            max_speed: Util(9),
        },
        Event::MaxSpeed { task, max_speed: Util(1024) },
        Event::Switch { cpu, prev: Some((task, SwitchOut::Exited)), next: None },
        Event::Switch { cpu, prev: None, next: Some(task) },
        Event::Switch { cpu, prev: Some((task, SwitchOut::Sleeping)), next: Some(TaskId(0)) },
        Event::Migrate { task, from: cpu, to: CpuId(7), why: Why::Misfit },
        Event::Phase { task, index: 2, name: "".into() },
        Event::Step { task, number: u64::MAX },
        Event::Job {
            task,
            mark: JobMark::Begins { release: Some(Instant(7)), period: None, counted: true },
        },
        Event::Job {
            task,
            mark: JobMark::Begins { release: None, period: Some(Span(9)), counted: false },
        },
        Event::Job { task, mark: JobMark::Gives },
        Event::Job {
            task,
            mark: JobMark::Timer {
                due: Instant(1),
                release: Instant(u64::MAX),
                period: Span(5),
                absolute: true,
                worked: false,
            },
        },
        Event::Job { task, mark: JobMark::Waits },
        Event::Job { task, mark: JobMark::Over { worked: true } },
        Event::Freq { cpu, freq: KHz(3_204_000) },
        Event::FreqRequest { cpu, util: Util(500), freq: KHz(600_000), why: Why::Decaying },
        Event::Idle { cpu, state: Some(0) },
        Event::Idle { cpu, state: None },
        Event::UtilEst { task, util_est: Util(77) },
        Event::WaitingAvg { task, waiting_avg: Util(78) },
        Event::CpuCapacity { cpu, capacity: Capacity(900) },
        Event::Overutilized { on: true },
        Event::Hotplug { cpu, online: false },
        Event::Throttled { task, on: true },
        Event::Irq { cpu, enters: true },
        Event::Work { cpu, kind: 3 },
        Event::Misfit { cpu, task: Some(task) },
        Event::Misfit { cpu, task: None },
    ]
}

/// Events that tell from what a kernel decides.
fn decisions(cpu: CpuId, task: TaskId) -> Vec<Event> {
    vec![
        Event::Waking { task, by: CpuId(7) },
        Event::Due { task, ago: Span(890_000) },
        Event::Stolen { cpu, span: Span(1) },
        Event::Prio { task, prio: -1 },
        Event::Prio { task, prio: 139 },
        Event::Clamps { task, clamps: Uclamp { min: Util(300), max: Util(1024) } },
        Event::CpuClamps { cpu, clamps: Uclamp { min: Util(0), max: Util(512) } },
        Event::Entity {
            task,
            place: Place {
                vruntime: u64::MAX - 9,
                deadline: 5,
                vlag: -7,
                slice: 2_800_000,
                vprot: 9,
                weight: 1 << 20,
            },
        },
        Event::Entity { task, place: Place { vruntime: 3, vlag: i64::MIN, ..Place::default() } },
        Event::TaskLoad { task, load_avg: 1024, load_sum: 47_742 },
        Event::CfsLoad { cpu, load_avg: 88_761, load_sum: 1 << 40 },
        Event::CfsQueue {
            cpu,
            min_vruntime: u64::MAX,
            sum_w_vruntime: -1 << 50,
            sum_weight: 1 << 40,
            nr_queued: 3,
        },
        Event::FreqLook {
            cpu,
            look: FreqLook {
                next_freq: KHz(600_000),
                cached_raw_freq: KHz(590_001),
                since_ns: u64::MAX,
                forced: true,
                bw_min: Util(51),
                busy: true,
                running_bw: 1 << 20,
                util_avg: Util(5),
                runnable_avg: Util(6),
                util_est: Util(1023),
                rt_runnable: Some(true),
                uclamp: Some([Util(0), Util(1024)]),
                chosen: Some(KHz(700_000)),
            },
        },
        Event::FreqLook { cpu, look: FreqLook::default() },
        Event::FreqLook { cpu, look: FreqLook { rt_runnable: Some(false), ..FreqLook::default() } },
        Event::GroupEntity {
            cpu,
            group: GroupId(2),
            place: Place { vruntime: 7, deadline: 9, ..Place::default() },
        },
        Event::GroupQueue { cpu, group: GroupId(1), min_vruntime: u64::MAX - (1 << 20) },
        Event::GroupThrottled { cpu, group: GroupId(3), on: true },
        Event::Quota {
            group: GroupId(2),
            stat: QuotaStat { periods: 20, throttled: 7, time: Span(80_000_001), longest: None },
        },
        Event::Quota {
            group: GroupId(1),
            stat: QuotaStat { longest: Some(Span(0)), ..QuotaStat::default() },
        },
        Event::CfsUtilEst { cpu, util_est: Util(79) },
        Event::Temperature { zone: 1, millicelsius: 70_123 },
        Event::Cooling { cpu, max: KHz(700_000), zone: 1 },
        Event::CpuFrequencyLimits { cpu, min: KHz(300_000), max: KHz(700_000) },
        Event::Capped { cpu, by: Limit::Budget, max: Some(KHz(700_000)) },
        Event::Capped { cpu, by: Limit::Hardware, max: None },
        Event::SpeedLimits { task, affinity: Util(1137), clamped: Util(300) },
        Event::Deadline { task, runtime: -5, left: i64::MIN },
        Event::Tick { cpu },
        Event::Resched { cpu, lazy: true },
        Event::BalanceDue {
            cpu,
            jiffies: 4_294_892_296,
            next_balance: u64::MAX,
            domains: [(1, 8), (0, 0)],
        },
    ]
}

/// Lists every kind of event, with every word that one has.
fn events() -> Vec<Event> {
    let (full, empty, other) = selects();
    let (cpu, task) = (CpuId(1), TaskId(3));
    let mut events = [happenings(cpu, task), decisions(cpu, task)].concat();
    events.extend(IdleType::ALL.iter().map(|idle| Event::BalanceLook {
        cpu,
        level: 2,
        idle: *idle,
        failed: 7,
    }));
    events.extend([full, empty, other].map(|select| Event::IdleSelect { cpu, select }));
    events.extend(reasons().map(|why| Event::Wakeup { task, cpu, why }));
    for clock in [0, 1, u64::MAX - 5, 1 << 40] {
        let (util_avg, runnable_avg, util_sum) = (Util(clock % 1000), Util(4), clock / 3);
        let (period_contrib, last_update_time) = (1023, ClockPelt(clock));
        events.extend([
            Event::PeltTask {
                task,
                cpu,
                util_avg,
                runnable_avg,
                util_sum,
                period_contrib,
                last_update_time,
            },
            Event::PeltCfs {
                cpu,
                util_avg,
                runnable_avg,
                util_est: Util(5),
                util_sum,
                period_contrib,
                last_update_time,
            },
        ]);
        events.extend(PressureClass::ALL.iter().map(|class| Event::PeltPressure {
            cpu,
            class: *class,
            util_avg,
            util_sum,
            period_contrib,
            last_update_time,
        }));
    }
    let ms = Span::from_ms;
    let deadline =
        |reclaim| Policy::Deadline { runtime: ms(1), deadline: ms(2), period: ms(3), reclaim };
    let policies = [
        Policy::Other { slice: None },
        Policy::Other { slice: Some(ms(5)) },
        Policy::Batch { slice: None },
        Policy::Idle,
        Policy::High { slice: Some(ms(4)) },
        Policy::Fifo { priority: 99 },
        Policy::Rr { priority: 1 },
        deadline(true),
        deadline(false),
    ];
    events.extend(policies.map(|policy| Event::Policy { task, policy }));
    events
}

fn everything() -> Memory {
    let (cpu, ms) = (CpuId(1), Span::from_ms);
    let mut header = crate::header::tests::header();
    header.machine.settings.insert("rate_limit_us", Value::Int(-1));
    header.machine.settings.insert("governor", Value::Name("a b\n".into()));
    header.run.lost = vec!["CPU 0: 12 events".into()];
    let parts = (123_456_789_012, 5, [1, 2, 3, 4, 5, 6], [9, 8, 7, 6, 5, 4, 3, u32::MAX], 7);
    let menu =
        MenuDevice::from_parts(KernelRev::V6_12, parts.0, parts.1, parts.2, parts.3, parts.4);
    assert_eq!(menu.to_parts(), parts);
    let idle =
        |slept, rq| IdleMemory { cpu, menu: menu.clone(), state: 1, before: ms(3), slept, rq };
    // Taken from more often than there was.
    let rq =
        RqMemory { distribute: CpuId(7), extra_bw: u64::MAX - 78_626, total_bw: 0, idled: None };
    let idled = RqMemory { idled: Some(ms(9)), ..rq };
    header.image.idle =
        vec![idle(None, None), idle(Some(ms(2)), Some(rq)), idle(None, Some(idled))];
    let balance = |domains| BalanceMemory { cpu, after: ms(1), next_balance: -3, domains };
    header.image.balance = vec![balance(vec![(-7, 8), (9, 16)]), balance(vec![])];
    header.image.periods = vec![PeriodMemory { group: GroupId(2), ends: Instant(5) }];
    header.image.tick = Some(Instant(4_000_777));

    let mut memory = Memory::new();
    TraceSink::header(&mut memory, &header);
    for (i, event) in events().iter().enumerate() {
        memory.event(Instant(1 << (i / 2).min(40)), event);
    }
    TraceSink::end(&mut memory, Instant(1 << 41));
    memory
}

fn text(trace: &Memory) -> String {
    let mut out = Vec::new();
    write(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_trace_reads_back_as_it_was() {
    let trace = everything();
    let text = text(&trace);
    let mut lines = Lines::new(&text, "x");
    let back = read(&mut lines).unwrap();
    assert!(lines.is_done());
    assert_eq!(format!("{back:?}"), format!("{trace:?}"), "names and header included");
}

/// The text with line `n`, counted from 1, replaced.
fn with_line(text: &str, n: usize, line: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[n - 1] = line;
    lines.join("\n")
}

#[test]
fn whatever_is_broken_is_one_error_at_its_line() {
    let text = text(&everything());
    let error = |text: &str| read(&mut Lines::new(text, "r")).unwrap_err().to_string();
    let line = |start: &str| text.lines().position(|l| l.starts_with(start)).unwrap() + 1;
    let (first, last) = (line("events") + 1, line("end"));
    let one_more = format!("{} 1", text.lines().nth(line("idle") - 1).unwrap());
    let broken = [
        (1, "backend qemu", "found `qemu`, wanted one of sim, vm, host, file"),
        (2, "release 7", "found `release 7`, wanted `kernel_release …`"),
        (line("set rate"), "set rate_limit_us x", "found `x`, wanted a number"),
        (line("set rate"), "set rate_limit_us", "found no value of the setting"),
        (line("idle"), "idle 1 1 3000000 on 6.12 1 5 1", "has 8 numbers, wanted 22, 25 or 26"),
        (line("idle"), &one_more, "has 23 numbers, wanted 22, 25 or 26"),
        (first, "w1 3 8 0", "found CPU 8, wanted less than 8"),
        (first, "w1 99999999 1 0", "found task 99999999, wanted less than 1048576"),
        (first, "w1 3 1", "has too few numbers"),
        (first, "w1 3 1 0 0", "has too many numbers"),
        (first, "P1 3 141", "found priority 141, wanted -1 to 140"),
        (first, "L1 1 0 3", "found a choice 3, wanted less than 3"),
        (first, "I1 1 0 0", "has too few numbers"),
        (first, "w1 3 1 99", "found a choice 99, wanted less than 42"),
        (first, "w-1 3 1 0", "found `-1`, wanted a number"),
        (first, "?1 3 1 0", "found an event `?`: no such kind"),
        (first, "é", "found ``, wanted a number"),
        (first, "", "found ``, wanted a number"),
        (last, "end never", "found `never`, wanted a number"),
    ];
    for (n, with, what) in broken {
        assert_eq!(error(&with_line(&text, n, with)), format!("r:{n}: {what}"));
    }
    let cut: Vec<&str> = text.lines().take(last - 1).collect();
    assert_eq!(error(&cut.join("\n")), format!("r:{last}: ends too early"));
    assert_eq!(error(""), "r:1: ends too early");
    // The platform says how many there are.
    let elsewhere = text.replacen(" 7 18446744073709472989 0\n", " 8 0 0\n", 1);
    assert!(error(&elsewhere).ends_with("tells of CPU8, of 8 CPUs"), "{}", error(&elsewhere));
    let platform = line("platform");
    let found = error(&with_line(&text, platform + 1, " schema = 9"));
    assert!(found.starts_with(&format!("r:{platform}: platform")), "{found}");
}
