use super::*;
use crate::Platform;

/// A file with every table and key that can stand together; each line is `SECTION|KEY|VALUE`.
const WHOLE: &str = r#"
|schema|1
|name|"x"
|about|"y"
|hz|250
domain|cpus|"0-1"
domain|cpus_per_policy|1
domain|capacity|1024
domain|fast_switch|true
domain|transition_delay_us|100
domain|energy_model|true
domain.opp|freq_khz|1000000
domain.opp|power_uw|100000
domain.opp|latency_ns|10
domain.opp|turbo|false
domain.opp|capacity|1024
domain.idle|name|"wfi"
domain.idle|exit_latency_us|1
domain.idle|min_residency_us|1
domain.idle|power_uw|10
domain.work|kind|"encrypt"
domain.work|speed_ppm|[1000000]
domain.work|power_uw|[1000]
topology|l2|["0", "1"]
topology|llc|["0", "1"]
topology|node|["0", "1"]
topology|distance|[[10, 20], [20, 10]]
topology rule|cpus|"0-1"
topology rule|each|1
thermal|name|"a"
thermal|heated_by|"0"
thermal|ambient_millicelsius|25000
thermal|resistance_mk_per_w|10000
thermal|capacitance_mj_per_k|1000
thermal|polling_delay_passive_ms|100
thermal|polling_delay_ms|1000
thermal|governor|"power_allocator"
thermal|sustainable_power_mw|100
thermal|k_po|1
thermal|k_pu|1
thermal|k_i|1
thermal|integral_cutoff_millicelsius|0
thermal|cools|"0"
thermal.coupled|zone|"b"
thermal.coupled|resistance_mk_per_w|5000
thermal.trip|type|"passive"
thermal.trip|temp_millicelsius|70000
thermal.trip|hysteresis_millicelsius|0
sources|capacity|"s"
sources|opp|"s"
sources|hz|"s"
sources|idle|"s"
sources|work|"s"
sources|thermal|"s"
"#;

/// The file with `key` of `section` set to `value`, or without it (`None`).
fn with(section: &str, key: &str, value: Option<&str>) -> String {
    let mut lines: Vec<(&str, &str, &str)> = WHOLE
        .lines()
        .filter_map(|l| l.split_once('|').and_then(|(s, rest)| Some((s, rest.split_once('|')?))))
        .map(|(s, (k, v))| (s, k, v))
        .filter(|(s, k, _)| (*s, *k) != (section, key))
        .collect();
    // What does not go together with the key asked for.
    let instead: &[(&str, &str)] = match (section, key) {
        ("domain", "cluster") => &[("topology", "llc")],
        ("domain.opp", "uv") => &[("domain.opp", "power_uw")],
        ("domain.opp_range" | "domain.levels", _) => &[("domain", "energy_model")],
        ("thermal", "governor") => &[],
        _ => &[],
    };
    lines.retain(|(s, k, _)| !instead.contains(&(s, k)));
    let instead_of_opps: &[(&str, &str)] = match section {
        "domain.opp_range" => &[("min_khz", "1000"), ("max_khz", "2000"), ("step_khz", "1000")],
        "domain.levels" => &[
            ("scaling_driver", "\"intel_pstate\""),
            ("highest", "30"),
            ("nominal", "20"),
            ("lowest", "4"),
            ("nominal_khz", "2000000"),
        ],
        _ => &[],
    };
    if !instead_of_opps.is_empty() {
        lines.retain(|(s, ..)| !s.starts_with("domain.") && !s.starts_with("thermal"));
        lines.extend(instead_of_opps.iter().map(|(k, v)| (section, *k, *v)));
        lines.retain(|(s, k, _)| (*s, *k) != (section, key));
    }
    if (section, key) == ("domain.opp", "uv") {
        lines.push(("domain", "dynamic_power_coefficient", "100"));
        lines.retain(|(s, k, _)| (*s, *k) != ("domain.work", "power_uw"));
    }
    if (section, key) == ("domain", "dynamic_power_coefficient") {
        lines.push(("domain.opp", "uv", "1000000"));
        lines.retain(|(s, k, _)| (*s, *k) != ("domain.opp", "power_uw"));
    }
    lines.extend(value.map(|value| (section, key, value)));
    let of = |section: &str, sep: &str| {
        let own = lines.iter().filter(|(s, ..)| *s == section);
        own.map(|(_, k, v)| format!("{k} = {v}")).collect::<Vec<_>>().join(sep)
    };
    let table = |key: &str, section: &str, list: bool| match of(section, ", ").as_str() {
        "" => String::new(),
        own if list => format!("{key} = [{{ {own} }}]\n"),
        own => format!("{key} = {{ {own} }}\n"),
    };
    let mut text = of("", "\n") + "\n[[domain]]\n" + &of("domain", "\n") + "\n";
    text += &table("opp", "domain.opp", true);
    text += &table("opp_range", "domain.opp_range", false);
    text += &table("levels", "domain.levels", false);
    text += &table("idle", "domain.idle", true);
    if !of("domain.work", "").is_empty() {
        text += &format!("[[domain.work]]\n{}\n", of("domain.work", "\n"));
    }
    text += "[topology]\n";
    text += &of("topology", "\n");
    text += "\n";
    if !lines.iter().any(|(s, k, _)| (*s, *k) == ("topology", "core")) {
        text += &table("core", RULE, false);
    }
    if !of("thermal", "").is_empty() {
        text += &format!("[[thermal]]\n{}\n", of("thermal", "\n"));
        text += &table("coupled", "thermal.coupled", true);
        text += &table("trip", "thermal.trip", true);
        text += "[[thermal]]\nname = \"b\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 1000\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n";
    }
    text + "[sources]\n" + &of("sources", "\n") + "\n"
}

