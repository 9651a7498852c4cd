//! Bytes to tensors.

use std::fmt;

use zstd_safe::DCtx;

use super::bits::by_width;
use super::filter::{undelta, unshuffle};
use super::integers::unpack;
use super::library::{inflate_lz4, inflate_pco, inflate_zstd};
use super::loss::widen;
use super::sparse::{fill_runs, fill_zeros, place_others};
use super::value::{EncodedTensor, Stored};
use crate::error::{Error, Result};
use crate::memory;
use crate::tensor::TensorMut;

/// Decodes tensors, reusing its working memory from one to the next.
#[derive(Default)]
pub struct TensorDecoder {
    context: Option<DCtx<'static>>,
    /// Words, so that elements of every type are aligned in them.
    inflated: Vec<u64>,
    unshuffled: Vec<u64>,
    aligned: Vec<u64>,
}

impl fmt::Debug for TensorDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorDecoder").field("capacity_bytes", &self.capacity_bytes()).finish_non_exhaustive()
    }
}

impl TensorDecoder {
    /// A decoder that has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes its buffers take.
    pub fn capacity_bytes(&self) -> usize {
        (self.inflated.capacity() + self.unshuffled.capacity() + self.aligned.capacity()) * size_of::<u64>()
    }

    /// Gives them back.
    pub fn trim(&mut self) {
        *self = Self { context: self.context.take(), ..Self::default() };
    }

    /// Decodes `value` into `output`, which must be of its spec. After an error it holds anything.
    pub fn decode_into(&mut self, value: &EncodedTensor<'_>, output: TensorMut<'_>) -> Result<()> {
        let TensorMut { spec, data: out } = output;
        let head = value.head;
        if spec != head.spec || out.len() != spec.bytes() {
            return Err(Error::usage("the output is for another tensor", head.spec, spec));
        }
        let width = head.stored_dtype().bytes();
        let bytes = head.stored_bytes();
        let Self { context, inflated, unshuffled, aligned } = self;
        let mut inflate = |out: &mut [u8]| inflate(value, context, aligned, out);
        if !head.bfloat16 && !head.shuffle {
            inflate(&mut *out)?;
            if let Some(distance) = head.delta {
                undelta(out, width, distance);
            }
            return Ok(());
        }
        if head.bfloat16 && head.stored == Stored::Plain {
            widen(value.payload, out);
            return Ok(());
        }
        let inflated = space(inflated, bytes)?;
        inflate(inflated)?;
        if !head.bfloat16 {
            unshuffle(inflated, width, out);
            if let Some(distance) = head.delta {
                undelta(out, width, distance);
            }
            return Ok(());
        }
        let halves = if head.shuffle {
            let unshuffled = space(unshuffled, bytes)?;
            unshuffle(inflated, width, unshuffled);
            unshuffled
        } else {
            inflated
        };
        if let Some(distance) = head.delta {
            undelta(halves, width, distance);
        }
        widen(halves, out);
        Ok(())
    }
}

fn space(buffer: &mut Vec<u64>, bytes: usize) -> Result<&mut [u8]> {
    memory::grow(buffer, bytes.div_ceil(size_of::<u64>()))?;
    Ok(&mut bytemuck::cast_slice_mut(buffer)[..bytes])
}

/// What the payload holds, before filters and loss.
fn inflate(
    value: &EncodedTensor<'_>,
    context: &mut Option<DCtx<'static>>,
    aligned: &mut Vec<u64>,
    out: &mut [u8],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let payload = value.payload;
    let dtype = value.head.stored_dtype();
    match value.head.stored {
        Stored::Plain => {
            out.copy_from_slice(payload);
            Ok(())
        }
        Stored::Zstd => inflate_zstd(context, payload, out),
        Stored::Lz4 => inflate_lz4(payload, out),
        Stored::Pco => inflate_pco(payload, dtype, aligned, out),
        Stored::BitPack => by_width!(dtype.bytes(), unpack(payload, out)),
        Stored::Sparse => by_width!(dtype.bytes(), fill_zeros(payload, out)),
        Stored::SparseMask => by_width!(dtype.bytes(), place_others(payload, out)),
        Stored::RunLength => by_width!(dtype.bytes(), fill_runs(payload, out)),
    }
}
