//! Whatever is wrong: one message that names the place, on standard error, exit code 2, nothing
//! on standard output, and in bounded time and memory.

use crate::{RAMP, Said, command, ramp, risetime, scratch};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory for a run that fails. It needs a few MiB; the worst input here has 1 GiB.
const MEMORY_KIB: u32 = 300_000;
/// No such run takes a second; a busy machine may be slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the command with an upper bound on memory and time.
fn bounded(dir: &Path, args: &[&str]) -> Said {
    let plain = command(dir, args);
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\""))
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh");
    let since = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if since.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
    Said { code: child.wait().expect("a child").code().unwrap_or(-1), out, err }
}

/// Runs what must fail, and gives its message back.
fn refused(dir: &Path, args: &[&str]) -> String {
    let Said { code, out, err } = bounded(dir, args);
    assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
    assert!(err.starts_with("risetime: ") || err.starts_with("error: "), "{args:?}: {err}");
    let messages =
        err.lines().filter(|l| l.starts_with("risetime: ") || l.starts_with("error: ")).count();
    assert_eq!(messages, 1, "{args:?}: {err}");
    assert!(
        !err.contains("panicked") && !err.contains("os error") && err.len() < 1500,
        "{args:?}: {err}"
    );
    err
}

/// A workload with one task of these keys.
fn task(keys: &str) -> String {
    format!("{{\"tasks\": {{\"a\": {{{keys}}}}}}}")
}

#[test]
fn broken_workloads() {
    let dir = scratch("bad-workloads");
    let deep = [
        "[".repeat(200_000),
        "{\"a\":".repeat(200_000),
        format!("{{\"tasks\": {}", "[".repeat(200_000)),
    ];
    let cases: Vec<(String, &str)> = vec![
        ("{\"tasks\": {\"a\": {\"run\": 10".into(), "no end"),
        ("".into(), "empty"),
        (task("\"run\": 1, \"frobnicate\": 2"), "`frobnicate`"),
        (task("\"run\": 1, \"unlock\": \"m\""), "mutex \"m\""),
        (task("\"instance\": 1000000000, \"run\": 1"), "1000000000"),
        (task("\"run\": -5"), "-5"),
        (task("\"sleep\": -5"), "-5"),
        (task("\"loop\": -1, \"run\": 0"), "takes no time"),
        (task("\"loop\": -1, \"phases\": {\"p\": {\"loop\": 3, \"sleep\": 0}}"), "takes no time"),
        (task("\"run\": 1, \"cpus\": [8]"), "8"),
        (task("\"run\": 1, \"util_min\": 600, \"util_max\": 300"), "600"),
        (task("\"run\": 1, \"policy\": \"SCHED_BOGUS\""), "SCHED_FIFO"),
        (
            "{\"global\": {\"calibration\": \"CPU99\"}, \"tasks\": {\"a\": {\"run\": 1}}}".into(),
            "99",
        ),
        (deep[0].clone(), "deep"),
        (deep[1].clone(), "deep"),
        (deep[2].clone(), "deep"),
    ];
    for (text, names) in cases {
        std::fs::write(dir.join("bad.json"), &text).expect("a file");
        let start = &text[..text.len().min(80)];
        let message = refused(&dir, &["run", "bad.json", "--platform", "m1"]);
        assert!(message.starts_with("risetime: bad.json"), "{start}: {message}");
        assert!(message.contains(names), "{start}: {message}");
        let checked = refused(&dir, &["check", "bad.json", "--platform", "m1"]);
        assert_eq!(checked, message, "check says the same");
    }
}

