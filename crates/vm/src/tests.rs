//! Runs on a QEMU that is a shell script: what comes of answers that are right, wrong, damaged
//! or missing, and of processes that die or do not end.

mod decisions;
mod jobs;
mod settings;

use super::*;
use risetime_ftrace::page::{HEADER_PAGE, page};
use risetime_job::answer::{Writer, value_line};
use risetime_kernel::units::{ClockPelt, CpuId, GroupId, KHz, Span, TaskId, Util};
use risetime_model::platform::thermal::{Governor, Zone};
use risetime_model::{Policy, Workload};
use risetime_trace::{Event, Memory, PeriodMemory, QuotaStat, SwitchOut, Why};
use std::fs;
use std::time::Instant as Clock;

/// A directory with an agent, a kernel and a script in QEMU's place.
struct Rig {
    dir: PathBuf,
    vm: Vm,
}

impl Rig {
    /// `script` runs in the run's directory; `$DIR` is the rig's.
    fn new(name: &str, script: &str) -> Rig {
        let dir = std::env::temp_dir().join(format!("risetime-rig-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("modules")).unwrap();
        for file in ["agent", "Image", "modules/cpufreq-dt.ko"] {
            fs::write(dir.join(file), b"x").unwrap();
        }
        fs::write(dir.join("qemu"), format!("DIR={}\npwd > $DIR/cwd\n{script}\n", dir.display()))
            .unwrap();
        let command = vec!["/bin/sh".into(), dir.join("qemu").into()];
        let qemu = Qemu { command, version: (10, 0) };
        let limit = Some(Duration::from_secs(20));
        let vm = Vm {
            catalogue: risetime_sim::catalogue(),
            qemu,
            kernel: dir.join("Image"),
            agent: dir.join("agent"),
            decisions: false,
            idle_times: false,
            probes: true,
            shift: 1,
            memory: None,
            limit,
            hold: false,
            held: Arc::default(),
        };
        Rig { dir, vm }
    }

    /// A rig whose QEMU answers `bytes`.
    fn answering(name: &str, bytes: &[u8]) -> Rig {
        let rig = Rig::new(name, "cp $DIR/said answer");
        fs::write(rig.dir.join("said"), bytes).unwrap();
        rig
    }

    fn run(&self, policy: &str) -> (Result<Outcome, RunError>, Memory) {
        let mut memory = Memory::default();
        let done = self.vm.run(&experiment(policy), &mut memory);
        (done, memory)
    }

    fn error(&self) -> String {
        self.run("linux-7.2").0.unwrap_err().to_string()
    }

    /// Whether the directory of the run, which the script has noted, is gone.
    fn is_clean(&self) -> bool {
        let cwd = fs::read_to_string(self.dir.join("cwd")).unwrap();
        !Path::new(cwd.trim()).exists()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn experiment(policy: &str) -> Experiment {
    let policy = Policy::from_arg(policy).unwrap();
    let platform = Platform::load("m1").unwrap();
    Experiment {
        settings: risetime_sim::resolve(&platform, &policy).unwrap(),
        platform: Arc::new(platform),
        workload: Arc::new(Workload::load("rampup").unwrap()),
        policy,
        duration: Span::from_ms(10),
        phase: Span(0),
        seed: 1,
    }
}

fn zone() -> Zone {
    Zone {
        name: "cpu".into(),
        heated_by: vec![CpuId(0)],
        ambient_millicelsius: 20_000,
        resistance_mk_per_w: 10_000,
        capacitance_mj_per_k: 100,
        coupled: Vec::new(),
        polling_delay_passive: Span::from_ms(100),
        polling_delay: Span::from_ms(100),
        trips: Vec::new(),
        governor: Governor::StepWise,
        cools: Vec::new(),
    }
}

fn planned(e: &Experiment, modules: &[String]) -> Result<plan::Plan, InputError> {
    plan::plan(e, &risetime_sim::catalogue(), modules, AS_IT_IS)
}

/// The values that a kernel says that does everything as told.
fn obedient(policy: &str) -> BTreeMap<String, String> {
    let e = experiment(policy);
    let plan = planned(&e, &["cpufreq-dt.ko".into()]).unwrap();
    let mut values: BTreeMap<String, String> = plan.job.set.iter().cloned().collect();
    for d in &e.platform.domains {
        let frequencies: Vec<String> = d.opps.iter().map(|o| o.freq.0.to_string()).collect();
        let first = d.cpus[0].0;
        values.insert(
            format!("/sys/devices/system/cpu/cpufreq/policy{first}/scaling_available_frequencies"),
            frequencies.join(" "),
        );
        for cpu in &d.cpus {
            values.insert(
                format!("/sys/devices/system/cpu/cpu{}/cpu_capacity", cpu.0),
                d.capacity.0.to_string(),
            );
        }
    }
    for (key, value) in [
        ("hz", "250"),
        ("release", "7.2.1"),
        ("task.0.pid", "70"),
        ("lost.0", "0"),
        ("/proc/sys/kernel/sched_energy_aware", "1"),
    ] {
        values.insert(key.into(), value.into());
    }
    values
}

fn format(id: u16, fields: &[(&str, &str, usize, usize)]) -> String {
    let common = [("unsigned short", "common_type", 0, 2), ("int", "common_pid", 4, 4)];
    let line = |(kind, name, offset, size): &(&str, &str, usize, usize)| {
        let signed = u8::from(!kind.starts_with('u') && *kind != "char");
        format!("\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
    };
    let lines: String = common.iter().chain(fields).map(line).collect();
    format!("name: x\nID: {id}\nformat:\n{lines}")
}

/// An event's bytes: numbers of 4 bytes, texts of 16.
enum Word<'a> {
    N(i32),
    T(&'a str),
}
fn event(id: u16, words: &[Word<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    bytes[..2].copy_from_slice(&id.to_le_bytes());
    for w in words {
        match w {
            Word::N(n) => bytes.extend(n.to_le_bytes()),
            Word::T(t) => {
                bytes.extend(t.bytes());
                bytes.resize(bytes.len() + 16 - t.len(), 0);
            }
        }
    }
    bytes
}
/// A run as it was before there was anything to choose.
const AS_IT_IS: plan::How = plan::How { decisions: false, idle_times: false, probes: true };

const SWITCH: u16 = 1;
const PRINT: u16 = 2;
const FREQ: u16 = 3;
const UTIL_EST: u16 = 4;
const PELT_CFS: u16 = 5;
const PERIOD: u16 = 6;
const PLUG_ENTER: u16 = 7;
const PLUG_EXIT: u16 = 8;

fn switch(prev: i32, state: i32, next: i32) -> Vec<u8> {
    event(SWITCH, &[Word::T("a"), Word::N(prev), Word::N(state), Word::T("b"), Word::N(next)])
}
/// A runqueue's signals at `at`: all the same, and overutilized; `parent` is that of its group.
fn pelt_cfs(signal: i32, at: i32, parent: i32) -> Vec<u8> {
    let words = [signal, signal, signal, signal, 7, at, 4, 1, parent].map(Word::N);
    event(PELT_CFS, &words)
}
fn mark(text: &str) -> Vec<u8> {
    let mut bytes = event(PRINT, &[]);
    bytes.extend(text.bytes().chain([b'\n', 0]));
    bytes
}

/// An answer with a short trace: CPU 4 runs the workload's task from before time 0 on.
fn answer(values: &BTreeMap<String, String>) -> Vec<u8> {
    let mut w = Writer::new(Vec::new()).unwrap();
    let text: String = values.iter().map(|(k, v)| value_line(k, v)).collect();
    w.section("values", text.as_bytes()).unwrap();
    w.section("header_page", HEADER_PAGE.as_bytes()).unwrap();
    let switch_fields = [
        ("char", "prev_comm[16]", 8, 16),
        ("pid_t", "prev_pid", 24, 4),
        ("long", "prev_state", 28, 4),
        ("char", "next_comm[16]", 32, 16),
        ("pid_t", "next_pid", 48, 4),
    ];
    let cfs = ["util", "runnable", "est", "sum", "contrib", "at", "cpu", "ov", "parent"];
    let cfs_fields: Vec<_> =
        cfs.iter().enumerate().map(|(i, name)| ("u32", *name, 8 + 4 * i, 4)).collect();
    for (name, text) in [
        ("rt/pelt_cfs", format(PELT_CFS, &cfs_fields)),
        ("sched/sched_switch", format(SWITCH, &switch_fields)),
        ("ftrace/print", format(PRINT, &[("char", "buf[]", 8, 0)])),
        ("power/cpu_frequency", format(FREQ, &[("u32", "state", 8, 4), ("u32", "cpu_id", 12, 4)])),
        ("rt/uest_se", format(UTIL_EST, &[("s32", "pid", 8, 4), ("u32", "est", 12, 4)])),
        ("rt/cfs_period", format(PERIOD, &[("s32", "css", 8, 4)])),
        (
            "cpuhp/cpuhp_enter",
            format(
                PLUG_ENTER,
                &[("u32", "cpu", 8, 4), ("int", "target", 12, 4), ("int", "idx", 16, 4)],
            ),
        ),
        (
            "cpuhp/cpuhp_exit",
            format(
                PLUG_EXIT,
                &[("u32", "cpu", 8, 4), ("int", "state", 12, 4), ("int", "idx", 16, 4)],
            ),
        ),
    ] {
        w.section(&format!("format {name}"), text.as_bytes()).unwrap();
    }
    let freq = |khz: i32, cpu: i32| event(FREQ, &[Word::N(khz), Word::N(cpu)]);
    // CPU 4 goes, and comes back.
    let plug = |id, word: i32, step: i32| event(id, &[4, word, step].map(Word::N));
    let cpu0 = [
        (0, mark("rt freq 4 828000")),
        (20, mark("rt mono 500")),
        (80, mark("rt start")),
        (400, freq(972_000, 0)),
        (0, freq(972_000, 1)),
        (10, plug(PLUG_ENTER, 142, 234)),
        (10, freq(1_500_000, 5)),
        (0, event(PERIOD, &[Word::N(3)])),
        (100, plug(PLUG_ENTER, 235, 234)),
        (30, plug(PLUG_EXIT, 234, 234)),
        (450, mark("rt end")),
    ];
    let est = event(UTIL_EST, &[Word::N(70), Word::N(i32::MIN | 229)]);
    let cpu4 = [
        (0, pelt_cfs(60, 999_000, 0)),
        (0, pelt_cfs(20, 1_000_000, 0)),
        (0, pelt_cfs(500, 1_000_000, 9)),
        (0, switch(0, 0, 70)),
        (200, mark("rt phase 0 1")),
        (0, est),
        (100, switch(70, 0x100, 99)),
        (100, switch(99, 1, 70)),
        (1, switch(70, 0x10, 0)),
        (10_000, switch(0, 0, 70)),
    ];
    w.section("pages 0", &page(1_000_000, &cpu0)).unwrap();
    w.section("pages 4", &page(1_000_050, &cpu4)).unwrap();
    w.finish().unwrap()
}

/// Every event but idle ones, as text.
struct Shown(Vec<(u64, String)>);

impl TraceSink for Shown {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, e: &Event) {
        let keep = !matches!(e, Event::Idle { .. });
        self.0.extend(keep.then(|| (at.0, format!("{e:?}"))));
    }
    fn end(&mut self, _: Instant) {}
}

#[test]
fn a_trace_starts_at_its_mark_in_the_state_of_that_moment() {
    let mut values = obedient("linux-7.2");
    values.insert("a_tick".into(), "5000000".into());
    let rig = Rig::answering("good", &answer(&values));
    let (done, trace) = rig.run("linux-7.2");
    let done = done.unwrap();
    assert!(rig.is_clean());
    assert_eq!(done.end.0, 1000);
    let header = trace.header().unwrap();
    assert_eq!(
        (
            header.run.kernel_release.as_str(),
            header.machine.platform.hz,
            header.run.backend.as_str(),
        ),
        ("7.2.1", 250, "vm")
    );
    assert_eq!(header.machine.settings.get(&risetime_sim::settings::SCHED_ENERGY_AWARE), Some(1));
    let period = PeriodMemory { group: GroupId(2), ends: Instant(420) };
    assert_eq!(header.image.periods, [period], "the root group is 1");
    assert_eq!(
        header.image.tick,
        Some(Instant(5_000_000 - 500 - 80)),
        "80 from that mark to the start"
    );
    let mut seen = Shown(Vec::new());
    trace.replay(&mut seen);
    let user = |why| Event::TaskNew {
        task: TaskId(0),
        comm: "rampup".into(),
        user: true,
        cpu: CpuId(4),
        why,
        max_speed: Util(1024),
    };
    let other = Event::TaskNew {
        task: TaskId(1),
        comm: "b".into(),
        user: false,
        cpu: CpuId(4),
        why: Why::Unknown,
        max_speed: Util(1024),
    };
    let switch = |prev, next| Event::Switch { cpu: CpuId(4), prev, next };
    let (task, system) = (TaskId(0), TaskId(1));
    // The last update before time 0, which is 1,000,100 in the kernel's clock; none of the group's.
    let before = Event::PeltCfs {
        cpu: CpuId(4),
        util_avg: Util(20),
        runnable_avg: Util(20),
        util_est: Util(20),
        util_sum: 20,
        period_contrib: 7,
        last_update_time: ClockPelt(100_u64.wrapping_neg()),
    };
    let wanted = [
        (0, Event::Freq { cpu: CpuId(0), freq: KHz(600_000) }),
        (0, Event::Freq { cpu: CpuId(4), freq: KHz(828_000) }),
        (0, user(Why::FirstCpu)),
        (0, switch(None, Some(task))),
        (0, before),
        (0, Event::Overutilized { on: true }),
        (150, Event::Phase { task, index: 1, name: "busy".into() }),
        (150, Event::UtilEst { task, util_est: Util(229) }),
        (250, other),
        (250, switch(Some((task, SwitchOut::Preempted)), Some(system))),
        (350, switch(Some((system, SwitchOut::Sleeping)), Some(task))),
        (351, switch(Some((task, SwitchOut::Exited)), None)),
        (400, Event::Freq { cpu: CpuId(0), freq: KHz(972_000) }),
        (410, Event::Hotplug { cpu: CpuId(4), online: false }),
        // Its policy goes on with CPU 5, and is still called CPU 4's.
        (420, Event::Freq { cpu: CpuId(4), freq: KHz(1_500_000) }),
        (550, Event::Hotplug { cpu: CpuId(4), online: true }),
    ];
    let wanted: Vec<(u64, String)> = wanted.iter().map(|(at, e)| (*at, format!("{e:?}"))).collect();
    // What the kernel does not tell itself: `reasons.rs`.
    let told = seen.0.into_iter().filter(|(_, event)| !event.starts_with("FreqRequest"));
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_kernel_that_is_not_as_told_ends_the_run() {
    let with = |policy: &str, path: &str, value: &str| {
        let mut values = obedient(policy);
        assert_ne!(values.insert(path.into(), value.into()).as_deref(), Some(value));
        let rig = Rig::answering("told", &answer(&values));
        let (done, trace) = rig.run(policy);
        assert!(trace.header().is_none(), "no trace of a run that is not what was asked for");
        done.unwrap_err().to_string()
    };
    let cpu = "/sys/devices/system/cpu";
    let plain = "linux-7.2";
    assert_eq!(
        with(plain, &format!("{cpu}/cpu2/cpu_capacity"), "458"),
        format!("{cpu}/cpu2/cpu_capacity: the kernel says \"458\", wanted \"459\"")
    );
    let limited = "linux-7.2+rate_limit_us=10000";
    let tunable = format!("{cpu}/cpufreq/schedutil/rate_limit_us");
    assert_eq!(
        with(limited, &tunable, "84"),
        format!("{tunable}: the kernel says \"84\", wanted \"10000\"")
    );
    let e = with(limited, &format!("failed {tunable}"), "No such file or directory");
    assert_eq!(
        e,
        format!(
            "setting rate_limit_us=10000: Linux 7.2.1 does not take it: {tunable}: no such file or directory"
        )
    );
    let e = with("linux-6.12", "release", "7.9.1");
    assert!(e.starts_with("linux-6.12: is of Linux 6.12, the kernel that booted is 7.9.1"), "{e}");
    let frequencies = format!("{cpu}/cpufreq/policy0/scaling_available_frequencies");
    assert!(
        with(plain, &frequencies, "600000 972000")
            .contains("wanted \"600000 972000 1332000 1704000 2064000\"")
    );
    let model = "/sys/kernel/debug/energy_model/cpu0/ps:600000";
    assert_eq!(
        with(plain, &format!("{model}/inefficient"), "1"),
        "energy model of CPUs 0-3 at 600000 kHz: inefficient: the kernel says \"1\", wanted \"0\""
    );
    let aware = "/proc/sys/kernel/sched_energy_aware";
    assert_eq!(with(plain, aware, ""), format!("{aware}: the kernel says \"\", wanted \"1\""));
}

#[test]
fn ticks_that_the_kernel_has_not_end_the_run() {
    let rig = Rig::answering("ticks", &answer(&obedient("linux-7.2")));
    let at = |hz: i64| {
        let mut e = experiment("linux-7.2");
        e.settings.set(&risetime_model::settings::keys::HZ, hz);
        rig.vm.run(&e, &mut ())
    };
    at(250).expect("what it was built with");
    let e = at(1000).unwrap_err().to_string();
    assert!(e.starts_with("--hz: found 1000, the kernel that booted was built with HZ=250"), "{e}");
}

#[test]
fn an_answer_that_is_damaged_cut_or_an_apology_is_no_result() {
    let good = answer(&obedient("linux-7.2"));
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    assert!(
        Rig::answering("flipped", &flipped)
            .error()
            .contains("the guest's answer is damaged or incomplete")
    );
    assert!(
        Rig::answering("cut", &good[..good.len() - 30])
            .error()
            .contains("the guest's answer is damaged or incomplete")
    );
    let mut w = Writer::new(Vec::new()).unwrap();
    w.section("error", b"module /modules/cpufreq-dt.ko: Exec format error").unwrap();
    assert_eq!(
        Rig::answering("sorry", &w.finish().unwrap()).error(),
        "the guest: module /modules/cpufreq-dt.ko: Exec format error"
    );
}

#[test]
fn a_guest_that_dies_leaves_its_last_words_and_nothing_else() {
    let rig = Rig::new(
        "panic",
        "echo booting > console; printf 'Kernel panic - not syncing\\r\\n\\033[0m' >> console; echo no disk >&2",
    );
    let e = rig.error();
    assert_eq!(
        e,
        "the guest ended without an answer\n  QEMU, last lines:\n  | no disk\n  the guest's console, last lines:\n  | booting\n  | Kernel panic - not syncing\n  | [0m"
    );
    assert!(rig.is_clean());
    // A partial answer of a QEMU that was killed is no answer.
    let rig = Rig::new("killed", "echo half > answer; kill -9 $$");
    assert_eq!(rig.error(), "QEMU ended with signal 9");
    assert!(rig.is_clean());
    assert_eq!(Rig::new("status", "exit 3").error(), "QEMU ended with exit code 3");
}

#[test]
fn a_guest_that_does_not_end_is_ended() {
    let mut rig = Rig::new("hang", "echo $$ > $DIR/pid; echo waiting > console; exec sleep 1000");
    rig.vm.limit = Some(Duration::from_millis(300));
    let since = Clock::now();
    assert_eq!(
        rig.error(),
        "the guest did not end within 0 s\n  the guest's console, last lines:\n  | waiting"
    );
    assert!(since.elapsed() < Duration::from_secs(10));
    let pid = fs::read_to_string(rig.dir.join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "process {pid} is still there");
    assert!(rig.is_clean());
}

#[test]
fn a_kernel_that_never_starts_the_agent_is_given_up_early() {
    let start = |rig: &Rig| {
        let machine = Machine {
            qemu: &rig.vm.qemu,
            kernel: &rig.vm.kernel,
            device_tree: b"",
            initramfs: b"",
            cpus: 1,
            boot: "",
            shift: 1,
            late: b"",
        };
        let (boot, limit) = (Duration::from_millis(300), Duration::from_secs(20));
        Boot::start(&machine).unwrap().answer(boot, limit).map_err(|e| e.to_string())
    };
    let e = start(&Rig::new("mute", "exec sleep 100")).unwrap_err();
    assert!(e.starts_with("the kernel did not start its first program within 0 s"), "{e}");
    let alive = Rig::new("alive", ": > alive; sleep 0.5; echo well > answer");
    assert_eq!(start(&alive).unwrap(), b"well\n");
}

#[test]
fn what_is_missing_is_named() {
    let mut rig = Rig::new("missing", "");
    rig.vm.qemu.command = vec!["/no/such/qemu".into()];
    let (done, _) = rig.run("linux-7.2");
    assert!(done.is_err());
    let mut rig = Rig::new("agentless", "");
    rig.vm.agent = "/no/such/agent".into();
    assert_eq!(
        rig.run("linux-7.2").0,
        Err(RunError::Unavailable("/no/such/agent: No such file or directory (os error 2)".into()))
    );
}

/// On a device tree as in a simulation, the task created first is the one that starts where it is said.
#[test]
fn the_first_cpu_is_that_of_the_task_created_first() {
    let text = r#"{"tasks": {"late": {"delay": 5000, "cpus": [2], "run": 1}, "a": {"cpus": [6], "run": 1}}}"#;
    let workload = Arc::new(Workload::parse(text, "w").unwrap());
    let e = Experiment { workload, ..experiment("linux-7.2") };
    assert_eq!(planned(&e, &[]).unwrap().job.first_cpu, 6);
}

#[test]
fn a_run_that_takes_another_course_is_repeated() {
    // The second run differs from the first, the third does not.
    let script = "echo x >> $DIR/count; test $(wc -l < $DIR/count) = 2 && cp $DIR/odd answer || cp $DIR/said answer";
    let mut rig = Rig::new("course", script);
    rig.vm.memory = Some(rig.dir.join("boots"));
    let mut values = obedient("linux-7.2");
    fs::write(rig.dir.join("said"), answer(&values)).unwrap();
    values.insert("start_ns".into(), "1".into());
    fs::write(rig.dir.join("odd"), answer(&values)).unwrap();
    for _ in 0..2 {
        let notes = rig.run("linux-7.2").0.unwrap().notes;
        let [ran, random] = &notes[..] else { panic!("{notes:?}") };
        assert!(ran.starts_with(
            "Linux 7.2.1 ran, built with HZ=250; its policy here is linux-7.2. m1 says hz=1000"
        ));
        assert!(random.starts_with("ni_random=0"), "{notes:?}");
    }
    assert_eq!(fs::read_to_string(rig.dir.join("count")).unwrap().lines().count(), 3);
}

/// The order in which tasks wake follows from when they began, and the simulator's begin in time.
#[test]
fn tasks_that_were_started_late_are_named() {
    let task = |comm: &str| JobTask { comm: comm.into(), ..JobTask::default() };
    let job = Job { tasks: vec![task("a"), task("b"), task("c")], first_cpu: 3, ..Job::default() };
    let values = |late: &[(&str, &str)]| {
        late.iter().map(|(name, ns)| (name.to_string(), ns.to_string())).collect()
    };
    assert_eq!(started_late(&job, &values(&[("task.1.pid", "7")])), None);
    let late = [("task.1.late_ns", "8112000"), ("task.2.late_ns", "9700000")];
    let note = started_late(&job, &values(&late)).expect("two were late");
    assert!(note.starts_with("b, c started up to 9.7 ms late: tasks had CPU3"), "{note}");
}

#[test]
fn zones_that_a_machine_cannot_have_are_told() {
    let told = |arg: &str, thermal: Vec<Zone>| {
        let mut e = experiment(&format!("linux-7.2{arg}"));
        e.platform = Arc::new(Platform { thermal, ..Platform::clone(&e.platform) });
        notes(&e, &BTreeMap::new()).iter().any(|n| n.contains("thermal zones are without effect"))
    };
    assert!(told("", vec![zone()]));
    assert!(!told("+thermal=0", vec![zone()]) && !told("", Vec::new()));
}

/// A machine that cannot be held is booted each time; only once is it tried, three times.
#[test]
fn a_machine_that_cannot_be_held_is_booted() {
    let script = "case \"$*\" in *-qmp*) echo x >> $DIR/held; exit 3;; esac; cp $DIR/said answer";
    let mut rig = Rig::new("unheld", script);
    rig.vm.hold = true;
    fs::write(rig.dir.join("said"), answer(&obedient("linux-7.2"))).unwrap();
    for _ in 0..4 {
        assert!(rig.run("linux-7.2").0.is_ok());
    }
    assert_eq!(fs::read_to_string(rig.dir.join("held")).unwrap().lines().count(), 3);
    assert!(rig.is_clean() && rig.vm.resumed() == 0);
}

#[test]
fn commands_from_a_pipe_are_answered_on_the_output() {
    let platform = Platform::load("m1").unwrap();
    let say = |rig: &Rig, input: &str| {
        let mut out = Vec::new();
        let done = rig.vm.commands(&platform, input.as_bytes(), &mut out);
        (done.map_err(|e| e.to_string()), String::from_utf8(out).unwrap())
    };
    let shell = r#"printf 'Linux\n/ # '
        while read line; do
            echo "$line"
            [ "$line" = exit ] && exit 0
            [ "$line" = die ] && { echo "Kernel panic"; exit 7; }
            printf 'so: %s\n/sys # ' "$line"
        done"#;
    let rig = Rig::new("pipe", shell);
    assert_eq!(say(&rig, "freq\nls x\n"), (Ok(()), "so: freq\nso: ls x\n".to_string()));
    assert!(rig.is_clean());
    let (done, out) = say(&rig, "freq\ndie\nfreq\n");
    assert_eq!(out, "so: freq\nKernel panic\n");
    assert!(done.unwrap_err().contains("exit code 7"));
    let (done, out) = say(&rig, "freq\n\u{1b}[A\n");
    assert_eq!((out.as_str(), rig.is_clean()), ("so: freq\n", true));
    assert!(done.unwrap_err().contains("standard input: line 2 has the control character 0x1b"));
    let (done, _) = say(&Rig::new("pipe-none", "echo no tree; exit 1"), "freq\n");
    let said = done.unwrap_err();
    assert!(said.contains("no shell came") && said.contains("no tree"), "{said}");
}

#[test]
fn a_run_has_another_identity_if_anything_that_its_trace_depends_on_is_another() {
    let rig = Rig::new("identity", "exit 0");
    let own = experiment("linux-7.2");
    let of = |e: &Experiment| rig.vm.identity(e).unwrap().unwrap();
    let first = of(&own);
    assert_eq!(first, of(&own.clone()));
    let later = own.later(Span::from_us(1));
    let other_policy = experiment("linux-7.2+rate_limit_us=70");
    let other_workload =
        Experiment { workload: Arc::new(Workload::load("periodic").unwrap()), ..own.clone() };
    let mut platform = (*own.platform).clone();
    platform.domains[0].idle[0].power.0 += 1;
    let other_power = Experiment { platform: Arc::new(platform), ..own.clone() };
    let mut all = vec![first, of(&later), of(&other_policy), of(&other_workload), of(&other_power)];
    fs::write(rig.dir.join("agent"), b"y").unwrap();
    all.push(of(&own));
    fs::write(rig.dir.join("Image"), b"another kernel").unwrap();
    all.push(of(&own));
    let mut qemu = rig.vm.clone();
    qemu.qemu.version = (10, 1);
    all.push(qemu.identity(&own).unwrap().unwrap());
    let n = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), n);
    assert!(all.iter().all(|word| word.len() == 16));
}
