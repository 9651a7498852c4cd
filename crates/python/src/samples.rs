//! Where samples come from: a data set, or a folder of files.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use forebay_engine::data::{Dataset, Listing};
use forebay_engine::load::{Cache, FromStorage, LoadOptions, Loader, Online, Schedule, Shuffle, Supply};
use forebay_engine::memory::default_memory_bytes;
use forebay_engine::{Result, StorageChoice};
use forebay_pipeline::{Action, Draw, Pipeline as RustPipeline, Strategy};
use forebay_storage::Storage;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::epoch::Epoch;
use crate::errors;
use crate::function::Functions;
use crate::pipeline::Pipeline;
use crate::turns::Work;
use crate::work::{on_error, reach};

/// What samples come from, opened.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Samples {
    origin: Origin,
    pipeline: RustPipeline,
    functions: Functions,
    strategy: Strategy,
    storage: Arc<dyn Storage>,
    /// Made by the first epoch that wants one.
    cache: OnceLock<Arc<Cache>>,
}

enum Origin {
    Shards(Arc<Dataset>),
    Files(Arc<Listing>),
}

/// How to load one epoch.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct EpochRequest {
    batch_size: usize,
    threads: usize,
    prefetch: usize,
    drop_last: bool,
    skip_errors: bool,
    seed: u64,
    epoch: u64,
    /// `None`: as they lie.
    window_bytes: Option<u64>,
    rank: u64,
    world_size: u64,
    /// How many batches of the epoch were seen already.
    pub(crate) batches_seen: u64,
    /// How many bytes of samples are kept in memory from one epoch to the next; 0: none.
    cache_bytes: u64,
    /// The memory budget; `None`: what suits the machine.
    memory_bytes: Option<u64>,
    /// What tensors of different shapes are padded with; `None`: they stay a list.
    pub(crate) pad_value: Option<f64>,
}

/// An epoch that was started.
pub(crate) struct Started {
    pub(crate) loader: Loader,
    /// How many batches come before the loader's first.
    pub(crate) batches_before: u64,
}

#[pymethods]
impl Samples {
    /// The data set in a folder.
    #[staticmethod]
    #[pyo3(signature = (folder, storage, skip_errors, functions = None))]
    fn dataset(
        py: Python<'_>,
        folder: PathBuf,
        storage: &str,
        skip_errors: bool,
        functions: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let functions = Functions::of(functions)?;
        let open = || -> Result<Self> {
            let storage = storage.parse::<StorageChoice>()?.open(0)?;
            let dataset = Arc::new(Dataset::open_on_error(&folder, on_error(skip_errors))?);
            let (pipeline, strategy) = (dataset.pipeline().clone(), dataset.manifest().strategy.clone());
            let cache = OnceLock::new();
            Ok(Self { origin: Origin::Shards(dataset), pipeline, functions, strategy, storage, cache })
        };
        py.detach(open).map_err(|error| errors::engine(py, &error, None))
    }

    /// The files of a folder, through a whole pipeline.
    #[staticmethod]
    fn files(
        py: Python<'_>,
        pipeline: &Pipeline,
        folder: PathBuf,
        storage: &str,
        skip_errors: bool,
        allow_outside: bool,
    ) -> PyResult<Self> {
        let (pipeline, functions) = (pipeline.inner.clone(), pipeline.functions.clone());
        let open = || -> Result<Self> {
            let storage = storage.parse::<StorageChoice>()?.open(0)?;
            let listing = Listing::scan_with(pipeline.source(), &folder, on_error(skip_errors), reach(allow_outside))?;
            let strategy = Strategy::parse(&pipeline, &pipeline.splits()[0].name)?;
            let cache = OnceLock::new();
            Ok(Self { origin: Origin::Files(Arc::new(listing)), pipeline, functions, strategy, storage, cache })
        };
        py.detach(open).map_err(|error| errors::engine(py, &error, None))
    }

    fn __len__(&self) -> usize {
        match &self.origin {
            Origin::Shards(dataset) => dataset.manifest().samples as usize,
            Origin::Files(listing) => listing.len(),
        }
    }

    /// A checksum of what the samples are and of what is done to them.
    #[getter]
    fn identity(&self) -> String {
        match &self.origin {
            Origin::Shards(dataset) => dataset.manifest().identity.clone(),
            Origin::Files(listing) => listing_identity(listing, &self.pipeline),
        }
    }

