//! Thermal zones: a look at each polling delay, and what a thermal governor then does about frequencies.
//!
//! ```text
//! power of the CPUs ──> RC network ──> sensor ──> trip points ──> governor ──> cooling state of each domain
//!                                     each polling delay                       the highest of all zones' wishes
//!                                                                              └─> policy->max ─> its governor
//! ```
//!
//! Since 6.10 a lowered maximum is in the cpufreq pressure; from 5.7 to 6.9 it is hardware pressure of its own, which is
//! averaged (`avg_thermal`); before, the scheduler does not know.
//!
//! DEVIATES(thermal_work): a look takes no CPU time and is on time. In a kernel a worker does it, which may wait for a
//! CPU, and delays above one second are rounded to whole seconds. Temperatures follow some µs to ms too early.
//!
//! Left out: sensors that interrupt at trip points or read late, other cooling devices than cpufreq's, limits and
//! weights of cooling maps, the power-off at a critical trip: the run goes on, and its results tell of it.
//!
//! Source: drivers/thermal/thermal_core.c:__thermal_zone_device_update, monitor_thermal_zone,
//! thermal_helpers.c:__thermal_cdev_update, cpufreq_cooling.c:cpufreq_set_cur_state,
//! What a lowered maximum does: [`crate::mech::pressure`].

pub(crate) mod state;

use crate::kernel::Kernel;
use crate::kernel::governor::DomainView;
use crate::mech::mechanism::Mechanism;
use crate::mech::pressure::state::Input;
use crate::mech::pressure::thermal::{START_TEMP, is_on};
use crate::mech::slots::Id;
use crate::mech::thermal::state::{Device, Heaters, Own, Thermal, Zone};
use crate::state::machine::Machine;

use crate::time::queue::{Ev, Planned};
use risetime_kernel::thermal::cpufreq_cooling::{
    PerfState, cpu_freq_to_power, get_requested_power, get_state_freq, max_level, power2state,
};
use risetime_kernel::thermal::gov_power_allocator::{Constants, Pid, PowerActor, divvy_up_power};
use risetime_kernel::thermal::gov_step_wise::Instance;
use risetime_kernel::thermal::rc::{Node, STEP};
use risetime_kernel::thermal::thermal_core::{Crossed, Trip, get_tz_trend};
use risetime_kernel::units::{CpuId, Instant, KHz};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::{Domain, thermal};
use risetime_model::{Experiment, Platform};
use risetime_trace::Event;
use risetime_trace::tracker::{CpuPowers, Tracker};
use std::sync::Arc;

impl Mechanism for Own {
    fn of_machine(e: &Experiment, _: &Machine) -> Option<Box<Thermal>> {
        of_experiment(e)
    }
    /// True where there are zones: the short ways know no limit that changes.
    fn bends(m: &Machine) -> bool {
        m.slots.thermal.is_some()
    }
    /// Plans the first look at every zone: when it is registered.
    fn plans(_: &Experiment, m: &Machine) -> Vec<(Instant, Ev)> {
        let zones = m.slots.thermal.as_ref().map_or(0, |t| t.zones.len()) as u32;
        (0..zones).map(|zone| (Instant(0), look(zone))).collect()
    }
    /// `thermal_zone_device_update`.
    fn event(k: &mut Kernel, planned: Planned) -> bool {
        let (index, now, rev) = (planned.index, k.m.now, k.m.rev);
        let Some(t) = &k.m.slots.thermal else { return false };
        let loads: Vec<Load> =
            t.zones[index as usize].cools.iter().map(|d| load(&k.m, *d)).collect();
        let Some(t) = &mut k.m.slots.thermal else { return false };
        t.advance(now);
        let zone = &mut t.zones[index as usize];
        let millicelsius = zone.update(rev, &t.devices, &loads).max(0) as u32;
        let delay = if zone.passive > 0 { zone.polling_delay_passive } else { zone.polling_delay };
        let cools = zone.cools.clone();
        k.emit(Event::Temperature { zone: index, millicelsius });
        for domain in cools {
            let max = k.m.slots.thermal.as_mut().and_then(|t| t.cpufreq_set_cur_state(domain));
            if let Some(max) = max {
                let mut policy = k.policy(domain);
                policy.cap(Input::Thermal, max);
                let (cpu, max) = (policy.d().related[0], policy.d().max);
                k.emit(Event::Cooling { cpu, max, zone: index });
            }
        }
        k.q.push(now + delay, look(index));
        false
    }
}

