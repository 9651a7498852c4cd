//! Compressing all records of a shard as one stream, in the formats whose blocks are frames.

use std::io::{self, Write};

use zstd_safe::zstd_sys::ZSTD_EndDirective as Directive;
use zstd_safe::{CCtx, InBuffer, OutBuffer};

use super::encoder::BUFFER_BYTES;
use super::{Lz4Mode, ZstdOptions, lz4_frame, zstd};

/// A stream of one frame.
pub(super) enum StreamEncoder {
    Zstd(CCtx<'static>, Box<[u8]>),
    /// What is not yet a block. The frame begins with the first byte.
    Lz4(Lz4Mode, Vec<u8>, bool),
    Snappy(Box<snap::write::FrameEncoder<Vec<u8>>>),
}

impl StreamEncoder {
    pub(super) fn zstd(options: ZstdOptions) -> io::Result<Self> {
        Ok(Self::Zstd(zstd::compressing(options, None)?, vec![0; BUFFER_BYTES].into()))
    }

    pub(super) fn lz4(mode: Lz4Mode) -> Self {
        Self::Lz4(mode, Vec::new(), false)
    }

    pub(super) fn snappy() -> Self {
        Self::Snappy(Box::new(snap::write::FrameEncoder::new(Vec::new())))
    }

    /// Appends to `out` what can be said of `bytes` and those before them.
    pub(super) fn append(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Zstd(context, chunk) => run_zstd(context, chunk, bytes, Directive::ZSTD_e_continue, out),
            Self::Lz4(mode, pending, begun) => {
                while !bytes.is_empty() {
                    if !*begun {
                        lz4_frame::begin(out);
                        *begun = true;
                    }
                    let (now, later) = bytes.split_at(bytes.len().min(lz4_frame::STREAM_BLOCK_BYTES - pending.len()));
                    pending.extend_from_slice(now);
                    bytes = later;
                    if pending.len() == lz4_frame::STREAM_BLOCK_BYTES {
                        lz4_frame::compress_blocks(pending, *mode, out)?;
                        pending.clear();
                    }
                }
                Ok(())
            }
            Self::Snappy(stream) => {
                stream.write_all(bytes)?;
                out.append(stream.get_mut());
                Ok(())
            }
        }
    }

    /// Appends the end of the stream, of which there was something.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Zstd(context, chunk) => run_zstd(context, chunk, &[], Directive::ZSTD_e_end, out),
            Self::Lz4(mode, pending, _) => {
                lz4_frame::compress_blocks(pending, *mode, out)?;
                lz4_frame::end(out);
                Ok(())
            }
            Self::Snappy(stream) => {
                stream.flush()?;
                out.append(stream.get_mut());
                Ok(())
            }
        }
    }
}

fn run_zstd(
    context: &mut CCtx<'_>,
    chunk: &mut [u8],
    bytes: &[u8],
    directive: Directive,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let ends = matches!(directive, Directive::ZSTD_e_end);
    let mut from = InBuffer::around(bytes);
    loop {
        let mut to = OutBuffer::around(&mut *chunk);
        let left = context.compress_stream2(&mut to, &mut from, directive).map_err(zstd::failed)?;
        out.extend_from_slice(to.as_slice());
        if from.pos() == bytes.len() && (!ends || left == 0) {
            return Ok(());
        }
    }
}
