//! Batches: some samples, field by field.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_codec::{Tensor, TensorSpec};
use forebay_pipeline::{FieldType, Sample, Schema, Value};

use super::pad;
use super::pool::Pool;
use crate::error::Result;

/// Some samples, field by field.
pub struct Batch {
    /// Its number in the epoch.
    pub number: u64,
    /// The keys of its samples.
    pub keys: Vec<Arc<str>>,
    /// Its fields, in the order of the schema.
    pub columns: Vec<(Arc<str>, Column)>,
    pub(super) pool: Option<Arc<Pool>>,
}

/// One field of all samples of a batch.
pub enum Column {
    /// Tensors of one shape, one after another in one buffer, aligned to 64 bytes.
    Dense {
        /// What each is.
        spec: TensorSpec,
        /// All of them.
        data: BytesMut,
    },
    /// Tensors of different shapes.
    Ragged(Vec<Tensor>),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Texts.
    Texts(Vec<Arc<str>>),
    /// Encoded bytes.
    Bytes(Vec<Bytes>),
}

impl Batch {
    /// How many samples it has.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has none (all of its samples were skipped).
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The column of a field.
    pub fn column(&self, field: &str) -> Option<&Column> {
        self.columns.iter().find(|(name, _)| &**name == field).map(|(_, column)| column)
    }

    /// A batch of finished samples. Fields that are alike in all are one buffer, too.
    pub(super) fn of_samples(
        number: u64,
        samples: Vec<Sample>,
        schema: &Schema,
        pool: &Arc<Pool>,
    ) -> Result<Self, forebay_codec::Error> {
        let keys = samples.iter().map(|sample| Arc::clone(&sample.key)).collect();
        let column =
            |(name, kind): &(String, FieldType)| Ok((name.as_str().into(), Column::empty(kind, samples.len(), pool)?));
        let mut columns: Vec<(Arc<str>, Column)> =
            schema.fields.iter().map(column).collect::<Result<_, forebay_codec::Error>>()?;
        for (index, sample) in samples.into_iter().enumerate() {
            for field in sample.fields {
                if let Some((_, column)) = columns.iter_mut().find(|(name, _)| *name == field.name) {
                    column.push(index, field.value);
                }
            }
        }
        Ok(Self { number, keys, columns, pool: Some(Arc::clone(pool)) })
    }

    /// Takes buffers back that were taken out of this batch, for the next ones.
    pub fn recycler(&self) -> Recycler {
        Recycler(self.pool.clone())
    }

    /// Makes one buffer of each field of tensors that differ in shape: each is put into the front corner of a tensor of
    /// the largest size, and the rest is filled with `value`. A field `<name>_shape` says how large each really is. Tensors
    /// that differ in rank stay as they are. An error where that would be more than the memory budget has for a batch.
    pub fn pad(&mut self, value: f64) -> Result<()> {
        for index in 0..self.columns.len() {
            let (name, column) = &self.columns[index];
            let Column::Ragged(tensors) = column else { continue };
            let Some(padded) = pad::pad(tensors, value, self.pool.as_deref()) else { continue };
            let (padded, shapes) = padded?;
            let shapes_name = format!("{name}_shape").into();
            self.columns[index].1 = padded;
            self.columns.push((shapes_name, shapes));
        }
        Ok(())
    }
}

/// Takes buffers back; see [`Batch::recycler`].
#[derive(Clone, Default)]
pub struct Recycler(Option<Arc<Pool>>);

impl Recycler {
    /// Gives a buffer back.
    pub fn give(&self, buffer: BytesMut) {
        if let Some(pool) = &self.0 {
            pool.give(buffer);
        }
    }
}

/// A batch that is no longer used gives its buffers back for the next ones.
impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            for (_, column) in &mut self.columns {
                match column {
                    Column::Dense { data, .. } => pool.give(std::mem::take(data)),
                    Column::Ragged(tensors) => tensors.drain(..).for_each(|tensor| {
                        let data = tensor.into_data();
                        if let Ok(buffer) = data.try_into_mut() {
                            pool.give(buffer);
                        }
                    }),
                    Column::Ints(_) | Column::Texts(_) | Column::Bytes(_) => {}
                }
            }
        }
    }
}

impl Column {
    fn empty(kind: &FieldType, samples: usize, pool: &Pool) -> Result<Self, forebay_codec::Error> {
        Ok(match kind {
            FieldType::Tensor { .. } => match kind.fixed_spec() {
                Some(spec) => Self::Dense { spec, data: pool.take(samples * spec.bytes())? },
                None => Self::Ragged(Vec::with_capacity(samples)),
            },
            FieldType::Int => Self::Ints(Vec::with_capacity(samples)),
            FieldType::Text | FieldType::Json => Self::Texts(Vec::with_capacity(samples)),
            FieldType::Bytes => Self::Bytes(Vec::with_capacity(samples)),
        })
    }

    fn push(&mut self, index: usize, value: Value) {
        match (self, value) {
            (Self::Dense { spec, data }, Value::Tensor(tensor)) => {
                data[index * spec.bytes()..(index + 1) * spec.bytes()].copy_from_slice(tensor.data());
            }
            (Self::Ragged(tensors), Value::Tensor(tensor)) => tensors.push(tensor),
            (Self::Ints(numbers), Value::Int(number)) => numbers.push(number),
            (Self::Texts(texts), Value::Text(text)) => texts.push(text),
            (Self::Bytes(all), Value::Bytes(bytes)) => all.push(bytes),
            // The schema check and the decoder of stored samples have made sure of the kinds.
            _ => unreachable!("a value is of its field's type"),
        }
    }
}

/// Moves the samples that are there together, so that those that were skipped leave no gap.
pub(super) fn close_up(mut data: BytesMut, filled: &[bool], sample_bytes: usize) -> BytesMut {
    let mut to = 0;
    for from in (0..filled.len()).filter(|&index| filled[index]) {
        if from != to {
            data.copy_within(from * sample_bytes..(from + 1) * sample_bytes, to * sample_bytes);
        }
        to += 1;
    }
    data.truncate(to * sample_bytes);
    data
}
