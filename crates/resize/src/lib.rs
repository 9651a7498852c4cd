//! Resizes images as Pillow does, with the kernels of `fast_image_resize`.
//!
//! This is a crate of its own to save compile time: the library is generic over its image type, so all of its kernels are compiled in the
//! crate that calls it, and were most of the code of `forebay-pipeline`. Here they are compiled for one image type,
//! and not again with every change of a step.
//!
//! # Example
//!
//! ```
//! use forebay_resize::{Crop, Element, Filter, ImageView, ImageViewMut, Resizer};
//!
//! // A white square of 8 pixels, whose center is resized to half its size.
//! let white = [255_u8; 8 * 8 * 3];
//! let source = ImageView { data: &white, width: 8, height: 8, channels: 3, element: Element::U8 };
//! let mut small = [0_u8; 2 * 2 * 3];
//! let target = ImageViewMut { data: &mut small, width: 2, height: 2 };
//! let middle = Crop { left: 2, top: 2, width: 4, height: 4 };
//! Resizer::default().resize(source, middle, target, Filter::Bicubic, true)?;
//! assert_eq!(small, [255; 12]);
//! # Ok::<(), forebay_resize::Error>(())
//! ```
//!
//! # Limits
//!
//! Images have 1 to 4 channels and up to 2³² − 1 pixels a side. Alpha is a channel like the others.

#![forbid(unsafe_code)]

use fast_image_resize::images::{CroppedImage, Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions};

/// An image: rows of pixels with interleaved channels.
#[derive(Debug, Clone, Copy)]
pub struct ImageView<'a> {
    /// Its elements, in the machine's byte order.
    pub data: &'a [u8],
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 to 4.
    pub channels: usize,
    /// The type of a channel.
    pub element: Element,
}

/// The output image, with the channels and elements of the source.
#[derive(Debug)]
pub struct ImageViewMut<'a> {
    /// Its elements, aligned for their type.
    pub data: &'a mut [u8],
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// The element type of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// A byte.
    U8,
    /// 16 bits.
    U16,
    /// A float.
    F32,
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The region of an image that is resized. Pixels outside do not affect the result, as in torchvision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// The first column.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// The interpolation filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Triangle.
    Bilinear,
    /// Catmull–Rom.
    Bicubic,
    /// Lanczos with three lobes.
    Lanczos,
}

impl Filter {
    fn kernel(self) -> FilterType {
        match self {
            Self::Bilinear => FilterType::Bilinear,
            Self::Bicubic => FilterType::CatmullRom,
            Self::Lanczos => FilterType::Lanczos3,
        }
    }

    /// Whether it has negative weights, so that results can exceed the range of the input.
    fn overshoots(self) -> bool {
        matches!(self, Self::Bicubic | Self::Lanczos)
    }
}

/// Why an image was not resized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not match the stated size or alignment.
    #[error("expected an aligned image of 1 to 4 channels with as many bytes as its size says")]
    Image,
    /// The region extends beyond the image.
    #[error("the region {crop:?} is not within {width}x{height} pixels")]
    Outside {
        /// The region.
        crop: Crop,
        /// The image's columns.
        width: usize,
        /// The image's rows.
        height: usize,
    },
    /// There is no memory for the intermediate image.
    #[error("no memory for `{bytes}` bytes between two passes of a resize")]
    Memory {
        /// How much was wanted.
        bytes: usize,
    },
    /// The library refused.
    #[error("the resize library says: {0}")]
    Library(String),
}

/// Resizes images, reusing its memory between them.
#[derive(Default)]
pub struct Resizer {
    library: fast_image_resize::Resizer,
    /// The intermediate image; in words, so that elements of every type are aligned.
    between: Vec<u64>,
}

impl Resizer {
    /// The size of its buffers in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.library.size_of_internal_buffers() + self.between.capacity() * size_of::<u64>()
    }

    /// Releases them.
    pub fn trim(&mut self) {
        self.library.reset_internal_buffers();
        self.between = Vec::new();
    }

    /// Resizes the region `crop` of `source` to `target`. With `antialias` the filter grows with the scale, as in Pillow and
    /// torchvision; without, its size is fixed, as in `OpenCV`.
    pub fn resize(
        &mut self,
        source: ImageView<'_>,
        crop: Crop,
        target: ImageViewMut<'_>,
        filter: Filter,
        antialias: bool,
    ) -> Result<(), Error> {
        let pixel = pixel_type(source.element, source.channels).ok_or(Error::Image)?;
        let kernel = filter.kernel();
        let algorithm = if antialias { ResizeAlg::Convolution(kernel) } else { ResizeAlg::Interpolation(kernel) };
        let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
        let mut copy = Vec::new();
        let source = ImageView { data: aligned(source.data, source.element, &mut copy)?, ..source };
        let image = image(source.data, source.width, source.height, pixel)?;
        let ImageViewMut { data, width: out_width, height: out_height } = target;
        let mut output = image_mut(data, out_width, out_height, pixel)?;
        let (from, to) = ((crop.width, crop.height), (out_width, out_height));
        let in_two = antialias && filter.overshoots() && source.element != Element::F32;
        let Some((width, height)) = in_two.then(|| between(from, to)).flatten() else {
            return pass(&mut self.library, &image, crop, &mut output, &options);
        };
        let space = words(&mut self.between, width * height * source.channels * source.element.bytes())?;
        pass(&mut self.library, &image, crop, &mut image_mut(space, width, height, pixel)?, &options)?;
        let middle = self::image(space, width, height, pixel)?;
        pass(&mut self.library, &middle, Crop { left: 0, top: 0, width, height }, &mut output, &options)
    }
}

