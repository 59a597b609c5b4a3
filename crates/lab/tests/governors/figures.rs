//! The 16 pairs of run and period of S. Muckle's mail of 2016 under the governors that stock kernels still have, on the
//! simulator and on real kernels: what is compared.
//!
//! ```text
//! experiment  periodic-2in10 on rpi4 with `periodic.run` and `periodic.timer.period` of a pair: one task, CPU 0
//! figures     KINDS of `verify --mode spread`, of the time from SKIP after the first release on
//! real.csv    what kernels gave: a row for each release, governor, pair and figure, a column a start phase
//! simulated   from the same start phases, noise profile `vm`; not from the start state of the kernel's run, of
//!             which the CSV knows nothing: hence SKIP
//! ```

use risetime_analysis::{Kind, Reading, Readings};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_lab::{Request, phase_spans, record};
use risetime_model::Experiment;
use risetime_model::settings::Value;
use risetime_model::workload::Change;
use risetime_trace::{Backend, Event, RunError};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Full-speed work and period, ms.
pub(crate) const PAIRS: [(u32, u32); 16] = [
    (1, 100),
    (10, 1000),
    (1, 10),
    (10, 100),
    (100, 1000),
    (6, 33),
    (66, 333),
    (4, 10),
    (40, 100),
    (400, 1000),
    (5, 9),
    (50, 90),
    (500, 900),
    (9, 12),
    (90, 120),
    (900, 1200),
];
pub(crate) const GOVERNORS: [&str; 3] = ["ondemand", "conservative", "schedutil"];
const PHASES: u32 = 3;
const KINDS: [Kind; 7] = [
    Kind::Running,
    Kind::Frequency,
    Kind::Energy,
    Kind::Migrations,
    Kind::JobsDone,
    Kind::ResponseP50,
    Kind::ResponseP95,
];
/// What a boot has left behind is gone by then.
const SKIP: Span = Span::from_ms(500);

/// Release, governor and pair.
pub(crate) type Case = (String, String, (u32, u32));
/// A start phase each.
pub(crate) type Phases = Vec<Vec<Reading>>;

/// Several jobs of each pair.
fn seconds((_, period): (u32, u32)) -> u32 {
    if period > 300 { 4 } else { 2 }
}

/// `policy` is a generation's, `linux-7.3`.
pub(crate) fn experiment(policy: &str, governor: &str, pair: (u32, u32)) -> Experiment {
    let change = |key: &str, ms: u32| Change {
        key: format!("periodic.{key}"),
        value: (1000 * ms).to_string(),
    };
    let request = Request {
        changes: vec![change("run", pair.0), change("timer.period", pair.1)],
        policies: vec![policy.into()],
        set: vec![("governor".into(), Value::Name(governor.into()))],
        seconds: Some(seconds(pair).into()),
        noise: Some("vm"),
        ..Request::new("periodic-2in10", "rpi4")
    };
    let all = request.experiments().unwrap_or_else(|e| panic!("{governor} {pair:?}: {e}"));
    let mut one = all.into_iter().next().expect("one policy");
    std::sync::Arc::make_mut(&mut one.workload).name = format!("pair-{}-{}", pair.0, pair.1);
    one
}

/// The policy of a release: `linux-7.2` of "7.2.13+deb14-arm64".
pub(crate) fn policy_of(release: &str) -> String {
    let rev = KernelRev::of_release(release).unwrap_or_else(|| panic!("{release}: no release"));
    format!("linux-{rev}")
}

/// The figures of `experiment` from each start phase.
pub(crate) fn run(backend: &dyn Backend, experiment: &Experiment) -> Result<Phases, RunError> {
    let one = |phase| {
        let trace = record(backend, &experiment.later(phase))?;
        let first = trace.events().iter().find(|(_, e)| matches!(e, Event::Job { .. }));
        let from = first.map_or(trace.end(), |(at, _)| *at) + SKIP;
        // The last start phase, and what a guest needs before the start, are less than 300 ms.
        let length = Span::from_ms(1000 * experiment.duration.0 / 1_000_000_000 - 800);
        let mut readings = Readings::new(from, length);
        trace.replay(&mut readings);
        let all = readings.finish().into_iter();
        Ok(all.filter(|r| KINDS.contains(&r.kind)).collect())
    };
    phase_spans(experiment.platform.tick(), PHASES).map(one).collect()
}

/// The file of the recorded figures.
fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/governors/real.csv")
}

/// What real kernels gave.
pub(crate) fn recorded() -> BTreeMap<Case, Phases> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let mut all = BTreeMap::<Case, Phases>::new();
    for line in text.lines().skip(1) {
        let number = |field: &str| field.parse().unwrap_or_else(|_| panic!("real.csv: {line}"));
        let fields: Vec<&str> = line.split(',').collect();
        let [release, governor, run, period, kind, of, floor, ref values @ ..] = fields[..] else {
            panic!("real.csv: {line}");
        };
        let kind = KINDS.into_iter().find(|k| k.as_str() == kind).expect("a figure's name");
        let pair = (number(run) as u32, number(period) as u32);
        let phases = all.entry((release.into(), governor.into(), pair)).or_default();
        phases.resize_with(values.len(), Vec::new);
        for (phase, value) in phases.iter_mut().zip(values) {
            let (value, floor) = (number(value), number(floor));
            phase.push(Reading { kind, of: of.into(), value, floor });
        }
    }
    all
}

/// As `real.csv`.
pub(crate) fn write(recorded: &BTreeMap<Case, Phases>) {
    let mut text =
        "release,governor,run_ms,period_ms,figure,of,floor,each start phase\n".to_string();
    for ((release, governor, (run, period)), phases) in recorded {
        for r in &phases[0] {
            let (kind, of, floor) = (r.kind.as_str(), &r.of, r.floor);
            let _ = write!(text, "{release},{governor},{run},{period},{kind},{of},{floor:.4}");
            for phase in phases {
                let same = phase.iter().find(|other| (other.kind, &other.of) == (r.kind, of));
                let _ = write!(text, ",{:.3}", same.map_or(f64::NAN, |r| r.value));
            }
            text.push('\n');
        }
    }
    std::fs::write(file(), text).expect("real.csv");
}
