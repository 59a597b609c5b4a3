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
