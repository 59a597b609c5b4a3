//! Every fault in a platform or policy file: one clear message, quickly.

use crate::common::{check_transcript, entry};
use risetime_model::{Platform, Policy};
use std::time::{Duration, Instant};

const GOOD: &str = r#"schema = 1
name = "two"
about = "two domains"
hz = 250

[[domain]]
cpus = "0-1"
cluster = 0
capacity = 512
opp = [ { freq_khz = 500000, power_uw = 50000, latency_ns = 10000 }, { freq_khz = 1000000, power_uw = 150000, latency_ns = 10000 } ]
idle = [ { name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 5000 } ]

[[domain]]
cpus = "2"
cluster = 1
capacity = 1024
dynamic_power_coefficient = 100
opp = [ { freq_khz = 600000, uv = 600000, latency_ns = 10000 }, { freq_khz = 1999999, uv = 900999, latency_ns = 20000 } ]

[sources]
capacity = "estimate"
opp = "estimate"
idle = "estimate"
hz = "estimate"
"#;

/// What to replace in the good file, and by what.
const FAULTS: &[(&str, &str)] = &[
    // the file
    ("schema = 1", "schema = 2"),
    ("schema = 1\n", ""),
    ("schema = 1", "schema = \"1\""),
    ("schema = 1", "schema = "),
    ("name = \"two\"", "name = \"a+b\""),
    ("name = \"two\"", "name = \"\""),
    ("name = \"two\"", "name = 5"),
    ("hz = 250\n", ""),
    ("hz = 250", "hz = 0"),
    ("hz = 250", "hz = 1000000"),
    ("hz = 250", "hz = -250"),
    ("hz = 250", "hz = 250.0"),
    ("hz = 250", "herz = 250"),
    ("hz = 250", "hz = 250\nhz = 300"),
    ("hz = 250", "hz = 250\ncolour = \"red\""),
    ("hz = 250", "hz = 250 # \0"),
    // CPUs
    ("cpus = \"0-1\"", "cpus = \"\""),
    ("cpus = \"0-1\"", "cpus = [0, 1]"),
    ("cpus = \"0-1\"", "cpus = \"1-0\""),
    ("cpus = \"0-1\"", "cpus = \"0,0\""),
    ("cpus = \"0-1\"", "cpus = \"0-\""),
    ("cpus = \"0-1\"", "cpus = \"-1\""),
    ("cpus = \"0-1\"", "cpus = \"0-1024\""),
    ("cpus = \"0-1\"", "cpus = \"0-4294967295\""),
    ("cpus = \"0-1\"", "cpus = \"0-99999999999999999999999\""),
    ("cpus = \"2\"", "cpus = \"1-2\""),
    ("cpus = \"2\"", "cpus = \"3\""),
    ("cpus = \"0-1\"", "cpus = \"1\""),
    // a domain
    ("capacity = 512", "capacity = 0"),
    ("capacity = 512", "capacity = 1025"),
    ("capacity = 512", "capacity = 99999999999999999999"),
    ("capacity = 512", "capacitiy = 512"),
    ("cluster = 1", "cluster = -1"),
    ("cluster = 1", "cluster = 1\nfast_switch = 1"),
    ("cluster = 1", "cluster = 1\ntransition_delay_us = 0"),
    ("[[domain]]\ncpus = \"0-1\"", "[domain]\ncpus = \"0-1\""),
    // OPPs
    (
        "opp = [ { freq_khz = 500000, power_uw = 50000, latency_ns = 10000 }, { freq_khz = 1000000, power_uw = 150000, latency_ns = 10000 } ]",
        "opp = []",
    ),
    (
        "opp = [ { freq_khz = 500000, power_uw = 50000, latency_ns = 10000 }, { freq_khz = 1000000, power_uw = 150000, latency_ns = 10000 } ]",
        "",
    ),
    (
        "opp = [ { freq_khz = 500000, power_uw = 50000, latency_ns = 10000 }, { freq_khz = 1000000, power_uw = 150000, latency_ns = 10000 } ]",
        "opp = [ 500000 ]",
    ),
    ("freq_khz = 1000000", "freq_khz = 500000"),
    ("freq_khz = 1000000", "freq_khz = 400000"),
    ("freq_khz = 500000", "freq_khz = 0"),
    ("freq_khz = 500000", "freq_khz = 5e5"),
    ("freq_khz = 500000", "freq_khz = 500000000000"),
    ("freq_khz = 500000", "freq_mhz = 500"),
    ("power_uw = 50000, ", ""),
    ("power_uw = 50000", "power_uw = -1"),
    ("power_uw = 50000", "uv = 800000"),
    ("power_uw = 50000", "power_uw = 50000, uv = 800000"),
    ("latency_ns = 20000", "latency_ns = 4294967296"),
    ("uv = 900999", "power_uw = 1, power_uw = 2"),
    ("dynamic_power_coefficient = 100\n", ""),
    ("dynamic_power_coefficient = 100", "dynamic_power_coefficient = 1000000"),
    ("cluster = 0", "cluster = 0\ndynamic_power_coefficient = 100"),
    // kinds of work
    ("\n[sources]", "\n[[domain.work]]\nkind = \"a\"\nspeed_ppm = [500000, 1000000]\n[sources]"),
    ("\n[sources]", "\n[[domain.work]]\nkind = \"a\"\nspeed_ppm = [500000]\n[sources]"),
    ("\n[sources]", "\n[[domain.work]]\nkind = \"a\"\nspeed_ppm = [500000, 1000001]\n[sources]"),
    ("\n[sources]", "\n[[domain.work]]\nkind = \"a\"\nspeed_ppm = \"fast\"\n[sources]"),
    ("\n[sources]", "\n[[domain.work]]\nkind = \"a b\"\nspeed_ppm = [1, 2]\n[sources]"),
    ("\n[sources]", "\n[[domain.work]]\nspeed_ppm = [1, 2]\n[sources]"),
    (
        "\n[sources]",
        "\n[[domain.work]]\nkind = \"a\"\nspeed_ppm = [1, 2]\nwatts = [1, 2]\n[sources]",
    ),
    (
        "\n[sources]",
        "\n[[domain.work]]\nkind = \"a\"\nspeed_ppm = [1, 2]\npower_uw = [1, 2, 3]\n[sources]",
    ),
    // idle states
    ("name = \"wfi\", exit_latency_us = 1", "name = \"wfi\", exit_latency_us = 0.5"),
    (
        "min_residency_us = 1, power_uw = 5000 }",
        "min_residency_us = 9 }, { name = \"off\", exit_latency_us = 9, min_residency_us = 8 }",
    ),
    (
        "min_residency_us = 1, power_uw = 5000 }",
        "min_residency_us = 9 }, { name = \"wfi\", exit_latency_us = 9, min_residency_us = 9 }",
    ),
    ("exit_latency_us = 1, ", ""),
    // who shares what
    ("[sources]", "[topology]\ncore = [\"0,2\"]\n[sources]"),
    ("[sources]", "[topology]\ncore = [\"0-1\", \"1-2\"]\n[sources]"),
    ("[sources]", "[topology]\ncore = [\"0-3\"]\n[sources]"),
    ("[sources]", "[topology]\ncore = \"0-1\"\n[sources]"),
    ("[sources]", "[topology]\ncore = [0, 1]\n[sources]"),
    ("[sources]", "[topology]\ncore = { cpus = \"0-2\", each = 2 }\n[sources]"),
    ("[sources]", "[topology]\ncore = { cpus = \"0-1\", each = 2, stride = 2 }\n[sources]"),
    ("[sources]", "[topology]\ncore = { cpus = \"0-1\" }\n[sources]"),
    ("[sources]", "[topology]\ncore = { cpus = \"0-1\", every = 2 }\n[sources]"),
    ("[sources]", "[topology]\ncores = [\"0-1\"]\n[sources]"),
    ("[sources]", "[topology]\nl2 = [\"1-2\"]\n[sources]"),
    ("[sources]", "[topology]\nl2 = [\"0,9\"]\n[sources]"),
    ("[sources]", "[topology]\nllc = [\"0-2\"]\n[sources]"),
    ("[sources]", "[topology]\nnode = [\"0\", \"2\"]\n[sources]"),
    ("[sources]", "[topology]\nnode = [\"0\", \"1-2\"]\n[sources]"),
    ("[sources]", "[topology]\nnode = [\"0-1\", \"2\"]\ndistance = [[10, 20]]\n[sources]"),
    (
        "[sources]",
        "[topology]\nnode = [\"0-1\", \"2\"]\ndistance = [[10, 20], [30, 10]]\n[sources]",
    ),
    (
        "[sources]",
        "[topology]\nnode = [\"0-1\", \"2\"]\ndistance = [[10, 10], [10, 10]]\n[sources]",
    ),
    (
        "[sources]",
        "[topology]\nnode = [\"0-1\", \"2\"]\ndistance = [[10, 255], [255, 10]]\n[sources]",
    ),
    ("[sources]", "[topology]\nnode = [\"0-1\", \"2\"]\ndistance = [10, 20]\n[sources]"),
    ("[sources]", "[topology]\ndistance = [[10]]\n[sources]"),
    ("cluster = 0", "cpus_per_policy = 0"),
    ("cluster = 0", "cpus_per_policy = 3"),
    ("cluster = 1", "opp_range = { min_khz = 1, max_khz = 2, step_khz = 1 }"),
    (
        "opp = [ { freq_khz = 500000, power_uw = 50000, latency_ns = 10000 }, { freq_khz = 1000000, power_uw = 150000, latency_ns = 10000 } ]",
        "opp_range = { min_khz = 2000, max_khz = 1000, step_khz = 1 }",
    ),
    (
        "opp = [ { freq_khz = 500000, power_uw = 50000, latency_ns = 10000 }, { freq_khz = 1000000, power_uw = 150000, latency_ns = 10000 } ]",
        "opp_range = { min_khz = 1000, max_khz = 100000, step_khz = 1 }",
    ),
    // heat
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"2-3\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\ncools = \"0\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\ncools = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\ncols = \"0-1\"\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 1\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 0\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = -5\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\ngovernor = \"bang_bang\"\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\nk_po = 5\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\ngovernor = \"power_allocator\"\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\ntrip = [{ type = \"hot\", temp_millicelsius = 1 }]\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\ntrip = [{ type = \"passive\", temp_millicelsius = 50, hysteresis_millicelsius = 51 }]\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\ncoupled = [{ zone = \"a\", resistance_mk_per_w = 1 }]\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    (
        "[sources]",
        "[[thermal]]\nname = \"a\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[[thermal]]\nname = \"b\"\nheated_by = \"0-1\"\nambient_millicelsius = 25000\nresistance_mk_per_w = 10000\ncapacitance_mj_per_k = 500\npolling_delay_passive_ms = 100\npolling_delay_ms = 1000\n[sources]",
    ),
    // sources
    ("capacity = \"estimate\"\n", ""),
    ("capacity = \"estimate\"", "capacity = \" \""),
    ("capacity = \"estimate\"", "capacity = 7"),
    ("[sources]", "[source]"),
];

