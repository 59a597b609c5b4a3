//! Against brute force, closed forms and the independent checker.

use super::cuts::{Cut, Cuts};
use super::linear::Written;
use super::*;
use crate::draws;
use proptest::prelude::*;
use risetime_model::{Dags, Platform};

const ONE: Options = Options { factor_permille: 1000 };

/// Two CPUs each of two kinds, three OPPs: few enough for brute force.
const SMALL: &str = r#"
schema = 1
name = "small"
hz = 250
[[domain]]
cpus = "0-1"
capacity = 400
opp = [
  { freq_khz = 500000, power_uw = 60000, latency_ns = 1000 },
  { freq_khz = 1000000, power_uw = 150000, latency_ns = 1000 },
  { freq_khz = 1500000, power_uw = 320000, latency_ns = 1000 },
]
idle = [
  { name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 5000 },
  { name = "off", exit_latency_us = 100, min_residency_us = 500, power_uw = 500 },
]
[[domain]]
cpus = "2-3"
capacity = 1024
opp = [
  { freq_khz = 600000, power_uw = 300000, latency_ns = 1000 },
  { freq_khz = 1200000, power_uw = 800000, latency_ns = 1000 },
  { freq_khz = 2000000, power_uw = 1900000, latency_ns = 1000 },
]
idle = [
  { name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 20000 },
]
[sources]
capacity = "made up"
opp = "made up"
"#;

fn problem(file: &str, platform: &str) -> Problem {
    let dags = Dags::parse(&format!("schema = 1\nname = \"x\"\n{file}"), "x.toml").expect("right");
    Problem::new(&dags, &Platform::load(platform).expect("built in"), ONE).expect("fits")
}

fn drawn(what: &DrawnDags, seed: u64, factor_permille: u64) -> Problem {
    let platform = Platform::parse(SMALL, "small.toml").expect("right");
    Problem::new(&draw_dags(what, seed), &platform, Options { factor_permille }).expect("fits")
}

fn chain(runtimes: &[u64], deadline_us: u64) -> String {
    let mut file = format!("[[dag]]\nname = \"g\"\nperiod_us = {deadline_us}\n");
    for (i, us) in runtimes.iter().enumerate() {
        file += &format!("[[dag.node]]\nname = \"n{i}\"\nruntime_us = {us}\n");
        if i > 0 {
            file += &format!("after = [\"n{}\"]\n", i - 1);
        }
    }
    file
}

/// The least power of all deployments, each looked at: nothing is left out, CPUs alike or not.
fn brute_force(p: &Problem) -> Option<u64> {
    let mut ways: Vec<Config> = vec![Config { opp: Vec::new(), place: Vec::new() }];
    for d in &p.domains {
        let longer = |c: &Config, o| Config { opp: [&c.opp[..], &[o]].concat(), place: Vec::new() };
        ways = ways.iter().flat_map(|c| (0..d.opps.len()).map(move |o| longer(c, o))).collect();
    }
    for v in &p.nodes {
        let places = (0..p.cpus.len()).map(Place::Cpu);
        let places: Vec<Place> = places.chain((0..v.versions.len()).map(Place::Version)).collect();
        let longer = |c: &Config, at: &Place| Config {
            opp: c.opp.clone(),
            place: [&c.place[..], &[*at]].concat(),
        };
        ways = ways.iter().flat_map(|c| places.iter().map(move |at| longer(c, at))).collect();
    }
    ways.sort_by_key(|c| p.power_nw(c));
    let does = |c: &&Config| spread(p, c).is_some_and(|s| s.lambda <= 1.0 + 1e-7);
    ways.iter().find(does).map(|c| p.power_nw(c))
}

/// By hand: 3 of 10 ms fit 95 % of 600 of 1500 MHz, so that is it. Busy 255.528 mW (700 · 780² · 600 / 10⁶), idle 60, of the time
/// 3/10 · 1500/600; the four CPUs idle at 60 mW.
#[test]
fn one_node_runs_as_slowly_as_it_may() {
    let p = problem(&chain(&[3000], 10_000), "rpi4");
    for objective in [Objective::Power, Objective::SLACK] {
        let (found, whole) = exact(&p, objective, ENDLESS);
        let found = found.expect("there is one");
        let checked = check(&p, &found.deployment).expect("obeys");
        assert_eq!((found.deployment.config.opp[0], whole), (0, Ended::Whole));
        assert_eq!(checked.power_nw, 240_000_000 + 195_528_000 * 3 / 4);
        assert_eq!(found.bound_nw, checked.power_nw);
        // ⌈3000 / 0.38⌉ µs are enough; without the slack it has all of them but one, in which the CPU wakes.
        let slack = objective == Objective::SLACK;
        assert_eq!(found.deployment.deadline_us[0], if slack { 7895 } else { 9999 });
    }
}

