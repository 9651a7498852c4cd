//! The schedule: in which order the samples of an epoch come, and which bytes are read together for them.
//!
//! Storage is fast when it is read in large blocks and slow when it jumps, so samples are not drawn one by one: the
//! epoch's *blocks* (neighbouring records of a shard, or one file) are put in random order, a *window* of blocks is read
//! at a time, and the samples of a window are put in random order. The larger the window, the closer this comes to a full
//! shuffle; a window as large as the data set is one. Everything follows from seed and epoch alone, never from timing.

use std::ops::Range;

use forebay_pipeline::Random;

/// Where some neighbouring samples lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The shard, or 0 where each sample is a file.
    pub shard: usize,
    /// Which records of the shard, or which files.
    pub records: Range<usize>,
    /// How many bytes they are.
    pub bytes: u64,
}

/// One read: a block, and the place of each of its samples in the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The block.
    pub block: Block,
    /// The place in the epoch of each record of the block.
    pub places: Vec<u64>,
    /// The window it belongs to. A window's samples all come before the next window's.
    pub window: u64,
    /// The first place after this window.
    pub window_end: u64,
}

/// In which order samples come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// As they lie.
    No,
    /// At random, with windows of so many bytes.
    Window {
        /// The bytes of a window. Twice as much is held in memory: the window in use, and the next.
        bytes: u64,
    },
}

/// The bytes that are read ahead in windows when nothing is shuffled.
const READ_AHEAD_BYTES: u64 = 16 << 20;

/// The order of one epoch.
#[derive(Debug)]
pub struct Schedule {
    blocks: std::vec::IntoIter<Block>,
    upcoming: std::vec::IntoIter<Read>,
    shuffle: Shuffle,
    random: Random,
    window: u64,
    place: u64,
    samples: u64,
}

impl Schedule {
    /// The order of an epoch over `blocks`.
    pub fn new(mut blocks: Vec<Block>, shuffle: Shuffle, seed: u64, epoch: u64) -> Self {
        let mut random = Random::from_parts(&[seed, epoch]);
        if shuffle != Shuffle::No {
            random.shuffle(&mut blocks);
        }
        Self {
            samples: blocks.iter().map(|block| block.records.len() as u64).sum(),
            blocks: blocks.into_iter(),
            upcoming: Vec::new().into_iter(),
            shuffle,
            random,
            window: 0,
            place: 0,
        }
    }

    /// How many samples the epoch has.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The next window: its blocks, with a place for each sample.
    fn next_window(&mut self) -> Vec<Read> {
        let limit_bytes = match self.shuffle {
            Shuffle::No => READ_AHEAD_BYTES,
            Shuffle::Window { bytes } => bytes,
        };
        let mut blocks: Vec<Block> = Vec::new();
        let mut bytes = 0;
        while bytes < limit_bytes
            && let Some(block) = self.blocks.next()
        {
            bytes += block.bytes;
            blocks.push(block);
        }
        let samples: u64 = blocks.iter().map(|block| block.records.len() as u64).sum();
        let end = self.place + samples;
        let mut places: Vec<u64> = (self.place..end).collect();
        if self.shuffle != Shuffle::No {
            self.random.shuffle(&mut places);
        }
        let mut places = places.into_iter();
        let window = self.window;
        self.window += 1;
        self.place = end;
        let read = |block: Block| {
            let places = places.by_ref().take(block.records.len()).collect();
            Read { block, places, window, window_end: end }
        };
        blocks.into_iter().map(read).collect()
    }
}

impl Iterator for Schedule {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        if self.upcoming.len() == 0 {
            self.upcoming = self.next_window().into_iter();
        }
        self.upcoming.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Block> {
        let block =
            |number: usize| Block { shard: number / 7, records: number * 3..number * 3 + 1 + number % 5, bytes: 40 };
        (0..50).map(block).collect()
    }

    fn order(shuffle: Shuffle, seed: u64, epoch: u64) -> Vec<(usize, usize)> {
        let schedule = Schedule::new(blocks(), shuffle, seed, epoch);
        let mut order = vec![None; schedule.samples() as usize];
        for read in schedule {
            for (record, place) in read.block.records.clone().zip(&read.places) {
                assert!(*place < read.window_end);
                assert!(order[*place as usize].replace((read.block.shard, record)).is_none(), "a place twice");
            }
        }
        order.into_iter().map(|sample| sample.expect("every place is taken")).collect()
    }

    #[test]
    fn every_sample_has_one_place() {
        for bytes in [1, 40, 100, 1000, 1 << 40] {
            let mut shuffled = order(Shuffle::Window { bytes }, 1, 0);
            let mut plain = order(Shuffle::No, 1, 0);
            assert_ne!(shuffled, plain);
            shuffled.sort_unstable();
            plain.sort_unstable();
            assert_eq!(shuffled, plain);
        }
    }

    #[test]
    fn the_order_follows_from_seed_and_epoch() {
        let window = Shuffle::Window { bytes: 200 };
        assert_eq!(order(window, 7, 3), order(window, 7, 3));
        assert_ne!(order(window, 7, 3), order(window, 7, 4));
        assert_ne!(order(window, 7, 3), order(window, 8, 3));
        assert_eq!(order(Shuffle::No, 7, 3), order(Shuffle::No, 8, 4));
    }
}
