//! The plan of an experiment: which profiles it consists of.

use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_engine::data::{Listing, ListingOptions, Reach};
use forebay_engine::load::Shuffle;
use forebay_engine::profile::ProfileOptions;
use forebay_engine::{Progress, ScratchFolder};
use forebay_pipeline::steps::StepSpec;
use forebay_pipeline::{Pipeline, PipelineSpec, StorageFormat, Strategy};
use forebay_plan::{Caching, Runs, units};
use forebay_record::name_text;
use serde::{Deserialize, Serialize};

use super::{AddStep, Common, Compression, Kind, On, SampleSize};
use crate::arguments;
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, listing_options};
use forebay_demo::{Domain, Order, TensorKind};

/// One profile to measure.
#[derive(Clone)]
pub(super) struct PlannedRun {
    /// What distinguishes it from the others: `threads-4`.
    pub(super) name: String,
    pub(super) pipeline: Pipeline,
    pub(super) data: PathBuf,
    pub(super) reach: Reach,
    /// How many files there are, and of how many bytes; neither for data that is yet to be made.
    files: (u64, u64),
    /// Data that is generated for it, in a temporary folder; `data` only distinguishes it from others.
    pub(super) order: Option<Order>,
    pub(super) samples: u64,
    pub(super) runs: NonZeroU32,
    pub(super) threads: usize,
    pub(super) caching: Caching,
    pub(super) shuffle: Shuffle,
    pub(super) strategies: Vec<Strategy>,
}

/// A planned run as it is written down, to be known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Described {
    name: String,
    pipeline: PipelineSpec,
    data: String,
    #[serde(default)]
    files: (u64, u64),
    samples: u64,
    runs: NonZeroU32,
    #[serde(default)]
    run_seconds: f64,
    threads: usize,
    caching: Caching,
    shuffle_window_bytes: Option<u64>,
    strategies: Vec<String>,
    storage: String,
    seed: u64,
    skip_errors: bool,
}

impl PlannedRun {
    /// A run of `on` with the settings that all share.
    fn new(name: &str, on: &On, threads: usize) -> Result<Self> {
        let pipeline = arguments::pipeline(&on.pipeline, &on.settings, &ListArguments::default())?;
        let reach = on.settings.reach();
        let options = listing_options(&on.settings, &on.common.on_error, None);
        let listing = Listing::scan_with(pipeline.source(), &on.data, &options)?;
        Ok(Self {
            reach,
            files: (listing.len() as u64, listing.bytes()),
            name: name.to_owned(),
            strategies: strategies(&pipeline, &on.strategies, &[])?,
            pipeline,
            data: on.data.clone(),
            order: None,
            samples: on.common.samples,
            runs: on.common.runs,
            threads,
            caching: Caching::None,
            shuffle: Shuffle::No,
        })
    }

    /// The samples in `data`: its own, or those that were made for it.
    pub(super) fn list(&self, data: &Path, common: &Common) -> Result<Listing> {
        let options =
            ListingOptions { on_error: common.on_error.choice(), reach: self.reach, ..ListingOptions::default() };
        Ok(Listing::scan_with(self.pipeline.source(), data, &options)?)
    }

    pub(super) fn options(&self, common: &Common, runs: Runs, work_folder: &Path) -> ProfileOptions {
        ProfileOptions {
            memory_bytes: common.memory.bytes(),
            sample_count: self.samples,
            run_seconds: common.run.seconds,
            runs,
            threads: self.threads,
            shards: self.threads,
            batch_size: 64,
            caching: self.caching,
            shuffle: self.shuffle,
            seed: common.seed,
            on_error: common.on_error.choice(),
            work_folder: work_folder.to_owned(),
            strategies: self.strategies.clone(),
            // An experiment measures only what was requested.
            compressions: Vec::new(),
        }
    }

    /// The same with that many samples.
    pub(super) fn with_samples(&self, samples: u64) -> Self {
        let order = self.order.clone().map(|order| Order { samples, ..order });
        Self { order, samples, ..self.clone() }
    }

    /// How many bytes each sample has that is made; 0 where none is.
    pub(super) fn made_bytes_each(&self) -> f64 {
        self.order.as_ref().map_or(0.0, |order| order.tensors.spec().bytes() as f64)
    }

