//! Task sets in and out: PARTSim's YAML, rt-app JSON, and what a user is told where a file is wrong.

use crate::common::{check_transcript, entry};
use crate::draws;
use proptest::prelude::*;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::taskset::{Resource, ResourceKind, RtTask, Scheduling, Server, Step, TaskSet};
use risetime_model::{InputError, Platform, Workload};

const MS: Span = Span::from_ms(1);

const GOOD: &str = "\
taskset:
  - name: begin
    iat: 100
    deadline: 80
    cbs_runtime: 30
    cbs_period: 100
    startcpu: 1
    code:
      - lock(start)
      - lock(shared)
      - fixed(20,encrypt);
      - unlock(shared)
      - unlock(edge)
  - name: end
    iat: 100
    ph: 5
    code:
      - lock(edge)
      - fixed(7)
      - lock(shared)
      - unlock(shared)
      - unlock(start)
resources:
  - name: start
    initial_state: unlocked
  - name: edge
    initial_state: locked
  - name: shared
    initial_state: unlocked
";

fn read(text: &str) -> Result<TaskSet, InputError> {
    TaskSet::parse_partsim(text, "my.yml", MS)
}

#[test]
fn a_partsim_file_is_read() {
    let set = read(GOOD).expect("good");
    let ms = Span::from_ms;
    let kinds: Vec<_> = set.resources.iter().map(|r| r.kind).collect();
    // `start` is taken by one task and given by another: it counts.
    assert_eq!(
        kinds,
        [ResourceKind::Semaphore(1), ResourceKind::Semaphore(0), ResourceKind::Mutex]
    );
    let begin = &set.tasks[0];
    assert_eq!((begin.period, begin.deadline, begin.offset), (ms(100), ms(80), ms(0)));
    let server = Server { runtime: ms(30), deadline: ms(100), period: ms(100) };
    assert_eq!((begin.server, begin.cpus.as_deref()), (Some(server), Some(&[CpuId(1)][..])));
    let run = Step::Run(ms(20), Some("encrypt".into()));
    assert_eq!(begin.code, [Step::Take(0), Step::Lock(2), run, Step::Unlock(2), Step::Give(1)]);
    assert_eq!((set.tasks[1].deadline, set.tasks[1].offset), (ms(100), ms(5)));
    // What is there at first says nothing of who goes first in a period.
    assert_eq!(set.edges(), [(0, 1)]);
    assert_eq!(set.needs().tasks[0].kinds, [("encrypt".to_string(), ms(20))]);
}

