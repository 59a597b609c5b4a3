//! Workloads of the set's experiments: rt-app JSON, each text a file of its own if somebody wants
//! to run it alone.
//!
//! ```text
//! FIXED  what everybody asks about: ramps from four start states, periodic light and heavy,
//!        tasks that compete, clamps, limited frequencies, frames in two tasks, real-time and deadline tasks beside fair
//!        ones, spinners of unequal weight, task groups with weights and quota, bound tasks, a CPU that
//!        goes and comes back; on equal CPUs and on two kinds of them
//! drawn  as many again, platform, kind, numbers and a setting drawn from a seed: nobody chose them
//! ```

use super::set::Case;

/// Platforms on which the drawn half runs. One, two and three kinds of CPU, policies of one CPU and
/// of many.
const DRAWN_ON: [&str; 6] = ["m1", "laptop4", "pixel6", "hikey960", "juno", "rpi4"];

/// Cases that fail more than two of the six checks in a mode, or do from some start phase, and why:
/// by name, so that nobody takes the set for more than it is. `--experiment` still runs them.
pub const OUTSIDE: &[(&str, &str)] = &[
    (
        "laptop4/quota",
        "3 to 5 checks by the start phase: at the edge of a quota a tick decides about a period",
    ),
    ("juno/quota", "3 to 6 checks by the start phase: as laptop4/quota"),
    ("m1/frames", "4 to 6 checks: the waking task's frequency lasts some µs there"),
    (
        "rpi4/round-robin",
        "3 to 6 checks by the start phase: the fair task beside has so few ticks that one decides",
    ),
    (
        "laptop4/group-nested",
        "a tick lasts 0.2 ms there, the second task begins later by it, and turns follow from that",
    ),
    ("m1/lock", "a lock is passed on in no time here: who waits for it sleeps at other moments"),
    ("m1/fork", "RCU keeps the tick there where a task has exited, and so a shallow idle state"),
    (
        "pixel6/heavy",
        "2 to 6 checks by the start phase: a PELT period of its small CPUs lasts up to 39 ms",
    ),
    (
        "pixel6/deadline",
        "2 to 6 checks by the start phase: a PELT period of its small CPUs lasts up to 39 ms",
    ),
    (
        "pixel6/frames",
        "the same CPUs for 70 ms, then a choice between two that cost nearly the same",
    ),
    (
        "rpi4/nice",
        "free, 3 to 4 checks by the start phase, given 5 to 6: one tick's place decides about the first OPP",
    ),
    (
        "rpi4/hotplug",
        "free, 2 to 4 checks by the start phase, given 3 to 6: the task beside waits a tick longer or less",
    ),
    (
        "rpi4/spinners",
        "a CPU balances a tick later there, before jiffies is updated, and moves a task",
    ),
];

fn is_outside(case: &Case) -> bool {
    OUTSIDE.iter().any(|(name, _)| *name == case.name)
}

/// The set: the fixed half, and as many drawn from `seed`, without what is [`OUTSIDE`].
pub fn set(seed: u64) -> Vec<Case> {
    all(seed).into_iter().filter(|case| !is_outside(case)).collect()
}

/// The experiments that are [`OUTSIDE`] the set.
pub fn outside(seed: u64) -> Vec<Case> {
    all(seed).into_iter().filter(is_outside).collect()
}

fn all(seed: u64) -> Vec<Case> {
    let mut all = fixed();
    let mut draw = Draw(seed);
    for i in 0..all.iter().filter(|case| !is_outside(case)).count() {
        all.push(drawn(&mut draw, seed, i));
    }
    all
}

/// A ramp after naps: `run` µs of work before each of `naps` sleeps of `sleep` µs.
fn ramp(naps: u64, run: u64, sleep: u64) -> String {
    format!(
        r#"{{"tasks": {{"ramp": {{"loop": 1, "phases": {{
  "nap": {{"loop": {naps}, "run": {run}, "sleep": {sleep}}},
  "busy": {{"loop": -1, "run": 1000000}}}}}}}}}}"#
    )
}