/// What came with classes, groups, hotplug and objects.
#[test]
fn broken_policies_groups_hotplug_and_objects() {
    let dir = scratch("bad-mechanisms");
    let global =
        |keys: &str| format!("{{\"global\": {{{keys}}}, \"tasks\": {{\"a\": {{\"run\": 1}}}}}}");
    let groups = |keys: &str| {
        format!("{{\"taskgroups\": {{\"/g\": {{{keys}}}}}, \"tasks\": {{\"a\": {{\"run\": 1}}}}}}")
    };
    let hotplug = |one: &str| global(&format!("\"hotplug\": [{one}]"));
    let cases: Vec<(String, &str)> = vec![
        (task("\"run\": 1, \"policy\": \"SCHED_FIFO\", \"priority\": 0"), "priority"),
        (task("\"run\": 1, \"policy\": \"SCHED_RR\", \"priority\": 100"), "100"),
        (task("\"run\": 1, \"policy\": \"SCHED_OTHER\", \"priority\": 20"), "20"),
        (task("\"run\": 1, \"policy\": \"SCHED_DEADLINE\""), "dl-runtime"),
        (
            task(
                "\"run\": 1, \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 5000, \"dl-period\": 4000",
            ),
            "a deadline of 4000",
        ),
        (task("\"run\": 1, \"taskgroup\": \"a/../b\""), "taskgroup"),
        (task("\"run\": 1, \"taskgroup\": 5"), "taskgroup"),
        (groups("\"rt_runtime_us\": 5000"), "`rt_runtime_us` wants `rt_period_us` beside it"),
        (groups("\"rt_runtime_us\": 5000, \"rt_period_us\": 4000"), "5000, wanted at most"),
        (groups("\"rt_runtime_us\": 5, \"rt_period_us\": 99"), "99"),
        (groups("\"rt_runtime_us\": -2, \"rt_period_us\": 9000"), "-2"),
        (global("\"default_policy\": \"SCHED_BOGUS\""), "SCHED_BOGUS"),
        (hotplug("5"), "hotplug"),
        (
            hotplug("{\"at_us\": 1000, \"cpu\": 99, \"online\": 0}"),
            "bad.json:1:25: global.hotplug: there is no CPU99 on m1",
        ),
        (task("\"lock\": \"m\", \"lock\": \"m\", \"run\": 1"), "holds already"),
        (hotplug("{\"at_us\": -1, \"cpu\": 1, \"online\": 0}"), "-1"),
        (hotplug("{\"at_us\": 1000, \"cpu\": 1, \"onlin\": 0}"), "onlin"),
        (task("\"run\": 1, \"wait\": {\"ref\": \"c\"}"), "mutex"),
        (task("\"run\": 1, \"fork\": \"nobody\""), "nobody"),
        (task("\"run\": 1, \"sem_wait\": 5"), "sem_wait"),
        (task("\"run\": 1, \"timer\": {\"ref\": \"t\", \"period\": 0, \"mode\": \"now\"}"), "now"),
    ];
    for (text, names) in cases {
        std::fs::write(dir.join("bad.json"), &text).expect("a file");
        let message = refused(&dir, &["run", "bad.json", "--platform", "m1"]);
        assert!(message.starts_with("risetime: bad.json"), "{text}: {message}");
        assert!(message.contains(names), "{text}: {message}");
    }
}

#[test]
fn broken_platforms() {
    let dir = scratch("bad-platforms");
    let good = crate::prints(&["show", "--source", "m1"]);
    let opps = good.find("opp = [").expect("OPPs");
    let no_opps = format!(
        "{}opp = []{}",
        &good[..opps],
        &good[opps + good[opps..].find("\n]").expect("their end") + 2..]
    );
    let cases = [
        (no_opps, "OPP"),
        (good.replacen("capacity = 1024", "capacity = 1025", 1), "1025"),
        (good.replacen("hz = 1000", "hz = 1000\nfrequency = 5", 1), "`frequency`"),
        (good.replacen("hz = 1000", "hz = -1000", 1), "-1000"),
        (good.replacen("cpus = \"4-7\"", "cpus = \"4-9999999999\"", 1), "9999999999"),
        (good.replacen("cpus = \"4-7\"", "cpus = \"5-7\"", 1), "CPU 4"),
        (good.replacen("freq_khz = 972000", "freq_khz = 600000", 1), "600000"),
        (good.replacen("schema = 1", "schema = 2", 1), "schema"),
        (good[..good.len() / 2].to_string(), "bad.toml"),
        (format!("a = {}", "[".repeat(200_000)), "recurs"),
        ("[".repeat(200_000), "bad.toml"),
    ];
    for (text, names) in cases {
        assert_ne!(text, good);
        std::fs::write(dir.join("bad.toml"), &text).expect("a file");
        let message = refused(&dir, &["run", "rampup", "--platform", "bad.toml"]);
        assert!(
            message.starts_with("risetime: bad.toml") && message.contains(names),
            "{names}: {message}"
        );
        refused(&dir, &["show", "bad.toml"]);
        refused(&dir, &["check", "bad.toml"]);
    }
}

