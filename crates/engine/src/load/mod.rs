//! Loading: the online part of a strategy, as a stream of batches.
//!
//! ```text
//! supply ── readers ──> staging ── workers ──> assembly ──> batches
//! (what, whence)  bytes    (in order)   samples   (in place, in order)
//! ```
//!
//! Readers only read, workers only compute, so storage and processor are busy at the same time. Both ends push back:
//! readers wait when two windows are staged, workers wait when enough batches are ready, and both where the memory budget
//! is used up ([`crate::memory`]). Dropping the loader stops and
//! joins every thread.

mod assembler;
mod assembly;
mod batch;
mod cache;
#[cfg(test)]
mod model;
mod pad;
mod schedule;
mod staging;
mod supply;
mod worker;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sync::{JoinHandle, Mutex, ThreadBuilder, current_thread};
use forebay_pipeline::steps::{PreparedFiles, prepare_files};
use forebay_pipeline::{Action, Draw, Pipeline, Runner, Schema, Step, Strategy};

use crate::data::Skipped;
use crate::error::{Error, Result};
use crate::memory::{Shares, default_memory_bytes};
use crate::threads::cannot_start;
use assembly::{Assembly, Shape};
use staging::{Staged, Staging};
use worker::Worker;

pub use batch::{Batch, Column, Recycler};
pub use cache::Cache;
pub use schedule::{Block, Read, Schedule, Shuffle};
pub use supply::{Failed, FromMemory, FromStorage, Payload, Supply};

/// How to load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Samples in a batch.
    pub batch_size: usize,
    /// Workers, and as many readers.
    pub threads: usize,
    /// Batches that are kept ready.
    pub prefetch: usize,
    /// Whether the last batch is left out if it is not full.
    pub drop_last: bool,
    /// What happens to a sample that cannot be read or processed.
    pub on_error: OnError,
    /// Seed and epoch of random steps.
    pub draw: Draw,
    /// Keeps samples from one epoch to the next; to be given to the supply, too.
    pub cache: Option<Arc<Cache>>,
    /// The memory budget: how many bytes it may take for what is read, worked on and ready. A cache counts by its own limit.
    pub memory_bytes: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            batch_size: 64,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            prefetch: 2,
            drop_last: false,
            on_error: OnError::Fail,
            draw: Draw::default(),
            cache: None,
            memory_bytes: default_memory_bytes(),
        }
    }
}

/// What happens to a sample that cannot be read or processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It ends the work with an error that names it.
    #[default]
    Fail,
    /// It is left out, counted and listed. The batch it would have been in is that much smaller.
    Skip,
}

/// The online part of a strategy: steps, their number in the pipeline, and what comes out.
#[derive(Debug, Clone)]
pub struct Online {
    steps: Vec<Step>,
    first_step: usize,
    output: Schema,
}

impl Online {
    /// What `strategy` leaves to do of `pipeline`.
    pub fn after(pipeline: &Pipeline, strategy: &Strategy) -> Self {
        let (steps, first_step) = strategy.online(pipeline);
        Self { steps, first_step, output: pipeline.output().clone() }
    }

    /// The same for samples whose pictures are unpacked already.
    pub(crate) fn after_unpacking(pipeline: &Pipeline, strategy: &Strategy) -> Self {
        let first_step = strategy.split.offline_steps();
        Self { steps: pipeline.steps()[first_step..].to_vec(), first_step, output: pipeline.output().clone() }
    }

    /// What one worker does them with.
    pub(crate) fn runner(&self) -> Runner {
        Runner::new(&self.steps, self.first_step)
    }
}

/// A running epoch: an iterator of batches.
pub struct Loader {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    supply: Arc<dyn Supply>,
    staging: Staging,
    assembly: Assembly,
    shares: Shares,
    online: Online,
    /// What steps read of vocabularies and tables, kept as long as they run.
    _files: PreparedFiles,
    options: LoadOptions,
    loaded: AtomicU64,
    skipped: AtomicU64,
    skipped_list: Mutex<Vec<Skipped>>,
    /// How many samples have no place in the epoch, because they were lost before it began.
    lost: u64,
    /// Whether it was said that all samples were skipped.
    failed: AtomicBool,
}

/// What [`Loader::next_timeout`] found.
pub enum Next {
    /// The next batch, or the error that ended the epoch.
    Batch(Result<Batch>),
    /// The epoch is over.
    End,
    /// Nothing yet.
    NotYet,
}

/// So many of the samples that were skipped are listed; all are counted.
const SKIPPED_LISTED_MAX: usize = 1000;

