//! The command as a person or a script meets it: what it prints where, and how it ends.

mod bad_input;
mod book;
mod convert;
mod documents;
mod drawn;
mod instructions;
mod machine;
mod memory;
mod names;
mod outputs;
mod pictures;
mod results;
mod rounds;
mod rt_app;
mod screens;
mod sweep;
mod traces;
mod why;
mod worker;

#[path = "../../../../tests/page.rs"]
mod page;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of one test's own, empty.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

/// The repository's directory.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command in `dir`, in a UTF-8 locale, as wide as 80 columns.
pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_risetime"));
    as_meant_for_a_person(command.args(args), dir);
    command
}

/// In `dir`, with nobody at the keyboard, and no settings of whoever runs the tests.
pub(crate) fn as_meant_for_a_person<'a>(command: &'a mut Command, dir: &Path) -> &'a mut Command {
    command.current_dir(dir).stdin(Stdio::null());
    command.env("LC_ALL", "C.UTF-8").env_remove("COLUMNS").env_remove("NO_COLOR")
}

/// What a command said and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(o: Output) -> Said {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Said {
            code: o.status.code().expect("ended by itself"),
            out: text(o.stdout),
            err: text(o.stderr),
        }
    }
}

/// Runs the command in `dir`.
pub(crate) fn risetime_in(dir: &Path, args: &[&str]) -> Said {
    command(dir, args).output().expect("the command starts").into()
}

/// Runs the command where there is nothing.
pub(crate) fn risetime(args: &[&str]) -> Said {
    risetime_in(Path::new("/"), args)
}

/// What the command prints when all is well: it ends with 0 and has nothing else to say.
pub(crate) fn prints(args: &[&str]) -> String {
    let said = risetime(args);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    said.out
}

const RAMP: [&str; 4] = ["run", "rampup", "--platform", "m1"];

/// `run rampup --platform m1` with more arguments.
pub(crate) fn ramp<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RAMP[..], more].concat()
}

#[test]
fn every_way_to_print_a_ramp_works_from_anywhere_and_is_plain_when_piped() {
    let ways: [&[&str]; 7] = [
        &[],
        &["--policy", "linux-6.8", "--policy", "mainline+rate_limit_us=70"],
        &["--phases", "2"],
        &["--phases", "2", "--every-phase", "--policy", "linux-6.8", "--policy", "linux-6.12"],
        &["--bursts", "--level", "300"],
        &["--format", "json"],
        &["--format", "csv", "--phases", "2"],
    ];
    for way in ways {
        let text = prints(&ramp(way));
        assert!(text.ends_with('\n') && !text.contains('\x1b') && !text.contains('\r'), "{way:?}");
        if !way.contains(&"--format") {
            let widest = text.lines().map(|l| l.chars().count()).max();
            assert!(widest <= Some(80), "{way:?}: {widest:?} columns");
        }
    }
}

#[test]
fn every_listed_name_can_be_shown_and_checked() {
    let names = |what: &str| -> Vec<String> {
        let page = prints(&["list", what]);
        let entries = page.lines().skip(1).filter(|l| l.starts_with("  ") && !l.starts_with("   "));
        entries.filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect()
    };
    for (what, least) in [("platforms", 2), ("policies", 3), ("workloads", 4), ("studies", 1)] {
        let found = names(what);
        assert!(found.len() >= least, "{what}: {found:?}");
        for name in found {
            assert!(prints(&["show", &name]).contains(&name), "{name}");
            assert!(!prints(&["show", "--source", &name]).is_empty(), "{name}");
            let checked = prints(&["check", &name]);
            // OPPs that nobody should use, and no energy model: true of the machines themselves.
            let known = match name.as_str() {
                "pixel6" | "pixel8" | "pixel9" | "hikey620" | "hikey620-uncooled"
                | "odroid-xu4" => "kHz inefficient",
                "exynos5800" | "intel-hybrid" | "power-2061" | "server64" | "server256"
                | "mt8195" | "steam-deck" | "ryzen-8840u" | "lunar-lake" | "sm8550"
                | "sc8280xp" => "no power",
                _ => "ok",
            };
            let fine = checked.ends_with("ok\n")
                || checked.lines().skip(1).all(|l| {
                    l.contains(known)
                        || l.contains("the hardware decides")
                        || l.contains("cores have several threads")
                        || l.contains("every latency_ns is 0")
                }) && checked.lines().count() > 1;
            assert!(checked.starts_with(&format!("{name}: ")) && fine, "{checked}");
        }
    }
    for (what, known) in
        [("governors", "schedutil"), ("placements", "fair"), ("settings", "rate_limit_us")]
    {
        assert!(prints(&["list", what]).contains(known), "{what}");
    }
    let all = prints(&["list"]);
    assert!(["m1", "linux-6.8", "rampup", "powersave"].iter().all(|n| all.contains(n)), "{all}");
    assert!(prints(&["show", "linux-6.8", "--platform", "m1"]).contains("rate_limit_us"));
}

