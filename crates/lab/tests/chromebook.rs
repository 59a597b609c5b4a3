//! The scheduling of Chromebooks as OSPM 2023 was told of it: a task of high priority among many, and a video call.

use crate::page;
use risetime_analysis::compare::Estimate;
use risetime_analysis::metric::Metric;
use risetime_lab::{Request, measure, varied};
use risetime_model::Experiment;
use risetime_model::settings::Value;
use risetime_sim::Simulator;
use std::fmt::Write;
use std::sync::{Mutex, OnceLock};

/// Holds the block of the page behind `<!-- which -->` to `text`. One at a time: each writes the whole page.
fn shows(which: &str, text: &str) {
    static PAGE: Mutex<()> = Mutex::new(());
    let _alone = PAGE.lock().unwrap_or_else(|e| e.into_inner());
    page::holds("chromebook.md", &format!("<!-- {which} -->\n```text\n"), "```\n", text);
}

/// Each of these experiments' metrics from so many start phases.
fn measured(all: &[Experiment], phases: u32, metrics: &[&str]) -> Vec<Vec<Estimate>> {
    let metrics: Vec<Metric> = metrics.iter().copied().map(Metric::new).collect();
    let done = measure(&Simulator, all, phases, &metrics, |_| ()).expect("runs");
    let of = |m: &risetime_analysis::Measured| {
        (0..metrics.len()).map(|i| m.estimate(i).expect("there is one")).collect()
    };
    done.iter().map(of).collect()
}

/// The last kernel with CFS, or the first with EEVDF; 4.14, for which MuQSS was.
fn kernel(variant: &str) -> String {
    let preset = match variant {
        _ if variant.contains("MuQSS") => "muqss-4.14",
        _ if variant.contains("4.14") => "linux-4.14",
        _ if variant.contains("7.3") => "linux-7.3",
        _ if variant.contains("EEVDF") => "linux-6.6",
        _ => "linux-6.5",
    };
    match variant.contains("latency_nice") {
        true => format!("{preset}+latency_nice=1"),
        false => preset.to_string(),
    }
}

fn experiment(workload: &str, seconds: f64, vary: &[(&str, &str)]) -> Experiment {
    let request = Request {
        seconds: Some(seconds),
        noise: Some("machine"),
        ..Request::new(workload, "chromebook2")
    };
    let (_, mut found) = varied(&request, vary, Request::experiments).expect("valid");
    found.remove(0)
}

// ---------------------------------------------------------------------- dilution

const NORMAL: [&str; 3] = ["1", "10", "1000"];
/// Published, %; the last is "less than 1".
const PUBLISHED: [f64; 3] = [87.0, 40.0, 1.0];

