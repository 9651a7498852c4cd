//! A running epoch.

use std::path::PathBuf;
use std::time::Duration;

use forebay_engine::data::Skipped;
use forebay_engine::load::{Batch, Loader, Next};
use forebay_engine::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns;
use crate::errors;
use crate::in_process::InProcess;
use crate::samples::{EpochRequest, Started};
use crate::turns::Work;

/// A running epoch, with its threads. Belongs to the process that started it.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Epoch {
    running: Mutex<InProcess<Running>>,
    /// Its calls of functions.
    work: Work,
    /// The folder that keys are paths below, where samples are files.
    root: Option<PathBuf>,
}

struct Running {
    loader: Loader,
    /// How many batches come before the first that the loader makes.
    batches_before: u64,
    /// Batches up to this position were seen already and are passed over.
    seen: u64,
    pad_value: Option<f64>,
}

/// Python is asked for signals so often while a batch is awaited: often enough that Ctrl-C seems immediate.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What a wait for the next batch found.
enum Found {
    Batch(u64, Batch),
    Failed(forebay_engine::Error),
    /// Every sample was skipped: so many, and the first.
    AllSkipped(u64, Skipped),
    End,
    NotYet,
}

impl Epoch {
    /// `started` makes the batches that `request` asks for; those that were seen already are not wanted.
    pub(crate) fn new(started: Started, request: &EpochRequest, work: Work, root: Option<PathBuf>) -> Self {
        let Started { loader, batches_before } = started;
        let (seen, pad_value) = (request.batches_seen, request.pad_value);
        let running = Running { loader, batches_before, seen, pad_value };
        Self { running: Mutex::new(InProcess::new(running)), work, root }
    }

    fn wait(&self) -> Found {
        let mut running = self.running.lock();
        let Some(running) = running.get_mut() else { return Found::End };
        match running.loader.next_timeout(LOOK_UP) {
            Next::End => Found::End,
            Next::NotYet => Found::NotYet,
            Next::Batch(Err(forebay_engine::Error::AllSkipped { samples, first })) => {
                Found::AllSkipped(samples, *first)
            }
            Next::Batch(Err(error)) => Found::Failed(error),
            Next::Batch(Ok(mut batch)) => {
                let position = running.batches_before + batch.number + 1;
                // All of a batch's samples may have been skipped; nobody wants an empty one.
                if position <= running.seen || batch.is_empty() {
                    return Found::NotYet;
                }
                if let Some(value) = running.pad_value
                    && let Err(error) = batch.pad(value)
                {
                    return Found::Failed(error);
                }
                Found::Batch(position, batch)
            }
        }
    }

    fn of_loader<T>(&self, value: impl FnOnce(&Loader) -> T) -> Option<T> {
        self.running.lock().get().map(|running| value(&running.loader))
    }
}

#[pymethods]
impl Epoch {
    /// The next batch and its position in the epoch, counted from 1; `None` at the end. Waits without holding Python's
    /// lock, and looks up for signals now and then.
    fn next_batch<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyDict>)>> {
        loop {
            match py.detach(|| self.work.await_it(|| self.wait())) {
                Found::Batch(position, batch) => return Ok(Some((position, columns::to_dictionary(py, batch)?))),
                // Calls that were given up because another thread ended the epoch are no error of the epoch.
                Found::Failed(_) if self.work.is_ended() => return Ok(None),
                Found::Failed(error) => return Err(errors::engine(py, &error, self.root.as_deref())),
                Found::AllSkipped(samples, first) => {
                    let raised = self.work.raised_on(py, samples);
                    return Err(raised.map_or_else(
                        || errors::all_skipped(py, samples, first, self.root.as_deref()),
                        |raised| raised.on_all(samples).to_exception(py),
                    ));
                }
                Found::End => return Ok(None),
                Found::NotYet => py.check_signals()?,
            }
        }
    }

    /// How many samples were skipped so far, and the first of them: key, reason, and how many samples that is.
    fn skipped(&self) -> (u64, Vec<(String, String, Option<u64>)>) {
        let skipped = self.of_loader(|loader| {
            let list = loader.skipped_list().into_iter();
            (loader.skipped(), list.map(|skipped| (skipped.key, skipped.reason, skipped.samples)).collect())
        });
        skipped.unwrap_or_default()
    }

    /// How many bytes were read so far.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.of_loader(Loader::bytes_read).unwrap_or(0)
    }

    /// How many bytes of the memory budget were taken at most.
    #[getter]
    fn memory_bytes_peak(&self) -> u64 {
        self.of_loader(Loader::memory_bytes_peak).unwrap_or(0)
    }

    /// Stops and joins the threads.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.work.end();
            let running = self.running.lock().take();
            drop(running);
        });
    }
}

/// The threads may be waiting for Python's lock, so it is not held while they are joined.
impl Drop for Epoch {
    fn drop(&mut self) {
        // In a child process there is nothing to join, and nothing may be waited for.
        if let Some(running) = self.running.lock().take_value() {
            self.work.end();
            Python::try_attach(|py| py.detach(|| drop(running)));
        }
    }
}
