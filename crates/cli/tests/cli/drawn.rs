//! Experiments that are drawn, and one experiment under many releases: what needs no kernel.

use crate::{Said, command, prints, risetime, risetime_in, scratch};
use serde_json::Value;

#[test]
fn a_drawn_experiment_is_listed_shown_saved_and_run() {
    let list = prints(&["verify", "--draw", "5", "--seed", "7", "--list"]);
    assert!(
        (1..=5).all(|n| list.contains(&format!("wide-7-{n} "))) && !list.contains("wide-7-6"),
        "{list}"
    );
    let json = prints(&["verify", "--draw", "5", "--seed", "7", "--list", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let all = json["experiments"].as_array().expect("a list");
    assert_eq!((all.len(), &all[2]["name"]), (5, &Value::from("wide-7-3")));
    let file = prints(&["show", "wide-7-3", "--source"]);
    let platform = all[2]["platform"].as_str().expect("a name");
    assert!(file.contains(&format!("drawn for {platform}")), "{file}");
    let dir = scratch("drawn");
    std::fs::write(dir.join("FILE.json"), &file).expect("a file");
    let checked = risetime_in(&dir, &["check", "FILE.json", "--platform", platform]);
    assert_eq!((checked.code, checked.out.as_str()), (0, "FILE.json: workload, ok\n"));
    // The command at its head is one.
    let line = file.lines().find(|l| l.contains("risetime run ")).expect("a command");
    let line = line.replace("FILE", "FILE.json");
    let args: Vec<&str> = line.split_whitespace().skip(2).collect();
    let said = risetime_in(&dir, &args);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{line}");
    assert!(prints(&["show", "wide-7-3"]).contains("wide-7-3"));
}

#[test]
fn what_cannot_be_asked_of_drawn_experiments_is_said() {
    for (args, found) in [
        (&["verify", "rampup"][..], "--platform is missing"),
        (&["verify", "wide-7-3", "--platform", "m1"], "is drawn with its platform"),
        (&["verify", "wide-7-3", "--uclamp-max", "3"], "is drawn with its platform"),
        (
            &["verify", "wide-7-3", "--shrink", "--while", "fun"],
            "there are checks, energy, util_at_tick",
        ),
        (&["verify", "wide-7-x"], "--platform is missing"),
        (&["verify", "--draw", "0"], "0 is not in 1..=10000"),
        (&["verify", "--draw", "3", "--all"], "cannot be used with"),
        (&["verify", "--list"], "--draw"),
        (&["verify", "--draw", "3", "--shrink"], "cannot be used with"),
        (&["show", "wide-1-0"], "nothing of that name"),
        (&["show", "wide-1-1", "--dts"], "is no platform"),
    ] {
        let said = risetime(args);
        assert!(
            said.code == 2 && said.err.contains(found) && said.out.is_empty(),
            "{args:?}: {said:?}"
        );
    }
}

fn history(more: &[&str]) -> Said {
    let dir = scratch(&format!("history{}", more.len()));
    let args =
        [&["history", "rampup", "--platform", "m1", "--phases", "2", "--seconds", "1.3"], more]
            .concat();
    let output = command(&dir, &args).env("RISETIME_CACHE", dir.join("cache")).output();
    output.expect("the command starts").into()
}

#[test]
fn a_history_without_kernels_is_simulated_and_says_what_is_missing() {
    let said = history(&[]);
    assert_eq!(said.code, 0, "{said:?}");
    for rev in ["6.1", "6.12", "6.18", "7.0", "7.2", "7.3"] {
        assert!(said.err.contains(&format!("risetime vm fetch {rev}")), "{}", said.err);
        assert!(said.out.contains(&format!("linux-{rev} ")), "{}", said.out);
    }
    assert!(
        said.out.contains("simulated only")
            && said.out.replace('\n', " ").contains("too few to be sure of 8"),
        "{}",
        said.out
    );
    assert!(said.out.lines().all(|l| l.chars().count() <= 80), "{}", said.out);
    let quiet = history(&["--simulated"]);
    assert_eq!((quiet.err.as_str(), &quiet.out), ("", &said.out));
    let json = history(&["--simulated", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["releases"].as_array().map(Vec::len), Some(9));
    assert_eq!(json["releases"][0]["kernel"], Value::Null);
}

#[test]
fn a_history_draws_and_bisects() {
    let nine = |more: &[&str]| {
        let of = ["history", "rampup", "--platform", "m1", "--simulated", "--seconds", "1.3"];
        risetime(&[&of[..], more].concat())
    };
    let said = nine(&["--bisect", "lost_ms"]);
    let largest = "lost_ms with linux-6.11 makes its largest step from linux-6.8:";
    assert!(said.code == 0 && said.out.replace('\n', " ").starts_with(largest), "{said:?}");
    let said = nine(&["--bisect", "rampup.activation_max", "--step", "6.12", "--phases", "2"]);
    assert!(said.code == 0 && said.err.lines().count() == 2, "{said:?}");
    let said = nine(&["--metric", "full_speed", "--metric", "energy", "--task", "rampup"]);
    assert!(said.out.contains("\nrampup.full_speed: largest step with linux-6.11:"), "{said:?}");
    let dir = scratch("history-plot");
    let args = [
        "history",
        "rampup",
        "--platform",
        "m1",
        "--simulated",
        "--phases",
        "1",
        "--seconds",
        "1.3",
        "--plot",
        "h.svg",
    ];
    assert_eq!(risetime_in(&dir, &args).code, 0);
    let svg = std::fs::read_to_string(dir.join("h.svg")).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("energy_mj"));
}

#[test]
fn bad_input_of_a_history_ends_with_2_and_nothing_is_written() {
    for (more, found) in [
        (&["--simulated", "--task", "nobody"][..], "has no task `nobody`"),
        (&["--simulated", "--bisect", "fun"], "there are energy_mj, full_speed_ms"),
        (&["--simulated", "--bisect", "energy_mj", "--step", "6.1"], "is the oldest"),
        (&["--simulated", "--bisect", "energy_mj", "--step", "6.2"], "is none of the releases"),
        (&["--simulated", "--metric", "rampup.fun"], "there is no figure `rampup.fun`"),
        (&["--simulated", "--plot", "no/such/h.svg"], "no directory"),
        (&["--simulated", "--set", "fun=1"], "fun"),
        (&["--simulated", "--kernel", "6.12"], "cannot be used with"),
        (&["--simulated", "--seed", "-"], "invalid value"),
    ] {
        let said = history(more);
        assert!(
            said.code == 2 && said.err.contains(found) && said.out.is_empty(),
            "{more:?}: {said:?}"
        );
    }
    let said = history(&["--kernel", "6.99.9-arm64"]);
    assert!(
        said.code == 3 && said.err.contains("neither an Image nor a kernel in the cache"),
        "{said:?}"
    );
}