/// Written as rt-app JSON and read again it is the same set, but for what only one of both says.
fn again(set: &TaskSet, how: Scheduling, lead: Option<Span>) -> TaskSet {
    let text = set.to_rtapp(how, lead).expect("it can be written");
    let workload = Workload::parse(&text, "set.json").unwrap_or_else(|e| panic!("{e}\n{text}"));
    TaskSet::of_workload(&workload).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Names for numbers, so that resources may stand in any order.
fn told(set: &TaskSet) -> Vec<String> {
    let name = |r: &usize| format!("{:?}", set.resources[*r]);
    let step = |s: &Step| match s {
        Step::Run(work, kind) => format!("run {} {kind:?}", work.0),
        Step::Time(time) => format!("runtime {}", time.0),
        Step::Lock(r) => format!("lock {}", name(r)),
        Step::Unlock(r) => format!("unlock {}", name(r)),
        Step::Take(r) => format!("take {}", name(r)),
        Step::Give(r) => format!("give {}", name(r)),
    };
    let task = |t: &RtTask| {
        let code: Vec<String> = t.code.iter().map(step).collect();
        let RtTask { name, period, deadline, offset, server, cpus, .. } = t;
        format!("{name} {period:?} {deadline:?} {offset:?} {server:?} {cpus:?} {code:?}")
    };
    set.tasks.iter().map(task).collect()
}

#[test]
fn partsim_to_rtapp_and_back() {
    let set = read(GOOD).expect("good");
    let mut deadline = told(&TaskSet {
        // SCHED_DEADLINE takes no mask.
        tasks: set.tasks.iter().map(|t| RtTask { cpus: None, ..t.clone() }).collect(),
        ..set.clone()
    });
    assert_eq!(told(&again(&set, Scheduling::Deadline, None)), deadline);
    deadline[0] = deadline[0].replace("Span(0)", "Span(1000000000)");
    deadline[1] = deadline[1].replace("Span(5000000)", "Span(1005000000)");
    let lead = Some(Span::from_ms(1000));
    assert_eq!(told(&again(&set, Scheduling::Deadline, lead)), deadline);
    let fifo = told(&TaskSet {
        tasks: set.tasks.iter().map(|t| RtTask { server: None, ..t.clone() }).collect(),
        ..set.clone()
    });
    for how in [Scheduling::Rm, Scheduling::Dm, Scheduling::Fifo, Scheduling::Rr] {
        assert_eq!(told(&again(&set, how, None)), fifo);
    }
}

#[test]
fn a_set_as_rtapp_json_looks_like_this() {
    let set = read(GOOD).expect("good");
    let mut said = String::new();
    for how in [Scheduling::Deadline, Scheduling::Dm] {
        said += &set.to_rtapp(how, None).expect("good");
    }
    said += &set.to_rtapp(Scheduling::Rr, Some(Span::from_ms(50))).expect("good");
    check_transcript("taskset_as_rtapp.txt", &said);
}

prop_compose! {
    fn task()(
        us in (1u64..900, 1000u64..5_000_000, 0u64..10_000),
        early in 0u64..100,
        kinds in prop::collection::vec(prop::option::of("[a-z]{1,8}"), 1..4),
        server in prop::option::of(2u64..500),
        mutex in prop::option::of(0usize..2),
    ) -> RtTask {
        let (work, period, offset) = us;
        let mut code: Vec<Step> = kinds.into_iter().map(|k| Step::Run(Span::from_us(work), k)).collect();
        if let Some(m) = mutex {
            code.insert(0, Step::Lock(m));
            code.push(Step::Unlock(m));
        }
        let period = Span::from_us(period);
        let server = server.map(|us| Server { runtime: Span::from_us(us), deadline: period, period });
        let deadline = Span::from_us(period.0 / 1000 - early);
        RtTask { period, deadline, offset: Span::from_us(offset), code, server, ..RtTask::default() }
    }
}

proptest! {
    #![proptest_config(draws::config(200))]

    #[test]
    fn sets_survive_rtapp_json(tasks in prop::collection::vec(task(), 1..8)) {
        let tasks: Vec<RtTask> = tasks
            .into_iter()
            .enumerate()
            // The period of a server is at most 2²² µs, its runtime at most its deadline.
            .map(|(i, t)| RtTask { name: format!("t{i}"), server: t.server.filter(|s| s.period.0 < 1 << 32 && s.runtime < t.deadline), ..t })
            .filter(|t| t.period.0 / 1000 <= 1 << 22 && t.work() <= t.deadline)
            .collect();
        prop_assume!(!tasks.is_empty());
        let mutex = |i| Resource { name: format!("m{i}"), kind: ResourceKind::Mutex };
        let set = TaskSet { name: "set".into(), tasks, resources: (0..2).map(mutex).collect(), notes: vec![] };
        prop_assert_eq!(told(&again(&set, Scheduling::Deadline, None)), told(&set));
        let bare = TaskSet {
            tasks: set.tasks.iter().map(|t| RtTask { server: None, ..t.clone() }).collect(),
            ..set.clone()
        };
        prop_assert_eq!(told(&again(&set, Scheduling::Dm, None)), told(&bare));
    }

    /// Whatever stands in a file, it is read or refused with a place in it.
    #[test]
    fn garbage_is_refused_in_one_line(at in 0usize..GOOD.len(), with in "[ -~\n]{0,6}", cut in 0usize..40) {
        let mut text = GOOD.to_string();
        text.replace_range(at..(at + cut).min(GOOD.len()), &with);
        if let Err(e) = read(&text) {
            prop_assert!(e.place.starts_with("my.yml"), "{e}");
            prop_assert!(!e.what.contains('\n') && !e.what.is_empty());
        }
    }
}

#[test]
fn task_sets_that_are_wrong_are_refused_with_their_place() {
    let mut said = String::new();
    let mut tell = |shown: &str, result: Result<TaskSet, InputError>| {
        said += &entry(shown, &result.expect_err(shown).to_string());
    };
    for (from, to) in [
        ("taskset:", "tasks:"),
        ("taskset:\n", "taskset: [1]\nresource:\n"),
        ("    iat: 100\n    deadline: 80", "    deadline: 80"),
        ("iat: 100", "iat: 0"),
        ("iat: 100", "iat: -3"),
        ("iat: 100", "iat: 99999999999999999999"),
        ("iat: 100", "iat: 4000000"),
        ("iat: 100", "iat: [100]"),
        ("iat: 100", "iat: 100\n    iat: 100"),
        ("iat: 100", "period: 100"),
        ("name: end", "name: begin"),
        ("name: end", "name: a/b"),
        ("name: end", "name:"),
        ("cbs_runtime: 30", "cbs_runtime: 300"),
        ("    cbs_runtime: 30\n", ""),
        ("fixed(20,encrypt)", "fixed(20,encrypt"),
        ("fixed(20,encrypt)", "fixed()"),
        ("fixed(20,encrypt)", "fixed(1.5,encrypt)"),
        ("fixed(20,encrypt)", "fixed(20,a b)"),
        ("fixed(20,encrypt)", "fixd(20,encrypt)"),
        ("fixed(20,encrypt)", "fixed(20,encrypt,3)"),
        ("fixed(20,encrypt)", "delay(unif(1,20))"),
        ("fixed(20,encrypt)", "activate(end)"),
        ("lock(shared)", "lock(share)"),
        ("initial_state: locked", "initial_state: closed"),
        ("name: edge\n", "name: start\n"),
        ("startcpu: 1", "startcpu: 4096"),
        ("taskset:\n", "taskset:\n  - &a name: x\n"),
        ("    iat", "   iat"),
        ("code:\n      - lock(edge)", "code: lock(edge)\n"),
        ("taskset:", "cpu_islands:"),
        ("taskset:", "\ttaskset:"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        tell(&format!("{from} → {to}"), read(&text));
    }
    tell("(nothing)", read(""));
    tell("[]", read("[]"));
    tell("taskset:", read("taskset:\n"));
    for json in [
        r#"{ "tasks": { "a": { "run": 5, "sleep": 5 } } }"#,
        // `runtime` is read as time (`Step::Time`); what does not take the CPU at all is not.
        r#"{ "tasks": { "a": { "sleep": 5, "timer": { "ref": "unique", "period": 100 } } } }"#,
        r#"{ "tasks": { "a": { "loop": 3, "run": 5, "timer": { "ref": "unique", "period": 100 } } } }"#,
        r#"{ "tasks": { "a": { "instance": 2, "run": 5, "timer": { "ref": "t", "period": 100 } } } }"#,
        r#"{ "tasks": { "a": { "phases": { "x": { "run": 5, "timer": { "ref": "unique", "period": 100 } },
                                           "y": { "run": 6, "timer": { "ref": "unique", "period": 100 } } } } } }"#,
        r#"{ "tasks": { "a": { "timer0": { "ref": "unique", "period": 9 }, "run": 5, "timer": { "ref": "unique", "period": 100 } } } }"#,
    ] {
        let workload = Workload::parse(json, "my.json").expect("a workload");
        tell(json, TaskSet::of_workload(&workload));
    }
    let twice = GOOD.replacen("- lock(edge)", "- lock(start)", 1);
    let set = read(&twice).expect("it is one");
    said += &entry(
        "lock(edge) → lock(start), as rt-app JSON",
        &set.to_rtapp(Scheduling::Rm, None).expect_err("two take what is there once").to_string(),
    );
    check_transcript("bad_tasksets.txt", &said);
}

