//! The runner: does an extent of steps to one sample after another.
//!
//! Each worker owns one. Tensors between two steps live in buffers that are used again for the next sample, and
//! the last step of each field writes where the [`Sink`] says, so a sample goes from its bytes to its slot in a batch
//! without an allocation and without a copy.

use std::sync::Arc;

use forebay_codec::TensorSpec;

use crate::error::{Error, Result, StepError};
use crate::fuse::{Fused, fused, one_by_one};
use crate::output::{Buffer, Made, Outcome, Output};
use crate::sample::{Sample, SampleView, Value, ValueView};
use crate::sample_changes::{Change, SampleChanges};
use crate::scope::{RngKey, Scope, Scratch};
use crate::step::{Action, Parts, SampleTransform, ShardState, ShardTransform, Step, Transform};

/// Where finished samples go.
pub trait Sink {
    /// Asked before the sample takes memory whose size a file decides: `bytes` is what all of its buffers take from then
    /// on, what a step works in included, but not its input, nor what has a slot. May wait for memory; an error where
    /// there will never be so much. Not watched over unless a sink does.
    fn reserve(&mut self, bytes: usize) -> Result<(), StepError> {
        let _ = bytes;
        Ok(())
    }

    /// Whether it has slots for final tensors. If not, [`Sink::slot`] is never asked.
    fn has_slots(&self) -> bool {
        false
    }

    /// The slot for the final tensor of `field`, exactly `spec.bytes()` long, or `None` to get it through
    /// [`Sink::accept`].
    fn slot(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        let _ = (field, spec);
        Ok(None)
    }

    /// Takes a finished sample: all fields that were not written into slots.
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

    /// The same step ended, and the sample has so many bytes then, all of its fields together that were not written into slots.
    fn sample(&mut self, bytes: &dyn Fn() -> usize) {
        let _ = bytes;
    }
}

/// Observes nothing.
impl Observer for () {}

/// Does an extent of steps to one sample after another.
pub struct Runner {
    /// Shared, so that a step can be held while the rest of the runner changes.
    fused_steps: Arc<[Fused]>,
    scope: Scope,
    spare: Vec<Buffer>,
    /// The same of samples that steps make of others.
    spare_parts: Vec<Vec<u8>>,
    keep_bytes_max: usize,
    /// What steps that work on whole shards hold of this one, each with the index of its step.
    shard: Vec<(usize, Box<dyn ShardState>)>,
}

/// So much of its buffers a runner keeps for the next sample, unless told otherwise: more than nearly every picture needs, and
/// little enough that one huge picture is not paid for ever after.
const KEEP_BYTES_MAX: usize = 64 << 20;

/// What a field is while its sample is on its way through the steps.
enum Held<'a> {
    Given(&'a Value),
    Made(Made),
    InSlot,
}

impl Held<'_> {
    fn view(&self) -> Option<ValueView<'_>> {
        match self {
            Self::Given(value) => Some(value.view()),
            Self::Made(made) => Some(made.view()),
            Self::InSlot => None,
        }
    }
}

/// The fields of a sample on its way.
type Fields<'a> = Vec<(Arc<str>, Held<'a>)>;

impl Runner {
    /// A runner of `steps`, the first of which is step number `first_step` of its pipeline. (The number, not the index in
    /// this extent, seeds a random step: a crop is the same wherever the pipeline is split.)
    ///
    /// Neighboring steps that give the same pixels for less work when done as one are done as one.
    pub fn new(steps: &[Step], first_step: usize) -> Self {
        Self::of_fused(fused(steps, first_step))
    }

    /// A runner that does every step by itself, so that an [`Observer`] sees the cost of each.
    pub fn step_by_step(steps: &[Step], first_step: usize) -> Self {
        Self::of_fused(one_by_one(steps, first_step))
    }

    fn of_fused(fused_steps: Vec<Fused>) -> Self {
        let (scope, spare, spare_parts, shard) = (Scope::new(), Vec::new(), Vec::new(), Vec::new());
        Self { fused_steps: fused_steps.into(), scope, spare, spare_parts, keep_bytes_max: KEEP_BYTES_MAX, shard }
    }

    /// The same, except that it keeps at most `bytes_max` of its buffers from one sample to the next.
    #[must_use]
    pub fn keeping(mut self, bytes_max: usize) -> Self {
        self.keep_bytes_max = bytes_max;
        self
    }

    /// Does the steps to `sample` and hands what comes out (one sample, unless a step expands) to `sink`.
    pub fn run(
        &mut self,
        sample: &Sample,
        rng_key: RngKey,
        observer: &mut dyn Observer,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let done = self.run_from(0, sample, rng_key, observer, sink);
        self.trim();
        done
    }

    /// A shard begins: what steps hold of another one is forgotten.
    pub fn begin_shard(&mut self) {
        self.shard.clear();
    }

