//! Sets of CPUs, up to 1024 of them, iterated in ascending order.
//!
//! ```text
//! words   16 × 64 CPUs         used   bit w: words[w] is not 0
//! ```
//!
//! Most machines fill one word: `used` is what spares them the other fifteen.

use risetime_kernel::units::CpuId;

/// The most CPUs that a platform may have.
pub(crate) const MAX_CPUS: usize = risetime_model::platform::MAX_CPUS as usize;

/// A set of CPUs (`cpumask`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct CpuSet {
    used: u16,
    words: [u64; MAX_CPUS / 64],
}

impl Default for CpuSet {
    fn default() -> CpuSet {
        CpuSet::EMPTY
    }
}

impl CpuSet {
    pub(crate) const EMPTY: CpuSet = CpuSet { words: [0; MAX_CPUS / 64], used: 0 };

    /// CPUs 0 to `n` − 1.
    pub(crate) fn first(n: usize) -> CpuSet {
        (0..n as u32).map(CpuId).collect()
    }
    #[inline]
    pub(crate) fn insert(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        self.words[word] |= 1 << (cpu.index() % 64);
        self.used |= 1 << word;
    }
    #[inline]
    pub(crate) fn remove(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        self.words[word] &= !(1 << (cpu.index() % 64));
        if self.words[word] == 0 {
            self.used &= !(1 << word);
        }
    }
    #[inline]
    pub(crate) fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() / 64] & (1 << (cpu.index() % 64)) != 0
    }
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }
    pub(crate) fn len(&self) -> usize {
        bits(u64::from(self.used)).map(|w| self.words[w].count_ones() as usize).sum()
    }
    #[inline]
    pub(crate) fn intersects(&self, other: &CpuSet) -> bool {
        bits(u64::from(self.used & other.used)).any(|w| self.words[w] & other.words[w] != 0)
    }
    pub(crate) fn and(&self, other: &CpuSet) -> CpuSet {
        let mut both = CpuSet::EMPTY;
        for w in bits(u64::from(self.used & other.used)) {
            both.words[w] = self.words[w] & other.words[w];
            both.used |= u16::from(both.words[w] != 0) << w;
        }
        both
    }
    /// Whether all of them are among `others`.
    #[inline]
    pub(crate) fn is_within(&self, others: &CpuSet) -> bool {
        bits(u64::from(self.used)).all(|w| self.words[w] & !others.words[w] == 0)
    }
    /// The members that are not among `others`.
    pub(crate) fn without(&self, others: &CpuSet) -> CpuSet {
        let mut left = CpuSet::EMPTY;
        for w in bits(u64::from(self.used)) {
            left.words[w] = self.words[w] & !others.words[w];
            left.used |= u16::from(left.words[w] != 0) << w;
        }
        left
    }
    /// The lowest-numbered CPU.
    #[inline]
    pub(crate) fn lowest(&self) -> Option<CpuId> {
        if self.used == 0 {
            return None;
        }
        let word = self.used.trailing_zeros();
        Some(CpuId(word * 64 + self.words[word as usize].trailing_zeros()))
    }
    /// Iterates over all members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        let (mut used, mut word, mut left) = (u32::from(self.used), 0, 0);
        std::iter::from_fn(move || {
            if left == 0 {
                if used == 0 {
                    return None;
                }
                word = used.trailing_zeros();
                used &= used - 1;
                left = self.words[word as usize];
            }
            let cpu = word * 64 + left.trailing_zeros();
            left &= left - 1;
            Some(CpuId(cpu))
        })
    }
    /// Iterates over all members, beginning with `start` and wrapping round (`for_each_cpu_wrap`).
    pub(crate) fn iter_wrap(&self, start: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        self.between(start.0, MAX_CPUS as u32).chain(self.between(0, start.0))
    }

    /// The members from `low` to below `high`.
    fn between(&self, low: u32, high: u32) -> impl Iterator<Item = CpuId> + '_ {
        let words = &self.words;
        let from = (low / 64).min(words.len() as u32) as usize;
        let mut used = (u32::from(self.used) >> from) << from;
        let mut word = 0;
        let mut left = 0;
        std::iter::from_fn(move || {
            while left == 0 {
                if used == 0 {
                    return None;
                }
                word = used.trailing_zeros();
                used &= used - 1;
                left = words[word as usize];
                if word as usize == from {
                    left &= u64::MAX << (low % 64);
                }
            }
            let cpu = word * 64 + left.trailing_zeros();
            left &= left - 1;
            (cpu < high).then_some(CpuId(cpu))
        })
    }
}

/// The numbers of the bits that are set, ascending.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        cpus.into_iter().for_each(|c| set.insert(c));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterates_across_words_and_wraps() {
        let set: CpuSet = [3, 63, 64, 1023].into_iter().map(CpuId).collect();
        let all: Vec<u32> = set.iter().map(|c| c.0).collect();
        assert_eq!(all, [3, 63, 64, 1023]);
        let wrapped: Vec<u32> = set.iter_wrap(CpuId(64)).map(|c| c.0).collect();
        assert_eq!(wrapped, [64, 1023, 3, 63]);
        assert_eq!(CpuSet::EMPTY.lowest(), None);
    }

    #[test]
    fn is_a_set_like_any_other() {
        use std::collections::BTreeSet;
        // A fixed walk over the numbers that lie at words' edges.
        let numbers = [0, 1, 62, 63, 64, 65, 127, 128, 500, 959, 960, 1022, 1023];
        let (mut a, mut b) = (CpuSet::EMPTY, CpuSet::EMPTY);
        let (mut x, mut y) = (BTreeSet::new(), BTreeSet::new());
        for step in 0..500usize {
            let cpu = CpuId(numbers[step * 7 % numbers.len()]);
            let (set, like) = if step % 3 == 0 { (&mut a, &mut x) } else { (&mut b, &mut y) };
            if step / 5 % 3 == 0 {
                set.remove(cpu);
                like.remove(&cpu);
            } else {
                set.insert(cpu);
                like.insert(cpu);
            }
            assert_eq!(a.iter().collect::<BTreeSet<_>>(), x);
            assert_eq!((b.len(), b.is_empty()), (y.len(), y.is_empty()));
            assert_eq!(a.lowest(), x.first().copied());
            assert_eq!(a.intersects(&b), x.intersection(&y).next().is_some());
            let both = a.and(&b);
            assert_eq!(both.iter().collect::<BTreeSet<_>>(), &x & &y);
            assert_eq!(both, both.iter().collect());
            assert_eq!(a.is_within(&b), x.is_subset(&y));
            assert!(both.is_within(&a) && both.is_within(&b));
            let wrapped: Vec<CpuId> = b.iter_wrap(cpu).collect();
            let expected: Vec<CpuId> = y.range(cpu..).chain(y.range(..cpu)).copied().collect();
            assert_eq!(wrapped, expected);
        }
    }
}
