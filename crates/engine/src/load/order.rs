//! The order of an epoch: which sample comes at which position, whoever takes it.
//!
//! Storage is fast when it is read in large blocks and slow when it jumps, so samples are not drawn one by one: the
//! epoch's *blocks* (neighboring samples of a shard, or one file) are put in random order and dealt to *streams*; a stream
//! takes a *window* of blocks at a time and puts the samples of the window in random order; and the epoch takes one sample
//! of each stream in turn. The larger the window, the closer this comes to a full shuffle; a window as large as the data
//! set is one.
//!
//! Streams are for many ranks: each rank takes whole streams, or nearly so, and reads only their blocks ([`super::deal`]).
//! How many there are follows from the data and the options, never from the number of ranks, and so does everything else
//! here: from seed and epoch, never from timing.

use std::collections::HashMap;

use forebay_pipeline::Random;

use super::ids::Position;
use crate::source::Block;

/// In which order samples come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// As they lie.
    No,
    /// At random, with windows of so many bytes.
    Window {
        /// The bytes of the windows of all streams together; up to twice as many where there are blocks that are larger than
        /// others. As much again is held in memory: the windows in use, and the next.
        bytes: u64,
    },
}

/// The bytes of windows, unless something else is asked for.
pub const WINDOW_BYTES: u64 = 64_000_000;

/// So many streams, unless something else is asked for and if there is enough data for them.
pub const STREAMS: u64 = 16;

/// The bytes that are read ahead in windows when nothing is shuffled.
const READ_AHEAD_BYTES: u64 = 16 << 20;

/// What the order of an epoch follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ordering {
    pub(super) shuffle: Shuffle,
    pub(super) seed: u64,
    pub(super) epoch: u64,
    /// The most streams.
    pub(super) streams: u64,
}

/// The order of an epoch, as windows of blocks in the order in which they are needed.
#[derive(Debug)]
pub(super) struct Order {
    ordering: Ordering,
    streams: Vec<Stream>,
    samples: u64,
    /// What a stream's window has at most, unless it is one block.
    window_bytes: u64,
    bytes: u64,
    /// The sizes of the largest blocks, one for each stream.
    largest: Vec<u64>,
}

#[derive(Debug)]
struct Stream {
    blocks: std::iter::Peekable<std::vec::IntoIter<Block>>,
    /// How many of its samples are in windows already.
    taken: u64,
    windows: u64,
}

/// A block, and the position in the epoch of each of its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PositionedBlock {
    pub(super) block: Block,
    pub(super) positions: Vec<Position>,
    /// Whether its samples stay in memory for the next epoch.
    pub(super) keep: bool,
}

impl Order {
    pub(super) fn new(mut blocks: Vec<Block>, ordering: Ordering) -> Self {
        let samples: u64 = blocks.iter().map(Block::len).sum();
        let sizes = Sizes::new(&blocks, ordering.streams);
        let count = match ordering.shuffle {
            Shuffle::No => 1,
            // A full shuffle.
            Shuffle::Window { bytes } if bytes >= sizes.bytes => 1,
            Shuffle::Window { bytes } => sizes.streams(bytes, ordering.streams),
        };
        let Sizes { bytes, mut largest, .. } = sizes;
        largest.truncate(count as usize);
        if ordering.shuffle != Shuffle::No {
            blocks = shuffled(blocks, &mut Random::from_parts(&[ordering.seed, ordering.epoch]));
        }
        let window_bytes = match ordering.shuffle {
            Shuffle::No => READ_AHEAD_BYTES,
            Shuffle::Window { bytes } => bytes / count,
        };
        let mut blocks = blocks.into_iter();
        let mut rest = None;
        let streams = (0..count).map(|number| {
            let mine = cut(&mut blocks, &mut rest, samples.saturating_sub(number).div_ceil(count));
            Stream { blocks: mine.into_iter().peekable(), taken: 0, windows: 0 }
        });
        Self { ordering, streams: streams.collect(), samples, window_bytes, bytes, largest }
    }