#[test]
fn every_fault_has_one_clear_message() {
    let good = Platform::parse(GOOD, "my.toml").unwrap_or_else(|e| panic!("{e}"));
    // 600 mV: 100 · 600² · 600 / 10⁶; 900.999 mV at 1999.999 MHz, both cut: 100 · 900² · 1999.
    let power: Vec<u64> = good.domains[1].opps.iter().map(|o| o.power.0).collect();
    assert_eq!(power, [21_600, 161_919]);
    let mut said = String::new();
    for (from, to) in FAULTS {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "`{from}` is not in the good file");
        match Platform::parse(&text, "my.toml") {
            Ok(p) => panic!("accepted `{to}` for `{from}`: {p:?}"),
            Err(e) => said += &entry(&format!("{from} → {to}"), &e.to_string()),
        }
    }
    check_transcript("bad_platforms.txt", &said);
}

#[test]
fn what_is_no_platform_at_all_is_refused_at_once() {
    let cases = [
        "".to_string(),
        "{}".into(),
        "schema = 1\nname = \"x\"\nhz = 100\n".into(),
        "\0".into(),
        "= 1".into(),
        "x".repeat(2 << 20),
        format!("x = {}", "[".repeat(200_000)),
        format!("x = {}", "{a=".repeat(200_000)),
        format!("x{} = 1", ".a".repeat(200_000)),
        format!("{}\n", "[a]".repeat(200_000)),
        "[[domain]]\n".repeat(90_000),
        format!("{}x", "\n".repeat(1_000_000)),
    ];
    let mut said = String::new();
    for text in &cases {
        let begun = Instant::now();
        let e = Platform::parse(text, "my.toml").expect_err("no platform");
        said += &entry(text, &e.to_string());
        assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
    }
    for name in ["nope", "M1", "no/such.toml", "/", "/dev/zero"] {
        said += &entry(name, &Platform::load(name).expect_err(name).to_string());
    }
    check_transcript("no_platforms.txt", &said);
}