/// What each set-up is called, and what it changes.
fn setups() -> Vec<(String, Vec<(&'static str, String)>)> {
    let groups: [(&str, &[(&str, &str)]); 7] = [
        ("weights alone", &[]),
        ("both kinds in one group", &[("high.taskgroup", "/a"), ("normal.taskgroup", "/a")]),
        ("the task in a group of its own", &[("high.taskgroup", "/a")]),
        ("the others in a group", &[("normal.taskgroup", "/b")]),
        (
            "a group each, as autogroup has it",
            &[("high.taskgroup", "/a"), ("normal.taskgroup", "/b")],
        ),
        ("the task at nice -8", &[("high.priority", "-8")]),
        ("the task at nice -9", &[("high.priority", "-9")]),
    ];
    let mut all = Vec::new();
    for (platform, cpus) in
        [("laptop4", "[0]"), ("chromebook2", "[0, 1]"), ("chromebook4", "[0, 1, 2, 3]")]
    {
        for fair in ["CFS", "EEVDF", "MuQSS"] {
            // MuQSS knows no groups.
            let groups = if fair == "MuQSS" { &groups[..1] } else { &groups };
            for (name, changes) in groups {
                let of = cpus.split(',').count();
                let mut vary: Vec<(&str, String)> = vec![
                    ("platform", platform.into()),
                    ("policy", kernel(fair)),
                    ("high.cpus", cpus.into()),
                    ("normal.cpus", cpus.into()),
                ];
                vary.extend(changes.iter().map(|(k, v)| (*k, v.to_string())));
                let s = if of == 1 { "" } else { "s" };
                all.push((format!("{of} CPU{s}, {fair}, {name}"), vary));
            }
        }
    }
    all
}

/// What the task of high priority gets of one CPU, in %, by set-up and number of normal ones.
fn diluted() -> &'static Vec<(String, [f64; 3])> {
    static DONE: OnceLock<Vec<(String, [f64; 3])>> = OnceLock::new();
    DONE.get_or_init(|| {
        const SECONDS: f64 = 4.0;
        let setups = setups();
        let point = |vary: &[(&'static str, String)], n: &str| {
            let mut vary: Vec<(&str, &str)> = vary.iter().map(|(k, v)| (*k, v.as_str())).collect();
            vary.push(("normal.instance", n));
            experiment("dilution", SECONDS, &vary)
        };
        let all: Vec<Experiment> =
            setups.iter().flat_map(|(_, vary)| NORMAL.map(|n| point(vary, n))).collect();
        let got = measured(&all, 1, &["high.running"]);
        let percent = |i: usize| got[i][0].median / SECONDS / 10.0;
        let rows = setups.into_iter().enumerate();
        rows.map(|(i, (name, _))| (name, [0, 1, 2].map(|n| percent(3 * i + n)))).collect()
    })
}

/// The largest distance from what was published, in points; the last figure is a bound.
fn distance(row: &[f64; 3]) -> f64 {
    let [one, ten, many] = *row;
    let above = (many - PUBLISHED[2]).max(0.0);
    (one - PUBLISHED[0]).abs().max((ten - PUBLISHED[1]).abs()).max(above)
}

fn row_of(name: &str) -> [f64; 3] {
    diluted().iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn the_page_shows_how_a_high_priority_is_diluted() {
    let mut sorted: Vec<&(String, [f64; 3])> = diluted().iter().collect();
    sorted.sort_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    let mut out = String::new();
    let line = |out: &mut String, name: &str, [a, b, c]: [f64; 3], off: Option<f64>| {
        let off = off.map_or(String::new(), |off| format!("{off:9.1}"));
        writeln!(out, "{name:<52}{a:7.1}{b:7.1}{c:7.1}{off}").expect("a text");
    };
    writeln!(out, "{:<52}{:>7}{:>7}{:>7}{:>9}", "normal tasks", 1, 10, 1000, "off by")
        .expect("a text");
    line(&mut out, "published (the last: less than that)", PUBLISHED, None);
    let by_weight = |w: f64| [1.0, 10.0, 1000.0].map(|n| 100.0 * w / (w + n));
    line(&mut out, "by weight, 88761 : 1024", by_weight(88761.0 / 1024.0), None);
    line(&mut out, "by weight, 6.7 : 1", by_weight(6.7), None);
    for (name, row) in sorted {
        line(&mut out, name, *row, Some(distance(row)));
    }
    shows("dilution", &out);
}

#[test]
fn on_one_cpu_weights_alone_decide() {
    for fair in ["CFS", "EEVDF"] {
        let [one, ten, many] = row_of(&format!("1 CPU, {fair}, weights alone"));
        assert!((one - 98.9).abs() < 0.3 && (ten - 89.7).abs() < 0.5, "{fair}: {one} {ten}");
        assert!((5.0..12.0).contains(&many), "{fair}: {many}");
    }
}

/// No set-up gives both 87 and 40: which comes nearest, and how near, is on the page.
#[test]
fn no_set_up_gives_what_was_published() {
    assert!(diluted().iter().all(|(_, row)| distance(row) > 0.7));
    let nearest = diluted().iter().min_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    let (name, row) = nearest.expect("there are some");
    assert!(name.contains("nice -") && distance(row) < 4.0, "{name}: {row:?}");
}

/// A group gets its share whoever is in it: the priority ends at its border.
#[test]
fn a_priority_ends_at_its_groups_border() {
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chromebook/groups.json");
    const SECONDS: f64 = 10.0;
    let rows: [(&str, &[(&str, &str)]); 4] = [
        (
            "no groups",
            &[("high.taskgroup", "/"), ("helper.taskgroup", "/"), ("other.taskgroup", "/")],
        ),
        ("the groups", &[]),
        ("the groups, nice -8", &[("high.priority", "-8")]),
        ("the groups, 16 helpers, nice -8", &[("high.priority", "-8"), ("helper.instance", "16")]),
    ];
    let kernels = ["CFS", "EEVDF", "7.3"];
    let mut all = Vec::new();
    for (_, changes) in rows {
        for fair in kernels {
            let kernel = kernel(fair);
            let mut vary = vec![("platform", "laptop4"), ("policy", kernel.as_str())];
            vary.extend(changes);
            all.push(experiment(FILE, SECONDS, &vary));
        }
    }
    let got = measured(&all, 1, &["high.running", "other.running"]);
    let mut out = format!(
        "{:<34}{:>10}{:>7}{:>14}{:>7}{:>11}{:>7}\n",
        "%", "high, CFS", "other", "high, EEVDF", "other", "high, 7.3", "other"
    );
    let percent = |e: &Estimate| e.median / SECONDS / 10.0;
    for ((name, _), of) in rows.iter().zip(got.chunks(kernels.len())) {
        let [h, o, eh, eo] = [&of[0][0], &of[0][1], &of[1][0], &of[1][1]].map(percent);
        let [fh, fo] = [&of[2][0], &of[2][1]].map(percent);
        writeln!(out, "{name:<34}{h:10.1}{o:7.1}{eh:14.1}{eo:7.1}{fh:11.1}{fo:7.1}")
            .expect("a text");
        let lowest = if *name == "no groups" { 0.0..0.5 } else { 48.0..52.0 };
        assert!(lowest.contains(&o) && lowest.contains(&eo), "{name}: {o} {eo}");
    }
    shows("groups", &out);
}

// ---------------------------------------------------------------------- video call

const CRITICAL: [&str; 7] =
    ["browser-ui", "renderer-main", "compositor", "present", "vsync", "video-frame", "viz"];
const CALLS: [(&str, &str, &str); 2] = [
    ("keys, 16 participants", "video-call-16", "key"),
    ("mouse, 49 participants", "video-call-49", "mouse"),
];
const MACHINES: [&str; 2] = ["chromebook2", "chromebook4"];
const PHASES: u32 = 16;
const SECONDS: f64 = 10.0;
const VARIANTS: [&str; 14] = [
    "a task forgotten: nice 0",
    "CFS",
    "CFS, latency_nice -20",
    "CFS, no cgroups",
    "EEVDF",
    "EEVDF, latency_nice -20",
    "EEVDF, no cgroups",
    "EEVDF, no cgroups, latency_nice",
    "RT 1 (CFS)",
    "SCHED_HIGH (CFS)",
    "SCHED_HIGH (EEVDF)",
    "CFS 4.14",
    "CFS 4.14, no cgroups",
    "MuQSS 4.14, nice -10",
];

/// One of [`VARIANTS`] of a call; `first`: the task that begins an event.
fn call(variant: &str, workload: &str, first: &str, machine: &str, forgotten: &str) -> Experiment {
    let own = [(format!("{forgotten}.priority"), "0")];
    let own: Vec<(&str, &str)> = own.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    changed(
        variant,
        workload,
        first,
        machine,
        if variant.starts_with("a task") { &own } else { &[] },
    )
}

/// Returns the experiment of a variant of a call, with keys of its own.
fn changed(
    variant: &str,
    workload: &str,
    first: &str,
    machine: &str,
    own: &[(&str, &str)],
) -> Experiment {
    let mut vary: Vec<(String, String)> =
        vec![("platform".into(), machine.into()), ("policy".into(), kernel(variant))];
    let critical = format!("{},{first},audio", CRITICAL.join(","));
    let mut each = |key: &str, value: &str| {
        vary.push((format!("{critical}.{key}"), value.to_string()));
    };
    let leaves = ["no cgroups", "RT", "SCHED_HIGH", "MuQSS"];
    if leaves.iter().any(|v| variant.contains(v)) {
        each("taskgroup", "/");
    }
    if variant.contains("latency_nice") {
        each("latency_nice", "-20");
    }
    if let Some((_, nice)) = variant.split_once("MuQSS 4.14, nice ") {
        each("priority", nice);
    }
    if variant.starts_with("RT") {
        each("policy", "SCHED_FIFO");
        each("priority", "1");
    } else if variant.starts_with("SCHED_HIGH") {
        each("policy", "SCHED_HIGH");
    }
    vary.extend(own.iter().map(|(k, v)| (k.to_string(), v.to_string())));
    let vary: Vec<(&str, &str)> = vary.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    experiment(workload, SECONDS, &vary)
}

/// Response of the event and missed frames, by call, machine and variant.
fn calls() -> &'static Vec<Vec<Estimate>> {
    static DONE: OnceLock<Vec<Vec<Estimate>>> = OnceLock::new();
    DONE.get_or_init(|| {
        let mut all = Vec::new();
        for (_, workload, first) in CALLS {
            for machine in MACHINES {
                let of = |v: &&str| call(v, workload, first, machine, "renderer-main");
                all.extend(VARIANTS.iter().map(of));
            }
        }
        measured(&all, PHASES, &["event.response_mean", "event.response_p90", "frame.missed"])
    })
}

fn found(mouse: bool, four: bool, variant: &str) -> &'static [Estimate] {
    let v = VARIANTS.iter().position(|v| *v == variant).expect("one of them");
    &calls()[(usize::from(mouse) * 2 + usize::from(four)) * VARIANTS.len() + v]
}