/// A worker takes so many samples at a time, so that its locks cost little beside the work.
const TAKE_SAMPLES: usize = 4;

/// What is lost before anything is read. A loader that is to fail at damage cannot leave it out.
fn check_lost(supply: &dyn Supply, on_error: OnError) -> Result<Vec<Skipped>> {
    let lost = supply.lost();
    match (lost.first(), on_error) {
        (Some(first), OnError::Fail) => Err(damage_kept(first)),
        _ => Ok(lost),
    }
}

/// The error of work that is to fail at damage, on data that was opened to leave it out.
pub(crate) fn damage_kept(first: &Skipped) -> Error {
    Error::Usage {
        problem: format!(
            "the data were opened so that damage is skipped, and are to be used so that it fails: {}",
            first.reason
        ),
        remedy: "say the same to both".to_owned(),
    }
}

/// Refuses steps that only another program can do, before anything is read.
pub(crate) fn check_functions(steps: &[Step]) -> Result<()> {
    match steps.iter().find(|step| !step.action.can_run()) {
        None => Ok(()),
        Some(step) => Err(Error::Usage {
            problem: format!("step `{}` is a function that this program does not have", step.name),
            remedy: "run it from the Python program that has the function, and give it there with `functions=`"
                .to_owned(),
        }),
    }
}

impl Loader {
    /// Starts readers and workers.
    pub fn start(supply: Arc<dyn Supply>, online: Online, options: LoadOptions) -> Result<Self> {
        if options.batch_size == 0 || options.threads == 0 {
            return Err(Error::Usage {
                problem: format!("{} samples in a batch on {} threads", options.batch_size, options.threads),
                remedy: "both must be at least 1".to_owned(),
            });
        }
        let read_bytes_max = options.memory_bytes / 4;
        let budget = Shares::new(options.memory_bytes, options.threads, supply.window_bytes(read_bytes_max))?;
        check_functions(&online.steps)?;
        let files = prepare_files(&online.steps)?;
        let lost = check_lost(&*supply, options.on_error)?;
        let (start, samples) = (supply.start(), supply.samples());
        let workers_ahead = (options.threads * TAKE_SAMPLES).div_ceil(options.batch_size);
        let shape = Shape {
            samples: samples - start,
            batch_size: options.batch_size as u64,
            drop_last: options.drop_last,
            batches_max: (options.prefetch + workers_ahead).max(1) as u64,
            expands: online.steps.iter().any(|step| matches!(step.action, Action::Expand(_))),
        };
        let assembly = Assembly::new(online.output.clone(), shape, budget);
        assembly.check()?;
        let shared = Arc::new(Shared {
            staging: Staging::new(start, samples, budget.staged_bytes),
            assembly,
            shares: budget,
            supply,
            online,
            _files: files,
            loaded: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            lost: Skipped::count(&lost),
            skipped: AtomicU64::new(Skipped::count(&lost)),
            skipped_list: Mutex::new(lost),
            options,
        });
        let mut loader = Self { threads: Vec::new(), shared };
        for number in 0..loader.shared.options.threads {
            loader.spawn(format!("forebay-read-{number}"), Shared::read_all)?;
            loader.spawn(format!("forebay-work-{number}"), Shared::work_all)?;
        }
        Ok(loader)
    }

    fn spawn(&mut self, name: String, run: fn(&Shared)) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = ThreadBuilder::new().name(name).spawn(move || {
            // A panic must end the epoch with an error, not leave the consumer waiting.
            if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| run(&shared))) {
                shared.fail(Error::panicked(&*panic));
            }
        });
        self.threads.push(thread.map_err(|source| cannot_start("load", source))?);
        Ok(())
    }

    /// The next batch, if there is one before `wait` is over: for callers who must look up now and then, at a signal say.
    pub fn next_timeout(&mut self, wait: Duration) -> Next {
        self.deliver(Some(Instant::now() + wait))
    }

    fn deliver(&mut self, deadline: Option<Instant>) -> Next {
        let next = match self.shared.assembly.deliver(deadline) {
            Next::End => self.shared.all_skipped().map_or(Next::End, |error| Next::Batch(Err(error))),
            next => next,
        };
        if let Next::Batch(Ok(batch)) = &next {
            self.shared.loaded.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        next
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
    pub fn skipped_list(&self) -> Vec<Skipped> {
        self.shared.skipped_list.lock().clone()
    }

    /// How many bytes of the memory budget were taken at most: what was staged and what was worked on and ready, each at its
    /// highest.
    pub fn memory_bytes_peak(&self) -> u64 {
        self.shared.staging.memory_bytes().0 + self.shared.assembly.memory_bytes().0
    }

    /// How many bytes of the memory budget are taken now.
    pub fn memory_bytes(&self) -> u64 {
        self.shared.staging.memory_bytes().1 + self.shared.assembly.memory_bytes().1
    }

    /// How many bytes were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.shared.supply.bytes_read()
    }
}

