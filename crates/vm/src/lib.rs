//! A real kernel on a virtual SoC: the same experiment, the same kind of trace.
//!
//! ```text
//! Experiment ── plan ──> job ─┐
//! Platform ──── dtb ──> tree ─┼─ qemu ──> answer ── readback ── collect ──> events
//! agent, modules ─ initramfs ─┘
//! ```
//!
//! [`fetch`] puts kernel and QEMU into a cache; nothing else here uses a network.

mod apt;
mod collect;
pub mod dtb;
pub mod fetch;
mod guard;
mod held;
mod initramfs;
mod menu;
mod partitions;
mod piped;
mod plan;
mod qemu;
mod readback;
mod reasons;
mod tree;

#[cfg(test)]
mod tests;

pub use qemu::Qemu;

use guard::Guard;
use held::Held;
use initramfs::{Entry, Initramfs};
use qemu::{BOOT_LIMIT, Boot, BootError, Machine};
use reasons::Reasons;
use risetime_ftrace::decisions;
use risetime_job::answer::{self, Answer, FNV_START, fnv};
use risetime_job::job::{Job, Task as JobTask};
use risetime_kernel::KernelRev;
use risetime_kernel::units::{GroupId, Instant, Span};
use risetime_model::settings::{SKIP_MS, keys};
use risetime_model::workload::TaskGroup;
use risetime_model::{Catalogue, Experiment, InputError, Platform, Settings};
use risetime_trace::{
    Backend, BackendKind, Clock, Event, Header, Image, MachineInfo, Origin, Outcome, QuotaStat,
    Run, RunError, Signal, TraceSink, Whence,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A real kernel in QEMU, as a backend.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Every setting that an experiment may have, with its home: what of it the guest can be given.
    pub catalogue: Catalogue,
    /// QEMU and how it is called.
    pub qemu: Qemu,
    /// The kernel's Image; its modules are in `modules/` beside it, if it has any.
    pub kernel: PathBuf,
    /// The agent's binary, for the guest.
    pub agent: PathBuf,
    /// Whether the trace also tells from what the kernel decides. That asks more of the guest, whose time
    /// then goes otherwise; a kernel before 6.14, which shows an ordinary run nothing of its
    /// scheduler's signals, shows them then.
    pub decisions: bool,
    /// Whether idle states take the time that the platform says; else QEMU comes back from each at once.
    pub idle_times: bool,
    /// Whether probes tell of the scheduler's signals, which takes some time of each wakeup.
    pub probes: bool,
    /// Time of an instruction of the guest: 2^shift ns.
    pub shift: u32,
    /// Directory where fingerprints of runs are kept, so that one that takes another course is
    /// noticed.
    pub memory: Option<PathBuf>,
    /// Wall-clock limit of one run; `None`: from the experiment's length.
    pub limit: Option<Duration>,
    /// Whether a machine that is wanted more than once is held when it has booted; its runs are the same without.
    pub hold: bool,
    held: Arc<Held>,
}

/// Parts that a boot is made of, besides the kernel.
struct Prepared {
    plan: plan::Plan,
    device_tree: Vec<u8>,
    initramfs: Vec<u8>,
    boot: String,
    late: Vec<u8>,
}

/// The form of the events that are made of an answer. Whoever makes other events of the same answer raises it: traces that
/// were kept are then recorded anew.
const FORM: u32 = 2;

impl Vm {
    /// Finds a machine from what is in `cache`, with `kernel` if the user named one, the settings
    /// of the experiments to come, and the agent that the environment or the place of this program
    /// names.
    ///
    /// Errors: what is missing, and the command that gets it.
    pub fn find(
        cache: &fetch::Cache,
        kernel: Option<&str>,
        catalogue: Catalogue,
    ) -> Result<(Vm, fetch::Kernel), RunError> {
        let kernel = cache.kernel(kernel)?;
        let (qemu, agent) = (cache.qemu()?, agent()?);
        let memory = Some(cache.boots());
        Ok((
            Vm {
                catalogue,
                qemu,
                kernel: kernel.image.clone(),
                agent,
                decisions: false,
                idle_times: false,
                probes: true,
                shift: 1,
                memory,
                limit: None,
                hold: true,
                held: Arc::default(),
            },
            kernel,
        ))
    }

    /// Returns the machine with traces that tell from what the kernel decides ([`Vm::decisions`]).
    pub fn with_decisions(self) -> Vm {
        Vm { decisions: true, ..self }
    }