/// By hand: two of 2 ms in 10 ms, on a CPU each, take 2 · 2000/0.38 µs at 600 MHz, 2 · 2000/0.443 at 700; on one CPU they need 1300.
#[test]
fn a_chain_takes_two_cpus_and_a_step() {
    let p = problem(&chain(&[2000, 2000], 10_000), "rpi4");
    let (found, whole) = exact(&p, Objective::SLACK, ENDLESS);
    let found = found.expect("there is one").deployment;
    let checked = check(&p, &found).expect("obeys");
    assert!(
        whole == Ended::Whole
            && found.config.opp == [1]
            && found.config.place[0] != found.config.place[1]
    );
    assert_eq!((found.deadline_us, checked.slack_ppm), (vec![4512, 4512], vec![97_400]));
}

/// Requests of a device wait for each other: two of 3 ms are due in 6, or one goes elsewhere.
#[test]
fn a_device_serves_one_after_the_other() {
    let file = |deadline: u64| {
        let of = |name: &str| {
            format!(
                "[[dag]]\nname = \"{name}\"\nperiod_us = 20000\ndeadline_us = {deadline}\n[[dag.node]]\nname = \"{name}n\"\nruntime_us = 5000\naccelerated = [{{ device = \"d\", runtime_us = 3000, power_mw = 1 }}]\n"
            )
        };
        format!("[[device]]\nname = \"d\"\n{}{}", of("a"), of("b"))
    };
    let on_device = |deadline| {
        let p = problem(&file(deadline), "rpi4");
        let found = exact(&p, Objective::Power, ENDLESS).0.expect("there is one").deployment;
        check(&p, &found).expect("obeys");
        found.config.place.iter().filter(|at| matches!(at, Place::Version(_))).count()
    };
    assert_eq!([on_device(6000), on_device(5999)], [2, 1]);
}

/// Nodes of a chain on one CPU: least Σd with Σ q/d ≤ L is (Σ √q)²/L, by Cauchy and Schwarz.
#[test]
fn deadlines_on_one_cpu_are_as_the_roots_of_their_budgets() {
    let runtimes = [900, 2500, 100, 1600];
    let p = problem(&chain(&runtimes, 30_000), "rpi4");
    let config = Config { opp: vec![9], place: vec![Place::Cpu(0); 4] };
    let found = spread(&p, &config).expect("room");
    let roots: f64 = runtimes.iter().map(|q| (*q as f64).sqrt()).sum();
    let least = (roots * roots / 0.9 + 8.0) / 30_000.0;
    assert!((found.lambda - least).abs() < 1e-6, "{} {least}", found.lambda);
    assert!(found.bound <= least + 1e-9 && found.lambda - found.bound < 1e-6);
    let us = &found.deadline_us;
    for (i, q) in runtimes.iter().enumerate() {
        let wanted = (*q as f64).sqrt() * roots / 0.9;
        assert!((us[i] - wanted).abs() < 1.0, "{i}: {} {wanted}", us[i]);
    }
}

#[test]
fn what_breaks_a_rule_is_told() {
    let p = problem(&chain(&[2000, 2000], 10_000), "rpi4");
    let good = exact(&p, Objective::SLACK, ENDLESS).0.expect("there is one").deployment;
    let told = |change: &dyn Fn(&mut Deployment)| {
        let mut bad = good.clone();
        change(&mut bad);
        check(&p, &bad).expect_err("broken").join("; ")
    };
    let one = Place::Cpu(0);
    assert_eq!(told(&|d| d.deadline_us[0] = 4511), "CPU0: more than there is room for");
    assert_eq!(told(&|d| d.deadline_us[0] = 5487), "g: done in 10001 µs, due in 10000");
    assert_eq!(
        told(&|d| d.config.opp[0] = 0),
        "CPU0: more than there is room for; CPU1: more than there is room for"
    );
    assert_eq!(told(&|d| d.config.place = vec![one, one]), "CPU0: more than there is room for");
    assert!(told(&|d| d.deadline_us[1] = 99).contains("n1: the kernel takes no period of 99 µs"));
    assert_eq!(told(&|d| d.config.place[0] = Place::Cpu(4)), "a node is where there is nothing");
    assert_eq!(told(&|d| d.config.opp[0] = 10), "it is not about these domains");
    assert_eq!(told(&|d| d.deadline_us.truncate(1)), "it is not about these nodes");
}

