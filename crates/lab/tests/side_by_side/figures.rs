//! Two to five tasks on one or two CPUs, on the simulator and on real kernels: what is compared.
//!
//! ```text
//! experiment  a workload of this directory on rpi4 (four equal CPUs), governor performance
//! figures     of each task: activations done, their p50 and p99 (nearest rank), turns;
//!             of the machine: switches
//! real.csv    what kernels gave, one row for each experiment, release and task; a row without a
//!             task holds the switches
//! ```
//!
//! simulated   from PHASES start phases (as `--phases`); a figure holds if the real one is not further
//!             outside their range than 5 % (counts: 10 %), or than what the virtual machine's own
//!             interrupts and threads take (SLACK_US)
//!
//! A turn: the task gets a CPU. A switch: a CPU goes from one task, or none, to another. The frequency
//! stands still, so that only who runs when decides.

use risetime_kernel::KernelRev;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_lab::{Request, phase_spans};
use risetime_model::Experiment;
use risetime_model::settings::Value;
use risetime_trace::{Backend, Event, Header, RunError, SwitchOut, TraceSink};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The directory of the workloads and the recorded figures.
pub(crate) fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/side_by_side")
}

/// All experiments, by name.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(dir()).expect("the experiments").flatten();
    let mut names: Vec<String> = files
        .filter_map(|f| Some(f.file_name().to_str()?.strip_suffix(".json")?.to_string()))
        .collect();
    names.sort();
    names
}

/// The experiment `name` under the kernel generation of `policy`, as Debian builds it for arm64.
pub(crate) fn experiment(name: &str, policy: &str) -> Experiment {
    let old = ["linux-6.1", "linux-6.12"].contains(&policy);
    let voluntary = old.then(|| ("preempt".into(), Value::Name("voluntary".into())));
    let governor = ("governor".into(), Value::Name("performance".into()));
    let request = Request {
        policies: vec![policy.into()],
        set: std::iter::once(governor).chain(voluntary).collect(),
        ..Request::new(dir().join(format!("{name}.json")).display().to_string(), "rpi4")
    };
    let all = request.experiments().unwrap_or_else(|e| panic!("{name}: {e}"));
    all.into_iter().next().expect("one policy")
}

/// Start phases of the simulator.
pub(crate) const PHASES: u32 = 8;
/// Ticks and other interrupts of the virtual machine, which a simulated one does in no time: a task that
/// waits a few ticks long is later by that.
const SLACK_US: f64 = 50.0;

/// The experiment from each start phase on the simulator.
pub(crate) fn simulate(
    backend: &dyn Backend,
    experiment: &Experiment,
) -> Result<Vec<Outcome>, RunError> {
    let one = |phase| run(backend, &experiment.later(phase)).map(|(outcome, _)| outcome);
    phase_spans(experiment.platform.tick(), PHASES).map(one).collect()
}

/// One figure of a task, or of the machine, on both sides.
pub(crate) struct Pair {
    /// The task, or the machine, and the figure's name.
    pub(crate) task: String,
    pub(crate) figure: &'static str,
    /// In ascending order.
    pub(crate) simulated: Vec<f64>,
    pub(crate) real: f64,
}

