//! The order of an epoch over several formats, and over what memory keeps from one epoch to the next (Liquid).
//!
//! ```text
//! stream ─ turns of formats ─┬─ format 0 ─ spread ─┬─ hits:   samples in the buffer, one by one
//!                            │                     └─ misses: windows of blocks, read from storage
//!                            └─ format 1 ─ …
//! ```
//!
//! A *lane* is what one stream has of one format, either kept (hits) or not (misses). Formats take turns by their shares, and within each
//! format hits and misses do, so that all batches have as much of everything as their share is, and storage gives every batch the same work. The remainders of a batch are
//! carried to the next by the turns themselves.
//!
//! What the buffer holds in an epoch follows from seed and epoch alone: for each stream and format, whole blocks in random order until there are
//! as many samples as the buffer has room for. (Blocks, so that what is missing can be read in large pieces and nothing is read that is there.) So the samples that an epoch
//! *keeps* for the next are known when they come, and they too are spread evenly: as many slots become free as are filled, each a little before, and the buffer
//! stays as full as it is. Everything else a loader does, resuming and skipping too, is as with any order; a sample that should be kept and is not (after a resume, say) is
//! read by itself.
//!
//! The first epoch has nothing to keep from the one before it, and reads everything. Streams have the same blocks in every epoch, since the memory of
//! the rank that has a stream cannot be another's.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_pipeline::Random;
use forebay_plan::mix::BUFFER_SPARE;

use super::ids::Position;
use super::order::{Ordering, PositionedBlock, Shuffle, Sizes, cut, shuffled, take_turns, windows_bytes};
use crate::source::Block;
use crate::spread::{Spread, Turns};

/// What is drawn for other purposes than an epoch's order begins with one of these.
const STREAMS_DRAW: u64 = 0x6c69_7175_6964;
const BUFFER_DRAW: u64 = 0x6275_6666_6572;

/// The blocks of a source by their formats, and how much of them stays in memory.
#[derive(Debug, Clone)]
pub(super) struct Formats {
    /// Of each format its blocks.
    pub(super) blocks: Arc<[Vec<Block>]>,
    /// The bytes of the buffers of all formats, of all ranks together; 0 where nothing is kept.
    pub(super) buffer_bytes: u64,
    /// What a sample in a buffer takes beside its own bytes.
    pub(super) entry_bytes: u64,
}

