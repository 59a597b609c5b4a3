//! Tests of the crate as a whole: generated experiments, the contracts of the plug-ins, and
//! logs of decisions.

#[expect(clippy::float_arithmetic, reason = "it checks the integers")]
mod checker;
mod contract;
#[expect(clippy::disallowed_methods, reason = "the logs to compare with are files")]
mod decisions;
mod generate;
mod properties;
mod series;

use risetime_kernel::units::{Instant, Span};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Event, Header, TraceSink};
use std::sync::Arc;

/// `workload` on `platform` under `policy` with these settings, for so long.
fn experiment(
    platform: Platform,
    workload: Workload,
    policy: &str,
    set: &[(&str, Value)],
    duration: Span,
) -> Experiment {
    let set: Vec<(String, Value)> = set.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    let policy = Policy::from_arg_with(policy, &set).expect("a policy");
    let settings = crate::resolve(&platform, &policy).expect("settings");
    Experiment {
        platform: Arc::new(platform),
        workload: Arc::new(workload),
        policy,
        settings,
        duration,
        phase: Span(0),
        seed: 1,
    }
}

/// Everything that happened, one line an event.
#[derive(Default)]
struct Bytes(String);

impl TraceSink for Bytes {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event<'_>) {
        use std::fmt::Write;
        writeln!(self.0, "{} {event:?}", at.0).expect("a string takes all");
    }
    fn end(&mut self, at: Instant) {
        self.event(at, &Event::Overutilized { on: false });
    }
}
