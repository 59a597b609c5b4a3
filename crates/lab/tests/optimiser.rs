//! What the optimiser writes, run in the simulator: in time, and what slack buys where jobs take longer than declared.

use crate::page;
use risetime_analysis::Options;
use risetime_deploy::optimise::{
    self, Deployment, DrawnDags, Effort, Objective, Problem, Runs, check, draw_dags, exact,
    workload,
};
use risetime_lab::{Answer, Graphs, Request, optimised, run};
use risetime_model::Platform;
use risetime_model::settings::Value;
use risetime_sim::Simulator;
use std::fmt::Write;
use std::time::Duration;

const SECONDS: f64 = 6.0;
const SETS: u64 = 12;

/// A platform's name, and what drawn sets take of it: from so many % of a CPU of capacity 1024 on, more with each seed.
type On = (&'static str, u64, u64);
const ODROID: On = ("odroid-xu4", 30, 4);
const RPI4: On = ("rpi4", 50, 0);

fn problem(on: On, seed: u64, factor_permille: u64, accelerated: u64) -> Problem {
    let what = DrawnDags { graphs: 2, nodes: (2, 4), percent: on.1 + on.2 * seed, accelerated };
    let platform = Platform::load(on.0).expect("built in");
    let options = optimise::Options { factor_permille };
    Problem::new(&draw_dags(&what, seed), &platform, options).expect("fits")
}

/// What came of a run: jobs of graphs that were due, those missed, mW of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Came {
    due: u64,
    missed: u64,
    mw: f64,
}

fn came(on: On, p: &Problem, d: &Deployment, runs: Runs, noise: Option<&'static str>) -> Came {
    let text = workload(p, d, runs);
    // Tests run side by side: a file for each text.
    let sum = text.bytes().fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let file = format!("{}/optimiser-{sum:x}.json", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, text).expect("written");
    let mut set = vec![("governor".to_string(), Value::Name("performance".into()))];
    for (domain, opp) in p.domains.iter().zip(&d.config.opp) {
        let first = p.cpus[domain.cpus[0]].id.0;
        let khz = domain.opps[*opp].freq.0 as i64;
        set.push((format!("scaling_max_freq.policy{first}"), Value::Int(khz)));
    }
    let request = Request { set, noise, seconds: Some(SECONDS), ..Request::new(&file, on.0) };
    let experiments = request.experiments().unwrap_or_else(|e| panic!("{e}"));
    let ran = run(&Simulator, &experiments[0], Options::default(), None);
    let result = ran.unwrap_or_else(|e| panic!("{e}")).result;
    let own = |g: &&risetime_analysis::Jobs| p.graphs.iter().any(|graph| graph.name == g.name);
    let graphs: Vec<_> = result.jobs.iter().filter(own).collect();
    assert_eq!(graphs.len(), p.graphs.len(), "{:?}", result.jobs);
    Came {
        due: graphs.iter().map(|g| g.due).sum(),
        missed: graphs.iter().map(|g| g.missed()).sum(),
        mw: result.energy_mj.expect("known") / SECONDS,
    }
}

/// All sets, both objectives: none late where jobs take what is declared, and no more power than said; with the factor none either
/// where switches, wakeups and ticks take their time.
#[test]
fn what_is_promised_is_kept() {
    let mut sets = 0;
    for seed in 0..SETS {
        for (factor, noise) in [(1050, None), (1100, Some("machine"))] {
            let p = problem(ODROID, seed, factor, 0);
            for objective in [Objective::Power, Objective::SLACK] {
                let Some(found) = exact(&p, objective, Effort::of(20_000_000_000)).0 else {
                    continue;
                };
                let checked = check(&p, &found.deployment).expect("obeys");
                let came = came(ODROID, &p, &found.deployment, Runs::Longest, noise);
                assert_eq!(
                    (came.due > 100, came.missed),
                    (true, 0),
                    "{seed} {factor} {objective:?}"
                );
                let said = checked.power_nw as f64 / 1e6;
                assert!(came.mw < said * 1.02, "{seed}: {} mW, said {said}", came.mw);
                sets += 1;
            }
        }
    }
    assert!(sets >= 40, "{sets}");
}

/// Nodes on a device: their requests wait for each other, and are in time.
#[test]
fn requests_of_a_device_are_in_time() {
    let mut on_device = 0;
    for seed in 0..6 {
        let p = problem(ODROID, seed, 1100, 60);
        let Some(found) = exact(&p, Objective::SLACK, Effort::of(20_000_000_000)).0 else {
            continue;
        };
        let here = |at: &&optimise::Place| matches!(at, optimise::Place::Version(_));
        on_device += found.deployment.config.place.iter().filter(here).count();
        let came = came(ODROID, &p, &found.deployment, Runs::Longest, Some("machine"));
        assert_eq!((came.due > 100, came.missed), (true, 0), "{seed}");
    }
    assert!(on_device >= 6, "{on_device}");
}

