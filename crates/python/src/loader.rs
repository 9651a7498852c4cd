//! A source, and how its epochs are loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_engine::load::{
    CachePolicy, Even, LoadOptions, Loader as EngineLoader, Online, STREAMS, Sampling, Shares, Shuffle, State,
    WINDOW_BYTES,
};
use forebay_engine::memory::default_memory_bytes;
use forebay_plan::Profile;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::epoch::Epoch;
use crate::errors;
use crate::function::Functions;
use crate::source::Source;
use crate::turns::Work;
use crate::work::on_error;

/// A source, and how its epochs are loaded.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Loader {
    inner: EngineLoader,
    functions: Functions,
    pad_value: Option<f64>,
    decode_on_device: bool,
}

/// How to load.
#[expect(clippy::struct_excessive_bools, reason = "the options as Python has them")]
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LoadRequest {
    batch_size: usize,
    threads: usize,
    prefetch: usize,
    drop_last: bool,
    even: String,
    skip_errors: bool,
    seed: u64,
    shuffle: bool,
    shuffle_window: Option<u64>,
    streams: Option<u64>,
    subset: Option<Vec<u64>>,
    weights: Option<Vec<f64>>,
    replacement: bool,
    num_samples: Option<u64>,
    repeats: u64,
    /// How probable each data set is, where there are several.
    shares: Option<Vec<f64>>,
    rank: u64,
    world_size: u64,
    /// What stays in memory from one epoch to the next, by name.
    cache: String,
    /// A profile as JSON, by which a cache is chosen.
    profile: Option<String>,
    /// The memory budget; `None`: what suits the machine.
    memory_bytes: Option<u64>,
    /// What tensors of different shapes are padded with; `None`: they stay a list.
    pad_value: Option<f64>,
    /// Whether images that are stored as L3 are left encoded, for a device to decode.
    decode_on_device: bool,
}

impl Loader {
    /// A loader of other samples.
    fn like_this(&self, inner: EngineLoader) -> Self {
        let Self { functions, pad_value, decode_on_device, .. } = self;
        Self { inner, functions: functions.clone(), pad_value: *pad_value, decode_on_device: *decode_on_device }
    }
}

#[pymethods]
impl Loader {
    #[new]
    fn new(py: Python<'_>, source: &Source, request: LoadRequest) -> PyResult<Self> {
        let cache = request.cache.parse::<CachePolicy>().map_err(|error| errors::engine(py, &error, None))?;
        let profile = request.profile.map(|text| Profile::parse(&text)).transpose();
        let profile = profile.map_err(|error| errors::plan(py, &error))?;
        let options = LoadOptions {
            batch_size: request.batch_size,
            threads: request.threads,
            prefetch: request.prefetch,
            shuffle: if request.shuffle {
                Shuffle::Window { bytes: request.shuffle_window.unwrap_or(WINDOW_BYTES) }
            } else {
                Shuffle::No
            },
            streams: request.streams.unwrap_or(STREAMS),
            sampling: Sampling {
                subset: request.subset.map(Into::into),
                weights: request.weights.map(Into::into),
                replacement: request.replacement,
                samples: request.num_samples,
                repeats: request.repeats,
                shares: shares(py, source, request.shares)?,
            },
            seed: request.seed,
            rank: request.rank,
            world_size: request.world_size,
            drop_last: request.drop_last,
            even: match request.even.as_str() {
                "drop" => Even::Drop,
                "pad" => Even::Pad,
                _ => Even::None,
            },
            on_error: on_error(request.skip_errors),
            cache,
            profile: profile.map(Arc::new),
            memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        };
        let inner = EngineLoader::new(Arc::clone(&source.inner), options);
        let inner = inner.map_err(|error| errors::engine(py, &error, None))?;
        let (pad_value, decode_on_device) = (request.pad_value, request.decode_on_device);
        Ok(Self { inner, functions: source.functions.clone(), pad_value, decode_on_device })
    }

    /// The state at the beginning of an epoch, as JSON.
    fn beginning_of(&self, py: Python<'_>, epoch: u64) -> String {
        let state = py.detach(|| self.inner.beginning_of(epoch));
        serde_json::to_string(&state).expect("a state has text keys and plain values")
    }

