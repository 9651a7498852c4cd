//! Compressing pieces, each by itself.

use std::io::{self, Write};

use forebay_deflate::{Deflate, Flush, Wrapper};
use zstd_safe::CCtx;

use super::{Algorithm, DeflateOptions, Dictionary, Framing, Lz4Mode, ShardCompression, lz4_frame, zstd};
use crate::error::{Error, ErrorLocation, Result};

/// What GZIP begins with: DEFLATE, no name, no time, an unknown system.
pub(super) const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// DEFLATE hands on what it has in pieces of this size.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// Compresses pieces, each by itself.
pub(super) enum Encoder {
    Deflate { stream: DeflateStream, framing: Framing },
    Zstd(CCtx<'static>),
    Lz4(Lz4Mode),
    SnappyFramed,
    SnappyRaw(Box<snap::raw::Encoder>),
}

impl Encoder {
    pub(super) fn new(compression: ShardCompression, dictionary: Option<&Dictionary>) -> io::Result<Self> {
        let framing = compression.framing();
        Ok(match compression.algorithm {
            Algorithm::Gzip(options) => Self::Deflate { stream: DeflateStream::new(options, Wrapper::Raw)?, framing },
            Algorithm::Zlib(options) => Self::Deflate { stream: DeflateStream::new(options, Wrapper::Zlib)?, framing },
            Algorithm::Zstd(options) => Self::Zstd(zstd::compressing(options, dictionary)?),
            Algorithm::Lz4(mode) => Self::Lz4(mode),
            Algorithm::Snappy if framing == Framing::SnappyRaw => Self::SnappyRaw(Box::new(snap::raw::Encoder::new())),
            Algorithm::Snappy => Self::SnappyFramed,
        })
    }

    /// Appends what `piece` becomes to `out`.
    pub(super) fn append(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Deflate { stream, framing } => {
                if *framing == Framing::Gzip {
                    out.extend_from_slice(&GZIP_HEADER);
                }
                stream.reset();
                stream.append(piece, Flush::Finish, out);
                if *framing == Framing::Gzip {
                    out.extend_from_slice(&gzip_trailer(libdeflater::crc32(piece), piece.len() as u64));
                }
                Ok(())
            }
            Self::Zstd(context) => zstd::compress(context, piece, out),
            Self::Lz4(mode) => lz4_frame::compress(piece, *mode, out),
            Self::SnappyFramed => {
                let mut stream = snap::write::FrameEncoder::new(out);
                stream.write_all(piece)?;
                stream.flush()
            }
            Self::SnappyRaw(encoder) => {
                let start = out.len();
                out.resize(start + snap::raw::max_compress_len(piece.len()), 0);
                let length = encoder.compress(piece, &mut out[start..]).map_err(io::Error::other)?;
                out.truncate(start + length);
                Ok(())
            }
        }
    }
}

/// A stream of DEFLATE, whose output is appended.
pub(super) struct DeflateStream {
    stream: Deflate,
    chunk: Box<[u8]>,
}

impl DeflateStream {
    pub(super) fn new(options: DeflateOptions, wrapper: Wrapper) -> io::Result<Self> {
        let stream = Deflate::new(options, wrapper).map_err(|error| match error {
            forebay_deflate::Error::Memory => io::ErrorKind::OutOfMemory.into(),
            error @ forebay_deflate::Error::Parameters => io::Error::new(io::ErrorKind::InvalidInput, error),
        })?;
        Ok(Self { stream, chunk: vec![0; BUFFER_BYTES].into() })
    }

    pub(super) fn reset(&mut self) {
        self.stream.reset();
    }

    /// Appends what becomes of `input`, and all that was held back if `flush` says so.
    pub(super) fn append(&mut self, mut input: &[u8], flush: Flush, out: &mut Vec<u8>) {
        loop {
            let progress = self.stream.run(input, &mut self.chunk, flush);
            out.extend_from_slice(&self.chunk[..progress.written]);
            input = &input[progress.read..];
            // With space left there is nothing more to come.
            if input.is_empty() && progress.written < self.chunk.len() {
                return;
            }
        }
    }
}

/// What GZIP ends with: the checksum, and the length modulo 2^32.
pub(super) fn gzip_trailer(checksum: u32, length: u64) -> [u8; 8] {
    (u64::from(checksum) | (length & u64::from(u32::MAX)) << 32).to_le_bytes()
}

/// Compresses records, each by itself.
pub struct RecordCompressor {
    encoder: Encoder,
    buffer: Vec<u8>,
}

impl RecordCompressor {
    /// A compressor as `compression` says, whose scope is a record; with the dictionary that it asks for, if it does.
    pub fn new(compression: ShardCompression, dictionary: Option<&Dictionary>) -> io::Result<Self> {
        Ok(Self { encoder: Encoder::new(compression, dictionary)?, buffer: Vec::new() })
    }

    /// What `record` becomes.
    pub fn compress(&mut self, record: &[u8]) -> Result<&[u8]> {
        self.buffer.clear();
        let failed = |source| Error::Io { location: ErrorLocation::default(), action: "compress", source };
        self.encoder.append(record, &mut self.buffer).map_err(failed)?;
        Ok(&self.buffer)
    }
}
