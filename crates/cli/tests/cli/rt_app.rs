//! The packaged rt-app 1.0-1 beside what `docs/rt-app.md` and `risetime export` say of it. Names begin with `packaged_rt_app_`, which
//! scripts/test.sh leaves out, and names as not run, where there is none.

use crate::{prints, repository, risetime, scratch};
use risetime_model::library;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// ns of a loop: more than it is anywhere, so that `run` is short.
const LOOP_NS: &str = "1000";

/// A run of rt-app.
pub(crate) struct Ran {
    pub(crate) dir: PathBuf,
    /// Exit status; `None`: it had to be killed.
    pub(crate) code: Option<i32>,
    took: Duration,
}

/// Starts rt-app with `text` in a directory of its own.
fn start(name: &str, text: &str) -> (PathBuf, Child) {
    start_as(name, text, &[])
}

/// Starts rt-app so, behind the words of another command.
pub(crate) fn start_as(name: &str, text: &str, by: &[&str]) -> (PathBuf, Child) {
    let dir = scratch(&format!("rt-app-{name}"));
    std::fs::write(dir.join("w.json"), text).expect("a scratch file");
    let words = [by, &["rt-app", "w.json"]].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(&dir).env("MALLOC_TOP_PAD_", "33554432");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("rt-app is installed: scripts/test.sh sees to it");
    (dir, child)
}

/// Waits for its end, but no longer than a minute.
pub(crate) fn end((dir, mut child): (PathBuf, Child)) -> Ran {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return Ran { dir, code: status.code(), took: began.elapsed() };
        }
        if began.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            let _ = child.wait();
            return Ran { dir, code: None, took: began.elapsed() };
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file of these tasks with this in `global`, for a second.
fn file(tasks: &str, global: &str) -> String {
    format!(
        r#"{{"tasks": {{{tasks}}}, "global": {{"duration": 1, "calibration": {LOOP_NS}, "lock_pages": false, "log_basename": "l"{global}}}}}"#
    )
}

fn ran(name: &str, tasks: &str, global: &str) -> Ran {
    end(start(name, &file(tasks, global)))
}

impl Ran {
    /// Rounds that a thread has logged.
    fn rounds(&self, thread: &str) -> usize {
        let log = std::fs::read_to_string(self.dir.join(format!("l-{thread}.log")));
        log.map_or(0, |log| log.lines().filter(|line| !line.starts_with('#')).count())
    }
}

/// Names and scheduling policies of the threads of a run, while it is on.
fn threads(name: &str, tasks: &str) -> BTreeSet<(String, u32)> {
    let (dir, child) = start(name, &file(tasks, ""));
    std::thread::sleep(Duration::from_millis(500));
    let mut all = BTreeSet::new();
    let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
    for task in std::fs::read_dir(tasks).expect("it runs").flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let (comm, stat) = (read("comm"), read("stat"));
        let fields = stat.rsplit(')').next().unwrap_or_default();
        // The 41st field of the line is the policy, the third the first behind the name.
        let policy = fields.split_ascii_whitespace().nth(38).and_then(|n| n.parse().ok());
        all.insert((comm.trim().to_string(), policy.unwrap_or(u32::MAX)));
    }
    end((dir, child));
    all
}

