//! Packing: token sequences of many lengths become windows of one.
//!
//! A window has tokens of several documents, so this step crosses samples. Done while loading, what is in a window would depend on which
//! documents a rank reads, in which order, and where it was resumed. So it is done once, in a build, to the samples of each shard in their order:
//! windows are then samples like any others, and an epoch of them is shuffled, shared out and resumed as usual. A window never reaches from one
//! shard into the next, so that shards can be built at the same time and again.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use forebay_codec::{DType, Tensor, memory};
use serde::{Deserialize, Serialize};

use crate::error::StepError;
use crate::sample::{Field, Sample, SampleView, Value, ValueView};
use crate::schema::{FieldType, Schema};
use crate::step::{BadParameter, Needs, Parts, ShardState, ShardTransform};

/// Packs the token sequences of a shard into windows of `max_length` tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// How many tokens a window has.
    pub max_length: usize,
    /// How they are put together.
    #[serde(default)]
    pub packing_strategy: PackingStrategy,
    /// What fills a window up.
    #[serde(default)]
    pub pad_token_id: i32,
    /// Whether the last window of a shard is left out if it is not full; of `wrapped`.
    #[serde(default)]
    pub drop_last: bool,
    /// The fields that tell the documents of a window apart.
    #[serde(default = "default_outputs")]
    pub outputs: Vec<PackOutput>,
    /// How many tokens the best fit is looked for among.
    #[serde(default = "default_buffer")]
    pub buffer_tokens: usize,
}

fn default_outputs() -> Vec<PackOutput> {
    vec![PackOutput::PositionIds, PackOutput::SegmentIds]
}

fn default_buffer() -> usize {
    1 << 22
}

/// How documents are put together, as TRL's `packing_strategy` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackingStrategy {
    /// One after another, cut wherever a window is full: only the last one has padding.
    #[default]
    Wrapped,
    /// Each whole in one window, the longest first into the fullest that has space for it (best fit decreasing). What a document has beyond
    /// `max_length` is left out.
    Bfd,
    /// The same, but a longer document is cut into parts of `max_length`.
    BfdSplit,
}

/// A field beside the tokens of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackOutput {
    /// The place of each token in its document, as far as it is in the window: from 0 on. 0 in padding.
    PositionIds,
    /// The number of its document in the window, from 1 on. 0 in padding.
    SegmentIds,
    /// Where documents begin, and where the last ends: `int32[documents + 1]`.
    CuSeqlens,
    /// The tokens, but -100 for what is not to be learned: padding, and the first token of each document, which none comes before.
    Labels,
}

impl PackOutput {
    fn name(self) -> &'static str {
        match self {
            Self::PositionIds => "position_ids",
            Self::SegmentIds => "segment_ids",
            Self::CuSeqlens => "cu_seqlens",
            Self::Labels => "labels",
        }
    }
}

/// Longer windows are a mistake.
const LENGTH_MAX: usize = 1 << 24;

/// The most tokens that are held to find the best fit among: a gigabyte of them.
const BUFFER_TOKENS_MAX: usize = 1 << 28;

/// What losses leave out.
const IGNORED: i32 = -100;

impl Pack {
    /// How many bytes a window takes, all of its fields together.
    fn window_bytes(&self) -> usize {
        self.max_length * size_of::<i32>() * (1 + self.outputs.len())
    }

    fn kind(&self) -> FieldType {
        FieldType::Tensor { dtype: DType::I32, dims: vec![Some(self.max_length)] }
    }
}

impl ShardTransform for Pack {
    fn check(&self) -> Result<(), BadParameter> {
        let fits = (1..=LENGTH_MAX).contains(&self.max_length);
        BadParameter::unless(fits, "max_length", &self.max_length, "from 1 to 2^24")?;
        let idle = self.drop_last && self.packing_strategy != PackingStrategy::Wrapped;
        BadParameter::unless(!idle, "drop_last", &self.drop_last, "false unless `packing_strategy` is `wrapped`")?;
        let fits = (self.max_length..=BUFFER_TOKENS_MAX).contains(&self.buffer_tokens);
        BadParameter::unless(fits, "buffer_tokens", &self.buffer_tokens, "from `max_length` to 2^28")?;
        let twice = (1..self.outputs.len()).any(|at| self.outputs[..at].contains(&self.outputs[at]));
        BadParameter::unless(!twice, "outputs", &self.outputs, "each of them once")
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let [tokens] = fields else { return Err(Needs("one field of tokens".to_owned())) };
        match input.field(tokens) {
            Some(FieldType::Tensor { dtype: DType::I32, dims }) if dims.len() == 1 => {}
            _ => return Err(Needs(format!("token ids, int32[tokens], in field `{tokens}`"))),
        }
        if let Some(taken) = self.outputs.iter().find(|output| output.name() == tokens) {
            return Err(Needs(format!("another name for the tokens than `{}`, which it adds", taken.name())));
        }
        let mut output = Schema { fields: vec![(tokens.clone(), self.kind())] };
        for added in &self.outputs {
            let kind = match added {
                PackOutput::CuSeqlens => FieldType::Tensor { dtype: DType::I32, dims: vec![None] },
                _ => self.kind(),
            };
            output.put(added.name(), kind);
        }
        Ok(output)
    }

