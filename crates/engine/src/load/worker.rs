//! What a worker does to one sample: unpack it, do the online steps, and keep it for the next epoch where there is a cache.

use std::sync::Arc;

use forebay_codec::TensorSpec;
use forebay_pipeline::{Action, Draw, Runner, Sample, SampleView, Sink, StepError};

use super::Online;
use super::cache::Cache;
use super::epoch::Shared;
use super::staging::Payload;
use crate::error::Error;
use crate::source::{Failed, Source};

pub(super) struct Worker<'a> {
    source: &'a dyn Source,
    draw: Draw,
    /// All online steps.
    whole: Runner,
    cached: Option<Cached<'a>>,
}

/// The online steps in two parts, and the cache between them.
struct Cached<'a> {
    cache: &'a Cache,
    /// The steps that always give the same.
    fixed: Runner,
    /// From the first random step on.
    rest: Runner,
    /// Nothing more fits: samples that are not in the cache are done in one go.
    full: bool,
}

impl<'a> Worker<'a> {
    /// A worker that keeps up to `keep_bytes` of buffers from sample to sample.
    pub(super) fn new(epoch: &'a Shared, online: &Online, keep_bytes: usize) -> Self {
        // Where there is a cache, three runners have to share.
        let keep_bytes = if epoch.cache.is_some() { keep_bytes / 3 } else { keep_bytes };
        let cached = epoch.cache.as_deref().map(|cache| {
            let is_fixed = |action: &Action| !action.is_random() && !matches!(action, Action::Expand(_));
            let fixed = online.steps.iter().take_while(|step| is_fixed(&step.action)).count();
            Cached {
                cache,
                fixed: Runner::new(&online.steps[..fixed], online.first_step).keeping(keep_bytes),
                rest: Runner::new(&online.steps[fixed..], online.first_step + fixed).keeping(keep_bytes),
                full: false,
            }
        });
        let whole = online.runner().keeping(keep_bytes);
        Self { source: &*epoch.source, draw: epoch.draw, whole, cached }
    }

    /// Does the online steps to sample number `number`; its key.
    pub(super) fn run(&mut self, number: u64, payload: Payload, sink: &mut dyn Sink) -> Result<Arc<str>, Failed> {
        let draw = self.draw;
        let sample = match (payload, &mut self.cached) {
            (Payload::Cached(sample), Some(cached)) => {
                let done = cached.rest.run(&sample, draw, &mut (), sink);
                return done.map(|()| Arc::clone(&sample.key)).map_err(|error| failed(&sample, error));
            }
            (Payload::Cached(sample), None) => Arc::unwrap_or_clone(sample),
            (Payload::Content(content), _) => self.source.unpack(number, content)?,
            (Payload::Failed(failed), _) => return Err(failed),
        };
        let done = match &mut self.cached {
            Some(cached) if !cached.full => cached.run_and_keep(number, &sample, draw, sink),
            _ => self.whole.run(&sample, draw, &mut (), sink),
        };
        done.map(|()| Arc::clone(&sample.key)).map_err(|error| failed(&sample, error))
    }
}

impl Cached<'_> {
    fn run_and_keep(
        &mut self,
        number: u64,
        sample: &Sample,
        draw: Draw,
        sink: &mut dyn Sink,
    ) -> Result<(), forebay_pipeline::Error> {
        let mut keep = Keep { sink: &mut *sink, bytes: 0, kept: None, refused: None };
        self.fixed.run(sample, draw, &mut (), &mut keep)?;
        let (kept, refused) = (keep.kept, keep.refused);
        if let Some(source) = refused {
            let (key, step) = (sample.key.to_string(), "cache".to_owned());
            return Err(forebay_pipeline::Error::Step { key, step, source: Box::new(source) });
        }
        let Some(fixed) = kept else { return Ok(()) };
        self.rest.run(&fixed, draw, &mut (), &mut Beside { sink, bytes: fixed.bytes() })?;
        if self.cache.reserve(fixed.bytes() as u64) {
            self.cache.keep(number, fixed);
        } else {
            self.full = true;
        }
        Ok(())
    }
}

fn failed(sample: &Sample, error: forebay_pipeline::Error) -> Failed {
    Failed::new(&*sample.key, Error::from(error))
}

/// Takes a copy of the one sample that comes out. Memory is asked for where the whole work's is.
struct Keep<'a> {
    sink: &'a mut dyn Sink,
    /// What the steps take.
    bytes: usize,
    kept: Option<Sample>,
    refused: Option<StepError>,
}

impl Sink for Keep<'_> {
    fn reserve(&mut self, bytes: usize) -> Result<(), StepError> {
        self.bytes = bytes;
        self.sink.reserve(bytes)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        let copy: usize = sample.fields.iter().map(|(_, value)| value.bytes()).sum();
        match self.sink.reserve(self.bytes.saturating_add(copy)).and_then(|()| sample.to_sample()) {
            Ok(sample) => self.kept = Some(sample),
            Err(error) => self.refused = Some(error),
        }
    }
}

/// The sink of the work on a sample that takes `bytes` by itself.
struct Beside<'a> {
    sink: &'a mut dyn Sink,
    bytes: usize,
}

impl Sink for Beside<'_> {
    fn reserve(&mut self, bytes: usize) -> Result<(), StepError> {
        self.sink.reserve(self.bytes.saturating_add(bytes))
    }

    fn places(&self) -> bool {
        self.sink.places()
    }

    fn place(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        self.sink.place(field, spec)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        self.sink.accept(sample);
    }
}
