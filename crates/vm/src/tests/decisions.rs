//! The state behind a kernel's decisions: what the guest is asked for, and what becomes of it.

use super::*;
use crate::plan::wanted;
use risetime_ftrace::asked;
use risetime_ftrace::decisions::{Due, count_jiffies};
use risetime_kernel::KernelRev;
use risetime_kernel::eevdf::Place;
use risetime_kernel::units::{GroupId, KHz};
use risetime_trace::{FreqLook, Hears, IdleType, LastSleep, MenuSelect};

const WAKEUP: u16 = 20;
const WAKING: u16 = 21;
const QUEUED: u16 = 22;
const RESCHED: u16 = 23;
const LOOK: u16 = 24;
const MENU: u16 = 25;
const MENU_RET: u16 = 26;
const RESCHED_CURR: u16 = 27;
const TICK_STAYS: u16 = 28;
const TICK: u16 = 29;
const UEST_CFS: u16 = 30;
const GOV_SHARED: u16 = 31;
const SWITCHED: u16 = 32;

/// Numbers of 4 bytes each, one behind the other.
fn numbers(id: u16, fields: &[&str]) -> String {
    let fields: Vec<_> =
        fields.iter().enumerate().map(|(i, name)| ("s32", *name, 8 + 4 * i, 4)).collect();
    format(id, &fields)
}

fn said(id: u16, words: &[i32]) -> Vec<u8> {
    event(id, &words.iter().map(|n| Word::N(*n)).collect::<Vec<_>>())
}

/// A thread called `t`, with its priority and a CPU.
fn thread(id: u16, pid: i32, prio: i32, cpu: i32) -> Vec<u8> {
    event(id, &[Word::T("t"), Word::N(pid), Word::N(prio), Word::N(cpu)])
}

/// An answer in which CPU 4 runs the workload's task from before time 0 on; then it is woken from
/// CPU 0 with another priority. CPU 0 sleeps twice: the second choice shows what timer the first
/// was told, its own nobody shows.
/// Formats of the events that the guest was told, by their names.
fn formats() -> Vec<(&'static str, String)> {
    let thread_fields = [
        ("char", "comm[16]", 8, 16),
        ("pid_t", "pid", 24, 4),
        ("int", "prio", 28, 4),
        ("int", "target_cpu", 32, 4),
    ];
    let switch_fields = [
        ("char", "prev_comm[16]", 8, 16),
        ("pid_t", "prev_pid", 24, 4),
        ("long", "prev_state", 28, 4),
        ("char", "next_comm[16]", 32, 16),
        ("pid_t", "next_pid", 48, 4),
        ("int", "prev_prio", 52, 4),
        ("int", "next_prio", 56, 4),
    ];
    let menu = [
        "needs", "tick", "next", "bucket", "f0", "f1", "f2", "i0", "i1", "i2", "i3", "ptr",
        "slept", "last", "now", "event", "stopped",
    ];
    let queued = [
        "pid",
        "vruntime",
        "deadline",
        "vlag",
        "slice",
        "vprot",
        "weight",
        "cpu",
        "zero",
        "sumwv",
        "sumw",
        "nr",
        "g1css",
        "g1cpu",
        "g1vruntime",
        "g1vlag",
        "g2css",
        "g2cpu",
        "g2vruntime",
        "g2vlag",
    ];
    let governor = [
        "cpu", "policy", "time", "next", "cached", "last", "limits", "need", "min", "saved",
        "calls", "bw", "util", "runnable", "est", "rt", "umin", "umax",
    ];
    let look = ["cpu", "level", "idle", "failed", "now", "next", "l0", "i0", "l1", "i1"];
    vec![
        ("ftrace/print", format(PRINT, &[("char", "buf[]", 8, 0)])),
        ("sched/sched_switch", format(SWITCH, &switch_fields)),
        ("sched/sched_wakeup", format(WAKEUP, &thread_fields)),
        ("sched/sched_waking", format(WAKING, &thread_fields)),
        ("rt/queued", numbers(QUEUED, &queued)),
        ("rt/resched", numbers(RESCHED, &["cpu", "tif"])),
        ("rt/resched_curr", numbers(RESCHED_CURR, &["cpu", "flags"])),
        ("rt/look", numbers(LOOK, &look)),
        ("rt/menu", numbers(MENU, &menu)),
        // The kernel does not show more of a choice.
        ("rt/menu_ret", numbers(MENU_RET, &["state"])),
        ("rt/tick_stays", numbers(TICK_STAYS, &[])),
        ("rt/tick", numbers(TICK, &[])),
        ("rt/uest_cfs", numbers(UEST_CFS, &["cpu", "est"])),
        ("rt/gov_shared", numbers(GOV_SHARED, &governor)),
        ("rt/switch", numbers(SWITCHED, &["npid", "nvruntime", "nruntime", "ndue"])),
    ]
}

