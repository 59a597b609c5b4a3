//! Sets of CPUs, up to 1024 of them, iterated in ascending order.

use risetime_kernel::units::CpuId;

/// The most CPUs a platform may have.
pub(crate) const MAX_CPUS: usize = 1024;

/// A set of CPUs (`cpumask`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CpuSet([u64; MAX_CPUS / 64]);

impl CpuSet {
    pub(crate) const EMPTY: CpuSet = CpuSet([0; MAX_CPUS / 64]);

    /// CPUs 0 to `n` − 1.
    pub(crate) fn first(n: usize) -> CpuSet {
        (0..n as u32).map(CpuId).collect()
    }
    pub(crate) fn insert(&mut self, cpu: CpuId) {
        self.0[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }
    pub(crate) fn remove(&mut self, cpu: CpuId) {
        self.0[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }
    pub(crate) fn contains(&self, cpu: CpuId) -> bool {
        self.0[cpu.index() / 64] & (1 << (cpu.index() % 64)) != 0
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }
    pub(crate) fn intersects(&self, other: &CpuSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
    pub(crate) fn and(mut self, other: &CpuSet) -> CpuSet {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= b;
        }
        self
    }
    /// The lowest-numbered CPU.
    pub(crate) fn lowest(&self) -> Option<CpuId> {
        let word = self.0.iter().position(|w| *w != 0)?;
        Some(CpuId(word as u32 * 64 + self.0[word].trailing_zeros()))
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = CpuId> + use<> {
        let words = self.0;
        let mut word = 0;
        let mut left = words[0];
        std::iter::from_fn(move || {
            while left == 0 {
                word += 1;
                left = *words.get(word)?;
            }
            let bit = left.trailing_zeros();
            left &= left - 1;
            Some(CpuId(word as u32 * 64 + bit))
        })
    }
    /// All members, beginning with `start` and wrapping round (`for_each_cpu_wrap`).
    pub(crate) fn iter_wrap(&self, start: CpuId) -> impl Iterator<Item = CpuId> + use<> {
        let (low, high) = (self.iter(), self.iter());
        high.filter(move |c| *c >= start).chain(low.filter(move |c| *c < start))
    }
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
}
