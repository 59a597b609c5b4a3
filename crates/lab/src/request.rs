//! Request made of documents: a platform, a workload, policies, and the experiments that answer it. Nothing here knows a name or
//! a file ([`Request`](crate::Request) reads those), so that a browser, or whoever has texts, asks as a command line does.

use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::settings::keys::{HZ, SKIP_MS};
use risetime_model::{Experiment, InputError, Platform, Policy, Workload, workload};
use risetime_sim::{NOISE, Simulator};
use risetime_trace::{Backend, RunError};
use std::sync::Arc;

/// Length of a run of which nobody said how long it is.
pub const DEFAULT_SECONDS: f64 = 3.0;
/// The longest run.
pub const MAX_SECONDS: f64 = 86_400.0;

/// One workload on one platform under one or several policies, as documents.
#[derive(Clone, Debug)]
pub struct Documents {
    /// Workload, keys that were changed included.
    pub workload: Arc<Workload>,
    /// Platform.
    pub platform: Arc<Platform>,
    /// Policies, with the settings that hold for all of them.
    pub policies: Vec<Policy>,
    /// Ticks a second; `None`: the platform's.
    pub hz: Option<u32>,
    /// Length of the run; `None`: the workload's own, else [`DEFAULT_SECONDS`].
    pub seconds: Option<f64>,
    /// Length of the workload's start, in ms, that is left out of what is counted of jobs,
    /// activations and wakeups.
    pub skip_ms: Option<u64>,
    /// The workload starts this much later.
    pub phase: Span,
    /// Seed.
    pub seed: u64,
    /// The noise profile of policies that name none (setting `noise`); `None`: none.
    pub noise: Option<&'static str>,
}

impl Documents {
    /// `workload` on `platform` under `policy`, from phase 0 with seed 1, without noise.
    pub fn new(workload: Workload, platform: Platform, policy: Policy) -> Documents {
        Documents {
            workload: Arc::new(workload),
            platform: Arc::new(platform),
            policies: vec![policy],
            hz: None,
            seconds: None,
            skip_ms: None,
            phase: Span(0),
            seed: 1,
            noise: None,
        }
    }

    /// The experiments, one a policy, every setting resolved, for the simulator.
    ///
    /// Errors: as [`Documents::experiments`]'s; what the simulator refuses.
    pub fn simulated(&self) -> Result<Vec<Experiment>, InputError> {
        let experiments = self.experiments()?;
        match experiments.is_empty() {
            true => Ok(experiments),
            false => risetime_sim::supported(&self.workload).map(|()| experiments),
        }
    }

    /// The experiments, one a policy, every setting resolved, for whatever runs them.
    ///
    /// Errors: a workload that does not fit the platform; a wrong length of time; a setting.
    pub fn experiments(&self) -> Result<Vec<Experiment>, InputError> {
        let platform = match self.hz {
            Some(hz) => Arc::new(Platform::clone(&self.platform).with_hz(hz)),
            None => Arc::clone(&self.platform),
        };
        self.workload.bind(&platform)?;
        let duration = self.duration()?;
        let skipped = self.skipped(duration)?;
        let experiment = |policy: &Policy| {
            let policy = match self.noise {
                Some(profile) if policy.said(&NOISE).is_none() => {
                    policy.clone().set_for_all(NOISE.name, Value::Name(profile.into()))
                }
                _ => policy.clone(),
            };
            let mut settings = risetime_sim::resolve(&platform, &policy)?;
            if let Some(hz) = self.hz {
                settings.set(&HZ, i64::from(hz));
            }
            if let Some(ms) = skipped {
                settings.set(&SKIP_MS, ms);
            }
            Ok(Experiment {
                platform: Arc::clone(&platform),
                workload: Arc::clone(&self.workload),
                policy,
                settings,
                duration: duration + self.phase,
                phase: self.phase,
                seed: self.seed,
            })
        };
        self.policies.iter().map(experiment).collect()
    }