    /// Returns the machine with idle states that take time ([`Vm::idle_times`]).
    pub fn with_idle_times(self) -> Vm {
        Vm { idle_times: true, ..self }
    }

    /// The number of runs that went on from the state of a machine that was held.
    pub fn resumed(&self) -> usize {
        self.held.resumed()
    }

    /// The hash of the agent's binary: by this one agent is told from another.
    ///
    /// Errors: it is not there.
    pub fn agent_hash(&self) -> Result<String, RunError> {
        Ok(format!("{:016x}", fnv(FNV_START, &read(&self.agent)?)))
    }

    /// A shell on a machine of `platform`, on this terminal, in real time.
    ///
    /// Errors: a platform that no device tree can express, QEMU's failure.
    pub fn shell(&self, platform: &Platform) -> Result<(), RunError> {
        self.with_shell(platform, qemu::interactive)
    }

    /// The lines of `input` as commands to such a shell, their answers on `out`.
    ///
    /// Errors: as [`Vm::shell`]'s; a line that cannot be sent, a command that fails, and what happens to `input` and `out`.
    pub fn commands(
        &self,
        platform: &Platform,
        input: impl BufRead,
        out: &mut impl Write,
    ) -> Result<(), RunError> {
        self.with_shell(platform, |machine| qemu::commands(machine, input, out))
    }

    fn with_shell(
        &self,
        platform: &Platform,
        boot: impl FnOnce(&Machine<'_>) -> Result<(), BootError>,
    ) -> Result<(), RunError> {
        let device_tree = dtb::blob(platform)?;
        let modules: Vec<String> = self.modules()?.into_keys().collect();
        let initramfs = self.initramfs(&plan::bare(platform, &modules).to_text())?;
        let machine = Machine {
            qemu: &self.qemu,
            kernel: &self.kernel,
            device_tree: &device_tree,
            initramfs: &initramfs,
            cpus: platform.nr_cpus(),
            boot: "",
            shift: self.shift,
            late: &[],
        };
        boot(&machine).map_err(failed)
    }

    /// The limit of a run of `experiment`: boot and settling, and then much more than an
    /// idle host needs for eight busy CPUs.
    fn limit(&self, experiment: &Experiment) -> Duration {
        self.limit
            .unwrap_or(Duration::from_secs(120) + Duration::from_nanos(experiment.duration.0) * 20)
    }

    /// The kernel modules there are, by name, with their contents.
    fn modules(&self) -> Result<BTreeMap<String, Vec<u8>>, RunError> {
        let dir = self.kernel.parent().unwrap_or(Path::new(".")).join("modules");
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str().filter(|n| n.ends_with(".ko")) {
                found.insert(name.to_string(), read(&entry.path())?);
            }
        }
        Ok(found)
    }

    fn prepare(&self, experiment: &Experiment) -> Result<Prepared, RunError> {
        let modules: Vec<String> = self.modules()?.into_keys().collect();
        let Vm { decisions, idle_times, probes, .. } = *self;
        let how = plan::How { decisions, idle_times, probes };
        let plan = plan::plan(experiment, &self.catalogue, &modules, how)?;
        let device_tree = dtb::blob(&experiment.platform)?;
        let mut early = plan.job.clone();
        early.take_late(&Job::default());
        let initramfs = self.initramfs(&early.to_text())?;
        let late = plan.job.late().to_text().into_bytes();
        let boot = plan::command_line(experiment, &self.catalogue);
        Ok(Prepared { plan, device_tree, initramfs, boot, late })
    }

    fn machine<'a>(&'a self, prepared: &'a Prepared, experiment: &Experiment) -> Machine<'a> {
        Machine {
            qemu: &self.qemu,
            kernel: &self.kernel,
            device_tree: &prepared.device_tree,
            initramfs: &prepared.initramfs,
            cpus: experiment.platform.nr_cpus(),
            boot: &prepared.boot,
            shift: self.shift,
            late: &prepared.late,
        }
    }

    fn initramfs(&self, job: &str) -> Result<Vec<u8>, RunError> {
        let mut fs = Initramfs::new();
        fs.add("init", Entry::Program(read(&self.agent)?));
        fs.add("job", Entry::File(job.as_bytes().to_vec()));
        for (name, bytes) in self.modules()? {
            fs.add(&format!("modules/{name}"), Entry::File(bytes));
        }
        Ok(fs.archive())
    }
}

