//! Admission tests beside the simulator, on as many random sets as there is time for.
//!
//! ```text
//! admission run FILE SETS [SECONDS]   SETS sets of each case and utilisation; what FILE has is not run again, so that it may be
//!                                     stopped at any time and go on; SECONDS: stops by itself
//! admission show CASE PERCENT SEED    the sets of a piece that miss something, as rt-app JSON
//! admission                           prints the table of tests/admission/counts.csv
//! admission plot FILE.svg             a panel each scheduler: admitted by each test, and what misses nothing
//! ```

#[path = "../tests/admission/figures.rs"]
#[allow(dead_code, reason = "what the test `admission` judges with")]
mod figures;

use figures::{PERCENT, by_test, cases, file, from_csv, sets, table};
use risetime_report::chart::{Axis, AxisKind, Chart, Colour, Panel, Series, Shape, Size, Theme};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Sets of a piece of work: a line of the file for each test.
const CHUNK: u64 = 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => print!("{}", table(&counts())),
        ["run", path, n] => work(path, n, None),
        ["run", path, n, seconds] => work(path, n, Some(seconds)),
        ["show", name, percent, seed] => show(name, percent, seed),
        ["plot", path] => std::fs::write(path, chart().svg(Theme::Light)).expect("written"),
        _ => {
            eprintln!("admission [run FILE SETS [SECONDS] | plot FILE.svg]");
            std::process::exit(2);
        }
    }
}

/// The sets of a chunk that are admitted and miss something, as rt-app JSON.
fn show(name: &str, percent: &str, first: &str) {
    let percent: u32 = percent.parse().expect("a number");
    let first: u64 = first.parse().expect("a number");
    let all = cases();
    let (_, case) = all.iter().find(|(known, _)| known == name).expect("a case");
    for seed in first..first + CHUNK {
        let Some(set) = case.set(percent, seed * 1000 + u64::from(percent)) else { continue };
        if case.missed(&set) > 0 {
            println!(
                "{seed}: {} missed; {:?}\n{}",
                case.missed(&set),
                case.answers(&set),
                case.text(&set)
            );
        }
    }
}

fn counts() -> figures::Counts {
    from_csv(&std::fs::read_to_string(file()).expect("counts.csv"))
}

/// Lines `chunk;…`, the rest as in counts.csv: a chunk that is there is done.
fn work(path: &str, n: &str, seconds: Option<&str>) {
    let n: u64 = n.parse().expect("a number of sets");
    let limit = seconds.map(|s| Duration::from_secs(s.parse().expect("seconds")));
    let begun = Instant::now();
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let done: BTreeSet<&str> =
        before.lines().filter_map(|line| line.split_once(';').map(|(chunk, _)| chunk)).collect();
    let cases = cases();
    let mut pieces = Vec::new();
    // By seeds first: whenever it stops, every case has about as many.
    for first in (0..n).step_by(CHUNK as usize) {
        for (i, (name, _)) in cases.iter().enumerate() {
            for percent in PERCENT {
                let chunk = format!("{name}/{percent}/{first}");
                if !done.contains(chunk.as_str()) {
                    pieces.push((i, percent, first, chunk));
                }
            }
        }
    }
    let out = std::fs::OpenOptions::new().create(true).append(true).open(path).expect(path);
    let (out, next) = (Mutex::new(out), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((case, percent, first, chunk)) =
                    pieces.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if limit.is_some_and(|limit| begun.elapsed() > limit) {
                        return;
                    }
                    let (name, case) = &cases[*case];
                    let mut lines = String::new();
                    for (test, row) in case.count(*percent, *first..(first + CHUNK).min(n)) {
                        let one = [((name.clone(), *percent, test), row)].into_iter().collect();
                        let line = figures::to_csv(&one);
                        lines += &format!("{chunk};{}\n", line.lines().nth(1).expect("a row"));
                    }
                    if lines.is_empty() {
                        lines = format!("{chunk};\n");
                    }
                    out.lock().expect("no panic").write_all(lines.as_bytes()).expect("written");
                }
            });
        }
    });
    let all = std::fs::read_to_string(path).expect("it was written");
    let rows: String = all
        .lines()
        .filter_map(|line| line.split_once(';').map(|(_, row)| format!("{row}\n")))
        .collect();
    let counts = from_csv(&rows);
    std::fs::write(file(), figures::to_csv(&counts)).expect("counts.csv");
    eprintln!("{} sets in {:.0} s", sets(&counts), begun.elapsed().as_secs_f64());
    print!("{}", table(&counts));
}

fn chart() -> Chart {
    let counts = counts();
    let all = by_test(&counts);
    let schedulers: BTreeSet<&String> = all.keys().map(|(scheduler, _)| scheduler).collect();
    let panel = |scheduler: &&String| {
        let tests: Vec<(&String, &BTreeMap<u32, figures::Row>)> = all
            .iter()
            .filter(|((of, _), _)| of == *scheduler)
            .map(|((_, test), rows)| (test, rows))
            .collect();
        let line = |of: &dyn Fn(&figures::Row) -> u64, rows: &BTreeMap<u32, figures::Row>| {
            let part = |(p, r): (&u32, &figures::Row)| {
                (f64::from(*p), 100.0 * of(r) as f64 / r.sets().max(1) as f64)
            };
            Shape::Line(rows.iter().map(part).collect())
        };
        let fine =
            |r: &figures::Row| r.sets() - r.admitted_missed - r.refused_missed - r.unknown_missed;
        let mut series = vec![Series::new("misses nothing", Colour::Ink, line(&fine, tests[0].1))];
        for (i, (test, rows)) in tests.iter().enumerate() {
            let admitted = line(&|r| r.admitted, rows);
            series.push(Series::new(test.as_str(), Colour::Nth(i), admitted));
        }
        Panel {
            title: scheduler.to_string(),
            x: Axis::new("utilisation", "% of the CPUs").kind(AxisKind::Near).range(10.0, 105.0),
            y: Axis::new("of the sets", "%").range(0.0, 100.0),
            series,
            size: Size::Half,
            ..Panel::default()
        }
    };
    Chart {
        title: "Admitted by each test, and what misses no deadline in the simulator".into(),
        subtitle: format!(
            "{} random sets on CPUs of the ODROID-XU4, Raspberry Pi 4, ZCU102 and Jetson AGX Xavier, without noise",
            sets(&counts)
        ),
        footer: "cargo run --release -p risetime-lab --example admission".into(),
        panels: schedulers.iter().map(panel).collect(),
    }
}