/// Reads the file, and returns what the reader says of it.
fn said(text: &str) -> Result<Platform, String> {
    Platform::parse(text, "x").map_err(|e| e.to_string())
}

#[test]
fn the_file_with_every_key_loads() {
    said(&with("none", "none", None))
        .unwrap_or_else(|e| panic!("{e}\n{}", with("none", "none", None)));
}

/// A key of the table that no reader asks for would pass whatever it holds.
#[test]
fn every_key_of_the_table_is_read_and_refuses_what_it_does_not_take() {
    for section in &SECTIONS {
        for key in section.keys {
            let wrong = match key.takes {
                Bool | Int(..) | Ints(..) | Matrix(..) => "\"no\"",
                Text(_) | Word(_) | Groups | Table(_) => "false",
            };
            // A table stands as a table or list of tables elsewhere in the file: as a key it is there alone.
            let text = match (section.name, key.takes) {
                ("", Table(_)) => format!(
                    "schema = 1\nname = \"x\"\nhz = 250\n{} = false\n{}",
                    key.name,
                    match key.name {
                        "domain" => "",
                        "sources" =>
                            "[[domain]]\ncpus = \"0\"\ncapacity = 1024\nopp = [{ freq_khz = 1 }]\n",
                        _ =>
                            "[[domain]]\ncpus = \"0\"\ncapacity = 1024\nopp = [{ freq_khz = 1 }]\n[sources]\ncapacity = \"s\"\nopp = \"s\"\n",
                    }
                ),
                ("domain", Table(_)) => {
                    let opp = if key.name == "opp" { "" } else { "opp = [{ freq_khz = 1 }]\n" };
                    format!(
                        "schema = 1\nname = \"x\"\nhz = 250\n[[domain]]\ncpus = \"0\"\ncapacity = 1024\n{opp}{} = false\n",
                        key.name
                    )
                }
                ("thermal", Table(_)) => {
                    let name = if key.name == "trip" { "thermal.trip" } else { "thermal.coupled" };
                    let whole = with("none", "none", None);
                    let list = whole.lines().find(|l| l.starts_with(&format!("{} = [", key.name)));
                    assert!(list.is_some(), "{name}");
                    whole.replace(list.unwrap(), &format!("{} = false", key.name))
                }
                _ => with(section.name, key.name, Some(wrong)),
            };
            let e = said(&text)
                .map(|_| ())
                .expect_err(&format!("[{}] {} is not read:\n{text}", section.name, key.name));
            assert!(
                e.contains(&format!("`{}` ", key.name)),
                "[{}] {}: {e}\n{text}",
                section.name,
                key.name
            );
        }
    }
}

