//! Names of threads, each kept once.

use std::collections::HashMap;

/// The names, by numbers.
#[derive(Debug, Default)]
pub(super) struct Words {
    all: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
}

/// Number of a name that nobody told.
pub(super) const UNTOLD: u32 = u32::MAX;
/// Most names that are kept; of threads that come with yet another one the name is untold.
const MOST: usize = 1 << 18;
/// Most bytes of a name: the kernel's have 15, and whatever is longer is none of a thread.
const LONGEST: usize = 64;

impl Words {
    /// Returns the number of a name.
    pub(super) fn number(&mut self, word: &[u8]) -> u32 {
        let word = &word[..word.len().min(LONGEST)];
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        if self.all.len() >= MOST {
            return UNTOLD;
        }
        let number = self.all.len() as u32;
        self.all.push(word.into());
        self.numbers.insert(word.into(), number);
        number
    }

    /// Returns the name of this number; `None`: untold.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&[u8]> {
        self.all.get(number as usize).map(|word| &**word)
    }
}