/// `run` µs of work every `period` µs: the body of a task.
fn every(run: u64, period: u64) -> String {
    format!(r#""loop": -1, "run": {run}, "timer": {{"ref": "unique", "period": {period}}}"#)
}

/// Writes a workload of these named tasks with their bodies.
fn tasks(tasks: &[(&str, String)]) -> String {
    let each: Vec<_> =
        tasks.iter().map(|(name, body)| format!("  \"{name}\": {{{body}}}")).collect();
    format!("{{\"tasks\": {{\n{}}}}}", each.join(",\n"))
}

/// A task that never sleeps: the body.
fn spin(nice: i64) -> String {
    format!(r#""priority": {nice}, "loop": -1, "run": 1000000"#)
}

/// A frame in two steps: one task begins it every 16.667 ms and wakes the other.
fn frames(app: u64, render: u64) -> String {
    format!(
        r#"{{"tasks": {{
  "app": {{"loop": -1, "run": {app}, "lock": "m", "signal": "frame", "unlock": "m",
    "timer": {{"ref": "unique", "period": 16667}}}},
  "render": {{"loop": -1, "lock": "m", "wait": {{"ref": "frame", "mutex": "m"}}, "unlock": "m", "run": {render}}}}}}}"#
    )
}

/// A frame in as many steps as `steps` names: the first begins it every `period` µs, each resumes
/// the next.
fn pipeline(steps: &[u64], period: u64) -> String {
    let names = ["app", "render", "compose"];
    let step = |(i, run): (usize, &u64)| {
        let begin = if i == 0 { String::new() } else { format!(r#""suspend": "{}", "#, names[i]) };
        let next = names[..steps.len()].get(i + 1);
        let next = next.map_or(String::new(), |n| format!(r#", "resume": "{n}""#));
        let timer = if i == 0 {
            format!(r#", "timer": {{"ref": "unique", "period": {period}}}"#)
        } else {
            String::new()
        };
        (names[i], format!(r#""loop": -1, {begin}"run": {run}{next}{timer}"#))
    };
    tasks(&steps.iter().enumerate().map(step).collect::<Vec<_>>())
}

/// A workload of these `tasks`, with CPU 3 offline from 300 to 700 ms.
fn without_3(tasks: &str) -> String {
    format!(
        r#"{{"global": {{"hotplug": [{{"at_us": 300000, "cpu": 3, "online": 0}},
  {{"at_us": 700000, "cpu": 3, "online": 1}}]}},
 {}"#,
        tasks.trim_start_matches('{')
    )
}

/// A real-time task: the body.
fn real_time(policy: &str, priority: u64, run: u64, period: u64) -> String {
    format!(r#""policy": "{policy}", "priority": {priority}, {}"#, every(run, period))
}

/// A deadline task that has reserved 4 ms of 20 and wants `run` of `period`, in µs.
fn reserved(run: u64, period: u64) -> String {
    let attr = r#""policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 20000"#;
    format!("{attr}, {}", every(run, period))
}

/// Two tasks that hold one lock for most of their work.
const LOCK: &str = r#"{"tasks": {
  "a": {"loop": -1, "run": 1500, "lock": "m", "run": 2500, "unlock": "m", "timer": {"ref": "unique", "period": 12000}},
  "b": {"loop": -1, "run": 700, "lock": "m", "run": 2500, "unlock": "m", "timer": {"ref": "unique", "period": 9000}}}}"#;
/// A task whose jobs fork children of three jobs each.
const FORK: &str = r#"{"tasks": {
  "parent": {"loop": -1, "run": 4000, "fork": "child", "run": 2000, "timer": {"ref": "unique", "period": 60000}},
  "child": {"instance": 0, "loop": 3, "run": 5000, "sleep": 4000}}}"#;
/// A fair task below a real-time one that never sleeps.
const STARVED: &str = r#"{"tasks": {
  "fair": {"cpus": [0], "loop": -1, "run": 1000000},
  "fifo": {"cpus": [0], "policy": "SCHED_FIFO", "priority": 5, "delay": 20000, "loop": -1,
    "run": 1000000}}}"#;
/// Two groups of different weights on one CPU.
const WEIGHTS: &str = r#"{"taskgroups": {"/a": {"weight": 100}, "/b": {"weight": 300}}, "tasks": {
  "a": {"taskgroup": "/a", "cpus": [0], "loop": -1, "run": 1000000},
  "b": {"taskgroup": "/b", "cpus": [0], "loop": -1, "run": 1000000}}}"#;