fn ms(mouse: bool, four: bool, variant: &str) -> f64 {
    found(mouse, four, variant)[0].median
}

#[test]
fn the_page_shows_the_call() {
    let mut out = String::new();
    for (mouse, (title, ..)) in CALLS.iter().enumerate() {
        for (four, cpus) in [2, 4].into_iter().enumerate() {
            let title = format!("{title}, {cpus} CPUs");
            writeln!(out, "{title:<38}mean ms         95 %    p90   missed         95 %")
                .expect("a text");
            for variant in VARIANTS {
                let of = found(mouse == 1, four == 1, variant);
                let interval = |e: &Estimate, digits: usize| {
                    e.interval.map_or(String::new(), |(a, b)| format!("{a:.digits$}…{b:.digits$}"))
                };
                writeln!(
                    out,
                    "  {variant:<34}{:9.1}{:>13}{:7.1}{:9.1}{:>13}",
                    of[0].median,
                    interval(&of[0], 1),
                    of[1].median,
                    of[2].median,
                    interval(&of[2], 0)
                )
                .expect("a text");
            }
            out.push('\n');
        }
    }
    shows("call", &out);
}

/// The one number that is fitted.
#[test]
fn the_baseline_is_what_was_published() {
    let baseline = ms(true, false, "CFS");
    assert!((baseline - 121.0).abs() < 4.0, "{baseline} ms");
}

