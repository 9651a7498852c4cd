//! Where samples come from: a data set, or a folder of files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_engine::data::ListingOptions;
use forebay_engine::source::{Files, Shards, Source as EngineSource};
use forebay_engine::{Result, StorageChoice};
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
}

#[pymethods]
impl Source {
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
        let open = || -> Result<Shards> {
            Shards::open(&folder, storage.parse::<StorageChoice>()?.open(0)?, on_error(skip_errors))
        };
        let shards = py.detach(open).map_err(|error| errors::engine(py, &error, None))?;
        let manifest = serde_json::to_string(shards.dataset().manifest());
        let manifest = Some(manifest.expect("a manifest has text keys and plain values"));
        Ok(Self { inner: Arc::new(shards), functions, manifest })
    }

    /// The files of a folder, through a whole pipeline.
    #[staticmethod]
    fn files(py: Python<'_>, pipeline: &Pipeline, storage: &str, files: FilesRequest) -> PyResult<Self> {
        let (pipeline, functions) = (pipeline.inner.clone(), pipeline.functions.clone());
        let (source, work) = (pipeline.source().clone(), Work::new());
        let open = |folder: &Path, options: &ListingOptions<'_>| -> Result<Files> {
            let storage = storage.parse::<StorageChoice>()?.open(0)?;
            Files::open(pipeline, folder, storage, options)
        };
        let open = || work.await_it(|| files.listed(&source, &functions, &work, open));
        let files = py.detach(open).map_err(|error| errors::engine(py, &error, None))?;
        Ok(Self { inner: Arc::new(files), functions, manifest: None })
    }

    fn __len__(&self) -> usize {
        self.inner.samples() as usize
    }

    /// The names of the classes; a label is an index into this list.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    /// What is kept: `unprocessed` for files.
    #[getter]
    fn strategy(&self) -> String {
        self.inner.strategy().to_string()
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
