//! Least power by linear programs that are made exact where it matters: outer approximation.
//!
//! ```text
//! program ──solver──> places and OPPs, and a bound: no deployment takes less
//!    ^                       │ deadlines
//!    │  λ > 1: tangents      ├── λ ≤ 1: a deployment, of just that power: the least
//!    └── at its deadlines ───┘
//! ```
//!
//! Tangents at the deadlines with the least λ cut off these places and OPPs, so that it ends (Duran and Grossmann 1986; Fletcher and
//! Leyffer 1994); where rounding of the solver lets the same ones come back, they are forbidden by name.

use super::deadlines::{FITS, Until, deployment, spread_until};
use super::descent::{downhill, slacker};
use super::linear::{Milp, RATIO, Written};
use super::{ENDLESS, Found, Objective, Problem};

/// Statistics of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounds {
    /// Programs solved for the power, and for the slack.
    pub programs: (u32, u32),
    /// The first program's least power, in nW: what the linearisation alone says.
    pub first_nw: u64,
    /// The gap that a linearisation with these tangents can have, in 10⁻⁶ of what a node takes of its CPU.
    pub tangent_ppm: u32,
    /// True if nothing was left open.
    pub whole: bool,
}

/// Programs for one objective.
const MOST: u32 = 60;
/// A power is the least where it is so much of itself above a bound, or less: 0.02 %.
const ENOUGH: u64 = 5_000;
/// λ is enough where it is so near to its bound.
const NEAR: f64 = 1e-4;

/// The best deployment that `solver` finds. `None`: there is none.
///
/// Errors: what the solver says where it gives up.
pub fn outer(
    p: &Problem,
    objective: Objective,
    solver: &mut dyn Milp,
) -> Result<(Option<Found>, Rounds), String> {
    let tangent = (RATIO - 1.0) / (RATIO + 1.0);
    let mut rounds = Rounds { tangent_ppm: (tangent * tangent * 1e6) as u32, ..Rounds::default() };
    let mut best = downhill(p, ENDLESS.stop);
    let mut written = Written::new(p);
    written.aim(Objective::Power, 0);
    if let Some(best) = &best {
        written.no_more_than(p.power_nw(best));
    }
    let mut bound = p.base_nw;
    let mut seen = Vec::new();
    let nw = |best: &Option<super::Config>| best.as_ref().map_or(u64::MAX, |c| p.power_nw(c));
    while rounds.programs.0 < MOST {
        rounds.programs.0 += 1;
        let Some(answer) = solver.solve(&written.program)? else {
            rounds.whole = true;
            bound = nw(&best);
            break;
        };
        let at_least = ((answer.bound + written.program.constant) * 1e6).max(0.0) as u64;
        bound = bound.max(at_least.min(nw(&best)));
        if rounds.programs.0 == 1 {
            rounds.first_nw = at_least;
        }
        // Powers of nodes are rounded up to a nW each; a solver's bound is exact to about 1 nW.
        if near(bound, nw(&best), p) {
            rounds.whole = true;
            break;
        }
        let config = written.config(&answer.values);
        let Some(spread) = spread_until(p, &config, Until::Below(f64::INFINITY)) else {
            written.forbid(&config);
            continue;
        };
        if spread.lambda <= FITS && p.power_nw(&config) < nw(&best) {
            best = Some(config.clone());
            if near(bound, nw(&best), p) {
                rounds.whole = true;
                break;
            }
        }
        written.cut(&spread.deadline_us);
        if seen.contains(&config) || spread.lambda <= FITS {
            written.forbid(&config);
        }
        seen.push(config);
    }
    let Some(mut config) = best else { return Ok((None, rounds)) };
    if objective != Objective::Power {
        config = slackest(p, config, objective, solver, &mut rounds)?;
    }
    let found = deployment(p, &config, objective);
    Ok((
        found.map(|deployment| Found { deployment, bound_nw: bound, slack_bound_ppm: None }),
        rounds,
    ))
}

fn near(bound: u64, power: u64, p: &Problem) -> bool {
    power.saturating_sub(bound) <= 10 + p.nodes.len() as u64 + power / ENOUGH
}

/// Finds a deployment of the least λ, among those with no more power than the objective allows
/// beside `least`.
fn slackest(
    p: &Problem,
    least: super::Config,
    objective: Objective,
    solver: &mut dyn Milp,
    rounds: &mut Rounds,
) -> Result<super::Config, String> {
    let power = objective.most_nw(p.power_nw(&least));
    let first = slacker(p, least, power, ENDLESS.stop);
    let of = |c: &super::Config| spread_until(p, c, Until::Below(f64::INFINITY));
    let Some(own) = of(&first) else { return Ok(first) };
    let (mut best, mut lambda) = (first, own.lambda);
    let mut written = Written::new(p);
    written.aim(objective, power);
    written.cut(&own.deadline_us);
    let mut seen = Vec::new();
    let mut whole = false;
    while rounds.programs.1 < MOST && !whole {
        rounds.programs.1 += 1;
        let Some(answer) = solver.solve(&written.program)? else {
            whole = true;
            break;
        };
        whole = answer.bound >= lambda - NEAR;
        let config = written.config(&answer.values);
        match of(&config) {
            Some(spread) => {
                if spread.lambda < lambda && p.power_nw(&config) <= power {
                    (best, lambda) = (config.clone(), spread.lambda);
                    whole |= answer.bound >= lambda - NEAR;
                }
                written.cut(&spread.deadline_us);
                if seen.contains(&config) {
                    written.forbid(&config);
                }
                seen.push(config);
            }
            None => written.forbid(&config),
        }
    }
    rounds.whole &= whole;
    Ok(best)
}
