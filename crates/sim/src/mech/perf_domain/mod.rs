//! Performance domains: which energy model the scheduler has of each frequency domain, and when it uses it.
//!
//! ```text
//! energy_model   table    power of each OPP, from the platform                     since 5.0
//!                cppc     artificial: a state each 20 of capacity                  cppc_cpufreq, since 5.19
//!                         cost = 204 · efficiency class + number of the state
//!                hybrid   artificial: 40, 60, 80, 100 % of the capacity            intel_pstate, since 6.16
//!                         cost = 2, 3, 4, 5 + 0, 1, 2 by kind of core
//! em_coherent    0        the highest state's frequency is taken to have the CPU's capacity of the moment
//!                1        the model keeps the pair of capacity and frequency with which it was made
//! opp_capacity   1        the scheduler keeps the capacity of each OPP, where it is not in proportion
//! EAS            off until eas_ready_ms; with eas_off_in_boost whenever a governor wants a boost OPP
//! ```
//!
//! An artificial model has costs and no powers: it serves CPUs without fixed OPPs, whose driver only knows how efficient
//! kinds of core are compared. Efficiency classes come from firmware; here they are the ranks of the capacities.
//!
//! Why a pair can stop being one: the model counts boost OPPs, whether boost is on or not, and gives the highest of them
//! the capacity that belongs to the highest ordinary one; and a limit for good changes the capacity and not the model.
//!
//! Source: kernel/power/energy_model.c:em_init_performance, em_adjust_new_capacity; include/linux/energy_model.h;
//! drivers/cpufreq/cppc_cpufreq.c:cppc_get_cpu_power, cppc_get_cpu_cost, intel_pstate.c:hybrid_get_cost. What only a
//! patch would have: the talk on system pressure of OSPM 2023.

pub(crate) mod estimate;
pub(crate) mod state;

use crate::kernel::Kernel;
use crate::kernel::clock::is_freq_invariant;
use crate::kernel::governor::SCHEDUTIL;
use crate::mech::mechanism::Mechanism;
use crate::mech::muqss;
use crate::mech::perf_domain::state::Switches;
use crate::mech::perf_domain::state::{PerfDomain, Scale};
use crate::mech::pixel;
use crate::mech::pressure;
use crate::mech::pstate;
use crate::mech::slots::Id;
use crate::state::machine::{FreqDomain, Machine};
use crate::time::queue::{Ev, Planned};
use risetime_kernel::energy_model::{
    EmPerfState, cppc_states, em_compute_costs_at, em_init_performance, em_recalc_costs,
    hybrid_states, is_too_complex_pre_6_7,
};
use risetime_kernel::units::Instant;
use risetime_kernel::units::{Capacity, KHz, MicroWatts, Span, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::{Domain, Opp};
use risetime_model::settings::{
    Default, Group, Home, Int, Name, Neutral, Param, Range, Settings, Value,
};
use risetime_model::{Experiment, InputError, Platform, Policy};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, _: &Machine) -> Switches {
        Switches {
            coherent: on(&e.settings, &COHERENT),
            off_in_boost: on(&e.settings, &OFF_IN_BOOST),
        }
    }
    fn of_domain(e: &Experiment, index: usize) -> PerfDomain {
        perf_domain(e, index)
    }
    fn bends(m: &Machine) -> bool {
        m.domains.iter().any(|d| !d.scale.of_opp.is_empty())
    }
    fn plans(e: &Experiment, _: &Machine) -> Vec<(Instant, Ev)> {
        let at = ready_after(&e.settings).map(|after| Instant(0) + e.phase + after);
        let planned = Ev::MechanismLast(Planned::only(Id::perf_domain));
        at.map(|at| (at, planned)).into_iter().collect()
    }
    /// Registers the energy model.
    fn event(k: &mut Kernel, _: Planned) -> bool {
        k.m.root.energy_model = true;
        true
    }
}

