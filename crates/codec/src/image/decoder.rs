//! The decoder: any format, any options, into the caller's memory.

use crate::error::{Error, Result};
use crate::memory;
use crate::tensor::{Tensor, TensorMut, TensorSpec};

use super::header::Parsed;
use super::layout::Layout;
use super::options::DecodeOptions;
use super::picture::{DecodePlan, EncodedImage};
use super::{bmp, jpeg, l3, png, pnm, qoi, webp};

/// What became of a decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Decoded {
    /// Data was missing or damaged, and [`DecodeOptions::allow_truncated`] let it pass. What never arrived is mid-gray in a
    /// JPEG and zero in the other formats.
    pub partial: bool,
}

/// Decodes images. Create one per thread and reuse it: it owns the libraries' handles and the scratch memory.
#[derive(Default)]
pub struct Decoder {
    jpeg: forebay_jpeg::Decoder,
    png: forebay_png::Decoder,
    l3: l3::Unpacker,
    scratch: Vec<u8>,
}

/// One decode, as the formats see it.
pub(crate) struct Task<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) layout: &'a Layout,
    pub(crate) options: &'a DecodeOptions,
    pub(crate) scratch: &'a mut Vec<u8>,
    pub(crate) output: &'a mut [u8],
}

/// The first `length` bytes of the scratch memory, which grows if necessary. Their content is arbitrary.
pub(crate) fn scratch_slice(scratch: &mut Vec<u8>, length: usize) -> Result<&mut [u8]> {
    memory::grow(scratch, length)?;
    Ok(&mut scratch[..length])
}

impl Decoder {
    /// A decoder that holds nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of scratch memory that it holds.
    pub fn capacity_bytes(&self) -> usize {
        self.scratch.capacity() + self.png.capacity_bytes()
    }

    /// Gives the scratch memory back.
    pub fn trim(&mut self) {
        self.scratch = Vec::new();
        self.png.trim();
    }

    /// Decodes into `output`, which must be what [`DecodePlan::spec`] says. After an error it is all zero: neither
    /// half an image nor what the memory held before is ever taken for this one.
    ///
    /// A JPEG, WebP, QOI or interlaced PNG that must be turned, cut or converted goes through scratch memory of its own
    /// size, which the decoder keeps, and so does every other PNG, and what is wanted of an L3 that must be converted or made
    /// smaller; everything else is written straight to its output.
    #[expect(clippy::needless_pass_by_value, reason = "the output is a mutable borrow, given away")]
    pub fn decode_into(&mut self, plan: &DecodePlan<'_>, output: TensorMut<'_>) -> Result<Decoded> {
        let result = self.run(plan, output.spec, output.data);
        if result.is_err() {
            output.data.fill(0);
        }
        result
    }

    /// Decodes into a new tensor and says what became of it.
    pub fn decode_reporting(&mut self, plan: &DecodePlan<'_>) -> Result<(Tensor, Decoded)> {
        let spec = plan.spec();
        let mut data = memory::zeroed(spec.bytes())?;
        let decoded = self.run(plan, spec, &mut data)?;
        let found = data.len();
        let tensor =
            Tensor::new(spec, data).ok_or_else(|| Error::usage("the buffer does not fit", spec.bytes(), found))?;
        Ok((tensor, decoded))
    }

    /// Decodes `bytes` into a new tensor, all in one.
    pub fn decode(&mut self, bytes: &[u8], options: &DecodeOptions) -> Result<Tensor> {
        self.decode_reporting(&EncodedImage::open(bytes)?.plan(options)?).map(|(tensor, _)| tensor)
    }

    fn run(&mut self, plan: &DecodePlan<'_>, output_spec: TensorSpec, output: &mut [u8]) -> Result<Decoded> {
        let DecodePlan { picture: EncodedImage { bytes, parsed }, options, layout, saves_memory, streaming } = plan;
        let spec = layout.spec();
        if spec != output_spec || output.len() != spec.bytes() {
            let found = format!("{output_spec} in {} bytes", output.len());
            return Err(Error::usage("the output does not fit the image", spec, found));
        }
        if options.allow_truncated {
            output.fill(0);
        }
        let mut task = Task { bytes, layout, options, scratch: &mut self.scratch, output };
        let partial = match parsed {
            Parsed::Jpeg(frame) => jpeg::decode(&mut self.jpeg, frame, &mut task)?,
            Parsed::Png(header) => png::decode((!saves_memory).then_some(&mut self.png), header, &mut task)?,
            Parsed::WebP(file) => webp::decode(file, &mut task)?,
            Parsed::Bmp(bitmap) => bmp::decode(bitmap, &mut task)?,
            Parsed::Pnm(netpbm) => pnm::decode(netpbm, &mut task)?,
            Parsed::Qoi(header) => qoi::decode(header, &mut task)?,
            Parsed::L3(file) => l3::decode(self.l3.decoder(*streaming), file, &mut task)?,
        };
        Ok(Decoded { partial })
    }
}
