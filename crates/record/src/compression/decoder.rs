//! Inflating what was compressed together: a block, or a record.

use std::cell::RefCell;
use std::io::Read;

use bytes::Bytes;
use zstd_safe::DCtx;

use super::{CompressedBlock, Form, ShardCompression, lz4_frame, zstd};
use crate::error::{Error, FormatFault, Place, Result};

/// Appends what `compressed`, the bytes of `block`, inflates to; `shard` is the shard's name, for errors.
///
/// It gives exactly the length that the list of blocks says, or an error: nothing that the bytes say makes it allocate more.
/// Whether the bytes are the right ones is for the records' checksums to say.
pub fn inflate_block(
    compressed: &[u8],
    block: &CompressedBlock,
    compression: ShardCompression,
    shard: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    let place = || Place { shard: Some(shard.into()), record: None, offset: Some(block.offset) };
    inflate(compressed, block.inflated_length, compression, out, place).map_err(|detail| {
        detail.map_or_else(|error| error, |detail| fault(place(), FormatFault::CompressedBlock { detail }))
    })
}

/// What `compressed`, a record that was compressed by itself, inflates to: `length` bytes, or an error. `place` is where it was
/// found.
pub fn inflate_record(
    compressed: &[u8],
    length: u64,
    compression: ShardCompression,
    place: impl Fn() -> Place,
) -> Result<Bytes> {
    let damaged = |detail: Box<str>| fault(place(), FormatFault::CompressedRecord { detail });
    let inflation_max = compression.algorithm.inflation_max();
    if length > (compressed.len() as u64).saturating_mul(inflation_max) {
        return Err(damaged(format!("{} bytes cannot inflate to {length}", compressed.len()).into()));
    }
    let mut out = Vec::new();
    inflate(compressed, length, compression, &mut out, &place)
        .map_err(|detail| detail.map_or_else(|error| error, damaged))?;
    Ok(out.into())
}

fn fault(place: Place, fault: FormatFault) -> Error {
    Error::Format { place, fault }
}

/// Why nothing was inflated: what is wrong with the bytes, or another error.
type Failed = std::result::Result<Box<str>, Error>;

fn inflate(
    compressed: &[u8],
    length: u64,
    compression: ShardCompression,
    out: &mut Vec<u8>,
    place: impl Fn() -> Place,
) -> std::result::Result<(), Failed> {
    let start = out.len();
    let length = length as usize;
    let refused = |_| Error::Io { place: place(), action: "inflate", source: std::io::ErrorKind::OutOfMemory.into() };
    out.try_reserve_exact(length).map_err(|error| Err(refused(error)))?;
    out.resize(start + length, 0);
    let given =
        CONTEXTS.with_borrow_mut(|contexts| contexts.inflate(compressed, compression.form(), &mut out[start..]));
    match given {
        Ok(given) if given == length => Ok(()),
        Ok(given) => Err(Ok(format!("it gives {given} bytes, not {length}").into())),
        Err(detail) => Err(Ok(detail.into())),
    }
}

thread_local! {
    /// What inflating works with. Kept, since records may be small and many.
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

/// A larger copy of compressed bytes is not kept.
const SCRATCH_BYTES_MAX: usize = 4 << 20;

/// The empty last block of a DEFLATE stream.
const DEFLATE_END: [u8; 2] = [0x03, 0x00];

#[derive(Default)]
struct Contexts {
    deflate: Option<libdeflater::Decompressor>,
    zstd: Option<DCtx<'static>>,
    scratch: Vec<u8>,
}

impl Contexts {
    /// Fills `out`, and says how many bytes there were, which are no more.
    fn inflate(&mut self, compressed: &[u8], form: Form, out: &mut [u8]) -> std::result::Result<usize, String> {
        match form {
            Form::Deflate | Form::Gzip | Form::Zlib => {
                let stream = self.deflate.get_or_insert_default();
                let given = match form {
                    Form::Gzip => stream.gzip_decompress(compressed, out),
                    Form::Zlib => stream.zlib_decompress(compressed, out),
                    _ => {
                        // The library takes whole streams only, and is much faster than those that take parts, so that a copy with an
                        // end of its own pays.
                        self.scratch.clear();
                        self.scratch.try_reserve(compressed.len() + 2).map_err(|error| error.to_string())?;
                        self.scratch.extend_from_slice(compressed);
                        self.scratch.extend_from_slice(&DEFLATE_END);
                        let given = stream.deflate_decompress(&self.scratch, out);
                        if self.scratch.capacity() > SCRATCH_BYTES_MAX {
                            self.scratch = Vec::new();
                        }
                        given
                    }
                };
                given.map_err(|error| match error {
                    libdeflater::DecompressionError::BadData => "it is corrupt".to_owned(),
                    libdeflater::DecompressionError::InsufficientSpace => {
                        format!("it gives more than {} bytes", out.len())
                    }
                })
            }
            Form::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = DCtx::try_create();
                }
                let context = self.zstd.as_mut().ok_or("not enough memory for a context")?;
                zstd::inflate(context, compressed, out).map_err(str::to_owned)
            }
            Form::Lz4 => lz4_frame::inflate(compressed, out).map(|()| out.len()).map_err(str::to_owned),
            Form::SnappyFramed => {
                let mut stream = snap::read::FrameDecoder::new(compressed);
                stream.read_exact(out).map_err(|error| error.to_string())?;
                let beyond = stream.read(&mut [0]).map_err(|error| error.to_string())?;
                if beyond == 0 { Ok(out.len()) } else { Err(format!("it gives more than {} bytes", out.len())) }
            }
            Form::SnappyRaw => snap::raw::Decoder::new().decompress(compressed, out).map_err(|error| error.to_string()),
        }
    }
}