fn answer() -> Vec<u8> {
    let mut w = Writer::new(Vec::new()).unwrap();
    let values = obedient("linux-7.2");
    let text: String = values.iter().map(|(k, v)| value_line(k, v)).collect();
    w.section("values", text.as_bytes()).unwrap();
    w.section("header_page", HEADER_PAGE.as_bytes()).unwrap();
    for (name, text) in formats() {
        w.section(&format!("format {name}"), text.as_bytes()).unwrap();
    }
    let chooses = |next: i32, needs: i32| {
        said(MENU, &[needs, 1, next, 3, 11, 12, 13, 21, 22, 23, 24, 5, 900, 1, 1000, 5000, 1])
    };
    let cpu0 = [
        (100, mark("rt start")),
        (100, thread(WAKING, 70, 98, 4)),
        (0, thread(WAKING, 71, 98, 4)),
        (10, said(RESCHED, &[4, 2])),
        (0, said(RESCHED_CURR, &[4, 0b10])),
        (0, said(RESCHED_CURR, &[5, 0b100])),
        (10, thread(WAKEUP, 70, 98, 4)),
        (10, said(LOOK, &[4, 1, 2, 3, 500, 503, 490, 8, 480, 16])),
        (10, chooses(7, 1)),
        (10, said(MENU_RET, &[1])),
        (0, said(TICK_STAYS, &[])),
        (100, chooses(3_000, 0)),
        (10, said(MENU_RET, &[0])),
        (1, said(TICK, &[])),
        (1, said(UEST_CFS, &[4, 77])),
        (
            1,
            said(
                GOV_SHARED,
                &[4, 9, 500, 600, 590, 400, 0, 1, 51, 3, 3, 52_428, 5, 6, 7, 2, 9, 99],
            ),
        ),
        // This one has begun before that is over.
        (0, said(GOV_SHARED, &[6, 9, 505, 600, 590, 400, 0, 0, 51, 3, 4, 0, 5, 6, 7, 0, 0, 1024])),
        // That it had asked for at 650 nobody told.
        (1, said(GOV_SHARED, &[5, 9, 600, 700, 690, 500, 0, 0, 51, 3, 4, 0, 5, 6, 7, 0, 0, 1024])),
        (1, said(GOV_SHARED, &[4, 9, 700, 800, 790, 650, 0, 0, 51, 3, 4, 0, 5, 6, 7, 0, 0, 1024])),
        (1, thread(WAKEUP, 70, -1, 4)),
        (1, said(SWITCHED, &[70, 21, 33, 1_000_777])),
        (10, mark("rt end")),
    ];
    let switched = [Word::T("a"), Word::N(0), Word::N(0), Word::T("t"), Word::N(70)];
    let switched: Vec<Word<'_>> =
        switched.into_iter().chain([Word::N(120), Word::N(120)]).collect();
    let cpu4 = [
        (0, said(QUEUED, &[70, 1, 2, -3, 4, 9, 6, 4, 5, -6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0])),
        (0, event(SWITCH, &switched)),
        // In a group that is in another.
        (160, said(QUEUED, &[70, 11, 0, 0, 0, 0, 0, 4, 15, 0, 0, 1, 3, 4, 30, -31, 2, 4, 20, -21])),
    ];
    w.section("pages 0", &page(1_000_000, &cpu0)).unwrap();
    w.section("pages 4", &page(1_000_050, &cpu4)).unwrap();
    w.finish().unwrap()
}

