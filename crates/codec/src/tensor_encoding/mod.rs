//! Compression of tensors, each by itself, by encodings that know the element type.
//!
//! ```text
//! scheme     1 byte    bits 0-2: 0 plain, 1 zstd, 2 lz4, 3 pco, 4 bitpack, 5 sparse, 6 sparse by a mask, 7 rle
//!                      bit 3: delta   bit 4: shuffle   bit 5: bfloat16   bits 6-7: 0
//! type       1 byte    bits 0-3: the element type   bits 4-7: how many dimensions
//! dims       varints   one for each dimension
//! distance   varint    only with delta: how many elements back
//! length     varint    how many bytes the payload has
//! payload
//! checksum   4 bytes   CRC-32C of all before it, little endian
//! ```
//!
//! `docs/formats/tensors.md` is the normative page. A value describes itself, so that it is decoded without the name of its encoding; a reader
//! that knows the expected spec compares it.
//!
//! ```
//! use forebay_codec::tensor_encoding::{EncodedTensor, TensorDecoder, TensorEncoding, encode_tensor};
//! use forebay_codec::{Tensor, TensorMut};
//!
//! let ramp: Vec<f32> = (0..1000).map(|number| number as f32 / 8.0).collect();
//! let tensor = Tensor::from_elements(&[10, 100], &ramp).expect("1000 elements fit the shape");
//! let encoding: TensorEncoding = "shuffle-zstd-3".parse()?;
//! let bytes = encode_tensor(tensor.view(), &encoding)?;
//! assert!(bytes.len() < tensor.data().len() / 2);
//!
//! // Open it, get the spec of the result, and decode it into a buffer of our own.
//! let value = EncodedTensor::open(&bytes)?;
//! let mut buffer = vec![0; value.spec().bytes()];
//! TensorDecoder::new().decode_into(&value, TensorMut { spec: value.spec(), data: &mut buffer })?;
//! assert_eq!(buffer, tensor.data()[..]);
//! # Ok::<(), forebay_codec::Error>(())
//! ```
//!
//! # Limits
//! [`EncodedTensor::open`] allocates nothing. The memory of the tensor is the caller's, who sees its spec first. In addition, decoding
//! takes [`EncodedTensor::working_bytes`], a library context of less than 1 MiB, and for a malicious pco payload
//! a window of up to 256 MiB.

mod bits;
mod decode;
mod encode;
mod filter;
mod integers;
mod library;
mod loss;
mod name;
mod sparse;
mod value;

pub use decode::TensorDecoder;
pub use encode::encode_tensor;
pub use loss::ErrorBound;
pub use name::TENSOR_ENCODING_NAMES;
pub use value::EncodedTensor;

use crate::tensor::DType;

/// How a tensor is encoded: the loss, if any, and the lossless scheme.
///
/// Made from its name (`shuffle-zstd-3`, `bfloat16-delta-lz4`), which is how strategies and manifests have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorEncoding {
    loss: Option<Loss>,
    scheme: Scheme,
}

/// What is lost of floating point numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loss {
    /// The lower half of a `float32`.
    Bfloat16,
    /// What is finer than a multiple of a power of two.
    Absolute(f64),
    /// The bits of the significand that are finer than this.
    Relative(f64),
}

/// The lossless scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// The elements as they are, which makes sense after a loss only.
    Plain,
    /// Compressed as bytes, after what makes bytes more alike.
    Compressed { delta: bool, shuffle: bool, compressor: Compressor },
    /// As the numeric library `pco` has it.
    Pco { level: u8 },
    /// Integers in as many bits as their range takes.
    BitPack,
    /// Zeros counted or marked, the others as they are.
    Sparse,
    /// Runs of equal elements, counted.
    RunLength,
}

/// What compresses bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compressor {
    /// From −7 to 22; there is no 0.
    Zstd { level: i8 },
    /// LZ4's fast compressor; from 1.
    Lz4 { acceleration: u32 },
    /// LZ4's thorough one; from 2 to 12.
    Lz4HighCompression { level: u8 },
}

impl TensorEncoding {
    /// Whether it can hold tensors of this type. Lossy ones hold floating point numbers only, bit packing integers, and a shuffle of
    /// single bytes would change nothing.
    pub fn holds(&self, dtype: DType) -> bool {
        let loss_holds = match self.loss {
            None => true,
            Some(Loss::Bfloat16) => dtype == DType::F32,
            Some(Loss::Absolute(_) | Loss::Relative(_)) => matches!(dtype, DType::F32 | DType::F64),
        };
        let scheme_holds = match self.scheme {
            Scheme::Compressed { shuffle: true, .. } => dtype.bytes() > 1,
            Scheme::BitPack => !dtype.is_float(),
            _ => true,
        };
        loss_holds && scheme_holds
    }

    /// Whether decoding gives back every bit.
    pub fn is_lossless(&self) -> bool {
        self.loss.is_none()
    }

    /// How far from what it was a number may come back; `None` where every bit comes back.
    pub fn error_bound(&self) -> Option<ErrorBound> {
        self.loss.map(ErrorBound::of)
    }
}
