//! The sampler of one rank: what it reads, one block after another, and when each sample of it is wanted.

use std::ops::Range;
use std::sync::Arc;

use forebay_pipeline::Random;

use super::deal::{Deal, Share};
use super::ids::{Position, Turn};
use super::liquid::{Formats, LiquidOrder};
use super::order::{Order, Ordering, PositionedBlock, STREAMS, Shuffle};
use crate::source::{Block, GAP_BYTES_MAX};

/// One read: neighboring samples, and those of them that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) block: Block,
    /// In the order in which they lie.
    pub(super) wanted: Vec<Wanted>,
    /// Its number in the order of reading.
    pub(super) number: u64,
}

/// A sample that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its number in the source.
    pub(super) sample: u64,
    /// When this rank takes it.
    pub(super) turn: Turn,
    /// Whether it stays in memory, as it was read, for the next epoch.
    pub(super) keep: bool,
}

/// What a rank reads in what is left of an epoch.
#[derive(Debug)]
pub(super) struct Sampler {
    samples: Samples,
    /// What stays in memory whatever the order says.
    fixed: Arc<Fixed>,
    ordering: Ordering,
    order: AnyOrder,
    deal: Deal,
    /// How often the order was gone through: again where samples come again.
    round: u64,
    upcoming: std::vec::IntoIter<Read>,
    reads: u64,
}

/// What an epoch has, and what decides its order.
#[derive(Debug, Clone)]
pub(super) enum Samples {
    /// Blocks, shuffled by windows or as they lie.
    Blocks(Arc<[Block]>),
    /// Blocks of several formats, or such that a part of them is kept for the next epoch.
    Formats(Formats),
}

/// The samples of a cache that never changes: ranges, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Fixed(Vec<Range<u64>>);

impl Fixed {
    /// Blocks in random order, as many as take no more than `bytes_max`, where each sample takes `entry_bytes` beside its own.
    pub(super) fn new(blocks: &[Block], bytes_max: u64, entry_bytes: u64, seed: u64) -> Self {
        let mut order: Vec<&Block> = blocks.iter().collect();
        Random::from_parts(&[FIXED_DRAW, seed]).shuffle(&mut order);
        let mut bytes = 0_u64;
        order.retain(|block| {
            let taken = bytes.saturating_add(block.bytes).saturating_add(block.len().saturating_mul(entry_bytes));
            let fits = taken <= bytes_max;
            bytes = if fits { taken } else { bytes };
            fits
        });
        let mut ranges: Vec<Range<u64>> = order.into_iter().map(|block| block.samples.clone()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        Self(ranges)
    }

    fn holds(&self, sample: u64) -> bool {
        let before = self.0.partition_point(|range| range.start <= sample);
        before.checked_sub(1).is_some_and(|at| self.0[at].contains(&sample))
    }
}

const FIXED_DRAW: u64 = 0x6669_7865_6400;

/// An order of either kind.
#[derive(Debug)]
enum AnyOrder {
    Windows(Order),
    Liquid(LiquidOrder),
}

impl AnyOrder {
    fn new(samples: &Samples, ordering: Ordering) -> Self {
        match samples {
            Samples::Blocks(blocks) => Self::Windows(Order::new(blocks.to_vec(), ordering)),
            Samples::Formats(formats) => Self::Liquid(LiquidOrder::new(formats, ordering)),
        }
    }

    fn deal(&self, start: Position, share: Share) -> Deal {
        let (samples, streams) = match self {
            Self::Windows(order) => (order.samples(), order.streams()),
            Self::Liquid(order) => (order.samples(), order.streams()),
        };
        Deal::new(samples, streams, start, share)
    }

    fn next_windows(&mut self) -> Vec<PositionedBlock> {
        match self {
            Self::Windows(order) => order.next_windows(),
            Self::Liquid(order) => order.next_windows(),
        }
    }
}

impl Sampler {
    /// The share of a rank in what is left of the epoch from position `start` on.
    pub(super) fn new(samples: Samples, ordering: Ordering, start: Position, share: Share) -> Self {
        let order = AnyOrder::new(&samples, ordering);
        let deal = order.deal(start, share);
        Self {
            samples,
            fixed: Arc::default(),
            ordering,
            order,
            deal,
            round: 0,
            upcoming: Vec::new().into_iter(),
            reads: 0,
        }
    }

