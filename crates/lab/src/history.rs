//! One experiment under every release there is, real and simulated.
//!
//! ```text
//! release ── its kernel ──> start phases ──> figures          the kernel's HZ, settings, driver
//!                                └─────────────────────────> the simulator, as a machine of that kind
//! no kernel at all: the simulator alone, on the platform as it is
//! ```
//!
//! What is simulated beside a kernel is the virtual machine, not the platform: its HZ, frequencies changed
//! by a kthread and at once, no cost of leaving an idle state (see [`beside`](crate::beside)).

use crate::in_vm::as_in_vm;
use crate::parallel::parallel;
use crate::phases::run_phases;
use crate::{Request, run_again};
use risetime_analysis::history::{Bisected, Build, Figure, History, Release, Side, Taken, taken};
use risetime_analysis::metric::Metric;
use risetime_analysis::{Options, RunResult};
use risetime_kernel::KernelRev;
use risetime_model::settings::keys::{HZ, IDLE_TIMES};
use risetime_model::{Experiment, InputError};
use risetime_sim::{Replay, Simulator};
use risetime_trace::{Backend, RunError};
use std::sync::Mutex;

/// The generations that a history wants: long-term ones, and the newest.
pub const WANTED: [KernelRev; 6] = [
    KernelRev::V6_1,
    KernelRev::V6_12,
    KernelRev::new(6, 18),
    KernelRev::new(7, 0),
    KernelRev::V7_2,
    KernelRev::V7_3,
];

/// The generations that are simulated where no kernel is.
const SIMULATED: [KernelRev; 9] = [
    KernelRev::V6_1,
    KernelRev::V6_6,
    KernelRev::V6_8,
    KernelRev::new(6, 11),
    KernelRev::V6_12,
    KernelRev::new(6, 18),
    KernelRev::new(7, 0),
    KernelRev::V7_2,
    KernelRev::V7_3,
];

/// A release to run under.
pub struct Kernel<'b> {
    /// Name of the kernel.
    pub name: String,
    /// Generation of the kernel.
    pub rev: KernelRev,
    /// Build options of the kernel.
    pub build: Build,
    /// The booted kernel; `None`: only simulated.
    pub backend: Option<&'b (dyn Backend + Sync)>,
}

/// Releases for which there is no kernel, to be simulated only.
pub fn simulated_only() -> Vec<Kernel<'static>> {
    let kernel = |rev: KernelRev| Kernel {
        name: format!("linux-{rev}"),
        rev,
        build: Build::default(),
        backend: None,
    };
    SIMULATED.map(kernel).into()
}

/// The task whose times a history tells, unless one is named: the first that is created.
///
/// Errors: the request's; no task of that name.
pub fn task_of(request: &Request, named: Option<&str>) -> Result<String, InputError> {
    let e = experiment(request, KernelRev::NEWEST)?;
    let tasks = &e.workload.tasks;
    let Some(named) = named else {
        return Ok(tasks[e.workload.first_created()].comm.clone());
    };
    if tasks.iter().any(|t| t.comm == named) {
        return Ok(named.into());
    }
    let mut known: Vec<&str> = tasks.iter().map(|t| t.comm.as_str()).collect();
    known.dedup();
    let what = format!("{} has no task `{named}`", request.workload);
    Err(InputError::new("--task", what).hint(format!("it has {}", known.join(", "))))
}

/// The experiment under the kernel of generation `rev`.
fn experiment(request: &Request, rev: KernelRev) -> Result<Experiment, InputError> {
    let mut all = request.experiments_under(Some(rev))?;
    all.pop().ok_or_else(|| InputError::new(&request.workload, "there is nothing to run"))
}