#[test]
fn the_source_of_a_built_in_is_a_file_that_gives_the_same_results() {
    let dir = scratch("source");
    std::fs::write(dir.join("my.toml"), prints(&["show", "--source", "m1"])).expect("a file");
    std::fs::write(dir.join("my.json"), prints(&["show", "--source", "rampup"])).expect("a file");
    let mine = risetime_in(&dir, &["run", "my.json", "--platform", "my.toml", "--format", "csv"]);
    assert_eq!((mine.code, mine.err.as_str()), (0, ""));
    let named = mine.out.replace("m1,my,", "m1,rampup,");
    assert!(named == prints(&ramp(&["--format", "csv"])), "other figures");
}

#[test]
fn capture_and_doctor_look_at_this_machine() {
    let dir = scratch("capture");
    let said = risetime_in(&dir, &["capture", "-o", "here.toml"]);
    assert_eq!(said.out, "");
    // 3: this machine does not say enough; the file then names what to fill in.
    assert!(
        said.code == 0 || (said.code == 3 && said.err.contains("does not say enough")),
        "{said:?}"
    );
    let file = std::fs::read_to_string(dir.join("here.toml")).expect("the file");
    assert!(file.contains("schema = 1"), "{file}");
    for line in said.err.lines().filter_map(|l| l.strip_prefix("risetime: missing: ")) {
        assert!(file.contains(&line[..line.len().min(20)]), "{line}: not in the file");
    }
    if said.code == 0 {
        let run = risetime_in(&dir, &["run", "rampup", "--platform", "here.toml"]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
    }
    let findings = prints(&["doctor"]);
    assert!(findings.lines().count() > 3, "{findings}");
    let json: serde_json::Value =
        serde_json::from_str(&prints(&["doctor", "--format", "json"])).expect("JSON");
    let first = &json["findings"][0];
    assert!(["severity", "title", "meaning"].iter().all(|k| first[k].is_string()), "{first}");
    assert!(first["evidence"][0]["file"].is_string(), "{first}");
}

#[test]
fn the_demo_is_one_screen_with_all_its_parts() {
    let page = prints(&["demo"]);
    for part in ["ms lost", "Where it went", "Beside RFC 00/16", "This machine", "Try next"] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    assert!(page.lines().all(|l| l.chars().count() <= 80));
    for try_next in page.lines().filter_map(|l| l.trim().strip_prefix("risetime ")) {
        let words: Vec<&str> = try_next.split("  ").next().unwrap_or_default().split(' ').collect();
        assert_eq!(risetime(&words).code, 0, "the demo says to try {words:?}");
    }
}

#[test]
fn completions_and_man_pages_come_from_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = prints(&["completions", shell]);
        assert!(script.contains("RISETIME_COMPLETE"), "{shell}");
    }
    let dir = scratch("man");
    let said = risetime_in(&dir, &["man", "pages/here"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let pages: Vec<_> = std::fs::read_dir(dir.join("pages/here"))
        .expect("the pages")
        .flatten()
        .map(|e| e.path())
        .collect();
    for page in ["risetime.1", "risetime-run.1", "risetime-doctor.1"] {
        let text = std::fs::read_to_string(dir.join("pages/here").join(page)).expect(page);
        assert!(text.contains(".SH"), "{page} of {pages:?}");
    }
    for command in
        ["demo", "run", "list", "show", "check", "capture", "doctor", "completions", "man"]
    {
        let help = prints(&[command, "--help"]);
        assert!(help.contains("Usage:") && help.contains(command), "{command}");
    }
}

/// `risetime … | head -1`: the reader goes away while there is more to say.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let trace = ramp(&["--perfetto", "/dev/stdout"]);
    for args in all_that_print().into_iter().chain([trace]) {
        let plain = command(Path::new("/"), &args).stdout(Stdio::null()).output().expect("ends");
        let plain = Said::from(plain);
        let mut child = command(Path::new("/"), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        drop(child.stdout.take());
        let said = Said::from(child.wait_with_output().expect("ends"));
        assert_eq!(said, plain, "{args:?}");
    }
}

/// Returns one call of each kind of command and format that prints.
fn all_that_print() -> Vec<Vec<&'static str>> {
    const STUDY: [&str; 5] = ["reproduce", "--figure", "x1", "--phases", "1"];
    const ON_M1: [&str; 5] = ["rampup", "--platform", "m1", "--seconds", "1.5"];
    const TWO: [&str; 4] = ["--policy", "linux-6.8", "--policy", "linux-7.2"];
    let json = &["--format", "json"][..];
    let on_m1 =
        |command: &'static str, more: &[&'static str]| [&[command], &ON_M1[..], more].concat();
    vec![
        vec!["demo"],
        on_m1("run", &[]),
        on_m1("run", json),
        on_m1("run", &["--format", "csv"]),
        on_m1("run", &TWO),
        on_m1("run", &["--phases", "2"]),
        on_m1("run", &["--expect", "rampup.debt > 5"]),
        on_m1("explain", &[]),
        on_m1("explain", json),
        on_m1("compare", &[&TWO[..], &["--phases", "2"]].concat()),
        on_m1("compare", &[&TWO[..], &["--phases", "2"], json].concat()),
        on_m1("history", &["--simulated", "--phases", "1"]),
        STUDY.to_vec(),
        [&STUDY[..], json].concat(),
        vec!["verify", "--draw", "2", "--list"],
        vec!["list"],
        vec!["list", "settings"],
        vec!["show", "m1"],
        vec!["show", "m1", "--dts"],
        vec!["show", "rampup", "--source"],
        vec!["show", "wide-7-3", "--source"],
        vec!["check", "m1"],
        vec!["doctor"],
        vec!["doctor", "--format", "json"],
        vec!["capture"],
        vec!["completions", "zsh"],
        vec!["help"],
        vec!["run", "-h"],
        vec!["--version"],
    ]
}

