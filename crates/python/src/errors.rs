//! Errors as Python's: each class of error is an exception of `forebay._errors`, with what is known of its place.

use std::io;
use std::path::{Path, PathBuf};

use forebay_codec::Error as CodecError;
use forebay_engine::Error as EngineError;
use forebay_engine::data::Skipped;
use forebay_pipeline::{Error as PipelineError, StepError};
use forebay_plan::ErrorClass as PlanClass;
use forebay_record::ErrorClass as RecordClass;
use forebay_storage::{Error as StorageError, ErrorClass as StorageClass};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::raised::raised_by;

/// Whose fault it is: the name of the exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Data,
    Usage,
    Pipeline,
    Unsupported,
    Limit,
    Internal,
    Io(io::ErrorKind),
}

impl Class {
    fn exception(self) -> &'static str {
        match self {
            Self::Data => "DataError",
            Self::Usage => "UsageError",
            Self::Pipeline => "PipelineError",
            Self::Unsupported => "UnsupportedError",
            Self::Limit => "LimitError",
            Self::Internal => "InternalError",
            Self::Io(io::ErrorKind::NotFound) => "MissingFileError",
            Self::Io(io::ErrorKind::PermissionDenied) => "AccessError",
            Self::Io(_) => "StorageError",
        }
    }
}

/// What is known of an error beside its message.
#[derive(Debug, Default)]
struct Place {
    path: Option<PathBuf>,
    shard: Option<String>,
    record: Option<u64>,
    offset: Option<u64>,
    key: Option<String>,
    step: Option<String>,
    errno: Option<i32>,
}

/// An error of the engine; the user's own, where a function of theirs raised one. `root` is the folder that keys are paths
/// below, where samples are files.
pub(crate) fn engine(py: Python<'_>, error: &EngineError, root: Option<&Path>) -> PyErr {
    if let Some(raised) = raised_by(error) {
        return raised.to_exception(py);
    }
    let mut place = Place::default();
    let class = of_engine(error, &mut place);
    if let (None, Some(root), Some(key)) = (&place.path, root, &place.key) {
        place.path = Some(root.join(key));
    }
    raise(py, class, &error.to_string(), place)
}

/// An error of a pipeline.
pub(crate) fn pipeline(py: Python<'_>, error: &PipelineError) -> PyErr {
    let mut place = Place::default();
    let class = of_pipeline(error, &mut place);
    raise(py, class, &error.to_string(), place)
}

/// An error of the planner.
pub(crate) fn plan(py: Python<'_>, error: &forebay_plan::Error) -> PyErr {
    let class = match error.class() {
        PlanClass::Format => Class::Data,
        PlanClass::Unsupported => Class::Unsupported,
        PlanClass::Limit => Class::Limit,
        PlanClass::Usage => Class::Usage,
    };
    raise(py, class, &error.to_string(), Place::default())
}

/// An error of a codec.
pub(crate) fn codec(py: Python<'_>, error: &CodecError) -> PyErr {
    raise(py, of_codec(error), &error.to_string(), Place::default())
}

/// Not one sample came of an epoch: all of them, so many, were skipped, and this is why the first was.
pub(crate) fn all_skipped(py: Python<'_>, samples: u64, first: Skipped, root: Option<&Path>) -> PyErr {
    let Skipped { key, reason, .. } = first;
    let path = root.map(|root| root.join(&key));
    let message = format!(
        "not one of the {samples} samples could be read and processed, and all were skipped; the first: {reason}\n\
         hint: look at what they have in common: the pipeline may be for other data"
    );
    raise(py, Class::Data, &message, Place { key: Some(key), path, ..Place::default() })
}

/// What was asked for makes no sense.
pub(crate) fn usage(py: Python<'_>, message: &str) -> PyErr {
    raise(py, Class::Usage, message, Place::default())
}

