//! Figures over start phases, with simulators in the kernel's place: the same one is equivalent, a wrong one is
//! different, and what was recorded is not run again.

use risetime_analysis::Kind;
use risetime_analysis::verify::{Equivalence, Tally, Verdict};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_lab::{Kept, Request, read_kept};
use risetime_model::{Experiment, Value};
use risetime_sim::Simulator;
use risetime_trace::{Backend, BackendKind, Memory, Outcome, RunError, TraceSink};
use risetime_verify::{Can, spread_all, wide_named};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn experiment(workload: &str, platform: &str) -> Experiment {
    let request = Request { seconds: Some(2.0), ..Request::new(workload, platform) };
    request.experiments().unwrap().remove(0)
}

fn against(reference: &(dyn Backend + Sync), e: &Experiment, n: u32) -> Equivalence {
    spread_all(reference, &[("x".into(), e.clone())], n, |_| ()).unwrap().0.remove(0)
}

/// An experiment of the set.
fn of_set(name: &str) -> Experiment {
    let case = risetime_verify::set(risetime_verify::SET_SEED).into_iter().find(|c| c.name == name);
    case.unwrap().experiment(None).unwrap()
}

#[test]
fn a_simulator_is_equivalent_to_itself() {
    let all = [
        experiment("periodic", "m1"),
        experiment("rampup", "m1"),
        of_set("m1/light"),
        of_set("laptop4/group-weights"),
    ];
    for e in all {
        let found = against(&Simulator, &e, 8);
        let other: Vec<_> =
            found.figures.iter().filter(|f| f.verdict != Verdict::Equivalent).collect();
        assert!(other.is_empty(), "{} on {}: {other:#?}", e.workload.name, e.platform.name);
        assert!(found.figures.len() >= 5 && found.holds(), "{found:#?}");
        assert!(found.figures.iter().any(|f| f.kind == Kind::Energy));
    }
}

/// Of sixty tasks each figure is mostly noise after eight runs: undecided, and hardly ever different.
#[test]
fn noise_is_undecided() {
    let found = against(&Simulator, &experiment("phone", "pixel6"), 8);
    let tally = Tally::of(&found.figures);
    assert!(20 * tally.different <= tally.all(), "{tally:?}");
    assert!(tally.undecided > 0 && tally.equivalent > tally.different, "{tally:?}");
    let energy = found.figures.iter().find(|f| f.kind == Kind::Energy).unwrap();
    assert_eq!(energy.verdict, Verdict::Equivalent, "{energy:?}");
}

/// A kernel that runs another governor than it was told to.
struct Disobedient(&'static str);

impl Backend for Disobedient {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }
    fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let mut own = e.clone();
        own.settings.0.insert("governor".into(), Value::Name(self.0.into()));
        Simulator.run(&own, sink)
    }
}

/// A kernel's runs from three start phases: `spread/RELEASE-NAME-PHASEus.trace.gz`, as `risetime verify --mode spread --draw 10
/// --seed 504 --phases 3 --kernel RELEASE --references DIR` keeps them; of `reclaim.json`, of 1 s, with `governor=performance`.
struct Recorded {
    rev: KernelRev,
    name: &'static str,
}

impl Recorded {
    fn path(&self, phase: Span) -> PathBuf {
        let name = format!("{}-{}-{}us.trace.gz", self.rev, self.name, phase.0 / 1000);
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/spread").join(name)
    }
}

impl Backend for Recorded {
    fn kind(&self) -> BackendKind {
        BackendKind::Vm
    }

    fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let trace = read_kept(&self.path(e.phase)).expect("kept");
        trace.replay(sink);
        let (end, events, notes) = (trace.end(), trace.events().len() as u64, Vec::new());
        Ok(Outcome { end, events, notes, timer_interrupts: None })
    }
}