const SYSTEM: &str = "\
cpu_islands:
  - name: little
    numcpus: 2
    kernel:
      scheduler: edf
      task_placement: partitioned
    volts: [0.9, 1.0]
    freqs: [500, 1000]
    base_freq: 500
    power_model: little
    speed_model: little
  - name: big
    numcpus: 1
    freqs:
      - 2000
      - 1000
    power_model: big
power_models:
  - name: little
    type: table_based
    filename: t.csv
  - name: big
    type: table_based
    filename: t.csv
";

const TABLE: &str = "\
model ,freq,workload,power,speed
little,500 ,hash    ,0.1  ,0.125
little,1000,hash    ,0.3  ,0.25
big   ,1000,hash    ,0.5  ,0.5
big   ,2000,hash    ,2.0  ,1.0
little,500 ,memory  ,0.05 ,0.9
little,1000,memory  ,0.1  ,1.25
big   ,1000,memory  ,0.4  ,0.95
big   ,2000,memory  ,1.5  ,1.0
big   ,2000,idle    ,0.1  ,1.0
";

fn system(text: &str, table: &str, plain: Option<&str>) -> Result<Platform, InputError> {
    let read = |name: &str| match name {
        "t.csv" => Ok(("t.csv".to_string(), table.to_string())),
        other => Err(InputError::new(other, "no such file")),
    };
    Platform::parse_partsim(text, "my-soc.yml", plain, &read).map(|p| p.expect("a system"))
}