fn shown(decisions: bool) -> Vec<(u64, String)> {
    let mut rig = Rig::answering("decisions", &answer());
    rig.vm.decisions = decisions;
    let (done, trace) = rig.run("linux-7.2");
    done.unwrap();
    let mut seen = Shown(Vec::new());
    trace.replay(&mut seen);
    seen.0
}

/// The look of schedutil that the first `GOV_SHARED` tells.
fn first_look() -> FreqLook {
    FreqLook {
        next_freq: KHz(600),
        cached_raw_freq: KHz(590),
        since_ns: 100,
        forced: true,
        bw_min: Util(51),
        busy: true,
        running_bw: 52_428,
        util_avg: Util(5),
        runnable_avg: Util(6),
        util_est: Util(7),
        rt_runnable: Some(true),
        uclamp: Some([Util(9), Util(99)]),
        chosen: Some(KHz(700)),
    }
}

/// The look of a later one, with what it has itself.
fn later_look(next: u64, cached: u64) -> FreqLook {
    FreqLook {
        next_freq: KHz(next),
        cached_raw_freq: KHz(cached),
        forced: false,
        busy: false,
        running_bw: 0,
        rt_runnable: Some(false),
        uclamp: Some([Util(0), Util(1024)]),
        chosen: None,
        ..first_look()
    }
}

#[test]
fn a_trace_tells_from_what_the_kernel_decides_where_that_is_asked_for() {
    let (task, cpu) = (TaskId(0), CpuId(4));
    let select = MenuSelect {
        next_timer_ns: 7,
        bucket: 3,
        correction_factor: [11, 0, 12, 0, 13, 0],
        intervals_us: [21, 0, 22, 0, 23, 0, 24, 0],
        interval_ptr: 5,
        last: Some(LastSleep { state: 1, slept_ns: 900, by_tick: true }),
        sleep_length_ns: Some(3_000),
        delta_next_ns: 4_000,
        tick_stopped: true,
        state: Some(1),
        stop_tick: Some(false),
    };
    let entity = |place| Event::Entity { task, place };
    let first = Place { vruntime: 1, deadline: 2, vlag: -3, slice: 4, vprot: 9, weight: 6 };
    let group = |group, place| Event::GroupEntity { cpu, group: GroupId(group), place };
    let queue = |min_vruntime, sum_w_vruntime, sum_weight, nr_queued| Event::CfsQueue {
        cpu,
        min_vruntime,
        sum_w_vruntime,
        sum_weight,
        nr_queued,
    };
    let freq_look = first_look();
    let later = |next, cached| later_look(next, cached);
    let why = Why::FirstCpu;
    let (user, max_speed) = (true, Util(1024));
    let new = Event::TaskNew { task, comm: "rampup".into(), user, cpu, why, max_speed };
    let wanted = [
        (0, new),
        (0, entity(first)),
        (0, Event::Prio { task, prio: 120 }),
        (0, Event::Switch { cpu, prev: None, next: Some(task) }),
        (0, queue(5, -6, 7, 8)),
        // Nobody knows who 71 is.
        (100, Event::Waking { task, by: CpuId(0) }),
        (110, Event::Resched { cpu, lazy: true }),
        // That of CPU 4 was set already.
        (110, Event::Resched { cpu: CpuId(5), lazy: false }),
        (110, group(1, Place { vruntime: 20, vlag: -21, ..Place::default() })),
        (110, group(2, Place { vruntime: 30, vlag: -31, ..Place::default() })),
        (110, entity(Place { vruntime: 11, ..Place::default() })),
        (110, queue(15, 0, 0, 1)),
        (120, Event::Prio { task, prio: 98 }),
        (120, Event::Wakeup { task, cpu, why: Why::Unknown }),
        (
            130,
            Event::BalanceDue {
                cpu,
                jiffies: 500,
                next_balance: 503,
                domains: [(490, 8), (480, 16)],
            },
        ),
        (130, Event::BalanceLook { cpu, level: 1, idle: IdleType::NewlyIdle, failed: 3 }),
        (150, Event::IdleSelect { cpu: CpuId(0), select }),
        (261, Event::Tick { cpu: CpuId(0) }),
        (262, Event::CfsUtilEst { cpu, util_est: Util(77) }),
        (263, Event::FreqLook { cpu, look: freq_look }),
        (
            263,
            Event::FreqLook { cpu: CpuId(6), look: FreqLook { since_ns: 105, ..later(600, 590) } },
        ),
        (264, Event::FreqLook { cpu: CpuId(5), look: later(700, 690) }),
        (265, Event::FreqLook { cpu, look: FreqLook { since_ns: 50, ..later(800, 790) } }),
        (266, Event::Prio { task, prio: -1 }),
        (266, Event::Wakeup { task, cpu, why: Why::Unknown }),
        (267, entity(Place { vruntime: 21, ..Place::default() })),
        (267, Event::Deadline { task, runtime: 33, left: 410 }),
    ];
    let text = |(at, e): &(u64, Event)| (*at, format!("{e:?}"));
    let seen = shown(true);
    let freq = |e: &(u64, String)| e.1.starts_with("Freq {");
    let without: Vec<_> = seen.iter().filter(|e| !freq(e)).cloned().collect();
    assert_eq!(without, wanted.iter().map(text).collect::<Vec<_>>());

    let ordinary = |e: &(u64, String)| {
        ["Freq {", "TaskNew", "Switch", "Wakeup"].iter().any(|kind| e.1.starts_with(kind))
    };
    let rest: Vec<_> = seen.into_iter().filter(ordinary).collect();
    assert_eq!(shown(false), rest, "nothing else is told where it is not asked for");
}

