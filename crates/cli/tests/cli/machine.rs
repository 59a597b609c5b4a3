//! `--backend vm` and `vm fetch` on a QEMU and an apt that are shell scripts: whatever happens,
//! a clear error, no process that stays, no half of a file that counts as a whole one.

use crate::{as_meant_for_a_person, command, scratch};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A user's whole world in one directory: programs, cache, agent, temporary files.
struct World(PathBuf);

impl World {
    fn new(name: &str) -> World {
        let w = World(scratch(name));
        ["bin", "tmp", "cache"].iter().for_each(|d| fs::create_dir(w.0.join(d)).unwrap());
        // The head of an arm64 program.
        let mut agent = b"\x7fELF".to_vec();
        agent.resize(18, 0);
        agent.extend([183, 0]);
        agent.resize(10_000, 0);
        fs::write(w.0.join("agent"), agent).unwrap();
        w
    }

    /// A world with a kernel, whose QEMU is `script` (in the run's directory; `$HERE` is this one).
    fn with_qemu(name: &str, script: &str) -> World {
        let w = World::new(name);
        let kernel = w.0.join("cache/kernels/7.2.1-arm64");
        fs::create_dir_all(&kernel).unwrap();
        fs::write(kernel.join("Image"), "x").unwrap();
        let version = "if [ \"$1\" = --version ]; then echo QEMU emulator version 10.0.2; exit; fi";
        let note = "echo $$ > $HERE/pid.new; mv $HERE/pid.new $HERE/pid";
        w.program("qemu-system-aarch64", &format!("{version}\n{note}\n{script}"));
        w
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.0.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nHERE={}\n{script}\n", self.0.display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        self.dress(command(&self.0, args))
    }

