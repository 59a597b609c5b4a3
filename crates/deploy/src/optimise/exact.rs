//! Every deployment, but for those that cannot be the least: branch and bound over OPPs and places.
//!
//! ```text
//! OPPs of all domains, those first whose least power is least   ── least ≥ best: it is done
//!   places of the nodes at these OPPs ([`super::tree`])
//! ```
//!
//! It begins with what [`super::descent`] finds. Exact up to what rounding of deadlines to µs costs: the model has a µs for it at
//! each node.

use super::deadlines::{Until, deployment, spread_until};
use super::descent::{downhill, slacker};
use super::tree::{Aim, Tree, opps};
use super::{Found, Objective, Problem};

/// The best deployment, by looking at up to `looks` of the places of all nodes.
///
/// Result: the best that was found; and whether nothing was left out, so that it is the best, or there is none.
pub fn exact(p: &Problem, objective: Objective, looks: u64) -> (Option<Found>, bool) {
    let mut tree = Tree::new(p, downhill(p), looks);
    let bound = run(p, &mut tree).max(p.base_nw);
    let mut whole = tree.looks > 0;
    let bound_nw = bound.min(tree.power);
    if let (Objective::Slack { .. }, Some(least)) = (objective, tree.best.clone()) {
        if whole {
            tree.looks = looks;
        }
        let most = objective.most_nw(tree.power);
        let best = slacker(p, least, most);
        tree.aim = Aim::Slack(most);
        tree.best = Some(best.clone());
        tree.lambda = spread_until(p, &best, Until::Below(f64::INFINITY)).map_or(2.0, |s| s.lambda);
        run(p, &mut tree);
        whole &= tree.looks > 0;
    }
    let found = tree.best.and_then(|c| deployment(p, &c, objective));
    (found.map(|deployment| Found { deployment, bound_nw }), whole)
}

/// By all OPPs; the least power that no deployment is below.
fn run(p: &Problem, tree: &mut Tree<'_>) -> u64 {
    let Some(all) = opps(p) else {
        tree.looks = 0;
        return 0;
    };
    for (nw, opp) in all {
        if tree.hopeless(nw) {
            return nw.max(tree.power);
        }
        if tree.looks == 0 {
            return nw;
        }
        tree.search(&opp);
    }
    tree.power
}