/// 50 sets: never more power than the greedy's; brute force's where that is possible.
#[test]
fn of_fifty_sets_none_takes_more_than_by_greed_and_small_ones_what_brute_force_says() {
    let (mut cheaper, mut none, mut whole_sets) = (0, 0, 0);
    for seed in 0..50 {
        let devices = if seed % 2 == 0 { 0 } else { 40 };
        let small = DrawnDags {
            graphs: 1 + seed as usize % 2,
            nodes: if seed % 2 == 0 { (2, 4) } else { (1, 2) },
            percent: 20 + 3 * (seed % 30),
            accelerated: devices,
        };
        let p = drawn(&small, seed, 1100);
        let (found, whole) = exact(&p, Objective::Power, ENDLESS);
        let power = found.map(|f| {
            let checked = check(&p, &f.deployment).expect("obeys");
            assert_eq!(f.bound_nw, checked.power_nw);
            checked.power_nw
        });
        assert_eq!(whole, Ended::Whole, "{seed}");
        assert_eq!(power, brute_force(&p), "{seed}");
        let greed = greedy(&p, Objective::Power).map(|d| check(&p, &d).expect("obeys").power_nw);
        let down = descent(&p, Objective::Power, ENDLESS.stop)
            .map(|d| check(&p, &d).expect("obeys").power_nw);
        for other in [greed, down] {
            assert!(other.is_none_or(|nw| power.is_some_and(|p| p <= nw)), "{seed}");
        }
        cheaper += u32::from(greed > power);
        none += u32::from(power.is_none());
        whole_sets += u32::from(power.is_some());
    }
    // The draw is worth something: some are cheaper than by greed, few have no answer.
    assert!(cheaper >= 10 && none <= 15 && whole_sets >= 35, "{cheaper} {none} {whole_sets}");
}

/// The linear program has each deployment among its answers, at just its power.
#[test]
fn the_linear_program_holds_every_deployment() {
    let mut seen = 0;
    for seed in 0..40 {
        let what = DrawnDags { graphs: 2, nodes: (1, 4), percent: 40, accelerated: 30 };
        let p = drawn(&what, seed, 1000);
        for found in [greedy(&p, Objective::SLACK), descent(&p, Objective::Power, ENDLESS.stop)] {
            let Some(mut found) = found else { continue };
            seen += 1;
            found.config = numbered(&p, &found.config);
            let mut written = Written::new(&p);
            written.aim(Objective::Power, 0);
            written.no_more_than(p.power_nw(&found.config));
            let deadlines = spread(&p, &found.config).expect("room").deadline_us;
            written.cut(&deadlines);
            let values = written.point(&found.config, &deadlines);
            let program = &written.program;
            for (i, c) in program.columns.iter().enumerate() {
                assert!(c.lower - 1e-9 <= values[i] && values[i] <= c.upper + 1e-9, "{seed}: {i}");
            }
            for (n, row) in program.rows.iter().enumerate() {
                let sum: f64 = row.terms.iter().map(|(i, by)| by * values[*i]).sum();
                assert!(row.lower - 1e-9 <= sum && sum <= row.upper + 1e-9, "{seed}: row {n}");
            }
            let cost: f64 = program.columns.iter().zip(&values).map(|(c, v)| c.cost * v).sum();
            let nw = p.power_nw(&found.config) as f64;
            assert!(((cost + program.constant) * 1e6 - nw).abs() < 20.0, "{seed}");
            assert_eq!(written.config(&values), found.config);
        }
    }
    assert!(seen > 40, "{seen}");
}

