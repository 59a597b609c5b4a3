//! The agent as an ordinary program on the machine that runs the tests.
#![cfg(target_os = "linux")]

use risetime_job::answer::Answer;
use std::process::Command;

/// Runs `body` (lines of a job): exit code, standard error, answer.
fn run(name: &str, body: &str) -> (Option<i32>, String, Vec<u8>) {
    let dir = std::env::temp_dir().join(format!("risetime-native-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (job, out) = (dir.join("job"), dir.join("answer"));
    std::fs::write(&job, format!("risetime-job 1\n{body}end\n")).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_risetime-guest"))
        .arg("--native")
        .args([&job, &out])
        .output()
        .unwrap();
    let bytes = std::fs::read(&out).unwrap_or_default();
    std::fs::remove_dir_all(&dir).unwrap();
    let said =
        String::from_utf8(done.stderr).unwrap().replace(&job.to_string_lossy().into_owned(), "JOB");
    (done.status.code(), said, bytes)
}

#[test]
fn a_workload_runs_and_is_answered_for() {
    let (code, said, bytes) = run(
        "runs",
        "duration_ns 60000000\nphase_ns 1000000\ncpu 1024 0 0\n\
         read /proc/sys/kernel/ostype\nread /no/such\n\
         task busy 0 1 * * * *\nphase p -1 * * * *\nrun 5\n\
         task late 20000000 -1 0 3 * *\nphase a 2 * * * *\nrun 100000\nsleep 1000000\nphase b 1 0 4 * *\ntimer 0 1000000\n\
         task never 70000000 1 * * * *\nphase p 1 * * * *\nrun 5\n",
    );
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let answer = Answer::parse(&bytes).unwrap();
    assert_eq!(
        answer.section("error"),
        None,
        "{:?}",
        answer.section("error").map(String::from_utf8_lossy)
    );
    let values = answer.values();
    let value = |key: &str| values.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v.as_str());
    assert_eq!(value("/proc/sys/kernel/ostype"), "Linux");
    assert!(value("/no/such").starts_with("! "));
    let pid = |n: usize| value(&format!("task.{n}.pid")).parse::<u32>().unwrap();
    assert!(pid(0) > 0 && pid(1) > 0 && pid(0) != pid(1));
    assert_eq!(pid(2), 0, "its delay is longer than the run");
    assert!((10..=10_000).contains(&value("hz").parse::<u32>().unwrap()));
    assert!(value("start_ns").parse::<u64>().unwrap() > 0);
}

#[test]
fn what_a_task_could_not_do_is_in_the_answer() {
    let (code, _, bytes) = run(
        "fails",
        "duration_ns 30000000\ncpu 1024 0 0\ntask t 0 1 * * * *\nphase p 1 900 * * *\nrun 5\n",
    );
    assert_eq!(code, Some(0));
    let answer = Answer::parse(&bytes).unwrap();
    let error = String::from_utf8_lossy(answer.section("error").unwrap()).into_owned();
    assert!(error.starts_with("task t: attributes: "), "{error}");
}

#[test]
fn a_job_that_would_change_this_machine_is_refused() {
    let (code, said, bytes) = run("refused", "cpu 1024 0 0\nset /sys/x 1\n");
    assert_eq!((code, bytes.len()), (Some(1), 0));
    assert_eq!(
        said,
        "risetime-guest: this job changes the machine (modules, settings, probes, settling, task groups, partitions, hotplug, idle states)\n"
    );
    let (code, said, _) = run("cut", "cpu 1024 0\n");
    assert_eq!(code, Some(1));
    assert_eq!(said, "risetime-guest: JOB: job: line 2: a word is missing in \"cpu 1024 0\"\n");
}
