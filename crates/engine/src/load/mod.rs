//! Loading: the online part of a strategy, as a stream of batches.
//!
//! ```text
//! Source ─ blocks ─> Sampler ── readers ──> prefetch ── workers ──> batcher ──> batches
//!         (order, deal: whose and when)  bytes   (in order)   samples   (in place, in order)
//! ```
//!
//! A [`Loader`] is a [`Source`] and how to load it; [`Loader::start`] begins an [`Epoch`], or goes on with one from
//! a [`State`]. Readers only read, workers only compute, so storage and processor are busy at the same time. Both ends push
//! back: readers wait when enough is staged, workers wait when enough batches are ready, and both where the memory budget
//! is used up ([`crate::memory`]). Dropping the epoch stops and joins every thread.

mod activity;
mod batch;
mod batch_steps;
mod batcher;
mod cache;
mod collator;
mod contents;
mod deal;
mod epoch;
mod ids;
mod liquid;
mod loader;
#[cfg(test)]
mod model;
mod order;
mod pad;
mod policy;
mod pool;
mod prefetch;
mod sampler;
mod sampling;
mod state;
mod worker;

use forebay_pipeline::{Action, DeviceDecoding, Pipeline, Runner, Schema, Step, Strategy};

use crate::data::Skipped;
use crate::error::{Error, Result};
use crate::source::Source;

pub use batch::{Batch, Column, Recycler};
pub use cache::{Cache, Cached, CachedStage};
pub use deal::Even;
pub(crate) use epoch::readers;
pub use epoch::{Epoch, Next};
pub use loader::{LoadOptions, Loader};
pub use order::{STREAMS, Shuffle, WINDOW_BYTES};
pub use policy::CachePolicy;
pub(crate) use pool::Idle;
pub(crate) use sampler::in_order;
pub use sampling::{Sampling, Shares};
pub use state::State;

pub use forebay_plan::Stats;

/// What happens to a sample that cannot be read or processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It ends the work with an error that names it.
    #[default]
    Fail,
    /// It is left out, counted and listed. The batch it would have been in is that much smaller.
    Skip,
}

/// The online part of a strategy, or of several where samples are kept in several formats: steps, their number in the pipeline, and what comes
/// out of all of them.
#[derive(Debug, Clone)]
pub struct Online {
    formats: Vec<Steps>,
    output: Schema,
}

/// The steps that are done to samples of one format.
#[derive(Debug, Clone)]
struct Steps {
    steps: Vec<Step>,
    first_step: usize,
}

impl Steps {
    fn runner(&self) -> Runner {
        Runner::new(&self.steps, self.first_step)
    }
}

impl Online {
    /// What `strategy` leaves to do of `pipeline`.
    pub fn after(pipeline: &Pipeline, strategy: &Strategy) -> Self {
        let (steps, first_step) = strategy.online(pipeline);
        Self { formats: vec![Steps { steps, first_step }], output: pipeline.output().clone() }
    }

    /// What each format of `source` leaves to do of its pipeline, as `bind` gives it: with functions that only the caller has, say.
    pub fn of(source: &dyn Source, bind: impl Fn(&Pipeline) -> Pipeline) -> Self {
        let steps = |(pipeline, strategy): (&Pipeline, &Strategy)| {
            let (steps, first_step) = strategy.online(&bind(pipeline));
            Steps { steps, first_step }
        };
        let formats = source.pipelines().into_iter().zip(source.strategies()).map(steps).collect();
        Self { formats, output: source.pipeline().output().clone() }
    }

    /// What a device leaves to the loader of the pipeline of `source`, which is one of one format, as `bind` gives it; and what the device does.
    pub fn on_device(source: &dyn Source, bind: impl Fn(&Pipeline) -> Pipeline) -> Result<(Self, Vec<DeviceDecoding>)> {
        if source.strategies().len() > 1 {
            return Err(Error::Usage {
                problem: "samples that are kept in several formats cannot be decoded on a GPU".to_owned(),
                remedy: "load one data set, all of whose images are kept as L3".to_owned(),
            });
        }
        let shared = source.strategy().on_device(&bind(source.pipeline()))?;
        let steps = Steps { steps: shared.steps, first_step: shared.first_step };
        Ok((Self { formats: vec![steps], output: shared.output }, shared.decodings))
    }

    /// What `strategy` leaves to do of `pipeline` where pictures are unpacked already.
    pub(crate) fn after_unpacking(pipeline: &Pipeline, strategy: &Strategy) -> Self {
        let first_step = strategy.split.offline_steps();
        let steps = Steps { steps: pipeline.steps()[first_step..].to_vec(), first_step };
        Self { formats: vec![steps], output: pipeline.output().clone() }
    }

    /// What one worker does them with, to samples of the first format.
    pub(crate) fn runner(&self) -> Runner {
        self.formats[0].runner()
    }

    /// The steps of all formats.
    fn steps(&self) -> Vec<Step> {
        self.formats.iter().flat_map(|format| format.steps.clone()).collect()
    }
}

/// The error of work that is to fail at damage, on data that was opened to leave it out.
pub(crate) fn damage_kept(first: &Skipped) -> Error {
    Error::Usage {
        problem: format!(
            "the data were opened so that damage is skipped, and are to be used so that it fails: {}",
            first.reason
        ),
        remedy: "pass the same `on_error` to both".to_owned(),
    }
}

/// Refuses steps that work on whole shards: they are done once, by a build, so that what they make does not depend on who loads it.
pub(crate) fn check_packed(source: &dyn Source) -> Result<()> {
    let formats = source.pipelines().into_iter().zip(source.strategies());
    let mut left = formats.flat_map(|(pipeline, strategy)| &pipeline.steps()[strategy.split.offline_steps()..]);
    let of_shard = left.find(|step| matches!(step.action, Action::ShardTransform(_)));
    let Some(step) = of_shard else { return Ok(()) };
    Err(Error::Usage {
        problem: format!("step `{}` works on the samples of a whole shard, which is done once, in a build", step.name),
        remedy: format!(
            "build a data set and load that: `forebay build PIPELINE --strategy {0}` (in Python: `forebay.build(pipeline, data=…, strategy=\"{0}\")`)",
            step.stage
        ),
    })
}

/// Refuses steps that only another program can do, before anything is read.
pub(crate) fn check_functions(steps: &[Step]) -> Result<()> {
    match steps.iter().find(|step| !step.action.can_run()) {
        None => Ok(()),
        Some(step) => Err(Error::Usage {
            problem: format!("step `{}` is a function that this program does not have", step.name),
            remedy: "run it from the Python program that has the function, and pass it there with `functions=`"
                .to_owned(),
        }),
    }
}
