//! Tests of the crate as a whole: generated experiments, the contracts of the plug-ins, and
//! logs of decisions.

mod around;
mod before;
mod cache;
#[expect(clippy::float_arithmetic, reason = "it checks the integers")]
mod checker;
mod classes;
mod contract;
#[expect(clippy::disallowed_methods, reason = "the logs to compare with are files")]
mod decisions;
mod delayed;
mod demotion;
mod dl_rules;
#[expect(clippy::disallowed_methods, reason = "the files are files")]
mod field;
mod followed;
mod generate;
mod governors;
mod groups;
mod high;
mod idle_states;
mod kthreads;
mod latency_nice;
mod long_run;
mod metamorphic;
#[expect(clippy::float_arithmetic, reason = "shares of a CPU")]
mod muqss;
#[expect(clippy::float_arithmetic, reason = "shares of a CPU")]
mod overcommit;
mod pixel;
mod placed;
mod power_hal;
mod pressure;
mod properties;
mod pstate;
mod residencies;
mod rt_groups;
mod rtapp;
mod sampling;
mod sched_idle;
mod series;
mod shipped;
mod short_ways;
pub(crate) mod spread;
mod stop;
mod switches;
mod sysctls;
mod thermal;
mod together;
mod trackers;
mod turns;
mod wake_list;

use risetime_kernel::units::{Instant, Span};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Event, Header, TraceSink};
use std::sync::Arc;

/// `workload` on `platform` under `policy` with these settings, for so long.
pub(crate) fn experiment(
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
    fn event(&mut self, at: Instant, event: &Event) {
        use std::fmt::Write;
        writeln!(self.0, "{} {event:?}", at.0).expect("a string takes all");
    }
    fn end(&mut self, at: Instant) {
        self.event(at, &Event::Overutilized { on: false });
    }
}

/// Where the idle state that a sleep allows is shallower than the next one by little, the tick goes
/// on: schedutil then sees no idle call on a policy of one CPU.
#[test]
fn a_sleep_of_about_a_tick_keeps_the_tick() {
    let idle_calls = |sleep: u32| {
        let mut platform = Platform::load("laptop4").expect("built in");
        platform.hz = 250;
        let workload = format!(
            r#"{{"tasks": {{"t": {{"cpus": [0], "loop": -1, "run": 3000, "sleep": {sleep}}}}}}}"#
        );
        let workload = Workload::parse(&workload, "t").expect("a workload");
        let e = experiment(platform, workload, "linux-7.2", &[], Span::from_ms(1000));
        let mut sink = Bytes::default();
        let mut engine =
            crate::run::setup::simulation(&e, &mut sink, crate::Counterfactual::default())
                .expect("an engine");
        engine.run(Instant(e.duration.0)).expect("a run");
        engine.k.m.cpu(risetime_kernel::units::CpuId(0)).idle_calls
    };
    // C9 pays off from 5 ms on: 4.9 ms are left to C8 and the tick.
    assert!(idle_calls(4_900) < 20, "{} idle calls in some 100 sleeps", idle_calls(4_900));
    assert!(idle_calls(20_000) >= 30, "{} idle calls in some 33 sleeps", idle_calls(20_000));
}
