//! Running a format mix: what the shares that a plan found give when they are loaded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_pipeline::{Pipeline, Strategy};

use crate::build::{BuildOptions, MixBuild};
use crate::data::Listing;
use crate::error::{Error, Result};
use crate::load::{CachePolicy, LoadOptions, Loader, Next, OnError, Shuffle, WINDOW_BYTES};
use crate::progress::{Progress, while_wanted};
use crate::scratch_folder::ScratchFolder;
use crate::source::{Mixed, Source};
use crate::storage_choice::StorageChoice;

/// A mix to try out.
#[derive(Clone)]
pub struct MixTrial {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The formats, and their shares.
    pub formats: Vec<(Strategy, f64)>,
    /// The samples that represent all.
    pub listing: Arc<Listing>,
    /// What it is loaded from.
    pub storage: StorageChoice,
    /// The number of samples of the entire data set.
    pub samples: u64,
    /// The shuffle buffer of the entire data set. These samples get their share of it.
    pub buffer_bytes: u64,
    /// Workers, and as many readers.
    pub threads: usize,
    /// Samples in a batch.
    pub batch_size: usize,
    /// How long it is loaded, after an epoch that fills the buffer.
    pub seconds: f64,
    /// The seed of the mix, of the order and of random steps.
    pub seed: u64,
    /// What happens to a sample that cannot be processed.
    pub on_error: OnError,
    /// The memory budget.
    pub memory_bytes: u64,
    /// Where the data set is stored temporarily.
    pub work_folder: PathBuf,
}

/// While a batch is awaited, the user is asked so often whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(100);

/// No more epochs than these, however short they are.
const EPOCHS_MAX: u64 = 1000;

impl MixTrial {
    /// Builds the mix and loads it; samples per second after the first batch of each epoch.
    pub fn run(&self, progress: &dyn Progress) -> Result<f64> {
        let scratch = ScratchFolder::new(&self.work_folder, "mix")?;
        let folder = scratch.path().join("dataset");
        let build = MixBuild {
            pipeline: self.pipeline.clone(),
            formats: self.formats_with_samples(),
            seed: self.seed,
            listing: Arc::clone(&self.listing),
            storage: StorageChoice::Local.open(0)?,
        };
        let options = BuildOptions {
            threads: self.threads,
            shards: self.threads.clamp(1, self.listing.len().max(1)),
            on_error: self.on_error,
            overwrite: false,
            resume: None,
            memory_bytes: self.memory_bytes,
        };
        let manifest = build.run(folder.as_path(), &options, progress)?.manifest;
        let cache = CachePolicy::Liquid { bytes: self.buffer_of(manifest.samples) };
        let source = Mixed::open(&folder, &cache.open(&self.storage)?, self.on_error)?;
        let options = LoadOptions {
            batch_size: self.batch_size,
            threads: self.threads,
            shuffle: Shuffle::Window { bytes: WINDOW_BYTES.min(self.memory_bytes / 4) },
            seed: self.seed,
            on_error: self.on_error,
            cache,
            memory_bytes: self.memory_bytes,
            ..LoadOptions::default()
        };
        self.load(&Loader::new(Arc::new(source) as Arc<dyn Source>, options)?, progress)
    }

    /// The share of the buffer for that many samples. How many of them fit is measured, too, not taken from the prediction.
    fn buffer_of(&self, samples: u64) -> u64 {
        let part = u128::from(self.buffer_bytes) * u128::from(samples) / u128::from(self.samples.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// The formats of which the samples that stand for all have one at least: a share of one in a thousand is none of 200.
    fn formats_with_samples(&self) -> Vec<(Strategy, f64)> {
        let samples = self.listing.len() as f64;
        // What is left need not add up to 1: shares are weights.
        self.formats.iter().filter(|(_, share)| share * samples >= 1.0).cloned().collect()
    }

    fn load(&self, loader: &Loader, progress: &dyn Progress) -> Result<f64> {
        let (mut samples, mut seconds) = (0_u64, 0.0);
        let mut number = 0;
        while number < EPOCHS_MAX && (number < 2 || seconds < self.seconds) {
            progress.begin("load the mix", loader.source().samples());
            let mut epoch = loader.start(&loader.beginning_of(number))?;
            let mut first: Option<(Instant, u64)> = None;
            loop {
                match epoch.next_timeout(LOOK_UP) {
                    Next::Batch(batch) => {
                        progress.advance(batch?.len() as u64);
                        first.get_or_insert_with(|| (Instant::now(), epoch.samples()));
                    }
                    Next::NotYet => {}
                    Next::End => break,
                }
                while_wanted(progress)?;
            }
            // The first epoch fills the buffer.
            if let (Some((begun, before)), true) = (first, number > 0) {
                samples += epoch.samples() - before;
                seconds += begun.elapsed().as_secs_f64();
            }
            progress.end();
            number += 1;
        }
        if samples == 0 || seconds <= 0.0 {
            return Err(Error::Usage {
                problem: format!(
                    "{} samples in batches of {} are too few to measure",
                    self.listing.len(),
                    self.batch_size
                ),
                remedy: "pass more --samples, or a smaller --batch-size".to_owned(),
            });
        }
        Ok(samples as f64 / seconds)
    }
}
