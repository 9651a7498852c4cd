//! Merging the symbols of one word, lowest rank first, leftmost first among equals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairs::{Merge, Pairs};

/// Up to this many symbols, a scan for the lowest rank is faster than a heap; beyond, its cost would grow quadratically.
const SCAN_MAX: usize = 96;

const NEVER: Merge = Merge { rank: u32::MAX, id: u32::MAX };

/// Scratch for the work, used again from word to word.
#[derive(Debug, Default)]
pub(super) struct MergeScratch {
    /// The symbols to merge; afterwards the tokens.
    pub(super) symbols: Vec<u32>,
    merges: Vec<Merge>,
    next: Vec<u32>,
    previous: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

impl MergeScratch {
    /// Merges `symbols` until no pair is left that can be.
    pub(super) fn merge(&mut self, pairs: &Pairs) {
        if self.symbols.len() <= SCAN_MAX { self.scan(pairs) } else { self.heap(pairs) }
    }

    fn scan(&mut self, pairs: &Pairs) {
        let Self { symbols, merges, .. } = self;
        let look = |symbols: &[u32], at: usize| match symbols.get(at + 1) {
            Some(&right) => pairs.get(symbols[at], right).unwrap_or(NEVER),
            None => NEVER,
        };
        merges.clear();
        merges.extend((0..symbols.len()).map(|at| look(symbols, at)));
        loop {
            let mut best = (NEVER, 0);
            for (at, &merge) in merges.iter().enumerate() {
                if merge.rank < best.0.rank {
                    best = (merge, at);
                }
            }
            let (merge, at) = best;
            if merge.rank == NEVER.rank {
                return;
            }
            symbols[at] = merge.id;
            symbols.remove(at + 1);
            merges.remove(at + 1);
            merges[at] = look(symbols, at);
            if at > 0 {
                merges[at - 1] = look(symbols, at - 1);
            }
        }
    }

    /// The same in time n log n: symbols in a linked list, pairs in a heap; an entry whose pair has changed since is dropped.
    fn heap(&mut self, pairs: &Pairs) {
        const NONE: u32 = u32::MAX;
        let Self { symbols, next, previous, heap, .. } = self;
        let count = symbols.len() as u32;
        next.clear();
        next.extend((1..count).chain([NONE]));
        previous.clear();
        previous.extend([NONE].into_iter().chain(0..count.saturating_sub(1)));
        heap.clear();
        for at in 1..count {
            if let Some(merge) = pairs.get(symbols[at as usize - 1], symbols[at as usize]) {
                heap.push(Reverse((merge.rank, at - 1, merge.id)));
            }
        }
        while let Some(Reverse((rank, at, id))) = heap.pop() {
            let right = next[at as usize];
            // A symbol that was merged into its left neighbor is out of the list: nothing comes after it.
            if right == NONE || pairs.get(symbols[at as usize], symbols[right as usize]) != Some(Merge { rank, id }) {
                continue;
            }
            symbols[at as usize] = id;
            let after = next[right as usize];
            next[at as usize] = after;
            next[right as usize] = NONE;
            if after != NONE {
                previous[after as usize] = at;
                if let Some(merge) = pairs.get(id, symbols[after as usize]) {
                    heap.push(Reverse((merge.rank, at, merge.id)));
                }
            }
            let before = previous[at as usize];
            if before != NONE
                && let Some(merge) = pairs.get(symbols[before as usize], id)
            {
                heap.push(Reverse((merge.rank, before, merge.id)));
            }
        }
        let mut at = 0;
        let mut kept = 0;
        while at != NONE {
            symbols[kept] = symbols[at as usize];
            kept += 1;
            at = next[at as usize];
        }
        symbols.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scan_and_heap_agree(
            rules in proptest::collection::vec((0_u32..40, 0_u32..40, 0_u32..20), 0..200),
            symbols in proptest::collection::vec(0_u32..12, 1..300),
        ) {
            let mut pairs = Pairs::with_capacity(rules.len());
            for (index, &(left, right, rank)) in rules.iter().enumerate() {
                pairs.insert(left, right, Merge { rank, id: 12 + index as u32 % 28 });
            }
            let mut scanned = MergeScratch { symbols: symbols.clone(), ..MergeScratch::default() };
            scanned.scan(&pairs);
            let mut heaped = MergeScratch { symbols, ..MergeScratch::default() };
            heaped.heap(&pairs);
            prop_assert_eq!(scanned.symbols, heaped.symbols);
        }
    }
}
