//! Every governor and tracker on every platform, as a user has them: a run with jobs, groups and classes, why it was slow,
//! and what could be done.

use risetime_analysis::Options;
use risetime_analysis::explain::{About, Over};
use risetime_kernel::units::Span;
use risetime_lab::{Request, Wanted, Why, advise, explain, run};
use risetime_model::{Experiment, Workload, library};
use risetime_report::text::{self, Style};
use risetime_sim::Simulator;
use risetime_sim::settings::{GOVERNOR, SCHEDUTIL};
use std::sync::Arc;

/// A job of two tasks, a group, a hog, a real-time task; in place of the hog a deadline task where it is asked for.
fn mixed(deadline: bool) -> Workload {
    let other = match deadline {
        true => {
            r#""policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 20000, "dl-deadline": 20000,
            "loop": -1, "run": 1000, "timer": {"ref": "unique", "period": 20000}"#
        }
        false => r#""taskgroup": "/bg", "loop": -1, "run": 4000, "sleep": 1500"#,
    };
    let text = format!(
        r#"{{"taskgroups": {{"/bg": {{"weight": 50}}}}, "tasks": {{
        "ui": {{"job": {{"name": "frame", "tasks": ["render"]}}, "loop": -1, "run": 1500, "resume": "render",
            "timer": {{"ref": "unique", "period": 16667}}}},
        "render": {{"loop": -1, "suspend": "render", "run": 2500}},
        "rt": {{"policy": "SCHED_FIFO", "priority": 7, "loop": -1, "run": 300,
            "timer": {{"ref": "unique", "period": 9000}}}},
        "other": {{{other}}}}}}}"#
    );
    Workload::parse(&text, "mixed.json").expect("a workload")
}

/// The kinds: a preset, or a governor or tracker of the registries on a kernel that has it.
fn kinds() -> Vec<String> {
    let catalogue = risetime_sim::catalogue();
    let names = |name: &str| {
        let param = catalogue.params().find(|(_, p)| p.name == name).expect("a setting").1;
        param.range.parts().1
    };
    let mut all: Vec<String> = names("governor")
        .iter()
        .flat_map(|g| [format!("linux-4.4+governor={g}"), format!("linux-6.12+governor={g}")])
        .collect();
    for tracker in names("tracker") {
        all.push(format!("linux-4.4+tracker={tracker}"));
        all.push(format!("linux-6.12+tracker={tracker}"));
    }
    for (g, more) in [("ondemand", "timer"), ("conservative", "timer")] {
        all.push(format!("linux-6.1+governor={g}+sampling={more}"));
    }
    all.extend(
        ["rt_tracking=rt_avg", "pelt_invariance=contribution", "pelt_propagate=0", "nohz_stats=0"]
            .map(|set| format!("linux-6.1+{set}")),
    );
    let older = library::policies().into_iter().map(|p| p.name.to_string());
    all.extend(older.filter(|name| {
        let begins = ["linux-3", "linux-4", "linux-5", "pixel"];
        begins.iter().any(|begin| name.starts_with(begin))
    }));
    all
}

fn experiment(platform: &str, policy: &str, ms: u64, deadline: bool) -> Experiment {
    let request = Request { policies: vec![policy.into()], ..Request::new("idle", platform) };
    let mut e =
        request.experiments().unwrap_or_else(|e| panic!("{policy} on {platform}: {e}")).remove(0);
    e.workload = Arc::new(mixed(deadline));
    e.duration = Span::from_ms(ms);
    e
}

#[test]
fn every_kind_runs_on_every_platform_and_the_same_again() {
    for platform in library::platforms() {
        for (n, policy) in kinds().iter().enumerate() {
            let e = experiment(platform.name, policy, 60, n % 2 == 0);
            let once = || run(&Simulator, &e, Options::default(), None).expect("a run").result;
            let result = once();
            let what = format!("{policy} on {}", platform.name);
            assert_eq!(format!("{result:?}"), format!("{:?}", once()), "{what}");
            let frame = &result.jobs[0];
            assert!(frame.released >= 3 && frame.released < 6, "{what}: {frame:?}");
            assert!(result.energy_mj.is_none_or(|mj| mj > 0.0), "{what}");
            for cpu in &result.cpus {
                let spent: f64 = cpu.freq.iter().map(|f| f.1).sum();
                assert!((spent - 60.0).abs() < 1e-6, "{what}: {:?}", cpu.freq);
                let domain = e.platform.domain_of(cpu.cpu).expect("its domain");
                let opps = &e.platform.domains[domain].opps;
                assert!(cpu.freq.iter().all(|f| opps.iter().any(|o| o.freq == f.0)), "{what}");
            }
        }
    }
}

