//! What Python functions raise, on its way through the engine and back to Python as what it was.

use std::error::Error;
use std::fmt;

use forebay_pipeline::StepError;
use pyo3::exceptions::{PyException, PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;

/// An exception that a function raised.
#[derive(Debug)]
pub(crate) struct Raised {
    error: PyErr,
    message: String,
    /// Which function it was.
    function: String,
    /// On which sample.
    location: String,
    ends: bool,
}

impl Raised {
    pub(crate) fn new(py: Python<'_>, error: PyErr, function: &str, key: &str) -> Self {
        let trace = error.traceback(py).and_then(|trace| trace.format().ok());
        let last = trace.as_deref().and_then(|trace| {
            let line = trace.lines().rev().find(|line| line.trim_start().starts_with("File "))?;
            Some(format!(" ({})", line.trim()))
        });
        let message = format!("{error}{}", last.unwrap_or_default());
        // `KeyboardInterrupt`, `SystemExit` and the like are no errors.
        let ends = !error.is_instance_of::<PyException>(py);
        Self { error, message, function: function.to_owned(), location: format!("on sample `{key}`"), ends }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let error = self.error.clone_ref(py);
        let (message, function, location) = (self.message.clone(), self.function.clone(), self.location.clone());
        Self { error, message, function, location, ends: self.ends }
    }

    /// The same if functions raised an exception on every sample, with their number.
    #[must_use]
    pub(crate) fn on_all(mut self, samples: u64) -> Self {
        self.location =
            format!("{}; all samples ({samples}) failed so and were skipped, this is the first", self.location);
        self
    }

    /// The exception to raise in the consumer: the function's own, with a note of its location.
    pub(crate) fn to_exception(&self, py: Python<'_>) -> PyErr {
        let error = self.error.clone_ref(py);
        // It would end the loop over the loader as if all were there. Python's generators do the same (PEP 479).
        let error = if error.is_instance_of::<PyStopIteration>(py) {
            let changed = PyRuntimeError::new_err("a function of the pipeline raised StopIteration");
            changed.set_cause(py, Some(error));
            changed
        } else {
            error
        };
        set_note(error.value(py).as_any(), &format!("in the function `{}`, ", self.function), &self.location);
        error
    }
}

/// Notes `subject` and `location`, in the stead of what was noted of the same subject: one exception may be raised again and
/// again, by whichever sample failed first.
fn set_note(exception: &Bound<'_, PyAny>, subject: &str, location: &str) {
    if let Ok(notes) = exception.getattr("__notes__").and_then(|notes| notes.extract::<Vec<String>>()) {
        let others: Vec<_> = notes.into_iter().filter(|note| !note.starts_with(subject)).collect();
        // An exception without its note, or with one too many, is still the right one: here and below.
        let _ = exception.setattr("__notes__", others);
    }
    let _ = exception.call_method1("add_note", (format!("{subject}{location}"),));
}

impl fmt::Display for Raised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for Raised {}

impl From<Raised> for StepError {
    fn from(raised: Raised) -> Self {
        Self::Function { ends: raised.ends, source: Box::new(raised) }
    }
}

/// What a function raised, if that is why `error` happened.
pub(crate) fn raised_by<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Raised> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(raised) = error.downcast_ref() {
            return Some(raised);
        }
        next = error.source();
    }
    None
}

/// A function could not be called.
pub(crate) fn failed(why: &'static str, ends: bool) -> StepError {
    StepError::Function { source: why.into(), ends }
}
