//! Tensors to bytes.

use std::borrow::Cow;

use super::bits::by_width;
use super::filter::{delta, distance_of, shuffle};
use super::integers::pack;
use super::library::{LZ4_BYTES_MAX, compress, compress_pco};
use super::sparse::{count_runs, count_zeros, mark_zeros};
use super::value::{Head, Stored};
use super::{Compressor, Loss, Scheme, TensorEncoding, loss};
use crate::error::{Error, Result};
use crate::memory;
use crate::tensor::{DType, TensorSpec, TensorView};

/// What is around a payload at most: scheme, type, dimensions, distance and length, checksum.
const AROUND_BYTES: usize = 2 + 10 * (crate::tensor::RANK_MAX + 2) + 4;

/// Encodes a tensor of a type that the encoding [holds](TensorEncoding::holds). Where the scheme would make it larger, what is
/// kept of it is stored plain, so that it never takes more than some bytes more than raw.
pub fn encode_tensor(tensor: TensorView<'_>, encoding: &TensorEncoding) -> Result<Vec<u8>> {
    let spec = tensor.spec;
    if !encoding.holds(spec.dtype) {
        return Err(Error::usage("the tensor encoding cannot hold this", format!("what `{encoding}` holds"), spec));
    }
    if tensor.data.len() != spec.bytes() {
        return Err(Error::usage("the tensor's bytes do not fit its shape", spec.bytes(), tensor.data.len()));
    }
    let kept = match encoding.loss {
        None => Cow::Borrowed(tensor.data),
        Some(loss) => Cow::Owned(loss::apply(loss, tensor.data, spec.dtype)?),
    };
    let bfloat16 = encoding.loss == Some(Loss::Bfloat16);
    let plain = Head { spec, stored: Stored::Plain, delta: None, shuffle: false, bfloat16 };
    let encoded = if kept.is_empty() { None } else { scheme(&plain, &kept, encoding.scheme)? };
    let (head, payload) = match &encoded {
        Some((head, payload)) if payload.len() < kept.len() => (*head, payload.as_slice()),
        _ => (plain, &*kept),
    };
    let mut out = Vec::new();
    memory::reserve(&mut out, payload.len().saturating_add(AROUND_BYTES))?;
    head.write(payload, &mut out);
    Ok(out)
}

/// The payload of `kept` in this scheme, with its head; `None` where it cannot be made.
fn scheme(plain: &Head, kept: &[u8], scheme: Scheme) -> Result<Option<(Head, Vec<u8>)>> {
    let dtype = plain.stored_dtype();
    let width = dtype.bytes();
    let (stored, payload) = match scheme {
        Scheme::Plain => return Ok(None),
        Scheme::Compressed { compressor: Compressor::Lz4 { .. } | Compressor::Lz4HighCompression { .. }, .. }
            if kept.len() > LZ4_BYTES_MAX =>
        {
            return Ok(None);
        }
        Scheme::Compressed { delta: with_delta, shuffle: with_shuffle, compressor } => {
            let distance = with_delta.then(|| distance_of(&plain.spec.shape));
            let mut filtered = Cow::Borrowed(kept);
            if let Some(distance) = distance {
                filtered = Cow::Owned(delta(&filtered, width, distance)?);
            }
            if with_shuffle {
                filtered = Cow::Owned(shuffle(&filtered, width)?);
            }
            let payload = compress(&filtered, compressor)?;
            let stored = if matches!(compressor, Compressor::Zstd { .. }) { Stored::Zstd } else { Stored::Lz4 };
            return Ok(Some((Head { stored, delta: distance, shuffle: with_shuffle, ..*plain }, payload)));
        }
        Scheme::Pco { level } => {
            let spec = TensorSpec { dtype, ..plain.spec };
            (Stored::Pco, compress_pco(TensorView { spec, data: kept }, level)?)
        }
        Scheme::BitPack => {
            let signed = matches!(dtype, DType::I16 | DType::I32 | DType::I64);
            (Stored::BitPack, by_width!(width, pack(kept, signed))?)
        }
        Scheme::RunLength => (Stored::RunLength, by_width!(width, count_runs(kept))?),
        Scheme::Sparse => {
            // Zeros in long runs are counted for less, scattered ones are marked for less.
            let counted = by_width!(width, count_zeros(kept))?;
            let marked = by_width!(width, mark_zeros(kept))?;
            if marked.len() < counted.len() { (Stored::SparseMask, marked) } else { (Stored::Sparse, counted) }
        }
    };
    Ok(Some((Head { stored, ..*plain }, payload)))
}
