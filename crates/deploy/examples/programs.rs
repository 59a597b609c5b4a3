//! The numbers of the sets that SCIP is asked about, a line of JSON each: `programs | python3 tests/scip/optimum.py`.

#[path = "../tests/scip/cases.rs"]
mod cases;

use risetime_deploy::optimise::Problem;

fn main() {
    for (name, p) in cases::cases() {
        println!("{}", json(&name, &p));
    }
}

fn list<T>(all: impl IntoIterator<Item = T>, each: impl Fn(T) -> String) -> String {
    format!("[{}]", all.into_iter().map(each).collect::<Vec<_>>().join(","))
}

fn json(name: &str, p: &Problem) -> String {
    let numbers = |all: &[u64]| list(all, u64::to_string);
    let graphs = list(&p.graphs, |g| {
        let last = g.nodes.last().copied().unwrap_or(0);
        format!(r#"{{"period_us":{},"deadline_us":{},"last":{last}}}"#, g.period_us, g.deadline_us)
    });
    let nodes = list(&p.nodes, |v| {
        let versions = list(&v.versions, |w| {
            format!(
                r#"{{"device":{},"runtime_us":{},"power_nw":{}}}"#,
                w.device, w.runtime_us, w.power_nw
            )
        });
        format!(
            r#"{{"graph":{},"after":{},"work_us":{},"budget_us":{},"versions":{versions}}}"#,
            v.graph,
            list(&v.after, usize::to_string),
            numbers(&v.work_us),
            numbers(&v.budget_us)
        )
    });
    let domains = list(&p.domains, |d| {
        let opps = list(&d.opps, |o| {
            format!(r#"{{"khz":{},"room_ppm":{},"busy_uw":{}}}"#, o.freq.0, o.room_ppm, o.busy_uw)
        });
        format!(
            r#"{{"cpus":{},"capacity":{},"wake_us":{},"used_nw":{},"opps":{opps}}}"#,
            d.cpus.len(),
            d.capacity,
            d.wake_us,
            d.used_nw
        )
    });
    let devices = list(&p.devices, |d| d.idle_nw.to_string());
    format!(
        r#"{{"name":"{name}","base_nw":{},"graphs":{graphs},"nodes":{nodes},"domains":{domains},"devices":{devices}}}"#,
        p.base_nw
    )
}
