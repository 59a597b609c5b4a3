//! Tests of job files, read and written.

use super::*;

fn deadline(times: [u64; 3], reclaim: bool) -> Policy {
    let [runtime, deadline, period] = times.map(Span);
    Policy::Deadline { runtime, deadline, period, reclaim }
}

fn timer(index: u32, shared: bool, absolute: bool, period: u64) -> Event {
    Event::Timer { timer: Timer { index, shared, absolute }, period: Span(period) }
}

fn full() -> Job {
    let attr = Attr {
        cpus: Some(vec![0, 4]),
        policy: Some(deadline([3, 4, 5], true)),
        nice: Some(-5),
        uclamp_min: Some(0),
        uclamp_max: Some(1024),
        group: Some(2),
    };
    Job {
        idle: vec![vec![[0, 1000], [300_000, 2_900_000]], vec![]],
        duration_ns: 1,
        phase_ns: 2,
        tick_ns: 4_000_000,
        first_cpu: 3,
        settle_ns: 5,
        buffer_kb: 6,
        timer_slack_ns: 50_000,
        kprobes: true,
        linger_ns: 7,
        cpus: vec![Cpu { capacity: 459, freq_max_khz: 2_064_000, policy: 0 }],
        modules: vec!["/a b.ko".into()],
        set: vec![("/sys/x".into(), "100% of\n".into()), ("/sys/y".into(), String::new())],
        read: vec!["/proc/ä".into()],
        probes: vec!["t:rt/x y pid=+{a.b-a.c}($arg1):s32".into()],
        events: vec!["sched/sched_switch".into()],
        tasks: vec![Task {
            comm: "end".into(),
            delay: Span(8),
            repeat: Repeat::Forever,
            stage: Stage { input: Some(Link::Cond(3)), output: Some(Link::Barrier(4)) },
            logs: true,
            attr: attr.clone(),
            phases: vec![Phase {
                name: "*".into(),
                repeat: Repeat::Times(9),
                attr: Attr { policy: Some(Policy::Fifo { priority: 99 }), ..Attr::default() },
                events: vec![
                    Event::Run(Span(1)),
                    Event::Runtime { time: Span(2), piece: Span(7) },
                    Event::Sleep(Span(3)),
                    timer(4, false, false, u64::MAX),
                    timer(0, true, true, 1),
                    timer(0, true, false, 1),
                    timer(0, false, true, 1),
                    Event::Busy(Span(5)),
                    Event::Duty(40),
                    Event::Yield,
                    Event::Lock(6),
                    Event::Unlock(7),
                    Event::Wait { cond: 8, mutex: 9 },
                    Event::Signal(10),
                    Event::Broadcast(11),
                    Event::Barrier(12),
                    Event::SemWait(13),
                    Event::SemPost(14),
                    Event::Fork(15),
                ],
            }],
        }],
        forked: vec![Task {
            comm: "cc".into(),
            phases: vec![Phase {
                name: "p".into(),
                events: vec![Event::Run(Span(1))],
                ..Phase::default()
            }],
            ..Task::default()
        }],
        groups: vec![
            TaskGroup { weight: 300, ..TaskGroup::new("/a".into()) },
            TaskGroup {
                quota: Some(Span(30_000)),
                period: Span(50_000),
                burst: Span(5),
                uclamp_min: Util(1),
                uclamp_max: Util(700),
                idle: true,
                ..TaskGroup::new("/a/b c".into())
            },
        ],
        partitions: vec![vec![1], vec![2, 3]],
        hotplug: vec![Hotplug { at: Span(5), cpu: CpuId(3), online: false, place: (0, 0) }],
        objects: Objects {
            mutexes: 1,
            conds: 2,
            semaphores: 3,
            timers: 4,
            barriers: vec![2, 3],
            pi: true,
        },
    }
}

#[test]
fn a_job_survives_as_text() {
    let text = full().to_text();
    assert_eq!(Job::parse(&text), Ok(full()), "{text}");
    assert_eq!(Job::parse(&Job::default().to_text()), Ok(Job::default()));
}

#[test]
fn every_policy_survives_as_text() {
    for policy in [
        Policy::Other { slice: None },
        Policy::Batch { slice: Some(Span(100_000)) },
        Policy::Idle,
        Policy::High { slice: Some(Span(100_000)) },
        Policy::Fifo { priority: 1 },
        Policy::Rr { priority: 99 },
        deadline([1, 2, u64::MAX], false),
    ] {
        let mut job = full();
        job.tasks[0].attr.policy = Some(policy);
        job.tasks[0].phases[0].attr.policy = Some(policy);
        assert_eq!(Job::parse(&job.to_text()), Ok(job), "{policy}");
    }
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
    let of = |body: &str| Job::parse(&format!("{MAGIC}\n{body}\nend\n")).unwrap_err().to_string();
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
    for text in ["", "%", " ", "a b", "tab\tend\n", "\u{2003}", "\u{85}", "%20", "ä*-1", "\0"] {
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
