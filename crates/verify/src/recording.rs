//! Recordings of real kernels, kept so that the simulator can be judged where there is none.
//!
//! ```text
//! risetime recording 1           a gzip of text, a file an experiment
//! kernel 7.2.13+deb14-arm64      what ran there …
//! qemu 10.0
//! agent 0f1e2d3c4b5a6978         … and the guest's agent, by its hash
//! generation 7.2
//! case m1/ramp-cold              what it was asked for
//! settings +rate_limit_us=10000
//! ms 1500
//! workload                       and its JSON, each line after a space
//! trace                          one a start phase: risetime_trace::recording
//! ```
//!
//! What was asked for is in it so that nobody judges today's experiment by yesterday's trace:
//! whoever changes one records it anew (`make verify`).

use super::set::{Case, Recorded};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use risetime_kernel::KernelRev;
use risetime_lab::phase_span;
use risetime_model::{Experiment, InputError, Platform};
use risetime_trace::Memory;
use risetime_trace::recording::{self, Lines};
use std::io::{self, Read, Write};

/// The first line: what it is, and which form of it.
const FORMAT: &str = "risetime recording";
const VERSION: &str = "1";
/// No recording is longer than this when it is unpacked.
const MAX_BYTES: u64 = 1 << 28;

/// Tools that a reference was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeWith {
    /// QEMU's version.
    pub qemu: String,
    /// The hash of the guest's agent.
    pub agent: String,
}

impl Case {
    /// The name of the file that holds its recording.
    pub fn file_name(&self) -> String {
        format!("{}.trace.gz", self.name.replace('/', "-"))
    }
}

impl Recorded {
    /// The bytes of a file that holds it.
    ///
    /// Errors: there is no trace, or one that cannot be written ([`recording::write`]).
    pub fn to_bytes(&self, with: &MadeWith) -> io::Result<Vec<u8>> {
        let none = || io::Error::other(format!("{}: nothing was recorded", self.case.name));
        let (experiment, trace) = self.phases.first().ok_or_else(none)?;
        let header = trace.header().ok_or_else(none)?;
        let mut out = GzEncoder::new(Vec::new(), Compression::best());
        writeln!(out, "{FORMAT} {VERSION}\nkernel {}", header.run.kernel_release)?;
        writeln!(out, "qemu {}\nagent {}", with.qemu, with.agent)?;
        writeln!(out, "generation {}\ncase {}", experiment.policy.kernel, self.case.name)?;
        writeln!(out, "settings {}\nms {}", self.case.settings, self.case.ms)?;
        recording::write_block(&mut out, "workload", &self.case.workload)?;
        for (_, trace) in &self.phases {
            writeln!(out, "trace")?;
            recording::write(trace, &mut out)?;
        }
        out.finish()
    }

    /// Reads the recording of `case` from `bytes`, which errors call `place`, and what it was made
    /// with.
    ///
    /// Errors: the first fault, at its line of the unpacked text; `case` is no longer what was recorded.
    pub fn from_bytes(
        case: Case,
        bytes: &[u8],
        place: &str,
    ) -> Result<(Recorded, MadeWith), InputError> {
        let mut text = String::new();
        let mut unpacked = GzDecoder::new(bytes).take(MAX_BYTES);
        unpacked.read_to_string(&mut text).map_err(|e| {
            let line = text.lines().count().max(1);
            InputError::new(format!("{place}:{line}"), format!("is damaged from here on: {e}"))
        })?;
        let lines = &mut Lines::new(&text, place);
        let version = lines.value(FORMAT)?;
        if version != VERSION {
            return Err(lines.error(format!("is of version `{version}`, wanted {VERSION}")));
        }
        lines.value("kernel")?;
        let qemu = lines.value("qemu")?.to_string();
        let agent = lines.value("agent")?.to_string();
        let generation = lines.value("generation")?;
        let Some(generation) = KernelRev::of_release(generation) else {
            return Err(lines.error(format!("found `{generation}`, wanted a release as 7.2")));
        };
        let experiment = case.experiment(Some(generation))?;
        let same = |lines: &Lines<'_>, what: &str, is: bool| {
            let text = format!("{} has another {what} by now", case.name);
            let stale = || lines.error(text).hint("`make verify` records the set anew");
            if is { Ok(()) } else { Err(stale()) }
        };
        for (key, is) in
            [("case", &case.name), ("settings", &case.settings), ("ms", &case.ms.to_string())]
        {
            let was = lines.value(key)?;
            same(lines, key, was == is)?;
        }
        let workload = lines.block("workload")?;
        same(lines, "workload", workload.trim_end() == case.workload.trim_end())?;
        let mut phases: Vec<(Experiment, Memory)> = Vec::new();
        while lines.opt_value("trace").is_some() {
            let tick = experiment.platform.tick();
            let experiment = experiment.later(phase_span(tick, phases.len() as u32));
            let trace = recording::read(lines)?;
            let header = trace.header();
            let is = header.map(|h| as_asked(&h.machine.platform, &experiment.platform));
            same(lines, "platform", is.as_ref() == Some(&*experiment.platform))?;
            let phase = header.and_then(|h| Some(h.asked.as_ref()?.phase));
            same(lines, "start phase", phase == Some(experiment.phase))?;
            phases.push((experiment, trace));
        }
        if phases.is_empty() || !lines.is_done() {
            return Err(lines.error("wanted `trace` in what follows"));
        }
        Ok((Recorded { case, phases }, MadeWith { qemu, agent }))
    }
}