#[test]
fn a_full_disk_is_one_message_of_each_command() {
    for args in all_that_print() {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let said = Said::from(command(Path::new("/"), &args).stdout(full).output().expect("ends"));
        let says = "risetime: standard output: no space left on device\n";
        assert_eq!((said.code, said.err.as_str()), (1, says), "{args:?}");
    }
    let dir = scratch("full-disk");
    for args in [&ramp(&["--perfetto", "/dev/full"])[..], &["capture", "-o", "/dev/full"]] {
        let said = risetime_in(&dir, args);
        let says = "risetime: /dev/full: no space left on device\n";
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (1, "", says), "{args:?}");
    }
}

/// Closed from the beginning (`>&-`), it is as /dev/null.
#[test]
fn a_closed_output_changes_no_exit_code() {
    for args in all_that_print() {
        let plain = command(Path::new("/"), &args);
        let sh = |script: &str| {
            let mut sh = Command::new("sh");
            sh.args(["-c", script]).arg(plain.get_program()).args(plain.get_args());
            Said::from(sh.output().expect("ends"))
        };
        let (closed, null) = (sh("exec \"$0\" \"$@\" >&-"), sh("exec \"$0\" \"$@\" >/dev/null"));
        assert_eq!(closed, null, "{args:?}");
        let silent = sh("exec \"$0\" \"$@\" >/dev/null 2>&-");
        assert_eq!((silent.code, silent.err.as_str()), (null.code, ""), "{args:?}");
    }
}

/// The width comes from COLUMNS where nothing else says it; whatever it is, it is survived.
#[test]
fn any_width_and_any_locale_give_a_page() {
    for columns in ["0", "1", "20", "60", "200", "100000000", "x", ""] {
        for args in [
            &ramp(&[])[..],
            &["demo"],
            &["doctor"],
            &["list"],
            &["show", "m1"],
            &ramp(&["--phases", "2"]),
        ] {
            let said = Said::from(
                command(Path::new("/"), args).env("COLUMNS", columns).output().expect("ends"),
            );
            assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?} in {columns:?} columns");
            let widest = said.out.lines().map(|l| l.chars().count()).max().unwrap_or(0);
            assert!(widest <= 400, "{args:?} in {columns:?} columns: {widest}");
        }
    }
    let plain =
        Said::from(command(Path::new("/"), &ramp(&[])).env("LC_ALL", "C").output().expect("ends"));
    assert_eq!(plain.code, 0);
    assert!(plain.out.is_ascii(), "a plain locale gets plain characters");
}
