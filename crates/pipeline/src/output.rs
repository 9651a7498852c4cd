//! Where steps put what they make: into a scratch buffer that is used again, or straight into the slot of a batch.

use forebay_codec::{TensorMut, TensorSpec, TensorView, memory};

use crate::error::StepError;
use crate::runner::Sink;
use crate::sample::ValueView;

/// The most bytes that a value may have on its way: a step that makes more of a sample is a mistake.
const VALUE_BYTES_MAX: usize = 1 << 32;

/// A reusable buffer, aligned for every element type.
#[derive(Default)]
pub(crate) struct Scratch {
    words: Vec<u64>,
}

impl Scratch {
    fn view(&self, bytes: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..bytes]
    }

    fn view_mut(&mut self, bytes: usize) -> Result<&mut [u8], StepError> {
        memory::grow(&mut self.words, bytes.div_ceil(size_of::<u64>()))?;
        Ok(&mut bytemuck::cast_slice_mut(&mut self.words)[..bytes])
    }

    /// How many bytes it takes, whatever it holds now.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// A value that a step has made, in the buffer it was made in.
pub(crate) struct Made {
    scratch: Scratch,
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
            Kind::Tensor(spec) => ValueView::Tensor(TensorView { spec, data: self.scratch.view(spec.bytes()) }),
            // Copied from a `str`, so always valid; an empty text would show a bug rather than end a run.
            Kind::Text(bytes) => ValueView::Text(std::str::from_utf8(self.scratch.view(bytes)).unwrap_or_default()),
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
    pub(crate) fn into_scratch(self) -> Scratch {
        self.scratch
    }
}

/// Lets `work` of the codec ask for memory where `reserve` grants it. What that says is the error.
pub(crate) fn within<T>(
    reserve: &mut dyn FnMut(usize) -> Result<(), StepError>,
    work: impl FnOnce(memory::Room<'_>) -> Result<T, forebay_codec::Error>,
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
    scratch: Scratch,
    /// How many bytes the sample holds beside this value while it is made.
    beside_bytes: usize,
    state: State,
    bytes: usize,
}

#[derive(Clone, Copy)]
enum State {
    Empty,
    Made(Kind),
    Placed,
}

/// What became of an [`Output`].
pub(crate) enum Outcome {
    Made(Made),
    Placed(Scratch),
    /// The step made nothing.
    Nothing,
}

impl<'a> Output<'a> {
    pub(crate) fn new(
        field: &'a str,
        sink: &'a mut dyn Sink,
        is_final: bool,
        scratch: Scratch,
        beside_bytes: usize,
    ) -> Self {
        Self { field, sink, is_final, scratch, beside_bytes, state: State::Empty, bytes: 0 }
    }

    /// The step takes `bytes` more of memory for itself while it makes the value. To be said before they are taken.
    pub fn working(&mut self, bytes: usize) -> Result<(), StepError> {
        self.beside_bytes = self.beside_bytes.saturating_add(bytes);
        self.sink.reserve(self.beside_bytes)
    }

    /// Lets `work` ask for memory as it takes it, in pieces whose sizes only it knows.
    pub(crate) fn within<T>(
        &mut self,
        work: impl FnOnce(memory::Room<'_>) -> Result<T, forebay_codec::Error>,
    ) -> Result<T, StepError> {
        within(&mut |bytes| self.working(bytes), work)
    }

    /// The value is a tensor of this spec: room for it, which the step must fill. Called once.
    pub fn tensor(&mut self, spec: TensorSpec) -> Result<TensorMut<'_>, StepError> {
        if spec.bytes() > VALUE_BYTES_MAX {
            return Err(StepError::TooLarge { found: spec, limit_bytes: VALUE_BYTES_MAX });
        }
        self.bytes = spec.bytes();
        let is_placed = self.is_final && self.sink.places();
        self.sink.reserve(self.beside_bytes.saturating_add(if is_placed { 0 } else { self.bytes }))?;
        if is_placed && let Some(data) = self.sink.place(self.field, &spec)? {
            self.state = State::Placed;
            return Ok(TensorMut { spec, data });
        }
        self.state = State::Made(Kind::Tensor(spec));
        Ok(TensorMut { spec, data: self.scratch.view_mut(spec.bytes())? })
    }

    /// The value is this text.
    pub fn text(&mut self, text: &str) -> Result<(), StepError> {
        // The text that it is copied from, and the copy.
        self.sink.reserve(self.beside_bytes.saturating_add(2 * text.len()))?;
        self.scratch.view_mut(text.len())?.copy_from_slice(text.as_bytes());
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
            State::Made(kind) => Outcome::Made(Made { scratch: self.scratch, kind }),
            State::Placed => Outcome::Placed(self.scratch),
        };
        (outcome, self.bytes)
    }
}
