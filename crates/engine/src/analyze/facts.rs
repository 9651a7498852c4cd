//! The facts of one sample.

use std::path::Path;

use bytes::Bytes;
use forebay_codec::image::{
    DecodeOptions, Decoder, EncodedImage, Encoding, Format, Header, Orientation, PixelStatistics, jpeg_quality,
    pixel_statistics,
};
use forebay_codec::{DType, Tensor, TensorView};
use forebay_pipeline::{LABEL_FIELD, Sample, Value};
use xxhash_rust::xxh3::Xxh3;

use crate::error::Error;
use crate::recompress::Original;

/// What is known of a sample.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Its number in its source.
    pub(super) number: u64,
    /// What it is.
    pub(super) kind: Kind,
    /// The bytes of its main field.
    pub(super) bytes: u64,
    pub(super) label: Option<i64>,
    /// A checksum of its main field: samples that share it are the same.
    pub(super) content: u128,
    /// What is known of an image.
    pub(super) image: Option<Box<Image>>,
}

/// What a sample's main field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An encoded image.
    Image(Format),
    /// A tensor.
    Tensor,
    /// Something else: audio, a text, or an unrecognizable image.
    Other,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Image(format) => format.name(),
            Self::Tensor => "tensor",
            Self::Other => "other",
        }
    }

    pub(super) fn is_encoded_image(self) -> bool {
        matches!(self, Self::Image(_))
    }
}

/// What is known of an image.
#[derive(Debug, Clone)]
pub(super) struct Image {
    /// As it is shown.
    pub(super) width: u32,
    pub(super) height: u32,
    /// As it is stored.
    pub(super) channels: u8,
    /// Whether EXIF says to turn it.
    pub(super) turned: bool,
    pub(super) gray: bool,
    pub(super) jpeg: Option<Jpeg>,
    pub(super) mean: [f32; 3],
    pub(super) mean_square: [f32; 3],
    pub(super) perceptual_hash: Option<u64>,
    /// How many bytes it has at a lower quality, where that was tried.
    pub(super) recompressed_bytes: Option<u64>,
}

/// What is known of a JPEG.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jpeg {
    pub(super) quality: u8,
    pub(super) exact: bool,
    pub(super) progressive: bool,
}

/// Why there are no facts.
pub(super) enum Problem {
    /// The image is damaged.
    Image(String),
    Other(Error),
}

impl From<&forebay_codec::Error> for Problem {
    /// Hints of the codec are for those who decode: here the file is at fault.
    fn from(error: &forebay_codec::Error) -> Self {
        Self::Image(format!("cannot be decoded: {}", error.to_string().lines().next().unwrap_or_default()))
    }
}

type Result<T, E = Problem> = std::result::Result<T, E>;

/// A sample that is looked at.
pub(super) struct Look<'a> {
    pub(super) sample: &'a Sample,
    /// Its main field.
    pub(super) field: &'a str,
    /// What it is encoded to, to see what that saves.
    pub(super) encoding: Option<Encoding>,
}