/// The agent's binary for the guest: `$RISETIME_GUEST`, else beside this program, else where
/// cargo puts it.
fn agent() -> Result<PathBuf, RunError> {
    let missing = |what: String| {
        RunError::Unavailable(format!(
            "{what}: run `make vm` (or set RISETIME_GUEST to the agent's binary)"
        ))
    };
    if let Some(path) = std::env::var_os("RISETIME_GUEST").map(PathBuf::from) {
        return if is_arm64(&path) {
            Ok(path)
        } else {
            Err(missing(format!("{}: this is no arm64 program", path.display())))
        };
    }
    let program = std::env::current_exe().unwrap_or_default();
    let dir = program.parent().unwrap_or(Path::new("."));
    let built = "aarch64-unknown-linux-musl/guest/risetime-guest";
    let places = [
        dir.join("risetime-guest"),
        dir.join("risetime-guest-aarch64"),
        dir.join("..").join(built),
        dir.join("../..").join(built),
    ];
    places
        .into_iter()
        .find(|p| is_arm64(p))
        .ok_or_else(|| missing("the guest's agent is not built".into()))
}

/// Whether a file is an arm64 program (ELF, machine 183).
fn is_arm64(path: &Path) -> bool {
    let mut head = [0; 20];
    let read =
        std::fs::File::open(path).and_then(|mut f| std::io::Read::read_exact(&mut f, &mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[18..] == [183, 0]
}

fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    std::fs::read(path).map_err(|e| RunError::Unavailable(format!("{}: {e}", path.display())))
}

impl Backend for Vm {
    fn kind(&self) -> BackendKind {
        BackendKind::Vm
    }

    /// The fingerprint of a run: of the bytes that go into the boot, and of what the trace has from
    /// the experiment.
    fn identity(&self, experiment: &Experiment) -> Result<Option<String>, RunError> {
        let e = experiment;
        let prepared = self.prepare(e)?;
        let own = OF_TASKS.map(|name| e.settings.by_name(name));
        let asked = format!(
            "{FORM} {:?} {:?} {:?} {:?} {:?} {own:?}",
            e.workload.name, e.policy.name, e.policy.kernel, e.phase, e.seed
        );
        let [arguments, tree, root, late] = self.machine(&prepared, e).identity();
        let platform = e.platform.to_toml().into_bytes();
        Ok(Some(guard::key(&[arguments, tree, root, late, asked.into_bytes(), platform])))
    }

    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let prepared = self.prepare(experiment)?;
        let (machine, plan) = (self.machine(&prepared, experiment), &prepared.plan);
        let limit = self.limit(experiment);
        let identity = machine.identity();
        let guard = Guard::new(self.memory.as_deref(), &identity);
        let known = match self.hold {
            true => self.held.state(&guard::key(&identity[..3]), &machine),
            false => Ok(None),
        };
        let (mut state, mut lost) = known.map_or_else(|why| (None, Some(why)), |s| (s, None));
        // What a state gives that is not what is known, or nothing, a boot has to confirm.
        let run = || {
            let resumed = state
                .take()
                .map(|state| Boot::resume(&machine, &state.path())?.answer(BOOT_LIMIT, limit));
            match resumed {
                Some(Ok(answer)) => {
                    self.held.count();
                    Ok(answer)
                }
                Some(Err(e)) => {
                    lost = e.to_string().lines().next().map(str::to_string);
                    Boot::start(&machine)?.answer(BOOT_LIMIT, limit)
                }
                None => Boot::start(&machine)?.answer(BOOT_LIMIT, limit),
            }
        };
        let guarded = guard.check(run).map_err(failed)?;
        let answer = Answer::parse(&guarded.answer).map_err(|e| {
            RunError::Failed(format!("{e}: the guest's answer is damaged or incomplete"))
        })?;
        let mut outcome = deliver(&answer, experiment, plan, self.decisions, sink)?;
        outcome.notes.extend(guarded.note);
        let slow = |why| format!("this run booted, as no machine could be held for it: {why}");
        outcome.notes.extend(lost.map(slow));
        Ok(outcome)
    }
}

fn failed(e: BootError) -> RunError {
    match e {
        BootError::Host(s) => RunError::Unavailable(s),
        BootError::Guest(s) => RunError::Failed(s),
    }
}

