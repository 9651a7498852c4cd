//! Zstandard: contexts that are told what a compression's name says, and a stream of frames.

use std::io::{self, BufRead, Read};

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, Strategy, get_error_name};

use super::{Dictionary, ZstdOptions, ZstdStrategy};

pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An error of the library, which it has as a number.
pub(super) fn failed(code: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, get_error_name(code))
}

/// A context that compresses as `options` say, with a dictionary if they say so.
pub(super) fn compressing(options: ZstdOptions, dictionary: Option<&Dictionary>) -> io::Result<CCtx<'static>> {
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    let parameters = [
        Some(CParameter::CompressionLevel(i32::from(options.level))),
        options.strategy.map(|strategy| CParameter::Strategy(library_strategy(strategy))),
        options.window_log.map(|log| CParameter::WindowLog(u32::from(log))),
        Some(CParameter::ChecksumFlag(options.checksum)),
        options.long.then_some(CParameter::EnableLongDistanceMatching(true)),
        options.workers.map(|workers| CParameter::NbWorkers(u32::from(workers))),
    ];
    for parameter in parameters.into_iter().flatten() {
        context.set_parameter(parameter).map_err(failed)?;
    }
    match (options.dictionary, dictionary) {
        (true, Some(dictionary)) => _ = context.load_dictionary(dictionary.bytes()).map_err(failed)?,
        (true, None) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no dictionary")),
        (false, _) => {}
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
pub(super) fn inflate(
    context: &mut DCtx<'_>,
    compressed: &[u8],
    dictionary: Option<&Dictionary>,
    out: &mut [u8],
) -> Result<usize, &'static str> {
    let given = match dictionary {
        Some(dictionary) => context.decompress_using_ddict(out, compressed, dictionary.prepared()),
        None => context.decompress(out, compressed),
    };
    given.map_err(get_error_name)
}

/// What a stream of frames inflates to, in order.
///
/// A frame that asks for a window beyond 128 MiB is refused, as the program `zstd` does: a few bytes could ask for any amount.
pub(crate) struct ZstdReader<R> {
    input: R,
    context: DCtx<'static>,
    /// Whether the input ended where a frame did.
    between_frames: bool,
    /// How many bytes the next part of a frame has: no more are given at once, so that what came before a damaged part comes.
    wanted: usize,
    /// Whether there may be more to come of the part before.
    pending: bool,
}

/// The longest header of a frame.
const HEADER_BYTES_MAX: usize = 18;

impl<R: BufRead> ZstdReader<R> {
    pub(crate) fn new(input: R) -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        let window_log_max = u32::from(*ZstdOptions::WINDOW_LOGS.end());
        context.set_parameter(DParameter::WindowLogMax(window_log_max)).map_err(failed)?;
        Ok(Self { input, context, between_frames: true, wanted: HEADER_BYTES_MAX, pending: false })
    }

    /// How many bytes its state takes, with the window of the frame that it is in.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.context.sizeof() as u64
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
            let available = if self.pending { &[] } else { self.input.fill_buf()? };
            let ended = available.is_empty() && !self.pending;
            if ended && self.between_frames {
                return Ok(0);
            }
            let available = &available[..available.len().min(self.wanted)];
            let (mut from, mut to) = (InBuffer::around(available), OutBuffer::around(&mut *out));
            let wanted = self.context.decompress_stream(&mut to, &mut from).map_err(failed)?;
            let (read, written) = (from.pos(), to.pos());
            self.input.consume(read);
            self.between_frames = wanted == 0;
            self.wanted = if wanted == 0 { HEADER_BYTES_MAX } else { wanted };
            // Nothing of a frame that is over is left in the library; asked again, it would wait for another frame.
            self.pending = wanted != 0 && written == out.len();
            if written > 0 {
                return Ok(written);
            }
            if ended && !self.between_frames {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends within a frame"));
            }
        }
    }
}