    /// The shard ends: steps that work on whole shards give what they still hold, and what comes of it goes to `sink`.
    pub fn end_shard(&mut self, rng_key: RngKey, observer: &mut dyn Observer, sink: &mut dyn Sink) -> Result<()> {
        let fused_steps = Arc::clone(&self.fused_steps);
        for (index, Fused { step, .. }) in fused_steps.iter().enumerate() {
            let Some(found) = self.shard.iter().position(|(of, _)| *of == index) else { continue };
            let (_, mut state) = self.shard.swap_remove(found);
            let mut parts = Vec::new();
            let reserve = &mut |bytes: usize| sink.reserve(bytes);
            let emit = &mut |part| parts.push(part);
            let done = state.finish(&step.fields, &mut Parts { reserve, emit, spare: &mut Vec::new() });
            done.map_err(|source| {
                let source = Box::new(source);
                Error::Step { key: "the end of a shard".to_owned(), step: step.name.clone(), source }
            })?;
            parts.iter().try_for_each(|part| self.run_from(index + 1, part, rng_key, observer, sink))?;
        }
        self.trim();
        Ok(())
    }

    /// How many bytes steps hold of this shard.
    pub fn shard_bytes(&self) -> usize {
        self.shard.iter().map(|(_, state)| state.bytes()).sum()
    }

    /// Gives buffers back that take more than may be kept.
    fn trim(&mut self) {
        let spare: usize = self.spare.iter().map(Buffer::capacity_bytes).sum();
        let spare_parts: usize = self.spare_parts.iter().map(Vec::capacity).sum();
        if spare + spare_parts + self.scope.capacity_bytes() > self.keep_bytes_max {
            self.spare.clear();
            self.spare_parts.clear();
            self.scope.trim();
        }
    }

    fn run_from(
        &mut self,
        start: usize,
        sample: &Sample,
        rng_key: RngKey,
        observer: &mut dyn Observer,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut held: Fields<'_> =
            sample.fields.iter().map(|field| (Arc::clone(&field.name), Held::Given(&field.value))).collect();
        let fused_steps = Arc::clone(&self.fused_steps);
        self.scope.begin_sample(rng_key, sample.index);
        for (index, Fused { number, step }) in fused_steps.iter().enumerate().skip(start) {
            let fail = |source| {
                let source = Box::new(source);
                Error::Step { key: sample.key.to_string(), step: step.name.clone(), source }
            };
            observer.begin();
            let bytes = match &step.action {
                Action::Transform(transform) => {
                    self.scope.begin_fields();
                    let mut bytes = 0;
                    for field in &step.fields {
                        self.scope.begin_step(*number);
                        bytes += self.make(index, &**transform, field, &mut held, sink).map_err(fail)?;
                    }
                    bytes
                }
                Action::SampleTransform(transform) => {
                    self.scope.begin_step(*number);
                    self.transform_sample(index, &**transform, sample, &mut held, sink).map_err(fail)?
                }
                // Whoever puts batches together does it.
                Action::BatchTransform(_) => 0,
                Action::ShardTransform(pack) => {
                    let parts = self.pack(index, &**pack, sample, &held, sink).map_err(fail)?;
                    observer.end(*number, parts.iter().map(Sample::bytes).sum());
                    self.recycle(held);
                    return parts.iter().try_for_each(|part| self.run_from(index + 1, part, rng_key, observer, sink));
                }
                Action::FlatMap(flat_map) => {
                    let held_bytes = held_bytes(&held);
                    let given = sample.bytes();
                    let beside = held_bytes.saturating_mul(2).saturating_add(given);
                    sink.reserve(beside).map_err(fail)?;
                    let whole = view_of(sample, &held, |view| view.to_sample()).map_err(fail)?;
                    let (mut parts, mut asked) = (Vec::new(), beside);
                    let reserve = &mut |bytes: usize| {
                        asked = asked.saturating_add(bytes);
                        sink.reserve(asked)
                    };
                    let emit = &mut |part| parts.push(part);
                    let spare = &mut self.spare_parts;
                    flat_map.flat_map(&whole, &step.fields, &mut Parts { reserve, emit, spare }).map_err(fail)?;
                    observer.end(*number, parts.iter().map(Sample::bytes).sum());
                    self.recycle(held);
                    let run = |part| self.run_from(index + 1, part, rng_key, observer, sink);
                    let done = parts.iter().try_for_each(run);
                    self.recycle_parts(parts, step.fields.first().map_or("", String::as_str));
                    return done;
                }
            };
            observer.end(*number, bytes);
            observer.sample(&|| held.iter().filter_map(|(_, held)| held.view()).map(ValueView::bytes).sum());
        }
        view_of(sample, &held, |view| sink.accept(view));
        self.recycle(held);
        Ok(())
    }

    /// Whether no later step touches `field`, so that its value is final.
    fn is_last_for(&self, index: usize, field: &str) -> bool {
        let mut later = self.fused_steps[index + 1..].iter();
        !later.any(|Fused { step, .. }| {
            step.action.changes_count()
                || matches!(step.action, Action::SampleTransform(_))
                || !matches!(step.action, Action::BatchTransform(_)) && step.fields.iter().any(|name| name == field)
        })
    }

