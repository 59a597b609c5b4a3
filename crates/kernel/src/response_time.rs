//! `response_time_ms`: how long a policy may take from its lowest to its highest frequency, as a
//! tunable of schedutil.
//!
//! ```text
//!  default = rt(capacity · second highest frequency / highest + 1)
//!            the highest frequency is asked for once util is above what the second highest gives
//!  mult    = 1024 · default / response_time_ms
//!  util'   = util · mult / 1024                             before the headroom ([`crate::headroom`])
//! ```
//!
//! rt is [`crate::approximate::approximate_runtime`]. Slower than the default cuts off the top
//! frequencies of the biggest CPUs, whose util ends at 1024 (so the series says, too).
//!
//! Source: RFC 00/16 "Better manage system response time" (August 2024), patch 6.

use crate::approximate::approximate_runtime;
use crate::pelt::Decay;
use crate::units::{Capacity, KHz, Util};

/// The default of `response_time_ms` of a policy. `second_freq`: the highest below `max_freq`, or
/// `max_freq` where there is none. Rounding: down. `max_freq` 0, which the kernel would divide by,
/// counts as 1. Source: RFC 00/16, patch 6, sugov_calc_freq_response_ms.
pub fn sugov_calc_freq_response_ms(
    decay: &Decay,
    capacity: Capacity,
    max_freq: KHz,
    second_freq: KHz,
) -> u64 {
    let capacity = second_freq.0.wrapping_mul(capacity.0) / max_freq.0.max(1);
    approximate_runtime(decay, Util(capacity + 1))
}

/// The factor on util, of 1024. A factor of 0 would stop the policy, so that it is 1024 then (the
/// kernel also warns). `response_time_ms` 0, which the kernel would divide by, counts as the
/// default. Rounding: down. Source: RFC 00/16, patch 6, sugov_update_response_time_mult.
pub fn response_time_mult(default_ms: u64, response_time_ms: u64) -> u64 {
    match default_ms.wrapping_mul(1024).checked_div(response_time_ms) {
        None | Some(0) => 1024,
        Some(mult) => mult,
    }
}

/// `util` as if the policy responded that much faster or slower. Rounding: down. Wraps at 64 bits.
/// Source: RFC 00/16, patch 6, sugov_apply_response_time.
pub const fn sugov_apply_response_time(util: Util, mult: u64) -> Util {
    Util(util.0.wrapping_mul(mult) >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_m1() {
        let default = |capacity, max, second| {
            let (max, second) = (KHz(max), KHz(second));
            sugov_calc_freq_response_ms(&Decay::MS32, Capacity(capacity), max, second)
        };
        assert_eq!(default(459, 2_064_000, 1_704_000), 22);
        assert_eq!(default(1024, 3_204_000, 3_144_000), 182);
        assert_eq!(default(1024, 3_204_000, 2_988_000), 124, "without the turbo OPPs but one");
        // One frequency: 1025 is never reached.
        assert_eq!(default(1024, 1_000_000, 1_000_000), 666);
        let half = Decay::MS32.with_multiplier(2).expect("known");
        let faster =
            |c, max, second| sugov_calc_freq_response_ms(&half, Capacity(c), KHz(max), KHz(second));
        assert_eq!(faster(459, 2_064_000, 1_704_000), 11, "halves as the half-life does");
    }

    #[test]
    fn half_the_time_doubles_util() {
        let mult = |ms| response_time_mult(182, ms);
        assert_eq!([182, 91, 364, 0].map(mult), [1024, 2048, 512, 1024]);
        assert_eq!(mult(182 * 1024), 1);
        assert_eq!(mult(182 * 1024 + 1), 1024, "never 0");
        assert_eq!(sugov_apply_response_time(Util(301), 512), Util(150));
        assert_eq!(sugov_apply_response_time(Util(301), 1024), Util(301));
    }
}
