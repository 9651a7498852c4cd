//! The loader: a source, and how its epochs are loaded.

use std::sync::{Arc, OnceLock};

use forebay_pipeline::{Pipeline, RngKey};
use forebay_plan::{Profile, STORED_ENTRY_BYTES};

use super::cache::{Cache, Cached, CachedStage};
use super::contents::Contents;
use super::deal::{Deal, Even, Share};
use super::epoch::Epoch;
use super::ids::Position;
use super::liquid::Formats;
use super::order::{Ordering, STREAMS, Shuffle};
use super::policy::{self, CachePolicy};
use super::pool::Idle;
use super::sampler::{Fixed, Sampler, Samples};
use super::sampling::Sampling;
use super::state::State;
use super::{OnError, Online};
use crate::error::{Error, Result};
use crate::memory::default_memory_bytes;
use crate::source::{Sampled, Source};
use crate::threads::cores;

/// How to load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Samples in a batch.
    pub batch_size: usize,
    /// Workers, and as many readers; more where they inflate, or where a read takes long to begin.
    pub threads: usize,
    /// Batches that are kept ready.
    pub prefetch: usize,
    /// In which order samples come.
    pub shuffle: Shuffle,
    /// Which samples an epoch has.
    pub sampling: Sampling,
    /// How many streams a shuffled epoch is cut into at the most: as many as there will be ranks, or a multiple, is best. The order depends
    /// on it, and on no number of ranks.
    pub streams: u64,
    /// The seed of the order and of random steps.
    pub seed: u64,
    /// Which of the ranks that share an epoch this is, and how many there are.
    pub rank: u64,
    /// See `rank`.
    pub world_size: u64,
    /// Whether the last batches are left out if they are not full. All ranks then have equally many.
    pub drop_last: bool,
    /// What becomes of the last samples, where ranks cannot share them equally.
    pub even: Even,
    /// What happens to a sample that cannot be read or processed.
    pub on_error: OnError,
    /// What stays in memory from one epoch to the next.
    pub cache: CachePolicy,
    /// What was measured of the data, for a cache that is left to the loader ([`CachePolicy::Auto`]).
    pub profile: Option<Arc<Profile>>,
    /// The memory budget: how many bytes it may take for what is read, worked on and ready. The cache is not part of it.
    pub memory_bytes: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            batch_size: 64,
            threads: cores(),
            prefetch: 2,
            shuffle: Shuffle::No,
            sampling: Sampling::default(),
            streams: STREAMS,
            seed: 0,
            rank: 0,
            world_size: 1,
            drop_last: false,
            even: Even::None,
            on_error: OnError::Fail,
            cache: CachePolicy::default(),
            profile: None,
            memory_bytes: default_memory_bytes(),
        }
    }
}

/// The most samples in a step, a batch of every rank. No training has so many, and what is counted with stays far from where
/// numbers end.
const STEP_SAMPLES_MAX: u64 = 1 << 50;

impl LoadOptions {
    fn check(&self) -> Result<()> {
        let usage = |problem: String, remedy: &str| Err(Error::Usage { problem, remedy: remedy.to_owned() });
        let Self { batch_size, threads, streams, rank, world_size, drop_last, even, .. } = *self;
        if batch_size == 0 || threads == 0 || streams == 0 {
            let problem = format!("{batch_size} samples in a batch on {threads} threads, in {streams} streams");
            return usage(problem, "all must be at least 1");
        }
        if rank >= world_size {
            let problem = format!("rank {rank} is not below the world size {world_size}");
            return usage(problem, "ranks count from 0; say how many there are with `world_size` (`--world-size`)");
        }
        if drop_last && even != Even::None {
            let problem =
                "`even` has no effect with `drop_last`: where only full batches come, ranks have equally many";
            return usage(problem.to_owned(), "leave one of them out");
        }
        if (batch_size as u64).checked_mul(world_size).is_none_or(|samples| samples > STEP_SAMPLES_MAX) {
            let problem = format!("batches of {batch_size} samples on {world_size} ranks");
            return usage(problem, "there are not so many: make batches smaller, or say how many ranks there are");
        }
        Ok(())
    }

    fn ordering(&self, epoch: u64) -> Ordering {
        Ordering { shuffle: self.shuffle, seed: self.seed, epoch, streams: self.streams }
    }
}

/// The samples of an epoch.
#[derive(Clone)]
struct Drawn {
    source: Arc<dyn Source>,
    /// How they lie, and what decides their order.
    samples: Samples,
    /// What of them always stays in memory.
    fixed: Arc<Fixed>,
}

/// What each epoch has of `source`, where that is always the same: all of it, or a subset.
fn of_each_epoch(source: &Arc<dyn Source>, sampling: &Sampling) -> Option<Arc<dyn Source>> {
    if sampling.is_plain() {
        return Some(Arc::clone(source));
    }
    if !sampling.is_fixed(source.samples()) {
        return None;
    }
    Some(Arc::new(Sampled::new(Arc::clone(source), sampling.draw(source.samples(), 0, 0))))
}

