//! What README.md and the pages of `docs/` show is what the command does.

use crate::{Said, as_meant_for_a_person, page, prints, repository, risetime_in, scratch};
use risetime_analysis::named::{ALL, FIGURES, Owner};
use risetime_kernel::KernelRev;
use risetime_kernel::features::{Known, Row, TABLE};
use risetime_kernel::switches;
use risetime_model::settings::{Catalogue, Default, Param};
use risetime_trace::{Event, Hears, Kind, Why};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn text(page: &str) -> String {
    std::fs::read_to_string(repository().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// The blocks of a page fenced as `kind`.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    text(page)
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap_or_default().to_string())
        .collect()
}

/// Every page with text for a reader, but the studies', whose tests are beside their figures.
const PAGES: [&str; 27] = [
    "README.md",
    "docs/first-run.md",
    "docs/reading.md",
    "docs/commands.md",
    "docs/import.md",
    "docs/accuracy.md",
    "docs/jobs.md",
    "docs/traces.md",
    "docs/advise.md",
    "docs/thermal.md",
    "docs/hrtimers.md",
    "docs/pressure.md",
    "docs/muqss.md",
    "docs/soft-real-time.md",
    "docs/boosting.md",
    "docs/deploy.md",
    "docs/real-time-schedulers.md",
    "docs/task-sets.md",
    "docs/admission.md",
    "docs/optimiser.md",
    "docs/for-rt-engineers.md",
    "docs/for-server-operators.md",
    "docs/for-patch-authors.md",
    "docs/for-laptop-users.md",
    "docs/for-readers-of-the-series.md",
    "docs/for-data-people.md",
    "docs/studies/steady-tasks.md",
];

/// A directory with the traces of `docs/traces` and the files that the pages show, as a reader saves them: each block that begins with a
/// comment and the file's name, `// chain.json: …`.
pub(crate) fn with_own_files(name: &str) -> PathBuf {
    let dir = scratch(name);
    let kinds =
        |page| ["json", "toml", "yaml", "python", "dts"].map(|kind| blocks(page, kind)).concat();
    for block in PAGES.into_iter().flat_map(kinds) {
        let first = block.lines().next().unwrap_or_default();
        let file = first.trim_start_matches(['/', '#', ' ']).split(':').next().unwrap_or_default();
        if file.contains('.') && !file.contains(['/', '"', ' ']) {
            assert!(!dir.join(file).exists(), "two pages show a {file}");
            std::fs::write(dir.join(file), block).expect("a scratch directory");
        }
    }
    for trace in std::fs::read_dir(repository().join("docs/traces")).expect("traces of the pages") {
        let trace = trace.expect("a directory").path();
        std::fs::copy(&trace, dir.join(trace.file_name().expect("a file"))).expect("copied");
    }
    dir
}

/// What a line of a page does in a shell, where `risetime` is the command.
pub(crate) fn in_shell(dir: &Path, line: &str) -> Said {
    let binary = Path::new(env!("CARGO_BIN_EXE_risetime")).parent().expect("its directory");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut sh = Command::new("sh");
    sh.args(["-c", line]).env("PATH", path);
    as_meant_for_a_person(&mut sh, dir).output().expect("sh").into()
}

#[test]
fn every_command_of_the_documents_works() {
    for (page, least) in [
        ("README.md", 6),
        ("docs/first-run.md", 10),
        ("docs/commands.md", 25),
        ("docs/for-laptop-users.md", 2),
    ] {
        let dir = with_own_files(&page.replace('/', "-"));
        let all = blocks(page, "sh").join("\n");
        let lines: Vec<&str> = all.lines().filter(|l| l.starts_with("risetime ")).collect();
        assert!(lines.len() >= least, "{page}: {lines:?}");
        for line in lines {
            let said = in_shell(&dir, line);
            // `capture` may find too little in this machine, and says so with 3; of the series one miss is not argued.
            let fits = match said.code {
                1 => line.starts_with("risetime reproduce rfc-2024"),
                3 => line.contains(" capture "),
                code => code == 0,
            };
            assert!(fits, "{line}: {} {}", said.code, said.err);
        }
    }
}

/// Nothing is missing in the files that a newcomer starts from.
#[test]
fn the_workload_and_platform_of_the_first_pages_are_in_order() {
    let dir = with_own_files("own");
    let said = risetime_in(&dir, &["check", "my-app.json", "my-soc.toml"]);
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (0, "my-app.json: workload, ok\nmy-soc.toml: platform, ok\n", "")
    );
}