/// Prediction that holds: what leaves the cgroups is faster by the published ratio.
#[test]
fn leaving_the_cgroups_helps_as_published() {
    let ratio = ms(true, false, "CFS, no cgroups") / ms(true, false, "CFS");
    assert!((ratio - 71.0 / 121.0).abs() < 0.1, "{ratio}");
}

#[test]
fn the_stated_order_holds_on_two_cpus() {
    for mouse in [false, true] {
        let of = |variant| ms(mouse, false, variant);
        let (rt, high) = (of("RT 1 (CFS)"), of("SCHED_HIGH (CFS)"));
        assert!(rt < of("CFS, no cgroups") && high < of("CFS, no cgroups"), "{rt} {high}");
        assert!(of("CFS, no cgroups") < of("CFS"));
        assert!((high / rt - 1.0).abs() < 0.05, "on par: {high} {rt}");
    }
}

#[test]
fn the_stated_order_holds_on_four_cpus() {
    for mouse in [false, true] {
        let of = |variant| ms(mouse, true, variant);
        let [rt, high, free, grouped] =
            ["RT 1 (CFS)", "SCHED_HIGH (CFS)", "CFS, no cgroups", "CFS"].map(of);
        let said = format!("{rt} {high} {free} {grouped}");
        assert!(rt < free && rt < high && free < grouped && high < grouped, "{said}");
        // Keys hardly contend for 4 CPUs: all four are within 5 ms, and which of SCHED_HIGH and no cgroups is ahead, by 1 ms or
        // less, changes with the seeds of the start phases; of the mouse they are within 0.1 ms.
        let (beside_free, beside_rt) = if mouse { (1.01, 0.06) } else { (1.03, 0.13) };
        assert!(high < beside_free * free, "{said}");
        assert!((high / rt - 1.0).abs() < beside_rt, "on par: {said}");
    }
}