    fn dress(&self, mut command: Command) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.0.join("bin").display());
        command.env("PATH", path).env("TMPDIR", self.0.join("tmp"));
        command
            .env("RISETIME_CACHE", self.0.join("cache"))
            .env("RISETIME_GUEST", self.0.join("agent"));
        command
    }

    /// The command's exit code and its words on standard error.
    fn fails(&self, args: &[&str]) -> (i32, String) {
        let out = self.command(args).output().unwrap();
        assert_eq!(out.stdout, b"", "a failure prints no result");
        (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
    }

    fn prints(&self, args: &[&str]) -> String {
        let out = self.command(args).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// Starts the command in a group of its own and waits until its helper runs: both their pids.
    /// Who tests in the background of a script has Ctrl-C ignored, or hang-ups (nohup), and would pass that on (`env` undoes it).
    fn start(&self, args: &[&str]) -> (Child, u32) {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,HUP", env!("CARGO_BIN_EXE_risetime")]).args(args);
        as_meant_for_a_person(&mut command, &self.0);
        let mut command = self.dress(command);
        let child = command.process_group(0).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
        let pid = || fs::read_to_string(self.0.join("pid")).ok()?.trim().parse().ok();
        (child.unwrap(), until("the helper starts", pid))
    }

    fn entries(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(dir)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Waits for something, ten seconds at most.
fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(t) = done() {
            return t;
        }
        assert!(since.elapsed() < Duration::from_secs(10), "{what}: not within 10 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// To a process, or (negative) to a group.
fn signal(name: &str, pid: i64) {
    let args = [format!("-{name}"), "--".into(), pid.to_string()];
    assert!(Command::new("/bin/kill").args(args).status().unwrap().success());
}

/// A process that has ended, even if nobody has asked for its status yet.
fn is_gone(pid: u32) -> Option<()> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let zombie = |s: String| s.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"));
    stat.map_or(true, zombie).then_some(())
}

const RUN: [&str; 8] =
    ["run", "rampup", "--platform", "m1", "--backend", "vm", "--perfetto", "ramp.trace"];

#[test]
fn whoever_ends_the_command_ends_qemu() {
    for (how, group) in [("KILL", false), ("TERM", false), ("HUP", false), ("INT", true)] {
        let w = World::with_qemu(&format!("end-{how}"), "touch alive; exec sleep 100");
        let (mut child, qemu) = w.start(&RUN);
        let pid = i64::from(child.id());
        // Ctrl-C reaches the whole group.
        signal(how, if group { -pid } else { pid });
        assert!(child.wait().unwrap().signal().is_some(), "{how}");
        until("QEMU ends", || is_gone(qemu));
        assert!(!w.0.join("ramp.trace").exists(), "{how}");
        if how != "KILL" {
            assert_eq!(w.entries("tmp"), [""; 0], "{how}: at once");
        }
        // What nobody could remove any more goes with the next run.
        w.program("qemu-system-aarch64", "echo QEMU emulator version 10.0.2");
        let (code, words) = w.fails(&RUN);
        let first = words.lines().next();
        assert_eq!((code, first), (1, Some("risetime: the guest ended without an answer")));
        assert_eq!(w.entries("tmp"), [""; 0], "{how}");
        let left: Vec<String> = w.entries(".").into_iter().filter(|n| n.contains("ramp")).collect();
        assert_eq!(left, [""; 0], "{how}");
    }
}

#[test]
fn a_qemu_that_is_killed_at_any_moment_is_an_error_and_no_result() {
    for ms in [0, 20, 80, 300] {
        let w = World::with_qemu(
            &format!("killed-{ms}"),
            "echo booting > console; i=0; while :; do echo $i >> answer; i=$((i + 1)); done",
        );
        let (mut child, qemu) = w.start(&RUN);
        std::thread::sleep(Duration::from_millis(ms));
        signal("KILL", i64::from(qemu));
        assert_eq!(child.wait().unwrap().code(), Some(1), "after {ms} ms");
        assert!(!w.0.join("ramp.trace").exists() && w.entries("tmp").is_empty(), "after {ms} ms");
    }
}

#[test]
fn a_full_disk_is_named() {
    // No file may become larger than a block, as on a disk that is full.
    let w = World::with_qemu("full", "exit 0");
    let mut sh = Command::new("/bin/sh");
    let (program, run) = (env!("CARGO_BIN_EXE_risetime"), RUN.join(" "));
    sh.args(["-c", &format!("trap '' XFSZ; ulimit -f 1; exec '{program}' {run}")]);
    sh.current_dir(&w.0);
    let out = w.dress(sh).output().unwrap();
    let words = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(3), "{words}");
    assert!(words.contains("File too large"), "{words}");
    assert_eq!(w.entries("tmp"), [""; 0]);
    assert!(!w.0.join("ramp.trace").exists());

    let w = with_apt("full-cache", "no space must be found before this", UNPACK);
    w.program("df", "echo Filesystem; echo '/dev/x 1000000 900000 100000 90% /'");
    let (code, words) = w.fails(&["vm", "fetch"]);
    assert_eq!(code, 3);
    assert!(words.contains("found 102 MB of free space, wanted"), "{words}");
}

/// An apt whose mirror has kernel 7.2.1; `download` and `unpack` are what the two do.
fn with_apt(name: &str, download: &str, unpack: &str) -> World {
    let w = World::new(name);
    set_apt(&w, download, unpack);
    w
}

fn set_apt(w: &World, download: &str, unpack: &str) {
    let lists = "$HERE/cache/apt/arm64/lists";
    let apt = format!(
        "case \"$*\" in
indextargets*) echo 'http://mirror.example/debian Debian Debian' ;;
update*) mkdir -p {lists}; : > {lists}/x_Packages ;;
*--print-uris*) ;;
download*) {download} ;;
esac"
    );
    w.program("apt-get", &apt);
    w.program("apt-config", "");
    w.program("df", "echo Filesystem; echo '/dev/x 9000000 1000000 8000000 12% /'");
    w.program("apt-cache", "echo linux-image-7.2.1-arm64");
    w.program("dpkg-deb", unpack);
}

const DOWNLOAD: &str = ": > linux-image.deb";
/// `dpkg-deb -x PACKAGE DIR`.
const UNPACK: &str = "modules=$3/lib/modules/kernel/drivers/cpufreq
mkdir -p $3/boot $modules; echo image > $3/boot/vmlinuz-7.2.1; echo module > $modules/cpufreq-dt.ko";
/// Goes on for ever, for somebody to kill it.
const STUCK: &str = "echo $$ > $HERE/pid.new; mv $HERE/pid.new $HERE/pid; exec sleep 100";

#[test]
fn a_fetch_that_fails_leaves_no_kernel() {
    let cut = "echo 'E: connection lost' >&2; : > linux-image.deb; exit 100";
    let bad = "echo 'unexpected end of file' >&2; exit 2";
    let bare = "mkdir -p $3/boot; echo image > $3/boot/vmlinuz";
    for (name, download, unpack, wanted) in [
        ("net", cut, UNPACK, "apt-get: E: connection lost"),
        ("none", ":", UNPACK, "no package came"),
        ("bad", DOWNLOAD, bad, "dpkg-deb: unexpected end of file"),
        ("image", DOWNLOAD, "mkdir -p $3/boot", "there is no image in its packages"),
        ("module", DOWNLOAD, bare, "it has no module cpufreq-dt"),
    ] {
        let w = with_apt(&format!("fetch-{name}"), download, unpack);
        let (code, words) = w.fails(&["vm", "fetch"]);
        assert_eq!(code, 3, "{words}");
        assert!(words.contains(wanted), "{words}");
        assert_eq!(w.entries("cache"), ["apt"], "{name}");
    }
}