    /// Makes the data where it is made; it lasts as long as what is returned.
    pub(super) fn make_data(&self, progress: &dyn Progress) -> Result<Option<MadeFolder>> {
        let Some(order) = &self.order else { return Ok(None) };
        let parent = order.folder.parent().unwrap_or(Path::new(""));
        let scratch = ScratchFolder::new(parent, "data")?;
        let order = Order { folder: scratch.path().to_owned(), ..order.clone() };
        forebay_demo::make(&order, progress)?;
        Ok(Some(MadeFolder { data: order.folder.join(order.domain.folder_name()), _scratch: scratch }))
    }

    pub(super) fn describe(&self, common: &Common) -> Result<Described> {
        let name = self.pipeline.name();
        let unwritable = || Error::usage(format!("pipeline `{name}` cannot be written down"), "use a pipeline file");
        Ok(Described {
            name: self.name.clone(),
            pipeline: self.pipeline.to_spec().ok_or_else(unwritable)?,
            data: name_text(self.data.as_os_str().as_bytes()).into_owned(),
            files: self.files,
            samples: self.samples,
            runs: self.runs,
            run_seconds: common.run.seconds,
            threads: self.threads,
            caching: self.caching,
            shuffle_window_bytes: match self.shuffle {
                Shuffle::No => None,
                Shuffle::Window { bytes } => Some(bytes),
            },
            strategies: self.strategies.iter().map(ToString::to_string).collect(),
            storage: format!("{:?}", common.storage.storage),
            seed: common.seed,
            skip_errors: common.on_error.choice() == forebay_engine::load::OnError::Skip,
        })
    }
}

/// The strategies of these names, or all of them, and also in these formats.
fn strategies(pipeline: &Pipeline, names: &[String], formats: &[StorageFormat]) -> Result<Vec<Strategy>> {
    if names.is_empty() {
        return Ok(Strategy::all(pipeline, formats));
    }
    let mut found = Vec::new();
    for name in names {
        let strategy = Strategy::parse(pipeline, name)?;
        let others = formats.iter().filter_map(|&format| Strategy::new(pipeline, strategy.split.clone(), format).ok());
        found.extend(std::iter::once(strategy.clone()).chain(others));
    }
    Ok(found)
}

impl Kind {
    /// Its runs. What is made for them goes below `folder`.
    pub(super) fn runs(&self, folder: &Path) -> Result<Vec<PlannedRun>> {
        match self {
            Self::Strategies(usual) => Ok(vec![PlannedRun::new("strategies", &usual.on, usual.threads.count())?]),
            Self::Caching(usual) => {
                let run = PlannedRun::new("", &usual.on, usual.threads.count())?;
                let kinds =
                    [("none", Caching::None), ("system", Caching::System), ("application", Caching::Application)];
                let cached = |(name, caching): (&str, Caching)| {
                    // With the page cache the first run fills it and does not count.
                    let runs = run.runs.saturating_add(u32::from(caching == Caching::System));
                    PlannedRun { name: name.to_owned(), caching, runs, ..run.clone() }
                };
                Ok(kinds.map(cached).to_vec())
            }
            Self::Compression(compression) => compression.runs(),
            Self::Parallelism(parallelism) => {
                let threads = if parallelism.threads.is_empty() {
                    let cores = forebay_engine::cores();
                    (0..10).map(|power| 1 << power).take_while(|&threads| threads <= cores.max(2)).collect()
                } else {
                    parallelism.threads.iter().map(|&threads| threads as usize).collect::<Vec<_>>()
                };
                threads
                    .iter()
                    .map(|count| PlannedRun::new(&format!("threads-{count}"), &parallelism.on, *count))
                    .collect()
            }
            Self::SampleCount(counting) => {
                let run = PlannedRun::new("", &counting.usual.on, counting.usual.threads.count())?;
                let (files, _) = run.files;
                if let Some(count) = counting.counts.iter().find(|&&count| count > files) {
                    return Err(Error::usage(
                        format!("{count} samples are asked for, but there are {files} files"),
                        "ask for fewer",
                    ));
                }
                let all = run.samples.min(files);
                let mut counts = counting.counts.clone();
                if counts.is_empty() {
                    counts.extend([8, 4, 2, 1].map(|part| (all / part).max(1)));
                    // Of few files, some parts are as small.
                    counts.dedup();
                }
                let counted =
                    |&samples: &u64| PlannedRun { name: format!("samples-{samples}"), samples, ..run.clone() };
                Ok(counts.iter().map(counted).collect())
            }
            Self::SampleSize(sizes) => sizes.runs(folder),
            Self::Shuffle(shuffling) => {
                let run = PlannedRun::new("in-order", &shuffling.usual.on, shuffling.usual.threads.count())?;
                let window = |&bytes: &u64| PlannedRun {
                    name: format!("window-{}", units::typed_bytes(bytes)),
                    shuffle: Shuffle::Window { bytes },
                    ..run.clone()
                };
                Ok(std::iter::once(run.clone()).chain(shuffling.windows.iter().map(window)).collect())
            }
            Self::AddStep(add) => add.runs(),
        }
    }
}

