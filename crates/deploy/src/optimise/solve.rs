//! The best of several programs, of which each has another CPU from which devices are asked: first the least power of all, then, of those that may
//! take as much, the most slack.

use super::deadlines::{Until, deployment, spread_until};
use super::descent::{downhill, slacker};
use super::exact::{Searched, least, slackest};
use super::greedy::greedy_config;
use super::{Config, Effort, Ended, Found, Objective, Problem};

/// The solver that looks for a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// The greedy solver, `greedy.rs`.
    Greedy,
    /// The descent, `descent.rs`.
    Descent,
    /// The exact solver, `exact.rs`.
    Exact,
}

/// The best of them, and which of `ways` has it: the first of equals. The steps are those of all together, for each objective. A bound of
/// those solvers that prove nothing is what takes nothing.
pub fn solve(
    ways: &[Problem],
    objective: Objective,
    solver: Solver,
    effort: Effort<'_>,
) -> (Option<(usize, Found)>, Ended) {
    let mut ended = Ended::Whole;
    let mut left = effort.steps;
    let mut found: Vec<(usize, Config, Ended)> = Vec::new();
    let mut bound_nw = u64::MAX;
    for (way, p) in ways.iter().enumerate() {
        let steps = left / (ways.len() - way) as u64;
        let of = by(p, solver, Effort { steps, ..effort });
        left = left - steps + of.left.min(steps);
        ended = ended.max(of.ended);
        if of.config.is_some() || of.ended != Ended::Whole {
            bound_nw = bound_nw.min(of.bound_nw);
        }
        found.extend(of.config.map(|config| (way, config, of.ended)));
    }
    let nw = |(way, config, _): &(usize, Config, Ended)| ways[*way].power_nw(config);
    let Some(least) = found.iter().min_by_key(|of| (nw(of), of.0)) else { return (None, ended) };
    let (least_nw, mut best) = (nw(least), (least.0, least.1.clone()));
    let mut slack_bound_ppm = None;
    if objective != Objective::Power {
        let most = objective.most_nw(least_nw);
        let (mut lambda, mut bound) = (f64::INFINITY, f64::INFINITY);
        let mut left = effort.steps;
        for at in 0..found.len() {
            let (way, from, was) = &found[at];
            if nw(&found[at]) > most {
                // A choice that has not been searched whole may hold something better.
                bound = if *was == Ended::Whole { bound } else { 0.0 };
                continue;
            }
            let p = &ways[*way];
            let steps = left / (found.len() - at) as u64;
            let effort = Effort { steps, ..effort };
            let of = match solver {
                Solver::Greedy => Searched::known(Some(from.clone())),
                Solver::Descent => {
                    Searched::known(Some(slacker(p, from.clone(), most, effort.stop)))
                }
                Solver::Exact => slackest(p, from.clone(), most, effort),
            };
            left = left - steps + of.left.min(steps);
            ended = ended.max(of.ended);
            bound = bound.min(of.bound);
            let own = of.config.and_then(|config| {
                let spread = spread_until(p, &config, Until::Below(f64::INFINITY))?;
                Some((spread.lambda, config))
            });
            if let Some((own, config)) = own.filter(|(own, _)| *own < lambda) {
                (lambda, best) = (own, (*way, config));
            }
        }
        slack_bound_ppm = Some((1e6 * (1.0 - bound)).clamp(0.0, 1e6).ceil() as u64);
    }
    let (way, config) = best;
    let found = deployment(&ways[way], &config, objective);
    (found.map(|deployment| (way, Found { deployment, bound_nw, slack_bound_ppm })), ended)
}

impl Searched {
    /// The result of a solver that proves nothing.
    fn known(config: Option<Config>) -> Searched {
        Searched { config, bound_nw: 0, bound: 0.0, ended: Ended::Whole, left: u64::MAX }
    }
}

fn by(p: &Problem, solver: Solver, effort: Effort<'_>) -> Searched {
    match solver {
        Solver::Greedy => Searched::known(greedy_config(p)),
        Solver::Descent => Searched::known(downhill(p, effort.stop)),
        Solver::Exact => least(p, effort),
    }
}
