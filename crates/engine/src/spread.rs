//! Choosing some places of a row so that they are spread evenly: of any neighbors as many as their share, to within one.
//!
//! Rows that are read in turns, a place of each, choose together: what up to 16 of them, or some neighboring rows of them, which a rank may have
//! alone, chose of any neighbors in that order is within four of their share. It would be within one if all were chosen as one row, but then a
//! row by itself could be chosen whole.

/// A number whose multiples fall evenly between whole numbers, however many they are, and so do every other of them; those of another series
/// fall independently. The first one is the golden ratio, its continued fraction is all ones, the next one's all twos, and so on.
fn evenly(series: usize) -> f64 {
    let all = series as f64 + 1.0;
    ((all * all + 4.0).sqrt() - all) / 2.0
}

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

    /// Rows of these lengths that choose `chosen` places together, all at the same rate. Which choose at the same time is decided by `series`:
    /// choices that go together have one of their own each.
    pub(crate) fn of_rows(lengths: &[u64], chosen: u64, series: usize) -> Vec<Self> {
        let total: u64 = lengths.iter().sum();
        let chosen = chosen.min(total);
        let row = |number: usize| Self::new(total, chosen, (number as f64 * evenly(series) + 0.5).fract());
        let mut rows: Vec<Self> = (0..lengths.len()).map(row).collect();
        // A row chooses what its length is worth, rounded down or up: up, where this and its phase are a whole step.
        let rest = |length: u64| (u128::from(length) * u128::from(chosen) % u128::from(total.max(1))) as u64;
        let down: u64 =
            rows.iter().zip(lengths).map(|(row, &length)| Self { phase: 0, ..*row }.chosen_of(length)).sum();
        let mut uneven: Vec<usize> = (0..rows.len()).filter(|&number| rest(lengths[number]) > 0).collect();
        uneven.sort_by_key(|&number| std::cmp::Reverse(rest(lengths[number]) + rows[number].phase));
        // As many must round up as are missing. Where phases say otherwise, a few are moved.
        for (place, number) in (0..).zip(uneven) {
            let step = total - rest(lengths[number]);
            let phase = &mut rows[number].phase;
            *phase = if place < chosen - down { step.max(*phase) } else { (step - 1).min(*phase) };
        }
        rows
    }

    /// Whether place number `place` is chosen: where `floor(place chosen / total)`, moved by the phase, steps up.
    pub(crate) fn holds(&self, place: u64) -> bool {
        self.chosen_of(place + 1) > self.chosen_of(place)
    }

    /// How many of the first `places` are chosen.
    pub(crate) fn chosen_of(&self, places: u64) -> u64 {
        let steps = u128::from(places) * u128::from(self.chosen) + u128::from(self.phase);
        (steps / u128::from(self.total.max(1))) as u64
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

    /// The same for rows of these lengths that have all together: of each its turns, and how many of each kind it has. The kinds take up as many
    /// series.
    pub(crate) fn of_rows(counts: &[u64], lengths: &[u64]) -> Vec<(Self, Vec<u64>)> {
        let mut rows: Vec<(Self, Vec<u64>)> =
            lengths.iter().map(|_| (Self { levels: Vec::new() }, Vec::new())).collect();
        let mut left = lengths.to_vec();
        for (kind, &count) in counts.iter().enumerate() {
            let spreads = Spread::of_rows(&left, count, kind);
            for (((turns, mine), left), spread) in rows.iter_mut().zip(&mut left).zip(spreads) {
                let chosen = spread.chosen_of(*left);
                mine.push(chosen);
                *left -= chosen;
                if kind + 1 < counts.len() {
                    turns.levels.push((spread, 0));
                }
            }
        }
        rows
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

    /// What neighbors in up to 16 rows may be off by.
    ///
    /// Row `r` has chosen `floor(a p + φ(r))` of its first `p` places, where `a` is the share and `φ(r)` its phase. So what neighbors in turns are off
    /// by is the sum over the rows of `{a p + φ(r)}` where they begin, less the same sum where they end. In each, `p` is one more for the rows
    /// whose turn has been. Of `k` rows whose phases are multiples of the golden ratio, and with any `a`, such sums are at most this far apart: 1 for
    /// one row, 2, 2.24, 2.47, 2.53, 2.76, 2.82, 3.06, 3, 3.24, 3.22, 3.42, 3.40, 3.39, 3.58 and 3.57 for 16. That is where each is piecewise linear
    /// in `a` and in `a p`, so that the places where it jumps decide. Rounding moves one phase at the most; with that, and all rows together, it is 3.752
    /// at the most for any choice of less than 2000 places (all were tried out).
    const IN_TURNS: f64 = 4.0;

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
        fn rows_choose_together(lengths in prop::collection::vec(0..300_u64, 1..40), part in 0.0..1.0_f64) {
            let total: u64 = lengths.iter().sum();
            let chosen = (total as f64 * part) as u64;
            let rows = Spread::of_rows(&lengths, chosen, 0);
            let mut found = 0;
            for (row, &length) in rows.iter().zip(&lengths) {
                let mine = (0..length).filter(|&place| row.holds(place)).count() as u64;
                prop_assert_eq!(mine, row.chosen_of(length));
                prop_assert!((mine as f64 - length as f64 * chosen as f64 / total.max(1) as f64).abs() < 1.0);
                found += mine;
            }
            prop_assert_eq!(found, chosen);
        }

        /// The neighbors of all rows in turns, and of those that one of several ranks has: rows beside each other, as `load/deal.rs` deals them.
        #[test]
        fn rows_in_turns_have_their_share(
            total in 100..2000_u64,
            count in 1..17_u64,
            ranks in 1..17_u64,
            part in 0.0..1.0_f64,
            length in 1..100_usize,
        ) {
            let lengths: Vec<u64> = (0..count).map(|row| (total - row).div_ceil(count)).collect();
            let chosen = (total as f64 * part) as u64;
            let rows = Spread::of_rows(&lengths, chosen, 0);
            let ranks = ranks.min(count);
            for rank in 0..ranks {
                let theirs = rank * count / ranks..(rank + 1) * count / ranks;
                let mine = (0..total).filter(|place| theirs.contains(&(place % count)));
                let places: Vec<bool> = mine.map(|place| rows[(place % count) as usize].holds(place / count)).collect();
                let share = chosen as f64 / total as f64;
                for neighbors in places.windows(length) {
                    let found = neighbors.iter().filter(|chosen| **chosen).count() as f64;
                    let off = (found - share * neighbors.len() as f64).abs();
                    prop_assert!(off < if count == 1 { 1.0 } else { IN_TURNS }, "{off}");
                }
            }
        }

        #[test]
        fn kinds_of_rows_take_turns(counts in prop::collection::vec(0..500_u64, 1..6), rows in 1..20_u64) {
            let total: u64 = counts.iter().sum();
            let lengths: Vec<u64> = (0..rows).map(|row| total.saturating_sub(row).div_ceil(rows)).collect();
            let mut found = vec![0; counts.len()];
            for ((mut turns, mine), length) in Turns::of_rows(&counts, &lengths).into_iter().zip(lengths) {
                let mut here = vec![0; counts.len()];
                (0..length).for_each(|_| here[turns.next()] += 1);
                prop_assert_eq!(&here, &mine);
                found.iter_mut().zip(here).for_each(|(found, here)| *found += here);
            }
            prop_assert_eq!(found, counts);
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
