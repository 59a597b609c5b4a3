//! Energy from residencies equals energy from events.
//!
//! ```text
//!   energy = Σ over CPUs, states   time in the state · power of the state
//!   state  = busy at an OPP | idle in a state | idle in none (as the shallowest)
//! ```
//!
//! The analysis integrates while events arrive. Here the whole trace is taken first: each CPU's busy
//! times, idle states and frequencies become three lists of changes, the run is cut wherever one of
//! them changes, and what holds in a piece is looked up. Nothing is shared with the analysis but the
//! events and the platform's powers.
//!
//! Both sides add up whole ns and whole µW · ns. So times are equal to the ns, and an energy may differ by
//! no more than the two roundings to a float that each side makes of the same integer (to f64, and its
//! quotient by 10¹²): 4 · 2⁻⁵³ of it.

use risetime_analysis::{Options, RunResult};
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_lab::run;
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_sim::Simulator;
use risetime_trace::{Event, Memory};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Busy(KHz),
    Idle(Option<u32>),
}

/// By CPU and state, in ns.
type Residencies = BTreeMap<(CpuId, State), u64>;

/// What changes, and when, in the order of the trace.
#[derive(Clone)]
struct Changes<T>(Vec<(u64, T)>);

impl<T: Copy> Changes<T> {
    /// What holds from `at` on, after all changes of that moment.
    fn from(&self, at: u64) -> Option<T> {
        let until = self.0.partition_point(|(t, _)| *t <= at);
        Some(self.0[until.checked_sub(1)?].1)
    }
}

fn residencies(trace: &Memory, platform: &Platform) -> Residencies {
    let end = trace.end().0;
    let mut all = Residencies::new();
    for cpu in platform.cpus() {
        let domain = &platform.domains[platform.domain_of(cpu).expect("a CPU")];
        let (mut busy, mut idle, mut freq) =
            (Changes(vec![(0, false)]), Changes(vec![(0, None)]), Changes(Vec::new()));
        let mut handles = Changes(vec![(0, false)]);
        for (at, event) in trace.events() {
            match *event {
                Event::Switch { cpu: c, next, .. } if c == cpu => {
                    busy.0.push((at.0, next.is_some()));
                }
                Event::Idle { cpu: c, state } if c == cpu => idle.0.push((at.0, state)),
                Event::Irq { cpu: c, enters } if c == cpu => handles.0.push((at.0, enters)),
                Event::Freq { cpu: c, freq: to } if domain.cpus.contains(&c) => {
                    freq.0.push((at.0, to));
                }
                _ => {}
            }
        }
        let mut cuts = vec![0, end];
        cuts.extend(busy.0.iter().map(|c| c.0));
        cuts.extend(idle.0.iter().map(|c| c.0));
        cuts.extend(freq.0.iter().map(|c| c.0));
        cuts.extend(handles.0.iter().map(|c| c.0));
        cuts.sort_unstable();
        cuts.dedup();
        for piece in cuts.windows(2) {
            let at = piece[0];
            // An interrupt's handler is work, too.
            let works = |what: &Changes<bool>| what.from(at).expect("from 0 on");
            let state = match works(&busy) || works(&handles) {
                true => State::Busy(freq.from(at).expect("a frequency from 0 on")),
                false => State::Idle(idle.from(at).expect("from 0 on")),
            };
            *all.entry((cpu, state)).or_default() += piece[1] - at;
        }
    }
    all
}

/// In µW.
fn power(platform: &Platform, cpu: CpuId, state: State) -> u64 {
    let domain = &platform.domains[platform.domain_of(cpu).expect("a CPU")];
    match state {
        State::Busy(freq) => domain.opps.iter().find(|o| o.freq == freq).expect("an OPP").power.0,
        State::Idle(state) => domain.idle.get(state.unwrap_or(0) as usize).map_or(0, |s| s.power.0),
    }
}

fn experiment(platform: &str, workload: &str, set: &[(&str, Value)], ms: u64) -> Experiment {
    let workload = match workload.starts_with('{') {
        true => Workload::parse(workload, "made"),
        false => Workload::load(workload),
    };
    let platform = Platform::load(platform).expect("built in");
    let set: Vec<(String, Value)> = set.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    let policy = Policy::from_arg_with("mainline", &set).expect("a policy");
    let settings = risetime_sim::resolve(&platform, &policy).expect("settings");
    Experiment {
        platform: Arc::new(platform),
        workload: Arc::new(workload.expect("a workload")),
        policy,
        settings,
        duration: Span::from_ms(ms),
        phase: Span(0),
        seed: 1,
    }
}

/// A time that the analysis tells in ms, in the ns that it counted.
fn ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

fn same_energy(told_mj: f64, counted: u128, what: &str) {
    let counted_mj = counted as f64 / 1e12;
    let bound = counted_mj * 2f64.powi(-51);
    assert!((told_mj - counted_mj).abs() <= bound, "{what}: {told_mj} mJ, counted {counted_mj}");
}

