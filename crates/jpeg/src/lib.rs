//! Ordinary JPEGs to pixels: the pixels of libjpeg-turbo to the bit, in less time, or a refusal.
//!
//! Use it where many photographs are decoded and the time matters, such as feeding a training loop, and have libjpeg-turbo
//! at hand for the files that it refuses. The contract is that an image is either decoded exactly as that library decodes it
//! (its accurate DCT, its "fancy" upsampling, no warning), or not at all. So a caller that tries this first and that library
//! next gives the same results as with the library alone: the same pixels, and for odd or damaged files the library's
//! judgment, messages and partial images. `examples/speed.rs` measures both in one run.
//!
//! Do not use it as the only decoder of files from the wild: progressive images, CMYK, rare samplings and every file that
//! is damaged in the least are refused.
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
//! // A part costs less than the whole: only its samples are computed. Codes around it are read, to see damage, but not made pixels.
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
//! Decoded are baseline and extended sequential images with Huffman codes, 8 bits a sample, gray or of three components in
//! one scan, sampled 4:4:4, 4:2:2, 4:2:0 or 4:4:0, with or without restart markers, in YCbCr or RGB, up to 65,500 pixels a
//! side. Refused is everything else, and whatever libjpeg-turbo would warn of: codes that do not exist, blocks with too many
//! coefficients, data that ends early or late, stray markers and bytes. Of a region, codes are followed to the end of
//! the data, or of the restart interval that its last row ends in, and must end there; damage in whole restart intervals above and
//! below it is not seen. Equality holds with
//! libjpeg-turbo's vector code for x86, whatever the coefficients; its plain C and its code for other machines differ from
//! that where coefficients are beyond all that encoders write.
//!
//! [`Options::max_pixels`] limits the image; memory beside the output is a copy of the scan's data and the rows at work.
//! The crate opens no files, starts no threads and reads no clock.
//!
//! # How
//!
//! Decoding Huffman codes is a chain in which each step waits for the last, and that chain is most of the time. Three things
//! shorten it: stuffed bytes are removed first, so that bits are loaded without looking at them; one lookup yields up to two
//! coefficients; and a lookup's entry holds all that a step needs, so that little is computed beside the chain. Blocks lie
//! four side by side, so that vectors of any width transform several at once.

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