    /// The same, where the samples of `fixed` stay in memory.
    pub(super) fn keeping(self, fixed: Arc<Fixed>) -> Self {
        Self { fixed, ..self }
    }

    /// Whose samples these are.
    pub(super) fn deal(&self) -> Deal {
        self.deal
    }

    /// See [`Order::window_bytes`].
    pub(super) fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        match &self.order {
            AnyOrder::Windows(order) => order.window_bytes(block_bytes_max),
            AnyOrder::Liquid(order) => order.window_bytes(block_bytes_max),
        }
    }

    /// See [`Order::read_ahead_bytes`].
    pub(super) fn read_ahead_bytes(&self) -> u64 {
        match &self.order {
            AnyOrder::Windows(order) => order.read_ahead_bytes(),
            AnyOrder::Liquid(order) => order.read_ahead_bytes(),
        }
    }

    /// The reads of the next windows; `None` at the end.
    fn next_reads(&mut self) -> Option<Vec<Read>> {
        let mut windows = self.order.next_windows();
        if windows.is_empty() && self.round + 1 < self.deal.rounds() {
            self.round += 1;
            self.order = AnyOrder::new(&self.samples, self.ordering);
            windows = self.order.next_windows();
        }
        if windows.is_empty() {
            return None;
        }
        let mut reads = Vec::new();
        for positioned in windows {
            self.wanted(&positioned, &mut reads);
        }
        Some(reads)
    }

    /// What the rank wants of a block, in as few reads as serve.
    fn wanted(&self, positioned: &PositionedBlock, reads: &mut Vec<Read>) {
        let block = &positioned.block;
        let gap_max = GAP_BYTES_MAX * block.len() / block.bytes.max(1);
        let first = block.samples.start;
        let mut run: Vec<Wanted> = Vec::new();
        for (sample, &position) in block.samples.clone().zip(&positioned.positions) {
            let Some(turn) = self.deal.turn(position, self.round) else { continue };
            if run.last().is_some_and(|last| sample - last.sample > gap_max + 1) {
                reads.push(read(block, first, std::mem::take(&mut run)));
            }
            run.push(Wanted { sample, turn, keep: positioned.keep || self.fixed.holds(sample) });
        }
        if !run.is_empty() {
            reads.push(read(block, first, run));
        }
    }
}

fn read(block: &Block, first: u64, wanted: Vec<Wanted>) -> Read {
    let range = wanted[0].sample - first..wanted[wanted.len() - 1].sample + 1 - first;
    Read { block: block.part(range), wanted, number: 0 }
}

impl Iterator for Sampler {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        while self.upcoming.len() == 0 {
            self.upcoming = self.next_reads()?.into_iter();
        }
        let read = Read { number: self.reads, ..self.upcoming.next()? };
        self.reads += 1;
        Some(read)
    }
}

/// The reads of all of `blocks`, for whoever goes through them by himself.
pub(crate) fn in_order(blocks: Vec<Block>, shuffle: Shuffle, seed: u64) -> impl Iterator<Item = Block> {
    let mut order = Order::new(blocks, Ordering { shuffle, seed, epoch: 0, streams: STREAMS });
    std::iter::from_fn(move || Some(order.next_windows()).filter(|windows| !windows.is_empty()))
        .flatten()
        .map(|positioned| positioned.block)
}

#[cfg(test)]
mod tests {
    use super::super::deal::Even;
    use super::super::order::WINDOW_BYTES;
    use super::*;

    /// Blocks of different sizes, 2,506 samples in all.
    fn blocks() -> Arc<[Block]> {
        let mut start = 0;
        let mut block = |number: u64| {
            let samples = start..start + 1 + number % 5;
            start = samples.end;
            Block { bytes: 40 * (samples.end - samples.start), samples, sequence: None }
        };
        (0..836).map(&mut block).collect()
    }

    const SAMPLES: u64 = 2506;

    fn whole(blocks: &Arc<[Block]>) -> Samples {
        Samples::Blocks(Arc::clone(blocks))
    }