#[test]
fn a_fetch_that_is_interrupted_is_begun_anew() {
    let half_download = format!("echo half > linux-image.deb; {STUCK}");
    let half_unpacked = format!("mkdir -p $3/boot; echo half > $3/boot/vmlinuz; {STUCK}");
    for (name, download, unpack) in
        [("download", half_download.as_str(), UNPACK), ("unpack", DOWNLOAD, half_unpacked.as_str())]
    {
        let w = with_apt(&format!("interrupted-{name}"), download, unpack);
        let (mut child, helper) = w.start(&["vm", "fetch"]);
        signal("KILL", -i64::from(child.id()));
        child.wait().unwrap();
        until("it ends", || is_gone(helper));
        assert_eq!(w.prints(&["vm", "kernels"]), "7.2.1-arm64\n", "on the mirror, not here");
        set_apt(&w, DOWNLOAD, UNPACK);
        assert_eq!(w.prints(&["vm", "fetch"]), "7.2.1-arm64\n");
        let image = w.0.join("cache/kernels/7.2.1-arm64/Image");
        assert_eq!(fs::read_to_string(image).unwrap(), "image\n");
        assert_eq!(w.entries("cache"), ["apt", "kernels"], "{name}");
    }
}

/// A guest whose prompt knows `false`, and what fails there.
const PROMPT: &str = r#"printf 'help\r\n/ # '
while read -r line; do
    printf '%s\r\n' "$line"
    case "$line" in
    exit) exit 0;;
    false) printf 'false: no command\r\n/ (failed) # ';;
    *) printf 'said %s\r\n/ # ' "$line";;
    esac
done"#;

/// A script that goes wrong is no success; nothing after it is done.
#[test]
fn a_command_of_a_pipe_that_fails_ends_the_prompt() {
    let w = World::with_qemu("prompt", PROMPT);
    let shell = |script: &str, more: &str| {
        let program = env!("CARGO_BIN_EXE_risetime");
        let mut sh = Command::new("/bin/sh");
        let piped = format!("printf '{script}' | '{program}' vm shell --platform m1 {more}");
        sh.args(["-c", &piped]).current_dir(&w.0);
        let out = w.dress(sh).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
    };
    let (code, out, _) = shell("a\\nb\\n", "");
    assert_eq!((code, out.as_str()), (0, "said a\nsaid b\n"));
    let (code, out, err) = shell("a\\nfalse\\nb\\n", "");
    assert_eq!((code, out.as_str()), (1, "said a\nfalse: no command\n"));
    assert!(err.ends_with("risetime: standard input: line 2 failed: false\n"), "{err}");
    let (code, _, err) = shell("a\\n", "> /dev/full");
    assert!(code == 1 && err.contains("standard output: no storage space"), "{code}: {err}");
}

/// QEMU runs in a directory of its own, where a relative path would mean something else.
#[test]
fn a_relative_cache_is_found_from_everywhere() {
    let is_there = "for a; do case $before in -kernel) test -f \"$a\" && echo found > $HERE/found;; esac; before=$a; done";
    let w = World::with_qemu("relative", is_there);
    let mut run = w.command(&RUN);
    let out = run.env("RISETIME_CACHE", "cache").output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(words.contains("the guest ended without an answer"), "{words}");
    assert!(w.0.join("found").exists(), "{words}");
    let kernels = w.command(&["vm", "kernels"]).env("RISETIME_CACHE", "./cache").output().unwrap();
    assert!(String::from_utf8_lossy(&kernels.stdout).contains("7.2.1-arm64"));
}

/// A shell would take such a name for commands, QEMU's options for more than one.
#[test]
fn no_path_reaches_qemus_options() {
    let w = World::with_qemu("odd", "for a; do echo \"$a\"; done >> $HERE/said; pwd >> $HERE/ran");
    let odd = w.0.join("it's $x; a,b=c,,d");
    fs::create_dir(&odd).unwrap();
    let mut run = w.command(&RUN);
    run.env("TMPDIR", &odd).output().unwrap();
    let said = fs::read_to_string(w.0.join("said")).unwrap();
    assert!(said.contains("soc.dtb") && !said.contains("it's"), "{said}");
    let ran = fs::read_to_string(w.0.join("ran")).unwrap();
    assert!(ran.starts_with(odd.to_str().unwrap()), "{ran}");
    assert!(fs::read_dir(&odd).unwrap().next().is_none());
}