    /// That a state is one of this loader's.
    fn check(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        let state = parse(state)?;
        py.detach(|| state.check(&self.inner)).map_err(|error| errors::engine(py, &error, None))
    }

    /// How many batches remain after that many samples of an epoch; `None` if unknown.
    fn batches_from(&self, samples_seen: u64) -> Option<u64> {
        self.inner.batches_from(samples_seen)
    }

    /// How many samples an epoch has, of all ranks.
    #[getter]
    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    /// What is in the cache: samples, bytes, hits, the stage at which they are cached, which cache it is, and why.
    #[getter]
    fn cached(&self) -> (usize, u64, u64, Option<String>, String, Option<String>) {
        match self.inner.cached() {
            Some(cached) => (cached.samples, cached.bytes, cached.hits, cached.stage, cached.policy, cached.reason),
            None => (0, 0, 0, None, self.inner.options().cache.name().to_owned(), None),
        }
    }

    /// How many bytes an epoch of all ranks reads.
    #[getter]
    fn data_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let blocks = py.detach(|| self.inner.source().blocks()).map_err(|error| errors::engine(py, &error, None))?;
        Ok(blocks.iter().map(|block| block.bytes).sum())
    }

    /// A loader like this of samples that are in memory, the first ones again and again; with another number of threads, if one is given.
    #[pyo3(signature = (threads = None))]
    fn in_memory(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<Self> {
        let mut options = self.inner.options().clone();
        options.threads = threads.unwrap_or(options.threads);
        let made = py.detach(|| forebay_engine::diagnose::in_memory(self.inner.source(), &options));
        let inner = made.map_err(|error| errors::engine(py, &error, None))?;
        Ok(self.like_this(inner))
    }

    /// A loader like this whose epochs are long: its samples, again and again.
    fn repeated(&self, py: Python<'_>) -> PyResult<Self> {
        let made = py.detach(|| forebay_engine::diagnose::repeated(self.inner.source(), self.inner.options()));
        let inner = made.map_err(|error| errors::engine(py, &error, None))?;
        Ok(self.like_this(inner))
    }

    /// What readers reach alone in about `seconds`: a rate as JSON.
    fn reading(&self, py: Python<'_>, seconds: f64) -> PyResult<String> {
        let (source, options) = (self.inner.source(), self.inner.options());
        let rate = py.detach(|| forebay_engine::diagnose::reading(source, options, seconds, &()));
        let rate = rate.map_err(|error| errors::engine(py, &error, None))?;
        Ok(serde_json::to_string(&rate).expect("a rate has finite numbers"))
    }

    /// Takes what it reads out of the page cache.
    fn drop_page_cache(&self, py: Python<'_>) -> PyResult<()> {
        let paths = self.inner.source().paths();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let dropped = py.detach(|| -> forebay_engine::Result<()> {
            forebay_engine::StorageChoice::Local.open(0)?.drop_cache(&paths)?;
            Ok(())
        });
        dropped.map_err(|error| errors::engine(py, &error, None))
    }

    /// Starts an epoch, or what is left of it.
    fn start(&self, py: Python<'_>, state: &str) -> PyResult<Epoch> {
        let state = parse(state)?;
        let root = self.inner.source().folder().map(Path::to_owned);
        let work = Work::new();
        let start = || {
            let source = self.inner.source();
            let bind = |pipeline: &_| self.functions.bind(pipeline, &work);
            let online =
                if self.decode_on_device { Online::on_device(&**source, bind)?.0 } else { Online::of(&**source, bind) };
            self.inner.start_with(online, &state)
        };
        py.detach(start)
            .map_err(|error| errors::engine(py, &error, root.as_deref()))
            .map(|epoch| Epoch::new(epoch, self.pad_value, work, root))
    }
}

/// How much of an epoch comes of each of several data sets.
fn shares(py: Python<'_>, source: &Source, weights: Option<Vec<f64>>) -> PyResult<Option<Shares>> {
    let made = match (&source.counts, weights) {
        (Some(counts), Some(weights)) => Shares::new(counts, &weights).map(Some),
        _ => Ok(None),
    };
    made.map_err(|error| errors::engine(py, &error, None))
}

fn parse(state: &str) -> PyResult<State> {
    serde_json::from_str(state).map_err(|error| PyValueError::new_err(error.to_string()))
}
