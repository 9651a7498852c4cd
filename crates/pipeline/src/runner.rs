//! The runner: does a stretch of steps to one sample after another.
//!
//! Each worker owns one. Tensors between two steps live in scratch buffers that are used again for the next sample, and
//! the last step of each field writes where the [`Sink`] says, so a sample goes from its bytes to its place in a batch
//! without an allocation and without a copy.

use std::sync::Arc;

use forebay_codec::{TensorMut, TensorSpec, TensorView};

use crate::error::{Error, Result, StepError};
use crate::fuse::{Stage, fused, one_by_one};
use crate::sample::{Sample, SampleView, Value, ValueView};
use crate::scope::{Draw, Scope};
use crate::step::{Action, Step, Transform};

/// Where finished samples go.
pub trait Sink {
    /// The place for the final tensor of `field`, exactly `spec.bytes()` long, or `None` to get it through
    /// [`Sink::accept`].
    fn place(&mut self, field: &str, spec: &TensorSpec) -> Option<&mut [u8]>;

    /// Takes a finished sample: all fields that were not placed.
    fn accept(&mut self, sample: SampleView<'_>);
}

/// Sees each step begin and end. This room has no clock, so whoever measures brings one.
pub trait Observer {
    /// A step is about to start.
    fn begin(&mut self) {}

    /// Step number `step` of the pipeline ended, and gave `bytes`.
    fn end(&mut self, step: usize, bytes: usize) {
        let _ = (step, bytes);
    }
}

/// Observes nothing.
impl Observer for () {}

/// Does a stretch of steps to one sample after another.
pub struct Runner {
    /// Shared, so that a stage can be held while the rest of the runner changes.
    stages: Arc<[Stage]>,
    scope: Scope,
    spare: Vec<Scratch>,
}

/// A reusable buffer, aligned for every element type.
#[derive(Default)]
struct Scratch {
    words: Vec<u64>,
}

impl Scratch {
    fn view(&self, bytes: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..bytes]
    }

    fn view_mut(&mut self, bytes: usize) -> &mut [u8] {
        let words = bytes.div_ceil(size_of::<u64>());
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        &mut bytemuck::cast_slice_mut(&mut self.words)[..bytes]
    }
}

/// The most bytes that a tensor may have on its way: a step that makes more of a picture is a mistake.
const TENSOR_BYTES_MAX: usize = 1 << 32;

/// What a field is while its sample is on its way through the steps.
enum Held<'a> {
    Given(&'a Value),
    Made(Scratch, TensorSpec),
    Placed,
}

impl Held<'_> {
    fn view(&self) -> Option<ValueView<'_>> {
        match self {
            Self::Given(value) => Some(value.view()),
            Self::Made(scratch, spec) => {
                Some(ValueView::Tensor(TensorView { spec: *spec, data: scratch.view(spec.bytes()) }))
            }
            Self::Placed => None,
        }
    }
}

impl Runner {
    /// A runner of `steps`, the first of which is step number `first_step` of its pipeline. (The number, not the place in
    /// this stretch, seeds a random step: a crop is the same wherever the pipeline is split.)
    ///
    /// Neighbouring steps that give the same pixels for less work when done as one are done as one.
    pub fn new(steps: &[Step], first_step: usize) -> Self {
        Self::of_stages(fused(steps, first_step))
    }

    /// A runner that does every step by itself, so that an [`Observer`] sees the cost of each.
    pub fn step_by_step(steps: &[Step], first_step: usize) -> Self {
        Self::of_stages(one_by_one(steps, first_step))
    }

    fn of_stages(stages: Vec<Stage>) -> Self {
        Self { stages: stages.into(), scope: Scope::new(), spare: Vec::new() }
    }

    /// Does the steps to `sample` and hands what comes out (one sample, unless a step expands) to `sink`.
    pub fn run(&mut self, sample: &Sample, draw: Draw, observer: &mut dyn Observer, sink: &mut dyn Sink) -> Result<()> {
        self.run_from(0, sample, draw, observer, sink)
    }

