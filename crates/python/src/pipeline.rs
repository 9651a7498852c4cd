//! Pipelines.

use std::path::Path;

use forebay_pipeline as rust;
use forebay_pipeline::steps::with_absolute_files;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::function::Functions;

/// A pipeline, checked. Cannot be changed.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Pipeline {
    pub(crate) inner: rust::Pipeline,
    /// Those that its steps name, as far as they were given.
    pub(crate) functions: Functions,
}

#[pymethods]
impl Pipeline {
    /// The pipeline that this JSON spells, with the keys of a pipeline file, and the functions that its steps name.
    #[staticmethod]
    #[pyo3(signature = (text, functions = None))]
    fn from_json(py: Python<'_>, text: &str, functions: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let spec: rust::PipelineSpec = serde_json::from_str(text)
            .map_err(|error| errors::usage(py, &format!("cannot read the pipeline: {error}")))?;
        let inner = rust::Pipeline::from_spec(&spec).map_err(|error| errors::pipeline(py, &error))?;
        Ok(Self { inner, functions: Functions::of(functions)? })
    }

    /// The pipeline of a TOML file called `name`.
    #[staticmethod]
    fn from_toml(py: Python<'_>, name: &str, text: &str) -> PyResult<Self> {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let inner = rust::Pipeline::from_toml(name, text).and_then(|pipeline| with_absolute_files(pipeline, folder));
        let inner = inner.map_err(|error| errors::pipeline(py, &error))?;
        Ok(Self { inner, functions: Functions::default() })
    }

    /// A preset.
    #[staticmethod]
    fn preset(py: Python<'_>, name: &str) -> PyResult<Self> {
        let inner = rust::preset(name).map_err(|error| errors::pipeline(py, &error))?;
        Ok(Self { inner, functions: Functions::default() })
    }

    /// The same with parameters set: each as `step.parameter=value`.
    fn set(&self, py: Python<'_>, settings: Vec<String>) -> PyResult<Self> {
        let settings = settings.iter().map(|setting| setting.parse()).collect::<Result<Vec<_>, _>>();
        let inner = settings.and_then(|settings| self.inner.clone().with_settings(&settings));
        let inner = inner.map_err(|error| errors::pipeline(py, &error))?;
        Ok(Self { inner, functions: self.functions.clone() })
    }

    /// The names of the presets.
    #[staticmethod]
    fn preset_names() -> Vec<&'static str> {
        rust::preset_names().collect()
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Its steps: name, what a sample is after it, whether it is random.
    #[getter]
    fn steps(&self) -> Vec<(String, String, bool)> {
        let step = |(number, step): (usize, &rust::Step)| {
            (step.name.clone(), self.inner.schema_after(number + 1).to_string(), step.action.is_random())
        };
        self.inner.steps().iter().enumerate().map(step).collect()
    }

    /// What a sample is when its file has been read.
    #[getter]
    fn input(&self) -> String {
        self.inner.schema_after(0).to_string()
    }

    /// What the trainer gets: each field and its type.
    #[getter]
    fn output(&self) -> Vec<(String, String)> {
        self.inner.output().fields.iter().map(|(name, kind)| (name.clone(), kind.to_string())).collect()
    }

    /// The names of the stages at which a data set can be stored.
    #[getter]
    fn splits(&self) -> Vec<String> {
        self.inner.splits().into_iter().map(|split| split.name).collect()
    }

    /// The spec as JSON.
    fn to_json(&self) -> String {
        serde_json::to_string(&self.spec()).expect("a pipeline's spec has text keys and plain values")
    }

    /// The spec as TOML.
    fn to_toml(&self) -> String {
        toml::to_string(&self.spec()).expect("a pipeline's spec has text keys and plain values")
    }
}

impl Pipeline {
    fn spec(&self) -> rust::PipelineSpec {
        self.inner.to_spec().expect("made from a spec, the only way that Python has")
    }
}

/// What somebody may have meant who named an unknown step.
#[pyfunction]
pub(crate) fn meant_step(found: &str) -> Option<String> {
    rust::steps::meant_step(found)
}

/// What somebody may have meant who passed an argument that a function does not take, which takes `arguments`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's lists come as values")]
pub(crate) fn meant_argument(found: &str, arguments: Vec<String>) -> Option<String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    forebay_cli::meant_argument(found, &arguments)
}
