//! Random sets of graphs, for experiments: each of one first and one last node, in between each node behind one or two others.

use crate::dice::Dice;
use risetime_kernel::units::MicroWatts;
use risetime_model::dags::{Accelerated, Dag, Dags, Device, Node};

/// Parameters by which a set is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnDags {
    /// Graphs.
    pub graphs: usize,
    /// Nodes of each: from so many to so many.
    pub nodes: (usize, usize),
    /// Share that all graphs take together, in % of a CPU of capacity 1024 at its highest
    /// frequency.
    pub percent: u64,
    /// Number of nodes of 100 that have a version for a device of which there is one, with a fifth
    /// of the time at 500 mW.
    pub accelerated: u64,
}

/// The set of this seed: periods of 10 to 100 ms, deadlines of 60 to 100 % of them. The same on every machine.
pub fn draw_dags(what: &DrawnDags, seed: u64) -> Dags {
    let mut dice = Dice::new(seed);
    let device = Device {
        name: "fpga0".to_string(),
        idle: MicroWatts(20_000),
        helper_us: 0,
        reprogram_us: 0,
    };
    let mut dags = Vec::new();
    for g in 0..what.graphs {
        let period_us = 1000 * [10, 20, 25, 40, 50, 80, 100][dice.below(7) as usize];
        let deadline_us = period_us * (60 + dice.below(41)) / 100;
        let (low, high) = what.nodes;
        let n = low.max(1) + dice.below((high.max(low) - low + 1) as u64) as usize;
        let weights: Vec<u64> = (0..n).map(|_| 5 + dice.below(96)).collect();
        let sum: u64 = weights.iter().sum();
        let all_us = period_us * what.percent / (100 * what.graphs.max(1) as u64);
        let mut nodes: Vec<Node> = Vec::new();
        for (i, weight) in weights.iter().enumerate() {
            let runtime_us = (all_us * weight / sum).max(10);
            let last = i + 1 == n && i > 0;
            let mut after: Vec<usize> = match i {
                0 => Vec::new(),
                _ if last => {
                    (0..i).filter(|a| !nodes.iter().any(|n| n.after.contains(a))).collect()
                }
                _ => (0..1 + dice.below(2)).map(|_| dice.below(i as u64) as usize).collect(),
            };
            after.sort_unstable();
            after.dedup();
            let has = dice.below(100) < what.accelerated;
            let version = Accelerated {
                device: 0,
                runtime_us: (runtime_us / 5).max(10),
                power: MicroWatts(500_000),
            };
            nodes.push(Node {
                name: format!("g{g}n{i}"),
                at: String::new(),
                runtime_us,
                on: Vec::new(),
                after,
                accelerated: if has { vec![version] } else { Vec::new() },
            });
        }
        dags.push(Dag { name: format!("g{g}"), at: String::new(), period_us, deadline_us, nodes });
    }
    let devices = if what.accelerated > 0 { vec![device] } else { Vec::new() };
    Dags { name: format!("drawn-{seed}"), devices, dags }
}