    fn run_from(
        &mut self,
        start: usize,
        sample: &Sample,
        draw: Draw,
        observer: &mut dyn Observer,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut held: Vec<(&str, Held<'_>)> =
            sample.fields.iter().map(|field| (&*field.name, Held::Given(&field.value))).collect();
        let stages = Arc::clone(&self.stages);
        self.scope.begin_sample(draw, sample.index);
        for (place, Stage { number, step }) in stages.iter().enumerate().skip(start) {
            let fail = |source| {
                let source = Box::new(source);
                Error::Step { key: sample.key.to_string(), step: step.name.clone(), source }
            };
            observer.begin();
            match &step.action {
                Action::Transform(transform) => {
                    let mut bytes = 0;
                    for field in &step.fields {
                        self.scope.begin_step(*number);
                        let last = self.is_last_for(place, field);
                        bytes += self.transform(&**transform, field, &mut held, last, sink).map_err(fail)?;
                    }
                    observer.end(*number, bytes);
                }
                Action::Expand(expand) => {
                    let whole = view_of(sample, &held, |view| view.to_sample());
                    let mut parts = Vec::new();
                    for field in &step.fields {
                        expand.expand(&whole, field, &mut |part| parts.push(part)).map_err(fail)?;
                    }
                    observer.end(*number, parts.iter().map(Sample::bytes).sum());
                    self.recycle(held);
                    return parts.iter().try_for_each(|part| self.run_from(place + 1, part, draw, observer, sink));
                }
            }
        }
        view_of(sample, &held, |view| sink.accept(view));
        self.recycle(held);
        Ok(())
    }

    /// Whether no later step touches `field`, so that its tensor is final.
    fn is_last_for(&self, place: usize, field: &str) -> bool {
        let mut later = self.stages[place + 1..].iter();
        !later.any(|Stage { step, .. }| {
            matches!(step.action, Action::Expand(_)) || step.fields.iter().any(|name| name == field)
        })
    }

    fn transform(
        &mut self,
        transform: &dyn Transform,
        field: &str,
        held: &mut [(&str, Held<'_>)],
        last: bool,
        sink: &mut dyn Sink,
    ) -> Result<usize, StepError> {
        let no_field = || StepError::NoField { field: field.to_owned() };
        let (_, held) = held.iter_mut().find(|(name, _)| *name == field).ok_or_else(no_field)?;
        let input = held.view().ok_or_else(no_field)?;
        let spec = transform.output_spec(input, &mut self.scope)?;
        if spec.bytes() > TENSOR_BYTES_MAX {
            return Err(StepError::TooLarge { found: spec, limit_bytes: TENSOR_BYTES_MAX });
        }
        if last && let Some(data) = sink.place(field, &spec) {
            transform.run(input, TensorMut { spec, data }, &mut self.scope)?;
            self.replace(held, Held::Placed);
        } else {
            let mut scratch = self.spare.pop().unwrap_or_default();
            transform.run(input, TensorMut { spec, data: scratch.view_mut(spec.bytes()) }, &mut self.scope)?;
            self.replace(held, Held::Made(scratch, spec));
        }
        Ok(spec.bytes())
    }

    fn replace<'a>(&mut self, held: &mut Held<'a>, next: Held<'a>) {
        if let Held::Made(scratch, _) = std::mem::replace(held, next) {
            self.spare.push(scratch);
        }
    }

    fn recycle(&mut self, held: Vec<(&str, Held<'_>)>) {
        self.spare.extend(held.into_iter().filter_map(|(_, held)| match held {
            Held::Made(scratch, _) => Some(scratch),
            _ => None,
        }));
    }
}

fn view_of<T>(sample: &Sample, held: &[(&str, Held<'_>)], then: impl FnOnce(SampleView<'_>) -> T) -> T {
    let fields: Vec<(&str, ValueView<'_>)> =
        held.iter().filter_map(|(name, held)| held.view().map(|view| (*name, view))).collect();
    then(SampleView { key: &sample.key, index: sample.index, fields: &fields })
}