/// Holds the analysis of `e` to its trace, and gives both.
fn counted(e: &Experiment) -> (RunResult, Residencies) {
    let mut trace = Memory::new();
    let result = run(&Simulator, e, Options::default(), Some(&mut trace)).expect("runs").result;
    let (p, all) = (&e.platform, residencies(&trace, &e.platform));
    let name = format!("{} on {}", e.workload.name, p.name);
    let mut total = Some(0);
    for told in &result.cpus {
        let what = format!("{name}, CPU{}", told.cpu.0);
        let own: Vec<(State, u64)> =
            all.iter().filter(|((c, _), _)| *c == told.cpu).map(|((_, s), t)| (*s, *t)).collect();
        assert_eq!(own.iter().map(|s| s.1).sum::<u64>(), e.duration.0, "{what}: all of its time");
        let energy: u128 =
            own.iter().map(|(s, t)| u128::from(*t) * u128::from(power(p, told.cpu, *s))).sum();
        // A power that nobody knows is written as 0, and no energy is told.
        let unknown = own.iter().any(|(s, ns)| *ns > 0 && power(p, told.cpu, *s) == 0);
        assert_eq!(told.energy_mj.is_none(), unknown, "{what}: {:?}", told.energy_mj);
        if let Some(mj) = told.energy_mj {
            same_energy(mj, energy, &what);
        }
        total = total.filter(|_| !unknown).map(|sum| sum + energy);
        let busy: u64 = own.iter().filter(|(s, _)| matches!(s, State::Busy(_))).map(|s| s.1).sum();
        assert_eq!(ns(told.busy_ms), busy, "{what}: busy");
        let names = &p.domains[p.domain_of(told.cpu).expect("a CPU")].idle;
        let idle: Vec<(String, u64)> = own
            .iter()
            .filter_map(|(s, t)| match s {
                State::Idle(Some(state)) => Some((names[*state as usize].name.clone(), *t)),
                _ => None,
            })
            .collect();
        let told_idle: Vec<(String, u64)> =
            told.idle.iter().map(|(name, ms)| (name.clone(), ns(*ms))).collect();
        assert_eq!(told_idle, idle, "{what}: idle");
    }
    assert_eq!(result.energy_mj.is_some(), total.is_some(), "{name}: {:?}", result.energy_mj);
    if let (Some(mj), Some(total)) = (result.energy_mj, total) {
        same_energy(mj, total, &name);
    }
    (result, all)
}

#[test]
fn energy_from_residencies_equals_energy_from_events() {
    let mixed = r#"{"tasks": {
        "spin": {"loop": -1, "phases": {"a": {"run": 40000}, "b": {"loop": 9, "run": 900, "sleep": 4000}}},
        "frames": {"instance": 3, "loop": -1, "run": 3000, "timer": {"ref": "unique", "period": 16667}},
        "rt": {"policy": "SCHED_FIFO", "loop": -1, "run": 200, "sleep": 2900},
        "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 10000, "loop": -1, "run": 5000}}}"#;
    let leaving = r#"{"global": {"hotplug": [
            {"at_us": 50000, "cpu": 1, "online": 0}, {"at_us": 90000, "cpu": 5, "online": 0},
            {"at_us": 180000, "cpu": 1, "online": 1}]},
        "tasks": {"spin": {"instance": 3, "loop": -1, "run": 9000, "sleep": 1000}, "frames": {"instance": 3,
            "loop": -1, "run": 2000, "timer": {"ref": "unique", "period": 8000}}}}"#;
    let int = |name, n| (name, Value::Int(n));
    let governor = |name: &str| ("governor", Value::Name(name.into()));
    // What the runs, together, must have been in for this to say anything.
    let (mut freqs, mut states, mut stateless) = (0, BTreeMap::new(), 0);
    for e in [
        experiment("m1", "rampup", &[], 2000),
        experiment("m1", leaving, &[], 300),
        // Clusters that sleep; frequencies that take 300 µs and 1.5 ms, through a kthread.
        experiment("hikey960", mixed, &[], 400),
        experiment("hikey960", leaving, &[], 300),
        experiment("hikey620", mixed, &[], 400),
        experiment("pixel6", "phone", &[], 150),
        experiment("rpi4", mixed, &[governor("powersave")], 400),
        experiment("intel-hybrid", mixed, &[int("irq_period_us", 700), int("irq_us", 60)], 200),
        experiment("server64", leaving, &[], 150),
        experiment("m1", mixed, &[int("stop_work_ns", 50_000), int("timer_slack_ns", 50_000)], 300),
        experiment("juno", "idle", &[], 200),
    ] {
        let (_, all) = counted(&e);
        for ((_, state), ns) in &all {
            match state {
                State::Busy(_) => freqs += 1,
                State::Idle(Some(state)) => *states.entry(*state).or_insert(0) += ns,
                State::Idle(None) => stateless += ns,
            }
        }
    }
    assert!(freqs > 100, "busy at {freqs} OPPs of CPUs");
    assert!((0..3).all(|s| states.get(&s).is_some_and(|ns| *ns > 100_000_000)), "{states:?}");
    assert_eq!(stateless, 0, "between idle states it handles an interrupt, which is work");
}

/// One task of which it is known by hand what it takes, and a CPU that goes offline.
#[test]
fn a_second_of_work_at_the_highest_frequency_costs_its_power() {
    let text = r#"{"global": {"hotplug": [{"at_us": 500000, "cpu": 7, "online": 0}]},
        "tasks": {"t": {"cpus": [4], "loop": 1, "runtime": 1000000}}}"#;
    let e = experiment("m1", text, &[("governor", Value::Name("performance".into()))], 2000);
    let (result, all) = counted(&e);
    let big = &e.platform.domains[1];
    let top = State::Busy(big.freq_max());
    assert_eq!(all[&(CpuId(4), top)], 1_000_000_000);
    let busy = u128::from(big.opps[big.opps.len() - 1].power.0) * 1_000_000_000;
    let deepest = big.idle.len() - 1;
    let off = all[&(CpuId(7), State::Idle(Some(deepest as u32)))];
    assert!(off >= 1_500_000_000, "offline is the deepest state: {off} ns");
    let rest = result.cpus[4].energy_mj.expect("its power is known") - busy as f64 / 1e12;
    let (least, most) = (big.idle[deepest].power.0, big.idle[0].power.0);
    assert!(rest >= least as f64 / 1e3 && rest <= most as f64 / 1e3, "idle: {rest} mJ");
}
