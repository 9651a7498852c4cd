//! What a worker does to one sample: unpack it, do the online steps, and keep it for the next epoch where there is a cache.

use std::sync::Arc;

use forebay_codec::TensorSpec;
use forebay_pipeline::{Action, Observer, RngKey, Runner, Sample, SampleView, Sink, StepError};

use super::cache::{Cache, footprint};
use super::epoch::Shared;
use super::prefetch::Payload;
use super::{Online, Steps};
use crate::error::Error;
use crate::source::{Failed, Source};

pub(super) struct Worker<'a> {
    source: &'a dyn Source,
    rng_key: RngKey,
    /// All online steps, of each format.
    whole: Vec<Runner>,
    cached: Option<Cached<'a>>,
}

/// The online steps in two parts, and the cache between them.
struct Cached<'a> {
    cache: &'a Cache,
    online: &'a Online,
    /// How many of the steps always give the same, from the first on.
    fixed: usize,
    keep_bytes: usize,
    /// The steps before and after the cache, once it is known what it keeps.
    parts: Option<[Runner; 2]>,
    /// Nothing more fits: samples that are not in the cache are done in one go.
    full: bool,
}

impl<'a> Worker<'a> {
    /// A worker that keeps up to `keep_bytes` of buffers from sample to sample.
    pub(super) fn new(epoch: &'a Shared, online: &'a Online, keep_bytes: usize) -> Self {
        // Where there is a cache, three runners have to share.
        let keep_bytes = if epoch.cache.is_some() { keep_bytes / 3 } else { keep_bytes };
        let cached = epoch.cache.as_deref().map(|cache| {
            let is_fixed = |action: &Action| !action.is_random() && !action.changes_count();
            let fixed = online.formats[0].steps.iter().take_while(|step| is_fixed(&step.action)).count();
            if fixed == 0 {
                cache.keep_as_stored();
            }
            Cached { cache, online, fixed, keep_bytes, parts: None, full: false }
        });
        let keep_bytes = keep_bytes / online.formats.len().max(1);
        let whole = online.formats.iter().map(|format| format.runner().keeping(keep_bytes)).collect();
        Self { source: &*epoch.source, rng_key: epoch.rng_key, whole, cached }
    }

    /// Does the online steps to sample number `number`; its key.
    pub(super) fn run(&mut self, number: u64, payload: Payload, sink: &mut dyn Sink) -> Result<Arc<str>, Failed> {
        let rng_key = self.rng_key;
        let parts = self.cached.as_mut().and_then(Cached::parts);
        let (sample, unpacking_bytes) = match (payload, parts) {
            (Payload::Cached(sample), Some([_, rest])) => {
                let done = rest.run(&sample, rng_key, &mut (), sink);
                return done.map(|()| Arc::clone(&sample.key)).map_err(|error| failed(&sample, error));
            }
            (Payload::Cached(sample), None) => {
                return Err(Failed::new(&*sample.key, Error::internal("a sample was kept before it was known how")));
            }
            (Payload::Content(content), _) => {
                let bytes = self.source.unpacking_bytes(number) as usize;
                if bytes > 0 {
                    sink.reserve(bytes).map_err(|source| self.refused(number, source))?;
                }
                (self.source.unpack(number, content)?, bytes)
            }
            (Payload::Failed(failed), _) => return Err(failed),
        };
        let sink = &mut Beside { sink, bytes: unpacking_bytes };
        let whole = &mut self.whole[self.source.format_of(number)];
        let done = match &mut self.cached {
            Some(cached) if !cached.full => cached.run_and_keep(number, &sample, rng_key, sink),
            _ => Ok(false),
        };
        let done = done.and_then(|done| if done { Ok(()) } else { whole.run(&sample, rng_key, &mut (), sink) });
        done.map(|()| Arc::clone(&sample.key)).map_err(|error| failed(&sample, error))
    }

    fn refused(&self, number: u64, source: StepError) -> Failed {
        let key = self.source.key(number);
        let error =
            forebay_pipeline::Error::Step { key: key.clone(), step: "unpack".to_owned(), source: Box::new(source) };
        Failed::new(key, Error::from(error))
    }
}