/// The order of an epoch.
#[derive(Debug)]
pub(super) struct LiquidOrder {
    ordering: Ordering,
    streams: Vec<Stream>,
    samples: u64,
    bytes: u64,
    /// Of each lane the bytes of its windows and of its largest block.
    windows: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Stream {
    turns: Turns,
    /// How many of its samples have a lane.
    dealt: u64,
    samples: u64,
    formats: Vec<Format>,
}

/// What a stream has of one format.
#[derive(Debug)]
struct Format {
    spread: Spread,
    dealt: u64,
    hits: Lane,
    misses: Lane,
}

#[derive(Debug)]
struct Lane {
    pieces: std::iter::Peekable<std::vec::IntoIter<Piece>>,
    /// The numbers in the stream of the samples that come next, as far as they are known.
    numbers: VecDeque<u64>,
    /// What a window has at most, unless it is one piece.
    window_bytes: u64,
    windows: u64,
}

/// A part of a block, all of which is kept for the next epoch or not.
#[derive(Debug, Clone)]
struct Piece {
    block: Block,
    keep: bool,
}

impl LiquidOrder {
    pub(super) fn new(formats: &Formats, ordering: Ordering) -> Self {
        let all: Vec<Block> = formats.blocks.iter().flatten().cloned().collect();
        let sizes = Sizes::new(&all, ordering.streams);
        let window_bytes = match ordering.shuffle {
            Shuffle::No => 0,
            Shuffle::Window { bytes } => bytes,
        };
        let count = if window_bytes >= sizes.bytes { 1 } else { sizes.streams(window_bytes, ordering.streams) };
        let counts: Vec<u64> = formats.blocks.iter().map(|blocks| blocks.iter().map(Block::len).sum()).collect();
        let samples: u64 = counts.iter().sum();
        let hit_ratio = hit_ratio(formats, sizes.bytes, samples);
        let mut windows = Vec::new();
        let lengths: Vec<u64> = (0..count).map(|stream| samples.saturating_sub(stream).div_ceil(count)).collect();
        let turns = Turns::of_rows(&counts, &lengths);
        // Of each format which of a stream's samples are in the buffer: the streams keep together what it has room for.
        let spreads: Vec<Vec<Spread>> = (counts.iter().zip(0..))
            .map(|(&total, format): (_, usize)| {
                let mine: Vec<u64> = turns.iter().map(|(_, mine)| mine[format]).collect();
                Spread::of_rows(&mine, (hit_ratio * total as f64).round() as u64, counts.len() + format)
            })
            .collect();
        // Which blocks a stream has does not depend on the epoch.
        let mut sources: Vec<_> = formats
            .blocks
            .iter()
            .zip(0..)
            .map(|(blocks, format)| {
                let mut random = Random::from_parts(&[STREAMS_DRAW, ordering.seed, format]);
                (shuffled(blocks.clone(), &mut random).into_iter(), None)
            })
            .collect();
        let streams = turns.into_iter().zip(lengths).zip(0..).map(|(((turns, mine), samples), stream)| {
            let parts = mine.iter().zip(&mut sources).zip(0..).map(|((&mine, (blocks, rest)), format)| {
                let blocks = cut(blocks, rest, mine);
                let bytes: u64 = blocks.iter().map(|block| block.bytes).sum();
                let share = bytes as f64 / sizes.bytes.max(1) as f64;
                let drawn = Drawn { ordering, stream, format, spread: spreads[format as usize][stream as usize] };
                drawn.format(blocks, (window_bytes as f64 * share) as u64, &mut windows)
            });
            Stream { turns, dealt: 0, samples, formats: parts.collect() }
        });
        let streams = streams.collect();
        Self { ordering, streams, samples, bytes: sizes.bytes, windows }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    pub(super) fn streams(&self) -> u64 {
        self.streams.len() as u64
    }

    /// See [`super::order::Order::window_bytes`]: a window of each lane.
    pub(super) fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        self.windows_bytes(block_bytes_max).min(self.bytes)
    }

    pub(super) fn read_ahead_bytes(&self) -> u64 {
        self.windows_bytes(u64::MAX).saturating_mul(2)
    }

    fn windows_bytes(&self, block_bytes_max: u64) -> u64 {
        let lane =
            |&(window, largest): &(u64, u64)| windows_bytes(std::iter::once(largest.min(block_bytes_max)), window);
        self.windows.iter().map(lane).fold(0, u64::saturating_add)
    }

