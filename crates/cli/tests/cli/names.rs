//! What a page names is what there is: CPUs, tasks, files, kernels.

use crate::{command, prints, risetime_in, scratch};
use std::process::Command;

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

/// The script asks the command itself, so that every name is completed: in bash as bash would, in zsh as its script asks.
#[test]
fn names_are_completed() {
    let dir = scratch("complete");
    std::fs::write(dir.join("c.bash"), prints(&["completions", "bash"])).unwrap();
    std::fs::write(dir.join("my-soc.toml"), "").unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_risetime")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let bash = |words: &[&str]| {
        let script = "source ./c.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9\n\
                      _clap_complete_risetime \"$1\" \"${@: -1}\"; echo \"${COMPREPLY[*]}\"";
        let mut bash = Command::new("bash");
        bash.args(["-c", script, "bash"]).args(words).current_dir(&dir).env("PATH", &path);
        String::from_utf8(bash.output().expect("bash").stdout).unwrap()
    };
    let zsh = |words: &[&str]| {
        let mut asked = command(&dir, &[]);
        let at = (words.len() - 1).to_string();
        asked
            .env("RISETIME_COMPLETE", "zsh")
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_INDEX", at);
        String::from_utf8(asked.arg("--").args(words).output().unwrap().stdout).unwrap()
    };
    assert!(prints(&["completions", "zsh"]).contains("RISETIME_COMPLETE=\"zsh\""));
    for (words, wanted) in [
        (&["run", "rampup-b"][..], "rampup-beside"),
        (&["run", "rampup", "--platform", "hikey9"], "hikey960"),
        (&["run", "rampup", "--platform", "my-"], "my-soc.toml"),
        (&["run", "rampup", "--policy", "linux-6.12"], "linux-6.12"),
        (&["run", "rampup", "--policy", "linux-6.8+rate"], "linux-6.8+rate_limit_us="),
        (&["compare", "rampup", "--set", "scaling_min"], "scaling_min_freq="),
        (&["sweep", "rampup-b"], "rampup-beside"),
        (&["advise", "rampup", "--platform", "hikey9"], "hikey960"),
        (&["explain", "rampup", "--policy", "linux-6.12"], "linux-6.12"),
        (&["reproduce", "coh"], "coherent-response"),
        (&["show", "steady"], "steady-tasks"),
        (&["vm", "shell", "-p", "rpi"], "rpi4"),
        (&["run", "--uclamp-mi"], "--uclamp-min"),
        (&["doc"], "doctor"),
    ] {
        let words = [&["risetime"][..], words].concat();
        assert_eq!(bash(&words).trim(), wanted, "{words:?}");
        let said = zsh(&words);
        assert!(said.lines().count() == 1 && said.starts_with(wanted), "{words:?}: {said}");
    }
}
