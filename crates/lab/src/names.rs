//! Names and files that a person gives, read: the only place that looks for built-ins and opens
//! what was written, for requests and for whatever else a command line names.
//!
//! ```text
//! Request (names) ── read() ──> Documents ── experiments() ──> Experiment(s)
//! ```

mod read;

pub use read::{
    Noun, dags, is_workload, needs, partsim, platform, study, task_set, text, workload,
};

use crate::request::Documents;
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::library::DEFAULT_POLICY;
use risetime_model::settings::Value;
use risetime_model::workload::Change;
use risetime_model::{Experiment, InputError, Platform, Policy, Workload};
use std::sync::Arc;

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
        self.read(None)?.simulated()
    }

    /// The experiments, one a policy, for a kernel that will be booted: `mainline` means its generation, if
    /// that is given.
    ///
    /// Errors: a policy of another generation; not what only the simulator refuses.
    pub fn experiments_under(
        &self,
        kernel: Option<KernelRev>,
    ) -> Result<Vec<Experiment>, InputError> {
        self.read(kernel)?.experiments()
    }

    /// The experiments of other policies than those named in the request, for the simulator.
    ///
    /// Errors: as above.
    pub fn experiments_of(&self, policies: Vec<Policy>) -> Result<Vec<Experiment>, InputError> {
        self.documents(policies, self.platform()?, self.workload()?).simulated()
    }

    /// Reads all that the request names, once; `kernel`: as in [`Request::experiments_under`].
    ///
    /// Errors: a name that nobody knows; what is wrong with a file; a policy of another generation.
    pub fn read(&self, kernel: Option<KernelRev>) -> Result<Documents, InputError> {
        // What is wrong with the platform or the workload comes first.
        let (platform, workload) = (self.platform()?, self.workload()?);
        let default = [DEFAULT_POLICY.to_string()];
        let names = if self.policies.is_empty() { &default[..] } else { &self.policies[..] };
        let one = |name: &String| under(policy(name, &self.set)?, name, kernel);
        let policies = names.iter().map(one).collect::<Result<_, _>>()?;
        Ok(self.documents(policies, platform, workload))
    }

    fn platform(&self) -> Result<Platform, InputError> {
        platform(&self.platform)
    }

    fn workload(&self) -> Result<Workload, InputError> {
        workload(&self.workload, &self.changes)
    }

    fn documents(
        &self,
        policies: Vec<Policy>,
        platform: Platform,
        workload: Workload,
    ) -> Documents {
        Documents {
            workload: Arc::new(workload),
            platform: Arc::new(platform),
            policies,
            hz: self.hz,
            seconds: self.seconds,
            skip_ms: self.skip_ms,
            phase: self.phase,
            seed: self.seed,
            noise: self.noise,
        }
    }

    /// The fault of the platform, where that is asked, else of the workload as it is, where that is.
    pub(crate) fn fault(&self, platform: bool, workload: bool) -> Option<InputError> {
        let of_platform = platform.then(|| self.platform().err()).flatten();
        of_platform.or_else(|| workload.then(|| Workload::load(&self.workload).err()).flatten())
    }
}

/// The policy of a `--policy` argument, with settings that hold for every policy.
///
/// Errors: as [`Policy::from_arg_with`]'s.
pub fn policy(arg: &str, set: &[(String, Value)]) -> Result<Policy, InputError> {
    Policy::from_arg_with(arg, set)
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
