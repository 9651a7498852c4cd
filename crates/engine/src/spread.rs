//! Choosing some places of a row so that they are spread evenly: of any neighbors as many as their share, to within one.

/// Which places of `total` in a row are the `chosen` ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    total: u64,
    chosen: u64,
    /// Below `total`; moves the places without changing how many they are.
    phase: u64,
}

impl Spread {
    /// `chosen` places of `total`; `phase`, from 0 to 1, moves them, so that rows beside each other need not choose the same ones.
    pub(crate) fn new(total: u64, chosen: u64, phase: f64) -> Self {
        let phase = ((phase.clamp(0.0, 1.0) * total as f64) as u64).min(total.saturating_sub(1));
        Self { total, chosen: chosen.min(total), phase }
    }

    /// Whether place number `place` is chosen: where `floor(place chosen / total)`, moved by the phase, steps up.
    pub(crate) fn holds(&self, place: u64) -> bool {
        let before = |place: u64| {
            let steps = u128::from(place) * u128::from(self.chosen) + u128::from(self.phase);
            steps / u128::from(self.total.max(1))
        };
        before(place + 1) > before(place)
    }
}

/// Several kinds that take turns, each as often as it is counted: of two kinds, any neighbors have as many of each as their share, to within
/// one; of three kinds to within two, and so on.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    /// Each kind but the last against those after it, and how many places that was asked for.
    levels: Vec<(Spread, u64)>,
}

impl Turns {
    pub(crate) fn new(counts: &[u64], phase: f64) -> Self {
        let level = |kind: usize| {
            let total = counts[kind..].iter().sum();
            (Spread::new(total, counts[kind], phase), 0)
        };
        Self { levels: (0..counts.len().saturating_sub(1)).map(level).collect() }
    }

    /// The kind of the next place.
    pub(crate) fn next(&mut self) -> usize {
        for (kind, (spread, place)) in self.levels.iter_mut().enumerate() {
            *place += 1;
            if spread.holds(*place - 1) {
                return kind;
            }
        }
        self.levels.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn neighbors_have_their_share(total in 1..2000_u64, part in 0.0..1.0_f64, phase in 0.0..1.0_f64, length in 1..100_u64) {
            let chosen = (total as f64 * part) as u64;
            let spread = Spread::new(total, chosen, phase);
            let places: Vec<bool> = (0..total).map(|place| spread.holds(place)).collect();
            prop_assert_eq!(places.iter().filter(|chosen| **chosen).count() as u64, chosen);
            let share = chosen as f64 / total as f64;
            for neighbors in places.windows(length.min(total) as usize) {
                let found = neighbors.iter().filter(|chosen| **chosen).count() as f64;
                prop_assert!((found - share * neighbors.len() as f64).abs() < 1.0 + 1e-9);
            }
        }

        #[test]
        fn kinds_take_turns(counts in prop::collection::vec(0..500_u64, 1..6), phase in 0.0..1.0_f64, length in 1..100_usize) {
            let total: u64 = counts.iter().sum();
            let mut turns = Turns::new(&counts, phase);
            let kinds: Vec<usize> = (0..total).map(|_| turns.next()).collect();
            let most = (counts.len() as f64 - 1.0).max(1.0);
            for (kind, &count) in counts.iter().enumerate() {
                prop_assert_eq!(kinds.iter().filter(|found| **found == kind).count() as u64, count);
                let share = count as f64 / total.max(1) as f64;
                for neighbors in kinds.windows(length) {
                    let found = neighbors.iter().filter(|found| **found == kind).count() as f64;
                    prop_assert!((found - share * neighbors.len() as f64).abs() < most + 1e-9);
                }
            }
        }
    }
}
