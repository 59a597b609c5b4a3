//! The table of docs/what-shipped.md: the series, its repost and the modules of Pixel phones beside mainline.

use risetime_analysis::{Level, Options, RunResult};
use risetime_lab::{Request, run};
use risetime_sim::Simulator;
use std::path::Path;

const POLICIES: [&str; 7] =
    ["linux-6.1", "linux-7.2", "rfc-v1", "rfc-v2", "pixel-5.10", "pixel-6.1-fixed", "pixel-6.1"];

/// What `risetime run WORKLOAD --platform pixel6 --policy POLICY` finds.
fn found(workload: &str, policy: &str) -> RunResult {
    let request = Request {
        policies: vec![policy.into()],
        noise: Some("machine"),
        ..Request::new(workload, "pixel6")
    };
    let e = request.experiments().expect("an experiment").remove(0);
    run(&Simulator, &e, Options::default(), None).expect("a run").result
}

fn row(policy: &str) -> String {
    let [ramp, phone, frames] = ["rampup", "phone", "ui-jank-bench"].map(|w| found(w, policy));
    let (task, energy) = (&ramp.tasks[0], |r: &RunResult| r.energy_mj.expect("a model"));
    let burst = task.burst.as_ref().expect("a ramp");
    let reach = task.reach.iter().find(|r| r.what == Level::Util(450)).and_then(|r| r.after_ms);
    let jobs = |r: &RunResult, name: &str| {
        let jobs = r.jobs.iter().find(|j| j.name == name).expect("its jobs");
        let response = jobs.response.expect("some are done");
        (response.p50, response.p99, jobs.missed(), jobs.due)
    };
    let (_, vsync, ..) = jobs(&phone, "vsync");
    let (p50, p99, missed, due) = jobs(&frames, "frame");
    format!(
        "| `{policy}` | {:.1} | {:.1} | {:.1} | {:.0} | {vsync:.2} | {:.0} | {p50:.1}, {p99:.1} | {missed} of {due} | {:.0} |",
        burst.t1_ms - burst.t0_ms,
        burst.debt_ms,
        reach.expect("so far"),
        task.spent.energy_mj.expect("a model"),
        energy(&phone),
        energy(&frames),
    )
}

#[test]
fn the_page_shows_what_the_series_and_the_phones_modules_do_on_a_pixel_6() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/what-shipped.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows: Vec<String> = POLICIES.map(row).to_vec();
    let missing: Vec<&String> = rows.iter().filter(|r| !page.contains(r.as_str())).collect();
    assert!(missing.is_empty(), "the page has other rows than\n{}", rows.join("\n"));
}
