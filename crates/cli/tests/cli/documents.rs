//! What README.md shows is what the command does.

use crate::{prints, repository, scratch};
use std::path::Path;
use std::process::Command;

fn readme() -> String {
    std::fs::read_to_string(repository().join("README.md")).expect("README.md")
}

/// The blocks of README.md fenced as `kind`.
fn blocks(kind: &str) -> Vec<String> {
    let text = readme();
    let fence = format!("```{kind}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap_or_default().to_string())
        .collect()
}

#[test]
fn every_command_of_the_readme_works() {
    let dir = scratch("readme");
    let binary = Path::new(env!("CARGO_BIN_EXE_risetime")).parent().expect("its directory");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let all = blocks("sh").join("\n");
    let lines: Vec<&str> = all.lines().filter(|l| l.starts_with("risetime ")).collect();
    assert!(lines.len() >= 12, "{lines:?}");
    for line in lines {
        let output = Command::new("sh")
            .args(["-c", line])
            .env("PATH", &path)
            .current_dir(&dir)
            .output()
            .expect("sh");
        let code = output.status.code();
        // `capture` may find too little in this machine, and says so with 3.
        let fits = code == Some(0) || (line.contains(" capture ") && code == Some(3));
        assert!(fits, "{line}: {code:?} {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The demo's own part; what it says of the machine it runs on differs.
#[test]
fn the_transcript_of_the_demo_is_the_demo() {
    let shown = blocks("text")
        .into_iter()
        .find(|b| b.contains("ms lost"))
        .expect("a transcript of the demo");
    let end =
        |page: &str| page.split("\nThis machine").next().unwrap_or_default().trim_end().to_string();
    assert_eq!(
        end(shown.trim_start_matches("$ make demo\n")),
        end(&prints(&["demo"])),
        "README.md shows another demo (left)"
    );
}

/// Shortened transcripts: their lines stand in the output, in this order, "…" stands for the rest.
#[test]
fn every_transcript_of_a_command_is_what_it_prints() {
    let shown: Vec<String> =
        blocks("text").into_iter().filter(|b| b.starts_with("$ risetime ")).collect();
    assert!(shown.len() >= 3, "{shown:?}");
    shown.iter().for_each(|block| stands_in_its_output(block));
}

fn stands_in_its_output(shown: &str) {
    let (first, rest) = shown.split_once('\n').expect("a command and its output");
    let args: Vec<&str> = first.trim_start_matches("$ risetime ").split_whitespace().collect();
    let page = prints(&args);
    let mut output = page.lines();
    for line in rest.lines().filter(|l| *l != "…") {
        assert!(
            output.any(|l| l == line),
            "README.md shows {line:?}, which is not there (any more) in\n{page}"
        );
    }
}