/// The bounds of the table are those of the reader: the ends are taken, and what is beyond is refused with them.
#[test]
fn every_number_of_the_table_has_the_readers_bounds() {
    for section in &SECTIONS {
        for key in section.keys {
            let Int(low, high, _) = key.takes else { continue };
            // Whose bound another key of the same table is, which its text says.
            let related = ["max_khz", "hysteresis_millicelsius"].contains(&key.name)
                || (section.name == "domain.levels" && key.name != "lowest");
            let beyond = [low.checked_sub(1), high.checked_add(1)];
            for value in beyond.into_iter().flatten() {
                let e = said(&with(section.name, key.name, Some(&value.to_string())));
                let e = e.map(|_| ()).expect_err(key.name);
                let own = format!("`{}` is {value}, wanted ", key.name);
                assert!(e.contains(&own), "[{}] {}: {e}", section.name, key.name);
                let bound = |n: u64, word: &str| e.contains(&format!("{word}{n}"));
                let told = low == high || (bound(low, "from ") && bound(high, "to ")) || related;
                assert!(told, "[{}] {}: wanted {low} to {high}: {e}", section.name, key.name);
            }
            for value in [low, high] {
                if let Err(e) = said(&with(section.name, key.name, Some(&value.to_string()))) {
                    // Beside the other figures of the file it may not fit; the number itself does.
                    let number = format!("`{}` is {value}, wanted a whole number", key.name);
                    assert!(
                        related || !e.contains(&number),
                        "[{}] {} {value}: {e}",
                        section.name,
                        key.name
                    );
                }
            }
        }
    }
}

#[test]
fn a_key_that_must_be_there_is_missed() {
    for section in &SECTIONS {
        for key in section.keys.iter().filter(|k| k.absent == Wrong) {
            let table = matches!(key.takes, Table(_));
            let text = match (section.name, key.name) {
                ("", "domain") => "schema = 1\nname = \"x\"\nhz = 250\n".to_owned(),
                ("", "sources") => {
                    with("none", "none", None).split("[sources]").next().unwrap().to_owned()
                }
                _ => with(section.name, key.name, None),
            };
            let e = said(&text).map(|_| ()).expect_err(&format!("[{}] {}", section.name, key.name));
            let told =
                e.contains(&format!("`{}` is missing", key.name)) || table && e.contains(key.name);
            assert!(told, "[{}] {}: {e}\n{text}", section.name, key.name);
        }
    }
}

#[test]
fn a_key_that_is_in_no_table_is_refused_with_those_that_are() {
    for section in SECTIONS.iter().filter(|s| s.name != "sources") {
        let e = said(&with(section.name, "frobnicate", Some("1"))).map(|_| ()).unwrap_err();
        assert!(e.contains("unknown field `frobnicate`"), "[{}]: {e}", section.name);
        let all = names(section.name).join(", ");
        assert!(e.contains(&all), "[{}]: {e}", section.name);
    }
}

/// Tells a reader what a key takes.
fn values(takes: Takes) -> String {
    let numbers = |low: u64, high: u64, unit: &str| match (low == high, unit.is_empty()) {
        (true, _) => low.to_string(),
        (false, true) => format!("{low} to {high}"),
        (false, false) => format!("{low} to {high} {unit}"),
    };
    match takes {
        Int(low, high, unit) => numbers(low, high, unit),
        Bool => "`true`, `false`".into(),
        Text(form) => form.into(),
        Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Ints(low, high, unit) => format!("a list, one for each OPP: {}", numbers(low, high, unit)),
        Table(name) => format!("table [`{name}`](#{})", anchor(name)),
        Groups => format!("lists of CPUs, or a [rule](#{})", anchor(RULE)),
        Matrix(low, high) => format!("rows of {low} to {high}"),
    }
}

/// The anchor that a heading of this section has.
fn anchor(name: &str) -> String {
    name.replace('.', "").replace(' ', "-")
}

/// BLESS=1 writes the page anew.
#[test]
fn the_page_of_platform_files_is_the_table() {
    let mut wanted = String::new();
    for section in &SECTIONS {
        let title = if section.name.is_empty() {
            "The machine".into()
        } else {
            format!("`{}`", section.name)
        };
        wanted += &format!("\n## {title}\n\n{}\n\n", section.about);
        wanted += "| key | values | without it | what it is | a real system has it in |\n|---|---|---|---|---|\n";
        for key in section.keys {
            let absent = match key.absent {
                Wrong => "must be there",
                Means(text) => text,
            };
            wanted += &format!(
                "| `{}` | {} | {absent} | {} | {} |\n",
                key.name,
                values(key.takes),
                key.doc,
                key.source
            );
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/platform-file.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let mark = "<!-- from here on generated: BLESS=1 cargo test -p risetime-model keys -->\n";
    let (head, found) = page.split_once(mark).expect("the mark from which on it is generated");
    #[allow(clippy::disallowed_methods, reason = "who blesses a page says so by it")]
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{head}{mark}{wanted}")).expect("the page");
        return;
    }
    assert_eq!(found, wanted, "docs/platform-file.md is not the table: BLESS=1 writes it anew");
}
