//! What a user is told about a file of real-time needs that is wrong.

use crate::common::{check_transcript, entry};
use risetime_model::Needs;

const GOOD: &str = r#"schema = 1
name = "robot"
[[task]]
name = "control"
period_us = 10000
runtime_us = 2000
deadline_us = 8000
[[task]]
name = "video"
share_percent = 30
[[task]]
name = "logger"
priority = 5
"#;

#[test]
fn needs_that_are_wrong_are_refused_with_their_place() {
    assert_eq!(Needs::parse(GOOD, "my.toml").expect("good").tasks.len(), 3);
    let mut said = String::new();
    for (from, to) in [
        ("schema = 1", "schema = 2"),
        ("schema = 1\n", ""),
        ("name = \"robot\"\n", ""),
        ("name = \"control\"\n", ""),
        ("name = \"video\"", "name = \"control\""),
        ("name = \"video\"", "name = \"a; b\""),
        ("[[task]]\nname = \"control\"", "[task]\nname = \"control\""),
        ("period_us = 10000", "period_us = 0"),
        ("period_us = 10000", "period_us = 1000"),
        ("period_us = 10000", "period_us = 5000000"),
        ("period_us = 10000", "period_us = 1e4"),
        ("period_us = 10000", "period_us = \"10 ms\""),
        ("period_us = 10000\n", ""),
        ("runtime_us = 2000\n", ""),
        ("deadline_us = 8000", "deadline_us = 1000"),
        ("deadline_us = 8000", "deadline_us = 20000"),
        ("deadline_us = 8000", "dedline_us = 8000"),
        ("deadline_us = 8000", "deadline_us = 8000\npriority = 4"),
        ("share_percent = 30", "share_percent = 101"),
        ("share_percent = 30", "share_percent = 30\nruntime_us = 5"),
        ("share_percent = 30\n", ""),
        ("priority = 5", "priority = 0"),
        ("priority = 5", "priority = 5 5"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let told = match Needs::parse(&text, "my.toml") {
            Ok(_) => "no error".to_string(),
            Err(e) => e.to_string(),
        };
        said += &entry(&format!("{from} → {to}"), &told);
    }
    said += &entry("", &Needs::parse("", "my.toml").expect_err("empty").to_string());
    said += &entry("no/such.toml", &Needs::load("no/such.toml").expect_err("none").to_string());
    check_transcript("bad_needs.txt", &said);
}
