//! The strips of L3 images, for a GPU to decode.

use bytes::Bytes;
use forebay_codec::image::{Header, L3StripBatch, Limits, Region, push_l3};
use forebay_codec::{DType, Element, Tensor, TensorSpec};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};

use crate::array::Array;
use crate::errors;

/// Takes L3 images apart, each whole or what a region of it (top, left, height, width) touches. What comes back are the arrays of a batch of
/// strips, and under `images` height, width, channels and bits of each, or the exception that says what is wrong with it.
#[pyfunction]
#[pyo3(signature = (images, regions = None))]
pub(crate) fn l3_strips(
    py: Python<'_>,
    images: Vec<PyBackedBytes>,
    regions: Option<Vec<(usize, usize, usize, usize)>>,
) -> PyResult<Bound<'_, PyDict>> {
    if regions.as_ref().is_some_and(|regions| regions.len() != images.len()) {
        return Err(errors::usage(py, "there must be one region for each image"));
    }
    let region = |index: usize| {
        let regions = regions.as_ref()?;
        let (y, x, height, width) = regions[index];
        Some(Region { x, y, width, height })
    };
    let (batch, headers) = py.detach(|| {
        let mut batch = L3StripBatch::default();
        let limits = Limits::default();
        let mut headers = Vec::with_capacity(images.len());
        for (index, image) in images.iter().enumerate() {
            let begun = batch.strips.len();
            headers.push(push_l3(&mut batch, image, region(index), &limits));
            // By its place among all images, those that were refused before they were opened included.
            for strip in batch.strips[begun..].chunks_exact_mut(L3StripBatch::STRIP_NUMBERS) {
                strip[0] = index as i64;
            }
        }
        (batch, headers)
    });
    let found = PyList::empty(py);
    for header in headers {
        match header {
            Ok(Header { height, width, channels, bits, .. }) => found.append((height, width, channels, bits))?,
            Err(error) => found.append(errors::codec(py, &error).into_value(py))?,
        }
    }
    let L3StripBatch { mut data, strips, planes, states, contexts, tables, .. } = batch;
    // Some of it is looked at as words.
    data.resize(data.len().next_multiple_of(16).max(16), 0);
    let arrays = PyDict::new(py);
    let spec = TensorSpec::new(DType::U8, &[data.len()]);
    let data = Tensor::new(spec, Bytes::from(data)).expect("a spec of its length");
    arrays.set_item("data", Bound::new(py, Array::of_tensor(data))?)?;
    arrays.set_item("strips", rows(py, &strips, L3StripBatch::STRIP_NUMBERS)?)?;
    arrays.set_item("planes", rows(py, &planes, L3StripBatch::PLANE_NUMBERS)?)?;
    arrays.set_item("states", rows(py, &states, 64)?)?;
    arrays.set_item("contexts", rows(py, &contexts, 24)?)?;
    arrays.set_item("tables", rows(py, &tables, 1024)?)?;
    arrays.set_item("images", found)?;
    Ok(arrays)
}

/// An array of rows of `count` numbers.
fn rows<'py, T: Element>(py: Python<'py>, numbers: &[T], count: usize) -> PyResult<Bound<'py, Array>> {
    let tensor = Tensor::from_elements(&[numbers.len() / count, count], numbers).expect("whole rows");
    Bound::new(py, Array::of_tensor(tensor))
}
