//! What a user is told about a study file that is wrong.

use crate::common::{check_transcript, entry};
use risetime_model::Study;

const GOOD: &str = r#"schema = 1
name = "s"
source = "a document"
[[figure]]
id = "f"
place = "figure 1"
platform = "m1"
workload = "rampup"
set = { rate_limit_us = 70 }
[[figure.instead]]
id = "i"
about = "no limit"
set = { rate_limit_us = 0 }
[[figure.list]]
quantity = "freq_residency"
cpu = 0
rows = [[600000, 37.3], { at = 972000, published = 15.0, instead = "i" }]
[[figure.list]]
quantity = "util_residency"
rows = [[0, 1.4], [26, 1.0]]
"#;

#[test]
fn a_study_that_is_wrong_is_refused_with_its_place() {
    Study::parse(GOOD, "my.toml").expect("good");
    let mut said = String::new();
    for (from, to) in [
        ("schema = 1", "schema = 2"),
        ("source = \"a document\"\n", ""),
        ("[[figure.list]]", "[[figure.lists]]"),
        ("id = \"f\"", "id = \"f\"\nfrom = \"me\""),
        ("id = \"f\"", "id = \"f\"\nwrong = \"linux-6.8 +hz\""),
        ("id = \"f\"", "id = \"f g\""),
        ("quantity = \"freq_residency\"", "quantity = \"freq_residenzy\""),
        ("cpu = 0\n", ""),
        ("quantity = \"util_residency\"", "quantity = \"util_residency\"\ncpu = 1"),
        ("workload = \"rampup\"\n", ""),
        ("platform = \"m1\"\nworkload = \"rampup\"\nset", "set"),
        ("[26, 1.0]", "[0, 1.0]"),
        ("[26, 1.0]", "[26, 1.0, 2]"),
        ("[26, 1.0]", "[26, 1e3]"),
        ("[26, 1.0]", "[26, nan]"),
        ("[26, 1.0]", "[26, \"1.0\"]"),
        ("[26, 1.0]", "[\"x\", 1.0]"),
        ("[26, 1.0]", "{ at = 26, published = 1.0, is = \"more\" }"),
        ("[26, 1.0]", "{ at = 26 }"),
        ("rows = [[0, 1.4], [26, 1.0]]", "rows = []"),
        ("[[0, 1.4], [26, 1.0]]", "7"),
        ("instead = \"i\"", "instead = \"j\""),
        ("about = \"no limit\"", "about = \"no limit\"\nunset = \"governor\""),
        ("[600000, 37.3]", "[972000, 37.3]"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let e = Study::parse(&text, "my.toml").expect_err(to);
        said += &entry(&format!("{from} → {to}"), &e.to_string());
    }
    for arg in ["rfc-2042", "no/such.toml", ""] {
        said += &entry(arg, &Study::load(arg).expect_err(arg).to_string());
    }
    check_transcript("bad_studies.txt", &said);
}