impl Pair {
    /// Whether the real figure is one that the simulator could have given.
    pub(crate) fn holds(&self) -> bool {
        let time = self.figure.ends_with("_us");
        let (share, slack) = if time { (0.05, SLACK_US) } else { (0.1, 3.0) };
        let by = (self.real * share).max(slack);
        let (first, last) = (self.simulated.first(), self.simulated.last());
        first.is_some_and(|f| self.real >= f - by) && last.is_some_and(|l| self.real <= l + by)
    }
    /// The middle one, the lower of two.
    pub(crate) fn median(&self) -> f64 {
        self.simulated.get((self.simulated.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN)
    }
}

/// All figures of an experiment: p50 and p99 only of tasks that sleep more than now and then.
pub(crate) fn pairs(simulated: &[Outcome], real: &Outcome) -> Vec<Pair> {
    const ENOUGH: u64 = 20;
    let pair = |task: &str, figure: &'static str, real: f64, of: &dyn Fn(&Outcome) -> f64| {
        let mut simulated: Vec<f64> = simulated.iter().map(of).collect();
        simulated.sort_by(f64::total_cmp);
        Pair { task: task.into(), figure, simulated, real }
    };
    let mut all = vec![pair("", "switches", real.switches as f64, &|o| o.switches as f64)];
    for (task, f) in &real.tasks {
        let of = |o: &Outcome| o.tasks.get(task).copied().unwrap_or_default();
        all.push(pair(task, "turns", f.turns as f64, &|o| of(o).turns as f64));
        if f.activations >= ENOUGH {
            let count = f.activations as f64;
            all.push(pair(task, "activations", count, &|o| of(o).activations as f64));
            all.push(pair(task, "p50_us", f.p50_us, &|o| of(o).p50_us));
            all.push(pair(task, "p99_us", f.p99_us, &|o| of(o).p99_us));
        }
    }
    all
}

/// "7.2.13+deb14-arm64" is of the policy `linux-7.2`.
pub(crate) fn policy_of(release: &str) -> String {
    let rev = KernelRev::of_release(release).unwrap_or_else(|| panic!("{release}: no release"));
    format!("linux-{rev}")
}

/// What a run of one task came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) activations: u64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) turns: u64,
}

/// All tasks by name, and the switches of all CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) tasks: BTreeMap<String, Figures>,
    pub(crate) switches: u64,
}

/// Runs `experiment` on `backend`.
pub(crate) fn run(
    backend: &dyn Backend,
    experiment: &Experiment,
) -> Result<(Outcome, String), RunError> {
    let mut counter = Counter::default();
    backend.run(experiment, &mut counter)?;
    Ok((counter.outcome(), counter.release))
}

#[derive(Default)]
struct Counter {
    tasks: BTreeMap<TaskId, Task>,
    running: BTreeMap<CpuId, TaskId>,
    switches: u64,
    release: String,
}

#[derive(Default)]
struct Task {
    comm: String,
    since: Option<Instant>,
    took: Vec<u64>,
    turns: u64,
}

impl Counter {
    fn outcome(&self) -> Outcome {
        let figures = |t: &Task| {
            let mut took = t.took.clone();
            took.sort_unstable();
            let rank = |p: usize| {
                let at = (took.len() * p).div_ceil(100).saturating_sub(1);
                took.get(at).map_or(0.0, |ns| *ns as f64 / 1e3)
            };
            Figures {
                activations: took.len() as u64,
                p50_us: rank(50),
                p99_us: rank(99),
                turns: t.turns,
            }
        };
        let tasks = self.tasks.values().map(|t| (t.comm.clone(), figures(t))).collect();
        Outcome { tasks, switches: self.switches }
    }
}

impl TraceSink for Counter {
    fn header(&mut self, header: &Header) {
        self.release.clone_from(&header.run.kernel_release);
    }
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, user: true, .. } => {
                self.tasks
                    .insert(task, Task { comm: comm.into(), since: Some(at), ..Task::default() });
            }
            Event::Wakeup { task, .. } => {
                if let Some(t) = self.tasks.get_mut(&task) {
                    t.since.get_or_insert(at);
                }
            }
            Event::Switch { cpu, prev, next } => {
                if let Some((task, SwitchOut::Sleeping | SwitchOut::Exited)) = prev
                    && let Some(t) = self.tasks.get_mut(&task)
                    && let Some(since) = t.since.take()
                {
                    t.took.push(at.since(since).0);
                }
                // What the workload did, not the machine's own threads.
                let next = next.filter(|next| self.tasks.contains_key(next));
                let before = match next {
                    Some(next) => self.running.insert(cpu, next),
                    None => None,
                };
                if let Some(next) = next.filter(|next| before != Some(*next) || prev.is_some()) {
                    self.switches += 1;
                    if let Some(t) = self.tasks.get_mut(&next) {
                        t.turns += 1;
                    }
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// What real kernels gave: by experiment and release.
pub(crate) type Recorded = BTreeMap<(String, String), Outcome>;

/// Reads `real.csv`.
pub(crate) fn recorded() -> Recorded {
    let text = std::fs::read_to_string(dir().join("real.csv")).unwrap_or_default();
    let mut all = Recorded::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, release, task, activations, p50, p99, count] = fields[..] else {
            panic!("real.csv: {line}");
        };
        let number = |field: &str| field.parse().unwrap_or_else(|_| panic!("real.csv: {line}"));
        let outcome = all.entry((name.into(), release.into())).or_default();
        if task.is_empty() {
            outcome.switches = number(count) as u64;
            continue;
        }
        let figures = Figures {
            activations: number(activations) as u64,
            p50_us: number(p50),
            p99_us: number(p99),
            turns: number(count) as u64,
        };
        outcome.tasks.insert(task.into(), figures);
    }
    all
}

