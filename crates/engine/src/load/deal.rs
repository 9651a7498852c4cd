//! Which samples of an epoch are whose: one *step* is a batch of every rank, and the steps of an epoch are its positions one after
//! another. So the samples of a step do not depend on how many ranks share them, and an epoch that was interrupted goes on from
//! the position that was reached, with any number of ranks and batches of any size.
//!
//! Within a step ranks share so that each reads few blocks: the positions are put in the order of their streams and cut into equal
//! parts. Where streams are as many as ranks, or a multiple, each rank has its own streams; otherwise neighbors share one.

use std::ops::Range;

use super::ids::{Position, Turn};

/// What becomes of the last samples of an epoch, where ranks cannot share them equally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Even {
    /// Some ranks have one more than others.
    #[default]
    None,
    /// They are left out.
    Drop,
    /// The first samples of the epoch come again.
    Pad,
}

/// The share of one rank in the rest of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deal {
    /// The position that the rest begins with, and the one it ends before; positions after the epoch's last are its first again.
    start: u64,
    end: u64,
    /// How many positions the epoch has, those of them that come again not counted.
    samples: u64,
    streams: u64,
    batch_size: u64,
    rank: u64,
    world_size: u64,
}

/// Who takes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) batch_size: u64,
    pub(super) rank: u64,
    pub(super) world_size: u64,
    pub(super) drop_last: bool,
    pub(super) even: Even,
}

impl Deal {
    /// What is left of an epoch of `samples` positions from position `start` on.
    pub(super) fn new(samples: u64, streams: u64, start: Position, share: Share) -> Self {
        let Share { batch_size, rank, world_size, drop_last, even } = share;
        let start = start.0.min(samples);
        let last = (samples - start) % (batch_size * world_size);
        let end = match even {
            _ if drop_last => samples - last,
            Even::None => samples,
            Even::Drop => samples - last % world_size,
            Even::Pad => samples + last.next_multiple_of(world_size) - last,
        };
        Self { start, end, samples, streams, batch_size, rank, world_size }
    }

    /// How many samples the rank has.
    pub(super) fn samples(&self) -> u64 {
        let step = self.batch_size * self.world_size;
        let (steps, last) = ((self.end - self.start) / step, (self.end - self.start) % step);
        let part = self.part(last);
        steps * self.batch_size + part.end - part.start
    }

    /// The position up to which the epoch was seen once every rank has taken so many batches of this share.
    pub(super) fn seen(&self, batches: u64) -> Position {
        let step = self.batch_size.saturating_mul(self.world_size);
        Position(self.start.saturating_add(batches.saturating_mul(step)).min(self.samples))
    }

    /// How often the epoch's positions must be gone through: more than once where some come again.
    pub(super) fn rounds(&self) -> u64 {
        self.end.div_ceil(self.samples.max(1)).max(1)
    }

    /// When the rank takes the sample at `position`; `None` where it does not. In round `round` of the epoch's positions.
    pub(super) fn turn(&self, position: Position, round: u64) -> Option<Turn> {
        let position = position.0 + round * self.samples;
        if position < self.start || position >= self.end {
            return None;
        }
        let number = (position - self.start) / (self.batch_size * self.world_size);
        let step = self.step(number);
        let mine = self.part(step.end - step.start);
        let stream = position % self.streams;
        let at = self.before_stream(&step, stream) + (position - self.first(&step, stream)) / self.streams;
        if !mine.contains(&at) {
            return None;
        }
        // Within the batch they come in the order of the epoch.
        let before = (0..self.streams).map(|stream| {
            let first_at = self.before_stream(&step, stream);
            let (from, to) = (first_at.max(mine.start), self.before_stream(&step, stream + 1).min(mine.end));
            let sooner = position.saturating_sub(self.first(&step, stream)).div_ceil(self.streams);
            (first_at + sooner).min(to).saturating_sub(from)
        });
        Some(Turn(number * self.batch_size + before.sum::<u64>()))
    }

    /// The positions of step number `number`.
    fn step(&self, number: u64) -> Range<u64> {
        let start = self.start + number * self.batch_size * self.world_size;
        start..(start + self.batch_size * self.world_size).min(self.end)
    }

    /// The rank's part of a step of `positions` positions.
    fn part(&self, positions: u64) -> Range<u64> {
        let cut = |rank: u64| (u128::from(positions) * u128::from(rank) / u128::from(self.world_size)) as u64;
        cut(self.rank)..cut(self.rank + 1)
    }

