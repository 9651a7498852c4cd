//! The assembler: where a worker puts what comes of one sample.

use std::sync::Arc;

use bytes::BytesMut;
use forebay_codec::{Tensor, TensorSpec, memory};
use forebay_pipeline::{SampleView, Sink, StepError, ValueView};

use super::assembly::{Assembly, Charged, Outcome, Rest, SMALL_BYTES, Slot};
use crate::error::{Error, Result};
use crate::memory::Charge;

/// Takes one sample from a worker.
pub(super) struct Assembler<'a> {
    assembly: &'a Assembly,
    place: u64,
    slot: Option<Slot>,
    /// Tensors that have no slot: place in the schema, spec, and the buffer that they were written to.
    loose: Vec<(usize, TensorSpec, BytesMut)>,
    rest: Vec<(Arc<str>, Vec<Rest>)>,
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
impl Drop for Assembler<'_> {
    fn drop(&mut self) {
        let mut charge = std::mem::take(&mut self.work);
        self.done.drain(..).for_each(|(_, of_sample)| charge += of_sample);
        self.assembly.release(charge);
    }
}

impl<'a> Assembler<'a> {
    pub(super) fn new(assembly: &'a Assembly, place: u64, slot: Option<Slot>) -> Self {
        let (work, output) = (Charge::default(), Charge::default());
        let (loose, rest, done) = (Vec::new(), Vec::new(), Vec::new());
        Self { assembly, place, slot, loose, rest, done, work, output, unfit: None, refused: None }
    }

    /// Whether what came of the sample `key` could be taken, and fits the schema. A ready step's always does; one made in code
    /// may break its word.
    pub(super) fn check(&mut self, key: &str) -> Result<()> {
        if let Some(source) = self.refused.take() {
            let (key, step, source) = (key.to_owned(), "batch".to_owned(), Box::new(source));
            return Err(forebay_pipeline::Error::Step { key, step, source }.into());
        }
        let Some((field, found)) = &self.unfit else { return Ok(()) };
        Err(Error::Usage {
            problem: format!("field `{field}` came as {found}, but the pipeline promised `{}`", self.assembly.schema),
            remedy: "correct the step's `output_type` or what it writes".to_owned(),
        })
    }

    /// The sample is done.
    pub(super) fn finish(mut self) {
        match self.slot.take() {
            None => {
                let (done, work) = (std::mem::take(&mut self.done), std::mem::take(&mut self.work));
                self.assembly.line_up(self.place, done, work);
            }
            Some(slot) => {
                let outcome = self.rest.pop().map_or(Outcome::Skipped, |(key, rest)| Outcome::Filled(key, rest));
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
                self.assembly.line_up(self.place, Vec::new(), given_up);
            }
            Some(slot) => self.fill(slot, Outcome::Skipped),
        }
    }

    fn fill(&mut self, slot: Slot, outcome: Outcome) {
        self.assembly.fill(self.place, slot, outcome, std::mem::take(&mut self.work), self.output);
    }

    /// Charges `bytes` that the sample will have in its batch.
    fn charge_output(&mut self, bytes: u64) -> Result<(), StepError> {
        let has = self.work.bytes() + self.output.bytes();
        self.output += self.assembly.charge_batch(self.place, has, bytes)?;
        Ok(())
    }

    /// The room for a tensor of `field`: its slot, or a buffer of its own; `None` if it is not what the schema says.
    fn room(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        let assembly = self.assembly;
        let place = assembly.schema.fields.iter().position(|(name, _)| name == field);
        let (Some(place), Some(dense)) = (place, assembly.dense.as_deref()) else { return Ok(None) };
        if let Some(number) = dense.iter().position(|(dense, _)| *dense == place) {
            let piece = self.slot.as_mut().and_then(|slot| slot.pieces.get_mut(number));
            return Ok(piece.filter(|_| dense[number].1 == *spec).map(|piece| &mut piece[..]));
        }
        if !assembly.schema.fields[place].1.holds(spec) {
            return Ok(None);
        }
        self.charge_output(spec.bytes() as u64)?;
        self.loose.retain(|(loose, ..)| *loose != place);
        self.loose.push((place, *spec, assembly.pool.take(spec.bytes())?));
        Ok(self.loose.last_mut().map(|(.., buffer)| &mut buffer[..]))
    }

    /// Takes what no step has put into its place.
    fn take(&mut self, sample: &SampleView<'_>) -> Result<(), StepError> {
        // What no online step touched goes into its place as it was stored.
        for (field, value) in sample.fields {
            if let ValueView::Tensor(view) = value {
                match self.room(field, &view.spec)? {
                    Some(room) => room.copy_from_slice(view.data),
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
        for (place, (name, _)) in self.assembly.schema.fields.iter().enumerate() {
            if let Some(loose) = self.loose.iter().position(|(loose, ..)| *loose == place) {
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
        self.rest.push((sample.key.into(), rest));
        Ok(())
    }

    /// Puts a copy of one of several samples with the others.
    fn put_in_line(&mut self, sample: &SampleView<'_>) -> Result<(), StepError> {
        let bytes: u64 = sample.fields.iter().map(|(_, value)| value.bytes() as u64).sum();
        let has = self.work.bytes() + self.done.iter().map(|(_, charge)| charge.bytes()).sum::<u64>();
        // By itself, and in its batch.
        let charge = self.assembly.charge(self.place, has, 2 * bytes)?;
        match sample.to_sample() {
            Ok(sample) => self.done.push((sample, charge)),
            Err(error) => {
                self.assembly.release(charge);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Sink for Assembler<'_> {
    fn reserve(&mut self, bytes: usize) -> Result<(), StepError> {
        let (bytes, has) = (bytes as u64, self.work.bytes());
        if bytes <= has.max(self.assembly.shares.worker_bytes) {
            return Ok(());
        }
        let outputs = self.output.bytes() + self.done.iter().map(|(_, charge)| charge.bytes()).sum::<u64>();
        self.work += self.assembly.charge(self.place, has + outputs, bytes - has)?;
        Ok(())
    }

    fn places(&self) -> bool {
        self.slot.is_some()
    }

    fn place(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        self.room(field, spec)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        let taken = if self.slot.is_some() { self.take(&sample) } else { self.put_in_line(&sample) };
        if let Err(error) = taken {
            self.refused.get_or_insert(error);
        }
    }
}