/// The thermal zones as the platform has them, at the start; `None`: off.
fn of_experiment(e: &Experiment) -> Option<Box<Thermal>> {
    let platform = &e.platform;
    if !is_on(platform, &e.settings) {
        return None;
    }
    let start = e.settings.get(&START_TEMP);
    let zones: Vec<Zone> = platform.thermal.iter().map(|z| zone(z, platform, start)).collect();
    let device = |of: &Domain| Device { table: table(of), state: 0 };
    let heats = |cpu| platform.thermal.iter().position(|z| z.heated_by.contains(&cpu));
    let couplings = platform.thermal.iter().enumerate();
    let couplings = couplings.flat_map(|(i, z)| z.coupled.iter().map(move |(j, r)| (i, *j, *r)));
    let state = Tracker::new(platform, true);
    Some(Box::new(Thermal {
        devices: platform.domains.iter().map(device).collect(),
        heaters: Heaters {
            powers: CpuPowers::new(Arc::clone(platform), &state),
            state,
            heats: platform.cpus().map(heats).collect(),
            since: vec![Instant(0); platform.nr_cpus()],
            heat_fj: vec![0; zones.len()],
        },
        zones,
        known: Instant(0),
        couplings: couplings.collect(),
    }))
}

fn table(d: &Domain) -> Vec<PerfState> {
    d.opps.iter().map(|o| (o.freq, o.power)).collect()
}

fn zone(z: &thermal::Zone, platform: &Platform, start: Option<i64>) -> Zone {
    let start = start.unwrap_or(z.ambient_millicelsius);
    let cooled = |d: &Domain| z.cools.contains(&d.cpus[0]);
    let cools: Vec<usize> =
        (0..platform.domains.len()).filter(|d| cooled(&platform.domains[*d])).collect();
    let instance = |d: &usize| Instance::new(max_level(&table(&platform.domains[*d])));
    let instances = || cools.iter().map(instance).collect();
    let trips: Vec<Trip> =
        z.passive().map(|t| Trip::new(t.temp_millicelsius, t.hysteresis_millicelsius)).collect();
    Zone {
        node: Node::new(z.capacitance_mj_per_k, start),
        ambient_millicelsius: z.ambient_millicelsius,
        resistance_mk_per_w: z.resistance_mk_per_w,
        millicelsius: None,
        passive: 0,
        polling_delay_passive: z.polling_delay_passive,
        polling_delay: z.polling_delay,
        instances: trips.iter().map(|_| instances()).collect(),
        allocator: allocator(z.governor, &trips),
        trips,
        cools,
    }
}

fn allocator(governor: thermal::Governor, trips: &[Trip]) -> Option<(Constants, Pid)> {
    let thermal::Governor::PowerAllocator {
        sustainable_power_mw,
        k_po,
        k_pu,
        k_i,
        integral_cutoff,
    } = governor
    else {
        return None;
    };
    let control = trips.last()?.temperature();
    let switch_on = switch_on(trips).unwrap_or(0);
    let own = Constants::estimate(sustainable_power_mw, control - switch_on);
    let constants = Constants {
        k_po: k_po.unwrap_or(own.k_po),
        k_pu: k_pu.unwrap_or(own.k_pu),
        k_i: k_i.unwrap_or(own.k_i),
        integral_cutoff,
        ..own
    };
    Some((constants, Pid::default()))
}

/// `trip_switch_on`; `None`: the controller is always on (`get_governor_trips`).
fn switch_on(trips: &[Trip]) -> Option<i64> {
    (trips.len() > 1).then(|| trips[0].temperature())
}

/// Load of a domain, for a governor that shares out power.
struct Load {
    cur: KHz,
    cpus: u64,
    /// Load of all its CPUs, in percent of one.
    percent: u64,
}

impl Thermal {
    /// Brings the temperatures up to `now`; what came in since they were known is spread evenly over that time.
    fn advance(&mut self, now: Instant) {
        let heat = self.heaters.take(now);
        let all = i128::from(now.since(self.known).0.max(1));
        let mut gone = 0;
        while self.known < now {
            let step = STEP.min(now.since(self.known));
            for (i, j, r) in &self.couplings {
                let pj = self.zones[*i].node.flow_to(&self.zones[*j].node, *r, step);
                self.zones[*i].node.take(-pj);
                self.zones[*j].node.take(pj);
            }
            let before = gone;
            gone += i128::from(step.0);
            for (zone, heat) in self.zones.iter_mut().zip(&heat) {
                zone.node.cool(zone.ambient_millicelsius, zone.resistance_mk_per_w, step);
                zone.node.take(heat * gone / all - heat * before / all);
            }
            self.known += step;
        }
    }

    /// The temperature of the zone that `cpu` heats, in m°C.
    pub(crate) fn millicelsius(&mut self, cpu: CpuId, now: Instant) -> Option<i64> {
        let zone = self.heaters.heats[cpu.index()]?;
        self.advance(now);
        Some(self.zones[zone].node.millicelsius())
    }