/// Execution times from 80 to 104 % of what is declared: budgets run out, and who has used up its own waits for its next period.
#[test]
fn slack_takes_the_misses_away() {
    let runs = Runs::Drawn { low: 80, high: 104, seed: 1 };
    let mut table = String::from(
        "set  slack at least   missed of due: least power   with the slack   factor 110\n",
    );
    let mut missed = [0, 0, 0];
    for seed in 0..SETS {
        let mut came_of = Vec::new();
        let mut slack = 0;
        for (objective, factor) in
            [(Objective::Power, 1000), (Objective::SLACK, 1000), (Objective::Power, 1100)]
        {
            let p = problem(RPI4, seed, factor, 0);
            let Some(found) = exact(&p, objective, Effort::of(20_000_000_000)).0 else { continue };
            let checked = check(&p, &found.deployment).expect("obeys");
            if objective == Objective::SLACK {
                slack = checked.min_slack_ppm();
            }
            came_of.push(came(RPI4, &p, &found.deployment, runs, Some("machine")));
        }
        let [a, b, c] = came_of[..] else { continue };
        for (sum, came) in missed.iter_mut().zip([a, b, c]) {
            *sum += came.missed;
        }
        let _ = writeln!(
            table,
            "{seed:3}  {:12.1} %   {:11} of {:4}           {:6}           {:6}",
            slack as f64 / 1e4,
            a.missed,
            a.due,
            b.missed,
            c.missed
        );
    }
    let _ = writeln!(
        table,
        "all                 {:11}                   {:6}           {:6}",
        missed[0], missed[1], missed[2]
    );
    page::holds("evidence/optimiser.md", "<!-- misses -->\n```text\n", "```\n", &table);
    assert!(missed[0] > 0, "{missed:?}");
    assert_eq!(missed[1..], [0, 0]);
}

/// What up to so much more power buys: slack, and what that does to misses.
#[test]
fn more_power_buys_slack() {
    let runs = Runs::Drawn { low: 70, high: 110, seed: 1 };
    let mut table = String::from(
        "| board | power over the least, at most | in the mean | slack at least, in the mean | missed of due |\n|---|---|---|---|---|\n",
    );
    for on in [RPI4, ODROID] {
        let mut before: Option<f64> = None;
        let mut least = [0; SETS as usize];
        for within in [None, Some(0), Some(20), Some(50), Some(100)] {
            let objective =
                within.map_or(Objective::Power, |w| Objective::Slack { within_permille: w });
            let (mut sets, mut more, mut slack, mut missed, mut due) = (0.0, 0.0, 0.0, 0, 0);
            for seed in 0..SETS {
                let p = problem(on, seed, 1000, 0);
                let Some(found) = exact(&p, objective, Effort::of(6_000_000_000)).0 else {
                    continue;
                };
                let checked = check(&p, &found.deployment).expect("obeys");
                let least = &mut least[seed as usize];
                if objective == Objective::Power {
                    *least = checked.power_nw;
                }
                let over = checked.power_nw as f64 / *least as f64 - 1.0;
                assert!(over <= within.unwrap_or(0) as f64 / 1000.0 + 1e-9, "{seed}: {over}");
                let came = came(on, &p, &found.deployment, runs, Some("machine"));
                (sets, more) = (sets + 1.0, more + over);
                slack += checked.min_slack_ppm() as f64 / 1e4;
                (missed, due) = (missed + came.missed, due + came.due);
            }
            let (more, slack) = (100.0 * more / sets, slack / sets);
            let at_most = match within {
                None => "least power alone".to_string(),
                Some(permille) => format!("{} %", permille / 10),
            };
            let _ = writeln!(
                table,
                "| {} | {at_most} | {more:.1} % | {slack:.1} % | {missed} of {due} |",
                on.0
            );
            // With more power there is no less slack.
            assert!(before.is_none_or(|before| slack >= before), "{}, {within:?}: {slack}", on.0);
            before = Some(slack);
        }
    }
    page::holds("evidence/optimiser.md", "<!-- bought -->\n", "<!-- end -->", &table);
}

/// A request of a device beside loads of deadline tasks: there is a CPU for who asks it, or real-time tasks have to come first; as printed none is late.
#[test]
fn a_device_is_asked_in_time_beside_deadlines() {
    for (loads, first) in [(5, false), (7, true)] {
        let mut file = String::from(
            "schema = 1\nname = \"dev\"\n[[device]]\nname = \"fpga0\"\nidle_mw = 10\n[[dag]]\nname = \"g\"\nperiod_us = 20000\ndeadline_us = 9000\n[[dag.node]]\nname = \"a\"\nruntime_us = 500\n[[dag.node]]\nname = \"b\"\nafter = [\"a\"]\nruntime_us = 30000\naccelerated = [{ device = \"fpga0\", runtime_us = 2000, power_mw = 50 }]\n[[dag.node]]\nname = \"c\"\nafter = [\"b\"]\nruntime_us = 500\n",
        );
        for i in 0..loads {
            let _ = write!(
                file,
                "[[dag]]\nname = \"h{i}\"\nperiod_us = 100000\n[[dag.node]]\nname = \"load{i}\"\nruntime_us = 42000\n"
            );
        }
        let dags = risetime_model::Dags::parse(&file, "dev.toml").expect("right");
        let platform = std::sync::Arc::new(Platform::load("rpi4").expect("built in"));
        let asked = Graphs {
            objective: Objective::SLACK,
            factor_percent: None,
            real_time_first: None,
            policy: "mainline".into(),
            within: Duration::from_secs(6),
        };
        let mut exact = |ways: &[Problem], objective, effort: Effort<'_>| {
            let effort = Effort { steps: 50_000_000, ..effort };
            let (found, ended) = optimise::solve(ways, objective, optimise::Solver::Exact, effort);
            Ok::<_, risetime_trace::RunError>(Answer { found, ended, programs: None })
        };
        let o = optimised(&dags, &platform, &asked, &mut exact, &|| false, &mut |_| ());
        let o = o.unwrap_or_else(|e| panic!("{e}"));
        let (found, ran) = (o.found.expect("there is one"), o.ran.expect("it was tried"));
        assert!(ran.kept() && ran.due > 500, "{loads}: {ran:?}");
        assert_eq!(o.problem.real_time_first(&found.deployment), first, "{loads}");
        check(&o.problem, &found.deployment).expect("obeys");
    }
}
