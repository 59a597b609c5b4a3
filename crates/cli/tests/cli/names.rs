//! What a page names is what there is: CPUs, tasks, files, kernels.

use crate::{prints, risetime_in, scratch};

/// A machine of more CPUs than are told apart: rows name all that they stand for, moves the CPU itself.
#[test]
fn a_large_machine_names_the_cpus_that_a_row_stands_for() {
    let page = prints(&["run", "phone", "--platform", "server64", "--seconds", "0.5", "--full"]);
    assert!(page.contains("\n  CPU0-63 MHz "), "{page}");
    assert!(page.contains(" render CPU0-63 Frequency residency (ms) "), "{page}");
    let alone = page.lines().find(|l| l.contains("CPU0 ") && !l.contains(" Frequency (MHz)"));
    assert_eq!(alone, None, "{page}");
    let twice = ["--platform", "server64", "--policy", "linux-6.12", "--policy", "mainline"];
    assert!(prints(&[&["run", "rampup"], &twice[..]].concat()).contains("\non CPU0-63 ms "));
    let plot = prints(&["run", "rampup", "--platform", "server64", "--full"]);
    assert!(plot.contains(" rampup CPU0 Frequency (MHz)"), "{plot}");
}

/// What is known of three instances together is told once, and says so.
#[test]
fn figures_of_several_instances_together_stand_with_the_first() {
    let dir = scratch("instances");
    let workload = r#"{ "tasks": { "w": { "instance": 3, "loop": -1, "run": 2000,
        "timer": { "ref": "unique", "period": 10000 } } }, "global": { "duration": 1 } }"#;
    std::fs::write(dir.join("w.json"), workload).expect("a file");
    for more in [&["--phases", "2"][..], &["--policy", "linux-6.12", "--policy", "mainline"]] {
        let said =
            risetime_in(&dir, &[&["run", "w.json", "--platform", "m1", "--full"], more].concat());
        let starts = |start: &str| said.out.lines().filter(|l| l.starts_with(start)).count();
        let pooled = ["response p99 ms", "missed", "activation p50 ms", "wakeup p99 ms"];
        for figure in pooled {
            let told = (starts(figure), starts(&format!("{figure}, all 3 together ")));
            assert_eq!(told, (1, 1), "{figure} in {}", said.out);
        }
        assert_eq!(starts("waiting ms"), 3, "{}", said.out);
    }
}
