//! Graphs of tasks that wait for each other: drawn ones, and what of a deadline is whose.
//!
//! ```text
//! erdos_renyi   node i before node j > i with a probability            (Cordeiro et al. 2010)
//! layered       nodes spread over layers; from each layer to the next with a probability, and at least one edge into each node
//!                                                                      (Tobita and Kasahara 2002)
//!
//! slices        D_i = D · C_i / L_i,  L_i: the longest path through i; along each path they come to at most D
//! ```
//!
//! Edges go from a lower number to a higher one: there are no circles.

use crate::dice::Dice;
use risetime_kernel::units::Span;

/// Shape of a drawn graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Each pair has an edge with this probability.
    ErdosRenyi {
        /// Probability of an edge, from 0 to 1.
        edges: f64,
    },
    /// Nodes in layers, edges from each to the next.
    Layered {
        /// Number of layers, none of them empty.
        layers: usize,
        /// The probability of an edge, from 0 to 1.
        edges: f64,
    },
}

/// The edges of a graph of `nodes`, each from the lower number to the higher, ascending.
pub(crate) fn edges(nodes: usize, shape: Shape, dice: &mut Dice) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    match shape {
        Shape::ErdosRenyi { edges } => {
            for from in 0..nodes {
                all.extend((from + 1..nodes).filter(|_| dice.unit() < edges).map(|to| (from, to)));
            }
        }
        Shape::Layered { layers, edges } => {
            // The first node of each layer is given, so that none is empty; the others are drawn.
            let layers = layers.clamp(1, nodes.max(1));
            let mut of: Vec<usize> = (0..nodes)
                .map(|i| if i < layers { i } else { dice.below(layers as u64) as usize })
                .collect();
            of.sort_unstable();
            for to in (0..nodes).filter(|to| of[*to] > 0) {
                let above: Vec<usize> = (0..nodes).filter(|i| of[*i] + 1 == of[to]).collect();
                let at_least = above[dice.below(above.len() as u64) as usize];
                all.extend(
                    above
                        .into_iter()
                        .filter(|i| *i == at_least || dice.unit() < edges)
                        .map(|i| (i, to)),
                );
            }
            all.sort_unstable();
        }
    }
    all
}

/// The longest path through each node, work counted in ns; `edges` as `edges()` gives them.
pub fn longest_paths(work: &[Span], edges: &[(usize, usize)]) -> Vec<Span> {
    let own = |i: usize| work[i].0;
    let mut up_to: Vec<u64> = (0..work.len()).map(own).collect();
    // From lower to higher numbers: what comes before is known.
    let mut sorted = edges.to_vec();
    sorted.sort_unstable_by_key(|e| (e.1, e.0));
    for (from, to) in &sorted {
        up_to[*to] = up_to[*to].max(up_to[*from] + own(*to));
    }
    let mut onwards: Vec<u64> = (0..work.len()).map(own).collect();
    sorted.sort_unstable();
    for (from, to) in sorted.iter().rev() {
        onwards[*from] = onwards[*from].max(onwards[*to] + own(*from));
    }
    (0..work.len()).map(|i| Span(up_to[i] + onwards[i] - own(i))).collect()
}

/// The slice that each node has of `deadline`, as (begin, length), the begin counted from the
/// graph's release. With such times its nodes are tasks by themselves: each is due before those
/// behind it begin. Rounding: a slice down.
pub fn slices(work: &[Span], edges: &[(usize, usize)], deadline: Span) -> Vec<(Span, Span)> {
    let longest = longest_paths(work, edges);
    let slice = |i: usize| {
        let whole = u128::from(deadline.0) * u128::from(work[i].0);
        (whole / u128::from(longest[i].0.max(1))) as u64
    };
    let mut begins = vec![0u64; work.len()];
    let mut sorted = edges.to_vec();
    sorted.sort_unstable_by_key(|e| (e.1, e.0));
    for (from, to) in sorted {
        begins[to] = begins[to].max(begins[from] + slice(from));
    }
    (0..work.len()).map(|i| (Span(begins[i]), Span(slice(i)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    fn work(nodes: usize) -> Vec<Span> {
        (0..nodes as u64).map(|i| Span(1 + i * 7919 % 1000)).collect()
    }

    #[test]
    fn a_diamond_shares_its_deadline_out() {
        // 0 before 1 and 2, both before 3.
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3)];
        let work = [Span(2), Span(6), Span(1), Span(2)];
        let longest: Vec<u64> = longest_paths(&work, &edges).iter().map(|s| s.0).collect();
        assert_eq!(longest, [10, 10, 5, 10]);
        let slices: Vec<(u64, u64)> =
            slices(&work, &edges, Span(100)).iter().map(|(b, d)| (b.0, d.0)).collect();
        assert_eq!(slices, [(0, 20), (20, 60), (20, 20), (80, 20)]);
    }

    #[test]
    fn erdos_renyi_has_as_many_edges_as_its_probability_says() {
        let mut dice = Dice::new(1);
        let all: usize =
            (0..400).map(|_| edges(20, Shape::ErdosRenyi { edges: 0.3 }, &mut dice).len()).sum();
        let mean = all as f64 / 400.0;
        // 190 pairs: 57 on average, with a deviation of 6.3 / 20.
        assert!((mean - 57.0).abs() < 1.3, "{mean}");
        assert_eq!(edges(5, Shape::ErdosRenyi { edges: 0.0 }, &mut dice), []);
        assert_eq!(edges(5, Shape::ErdosRenyi { edges: 1.0 }, &mut dice).len(), 10);
    }

    proptest! {
        #![proptest_config(draws::config(500))]

        /// Edges go upwards; in layers each node but the first layer's has one before it; slices are in time along each edge.
        #[test]
        fn graphs_have_no_circles_and_slices_fit(
            nodes in 1usize..30, layers in 1usize..8, p in 0.0f64..1.0, seed: u64, deadline in 1000u64..1 << 40
        ) {
            for shape in [Shape::ErdosRenyi { edges: p }, Shape::Layered { layers, edges: p }] {
                let all = edges(nodes, shape, &mut Dice::new(seed));
                prop_assert!(all.iter().all(|(a, b)| a < b && *b < nodes));
                prop_assert!(all.windows(2).all(|w| w[0] < w[1]));
                let work = work(nodes);
                let slices = slices(&work, &all, Span(deadline));
                for (a, b) in &all {
                    prop_assert!(slices[*a].0.0 + slices[*a].1.0 <= slices[*b].0.0);
                }
                prop_assert!(slices.iter().all(|(begins, d)| begins.0 + d.0 <= deadline));
                if let Shape::Layered { layers, .. } = shape {
                    let roots = (0..nodes).filter(|i| all.iter().all(|(_, to)| to != i)).count();
                    prop_assert!(layers < 2 || roots < nodes || nodes == 1);
                }
            }
        }
    }
}
