//! Random numbers that are the same on every machine, in every version, for a given seed.
//!
//! The order of an epoch and the position of a crop follow from a seed, and a run that is resumed next year must draw the
//! same numbers. A library's generator may change between versions, so this one is written out: `SplitMix64`
//! (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014), whose state can be made from
//! any mixture of numbers, which is just what a draw per (seed, epoch, sample, step) needs.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// A stream that depends on every one of `parts` and on their order.
    pub fn from_parts(parts: &[u64]) -> Self {
        let state = parts.iter().fold(0, |state, &part| mix(state ^ part).wrapping_add(GOLDEN_GAMMA));
        Self { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    /// A number below `end`; 0 if `end` is 0. The bias is below 2⁻³² for every `end` up to 2³².
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_never_changes() {
        // Published first outputs of SplitMix64 from state 1234567.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn parts_and_their_order_matter() {
        let first = |parts: &[u64]| Random::from_parts(parts).bits();
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
        assert_eq!(first(&[7, 3, 5]), first(&[7, 3, 5]));
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_spreads() {
        let mut items: Vec<usize> = (0..1000).collect();
        Random::from_parts(&[9]).shuffle(&mut items);
        let moved = items.iter().enumerate().filter(|&(index, &item)| index != item).count();
        assert!(moved > 980, "{moved}");
        items.sort_unstable();
        assert!(items.into_iter().eq(0..1000));
    }

    #[test]
    fn below_is_even() {
        let mut random = Random::from_parts(&[1]);
        let mut counts = [0_u32; 5];
        (0..50_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}
