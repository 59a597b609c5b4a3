//! What a person asked for, and the experiments that answer it.

use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::{Experiment, InputError, Platform, Policy, Workload, workload};
use risetime_sim::{NOISE, Simulator};
use risetime_trace::{Backend, RunError};
use std::sync::Arc;

/// Length of a run of which nobody said how long it is.
pub const DEFAULT_SECONDS: f64 = 3.0;
/// The longest run.
pub const MAX_SECONDS: f64 = 86_400.0;

/// One workload on one platform under one or several policies.
#[derive(Clone, Debug)]
pub struct Request {
    /// A built-in workload's name, or a file.
    pub workload: String,
    /// Keys of the workload that are changed.
    pub vary: Vec<workload::Change>,
    /// A built-in platform's name, or a file.
    pub platform: String,
    /// Policies, `NAME[+key=value…]`; empty: the default.
    pub policies: Vec<String>,
    /// Settings for all of them.
    pub set: Vec<(String, Value)>,
    /// Length of the run; `None`: the workload's own, else [`DEFAULT_SECONDS`].
    pub seconds: Option<f64>,
    /// The workload starts this much later.
    pub phase: Span,
    /// Seed.
    pub seed: u64,
    /// The noise profile of policies that name none (setting `noise`); `None`: none.
    pub noise: Option<&'static str>,
}

impl Request {
    /// `workload` on `platform` under the default policy, nothing set, from phase 0 with seed 1, without noise.
    pub fn new(workload: impl Into<String>, platform: impl Into<String>) -> Request {
        Request {
            workload: workload.into(),
            vary: Vec::new(),
            platform: platform.into(),
            policies: Vec::new(),
            set: Vec::new(),
            seconds: None,
            phase: Span(0),
            seed: 1,
            noise: None,
        }
    }

    /// The experiments, one a policy, every setting resolved, for the simulator.
    ///
    /// Errors: whatever is wrong with a file, a name, a setting or a length of time, and what the
    /// simulator refuses.
    pub fn experiments(&self) -> Result<Vec<Experiment>, InputError> {
        self.simulated(self.experiments_under(None)?)
    }

    /// The experiments, one a policy, for a kernel that will be booted: `mainline` means its generation, if
    /// that is given.
    ///
    /// Errors: a policy of another generation; not what only the simulator refuses.
    pub fn experiments_under(
        &self,
        kernel: Option<KernelRev>,
    ) -> Result<Vec<Experiment>, InputError> {
        let names = if self.policies.is_empty() {
            &["mainline".to_string()][..]
        } else {
            &self.policies[..]
        };
        let policy = |name: &String| under(Policy::from_arg_with(name, &self.set)?, name, kernel);
        // What is wrong with the platform or the workload comes first.
        self.all(|| names.iter().map(policy).collect())
    }

    /// The experiments of other policies than those named in the request, for the simulator.
    ///
    /// Errors: as above.
    pub fn experiments_of(
        &self,
        policies: impl FnOnce() -> Result<Vec<Policy>, InputError>,
    ) -> Result<Vec<Experiment>, InputError> {
        self.simulated(self.all(policies)?)
    }

    fn simulated(&self, experiments: Vec<Experiment>) -> Result<Vec<Experiment>, InputError> {
        match experiments.first() {
            Some(e) => check_supported(&e.workload, &self.workload).map(|()| experiments),
            None => Ok(experiments),
        }
    }

    fn all(
        &self,
        policies: impl FnOnce() -> Result<Vec<Policy>, InputError>,
    ) -> Result<Vec<Experiment>, InputError> {
        let platform = Arc::new(Platform::load(&self.platform)?);
        let workload = Arc::new(Workload::load_with(&self.workload, &self.vary)?);
        check_fit(&workload, &self.workload, &platform)?;
        let duration = self.duration(&workload)?;
        let experiment = |policy: Policy| {
            let policy = match self.noise {
                Some(profile) if !policy.set.contains_key(NOISE) => {
                    policy.set_for_all(NOISE, Value::Name(profile.into()))
                }
                _ => policy,
            };
            let settings = risetime_sim::resolve(&platform, &policy)?;
            Ok(Experiment {
                platform: Arc::clone(&platform),
                workload: Arc::clone(&workload),
                policy,
                settings,
                duration: duration + self.phase,
                phase: self.phase,
                seed: self.seed,
            })
        };
        policies()?.into_iter().map(experiment).collect()
    }

    fn duration(&self, workload: &Workload) -> Result<Span, InputError> {
        let Some(seconds) = self.seconds else {
            return Ok(workload.duration.unwrap_or(Span((DEFAULT_SECONDS * 1e9) as u64)));
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

/// `policy`, which was asked for as `name`, under a kernel that is given.
fn under(policy: Policy, name: &str, kernel: Option<KernelRev>) -> Result<Policy, InputError> {
    match kernel {
        Some(rev) if name.split('+').next() == Some("mainline") => {
            let changes =
                policy.name.split_once('+').map(|(_, c)| format!("+{c}")).unwrap_or_default();
            Ok(Policy { name: format!("linux-{rev}{changes}"), kernel: rev, ..policy })
        }
        Some(rev) if rev != policy.kernel => Err(InputError::new(
            &policy.name,
            format!("is of Linux {}, the kernel to boot counts as {rev}", policy.kernel),
        )
        .hint("`mainline` means the kernel that is booted; --kernel takes another")),
        _ => Ok(policy),
    }
}

/// Are the CPUs that `workload`, read from `source` (a name or a file), speaks of there?
///
/// Errors: as [`Workload::bind`]'s, whose place is `source`, which is what the person gave.
pub fn check_fit(workload: &Workload, source: &str, platform: &Platform) -> Result<(), InputError> {
    workload.bind(platform).map(|_| ()).map_err(|e| placed(e, workload, source))
}

/// Can the simulator run `workload`, read from `source`, on any machine?
///
/// Errors: as [`risetime_sim::supported`]'s, at `source`.
pub fn check_supported(workload: &Workload, source: &str) -> Result<(), InputError> {
    risetime_sim::supported(workload).map_err(|e| placed(e, workload, source))
}

/// An error about `workload`, whose place is what the person gave.
fn placed(e: InputError, workload: &Workload, source: &str) -> InputError {
    InputError { place: e.place.replacen(&workload.name, source, 1), ..e }
}

/// What only a run of `request` finds: a reservation that the
/// machine cannot give, more forks than there may be. Others are not run for it.
///
/// Errors: the simulator's.
pub fn rehearse(request: &Request) -> Result<(), RunError> {
    let Some(mut e) = request.experiments()?.pop() else { return Ok(()) };
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

/// How much of a run [`rehearse`] looks at.
const REHEARSED: Span = Span::from_ms(60_000);