/// What these tell of the start (when each CPU fell asleep, from where tasks are created) and where a new task goes at its first
/// wakeup decides on which CPUs tasks then stay: without it a third of the figures differs.
#[test]
fn older_kernels_run_from_the_start_that_they_tell() {
    for rev in [KernelRev::V6_1, KernelRev::V6_12] {
        for name in ["wide-504-8", "wide-504-10"] {
            let recorded = Recorded { rev, name };
            let header = read_kept(&recorded.path(Span(0))).expect("kept");
            let header = header.header().expect("it has one");
            let cpus = header.machine.platform.cpus().count();
            assert_eq!(
                (header.image.idle.len(), header.image.balance.len()),
                (cpus, cpus),
                "{rev}, {name}"
            );
            let mut case = wide_named(name, Can::of(rev, false)).expect("drawn");
            case.settings.push_str("+noise=vm");
            let found = against(&recorded, &case.experiment(Some(rev)).expect("valid"), 3);
            let with = |verdict| found.figures.iter().filter(|f| f.verdict == verdict).count();
            let (alike, different) = (with(Verdict::Equivalent), with(Verdict::Different));
            assert!(alike > 40 && different <= 1, "{rev}, {name}: {alike}, {different}");
        }
    }
}

/// Recordings that say nothing of what rebuilds of the sched domains have left, as an agent of before would have made them.
struct Forgetful(Recorded);

impl Backend for Forgetful {
    fn kind(&self) -> BackendKind {
        BackendKind::Vm
    }

    fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let mut trace = Memory::new();
        let outcome = self.0.run(e, &mut trace)?;
        let mut header = trace.header().expect("it has one").clone();
        header.image.idle.iter_mut().for_each(|idle| idle.rq = None);
        sink.header(&header);
        trace.events().iter().for_each(|(at, event)| sink.event(*at, event));
        sink.end(trace.end());
        Ok(outcome)
    }
}

/// Two deadline tasks that want more than they have reserved and reclaim it, at full speed. Boots of 6.1 and 6.12 had taken so much
/// from `extra_bw` that `dl` was given 0.3 of a CPU, not 0.75: of a simulation that begins after one rebuild as much differs.
#[test]
fn who_reclaims_has_what_rebuilds_of_the_domains_have_left() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/spread/reclaim.json");
    for (rev, kept) in [(KernelRev::V6_1, 30), (KernelRev::V6_12, 25)] {
        let policies = vec![format!("linux-{rev}+governor=performance+noise=vm")];
        let own = Request { seconds: Some(1.0), policies, ..Request::new(file, "laptop4") };
        let e = own.experiments().expect("valid").remove(0);
        let recorded = || Recorded { rev, name: "reclaim" };
        let tally = Tally::of(&against(&recorded(), &e, 3).figures);
        assert!(tally.equivalent >= kept && tally.different == 0, "{rev}: {tally:?}");
        if rev == KernelRev::V6_1 {
            let tally = Tally::of(&against(&Forgetful(recorded()), &e, 3).figures);
            assert!(tally.different >= 10, "{rev}: {tally:?}");
        }
    }
}

#[test]
fn another_governor_is_different() {
    let e = experiment("periodic", "m1");
    for (governor, kinds) in [
        ("performance", [Kind::Frequency, Kind::Energy, Kind::ActivationP50]),
        ("powersave", [Kind::Frequency, Kind::Energy, Kind::ActivationP95]),
    ] {
        let found = against(&Disobedient(governor), &e, 8);
        let is =
            |kind| found.figures.iter().any(|f| f.kind == kind && f.verdict == Verdict::Different);
        assert!(kinds.into_iter().any(is), "{governor}: {found:#?}");
        assert!(!found.holds());
    }
}

/// The simulator as a machine whose runs are dear: it counts them, and fails where the test wants it to.
struct Dear {
    runs: AtomicUsize,
    fails_from: usize,
    identity: &'static str,
}

