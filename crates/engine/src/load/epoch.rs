//! A running epoch: an iterator of batches.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_pipeline::RngKey;
use forebay_pipeline::steps::{PreparedFiles, prepare_files};
use forebay_plan::INFLATING_READERS;

use super::activity::Activity;
use super::batch::Batch;
use super::batch_steps::BatchSteps;
use super::batcher::{Batcher, Shape};
use super::cache::Cache;
use super::contents::Contents;
use super::deal::Deal;
use super::ids::Position;
use super::loader::{LoadOptions, Loader};
use super::order::Shuffle;
use super::prefetch::{Payload, PrefetchBuffer, Staged};
use super::sampler::{Read, Sampler, Wanted};
use super::state::State;
use super::worker::Worker;
use super::{OnError, Online, Stats, check_functions, damage_kept};
use crate::data::Skipped;
use crate::error::{Error, Result};
use crate::memory::Shares;
use crate::source::{Failed, Source};
use crate::sync::{JoinHandle, Mutex, ThreadBuilder, current_thread};
use crate::threads::{Gate, cannot_start, space_for_one};

/// A running epoch: an iterator of batches.
pub struct Epoch {
    pub(super) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    deal: Deal,
    state: State,
    /// Batches that were seen before the epoch was interrupted, and are made again.
    again: u64,
}

pub(super) struct Shared {
    pub(super) source: Arc<dyn Source>,
    sampler: Mutex<Sampler>,
    pub(super) prefetch: PrefetchBuffer,
    pub(super) batcher: Batcher,
    activity: Arc<Activity>,
    shares: Shares,
    /// How many threads read: more than work, where each read waits long.
    readers: usize,
    online: Online,
    /// What steps read of vocabularies and tables, kept as long as they run.
    _files: PreparedFiles,
    pub(super) options: LoadOptions,
    pub(super) rng_key: RngKey,
    pub(super) cache: Option<Arc<Cache>>,
    contents: Option<Arc<Contents>>,
    /// How many samples the rank has.
    samples: u64,
    /// Whether this is a whole epoch, from its first sample on.
    is_whole: bool,
    bytes_read: AtomicU64,
    loaded: AtomicU64,
    skipped: AtomicU64,
    skipped_samples: Mutex<Vec<Skipped>>,
    /// How many samples have no position in the epoch, because they were lost before it began.
    lost: u64,
    /// Whether a sample came through.
    came: AtomicBool,
    /// Whether it was said that all samples were skipped.
    failed: AtomicBool,
}

/// What [`Epoch::next_timeout`] found.
pub enum Next {
    /// The next batch, or the error that ended the epoch.
    Batch(Result<Batch>),
    /// The epoch is over.
    End,
    /// Nothing yet.
    NotYet,
}

/// Where all of so many times as many samples as there are different ones were skipped, one that is intact would have come.
const HOPELESS_TIMES: u64 = 30;

/// So many of the samples that were skipped are listed; all are counted.
const SKIPPED_LISTED_MAX: usize = 1000;

/// Read ahead from where a read waits long: what 10 Gb/s bring in 200 ms.
const REMOTE_READ_AHEAD_BYTES: u64 = 256 << 20;

/// Read ahead from files of this machine, until a worker waits: what a processor has of its own cache, a few times. Next to nothing
/// where interleavings are tried out, so that it matters there.
const FIRST_READ_AHEAD_BYTES: u64 = if cfg!(test) { 1 } else { 8 << 20 };

/// A worker takes so many samples at a time, so that its locks cost little beside the work.
const TAKE_SAMPLES: usize = 4;

/// What is lost before anything is read. A loader that is to fail at damage cannot leave it out.
fn check_lost(source: &dyn Source, on_error: OnError) -> Result<Vec<Skipped>> {
    let lost = source.lost();
    match (lost.first(), on_error) {
        (Some(first), OnError::Fail) => Err(damage_kept(first)),
        _ => Ok(lost),
    }
}

/// How batches of `samples` samples are put together.
fn shape(options: &LoadOptions, online: &Online, samples: u64) -> Shape {
    let workers_ahead = (options.threads * TAKE_SAMPLES).div_ceil(options.batch_size);
    Shape {
        samples,
        batch_size: options.batch_size as u64,
        drop_last: options.drop_last,
        batches_max: (options.prefetch + workers_ahead).max(1) as u64,
        expands: online.steps().iter().any(|step| step.action.changes_count()),
    }
}