    /// How many samples the epoch has; its positions are the numbers below.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// How many streams there are: the sample at position `p` is of stream `p` modulo that.
    pub(super) fn streams(&self) -> u64 {
        self.streams.len() as u64
    }

    /// How many bytes must be in memory at once, if blocks of more than `block_bytes_max` are left out: a window of each stream
    /// where samples come in random order, and no more than a block where they come as they lie.
    pub(super) fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        match self.ordering.shuffle {
            Shuffle::No => 0,
            Shuffle::Window { .. } => {
                let largest = self.largest.iter().map(|&block| block.min(block_bytes_max));
                windows_bytes(largest, self.window_bytes).min(self.bytes)
            }
        }
    }

    /// How many bytes it is worth to have read ahead: two windows of each stream, and at least the largest block.
    pub(super) fn read_ahead_bytes(&self) -> u64 {
        windows_bytes(self.largest.iter().copied(), self.window_bytes).saturating_mul(2)
    }

    /// The next windows: of each stream that needs one first, in the order in which their blocks lie. Empty at the end.
    ///
    /// The windows that are needed first begin at the same sample of their streams. So windows that were given and not used up
    /// hold the next sample of their stream: there is one for each stream.
    pub(super) fn next_windows(&mut self) -> Vec<PositionedBlock> {
        let Some(first) = self.streams.iter_mut().filter_map(Stream::begins_at).min() else { return Vec::new() };
        let (count, window_bytes, ordering) = (self.streams(), self.window_bytes, self.ordering);
        let mut positioned = Vec::new();
        for (number, stream) in (0..).zip(&mut self.streams) {
            if stream.begins_at() == Some(first) {
                positioned.extend(stream.next_window(ordering, (number, count), window_bytes));
            }
        }
        // Neighbors that met in a window need no seek.
        positioned.sort_unstable_by_key(|positioned| positioned.block.samples.start);
        match ordering.shuffle {
            // They are admitted to memory in their order, and there may be space for no more than one.
            Shuffle::No => positioned,
            Shuffle::Window { .. } => take_turns(positioned),
        }
    }
}

impl Stream {
    /// The first sample of the next window, counted in this stream.
    fn begins_at(&mut self) -> Option<u64> {
        self.blocks.peek().map(|_| self.taken)
    }

    /// Its next window, where it is stream `number` of `count`.
    fn next_window(
        &mut self,
        ordering: Ordering,
        (number, count): (u64, u64),
        window_bytes: u64,
    ) -> Vec<PositionedBlock> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut bytes = 0;
        while let Some(block) = self.blocks.next_if(|block| blocks.is_empty() || bytes + block.bytes <= window_bytes) {
            bytes += block.bytes;
            blocks.push(block);
        }
        // The samples' positions are drawn next, so that the order of the blocks does not show.
        blocks.sort_unstable_by_key(|block| block.samples.start);
        let end = self.taken + blocks.iter().map(Block::len).sum::<u64>();
        let mut positions: Vec<Position> = (self.taken..end).map(|index| Position(index * count + number)).collect();
        if ordering.shuffle != Shuffle::No {
            let Ordering { seed, epoch, .. } = ordering;
            Random::from_parts(&[seed, epoch, number, self.windows]).shuffle(&mut positions);
        }
        self.taken = end;
        self.windows += 1;
        let mut positions = positions.into_iter();
        let with_positions = |block: Block| PositionedBlock {
            positions: positions.by_ref().take(block.len() as usize).collect(),
            block,
            keep: false,
        };
        blocks.into_iter().map(with_positions).collect()
    }
}

