//! One image, decoded.

use std::cell::RefCell;

use forebay_codec::image::{Channels, DecodeOptions, Decoder};
use pyo3::prelude::*;

use crate::array::Array;
use crate::errors;

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new());
}

/// Decodes an image of any known format to an array `[height, width, channels]`; `color` is `rgb`, `gray` or `stored`.
#[pyfunction]
pub(crate) fn decode(py: Python<'_>, data: &[u8], color: &str) -> PyResult<Array> {
    let channels = match color {
        "rgb" => Channels::Rgb,
        "gray" => Channels::Gray,
        "stored" => Channels::AsStored,
        other => {
            return Err(errors::usage(py, &format!("`color` is `{other}`, but must be `rgb`, `gray` or `stored`")));
        }
    };
    let options = DecodeOptions { channels, ..DecodeOptions::default() };
    let decoded = py.detach(|| DECODER.with_borrow_mut(|decoder| decoder.decode(data, &options)));
    decoded.map(Array::of_tensor).map_err(|error| errors::codec(py, &error))
}
