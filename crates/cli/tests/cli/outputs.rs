//! Files that the command writes: two of one name, a disk that is full, a signal in the middle.

use crate::{as_meant_for_a_person, command, ramp, risetime_in, scratch};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn no_two_outputs_are_one_file() {
    let dir = scratch("one-file");
    fs::create_dir(dir.join("real")).unwrap();
    symlink("real", dir.join("link")).unwrap();
    fs::write(dir.join("there.svg"), "old").unwrap();
    fs::hard_link(dir.join("there.svg"), dir.join("hard")).unwrap();
    symlink("real/new.svg", dir.join("to-new.svg")).unwrap();
    fs::write(dir.join("w.json"), r#"{"tasks": {"t": {"run": 1000}}}"#).unwrap();
    let before = names(&dir);
    for (plot, other) in [
        ("a.svg", ["--perfetto", "a.svg"]),
        ("./a.svg", ["--perfetto", "real/../a.svg"]),
        ("a.svg", ["--plot", "a.svg"]),
        ("link/a.svg", ["--perfetto", "real/a.svg"]),
        ("there.svg", ["--perfetto", "hard"]),
        ("to-new.svg", ["--perfetto", "real/new.svg"]),
    ] {
        let said = risetime_in(&dir, &ramp(&["--plot", plot, other[0], other[1]]));
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{plot} {other:?}: {}", said.err);
        assert!(said.err.contains("is the same file as --"), "{}", said.err);
    }
    let own = ["run", "w.json", "--platform", "m1", "--perfetto", "./w.json"];
    let said = risetime_in(&dir, &own);
    assert!(said.code == 2 && said.err.contains("is w.json, which is read"), "{}", said.err);
    assert_eq!(
        (names(&dir), fs::read_to_string(dir.join("hard")).unwrap()),
        (before, "old".into())
    );
    let ways = ["--plot", "a.svg", "--plot", "a.png", "--perfetto", "/dev/null"];
    assert_eq!(risetime_in(&dir, &ramp(&ways)).code, 0);
}

/// All that is written ends alike where there is no space: 1, and nothing half.
#[test]
fn a_full_disk_is_the_same_code_everywhere() {
    let dir = scratch("full-disk");
    for name in ["full.svg", "full.png"] {
        symlink("/dev/full", dir.join(name)).unwrap();
    }
    for way in [["--plot", "full.svg"], ["--plot", "full.png"], ["--perfetto", "/dev/full"]] {
        let said = risetime_in(&dir, &ramp(&way));
        assert_eq!(said.code, 1, "{way:?}: {}", said.err);
        assert!(said.err.contains("no space left"), "{}", said.err);
    }
    // No file may become larger than nothing, those of the directory for temporary files included.
    for way in ["--bursts", "--plot a.svg", "--perfetto a.trace"] {
        let mut sh = Command::new("/bin/sh");
        let (program, run) = (env!("CARGO_BIN_EXE_risetime"), ramp(&[way]).join(" "));
        sh.args(["-c", &format!("trap '' XFSZ; ulimit -f 0; exec '{program}' {run}")]);
        let out = as_meant_for_a_person(&mut sh, &dir).output().unwrap();
        let words = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{way}: {words}");
        assert!(words.contains("too large"), "{way}: {words}");
    }
    // A name that nobody can write to is bad input.
    for name in ["none/a.svg", "full.svg/a.svg"] {
        assert_eq!(risetime_in(&dir, &ramp(&["--plot", name])).code, 2, "{name}");
    }
    assert_eq!(names(&dir), ["full.png", "full.svg"]);
}

/// A signal ends it as it ends other programs, and nothing is left of what was begun; one that is ignored (`nohup`) stays so.
#[test]
fn a_signal_leaves_no_half_of_a_file() {
    let run = ramp(&["--seconds", "3000", "--perfetto", "long.trace"]);
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let dir = scratch(&format!("signal-{name}"));
        let mut env = Command::new("env");
        let ignored = if name == "TERM" { "--ignore-signal=HUP" } else { "--default-signal=HUP" };
        env.args(["--default-signal=INT", ignored, env!("CARGO_BIN_EXE_risetime")]).args(&run);
        let quiet = as_meant_for_a_person(&mut env, &dir).stdout(Stdio::null());
        let mut child = quiet.stderr(Stdio::null()).spawn().unwrap();
        let since = Instant::now();
        while names(&dir).is_empty() {
            assert!(since.elapsed() < Duration::from_secs(30), "it never began to write");
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill = |name: &str| {
            let pid = child.id().to_string();
            assert!(
                Command::new("/bin/kill")
                    .args([&format!("-{name}"), &pid])
                    .status()
                    .unwrap()
                    .success()
            );
        };
        if name == "TERM" {
            kill("HUP");
            std::thread::sleep(Duration::from_millis(50));
        }
        kill(name);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(names(&dir), [""; 0], "{name}");
    }
}

/// A few kB that become 300 MB are no kernel.
#[test]
fn a_kernel_is_unpacked_up_to_a_limit() {
    let dir = scratch("bomb");
    let mut sh = Command::new("/bin/sh");
    let many = "head -c 4000000 /dev/zero | gzip > a; for i in 1 2 3 4 5 6 7 8; do cat a a a a a a a a a a; done > bomb.gz";
    assert!(sh.args(["-c", many]).current_dir(&dir).status().unwrap().success());
    let bomb = ["--backend", "vm", "--kernel", "bomb.gz"];
    let mut run = command(&dir, &ramp(&bomb));
    let out = run.env("RISETIME_CACHE", dir.join("cache")).output().unwrap();
    let words = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{words}");
    assert!(words.contains("bomb.gz: too big: more than 256 MiB unpacked"), "{words}");
}