#[test]
fn every_fault_in_a_policy_has_one_clear_message() {
    let good = "schema = 1\nname = \"p\"\nkernel = \"6.8\"\n[set]\ngovernor = \"schedutil\"\n";
    Policy::parse(good, "my.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut said = String::new();
    for (from, to) in [
        ("6.8", "6"),
        ("6.8", "3.14"),
        ("6.8", "7.4"),
        ("6.8", "6.x"),
        ("6.8", "6.99999999"),
        ("kernel = \"6.8\"", "kernel = 6.8"),
        ("kernel = \"6.8\"\n", ""),
        ("\"schedutil\"", "1.5"),
        ("\"schedutil\"", "[1]"),
        ("\"schedutil\"", "99999999999999999999"),
        ("[set]", "[sett]"),
        ("name = \"p\"", "name = \"p=1\""),
    ] {
        let text = good.replacen(from, to, 1);
        let e = Policy::parse(&text, "my.toml").expect_err(to);
        said += &entry(&format!("{from} → {to}"), &e.to_string());
    }
    for arg in [
        "linux-6.9",
        "",
        "nope+a=1",
        "linux-6.8+",
        "linux-6.8+rate",
        "linux-6.8+=7",
        "linux-6.8+a=",
    ] {
        said += &entry(arg, &Policy::from_arg(arg).expect_err(arg).to_string());
    }
    check_transcript("bad_policies.txt", &said);
}

#[test]
fn a_platform_may_be_odd_and_then_check_says_so() {
    let odd = GOOD
        .replace("capacity = 1024", "capacity = 1000")
        .replace("latency_ns = 20000", "latency_ns = 0")
        .replace("uv = 600000, latency_ns = 10000", "uv = 1200000, latency_ns = 0")
        .replace("power_uw = 50000, ", "")
        .replace("power_uw = 150000, ", "")
        .replace("idle = \"estimate\"\n", "")
        .replace("hz = \"estimate\"\n", "");
    let p = Platform::parse(&odd, "odd.toml").unwrap_or_else(|e| panic!("{e}"));
    check_transcript("odd_platform.txt", &(p.warnings().join("\n") + "\n"));
    let good = Platform::parse(GOOD, "my.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(good.warnings(), ["domain 2 (CPUs 2): no idle states: idle power is taken as 0"]);
}

#[test]
fn domains_are_ordered_by_cpu_whatever_the_order_in_the_file() {
    let swapped =
        GOOD.replace("cpus = \"0-1\"", "cpus = \"1-2\"").replace("cpus = \"2\"", "cpus = \"0\"");
    let p = Platform::parse(&swapped, "my.toml").unwrap_or_else(|e| panic!("{e}"));
    let capacities: Vec<u64> = p.domains.iter().map(|d| d.capacity.0).collect();
    assert_eq!(capacities, [1024, 512]);
    assert_eq!(p.domains[0].cpus[0].0, 0);
}