/// The same bytes, aligned for elements of this type: a slice of a record may not be aligned for wide elements.
fn aligned<'a>(data: &'a [u8], element: Element, copy: &'a mut Vec<u64>) -> Result<&'a [u8], Error> {
    if data.as_ptr().align_offset(element.bytes()) == 0 {
        return Ok(data);
    }
    let copy = words(copy, data.len())?;
    copy.copy_from_slice(data);
    Ok(copy)
}

/// One call of the library. All images go through here, so that its kernels are compiled once.
fn pass(
    library: &mut fast_image_resize::Resizer,
    source: &ImageRef<'_>,
    crop: Crop,
    target: &mut Image<'_>,
    options: &ResizeOptions,
) -> Result<(), Error> {
    let Crop { left, top, width, height } = crop;
    let part = CroppedImage::new(source, left as u32, top as u32, width as u32, height as u32).map_err(|_| {
        let (width, height) = (source.width() as usize, source.height() as usize);
        Error::Outside { crop, width, height }
    })?;
    library.resize(&part, target, options).map_err(|error| Error::Library(error.to_string()))
}

/// The size of the intermediate image, if the two passes must be separate calls.
///
/// A filter with negative weights overshoots at edges, and what overshoots is clamped after each pass, so that their order
/// matters: by up to 10 levels of 255 for bicubic, 23 for Lanczos. The library begins with the columns of 8-bit images.
/// Pillow begins with the rows, except if the height is reduced by more than twice as many pixels as the width
/// (since Pillow 13; before, always with the rows).
fn between(from: (usize, usize), to: (usize, usize)) -> Option<(usize, usize)> {
    if from.0 == to.0 || from.1 == to.1 {
        return None;
    }
    let lost = |from: usize, to: usize| from as i64 - to as i64;
    let (columns_lost, rows_lost) = (lost(from.0, to.0), lost(from.1, to.1));
    let columns_first = rows_lost > 0 && rows_lost > columns_lost * 2;
    Some(if columns_first { (from.0, to.1) } else { (to.0, from.1) })
}

/// Words for that many bytes, zeroed where they are new; an error if there is no memory for them.
fn words(buffer: &mut Vec<u64>, bytes: usize) -> Result<&mut [u8], Error> {
    let words = bytes.div_ceil(size_of::<u64>());
    if buffer.len() < words {
        buffer.try_reserve_exact(words - buffer.len()).map_err(|_| Error::Memory { bytes })?;
        buffer.resize(words, 0);
    }
    Ok(&mut bytemuck::cast_slice_mut(&mut buffer[..words])[..bytes])
}

fn image(data: &[u8], width: usize, height: usize, pixel: PixelType) -> Result<ImageRef<'_>, Error> {
    ImageRef::new(width as u32, height as u32, data, pixel).map_err(|_| Error::Image)
}

fn image_mut(data: &mut [u8], width: usize, height: usize, pixel: PixelType) -> Result<Image<'_>, Error> {
    Image::from_slice_u8(width as u32, height as u32, data, pixel).map_err(|_| Error::Image)
}

fn pixel_type(element: Element, channels: usize) -> Option<PixelType> {
    Some(match (element, channels) {
        (Element::U8, 1) => PixelType::U8,
        (Element::U8, 2) => PixelType::U8x2,
        (Element::U8, 3) => PixelType::U8x3,
        (Element::U8, 4) => PixelType::U8x4,
        (Element::U16, 1) => PixelType::U16,
        (Element::U16, 2) => PixelType::U16x2,
        (Element::U16, 3) => PixelType::U16x3,
        (Element::U16, 4) => PixelType::U16x4,
        (Element::F32, 1) => PixelType::F32,
        (Element::F32, 2) => PixelType::F32x2,
        (Element::F32, 3) => PixelType::F32x3,
        (Element::F32, 4) => PixelType::F32x4,
        _ => return None,
    })
}
