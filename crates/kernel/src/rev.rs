//! Kernel release whose arithmetic and behaviour is meant.
//!
//! One ordering of mainline releases. Code asks by name what a release does:
//! `rev.has(features::DELAY_DEQUEUE)` ([`crate::features`]).

/// A mainline release, ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelRev {
    /// The first number of the release.
    pub major: u16,
    /// The second number of the release.
    pub minor: u16,
}

impl KernelRev {
    /// The oldest release that a policy may name: June 2014.
    ///
    /// `DEVIATES(before-6.1)`: of kernels before 6.1 the governors and their timing, PELT's invariance, RT's tracking, the
    /// fair queue, what the clamps reach in schedutil, since when there are EAS and misfit, and the energy that a move has to save (a
    /// sixteenth up to 5.19) are theirs; the rest of placement, fits and balancing are as in 6.1. None of them was asked.
    pub const OLDEST: KernelRev = KernelRev::new(3, 15);
    /// The newest generation known here.
    pub const NEWEST: KernelRev = KernelRev::V7_3;

    /// Reads a release as `uname` prints it, `7.2.13+deb14-arm64` or `6.12`: the first two numbers.
    pub fn of_release(release: &str) -> Option<KernelRev> {
        let (major, rest) = release.split_once('.')?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        let number = |text: &str| {
            let plain = text.bytes().all(|c| c.is_ascii_digit());
            text.parse().ok().filter(|_| plain)
        };
        Some(KernelRev::new(number(major)?, number(minor)?))
    }

    /// The generation as which it counts here: itself, unless it is newer than all that is known.
    pub fn known(self) -> KernelRev {
        self.min(KernelRev::NEWEST)
    }

    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> KernelRev {
        KernelRev { major, minor }
    }
    /// December 2020, a long-term release.
    pub const V5_10: KernelRev = KernelRev::new(5, 10);
    /// December 2022, a long-term release: the last of CFS.
    pub const V6_1: KernelRev = KernelRev::new(6, 1);
    /// August 2023: contention counts for frequencies.
    pub const V6_5: KernelRev = KernelRev::new(6, 5);
    /// October 2023, a long-term release: EEVDF in place of CFS.
    pub const V6_6: KernelRev = KernelRev::new(6, 6);
    /// March 2024: the kernel of the response-time series' measurements.
    pub const V6_8: KernelRev = KernelRev::new(6, 8);
    /// May 2024: schedutil's default rate limit changed for the first time.
    pub const V6_9: KernelRev = KernelRev::new(6, 9);
    /// November 2024: delayed dequeue, custom slices, fair deadline server.
    pub const V6_12: KernelRev = KernelRev::new(6, 12);
    /// 2026: `mainline`.
    pub const V7_2: KernelRev = KernelRev::new(7, 2);
    /// Later in 2026: one flat EEVDF queue for all groups. The newest generation known here.
    pub const V7_3: KernelRev = KernelRev::new(7, 3);

    /// The release as one number, by which it is compared.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        (self.major as u32) << 16 | self.minor as u32
    }
}

/// Compared as one number: releases are asked for often, and two comparisons cost more than one.
impl Ord for KernelRev {
    #[inline]
    fn cmp(&self, other: &KernelRev) -> core::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}
impl PartialOrd for KernelRev {
    #[inline]
    fn partial_cmp(&self, other: &KernelRev) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl core::fmt::Display for KernelRev {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_counts_by_its_first_two_numbers() {
        let of = |release| KernelRev::of_release(release).map(|r| (r.major, r.minor));
        for release in ["6.12", "6.12.95+deb12-arm64", "6.12-rc1", "6.12+", "6.12 x"] {
            assert_eq!(of(release), Some((6, 12)), "{release}");
        }
        for release in ["", "6", "6.", ".12", "v6.12", "+6.12", "6.x", "6.99999", "6-12", "hz1000"]
        {
            assert_eq!(of(release), None, "{release}");
        }
        assert_eq!(KernelRev::new(7, 9).known(), KernelRev::NEWEST);
        assert_eq!(KernelRev::V6_8.known(), KernelRev::V6_8);
    }
}