    /// `__thermal_cdev_update`: the state that the zones want of `domain`.
    fn wanted(&self, domain: usize) -> u32 {
        let of = |zone: &Zone| {
            let at = zone.cools.iter().position(|d| *d == domain)?;
            zone.instances.iter().filter_map(|trip| trip[at].target).max()
        };
        self.zones.iter().filter_map(of).max().unwrap_or(0)
    }
}

impl Thermal {
    /// Puts a domain into the state that the zones want; returns the highest frequency then.
    /// `None`: it is in that state already.
    fn cpufreq_set_cur_state(&mut self, domain: usize) -> Option<KHz> {
        let state = self.wanted(domain);
        let device = &mut self.devices[domain];
        if std::mem::replace(&mut device.state, state) == state {
            return None;
        }
        get_state_freq(&device.table, state)
    }
}

impl Zone {
    /// Reads the sensor, lets the governor decide, and says what it read.
    fn update(&mut self, rev: KernelRev, devices: &[Device], loads: &[Load]) -> i64 {
        let millicelsius = self.node.millicelsius();
        let last = self.millicelsius.replace(millicelsius);
        for trip in &mut self.trips {
            match trip.handle_thermal_trip(millicelsius, last) {
                // Governors count for themselves.
                _ if !rev.has(features::THERMAL_THRESHOLDS) => {}
                Crossed::Up => self.passive += 1,
                Crossed::Down => self.passive -= 1,
                Crossed::No => {}
            }
        }
        if self.allocator.is_some() {
            self.allocate_power(rev, millicelsius, devices, loads);
        } else {
            self.step_wise(rev, millicelsius, last, devices);
        }
        millicelsius
    }

    fn step_wise(
        &mut self,
        rev: KernelRev,
        millicelsius: i64,
        last: Option<i64>,
        devices: &[Device],
    ) {
        let trend = get_tz_trend(millicelsius, last);
        for (trip, instances) in self.trips.iter().zip(&mut self.instances) {
            let throttle = trip.throttles(rev, millicelsius);
            for (instance, domain) in instances.iter_mut().zip(&self.cools) {
                let state = devices[*domain].state;
                instance.target = instance.get_target_state(rev, state, trend, throttle);
                instance.initialized = true;
            }
        }
        if !rev.has(features::THERMAL_THRESHOLDS) {
            let targets = self.instances.iter().flatten().filter_map(|i| i.target);
            self.passive = targets.count() as u32;
        }
    }

    fn allocate_power(
        &mut self,
        rev: KernelRev,
        millicelsius: i64,
        devices: &[Device],
        loads: &[Load],
    ) {
        let off = switch_on(&self.trips).is_some_and(|on| millicelsius < on);
        if !rev.has(features::THERMAL_THRESHOLDS) {
            self.passive = (!off).into();
        }
        let Some((constants, pid)) = &mut self.allocator else { return };
        let Some((trip, instances)) = self.trips.last().zip(self.instances.last_mut()) else {
            return;
        };
        if off {
            *pid = Pid::default();
            instances.iter_mut().for_each(|i| i.target = Some(0));
            return;
        }
        let actor = |(domain, load): (&usize, &Load)| {
            let table = &devices[*domain].table;
            PowerActor {
                req_power: get_requested_power(table, load.cur, load.percent),
                max_power: cpu_freq_to_power(table, KHz(u64::MAX)) * load.cpus,
                granted_power: 0,
            }
        };
        let mut actors: Vec<PowerActor> = self.cools.iter().zip(loads).map(actor).collect();
        let most = actors.iter().map(|a| a.max_power).sum();
        let budget = pid.pid_controller(constants, trip.temperature(), millicelsius, most);
        divvy_up_power(&mut actors, budget);
        for (i, instance) in instances.iter_mut().enumerate() {
            let table = &devices[self.cools[i]].table;
            let state = power2state(table, actors[i].granted_power, loads[i].percent);
            instance.target = Some(state);
        }
    }
}

/// The next look at a zone.
fn look(zone: u32) -> Ev {
    Ev::MechanismLast(Planned { index: zone, ..Planned::only(Id::thermal) })
}

/// The load of a domain now (`get_load`).
fn load(m: &Machine, domain: usize) -> Load {
    let view = DomainView { machine: m, index: domain, told: false };
    let of = |cpu: &CpuId| view.effective_cpu_util(*cpu).util.0 * 100 / view.capacity().0.max(1);
    let cpus = view.cpus();
    Load { cur: view.cur(), cpus: cpus.len() as u64, percent: cpus.iter().map(of).sum() }
}