/// Shares add up to what was lost, of a burst as of jobs, and no cause that acts is without words.
#[test]
fn every_kind_is_explained() {
    for platform in ["rpi4", "pixel6", "hikey620", "server64", "laptop4"] {
        for (n, policy) in kinds().iter().enumerate() {
            let e = experiment(platform, policy, 80, n % 2 == 1);
            for over in [None, Some(Over::All)] {
                let why = Why {
                    task: Some(if over.is_some() { "frame" } else { "ui" }),
                    over,
                    budget: Span::from_ms(1500),
                };
                let what = format!("{policy} on {platform}, {over:?}");
                let found = match explain(&e, why, |_, _| ()) {
                    Ok(found) => found,
                    // On the slowest frequency of the slowest CPU no frame is done in that time.
                    Err(error) => {
                        assert!(
                            error.to_string().contains("is done by the run's end"),
                            "{what}: {error}"
                        );
                        continue;
                    }
                };
                let sum: f64 =
                    found.causes.iter().map(|c| c.ms).sum::<f64>() + found.unexplained_ms;
                let all = found.about.ms();
                assert!((sum - all).abs() <= 1e-6 * all.max(1.0), "{what}: {sum} of {all}");
                let samples = ["ondemand", "conservative", "interactive"];
                let governor = e.settings.get(&GOVERNOR).unwrap_or(SCHEDUTIL);
                for cause in found.causes.iter().filter(|c| c.acts) {
                    assert!(!cause.label.is_empty() && !cause.about.is_empty(), "{what}");
                    let own = !samples.contains(&governor) || !cause.about.contains("headroom");
                    assert!(own, "{what}: {}", cause.about);
                }
                assert!(
                    found.causes.iter().all(|c| c.error_ms.is_none_or(f64::is_finite)),
                    "{what}"
                );
                // Before 4.20 nothing but EAS knew that CPUs differ: that a task is on a small one is no cause's fault.
                let unequal =
                    found.causes.iter().find(|c| c.cause == "margin").expect("one of them").acts;
                let equal = ["rpi4", "hikey620", "server64", "laptop4"].contains(&platform);
                // Without all of them a burst is at full speed at once, but for what the real-time task takes: 0.3 ms
                // every 9 ms, of whichever CPU.
                if let About::Burst(burst) = found.about
                    && (equal || unequal)
                {
                    let taken = 0.3 * ((burst.t1_ms - burst.t0_ms) / 9.0 + 1.0);
                    assert!(found.unexplained_ms.abs() < taken + 0.05, "{what}: {found:?}");
                }
            }
        }
    }
}

/// Whatever is at hand, the steps that come out can be taken: the simulator takes them, and a line says how.
#[test]
fn every_kind_is_advised() {
    for platform in ["rpi4", "pixel6", "laptop4"] {
        for policy in
            kinds().iter().filter(|p| !p.contains("performance") && !p.contains("userspace"))
        {
            // Advice knows nothing yet of what can be set under sched_pixel.
            if policy.starts_with("pixel") {
                continue;
            }
            let request = Request {
                policies: vec![policy.clone()],
                seconds: Some(0.25),
                ..Request::new("periodic", platform)
            };
            let wanted = Wanted {
                request,
                metric: Some("frame.debt".into()),
                task: None,
                phases: 6,
                budget: 90,
            };
            let what = format!("{policy} on {platform}");
            let advice = advise(&wanted, |_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(advice.runs <= 90, "{what}");
            let style = Style { width: 100, color: false, unicode: true };
            let page = text::advice(&advice, "risetime run periodic", None, &style);
            assert!(!page.contains("(simulator only)"), "{what}:\n{page}");
            // Whoever does not run at the highest frequency gets it, or does better than with it.
            let slow = advice.base.estimate(0).is_some_and(|e| e.median > 0.5);
            // A tunable that was said stays, and with it its governor.
            let stays = policy.contains("sampling=");
            assert!(!slow || stays || !advice.tried.is_empty(), "{what}:\n{page}");
        }
    }
}