/// `was` with what a kernel has of its own, what none is told of (kinds of work and heat, which recordings have not, and power where there is no
/// energy model), and what only a reader looks at, as `wanted` has it.
fn as_asked(was: &Platform, wanted: &Platform) -> Platform {
    let mut domains = was.domains.clone();
    for (d, w) in domains.iter_mut().zip(&wanted.domains) {
        d.work.clone_from(&w.work);
        d.energy_model = w.energy_model;
        if !w.energy_model {
            d.opps.iter_mut().zip(&w.opps).for_each(|(d, w)| d.power = w.power);
            d.idle.iter_mut().zip(&w.idle).for_each(|(d, w)| d.power = w.power);
        }
    }
    Platform {
        domains,
        thermal: wanted.thermal.clone(),
        hz: wanted.hz,
        about: wanted.about.clone(),
        sources: wanted.sources.clone(),
        doubts: wanted.doubts.clone(),
        ..was.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::set;
    use crate::{catch, record_set};
    use risetime_sim::Simulator;

    fn with() -> MadeWith {
        MadeWith { qemu: "10.0".into(), agent: "00ff".into() }
    }

    /// Experiments of the set with the simulator itself in the kernel's place.
    fn recorded(names: &[&str]) -> Vec<Recorded> {
        let cases = set(1).into_iter().filter(|c| names.contains(&&*c.name)).collect();
        record_set(&Simulator, Some(KernelRev::V7_2), cases, 2, |_| ()).unwrap()
    }

    #[test]
    fn what_is_read_back_is_judged_like_what_was_recorded() {
        let fresh = recorded(&["m1/ramp-slept", "laptop4/two-on-one", "zcu102/hotplug"]);
        assert_eq!(fresh.len(), 3);
        let back = fresh.iter().map(|r| {
            let bytes = r.to_bytes(&with()).unwrap();
            Recorded::from_bytes(r.case.clone(), &bytes, "here").unwrap()
        });
        let (back, made_with): (Vec<_>, Vec<_>) = back.unzip();
        assert_eq!(made_with[0], with());
        for (was, is) in fresh.iter().zip(&back) {
            assert_eq!(was.judge().unwrap(), is.judge().unwrap());
            for ((e, trace), (e_back, trace_back)) in was.phases.iter().zip(&is.phases) {
                assert_eq!(format!("{e:?}"), format!("{e_back:?}"));
                assert_eq!(trace.events(), trace_back.events());
            }
        }
        assert_eq!(catch(&fresh[..1]).unwrap(), catch(&back[..1]).unwrap());
    }

    #[test]
    fn a_broken_or_stale_file_says_where_and_what() {
        let one = recorded(&["m1/light"]).remove(0);
        let bytes = one.to_bytes(&with()).unwrap();
        let error = |case: &Case, bytes: &[u8]| {
            Recorded::from_bytes(case.clone(), bytes, "m1-light.trace.gz").unwrap_err().to_string()
        };
        let cut = error(&one.case, &bytes[..bytes.len() / 2]);
        let line = cut.strip_prefix("m1-light.trace.gz:").and_then(|e| e.split_once(": "));
        let (line, what) = line.unwrap_or_else(|| panic!("{cut}"));
        assert!(line.parse::<u32>().unwrap() > 100, "{cut}");
        assert!(what.starts_with("is damaged from here on: "), "{cut}");
        let mut flipped = bytes.clone();
        flipped[bytes.len() - 6] ^= 1;
        assert!(error(&one.case, &flipped).contains("is damaged"), "the sum at its end");
        assert!(error(&one.case, b"").contains(":1: "));

        let stale = |change: fn(&mut Case)| {
            let mut case = one.case.clone();
            change(&mut case);
            error(&case, &bytes)
        };
        let hint = "by now\n  hint: `make verify` records the set anew";
        let settings = stale(|c| c.settings = "+uclamp_min=1".into());
        assert_eq!(settings, format!("m1-light.trace.gz:7: m1/light has another settings {hint}"));
        let ms = stale(|c| c.ms = 1001);
        assert_eq!(ms, format!("m1-light.trace.gz:8: m1/light has another ms {hint}"));
        let workload = stale(|c| c.workload = c.workload.replace("1000", "1001"));
        assert!(workload.ends_with(&format!("another workload {hint}")), "{workload}");
        let platform = stale(|c| c.platform = "laptop4".into());
        assert!(platform.ends_with(&format!("another platform {hint}")), "{platform}");
    }
}
