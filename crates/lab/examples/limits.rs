//! Every setting of the catalogue that acts × 4 platforms: whether `explain` names what is lost, and whether its largest cause
//! saves what it says.
//!
//! ```text
//! limits run FILE [PLATFORM] [NAME]   a line for each case that FILE does not have yet; NAME: settings that begin so
//! limits show FILE                    what is not explained, and whose absence saves too little
//! limits counts FILE                  a line a platform, as tests/limits/counts.csv has it
//! ```

#[path = "../tests/limits/figures.rs"]
mod figures;

use figures::{Case, PLATFORMS, Row, cases, explained, words};
use risetime_model::settings::Param;
use std::io::Write;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["run", path] => PLATFORMS.iter().for_each(|p| walk(path, p, "")),
        ["run", path, platform] => walk(path, known(platform), ""),
        ["run", path, platform, name] => walk(path, known(platform), name),
        ["show", path] => show(path),
        ["counts", path] => counts(path),
        _ => {
            eprintln!("limits run FILE [PLATFORM] [NAME] | show FILE | counts FILE");
            std::process::exit(2);
        }
    }
}

fn known(name: &str) -> &'static str {
    PLATFORMS.into_iter().find(|p| *p == name).expect("a platform")
}

fn walk(path: &str, platform: &'static str, name: &str) {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let done = |key: &str| before.lines().any(|line| line.starts_with(&format!("{key};")));
    let mut file =
        std::fs::OpenOptions::new().create(true).append(true).open(path).expect("writable");
    let mut explain = |case: Case| {
        let key = key(&case);
        if done(&key) {
            return;
        }
        let Some(row) = explained(&case) else { return };
        let Row { lost_ms, affinity_ms, unexplained_ms, largest, share_ms, saves_ms, runs } = row;
        writeln!(
            file,
            "{key};{lost_ms:.3};{affinity_ms:.3};{unexplained_ms:.3};{largest};{share_ms:.3};{saves_ms:.3};{runs}"
        )
        .expect("written");
    };
    let kept = |param: &Param| param.name.starts_with(name);
    cases(platform, kept, |found| found.into_iter().for_each(&mut explain));
}

fn key(case: &Case) -> String {
    format!("{};{};{}", case.platform, case.kernel, words(&case.set))
}

fn rows(path: &str) -> Vec<(String, Row)> {
    let text = std::fs::read_to_string(path).expect("readable");
    let of = |line: &str| {
        let cells: Vec<&str> = line.split(';').collect();
        let [platform, kernel, set, lost, affinity, unexplained, largest, share, saves, runs] =
            cells[..]
        else {
            panic!("{line}");
        };
        let ms = |cell: &str| cell.parse::<f64>().expect(line);
        let row = Row {
            lost_ms: ms(lost),
            affinity_ms: ms(affinity),
            unexplained_ms: ms(unexplained),
            largest: largest.into(),
            share_ms: ms(share),
            saves_ms: ms(saves),
            runs: runs.parse().expect(line),
        };
        (format!("{platform} {kernel}+{set}"), row)
    };
    text.lines().map(of).collect()
}

fn show(path: &str) {
    for (name, row) in rows(path) {
        if !row.is_explained() {
            println!("{name}: {:.2} of {:.2} ms unexplained", row.unexplained_ms, row.lost_ms);
        }
        if !row.saves() {
            println!(
                "{name}: {} has {:.2} ms and saves {:.2}",
                row.largest, row.share_ms, row.saves_ms
            );
        }
    }
}

fn counts(path: &str) {
    println!("platform,cases,explained,saves");
    let rows = rows(path);
    for platform in PLATFORMS {
        let own: Vec<&Row> = rows
            .iter()
            .filter(|(name, _)| name.starts_with(&format!("{platform} ")))
            .map(|r| &r.1)
            .collect();
        let explained = own.iter().filter(|r| r.is_explained()).count();
        let saves = own.iter().filter(|r| r.saves()).count();
        println!("{platform},{},{explained},{saves}", own.len());
    }
}
