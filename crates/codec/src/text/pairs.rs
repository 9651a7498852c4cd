//! The merges of a byte-pair encoding: which two tokens become one, and which pair comes first.

/// What a pair of tokens becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merge {
    /// Pairs of lower rank are merged first.
    pub(super) rank: u32,
    /// The token they become.
    pub(super) id: u32,
}

/// Pairs and their merges, in one flat table: a lookup is one line of the cache, usually.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    slots: Vec<(u64, Merge)>,
    mask: usize,
    len: usize,
}

/// No pair: ids stay below [`super::VOCABULARY_MAX`].
const EMPTY: (u64, Merge) = (u64::MAX, Merge { rank: u32::MAX, id: u32::MAX });

impl Pairs {
    /// An empty table with space for `count`.
    pub(super) fn with_capacity(count: usize) -> Self {
        let slots = (count * 2).next_power_of_two().max(16);
        Self { slots: vec![EMPTY; slots], mask: slots - 1, len: 0 }
    }

    /// Adds a pair unless it exists: the first of two wins, as it has the lower rank.
    pub(super) fn insert(&mut self, left: u32, right: u32, merge: Merge) -> bool {
        if (self.len + 1) * 2 > self.slots.len() {
            let mut larger = Self::with_capacity(self.slots.len());
            for &(key, merge) in self.slots.iter().filter(|slot| slot.0 != EMPTY.0) {
                larger.put(key, merge);
            }
            *self = larger;
        }
        self.put(key(left, right), merge)
    }

    fn put(&mut self, key: u64, merge: Merge) -> bool {
        let mut slot = self.home(key);
        while self.slots[slot].0 != EMPTY.0 {
            if self.slots[slot].0 == key {
                return false;
            }
            slot = (slot + 1) & self.mask;
        }
        self.slots[slot] = (key, merge);
        self.len += 1;
        true
    }

    /// What the pair becomes.
    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merge> {
        let key = key(left, right);
        let mut slot = self.home(key);
        loop {
            let (found, merge) = self.slots[slot];
            if found == key {
                return Some(merge);
            }
            if found == EMPTY.0 {
                return None;
            }
            slot = (slot + 1) & self.mask;
        }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        // Knuth's multiplicative hash: the high bits depend on all of the key.
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & self.mask
    }
}

#[inline]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_and_the_first_of_two_stays() {
        let mut pairs = Pairs::with_capacity(0);
        for id in 0..1000 {
            assert!(pairs.insert(id, id * 7 % 13, Merge { rank: id, id: id + 1000 }));
            assert!(!pairs.insert(id, id * 7 % 13, Merge { rank: 0, id: 0 }));
        }
        for id in 0..1000 {
            assert_eq!(pairs.get(id, id * 7 % 13), Some(Merge { rank: id, id: id + 1000 }));
            assert_eq!(pairs.get(id, 13), None);
        }
    }
}