    fn begin(&self) -> Box<dyn ShardState> {
        Box::new(Packing { step: self.clone(), pieces: Vec::new(), tokens: 0, windows: 0 })
    }
}

/// A document, or a part of one, that is in one window.
struct Piece {
    key: Arc<str>,
    /// Where it begins in its document.
    offset: usize,
    tokens: Vec<i32>,
}

/// What is held of a shard: the pieces of the window that is not full yet, or those that the best fit is looked for among.
struct Packing {
    step: Pack,
    pieces: Vec<Piece>,
    /// How many tokens they have.
    tokens: usize,
    /// How many windows were made.
    windows: u64,
}

impl Packing {
    fn hold(&mut self, key: &Arc<str>, offset: usize, tokens: &[i32]) -> Result<(), StepError> {
        self.pieces.push(Piece { key: Arc::clone(key), offset, tokens: memory::copied(tokens)? });
        self.tokens += tokens.len();
        Ok(())
    }

    /// Puts a document behind those before it.
    fn wrap(&mut self, key: &Arc<str>, tokens: &[i32], field: &str, parts: &mut Parts<'_>) -> Result<(), StepError> {
        let mut offset = 0;
        while offset < tokens.len() {
            let end = tokens.len().min(offset + self.step.max_length - self.tokens);
            self.hold(key, offset, &tokens[offset..end])?;
            offset = end;
            if self.tokens == self.step.max_length {
                self.emit_all(field, parts)?;
            }
        }
        Ok(())
    }

    /// Makes one window of all that is held.
    fn emit_all(&mut self, field: &str, parts: &mut Parts<'_>) -> Result<(), StepError> {
        let pieces = std::mem::take(&mut self.pieces);
        self.tokens = 0;
        self.emit(&pieces.iter().collect::<Vec<_>>(), field, parts)
    }

    /// Packs all that is held, each piece whole.
    fn fit(&mut self, field: &str, parts: &mut Parts<'_>) -> Result<(), StepError> {
        let pieces = std::mem::take(&mut self.pieces);
        self.tokens = 0;
        let lengths: Vec<usize> = pieces.iter().map(|piece| piece.tokens.len()).collect();
        for window in best_fit(&lengths, self.step.max_length) {
            let chosen: Vec<&Piece> = window.into_iter().map(|piece| &pieces[piece]).collect();
            self.emit(&chosen, field, parts)?;
        }
        Ok(())
    }

    /// Makes a window of `pieces`.
    fn emit(&mut self, pieces: &[&Piece], field: &str, parts: &mut Parts<'_>) -> Result<(), StepError> {
        let Some(first) = pieces.first() else { return Ok(()) };
        let mut fields = vec![self.field(field, pieces, self.step.pad_token_id, |piece, to| {
            to.copy_from_slice(&piece.tokens);
        })?];
        for output in &self.step.outputs {
            fields.push(match output {
                PackOutput::PositionIds => self.field(output.name(), pieces, 0, |_, to| {
                    (0..).zip(to).for_each(|(position, to)| *to = position);
                })?,
                PackOutput::SegmentIds => {
                    let mut segment = 0;
                    self.field(output.name(), pieces, 0, |_, to| {
                        segment += 1;
                        to.fill(segment);
                    })?
                }
                PackOutput::Labels => self.field(output.name(), pieces, IGNORED, |piece, to| {
                    to.copy_from_slice(&piece.tokens);
                    to[..1].fill(IGNORED);
                })?,
                PackOutput::CuSeqlens => {
                    let ends = ranges(pieces).map(|range| range.end as i32);
                    named(output.name(), &std::iter::once(0).chain(ends).collect::<Vec<i32>>())
                }
            });
        }
        // Each token is in one window, so the place of the first is a name of its own.
        let key = format!("{}#{}", first.key, first.offset).into();
        (parts.emit)(Sample { key, index: self.windows, fields });
        self.windows += 1;
        Ok(())
    }

