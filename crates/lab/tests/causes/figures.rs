//! In which states work was lost, simulated and on real kernels: what is asked, and what was kept of it.

use risetime_analysis::Options;
use risetime_kernel::units::Span;
use risetime_lab::{Request, phase_spans};
use risetime_model::settings::Value;
use risetime_model::settings::keys::{HZ, RATE_LIMIT_US};
use risetime_trace::{Backend, RunError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Workload, platform, settings.
type Asked = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Two seconds each.
pub(crate) const EXPERIMENTS: &[Asked] = &[
    ("rampup", "m1", &[]),
    ("rampup", "m1", &[("rate_limit_us", "10000")]),
    ("rampup", "m1", &[("uclamp_max", "300")]),
    ("rampup", "m1", &[("uclamp_min", "700")]),
    ("rampup", "pixel6", &[]),
    ("rampup", "chromebook4", &[("governor", "powersave")]),
    ("periodic", "chromebook4", &[]),
    ("phone", "pixel6", &[]),
];

/// An experiment, by its index in [`EXPERIMENTS`], and a release.
pub(crate) type Of = (usize, String);
/// The ms of each state, of all tasks together; and `hz` and `rate_limit_us`, as the kernel had them.
pub(crate) type Lost = BTreeMap<String, f64>;

/// What is asked: `kernel`: of the kernel's generation, else with what the kernel had.
pub(crate) fn request(experiment: usize, policy: &str, kernel: Option<&Lost>) -> Request {
    let (workload, platform, set) = EXPERIMENTS[experiment];
    let mut set: Vec<(String, Value)> = set
        .iter()
        .map(|(key, value)| {
            ((*key).into(), value.parse().map_or_else(|_| Value::Name((*value).into()), Value::Int))
        })
        .collect();
    let had = |key: &str| kernel.and_then(|lost| lost.get(key)).map(|n| *n as i64);
    if let Some(us) =
        had("rate_limit_us").filter(|_| set.iter().all(|(key, _)| key != "rate_limit_us"))
    {
        set.push(("rate_limit_us".into(), Value::Int(us)));
    }
    Request {
        policies: vec![policy.into()],
        set,
        hz: had("hz").map(|hz| hz as u32),
        seconds: Some(2.0),
        noise: Some("vm"),
        ..Request::new(workload, platform)
    }
}

/// Start phases from which a kernel is asked: of a phone's sixty tasks one run says little.
#[allow(dead_code, reason = "what the test does not record with")]
pub(crate) fn phases(experiment: usize) -> Vec<Span> {
    let count = if EXPERIMENTS[experiment].0 == "phone" { 8 } else { 1 };
    phase_spans(Span::from_ms(4), count).collect()
}

/// The mean of several runs.
pub(crate) fn mean(runs: &[Lost]) -> Lost {
    let mut all = Lost::new();
    for (name, ms) in runs.iter().flatten() {
        *all.entry(name.clone()).or_default() += ms / runs.len() as f64;
    }
    all
}

/// What `backend` gives.
///
/// Errors: it has not what is asked for (6.12 as Debian builds it: clamps).
pub(crate) fn run(backend: &dyn Backend, request: &Request) -> Result<Lost, RunError> {
    let all = request.experiments_under(None).unwrap_or_else(|e| panic!("{e}"));
    let result = risetime_lab::run(backend, &all[0], Options::default(), None)?.result;
    let mut lost = Lost::new();
    for part in result.tasks.iter().flat_map(|t| &t.lost) {
        *lost.entry(part.state.into()).or_default() += part.ms;
    }
    for key in [HZ, RATE_LIMIT_US] {
        lost.extend(result.settings.get(&key).map(|n| (key.name().into(), n as f64)));
    }
    Ok(lost)
}

/// The file of the recorded figures.
pub(crate) fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/causes/real.csv")
}

/// What real kernels gave.
pub(crate) fn recorded() -> BTreeMap<Of, Lost> {
    let mut all: BTreeMap<Of, Lost> = BTreeMap::new();
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [experiment, release, what, value] = cells[..] else { panic!("real.csv: {line}") };
        let of = (experiment.parse().expect(line), release.to_string());
        all.entry(of).or_default().insert(what.into(), value.parse().expect(line));
    }
    all
}

/// Writes the recorded figures as a file.
pub(crate) fn to_csv(all: &BTreeMap<Of, Lost>) -> String {
    let mut text = String::from("experiment,release,what,value\n");
    for ((experiment, release), lost) in all {
        for (what, value) in lost {
            text += &format!("{experiment},{release},{what},{value:.3}\n");
        }
    }
    text
}
