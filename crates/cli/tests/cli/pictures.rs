//! `--plot` from outside: what is written, and what is not.

use crate::{repository, risetime_in, scratch};

const RUN: [&str; 8] =
    ["run", "rampup", "--platform", "m1", "--policy", "linux-6.8", "--policy", "rfc-v1"];
const EXPLAIN: [&str; 6] = ["explain", "rampup", "--platform", "m1", "--seconds", "1.3"];

#[test]
fn a_run_and_an_explanation_are_drawn_with_their_command_and_print_what_they_print() {
    let dir = scratch("pictures");
    for (args, words) in [
        (&RUN[..], &[">linux-6.8<", ">rfc-v1<", "util_avg", "Frequency", "Capacity", "Speed"][..]),
        (&EXPLAIN, &["rampup lost ", "PELT's own ramp", "unexplained"]),
    ] {
        let plain = risetime_in(&dir, args);
        let more = ["--plot", "a b.svg", "--plot", "p.png", "--theme", "dark"];
        let said = risetime_in(&dir, &[args, &more[..]].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(said.out == plain.out, "a picture changes nothing of what is printed");
        let svg = std::fs::read_to_string(dir.join("a b.svg")).expect("a picture");
        for words in words {
            assert!(svg.contains(words), "{words}");
        }
        let dim = svg.split("fill=\"#9aa4af\">").skip(1).filter_map(|t| t.split('<').next());
        let footer = dim.collect::<Vec<_>>().join(" ");
        let command = format!("risetime {} --plot 'a b.svg' --plot p.png", args.join(" "));
        assert!(footer.contains(&command), "{footer}");
        assert!(footer.ends_with(&format!("risetime {}", env!("CARGO_PKG_VERSION"))), "{footer}");
        let png = std::fs::read(dir.join("p.png")).expect("a picture");
        assert!(png.starts_with(b"\x89PNG\r\n") && png[16..20] == 1200u32.to_be_bytes());
        risetime_in(&dir, &[args, &more[..]].concat());
        assert!(png == std::fs::read(dir.join("p.png")).expect("a picture"), "the same bytes");
        let light = risetime_in(&dir, &[args, &["--plot", "light.svg"]].concat());
        assert_eq!(light.code, 0);
        let light = std::fs::read_to_string(dir.join("light.svg")).expect("a picture");
        assert!(light.contains("#ffffff") && !svg.contains("#ffffff"));
    }
}

/// Texts of a picture that are in the colour of what is said aside.
fn dim(svg: &str) -> String {
    let dim = svg.split("fill=\"#57606a\">").skip(1).filter_map(|t| t.split('<').next());
    dim.collect::<Vec<_>>().join(" ")
}

/// The points of a picture that have this colour.
fn dots(svg: &str, colour: &str) -> usize {
    let of = format!("fill=\"{colour}\"");
    svg.lines().filter(|l| l.contains("<circle") && l.contains(&of)).count()
}

#[test]
fn advice_is_drawn_with_the_letters_of_its_text() {
    let dir = scratch("advice-pictures");
    let args =
        ["advise", "periodic", "--platform", "chromebook4", "--seconds", "1", "--phases", "6"];
    let plain = risetime_in(&dir, &args);
    let more = ["--budget", "300", "--plot", "a.svg", "--plot", "a.png"];
    let said = risetime_in(&dir, &[&args[..], &more].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out == plain.out, "a picture changes nothing of what is printed");
    let svg = std::fs::read_to_string(dir.join("a.svg")).expect("a picture");
    // `A  what is changed`: each has its point, and is written below.
    let lettered =
        |l: &&str| l.len() > 3 && l.as_bytes()[0].is_ascii_uppercase() && &l[1..3] == "  ";
    let table = said.out.split("On your system").next().unwrap_or_default();
    let options: Vec<&str> = table.lines().skip(3).filter(lettered).collect();
    let named: Vec<&str> = options.iter().filter(|l| !l[3..].starts_with(' ')).copied().collect();
    assert!(!named.is_empty(), "{}", said.out);
    for letter in std::iter::once("0").chain(named.iter().map(|l| &l[..1])) {
        assert!(svg.contains(&format!(">{letter}<")), "{letter}");
    }
    assert!(svg.contains("energy of all CPUs (mJ per job done)") && svg.contains("as it is"));
    assert!(std::fs::read(dir.join("a.png")).expect("a picture").starts_with(b"\x89PNG\r\n"));
}

#[test]
fn metrics_are_drawn_a_panel_each_with_a_row_a_policy() {
    let dir = scratch("metric-pictures");
    let one = ["compare", "periodic", "-p", "m1", "--policy", "linux-6.8", "--policy", "linux-7.2"];
    let wanted = ["--metric", "energy", "--metric", "wait", "--seconds", "0.3", "--phases", "6"];
    let plot = ["--plot", "a.svg"];
    let drawn = |args: &[&[&str]]| {
        let said = risetime_in(&dir, &args.concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        std::fs::read_to_string(dir.join("a.svg")).expect("a picture")
    };
    let svg = drawn(&[&one, &wanted, &plot]);
    for words in ["periodic on m1", ">energy (mJ)<", ">wait (ms)<", ">linux-6.8: "] {
        assert!(svg.contains(words), "{words}");
    }
    assert_eq!(svg.matches(">linux-7.2: ").count(), 2, "a row in each panel");
    assert!(dim(&svg).contains("Medians of 6 start phases"), "{}", dim(&svg));
    assert_eq!(dots(&svg, "#0072b2"), 4);
    let svg = drawn(&[&one, &["-p", "pixel6"], &wanted, &plot]);
    for words in ["energy (mJ): periodic on m1", "energy (mJ): periodic on pixel6"] {
        assert!(svg.contains(words), "{words}");
    }
    let apart = ["compare", "rampup", "-p", "m1", "--ablate", "rfc-v1"];
    let svg = drawn(&[&apart, &wanted[..2], &wanted[6..], &plot]);
    for words in ["what each switch changes", "util_est_running=1", ">alone<"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn the_picture_in_the_documents_is_what_its_command_draws() {
    let dir = scratch("ramp");
    assert_eq!(risetime_in(&dir, &[&RUN[..], &["--plot", "ramp.svg"]].concat()).code, 0);
    let drawn = std::fs::read_to_string(dir.join("ramp.svg")).expect("a picture");
    let kept = repository().join("docs/ramp.svg");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&kept, &drawn).expect("written");
    }
    let kept = std::fs::read_to_string(kept).expect("docs/ramp.svg");
    assert!(kept == drawn && kept.len() < 30_000, "docs/ramp.svg: BLESS=1 writes it anew");
}

#[test]
fn what_cannot_be_drawn_is_said_before_anything_runs_and_nothing_is_left() {
    let dir = scratch("no-pictures");
    let ends = "wanted a name that ends in .svg or .png";
    for (args, more, words) in [
        (&RUN[..], &["--plot", "a.pdf"][..], ends),
        (&RUN, &["--plot", "svg"], ends),
        (&EXPLAIN, &["--plot", ".svg"], ends),
        (&RUN, &["--plot", "no/where.png"], "there is no directory no"),
        (&RUN, &["--theme", "dark"], "--plot <FILE>"),
        (&RUN, &["--plot", "a.svg", "--theme", "blue"], "light, dark"),
        (&RUN, &["--plot", "a.svg", "--phases", "2"], "a picture is of one run a policy"),
        (&RUN, &["--plot", "a.svg", "--repeat", "2"], "a picture is of one run a policy"),
        (&["verify", "--all"], &["--plot", "a.svg"], "a picture is of one run of one experiment"),
        (
            &["verify", "rampup", "--platform", "m1"],
            &["--plot", "a.svg", "--mode", "step"],
            "a picture is of",
        ),
    ] {
        let said = risetime_in(&dir, &[args, more].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{more:?}: {}", said.err);
        assert!(said.err.contains(words), "{more:?}: {}", said.err);
    }
    assert_eq!(std::fs::read_dir(&dir).expect("a directory").count(), 0);
}
