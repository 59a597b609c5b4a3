//! What a user is told about a file of graphs that is wrong.

use crate::common::{check_transcript, entry};
use risetime_model::Dags;

const GOOD: &str = r#"schema = 1
name = "vision"
[[device]]
name = "fpga0"
idle_mw = 40
[[dag]]
name = "track"
period_us = 33333
deadline_us = 30000
[[dag.node]]
name = "grab"
runtime_us = 1500
[[dag.node]]
name = "detect"
after = ["grab"]
runtime_us = 9000
on = [{ cpu = 0, runtime_us = 22000 }]
accelerated = [{ device = "fpga0", runtime_us = 2000, power_mw = 900 }]
[[dag.node]]
name = "show"
after = ["detect", "grab"]
runtime_us = 700
"#;

#[test]
fn graphs_are_read() {
    let dags = Dags::parse(GOOD, "my.toml").expect("good");
    let dag = &dags.dags[0];
    assert_eq!((dag.period_us, dag.deadline_us, dags.devices[0].idle.0), (33_333, 30_000, 40_000));
    assert_eq!(dag.nodes[2].after, [0, 1]);
    assert_eq!(dag.nodes[1].accelerated[0].power.0, 900_000);
    assert_eq!((dag.nodes[1].on[0].1, dag.nodes[1].on[0].2.as_str()), (22_000, "my.toml:17:9"));
    assert_eq!(dag.order(), Some(vec![0, 1, 2]));
}

#[test]
fn graphs_that_are_wrong_are_refused_with_their_place() {
    let mut said = String::new();
    for (from, to) in [
        ("schema = 1", "schema = 2"),
        ("name = \"vision\"\n", ""),
        ("name = \"track\"\n", ""),
        ("period_us = 33333\n", ""),
        ("period_us = 33333", "period_us = 5000000"),
        ("period_us = 33333", "period_us = 20000"),
        ("deadline_us = 30000", "deadline_us = 4000"),
        ("deadline_us = 30000\n", "deadline_us = 0\n"),
        ("name = \"show\"", "name = \"grab\""),
        ("name = \"show\"", "name = \"a; b\""),
        ("runtime_us = 1500", "runtime_us = 0"),
        ("runtime_us = 1500\n", ""),
        ("runtime_us = 1500", "runtime_us = 1500\nafter = [\"show\"]"),
        ("after = [\"grab\"]", "after = [\"detect\"]"),
        ("after = [\"grab\"]", "after = [\"grap\"]"),
        ("after = [\"grab\"]", "after = \"grab\""),
        ("after = [\"grab\"]", "after = { }"),
        ("after = [\"grab\"]\n", ""),
        ("after = [\"detect\", \"grab\"]", "after = [\"grab\"]"),
        ("cpu = 0, ", ""),
        ("cpu = 0", "cpu = 4096"),
        ("on = [", "in = ["),
        ("device = \"fpga0\"", "device = \"gpu\""),
        ("[[device]]\nname = \"fpga0\"\nidle_mw = 40\n", ""),
        ("power_mw = 900", "power_mw = 9e2"),
        (", power_mw = 900", ""),
        ("idle_mw = 40", "idle_uw = 40"),
        ("[[device]]", "[[device]]\nname = \"fpga0\"\n[[device]]"),
        ("900 }]", "900 }, { device = \"fpga0\", runtime_us = 2, power_mw = 9 }]"),
        ("[[dag]]", "[dag]"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let told = match Dags::parse(&text, "my.toml") {
            Ok(_) => "no error".to_string(),
            Err(e) => e.to_string(),
        };
        said += &entry(&format!("{from} → {to}"), &told);
    }
    let twice = format!("{GOOD}{}", &GOOD[GOOD.find("[[dag]]").expect("one")..]);
    said += &entry("the graph twice", &Dags::parse(&twice, "my.toml").expect_err("2").to_string());
    said += &entry("", &Dags::parse("", "my.toml").expect_err("empty").to_string());
    let none = Dags::parse("schema = 1\nname = \"x\"\n", "my.toml").expect_err("none");
    said += &entry("no graph", &none.to_string());
    said += &entry("no/such.toml", &Dags::load("no/such.toml").expect_err("none").to_string());
    check_transcript("bad_dags.txt", &said);
}