/// The demo's own part; what it says of the machine it runs on differs.
#[test]
fn the_transcript_of_the_demo_is_the_demo() {
    let shown = blocks("docs/first-run.md", "text")
        .into_iter()
        .find(|b| b.contains("ms lost"))
        .expect("a transcript of the demo");
    let end =
        |page: &str| page.split("\nThis machine").next().unwrap_or_default().trim_end().to_string();
    assert_eq!(
        end(shown.trim_start_matches("$ make demo\n")),
        end(&prints(&["demo"])),
        "docs/first-run.md shows another demo (left)"
    );
}

/// Shortened transcripts: their lines stand in the output, in this order, "…" stands for the rest. A
/// command that fails has its message among them, and `exit code N` at the end; what it draws is kept in
/// docs/. What cannot be repeated here (a real kernel, another machine) does not begin with the command.
#[test]
fn every_transcript_of_a_command_is_what_it_prints() {
    let dir = with_own_files("transcripts");
    let python = in_shell(&dir, "python3 --version").code == 0;
    let mut found = 0;
    for page in PAGES {
        let mut content = text(page);
        for shown in blocks(page, "text").iter().filter(|b| b.starts_with("$ risetime ")) {
            if shown.contains("| python3 ") && !python {
                continue;
            }
            let (first, rest) = shown.split_once('\n').expect("a command and its output");
            let output = printed(&dir, first.trim_start_matches("$ "));
            let shows: Vec<&str> = rest.lines().collect();
            let prints: Vec<&str> = output.lines().collect();
            if page::blessing() {
                let now = [&[first], &anew(&shows, &prints)[..]].concat().join("\n");
                content = content.replacen(shown.as_str(), &now, 1);
            } else {
                stands_in(&shows, &prints).unwrap_or_else(|line| {
                    panic!(
                        "{page}: {first}: {line:?} is not there (any more; BLESS=1) in\n{output}"
                    )
                });
            }
            found += 1;
        }
        if page::blessing() {
            std::fs::write(repository().join(page), content).expect("written");
        }
    }
    assert!(found >= 5, "{found}");
}

/// What a line of a page prints. A picture that it draws has to be the one of that name in docs/.
fn printed(dir: &Path, line: &str) -> String {
    let said = in_shell(dir, line);
    for name in line.split_whitespace().filter(|word| word.ends_with(".svg")) {
        let drawn = std::fs::read_to_string(dir.join(name)).expect("a picture");
        let kept = repository().join("docs").join(name);
        if page::blessing() {
            std::fs::write(&kept, &drawn).expect("written");
        }
        let same = std::fs::read_to_string(&kept).is_ok_and(|kept| kept == drawn);
        assert!(same, "docs/{name}: BLESS=1 writes it anew");
    }
    match said.code {
        0 => {
            assert_eq!(said.err, "", "{line}");
            said.out
        }
        code => format!("{}{}exit code {code}\n", said.out, said.err),
    }
}

/// Errs with the first line shown that does not stand in the output, behind those before it.
fn stands_in<'a>(shown: &[&'a str], output: &[&str]) -> Result<(), &'a str> {
    let mut rest = output.iter();
    let fails = output.last().filter(|line| line.starts_with("exit code "));
    let mut wanted = shown.iter().copied().filter(|line| *line != "…");
    match wanted.find(|line| !rest.any(|l| l == line)) {
        Some(line) => Err(line),
        None if fails.is_some() && shown.last() != fails => Err("no exit code"),
        None => Ok(()),
    }
}