    fn share(rank: u64, world_size: u64, batch_size: u64) -> Share {
        Share { batch_size, rank, world_size, drop_last: false, even: Even::None }
    }

    fn order(shuffle: Shuffle, seed: u64, epoch: u64) -> Vec<u64> {
        rest(shuffle, (seed, epoch), Position::FIRST, share(0, 1, 7))
    }

    /// The samples of a rank, in its order.
    fn rest(shuffle: Shuffle, (seed, epoch): (u64, u64), start: Position, share: Share) -> Vec<u64> {
        let sampler = Sampler::new(whole(&blocks()), Ordering { shuffle, seed, epoch, streams: 16 }, start, share);
        let mut order = vec![None; sampler.deal().samples() as usize];
        for (number, read) in (0..).zip(sampler) {
            assert_eq!(read.number, number);
            for wanted in read.wanted {
                assert!(read.block.samples.contains(&wanted.sample));
                assert_eq!(order[wanted.turn.0 as usize].replace(wanted.sample), None, "a turn twice");
            }
        }
        order.into_iter().map(|sample| sample.expect("every turn is somebody's")).collect()
    }

    const SHUFFLES: [Shuffle; 5] = [
        Shuffle::No,
        Shuffle::Window { bytes: 0 },
        Shuffle::Window { bytes: 1000 },
        Shuffle::Window { bytes: 20_000 },
        Shuffle::Window { bytes: 1 << 40 },
    ];

    #[test]
    fn every_sample_has_one_position() {
        let plain = order(Shuffle::No, 1, 0);
        assert!(plain.iter().copied().eq(0..SAMPLES));
        for shuffle in &SHUFFLES[1..] {
            let mut shuffled = order(*shuffle, 1, 0);
            assert_ne!(shuffled, plain);
            shuffled.sort_unstable();
            assert_eq!(shuffled, plain);
        }
    }

    #[test]
    fn the_order_follows_from_seed_and_epoch() {
        for shuffle in &SHUFFLES[1..] {
            assert_eq!(order(*shuffle, 7, 3), order(*shuffle, 7, 3));
            assert_ne!(order(*shuffle, 7, 3), order(*shuffle, 7, 4));
            assert_ne!(order(*shuffle, 7, 3), order(*shuffle, 8, 3));
        }
        assert_eq!(order(Shuffle::No, 7, 3), order(Shuffle::No, 8, 4));
    }

    #[test]
    fn the_rest_of_an_epoch_is_the_same() {
        for shuffle in SHUFFLES {
            let whole = order(shuffle, 3, 1);
            for start in [0, 1, 2, 39, 1000, SAMPLES - 1, SAMPLES, SAMPLES + 1] {
                let rest = rest(shuffle, (3, 1), Position(start), share(0, 1, 5));
                assert_eq!(rest, whole[start.min(SAMPLES) as usize..], "{shuffle:?} from {start}");
            }
        }
    }

    /// An epoch that goes on with another world each time: every step has the samples that it has without, and none is lost or
    /// comes twice.
    #[test]
    fn any_world_goes_on_where_another_stopped() {
        for shuffle in SHUFFLES {
            let whole = order(shuffle, 5, 2);
            for (first, then, last) in [(1, 2, 3), (2, 8, 1), (3, 5, 8), (8, 3, 5), (5, 1, 2)] {
                let mut at = Position::FIRST;
                for (world, steps, batch) in [(first, 7, 11), (then, 13, 6), (last, u64::MAX, 9)] {
                    let ranks: Vec<Vec<u64>> =
                        (0..world).map(|rank| rest(shuffle, (5, 2), at, share(rank, world, batch))).collect();
                    let deal = Deal::new(SAMPLES, 1, at, share(0, world, batch));
                    for step in 0..steps.min((SAMPLES - at.0).div_ceil(world * batch)) {
                        let taken = |rank: &Vec<u64>| {
                            rank.iter().copied().skip((step * batch) as usize).take(batch as usize).collect::<Vec<_>>()
                        };
                        let mut taken: Vec<u64> = ranks.iter().flat_map(taken).collect();
                        let mut expected = whole[deal.seen(step).0 as usize..deal.seen(step + 1).0 as usize].to_vec();
                        taken.sort_unstable();
                        expected.sort_unstable();
                        assert_eq!(taken, expected, "{shuffle:?} {world} ranks, step {step}");
                    }
                    at = deal.seen(steps);
                }
                assert_eq!(at, Position(SAMPLES));
            }
        }
    }