#[test]
fn a_gigabyte_of_garbage() {
    let dir = scratch("gigabyte");
    for name in ["big.json", "big.toml", "big"] {
        std::fs::File::create(dir.join(name))
            .and_then(|f| f.set_len(1 << 30))
            .expect("a sparse file");
    }
    for args in [
        &["run", "big.json", "--platform", "m1"][..],
        &["run", "big", "--platform", "m1"],
        &["run", "rampup", "--platform", "big.toml"],
        &["run", "rampup", "--platform", "m1", "--policy", "big.toml"],
        &["show", "big.toml"],
        &["show", "./big"],
        &["check", "big.toml"],
        &["check", "big.json"],
        &["show", "/dev/zero"],
    ] {
        let message = refused(&dir, args);
        assert!(message.contains("too big"), "{message}");
    }
    std::fs::write(dir.join("noise.json"), [0x80, 0xff, 0, 7].repeat(100_000)).expect("a file");
    let message = refused(&dir, &["run", "noise.json", "--platform", "m1"]);
    assert!(message.contains("noise.json:1:1: not UTF-8"), "{message}");
}

#[test]
fn unknown_names_say_where_the_known_ones_are() {
    for (args, known) in [
        (vec!["run", "nope", "--platform", "m1"], "`risetime list workloads`"),
        (vec!["run", "rampup", "--platform", "nope"], "`risetime list platforms`"),
        (ramp(&["--policy", "nope"]), "`risetime list policies`"),
        (ramp(&["--set", "nope=1"]), "`risetime list settings`"),
        (ramp(&["--set", "governor=nope"]), "powersave"),
        (ramp(&["--set", "placement=nope"]), "fair"),
        (ramp(&["--policy", "linux-6.8+nope=1"]), "`risetime list settings`"),
        (vec!["show", "nope"], "`risetime list`"),
        (vec!["check", "nope"], "`risetime list`"),
    ] {
        let message = refused(Path::new("/"), &args);
        assert!(message.contains("nope") && message.contains(known), "{args:?}: {message}");
    }
    for (asked, hint) in [
        (&["run", "ramup", "--platform", "m1"][..], "did you mean `rampup`? `risetime list"),
        (&ramp(&["--set", "rate_limt_us=1"]), "did you mean `rate_limit_us`? `risetime list"),
        (&["show", "chromebook"], "did you mean `chromebook2`? `risetime list"),
    ] {
        let message = refused(Path::new("/"), asked);
        assert!(message.contains(hint) && message.len() < 300, "{message}");
    }
    for (asked, nearest) in [("6.10", "6.11"), ("6.3", "6.1"), ("7.1", "7.0"), ("5.4", "4.20")] {
        let message = refused(Path::new("/"), &ramp(&["--policy", &format!("linux-{asked}")]));
        assert!(message.contains(&format!("nearest release is `linux-{nearest}`")), "{message}");
    }
}

/// A tunable that the governor at hand has not: which it has, and what they take.
#[test]
fn a_bad_tunable_names_the_good_ones() {
    for (policy, set, good) in [
        ("linux-6.12+governor=ondemand", "up_treshold=80", "up_threshold (1 to 100 %)"),
        ("linux-6.12+governor=conservative", "rate_limit_us=80", "freq_step (0 to 4294967295 %)"),
        ("linux-4.4+governor=interactive", "freq_step=5", "timer_rate (1 to 1000000000 µs)"),
        ("linux-4.4", "timer_rate=5", "down_throttle_nsec (0 to 4294967295 ns)"),
        ("linux-4.5-schedutil-rfc", "rate_limit_us=5", "sampling_rate (0 to 1000000000 µs)"),
        ("linux-4.4-walt", "up_threshold=5", "sched has up_throttle_nsec"),
        ("linux-4.4-walt", "walt_window=5", "walt has walt_ravg_window (10000000 to"),
        ("linux-6.12", "up_threshold=5", "rate_limit_us (0 to"),
    ] {
        let message = refused(Path::new("/"), &ramp(&["--policy", policy, "--set", set]));
        assert!(message.contains(good), "{policy} {set}: {message}");
    }
}

