//! What a step does to a whole sample: the fields that it changes, adds or takes away.

use std::sync::Arc;

use crate::error::StepError;
use crate::output::{Buffer, Outcome, Output};
use crate::runner::Sink;

/// Takes the changes that a [`SampleTransform`](crate::SampleTransform) step makes to a sample.
pub struct SampleChanges<'a> {
    sink: &'a mut dyn Sink,
    spare: &'a mut Vec<Buffer>,
    is_last: &'a dyn Fn(&str) -> bool,
    /// How many bytes the sample holds beside what is changed.
    beside_bytes: usize,
    changes: Vec<(Arc<str>, Change)>,
    bytes: usize,
}

/// What becomes of a field.
pub(crate) enum Change {
    Set(Outcome),
    Removed,
}

impl<'a> SampleChanges<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn Sink,
        spare: &'a mut Vec<Buffer>,
        is_last: &'a dyn Fn(&str) -> bool,
        beside_bytes: usize,
    ) -> Self {
        Self { sink, spare, is_last, beside_bytes, changes: Vec::new(), bytes: 0 }
    }

    /// Gives `field` the value that `make` puts into its output; a field that is not there yet is added.
    pub fn set(
        &mut self,
        field: &str,
        make: &mut dyn FnMut(&mut Output<'_>) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let buffer = self.spare.pop().unwrap_or_default();
        let is_last = (self.is_last)(field);
        let mut output = Output::within_sample(field, &mut *self.sink, is_last, buffer, self.beside_bytes);
        make(&mut output)?;
        let (outcome, bytes) = output.finish();
        self.bytes += bytes;
        if let Outcome::Made(made) = &outcome {
            self.beside_bytes = self.beside_bytes.saturating_add(made.bytes());
        }
        self.changes.push((field.into(), Change::Set(outcome)));
        Ok(())
    }

    /// Takes `field` away.
    pub fn remove(&mut self, field: &str) {
        self.changes.push((field.into(), Change::Removed));
    }

    pub(crate) fn finish(self) -> (Vec<(Arc<str>, Change)>, usize) {
        (self.changes, self.bytes)
    }
}