/// How many threads read `source` where so many work.
pub(crate) fn readers(source: &dyn Source, threads: usize) -> usize {
    let busy = if source.inflates() { INFLATING_READERS * threads } else { threads };
    busy.max(source.reads_at_once())
}

impl Epoch {
    /// Starts readers and workers.
    pub(super) fn start(
        loader: &Loader,
        source: Arc<dyn Source>,
        online: Online,
        sampler: Sampler,
        rng_key: RngKey,
        state: State,
    ) -> Result<Self> {
        let options = loader.options().clone();
        let read_bytes_max = options.memory_bytes / 4;
        let window_bytes = sampler.window_bytes(read_bytes_max);
        let in_order = options.shuffle == Shuffle::No && options.sampling.is_plain();
        let streams_bytes = source.limit_streams(Shares::stream_limits(options.memory_bytes, window_bytes, in_order));
        let budget = Shares::new(options.memory_bytes, options.threads, window_bytes, streams_bytes)?;
        let steps = online.steps();
        check_functions(&steps)?;
        let files = prepare_files(&steps)?;
        let lost = check_lost(&*source, options.on_error)?;
        let deal = sampler.deal();
        let activity = Arc::new(Activity::new());
        let shape = shape(&options, &online, deal.samples());
        let batch_steps = BatchSteps::of(&online, rng_key);
        let batcher =
            Batcher::new(online.output.clone(), shape, budget, loader.idle(), Arc::clone(&activity), batch_steps);
        batcher.check()?;
        // Both have space for the largest block that is read at all, and for a window of each stream.
        let readers = readers(&*source, options.threads);
        // However many workers there are: it is bytes under way that hide latency.
        let hides_latency = if source.reads_at_once() > 0 { REMOTE_READ_AHEAD_BYTES } else { 0 };
        let staged_bytes = sampler.read_ahead_bytes().max(hides_latency).min(budget.staged_bytes);
        // Of a window that is shuffled all must be there.
        let is_close = window_bytes == 0 && hides_latency == 0;
        let first_bytes = if is_close { FIRST_READ_AHEAD_BYTES } else { staged_bytes };
        let shared = Arc::new(Shared {
            prefetch: PrefetchBuffer::new(deal.samples(), staged_bytes, first_bytes, Arc::clone(&activity)),
            batcher,
            activity,
            shares: budget,
            readers,
            source,
            online,
            _files: files,
            rng_key,
            cache: loader.cache_shared(),
            contents: loader.contents_shared(),
            samples: deal.samples(),
            is_whole: state.position() == Position::FIRST,
            bytes_read: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            came: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            lost: Skipped::count(&lost),
            skipped: AtomicU64::new(Skipped::count(&lost)),
            skipped_samples: Mutex::new(lost),
            sampler: Mutex::new(sampler),
            options,
        });
        let again = state.batches.map_or(0, |batches| batches.seen);
        let mut epoch = Self { threads: Vec::new(), shared, deal, state, again };
        let gate = Arc::new(Gate::default());
        let opens = gate.opens();
        for number in 0..epoch.shared.options.threads {
            epoch.spawn(format!("forebay-read-{number}"), &gate, Shared::read_all)?;
            epoch.spawn(format!("forebay-work-{number}"), &gate, Shared::work_all)?;
        }
        for number in epoch.shared.options.threads..readers {
            epoch.spawn(format!("forebay-read-{number}"), &gate, Shared::read_all)?;
        }
        drop(opens);
        Ok(epoch)
    }