/// Groups in a group, beside a task of the root.
const WEIGHTS_NESTED: &str = r#"{"taskgroups": {"/a": {"weight": 200}, "/a/x": {"weight": 100}, "/a/y": {"weight": 300}}, "tasks": {
  "x": {"taskgroup": "/a/x", "cpus": [0], "loop": -1, "run": 1000000},
  "y": {"taskgroup": "/a/y", "cpus": [0], "loop": -1, "run": 3000, "timer": {"ref": "unique", "period": 12000}},
  "z": {"cpus": [0], "loop": -1, "run": 500, "sleep": 2000}}}"#;
/// A group that is clamped up and one that is clamped down.
const CLAMPS: &str = r#"{"taskgroups": {"/ui": {"uclamp_min": 500}, "/bg": {"uclamp_max": 200}}, "tasks": {
  "ui": {"taskgroup": "/ui", "loop": -1, "run": 1500, "timer": {"ref": "unique", "period": 16000}},
  "bg": {"taskgroup": "/bg", "delay": 3000, "loop": -1, "run": 4000, "sleep": 5000}}}"#;
/// A group whose quota is used up in each period.
const QUOTA: &str = r#"{"taskgroups": {"/limited": {"quota_us": 30000, "period_us": 100000}}, "tasks": {
  "busy": {"taskgroup": "/limited", "loop": -1, "run": 1000000},
  "frame": {"loop": -1, "run": 2000, "timer": {"ref": "unique", "period": 16000}}}}"#;
/// A group with a quota in one with another.
const NESTED: &str = r#"{"taskgroups": {
  "/a": {"quota_us": 30000, "period_us": 100000}, "/a/b": {"quota_us": 12000, "period_us": 30000}},
 "tasks": {"inner": {"taskgroup": "/a/b", "loop": -1, "run": 1000000}}}"#;
/// A group with a quota that saves up for its jobs.
const BURST: &str = r#"{"taskgroups": {"/a": {"quota_us": 10000, "period_us": 50000, "burst_us": 10000}},
 "tasks": {"a": {"taskgroup": "/a", "loop": -1, "run": 15000,
  "timer": {"ref": "unique", "period": 120000}}}}"#;