impl Iterator for Loader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        match self.deliver(None) {
            Next::Batch(batch) => Some(batch),
            Next::End | Next::NotYet => None,
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.staging.stop();
        self.shared.assembly.stop();
        for thread in self.threads.drain(..) {
            // A function that a worker calls may be who drops the loader; that worker sees the end when it comes back.
            if thread.thread().id() != current_thread().id() {
                // A worker's panic was caught and reported already.
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn fail(&self, error: Error) {
        self.assembly.fail(error);
        self.staging.stop();
    }

    /// A reader: reads what comes next until the epoch ends.
    fn read_all(&self) {
        while let Some(read) = self.supply.next() {
            let bytes = self.supply.read_bytes(&read);
            let fits = bytes <= self.shares.read_bytes_max;
            let Some(room) = self.staging.wait_for_room(&read, if fits { bytes } else { 0 }) else { return };
            let payloads = if fits { self.supply.read(&read) } else { Ok(self.refused(&read, bytes)) };
            match payloads {
                Ok(payloads) if payloads.len() == read.places.len() => self.staging.put(&read, payloads, room),
                Ok(payloads) => {
                    let (found, expected) = (payloads.len(), read.places.len());
                    let message = format!("a supply gave {found} payloads for {expected} places");
                    return self.fail(Error::Panicked { message });
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// What stands for the samples of a block that is too large to be read.
    fn refused(&self, read: &Read, bytes: u64) -> Vec<Payload> {
        let Shares { memory_bytes, read_bytes_max, .. } = self.shares;
        let refused = |place| {
            let key = self.supply.key(read, place);
            let problem = format!(
                "sample `{key}` is read with {bytes} bytes, but a memory budget of {memory_bytes} bytes has {read_bytes_max} for a read"
            );
            let remedy = "give more with `memory` (`--memory`)".to_owned();
            Payload::Failed(Failed { key, error: Box::new(Error::Limit { problem, remedy }) })
        };
        (0..read.places.len()).map(refused).collect()
    }

    /// A worker: does the online steps to what is staged until the epoch ends.
    fn work_all(&self) {
        let mut worker = Worker::new(&self.online, &self.options, &*self.supply, self.shares.worker_bytes as usize);
        let start = self.supply.start();
        while let Some(staged) = self.staging.take(TAKE_SAMPLES) {
            if let Err(error) = Error::if_memory_was_refused() {
                return self.fail(error);
            }
            for Staged { place, payload, _block } in staged {
                let Some(mut assembler) = self.assembly.claim(place - start) else { return };
                let done = worker.run(payload, &mut assembler).and_then(|key| {
                    let fits = assembler.check(&key);
                    fits.map_err(|error| Failed { key: key.to_string(), error: Box::new(error) })
                });
                match (done, self.options.on_error) {
                    (Ok(()), _) => assembler.finish(),
                    // What it says then is that it was stopped.
                    (Err(_), _) if self.assembly.is_stopped() => return,
                    (Err(failed), on_error) if on_error == OnError::Fail || failed.error.ends() => {
                        return self.fail(*failed.error);
                    }
                    (Err(failed), _) => {
                        // Counted first: once its place is skipped, the consumer may see the end.
                        self.note_skipped(failed);
                        assembler.skip();
                    }
                }
            }
        }
    }

    fn note_skipped(&self, failed: Failed) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        let mut list = self.skipped_list.lock();
        // Samples of a shard that is lost are called after it, and are one entry.
        if let Some(Skipped { samples: Some(samples), .. }) = list.iter_mut().rfind(|listed| listed.key == failed.key) {
            *samples += 1;
        } else if list.len() < SKIPPED_LISTED_MAX {
            list.push(Skipped::one(failed.key, &failed.error));
        }
    }

    /// The error that an epoch ends with if every one of its samples was skipped; once.
    fn all_skipped(&self) -> Option<Error> {
        let samples = self.supply.samples();
        let here = self.skipped.load(Ordering::Relaxed) - self.lost;
        if samples == 0 || self.supply.start() > 0 || here < samples || self.failed.swap(true, Ordering::Relaxed) {
            return None;
        }
        let first = self.skipped_list.lock().iter().find(|skipped| skipped.samples != Some(0)).cloned()?;
        Some(Error::AllSkipped { samples, first: Box::new(first) })
    }
}
