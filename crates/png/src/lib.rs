//! Ordinary PNGs to pixels: the pixels of the `png` crate to the bit, in less time, or a refusal.
//!
//! Use it where many lossless images are decoded and the time matters, such as feeding a training loop, and have the `png`
//! crate at hand for the files that it refuses. The contract is that an image is either decoded exactly as that crate decodes it
//! (`Transformations::EXPAND`, all checksums looked at), or not at all. So a caller that tries this first and that crate next
//! gives the same results as with that crate alone. `examples/png_speed.rs` measures both in one run.
//!
//! Do not use it as the only decoder of files from the wild: interlaced and animated images and every file that is damaged in
//! the least are refused. On machines without one of the vector levels ([`Level`]) the `png` crate is faster.
//!
//! ```
//! use forebay_png::{Decoder, header};
//!
//! # let file = [
//! #     137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 0, 87,
//! #     221, 82, 248, 0, 0, 0, 14, 73, 68, 65, 84, 120, 156, 99, 96, 100, 98, 100, 102, 4, 0, 0, 29, 0, 9, 55,
//! #     60, 172, 99, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130
//! # ];
//! let mut decoder = Decoder::new();
//! let mut pixels = vec![0; header(&file)?.bytes()];
//! decoder.decode_into(&file, &mut pixels)?;
//! assert_eq!(pixels, [1, 2, 3, 4]);
//!
//! // Rows by themselves: those after the last one wanted cost less.
//! match decoder.decode_rows(&file, 0..1, |y, row| assert_eq!((y, row), (0, &[1, 2][..]))) {
//!     Ok(()) => {}
//!     Err(error) if error.is_refusal() => println!("the `png` crate next"),
//!     Err(error) => return Err(error),
//! }
//! # Ok::<(), forebay_png::Error>(())
//! ```
//!
//! # Limits
//!
//! Decoded are images that are not interlaced, of every color type and depth of the format. Refused are interlaced and
//! animated ones, chunks `tRNS` beside anything but a palette, `cICP`, `mDCV` and `cLLI`, critical chunks that are unknown or
//! out of place, wrong checksums wherever they lie up to the last pixel, and more or fewer pixels than the header says. One thing
//! is taken that the `png` crate refuses: codes within the compressed data that no encoder writes (a code of literals with a single word),
//! are judged by libdeflate; the pixels are then those that their checksum vouches for.
//!
//! Memory beside the output is [`Header::working_bytes`], and a copy of the compressed pixels if they lie in several chunks. It is
//! kept for the next image; [`Decoder::trim`] gives it back. Nothing is allocated that the size of the file does not warrant. The crate opens
//! no files, starts no threads and reads no clock.
//!
//! # How
//!
//! libdeflate inflates. Undoing the filters is a chain, in which each pixel waits for the one to its left; so several rows are
//! undone at once, each a pixel behind the one above it (`kernel`).
//!
//! An inflater of our own, with two literals for each lookup, was tried in its place and was slower than libdeflate on all images, since
//! branches that cannot be foreseen take the time: `src/kernel/notes.md` has the figures. What it would have given by unfiltering rows
//! while they are in the cache was not measured.

#![cfg_attr(
    target_arch = "x86_64",
    expect(
        clippy::inline_always,
        reason = "what is shared is compiled again for each set of instructions, by being inlined into functions that have them"
    )
)]

mod chunks;
mod decoder;
mod error;
mod expand;
mod kernel;
mod level;

pub use chunks::{Color, Header};
pub use decoder::{Decoder, header};
pub use error::{Error, Result};
pub use level::Level;
