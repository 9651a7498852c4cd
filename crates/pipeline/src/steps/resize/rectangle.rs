//! Resizing a part of a picture: from tensors to the pictures of `forebay-resize`.

use forebay_codec::{DType, TensorMut, TensorView};
use forebay_resize::{Crop, Element, ImageView, ImageViewMut, Resizer};

use super::Interpolation;
use crate::error::StepError;
use crate::scope::Scratch;
use crate::steps::geometry::Rectangle;

/// Makes `output` of the part `rectangle` of `view`; `antialias` as [`Resizer::resize`] has it.
pub(crate) fn resize_rectangle(
    view: TensorView<'_>,
    rectangle: Rectangle,
    interpolation: Interpolation,
    antialias: bool,
    output: &mut TensorMut<'_>,
    resizer: &mut Resizer,
) -> Result<(), StepError> {
    let unfit = StepError::Unfit { found: view.spec, expected: "an image in uint8, uint16 or float32" };
    let (&[height, width, channels], &[out_height, out_width, _]) = (view.spec.shape.dims(), output.spec.shape.dims())
    else {
        return Err(unfit);
    };
    let element = match view.spec.dtype {
        DType::U8 => Element::U8,
        DType::U16 => Element::U16,
        DType::F32 => Element::F32,
        _ => return Err(unfit),
    };
    let source = ImageView { data: view.data, width, height, channels, element };
    let target = ImageViewMut { data: output.data, width: out_width, height: out_height };
    let Rectangle { left, top, width, height } = rectangle;
    Ok(resizer.resize(source, Crop { left, top, width, height }, target, interpolation.kernel(), antialias)?)
}

impl Scratch for Resizer {
    fn capacity_bytes(&self) -> usize {
        self.capacity_bytes()
    }

    fn trim(&mut self) {
        self.trim();
    }
}