impl Cached<'_> {
    fn parts(&mut self) -> Option<&mut [Runner; 2]> {
        if self.parts.is_none() {
            let steps = self.cache.choice()?.steps;
            let Steps { steps: all, first_step: first } = &self.online.formats[0];
            let (before, after) = all.split_at(steps);
            self.parts = Some(
                [Runner::new(before, *first), Runner::new(after, first.wrapping_add(steps))]
                    .map(|runner| runner.keeping(self.keep_bytes)),
            );
        }
        self.parts.as_mut()
    }

    /// Does the steps and keeps the sample in between; whether it was done.
    fn run_and_keep(
        &mut self,
        number: u64,
        sample: &Sample,
        rng_key: RngKey,
        sink: &mut dyn Sink,
    ) -> Result<bool, forebay_pipeline::Error> {
        let Some([before, after]) = self.parts() else { return self.try_out(number, sample, rng_key, sink) };
        let Some(kept) = kept_after(before, sample, rng_key, &mut (), sink)? else { return Ok(true) };
        after.run(&kept, rng_key, &mut (), &mut Beside { sink, bytes: kept.bytes() })?;
        if self.cache.reserve(footprint(&kept)) {
            self.cache.keep(number, kept);
        } else {
            self.full = true;
        }
        Ok(true)
    }

    /// Does the steps one by one, to see how large the sample is after each; whether it was done. Where that takes too much memory, nothing was.
    fn try_out(
        &mut self,
        number: u64,
        sample: &Sample,
        rng_key: RngKey,
        sink: &mut dyn Sink,
    ) -> Result<bool, forebay_pipeline::Error> {
        let Steps { steps, first_step } = &self.online.formats[0];
        let (before, after) = steps.split_at(self.fixed);
        let mut sizes = Sizes(vec![sample.bytes()]);
        let mut one_by_one = Runner::step_by_step(before, *first_step);
        let processed = match kept_after(&mut one_by_one, sample, rng_key, &mut sizes, sink) {
            Ok(Some(processed)) => processed,
            Ok(None) => return Ok(true),
            Err(forebay_pipeline::Error::Step { source, .. }) if matches!(*source, StepError::Budget { .. }) => {
                self.cache.note_failed();
                return Ok(false);
            }
            Err(error) => {
                self.cache.note_failed();
                return Err(error);
            }
        };
        let mut beside = Beside { sink, bytes: processed.bytes() };
        Runner::new(after, first_step.wrapping_add(self.fixed)).run(&processed, rng_key, &mut (), &mut beside)?;
        match kept_after(&mut Runner::new(&[], 0), sample, rng_key, &mut (), &mut beside) {
            Ok(Some(stored)) => self.cache.note_tried(number, &sizes.0, stored, processed),
            _ => self.cache.note_failed(),
        }
        Ok(true)
    }
}

/// A copy of what `runner` makes of a sample.
fn kept_after(
    runner: &mut Runner,
    sample: &Sample,
    rng_key: RngKey,
    observer: &mut dyn Observer,
    sink: &mut dyn Sink,
) -> Result<Option<Sample>, forebay_pipeline::Error> {
    let mut keep = Keep { sink, bytes: 0, kept: None, refused: None };
    runner.run(sample, rng_key, observer, &mut keep)?;
    match keep.refused {
        None => Ok(keep.kept),
        Some(source) => {
            let (key, step) = (sample.key.to_string(), "cache".to_owned());
            Err(forebay_pipeline::Error::Step { key, step, source: Box::new(source) })
        }
    }
}

/// Notes how large a sample is after each step.
struct Sizes(Vec<usize>);

impl Observer for Sizes {
    fn sample(&mut self, bytes: &dyn Fn() -> usize) {
        self.0.push(bytes());
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

    fn has_slots(&self) -> bool {
        self.sink.has_slots()
    }

    fn slot(&mut self, field: &str, spec: &TensorSpec) -> Result<Option<&mut [u8]>, StepError> {
        self.sink.slot(field, spec)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        self.sink.accept(sample);
    }
}
