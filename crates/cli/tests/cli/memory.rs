//! How much memory the command takes: no more for a long run than for a short one.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The most memory of its own that a run of `workload` on `platform` over `seconds` had, in kB: pages of the program's file
/// come as the kernel reads ahead, by chance.
fn peak_kb(workload: &str, platform: &str, seconds: &str, how: &[&str]) -> u64 {
    let args = ["run", workload, "--platform", platform, "--seconds", seconds];
    let mut command = crate::command(Path::new("/"), &[&args[..], how].concat());
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let code = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("RssAnon:"));
        let kb = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
        peak = kb.unwrap_or(peak).max(peak);
        if let Some(code) = child.try_wait().expect("a child") {
            break code;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(code.success() && peak > 200, "{workload} {how:?}: {code}, {peak} kB");
    peak
}

/// Ten minutes of a phone take what one minute takes, however the results are printed.
#[test]
fn memory_does_not_grow_with_the_simulated_time() {
    let formats = [
        &["--format", "text"][..],
        &["--format", "json"],
        &["--format", "csv"],
        &["--perfetto", "/dev/null"],
        &["--format", "json", "--full"],
    ];
    std::thread::scope(|scope| {
        for half in [&formats[..2], &formats[2..]] {
            scope.spawn(move || {
                for how in half {
                    let [short, long] =
                        ["60", "600"].map(|seconds| peak_kb("phone", "pixel6", seconds, how));
                    assert!(
                        long <= short + 1024,
                        "{how:?}: {long} kB after 600 s, {short} after 60"
                    );
                }
            });
        }
    });
}

/// 256 CPUs and 2000 tasks, every figure of them.
#[test]
fn a_server_fits_into_256_mb() {
    let peak = peak_kb("server", "server256", "10", &["--format", "json"]);
    assert!(peak < 256 * 1024, "{peak} kB");
}