impl Compression {
    /// A run for each data set, over all splits and compressions.
    fn runs(&self) -> Result<Vec<PlannedRun>> {
        let formats = self.compressions.iter().map(|name| name.parse()).collect::<Result<Vec<StorageFormat>, _>>()?;
        let usual = &self.usual;
        let others = self.also.iter().map(|also| {
            let (pipeline, data) = (also.pipeline.clone(), also.data.clone());
            On { pipeline, data, ..usual.on.clone() }
        });
        let mut runs = Vec::new();
        for (number, on) in std::iter::once(usual.on.clone()).chain(others).enumerate() {
            // Not by the pipeline's name: a pipeline file chooses names, and must not choose files.
            let name = if number == 0 { "compression".to_owned() } else { format!("compression-{}", number + 1) };
            let mut run = PlannedRun::new(&name, &on, usual.threads.count())?;
            run.strategies = strategies(&run.pipeline, &on.strategies, &formats)?;
            run.strategies.retain(|strategy| !strategy.split.keeps_files());
            runs.push(run);
        }
        Ok(runs)
    }
}

impl SampleSize {
    /// A run for each size, on tensors of random numbers.
    fn runs(&self, folder: &Path) -> Result<Vec<PlannedRun>> {
        if self.total == 0 {
            return Err(Error::usage("`--total 0` leaves nothing to measure", "say how much data, as `--total 100MB`"));
        }
        let run = |&sample_bytes: &u64| -> Result<PlannedRun> {
            let tensors = TensorKind { sample_bytes, dtype: self.dtype.into() };
            let name = format!("size-{}", units::typed_bytes(sample_bytes));
            let samples = (self.total / sample_bytes.max(1)).max(1);
            let folder = folder.join(format!(".data-{name}"));
            let order = Order { domain: Domain::Synthetic, folder, seed: self.common.seed, samples, tensors };
            let pipeline = Pipeline::from_toml("synthetic", &forebay_demo::synthetic_text(tensors))?;
            Ok(PlannedRun {
                name,
                strategies: strategies(&pipeline, &[], &[])?,
                pipeline,
                data: order.folder.join(order.domain.folder_name()),
                reach: Reach::Root,
                files: (0, 0),
                order: Some(order),
                samples,
                runs: self.common.runs,
                threads: self.threads.count(),
                caching: Caching::None,
                shuffle: Shuffle::No,
            })
        };
        self.sizes.iter().map(run).collect()
    }
}

/// Data that was made for a run; removed when this is dropped.
pub(super) struct MadeFolder {
    data: PathBuf,
    _scratch: ScratchFolder,
}

impl MadeFolder {
    /// The folder with the data.
    pub(super) fn data(&self) -> &PathBuf {
        &self.data
    }
}

impl AddStep {
    /// The pipeline as it is, and with the step before and after another.
    fn runs(&self) -> Result<Vec<PlannedRun>> {
        let usual = &self.usual;
        let without = PlannedRun::new("without", &usual.on, usual.threads.count())?;
        let step: StepSpec = self.step.parse()?;
        let pipeline = &without.pipeline;
        let names: Vec<&str> = pipeline.steps().iter().map(|step| step.name.as_str()).collect();
        let at = names.iter().position(|name| *name == self.at).ok_or_else(|| {
            Error::usage(
                format!("pipeline `{}` has no step `{}`", pipeline.name(), self.at),
                format!("one of {}", names.join(", ")),
            )
        })?;
        let mut runs = vec![without.clone()];
        for (side, index) in [("before", at), ("after", at + 1)] {
            let mut spec = pipeline.to_spec().expect("read from a file or ready, so it can be written down");
            spec.name = format!("{}-{side}-{}", spec.name, self.at);
            spec.steps.insert(index, step.clone());
            let pipeline = Pipeline::from_spec(&spec)?;
            runs.push(PlannedRun {
                name: format!("{side}-{}", self.at),
                strategies: strategies(&pipeline, &usual.on.strategies, &[])?,
                pipeline,
                ..without.clone()
            });
        }
        Ok(runs)
    }
}