    fn spawn(&mut self, name: String, gate: &Arc<Gate>, run: fn(&Shared)) -> Result<()> {
        let (shared, theirs) = (Arc::clone(&self.shared), Arc::clone(gate));
        space_for_one().map_err(|source| cannot_start("load", source))?;
        let thread = ThreadBuilder::new().name(name).spawn(move || {
            theirs.enter();
            // A panic must end the epoch with an error, not leave the consumer waiting.
            if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| run(&shared))) {
                shared.fail(Error::panicked(&*panic));
            }
        });
        self.threads.push(thread.map_err(|source| cannot_start("load", source))?);
        gate.wait_for(self.threads.len());
        Ok(())
    }

    /// The next batch, if there is one before `wait` is over: for callers who must look up now and then, at a signal say.
    pub fn next_timeout(&mut self, wait: Duration) -> Next {
        self.deliver(Some(Instant::now() + wait))
    }

    fn deliver(&mut self, deadline: Option<Instant>) -> Next {
        loop {
            let next = match self.shared.batcher.deliver(deadline) {
                Next::End => self.shared.all_skipped().map_or(Next::End, |error| Next::Batch(Err(error))),
                next => next,
            };
            if let Next::Batch(Ok(batch)) = &next {
                // Seen before; or all of its samples were skipped, and nobody wants an empty one.
                if batch.number < self.again || batch.is_empty() {
                    match deadline {
                        Some(deadline) if Instant::now() >= deadline => return Next::NotYet,
                        _ => continue,
                    }
                }
                self.shared.loaded.fetch_add(batch.len() as u64, Ordering::Relaxed);
            }
            if !matches!(next, Next::NotYet) {
                self.shared.activity.note_taken();
            }
            return next;
        }
    }

    /// Where to go on once `batch` was seen: to be kept with a checkpoint.
    pub fn state_after(&self, batch: &Batch) -> State {
        let mut state = self.state.clone();
        match &mut state.batches {
            Some(batches) => batches.seen = batch.number + 1,
            None => state.samples_seen = self.deal.seen(batch.number + 1).0,
        }
        state
    }

    /// How many samples were loaded so far.
    pub fn samples(&self) -> u64 {
        self.shared.loaded.load(Ordering::Relaxed)
    }

    /// How many samples were skipped so far.
    pub fn skipped(&self) -> u64 {
        self.shared.skipped.load(Ordering::Relaxed)
    }

    /// The first samples that were skipped, and why.
    pub fn skipped_samples(&self) -> Vec<Skipped> {
        self.shared.skipped_samples.lock().clone()
    }

    /// How many bytes of the memory budget were taken at most: what was staged, what was worked on and ready, and what streams held, each at
    /// its highest.
    pub fn memory_bytes_peak(&self) -> u64 {
        let streams = self.shared.source.streams_bytes().0;
        self.shared.prefetch.memory_bytes().0 + self.shared.batcher.memory_bytes().0 + streams
    }

    /// How many bytes of the memory budget are taken now.
    pub fn memory_bytes(&self) -> u64 {
        let streams = self.shared.source.streams_bytes().1;
        self.shared.prefetch.memory_bytes().1 + self.shared.batcher.memory_bytes().1 + streams
    }

    /// What the threads did with their time so far.
    pub fn stats(&self) -> Stats {
        let threads = (self.shared.options.threads, self.shared.readers);
        self.shared.activity.stats(threads, self.samples(), self.bytes_read())
    }

    /// How many bytes were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.load(Ordering::Relaxed)
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        match self.deliver(None) {
            Next::Batch(batch) => Some(batch),
            Next::End | Next::NotYet => None,
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.shared.prefetch.stop();
        self.shared.batcher.stop();
        for thread in self.threads.drain(..) {
            // A function that a worker calls may be who drops the epoch; that worker sees the end when it comes back.
            if thread.thread().id() != current_thread().id() {
                // A worker's panic was caught and reported already.
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn fail(&self, error: Error) {
        self.batcher.fail(error);
        self.prefetch.stop();
    }

    /// A reader: reads what comes next until the epoch ends.
    fn read_all(&self) {
        let mut activity = self.activity.of_thread();
        loop {
            let next = self.sampler.lock().next();
            let Some(read) = next else { return };
            let bytes = read.block.bytes;
            let fits = bytes <= self.shares.read_bytes_max;
            let Some(space) = self.prefetch.wait_for_space(&read, if fits { bytes } else { 0 }) else { return };
            let payloads =
                activity.timed(|activity| &activity.read, || if fits { self.read(&read) } else { self.refused(&read) });
            self.prefetch.put(&read, payloads, space);
        }
    }

    /// What each sample is made of that is wanted of a read.
    fn read(&self, read: &Read) -> Vec<Payload> {
        let cached = |wanted: &Wanted| match (&self.cache, &self.contents) {
            (Some(cache), _) => cache.get(wanted.sample).map(Payload::Cached),
            (None, Some(contents)) => contents.get(wanted.sample).map(Payload::Content),
            (None, None) => None,
        };
        let all: Vec<Option<Payload>> = read.wanted.iter().map(cached).collect();
        if all.iter().all(Option::is_some) {
            return all.into_iter().flatten().collect();
        }
        let fetched = self.source.read(read.block.samples.clone());
        self.bytes_read.fetch_add(fetched.bytes_read, Ordering::Relaxed);
        let mut contents = read.block.samples.clone().zip(fetched.contents);
        let payload = |(wanted, cached): (&Wanted, Option<Payload>)| {
            let content = contents.find(|(sample, _)| *sample == wanted.sample).map(|(_, content)| content);
            cached.unwrap_or_else(|| match content {
                Some(Ok(content)) => Payload::Content(content),
                Some(Err(failed)) => Payload::Failed(failed),
                None => {
                    let key = self.source.key(wanted.sample);
                    Payload::Failed(Failed::new(
                        key,
                        Error::internal("a source gave fewer samples than were asked for"),
                    ))
                }
            })
        };
        read.wanted.iter().zip(all).map(payload).collect()
    }

    /// What stands for the samples of a block that is too large to be read.
    fn refused(&self, read: &Read) -> Vec<Payload> {
        let Shares { memory_bytes, read_bytes_max, .. } = self.shares;
        let refused = |wanted: &Wanted| {
            let key = self.source.key(wanted.sample);
            let problem = format!(
                "sample `{key}` is read with {} bytes, but a memory budget of {memory_bytes} bytes has {read_bytes_max} for a read",
                read.block.bytes
            );
            let remedy = "raise `memory` (`--memory`)".to_owned();
            Payload::Failed(Failed::new(key, Error::Limit { problem, remedy }))
        };
        read.wanted.iter().map(refused).collect()
    }

    /// A worker: does the online steps to what is staged until the epoch ends.
    fn work_all(&self) {
        let mut worker = Worker::new(self, &self.online, self.shares.worker_bytes as usize);
        let mut activity = self.activity.of_thread();
        while let Some(staged) = self.prefetch.take(TAKE_SAMPLES) {
            if let Err(error) = Error::if_memory_was_refused() {
                return self.fail(error);
            }
            let goes_on = activity.timed(|activity| &activity.work, || self.work(&mut worker, staged));
            if !goes_on {
                return;
            }
        }
    }

    /// Does the online steps to some samples; whether the epoch goes on.
    fn work(&self, worker: &mut Worker<'_>, staged: Vec<Staged>) -> bool {
        for Staged { sample, turn, keep, payload, _block } in staged {
            let Some(mut collator) = self.batcher.claim(turn) else { return false };
            if let (Some(contents), Payload::Content(content)) = (&self.contents, &payload) {
                contents.settle(sample, content, keep);
            }
            let done = worker.run(sample, payload, &mut collator).and_then(|key| {
                let fits = collator.check(&key);
                fits.map_err(|error| Failed::new(&*key, error))
            });
            match (done, self.options.on_error) {
                (Ok(()), _) => {
                    if !self.came.load(Ordering::Relaxed) {
                        self.came.store(true, Ordering::Relaxed);
                    }
                    collator.finish();
                }
                // What it says then is that it was stopped.
                (Err(_), _) if self.batcher.is_stopped() => return false,
                (Err(failed), on_error) if on_error == OnError::Fail || failed.error.ends() => {
                    self.fail(*failed.error);
                    return false;
                }
                (Err(failed), _) => {
                    // Counted first: once its slot is skipped, the consumer may see the end.
                    self.note_skipped(failed);
                    collator.skip();
                    if let Some(error) = self.hopeless() {
                        self.fail(error);
                        return false;
                    }
                }
            }
        }
        true
    }

    fn note_skipped(&self, failed: Failed) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        let mut list = self.skipped_samples.lock();
        // Samples of a shard that is lost are called after it, and are one entry.
        if let Some(Skipped { samples: Some(samples), .. }) = list.iter_mut().rfind(|listed| listed.key == failed.key) {
            *samples += 1;
        } else if list.len() < SKIPPED_LISTED_MAX {
            list.push(Skipped::one(failed.key, &failed.error));
        }
    }

    /// The error of an epoch that has each sample many times, where so many were skipped and none came that there is none to come.
    fn hopeless(&self) -> Option<Error> {
        let (different, here) = (self.source.different(), self.skipped.load(Ordering::Relaxed) - self.lost);
        let is_hopeless = different < self.samples && here >= HOPELESS_TIMES * different.max(1);
        if !is_hopeless || self.came.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.skipped_samples.lock().first().cloned()?;
        Some(Error::AllSkipped { samples: different, first: Box::new(first) })
    }

    /// The error that an epoch ends with if every one of its samples was skipped; once.
    fn all_skipped(&self) -> Option<Error> {
        let here = self.skipped.load(Ordering::Relaxed) - self.lost;
        if self.samples == 0 || !self.is_whole || here < self.samples || self.failed.swap(true, Ordering::Relaxed) {
            return None;
        }
        let first = self.skipped_samples.lock().iter().find(|skipped| skipped.samples != Some(0)).cloned()?;
        Some(Error::AllSkipped { samples: self.samples, first: Box::new(first) })
    }
}
