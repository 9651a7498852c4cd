//! The unigram model: of all ways to cut a word into pieces, the one with the highest sum of scores.

use std::collections::HashMap;

use super::pairs::{Merge, Pairs};

/// How far the score of an unknown character is below the lowest of a piece (SentencePiece's `kUnkPenalty`).
const UNKNOWN_PENALTY: f64 = 10.0;

/// Pieces in a tree of bytes, and their scores.
#[derive(Debug, Clone)]
pub(super) struct Unigram {
    /// From node and byte to the next node; the rank of a node is its piece, or [`NO_PIECE`].
    tree: Pairs,
    scores: Vec<f64>,
    unknown: u32,
    unknown_score: f64,
    sums: Sums,
}

/// In which precision scores are summed, which decides between cuts whose sums are nearly equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sums {
    /// Hugging Face.
    Double,
    /// SentencePiece, which begins again at zero where a sum has grown to [`SUM_MAX`].
    Single,
}

/// Beyond this, SentencePiece (0.2.2) takes the sum so far off all sums.
const SUM_MAX: f64 = 100_000.0;

const NO_PIECE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// The best cut that ends at an offset.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f64,
    start: u32,
    id: u32,
}

/// Scratch for the work, used again from word to word.
#[derive(Debug, Default)]
pub(super) struct UnigramScratch {
    best: Vec<Option<Best>>,
    /// What was found: start, end and id of each piece.
    pub(super) pieces: Vec<(u32, u32, u32)>,
}

impl Unigram {
    /// A model of pieces (id, bytes, score).
    pub(super) fn new<'a>(pieces: impl Iterator<Item = (u32, &'a [u8], f64)>, unknown: u32, sums: Sums) -> Self {
        let mut edges: HashMap<(u32, u8), u32> = HashMap::new();
        let mut piece_of = vec![NO_PIECE];
        let mut scores = Vec::new();
        let mut lowest = f64::INFINITY;
        for (id, bytes, score) in pieces {
            let mut node = ROOT;
            for &byte in bytes {
                node = *edges.entry((node, byte)).or_insert_with(|| {
                    piece_of.push(NO_PIECE);
                    piece_of.len() as u32 - 1
                });
            }
            if piece_of[node as usize] == NO_PIECE && node != ROOT {
                piece_of[node as usize] = id;
            }
            scores.resize(scores.len().max(id as usize + 1), 0.0);
            scores[id as usize] = score;
            lowest = lowest.min(score);
        }
        let mut tree = Pairs::with_capacity(edges.len());
        for ((node, byte), child) in edges {
            tree.insert(node, u32::from(byte), Merge { rank: piece_of[child as usize], id: child });
        }
        let mut model = Self { tree, scores, unknown, unknown_score: 0.0, sums };
        model.unknown_score = model.sum(lowest, -UNKNOWN_PENALTY);
        model
    }

    fn sum(&self, one: f64, other: f64) -> f64 {
        match self.sums {
            Sums::Double => one + other,
            // The sum of two numbers of single precision, rounded once more, is what single precision gives.
            Sums::Single => f64::from((one + other) as f32),
        }
    }

    /// Takes the sum at `start` off all sums from there to `furthest`, if it has grown too large.
    fn begin_again(&self, best: &mut [Option<Best>], start: usize, furthest: usize) {
        if self.sums == Sums::Single
            && let Some(Best { score: sum, .. }) = best[start]
            && sum.abs() > SUM_MAX
        {
            for best in best[start..=furthest].iter_mut().flatten() {
                best.score = self.sum(best.score, -sum);
            }
        }
    }

    /// Splits `word`, leaving the pieces in `scratch`. Characters that no piece covers become the unknown token, one each.
    pub(super) fn cut(&self, word: &str, scratch: &mut UnigramScratch) {
        let bytes = word.as_bytes();
        scratch.best.clear();
        scratch.best.resize(bytes.len() + 1, None);
        scratch.best[0] = Some(Best { score: 0.0, start: 0, id: self.unknown });
        let mut furthest = 0;
        for (start, character) in word.char_indices() {
            self.begin_again(&mut scratch.best, start, furthest);
            let Some(here) = scratch.best[start].map(|best| best.score) else { continue };
            let character_end = start + character.len_utf8();
            let mut single_seen = false;
            let mut node = ROOT;
            for (end, &byte) in bytes.iter().enumerate().skip(start) {
                let Some(Merge { rank: piece, id: next }) = self.tree.get(node, u32::from(byte)) else { break };
                node = next;
                if piece != NO_PIECE {
                    let score = self.sum(self.scores[piece as usize], here);
                    offer(&mut scratch.best[end + 1], Best { score, start: start as u32, id: piece });
                    furthest = furthest.max(end + 1);
                    single_seen |= end + 1 == character_end;
                }
            }
            if !single_seen {
                let score = self.sum(self.unknown_score, here);
                furthest = furthest.max(character_end);
                offer(&mut scratch.best[character_end], Best { score, start: start as u32, id: self.unknown });
            }
        }
        scratch.pieces.clear();
        let mut end = bytes.len() as u32;
        while end > 0 {
            let Some(best) = scratch.best[end as usize] else { break };
            scratch.pieces.push((best.start, end, best.id));
            end = best.start;
        }
        scratch.pieces.reverse();
    }
}

/// Keeps the better; the first of equals stays.
fn offer(slot: &mut Option<Best>, offered: Best) {
    if slot.is_none_or(|best| offered.score > best.score) {
        *slot = Some(offered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_sum_wins_and_the_unknown_stands_alone() {
        let pieces = [(0, &b"a"[..], -1.0), (1, b"b", -2.0), (2, b"ab", -2.5), (3, b"abc", -9.0)];
        let model = Unigram::new(pieces.into_iter(), 9, Sums::Double);
        let mut scratch = UnigramScratch::default();
        model.cut("ab\u{e9}abc", &mut scratch);
        assert_eq!(scratch.pieces, [(0, 2, 2), (2, 4, 9), (4, 7, 3)]);
        model.cut("", &mut scratch);
        assert!(scratch.pieces.is_empty());
    }
}
