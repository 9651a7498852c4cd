//! Duplicate samples: byte-identical ones, and images that look alike.
//!
//! Samples are gone through from the one with the most pixels on. One whose bytes were there before is an exact duplicate; one whose perceptual hash differs from that of one
//! that is kept in a few bits is a near duplicate of the nearest; all others are kept. So whatever is removed looks like something that stays, and of two
//! that stay neither looks like the other.
//!
//! Hashes are found by four tables, one for each 16 bits of them (multi-index hashing: Norouzi, Punjani, Fleet, 2012): two hashes that differ in up to `d` bits differ in no more
//! than `d / 4` in one of the four. So of a hundred thousand kept hashes a few hundred are compared with each sample.

use std::collections::HashMap;

use forebay_plan::{DuplicateCount, DuplicateGroup, Duplicates};

use super::facts::Facts;
use crate::error::Result;

/// The duplicates among `facts`, which `key` names. `wanted` is asked every so often whether to go on.
pub(super) fn find(
    facts: &[Facts],
    max_distance: u32,
    key: impl Fn(u64) -> String,
    mut wanted: impl FnMut() -> Result<()>,
) -> Result<Duplicates> {
    let mut order: Vec<u32> = (0..facts.len() as u32).collect();
    let pixels =
        |facts: &Facts| facts.image.as_deref().map_or(0, |image| u64::from(image.width) * u64::from(image.height));
    order.sort_by_key(|&at| {
        let facts = &facts[at as usize];
        (std::cmp::Reverse((pixels(facts), facts.bytes)), at)
    });
    // The first of each content, and which sample each other one is a duplicate of.
    let mut firsts: HashMap<u128, u32> = HashMap::new();
    let (mut exact, mut near): (Vec<Pair>, Vec<Pair>) = (Vec::new(), Vec::new());
    let mut kept = SeenHashes::new(max_distance);
    for (turn, &at) in order.iter().enumerate() {
        if turn.is_multiple_of(1024) {
            wanted()?;
        }
        let sample = &facts[at as usize];
        let first = *firsts.entry(sample.content).or_insert(at);
        if first != at {
            exact.push(Pair { of: first, at });
        } else if let Some(hash) = sample.image.as_deref().and_then(|image| image.perceptual_hash) {
            match kept.nearest(hash) {
                Some(of) => near.push(Pair { of, at }),
                None => kept.insert(hash, at),
            }
        }
    }
    let count = |pairs: &[Pair]| {
        let mut of: Vec<u32> = pairs.iter().map(|pair| pair.of).collect();
        of.sort_unstable();
        of.dedup();
        let bytes = pairs.iter().map(|pair| facts[pair.at as usize].bytes).sum();
        DuplicateCount { groups: of.len() as u64, samples: pairs.len() as u64, bytes }
    };
    let (exact_count, near_count) = (count(&exact), count(&near));
    let groups = groups(facts, &exact, &near, key);
    Ok(Duplicates {
        max_distance,
        exact: exact_count,
        near: near_count,
        conflicting_labels: groups.iter().filter(|group| group.conflicting_labels).count() as u64,
        groups,
    })
}

/// A duplicate, and the sample that it duplicates.
struct Pair {
    of: u32,
    at: u32,
}

/// Every retained sample with its duplicates, and theirs.
fn groups(facts: &[Facts], exact: &[Pair], near: &[Pair], key: impl Fn(u64) -> String) -> Vec<DuplicateGroup> {
    let kept_for: HashMap<u32, u32> = near.iter().map(|pair| (pair.at, pair.of)).collect();
    let mut members: HashMap<u32, Members> = HashMap::new();
    for pair in near {
        members.entry(pair.of).or_default().near.push(pair.at);
    }
    for pair in exact {
        let kept = kept_for.get(&pair.of).copied().unwrap_or(pair.of);
        members.entry(kept).or_default().exact.push(pair.at);
    }
    let mut members: Vec<(u32, Members)> = members.into_iter().collect();
    members.sort_unstable_by_key(|(kept, _)| *kept);
    let name = |at: u32| key(facts[at as usize].number);
    let names = |mut all: Vec<u32>| {
        all.sort_unstable();
        all.into_iter().map(name).collect::<Vec<String>>()
    };
    let group = |(kept, Members { exact, near }): (u32, Members)| {
        let label = |at: u32| facts[at as usize].label;
        let conflicting_labels = exact.iter().chain(&near).any(|&at| label(at) != label(kept));
        DuplicateGroup { keep: name(kept), exact: names(exact), near: names(near), conflicting_labels }
    };
    members.into_iter().map(group).collect()
}

/// The duplicates of a retained sample: copies, and those that look alike.
#[derive(Default)]
struct Members {
    exact: Vec<u32>,
    near: Vec<u32>,
}