/// A source, and how its epochs are loaded. It has no position of its own: a [`State`] says where to begin.
pub struct Loader {
    source: Arc<dyn Source>,
    /// What each epoch has of it, where all have the same.
    each_epoch: Option<Arc<dyn Source>>,
    options: LoadOptions,
    /// Made by the first epoch, where all have the same.
    drawn: OnceLock<Drawn>,
    identity: OnceLock<String>,
    cache: Option<Arc<Cache>>,
    contents: Option<Arc<Contents>>,
    /// Buffers of batches that nobody uses now.
    idle: Idle,
    /// Why the cache is what it is, where that was left to the loader.
    reason: Option<String>,
}

impl Loader {
    /// Loads `source` as `options` say.
    pub fn new(source: Arc<dyn Source>, options: LoadOptions) -> Result<Self> {
        options.check()?;
        options.sampling.check(source.samples())?;
        super::check_packed(&*source)?;
        let each_epoch = of_each_epoch(&source, &options.sampling);
        let mut loader = Self {
            source,
            each_epoch,
            options,
            drawn: OnceLock::new(),
            identity: OnceLock::new(),
            cache: None,
            contents: None,
            idle: Idle::default(),
            reason: None,
        };
        if let CachePolicy::Auto { bytes } = loader.options.cache {
            let kept = loader.each_epoch.as_ref().unwrap_or(&loader.source);
            let (cache, reason) =
                policy::chosen(&**kept, loader.options.shuffle, bytes, loader.options.profile.as_deref())?;
            (loader.options.cache, loader.reason) = (cache, Some(reason));
        }
        let cache = loader.options.cache;
        cache.check(&*loader.source, loader.options.shuffle)?;
        if loader.each_epoch.is_none() && !matches!(cache, CachePolicy::None | CachePolicy::Page { .. }) {
            let problem = format!("a `{}` cache, where each epoch draws other samples", cache.name());
            return Err(Error::Usage { problem, remedy: "leave one of `cache` and the sampling out".to_owned() });
        }
        match cache {
            CachePolicy::Decoded { bytes } => {
                // A shuffled epoch may bring a rank any sample, another one the same each time.
                let shuffles = loader.options.shuffle != Shuffle::No;
                let samples = if shuffles { loader.samples() } else { loader.samples_from(0) };
                loader.cache = Some(Arc::new(Cache::new(bytes, samples)));
            }
            CachePolicy::MinIo { bytes } => loader.contents = Some(Arc::new(Contents::new(bytes))),
            // The buffer of all ranks; each has its part.
            CachePolicy::Liquid { bytes } => {
                loader.contents = Some(Arc::new(Contents::new(bytes.div_ceil(loader.options.world_size))));
            }
            CachePolicy::None | CachePolicy::Page { .. } | CachePolicy::Auto { .. } => {}
        }
        Ok(loader)
    }

    /// Where samples come from.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// How they are loaded.
    pub fn options(&self) -> &LoadOptions {
        &self.options
    }