/// An answer that is whole, looked at and poured out.
fn deliver(
    answer: &Answer<'_>,
    e: &Experiment,
    plan: &plan::Plan,
    decisions: bool,
    sink: &mut dyn TraceSink,
) -> Result<Outcome, RunError> {
    let fail = |what: String| RunError::Failed(what);
    let said = |section: &str| answer.section(section).map(|s| String::from_utf8_lossy(s));
    if let Some(error) = said("error") {
        return Err(fail(format!("the guest: {}", error.trim())));
    }
    if let Some(what) = said("lacks") {
        let what = format!("the kernel was built without {}", what.trim());
        return Err(InputError::new(&*e.policy.name, what).into());
    }
    let values: BTreeMap<String, String> = answer.values().into_iter().collect();
    is_of_its_generation(e, &values)?;
    has_its_hz(e, &values)?;
    readback::check(&e.platform, plan, &values)?;
    let trace = collect::Trace::read(answer).map_err(fail)?;
    let get = |key: &str| {
        values.get(key).cloned().ok_or_else(|| fail(format!("the guest did not say its {key}")))
    };
    let hz: u32 = get(HZ)?.parse().map_err(|_| fail("the guest's hz is no number".into()))?;
    let number = |key: String| values.get(&key).and_then(|n| n.parse::<i32>().ok());
    let forks: Vec<usize> = (plan.job.tasks.len()..)
        .map_while(|i| number(format!("task.{i}.fork")).and_then(|of| of.try_into().ok()))
        .collect();
    let pids: Vec<i32> = (0..plan.job.tasks.len() + forks.len())
        .map(|i| number(format!("task.{i}.pid")).unwrap_or(0))
        .collect();
    let platform = Arc::new(Platform { hz, ..(*e.platform).clone() });
    let mut lost = trace.lost.clone();
    lost.extend(
        values
            .iter()
            .filter_map(|(k, v)| Some((k.strip_prefix("lost.")?, v)))
            .filter(|(_, v)| *v != "0")
            .map(|(cpu, v)| format!("CPU {cpu}: {v} events")),
    );
    let settings = settings(e, plan, &values, hz);
    let mut signals = signals(&values, !plan.job.probes.is_empty());
    let has = |name: &str| signals.iter().any(|s| s.name == name);
    signals.extend(reasons::signals(e.policy.kernel, &settings, has));
    let threads = collect::threads(&plan.job, &forks).into_iter().map(|(_, task)| task).collect();
    let changes = collect::changes(&trace, &platform);
    let sink = &mut Reasons::new(&platform, &plan.job, threads, changes, sink);
    let run = Run {
        backend: BackendKind::Vm,
        kernel_release: get("release")?,
        clock: Clock::Local,
        signals,
        lost,
    };
    let image = Image {
        idle: collect::idle_memory(&trace, &platform, e.policy.kernel, &plan.job, &pids),
        balance: collect::balance_memory(&trace, &pids),
        periods: collect::period_memory(&trace),
        tick: trace.tick,
    };
    // What the kernel says of itself is what it had.
    let machine =
        MachineInfo { platform: Arc::clone(&platform), whence: Whence::Described, settings };
    sink.header(&Header { machine, image, ..Header::of(e, run) });
    let rev = decisions.then_some(e.policy.kernel);
    let done = collect::pour(&trace, &platform, &plan.job, &pids, &forks, rev, sink);
    let quotas = quotas(&plan.job.groups, &values);
    quotas.iter().for_each(|quota| sink.event(done.end, quota));
    sink.end(done.end);
    let mut notes = vec![ran(e, &values, hz)];
    notes.extend(self::notes(e, &values));
    notes.extend(not_shown(&plan.job, &values));
    notes.extend(idle_times(&plan.job, &values));
    notes.extend(started_late(&plan.job, &values));
    if decisions {
        let format = |name: &str| said(&format!("format {name}")).map(Cow::into_owned);
        notes.extend(decisions::notes(format, &values));
    }
    let events = done.events + quotas.len() as u64;
    Ok(Outcome { end: Instant(done.end.0), events, notes, timer_interrupts: None })
}

/// Whether the policy is of the kernel that booted.
///
/// It was asked for before, where the kernel could be looked at; an Image does not always say.
fn is_of_its_generation(e: &Experiment, values: &BTreeMap<String, String>) -> Result<(), RunError> {
    let release = values.get("release").map_or("", String::as_str);
    match KernelRev::of_release(release).map(KernelRev::known) {
        Some(rev) if rev != e.policy.kernel => Err(InputError::new(
            &*e.policy.name,
            format!("is of Linux {}, the kernel that booted is {release}", e.policy.kernel),
        )
        .hint("`mainline` means the kernel that is booted, where its Image says what it is")
        .into()),
        _ => Ok(()),
    }
}