    /// The number of ms of the start that are left out, if any are.
    fn skipped(&self, duration: Span) -> Result<Option<i64>, InputError> {
        let Some(ms) = self.skip_ms.filter(|ms| *ms > 0) else { return Ok(None) };
        if ms >= duration.0.div_ceil(1_000_000) {
            let all = duration.as_ms();
            let what =
                format!("found {ms}, but the run is over after {all} ms: nothing would be left");
            return Err(InputError::new("--skip-ms", what).hint("less, or more --seconds"));
        }
        Ok(i64::try_from(ms).ok())
    }

    fn duration(&self) -> Result<Span, InputError> {
        let Some(seconds) = self.seconds else {
            return Ok(self.workload.duration.unwrap_or(Span((DEFAULT_SECONDS * 1e9) as u64)));
        };
        let duration = Span((seconds * 1e9) as u64);
        // Less than a nanosecond is no time, either.
        if !(seconds <= MAX_SECONDS && duration > Span(0)) {
            let what = format!("found {seconds:?}, wanted more than 0 and at most {MAX_SECONDS}");
            return Err(InputError::new("--seconds", what));
        }
        Ok(duration)
    }
}

/// Lists what in `e` is allowed and likely meant otherwise:
/// numbers of another unit, and what the machine can never do.
pub fn doubts(e: &Experiment) -> Vec<InputError> {
    let workload = workload_doubts(&e.workload, Some(&e.platform));
    [e.platform.doubts.clone(), workload, policy_doubts(&e.policy, &e.platform)].concat()
}

/// The part of [`doubts`] that is about a workload; without a platform, of any.
pub fn workload_doubts(w: &Workload, on: Option<&Platform>) -> Vec<InputError> {
    w.doubts.iter().cloned().chain(w.too_slow(on)).chain(w.never_meet()).collect()
}

/// The part of [`doubts`] that is about a policy: frequencies that no CPU has.
pub fn policy_doubts(policy: &Policy, platform: &Platform) -> Vec<InputError> {
    let freqs = || platform.domains.iter().flat_map(|d| &d.opps).map(|o| o.freq.0);
    let (Some(low), Some(high)) = (freqs().min(), freqs().max()) else { return Vec::new() };
    let catalogue = risetime_sim::catalogue();
    // Of all policies, or of one: `scaling_max_freq.policy4`.
    let name = |key: &str| key.split(".policy").next().unwrap_or_default().to_string();
    let is_khz =
        |key: &str| catalogue.params().any(|(_, p)| p.name == name(key) && p.unit == "kHz");
    let doubt = |(key, value): (&String, &Value)| {
        let Value::Int(khz) = value else { return None };
        let khz = u64::try_from(*khz).ok().filter(|khz| *khz > 0 && is_khz(key))?;
        let (is, unit) = match khz {
            _ if khz < low => (format!("below {low}, the lowest frequency"), "MHz"),
            // Asking for all there is by a round number is not meant otherwise.
            _ if khz / 100 > high => (format!("above {high}, the highest frequency"), "Hz"),
            _ => return None,
        };
        let what = format!("`{key}` is {khz}, {is} of {}: {unit} for kHz?", platform.name);
        Some(InputError::new(policy.place_of(key), what))
    };
    policy.set.iter().filter_map(doubt).collect()
}

/// Runs the start of `e` to find what only a run finds: a reservation that the machine cannot
/// give, more forks than there may be. One without either is not run.
///
/// Errors: the simulator's.
pub fn rehearse(mut e: Experiment) -> Result<(), RunError> {
    let tasks = || e.workload.tasks.iter().chain(&e.workload.forked);
    let attrs = tasks()
        .flat_map(|t| std::iter::once(&t.attr).chain(t.phases.iter().map(|phase| &phase.attr)));
    let mut policies = attrs.filter_map(|a| a.policy);
    let reserves = policies.any(|p| matches!(p, workload::Policy::Deadline { .. }));
    if !reserves && e.workload.forked.is_empty() {
        return Ok(());
    }
    e.duration = e.duration.min(REHEARSED);
    Simulator.run(&e, &mut ()).map(|_| ())
}

/// Length of a run that [`rehearse`] looks at.
const REHEARSED: Span = Span::from_ms(60_000);