    /// Does a step to one field; how many bytes it gave.
    fn make(
        &mut self,
        index: usize,
        transform: &dyn Transform,
        field: &str,
        held: &mut Fields<'_>,
        sink: &mut dyn Sink,
    ) -> Result<usize, StepError> {
        let no_field = || StepError::NoField { field: field.to_owned() };
        let beside = held_bytes(held);
        let (_, held) = held.iter_mut().find(|(name, _)| &**name == field).ok_or_else(no_field)?;
        let input = held.view().ok_or_else(no_field)?;
        let buffer = self.spare.pop().unwrap_or_default();
        let mut output = Output::within_sample(field, sink, self.is_last_for(index, field), buffer, beside);
        transform.run(input, &mut output, &mut self.scope)?;
        let (outcome, bytes) = output.finish();
        let next = self.held(outcome).ok_or_else(no_field)?;
        self.replace(held, next);
        Ok(bytes)
    }

    /// Does a step to the whole sample; how many bytes it gave.
    fn transform_sample(
        &mut self,
        index: usize,
        transform: &dyn SampleTransform,
        sample: &Sample,
        held: &mut Fields<'_>,
        sink: &mut dyn Sink,
    ) -> Result<usize, StepError> {
        let fused_steps = Arc::clone(&self.fused_steps);
        let fields = &fused_steps[index].step.fields;
        let mut spare = std::mem::take(&mut self.spare);
        let mut scope = std::mem::take(&mut self.scope);
        let is_last = |field: &str| self.is_last_for(index, field);
        let mut changes = SampleChanges::new(sink, &mut spare, &is_last, held_bytes(held));
        let done = view_of(sample, held, |view| transform.run(fields, &view, &mut changes, &mut scope));
        let (changes, bytes) = changes.finish();
        (self.spare, self.scope) = (spare, scope);
        done?;
        for (field, change) in changes {
            match change {
                Change::Removed => held.retain(|(name, _)| *name != field),
                Change::Set(outcome) => {
                    let next = self.held(outcome).ok_or_else(|| StepError::NoField { field: field.to_string() })?;
                    match held.iter_mut().find(|(name, _)| *name == field) {
                        Some((_, held)) => self.replace(held, next),
                        None => held.push((field, next)),
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// Gives a sample to a step that works on whole shards; the samples that come of it.
    fn pack(
        &mut self,
        index: usize,
        pack: &dyn ShardTransform,
        sample: &Sample,
        held: &Fields<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Sample>, StepError> {
        let found = self.shard.iter().position(|(of, _)| *of == index).unwrap_or_else(|| {
            self.shard.push((index, pack.begin()));
            self.shard.len() - 1
        });
        let (mut parts, mut asked) = (Vec::new(), held_bytes(held).saturating_add(sample.bytes()));
        let reserve = &mut |bytes: usize| {
            asked = asked.saturating_add(bytes);
            sink.reserve(asked)
        };
        let fused_steps = Arc::clone(&self.fused_steps);
        let fields = &fused_steps[index].step.fields;
        let state = &mut self.shard[found].1;
        let mut taken = Parts { reserve, emit: &mut |part| parts.push(part), spare: &mut Vec::new() };
        view_of(sample, held, |view| state.push(fields, &view, &mut taken))?;
        Ok(parts)
    }

    /// What a field is after a step; `None` if the step made nothing.
    fn held<'a>(&mut self, outcome: Outcome) -> Option<Held<'a>> {
        match outcome {
            Outcome::Made(made) => Some(Held::Made(made)),
            Outcome::InSlot(buffer) => {
                self.spare.push(buffer);
                Some(Held::InSlot)
            }
            Outcome::Nothing => None,
        }
    }

    fn replace<'a>(&mut self, held: &mut Held<'a>, next: Held<'a>) {
        if let Held::Made(made) = std::mem::replace(held, next) {
            self.spare.push(made.into_buffer());
        }
    }

    fn recycle(&mut self, held: Fields<'_>) {
        self.spare.extend(held.into_iter().filter_map(|(_, held)| match held {
            Held::Made(made) => Some(made.into_buffer()),
            _ => None,
        }));
    }
}

impl Runner {
    /// Takes the buffers of samples that are through, of the field that a step made them of, if nobody holds them: the next ones are made in
    /// them, where the C library would give so much memory back to the system and ask for it again each time.
    fn recycle_parts(&mut self, parts: Vec<Sample>, name: &str) {
        for field in parts.into_iter().flat_map(|part| part.fields) {
            if *field.name == *name
                && let Value::Tensor(tensor) = field.value
                && let Ok(data) = tensor.into_data().try_into_mut()
            {
                self.spare_parts.push(data.into());
            }
        }
    }
}

/// How many bytes the values have that were made so far.
fn held_bytes(held: &Fields<'_>) -> usize {
    let made = held.iter().map(|(_, held)| if let Held::Made(made) = held { made.bytes() } else { 0 });
    made.sum()
}

fn view_of<T>(sample: &Sample, held: &Fields<'_>, then: impl FnOnce(SampleView<'_>) -> T) -> T {
    let fields: Vec<(&str, ValueView<'_>)> =
        held.iter().filter_map(|(name, held)| held.view().map(|view| (&**name, view))).collect();
    then(SampleView { key: &sample.key, index: sample.index, fields: &fields })
}
