//! Plans that are called guaranteed, run again: on as many random files of needs as there is time for.
//!
//! ```text
//! guarantees run FILES [SECONDS]   files 0 to FILES − 1 of the record tests/guarantees/record.csv; what it has is not run again, so that
//!                                  it may be stopped at any time and go on; SECONDS: stops by itself
//! guarantees show SEED             the file, and its line
//! guarantees some SEED…            lines of these, not recorded
//! guarantees vm PLANS              the first so many of the record that are guaranteed, for 2 s each on the kernel that they are for, beside
//!                                  the ordinary tasks, planned for that machine: a kthread changes its frequencies, and its
//!                                  costs are the profile `vm`. Recorded in tests/guarantees/vm.csv
//! guarantees                       counts
//! ```

#[path = "../tests/guarantees/draw.rs"]
#[allow(dead_code, reason = "what the test `guarantees` judges with")]
mod draw;

use draw::{Case, HEAD};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn record() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/guarantees/record.csv")
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => counts(),
        ["run", n] => run(n, None),
        ["run", n, seconds] => run(n, Some(seconds)),
        ["some", ref seeds @ ..] => {
            for seed in seeds {
                println!("{}", Case::of(seed.parse().expect("a number")).line());
            }
        }
        ["vm", n] => in_vm(n.parse().expect("a number of plans")),
        ["show", seed] => show(&Case::of(seed.parse().expect("a number"))),
        _ => {
            eprintln!("guarantees [run FILES [SECONDS] | some SEED… | vm PLANS | show SEED]");
            std::process::exit(2);
        }
    }
}

fn run(n: &str, seconds: Option<&str>) {
    let n: u64 = n.parse().expect("a number of files");
    let limit = seconds.map(|s| Duration::from_secs(s.parse().expect("seconds")));
    let begun = Instant::now();
    let before = std::fs::read_to_string(record()).unwrap_or_default();
    let done: BTreeSet<u64> =
        before.lines().filter_map(|l| l.split(',').next()?.parse().ok()).collect();
    let mut out =
        std::fs::OpenOptions::new().create(true).append(true).open(record()).expect("the record");
    if before.is_empty() {
        writeln!(out, "{HEAD}").expect("written");
    }
    for (i, seed) in (0..n).filter(|seed| !done.contains(seed)).enumerate() {
        if limit.is_some_and(|limit| begun.elapsed() > limit) {
            break;
        }
        if i == 0 {
            let of = |command: &str, args: &[&str]| {
                let ran = std::process::Command::new(command).args(args).output();
                ran.map(|r| String::from_utf8_lossy(&r.stdout).trim().to_string())
                    .unwrap_or_default()
            };
            let commit = of("git", &["describe", "--always", "--dirty"]);
            writeln!(out, "# {commit}, {}", of("date", &["+%F"])).expect("written");
        }
        writeln!(out, "{}", Case::of(seed).line()).expect("written");
    }
    counts();
}

/// Runs plans on stock kernels.
fn in_vm(n: usize) {
    let path = record().with_file_name("vm.csv");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let done: BTreeSet<&str> = draw::rows(&before).iter().map(|row| row[0]).collect();
    let all = std::fs::read_to_string(record()).expect("the record");
    let rows = draw::rows(&all);
    let guaranteed = rows.iter().filter(|r| r[6] == "1").take(n);
    let mut out =
        std::fs::OpenOptions::new().create(true).append(true).open(&path).expect("the record");
    if before.is_empty() {
        writeln!(out, "{}", draw::VM_HEAD).expect("written");
    }
    for row in guaranteed.filter(|r| !done.contains(r[0])) {
        let Some(line) = Case::of(row[0].parse().expect("a seed")).vm_line() else { continue };
        println!("{line}");
        writeln!(out, "{line}").expect("written");
    }
}

/// A file, its plan CPU by CPU, and each run of it.
fn show(case: &Case) {
    let needs = case.needs(0);
    let tried = case.tried(&needs);
    let (platform, kernel) = (case.platform, &case.asked.policy);
    println!("{}{platform} {kernel} {:?}", case.text(0), tried.rules.scheduler);
    match &tried.plan {
        Err(missing) => missing.iter().for_each(|m| println!("{}: {}", m.name, m.reason)),
        Ok(plan) => {
            for used in &plan.used {
                let proof = used.proof.as_ref().map(|p| format!("{}: {}", p.test.name, p.reason));
                println!(
                    "{}: {:.1} %: {}",
                    used.cpu,
                    used.percent,
                    proof.unwrap_or_else(|e| format!("not proven: {e}"))
                );
                for task in plan.tasks.iter().filter(|t| t.cpu == used.cpu) {
                    let what = needs.tasks.iter().find(|n| n.name == task.name).map(|n| n.what);
                    println!("  {} {:?}: {what:?}", task.name, task.attr);
                }
            }
            println!("at least: {:?}", plan.floors);
            let length = tried.promise.as_ref().map_or_else(Default::default, |p| p.length);
            for (name, k, t) in case.runs_again(&needs, plan, length) {
                println!(
                    "again {name:?} {k}: {} due, {} missed, {:?}, least {:?}",
                    t.due, t.missed, t.first, t.least
                );
            }
        }
    }
    for t in tried.promise.iter().flat_map(|p| &p.trials) {
        println!(
            "{:?}: {} due, {} missed, {:?}, {:?}, least {:?}",
            t.company, t.due, t.missed, t.refused, t.first, t.least
        );
    }
    println!("{HEAD}\n{}", case.line());
}

fn counts() {
    let text = std::fs::read_to_string(record()).unwrap_or_default();
    let rows: Vec<Vec<&str>> = draw::rows(&text);
    let sum = |at: usize, of: &dyn Fn(&Vec<&str>) -> bool| -> u64 {
        rows.iter().filter(|r| of(r)).filter_map(|r| r[at].parse::<u64>().ok()).sum()
    };
    println!(
        "{} files, {} guaranteed: {} jobs due, {} missed",
        rows.len(),
        sum(6, &|_| true),
        sum(9, &|_| true),
        sum(10, &|_| true)
    );
    println!(
        "with 10 % more runtime {} miss nothing, of which {} are guaranteed, {} proven, {} kept",
        sum(11, &|_| true),
        sum(6, &|r| r[11] == "1"),
        sum(7, &|r| r[11] == "1"),
        sum(8, &|r| r[11] == "1")
    );
    for scheduler in ["auto", "edf", "rm", "dm"] {
        for platform in draw::PLATFORMS {
            let of = |r: &Vec<&str>| r[3] == scheduler && r[1] == platform && r[11] == "1";
            println!(
                "{scheduler} {platform}: {} of {} (proven {}, kept {})",
                sum(6, &of),
                sum(11, &of),
                sum(7, &of),
                sum(8, &of)
            );
        }
    }
}
