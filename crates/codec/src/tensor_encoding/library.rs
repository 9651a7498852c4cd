//! What libraries do: ZSTD, LZ4 and pco.

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};
use pco::data_types::Number;
use pco::wrapped::{FileCompressor, FileDecompressor};
use pco::{ChunkConfig, PagingSpec};
use zstd_safe::{DCtx, get_error_name};

use super::Compressor;
use super::bits::FORMAT;
use crate::error::{Error, Result};
use crate::memory;
use crate::tensor::{DType, Element, TensorView};

/// The maximum input of LZ4; larger tensors are stored as they are.
pub(super) const LZ4_BYTES_MAX: usize = 0x7e00_0000;

/// How many numbers pco looks at together. What it makes of them depends on none before.
pub(super) const PCO_CHUNK_ELEMENTS: usize = 1 << 18;

pub(super) fn compress(data: &[u8], compressor: Compressor) -> Result<Vec<u8>> {
    let refused = |problem: String| Error::usage("the tensor cannot be compressed", "what the library takes", problem);
    match compressor {
        Compressor::Zstd { level } => {
            let mut out = memory::zeroed(zstd_safe::compress_bound(data.len()))?;
            let length = zstd_safe::compress(&mut out[..], data, i32::from(level))
                .map_err(|code| refused(get_error_name(code).to_owned()))?;
            out.truncate(length);
            Ok(out)
        }
        Compressor::Lz4 { .. } | Compressor::Lz4HighCompression { .. } => {
            let mode = match compressor {
                Compressor::Lz4HighCompression { level } => CompressionMode::HIGHCOMPRESSION(i32::from(level)),
                Compressor::Lz4 { acceleration } => CompressionMode::FAST(acceleration as i32),
                Compressor::Zstd { .. } => CompressionMode::DEFAULT,
            };
            let bound = compress_bound(data.len()).map_err(|error| refused(error.to_string()))?;
            let mut out = memory::zeroed(bound)?;
            let length =
                compress_to_buffer(data, Some(mode), false, &mut out).map_err(|error| refused(error.to_string()))?;
            out.truncate(length);
            Ok(out)
        }
    }
}

/// Fills `out` with what the one frame `payload` holds.
pub(super) fn inflate_zstd(context: &mut Option<DCtx<'static>>, payload: &[u8], out: &mut [u8]) -> Result<()> {
    let context = match context {
        Some(context) => context,
        none => none.insert(DCtx::try_create().ok_or(Error::Memory { bytes: ZSTD_CONTEXT_BYTES })?),
    };
    let length = context.decompress(&mut *out, payload).map_err(|code| damaged("zstd", get_error_name(code)))?;
    filled("zstd", length, out)
}

/// About what a context to decompress takes.
const ZSTD_CONTEXT_BYTES: u64 = 160 << 10;

/// Fills `out` with what the one block `payload` holds.
pub(super) fn inflate_lz4(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let size = i32::try_from(out.len()).map_err(|_| damaged("lz4", "more than LZ4 takes at once"))?;
    let length = decompress_to_buffer(payload, Some(size), out).map_err(|_| damaged("lz4", "the block is corrupt"))?;
    filled("lz4", length, out)
}

fn filled(library: &str, length: usize, out: &[u8]) -> Result<()> {
    if length == out.len() {
        return Ok(());
    }
    Err(damaged(library, &format!("it gives {length} bytes instead of {}", out.len())))
}

fn damaged(library: &str, problem: &str) -> Error {
    Error::format(FORMAT, format!("{library}: {problem}"))
}

/// Calls a function that is generic over elements for those of this type.
macro_rules! by_type {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            DType::U8 => $function::<u8>($($argument),*),
            DType::U16 => $function::<u16>($($argument),*),
            DType::I16 => $function::<i16>($($argument),*),
            DType::I32 => $function::<i32>($($argument),*),
            DType::I64 => $function::<i64>($($argument),*),
            DType::F32 => $function::<f32>($($argument),*),
            DType::F64 => $function::<f64>($($argument),*),
            DType::F16 => $function::<half::f16>($($argument),*),
            // The library has no such numbers, but takes their bits, which are in order as well.
            DType::BF16 => $function::<u16>($($argument),*),
        }
    };
}

pub(super) fn compress_pco(view: TensorView<'_>, level: u8) -> Result<Vec<u8>> {
    by_type!(view.spec.dtype, compress_numbers(view, level))
}

fn compress_numbers<T: Element + Number>(view: TensorView<'_>, level: u8) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    let numbers: &[T] = if let Ok(numbers) = bytemuck::try_cast_slice(view.data) {
        numbers
    } else {
        memory::grow(&mut copy, view.data.len() / size_of::<T>())?;
        bytemuck::cast_slice_mut(&mut copy).copy_from_slice(view.data);
        &copy
    };
    let work = || -> pco::errors::PcoResult<Vec<u8>> {
        let file = FileCompressor::default();
        let mut out = Vec::new();
        file.write_header(&mut out)?;
        for chunk in numbers.chunks(PCO_CHUNK_ELEMENTS) {
            let config = ChunkConfig::default()
                .with_compression_level(usize::from(level))
                .with_paging_spec(PagingSpec::Exact(vec![chunk.len()]))
                // It is asked for by name. The library's warning is of text, which tensors are not.
                .with_enable_8_bit(true);
            let mut compressor = file.chunk_compressor(chunk, &config)?;
            compressor.write_meta(&mut out)?;
            compressor.write_page(0, &mut out)?;
        }
        Ok(out)
    };
    work().map_err(|error| Error::usage("the tensor cannot be compressed", "what pco takes", error))
}

/// Fills `out`, whose elements are of this type, with what `payload` holds. Where `out` is not aligned for them, `aligned` is used on the way.
pub(super) fn inflate_pco(payload: &[u8], dtype: DType, aligned: &mut Vec<u64>, out: &mut [u8]) -> Result<()> {
    by_type!(dtype, inflate_numbers(payload, aligned, out))
}

fn inflate_numbers<T: Element + Number>(payload: &[u8], aligned: &mut Vec<u64>, out: &mut [u8]) -> Result<()> {
    if let Ok(numbers) = bytemuck::try_cast_slice_mut::<u8, T>(out) {
        return read_numbers(payload, numbers);
    }
    let bytes = out.len();
    memory::grow(aligned, bytes.div_ceil(size_of::<u64>()))?;
    let aligned = &mut bytemuck::cast_slice_mut::<u64, u8>(aligned)[..bytes];
    // Words are aligned for every element.
    if let Ok(numbers) = bytemuck::try_cast_slice_mut::<u8, T>(aligned) {
        read_numbers(payload, numbers)?;
    }
    out.copy_from_slice(aligned);
    Ok(())
}

fn read_numbers<T: Number>(payload: &[u8], numbers: &mut [T]) -> Result<()> {
    let work = |numbers: &mut [T]| -> pco::errors::PcoResult<bool> {
        let (file, mut rest) = FileDecompressor::new(payload)?;
        for chunk in numbers.chunks_mut(PCO_CHUNK_ELEMENTS) {
            let (mut decompressor, after) = file.chunk_decompressor::<T, _>(rest)?;
            let mut page = decompressor.page_decompressor(after, chunk.len())?;
            if !page.read(chunk)?.finished {
                return Ok(false);
            }
            rest = page.into_src();
        }
        Ok(rest.is_empty())
    };
    match work(numbers) {
        Ok(true) => Ok(()),
        Ok(false) => Err(damaged("pco", "it does not end where it should")),
        Err(error) => Err(damaged("pco", &error.message)),
    }
}
