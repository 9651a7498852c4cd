//! Where steps put what they make: into a buffer that is used again, or straight into the slot of a batch.

use forebay_codec::{TensorMut, TensorSpec, TensorView, memory};

use crate::error::StepError;
use crate::runner::Sink;
use crate::sample::ValueView;
use crate::scope::Scratch;

/// The most bytes that a value may have on its way: a step that makes more of a sample is a mistake.
const VALUE_BYTES_MAX: usize = 1 << 32;

/// From so many bytes on a value in a batch leaves nothing of what the processor's own cache held before it.
const STREAMED_BYTES_MIN: usize = 2 << 20;

/// A reusable buffer, aligned for every element type.
#[derive(Default)]
pub(crate) struct Buffer {
    words: Vec<u64>,
}

impl Buffer {
    fn view(&self, bytes: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..bytes]
    }

    fn view_mut(&mut self, bytes: usize) -> Result<&mut [u8], StepError> {
        memory::grow(&mut self.words, bytes.div_ceil(size_of::<u64>()))?;
        Ok(&mut bytemuck::cast_slice_mut(&mut self.words)[..bytes])
    }
}

impl Scratch for Buffer {
    fn capacity_bytes(&self) -> usize {
        self.words.capacity_bytes()
    }

    fn trim(&mut self) {
        self.words.trim();
    }
}

/// A value that a step has made, in the buffer it was made in.
pub(crate) struct Made {
    buffer: Buffer,
    kind: Kind,
}

/// What the bytes of a buffer are.
#[derive(Clone, Copy)]
enum Kind {
    Tensor(TensorSpec),
    Text(usize),
    Int(i64),
}

impl Made {
    pub(crate) fn view(&self) -> ValueView<'_> {
        match self.kind {
            Kind::Tensor(spec) => ValueView::Tensor(TensorView { spec, data: self.buffer.view(spec.bytes()) }),
            // Copied from a `str`, so always valid; an empty text would show a bug rather than end a run.
            Kind::Text(bytes) => ValueView::Text(std::str::from_utf8(self.buffer.view(bytes)).unwrap_or_default()),
            Kind::Int(number) => ValueView::Int(number),
        }
    }

    /// How many bytes the value has.
    pub(crate) fn bytes(&self) -> usize {
        match self.kind {
            Kind::Tensor(spec) => spec.bytes(),
            Kind::Text(bytes) => bytes,
            Kind::Int(_) => size_of::<i64>(),
        }
    }

    /// The buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

/// Lets `work` of the codec ask for memory where `reserve` grants it. What that says is the error.
pub(crate) fn within<T>(
    reserve: &mut dyn FnMut(usize) -> Result<(), StepError>,
    work: impl FnOnce(memory::MemoryGate<'_>) -> Result<T, forebay_codec::Error>,
) -> Result<T, StepError> {
    let mut refused = None;
    let done = work(&mut |bytes| reserve(bytes).map_err(|error| refused = Some(error)).is_ok());
    refused.map_or(Ok(()), Err)?;
    Ok(done?)
}

/// Where a step puts the one value that it makes.
pub struct Output<'a> {
    field: &'a str,
    sink: &'a mut dyn Sink,
    /// Whether the value is final, so that it may go straight to where it is wanted.
    is_final: bool,
    buffer: Buffer,
    /// How many bytes the sample holds beside this value while it is made.
    beside_bytes: usize,
    state: State,
    bytes: usize,
}

#[derive(Clone, Copy)]
enum State {
    Empty,
    Made(Kind),
    InSlot,
}

/// What became of an [`Output`].
pub(crate) enum Outcome {
    Made(Made),
    InSlot(Buffer),
    /// The step made nothing.
    Nothing,
}

impl<'a> Output<'a> {
    /// An output that goes straight to the slot that `sink` has for it, to run a step by itself.
    pub fn new(field: &'a str, sink: &'a mut dyn Sink) -> Self {
        Self::within_sample(field, sink, true, Buffer::default(), 0)
    }

    pub(crate) fn within_sample(
        field: &'a str,
        sink: &'a mut dyn Sink,
        is_final: bool,
        buffer: Buffer,
        beside_bytes: usize,
    ) -> Self {
        Self { field, sink, is_final, buffer, beside_bytes, state: State::Empty, bytes: 0 }
    }