impl Look<'_> {
    /// Its facts; `reserve` is asked for memory first.
    pub(super) fn facts(
        &self,
        number: u64,
        decoder: &mut Decoder,
        reserve: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<Facts> {
        let label = match self.sample.field(LABEL_FIELD) {
            Some(Value::Int(label)) => Some(*label),
            _ => None,
        };
        let facts = |kind, bytes: usize, content, image: Option<Image>| Facts {
            number,
            kind,
            bytes: bytes as u64,
            label,
            content,
            image: image.map(Box::new),
        };
        Ok(match self.main() {
            Some(Value::Bytes(bytes)) => {
                let content = Content::default().with(bytes).digest();
                match Format::detect(bytes) {
                    Some(format) => {
                        facts(Kind::Image(format), bytes.len(), content, Some(self.image(bytes, decoder, reserve)?))
                    }
                    None if self.is_called_like_an_image() => {
                        let what = if bytes.is_empty() { "it is empty" } else { "its content is of no known format" };
                        return Err(Problem::Image(format!("is not an image: {what}")));
                    }
                    None => facts(Kind::Other, bytes.len(), content, None),
                }
            }
            Some(Value::Tensor(tensor)) => {
                let shape = tensor.spec().to_string();
                let content = Content::default().with(shape.as_bytes()).with(tensor.data()).digest();
                facts(Kind::Tensor, tensor.data().len(), content, of_pixels(tensor))
            }
            Some(Value::Text(text)) => {
                facts(Kind::Other, text.len(), Content::default().with(text.as_bytes()).digest(), None)
            }
            Some(Value::Int(_)) | None => facts(Kind::Other, 0, 0, None),
        })
    }

    /// The field that the source's steps begin with, or the first that may be an image.
    fn main(&self) -> Option<&Value> {
        let may_be = |value: &&Value| matches!(value, Value::Bytes(_) | Value::Tensor(_));
        let first = || self.sample.fields.iter().map(|field| &field.value).find(may_be);
        self.sample.field(self.field).or_else(first)
    }

    fn is_called_like_an_image(&self) -> bool {
        let extension = Path::new(&*self.sample.key).extension().and_then(|name| name.to_str());
        extension.is_some_and(|name| Format::from_name(name).is_some())
    }

    fn image(
        &self,
        bytes: &Bytes,
        decoder: &mut Decoder,
        mut reserve: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<Image> {
        let failed = |error: forebay_codec::Error| Problem::from(&error);
        let picture = EncodedImage::open(bytes).map_err(failed)?;
        let header = *picture.header();
        let plan = picture.plan(&DecodeOptions::default()).map_err(failed)?;
        // If it is encoded again, a copy of its pixels and the result are in memory, too.
        let times = if self.encoding.is_some() { 3 } else { 1 };
        reserve(times * plan.spec().bytes() as u64 + plan.working_bytes() as u64).map_err(Problem::Other)?;
        let (pixels, _) = decoder.decode_reporting(&plan).map_err(failed)?;
        let found = pixel_statistics(pixels.view()).map_err(failed)?;
        drop(pixels);
        let (height, width, _) = plan.spec().as_picture().unwrap_or_default();
        let jpeg = (header.format == Format::Jpeg).then(|| jpeg_quality(bytes)).transpose().map_err(failed)?;
        let recompressed = self.encoding.map(|encoding| {
            let encoded = Original::decode(bytes, &picture, decoder)?.encoded(encoding)?;
            Ok(encoded.map_or(bytes.len(), |encoded| encoded.len()) as u64)
        });
        Ok(Image {
            jpeg: jpeg.map(|jpeg| Jpeg { quality: jpeg.quality, exact: jpeg.exact, progressive: header.progressive }),
            recompressed_bytes: recompressed.transpose().map_err(failed)?,
            ..Image::new(&header, (width, height), &found)
        })
    }
}

impl Image {
    fn new(header: &Header, size: (usize, usize), found: &PixelStatistics) -> Self {
        let turned = header.orientation != Orientation::default();
        Self { turned, ..Self::of(header.channels, size, found) }
    }

    fn of(channels: usize, (width, height): (usize, usize), found: &PixelStatistics) -> Self {
        Self {
            width: width as u32,
            height: height as u32,
            channels: channels as u8,
            turned: false,
            gray: found.is_gray,
            jpeg: None,
            mean: found.mean.map(|value| value as f32),
            mean_square: found.mean_square.map(|value| value as f32),
            perceptual_hash: found.perceptual_hash,
            recompressed_bytes: None,
        }
    }
}

/// The facts of a tensor that is an image.
fn of_pixels(tensor: &Tensor) -> Option<Image> {
    let view: TensorView<'_> = tensor.view();
    let (height, width, channels) = view.spec.as_picture().filter(|_| view.spec.dtype == DType::U8)?;
    let found = pixel_statistics(view).ok()?;
    Some(Image::of(channels, (width, height), &found))
}

/// A checksum that is as good as the bytes themselves, but for those who try to deceive it.
#[derive(Default)]
struct Content(Xxh3);

impl Content {
    fn with(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn digest(&self) -> u128 {
        self.0.digest128()
    }
}
