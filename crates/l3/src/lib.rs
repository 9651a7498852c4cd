//! L3: a lossless image format that decodes at memory speed.
//!
//! Use it where images are written once and read many times, losslessly, and decoding them is what the reader waits for: a
//! data set that feeds a training loop, a cache of decoded images, tiles, textures. `fast` decodes an order of magnitude
//! faster than PNG and is a little smaller; `dense` is about a quarter smaller than PNG and still several times as fast;
//! `classic` is the published format, made lossless, for comparison with its figures. The measured figures are in the
//! repository's `bench/results/l3.md`.
//!
//! Do not use it to exchange images with other programs (none reads it), for images of a few pixels (the fixed parts outweigh
//! them; `dense` has 256 bytes of states per plane and strip), or where a lossy format would do.
//!
//! ```
//! use forebay_l3::{Depth, EncodeOptions, Mode, Pixels, Shape, decode, encode};
//!
//! let shape = Shape::new(300, 200, 3, Depth::Eight)?;
//! let data: Vec<u8> = (0..shape.bytes()).map(|i| (i / 7) as u8).collect();
//! let bytes = encode(&Pixels::new(shape, &data)?, &EncodeOptions::new(Mode::Fast))?;
//! let image = decode(&bytes)?;
//! assert_eq!((image.shape, image.data), (shape, data));
//! # Ok::<(), forebay_l3::Error>(())
//! ```
//!
//! A strip is decoded without the others, so threads can share an image, and a crop costs only the strips it touches:
//!
//! ```
//! use forebay_l3::{DecodeOptions, Depth, EncodeOptions, Mode, Pixels, Region, Scratch, Shape, Strips, encode};
//!
//! # let shape = Shape::new(300, 200, 3, Depth::Eight)?;
//! # let data: Vec<u8> = (0..shape.bytes()).map(|i| (i / 7) as u8).collect();
//! # let options = EncodeOptions { strip_rows: Some(64), ..EncodeOptions::new(Mode::Dense) };
//! # let bytes = encode(&Pixels::new(shape, &data)?, &options)?;
//! let strips = Strips::open(&bytes, DecodeOptions::default())?;
//! let mut out = vec![0; shape.bytes()];
//! std::thread::scope(|scope| {
//!     let height = strips.header().strip_rows as usize;
//!     for (strip, rows) in out.chunks_mut(height * shape.row_bytes()).enumerate() {
//!         let strips = &strips;
//!         scope.spawn(move || {
//!             strips.decode_strip_into(strip as u32, &mut Scratch::default(), rows, shape.row_bytes())
//!         });
//!     }
//! });
//! assert_eq!(out, data);
//!
//! let crop = Region { x: 10, y: 70, width: 20, height: 30 };
//! let mut pixels = vec![0; 20 * 30 * 3];
//! strips.decode_region_into(crop, &mut Scratch::default(), &mut pixels, 20 * 3)?;
//! assert_eq!(pixels[..60], data[(70 * 300 + 10) * 3..][..60]);
//! # Ok::<(), forebay_l3::Error>(())
//! ```
//!
//! # Limits
//!
//! Sides up to 1,048,576 pixels ([`SIDE_MAX`]), 1 to 4 channels, 8 or 16 bits (little-endian). The bytes of 16-bit images are coded
//! separately, and their prediction is what the compiler makes of the scalar definition. Two channels, and NEON beyond the last
//! step, are scalar. Decoding refuses images beyond [`DecodeOptions::max_pixels`]; its working memory depends on the width of a row
//! only. Strips carry checksums, verified by default. The crate opens no files, starts no threads and reads no clock.
//!
//! # How
//!
//! Each row is cut into four phases (columns modulo 4). Within a phase no sample depends on another: phase 0 is predicted from
//! the row above, phase 2 between its neighbors in phase 0, the others between theirs. That is as good a prediction as the usual
//! ones from the left and above, but all of a phase is computed at once, without the chain from pixel to pixel that holds PNG
//! and its successors to a few hundred megabytes per second. The format is specified in this package's `FORMAT.md`.

#![expect(
    clippy::inline_always,
    reason = "the scalar definitions are compiled again for each set of instructions, by being inlined into functions that have them"
)]

mod choose;
mod classic;
mod color;
mod decode;
mod dense;
mod encode;
mod error;
mod fast;
mod header;
mod image;
mod kernel;
mod model;
mod phases;
mod sample;
mod scratch;
mod strip;
mod strip_batch;

pub use classic::encode_released;
pub use decode::{DecodeOptions, Decoder, Strips, decode, decode_into};
pub use encode::{EncodeOptions, encode};
pub use error::{Error, ErrorClass, Result};
pub use header::{ColorTransform, Header, Mode, Predictor};
pub use image::{Depth, Image, Pixels, Region, SIDE_MAX, Shape};
pub use kernel::Level;
pub use scratch::Scratch;
pub use strip_batch::StripBatch;
