//! The thermal network, held to closed forms.

use risetime_kernel::thermal::rc::{Node, STEP, TAU_MIN};
use risetime_kernel::units::Span;

/// A node with `uw` of power after each ms of `ms`, in m°C.
fn heated(c: u64, r: u64, ambient: i64, uw: i128, ms: usize) -> Vec<f64> {
    let mut node = Node::new(c, ambient);
    let mut each = Vec::new();
    for _ in 0..ms {
        node.cool(ambient, r, STEP);
        node.take(uw * i128::from(STEP.0) / 1000);
        each.push(node.heat_pj() as f64 / c as f64 / 1e6);
    }
    each
}

#[test]
fn one_node_follows_the_closed_form() {
    // T(t) = ambient + P·R·(1 - exp(-t/τ)); the bound is the module's.
    for (c, r, uw) in [(10, 10_000, 1_000_000), (500, 20_000, 2_000_000), (50_000, 200, 90_000_000)]
    {
        let tau_ms = c as f64 * r as f64 / 1e3;
        assert!(tau_ms * 1e6 >= TAU_MIN.0 as f64);
        let rise = uw as f64 / 1e6 * r as f64;
        let bound = rise * 1.0 / (2.0 * std::f64::consts::E * tau_ms) * 1.01;
        for (i, is) in heated(c, r, 25_000, uw, (5.0 * tau_ms) as usize).iter().enumerate() {
            let exact = 25_000.0 + rise * (1.0 - (-(i as f64 + 1.0) / tau_ms).exp());
            assert!((is - exact).abs() <= bound + 1e-3, "{c} {r}: at {i} ms {is}, exact {exact}");
        }
    }
}

#[test]
fn a_node_comes_to_rest_at_ambient_plus_power_times_resistance() {
    let last = *heated(20, 15_000, 30_000, 1_500_000, 10_000).last().expect("steps");
    assert!((last - (30_000.0 + 1.5 * 15_000.0)).abs() < 0.01, "{last}");
    let mut node = Node::new(20, 90_000);
    for _ in 0..10_000 {
        node.cool(30_000, 15_000, STEP);
    }
    assert_eq!(node.millicelsius(), 30_000);
}

#[test]
fn no_heat_is_made_or_lost() {
    let (mut a, mut b) = (Node::new(313, 80_001), Node::new(71, -12_345));
    let before = a.heat_pj() + b.heat_pj();
    let (mut taken, mut shed) = (0, 0);
    for i in 0..5000 {
        let pj = i128::from(i % 17) * 12_345;
        a.take(pj);
        taken += pj;
        let flow = a.flow_to(&b, 4_321, Span(STEP.0 - i as u64));
        a.take(-flow);
        b.take(flow);
        shed += a.cool(25_000, 9_001, STEP) + b.cool(25_000, 30_011, STEP);
    }
    assert_eq!(a.heat_pj() + b.heat_pj(), before + taken - shed);
}

#[test]
fn below_zero_it_rounds_as_above() {
    assert_eq!(Node::new(7, -40_000).millicelsius(), -40_000);
    let mut node = Node::new(1000, -40_000);
    node.take(400_000 * 1000);
    assert_eq!(node.millicelsius(), -40_000);
    node.take(200_000 * 1000);
    assert_eq!(node.millicelsius(), -39_999);
}