/// The experiments that a history of `request` runs, one a kernel of `kernels`.
///
/// Errors: the request's.
pub fn history_experiments(
    request: &Request,
    kernels: &[Kernel<'_>],
) -> Result<Vec<Experiment>, InputError> {
    kernels.iter().map(|kernel| experiment(request, kernel.rev)).collect()
}

/// The questions to each release.
#[derive(Clone, Debug)]
pub struct Told {
    /// Task whose times are figures.
    pub task: String,
    /// The figures; empty: those of [`risetime_analysis::history::figures`].
    pub metrics: Vec<Metric>,
}

/// Runs `request` from `phases` start phases under each of `kernels`, oldest first. `progress` hears how many kernels are done.
///
/// Errors: the backends'; a metric that a run does not have.
pub fn history(
    request: &Request,
    kernels: &[Kernel<'_>],
    told: &Told,
    phases: u32,
    progress: impl FnMut(usize),
) -> Result<History, RunError> {
    let e = experiment(request, KernelRev::NEWEST)?;
    told.metrics.iter().try_for_each(|metric| metric.check(&e.workload))?;
    let task = told.task.as_str();
    let notes = Mutex::new(Vec::new());
    let done = parallel(kernels.len(), progress, |i| -> Result<_, RunError> {
        let k = &kernels[i];
        let (real, simulated, said) = both(request, k, phases)?;
        if let Ok(mut notes) = notes.lock() {
            notes.extend(said.into_iter().map(|note| (i, format!("{}: {note}", k.name))));
        }
        let hz = real.as_ref().and_then(|runs| runs.first()?.settings.get(&HZ));
        let build =
            Build { hz: hz.and_then(|hz| hz.try_into().ok()).or(k.build.hz), ..k.build.clone() };
        let of = |runs: &[RunResult]| taken(runs, task, &told.metrics);
        let (figures, simulated) = of(&simulated)?;
        let real = real.map(|runs| of(&runs)).transpose()?.map(|(_, real)| real);
        Ok((figures, Release { name: k.name.clone(), rev: k.rev, build, real, simulated }))
    })?;
    let figures: Vec<Figure> = done.first().map(|(figures, _)| figures.clone()).unwrap_or_default();
    let real = |rev: &KernelRev| kernels.iter().any(|k| k.rev == *rev && k.backend.is_some());
    let mut notes = notes.into_inner().unwrap_or_default();
    notes.sort();
    notes.dedup();
    Ok(History {
        workload: e.workload.name.clone(),
        platform: e.platform.name.clone(),
        task: task.into(),
        phases,
        figures,
        releases: done.into_iter().map(|(_, release)| release).collect(),
        missing: WANTED.into_iter().filter(|rev| !real(rev)).collect(),
        notes: notes.into_iter().map(|(_, note)| note).collect(),
    })
}

/// Runs both sides, and returns what was noted of the kernel's runs.
#[expect(clippy::type_complexity, reason = "two sides and what is said of them")]
fn both(
    request: &Request,
    k: &Kernel<'_>,
    phases: u32,
) -> Result<(Option<Vec<RunResult>>, Vec<RunResult>, Vec<String>), RunError> {
    let e = experiment(request, k.rev)?;
    let options = Options::default();
    let Some(backend) = k.backend else {
        let runs = run_phases(&Simulator, &e, phases, &options, |_| ())?.runs;
        return Ok((None, runs, Vec::new()));
    };
    let real = run_phases(backend, &e, phases, &options, |_| ())?.runs;
    let first = real.first().ok_or_else(|| RunError::Failed("no start phase was run".into()))?;
    let free_idle_exit = first.settings.get(&IDLE_TIMES) != Some(1);
    let simulator = Replay { free_idle_exit, ..Replay::default() };
    let own = as_in_vm(&e, &first.kernel_release, &first.settings);
    let simulated = run_phases(&simulator, &own, phases, &options, |_| ())?.runs;
    let notes = first.notes.clone();
    Ok((Some(real), simulated, notes))
}

/// Asks each of `kernels`, oldest first, for `figure`, by name, and finds its largest sure step; `step`: only that to the release of this
/// number. `side` says whose figure. `heard` hears each that was asked.
///
/// Errors: no such figure; less than two kernels; the backends'.
pub fn history_bisect(
    request: &Request,
    kernels: &[Kernel<'_>],
    (task, figure): (&str, &str),
    (side, step): (Side, Option<usize>),
    phases: u32,
    heard: &mut dyn FnMut(&str, &Taken),
) -> Result<Bisected, RunError> {
    if kernels.len() < 2 {
        let what = format!("found {} release, wanted at least two to look between", kernels.len());
        return Err(InputError::new("--bisect", what).into());
    }
    // A moment of the experiment knows its figures.
    let e = experiment(request, KernelRev::NEWEST)?;
    let one = run_again(&Simulator, &e, 1, &Options::default(), |_| ())?.runs;
    let known = taken(&one, task, &[])?.0;
    let mut metrics = Vec::new();
    if !known.iter().any(|f| f.name == figure) {
        let metric = Metric::of_task(figure, Some(task));
        let known: Vec<&str> = known.iter().map(|f| f.name.as_str()).collect();
        metric.check(&e.workload).map_err(|e| {
            let hint = format!("there are {}, and those of docs/jobs.md", known.join(", "));
            InputError::new("--bisect", e.what).hint(hint)
        })?;
        metrics.push(metric);
    }
    let mut all = Vec::new();
    for (i, k) in kernels.iter().enumerate() {
        if step.is_some_and(|step| i != step && i + 1 != step) {
            continue;
        }
        let runs = match (side, k.backend) {
            (Side::Real, Some(backend)) => {
                let e = experiment(request, k.rev)?;
                run_phases(backend, &e, phases, &Options::default(), |_| ())?.runs
            }
            _ => {
                let build = Build::default();
                let simulated = Kernel { backend: None, name: String::new(), build, rev: k.rev };
                both(request, &simulated, phases)?.1
            }
        };
        let (figures, mut found) = taken(&runs, task, &metrics)?;
        let at = figures.iter().position(|f| metrics.len() == 1 || f.name == figure);
        let found = at.map_or_else(Taken::default, |at| found.swap_remove(at));
        heard(&k.name, &found);
        all.push((i, found));
    }
    let found = Bisected::of(all);
    Ok(Bisected { first: step.or(found.first), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::Settings;
    use risetime_sim::settings::SCHED_ENERGY_AWARE;
    use risetime_trace::{BackendKind, Header, Outcome, TraceSink};

    /// A kernel that is the simulator, and says that it is one of a virtual machine: with HZ=250 and without
    /// an energy model.
    struct Kernel250(KernelRev);

    impl Backend for Kernel250 {
        fn kind(&self) -> BackendKind {
            BackendKind::Vm
        }
        fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
            assert_eq!(e.policy.kernel, self.0, "each kernel runs its own generation");
            let mut says = e.settings.clone();
            says.unset(&SCHED_ENERGY_AWARE);
            says.set(&HZ, 250);
            let release = format!("{}.9-test", self.0);
            let own = as_in_vm(e, &release, &says);
            let simulator = Replay { free_idle_exit: true, ..Replay::default() };
            simulator.run(&own, &mut Renamed(sink, release, says))
        }
    }

    struct Renamed<'s>(&'s mut dyn TraceSink, String, Settings);

    impl TraceSink for Renamed<'_> {
        fn header(&mut self, header: &Header) {
            let mut header = header.clone();
            (header.run.backend, header.run.kernel_release) = (BackendKind::Vm, self.1.clone());
            header.machine.settings = self.2.clone();
            self.0.header(&header);
        }
        fn event(&mut self, at: risetime_kernel::units::Instant, event: &risetime_trace::Event) {
            self.0.event(at, event);
        }
        fn end(&mut self, at: risetime_kernel::units::Instant) {
            self.0.end(at);
        }
    }

    fn request() -> Request {
        Request { seconds: Some(1.4), ..Request::new("rampup", "m1") }
    }

    fn told() -> Told {
        Told { task: "rampup".into(), metrics: Vec::new() }
    }

    #[test]
    fn the_simulated_side_is_a_machine_of_the_kernels_kind() {
        let (old, new) = (Kernel250(KernelRev::V6_1), Kernel250(KernelRev::V7_3));
        let kernel = |of: &'static str, rev, backend| Kernel {
            name: of.into(),
            rev,
            build: Build { uclamp: Some(false), ..Build::default() },
            backend: Some(backend),
        };
        let kernels: [Kernel<'_>; 2] =
            [kernel("6.1", KernelRev::V6_1, &old), kernel("7.3", KernelRev::V7_3, &new)];
        let found = history(&request(), &kernels, &told(), 3, |_| ()).unwrap();
        assert_eq!(found.releases.len(), 2);
        for (i, r) in found.releases.iter().enumerate() {
            assert_eq!(r.real.as_ref(), Some(&r.simulated), "the kernel is the simulator");
            assert_eq!((r.build.hz, r.build.uclamp), (Some(250), Some(false)));
            assert!(!(0..found.figures.len()).any(|f| found.disagrees(i, f)));
        }
        let names: Vec<&str> = found.figures.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "energy_mj",
                "full_speed_ms",
                "lost_ms",
                "p50_ms",
                "p90_ms",
                "wait_ms",
                "moves_per_s",
                "busy_ms.policy0",
                "busy_ms.policy4",
                "mean_mhz.policy0",
                "mean_mhz.policy4"
            ]
        );
        assert_eq!(
            found.missing,
            [KernelRev::V6_12, KernelRev::new(6, 18), KernelRev::new(7, 0), KernelRev::V7_2]
        );
        let lost = |r: usize| found.releases[r].simulated[2].spread.median.unwrap();
        assert!((lost(0) - lost(1)).abs() > 1.0, "the rate limit of 6.1 is not that of 7.3");
    }

    #[test]
    fn without_kernels_every_generation_is_simulated() {
        let found = history(&request(), &simulated_only(), &told(), 2, |_| ()).unwrap();
        assert_eq!(found.releases.len(), SIMULATED.len());
        // Each is a policy for every other command.
        for r in &found.releases {
            assert_eq!(risetime_model::Policy::load(&r.name).expect("built in").kernel, r.rev);
        }
        assert_eq!(found.missing, WANTED);
        assert!(!found.has_real());
        let ask = |figure: &str, step| {
            let mut heard = Vec::new();
            let asked = ("rampup", figure);
            let found = history_bisect(
                &request(),
                &simulated_only(),
                asked,
                (Side::Simulated, step),
                9,
                &mut |k, _| heard.push(k.to_string()),
            );
            found.map(|b| (b.first.map(|i| SIMULATED[i]), heard.len()))
        };
        // The default rate limit of 10 ms became shorter in 6.9.
        let (first, asked) = ask("lost_ms", None).unwrap();
        assert_eq!((first, asked), (Some(KernelRev::new(6, 11)), SIMULATED.len()));
        assert_eq!(ask("rampup.debt", None).unwrap().0, first, "by any metric");
        assert_eq!(ask("lost_ms", Some(2)).unwrap(), (Some(KernelRev::V6_8), 2));
        let error = ask("fun", None).unwrap_err().to_string();
        assert!(error.contains("no figure `rampup.fun`") && error.contains("energy_mj"), "{error}");
    }

    #[test]
    fn a_task_is_named_or_the_first() {
        let phone = Request::new("phone", "pixel6");
        assert_eq!(task_of(&phone, None).unwrap(), "ui");
        assert_eq!(task_of(&phone, Some("render")).unwrap(), "render");
        let error = task_of(&phone, Some("rende")).unwrap_err().to_string();
        assert!(error.contains("no task `rende`") && error.contains("compositor"), "{error}");
    }
}