const ENERGY_MODEL: Name = Name::new(Param {
    name: "energy_model",
    doc: "costs that EAS goes by: table = powers of the OPPs; cppc, hybrid = the artificial models of cppc_cpufreq (since 5.19) and intel_pstate (since 6.16), for CPUs without fixed OPPs",
    unit: "",
    range: Range::OneOf(KINDS),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("table")),
});
const COHERENT: Int = Int::new(Param {
    name: "em_coherent",
    doc: "whether the energy model keeps the pair of capacity and frequency with which it was made, boost OPPs and limits or not (unset: 0, as in every release)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});
const OPP_CAPACITY: Int = Int::new(Param {
    name: "opp_capacity",
    doc: "whether the scheduler keeps the capacity of each OPP, instead of taking it in proportion to the frequency (since 6.9; unset: 0, as in every release)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});
const OFF_IN_BOOST: Int = Int::new(Param {
    name: "eas_off_in_boost",
    doc: "whether placement does without energy while a governor wants a boost OPP anywhere (unset: 0, as in every release)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});
const READY: Int = Int::new(Param {
    name: "eas_ready_ms",
    doc: "time after the workload's start from which on there is an energy model: before, drivers have yet to register theirs, and placement does without",
    unit: "ms",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});
const KINDS: &[&str] = &["table", "cppc", "hybrid"];

/// Whether placement goes by energy.
pub const SCHED_ENERGY_AWARE: Int = Int::new(Param {
    name: "sched_energy_aware",
    doc: "energy-aware wakeup placement (only with schedutil everywhere, unequal capacities and known power)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Derived(
        "1 from 5.0 on; before, only Android's kernels had it",
        |_, policy| Some(Value::Int(policy.kernel.has(features::EAS).into())),
    ),
    home: Home::Sysctl("kernel.sched_energy_aware"),
});

const GROUP: Group =
    Group::of(&[ENERGY_MODEL.0, COHERENT.0, OPP_CAPACITY.0, OFF_IN_BOOST.0, READY.0])
        .titled("The energy model")
        .checked(check);

/// Whether a switch is on.
fn on(settings: &Settings, of: &Int) -> bool {
    settings.get(of) == Some(1)
}

/// Refuses what this kernel, or this platform, lacks.
fn check(platform: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let refused = |name: &str, value: &str, what: String| {
        Err(policy.at_setting(InputError::of_setting(name, value, what)))
    };
    let since = match settings.get(&ENERGY_MODEL) {
        Some("cppc") => Some(features::CPPC_EM),
        Some("hybrid") => Some(features::HYBRID_EM),
        _ => None,
    };
    if let Some(since) = since.filter(|since| !policy.kernel.has(*since)) {
        let (name, what) = (settings.get(&ENERGY_MODEL).unwrap_or("").to_owned(), since.first);
        return refused(
            ENERGY_MODEL.name,
            &name,
            format!("is there since {what}, not in {}", policy.kernel),
        );
    }
    if let (Some(model), Some(why)) =
        (settings.get(&ENERGY_MODEL), no_energy(platform, policy.kernel, settings))
    {
        let what =
            InputError::of_setting(ENERGY_MODEL.name, model, format!("has no effect: {why}"));
        let hint = "energy-aware placement goes by it: under schedutil, where capacities differ and \
            cores have one thread each";
        return Err(policy.at_setting(what.hint(hint)));
    }
    if on(settings, &OPP_CAPACITY) {
        if !policy.kernel.has(features::EM_PERFORMANCE) {
            let since = features::EM_PERFORMANCE.first;
            let what = format!("wanted {since} or newer, found {}", policy.kernel);
            return refused(OPP_CAPACITY.name, "1", what);
        }
        if platform.domains.iter().all(|d| d.opps[0].capacity.is_none()) {
            let what =
                format!("has no effect: no OPP of {} has a capacity of its own", platform.name);
            return refused(OPP_CAPACITY.name, "1", what);
        }
    }
    if on(settings, &OFF_IN_BOOST)
        && !platform.domains.iter().any(|d| d.opps.iter().any(|o| o.turbo))
    {
        let what = format!("has no effect: {} has no boost OPPs", platform.name);
        return refused(OFF_IN_BOOST.name, "1", what);
    }
    Ok(())
}

/// The reason why nothing goes by an energy model, whatever that is. Source: topology.c:sched_is_eas_possible.
fn no_energy(platform: &Platform, rev: KernelRev, settings: &Settings) -> Option<String> {
    let name = &platform.name;
    let capacity = platform.domains.first().map(|d| d.capacity);
    if platform.topology.smt() {
        return Some(format!("cores of {name} have several threads, which keeps EAS off"));
    }
    if platform.domains.iter().all(|d| Some(d.capacity) == capacity) {
        return Some(format!("all CPUs of {name} have one capacity, which keeps EAS off"));
    }
    let governor = pstate::governor_in_force(platform, settings).name;
    (governor != SCHEDUTIL && rev.has(features::EAS))
        .then(|| format!("the governor is {governor}, which keeps EAS off"))
}

/// Whether EAS is possible on this machine where capacities are unequal, under the governor called `governor` (what
/// `sched_is_eas_possible` asks for besides).
pub(crate) fn is_possible(e: &Experiment, domains: &[FreqDomain], governor: &str) -> bool {
    let rev = e.policy.kernel;
    // Commit fa50e2b452c6: "sched/topology: Condition EAS enablement on FIE support".
    let invariant = is_freq_invariant(e) || !rev.has(features::EAS_INVARIANCE);
    // Android's, before mainline's, asked for no governor.
    (governor == SCHEDUTIL || governor == pixel::tunables::NAME || !rev.has(features::EAS))
        && domains.iter().all(|d| !d.slots.perf_domain.states.is_empty())
        && invariant
        && ready_after(&e.settings).is_none()
        && e.settings.get(&SCHED_ENERGY_AWARE) != Some(0)
        && muqss::of_settings(&e.settings).is_none()
}

/// The time until which there is no energy model; `None`: it is there from the start.
pub(crate) fn ready_after(settings: &Settings) -> Option<Span> {
    settings.get(&READY).filter(|ms| *ms > 0).map(|ms| Span::from_ms(ms as u64))
}

/// The scale of a domain at the start: which capacity belongs to which frequency; `boost`: boost
/// OPPs are there.
pub(crate) fn scale(e: &Experiment, d: &Domain, boost: bool) -> Scale {
    let cpuinfo_max = if boost { d.freq_boost() } else { d.freq_max() };
    // Commit 9942cb22ea45: "sched/topology: Add a new arch_scale_freq_ref() method".
    let by_itself = e.policy.kernel.has(features::ARCH_SCALE_FREQ_REF);
    let freq_ref = if by_itself { d.freq_max() } else { cpuinfo_max };
    let kept = |o: &Opp| o.capacity.map(|capacity| (o.freq, capacity));
    // The modules of Pixel phones scale time by their own model (`vh_arch_set_freq_scale_pixel_mod`).
    let own_model = pixel::state::form(&e.settings).is_some() && d.opps[0].capacity.is_some();
    let of_opp = match on(&e.settings, &OPP_CAPACITY) || own_model {
        true => d.opps.iter().filter_map(kept).collect(),
        false => Vec::new(),
    };
    Scale {
        capacity: d.capacity,
        nominal: d.freq_max(),
        cpuinfo_max,
        freq_ref,
        freq_ref_at_first: freq_ref,
        of_opp,
    }
}

/// The model of domain `index` when it is registered.
fn perf_domain(e: &Experiment, index: usize) -> PerfDomain {
    let (d, rev) = (&e.platform.domains[index], e.policy.kernel);
    let scale = scale(e, d, pressure::has_boost(&e.settings));
    let state =
        |o: &Opp| EmPerfState { frequency: o.freq, power: o.power, ..EmPerfState::default() };
    let mut states: Vec<EmPerfState> = d.opps.iter().map(state).collect();
    let last = d.freq_boost();
    let made = if on(&e.settings, &COHERENT) { d.freq_max() } else { last };
    em_compute_costs_at(rev, &mut states, d.capacity, made);
    if !scale.of_opp.is_empty() && rev.has(features::EM_PERFORMANCE) {
        for (state, (_, capacity)) in states.iter_mut().zip(&scale.of_opp) {
            state.performance = Util(capacity.0);
        }
        em_recalc_costs(rev, &mut states, made);
    }
    let mut inefficient: Vec<bool> = states.iter().map(|s| s.inefficient).collect();
    if !d.energy_model || d.opps.iter().any(|o| o.power == MicroWatts(0)) {
        states.clear();
    }
    // Commit 1f39fa0dccff: "cpufreq: Introducing CPUFREQ_RELATION_E".
    if !rev.has(features::CPUFREQ_RELATION_E) || states.is_empty() {
        inefficient.fill(false);
    }
    let table = PerfDomain {
        skips: inefficient.contains(&true),
        states,
        cost: Vec::new(),
        artificial: false,
        capacity: d.capacity,
        freq_ref: if rev.has(features::ARCH_SCALE_FREQ_REF) { scale.freq_ref } else { made },
        inefficient,
    };
    let pd = match artificial(e, d) {
        None => table,
        Some(states) => PerfDomain {
            freq_ref: states.last().map_or(last, |s| s.frequency),
            states,
            skips: false,
            artificial: true,
            ..table
        },
    };
    pd.tabulated(rev)
}

/// The states of an artificial model.
fn artificial(e: &Experiment, d: &Domain) -> Option<Vec<EmPerfState>> {
    let mut capacities: Vec<Capacity> = e.platform.domains.iter().map(|d| d.capacity).collect();
    capacities.sort();
    capacities.dedup();
    let class = capacities.iter().position(|c| *c == d.capacity).unwrap_or(0);
    match e.settings.get(&ENERGY_MODEL) {
        Some("cppc") => {
            let (lowest, highest) = (d.opps[0].freq, d.freq_max());
            Some(cppc_states(d.capacity, lowest, highest, class as u64).collect())
        }
        // The kinds of core, of at most three: low-power E, E, P.
        Some("hybrid") => {
            let kind = (3 - capacities.len().min(3) + class).min(2);
            Some(hybrid_states(d.capacity, kind as u64).collect())
        }
        _ => None,
    }
}

impl FreqDomain {
    /// Adjusts the energy model to another capacity of the CPUs, which belongs to another frequency
    /// (before 6.9 the estimate asks for the capacity each time).
    pub(crate) fn em_adjust_new_capacity(&mut self, rev: KernelRev, capacity: Capacity) {
        let pd = &mut self.slots.perf_domain;
        if pd.states.is_empty() {
            return;
        }
        pd.capacity = capacity;
        if rev.has(features::ARCH_SCALE_FREQ_REF) && !rev.has(features::EM_PERFORMANCE) {
            pd.freq_ref = self.scale.freq_ref;
        }
        if rev.has(features::EM_PERFORMANCE) {
            let highest = pd.states.last().map_or(KHz(0), |s| s.frequency);
            em_init_performance(&mut pd.states, capacity, highest);
            if !pd.artificial {
                em_recalc_costs(rev, &mut pd.states, highest);
            }
            *pd = pd.clone().tabulated(rev);
        }
    }
}

impl Machine {
    /// Whether wakeups look at energy: unequal capacities with known power, and no core with several
    /// threads (`build_perf_domains`, `sched_is_eas_possible`).
    pub(crate) fn sched_is_eas_possible(&self) -> bool {
        let root = &self.root;
        let used =
            || self.domains.iter().filter(|d| d.cpus.iter().any(|c| root.online.contains(*c)));
        let too_complex = || {
            let nr_ps = used().map(|d| d.slots.perf_domain.states.len()).sum();
            is_too_complex_pre_6_7(used().count(), nr_ps, root.online.len())
        };
        let too_complex = !self.rev.has(features::EM_ANY_COMPLEXITY) && too_complex();
        root.energy_model && root.asym_cpucap && !root.smt && !too_complex
    }

    /// Whether placement asks for energy at this moment.
    #[inline]
    pub(crate) fn is_energy_aware(&self) -> bool {
        self.root.energy_aware
            && !(self.slots.perf_domain.off_in_boost
                && self.domains.iter().any(|d| d.wanted > d.scale.nominal))
    }
}
