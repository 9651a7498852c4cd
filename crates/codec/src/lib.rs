//! Bytes to tensors and back: the codecs of Forebay. No files, no threads.
//!
//! Images ([`image`]) are JPEG, PNG, WebP, BMP, PNM, QOI and L3. They are decoded, entirely or only a region, optionally at a reduced size, into memory that the
//! caller owns, and encoded from it.
//!
//! Audio ([`audio`]) is decoded from MP3, FLAC and WAV to 16-bit samples, and turned into log-mel spectrograms. Electrical signals
//! ([`signal`]) are read from HDF5, CSV and raw numbers, calibrated, and turned into features that identify appliances.
//!
//! Tensors of any kind are compressed by encodings that know the element type ([`tensor_encoding`]): byte shuffle and delta before ZSTD or
//! LZ4, a numeric codec, bit packing, schemes for sparse tensors, and floating point numbers with a bounded error.
//!
//! Text ([`text`]) is extracted from web pages as their article, tokenized with the tokenizer files of GPT-2, tiktoken, Hugging Face and SentencePiece, and
//! embedded by a table.
//!
//! ```
//! use forebay_codec::image::{Channels, DecodeOptions, Decoder, Encoding, EncodedImage, PngEffort, Region, encode};
//! use forebay_codec::{DType, Tensor, TensorMut};
//!
//! // An image of 2 rows of 3 pixels, written as PNG.
//! let pixels: Vec<u8> = (0..18).map(|sample| sample * 14).collect();
//! let picture = Tensor::from_elements(&[2, 3, 3], &pixels).expect("18 samples fit the shape");
//! let file = encode(picture.view(), &Encoding::Png { effort: PngEffort::Fast })?;
//!
//! // Back again: open it, get the spec of the result, and decode it into a buffer of our own.
//! let picture = EncodedImage::open(&file)?;
//! assert_eq!((picture.header().width, picture.header().height), (3, 2));
//! let plan = picture.plan(&DecodeOptions::default())?;
//! let mut buffer = vec![0; plan.spec().bytes()];
//! let mut decoder = Decoder::new();
//! let decoded = decoder.decode_into(&plan, TensorMut { spec: plan.spec(), data: &mut buffer })?;
//! assert_eq!(buffer, pixels);
//! assert!(!decoded.partial);
//!
//! // Only its right column, in grayscale, in one call.
//! let right = Region { x: 2, y: 0, width: 1, height: 2 };
//! let options = DecodeOptions { channels: Channels::Gray, region: Some(right), ..DecodeOptions::default() };
//! let column = decoder.decode(&file, &options)?;
//! assert_eq!(column.spec().dtype, DType::U8);
//! assert_eq!(column.spec().shape.dims(), [2, 1, 1]);
//! # Ok::<(), forebay_codec::Error>(())
//! ```
//!
//! # When not to use it
//! For images that must be color-managed (embedded profiles are ignored), for animations (the first frame is decoded),
//! and for GIF, TIFF, AVIF, HEIC or JPEG XL (an error says what the file is), and for audio in
//! Ogg or MP4 (an error says so, too).
//!
//! # Limits
//! Input is never trusted: it cannot cause a panic, and it can ask for no more memory than
//! [`Limits`](image::Limits) allow, which are checked against the header before anything is allocated. A JPEG may have
//! at most [`JPEG_SCANS_MAX`](image::JPEG_SCANS_MAX) scans, since each costs a pass over the entire image.
//! Audio and signals have their own limits: [`AudioOptions`](audio::AudioOptions), [`SignalOptions`](signal::SignalOptions).
//! So do pages: [`ArticleLimits`](text::ArticleLimits).
#![deny(unsafe_code)]

pub mod audio;
mod error;
pub mod image;
pub mod level;
pub mod memory;
pub mod npy;
pub mod signal;
pub mod tensor;
pub mod tensor_encoding;
pub mod text;

pub use error::{Error, Result, Source};
pub use tensor::{DType, Element, RANK_MAX, Shape, Tensor, TensorMut, TensorSpec, TensorView};
