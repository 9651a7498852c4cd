//! A random order of very many things, without a list of them.

/// A permutation of `0..count` that a seed decides: a Feistel network over the next even power of two, walked until the
/// result is in range. Constant memory, so a file of any size can be read in random order without repetition.
#[derive(Debug)]
pub(crate) struct Permutation {
    count: u64,
    half_bits: u32,
    seed: u64,
}

/// Four rounds make a good shuffle of disk blocks; nothing here needs to be secret.
const ROUNDS: u64 = 4;

impl Permutation {
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// The `index`th in the order; `index` must be below the count.
    pub(crate) fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.count);
        let mut value = index;
        // The network permutes a range less than four times (or, for one or two things, exactly four times) as large, so
        // this takes a few steps; it ends because the walk is a cycle that holds `index` itself.
        loop {
            value = self.encrypt(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let mixed = mix(right ^ mix(self.seed.wrapping_add(round)));
            (left, right) = (right, (left ^ mixed) & mask);
        }
        (left << self.half_bits) | right
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea and Flood 2014): every input bit changes half of the output bits.
fn mix(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_comes_once(count in 1_u64..2000, seed in any::<u64>()) {
            let order = Permutation::new(count, seed);
            let mut found: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
            found.sort_unstable();
            prop_assert_eq!(found, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn huge_counts_work_and_few_neighbors_stay_neighbors() {
        let order = Permutation::new(u64::MAX, 3);
        assert_ne!(order.at(0), order.at(u64::MAX - 1));
        let order = Permutation::new(1000, 7);
        let neighbors = (1..1000).filter(|&index| order.at(index) == order.at(index - 1) + 1).count();
        assert!(neighbors < 10, "{neighbors} of 999 reads would continue the one before");
    }
}
