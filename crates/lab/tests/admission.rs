//! What an admission test admits misses nothing in the simulator; what an exact one refuses misses something.

#[path = "admission/figures.rs"]
#[allow(dead_code, reason = "what the example `admission` counts and prints with")]
mod figures;

#[path = "admission/requests.rs"]
#[allow(dead_code, reason = "what the example `dl_requests` asks with")]
mod requests;

use figures::{KERNEL, cases, share};
use risetime_deploy::admit::Answer;

/// A few of each case and utilisation; the example runs 100 000 (docs/admission.md).
#[test]
fn what_is_admitted_misses_nothing() {
    let mut seen = 0;
    for (name, case) in cases() {
        for percent in [45, 70, 80, 90, 100] {
            for seed in 0..2 {
                let Some(set) = case.set(percent, 7_000_000 + seed) else { continue };
                let missed = case.missed(&set);
                seen += 1;
                for (test, answer) in case.answers(&set) {
                    match answer {
                        Answer::Admitted if test != KERNEL => {
                            assert_eq!(missed, 0, "{name} {percent} {seed}: {test} admits {set:?}")
                        }
                        Answer::Refused if test != KERNEL => {
                            assert!(missed > 0, "{name} {percent} {seed}: {test} refuses {set:?}")
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn sets_take_what_they_are_asked_to() {
    for (name, case) in cases() {
        let Some(set) = case.set(70, 5) else { continue };
        let whole: f64 = case_whole(&name);
        assert!((share(&set) / whole - 0.7).abs() < 0.002, "{name}: {}", share(&set) / whole);
        assert_eq!(case.set(70, 5), Some(set), "the same seed, the same set");
    }
}

/// CPUs of capacity 1024 that a case has.
fn case_whole(name: &str) -> f64 {
    let (platform, _) = name.split_once(' ').expect("two words");
    match platform {
        "rpi4" | "zcu102" => 4.0,
        "xavier-agx" => 8.0,
        "odroid-xu4" => 4.0 * (377.0 + 1024.0) / 1024.0,
        one => one.rsplit_once('-').expect("a capacity").1.parse::<f64>().expect("it is") / 1024.0,
    }
}

/// The page has what was counted.
#[test]
fn the_page_has_the_table() {
    let counts = figures::from_csv(&std::fs::read_to_string(figures::file()).expect("counts.csv"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/admission.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (head, rest) = page.split_once("<!-- table -->\n").expect("a table");
    let (_, foot) = rest.split_once("<!-- end -->").expect("its end");
    let wanted = format!("{head}<!-- table -->\n{}<!-- end -->{foot}", figures::table(&counts));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &wanted).expect("written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("the page"), wanted, "BLESS=1 writes it anew");
    let all: u64 = figures::sets(&counts);
    assert!(all >= 100_000, "{all}");
    // What is said above the table: the kernel's own admission promises no deadlines, and every other test keeps what it says.
    for ((scheduler, test), row) in
        figures::by_test(&counts).iter().filter(|((_, t), _)| t != KERNEL)
    {
        for (percent, r) in row {
            let kept = (r.admitted_missed, r.refused_missed) == (0, r.refused);
            assert!(kept, "{scheduler}, {test} at {percent} %: {r:?}");
        }
    }
}

/// Real kernels took and refused the same requests as our arithmetic does.
#[test]
fn kernels_admit_what_the_arithmetic_admits() {
    let mut of: std::collections::BTreeMap<String, (usize, usize)> = Default::default();
    for ((release, seed), answer) in requests::recorded() {
        assert_eq!(answer, requests::taken(&release, seed), "{release}, seed {seed}");
        let counts = of.entry(release).or_default();
        counts.0 += answer.len();
        counts.1 += answer.matches('-').count();
    }
    assert!(of.len() >= 3, "{of:?}");
    for (release, (asked, refused)) in of {
        assert!(
            asked >= 200 && refused >= 50 && asked - refused >= 50,
            "{release}: {refused} of {asked}"
        );
    }
}