    /// The names of the classes; a label is a place in this list.
    #[getter]
    fn classes(&self) -> Vec<String> {
        match &self.origin {
            Origin::Shards(dataset) => dataset.manifest().classes.clone(),
            Origin::Files(listing) => listing.classes().to_vec(),
        }
    }

    /// What is kept: `unprocessed` for files.
    #[getter]
    fn strategy(&self) -> String {
        self.strategy.to_string()
    }

    /// The pipeline.
    #[getter]
    fn pipeline(&self) -> Pipeline {
        Pipeline { inner: self.pipeline.clone(), functions: self.functions.clone() }
    }

    /// The manifest as JSON; `None` for files.
    #[getter]
    fn manifest(&self) -> Option<String> {
        match &self.origin {
            Origin::Shards(dataset) => {
                Some(serde_json::to_string(dataset.manifest()).expect("a manifest has text keys and plain values"))
            }
            Origin::Files(_) => None,
        }
    }

    /// Whether a step may make several samples of one, so that nobody knows how many there will be.
    #[getter]
    fn expands(&self) -> bool {
        self.strategy.online(&self.pipeline).0.iter().any(|step| matches!(step.action, Action::Expand(_)))
    }

    /// What is in the cache: samples, bytes, and how often one was found there.
    #[getter]
    fn cached(&self) -> (usize, u64, u64) {
        self.cache.get().map_or((0, 0, 0), |cache| (cache.len(), cache.bytes(), cache.hits()))
    }

    /// Starts an epoch, or what is left of it.
    fn start(&self, py: Python<'_>, request: EpochRequest) -> PyResult<Epoch> {
        let root = match &self.origin {
            Origin::Files(listing) => Some(listing.root().to_owned()),
            Origin::Shards(_) => None,
        };
        let work = Work::new();
        py.detach(|| self.run(&request, &work))
            .map_err(|error| errors::engine(py, &error, root.as_deref()))
            .map(|started| Epoch::new(started, &request, work, root))
    }
}

impl Samples {
    fn run(&self, request: &EpochRequest, work: &Work) -> Result<Started> {
        // Where a step makes several samples of one, nobody knows which batch begins with which sample: such an epoch is
        // resumed by doing it again up to where it was.
        let batches_before = if self.expands() { 0 } else { request.batches_seen };
        let start = batches_before.saturating_mul(request.batch_size as u64);
        let shuffle = request.window_bytes.map_or(Shuffle::No, |bytes| Shuffle::Window { bytes });
        let order = |blocks| {
            let whole = Schedule::new(blocks, shuffle, request.seed, request.epoch);
            whole.for_rank(request.rank, request.world_size).starting_at(start)
        };
        let storage = Arc::clone(&self.storage);
        let cache = (request.cache_bytes > 0)
            .then(|| Arc::clone(self.cache.get_or_init(|| Arc::new(Cache::new(request.cache_bytes)))));
        let supply = match &self.origin {
            Origin::Shards(dataset) => FromStorage::shards(Arc::clone(dataset), storage, order)?,
            Origin::Files(listing) => FromStorage::source(Arc::clone(listing), storage, order),
        };
        let supply: Arc<dyn Supply> = Arc::new(match &cache {
            Some(cache) => supply.cached(Arc::clone(cache)),
            None => supply,
        });
        let options = LoadOptions {
            batch_size: request.batch_size,
            threads: request.threads,
            prefetch: request.prefetch,
            drop_last: request.drop_last,
            on_error: on_error(request.skip_errors),
            draw: Draw { seed: request.seed, epoch: request.epoch },
            cache,
            memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        };
        let online = Online::after(&self.functions.bind(&self.pipeline, work), &self.strategy);
        Ok(Started { loader: Loader::start(supply, online, options)?, batches_before })
    }
}

/// A checksum of the files' names, sizes and labels and of the pipeline, not of where the folder is.
fn listing_identity(listing: &Listing, pipeline: &RustPipeline) -> String {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    let spec = pipeline.to_spec().and_then(|spec| serde_json::to_vec(&spec).ok());
    hash.update(&spec.unwrap_or_default());
    for file in listing.entries() {
        hash.update(file.key.as_bytes());
        hash.update(&[0]);
        hash.update(&file.bytes.to_le_bytes());
        hash.update(&file.label.unwrap_or(-1).to_le_bytes());
    }
    format!("{:016x}", hash.digest())
}
