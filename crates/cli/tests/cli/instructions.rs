//! How many instructions six commands take, held against what is recorded in `instructions.csv`: time depends on what else a
//! machine has to do, this does not. What is counted is the command as tests are built, in the order of the file's lines.
//!
//! Only of the compiler that the file names: another one makes other code, which is told and not judged. `BLESS=1` records
//! anew. Whoever makes a command take more says in docs/performance.md what for.

use crate::{command, repository, scratch};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands: short, since debug builds check every short way against the long one.
const COMMANDS: [&str; 6] = [
    "run phone --platform pixel6 --policy linux-7.2 --seconds 0.2 --format csv",
    "run server --platform server64 --seconds 0.005",
    "run rampup --platform m1",
    "explain rampup --platform m1 --seconds 0.005",
    "compare phone --platform pixel6 --policy linux-7.2 --policy linux-6.6 --seconds 0.05 --phases 2",
    "run rt50.json --platform odroid-xu4 --policy linux-7.2+noise=off+dl_placement=partitioned-ff --seconds 0.3",
];

/// By so many percent a command may grow.
const GROWTH: u64 = 2;

/// Returns 50 deadline tasks as in `benches/rampup.rs` of `lab`.
fn rt50() -> String {
    // Periods in ms, and how many tasks have each.
    const PERIODS: [(u64, usize); 5] = [(20, 20), (25, 9), (40, 8), (50, 12), (250, 1)];
    let task = |(i, period): (usize, u64)| {
        let (runtime, period) = (period * 73, period * 1000);
        let work = runtime * 95 / 100;
        format!(
            r#""t{i}": {{"policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, "phases": {{
                "asks": {{"loop": 1, "sleep": 50000}},
                "works": {{"loop": -1, "timer": {{"ref": "unique", "period": {period}}}, "run": {work}}}}}}}"#
        )
    };
    let all = PERIODS.iter().flat_map(|(period, n)| std::iter::repeat_n(*period, *n));
    let tasks: Vec<String> = all.enumerate().map(task).collect();
    format!(r#"{{"tasks": {{{}}}}}"#, tasks.join(", "))
}

/// Returns what a program prints, without the line's end; `None`: it is not there, or fails.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim_end().to_string())
}

/// Returns the compiler in use, with the machine that it compiles for: `rustc 1.95.0 (59807616e 2026-04-14) x86_64-…`.
fn compiler() -> Option<String> {
    let about = said("rustc", &["-vV"])?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some(format!("{} {host}", about.lines().next()?))
}

/// Returns the first CPU that this process may use: with one alone the analysis is where the simulation is.
fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.expect("Linux tells it").trim();
    list.split([',', '-']).next().expect("at least one").to_string()
}

/// Returns how many instructions the command takes in `dir`.
fn instructions(dir: &Path, args: &str) -> u64 {
    let args: Vec<&str> = args.split(' ').collect();
    let own = command(dir, &args);
    let mut counted = Command::new("taskset");
    counted.args(["-c", &first_cpu(), "valgrind", "--tool=callgrind"]);
    counted.arg("--callgrind-out-file=/dev/null").arg(own.get_program()).args(own.get_args());
    let output = crate::as_meant_for_a_person(&mut counted, dir).output().expect("util-linux");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {text}");
    let count = text.lines().find_map(|line| line.split_once("Collected : "));
    count.and_then(|(_, n)| n.trim().parse().ok()).unwrap_or_else(|| panic!("{args:?}: {text}"))
}

#[test]
fn instructions_are_not_more_than_recorded() {
    if said("valgrind", &["--version"]).is_none() {
        eprintln!("NOT RUN: no valgrind (sudo apt-get install valgrind)");
        return;
    }
    let file = repository().join("crates/cli/tests/instructions.csv");
    let recorded = std::fs::read_to_string(&file);
    // Without any record there is nothing to judge by.
    let judges = recorded.is_ok();
    let recorded = recorded.unwrap_or_default();
    let compiler = compiler().unwrap_or_default();
    let known = |command: &str| {
        let row = recorded.lines().find_map(|line| line.strip_prefix(command)?.strip_prefix(','));
        let fields: Vec<&str> = row?.split(',').collect();
        Some((fields[0].parse::<u64>().expect("a number"), fields[1] == compiler))
    };
    let dir = scratch("instructions");
    std::fs::write(dir.join("rt50.json"), rt50()).expect("written");
    let today = said("date", &["-u", "+%F"]).unwrap_or_default();
    let mut now = "command,instructions,compiler,date\n".to_string();
    let mut grown = String::new();
    for command in COMMANDS {
        let n = instructions(&dir, command);
        writeln!(now, "{command},{n},{compiler},{today}").expect("to memory");
        match known(command) {
            Some((before, true)) if n * 100 > before * (100 + GROWTH) => {
                writeln!(grown, "risetime {command}: {before} → {n}").expect("to memory");
            }
            Some((before, judged)) => {
                let of = if judged { "" } else { ", under another compiler" };
                eprintln!("risetime {command}: {n} (recorded: {before}{of})");
            }
            None if judges => {
                writeln!(grown, "risetime {command}: {n}, not recorded").expect("to memory");
            }
            None => eprintln!("risetime {command}: {n}"),
        }
    }
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(&file, now).expect("written");
    }
    assert!(
        grown.is_empty(),
        "{grown}more than {GROWTH} % more instructions than in {}: say in docs/performance.md what for, then BLESS=1",
        file.display()
    );
}
