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

    /// A normally distributed number of mean 0 and variance 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A number of the gamma distribution of this shape and scale 1 (Marsaglia and Tsang: "A simple method for generating gamma
    /// variables", 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            // A smaller shape is a larger one's, times a power.
            let power = (1.0 - self.unit()).powf(1.0 / shape);
            return self.gamma(shape + 1.0) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let normal = self.normal();
            let v = (1.0 + c * normal).powi(3);
            if v > 0.0 && (1.0 - self.unit()).ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// A number of the beta distribution, in [0, 1].
    pub fn beta(&mut self, alpha: f64, beta: f64) -> f64 {
        let (a, b) = (self.gamma(alpha), self.gamma(beta));
        // Both can be too small for a number only if the parameters are tiny: then it is nearly 0 or nearly 1.
        if a + b > 0.0 { a / (a + b) } else { self.below(2) as f64 }
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
    fn normal_numbers_have_their_moments() {
        let mut random = Random::from_parts(&[3]);
        let numbers: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / 1e5;
        let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn gamma_and_beta_have_their_moments() {
        let mut random = Random::from_parts(&[4]);
        for shape in [0.3, 1.0, 2.5] {
            let mean = (0..100_000).map(|_| random.gamma(shape)).sum::<f64>() / 1e5;
            assert!((mean - shape).abs() < 0.03 * shape.max(1.0), "{shape}: {mean}");
        }
        for (alpha, beta) in [(0.2, 0.2), (1.0, 1.0), (2.0, 5.0)] {
            let numbers: Vec<f64> = (0..100_000).map(|_| random.beta(alpha, beta)).collect();
            let mean = numbers.iter().sum::<f64>() / 1e5;
            let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / 1e5;
            let sum: f64 = alpha + beta;
            assert!((mean - alpha / sum).abs() < 0.01, "{alpha} {beta}: {mean}");
            assert!((variance - alpha * beta / (sum * sum * (sum + 1.0))).abs() < 0.01, "{alpha} {beta}: {variance}");
        }
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