    const BLOCKS: u64 = 2000;

    /// Blocks as those of a large data set, with 40 samples each.
    fn large_blocks() -> Vec<Block> {
        (0..BLOCKS)
            .map(|number| Block { samples: number * 40..number * 40 + 40, bytes: 4 << 20, sequence: None })
            .collect()
    }

    /// How many bytes all ranks of a world read, beside what there is.
    fn read_of(blocks: &Arc<[Block]>, shuffle: Shuffle, world: u64) -> f64 {
        let ordering = Ordering { shuffle, seed: 1, epoch: 0, streams: 16 };
        let bytes = |rank| {
            Sampler::new(whole(blocks), ordering, Position::FIRST, share(rank, world, 64)).map(|read| read.block.bytes)
        };
        let all: u64 = blocks.iter().map(|block| block.bytes).sum();
        (0..world).flat_map(bytes).sum::<u64>() as f64 / all as f64
    }

    #[test]
    fn ranks_read_little_twice() {
        let blocks: Arc<[Block]> = large_blocks().into();
        // The window that is usual, too: it is a little less than 16 blocks.
        let shuffle = Shuffle::Window { bytes: WINDOW_BYTES };
        for (world, most) in [(1, 1.0), (2, 1.001), (4, 1.001), (8, 1.001), (16, 1.001), (3, 1.3), (5, 1.5), (12, 2.0)]
        {
            let found = read_of(&blocks, shuffle, world);
            assert!((0.999..=most).contains(&found), "{world} ranks read {found}");
            let found = read_of(&blocks, Shuffle::No, world);
            assert!((0.99..=1.01).contains(&found), "{world} ranks read {found} in order");
        }
    }

    #[test]
    fn a_few_large_blocks_change_little() {
        let mut blocks = large_blocks();
        blocks[77].bytes = 50_000_000;
        let shuffle = Shuffle::Window { bytes: WINDOW_BYTES };
        let found = read_of(&blocks.clone().into(), shuffle, 8);
        assert!((0.999..=1.001).contains(&found), "8 ranks read {found}");
        let window_bytes = |blocks: &[Block]| {
            let order = Order::new(blocks.to_vec(), Ordering { shuffle, seed: 1, epoch: 0, streams: 16 });
            (order.streams(), order.window_bytes(u64::MAX))
        };
        assert_eq!(window_bytes(&blocks), (16, 50_000_000 + 15 * (4 << 20)));
        // Where all are large there are fewer streams, a part of those asked for.
        let of_bytes = |bytes| blocks.iter().map(|block| Block { bytes, ..block.clone() }).collect::<Vec<_>>();
        assert_eq!(window_bytes(&of_bytes(10_000_000)), (4, 64_000_000));
        assert_eq!(window_bytes(&of_bytes(100_000_000)), (1, 100_000_000));
    }

    /// Blocks of a compressed stream are read in their order, whatever is shuffled, and shards one after the other.
    #[test]
    fn a_sequence_keeps_its_order() {
        let block = |number: u64| Block {
            samples: number * 5..number * 5 + 5,
            bytes: 100,
            sequence: Some(number as usize / 8).filter(|sequence| *sequence < 6),
        };
        let blocks: Vec<Block> = (0..64).map(block).collect();
        let read: Vec<Block> = in_order(blocks.clone(), Shuffle::Window { bytes: 200 }, 7).collect();
        assert_eq!(read.len(), 64);
        for sequence in 0..6 {
            let starts = read.iter().filter(|block| block.sequence == Some(sequence)).map(|block| block.samples.start);
            assert!(starts.is_sorted(), "sequence {sequence}");
        }
        let all = |read: &[Block]| read.iter().map(|block| block.samples.start).collect::<Vec<_>>();
        assert_ne!(all(&read), all(&blocks), "the sequences themselves are shuffled");
    }
}