/// Row of the table of differences, and whether 1.0 does what its column says.
type Row = (&'static str, fn() -> bool);

/// Lists the rows.
fn rows() -> Vec<Row> {
    vec![
        ("`loop` of a task without `phases`", || {
            ran("loop", r#""a": {"loop": 2, "run": 1, "sleep": 50000}"#, "").rounds("a-0") > 5
        }),
        ("`policy`, `priority`, `dl-…` of a phase", || {
            let phase = r#""a": {"phases": {"p": {"policy": "SCHED_FIFO", "priority": 5, "run": 1, "sleep": 50000}}}"#;
            threads("policy", phase).contains(&("a".into(), 0))
        }),
        ("`util_min`, `util_max`, `taskgroup`", || {
            let ran = ran(
                "clamps",
                r#""a": {"util_min": 5000, "taskgroup": "x", "run": 1, "sleep": 50000}"#,
                "",
            );
            ran.code == Some(0) && ran.rounds("a-0") > 5
        }),
        ("`SCHED_BATCH`, `SCHED_IDLE`", || {
            ran("idle", r#""a": {"policy": "SCHED_IDLE", "run": 1, "sleep": 50000}"#, "").code
                != Some(0)
        }),
        ("`fork`", || {
            let tasks =
                r#""a": {"run": 1, "fork": "b", "sleep": 50000}, "b": {"instance": 0, "run": 1}"#;
            let ran = ran("fork", tasks, "");
            let logs = std::fs::read_dir(&ran.dir).expect("its directory").flatten();
            let logs = logs.filter(|f| f.file_name().to_string_lossy().ends_with(".log")).count();
            ran.code == Some(0) && (logs, ran.rounds("a-0") > 5) == (1, true)
        }),
        ("`sem_wait`, `sem_post`", || {
            ran("sem", r#""a": {"run": 1, "sem_wait": "never", "sleep": 50000}"#, "").rounds("a-0")
                > 5
        }),
        ("`memrun` with an object", || {
            let memrun =
                r#""a": {"memrun": {"type": "chase", "size": 4096, "count": 9}, "sleep": 50000}"#;
            ran("memrun", memrun, "").rounds("a-0") > 5
        }),
        ("an event with a value of the wrong type", || {
            let ran = ran("type", r#""a": {"run": "x", "sleep": 50000}"#, "");
            ran.code == Some(0) && ran.rounds("a-0") > 5
        }),
        ("`suspend` with a name", || {
            let tasks = r#""a": {"run": 1, "sleep": 50000, "resume": "door"}, "b": {"suspend": "door", "run": 1}"#;
            ran("suspend", tasks, "").rounds("b-1") > 5
        }),
        ("`log_size` as a text", || {
            let task = r#""a": {"run": 1, "sleep": 50000}"#;
            let of = |name, mode: &str| {
                ran(name, task, &format!(r#", "log_size": "{mode}""#)).rounds("a-0")
            };
            of("log-disable", "disable") > 5 && of("log-file", "file") == 0
        }),
        ("`dl-deadline` left out", || {
            let task = |rest| {
                format!(
                    r#""a": {{"policy": "SCHED_DEADLINE", "dl-runtime": 5000, "dl-period": 50000{rest}, "run": 1, "yield": ""}}"#
                )
            };
            ran("dl", &task(""), "").code != Some(0)
                && ran("dl-said", &task(r#", "dl-deadline": 50000"#), "").code == Some(0)
        }),
        ("`runtime`, `period`, `deadline` for `dl-…`", || {
            let task = r#""a": {"policy": "SCHED_DEADLINE", "runtime": 2000000, "period": 50000000, "dl-deadline": 50000,
                          "phases": {"p": {"run": 1, "yield": ""}}}"#;
            ran("ns", task, "").code == Some(0)
        }),
        ("names of threads", || {
            let body = r#""run": 1, "sleep": 50000"#;
            let tasks =
                format!(r#""a": {{"instance": 2, {body}}}, "a-name-of-sixteen": {{{body}}}"#);
            let names: BTreeSet<String> =
                threads("names", &tasks).into_iter().map(|t| t.0).collect();
            names == ["a", "rt-app"].map(String::from).into()
        }),
        ("a sleep under way at `duration`", || {
            ran("duration", r#""a": {"sleep": 2000000}"#, "").took > Duration::from_millis(1900)
        }),
    ]
}

/// Each row of the table is asked of rt-app 1.0, and each that is asked stands there.
#[test]
fn packaged_rt_app_does_what_the_table_says_of_1_0() {
    let page = std::fs::read_to_string(repository().join("docs/rt-app.md")).expect("the page");
    let table = page.split("| what | 1.0 |").nth(1).expect("a table");
    let said: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .collect();
    let asked: Vec<&str> = rows().iter().map(|(what, _)| *what).collect();
    assert_eq!(said, asked);
    let wrong: Vec<&str> = rows().iter().filter(|(_, holds)| !holds()).map(|row| row.0).collect();
    assert_eq!(wrong, Vec::<&str>::new());
}

#[test]
fn packaged_rt_app_counts_instances_at_a_barrier() {
    let tasks = r#""r": {"instance": 3, "run": 1, "barrier": "x", "sleep": 50000}, "s": {"run": 1, "barrier": "x"}"#;
    let ran = ran("barrier", tasks, "");
    let rounds = ["r-0", "r-1", "r-2", "s-3"].map(|thread| ran.rounds(thread));
    let (least, most) = (rounds.iter().min(), rounds.iter().max());
    assert!(least > Some(&5) && most.zip(least).is_some_and(|(m, l)| m - l <= 1), "{rounds:?}");
}

/// What is exported has nothing in it that rt-app 1.0 does not take, and runs to its end. CPUs beyond this machine's are left out.
#[test]
fn packaged_rt_app_accepts_every_built_in_workload() {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut refused = Vec::new();
    for entry in library::workloads() {
        let said = risetime(&["export", entry.name, "--for", "rt-app-1.0"]);
        assert_eq!(said.code, 0, "{}: {}", entry.name, said.err);
        let fits = |line: &str| match line.trim().strip_prefix("\"cpus\": [") {
            Some(list) => {
                let number =
                    |n: &str| n.trim_matches([']', ',', ' ']).parse().unwrap_or(usize::MAX);
                list.split(", ").all(|n| number(n) < cpus)
            }
            None => true,
        };
        let changed = |line: &str| match line.trim() {
            l if l.starts_with("\"duration\"") => "\"duration\": 1,".to_string(),
            l if l.starts_with("\"calibration\"") => format!("\"calibration\": {LOOP_NS},"),
            _ => line.to_string(),
        };
        let lines: Vec<String> = said.out.lines().filter(|l| fits(l)).map(changed).collect();
        let ran = end(start(entry.name, &lines.join("\n")));
        if ran.code != Some(0) {
            refused.push((entry.name, ran.code, ran.took));
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn export_writes_a_file_and_says_what_is_lost() {
    let dir = scratch("export");
    let path = dir.join("w.json");
    let path = path.to_str().expect("UTF-8");
    let said = risetime(&["export", "game", "--for", "rt-app-1.0", "-p", "pixel6", "-o", path]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(said.err.contains("semaphores: rt-app 1.0 has none"), "{}", said.err);
    let text = std::fs::read_to_string(path).expect("it is written");
    assert!(text.contains("\"calibration\": \"CPU6\"") && !text.contains("sem_"), "{text}");
    let new = risetime(&["export", "game", "--for", "rt-app"]);
    assert!(new.out.contains("\"sem_wait\""), "{}", new.out);
}

#[test]
fn a_template_and_yaml_run_once_they_are_filled_in() {
    let dir = scratch("template");
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a scratch file");
        path.to_str().expect("UTF-8").to_string()
    };
    let template = write(
        "t.json",
        r#"{"tasks": {"t": {"run": 1000, "sleep": 7000}}, "global": {"duration": __DURATION__, "logdir": __LOGDIR__}}"#,
    );
    let said = risetime(&["check", &template]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--fill DURATION=… --fill LOGDIR=…"), "{}", said.err);
    let run = ["run", &template, "-p", "m1", "--fill", "DURATION=1", "--fill", "LOGDIR=logs"];
    assert!(risetime(&run).out.contains("1000.0 ms"));
    let yaml =
        write("w.yaml", "tasks:\n  t:\n    loop: 3\n    run: 1000   # us\n    sleep: 1000\n");
    assert!(prints(&["show", &yaml]).contains("run"));
    let said = risetime(&["run", &yaml, "-p", "m1", "--seconds", "0.1", "--rt-app", "1.0"]);
    assert!(said.err.contains("rt-app 1.0 repeats it for ever"), "{}", said.err);
}

#[test]
fn sets_are_read_and_written_for_an_rt_app() {
    let dir = scratch("sets");
    let path = dir.join("t.json");
    let file = path.to_str().expect("UTF-8");
    let task = r#"{"tasks": {"t": {"policy": "SCHED_FIFO", "priority": 9, "run": 1000, "timer": {"ref": "unique", "period": __PERIOD__}}}}"#;
    std::fs::write(&path, task).expect("a scratch file");
    let fill = ["--fill", "PERIOD=20000"];
    let with = |args: &[&str]| risetime(&[args, &fill[..]].concat());
    let planned = with(&["deploy", "plan", file, "-p", "rpi4"]);
    assert!(planned.out.contains("20000 µs") || planned.out.contains("1 task"), "{}", planned.out);
    let converted = with(&["deploy", "convert", file, "--scheduler", "rm", "--for", "rt-app-1.0"]);
    assert!(converted.out.contains("\"SCHED_FIFO\"") && !converted.out.contains("\"job\""));
    let drawn = ["deploy", "draw", "--tasks", "3", "--utilisation", "0.5", "--for", "rt-app"];
    // `run` of the set is of the largest CPU, which nobody has named: said, not refused.
    let said = risetime(&drawn);
    assert!(said.code == 0 && said.err.contains("name the platform"), "{}", said.err);
    let drawn = said.out;
    assert!(drawn.contains("\"dl-runtime\"") && !drawn.contains("\"job\""), "{drawn}");
    let history = ["history", file, "-p", "m1", "--simulated", "--phases", "1", "--seconds", "0.1"];
    assert_eq!(with(&history).code, 0);
    let said = risetime(&["deploy", "convert", "needs.toml", "--rt-app", "1.0"]);
    assert!(said.err.contains("is for rt-app's JSON"), "{}", said.err);
}
