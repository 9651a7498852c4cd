//! The steps of whole batches, done to a batch when all of its samples are there.

use std::sync::Arc;

use forebay_pipeline::{Action, BatchColumn, BatchTransform, Random, RngKey};
use xxhash_rust::xxh3::xxh3_64;

use super::batch::{Batch, Column};
use super::{Online, Steps};

/// What is done to a batch: each step, its number in the pipeline and its fields.
pub(super) struct BatchSteps {
    steps: Vec<(u64, Vec<String>, Arc<dyn BatchTransform>)>,
    rng_key: RngKey,
}

impl BatchSteps {
    pub(super) fn of(online: &Online, rng_key: RngKey) -> Self {
        // Whatever format samples are kept in, these steps are left to do.
        let Steps { steps, first_step } = &online.formats[0];
        let of_batches = |(index, step): (usize, &forebay_pipeline::Step)| match &step.action {
            Action::BatchTransform(mix) => {
                Some((first_step.wrapping_add(index) as u64, step.fields.clone(), Arc::clone(mix)))
            }
            _ => None,
        };
        Self { steps: steps.iter().enumerate().filter_map(of_batches).collect(), rng_key }
    }

    /// Does all of them. What they draw follows from the batch's first sample, so that a batch is the same again after a resume. `first` is the number by which that sample's own
    /// random steps draw: another one each time that it comes in an epoch, and in each data set. Its key tells samples apart that a step made of one.
    pub(super) fn run(&self, batch: &mut Batch, first: Option<u64>) {
        let (Some(key), Some(first)) = (batch.keys.first(), first) else { return };
        let key = xxh3_64(key.as_bytes());
        for (number, fields, step) in &self.steps {
            let mut columns: Vec<Option<BatchColumn<'_>>> = fields.iter().map(|_| None).collect();
            for (name, column) in &mut batch.columns {
                if let (Some(argument), Column::Dense { spec, data }) =
                    (fields.iter().position(|field| **field == **name), column)
                {
                    columns[argument] = Some(BatchColumn { spec: *spec, data });
                }
            }
            let columns: Option<Vec<BatchColumn<'_>>> = columns.into_iter().collect();
            let RngKey { seed, epoch } = self.rng_key;
            if let Some(mut columns) = columns {
                step.run(&mut columns, &mut Random::from_parts(&[seed, epoch, *number, first, key]));
            }
        }
    }
}
