//! The collator: where a worker puts what comes of one sample.

use std::sync::Arc;

use bytes::BytesMut;
use forebay_codec::{Tensor, TensorSpec, memory};
use forebay_pipeline::{SampleView, Sink, StepError, ValueView};

use super::batcher::{Batcher, Charged, Outcome, Rest, SMALL_BYTES, Slot};
use super::ids::Turn;
use crate::error::{Error, Result};
use crate::memory::Charge;

/// Takes one sample from a worker.
pub(super) struct Collator<'a> {
    batcher: &'a Batcher,
    turn: Turn,
    slot: Option<Slot>,
    /// Tensors that have no slot: index in the schema, spec, and the buffer that they were written to.
    loose: Vec<(usize, TensorSpec, BytesMut)>,
    /// Of each sample that came its key, its number and what is not in a slot.
    rest: Vec<(Arc<str>, u64, Vec<Rest>)>,
    done: Vec<Charged>,
    /// What the sample takes while it is worked on, beyond what the worker has anyway.
    work: Charge,
    /// What it takes in its batch, beyond what is charged when that is opened.
    output: Charge,
    /// A field that came as something else than the schema says.
    unfit: Option<(String, TensorSpec)>,
    /// Why it could not be taken.
    refused: Option<StepError>,
}

/// A sample that is given up takes nothing any more.
impl Drop for Collator<'_> {
    fn drop(&mut self) {
        let mut charge = std::mem::take(&mut self.work);
        self.done.drain(..).for_each(|(_, of_sample)| charge += of_sample);
        self.batcher.release(charge);
    }
}

impl<'a> Collator<'a> {
    pub(super) fn new(batcher: &'a Batcher, turn: Turn, slot: Option<Slot>) -> Self {
        let (work, output) = (Charge::default(), Charge::default());
        let (loose, rest, done) = (Vec::new(), Vec::new(), Vec::new());
        Self { batcher, turn, slot, loose, rest, done, work, output, unfit: None, refused: None }
    }

    /// Whether what came of the sample `key` could be taken, and fits the schema. A built-in step's always does; one made in code
    /// may break its word.
    pub(super) fn check(&mut self, key: &str) -> Result<()> {
        if let Some(source) = self.refused.take() {
            let (key, step, source) = (key.to_owned(), "batch".to_owned(), Box::new(source));
            return Err(forebay_pipeline::Error::Step { key, step, source }.into());
        }
        let Some((field, found)) = &self.unfit else { return Ok(()) };
        Err(Error::Usage {
            problem: format!("field `{field}` came as {found}, but the pipeline promised `{}`", self.batcher.schema),
            remedy: "correct the step's `output_type`, or its output".to_owned(),
        })
    }

    /// The sample is done.
    pub(super) fn finish(mut self) {
        match self.slot.take() {
            None => {
                let (done, work) = (std::mem::take(&mut self.done), std::mem::take(&mut self.work));
                self.batcher.line_up(self.turn, done, work);
            }
            Some(slot) => {
                let filled = |(key, number, rest)| Outcome::Filled(key, number, rest);
                let outcome = self.rest.pop().map_or(Outcome::Skipped, filled);
                self.fill(slot, outcome);
            }
        }
    }

    /// The sample is left out.
    pub(super) fn skip(mut self) {
        match self.slot.take() {
            None => {
                let mut given_up = std::mem::take(&mut self.work);
                self.done.drain(..).for_each(|(_, charge)| given_up += charge);
                self.batcher.line_up(self.turn, Vec::new(), given_up);
            }
            Some(slot) => self.fill(slot, Outcome::Skipped),
        }
    }

    fn fill(&mut self, slot: Slot, outcome: Outcome) {
        self.batcher.fill(self.turn, slot, outcome, std::mem::take(&mut self.work), self.output);
    }

    /// Charges `bytes` that the sample will have in its batch.
    fn charge_output(&mut self, bytes: u64) -> Result<(), StepError> {
        let has = self.work.bytes() + self.output.bytes();
        self.output += self.batcher.charge_batch(self.turn, has, bytes)?;
        Ok(())
    }