/// The hashes of retained samples, indexed by each quarter of 16 bits.
struct SeenHashes {
    max_distance: u32,
    /// What the 16 bits of a hash may differ by.
    masks: Vec<u16>,
    hashes: Vec<(u64, u32)>,
    tables: [HashMap<u16, Vec<u32>>; PARTS],
}

const PARTS: usize = 4;

impl SeenHashes {
    fn new(max_distance: u32) -> Self {
        let differs = |mask: &u16| mask.count_ones() <= max_distance / PARTS as u32;
        let masks = (0..=u16::MAX).filter(differs).collect();
        Self { max_distance, masks, hashes: Vec::new(), tables: Default::default() }
    }

    fn part(hash: u64, part: usize) -> u16 {
        (hash >> (16 * part)) as u16
    }

    fn insert(&mut self, hash: u64, at: u32) {
        let number = self.hashes.len() as u32;
        self.hashes.push((hash, at));
        for (part, table) in self.tables.iter_mut().enumerate() {
            table.entry(Self::part(hash, part)).or_default().push(number);
        }
    }

    /// The nearest within the distance; of equally near ones the first.
    fn nearest(&self, hash: u64) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        for (part, table) in self.tables.iter().enumerate() {
            for mask in &self.masks {
                for &number in table.get(&(Self::part(hash, part) ^ mask)).into_iter().flatten() {
                    let found = ((self.hashes[number as usize].0 ^ hash).count_ones(), number);
                    best = Some(best.map_or(found, |best| best.min(found)));
                }
            }
        }
        let (distance, number) = best?;
        (distance <= self.max_distance).then(|| self.hashes[number as usize].1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Image, Kind};
    use super::*;
    use forebay_codec::image::Format;
    use proptest::prelude::*;

    fn facts(number: usize, content: u128, hash: Option<u64>, side: u32, label: i64) -> Facts {
        let image = Image {
            width: side,
            height: side,
            channels: 3,
            turned: false,
            gray: false,
            jpeg: None,
            mean: [0.0; 3],
            mean_square: [0.0; 3],
            perceptual_hash: hash,
            recompressed_bytes: None,
        };
        Facts {
            number: number as u64,
            kind: Kind::Image(Format::Jpeg),
            bytes: 100,
            label: Some(label),
            content,
            image: Some(Box::new(image)),
        }
    }

    fn found(facts: &[Facts], max_distance: u32) -> Duplicates {
        find(facts, max_distance, |number| number.to_string(), || Ok(())).expect("nobody ends it")
    }

    #[test]
    fn the_largest_is_kept_with_its_copies_and_theirs() {
        let all = [
            facts(0, 1, Some(0b0011), 50, 7),
            facts(1, 2, Some(0b0000), 90, 7),
            facts(2, 1, Some(0b0011), 50, 8),
            facts(3, 3, Some(u64::MAX), 10, 1),
            facts(4, 4, None, 10, 1),
            facts(5, 5, None, 10, 1),
        ];
        let duplicates = found(&all, 4);
        let group = DuplicateGroup {
            keep: "1".to_owned(),
            exact: vec!["2".to_owned()],
            near: vec!["0".to_owned()],
            conflicting_labels: true,
        };
        assert_eq!(duplicates.groups, [group]);
        assert_eq!((duplicates.exact.samples, duplicates.near.samples, duplicates.conflicting_labels), (1, 1, 1));
        assert_eq!(found(&all, 1).near.samples, 0);
    }

    proptest! {
        /// Against all pairs: what stays is far from all else that stays, and what goes is near to what it goes for.
        #[test]
        fn what_stays_is_far_and_what_goes_is_near(
            seeds in prop::collection::vec((0_u64..12, 0_u64..1 << 10, 0_u32..64), 1..80), max_distance in 0_u32..=16
        ) {
            let spread = |seed: u64| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let hash = |&(base, noise, turn): &(u64, u64, u32)| spread(base) ^ noise.rotate_left(turn);
            let all: Vec<Facts> =
                seeds.iter().enumerate().map(|(at, seed)| facts(at, at as u128, Some(hash(seed)), 10, 0)).collect();
            let duplicates = found(&all, max_distance);
            let number = |key: &String| key.parse::<usize>().unwrap();
            let distance = |one: usize, other: usize| (hash(&seeds[one]) ^ hash(&seeds[other])).count_ones();
            let mut gone = vec![false; seeds.len()];
            for group in &duplicates.groups {
                for near in &group.near {
                    gone[number(near)] = true;
                    prop_assert!(distance(number(&group.keep), number(near)) <= max_distance);
                }
            }
            let stay: Vec<usize> = (0..seeds.len()).filter(|&at| !gone[at]).collect();
            for (turn, &one) in stay.iter().enumerate() {
                for &other in &stay[..turn] {
                    prop_assert!(distance(one, other) > max_distance);
                }
            }
        }
    }
}