/// CPUs of a domain by the first of their nodes.
fn numbered(p: &Problem, config: &Config) -> Config {
    let mut config = config.clone();
    for domain in &p.domains {
        let mut order: Vec<usize> = Vec::new();
        for at in &config.place {
            if let Place::Cpu(c) = at
                && domain.cpus.contains(c)
                && !order.contains(c)
            {
                order.push(*c);
            }
        }
        for at in &mut config.place {
            if let Place::Cpu(c) = at
                && let Some(i) = order.iter().position(|o| o == c)
            {
                *at = Place::Cpu(domain.cpus[i]);
            }
        }
    }
    config
}

/// On the ODROID, where one change at a time stays at half as much again: within 5 % of the least.
#[test]
fn descent_comes_near_to_the_least() {
    let platform = Platform::load("odroid-xu4").expect("built in");
    let mut worst: f64 = 1.0;
    for seed in 0..6 {
        let what = DrawnDags { graphs: 2, nodes: (2, 4), percent: 60, accelerated: 20 };
        let p = Problem::new(&draw_dags(&what, seed), &platform, ONE).expect("fits");
        let (found, whole) = exact(&p, Objective::Power, ENDLESS);
        assert_eq!(whole, Ended::Whole, "{seed}");
        let Some(least) = found else { continue };
        let found = descent(&p, Objective::Power, ENDLESS.stop).expect("there is one");
        let nw = check(&p, &found).expect("obeys").power_nw;
        worst = worst.max(nw as f64 / least.bound_nw as f64);
        assert_eq!(descent(&p, Objective::Power, ENDLESS.stop), Some(found), "the same each time");
    }
    assert!((1.0..1.05).contains(&worst), "{worst}");
}

struct GivesUp;

impl Milp for GivesUp {
    fn solve(&mut self, _: &Linear) -> Result<Option<Solved>, String> {
        Err("it gave up".to_string())
    }
}

#[test]
fn a_solver_that_gives_up_is_heard() {
    let p = problem(&chain(&[2000], 10_000), "rpi4");
    assert_eq!(outer(&p, Objective::Power, &mut GivesUp).map(|_| ()), Err("it gave up".into()));
}

#[test]
fn a_workload_that_is_written_can_be_read() {
    for (seed, runs) in [(1, Runs::Longest), (2, Runs::Drawn { low: 60, high: 100, seed: 3 })] {
        let what = DrawnDags { graphs: 2, nodes: (2, 4), percent: 30, accelerated: 50 };
        let p = drawn(&what, seed, 1100);
        let found = descent(&p, Objective::SLACK, ENDLESS.stop).expect("there is one");
        let text = workload(&p, &found, runs);
        let read = risetime_model::Workload::parse(&text, "x.json").expect(&text);
        let bound =
            read.bind(&Platform::parse(SMALL, "small.toml").expect("right")).expect("binds");
        assert_eq!((bound.tasks.len(), bound.jobs.len() >= 2), (p.nodes.len(), true));
        assert_eq!(workload(&p, &found, runs), text);
    }
}