/// An ordinary run tells them only to who writes a file to look at.
#[test]
fn priorities_are_told_to_who_shows_them() {
    struct Shows(Vec<(u64, i32)>);
    impl TraceSink for Shows {
        fn header(&mut self, _: &Header) {}
        fn event(&mut self, at: Instant, event: &Event) {
            if let Event::Prio { prio, .. } = *event {
                self.0.push((at.0, prio));
            }
        }
        fn end(&mut self, _: Instant) {}
        fn listens(&self) -> Hears {
            Hears::Attributes
        }
    }
    let mut shows = Shows(Vec::new());
    let rig = Rig::answering("priorities", &answer());
    rig.vm.run(&experiment("linux-7.2"), &mut shows).unwrap();
    assert_eq!(shows.0, [(0, 120), (120, 98), (266, -1)]);
}

#[test]
fn jiffies_are_counted_from_the_freshest_tick() {
    let due = |jiffies, ticked| Due { jiffies, ticked, next: 0, domains: [(0, 0); 2] };
    // The second is right behind tick 102; the first CPU has not ticked since 100; the last one knows.
    let mut all = [(10_390, due(100, true)), (10_205, due(102, true)), (10_500, due(7, false))];
    count_jiffies(all.iter_mut().map(|(at, due)| (*at, due)), 100);
    assert_eq!(all.map(|(_, due)| due.jiffies), [103, 102, 7]);
}

#[test]
fn an_ordinary_run_asks_for_nothing_more() {
    let e = experiment("linux-7.2");
    let job = |decisions| {
        plan::plan(&e, &risetime_sim::catalogue(), &[], plan::How { decisions, ..AS_IT_IS })
            .unwrap()
            .job
    };
    let (ordinary, full) = (job(false), job(true));
    assert!(!ordinary.kprobes && full.kprobes);
    assert!(!ordinary.to_text().contains("kprobes"));
    // What the start hangs on besides, where there is such a variable.
    let or_not = |p: &&String| p.contains('|');
    let or_not: Vec<&String> = ordinary.probes.iter().filter(or_not).collect();
    assert!(or_not.len() == 1 && or_not[0].starts_with("f:rt_before/menu "), "{or_not:?}");
    assert_eq!(or_not[0].matches('|').count(), 9, "{or_not:?}");
    assert_eq!((ordinary.events.len(), ordinary.probes.len()), (6, 9));
    let rest = risetime_job::job::Job {
        kprobes: false,
        events: ordinary.events.clone(),
        probes: ordinary.probes.clone(),
        ..full.clone()
    };
    assert_eq!(rest, ordinary);
    assert_eq!(risetime_job::job::Job::parse(&full.to_text()), Ok(full));
}

