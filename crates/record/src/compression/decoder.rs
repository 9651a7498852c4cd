//! Inflating what was compressed together: a block, or a record.

use std::cell::RefCell;
use std::io;

use zstd_safe::DCtx;

use super::{CompressedBlock, Dictionary, Framing, ShardCompression, lz4_frame, snappy_frame, zstd};
use crate::error::{Error, ErrorLocation, FormatFault, Result};

/// Fills `out` with what `compressed`, the bytes of `block`, inflates to; `shard` is the shard's name, for errors.
///
/// `out` has the length that the list of blocks says. What gives another one is an error. Whether the bytes are the right ones is for the
/// records' checksums to say.
pub fn inflate_block(
    compressed: &[u8],
    block: &CompressedBlock,
    compression: ShardCompression,
    shard: &str,
    out: &mut [u8],
) -> Result<()> {
    inflate(compressed, compression, None, out).map_err(|detail| Error::Format {
        location: ErrorLocation { shard: Some(shard.into()), record: None, offset: Some(block.offset) },
        fault: FormatFault::CompressedBlock { detail: detail.into() },
    })
}

/// What `compressed`, a record that was compressed by itself, inflates to: `length` bytes, or an error. `location` is where it was
/// found, and `allocate` gives memory for as many bytes as it is told, once it is known that the record can be so long.
pub fn inflate_record<B: AsMut<[u8]>>(
    compressed: &[u8],
    length: u64,
    compression: ShardCompression,
    dictionary: Option<&Dictionary>,
    location: impl Fn() -> ErrorLocation,
    allocate: impl FnOnce(usize) -> io::Result<B>,
) -> Result<B> {
    let damaged = |detail: String| {
        let fault = FormatFault::CompressedRecord { detail: detail.into() };
        Error::Format { location: location(), fault }
    };
    let inflation_max = compression.algorithm.inflation_max();
    if length > (compressed.len() as u64).saturating_mul(inflation_max) {
        return Err(damaged(format!("{} bytes cannot inflate to {length}", compressed.len())));
    }
    let mut out =
        allocate(length as usize).map_err(|source| Error::Io { location: location(), action: "inflate", source })?;
    let space =
        out.as_mut().get_mut(..length as usize).ok_or_else(|| damaged("there is no space for it".to_owned()))?;
    inflate(compressed, compression, dictionary, space).map_err(damaged)?;
    Ok(out)
}

/// Fills `out`, or says what is wrong with the bytes.
fn inflate(
    compressed: &[u8],
    compression: ShardCompression,
    dictionary: Option<&Dictionary>,
    out: &mut [u8],
) -> std::result::Result<(), String> {
    let length = out.len();
    let given = CONTEXTS
        .with_borrow_mut(|contexts| contexts.inflate(compressed, compression.framing(), dictionary, &mut *out))?;
    if given == length { Ok(()) } else { Err(format!("it gives {given} bytes, not {length}")) }
}

/// The same of bytes in this framing, for other formats than shards of records; says how many bytes there were.
pub(crate) fn inflate_framed(
    compressed: &[u8],
    framing: Framing,
    out: &mut [u8],
) -> std::result::Result<usize, String> {
    CONTEXTS.with_borrow_mut(|contexts| contexts.inflate(compressed, framing, None, out))
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
    fn inflate(
        &mut self,
        compressed: &[u8],
        framing: Framing,
        dictionary: Option<&Dictionary>,
        out: &mut [u8],
    ) -> std::result::Result<usize, String> {
        match framing {
            Framing::Deflate | Framing::Gzip | Framing::Zlib => {
                let stream = self.deflate.get_or_insert_default();
                let given = match framing {
                    Framing::Gzip => stream.gzip_decompress(compressed, out),
                    Framing::Zlib => stream.zlib_decompress(compressed, out),
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
            Framing::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = DCtx::try_create();
                }
                let context = self.zstd.as_mut().ok_or("not enough memory for a context")?;
                zstd::inflate(context, compressed, dictionary, out).map_err(str::to_owned)
            }
            Framing::Lz4 => lz4_frame::inflate(compressed, out).map(|()| out.len()).map_err(str::to_owned),
            Framing::SnappyFramed => snappy_frame::inflate(compressed, out).map_err(str::to_owned),
            Framing::SnappyRaw => {
                snap::raw::Decoder::new().decompress(compressed, out).map_err(|error| error.to_string())
            }
        }
    }
}