proptest! {
    #![proptest_config(draws::config(48))]

    /// Nobody finds deadlines with a smaller λ: drawn ones that obey all rules are no shorter.
    #[test]
    fn no_drawn_deadlines_are_shorter(seed in 0u64..500, parts in prop::collection::vec(0.05f64..1.0, 8)) {
        let what = DrawnDags { graphs: 2, nodes: (2, 4), percent: 40, accelerated: 0 };
        let p = drawn(&what, seed, 1000);
        let Some(d) = descent(&p, Objective::SLACK, ENDLESS.stop) else { return Ok(()) };
        let least = spread(&p, &d.config).expect("room").lambda;
        let us = |i: usize| (parts[i % 8] * d.deadline_us[i] as f64 * 2.0) as u64;
        let other = Deployment { deadline_us: (0..p.nodes.len()).map(us).collect(), ..d.clone() };
        if let Ok(checked) = check(&p, &other) {
            prop_assert!(1.0 - checked.min_slack_ppm() as f64 / 1e6 >= least - 1e-4);
        }
    }

    /// What a flow says is true of every configuration, and all that there is to say of its own.
    #[test]
    fn a_cut_bounds_every_configuration(seed in 0u64..500, dice in prop::collection::vec(0usize..1000, 20)) {
        let what = DrawnDags { graphs: 2, nodes: (1, 4), percent: 40, accelerated: 30 };
        let p = drawn(&what, seed, 1000);
        let config = |from: usize| {
            let roll = |i: usize, n: usize| dice[(from + i) % 20] % n;
            let place = |i: usize| match p.nodes[i].versions.len() {
                n if n > 0 && roll(i, 3) == 0 => Place::Version(roll(i + 1, n)),
                _ => Place::Cpu(roll(i, p.cpus.len())),
            };
            let opp = p.domains.iter().enumerate().map(|(j, d)| roll(j + 8, d.opps.len()));
            Config { opp: opp.collect(), place: (0..p.nodes.len()).map(place).collect() }
        };
        let (a, b) = (config(0), config(10));
        let (own, other) = (spread(&p, &a).expect("room"), spread(&p, &b).expect("room"));
        let cut = Cut::new(&p, &own.flow);
        prop_assert!(cut.bound(&p, &b) <= other.lambda + 1e-6);
        let bound = cut.bound(&p, &a);
        prop_assert!(bound <= own.lambda + 1e-6);
        // But for what the shortest period that the kernel takes makes longer.
        if own.deadline_us.iter().all(|us| *us > 101.0) {
            prop_assert!(bound > own.lambda - 1e-3, "{} {}", bound, own.lambda);
        }
        let mut cuts = Cuts::new(&p, ENDLESS);
        let mut does = |c: &Config| cuts.does(c);
        prop_assert_eq!([does(&a), does(&b), does(&a)], [own.lambda <= 1.0 + 1e-7, other.lambda <= 1.0 + 1e-7, own.lambda <= 1.0 + 1e-7]);
    }

    /// More time never takes more power, a larger factor never less; the slack objective costs nothing and never has less slack.
    #[test]
    fn power_follows_deadlines_and_the_factor(seed in 0u64..200) {
        let what = DrawnDags { graphs: 1, nodes: (2, 4), percent: 60, accelerated: 20 };
        let power = |p: &Problem| exact(p, Objective::Power, ENDLESS).0.map(|f| f.bound_nw);
        let tight = drawn(&what, seed, 1000);
        let mut loose = tight.clone();
        loose.graphs[0].deadline_us += loose.graphs[0].deadline_us / 5;
        let over = drawn(&what, seed, 1200);
        let [a, b, c] = [&tight, &loose, &over].map(power);
        prop_assert!(a.is_none_or(|a| b.is_some_and(|b| b <= a)));
        prop_assert!(c.is_none_or(|c| a.is_some_and(|a| a <= c)));
        if let (Some(p), Some(s)) = (exact(&tight, Objective::Power, ENDLESS).0, exact(&tight, Objective::SLACK, ENDLESS).0) {
            let [p, s] = [p, s].map(|f| check(&tight, &f.deployment).expect("obeys"));
            prop_assert_eq!(p.power_nw, s.power_nw);
            prop_assert!(s.min_slack_ppm() >= p.min_slack_ppm());
        }
    }
}

/// Four CPUs that are alike, each with its own clock: looked at in one order, and no worse than when each is.
#[test]
fn domains_that_are_alike_stand_for_each_other() {
    let pair = SMALL.replace(
        "cpus = \"0-1\"\ncapacity = 400",
        "cpus = \"0-1\"\ncpus_per_policy = 1\ncapacity = 400",
    );
    let pair = pair.replace("cpus = \"2-3\"", "cpus = \"2\"");
    let platform = Platform::parse(&pair, "pair.toml").expect("right");
    let mut found = 0;
    for seed in 0..8 {
        let what = DrawnDags { graphs: 1, nodes: (3, 4), percent: 20 + 4 * seed, accelerated: 0 };
        let p = Problem::new(&draw_dags(&what, seed), &platform, ONE).expect("fits");
        assert_eq!(p.alike(), [0, 0, 2]);
        let (least, ended) = exact(&p, Objective::Power, ENDLESS);
        assert_eq!(ended, Ended::Whole);
        assert_eq!(least.map(|f| p.power_nw(&f.deployment.config)), brute_force(&p), "{seed}");
        found += u32::from(brute_force(&p).is_some());
    }
    assert!(found >= 3, "{found}");
}