    /// What is kept in memory from one epoch to the next, where it may be done to in part.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_deref()
    }

    /// What is kept in memory from one epoch to the next, and at which stage.
    pub fn cached(&self) -> Option<Cached> {
        let (policy, reason) = (self.options.cache.name().to_owned(), self.reason.clone());
        if let Some(contents) = &self.contents {
            return Some(Cached {
                policy,
                reason,
                limit_bytes: contents.limit_bytes(),
                stage: Some(self.source.formats()),
                samples: contents.len(),
                bytes: contents.bytes(),
                hits: contents.hits(),
                stages: Vec::new(),
            });
        }
        let Some(cache) = self.cache.as_deref() else {
            // That nothing is kept is worth a word where it was left to the loader.
            let reason = Some(reason?);
            return Some(Cached {
                policy,
                reason,
                limit_bytes: 0,
                stage: None,
                samples: 0,
                bytes: 0,
                hits: 0,
                stages: Vec::new(),
            });
        };
        let strategy = self.source.strategy();
        let (steps, _) = strategy.online(self.source.pipeline());
        let name = |done: usize| match done.checked_sub(1).and_then(|last| steps.get(last)) {
            Some(step) => step.stage.clone(),
            None => strategy.to_string(),
        };
        let choice = cache.choice();
        let bytes = choice.map_or(&[][..], |choice| &choice.bytes);
        let stage = |(done, &bytes): (usize, &u64)| CachedStage { stage: name(done), bytes };
        Some(Cached {
            policy,
            reason,
            limit_bytes: cache.limit_bytes(),
            stage: choice.map(|choice| name(choice.steps)),
            samples: cache.len(),
            bytes: cache.bytes(),
            hits: cache.hits(),
            stages: bytes.iter().enumerate().map(stage).collect(),
        })
    }

    /// How many batches of this rank an epoch has, or what is left of it after so many samples of all ranks; with skipped samples some may be
    /// smaller or missing. `None` where a step makes several samples of one.
    pub fn batches_from(&self, samples_seen: u64) -> Option<u64> {
        let samples = self.samples_from(samples_seen);
        (!self.source.expands()).then(|| samples.div_ceil(self.options.batch_size as u64))
    }

    /// How many samples an epoch has, of all ranks.
    pub fn samples(&self) -> u64 {
        self.options.sampling.samples_of(self.source.samples())
    }

    /// How many samples of the source this rank takes in an epoch, or in what is left of it after so many samples of all ranks.
    pub fn samples_from(&self, samples_seen: u64) -> u64 {
        // How many come does not depend on the streams, only whose they are.
        Deal::new(self.samples(), 1, Position(samples_seen), self.share()).samples()
    }

    /// The beginning of epoch number `epoch`.
    pub fn beginning_of(&self, epoch: u64) -> State {
        State::new(self, epoch)
    }

    /// Starts the epoch that `state` is in, or what is left of it.
    pub fn start(&self, state: &State) -> Result<Epoch> {
        self.start_with(Online::of(&*self.source, Pipeline::clone), state)
    }

    /// The same with other steps than those of the source's pipeline: with functions that only the caller has, say.
    pub fn start_with(&self, online: Online, state: &State) -> Result<Epoch> {
        state.check(self)?;
        let Drawn { source, samples, fixed } = self.drawn(state.epoch)?;
        let ordering = self.options.ordering(state.epoch);
        let sampler = Sampler::new(samples, ordering, state.position(), self.share()).keeping(fixed);
        let rng_key = RngKey { seed: self.options.seed, epoch: state.epoch };
        Epoch::start(self, source, online, sampler, rng_key, state.clone())
    }

    /// What an epoch has of the source.
    fn drawn(&self, epoch: u64) -> Result<Drawn> {
        let Some(each_epoch) = &self.each_epoch else {
            let drawn = self.options.sampling.draw(self.source.samples(), self.options.seed, epoch);
            return self.laid_out(Arc::new(Sampled::new(Arc::clone(&self.source), drawn)));
        };
        if let Some(all) = self.drawn.get() {
            return Ok(all.clone());
        }
        let all = self.laid_out(Arc::clone(each_epoch))?;
        Ok(self.drawn.get_or_init(|| all).clone())
    }

    /// All samples of `source`.
    fn laid_out(&self, source: Arc<dyn Source>) -> Result<Drawn> {
        let blocks = source.blocks()?;
        let LoadOptions { cache, seed, shuffle, .. } = self.options;
        let fixed = match cache {
            CachePolicy::MinIo { bytes } => Fixed::new(&blocks, bytes, STORED_ENTRY_BYTES, seed),
            _ => Fixed::default(),
        };
        let buffer_bytes = cache.liquid_bytes();
        let formats = source.strategies().len();
        // As they lie, samples of one format follow those of another.
        let is_mixed = shuffle != Shuffle::No && (formats > 1 || buffer_bytes.is_some());
        let samples = if is_mixed {
            let mut by_format = vec![Vec::new(); formats];
            for block in blocks {
                by_format[source.format_of(block.samples.start)].push(block);
            }
            Samples::Formats(Formats {
                blocks: by_format.into(),
                buffer_bytes: buffer_bytes.unwrap_or(0),
                entry_bytes: STORED_ENTRY_BYTES,
            })
        } else {
            Samples::Blocks(blocks.into())
        };
        Ok(Drawn { source, samples, fixed: Arc::new(fixed) })
    }

    fn share(&self) -> Share {
        let LoadOptions { batch_size, rank, world_size, even, .. } = self.options;
        // Where a step makes several samples of one, the source's say nothing of batches: what is not full is seen at the end.
        let drop_last = self.options.drop_last && !self.source.expands();
        Share { batch_size: batch_size as u64, rank, world_size, drop_last, even }
    }

    pub(super) fn cache_shared(&self) -> Option<Arc<Cache>> {
        self.cache.clone()
    }

    pub(super) fn idle(&self) -> Idle {
        self.idle.clone()
    }

    /// With the buffers of batches that other loaders have used: who comes after them begins as they ended.
    pub(crate) fn with_buffers(self, idle: Idle) -> Self {
        Self { idle, ..self }
    }

    pub(super) fn contents_shared(&self) -> Option<Arc<Contents>> {
        self.contents.clone()
    }

    pub(super) fn identity(&self) -> &str {
        self.identity.get_or_init(|| self.source.identity() + &self.options.sampling.identity())
    }
}
