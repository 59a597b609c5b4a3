//! Thermal zones: how hot it is, and what is asked for by way of cooling ([`super`]).

use crate::mech::slots::Slot;
use risetime_kernel::thermal::cpufreq_cooling::PerfState;
use risetime_kernel::thermal::gov_power_allocator::{Constants, Pid};
use risetime_kernel::thermal::gov_step_wise::Instance;
use risetime_kernel::thermal::rc::Node;
use risetime_kernel::thermal::thermal_core::Trip;
use risetime_kernel::units::{CpuId, Instant, Span};
use risetime_trace::Event;
use risetime_trace::tracker::{CpuPowers, Tracker};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Option<Box<Thermal>>;
    type OfDomain = ();
    type OfCpu = ();
    type OfTask = ();
}

/// All of it; machines without thermal zones have none.
pub(crate) struct Thermal {
    pub(crate) zones: Vec<Zone>,
    /// Cooling devices by domain.
    pub(crate) devices: Vec<Device>,
    pub(crate) heaters: Heaters,
    /// Time up to which temperatures are known.
    pub(crate) known: Instant,
    /// Zones that exchange heat, and the resistance between, in mK/W.
    pub(crate) couplings: Vec<(usize, usize, u64)>,
}

/// A zone, which is a node of the network.
pub(crate) struct Zone {
    pub(crate) node: Node,
    pub(crate) ambient_millicelsius: i64,
    pub(crate) resistance_mk_per_w: u64,
    /// `tz->temperature`; `None`: never read.
    pub(crate) millicelsius: Option<i64>,
    /// `tz->passive`.
    pub(crate) passive: u32,
    pub(crate) polling_delay_passive: Span,
    pub(crate) polling_delay: Span,
    /// The passive ones, by temperature.
    pub(crate) trips: Vec<Trip>,
    /// The domains that it cools.
    pub(crate) cools: Vec<usize>,
    /// Instances by trip, then by domain in `cools`.
    pub(crate) instances: Vec<Vec<Instance>>,
    /// `power_allocator`; else `step_wise`.
    pub(crate) allocator: Option<(Constants, Pid)>,
}

/// A domain as a cooling device (`cpufreq_cooling`).
pub(crate) struct Device {
    pub(crate) table: Vec<PerfState>,
    pub(crate) state: u32,
}

/// Heat that the CPUs give off.
pub(crate) struct Heaters {
    /// State of the CPUs; it knows no tasks.
    pub(crate) state: Tracker,
    pub(crate) powers: CpuPowers,
    /// Zone that each CPU heats.
    pub(crate) heats: Vec<Option<usize>>,
    /// Time up to which each CPU's power is in `heat_fj`.
    pub(crate) since: Vec<Instant>,
    /// Heat of each zone since temperatures were last known, in fJ (µW · ns).
    pub(crate) heat_fj: Vec<u128>,
}

impl Heaters {
    /// Adds the heat up to `now` of the CPUs whose power `event` changes.
    #[inline]
    pub(crate) fn hears(&mut self, now: Instant, event: &Event) {
        if CpuPowers::concerned(event).is_none() {
            return;
        }
        let Heaters { state, powers, heats, since, heat_fj } = self;
        powers.event(state, now, event, |change| {
            let cpu = change.cpu.index();
            let time = now.since(since[cpu]);
            since[cpu] = now;
            if let Some(zone) = heats[cpu] {
                heat_fj[zone] += u128::from(change.before) * u128::from(time.0);
            }
        });
    }

    /// The heat of each zone up to `now`, in pJ, which is then forgotten. Rounding: down, the rest stays.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<i128> {
        for cpu in 0..self.heats.len() {
            let time = now.since(self.since[cpu]);
            self.since[cpu] = now;
            if let Some(zone) = self.heats[cpu] {
                let uw = self.powers.uw(CpuId(cpu as u32));
                self.heat_fj[zone] += u128::from(uw) * u128::from(time.0);
            }
        }
        let take = |fj: &mut u128| {
            let pj = *fj / 1000;
            *fj %= 1000;
            pj as i128
        };
        self.heat_fj.iter_mut().map(take).collect()
    }
}