    /// A field of a window: `pad` where `fill` puts nothing.
    fn field(
        &self,
        name: &str,
        pieces: &[&Piece],
        pad: i32,
        mut fill: impl FnMut(&Piece, &mut [i32]),
    ) -> Result<Field, StepError> {
        let mut values: Vec<i32> = memory::zeroed(self.step.max_length)?;
        for (piece, range) in pieces.iter().zip(ranges(pieces)) {
            fill(piece, &mut values[range]);
        }
        let filled: usize = pieces.iter().map(|piece| piece.tokens.len()).sum();
        values[filled..].fill(pad);
        Ok(named(name, &values))
    }
}

/// Where pieces lie in their window.
fn ranges<'a>(pieces: &'a [&Piece]) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut end = 0;
    pieces.iter().map(move |piece| {
        let start = end;
        end += piece.tokens.len();
        start..end
    })
}

fn named(name: &str, values: &[i32]) -> Field {
    let tensor = Tensor::from_elements(&[values.len()], values).expect("as many as there are");
    Field { name: name.into(), value: Value::Tensor(tensor) }
}

/// Which pieces of these lengths go into which windows of `length`: the longest first, each into the fullest window that has space, and of
/// equally full ones into that which has been so for longest, as TRL's. Pieces of a window are in their order, and windows in that of their
/// first pieces.
fn best_fit(lengths: &[usize], length: usize) -> Vec<Vec<usize>> {
    let mut pieces: Vec<usize> = (0..lengths.len()).collect();
    pieces.sort_by_key(|&piece| (std::cmp::Reverse(lengths[piece]), piece));
    let mut windows: Vec<Vec<usize>> = Vec::new();
    // The space of each window that has some, since which turn, and its number.
    let mut spaces: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    for (turn, piece) in pieces.into_iter().enumerate() {
        let taken = lengths[piece];
        let found = spaces.range((taken, 0, 0)..).next().copied();
        let (space, window) = if let Some(found) = found {
            spaces.remove(&found);
            (found.0, found.2)
        } else {
            windows.push(Vec::new());
            (length, windows.len() - 1)
        };
        windows[window].push(piece);
        if space > taken {
            spaces.insert((space - taken, turn, window));
        }
    }
    for window in &mut windows {
        window.sort_unstable();
    }
    windows.sort_unstable();
    windows
}

impl ShardState for Packing {
    fn push(&mut self, fields: &[String], sample: &SampleView<'_>, parts: &mut Parts<'_>) -> Result<(), StepError> {
        let field = fields.first().map_or("", String::as_str);
        let found = sample.fields.iter().find(|(name, _)| *name == field);
        let Some((_, ValueView::Tensor(view))) = found else {
            return Err(StepError::NoField { field: field.to_owned() });
        };
        // What this document adds, and the windows that may come of it and of what was held before.
        let length = self.step.max_length;
        let tokens = view.spec.shape.elements();
        let windows = (tokens + self.tokens).div_ceil(length).saturating_mul(self.step.window_bytes());
        (parts.reserve)(view.spec.bytes().saturating_mul(2).saturating_add(windows))?;
        let mut scratch = Vec::new();
        let tokens = view.elements_or_copy::<i32>(&mut scratch);
        let tokens = tokens.ok_or_else(|| StepError::NoField { field: field.to_owned() })?;
        let key: Arc<str> = sample.key.into();
        let tokens = match self.step.packing_strategy {
            PackingStrategy::Wrapped => return self.wrap(&key, tokens, field, parts),
            PackingStrategy::Bfd => &tokens[..tokens.len().min(length)],
            PackingStrategy::BfdSplit => tokens,
        };
        for (number, part) in tokens.chunks(length).enumerate() {
            if self.tokens + part.len() > self.step.buffer_tokens {
                self.fit(field, parts)?;
            }
            self.hold(&key, number * length, part)?;
        }
        Ok(())
    }

    fn finish(&mut self, fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError> {
        let field = fields.first().map_or("", String::as_str);
        // A best fit fills at least half of each window but one.
        let windows = (2 * self.tokens).div_ceil(self.step.max_length) + 1;
        (parts.reserve)(self.bytes().saturating_add(windows.saturating_mul(self.step.window_bytes())))?;
        match self.step.packing_strategy {
            PackingStrategy::Wrapped if self.step.drop_last => Ok(()),
            PackingStrategy::Wrapped => self.emit_all(field, parts),
            PackingStrategy::Bfd | PackingStrategy::BfdSplit => self.fit(field, parts),
        }
    }

    fn bytes(&self) -> usize {
        self.tokens * size_of::<i32>() + self.pieces.len() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fit_is_the_fullest_window_with_space() {
        assert_eq!(best_fit(&[3, 5, 2, 4, 1], 6), [vec![0], vec![1, 4], vec![2, 3]]);
        assert_eq!(best_fit(&[6, 6, 1], 6), [vec![0], vec![1], vec![2]]);
        assert!(best_fit(&[], 6).is_empty());
    }
}
