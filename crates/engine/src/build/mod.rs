//! Building: the offline part of a strategy, written once as shards.
//!
//! A build can be killed at any moment and run again: a shard gets its name once it is complete, and only then is it recorded in the journal; the manifest is written last. A sample always goes into the same shard, so finished shards
//! are reused (after their checksums were verified), and the result is byte-identical to that of a build that was never stopped.

mod chunk;
mod claim;
mod dictionary;
mod identity;
mod journal;
mod mix;
mod parts;
mod read_ahead;
mod recode;
mod resume;
mod shard;
mod unfinished;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sync::Mutex;
use forebay_pipeline::steps::prepare_files;
use forebay_pipeline::{Pipeline, Strategy};
use forebay_plan::units;
use forebay_record::Dictionary;
use forebay_storage::{Folder, Storage};

use crate::data::{Listing, Manifest, Skipped};
use crate::error::{Error, Result};
use crate::load::{OnError, check_functions, damage_kept};
use crate::memory::Gate;
use crate::progress::Progress;
use crate::threads::share;
use dictionary::Trained;
use identity::Identity;
use journal::{Journal, ShardDone};
use shard::{ShardWriter, Stopped};

pub use mix::{MixBuild, MixReport};
pub use parts::{Part, PartReport, Prepared};
pub(crate) use recode::Recode;
pub use unfinished::{Resume, Unfinished};

/// What to build.
#[derive(Clone)]
pub struct Build {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The offline steps and the storage format; not `unprocessed`, which has nothing to build.
    pub strategy: Strategy,
    /// The samples.
    pub listing: Arc<Listing>,
    /// Where their files are read from.
    pub storage: Arc<dyn Storage>,
}

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Shards that are written at once.
    pub threads: usize,
    /// Shards in all.
    pub shards: usize,
    /// What happens to a sample that cannot be processed.
    pub on_error: OnError,
    /// Whether a data set, or an unfinished build of something else, that is in the folder already is replaced.
    pub overwrite: bool,
    /// How to resume it, for an unfinished build.
    pub resume: Option<Resume>,
    /// The memory budget: how many bytes the samples at work may take together.
    pub memory_bytes: u64,
}

/// What a build did.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildReport {
    /// The manifest that was written.
    pub manifest: Manifest,
    /// How many shards were there already and are what was written then, from a build that was interrupted (or all, from one
    /// that was not).
    pub shards_reused: usize,
}

/// How large a shard should be: large enough that opening it costs nothing, small enough that little is lost when a build
/// is stopped, and that readers can share the work.
pub const SHARD_BYTES: f64 = 128e6;

/// How many shards suit `samples` samples built on `threads` threads. Where it is known how many bytes a sample takes, as by a plan, shards have
/// [`SHARD_BYTES`], but each thread has one. Otherwise there are enough to keep the threads busy to the end, none with fewer than 16 samples.
pub fn default_shards(samples: u64, threads: usize, bytes_per_sample: Option<f64>) -> usize {
    match bytes_per_sample {
        Some(bytes) => {
            let shards = (bytes * samples as f64 / SHARD_BYTES).ceil() as usize;
            shards.max(threads).clamp(1, samples.max(1) as usize)
        }
        None => (samples.div_ceil(16) as usize).clamp(1, threads * 4),
    }
}

impl Build {
    /// Builds the data set in the folder `output`, or resumes a build that was interrupted there.
    pub fn run(
        &self,
        output: impl Into<Folder>,
        options: &BuildOptions,
        progress: &dyn Progress,
    ) -> Result<BuildReport> {
        self.check(options)?;
        // A vocabulary that is missing is reported now, and read once for all threads.
        let _files = prepare_files(self.pipeline.steps())?;
        let identity = Identity::of(self, options)?;
        let journal = match Journal::open(output.into(), identity, options.on_error, options.overwrite)? {
            journal::Opened::Finished(manifest) => {
                return Ok(BuildReport { shards_reused: manifest.shards.len(), manifest: *manifest });
            }
            journal::Opened::Unfinished(journal) => journal,
        };
        if let Some(resume) = &options.resume {
            journal.note_command(resume)?;
        }
        let trained = Trained::new(self, options, &journal, progress)?;
        let dictionary_xxh3 = trained.as_ref().map(|trained| trained.xxh3.as_str());
        let kept = resume::whole_shards(&journal, (options.shards, dictionary_xxh3), options.threads, progress)?;
        let shards_reused = kept.iter().flatten().count();
        let kept_samples: usize = (0..options.shards)
            .filter(|&shard| kept[shard].is_some())
            .map(|shard| self.range(shard, options).len())
            .sum();
        progress.begin("build", self.listing.len() as u64);
        progress.advance(kept_samples as u64);
        let dictionary = trained.as_ref().map(|trained| &trained.dictionary);
        let built = self.build_shards((&journal, dictionary), &missing_of(&kept), options, progress)?;
        let done = complete(kept, built)?;
        let mut manifest = self.manifest(&journal, done)?;
        manifest.dictionary_xxh3 = dictionary_xxh3.map(str::to_owned);
        journal.finish(&manifest)?;
        progress.end();
        Ok(BuildReport { manifest, shards_reused })
    }

