//! Resizing with the library's kernels, in the order in which Pillow makes its two passes.

use fast_image_resize::images::{CroppedImage, Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions};
use forebay_codec::{DType, TensorMut, TensorView, memory};

use crate::error::StepError;
use crate::steps::geometry::Rectangle;

/// The library's resizer, and room for a picture between two passes.
#[derive(Default)]
pub struct Resizer {
    library: fast_image_resize::Resizer,
    /// In words, so that samples of every type are aligned.
    between: Vec<u64>,
}

impl Resizer {
    /// How many bytes its buffers take.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.library.size_of_internal_buffers() + self.between.capacity() * size_of::<u64>()
    }

    /// Gives them back.
    pub(crate) fn trim(&mut self) {
        self.library.reset_internal_buffers();
        self.between = Vec::new();
    }
}

pub(crate) fn resize_rectangle(
    view: TensorView<'_>,
    rectangle: Rectangle,
    algorithm: ResizeAlg,
    output: &mut TensorMut<'_>,
    resizer: &mut Resizer,
) -> Result<(), StepError> {
    const EXPECTED: &str = "an aligned picture of 1 to 4 channels in uint8, uint16 or float32";
    let unfit = |spec| StepError::Unfit { found: spec, expected: EXPECTED };
    let (&[height, width, channels], &[out_height, out_width, _]) = (view.spec.shape.dims(), output.spec.shape.dims())
    else {
        return Err(unfit(view.spec));
    };
    let pixel = pixel_type(view.spec.dtype, channels).ok_or_else(|| unfit(view.spec))?;
    // Bytes from the middle of a record may not be aligned for wider elements.
    let mut aligned: Vec<u64> = Vec::new();
    let data = if view.data.as_ptr().align_offset(view.spec.dtype.bytes()) == 0 {
        view.data
    } else {
        memory::grow(&mut aligned, view.data.len().div_ceil(8))?;
        let copy = &mut bytemuck::cast_slice_mut(&mut aligned)[..view.data.len()];
        copy.copy_from_slice(view.data);
        copy
    };
    let source = ImageRef::new(width as u32, height as u32, data, pixel).map_err(|_| unfit(view.spec))?;
    let out_spec = output.spec;
    let mut target =
        Image::from_slice_u8(out_width as u32, out_height as u32, output.data, pixel).map_err(|_| unfit(out_spec))?;
    let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
    let Rectangle { left, top, width: from_width, height: from_height } = rectangle;
    // Cut first, then resize: what lies outside the rectangle has no part in the result, as in torchvision.
    let mut resize_source = |target: &mut Image<'_>| {
        if rectangle == Rectangle::whole(width, height) {
            return Ok(resizer.library.resize(&source, target, &options)?);
        }
        let part = CroppedImage::new(&source, left as u32, top as u32, from_width as u32, from_height as u32);
        Ok(resizer.library.resize(&part.map_err(|_| unfit(view.spec))?, target, &options)?)
    };
    let (from, to) = ((from_width, from_height), (out_width, out_height));
    let Some(between) = between(from, to, algorithm, view.spec.dtype) else { return resize_source(&mut target) };
    let bytes = between.0 * between.1 * channels * view.spec.dtype.bytes();
    let words = bytes.div_ceil(size_of::<u64>());
    memory::grow(&mut resizer.between, words)?;
    let room = &mut bytemuck::cast_slice_mut(&mut resizer.between[..words])[..bytes];
    let mut middle =
        Image::from_slice_u8(between.0 as u32, between.1 as u32, room, pixel).map_err(|_| unfit(out_spec))?;
    resize_source(&mut middle)?;
    Ok(resizer.library.resize(&middle, &mut target, &options)?)
}

/// The size of the picture between the two passes, if the passes must be made one by one.
///
/// A filter with negative weights overshoots at edges, and what overshoots is clamped after each pass, so that their order
/// matters: by up to 10 levels of 255 for bicubic, 23 for Lanczos. The library begins with the columns of 8-bit pictures.
/// Pillow begins with the rows, but with the columns of a picture whose height is reduced, by more than twice what its width
/// is (since Pillow 13; earlier always with the rows).
fn between(from: (usize, usize), to: (usize, usize), algorithm: ResizeAlg, dtype: DType) -> Option<(usize, usize)> {
    let overshoots = matches!(algorithm, ResizeAlg::Convolution(FilterType::CatmullRom | FilterType::Lanczos3));
    let clamped = dtype != DType::F32;
    if !overshoots || !clamped || from.0 == to.0 || from.1 == to.1 {
        return None;
    }
    let lost = |from: usize, to: usize| from as i64 - to as i64;
    let (columns_lost, rows_lost) = (lost(from.0, to.0), lost(from.1, to.1));
    let columns_first = rows_lost > 0 && rows_lost > columns_lost * 2;
    Some(if columns_first { (from.0, to.1) } else { (to.0, from.1) })
}

fn pixel_type(dtype: DType, channels: usize) -> Option<PixelType> {
    Some(match (dtype, channels) {
        (DType::U8, 1) => PixelType::U8,
        (DType::U8, 2) => PixelType::U8x2,
        (DType::U8, 3) => PixelType::U8x3,
        (DType::U8, 4) => PixelType::U8x4,
        (DType::U16, 1) => PixelType::U16,
        (DType::U16, 2) => PixelType::U16x2,
        (DType::U16, 3) => PixelType::U16x3,
        (DType::U16, 4) => PixelType::U16x4,
        (DType::F32, 1) => PixelType::F32,
        (DType::F32, 2) => PixelType::F32x2,
        (DType::F32, 3) => PixelType::F32x3,
        (DType::F32, 4) => PixelType::F32x4,
        _ => return None,
    })
}