/// `recorded` as `real.csv`.
pub(crate) fn to_csv(recorded: &Recorded) -> String {
    let mut text =
        "experiment,release,task,activations,p50_us,p99_us,turns_or_switches\n".to_string();
    for ((name, release), outcome) in recorded {
        let _ = writeln!(text, "{name},{release},,,,,{}", outcome.switches);
        for (task, f) in &outcome.tasks {
            let Figures { activations, p50_us, p99_us, turns } = f;
            let _ = writeln!(
                text,
                "{name},{release},{task},{activations},{p50_us:.1},{p99_us:.1},{turns}"
            );
        }
    }
    text
}

/// All of it as Markdown: simulated median [range over start phases] · real, in bold what does not hold.
pub(crate) fn table(simulator: &dyn Backend) -> String {
    let mut text =
        "| experiment | Linux | task | activations | p50 ms | p99 ms | turns | switches |\n\
                    |---|---|---|---|---|---|---|---|\n"
            .to_string();
    let (mut hold, mut count) = (0, 0);
    for ((name, release), real) in recorded() {
        let simulated = simulate(simulator, &experiment(&name, &policy_of(&release)));
        let pairs = simulated.map(|s| pairs(&s, &real)).unwrap_or_else(|e| panic!("{name}: {e}"));
        hold += pairs.iter().filter(|p| p.holds()).count();
        count += pairs.len();
        rows(&mut text, &name, &release, &pairs);
    }
    let _ = writeln!(text, "\n{hold} of {count} figures hold.");
    text
}

fn rows(text: &mut String, name: &str, release: &str, pairs: &[Pair]) {
    let version = release.split(['+', '-']).next().unwrap_or(release);
    let cell = |task: &str, figure: &str| {
        pairs.iter().find(|p| p.task == task && p.figure == figure).map_or(String::new(), |p| {
            let (by, digits) = if figure.ends_with("_us") { (1e3, 2) } else { (1.0, 0) };
            let [low, mid, high, real] =
                [p.simulated[0], p.median(), p.simulated[p.simulated.len() - 1], p.real]
                    .map(|v| format!("{:.digits$}", v / by));
            let mark = if p.holds() { "" } else { "**" };
            let range = if low == high { String::new() } else { format!(" [{low}–{high}]") };
            format!("{mark}{mid}{range} · {real}{mark}")
        })
    };
    let mut tasks: Vec<&str> =
        pairs.iter().map(|p| p.task.as_str()).filter(|t| !t.is_empty()).collect();
    tasks.dedup();
    for (i, task) in tasks.into_iter().enumerate() {
        let first = |text: &str| if i == 0 { text.to_string() } else { String::new() };
        let [a, p50, p99, turns] =
            ["activations", "p50_us", "p99_us", "turns"].map(|f| cell(task, f));
        let (name, version) = (first(name), first(version));
        let switches = first(&cell("", "switches"));
        let _ = writeln!(
            text,
            "| {name} | {version} | {task} | {a} | {p50} | {p99} | {turns} | {switches} |"
        );
    }
}
