//! Draws of chance, each independent of the others.
//!
//! ```text
//! draw(seed, entity, kind, n) = mix(mix(mix(mix(seed) ^ entity) ^ kind) ^ n)
//!
//! mix(z)     z += 0x9e3779b97f4a7c15; z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
//!            z = (z ^ z >> 27) * 0x94d049bb133111eb; z ^ z >> 31            modulo 2^64
//! entity     who: a task by its name, a CPU by its number
//! kind       what for ([`crate::state::costs::Kind`])
//! n          the how manieth of this kind for this entity
//! ```
//!
//! A generator that is drawn from in turn would give each draw to whoever comes next: one task more, or a
//! counterfactual in which something happens earlier, and every later draw is another. Here a draw belongs to
//! whom it is for. The same four numbers give the same draw, for ever; `mix` is one to one, so that two draws
//! which differ in one of the four differ.
//!
//! Source: `mix` is one step of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
//! generators", 2014).

/// Increment of SplitMix64 in each step: 2^64 / golden ratio, odd.
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes by one step of SplitMix64.
pub(crate) const fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws 64 bits, each as likely 0 as 1.
#[cfg(test)]
pub(crate) const fn draw(seed: u64, entity: u64, kind: u64, n: u64) -> u64 {
    draw_by(drawer(seed, entity), kind, n)
}

/// Returns what all draws of an entity in a run of this seed begin with.
pub(crate) const fn drawer(seed: u64, entity: u64) -> u64 {
    mix(mix(seed) ^ entity)
}

/// Draws the same, begun.
#[inline]
pub(crate) const fn draw_by(drawer: u64, kind: u64, n: u64) -> u64 {
    mix(mix(drawer ^ kind) ^ n)
}

/// The number of an entity that draws: the `nth` of those of this name.
pub(crate) fn entity(name: &str, nth: u64) -> u64 {
    // FNV-1a, 64 bits.
    let hash = |h: u64, byte: &u8| (h ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    mix(name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, hash) ^ nth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    #[test]
    fn the_same_numbers_give_the_same_draw_for_ever() {
        // The first two numbers of SplitMix64 from seed 0, as published.
        assert_eq!([mix(0), mix(GAMMA)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_eq!(entity("", 0), mix(0xcbf2_9ce4_8422_2325));
        assert_ne!(entity("a", 1), entity("a", 0));
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn draws_that_differ_in_one_number_differ(of in any::<[u64; 4]>(), which in 0..4usize, by in 1..u64::MAX) {
            let mut other = of;
            other[which] = of[which].wrapping_add(by);
            let drawn = |[seed, entity, kind, n]: [u64; 4]| draw(seed, entity, kind, n);
            prop_assert_ne!(drawn(of), drawn(other));
            prop_assert_eq!(drawn(of), drawn(of));
        }

        /// Each eighth as often as another, whatever the seed, and no draw follows from the one before.
        #[test]
        fn draws_are_even(seed in any::<u64>(), task in 0..100u64) {
            let eighth = |n| (draw(seed, entity("task", task), 1, n) >> 61) as usize;
            let (mut each, mut pairs) = ([0u32; 8], [0u32; 64]);
            for n in 0..8000 {
                each[eighth(n)] += 1;
                pairs[eighth(n) * 8 + eighth(n + 1)] += 1;
            }
            // 1000 and 125 are expected; six standard deviations.
            prop_assert!(each.iter().all(|n| n.abs_diff(1000) < 180), "{each:?}");
            prop_assert!(pairs.iter().all(|n| n.abs_diff(125) < 67), "{pairs:?}");
        }
    }
}