/// A workload of two tasks under SCHED_RR whose jobs take longer than a time slice. The creator, a fair task, gets to create the
/// second one when the first one sleeps: from the second period on they compete.
fn round_robin() -> String {
    let round = |period: u64| {
        let body = every(250_000, period);
        format!(r#""cpus": [0], "policy": "SCHED_RR", "priority": 5, {body}"#)
    };
    tasks(&[("fair", every(2_000, 16_000)), ("one", round(700_000)), ("two", round(600_000))])
}

/// A task that may use two CPUs, of which a real-time task takes a third of one, and later of the other one.
fn rt_capacity() -> String {
    let takes = |cpu: u64, delay: u64, times: i64| {
        format!(
            r#""cpus": [{cpu}], "policy": "SCHED_FIFO", "priority": 10, "delay": {delay}, "loop": {times}, "run": 3000, "timer": {{"ref": "unique", "period": 10000}}"#
        )
    };
    tasks(&[
        ("frame", format!(r#""cpus": [4, 5], {}"#, every(8_000, 16_000))),
        ("first", takes(4, 200_000, 35)),
        ("then", takes(5, 600_000, -1)),
    ])
}

fn fixed() -> Vec<Case> {
    let case = |name: &str, settings: &str, ms: u64, workload: String| Case {
        name: name.into(),
        platform: name.split('/').next().unwrap_or_default().into(),
        settings: settings.into(),
        workload,
        ms,
        wanted: 4,
    };
    let one = |body: String| tasks(&[("frame", body)]);
    let two = tasks(&[("busy", format!(r#""instance": 2, {}"#, spin(0)))]);
    let on_0 = |body: String| format!(r#""cpus": [0], {body}"#);
    let pinned = tasks(&[("short", on_0(every(1_000, 16_000))), ("long", on_0(spin(0)))]);
    let deadline = tasks(&[("frame", every(3_000, 16_000)), ("dl", reserved(3_000, 20_000))]);
    // The task wants 6 ms at once and has reserved 4.
    let overrun = tasks(&[
        ("frame", format!(r#""cpus": [0], {}"#, every(5_000, 17_000))),
        ("dl", reserved(6_000, 40_000)),
    ]);
    // As before, but the task may have what others leave.
    let reclaim =
        overrun.replace(r#""dl-period": 20000"#, r#""dl-period": 20000, "dl-reclaim": true"#);
    let many = tasks(&[("busy", format!(r#""instance": 8, {}"#, spin(0)))]);
    let beside = tasks(&[
        ("busy", format!(r#""cpus": [1, 3], {}"#, spin(0))),
        ("frame", format!(r#""cpus": [1, 3], {}"#, every(4_000, 40_000))),
    ]);
    let pushed = tasks(&[
        ("busy", format!(r#""cpus": [3], {}"#, spin(0))),
        ("late", format!(r#""delay": 400000, {}"#, every(3_000, 20_000))),
    ]);
    let homeless = tasks(&[
        ("busy", format!(r#""cpus": [1, 2], {}"#, spin(0))),
        ("frame", format!(r#""cpus": [3], {}"#, every(4_000, 40_000))),
    ]);
    let rt = tasks(&[("ramp", spin(0)), ("fifo", real_time("SCHED_FIFO", 10, 2_000, 10_000))]);
    let push = tasks(&[
        ("low", real_time("SCHED_FIFO", 5, 20_000, 30_000)),
        ("high", format!(r#""cpus": [0], {}"#, real_time("SCHED_FIFO", 10, 1_000, 7_000))),
    ]);
    let nice =
        tasks(&[("high", on_0(spin(-5))), ("low", on_0(spin(3))), ("short", every(2_000, 16_000))]);
    let bound = tasks(&[
        ("big", format!(r#""cpus": [1, 2], {}"#, every(5_000, 16_000))),
        ("little", format!(r#""cpus": [0, 3], {}"#, every(1_500, 12_000))),
    ]);
    vec![
        case("m1/ramp-cold", "", 1500, ramp(60, 1, 10_000)),
        case("m1/ramp-fresh", "", 800, one(spin(0))),
        case("m1/ramp-slept", "+rate_limit_us=10000", 1500, ramp(2, 40_000, 150_000)),
        case("m1/light", "", 1000, one(every(1_000, 16_000))),
        case("m1/two-ramps", "", 800, two),
        case("m1/clamp-min", "+uclamp_min=600", 1200, ramp(30, 1, 10_000)),
        case("m1/clamp-max", "+uclamp_max=300", 1500, ramp(30, 1, 10_000)),
        case(
            "m1/max-freq",
            "+scaling_max_freq.policy0=1500000+scaling_max_freq.policy4=1200000",
            1500,
            ramp(40, 800, 10_000),
        ),
        case("m1/deadline", "", 1000, deadline.clone()),
        case("laptop4/two-on-one", "", 1000, pinned),
        case("m1/frames", "", 1000, frames(1_000, 2_000)),
        case("laptop4/lock", "", 1000, LOCK.into()),
        case("laptop4/fork", "", 1000, FORK.into()),
        case("laptop4/starved", "", 3000, STARVED.into()),
        case("laptop4/group-weights", "", 1000, WEIGHTS.into()),
        case("laptop4/group-nested", "", 1000, WEIGHTS_NESTED.into()),
        case("m1/group-clamps", "", 1000, CLAMPS.into()),
        case("pixel6/ramp-cold", "", 1500, ramp(40, 1, 10_000)),
        case("pixel6/heavy", "", 1000, one(every(7_000, 16_667))),
        case("pixel6/frames", "", 1000, pipeline(&[2_000, 4_000, 1_000], 16_667)),
        case("pixel6/deadline", "", 1000, deadline),
        case("m1/lock", "", 1000, LOCK.into()),
        case("m1/fork", "", 1000, FORK.into()),
        case("hikey960/ramp-warm", "", 1200, ramp(40, 800, 10_000)),
        case("hikey960/heavy", "", 1000, one(every(7_000, 16_667))),
        case("hikey960/rt-beside", "", 1000, rt.clone()),
        case("juno/bound", "", 1000, bound),
        case("juno/pipeline", "", 1000, pipeline(&[2_000, 3_000], 16_667)),
        case("laptop4/rt-beside", "", 1000, rt),
        // Where each real-time job falls on a frame, and so its frequency, is another matter from start to start.
        Case { wanted: 3, ..case("m1/rt-capacity", "", 1000, rt_capacity()) },
        case("rpi4/round-robin", "", 1500, round_robin()),
        case("rpi4/nice", "", 1000, nice),
        case("rpi4/spinners", "", 1000, many),
        case("laptop4/quota", "", 1500, QUOTA.into()),
        case("juno/quota", "", 1500, QUOTA.into()),
        case("laptop4/nested-quota", "", 1500, NESTED.into()),
        case("m1/burst", "+uclamp_min=1024", 1500, BURST.into()),
        case("rpi4/overrun", "+scaling_min_freq=1500000", 1000, overrun),
        case("rpi4/reclaim", "+scaling_min_freq=1500000", 1000, reclaim),
        case("rpi4/rt-push", "", 1000, push),
        case("rpi4/hotplug", "", 1200, without_3(&beside)),
        case("zcu102/pushed-off", "", 1200, without_3(&pushed)),
        case("zcu102/hotplug", "", 1200, without_3(&homeless)),
    ]
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `low..=high`.
    fn of(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

fn drawn(draw: &mut Draw, seed: u64, index: usize) -> Case {
    let platform = DRAWN_ON[draw.of(0, DRAWN_ON.len() as u64 - 1) as usize];
    let mut ms = 1200;
    let workload = match draw.of(0, 7) {
        0 => {
            let (naps, run, sleep) = (draw.of(20, 60), draw.of(1, 3_000), draw.of(5_000, 20_000));
            // The slowest CPU needs some eight times as long.
            ms = (naps * (8 * run + sleep) / 1000 + 600).min(2_500);
            ramp(naps, run, sleep)
        }
        1 => tasks(&[("frame", every(draw.of(500, 9_000), draw.of(10_000, 40_000)))]),
        2 => two(draw, false),
        3 => two(draw, true),
        4 => pipeline(&[draw.of(500, 4_000), draw.of(500, 4_000), draw.of(500, 2_000)], 16_667),
        5 => {
            let rt = real_time(
                "SCHED_FIFO",
                draw.of(1, 90),
                draw.of(300, 2_500),
                draw.of(8_000, 30_000),
            );
            let fair = every(draw.of(500, 6_000), draw.of(10_000, 30_000));
            tasks(&[("fair", fair), ("fifo", rt)])
        }
        6 => {
            // One CPU, unequal weights.
            let (one, two) = (draw.of(0, 10) as i64 - 5, draw.of(0, 10) as i64 - 5);
            let on_0 = |nice| format!(r#""cpus": [0], {}"#, spin(nice));
            tasks(&[("one", on_0(one)), ("two", on_0(two))])
        }
        _ => grouped(draw),
    };
    let settings = match draw.of(0, 4) {
        0 => format!("+rate_limit_us={}", draw.of(0, 20_000)),
        1 => format!("+uclamp_min={}", draw.of(0, 1024)),
        2 => format!("+uclamp_max={}", draw.of(0, 1024)),
        _ => String::new(),
    };
    Case {
        name: format!("{platform}/drawn-{seed}-{}", index + 1),
        platform: platform.into(),
        settings,
        workload,
        ms,
        wanted: 4,
    }
}

/// Draws two periodic tasks, the second later than the first; on one CPU if `pinned`.
fn two(draw: &mut Draw, pinned: bool) -> String {
    let cpus = if pinned { r#""cpus": [0], "# } else { "" };
    let mut task = |delay: u64| {
        let (run, period, nice) = (draw.of(500, 6_000), draw.of(8_000, 30_000), draw.of(0, 5));
        format!(r#"{cpus}"delay": {delay}, "priority": {nice}, {}"#, every(run, period))
    };
    tasks(&[("first", task(0)), ("second", task(3_000))])
}

/// Draws two groups of different weight on one CPU: a task that never sleeps in one, a periodic one
/// in the other.
fn grouped(draw: &mut Draw) -> String {
    let (a, b) = (draw.of(20, 500), draw.of(20, 500));
    let (run, period) = (draw.of(500, 5_000), draw.of(8_000, 30_000));
    format!(
        r#"{{"taskgroups": {{"/a": {{"weight": {a}}}, "/b": {{"weight": {b}}}}}, "tasks": {{
  "a": {{"taskgroup": "/a", "cpus": [0], {}}},
  "b": {{"taskgroup": "/b", "cpus": [0], {}}}}}}}"#,
        every(run, period),
        spin(0)
    )
}
