//! An image as it is, and whether another encoding makes it smaller without pretending to a quality that is gone.

use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, EncodedImage, Encoding, Format, Header, JpegQuality, Metadata, encode,
    jpeg_quality,
};
use forebay_codec::{Result, Tensor};

/// An image that was read.
pub(crate) struct Original<'c> {
    pub(crate) content: &'c [u8],
    pub(crate) header: Header,
    /// The quality of a JPEG.
    pub(crate) quality: Option<JpegQuality>,
    /// As it is stored: its orientation is in its metadata.
    pub(crate) pixels: Tensor,
    metadata: Metadata,
}

/// How an image is decoded for re-encoding: as it is stored.
pub(crate) fn as_stored(header: &Header) -> DecodeOptions {
    let channels = if header.channels == 1 { Channels::Gray } else { Channels::Rgb };
    DecodeOptions { channels, apply_orientation: false, ..DecodeOptions::default() }
}

impl<'c> Original<'c> {
    /// Decodes the image `picture`, whose file is `content`.
    pub(crate) fn decode(content: &'c [u8], picture: &EncodedImage<'_>, decoder: &mut Decoder) -> Result<Self> {
        let header = *picture.header();
        let (pixels, _) = decoder.decode_reporting(&picture.plan(&as_stored(&header))?)?;
        let quality = (header.format == Format::Jpeg).then(|| jpeg_quality(content)).transpose()?;
        Ok(Self { content, header, quality, pixels, metadata: Metadata::read(content) })
    }

    /// It encoded; `None` where it is best kept as it is: it has the asked quality or a lower one, nobody knows which it has, or it would not become
    /// smaller.
    pub(crate) fn encoded(&self, encoding: Encoding) -> Result<Option<Vec<u8>>> {
        let asked = match encoding {
            Encoding::Jpeg { quality, .. } => f32::from(quality),
            Encoding::WebP { quality } => quality,
            _ => return Ok(None),
        };
        let is_low = self.quality.is_some_and(|found| f32::from(found.quality) <= asked);
        let is_unknown =
            self.header.format == Format::WebP && !self.content.windows(4).take(64).any(|name| name == b"VP8L");
        if is_low || is_unknown || self.header.animated {
            return Ok(None);
        }
        let encoded = self.metadata.write(encode(self.pixels.view(), &encoding)?)?;
        Ok((encoded.len() < self.content.len()).then_some(encoded))
    }
}