/// Cut off after any number of steps, the bounds hold, and what was found is no better than the best.
#[test]
fn a_search_that_is_cut_off_says_how_far_the_best_may_be() {
    let mut cut = 0;
    for seed in 0..6 {
        let what = DrawnDags { graphs: 2, nodes: (3, 3), percent: 40 + 8 * seed, accelerated: 0 };
        let p = drawn(&what, seed, 1000);
        let (Some(best), _) = exact(&p, Objective::SLACK, ENDLESS) else { continue };
        let best = check(&p, &best.deployment).expect("obeys");
        for steps in [1, 50_000, 500_000, 5_000_000] {
            let (found, ended) = exact(&p, Objective::SLACK, Effort::of(steps));
            let Some(found) = found else { continue };
            cut += u32::from(ended == Ended::Steps);
            let own = check(&p, &found.deployment).expect("obeys");
            assert!(
                found.bound_nw <= best.power_nw && best.power_nw <= own.power_nw,
                "{seed} {steps}"
            );
            let most = found.slack_bound_ppm.expect("asked for");
            // Deadlines are rounded up to µs.
            assert!(own.min_slack_ppm() <= most + 100, "{seed} {steps}: {most}");
            if own.power_nw == best.power_nw {
                assert!(best.min_slack_ppm() <= most + 100, "{seed} {steps}: {most} {best:?}");
            }
        }
        let (found, ended) = exact(&p, Objective::SLACK, Effort { stop: &|| true, ..ENDLESS });
        assert!(found.is_some() || ended == Ended::Stopped);
    }
    assert!(cut >= 3, "{cut}");
}

/// The task that asks a device has a CPU for itself, whose wakeups, frequency and neighbours a
/// request waits for; or it comes first.
#[test]
fn who_asks_a_device_has_its_cpu_or_comes_first() {
    let file = |load: u64| {
        let mut file = String::from(
            "[[device]]\nname = \"d\"\nhelper_us = 200\nreprogram_us = 1000\n[[device]]\nname = \"e\"\nhelper_us = 300\n[[dag]]\nname = \"g\"\nperiod_us = 50000\n",
        );
        for (name, after, device) in [("a", "", "d"), ("b", "a", "d"), ("c", "b", "e")] {
            let after =
                if after.is_empty() { String::new() } else { format!("after = [\"{after}\"]\n") };
            file += &format!(
                "[[dag.node]]\nname = \"{name}\"\n{after}runtime_us = 40000\naccelerated = [{{ device = \"{device}\", runtime_us = 2000, power_mw = 1 }}]\n"
            );
        }
        for i in 0..4 {
            file += &format!(
                "[[dag]]\nname = \"l{i}\"\nperiod_us = 100000\n[[dag.node]]\nname = \"m{i}\"\nruntime_us = {load}\n"
            );
        }
        file
    };
    for (load, free) in [(20_000, true), (70_000, false)] {
        let p = problem(&file(load), "rpi4");
        let by = |first: bool| {
            let ways = p.with_helpers(first);
            let (found, _) = solve(&ways, Objective::SLACK, Solver::Exact, Effort::of(200_000_000));
            found.map(|(way, found)| (ways[way].clone(), found.deployment))
        };
        assert_eq!(by(false).is_some(), free, "{load}");
        let (q, d) = by(!free).expect("there is one");
        let checked = check(&q, &d).expect("obeys");
        assert_eq!(q.real_time_first(&d), !free, "{load}: {d:?}");
        let helper = q.helper.expect("somebody asks");
        assert_eq!(d.config.place.contains(&Place::Cpu(helper.cpu)), !free);
        // Steps at that frequency: each of d's two requests is loaded, wakes twice, and waits twice for e's one step.
        let opp = &q.domains[0].opps[d.config.opp[0]];
        let step = |us: u64| (us * opp.freq_max.0).div_ceil(opp.freq.0);
        let wait = |own: u64, other: u64| own + 2 * (1 + other);
        let on_d = 2 * (2000 + 1000 + wait(step(200), step(300)));
        assert_eq!((d.deadline_us[0], d.deadline_us[1]), (on_d, on_d), "{load}");
        assert_eq!(d.deadline_us[2], 2000 + wait(step(300), 2 * step(200)));
        assert!(checked.done_us[2] <= 50_000);
        if free {
            let mut there = d.clone();
            there.config.place[3] = Place::Cpu(helper.cpu);
            let said = check(&q, &there).expect_err("deadlines go before it");
            assert!(said[0].contains("deadlines go before"), "{said:?}");
        }
    }
}
