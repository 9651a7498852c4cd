//! Errors as Python's: each kind of error is an exception of `forebay._errors`, with its location as far as known.

use std::path::Path;

use forebay_codec::Error as CodecError;
use forebay_engine::Error as EngineError;
use forebay_engine::data::Skipped;
use forebay_error::{ErrorContext, ErrorKind};
use forebay_pipeline::Error as PipelineError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::raised::raised_by;

/// The name of the exception that errors of this kind are.
fn exception(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "MissingFileError",
        ErrorKind::PermissionDenied => "AccessError",
        ErrorKind::Io => "StorageError",
        ErrorKind::Data => "DataError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::Usage => "UsageError",
        ErrorKind::Pipeline => "PipelineError",
        // What is cancelled is raised as what cancelled it, by whoever did: nobody else should see it.
        ErrorKind::Cancelled | ErrorKind::Internal => "InternalError",
        _ => "Error",
    }
}

/// Every kind of error, and the name of its exception: for the test that each has one.
#[pyfunction]
pub(crate) fn exceptions() -> Vec<(String, &'static str)> {
    ErrorKind::ALL.iter().map(|&kind| (format!("{kind:?}"), exception(kind))).collect()
}

/// An error of the engine; the user's own, where a function of theirs raised one. `root` is the folder that keys are paths
/// below, where samples are files.
pub(crate) fn engine(py: Python<'_>, error: &EngineError, root: Option<&Path>) -> PyErr {
    if let Some(raised) = raised_by(error) {
        return raised.to_exception(py);
    }
    let context = error.context();
    let file = root.zip(context.key).map(|(root, key)| root.join(key));
    let path = context.path.or(file.as_deref());
    raise(py, error.kind(), &error.to_string(), ErrorContext { path, ..context })
}

/// An error of a pipeline.
pub(crate) fn pipeline(py: Python<'_>, error: &PipelineError) -> PyErr {
    raise(py, error.kind(), &error.to_string(), error.context())
}

/// An error of the planner.
pub(crate) fn plan(py: Python<'_>, error: &forebay_plan::Error) -> PyErr {
    raise(py, error.kind(), &error.to_string(), ErrorContext::default())
}

/// An error of a codec.
pub(crate) fn codec(py: Python<'_>, error: &CodecError) -> PyErr {
    raise(py, error.kind(), &error.to_string(), ErrorContext::default())
}

/// An epoch without any sample: how many were skipped, and why the first one was.
pub(crate) fn all_skipped(py: Python<'_>, samples: u64, first: Skipped, root: Option<&Path>) -> PyErr {
    let Skipped { key, reason, .. } = first;
    let path = root.map(|root| root.join(&key));
    let message = format!(
        "not one of the {samples} samples could be read and processed, and all were skipped; the first: {reason}\n\
         hint: look at what they have in common: the pipeline may be for other data"
    );
    let (key, path) = (Some(key.as_str()), path.as_deref());
    raise(py, ErrorKind::Data, &message, ErrorContext { key, path, ..ErrorContext::default() })
}

/// What was asked for makes no sense.
pub(crate) fn usage(py: Python<'_>, message: &str) -> PyErr {
    raise(py, ErrorKind::Usage, message, ErrorContext::default())
}

fn raise(py: Python<'_>, kind: ErrorKind, message: &str, context: ErrorContext<'_>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let exception = py.import("forebay._errors")?.getattr(exception(kind))?;
        let fields = PyDict::new(py);
        fields.set_item("path", context.path)?;
        fields.set_item("shard", context.shard)?;
        fields.set_item("record", context.record)?;
        fields.set_item("offset", context.offset)?;
        fields.set_item("key", context.key)?;
        fields.set_item("step", context.step)?;
        fields.set_item("errno", context.errno)?;
        Ok(PyErr::from_value(exception.call((message,), Some(&fields))?))
    };
    // What goes wrong here is itself an exception, and says more than nothing.
    made().unwrap_or_else(|error| error)
}
