use super::*;
use risetime_model::{Dags, Platform};

const ONE: Options = Options { factor_permille: 1000 };

fn problem(file: &str, platform: &str) -> Problem {
    let dags = Dags::parse(&format!("schema = 1\nname = \"x\"\n{file}"), "x.toml").expect("right");
    Problem::new(&dags, &Platform::load(platform).expect("built in"), ONE).expect("fits")
}

fn drawn(what: &DrawnDags, seed: u64, platform: &str) -> Problem {
    let platform = Platform::load(platform).expect("built in");
    Problem::new(&draw_dags(what, seed), &platform, ONE).expect("fits")
}

#[test]
fn smoke() {
    for seed in 0..10 {
        for n in [3, 4, 5] {
            let what = DrawnDags { graphs: 2, nodes: (n, n), percent: 60, accelerated: 0 };
            let p = drawn(&what, seed, "odroid-xu4");
            let t = std::time::Instant::now();
            let g = greedy(&p, Objective::Power);
            let gp = g.as_ref().map(|d| check(&p, d).expect("obeys").power_nw / 1000);
            let tg = t.elapsed();
            let (found, whole) = exact(&p, Objective::Power, 200_000);
            let te = t.elapsed();
            let (slack, whole2) = exact(&p, Objective::Slack, 200_000);
            let ts = t.elapsed();
            let c = found.as_ref().map(|f| check(&p, &f.deployment).expect("obeys"));
            let s = slack.as_ref().map(|f| check(&p, &f.deployment).expect("obeys"));
            println!("{seed} {n} greedy {gp:?} exact {:?} bound {:?} {whole} slack {:?} {:?} {whole2} | {tg:?} {te:?} {ts:?} opp {:?}", c.as_ref().map(|c| c.power_nw/1000),
               found.as_ref().map(|f| f.bound_nw/1000), s.as_ref().map(|c| (c.power_nw/1000, c.min_slack_ppm())), c.map(|c| c.min_slack_ppm()), found.map(|f| f.deployment.config.opp));
        }
    }
}