impl Backend for Dear {
    fn kind(&self) -> BackendKind {
        BackendKind::Vm
    }
    fn identity(&self, e: &Experiment) -> Result<Option<String>, RunError> {
        Ok(Some(format!("{}{:x}", self.identity, e.phase.0)))
    }
    fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        if self.runs.fetch_add(1, Ordering::SeqCst) >= self.fails_from {
            return Err(RunError::Failed("the power went".into()));
        }
        let mut done = Simulator.run(e, sink)?;
        done.notes.push("as it\nwas".into());
        Ok(done)
    }
}

fn dear(identity: &'static str, fails_from: usize) -> Dear {
    Dear { runs: AtomicUsize::new(0), fails_from, identity }
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let dir = std::env::temp_dir().join(format!("risetime-kept-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Directory(dir)
    }
    fn files(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> =
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path()).collect();
        all.sort();
        all
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_interrupted_run_goes_on_and_a_second_one_boots_nothing() {
    let directory = Directory::new("resumed");
    let e = experiment("periodic", "m1");
    let boots = |backend: &Dear| {
        let kept = Kept::new(backend, directory.0.clone()).unwrap();
        let found = spread_all(&kept, &[("x".into(), e.clone())], 4, |_| ());
        (found, backend.runs.load(Ordering::SeqCst))
    };
    let (broken, _) = boots(&dear("a", 2));
    assert_eq!(broken.unwrap_err().to_string(), "x: the power went");
    assert_eq!(directory.files().len(), 2, "two whole ones, nothing half written");
    let (first, n) = boots(&dear("a", 99));
    assert_eq!(n, 2, "the others were there");
    let (second, n) = boots(&dear("a", 0));
    assert_eq!(n, 0, "a second run boots nothing");
    assert_eq!(first.unwrap(), second.unwrap());
    // Another kernel, QEMU or agent.
    let (other, n) = boots(&dear("b", 99));
    assert!(other.is_ok() && n == 4);
    assert_eq!(directory.files().len(), 8);

    // One that is cut off, and one that is another's, are recorded anew.
    let files = directory.files();
    let bytes = std::fs::read(&files[0]).unwrap();
    std::fs::write(&files[0], &bytes[..bytes.len() / 2]).unwrap();
    let (again, n) = boots(&dear("a", 99));
    let (again_b, m) = boots(&dear("b", 99));
    assert!(again.is_ok() && again_b.is_ok() && n + m == 1, "{n} {m}");
    assert_eq!(std::fs::read(&files[0]).unwrap(), bytes, "the same bytes");
    std::fs::copy(&files[0], &files[1]).unwrap();
    let n = boots(&dear("a", 99)).1 + boots(&dear("b", 99)).1;
    assert_eq!(n, 1);
}

#[test]
fn what_is_kept_reads_back_with_its_notes() {
    let directory = Directory::new("notes");
    // At another HZ than its own, too (the platform's name says it).
    let mut e = experiment("periodic", "m1");
    e.platform = Arc::new(e.platform.as_ref().clone().with_hz(300));
    let run = |backend: &Dear| {
        let kept = Kept::new(backend, directory.0.clone()).unwrap();
        let mut trace = risetime_trace::Memory::new();
        let done = kept.run(&e, &mut trace).unwrap();
        (done.end, done.events, trace)
    };
    let (first, again) = (run(&dear("a", 99)), run(&dear("a", 0)));
    assert_eq!((first.0, first.1), (again.0, again.1));
    assert_eq!(first.2.events(), again.2.events());
    let kept = Kept::new(&Simulator, directory.0.clone()).unwrap();
    kept.run(&e, &mut ()).unwrap();
    assert_eq!(directory.files().len(), 1, "what costs nothing is not kept");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let backend = dear("a", 0);
    let error = Kept::new(&backend, "/proc/there/is/none".into()).err().unwrap().to_string();
    assert!(error.starts_with("/proc/there/is/none: "), "{error}");
}
