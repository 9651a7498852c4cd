//! From phases to pixels: merges the four phases of each plane, undoes the color transform and interleaves the channels, in
//! one pass.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::{
    header::ColorTransform,
    kernel::{Supported, dispatch, stream::Stream},
    phases::Phases,
};

/// Writes one row of 8-bit pixels; `out` has exactly `width * planes.len()` bytes, and `planes` are 1 to 4.
pub(crate) fn finish_row(
    level: Supported,
    transform: ColorTransform,
    planes: &[Phases<u8>],
    width: usize,
    out: &mut [u8],
) {
    debug_assert_eq!(out.len(), width * planes.len(), "a whole row");
    match planes {
        [first] => dispatch!(level, finish1(first, out)),
        [first, second, third] => dispatch!(level, finish3(transform, [first, second, third], out)),
        [first, second, third, fourth] => dispatch!(level, finish4(transform, [first, second, third, fourth], out)),
        _ => scalar::finish(transform, planes, width, out),
    }
}

/// Writes one row of 8-bit pixels past the cache, without a stop on the way. False, and nothing is written, where there is no kernel for that
/// or the row does not consist of whole lines.
#[must_use]
pub(crate) fn finish_row_streamed(
    stream: &Stream,
    transform: ColorTransform,
    planes: &[Phases<u8>],
    out: &mut [u8],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let (crate::kernel::Level::Avx512, [first, second, third]) = (stream.level(), planes)
        && Stream::is_whole_lines(out)
    {
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        unsafe { avx512::finish3_streamed(transform, [first, second, third], out) };
        return true;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (stream, transform, planes, out);
    false
}

/// Writes one row of 16-bit pixels; `out` has exactly `2 * width * planes.len()` bytes.
pub(crate) fn finish_row_wide(
    level: Supported,
    transform: ColorTransform,
    planes: &[Phases<u16>],
    width: usize,
    out: &mut [u8],
) {
    debug_assert_eq!(out.len(), 2 * width * planes.len(), "a whole row");
    match (level.level(), planes) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have, and AVX-512 includes AVX2.
        (crate::kernel::Level::Avx2 | crate::kernel::Level::Avx512, [first]) => unsafe {
            avx2::finish1_wide(first, out);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (crate::kernel::Level::Avx2 | crate::kernel::Level::Avx512, [first, second, third]) => unsafe {
            avx2::finish3_wide(transform, [first, second, third], out);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (crate::kernel::Level::Avx2 | crate::kernel::Level::Avx512, [first, second, third, fourth]) => unsafe {
            avx2::finish4_wide(transform, [first, second, third, fourth], out);
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        (crate::kernel::Level::Neon, [first]) => unsafe { neon::finish1_wide(first, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        (crate::kernel::Level::Neon, [first, second, third]) => unsafe {
            neon::finish3_wide(transform, [first, second, third], out);
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        (crate::kernel::Level::Neon, [first, second, third, fourth]) => unsafe {
            neon::finish4_wide(transform, [first, second, third, fourth], out);
        },
        _ => scalar::finish(transform, planes, width, out),
    }
}
