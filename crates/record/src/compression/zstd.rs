//! Zstandard: contexts that are told what a compression's name says, and a stream of frames.

use std::io::{self, BufRead, Read};

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, Strategy, get_error_name};

use super::{ZstdOptions, ZstdStrategy};

pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An error of the library, which it has as a number.
pub(super) fn failed(code: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, get_error_name(code))
}

/// A context that compresses as `options` say.
pub(super) fn compressing(options: ZstdOptions) -> io::Result<CCtx<'static>> {
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    let parameters = [
        Some(CParameter::CompressionLevel(i32::from(options.level))),
        options.strategy.map(|strategy| CParameter::Strategy(library_strategy(strategy))),
        options.window_log.map(|log| CParameter::WindowLog(u32::from(log))),
        Some(CParameter::ChecksumFlag(options.checksum)),
        options.long.then_some(CParameter::EnableLongDistanceMatching(true)),
    ];
    for parameter in parameters.into_iter().flatten() {
        context.set_parameter(parameter).map_err(failed)?;
    }
    Ok(context)
}

fn library_strategy(strategy: ZstdStrategy) -> Strategy {
    match strategy {
        ZstdStrategy::Fast => Strategy::ZSTD_fast,
        ZstdStrategy::DoubleFast => Strategy::ZSTD_dfast,
        ZstdStrategy::Greedy => Strategy::ZSTD_greedy,
        ZstdStrategy::Lazy => Strategy::ZSTD_lazy,
        ZstdStrategy::Lazy2 => Strategy::ZSTD_lazy2,
        ZstdStrategy::BinaryTreeLazy2 => Strategy::ZSTD_btlazy2,
        ZstdStrategy::BinaryTreeOptimal => Strategy::ZSTD_btopt,
        ZstdStrategy::BinaryTreeUltra => Strategy::ZSTD_btultra,
        ZstdStrategy::BinaryTreeUltra2 => Strategy::ZSTD_btultra2,
    }
}

/// Appends `piece` as a frame of its own.
pub(super) fn compress(context: &mut CCtx<'_>, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    out.resize(start + zstd_safe::compress_bound(piece.len()), 0);
    let length = context.compress2(&mut out[start..], piece).map_err(failed)?;
    out.truncate(start + length);
    Ok(())
}

/// Fills `out` with the content of the frames that `compressed` is; how many bytes they give.
pub(super) fn inflate(context: &mut DCtx<'_>, compressed: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    context.decompress(out, compressed).map_err(get_error_name)
}

/// What a stream of frames inflates to, in order.
///
/// A frame that asks for a window beyond 128 MiB is refused, as the program `zstd` does: a few bytes could ask for any amount.
pub(crate) struct ZstdReader<R> {
    input: R,
    context: DCtx<'static>,
    /// Whether the input ended where a frame did.
    between_frames: bool,
}

impl<R: BufRead> ZstdReader<R> {
    pub(crate) fn new(input: R) -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        let window_log_max = u32::from(*ZstdOptions::WINDOW_LOGS.end());
        context.set_parameter(DParameter::WindowLogMax(window_log_max)).map_err(failed)?;
        Ok(Self { input, context, between_frames: true })
    }

    pub(crate) fn get_ref(&self) -> &R {
        &self.input
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let available = self.input.fill_buf()?;
            let ended = available.is_empty();
            if ended && self.between_frames {
                return Ok(0);
            }
            let (mut from, mut to) = (InBuffer::around(available), OutBuffer::around(&mut *out));
            let wanted = self.context.decompress_stream(&mut to, &mut from).map_err(failed)?;
            let (read, written) = (from.pos(), to.pos());
            self.input.consume(read);
            self.between_frames = wanted == 0;
            if written > 0 {
                return Ok(written);
            }
            if ended && !self.between_frames {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends within a frame"));
            }
        }
    }
}
