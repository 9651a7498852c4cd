//! The bare libraries that inflate, used as directly as can be.

use std::hint::black_box;
use std::io::Read as _;

use bytes::Bytes;
use forebay_record::Scope;
use libz_sys as zlib;

use crate::Outcome;

/// What is inflated in one call.
pub(crate) struct Piece {
    pub(crate) compressed: Bytes,
    /// How many bytes it gives.
    pub(crate) inflated: usize,
}

/// A library.
#[derive(Clone, Copy)]
pub(crate) enum Library {
    Zstd,
    /// The same in pieces, as a stream must be that does not fit into memory.
    ZstdStreaming,
    Zlib,
    Libdeflate,
    Lz4,
    /// And the checksums that records have, which it does not look at: of what comes in where each is compressed by itself, else of each block while it is
    /// still in the cache.
    Lz4Checked,
    Snap,
}

impl Library {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zstd => "libzstd",
            Self::ZstdStreaming => "libzstd, streaming",
            Self::Zlib => "zlib",
            Self::Libdeflate => "libdeflate",
            Self::Lz4 => "liblz4",
            Self::Lz4Checked => "liblz4 and CRC-32C",
            Self::Snap => "snap",
        }
    }

    /// Whether it is a library and nothing else.
    pub(crate) fn is_bare(self) -> bool {
        !matches!(self, Self::Lz4Checked)
    }

    /// The library, with memory for `longest` bytes, which are kept in this scope.
    pub(crate) fn open(self, longest: usize, scope: Scope) -> Outcome<Inflater> {
        let engine = match self {
            Self::Zstd => Engine::Zstd(zstd_safe::DCtx::try_create().ok_or("no memory")?),
            Self::ZstdStreaming => Engine::ZstdStreaming(zstd_safe::DCtx::try_create().ok_or("no memory")?),
            Self::Zlib => Engine::Zlib,
            Self::Libdeflate => Engine::Libdeflate(libdeflater::Decompressor::new()),
            Self::Lz4 => Engine::Lz4(Checked::Nothing),
            Self::Lz4Checked if scope == Scope::Record => Engine::Lz4(Checked::Input),
            Self::Lz4Checked => Engine::Lz4(Checked::Output),
            Self::Snap if scope == Scope::Record => Engine::SnapRaw,
            Self::Snap => Engine::SnapFramed,
        };
        Ok(Inflater { engine, output: vec![1; longest] })
    }
}

enum Engine {
    Zstd(zstd_safe::DCtx<'static>),
    ZstdStreaming(zstd_safe::DCtx<'static>),
    Zlib,
    Libdeflate(libdeflater::Decompressor),
    Lz4(Checked),
    SnapRaw,
    SnapFramed,
}

/// What a checksum is taken of besides.
#[derive(Clone, Copy, PartialEq)]
enum Checked {
    Nothing,
    Input,
    Output,
}

/// A library with the memory that it inflates into.
pub(crate) struct Inflater {
    engine: Engine,
    output: Vec<u8>,
}

impl Inflater {
    /// Inflates all of a piece, whatever it gives.
    pub(crate) fn inflate(&mut self, piece: &Piece) -> Outcome<&[u8]> {
        let (compressed, output) = (&piece.compressed[..], &mut self.output[..piece.inflated]);
        let given = match &mut self.engine {
            Engine::Zstd(context) => context.decompress(output, compressed).map_err(zstd_safe::get_error_name)?,
            Engine::ZstdStreaming(context) => stream_zstd(context, compressed, output)?,
            Engine::Zlib => inflate_zlib(compressed, output)?,
            Engine::Libdeflate(stream) => stream.gzip_decompress(compressed, output)?,
            Engine::Lz4(checked) => inflate_lz4(compressed, output, *checked)?,
            Engine::SnapRaw => snap::raw::Decoder::new().decompress(compressed, output)?,
            Engine::SnapFramed => {
                snap::read::FrameDecoder::new(compressed).read_exact(output)?;
                output.len()
            }
        };
        if given == piece.inflated { Ok(&self.output[..given]) } else { Err("too few bytes".into()) }
    }
}

/// In pieces of the size that the library asks for, each into its place.
fn stream_zstd(context: &mut zstd_safe::DCtx<'_>, compressed: &[u8], output: &mut [u8]) -> Outcome<usize> {
    let piece = zstd_safe::DCtx::out_size();
    let mut from = zstd_safe::InBuffer::around(compressed);
    let mut written = 0;
    while from.pos() < compressed.len() {
        let end = output.len().min(written + piece);
        let mut to = zstd_safe::OutBuffer::around(&mut output[written..end]);
        context.decompress_stream(&mut to, &mut from).map_err(zstd_safe::get_error_name)?;
        written += to.pos();
    }
    Ok(written)
}

/// GZIP or ZLIB, in one call.
fn inflate_zlib(compressed: &[u8], output: &mut [u8]) -> Outcome<usize> {
    let mut stream = std::mem::MaybeUninit::<zlib::z_stream>::zeroed();
    let stream = stream.as_mut_ptr();
    // SAFETY: to zlib zeros mean its own allocator, and nothing to read or write yet. It is given the pointers and lengths of slices that live
    // longer than the stream, which is ended once, if it was begun.
    let (code, given) = unsafe {
        (*stream).next_in = compressed.as_ptr().cast_mut();
        (*stream).avail_in = compressed.len() as u32;
        (*stream).next_out = output.as_mut_ptr();
        (*stream).avail_out = output.len() as u32;
        // 32: whichever of the two the header says.
        let size = std::mem::size_of::<zlib::z_stream>() as i32;
        if zlib::inflateInit2_(stream, 15 + 32, zlib::zlibVersion(), size) != zlib::Z_OK {
            return Err("zlib could not start".into());
        }
        let code = zlib::inflate(stream, zlib::Z_FINISH);
        let given = (*stream).total_out as usize;
        zlib::inflateEnd(stream);
        (code, given)
    };
    if code == zlib::Z_STREAM_END { Ok(given) } else { Err("zlib did not come to the end".into()) }
}

/// The blocks of frames that are as ours: without sizes and checksums.
fn inflate_lz4(mut compressed: &[u8], output: &mut [u8], checked: Checked) -> Outcome<usize> {
    if checked == Checked::Input {
        black_box(crc_fast::crc32_iscsi(compressed));
    }
    let mut written = 0;
    while !compressed.is_empty() {
        compressed = compressed.get(7..).ok_or("no frame")?;
        loop {
            let (length, rest) = compressed.split_first_chunk::<4>().ok_or("no block")?;
            let length = u32::from_le_bytes(*length);
            compressed = rest;
            if length == 0 {
                break;
            }
            let (block, rest) = compressed.split_at((length & 0x7fff_ffff) as usize);
            compressed = rest;
            let space = &mut output[written..];
            let given = if length >> 31 == 1 {
                space[..block.len()].copy_from_slice(block);
                block.len()
            } else {
                lz4::block::decompress_to_buffer(block, Some(space.len().min(4 << 20) as i32), space)?
            };
            if checked == Checked::Output {
                black_box(crc_fast::crc32_iscsi(&space[..given]));
            }
            written += given;
        }
    }
    Ok(written)
}
