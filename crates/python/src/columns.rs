//! A batch as a dictionary.

use std::sync::Arc;

use bytes::Bytes;
use forebay_codec::{Tensor, TensorSpec};
use forebay_engine::load::{Batch, Column};
use forebay_engine::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::array::Array;

/// What the samples' keys are called in a batch.
pub(crate) const KEY: &str = "key";

/// A column without what stays in its batch.
enum Taken {
    Dense(TensorSpec),
    Ragged(Vec<Tensor>),
    Numbers(Vec<i64>),
    Texts(Vec<Arc<str>>),
    Bytes(Vec<Bytes>),
}

/// Field by field: arrays where the samples are alike, lists where they are not; and the keys.
pub(crate) fn to_dictionary(py: Python<'_>, mut batch: Batch) -> PyResult<Bound<'_, PyDict>> {
    let samples = batch.len();
    let dictionary = PyDict::new(py);
    let keys = PyList::new(py, batch.keys.iter().map(|key| &**key))?;
    let taken: Vec<(Arc<str>, Taken)> =
        batch.columns.iter_mut().map(|(name, column)| (Arc::clone(name), take(column))).collect();
    let batch = Arc::new(Mutex::new(batch));
    for (number, (name, column)) in taken.into_iter().enumerate() {
        let value = match column {
            Taken::Dense(spec) => Bound::new(py, Array::of_column(&batch, number, spec, samples))?.into_any(),
            Taken::Numbers(numbers) => Bound::new(py, Array::of_numbers(numbers))?.into_any(),
            Taken::Ragged(tensors) => {
                let recycler = batch.lock().recycler();
                let array = |tensor| Bound::new(py, Array::of_tensor(tensor).recycled(recycler.clone()));
                let arrays = tensors.into_iter().map(array);
                PyList::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?.into_any()
            }
            Taken::Texts(texts) => PyList::new(py, texts.iter().map(|text| &**text))?.into_any(),
            Taken::Bytes(all) => PyList::new(py, all.iter().map(|bytes| PyBytes::new(py, bytes)))?.into_any(),
        };
        dictionary.set_item(&*name, value)?;
    }
    dictionary.set_item(KEY, keys)?;
    Ok(dictionary)
}

fn take(column: &mut Column) -> Taken {
    match column {
        Column::Dense { spec, .. } => Taken::Dense(*spec),
        Column::Ragged(tensors) => Taken::Ragged(std::mem::take(tensors)),
        Column::Ints(numbers) => Taken::Numbers(std::mem::take(numbers)),
        Column::Texts(texts) => Taken::Texts(std::mem::take(texts)),
        Column::Bytes(all) => Taken::Bytes(std::mem::take(all)),
    }
}
