//! A running epoch.

use std::path::PathBuf;
use std::time::Duration;

use forebay_engine::data::Skipped;
use forebay_engine::load::{Batch, Epoch as EngineEpoch, Next, State, Stats};
use forebay_engine::sync::Mutex;
use forebay_plan::LoaderStats;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns;
use crate::errors;
use crate::in_process::InProcess;
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
    epoch: EngineEpoch,
    pad_value: Option<f64>,
    /// What the threads had done when the first batch was there.
    stats_at_first_batch: Option<Stats>,
}

/// Python is asked for signals so often while a batch is awaited: often enough that Ctrl-C seems immediate.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What a wait for the next batch found.
enum Found {
    /// A batch, and where to go on once it was seen.
    Batch(State, Batch),
    Failed(forebay_engine::Error),
    /// Every sample was skipped: how many, and the first.
    AllSkipped(u64, Skipped),
    End,
    NotYet,
}

impl Epoch {
    /// `epoch`, whose tensors of different shapes are padded with `pad_value`, if there is one.
    pub(crate) fn new(epoch: EngineEpoch, pad_value: Option<f64>, work: Work, root: Option<PathBuf>) -> Self {
        let running = Running { epoch, pad_value, stats_at_first_batch: None };
        Self { running: Mutex::new(InProcess::new(running)), work, root }
    }

    fn wait(&self) -> Found {
        let mut running = self.running.lock();
        let Some(running) = running.get_mut() else { return Found::End };
        match running.epoch.next_timeout(LOOK_UP) {
            Next::End => Found::End,
            Next::NotYet => Found::NotYet,
            Next::Batch(Err(forebay_engine::Error::AllSkipped { samples, first })) => {
                Found::AllSkipped(samples, *first)
            }
            Next::Batch(Err(error)) => Found::Failed(error),
            Next::Batch(Ok(mut batch)) => {
                running.stats_at_first_batch.get_or_insert_with(|| running.epoch.stats());
                if let Some(value) = running.pad_value
                    && let Err(error) = batch.pad(value)
                {
                    return Found::Failed(error);
                }
                Found::Batch(running.epoch.state_after(&batch), batch)
            }
        }
    }

    fn of_epoch<T>(&self, value: impl FnOnce(&EngineEpoch) -> T) -> Option<T> {
        self.running.lock().get().map(|running| value(&running.epoch))
    }
}

#[pymethods]
impl Epoch {
    /// The next batch, and where to go on once it was seen: samples of the epoch, and batches where only those are counted. `None` at the
    /// end. Waits without holding Python's lock, and looks up for signals now and then.
    fn next_batch<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, u64, Bound<'py, PyDict>)>> {
        loop {
            match py.detach(|| self.work.await_it(|| self.wait())) {
                Found::Batch(state, batch) => {
                    let batches_seen = state.batches.map_or(0, |batches| batches.seen);
                    return Ok(Some((state.samples_seen, batches_seen, columns::to_dictionary(py, batch)?)));
                }
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
        let skipped = self.of_epoch(|epoch| {
            let list = epoch.skipped_samples().into_iter();
            (epoch.skipped(), list.map(|skipped| (skipped.key, skipped.reason, skipped.samples)).collect())
        });
        skipped.unwrap_or_default()
    }

    /// How many bytes were read so far.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.of_epoch(EngineEpoch::bytes_read).unwrap_or(0)
    }

    /// The peak use of the memory budget in bytes.
    #[getter]
    fn memory_bytes_peak(&self) -> u64 {
        self.of_epoch(EngineEpoch::memory_bytes_peak).unwrap_or(0)
    }

    /// What the threads did with their time, as JSON: in the epochs `before`, and in this one so far.
    fn stats(&self, py: Python<'_>, before: &str) -> String {
        let before: LoaderStats = serde_json::from_str(before).unwrap_or_default();
        let with_this =
            |running: &Running| before.and_epoch(&running.epoch.stats(), running.stats_at_first_batch.as_ref());
        // Whoever awaits a batch holds the epoch, and Python must not wait for that.
        let stats = py.detach(|| self.running.lock().get().map(with_this)).unwrap_or(before);
        serde_json::to_string(&stats).unwrap_or_default()
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

/// What bound a loader by what its threads did, and the same in words.
#[pyfunction]
pub(crate) fn bound_by(stats: &str) -> (String, String) {
    let (stats, cores): (LoaderStats, _) = (serde_json::from_str(stats).unwrap_or_default(), forebay_engine::cores());
    let bound = serde_json::to_value(stats.bound_by(cores)).ok();
    (bound.and_then(|bound| bound.as_str().map(str::to_owned)).unwrap_or_default(), stats.sentence(cores))
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
