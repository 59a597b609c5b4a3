//! What a job file says, read and written.

use super::*;

fn full() -> Job {
    let attr = Attr {
        cpus: Some(vec![0, 4]),
        policy: Some(Policy::Deadline([3, 4, 5], true)),
        nice: Some(-5),
        uclamp_min: Some(0),
        uclamp_max: Some(1024),
        group: Some(2),
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
                attr: Attr { policy: Some(Policy::Fifo(99)), ..Attr::default() },
                events: vec![
                    Event::Run(1),
                    Event::Runtime(2),
                    Event::Sleep(3),
                    Event::Timer { timer: 4, shared: false, absolute: false, period: u64::MAX },
                    Event::Timer { timer: 0, shared: true, absolute: true, period: 1 },
                    Event::Timer { timer: 0, shared: true, absolute: false, period: 1 },
                    Event::Timer { timer: 0, shared: false, absolute: true, period: 1 },
                    Event::Busy(5),
                    Event::Yield,
                    Event::Lock(6),
                    Event::Unlock(7),
                    Event::Wait(8, 9),
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
                events: vec![Event::Run(1)],
                ..Phase::default()
            }],
            ..Task::default()
        }],
        groups: vec![
            Cgroup { path: "/a".into(), weight: 300, period_us: 100_000, ..Cgroup::default() },
            Cgroup {
                path: "/a/b c".into(),
                quota_us: Some(30_000),
                period_us: 50_000,
                burst_us: 5,
                uclamp_min: 1,
                uclamp_max: 700,
                idle: true,
                ..Cgroup::default()
            },
        ],
        hotplug: vec![Hotplug { at_ns: 5, cpu: 3, online: false }],
        objects: Objects { mutexes: 1, conds: 2, semaphores: 3, timers: 4, barriers: vec![2, 3] },
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
        Policy::Other(0),
        Policy::Batch(100_000),
        Policy::Idle,
        Policy::Fifo(1),
        Policy::Rr(99),
        Policy::Deadline([1, 2, u64::MAX], false),
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