    /// The memory for a tensor of `field`: its slot, or a buffer of its own; `None` if it is not what the schema says.
    fn memory_for(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        let batcher = self.batcher;
        let index = batcher.schema.fields.iter().position(|(name, _)| name == field);
        let (Some(index), Some(dense)) = (index, batcher.dense.as_deref()) else { return Ok(None) };
        if let Some(number) = dense.iter().position(|(dense, _)| *dense == index) {
            let piece = self.slot.as_mut().and_then(|slot| slot.pieces.get_mut(number));
            return Ok(piece.filter(|_| dense[number].1 == *spec).map(|piece| &mut piece[..]));
        }
        if !batcher.schema.fields[index].1.holds(spec) {
            return Ok(None);
        }
        self.charge_output(spec.bytes() as u64)?;
        self.loose.retain(|(loose, ..)| *loose != index);
        self.loose.push((index, *spec, batcher.pool.take(spec.bytes())?));
        Ok(self.loose.last_mut().map(|(.., buffer)| &mut buffer[..]))
    }

    /// Takes what no step has put into its slot.
    fn take(&mut self, sample: &SampleView<'_>) -> Result<(), StepError> {
        // What no online step touched goes into its slot as it was stored.
        for (field, value) in sample.fields {
            if let ValueView::Tensor(view) = value {
                match self.memory_for(field, &view.spec)? {
                    Some(memory) => memory.copy_from_slice(view.data),
                    None => self.unfit = Some(((*field).to_owned(), view.spec)),
                }
            }
        }
        let is_loose = |value: &ValueView<'_>| matches!(value, ValueView::Text(_) | ValueView::Bytes(_));
        let loose = sample.fields.iter().filter(|(_, value)| is_loose(value));
        let loose_bytes: u64 = loose.map(|(_, value)| value.bytes() as u64).sum();
        if loose_bytes > SMALL_BYTES {
            self.charge_output(loose_bytes)?;
        }
        let mut rest = Vec::new();
        for (index, (name, _)) in self.batcher.schema.fields.iter().enumerate() {
            if let Some(loose) = self.loose.iter().position(|(loose, ..)| *loose == index) {
                let (_, spec, buffer) = self.loose.swap_remove(loose);
                rest.extend(Tensor::new(spec, buffer.freeze()).map(Rest::Tensor));
                continue;
            }
            let Some((_, value)) = sample.fields.iter().find(|(field, _)| field == name) else { continue };
            match *value {
                ValueView::Tensor(_) => {}
                ValueView::Int(number) => rest.push(Rest::Int(number)),
                ValueView::Text(text) => rest.push(Rest::Text(text.into())),
                ValueView::Bytes(bytes) => rest.push(Rest::Bytes(memory::copied(bytes)?.into())),
            }
        }
        self.rest.push((sample.key.into(), sample.index, rest));
        Ok(())
    }

    /// Puts a copy of one of several samples with the others.
    fn put_in_line(&mut self, sample: &SampleView<'_>) -> Result<(), StepError> {
        let bytes: u64 = sample.fields.iter().map(|(_, value)| value.bytes() as u64).sum();
        let has = self.work.bytes() + self.done.iter().map(|(_, charge)| charge.bytes()).sum::<u64>();
        // By itself, and in its batch.
        let charge = self.batcher.charge(self.turn, has, 2 * bytes)?;
        match sample.to_sample() {
            Ok(sample) => self.done.push((sample, charge)),
            Err(error) => {
                self.batcher.release(charge);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Sink for Collator<'_> {
    fn reserve(&mut self, bytes: usize) -> Result<(), StepError> {
        let (bytes, has) = (bytes as u64, self.work.bytes());
        if bytes <= has.max(self.batcher.shares.worker_bytes) {
            return Ok(());
        }
        let outputs = self.output.bytes() + self.done.iter().map(|(_, charge)| charge.bytes()).sum::<u64>();
        self.work += self.batcher.charge(self.turn, has + outputs, bytes - has)?;
        Ok(())
    }

    fn has_slots(&self) -> bool {
        self.slot.is_some()
    }

    fn slot(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        self.memory_for(field, spec)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        let taken = if self.slot.is_some() { self.take(&sample) } else { self.put_in_line(&sample) };
        if let Err(error) = taken {
            self.refused.get_or_insert(error);
        }
    }
}
