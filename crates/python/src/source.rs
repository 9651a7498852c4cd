//! Where samples come from: a data set, or a folder of files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_engine::analyze::open_data;
use forebay_engine::data::{LabelValue, ListingOptions, MixManifest, matching};
use forebay_engine::load::{CachePolicy, Online};
use forebay_engine::source::{Files, Interleaved, Mixed, Shards, Source as EngineSource};
use forebay_engine::{Error, Result, StorageChoice};
use forebay_pipeline::DeviceDecoding;
use forebay_storage::{CachedStorage, Folder, Storage};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::files::FilesRequest;
use crate::function::Functions;
use crate::pipeline::Pipeline;
use crate::turns::Work;
use crate::work::on_error;

/// What samples come from, opened.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Source {
    pub(crate) inner: Arc<dyn EngineSource>,
    /// The functions that its steps name.
    pub(crate) functions: Functions,
    manifest: Option<String>,
    /// How many samples each of several data sets has.
    pub(crate) counts: Option<Vec<u64>>,
}

/// What a device makes of a field.
type OnDevice = (String, usize, bool, Option<(usize, usize)>, Option<(Vec<f32>, Vec<f32>)>, &'static str, bool);

/// A label as Python has it.
#[derive(IntoPyObject)]
pub(crate) enum KnownLabel {
    Int(i64),
    Float(f32),
}

/// The storage of this name, as a cache in memory wants it, with a cache of blocks on disk where one is asked for.
fn open_storage(storage: &str, cache: &str, block_cache: Option<(PathBuf, u64)>) -> Result<Arc<dyn Storage>> {
    let storage = cache.parse::<CachePolicy>()?.open(&storage.parse::<StorageChoice>()?)?;
    Ok(match block_cache {
        Some((folder, bytes_max)) => Arc::new(CachedStorage::new(storage, &folder, bytes_max)?),
        None => storage,
    })
}

#[pymethods]
impl Source {
    /// The data set in a folder.
    #[staticmethod]
    #[pyo3(signature = (folder, storage, cache, skip_errors, functions = None, scans = None, block_cache = None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's")]
    fn dataset(
        py: Python<'_>,
        folder: PathBuf,
        storage: &str,
        cache: &str,
        skip_errors: bool,
        functions: Option<&Bound<'_, PyDict>>,
        scans: Option<u64>,
        block_cache: Option<(PathBuf, u64)>,
    ) -> PyResult<Self> {
        let functions = Functions::of(functions)?;
        let open = || -> Result<(Arc<dyn EngineSource>, serde_json::Result<String>)> {
            let storage = open_storage(storage, cache, block_cache)?;
            if MixManifest::read(&Folder::new(Arc::clone(&storage), &folder))?.is_some() {
                if scans.is_some() {
                    return Err(Error::Usage {
                        problem: "`scans` is for a data set of progressive records, not for one in several formats"
                            .to_owned(),
                        remedy: "omit it".to_owned(),
                    });
                }
                let mixed = Mixed::open(&folder, &storage, on_error(skip_errors))?;
                let manifest = serde_json::to_string(mixed.manifest());
                return Ok((Arc::new(mixed), manifest));
            }
            let shards = Shards::open(&folder, storage, on_error(skip_errors))?;
            let shards = match scans {
                Some(scans) => shards.with_scans(scans)?,
                None => shards,
            };
            let manifest = serde_json::to_string(shards.dataset().manifest());
            Ok((Arc::new(shards), manifest))
        };
        let (inner, manifest) = py.detach(open).map_err(|error| errors::engine(py, &error, None))?;
        let manifest = Some(manifest.expect("a manifest has text keys and plain values"));
        Ok(Self { inner, functions, manifest, counts: None })
    }

    /// Whatever there is to look at: a data set, images, tar or TFRecord shards.
    #[staticmethod]
    fn data(py: Python<'_>, data: PathBuf, skip_errors: bool) -> PyResult<Self> {
        let open = || -> Result<Arc<dyn EngineSource>> {
            open_data(&data, &StorageChoice::Local.open(0)?, on_error(skip_errors))
        };
        let inner = py.detach(open).map_err(|error| errors::engine(py, &error, None))?;
        Ok(Self { inner, functions: Functions::of(None)?, manifest: None, counts: None })
    }

    /// The files of a folder, through a full pipeline.
    #[staticmethod]
    #[pyo3(signature = (pipeline, storage, cache, files, block_cache = None))]
    fn files(
        py: Python<'_>,
        pipeline: &Pipeline,
        storage: &str,
        cache: &str,
        files: FilesRequest,
        block_cache: Option<(PathBuf, u64)>,
    ) -> PyResult<Self> {
        let (pipeline, functions) = (pipeline.inner.clone(), pipeline.functions.clone());
        let (source, work) = (pipeline.source().clone(), Work::new());
        let open = |folder: &Path, options: &ListingOptions<'_>| -> Result<Files> {
            let storage = open_storage(storage, cache, block_cache)?;
            Files::open(pipeline, folder, storage, options)
        };
        let open = || work.await_it(|| files.listed(&source, &functions, &work, open));
        let files = py.detach(open).map_err(|error| errors::engine(py, &error, None))?;
        Ok(Self { inner: Arc::new(files), functions, manifest: None, counts: None })
    }

    /// Several of them as one.
    #[staticmethod]
    fn interleaved(py: Python<'_>, sources: Vec<Py<Self>>) -> PyResult<Self> {
        let inner = sources.iter().map(|source| Arc::clone(&source.get().inner)).collect();
        let interleaved = Interleaved::new(inner).map_err(|error| errors::engine(py, &error, None))?;
        let functions = Functions::joined(sources.iter().map(|source| &source.get().functions));
        let counts = Some(interleaved.counts());
        Ok(Self { inner: Arc::new(interleaved), functions, manifest: None, counts })
    }

    /// What a device makes of the fields that it decodes: each with its name, its channels, whether 16 bits stay, height and width of what is cut
    /// out of the middle, factors and offsets, element type, and whether channels come first.
    fn on_device(&self, py: Python<'_>) -> PyResult<Vec<OnDevice>> {
        let shared = Online::on_device(&*self.inner, Clone::clone);
        let (_, decodings) = shared.map_err(|error| errors::engine(py, &error, None))?;
        let decoding = |decoding: DeviceDecoding| {
            let DeviceDecoding { field, channels, keep_depth, center_crop, affine, dtype, channels_first } = decoding;
            (field, channels, keep_depth, center_crop.map(Into::into), affine, dtype.name(), channels_first)
        };
        Ok(decodings.into_iter().map(decoding).collect())
    }

    /// The key and the label of each sample, in order: as they are listed, or read from their records.
    fn keys_and_labels(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<KnownLabel>)>> {
        let found = py.detach(|| self.inner.keys_and_labels()).map_err(|error| errors::engine(py, &error, None))?;
        let known = |label| match label {
            LabelValue::Int(number) => KnownLabel::Int(number),
            LabelValue::Float(number) => KnownLabel::Float(number),
        };
        Ok(found.into_iter().map(|(key, label)| (key, label.map(known))).collect())
    }

    /// The numbers of the samples that meet a condition, on the columns of a table too if one is given.
    #[pyo3(signature = (condition, table = None))]
    fn matching(&self, py: Python<'_>, condition: &str, table: Option<PathBuf>) -> PyResult<Vec<u64>> {
        let find = || -> Result<Vec<u64>> {
            let storage = StorageChoice::Local.open(0)?;
            matching(&*self.inner, condition, table.as_deref().map(|path| (&*storage, path)))
        };
        py.detach(find).map_err(|error| errors::engine(py, &error, None))
    }

    fn __len__(&self) -> usize {
        self.inner.samples() as usize
    }

    /// The names of the classes; a label is an index into this list.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    /// What is stored: `unprocessed` for files.
    #[getter]
    fn strategy(&self) -> String {
        self.inner.formats()
    }

    /// The pipeline.
    #[getter]
    fn pipeline(&self) -> Pipeline {
        Pipeline { inner: self.inner.pipeline().clone(), functions: self.functions.clone() }
    }

    /// The manifest as JSON; `None` for files.
    #[getter]
    fn manifest(&self) -> Option<&str> {
        self.manifest.as_deref()
    }
}