#[test]
fn arguments_out_of_range_or_place() {
    for (more, names) in [
        (&["--seconds", "0"][..], "--seconds"),
        (&["--seconds", "-1"], "--seconds"),
        (&["--seconds", "nan"], "--seconds"),
        (&["--seconds", "inf"], "--seconds"),
        (&["--seconds", "1e-12"], "--seconds"),
        (&["--seconds", "1e300"], "--seconds"),
        (&["--seconds", "soon"], "soon"),
        (&["--phase-us", "-1"], "-1"),
        (&["--phase-us", "99999999999999999999"], "99999999999999999999"),
        (&["--phase-us", "0.0001"], "0.0001"),
        (&["--phase-us", "60000000.001"], "60000000.001"),
        (&["--phases", "0"], "--phases"),
        (&["--phases", "1000000000"], "1000000000"),
        (&["--uclamp-min", "-1"], "-1"),
        (&["--uclamp-max", "1025"], "1025"),
        (&["--uclamp-min", "600", "--uclamp-max", "300"], "600"),
        (&["--set", "rate_limit_us"], "key=value"),
        (&["--set", "rate_limit_us=-1"], "-1"),
        (&["--set", "rate_limit_us=70us"], "70us"),
        (&["--set", "governor=performance", "--set", "rate_limit_us=70"], "schedutil"),
        (&["--policy", "linux-6.8+governor=performance+rate_limit_us=70"], "schedutil"),
        (&["--set", "first_cpu=8"], "CPUs 0 to 7"),
        (&["--set", "start_util=1025"], "1025"),
        (&["--level", "0"], "0"),
        (&["--format", "xml"], "xml"),
        (&["--every-phase"], "--phases"),
        (&["--perfetto", "x", "--phases", "2"], "--perfetto"),
        (&["--perfetto", "x", "--policy", "linux-6.8", "--policy", "linux-7.2"], "one policy"),
    ] {
        let message = refused(Path::new("/"), &ramp(more));
        assert!(message.contains(names), "{more:?}: {message}");
    }
    for args in [
        &["run", "rampup"][..],
        &["run", "--platform", "m1"],
        &["frobnicate"],
        &["completions", "tcsh"],
        &["check"],
    ] {
        refused(Path::new("/"), args);
    }
}