    /// The first position of a step, or after it, that is of `stream`.
    fn first(&self, step: &Range<u64>, stream: u64) -> u64 {
        let offset = step.start % self.streams;
        step.start + (stream + self.streams - offset) % self.streams
    }

    /// How many positions of a step are of streams before `stream`.
    fn before_stream(&self, step: &Range<u64>, stream: u64) -> u64 {
        let (rounds, more) = ((step.end - step.start) / self.streams, (step.end - step.start) % self.streams);
        let offset = step.start % self.streams;
        // `more` streams from `offset` on, round the end, have one position more than the others.
        let to_end = more.min(self.streams - offset);
        stream * rounds + stream.saturating_sub(offset).min(to_end) + stream.min(more - to_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(rank: u64, world_size: u64, batch_size: u64) -> Share {
        Share { batch_size, rank, world_size, drop_last: false, even: Even::None }
    }

    /// The positions that a rank takes, in its order.
    fn taken(deal: &Deal) -> Vec<u64> {
        let mut turns = vec![None; deal.samples() as usize];
        for round in 0..deal.rounds() {
            for position in 0..deal.samples {
                if let Some(turn) = deal.turn(Position(position), round) {
                    assert_eq!(turns[turn.0 as usize].replace(position), None, "one at a time");
                }
            }
        }
        turns.into_iter().map(|position| position.expect("every turn is somebody's")).collect()
    }

    #[test]
    fn a_step_has_the_same_positions_for_every_world() {
        for streams in [1, 2, 3, 7, 16] {
            for world in [1, 2, 3, 5, 8] {
                for (start, batch) in [(0, 1), (0, 4), (3, 4), (50, 7), (99, 1), (100, 3)] {
                    let deals: Vec<Deal> = (0..world)
                        .map(|rank| Deal::new(100, streams, Position(start), share(rank, world, batch)))
                        .collect();
                    let ranks: Vec<Vec<u64>> = deals.iter().map(taken).collect();
                    let steps = (100 - start).div_ceil(world * batch);
                    for step in 0..steps {
                        let mut all = Vec::new();
                        for rank in &ranks {
                            let mine = rank.iter().copied().skip((step * batch) as usize).take(batch as usize);
                            assert!(mine.clone().is_sorted());
                            all.extend(mine);
                        }
                        all.sort_unstable();
                        let first = start + step * world * batch;
                        assert!(
                            all.into_iter().eq(first..(first + world * batch).min(100)),
                            "{streams} {world} {start} {batch}"
                        );
                        assert_eq!(deals[0].seen(step), Position(first));
                    }
                    assert_eq!(deals[0].seen(steps), Position(100));
                }
            }
        }
    }

    #[test]
    fn streams_are_whose_they_are() {
        for rank in 0..4 {
            let positions = taken(&Deal::new(1000, 8, Position::FIRST, share(rank, 4, 10)));
            let mut streams: Vec<u64> = positions.iter().map(|position| position % 8).collect();
            streams.sort_unstable();
            streams.dedup();
            assert_eq!(streams, [2 * rank, 2 * rank + 1]);
        }
    }

    #[test]
    fn shares_can_be_made_even() {
        for (samples, world, batch) in [(100, 3, 7), (101, 8, 4), (5, 8, 2), (3, 1, 2), (64, 8, 4), (1, 16, 1)] {
            let all = |even, drop_last| -> Vec<Vec<u64>> {
                let share = |rank| Share { drop_last, even, ..share(rank, world, batch) };
                (0..world).map(|rank| taken(&Deal::new(samples, 3, Position::FIRST, share(rank)))).collect()
            };
            let dropped = all(Even::Drop, false);
            assert!(dropped.iter().all(|rank| rank.len() as u64 == samples / world));
            let mut padded = all(Even::Pad, false);
            assert!(padded.iter().all(|rank| rank.len() as u64 == samples.div_ceil(world)));
            let mut padded: Vec<u64> = padded.drain(..).flatten().collect();
            padded.sort_unstable();
            padded.dedup();
            assert!(padded.into_iter().eq(0..samples), "none is left out");
            let full = all(Even::None, true);
            assert!(full.iter().all(|rank| rank.len() as u64 == samples / (world * batch) * batch));
            let shared = all(Even::None, false);
            assert_eq!(shared.iter().map(Vec::len).sum::<usize>() as u64, samples);
        }
    }
}