/// Reads how often each group used up its quota, from its `cpu.stat`.
fn quotas(groups: &[TaskGroup], values: &BTreeMap<String, String>) -> Vec<Event> {
    let groups = (1..).map(GroupId).zip(groups);
    let told = groups.filter_map(|(group, of)| {
        let text = values.get(&plan::quota_stat(of)?)?;
        let number = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(k, _)| *k == key)?.1.parse::<u64>().ok()
        };
        let stat = QuotaStat {
            periods: number("nr_periods")?,
            throttled: number("nr_throttled")?,
            time: Span(number("throttled_usec")? * 1000),
            longest: None,
        };
        Some(Event::Quota { group, stat })
    });
    told.collect()
}

/// Name of the guest's HZ, and of the setting that it becomes.
const HZ: &str = keys::HZ.name();

/// Whether the kernel that booted has the HZ that was asked for, if one was. It is built in.
fn has_its_hz(e: &Experiment, values: &BTreeMap<String, String>) -> Result<(), RunError> {
    match (e.settings.get(&keys::HZ), values.get(HZ)) {
        (Some(asked), Some(has)) if asked.to_string() != *has => {
            let what = format!("found {asked}, the kernel that booted was built with HZ={has}");
            let hint = "leave it out, or boot a kernel of that HZ with --kernel";
            Err(InputError::new("--hz", what).hint(hint).into())
        }
        _ => Ok(()),
    }
}

/// Settings of a trace that are no files of the guest to read back.
const OF_TASKS: [&str; 6] = [
    keys::GOVERNOR.name(),
    keys::UCLAMP_MIN.name(),
    keys::UCLAMP_MAX.name(),
    keys::TIMER_SLACK_NS.name(),
    keys::HIGHRES.name(),
    SKIP_MS.name(),
];

/// Collects every setting as the kernel has it.
fn settings(
    e: &Experiment,
    plan: &plan::Plan,
    values: &BTreeMap<String, String>,
    hz: u32,
) -> Settings {
    let mut all = Settings::default();
    for name in OF_TASKS {
        if let Some(v) = e.settings.by_name(name) {
            all.insert(name, v.clone());
        }
    }
    for (name, path) in &plan.settings {
        // Not there, or (sched_energy_aware where it cannot be) empty: no such setting.
        if let Some(text) = values.get(path).filter(|t| !t.starts_with('!') && !t.trim().is_empty())
        {
            all.insert(name, plan::value(text));
        }
    }
    all.set(&keys::FIRST_CPU, i64::from(plan.job.first_cpu));
    all.set(&keys::HZ, i64::from(hz));
    if !plan.job.idle.is_empty() && !values.contains_key(answer::NO_IDLE_TIMES) {
        all.set(&keys::IDLE_TIMES, 1);
    }
    let driver = values.iter().find(|(k, _)| k.ends_with("/scaling_driver"));
    if let Some((_, driver)) = driver {
        all.set(&keys::SCALING_DRIVER, plan::value(driver));
    }
    all
}

/// The signals whose probes the kernel accepted, if it was asked for any.
fn signals(values: &BTreeMap<String, String>, probed: bool) -> Vec<Signal> {
    const SIGNALS: &[(&str, &str)] = &[
        ("util_avg", "probe rt/pelt_se"),
        ("runnable_avg", "probe rt/pelt_se"),
        ("util_est", "probe rt/uest_se"),
        ("cfs_rq", "probe rt/pelt_cfs"),
        ("cpu_frequency", "event power/cpu_frequency"),
        ("cpu_idle", "event power/cpu_idle"),
        ("sched_switch", "event sched/sched_switch"),
        ("overutilized", "probe rt/ovu"),
    ];
    let tells = |key: &str| probed || !key.starts_with("probe ");
    let there = SIGNALS.iter().filter(|(_, key)| tells(key) && !values.contains_key(*key));
    there.map(|(name, _)| Signal { name, origin: Origin::Recorded }).collect()
}