    /// A value between two steps that are done as one: what `step` puts into an output of its own, in `buffer`.
    pub(crate) fn between(
        &mut self,
        buffer: Buffer,
        step: impl FnOnce(&mut Output<'_>) -> Result<(), StepError>,
    ) -> Result<Made, StepError> {
        let mut output = Output::within_sample(self.field, &mut *self.sink, false, buffer, self.beside_bytes);
        step(&mut output)?;
        let (outcome, bytes) = output.finish();
        self.beside_bytes = self.beside_bytes.saturating_add(bytes);
        match outcome {
            Outcome::Made(made) => Ok(made),
            _ => Err(StepError::NoField { field: self.field.to_owned() }),
        }
    }

    /// The step takes `bytes` more of memory for itself while it makes the value; a little more is no harm. To be said before
    /// they are taken, so that a machine's memory is never overdrawn.
    pub fn working(&mut self, bytes: usize) -> Result<(), StepError> {
        self.beside_bytes = self.beside_bytes.saturating_add(bytes);
        self.sink.reserve(self.beside_bytes)
    }

    /// The same for a step that is faster with `bytes` of memory, but can do with `least`: whether it may take all of them, and an output
    /// of `output_bytes` still has its place.
    pub(crate) fn working_or_least(
        &mut self,
        bytes: usize,
        least: usize,
        output_bytes: usize,
    ) -> Result<bool, StepError> {
        let wanted_bytes = [bytes, output_bytes].into_iter().fold(self.beside_bytes, usize::saturating_add);
        match self.sink.reserve(wanted_bytes) {
            Ok(()) => self.working(bytes).map(|()| true),
            Err(StepError::Budget { .. }) => self.working(least).map(|()| false),
            Err(error) => Err(error),
        }
    }

    /// Lets `work` ask for memory as it takes it, in pieces whose sizes only it knows.
    pub(crate) fn within<T>(
        &mut self,
        work: impl FnOnce(memory::MemoryGate<'_>) -> Result<T, forebay_codec::Error>,
    ) -> Result<T, StepError> {
        within(&mut |bytes| self.working(bytes), work)
    }

    /// Whether a tensor of so many bytes is best written past the processor's cache: it is large, and goes to its batch, where
    /// nobody reads it soon.
    pub(crate) fn is_streamed(&self, bytes: usize) -> bool {
        bytes >= STREAMED_BYTES_MIN && self.is_final && self.sink.has_slots()
    }

    /// The value is a tensor of this spec: memory for it, which the step must fill. Called once.
    pub fn tensor(&mut self, spec: TensorSpec) -> Result<TensorMut<'_>, StepError> {
        if spec.bytes() > VALUE_BYTES_MAX {
            return Err(StepError::TooLarge { found: spec, limit_bytes: VALUE_BYTES_MAX });
        }
        self.bytes = spec.bytes();
        let has_slot = self.is_final && self.sink.has_slots();
        self.sink.reserve(self.beside_bytes.saturating_add(if has_slot { 0 } else { self.bytes }))?;
        if has_slot && let Some(data) = self.sink.slot(self.field, &spec)? {
            self.state = State::InSlot;
            return Ok(TensorMut { spec, data });
        }
        self.state = State::Made(Kind::Tensor(spec));
        Ok(TensorMut { spec, data: self.buffer.view_mut(spec.bytes())? })
    }

    /// The value is this text.
    pub fn text(&mut self, text: &str) -> Result<(), StepError> {
        // The text that it is copied from, and the copy.
        self.sink.reserve(self.beside_bytes.saturating_add(2 * text.len()))?;
        self.buffer.view_mut(text.len())?.copy_from_slice(text.as_bytes());
        self.bytes = text.len();
        self.state = State::Made(Kind::Text(text.len()));
        Ok(())
    }

    /// The value is this whole number.
    pub fn int(&mut self, number: i64) {
        self.bytes = size_of::<i64>();
        self.state = State::Made(Kind::Int(number));
    }

    /// What was made, and how many bytes it has.
    pub(crate) fn finish(self) -> (Outcome, usize) {
        let outcome = match self.state {
            State::Empty => Outcome::Nothing,
            State::Made(kind) => Outcome::Made(Made { buffer: self.buffer, kind }),
            State::InSlot => Outcome::InSlot(self.buffer),
        };
        (outcome, self.bytes)
    }
}
