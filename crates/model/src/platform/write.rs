//! Writer of [`Platform`] as TOML; its text reads back as the same platform.

use super::{Domain, Platform, cpu_ranges, thermal, topology};
use crate::toml_in::{key, quote};
use risetime_kernel::units::CpuId;
use std::fmt::Write;

impl Platform {
    /// The file form: what `capture` and `show` print. Reading it gives the same platform;
    /// comments and voltages of the file it once came from are gone (power is in µW).
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "schema = 1\nname = {}\nabout = {}\nhz = {}\n",
            quote(&self.name),
            quote(&self.about),
            self.hz
        );
        let runs = self.alike();
        // A run of domains in several caches is one table; the caches are then listed elsewhere.
        let clusters = |r: &std::ops::Range<usize>| {
            let run = &self.domains[r.clone()];
            run.iter().any(|d| d.cluster != run[0].cluster)
        };
        let caches = self.caches();
        let listed = caches.iter().all(|c| !c.is_empty()) && runs.iter().any(clusters);
        let whole = |r: &std::ops::Range<usize>| {
            let run = &self.domains[r.clone()];
            let mut cpus: Vec<CpuId> = run.iter().flat_map(|d| d.cpus.clone()).collect();
            cpus.sort();
            let each = run[0].cpus.len();
            let one_by_one = cpus.chunks(each).eq(run.iter().map(|d| &d.cpus[..]));
            (one_by_one && cpus.len().is_multiple_of(each)).then_some((cpus, each))
        };
        for run in runs {
            match whole(&run) {
                Some((cpus, each)) if run.len() > 1 && (listed || !clusters(&run)) => {
                    let d = Domain { cpus, ..self.domains[run.start].clone() };
                    domain(&mut out, &d, !listed, Some(each));
                }
                _ => self.domains[run].iter().for_each(|d| domain(&mut out, d, !listed, None)),
            }
        }
        let llc = if listed { caches } else { Vec::new() };
        out.push_str(&topology::write(&self.topology, &llc));
        self.thermal.iter().for_each(|zone| thermal::write(&mut out, zone, &self.thermal));
        out.push_str("\n[sources]\n");
        for (k, v) in &self.sources {
            let _ = writeln!(out, "{} = {}", key(k), quote(v));
        }
        out
    }
}

fn domain(out: &mut String, d: &Domain, cluster: bool, each: Option<usize>) {
    let _ = writeln!(out, "\n[[domain]]\ncpus = \"{}\"", cpu_ranges(&d.cpus));
    if let Some(each) = each {
        let _ = writeln!(out, "cpus_per_policy = {each}");
    }
    if cluster {
        let _ = writeln!(out, "cluster = {}", d.cluster);
    }
    let _ = write!(out, "capacity = {}\nfast_switch = {}\n", d.capacity.0, d.fast_switch);
    if let Some(us) = d.transition_delay_us {
        let _ = writeln!(out, "transition_delay_us = {us}");
    }
    if !d.energy_model {
        out.push_str("energy_model = false\n");
    }
    if !super::levels::write(out, d) {
        opps(out, d);
    }
    super::idle::write(out, d);
    super::work::write(out, d);
}

fn opps(out: &mut String, d: &Domain) {
    // A power that is unknown on every OPP is left out, so that it stays unknown.
    let power_known = d.opps.iter().any(|o| o.power.0 != 0);
    out.push_str("opp = [\n");
    for o in &d.opps {
        let _ = write!(out, "  {{ freq_khz = {}", o.freq.0);
        if power_known {
            let _ = write!(out, ", power_uw = {}", o.power.0);
        }
        if let Some(capacity) = o.capacity {
            let _ = write!(out, ", capacity = {}", capacity.0);
        }
        if o.turbo {
            out.push_str(", turbo = true");
        }
        let _ = writeln!(out, ", latency_ns = {} }},", o.latency.0);
    }
    out.push_str("]\n");
}