/// Blocks that lie in this order, so that sequences take turns: readers, who take one block each, then read several of them at once, and do not
/// wait for each other within one.
pub(super) fn take_turns(positioned: Vec<PositionedBlock>) -> Vec<PositionedBlock> {
    let mut before: HashMap<usize, usize> = HashMap::new();
    let mut turns: Vec<(usize, PositionedBlock)> = Vec::with_capacity(positioned.len());
    for block in positioned {
        let turn = block.block.sequence.map_or(0, |sequence| {
            let count = before.entry(sequence).or_default();
            *count += 1;
            *count - 1
        });
        turns.push((turn, block));
    }
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, block)| block).collect()
}

/// `blocks` in random order; those of a sequence keep theirs, and stay together.
pub(super) fn shuffled(blocks: Vec<Block>, random: &mut Random) -> Vec<Block> {
    let mut units: Vec<Vec<Block>> = Vec::new();
    for block in blocks {
        match units.last_mut() {
            Some(unit) if continues(&unit[0], &block) => unit.push(block),
            _ => units.push(vec![block]),
        }
    }
    random.shuffle(&mut units);
    units.into_iter().flatten().collect()
}

/// Whether both are of one sequence.
fn continues(one: &Block, other: &Block) -> bool {
    one.sequence.is_some() && one.sequence == other.sequence
}

/// How large blocks are.
pub(super) struct Sizes {
    /// How many there are, where those of a sequence are one.
    units: u64,
    blocks: u64,
    pub(super) bytes: u64,
    /// The largest of them, the largest first.
    largest: Vec<u64>,
}

impl Sizes {
    /// Of `blocks`, and of up to `most` of the largest.
    pub(super) fn new(blocks: &[Block], most: u64) -> Self {
        let mut largest: Vec<u64> = blocks.iter().map(|block| block.bytes).collect();
        let most = most.clamp(1, largest.len().max(1) as u64) as usize;
        if most < largest.len() {
            largest.select_nth_unstable_by(most, |a, b| b.cmp(a));
            largest.truncate(most);
        }
        largest.sort_unstable_by(|a, b| b.cmp(a));
        let continued = blocks.windows(2).filter(|pair| continues(&pair[0], &pair[1])).count();
        Self {
            units: (blocks.len() - continued) as u64,
            blocks: blocks.len() as u64,
            bytes: blocks.iter().map(|block| block.bytes).sum(),
            largest,
        }
    }

    /// How many streams there are for windows of `window_bytes` together: `asked`, or a part of it, so that ranks that share those
    /// evenly share these evenly too. Each has its part of the window, and a few blocks that are larger than that do not change
    /// how many there are, as long as no more than twice the bytes come together.
    pub(super) fn streams(&self, window_bytes: u64, asked: u64) -> u64 {
        let mean = self.bytes / self.blocks.max(1);
        let fits = |count: u64| {
            let largest = self.largest.iter().take(count as usize).copied();
            count.saturating_mul(mean) <= window_bytes.saturating_add(window_bytes / 8)
                && windows_bytes(largest, window_bytes / count) <= window_bytes.saturating_mul(2)
        };
        (2..=asked.min(self.units)).rev().find(|&count| asked.is_multiple_of(count) && fits(count)).unwrap_or(1)
    }
}

/// The bytes of windows of up to `window_bytes`, one for each of `largest`, where a larger block is a window by itself.
pub(super) fn windows_bytes(largest: impl Iterator<Item = u64>, window_bytes: u64) -> u64 {
    largest.map(|block| block.max(window_bytes)).fold(0, u64::saturating_add)
}

/// Takes the next blocks with `samples` samples together. Of one that has more, the rest is left in `rest`.
pub(super) fn cut(blocks: &mut std::vec::IntoIter<Block>, rest: &mut Option<Block>, mut samples: u64) -> Vec<Block> {
    let mut taken = Vec::new();
    while samples > 0
        && let Some(block) = rest.take().or_else(|| blocks.next())
    {
        if block.len() > samples {
            *rest = Some(block.part(samples..block.len()));
            taken.push(block.part(0..samples));
            break;
        }
        samples -= block.len();
        taken.push(block);
    }
    taken
}