    /// The next windows: of each lane that needs one first. Empty at the end.
    ///
    /// As with any order, windows come in the order of their first samples, so that of what was given and is not used up each lane has one
    /// window at the most.
    pub(super) fn next_windows(&mut self) -> Vec<PositionedBlock> {
        let Some(first) = self.streams.iter_mut().filter_map(Stream::begins_at).min() else { return Vec::new() };
        let (streams, ordering) = (self.streams(), self.ordering);
        let mut positioned = Vec::new();
        for (number, stream) in (0..).zip(&mut self.streams) {
            if let Some((_, format)) = stream.next_format().filter(|(begins, _)| *begins == first) {
                positioned.extend(stream.next_window(format, ordering, (number, streams)));
            }
        }
        positioned.sort_unstable_by_key(|positioned| positioned.block.samples.start);
        take_turns(positioned)
    }
}

/// How much of the data set the buffer holds. What leaves it is ahead of what comes ([`evenly`]), so that no space is lost to that; a sample of each format is left
/// free, since they come and go in whole ones, and a little more, since they are not all of one size.
fn hit_ratio(formats: &Formats, bytes: u64, samples: u64) -> f64 {
    let buffer = formats.buffer_bytes as f64;
    let all = bytes as f64 + samples as f64 * formats.entry_bytes as f64;
    if buffer >= all {
        return 1.0;
    }
    let sample = |block: &Block| block.bytes as f64 / block.len().max(1) as f64 + formats.entry_bytes as f64;
    let largest = |blocks: &Vec<Block>| blocks.iter().map(sample).fold(0.0, f64::max);
    let free = formats.blocks.iter().map(largest).sum::<f64>() + buffer * BUFFER_SPARE;
    (buffer - free).max(0.0) / all
}

/// What the lanes of a stream and a format are drawn from.
struct Drawn {
    ordering: Ordering,
    stream: u64,
    format: u64,
    /// Which of the samples are in the buffer, from the second epoch on.
    spread: Spread,
}

impl Drawn {
    /// The lanes of `blocks`.
    fn format(&self, blocks: Vec<Block>, window_bytes: u64, windows: &mut Vec<(u64, u64)>) -> Format {
        let samples: u64 = blocks.iter().map(Block::len).sum();
        let kept = self.spread.chosen_of(samples);
        let epoch = self.ordering.epoch;
        // Nothing comes from before the first epoch.
        let now = if epoch == 0 { vec![0; blocks.len()] } else { self.buffer(&blocks, kept, epoch) };
        let next = self.buffer(&blocks, kept, epoch + 1);
        let (mut hits, mut misses) = (Vec::new(), Vec::new());
        for (block, (now, next)) in blocks.into_iter().zip(now.into_iter().zip(next)) {
            let ends = [now.min(next), now.max(next), block.len()];
            let mut start = 0;
            for end in ends {
                if start < end {
                    let piece = Piece { block: block.part(start..end), keep: start < next };
                    if start < now { &mut hits } else { &mut misses }.push(piece);
                    start = end;
                }
            }
        }
        let mut random = Random::from_parts(&[self.ordering.seed, epoch, self.stream, self.format]);
        let hits = one_by_one(hits, &mut random);
        let misses = evenly(misses, &mut random);
        let largest = |pieces: &[Piece]| pieces.iter().map(|piece| piece.block.bytes).max();
        // A hit is a window by itself: what is in memory need not be read together.
        windows.extend(largest(&hits).map(|largest| (0, largest)));
        windows.extend(largest(&misses).map(|largest| (window_bytes, largest)));
        let lane = |pieces: Vec<Piece>, window_bytes| Lane {
            pieces: pieces.into_iter().peekable(),
            numbers: VecDeque::new(),
            window_bytes,
            windows: 0,
        };
        Format {
            spread: if epoch == 0 { Spread::new(samples, 0, 0.0) } else { self.spread },
            dealt: 0,
            hits: lane(hits, 0),
            misses: lane(misses, window_bytes),
        }
    }

    /// How many samples of each block, from its first on, are in the buffer at the beginning of `epoch`.
    fn buffer(&self, blocks: &[Block], mut samples: u64, epoch: u64) -> Vec<u64> {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        Random::from_parts(&[BUFFER_DRAW, self.ordering.seed, epoch, self.stream, self.format]).shuffle(&mut order);
        let mut kept = vec![0; blocks.len()];
        for block in order {
            kept[block] = blocks[block].len().min(samples);
            samples -= kept[block];
        }
        kept
    }
}

/// The samples of `pieces` in random order, those that are kept spread evenly.
fn one_by_one(pieces: Vec<Piece>, random: &mut Random) -> Vec<Piece> {
    let alone = pieces.into_iter().flat_map(|piece| {
        (0..piece.block.len()).map(move |at| Piece { block: piece.block.part(at..at + 1), keep: piece.keep })
    });
    let (mut kept, mut others): (Vec<Piece>, Vec<Piece>) = alone.partition(|piece| piece.keep);
    random.shuffle(&mut kept);
    random.shuffle(&mut others);
    let total = kept.len() + others.len();
    // Those that leave come first: space is there before it is needed.
    let spread = Spread::new(total as u64, kept.len() as u64, 0.0);
    let (mut kept, mut others) = (kept.into_iter(), others.into_iter());
    let next = |index| if spread.holds(index) { kept.next() } else { others.next() };
    (0..total as u64).filter_map(next).collect()
}

/// `pieces` in random order, those that are kept spread evenly, as far as whole ones go; those of a sequence keep theirs. At any time no more than their share of
/// what is kept has come: a piece of it is placed by its end, and one of the others by its beginning.
fn evenly(pieces: Vec<Piece>, random: &mut Random) -> Vec<Piece> {
    let (kept, others): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().partition(|piece| piece.keep);
    let mut ordered: Vec<(f64, Piece)> = Vec::new();
    for (class, keep) in [(others, false), (kept, true)] {
        let total: u64 = class.iter().map(|piece| piece.block.len()).sum();
        let blocks = shuffled(class.into_iter().map(|piece| piece.block).collect(), random);
        let mut before = 0;
        for block in blocks {
            let begins = before;
            before += block.len();
            let at = if keep { before } else { begins };
            ordered.push((at as f64 / total as f64, Piece { block, keep }));
        }
    }
    // Stable: of two at one position, the one that is not kept comes first.
    ordered.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    ordered.into_iter().map(|(_, piece)| piece).collect()
}

impl Stream {
    /// The first sample that has no window yet, counted in this stream.
    fn begins_at(&mut self) -> Option<u64> {
        self.next_format().map(|(first, _)| first)
    }