/// On 4 CPUs it is among the best, on 2 it is not: the page says both.
#[test]
fn muqss_is_among_the_best_on_four_cpus_alone() {
    for mouse in [false, true] {
        let of =
            |four| ["MuQSS 4.14, nice -10", "CFS 4.14, no cgroups"].map(|v| ms(mouse, four, v));
        let ([muqss, cfs], [muqss4, cfs4]) = (of(false), of(true));
        assert!(muqss4 < 0.75 * cfs4 && muqss > 1.2 * cfs, "{muqss} {cfs} {muqss4} {cfs4}");
    }
}

/// At a fixed frequency they are on par, by how little is on the page.
#[test]
fn at_a_fixed_frequency_sched_high_is_on_par_with_rt() {
    let mut all = Vec::new();
    for (_, workload, first) in CALLS {
        for machine in MACHINES {
            for variant in ["CFS, no cgroups", "RT 1 (CFS)", "SCHED_HIGH (CFS)"] {
                let mut e = call(variant, workload, first, machine, "");
                e.settings.insert("governor", Value::Name("performance".into()));
                all.push(e);
            }
        }
    }
    let got = measured(&all, PHASES, &["event.response_mean"]);
    let mut out =
        format!("{:<36}{:>6}{:>12}{:>18}\n", "mean ms", "RT 1", "SCHED_HIGH", "CFS, no cgroups");
    let titles = CALLS.iter().flat_map(|(title, ..)| [2, 4].map(|n| format!("{title}, {n} CPUs")));
    for (title, of) in titles.zip(got.chunks(3)) {
        let [free, rt, high] = [0, 1, 2].map(|i| of[i][0].median);
        assert!((high / rt - 1.0).abs() < 0.05 && high < free, "{title}: {high} {rt} {free}");
        writeln!(out, "{title:<36}{rt:6.1}{high:12.1}{free:18.1}").expect("a text");
    }
    shows("fixed", &out);
}

/// Pairs of other load and work an event that all give the baseline.
#[test]
fn the_page_shows_what_the_baseline_leaves_open() {
    const PAIRS: [(&str, &str, f64); 4] = [
        ("300", "59000", 1.39),
        ("650", "46500", 1.65),
        ("900", "38000", 1.83),
        ("1200", "30500", 2.05),
    ];
    let mut all = Vec::new();
    for (decode, main, _) in PAIRS {
        for variant in ["CFS", "CFS, no cgroups"] {
            let own = [("decode.run", decode), ("renderer-main.run", main)];
            all.push(changed(variant, "video-call-49", "mouse", MACHINES[0], &own));
        }
    }
    let got = measured(&all, PHASES, &["event.response_mean"]);
    let mut out =
        String::from("other load, CPUs   work an event, ms      CFS   no cgroups   ratio\n");
    for ((_, main, load), of) in PAIRS.iter().zip(got.chunks(2)) {
        let work = main.parse::<f64>().expect("a number") / 1000.0 + 12.2;
        let [grouped, free] = [0, 1].map(|i| of[i][0].median);
        assert!((grouped - 121.0).abs() < 6.0, "{main}: {grouped}");
        let ratio = free / grouped;
        writeln!(out, "{load:16.2}{work:20.1}{grouped:9.1}{free:13.1}{ratio:8.2}").expect("a text");
    }
    shows("open", &out);
}

/// As the report has it, with latency_nice: by how little is on the page.
#[test]
fn eevdf_is_slower_in_every_test() {
    for mouse in [false, true] {
        for four in [false, true] {
            let of = |variant| ms(mouse, four, variant);
            assert!(of("EEVDF, latency_nice -20") > of("CFS"));
            assert!(of("EEVDF, no cgroups, latency_nice") > of("CFS, no cgroups"));
        }
    }
}

