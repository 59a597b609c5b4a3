//! Temperatures of a network of thermal resistances and capacitances.
//!
//! ```text
//!            R                        C · dT/dt = P - (T - ambient)/R - Σ (T - T_j)/R_j
//!   P ──> T ───/\/\/── ambient
//!         │  R_j                      the heat of a node is Q = C · T:   pJ / (mJ/K) = nK
//!         ├───/\/\/── T_j             through R in h flows (T - T_j) · h / R:   nK · ns / (mK/W) / 1000 = pJ
//!         ═ C
//!         ┴
//! ```
//!
//! A node keeps its heat, in whole pJ, and what leaves one node reaches the other: no rounding makes or loses energy. Time
//! goes in explicit steps of [`STEP`]. Of a single node with τ = R · C that leaves the way to the new temperature, after any
//! time, wrong by less than STEP / (2 · e · τ) of that way: with τ ≥ [`TAU_MIN`], by less than 0.19 %.
//!
//! Left out: resistances that depend on temperature (radiation, a fan), leakage that grows with it.

use crate::units::Span;

/// Length of a step.
pub const STEP: Span = Span(1_000_000);
/// The shortest time constant for which a step is short enough: C over all conductances of a node.
pub const TAU_MIN: Span = Span(100_000_000);

/// A node of the network. Temperatures are in nK above 0 °C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// C in mJ/K.
    capacitance_mj_per_k: u64,
    /// Heat above that at 0 °C, in pJ.
    heat_pj: i128,
}

impl Node {
    /// A node of this capacitance at `millicelsius`.
    pub fn new(capacitance_mj_per_k: u64, millicelsius: i64) -> Node {
        let nk = i128::from(millicelsius) * 1_000_000;
        let heat_pj = nk * i128::from(capacitance_mj_per_k);
        Node { capacitance_mj_per_k, heat_pj }
    }
    /// The node's heat above that at 0 °C, in pJ.
    pub fn heat_pj(&self) -> i128 {
        self.heat_pj
    }
    /// The node's temperature in n°C. Rounding: down.
    fn nk(&self) -> i128 {
        self.heat_pj.div_euclid(i128::from(self.capacitance_mj_per_k))
    }
    /// The temperature that a sensor there reads, in m°C. Rounding: to nearest.
    pub fn millicelsius(&self) -> i64 {
        ((self.nk() + 500_000).div_euclid(1_000_000)) as i64
    }
    /// Takes up heat.
    pub fn take(&mut self, pj: i128) {
        self.heat_pj += pj;
    }
    /// Loses heat to what stays at `millicelsius`, for `time`, which is at most a [`STEP`]; how much, in pJ.
    pub fn cool(&mut self, millicelsius: i64, resistance_mk_per_w: u64, time: Span) -> i128 {
        let there = i128::from(millicelsius) * 1_000_000;
        let pj = flow_pj(self.nk() - there, resistance_mk_per_w, time);
        self.heat_pj -= pj;
        pj
    }
    /// The heat that flows from here to `other` in `time`, in pJ.
    pub fn flow_to(&self, other: &Node, resistance_mk_per_w: u64, time: Span) -> i128 {
        flow_pj(self.nk() - other.nk(), resistance_mk_per_w, time)
    }
}

/// The heat that a difference of `nk` drives through a resistance in `time`, in pJ. Rounding:
/// toward zero.
fn flow_pj(nk: i128, resistance_mk_per_w: u64, time: Span) -> i128 {
    nk * i128::from(time.0) / (i128::from(resistance_mk_per_w) * 1000)
}
