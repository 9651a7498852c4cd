//! What a worker does to one sample: unpack it, do the online steps, and keep it for the next epoch where there is a cache.

use std::sync::Arc;

use forebay_codec::TensorSpec;
use forebay_pipeline::{Action, Runner, Sample, SampleView, Sink};

use super::cache::Cache;
use super::supply::{Failed, Payload, Supply};
use super::{LoadOptions, Online};
use crate::error::Error;

pub(super) struct Worker<'a> {
    supply: &'a dyn Supply,
    options: &'a LoadOptions,
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
    pub(super) fn new(online: &Online, options: &'a LoadOptions, supply: &'a dyn Supply) -> Self {
        let cached = options.cache.as_deref().map(|cache| {
            let is_fixed = |action: &Action| !action.is_random() && !matches!(action, Action::Expand(_));
            let fixed = online.steps.iter().take_while(|step| is_fixed(&step.action)).count();
            Cached {
                cache,
                fixed: Runner::new(&online.steps[..fixed], online.first_step),
                rest: Runner::new(&online.steps[fixed..], online.first_step + fixed),
                full: false,
            }
        });
        Self { supply, options, whole: online.runner(), cached }
    }

    /// Does the online steps to a payload; the key of its sample.
    pub(super) fn run(&mut self, payload: Payload, sink: &mut dyn Sink) -> Result<Arc<str>, Failed> {
        let draw = self.options.draw;
        if let (Payload::Cached(sample), Some(cached)) = (&payload, &mut self.cached) {
            let done = cached.rest.run(sample, draw, &mut (), sink);
            return done.map(|()| Arc::clone(&sample.key)).map_err(|error| failed(sample, error));
        }
        let sample = self.supply.unpack(payload)?;
        let done = match &mut self.cached {
            Some(cached) if !cached.full => cached.run_and_keep(&sample, self.options, sink),
            _ => self.whole.run(&sample, draw, &mut (), sink),
        };
        done.map(|()| Arc::clone(&sample.key)).map_err(|error| failed(&sample, error))
    }
}

impl Cached<'_> {
    fn run_and_keep(
        &mut self,
        sample: &Sample,
        options: &LoadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), forebay_pipeline::Error> {
        let mut fixed = Keep(None);
        self.fixed.run(sample, options.draw, &mut (), &mut fixed)?;
        let Some(fixed) = fixed.0 else { return Ok(()) };
        self.rest.run(&fixed, options.draw, &mut (), sink)?;
        if self.cache.reserve(fixed.bytes() as u64) {
            self.cache.keep(fixed);
        } else {
            self.full = true;
        }
        Ok(())
    }
}

fn failed(sample: &Sample, error: forebay_pipeline::Error) -> Failed {
    Failed { key: sample.key.to_string(), error: Box::new(Error::from(error)) }
}

/// Takes a copy of the one sample that comes out.
struct Keep(Option<Sample>);

impl Sink for Keep {
    fn place(&mut self, _field: &str, _spec: &TensorSpec) -> Option<&mut [u8]> {
        None
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        self.0 = Some(sample.to_sample());
    }
}