/// Which task had been forgotten is not told: each of them, as the published change does not come out of any.
#[test]
fn the_page_shows_each_task_that_may_have_been_forgotten() {
    let tasks = ["browser-ui", "renderer-main", "compositor", "present"];
    let mut all = Vec::new();
    for machine in MACHINES {
        all.push(call("CFS", "video-call-16", "key", machine, ""));
        all.extend(tasks.map(|t| call(VARIANTS[0], "video-call-16", "key", machine, t)));
    }
    let got = measured(&all, PHASES, &["event.response_mean"]);
    let mut out =
        String::from("forgotten          2 CPUs: ms      less by    4 CPUs: ms      less by\n");
    for (i, task) in tasks.iter().enumerate() {
        write!(out, "{task:<15}").expect("a text");
        for of in got.chunks(5) {
            let (with, without) = (of[i + 1][0].median, of[0][0].median);
            let less = 100.0 * (1.0 - without / with);
            assert!(less < 50.0, "{task}: it came out after all, the page says no");
            write!(out, "{with:14.1}{less:11.1} %").expect("a text");
        }
        out.push('\n');
    }
    shows("forgotten", &out);
}

/// Why MuQSS is no better there on 2 CPUs: who slept goes first, and most threads of a call are such.
#[test]
fn the_page_shows_what_muqss_hangs_on() {
    const HELPERS: &str = "decode,encode,worker,ui-worker,background,system.priority";
    const MUQSS: &str = "MuQSS 4.14, nice -10";
    type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
    let rows: [Row; 5] = [
        ("as above", MUQSS, &[]),
        ("4 threads decode, not 16", MUQSS, &[("decode.instance", "4"), ("decode.run", "6000")]),
        ("the critical tasks at nice -20", "MuQSS 4.14, nice -20", &[]),
        ("the others at nice 10", MUQSS, &[(HELPERS, "10")]),
        ("rr_interval=2", MUQSS, &[("rr_interval", "2")]),
    ];
    let point = |(_, variant, changes): &Row| {
        changed(variant, "video-call-16", "key", MACHINES[0], changes)
    };
    let all: Vec<Experiment> = rows.iter().map(point).collect();
    let got = measured(&all, PHASES, &["event.response_mean", "frame.missed"]);
    let mut out = format!("{:<34}{:>8}{:>8}\n", "keys, 2 CPUs, MuQSS", "mean ms", "missed");
    for ((name, ..), of) in rows.iter().zip(&got) {
        writeln!(out, "{name:<34}{:8.1}{:8.1}", of[0].median, of[1].median).expect("a text");
    }
    let mean = |row: usize| got[row][0].median;
    assert!(mean(1) < 0.9 * mean(0) && mean(3) < 0.75 * mean(0), "what it is put down to");
    shows("muqss", &out);
}

/// Two important tasks on 2 CPUs: groups hide from the balancing which ones these are.
#[test]
fn the_page_shows_who_waits_while_a_cpu_runs_others() {
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chromebook/important.json");
    let grouped = [("one,two.taskgroup", "/ui"), ("other.taskgroup", "/renderers")];
    let rows: [(&str, &[(&str, &str)]); 6] = [
        ("CFS", &[]),
        ("CFS, a group each", &grouped),
        ("EEVDF", &[]),
        ("EEVDF, a group each", &grouped),
        ("RT 1 (CFS)", &[("one,two.policy", "SCHED_FIFO"), ("one,two.priority", "1")]),
        ("SCHED_HIGH (CFS)", &[("one,two.policy", "SCHED_HIGH")]),
    ];
    let of = |(name, changes): &(&str, &[(&str, &str)])| {
        let kernel = kernel(name);
        let mut vary = vec![("platform", MACHINES[0]), ("policy", kernel.as_str())];
        vary.extend(*changes);
        experiment(FILE, SECONDS, &vary)
    };
    let all: Vec<Experiment> = rows.iter().map(of).collect();
    let got = measured(&all, PHASES, &["job.response_p50", "job.response_p99", "job.missed"]);
    let mut out =
        format!("{:<24}{:>8}{:>8}{:>13}\n", "9 ms in every 23", "p50 ms", "p99", "late of 434");
    for ((name, _), of) in rows.iter().zip(&got) {
        let [p50, p99, missed] = [0, 1, 2].map(|i| of[i].median);
        writeln!(out, "{name:<24}{p50:8.1}{p99:8.1}{missed:13.1}").expect("a text");
    }
    let p99 = |row: usize| got[row][1].median;
    assert!(p99(1) > 1.5 * p99(0) && p99(3) > p99(2) && p99(4) < 10.0, "what the page says");
    shows("waiting", &out);
}