/// Kernels before 6.14 take probes as kprobes alone, which cost more: what happens often is then not asked for.
#[test]
fn an_ordinary_run_asks_older_kernels_for_what_is_rare() {
    let workload = Workload::load("rampup").unwrap().bind(&Platform::load("m1").unwrap()).unwrap();
    let (v, rare, ordinary) = (KernelRev::new, "t:rt_rare/cap ", "t:rt/cap ");
    for (rev, name) in
        [(v(6, 1), rare), (v(6, 12), rare), (v(6, 14), ordinary), (v(7, 3), ordinary)]
    {
        let all = asked::probes(wanted(&workload, false), rev);
        let of = |what: &str| all.iter().filter(|p| p.starts_with(what)).count();
        assert_eq!((of(ordinary) + of("t:rt_rare/"), of(name)), (1, 1), "{rev}");
        // Where a variable cannot be read, what stands for it is.
        let looks = all.iter().find(|p| p.starts_with(name)).unwrap();
        assert_eq!(looks.contains(" ticked="), name == rare, "{rev}");
        assert_eq!(of("f:rt_before/menu "), 1, "{rev}");
    }
}

/// 6.1 refuses a probe for the name of one argument: a letter, or `_`, then those and digits.
#[test]
fn every_argument_of_a_probe_has_a_name_that_kernels_take() {
    let text = r#"{"tasks": {"t": {"taskgroup": "/a/b", "run": 1000}}}"#;
    let workload = Workload::parse(text, "made").unwrap();
    let workload = workload.bind(&Platform::load("m1").unwrap()).unwrap();
    let v = KernelRev::new;
    for rev in [v(6, 1), v(6, 12), v(6, 14), v(7, 2), v(7, 3)] {
        let all = asked::probes(wanted(&workload, true), rev);
        for probe in &all {
            for argument in probe.split_whitespace().skip(2) {
                let (name, _) = argument.split_once('=').expect("an argument");
                let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let good =
                    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit());
                assert!(good, "{rev}: {name} in {probe}");
            }
        }
        assert_eq!(rev < KernelRev::V7_3, all.iter().any(|p| p.contains(" g1css=")), "{rev}");
    }
}

#[test]
fn each_release_is_asked_where_it_can_answer() {
    let workload = Workload::load("rampup").unwrap();
    let of = |rev| {
        let platform = Platform::load("m1").unwrap();
        asked::probes(wanted(&workload.bind(&platform).unwrap(), true), rev)
    };
    let has = |rev, start: &str| of(rev).iter().any(|p| p.starts_with(start));
    let v = KernelRev::new;
    for (rev, queued, switch, resched) in [
        (
            v(6, 1),
            "f:rt/queued check_preempt_wakeup ",
            "f:rt/switch psi_task",
            "f:rt/resched_curr ",
        ),
        (v(6, 12), "f:rt/queued enqueue_task_fair%", "f:rt/switch psi_task", "f:rt/resched_curr "),
        (v(6, 18), "f:rt/queued enqueue_task_fair%", "t:rt/switch sched_", "t:rt/resched "),
        (v(7, 3), "f:rt/queued enqueue_task_fair%", "t:rt/switch sched_", "t:rt/resched "),
    ] {
        for start in [queued, switch, resched, "f:rt/menu ", "f:rt/menu_ret ", "f:rt/look "] {
            assert!(has(rev, start), "{rev}: {start}");
        }
        assert!(!has(rev, "f:rt_before/"), "{rev}: asked for to the end");
    }
}