/// The lines shown as the output has them now: for each the one of the same words, in this order.
fn anew<'a>(shown: &[&'a str], output: &[&'a str]) -> Vec<&'a str> {
    // best[i][j]: the most that shown[i..] and output[j..] have in common.
    let mut best = vec![vec![0; output.len() + 1]; shown.len() + 1];
    for i in (0..shown.len()).rev() {
        for j in (0..output.len()).rev() {
            let both = alike(shown[i], output[j]).map_or(0, |score| score + best[i + 1][j + 1]);
            best[i][j] = both.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j, mut now, mut gap) = (0, 0, Vec::new(), (0, 0));
    while i < shown.len() && j < output.len() {
        let both = alike(shown[i], output[j]).map(|score| score + best[i + 1][j + 1]);
        if both == Some(best[i][j]) {
            now.extend(between(&shown[gap.0..i], &output[gap.1..j]));
            now.push(output[j]);
            (i, j) = (i + 1, j + 1);
            gap = (i, j);
        } else if best[i][j] == best[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    now.extend(between(&shown[gap.0..], &output[gap.1..]));
    now
}

/// Returns how much two lines have in common: 4 all, 2 their words, 1 that they have none (curves,
/// bars).
fn alike(a: &str, b: &str) -> Option<u32> {
    let words = |line: &str| line.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    let blank = a.trim().is_empty() || b.trim().is_empty() || a == "…";
    match (a == b, words(a) == words(b) && !blank) {
        (true, _) => Some(4),
        (false, true) => Some(if words(a).is_empty() { 1 } else { 2 }),
        (false, false) => None,
    }
}

/// What stands now in the place of lines that are gone: as many, where that can be told. Beside an
/// elision those next to the lines around.
fn between<'a>(shown: &[&'a str], output: &[&'a str]) -> Vec<&'a str> {
    let Some(head) = shown.iter().position(|line| *line == "…") else {
        return if shown.len() == output.len() { output.to_vec() } else { Vec::new() };
    };
    let tail = shown.iter().rev().take_while(|line| **line != "…").count();
    if head + tail > output.len() {
        return vec!["…"];
    }
    [&output[..head], &["…"], &output[output.len() - tail..]].concat()
}

#[test]
fn a_transcript_is_written_anew_with_its_elisions() {
    let output = ["head", "", "a 10 ms", "▇ 2", "b 20 ms", "▇▇▇ 3", "", "new: 7", "end", "│"];
    let shown = ["head", "…", "b 21 ms", "▇▇ 2", "", "old: 7", "end", "…"];
    let now = ["head", "…", "b 20 ms", "▇▇▇ 3", "", "new: 7", "end", "…"];
    assert_eq!(anew(&shown, &output), now);
    assert_eq!(anew(&["gone", "end", "…"], &output), ["end", "…"]);
    assert_eq!(anew(&["head", "…", "was b", "▇▇▇ 3"], &output), ["head", "…", "b 20 ms", "▇▇▇ 3"]);
    assert_eq!(stands_in(&now, &output), Ok(()));
    assert_eq!(stands_in(&shown, &output), Err("b 21 ms"));
    let failed = ["risetime: no", "exit code 2"];
    assert_eq!(stands_in(&["risetime: no"], &failed), Err("no exit code"));
    assert_eq!(stands_in(&["risetime: no", "exit code 2"], &failed), Ok(()));
}

/// What the prose of the first pages says of their example and of the rate limit.
#[test]
fn the_figures_in_the_prose_of_the_first_pages_are_those_of_the_command() {
    let dir = with_own_files("prose");
    let pages = ["README.md", "docs/first-run.md", "docs/reading.md"].map(text).join(" ");
    let pages = pages.replace('\n', " ");
    let has = |what: &str| assert!(pages.contains(what), "no first page says {what:?}");
    let own = |more: &[&str]| {
        let all = [&["run", "my-app.json", "--platform", "my-soc.toml"], more].concat();
        risetime_in(&dir, &all).out
    };
    let hinted = own(&["--policy", "linux-7.2+uclamp_min=500"]);
    has("99 % take up to 8.11 ms, not 12.88");
    assert!(hinted.contains("99 % up to 8.11 ms"), "{hinted}");
    let times = own(&["--format", "json"]);
    has("The first four frames take 12.9 ms each");
    has("Later frames take 8.0 ms");
    for figure in ["\"p50_ms\": 8.012", "\"max_ms\": 12.86"] {
        assert!(times.contains(figure), "{figure} in {times}");
    }
    let hinted = ["--platform", "pixel6", "--policy", "linux-7.2+uclamp_min=500"];
    let hinted = risetime_in(&dir, &[&["run", "my-app.json"], &hinted[..]].concat()).out;
    has("no frame is missed: 99 % take up to 10.32 ms, for 3.28 mJ each in place of 3.04");
    for figure in ["none missed", "99 % up to 10.32 ms", " 3.28\n"] {
        assert!(hinted.contains(figure), "{figure} in {hinted}");
    }
    let ramp = prints(&["run", "rampup", "--platform", "m1", "--policy", "linux-6.8"]);
    has("12.6 ms were lost *held by the rate limit*");
    assert!(ramp.contains("held by the rate limit          ▇▇▇▇▇▇▇ 12.6 ms"), "{ramp}");
    has("lose only 3.5 ms less (`saves`)");
    has("leaves 1.2 ms (`ms`)");
    let why = prints(&["explain", "rampup", "--platform", "m1", "--policy", "linux-6.8"]);
    let row = why.lines().find(|line| line.starts_with("rate limit ")).expect("a cause");
    let figures: Vec<&str> = row.split_whitespace().collect();
    assert!(figures[2] == "1.2" && figures[5] == "3.5", "{row}");
}

/// The simulated columns of the table in docs/accuracy.md.
#[test]
fn the_simulated_ramp_of_the_page_on_accuracy_is_what_is_simulated() {
    let page = text("docs/accuracy.md");
    let ramp = |more: &[&str]| -> Value {
        let phases =
            ["--policy", "linux-6.8", "--noise", "off", "--phases", "16", "--format", "json"];
        let said = prints(&[&["run", "rampup", "--platform", "m1"], &phases[..], more].concat());
        let all: Value = serde_json::from_str(&said).expect("JSON");
        all["summary"][0]["tasks"][0].clone()
    };
    let find = |list: &Value, fits: &dyn Fn(&Value) -> bool| -> Value {
        let list = list.as_array().expect("a list");
        list.iter().find(|record| fits(record)).expect("a record").clone()
    };
    let shows = |row: &str, spread: &Value| {
        // Rounded as in the text: half up.
        let ms = |key: &str| (spread[key].as_f64().expect("a number") * 10.0).round() / 10.0;
        let wanted = format!("| {:.1} | {:.1} to {:.1} |", ms("median"), ms("min"), ms("max"));
        let line = page.lines().find(|l| l.starts_with(&format!("| {row} |")));
        let line = line.unwrap_or_else(|| panic!("docs/accuracy.md: no row {row}"));
        assert!(line.contains(&wanted), "{line}\nis now {wanted}");
    };
    let util = |task: &Value, level: u64| {
        find(&task["reach"], &|r| r["signal"] == "util" && r["level"] == level)["after_ms"].clone()
    };
    let task = ramp(&[]);
    shows("on the little CPU", &find(&task["on_domain"], &|r| r["cpu"] == 0)["ms"]);
    for mhz in [600, 972, 1332, 1704, 2064] {
        let at = |r: &Value| r["cpu"] == 0 && r["freq_khz"] == mhz * 1000;
        shows(&format!("at {mhz} MHz there"), &find(&task["domain_running"], &at)["ms"]);
    }
    shows("until util 450", &util(&task, 450));
    shows("until util 1000", &util(&task, 1000));
    for args in [["--set", "rate_limit_us=70"], ["--uclamp-min", "1024"], ["--uclamp-max", "0"]] {
        shows(&format!("until util 1000, `{}`", args.join(" ")), &util(&ramp(&args), 1000));
    }
}

const GENERATED: &str =
    "<!-- from here on generated: BLESS=1 cargo test -p risetime --test cli -->\n";

#[test]
fn the_page_of_the_settings_is_the_catalogue() {
    let wanted = settings(&risetime_sim::catalogue());
    page::holds("settings.md", GENERATED, "", &wanted);
}

#[test]
fn the_page_of_the_events_is_the_table() {
    // A comment links to another kind as rustdoc does, `[…](Event::Wakeup)`, the page to that kind's heading.
    let linked = |text: String, kind: &Kind| {
        let heading = format!("](#{}-{})", kind.name, kind.letter).to_lowercase();
        text.replace(&format!("](Event::{})", kind.name), &heading)
    };
    let one_line = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        Event::KINDS.iter().fold(line, linked)
    };
    let mut wanted = String::new();
    for (title, hears) in [
        ("What figures are made of", Hears::Figures),
        ("What only a trace file, `verify` or a person takes in", Hears::All),
    ] {
        wanted += &format!("\n## {title}\n");
        for kind in Event::KINDS.iter().filter(|kind| kind.hears == hears) {
            wanted += &format!(
                "\n### {} (`{}`)\n\n{}\n\n| field | type | what it is |\n|---|---|---|\n",
                kind.name,
                kind.letter,
                one_line(kind.about)
            );
            for (name, of, about) in kind.fields {
                wanted += &format!("| `{name}` | `{of}` | {} |\n", one_line(about));
            }
        }
    }
    wanted += "\n## Reasons\n\n| reason | number | in a report |\n|---|---|---|\n";
    for why in Why::ALL {
        wanted += &format!("| `{why}` | {} | {} |\n", why.number(), why.told());
    }
    page::holds("events.md", GENERATED, "", &wanted);
}

fn known_by(known: Known) -> &'static str {
    match known {
        Known::C => "C",
        Known::Asked => "asked",
        Known::Read => "read",
        Known::Memory => "memory",
    }
}

#[test]
fn the_page_of_the_releases_is_the_table() {
    let mut wanted = String::new();
    for section in TABLE {
        wanted += &format!(
            "\n## {}\n\n| behaviour | since | until | also in | known by | what differs |\n|---|---|---|---|---|---|\n",
            section.title
        );
        for Row { name, feature, known, differs } in section.rows {
            let since = Some(feature.first).filter(|first| *first >= KernelRev::OLDEST);
            let said = |rev: Option<KernelRev>| rev.map_or(String::new(), |rev| rev.to_string());
            let older = feature.stable.iter().filter(|rev| **rev < feature.first);
            let stable: Vec<String> = older.map(|rev| rev.to_string()).collect();
            let known = known_by(*known);
            wanted += &format!(
                "| `{name}` | {} | {} | {} | {known} | {differs} |\n",
                said(since),
                said(feature.last),
                stable.join(", ")
            );
        }
    }
    wanted += "\n## Switches\n\nEach is a setting of the same name in small letters (`--set ttwu_queue=0`), refused under a kernel that lacks it.\n\n| switch | kernels | on | known by | while it is on |\n|---|---|---|---|---|\n";
    for row in switches::TABLE {
        let on = if row.on { "yes" } else { "no" };
        let known = known_by(row.known);
        wanted +=
            &format!("| `{}` | {} | {on} | {known} | {} |\n", row.name, row.there, row.effect);
    }
    page::holds("releases.md", GENERATED, "", &wanted);
}

#[test]
fn the_page_of_the_figures_is_what_has_a_name() {
    page::holds("figures.md", GENERATED, "", &figures());
}

fn figures() -> String {
    let mut page = String::new();
    for (owner, title, of) in [
        (Owner::Job, "Of jobs", "JOB."),
        (Owner::Task, "Of tasks", "TASK."),
        (Owner::Group, "Of task groups with a quota", "GROUP."),
        (Owner::Run, "Of the run", ""),
    ] {
        page += &format!(
            "\n## {title}\n\n| figure | unit | better | JSON | CSV | needs | what it is |\n|---|---|---|---|---|---|---|\n"
        );
        for figure in FIGURES.iter().filter(|f| f.of() == owner) {
            let unit = match figure.unit.word() {
                "" => "number",
                unit => unit,
            };
            let better = match figure.less_is_better {
                Some(true) => "less",
                Some(false) => "more",
                None => "",
            };
            let x = match figure.statistics {
                [] => "",
                ALL => "_X",
                _ => "_Y",
            };
            let (name, about) = (figure.name, figure.about);
            let written = |name: Option<&str>, x: &str| {
                name.map(|name| format!("`{name}{x}`")).unwrap_or_default()
            };
            let (json, csv) = (written(figure.json, ""), written(figure.csv, x));
            let needs: Vec<&str> = figure.needs.iter().map(|need| need.as_str()).collect();
            let needs = needs.join(", ").replace('_', " ");
            page += &format!(
                "| `{of}{name}{x}` | {unit} | {better} | {json} | {csv} | {needs} | {about} |\n"
            );
        }
    }
    page
}

fn settings(catalogue: &Catalogue) -> String {
    let mut page = String::new();
    for group in catalogue.groups.iter().filter(|g| !g.params.is_empty()) {
        let title = match group.owner {
            Some((kind, name)) => format!("With {kind} `{name}`"),
            None => group.title.to_string(),
        };
        page += &format!("\n## {title}\n\n| setting | values | default | where | what it does |\n");
        page += "|---|---|---|---|---|\n";
        group.params.iter().for_each(|p| page += &row(p));
    }
    page
}

fn row(p: &Param) -> String {
    let unit = p.counted_in();
    let (numbers, names) = p.range.parts();
    let numbers = numbers.map(|(low, high)| format!("{low} to {high}{unit}"));
    let names = names.iter().map(|name| format!("`{name}`"));
    let values = names.chain(numbers).collect::<Vec<_>>().join(", ");
    let default = match p.default {
        Default::Int(n) => format!("{n}{unit}"),
        Default::Name(s) => format!("`{s}`"),
        Default::Derived(how, _) => how.to_string(),
        Default::Unset => "not set".to_string(),
    };
    format!("| `{}` | {values} | {default} | {} | {} |\n", p.name, p.home, p.doc)
}

/// A deviation: the room that it is in, and its text.
type Deviations = BTreeMap<String, (String, String)>;

#[test]
fn the_page_of_the_deviations_is_what_the_code_says() {
    let found = deviations(&repository().join("crates"));
    assert!(found.len() > 5, "the search itself has to work: {found:?}");
    let mut wanted = String::new();
    for (room, heading) in [
        ("sim", "The simulator"),
        ("kernel", "The kernel's arithmetic, and its generations"),
        ("vm", "The virtual machine"),
    ] {
        wanted += &format!("\n## {heading}\n\n");
        for (id, (_, text)) in found.iter().filter(|(_, (r, _))| r == room) {
            wanted += &format!("- `{id}`: {text}\n");
        }
    }
    let listed = wanted.matches("\n- `").count();
    assert_eq!(listed, found.len(), "a room without a heading has deviations: {found:?}");
    page::holds("deviations.md", GENERATED, "", &wanted);
}

/// All `DEVIATES(id): text` in comments of the Rust sources below `crates`. The text ends with its
/// paragraph, or where the comment goes on with sources, with what it leaves out, or with another one.
fn deviations(crates: &Path) -> Deviations {
    let mut found = Deviations::new();
    for room in std::fs::read_dir(crates).expect("crates") {
        let room = room.expect("a room").path();
        let name = room.file_name().expect("its name").to_string_lossy().into_owned();
        for file in sources(&room.join("src")) {
            let source = std::fs::read_to_string(&file).expect("a source file");
            for (id, text) in deviations_in(&source) {
                let twice = found.insert(id.clone(), (name.clone(), text));
                assert!(twice.is_none(), "two deviations are called {id}");
            }
        }
    }
    found
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let below = |p: PathBuf| if p.is_dir() { sources(&p) } else { vec![p] };
    paths.into_iter().flat_map(below).filter(|p| p.extension().is_some_and(|e| e == "rs")).collect()
}

fn deviations_in(source: &str) -> Vec<(String, String)> {
    let comment = |line: &str| {
        let text = line.trim_start().strip_prefix("//")?;
        Some(text.trim_start_matches(['/', '!']).trim().to_string())
    };
    let begin = |text: &str| {
        let rest = text.trim_start_matches('`').strip_prefix("DEVIATES(")?;
        let (id, rest) = rest.split_once(')')?;
        let text = rest.trim_start_matches('`').strip_prefix(':')?;
        Some((id.to_string(), text.trim().to_string()))
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in source.lines() {
        let text = comment(line).unwrap_or_default();
        if let Some(deviation) = begin(&text) {
            found.push(deviation);
            open = true;
        } else if text.is_empty() || text.starts_with("Source:") || text.starts_with("Leaves out:")
        {
            open = false;
        } else if let Some((_, all)) = found.last_mut().filter(|_| open) {
            *all += " ";
            *all += &text;
        }
    }
    found
}

#[test]
fn deviations_are_read_from_comments() {
    let source = "//! DEVIATES(a-b): one\n//! two.\n//! Source: x\n//! y\nfn f() {\n    // `DEVIATES(c)`: three\n    g();\n    // four\n}\n";
    let pairs = [("a-b", "one two."), ("c", "three")];
    assert_eq!(deviations_in(source), pairs.map(|(a, b)| (a.to_string(), b.to_string())));
}

/// `mainline` is told with the release that it is, where it is told.
#[test]
fn mainline_is_called_what_it_is() {
    let kernel = risetime_model::Policy::from_arg("mainline").unwrap().kernel;
    assert!(prints(&["help", "run"]).contains(&format!("under mainline, Linux {kernel}")));
    let commands = std::fs::read_to_string(repository().join("docs/commands.md")).unwrap();
    assert!(commands.contains(&format!("under mainline (Linux {kernel})")));
}
