//! An opened image: its header is read once, and everything else is derived from it.

use std::fmt;

use crate::error::Result;
use crate::tensor::TensorSpec;

use super::header::{Header, Parsed};
use super::layout::{self, Layout};
use super::options::DecodeOptions;
use super::{jpeg, l3, png, qoi, webp};

/// An encoded image whose header was read. No pixels are decoded yet, nothing of the image's size is allocated.
pub struct EncodedImage<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) parsed: Parsed,
}

impl<'a> EncodedImage<'a> {
    /// Reads the header of the image in `bytes`. Content decides the format.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self { bytes, parsed: Parsed::read(bytes)? })
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        self.parsed.header()
    }

    /// A decode with these options, if the picture is within their limits and the region within the picture.
    pub fn plan(&self, options: &DecodeOptions) -> Result<DecodePlan<'_>> {
        let layout = Layout::new(self.header(), options)?;
        layout::require_bytes(&layout, 0, options)?;
        Ok(DecodePlan { picture: self, options: options.clone(), layout, saves_memory: false, streaming: false })
    }
}

impl fmt::Debug for EncodedImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Image").field(self.header()).finish()
    }
}

/// One decode of an opened image: the size of its output and working memory are known, so that the caller can provide them.
#[derive(Debug)]
pub struct DecodePlan<'p> {
    pub(crate) picture: &'p EncodedImage<'p>,
    pub(crate) options: DecodeOptions,
    pub(crate) layout: Layout,
    pub(crate) saves_memory: bool,
    pub(crate) streaming: bool,
}

impl DecodePlan<'_> {
    /// What [`Decoder::decode_into`](super::Decoder::decode_into) will write: `[height, width, channels]` and the type.
    pub fn spec(&self) -> TensorSpec {
        self.layout.spec()
    }

    /// The same in as little memory as can be: a PNG goes row by row, which takes longer.
    #[must_use]
    pub fn saving_memory(self) -> Self {
        Self { saves_memory: true, ..self }
    }

    /// The same past the processor's cache, for a large output that nobody reads soon. A hint: L3 heeds it.
    #[must_use]
    pub fn streaming(self) -> Self {
        Self { streaming: true, ..self }
    }

    /// The memory that it takes in addition to its input and output, as far as it depends on the image: never less than
    /// it will be. What is left out is a few rows, and at most [`Limits::FIXED_BYTES`](super::Limits::FIXED_BYTES).
    pub fn working_bytes(&self) -> usize {
        self.bytes_beside(self.saves_memory)
    }

    /// The same of [`saving_memory`](Self::saving_memory).
    pub fn least_working_bytes(&self) -> usize {
        self.bytes_beside(true)
    }

    fn bytes_beside(&self, saves_memory: bool) -> usize {
        match &self.picture.parsed {
            Parsed::Jpeg(frame) => jpeg::working_bytes(frame, &self.layout),
            Parsed::Png(header) => png::working_bytes(header, &self.layout, saves_memory),
            Parsed::WebP(file) => webp::working_bytes(file, &self.layout),
            Parsed::Qoi(header) => qoi::working_bytes(header, &self.layout),
            Parsed::L3(file) => l3::working_bytes(file, &self.layout),
            Parsed::Bmp(_) | Parsed::Pnm(_) => 0,
        }
    }
}
