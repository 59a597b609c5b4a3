//! Idle states that take time, as a real kernel had them: its CPUs spun for the way out (`crates/guest/src/idle.rs`).
//!
//! `idle_times/RELEASE-PLATFORM-WORKLOAD-PHASEus.trace.gz` is what `risetime verify WORKLOAD --platform PLATFORM --mode spread
//! --phases 3 --seconds 1 --kernel RELEASE --references DIR` keeps.

use risetime_analysis::Kind;
use risetime_analysis::verify::{Equivalence, Verdict};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_lab::{Request, read_kept};
use risetime_model::Experiment;
use risetime_model::settings::keys::IDLE_TIMES;
use risetime_trace::{Backend, BackendKind, Memory, Outcome, RunError, TraceSink};
use risetime_verify::spread_all;
use std::path::{Path, PathBuf};

const PHASES: u32 = 3;

const BOTH: &[KernelRev] = &[KernelRev::V6_12, KernelRev::V7_3];
const NEWEST: &[KernelRev] = &[KernelRev::V7_3];

/// Recordings: platform, workload, kernels, and figures that differ for another reason, with it.
const HELD: [(&str, &str, &[KernelRev], &[Kind]); 5] = [
    ("hikey960", "idle-exit", BOTH, &[]),
    ("odroid-xu4", "idle-exit", BOTH, &[]),
    ("hikey620", "periodic", NEWEST, &[]),
    ("m1", "periodic-2in10", NEWEST, &[]),
    // Falling asleep and waking take the guest 15 µs a job, of which the job itself is 3, at 6 W.
    ("laptop4", "cyclic", BOTH, &[Kind::Energy]),
];

/// Figures of some thirty jobs that are one or two of them: a CPU on its way out that has to wait for another one's turn of the
/// host's thread makes them.
const TAILS: [Kind; 5] =
    [Kind::ActivationP95, Kind::WakeupP99, Kind::ResponseP95, Kind::ResponseP99, Kind::LatenessP99];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/idle_times")
}

/// A kernel's runs; `told`: they say that idle states took time.
struct Recorded {
    rev: KernelRev,
    platform: &'static str,
    workload: &'static str,
    told: bool,
}

impl Recorded {
    fn experiment(&self) -> Experiment {
        let own = directory().join(format!("{}.json", self.workload));
        let file = if own.exists() { own.display().to_string() } else { self.workload.into() };
        let policies = vec![format!("linux-{}+noise=vm", self.rev)];
        let request = Request { seconds: Some(1.0), policies, ..Request::new(file, self.platform) };
        request.experiments().expect("valid").remove(0)
    }

    fn judge(&self) -> Equivalence {
        let e = (String::new(), self.experiment());
        spread_all(self, &[e], PHASES, |_| ()).expect("it is judged").0.remove(0)
    }

    fn trace(&self, phase: Span) -> Memory {
        let Recorded { rev, platform, workload, .. } = self;
        let name = format!("{rev}-{platform}-{workload}-{}us.trace.gz", phase.0 / 1000);
        read_kept(&directory().join(name)).expect("kept")
    }
}

impl Backend for Recorded {
    fn kind(&self) -> BackendKind {
        BackendKind::Vm
    }

    fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let trace = self.trace(e.phase);
        let mut header = trace.header().expect("it has one").clone();
        assert_eq!(header.machine.settings.get(&IDLE_TIMES), Some(1), "they took time");
        if !self.told {
            header.machine.settings.unset(&IDLE_TIMES);
        }
        sink.header(&header);
        trace.events().iter().for_each(|(at, event)| sink.event(*at, event));
        sink.end(trace.end());
        let (end, events) = (trace.end(), trace.events().len() as u64);
        Ok(Outcome { end, events, notes: Vec::new(), timer_interrupts: None })
    }
}

fn recorded() -> impl Iterator<Item = (Recorded, &'static [Kind])> {
    HELD.into_iter().flat_map(|(platform, workload, revs, known)| {
        let of = move |rev: &KernelRev| Recorded { rev: *rev, platform, workload, told: true };
        revs.iter().map(move |rev| (of(rev), known))
    })
}

/// No figure but of single jobs differs, of wakeups, responses, placement, frequencies and energy, under either kernel.
#[test]
fn wakeups_wait_for_the_way_out_of_an_idle_state_as_on_a_real_kernel() {
    let mut equivalent = 0;
    for (recorded, known) in recorded() {
        let Recorded { rev, platform, workload, .. } = &recorded;
        let found = recorded.judge();
        let differ = found.figures.iter().filter(|f| f.verdict == Verdict::Different);
        let untold = |kind: &Kind| !known.contains(kind) && !TAILS.contains(kind);
        let unknown: Vec<_> = differ.filter(|f| untold(&f.kind)).collect();
        assert!(unknown.is_empty(), "{rev}, {workload} on {platform}: {unknown:#?}");
        equivalent += found.figures.iter().filter(|f| f.verdict == Verdict::Equivalent).count();
    }
    assert!(equivalent > 100, "{equivalent}");
}

/// A simulator whose idle states take no time answers 1.6 and 0.9 ms too early, and is told apart.
#[test]
fn a_simulator_without_exit_times_is_told_apart() {
    let timers = |r: &Recorded| ["idle-exit", "cyclic"].contains(&r.workload);
    for (recorded, _) in recorded().filter(|(r, _)| timers(r)) {
        let Recorded { rev, platform, workload, .. } = recorded;
        let found = Recorded { told: false, ..recorded }.judge();
        let response = found.figures.iter().find(|f| f.kind == Kind::ResponseP50);
        let verdict = response.map(|f| f.verdict);
        assert_eq!(verdict, Some(Verdict::Different), "{rev}, {workload} on {platform}");
    }
}
