//! What one quality did to all images.

use serde::Serialize;

use super::{Outcome, RecompressedImage};

/// One quality. Means are over images; of encoding, over those that were encoded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecompressedVariant {
    /// To what: `jpeg-75`.
    pub encoding: String,
    /// How many images.
    pub images: u64,
    /// How many of them were encoded.
    pub encoded: u64,
    /// How many were copied.
    pub copied: u64,
    /// How many were there already.
    pub reused: u64,
    /// Their bytes before.
    pub bytes_in: u64,
    /// And after.
    pub bytes_out: u64,
    /// Bytes before over bytes after.
    pub ratio: f64,
    /// Bits of all images after, over their pixels; of a data set, whose records have more than images, `None`.
    pub bits_per_pixel: Option<f64>,
    /// How long encoding an image took.
    pub encode_seconds: Option<f64>,
    /// The peak signal-to-noise ratio in decibels, of images of which a pixel differs.
    pub psnr: Option<f64>,
    /// The structural similarity.
    pub ssim: Option<f64>,
    /// The same over five scales.
    pub ms_ssim: Option<f64>,
}

impl RecompressedVariant {
    /// What became of those of `images` that were to have `encoding`.
    pub(super) fn of(encoding: &str, images: &[RecompressedImage]) -> Self {
        let images: Vec<&RecompressedImage> = images.iter().filter(|image| image.encoding == encoding).collect();
        let count = |outcome: Outcome| images.iter().filter(|image| image.outcome == outcome).count() as u64;
        let sum = |part: fn(&RecompressedImage) -> u64| images.iter().map(|image| part(image)).sum::<u64>();
        let mean = |part: fn(&RecompressedImage) -> Option<f64>| {
            let found: Vec<f64> = images.iter().filter_map(|image| part(image)).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        let bytes_out = sum(|image| image.bytes_out);
        let pixels = sum(|image| image.width * image.height).max(1);
        Self {
            images: images.len() as u64,
            encoded: count(Outcome::Encoded),
            copied: count(Outcome::Copied),
            reused: count(Outcome::Reused),
            bits_per_pixel: Some(8.0 * bytes_out as f64 / pixels as f64),
            encode_seconds: mean(|image| image.encode_seconds),
            psnr: mean(|image| image.psnr),
            ssim: mean(|image| image.ssim),
            ms_ssim: mean(|image| image.ms_ssim),
            ..Self::of_sizes(encoding, sum(|image| image.bytes_in), bytes_out)
        }
    }

    /// An image of which only the sizes are known.
    pub(super) fn of_sizes(encoding: &str, bytes_in: u64, bytes_out: u64) -> Self {
        Self {
            encoding: encoding.to_owned(),
            images: 0,
            encoded: 0,
            copied: 0,
            reused: 0,
            bytes_in,
            bytes_out,
            ratio: bytes_in as f64 / bytes_out.max(1) as f64,
            bits_per_pixel: None,
            encode_seconds: None,
            psnr: None,
            ssim: None,
            ms_ssim: None,
        }
    }
}