    fn check(&self, options: &BuildOptions) -> Result<()> {
        if self.strategy.split.keeps_files() {
            return Err(Error::Usage {
                problem: format!("strategy `{}` reads the source files: there is nothing to build", self.strategy),
                remedy: "load the source files, or choose another strategy".to_owned(),
            });
        }
        if let (OnError::Fail, Some(first)) = (options.on_error, self.listing.lost().first()) {
            return Err(damage_kept(first));
        }
        check_functions(self.strategy.offline(&self.pipeline))?;
        let samples = self.listing.len();
        if options.shards == 0 || options.threads == 0 || options.shards > samples {
            return Err(Error::Usage {
                problem: format!("{} shards on {} threads for {samples} samples", options.shards, options.threads),
                remedy: "both must be at least 1, and no shard can be empty".to_owned(),
            });
        }
        Ok(())
    }

    /// The samples of shard number `shard`: an extent of the listing, so that shards read in order give its order.
    fn range(&self, shard: usize, options: &BuildOptions) -> Range<usize> {
        let samples = self.listing.len();
        shard * samples / options.shards..(shard + 1) * samples / options.shards
    }

    /// Builds these shards, several at once.
    fn build_shards(
        &self,
        (journal, dictionary): (&Journal, Option<&Dictionary>),
        missing: &[usize],
        options: &BuildOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<(usize, ShardDone)>> {
        let workers = options.threads.min(missing.len()).max(1);
        let (stop, gate) = (AtomicBool::new(false), Gate::new(options.memory_bytes, workers));
        let readers = self.storage.reads_at_once(self.listing.root().path()).div_ceil(workers);
        let writer =
            || ShardWriter::new(self, readers, options.on_error, (&stop, progress, &gate)).with_dictionary(dictionary);
        write_shards(journal, missing, (workers, &stop), writer, |shard| self.range(shard, options))
    }

    fn manifest(&self, journal: &Journal, done: Vec<ShardDone>) -> Result<Manifest> {
        let pipeline = self.pipeline.to_spec().expect("checked when the identity was made");
        let samples = done.iter().map(|shard| shard.entry.samples).sum();
        let lost = self.listing.lost().iter().cloned();
        let skipped: Vec<Skipped> = lost.chain(done.iter().flat_map(|shard| shard.skipped.clone())).collect();
        if samples == 0 {
            return Err(match skipped.into_iter().find(|skipped| skipped.samples != Some(0)) {
                Some(first) => Error::AllSkipped { samples: self.listing.len() as u64, first: Box::new(first) },
                None => Error::Usage {
                    problem: format!(
                        "the steps made no samples of {}",
                        units::counted(self.listing.len() as u64, "file")
                    ),
                    remedy:
                        "look at the step that makes several samples of one: a window longer than a recording gives \
                             none"
                            .to_owned(),
                },
            });
        }
        Ok(Manifest {
            format: Manifest::FORMAT.to_owned(),
            version: Manifest::VERSION,
            forebay: env!("CARGO_PKG_VERSION").to_owned(),
            encodings: self.strategy.field_encodings(&self.pipeline),
            pipeline,
            strategy: self.strategy.clone(),
            identity: journal.identity().to_owned(),
            samples,
            bytes: done.iter().map(|shard| shard.entry.bytes).sum(),
            classes: self.listing.classes().to_vec(),
            skipped_samples: skipped,
            dictionary_xxh3: None,
            shards: done.into_iter().map(|shard| shard.entry).collect(),
        })
    }
}

/// The shards that `done` has none of.
fn missing_of(done: &[Option<ShardDone>]) -> Vec<usize> {
    (0..done.len()).filter(|&shard| done[shard].is_none()).collect()
}

/// All shards: those that were `done` before, and those that were `built` now.
fn complete(mut done: Vec<Option<ShardDone>>, built: Vec<(usize, ShardDone)>) -> Result<Vec<ShardDone>> {
    for (shard, built) in built {
        done[shard] = Some(built);
    }
    let whole: Option<Vec<ShardDone>> = done.into_iter().collect();
    whole.ok_or_else(|| Error::internal("a shard was not built, and nobody said why"))
}

/// Writes the shards `missing`, several at once. Each thread has a writer of its own, which `stop` ends; `range` says which samples a shard has.
fn write_shards<'a>(
    journal: &Journal,
    missing: &[usize],
    (workers, stop): (usize, &AtomicBool),
    writer: impl Fn() -> ShardWriter<'a> + Sync,
    range: impl Fn(usize) -> Range<usize> + Sync,
) -> Result<Vec<(usize, ShardDone)>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, std::result::Result<ShardDone, Stopped>)>> = Mutex::new(Vec::new());
    let work = || {
        let mut writer = writer();
        while let Some(&shard) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            let write = || writer.write(shard, range(shard), journal);
            let built = catch_unwind(AssertUnwindSafe(write))
                .unwrap_or_else(|panic| Err(Stopped::Failed(Error::panicked(&*panic))));
            stop.fetch_or(built.is_err(), Ordering::Relaxed);
            results.lock().push((shard, built));
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    std::thread::scope(|scope| share(scope, workers.min(missing.len()), "build", &work))?;
    let mut built = Vec::with_capacity(missing.len());
    for (shard, result) in results.into_inner() {
        match result {
            Ok(done) => built.push((shard, done)),
            Err(Stopped::Elsewhere) => {}
            Err(Stopped::Failed(error)) => return Err(error),
        }
    }
    Ok(built)
}