#[test]
fn a_partsim_system_is_a_platform() {
    let platform = system(SYSTEM, TABLE, None).expect("good");
    assert_eq!(platform.nr_cpus(), 3);
    assert_eq!(platform.domains.iter().map(|d| d.capacity.0).collect::<Vec<_>>(), [256, 1024]);
    assert_eq!(platform.kinds().collect::<Vec<_>>(), ["memory"]);
    let of = |d: usize| platform.domains[d].work[0].speed_ppm.clone();
    assert_eq!((of(0), of(1)), (vec![720_000, 1_000_000], vec![760_000, 800_000]));
    assert_eq!(platform.domains[1].opps[1].power.0, 2_000_000);
    // What it is written as is read as the same machine.
    let again = Platform::parse(&platform.to_toml(), "my-soc.toml").expect("good");
    assert_eq!(again, platform);
    let other = system(SYSTEM, TABLE, Some("memory")).expect("good");
    assert_eq!(other.domains.iter().map(|d| d.capacity.0).collect::<Vec<_>>(), [1024, 819]);
    assert!(
        Platform::parse_partsim(GOOD, "t.yml", None, &|_| panic!("not asked"))
            .expect("yaml")
            .is_none()
    );
}

#[test]
fn systems_that_are_wrong_are_refused_with_their_place() {
    let mut said = String::new();
    for (from, to) in [
        ("numcpus: 2", "numcpus: 0"),
        ("numcpus: 2", "cpus: 2"),
        ("freqs: [500, 1000]", "freqs: [500, fast]"),
        ("freqs: [500, 1000]", "freqs: []"),
        ("freqs: [500, 1000]", "freqs: [500, 1100]"),
        ("power_model: big", "power_model: bigger"),
        ("speed_model: little", "speed_model: big"),
        ("type: table_based", "type: balsini_pannocchi"),
        ("filename: t.csv", "filename: u.csv"),
    ] {
        let text = SYSTEM.replacen(from, to, 1);
        assert_ne!(text, SYSTEM, "{from}");
        let e = system(&text, TABLE, None).expect_err(to).to_string();
        said += &entry(&format!("{from} → {to}"), &e);
    }
    for (from, to) in [
        ("model ,", "cpu ,"),
        ("0.1  ,0.125", "0.1"),
        ("0.1  ,0.125", "0.1,fast"),
        ("little,500 ,hash    ,0.1  ,0.125\n", ""),
        ("little", "small"),
        (TABLE, ""),
    ] {
        let text = TABLE.replace(from, to);
        assert_ne!(text, TABLE, "{from}");
        let e = system(SYSTEM, &text, None).expect_err(to).to_string();
        said += &entry(&format!("t.csv: {from} → {to}"), &e);
    }
    let e = system(SYSTEM, TABLE, Some("hsh")).expect_err("none").to_string();
    said += &entry("--plain hsh", &e);
    check_transcript("bad_systems.txt", &said);
}
