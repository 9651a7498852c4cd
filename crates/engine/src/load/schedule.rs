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
    /// How many bytes they are; of a part of a block, about.
    pub bytes: u64,
}

impl Block {
    /// Its records `from..to`, counted from its first.
    fn part(&self, from: usize, to: usize) -> Self {
        let records = self.records.start + from..self.records.start + to;
        let bytes = self.bytes * records.len() as u64 / self.records.len().max(1) as u64;
        Self { shard: self.shard, records, bytes }
    }
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
    /// Its number in the order of reading.
    pub number: u64,
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

/// The order of one epoch, or of what is left of it.
#[derive(Debug)]
pub struct Schedule {
    blocks: std::vec::IntoIter<Block>,
    upcoming: std::vec::IntoIter<Read>,
    shuffle: Shuffle,
    random: Random,
    window: u64,
    place: u64,
    start: u64,
    samples: u64,
    reads: u64,
    bytes: u64,
    block_bytes_max: u64,
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
            reads: 0,
            bytes: blocks.iter().map(|block| block.bytes).sum(),
            block_bytes_max: blocks.iter().map(|block| block.bytes).max().unwrap_or(0),
            blocks: blocks.into_iter(),
            upcoming: Vec::new().into_iter(),
            shuffle,
            random,
            window: 0,
            place: 0,
            start: 0,
        }
    }

    /// Only the share of one rank. The shares of all ranks of a `world` have each sample once, and differ by at most one in
    /// their number of samples. Every rank must use the same seed and epoch.
    #[must_use]
    pub fn for_rank(mut self, rank: u64, world: u64) -> Self {
        let world = world.max(1);
        let (from, to) = (self.samples * rank / world, self.samples * (rank + 1) / world);
        let mut share = Vec::new();
        let mut first = 0;
        for block in self.blocks {
            let end = first + block.records.len() as u64;
            if end > from && first < to {
                share.push(block.part((from.max(first) - first) as usize, (to.min(end) - first) as usize));
            }
            first = end;
        }
        self.samples = to - from;
        self.blocks = share.into_iter();
        self
    }

    /// Only what comes from place `start` on: the rest of an epoch that was interrupted there, in the same order.
    #[must_use]
    pub fn starting_at(mut self, start: u64) -> Self {
        self.start = start.min(self.samples);
        self
    }

    /// The first place.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// How many samples the whole epoch (of this rank) has: the place after the last.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// How many bytes of a window must be in memory at once, if blocks of more than `block_bytes_max` are left out: all of
    /// it where its samples come in random order, and no more than a block where they come as they lie.
    pub fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        match self.shuffle {
            Shuffle::No => 0,
            Shuffle::Window { bytes } => {
                self.bytes.min(bytes.saturating_add(self.block_bytes_max.min(block_bytes_max)))
            }
        }
    }

    /// The next window that is not all before the start: its blocks, with a place for each sample. Empty at the end.
    fn next_window(&mut self) -> Vec<Read> {
        loop {
            let window = self.draw_window();
            let end = window.first().map(|read| read.window_end);
            if end.is_none_or(|end| end > self.start) {
                // Numbered from the first window that is read, so that nobody waits for those that are passed over.
                self.window += 1;
                return window
                    .into_iter()
                    .filter(|read| read.places.iter().any(|&place| place >= self.start))
                    .collect();
            }
        }
    }

    fn draw_window(&mut self) -> Vec<Read> {
        let limit_bytes = match self.shuffle {
            Shuffle::No => READ_AHEAD_BYTES,
            Shuffle::Window { bytes } => bytes,
        };
        let mut blocks: Vec<Block> = Vec::new();
        let mut bytes = 0;
        while (blocks.is_empty() || bytes < limit_bytes)
            && let Some(block) = self.blocks.next()
        {
            bytes += block.bytes;
            blocks.push(block);
        }
        // Read in the order in which they lie, so that neighbours that met in a window need no seek. The samples' places are
        // drawn below, so the order of reading does not show.
        blocks.sort_unstable_by_key(|block| (block.shard, block.records.start));
        let samples: u64 = blocks.iter().map(|block| block.records.len() as u64).sum();
        let end = self.place + samples;
        let mut places: Vec<u64> = (self.place..end).collect();
        if self.shuffle != Shuffle::No {
            self.random.shuffle(&mut places);
        }
        let mut places = places.into_iter();
        let window = self.window;
        self.place = end;
        let read = |block: Block| {
            let places = places.by_ref().take(block.records.len()).collect();
            Read { block, places, window, window_end: end, number: 0 }
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
        let read = Read { number: self.reads, ..self.upcoming.next()? };
        self.reads += 1;
        Some(read)
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
        order_of(Schedule::new(blocks(), shuffle, seed, epoch))
    }

    fn order_of(schedule: Schedule) -> Vec<(usize, usize)> {
        let start = schedule.start();
        let mut order = vec![None; schedule.samples() as usize];
        for read in schedule {
            for (record, place) in read.block.records.clone().zip(&read.places) {
                assert!(*place < read.window_end);
                assert!(order[*place as usize].replace((read.block.shard, record)).is_none(), "a place twice");
            }
        }
        order.into_iter().skip(start as usize).map(|sample| sample.expect("every place is taken")).collect()
    }

    #[test]
    fn the_rest_of_an_epoch_is_the_same() {
        for shuffle in [Shuffle::No, Shuffle::Window { bytes: 200 }, Shuffle::Window { bytes: 1 << 40 }] {
            let whole = order(shuffle, 3, 1);
            for start in 0..=whole.len() + 1 {
                let rest = order_of(Schedule::new(blocks(), shuffle, 3, 1).starting_at(start as u64));
                assert_eq!(rest, whole[start.min(whole.len())..], "{shuffle:?} from {start}");
            }
        }
    }

    #[test]
    fn ranks_share_without_overlap_or_loss() {
        for shuffle in [Shuffle::No, Shuffle::Window { bytes: 100 }] {
            let mut whole = order(shuffle, 5, 2);
            whole.sort_unstable();
            for world in [1, 2, 3, 7, 64, 1000] {
                let share = |rank| order_of(Schedule::new(blocks(), shuffle, 5, 2).for_rank(rank, world));
                let shares: Vec<Vec<(usize, usize)>> = (0..world).map(share).collect();
                let sizes = shares.iter().map(Vec::len);
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
                let mut all = shares.concat();
                all.sort_unstable();
                assert_eq!(all, whole, "{world} ranks");
            }
        }
    }

    #[test]
    fn every_sample_has_one_place() {
        for bytes in [0, 1, 40, 100, 1000, 1 << 40] {
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
