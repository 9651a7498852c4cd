//! A fast decoder for ordinary JPEGs: bit-identical to libjpeg-turbo, or it refuses.
//!
//! Use it where many photographs are decoded and time matters, such as in a training loop, with libjpeg-turbo
//! as the fallback for files that it refuses. An image is either decoded exactly as that library decodes it
//! (with its accurate DCT and "fancy" upsampling, without a warning), or not at all. So trying this decoder first and the library
//! second gives the same results as the library alone: the same pixels, and for unusual or damaged files the library's
//! verdict, messages and partial images. `examples/speed.rs` measures both in one run.
//!
//! Do not use it as the only decoder of arbitrary files: it refuses progressive images, CMYK, rare subsampling modes, and every file with
//! the slightest damage.
//!
//! ```
//! use forebay_jpeg::{Color, Decoder, Options, Region, header};
//!
//! # let mut file = vec![0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0];
//! # file.extend([1; 64]);
//! # file.extend([0xFF, 0xC0, 0, 11, 8, 0, 16, 0, 16, 1, 1, 0x11, 0, 0xFF, 0xC4, 0, 20, 0, 1]);
//! # file.extend([0; 15]);
//! # file.extend([0, 0xFF, 0xC4, 0, 20, 0x10, 1]);
//! # file.extend([0; 15]);
//! # file.extend([0, 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0, 0xFF, 0xD9]);
//! let found = header(&file)?;
//! let mut decoder = Decoder::new();
//! let mut pixels = vec![0; found.width * found.height * 3];
//! decoder.decode_into(&file, &Options::new(Color::Rgb), &mut pixels)?;
//! assert_eq!(pixels[..3], [128, 128, 128]);
//!
//! // A region costs less than the full image: only its samples are computed. Codes around it are parsed, to detect damage, but not decoded to pixels.
//! let region = Region { x: 3, y: 5, width: 4, height: 2 };
//! let mut part = vec![0; 4 * 2];
//! let options = Options { region: Some(region), max_pixels: 1 << 26, ..Options::new(Color::Gray) };
//! match decoder.decode_into(&file, &options, &mut part) {
//!     Ok(()) => assert_eq!(part, [128; 8]),
//!     Err(error) if error.is_refusal() => println!("libjpeg-turbo next"),
//!     Err(error) => return Err(error),
//! }
//! # Ok::<(), forebay_jpeg::Error>(())
//! ```
//!
//! # Limits
//!
//! It decodes baseline and extended sequential images with Huffman codes, 8 bits per sample, grayscale or with three components in
//! one scan, subsampled 4:4:4, 4:2:2, 4:2:0 or 4:4:0, with or without restart markers, in YCbCr or RGB, up to 65,500 pixels a
//! side. It refuses everything else, and whatever libjpeg-turbo would warn about: invalid codes, blocks with too many
//! coefficients, data that ends early or late, stray markers and bytes. For a region, codes are parsed to the end of
//! the data, or of the restart interval that its last row ends in, and must end there; damage in restart intervals entirely above or
//! below it is not detected. Results equal those of
//! libjpeg-turbo's SIMD code for x86, whatever the coefficients; its plain C code and its code for other machines differ from
//! that for coefficients beyond what any encoder writes.
//!
//! [`Options::max_pixels`] limits the image. In addition to the output, memory is needed for a copy of the scan's data and for a few rows.
//! The crate opens no files, starts no threads and reads no clock.
//!
//! # How
//!
//! Huffman decoding is a dependency chain that takes most of the time. Three things
//! shorten it: stuffed bytes are removed first, so that bits are loaded without checking for them; one lookup yields up to two
//! coefficients; and the entry of a lookup contains everything that a step needs, so that little is computed outside the chain. Blocks are
//! interleaved by four, so that vectors of any width transform several at once.

#![expect(
    clippy::inline_always,
    reason = "definitions are compiled again for each set of instructions, by being inlined into functions that have them"
)]

mod decoder;
mod entropy;
mod error;
mod header;
mod huffman;
mod kernel;
mod level;
mod output;
mod plane;
mod scan;

pub use decoder::{Color, Decoder, Options, Region, header};
pub use error::{Error, Result};
pub use header::{Header, Sampling, Space};
pub use level::Level;