/// The note on which kernel ran, and on what its HZ moves if the platform has another.
fn ran(e: &Experiment, values: &BTreeMap<String, String>, hz: u32) -> String {
    let release = values.get("release").map_or("?", String::as_str);
    let said = format!(
        "Linux {release} ran, built with HZ={hz}; its policy here is linux-{}",
        e.policy.kernel
    );
    if hz == e.platform.hz {
        return said;
    }
    let ms = |hz: u32| 1000.0 / f64::from(hz.max(1));
    let when = if hz < e.platform.hz { "later" } else { "sooner" };
    format!(
        "{said}. {} says hz={}: a tick comes every {} ms here and would every {} there, so that util is refreshed, a \
         frequency asked for, a misfit task noticed and a turn ended {when}. The simulator does the same with --hz {hz}",
        e.platform.name,
        e.platform.hz,
        ms(hz),
        ms(e.platform.hz)
    )
}

/// A note on tasks that the agent started late; `None`: it started all in time.
fn started_late(job: &Job, values: &BTreeMap<String, String>) -> Option<String> {
    let late = |(i, task): (usize, &JobTask)| {
        let ns: u64 = values.get(&format!("task.{i}.late_ns"))?.parse().ok()?;
        Some((task.comm.clone(), ns))
    };
    let all: Vec<(String, u64)> = job.tasks.iter().enumerate().filter_map(late).collect();
    let most = all.iter().map(|(_, ns)| ns).max()?;
    let names: Vec<&str> = all.iter().map(|(comm, _)| comm.as_str()).take(4).collect();
    let more = if all.len() > names.len() { " and others" } else { "" };
    Some(format!(
        "{}{more} started up to {}.{} ms late: tasks had CPU{}, from which they are started, and the simulator starts them in time; who wakes \
         after whom may differ for the whole run (first_cpu names another CPU)",
        names.join(", "),
        most / 1_000_000,
        most / 100_000 % 10,
        job.first_cpu
    ))
}

fn notes(e: &Experiment, values: &BTreeMap<String, String>) -> Vec<String> {
    let mut notes = e.notes();
    let release = values.get("release").map_or("", String::as_str);
    if let Some(rev) = KernelRev::of_release(release)
        && rev > KernelRev::NEWEST
    {
        notes.push(format!(
            "Linux {release} is newer than the newest generation known here, {}",
            KernelRev::NEWEST
        ));
    }
    if e.settings.get(&keys::SCHED_CACHE) == Some(1)
        && values.get(plan::LLC_BALANCING).is_some_and(|v| v.starts_with('!'))
    {
        notes.push("this kernel gathers no tasks by cache (CONFIG_SCHED_CACHE), the simulator does unless told sched_cache=0".into());
    }
    if values.get(plan::ENERGY_AWARE).is_some_and(|v| v.starts_with('!')) {
        notes.push("this kernel has no energy-aware scheduling (CONFIG_ENERGY_MODEL)".into());
    }
    if !e.platform.thermal.is_empty() && e.settings.get(&keys::THERMAL) != Some(0) {
        notes.push("a virtual machine has no temperature: thermal zones are without effect".into());
    }
    notes
}

/// The note on signals that the trace has not; `None`: it has all.
fn not_shown(job: &Job, values: &BTreeMap<String, String>) -> Option<String> {
    if job.probes.is_empty() {
        return Some(
            "the kernel ran without probes, as was asked: figures on util are missing, and why work is lost on a small CPU or at a \
             lower speed"
                .into(),
        );
    }
    // Not every architecture keeps the others (arm64 has no irq average).
    let expected = ["rt/pelt_se", "rt/uest_se", "rt/pelt_cfs", "rt/ovu"];
    let refused: Vec<&str> =
        expected.into_iter().filter(|p| values.contains_key(&format!("probe {p}"))).collect();
    if let Some(first) = refused.first() {
        let why = &values[&format!("probe {first}")];
        return Some(format!(
            "this kernel does not show {} ({why}): figures on util are missing, and why work is lost on a small CPU or at a lower speed; arm64 kernels show \
             their scheduler's signals from 6.14 on, with FPROBE_EVENTS and BTF",
            refused.join(", ")
        ));
    }
    None
}

/// The note on idle states that take time, or would; `None`: nobody asked.
fn idle_times(job: &Job, values: &BTreeMap<String, String>) -> Option<String> {
    if job.idle.is_empty() {
        return None;
    }
    Some(match values.get(answer::NO_IDLE_TIMES) {
        Some(why) => format!(
            "leaving an idle state took no time here, where the simulator spends exit_latency_us: this kernel takes no program that \
             would let it pass ({why})"
        ),
        None => "leaving an idle state took the time that the platform says (a program in the kernel spins, the other virtual CPUs stand \
                 still meanwhile or take their turns: busy ones make it longer)"
            .into(),
    })
}
