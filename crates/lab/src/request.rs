//! Request of a person, and the experiments that answer it.

use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::settings::keys::{HZ, SKIP_MS};
use risetime_model::workload::Change;
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
    /// Keys of it that are changed.
    pub changes: Vec<Change>,
    /// A built-in platform's name, or a file.
    pub platform: String,
    /// Ticks a second; `None`: the platform's.
    pub hz: Option<u32>,
    /// Policies, `NAME[+key=value…]`; empty: the default.
    pub policies: Vec<String>,
    /// Settings for all of them.
    pub set: Vec<(String, Value)>,
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

impl Request {
    /// `workload` on `platform` under the default policy, nothing set, from phase 0 with seed 1, without noise.
    pub fn new(workload: impl Into<String>, platform: impl Into<String>) -> Request {
        Request {
            workload: workload.into(),
            changes: Vec::new(),
            platform: platform.into(),
            hz: None,
            policies: Vec::new(),
            set: Vec::new(),
            seconds: None,
            skip_ms: None,
            phase: Span(0),
            seed: 1,
            noise: None,
        }
    }

    /// `risetime run` with what it takes to ask for the same; its noise is that command's own.
    pub fn command(&self) -> String {
        let mut words = vec!["risetime".into(), "run".into(), self.workload.clone()];
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        option("platform", self.platform.clone());
        self.hz.iter().for_each(|hz| option("hz", hz.to_string()));
        self.policies.iter().for_each(|policy| option("policy", policy.clone()));
        self.set.iter().for_each(|(key, value)| option("set", format!("{key}={value}")));
        self.changes.iter().for_each(|change| option("vary", change.to_string()));
        self.seconds.iter().for_each(|seconds| option("seconds", seconds.to_string()));
        self.skip_ms.iter().for_each(|ms| option("skip-ms", ms.to_string()));
        if self.phase.0 > 0 {
            option("phase-us", (self.phase.0 / 1000).to_string());
        }
        if self.seed != 1 {
            option("seed", self.seed.to_string());
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Takes back what was asked for of a setting: `+name=value` and `--set`.
    pub(crate) fn unset(&mut self, name: &str) {
        self.set.retain(|(key, _)| key != name);
        for policy in &mut self.policies {
            let of_it = |part: &&str| part.split_once('=').is_some_and(|(key, _)| key == name);
            *policy = policy.split('+').filter(|part| !of_it(part)).collect::<Vec<_>>().join("+");
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
        let platform = Platform::load(&self.platform)?;
        let platform = Arc::new(match self.hz {
            Some(hz) => platform.with_hz(hz),
            None => platform,
        });
        let workload = Arc::new(Workload::load_changed(&self.workload, &self.changes)?);
        check_fit(&workload, &self.workload, &platform)?;
        let duration = self.duration(&workload)?;
        let skipped = self.skipped(duration)?;
        let experiment = |policy: Policy| {
            let policy = match self.noise {
                Some(profile) if policy.said(&NOISE).is_none() => {
                    policy.set_for_all(NOISE.name, Value::Name(profile.into()))
                }
                _ => policy,
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

/// A word of a command line as a shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_./+=:,@%-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
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

/// Checks that the CPUs that `workload`, read from `source` (a name or a file), names are there.
///
/// Errors: as [`Workload::bind`]'s, whose place is `source`, which is what the person gave.
pub fn check_fit(workload: &Workload, source: &str, platform: &Platform) -> Result<(), InputError> {
    workload.bind(platform).map(|_| ()).map_err(|e| placed(e, workload, source))
}

/// Checks that the simulator can run `workload`, read from `source`, on any machine.
///
/// Errors: as [`risetime_sim::supported`]'s, at `source`.
pub fn check_supported(workload: &Workload, source: &str) -> Result<(), InputError> {
    risetime_sim::supported(workload).map_err(|e| placed(e, workload, source))
}

/// Lists what in `e`, whose workload was read from `source`, is allowed and likely meant otherwise:
/// numbers of another unit, and what the machine can never do.
pub fn doubts(e: &Experiment, source: &str) -> Vec<InputError> {
    let workload = workload_doubts(&e.workload, source, Some(&e.platform));
    [e.platform.doubts.clone(), workload, policy_doubts(&e.policy, &e.platform)].concat()
}

/// The part of [`doubts`] that is about a workload; without a platform, of any.
pub fn workload_doubts(w: &Workload, source: &str, on: Option<&Platform>) -> Vec<InputError> {
    let slow = w.too_slow(on).into_iter().map(|e| placed(e, w, source));
    let apart = w.never_meet().into_iter().map(|e| placed(e, w, source));
    w.doubts.iter().cloned().chain(slow).chain(apart).collect()
}

/// Lists the tasks of a workload whose reservations do not suffice.
pub fn reservation_doubts(w: &Workload, source: &str, on: Option<&Platform>) -> Vec<InputError> {
    w.too_little_runtime(on).into_iter().map(|e| placed(e, w, source)).collect()
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

/// An error about `workload`, whose place is what the person gave.
fn placed(e: InputError, workload: &Workload, source: &str) -> InputError {
    match e.place.starts_with(source) {
        true => e,
        false => InputError { place: e.place.replacen(&workload.name, source, 1), ..e },
    }
}

/// Runs the start of `request` to find what only a run finds: a reservation that the machine cannot
/// give, more forks than there may be. Requests without either are not run.
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

/// Length of a run that [`rehearse`] looks at.
const REHEARSED: Span = Span::from_ms(60_000);
