//! An image.

use std::path::{Path, PathBuf};

use forebay_codec::image::{self, DecodeOptions, Decoder, Format, Limits, Orientation, inspect_l3};
use forebay_plan::units;
use serde::Serialize;

use super::show_problems;
use crate::error::{Error, Result};
use crate::output::Page;

/// One image.
#[derive(Debug, Serialize)]
pub(super) struct Image {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    format: &'static str,
    /// As stored, before any orientation.
    width: usize,
    height: usize,
    channels: usize,
    bits: u8,
    /// EXIF's number, 1 to 8; 1 is upright.
    orientation: u8,
    progressive: bool,
    animated: bool,
    bytes: usize,
    bits_per_pixel: f64,
    /// Whether every pixel was decoded.
    verified: bool,
    /// The format that the name promises, where that is another one.
    extension_says: Option<&'static str>,
    /// What only an L3 has.
    l3: Option<L3>,
}

/// What an L3 is made of.
#[derive(Debug, Serialize)]
struct L3 {
    mode: &'static str,
    /// Whether it is the layout of the paper's authors, which has no checksums.
    released_layout: bool,
    color_transform: &'static str,
    predictor: &'static str,
    strip_rows: usize,
    /// From the top.
    strips: Vec<L3Strip>,
}

#[derive(Debug, Serialize)]
struct L3Strip {
    /// `null` in the published layout, where a strip is in several pieces.
    bytes: Option<u64>,
    /// What is wrong with it; looked for by `--verify`.
    damage: Option<String>,
}

pub(super) fn file(path: &Path, content: &[u8], verify: bool) -> Result<Image> {
    let failed = |source| Error::Codec { path: path.to_owned(), source };
    let opened = image::EncodedImage::open(content).map_err(failed)?;
    let header = opened.header();
    let l3 = match header.format {
        Format::L3 => Some(l3(content, verify).map_err(failed)?),
        _ => None,
    };
    // The strips of an L3 have been decoded, each on its own.
    if verify && l3.is_none() {
        let plan = opened.plan(&DecodeOptions::default()).map_err(failed)?;
        Decoder::new().decode_reporting(&plan).map_err(failed)?;
    }
    Ok(Image {
        l3,
        path: path.to_owned(),
        format: header.format.name(),
        width: header.width,
        height: header.height,
        channels: header.channels,
        bits: header.bits,
        orientation: header.orientation as u8,
        progressive: header.progressive,
        animated: header.animated,
        bytes: content.len(),
        bits_per_pixel: content.len() as f64 * 8.0 / (header.width * header.height).max(1) as f64,
        verified: verify,
        extension_says: extension_says(path, header.format),
    })
}

fn l3(content: &[u8], verify: bool) -> Result<L3, forebay_codec::Error> {
    let details = inspect_l3(content, verify, &Limits::default())?;
    let strips = details.strips.into_iter().map(|strip| L3Strip { bytes: strip.bytes, damage: strip.damage });
    Ok(L3 {
        mode: details.mode.name(),
        released_layout: details.released,
        color_transform: details.color_transform,
        predictor: details.predictor,
        strip_rows: details.strip_rows,
        strips: strips.collect(),
    })
}

/// The format that the name promises, if it is not `found`.
pub(super) fn extension_says(path: &Path, found: Format) -> Option<&'static str> {
    let promised = Format::from_name(&path.extension()?.to_string_lossy())?;
    (promised != found).then(|| promised.name())
}

impl Image {
    pub(super) fn show(&self, page: &mut Page) {
        let mut kind = self.format.to_owned();
        for (is, word) in [(self.progressive, ", coarse to fine"), (self.animated, ", animated")] {
            kind.push_str(if is { word } else { "" });
        }
        let upright =
            if self.orientation == Orientation::Normal as u8 { " (upright)" } else { " (rotated when decoded)" };
        let mut facts = vec![
            ("image", self.path.display().to_string()),
            ("format", kind),
            ("size", format!("{}x{} pixels", units::count(self.width as u64), units::count(self.height as u64))),
            ("channels", format!("{} of {} bits", self.channels, self.bits)),
            ("orientation", format!("{}{upright}", self.orientation)),
            (
                "bytes",
                format!("{}, {} bits per pixel", units::bytes(self.bytes as f64), units::number(self.bits_per_pixel)),
            ),
        ];
        if let Some(format) = self.extension_says {
            facts.push(("name", format!("says {format}, which does no harm: content decides")));
        }
        facts.extend(self.l3.iter().flat_map(L3::facts));
        let verdict = if self.l3.as_ref().is_some_and(|l3| !l3.released_layout) {
            "every checksum is right, every pixel could be decoded"
        } else {
            "every pixel could be decoded"
        };
        if self.verified {
            facts.push(("verified", if self.problems().is_empty() { verdict } else { "damaged" }.to_owned()));
        }
        page.facts(&facts);
        show_problems(page, &self.problems());
    }

    /// What is wrong with its strips.
    pub(super) fn problems(&self) -> Vec<String> {
        self.l3.iter().flat_map(|l3| &l3.strips).filter_map(|strip| strip.damage.clone()).collect()
    }

    /// In a few words.
    pub(super) fn brief(&self) -> String {
        format!(
            "{}x{} pixels, {} of {} bits",
            self.width,
            self.height,
            units::counted(self.channels as u64, "channel"),
            self.bits
        )
    }
}

impl L3 {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let layout = if self.released_layout { ", in the layout of the paper's authors (no checksums)" } else { "" };
        let sizes = || self.strips.iter().filter_map(|strip| strip.bytes).map(|bytes| bytes as f64);
        let total: f64 = sizes().sum();
        let each = if sizes().count() == 0 {
            String::new()
        } else {
            format!(", {} each on average", units::bytes(total / self.strips.len() as f64))
        };
        let strips = format!("{} of {} rows{each}", units::count(self.strips.len() as u64), self.strip_rows);
        vec![
            ("mode", format!("{}{layout}", self.mode)),
            ("colors", format!("transform {}", self.color_transform)),
            ("predictor", self.predictor.to_owned()),
            ("strips", strips),
        ]
    }
}
