//! Heat of thermal zones, and what cooling took.

use crate::machine::ms;
use crate::result::{Cooling, Heat};
use risetime_kernel::units::{CpuId, KHz};
use risetime_model::Platform;

/// The thermal zones of a platform, as far as they are known.
pub(crate) struct Thermal {
    zones: Vec<Zone>,
    domains: Vec<Domain>,
    /// A temperature was told.
    told: bool,
}

struct Zone {
    heat: Option<Heat>,
    name: String,
    /// Lowest of the zone's critical trips, in m°C.
    critical: Option<i64>,
}

struct Domain {
    cpu: CpuId,
    top: KHz,
    cooled: bool,
    /// Time since which the domain's highest frequency is lowered.
    since: Option<u64>,
    capped_ns: u64,
    lowest: Option<KHz>,
    changes: u64,
}

impl Thermal {
    pub(crate) fn new(platform: &Platform) -> Thermal {
        let zone = |z: &risetime_model::platform::thermal::Zone| Zone {
            heat: None,
            name: z.name.clone(),
            critical: z.trips.iter().find(|t| t.critical).map(|t| t.temp_millicelsius),
        };
        let domain = |d: &risetime_model::platform::Domain| Domain {
            cpu: d.cpus[0],
            top: d.freq_max(),
            cooled: platform.thermal.iter().any(|z| z.cools.contains(&d.cpus[0])),
            since: None,
            capped_ns: 0,
            lowest: None,
            changes: 0,
        };
        Thermal {
            zones: platform.thermal.iter().map(zone).collect(),
            domains: platform.domains.iter().map(domain).collect(),
            told: false,
        }
    }

    /// Receives a reading of a sensor, in m°C.
    pub(crate) fn temperature(&mut self, now: u64, zone: u32, millicelsius: u32) {
        let Some(zone) = self.zones.get_mut(zone as usize) else { return };
        self.told = true;
        let celsius = f64::from(millicelsius) / 1e3;
        let first = || Heat {
            zone: zone.name.clone(),
            start_celsius: celsius,
            max_celsius: celsius,
            max_at_ms: ms(now),
            ..Heat::default()
        };
        let heat = zone.heat.get_or_insert_with(first);
        heat.end_celsius = celsius;
        if celsius > heat.max_celsius {
            (heat.max_celsius, heat.max_at_ms) = (celsius, ms(now));
        }
        if zone.critical.is_some_and(|critical| i64::from(millicelsius) >= critical) {
            heat.critical_at_ms.get_or_insert(ms(now));
        }
    }

    /// Notes that the highest frequency of the domain of `cpu` is `max` from now on.
    pub(crate) fn cooling(&mut self, now: u64, cpu: CpuId, max: KHz) {
        let Some(d) = self.domains.iter_mut().find(|d| d.cpu == cpu) else { return };
        d.changes += 1;
        d.capped_ns += d.since.take().map_or(0, |since| now - since);
        if max < d.top {
            d.since = Some(now);
            d.lowest = Some(d.lowest.map_or(max, |lowest| lowest.min(max)));
        }
    }

    /// The notes for the reader on zones that reached their critical temperature.
    pub(crate) fn too_hot(&self) -> Vec<String> {
        let of = |zone: &Zone| {
            let heat = zone.heat.as_ref()?;
            let (at, critical) = heat.critical_at_ms.zip(zone.critical)?;
            Some(format!(
                "{}: at {at:.0} ms it had its critical temperature, {:.1} °C: a kernel powers the machine off then, \
                 here the run goes on",
                zone.name,
                critical as f64 / 1e3
            ))
        };
        self.zones.iter().filter_map(of).collect()
    }

    /// The figures of a run until `end`.
    pub(crate) fn finish(self, end: u64) -> (Vec<Heat>, Vec<Cooling>) {
        let told = self.told;
        let cooling = |d: Domain| Cooling {
            policy: d.cpu,
            capped_ms: ms(d.capped_ns + d.since.map_or(0, |since| end - since)),
            lowest_max: d.lowest,
            changes: d.changes,
        };
        let domains = self.domains.into_iter().filter(|d| told && d.cooled);
        let heat = self.zones.into_iter().filter_map(|z| z.heat);
        (heat.collect(), domains.map(cooling).collect())
    }
}