fn of_engine(error: &EngineError, place: &mut Place) -> Class {
    match error {
        EngineError::Io { path, source, .. } => {
            place.path = Some(path.clone());
            of_io(source, place)
        }
        EngineError::Format { path, .. } => {
            place.path = Some(path.clone());
            Class::Data
        }
        EngineError::Usage { .. } => Class::Usage,
        EngineError::Limit { .. } => Class::Limit,
        EngineError::Storage(error) => of_storage(error, place),
        EngineError::Record(error) => of_record(error, place),
        EngineError::Pipeline(error) => of_pipeline(error, place),
        EngineError::Sample { shard, record, offset, source } => {
            let class = of_engine(source, place);
            place.shard = Some(shard.clone());
            place.record = Some(*record);
            place.offset = Some(*offset);
            class
        }
        EngineError::AllSkipped { first, .. } => {
            place.key = Some(first.key.clone());
            Class::Data
        }
        // Raised as what cancelled it, by whoever cancelled it; this is for the rest of the world.
        EngineError::Cancelled | EngineError::Internal { .. } | EngineError::Panicked { .. } => Class::Internal,
    }
}

fn of_io(source: &io::Error, place: &mut Place) -> Class {
    place.errno = source.raw_os_error();
    Class::Io(source.kind())
}

fn of_storage(error: &StorageError, place: &mut Place) -> Class {
    place.path = error.path().map(Path::to_owned);
    place.offset = error.offset();
    match error.class() {
        StorageClass::Io => {
            let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
            source.map_or(Class::Io(io::ErrorKind::UnexpectedEof), |source| of_io(source, place))
        }
        StorageClass::Unsupported => Class::Unsupported,
        StorageClass::Limit => Class::Limit,
        StorageClass::Usage => Class::Usage,
    }
}

fn of_record(error: &forebay_record::Error, place: &mut Place) -> Class {
    let found = error.place();
    place.shard = found.shard.as_deref().map(str::to_owned);
    place.record = found.record;
    place.offset = found.offset;
    match error.class() {
        RecordClass::Io => Class::Io(io::ErrorKind::Other),
        RecordClass::Format => Class::Data,
        RecordClass::Unsupported => Class::Unsupported,
        RecordClass::Limit => Class::Limit,
        RecordClass::Usage => Class::Usage,
    }
}

fn of_pipeline(error: &PipelineError, place: &mut Place) -> Class {
    match error {
        PipelineError::Step { key, step, source } => {
            place.key = Some(key.clone());
            place.step = Some(step.clone());
            match &**source {
                StepError::Codec(error) => of_codec(error),
                StepError::FunctionOutput { .. } | StepError::NoFunction { .. } => Class::Pipeline,
                StepError::Budget { .. } => Class::Limit,
                _ => Class::Data,
            }
        }
        PipelineError::Stored { .. } => Class::Data,
        PipelineError::Record(error) => of_record(error, place),
        _ => Class::Pipeline,
    }
}

fn of_codec(error: &CodecError) -> Class {
    match error {
        CodecError::Unsupported { .. } => Class::Unsupported,
        CodecError::Limit { .. } | CodecError::Memory { .. } => Class::Limit,
        CodecError::Usage { .. } => Class::Usage,
        _ => Class::Data,
    }
}

fn raise(py: Python<'_>, class: Class, message: &str, place: Place) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let exception = py.import("forebay._errors")?.getattr(class.exception())?;
        let fields = PyDict::new(py);
        fields.set_item("path", place.path)?;
        fields.set_item("shard", place.shard)?;
        fields.set_item("record", place.record)?;
        fields.set_item("offset", place.offset)?;
        fields.set_item("key", place.key)?;
        fields.set_item("step", place.step)?;
        fields.set_item("errno", place.errno)?;
        Ok(PyErr::from_value(exception.call((message,), Some(&fields))?))
    };
    // What goes wrong here is itself an exception, and says more than nothing.
    made().unwrap_or_else(|error| error)
}
