//! Laws of a hint session, whatever its frames take.

use crate::draws;
use proptest::prelude::*;
use risetime_kernel::adpf::{Profile, Reporter, Session};
use risetime_kernel::units::{Instant, Span, Util};

const T: Span = Span(16_666_666);

fn profiles() -> impl Strategy<Value = Profile> {
    let with_i = Profile { i: 1, i_low: -120, p_over: 5_000, p_under: 3_000, ..Profile::PIXEL6_60 };
    let slow = Profile { i: 2, p_over: 500, p_under: 300, windows: [0, 2, 3], ..with_i };
    prop_oneof![Just(Profile::PIXEL6_60), Just(with_i), Just(slow)]
}

/// The clamp after each of these frames, reported one by one.
fn run(profile: Profile, frames: impl IntoIterator<Item = u64>) -> Vec<Util> {
    let mut session = Session::new(profile, T, Instant(0));
    let mut now = Instant(0);
    let each = frames.into_iter().map(|actual| {
        now += T;
        session.reports(&[Span(actual)], now);
        session.uclamp_min(now)
    });
    each.collect()
}

proptest! {
    #![proptest_config(draws::config(256))]

    /// However long frames take, the clamp stays within its limits; and after any past it is at the lower one once frames have
    /// been in time for long enough: the integral does not wind up.
    #[test]
    fn nothing_winds_up(profile in profiles(), past in prop::collection::vec(0u64..1 << 62, 1..60)) {
        let all = run(profile, past.into_iter().chain(std::iter::repeat_n(T.0 / 2, 120)));
        prop_assert!(all.iter().all(|min| (profile.low..=profile.high).contains(min)));
        prop_assert_eq!(all.last(), Some(&profile.low));
    }

    /// Of two sessions with the same past, the one whose frame took longer asks for no less.
    #[test]
    fn more_time_asks_for_no_less(
        profile in profiles(), past in prop::collection::vec(1_000_000u64..60_000_000, 0..20),
        a in 0u64..200_000_000, b in 0u64..200_000_000,
    ) {
        let last = |frame: u64| run(profile, past.iter().copied().chain([frame])).pop();
        prop_assert!(last(a.min(b)) <= last(a.max(b)));
    }

    /// Nothing is held back for longer than a rate limit and a frame, and nothing that is late at all.
    #[test]
    fn nothing_is_held_back_for_long(
        frames in prop::collection::vec((100_000u64..40_000_000, 1u64..50_000_000), 1..200), limit in 1_000_000u64..500_000_000,
    ) {
        let mut reporter = Reporter::new(T, Span(limit));
        let (mut now, mut told) = (Instant(0), Instant(0));
        for (actual, after) in frames {
            let before = now;
            now += Span(after);
            if reporter.tells(Span(actual), now) {
                told = now;
            } else {
                prop_assert!(actual < T.0);
                prop_assert!(before.0 - told.0 <= limit && now.0 - told.0 <= limit + after);
            }
        }
    }
}
