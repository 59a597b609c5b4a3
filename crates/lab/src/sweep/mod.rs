//! A grid of experiments: something varied by name, each point of it a [`Request`] of its own.
//!
//! ```text
//! policy, platform, workload, seconds, seed, hz    of the request
//! kernel                                           6.8: what `linux-6.8` is, with what the policy changes
//! ui.run, global.duration                          a key of the workload (`model::workload::Change`)
//! rate_limit_us, and every other name              a setting
//! ```

mod values;

pub use values::{MAX_POINTS, axis, named};

use self::values::{argument, place};
use crate::Request;
use crate::executor::Threads;
use crate::measure::{Grid, measure_each};
use risetime_analysis::metric::Metric;
use risetime_analysis::sweep::{Axis, Point, Recipe, Sweep};
use risetime_model::library::DEFAULT_POLICY;
use risetime_model::platform::HZ;
use risetime_model::policy::parse_setting;
use risetime_model::settings::Value;
use risetime_model::workload::Change;
use risetime_model::{Experiment, InputError, Subject};
use risetime_sim::NOISE;
use risetime_trace::{Backend, RunError};

/// `metrics` at each point of the grid, from `phases` start phases each. `progress` hears how many runs are done.
///
/// Errors: as [`varied`]'s; a grid of more than [`MAX_POINTS`]; a metric that a point does not have; the backend's.
pub fn sweep(
    backend: &dyn Backend,
    request: &Request,
    axes: &[Axis],
    phases: u32,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<Sweep, RunError> {
    Ok(sweep_of(backend, request, axes, phases, metrics, progress)?.0)
}

/// Sweeps as [`sweep`] does, and returns the experiment of each point, too.
///
/// Errors: as there.
pub fn sweep_of(
    backend: &dyn Backend,
    request: &Request,
    axes: &[Axis],
    phases: u32,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<(Sweep, Vec<Experiment>), RunError> {
    let grid = grid(axes)?;
    let mut requests = Vec::with_capacity(grid.len());
    let mut experiments = Vec::with_capacity(grid.len());
    for at in &grid {
        let point: Vec<(&str, &str)> = named_values(axes, at).collect();
        let (own, mut found) = varied(request, &point, Request::experiments)?;
        experiments.extend(found.pop());
        requests.push(own);
    }
    let starts = Grid::of_phases(phases);
    let measured = measure_each(&Threads(backend), &experiments, &starts, metrics, progress)
        .map_err(|(i, e)| match e {
            RunError::Input(e) => RunError::Input(told_of(&grid[i], axes, e)),
            other => other,
        })?;
    let points = grid.into_iter().zip(requests).zip(measured).map(|((at, request), measured)| {
        let command = format!("{} --phases {phases}", request.command());
        Point { at, recipe: recipe(&request, phases), command, measured }
    });
    let points = points.collect();
    Ok((Sweep { axes: axes.to_vec(), backend: backend.kind(), points }, experiments))
}

/// `request` with other values, and its experiments.
///
/// Errors: something varied twice, or set as well; those of `experiments`, where a value may be to blame with its name.
pub fn varied(
    request: &Request,
    point: &[(&str, &str)],
    experiments: impl FnOnce(&Request) -> Result<Vec<Experiment>, InputError>,
) -> Result<(Request, Vec<Experiment>), InputError> {
    let mut own = request.clone();
    let found = apply(&mut own, point).and_then(|()| experiments(&own));
    match found {
        Ok(found) => Ok((own, found)),
        Err(e) => Err(to_blame(request, point).unwrap_or_else(|| told(point, e))),
    }
}

/// The fault in the files of `request` that is there whatever is varied in them.
fn to_blame(request: &Request, point: &[(&str, &str)]) -> Option<InputError> {
    let given = |name: &str| point.iter().all(|(n, _)| *n != name);
    request.fault(given("platform"), given("workload"))
}

/// An error at a point, which is named.
fn told(point: &[(&str, &str)], e: InputError) -> InputError {
    if e.subject == Some(Subject::Argument) {
        return e;
    }
    let at: Vec<String> = point.iter().map(|(name, v)| place(&format!("{name}={v}"))).collect();
    match at.is_empty() {
        true => e,
        false => InputError { place: format!("{}: {}", at.join(" "), e.place), ..e },
    }
}

fn told_of(at: &[String], axes: &[Axis], e: InputError) -> InputError {
    told(&named_values(axes, at).collect::<Vec<_>>(), e)
}

fn named_values<'a>(
    axes: &'a [Axis],
    at: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    axes.iter().map(|axis| axis.name.as_str()).zip(at.iter().map(String::as_str))
}

/// Lists every combination of the axes' values, the last axis fastest.
fn grid(axes: &[Axis]) -> Result<Vec<Vec<String>>, InputError> {
    let points = axes.iter().try_fold(1, |n: usize, axis| n.checked_mul(axis.values.len()));
    if points.is_none_or(|n| n > MAX_POINTS) {
        let counts: Vec<String> = axes.iter().map(|axis| axis.values.len().to_string()).collect();
        let what = format!("{} points, wanted at most {MAX_POINTS}", counts.join(" × "));
        return Err(InputError::new("--vary", what).hint("take fewer values, or larger steps"));
    }
    let mut grid = vec![Vec::new()];
    for axis in axes {
        let with =
            |at: &Vec<String>, value: &String| [&at[..], std::slice::from_ref(value)].concat();
        grid = grid.iter().flat_map(|at| axis.values.iter().map(move |v| with(at, v))).collect();
    }
    Ok(grid)
}

/// Puts the values into `request`.
fn apply(request: &mut Request, point: &[(&str, &str)]) -> Result<(), InputError> {
    for (i, (name, _)) in point.iter().enumerate() {
        if point[..i].iter().any(|(other, _)| other == name) {
            return Err(argument(name, "is there twice"));
        }
        if request.set.iter().any(|(set, _)| set == name) {
            return Err(argument(name, "is set as well").hint("leave one of them out"));
        }
    }
    // A kernel is that of the policy, whichever is named first.
    let (kernels, others): (Vec<_>, Vec<_>) = point.iter().partition(|(name, _)| *name == "kernel");
    others.into_iter().chain(kernels).try_for_each(|(name, value)| put(request, name, value))
}

fn put(request: &mut Request, name: &str, value: &str) -> Result<(), InputError> {
    let wrong =
        |wanted: &str| Err(argument(&format!("{name}={value}"), format!("wanted {wanted}")));
    match name {
        "policy" => request.policies = vec![value.into()],
        "platform" => request.platform = value.into(),
        "workload" => request.workload = value.into(),
        "seconds" => match value.parse() {
            Ok(seconds) => request.seconds = Some(seconds),
            Err(_) => return wrong("a number of seconds"),
        },
        "seed" => match value.parse() {
            Ok(seed) => request.seed = seed,
            Err(_) => return wrong("a whole number that is not negative"),
        },
        "hz" => match value.parse() {
            Ok(hz) if (HZ.0..=HZ.1).contains(&hz) => request.hz = Some(hz),
            _ => return wrong(&format!("a whole number from {} to {}", HZ.0, HZ.1)),
        },
        "kernel" => {
            if request.policies.is_empty() {
                request.policies.push(DEFAULT_POLICY.into());
            }
            for policy in &mut request.policies {
                *policy = under(policy, value)?;
            }
        }
        _ if name.contains('.') && !is_setting(name) => {
            request.changes.push(Change { key: name.into(), value: value.into() });
        }
        _ => {
            let set = parse_setting(&format!("{name}={value}"), "--vary");
            request.set.push(set.map_err(|e| e.about(Subject::Argument))?);
        }
    }
    Ok(())
}

/// `policy`, which is mainline's, as the release `kernel` has it.
fn under(policy: &str, kernel: &str) -> Result<String, InputError> {
    let (preset, changes) = policy.split_once('+').map_or((policy, None), |(p, c)| (p, Some(c)));
    if preset != DEFAULT_POLICY && !preset.starts_with("linux-") {
        let what = format!("`{preset}` says which kernel it is");
        return Err(
            argument(&format!("kernel={kernel}"), what).hint("vary `policy` in place of `kernel`")
        );
    }
    let release = kernel.strip_prefix("linux-").unwrap_or(kernel);
    let changes = changes.map(|c| format!("+{c}")).unwrap_or_default();
    Ok(format!("linux-{release}{changes}"))
}

/// Whether the simulator has a setting of that name; `hw_capped_khz.policy4` is one of a policy of its own.
fn is_setting(name: &str) -> bool {
    let of_all = name.split(".policy").next();
    risetime_sim::catalogue().params().any(|(_, p)| Some(p.name) == of_all)
}

fn recipe(request: &Request, phases: u32) -> Recipe {
    let noise = request.noise.filter(|_| request.set.iter().all(|(name, _)| name != NOISE.name));
    let noise = noise.map(|profile| (NOISE.name.to_string(), Value::Name(profile.into())));
    Recipe {
        workload: request.workload.clone(),
        changes: request.changes.iter().map(|c| (c.key.clone(), c.value.clone())).collect(),
        platform: request.platform.clone(),
        hz: request.hz,
        policy: request.policies.first().map_or(DEFAULT_POLICY, String::as_str).into(),
        set: request.set.iter().cloned().chain(noise).collect(),
        seconds: request.seconds,
        seed: request.seed,
        phases,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_sim::Simulator;

    fn request() -> Request {
        Request { seconds: Some(1.2), ..Request::new("rampup", "m1") }
    }

    fn axes(of: &[&str]) -> Vec<Axis> {
        of.iter().map(|text| axis(text).unwrap_or_else(|e| panic!("{e}"))).collect()
    }

    fn swept(of: &[&str]) -> Result<Sweep, String> {
        let metrics = [Metric::new("rampup.debt")];
        sweep(&Simulator, &request(), &axes(of), 2, &metrics, |_| ()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_point_is_what_its_command_asks_for() {
        let of = ["policy=mainline+rate_limit_us=70,mainline", "kernel=6.8,linux-6.12", "hz=250"];
        let s = swept(&of).expect("it runs");
        let at: Vec<String> = s.points.iter().map(|p| p.at.join(" ")).collect();
        let both = ["mainline+rate_limit_us=70", "mainline"];
        let wanted = both.map(|p| ["6.8", "linux-6.12"].map(|k| format!("{p} {k} 250"))).concat();
        assert_eq!(at, wanted);
        let first = &s.points[0];
        let ran = (first.measured.policy.as_str(), first.measured.platform.as_str());
        assert_eq!(ran, ("linux-6.8+rate_limit_us=70", "m1+hz=250"));
        assert_eq!(
            first.command,
            "risetime run rampup --platform m1 --hz 250 --policy linux-6.8+rate_limit_us=70 --seconds 1.2 --phases 2"
        );
        let last = Request { policies: vec!["linux-6.12".into()], hz: Some(250), ..request() };
        let last = last.experiments().expect("built in");
        let last = crate::measure(&Simulator, &last, 2, &[Metric::new("rampup.debt")], |_| ());
        assert_eq!(Ok(&s.points[3].measured), last.as_ref().map(|all| &all[0]).map_err(|_| ()));
    }

    #[test]
    fn everything_that_can_be_varied_is_put_where_it_belongs() {
        let mut all = request();
        let point = [
            ("workload", "phone"),
            ("platform", "my soc.toml"),
            ("seconds", "0.5"),
            ("seed", "7"),
            ("hw_capped_khz.policy4", "1200000"),
            ("governor", "performance"),
            ("ui.run#2", "1000"),
        ];
        apply(&mut all, &point).expect("as they are");
        assert_eq!(
            all.command(),
            "risetime run phone --platform 'my soc.toml' --set hw_capped_khz.policy4=1200000 \
             --set governor=performance --vary 'ui.run#2=1000' --seconds 0.5 --seed 7"
        );
        let own = recipe(&Request { noise: Some("machine"), ..all.clone() }, 3);
        assert_eq!(own.set[2], ("noise".into(), Value::Name("machine".into())));
        assert_eq!((own.policy.as_str(), own.phases), ("mainline", 3));
    }

    #[test]
    fn errors_name_the_point_unless_it_is_not_to_blame() {
        for (of, wanted) in [
            (
                &["rampup.phases.busy.run=-5", "seed=1"][..],
                "--vary rampup.phases.busy.run=-5 --vary seed=1: rampup.json (built in):",
            ),
            (&["ramp.run=5"], "--vary ramp.run=5: rampup.json (built in):"),
            (&["rate_limit_us=-1"], "--vary rate_limit_us=-1: linux-7.2: `rate_limit_us` is -1"),
            (&["rate_limt_us=1"], "did you mean `rate_limit_us`?"),
            (&["kernel=6.10"], "--vary kernel=6.10: linux-6.10: no built-in policy"),
            (
                &["policy=rfc-v1", "kernel=6.8"],
                "--vary kernel=6.8: `rfc-v1` says which kernel it is",
            ),
            (&["hz=5"], "--vary hz=5: wanted a whole number from 24 to 10000"),
            (&["seconds=x"], "--vary seconds=x: wanted a number of seconds"),
            (&["seconds=-1"], "--vary seconds=-1: --seconds: found -1.0"),
            (&["seed=-1"], "--vary seed=-1: wanted a whole number"),
            (&["seed=1", "seed=2"], "--vary seed: is there twice"),
            (
                &["seed=1..1000:1", "hz=100..200:1"],
                "--vary: 1000 × 101 points, wanted at most 10000",
            ),
            (
                &["workload=rampup,idle"],
                "--vary workload=idle: --metric: there is no figure `rampup.debt`",
            ),
        ] {
            let e = swept(of).expect_err(wanted);
            assert!(e.contains(wanted), "{e}");
        }
        let all = sweep(&Simulator, &Request::new("no", "m1"), &axes(&["seed=1"]), 1, &[], |_| ());
        assert!(all.unwrap_err().to_string().starts_with("no: no built-in workload"));
        let set = vec![("rate_limit_us".to_string(), Value::Int(5))];
        let twice = Request { set, ..request() };
        let all = sweep(&Simulator, &twice, &axes(&["rate_limit_us=1"]), 1, &[], |_| ());
        assert!(all.unwrap_err().to_string().starts_with("--vary rate_limit_us: is set as well"));
    }
}
