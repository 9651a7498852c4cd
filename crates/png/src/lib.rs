//! A fast decoder for ordinary PNGs: bit-identical to the `png` crate, or it refuses.
//!
//! Use it where many lossless images are decoded and time matters, such as in a training loop, with the `png`
//! crate as the fallback for files that it refuses. An image is either decoded exactly as that crate decodes it
//! (with `Transformations::EXPAND` and all checksums verified), or not at all. So trying this decoder first and the crate second
//! gives the same results as the crate alone. `examples/png_speed.rs` measures both in one run.
//!
//! Do not use it as the only decoder of arbitrary files: it refuses interlaced and animated images, and every file with the slightest
//! damage. On machines without one of the SIMD levels ([`Level`]) the `png` crate is faster.
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
//! // A range of rows: those after the last one wanted cost less.
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
//! It decodes images that are not interlaced, of every color type and depth of the format. It refuses interlaced and
//! animated images, `tRNS` chunks without a palette, `cICP`, `mDCV` and `cLLI`, critical chunks that are unknown or
//! misplaced, wrong checksums anywhere up to the last pixel, and more or fewer pixels than the header says. There is one
//! exception that the `png` crate refuses: whether Huffman codes that no encoder writes (a literal code with a single symbol) are valid
//! is up to libdeflate; the pixels still match their checksum.
//!
//! In addition to the output, it uses [`Header::working_bytes`] of memory, and a copy of the compressed pixels if they are split over several
//! chunks. The memory is reused for the next image; [`Decoder::trim`] releases it. Allocations are bounded by the size of the file. The crate opens
//! no files, starts no threads and reads no clock.
//!
//! # How
//!
//! libdeflate decompresses. Unfiltering is a dependency chain, in which each pixel waits for the one to its left, so several rows are
//! unfiltered at once, each a pixel behind the one above it (`kernel`).
//!
//! We also tried our own inflate implementation, with two literals per lookup. It was slower than libdeflate on all images, because
//! unpredictable branches dominate: `src/kernel/notes.md` has the figures. What unfiltering rows while they are in the cache would have
//! gained was not measured.

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
