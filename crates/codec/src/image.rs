//! Images: seven formats to tensors `[height, width, channels]` and back.
//!
//! [`EncodedImage::open`] reads the header, [`EncodedImage::plan`] says what a decode gives and takes, [`Decoder`] does it;
//! [`decode_labels`] decodes masks, [`encode`] encodes. [`jpeg_quality`] says how a JPEG was encoded, [`Metadata`] what to take along when it is
//! encoded again, [`similarity`] what that costs, [`pixel_statistics`] what pixels are like; [`progressive_scans`] takes a JPEG apart, coarse to fine. Content decides the format, never a file name. What is done with orientation, alpha, palettes, 16 bit, CMYK and missing data is one policy for all formats;
//! `docs/formats/images.md` states it and compares it with other loaders.

mod bmp;
mod decoder;
mod encode;
mod encoding_name;
mod format;
mod header;
mod jpeg;
mod l3;
mod labels;
mod layout;
mod made;
mod metadata;
mod options;
mod orientation;
mod picture;
mod png;
mod pnm;
mod qoi;
mod similarity;
mod sink;
mod statistics;
mod webp;

pub use decoder::{Decoded, Decoder};
pub use encode::{Encoding, PngEffort, encode};
pub use encoding_name::ENCODING_NAMES;
pub use format::Format;
pub use header::Header;
#[doc(hidden)]
pub use header::headers_read;
pub use jpeg::{
    END_OF_IMAGE, JpegQuality, SCAN_GROUPS, SCANS_MAX as JPEG_SCANS_MAX, Subsampling, jpeg_quality, progressive_scans,
};
pub use l3::{L3Details, L3Mode, L3Strip, L3StripBatch, inspect_l3, push_l3};
pub use labels::decode_labels;
pub use metadata::Metadata;
pub use options::{Channels, DecodeOptions, Depth, Limits, Region, Scale};
pub use orientation::Orientation;
pub use picture::{DecodePlan, EncodedImage};
pub use similarity::{Similarity, similarity};
pub use statistics::{GRAY_LEVELS, PixelStatistics, pixel_statistics};