#[test]
fn a_clamp_of_the_run_that_passes_a_task_s_own_other_one() {
    let dir = scratch("clamps");
    let file = dir.join("clamped.json");
    let phases =
        r#""phases": {"a": {"run": 10, "util_max": 700}, "b": {"run": 10, "util_min": 400}}"#;
    std::fs::write(&file, format!(r#"{{"tasks": {{"ui": {{{phases}}}}}}}"#)).unwrap();
    let run = |more: &[&str]| {
        let all = ["run", "clamped.json", "--platform", "rpi4"];
        refused(&dir, &[&all[..], more].concat())
    };
    let message = run(&["--uclamp-max", "399"]);
    assert!(message.contains("uclamp_max: 399 is below util_min of task `ui`, 400"), "{message}");
    let message = run(&["--uclamp-min", "701"]);
    assert!(message.contains("uclamp_min: 701 is above util_max of task `ui`, 700"), "{message}");
    let fits =
        ["run", "clamped.json", "--platform", "rpi4", "--uclamp-max", "400", "--uclamp-min", "400"];
    assert!(command(&dir, &fits).output().unwrap().status.success());
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing() {
    let dir = scratch("unwritable");
    let message = refused(&dir, &ramp(&["--perfetto", "missing/ramp.perfetto-trace"]));
    assert!(message.contains("there is no directory"), "{message}");
    refused(&dir, &["capture", "-o", "missing/here.toml"]);
    // Not even root writes there.
    refused(&dir, &ramp(&["--perfetto", "/sys/ramp.perfetto-trace"]));
    refused(&dir, &ramp(&["--perfetto", "."]));
    let hint = refused(&dir, &ramp(&["--perfetto", "-"]));
    assert!(hint.contains("wanted a file's name") && hint.contains("./-"), "{hint}");
    std::fs::write(dir.join("file"), "").expect("a file");
    refused(&dir, &["man", "file"]);
    // The run itself cannot start: no trace of one, either.
    refused(&dir, &ramp(&["--perfetto", "ramp.perfetto-trace", "--set", "first_cpu=8"]));
    let left: Vec<_> =
        std::fs::read_dir(&dir).expect("the directory").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["file"]);
}

#[test]
fn check_names_each_broken_file_and_goes_on() {
    let dir = scratch("check");
    std::fs::write(dir.join("a.json"), "{").expect("a file");
    std::fs::write(dir.join("b.toml"), "x = 1").expect("a file");
    let said = crate::risetime_in(&dir, &["check", "a.json", "m1", "b.toml", "rampup"]);
    assert_eq!((said.code, said.out.as_str()), (2, "m1: platform, ok\nrampup: workload, ok\n"));
    let places = said.err.lines().filter(|l| l.contains("a.json:1") || l.contains("b.toml:1"));
    assert_eq!(places.count(), 2, "{}", said.err);
}

/// What a run finds only when it starts, or on its way.
#[test]
fn check_refuses_what_a_run_refuses() {
    let dir = scratch("check-as-run");
    let dl =
        "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 5000, \"dl-period\": 10000, \"run\": 100";
    let hotplug = |more: &str| {
        format!(
            "{{\"global\": {{\"hotplug\": [{{\"at_us\": 1000, \"cpu\": 2, \"online\": 0}}]}}{more}}}"
        )
    };
    let group = ", \"taskgroups\": {\"/g\": {}}, \"tasks\": {\"a\": {\"taskgroup\": \"/g\", \"run\": 1, \"sleep\": 1}}";
    let rt = ", \"tasks\": {\"a\": {\"policy\": \"SCHED_FIFO\", \"run\": 1, \"sleep\": 1}}";
    let fork = "{\"tasks\": {\"a\": {\"loop\": -1, \"run\": 10, \"fork\": \"b\"}, \"b\": {\"instance\": 0, \"loop\": 1, \"run\": 1}}}";
    for (text, code, names) in [
        (hotplug(rt), 2, "bad.json:1:25: global.hotplug: found real-time or deadline tasks"),
        (hotplug(group), 2, "bad.json:1:25: global.hotplug: found task groups"),
        (task(&format!("{dl}, \"instance\": 30, \"sleep\": 900")), 2, "is refused"),
        (task(&format!("{dl}, \"fork\": \"a\"")), 2, "forks as a deadline task"),
        (fork.to_string(), 1, "for the 1025th time"),
    ] {
        std::fs::write(dir.join("bad.json"), &text).expect("a file");
        let run = bounded(&dir, &["run", "bad.json", "--platform", "m1"]);
        let check = bounded(&dir, &["check", "bad.json", "--platform", "m1"]);
        assert_eq!((run.code, check.code), (code, 2), "{text}: {} {}", run.err, check.err);
        assert_eq!((run.out.as_str(), check.out.as_str()), ("", ""));
        assert!(run.err.contains(names), "{text}: {}", run.err);
        assert_eq!(run.err, check.err, "check says the same");
    }
}

#[test]
fn a_setting_is_asked_for_once() {
    for more in [
        &["--policy", "linux-6.8+rate_limit_us=70", "--set", "rate_limit_us=500"][..],
        &["--set", "rate_limit_us=70", "--set", "rate_limit_us=500"],
        &["--uclamp-min", "70", "--set", "uclamp_min=500"],
    ] {
        let message = refused(Path::new("/"), &ramp(more));
        assert!(message.contains("=70") && message.contains("=500"), "{message}");
    }
    let ablate = ["compare", "rampup", "--platform", "m1", "--ablate", "rfc-v1", "--set"];
    let message = refused(Path::new("/"), &[&ablate[..], &["waiting_avg=0"]].concat());
    assert!(message.contains("--set waiting_avg=0: ") && message.contains("switches"), "{message}");
}

#[test]
fn what_has_no_effect_is_said_and_is_a_warning_in_check() {
    let dir = scratch("without-effect");
    let text = "{\"global\": {\"gnuplot\": true, \"duration\": 1}, \"tasks\": {\"a\": {\"run\": 100, \"sleep\": 9000, \"loop\": -1}}}";
    std::fs::write(dir.join("my.json"), text).expect("a file");
    let run = crate::risetime_in(&dir, &["run", "my.json", "--platform", "m1", "--format", "json"]);
    assert_eq!(run.code, 0);
    assert!(run.err.lines().count() == 1 && run.err.contains("gnuplot"), "{}", run.err);
    assert!(run.out.starts_with('{'), "the results are still alone on standard output");
    let check = |more: &[&str]| crate::risetime_in(&dir, &[&["check", "my.json"], more].concat());
    assert_eq!((check(&[]).code, check(&["--strict"]).code), (0, 1));
    assert!(check(&[]).out.contains("gnuplot"));
}

#[test]
fn no_arguments_give_help() {
    let said = risetime(&[]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("Usage:") && said.err.contains("demo"), "{}", said.err);
    assert_eq!(risetime(&RAMP[..1]).code, 2);
}

#[test]
fn options_that_mean_nothing_in_a_mode_of_verify_are_refused() {
    let dir = scratch("spread");
    let verify = |more: &[&str]| {
        let args = [&["verify", "rampup", "--platform", "m1"][..], more].concat();
        refused(&dir, &args)
    };
    for option in [&["--strict"][..], &["--share", "5"]] {
        let said = verify(&[&["--mode", "spread"][..], option].concat());
        let wanted = format!("risetime: {}: --mode spread counts no checks", option[0]);
        assert!(said.starts_with(&wanted), "{said}");
    }
    let said = verify(&["--mode", "spread", "--phases", "1"]);
    assert!(said.starts_with("risetime: --phases: found 1, "), "{said}");
    let said = verify(&["--references", "here"]);
    assert!(said.starts_with("risetime: --references: is for --mode spread"), "{said}");
    assert!(!dir.join("here").exists());
    let said = verify(&["--first"]);
    assert!(said.starts_with("risetime: --first: is for --mode step"), "{said}");
    let said = verify(&["--mode", "step", "--noise", "vm"]);
    assert!(said.starts_with("risetime: --noise: --mode step is without noise"), "{said}");
    let said = refused(&dir, &["verify", "--mutants", "--mode", "spread"]);
    assert!(said.starts_with("risetime: --mutants: "), "{said}");
}

/// A number of another unit is allowed; `check` tells where it is, and `run` says so once.
#[test]
fn frequencies_and_latencies_that_are_likely_of_another_unit_are_warned_of_with_their_place() {
    let dir = scratch("platform-units");
    let check = |more: &[&str]| crate::risetime_in(&dir, &[&["check"], more].concat());
    let m1 = crate::prints(&["show", "--source", "m1"]);
    let in_mhz = |line: &str| match line.find("freq_khz = ") {
        Some(at) => {
            let digits = line[at + 11..].find(',').map_or(0, |n| n + at + 11);
            format!("{}{}", &line[..digits - 3], &line[digits..])
        }
        None => line.to_string(),
    };
    let mhz: Vec<String> = m1.lines().map(in_mhz).collect();
    let changes: &[(&str, String, &str)] = &[
        (
            "mhz",
            mhz.join("\n"),
            "opp 5: `freq_khz` is 2064, the highest here, 2.064 MHz: MHz for kHz? 2064 MHz are 2064000",
        ),
        (
            "ghz",
            m1.replace("freq_khz = 3204000", "freq_khz = 32040000"),
            "is 32040000, 32.04 GHz: Hz for kHz?",
        ),
        (
            "ns",
            m1.replace("latency_ns = 7500", "latency_ns = 7"),
            "`latency_ns` is 7, less than 1 µs: µs for ns? 7 µs are 7000",
        ),
    ];
    for (name, text, says) in changes {
        let file = format!("{name}.toml");
        std::fs::write(dir.join(&file), text).unwrap();
        let said = check(&[&file]);
        let line = said.out.lines().find(|l| l.contains(says));
        let place = line.and_then(|l| l.strip_prefix(&format!("  warning: {file}:")));
        let number = place.and_then(|p| p.split(':').next()?.parse::<usize>().ok());
        let written = number.and_then(|n| text.lines().nth(n - 1)).unwrap_or("");
        assert!(written.contains("latency_ns"), "{name}: {}{}", said.out, said.err);
        assert_eq!((said.code, check(&["--strict", &file]).code), (0, 1), "{name}");
    }
}

#[test]
fn times_and_settings_that_are_likely_of_another_unit_are_warned_of_with_their_place() {
    let dir = scratch("units");
    let check = |more: &[&str]| crate::risetime_in(&dir, &[&["check"], more].concat());
    let workloads = [
        (
            task("\"run\": 5, \"timer\": {\"ref\": \"t\", \"period\": 16}"),
            "bad.json:1:28: task `a`: `timer` is 16 µs, and nothing in it is longer: ms for µs? 16 ms are 16000",
        ),
        (
            task("\"run\": 5000000, \"timer\": {\"ref\": \"t\", \"period\": 16666667}"),
            "task `a`: `timer` is 16666667 µs, 16 s: ns for µs?",
        ),
        (
            task("\"run\": 20000, \"timer\": {\"ref\": \"t\", \"period\": 16667}"),
            "bad.json:1:12: task `a`: its work takes 20000 µs at full speed on the fastest CPU, longer than its period of 16667 µs",
        ),
        (
            "{\"global\": {\"duration\": 3000}, \"tasks\": {\"a\": {\"run\": 1000}}}".into(),
            "bad.json:1:13: `global`: `duration` is 3000 s, 50 min: ms for s?",
        ),
    ];
    for (text, says) in &workloads {
        std::fs::write(dir.join("bad.json"), text).unwrap();
        let said = check(&["bad.json"]);
        assert!(said.code == 0 && said.out.contains(says), "{text}: {}{}", said.out, said.err);
        let two = ["--policy", "linux-6.8", "--policy", "linux-7.2", "--seconds", "0.2"];
        let args = [&["run", "bad.json", "--platform", "m1", "--format", "csv"], &two[..]].concat();
        let said = crate::risetime_in(&dir, &args);
        let heard: Vec<&str> = said.err.lines().filter(|l| l.contains("warning: ")).collect();
        assert!(said.code == 0 && heard.len() == 1 && heard[0].contains(says), "{}", said.err);
    }
    let reserved = task(
        "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 4000, \"dl-period\": 20000, \"run\": 6000, \"timer\": {\"ref\": \"t\", \"period\": 20000}",
    );
    std::fs::write(dir.join("bad.json"), &reserved).unwrap();
    let says = "bad.json:1:12: task `a`: its work takes 6000 µs at the full speed of capacity 1024, more than its `dl-runtime` of 4000 µs";
    for on in [&[][..], &["--platform", "m1"]] {
        let said = check(&[&["bad.json"], on].concat());
        assert!(said.code == 0 && said.out.contains(says), "{}{}", said.out, said.err);
    }
    std::fs::write(dir.join("bad.json"), reserved.replace("6000", "4000")).unwrap();
    assert_eq!(check(&["bad.json"]).out, "bad.json: workload, ok\n");
    // On its small CPUs only, 10 ms of work take 22.
    let small =
        task("\"cpus\": [0], \"run\": 10000, \"timer\": {\"ref\": \"t\", \"period\": 16667}");
    std::fs::write(dir.join("bad.json"), small).unwrap();
    assert_eq!(check(&["bad.json"]).out, "bad.json: workload, ok\n");
    let said = check(&["bad.json", "--platform", "m1"]);
    let says = "its work takes 22309 µs at full speed on the fastest CPU that it may use";
    assert!(said.out.contains(says), "{}", said.out);

    let policy =
        "schema = 1\nname = \"slow\"\nkernel = \"7.2\"\n\n[set]\nscaling_max_freq = 1500\n";
    std::fs::write(dir.join("slow.toml"), policy).unwrap();
    assert_eq!(check(&["slow.toml"]).out, "slow.toml: policy, ok\n");
    let says = "slow.toml:6:1: `scaling_max_freq` is 1500, below 600000, the lowest frequency of m1: MHz for kHz?";
    let said = check(&["slow.toml", "--platform", "m1"]);
    assert!(said.out.contains(says), "{}{}", said.out, said.err);
    let said = check(&["rampup", "--platform", "m1", "--policy", "slow.toml"]);
    assert!(said.code == 0 && said.out.contains(says), "{}{}", said.out, said.err);
    let said = check(&["rampup", "--platform", "m1", "--policy", "linux-6.8+no=1"]);
    assert!(said.code == 2 && said.err.contains("unknown setting `no`"), "{}", said.err);
    assert_eq!(check(&["rampup", "--policy", "linux-6.8"]).code, 2, "without a platform");
    let said = risetime(&ramp(&["--set", "scaling_max_freq.policy4=1500", "--seconds", "1.5"]));
    assert!(
        said.code == 0 && said.err.contains("`scaling_max_freq.policy4` is 1500, below"),
        "{}",
        said.err
    );
}

#[test]
fn nothing_built_in_is_warned_of_for_its_units() {
    let names = |what| {
        let list = crate::prints(&["list", what]);
        let row =
            |l: &str| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')).map(str::to_string);
        list.lines()
            .filter_map(row)
            .filter_map(|l| Some(l.split_whitespace().next()?.to_string()))
            .collect::<Vec<_>>()
    };
    for what in ["platforms", "workloads", "policies"] {
        let all = names(what);
        assert!(all.len() > 5, "{all:?}");
        let args: Vec<&str> = ["check", "--platform", "m1"]
            .into_iter()
            .chain(all.iter().map(String::as_str))
            .collect();
        let said = risetime(&args);
        assert!(!said.out.contains(" for ") && !said.out.contains("takes"), "{}", said.out);
    }
}

/// What is only known when platform, policy and workload meet has its place, too.
#[test]
fn faults_found_after_reading_name_file_and_line() {
    let dir = scratch("late-faults");
    let tasks = |keys: &str| format!("{{\n \"tasks\": {{\n  \"a\": {{{keys}}}\n }}\n}}");
    let reserve = "\"instance\": 20, \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 9000, \"dl-period\": 10000, \"run\": 1000, \"sleep\": 9000";
    let clamped = "\"run\": 10, \"sleep\": 1000, \"util_max\": 100";
    for (file, text) in [
        ("cpus.json", tasks("\"cpus\": [9], \"run\": 1")),
        ("reserve.json", tasks(reserve)),
        ("clamped.json", tasks(clamped)),
        ("calibration.json", "{\n\"global\": {\"calibration\": \"CPU9\"},\n\"tasks\": {\"a\": {\"run\": 1}}}".into()),
        ("limits.toml", "schema = 1\nname = \"l\"\nkernel = \"7.2\"\n[set]\nscaling_min_freq = 2000000\nscaling_max_freq = 1000000\n".into()),
        ("irq.toml", "schema = 1\nname = \"i\"\nkernel = \"7.2\"\n[set]\nirq_us = 100\n".into()),
        ("cpu.toml", "schema = 1\nname = \"c\"\nkernel = \"7.2\"\n[set]\nfirst_cpu = 8\n".into()),
        ("clamp.toml", "schema = 1\nname = \"u\"\nkernel = \"7.2\"\n[set]\nuclamp_min = 500\n".into()),
        ("study.toml", "schema = 1\nname = \"s\"\nsource = \"me\"\n[[figure]]\nid = \"f\"\nplace = \"p\"\nplatform = \"m2\"\nworkload = \"rampup\"\npolicy = \"linux-6.8\"\n[[figure.list]]\nquantity = \"time_on_cpu\"\ncpu = 0\nrows = [[0, 26]]\n".into()),
    ] {
        std::fs::write(dir.join(file), text).unwrap();
    }
    let run = |workload: &'static str, policy: &'static str| {
        vec!["run", workload, "--platform", "m1", "--policy", policy]
    };
    for (args, place) in [
        (run("cpus.json", "mainline"), "cpus.json:3:3: task `a`: cpus: there is no CPU9"),
        (run("reserve.json", "mainline"), "reserve.json:3:3: task `a-4`: SCHED_DEADLINE with 9000"),
        (run("calibration.json", "mainline"), "calibration.json:2:27: global.calibration: "),
        (run("rampup", "limits.toml"), "limits.toml:6:1: scaling_min_freq of policy0 is 2000000"),
        (run("rampup", "irq.toml"), "irq.toml:5:1: how often is not said"),
        (run("rampup", "cpu.toml"), "cpu.toml:5:1: there is no such CPU"),
        (run("clamped.json", "clamp.toml"), "clamp.toml:5:1: 500 is above util_max of task `a`"),
        (vec!["reproduce", "study.toml"], "study.toml:5:1: figure f: m2: no built-in platform"),
    ] {
        let message = refused(&dir, &args);
        assert!(message.contains(&format!("risetime: {place}")), "{args:?}: {message}");
    }
}

#[test]
fn what_deploy_optimise_is_asked_for() {
    let dir = scratch("bad-optimise");
    let graph = "schema = 1\nname = \"x\"\n[[dag]]\nname = \"g\"\nperiod_us = 10000\n[[dag.node]]\nname = \"n\"\nruntime_us = 100\n";
    std::fs::write(dir.join("x.toml"), graph).expect("written");
    let slack = ["--objective", "slack", "--slack-power"];
    for (args, wanted) in [
        (&["--slack-power", "5"][..], "--slack-power: power is the objective"),
        (&[slack[0], slack[1], slack[2], "much"], "such as 2.5"),
        (&[slack[0], slack[1], slack[2], "1001"], "from 0 to 1000"),
        (&["--solver", "magic"], "magic"),
        (&["--factor", "99"], "99"),
    ] {
        let all = [&["deploy", "optimise", "x.toml", "--platform", "rpi4"], args].concat();
        let err = refused(&dir, &all);
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
}