    /// The same, and its format.
    fn next_format(&mut self) -> Option<(u64, usize)> {
        loop {
            let waiting = self.formats.iter().map(Format::begins_at);
            let next = waiting.enumerate().filter_map(|(format, first)| Some((first?, format))).min();
            match next {
                // Numbers are dealt in their order: those that are not yet come later.
                None if self.dealt < self.samples => self.deal(),
                next => return next,
            }
        }
    }

    /// Says which lane the next sample is of.
    fn deal(&mut self) {
        let format = &mut self.formats[self.turns.next()];
        let is_hit = format.spread.holds(format.dealt);
        format.dealt += 1;
        format.lane(is_hit).numbers.push_back(self.dealt);
        self.dealt += 1;
    }

    /// The next window of the lane of `format` that needs one first, where this is stream `number` of `streams`.
    fn next_window(
        &mut self,
        format: usize,
        ordering: Ordering,
        (number, streams): (u64, u64),
    ) -> Vec<PositionedBlock> {
        let is_hit = self.formats[format].hits_come_first();
        let lane = self.formats[format].lane(is_hit);
        let (pieces, window) = (lane.next_pieces(), lane.windows);
        lane.windows += 1;
        let samples: u64 = pieces.iter().map(|piece| piece.block.len()).sum();
        while (self.formats[format].lane(is_hit).numbers.len() as u64) < samples && self.dealt < self.samples {
            self.deal();
        }
        let numbers = self.formats[format].lane(is_hit).numbers.drain(..samples as usize);
        let kept = pieces.iter().filter(|piece| piece.keep).map(|piece| piece.block.len()).sum();
        // Late rather than early, as in `evenly`.
        let spread = Spread::new(samples, kept, 0.0);
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        for (at, of_stream) in (0..).zip(numbers) {
            if spread.holds(at) { &mut kept } else { &mut others }.push(Position(of_stream * streams + number));
        }
        if !is_hit {
            let Ordering { seed, epoch, .. } = ordering;
            let mut random = Random::from_parts(&[seed, epoch, number, format as u64, window]);
            random.shuffle(&mut kept);
            random.shuffle(&mut others);
        }
        let (mut kept, mut others) = (kept.into_iter(), others.into_iter());
        let positioned = |Piece { block, keep }: Piece| {
            let positions = if keep { &mut kept } else { &mut others };
            PositionedBlock { positions: positions.take(block.len() as usize).collect(), block, keep }
        };
        pieces.into_iter().map(positioned).collect()
    }
}

impl Format {
    fn begins_at(&self) -> Option<u64> {
        self.hits.numbers.front().into_iter().chain(self.misses.numbers.front()).min().copied()
    }

    fn hits_come_first(&self) -> bool {
        let first = |lane: &Lane| lane.numbers.front().copied().unwrap_or(u64::MAX);
        first(&self.hits) < first(&self.misses)
    }

    fn lane(&mut self, is_hit: bool) -> &mut Lane {
        if is_hit { &mut self.hits } else { &mut self.misses }
    }
}

impl Lane {
    /// The pieces of its next window, in the order in which they lie.
    fn next_pieces(&mut self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut bytes = 0;
        let fits = |piece: &Piece, bytes: u64, none: bool| none || bytes + piece.block.bytes <= self.window_bytes;
        while let Some(piece) = self.pieces.next_if(|piece| fits(piece, bytes, pieces.is_empty())) {
            bytes += piece.block.bytes;
            pieces.push(piece);
        }
        pieces.sort_unstable_by_key(|piece| piece.block.samples.start);
        pieces
    }
}

#[cfg(test)]
mod tests;
